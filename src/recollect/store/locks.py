"""A lock between processes: a file that one of them holds at a time. The system releases it when the process dies."""

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
"""The offset of the note in the file, and its maximum length."""


class FileLock:
    """A lock held from `acquire` to `release`. Not thread-safe: guard it with a thread lock."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self._timeout = timeout
        self._fd = -1
        self._pid = 0
        self._depth = 0

    @property
    def held(self) -> bool:
        """True if this process is between `acquire` and `release`."""
        return self._depth > 0 and self._pid == os.getpid()

    def acquire(self, timeout: float | None = None) -> None:
        """Wait for the lock, at most until the timeout. It is reentrant."""
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
        self._depth -= 1
        if not self._depth:
            _unlock(self._fd)

    def note(self, text: str) -> None:
        """Replace the line stored in the file for the next holder. Call it while holding the lock."""
        self._at(_NOTE, lambda: os.write(self._fd, text.encode("ascii").ljust(_NOTE_SIZE)[:_NOTE_SIZE]))

    def noted(self) -> str:
        """Return the line stored last; empty if none was. Call it while holding the lock."""
        return _decode_note(self._at(_NOTE, lambda: os.read(self._fd, _NOTE_SIZE)))

    def noted_by_others(self) -> str:
        """Return the line without holding the lock; empty if it cannot be read."""
        try:
            with open(self.path, "rb") as file:
                file.seek(_NOTE)
                return _decode_note(file.read(_NOTE_SIZE))
        except OSError:
            return ""

    def _at(self, place: int, act: Callable[[], _T]) -> _T:
        """Act at an offset and return to the start, because Windows locks a byte at the current position."""
        os.lseek(self._fd, place, os.SEEK_SET)
        try:
            return act()
        finally:
            os.lseek(self._fd, 0, os.SEEK_SET)

    def close(self) -> None:
        """Close the file; the next `acquire` opens it again."""
        if self._fd >= 0 and self._pid == os.getpid():
            os.close(self._fd)
        self._fd, self._depth = -1, 0

    def _open(self) -> None:
        if self._fd >= 0 and self._pid == os.getpid():
            return
        # a forked child opens its own: a lock is shared with every process that inherited the open file
        self._pid = os.getpid()
        while True:
            try:
                self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                return
            except FileNotFoundError:
                # the folder is only for the user who runs this, not for others on the machine
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _is_at_path(self) -> bool:
        try:
            there, here = os.stat(self.path), os.fstat(self._fd)
        except FileNotFoundError:
            return False
        return (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev)


def _decode_note(note: bytes) -> str:
    return note.decode("ascii", errors="replace").strip()
