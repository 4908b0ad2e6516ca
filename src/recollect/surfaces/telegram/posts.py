"""Topics of discussions: posts that a program delivered, and forwarded messages.

A delivered post is found by its message, in the memory of the person who got it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.errors import InvalidInputError
from recollect.memory.memory import Memory

DISCUSS, SAVE = "post discuss", "post save"
"""The commands of the buttons under a post."""
BUTTONS = (("💬 Discuss", DISCUSS), ("⭐ Save", SAVE))
_LONGEST_TITLE = 120
_MOST_LOOKED_AT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Something to read that a program delivers to a person. Each ``id``, chosen by the program, is delivered once."""

    id: str
    title: str
    text: str = ""
    url: str | None = None
    topics: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name, value, most in (("id", self.id, 200), ("title", self.title, 300), ("text", self.text, 20_000)):
            if not isinstance(value, str) or len(value) > most or (name != "text" and not value.strip()):
                raise InvalidInputError(name, f"must be text of at most {most} characters")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise InvalidInputError("url", "must begin with http:// or https://")

    @property
    def about(self) -> dict[str, Any]:
        """The arguments for `Memory.report`."""
        text = "\n".join(part for part in (self.text, self.url) if part)
        return {"item": self.id, "title": self.title, "text": text or None, "topics": list(self.topics)}


@dataclass(frozen=True, slots=True)
class PostTopic:
    """The topic of a message, as far as it is known."""

    title: str
    text: str
    item: str | None = None
    topics: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that starts a discussion of it."""
        return f"/discuss {self.title}\n{self.text}" if self.text.strip() else f"/discuss {self.title}"

    @property
    def about(self) -> dict[str, Any]:
        """The arguments for `Memory.report`."""
        return {"item": self.item, "title": self.title, "topics": list(self.topics)}


def delivery_id(chat: int, message: int) -> str:
    """Return the id of a delivery."""
    return f"telegram:{chat}:{message}"


def delivered_post(memory: Memory, chat: int, message: int) -> PostTopic | None:
    """Return the post that was delivered as this message, if any."""
    if not memory.exists:
        return None
    wanted = delivery_id(chat, message)
    for one in memory.interactions(kinds=("delivery",), newest_first=True, limit=_MOST_LOOKED_AT):
        if one.id == wanted:
            return PostTopic(one.title or "A post", one.text or "", one.item, one.topics)
    return None


def message_topic(message: Mapping[str, Any]) -> PostTopic | None:
    """Return the content of a message as a topic to discuss."""
    text = str(message.get("text") or message.get("caption") or "").strip()
    if not text:
        return None
    first = " ".join(text.partition("\n")[0].split())
    title = first if len(first) <= _LONGEST_TITLE else f"{first[: _LONGEST_TITLE - 1].rstrip()}…"
    return PostTopic(title, text if text != title else "")
