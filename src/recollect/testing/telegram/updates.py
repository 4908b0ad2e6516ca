"""What waits for the bot: updates in order, each kept until the bot has said that it has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from recollect.testing.telegram.changes import Changes
from recollect.testing.telegram.refusal import RefusalError

FIRST_ID = 100_000_001
MOST_AT_ONCE = 100
LONGEST_POLL = 50
ASKED_FOR_ONLY = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
"""Kinds of updates that a bot gets only if it names them."""


@dataclass
class Webhook:
    """Where updates are sent to, and what went wrong there last."""

    url: str
    secret: str = ""
    most: int = 40
    address: str = ""
    error: str = ""
    error_date: int = 0


@dataclass(eq=False)
class Waiting:
    """An update with the number of times that it is still to come."""

    update: dict[str, Any]
    times: int = 1
    shown: bool = False
    again: bool = False

    @property
    def id(self) -> int:
        return int(self.update["update_id"])


@dataclass
class Updates:
    """The queue. ``changed`` is the lock of everything; what changes here is told there."""

    changed: Changes
    now: Callable[[], int]
    pending: list[Waiting] = field(default_factory=list)
    confirmed: list[Waiting] = field(default_factory=list)
    webhook: Webhook | None = None
    closed: bool = False
    twice: int = 0
    _gone: Callable[[], bool] | None = None
    _next: int = FIRST_ID
    _poll: int = 0
    _allowed: frozenset[str] | None = None

    def add(self, kind: str, body: dict[str, Any]) -> None:
        """A new one, unless the bot does not want its kind."""
        with self.changed:
            if not self.wants(kind):
                return
            times = 1
            if self.twice:
                self.twice, times = self.twice - 1, 2
            self.pending.append(Waiting({"update_id": self._next, kind: body}, times))
            self._next += 1
            self.changed.tell()

    def wants(self, kind: str) -> bool:
        return kind in self._allowed if self._allowed is not None else kind not in ASKED_FOR_ONLY

    @property
    def allowed(self) -> list[str]:
        return sorted(self._allowed or ())

    def allow(self, kinds: Sequence[str] | None) -> None:
        """None leaves it as it was, nothing at all is the default."""
        if kinds is not None:
            self._allowed = frozenset(kinds) or None

    def poll(
        self,
        offset: int,
        limit: int,
        timeout: float,
        kinds: Sequence[str] | None,
        gone: Callable[[], bool],
    ) -> list[dict[str, Any]]:
        """What waits, as soon as something does; ``gone`` tells whether the caller has hung up."""
        with self.changed:
            self._check_no_webhook()
            self._poll += 1
            mine = self._poll
            self.allow(kinds)
            self._confirm(offset)
            self._gone = gone
            self.changed.tell()  # an older poll ends here
            self.changed.wait_for(lambda: self.pending or self.closed or self._poll != mine or self.webhook, timeout)
            if self._poll == mine:
                self._gone = None
            if self.closed or gone():
                raise ConnectionAbortedError("nobody waits for this any more")
            if self._poll != mine:
                raise RefusalError(
                    "terminated by other getUpdates request; make sure that only one bot instance is running",
                    status=409,
                )
            self._check_no_webhook("terminated by setWebhook request")
            chosen = self.pending[:limit]
            for waiting in chosen:
                waiting.shown = True
            return [waiting.update for waiting in chosen]

    @property
    def listening(self) -> bool:
        """Whether the bot waits for updates at this moment, or has a webhook."""
        return self.webhook is not None or (self._gone is not None and not self._gone())

    def delivered(self, waiting: Waiting) -> None:
        """The bot has it."""
        with self.changed:
            if waiting in self.pending:
                self._confirm_one(waiting)
                self.changed.tell()

    def drop(self) -> None:
        with self.changed:
            self.pending.clear()

    def repeat(self, count: int) -> int:
        """Puts what the bot confirmed last in front again; tells how many these are."""
        with self.changed:
            chosen = self.confirmed[-count:] if count > 0 else []
            self.pending[:0] = [Waiting(one.update, again=True) for one in chosen]
            self.changed.tell()
            return len(chosen)

    def info(self) -> dict[str, Any]:
        """As getWebhookInfo writes it."""
        hook = self.webhook
        body: dict[str, Any] = {
            "url": hook.url if hook else "",
            "has_custom_certificate": False,
            "pending_update_count": len(self.pending),
        }
        if hook is not None:
            body["max_connections"] = hook.most
            if hook.address:
                body["ip_address"] = hook.address
            if hook.error:
                body.update(last_error_date=hook.error_date, last_error_message=hook.error)
        if self._allowed is not None:
            body["allowed_updates"] = self.allowed
        return body

    def _check_no_webhook(self, problem: str = "") -> None:
        if self.webhook is not None:
            text = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
            raise RefusalError(problem or text, status=409)

    def _confirm(self, offset: int) -> None:
        """An offset confirms all before it; a negative one counts from the end."""
        if offset < 0:
            for waiting in self.pending[:offset]:
                self._confirm_one(waiting)
            return
        for waiting in list(self.pending):
            # what is delivered again lies before the offset from the start: it counts when it was shown
            if waiting.id < offset and (waiting.shown or not waiting.again):
                self._confirm_one(waiting)

    def _confirm_one(self, waiting: Waiting) -> None:
        waiting.times -= 1
        waiting.shown, waiting.again = False, True
        if waiting.times <= 0:
            self.pending.remove(waiting)
            self.confirmed.append(waiting)
