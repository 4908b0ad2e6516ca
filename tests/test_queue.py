"""The queues keep the contract, and what only a file or a server can get wrong."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import InvalidInputError, QueueFullError, StoreCorruptError, StoreError, StoreUnavailableError
from recollect.store.postgres import PostgresStore
from recollect.testing import FrozenClock
from recollect.testing.queue import TemporaryQueue
from recollect.times import utc_now
from recollect.work.contract import Done, FailedAttempt, Lease, Outcome, Queue, Retention, Returned
from recollect.work.distributed import DistributedQueue
from recollect.work.embedded import EmbeddedQueue
from tests.contracts.queue_contract import Make, QueueContract, drain, take, take_one, task
from tests.fakes.queue import MemoryQueue
from tests.volume import volume


class TestMemoryQueue(QueueContract):
    @pytest.fixture
    def make(self) -> Make:
        first: list[MemoryQueue] = []

        def make(**values: Any) -> Queue:
            if not first:
                first.append(MemoryQueue(**values))
            return first[0]

        return make


def test_a_temporary_queue_goes_when_it_is_closed() -> None:
    with TemporaryQueue() as queue:
        queue.put(task("a"))
        assert [lease.job.name for lease in take(queue)] == ["a"]
        folder = queue._file.path.parent
        assert folder.is_dir()
    assert not folder.exists()


class TestEmbeddedQueue(QueueContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Iterator[Make]:
        with ExitStack() as stack:
            yield lambda **values: stack.enter_context(EmbeddedQueue(tmp_path / "memory", **values))


Open = Callable[..., DistributedQueue]


@pytest.fixture
def connect(postgres_url: str) -> Iterator[Open]:
    """Opens queues on the database of this test, and closes them in the end."""
    with ExitStack() as stack:
        yield lambda url=postgres_url, **values: stack.enter_context(DistributedQueue(url, **values))


class TestDistributedQueue(QueueContract):
    @pytest.fixture
    def make(self, connect: Open) -> Make:
        return connect


def test_W5_all_queues_do_the_same(tmp_path: Path, connect: Open) -> None:
    """Many things done at random, to each of the queues: whatever it is, they agree."""
    seed = int(os.environ.get("RECOLLECT_SEED") or random.SystemRandom().getrandbits(32))
    print(f"RECOLLECT_SEED={seed}")
    chance, clock = random.Random(seed), FrozenClock()
    retention = Retention(done=timedelta(minutes=5), once=timedelta(minutes=20), dead=timedelta(minutes=10))
    given: dict[str, Any] = {"clock": clock, "size": 30, "retention": retention}
    with EmbeddedQueue(tmp_path, **given) as embedded:
        sides = [Side(queue) for queue in (MemoryQueue(**given), embedded, connect(**given))]
        for step in range(volume(80, 250)):
            act, number, user = chance.choice(ACTS), chance.randrange(1000), chance.choice(["u1", "u2", "u3", None])
            told = [act(side, number, user) for side in sides]
            assert told[0] == told[1] == told[2], f"step {step}: {act.__name__}"
            states = [side.states() for side in sides]
            assert states[0] == states[1] == states[2], f"step {step}: {act.__name__}"
            clock.tick(seconds=chance.choice([0, 0, 0, 1, 20]))


class Side:
    """One of several queues, whose jobs and leases are known by the order in which they came."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.ids: list[str] = []
        self.leases: list[Lease] = []

    def names(self, ids: Iterable[str]) -> list[int]:
        return sorted(self.ids.index(job_id) for job_id in ids)

    def states(self) -> list[Any]:
        jobs = [self.queue.job(job_id) for job_id in self.ids[-30:]]
        return [None if job is None else replace(job, id="") for job in jobs] + [
            self.queue.depth(),
            self.queue.next_at(),
        ]


def act_put(side: Side, number: int, user: str | None) -> object:
    keys = {"key": f"k{number % 5}", "once": number % 2 == 0} if number % 3 == 0 else {}
    later = {"run_at": side.queue.now() + timedelta(seconds=number % 60)} if number % 7 == 0 else {}
    one = task(f"n{number % 3}", user_id=user, priority=number % 4, max_attempts=number % 3 + 1, **keys, **later)
    try:
        put = side.queue.put_many([one] * (number % 2 + 1))
    except QueueFullError:
        return "full"
    side.ids += [accepted.id for accepted in put if accepted.fresh]
    return [(accepted.fresh, accepted.id in side.ids) for accepted in put]


