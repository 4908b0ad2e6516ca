"""Makes `concepts.json` from `concepts.txt`: from the thesaurus as written to one that loads quickly.

The text has one group of words per line; its head explains the forms of a line. The JSON has for each language and
each stem the related stems with their weights, strongest first. Run this module after changing the text:

    python -m recollect.search.thesaurus
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from recollect import text

FORM = 0.9
"""The same word in another form: go, went."""
SAME = 0.8
"""Another word for nearly the same: doctor, physician."""
INSTANCE = 0.4
"""From a general word to one of its instances: sibling, sister."""
COMPANION = 0.25
"""From a topic to what it usually comes with: photography, lens."""
GENERAL = 0.25
"""From an instance back to the general word: sister, sibling."""
MOST = 24
"""The maximum number of related words per term."""

LANGUAGES = ("en", "de", "fr", "es", "uk", "ru")
_HERE = Path(__file__).parent

_Group = tuple[str, list[str], list[str]]
"""A line of the table: its sign, and the stems on either side of it."""


class _LanguageTable(NamedTuple):
    forms: dict[str, list[str]]
    """All the forms of a word, by each of them; other groups know only the first."""
    groups: dict[str, list[_Group]]
    """The groups a word is in."""

    def forms_of(self, word: str) -> list[str]:
        return self.forms.get(word) or [word]

    def same(self, word: str) -> Iterator[str]:
        return (other for sign, _, others in self.groups.get(word, ()) if sign == "=" for other in others)

    def under(self, word: str, which: str) -> Iterator[str]:
        """Yield the instances or the companions of a word."""
        for sign, heads, others in self.groups.get(word, ()):
            if sign == which and word in heads:
                yield from others

    def general(self, word: str) -> Iterator[str]:
        for sign, heads, others in self.groups.get(word, ()):
            if sign == ">" and word in others:
                yield from heads


def relations(table: _LanguageTable, stem: str) -> list[tuple[str, float]]:
    """Return other stems for a stem, each with a weight up to 1, strongest first."""
    weights: dict[str, float] = {}

    def add(words: Iterable[str], weight: float) -> None:
        for word in words:
            for form in table.forms_of(word):
                weights[form] = max(weight, weights.get(form, 0.0))

    word = table.forms_of(stem)[0]
    add([word], FORM)
    add(table.same(word), SAME)
    add(table.under(word, ">"), INSTANCE)
    add(table.under(word, "~"), COMPANION)
    add(table.general(word), GENERAL)
    # One step over a synonym, at either end: kid is child, whose instance is son; sibling has brother, who is
    # bro. They come last, so that no long list of them pushes out what the table says itself.
    for other in table.same(word):
        add(table.under(other, ">"), SAME * INSTANCE)
        add(table.under(other, "~"), SAME * COMPANION)
    for other in table.under(word, ">"):
        add(table.same(other), INSTANCE * SAME)
    weights.pop(stem, None)
    return sorted(list(weights.items())[:MOST], key=lambda pair: -pair[1])


def compile_concepts() -> str:
    """Return the content of concepts.json."""
    content = (_HERE / "concepts.txt").read_text(encoding="utf-8")
    found: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for language in LANGUAGES:
        table = parse_language(content, language)
        stems = sorted({*table.forms, *table.groups, *(form for forms in table.forms.values() for form in forms)})
        found[language] = {stem: rounded for stem in stems if (rounded := _rounded(relations(table, stem)))}
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n"


def _rounded(pairs: list[tuple[str, float]]) -> list[tuple[str, float]]:
    return [(stem, round(weight, 3)) for stem, weight in pairs]


# -- the file ------------------------------------------------------------------------------------------------


class _Stems(dict[str, str]):
    """The stem of a word of the file, computed once."""

    def __init__(self, language: str) -> None:
        self.language = language

    def __missing__(self, word: str) -> str:
        # Most words are plain letters, and folding and splitting them would cost more than all the rest.
        if not (word.isascii() and word.isalpha() and word.islower()):
            folded = text.fold(word)
            if text.folded_words(word) != [folded] or word != word.lower():
                raise ValueError(f"{word!r} is not one word in lower case")
            self[word] = found = text.term(folded, self.language)
        else:
            self[word] = found = text.term(word, self.language)
        return found


def parse_language(content: str, language: str) -> _LanguageTable:
    """Return the table of one language. An invalid line is a ValueError naming it."""
    forms: dict[str, list[str]] = {}
    groups: dict[str, list[_Group]] = defaultdict(list)
    read: list[_Group] = []
    stemmed = _Stems(language).__getitem__
    for number, line in enumerate(content.splitlines(), 1):
        if not line or line[0] == "#":
            continue
        code, body = ("en", line) if line[2:3] != ":" else (line[:2], line[4:])
        if code != language and code in LANGUAGES:
            continue
        try:
            if code != language:
                raise ValueError(f"unknown language {code!r}")
            group = _group(body, stemmed)
            if group[0] == "&":
                _unite(forms, group[2])
            else:
                read.append(group)
        except ValueError as error:
            raise ValueError(f"concepts.txt, line {number}: {error}: {line}") from None
    for group in read:
        for side in group[1:]:
            if not forms.keys().isdisjoint(side):
                side[:] = [forms[word][0] if word in forms else word for word in side]
            for word in side:
                groups[word].append(group)
    return _LanguageTable(forms, dict(groups))


def _group(body: str, stemmed: Callable[[str], str]) -> _Group:
    sign = body[:1]
    if sign in ("=", "&"):
        heads, others = [], list(map(stemmed, body[2:].split(", ")))
        if len(others) < 2:
            raise ValueError("a word without another")
    else:
        sign = ">" if " > " in body else "~"
        left, found, right = body.partition(" > " if sign == ">" else " ~ ")
        if not found:
            raise ValueError("neither =, &, > nor ~")
        heads, others = list(map(stemmed, left.split(", "))), list(map(stemmed, right.split(", ")))
    if len({*heads, *others}) < len(heads) + len(others):
        raise ValueError("two words with one stem")
    return sign, heads, others


def _unite(forms: dict[str, list[str]], words: list[str]) -> None:
    for word in words:
        if word in forms:
            raise ValueError(f"{word!r} is already a form of {forms[word][0]!r}")
        forms[word] = words


if __name__ == "__main__":
    (_HERE / "concepts.json").write_text(compile_concepts(), encoding="utf-8")
