"""Moments and days: always UTC, always aware, one text form that sorts as time does.

Knows nothing about records.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from functools import lru_cache

from recollect.errors import InvalidInputError

Clock = Callable[[], datetime]
"""Whatever tells the time: `utc_now`, or a frozen clock in tests."""


def utc_now() -> datetime:
    """The present moment."""
    return datetime.now(timezone.utc)


@lru_cache(maxsize=256)  # what is stored together shares its moments
def to_text(moment: datetime) -> str:
    """Fixed width, so that text order is time order: ``2026-02-12T09:30:00.000000Z``."""
    return moment.isoformat(timespec="microseconds")[:26] + "Z"


def from_text(text: str) -> datetime:
    """The inverse of `to_text`."""
    return datetime.fromisoformat(text)


def parse_moment(field: str, value: object) -> datetime:
    """A moment a caller gave as datetime, date, or ISO 8601 text; without a zone it is UTC."""
    moment: datetime | None = None
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day)
    elif isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            moment = None
    if moment is None:
        raise InvalidInputError(
            field, f"{_shorten_repr(value)} is not a date; use YYYY-MM-DD or ISO 8601, such as 2026-02-12T09:30:00Z"
        )
    if moment.tzinfo is None:
        return moment.replace(tzinfo=timezone.utc)
    try:
        return moment.astimezone(timezone.utc)
    except OverflowError:
        raise InvalidInputError(field, f"{_shorten_repr(value)} is outside the calendar") from None


def parse_day(field: str, value: object) -> date:
    """A day a caller gave as date or ``YYYY-MM-DD``."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if isinstance(value, str):
        try:
            return date.fromisoformat(value.strip())
        except ValueError:
            pass
    raise InvalidInputError(field, f"{_shorten_repr(value)} is not a day; use YYYY-MM-DD")


def _shorten_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
