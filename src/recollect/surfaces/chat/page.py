"""Pages independent of the channel: short lines and choices, which each channel renders.

Lines contain text from memory unescaped; the channel escapes it when it renders them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Style = Literal["title", "heading", "item", "text", "aside", "good", "bad"]
"""``item`` is a list item, ``aside`` is less important, ``good`` reports success and ``bad`` failure."""

MOST_BYTES = 64
"""The maximum size of a choice's command: what a Telegram button can carry."""


@dataclass(frozen=True, slots=True)
class ChatLine:
    """One line. ``number`` is the record's number, as in ``/memory why 12``."""

    text: str
    style: Style = "text"
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A button or a menu entry. ``command`` is what follows ``/memory``, or another command with its slash; at most 64
    bytes. No other state is needed to run it."""

    label: str
    command: str
    danger: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPage:
    """A reply with rows of ``choices`` and optionally a ``document``, which the receiver deletes."""

    lines: tuple[ChatLine, ...] = ()
    choices: tuple[tuple[Choice, ...], ...] = ()
    document: Path | None = None

    def __str__(self) -> str:
        """Return plain text without the choices, with a blank line before each heading."""
        told = [f"\n{line_text(line)}" if line.style == "heading" else line_text(line) for line in self.lines]
        return "\n".join(told).removeprefix("\n")


def chat_page(
    *lines: ChatLine | str, choices: Sequence[Sequence[Choice]] = (), document: Path | None = None
) -> ChatPage:
    """Return a page of these lines."""
    told = tuple(ChatLine(line) if isinstance(line, str) else line for line in lines)
    return ChatPage(lines=told, choices=tuple(tuple(row) for row in choices if row), document=document)


def line_text(line: ChatLine) -> str:
    """Return a line as plain text."""
    number = f" #{line.number}" if line.number is not None else ""
    return f"• {line.text}{number}" if line.style == "item" else f"{line.text}{number}"


def fits_choice(command: str) -> bool:
    """Return True if a choice can carry this command."""
    return len(command.encode("utf-8")) <= MOST_BYTES
