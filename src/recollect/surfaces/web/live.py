"""Tells open pages that their memory changed, whoever changed it: by the number of the last journal entry."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

from recollect.app import Recollect
from recollect.core.aio import in_thread
from recollect.errors import RecollectError

_SECONDS = 1.0
_BEAT = 15
"""After so many looks without a change something is sent anyway, to notice who has gone."""
_MOST_EACH = 12


class Live:
    """The open pages of all users of one process."""

    def __init__(self, app: Recollect, seconds: float = _SECONDS) -> None:
        self._app = app
        self._seconds = seconds
        self._open: Counter[str] = Counter()
        self._closed: set[asyncio.Event] = set()

    def has_room(self, user: str) -> bool:
        """Whether another page may be told."""
        return self._open[user] < _MOST_EACH

    async def stream(self, user: str, seen: int, is_welcome: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
        """Server-sent events for one page that showed everything up to ``seen``."""
        if not self.has_room(user):
            return  # many came at once
        ended = asyncio.Event()
        self._closed.add(ended)
        self._open[user] += 1
        looks = 0
        try:
            yield b"retry: 3000\n\n"
            while not ended.is_set():
                try:
                    seq, what = await in_thread(user, self._last, user)
                except RecollectError:
                    return  # the page asks again by itself
                if seq != seen:
                    seen, looks = seq, 0
                    yield f"id: {seq}\nevent: changed\ndata: {json.dumps({'seq': seq, 'what': what})}\n\n".encode()
                elif (looks := looks + 1) >= _BEAT:
                    looks = 0
                    if not await is_welcome():
                        return
                    yield b": still here\n\n"
                try:
                    await asyncio.wait_for(ended.wait(), self._seconds)
                except TimeoutError:
                    pass
        finally:
            self._closed.discard(ended)
            self._open[user] -= 1
            self._open += Counter()

    def close(self) -> None:
        """End all streams, so that a server can stop. Called in the event loop."""
        for ended in list(self._closed):
            ended.set()

    def _last(self, user: str) -> tuple[int, str]:
        last = self._app.user(user).history(limit=1)
        if not last:
            return 0, ""
        record = last[-1].after or last[-1].before
        return last[-1].seq, f"{last[-1].op} {record.kind if record else ''}".strip()
