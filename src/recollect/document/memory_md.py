"""MEMORY.md: what the file says, and how one line of it is changed without touching the others.

    document = Document.parse(text)
    document = document.add("Work Context", "Senior engineer", key="role")   # - Role: Senior engineer
    document.render()

A document never changes: every method gives a new one. Knows no database, no file system and no policy: who
may change what, and what a change means, is decided elsewhere.
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
    clean,
    decode,
    encode,
    headings,
    indent_of,
    joined_below,
    newline_of,
    one_block,
    parse_blocks,
    split_lines,
    written,
)
from recollect.document.labels import LABEL, MAX_LABEL, can_label, key_of, label_of, split_label
from recollect.errors import InvalidInputError, NotFoundError

__all__ = [
    "MAX_BYTES",
    "MAX_LABEL",
    "SECTIONS",
    "TITLE",
    "Document",
    "Item",
    "category_of",
    "decode",
    "encode",
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

# Each category and its heading, in the order the sections stand in the file.
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
    """A new user's file."""
    begun = [heading for category, heading in SECTIONS.items() if category != "reading_history"]
    return "\n\n".join([TITLE, *(f"## {heading}" for heading in begun)]) + "\n"


def section_of(category: str) -> str:
    """The heading under which a category stands."""
    return SECTIONS[category]


@lru_cache(1024)
def category_of(section: str) -> str | None:
    """The category a heading stands for; case, emphasis, emoji and punctuation do not matter."""
    return _CATEGORIES.get(" ".join(re.findall(r"[^\W_]+", section.casefold())))


@lru_cache(1024)
def section_key(section: str) -> str:
    """Equal for two headings exactly if they name the same section."""
    bare = section.casefold().strip(" \t*_`:：")
    return category_of(section) or " ".join(bare.split())


def render_item(key: str | None, label: str | None, content: str) -> str:
    """The lines of a new item, without the last line ending: `- Label: value` or `- text`."""
    return _entry("- ", key, label, _checked(content), "\n")


def _checked(content: str) -> str:
    said = one_block(content)
    if not said:
        raise InvalidInputError("content", "there is no text in it")
    return said


def _entry(lead: str, key: str | None, label: str | None, said: str, newline: str) -> str:
    indent = newline + indent_of(lead) + "  "
    if key is None:
        return lead + indent.join(written(said, "bullet"))
    return f"{lead}{_label_for(key, label)}: {indent.join(written(said, 'value'))}"


def _label_for(key: str, label: str | None) -> str:
    proper = key_of(key)
    if not proper:
        raise InvalidInputError("key", f"{key!r} has no letter or digit")
    return label if label and can_label(label, proper) else label_of(proper)


# --- the document ---


