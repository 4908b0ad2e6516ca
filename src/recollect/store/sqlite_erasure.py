"""Removal of erased text from the write-ahead log.

Emptying the log needs a moment in which nobody reads from it. While a reader elsewhere continues, erased text stays
there: the receipt says so, and a note beside the database makes every later writer try again until it is done.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from recollect.errors import StoreError
from recollect.store.forks import renew_after_forks
from recollect.store.sqlite_connections import BUSY_SECONDS, sync_folder

PATIENCE = 2.0
"""The seconds that an erasure waits for readers elsewhere. Writers wait as long, so it is short."""


_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0


class Erasure:
    """The log of one database.

    The order is: `note`, commit, `finish`, all under the lock of the file, which a process that finishes another's
    erasure also holds. If noted after the commit, a kill in between would leave erased text that nobody looks for;
    without the lock, one process could remove the note of an erasure that another has just committed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._note = path.with_name(f".{path.name}.erasing")

    @property
    def pending(self) -> bool:
        """True if the log may hold what was erased."""
        return os.path.exists(self._note)

    def note(self) -> None:
        """Record that something is being erased."""
        if not self.pending:
            os.close(os.open(self._note, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            sync_folder(self._note.parent)

    def finish(self, db: sqlite3.Connection, patience: float = 0.0) -> bool:
        """Empty the log; return True if that was possible. No transaction of this connection may be open."""
        db.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
        try:
            busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.OperationalError:  # a full disk, for example: the commit holds, and this can be retried
            busy = 1
        finally:
            db.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
        if not busy:
            with suppress(FileNotFoundError):
                os.unlink(self._note)
        return not busy


class Unfinished(Protocol):
    """An object that erased text and may have to wait before it can empty its log."""

    def finish_erasing(self) -> bool:
        """Empty the log if it may hold what was erased; return False if this must be retried later."""
        ...


class Finisher:
    """Finishes erasures that readers elsewhere delayed, in a thread that lives only while there are any."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._closing = threading.Event()
        self._waiting: set[Unfinished] = set()
        self._thread: threading.Thread | None = None
        renew_after_forks(self, Finisher._renew)

    def add(self, one: Unfinished) -> None:
        """Keep trying until it is done or cannot be done here."""
        with self._guard:
            self._waiting.add(one)
            if self._thread is None:
                self._closing.clear()
                self._thread = threading.Thread(target=self._run, name="recollect-erasing", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Try one last time. The rest is noted, and the next process to write continues."""
        with self._guard:
            waiting, self._waiting = self._waiting, set()
        self._closing.set()
        for one in waiting:
            self._is_done(one)

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            self._closing.wait(pause)
            with self._guard:
                waiting = list(self._waiting)
                if not waiting:
                    self._thread = None
                    return
            done = {one for one in waiting if self._is_done(one)}
            with self._guard:
                self._waiting -= done
            pause = min(pause * 2, _LONGEST_PAUSE)

    @staticmethod
    def _is_done(one: Unfinished) -> bool:
        try:
            return one.finish_erasing()
        except StoreError:
            return True  # a read-only folder, or a damaged file: nothing that this thread could wait for

    def _renew(self) -> None:
        self._guard, self._closing = threading.Lock(), threading.Event()
        self._waiting, self._thread = set(), None
