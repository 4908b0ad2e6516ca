"""The concurrency limiter. Threads that compute at the same time compete for the interpreter, which costs more than the
work itself. So a request starts when the one before is done, or has turned out to be slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_LONG = 0.02


class ConcurrencyLimiter:
    """Lets one request compute at a time. Slow requests do not block others."""

    def __init__(self, seconds: float = _LONG) -> None:
        self._free = asyncio.Semaphore(1)
        self._seconds = seconds

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for the slot. Release it at the end, or once it was held for long."""
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
