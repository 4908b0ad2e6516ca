"""How answers look: lines, tables and bars for people, one JSON document for programs.

What was asked for goes to standard output, what is said about it to standard error. Rich is imported only
where it draws something.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.records import DailyEntry, Episode, JournalEntry, Message, Note, Record, to_dict
from recollect.times import to_text

if TYPE_CHECKING:
    from rich.console import Console

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MOST_SHOWN = 240
_PATIENCE = 1.0
SHORT_ID = 8


class Output:
    """Answers, in the form that was asked for."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def document(self, data: Any) -> None:
        """The answer for programs."""
        if self.as_json:
            readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
            print(json.dumps(plain_data(data), ensure_ascii=not readable, indent=2))

    def line(self, text: str = "") -> None:
        """Part of the answer for people."""
        if not self.as_json:
            print(harmless(text))

    def aside(self, text: str) -> None:
        """Something about the answer, for people."""
        if not self.as_json:
            sys.stdout.flush()
            print(harmless(text), file=sys.stderr)

    def asides(self, texts: Iterable[str]) -> None:
        """Several such."""
        for text in texts:
            self.aside(f"Note: {text}")

    def raw(self, text: str) -> None:
        """A text as it is, for people; a terminal gets no control sequences."""
        if not self.as_json:
            sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
        """A table whose last column takes the room there is. In a pipe, each row is one line."""
        if self.as_json:
            return
        cells = [[harmless(" ".join(cell.split())) for cell in row] for row in (head, *rows)]
        if not sys.stdout.isatty():
            for line in _columns(cells, [name in right for name in head]):
                print(line)
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for number, name in enumerate(head):
            table.add_column(
                name,
                no_wrap=number < len(head) - 1,
                overflow="fold",
                style="cyan" if name == "id" else None,
                justify="right" if name in right else "left",
            )
        for row in cells[1:]:
            table.add_row(*map(Text, row))
        _console().print(table)

    def pairs(self, rows: Iterable[tuple[str, str]]) -> None:
        """Names and values below each other."""
        shown = [(name, value) for name, value in rows if value]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            self.line(f"  {name.ljust(width)}  {value}")

    def markdown(self, text: str, *, raw: bool = False) -> None:
        """Markdown: drawn on a terminal, as it is in a pipe."""
        if self.as_json:
            return
        if raw or not sys.stdout.isatty():
            self.raw(text)
            return
        from rich.markdown import Markdown

        _console().print(Markdown(harmless(text)))


def _console() -> Console:
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def _columns(rows: list[list[str]], to_the_right: list[bool]) -> Iterator[str]:
    """The rows as lines, each column as wide as its widest cell, whatever the script."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        parts = []
        for cell, width, right in zip(row, widths, to_the_right, strict=True):
            room = " " * (width - cell_len(cell))
            parts.append(room + cell if right else cell + room)
        yield "  ".join(parts).rstrip()


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on the terminal, once the work takes longer than a second; gone when it is done."""
    began = time.monotonic()
    bar: Any = None
    task: Any = None

    def tell(done: int, total: int) -> None:
        nonlocal bar, task
        if bar is None and time.monotonic() - began > _PATIENCE and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            bar = Progress(console=Console(stderr=True), transient=True)
            task = bar.add_task(what)
            bar.start()
        if bar is not None:
            bar.update(task, completed=done, total=total)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.stop()


# records as people read them


def told(record: Record) -> str:
    """A record in one line."""
    text = record.text
    if isinstance(record, DailyEntry):
        text = f"{record.day}: {text}"
    elif isinstance(record, Note) and record.title:
        text = f"{record.title}: {text}"
    elif isinstance(record, Message):
        text = f"{record.speaker or record.role}: {text}"
    marks = [mark for mark, holds in (("pinned", record.pinned), (record.status, record.status != "active")) if holds]
    return shortened(text, _MOST_SHOWN) + (f" ({', '.join(marks)})" if marks else "")