class Document:
    """The whole file. What `render` gives was in the text that was parsed, or was asked for since."""

    __slots__ = ("_blocks", "_fenced", "_heads", "_items", "_parts", "_words", "newline")

    def __init__(self, blocks: Sequence[Block], newline: str, words: int, *, fenced: bool) -> None:
        self._blocks = tuple(blocks)
        self._words = words
        self._fenced = fenced  # code may reach across blank lines, so a change can be felt further away
        self._heads: list[int] | None = None  # where the headings are, handed on where a change does not touch one
        self._items: tuple[Item, ...] | None = None
        self._parts: dict[str, _Parts] = {}  # of each block by its text, handed on from document to document
        self.newline = newline

    @classmethod
    def parse(cls, text: str) -> Document:
        words = len(text.removeprefix(BOM).split())
        return cls(parse_blocks(text), newline_of(text), words, fenced=_may_fence(text))

    def render(self) -> str:
        return "".join([block.text for block in self._blocks])

    @property
    def word_count(self) -> int:
        """`len(text.split())`, without joining the text."""
        blocks = self._blocks
        mark_alone = blocks[:1] == _MARK and (len(blocks) == 1 or blocks[1].text[0].isspace())
        return self._words + mark_alone

    @property
    def items(self) -> tuple[Item, ...]:
        """What the file says, from top to bottom."""
        if self._items is None:
            self._items = tuple(item for _, item in self._read())
        return self._items

    def _headings(self) -> list[int]:
        if self._heads is None:
            self._heads = [at for at, block in enumerate(self._blocks) if block.kind == "heading"]
        return self._heads

    def _sections(self) -> Iterator[tuple[int, str]]:
        places = self._headings()
        found = headings([self._blocks[at] for at in places], category_of)
        return ((places[number], name) for number, name in found)

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
                if own or block.level <= level:  # else it divides the section above, and is of its category
                    category, level = own, block.level
            line += block.lines
        return found

    def add(self, section: str, content: str, key: str | None = None, label: str | None = None) -> Document:
        """A new item after the last one of its section, which is created where it is missing."""
        said = _checked(content)
        return self._put(section, lambda lead: _entry(lead, key, label, said, self.newline))

    def replace(self, item: Item, content: str) -> Document:
        """The same line with another content: bullet, label, line ending and position stay."""
        at = self._find(item)
        return self._rewrite(at, item.key, None, _checked(content))

    def rename(self, item: Item, key: str, label: str | None = None) -> Document:
        """The same line under another key. A paragraph becomes a list entry: only those have keys."""
        at = self._find(item)
        return self._rewrite(at, key_of(key), _label_for(key, label), item.content)

    def remove(self, item: Item) -> Document:
        """Without the lines of this item; its section stays, also when it is left empty."""
        return self._cut(self._find(item))

    def move(self, item: Item, section: str) -> Document:
        """The same lines at the end of another section."""
        at = self._find(item)
        text = self._blocks[at].text.rstrip("\r\n")
        indent = indent_of(text)
        lines = [line.removeprefix(indent) for line in split_lines(text)]
        return self._cut(at)._put(section, lambda _: "".join(lines))

    # --- finding and changing blocks ---

    def _find(self, item: Item) -> int:
        """The block of an item. One that was read before other changes is found again by what it says."""
        line, at = 1, 0
        while line < item.line and at < len(self._blocks):
            line += self._blocks[at].lines
            at += 1
        if line == item.line and at < len(self._blocks) and _says(self._blocks[at], item.key, item.content):
            return at
        for at, other in self._read():
            if (other.section, other.key, other.content) == (item.section, item.key, item.content):
                return at
        raise NotFoundError(f"the file does not say {item.content!r} under {item.section!r}")

    def _rewrite(self, at: int, key: str | None, label: str | None, said: str) -> Document:
        block = self._blocks[at]
        body = block.text.rstrip("\r\n")
        ending = block.text[len(body) :]
        newline = newline_of(block.text) if ending else self.newline
        if block.kind == "paragraph" and key is None:
            text = indent_of(body) + newline.join(written(said, "paragraph"))
        else:
            text = _in_place(block, label, said, newline)
            if not _says(_block(text), key, said):
                lead = block.lead.rstrip() or "-"
                text = _entry(f"{lead} ", key, label, said, newline)
        changed = _block(text + ending)
        return self._splice(at, at + 1, [changed], settled=changed.kind == block.kind)

    def _cut(self, at: int) -> Document:
        around = self._blocks[at - 1 : at] + self._blocks[at + 1 : at + 2]
        alone = [block.kind for block in around] == ["blank", "blank"]
        return self._splice(at, at + 2 if alone else at + 1, [])

    def _put(self, section: str, text_with: Callable[[str], str]) -> Document:
        key = section_key(section)
        start = next((at for at, name in self._sections() if section_key(name) == key), None)
        if start is None:
            return self._put_section(section, _block(text_with("- ") + self.newline))
        below = self._blocks[start + 1 : next((at for at in self._headings() if at > start), None)]
        # from the end: the last item is almost always the last block
        last = next((at for at in range(len(below) - 1, -1, -1) if below[at].kind in ("bullet", "paragraph")), -1)
        lead = next((below[at].lead for at in range(last, -1, -1) if below[at].kind == "bullet"), "- ")
        end = start + 2 + last
        new = _block(text_with(_next_lead(lead)) + self.newline)
        apart = new.kind == "paragraph" and self._blocks[end - 1].kind != "heading"
        return self._splice(end, end, [self._blank(), new] if apart else [new])

    def _put_section(self, section: str, item: Block) -> Document:
        heading = _block(f"## {' '.join(clean(section).split())}{self.newline}")
        if not heading.content:
            raise InvalidInputError("section", "a section needs a name")
        at = self._place_for(heading.content)
        row = [heading, item]
        if all(block.kind == "blank" or block.text == BOM for block in self._blocks):
            row = [_block(TITLE + self.newline), self._blank(), *row]
        elif at and self._blocks[at - 1].kind != "blank" and self._blocks[at - 1].text != BOM:
            row.insert(0, self._blank())
        if at < len(self._blocks):
            row.append(self._blank())
        return self._splice(at, at, row)

    def _place_for(self, section: str) -> int:
        category = category_of(section)
        if category:
            later = _ORDER[_ORDER.index(category) + 1 :]
            for at, name in self._sections():
                if category_of(name) in later:
                    return at
        # what is never closed would swallow whatever is written below it
        return len(self._blocks) - (bool(self._blocks) and self._blocks[-1].kind == "open")

    def _blank(self) -> Block:
        return Block("blank", self.newline)

    def _splice(self, start: int, stop: int, new: list[Block], *, settled: bool = False) -> Document:
        """These blocks instead of those from start to stop, with all neighbours kept apart."""
        old = self._blocks
        above, below = list(old[max(start - 1, 0) : start]), list(old[stop : stop + 1])
        if new and above and above[0].text != BOM and not above[0].text.endswith(("\n", "\r")):
            above[0] = above[0]._replace(text=above[0].text + self.newline)
        row = above
        for block in new + below:
            row += joined_below(row[-1], block, self.newline) if row and not settled else [block]
        blocks = (*old[: max(start - 1, 0)], *row, *old[stop + len(below) :])
        if self._fenced or any(_may_fence(block.text) for block in new):
            return Document.parse("".join([block.text for block in blocks]))
        words = self._words + _words(new) - _words(old[start:stop])
        document = Document(blocks, self.newline, words, fenced=False)
        document._parts = self._parts
        if not any(block.kind == "heading" for block in (*new, *old[start:stop])):
            moved = len(blocks) - len(old)
            document._heads = [at if at < start else at + moved for at in self._headings()]
        return document


