"""Notifies open pages of changes to their memory, from any source. A change is a new journal entry, or another text of
MEMORY.md, because not everything written there becomes a record.

Each memory is polled once for all pages that show it, and less often the longer nothing happens.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from recollect.app import Recollect
from recollect.errors import RecollectError
from recollect.memory.async_memory import in_thread

LOGGER = logging.getLogger("recollect.web")

_SECONDS = 1.0
_QUIET = 60
"""After this many polls without a change, a memory is polled three times less often."""
_BEAT = 15.0
"""The interval of heartbeats in seconds, which keep proxies from closing the connection."""
_MOST_EACH = 12
_HELLO = b"retry: 3000\n\n:" + b" " * 2048 + b"\n\n"
"""The retry interval for browsers, and padding to fill the buffers of proxies."""


class Live:
    """The open pages of all users of one process."""

    def __init__(self, app: Recollect, seconds: float = _SECONDS, beat: float = _BEAT) -> None:
        self._app = app
        self._seconds = seconds
        self._beat = beat
        self._watched: dict[str, _MemoryWatch] = {}

    def has_room(self, user: str) -> bool:
        """Return True if another page may subscribe."""
        return user not in self._watched or len(self._watched[user].pages) < _MOST_EACH

    async def stream(self, user: str, seen: int, is_welcome: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
        """Yield server-sent events for a page that shows everything up to ``seen``."""
        if not self.has_room(user):
            return  # many connected at once
        watch = self._watched.get(user)
        if watch is None:
            watch = self._watched[user] = _MemoryWatch(user, self)
        news = watch.join()
        now = asyncio.get_running_loop().time
        due = now() + self._beat
        text: bytes | None = None
        try:
            yield _HELLO
            while not watch.ended:
                await news.wait()
                news.clear()
                if (is_due := now() >= due) and not await is_welcome():
                    return
                if is_due:
                    due = now() + self._beat
                if (last := watch.last) is not None and (last.seq != seen or text not in (None, last.text)):
                    seen = last.seq
                    data = json.dumps({"seq": seen, "what": last.what})
                    yield f"id: {seen}\nevent: changed\ndata: {data}\n\n".encode()
                elif is_due:
                    yield b": still here\n\n"
                text = text if last is None else last.text
        finally:
            watch.leave(news)

    def close(self) -> None:
        """End all streams, so that the server can stop. Call it in the event loop."""
        for watch in list(self._watched.values()):
            watch.end()

    async def look(self, user: str) -> _MemorySnapshot:
        """Return the current state of a memory."""
        return await in_thread(user, self._last, user)

    def pause(self, quiet: int) -> float:
        """Return how long to wait after ``quiet`` polls without a change."""
        return self._seconds * (3 if quiet >= _QUIET else 1)

    def forget(self, watch: _MemoryWatch) -> None:
        """Remove a watch without pages."""
        if self._watched.get(watch.user) is watch:
            del self._watched[watch.user]

    def _last(self, user: str) -> _MemorySnapshot:
        memory = self._app.user(user)
        last = memory.history(limit=1)
        text = hashlib.blake2b(memory.show().encode("utf-8", "replace"), digest_size=16).digest()
        if not last:
            return _MemorySnapshot(0, "", text)
        record = last[-1].after or last[-1].before
        return _MemorySnapshot(last[-1].seq, f"{last[-1].op} {record.kind if record else ''}".strip(), text)


class _MemorySnapshot(NamedTuple):
    """The state of a memory: the number and kind of its last change, and a hash of its MEMORY.md."""

    seq: int
    what: str
    text: bytes


class _MemoryWatch:
    """Polls one memory for all of its open pages."""

    def __init__(self, user: str, live: Live) -> None:
        self.user = user
        self.pages: set[asyncio.Event] = set()
        self.last: _MemorySnapshot | None = None
        self.ended = False
        self._live = live
        self._hurry = asyncio.Event()
        self._looking = asyncio.create_task(self._look())

    def join(self) -> asyncio.Event:
        """Add a page and return the event that is set after each poll. The next poll happens at once."""
        news = asyncio.Event()
        self.pages.add(news)
        self._hurry.set()
        return news

    def leave(self, news: asyncio.Event) -> None:
        """Remove a page."""
        self.pages.discard(news)
        if not self.pages:
            self.end()

    def end(self) -> None:
        """Disconnect all pages; open ones reconnect by themselves."""
        self.ended = True
        self._live.forget(self)
        self._looking.cancel()
        self._tell()

    async def _look(self) -> None:
        quiet = 0
        try:
            while True:
                self._hurry.clear()
                now = await self._live.look(self.user)
                quiet = quiet + 1 if now == self.last else 0
                self.last = now
                self._tell()
                try:
                    await asyncio.wait_for(self._hurry.wait(), self._live.pause(quiet))
                except TimeoutError:
                    pass
        except RecollectError:
            self.end()
        except Exception as error:  # the outermost handler of this task: its message may quote a memory
            LOGGER.error("cannot watch a memory: %s", type(error).__name__)
            self.end()

    def _tell(self) -> None:
        for news in self.pages:
            news.set()
