"""Diffs that preview a change: by line for a file, by word for one value."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

_CONTEXT = 2
_MOST = 400


@dataclass(frozen=True)
class WordRun:
    """Some words, changed or unchanged."""

    text: str
    changed: bool


Words = tuple[WordRun, ...]


@dataclass(frozen=True)
class DiffRow:
    """A line of a diff: "same", "gone", "new", or "gap" for unchanged lines that are left out."""

    kind: str
    words: Words


def words_changed(before: str, after: str) -> tuple[Words, Words]:
    """Return two versions of a text, each with its changed words marked."""
    one, other = _split_words(before), _split_words(after)
    if len(one) + len(other) > _MOST:
        return (WordRun(before, True),), (WordRun(after, True),)
    old: list[WordRun] = []
    new: list[WordRun] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if b > a:
            old.append(WordRun("".join(one[a:b]), tag != "equal"))
        if d > c:
            new.append(WordRun("".join(other[c:d]), tag != "equal"))
    return tuple(old), tuple(new)


def lines_changed(before: str, after: str) -> list[DiffRow]:
    """Return the diff of two versions of a file, with changed words marked; empty if they are equal."""
    one, other = before.splitlines(), after.splitlines()
    rows: list[DiffRow] = []
    groups = list(difflib.SequenceMatcher(None, one, other, autojunk=len(one) > 2000).get_grouped_opcodes(_CONTEXT))
    for number, group in enumerate(groups):
        if number or group[0][1]:
            rows.append(DiffRow("gap", ()))
        for tag, a, b, c, d in group:
            if tag == "equal":
                rows += [DiffRow("same", (WordRun(line, False),)) for line in one[a:b]]
            elif tag == "replace" and b - a == d - c:
                pairs = [words_changed(old, new) for old, new in zip(one[a:b], other[c:d], strict=True)]
                rows += [DiffRow("gone", old) for old, _ in pairs] + [DiffRow("new", new) for _, new in pairs]
            else:
                rows += [DiffRow("gone", (WordRun(line, False),)) for line in one[a:b]]
                rows += [DiffRow("new", (WordRun(line, False),)) for line in other[c:d]]
    return rows


def _split_words(text: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", text)
