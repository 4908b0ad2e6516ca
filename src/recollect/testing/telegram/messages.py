"""A message as it is on everybody's screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recollect.testing.telegram.text import NO_TEXT, Entity, FormattedText

if TYPE_CHECKING:
    from recollect.testing.telegram.chats import TelegramChat, TelegramUser


@dataclass(frozen=True)
class Button:
    """A button of an inline keyboard: ``data`` is what the bot gets when it is pressed, ``url`` where it leads."""

    label: str
    data: str | None = None
    url: str | None = None


@dataclass(frozen=True)
class UploadedFile:
    """A document, or a photo, which has no name."""

    id: str
    name: str
    content: bytes

    def json(self) -> dict[str, Any]:
        body = {"file_id": self.id, "file_unique_id": self.id, "file_size": len(self.content)}
        return {**body, "file_name": self.name} if self.name else {**body, "width": 320, "height": 240}


@dataclass(eq=False)
class TelegramMessage:
    """A message as it is shown now. ``str(message)`` is a picture of it in text.

    ``text`` is plain; for a file it is the caption. ``order`` and ``changed`` say when it was sent and last changed,
    counted over all messages.
    """

    chat: TelegramChat
    id: int
    sender: TelegramUser
    date: int
    order: int
    changed: int
    content: FormattedText = NO_TEXT
    thread: int | None = None
    reply_to: TelegramMessage | None = None
    origin: Mapping[str, Any] | None = None
    file: UploadedFile | None = None
    service: Mapping[str, Any] | None = None
    buttons: tuple[tuple[Button, ...], ...] = ()
    edited_at: int | None = None
    deleted: bool = False
    reactions: dict[TelegramUser, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.content.text

    @property
    def entities(self) -> tuple[Entity, ...]:
        return self.content.entities

    @property
    def document(self) -> UploadedFile | None:
        return self.file if self.file is not None and self.file.name else None

    @property
    def edited(self) -> bool:
        return self.edited_at is not None

    @property
    def is_by_the_bot(self) -> bool:
        return self.sender.is_bot

    @property
    def labels(self) -> list[list[str]]:
        """The labels of the buttons, row by row."""
        return [[button.label for button in row] for row in self.buttons]

    def json(self, *, with_reply: bool = True) -> dict[str, Any]:
        """Return the message as the Bot API writes it."""
        body: dict[str, Any] = {
            "message_id": self.id,
            "from": self.sender.json(),
            "chat": self.chat.json(),
            "date": self.date,
        }
        reply = self.reply_to
        if self.thread is not None:
            body |= {"message_thread_id": self.thread, "is_topic_message": True}
            # every message in a topic is a reply to the first one there
            reply = reply or (self.chat.message(self.thread) if self.thread != self.id else None)
        elif reply is not None and self.chat.kind == "supergroup":
            body["message_thread_id"] = reply.id
        if with_reply and reply is not None and not reply.deleted:
            body["reply_to_message"] = reply.json(with_reply=False)
        if self.origin is not None:
            body["forward_origin"] = dict(self.origin)
        if self.edited_at is not None:
            body["edit_date"] = self.edited_at
        text, entities = ("text", "entities") if self.file is None else ("caption", "caption_entities")
        if self.file is not None:
            body |= {"document": self.file.json()} if self.file.name else {"photo": [self.file.json()]}
        if self.text:
            body |= {text: self.text, entities: [entity.json() for entity in self.entities]}
        if self.buttons:
            body["reply_markup"] = {
                "inline_keyboard": [[_button_json(button) for button in row] for row in self.buttons]
            }
        return {**body, **(self.service or {})}

    def __str__(self) -> str:
        head = self.sender.first_name
        if self.thread is not None:
            head += f" in {self.chat.topics[self.thread].name}"
        if self.origin is not None:
            head += ", forwarded"
        if self.reply_to is not None:
            head += f", to {self.reply_to.sender.first_name}"
        file = f"(document {self.document.name})" if self.document else "(photo)" if self.file else ""
        service = f"({', '.join(self.service).replace('_', ' ')})" if self.service else ""
        shown = "\n".join(filter(None, (file, self.content.rendered(), service)))
        lines = [shown + (" (edited)" if self.edited else "")]
        lines += ["  ".join(f"[{label}]" for label in row) for row in self.labels]
        lines += [f"{emoji} {user.first_name}" for user, emoji in self.reactions.items()]
        return f"{head}: " + "\n".join(lines).replace("\n", "\n    ")


def _button_json(button: Button) -> dict[str, Any]:
    action = {"url": button.url} if button.url is not None else {"callback_data": button.data}
    return {"text": button.label, **action}
