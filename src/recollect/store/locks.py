"""A lock between processes: a file that one of them holds at a time. The system releases it on death."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from recollect.errors import StoreBusyError

if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    def _try_lock(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            return True
        except OSError:
            return False

    def _unlock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


_T = TypeVar("_T")
_NOTE, _NOTE_SIZE = 64, 64
"""Where the note is in the file, and how long it can be."""


class FileLock:
    """Held from `acquire` to `release`. Not for several threads at once: guard it with a lock of theirs."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self._timeout = timeout
        self._fd = -1
        self._pid = 0
        self._depth = 0

    @property
    def held(self) -> bool:
        """Whether this process is between `acquire` and `release`."""
        return self._depth > 0 and self._pid == os.getpid()

    def acquire(self, timeout: float | None = None) -> None:
        """Wait for the lock, at most for the time-out. Entering again while holding it is fine."""
        if self.held:
            self._depth += 1
            return
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        pause = 0.0002
        while True:
            self._open()
            while not _try_lock(self._fd):
                if time.monotonic() > deadline:
                    raise StoreBusyError()
                time.sleep(pause)
                pause = min(pause * 1.5, 0.01)
            if self._is_at_path():
                self._depth = 1
                return
            self.close()  # the folder was erased while we waited: lock the new one

    def release(self) -> None:
        """Let the next one in."""
        self._depth -= 1
        if not self._depth:
            _unlock(self._fd)

    def note(self, text: str) -> None:
        """Write a line into the file, in place of the last one, for whoever holds the lock next. Hold the lock."""
        self._at(_NOTE, lambda: os.write(self._fd, text.encode("ascii").ljust(_NOTE_SIZE)[:_NOTE_SIZE]))

    def noted(self) -> str:
        """The line that was noted last; empty if none was. Hold the lock."""
        return _decode_note(self._at(_NOTE, lambda: os.read(self._fd, _NOTE_SIZE)))

    def noted_by_others(self) -> str:
        """`noted`, for who does not hold the lock; empty if it cannot be read."""
        try:
            with open(self.path, "rb") as file:
                file.seek(_NOTE)
                return _decode_note(file.read(_NOTE_SIZE))
        except OSError:
            return ""

    def _at(self, place: int, act: Callable[[], _T]) -> _T:
        """Windows locks a byte where the file stands, so it goes back to where it stood."""
        os.lseek(self._fd, place, os.SEEK_SET)
        try:
            return act()
        finally:
            os.lseek(self._fd, 0, os.SEEK_SET)

    def close(self) -> None:
        """Let go of the file; the next `acquire` opens it again."""
        if self._fd >= 0 and self._pid == os.getpid():
            os.close(self._fd)
        self._fd, self._depth = -1, 0

    def _open(self) -> None:
        if self._fd >= 0 and self._pid == os.getpid():
            return
        # a forked child opens its own: a lock is shared with whoever inherited the open file
        self._pid = os.getpid()
        while True:
            try:
                self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                return
            except FileNotFoundError:
                # a person's folder is for whoever runs this, and nobody else on the machine
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _is_at_path(self) -> bool:
        try:
            there, here = os.stat(self.path), os.fstat(self._fd)
        except FileNotFoundError:
            return False
        return (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev)


def _decode_note(note: bytes) -> str:
    return note.decode("ascii", errors="replace").strip()
