"""A message as it is on everybody's screen. It changes when it is edited; knows nothing of who may do so."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recollect.testing.telegram.formatting import Entity, Formatted

if TYPE_CHECKING:
    from recollect.testing.telegram.people import Chat, Person


@dataclass(frozen=True)
class Button:
    """A button of an inline keyboard: ``data`` is what the bot hears when it is pressed, ``url`` where it leads."""

    label: str
    data: str | None = None
    url: str | None = None


@dataclass(frozen=True)
class File:
    """Something uploaded: a document, or a photo, which has no name."""

    id: str
    name: str
    content: bytes
    width: int = 0

    @property
    def mime(self) -> str:
        return mimetypes.guess_type(self.name)[0] or "application/octet-stream"

    def json(self) -> dict[str, Any]:
        size = {"file_id": self.id, "file_unique_id": f"u{self.id}", "file_size": len(self.content)}
        if self.width:
            return {**size, "width": self.width, "height": self.width * 3 // 4}
        return {**size, "file_name": self.name, "mime_type": self.mime}


@dataclass(eq=False)
class Message:
    """What somebody sent, as it is shown now.

    ``text`` is plain (for a document or photo it is the caption), ``entities`` say how it looks, ``drawn`` has both in
    one. ``buttons`` are the rows of its inline keyboard. ``versions`` are the texts that it had before it was edited.
    ``str(message)`` is a picture of it in text.
    """

    chat: Chat
    id: int
    sender: Person
    date: int
    order: int
    content: Formatted = Formatted()
    thread: int | None = None
    in_topic: bool = False
    reply_to: Message | None = None
    origin: Mapping[str, Any] | None = None
    document: File | None = None
    photo: File | None = None
    service: Mapping[str, Any] | None = None
    markup: Mapping[str, Any] | None = None
    edited_at: int | None = None
    deleted: bool = False
    versions: list[str] = field(default_factory=list)
    reactions: dict[Person, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.content.text

    @property
    def entities(self) -> tuple[Entity, ...]:
        return self.content.entities

    @property
    def drawn(self) -> str:
        """The text with its formatting as signs."""
        return self.content.drawn()

    @property
    def edited(self) -> bool:
        return self.edited_at is not None

    @property
    def is_by_the_bot(self) -> bool:
        return self.sender is self.chat.world.bot

    @property
    def buttons(self) -> tuple[tuple[Button, ...], ...]:
        rows = (self.markup or {}).get("inline_keyboard", ())
        return tuple(
            tuple(Button(one["text"], one.get("callback_data"), one.get("url")) for one in row) for row in rows
        )

    @property
    def labels(self) -> list[list[str]]:
        """What stands on the buttons, row by row."""
        return [[button.label for button in row] for row in self.buttons]

    @property
    def keyboard(self) -> tuple[tuple[str, ...], ...]:
        """The labels of a keyboard that replaces the person's own; to press one is to say it."""
        rows = (self.markup or {}).get("keyboard", ())
        return tuple(tuple(one if isinstance(one, str) else one["text"] for one in row) for row in rows)

    def stamped(self, name: str) -> list[Entity]:
        """Its entities of one type."""
        return [one for one in self.entities if one.type == name]

    def json(self, *, reply: bool = True) -> dict[str, Any]:
        """As the Bot API writes it."""
        body: dict[str, Any] = {
            "message_id": self.id,
            "from": self.sender.json(),
            "chat": self.chat.json(),
            "date": self.date,
        }
        if self.thread is not None:
            body["message_thread_id"] = self.thread
        if self.in_topic:
            body["is_topic_message"] = True
        if self.origin is not None:
            body["forward_origin"] = dict(self.origin)
        if reply and self.reply_to is not None and not self.reply_to.deleted:
            body["reply_to_message"] = self.reply_to.json(reply=False)
        elif reply and self.in_topic and self.thread is not None and self.thread != self.id:
            topic = self.chat.message(self.thread)
            if topic is not None:
                # every message in a topic is, for the Bot API, a reply to the topic's first
                body["reply_to_message"] = topic.json(reply=False)
        if self.edited_at is not None:
            body["edit_date"] = self.edited_at
        if self.document is not None:
            body["document"] = self.document.json()
        if self.photo is not None:
            body["photo"] = [self.photo.json()]
        if self.service is not None:
            body.update(self.service)
        name = "caption" if self.document or self.photo else "text"
        if self.text:
            body[name] = self.text
        if self.entities:
            body["caption_entities" if name == "caption" else "entities"] = [one.json() for one in self.entities]
        if self.markup and self.markup.get("inline_keyboard"):
            body["reply_markup"] = {"inline_keyboard": self.markup["inline_keyboard"]}
        return body

    def __str__(self) -> str:
        if self.deleted:
            return f"{self.sender.name}: (deleted)"
        head = self.sender.name
        if self.in_topic and self.thread is not None:
            head += f" in {self.chat.topics[self.thread].name}"
        if self.origin is not None:
            head += f", forwarded from {_origin_name(self.origin)}"
        if self.reply_to is not None:
            head += f", to {self.reply_to.sender.name}"
        lines = [part for part in (self._attached(), self.drawn) if part]
        if self.service is not None:
            lines.append(f"({', '.join(self.service).replace('_', ' ')})")
        if self.edited:
            lines[-1:] = [f"{lines[-1] if lines else ''} (edited)"]
        lines += ["  ".join(f"[{label}]" for label in row) for row in self.labels]
        lines += ["  ".join(f"<{label}>" for label in row) for row in self.keyboard]
        if self.reactions:
            lines.append(" ".join(f"{emoji} {person.name}" for person, emoji in self.reactions.items()))
        return f"{head}: " + "\n    ".join("\n".join(lines).split("\n"))

    def _attached(self) -> str:
        if self.document is not None:
            return f"(document {self.document.name}, {len(self.document.content)} bytes)"
        return "(photo)" if self.photo is not None else ""


def _origin_name(origin: Mapping[str, Any]) -> str:
    if "sender_user" in origin:
        return str(origin["sender_user"]["first_name"])
    if "sender_chat" in origin:
        return str(origin["sender_chat"]["title"])
    return str(origin["sender_user_name"])
