"""The updates for the bot, each kept until the bot confirms it, and their delivery to a webhook."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from recollect.testing.telegram.text import BotApiError

_MOST_AT_ONCE = 100
_ON_REQUEST = frozenset({"chat_member", "message_reaction"})
"""Kinds of updates that a bot gets only if it names them."""
_WEBHOOK_SECONDS = 5.0


@dataclass
class WebhookState:
    """The webhook of the bot, and what went wrong there last."""

    url: str
    secret: str = ""
    error: str = ""


@dataclass(eq=False)
class PendingUpdate:
    """An update that the bot has not confirmed; ``shown`` is whether the bot has got it."""

    update: dict[str, Any]
    shown: bool = False

    @property
    def id(self) -> int:
        return int(self.update["update_id"])


class UpdateQueue:
    """The queue of updates. ``changed`` is the lock of the whole server."""

    def __init__(self, changed: threading.Condition) -> None:
        self.pending: list[PendingUpdate] = []
        self.webhook: WebhookState | None = None
        self.closed = False
        self._changed = changed
        self._next_id = 100_000_001
        self._polls = 0
        self._allowed: frozenset[str] | None = None
        self._poller_is_gone: Callable[[], bool] | None = None

    def add(self, kind: str, body: dict[str, Any]) -> None:
        """Add an update, unless the bot does not want its kind."""
        with self._changed:
            if kind in _ON_REQUEST if self._allowed is None else kind not in self._allowed:
                return
            self.pending.append(PendingUpdate({"update_id": self._next_id, kind: body}))
            self._next_id += 1
            self._changed.notify_all()

    def allow(self, kinds: Sequence[str] | None) -> None:
        """Set the kinds that the bot wants. None leaves them as they are, an empty list means the default."""
        if kinds is not None:
            self._allowed = frozenset(kinds) or None

    def poll(
        self, offset: int, limit: int, timeout: float, kinds: Sequence[str] | None, is_gone: Callable[[], bool]
    ) -> list[dict[str, Any]]:
        """Return what is pending as soon as there is something."""
        with self._changed:
            self._check_no_webhook()
            self._polls += 1
            mine, self._poller_is_gone = self._polls, is_gone
            self.allow(kinds)
            for update in [one for one in self.pending if one.shown and one.id < offset]:
                self.confirm(update)
            self._changed.notify_all()  # ends an older poll
            self._changed.wait_for(lambda: self.pending or self.closed or self._polls != mine or self.webhook, timeout)
            if self.closed or is_gone():
                raise ConnectionAbortedError("nobody waits for this any more")
            if self._polls != mine:
                problem = "terminated by other getUpdates request; make sure that only one bot instance is running"
                raise BotApiError(problem, 409)
            self._poller_is_gone = None
            self._check_no_webhook()
            chosen = self.pending[: limit if 1 <= limit <= _MOST_AT_ONCE else _MOST_AT_ONCE]
            for update in chosen:
                update.shown = True
            return [update.update for update in chosen]

    @property
    def listening(self) -> bool:
        """Whether the bot waits for updates at this moment, or has a webhook."""
        return self.webhook is not None or (self._poller_is_gone is not None and not self._poller_is_gone())

    def confirm(self, update: PendingUpdate) -> None:
        """Remove an update that the bot has got."""
        with self._changed:
            if update in self.pending:
                self.pending.remove(update)
            self._changed.notify_all()

    def _check_no_webhook(self) -> None:
        if self.webhook is not None:
            problem = (
                "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
            )
            raise BotApiError(problem, 409)

    def deliver_to_webhook(self) -> None:
        """Post updates to the webhook, each until the bot accepts it; runs in a thread until the queue is closed."""
        pause = 0.05
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self.closed or (self.webhook and self.pending))
                if self.closed:
                    return
                hook, update = self.webhook, self.pending[0]
                assert hook is not None
            error = _post(hook, update.update)
            with self._changed:
                if not error:
                    pause = 0.05
                    self.confirm(update)
                else:
                    hook.error, pause = error, min(2 * pause, 1.0)
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self.closed, pause)


def _post(hook: WebhookState, update: dict[str, Any]) -> str:
    """Send an update to the webhook, and return what went wrong, if anything did."""
    place = urlsplit(hook.url)
    headers = {"Content-Type": "application/json", "X-Telegram-Bot-Api-Secret-Token": hook.secret}
    connection = http.client.HTTPConnection(place.hostname or "", place.port or 80, timeout=_WEBHOOK_SECONDS)
    try:
        connection.request("POST", place.path or "/", json.dumps(update).encode(), headers)
        status = connection.getresponse().status
        return "" if 200 <= status < 300 else f"Wrong response from the webhook: {status}"
    except (OSError, http.client.HTTPException) as error:
        return f"Connection failed: {type(error).__name__}"
    finally:
        connection.close()
