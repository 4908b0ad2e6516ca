"""What nobody has learned from yet. It goes by when things were stored here, so that nothing comes too late: a message
or an interaction that tells of last week is as new as one of this minute.

Knows nothing about extraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from recollect.records import Interaction, Message
from recollect.store.contract import Query, Reader

_BEGINNING = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far somebody has read: what was stored up to here, and happened before ``until``.

    An export keeps these places, and a rebuild loses them together with what they lie between.
    """

    seq: int
    """The last journal entry that was there: messages are stored with one."""
    reported: datetime
    """The last interaction that was there."""
    until: datetime

    def covers(self, other: Mark) -> bool:
        """Whether whoever read up to here has read up to there, too."""
        return self.seq >= other.seq and self.reported >= other.reported and self.until >= other.until


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """What was not read, and how far one has read with it."""

    messages: tuple[Message, ...]
    interactions: tuple[Interaction, ...]
    mark: Mark


def find_unread(
    reader: Reader, marks: Iterable[Mark], *, until: datetime, session: str | None, alive_at: datetime
) -> Unread:
    """What happened before a moment and lies behind all of these marks."""
    farthest = _farthest(marks)
    mark = Mark(seq=reader.state().seq, reported=reader.last_reported() or _BEGINNING, until=until)
    query = Query(kinds=("message",), said_until=until, session=session, alive_at=alive_at)
    if not farthest:
        messages = [one for one in reader.find(query) if isinstance(one, Message)]
        return Unread(
            messages=tuple(messages),
            interactions=tuple(reader.interactions(until=until, session=session)),
            mark=mark,
        )
    since = max(known.until for known in farthest)
    changed = {record_id for _, record_id in reader.changed(min(known.seq for known in farthest))}
    found = reader.find(replace(query, said_from=since)) if since < until else []
    found += reader.find(replace(query, ids=sorted(changed))) if changed else []
    said = {one.id: one for one in found if isinstance(one, Message)}
    later = [one.id for one in said.values() if one.version > 1]  # changed since: it was stored before
    numbers = {one.id: one.seq for one in said.values()} | (reader.numbers(later) if later else {})
    told = reader.interactions(since=since, until=until, session=session) if since < until else []
    behind = min(known.reported for known in farthest)
    told += reader.interactions(reported_after=behind, until=until, session=session)
    return Unread(
        messages=tuple(
            one
            for one in said.values()
            if all(numbers[one.id] > known.seq or one.valid_from >= known.until for known in farthest)
        ),
        interactions=tuple(
            one
            for one in {one.id: one for one in told}.values()
            if all((one.reported_at or one.at) > known.reported or one.at >= known.until for known in farthest)
        ),
        mark=mark,
    )


def _farthest(marks: Iterable[Mark]) -> Sequence[Mark]:
    """The marks without those that others cover; mostly that is one."""
    found: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.seq, mark.until), reverse=True):
        if not any(other.covers(mark) for other in found):
            found.append(mark)
    return found
