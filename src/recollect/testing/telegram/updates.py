"""The updates for the bot, each kept until the bot confirms it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.testing.telegram.text import BotApiError

_MOST_AT_ONCE = 100
_ON_REQUEST = frozenset({"chat_member", "message_reaction"})
"""Kinds of updates that a bot gets only if it names them."""


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
            self.end_poll()
            mine, self._poller_is_gone = self._polls, is_gone
            self.allow(kinds)
            for update in [one for one in self.pending if one.shown and one.id < offset]:
                self.confirm(update)
            self._changed.wait_for(lambda: self.pending or self.closed or self._polls != mine, timeout)
            if self.closed or is_gone():
                raise ConnectionAbortedError("nobody waits for this any more")
            if self._polls != mine:
                problem = "terminated by other getUpdates request; make sure that only one bot instance is running"
                raise BotApiError(problem, 409)
            self._poller_is_gone = None
            chosen = self.pending[: limit if 1 <= limit <= _MOST_AT_ONCE else _MOST_AT_ONCE]
            for update in chosen:
                update.shown = True
            return [update.update for update in chosen]

    def end_poll(self) -> None:
        """End the poll that is waiting, if there is one."""
        self._polls += 1
        self._changed.notify_all()

    @property
    def listening(self) -> bool:
        """Whether the bot waits for updates at this moment."""
        return self._poller_is_gone is not None and not self._poller_is_gone()

    def confirm(self, update: PendingUpdate) -> None:
        """Remove an update that the bot has got."""
        with self._changed:
            if update in self.pending:
                self.pending.remove(update)
            self._changed.notify_all()
