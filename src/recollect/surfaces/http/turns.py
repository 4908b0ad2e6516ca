"""Takes turns: threads that compute at once take the interpreter from each other all the time, which costs more than
what they compute. So one begins when another is done, or has shown that it takes long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_LONG = 0.02


class Turns:
    """One at a time, and nobody waits for a long one."""

    def __init__(self, seconds: float = _LONG) -> None:
        self._free = asyncio.Semaphore(1)
        self._seconds = seconds

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Begins when it is one's turn; who takes long has had theirs."""
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
