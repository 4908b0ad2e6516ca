"""Cutting long texts into passages, so that a word counts for its part and not for a whole book."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from itertools import pairwise

from recollect.records import Note, Record

MOST_WORDS = 200
"""The maximum number of words of a passage."""

# Scripts written without spaces: each character counts as a word. Their marks stay with the character.
_UNSPACED = (
    "\u0e01-\u0edf\u1000-\u109f\u1100-\u11ff\u1780-\u17ff"  # Thai, Lao, Burmese, old Hangul, Khmer
    "\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"  # Kana
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"  # Han, Hangul
)
_STICKING = (
    "\u0300-\u036f\u0e31\u0e33-\u0e3a\u0e45\u0e47-\u0e4e\u0eb1\u0eb3-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u17b4-\u17d3\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef"
    "\u3001\u3002\uff01\uff0c\uff1f\u300d\u300f"  # a sentence keeps its full stop
)


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    word = re.compile(f"[{_UNSPACED}][{_STICKING}]*|[^\\s{_UNSPACED}]+")
    paragraph = re.compile(r"\n[^\S\n]*\n\s*")
    sentence = re.compile(r"[.!?…][\"'”’»)\]]*\s+|[。！？｡][」』）]*\s*|\n\s*")
    return word, paragraph, sentence


def indexed_text(record: Record) -> str:
    """Return the text a record is found by: its text, and the title of a note."""
    if isinstance(record, Note) and record.title:
        return f"{record.title}\n{record.content}"
    return record.text


def passages(text: str, most_words: int = MOST_WORDS) -> list[tuple[int, int]]:
    """Return the spans of a text that are searched separately; together they are the whole text, in order.

    Each has at most ``most_words`` words, all about as many. They end at a paragraph, else at a sentence, else between
    words.
    """
    whole = [(0, len(text))]
    if len(text) <= most_words or (text.isascii() and len(text.split()) <= most_words):
        return whole
    word, paragraph, sentence = _patterns()
    starts = [found.start() for found in word.finditer(text)]
    if len(starts) <= most_words:
        return whole
    paragraphs = _words_after(starts, paragraph, text)
    sentences = _words_after(starts, sentence, text)
    cuts = [0]
    while (left := len(starts) - cuts[-1]) > most_words:
        even = -(-left // -(-left // most_words))
        cuts.append(_choose_cut(cuts[-1], even, min(most_words, even * 3 // 2), (paragraphs, sentences)))
    borders = [0, *(starts[cut] for cut in cuts[1:]), len(text)]
    return list(pairwise(borders))


def _words_after(starts: list[int], pattern: re.Pattern[str], text: str) -> list[int]:
    """Return the numbers of the words right after each match of the pattern."""
    return [bisect_left(starts, found.end()) for found in pattern.finditer(text)]


def _choose_cut(begin: int, even: int, most: int, boundaries: tuple[list[int], ...]) -> int:
    """Return the word before which to cut: at the best kind of boundary, nearest to an even share."""
    ideal = begin + even
    least, last = begin + max(1, (even + 1) // 2), begin + most
    for places in boundaries:
        within = places[bisect_left(places, least) : bisect_left(places, last + 1)]
        if within:
            return min(within, key=lambda place: abs(place - ideal))
    return ideal
