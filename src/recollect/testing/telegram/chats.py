"""The users and their chats: what somebody with a phone can do, and what they see."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.errors import InvalidInputError
from recollect.testing.telegram.messages import Button, TelegramMessage
from recollect.testing.telegram.text import NO_TEXT, BotApiError, Entity, FormattedText, plain_text
from recollect.testing.telegram.updates import UpdateQueue

WAIT_SECONDS = 20.0
"""How long a test waits for something by default."""


class TelegramState:
    """Everything in this Telegram. One lock, ``changed``, guards it and is notified of every change."""

    def __init__(self, clock: Callable[[], datetime], bot_id: int, bot_name: str, bot_username: str) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.updates = UpdateQueue(self.changed)
        self.chats: dict[int, TelegramChat] = {}
        self.presses: dict[str, ButtonPress] = {}
        self.bot = TelegramUser(self, bot_id, bot_name, bot_username, is_bot=True)
        self.numbers = itertools.count(1)
        self.clock = clock
        self._changes = itertools.count(1)

    def now(self) -> int:
        return int(self.clock().timestamp())

    def wait_until(self, condition: Callable[[], Any], timeout: float, problem: Callable[[], str]) -> Any:
        """Wait until the condition holds, and return its value; raise TimeoutError if it never does."""
        with self.changed:
            result = self.changed.wait_for(condition, timeout)
            if not result:
                raise TimeoutError(problem())
            return result

    def post(
        self, chat: TelegramChat, sender: TelegramUser, content: FormattedText = NO_TEXT, **more: Any
    ) -> TelegramMessage:
        """Send a message to a chat, and to the bot if it may read it."""
        with self.changed:
            number, order = len(chat.history) + 1, next(self._changes)
            message = TelegramMessage(chat, number, sender, self.now(), order, order, content, **more)
            if message.reply_to is not None and message.thread is None:
                message.thread = message.reply_to.thread
            chat.history[number] = message
            if sender is self.bot:
                chat.action = None
            elif chat.kind == "private":
                chat.refusal = None
            if self._bot_reads(message):
                self.updates.add("message", message.json())
            self.changed.notify_all()
            return message

    def change(self, message: TelegramMessage, **fields: Any) -> None:
        """Change what is shown of a message."""
        with self.changed:
            edited = fields.get("content", message.content) != message.content
            for name, value in fields.items():
                setattr(message, name, value)
            if edited:
                message.edited_at = max(self.now(), message.date)
                if self._bot_reads(message):
                    self.updates.add("edited_message", message.json())
            message.changed = next(self._changes)
            self.changed.notify_all()

    def _bot_reads(self, message: TelegramMessage) -> bool:
        """Return whether the bot gets a message: in groups only what is meant for it."""
        if message.sender.is_bot or message.chat.kind == "private":
            return not message.sender.is_bot
        replied = message.reply_to is not None and message.reply_to.sender is self.bot
        is_service = bool(message.extra) and not message.text
        meant = is_service or replied or any(self._names_bot(message, one) for one in message.entities)
        return message.chat.refusal is None and meant

    def _names_bot(self, message: TelegramMessage, entity: Entity) -> bool:
        words, name = message.content.part(entity).lower(), f"@{self.bot.username}".lower()
        if entity.type == "bot_command":
            return "@" not in words or words.endswith(name)
        return entity.type == "mention" and words == name


class TelegramUser:
    """Somebody who talks to the bot. ``private`` is their chat with it. The bot itself is a user, too."""

    def __init__(
        self, state: TelegramState, id: int, first_name: str, username: str | None = None, *, is_bot: bool = False
    ) -> None:
        self.id = id
        self.first_name = first_name
        self.username = username
        self.is_bot = is_bot
        self.private = TelegramChat(state, id, "private", first_name, [self], BotApiError("chat not found"))
        self._state = state

    def json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name}
        return {**body, "username": self.username} if self.username else body

    def __repr__(self) -> str:
        return f"<TelegramUser {self.id} {self.first_name}>"

    def says(
        self,
        text: str,
        chat: TelegramChat | None = None,
        *,
        reply_to: TelegramMessage | None = None,
        thread: ForumTopic | None = None,
    ) -> TelegramMessage:
        """Send a message: to the bot, or to the given chat."""
        return self._send(text, chat, reply_to=reply_to, thread=thread.id if thread else None)

    def edits(self, message: TelegramMessage, text: str) -> TelegramMessage:
        """Change the text of their own message."""
        _check(message.sender is self and not message.deleted, "message", "users edit only their own messages")
        self._state.change(message, content=plain_text(text))
        return message

    def deletes(self, message: TelegramMessage) -> None:
        """Delete a message for everybody. Telegram does not tell the bot."""
        self._state.change(message, deleted=True)

    def presses(self, button: Button | str, message: TelegramMessage) -> ButtonPress:
        """Press a button. A `Button` from earlier can be pressed even if the bot has removed it since."""
        with self._state.changed:
            if isinstance(button, str):
                shown = {one.label: one for row in message.buttons for one in row}
                _check(button in shown, "button", f"the message has no button {button!r}, only {[*shown]}")
                button = shown[button]
            _check(button.data is not None, "button", f"{button.label!r} is a link: the bot never hears of it")
            press = ButtonPress(self._state, str(9_000_000_000 + next(self._state.numbers)), self, button.data or "")
            self._state.presses[press.id] = press
            gone = {"chat": message.chat.json(), "message_id": message.id, "date": 0}
            shown_now = gone if message.deleted else message.json()
            body = {"id": press.id, "from": self.json(), "message": shown_now, "chat_instance": "1"}
            self._state.updates.add("callback_query", {**body, "data": press.data})
            return press

    def waits_for(
        self,
        what: str | Callable[[TelegramMessage], bool],
        timeout: float = WAIT_SECONDS,
        *,
        chat: TelegramChat | None = None,
        after: TelegramMessage | None = None,
    ) -> TelegramMessage:
        """Wait until they see a message of somebody else with this text, or one that the function accepts.

        With ``after``, only messages that were sent or changed after that one count.
        """
        fits = (lambda one: what in one.text) if isinstance(what, str) else what
        since = 0 if after is None else after.order

        def found() -> TelegramMessage | None:
            shown = [one for one in self._sees(chat) if one.sender is not self and one.changed > since]
            return next((one for one in shown if fits(one)), None)

        def problem() -> str:
            return f"{self.first_name} waited for {what!r} and sees only:\n" + "\n".join(map(str, self._sees(chat)))

        message: TelegramMessage = self._state.wait_until(found, timeout, problem)
        return message

    def _sees(self, chat: TelegramChat | None) -> list[TelegramMessage]:
        chats = [chat] if chat is not None else [one for one in self._state.chats.values() if self in one.users]
        return sorted((one for each in chats for one in each.messages), key=lambda one: one.order)

    def _send(self, text: str, chat: TelegramChat | None, **more: Any) -> TelegramMessage:
        place = chat or self.private
        _check(self in place.users, "chat", f"{self.first_name} is not in {place.title}")
        return self._state.post(place, self, plain_text(text), **more)


@dataclass(eq=False)
class ButtonPress:
    """A pressed button, and the notification that the bot showed for it."""

    state: TelegramState
    id: str
    user: TelegramUser
    data: str
    answered: bool = False
    text: str = ""

    def waits(self, timeout: float = WAIT_SECONDS) -> ButtonPress:
        """Wait until the bot has answered."""
        problem = f"{self.user.first_name} pressed {self.data!r} and the bot never answered"
        self.state.wait_until(lambda: self.answered, timeout, lambda: problem)
        return self


@dataclass(frozen=True)
class ForumTopic:
    """A topic of a forum; its id is the thread's."""

    id: int
    name: str


