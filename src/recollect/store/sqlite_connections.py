"""Connections to SQLite files: creating, opening, migrating, detecting a replaced file, and mapping SQLite's errors to
ours.

No code of ours may open a live database file, its ``-wal`` or its ``-shm``, by anything but SQLite. On POSIX systems,
closing *any* descriptor of a file drops every lock that this process holds on it, including those of SQLite's
descriptors. The next process to end then considers itself the last user and deletes the log that this one still writes
to: its acknowledged writes are lost. So a new database is made aside, where nobody has it open, and files are only ever
inspected with ``os.stat``. To copy their bytes, use another process.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, NoReturn
from weakref import finalize

from recollect.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    storage_error,
)
from recollect.store.forks import renew_after_forks
from recollect.store.rows import load_migrations

BUSY_SECONDS = 30.0
_WAL_MARKS = slice(18, 20)
"""The bytes of a database's header that say it has a write-ahead log."""
_DAMAGED = frozenset({
    "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE",
})  # fmt: skip


_abandoned: set[int | None] = set()
"""The databases, by inode, to which this process has a connection that it may neither use nor close."""


class _Log(NamedTuple):
    """The files of a database's write-ahead log, by inode."""

    wal: int | None
    shm: int | None

    @classmethod
    def of(cls, path: Path) -> _Log:
        return cls(_inode(f"{path}-wal"), _inode(f"{path}-shm"))


class Handle:
    """An open connection, and the files and process it belongs to."""

    def __init__(self, path: Path, db: sqlite3.Connection, inode: int | None, *, has_log: bool) -> None:
        self.db = db
        self._path = path
        self._pid = os.getpid()
        self._inode = inode
        # connecting has read from the database, so SQLite has the present log open
        self._log = _Log.of(path) if has_log else _Log(None, None)
        self.close = finalize(self, _close_own, db, self._pid)
        """Closes the connection, at the latest when nothing holds the handle any more."""
        renew_after_forks(self, Handle._leave_to_parent)

    @classmethod
    def writing(cls, path: Path, migrations: Path) -> Handle:
        """Connect to the newest schema, creating the file if there is none.

        Hold the lock of the file, so that only one process creates it, and the file opened is the one that stays.
        """
        create_database(path, migrations)
        db = connect(path)
        try:
            migrate_database(db, migrations)
            return cls(path, db, _inode(path), has_log=True)
        except BaseException:
            db.close()
            raise

    @classmethod
    def reading(cls, path: Path, migrations: Path) -> Handle:
        """Connect for reading. The inode is read first: if another file replaces it meanwhile, the next use opens that
        one.
        """
        inode = _inode(path)
        db, lasting = connect_reading(path, migrations)
        return cls(path, db, inode if lasting else -1, has_log=lasting and inode is not None)

    def fresh(self) -> bool:
        """Return True if it is still this process's view of the present file. Raises as `check_log` does."""
        if self._pid != os.getpid():
            return False  # a forked child must neither use nor close its parent's connection
        if self._inode != _inode(self._path):
            self.close()
            return False
        self.check_log()
        return True

    def check_log(self) -> None:
        """Raise `StoreError` if SQLite uses a log that other processes no longer see.

        Nothing may be acknowledged then. Nor may the connection be closed, which would copy stale pages into the
        database and delete the others' log; nor can another be opened in its place: SQLite has one view of a log per
        process. Only a new process can use this file again.
        """
        if all(before in (None, now) for before, now in zip(self._log, _Log.of(self._path), strict=True)):
            return
        self._abandon()
        raise _unusable(self._path)

    def _abandon(self) -> None:
        """Make sure that the connection is never closed, not even when the process ends."""
        if self.close.detach() is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.db))
            _abandoned.add(self._inode)

    def _leave_to_parent(self) -> None:
        """Abandon the connection in a forked child: closing it here could delete the parent's log."""
        self._abandon()

    @property
    def place(self) -> int:
        """A number for the file that is open."""
        return self._inode or 0

    @property
    def busy(self) -> bool:
        """True if a transaction of this process is open."""
        return self._pid == os.getpid() and self.db.in_transaction


def _unusable(path: Path) -> StoreError:
    return StoreError(
        f"the log of {path} was removed or replaced while this process had it open, or the process was forked in the"
        " middle of a write, so it can no longer use the memory; restart it"
    )


def _close_own(db: sqlite3.Connection, pid: int) -> None:
    if pid == os.getpid():
        with suppress(sqlite3.Error):
            db.close()


