"""Messages and interactions that were not learned from yet. The time of storage decides, so that nothing comes too
late: a message about last week is as new as one of this minute.
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
    """A reading position: everything stored up to here that happened before ``until``.

    An export keeps these positions; a rebuild loses them together with what they lie between.
    """

    seq: int
    """The last journal entry at the time: messages are stored with one."""
    reported: datetime
    """The last interaction at the time."""
    until: datetime

    def covers(self, other: Mark) -> bool:
        """Return True if everything read up to the other mark was read up to this one."""
        return self.seq >= other.seq and self.reported >= other.reported and self.until >= other.until


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """The unread messages and interactions, and the mark after them."""

    messages: tuple[Message, ...]
    interactions: tuple[Interaction, ...]
    mark: Mark


def find_unread(reader: Reader, marks: Iterable[Mark], *, until: datetime, session: str | None) -> Unread:
    """Return what happened before a moment and lies after all of these marks, even if it has expired meanwhile."""
    farthest = _farthest(marks)
    mark = Mark(seq=reader.state().seq, reported=reader.last_reported() or _BEGINNING, until=until)
    query = Query(kinds=("message",), said_until=until, session=session)
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
    """Return the marks without those that others cover; mostly that is one."""
    found: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.seq, mark.until), reverse=True):
        if not any(other.covers(mark) for other in found):
            found.append(mark)
    return found
