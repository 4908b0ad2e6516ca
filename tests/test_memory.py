"""The public API over each deployment: embedded, in memory, PostgreSQL, and PostgreSQL with files (seed B's)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect import Recollect
from recollect.testing import FrozenClock, MemoryStore
from tests.contracts.memory_contract import MemoryContract


class TestEmbedded(MemoryContract):
    @pytest.fixture
    def app(self, clock: FrozenClock, tmp_path: Path) -> Iterator[Recollect]:
        with recollect.open(tmp_path, clock=clock) as app:
            yield app


class TestInMemory(MemoryContract):
    @pytest.fixture
    def app(self, clock: FrozenClock) -> Iterator[Recollect]:
        with recollect.open(MemoryStore(), clock=clock) as app:
            yield app


class TestPostgres(MemoryContract):
    @pytest.fixture
    def app(self, clock: FrozenClock, postgres_url: str) -> Iterator[Recollect]:
        with recollect.open(postgres_url, clock=clock) as app:
            yield app


class TestPostgresWithFiles(MemoryContract):
    @pytest.fixture
    def app(self, clock: FrozenClock, postgres_url: str, tmp_path: Path) -> Iterator[Recollect]:
        with recollect.open(postgres_url, files=tmp_path, clock=clock) as app:
            yield app
