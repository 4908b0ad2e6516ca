"""Connections to SQLite files: opening, migrating, recognising a file that was replaced, and SQLite's errors as ours.

Knows nothing about records.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn
from weakref import finalize

from recollect.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    storage_error,
)
from recollect.store.rows import load_migrations

BUSY_SECONDS = 30.0
_DAMAGED = frozenset({
    "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE",
})  # fmt: skip


class Handle:
    """An open connection, and which file and process it belongs to."""

    def __init__(self, path: Path, db: sqlite3.Connection, inode: int | None) -> None:
        self.db = db
        self._path = path
        self._pid = os.getpid()
        self._inode = inode
        self.close = finalize(self, _close, db, self._pid)
        """Closes the connection, at the latest when nobody holds the handle any more."""

    @classmethod
    def writing(cls, path: Path) -> Handle:
        """Under the user's lock, so that the file opened is the file that is there afterwards."""
        db = connect(path)
        return cls(path, db, _inode(path))

    @classmethod
    def reading(cls, path: Path, migrations: Path) -> Handle:
        """The file is looked at first: if another takes its place meanwhile, the next use opens that one."""
        inode = _inode(path)
        db, lasting = connect_reading(path, migrations)
        return cls(path, db, inode if lasting else -1)

    def fresh(self) -> bool:
        """Whether it still is this process's view of the file that is there now."""
        if self._pid != os.getpid():
            return False  # a forked child must not use, nor close, its parent's connection
        if self._inode != _inode(self._path):
            self.close()
            return False
        return True

    @property
    def place(self) -> int:
        """A number for the file that is open."""
        return self._inode or 0

    @property
    def busy(self) -> bool:
        """Whether a transaction of this process is open."""
        return self._pid == os.getpid() and self.db.in_transaction


def _close(db: sqlite3.Connection, pid: int) -> None:
    if pid == os.getpid():
        with suppress(sqlite3.Error):
            db.close()


def _inode(path: Path) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def connect(path: Path, *, reading: bool = False) -> sqlite3.Connection:
    if not reading:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))  # nobody else's, whatever the umask says
    address = f"{path.absolute().as_uri()}?mode={'ro' if reading else 'rwc'}"
    db = sqlite3.connect(
        address,
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
    """A connection that cannot write, and whether it may be kept for the next use.

    A user never written to reads as an empty database in memory.
    """
    if not path.exists():
        return _empty(migrations), True
    lasting = True
    try:
        db = connect(path, reading=True)
    except sqlite3.OperationalError:
        log = path.with_name(path.name + "-wal")
        if os.access(path.parent, os.W_OK) or (log.exists() and log.stat().st_size):
            raise
        # a read-only folder: SQLite cannot make its shared memory file, and with no log it needs none; but
        # who may write there can begin one at any time
        lasting = False
        db = sqlite3.connect(
            f"{path.absolute().as_uri()}?immutable=1", uri=True, isolation_level=None, check_same_thread=False
        )
    if _check_version(db, len(load_migrations(migrations))) == 0:
        db.close()  # whoever creates it is not done yet, or died before
        return _empty(migrations), False
    return db, lasting


def _empty(migrations: Path) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate(db, migrations)
    return db


def empty_log(db: sqlite3.Connection, patience: float = BUSY_SECONDS) -> None:
    """What was erased must not survive in the write-ahead log. Readers elsewhere can prevent it, for a while."""
    db.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")


def is_empty(path: Path) -> bool:
    """Whether there is no database, or one without a single byte."""
    log = path.with_name(path.name + "-wal")
    return not any(part.exists() and part.stat().st_size for part in (path, log))


def migrate(db: sqlite3.Connection, folder: Path) -> None:
    """Bring the schema forward, one numbered file after another, each all or nothing."""
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
    """SQLite's and the system's errors as ours."""
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        raise_mapped(error, folder, path)


def raise_mapped(error: BaseException, folder: Path, path: Path | None = None) -> NoReturn:
    """Raise an error of SQLite's or the system's as ours, any other as it is."""
    if isinstance(error, sqlite3.DatabaseError):
        raise _mapped(error, folder, path) from error
    if isinstance(error, OSError):
        raise storage_error(error, folder) from error
    raise error


def _mapped(error: sqlite3.DatabaseError, folder: Path, path: Path | None) -> StoreError:
    name = getattr(error, "sqlite_errorname", None) or ""
    where = path or folder
    # with a schema of ours, a missing table, a number used twice or text that is none cannot come from a statement
    misread = name == "SQLITE_ERROR" and str(error).startswith("no such ")
    undecodable = not name and "decode to UTF-8" in str(error)
    if misread or undecodable or name in _DAMAGED or name.startswith("SQLITE_CORRUPT"):
        return StoreCorruptError(
            f"{where} is damaged ({error}); run `recollect rebuild` to restore all that can be read"
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
