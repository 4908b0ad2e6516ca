"""Marking what matched: in any script, at the exact place, whatever the text is written like."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.search.highlight import excerpt, match_spans


def marked(text: str, query: str, code: str = "") -> list[str]:
    return [text[begin:end] for begin, end in match_spans(text, query, code)]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("She likes green tea; Tea, TEAS and teapots.", "tea", ["tea", "Tea", "TEAS"]),
        ("He was running to the shop", "Where did he run?", ["running"]),
        ("Her sister lives in Kyiv", "siblings", ["sister"]),
        ("Went to the doctor", "physician", ["doctor"]),
        ("Anna’s birthday is in May", "Anna birthday", ["Anna’s", "birthday"]),
        ("Uses gpt-4 and Node.js, not C++", "gpt", ["gpt"]),
        ("Uses gpt-4 and Node.js, not C++", "node.js c++", ["Node.js", "C++"]),
        ("It cost 1,200 euros", "1200", ["1,200"]),
        ("a `quoted` word", "quoted", ["quoted"]),
        ("Він п'є каву щоранку у Львові", "Львів кава", ["каву", "Львові"]),
        ("Она любит чай с лимоном", "лимон", ["лимоном"]),
        ("Ein Café in München", "cafe munchen", ["Café", "München"]),
        ("Il travaille à l’hôpital", "hopital", ["hôpital"]),
        ("東京都に住んでいます", "東京", ["東京"]),
        ("毎朝、緑茶を飲みます", "緑茶", ["緑茶"]),
        ("緑茶を飲む", "茶", ["茶"]),
        ("저는 서울에 살아요", "서울", ["서울"]),
        ("ฉันชอบดื่มกาแฟ", "กาแฟ", ["กาแฟ"]),
        ("يعيش في القاهرة", "القاهرة", ["القاهرة"]),
        ("Μένει στην Αθήνα", "αθηνα", ["Αθήνα"]),
        ("वह दिल्ली में रहता है", "दिल्ली", ["दिल्ली"]),
        ("הוא גר בירושלים", "בירושלים", ["בירושלים"]),
        ("Nothing of that kind", "zebra", []),
        ("", "tea", []),
        ("tea", "", []),
    ],
)
def test_what_the_query_has_is_marked(text: str, query: str, expected: list[str]) -> None:
    assert marked(text, query) == expected


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("un cafe\u0301 noir", "café", ["cafe\u0301"]),  # an accent of its own
        ("soft\u00adware and hard\u200bware", "software hardware", ["soft\u00adware", "hard\u200bware"]),
        ("ｔｅａ at noon", "tea", ["ｔｅａ"]),  # wide letters
        ("the ﬁle is lost", "file", ["ﬁle"]),  # a ligature is one character
        ("ｶﾞｲﾄﾞを読む", "ガイド", ["ｶﾞｲﾄﾞ"]),
        ("한국 여행", "한국", ["한국"]),
        ("  two\n\tlines of\u00a0tea", "tea", ["tea"]),
        ("Straße und STRASSE", "strasse", ["Straße", "STRASSE"]),
    ],
)
def test_positions_are_those_of_the_text_as_it_is(text: str, query: str, expected: list[str]) -> None:
    assert marked(text, query) == expected


def test_question_words_and_stop_words_are_not_marked() -> None:
    assert marked("What is the name of the dog", "what is the name of my dog") == ["name", "dog"]
    assert marked("We saw The Who live", "The Who") == ["Who"]


def test_the_language_may_be_given() -> None:
    assert marked("Katzen", "Katze", "de") == ["Katzen"]


_TEXTS = st.text(
    st.sampled_from("aAbtе́їТ'’`-.,+# \n\u00ad\u200d\u0301茶緑가ก\u0e34ﬁｶﾞ12ß🇺🇦🎉´") | st.characters(), max_size=60
)


@given(_TEXTS, _TEXTS)
@example("´tea´", "tea")
@example("ŉ ǆ ﷺ ㍿", "x")
def test_spans_are_in_order_and_within_the_text(text: str, query: str) -> None:
    for spans in (match_spans(text, query), match_spans(text, text), match_spans(text, f"{query} {text[5:20]}")):
        borders = [place for span in spans for place in span]
        assert borders == sorted(borders)
        assert all(begin < end for begin, end in spans)
        assert not borders or (borders[0] >= 0 and borders[-1] <= len(text))
        assert all(first[1] < second[0] for first, second in pairwise(spans))


# excerpts


def test_a_long_text_is_cut_around_the_first_match() -> None:
    text = "many words " * 30 + "about tea and biscuits " + "and more of them " * 30
    shown, spans = excerpt(text, match_spans(text, "tea biscuits"), 80)
    assert len(shown) <= 80
    assert (shown[0], shown[-1]) == ("…", "…")
    assert [shown[begin:end] for begin, end in spans] == ["tea", "biscuits"]
    assert shown[1:].startswith(("many ", "words "))


def test_a_short_text_stays_and_a_text_without_a_match_begins_at_its_beginning() -> None:
    assert excerpt("tea", [(0, 3)], 80) == ("tea", [(0, 3)])
    shown, spans = excerpt("many words " * 30, [], 40)
    assert shown.startswith("many words") and shown.endswith("…") and spans == []


@given(st.text(st.sampled_from("tea 茶\n"), max_size=300), st.integers(3, 80))
@example("a 茶ea\nt茶\nt茶t 茶e", 14)  # cut at the blank before the first match, which left nothing of it
@example("  茶\n\n茶\ne茶aa\n\n茶e茶", 13)
@example("t\n 茶eet茶ee茶茶\naet ", 16)
@example("many words tea-" + "x" * 100, 20)
def test_an_excerpt_keeps_to_its_size_and_marks_the_same(text: str, most: int) -> None:
    found = match_spans(text, "tea 茶")
    shown, spans = excerpt(text, found, most)
    assert len(shown) <= most
    assert all(0 <= begin < end <= len(shown) for begin, end in spans)
    assert bool(spans) == bool(found)
    for (begin, end), (first, _) in zip(spans[:1], found, strict=False):
        assert text.startswith(shown[begin:end], first), "the first match is shown, whatever else is"
    assert all(shown[begin:end] in text for begin, end in spans)
