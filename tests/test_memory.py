"""The public API over each deployment: embedded, in memory, PostgreSQL, and PostgreSQL with files (seed B's)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect import Recollect
from recollect.errors import StoreCorruptError
from recollect.testing import FrozenClock, MemoryStore
from tests.contracts.memory_contract import MemoryContract, log
from tests.contracts.store_contract import tool_call


class TestEmbedded(MemoryContract):
    @pytest.fixture
    def app(self, clock: FrozenClock, tmp_path: Path) -> Iterator[Recollect]:
        with recollect.open(tmp_path, clock=clock) as app:
            yield app

    def test_U7_the_log_and_the_ledger_make_no_files(self, app: Recollect, tmp_path: Path) -> None:
        memory = app.user("u1")
        log(memory, tool_call("call-1"))
        memory.spend("extract", tokens_in=5)
        assert memory.calls() and memory.usage() and memory.consents() == ()
        assert not (tmp_path / "u1" / "MEMORY.md").exists()
        memory.remember("Likes tea")
        assert "- Likes tea" in (tmp_path / "u1" / "MEMORY.md").read_text() and memory.verify() == []
        assert memory.calls() and memory.usage()

    def test_R7_a_cleared_log_is_in_no_file(self, app: Recollect, tmp_path: Path) -> None:
        memory = app.user("u1")
        log(memory, tool_call("call-zebra", session="chat zebra", agent="zebra"))
        memory.clear()
        for path in (tmp_path / "u1").rglob("*"):
            assert path.is_dir() or b"zebra" not in path.read_bytes(), path

    def test_F9_a_rebuild_keeps_the_consents_if_they_can_be_read(self, app: Recollect, tmp_path: Path) -> None:
        memory = app.user("u1")
        memory.remember("Likes tea")
        memory.consent("trends")
        memory.consent("across_chats")
        memory.consent("trends", False)
        log(memory, tool_call("call-1"))
        report = memory.rebuild(force=True)
        assert memory.consents() == ("across_chats",) and len(memory.calls()) == 1 and memory.verify() == []
        assert ("consent", "across_chats") in [(entry.op, entry.reason) for entry in memory.history()]
        assert report.lost == ()
        app.close()
        with sqlite3.connect(tmp_path / "u1" / "memory.db") as db:
            db.execute("UPDATE consents SET at = 'some day'")
        db.close()
        with pytest.raises(StoreCorruptError, match="recollect rebuild"):
            memory.consents()
        report = memory.rebuild()
        assert memory.consents() == ("across_chats",), "the journal knows it too"
        assert report.lost == () and memory.verify() == []


class TestInMemory(MemoryContract):
    @pytest.fixture
    def app(self, clock: FrozenClock) -> Iterator[Recollect]:
        with recollect.open(MemoryStore(), clock=clock) as app:
            yield app


@pytest.mark.slow
class TestPostgres(MemoryContract):
    @pytest.fixture
    def app(self, clock: FrozenClock, postgres_tables: str) -> Iterator[Recollect]:
        with recollect.open(postgres_tables, clock=clock) as app:
            yield app


@pytest.mark.slow
class TestPostgresWithFiles(MemoryContract):
    @pytest.fixture
    def app(self, clock: FrozenClock, postgres_tables: str, tmp_path: Path) -> Iterator[Recollect]:
        with recollect.open(postgres_tables, files=tmp_path, clock=clock) as app:
            yield app