class TelegramChat:
    """A chat with its messages. ``str(chat)`` is the whole screen as text.

    ``refusal`` is the error that the bot gets when it writes here, None if it may. ``action`` is what the bot shows
    ("typing") until it sends something.
    """

    def __init__(
        self,
        state: TelegramState,
        id: int,
        kind: str,
        title: str,
        users: Iterable[TelegramUser],
        refusal: BotApiError | None = None,
    ) -> None:
        self.id = id
        self.kind = kind
        self.title = title
        self.users = list(users)
        self.refusal = refusal
        self.history: dict[int, TelegramMessage] = {}
        """All messages by id, also the deleted ones. Ids count from 1 in each chat."""
        self.topics: dict[int, ForumTopic] = {}
        self.action: str | None = None
        self._state = state
        state.chats[id] = self

    @property
    def messages(self) -> list[TelegramMessage]:
        """The messages that are shown, oldest first."""
        with self._state.changed:
            return [one for one in self.history.values() if not one.deleted]

    def message(self, id: int) -> TelegramMessage | None:
        found = self.history.get(id)
        return None if found is None or found.deleted else found

    def wait_for_reply(self, after: TelegramMessage, timeout: float = WAIT_SECONDS) -> TelegramMessage:
        """Wait for the first message of the bot after the given one, in the same topic."""

        def found() -> TelegramMessage | None:
            replies = [one for one in self.messages if one.is_by_the_bot and one.order > after.order]
            return next((one for one in replies if one.thread == after.thread), None)

        problem = "The bot did not reply. This is what there is:\n"
        message: TelegramMessage = self._state.wait_until(found, timeout, lambda: problem + str(self))
        return message

    def json(self) -> dict[str, Any]:
        return {"id": self.id, "type": self.kind, "first_name": self.title}

    def __str__(self) -> str:
        return "\n".join(map(str, self.messages)) or "(nothing)"


class TelegramGroup(TelegramChat):
    """A chat of several users and the bot. As a forum it has topics."""

    def __init__(
        self, state: TelegramState, id: int, kind: str, title: str, users: Iterable[TelegramUser], *, forum: bool
    ) -> None:
        super().__init__(state, id, kind, title, users)
        self.forum = forum
        state.post(self, self.users[0], extra={"new_chat_members": [state.bot.json()]})

    def topic(self, name: str) -> ForumTopic:
        """Open a topic, for ``says(..., thread=topic)``."""
        with self._state.changed:
            number = len(self.history) + 1
            self.topics[number] = ForumTopic(number, name)
            extra = {"forum_topic_created": {"name": name, "icon_color": 7322096}}
            self._state.post(self, self.users[0], extra=extra, thread=number)
            return self.topics[number]

    def json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"id": self.id, "type": self.kind, "title": self.title}
        return {**body, "is_forum": True} if self.forum else body


def _check(fine: bool, argument: str, problem: str) -> None:
    if not fine:
        raise InvalidInputError(argument, problem)
