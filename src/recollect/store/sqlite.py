"""The SQLite store: a folder per user with their ``memory.db``, and ``recollect.db`` beside the folders.

Acknowledged writes are synced to disk (WAL, ``synchronous=FULL``). A lock file in the user's folder serialises writers
of all processes and is held until the after-commit hooks are done; the system releases it when a process dies.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import sqlite3
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import date
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from weakref import WeakValueDictionary

from recollect.errors import StoreBusyError, StoreCorruptError, StoreError, storage_error
from recollect.records import PENDING
from recollect.store.contract import Salvage, State
from recollect.store.forks import close_before_forks
from recollect.store.locks import FileLock
from recollect.store.rows import (
    load_queries,
)
from recollect.store.sqlite_connections import (
    BUSY_SECONDS,
    Handle,
    connect_reading,
    is_empty,
    mapped_errors,
    raise_mapped,
)
from recollect.store.sqlite_copies import copies, erase_from_copies
from recollect.store.sqlite_erasure import PATIENCE, Erasure, Finisher
from recollect.store.sqlite_file import SqliteFile
from recollect.store.sqlite_repair import repair
from recollect.store.sqlite_tally import SqliteTally
from recollect.store.sqlite_views import SqliteReader, SqliteTransaction
from recollect.store.tenants import some_of
from recollect.times import to_text, utc_now
from recollect.usage_metrics import Tally
from recollect.userid import folder_name

LOGGER = logging.getLogger("recollect.store")
_HERE = Path(__file__).parent
_SQL = load_queries(_HERE / "sqlite.sql")
_MIGRATIONS = _HERE / "sqlite_migrations"
_ROOT_MIGRATIONS = _HERE / "sqlite_root_migrations"
_MOST_OPEN = 128
_ERASED = ".erased-"
"""The prefix of a folder that is being deleted; no user's folder begins with a dot."""


