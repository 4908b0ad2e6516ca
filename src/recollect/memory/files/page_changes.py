"""Updating MEMORY.md when facts change, line by line, and telling a person what their save did not include."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from rapidfuzz import fuzz

from recollect.counts import pluralize
from recollect.document.memory_md import Document, Editor, Item, one_block, section_of
from recollect.memory.write import Write
from recollect.records import Fact, Record

Words = tuple[str | None, str]
"""The key and the text of a line, normalised for comparison."""
_SLIGHTLY = 90
"""The similarity, from 0 to 100, from which one text is certainly a correction of the other."""
_FEWEST_WORDS = 3
"""The minimum for recognising a line in a longer one; fewer words occur in many lines."""


def is_shown(record: Record | None) -> TypeGuard[Fact]:
    """Return True if MEMORY.md shows the record."""
    return isinstance(record, Fact) and record.status == "active" and record.tier == "file"


def section_in_file(fact: Fact) -> str:
    """Return the section of MEMORY.md that shows a fact."""
    return fact.section or section_of(fact.category or "key_fact")


def compared_line(fact: Fact) -> Words:
    """Return the line of a fact, normalised for comparison."""
    return fact.key, squeeze(one_block(fact.content))


def apply_changes(document: Document, changes: Sequence[tuple[Record | None, Record | None]]) -> Document:
    """Return MEMORY.md after these changes, one per record; the same document if they do not concern it.

    Existing lines are changed first, from bottom to top, so that the positions above stay valid. New lines are then
    added to their sections in the order of the changes.
    """
    shown = [(old if is_shown(old) else None, new if is_shown(new) else None) for old, new in changes]
    shown.sort(key=lambda change: change[1] is not None)  # removals first: another fact may say the same
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
    """Return where a document shows facts to be changed, each place once, preferring the fact's own section."""
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
        there.remove(own)  # a line for each: facts of two chats may say the same, and the other one stays
        found[own[0]] = own[1], old, new
    return found


def _rewrite(editor: Editor, at: int, item: Item, old: Fact, new: Fact) -> list[str] | None:
    """Rewrite a line to show the new fact; return None if it stays in place, else the lines to move."""
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
    """Return a text with its white space normalised."""
    return " ".join(content.split())


def is_corrected(record: Record, item: Item) -> bool:
    """Return True if a line is certainly this record: a new value under its key, a slight correction or an extension.

    An extended line holds everything it said before. So even if its author never saw the record, treating it as the
    record loses nothing.
    """
    if item.key is not None and item.key == record.key:
        return True
    old, new = squeeze(record.content), squeeze(item.content)
    return _is_part(old, new) or fuzz.ratio(old, new) >= _SLIGHTLY


def _is_part(old: str, new: str) -> bool:
    """Return True if a text contains another of several words as consecutive words."""
    return old.count(" ") >= _FEWEST_WORDS - 1 and f" {old} " in f" {new} "


@dataclass(slots=True)
class MergedSave:
    """Changes that a person's save did not include yet and that were therefore kept."""

    name: str
    added: int = 0
    changed: int = 0
    removed: int = 0
    erased: int = 0

    def note(self, before: Record, after: Record | None) -> None:
        """Count one line that the saved text has in its earlier form."""
        if after is None:
            self.removed += 1
        elif (after.key, after.content) != (before.key, before.content):
            self.changed += 1

    def tell(self, write: Write) -> None:
        """Add a notice without the words, because its reader may not be allowed to see them."""
        counts = {"added": self.added, "changed": self.changed, "removed": self.removed}
        if said := ", ".join(f"{number} {what}" for what, number in counts.items() if number):
            write.notices.append(
                f"{self.name} was saved from an earlier version and was merged. Lines that changed since then were kept"
                f": {said}. If you deleted one of these on purpose, use forget"
            )
        if self.erased:
            write.notices.append(
                f"{self.name} was saved from an earlier version with {pluralize(self.erased, 'line')} unlinked or"
                " erased since; removed again. To remember one again, use remember"
            )
