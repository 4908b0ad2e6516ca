"""Uncertain facts, from outside: where they are shown, how they change, and what makes them certain."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.testing import FrozenClock

Caller = Callable[..., dict[str, Any]]


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(datetime(2026, 1, 1, 9, tzinfo=timezone.utc))


@pytest.fixture
def app(tmp_path: Path, clock: FrozenClock) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path, clock=clock) as app:
        yield app


@pytest.fixture
def memory(app: recollect.Recollect) -> recollect.Memory:
    return app.user(7)


@pytest.fixture
def remember(app: recollect.Recollect) -> Caller:
    tools = app.tools(7, "facts", wait=True)

    def call(value: str, confidence: float, key: str = "location") -> dict[str, Any]:
        told = {"user_id": 7, "fact_type": "personal", "fact_key": key, "fact_value": value, "confidence": confidence}
        return dict(json.loads(tools.call("remember_fact", told).text))

    return call


def _merge(app: recollect.Recollect, confidence: float) -> dict[str, Any]:
    told = {"user_id": 7, "fact_ids": [1, 2], "merged_value": "Lives in Kyiv center", "merged_confidence": confidence}
    return dict(json.loads(app.tools(7, "facts", wait=True).call("merge_facts", told).text))


def test_C1_the_confidence_of_a_merged_fact_decides_whether_it_passes_the_gate(
    app: recollect.Recollect, memory: recollect.Memory
) -> None:
    memory.remember("Lives in Kyiv", key="home")
    memory.remember("Works in Kyiv", key="office")
    assert _merge(app, 0.5)["uncertain"] is True
    assert "Kyiv" not in memory.show() and "Lives in Kyiv center" in memory.daily()
    memory.undo()
    assert "Works in Kyiv" in memory.show() and memory.daily() == "" and memory.verify() == []


def test_C1_merging_an_uncertain_fact_leaves_no_section_of_a_daily_note_in_MEMORY_md(
    app: recollect.Recollect, memory: recollect.Memory, remember: Caller
) -> None:
    remember("Kyiv", 0.6)
    remember("Kyiv city center", 0.9, "district")
    _merge(app, 0.9)
    assert "Lives in Kyiv center" in memory.show() and "Extracted Insights" not in memory.show()
    assert memory.undo().notices == ()  # Recollect itself removed the daily note
    assert "Extracted Insights" not in memory.show() and "Kyiv" in memory.daily() and memory.verify() == []


def test_C3_what_was_read_is_never_in_MEMORY_md(app: recollect.Recollect, memory: recollect.Memory) -> None:
    memory.remember("Read about violins", key="music", category="personal_context")
    assert isinstance(memory.update("music", category="reading_history"), recollect.Updated)
    tools = app.tools(7, "entries", wait=True)
    tools.call("update_memory", {"key": "pg18", "value": "PostgreSQL 18", "category": "reading_history"})
    assert "violins" not in memory.show() and "PostgreSQL" not in memory.show()
    found = tools.call("read_memory", {"category": "reading_history"}).text
    assert "violins" in found and "PostgreSQL 18" in found and memory.read(kind="fact") == []


def test_C12_a_fact_stored_today_held_today(memory: recollect.Memory, remember: Caller, clock: FrozenClock) -> None:
    remember("Kyiv", 0.9)
    clock.tick(hours=1)
    assert [fact.content for fact in memory.read(kind="fact", as_of="2026-01-01")] == ["Kyiv"]
    assert len(memory.read(kind="fact", as_of=date(2026, 1, 1))) == 1
    assert memory.read(kind="fact", as_of="2025-12-31") == []
    assert memory.read(kind="fact", as_of="2026-01-01T00:00:00Z") == []


def test_C1_an_uncertain_line_that_the_person_edits_becomes_certain(
    memory: recollect.Memory, remember: Caller, tmp_path: Path, clock: FrozenClock
) -> None:
    remember("Kyiv", 0.6)
    began = clock()
    clock.tick(hours=1)
    note = tmp_path / "7/memory/2026-01-01.md"
    note.write_text(note.read_text().replace("Kyiv", "Lviv"))
    [fact] = memory.read(kind="fact")
    assert (fact.content, fact.confidence) == ("Lviv", 1.0)
    assert "Location: Lviv" in memory.show() and memory.daily() == "" and memory.verify() == []
    assert [one.content for one in memory.read(kind="fact", as_of=began)] == ["Kyiv"]


@pytest.mark.parametrize("change", ["update", "confirm"])
def test_C1_an_uncertain_fact_is_in_the_note_of_the_day_it_changed(
    tmp_path: Path, clock: FrozenClock, change: str
) -> None:
    with recollect.open(tmp_path, clock=clock, confidence_threshold=0.95) as app:
        memory = app.user(7)
        memory.remember("Kyiv", key="location", confidence=0.6)
        clock.tick(days=2)
        if change == "update":
            memory.update("location", "Lviv", confidence=0.6)
        else:
            memory.remember("Kyiv", key="location", confidence=0.6)
        [fact] = memory.read(kind="fact")
        assert fact.expires_at == datetime(2026, 4, 4, tzinfo=timezone.utc)
        assert memory.daily("2026-01-01") == "" and f"location: {fact.content}" in memory.daily("2026-01-03")


def test_C1_a_certain_value_replaces_all_uncertain_ones(memory: recollect.Memory, remember: Caller) -> None:
    for value in ("Kyiv", "Lviv", "Odesa"):
        remember(value, 0.6)
    assert remember("Lviv", 0.95)["message"].startswith("Replaced")
    assert "Location: Lviv" in memory.show() and memory.daily() == "" and memory.read(kind="daily") == []
    memory.undo()
    assert memory.daily().count("location:") == 3 and "Lviv" not in memory.show() and memory.verify() == []


def test_C3_a_daily_entry_that_becomes_durable_is_one_record_and_one_line(memory: recollect.Memory) -> None:
    for durability in ("daily", "durable"):
        memory.remember("Presenting on databases", key="talk", category="work_context", durability=durability)
    assert len(memory.read()) == 1 and "Presenting" in memory.show() and memory.daily() == ""


def test_C1_the_message_says_that_a_fact_is_uncertain(memory: recollect.Memory) -> None:
    message = memory.remember("Kyiv", key="location", confidence=0.6).message
    assert "uncertain" in message and "only" not in message
