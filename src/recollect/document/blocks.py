"""Markdown as a list of blocks, each with its exact text: joined, they give the file back, byte for byte.

A block is a heading, a list entry with the deeper lines below it, a paragraph, a blank line, or anything else
(comments, code, quotes, tables ...), which is carried along unread. Except for code and comments, no block spans a
blank line, so one can be changed without reading the rest of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from typing import Final, Literal, NamedTuple

from recollect.errors import DocumentError

MAX_BYTES: Final = 1 << 20
BOM: Final = "\ufeff"

Kind = Literal["blank", "heading", "bullet", "paragraph", "other", "open"]


class Block(NamedTuple):
    """Some whole lines of a file. `open` is code or a comment that is never closed: it runs to the end."""

    kind: Kind
    text: str
    lines: int = 1
    lead: str = ""  # a bullet's indentation, marker and checkbox as written
    content: str = ""  # the text of a heading or an item; for an open block, what would close it
    level: int = 0  # of a heading

    @property
    def is_mark(self) -> bool:
        """True for the byte order mark of the file; further down the same character is text."""
        return self.lines == 0


class Item(NamedTuple):
    """One thing the file says. It belongs to the document it was read from: `line` is its place there."""

    section: str
    category: str | None
    key: str | None
    label: str | None
    content: str
    line: int
    form: Literal["bullet", "paragraph"]


def decode_file(data: bytes) -> str:
    """Decode a file; a byte order mark and all line endings are kept."""
    if len(data) > MAX_BYTES:
        raise DocumentError(f"the file is longer than the limit of {MAX_BYTES:,} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = _byte_position(data, error.start)
        raise DocumentError(f"{place} is not UTF-8 text; save the file as UTF-8") from None
    if "\0" in text:
        raise DocumentError(f"{_byte_position(data, data.index(0))} is a NUL character; save the file as UTF-8 text")
    return text


def encode_file(text: str) -> bytes:
    return text.encode("utf-8")


def _byte_position(data: bytes, at: int) -> str:
    line = len(re.findall(rb"\r\n|\r|\n", data[:at])) + 1
    return f"line {line}, byte {at + 1}"


# --- classifying lines ---

_CONTROLS = r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff"  # those that are not white space
_FENCE = re.compile(r"(`{3,}(?=[^`\r\n]*(?:[\r\n]|\Z))|~{3,})")
_KIND = re.compile(
    rf"""
    (?P<blank> [\s{_CONTROLS}]*\Z ) | (?P<code> [ ]{{4}} | [ ]{{0,3}}\t ) | [ ]{{0,3}} (?:
      (?P<heading> \#{{1,6}}(?=\s|\Z) | \#{{2,6}}(?=[^\#\s]) )
    | (?P<rule> (?P<mark>[-*_]) (?:[ \t]*(?P=mark)){{2,}} \s*\Z )
    | (?P<bullet> (?:[-*+•–]|\d{{1,3}}[.)])(?=\s|\Z) (?:[^\S\r\n]+\[[ xX]\](?=\s|\Z))? [^\S\r\n]* )
    | (?P<fence> {_FENCE.pattern} )
    | (?P<comment> <!-- )
    | (?P<raw> <(?i:pre|script|style|textarea)(?=[\s>]) )
    | (?P<html> </?[A-Za-z][A-Za-z0-9-]*(?=[\s/>]) | <[!?][A-Za-z] )
    | (?P<quote> > )
    | (?P<table> \| )
    | (?P<columns> :?-(?=[^\r\n]*\|)[ \t|:-]*\s*\Z )
    | (?P<underline> (?:={{2,}}|--)\s*\Z )
    | (?P<link> \[[^\]\r\n]+\]: )
    )""",
    re.VERBOSE,
)
_SETEXT = re.compile(r" {0,3}(?:={2,}|-{2,})\s*\Z")
_CLOSING_HASHES = re.compile(r"(?:^|\s+)#+$")


def _kind(line: str) -> str:
    match = _KIND.match(line)
    return match.lastgroup or "text" if match else "text"


def split_lines(text: str) -> list[str]:
    r"""Return lines with their endings: \n, \r\n or \r; no other character ends a line."""
    return StringIO(text, newline="").readlines()


def newline_of(text: str) -> str:
    """Return the line ending this text uses most."""
    pairs = text.count("\r\n")
    counts = {"\n": text.count("\n") - pairs, "\r\n": pairs, "\r": text.count("\r") - pairs}
    return max(counts, key=counts.__getitem__)


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _width(line: str) -> int:
    return len(indent_of(line).expandtabs(4))


# --- parsing blocks ---


def parse_blocks(text: str) -> list[Block]:
    blocks: list[Block] = []
    if text.startswith(BOM):
        blocks.append(Block("other", BOM, 0))
        text = text[1:]
    lines = split_lines(text)
    at = _front_matter_end(lines)
    if at:
        blocks.append(Block("other", "".join(lines[:at]), at))
    while at < len(lines):
        block = _block_at(lines, at)
        blocks.append(block)
        at += block.lines
    return blocks


def parse_block(text: str) -> Block:
    """Return the first block of a text that does not start a file."""
    return _block_at(split_lines(text), 0)


def _front_matter_end(lines: Sequence[str]) -> int:
    if lines and lines[0].rstrip() == "---":
        for at, line in enumerate(lines[1:], 2):
            if line.rstrip() == "---":
                return at
            if line.startswith("##"):  # a rule above the sections, not metadata
                return 0
    return 0


def _block_at(lines: Sequence[str], at: int) -> Block:
    line = lines[at]
    match = _KIND.match(line)
    if match is None:
        return _paragraph(lines, at)
    kind = match.lastgroup
    if kind == "bullet":
        return _bullet(lines, at, match.group())
    if kind == "blank":
        return Block("blank", line)
    if kind == "heading":
        said = _CLOSING_HASHES.sub("", line[match.end() :].strip())
        return Block("heading", line, content=said, level=len(match["heading"]))
    if kind == "fence":
        return _closed(lines, at, _fence_end(lines, at, match["fence"], -1), match["fence"])
    if kind == "comment":
        return _closed(lines, at, _end_with(lines, at, "-->"), "-->")
    if kind == "raw":
        closer = f"</{match['raw'][1:].lower()}>"
        return _closed(lines, at, _end_with(lines, at, closer), closer)
    if kind == "html":
        return _other(lines, at, _end_while(lines, at, lambda kind: kind != "blank"))
    if kind == "quote":
        return _other(lines, at, _end_while(lines, at, lambda kind: kind in ("quote", "text")))
    return Block("other", line)


def _paragraph(lines: Sequence[str], at: int) -> Block:
    end = _end_while(lines, at, lambda kind: kind in ("text", "code"))
    if end < len(lines):
        below = lines[end]
        if _SETEXT.match(below):
            said = " ".join(line.strip() for line in lines[at:end])
            text = "".join(lines[at : end + 1])
            return Block("heading", text, end + 1 - at, content=said, level=1 if "=" in below else 2)
        if _kind(below) == "columns":
            return _other(lines, at, _end_while(lines, end, lambda kind: kind == "text"))
    content = _read_content(lines[at], lines[at + 1 : end], _KIND.match, _KIND.match)
    return Block("paragraph", "".join(lines[at:end]), end - at, content=content)


def _bullet(lines: Sequence[str], at: int, lead: str) -> Block:
    first = lines[at][len(lead) :]
    end = at + 1
    if end < len(lines) and lines[end][0] in " \t":
        end = _entry_end(lines, at, first)
    if end > at + 1:
        text = "".join(lines[at:end])
        if _is_comment(text[len(lead) :].strip()):
            return Block("other", text, end - at)
        content = _read_content(first, lines[at + 1 : end], _MISREAD.match, _FENCE.match)
        return Block("bullet", text, end - at, lead, content)
    said = _strip_line(first)
    if not said or _is_comment(said) or (said[-1] in ":：*_`" and _EMPTY_LABEL.match(said)):
        return Block("other", lines[at])
    return Block("bullet", lines[at], 1, lead, _unescape_line(said, _misread_alone) if said[0] == "\\" else said)


def _entry_end(lines: Sequence[str], at: int, first: str) -> int:
    """Return where the deeper lines below a bullet end. Code among them may contain blank lines."""
    indent = _width(lines[at])
    end, text, look_for_code = at + 1, first, True
    while True:
        fence = _FENCE.match(text.lstrip()) if look_for_code else None
        if fence:
            closed = _fence_end(lines, end - 1, fence[1], indent)
            look_for_code = closed > 0  # if this one does not end here, none further down does
            end = closed or end
        if end == len(lines) or _width(lines[end]) <= indent or not _strip_line(lines[end]):
            return end
        text = lines[end]
        end += 1


def _is_comment(said: str) -> bool:
    return said.startswith("<!--") and said.find("-->") in (-1, len(said) - 3)


def _other(lines: Sequence[str], at: int, end: int) -> Block:
    return Block("other", "".join(lines[at:end]), end - at)


def _closed(lines: Sequence[str], at: int, end: int, closer: str) -> Block:
    if end:
        return _other(lines, at, end)
    return Block("open", "".join(lines[at:]), len(lines) - at, content=closer)


def _end_while(lines: Sequence[str], at: int, belongs: Callable[[str], bool]) -> int:
    end = at + 1
    while end < len(lines) and belongs(_kind(lines[end])):
        end += 1
    return end


def _end_with(lines: Sequence[str], at: int, closer: str) -> int:
    return next((end for end in range(at + 1, len(lines) + 1) if closer in lines[end - 1].lower()), 0)


def _fence_end(lines: Sequence[str], at: int, fence: str, above: int) -> int:
    """Return the line after the closing fence, or 0; a line indented no deeper than `above` ends the search."""
    for end in range(at + 1, len(lines)):
        text = lines[end].strip()
        if text.startswith(fence) and not text.strip(fence[0]):
            return end + 1
        if text and _width(lines[end]) <= above:
            return 0
    return 0


# --- the content of a block, and how to write it so that it is read back the same ---

_SPACE_CONTROLS = re.compile(r"[\x0b\x0c\x1c-\x1f\x85]")
_OTHER_CONTROLS = re.compile(f"[{_CONTROLS}]")
_NEWLINES = re.compile(r"\r\n?|\n")
_EMPTY_LABEL = re.compile(r"(?!\\)[^:：]{1,70}[:：][*_`]*\Z")
_MISREAD = re.compile(rf"([-*_])(?:[ \t]*\1)+\Z|{_FENCE.pattern}|<!--|\[[ xX]\](?=\s|\Z)")

_Question = Callable[[str], object]


def strip_controls(text: str) -> str:
    """Remove control characters; those that are white space become a space."""
    if text.isprintable():
        return text
    return _OTHER_CONTROLS.sub("", _SPACE_CONTROLS.sub(" ", _NEWLINES.sub("\n", text)))


def one_block(content: str) -> str:
    """Return a content as it can stand in a list entry: no blank lines, no outer white space, no controls."""
    if content.isprintable():
        return content.strip()
    return _dedent_lines(_NEWLINES.split(content))


def content_lines(content: str, position: Literal["bullet", "value", "inner", "paragraph"]) -> list[str]:
    """Return the lines to write so that `content` is read back, with a backslash only where necessary.

    The position is that of the first line: after a bullet, after a label, below a bullet, or on its own.
    """
    head, *rest = content.split("\n")
    if position == "paragraph":
        return [_escape_line(line, _KIND.match) for line in (head, *rest)]
    if position == "bullet":
        head = _escape_line(head, _MISREAD.match if rest else _misread_alone)
    elif position == "inner":
        head = _escape_line(head, _FENCE.match)
    return [head, *(_escape_line(line, _FENCE.match) for line in rest)]


def _misread_alone(said: str) -> object:
    return _MISREAD.match(said) or _EMPTY_LABEL.match(said)


def _escape_line(line: str, misread: _Question) -> str:
    text = line.lstrip(" ")
    return f"{indent_of(line)}\\{text}" if _needs_backslash(text, misread) else line


def _unescape_line(line: str, misread: _Question) -> str:
    """Invert `_escape_line`: remove a backslash exactly where writing would have put it."""
    text = line.lstrip(" ")
    if not text.startswith("\\"):
        return line
    return indent_of(line) + text[1:] if _needs_backslash(text, misread) else line


def _needs_backslash(text: str, misread: _Question) -> bool:
    """Return True if a line would be misread without a backslash, however many it already has.

    Never in front of white space: the content of a line does not begin with any.
    """
    bare = text.lstrip("\\")
    return bool(bare) and not bare[0].isspace() and bool(misread(bare))


def _read_content(first: str, rest: Iterable[str], misread_first: _Question, misread: _Question) -> str:
    if not _strip_line(first):
        misread_first = misread
    joined = _dedent_lines((first, *rest))
    if "\\" not in joined:
        return joined
    head, *tail = joined.split("\n")
    return "\n".join([_unescape_line(head, misread_first), *(_unescape_line(line, misread) for line in tail)])


def _dedent_lines(lines: Iterable[str]) -> str:
    """Join the first line and the others, less their common indentation, without blank ones."""
    first, *rest = [(_width(line), bare) for line in lines if (bare := _strip_line(line))] or [(0, "")]
    if not rest:
        return first[1]
    least = min(rest)[0]
    return "\n".join([first[1], *(" " * (width - least) + bare for width, bare in rest)])


def _strip_line(line: str) -> str:
    text = line.strip()
    return text if text.isprintable() else strip_controls(text).strip()


# --- sections ---


def headings(blocks: Iterable[Block], opens_section: _Question) -> Iterator[tuple[int, str]]:
    """Yield where each section begins, and its name. A level-1 heading at the top is the file's title and opens no
    section, unless it has the name of one.
    """
    first = True
    for at, block in enumerate(blocks):
        if block.kind == "heading":
            if not first or block.level > 1 or opens_section(block.content):
                yield at, block.content
            first = False


def joined_below(above: Block, below: Block, newline: str) -> tuple[Block, ...]:
    """Return `below` as it must follow `above`: after a blank line if the two would otherwise be read as one."""
    if _would_merge(above, below):
        return *joined_below(above, Block("blank", newline), newline), below
    if below.text == "\n" and above.text.endswith("\r"):  # together they would be one line ending
        return (Block("blank", "\r\n"),)
    return (below,)


def _would_merge(above: Block, below: Block) -> bool:
    if above.kind in ("blank", "heading") or above.is_mark or below.kind == "blank":
        return False
    if above.kind == "bullet":
        return _width(below.text) > _width(above.text)
    return below.kind != "bullet" or (above.kind == "other" and below.text[0] == " ")
