"""What a worker does: learning from the day, upkeep, ending discussions; by the clock and on request."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

import recollect
from recollect.agents.extract import Extraction
from recollect.agents.gather_interactions import Gathered
from recollect.errors import ConfigError, StoreError
from recollect.memory.memory import Memory
from recollect.testing import FrozenClock
from recollect.work.contract import Done, Queue, Task
from recollect.work.jobs import Jobs, conclude_task, extract_task, schedule, upkeep_task
from recollect.work.worker import Worker
from tests.fakes.queue import MemoryQueue

DAY = date(2026, 2, 12)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(datetime(2026, 2, 12, 20, 0, tzinfo=timezone.utc))


@pytest.fixture
def app(tmp_path: Path, clock: FrozenClock) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path / "memories", clock=clock) as app:
        yield app


@pytest.fixture
def queue(app: recollect.Recollect) -> Iterator[Queue]:
    with app.queue() as queue:
        yield queue


def _work(app: recollect.Recollect, queue: Queue) -> None:
    """Until all that is due is done."""
    with app.worker(queue, concurrency=2) as working:
        assert working.wait_idle(60)


def test_W3_G3_at_eleven_the_day_of_everyone_is_learned(
    app: recollect.Recollect, queue: Queue, clock: FrozenClock
) -> None:
    for name in ("ann", "bob"):
        app.user(name).say(f"I'm a nurse and I live in {'Oslo' if name == 'ann' else 'Rome'}", session="s")
    schedule(queue, app.config).tick()  # the first time: nothing was missed
    clock.tick(hours=3, seconds=5)
    schedule(queue, app.config).tick()
    _work(app, queue)
    assert app.user("ann").get("location").content == "Oslo"
    assert app.user("bob").get("location").content == "Rome"
    (run,) = [run for run in app.user("ann").runs() if run.kind == "batch"]
    assert (run.day, run.status, run.tier) == (DAY, "completed", "rules")
    before = app.user("ann").history()
    schedule(queue, app.config).tick()
    _work(app, queue)
    assert app.user("ann").history() == before
    assert queue.depth().get("dead", 0) == 0


def test_W3_a_missed_run_is_caught_up_once(app: recollect.Recollect, queue: Queue, clock: FrozenClock) -> None:
    app.user("ann").say("I live in Oslo", session="s")
    schedule(queue, app.config).tick()
    clock.tick(days=3)
    schedule(queue, app.config).tick()
    _work(app, queue)
    assert [run.kind for run in app.user("ann").runs()].count("batch") == 1


def test_W2_a_job_of_a_day_is_put_and_done_once(app: recollect.Recollect, queue: Queue, clock: FrozenClock) -> None:
    app.user("ann").say("I live in Oslo", session="s")
    clock.tick(seconds=1)
    first = queue.put(extract_task("ann", DAY))
    assert not queue.put(extract_task("ann", DAY)).fresh
    _work(app, queue)
    job = queue.job(first.id)
    assert job is not None and job.state == "done" and job.result["written"] == 1
    assert not queue.put(extract_task("ann", DAY)).fresh


def test_G5_a_discussion_is_concluded_by_a_job_and_silent_ones_with_the_day(
    app: recollect.Recollect, queue: Queue, clock: FrozenClock
) -> None:
    memory = app.user("ann")
    memory.say("I'm skeptical about crypto", session="a")
    queue.put(conclude_task("ann", "a", title="Bitcoin again"))
    _work(app, queue)
    assert "Skeptical about crypto" in memory.show()
    assert 'Discussed "Bitcoin again" (1 message, 0 min)' in memory.daily(DAY)
    memory.say("I live in Oslo", session="b")
    clock.tick(seconds=timedelta(minutes=31).total_seconds())
    queue.put(extract_task("ann", DAY))
    _work(app, queue)
    assert {run.kind for run in memory.runs()} == {"batch", "discussion:a", "discussion:b"}


def test_R6_C13_upkeep_is_a_job_that_learns_from_what_expires(tmp_path: Path, clock: FrozenClock) -> None:
    with recollect.open(tmp_path, clock=clock, message_retention_days=30) as app, app.queue() as queue:
        app.user("ann").say("I live in Oslo.", session="s")
        clock.tick(days=40)
        queue.put(upkeep_task("ann"))
        _work(app, queue)
        assert app.user("ann").read(kind="message") == []
        assert "Oslo" in app.user("ann").show()


def test_R6_C13_without_a_retention_messages_stay(app: recollect.Recollect, queue: Queue, clock: FrozenClock) -> None:
    app.user("ann").say("Hello", session="s")
    clock.tick(days=4000)
    queue.put(upkeep_task("ann"))
    _work(app, queue)
    assert len(app.user("ann").read(kind="message")) == 1


def test_W2_one_user_who_fails_does_not_stop_the_others_and_ends_as_a_dead_letter(app: recollect.Recollect) -> None:
    clock = FrozenClock(datetime(2026, 2, 12, 20, 0, tzinfo=timezone.utc))
    queue = MemoryQueue(clock=clock)
    for name in ("ann", "bob"):
        app.user(name).say("I live in Oslo", session="s")

    def failing(memory: Memory, collected: Gathered) -> Extraction:
        if memory.user_id == "ann":
            raise StoreError("the words of ann")
        return Extraction((), (), "test")

    jobs = Jobs(queue, app.user, app.users, extractor=failing, clock=clock)
    put = [queue.put(extract_task(name, DAY)) for name in ("ann", "bob")]
    with Worker(queue, jobs.handlers(), concurrency=2) as working:
        for _ in range(6):
            assert working.wait_idle(60)
            clock.tick(hours=2)
    ann, bob = (queue.job(accepted.id) for accepted in put)
    assert bob is not None and bob.state == "done"
    assert ann is not None and ann.state == "dead" and "words of ann" not in str(ann)
    assert app.user("ann").runs()[0].status == "failed"


def test_W1_a_full_queue_takes_the_rest_later(app: recollect.Recollect, clock: FrozenClock) -> None:
    for number in range(30):
        app.user(f"user-{number}").say("I live in Oslo", session="s")
    queue = MemoryQueue(size=31, clock=clock)
    jobs = Jobs(queue, app.user, app.users, clock=clock)
    for number in range(20):
        queue.put(Task(name="something else", key=str(number)))
    slot = {"slot": "2026-02-12T23:00:00.000000Z", "since": "2026-02-11T23:00:00.000000Z"}
    put = queue.put(Task(name="extract everyone", payload=slot))
    with Worker(queue, jobs.handlers(), concurrency=2) as working:
        assert working.wait_idle(60)
        job = queue.job(put.id)
        assert job is not None and not job.finished and job.error is not None
        for lease in queue.take("elsewhere", 20, names=["something else"]).leases:
            queue.settle([Done(lease)])
        clock.tick(seconds=10)
        assert working.wait_idle(60)
    assert [len(app.user(f"user-{number}").runs()) for number in range(30)] == [1] * 30


def test_U8_a_wrong_schedule_is_refused_by_name(tmp_path: Path) -> None:
    with (
        recollect.open(tmp_path, extraction_schedule="every night") as app,
        app.queue() as queue,
        pytest.raises(ConfigError, match="MEMORY_EXTRACTION_SCHEDULE"),
    ):
        app.worker(queue)


def test_R7_what_waits_for_an_erased_user_goes_too(app: recollect.Recollect, queue: Queue) -> None:
    for name in ("ann", "bob"):
        app.user(name).say("I live in Oslo", session="s")
        queue.put(conclude_task(name, "s", title="A private title"))
    assert app.erase_user("ann").places["jobs"] == 1
    assert queue.depth()["ready"] == 1
    _work(app, queue)
    assert list(app.users()) == ["bob"]
