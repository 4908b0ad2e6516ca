"""The thesaurus: what a search term brings along, and what it must not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.search import concepts, thesaurus
from recollect.search.concepts import related_stems
from recollect.search.thesaurus import COMPANION, FORM, GENERAL, INSTANCE, MOST, SAME
from recollect.text import fold, folded_words, stem

LINES = [
    line
    for line in Path(concepts.__file__).with_name("concepts.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
LANGUAGES = ("en", "de", "fr", "es", "uk")


def weight(word: str, other: str, language: str = "en") -> float:
    """How strongly one word brings another along, 0 if not at all."""
    return dict(related_stems(stem(fold(word), language), language)).get(stem(fold(other), language), 0.0)


def vocabulary(language: str) -> set[str]:
    found: set[str] = set()
    for line in LINES:
        code, body = (line[:2], line[3:]) if line[2:3] == ":" else ("en", line)
        if code == language:
            found.update(stem(fold(word), code) for word in re.split(r"[=&>~,\s]+", body) if word)
    return found


@pytest.mark.parametrize(
    ("word", "other", "there", "back"),
    [
        # forms of one word
        ("go", "went", FORM, FORM),
        ("bought", "buy", FORM, FORM),
        ("teach", "taught", FORM, FORM),
        ("child", "children", FORM, FORM),
        ("mouse", "mice", FORM, FORM),
        ("sang", "sung", FORM, FORM),
        ("tooth", "teeth", FORM, FORM),
        # nearly the same
        ("doctor", "physician", SAME, SAME),
        ("movie", "film", SAME, SAME),
        ("colour", "color", SAME, SAME),
        ("organise", "organize", SAME, SAME),
        ("gift", "presents", SAME, SAME),
        ("bought", "purchase", SAME, SAME),
        ("mom", "mother", SAME, SAME),
        ("apartment", "flat", SAME, SAME),
        ("two", "2", SAME, SAME),
        ("allergies", "allergic", SAME, SAME),
        ("postgres", "postgresql", SAME, SAME),
        # general words and their instances
        ("siblings", "sister", INSTANCE, GENERAL),
        ("siblings", "twins", INSTANCE, GENERAL),
        ("pets", "dog", INSTANCE, GENERAL),
        ("instruments", "guitar", INSTANCE, GENERAL),
        ("doctors", "ENT", INSTANCE, GENERAL),
        ("children", "daughter", INSTANCE, GENERAL),
        ("exercise", "yoga", INSTANCE, GENERAL),
        ("exercise", "ran", INSTANCE, 0.25),
        ("hobbies", "pottery", INSTANCE, GENERAL),
        ("vehicle", "car", INSTANCE, COMPANION),
        ("database", "sqlite", INSTANCE, GENERAL),
        ("medication", "ibuprofen", INSTANCE, GENERAL),
        ("furniture", "couch", INSTANCE, GENERAL),
        # topics and their companions, from left to right only
        ("photography", "tripod", COMPANION, 0.0),
        ("gardening", "seedlings", COMPANION, 0.0),
        ("travel", "flew", COMPANION, COMPANION),
        ("career", "promotion", COMPANION, 0.0),
        ("job", "work", COMPANION, COMPANION),
        ("wedding", "bride", COMPANION, 0.0),
        ("hometown", "grew", COMPANION, 0.0),
        # one step over a synonym
        ("kids", "son", SAME * INSTANCE, 0.0),
        ("siblings", "bro", INSTANCE * SAME, 0.0),
        ("pets", "kitten", INSTANCE * SAME, SAME * COMPANION),
        # not at all
        ("bank", "river", 0.0, 0.0),
        ("spring", "jump", 0.0, 0.0),
        ("spring", "framework", 0.0, 0.0),
        ("brother", "sister", 0.0, 0.0),
        ("guitar", "piano", 0.0, 0.0),
        ("dog", "cat", 0.0, 0.0),
        ("march", "protest", 0.0, COMPANION),
        ("present", "current", 0.0, 0.0),
        ("doctor", "phd", 0.0, 0.0),
        ("watch", "clock", 0.0, 0.0),
        ("customer", "tradition", 0.0, 0.0),
        ("activity", "protest", 0.0, 0.0),
        ("fish", "shell", 0.0, 0.0),
        ("people", "personal", 0.0, 0.0),
        ("add", "adhd", 0.0, 0.0),
    ],
)
def test_related(word: str, other: str, there: float, back: float) -> None:
    assert (weight(word, other), weight(other, word)) == pytest.approx((there, back))


@pytest.mark.parametrize(
    ("language", "word", "other", "expected"),
    [
        ("de", "Geschwister", "Schwester", INSTANCE),
        ("de", "gehen", "ging", FORM),
        ("de", "Ärztin", "Arzt", SAME),
        ("de", "Haustiere", "Katze", INSTANCE),
        ("fr", "enfants", "fille", INSTANCE),
        ("fr", "médecin", "docteur", SAME),
        ("fr", "boire", "bu", FORM),
        ("es", "mascotas", "perro", INSTANCE),
        ("es", "madre", "mamá", SAME),
        ("es", "hacer", "hizo", FORM),
        ("uk", "діти", "донька", INSTANCE),
        ("uk", "мама", "мати", SAME),
        ("uk", "тварини", "собака", INSTANCE),
        ("uk", "друг", "друзі", FORM),
        ("de", "sibling", "sister", 0.0),
        ("en", "Geschwister", "Schwester", 0.0),
        ("it", "fratello", "sorella", 0.0),
    ],
)
def test_related_in_other_languages(language: str, word: str, other: str, expected: float) -> None:
    assert weight(word, other, language) == expected


def test_unknown_words_have_no_relatives() -> None:
    assert related_stems("xyzzy") == [] and related_stems("") == [] and related_stems("sister", "cjk") == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_answer_is_ordered_short_and_about_other_words(language: str) -> None:
    for word in vocabulary(language):
        answer = related_stems(word, language)
        others = [other for other, _ in answer]
        weights = [one for _, one in answer]
        assert word not in others and len(set(others)) == len(others) <= MOST
        assert weights == sorted(weights, reverse=True) and all(0 < one <= 1 for one in weights)


@pytest.mark.parametrize("language", LANGUAGES)
def test_forms_and_synonyms_hold_both_ways(language: str) -> None:
    for word in vocabulary(language):
        for other, there in related_stems(word, language):
            if there >= SAME:
                assert dict(related_stems(other, language)).get(word) == there, (word, other)


def test_every_word_of_the_file_is_one_lower_case_word_and_no_line_stands_twice() -> None:
    assert len(set(LINES)) == len(LINES)
    for line in LINES:
        body = line[3:] if line[2:3] == ":" else line
        for word in re.split(r"[=&>~,]", body):
            assert word == word.lower() and len(folded_words(word)) == (1 if word.strip() else 0), line


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("= doctor", "a word without another"),
        ("doctor, physician", "neither"),
        ("sibling >", "neither"),
        ("sibling > half-brother", "not one word"),
        ("= doctor, general practitioner", "not one word"),
        ("= doctor,, gp", "not one word"),
        ("= doctor, Physician", "not one word in lower case"),
        ("= hike, hiking", "one stem"),
        ("run > runs, jog", "one stem"),
        ("& go, went\n& go, gone", "is already a form of 'go'"),
        ("xx: = one, two", "unknown language"),
    ],
)
def test_a_wrong_line_is_named(line: str, reason: str) -> None:
    number = 2 + line.count("\n")
    with pytest.raises(ValueError, match=rf"concepts\.txt, line {number}: .*{reason}"):
        thesaurus.parse_language(f"# a comment\n{line}\n", "en")


def test_importing_reads_nothing() -> None:
    code = "import sys, recollect.search.concepts as c; sys.exit(c._tables.cache_info().currsize or 'Stemmer' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_is_loaded_is_what_is_written() -> None:
    loaded = Path(concepts.__file__).with_name("concepts.json").read_text(encoding="utf-8")
    assert loaded == thesaurus.compile_concepts(), "concepts.txt was changed: python -m recollect.search.thesaurus"
