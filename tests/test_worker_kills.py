"""Nights of learning for a host with a dozen users, by two workers that are killed again and again.

What comes of it is what comes of nights without kills. A failure names its seed: ``RECOLLECT_SEED=…`` repeats the same
choices of moments, ``RECOLLECT_NIGHTS=…`` makes more nights of it.
"""

from __future__ import annotations

import json
import multiprocessing.forkserver
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from typer.testing import CliRunner

from recollect import Memory
from recollect.surfaces.cli import work as _commands  # noqa: F401
from recollect.surfaces.cli.program import app as program
from recollect.work.contract import LEASE_SECONDS, Queue, Task
from recollect.work.jobs import EXTRACT, conclude_task, schedule
from tests import nightly_worker
from tests.nightly_worker import (
    BROKEN,
    EVERYONE,
    INCOGNITO,
    NIGHTS,
    PAUSED,
    READERS,
    TOLD,
    Host,
    evening,
    lived,
    marker,
    now,
    sessions,
    set_clock,
)

_SEED = int(os.environ.get("RECOLLECT_SEED") or random.SystemRandom().getrandbits(32))
_KILLS = 4
"""In a night: one less than the attempts of a job, so that none is given up for the kills alone."""
_BEFORE, _EXTRACTION = timedelta(hours=2, minutes=59, seconds=50), timedelta(hours=3, seconds=5)
"""From the evening until the schedule has something to do."""
_LEASE = timedelta(seconds=LEASE_SECONDS + 1)
_PATIENCE = 120.0
"""How long to wait for what must happen, in seconds; nothing is asserted about how fast it was."""

Content = tuple[Any, ...]


def content_of(memory: Memory) -> Content:
    """What a memory holds, without ids and times."""
    records = Counter(
        (one.kind, one.key, one.category, one.content, one.status, one.trusted, one.confidence, one.source)
        for one in memory.read(status="all")
    )
    notes = [memory.daily(day).splitlines() for day in memory.days()]
    runs = Counter(
        (
            one.kind,
            one.day,
            one.status,
            one.tier,
            one.interactions_processed,
            one.memories_written,
            one.memories_updated,
        )
        for one in memory.runs(limit=None)
    )
    changes = Counter((entry.op, entry.actor) for entry in memory.history(limit=10_000) if entry.actor != "upkeep")
    return records, notes, runs, changes, memory.show().splitlines()


@dataclass
class Nights:
    """Some nights of a host."""

    root: Path
    url: str
    kills: int
    freezes: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(_SEED))
    killed: int = 0

    def __post_init__(self) -> None:
        self.root.mkdir()
        set_clock(self.root, evening(0))
        self._workers: list[BaseProcess] = []

    def pass_by(self, nights: int) -> None:
        """Everyone lives, the workers learn, and are killed meanwhile."""
        with self.host() as app, app.queue() as queue:
            schedule(queue, app.config).tick()  # the first time: nothing was missed
            for user in EVERYONE:
                app.user(user).remember("Kyoto", key="origin", category="personal_context")
            try:
                self._workers = [self._begin(), self._begin()]
                for night in range(nights):
                    self._pass(app, queue, night)
            finally:
                for worker in self._workers:
                    worker.kill()
                    worker.join(_PATIENCE)

    def _pass(self, app: Host, queue: Queue, night: int) -> None:
        for user in EVERYONE:
            app.user(user).resume()
        self._set_clock(queue, evening(night))
        if night:
            self._upkeep(queue, night)
        for user in EVERYONE:
            lived(app.user(user), night)
        app.user(PAUSED).pause()
        app.user(INCOGNITO).pause(incognito=True)
        self._set_clock(queue, evening(night) + _BEFORE)
        queue.put_many([conclude_task(user, one) for one in sessions(night) for user in (*READERS, PAUSED, INCOGNITO)])
        self._set_clock(queue, evening(night) + _EXTRACTION)
        for _ in range(self.freezes):
            self._freeze()
        left = self.kills
        while left:
            left -= self._kill(left)
        self._learn(queue, night)

    def _upkeep(self, queue: Queue, night: int) -> None:
        """What the schedule has for the early morning."""
        if self.kills:
            self._kill(2)
        for _ in _patiently():
            slot = queue.slot("upkeep")
            if slot is not None and slot.date() == evening(night).date() and _nothing_left(queue):
                return
        raise AssertionError(f"still there: {queue.depth()}")

    def _learn(self, queue: Queue, night: int) -> None:
        """Until nothing is left to do. The one who fails is tried again as time passes, until that is given up."""
        day = evening(night).date().isoformat()
        for _ in _patiently():
            if _nothing_left(queue):
                if any(job.payload["day"] == day for job in queue.dead()):
                    return
            elif queue.depth() | {"done": 0, "dead": 0} == {"ready": 1, "running": 0, "done": 0, "dead": 0}:
                due = queue.next_at()
                if due is not None and due > queue.now():
                    self._set_clock(queue, due)
        raise AssertionError(f"still there: {queue.depth()}")

    def _set_clock(self, queue: Queue, moment: datetime) -> None:
        """Never by as much as a lease while something is being done: who holds it would be taken for dead."""
        set_clock(self.root, moment)
        queue.drop(queue.put(Task(name="look at the clock")).id)  # nobody can do it, but all look

    def _kill(self, most: int) -> int:
        """One of them, or now and then both, at a random instant; gives how many."""
        self._workers[0].join(self.chance.uniform(0, 0.25))  # which does not end by itself
        victims = self.chance.choice(([0], [1], [0, 1]))[:most]
        for victim in victims:
            dying = self._workers[victim]
            assert dying.is_alive()
            with (self.root / TOLD).open("ab", buffering=0) as told:
                told.write(f"{dying.pid} killed\n".encode())
            dying.kill()
            dying.join(_PATIENCE)
            self._workers[victim] = self._begin()
        self.killed += len(victims)
        return len(victims)

    def _freeze(self) -> None:
        """One of them stands still for longer than its leases last, and then goes on as if nothing had happened."""
        frozen, other = self.chance.sample(self._workers, 2)
        other.join(self.chance.uniform(0, 0.25))
        assert frozen.pid is not None
        os.kill(frozen.pid, signal.SIGSTOP)
        set_clock(self.root, now(self.root) + _LEASE)
        other.join(self.chance.uniform(0, 1.2))  # takes over, if it is not held up by a lock of the other
        os.kill(frozen.pid, signal.SIGCONT)

    def _begin(self) -> BaseProcess:
        begun: BaseProcess = _processes().Process(target=nightly_worker.main, args=(str(self.root), self.url))
        begun.start()
        return begun

    @contextmanager
    def host(self, *, mended: bool = False) -> Iterator[Host]:
        app = Host(self.root, self.url, mended=mended)
        with app:
            yield app

    def told(self) -> list[list[str]]:
        """What the workers told, a list of words for each line."""
        return [line.split() for line in (self.root / TOLD).read_text("utf-8").splitlines()]


