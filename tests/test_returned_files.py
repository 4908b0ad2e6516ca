"""A file that could not be read for a while, and comes back exactly as it was: what was changed meanwhile goes into it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

import recollect
from recollect import Memory


@contextmanager
def a_folder_in_its_place(path: Path) -> Iterator[None]:
    aside = path.with_name("aside")
    os.rename(path, aside)
    path.mkdir()
    yield
    path.rmdir()
    os.rename(aside, path)


@contextmanager
def not_text(path: Path) -> Iterator[None]:
    before = path.read_bytes()
    path.write_bytes(before + b"- caf\xe9\n")
    yield
    path.write_bytes(before)


WAYS = [a_folder_in_its_place, not_text]
Away = Callable[[Path], AbstractContextManager[None]]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return recollect.open(tmp_path).user("u1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "u1" / "MEMORY.md"


def facts(memory: Memory) -> list[str]:
    return sorted(record.text for record in memory.read(kind="fact"))


@pytest.mark.parametrize("away", WAYS)
@pytest.mark.parametrize("write_between", [False, True])
def test_C16_what_was_stored_while_the_file_was_away_goes_into_it(
    memory: Memory, path: Path, away: Away, write_between: bool
) -> None:
    memory.remember("Has two cats")
    memory.remember("Engineer", key="role")
    memory.remember("Lives in Lyon")
    agent = memory.acting("agent")
    with away(path):
        agent.remember("Penicillin", key="allergy")
        agent.update("role", "Pilot")
        agent.forget(memory.search("Lyon")[0].record.id)
    expected = ["Has two cats", "allergy: Penicillin", "role: Pilot"]
    if write_between:
        agent.remember("Another one")
        expected = sorted([*expected, "Another one"])
    assert facts(memory) == expected
    assert "Penicillin" in path.read_text() and "Pilot" in path.read_text() and "Lyon" not in path.read_text()
    path.write_text(path.read_text() + "- Mine\n")
    assert facts(memory) == sorted([*expected, "Mine"])
    assert memory.verify() == []


@pytest.mark.parametrize("away", WAYS)
def test_C16_what_a_person_saves_first_after_that_deletes_nothing(memory: Memory, path: Path, away: Away) -> None:
    memory.remember("Has two cats")
    with away(path):
        memory.acting("agent").remember("Penicillin", key="allergy")
    path.write_text(path.read_text() + "- Mine\n")
    assert facts(memory) == ["Has two cats", "Mine", "allergy: Penicillin"]
    assert "Penicillin" in path.read_text()


@pytest.mark.parametrize("away", WAYS)
def test_C16_a_daily_note_that_comes_back_is_completed(tmp_path: Path, memory: Memory, away: Away) -> None:
    memory.jot("First entry today")
    note = next((tmp_path / "u1" / "memory").glob("*.md"))
    with away(note):
        memory.jot("Second entry today")
    memory.jot("Third entry today")
    assert all(f"{number} entry" in note.read_text() for number in ("First", "Second", "Third"))
    note.write_text(note.read_text() + "- Mine\n")
    entries = sorted(record.content for record in memory.read(kind="daily"))
    assert entries == ["First entry today", "Mine", "Second entry today", "Third entry today"]
    assert memory.verify() == []


@pytest.mark.parametrize("away", WAYS)
@pytest.mark.parametrize("by_topic", [False, True])
def test_C16_what_was_erased_while_the_file_was_away_is_taken_out_of_it(
    memory: Memory, path: Path, away: Away, by_topic: bool
) -> None:
    memory.remember("Suffers from migraine")
    memory.remember("Has two cats")
    with away(path):
        if by_topic:
            memory.erase_topic("migraine")
        else:
            memory.erase(memory.search("migraine")[0].record.id)
    memory.remember("Another one")
    assert "migraine" not in path.read_text()
    path.write_text(path.read_text() + "- Mine\n")
    assert facts(memory) == ["Another one", "Has two cats", "Mine"]
    assert memory.verify() == []