def _inode(path: Path | str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def create_database(path: Path, migrations: Path) -> None:
    """Make a database with the newest schema, unless there is one. Hold the lock of the file.

    It is made aside and appears in its place complete, synced and ready to be read: a process killed in here leaves
    either no database or a whole one. A reader can open neither a half-made one nor one with a rollback journal,
    because that would require writing.
    """
    aside = path.with_name(f".{path.name}.new")
    if path.exists():
        aside.unlink(missing_ok=True)  # its creator may have been killed before; it is the same file under another name
        return
    for part in _database_files(aside):  # left by a killed process
        part.unlink(missing_ok=True)
    try:
        # opened and closed only here, where it has no connection yet; private whatever the umask
        opened = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        with os.fdopen(opened, "wb") as file:
            file.write(_empty_database(migrations))
            file.flush()
            os.fsync(opened)
        try:
            os.link(aside, path)  # never replaces anything
        except FileExistsError:
            return
        except OSError:  # not every file system has links
            os.rename(aside, path)
        sync_folder(path.parent)
    finally:
        for part in _database_files(aside):
            with suppress(OSError):
                part.unlink(missing_ok=True)


@lru_cache(maxsize=8)
def _empty_database(migrations: Path) -> bytes:
    """Return the content of a database with the newest schema and nothing in it. Every user's begins with it, so it is
    made once: executing the schema takes longer than everything else in a user's first write.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_database(db, migrations)
        content = bytearray(db.serialize())
    content[_WAL_MARKS] = b"\x02\x02"  # as PRAGMA journal_mode = WAL writes them
    return bytes(content)


def _database_files(path: Path) -> list[Path]:
    return [path.with_name(path.name + ending) for ending in ("", "-journal", "-wal", "-shm")]


def sync_folder(folder: Path) -> None:
    """Make a file's creation or removal durable against power loss."""
    if os.name == "nt":  # pragma: no cover  (a folder cannot be opened there)
        return
    _sync(folder, os.O_RDONLY)


def _sync(path: Path, mode: int) -> None:
    opened = os.open(path, mode | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def connect(path: Path, *, reading: bool = False) -> sqlite3.Connection:
    """Connect to a database that exists."""
    if _abandoned and _inode(path) in _abandoned:
        raise _unusable(path)
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={'ro' if reading else 'rw'}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        if not reading:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        db.close()
        raise
    return db


def connect_reading(path: Path, migrations: Path) -> tuple[sqlite3.Connection, bool]:
    """Return a connection that cannot write, and whether it may be kept for the next use.

    A user never written to reads as an empty database in memory.
    """
    if not path.exists():
        return _empty(migrations), True
    lasting = True
    try:
        db = _connect_after_crash(path)
    except sqlite3.OperationalError:
        log = path.with_name(path.name + "-wal")
        if os.access(path.parent, os.W_OK) or (log.exists() and log.stat().st_size):
            raise
        # a read-only folder: SQLite cannot make its shared memory file, and with no log it needs none; but a process
        # that may write there can begin one at any time
        lasting = False
        db = sqlite3.connect(
            f"{path.absolute().as_uri()}?immutable=1", uri=True, isolation_level=None, check_same_thread=False
        )
    if _check_version(db, len(load_migrations(migrations))) == 0:
        db.close()  # its creator is not done yet, or died before
        return _empty(migrations), False
    return db, lasting


def _connect_after_crash(path: Path) -> sqlite3.Connection:
    """Connect for reading, even after a killed process: SQLite needs a writer to roll back its half-made change."""
    try:
        return connect(path, reading=True)
    except sqlite3.OperationalError as error:
        if not str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_READONLY") or not _may_write(path):
            raise
    connect(path).close()
    return connect(path, reading=True)


def _may_write(path: Path) -> bool:
    return os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)


def _empty(migrations: Path) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate_database(db, migrations)
    return db


def is_empty(path: Path) -> bool:
    """Return True if there is no database, or only an empty file."""
    log = path.with_name(path.name + "-wal")
    return not any(part.exists() and part.stat().st_size for part in (path, log))


def migrate_database(db: sqlite3.Connection, folder: Path) -> None:
    """Migrate the schema, one numbered file after another, each all or nothing."""
    migrations = load_migrations(folder)
    version = _check_version(db, len(migrations))
    if version == len(migrations):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        version = _check_version(db, len(migrations))  # another process may have been first
        for number, script in enumerate(migrations[version:], version + 1):
            for statement in script.split(";\n"):
                if statement.strip():
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {number}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk ends it by itself
            db.execute("ROLLBACK")
        raise


def _check_version(db: sqlite3.Connection, known: int) -> int:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > known:
        raise StoreError(
            f"this memory was written by a newer Recollect (schema {version}, this one knows {known}); upgrade"
        )
    return version


@contextmanager
def mapped_errors(folder: Path, path: Path | None = None) -> Iterator[None]:
    """Map SQLite's and the system's errors to ours."""
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        raise_mapped(error, folder, path)


def raise_mapped(error: BaseException, folder: Path, path: Path | None = None) -> NoReturn:
    """Raise an error of SQLite's or the system's as ours, any other as it is."""
    if isinstance(error, sqlite3.DatabaseError):
        raise _map_database_error(error, folder, path) from error
    if isinstance(error, OSError):
        raise storage_error(error, folder) from error
    raise error


def _map_database_error(error: sqlite3.DatabaseError, folder: Path, path: Path | None) -> StoreError:
    name = getattr(error, "sqlite_errorname", None) or ""
    where = path or folder
    # with our schema, a missing table, a number used twice or undecodable text cannot come from a statement
    misread = name == "SQLITE_ERROR" and str(error).startswith("no such ")
    undecodable = not name and "decode to UTF-8" in str(error)
    if misread or undecodable or name in _DAMAGED or name.startswith("SQLITE_CORRUPT"):
        return StoreCorruptError(
            f"{where} is damaged ({error}); run `recollect rebuild` to restore everything readable"
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreBusyError()
    if name == "SQLITE_FULL" or (name.startswith("SQLITE_IOERR") and _no_space(folder)):
        return StoreFullError()
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        if not os.access(folder, os.W_OK):
            return StoreReadOnlyError(f"cannot write to {folder}: it is read-only")
        if _no_space(folder):
            return StoreFullError()
    return StoreError(f"{where}: {error}")


def _no_space(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < 64 * 1024
    except OSError:
        return False
