"""Time words of Chinese, Japanese and Korean, which need no spaces around them."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

from recollect.search.dates.calendar import add_time, day_start, month_start, unit_near
from recollect.search.dates.nearby import ExpressionReader
from recollect.search.dates.tokens import compiled

HAN = r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]"
_EAST_DATE = (
    r"(\d{4})\s?[年년]\s?(?:(\d{1,2})\s?[月월]\s?(?:(\d{1,2})\s?[日号號일])?)?"
    r"|(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日号號일]"
)
_EAST_AGO = (
    r"(\d{1,9}|[一二两兩三四五六七八九十]{1,3})\s?"
    r"(天|日|일|个?星期|個?星期|个?礼拜|周|週間?|주|个月|個月|か月|ヶ月|カ月|개월|年|년)\s?(?:之?前|以前|전)"
)
_EAST_MONTH = r"(?<![\d年])(\d{1,2})月(?![\d日号號份]?\d)"
_EAST = {
    ("day", -2): "前天 一昨日 おととい 그저께",
    ("day", -1): "昨天 昨日 きのう 昨晚 어제",
    ("day", 0): "今天 今日 きょう 今晚 今早 오늘",
    ("day", 1): "明天 明日 あした 내일",
    ("day", 2): "后天 後天 明後日 모레",
    ("week", -1): "上周 上週 上星期 上个星期 上個星期 上礼拜 上个礼拜 先週 지난주",
    ("week", 0): "这周 本周 這週 本週 这个星期 這個星期 今週 이번 주 이번주",
    ("week", 1): "下周 下週 下星期 下个星期 下個星期 来週 來週 다음 주 다음주",
    ("month", -1): "上个月 上個月 上月 先月 지난달",
    ("month", 0): "这个月 這個月 本月 今月 이번 달 이번달",
    ("month", 1): "下个月 下個月 下月 来月 다음 달 다음달",
    ("year", -2): "前年 一昨年 おととし",
    ("year", -1): "去年 昨年 작년",
    ("year", 0): "今年 올해",
    ("year", 1): "明年 来年 내년",
}
_EAST_DIGITS = {c: n for n, c in enumerate("一二三四五六七八九十", 1)} | {"两": 2, "兩": 2}


@lru_cache(maxsize=1)
def _east_words() -> tuple[dict[str, tuple[str, int]], re.Pattern[str]]:
    table: dict[str, tuple[str, int]] = {}
    for meaning, line in _EAST.items():
        table |= {word: meaning for word in line.split() if len(word) > 1}
    table |= {"이번 주": ("week", 0), "다음 주": ("week", 1), "이번 달": ("month", 0), "다음 달": ("month", 1)}
    table.pop("이번", None)
    table.pop("다음", None)
    return table, re.compile("|".join(sorted(map(re.escape, table), key=len, reverse=True)))


def eastern(text: str, now: datetime) -> list[tuple[datetime, datetime, bool, int, int]]:
    """Return spans of Chinese, Japanese and Korean time words, with their place in the text."""
    found: list[tuple[datetime, datetime, bool, int, int]] = []
    for match in compiled(_EAST_DATE).finditer(text):
        year, month, day, short_month, short_day = (int(g) if g else None for g in match.groups())
        bounds: tuple[datetime | None, datetime | None] = (None, None)
        if short_month and short_day:
            start = day_start(now.year, short_month, short_day)
            if start and start > now:
                start = day_start(now.year - 1, short_month, short_day)
            bounds = (start, start and add_time(start, days=1))
        elif year and 1000 <= year <= 2999:
            if month and day:
                start = day_start(year, month, day)
                bounds = (start, start and add_time(start, days=1))
            elif month:
                bounds = (month_start(year, month), month_start(year, month + 1)) if 1 <= month <= 12 else (None, None)
            else:
                bounds = (month_start(year, 1), month_start(year + 1, 1))
        if bounds[0] and bounds[1]:
            found.append((bounds[0], bounds[1], year is not None, match.start(), match.end()))
    for match in compiled(_EAST_AGO).finditer(text):
        digits = match[1]
        if digits.isdigit():
            number = int(digits)
        else:
            number = 0
            for c in digits:
                number = (number or 1) * 10 if c == "十" else number + _EAST_DIGITS[c]
        kind = match[2][-1]
        unit = "day" if kind in "天日일" else "year" if kind in "年년" else "month" if kind in "月월" else "week"
        if match[2] == "개월":
            unit = "month"
        hit = ExpressionReader("", "", now).so_long_ago(0, (number, number), unit)
        found.append((hit.start, hit.end, True, match.start(), match.end()))
    table, pattern = _east_words()
    for match in pattern.finditer(text):
        unit, step = table[match.group()]
        found.append((*unit_near(now, unit, step), True, match.start(), match.end()))
    for match in compiled(_EAST_MONTH).finditer(text):
        month = int(match[1])
        if 1 <= month <= 12 and text[match.end() : match.end() + 1] not in ("日", "号", "號"):
            year = now.year if month <= now.month else now.year - 1
            found.append((month_start(year, month), month_start(year, month + 1), False, match.start(), match.end()))
    found.sort(key=lambda f: (f[3], -f[4]))
    kept: list[tuple[datetime, datetime, bool, int, int]] = []
    for each in found:
        if not kept or each[3] >= kept[-1][4]:
            kept.append(each)
    return kept
