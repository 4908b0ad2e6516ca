"""The SQLite store: a folder for each user with their ``memory.db``, and ``recollect.db`` beside the folders.

Acknowledged writes are synced to disk (WAL, ``synchronous=FULL``). A lock file in the user's folder
serialises writers of all processes and is held until the after-commit hooks are done; the system releases
it when a process dies. Knows no policy and no Markdown.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakValueDictionary

from recollect.errors import StoreCorruptError, StoreError, storage_error
from recollect.records import JournalEntry, Record, to_dict
from recollect.store.contract import FileState, Query, Salvage, State, Tombstone
from recollect.store.forks import close_before_forks
from recollect.store.locks import FileLock
from recollect.store.rows import (
    data_to_row,
    dump,
    dump_record,
    from_row,
    load_queries,
    load_record,
    readable,
    to_row,
)
from recollect.store.sqlite_conditions import conditions_of
from recollect.store.sqlite_connections import (
    BUSY_SECONDS,
    Handle,
    connect,
    connect_reading,
    mapped_errors,
    migrate,
    raise_mapped,
)
from recollect.store.sqlite_salvage import salvage
from recollect.times import from_text, to_text, utc_now
from recollect.userid import folder_name

_moment = readable(from_text)
_HERE = Path(__file__).parent
_SQL = load_queries(_HERE / "sqlite.sql")
_MIGRATIONS = _HERE / "sqlite_migrations"
_ROOT_MIGRATIONS = _HERE / "sqlite_root_migrations"
_MOST_OPEN = 64
_ERASED = ".erased-"
"""Begins the name of a folder that is being deleted; no user's folder begins with a dot."""


