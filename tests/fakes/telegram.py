"""A Telegram with everything our bot must stand: rare events, webhooks, rate limits, and faults on demand."""

from __future__ import annotations

import http.client
import json
import math
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from recollect.testing.http_server import HttpRequest, HttpResponse
from recollect.testing.telegram import TelegramChat, TelegramGroup, TelegramMessage, TelegramServer, TelegramUser
from recollect.testing.telegram.chats import WAIT_SECONDS, TelegramState
from recollect.testing.telegram.messages import UploadedFile
from recollect.testing.telegram.methods import BotApi, Parameters
from recollect.testing.telegram.server import encode
from recollect.testing.telegram.text import BotApiError
from recollect.testing.telegram.updates import PendingUpdate, UpdateQueue

_WEBHOOK_SECONDS = 5.0


class Phone(TelegramUser):
    """A user who can do everything that our bot gets to know of."""

    def __init__(self, state: TelegramState, id: int, first_name: str, username: str | None = None) -> None:
        super().__init__(state, id, first_name, username)
        self._reactions: dict[TelegramMessage, str] = {}

    def forwards(self, text: str, chat: TelegramChat | None = None, *, from_: TelegramUser | str) -> TelegramMessage:
        """Forward a text of another user; a name alone is somebody who hides their account."""
        origin: dict[str, Any] = {"date": self._state.now()}
        if isinstance(from_, str):
            origin |= {"type": "hidden_user", "sender_user_name": from_}
        else:
            origin |= {"type": "user", "sender_user": from_.json()}
        return self._send(text, chat, extra={"forward_origin": origin})

    def sends_photo(self, caption: str = "") -> TelegramMessage:
        photo = {"file_id": "p", "file_unique_id": "p", "file_size": 2, "width": 320, "height": 240}
        return self._send("", None, extra={"photo": [photo], **({"caption": caption} if caption else {})})

    def sends_document(self, name: str, content: bytes, caption: str = "") -> TelegramMessage:
        return self._send(caption, None, document=UploadedFile(name, content))

    def reacts(self, emoji: str | None, message: TelegramMessage) -> None:
        """React to a message in their private chat, instead of an earlier reaction; None removes it."""
        with self._state.changed:
            body = {"chat": message.chat.json(), "message_id": message.id, "date": self._state.now()}
            for name, one in (("old_reaction", self._reactions.pop(message, None)), ("new_reaction", emoji)):
                body[name] = [{"type": "emoji", "emoji": one}] if one else []
            if emoji:
                self._reactions[message] = emoji
            self._state.updates.add("message_reaction", {**body, "user": self.json()})

    def blocks(self) -> None:
        """Stop the bot from writing to them."""
        self.private.refusal = BotApiError("bot was blocked by the user", 403)
        _change_membership(self._state, self.private, "member", "kicked")

    def unblocks(self) -> None:
        self.private.refusal = None
        _change_membership(self._state, self.private, "kicked", "member")


class RealGroup(TelegramGroup):
    """A group that can remove the bot, and become a supergroup."""

    def removes_bot(self) -> None:
        with self._state.changed:
            _change_membership(self._state, self, "member", "kicked")
            self._state.post(self, self.users[0], extra={"left_chat_member": self._state.bot.json()})
            self.refusal = BotApiError(f"bot is not a member of the {self.kind} chat", 403)

    def becomes_supergroup(self) -> int:
        """Give the group a new id, as Telegram does when a group grows; what is sent to the old id is refused."""
        with self._state.changed:
            old, new = self.id, -(1_001_500_000_000 + next(self._state.numbers))
            self._state.post(self, self.users[0], extra={"migrate_to_chat_id": new})
            moved = BotApiError("group chat was upgraded to a supergroup chat", migrate_to_chat_id=new)
            TelegramChat(self._state, old, "group", self.title, (), moved)
            self._state.chats[new] = self
            self.id, self.kind = new, "supergroup"
            self._state.post(self, self.users[0], extra={"migrate_from_chat_id": old})
            return new


def _change_membership(state: TelegramState, chat: TelegramChat, old: str, new: str) -> None:
    """Tell the bot that it was let in or removed."""
    body: dict[str, Any] = {"chat": chat.json(), "from": chat.users[0].json(), "date": state.now()}
    for name, status in (("old_chat_member", old), ("new_chat_member", new)):
        body[name] = {"user": state.bot.json(), "status": status} | ({"until_date": 0} if status == "kicked" else {})
    state.updates.add("my_chat_member", body)


@dataclass
class Webhook:
    """The webhook of the bot, and what went wrong there last."""

    url: str
    secret: str = ""
    error: str = ""

    def post(self, update: dict[str, Any]) -> bool:
        """Send an update, and return whether the bot has accepted it."""
        place = urlsplit(self.url)
        headers = {"Content-Type": "application/json", "X-Telegram-Bot-Api-Secret-Token": self.secret}
        connection = http.client.HTTPConnection(place.hostname or "", place.port or 80, timeout=_WEBHOOK_SECONDS)
        try:
            connection.request("POST", place.path or "/", json.dumps(update).encode(), headers)
            status = connection.getresponse().status
            problem = "" if 200 <= status < 300 else f"Wrong response from the webhook: {status}"
        except (OSError, http.client.HTTPException) as error:
            problem = f"Connection failed: {type(error).__name__}"
        finally:
            connection.close()
        self.error = problem or self.error
        return not problem


