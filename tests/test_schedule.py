"""Work by the clock: each moment once, what was missed once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import ConfigError, QueueFullError
from recollect.testing import FrozenClock
from recollect.work.contract import Done, Job, Queue
from recollect.work.distributed import DistributedQueue
from recollect.work.embedded import EmbeddedQueue
from recollect.work.schedule import Cron, Schedule, ScheduleEntry
from recollect.work.worker import Worker
from tests.contracts.queue_contract import take, task
from tests.fakes.queue import MemoryQueue

T0 = datetime(2026, 2, 12, 9, 30, tzinfo=timezone.utc)
NIGHTLY = ScheduleEntry(name="nightly", cron=Cron("0 23 * * *"), task="extract", payload={"all": True})
Make = Callable[..., Queue]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Opens the same queue any number of times."""
    with ExitStack() as stack:
        if request.param == "memory":
            only: list[MemoryQueue] = []

            def one(**values: Any) -> Queue:
                only.extend([] if only else [MemoryQueue(**values)])
                return only[0]

            yield one
        elif request.param == "sqlite":
            yield lambda **values: stack.enter_context(EmbeddedQueue(tmp_path, **values))
        else:
            url = request.getfixturevalue("postgres_tables")
            yield lambda **values: stack.enter_context(DistributedQueue(url, **values))


def slots(queue: Queue) -> list[tuple[str, str]]:
    leases = take(queue)
    queue.settle([Done(lease) for lease in leases])
    return [(lease.job.payload["since"], lease.job.payload["slot"]) for lease in leases]


def test_W3_a_job_is_put_at_its_time_and_only_then(make: Make) -> None:
    clock = FrozenClock(T0)
    queue = make(clock=clock)
    schedule = Schedule(queue, [NIGHTLY])
    night = datetime(2026, 2, 12, 23, tzinfo=timezone.utc)
    assert schedule.tick() == night and slots(queue) == []  # the first time ever: nothing was missed
    clock.now = night - timedelta(microseconds=1)
    assert schedule.tick() == night and slots(queue) == []
    clock.now = night
    assert schedule.tick() == night + timedelta(days=1) == schedule.tick()
    [lease] = take(queue)
    assert lease.job.name == "extract" and lease.job.user_id is None
    assert lease.job.payload == {
        "all": True,
        "since": "2026-02-12T09:30:00.000000Z",
        "slot": "2026-02-12T23:00:00.000000Z",
    }


def test_W3_what_was_missed_is_caught_up_once(make: Make) -> None:
    clock = FrozenClock(T0)
    Schedule(make(clock=clock), [NIGHTLY]).tick()
    clock.tick(days=5)  # nothing ran for five nights
    queue = make(clock=clock)
    assert Schedule(queue, [NIGHTLY]).tick() == datetime(2026, 2, 17, 23, tzinfo=timezone.utc)
    assert slots(queue) == [("2026-02-12T09:30:00.000000Z", "2026-02-16T23:00:00.000000Z")]
    clock.tick(days=1)
    Schedule(queue, [NIGHTLY]).tick()
    assert slots(queue) == [("2026-02-16T23:00:00.000000Z", "2026-02-17T23:00:00.000000Z")]


def test_W3_of_many_processes_one_puts_each_moment(make: Make) -> None:
    clock = FrozenClock(T0)
    queue = make(clock=clock)
    schedules = [Schedule(make(clock=clock), [NIGHTLY]) for _ in range(6)]
    schedules[0].tick()
    for _ in range(3):
        clock.tick(days=1)
        barrier = threading.Barrier(6)

        def tick(schedule: Schedule, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(60)
            schedule.tick()

        threads = [threading.Thread(target=tick, args=(schedule,)) for schedule in schedules]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(slots(queue)) == 1


def test_W3_a_full_queue_delays_a_moment_and_does_not_lose_it(make: Make) -> None:
    clock = FrozenClock(T0)
    queue = make(clock=clock, size=1)
    schedule = Schedule(queue, [NIGHTLY])
    schedule.tick()
    queue.put(task())
    clock.tick(days=1)
    with pytest.raises(QueueFullError):
        schedule.tick()
    queue.settle([Done(lease) for lease in take(queue)])
    schedule.tick()
    assert len(slots(queue)) == 1


def test_W3_a_clock_set_back_repeats_nothing(make: Make) -> None:
    clock = FrozenClock(T0)
    queue = make(clock=clock)
    schedule = Schedule(queue, [NIGHTLY])
    schedule.tick()
    clock.tick(days=1)
    schedule.tick()
    assert len(slots(queue)) == 1
    clock.tick(days=-1)
    schedule.tick()
    clock.tick(days=1)
    schedule.tick()
    assert slots(queue) == []


def test_W3_several_entries_keep_their_own_time(make: Make) -> None:
    clock = FrozenClock(T0)
    queue = make(clock=clock)
    hourly = ScheduleEntry(name="prune", cron=Cron("15 * * * *"), task="prune")
    schedule = Schedule(queue, [NIGHTLY, hourly])
    assert schedule.tick() == datetime(2026, 2, 12, 10, 15, tzinfo=timezone.utc)
    clock.tick(hours=1)
    schedule.tick()
    assert [lease.job.name for lease in take(queue)] == ["prune"]


def test_W3_a_worker_ticks_its_schedule(make: Make) -> None:
    clock = FrozenClock(T0)
    queue = make(clock=clock)
    schedule = Schedule(queue, [NIGHTLY])
    schedule.tick()
    clock.tick(days=2)
    done: list[Job] = []
    ran = threading.Event()

    def extract(job: Job) -> None:
        done.append(job)
        ran.set()

    with Worker(queue, {"extract": extract}, schedule=schedule):
        assert ran.wait(60)
    assert [job.payload["slot"] for job in done] == ["2026-02-13T23:00:00.000000Z"]


@pytest.mark.parametrize("wrong", ["", "soon", "0 23 * *", "0 0 23 * * *", "61 * * * *", "0 24 * * *", "0 0 30 2 *"])
def test_W3_a_wrong_expression_is_an_error_that_names_its_setting(wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"MEMORY_EXTRACTION_SCHEDULE is .*0 23 \* \* \*"):
        Cron(wrong, "MEMORY_EXTRACTION_SCHEDULE")


@pytest.mark.parametrize(
    ("expression", "after", "until"),
    [
        ("0 23 * * *", "2026-03-29T23:00", "2026-03-28T23:00"),
        ("30 2 * * *", "2026-03-30T02:30", "2026-03-29T02:30"),  # the hour that summer time skips elsewhere
        ("*/15 * * * *", "2026-03-29T12:15", "2026-03-29T12:00"),
        ("0 12 29 2 *", "2028-02-29T12:00", "2024-02-29T12:00"),
        ("0 0 * * MON", "2026-03-30T00:00", "2026-03-23T00:00"),
    ],
)
def test_W3_moments_are_in_utc(expression: str, after: str, until: str) -> None:
    noon = datetime(2026, 3, 29, 12, tzinfo=timezone.utc)
    cron = Cron(expression)
    assert cron.after(noon) == datetime.fromisoformat(after + ":00+00:00")
    assert cron.until(noon) == datetime.fromisoformat(until + ":00+00:00")


def test_W3_two_entries_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError):
        Schedule(MemoryQueue(), [NIGHTLY, NIGHTLY])
