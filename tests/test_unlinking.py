"""Joining and unlinking that were interrupted: whoever looks finds a whole memory, and what is erased stays erased.

The schedules kill a process in the middle; then the person writes and erases on either side before anything is completed.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.errors import LinkError, NotFoundError, StoreBusyError
from recollect.identity import links
from recollect.identity.links import Identities
from recollect.memory import transfer
from recollect.memory.memory import Memory
from recollect.records import Refused
from recollect.testing import FrozenClock
from tests.test_identity import TELEGRAM, TERMINAL, WEB, World, _die_at, _in_child, _stopped_joining, refused, said
from tests.test_identity import world as world
from tests.volume import volume

ILLNESS = "Suffers from zirconitis"
BROUGHT = {ILLNESS, "Plays chess", "The release is cut on Monday"}


def _fill(memory: Callable[[tuple[str, str | int]], Memory]) -> None:
    memory(TERMINAL).remember("Likes jazz")
    memory(TELEGRAM).remember(ILLNESS)
    memory(TELEGRAM).remember("Plays chess")
    memory(TELEGRAM).note("The release is cut on Monday")


def _stop(*args: object, **options: object) -> Any:
    raise KeyboardInterrupt


def _stopped_unlinking(world: World, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Unlink, stopped before the memory is restored (``import_archive``) or before it is taken back (``take_back``)."""
    _fill(world.memory)
    world.join()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(links, step, _stop)
        world.identities.unlink(TELEGRAM)


STEPS = pytest.mark.parametrize("step", ["import_archive", "remove_expired", "take_back"])


