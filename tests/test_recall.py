"""Recall through the public API, over each deployment: embedded, in memory, PostgreSQL, PostgreSQL with files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recollect.testing import FrozenClock, MemoryStore
from recollect.testing.embedding import HashEmbedder
from tests.contracts.recall_contract import (
    INVENTED,
    Home,
    RecallAcrossProcesses,
    RecallContract,
    RecallWithFiles,
    a_conversation,
    a_life,
    every_kind,
    told,
)


class TestEmbedded(RecallWithFiles):
    @pytest.fixture
    def home(self, clock: FrozenClock, tmp_path: Path) -> Iterator[Home]:
        with closing(Home(tmp_path / "home", clock, tmp_path / "home")) as home:
            yield home


@pytest.mark.slow
class TestInMemory(RecallContract):
    @pytest.fixture
    def home(self, clock: FrozenClock) -> Iterator[Home]:
        with closing(Home(MemoryStore(), clock)) as home:
            yield home


@pytest.mark.slow
class TestPostgres(RecallAcrossProcesses):
    @pytest.fixture
    def home(self, clock: FrozenClock, postgres_tables: str) -> Iterator[Home]:
        with closing(Home(postgres_tables, clock)) as home:
            yield home


@pytest.mark.slow  # what is searched is the database, and files are searched with SQLite every day
class TestPostgresWithFiles(RecallWithFiles):
    @pytest.fixture
    def home(self, clock: FrozenClock, postgres_tables: str, tmp_path: Path) -> Iterator[Home]:
        with closing(Home(postgres_tables, clock, tmp_path / "home")) as home:
            yield home


@pytest.mark.everyday(1)
@pytest.mark.parametrize("embedder", [None, HashEmbedder()], ids=["words", "vectors"])
def test_S1_the_same_history_gives_the_same_answers_in_every_store(
    tmp_path: Path, postgres_url: str, embedder: HashEmbedder | None
) -> None:
    queries = [" ".join(INVENTED[n : n + 3]) for n in range(0, 30, 5)]
    queries += ["dog vet", "When did Anna go to the vet last week?", "zorvexx", "what did you say of the dog"]
    heard: list[list[Any]] = []
    for where in (MemoryStore(), tmp_path, postgres_url):
        clock = FrozenClock()
        folder = tmp_path if where == tmp_path else None
        answers: list[Any] = []
        with closing(Home(where, clock, folder)) as home:
            memory = home.open(embedder=embedder).user("u1")
            rng = random.Random(8)
            for part in range(3):
                with memory.batch() as batch:
                    if part == 1:
                        a_conversation(batch)
                        every_kind(batch, clock)
                    a_life(batch, clock, rng, 25)
                if embedder is not None:
                    memory.embed()
                for query in queries:
                    for filters in (
                        {},
                        {"include_conversation": True},
                        {"status": "all", "kinds": ("fact", "message")},
                    ):
                        hits = memory.search(query, limit=25, **filters)
                        answers.append((query, filters, hits.mode, hits.note, told(hits)))
        heard.append(answers)
    assert any(answer[-1] for answer in heard[0])
    for others in heard[1:]:
        for one, other in zip(heard[0], others, strict=True):
            assert one == (other if embedder is None else close_to(other))


def close_to(answer: Any) -> Any:
    """The same but for the last bits: how a product is summed up depends on where its rows lie in memory."""
    if isinstance(answer, float):
        return pytest.approx(answer, rel=1e-4, abs=1e-5)
    if isinstance(answer, dict):
        return {name: close_to(value) for name, value in answer.items()}
    if isinstance(answer, list | tuple):
        return type(answer)(close_to(each) for each in answer)
    return answer
