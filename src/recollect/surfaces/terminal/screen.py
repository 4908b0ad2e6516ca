"""Prints a conversation: in colour on a terminal, as plain text in a pipe, as JSON Lines for programs.

Terminal control sequences in messages and memories are removed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.surfaces.chat.page import ChatLine, ChatPage, Choice, line_text
from recollect.surfaces.cli.output import strip_steering

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {"title": "bold", "heading": "bold cyan", "aside": "dim", "good": "green", "bad": "red"}
_MARKS = {"good": "✓ ", "bad": "✗ "}
_WAITING, _DONE_WAITING = "…", "\r\x1b[K"


class Screen:
    """Prints pages for a person."""

    def __init__(self) -> None:
        self._lively = sys.stdout.isatty()
        self._console = _chat_console() if self._lively else None
        self._streamed = ""
        self._is_waiting = False

    @property
    def prompt(self) -> str:
        """The prompt."""
        mark = "› " if (sys.stdout.encoding or "").lower().replace("-", "") == "utf8" else "> "
        plain = self._console is None or self._console.no_color or self._console.color_system is None
        return mark if plain else f"\x01\x1b[1;36m\x02{mark}\x01\x1b[0m\x02"

    def wait(self) -> None:
        """Show that an answer is on its way."""
        self._streamed = ""
        if self._console is not None and not self._console.is_dumb_terminal:
            self._is_waiting = True
            sys.stdout.write(_WAITING)
            sys.stdout.flush()

    def piece(self, text: str) -> None:
        """Print a part of an answer as it arrives."""
        self._here()
        self._streamed += text
        sys.stdout.write(strip_steering(text))
        sys.stdout.flush()

    def pages(self, pages: Sequence[ChatPage], *, asked: bool) -> list[Choice]:
        """Print pages. After a command, also number the choices and return them."""
        self._end_of_stream()
        choices: list[Choice] = []
        for number, page in enumerate(pages):
            lines = _unstreamed_lines(page, self._streamed)
            if number and lines:
                self._line("")
            hint = "" if asked else _hint(page)
            for place, line in enumerate(lines):
                if line.style == "heading" and place:
                    self._line("")
                is_last = place == len(lines) - 1
                self._line(f"{_MARKS.get(line.style, '')}{line_text(line)}{hint if is_last else ''}", line.style)
            if page.document is not None:
                self._line(f"✓ Saved as {_move_to_cwd(page.document)}", "good", whole=True)
            if asked:
                choices += self._options(page, len(choices))
        self._streamed = ""
        self._line("")
        return choices

    def say(self, text: str, style: str = "text") -> None:
        """Print a line of the chat itself."""
        self._end_of_stream()
        self._line(text, style)

    def ready(self) -> None:
        """Prepare for the person's next line."""

    def _options(self, page: ChatPage, before: int) -> list[Choice]:
        options = [choice for row in page.choices for choice in row]
        for number, choice in enumerate(options, before + 1):
            self._line(f"  {number}  {choice.label}", "bad" if choice.danger else "title")
        return options

    def _end_of_stream(self) -> None:
        self._here()
        if self._streamed and not self._streamed.endswith("\n"):
            sys.stdout.write("\n")
        sys.stdout.flush()

    def _here(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            sys.stdout.write(_DONE_WAITING)

    def _line(self, text: str, style: str = "text", *, whole: bool = False) -> None:
        if self._console is None:
            print(strip_steering(text), flush=True)
            return
        from rich.text import Text

        self._console.print(Text(strip_steering(text), _STYLES.get(style, "")), soft_wrap=whole)


class JsonScreen:
    """Writes events as JSON Lines: pieces, pages, and when input is expected."""

    prompt = ""

    def wait(self) -> None:
        """Do nothing."""

    def piece(self, text: str) -> None:
        """Print a part of an answer as it arrives."""
        self._event("piece", text=text)

    def pages(self, pages: Sequence[ChatPage], *, asked: bool) -> list[Choice]:
        """Write each page as an event."""
        for page in pages:
            lines = [
                _without_nothing({"text": one.text, "style": one.style, "number": one.number}) for one in page.lines
            ]
            choices = [
                {"label": one.label, "command": one.command, "danger": one.danger}
                for row in page.choices
                for one in row
            ]
            document = None if page.document is None else str(_move_to_cwd(page.document))
            self._event("page", lines=lines, choices=choices, document=document)
        return []  # a program chooses with "choose"

    def say(self, text: str, style: str = "text") -> None:
        """Print a line of the chat itself."""
        self._event("note", text=text, style=style)

    def ready(self) -> None:
        """Write the event that input is expected."""
        self._event("ready")

    def _event(self, name: str, **data: Any) -> None:
        readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        print(json.dumps({"event": name, **_without_nothing(data)}, ensure_ascii=not readable), flush=True)


def _without_nothing(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value is not None}


def _unstreamed_lines(page: ChatPage, streamed: str) -> list[ChatLine]:
    """Return the lines of a page without the answer that was already printed as it arrived."""
    lines = list(page.lines)
    said = "\n".join(line.text for line in lines if line.style == "text")
    if said and streamed.strip().endswith(said.strip()):
        return [line for line in lines if line.style != "text"]
    return lines


def _hint(page: ChatPage) -> str:
    """Return how to undo what was just stored. A number would be taken for an answer to a question."""
    undo = [choice for row in page.choices for choice in row if choice.command.startswith("undo ")]
    return " · undo with /memory undo" if undo else ""


def _move_to_cwd(document: Path) -> Path:
    """Move the document of a page to the working directory without overwriting a file, and return its path."""
    wanted = Path(document.name)
    number = 1
    while wanted.exists():
        number += 1
        wanted = wanted.with_name(f"{document.stem}-{number}{document.suffix}")
    shutil.move(document, wanted)
    return wanted.resolve()


def _chat_console() -> Console:
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)
