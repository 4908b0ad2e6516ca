"""Retention, and the order in which facts leave MEMORY.md when it grows too long."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone

from recollect.errors import InvalidInputError
from recollect.records import USER_EDIT, Record

IMPORTANT_DAYS = {"high": 60, "critical": 365}
"""The days for which a message marked important is kept."""
IMPORTANCE = {"high": 0.8, "critical": 1.0}
"""The importance of a message that was marked."""

_HALF_LIFE_DAYS = 90.0


def daily_expiry(day: date, retention_days: int) -> datetime:
    """Return when an entry of this day's note expires: whole days, so that a note expires at once."""
    return datetime.combine(day, time(), timezone.utc) + timedelta(days=retention_days + 1)


def check_kept(day: date, now: datetime, retention_days: int) -> date:
    """Return the day if its note is still kept; an entry for an earlier day would expire at once."""
    if daily_expiry(day, retention_days) <= now:
        first = now.date() - timedelta(days=retention_days)
        raise InvalidInputError(
            "day", f"{day} is too long ago: daily notes are kept for {retention_days} days; the first is now {first}"
        )
    return day


def message_expiry(said_at: datetime, retention_days: int) -> datetime | None:
    """Return when a message expires, counted from when it was said. Without a retention it never does."""
    return None if not retention_days else said_at + timedelta(days=retention_days)


def has_outlived(message: Record, now: datetime, retention_days: int) -> bool:
    """Return True if a message is older than the retention allows, even if that was set after it was stored.

    One marked important before there was a retention is kept as long as its level says, from when it was marked.
    """
    if not retention_days:
        return False
    level = "critical" if message.importance >= IMPORTANCE["critical"] else "high"
    if message.importance < IMPORTANCE[level]:
        return message.valid_from + timedelta(days=retention_days) <= now
    days = max(retention_days, IMPORTANT_DAYS[level])
    return message.expires_at is None and message.updated_at + timedelta(days=days) <= now


def may_be_pruned(record: Record) -> bool:
    """Return True if it may leave MEMORY.md: never what the person wrote or pinned."""
    return not record.pinned and record.source != USER_EDIT


def value(record: Record, now: datetime, last_recalled: datetime | None) -> float:
    """Return the value of a fact in MEMORY.md, from 0 to 1: confidence, importance, and how recently it was used."""
    used = max(record.updated_at, last_recalled) if last_recalled else record.updated_at
    age = max((now - used).total_seconds() / 86_400, 0.0)
    freshness = 0.5 ** (age / _HALF_LIFE_DAYS)
    return 0.4 * record.confidence + 0.3 * record.importance + 0.3 * float(freshness)