class SqliteStore:
    """All users below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._users: WeakValueDictionary[str, SqliteUser] = WeakValueDictionary()
        self._open: OrderedDict[str, SqliteUser] = OrderedDict()
        self._guard = threading.Lock()

    def user(self, user_id: str) -> SqliteUser:
        with self._guard:
            user = self._users.get(user_id)
            if user is None:
                user = self._users[user_id] = SqliteUser(self, user_id)
            return user

    def users(self) -> Iterator[str]:
        found: set[str] = set()
        registered = self._registered()
        if self.root.is_dir():
            for folder in self.root.iterdir():
                if folder.name in registered:
                    found.add(registered[folder.name])
                elif folder.is_dir() and (owner := _owner_of(folder)):
                    # copied here from elsewhere, or the root database was lost
                    found.add(owner)
        yield from sorted(found)

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
                # out of the way in one step: who opens the user from now on begins anew, and a crash leaves no half
                user.folder.rename(self.root / f"{_ERASED}{secrets.token_hex(8)}")
        self._sweep()
        if (self.root / "recollect.db").exists():
            with mapped_errors(self.root), self._root() as db:
                places["registrations"] = db.execute(_SQL["unregister_user"], (user_id,)).rowcount
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return places

    def _sweep(self) -> None:
        """Delete what was erased, also what a process that died left of it."""
        for folder in self.root.glob(f"{_ERASED}*"):
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        with self._guard:
            users = list(self._users.values())
            self._open.clear()
        for user in users:
            user.close()

    def register(self, user: SqliteUser) -> None:
        """Note in the root database that this user exists."""
        self._sweep()
        with self._root() as db:
            row = (user.user_id, user.folder.name, to_text(utc_now()))
            if (user.user_id, user.folder.name) not in set(db.execute(_SQL["registered_users"])):
                db.execute(_SQL["register_user"], row)

    def opened(self, user: SqliteUser) -> None:
        """Keep only the users of late open, so that a thousand users cost no more than a few."""
        with self._guard:
            self._open[user.user_id] = user
            self._open.move_to_end(user.user_id)
            surplus = [self._open.popitem(last=False)[1] for _ in range(len(self._open) - _MOST_OPEN)]
        for idle in surplus:
            idle.close_if_idle()

    def _registered(self) -> dict[str, str]:
        """User ids by folder; a folder that cannot be written to tells them too."""
        with mapped_errors(self.root):
            db, _ = connect_reading(self.root / "recollect.db", _ROOT_MIGRATIONS)
            try:
                return {folder: user_id for user_id, folder in db.execute(_SQL["registered_users"])}
            finally:
                db.close()

    @contextmanager
    def _root(self) -> Iterator[sqlite3.Connection]:
        path = self.root / "recollect.db"
        with mapped_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            db = connect(path)
            try:
                migrate(db, _ROOT_MIGRATIONS)
                yield db
            finally:
                db.close()


class SqliteUser:
    """One user's folder and database."""

    def __init__(self, store: SqliteStore, user_id: str) -> None:
        self.user_id = user_id
        self.folder = store.root / folder_name(user_id)
        self.path = self.folder / "memory.db"
        self.lock = FileLock(self.folder / ".lock", BUSY_SECONDS)
        self._store = store
        self._writer: Handle | None = None
        self._reader: Handle | None = None
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
                yield SqliteReader(db, self.user_id)
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def write(self) -> SqliteWriting:
        return SqliteWriting(self)

    def begin(self) -> sqlite3.Connection:
        """The writing connection, with a transaction begun. The caller holds `locked`."""
        db = self._writing()
        db.execute("BEGIN IMMEDIATE")
        return db

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The lock that keeps all other writers of this user out, in this process and in others."""
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
        """Give it back."""
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
        """`close`, unless some thread is using it just now."""
        if self.hold(0):
            try:
                self.close()
            finally:
                self.let_go()

    def hold(self, seconds: float) -> bool:
        """Keep all threads out until `let_go`; False if one of them does not end in time, or it is this one."""
        if self._write_guard.acquire(timeout=seconds):
            if self._read_guard.acquire(timeout=seconds):
                if not any(handle and handle.busy for handle in (self._writer, self._reader)):
                    return True
                self._read_guard.release()
            self._write_guard.release()
        return False

    def let_go(self) -> None:
        """Let the threads in again."""
        self._read_guard.release()
        self._write_guard.release()

    def set_aside(self) -> Salvage:
        with mapped_errors(self.folder), self.locked():
            self.close()
            return salvage(self.path)

    def _writing(self) -> sqlite3.Connection:
        if self._writer is None or not self._writer.fresh():
            new = not self.path.exists()
            writer = Handle.writing(self.path)
            try:
                migrate(writer.db, _MIGRATIONS)
                self._check_owner(writer.db)
                if new or not (self._store.root / "recollect.db").exists():
                    self._store.register(self)
            except BaseException:
                writer.close()
                raise
            self._writer = writer
            self._store.opened(self)
        return self._writer.db

    def _reading(self) -> sqlite3.Connection:
        if self._reader is None or not self._reader.fresh():
            reader = Handle.reading(self.path, _MIGRATIONS)
            try:
                self._check_owner(reader.db)
            except BaseException:
                reader.close()
                raise
            self._reader = reader
            self._store.opened(self)
        return self._reader.db

    def _check_owner(self, db: sqlite3.Connection) -> None:
        row = db.execute(_SQL["state"]).fetchone()
        if row is not None and row[0] != self.user_id:
            raise StoreError(
                f"the folder {self.folder.name} holds another user's memory; use export and import to copy a memory"
            )


class SqliteWriting:
    """From taking the lock to giving it back: one transaction. A class, because it is on every write's path."""

    def __init__(self, user: SqliteUser) -> None:
        self._user = user

    def __enter__(self) -> SqliteTransaction:
        user = self._user
        user.acquire()
        self._db: sqlite3.Connection | None = None
        try:
            self._db = user.begin()
            self._transaction = SqliteTransaction(self._db, user.user_id)
        except BaseException as error:
            self._leave()
            raise_mapped(error, user.folder, user.path)
        return self._transaction

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        user, transaction, db = self._user, self._transaction, self._transaction.db
        if isinstance(error, sqlite3.DatabaseError):
            self._leave()
            raise_mapped(error, user.folder, user.path)
        if error is None:
            try:
                transaction.finish()
                db.execute("COMMIT")
                for hook in transaction.hooks:
                    hook()
                if transaction.erased:
                    # what was erased must not survive in the write-ahead log
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
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


