"""Chats where memories are joined or imported: the same in two chats is two records, and nothing moves between chats."""

from __future__ import annotations

from pathlib import Path

import pytest

import recollect
from recollect.memory.memory import Memory
from recollect.testing import FrozenClock
from tests.test_identity import TELEGRAM, TERMINAL, World
from tests.test_identity import world as world

CHATS = {"family": "Green", "work": "Blue", "group:1": "Red"}


def _fill(memory: Memory, chat: str) -> None:
    here, value = memory.acting(chat=chat), CHATS[chat]
    here.remember("Is pregnant")
    here.remember(value, key="color")
    here.set_scratch("k", value)
    here.note("Doc one")
    here.jot("Entry")
    here.episode("Talk", "Summary")
    here.observe("Seen", category="finding")
    here.say("hello", session="s")


def _shown(memory: Memory) -> list[tuple[str, str, str]]:
    return sorted((record.kind, record.text, record.chat or "") for record in memory.read())


def test_C10_an_import_compares_within_each_chat(world: World, tmp_path: Path) -> None:
    theirs = world.recollect.user("theirs")
    for chat in CHATS:
        _fill(theirs, chat)
    theirs.export(tmp_path / "theirs.zip")
    mine = world.recollect.user("mine")
    mine.remember("Likes tea")
    report = mine.import_(tmp_path / "theirs.zip")
    assert (report.written, report.duplicates, report.skipped) == (24, 0, [])
    assert set(_shown(theirs)) <= set(_shown(mine))
    again = mine.import_(tmp_path / "theirs.zip")
    assert (again.written, again.duplicates, again.skipped) == (0, 24, [])


def test_C13_an_import_lists_what_working_memory_has_already_with_another_value(world: World, tmp_path: Path) -> None:
    mine, theirs = world.recollect.user("mine"), world.recollect.user("theirs")
    mine.set_scratch("k", "one")
    mine.set_scratch("same", "value")
    theirs.set_scratch("k", "two")
    theirs.set_scratch("same", "value")
    theirs.export(tmp_path / "theirs.zip")
    report = mine.import_(tmp_path / "theirs.zip")
    assert (report.duplicates, report.conflicts, len(report.skipped)) == (1, 1, 1)
    assert "k already has another value" in report.skipped[0]
    assert mine.scratch("k") == "one"


def test_C10_importing_the_files_of_a_memory_shows_no_chat_to_another(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "memory", clock=FrozenClock()) as opened:
        memory = opened.user("mine")
        _fill(memory, "family")
        before = _shown(memory)
        report = memory.import_(tmp_path / "memory" / "mine")
        assert (report.written, report.duplicates) == (0, 3)
        assert _shown(memory) == before and memory.acting(chat="work").read() == []


@pytest.mark.everyday(2)
@pytest.mark.parametrize("survivor", [TERMINAL, TELEGRAM])
def test_C10_joining_moves_nothing_from_one_chat_into_another(world: World, survivor: tuple[str, str | int]) -> None:
    for who, chat in ((TERMINAL, "family"), (TELEGRAM, "work")):
        _fill(world.memory(who), chat)
        world.clock.tick(seconds=1)
    expected = sorted(_shown(world.memory(TERMINAL)) + _shown(world.memory(TELEGRAM)))
    other = TELEGRAM if survivor is TERMINAL else TERMINAL
    world.join(survivor, other)
    memory = world.memory(other)
    assert _shown(memory) == expected
    for chat in ("family", "work"):
        here = memory.acting(chat=chat)
        assert here.scratch("k") == here.get("color").content == CHATS[chat]
        tools = world.recollect.tools(memory.user_id, chat=chat, wait=True)
        assert f'"{CHATS[chat]}"' in tools.call("scratchpad_get", {"key": "k"}).text
    world.identities.unlink(other)
    assert sorted(_shown(world.memory(TERMINAL)) + _shown(world.memory(TELEGRAM))) == expected
