"""Interests from many small signs: three thumbs up for PostgreSQL are an interest, one is nothing.

Topics are those an event names, or else the words and pairs of words that titles share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from recollect.agents.rules.learned import Learned, ReadingEvent, sort_of
from recollect.agents.rules.tables import union
from recollect.text import clean, fold, stem, terms, token_words, tokens

__all__ = ["ENOUGH", "learn_interests"]

ENOUGH: Final = 3
"""The number of signs that make an interest."""

_WEIGHTS: Final = {"read": 0.5, "reaction": 1.0, "save": 1.0, "discussion": 1.0}
_CONFIDENCE: Final = {3: 0.75, 4: 0.8, 5: 0.85}
_MOST: Final = 0.95


def learn_interests(events: Iterable[ReadingEvent]) -> list[Learned]:
    """Return what a person is interested in and what they dislike, by their actions; the most certain first.

    A topic needs three signs for it, and twice as many as against it. Reading something is half a sign.
    """
    signs: dict[str, float] = {}
    against: dict[str, float] = {}
    seen: dict[str, list[ReadingEvent]] = {}
    names: dict[str, Counter[str]] = {}
    for event in dict.fromkeys(events):
        for topic, name in _topics(event).items():
            counted = signs if event.positive else against
            counted[topic] = counted.get(topic, 0.0) + _WEIGHTS.get(event.kind, 0.0)
            seen.setdefault(topic, []).append(event)
            names.setdefault(topic, Counter())[name] += 1
    found: list[tuple[float, str, Learned]] = []
    for topic, events_of in seen.items():
        if any(_says_more(other, topic) and len(seen[other]) >= len(events_of) for other in seen):
            continue  # "distributed systems" says more than "systems"
        plus, minus = signs.get(topic, 0.0), against.get(topic, 0.0)
        name = max(names[topic].items(), key=lambda item: (item[1], item[0][:1].isupper(), item[0]))[0]
        for count, other, key, begins in (
            (plus, minus, "interested_in", "Interested in"),
            (minus, plus, "dislikes", "Dislikes"),
        ):
            if count >= ENOUGH and count >= 2 * other:
                sort = sort_of(key)
                found.append(
                    (
                        -count,
                        topic,
                        Learned(
                            content=f"{begins} {name}",
                            key=key,
                            category=sort.category,
                            type=sort.type,
                            confidence=_CONFIDENCE.get(int(count), _MOST if count >= 8 else 0.9),
                            several=True,
                            excerpt="; ".join(dict.fromkeys(each.title for each in events_of))[:300],
                            rule="interests",
                        ),
                    )
                )
    return [learned for _, _, learned in sorted(found, key=lambda each: each[:2])]


def _says_more(other: str, topic: str) -> bool:
    return other != topic and topic in other.split(" ")


def _topics(event: ReadingEvent) -> dict[str, str]:
    """Return the topics of an event, normalised, each with its name as written."""
    if event.topics:
        return {" ".join(terms(topic)): clean(topic) for topic in event.topics if topic.strip()}
    found: dict[str, str] = {}
    before: tuple[str, str] | None = None
    for token in tokens(clean(event.title)):
        topic = _topic_stem(token)
        if topic and not _general(token):
            found.setdefault(topic, token)
        if topic and before and not (_general(token) and _general(before[1])):
            found.setdefault(f"{before[0]} {topic}", f"{before[1]} {token}")
        before = (topic, token) if topic else None
    return found


def _general(token: str) -> bool:
    """Return True if a word is a topic only together with another: "systems"."""
    return union("title_nouns", "^", "$").match(fold(token)) is not None


def _topic_stem(token: str) -> str:
    """Return the stem of a word that can be a topic; "" for numbers, short words and common title words."""
    folded = fold(token)
    if not re.fullmatch(r"[\w+#.-]{2,40}", folded) or not any(c.isalpha() for c in folded) or not token_words(token):
        return ""
    if len(folded) < 3 and not (token.isupper() or "+" in token or "#" in token):
        return ""
    if union("title_words", "^", "$").match(folded) or terms(f"{token} zzz") == terms("zzz"):
        return ""
    return stem(folded, "en") if folded.isascii() else folded
