"""Dates as a calendar writes them: 7 May 2023, May, 2023-05-07, the 90s, Q3.

`nearby` handles times relative to now ("last week"), `phrases` what stands around a date ("the end of").
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import NamedTuple

from recollect.search.dates.calendar import add_time, day_start, midnight, month_start
from recollect.search.dates.tokens import DateToken, compiled
from recollect.search.dates.words import (
    AFTER_YEAR,
    ALSO_NAMES,
    ARTICLES,
    COUNTED,
    DASHES,
    DECADES,
    DOUBTFUL,
    IN,
    NOT_YEAR_BEFORE,
    YEAR_IN,
)

_FUTURE = (
    r"\b(?:will|won't|going to|gonna|shall|upcoming|plan(?:s|ning)? (?:to|for)|werde|werden|wird|буде|будет|буду)\b"
    r"|'ll\b"
)


class DateMatch(NamedTuple):
    """A time expression that ends before token `stop`."""

    stop: int
    start: datetime
    end: datetime
    certain: bool = True
    grain: str = ""  # "day", "month" or "year" for an expression of the calendar
    year: int = 0  # the year it names, 0 for none


class WrittenDateReader:
    """Reads the tokens of one text. Every method takes the first token, and there is always one to look at."""

    def __init__(self, text: str, plain: str, now: datetime, day_first: bool = True) -> None:
        self.text, self.plain = text, plain
        self.now = now
        self.today = midnight(now)
        self.day_first = day_first
        self.at: list[DateToken] = []

    @cached_property
    def future(self) -> bool:
        """True if the text is about the future, so that "on Friday" is the next one."""
        return compiled(_FUTURE).search(self.plain) is not None

    def past_articles(self, i: int) -> int:
        for _ in range(2):
            if self.at[i].word in ARTICLES:
                i += 1
        return i

    def whole_year(self, year: int, stop: int) -> DateMatch:
        return DateMatch(stop, month_start(year, 1), month_start(year + 1, 1), True, "year", year)

    def year(self, i: int, named: bool = False) -> tuple[int, int] | None:
        """Return a year at a token, and where it ends; `named` if the words before it require one."""
        j = i
        for _ in range(2):
            if self.at[j].word in (",", "of", "de", "del", "dell", "roku", "the", "in", "year"):
                j += 1
        token = self.at[j]
        if token.kind != "digits" or len(token.raw) != 4 or not (1000 <= token.value <= 2999):
            return None
        if not named and not 1900 <= token.value <= 2099:
            return None
        before, after = self.text[token.start - 1 : token.start], self.text[token.end : token.end + 2]
        if before in tuple("$€£¥₴#.@") and token.start:
            return None
        if (after[:1] in tuple(".,:") and after[1:2].isdigit()) or after[:1] in tuple("%$€£¥₴°@"):
            return None
        following = self.at[j + 1]
        if following.word in COUNTED and following.kind != "mark":
            return None
        stop = j + 1
        if following.word in ("року", "році", "года", "году", "рік", "год", "roku", "r"):
            stop += 1
        return token.value, stop

    def alone_year(self, i: int) -> DateMatch | None:
        """Read a number that is a year because of its context."""
        if self.at[i].kind != "digits" or self.at[i - 1].kind == "month":
            return None
        year = self.year(i)
        if not year or year[1] < i + 1:
            return None
        before, following = self.at[i - 1], self.at[year[1]]
        if before.word in YEAR_IN or following.word == "":
            fits = before.word in YEAR_IN or before.word not in NOT_YEAR_BEFORE
        elif before.word in NOT_YEAR_BEFORE:
            return None
        else:
            fits = (
                following.kind == "mark"
                or following.word in AFTER_YEAR
                or before.word in ("the", "my", "our", "his", "her", "their", "a")
                or following.raw[:1].isupper()
            )
        return self.whole_year(*year) if fits else None

    def recent_year(self, month: int, day: int) -> int:
        """Return the year of a date without one: its last occurrence, or the next if the text is about the future."""
        year = self.now.year
        here = (month, day) > (self.now.month, self.now.day)
        if self.future:
            return year + 1 if (month, day or 31) < (self.now.month, self.now.day if day else 1) else year
        return year - 1 if here and not (day == 0 and month == self.now.month) else year

    def day_of(self, month: int, day: int, year: tuple[int, int] | None, stop: int) -> DateMatch | None:
        if not 1 <= day <= 31:
            return None
        if year:
            start = day_start(year[0], month, day)
            return DateMatch(year[1], start, add_time(start, days=1), True, "day", year[0]) if start else None
        guess = self.recent_year(month, day)
        for back in range(9 if (month, day) == (2, 29) else 1):
            start = day_start(guess + back if self.future else guess - back, month, day)
            if start:
                return DateMatch(stop, start, add_time(start, days=1), False, "day")
        return None

    def day_month(self, i: int) -> DateMatch | None:
        """Read 7 May 2023, 7th of May, 7-9 May, 7. Mai."""
        first = self.at[i]
        if not 1 <= first.value <= 31 or len(first.raw) > 5:
            return None
        j, last = i + 1, None
        if self.at[j].word in ("-", "–", "—", "to", "and", "bis", "à") and self.at[j + 1].kind in ("digits", "ordinal"):
            last, j = self.at[j + 1], j + 2
        for _ in range(2):
            if self.at[j].word in (".", "of", "de", "del", "di", "day"):
                j += 1
        month = self.at[j]
        if month.kind != "month":
            return None
        if month.word == "may" and month.raw == "may" and self.at[j - 1].word != "of" and first.kind == "digits":
            following = self.at[j + 1]
            if following.kind == "word" and following.word in ("be", "have", "not", "also", "need", "want", "go"):
                return None  # all 3 may be late
        stop = j + 2 if self.at[j + 1].word == "." and len(month.word) < 5 else j + 1
        year = self.year(stop, named=True)
        hit = self.day_of(month.value, last.value if last else first.value, year, stop)
        if last is None or hit is None:
            return hit
        start = day_start(hit.start.year, month.value, first.value)
        if start is None or start >= hit.end:
            return None
        return hit._replace(start=start, grain="")

    def month(self, i: int) -> DateMatch | None:
        """Read May 7th, 2023; May 2023; May."""
        token = self.at[i]
        if self.at[i - 1].kind in ("digits", "ordinal") and len(self.at[i - 1].raw) < 5:
            return None  # 30 February: no such day, and the month was not meant
        stop = (
            i + 2 if self.at[i + 1].word == "." and len(token.word) < 5 and self.at[i + 2].kind == "digits" else i + 1
        )
        j = stop
        if self.at[j].word == "the" and self.at[j + 1].kind == "ordinal":
            j += 1
        day = self.at[j]
        if day.kind in ("digits", "ordinal") and 1 <= day.value <= 31 and len(day.raw) <= 5:
            following = self.at[j + 1]
            counted = following.word in COUNTED or following.kind == "unit" or following.word in ("of", "%")
            doubtful = token.raw.islower() and token.word in ("may", "march", "mar", "set")
            if not counted and not (doubtful and day.kind == "digits" and self.at[i - 1].kind == "word"):
                if following.word in ("-", "–", "—", "to", "and") and self.at[j + 2].kind in ("digits", "ordinal"):
                    last = self.at[j + 2]
                    to_month = self.at[j + 3].kind == "month"
                    if 1 <= last.value <= 31 and last.value > day.value and not to_month:
                        hit = self.day_of(token.value, last.value, self.year(j + 3, named=True), j + 3)
                        start = hit and day_start(hit.start.year, token.value, day.value)
                        return hit._replace(start=start, grain="") if hit and start else None
                return self.day_of(token.value, day.value, self.year(j + 1, named=True), j + 1)
        year = self.year(stop, named=True)
        if year:
            first = month_start(year[0], token.value)
            return DateMatch(year[1], first, month_start(year[0], token.value + 1), True, "month", year[0])
        if token.word in DOUBTFUL and not self.stands_for_time(i, IN):
            return None
        if self.at[i + 1].word == "'s" and token.word in ALSO_NAMES and self.at[i - 1].word not in IN:
            return None
        guess = self.recent_year(token.value, 0)
        return DateMatch(stop, month_start(guess, token.value), month_start(guess, token.value + 1), False, "month")

    def stands_for_time(self, i: int, leads: frozenset[str]) -> bool:
        """Return True if an ambiguous word is used for a time: after a preposition, or capitalised."""
        before = self.at[i - 1]
        if before.word in leads and before.kind != "mark":
            return True
        if before.word in DASHES and self.at[i - 2].kind in ("mid", "early", "late", "month", "weekday"):
            return True
        begins = before.word in ("", ".", "!", "?", ":", '"', "*", "#", "-", ">")
        if self.at[i].raw.isupper() or not self.at[i].raw[:1].isupper() or begins:
            return False
        # A title: every other word is capitalised as well, so a capital says nothing.
        return self.at[i + 1].word not in ("i", "we", "he", "she", "they")

    def numeric(self, i: int) -> DateMatch | None:
        token = self.at[i]
        if token.kind == "isomonth":
            year, month = int(token.raw[:4]), int(token.raw[5:7])
            if not (1000 <= year <= 2999 and 1 <= month <= 12):
                return None
            return DateMatch(i + 1, month_start(year, month), month_start(year, month + 1), True, "month", year)
        if token.kind == "slash":
            return self.slashed(i)
        try:
            moment = datetime.fromisoformat(token.raw.replace(",", "."))
            if moment.tzinfo:
                moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
        except (ValueError, OverflowError):
            return None
        if len(token.raw) == 10:
            return DateMatch(i + 1, moment, add_time(moment, days=1), True, "day", moment.year)
        length = timedelta(seconds=1) if token.raw.count(":") > 1 and token.raw[16:17] == ":" else timedelta(minutes=1)
        return DateMatch(i + 1, moment, add_time(moment, seconds=length.seconds), True, "", moment.year)

    def slashed(self, i: int) -> DateMatch | None:
        one, two, three = self.at[i].raw.replace(".", "/").split("/")
        if len(one) == 4 and len(three) <= 2:
            year, month, day = int(one), int(two), int(three)
        elif len(one) <= 2 and len(three) in (2, 4):
            year = int(three) + (0 if len(three) == 4 else 2000 if int(three) < 70 else 1900)
            day, month = int(one), int(two)
            if "/" in self.at[i].raw and (month > 12 or (not self.day_first and day <= 12)):
                day, month = month, day
            elif len(three) == 2 and "." in self.at[i].raw and len(two) < 2:
                return None  # a version: 3.1.12
        else:
            return None
        start = day_start(year, month, day) if 1000 <= year <= 2999 else None
        return DateMatch(i + 1, start, add_time(start, days=1), not self.ambiguous(i), "day", year) if start else None

    def ambiguous(self, i: int) -> bool:
        token = self.at[i]
        if token.kind != "slash" or "/" not in token.raw:
            return False
        one, two, three = token.raw.split("/")
        return len(one) <= 2 < len(three) + 1 and one != two and 0 < int(one) <= 12 and 0 < int(two) <= 12

    def decade(self, i: int) -> DateMatch | None:
        token = self.at[i]
        if len(token.raw) < 5 or token.word in DECADES:  # 90s, nineties
            j = i - 2 if self.at[i - 1].word in DASHES else i - 1  # the mid-90s
            before = self.at[j - 1] if self.at[j].kind in ("early", "mid", "late") else self.at[j]
            if before.word not in ("the", "'"):
                return None
        return DateMatch(i + 1, month_start(token.value, 1), month_start(token.value + 10, 1), True, "", token.value)

    def quarter(self, i: int) -> DateMatch | None:
        first = 3 * self.at[i].value - 2
        named = self.year(i + 1, named=True)
        year, stop = named or (self.recent_year(first, 0), i + 1)
        start, end = month_start(year, first), month_start(year, first + 3)
        return DateMatch(stop, start, end, named is not None, "", year if named else 0)

    # Words of their own.
