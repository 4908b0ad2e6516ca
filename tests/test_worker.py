"""The worker: what it does with handlers, stops and outages, and that a kill at any instant loses nothing.

A failure of the kills names its seed; ``RECOLLECT_SEED=…`` repeats the same choices of moments.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import InvalidInputError, StoreUnavailableError
from recollect.testing import FrozenClock
from recollect.testing.postgres import PostgresServer
from recollect.work.contract import GiveUpError, Job, Queue, RetryLaterError, Task
from recollect.work.distributed import DistributedQueue
from recollect.work.embedded import EmbeddedQueue
from recollect.work.lease_owners import is_dead, new_owner
from recollect.work.wakeup import Watcher
from recollect.work.worker import Backoff, Worker, describe
from tests.contracts.queue_contract import finish, take, task
from tests.contracts.recall_contract import until
from tests.fakes.queue import MemoryQueue
from tests.volume import volume

_SEED = int(os.environ.get("RECOLLECT_SEED") or random.SystemRandom().getrandbits(32))
_AT_ONCE = Backoff(first=0.0)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Queue]:
    with ExitStack() as stack:
        if request.param == "memory":
            yield MemoryQueue()
        elif request.param == "sqlite":
            yield stack.enter_context(EmbeddedQueue(tmp_path))
        else:
            yield stack.enter_context(DistributedQueue(request.getfixturevalue("postgres_tables")))


def ended(queue: Queue, job_id: str) -> Job:
    job = queue.wait(job_id, 60)
    assert job is not None and job.finished
    return job


# handlers


def test_W2_a_handler_gets_the_job_and_its_result_is_kept(queue: Queue) -> None:
    with Worker(queue, {"add": lambda job: {"sum": job.payload["a"] + job.payload["b"], "attempt": job.attempts}}):
        put = queue.put(task("add", user_id="u1", payload={"a": 1, "b": 2}))
        assert ended(queue, put.id).result == {"sum": 3, "attempt": 1}


def test_W2_what_fails_is_tried_again_and_then_dead(queue: Queue) -> None:
    attempts: list[int] = []

    def fail(job: Job) -> None:
        attempts.append(job.attempts)
        raise ValueError("something about zebras")

    with Worker(queue, {"fail": fail}, backoff=_AT_ONCE):
        job = ended(queue, queue.put(task("fail", max_attempts=3)).id)
    assert attempts == [1, 2, 3] and job.state == "dead"
    assert job.error is not None and job.error.startswith("ValueError at test_worker.py:") and "zebra" not in job.error


def test_W2_a_handler_may_give_up(queue: Queue) -> None:
    def fail(job: Job) -> None:
        raise GiveUpError("there is no such model")

    with Worker(queue, {"fail": fail}):
        job = ended(queue, queue.put(task("fail")).id)
    assert (job.state, job.attempts, job.error) == ("dead", 1, "GiveUpError: there is no such model")


def test_W2_a_handler_may_say_when_to_try_again(queue: Queue) -> None:
    def fail_once(job: Job) -> str:
        if job.attempts == 1:
            raise RetryLaterError(0, "the model is busy")
        return f"after: {job.error}"

    with Worker(queue, {"fail": fail_once}):  # whose own backoff would be half a second at least
        job = ended(queue, queue.put(task("fail")).id)
    assert job.result == "after: RetryLaterError: the model is busy" and job.error is None


@pytest.mark.parametrize("result", [object(), float("inf"), "x" * 70_000])
def test_W2_a_result_that_cannot_be_kept_is_a_failure(result: object) -> None:
    queue = MemoryQueue()
    with Worker(queue, {"t": lambda job: result}):
        job = ended(queue, queue.put(task("t", max_attempts=1)).id)
    assert job.error is not None and job.error.startswith("InvalidInputError")


def test_W2_even_an_exit_of_a_handler_ends_only_its_job(queue: Queue) -> None:
    def leave(job: Job) -> None:
        raise SystemExit(1)

    with Worker(queue, {"exit": leave, "t": lambda job: "alive"}, concurrency=1, backoff=_AT_ONCE):
        assert ended(queue, queue.put(task("exit", max_attempts=2)).id).state == "dead"
        assert ended(queue, queue.put(task("t")).id).result == "alive"


class _UnprintableError(GiveUpError):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def _odd_delay() -> RetryLaterError:
    error = RetryLaterError(1)
    error.seconds = "x"  # type: ignore[assignment]
    return error


@pytest.mark.everyday(13)
@pytest.mark.parametrize(
    "raised",
    [
        *(lambda value=value: RetryLaterError(value) for value in (float("nan"), float("inf"), 253402300799, 10**400)),
        *(lambda value=value: RetryLaterError(value) for value in ("x", None, True, -float("inf"), [1])),
        _odd_delay,
        lambda: GiveUpError("half a character \ud800 and \0"),
        lambda: GiveUpError("x" * 1_000_000),
        _UnprintableError,
    ],
)
def test_W2_nothing_that_a_handler_raises_stops_the_worker(queue: Queue, raised: Callable[[], Exception]) -> None:
    def fail(job: Job) -> None:
        raise raised()

    worker = Worker(queue, {"fail": fail, "t": lambda job: "alive"}, concurrency=1, backoff=_AT_ONCE).start()
    put = queue.put(task("fail", user_id="u1", max_attempts=2))
    until(lambda: bool((job := queue.job(put.id)) and job.error))
    assert ended(queue, queue.put(task("t", user_id="u2")).id).result == "alive"
    assert worker.stop(timeout=10)
    job = queue.job(put.id)
    assert job is not None and job.state in ("ready", "dead") and len(job.error or "") < 2_000


def test_W2_a_retry_needs_a_number_of_seconds() -> None:
    for value in ("x", None, float("nan"), True):
        with pytest.raises(InvalidInputError, match="seconds"):
            RetryLaterError(value)  # type: ignore[arg-type]
    assert RetryLaterError(-5).seconds == 0 and RetryLaterError(60).seconds == 60
    assert RetryLaterError(10**400).seconds == RetryLaterError(float("inf")).seconds == 30 * 86_400


def test_W2_neither_log_nor_error_quotes_what_is_worked_on(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "recollect")

    def fail(job: Job) -> None:
        if job.payload["how"] == "ours":
            raise InvalidInputError("content", f"{job.payload['text']!r} is not allowed")
        raise RuntimeError(job.payload["text"])

    with Worker(queue, {"fail": fail}, backoff=_AT_ONCE):
        for how in ("ours", "theirs"):
            put = queue.put(task("fail", user_id="u1", payload={"how": how, "text": "zebra"}, max_attempts=1))
            error = ended(queue, put.id).error
            assert error and "zebra" not in error
    assert "RuntimeError" in caplog.text and "zebra" not in caplog.text


def test_W2_a_worker_leaves_alone_what_it_cannot_do(queue: Queue) -> None:
    other = queue.put(task("other"))
    with Worker(queue, {"t": lambda job: None}):
        ended(queue, queue.put(task("t")).id)
    job = queue.job(other.id)
    assert job is not None and (job.state, job.attempts) == ("ready", 0)


def test_W2_what_is_put_for_later_is_done_when_it_is_due(tmp_path: Path) -> None:
    clock = FrozenClock()
    with EmbeddedQueue(tmp_path, clock=clock) as queue, Worker(queue, {"t": lambda job: None}):
        put = queue.put(task("t", run_at=clock.now.replace(hour=23)))
        ended(queue, queue.put(task("t")).id)
        job = queue.job(put.id)
        assert job is not None and job.state == "ready"
        clock.now = clock.now.replace(hour=23)
        ended(queue, put.id)


def test_W2_backoff_doubles_up_to_its_longest_and_is_never_quite_the_same() -> None:
    backoff = Backoff(first=1, longest=100)
    for attempt, whole in [(1, 1), (2, 2), (5, 16), (20, 100), (10_000, 100)]:
        waits = [backoff.seconds(attempt) for _ in range(50)]
        assert all(whole / 2 <= wait <= whole for wait in waits) and len(set(waits)) > 1


# stopping


def test_W2_a_worker_that_stops_finishes_what_it_began_and_puts_back_the_rest(queue: Queue) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(job: Job) -> str:
        begun.set()
        assert go.wait(60)
        return "finished"

    first, second, third = queue.put_many([task("slow"), task("slow"), task("slow")])
    worker = Worker(queue, {"slow": slow}, concurrency=1, ahead=2).start()
    assert begun.wait(60)
    assert not worker.stop(0)
    go.set()
    assert worker.stop(60)
    assert ended(queue, first.id).result == "finished"
    for put in (second, third):
        job = queue.job(put.id)
        assert job is not None and (job.state, job.attempts) == ("ready", 0)
    assert len(take(queue)) == 2
    with pytest.raises(InvalidInputError):
        worker.start()


class _OnlyWoken(Watcher):
    """Never ends a wait by itself. Once it was woken by who waits for idleness, the job may end."""

    def __init__(self, asked: threading.Event, release: threading.Event) -> None:
        super().__init__()
        self._asked, self._release, self._woken = asked, release, False

    def wake(self) -> None:
        self._woken = self._woken or self._asked.is_set()
        super().wake()

    def wait(self, seconds: float) -> None:
        if self._woken and not self._event.is_set():
            self._release.set()
        super().wait(3600)


def test_W2_who_waits_until_a_worker_is_idle_does_not_wait_for_its_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, release, begun = threading.Event(), threading.Event(), threading.Event()
    queue = MemoryQueue()
    monkeypatch.setattr(queue, "watcher", lambda: queue.watchers.add(_OnlyWoken(asked, release)))

    def wait(job: Job) -> bool:
        begun.set()
        return release.wait(60)

    with Worker(queue, {"wait": wait}) as worker:
        queue.put(task("wait"))
        assert begun.wait(60)
        asked.set()
        assert worker.wait_idle(120)
        assert queue.depth()["done"] == 1


def test_W2_a_worker_that_was_never_started_is_stopped() -> None:
    worker = Worker(MemoryQueue(), {})
    assert worker.stop() and worker.stop(0)


def test_W2_a_worker_keeps_its_leases_for_as_long_as_it_works(queue: Queue) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(job: Job) -> None:
        begun.set()
        assert go.wait(60)

    put = queue.put(task("slow"))
    with Worker(queue, {"slow": slow}, lease_seconds=0.3):
        assert begun.wait(60)
        [(_, _, first)] = queue.running()
        until = first
        while until <= first:  # until it is renewed
            [(_, _, until)] = queue.running()
        go.set()
        assert ended(queue, put.id).attempts == 1


# owners


def test_W2_a_process_that_ended_is_seen_dead_and_one_that_lives_is_not() -> None:
    assert not is_dead(new_owner()) and not is_dead("") and not is_dead("somebody")
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = _processes().Process(target=_tell_owner, args=(sender,))
    process.start()
    owner = receiver.recv()
    assert not is_dead(owner)
    process.kill()
    process.join(60)
    assert is_dead(owner)


def _tell_owner(sender: Any) -> None:
    sender.send(new_owner())
    threading.Event().wait()


def test_W2_an_error_is_described_without_what_it_quotes() -> None:
    assert describe(KeyError("zebra")) == "KeyError"
    try:
        raise StoreUnavailableError("zebra")
    except StoreUnavailableError as error:
        text = describe(error)
    assert text.startswith("StoreUnavailableError at test_worker.py:") and "zebra" not in text


# outages


@pytest.mark.slow
def test_W2_a_worker_survives_an_outage_of_the_database() -> None:
    begun, go = threading.Event(), threading.Event()
    done: Counter[str] = Counter()

    def slow(job: Job) -> str:
        begun.set()
        assert go.wait(60)
        done[job.id] += 1
        return "through the outage"

    with PostgresServer(settings={"fsync": "off"}) as server, DistributedQueue(server.url) as queue:
        put = queue.put(task("slow"))
        with Worker(queue, {"slow": slow, "quick": lambda job: "after"}):
            assert begun.wait(60)
            server.stop(immediate=True)
            go.set()
            with pytest.raises(StoreUnavailableError):
                queue.put(task("quick"))
            server.start()
            assert ended(queue, put.id).result == "through the outage"
            assert ended(queue, queue.put(task("quick")).id).result == "after"
    assert done == {put.id: 1}


# kills


def _processes() -> Any:
    """Processes forked in milliseconds from one that has loaded everything and has no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.test_worker", "psycopg"])
    return context


