"""Time expressions, read on Wednesday, 12 July 2023, 15:30 UTC unless a case says otherwise."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.search.dates import Span, asks_when, relative, spans, tells_when

NOW = datetime(2023, 7, 12, 15, 30, tzinfo=timezone.utc)
OPEN_START, OPEN_END = "0001-01-01", "9999-12-31"


def shown(span: Span) -> str:
    start, end = (m.strftime("%Y-%m-%dT%H:%M").removesuffix("T00:00") for m in (span.start, span.end))
    start, end = start.rjust(10, "0"), end.replace("9999-12-31T23:59", "9999-12-31")
    return f"{start}..{end}{'' if span.certain else '?'}"


# A text, and its spans: from..to, to being exclusive; a question mark where a reader would have to guess.
ENGLISH = [
    # ISO and numeric
    ("on 2023-05-07 we met", "2023-05-07..2023-05-08"),
    ("at 2023-05-07T10:20:00Z", "2023-05-07T10:20..2023-05-07T10:20"),
    ("at 2023-05-07T10:20+02:00", "2023-05-07T08:20..2023-05-07T08:21"),
    ("at 2023-05-07 23:30 sharp", "2023-05-07T23:30..2023-05-07T23:31"),
    ("the 2023-05 report", "2023-05-01..2023-06-01"),
    ("on 5/7/2023", "2023-05-07..2023-05-08? 2023-07-05..2023-07-06?"),
    ("on 25/7/2022", "2022-07-25..2022-07-26"),
    ("on 7/25/2022", "2022-07-25..2022-07-26"),
    ("on 07.05.2023", "2023-05-07..2023-05-08"),
    ("on 2023/05/07", "2023-05-07..2023-05-08"),
    ("on 5/5/2023", "2023-05-05..2023-05-06"),
    # days of a month
    ("What happened on 7 May 2023?", "2023-05-07..2023-05-08"),
    ("What happened on 7th of May 2023?", "2023-05-07..2023-05-08"),
    ("on May 7th, 2023 she said", "2023-05-07..2023-05-08"),
    ("on May 7, 2023", "2023-05-07..2023-05-08"),
    ("1:56 pm on 8 May, 2023", "2023-05-08..2023-05-09"),
    ("on 7 May", "2023-05-07..2023-05-08?"),
    ("on December 24", "2022-12-24..2022-12-25?"),
    ("I will leave on December 24", "2023-12-24..2023-12-25?"),
    ("I will leave on 3 March", "2024-03-03..2024-03-04?"),
    ("Monday, 8 May 2023", "2023-05-08..2023-05-09"),
    ("on Jan. 5, 2022", "2022-01-05..2022-01-06"),
    ("the 4th of July", "2023-07-04..2023-07-05?"),
    ("on 29 February", "2020-02-29..2020-03-01?"),
    ("born on 7 May 1850", "1850-05-07..1850-05-08"),
    # months and years
    ("in May 2023", "2023-05-01..2023-06-01"),
    ("in may 2023", "2023-05-01..2023-06-01"),
    ("What did I do in May?", "2023-05-01..2023-06-01?"),
    ("what did i do in may", "2023-05-01..2023-06-01?"),
    ("in July", "2023-07-01..2023-08-01?"),
    ("in October", "2022-10-01..2022-11-01?"),
    ("Where will we go in October?", "2023-10-01..2023-11-01?"),
    ("Where will we go in May?", "2024-05-01..2024-06-01?"),
    ("last May", "2023-05-01..2023-06-01"),
    ("last July", "2022-07-01..2022-08-01"),
    ("next May", "2024-05-01..2024-06-01"),
    ("this September", "2023-09-01..2023-10-01"),
    ("in 2021", "2021-01-01..2022-01-01"),
    ("2023", "2023-01-01..2024-01-01"),
    ("in 2000 we moved", "2000-01-01..2001-01-01"),
    ("the 2019 trip", "2019-01-01..2020-01-01"),
    ("Where was I in 2019?", "2019-01-01..2020-01-01"),
    ("the year 1999", "1999-01-01..2000-01-01"),
    # this, last, next
    ("last week", "2023-07-03..2023-07-10"),
    ("this week", "2023-07-10..2023-07-17"),
    ("next week", "2023-07-17..2023-07-24"),
    ("last month", "2023-06-01..2023-07-01"),
    ("this month", "2023-07-01..2023-08-01"),
    ("next month", "2023-08-01..2023-09-01"),
    ("last year", "2022-01-01..2023-01-01"),
    ("this year", "2023-01-01..2024-01-01"),
    ("next year", "2024-01-01..2025-01-01"),
    ("last weekend", "2023-07-08..2023-07-10"),
    ("this weekend", "2023-07-15..2023-07-17"),
    ("next weekend", "2023-07-22..2023-07-24"),
    ("last summer", "2022-06-01..2022-09-01"),
    ("this summer", "2023-06-01..2023-09-01"),
    ("next summer", "2024-06-01..2024-09-01"),
    ("last winter", "2022-12-01..2023-03-01"),
    ("last spring", "2023-03-01..2023-06-01"),
    ("last fall", "2022-09-01..2022-12-01"),
    ("this autumn", "2023-09-01..2023-12-01"),
    ("in the summer of 2022", "2022-06-01..2022-09-01"),
    ("winter 2021", "2021-12-01..2022-03-01"),
    ("in the fall", "2022-09-01..2022-12-01?"),
    ("last quarter", "2023-04-01..2023-07-01"),
    ("earlier this month", "2023-07-01..2023-07-13"),
    ("later this week", "2023-07-12..2023-07-17"),
    # weekdays
    ("last Tuesday", "2023-07-11..2023-07-12"),
    ("last Wednesday", "2023-07-05..2023-07-06"),
    ("this Tuesday", "2023-07-11..2023-07-12"),
    ("next Tuesday", "2023-07-18..2023-07-19"),
    ("on Tuesday", "2023-07-11..2023-07-12?"),
    ("on friday", "2023-07-07..2023-07-08?"),
    ("I will call on Friday", "2023-07-14..2023-07-15?"),
    ("Tuesday evening", "2023-07-11..2023-07-12?"),
    # days near now
    ("yesterday", "2023-07-11..2023-07-12"),
    ("What did I say yesterday evening?", "2023-07-11..2023-07-12"),
    ("the day before yesterday", "2023-07-10..2023-07-11"),
    ("the day after tomorrow", "2023-07-14..2023-07-15"),
    ("today", "2023-07-12..2023-07-13"),
    ("tonight", "2023-07-12..2023-07-13"),
    ("this morning", "2023-07-12..2023-07-13"),
    ("last night", "2023-07-11T12:00..2023-07-12T12:00"),
    ("tomorrow", "2023-07-13..2023-07-14"),
    # ago
    ("3 days ago", "2023-07-09..2023-07-10"),
    ("three days ago", "2023-07-09..2023-07-10"),
    ("twenty-one days ago", "2023-06-21..2023-06-22"),
    ("a week ago", "2023-07-02..2023-07-09"),
    ("two weeks ago", "2023-06-25..2023-07-02"),
    ("a couple of days ago", "2023-07-09..2023-07-11?"),
    ("a few days ago", "2023-07-07..2023-07-11?"),
    ("two months ago", "2023-05-01..2023-06-01"),
    ("5 years ago", "2018-01-01..2019-01-01"),
    ("a year ago", "2022-01-01..2023-01-01"),
    ("an hour ago", "2023-07-12T14:00..2023-07-12T15:00"),
    ("in the last 3 days", "2023-07-09..2023-07-13"),
    ("over the past two weeks", "2023-06-28..2023-07-13"),
    ("in the past 6 months", "2023-01-12..2023-07-13"),
    ("in the past month", "2023-06-12..2023-07-13"),
    ("in the last week", "2023-07-05..2023-07-13"),
    ("in the past few days", "2023-07-07..2023-07-13?"),
    ("the next 2 weeks", "2023-07-12..2023-07-27"),
    ("in two weeks", "2023-07-26..2023-07-27?"),
    ("three days from now", "2023-07-15..2023-07-16"),
    ("the other day", "2023-06-28..2023-07-12?"),
    # parts
    ("the first weekend of August 2023", "2023-08-05..2023-08-07"),
    ("the second Tuesday of June 2023", "2023-06-13..2023-06-14"),
    ("the last Friday of June 2023", "2023-06-30..2023-07-01"),
    ("the last week of May 2023", "2023-05-25..2023-06-01"),
    ("the second half of 2022", "2022-07-01..2023-01-01"),
    ("mid-May", "2023-05-11..2023-05-21?"),
    ("in early June 2022", "2022-06-01..2022-06-11"),
    ("late June 2022", "2022-06-21..2022-07-01"),
    ("the end of 2022", "2022-10-01..2023-01-01"),
    ("at the end of last year", "2022-10-01..2023-01-01"),
    ("the end of May", "2023-05-21..2023-06-01?"),
    ("late 2022", "2022-09-01..2023-01-01"),
    ("the beginning of May 2023", "2023-05-01..2023-05-11"),
    ("Q2 2023", "2023-04-01..2023-07-01"),
    ("the third quarter of 2022", "2022-07-01..2022-10-01"),
    ("the week of 10 July 2023", "2023-07-10..2023-07-17"),
    ("the week of July 13, 2023", "2023-07-10..2023-07-17"),
    ("the 90s", "1990-01-01..2000-01-01"),
    ("in the 1980s", "1980-01-01..1990-01-01"),
    ("in the early 2010s", "2010-01-01..2013-05-01"),
    # ranges
    ("between 3 and 9 May 2023", "2023-05-03..2023-05-10"),
    ("3-9 May 2023", "2023-05-03..2023-05-10"),
    ("May 3-9, 2023", "2023-05-03..2023-05-10"),
    ("from June to August 2023", "2023-06-01..2023-09-01"),
    ("June-August 2022", "2022-06-01..2022-09-01"),
    ("from November to February 2023", "2022-11-01..2023-03-01"),
    ("from 3 May to 9 June 2023", "2023-05-03..2023-06-10"),
    ("from 2019 to 2021", "2019-01-01..2022-01-01"),
    ("between May and July 2022", "2022-05-01..2022-08-01"),
    ("between 2023-05-01 and 2023-05-04", "2023-05-01..2023-05-05"),
    # open
    ("before May 2023", f"{OPEN_START}..2023-05-01"),
    ("after May 2023", f"2023-06-01..{OPEN_END}"),
    ("since May 2023", f"2023-05-01..{OPEN_END}"),
    ("since 2020", f"2020-01-01..{OPEN_END}"),
    ("until 7 May 2023", f"{OPEN_START}..2023-05-08"),
    ("since last week", f"2023-07-03..{OPEN_END}"),
    # beside a date
    ("the day before 7 May 2023", "2023-05-06..2023-05-07"),
    ("two days after 7 May 2023", "2023-05-09..2023-05-10"),
    ("the week before 9 June 2023", "2023-06-02..2023-06-09"),
    ("the Friday before 22 May 2023", "2023-05-19..2023-05-20"),
    ("the Sunday after 25 May 2023", "2023-05-28..2023-05-29"),
    ("two weeks before Christmas 2022", "2022-12-10..2022-12-11"),
    # holidays
    ("at Christmas 2022", "2022-12-24..2022-12-27"),
    ("at Christmas", "2022-12-24..2022-12-27?"),
    ("last Christmas", "2022-12-24..2022-12-27"),
    ("What will we do at Christmas?", "2023-12-24..2023-12-27?"),
    ("on Christmas Eve 2021", "2021-12-24..2021-12-25"),
    ("New Year's Eve 2022", "2022-12-31..2023-01-01"),
    ("on New Year's", "2022-12-31..2023-01-02?"),
    ("Halloween", "2022-10-31..2022-11-01?"),
    ("on Valentine's Day", "2023-02-14..2023-02-15?"),
    ("on Valentine’s Day 2020", "2020-02-14..2020-02-15"),
    ("Thanksgiving 2022", "2022-11-24..2022-11-25"),
    ("Easter 2023", "2023-04-09..2023-04-10"),
    # several
    ("yesterday and last week", "2023-07-11..2023-07-12 2023-07-03..2023-07-10"),
    ("In 2019 or in May 2021?", "2019-01-01..2020-01-01 2021-05-01..2021-06-01"),
]
OTHERS = [
    ("Was habe ich gestern gesagt?", "2023-07-11..2023-07-12"),
    ("am 7. Mai 2023", "2023-05-07..2023-05-08"),
    ("im Mai", "2023-05-01..2023-06-01?"),
    ("letzte Woche", "2023-07-03..2023-07-10"),
    ("im vergangenen Jahr", "2022-01-01..2023-01-01"),
    ("vor drei Tagen", "2023-07-09..2023-07-10"),
    ("im März 2022", "2022-03-01..2022-04-01"),
    ("le 7 mai 2023", "2023-05-07..2023-05-08"),
    ("Qu'est-ce que j'ai mangé hier ?", "2023-07-11..2023-07-12"),
    ("la semaine dernière", "2023-07-03..2023-07-10"),
    ("l'année dernière", "2022-01-01..2023-01-01"),
    ("il y a trois jours", "2023-07-09..2023-07-10"),
    ("aujourd'hui", "2023-07-12..2023-07-13"),
    ("el 7 de mayo de 2023", "2023-05-07..2023-05-08"),
    ("ayer", "2023-07-11..2023-07-12"),
    ("la semana pasada", "2023-07-03..2023-07-10"),
    ("el año pasado", "2022-01-01..2023-01-01"),
    ("hace dos días", "2023-07-10..2023-07-11"),
    ("ieri", "2023-07-11..2023-07-12"),
    ("la settimana scorsa", "2023-07-03..2023-07-10"),
    ("tre giorni fa", "2023-07-09..2023-07-10"),
    ("ontem", "2023-07-11..2023-07-12"),
    ("no ano passado", "2022-01-01..2023-01-01"),
    ("há três dias", "2023-07-09..2023-07-10"),
    ("na segunda-feira", "2023-07-10..2023-07-11?"),
    ("gisteren", "2023-07-11..2023-07-12"),
    ("vorige week", "2023-07-03..2023-07-10"),
    ("drie dagen geleden", "2023-07-09..2023-07-10"),
    ("wczoraj", "2023-07-11..2023-07-12"),
    ("w zeszłym roku", "2022-01-01..2023-01-01"),
    ("trzy dni temu", "2023-07-09..2023-07-10"),
    ("7 maja 2023", "2023-05-07..2023-05-08"),
    ("вчора", "2023-07-11..2023-07-12"),
    ("минулого тижня", "2023-07-03..2023-07-10"),
    ("три дні тому", "2023-07-09..2023-07-10"),
    ("7 травня 2023 року", "2023-05-07..2023-05-08"),
    ("у травні", "2023-05-01..2023-06-01?"),
    ("у п'ятницю", "2023-07-07..2023-07-08?"),
    ("вчера", "2023-07-11..2023-07-12"),
    ("в прошлом году", "2022-01-01..2023-01-01"),
    ("два дня назад", "2023-07-10..2023-07-11"),
    ("7 мая 2023 года", "2023-05-07..2023-05-08"),
    ("2023年5月7日", "2023-05-07..2023-05-08"),
    ("我2023年5月去了北京", "2023-05-01..2023-06-01"),
    ("5月7日", "2023-05-07..2023-05-08?"),
    ("昨天我做了什么", "2023-07-11..2023-07-12"),
    ("上周", "2023-07-03..2023-07-10"),
    ("去年", "2022-01-01..2023-01-01"),
    ("三天前", "2023-07-09..2023-07-10"),
    ("昨日", "2023-07-11..2023-07-12"),
    ("先週", "2023-07-03..2023-07-10"),
    ("2か月前", "2023-05-01..2023-06-01"),
    ("어제", "2023-07-11..2023-07-12"),
    ("지난주", "2023-07-03..2023-07-10"),
]
NOTHING = [
    "",
    "What is my favourite colour?",
    "I may go there",
    "may I ask you something?",
    "May I ask you something?",
    "It may. May we go?",
    "we march forward",
    "They march every time",
    "March forward, soldiers",
    "wait a second",
    "prices fall and rise",
    "Do not fall in love",
    "spring into action",
    "2000 people came",
    "it cost $2000",
    "2020 employees work here",
    "I paid 2000 for it",
    "room 2020",
    "version 2019.1",
    "30 February 2023",
    "2023-02-30",
    "2023-13-01",
    "32 May",
    "year 0",
    "the sun is out and the cat sat down",
    "mon ami",
    "Ich bin hier",
    "Mars is a planet",
    "the day before my birthday party",
    "two weeks after the wedding",
    "she is in her 30s",
    "call 1234567890",
    "every day",
    "guten Morgen",
    "Marco likes tea",
    "all 3 may be late",
    "a new idea",
    "between us",
    "before lunch",
    "3.1.12 is out",
    "I have 24 hours",
    "What did I read recently?",
    "She has been tired lately",
]


@pytest.mark.parametrize(("text", "expected"), ENGLISH + OTHERS)
def test_spans(text: str, expected: str) -> None:
    assert " ".join(map(shown, spans(text, NOW))) == expected


@pytest.mark.parametrize("text", NOTHING)
def test_no_time_is_named(text: str) -> None:
    assert spans(text, NOW) == []


def test_the_words_of_a_span_are_the_words_of_the_text() -> None:
    found = spans("What did Anna say on May 7th, 2023 about the day before yesterday?", NOW)
    assert [span.text for span in found] == ["May 7th, 2023", "the day before yesterday"]


@pytest.mark.parametrize(
    "text",
    [
        "We met on May 7th, 2023.",
        "“Yesterday” and on Valentine’s Day 2020",
        "El ano\u0303 pasado, e\u0301 ieri",  # letters and accents apart
        "我昨天去了北京，2023年5月也去过",
        "İstanbul in May 2023",
    ],
)
def test_a_span_can_be_cut_out_of_the_text(text: str) -> None:
    found = spans(text, NOW)
    assert found
    assert [text[span.at : span.at + len(span.text)] for span in found] == [span.text for span in found]


def test_a_time_far_into_a_long_text_is_read_with_what_stands_around_it() -> None:
    around = "she told me all about her garden and the cats, " * 12
    text = f"{around} since the beginning of May 2022, {around} between the 3rd and the 9th of May 2023 {around} today"
    found = spans(text, NOW)
    assert [span.text for span in found] == [
        "since the beginning of May 2022",
        "between the 3rd and the 9th of May 2023",
        "today",
    ]


def test_spans_are_aware_and_the_reference_may_have_any_zone() -> None:
    late = datetime(2023, 7, 12, 23, 30, tzinfo=timezone(timedelta(hours=-5)))  # the 13th in UTC
    (span,) = spans("today", late)
    assert shown(span) == "2023-07-13..2023-07-14"
    assert span.start.utcoffset() == timedelta(0) and span.end.utcoffset() == timedelta(0)
    assert shown(spans("today", datetime(2023, 7, 12))[0]) == "2023-07-12..2023-07-13"


ASKS = """When did I move to Kyiv?|Since when do I run?|What date is the exam?|what day was it|In which month did she call?
What year did we meet?|How long ago did we meet?|What time is it?|How many days passed?|when is my birthday
Wann habe ich Geburtstag?|Коли я народився?|Когда мы встретились?|Quand est-ce que je pars ?|¿Cuándo viajé?|Quando sono nato?
Wanneer vertrek ik?|Kiedy wyjeżdżam?|いつ行きましたか|何時ですか|什么时候去的|언제 갔어?|Do you know when my flight is?""".replace(
    "\n", "|"
).split("|")
ASKS_NOT = """What is my name?|Who called me?|I like whenever|Where do I live?|What do I think of time?|Whenever it rains I sleep
what time zone am I in|Wo wohne ich?|Де я живу?|the wanderer""".replace("\n", "|").split("|")
TELLS = """I saw her yesterday|last week we ran|in 2019 I moved|next month I leave|on Monday I swim|at 5 pm|7 May|two days ago
for three years|tomorrow|at 17:30|every Friday|recently|since 2020|it took two weeks after all|Ich war gestern da|вчора|去年
this morning|3 o'clock|over the last few months|the first weekend of August|in the summer of 2020|for a couple of days""".replace(
    "\n", "|"
).split("|")
TELLS_NOT = """I like tea|My sister is a doctor|may I ask|she has 3 cats|2000 people came|the second one|Ich mag Tee
version 3.11 of Python|I fall asleep easily""".replace("\n", "|").split("|")


