"""Phrases around a time expression: since May, the end of 2022, two days before Christmas, from June to August."""

from __future__ import annotations

from collections.abc import Iterator

from recollect.search.dates.calendar import FIRST, LAST, add_time, day_start, month_start, shift_moment, unit_near
from recollect.search.dates.nearby import ExpressionReader
from recollect.search.dates.tokens import MARGIN, tokens_between
from recollect.search.dates.words import DASHES, UNIT_NAMES
from recollect.search.dates.written import DateMatch

_DEEPEST = 4  # limits "the day before the day before ..."


class PhraseReader(ExpressionReader):
    def read(self, begin: int, end: int) -> Iterator[tuple[DateMatch, int]]:
        """Yield the time expressions of a part of the text, each with its first token."""
        self.at = tokens_between(self.text, self.plain, begin, end)
        i, last = MARGIN, len(self.at) - MARGIN
        while i < last:
            hit = self.phrase(i, 0)
            if hit and hit.start < hit.end:
                yield hit, i
                i = max(hit.stop, i + 1)
            else:
                i += 1

    @property
    def has_two_readings(self) -> bool:
        """True if the day and the month of a date could be exchanged: 5/7/2023."""
        return any(self.ambiguous(i) for i, token in enumerate(self.at) if token.kind == "slash")

    def phrase(self, i: int, depth: int) -> DateMatch | None:
        if depth > _DEEPEST:
            return None
        token = self.at[i]
        word, kind = token.word, token.kind
        if word == "the":
            return self.phrase(i + 1, depth + 1)
        if kind in ("word", "mark", ""):
            return None
        if kind == "number" and self.at[self.number(i)[1]].kind not in ("unit", "weekday"):
            return None
        if kind in ("before", "after", "since") or word in ("until", "till", "by", "prior"):
            return self.open_ended(i, depth)
        if word in ("between", "from"):
            return self.between(i, depth)
        if kind in ("early", "late", "mid") or word in ("end", "beginning", "start"):
            return self.part(i, depth)
        if kind == "ordinal" or (kind == "which" and token.value == -1):
            hit = self.counted(i, depth)
            if hit:
                return hit
        if word == "day" and self.at[i + 1].word in ("before", "after"):
            near = self.at[i + 2]
            if near.kind == "relative" and abs(near.value) == 1:
                return self.days(i + 3, 2 * near.value)
        return self.shifted(i, depth) or self.week_of(i, depth) or self.series(i)

    def inner(self, i: int, depth: int) -> DateMatch | None:
        return self.phrase(self.past_articles(i), depth + 1)

    def open_ended(self, i: int, depth: int) -> DateMatch | None:
        word, kind = self.at[i].word, self.at[i].kind
        j = i + 1
        if word == "prior":
            if self.at[j].word != "to":
                return None
            j += 1
        hit = self.inner(j, depth)
        if hit is None and word != "by" and self.at[self.past_articles(j)].kind == "digits":
            year = self.year(self.past_articles(j), named=True)
            hit = year and self.whole_year(year[0], year[1])
        if not hit:
            return None
        if kind == "before" or word == "prior":
            return hit._replace(start=FIRST, end=hit.start)
        if kind == "after":
            return hit._replace(start=hit.end, end=LAST)
        if kind == "since":
            return hit._replace(end=LAST)
        return hit._replace(start=FIRST)

    def between(self, i: int, depth: int) -> DateMatch | None:
        joints = ("and", "-") if self.at[i].word == "between" else ("to", "until", "till", "through", "-", "–")
        hit = self.span(i + 1, joints)
        if hit:
            return hit
        alone = self.inner(i + 1, depth)
        if alone and self.at[i].word == "from" and alone.stop > i + 1:
            if self.at[alone.stop].word in ("on", "onward", "onwards"):
                return alone._replace(stop=alone.stop + 1, end=LAST)
            return alone
        return None

    def span(self, i: int, joints: tuple[str, ...]) -> DateMatch | None:
        """Read two dates and what joins them. The first takes a missing month and year from the second."""
        i = self.past_articles(i)
        first = self.core(i)
        bare = self.at[i]
        if bare.kind in ("digits", "ordinal") and self.at[i + 1].word in joints:
            stop = i + 1
            first = None
        elif first:
            stop = first.stop
        else:
            return None
        if self.at[stop].word not in joints:
            return None
        second = self.core(self.past_articles(stop + 1))
        if not second:
            return None
        if first is None:
            if 1900 <= bare.value <= 2099 and second.grain == "year":
                first = self.whole_year(bare.value, stop)
            elif second.grain == "day":
                day = day_start(second.start.year, second.start.month, bare.value)
                if day:
                    first = DateMatch(stop, day, add_time(day, days=1), second.certain, "day", second.year)
            if not first:
                return None
        if not first.grain or not second.grain:
            return None
        start = first.start
        if not first.year and first.grain in ("day", "month") and second.grain in ("day", "month"):
            borrowed = day_start(second.start.year, start.month, start.day)
            if borrowed:
                start = borrowed
        if start > second.start:
            earlier = day_start(start.year - 1, start.month, start.day)
            if first.year or earlier is None:
                return None
            start = earlier
        certain = second.certain if second.year or not first.year else first.certain
        return second._replace(start=start, certain=certain, grain="")

    def series(self, i: int) -> DateMatch | None:
        """Read a date, or two with a dash or "to" between: June to August 2023."""
        hit = self.core(i)
        if hit and hit.grain and (self.at[hit.stop].word in DASHES or self.at[hit.stop].word in ("to", "through")):
            longer = self.span(i, ("-", "–", "—", "to", "through"))
            if longer:
                return longer
        return hit

    def part(self, i: int, depth: int) -> DateMatch | None:
        """Read early June, mid-May, the end of 2022, earlier this month."""
        token = self.at[i]
        j = i + 1
        if self.at[j].word in DASHES:
            j += 1
        if self.at[j].word == "in":
            j += 1
        needs_of = token.word in ("end", "beginning", "start", "middle")
        if needs_of and self.at[j].word not in ("of", "de", "des"):
            return None
        hit = self.inner(j, depth)
        if not hit or hit.end in (LAST, FIRST) or hit.start == FIRST:
            return None
        if token.word == "earlier":
            now = add_time(self.today, days=1)
            return hit._replace(end=now) if hit.start < now < hit.end else hit
        if token.word == "later":
            return hit._replace(start=self.today) if hit.start < self.today < hit.end else hit
        length = (hit.end - hit.start).days
        if length < 3:
            return hit
        if token.word == "end" and hit.grain == "year":
            return hit._replace(start=month_start(hit.start.year, 10), grain="")
        which = 0 if token.kind == "early" or token.word in ("beginning", "start") else 2
        return self.third(hit, 1 if token.kind == "mid" else which)

    def third(self, hit: DateMatch, which: int) -> DateMatch:
        length = (hit.end - hit.start).days
        if length > 360:
            months = round(length / 365.25) * 4
            marks = [month_start(hit.start.year, hit.start.month + months * n) for n in range(4)]
        else:
            marks = [add_time(hit.start, days=length // 3 * n) for n in range(3)] + [hit.end]
        return hit._replace(start=marks[which], end=marks[which + 1], grain="")

    def counted(self, i: int, depth: int) -> DateMatch | None:
        """Read the first weekend of August 2023, the last Friday of June, the second half of 2022."""
        token, what = self.at[i], self.at[i + 1]
        number = token.value
        unit = UNIT_NAMES[what.value] if what.kind == "unit" else what.word
        known = unit in ("day", "week", "weekend", "half", "quarter", "month", "year") or what.kind == "weekday"
        if not known or number == 0 or self.at[i + 2].word not in ("of", "in"):
            return None
        if token.kind == "which" and self.at[i + 2].word == "in":
            return None
        whole = self.inner(i + 3, depth)
        if not whole or whole.grain not in ("month", "year"):
            return None
        start, end = whole.start, whole.end
        if unit == "half":
            length = (end - start).days // 2
            middle = month_start(start.year, 7) if whole.grain == "year" else add_time(start, days=length)
            bounds = (start, middle) if number == 1 else (middle, end)
        elif unit == "quarter":
            if not 1 <= number <= 4 or whole.grain != "year":
                return None
            bounds = (month_start(start.year, 3 * number - 2), month_start(start.year, 3 * number + 1))
        elif unit == "month":
            month = number if number > 0 else 12
            bounds = (month_start(start.year, month), month_start(start.year, month + 1))
        elif unit == "day":
            first = add_time(start, days=number - 1) if number > 0 else add_time(end, days=number)
            bounds = (first, add_time(first, days=1))
        elif unit == "week":
            first = add_time(start, days=7 * (number - 1)) if number > 0 else add_time(end, days=-7)
            bounds = (first, add_time(first, days=7))
        elif unit == "year":
            return None
        else:
            weekday, length = (5, 2) if unit == "weekend" else (what.value, 1)
            if number > 0:
                first = add_time(start, days=(weekday - start.weekday()) % 7 + 7 * (number - 1))
            else:
                first = add_time(end, days=-1)
                first = add_time(first, days=-((first.weekday() - weekday) % 7))
            bounds = (first, add_time(first, days=length))
        if not start <= bounds[0] < end:
            return None
        return whole._replace(start=bounds[0], end=bounds[1], grain="day" if unit == "day" else "")

    def shifted(self, i: int, depth: int) -> DateMatch | None:
        """Read the day before 7 May 2023, two weeks after Christmas, the Friday before 22 May."""
        number, j = self.number(i)
        token = self.at[j]
        if token.kind == "weekday":
            unit = "weekday"
        elif token.kind == "unit":
            unit = UNIT_NAMES[token.value]
        else:
            return None
        side = self.at[j + 1].kind
        if side not in ("before", "after") or j > i + 3:
            return None
        hit = self.inner(j + 2, depth)
        if not hit or hit.start == FIRST or hit.end == LAST:
            return None
        sign = -1 if side == "before" else 1
        count = (number or (1, 1))[0] * sign
        if unit == "weekday":
            day = hit.start if sign < 0 else add_time(hit.end, days=-1)
            step = (day.weekday() - token.value - 1) % 7 + 1 if sign < 0 else (token.value - day.weekday() - 1) % 7 + 1
            start = add_time(day, days=sign * step)
            return hit._replace(start=start, end=add_time(start, days=1), grain="day")
        if unit == "weekend":
            start, end = unit_near(hit.start, unit, count if sign < 0 or hit.start.weekday() > 4 else 0)
            return hit._replace(start=start, end=end, grain="")
        if number is None and unit in ("week", "month", "year"):
            if hit.grain == "day" and unit == "week":  # the seven days beside it
                bounds = (add_time(hit.start, days=-7), hit.start) if sign < 0 else (hit.end, add_time(hit.end, days=7))
            else:
                bounds = unit_near(hit.start if sign < 0 else add_time(hit.end, days=-1), unit, sign)
            return hit._replace(start=bounds[0], end=bounds[1], grain="")
        anchor = hit.start if sign < 0 or hit.grain == "day" else add_time(hit.end, days=-1)
        start = shift_moment(anchor, unit, count)
        return hit._replace(start=start, end=add_time(start, days=1), grain="day")

    def week_of(self, i: int, depth: int) -> DateMatch | None:
        token = self.at[i]
        if token.kind != "unit" or self.at[i + 1].word not in ("of", "beginning", "starting", "commencing"):
            return None
        unit = UNIT_NAMES[token.value]
        if unit == "year" and self.at[i + 1].word == "of":
            year = self.year(i + 2, named=True)
            return self.whole_year(*year) if year else None
        if unit not in ("week", "weekend", "month"):
            return None
        hit = self.inner(i + 2, depth)
        if not hit or hit.start == FIRST or hit.end == LAST:
            return None
        if unit == "month" or hit.grain not in ("day", ""):
            return hit if unit == "month" else None
        start, end = unit_near(hit.start, unit, 0)
        return hit._replace(start=start, end=end, grain="")
