"""Highlighting: where the words of a query are in a text.

The text is split as for the index, so that what matched there is marked here, but positions refer to the original text:
with its accents, typographic quotes and invisible characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from recollect.search.concepts import related_stems
from recollect.text import clean, detect_language, fold, folded_words, stem, terms, token_words, tokens, unspaced

__all__ = ["excerpt", "match_spans"]

Spans = list[tuple[int, int]]

_compiled = lru_cache(maxsize=4)(re.compile)
_SAMPLE = 30  # words that give the language; detection costs more than all the rest
_PART = r"[^\W\d_]+|\d+(?:[.:]\d+)*"
# Besides combining marks, these may change or join the character before them: vowels and finals of old Hangul, the
# voicing marks of narrow Kana, and invisible characters.
_STICKING = r"[\u1160-\u11ff\uff9e\uff9f\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"


def match_spans(text: str, query: str, code: str = "") -> Spans:
    """Return the spans of the text with words of the query, or related ones; in order, without overlaps.

    ``code`` is the language of both, if known.

    >>> marks("Her sister drinks tea.", "siblings and teas")
    [(4, 10), (18, 21)]
    """
    asked_in = code or detect_language(folded_words(query))
    wanted = _query_terms(query, asked_in)
    if not wanted:
        return []
    found = list(_locate_words(text))
    codes = {asked_in, code or detect_language([word for word, _, _ in found[:_SAMPLE]])}
    spans: Spans = []
    for word, begin, end in found:
        if any(stem(word, each) in wanted for each in codes):
            if spans and begin <= spans[-1][1]:  # pairs of Chinese, and a part of what is marked as a whole
                begin, last = spans.pop()
                end = max(end, last)
            spans.append((begin, end))
    return spans


def excerpt(text: str, spans: Spans, most: int) -> tuple[str, Spans]:
    """Return at most ``most`` characters of a text around the first span, and the spans in it.

    It is cut between words where possible, and "…" stands for what is left out.
    """
    if len(text) <= most:
        return text, spans
    room = max(most - 2, 1)
    first, after = spans[0] if spans else (0, 0)
    begin = min(max(first - room // 4, 0), len(text) - room)
    end = begin + room
    if begin and (blank := text.find(" ", begin, first)) >= 0:
        begin = blank + 1
    # not at a blank before the first span: nothing of it would be left
    if end < len(text) and (blank := text.rfind(" ", max(begin, after, end - 20), end)) > begin:
        end = blank
    lead = "…" if begin else ""
    shift = len(lead) - begin
    kept = [(max(a, begin) + shift, min(b, end) + shift) for a, b in spans if a < end and b > begin]
    return f"{lead}{text[begin:end]}{'…' if end < len(text) else ''}", kept


def _query_terms(query: str, code: str) -> Collection[str]:
    """Return the search terms of a query, and those that mean nearly the same."""
    asked = frozenset(terms(query, code, asked=True) or terms(query, code))
    return asked.union(other for word in asked for other, _ in related_stems(word, code))


def _locate_words(text: str) -> Iterator[tuple[str, int, int]]:
    cleaned, starts, ends = _align_text(text)
    here = 0
    for token in tokens(cleaned):
        here = cleaned.index(token, here)
        for word, begin, end in _words_in_token(token):
            yield word, starts[here + begin], ends[here + end - 1]
        here += len(token)


def _align_text(text: str) -> tuple[str, Sequence[int], Sequence[int]]:
    """Return a text in the form of `clean`, and the source span of each of its characters."""
    cleaned = clean(text)
    if _in_place(text, cleaned):
        return cleaned, range(len(text)), range(1, len(text) + 1)
    made: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for piece in _compiled(r"\s+|\S+").finditer(text):
        begin, last = piece.span()
        cleaned = clean(piece[0]) or " "
        if _in_place(piece[0], cleaned):
            made.append(cleaned)
            starts += range(begin, last)
            ends += range(begin + 1, last + 1)
            continue
        for end in range(begin + 1, last + 1):
            if end == last or not _sticks(text[end]):
                cleaned = clean(text[begin:end]) or " "
                made.append(cleaned)
                starts += [begin] * len(cleaned)
                ends += [end] * len(cleaned)
                begin = end
    return "".join(made), starts, ends


def _in_place(text: str, cleaned: str) -> bool:
    """Return True if each character of the cleaned text corresponds to the one at the same place."""
    return len(text) == len(cleaned) and (text.isascii() or unicodedata.is_normalized("NFKC", text))


def _sticks(character: str) -> bool:
    return unicodedata.category(character)[0] == "M" or _compiled(_STICKING).match(character) is not None


def _words_in_token(token: str) -> Iterator[tuple[str, int, int]]:
    """Yield the words a token is indexed by, folded, each with its span in the token."""
    size = len(token)
    folded = token_words(token)
    if not folded:
        return
    if unspaced(token):
        if size == 1 or len(folded) != size - 1:
            yield from ((word, 0, size) for word in folded)
            return
        for start, pair in enumerate(folded):
            yield pair[0], start, start + 1  # one character alone may be asked for
            yield pair, start, start + 2
        yield folded[-1][1], size - 1, size
    elif len(folded) == 2:  # l'hôpital
        after = token.index("'") + 1
        yield folded[0], 0, after - 1
        yield folded[1], after, size
    else:
        word = folded[0]
        yield word.replace(",", ""), 0, size
        if not word.isalpha() and "'" not in word and any(map(str.isalpha, word)):
            for part in _compiled(_PART).finditer(token):  # gpt-4 is also found by gpt
                if len(part[0]) > 1 or part[0].isdigit():
                    yield fold(part[0]), part.start(), part.end()
