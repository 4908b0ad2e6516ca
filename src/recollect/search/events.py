"""Questions that give a time by an event: "the day before my birthday party".

The event is searched for like anything else; its time is the one that the best match mentions, or when that was said.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import numpy as np
from numpy.typing import NDArray

from recollect.search import dates
from recollect.search.dates import Span
from recollect.search.index.index import Index
from recollect.search.question import Question
from recollect.search.ranking import rank_documents, shift_within_calendar
from recollect.search.weights import Weights

_DISTANCE = re.compile(
    r"(?i)(?:\b[\w-]+\s+)?\b(?:minute|hour|day|night|morning|evening|week|weekend|fortnight|month|year)s?\s+"
    r"(?:right\s|just\s|immediately\s|directly\s)?(?:before|after|prior\sto|following|preceding)\s*$"
)
_SIDE = re.compile(r"(?i)before|after|prior to|following|preceding")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def with_event(
    index: Index, question: Question, fits: NDArray[np.bool_], now: datetime, weights: Weights, code: str = ""
) -> Question:
    """Return the question with the time of its event; unchanged if it has none, or the event is unknown."""
    if not _SIDE.search(question.text):
        return question
    found = dates.relative(question.text)
    if found is None or question.text.find(found[1]) < 0:
        return question
    distance, event = found
    place = question.text.find(event)
    sought = Question.of(event, now, index.names(), code)
    best = rank_documents(index, sought, fits, 1, weights=weights).numbers
    if not len(best) or not sought.words or index.matching(best, sought.words).mean() < 0.5:
        return question
    begin, end = _time_of(index, int(best[0]))
    stretch = _stretch(begin, end, distance)
    rest = _DISTANCE.sub("", question.text[:place]) + question.text[place + len(event) :]
    span = Span(*stretch, text=question.text[place : place + len(event)], certain=True, at=place)
    asked = Question.of(rest, now, index.names(), code)
    return replace(asked, text=question.text, spans=(*asked.spans, span))


def _stretch(begin: datetime, end: datetime, distance: timedelta) -> tuple[datetime, datetime]:
    """Return the time at a distance from an event: the whole day or week next to it, approximate if farther."""
    near = timedelta(0) if abs(distance) <= timedelta(days=7) else distance * 0.6
    far = distance if not near else distance * 1.2
    if distance < timedelta(0):
        return shift_within_calendar(begin, far), shift_within_calendar(begin, near)
    return shift_within_calendar(end, near), shift_within_calendar(end, far)


def _time_of(index: Index, number: int) -> tuple[datetime, datetime]:
    first, last = int(index.event_from[number]), int(index.event_until[number])
    if first <= last:
        return _EPOCH + timedelta(microseconds=first), _EPOCH + timedelta(microseconds=last)
    said = _EPOCH + timedelta(microseconds=int(index.said_at[number]))
    day = said.replace(hour=0, minute=0, second=0, microsecond=0)
    return day, shift_within_calendar(day, timedelta(days=1))
