"""Request buffers: folders for uploads and downloads, removed when done, or, after a kill, by the next server process.

Whoever uses a folder holds a lock in it, which ends with the process. Knows nothing about memories.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

from recollect.errors import StoreBusyError
from recollect.store.locks import FileLock

_PREFIX = "recollect-spool-"
_SECONDS = 10.0


class BufferFolder:
    """A folder that nobody else can look into."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = FileLock(self.folder / ".lock", _SECONDS)
        self._lock.acquire()

    def close(self) -> None:
        """Remove it; whoever still reads a file in it can go on."""
        self._lock.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def sweep() -> None:
    """Remove what processes that were killed have left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        lock = FileLock(folder / ".lock", 0)
        try:
            if _is_ours(folder):
                lock.acquire()
                shutil.rmtree(folder, ignore_errors=True)
        except (StoreBusyError, OSError):
            continue  # it is in use, or was removed a moment ago
        finally:
            lock.close()


def _is_ours(folder: Path) -> bool:
    """Whether we made it: anybody can put something into the folder for temporary files."""
    about = folder.lstat()
    return stat.S_ISDIR(about.st_mode) and (os.name != "posix" or about.st_uid == os.getuid())
