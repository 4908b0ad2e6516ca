"""Records found without the index: all of them, for a question that asks for everything, and those whose earlier
wording matches a question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from recollect.memory.references import reports_change
from recollect.records import Hit, Record
from recollect.search.filters import Filter
from recollect.search.passages import indexed_text
from recollect.store.contract import Query, Reader
from recollect.text import fold, terms

if TYPE_CHECKING:
    from recollect.search.question import Question

_LOOKED_AT: Final = 200
"""The newest records among which the most important are chosen."""
_IMPORTANCE: Final = timedelta(days=60)
"""What is of the highest importance, or pinned, counts as so much newer."""
_FADING: Final = timedelta(days=365)
_FUTURE: Final = 50.0
"""What holds only from some year on scores no more for being further away."""
_MOST_EARLIER: Final = 2_000
"""The earlier wordings that are looked at, the newest ones."""
_ENOUGH: Final = 0.5
"""The share of a question's words that an earlier wording must have."""
_START: Final = 3
"""The letters of a word that stemming leaves alone: comparing them first spares stemming most texts."""
_WEAK: Final = 0.5
"""An earlier wording scores this much less than the weakest hit."""


def list_records(reader: Reader, where: Filter, limit: int, now: datetime, min_score: float = 0.0) -> list[Hit]:
    """Return the newest and most important records, each text once."""
    wanted = replace(_query(where), newest_first=True, limit=max(_LOOKED_AT, 2 * limit))
    # one kind at a time, because the index has each in order
    found = (record for kind in where.kinds for record in reader.find(replace(wanted, kinds=(kind,))))
    newest = [record for record in found if not reports_change(record)]
    hits: list[Hit] = []
    said: set[str] = set()
    for record in sorted(newest, key=lambda record: (_age(record, now), record.id)):
        if len(hits) == limit:
            break
        if (text := fold(record.text)) not in said and _spoken_by(record, where.speakers):
            said.add(text)
            raw = math.exp(min(-_age(record, now) / _FADING, _FUTURE))
            hit = Hit(record=record, score=raw / (1 + raw), raw_score=raw, signals={"listed": raw}, passage=record.text)
            hits += [hit] if hit.score >= min_score else []
    return hits


def _age(record: Record, now: datetime) -> timedelta:
    importance = 1.0 if record.pinned else 2 * record.importance - 1
    return now - record.valid_from - importance * _IMPORTANCE


def find_earlier(reader: Reader, question: Question, where: Filter, known: Sequence[Hit], limit: int) -> list[Hit]:
    """Return active records, other than the known ones, whose earlier wording has the words of a question.

    A record that something else replaced stands for itself if what replaced it is a message.
    """
    words = set(question.words)
    if not words:
        return []
    shown = {hit.record.id for hit in known}
    others = [other for each in question.otherwise.values() for other in each]
    starts = {word[:_START] for word in (*words, *others, *(other for other, _, _ in question.related))}
    best: dict[str, tuple[float, Record, Record]] = {}
    for earlier in reader.find(replace(_query(where), replaced=True, newest_first=True, limit=_MOST_EARLIER)):
        text = fold(indexed_text(earlier))
        share = _share(question, words, earlier) if any(start in text for start in starts) else 0.0
        current = _current(reader, earlier, where) if share >= _ENOUGH else None
        if current is not None and current.id not in shown and share > best.get(current.id, (0.0,))[0]:
            best[current.id] = share, current, earlier
    found = sorted(best.values(), key=lambda one: -one[0])[:limit]
    ceiling = _WEAK * min([1.0, *(hit.raw_score for hit in known)])
    return [_earlier_hit(ceiling * share, current, earlier) for share, current, earlier in found]


def _earlier_hit(raw: float, current: Record, earlier: Record) -> Hit:
    return Hit(
        record=current,
        score=raw / (1 + raw),
        raw_score=raw,
        signals={"earlier": raw},
        passage=indexed_text(current),
        earlier=earlier.text,
    )


def _share(question: Question, words: set[str], record: Record) -> float:
    """Return the share of the words of a question that a record has, related words counting less."""
    said = set(terms(indexed_text(record)))
    have = {word for word in words if word in said or not said.isdisjoint(question.otherwise.get(word, ()))}
    near = {cause: weight for other, weight, cause in question.related if other in said and cause not in have}
    return (len(have) + sum(near.values())) / len(words)


def _current(reader: Reader, earlier: Record, where: Filter) -> Record | None:
    """Return what the earlier record or version has become, if that is active; the record itself if it just ended."""
    seen: set[str] = set()
    record = reader.get(earlier.id)
    while record is not None and record.status == "superseded" and record.superseded_by and record.id not in seen:
        seen.add(record.id)
        follower = reader.get(record.superseded_by)
        if follower is None or follower.kind == "message":
            return record
        record = follower
    return record if record is not None and record.status == "active" and record.kind in where.kinds else None


def _query(where: Filter) -> Query:
    return Query(
        kinds=where.kinds,
        statuses=where.statuses,
        categories=where.categories,
        types=where.types,
        tier=where.tier,
        source=where.source,
        session=where.session,
        tags=where.tags,
        chats=where.chats,
        said_from=where.said_from,
        said_until=where.said_until,
        alive_at=where.alive_at,
    )


def _spoken_by(record: Record, speakers: Sequence[str]) -> bool:
    return not speakers or getattr(record, "speaker", None) in speakers
