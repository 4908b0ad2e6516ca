"""A topic that a person wants forgotten or erased, and which texts mention it.

A text mentions a topic if it has all of its words, anywhere and in any order. It has a word if it has

- the word itself, ignoring case, accents, typographic marks, hyphens and apostrophes ("email" is in "e-mail", and
  "don't" in "dont");
- a longer word that begins with it (from `PREFIX` letters on: "depression" in "Depressionstherapie"), or contains it
  (from `INSIDE` letters on: "Winterdepression"); shorter words only as a whole, so that "tea" is not in "teacher";
- an inflection of it in any language that the memory contains;
- the same name or stem in another script ("Kyiv", "Київ");
- in scripts without spaces, the same characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

from recollect import text
from recollect.policy.duplicates.words import compared_words, skeleton

PREFIX = 5
INSIDE = 8
_SHORTEST_FOREIGN = 4
"""The minimum length of a stem in a language other than the topic's own: short ones look alike in all languages."""


class Topic:
    """The words of a topic, prepared for matching. ``languages`` are those of the texts to search."""

    def __init__(self, topic: str, languages: Iterable[str] = ()) -> None:
        cleaned = text.clean(topic)
        self.text = topic
        self._runs = [text.fold(token) for token in text.tokens(cleaned) if text.unspaced(token)]
        given = [word for token in text.tokens(cleaned) if not text.unspaced(token) for word in text.token_words(token)]
        own = text.language_of(topic)
        said = [word.removesuffix("'s") for word in text.without_stop_words(given, own)]
        wanted = list(dict.fromkeys(word for word in said if word))
        self._literal = [_bounded_pattern(word) for word in wanted if not word.isalnum()]
        self._words = [_TopicWord(word, own, {own, "en", *languages}) for word in wanted if word.isalnum()]
        self._seen: dict[str, frozenset[int]] = {}
        whole = text.fold(topic)
        one_word = text.join_compounds(whole)
        self._joined = None if one_word == whole else Topic(one_word, languages)
        """The same with its compounds in one word: "e-mail" is also written email."""

    def __bool__(self) -> bool:
        """Return True if there is a word to search for."""
        return bool(self._runs or self._literal or self._words)

    def is_in(self, texts: Iterable[str]) -> bool:
        """Return True if these texts together mention it."""
        return self._is_in(text.fold("\n".join(texts)))

    def _is_in(self, folded: str) -> bool:
        return self._is_told(folded) or (self._joined is not None and self._joined._is_in(folded))

    def _is_told(self, folded: str) -> bool:
        if not all(run in folded for run in self._runs) or not all(word.search(folded) for word in self._literal):
            return False
        missing = set(range(len(self._words)))
        whole = text.join_compounds(folded)
        for told in (folded,) if whole == folded else (folded, whole):
            for word in text.letter_runs(told) if missing else ():
                missing -= self._met(word)
                if not missing:
                    return True
        return not missing

    def without_lines(self, document: str, keep: Set[str]) -> tuple[str, int]:
        """Return a document without the lines that mention it, and their number. Lines in ``keep`` stay.

        If only a whole paragraph of prose mentions it, because its words are on several lines, the paragraph is
        removed.
        """
        lines = re.findall(r"[^\n]*\n|[^\n]+", document)  # only \n ends a line, as in the files
        gone = {number for number, line in enumerate(lines) if line.strip() not in keep and self.is_in([line])}
        for paragraph in _paragraphs(lines):
            if gone.isdisjoint(paragraph) and self.is_in(lines[number] for number in paragraph):
                gone.update(paragraph)
        return "".join(line for number, line in enumerate(lines) if number not in gone), len(gone)

    def _met(self, word: str) -> frozenset[int]:
        """Return the words of the topic that this word of a text matches."""
        found = self._seen.get(word)
        if found is None:
            found = frozenset(number for number, wanted in enumerate(self._words) if wanted.is_met_by(word))
            self._seen[word] = found
        return found


class _TopicWord:
    def __init__(self, word: str, own: str, languages: set[str]) -> None:
        self._word = word
        self._stems = {
            code: stem
            for code in languages
            if len(stem := text.stem(word, code)) >= _SHORTEST_FOREIGN or code in (own, "en")
        }
        self._names = _cross_script_names(word, languages)

    def is_met_by(self, word: str) -> bool:
        if word == self._word or self._is_part_of(word):
            return True
        if word.isalpha() and any(text.stem(word, code) == stem for code, stem in self._stems.items()):
            return True
        if word.isascii() and self._word.isascii():
            return False
        return not self._names.isdisjoint(_cross_script_names(word, self._stems.keys()))

    def _is_part_of(self, word: str) -> bool:
        size = len(self._word)
        return (size >= PREFIX and word.startswith(self._word)) or (size >= INSIDE and self._word in word)


def _cross_script_names(word: str, languages: Iterable[str]) -> set[str]:
    """Return what a word has in common across scripts: a name by its table, and the skeletons of its stems."""
    found = set()
    for code in {*languages, *text.languages_of_script(word)}:
        bones = skeleton(text.stem(word, code))
        if len(bones) >= _SHORTEST_FOREIGN:
            found.add(bones)
        found.update(f"={one.plain}" for one in compared_words(word, code) if one.known)
    return found


def _bounded_pattern(word: str) -> re.Pattern[str]:
    """Match an identifier such as c++ or gpt-4, but not within another."""
    return re.compile(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])")


def _paragraphs(lines: list[str]) -> Iterable[range]:
    """Return runs of lines of prose; a heading, a list item or an empty line ends one."""
    start = 0
    for number, line in enumerate([*lines, ""]):
        if not line.strip() or re.match(r"\s*(?:[-*+#>|]|\d+[.)]\s)", line):
            if number - start > 1:
                yield range(start, number)
            start = number + 1


def strings_in(value: Any, *, names: bool = True, skip: Set[str] = frozenset()) -> Iterable[str]:
    """Yield every text in plain data, and the names in it on request; names in ``skip`` do not count.

    Without the names, what is under a skipped one does not count either.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if names and name not in skip:
                yield str(name)
            if names or name not in skip:
                yield from strings_in(item, names=names, skip=skip)
    elif isinstance(value, Iterable):
        for item in value:
            yield from strings_in(item, names=names, skip=skip)