@pytest.mark.everyday(2)
@STEPS
def test_R5_whoever_looks_during_an_unlinking_finds_a_whole_memory(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    _stopped_unlinking(world, monkeypatch, step)
    whole = {"import_archive": "terminal:olena", "remove_expired": "terminal:olena", "take_back": "telegram:12345"}
    assert world.identities.resolve(TELEGRAM) == whole[step]
    assert said(world.memory(TELEGRAM)) >= BROUGHT
    world.identities.upkeep()
    assert said(world.memory(TELEGRAM)) == BROUGHT
    assert said(world.memory(TERMINAL)) == {"Likes jazz"}
    assert world.memory(TERMINAL).verify() == world.memory(TELEGRAM).verify() == []


@pytest.mark.everyday(4)
@STEPS
@pytest.mark.parametrize("who", [TERMINAL, TELEGRAM])
def test_R7_erasing_one_thing_during_an_unlinking_loses_nothing_else(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str, who: tuple[str, str | int]
) -> None:
    _stopped_unlinking(world, monkeypatch, step)
    new = world.memory(who).note("Something new").record.id  # type: ignore[attr-defined]
    with pytest.raises(StoreBusyError, match="Erase again"):
        world.memory(who).erase(new)
    for one in (TERMINAL, TELEGRAM):
        with suppress(NotFoundError):
            world.memory(one).erase(new)
    world.identities.upkeep()
    assert said(world.memory(TELEGRAM)) == BROUGHT
    assert said(world.memory(TERMINAL)) == {"Likes jazz"}


@pytest.mark.everyday(4)
@STEPS
@pytest.mark.parametrize("who", [TERMINAL, TELEGRAM])
def test_R7_what_is_erased_during_an_unlinking_does_not_come_back(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str, who: tuple[str, str | int]
) -> None:
    _stopped_unlinking(world, monkeypatch, step)
    with pytest.raises(StoreBusyError, match="Erase again"):
        world.memory(who).erase_topic("zirconitis")
    world.memory(who).erase_topic("zirconitis")
    world.identities.upkeep()
    assert ILLNESS not in said(world.memory(who))
    assert said(world.memory(TELEGRAM)) >= BROUGHT - {ILLNESS}
    world.memory(TELEGRAM).erase_topic("zirconitis")
    assert b"zirconitis" not in world.bytes()


@pytest.mark.everyday(2)
@STEPS
def test_R7_erasing_a_user_during_an_unlinking_leaves_the_other_whole(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    _stopped_unlinking(world, monkeypatch, step)
    world.recollect.erase_user("terminal:olena")
    world.identities.upkeep()
    assert said(world.memory(TELEGRAM)) == BROUGHT
    assert list(world.recollect.users()) == ["telegram:12345"]


@pytest.mark.everyday(2)
@STEPS
def test_R7_erasing_the_one_who_is_being_unlinked_removes_all_of_theirs(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    _stopped_unlinking(world, monkeypatch, step)
    world.recollect.erase_user("telegram:12345")
    world.identities.upkeep()
    assert said(world.memory(TERMINAL)) == {"Likes jazz"}
    assert list(world.recollect.users()) == ["terminal:olena"]
    assert b"zirconitis" not in world.bytes()


@pytest.mark.everyday(2)
@STEPS
def test_R5_a_new_link_completes_an_interrupted_unlinking_first(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    _stopped_unlinking(world, monkeypatch, step)
    world.memory(WEB).remember("Bakes bread")
    world.join(WEB, TELEGRAM)
    assert said(world.memory(TELEGRAM)) == BROUGHT | {"Bakes bread"}
    world.identities.upkeep()
    assert said(world.memory(TERMINAL)) == {"Likes jazz"}
    assert said(world.memory(WEB)) == BROUGHT | {"Bakes bread"}


@pytest.mark.everyday(2)
@STEPS
def test_R5_unlinking_again_completes_it(world: World, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    _stopped_unlinking(world, monkeypatch, step)
    assert world.identities.unlink(TELEGRAM).user_id == "telegram:12345"
    assert said(world.memory(TELEGRAM)) == BROUGHT
    assert said(world.memory(TERMINAL)) == {"Likes jazz"}
    refused("nothing", lambda: world.identities.unlink(TELEGRAM))


def test_R5_a_memory_that_another_process_begins_meanwhile_does_not_stop_unlinking(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(world.memory)
    world.join()
    seen: list[object] = []
    in_use = transfer._in_use

    def looked(memory: Any) -> bool:
        found = in_use(memory)
        if not seen:
            with recollect.open(world.where, clock=world.clock) as other:
                seen.append(other.user("telegram:12345").note("Written by another process"))
        return found

    monkeypatch.setattr(transfer, "_in_use", looked)
    world.identities.unlink(TELEGRAM)
    assert said(world.memory(TELEGRAM)) == BROUGHT | {"Written by another process"}
    assert said(world.memory(TERMINAL)) == {"Likes jazz"}


@pytest.mark.everyday(2)
@pytest.mark.parametrize("mode", ["on", "paused", "incognito"])
def test_R5_a_memory_begun_under_the_old_user_id_is_merged_with_the_restored_one(world: World, mode: str) -> None:
    _fill(world.memory)
    world.memory(TELEGRAM).report("save", id="save-1", title="Rust")
    world.join()
    old = world.recollect.user("telegram:12345")
    old.note("Written to the old user id")
    if mode != "on":
        old.pause(incognito=mode == "incognito")
    world.identities.unlink(TELEGRAM)
    assert world.memory(TELEGRAM).mode == mode
    world.memory(TELEGRAM).resume()
    assert said(world.memory(TELEGRAM)) == BROUGHT | {"Written to the old user id"}
    assert [one.id for one in world.memory(TELEGRAM).interactions()] == ["save-1"]
    assert world.memory(TELEGRAM).verify() == []
    assert said(world.memory(TERMINAL)) == {"Likes jazz"}


def test_R5_an_unlinking_that_cannot_be_done_now_says_to_unlink_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*args: object, **options: object) -> None:
        raise StoreBusyError("another process has just started this memory; import again to merge")

    _fill(world.memory)
    world.join()
    with monkeypatch.context() as patched, pytest.raises(StoreBusyError, match="unlink again"):
        patched.setattr(links, "import_archive", busy)
        world.identities.unlink(TELEGRAM)
    assert said(world.memory(TELEGRAM)) == BROUGHT | {"Likes jazz"}
    world.identities.unlink(TELEGRAM)
    assert said(world.memory(TELEGRAM)) == BROUGHT


@pytest.mark.everyday(2)
@pytest.mark.parametrize("survivor", ["empty", "in use"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_R7_a_topic_that_is_on_its_way_is_not_answered_as_unknown(world: World, survivor: str, dry_run: bool) -> None:
    if survivor == "in use":
        world.memory(TERMINAL).remember("Likes jazz")
    world.memory(TELEGRAM).remember(ILLNESS)
    _stopped_joining(world)
    with pytest.raises(StoreBusyError, match="Erase again"):
        world.memory(TELEGRAM).erase_topic("zirconitis", dry_run=dry_run)
    assert len(world.memory(TELEGRAM).erase_topic("zirconitis")[0]) == 1
    world.identities.upkeep()
    assert ILLNESS not in said(world.memory(TERMINAL))
    assert b"zirconitis" not in world.bytes()


def test_R7_a_record_that_is_on_its_way_is_not_answered_as_unknown(world: World) -> None:
    world.memory(TERMINAL).remember("Likes jazz")
    known = world.memory(TELEGRAM).remember(ILLNESS).record.id  # type: ignore[attr-defined]
    _stopped_joining(world)
    with pytest.raises(StoreBusyError, match="Erase again"):
        world.memory(TELEGRAM).erase(known)
    world.memory(TELEGRAM).erase(known)
    world.identities.upkeep()
    assert said(world.memory(TERMINAL)) == {"Likes jazz"}


def test_R7_what_was_erased_on_the_joined_side_is_refused_at_once_and_the_link_stays_undoable(world: World) -> None:
    world.memory(TERMINAL).remember("Likes jazz")
    theirs = world.memory(TELEGRAM)
    theirs.erase(theirs.remember(ILLNESS).record.id)  # type: ignore[attr-defined]
    theirs.remember("Plays chess")
    world.clock.tick(hours=1)
    world.join()
    outcome = world.memory(TERMINAL).remember(ILLNESS.lower(), source="inference")
    assert isinstance(outcome, Refused) and outcome.reason == "erased"
    assert outcome.notices == ()
    saved = world.recollect.tools("terminal:olena", "notes", wait=True).call("memory_save", {"content": ILLNESS})
    assert "Not stored" in saved.text
    assert said(world.memory(TERMINAL)) == {"Likes jazz", "Plays chess"}
    world.memory(TERMINAL).remember(ILLNESS)  # the person themselves may say it again
    assert ILLNESS in said(world.memory(TERMINAL))
    world.identities.unlink(TELEGRAM)
    assert said(world.memory(TELEGRAM)) == {"Plays chess"}
    assert said(world.memory(TERMINAL)) == {"Likes jazz", ILLNESS}


def _archived(memory: Memory) -> None:
    memory.forget(memory.remember(ILLNESS).record.id)  # type: ignore[attr-defined]


def _changed(memory: Memory) -> None:
    record = memory.remember(ILLNESS, key="health", category="personal_context").record  # type: ignore[attr-defined]
    memory.update(record.id, content="Is well")
    memory.update(record.id, content="Is very well")


@pytest.mark.everyday(1)
@pytest.mark.parametrize("hold", [_archived, _changed])
def test_R7_a_topic_is_erased_from_the_copy_even_if_no_current_record_mentions_it(
    world: World, hold: Callable[[Memory], None]
) -> None:
    world.memory(TERMINAL).remember("Likes jazz")
    hold(world.memory(TELEGRAM))
    world.join()
    found = world.memory(TERMINAL).erase_topic("zirconitis")
    assert found[1] is not None and found[1].places["joined copies"] == 1
    assert "can no longer be undone" in found[1].notices[-1]
    refused("final", lambda: world.identities.unlink(TELEGRAM))
    assert b"zirconitis" not in world.bytes()


@pytest.mark.parametrize("erased", ["terminal:olena", "telegram:12345"])
def test_R7_the_files_of_a_joined_user_do_not_bring_them_back_after_the_person_was_erased(
    tmp_path: Path, erased: str
) -> None:
    with recollect.open(tmp_path / "memory") as app:
        world = World(str(tmp_path / "memory"), FrozenClock(), app)
        world.memory(TELEGRAM).remember(ILLNESS)
        world.memory(TERMINAL).remember("Likes jazz")
        path = next(path for path in (tmp_path / "memory").rglob("MEMORY.md") if ILLNESS in path.read_text())
        text, times = path.read_text(), os.stat(path)
        world.join()
        app.erase_user(erased)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)  # from a backup, with its times
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert world.memory(TELEGRAM).read() == [] and app.user("telegram:12345").read() == []


def test_R7_a_topic_that_nothing_mentions_leaves_the_link_undoable(world: World) -> None:
    _fill(world.memory)
    world.join()
    for topic in ("ornithology", "fact", "active", "remember"):
        assert world.memory(TERMINAL).erase_topic(topic) == ([], None)
    world.identities.unlink(TELEGRAM)
    assert said(world.memory(TELEGRAM)) == BROUGHT


# generated schedules


class _Schedule:
    """What a person does on both sides after a kill, and what they may expect afterwards."""

    def __init__(self, opened: recollect.Recollect, dice: random.Random) -> None:
        self.identities = opened.identities
        self.dice = dice
        self.known = BROUGHT | {"Likes jazz"}
        """What was acknowledged and never erased."""
        self.erased: dict[tuple[str, str | int], set[str]] = {TERMINAL: set(), TELEGRAM: set()}
        """What was erased, by the side that must never see it again."""
        self.log: list[str] = []

    def memory(self, who: tuple[str, str | int]) -> Memory:
        return self.identities.memory(who)

    @property
    def is_one(self) -> bool:
        return self.identities.resolve(TERMINAL) == self.identities.resolve(TELEGRAM)

    def step(self, number: int) -> None:
        who: tuple[str, str | int] = TERMINAL if self.dice.random() < 0.5 else TELEGRAM
        act = self.dice.choice([self._write, self._erase, self._erase_topic])
        self.log.append(f"{act.__name__} {who[0]}")
        try:
            act(who, number)
        except StoreBusyError:
            self.log[-1] += ": busy"

    def _write(self, who: tuple[str, str | int], number: int) -> None:
        text = f"Note number {number} from {who[0]}"
        self.memory(who).note(text)
        self.known.add(text)

    def _erase(self, who: tuple[str, str | int], number: int) -> None:
        memory = self.memory(who)
        if shown := sorted(memory.read(), key=lambda one: one.text):
            record = self.dice.choice(shown)
            with suppress(NotFoundError):
                memory.erase(record.id)
                self._gone(who, record.text)

    def _erase_topic(self, who: tuple[str, str | int], number: int) -> None:
        was_one = self.is_one
        found, _ = self.memory(who).erase_topic("zirconitis")
        if found or was_one or who == TELEGRAM:
            self._gone(who, ILLNESS)

    def _gone(self, who: tuple[str, str | int], text: str) -> None:
        self.log[-1] += f": {text}"
        for one in (TERMINAL, TELEGRAM) if self.is_one else (who,):
            self.erased[one].add(text)
        if not any(text in said(self.memory(one)) for one in (TERMINAL, TELEGRAM)):
            self.known.discard(text)

    def check(self) -> None:
        shown = {who: {record.text for record in self.memory(who).read(status="all")} for who in self.erased}
        if self.is_one:
            self.known -= self.erased[TERMINAL] | self.erased[TELEGRAM]
        assert self.known <= shown[TERMINAL] | shown[TELEGRAM], (self.log, self.known, shown)
        for who, erased in self.erased.items():
            assert not erased & shown[who], (self.log, erased, shown)
            assert self.memory(who).verify() == [], self.log
        own = BROUGHT - self.erased[TELEGRAM]
        assert own <= shown[TELEGRAM], (self.log, own, shown)


def _schedules(what: str, seed: str, folder: str) -> None:
    """Kill it at some point, let the person do something, and complete it: again and again."""
    dice = random.Random(seed)
    template = Path(folder) / "template"
    with recollect.open(template) as opened:
        _fill(opened.identities.memory)
        opened.identities.enter_code(TELEGRAM, opened.identities.start_link(TERMINAL).text)
        opened.identities.confirm(TELEGRAM)
        if what == "unlink":
            opened.identities.confirm(TERMINAL)

    def act(where: Path, number: int, counted: int = -1) -> None:
        statements = _die_at(number)
        with recollect.open(where) as opened:
            _begin(opened.identities, what)
        if counted >= 0:
            os.write(counted, str(statements()).encode())

    told, telling = os.pipe()
    shutil.copytree(template, Path(folder) / "whole")
    assert _in_child(lambda: act(Path(folder) / "whole", 0, telling)) == 0
    number = int(os.read(told, 20))
    for turn in range(int(os.environ.get("UNLINKING_SCHEDULES") or volume(5, 12))):
        where, point = Path(folder) / str(turn), dice.randrange(1, number)
        shutil.copytree(template, where)
        assert _in_child(lambda where=where, point=point: act(where, point)) == -signal.SIGKILL  # type: ignore[misc]
        with recollect.open(where) as opened:
            schedule = _Schedule(opened, dice)
            schedule.log.append(f"{what} killed at {point} of {number}")
            if what == "unlink":
                schedule.check()
            for step in range(dice.randrange(1, 6)):
                schedule.step(step)
            opened.identities.upkeep()
            with suppress(LinkError):
                _begin(opened.identities, what)
            schedule.check()
        shutil.rmtree(where)


def _begin(identities: Identities, what: str) -> None:
    if what == "join":
        identities.confirm(TERMINAL)
    else:
        identities.unlink(TELEGRAM)


@pytest.mark.everyday(1)
@pytest.mark.parametrize("what", ["join", "unlink"])
@pytest.mark.parametrize("seed", ["one", "two"])
def test_R7_whatever_a_person_does_after_a_kill_nothing_is_lost_and_nothing_comes_back(
    tmp_path: Path, what: str, seed: str
) -> None:
    command = [sys.executable, "-m", "tests.test_unlinking", what, seed, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    _schedules(*sys.argv[1:4])
