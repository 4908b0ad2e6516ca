"""MEMORY.md: reading it, and changing one line without touching the others.

    document = Document.parse(text)
    document = document.add("Work Context", "Senior engineer", key="role")   # - Role: Senior engineer
    document.render()

A document is immutable: every method returns a new one, and an `Editor` makes many changes at once. Who may change
what, and what a change means, is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from recollect.document.blocks import (
    BOM,
    MAX_BYTES,
    Block,
    Item,
    content_lines,
    decode_file,
    encode_file,
    headings,
    indent_of,
    joined_below,
    newline_of,
    one_block,
    parse_block,
    parse_blocks,
    split_lines,
    strip_controls,
)
from recollect.document.labels import LABEL, MAX_LABEL, can_label, key_of, label_of, split_label
from recollect.errors import InvalidInputError, NotFoundError

__all__ = [
    "MAX_BYTES",
    "MAX_LABEL",
    "SECTIONS",
    "TITLE",
    "Document",
    "Editor",
    "Item",
    "category_of",
    "decode_file",
    "encode_file",
    "key_of",
    "label_of",
    "one_block",
    "render_item",
    "section_key",
    "section_of",
    "split_label",
    "template",
]

TITLE: Final = "# User Memory"

# Each category and its heading, in the order of the sections in the file.
SECTIONS: Final = {
    "preference": "User Preferences",
    "work_context": "Work Context",
    "personal_context": "Personal Context",
    "reading_history": "Reading History",
    "key_fact": "Key Facts",
}
_ORDER: Final = tuple(SECTIONS)
_MARK: Final = tuple(parse_blocks(BOM))
_LEAD = re.compile(r"(\s*)(?:(\d{1,3})(?=[.)]))?([-*+•–.)])")
_CATEGORIES: Final = {heading.casefold(): category for category, heading in SECTIONS.items()}


def template() -> str:
    """Return a new user's file."""
    begun = [heading for category, heading in SECTIONS.items() if category != "reading_history"]
    return "\n\n".join([TITLE, *(f"## {heading}" for heading in begun)]) + "\n"


def section_of(category: str) -> str:
    return SECTIONS[category]


@lru_cache(1024)
def category_of(section: str) -> str | None:
    """Return the category of a heading; case, emphasis, emoji and punctuation do not matter."""
    return _CATEGORIES.get(" ".join(re.findall(r"[^\W_]+", section.casefold())))


@lru_cache(1024)
def section_key(section: str) -> str:
    """Return a key that is equal for headings of the same section."""
    bare = section.casefold().strip(" \t*_`:：")
    return category_of(section) or " ".join(bare.split())


def render_item(key: str | None, label: str | None, content: str) -> str:
    """Return the lines of a new item, without the last line ending: `- Label: value` or `- text`."""
    return _render_entry("- ", key, label, _require_content(content), "\n")


def _require_content(content: str) -> str:
    said = one_block(content)
    if not said:
        raise InvalidInputError("content", "must not be empty")
    return said


def _render_entry(lead: str, key: str | None, label: str | None, said: str, newline: str) -> str:
    indent = newline + indent_of(lead) + "  "
    if key is None:
        return lead + indent.join(content_lines(said, "bullet"))
    return f"{lead}{_label_for(key, label)}: {indent.join(content_lines(said, 'value'))}"


def _label_for(key: str, label: str | None) -> str:
    proper = key_of(key)
    if not proper:
        raise InvalidInputError("key", f"{key!r} has no letter or digit")
    return label if label and can_label(label, proper) else label_of(proper)


# --- the document ---