@pytest.mark.parametrize(("texts", "expected"), [(ASKS, True), (ASKS_NOT, False)], ids=["asks", "does not"])
def test_asks_when(texts: list[str], expected: bool) -> None:
    assert [text for text in texts if asks_when(text) is not expected] == []


@pytest.mark.parametrize(("texts", "expected"), [(TELLS, True), (TELLS_NOT, False)], ids=["tells", "does not"])
def test_tells_when(texts: list[str], expected: bool) -> None:
    assert [text for text in texts if tells_when(text) is not expected] == []


@pytest.mark.parametrize(
    ("text", "days", "event"),
    [
        ("the day before my birthday party", -1, "my birthday party"),
        ("What did I do the day before my birthday party?", -1, "my birthday party"),
        ("two weeks after the wedding", 14, "the wedding"),
        ("What happened two weeks after the wedding in Rome?", 14, "the wedding in Rome"),
        ("the week before the exam", -7, "the exam"),
        ("the week after I moved to Berlin", 7, "I moved to Berlin"),
        ("3 days after surgery", 3, "surgery"),
        ("a month before the launch, what was said?", -30, "the launch"),
        ("a couple of days before the trip", -2, "the trip"),
        ("a few days after the trip", 3, "the trip"),
        ("the night before the race", -1, "the race"),
        ("a year prior to our meeting", -365, "our meeting"),
    ],
)
def test_relative_to_an_event(text: str, days: int, event: str) -> None:
    assert relative(text) == (timedelta(days=days), event)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the day before yesterday",
        "the day before 7 May 2023",
        "two weeks after Christmas",
        "a week before last Tuesday",
        "What did I do before the party?",
        "the day after",
        "the week before that?",
    ],
)
def test_relative_to_nothing_or_to_a_date(text: str) -> None:
    assert relative(text) is None