class SqliteReader:
    """A view of one user's database."""

    def __init__(self, db: sqlite3.Connection, user_id: str) -> None:
        self.db = db
        self._user_id = user_id

    def state(self) -> State:
        row = self.db.execute(_SQL["state"]).fetchone()
        if row is None:
            return State(user_id=self._user_id, created_at=utc_now())
        return State(user_id=row[0], created_at=_moment(row[1]), seq=row[2], mode=row[3], secret=row[4])

    def get(self, record_id: str) -> Record | None:
        row = self.db.execute(_SQL["find"] + " WHERE id = ? AND latest = 1", (record_id,)).fetchone()
        return None if row is None else from_row(row)

    def find(self, query: Query) -> list[Record]:
        conditions, values = conditions_of(query)
        order = "created_at DESC, id DESC, version DESC" if query.newest_first else "created_at, id, version"
        if query.changed_after is not None:
            order = "seq DESC" if query.newest_first else "seq"
        sql = f"{_SQL['find']} WHERE {' AND '.join(conditions)} ORDER BY {order}"
        if query.limit is not None or query.offset:
            sql += " LIMIT ? OFFSET ?"
            values += [-1 if query.limit is None else query.limit, query.offset]
        return [from_row(row) for row in self.db.execute(sql, values)]

    def count(self) -> dict[tuple[str, str], int]:
        return {(kind, status): number for kind, status, number in self.db.execute(_SQL["count"])}

    def versions(self, record_id: str) -> list[Record]:
        rows = self.db.execute(_SQL["find"] + " WHERE id = ? ORDER BY version", (record_id,))
        return [from_row(row) for row in rows]

    def ids_ending(self, ending: str) -> list[str]:
        return [row[0] for row in self.db.execute(_SQL["ids_ending"], (ending,))]

    def entry(self, seq: int) -> JournalEntry | None:
        row = self.db.execute(_SQL["entries"] + " WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else _entry(row)

    def entries(
        self,
        *,
        record_id: str | None = None,
        run: str | None = None,
        undoes: int | None = None,
        after: int = 0,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[JournalEntry]:
        conditions, values = ["seq > ?"], [after]
        for column, value in (("record_id", record_id), ("run", run), ("undoes", undoes)):
            if value is not None:
                conditions.append(f"{column} = ?")
                values.append(value)  # type: ignore[arg-type]
        sql = f"{_SQL['entries']} WHERE {' AND '.join(conditions)} ORDER BY seq{' DESC' if newest_first else ''}"
        if limit is not None:
            sql += " LIMIT ?"
            values.append(limit)
        return [_entry(row) for row in self.db.execute(sql, values)]

    def file(self, name: str) -> FileState | None:
        row = self.db.execute(_SQL["files"] + " WHERE name = ?", (name,)).fetchone()
        return None if row is None else _file(row)

    def files(self) -> list[FileState]:
        return [_file(row) for row in self.db.execute(_SQL["files"] + " ORDER BY name")]

    def tombstones(self, hashes: Sequence[str] | None = None) -> list[Tombstone]:
        sql, values = _SQL["tombstones"], []
        if hashes is not None:
            sql += " WHERE hash IN (SELECT value FROM json_each(?))"
            values = [json.dumps(list(hashes))]
        rows = self.db.execute(sql + " ORDER BY record_id, hash", values)
        return [Tombstone(hash=row[0], record_id=row[1], at=_moment(row[2])) for row in rows]

    def recalled(self) -> dict[str, datetime]:
        return {record_id: _moment(at) for record_id, at in self.db.execute(_SQL["recalls"])}


class SqliteTransaction(SqliteReader):
    """The one open transaction of a user."""

    def __init__(self, db: sqlite3.Connection, user_id: str) -> None:
        super().__init__(db, user_id)
        self.hooks: list[Callable[[], None]] = []
        self.erased = False
        self._dumped: tuple[Record | None, str | None] = (None, None)
        """The record put last, as it will stand in the journal too."""
        self._state = super().state()
        if not self._state.secret:
            self.set_state(replace(self._state, secret=secrets.token_bytes(16)))
        self._seq = self._state.seq

    def state(self) -> State:
        return replace(self._state, seq=self._seq) if self._seq != self._state.seq else self._state

    def next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def put(self, record: Record) -> None:
        if record.version > 1:
            self.db.execute(_SQL["drop_latest"], (record.id, record.version))
        data = to_dict(record)
        self._dumped = (record, dump(data))
        self.db.execute(_SQL["put"], data_to_row(data))

    def put_many(self, records: Iterable[Record]) -> None:
        records = list(records)
        self.db.executemany(_SQL["drop_latest"], [(r.id, r.version) for r in records if r.version > 1])
        self.db.executemany(_SQL["put"], map(to_row, records))

    def keep(self, record: Record) -> None:
        self.db.execute(_SQL["keep"], to_row(record))

    def log(self, entries: Iterable[JournalEntry]) -> None:
        self.db.executemany(
            _SQL["log"],
            (
                (
                    e.seq,
                    to_text(e.at),
                    e.actor,
                    e.op,
                    e.record_id,
                    dump_record(e.before),
                    self._dumped[1] if e.after is self._dumped[0] else dump_record(e.after),
                    e.reason,
                    e.source,
                    e.run,
                    e.call,
                    e.undoes,
                    int(e.erased),
                )
                for e in entries
            ),
        )

    def set_mode(self, mode: str) -> None:
        self.db.execute(_SQL["set_mode"], (mode,))
        self._state = replace(self._state, mode=mode)

    def set_state(self, state: State) -> None:
        self.db.execute(
            _SQL["create_state"],
            (self._user_id, to_text(state.created_at), state.seq, state.mode, state.secret),
        )
        self._state = replace(state, user_id=self._user_id)
        self._seq = state.seq

    def set_file(self, state: FileState) -> None:
        self.db.execute(
            _SQL["set_file"],
            (
                state.name,
                state.fingerprint,
                state.seq,
                state.previous_fingerprint,
                state.previous_seq,
                state.boot,
            ),
        )

    def drop_file(self, name: str) -> None:
        self.db.execute(_SQL["drop_file"], (name,))

    def bury(self, tombstones: Iterable[Tombstone]) -> None:
        self.db.executemany(_SQL["bury"], ((t.hash, t.record_id, to_text(t.at)) for t in tombstones))

    def set_recalled(self, moments: Mapping[str, datetime]) -> None:
        self.db.executemany(_SQL["set_recall"], ((record_id, to_text(at)) for record_id, at in moments.items()))

    def erase(self, record_ids: Sequence[str]) -> dict[str, int]:
        ids = json.dumps(list(record_ids))
        self.db.execute(_SQL["erase_recalls"], (ids,))
        journal = self.db.execute(_SQL["erase_journal"], (ids,)).rowcount
        versions = self.db.execute(_SQL["erase_records"], (ids,)).rowcount
        self.erased = True
        return {"versions": versions, "journal": journal}

    def after_commit(self, hook: Callable[[], None]) -> None:
        self.hooks.append(hook)

    def finish(self) -> None:
        """Write down the last sequence number taken."""
        if self._seq != self._state.seq:
            self.db.execute(_SQL["set_seq"], (self._seq,))


def _owner_of(folder: Path) -> str | None:
    """Whose folder this is, if it is one: from its database, or from its name if that is plain."""
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


def _entry(row: tuple[Any, ...]) -> JournalEntry:
    return JournalEntry(
        seq=row[0],
        at=_moment(row[1]),
        actor=row[2],
        op=row[3],
        record_id=row[4],
        before=load_record(row[5]),
        after=load_record(row[6]),
        reason=row[7],
        source=row[8],
        run=row[9],
        call=row[10],
        undoes=row[11],
        erased=bool(row[12]),
    )


def _file(row: tuple[Any, ...]) -> FileState:
    return FileState(
        name=row[0],
        fingerprint=row[1],
        seq=row[2],
        previous_fingerprint=row[3],
        previous_seq=row[4],
        boot=row[5],
    )