class SqliteStore:
    """All users below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root = root.absolute()  # a process may change its working directory
        self._users: WeakValueDictionary[str, SqliteUser] = WeakValueDictionary()
        self._open: OrderedDict[str, SqliteUser] = OrderedDict()
        self._guard = threading.Lock()
        self._tally = SqliteTally()
        self._list = SqliteFile(root / "recollect.db", _ROOT_MIGRATIONS, if_damaged="Move it away; it is created again")
        self.finisher = Finisher()
        if not self._list.path.exists() and _has_files_alone(root):
            LOGGER.warning(
                "%s has files of memories but no database: a new store begins with what they say. If their records are "
                "in PostgreSQL, set MEMORY_DATABASE_URL instead",
                root,
            )

    def user(self, user_id: str) -> SqliteUser:
        with self._guard:
            user = self._users.get(user_id)
            if user is None:
                user = self._users[user_id] = SqliteUser(self, user_id)
            return user

    def users(
        self, *, tenant: str | None = None, begins: str = "", after: str = "", limit: int | None = None
    ) -> Iterator[str]:
        found: set[str] = set()
        registered = self._registered()
        if self.root.is_dir():
            for folder in self.root.iterdir():
                if folder.name in registered:
                    found.add(registered[folder.name])
                elif folder.is_dir() and (owner := _owner_of(folder)):
                    # copied here from elsewhere, or the root database was lost
                    found.add(owner)
        yield from some_of(sorted(found), tenant, begins, after, limit)

    def tally(self, tenant: str | None, since: date, until: date, seconds: float | None = None) -> Tally:
        named = ((name, self.root / folder_name(name) / "memory.db") for name in self.users(tenant=tenant))
        return self._tally.tally(tenant, named, seconds)

    def erase_user(self, user_id: str, also: Callable[[], None] | None = None) -> dict[str, int]:
        user = self.user(user_id)
        places = {"folders": 0, "files": 0}
        if user.folder.is_dir() or also is not None:
            with mapped_errors(user.folder), user.locked():
                user.close()
                if also is not None:
                    also()
                places["files"] = sum(1 for path in user.folder.rglob("*") if path.is_file() and path != user.lock.path)
                places["folders"] = 1
                # moved away atomically: later users start afresh, and a crash leaves no half-deleted folder
                user.folder.rename(self.root / f"{_ERASED}{secrets.token_hex(8)}")
        self._sweep()
        if self._list.path.exists():
            with self._list.write(erases=True) as db:
                places["registrations"] = db.execute(_SQL["unregister_user"], (user_id,)).rowcount
            if self._list.pending:
                places[PENDING] = 1  # a thread keeps trying
            else:
                self._list.close()
        return places

    def _sweep(self) -> None:
        """Delete erased folders, including those left by a process that died."""
        for folder in self.root.glob(f"{_ERASED}*"):
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        with self._guard:
            users = list(self._users.values())
            self._open.clear()
        self.finisher.close()
        self._list.finish_and_close()
        for user in users:
            user.close()

    def register(self, user: SqliteUser) -> None:
        """Record in the root database that this user exists."""
        self._sweep()
        if not self.knows(user):
            with self._list.write() as db:
                db.execute(_SQL["register_user"], (user.user_id, user.folder.name, to_text(utc_now())))
            self._list.close()

    def knows(self, user: SqliteUser) -> bool:
        """Return True if this user was ever registered."""
        return self._registered().get(user.folder.name) == user.user_id

    @property
    def has_list(self) -> bool:
        """True if the root database exists."""
        return self._list.path.exists()

    def opened(self, user: SqliteUser) -> None:
        """Keep only recently used users open, so that a thousand users cost no more than a few."""
        with self._guard:
            self._open[user.user_id] = user
            self._open.move_to_end(user.user_id)
            surplus = [self._open.popitem(last=False)[1] for _ in range(len(self._open) - _MOST_OPEN)]
        for idle in surplus:
            idle.close_if_idle()

    def _registered(self) -> dict[str, str]:
        """Return user ids by folder, even if the folder cannot be written to."""
        with mapped_errors(self.root):
            db, _ = connect_reading(self._list.path, _ROOT_MIGRATIONS)
            try:
                return {folder: user_id for user_id, folder in db.execute(_SQL["registered_users"])}
            finally:
                db.close()


class SqliteUser:
    def __init__(self, store: SqliteStore, user_id: str) -> None:
        self.user_id = user_id
        self.folder = store.root / folder_name(user_id)
        self.path = self.folder / "memory.db"
        self.lock = FileLock(self.folder / ".lock", BUSY_SECONDS)
        self._store = store
        self._writer: Handle | None = None
        self._reader: Handle | None = None
        self._begins_anew = False
        self._erasure = Erasure(self.path)
        self._write_guard = threading.RLock()
        self._read_guard = threading.RLock()
        close_before_forks(self)

    def exists(self) -> bool:
        return self.path.exists()

    @contextmanager
    def read(self) -> Iterator[SqliteReader]:
        with self._read_guard, mapped_errors(self.folder, self.path):
            db = self._reading()
            db.execute("BEGIN")
            try:
                place = 0 if self._reader is None else self._reader.place
                yield SqliteReader(db, self.user_id, place)
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    @contextmanager
    def rehearsal(self) -> Iterator[SqliteUser]:
        if self.exists():
            yield self
            return
        with (
            tempfile.TemporaryDirectory(prefix="recollect-") as folder,
            closing(SqliteStore(Path(folder))) as elsewhere,
        ):
            yield elsewhere.user(self.user_id)

    def write(self) -> SqliteWriting:
        return SqliteWriting(self)

    @property
    def place(self) -> int:
        """A number for the file that is written to."""
        return 0 if self._writer is None else self._writer.place

    def begin(self) -> sqlite3.Connection:
        """Begin a transaction on the writing connection. The caller holds `locked`."""
        db = self._writing()
        db.execute("BEGIN IMMEDIATE")
        return db

    def commit(self, transaction: SqliteTransaction) -> None:
        """Commit. After it returns, the write may be acknowledged: other processes see it and continue from it.

        The log is checked before, so that nothing is written to one that nobody else has, and again afterwards: if it
        was removed meanwhile, what was just committed is gone with it.
        """
        assert self._writer is not None
        self._writer.check_log()
        if transaction.erased:
            self._erasure.note()
        transaction.db.execute("COMMIT")
        if not self._writer.fresh():
            raise StoreError(f"{self.path} was removed or replaced during a write, which may be lost; repeat it")
        self._acknowledge(transaction.state())

    def _acknowledge(self, state: State) -> None:
        """Record the last change outside the database, so that `lost` notices if it is missing one day."""
        life, seq = _life(state), state.seq
        with suppress(OSError):  # a full disk; the write is done
            noted_life, noted_seq = _parse_acknowledged(self.lock.noted())
            if noted_life != life or noted_seq < seq:
                self.lock.note(f"{life} {seq}")

    def lost(self) -> list[str]:
        # read before the database, which can only be further ahead then
        life, acknowledged = _parse_acknowledged(self.lock.noted_by_others())
        with self.read() as reader:
            state = reader.state()
        if life != _life(state) or acknowledged <= state.seq:
            return []
        return [
            f"memory.db ends with change {state.seq}, but {acknowledged} were acknowledged: it was replaced by an"
            " older copy, or its log was removed; restore a newer copy, or continue without the last changes"
        ]

    def empty_log(self, transaction: SqliteTransaction) -> None:
        """Empty the log after the commit if it may hold what was erased, by this transaction or before."""
        if transaction.erased:
            transaction.pending = not self._erasure.finish(transaction.db, PATIENCE)
        elif self._erasure.pending:
            self._erasure.finish(transaction.db)
        if self._erasure.pending:
            self._store.finisher.add(self)

    def finish_erasing(self) -> bool:
        """Empty the log if it may hold what was erased; return False if this must be retried later."""
        if not self._erasure.pending:
            return True
        if not self._write_guard.acquire(blocking=False):
            return False
        try:
            with mapped_errors(self.folder, self.path):
                try:
                    self.lock.acquire(timeout=0)
                except StoreBusyError:
                    return False
                try:
                    return not self.exists() or self._erasure.finish(self._writing())
                finally:
                    self.lock.release()
        finally:
            self._write_guard.release()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock that keeps all other writers of this user out, in this process and in others."""
        self.acquire()
        try:
            yield
        finally:
            self.release()

    def acquire(self) -> None:
        """Take the lock of `locked`."""
        self._write_guard.acquire()
        try:
            self.lock.acquire()
        except BaseException as error:
            self._write_guard.release()
            if isinstance(error, OSError):
                raise storage_error(error, self.folder) from error
            raise

    def release(self) -> None:
        self.lock.release()
        self._write_guard.release()

    def check(self) -> list[str]:
        if not self.exists():
            return []
        try:
            with self.read() as reader:
                found = [row[0] for row in reader.db.execute("PRAGMA integrity_check(20)")]
        except StoreCorruptError as error:
            return [str(error)]
        return [] if found == ["ok"] else [f"memory.db: {problem}" for problem in found]

    def close(self) -> None:
        with self._write_guard, self._read_guard:
            for handle in (self._reader, self._writer):
                if handle is not None:
                    handle.close()
            self._reader = self._writer = None
            if not self.lock.held:
                self.lock.close()

    def close_if_idle(self) -> None:
        """Close, unless a thread is using it."""
        if self.hold(0):
            try:
                self.close()
            finally:
                self.let_go()

    def hold(self, seconds: float) -> bool:
        """Keep all threads out until `let_go`; False if one does not finish in time, or it is this one."""
        if self._write_guard.acquire(timeout=seconds):
            if self._read_guard.acquire(timeout=seconds):
                if not any(handle and handle.busy for handle in (self._writer, self._reader)):
                    return True
                self._read_guard.release()
            self._write_guard.release()
        return False

    def let_go(self) -> None:
        """Let threads in again."""
        self._read_guard.release()
        self._write_guard.release()

    def repair(self) -> Salvage:
        with mapped_errors(self.folder), self.locked():
            self.close()
            found = repair(self.path, self.user_id)
            self.lock.note("")  # the new database has other numbers
            self._begins_anew = not self.exists()
            return found if found.aside else replace(found, lost=self._store.knows(self))

    def _check_not_lost(self) -> None:
        """Raise an error if a known user's database is gone but not the files: do not continue with a new one."""
        if self._begins_anew:
            return
        if self.path.exists() and not self.path.is_file():
            raise StoreCorruptError(f"{self.path} is not a file; run `recollect rebuild` to start with a new one")
        if not is_empty(self.path):
            return
        if copies(self.path) or ((self.folder / "MEMORY.md").exists() and self._store.knows(self)):
            raise StoreCorruptError(f"{self.path} is missing; run `recollect rebuild` to restore everything readable")

    def _writing(self) -> sqlite3.Connection:
        if self._writer is None or not self._writer.fresh():
            self._check_not_lost()
            writer = Handle.writing(self.path, _MIGRATIONS)
            try:
                is_new = not self._check_owner(writer.db)
                if self._erasure.pending and copies(
                    self.path
                ):  # the process that erased may have died before it overwrote the copies
                    erase_from_copies(self.path, [row[1] for row in writer.db.execute(_SQL["tombstones"])])
                # a new one is registered before its first write is done, also if an earlier attempt was killed
                if is_new or not self._store.has_list:
                    self._store.register(self)
            except BaseException:
                writer.close()
                raise
            self._writer = writer
            self._begins_anew = False
            self._store.opened(self)
        return self._writer.db

    def _reading(self) -> sqlite3.Connection:
        if self._reader is None or not self._reader.fresh():
            self._check_not_lost()
            reader = Handle.reading(self.path, _MIGRATIONS)
            try:
                self._check_owner(reader.db)
            except BaseException:
                reader.close()
                raise
            self._reader = reader
            self._store.opened(self)
            if self._erasure.pending:
                self._store.finisher.add(self)
        return self._reader.db

    def _check_owner(self, db: sqlite3.Connection) -> bool:
        """Raise an error if the database is another user's; return True if anything was written to it."""
        row = db.execute(_SQL["state"]).fetchone()
        if row is not None and row[0] != self.user_id:
            raise StoreError(
                f"the folder {self.folder.name} belongs to another user; use export and import to copy a memory"
            )
        return row is not None


