"""Fakes that keep the same contracts as the real parts, for your tests as well as ours.

`MemoryStore` is a store in memory, `FrozenClock` a clock that moves only when told. `recollect.testing.embedding` has
an embedder that needs no model, and a server that speaks the protocol of embedding services.
"""

from recollect.testing.clock import FrozenClock
from recollect.testing.memory_store import MemoryStore

__all__ = ["FrozenClock", "MemoryStore"]