HOSTILE = [
    "99999999999 years ago",
    "in the last 99999999999999999999 months",
    "in 999999999 days",
    "9" * 100_000,
    "1/1/1/" * 20_000,
    "the day before " * 5_000 + "7 May 2023",
    "the " * 30_000,
    "between " * 10_000,
    "last " * 20_000 + "week",
    "May " * 20_000,
    "from May to " * 8_000,
    "2023-" * 20_000,
    "before after since " * 4_000 + "2023",
    "the week of " * 8_000 + "May 2023",
    "mid-" * 20_000 + "May",
    "0000-00-00 0/0/0000 00.00.0000 year 0000",
    "9999-12-31 and the year after 9999-12-31 and 31/12/9999",
    "0001-01-01T00:00:00+14:00 9999-12-31T23:59:59-14:00",
    "10000 years after 7 May 2999 and 10000 years before 7 May 1000",
    "٢٠٢٣-٠٥-٠٧ ２０２３年５月７日 99年99月99日 9999999年前",
    "一" * 50_000 + "天前",
    "a few " * 20_000 + "centuries ago",
    "\ud800 7 May 2023",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.timeout(120)  # it takes milliseconds; what grows with the square of a length takes much longer
def test_hostile_text_is_read_in_little_time(text: str) -> None:
    for now in (NOW, datetime.min.replace(tzinfo=timezone.utc), datetime.max.replace(tzinfo=timezone.utc)):
        assert all(span.start <= span.end for span in spans(text, now))
    tells_when(text), asks_when(text), relative(text)


VOCABULARY = """the day week month year before after since between and from to last next this first second of in on May
March 7 9 2023 7th , - . / 31 30 February 29 ago few couple a two 12 yesterday Tuesday Christmas New Year 's Eve early mid
late end 90s Q3 summer fall weekend 5/7/2023 2023-05-07 99999999999 0 until by past vor il y a hace fa letzte semaine
dernière 昨天 3天前 10月""".split()


@given(st.lists(st.sampled_from(VOCABULARY), max_size=14).map(" ".join), st.datetimes(timezones=st.just(timezone.utc)))
@example("New Year 's", datetime(1, 1, 1, tzinfo=timezone.utc))
def test_any_words_at_any_time_are_read(text: str, now: datetime) -> None:
    for span in spans(text, now):
        assert span.start < span.end
        assert span.start.tzinfo is timezone.utc
    tells_when(text)
    relative(text)


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    for span in spans(text, NOW):
        assert span.start < span.end
        assert text[span.at : span.at + len(span.text)] == span.text
    tells_when(text)
    asks_when(text)
    relative(text)
