"""Request buffers: temporary folders for uploads and downloads. After a kill, the next server process removes them.

The process that uses a folder holds a lock in it, which ends with the process.
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
    """A temporary folder that only this user can read."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = FileLock(self.folder / ".lock", _SECONDS)
        self._lock.acquire()

    def close(self) -> None:
        """Remove the folder. Open files in it can still be read."""
        self._lock.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def sweep() -> None:
    """Remove the folders of killed processes."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        lock = FileLock(folder / ".lock", 0)
        try:
            if _is_ours(folder):
                lock.acquire()
                shutil.rmtree(folder, ignore_errors=True)
        except (StoreBusyError, OSError):
            continue  # in use, or just removed
        finally:
            lock.close()


def _is_ours(folder: Path) -> bool:
    """Return True if we created the folder: anyone can create files in the folder for temporary files."""
    about = folder.lstat()
    return stat.S_ISDIR(about.st_mode) and (os.name != "posix" or about.st_uid == os.getuid())
