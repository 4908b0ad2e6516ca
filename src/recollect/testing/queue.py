"""A job queue for tests: that of one machine, in a folder of its own which goes when the queue is closed."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

from recollect.times import Clock
from recollect.work.contract import QUEUE_SIZE, Retention
from recollect.work.embedded import EmbeddedQueue


class TemporaryQueue(EmbeddedQueue):
    """A queue in a temporary folder."""

    def __init__(
        self, *, size: int = QUEUE_SIZE, clock: Clock | None = None, retention: Retention | None = None
    ) -> None:
        folder = Path(tempfile.mkdtemp(prefix="recollect-queue-"))
        super().__init__(folder, size=size, clock=clock, retention=retention)
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def close(self) -> None:
        super().close()
        self._remove()
