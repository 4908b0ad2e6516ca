"""Tables beside the memories on one machine: a file in their folder, such as ``identities.db`` or ``keys.db``.

A file of its own, like the queue's: it is read for every message or request that comes in, and a damaged one costs no
memory.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect.errors import StoreCorruptError
from recollect.store.beside import Tables, checked
from recollect.store.forks import close_before_forks
from recollect.store.locks import FileLock
from recollect.store.sqlite_connections import BUSY_SECONDS, Handle, empty_log, mapped_errors, migrate


class SqliteView:
    """The tables over an open connection."""

    def __init__(self, db: sqlite3.Connection, queries: Mapping[str, str]) -> None:
        self._db = db
        self._queries = queries

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(self._queries[query], checked(values)).fetchall()

    def run(self, query: str, **values: Any) -> int:
        return self._db.execute(self._queries[query], checked(values)).rowcount


class SqliteBeside:
    """Tables in a folder. The file is made by the first write."""

    def __init__(self, root: Path, tables: Tables) -> None:
        self.path = root / f"{tables.name}.db"
        self._tables = tables
        self._migrations = tables.migrations("sqlite")
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
                self._reader = Handle.reading(self.path, self._migrations)
            yield SqliteView(self._reader.db, self._tables.queries)

    @contextmanager
    def write(self) -> Iterator[SqliteView]:
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteView(db, self._tables.queries)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk ends it by itself
                    db.execute("ROLLBACK")
                raise

    def scrub(self) -> None:
        with self._open() as db:
            empty_log(db)

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
                f" then {self._tables.if_lost}"
            ) from None

    def _connect(self) -> Handle:
        # one at a time: SQLite does not wait for its turn when it turns a new file into one with a log
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path.with_suffix(".lock"), BUSY_SECONDS)
        lock.acquire()
        try:
            handle = Handle.writing(self.path)
            try:
                migrate(handle.db, self._migrations)
            except BaseException:
                handle.close()
                raise
            return handle
        finally:
            lock.release()
            lock.close()
