"""What a fact repeats: a sentence that was just captured, or entries of daily notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Final

from recollect.memory.daily_notes import records_of_day
from recollect.memory.write_cache import statement_of
from recollect.policy.duplicates.comparison import Relation, Statement, relation, rewords
from recollect.records import Fact, Record
from recollect.store.contract import Query, Reader

_FEW: Final = 4


def just_captured(reader: Reader, fact: Fact, now: datetime) -> Fact | None:
    """Return what was captured as a sentence from the last message of a talk, if the fact says it under a key."""
    if fact.key is None or fact.session is None:
        return None
    of_talk = Query(session=fact.session, newest_first=True, limit=_FEW)
    last = reader.find(replace(of_talk, kinds=("message",), limit=1))
    for known in reader.find(replace(of_talk, kinds=("fact",), alive_at=now)) if last else ():
        if not isinstance(known, Fact) or known.key is not None or last[0].id not in known.messages:
            continue
        if known.trusted <= fact.trusted and rewords(statement_of(fact), statement_of(known)):
            return known
    return None


def noted_already(
    reader: Reader, entry: Record, day: date, facts: Sequence[tuple[Record, Statement]], now: datetime
) -> Record | None:
    """Return what says the same as an entry: in the note of that day, or among these facts."""
    said = statement_of(entry)
    known = [(record, statement_of(record)) for record in records_of_day(reader, day, alive_at=now)]
    return next((record for record, theirs in [*known, *facts] if relation(said, theirs) is Relation.SAME), None)


def outdone_entries(reader: Reader, fact: Fact, threshold: float, now: datetime) -> list[Record]:
    """Return the entries of daily notes that a certain fact makes superfluous: the same, or less certain ones."""
    if fact.key is None:
        return []
    found = reader.find(Query(kinds=("daily",), key=fact.key, alive_at=now))
    return [
        entry
        for entry in found
        if entry.entry_key
        and entry.category in (None, fact.category)
        and entry.trusted <= fact.trusted
        and (entry.confidence < threshold or relation(statement_of(fact), statement_of(entry)) is Relation.SAME)
    ]
