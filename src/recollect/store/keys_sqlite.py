"""Keys on one machine: ``keys.db`` in the folder of the memories, beside ``recollect.db``, for its owner's eyes only.

A file of its own, like the queue's: it is read for every request that comes in, and a damaged one costs no memory.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect.errors import StoreCorruptError
from recollect.store.forks import close_before_forks
from recollect.store.keys import QUERIES
from recollect.store.locks import FileLock
from recollect.store.sqlite_connections import BUSY_SECONDS, Handle, mapped_errors, migrate

_MIGRATIONS = Path(__file__).parent / "keys_sqlite_migrations"


class SqliteView:
    """The tables over an open connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(QUERIES[query], values).fetchall()

    def run(self, query: str, **values: Any) -> int:
        return self._db.execute(QUERIES[query], values).rowcount


class SqliteKeys:
    """Keys in a folder. The file is made by the first write."""

    def __init__(self, root: Path) -> None:
        self.path = root / "keys.db"
        self._handle: Handle | None = None
        self._reader: Handle | None = None
        self._guard = threading.RLock()
        close_before_forks(self)

    @contextmanager
    def read(self) -> Iterator[SqliteView | None]:
        if not self.path.exists():
            yield None
            return
        with self._mapped():
            if self._reader is None or not self._reader.fresh():
                self._reader = Handle.reading(self.path, _MIGRATIONS)
            yield SqliteView(self._reader.db)

    @contextmanager
    def write(self) -> Iterator[SqliteView]:
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteView(db)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk ends it by itself
                    db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._guard:
            for handle in (self._reader, self._handle):
                if handle is not None:
                    handle.close()
            self._reader = self._handle = None

    def hold(self, seconds: float) -> bool:
        """Keep all threads out until `let_go`; False if one of them does not end in time, or it is this one."""
        if self._guard.acquire(timeout=seconds):
            if self._handle is None or not self._handle.busy:
                return True
            self._guard.release()
        return False

    def let_go(self) -> None:
        """Let the threads in again."""
        self._guard.release()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._mapped():
            if self._handle is None or not self._handle.fresh():
                self._handle = self._connect()
            yield self._handle.db

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            with self._guard, mapped_errors(self.path.parent, self.path):
                yield
        except StoreCorruptError:
            raise StoreCorruptError(
                f"{self.path} is damaged; memories are not. Stop all processes and restore it, or move it away:"
                " then there are no keys any more"
            ) from None

    def _connect(self) -> Handle:
        # one at a time: SQLite does not wait for its turn when it turns a new file into one with a log
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path.with_name("keys.lock"), BUSY_SECONDS)
        lock.acquire()
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # it holds what tokens are signed with
            handle = Handle.writing(self.path)
            try:
                migrate(handle.db, _MIGRATIONS)
            except BaseException:
                handle.close()
                raise
            return handle
        finally:
            lock.release()
            lock.close()
