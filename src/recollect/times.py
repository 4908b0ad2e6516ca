"""Times and days: always in UTC, always aware, with one text form that sorts by time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from functools import lru_cache

from recollect.errors import InvalidInputError

Clock = Callable[[], datetime]
"""A function that returns the time: `utc_now`, or a frozen clock in tests."""
_FIRST_YEAR, _LAST_YEAR = 1000, 9000


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(timezone.utc)


def checked_clock(clock: Clock) -> Clock:
    """Return a clock whose times are checked: aware, and far enough from the ends of the calendar to reckon with."""
    if not callable(clock):
        raise InvalidInputError("clock", "must be a function that returns the time, such as recollect.times.utc_now")
    if clock is utc_now:
        return clock

    def checked() -> datetime:
        now = clock()
        if not isinstance(now, datetime) or now.tzinfo is None or not _FIRST_YEAR <= now.year <= _LAST_YEAR:
            wanted = f"a datetime with a time zone, between the years {_FIRST_YEAR} and {_LAST_YEAR}"
            raise InvalidInputError("clock", f"returned {_shorten_repr(now)}; it must return {wanted}")
        return now.astimezone(timezone.utc)

    return checked


@lru_cache(maxsize=256)  # records stored together share their times
def to_text(moment: datetime) -> str:
    """Return text of fixed width, so that it sorts by time: ``2026-02-12T09:30:00.000000Z``."""
    return moment.isoformat(timespec="microseconds")[:26] + "Z"


def from_text(text: str) -> datetime:
    """Return the time from a text of `to_text`."""
    return datetime.fromisoformat(text)


def parse_moment(field: str, value: object) -> datetime:
    """Return a time from a datetime, a date or ISO 8601 text; without a time zone it is UTC."""
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
    """Return a day from a date or ``YYYY-MM-DD``."""
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
