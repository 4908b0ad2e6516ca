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

    def json(self) -> dict[str, Any]:
        return {"text": self.label, **({"callback_data": self.data} if self.url is None else {"url": self.url})}


@dataclass(frozen=True)
class UploadedFile:
    """A document."""

    name: str
    content: bytes

    def json(self) -> dict[str, Any]:
        size = len(self.content)
        return {"file_id": self.name, "file_unique_id": self.name, "file_size": size, "file_name": self.name}


@dataclass(eq=False)
class TelegramMessage:
    """A message as it is shown now. ``str(message)`` is a picture of it in text.

    ``text`` is plain; for a document it is the caption. ``order`` and ``changed`` say when it was sent and last
    changed, counted over all messages. ``extra`` are more fields of its JSON: a message without text and document, but
    with such fields, is one of Telegram itself.
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
    document: UploadedFile | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    buttons: tuple[tuple[Button, ...], ...] = ()
    edited_at: int | None = None
    deleted: bool = False

    @property
    def text(self) -> str:
        return self.content.text

    @property
    def entities(self) -> tuple[Entity, ...]:
        return self.content.entities

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
        head = {"message_id": self.id, "from": self.sender.json(), "chat": self.chat.json(), "date": self.date}
        body: dict[str, Any] = head | dict(self.extra)
        reply = self.reply_to
        if self.thread is not None:
            body |= {"message_thread_id": self.thread, "is_topic_message": True}
            # every message in a topic is a reply to the first one there
            reply = reply or (self.chat.message(self.thread) if self.thread != self.id else None)
        elif reply is not None and self.chat.kind == "supergroup":
            body["message_thread_id"] = reply.id
        if with_reply and reply is not None and not reply.deleted:
            body["reply_to_message"] = reply.json(with_reply=False)
        if self.edited_at is not None:
            body["edit_date"] = self.edited_at
        text, entities = ("text", "entities") if self.document is None else ("caption", "caption_entities")
        if self.document is not None:
            body["document"] = self.document.json()
        if self.text:
            body |= {text: self.text, entities: [entity.json() for entity in self.entities]}
        if self.buttons:
            body["reply_markup"] = {"inline_keyboard": [[button.json() for button in row] for row in self.buttons]}
        return body

    def __str__(self) -> str:
        head = self.sender.first_name
        if self.thread is not None:
            head += f" in {self.chat.topics[self.thread].name}"
        if self.reply_to is not None:
            head += f", to {self.reply_to.sender.first_name}"
        document = f"(document {self.document.name})" if self.document else ""
        extra = f"({', '.join(self.extra).replace('_', ' ')})" if self.extra else ""
        shown = "\n".join(filter(None, (document, self.content.rendered(), extra)))
        lines = [shown + (" (edited)" if self.edited else "")]
        lines += ["  ".join(f"[{label}]" for label in row) for row in self.labels]
        return f"{head}: " + "\n".join(lines).replace("\n", "\n    ")
