"""Time spans in a text: finding them, and detecting whether there are any."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeAlias
from unicodedata import normalize

from recollect.search.dates.eastern import HAN, eastern
from recollect.search.dates.phrases import PhraseReader
from recollect.search.dates.tokens import (
    LONGEST,
    compiled,
    compose_text,
    find_words,
    fold_same_length,
    may_have_digit,
    numerals,
    split_plain_words,
    windows,
)
from recollect.search.dates.words import triggers


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time that a text names: from `start` up to, but excluding, `end`."""

    start: datetime
    end: datetime
    text: str
    certain: bool
    """False where a reader would have to guess: "in May", "on Tuesday"."""
    at: int = 0
    """The position of `text` in the given text."""


_FoundExpression: TypeAlias = tuple[datetime, datetime, bool, int, int]  # from, to, certain, and where in the text


def spans(text: str, now: datetime) -> list[Span]:
    """Return the time spans a text names, in order.

    An ambiguous date (5/7/2023) gives both readings. Words whose time cannot be known here give nothing.
    """
    read = compose_text(text)
    found = sorted(set(_find_expressions(read, fold_same_length(read), now)), key=lambda f: (f[3], f[0]))
    return [_span(text, read, *each) for each in found]


def _find_expressions(text: str, low: str, now: datetime) -> Iterator[_FoundExpression]:
    if not text.isascii() and compiled(HAN).search(text):
        for each in eastern(low, _utc(now)):
            yield each
            low = low[: each[3]] + " " * (each[4] - each[3]) + low[each[4] :]
    sought = triggers().intersection(split_plain_words(low))
    found = numerals(low)
    if sought:
        found += [at for at, _ in find_words(low, sought)]
    if not found:
        return
    reader = PhraseReader(text, low, _utc(now))
    for begin, end in windows(low, found):
        for reader.day_first in (True, False):
            for hit, i in reader.read(begin, end):
                yield hit.start, hit.end, hit.certain, reader.at[i].start, reader.at[hit.stop - 1].end
            if low.find("/", begin, end) < 0 or not reader.has_two_readings:
                break


def _span(text: str, read: str, start: datetime, end: datetime, certain: bool, at: int, stop: int) -> Span:
    if not text.startswith(read):
        at, stop = _before_composing(text, at), _before_composing(text, stop)
    words = text[at:stop].rstrip(" ,.")
    return Span(start.replace(tzinfo=timezone.utc), end.replace(tzinfo=timezone.utc), words, certain, at)


def _before_composing(text: str, at: int) -> int:
    """Return the offset in a text for an offset in its composed form."""
    offsets = range(min(len(text), LONGEST) + 1)
    return bisect_right(offsets, at, key=lambda n: len(normalize("NFC", text[:n]))) - 1


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        return moment
    try:
        return moment.astimezone(timezone.utc).replace(tzinfo=None)
    except OverflowError:
        return moment.replace(tzinfo=None)


# Each of these indicates a time by itself.
_SURE = frozenset(
    """recently lately nowadays soon daily weekly monthly yearly annually mondays tuesdays wednesdays thursdays fridays
    saturdays sundays""".split()
)
# An hour; the pattern begins with a digit and looks back after it, for speed.
_CLOCK = r"\d(?<!\w\d)(?:\d?(?::\d\d)?\s?[ap]\.?m\b|(?:(?<=[012])\d)?:[0-5]\d\b)"
# Each of these only together with other words.
_PERHAPS = frozenset(
    """clock noon midnight dawn dusk night nights minute minutes hour hours day days week weeks weekend weekends month
    months year years decade decades morning mornings evening evenings afternoon summer summers winter winters spring
    springs fall falls autumn autumns ago time""".split()
)
_UNIT = "(?:minute|hour|day|night|week|weekend|month|year|decade)s?"
_TELLS = (
    r"\bo'clock\b|\bat (?:noon|midnight|dawn|dusk|night)\b"
    r"|\b(?:for|about|almost|nearly|over|around|last|past|next|every|per|within|in)\s+(?:the\s+)?(?:last\s+|past\s+|next\s+)?"
    r"(?:an?|\d{1,6}|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|many|several"
    rf"|(?:a\s+)?few|(?:a\s+)?couple(?:\s+of)?|some|most)\s+{_UNIT}\b"
    rf"|\b{_UNIT}\s+(?:ago|later|earlier|before|after|from now)\b"
    r"|\b(?:every|each)\s+(?:day|night|morning|evening|week|weekend|month|year|summer|winter|spring|fall|autumn)s?\b"
    r"|\b(?:these days|a while ago|long ago|the other day|last time|next time|in the (?:morning|afternoon|evening))\b"
)
_TELLING = _SURE | _PERHAPS
_SOME_DAY = datetime(2024, 6, 15, 12)


def tells_when(text: str) -> bool:
    """Return True if a text has a time expression of any kind, such as a date, an hour or a duration."""
    text = compose_text(text)
    low = fold_same_length(text)
    found = _TELLING.intersection(split_plain_words(low))
    if not found.isdisjoint(_SURE) or (may_have_digit(low) and compiled(_CLOCK).search(low)):
        return True
    tells = compiled(_TELLS)
    for at, word in find_words(low, found):
        if tells.search(low, max(0, at - 40), at + len(word) + 12):
            return True
    return next(_find_expressions(text, low, _SOME_DAY), None) is not None
