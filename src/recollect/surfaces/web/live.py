"""Tells open pages that their memory changed, whoever changed it: by the number of the last journal entry, and by what
MEMORY.md says, since a person may write there what becomes no record.

A memory is looked at once for all pages that show it, and less often the longer nothing happens to it.
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
"""After so many looks without a change, a memory is looked at three times less often."""
_BEAT = 15.0
"""After so many seconds without a change something is sent anyway: it keeps proxies from hanging up."""
_MOST_EACH = 12
_HELLO = b"retry: 3000\n\n:" + b" " * 2048 + b"\n\n"
"""How soon to come back, and enough to fill what a proxy may hold back at first."""


class Live:
    """The open pages of all users of one process."""

    def __init__(self, app: Recollect, seconds: float = _SECONDS, beat: float = _BEAT) -> None:
        self._app = app
        self._seconds = seconds
        self._beat = beat
        self._watched: dict[str, _MemoryWatch] = {}

    def has_room(self, user: str) -> bool:
        """Whether another page may be told."""
        return user not in self._watched or len(self._watched[user].pages) < _MOST_EACH

    async def stream(self, user: str, seen: int, is_welcome: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
        """Server-sent events for one page that showed everything up to ``seen``."""
        if not self.has_room(user):
            return  # many came at once
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
        """End all streams, so that a server can stop. Called in the event loop."""
        for watch in list(self._watched.values()):
            watch.end()

    async def look(self, user: str) -> _MemorySnapshot:
        """The last change of a memory."""
        return await in_thread(user, self._last, user)

    def pause(self, quiet: int) -> float:
        """How long to wait before the next look, after so many that showed nothing new."""
        return self._seconds * (3 if quiet >= _QUIET else 1)

    def forget(self, watch: _MemoryWatch) -> None:
        """Nobody needs this one any more."""
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
    """How a memory was: the number of its last change, what that was, and what tells its MEMORY.md from another."""

    seq: int
    what: str
    text: bytes


class _MemoryWatch:
    """One memory, looked at for all of its open pages, as long as there are any."""

    def __init__(self, user: str, live: Live) -> None:
        self.user = user
        self.pages: set[asyncio.Event] = set()
        self.last: _MemorySnapshot | None = None
        self.ended = False
        self._live = live
        self._hurry = asyncio.Event()
        self._looking = asyncio.create_task(self._look())

    def join(self) -> asyncio.Event:
        """Another page, which is told when the memory was looked at. It does not have to wait for its turn."""
        news = asyncio.Event()
        self.pages.add(news)
        self._hurry.set()
        return news

    def leave(self, news: asyncio.Event) -> None:
        """A page less."""
        self.pages.discard(news)
        if not self.pages:
            self.end()

    def end(self) -> None:
        """Send all pages away; they come back by themselves if they are still there."""
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
            LOGGER.error("a memory could not be watched: %s", type(error).__name__)
            self.end()

    def _tell(self) -> None:
        for news in self.pages:
            news.set()
