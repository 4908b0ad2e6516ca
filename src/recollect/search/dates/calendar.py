"""Arithmetic of days, weeks, months and years.

Times here are naive and in UTC, and stay inside the calendar: what would lie beyond it is its first or last moment.
"""

from __future__ import annotations

from datetime import datetime, timedelta

FIRST = datetime.min
LAST = datetime.max


def day_start(year: int, month: int, day: int) -> datetime | None:
    """Return midnight of a day, None for 30 February."""
    try:
        return datetime(year, month, day)
    except (ValueError, OverflowError):
        return None


def add_time(moment: datetime, **step: float) -> datetime:
    """Return a later or earlier time, inside the calendar."""
    try:
        return moment + timedelta(**step)
    except OverflowError:
        return LAST if next(iter(step.values())) > 0 else FIRST


def month_start(year: int, month: int) -> datetime:
    """Return the first of a month; months beyond 12 and below 1 belong to other years."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    if year < 1:
        return FIRST
    return datetime(year, month, 1) if year <= 9999 else LAST


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def unit_near(moment: datetime, unit: str, step: int) -> tuple[datetime, datetime]:
    """Return the week, month, year ... that lies `step` of them away from that of `moment`."""
    step = max(-1_000_000, min(1_000_000, step))
    today = midnight(moment)
    monday = add_time(today, days=-today.weekday())
    if unit in ("minute", "hour"):
        about = add_time(moment, **{unit + "s": step})
        return add_time(about, **{unit + "s": -0.5}), add_time(about, **{unit + "s": 0.5})
    if unit in ("day", "night"):
        start = add_time(today, days=step)
        return start, add_time(start, days=1)
    if unit in ("week", "fortnight"):
        length = 7 if unit == "week" else 14
        start = add_time(monday, days=length * step)
        return start, add_time(start, days=length)
    if unit == "weekend":
        start = add_time(monday, days=7 * step + 5)
        return start, add_time(start, days=2)
    if unit == "month":
        return month_start(today.year, today.month + step), month_start(today.year, today.month + step + 1)
    if unit == "quarter":
        first = (today.month - 1) // 3 * 3 + 1 + 3 * step
        return month_start(today.year, first), month_start(today.year, first + 3)
    if unit == "decade":
        year = today.year // 10 * 10 + 10 * step
        return month_start(year, 1), month_start(year + 10, 1)
    return month_start(today.year + step, 1), month_start(today.year + step + 1, 1)


def shift_moment(moment: datetime, unit: str, number: int) -> datetime:
    """Return the same time `number` units away: 31 May less a month is 30 April."""
    number = max(-1_000_000, min(1_000_000, number))
    months = {"month": 1, "quarter": 3, "year": 12, "decade": 120}.get(unit)
    if months:
        start = month_start(moment.year, moment.month + months * number)
        following = month_start(moment.year, moment.month + months * number + 1)
        length = max(1, (following - start).days)
        return add_time(start, days=min(moment.day, length) - 1)
    if unit in ("minute", "hour"):
        return add_time(moment, **{unit + "s": number})
    return add_time(moment, days=number * {"week": 7, "weekend": 7, "fortnight": 14}.get(unit, 1))
