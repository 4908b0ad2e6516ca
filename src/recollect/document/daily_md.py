"""A daily note: what happened on one day, appended entry by entry.

Existing text stays in front of what is appended. `remove_entries` takes lines out, for erasure and retention; with
`replace_entry` it keeps the lines of entries that have a key in step with them. An entry is one text: unlike in
MEMORY.md it is not split into a label and a value.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
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
    """Return the note with one more entry; the heading is repeated only if another one came last."""
    return append_entries(text, day, [(section, content)])


def append_entries(text: str, day: date, entries: Iterable[tuple[str, str]]) -> str:
    """Return the note with more entries, each a section and a text, as if appended one by one."""
    blocks = parse_blocks(text)
    newline = newline_of(text)
    pieces = [text]
    last = blocks[-1] if blocks else Block("blank", "")
    empty = all(block.kind == "blank" or block.is_mark for block in blocks)
    names = [name for _, name in headings(blocks, _is_section)]
    for section, content in entries:
        said = one_block(content)
        if not said:
            raise InvalidInputError("content", "must not be empty")
        heading = parse_blocks(f"## {' '.join(strip_controls(section).split())}{newline}")[0]
        if not heading.content:
            raise InvalidInputError("section", "must not be empty")
        new = ""
        if last.text and not last.is_mark and not last.text.endswith(("\n", "\r")):
            new = newline
        if last.kind == "open":
            new += last.content + newline  # nothing written below unclosed code would be read
        blank = "\r\n" if newline == "\n" and pieces[-1].endswith("\r") else newline  # not half of a \r\n
        if empty:
            new += f"# {day.isoformat()}{newline}{newline}{heading.text}"
        elif names and names[-1].casefold() == heading.content.casefold():
            new += blank if last.kind in ("other", "open") else ""
        else:
            new += f"{'' if last.kind == 'blank' else blank}{heading.text}"
        entry = "- " + f"{newline}  ".join(content_lines(said, "bullet")) + newline
        pieces.append(new + entry)
        last, names, empty = parse_blocks(entry)[-1], [heading.content], False
    return "".join(pieces)


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