def _block(text: str) -> Block:
    return parse_blocks(text)[0]


def _words(blocks: Iterable[Block]) -> int:
    return sum(len(block.text.split()) for block in blocks)


def _may_fence(text: str) -> bool:
    return "```" in text or "~~~" in text


_Parts = tuple[str | None, str | None, str]


def _parts_of(block: Block) -> _Parts:
    """Key, label and content; only a list entry has a label."""
    split = split_label(block.content) if block.kind == "bullet" else None
    return (key_of(split[0]), *split) if split else (None, None, block.content)


def _says(block: Block, key: str | None, content: str) -> bool:
    return _parts_of(block)[::2] == (key, content)


def _next_lead(lead: str) -> str:
    """The bullet for the entry that follows one with this bullet."""
    match = _LEAD.match(lead)
    if match is None:
        return "- "
    indent, number, mark = match.groups()
    return f"{indent}{min(int(number) + 1, 999) if number else ''}{mark} "


def _in_place(block: Block, label: str | None, said: str, newline: str) -> str:
    """The text of a list entry with another content, in the style of the old one."""
    first, *below = split_lines(block.text)
    deeper = indent_of(below[0]) if below else indent_of(first) + "  "
    match = LABEL.match(first, len(block.lead)) if split_label(block.content) else None
    if match is None:
        return block.lead + f"{newline}{deeper}".join(written(said, "bullet"))
    start, end = match.span("marked" if match["marked"] else "plain")
    shown = first[: match.end()] if label is None else first[:start] + label + first[end : match.end()]
    if first[match.end() :].strip():
        return shown + f"{newline}{deeper}".join(written(said, "value"))
    return f"{newline}{deeper}".join([shown.rstrip(), *written(said, "inner")])
