"""Search before write, through the public API: the labelled pairs, one by one and among many other facts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Conflict, Duplicate, Memory, Written
from recollect.testing import MemoryStore
from tests.volume import volume

PAIRS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "data/duplicates.jsonl").read_text(encoding="utf-8").splitlines()
]


def second(memory: Memory, pair: dict[str, Any]) -> recollect.Outcome:
    """What comes of the second sentence once the first is known."""
    memory.remember(pair["a"], key=pair["key_a"])
    return memory.remember(pair["b"], key=pair["key_b"])


@pytest.mark.slow
def test_P3_the_same_is_found_and_what_differs_is_kept_apart() -> None:
    app = recollect.open(MemoryStore())
    found = wrong = 0
    for number, pair in enumerate(PAIRS):
        duplicate = isinstance(second(app.user(number), pair), Duplicate)
        found += duplicate and pair["same"]
        wrong += duplicate and not pair["same"]
    same = sum(pair["same"] for pair in PAIRS)
    assert len(PAIRS) >= 300 and 100 <= same <= len(PAIRS) - 100
    assert found >= 0.9 * same
    assert wrong <= 0.01 * (len(PAIRS) - same)


def test_P2_a_duplicate_is_found_among_thousands_of_other_facts() -> None:
    memory = recollect.open(MemoryStore()).user("u1")
    with memory.batch() as batch:
        for number in range(volume(1000, 2000)):
            batch.remember(f"Likes to visit town {number} in the company of friend {number * 7919 % 2003}")
        for pair in PAIRS:
            if pair["same"] and not pair["key_a"]:
                batch.remember(pair["a"])
        free = [pair for pair in PAIRS if pair["same"] and not pair["key_a"] and not pair["key_b"]]
        found = sum(isinstance(batch.remember(pair["b"]), Duplicate) for pair in free)
    assert found >= 0.9 * len(free)


@pytest.mark.parametrize(
    ("known", "new"),
    [("Likes Rust", "Dislikes Rust"), ("Lives in Kyiv", "Lived in Kyiv"), ("Uses Python 2", "Uses Python 3")],
)
def test_P2_nothing_new_is_refused_because_words_match(known: str, new: str) -> None:
    memory = recollect.open(MemoryStore()).user("u1")
    memory.remember(known)
    assert isinstance(memory.remember(new), Written)


def test_P2_a_key_is_compared_by_its_value() -> None:
    memory = recollect.open(MemoryStore()).user("u1")
    memory.remember("Senior engineer", key="role")
    assert isinstance(memory.remember("senior ENGINEER", key="Role"), Duplicate)
    assert isinstance(memory.remember("Junior engineer", key="role"), Conflict)
    assert isinstance(memory.remember("Senior engineer", key="former_role"), Written)
