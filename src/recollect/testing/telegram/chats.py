"""The users and their chats: what somebody with a phone can do, and what they see."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.errors import InvalidInputError
from recollect.testing.telegram.messages import Button, TelegramMessage, UploadedFile
from recollect.testing.telegram.text import NO_TEXT, Entity, FormattedText, plain_text, utf16_length
from recollect.testing.telegram.updates import UpdateQueue

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
WAIT_SECONDS = 20.0
"""How long a test waits for something by default."""


class TelegramState:
    """Everything in this Telegram. One lock, ``changed``, guards it and is notified of every change."""

    def __init__(self, clock: Callable[[], datetime], bot_id: int, bot_name: str, bot_username: str) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.updates = UpdateQueue(self.changed)
        self.chats: dict[int, TelegramChat] = {}
        self.migrated: dict[int, int] = {}
        """The new ids of groups that became supergroups."""
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
                chat.started = True
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

    def membership(self, chat: TelegramChat, by: TelegramUser, old: str, new: str) -> None:
        """Tell the bot that it was let in or removed."""
        body: dict[str, Any] = {"chat": chat.json(), "from": by.json(), "date": self.now()}
        for name, status in (("old_chat_member", old), ("new_chat_member", new)):
            body[name] = {"user": self.bot.json(), "status": status} | ({"until_date": 0} if status == "kicked" else {})
        self.updates.add("my_chat_member", body)

    def _bot_reads(self, message: TelegramMessage) -> bool:
        """Return whether the bot gets a message: in groups only what is meant for it."""
        chat = message.chat
        if message.sender.is_bot or not isinstance(chat, TelegramGroup):
            return not message.sender.is_bot
        replied = message.reply_to is not None and message.reply_to.sender is self.bot
        meant = message.service is not None or replied or any(self._names_bot(message, one) for one in message.entities)
        return chat.has_bot and meant

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
        self.has_blocked = False
        self.private = TelegramChat(state, id, "private", first_name, [self])
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

    def forwards(self, text: str, chat: TelegramChat | None = None, *, from_: TelegramUser | str) -> TelegramMessage:
        """Forward a text of another user; a name alone is somebody who hides their account."""
        origin: dict[str, Any] = {"date": self._state.now()}
        if isinstance(from_, str):
            origin |= {"type": "hidden_user", "sender_user_name": from_}
        else:
            origin |= {"type": "user", "sender_user": from_.json()}
        return self._send(text, chat, origin=origin)

    def sends_photo(self, caption: str = "", chat: TelegramChat | None = None) -> TelegramMessage:
        return self._send(caption, chat, file=UploadedFile("photo", "", b"\xff\xd8"))

    def sends_document(
        self, name: str, content: bytes, caption: str = "", chat: TelegramChat | None = None
    ) -> TelegramMessage:
        return self._send(caption, chat, file=UploadedFile("document", name, content))

    def edits(self, message: TelegramMessage, text: str) -> TelegramMessage:
        """Change the text of their own message."""
        _check(message.sender is self and not message.deleted, "message", "users edit only their own messages")
        self._state.change(message, content=_typed(text, is_caption=message.file is not None))
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

    def reacts(self, emoji: str | None, message: TelegramMessage) -> None:
        """React to a message, instead of an earlier reaction; None removes it. In groups the bot is not told."""
        with self._state.changed:
            old = message.reactions.pop(self, None)
            if emoji is not None:
                message.reactions[self] = emoji
            if message.chat is self.private:
                body = {"chat": message.chat.json(), "message_id": message.id, "date": self._state.now()}
                for name, one in (("old_reaction", old), ("new_reaction", emoji)):
                    body[name] = [{"type": "emoji", "emoji": one}] if one else []
                self._state.updates.add("message_reaction", {**body, "user": self.json()})

    def blocks(self) -> None:
        """Stop the bot from writing to them."""
        self.has_blocked = True
        self._state.membership(self.private, self, "member", "kicked")

    def unblocks(self) -> None:
        self.has_blocked = False
        self._state.membership(self.private, self, "kicked", "member")

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
        _check(place is not self.private or not self.has_blocked, "chat", f"{self.first_name} has blocked the bot")
        return self._state.post(place, self, _typed(text, is_caption="file" in more), **more)


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
    """A chat with its messages. ``str(chat)`` is the whole screen as text."""

    def __init__(self, state: TelegramState, id: int, kind: str, title: str, users: Iterable[TelegramUser]) -> None:
        self.id = id
        self.kind = kind
        self.title = title
        self.users = list(users)
        self.history: dict[int, TelegramMessage] = {}
        """All messages by id, also the deleted ones. Ids count from 1 in each chat."""
        self.topics: dict[int, ForumTopic] = {}
        self.action: str | None = None
        """The action that the bot shows ("typing"), until it sends something."""
        self.started = False
        """Whether the user has written to the bot, so it may write here."""
        self._state = state

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

    has_bot = True
    forum = False

    def topic(self, name: str) -> ForumTopic:
        """Open a topic, for ``says(..., thread=topic)``."""
        with self._state.changed:
            number = len(self.history) + 1
            self.topics[number] = ForumTopic(number, name)
            service = {"forum_topic_created": {"name": name, "icon_color": 7322096}}
            self._state.post(self, self.users[0], service=service, thread=number)
            return self.topics[number]

    def removes_bot(self) -> None:
        """Remove the bot from the group."""
        with self._state.changed:
            self._state.membership(self, self.users[0], "member", "kicked")
            self._state.post(self, self.users[0], service={"left_chat_member": self._state.bot.json()})
            self.has_bot = False

    def becomes_supergroup(self) -> int:
        """Give the group a new id, as Telegram does when a group grows; what is sent to the old id is refused."""
        with self._state.changed:
            old, new = self.id, -(1_001_500_000_000 + next(self._state.numbers))
            self._state.post(self, self.users[0], service={"migrate_to_chat_id": new})
            self.id, self.kind = new, "supergroup"
            self._state.chats[new] = self._state.chats.pop(old)
            self._state.migrated[old] = new
            self._state.post(self, self.users[0], service={"migrate_from_chat_id": old})
            return new

    def json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"id": self.id, "type": self.kind, "title": self.title}
        return {**body, "is_forum": True} if self.forum else body


def _typed(text: str, *, is_caption: bool) -> FormattedText:
    typed, most = plain_text(text), LONGEST_CAPTION if is_caption else LONGEST_TEXT
    _check(bool(typed.text) or is_caption, "text", "nobody can send a message without text")
    _check(utf16_length(typed.text) <= most, "text", f"users send at most {most} characters at once")
    return typed


def _check(fine: bool, argument: str, problem: str) -> None:
    if not fine:
        raise InvalidInputError(argument, problem)
