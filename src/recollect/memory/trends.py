"""Topics that many people currently care about: the only thing that is counted across users.

Only users who consented ("trends") and have memory switched on are counted, each once per topic. A topic is shown if at
least ``k`` of them share it, and only its words are: no user, no exact number, no order finer than the bands to which
numbers are rounded down. The same bands decide whether it is shown, so asking again with another ``k`` reveals nothing
more. Only whole days are counted, in a few fixed periods, so asking at another minute does not either.

Each user is read in one consistent view. Nothing waits, nothing is written, and users that cannot be read are left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.errors import InvalidInputError
from recollect.memory.files.contract import Files
from recollect.memory.interests import opinion_words, title_words
from recollect.policy.injection import neutral
from recollect.policy.preferences import likings, speaks_against
from recollect.policy.secrets import find_secrets
from recollect.records import Episode, Record
from recollect.store.contract import Query, Reader, UserStore
from recollect.text import fold

CONSENT = "trends"
FEWEST = 5
"""The minimum: no topic that fewer people share is ever shown."""
PERIODS = (7, 30, 90, 365)
_BANDS = (5, 10, 20, 50)
_KINDS = ("read", "reaction", "save", "discussion")
_MOST_EVENTS, _MOST_RECORDS, _MOST_TOPICS = 5_000, 5_000, 2_000
_MOST_WORDS, _LONGEST = 3, 40
_NO_NAME = re.compile(r"\d{4,}|[@/\\:\[\]<>]|\.\w")
"""Texts that are not topics: a number, an address, a masked secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A topic that many share: at least ``users`` of them, and at least as many as were asked for."""

    topic: str
    users: int


_Topics = dict[frozenset[str], str]


def find_trends(
    people: Iterable[tuple[UserStore, Files]], *, k: int, days: int, now: datetime, code: str = ""
) -> list[Trend]:
    """Return the topics that at least ``k`` people share, of the ``days`` before today, the most shared first."""
    least = _check_parameters(k, days)
    until = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = until - timedelta(days=days)
    names: defaultdict[frozenset[str], Counter[str]] = defaultdict(Counter)
    for user, files in people:
        try:
            with user.read() as reader:
                found = _topics_of(reader, files, since, until, code)
        except Exception:  # the outermost handler: one damaged memory must not keep the others from being counted
            continue
        for key, name in found.items():
            names[key][name] += 1
    shared = [
        Trend(topic=_common_name(key, spelled, least), users=number)
        for key, spelled in names.items()
        if (number := _round_down(spelled.total())) >= least
    ]
    return sorted(shared, key=lambda trend: (-trend.users, trend.topic))


def _check_parameters(k: object, days: object) -> int:
    if isinstance(k, bool) or not isinstance(k, int) or k < FEWEST:
        raise InvalidInputError(
            "k", f"must be a whole number of at least {FEWEST}, because fewer people could be identified"
        )
    if isinstance(days, bool) or days not in PERIODS:
        raise InvalidInputError("days", f"must be one of {', '.join(map(str, PERIODS))}")
    return k


def _round_down(number: int) -> int:
    """Round a number down to 5, 10, 20, 50, 100, 200, 500 and so on; 0 if it is smaller."""
    scale = 1
    while number >= _BANDS[1] * scale * 10:
        scale *= 10
    return max((band * scale for band in _BANDS if band * scale <= number), default=0)


def _common_name(key: frozenset[str], spelled: Counter[str], least: int) -> str:
    """Return the spelling that enough people use; if they all differ, only what they have in common."""
    name, number = max(spelled.items(), key=lambda item: (item[1], item[0]))
    return name if _round_down(number) >= least else " ".join(sorted(key))


# one user


def _topics_of(reader: Reader, files: Files, since: datetime, until: datetime, code: str) -> _Topics:
    """Return the interests of one user who may be counted. Users with unmerged edits of a file are not."""
    if reader.state().mode != "on" or CONSENT not in reader.consents() or files.edited(reader, notes=True):
        return {}
    found: _Topics = {}
    for thing in _recent_topics(reader, since, until, code):
        name = _displayable_topic(thing)
        words = opinion_words(thing, code) if name else ()
        if 0 < len(words) <= _MOST_WORDS:
            found.setdefault(frozenset(word.stem for word in words), name)
        if len(found) >= _MOST_TOPICS:
            break
    return found


def _recent_topics(reader: Reader, since: datetime, until: datetime, code: str) -> Iterator[str]:
    events = reader.interactions(since=since, until=until, kinds=_KINDS, newest_first=True, limit=_MOST_EVENTS)
    for event in events:
        if not speaks_against(event.value):
            yield from event.topics or title_words(event.title or "", code)
    wanted = Query(kinds=("fact", "episode"), alive_at=until, newest_first=True, limit=_MOST_RECORDS)
    for record in reader.find(wanted):
        if record.trusted and since <= record.updated_at < until:
            yield from _topics_in_record(record, code)


def _topics_in_record(record: Record, code: str) -> Iterator[str]:
    if isinstance(record, Episode):
        if record.valence != "negative":
            yield record.topic
        return
    for thing, sign in likings(record.text, code):
        if sign > 0:
            yield thing


def _displayable_topic(thing: str) -> str:
    """Return a topic in lower case, or an empty string for anything that could be more than a topic."""
    name = fold(neutral(thing[: 2 * _LONGEST]))
    if not 1 < len(name) <= _LONGEST or len(name.split()) > _MOST_WORDS + 1:
        return ""  # a sentence
    if _NO_NAME.search(name) or find_secrets(thing):
        return ""
    return name