def _open(where: str) -> Queue:
    if where.startswith("postgresql:"):
        return DistributedQueue(where, size=100_000)
    return EmbeddedQueue(Path(where), size=100_000)


def _work_until_killed(where: str, effects: str) -> None:
    """A worker process whose effects are tied to the ids of jobs."""
    local = threading.local()

    def handler(job: Job) -> None:
        if not hasattr(local, "db"):
            local.db = _effects(effects)
        with local.db:
            local.db.execute("BEGIN IMMEDIATE")
            local.db.execute("INSERT INTO runs (job, attempt) VALUES (?, ?)", (job.id, job.attempts))
            local.db.execute(
                "INSERT INTO effects (job, user, n) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (job.id, job.user_id, job.payload["n"]),
            )

    Worker(_open(where), {"t": handler}, concurrency=3, ahead=3).run()


def _effects(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA synchronous = OFF")  # the process is killed, not the machine
    return db


def _kill_again_and_again(where: str, effects: Path, kills: int) -> None:
    """Two workers; one or both are killed at random instants, while work comes in."""
    print(f"RECOLLECT_SEED={_SEED}")
    chance = random.Random(_SEED)
    processes = _processes()
    with closing(_effects(str(effects))) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE effects (at INTEGER PRIMARY KEY, job TEXT UNIQUE, user TEXT, n INTEGER)")
        db.execute("CREATE TABLE runs (at INTEGER PRIMARY KEY, job TEXT, attempt INTEGER)")

        def begin() -> BaseProcess:
            process: BaseProcess = processes.Process(target=_work_until_killed, args=(where, str(effects)))
            process.start()
            return process

        put: dict[str, tuple[str | None, int]] = {}
        users = ["u1", "u2", "u3", "u4", "u5", None]
        with _open(where) as queue:
            workers = [begin(), begin()]
            try:
                for round_ in range(kills):
                    tasks = [
                        Task(name="t", user_id=chance.choice(users), payload={"n": len(put) + k}, max_attempts=1000)
                        for k in range(40)
                    ]
                    for accepted, one in zip(queue.put_many(tasks), tasks, strict=True):
                        put[accepted.id] = (one.user_id, one.payload["n"])
                    victim = chance.randrange(2)
                    workers[victim].join(chance.uniform(0, 0.12))  # a random instant, as it does not end by itself
                    for dying in {victim} if round_ % 5 else {0, 1}:
                        workers[dying].kill()
                        workers[dying].join(60)
                        workers[dying] = begin()
                finish(queue)
            finally:
                for worker in workers:
                    worker.kill()
                    worker.join(60)
            rows = db.execute("SELECT job, user, n FROM effects ORDER BY at").fetchall()
            assert {job: (user, n) for job, user, n in rows} == put and len(rows) == len(put)
            for user in users[:-1]:
                order = [n for _, owner, n in rows if owner == user]
                assert order == sorted(order), f"{user} was done out of order"
            attempts = dict(db.execute("SELECT job, max(attempt) FROM runs GROUP BY job").fetchall())
            for job_id in put:
                job = queue.job(job_id)
                assert job is not None and job.state == "done"
                assert attempts[job_id] <= job.attempts, f"{job_id} was begun again after it was done"
            runs = db.execute("SELECT count(*) FROM runs").fetchone()[0]
            print(f"{len(put)} jobs, {runs - len(put)} of them begun again, {kills} kills")


def test_W2_kills_at_any_instant_lose_nothing_and_repeat_nothing_on_one_machine(tmp_path: Path) -> None:
    _kill_again_and_again(str(tmp_path / "memory"), tmp_path / "effects.db", kills=volume(8, 25))


def test_W2_W5_kills_at_any_instant_lose_nothing_and_repeat_nothing_on_postgresql(
    tmp_path: Path, postgres_url: str
) -> None:
    _kill_again_and_again(postgres_url, tmp_path / "effects.db", kills=volume(4, 12))


def test_W2_a_kill_while_putting_leaves_all_of_a_batch_or_nothing(tmp_path: Path) -> None:
    chance = random.Random(_SEED)
    for _ in range(5):
        receiver, sender = multiprocessing.Pipe(duplex=False)
        process = _processes().Process(target=_put_until_killed, args=(str(tmp_path), sender))
        process.start()
        assert receiver.recv() == "begun"
        process.join(chance.uniform(0, 0.1))
        process.kill()
        process.join(60)
        told = 0
        try:
            while receiver.poll(0):
                told = receiver.recv()
        except EOFError:
            pass
        with EmbeddedQueue(tmp_path) as queue:
            there = queue.depth()["ready"]
            assert there % 7 == 0 and there >= told * 7
            assert queue.erase_user("u1") == there


def _put_until_killed(where: str, sender: Any) -> None:
    queue = EmbeddedQueue(Path(where), size=100_000)
    queue.depth()
    sender.send("begun")
    for count in range(1, 10_000):
        queue.put_many([Task(name="t", user_id="u1")] * 7)
        sender.send(count)
