"""The server: its address, its users and groups, and the requests of the bot."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from recollect.testing.http_server import HttpRequest, HttpResponse, HttpServer
from recollect.testing.telegram.chats import WAIT_SECONDS, TelegramGroup, TelegramState, TelegramUser
from recollect.testing.telegram.methods import BotApi, read_parameters
from recollect.testing.telegram.text import BotApiError
from recollect.times import utc_now

_TOKEN = "7000000001:local-test-token"
_PATH = re.compile(r"/bot(\d+:[A-Za-z0-9_-]+)/(\w+)")


@dataclass(frozen=True)
class BotRequest:
    """A request of the bot, and the status of its answer: 0 if the connection was dropped."""

    method: str
    parameters: Mapping[str, Any]
    status: int


class TelegramServer:
    """A Telegram with one bot, for the time of a with block.

    ``token`` is the bot's. ``problems`` holds what went wrong in the server itself: a test asserts that it is empty.
    """

    def __init__(
        self,
        *,
        token: str = _TOKEN,
        name: str = "Recollect",
        username: str = "recollect_test_bot",
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.token = token
        self.problems: list[str] = []
        self._state = TelegramState(clock, int(token.partition(":")[0]), name, username)
        self._api = BotApi(self._state)
        self._requests: list[BotRequest] = []
        self._port = 0

    # the address

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """The ``base_url`` for python-telegram-bot."""
        return f"{self.url}/bot"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start; after `stop` on the same port and with the same state."""
        self._state.updates.closed = False
        self._server = HttpServer(self._answer, self.problems, self._port)
        self._port = self._server.server_port

    def stop(self) -> None:
        """Close all connections and refuse new ones. Users can still write."""
        with self._state.changed:
            self._state.updates.closed = True
            self._state.changed.notify_all()
        self._server.stop()

    # users and groups

    def user(self, first_name: str, username: str | None = None) -> TelegramUser:
        """Return a new user. The bot may write to them once they have written to it."""
        return TelegramUser(self._state, self.next_user_id(), first_name, username)

    def group(self, title: str, users: Sequence[TelegramUser], *, forum: bool = False) -> TelegramGroup:
        """Return a new group of these users and the bot."""
        return TelegramGroup(self._state, self.next_group_id(), "supergroup", title, users, forum=forum)

    def next_user_id(self) -> int:
        return 1000 + next(self._state.numbers)

    def next_group_id(self) -> int:
        return -(1_001_000_000_000 + next(self._state.numbers))

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

    def wait_until_listening(self, timeout: float = WAIT_SECONDS) -> None:
        """Wait until the bot waits for updates."""
        updates = self._state.updates
        self._state.wait_until(lambda: updates.listening, timeout, lambda: "The bot never asked for updates.")

    def wait_until(self, condition: Callable[[], Any], timeout: float = WAIT_SECONDS) -> Any:
        """Wait until a condition holds; it is checked whenever something changes. Raises TimeoutError."""
        return self._state.wait_until(condition, timeout, lambda: "The condition never held.")

    # answers

    def _answer(self, request: HttpRequest) -> HttpResponse:
        place = _PATH.fullmatch(request.path)
        if place is None or place[2] not in ("getUpdates", *self._api.methods):
            return refused(BotApiError("Not Found", 404))
        if place[1] != self.token:
            return refused(BotApiError("Unauthorized", 401))
        try:
            method, parameters = place[2], read_parameters(request)
        except ValueError:
            return refused(BotApiError("can't parse the request"))
        try:
            response = self.respond(method, parameters, request)
        except ConnectionError:
            self._note(method, parameters, 0)
            raise
        self._note(method, parameters, response.status)
        return response

    def respond(self, method: str, parameters: Mapping[str, Any], request: HttpRequest) -> HttpResponse:
        """Do what the bot requests."""
        try:
            if method == "getUpdates":
                result = self._api.get_updates(parameters, request.hung_up)
            else:
                with self._state.changed:
                    if self._state.updates.closed:
                        raise ConnectionAbortedError("the server went down before this was done")
                    result = self._api.methods[method](parameters)
            return HttpResponse(200, encode({"ok": True, "result": result}))
        except BotApiError as error:
            return refused(error)

    def _note(self, method: str, parameters: Mapping[str, Any], status: int) -> None:
        with self._state.changed:
            self._requests.append(BotRequest(method, parameters, status))
            self._state.changed.notify_all()


def refused(error: BotApiError) -> HttpResponse:
    return HttpResponse(error.status, encode(error.body))


def encode(body: Any) -> bytes:
    return json.dumps(body).encode()
