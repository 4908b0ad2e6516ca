"""The server: its address, its users and groups, the requests of the bot, and the faults that a test sets."""

from __future__ import annotations

import json
import re
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.errors import InvalidInputError
from recollect.testing.http_server import HttpRequest, HttpResponse, HttpServer
from recollect.testing.telegram.chats import WAIT_SECONDS, State, TelegramGroup, TelegramUser
from recollect.testing.telegram.methods import BotApi, read_parameters, too_many_requests
from recollect.testing.telegram.text import BotApiError
from recollect.testing.telegram.updates import WebhookState
from recollect.times import utc_now

_TOKEN = "7000000001:local-test-token"
_PATH = re.compile(r"/bot(\d+:[A-Za-z0-9_-]+)/(\w+)")


@dataclass(frozen=True)
class BotRequest:
    """A request of the bot, and the status of its answer: 0 if the connection was dropped."""

    method: str
    parameters: Mapping[str, Any]
    status: int


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
        return HttpResponse(self.error.status, _encode(self.error.body) if self.body is None else self.body)


class HeldRequests(_Fault):
    """Requests that wait until they are released. As a with block, it releases them at its end."""

    def __init__(self, state: State, method: str, times: int | None, after: bool) -> None:
        super().__init__(method, times, after)
        self.held = 0
        """How many requests have come here."""
        self.released = False
        self._state = state

    def reached(self, timeout: float = WAIT_SECONDS) -> None:
        """Wait until a request has come here."""
        self._state.wait_until(lambda: self.held, timeout, lambda: f"no request has come to {self.method}")

    def release(self) -> None:
        """Let the waiting requests go on; later ones are not held any more."""
        with self._state.changed:
            self.released, self.times = True, 0
            self._state.changed.notify_all()

    def play(self) -> None:
        with self._state.changed:
            self.held += 1
            self._state.changed.notify_all()
            self._state.changed.wait_for(lambda: self.released or self._state.updates.closed)
            if self._state.updates.closed:
                raise ConnectionAbortedError("the server went down")

    def __enter__(self) -> HeldRequests:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class TelegramServer:
    """A Telegram with one bot, for the time of a with block.

    ``token`` is the bot's. ``chat_interval`` is how many seconds must pass between two messages of the bot in a chat
    (Telegram allows about one per second), by ``clock``; earlier ones get 429. ``problems`` holds what went wrong in
    the server itself: a test asserts that it is empty.
    """

    def __init__(
        self,
        *,
        token: str = _TOKEN,
        name: str = "Recollect",
        username: str = "recollect_test_bot",
        chat_interval: float = 0.0,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.token = token
        self.problems: list[str] = []
        self._state = State(clock, int(token.partition(":")[0]), name, username)
        self._api = BotApi(self._state, chat_interval)
        self._faults: list[_Fault] = []
        self._requests: list[BotRequest] = []
        self._server: HttpServer | None = None
        self._port = 0
        self._reserved: socket.socket | None = None

    # the address

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """The ``base_url`` for python-telegram-bot."""
        return f"{self.url}/bot"

    def __enter__(self) -> TelegramServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._free_port()
        self.heal()

    def start(self) -> None:
        """Start; after `stop` on the same port and with the same state."""
        self._free_port()
        self._state.updates.closed = False
        self._server = HttpServer(self._answer, self.problems, self._port)
        self._port = self._server.server_port
        self._webhook_thread = threading.Thread(target=self._state.updates.deliver_to_webhook, daemon=True)
        self._webhook_thread.start()

    def stop(self) -> None:
        """Close all connections and refuse new ones. Users can still write."""
        if self._server is None:
            return
        with self._state.changed:
            self._state.updates.closed = True
            self._state.changed.notify_all()
        self._server.stop()
        self._webhook_thread.join()
        self._server = None
        self._reserved = socket.socket()  # so that nobody else gets the port meanwhile
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", self._port))

    def _free_port(self) -> None:
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    # users and groups

    def user(self, first_name: str, username: str | None = None) -> TelegramUser:
        """Return a new user. The bot may write to them once they have written to it."""
        with self._state.changed:
            user = TelegramUser(self._state, 1000 + next(self._state.numbers), first_name, username)
            self._state.chats[user.id] = user.private
            return user

    def group(
        self, title: str, users: Sequence[TelegramUser], *, forum: bool = False, basic: bool = False
    ) -> TelegramGroup:
        """Return a new group of these users and the bot. A ``basic`` one can become a supergroup."""
        with self._state.changed:
            number = next(self._state.numbers)
            id = -(4_000_000 + number) if basic else -(1_001_000_000_000 + number)
            group = TelegramGroup(self._state, id, "group" if basic else "supergroup", title, users)
            group.forum = forum
            self._state.chats[id] = group
            self._state.membership(group, group.users[0], "left", "member")
            self._state.post(group, group.users[0], service={"new_chat_members": [self._state.bot.json()]})
            return group

    # the bot

    @property
    def requests(self) -> list[BotRequest]:
        """The requests of the bot so far."""
        with self._state.changed:
            return list(self._requests)

    @property
    def pending(self) -> int:
        """The number of updates that the bot has not confirmed yet."""
        return len(self._state.updates.pending)

    @property
    def webhook(self) -> WebhookState | None:
        return self._state.updates.webhook

    def wait_until_listening(self, timeout: float = WAIT_SECONDS) -> None:
        """Wait until the bot waits for updates or has set a webhook."""
        updates = self._state.updates
        self._state.wait_until(lambda: updates.listening, timeout, lambda: "The bot never asked for updates.")

    def wait_until(self, condition: Callable[[], Any], timeout: float = WAIT_SECONDS) -> Any:
        """Wait until a condition holds; it is checked whenever something changes. Raises TimeoutError."""
        return self._state.wait_until(condition, timeout, lambda: "The condition never held.")

    def send_update(self, kind: str, body: dict[str, Any]) -> None:
        """Send the bot an update that no user can cause here."""
        self._state.updates.add(kind, body)

    def deliver_twice(self, times: int = 1) -> None:
        """Deliver each of the next updates a second time after the bot has confirmed it."""
        self._state.updates.deliver_twice += times

    def deliver_again(self, count: int = 1) -> None:
        """Deliver the updates that the bot confirmed last again, with the same ids."""
        self._state.updates.deliver_again(count)

    # faults

    def fail(
        self,
        method: str = "*",
        status: int = 500,
        *,
        times: int | None = 1,
        after: bool = False,
        description: str = "Internal Server Error",
        retry_after: int | None = None,
        body: bytes | None = None,
    ) -> None:
        """Answer the next requests with an error; with ``after`` they take effect all the same.

        The method ``"*"`` means all of them, ``times=None`` until `heal`. A ``body`` is sent as it is.
        """
        error = BotApiError(description, status) if retry_after is None else too_many_requests(retry_after)
        self._add(_Failure(method, times, after, error, body))

    def drop(self, method: str = "*", *, times: int | None = 1, after: bool = False) -> None:
        """Close the connection without an answer; with ``after`` once the request has taken effect."""
        self._add(_Failure(method, times, after))

    def stall(self, method: str = "*", *, times: int | None = None, after: bool = False) -> HeldRequests:
        """Hold requests until the returned object is released; with ``after`` they have taken effect by then."""
        held = HeldRequests(self._state, method, times, after)
        self._add(held)
        return held

    def heal(self) -> None:
        """Remove all faults, and release what is held."""
        with self._state.changed:
            for fault in self._faults:
                if isinstance(fault, HeldRequests):
                    fault.release()
            self._faults.clear()

    def _add(self, fault: _Fault) -> None:
        if fault.method not in ("*", "getUpdates", *self._api.methods):
            raise InvalidInputError("method", f"{fault.method!r} is not a method of this server")
        with self._state.changed:
            self._faults.append(fault)

    def _take_fault(self, method: str) -> _Fault | None:
        with self._state.changed:
            fitting = (one for one in self._faults if one.method in ("*", method) and one.times != 0)
            fault = next(fitting, None)
            if fault is not None and fault.times is not None:
                fault.times -= 1
            return fault

    # answers

    def _answer(self, request: HttpRequest) -> HttpResponse:
        place = _PATH.fullmatch(request.path)
        if place is None or place[2] not in ("getUpdates", *self._api.methods):
            return _refused(BotApiError("Not Found", 404))
        if place[1] != self.token:
            return _refused(BotApiError("Unauthorized", 401))
        try:
            method, parameters = place[2], read_parameters(request)
        except ValueError:
            return _refused(BotApiError("can't parse the request"))
        fault = self._take_fault(method)
        failure = fault if isinstance(fault, _Failure) else None
        if fault is not None and not fault.after:
            if failure is not None:
                self._note(method, parameters, failure, 0)
            instead = fault.play()
            if instead is not None:
                return instead
        response = self._call(method, parameters, request, failure)
        return (fault.play() if fault is not None and fault.after else None) or response

    def _call(
        self, method: str, parameters: Mapping[str, Any], request: HttpRequest, failure: _Failure | None
    ) -> HttpResponse:
        """Do what the bot requests, and note it in one step with its effect."""
        waits = method == "getUpdates"
        try:
            result = self._api.get_updates(parameters, request.hung_up) if waits else None
            with self._state.changed:
                if self._state.updates.closed:
                    raise ConnectionAbortedError("the server went down before this was done")
                result = result if waits else self._api.methods[method](parameters)
                self._note(method, parameters, failure, 200)
            return HttpResponse(200, _encode({"ok": True, "result": result}))
        except BotApiError as error:
            self._note(method, parameters, failure, error.status)
            return _refused(error)

    def _note(self, method: str, parameters: Mapping[str, Any], failure: _Failure | None, status: int) -> None:
        """Note a request with the status that the bot is told."""
        if failure is not None:
            status = 0 if failure.error is None else failure.error.status
        with self._state.changed:
            self._requests.append(BotRequest(method, parameters, status))
            self._state.changed.notify_all()


def _refused(error: BotApiError) -> HttpResponse:
    return HttpResponse(error.status, _encode(error.body))


def _encode(body: Any) -> bytes:
    return json.dumps(body).encode()
