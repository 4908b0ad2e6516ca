"""How MEMORY.md follows what changed in the facts: which lines it takes out, rewrites, moves and adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from rapidfuzz import fuzz

from recollect.document.memory_md import Document, Editor, Item, one_block, section_of
from recollect.records import Fact, Record

Words = tuple[str | None, str]
"""The key and the text of a line, as lines are compared."""
_SLIGHTLY = 90
"""How similar two texts are, from 0 to 100, of which one is certainly the other corrected."""
_FEWEST_WORDS = 3
"""Of a line that is recognised in a longer one; fewer are in many lines."""


def is_shown(record: Record | None) -> TypeGuard[Fact]:
    """Whether MEMORY.md shows it."""
    return isinstance(record, Fact) and record.status == "active" and record.tier == "file"


def section_in_file(fact: Fact) -> str:
    """The section of MEMORY.md that a fact stands in."""
    return fact.section or section_of(fact.category or "key_fact")


def compared_line(fact: Fact) -> Words:
    """The line of a fact, as lines are compared."""
    return fact.key, squeeze(one_block(fact.content))


def apply_changes(document: Document, changes: Sequence[tuple[Record | None, Record | None]]) -> Document:
    """MEMORY.md after these changes, each of another record; the same document if they do not concern it.

    What stands there is changed first, from the bottom to the top, so that the places above stay right. Then comes
    what is new in its section, in the order of the changes.
    """
    shown = [(old if is_shown(old) else None, new if is_shown(new) else None) for old, new in changes]
    shown.sort(key=lambda change: change[1] is not None)  # what leaves first: another one may say the same
    places = _places_of(document, shown)
    if not places and not any(new for _, new in shown):
        return document
    editor = document.edit()
    lifted: dict[str, list[str] | None] = {}
    for at, (item, old, new) in sorted(places.items(), reverse=True):
        if new is None:
            editor.cut(at)
        else:
            lifted[new.id] = _rewrite(editor, at, item, old, new)
    for _, new in shown:
        if new is None or lifted.get(new.id, []) is None:
            continue
        if lines := lifted.get(new.id):
            editor.put(section_in_file(new), lines)
        else:
            editor.add(section_in_file(new), new.content, key=new.key, label=new.label)
    if len(changes) == 1 or editor.is_as_read:
        return editor.document()
    for change in changes:
        document = apply_changes(document, [change])
    return document


def _places_of(
    document: Document, shown: Sequence[tuple[Fact | None, Fact | None]]
) -> dict[int, tuple[Item, Fact, Fact | None]]:
    """Where a document says what is to change; each place once, in the fact's own section if there are several."""
    wanted = {compared_line(old) for old, _ in shown if old}
    said: dict[Words, list[tuple[int, Item]]] = {}
    for at, item in document.places() if wanted else ():
        if (line := (item.key, squeeze(item.content))) in wanted:
            said.setdefault(line, []).append((at, item))
    found: dict[int, tuple[Item, Fact, Fact | None]] = {}
    for old, new in shown:
        if old is None or not (there := said.get(compared_line(old))):
            continue
        own = next((place for place in there if place[1].section == section_in_file(old)), there[0])
        there.remove(own)  # a line for each: facts of two chats may say the same, and the other's stays
        found[own[0]] = own[1], old, new
    return found


def _rewrite(editor: Editor, at: int, item: Item, old: Fact, new: Fact) -> list[str] | None:
    """Make a line say what a fact says now; None if it stays, else the lines to put elsewhere, if there are any."""
    if new.key is None and item.key is not None:
        editor.cut(at)
        return []
    key = item.key
    if new.key is not None and new.key != key:
        at, key = editor.rename(at, new.key, new.label, item.content), new.key
    if squeeze(new.content) != squeeze(item.content):
        at = editor.replace(at, key, new.content)
    return editor.lift(at) if section_in_file(new) != section_in_file(old) else None


def squeeze(content: str) -> str:
    """A text with its white space made even."""
    return " ".join(content.split())


def is_corrected(record: Record, item: Item) -> bool:
    """Whether a line is certainly a record: with another value under its key, slightly corrected, or extended.

    A line that was extended holds all that it said. So if it was written by somebody who never saw the record, taking
    it for the record loses nothing.
    """
    if item.key is not None and item.key == record.key:
        return True
    old, new = squeeze(record.content), squeeze(item.content)
    return _is_part(old, new) or fuzz.ratio(old, new) >= _SLIGHTLY


def _is_part(old: str, new: str) -> bool:
    """Whether a text has all words of another, which are several, one after the other."""
    return old.count(" ") >= _FEWEST_WORDS - 1 and f" {old} " in f" {new} "
