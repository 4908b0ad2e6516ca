"""The state of a small Telegram: who there is, what was sent, and who hears of it. Knows nothing about HTTP.

One lock, ``changed``, guards all of it; whoever changes something says so there, and nobody waits in another way.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect.errors import InvalidInputError
from recollect.testing.telegram.changes import Changes
from recollect.testing.telegram.formatting import Formatted
from recollect.testing.telegram.messages import File, Message
from recollect.testing.telegram.people import Chat, Group, Person, Press, Topic
from recollect.testing.telegram.updates import Updates


class World:
    """Everything that there is. Its methods may be called from any thread."""

    def __init__(
        self, clock: Callable[[], datetime], bot_id: int, bot_name: str, username: str, *, privacy: bool
    ) -> None:
        self.changed = Changes()
        self.clock = clock
        self.privacy = privacy
        self.updates = Updates(self.changed, self.now)
        self.journal: list[Message] = []
        self.people: dict[int, Person] = {}
        self.chats: dict[int, Chat] = {}
        self.migrated: dict[int, int] = {}
        self.presses: dict[str, Press] = {}
        self.files: dict[str, File] = {}
        self.bot = Person(self, bot_id, bot_name, username, is_bot=True)
        self._numbers = itertools.count(1)

    def now(self) -> int:
        return int(self.clock().timestamp())

    # who there is

    def person(
        self, first_name: str, username: str | None, language_code: str | None, id: int | None, *, is_bot: bool
    ) -> Person:
        with self.changed:
            if not first_name:
                raise InvalidInputError("first_name", "on Telegram everybody has a first name")
            free = (1000 + number for number in self._numbers if 1000 + number not in self.people)
            number = id if id is not None else next(free)
            if number <= 0 or number in self.people or number == self.bot.id:
                raise InvalidInputError("id", f"{number} is taken or not above 0")
            person = Person(self, number, first_name, username, language_code, is_bot=is_bot)
            self.people[number] = person
            self.chats[number] = person.private
            return person

    def group(
        self, title: str, people: Sequence[Person], *, forum: bool, basic: bool, admin: bool, with_bot: bool
    ) -> Group:
        if forum and basic:
            raise InvalidInputError("basic", "only supergroups have topics")
        with self.changed:
            number = next(self._numbers)
            id = -(4_000_000 + number) if basic else -(1_001_000_000_000 + number)
            group = Group(self, id, "group" if basic else "supergroup", title, people, forum=forum, admin=admin)
            group.started = True
            self.chats[id] = group
            if with_bot:
                group.adds_bot(admin=admin)
            return group

    def groups_of(self, person: Person) -> list[Group]:
        return [one for one in self.chats.values() if isinstance(one, Group) and person in one.people]

    def user(self, id: int) -> Mapping[str, Any] | None:
        person = self.bot if id == self.bot.id else self.people.get(id)
        return None if person is None else person.json()

    def keep(self, name: str, content: bytes, width: int = 0) -> File:
        file = File(f"file{next(self._numbers)}", name, content, width)
        self.files[file.id] = file
        return file

    # what happens

    def post(
        self,
        chat: Chat,
        sender: Person,
        content: Formatted = Formatted(),  # noqa: B008 - it never changes
        *,
        thread: int | None = None,
        reply_to: Message | None = None,
        opens_topic: bool = False,
        **more: Any,
    ) -> Message:
        """A new message, which the bot hears of if it may."""
        with self.changed:
            id = len(chat.everything) + 1
            in_topic = thread is not None
            if reply_to is not None:
                if reply_to.chat is not chat or reply_to.deleted:
                    raise InvalidInputError("reply_to", "reply to a message that is still there, in the same chat")
                if thread is None and reply_to.in_topic:
                    thread, in_topic = reply_to.thread, True
                elif thread is None and chat.kind == "supergroup":
                    thread = reply_to.thread or reply_to.id
            if opens_topic:
                thread, in_topic = id, True
                chat.topics[id] = Topic(id, more["service"]["forum_topic_created"]["name"])
            message = Message(
                chat, id, sender, self.now(), len(self.journal), content, thread, in_topic, reply_to, **more
            )
            chat.everything[id] = message
            if sender is self.bot:
                chat.action = None
            elif chat.kind == "private":
                chat.started = True
            self._note(message)
            if self.bot_hears(message):
                self.updates.add("message", message.json())
            return message

    def edit(self, message: Message, content: Formatted, markup: Mapping[str, Any] | None) -> None:
        with self.changed:
            if content != message.content:
                message.versions.append(message.text)
                message.edited_at = max(self.now(), message.date)
            message.content, message.markup = content, markup
            self._note(message)

    def delete(self, message: Message) -> None:
        with self.changed:
            message.deleted = True
            self._note(message)

    def react(self, person: Person, emoji: str | None, message: Message) -> None:
        with self.changed:
            message.reactions.pop(person, None)
            if emoji is not None:
                message.reactions[person] = emoji
            self._note(message)

    def press(self, person: Person, data: str, message: Message) -> Press:
        with self.changed:
            press = Press(self, str(9_000_000_000 + next(self._numbers)), person, message, data)
            self.presses[press.id] = press
            gone = {"chat": message.chat.json(), "message_id": message.id, "date": 0}
            body = {
                "id": press.id,
                "from": person.json(),
                "message": gone if message.deleted else message.json(),
                "chat_instance": str(abs(message.chat.id) * 7919),
                "data": data,
            }
            self.updates.add("callback_query", body)
            return press

    def migrate(self, group: Group) -> int:
        with self.changed:
            old, new = group.id, -(1_001_500_000_000 + next(self._numbers))
            author = group.creator or self.bot
            self.post(group, author, service={"migrate_to_chat_id": new})
            group.id, group.kind = new, "supergroup"
            self.chats[new] = self.chats.pop(old)
            self.migrated[old] = new
            self.post(group, author, service={"migrate_from_chat_id": old})
            return new

    def bot_moved(self, by: Person, chat: Chat, old: str, new: str) -> None:
        """The bot was let in or thrown out."""
        body = self._membership(self.bot, by, chat, old, new)
        self.updates.add("my_chat_member", body)
        self.changed.tell()

    def member_moved(self, person: Person, group: Group, old: str, new: str) -> None:
        if group.has_bot and group.bot_is_admin:
            self.updates.add("chat_member", self._membership(person, person, group, old, new))

    # who hears what

    def bot_hears(self, message: Message) -> bool:
        """Bots do not hear bots; in groups, with privacy mode on, they hear only what is meant for them."""
        chat = message.chat
        if message.sender.is_bot:
            return False
        if not isinstance(chat, Group):
            return True
        if not chat.has_bot:
            return False
        if not self.privacy or chat.bot_is_admin or message.service is not None:
            return True
        if message.reply_to is not None and message.reply_to.sender is self.bot:
            return True
        return any(self._means_bot(message, one) for one in message.entities)

    def bot_hears_reactions(self, chat: Chat) -> bool:
        return not isinstance(chat, Group) or (chat.has_bot and chat.bot_is_admin)

    def member(self, person: Person, chat: Chat) -> dict[str, Any]:
        """How somebody belongs to a chat, as the Bot API writes it."""
        if not isinstance(chat, Group):
            return _member(person, "member")
        if person is self.bot:
            status = ("administrator" if chat.bot_is_admin else "member") if chat.has_bot else "left"
        elif person in chat.people:
            status = "creator" if person is chat.creator else "member"
        else:
            status = "left"
        return _member(person, status)

    # waiting

    def wait_until(self, condition: Callable[[], Any], timeout: float, what: Callable[[], str]) -> Any:
        """Until the condition holds, looked at whenever something happens; raises TimeoutError."""
        with self.changed:
            found = self.changed.wait_for(condition, timeout)
            if not found:
                raise TimeoutError(what())
            return found

    def wait_for(self, fits: Callable[[Message], bool], start: int, timeout: float, what: Callable[[], str]) -> Message:
        """The first message that fits, of those that came or changed since the given place of the journal."""
        place = start

        def found() -> Message | None:
            nonlocal place
            while place < len(self.journal):
                message = self.journal[place]
                place += 1
                if fits(message):
                    return message
            return None

        message: Message = self.wait_until(found, timeout, what)
        return message

    def _note(self, message: Message) -> None:
        self.journal.append(message)
        self.changed.tell()

    def _means_bot(self, message: Message, entity: Any) -> bool:
        words = message.content.of(entity).lower()
        ours = f"@{self.bot.username}".lower()
        if entity.type == "bot_command":
            return "@" not in words or words.endswith(ours)
        if entity.type == "text_mention":
            return bool(entity.user and entity.user["id"] == self.bot.id)
        return entity.type == "mention" and words == ours

    def _membership(self, person: Person, by: Person, chat: Chat, old: str, new: str) -> dict[str, Any]:
        return {
            "chat": chat.json(),
            "from": by.json(),
            "date": self.now(),
            "old_chat_member": _member(person, old),
            "new_chat_member": _member(person, new),
        }


_RIGHTS = (
    "can_be_edited is_anonymous can_manage_chat can_delete_messages can_manage_video_chats can_restrict_members"
    " can_promote_members can_change_info can_invite_users can_post_stories can_edit_stories can_delete_stories"
    " can_pin_messages can_manage_topics"
).split()


def _member(person: Person, status: str) -> dict[str, Any]:
    body: dict[str, Any] = {"user": person.json(), "status": status}
    if status == "creator":
        body["is_anonymous"] = False
    elif status == "kicked":
        body["until_date"] = 0
    elif status == "administrator":
        body.update({right: right not in ("can_be_edited", "is_anonymous") for right in _RIGHTS})
    return body