def record_rows(records: Iterable[Record]) -> list[tuple[str, str, str]]:
    """Id, sort and text of each, for a table."""
    return [(record.id[-SHORT_ID:], sort_of(record), told(record)) for record in records]


RECORD_HEAD = ("id", "what", "text")


def sort_of(record: Record) -> str:
    """What a record is, in one word."""
    return record.category or record.kind


def card(record: Record) -> list[tuple[str, str]]:
    """Everything about a record that says something."""
    episode = record if isinstance(record, Episode) else None
    return [
        ("id", record.id),
        ("kind", " · ".join(part for part in (record.kind, record.category, record.type) if part)),
        ("status", "" if record.status == "active" else record.status),
        ("superseded by", record.superseded_by or ""),
        ("day", str(record.day) if isinstance(record, DailyEntry) else ""),
        ("since", when(record.valid_from)),
        ("until", when(record.valid_until)),
        ("expires", when(record.expires_at)),
        ("confidence", f"{record.confidence:.2f}"),
        ("importance", f"{record.importance:.2f}"),
        ("pinned", "yes" if record.pinned else ""),
        ("valence", episode.valence if episode else ""),
        ("participants", ", ".join(episode.participants) if episode else ""),
        ("tags", ", ".join(record.tags)),
        ("source", record.source if record.trusted else f"{record.source} (untrusted)"),
        ("session", record.session or ""),
        ("agent", record.agent or ""),
        ("excerpt", record.excerpt or ""),
        ("messages", ", ".join(record.messages)),
        ("metadata", json.dumps(record.metadata, ensure_ascii=False) if record.metadata else ""),
        ("changed", f"{when(record.updated_at)} (version {record.version})" if record.version > 1 else ""),
    ]


ENTRY_HEAD = ("no", "when (UTC)", "who", "what", "text")


def entry_rows(entries: Iterable[JournalEntry]) -> list[tuple[str, str, str, str, str]]:
    """The rows of a history."""
    return [(str(e.seq), when(e.at, zone=False), e.actor, e.op, _entry_text(e)) for e in entries]


def _entry_text(entry: JournalEntry) -> str:
    if entry.erased:
        return "(erased)"
    record = entry.after or entry.before
    text = shortened(record.text, _MOST_SHOWN) if record else ""
    if entry.undoes:
        return f"no {entry.undoes}: {text}"
    if entry.op == "update" and entry.before and entry.after and entry.before.content != entry.after.content:
        text += f" (was: {shortened(entry.before.content, 80)})"
    reason = entry.reason if entry.reason not in (None, "update", "correction") else None
    return f"{text} [{reason}]" if reason and text else text or reason or ""


def when(moment: datetime | None, *, zone: bool = True) -> str:
    """A moment, to the minute."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}" + (" UTC" if zone else "")


def counted(numbers: Mapping[str, int]) -> str:
    """``2 facts, 1 note``."""
    many = {"daily": "daily entries", "scratch": "scratch items"}
    one = {"daily": "daily entry", "scratch": "scratch item"}
    parts = [
        f"{number:,} {one.get(name, name) if number == 1 else many.get(name, name + 's')}"
        for name, number in numbers.items()
        if number
    ]
    return ", ".join(parts)


def memories(number: int) -> str:
    """``1 memory`` or ``3 memories``."""
    return f"{number:,} {'memory' if number == 1 else 'memories'}"


def shortened(text: str, most: int) -> str:
    """The text on one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def harmless(text: str) -> str:
    """The text without what would steer a terminal."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


# records as programs read them


def plain_data(value: Any) -> Any:
    """Anything the core answers, as what JSON can hold."""
    if isinstance(value, Record):
        return to_dict(value)
    if isinstance(value, datetime):
        return to_text(value)
    if isinstance(value, date | Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): plain_data(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_data(getattr(value, field.name)) for field in fields(value)}
    return value
