"""Nothing acknowledged is ever lost: processes are killed at any instant, alone and in company, and at every
single point where a crash could matter; then the memory is opened again and must hold what was acknowledged.

A failure names its seed; ``RECOLLECT_SEED=…`` repeats the same choices of verbs and of moments to kill.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Fact, Memory, Record
from recollect.errors import StoreCorruptError
from recollect.testing import FrozenClock
from tests.durability_worker import Spawner, State, Worker, lines_of, open_memory, operations, state_of
from tests.volume import volume

_SEED = int(os.environ.get("RECOLLECT_SEED") or random.SystemRandom().getrandbits(32))
_HEADINGS = ["# User Memory", "## User Preferences", "## Work Context", "## Personal Context", "## Key Facts"]


@pytest.fixture(scope="module")
def spawner() -> Iterator[Spawner]:
    with Spawner() as spawner:
        yield spawner


@dataclass
class Promised:
    """What was acknowledged, and what each process was about to do when it was last heard of."""

    url: str | None = None
    records: dict[str, State] = field(default_factory=dict)
    jots: list[str] = field(default_factory=list)
    shown: str = ""
    in_flight: dict[int, dict[str, State]] = field(default_factory=dict)
    acknowledged: int = 0
    last: list[Any] = field(default_factory=list)

    def hear(self, pid: int, lines: list[dict[str, Any]]) -> int:
        """Take in what a process said; how many acknowledgements that was."""
        before = self.acknowledged
        for line in lines:
            self.last = [*self.last[-20:], (pid, line)]
            if "begin" in line:
                self.in_flight[pid] = line["after"]
            elif "ack" in line:
                self.in_flight.pop(pid, None)
                self.records |= line["ack"]
                self.shown = line["shown"]
                self.jots += [line["jot"]] if line["jot"] else []
                self.acknowledged += 1
        return self.acknowledged - before

    def check(self, root: Path) -> None:
        """Open the memory, and see that everything promised is there, and everything else agrees with it."""
        path = root / "u1" / "MEMORY.md"
        raw = path.read_bytes() if path.exists() else None
        if raw is not None:
            self._check_whole(raw.decode("utf-8"))
            if not self.in_flight and self.shown:
                assert hashlib.sha256(raw).hexdigest() == self.shown
        with open_memory(root, self.url, max_words=100_000) as app:
            memory = app.user("u1")
            _written(memory.say("The first one creates the files", session="s"))
            stored = {record.id: record for record in memory.read(status="all")}
            self._settle(stored)
            for record_id, promised in self.records.items():
                assert record_id in stored, f"{record_id} is lost: {promised}"
                assert state_of(stored[record_id]) == promised, record_id
            # and nothing else has come from anywhere
            assert {r.id for r in stored.values() if r.kind != "message"} == set(self.records)
            check_agreement(memory, root / "u1")
            for jot in self.jots:
                assert f"- {jot}\n" in memory.daily(), "a line of the daily note is lost"
            # the next write cleared away what the dead left
            assert not list((root / "u1").rglob("*.new")), "a file written aside was left behind"
            self.shown = hashlib.sha256(path.read_bytes()).hexdigest()

    def _check_whole(self, text: str) -> None:
        """Every line of MEMORY.md is a heading, empty, or the whole of something somebody said."""
        said = {state[2] for state in self.records.values()}
        for after in self.in_flight.values():
            said |= {state[2] for state in after.values()}
        for item in lines_of(text):
            assert item in said or item.partition(": ")[2] in said, f"a torn line: {item!r}"
        others = [line for line in text.splitlines() if line and not line.startswith("- ")]
        assert [line for line in others if line != "## Reading History"] == _HEADINGS
        assert text.endswith("\n")

    def _settle(self, stored: dict[str, Record]) -> None:
        """What was in flight when a process died has happened, or it has not; never a part of it."""
        by_content = {record.content: record for record in stored.values()}
        for after in self.in_flight.values():
            happened = {}
            for ref, wanted in after.items():
                record = stored.get(ref) or by_content.get(ref)
                happened[ref] = (
                    record is not None
                    and state_of(record) == wanted
                    and (record.id not in self.records or self.records[record.id] != wanted)
                )
            assert len(set(happened.values())) <= 1, f"half an operation: {happened}"
            if all(happened.values()):
                self.records |= {
                    record.id: wanted for ref, wanted in after.items() if (record := stored.get(ref) or by_content[ref])
                }
        self.in_flight = {}


def check_agreement(memory: Memory, folder: Path) -> None:
    """Database, journal and files say the same."""
    assert memory.verify() == []
    assert [entry.seq for entry in memory.history()] == list(range(1, len(memory.history()) + 1))
    facts = [r for r in memory.read(kind="fact") if isinstance(r, Fact) and r.tier == "file"]
    lines = Counter(lines_of((folder / "MEMORY.md").read_bytes().decode("utf-8")))
    contents = [fact.content for fact in facts]
    assert lines.total() == len(facts)
    for fact in facts:
        assert any(line == fact.content or line.endswith(f": {fact.content}") for line in lines), fact
    assert len(set(contents)) == len(contents)


def _written(outcome: recollect.Outcome) -> Record:
    assert isinstance(outcome, recollect.Written), outcome
    return outcome.record


# one process, killed at any instant


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str | None:
    """Where the records are: in the folder of the files, or in a database at this address."""
    return str(request.getfixturevalue("postgres_url")) if request.param == "postgres" else None


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Path:
    """In memory, where more fits into the time, unless the disk is asked for, where a commit takes longer."""
    where = "on_disk" if getattr(request, "param", "memory") == "disk" else "tmp_path"
    folder: Path = request.getfixturevalue(where)
    return folder


_PARTS = [("sqlite", "disk", 1, 4), ("sqlite", "memory", 1, 9), ("postgres", "memory", 1, 3)]
"""Where, how many times in the everyday run, and how many times in the long one."""


@pytest.mark.parametrize(
    ("url", "folder", "part"),
    [
        pytest.param(url, folder, part, marks=[pytest.mark.slow] if part >= everyday else [])
        for url, folder, everyday, parts in _PARTS
        for part in range(parts)
    ],
    indirect=["url", "folder"],
)
def test_F8_a_kill_at_any_instant_loses_nothing(spawner: Spawner, folder: Path, url: str | None, part: int) -> None:
    seed = _SEED + part
    print(f"RECOLLECT_SEED={_SEED} part {part}")
    chance = random.Random(seed)
    promised = Promised(url)
    for life in range(volume(7, 20)):
        # in some lives MEMORY.md is so short that every few writes something is pruned from it
        words = chance.choice([80, 300, 100_000])
        worker = spawner.start(
            "write_randomly", root=folder, url=url, name=f"w{part}", seed=chance.getrandbits(32), max_words=words
        )
        acknowledgements = chance.choice([0, 1, 2, 3, 5, 8, 13])
        heard = 0
        while heard < acknowledgements:
            heard += promised.hear(worker.pid, worker.lines(30))
            assert not worker.ended
        # the instant itself: at once, or somewhere within the next two operations or so
        moment = time.perf_counter() + chance.choice([0, 0, chance.uniform(0, 0.002), chance.uniform(0, 0.012)])
        while time.perf_counter() < moment:
            promised.hear(worker.pid, worker.lines(moment - time.perf_counter()))
        promised.hear(worker.pid, worker.kill())
        try:
            promised.check(folder)
        except BaseException as error:
            told = "\n".join(map(str, promised.last[-6:]))
            error.add_note(f"RECOLLECT_SEED={_SEED} part {part} life {life}; the last lines:\n{told}")
            raise


# several processes


@pytest.mark.everyday(1)
@pytest.mark.parametrize(
    ("url", "writers"),
    [
        ("sqlite", 4),
        ("postgres", 2),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in [("sqlite", 2), ("postgres", 4)]),
    ],
    indirect=["url"],
)
def test_F8_killing_one_of_several_writers_loses_nothing_of_any(
    spawner: Spawner, folder: Path, url: str | None, writers: int
) -> None:
    seed = _SEED + 100 + writers
    print(f"RECOLLECT_SEED={_SEED} writers {writers}")
    chance = random.Random(seed)
    promised = Promised(url)
    names = iter(range(10_000))

    def start() -> Worker:
        words = chance.choice([300, 100_000])
        return spawner.start(
            "write_randomly",
            root=folder,
            url=url,
            name=f"p{next(names)}",
            seed=chance.getrandbits(32),
            max_words=words,
            edits=False,
        )

    try:
        for _ in range(volume(1, 2)):
            crew = [start() for _ in range(writers)]
            for _ in range(volume(3, 6)):
                _until_acknowledged(promised, crew, chance.randint(3, 12))
                victim = crew.pop(chance.randrange(len(crew)))
                promised.hear(victim.pid, victim.kill())
                # the lock of the dead is free at once: all others go on, long before a time-out
                _until_each_acknowledged(promised, crew)
                crew.append(start())
            for worker in crew:
                promised.hear(worker.pid, worker.kill())
            promised.shown = ""  # which of them was last is not known
            promised.check(folder)
    except BaseException as error:
        told = "\n".join(map(str, promised.last[-12:]))
        error.add_note(f"RECOLLECT_SEED={_SEED} writers {writers}; the last lines:\n{told}")
        raise


def _until_acknowledged(promised: Promised, crew: list[Worker], number: int) -> None:
    deadline = time.monotonic() + 120
    while number > 0:
        assert time.monotonic() < deadline, "the others do not get on"
        for worker in crew:
            number -= promised.hear(worker.pid, worker.lines(0.002))
            assert not worker.ended


def _until_each_acknowledged(promised: Promised, crew: list[Worker]) -> None:
    deadline = time.monotonic() + 120
    waiting = list(crew)
    while waiting:
        assert time.monotonic() < deadline, "a process waits for the lock of a dead one"
        for worker in crew:
            if promised.hear(worker.pid, worker.lines(0.002)) and worker in waiting:
                waiting.remove(worker)


# every point


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with something of everything."""
    root = tmp_path_factory.mktemp("template")
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.remember("Likes tea")
        memory.remember("Was once a zebra keeper", key="zebra")
        memory.remember("Lviv", key="city")
        memory.jot("Fed the zebra", day="2026-02-12")
        memory.jot("Rode a train", day="2026-02-11")
        memory.note("A note about nothing in particular")
        memory.update("zebra", "A zebra called Max")
        memory.remember("Engineer", key="role")
        memory.update("role", "Architect")
        shutil.move(memory.export(f"{root}.zip"), root / "archive.zip")
        private = app.user("u4")
        private.remember("Likes tea")
        private.remember("Owes money to Max")
        private.erase(private.search("money")[0].record.id)
        private.jot("Took a plane")
        private.pause()
    return root


