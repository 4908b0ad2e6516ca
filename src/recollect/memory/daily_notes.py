"""What a daily note shows: its own entries, and facts that are not certain enough for MEMORY.md."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any, Final

from recollect.records import DailyEntry, Fact, Record
from recollect.store.contract import Query, Reader

REPORTED: Final = "reported"
"""The metadata of a record whose content stands in another line of its note, such as below a discussion."""
_FOREVER: Final = datetime(9999, 1, 1, tzinfo=timezone.utc)


def day_of(record: Record | None) -> date | None:
    """Return the day whose note shows a record; None if no note does."""
    if isinstance(record, DailyEntry):
        return record.day
    return record.noted_on if isinstance(record, Fact) else None


def follows_record(record: Record) -> bool:
    """Return True if the line of a record is changed and removed with it; free lines are only appended."""
    return isinstance(record, Fact) or record.entry_key is not None


def has_own_line(record: Record) -> bool:
    """Return False if another line of the note of its day says what a record does."""
    return record.metadata.get(REPORTED) != record.content


def section_of_day(record: Record) -> str:
    """Return the section of a daily note for a record, by its source."""
    origin = record.source.partition(":")[0]
    if record.category == "reading_history" or origin == "reaction":
        return "Reading Activity"
    if origin == "discussion":
        return "Discussions"
    if origin in ("explicit", "explicit_mention", "user_edit"):
        return "Explicit Memories"
    return "Extracted Insights"


def category_of_line(section: str, content: str) -> str | None:
    """Return the category of a free line in a section of a daily note. What was discussed is part of what was read."""
    discussed = section == "Discussions" and not content.startswith("Opinion:")
    return "reading_history" if discussed or section == "Reading Activity" else None


def records_of_day(reader: Reader, day: date, **more: Any) -> list[Record]:
    """Return what the note of a day shows, as a query with these further conditions finds it."""
    query = Query(kinds=("daily", "fact"), day=day.isoformat(), **more)
    found = [record for record in reader.find(query) if day_of(record) == day]
    return sorted(found, key=_by_creation, reverse=query.newest_first)


def lines_of_day(reader: Reader, day: date, **more: Any) -> list[Record]:
    """Return the records that have a line of their own in the note of a day, as `records_of_day` finds them."""
    return [record for record in records_of_day(reader, day, **more) if has_own_line(record)]


def noted_records(reader: Reader, **more: Any) -> list[Record]:
    """Return everything that daily notes show, oldest first."""
    facts = reader.find(Query(kinds=("fact",), expired_at=_FOREVER, **more))  # those in a note expire with it
    found = [*reader.find(Query(kinds=("daily",), **more)), *(fact for fact in facts if day_of(fact))]
    return sorted(found, key=_by_creation)


def _by_creation(record: Record) -> tuple[datetime, str]:
    return record.created_at, record.id.partition("-")[2]  # of any kind