class Document:
    """The whole file. `render` returns only what was parsed or added since."""

    __slots__ = ("_blocks", "_fenced", "_heads", "_items", "_parts", "_words", "newline")

    def __init__(self, blocks: Sequence[Block], newline: str, words: int, *, fenced: bool) -> None:
        self._blocks = tuple(blocks)
        self._words = words
        self._fenced = fenced  # code may span blank lines, so a change can have effects further away
        self._heads: list[int] | None = None  # positions of the headings, passed on where a change does not touch one
        self._items: tuple[Item, ...] | None = None
        self._parts: dict[str, _Parts] = {}  # of each block by its text, passed on from document to document
        self.newline = newline

    @classmethod
    def parse(cls, text: str) -> Document:
        words = len(text.removeprefix(BOM).split())
        return cls(parse_blocks(text), newline_of(text), words, fenced=_may_fence(text))

    def render(self) -> str:
        return "".join([block.text for block in self._blocks])

    @property
    def word_count(self) -> int:
        """The same as `len(text.split())`, without joining the text."""
        blocks = self._blocks
        mark_alone = blocks[:1] == _MARK and (len(blocks) == 1 or blocks[1].text[0].isspace())
        return self._words + mark_alone

    @property
    def items(self) -> tuple[Item, ...]:
        """The items of the file, from top to bottom."""
        if self._items is None:
            self._items = tuple(item for _, item in self._read())
        return self._items

    def _headings(self) -> list[int]:
        if self._heads is None:
            self._heads = [at for at, block in enumerate(self._blocks) if block.kind == "heading"]
        return self._heads

    def _sections(self) -> Iterator[tuple[int, str]]:
        return _sections_of(self._blocks, self._headings())

    def _read(self) -> list[tuple[int, Item]]:
        found: list[tuple[int, Item]] = []
        sections = dict(self._sections())
        section, category, level, line = None, None, 0, 1
        for at, block in enumerate(self._blocks):
            kind = block.kind
            if kind == "bullet" or kind == "paragraph":
                if section is not None:
                    parts = self._parts.get(block.text)
                    if parts is None:
                        parts = self._parts[block.text] = _parts_of(block)
                    found.append((at, Item(section, category, *parts, line, kind)))
            elif at in sections:
                section = sections[at]
                own = category_of(section)
                if own or block.level <= level:  # otherwise it divides the section above, and has its category
                    category, level = own, block.level
            line += block.lines
        return found

    def places(self) -> list[tuple[int, Item]]:
        """Return the items of the file, each with its place for an `Editor`."""
        return self._read()

    def edit(self) -> Editor:
        """Begin changes that are made together."""
        return Editor(self)

    def add(self, section: str, content: str, key: str | None = None, label: str | None = None) -> Document:
        """Add an item after the last one of its section, which is created if missing."""
        editor = self.edit()
        editor.add(section, content, key, label)
        return editor.document()

    def replace(self, item: Item, content: str) -> Document:
        """Replace the content of a line: bullet, label, line ending and position stay."""
        editor = self.edit()
        editor.replace(self._find(item), item.key, content)
        return editor.document()

    def rename(self, item: Item, key: str, label: str | None = None) -> Document:
        """Put a line under another key. A paragraph becomes a list entry: only those have keys."""
        editor = self.edit()
        editor.rename(self._find(item), key, label, item.content)
        return editor.document()

    def remove(self, item: Item) -> Document:
        """Remove the lines of this item; its section stays, even if it is left empty."""
        editor = self.edit()
        editor.cut(self._find(item))
        return editor.document()

    def remove_all(self, items: Sequence[Item]) -> Document:
        """Remove the lines of these items of this document."""
        lines = {item.line for item in items}
        editor = self.edit()
        for at, item in reversed(self._read()):  # from the bottom, so that the places above stay valid
            if item.line in lines:
                editor.cut(at)
        if len(lines) < 2 or editor.is_as_read:
            return editor.document()
        document = self
        for item in sorted(items, key=lambda item: item.line, reverse=True):
            document = document.remove(item)
        return document

    def move(self, item: Item, section: str) -> Document:
        """Move the lines to the end of another section."""
        at = self._find(item)
        moved = self.edit()
        lines = moved.lift(at)
        moved = moved.document().edit()
        moved.put(section, lines)
        return moved.document()

    def _find(self, item: Item) -> int:
        """Return the block of an item. One that was read before other changes is found again by its content."""
        line, at = 1, 0
        while line < item.line and at < len(self._blocks):
            line += self._blocks[at].lines
            at += 1
        if line == item.line and at < len(self._blocks) and _block_says(self._blocks[at], item.key, item.content):
            return at
        for at, other in self._read():
            if (other.section, other.key, other.content) == (item.section, item.key, item.content):
                return at
        raise NotFoundError(f"the file does not say {item.content!r} under {item.section!r}")


