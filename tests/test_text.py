"""Words, terms and folding, in any script."""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.text import detect_language, fold, folded_words, join_compounds, romanize, stem, stems, terms
from tests.volume import volume


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("  Straße\t\nCafé  ", "strasse cafe"),
        ("İstanbul", "istanbul"),
        ("“Don’t”", '"don\'t"'),
        ("Ελλάς", "ελλασ"),
        ("Київ, йогурт", "київ, йогурт"),
        ("ёлка", "елка"),
        ("ＡＢＣ１２", "abc12"),
        ("zero\u200bwidth \u202ertl\u202c", "zerowidth rtl"),
        ("Łódź", "lodz"),
        ("يُحِبُّ", "يحب"),
        ("हिन्दी", "हिन्दी"),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("an e-mail, don't", "an email, dont"),
        ("anna's mother-in-law's", "anna motherinlaw"),
        ("2026-02-12 and utf-8", "2026-02-12 and utf8"),
        ("-a- 'b' c--d e_f-g", "-a- 'b' c--d e_fg"),
    ],
)
def test_compounds_are_joined(text: str, expected: str) -> None:
    assert join_compounds(text) == expected


@pytest.mark.parametrize("word", ["x", "1", "é", "x'", "x-"])
def test_a_word_as_long_as_a_book_is_joined_at_once(word: str) -> None:
    join_compounds(f"{word * 300_000} a-b")  # step by step from every letter it would take hours


@given(st.text(max_size=60))
@settings(max_examples=volume(40, 200), deadline=None)
def test_fold_is_stable_and_independent_of_the_unicode_form(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don’t use C++, C# or F#!", ["don't", "use", "c++", "c#", "or", "f#"]),
        (".NET and ASP.NET, node.js", [".net", "and", "asp.net", "node.js"]),
        ("v2.1.3, 3.11 and utf-8 on pg18", ["v2.1.3", "3.11", "and", "utf-8", "on", "pg18"]),
        ("П’ять котів", ["п'ять", "котів"]),
        ("l'hôpital d’Anna", ["l", "hopital", "d", "anna"]),
        ("O'Brien", ["o'brien"]),
        ("東京都", ["東京", "京都"]),
        ("茶", ["茶"]),
        ("서울에 살아요", ["서울", "울에", "살아", "아요"]),
        ("PCを2台", ["pc", "を", "2", "台"]),
        ("nice 👍🏽🇺🇦!", ["nice", "👍🏽", "🇺🇦"]),
        ("snake_case part-time end.Next", ["snake", "case", "part", "time", "end", "next"]),
        ("the U.S. at 6 p.m.", ["the", "us", "at", "6", "pm"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("", []),
        ("... — !?", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert folded_words(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user likes running", "I like to run"),
        ("Живе у Львові", "живу у Львові"),
        ("живёт в Москве", "живу в Москве"),
        ("trabaja en un banco", "trabajo en bancos"),
        ("Il aime l'hôpital", "J’aime cet HÔPITAL"),
    ],
)
def test_inflected_forms_share_a_term(one: str, other: str) -> None:
    assert set(terms(one)) & set(terms(other))


@pytest.mark.parametrize(
    ("text", "negation"),
    [
        ("does not eat meat", "not"),
        ("never eats meat", "never"),
        ("no meat", "no"),
        ("не їсть м'ясо", "не"),
        ("ні, не хоче", "ні"),
        ("не ест мясо", "не"),
        ("isst kein Fleisch", "kein"),
        ("isst nicht", "nicht"),
        ("ne mange pas", "pas"),
        ("no come carne", "no"),
        ("nunca come carne", "nunc"),
        ("não come carne", "nao"),
        ("non mangia carne", "non"),
        ("nie je mięsa", "nie"),
        ("eet geen vlees", "geen"),
    ],
)
def test_negations_are_never_dropped(text: str, negation: str) -> None:
    assert any(term.startswith(negation) for term in terms(text)), terms(text)


def test_stop_words_alone_are_kept() -> None:
    assert terms("to be in it") != ()
    assert terms("") == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("the user likes tea", "en"),
        ("der Benutzer mag Tee", "de"),
        ("il aime le vin", "fr"),
        ("le gusta el vino", "es"),
        ("gosta de vinho e não bebe café", "pt"),
        ("non mangia la carne", "it"),
        ("lubi kawę i herbatę", "pl"),
        ("любить каву і чай", "uk"),
        ("любит кофе и чай", "ru"),
        ("zyxw", "en"),
    ],
)
def test_language(text: str, code: str) -> None:
    assert detect_language(text.lower().split()) == code


def test_romanize() -> None:
    assert romanize("Харків") == "kharkiv"
    assert romanize("Αθήνα") == "athina"
    assert romanize("Łódź") == "lodz"


def test_stem_of_a_foreign_word_in_an_english_text() -> None:
    assert stem("києві", "en") == stem("києві", "uk")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("hôpital", "Il travaille à l'hôpital"),
        ("kawa", "Lubi kawę i herbatę"),
        ("коти", "Має п'ять котів"),
        ("running", "likes to run"),
    ],
)
def test_S6_a_single_word_is_found_whatever_its_language(query: str, text: str) -> None:
    assert stems(fold(query)) & set(terms(text))


@given(st.text(max_size=80))
@settings(max_examples=volume(40, 200), deadline=None)
def test_words_do_not_depend_on_case_or_unicode_form(text: str) -> None:
    composed = unicodedata.normalize("NFC", text)
    assert folded_words(composed) == folded_words(unicodedata.normalize("NFD", text))
    if text.isascii():
        assert folded_words(text.upper()) == folded_words(text.lower())


def test_importing_is_cheap() -> None:
    """The stemmers, the fuzzy matcher and the transliteration tables wait until they are needed."""
    code = (
        "import sys, types; sys.modules['recollect'] = types.ModuleType('recollect');"
        "sys.modules['recollect'].__path__ = [sys.argv[1]];"
        "import recollect.text, recollect.policy.duplicates.comparison, recollect.policy.code, recollect.policy.secrets;"
        "print([m for m in ('Stemmer', 'rapidfuzz', 'anyascii', 'numpy') if m in sys.modules])"
    )
    import recollect

    done = subprocess.run([sys.executable, "-c", code, recollect.__path__[0]], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
