"""Parsing a query: its words, and whom, when and what kind of answer it is about.

Names of people who speak in the memory say whose words are wanted, and time expressions say when. Both are removed from
the words, because what somebody said rarely contains their own name or the date it was said on. Words that mean nearly
the same are added with a smaller weight.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from recollect.search import dates
from recollect.search.concepts import related_stems
from recollect.search.dates import Span
from recollect.text import clean, detect_language, fold, folded_words, stem, stems, terms

_MOST_TEXT = 10_000
"""A longer query is a document; its beginning says what it is about."""
_RELATED = 0.5
"""The share of a related word's weight that counts."""

_MOST_OTHERWISE = 16
"""A longer question reveals its language."""

_ROLES = frozenset({"user", "assistant", "system", "tool"})
_ALSO_WORDS = frozenset(
    "will may mark rose grace hope joy art bill rob jack pat sue drew frank chase dawn faith june april august"
    " summer autumn rich sky reed dean miles guy king page young long small best day".split()
)
"""Names that are names only with a capital letter."""
_SAID_BY_YOU = (
    r"\byou (?:said|told|mentioned|recommended|suggested|gave|provided|shared|listed|explained|wrote|created|advised"
    r"|described)\b|\bdid you\b|\bhave you (?:said|told|mentioned|recommended|suggested)\b"
    r"|\b(?:our|the) (?:previous|last|earlier|past) (?:conversation|chat|discussion|talk)\b"
)
_LATEST = r"\b(?:latest|newest|most recent(?:ly)?|last time|current(?:ly)?|right now|these days|nowadays|up to date)\b"
_KIND_OF = r"\b(kind|type|sort)s? of\b"
_compiled = lru_cache(maxsize=8)(re.compile)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A parsed query."""

    text: str
    words: tuple[str, ...]
    """The search terms of what it is about."""
    related: tuple[tuple[str, float, str], ...] = ()
    """Terms that mean nearly the same as one of the words, with weight and word."""
    otherwise: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Each word as other languages would stem it: a few words do not reveal their language."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """The word of the query that a term came from."""
    names: tuple[str, ...] = ()
    """The names of speakers in it, folded."""
    name_words: tuple[str, ...] = ()
    """The same as search terms."""
    spans: tuple[Span, ...] = ()
    asks_when: bool = False
    of_assistant: bool = False
    """True if it asks for something the assistant said."""
    wants_latest: bool = False

    @classmethod
    def of(cls, text: str, now: datetime, speakers: Collection[str] = (), code: str = "") -> Question:
        """Parse a query. ``speakers`` are the folded names, word by word, of all speakers."""
        text = text[:_MOST_TEXT]
        code = code or detect_language(folded_words(text))
        spans = tuple(dates.spans(text, now))
        about = text
        for at, length in sorted({(span.at, len(span.text)) for span in spans}, reverse=True):
            about = f"{about[:at]} {about[at + length :]}"
        about, names = _without_names(about, speakers)
        about = _compiled(_KIND_OF, re.IGNORECASE).sub(" ", about)
        asked = terms(about, code, asked=True)
        if not asked and not spans:
            asked = terms(about, code)
            if not asked:
                asked, names = terms(text, code), ()
        return cls(
            text=text,
            words=asked,
            related=_related_terms(asked, code),
            otherwise=_alternatives(asked, about),
            spelled={stem(word, code): word for word in reversed(folded_words(text))},
            names=names,
            name_words=terms(" ".join(names), code) if names else (),
            spans=spans,
            asks_when=dates.asks_when(text),
            of_assistant=bool(_compiled(_SAID_BY_YOU, re.IGNORECASE).search(text)),
            wants_latest=bool(_compiled(_LATEST, re.IGNORECASE).search(text)),
        )

    def in_first_person(self) -> str:
        """Return the question as the one speaker it names would put it: "Ann's job" becomes "my job"."""
        if len(self.names) != 1:
            return self.text
        text = clean(self.text)
        name = re.escape(self.names[0])
        text = re.sub(rf"(?i)\b{name}(?:'s)?\b", lambda found: "my" if found[0].endswith("'s") else "I", text)
        for pattern, pronoun in _PRONOUNS:
            text = _compiled(pattern).sub(pronoun, text)
        return text


_PRONOUNS = (
    (r"\b(?:his|her)\b", "my"),
    (r"\b(?:himself|herself)\b", "myself"),
    (r"\b(?:he|she)\b", "I"),
    (r"\bdoes I\b", "do I"),
    (r"\b(?:has I|I has)\b", "have I"),
    (r"\bis I\b", "am I"),
    (r"\bI is\b", "I am"),
)


def _without_names(text: str, speakers: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Return the text without the names of speakers, and these names."""
    if not speakers:
        return text, ()
    names: dict[str, None] = {}
    kept = []
    for piece in clean(text).split(" "):
        bare = fold(piece.strip(".,;:!?\"'()[]")).removesuffix("'s")
        if bare in speakers and bare not in _ROLES and not (piece.islower() and bare in _ALSO_WORDS):
            names[bare] = None
        else:
            kept.append(piece)
    return (" ".join(kept), tuple(names)) if names else (text, ())


def _alternatives(asked: tuple[str, ...], about: str) -> dict[str, tuple[str, ...]]:
    found = {}
    for word in folded_words(about)[:_MOST_OTHERWISE]:
        if word.isalpha() and (own := [term for term in asked if term in stems(word)]):
            found[own[0]] = tuple(stems(word) - {own[0]})
    return found


def _related_terms(asked: tuple[str, ...], code: str) -> tuple[tuple[str, float, str], ...]:
    found: dict[str, tuple[str, float, str]] = {}
    own = dict.fromkeys(asked)
    for word in own:
        for other, weight in related_stems(word, code):
            if other not in own and (other not in found or found[other][1] < _RELATED * weight):
                found[other] = other, _RELATED * weight, word
    return tuple(found.values())