def _dump(root: Path, user: str = "u1") -> tuple[object, ...]:
    """All that a person could notice of a memory."""
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user(user)
        records = sorted((r.kind, r.status, r.key or "", r.content) for r in memory.read(status="all"))
        notes = {day.isoformat(): memory.daily(day) for day in memory.days()}
        entries = [(e.op, e.erased) for e in memory.history()]
        problems = memory.verify()
        assert problems == []
        return records, memory.show(), notes, memory.mode, entries


def _perform(spawner: Spawner, root: Path, operation: str, point: int, warm: bool) -> tuple[str | None, bool]:
    worker = spawner.start("perform", root=root, operation=operation, point=point, warm=warm)
    lines = worker.rest()
    worker.close()
    names = [line["point"] for line in lines if "point" in line]
    return (names[0] if names else None), any("done" in line for line in lines)


def _next_write(root: Path, user: str) -> None:
    with recollect.open(root, clock=FrozenClock()) as app:
        app.user(user).say("Life goes on", session="s")


def _check_next_write(work: Path, copy: Path, user: str, where: str) -> None:
    """Whatever the next write is, it works, and clears away what the dead one left."""
    shutil.copytree(work, copy)
    _next_write(copy, user)
    assert not list((copy / user).rglob("*.new")), where
    shutil.rmtree(copy)


