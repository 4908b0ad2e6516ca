"""The concurrency limiter: threads that compute at the same time keep taking the interpreter from each other, which
costs more than what they compute. So one begins when another is done, or has shown that it takes long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_LONG = 0.02


class ConcurrencyLimiter:
    """Lets one request compute at a time; nobody waits for a long one."""

    def __init__(self, seconds: float = _LONG) -> None:
        self._free = asyncio.Semaphore(1)
        self._seconds = seconds

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for the slot, and give it back at the end, or as soon as it was held for long."""
        await self._free.acquire()
        is_over = False

        def over() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self._free.release()

        takes_long = asyncio.get_running_loop().call_later(self._seconds, over)
        try:
            yield
        finally:
            takes_long.cancel()
            over()
