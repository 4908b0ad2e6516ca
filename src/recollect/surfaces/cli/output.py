"""Output: lines, tables and progress bars for people, one JSON document for programs.

Results go to standard output, everything about them to standard error. Rich is imported only where it is used.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.memory.daily_notes import day_of
from recollect.records import DailyEntry, Episode, Hit, JournalEntry, Message, Note, Record, to_dict
from recollect.times import to_text

if TYPE_CHECKING:
    from rich.console import Console

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MOST_SHOWN = 240
_PATIENCE = 1.0
_MOST_LEAD = 80
_MATCH = "bold yellow"
SHORT_ID = 8


@dataclass(frozen=True, slots=True)
class MarkedCell:
    """A table cell: one line with highlighted spans, and lines to print below it."""

    text: str
    spans: Sequence[tuple[int, int]] = ()
    below: Sequence[str] = ()


class Output:
    """Writes results as text or as JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def document(self, data: Any) -> None:
        """Print the result as JSON; with text output, do nothing."""
        if self.as_json:
            readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
            print(json.dumps(plain_data(data), ensure_ascii=not readable, indent=2))

    def line(self, text: str = "") -> None:
        """Print a line of the result; with JSON output, do nothing."""
        if not self.as_json:
            print(strip_steering(text))

    def aside(self, text: str) -> None:
        """Print a remark about the result to standard error; with JSON output, do nothing."""
        if not self.as_json:
            sys.stdout.flush()
            print(strip_steering(text), file=sys.stderr)

    def asides(self, texts: Iterable[str]) -> None:
        """Print each text as a note to standard error."""
        for text in texts:
            self.aside(f"Note: {text}")

    def raw(self, text: str) -> None:
        """Print a text unchanged, except that a terminal gets no control sequences."""
        if not self.as_json:
            sys.stdout.write(strip_steering(text) if sys.stdout.isatty() else text)

    def table(
        self, head: Sequence[str], rows: Iterable[Sequence[str | MarkedCell]], *, right: Sequence[str] = ()
    ) -> None:
        """Print a table whose last column takes the remaining width. In a pipe, each row is one line."""
        if self.as_json:
            return
        cells = [[_cell(cell) for cell in row] for row in (head, *rows)]
        if not sys.stdout.isatty():
            lines = _columns([[cell.text for cell in row] for row in cells], [name in right for name in head])
            for line, row in zip(lines, cells, strict=True):
                print(line)
                for below in row[-1].below:
                    print(f"{'':{SHORT_ID}}{below}")
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
            drawn = [Text(cell.text) for cell in row]
            for text, cell in zip(drawn, row, strict=True):
                for begin, end in cell.spans:
                    text.stylize(_MATCH, begin, end)
                for below in cell.below:
                    text.append(f"\n{below}", "dim")
            table.add_row(*drawn)
        console().print(table)

    def listing(
        self,
        found: Sequence[Any],
        head: Sequence[str],
        rows: Iterable[Sequence[str | MarkedCell]],
        *,
        nothing: str,
        right: Sequence[str] = (),
        limit: int | None = None,
    ) -> None:
        """A list as a document and a table; what to say of an empty one, and that one of ``limit`` may be cut."""
        self.document(found)
        if not found:
            self.aside(nothing)
            return
        self.table(head, rows, right=right)
        if len(found) == limit and sys.stdout.isatty():
            self.aside(f"Showing the last {limit}; use --limit for more.")

    def pairs(self, rows: Iterable[tuple[str, str]]) -> None:
        """Print names and values, one pair per line."""
        shown = [(name, value) for name, value in rows if value]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            self.line(f"  {name.ljust(width)}  {value}")

    def markdown(self, text: str, *, raw: bool = False) -> None:
        """Print Markdown: formatted on a terminal, unchanged in a pipe."""
        if self.as_json:
            return
        if raw or not sys.stdout.isatty():
            self.raw(text)
            return
        from rich.markdown import Markdown

        console().print(Markdown(strip_steering(text)))


def _cell(cell: str | MarkedCell) -> MarkedCell:
    """Return the cell on one line and without control characters."""
    if isinstance(cell, str):
        return MarkedCell(strip_steering(" ".join(cell.split())))
    return MarkedCell(strip_steering(cell.text), cell.spans, [strip_steering(line) for line in cell.below])


