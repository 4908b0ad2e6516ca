"""Fakes for your tests: they keep the same contracts as the real parts. See docs/testing.md.

`MemoryStore` is a store in memory, `FrozenClock` a clock that moves only when told. The submodules have an embedder
that needs no model, a job queue, a PostgreSQL, a scripted model server and a Telegram.
"""

from recollect.testing.clock import FrozenClock
from recollect.testing.memory_store import MemoryStore

__all__ = ["FrozenClock", "MemoryStore"]
