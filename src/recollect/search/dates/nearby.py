"""Times relative to now: last week, on Tuesday, three days ago, this summer, at Christmas."""

from __future__ import annotations

from recollect.search.dates.calendar import add_time, month_start, shift_moment, unit_near
from recollect.search.dates.holidays import holiday_at, holiday_in
from recollect.search.dates.words import BEHIND, DASHES, DOUBTFUL, ON, SMALL, UNIT_NAMES
from recollect.search.dates.written import DateMatch, WrittenDateReader
from recollect.text import detect_language, folded_words


class ExpressionReader(WrittenDateReader):
    """Reads any single time expression."""

    def core(self, i: int) -> DateMatch | None:
        token = self.at[i]
        kind = token.kind
        if kind == "digits":
            return self.day_month(i) or self.ago(i) or self.from_now(i) or self.alone_year(i)
        if kind == "ordinal":
            return self.day_month(i)
        if kind == "month":
            return self.month(i)
        if kind == "weekday":
            return self.weekday(i)
        if kind == "relative":
            return self.relative_day(i)
        if kind == "which":
            return self.which(i)
        if kind in ("iso", "isomonth", "slash"):
            return self.numeric(i)
        if kind == "season":
            return self.season(i)
        if kind == "decade":
            return self.decade(i)
        if kind == "quarter":
            return self.quarter(i)
        if kind == "number":
            return self.ago(i) or self.from_now(i)
        if kind == "unit":
            return self.unit_which(i)
        if kind in ("holiday", "lead"):
            return self.special(i)
        return None

    def days(self, stop: int, first: int, last: int | None = None, certain: bool = True) -> DateMatch:
        last = first if last is None else last
        start = add_time(self.today, days=first)
        return DateMatch(
            stop, start, add_time(self.today, days=last + 1), certain, "day" if first == last else "", start.year
        )

    def weekday(self, i: int) -> DateMatch | None:
        token = self.at[i]
        j = i + 1
        while self.at[j].word in (",", ".", "the", "den", "le") and j < i + 3:
            j += 1
        if self.at[j].kind in ("digits", "ordinal", "month", "iso", "slash"):
            full = self.core(j)
            if full and full.grain == "day":
                return full
        if token.word in DOUBTFUL and not self.stands_for_time(i, ON):
            return None
        if token.word.endswith("days") and token.word not in ("tuesdays",) and self.at[i - 1].kind != "which":
            return None  # on Mondays: a habit
        away = (self.today.weekday() - token.value) % 7
        offset = (7 - away) % 7 if self.future else -away
        return self.days(self.part_of_day(i + 1), offset, certain=False)._replace(year=0)

    def part_of_day(self, stop: int) -> int:
        return stop + 1 if self.at[stop].word in ("morning", "afternoon", "evening", "night") else stop

    def relative_day(self, i: int) -> DateMatch | None:
        token = self.at[i]
        stop = self.part_of_day(i + 1)
        if token.word == "morgen" and (
            token.raw != "morgen" or self.at[i - 1].word in ("am", "guten", "heute", "jeden")
        ):
            return None
        if token.word == "manana" and self.at[i - 1].word in ("la", "esta", "una", "cada"):
            return None
        if token.word == "hier":
            if detect_language(folded_words(self.text)) != "fr":
                return None
            if self.at[i - 1].word in DASHES and self.at[i - 2].word == "avant":
                return self.days(stop, -2)
        return self.days(stop, token.value)

    def which(self, i: int) -> DateMatch | None:
        """Read last week, this May, next Tuesday, the past few days, last summer, last Christmas."""
        token, what = self.at[i], self.at[i + 1]
        step = token.value
        number, j = self.number(i + 1)
        unit_token = self.at[j]
        if number and unit_token.kind == "unit":
            return self.rolling(j + 1, step, number, UNIT_NAMES[unit_token.value])
        if what.kind == "unit":
            unit = UNIT_NAMES[what.value]
            if what.word == "an" or (what.word == "час" and step == 0):
                return None
            if token.word == "past" and unit not in ("weekend",):
                if what.word.endswith("s"):
                    return self.rolling(i + 2, -1, (2, 5), unit)
                return self.rolling(i + 2, -1, (1, 1), unit)
            if what.word in ("days", "weeks", "months", "years"):
                return None
            if unit == "night" and step < 0:
                return DateMatch(i + 2, add_time(self.today, hours=-12), add_time(self.today, hours=12))
            if unit in ("minute", "hour", "day"):
                return self.rolling(i + 2, step, (1, 1), unit) if step and unit != "day" else None
            lead = self.at[i - 2].word if self.at[i - 1].word == "the" else ""
            if step < 0 and lead in ("in", "over", "within", "during"):
                return self.rolling(i + 2, -1, (1, 1), unit)
            start, end = unit_near(self.now, unit, step)
            grain = unit if unit in ("month", "year") else ""
            return DateMatch(i + 2, start, end, True, grain, start.year)
        if what.kind == "weekday":
            if what.word in ("sun",) and not what.raw[:1].isupper():
                return None
            away = self.today.weekday() - what.value
            offset = -(away % 7 or 7) if step < 0 else -away + 7 * step
            return self.days(self.part_of_day(i + 2), offset)
        if what.kind == "month":
            year = self.now.year
            if what.word == "march" and what.raw == "march" and self.at[i + 2].kind == "word":
                return None
            if step < 0 and what.value >= self.now.month:
                year -= 1
            elif step > 0 and what.value <= self.now.month:
                year += 1
            return DateMatch(
                i + 2, month_start(year, what.value), month_start(year, what.value + 1), True, "month", year
            )
        if what.kind == "season":
            return self.season_near(i + 2, what.value, step)
        if what.kind in ("holiday", "lead"):
            return self.special(i + 1, step)
        if what.word in ("morning", "afternoon", "evening") and step == 0:
            return self.days(i + 2, 0)
        return None

    def number(self, i: int) -> tuple[tuple[int, int] | None, int]:
        """Return a number as minimum and maximum, and where the unit stands: two, 2, a couple of, a few."""
        token = self.at[i]
        if token.kind == "number" and token.word in ("a", "an") and self.at[i + 1].word in SMALL:
            i, token = i + 1, self.at[i + 1]
        if token.word in SMALL:
            j = i + 2 if self.at[i + 1].word == "of" else i + 1
            return SMALL[token.word], j
        if token.kind == "number":
            following = self.at[i + 1]
            if following.word in ("and",) and self.at[i + 2].word == "half":
                return (token.value, token.value), i + 3
            if token.value in (20, 30, 40, 50, 60, 90) and following.word in DASHES and self.at[i + 2].kind == "number":
                value = token.value + self.at[i + 2].value
                return (value, value), i + 3
            return (token.value, token.value), i + 1
        if token.kind == "digits":
            if self.at[i - 1].word in (".", ",") and self.at[i - 2].kind == "digits":
                return None, i
            value = token.value if token.value >= 0 else 10**11
            return (value, value), i + 1
        return None, i

    def rolling(self, stop: int, step: int, number: tuple[int, int], unit: str) -> DateMatch:
        """Return the last three days, the past month: up to today."""
        certain = number[0] == number[1]
        tomorrow = add_time(self.today, days=1)
        if step > 0:
            start = self.now if unit in ("minute", "hour") else self.today
            return DateMatch(stop, start, add_time(shift_moment(start, unit, number[1]), days=1), certain)
        start = shift_moment(self.now if unit in ("minute", "hour") else self.today, unit, -number[1])
        return DateMatch(stop, start, tomorrow, certain)

    def ago(self, i: int) -> DateMatch | None:
        """Read three days ago, a couple of weeks ago; also vor, hace, il y a, which stand before."""
        number, j = self.number(i)
        token = self.at[j]
        if number is None or token.kind != "unit" or (token.word in ("an", "час") and number == (1, 1) and j == i):
            return None
        stop = j + 1
        if self.at[stop].kind == "ago":
            stop += 1
        elif not self.leads_back(i):
            return None
        return self.so_long_ago(stop, number, UNIT_NAMES[token.value])

    def leads_back(self, i: int) -> bool:
        before = [self.at[i - n].word for n in (1, 2, 3)]
        return before[0] in ("vor", "hace", "ha") or before == ["a", "y", "il"]

    def so_long_ago(self, stop: int, number: tuple[int, int], unit: str) -> DateMatch:
        least, most = number
        if unit in ("week", "fortnight"):
            days = 7 if unit == "week" else 14
            first, last = (
                add_time(self.today, days=-days * min(most, 10**6)),
                add_time(self.today, days=-days * min(least, 10**6)),
            )
            return DateMatch(stop, add_time(first, days=-3), add_time(last, days=4), least == most)
        start, end = unit_near(self.now, unit, -most)[0], unit_near(self.now, unit, -least)[1]
        exact = least == most
        return DateMatch(
            stop, start, end, exact, unit if exact and unit in ("day", "month", "year") else "", start.year
        )

    def from_now(self, i: int) -> DateMatch | None:
        """Read in two weeks, three days from now."""
        number, j = self.number(i)
        token = self.at[j]
        if number is None or token.kind != "unit" or token.word in ("an", "night", "nights"):
            return None
        unit = UNIT_NAMES[token.value]
        later = self.at[j + 1].word == "from" and self.at[j + 2].word in ("now", "today")
        if not later and (self.at[i - 1].word != "in" or self.at[i - 2].kind in ("number", "digits")):
            return None
        start = shift_moment(self.today, unit, min(number[0], 10**6))
        end = add_time(shift_moment(self.today, unit, min(number[1], 10**6)), days=1)
        if unit in ("minute", "hour"):
            start, end = (
                shift_moment(self.now, unit, min(number[0], 10**6)),
                shift_moment(self.now, unit, min(number[1], 10**6) + 1),
            )
        return DateMatch(j + 3 if later else j + 1, start, end, later and number[0] == number[1])

    def unit_which(self, i: int) -> DateMatch | None:
        """Read la semaine dernière, with the adjective after the noun."""
        behind = self.at[i + 1]
        if behind.kind != "which" or behind.word not in BEHIND:
            return None
        unit = UNIT_NAMES[self.at[i].value]
        if unit in ("minute", "hour", "day"):
            return None
        start, end = unit_near(self.now, unit, behind.value)
        return DateMatch(i + 2, start, end, True, unit if unit in ("month", "year") else "", start.year)

    def season(self, i: int) -> DateMatch | None:
        token = self.at[i]
        year = self.year(i + 1, named=True)
        if year:
            start = month_start(year[0], token.value)
            return DateMatch(year[1], start, month_start(year[0], token.value + 3), True, "", year[0])
        before = self.at[i - 1].word
        lead = self.at[i - 2].word if before in ("the", "this", "der", "la", "el") else before
        leads = ("in", "during", "since", "by", "until", "im", "en", "before", "after", "over", "of")
        if lead not in leads and token.word not in (
            "влітку",
            "навесні",
            "восени",
            "взимку",
            "летом",
            "весной",
            "зимой",
        ):
            return None
        if before == "of" and token.word in ("fall", "spring"):
            return None
        hit = self.season_near(i + 1, token.value, 1 if self.future else -1, running=True)
        return hit._replace(certain=False)

    def season_near(self, stop: int, first: int, step: int, running: bool = False) -> DateMatch:
        """Return a season: last summer is the last that is over, next summer the first that has not begun."""
        year = self.now.year
        seasons = [(month_start(y, first), month_start(y, first + 3)) for y in range(year - 2, year + 3)]
        chosen = (month_start(year, first), month_start(year, first + 3))
        for season in seasons if step < 0 else reversed(seasons):
            if (step < 0 and season[1] <= self.now) or (step > 0 and season[0] > self.now):
                chosen = season
        if step == 0 or running:
            chosen = next((s for s in seasons if s[0] <= self.now < s[1]), chosen)
        start, end = chosen
        return DateMatch(stop, start, end, True, "", start.year)

    def special(self, i: int, step: int | None = None) -> DateMatch | None:
        word = self.at[i].word
        if step is None:
            if word == "other" and self.at[i + 1].word == "day" and self.at[i - 1].word == "the":
                return self.days(i + 2, -14, -1, certain=False)
            if word in ("vor", "hace", "ha", "il"):
                j = i + 3 if word == "il" and self.at[i + 1].word == "y" and self.at[i + 2].word == "a" else i + 1
                if word == "il" and j == i + 1:
                    return None
                return self.ago(j)
            if word in ("couple", "few", "several"):
                return self.ago(i)
            if word == "avant" and self.at[i + 1].word in DASHES and self.at[i + 2].word == "hier":
                return self.relative_day(i + 2)
            if word in ("segunda", "terca", "quarta", "quinta", "sexta"):
                if self.at[i + 1].word in DASHES and self.at[i + 2].word == "feira":
                    number = ("segunda", "terca", "quarta", "quinta", "sexta").index(word)
                    away = (self.today.weekday() - number) % 7
                    return self.days(i + 3, -away, certain=False)
                return None
        named = holiday_at(self.at, i)
        if named is None:
            return None
        name, stop = named
        year = self.year(stop, named=True)
        if year:
            start, end = holiday_in(name, year[0])
            return DateMatch(year[1], start, end, True, "day", year[0])
        here = self.now.year
        past = max((y for y in (here - 1, here, here + 1) if holiday_in(name, y)[0] <= self.now), default=here)
        if step is None:
            guess = past + 1 if self.future and holiday_in(name, past)[1] <= self.now else past
        elif step < 0:
            guess = max((y for y in (here - 1, here) if holiday_in(name, y)[1] <= self.now), default=here)
        else:
            guess = past + 1 if step else here
        start, end = holiday_in(name, guess)
        return DateMatch(stop, start, end, step is not None, "day")