def act_take(side: Side, number: int, user: str | None) -> object:
    only = ["n0", "n1"] if number % 5 == 0 else None
    leases = side.queue.take(f"worker {number % 3}", number % 6, names=only, seconds=number % 90).leases
    side.leases += leases
    return [(side.ids.index(lease.job.id), lease.fence, lease.job.attempts) for lease in leases]


def act_settle(side: Side, number: int, user: str | None) -> object:
    some = side.leases[-(number % 8 + 1) :]
    kinds: list[Callable[[Lease], Outcome]] = [
        lambda one: Done(one, number),
        lambda one: FailedAttempt(one, "E", number % 30),
        lambda one: FailedAttempt(one, "F"),
        Returned,
    ]
    return side.names(side.queue.settle([kinds[(number + at) % 4](lease) for at, lease in enumerate(some)]))


def act_renew(side: Side, number: int, user: str | None) -> object:
    return side.names(side.queue.renew(side.leases[-(number % 5) :], number % 60))


def act_recover(side: Side, number: int, user: str | None) -> object:
    return side.queue.recover(f"worker {number % 4}", side.leases[-10:])


def act_operate(side: Side, number: int, user: str | None) -> object:
    dead = side.queue.dead(user_id=user, limit=5)
    if number % 10 == 0:
        return side.queue.tidy()
    if number % 10 == 1:
        return side.queue.erase_user(user or "u9")
    if dead and number % 2:
        try:
            return replace(side.queue.retry(dead[0].id), id="")
        except InvalidInputError:
            return "refused"
    if side.ids and number % 3 == 0:
        return side.queue.drop(side.ids[number % len(side.ids)])
    return side.names(job.id for job in dead)


ACTS = [act_put, act_put, act_put, act_take, act_take, act_settle, act_settle, act_renew, act_recover, act_operate]


# a file


def test_W2_a_queue_in_a_folder_survives_its_process(tmp_path: Path) -> None:
    put = EmbeddedQueue(tmp_path).put(task(payload={"n": 1}))
    queue = EmbeddedQueue(tmp_path)
    assert take_one(queue).job.id == put.id


def test_W2_what_is_done_or_erased_is_in_no_file(tmp_path: Path) -> None:
    queue = EmbeddedQueue(tmp_path)
    queue.put_many([task(user_id="u1", payload={"text": "zebra"}), task(user_id="u1", payload={"text": "zebra"})])
    queue.settle([Done(take_one(queue), "the zebra result")])
    queue.erase_user("u1")
    for path in tmp_path.iterdir():
        assert b"zebra" not in path.read_bytes(), path.name


def test_W2_a_damaged_queue_names_its_file_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "queue.db").write_bytes(b"this is not a database" * 100)
    with pytest.raises(StoreCorruptError, match=r"queue\.db.*memories are not.*move it away"):
        EmbeddedQueue(tmp_path).put(task())


