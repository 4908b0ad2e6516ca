"""What a person is shown, whatever the channel: short lines, and what they can choose. Channels only draw it.

Text from a memory stands in a line as it is: whoever draws it escapes it in the way of the channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Style = Literal["title", "heading", "item", "text", "aside", "good", "bad"]
"""``item`` stands in a list, ``aside`` is less important, ``good`` tells that something was done, ``bad`` that it was
not."""

MOST_BYTES = 64
"""Of the command of a choice: what a Telegram button can carry."""


@dataclass(frozen=True, slots=True)
class ChatLine:
    """One line. ``number`` is what the person can call the record by, as in ``/memory why 12``."""

    text: str
    style: Style = "text"
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Something to press or pick. ``command`` is what it stands for: what follows ``/memory``, or another command with
    its slash, at most 64 bytes. Nothing else has to be kept for it."""

    label: str
    command: str
    danger: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPage:
    """An answer. ``choices`` stand below it, in rows. A ``document`` goes with it, and whoever gets it deletes it."""

    lines: tuple[ChatLine, ...] = ()
    choices: tuple[tuple[Choice, ...], ...] = ()
    document: Path | None = None

    def __str__(self) -> str:
        """As plain text, without the choices; a blank line before each heading."""
        told = [f"\n{line_text(line)}" if line.style == "heading" else line_text(line) for line in self.lines]
        return "\n".join(told).removeprefix("\n")


def chat_page(
    *lines: ChatLine | str, choices: Sequence[Sequence[Choice]] = (), document: Path | None = None
) -> ChatPage:
    """A page of these lines."""
    told = tuple(ChatLine(line) if isinstance(line, str) else line for line in lines)
    return ChatPage(lines=told, choices=tuple(tuple(row) for row in choices if row), document=document)


def line_text(line: ChatLine) -> str:
    """A line as plain text."""
    number = f" #{line.number}" if line.number is not None else ""
    return f"• {line.text}{number}" if line.style == "item" else f"{line.text}{number}"


def fits_choice(command: str) -> bool:
    """Whether a choice can carry this command."""
    return len(command.encode("utf-8")) <= MOST_BYTES
