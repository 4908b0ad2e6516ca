"""A Telegram where things go wrong on demand: errors, dropped connections, silence, and updates that come twice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recollect.testing.http_server import HttpRequest, HttpResponse
from recollect.testing.telegram import TelegramServer
from recollect.testing.telegram.chats import WAIT_SECONDS, TelegramState
from recollect.testing.telegram.methods import too_many_requests
from recollect.testing.telegram.server import encode
from recollect.testing.telegram.text import BotApiError
from recollect.testing.telegram.updates import PendingUpdate, UpdateQueue


@dataclass(eq=False)
class _Fault(ABC):
    """What happens to the next requests of a method; with ``after`` they take effect first."""

    method: str
    times: int | None
    after: bool

    @abstractmethod
    def play(self) -> HttpResponse | None:
        """Return the answer to send instead of the usual one, if any."""


@dataclass(eq=False)
class _Failure(_Fault):
    """An error answer, with a body of its own if there is one; without an error, the connection drops."""

    error: BotApiError | None = None
    body: bytes | None = None

    def play(self) -> HttpResponse:
        if self.error is None:
            raise ConnectionAbortedError("dropped by the test")
        return HttpResponse(self.error.status, encode(self.error.body) if self.body is None else self.body)


class HeldRequests(_Fault):
    """Requests that wait until they are released. As a with block, it releases them at its end."""

    def __init__(self, state: TelegramState, method: str, times: int | None, after: bool) -> None:
        super().__init__(method, times, after)
        self._held = 0
        self._released = False
        self._state = state

    def reached(self, timeout: float = WAIT_SECONDS) -> None:
        """Wait until a request has come here."""
        self._state.wait_until(lambda: self._held, timeout, lambda: f"no request has come to {self.method}")

    def release(self) -> None:
        """Let the waiting requests go on; later ones are not held any more."""
        with self._state.changed:
            self._released, self.times = True, 0
            self._state.changed.notify_all()

    def play(self) -> None:
        with self._state.changed:
            self._held += 1
            self._state.changed.notify_all()
            self._state.changed.wait_for(lambda: self._released or self._state.updates.closed)
            if self._state.updates.closed:
                raise ConnectionAbortedError("the server went down")

    def __enter__(self) -> HeldRequests:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class _RepeatingQueue(UpdateQueue):
    """Delivers updates again that the bot has confirmed."""

    twice = 0

    def __init__(self, state: TelegramState) -> None:
        super().__init__(state.changed)
        self.confirmed: list[dict[str, Any]] = []
        self._doubled: set[int] = set()

    def add(self, kind: str, body: dict[str, Any]) -> None:
        with self._changed:
            before = len(self.pending)
            super().add(kind, body)
            if self.twice and len(self.pending) > before:
                self.twice -= 1
                self._doubled.add(self.pending[-1].id)

    def confirm(self, update: PendingUpdate) -> None:
        with self._changed:
            super().confirm(update)
            if update.id in self._doubled:
                self._doubled.remove(update.id)
                self.pending.insert(0, PendingUpdate(update.update))
            else:
                self.confirmed.append(update.update)


class FaultyTelegramServer(TelegramServer):
    """A Telegram with faults. They apply to a method, or to all of them (``"*"``), so many ``times``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._faults: list[_Fault] = []
        self._queue = self._state.updates = _RepeatingQueue(self._state)

    def fail(
        self,
        method: str,
        status: int = 500,
        *,
        times: int | None = 1,
        after: bool = False,
        description: str = "Internal Server Error",
        retry_after: int | None = None,
        body: bytes | None = None,
    ) -> None:
        """Answer the next requests with an error; with ``after`` they take effect all the same."""
        error = BotApiError(description, status) if retry_after is None else too_many_requests(retry_after)
        self._faults.append(_Failure(method, times, after, error, body))

    def drop(self, method: str, *, times: int | None = 1, after: bool = False) -> None:
        """Close the connection without an answer; with ``after`` once the request has taken effect."""
        self._faults.append(_Failure(method, times, after))

    def stall(self, method: str, *, times: int | None = None, after: bool = False) -> HeldRequests:
        """Hold requests until the returned object is released; with ``after`` they have taken effect by then."""
        held = HeldRequests(self._state, method, times, after)
        self._faults.append(held)
        return held

    def heal(self) -> None:
        """Remove all faults, and release what is held."""
        faults, self._faults = self._faults, []
        for fault in faults:
            if isinstance(fault, HeldRequests):
                fault.release()

    def deliver_twice(self, times: int = 1) -> None:
        """Deliver each of the next updates a second time after the bot has confirmed it."""
        self._queue.twice += times

    def deliver_again(self, count: int = 1) -> None:
        """Deliver the updates that the bot confirmed last again, with the same ids."""
        with self._state.changed:
            self._queue.pending[:0] = [PendingUpdate(update) for update in self._queue.confirmed[-count:]]
            self._state.changed.notify_all()

    def send_update(self, kind: str, body: dict[str, Any]) -> None:
        """Send the bot an update that no user can cause here."""
        self._queue.add(kind, body)

    def respond(self, method: str, parameters: Mapping[str, Any], request: HttpRequest) -> HttpResponse:
        fault = self._take(method)
        if fault is None:
            return super().respond(method, parameters, request)
        if fault.after:
            usual = super().respond(method, parameters, request)
            return fault.play() or usual
        return fault.play() or super().respond(method, parameters, request)

    def _take(self, method: str) -> _Fault | None:
        with self._state.changed:
            fitting = (one for one in self._faults if one.method in ("*", method) and one.times != 0)
            fault = next(fitting, None)
            if fault is not None and fault.times is not None:
                fault.times -= 1
            return fault
