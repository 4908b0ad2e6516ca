"""A lock between processes: a file that one of them holds at a time. The system releases it on death."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from recollect.errors import StoreBusyError

if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    def _try_lock(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            return True
        except OSError:
            return False

else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False


class FileLock:
    """Held from `acquire` to `release`. Not for several threads at once: guard it with a lock of theirs."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self._timeout = timeout
        self._fd: int | None = None
        self._depth = 0

    def acquire(self) -> None:
        """Wait for the lock, at most for the time-out. Entering again while holding it is fine."""
        if self._depth:
            self._depth += 1
            return
        deadline = time.monotonic() + self._timeout
        pause = 0.0002
        while True:
            try:
                fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                continue
            try:
                while not _try_lock(fd):
                    if time.monotonic() > deadline:
                        raise StoreBusyError()
                    time.sleep(pause)
                    pause = min(pause * 1.5, 0.01)
                if self._is_at_path(fd):
                    self._fd, self._depth = fd, 1
                    return
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # the folder was erased while we waited: lock the new one

    def release(self) -> None:
        """Let the next one in."""
        self._depth -= 1
        if not self._depth and self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _is_at_path(self, fd: int) -> bool:
        try:
            there, here = os.stat(self.path), os.fstat(fd)
        except FileNotFoundError:
            return False
        return (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev)