def console() -> Console:
    """Return a console that draws text as it is."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def _columns(rows: list[list[str]], to_the_right: list[bool]) -> Iterator[str]:
    """Return the rows as lines, each column as wide as its widest cell in any script."""
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
    """Show a progress bar on a terminal while the work takes longer than a second."""
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


# records for people


def record_line(record: Record) -> str:
    """Return a record on one line."""
    return shorten_line(_lead(record) + record.text, _MOST_SHOWN) + _status_mark(record)


def _lead(record: Record) -> str:
    if isinstance(record, DailyEntry):
        return f"{record.day}: "
    if isinstance(record, Note) and record.title:
        return f"{record.title}: "
    if isinstance(record, Message):
        return f"{record.speaker or record.role}: "
    return ""


def _status_mark(record: Record) -> str:
    uncertain = record.kind == "fact" and day_of(record) is not None
    named = (("pinned", record.pinned), ("uncertain", uncertain), (record.status, record.status != "active"))
    marks = [mark for mark, holds in named if holds]
    return f" ({', '.join(marks)})" if marks else ""


HIT_HEAD = ("score", "id", "what", "when", "text")


def hit_rows(
    hits: Iterable[Hit], query: str, code: str = "", *, explain: bool = False
) -> list[tuple[str | MarkedCell, ...]]:
    """Return table rows for search results. Long texts are cut to the part around the first match.

    ``code`` is the language of the memory, if it has one.
    """
    from recollect.search.highlight import excerpt, match_spans

    rows: list[tuple[str | MarkedCell, ...]] = []
    for hit in hits:
        record = hit.record
        day = record.day if isinstance(record, DailyEntry) else record.valid_from.date()
        lead = "" if isinstance(record, DailyEntry) else shorten_line(_lead(record), _MOST_LEAD)
        passage = hit.passage or record.text
        if isinstance(record, Note) and record.title:
            passage = passage.removeprefix(f"{record.title}\n")
        passage = " ".join(passage.split())
        part, found = excerpt(passage, match_spans(passage, query, code), _MOST_SHOWN)
        lead += " " if lead else ""
        spans = match_spans(lead, query, code) + [(begin + len(lead), end + len(lead)) for begin, end in found]
        text = MarkedCell(lead + part + _status_mark(record), spans, [explain_score(hit)] if explain else ())
        rows.append((f"{hit.score:.2f}", record.id[-SHORT_ID:], record_sort(record), str(day), text))
    return rows


def explain_score(hit: Hit) -> str:
    """Return the parts of a score: ``1.93 = words 1.81 + latest 0.15 - confidence 0.03 (tea; recent)``."""
    parts = sorted(hit.signals.items(), key=lambda signal: -signal[1])
    summed = " ".join(f"{'-' if value < 0 else '+'} {name} {abs(value):.2f}" for name, value in parts)
    why = f" ({hit.why})" if hit.why else ""
    return f"{hit.raw_score:.2f} = {summed.removeprefix('+ ') or 'nothing'}{why}"


def record_rows(records: Iterable[Record]) -> list[tuple[str, str, str]]:
    """Return the id, the sort and the text of each record."""
    return [(record.id[-SHORT_ID:], record_sort(record), record_line(record)) for record in records]


RECORD_HEAD = ("id", "what", "text")


def record_sort(record: Record) -> str:
    """Return the category or kind of a record in one word."""
    return record.category or record.kind


def record_details(record: Record) -> list[tuple[str, str]]:
    """Return the names and values of all non-empty fields of a record."""
    episode = record if isinstance(record, Episode) else None
    return [
        ("id", record.id),
        ("kind", " · ".join(part for part in (record.kind, record.category, record.type) if part)),
        ("status", "" if record.status == "active" else record.status),
        ("superseded by", record.superseded_by or ""),
        ("day", str(record.day) if isinstance(record, DailyEntry) else ""),
        ("since", format_moment(record.valid_from)),
        ("until", format_moment(record.valid_until)),
        ("expires", format_moment(record.expires_at)),
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
        ("changed", f"{format_moment(record.updated_at)} (version {record.version})" if record.version > 1 else ""),
    ]


ENTRY_HEAD = ("no", "when (UTC)", "who", "what", "text")


def entry_rows(entries: Iterable[JournalEntry]) -> list[tuple[str, str, str, str, str]]:
    """Return table rows for journal entries."""
    return [(str(e.seq), format_moment(e.at, zone=False), e.actor, e.op, _entry_text(e)) for e in entries]


def _entry_text(entry: JournalEntry) -> str:
    if entry.erased:
        return "(erased)"
    record = entry.after or entry.before
    text = shorten_line(record.text, _MOST_SHOWN) if record else ""
    if entry.undoes:
        return f"no {entry.undoes}: {text}"
    if entry.op == "update" and entry.before and entry.after and entry.before.content != entry.after.content:
        text += f" (was: {shorten_line(entry.before.content, 80)})"
    reason = entry.reason if entry.reason not in (None, "update", "correction") else None
    return f"{text} [{reason}]" if reason and text else text or reason or ""


def format_moment(moment: datetime | None, *, zone: bool = True) -> str:
    """Return a time to the minute."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}" + (" UTC" if zone else "")


def count_each(numbers: Mapping[str, int]) -> str:
    """Return counts as text: ``2 facts, 1 note``."""
    many = {"daily": "daily entries", "scratch": "scratch items"}
    one = {"daily": "daily entry", "scratch": "scratch item"}
    parts = [
        f"{number:,} {one.get(name, name) if number == 1 else many.get(name, name + 's')}"
        for name, number in numbers.items()
        if number
    ]
    return ", ".join(parts)


def count_memories(number: int) -> str:
    """Return ``1 memory`` or ``3 memories``."""
    return f"{number:,} {'memory' if number == 1 else 'memories'}"


def shorten_line(text: str, most: int) -> str:
    """Return the text on one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def strip_steering(text: str) -> str:
    """Return the text without terminal control sequences."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


# records for programs


def plain_data(value: Any) -> Any:
    """Return any result of the library as JSON-compatible data."""
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
    if isinstance(value, Hit):
        return {field.name: plain_data(getattr(value, field.name)) for field in fields(value)} | {"why": value.why}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_data(getattr(value, field.name)) for field in fields(value)}
    return value
