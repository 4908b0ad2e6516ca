"""What every queue must do. Inherited by the tests of each queue; no mocks, no branches by queue."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from recollect.errors import InvalidInputError, NotFoundError, QueueFullError
from recollect.testing import FrozenClock
from recollect.usage_metrics import BOUNDS, QueueMetrics, latency_step
from recollect.work.contract import Done, FailedAttempt, Job, Lease, Queue, Retention, Returned, Task
from recollect.work.lease_owners import new_owner
from recollect.work.worker import Worker
from tests.volume import volume

T0 = datetime(2026, 2, 12, 9, 30, tzinfo=timezone.utc)
ME = "a worker of another machine"
OTHER = "another worker of another machine"
Make = Callable[..., Queue]


def task(name: str = "extract", **values: Any) -> Task:
    return Task(name=name, **values)


def take(queue: Queue, limit: int = 10, worker: str = ME, **values: Any) -> tuple[Lease, ...]:
    return queue.take(worker, limit, **values).leases


def take_one(queue: Queue, **values: Any) -> Lease:
    [lease] = take(queue, 1, **values)
    return lease


def names(leases: Sequence[Lease]) -> list[str]:
    return [lease.job.name for lease in leases]


def drain(queue: Queue) -> list[str]:
    """Do everything that is due, one after another; gives the names in that order."""
    done = []
    while leases := take(queue, 1):
        done += names(leases)
        queue.settle([Done(leases[0])])
    return done


class QueueContract:
    """``make`` opens a queue; all that one test makes are the same queue."""

    @pytest.fixture
    def clock(self) -> FrozenClock:
        return FrozenClock(T0)

    @pytest.fixture
    def queue(self, make: Make, clock: FrozenClock) -> Queue:
        return make(clock=clock)

    # putting and what a job is

    def test_W2_a_job_is_what_was_put(self, queue: Queue) -> None:
        payload = {"text": "Київ \u0000 \ud800 🦊", "n": [1, 2.5, None, True]}
        put = queue.put(task(user_id="u1", payload=payload, priority=3, key="k", max_attempts=7))
        assert put.fresh
        assert queue.job(put.id) == Job(
            id=put.id,
            name="extract",
            user_id="u1",
            payload=payload,
            priority=3,
            run_at=T0,
            attempts=0,
            max_attempts=7,
            state="ready",
            key="k",
            created_at=T0,
        )
        assert queue.job("job-unknown") is None and queue.collect("job-unknown") is None

    @pytest.mark.parametrize(
        "wrong",
        [
            {"name": ""},
            {"name": "x" * 101},
            {"name": "a\nb"},
            {"user_id": ""},
            {"payload": {"at": T0}},
            {"payload": {"n": float("nan")}},
            {"payload": "text"},
            {"payload": None},
            {"payload": [1]},
            {"payload": {1: 2}},
            {"payload": {"n": [{None: 1}]}},
            {"payload": {"n": "x" * 1_000_001}},
            {"priority": 1001},
            {"priority": True},
            {"max_attempts": 0},
            {"key": ""},
            {"once": True},
            {"run_at": "soon"},
        ],
    )
    def test_W2_what_cannot_be_stored_is_refused_and_nothing_is_put(self, queue: Queue, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidInputError):
            queue.put_many([task(), Task(**({"name": "n"} | wrong))])
        assert queue.depth()["ready"] == 0

    def test_W4_many_are_put_at_once_or_not_at_all(self, make: Make) -> None:
        queue = make(size=5)
        assert queue.put_many([]) == []
        first = queue.put_many([task("a"), task("b", key="k"), task("c", key="k")])
        assert [put.fresh for put in first] == [True, True, False] and first[1].id == first[2].id
        with pytest.raises(QueueFullError):
            queue.put_many([task()] * 4)
        assert queue.depth()["ready"] == 2
        queue.put_many([task()] * 3)

    def test_W1_a_full_queue_says_so_and_loses_nothing(self, make: Make) -> None:
        queue = make(size=2)
        queue.put(task("a"))
        queue.put(task("b", key="k"))
        with pytest.raises(QueueFullError, match="MEMORY_TOOL_QUEUE_SIZE"):
            queue.put(task("c"))
        assert not queue.put(task("d", key="k")).fresh  # it is there already, so there is nothing to refuse
        lease = take_one(queue)
        with pytest.raises(QueueFullError):
            queue.put(task("c"))  # a running one still counts: it may come back
        queue.settle([Done(lease)])
        queue.put(task("c"))
        assert drain(queue) == ["b", "c"]

    # order

    def test_W2_one_user_one_job_at_a_time_in_the_order_of_putting(self, queue: Queue) -> None:
        queue.put_many([task(name, user_id="u1") for name in "abc"])
        queue.put(task("x", user_id="u2"))
        first = take(queue)
        assert names(first) == ["a", "x"]
        assert take(queue, worker=OTHER) == ()
        queue.settle([Done(first[1])])
        assert take(queue) == ()
        queue.settle([Done(first[0])])
        assert names(take(queue)) == ["b"]

    def test_W2_a_higher_priority_goes_first_and_order_holds_within_it(self, queue: Queue) -> None:
        for name, priority in [("a", 0), ("b", 5), ("c", 0), ("d", 5), ("e", -1)]:
            queue.put(task(name, user_id="u1", priority=priority))
        assert drain(queue) == ["b", "d", "a", "c", "e"]

    def test_W2_jobs_of_no_user_do_not_wait_for_each_other(self, queue: Queue) -> None:
        queue.put_many([task(name) for name in "abc"])
        assert names(take(queue, 2)) == ["a", "b"] and names(take(queue)) == ["c"]

    def test_W2_a_long_line_of_one_user_hides_nobody_behind_it(self, make: Make) -> None:
        queue = make(size=1000)
        queue.put_many([task(f"a{number}", user_id="u1") for number in range(150)])
        queue.put_many(
            [task("b", user_id="u2"), task("c", user_id="u2"), task("n1"), task("n2"), task("x", priority=1)]
        )
        queue.put(task("d", user_id="u3"))
        assert names(take(queue, 4)) == ["x", "a0", "b", "n1"]
        assert names(take(queue, 9, names=["a1", "c", "d"])) == ["d"]
        assert names(take(queue, 9)) == ["n2"]

    def test_W2_a_job_for_later_holds_nobody_up(self, queue: Queue, clock: FrozenClock) -> None:
        later = T0 + timedelta(hours=1)
        queue.put(task("later", user_id="u1", run_at=later, priority=9))
        queue.put(task("now", user_id="u1"))
        assert queue.next_at() == later and queue.next_at(["now"]) is None
        assert drain(queue) == ["now"]
        clock.tick(hours=1)
        assert queue.next_at() is None and drain(queue) == ["later"]

    def test_W2_what_is_to_be_tried_again_keeps_its_place(self, queue: Queue, clock: FrozenClock) -> None:
        queue.put_many([task("a", user_id="u1"), task("b", user_id="u1"), task("x", user_id="u2")])
        queue.settle([FailedAttempt(take_one(queue), "ValueError", 60)])
        assert drain(queue) == ["x"]
        queue.put(task("urgent", user_id="u1", priority=1))
        assert drain(queue) == ["urgent"]
        clock.tick(seconds=60)
        assert drain(queue) == ["a", "b"]

    def test_W2_a_worker_gets_the_first_that_it_can_do_of_each_user(self, queue: Queue) -> None:
        queue.put_many([task("a", user_id="u1"), task("b", user_id="u1"), task("b", user_id="u2"), task("c")])
        assert take(queue, names=[]) == ()
        assert [lease.job.user_id for lease in take(queue, names=["b"])] == ["u1", "u2"]
        assert names(take(queue, worker=OTHER)) == ["c"]  # the first of u1 waits, since one of u1 is running

    def test_W2_the_order_holds_among_what_a_worker_can_do(self, queue: Queue, clock: FrozenClock) -> None:
        given = [("send-mail", 9), ("a", 0), ("b", 0), ("c", 1)]
        queue.put_many([task(name, user_id="u1", priority=priority) for name, priority in given])
        own, done = ["a", "b", "c"], []
        while leases := take(queue, names=own):
            done += names(leases)
            queue.settle([Done(leases[0])] if done != ["c"] else [FailedAttempt(leases[0], "ValueError", 60)])
            if done == ["c"]:
                assert take(queue, names=own) == ()  # what it is to try again keeps its place
                clock.tick(seconds=60)
        assert done == ["c", "c", "a", "b"]
        assert drain(queue) == ["send-mail"]

    def test_W2_a_long_line_that_a_worker_cannot_do_hides_nothing(self, make: Make) -> None:
        queue = make(size=1000)
        queue.put_many([task("send-mail", user_id=f"u{number % 3}") for number in range(150)])
        queue.put_many([task("a", user_id="u1"), task("b", user_id="u1"), task("b", user_id="u2")])
        assert names(take(queue, names=["a", "b"])) == ["a", "b"]

    def test_W2_the_waiting_jobs_are_counted_by_name_and_removed_by_name(self, queue: Queue) -> None:
        queue.put_many([task("send-mail", user_id="u1"), task("send-mail"), task("a"), task("b")])
        take(queue, 1, names=["send-mail"])
        assert queue.waiting() == {"a": 1, "b": 1, "send-mail": 1}
        assert queue.drop_waiting("send-mail") == 1 and queue.drop_waiting("send-mail") == 0
        assert queue.waiting() == {"a": 1, "b": 1} and queue.depth()["running"] == 1

    def test_W2_what_waits_for_a_running_job_is_due_but_not_what_waits_for_a_retry(
        self, queue: Queue, clock: FrozenClock
    ) -> None:
        queue.put_many([task("a", user_id="u1"), task("b", user_id="u1"), task("c", run_at=T0 + timedelta(hours=1))])
        assert queue.has_due() and queue.has_due(["b"]) and not queue.has_due(["c"]) and not queue.has_due([])
        lease = take_one(queue)
        assert queue.has_due(["a", "b"]) and not queue.has_due(["a"])
        queue.settle([FailedAttempt(lease, "ValueError", 60)])
        assert not queue.has_due(["a", "b"]) and queue.has_due(["b"])
        clock.tick(seconds=60)
        assert queue.has_due(["a", "b"])

    # keys

    def test_W2_a_key_is_put_once_while_its_job_is_not_finished(self, queue: Queue) -> None:
        first = queue.put(task(key="k"))
        assert queue.put(task(key="k")).id == first.id
        lease = take_one(queue)
        assert not queue.put(task(key="k")).fresh
        queue.settle([FailedAttempt(lease, "ValueError", 0)])
        assert not queue.put(task(key="k")).fresh
        queue.settle([Done(take_one(queue))])
        assert queue.put(task(key="k")).fresh

    def test_W2_a_key_put_once_is_remembered_when_its_job_is_done(self, make: Make, clock: FrozenClock) -> None:
        queue = make(clock=clock, retention=Retention(done=timedelta(hours=1), once=timedelta(days=2)))
        first = queue.put(task(key="extract:u1:2026-02-12", once=True))
        queue.settle([Done(take_one(queue), {"facts": 2})])
        again = queue.put(task(key="extract:u1:2026-02-12", once=True))
        assert (again.id, again.fresh) == (first.id, False)
        clock.tick(hours=2)
        assert queue.tidy() == 0
        job = queue.job(first.id)
        assert job is not None and job.result is None
        clock.tick(days=2)
        assert queue.tidy() == 1
        assert queue.put(task(key="extract:u1:2026-02-12", once=True)).fresh

    # leases

    def test_W2_a_lease_ends_and_its_late_holder_changes_nothing(self, queue: Queue, clock: FrozenClock) -> None:
        put = queue.put(task(user_id="u1"))
        slow = take_one(queue, seconds=60)
        clock.tick(seconds=59)
        assert queue.recover() == 0 and take(queue, worker=OTHER) == ()
        clock.tick(seconds=1)
        assert queue.recover() == 1
        assert queue.settle([Done(slow, "late")]) == (put.id,)
        quick = take_one(queue, worker=OTHER)
        assert (quick.job.attempts, quick.fence > slow.fence) == (2, True)
        assert queue.settle([Done(slow, "late")]) == (put.id,) and queue.renew([slow]) == (put.id,)
        assert queue.settle([FailedAttempt(slow, "late")]) == queue.settle([Returned(slow)]) == (put.id,)
        assert queue.settle([Done(quick, "in time")]) == ()
        assert queue.settle([Done(slow, "late")]) == (put.id,)
        job = queue.job(put.id)
        assert job is not None and (job.state, job.result, job.attempts) == ("done", "in time", 2)
        assert queue.recover() == 0 and take(queue) == ()

    def test_W2_a_renewed_lease_goes_on(self, queue: Queue, clock: FrozenClock) -> None:
        queue.put_many([task("a"), task("b")])
        kept, left = take(queue, seconds=60)
        clock.tick(seconds=50)
        assert queue.renew([kept], 60) == ()
        clock.tick(seconds=50)
        assert queue.recover() == 1
        assert queue.settle([Done(kept), Done(left)]) == (left.job.id,)

    def test_W2_what_a_process_of_this_machine_held_when_it_ended_is_freed_at_once(self, queue: Queue) -> None:
        queue.put(task())
        machine, pid, began, number, secret = new_owner().split(" ")
        take_one(queue, worker=f"{machine} {pid} {began} {number} {secret}")
        assert queue.recover() == 0
        queue.settle([Done(Lease(lease.job, lease.fence)) for lease, _, _ in queue.running()])
        queue.put(task())
        take_one(queue, worker=f"{machine} {pid} {int(began) - 1} {number} {secret}")  # its id was given to another
        assert queue.recover() == 1
        take_one(queue, worker=f"{machine}elsewhere {pid} {int(began) - 1} {number} {secret}")
        assert queue.recover() == 0

    def test_W2_a_worker_gets_rid_of_what_it_took_without_being_told(self, queue: Queue) -> None:
        queue.put_many([task("a"), task("b")])
        known, unknown = take(queue)
        assert queue.recover(ME, [known]) == 1
        again = take_one(queue)
        assert (again.job.id, again.job.attempts) == (unknown.job.id, 1)
        assert queue.settle([Done(known), Done(again)]) == ()

    def test_W2_finishing_twice_is_finishing(self, queue: Queue) -> None:
        put = queue.put(task())
        lease = take_one(queue)
        assert queue.settle([Done(lease, 1)]) == queue.settle([Done(lease, 2)]) == ()
        job = queue.job(put.id)
        assert job is not None and job.result == 1

    def test_W4_finishing_and_taking_are_one_transaction(self, queue: Queue) -> None:
        queue.put_many([task(name, user_id=user) for name in "ab" for user in ("u1", "u2", "u3")])
        first = take(queue)
        second = take(queue, finished=[Done(lease) for lease in first])
        assert names(second) == ["b", "b", "b"] and queue.depth()["done"] == 3

    def test_W2_what_was_not_begun_is_put_back_as_if_never_taken(self, queue: Queue) -> None:
        queue.put_many([task("a", user_id="u1"), task("b", user_id="u1")])
        queue.settle([Returned(take_one(queue))])
        assert [(lease.job.name, lease.job.attempts) for lease in take(queue)] == [("a", 1)]

    # retries and dead letters

    def test_W2_after_its_last_attempt_a_job_is_dead_and_the_next_one_runs(self, queue: Queue) -> None:
        put = queue.put(task("bad", user_id="u1", max_attempts=2, payload={"n": 1}))
        queue.put(task("good", user_id="u1"))
        for _ in range(2):
            queue.settle([FailedAttempt(take_one(queue), "ValueError at x.py:1", 0)])
        [job] = queue.dead()
        assert (job.id, job.state, job.attempts, job.error) == (put.id, "dead", 2, "ValueError at x.py:1")
        assert job.payload == {"n": 1} and job.finished_at == T0
        assert drain(queue) == ["good"]

    def test_W2_a_job_that_kills_its_workers_is_dead_in_the_end(self, queue: Queue, clock: FrozenClock) -> None:
        queue.put(task(max_attempts=3))
        for _ in range(3):
            take_one(queue, seconds=1)
            clock.tick(seconds=1)
            assert queue.recover() == 1
        assert take(queue) == ()
        assert [job.error for job in queue.dead()] == ["the worker that ran it died"]

    def test_U6_figures_tell_what_waits_and_how_long_jobs_took(self, queue: Queue, clock: FrozenClock) -> None:
        assert queue.metrics() == QueueMetrics()
        queue.put(task(user_id="u1"))
        queue.put(task(user_id="u2", run_at=T0 + timedelta(hours=1)))
        queue.put(task("tried again", user_id="u3"))
        for lease in take(queue):
            queue.settle([FailedAttempt(lease, "no", 5.0) if lease.job.name == "tried again" else Done(lease)])
        clock.tick(seconds=10)
        assert queue.metrics().oldest == T0, "that it is tried again does not make it younger"
        queue.settle([Done(take_one(queue))])
        assert queue.metrics().oldest is None, "the other one is not due"
        clock.tick(seconds=3600)
        assert queue.metrics().oldest == T0 + timedelta(hours=1)
        queue.settle([Done(take_one(queue))])
        queue.put(task())
        queue.put(task(name="bad"))
        queue.settle([FailedAttempt(take_one(queue, names=["bad"]), "no")])
        take_one(queue)
        queue.put(task())
        found = queue.metrics()
        assert (found.waiting, found.running, found.done, found.dead, found.oldest) == (1, 1, 3, 1, queue.now())
        steps = dict(found.completion.steps)
        assert found.completion.number == 3 and steps == {BOUNDS[0]: 1, BOUNDS[latency_step(10_000)]: 2}

    def test_R4_U6_figures_and_dead_letters_of_one_tenant(self, queue: Queue, clock: FrozenClock) -> None:
        ours = (None, "u", "@Acme/u", "@/u", "@acme", "@a b/u", f"@{'a' * 33}/u", "x@acme/u", "@acme_/u", "@ж/u")
        theirs = ("@acme/u", "@acme/@acme-2/v", "@acme/ж", "@acme/%_")
        others = ("@acme-2/u", "@acm/u", f"@{'a' * 32}/u", "@0/u")
        for user in (*ours, *theirs, *others):
            queue.put(task(user_id=user, max_attempts=1))
        leases = take(queue, 100)
        queue.settle([FailedAttempt(lease, "no") for lease in leases])
        for tenant, users in (
            ("default", ours),
            ("acme", theirs),
            ("acm", ("@acm/u",)),
            (None, ours + theirs + others),
        ):
            assert {job.user_id for job in queue.dead(tenant=tenant)} == set(users)
            assert queue.metrics(tenant) == QueueMetrics(dead=len(users))
        assert queue.dead(tenant="nobody") == [] and queue.metrics("nobody") == QueueMetrics()
        assert queue.dead(tenant="acme", user_id="u") == [] and len(queue.dead(tenant="acme", limit=2)) == 2

    def test_W2_dead_letters_are_listed_retried_and_dropped(self, queue: Queue, clock: FrozenClock) -> None:
        for user in ("u1", "u2", "u3"):
            queue.put(task(user_id=user))
            queue.settle([FailedAttempt(take_one(queue), "GiveUpError: no")])
            clock.tick(seconds=1)
        third, second, first = queue.dead()
        assert [first.user_id, second.user_id, third.user_id] == ["u1", "u2", "u3"]
        assert queue.dead(user_id="u2") == [second] and queue.dead(limit=1) == [third]
        again = queue.retry(first.id)
        assert (again.state, again.attempts, again.finished_at) == ("ready", 0, None)
        with pytest.raises(NotFoundError):
            queue.retry(first.id)
        with pytest.raises(NotFoundError):
            queue.retry("job-unknown")
        assert queue.drop(second.id) and not queue.drop(second.id) and queue.job(second.id) is None
        lease = take_one(queue)
        assert lease.job.id == first.id and not queue.drop(first.id)
        queue.settle([Done(lease)])
        assert queue.depth() == {"ready": 0, "running": 0, "done": 1, "dead": 1}

    def test_W2_a_dead_letter_whose_key_is_queued_again_is_not_retried(self, queue: Queue) -> None:
        put = queue.put(task(key="k"))
        queue.settle([FailedAttempt(take_one(queue), "no")])
        assert queue.put(task(key="k")).fresh
        with pytest.raises(InvalidInputError, match="same key"):
            queue.retry(put.id)
        drain(queue)
        assert queue.retry(put.id).state == "ready"

    # results

    def test_W1_a_result_is_there_until_it_is_collected(self, queue: Queue) -> None:
        put = queue.put(task(payload={"secret": "x"}))
        before = queue.collect(put.id)
        assert before is not None and not before.finished
        queue.settle([Done(take_one(queue), {"facts": ["a"]})])
        for job in (queue.job(put.id), queue.collect(put.id)):
            assert job is not None and job.finished and job.result == {"facts": ["a"]}
            assert job.payload == {}  # what was worked on is not kept
        after = queue.collect(put.id)
        assert after is not None and after.finished and after.result is None

    def test_W1_a_result_too_large_is_refused(self, queue: Queue) -> None:
        queue.put(task())
        lease = take_one(queue)
        with pytest.raises(InvalidInputError):
            queue.settle([Done(lease, "x" * 64_001)])
        assert queue.depth()["running"] == 1

    def test_W1_finished_jobs_expire(self, queue: Queue, clock: FrozenClock) -> None:
        done, dead, waiting = queue.put_many([task("a"), task("b"), task("c", run_at=T0 + timedelta(days=90))])
        first, second = take(queue)
        queue.settle([Done(first, 1), FailedAttempt(second, "no")])
        assert queue.tidy() == 0
        clock.tick(days=1.1)
        assert queue.tidy() == 1 and queue.job(done.id) is None
        clock.tick(days=30)
        assert queue.tidy() == 1 and queue.job(dead.id) is None
        assert queue.job(waiting.id) is not None

    def test_W1_waiting_ends_when_the_job_does(self, queue: Queue) -> None:
        put = queue.put(task())
        pending = queue.wait(put.id, 0)
        assert pending is not None and pending.state == "ready"
        assert queue.wait("job-unknown", 10) is None
        found: list[Job | None] = []
        waiting = threading.Thread(target=lambda: found.append(queue.wait(put.id, 60)))
        waiting.start()
        queue.settle([Done(take_one(queue), "r")])
        waiting.join(60)
        [job] = found
        assert job is not None and job.result == "r"

    def test_W1_what_takes_too_long_goes_on_and_its_result_is_there_later(self, make: Make) -> None:
        queue = make()
        go = threading.Event()

        def slow(job: Job) -> str:
            assert go.wait(60)
            return "late"

        with Worker(queue, {"slow": slow, "quick": lambda job: "at once"}, concurrency=2):
            quick = queue.run_or_queue(task("quick"), 60)
            assert (quick.state, quick.result) == ("done", "at once")
            pending = queue.run_or_queue(task("slow"), 0.01)
            assert not pending.finished
            go.set()
            job = queue.wait(pending.id, 60)
            assert job is not None and job.result == "late"

    # erasing

    def test_R7_nothing_of_an_erased_user_is_left(self, queue: Queue) -> None:
        queue.put_many([task(user_id="u1"), task(user_id="u1"), task("other", user_id="u2"), task("nobody")])
        lease = take_one(queue)
        assert lease.job.user_id == "u1"
        assert queue.erase_user("u1") == 2
        assert queue.settle([Done(lease, "something about u1")]) == (lease.job.id,)
        assert queue.job(lease.job.id) is None and sorted(drain(queue)) == ["nobody", "other"]

    def test_R7_jobs_go_by_what_they_say(self, queue: Queue) -> None:
        queue.put_many([task(user_id="u1"), task(user_id="u1", payload={"text": "tea"}), task("other", user_id="u2")])
        lease = take_one(queue)
        assert queue.erase_jobs(lambda job: job.user_id == "u1" and job.payload != lease.job.payload) == 1
        assert queue.erase_jobs(lambda job: job.id == lease.job.id) == 1  # running
        assert queue.settle([Done(lease, "something")]) == (lease.job.id,)
        assert queue.job(lease.job.id) is None and drain(queue) == ["other"]

    # schedules

    def test_W3_of_all_who_advance_a_schedule_one_puts_its_task(self, make: Make, clock: FrozenClock) -> None:
        queue, other = make(clock=clock), make(clock=clock)
        assert queue.slot("s") is None
        assert queue.advance("s", T0, [task()]) and not other.advance("s", T0, [task()])
        assert queue.slot("s") == other.slot("s") == T0
        assert not other.advance("s", T0 - timedelta(days=1), [task()])
        assert other.advance("s", T0 + timedelta(days=1), [task("b")]) and queue.advance("t", T0)
        assert drain(queue) == ["extract", "b"]

    def test_W3_a_schedule_does_not_advance_when_the_queue_is_full(self, make: Make, clock: FrozenClock) -> None:
        queue = make(clock=clock, size=1)
        queue.put(task())
        with pytest.raises(QueueFullError):
            queue.advance("s", T0, [task("b")])
        assert queue.slot("s") is None
        drain(queue)
        assert queue.advance("s", T0, [task("b")])

    # many at once

    def test_W2_W5_eight_workers_do_every_job_once_and_keep_the_order_of_each_user(self, make: Make) -> None:
        queue = make(size=5000)
        guard = threading.Lock()
        effects: list[tuple[str | None, int]] = []
        running: Counter[str | None] = Counter()
        overlaps: list[str | None] = []

        def handler(job: Job) -> None:
            with guard:
                running[job.user_id] += 1
                if job.user_id is not None and running[job.user_id] > 1:
                    overlaps.append(job.user_id)
                effects.append((job.user_id, job.payload["n"]))
            with guard:
                running[job.user_id] -= 1

        users = [f"u{number}" for number in range(20)] + [None]
        jobs = volume(300, 2400)
        tasks = [task("t", user_id=users[number % 21], payload={"n": number}) for number in range(jobs)]
        workers = [Worker(make(size=5000), {"t": handler}, concurrency=1, ahead=3).start() for _ in range(8)]
        for start in range(0, jobs, 100):
            queue.put_many(tasks[start : start + 100])
        last = queue.put_many([task("t", payload={"n": -1})])[0]
        assert queue.wait(last.id, 120)
        finish(queue)
        assert all(worker.stop(60) for worker in workers)
        assert Counter(n for _, n in effects) == Counter(range(-1, jobs))
        assert overlaps == []
        for user in users[:-1]:
            mine = [n for owner, n in effects if owner == user]
            assert mine == sorted(mine)
        assert queue.depth() == {"ready": 0, "running": 0, "done": jobs + 1, "dead": 0}

    def test_W2_one_key_put_by_many_at_once_is_one_job(self, make: Make) -> None:
        ids: list[str] = []
        queues = [make() for _ in range(4)]
        barrier = threading.Barrier(4)

        def put(queue: Queue) -> None:
            barrier.wait(60)
            ids.extend(queue.put(task(key=f"k{number}")).id for number in range(10))

        threads = [threading.Thread(target=put, args=(queue,)) for queue in queues]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(ids) == 40 and len(set(ids)) == 10 == queues[0].depth()["ready"]


def finish(queue: Queue, seconds: float = 120) -> None:
    """Wait until nothing is left to do."""
    ended = threading.Event()
    for _ in range(int(seconds / 0.02)):
        depth = queue.depth()
        if not depth["ready"] and not depth["running"]:
            return
        ended.wait(0.02)
    raise AssertionError(f"still there: {queue.depth()}")
