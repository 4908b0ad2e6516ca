"""Erasing where memories were joined: copies are looked into, and nothing erased comes back by a link, a file or an agent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import recollect
from recollect.memory.memory import Memory
from recollect.records import Refused, Written
from recollect.surfaces.cli import remove_commands  # noqa: F401  (its commands)
from recollect.surfaces.cli.program import app
from recollect.testing import FrozenClock
from tests.test_identity import TELEGRAM, TERMINAL, WEB, World, refused, said
from tests.test_identity import world as world

DRUG = "Takes zoloftium daily"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[World]:
    """With files, and with the real time, to which their times are compared."""
    with recollect.open(tmp_path / "memory") as opened:
        yield World(str(tmp_path / "memory"), FrozenClock(), opened)


def _only_in_the_copy(world: World) -> None:
    """Join a memory that has forgotten the drug, so that only its copy knows of it."""
    world.memory(TERMINAL).remember("Likes tea", key="drink")
    theirs = world.memory(TELEGRAM)
    theirs.remember(DRUG, key="pill")
    theirs.forget("pill")
    theirs.remember("Plays chess")
    world.join()


def _agent(memory: Memory, text: str) -> Any:
    return memory.acting("agent:x").remember(text, source="inferred")


def test_R7_a_dry_run_finds_what_is_erased_with_a_copy(world: World) -> None:
    _only_in_the_copy(world)
    memory = world.memory(TERMINAL)
    found, _ = memory.erase_topic("zoloftium", dry_run=True)
    assert [record.content for record in found] == [DRUG]
    assert memory.get("drink").content == "Likes tea"
    erased, receipt = memory.erase_topic("zoloftium")
    assert (
        receipt is not None and receipt.places == {"joined copies": 1} and "no longer be undone" in receipt.notices[0]
    )
    assert [record.id for record in erased] == [record.id for record in found] == list(receipt.ids)
    assert memory.erase_topic("zoloftium") == memory.erase_topic("zoloftium", dry_run=True) == ([], None)
    refused("final", lambda: world.identities.unlink(TELEGRAM))
    assert b"zoloftium" not in world.bytes()


def test_R7_the_command_line_erases_a_topic_from_a_copy(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "memory") as opened:
        world = World(str(tmp_path / "memory"), FrozenClock(), opened)
        _only_in_the_copy(world)
    at = ["--root", str(tmp_path / "memory"), "--user", "terminal:olena"]

    def erase(*options: str) -> Any:
        return CliRunner().invoke(app, ["erase", "--topic", "zoloftium", *options, *at])

    tried = erase("--dry-run")
    assert tried.exit_code == 0 and DRUG in tried.output and "Would erase 1 memory" in tried.output
    done = erase("--yes")
    assert done.exit_code == 0 and "Erased 1 memory" in done.output and "no longer be undone" in done.output
    assert erase("--yes").exit_code == 3
    stored = b"".join(path.read_bytes() for path in (tmp_path / "memory").rglob("*") if path.is_file())
    assert b"zoloftium" not in stored


@pytest.mark.everyday(2)
@pytest.mark.parametrize(
    "erase", [lambda memory: memory.erase_topic("zoloftium"), lambda memory: memory.erase("drink"), Memory.clear]
)
def test_R7_what_was_erased_with_a_copy_is_not_learned_again(world: World, erase: Callable[[Memory], object]) -> None:
    _only_in_the_copy(world)
    memory = world.memory(TERMINAL)
    erase(memory)
    assert isinstance(_agent(memory, DRUG), Refused)
    assert isinstance(memory.remember(DRUG, key="pill"), Written)


def test_R7_what_is_still_known_may_be_said_again_after_a_copy_was_erased(world: World) -> None:
    _only_in_the_copy(world)
    memory = world.memory(TERMINAL)
    memory.erase("drink")
    assert said(memory) == {"Plays chess"}
    assert not isinstance(_agent(memory, "Plays chess"), Refused)


def test_R7_what_an_erased_user_brought_along_is_not_learned_again(world: World) -> None:
    world.memory(TERMINAL).remember("Likes tea")
    theirs = world.memory(TELEGRAM)
    theirs.remember(DRUG, key="pill")
    theirs.remember("Hates broccoli", key="food")
    theirs.forget("food")
    world.join()
    world.recollect.erase_user("telegram:12345")
    memory = world.memory(TERMINAL)
    assert said(memory) == {"Likes tea"}
    assert isinstance(_agent(memory, DRUG), Refused)
    assert isinstance(_agent(memory, "Hates broccoli"), Refused)
    assert isinstance(_agent(memory, "Likes green tea"), Written)
    assert memory.verify() == []


@pytest.mark.everyday(3)
@pytest.mark.parametrize("survivor", [TERMINAL, TELEGRAM])
@pytest.mark.parametrize("erase", [lambda memory: memory.erase_topic("zoloftium"), Memory.clear])
def test_R7_erased_interactions_do_not_come_back_by_a_link(
    world: World, erase: Callable[[Memory], object], survivor: tuple[str, str | int]
) -> None:
    for who in (TERMINAL, TELEGRAM):
        memory = world.memory(who)
        memory.remember("Likes tea")
        memory.report("read", title="Zoloftium guide", id="1")
        memory.report("read", title="Chess", id=f"of {who[0]}")
    erase(world.memory(TERMINAL))
    world.join(survivor, TELEGRAM if survivor is TERMINAL else TERMINAL)
    memory = world.memory(TERMINAL)
    assert "1" not in {one.id for one in memory.interactions()}
    assert "of telegram" in {one.id for one in memory.interactions()}
    assert "1" not in {one.id for one in memory.interactions() if memory.report("read", title="Zoloftium", id="1")}


def _files(world: World, who: str) -> tuple[Path, Path]:
    place = next(path for path in Path(world.where).iterdir() if path.name.startswith(who))
    return place / "MEMORY.md", next((place / "memory").glob("*.md"))


@pytest.mark.parametrize("act", ["unlink", "erase"])
def test_R7_an_old_save_does_not_bring_back_what_went_with_another_memory(folder: World, act: str) -> None:
    mine, theirs = folder.memory(TERMINAL), folder.memory(TELEGRAM)
    mine.remember("Likes tea")
    mine.jot("Tea at five")
    theirs.remember(DRUG)
    theirs.remember("Madrid", key="city")
    theirs.jot("Took zoloftium at noon")
    folder.join()
    memory = folder.memory(TERMINAL)
    texts = {path: path.read_text() for path in _files(folder, "terminal")}
    if act == "unlink":
        folder.identities.unlink(TELEGRAM)
        assert said(folder.memory(TELEGRAM)) == {DRUG, "city: Madrid", "Took zoloftium at noon"}
    else:
        folder.recollect.erase_user("telegram:12345")
    time.sleep(0.01)
    for path, text in texts.items():
        path.write_text(text + "- New line\n")
    assert said(memory) == {"Likes tea", "Tea at five", "New line"}
    assert sum("unlinked or erased since" in notice for notice in memory.notices()) == 2
    if act == "unlink":  # it was not erased: whoever says it again is heard, and it comes back with a new link
        assert isinstance(_agent(memory, DRUG), Written)
        folder.join(TELEGRAM, TERMINAL)
        assert {DRUG, "city: Madrid", "Likes tea"} <= said(folder.memory(TERMINAL))
        folder.identities.unlink(TERMINAL)
        folder.join(TERMINAL, TELEGRAM)
        assert {DRUG, "city: Madrid", "Likes tea"} <= said(folder.memory(TERMINAL))
    assert folder.memory(TERMINAL).verify() == []


def test_R7_a_value_that_an_erased_user_brought_is_gone_from_the_history(world: World) -> None:
    world.memory(TERMINAL).remember("Takes nothing", key="pill")
    world.clock.tick(seconds=1)
    world.memory(TELEGRAM).remember(DRUG, key="pill")
    world.join()
    assert said(world.memory(TERMINAL)) == {f"pill: {DRUG}"}
    world.recollect.erase_user("telegram:12345")
    memory = world.memory(TERMINAL)
    assert said(memory) == {"pill: Takes nothing"} and memory.verify() == []
    assert isinstance(_agent(memory, DRUG), Refused)
    assert b"zoloftium" not in world.bytes()


def test_R7_an_erased_user_is_erased_from_memories_joined_later(world: World) -> None:
    for who, text in ((TERMINAL, "Likes tea"), (TELEGRAM, DRUG), (WEB, "Plays chess")):
        world.memory(who).remember(text)
    world.memory(TELEGRAM).report("read", title="Zoloftium guide")
    world.join(TERMINAL, TELEGRAM)
    world.join(WEB, TERMINAL)
    assert world.recollect.erase_user("telegram:12345").places["joined copies"] == 2
    assert said(world.memory(TERMINAL)) == {"Likes tea", "Plays chess"}
    assert list(world.recollect.users()) == ["web:olena@example.org"]
    assert isinstance(_agent(world.memory(WEB), DRUG), Refused)
    assert b"oloftium" not in world.bytes()


def test_F4_a_file_saved_at_the_old_place_of_a_joined_memory_is_merged(folder: World) -> None:
    folder.memory(TERMINAL).remember("Likes tea")
    theirs = folder.memory(TELEGRAM)
    for text in (DRUG, "Plays chess", "Collects stamps"):
        theirs.remember(text)
    theirs.jot("Rode a bicycle")
    page, note = _files(folder, "telegram")
    texts = {page: page.read_text(), note: note.read_text()}
    folder.join()
    memory = folder.memory(TERMINAL)
    memory.erase_topic("zoloftium")
    memory.forget(next(record.id for record in memory.read() if record.content == "Collects stamps"))
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "- New line\n")
    memory = folder.memory(TELEGRAM)
    assert sorted(record.text for record in memory.read()) == sorted(
        ["Likes tea", "Plays chess", "Rode a bicycle", "New line", "New line"]
    )
    assert "2 new lines merged" in memory.notices()[0]
    assert not page.exists() and list(folder.recollect.users()) == ["terminal:olena"]
    assert folder.memory(TELEGRAM).notices() == [] and memory.verify() == []
    assert b"zoloftium" not in folder.bytes()
