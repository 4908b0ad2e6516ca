"""A daily note: what happened on one day, appended entry by entry.

A new entry stands at the end of its section. Existing lines stay as they are and in their order. `remove_entries` takes
lines out, for erasure and retention; with `replace_entry` it keeps the lines of entries that have a key in step with
them. An entry is one text: unlike in MEMORY.md it is not split into a label and a value. Lines indented below it, such
as the opinions of a discussion, belong to it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from datetime import date
from itertools import takewhile
from typing import Final

from recollect.document.blocks import (
    Block,
    Item,
    content_lines,
    headings,
    joined_below,
    newline_of,
    one_block,
    parse_blocks,
    strip_controls,
)
from recollect.errors import InvalidInputError

__all__ = [
    "SECTIONS",
    "append_entries",
    "append_entry",
    "one_block",
    "parse_entries",
    "remove_entries",
    "replace_entry",
]

SECTIONS: Final = ("Reading Activity", "Discussions", "Extracted Insights", "Explicit Memories")
_NAMES: Final = {name.casefold() for name in SECTIONS}


def _is_section(heading: str) -> bool:
    return heading.casefold() in _NAMES


def parse_entries(text: str) -> tuple[Item, ...]:
    """Return the entries of the note, from top to bottom."""
    return tuple(item for _, item in _locate_entries(parse_blocks(text)))


def _locate_entries(blocks: list[Block]) -> list[tuple[int, Item]]:
    sections = dict(headings(blocks, _is_section))
    found: list[tuple[int, Item]] = []
    section: str | None = None
    line = 1
    for at, block in enumerate(blocks):
        section = sections.get(at, section)
        if section is not None and (block.kind == "bullet" or block.kind == "paragraph"):
            found.append((at, Item(section, None, None, None, block.content, line, block.kind)))
        line += block.lines
    return found


def append_entry(text: str, day: date, section: str, content: str) -> str:
    """Return the note with one more entry, at the end of its section."""
    return append_entries(text, day, [(section, content)])


def append_entries(text: str, day: date, entries: Iterable[tuple[str, str]]) -> str:
    """Return the note with more entries, each a section and a text, as if appended one by one."""
    blocks = parse_blocks(text)
    newline = newline_of(text)
    places = _insertion_places(blocks)
    empty = all(block.kind == "blank" or block.is_mark for block in blocks)
    for section, content in entries:
        said = one_block(content)
        if not said:
            raise InvalidInputError("content", "must not be empty")
        heading = parse_blocks(f"## {' '.join(strip_controls(section).split())}{newline}")[0]
        if not heading.content:
            raise InvalidInputError("section", "must not be empty")
        name = heading.content.casefold()
        place = next((one for one in reversed(places) if one.name == name), None)
        new = "" if place is None else place.separator(newline)
        if place is None:
            title = f"# {day.isoformat()}{newline}{newline}" if empty else ""
            new = places[-1].begin_section(newline, title, heading)
            place = _InsertionPlace(name)
            places.append(place)
        entry = "- " + f"{newline}  ".join(content_lines(said, "bullet")) + newline
        place.add(new + entry, parse_blocks(entry)[-1])
        empty = False
    return "".join(piece for place in places for piece in place.pieces)


class _InsertionPlace:
    """The end of a section, where its next entry goes. ``pieces`` are the text up to there."""

    def __init__(self, name: str, blocks: Sequence[Block] = ()) -> None:
        self.name = name
        self.pieces = ["".join(block.text for block in blocks)]
        self.last = blocks[-1] if blocks else Block("blank", "")

    def add(self, piece: str, last: Block) -> None:
        self.pieces.append(piece)
        self.last = last

    def separator(self, newline: str) -> str:
        """Return what must stand between the text and an entry of the same section."""
        return self._ending(newline) + (self._blank(newline) if self.last.kind in ("other", "open") else "")

    def begin_section(self, newline: str, title: str, heading: Block) -> str:
        """Return the heading of another section, as it must follow the text."""
        blank = "" if title or self.last.kind == "blank" else self._blank(newline)
        return f"{self._ending(newline)}{blank}{title}{heading.text}"

    def _ending(self, newline: str) -> str:
        last, ending = self.last, ""
        if last.text and not last.is_mark and not last.text.endswith(("\n", "\r")):
            ending = newline
        if last.kind == "open":
            ending += last.content + newline  # nothing written below unclosed code would be read
        return ending

    def _blank(self, newline: str) -> str:
        ends_half = newline == "\n" and self.pieces[-1].endswith("\r")
        return "\r\n" if ends_half else newline  # not half of a \r\n


def _insertion_places(blocks: list[Block]) -> list[_InsertionPlace]:
    """Cut the note where sections end; a section that is there several times, where the last one does."""
    starts = [(at, name.casefold()) for at, name in headings(blocks, _is_section)]
    last = {name: at for at, name in starts}
    ends = [at for at, _ in starts[1:]]
    places, done = [], 0
    for (start, name), end in zip(starts[:-1], ends, strict=True):
        if last[name] != start:
            continue
        while blocks[end - 1].kind == "blank":
            end -= 1
        places.append(_InsertionPlace(name, blocks[done:end]))
        done = end
    places.append(_InsertionPlace(starts[-1][1] if starts else "", blocks[done:]))
    return places


def replace_entry(text: str, old: str, new: str) -> str:
    """Return the note with another text in place of the first entry that says `old`."""
    blocks = parse_blocks(text)
    at = next((at for at, item in _locate_entries(blocks) if item.content == old), None)
    said = one_block(new)
    if at is None or not said:
        return text
    newline = newline_of(text)
    entry = "- " + f"{newline}  ".join(content_lines(said, "bullet"))
    ended = newline if blocks[at].text.endswith(("\n", "\r")) else ""
    return "".join([*(one.text for one in blocks[:at]), entry, ended, *(one.text for one in blocks[at + 1 :])])


def remove_entries(text: str, contents: Container[str], most: int | None = None) -> str:
    """Return the note without the entries, or the first ones, that say one of `contents`, and without bare headings."""
    blocks = parse_blocks(text)
    gone = set([at for at, item in _locate_entries(blocks) if item.content in contents][:most])
    top = next((at for at, block in enumerate(blocks) if block.kind == "heading"), 0)
    bare = {at for at, _ in headings(blocks, _is_section) if _is_left_bare(blocks, at, gone)}
    gone |= bare - {top}  # without the topmost, the next one might be taken for the title
    newline = newline_of(text)
    kept: list[Block] = []
    for at, block in enumerate(blocks):
        if at in gone:
            continue
        if at - 1 not in gone or not kept:
            kept.append(block)
        elif not kept[-1].kind == block.kind == "blank":
            kept += joined_below(kept[-1], block, newline)
    return "".join(block.text for block in kept)


def _is_left_bare(blocks: list[Block], heading: int, gone: set[int]) -> bool:
    below = takewhile(lambda at: blocks[at].kind != "heading", range(heading + 1, len(blocks)))
    standing = [at for at in below if blocks[at].kind != "blank"]
    return bool(standing) and gone.issuperset(standing)
