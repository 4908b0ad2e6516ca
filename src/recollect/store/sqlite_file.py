"""One SQLite file shared by all users: the queue, the identities, the keys, the list of users.

Opened at the first use, with one connection per process.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from recollect.errors import StoreBusyError, StoreCorruptError, StoreError
from recollect.store.forks import close_before_forks
from recollect.store.locks import FileLock
from recollect.store.sqlite_connections import BUSY_SECONDS, Handle, mapped_errors
from recollect.store.sqlite_erasure import PATIENCE, Erasure, Finisher


class SqliteFile:
    """A file and its connections. Threads may use it one after another."""

    def __init__(self, path: Path, migrations: Path, *, if_damaged: str) -> None:
        self.path = path
        self._migrations = migrations
        self._if_damaged = if_damaged
        self._handle: Handle | None = None
        self._reader: Handle | None = None
        self._guard = threading.RLock()
        self._erasure = Erasure(path)
        self._finisher = Finisher()
        close_before_forks(self)

    @property
    def pending(self) -> bool:
        """True if the log may hold what was erased."""
        return self._erasure.pending

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        """Lend the writing connection, without a transaction."""
        with self._mapped():
            if self._handle is None or not self._handle.fresh():
                with self._locked():
                    self._handle = Handle.writing(self.path, self._migrations)
            yield self._handle.db

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that cannot write and creates nothing."""
        with self._mapped():
            if self._reader is None or not self._reader.fresh():
                self._reader = Handle.reading(self.path, self._migrations)
            yield self._reader.db

    @contextmanager
    def write(self, *, erases: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a transaction. What it ``erases`` does not stay in the log, or `pending` says that it does."""
        # first the threads, then the processes: the same order everywhere
        with self.open() as db, self._locked() if erases else nullcontext():
            handle = self._handle
            assert handle is not None
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                handle.check_log()
                if erases:
                    self._erasure.note()
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk ends it by itself
                    db.execute("ROLLBACK")
                raise
            if not handle.fresh():
                self._handle = None
                raise StoreError(f"{self.path} was removed or replaced during a write, which may be lost; repeat it")
            if erases:
                self._erasure.finish(db, PATIENCE)
            if self._erasure.pending and not self.finish_erasing():
                self._finisher.add(self)

    def finish_erasing(self) -> bool:
        """Empty the log if it may hold what was erased; return False if this must be retried later."""
        if not self._erasure.pending or not self.path.exists():
            return True
        try:
            with self.open() as db, self._locked(timeout=0):
                return self._erasure.finish(db)
        except StoreBusyError:
            return False

    def finish_and_close(self) -> None:
        """Close after a last attempt at what is pending; the rest is noted for the next process."""
        self._finisher.close()
        self.close()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._guard:
            for handle in (self._reader, self._handle):
                if handle is not None:
                    handle.close()
            self._reader = self._handle = None

    def hold(self, seconds: float) -> bool:
        """Keep all threads out until `let_go`; False if one does not finish in time, or it is this one."""
        if self._guard.acquire(timeout=seconds):
            if not any(handle and handle.busy for handle in (self._handle, self._reader)):
                return True
            self._guard.release()
        return False

    def let_go(self) -> None:
        """Let threads in again."""
        self._guard.release()

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            with self._guard, mapped_errors(self.path.parent, self.path):
                yield
        except StoreCorruptError:
            raise StoreCorruptError(f"{self.path} is damaged; memories are not affected. {self._if_damaged}") from None

    @contextmanager
    def _locked(self, timeout: float = BUSY_SECONDS) -> Iterator[None]:
        """Exclude all other processes: to create the file, and for what must not be in its log."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path.with_suffix(".lock"), timeout)
        try:
            lock.acquire()
            try:
                yield
            finally:
                lock.release()
        finally:
            lock.close()
