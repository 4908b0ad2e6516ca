"""Generated cases, from outside: the everyday slice of `python -m tests.soak fuzz`, and that it notices what it looks for."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

import recollect
from recollect.testing import MemoryStore
from tests.soak import calls, cases, documents, fuzz, requests
from tests.soak.cases import Case, Raw, check_memory
from tests.soak.requests import check_answer

SMALL = 40


@pytest.mark.everyday(2)
@pytest.mark.parametrize("area", fuzz.AREAS)
def test_no_generated_case_breaks_anything(area: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cases, calls, documents, requests):
        monkeypatch.setattr(module, "CASES_IN_A_CHUNK", SMALL)
    counts, wrong = fuzz.one_chunk(area, "everyday", tmp_path / "chunk")
    assert wrong is None
    assert counts["cases"] == counts[area] == SMALL and counts["violations"] == 0
    assert 0 < counts[f"{area}_accepted"] <= SMALL


def tried(trial: Callable[[], bool]) -> Callable[[Path, Random], Iterator[Case]]:
    def some_cases(place: Path, random: Random) -> Iterator[Case]:
        yield "one that is right", lambda: True
        yield "one that is wrong", trial

    return some_cases


def raw() -> bool:
    raise KeyError("raw")


def swallowed() -> bool:
    try:
        raise KeyError("swallowed")
    except KeyError:
        logging.getLogger("recollect.x").exception("nothing to see here")
    return True


def hang() -> bool:
    time.sleep(60)
    return True


def crash() -> bool:
    os.kill(os.getpid(), signal.SIGKILL)
    return True


@pytest.mark.parametrize(
    ("trial", "told"),
    [(raw, "KeyError: 'raw'"), (swallowed, "KeyError: 'swallowed'"), (hang, "in hang"), (crash, "exit code -9")],
)
def test_a_violation_is_told_with_its_case(
    trial: Callable[[], bool], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "AREAS", {"wrong": (tried(trial), 1)})
    monkeypatch.setattr(fuzz, "PATIENCE", 0.5)
    counts, wrong = fuzz.one_chunk("wrong", "seed", tmp_path / "chunk")
    assert counts == {"violations": 1}
    assert wrong is not None and told in wrong and "case 2: one that is wrong" in wrong
    assert "--replay wrong/seed" in wrong


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (500, b'{"status": 500, "error": "StoreError"}'),
        (400, b'{"status": 409, "error": "InvalidInputError"}'),
        (404, b'{"status": 404, "error": "KeyError: x"}'),
        (200, b"Traceback (most recent call last)"),
        (0, b""),
    ],
)
def test_an_answer_that_is_no_answer_is_told(status: int, answer: bytes) -> None:
    with pytest.raises(Raw):
        check_answer(status, answer)


def test_a_memory_that_does_not_keep_what_it_is_given_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = recollect.open(MemoryStore()).user("u1")
    check_memory(memory)
    monkeypatch.setattr(recollect.Memory, "search", lambda *_: [])
    with pytest.raises(Raw):
        check_memory(memory)