class Editor:
    """Changes to a document, made together: each costs what it changes, however long the file is.

    A place is the number of a block. A change moves the places below it and none above, so make several from bottom to
    top. Where code may span blank lines, a change can have effects further away: then only the whole text tells, and
    after several changes `is_as_read` says whether they came out as intended.
    """

    __slots__ = ("_blocks", "_fenced", "_heads", "_origin", "_words", "newline")

    def __init__(self, document: Document) -> None:
        self._origin = document
        self._blocks = list(document._blocks)
        self._heads: list[int] | None = list(document._headings())
        self._words = document._words
        self._fenced = document._fenced
        self.newline = document.newline

    @property
    def is_as_read(self) -> bool:
        """True if the text, parsed again, has the blocks that were made."""
        return not self._fenced or parse_blocks(self._text()) == self._blocks

    def document(self) -> Document:
        """Return the changed document."""
        if self._fenced:
            return Document.parse(self._text())
        document = Document(self._blocks, self.newline, self._words, fenced=False)
        document._parts = self._origin._parts
        document._heads = self._heads
        return document

    def _text(self) -> str:
        return "".join([block.text for block in self._blocks])

    def add(self, section: str, content: str, key: str | None = None, label: str | None = None) -> None:
        """Add an item after the last one of its section, which is created if missing."""
        said = _require_content(content)
        self._put(section, lambda lead: _render_entry(lead, key, label, said, self.newline))

    def put(self, section: str, lines: Sequence[str]) -> None:
        """Put these lines, which are one item, at the end of a section."""
        self._put(section, lambda _: "".join(lines))

    def replace(self, at: int, key: str | None, content: str) -> int:
        """Replace the content of a line; return its new place."""
        return self._rewrite(at, key, None, _require_content(content))

    def rename(self, at: int, key: str, label: str | None, content: str) -> int:
        """Put a line under another key; return its new place."""
        return self._rewrite(at, key_of(key), _label_for(key, label), content)

    def cut(self, at: int) -> None:
        """Remove this block, and a blank line that is left over."""
        around = self._blocks[max(at - 1, 0) : at] + self._blocks[at + 1 : at + 2]
        alone = [block.kind for block in around] == ["blank", "blank"]
        self._splice(at, at + 2 if alone else at + 1, [])

    def lift(self, at: int) -> list[str]:
        """Cut an item and return its lines, which can be `put` elsewhere."""
        text = self._blocks[at].text.rstrip("\r\n")
        indent = indent_of(text)
        self.cut(at)
        return [line.removeprefix(indent) for line in split_lines(text)]

    # --- changing blocks ---

    def _headings(self) -> list[int]:
        if self._heads is None:
            self._heads = [at for at, block in enumerate(self._blocks) if block.kind == "heading"]
        return self._heads

    def _sections(self) -> Iterator[tuple[int, str]]:
        return _sections_of(self._blocks, self._headings())

    def _rewrite(self, at: int, key: str | None, label: str | None, said: str) -> int:
        block = self._blocks[at]
        body = block.text.rstrip("\r\n")
        ending = block.text[len(body) :]
        newline = newline_of(block.text) if ending else self.newline
        if block.kind == "paragraph" and key is None:
            text = indent_of(body) + newline.join(content_lines(said, "paragraph"))
        else:
            text = _replace_content(block, label, said, newline)
            if not _block_says(parse_block(text), key, said):
                lead = block.lead.rstrip() or "-"
                text = _render_entry(f"{lead} ", key, label, said, newline)
        changed = parse_block(text + ending)
        return self._splice(at, at + 1, [changed], settled=changed.kind == block.kind)

    def _put(self, section: str, text_with: Callable[[str], str]) -> None:
        key, blocks = section_key(section), self._blocks
        start = next((at for at, name in self._sections() if section_key(name) == key), None)
        if start is None:
            self._put_section(section, parse_block(text_with("- ") + self.newline))
            return
        stop = next((at for at in self._headings() if at > start), len(blocks))
        # from the end: the last item is almost always the last block
        last = next((at for at in range(stop - 1, start, -1) if blocks[at].kind in ("bullet", "paragraph")), start)
        lead = next((blocks[at].lead for at in range(last, start, -1) if blocks[at].kind == "bullet"), "- ")
        new = parse_block(text_with(_next_lead(lead)) + self.newline)
        apart = new.kind == "paragraph" and blocks[last].kind != "heading"
        self._splice(last + 1, last + 1, [self._blank(), new] if apart else [new])

    def _put_section(self, section: str, item: Block) -> None:
        heading = parse_block(f"## {' '.join(strip_controls(section).split())}{self.newline}")
        if not heading.content:
            raise InvalidInputError("section", "must not be empty")
        at = self._place_for(heading.content)
        row = [heading, item]
        if all(block.kind == "blank" or block.is_mark for block in self._blocks):
            row = [parse_block(TITLE + self.newline), self._blank(), *row]
        elif at and self._blocks[at - 1].kind != "blank" and not self._blocks[at - 1].is_mark:
            row.insert(0, self._blank())
        if at < len(self._blocks):
            row.append(self._blank())
        self._splice(at, at, row)

    def _place_for(self, section: str) -> int:
        category = category_of(section)
        if category:
            later = _ORDER[_ORDER.index(category) + 1 :]
            for at, name in self._sections():
                if category_of(name) in later:
                    return at
        # an unclosed block would swallow whatever is written below it
        return len(self._blocks) - (bool(self._blocks) and self._blocks[-1].kind == "open")

    def _blank(self) -> Block:
        return Block("blank", self.newline)

    def _splice(self, start: int, stop: int, new: list[Block], *, settled: bool = False) -> int:
        """Replace the blocks from start to stop, keeping neighbours apart; return the place of the last one."""
        blocks, old = self._blocks, self._blocks[start:stop]
        first = max(start - 1, 0)
        row, below = blocks[first:start], blocks[stop : stop + 1]
        if new and row and not row[0].is_mark and not row[0].text.endswith(("\n", "\r")):
            row[0] = row[0]._replace(text=row[0].text + self.newline)
        last = first
        for block in new + below:
            row += joined_below(row[-1], block, self.newline) if row and not settled else [block]
            if new and block is new[-1]:
                last = first + len(row) - 1
        moved = len(row) - (stop + len(below) - first)
        blocks[first : stop + len(below)] = row
        self._fenced = self._fenced or any(_may_fence(block.text) for block in new)
        self._words += _count_words(new) - _count_words(old)
        if any(block.kind == "heading" for block in (*new, *old)):
            self._heads = None
        elif moved and self._heads is not None:
            self._heads = [at if at < start else at + moved for at in self._heads]
        return last