@pytest.fixture(scope="module", autouse=True)
def nursery() -> Iterator[None]:
    """A process of our own that workers are forked from: one that another test began has not loaded what they need."""
    forkserver: Any = multiprocessing.forkserver
    forkserver._forkserver._stop()
    yield
    forkserver._forkserver._stop()


def _processes() -> Any:
    """Processes forked in milliseconds from one that has loaded everything and has no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.nightly_worker", "psycopg"])
    return context


def _patiently() -> Iterator[None]:
    pause = Event()
    for _ in range(int(_PATIENCE / 0.01)):
        pause.wait(0.01)
        yield


def _nothing_left(queue: Queue) -> bool:
    depth = queue.depth()
    return not depth["ready"] and not depth["running"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Content]:
    """What everyone's memory holds after nights in which nobody was killed."""
    nights = Nights(tmp_path_factory.mktemp("undisturbed") / "host", "", kills=0)
    nights.pass_by(NIGHTS)
    with nights.host() as app:
        return {user: content_of(app.user(user)) for user in EVERYONE}


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    print(f"RECOLLECT_SEED={_SEED}")
    return str(request.getfixturevalue("postgres_url")) if request.param == "postgres" else ""


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True)
def test_W2_W5_G3_nights_with_kills_teach_what_nights_without_teach(
    url: str, undisturbed: dict[str, Content], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights = Nights(tmp_path / "host", url, kills=_KILLS)
    nights.pass_by(NIGHTS)
    print(f"{nights.killed} kills")
    with nights.host() as app, app.queue() as queue:
        _check_memories(app, undisturbed)
        _check_told(nights.told())
        _check_private(app, nights)
        _check_dead(queue)
    _check_mended(nights, monkeypatch)


@pytest.mark.parametrize("url", [pytest.param("sqlite", marks=pytest.mark.slow), "postgres"], indirect=True)
@pytest.mark.slow
def test_W2_W5_a_worker_that_stood_still_undoes_and_repeats_nothing(
    url: str, undisturbed: dict[str, Content], tmp_path: Path
) -> None:
    nights = Nights(tmp_path / "host", url, kills=0, freezes=1)
    nights.pass_by(NIGHTS)
    with nights.host() as app, app.queue() as queue:
        _check_memories(app, undisturbed)
        _check_private(app, nights)
        _check_dead(queue)


def _check_memories(app: Host, undisturbed: dict[str, Content]) -> None:
    """The same as without kills; each day and each discussion was learned from once."""
    days = sorted(evening(night).date() for night in range(NIGHTS))
    for user in READERS:
        memory = app.user(user)
        assert content_of(memory) == undisturbed[user], user
        assert memory.verify() == []
        runs = memory.runs(limit=None)
        assert sorted(run.day for run in runs if run.kind == "batch") == days
        assert {run.status for run in runs} == {"completed"}
        talks = [run.kind for run in runs if run.kind != "batch"]
        assert sorted(talks) == sorted(f"discussion:{one}" for night in range(NIGHTS) for one in sessions(night))
        others = [marker(other) for other in EVERYONE if other != user]
        assert not [word for word in others if word in memory.show() + str(memory.read(status="all"))]
        # nothing was read twice, and nothing left out
        read = sum(run.interactions_processed for run in runs if run.kind == "batch")
        assert read == len(memory.read(kind="message")) + len(memory.interactions()) == 8 * NIGHTS


def _check_told(told: list[list[str]]) -> None:
    """In order for each user, and never by two at once: who has begun ends, or is killed before another begins."""
    killed: set[str] = set()
    doing: dict[str, str] = {}
    done: dict[str, list[str]] = {user: [] for user in EVERYONE}
    for pid, what, *about in told:
        if what == "killed":
            killed.add(pid)
        elif about[0] == BROKEN:
            continue  # time moves on by as much as a lease while they are waited for
        elif what == "begin":
            user = about[0]
            assert user not in doing or doing[user] in {*killed, pid}, f"{user} is in the hands of two"
            doing[user] = pid
            done[user].append(about[1])
        elif what == "end":
            assert doing.pop(about[0]) == pid
    wanted = [one for night in range(NIGHTS) for one in (*sessions(night), "day")]
    for user in READERS:
        assert list(dict.fromkeys(_numbered(done[user]))) == _numbered(wanted), user


def _numbered(done: list[str]) -> list[tuple[str, int]]:
    """The days told apart: those before the discussions of the next night belong to the same."""
    number, found = 0, []
    for one in done:
        if one != "day":
            number = int(one.rpartition("-")[2])
        found.append((one, number))
    return found


def _check_private(app: Host, nights: Nights) -> None:
    """Whose memory is off is not read, and nothing they said is anywhere but in their own conversation."""
    told = [line for line in nights.told() if line[0] != str(os.getpid())]  # what the workers did
    for user in (PAUSED, INCOGNITO):
        assert [line for line in told if user in line] == []
        memory = app.user(user)
        assert memory.mode == user
        memory.resume()
        assert memory.runs(limit=None) == []
        assert {one.kind for one in memory.read()} == {"fact", "message"}
        assert [one.content for one in memory.read(kind="fact")] == ["Kyoto"]
        assert marker(user) not in memory.show()
        assert marker(user) in str(memory.read(kind="message"))
        holding = [
            path for path in nights.root.rglob("*") if path.is_file() and marker(user).encode() in path.read_bytes()
        ]
        assert {path.parent.name for path in holding} <= {user}, "somebody else has it"
        # as they were
        memory.pause(incognito=user == INCOGNITO)


def _check_dead(queue: Queue) -> None:
    """The one who fails is given up, once for each day, and says nothing of what they said."""
    days = sorted(evening(night).date().isoformat() for night in range(NIGHTS))
    dead = queue.dead()
    assert sorted(job.payload["day"] for job in dead) == days
    assert {(job.user_id, job.name, job.state) for job in dead} == {(BROKEN, EXTRACT, "dead")}
    assert not [job for job in dead if marker(BROKEN) in str(job) or "what broken said" in str(job)]
    assert queue.depth()["ready"] == queue.depth()["running"] == 0


def _check_mended(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator sees them and begins them anew, and then what was missed is learned."""
    monkeypatch.setenv("MEMORY_DATABASE_URL", nights.url)
    root = [] if nights.url else ["--root", str(nights.root / "memories")]
    shown = CliRunner().invoke(program, ["queue", "dead", "--json", *root])
    assert shown.exit_code == 0 and {job["user_id"] for job in json.loads(shown.stdout)} == {BROKEN}
    assert len(json.loads(shown.stdout)) == NIGHTS
    with nights.host() as app:
        runs = app.user(BROKEN).runs(limit=None)
        assert {run.status for run in runs} == {"failed"} and {run.error for run in runs} == {"RuntimeError"}
    again = CliRunner().invoke(program, ["queue", "retry", "--all-dead", *root])
    assert again.exit_code == 0 and f"{NIGHTS} job" in again.stdout
    set_clock(nights.root, datetime.now(timezone.utc))  # which is when the operator was there
    with nights.host(mended=True) as app, app.queue() as queue:
        with app.worker(queue) as worker:
            assert worker.wait_idle(_PATIENCE)
        assert queue.depth()["dead"] == queue.depth()["ready"] == 0
        memory = app.user(BROKEN)
        assert {run.status for run in memory.runs(limit=None) if run.kind == "batch"} == {"completed"}
        assert f"Loves {marker(BROKEN)}{NIGHTS - 1} music" in memory.show()