class SqliteWriting:
    """One transaction, from taking the lock to releasing it. A class, because it is on every write's path."""

    def __init__(self, user: SqliteUser) -> None:
        self._user = user

    def __enter__(self) -> SqliteTransaction:
        user = self._user
        user.acquire()
        self._db: sqlite3.Connection | None = None
        try:
            self._db = user.begin()
            self._transaction = SqliteTransaction(self._db, user.user_id, user.place)
        except BaseException as error:
            self._leave()
            raise_mapped(error, user.folder, user.path)
        return self._transaction

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        user, transaction = self._user, self._transaction
        if isinstance(error, sqlite3.DatabaseError):
            self._leave()
            raise_mapped(error, user.folder, user.path)
        if error is None:
            try:
                user.commit(transaction)
                for hook in transaction.hooks:
                    hook()
                user.empty_log(transaction)
            except sqlite3.DatabaseError as problem:
                self._leave()
                raise_mapped(problem, user.folder, user.path)
            except BaseException:
                self._leave()
                raise
        self._leave()

    def _leave(self) -> None:
        try:
            with suppress(sqlite3.Error):
                if self._db is not None and self._db.in_transaction:
                    self._db.execute("ROLLBACK")
        finally:
            self._user.release()


def _parse_acknowledged(note: str) -> tuple[str, int]:
    life, _, seq = note.partition(" ")
    return life, int(seq) if seq.isdecimal() else 0


def _life(state: State) -> str:
    """Return an id of the user's life; another one begins when they are erased or rebuilt."""
    return blake2b(state.secret + to_text(state.created_at).encode(), digest_size=8).hexdigest()


def _owner_of(folder: Path) -> str | None:
    """Return the owner of a folder, if any: from its database, or from its name if that is plain."""
    path = folder / "memory.db"
    if path.exists():
        try:
            db, _ = connect_reading(path, _MIGRATIONS)
        except (sqlite3.Error, StoreError):
            return folder.name if folder_name(folder.name) == folder.name else None
        try:
            row = db.execute(_SQL["state"]).fetchone()
        except sqlite3.Error:
            row = None
        finally:
            db.close()
        if row is not None:
            return str(row[0]) if folder_name(row[0]) == folder.name else None
    if (path.exists() or (folder / "MEMORY.md").exists()) and folder_name(folder.name) == folder.name:
        return folder.name
    return None


def _has_files_alone(root: Path) -> bool:
    """Return True if a user's folder has a MEMORY.md but no database."""
    try:
        return any(not (page.parent / "memory.db").exists() for page in root.glob("*/MEMORY.md"))
    except OSError:
        return False
