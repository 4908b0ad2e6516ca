"""The people, and the chats they are in: what a person with a phone can do, and what they see."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.errors import InvalidInputError
from recollect.testing.telegram.formatting import Formatted, cut, length, with_found
from recollect.testing.telegram.keyboards import is_reaction
from recollect.testing.telegram.messages import Button, Message

if TYPE_CHECKING:
    from recollect.testing.telegram.world import World

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
PATIENCE = 20.0
"""Seconds that people wait for an answer unless told otherwise."""


class Person:
    """Somebody who writes to the bot. ``private`` is their chat with it. The bot itself is a person, too."""

    def __init__(
        self,
        world: World,
        id: int,
        first_name: str,
        username: str | None = None,
        language_code: str | None = None,
        *,
        is_bot: bool = False,
    ) -> None:
        self.world = world
        self.id = id
        self.first_name = first_name
        self.username = username
        self.language_code = language_code
        self.is_bot = is_bot
        self.has_blocked = False
        self.private = Chat(world, id, "private", first_name, [self])

    @property
    def name(self) -> str:
        return self.first_name

    def json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name}
        if self.username:
            body["username"] = self.username
        if self.language_code:
            body["language_code"] = self.language_code
        return body

    def __repr__(self) -> str:
        return f"<Person {self.id} {self.first_name}>"

    # what they do

    def says(
        self,
        text: str,
        chat: Chat | None = None,
        *,
        reply_to: Message | None = None,
        thread: Topic | int | None = None,
    ) -> Message:
        """Writes something: to the bot, or into the given chat."""
        return self._send(chat, Formatted(text), reply_to=reply_to, thread=thread)

    def forwards(
        self,
        what: Message | str,
        chat: Chat | None = None,
        *,
        from_: Person | Chat | str | None = None,
        thread: Topic | int | None = None,
    ) -> Message:
        """Forwards a message, or a text that somebody elsewhere wrote; a name alone is somebody who hides."""
        author, files = from_, {}
        if isinstance(what, Message):
            content, when, author = what.content, what.date, from_ or what.sender
            files = {"document": what.document, "photo": what.photo}
        else:
            content, when = Formatted(what), self.world.now()
        if author is None:
            raise InvalidInputError("from_", "say whose text this is: a Person, a Chat or a name")
        if isinstance(author, Person):
            origin = {"type": "user", "date": when, "sender_user": author.json()}
        elif isinstance(author, Chat):
            origin = {"type": "chat", "date": when, "sender_chat": author.json()}
        else:
            origin = {"type": "hidden_user", "date": when, "sender_user_name": author}
        return self._send(chat, content, thread=thread, origin=origin, **files)

    def sends_photo(
        self, caption: str = "", chat: Chat | None = None, *, content: bytes = b"\xff\xd8", **more: Any
    ) -> Message:
        """Sends a photo; ``reply_to`` and ``thread`` are as for `says`."""
        with self.world.changed:
            return self._send(chat, Formatted(caption), photo=self.world.keep("", content, width=320), **more)

    def sends_document(
        self, name: str, content: bytes, caption: str = "", chat: Chat | None = None, **more: Any
    ) -> Message:
        """Sends a document; ``reply_to`` and ``thread`` are as for `says`."""
        with self.world.changed:
            return self._send(chat, Formatted(caption), document=self.world.keep(name, content), **more)

    def edits(self, message: Message, text: str) -> Message:
        """Changes what they wrote."""
        with self.world.changed:
            if message.sender is not self or message.deleted:
                raise InvalidInputError("message", "people edit only what they wrote themselves and is still there")
            content = _typed(text, message.document is not None or message.photo is not None)
            if content == message.content:
                raise InvalidInputError("text", "the message says this already")
            self.world.edit(message, content, message.markup)
            if self.world.bot_hears(message):
                self.world.updates.add("edited_message", message.json())
            return message

    def deletes(self, message: Message) -> None:
        """Takes a message away, for all. Telegram tells no bot about this."""
        self._check_member(message.chat)
        self.world.delete(message)

    def presses(self, button: Button | str, message: Message) -> Press:
        """Presses a button; a `Button` that was seen earlier may be pressed even if the bot has taken it away since."""
        with self.world.changed:
            self._check_member(message.chat)
            pressed = button
            if isinstance(pressed, str):
                there = [one for row in message.buttons for one in row]
                fitting = [one for one in there if one.label == pressed]
                if message.deleted or not fitting:
                    labels = [one.label for one in there]
                    raise InvalidInputError("button", f"the message has no button {button!r}, only {labels}")
                pressed = fitting[0]
            if pressed.data is None:
                raise InvalidInputError(
                    "button", f"{pressed.label!r} leads to {pressed.url}, the bot never hears of it"
                )
            return self.world.press(self, pressed.data, message)

    def reacts(self, emoji: str | None, message: Message) -> None:
        """Puts a reaction on a message, instead of the one they had; None takes it away."""
        if emoji is not None and not is_reaction(emoji):
            raise InvalidInputError("emoji", f"{emoji!r} is none of Telegram's reactions")
        with self.world.changed:
            self._check_member(message.chat)
            old = message.reactions.get(self)
            self.world.react(self, emoji, message)
            if self.world.bot_hears_reactions(message.chat):
                body = {
                    "chat": message.chat.json(),
                    "message_id": message.id,
                    "date": self.world.now(),
                    "user": self.json(),
                    "old_reaction": [{"type": "emoji", "emoji": old}] if old else [],
                    "new_reaction": [{"type": "emoji", "emoji": emoji}] if emoji else [],
                }
                self.world.updates.add("message_reaction", body)

    def blocks(self) -> None:
        """Stops the bot from writing to them."""
        with self.world.changed:
            if not self.has_blocked:
                self.has_blocked = True
                self.world.bot_moved(self, self.private, "member", "kicked")

    def unblocks(self) -> None:
        with self.world.changed:
            if self.has_blocked:
                self.has_blocked = False
                self.world.bot_moved(self, self.private, "kicked", "member")

    def joins(self, group: Group) -> None:
        with self.world.changed:
            if self in group.people:
                raise InvalidInputError("group", f"{self.name} is in {group.title} already")
            group.people.append(self)
            self.world.member_moved(self, group, "left", "member")
            self.world.post(group, self, service={"new_chat_members": [self.json()]})

    def leaves(self, group: Group) -> None:
        with self.world.changed:
            self._check_member(group)
            group.people.remove(self)
            self.world.member_moved(self, group, "member", "left")
            self.world.post(group, self, service={"left_chat_member": self.json()})

    # what they see

    def sees(self, chat: Chat | None = None) -> list[Message]:
        """All messages on their screen, oldest first: of one chat, or of all their chats."""
        with self.world.changed:
            chats = [chat] if chat is not None else [self.private, *self.world.groups_of(self)]
            return sorted((one for each in chats for one in each.messages), key=lambda one: one.order)

    def waits_for(
        self,
        what: str | Callable[[Message], bool],
        timeout: float = PATIENCE,
        *,
        chat: Chat | None = None,
        after: Message | None = None,
    ) -> Message:
        """Waits until they see a message of somebody else with this text in it, or one that ``what`` says yes to.

        What is there already counts, unless it was there before ``after``. An edited message is looked at again.
        """
        wanted = (lambda one: what in one.text) if isinstance(what, str) else what

        def fits(message: Message) -> bool:
            mine = message.chat is chat if chat is not None else self in message.chat.people
            return mine and message.sender is not self and not message.deleted and wanted(message)

        start = 0 if after is None else after.order + 1
        return self.world.wait_for(
            fits, start, timeout, lambda: f"{self.name} waited for {what!r} and sees only:\n{_screen(self.sees(chat))}"
        )

    def _send(
        self, chat: Chat | None, content: Formatted, *, thread: Topic | int | None = None, **more: Any
    ) -> Message:
        with self.world.changed:
            place = chat or self.private
            self._check_member(place)
            if place is self.private and self.has_blocked:
                raise InvalidInputError("chat", f"{self.name} blocked the bot: unblocks() first")
            typed = _typed(content, bool(more.get("document") or more.get("photo")))
            number = thread.id if isinstance(thread, Topic) else thread
            if number is not None and number not in place.topics:
                raise InvalidInputError("thread", f"there is no topic {number} in this chat")
            return self.world.post(place, self, typed, thread=number, **more)

    def _check_member(self, chat: Chat) -> None:
        if self not in chat.people:
            raise InvalidInputError("chat", f"{self.name} is not in {chat.title}: joins() first")


@dataclass(eq=False)
class Press:
    """A button that was pressed, and what the bot showed for it: a word at the top, or an alert."""

    world: World
    id: str
    person: Person
    message: Message
    data: str
    answered: bool = False
    expired: bool = False
    text: str = ""
    alert: bool = False
    url: str = ""

    def waits(self, timeout: float = PATIENCE) -> Press:
        """Until the bot has answered, which ends the little clock on the button."""
        what = f"{self.person.name} pressed {self.data!r} and the bot never answered"
        self.world.wait_until(lambda: self.answered, timeout, lambda: what)
        return self

    def expires(self) -> None:
        """From now on, the bot is too late."""
        with self.world.changed:
            self.expired = True


@dataclass(frozen=True)
class Topic:
    """A topic of a forum; its id is the thread's."""

    id: int
    name: str