_USERS = {"import": "u2", "first_write": "u3", "rebuild": "u4"}
_REMOVING = {"erase": ("A zebra called", "zebra keeper"), "erase_topic": ("zebra", "Fed the"),
             "clear": ("zebra", "Architect", "train"), "erase_user": ("zebra", "Architect", "train")}  # fmt: skip


def _but_rebuilds(dump: tuple[Any, ...]) -> list[Any]:
    """Without the journal's word that a database was rebuilt: it may have been twice."""
    return [[row for row in part if row != ("rebuild", False)] if isinstance(part, list) else part for part in dump]


_EVERY_POINT = ("remember", "edit")
"""What is killed at every point in the everyday run too. All others go through the same write, and are killed at some."""
_LONG = ("clear", "erase", "erase_topic", "erase_user")
"""What has so many points that every ninth tells as much as every third of the others."""
_EVERY = [
    pytest.param(name, warm, stride, marks=[] if is_everyday else [pytest.mark.slow])
    for name in sorted(operations())
    for warm, stride, is_everyday in (
        (False, 1, name in _EVERY_POINT),
        (False, 9 if name in _LONG else 3, name not in _EVERY_POINT),
        (True, 1, False),
    )
    if (stride == 1 or is_everyday) and not (warm and name in _USERS)
]


