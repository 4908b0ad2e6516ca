"""C9: observations and the scratchpad take technical text, measured on sentences that nobody here wrote: the documentation
of the packages installed beside this one. Secrets are refused there too.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distributions

import pytest

import recollect
from recollect.policy.secrets import find_secrets
from recollect.testing import MemoryStore
from tests.test_secrets import SECRETS

MOST_REFUSED = 0.002
"""The share of sentences that may be refused: documentation shows made-up tokens, which nobody can tell from real ones."""


def sentences_of(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*•] )", text):
        for sentence in re.split(r"(?<=[.!?;]) (?=[A-Z`\"'(])", " ".join(paragraph.split()).lstrip("-*• ")):
            if 20 <= len(sentence) <= 400:
                yield sentence


@cache
def documentation() -> tuple[str, ...]:
    """The sentences of all installed packages' descriptions and changelogs, in one order."""
    found: set[str] = set()
    for package in distributions():
        if package.name.lower() != "recollect":
            found.update(sentences_of((package.read_text("METADATA") or "").partition("\n\n")[2]))
    return tuple(sorted(found))


def test_C9_technical_sentences_hold_no_secrets() -> None:
    sentences = documentation()
    assert len(sentences) >= 1_000
    refused = [sentence for sentence in sentences if find_secrets(sentence)]
    assert len(refused) <= MOST_REFUSED * len(sentences), refused


def test_C9_technical_sentences_are_stored_as_observations() -> None:
    chosen = random.Random(16).sample(documentation(), 300)
    memory = recollect.open(MemoryStore()).user("agent")
    with memory.batch() as batch:
        outcomes = [batch.observe(sentence, "finding") for sentence in chosen]
    refused = [chosen[at] for at, outcome in enumerate(outcomes) if type(outcome).__name__ == "Refused"]
    assert len(refused) <= 1, refused


def test_C9_the_scratchpad_takes_code() -> None:
    memory = recollect.open(MemoryStore()).user("agent")
    code = "def add(a, b):\n    return a + b\n\nprint(add(1, 2))"
    assert memory.set_scratch("plan", code).done and memory.scratch("plan") == code
    assert memory.observe(code, "finding").done
    assert not memory.note(code).done and not memory.remember(code).done and not memory.jot(code).done


@pytest.mark.parametrize(("kind", "before", "secret", "after"), SECRETS)
def test_C9_secrets_are_refused_in_observations_and_the_scratchpad(
    kind: str, before: str, secret: str, after: str
) -> None:
    memory = recollect.open(MemoryStore()).user("agent")
    for outcome in (
        memory.observe(f"{before}{secret}{after}", "lesson"),
        memory.set_scratch("key", f"{before}{secret}{after}"),
    ):
        assert isinstance(outcome, recollect.Refused) and outcome.reason == "secret"
    assert memory.read() == []


@pytest.mark.parametrize(
    "text",
    [
        "The config key is timeout=30",
        "The primary key is order_items_2024_pk1",
        "The cache key is user_profile_v2_2024",
        "Connect with postgresql://user:password@localhost:5432/app",
        "password=os.environ['DB_PASSWORD'] is read at start",
        "The token: ${GITHUB_TOKEN} is set by the runner",
        "$PWD was unset in the container",
    ],
)
def test_C9_settings_and_placeholders_are_not_secrets(text: str) -> None:
    assert find_secrets(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "The config key is token=9f8A7b6C5d4E3f2A1b0C",
        "Connect with postgresql://app:hunter2@localhost:5432/app",
        "password=hunter2x is in the file",
        "The db-password: Tr0ub4dor",
    ],
)
def test_C9_settings_with_a_real_value_are_secrets(text: str) -> None:
    assert find_secrets(text) != []
