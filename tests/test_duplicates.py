"""The same fact said differently is found; another fact is kept apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.policy.duplicates import Relation, Statement, relation, signature
from recollect.text import words

DATA = Path(__file__).parent / "data" / "duplicates.jsonl"


@dataclass(frozen=True)
class Pair:
    a: str
    b: str
    key_a: str | None
    key_b: str | None
    same: bool
    lang: str
    why: str
    set: str = ""

    @property
    def statements(self) -> tuple[Statement, Statement]:
        return Statement.of(self.a, self.key_a), Statement.of(self.b, self.key_b)

    @property
    def found(self) -> Relation:
        return relation(*self.statements)


PAIRS = [Pair(**json.loads(line)) for line in DATA.read_text(encoding="utf-8").splitlines()]
SAME = [pair for pair in PAIRS if pair.same]
DIFFERENT = [pair for pair in PAIRS if not pair.same]
PARTS = [pair.a for pair in PAIRS] + [pair.b for pair in PAIRS]


def test_the_data_set_is_broad() -> None:
    assert len(PAIRS) >= 420
    assert 0.4 <= len(SAME) / len(PAIRS) <= 0.55
    assert len({pair.lang for pair in PAIRS}) >= 8
    assert len({(pair.a, pair.b, pair.key_a, pair.key_b) for pair in PAIRS}) == len(PAIRS)


def test_P3_different_facts_are_kept_apart() -> None:
    wrong = [pair for pair in DIFFERENT if pair.found is Relation.SAME]
    assert len(wrong) <= 0.01 * len(DIFFERENT), wrong


def test_P3_the_same_fact_is_found() -> None:
    missed = [pair for pair in SAME if pair.found is not Relation.SAME]
    assert len(missed) <= 0.1 * len(SAME), missed


@pytest.mark.parametrize("value", ["Kyiv", "Київ", "kyiv.", "Kiev", "Киев", "KYIV"])
def test_P3_kyiv_is_one_city(value: str) -> None:
    assert relation(Statement.of(value, "location"), Statement.of("Kyiv", "location")) is Relation.SAME
    assert relation(Statement.of(f"Lives in {value}"), Statement.of("lives in Київ")) is Relation.SAME
    assert relation(Statement.of(f"Location: {value}"), Statement.of("Київ", "location")) is Relation.SAME


def test_P3_the_order_of_the_two_does_not_matter() -> None:
    for pair in PAIRS:
        a, b = pair.statements
        assert (relation(a, b) is Relation.SAME) is (relation(b, a) is Relation.SAME), pair


def test_P2_near_is_the_same_topic_and_different_is_another() -> None:
    def of(a: str, b: str) -> Relation:
        return relation(Statement.of(a), Statement.of(b))

    assert of("Likes tea", "Likes tea and coffee") is Relation.NEAR
    assert of("Is vegetarian", "Is not vegetarian") is Relation.NEAR
    assert of("Uses Python 3.11 at work", "Uses Python 3.12 at work") is Relation.NEAR
    assert of("Likes tea", "Works at Google") is Relation.DIFFERENT
    assert of("Likes tea with lemon in the morning", "Likes long walks") is Relation.DIFFERENT


def test_P2_two_keys_are_two_facts() -> None:
    assert relation(Statement.of("Berlin", "location"), Statement.of("Berlin", "birthplace")) is Relation.NEAR
    assert relation(Statement.of("Berlin", "location"), Statement.of("tea", "drink")) is Relation.DIFFERENT


def test_P3_no_two_different_facts_share_a_signature() -> None:
    for pair in DIFFERENT:
        assert signature(pair.a, pair.key_a) != signature(pair.b, pair.key_b), pair


def test_P3_many_same_facts_share_a_signature() -> None:
    alike = sum(signature(pair.a, pair.key_a) == signature(pair.b, pair.key_b) for pair in SAME)
    assert alike >= 0.75 * len(SAME)


def test_P3_an_index_of_terms_would_bring_the_same_facts_together() -> None:
    found = [pair for pair in SAME if pair.found is Relation.SAME]
    shared = sum(bool(set(pair.statements[0].terms) & set(pair.statements[1].terms)) for pair in found)
    assert shared >= 0.97 * len(found)


@pytest.mark.parametrize(
    "text", ["Prefers dark mode", "Любить каву", "Wohnt in Köln", "喜欢喝茶", "Doesn't eat meat"]
)
def test_P3_signature_ignores_case_punctuation_spaces_and_unicode_form(text: str) -> None:
    expected = signature(text)
    assert expected
    for variant in (
        text.upper(),
        f"  {text}.",
        text + "!",
        text.replace(" ", "  "),
        unicodedata.normalize("NFD", text),
        text.replace("'", "’"),
        "\u200b" + text,
    ):
        assert signature(variant) == expected


def test_signature_is_the_same_in_another_process() -> None:
    code = (
        "from recollect.policy.duplicates import signature; print(ascii(signature('Rust, Go, Київ', 'tags')))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == ascii(signature("Rust, Go, Київ", "tags"))


def test_P3_list_order_is_free_but_roles_are_not() -> None:
    def same(a: str, b: str) -> bool:
        return relation(Statement.of(a), Statement.of(b)) is Relation.SAME

    assert same("Has 2 cats and 3 dogs", "Has 3 dogs and 2 cats")
    assert not same("Has 2 cats and 3 dogs", "Has 3 cats and 2 dogs")
    assert not same("Anna hates Bob and Carl loves Dora", "Anna hates Carl and Bob loves Dora")
    assert same("Moved to Berlin from Paris", "Moved from Paris to Berlin")
    assert not same("Moved to Paris from Berlin", "Moved from Paris to Berlin")
    assert not same("Богданом керує Анна", "Богдан керує Анною")
    assert not same("Score 3/4", "Score 4/3")


some_text = st.one_of(
    st.text(max_size=60), st.sampled_from(PARTS), st.lists(st.sampled_from(PARTS)).map(" ".join)
)


@given(some_text)
@settings(max_examples=300, deadline=None)
def test_a_statement_is_the_same_as_itself(text: str) -> None:
    if words(text):
        assert relation(Statement.of(text), Statement.of(text)) is Relation.SAME
        assert relation(Statement.of(text, "note"), Statement.of(text, "note")) is Relation.SAME


@given(some_text, some_text)
@settings(max_examples=300, deadline=None)
def test_relation_is_symmetric_and_follows_the_signature(one: str, other: str) -> None:
    a, b = Statement.of(one), Statement.of(other)
    assert (relation(a, b) is Relation.SAME) is (relation(b, a) is Relation.SAME)
    if a.signature and a.signature == b.signature:
        assert relation(a, b) is Relation.SAME