@pytest.mark.everyday(6)
@pytest.mark.parametrize(("operation", "warm", "stride"), _EVERY)
def test_F8_a_kill_at_every_point_of_an_operation_leaves_it_done_or_not_done(
    spawner: Spawner, template: Path, folder: Path, operation: str, warm: bool, stride: int
) -> None:
    user = _USERS.get(operation, "u1")
    work = folder / "work"
    shutil.copytree(template, work)
    before = _dump(work, user)
    _, done = _perform(spawner, work, operation, 0, warm)
    assert done
    after = _dump(work, user)
    assert after != before
    seen: list[str] = []
    for point in range(1, 200, stride):
        shutil.rmtree(work)
        shutil.copytree(template, work)
        name, done = _perform(spawner, work, operation, point, warm)
        if done:
            break
        assert name is not None
        seen.append(name)
        where = f"killed at point {point} of {operation}: {name}"
        try:
            _check_next_write(work, folder / "copy", user, where)
        except StoreCorruptError as error:  # a rebuild that was killed in between asks to be repeated
            assert operation == "rebuild" and "recollect rebuild" in str(error), where
            shutil.rmtree(folder / "copy")
        now = None if operation == "rebuild" else _dump(work, user)
        if operation == "rebuild":
            # its only promise is that one more attempt completes it, with all that the damaged database knew
            assert _perform(spawner, work, operation, 0, warm)[1], where
            assert _but_rebuilds(_dump(work, user)) == _but_rebuilds(after), where
        elif now != after:
            assert now == before, where
            assert _perform(spawner, work, operation, 0, warm)[1], where  # it can simply be done again
            assert _dump(work, user) == after, where
        _next_write(work, "u5" if operation == "erase_user" else user)
        for trace in _REMOVING.get(operation, ()):
            for path in work.rglob("*"):
                if path.is_file() and path.name != "archive.zip":
                    assert trace.encode() not in path.read_bytes(), f"{where}: {trace!r} is still in {path}"
    assert done, "there is no end to it"
    if stride > 1:
        assert len(seen) > 2, seen
        return
    assert any(name.startswith("after rename u1" if operation == "erase_user" else "after COMMIT") for name in seen), (
        seen
    )
    if operation not in ("note", "pause", "erase_user", "edit", "rebuild"):
        moved = any("exchange" in name or name.startswith("after move") for name in seen)
        assert moved and "in the middle of write" in seen, seen
