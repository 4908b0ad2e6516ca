"""The connection to Telegram: the library's bot in its own event loop, for use from threads.

Also keeps the token and what people say out of the logs, because libraries log addresses and responses.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import telegram
from telegram.request import HTTPXRequest

_T = TypeVar("_T")
_POLL_SECONDS, _SLACK_SECONDS = 50, 15.0
_SECONDS = 30.0
_END_SECONDS = 5.0
_LOGS = ("httpx", "telegram.Bot", "telegram.request.BaseRequest", "telegram.request.HTTPXRequest")


class TelegramApi(telegram.Bot):
    """The library's bot, with access to raw updates."""

    async def updates(self, offset: int | None, kinds: Sequence[str]) -> list[dict[str, Any]]:
        """Wait for new updates and return them. ``offset`` confirms all updates before it."""
        asked = {"offset": offset, "timeout": _POLL_SECONDS, "allowed_updates": list(kinds)}
        # not get_updates: it logs updates that it cannot parse, and never gets past them
        found = await self._post("getUpdates", asked, read_timeout=_POLL_SECONDS + _SLACK_SECONDS)
        return [update for update in found if isinstance(update, dict) and isinstance(update.get("update_id"), int)]


class TelegramConnection:
    """A thread with an event loop that runs the requests."""

    def __init__(self, token: str, url: str) -> None:
        place = url.rstrip("/")
        self._filter = _Masking(token)
        for name in _LOGS:
            logging.getLogger(name).addFilter(self._filter)
        self.api = TelegramApi(
            token,
            base_url=f"{place}/bot",
            base_file_url=f"{place}/file/bot",
            request=_request(),
            get_updates_request=_request(),
        )
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="recollect-telegram", daemon=True)
        self._thread.start()

    def call(self, request: Coroutine[Any, Any, _T]) -> _T:
        """Run a request and wait for it, from any thread except the loop's."""
        return self.spawn(request).result()

    def spawn(self, request: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Start a request without waiting for it."""
        return asyncio.run_coroutine_threadsafe(request, self.loop)

    def close(self) -> None:
        """Cancel running requests and end the thread."""
        if self._thread.is_alive():
            with suppress(TimeoutError):
                self.spawn(self._end()).result(_END_SECONDS)
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(_END_SECONDS)
        for name in _LOGS:
            logging.getLogger(name).removeFilter(self._filter)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    async def _end(self) -> None:
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        # not api.shutdown(), which does nothing if the bot was never initialised
        for request in self.api._request:
            await request.shutdown()


class _Masking(logging.Filter):
    """Masks the token, and drops log records of the library that could contain what was said."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("telegram"):
            return False
        text = record.getMessage()
        if self._token in text:
            record.msg, record.args = text.replace(self._token, "***"), ()
        return True


def _request() -> HTTPXRequest:
    return HTTPXRequest(read_timeout=_SECONDS, write_timeout=_SECONDS, connect_timeout=_SECONDS, pool_timeout=_SECONDS)