class Chat:
    """A place with messages. ``str(chat)`` is the whole screen as text."""

    def __init__(self, world: World, id: int, kind: str, title: str, people: Iterable[Person]) -> None:
        self.world = world
        self.id = id
        self.kind = kind
        self.title = title
        self.people = list(people)
        self.everything: dict[int, Message] = {}
        self.topics: dict[int, Topic] = {}
        self.action: str | None = None
        """What the bot says it is doing ("typing"), until it sends something."""
        self.started = False
        """Whether the bot may write here."""

    @property
    def messages(self) -> list[Message]:
        """What is to be seen, oldest first."""
        with self.world.changed:
            return [one for one in self.everything.values() if not one.deleted]

    def message(self, id: int) -> Message | None:
        """A message that is still there."""
        found = self.everything.get(id)
        return None if found is None or found.deleted else found

    def wait_for_reply(self, after: Message | None = None, timeout: float = PATIENCE) -> Message:
        """The first message of the bot after the given one (or after the last that a person wrote), in its thread."""
        with self.world.changed:
            said = [one for one in self.everything.values() if not one.is_by_the_bot]
            start = after or (said[-1] if said else None)
        order = -1 if start is None else start.order
        topic = start.thread if start is not None and start.in_topic else None

        def fits(one: Message) -> bool:
            fresh = one.chat is self and one.is_by_the_bot and one.order > order and not one.deleted
            return fresh and (start is None or (one.thread if one.in_topic else None) == topic)

        what = "The bot did not reply. What is there:\n"
        return self.world.wait_for(fits, order + 1, timeout, lambda: what + str(self))

    def json(self) -> dict[str, Any]:
        person = self.people[0]
        body: dict[str, Any] = {"id": self.id, "type": self.kind, "first_name": person.first_name}
        return {**body, "username": person.username} if person.username else body

    def __str__(self) -> str:
        return _screen(self.messages)