def _sections_of(blocks: Sequence[Block], places: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield where each section begins, and its name, from the places of the headings."""
    found = headings([blocks[at] for at in places], category_of)
    return ((places[number], name) for number, name in found)


def _count_words(blocks: Iterable[Block]) -> int:
    return sum(len(block.text.split()) for block in blocks)


def _may_fence(text: str) -> bool:
    return "```" in text or "~~~" in text


_Parts = tuple[str | None, str | None, str]


def _parts_of(block: Block) -> _Parts:
    """Return key, label and content; only a list entry has a label."""
    split = split_label(block.content) if block.kind == "bullet" else None
    return (key_of(split[0]), *split) if split else (None, None, block.content)


def _block_says(block: Block, key: str | None, content: str) -> bool:
    return _parts_of(block)[::2] == (key, content)


def _next_lead(lead: str) -> str:
    """Return the bullet for the entry that follows one with this bullet."""
    match = _LEAD.match(lead)
    if match is None:
        return "- "
    indent, number, mark = match.groups()
    return f"{indent}{min(int(number) + 1, 999) if number else ''}{mark} "


def _replace_content(block: Block, label: str | None, said: str, newline: str) -> str:
    """Return the text of a list entry with another content, in the style of the old one."""
    first, *below = split_lines(block.text)
    deeper = indent_of(below[0]) if below else indent_of(first) + "  "
    match = LABEL.match(first, len(block.lead)) if split_label(block.content) else None
    if match is None:
        return block.lead + f"{newline}{deeper}".join(content_lines(said, "bullet"))
    start, end = match.span("marked" if match["marked"] else "plain")
    shown = first[: match.end()] if label is None else first[:start] + label + first[end : match.end()]
    if first[match.end() :].strip():
        return shown + f"{newline}{deeper}".join(content_lines(said, "value"))
    return f"{newline}{deeper}".join([shown.rstrip(), *content_lines(said, "inner")])
