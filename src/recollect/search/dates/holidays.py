"""Holidays: their days, and their names."""

from __future__ import annotations

from datetime import datetime, timedelta

from recollect.search.dates.tokens import DateToken


def _easter(year: int) -> tuple[int, int]:
    """Return month and day of western Easter: the anonymous Gregorian computus."""
    golden, century, rest = year % 19, year // 100, year % 100
    epact = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    sunday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    shift = (golden + 11 * epact + 22 * sunday) // 451
    month, day = divmod(epact + sunday - 7 * shift + 114, 31)
    return month, day + 1


def _nth(year: int, month: int, weekday: int, number: int) -> datetime:
    first = datetime(year, month, 1)
    return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (number - 1))


def holiday_in(name: str, year: int) -> tuple[datetime, datetime]:
    """Return the first day of a holiday in a year, and the day after it."""
    year = max(2, min(9998, year))
    length, day = 1, datetime(year, 1, 1)
    if name == "christmas":
        day, length = datetime(year, 12, 24), 3
    elif name == "new year":
        day, length = datetime(year - 1, 12, 31), 2
    elif name == "thanksgiving":
        day = _nth(year, 11, 3, 4)
    elif name == "black friday":
        day = _nth(year, 11, 3, 4) + timedelta(days=1)
    elif name == "easter":
        month, number = _easter(year)
        day = datetime(year, month, number)
    elif name == "mother's day":
        day = _nth(year, 5, 6, 2)
    elif name == "father's day":
        day = _nth(year, 6, 6, 3)
    elif name == "labor day":
        day = _nth(year, 9, 0, 1)
    elif name == "memorial day":
        day = _nth(year, 6, 0, 1) - timedelta(days=7)
    else:
        day = datetime(year, *_FIXED[name])
    return day, day + timedelta(days=length)


_FIXED = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "new year's eve": (12, 31),
    "new year's day": (1, 1),
    "halloween": (10, 31),
    "valentine's day": (2, 14),
    "st patrick's day": (3, 17),
    "independence day": (7, 4),
}


def holiday_at(at: list[DateToken], i: int) -> tuple[str, int] | None:
    """Return a holiday's name, and where it ends."""
    word = at[i].word
    j = i + 2 if at[i + 1].word in ("'s", "'", ".") else i + 1
    following = at[j].word
    if word in ("christmas", "xmas"):
        if following in ("eve", "day"):
            return f"christmas {following}", j + 1
        return ("christmas", i + 1) if following not in ("tree", "present", "presents", "gift") else None
    if word in ("halloween", "easter", "thanksgiving"):
        return word, j if following != "day" else j + 1
    if word in ("valentine", "valentines") and following == "day":
        return "valentine's day", j + 1
    if word == "new" and following == "year":
        k = j + 2 if at[j + 1].word in ("'s", "'") else j + 1
        if at[k].word in ("eve", "day"):
            return f"new year's {at[k].word}", k + 1
        return ("new year", k) if k == j + 2 or at[j].raw == "Year" else None
    if word == "st" and following == "patrick":
        k = j + 2 if at[j + 1].word in ("'s", "'") else j + 1
        return ("st patrick's day", k + 1) if at[k].word == "day" else None
    if word in ("independence", "memorial", "labor", "labour") and at[i + 1].word == "day":
        return ("labor day" if word.startswith("lab") else f"{word} day"), i + 2
    if word in ("mother", "father") and at[i + 1].word == "'s" and following == "day":
        return f"{word}'s day", j + 1
    if word == "black" and following == "friday" and at[j].raw[:1].isupper():
        return "black friday", j + 1
    return None