class _FullApi(BotApi):
    """The methods, with webhooks, and a pause that must be between two messages in a chat."""

    def __init__(self, state: TelegramState, queue: _FullQueue, chat_interval: float) -> None:
        super().__init__(state)
        self._queue = queue
        self._chat_interval = chat_interval
        self._last_sent: dict[int, float] = {}
        self.methods |= {"setWebhook": self._set_webhook, "deleteWebhook": self._delete_webhook}
        for name in ("sendMessage", "sendDocument", "editMessageText", "editMessageReplyMarkup"):
            self.methods[name] = self._limited(self.methods[name])

    def _set_webhook(self, parameters: Parameters) -> bool:
        url = str(parameters.get("url", ""))
        place = urlsplit(url)
        if place.scheme != "http" or place.hostname not in ("127.0.0.1", "localhost"):
            raise BotApiError("bad webhook: this server sends only plain HTTP to 127.0.0.1 or localhost")
        self._queue.allow(parameters.get("allowed_updates"))
        self._queue.webhook = Webhook(url, str(parameters.get("secret_token", "")))
        self._queue.end_poll()
        return True

    def _delete_webhook(self, parameters: Parameters) -> bool:
        self._queue.webhook = None
        return True

    def _limited(self, method: Callable[[Parameters], Any]) -> Callable[[Parameters], Any]:
        def call(parameters: Parameters) -> Any:
            now, chat = self._state.clock().timestamp(), int(parameters.get("chat_id", 0))
            wait = self._last_sent.get(chat, -math.inf) + self._chat_interval - now
            if self._chat_interval and wait > 0:
                raise _too_many_requests(math.ceil(wait))
            result = method(parameters)
            self._last_sent[chat] = now
            return result

        return call if self._chat_interval else method


def _too_many_requests(seconds: int) -> BotApiError:
    return BotApiError(f"retry after {seconds}", 429, retry_after=seconds)


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


class _FullQueue(UpdateQueue):
    """Delivers to a webhook, and delivers updates again that the bot has confirmed."""

    twice = 0
    webhook: Webhook | None = None

    def __init__(self, state: TelegramState) -> None:
        super().__init__(state.changed)
        self.confirmed: list[dict[str, Any]] = []
        self._doubled: set[int] = set()

    @property
    def listening(self) -> bool:
        return self.webhook is not None or super().listening

    def poll(self, *args: Any) -> list[dict[str, Any]]:
        if self.webhook is not None:
            problem = "can't use getUpdates method while webhook is active; use deleteWebhook to delete it first"
            raise BotApiError(problem, 409)
        return super().poll(*args)

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
            accepted = hook.post(update.update)
            with self._changed:
                if accepted:
                    pause = 0.05
                    self.confirm(update)
                else:
                    pause = min(2 * pause, 1.0)
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self.closed, pause)

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
    """A Telegram with faults. They apply to a method, or to all of them (``"*"``), so many ``times``.

    ``chat_interval`` is how many seconds must pass between two messages of the bot in a chat (Telegram allows about one
    per second); earlier ones get 429.
    """

    def __init__(self, *, chat_interval: float = 0.0, **options: Any) -> None:
        super().__init__(**options)
        self._faults: list[_Fault] = []
        self._queue = self._state.updates = _FullQueue(self._state)
        self._api = _FullApi(self._state, self._queue, chat_interval)
        self._reserved: socket.socket | None = None

    @property
    def webhook(self) -> Webhook | None:
        return self._queue.webhook

    def start(self) -> None:
        self._free_port()
        super().start()
        self._webhook_thread = threading.Thread(target=self._queue.deliver_to_webhook, daemon=True)
        self._webhook_thread.start()

    def stop(self) -> None:
        if self._reserved is not None:
            return
        super().stop()
        self._webhook_thread.join()
        self._reserved = socket.socket()  # so that nobody else gets the port meanwhile
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", self._port))

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._free_port()

    def _free_port(self) -> None:
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    def user(self, first_name: str, username: str | None = None) -> Phone:
        return Phone(self._state, self.next_user_id(), first_name, username)

    def group(
        self, title: str, users: Sequence[TelegramUser], *, forum: bool = False, basic: bool = False
    ) -> RealGroup:
        """Return a new group of these users and the bot. A ``basic`` one can become a supergroup."""
        id, kind = (
            (-(4_000_000 + next(self._state.numbers)), "group") if basic else (self.next_group_id(), "supergroup")
        )
        group = RealGroup(self._state, id, kind, title, users, forum=forum)
        _change_membership(self._state, group, "left", "member")
        return group

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
        error = BotApiError(description, status) if retry_after is None else _too_many_requests(retry_after)
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