def test_W2_a_queue_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    EmbeddedQueue(tmp_path).put(task())
    db = sqlite3.connect(tmp_path / "queue.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="newer"):
        EmbeddedQueue(tmp_path).depth()


_FORKS = """
import os, sys
from pathlib import Path
from recollect.work.contract import Task
from recollect.work.worker import Worker
from {module} import {cls} as Opened

queue = Opened({where})
queue.put(Task(name="t", payload={{"by": "parent, before"}}))
done = []
ran = []
with Worker(queue, {{"t": lambda job: ran.append(job.payload["by"])}}, concurrency=2) as worker:
    for number in range(5):
        pid = os.fork()
        if not pid:
            try:
                put = queue.put(Task(name="t", payload={{"by": f"child {{number}}"}}))
                own = queue.put(Task(name="own", payload={{}}))
                with Worker(queue, {{"own": lambda job: "child"}}):
                    assert queue.wait(own.id, 60).result == "child"
                assert worker.stop(0) is True  # here it was never started
                assert queue.wait(put.id, 60).state == "done"  # by the parent
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
    last = queue.put(Task(name="t", payload={{"by": "parent, after"}}))
    assert queue.wait(last.id, 60).state == "done"
queue.close()
assert sorted(ran) == [*(f"child {{n}}" for n in range(5)), "parent, after", "parent, before"], ran
"""


def _run(script: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_W5_parent_and_child_of_a_fork_share_a_file(tmp_path: Path) -> None:
    _run(_FORKS.format(module="recollect.work.embedded", cls="EmbeddedQueue", where=f"Path({str(tmp_path)!r})"))


def test_W5_parent_and_child_of_a_fork_share_a_database(postgres_url: str) -> None:
    _run(_FORKS.format(module="recollect.work.distributed", cls="DistributedQueue", where=repr(postgres_url)))


# a server


def test_W2_a_job_and_the_record_it_follows_are_one_transaction(postgres_url: str, connect: Open) -> None:
    import psycopg

    queue = connect()
    queue.prepare()
    with psycopg.connect(postgres_url) as db:
        db.execute("CREATE TABLE facts (n integer)")
        queue.put_within(db, [task("lost")])
        db.rollback()
    with psycopg.connect(postgres_url) as db:
        db.execute("CREATE TABLE facts (n integer)")
        queue.put_within(db, [task("kept")])
        assert take(queue) == ()
    assert drain(queue) == ["kept"]


def test_W2_a_job_can_be_put_within_a_write_of_the_store(postgres_url: str, connect: Open) -> None:
    store, queue = PostgresStore(postgres_url), connect(size=3)
    queue.prepare()
    with store.user("u1").write() as tx:
        queue.put_within(tx.db, [task("a", user_id="u1"), task("a", key="k"), task("a", key="k")])  # a pipeline
    with pytest.raises(QueueFullError), store.user("u1").write() as tx:
        queue.put_within(tx.db, [task("b"), task("b")])
    assert drain(queue) == ["a", "a"]
    store.close()


def test_W2_many_processes_may_be_the_first(postgres_url: str, connect: Open) -> None:
    queues = [connect() for _ in range(6)]
    barrier = threading.Barrier(6)
    errors: list[BaseException] = []

    def put(queue: DistributedQueue) -> None:
        barrier.wait(60)
        try:
            queue.put(task())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=put, args=(queue,)) for queue in queues]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == [] and queues[0].depth()["ready"] == 6


def test_W5_a_schema_that_is_not_there_is_made(postgres_url: str, connect: Open) -> None:
    url = postgres_url.replace("search_path%3D", "search_path%3Dnew_one_").replace("%2Cpublic", "")
    connect(url).put(task())
    store = PostgresStore(url)
    assert list(store.users()) == []
    with store.user("u1").write():
        pass
    store.close()
    assert connect(url).depth()["ready"] == 1


def test_W2_a_database_of_a_newer_version_is_left_alone(postgres_url: str, connect: Open) -> None:
    import psycopg

    connect().put(task())
    with psycopg.connect(postgres_url) as db:
        db.execute("INSERT INTO memory_jobs_migrations (version) VALUES (99)")
    with pytest.raises(StoreError, match="newer"):
        connect().depth()


def test_W2_a_server_that_cannot_be_reached_is_an_error_of_the_operators(postgres_url: str, connect: Open) -> None:
    queue = connect("postgresql://127.0.0.1:1/nowhere")
    with pytest.raises(StoreUnavailableError):
        queue.put(task())


def test_W2_the_servers_clock_counts(postgres_url: str, connect: Open) -> None:
    import psycopg

    queue = connect()
    put = queue.put(task())
    with psycopg.connect(postgres_url) as db:
        row = db.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
    assert row is not None
    job = queue.job(put.id)
    assert job is not None and abs(job.created_at.timestamp() - float(row[0])) < 60
    queue.recover()  # sets it anew


def test_W2_the_servers_clock_counts_for_the_queue_of_an_app_too(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def an_hour_late() -> datetime:
        return utc_now() - timedelta(hours=1)

    monkeypatch.setattr("recollect.work.distributed.utc_now", an_hour_late)  # the clock of this machine, as it were
    with DistributedQueue(postgres_url, clock=an_hour_late) as queue:
        job = queue.job(queue.put(task()).id)
        assert job is not None and abs(job.created_at - utc_now()) < timedelta(minutes=30)


def test_W2_no_error_of_the_database_quotes_what_was_put(postgres_url: str, connect: Open) -> None:
    import psycopg

    queue = connect()
    queue.prepare()
    with psycopg.connect(postgres_url) as db:
        db.execute("ALTER TABLE memory_jobs ADD CHECK (length(payload) < 50)")
    with pytest.raises(StoreError) as caught:
        queue.put(task(payload={"text": "zebra" * 20}))
    assert "zebra" not in json.dumps([str(caught.value), repr(caught.value.__cause__)])
