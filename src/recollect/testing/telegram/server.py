"""The server: its address, its users and groups, and the requests of the bot."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from recollect.testing.http_server import HttpRequest, HttpResponse, HttpServer
from recollect.testing.telegram.chats import WAIT_SECONDS, TelegramGroup, TelegramState, TelegramUser
from recollect.testing.telegram.methods import BotApi, read_parameters
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
        self._state = TelegramState(clock, int(token.partition(":")[0]), name, username)
        self._api = BotApi(self._state, chat_interval)
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

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._free_port()

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
