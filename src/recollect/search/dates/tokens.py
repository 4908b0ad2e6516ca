"""Tokenising a text, only where it may name a time.

Most texts name no time, so the first check is cheap: `find_words` finds triggers, `windows` returns what has to be read
around them, and `tokens_between` reads that. Offsets are the same in a text and in its plain form.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from recollect.search.dates.words import lexicon

LONGEST = 2000  # characters that are read: a question is short, hostile input is not
MARGIN = 12  # empty tokens on both sides, so that no code has to check where the text ends
_AROUND = 32  # characters on both sides of a trigger that a time expression may span

compiled = lru_cache(maxsize=32)(re.compile)


class DateToken(NamedTuple):
    kind: str
    word: str
    value: int
    start: int
    end: int
    raw: str


_NOTHING = DateToken("", "", 0, 0, 0, "")
_PLAIN = dict.fromkeys("‘’ʼ`", "'") | {"\u00a0": " ", "\u2011": "-", "\u2010": "-"}
_PLAIN |= {"ł": "l", "ø": "o", "ё": "е"}
_PLAIN |= {c: unicodedata.normalize("NFD", c)[0] for c in map(chr, range(0xE0, 0x17F)) if c not in _PLAIN}


def compose_text(text: str) -> str:
    """Return the part of a text that is read, in the Unicode form of the tables."""
    text = text[:LONGEST]
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)[:LONGEST]


def fold_same_length(text: str) -> str:
    """Return a text in lower case, without accents and with straight quotes, of the same length."""
    if text.isascii():
        return text.lower()
    text = text.replace("İ", "I").lower()  # the only letter that lower() makes longer
    odd: re.Pattern[str] = compiled("[`\u00a0\u00e0-\u017e\u02bc\u0451\u2010\u2011\u2018\u2019]")
    return odd.sub(lambda m: _PLAIN[m[0]], text)


_LETTERS = bytes(c if chr(c).isalpha() else 32 for c in range(128)) + bytes(128)


def split_plain_words(text: str) -> list[str]:
    if text.isascii():
        return text.encode().translate(_LETTERS).decode().split()
    return compiled(r"[^\W\d_]+").findall(text)


# A number that may be a date by itself: 2023, 7/5/2023, 90s, Q3. It begins with a set for speed.
_NUMERAL = r"[\dq](?:\d{3}|\d{0,3}[/.]\d{1,2}[/.]\d|(?<=[5-9])0'?s\b|(?<=\bq)[1-4]\b)"


def find_words(text: str, sought: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the positions of words in a plain text."""
    for word in sought:
        at = text.find(word)
        while at >= 0:
            end = at + len(word)
            if not text[at - 1 : at].isalpha() and not text[end : end + 1].isalpha():
                yield at, word
            at = text.find(word, end)


def may_have_digit(text: str) -> bool:
    """Return True if a text may have a digit: ten quick checks are faster than one thorough one."""
    return not text.isascii() or any(digit in text for digit in "0123456789")


def numerals(text: str) -> list[int]:
    """Return the positions of numbers that may be dates by themselves."""
    return [match.start() for match in compiled(_NUMERAL).finditer(text)] if may_have_digit(text) else []


def windows(text: str, found: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text to read around these triggers, cut at spaces."""
    begin = end = -1
    for at in sorted(found):
        left, right = max(0, at - _AROUND), at + _AROUND
        if left > end:
            if end >= 0:
                yield begin, end
            begin = max(text.rfind(" ", max(0, left - 20), left) + 1, left - 20, 0)
        space = text.find(" ", right, right + 20)
        end = space if space >= 0 else min(len(text), right + 20)
    if end >= 0:
        yield begin, end


_TOKEN = (
    r"(?P<quarter>q(?<!\wq)[1-4]\b)|(?P<letters>[^\W\d_]+(?:'[^\W\d_]{2,})?)"
    r"|(?P<iso>\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:z|[+-]\d\d:?\d\d)?)?(?![\w-]))"
    r"|(?P<isomonth>\d{4}-\d\d(?![\w-]))"
    r"|(?P<slash>\d{1,4}(?P<sep>[/.])\d{1,2}(?P=sep)\d{1,4}(?![\w/]))"
    r"|(?P<time>\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]\.?m\b)?|\d{1,2}\s?[ap]\.?m\b)"
    r"|(?P<decade>(?:(?:19|20)\d|\b[5-9])0'?s\b)"
    r"|(?P<digits>\d+)(?P<suffix>(?:st|nd|rd|th|er|º|-го|-е|-й)(?!\w))?"
    r"|(?P<mark>'s\b|\S)"
)


def tokens_between(text: str, plain: str, begin: int, end: int) -> list[DateToken]:
    """Return the tokens of a part of a text."""
    known = lexicon()
    new = tuple.__new__  # half the time of calling DateToken, and this loop dominates reading
    found = [_NOTHING] * MARGIN
    for match in compiled(_TOKEN).finditer(plain, begin, end):
        kind, word = match.lastgroup or "mark", match[0]
        start, stop = match.span()
        value = 0
        if kind == "letters":
            meaning = known.get(word)
            if meaning is None and "'" in word:
                meaning = known.get(word.partition("'")[2])  # l'année
            kind, value = meaning or ("word", 0)
        elif kind in ("digits", "suffix"):
            digits = match["digits"]
            value = int(digits) if len(digits) < 12 else -1
            kind = "ordinal" if match["suffix"] else "digits"
        elif kind == "sep":
            kind = "slash"
        elif kind == "decade":
            value = int("".join(c for c in word if c.isdigit()))
            value += 1900 if value < 100 else 0
        elif kind == "quarter":
            value = int(word[1])
        found.append(new(DateToken, (kind, word, value, start, stop, text[start:stop])))
    return found + [_NOTHING] * MARGIN
