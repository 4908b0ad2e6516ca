"""The sentences of a message that its author says about themselves and in earnest: `sentences`.

Left out are code, logs, quotations, pasted mail and documents, verses, everything after a request to work on a text,
role play and suppositions. A message that is meant as a joke, or that tries to give orders to a model, is left out as a
whole. Positions are those in the message, so that an excerpt is always a piece of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from recollect.agents.rules.tables import union
from recollect.policy.code import looks_like_code

__all__ = ["HIDDEN", "Sentence", "plain_punctuation", "sentences"]

HIDDEN: Final = "\ufffc"
"""Stands for a character that the author of the message only quotes."""

_LONGEST_MESSAGE: Final = 6000
_LONGEST_PARAGRAPH: Final = 1500
_LONGEST_SENTENCE: Final = 400
_MOST_SENTENCES: Final = 60

_PLAIN: Final = str.maketrans(
    {ord(c): "'" for c in "\u2018\u2019\u201b\u02bc\u2032\u00b4\uff07"}
    | {ord(c): '"' for c in "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\u300c\u300d\u300e\u300f"}
    | {ord(c): " " for c in "\t\r\u00a0\u202f\u2009\u3000"}
    | {ord(c): "-" for c in "\u2010\u2011"}
)

_LOG = (
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d(?::\d\d)?\]?\s|\[?(?:INFO|DEBUG|WARN(?:ING)?|ERROR|FATAL|TRACE)\b"
    r"|\[\d{1,2}[./]\d{1,2}[./]\d{2,4}"
)
_FOREIGN = rf"\s*(?:>|\||\$ |#!|{_LOG}|[-*+•·–—]\s|\d{{1,3}}[.)]\s|https?://|♪)"
_MAIL = (
    r"\s*(?:#{1,6} |-{3,}|={3,}|_{3,}|\*{3,}|<\w+>|(?:From|To|Cc|Subject|Sent|Date|Von|Betreff|De|Objet|Asunto|Від|От"
    r"|Тема|Temat):\s\S|(?:On|Am|Le|El)\s.{6,80}(?:wrote|schrieb|a écrit|escribió).{0,40}:\s*$|Begin forwarded message"
    r"|Dear\s|Sehr geehrte|Hi all,|Abstract\b|Lyrics|BEGIN |<\?xml)"
)
_END = re.compile(r"(?:[.!?…]+[\"')\]]*(?=\s|$)|[。！？]+)")
_SHORT = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|st|prof|sr|jr|vs|e\.g|i\.e|etc|inc|ltd|no|approx|ca|bzw|z\.b|u\.a|ul|im|св|ул|г|т\.е|p\.m|a\.m"
    r"|u\.s|u\.k)|(?<!\w)[A-ZА-ЯІЇЄҐ])$",
    re.IGNORECASE,
)
_ORDINAL = re.compile(
    r" (?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Klasse|Stock)\b"
)
_QUOTED = (
    re.compile(r'"[^"\n]{1,600}"'),
    re.compile(r"(?<![\w'])'(?=\S)[^\n]{8,300}?(?<=\S)'(?![\w'])"),
    re.compile(r"`[^`\n]{1,400}`"),
)
_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and its position in the message, without surrounding space. ``asks`` if it is a question."""

    start: int
    end: int
    text: str
    first: bool
    asks: bool


@lru_cache(maxsize=4)
def _compile_ignoring_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def plain_punctuation(text: str) -> str:
    """Return the text, character for character, with the simplest form of quotes, dashes and spaces."""
    return text.translate(_PLAIN)


def sentences(text: str, speaker: str | None = None) -> list[Sentence]:
    """Return the sentences of a message that its author says in earnest, in order."""
    if len(text) > _LONGEST_MESSAGE or not text.strip():
        return []
    shown = _FENCE.sub(_hide, plain_punctuation(text))
    if union("irony").search(shown) or union("irony_marks", "", "").search(shown) or union("injection").search(shown):
        return []
    for quoted in _QUOTED:
        shown = quoted.sub(_hide_long, shown)
    found: list[Sentence] = []
    for start, end in _paragraphs(shown):
        for sentence in _split(shown, start, end, speaker, first=not found):
            if union("onward").search(sentence.text) or union("task", r"^\W*").match(sentence.text):
                return found
            found.append(sentence)
            if len(found) > _MOST_SENTENCES:
                return []  # a document
    return found


def _hide(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", HIDDEN, match[0])


def _hide_long(match: re.Match[str]) -> str:
    # a title or a word in quotes is still what the author says
    words = match[0].split()
    return match[0] if len(words) <= 3 and match[0][0] != "`" else _hide(match)


def _paragraphs(shown: str) -> list[tuple[int, int]]:
    """Return the positions of lines that look like somebody talking, up to where a document begins."""
    found: list[tuple[int, int]] = []
    at = 0
    for paragraph in re.split(r"(\n\s*\n)", shown):
        lines = paragraph.split("\n")
        said = [line for line in lines if line.strip()]
        # a verse: short lines without final punctuation
        verse = len(said) >= 4 and sum(line.rstrip()[-1] not in ".!?…" for line in said) > len(said) * 0.7
        if said and not verse and len(paragraph) <= _LONGEST_PARAGRAPH and not looks_like_code(paragraph):
            place = at
            for line in lines:
                if _compile_ignoring_case(_MAIL).match(line):
                    return found
                if line.strip() and not _compile_ignoring_case(_FOREIGN).match(line):
                    found.append((place, place + len(line)))
                place += len(line) + 1
        at += len(paragraph)
    return found


def _split(shown: str, start: int, end: int, speaker: str | None, *, first: bool) -> list[Sentence]:
    found: list[Sentence] = []
    if speaker and shown[start:end].lower().startswith(f"{speaker.lower()}:"):
        start += len(speaker) + 1
    begin = start
    stops = [match.end() for match in _END.finditer(shown, start, end) if not _ends_abbreviation(shown, match)]
    for stop in [*stops, end]:
        left, right = begin, stop
        while left < right and shown[left].isspace():
            left += 1
        while right > left and shown[right - 1].isspace():
            right -= 1
        begin = stop
        if 1 < right - left <= _LONGEST_SENTENCE:
            said = shown[left:right]
            asks = said.rstrip("\"')] ").endswith(("?", "？", "؟"))
            found.append(Sentence(left, right, said, first and not found, asks))
    return found


def _ends_abbreviation(shown: str, stop: re.Match[str]) -> bool:
    """Return True if a full stop only ends an abbreviation."""
    if stop[0] != ".":
        return False
    if _ORDINAL.match(shown, stop.end()):
        return shown[stop.start() - 1].isdigit()
    return _SHORT.search(shown[max(0, stop.start() - 8) : stop.start()]) is not None