class Group(Chat):
    """A chat of several people and, usually, the bot. As a forum it has topics."""

    def __init__(
        self, world: World, id: int, kind: str, title: str, people: Iterable[Person], *, forum: bool, admin: bool
    ) -> None:
        super().__init__(world, id, kind, title, people)
        self.forum = forum
        self.has_bot = False
        self.bot_is_admin = admin
        self.creator: Person | None = self.people[0] if self.people else None

    def topic(self, name: str, by: Person | None = None) -> Topic:
        """Opens a topic, for ``says(..., thread=topic)``."""
        if not self.forum:
            raise InvalidInputError("group", f"{self.title} has no topics: make it with forum=True")
        with self.world.changed:
            author = self._actor(by)
            made = {"name": name, "icon_color": 7322096}
            message = self.world.post(self, author, service={"forum_topic_created": made}, opens_topic=True)
            return self.topics[message.id]

    def adds_bot(self, by: Person | None = None, *, admin: bool = False) -> None:
        """Somebody brings the bot in."""
        with self.world.changed:
            if self.has_bot:
                raise InvalidInputError("group", f"the bot is in {self.title} already")
            self.has_bot, self.bot_is_admin = True, admin
            self.world.bot_moved(self._actor(by), self, "left", "administrator" if admin else "member")
            self.world.post(self, self._actor(by), service={"new_chat_members": [self.world.bot.json()]})

    def removes_bot(self, by: Person | None = None) -> None:
        """Somebody throws the bot out."""
        with self.world.changed:
            if not self.has_bot:
                raise InvalidInputError("group", f"the bot is not in {self.title}")
            status = "administrator" if self.bot_is_admin else "member"
            self.world.bot_moved(self._actor(by), self, status, "kicked")
            self.world.post(self, self._actor(by), service={"left_chat_member": self.world.bot.json()})
            self.has_bot = False

    def becomes_supergroup(self) -> int:
        """Gives the group its new id, as Telegram does when a group grows; what is sent to the old id is refused."""
        if self.kind != "group":
            raise InvalidInputError("group", f"{self.title} is a supergroup already")
        return self.world.migrate(self)

    def json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"id": self.id, "type": self.kind, "title": self.title}
        return {**body, "is_forum": True} if self.forum else body

    def _actor(self, by: Person | None) -> Person:
        if by is None and not self.people:
            raise InvalidInputError("by", "the group has no people: say who does this")
        return by or self.people[0]


def _typed(content: Formatted | str, is_caption: bool) -> Formatted:
    """What somebody typed, as it is sent: with the entities that Telegram finds; raises InvalidInputError."""
    typed = with_found(cut(content if isinstance(content, Formatted) else Formatted(content)))
    most = LONGEST_CAPTION if is_caption else LONGEST_TEXT
    if not typed.text and not is_caption:
        raise InvalidInputError("text", "nobody can send a message without text")
    if length(typed.text) > most:
        raise InvalidInputError("text", f"people send at most {most} characters at once: send it in parts")
    return typed


def _screen(messages: Iterable[Message]) -> str:
    return "\n".join(str(one) for one in messages) or "(nothing)"
