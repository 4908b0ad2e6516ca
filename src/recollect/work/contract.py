"""The contract of a work queue.

A `Task` says what to do; its caller owns it until it is accepted. A `Job` is a task in the queue with its state,
identified by its id. A `Lease` is a job held by one worker for a time, identified by its fence: a number that grows
whenever the job changes hands, so that a worker thought dead cannot finish what another has started again.

Jobs of one user run one at a time: those of a higher priority first, then in the order they were put. A job that waits
for a retry keeps its place, and those behind it wait; a job put for later takes its place when it is due. A worker
passes over the jobs it has no handler for. Jobs of no user run in any order.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from recollect.errors import InvalidInputError, NotFoundError, RecollectError
from recollect.times import Clock, utc_now
from recollect.usage_metrics import QueueMetrics
from recollect.work.lease_owners import is_dead
from recollect.work.wakeup import Watcher, Watchers

State = Literal["ready", "running", "done", "dead"]
STATES: tuple[State, ...] = ("ready", "running", "done", "dead")

QUEUE_SIZE = 1000
MAX_ATTEMPTS = 5
LEASE_SECONDS = 60.0
LONGEST_RETRY = timedelta(days=30)
"""The longest wait before the next attempt; anything beyond it, or infinite, means this."""
_SOONEST, _LATEST = 0.002, 0.05
"""The range of pauses in which `Queue.wait` polls a job that another process may finish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task to be queued.

    ``key``: while a job with the same key is unfinished, the task is not queued again. With ``once`` a finished job
    counts as well, as long as it is remembered (`Keeping.once`).
    """

    name: str
    user_id: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    run_at: datetime | None = None
    key: str | None = None
    once: bool = False
    max_attempts: int = MAX_ATTEMPTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A task in the queue. ``attempts`` includes the present one; ``error`` never quotes the data."""

    id: str
    name: str
    user_id: str | None
    payload: dict[str, Any]
    priority: int
    run_at: datetime
    attempts: int
    max_attempts: int
    state: State
    key: str | None
    created_at: datetime
    finished_at: datetime | None = None
    error: str | None = None
    result: Any = None

    @property
    def finished(self) -> bool:
        """True if nothing more will be done about it."""
        return self.state in ("done", "dead")


@dataclass(frozen=True, slots=True)
class Accepted:
    """The task is durable. ``fresh`` is False if a job with its key existed; ``id`` is then that job's."""

    id: str
    fresh: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """A job held by one worker."""

    job: Job
    fence: int


@dataclass(frozen=True, slots=True)
class Done:
    """The job is done; the result is kept until collected or expired."""

    lease: Lease
    result: Any = None


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """The attempt failed; the next one is in ``retry_in`` seconds, or, with None, never."""

    lease: Lease
    error: str
    retry_in: float | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """The job was not started; as if it had never been taken."""

    lease: Lease


Outcome = Done | FailedAttempt | Returned


@dataclass(frozen=True, slots=True)
class TakenJobs:
    """The result of an exchange: new leases, and the ids of jobs that other workers held by then."""

    leases: tuple[Lease, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Retention of finished jobs: done ones with their results, ``once`` ones without, and dead letters."""

    done: timedelta = timedelta(days=1)
    once: timedelta = timedelta(days=30)
    dead: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The next state of a leased job. Computed here once, so that queues cannot differ."""

    id: str
    fence: int
    state: State
    attempts: int
    run_at: datetime | None = None
    finished_at: datetime | None = None
    error: str | None = None
    result: Any = None
    revoked: bool = False
    """The lease was taken from its worker: its fence must no longer match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """A worker's request: at most ``limit`` jobs of these names (None: all), leased until then unless renewed."""

    worker: str
    limit: int
    names: tuple[str, ...] | None
    until: datetime


class GiveUpError(RecollectError):
    """Raise in a handler: this job can never succeed. The message is stored; do not quote memory content in it."""


class RetryLaterError(RecollectError):
    """Raise in a handler: retry after this many seconds. The message is stored; do not quote memory content in it.

    A negative number means at once, and one beyond `LONGEST_RETRY` that.
    """

    def __init__(self, seconds: float, message: str | None = None) -> None:
        self.seconds = check_delay("seconds", seconds)
        super().__init__(message or "retry later")


def check_delay(field: str, value: object) -> float:
    """Check a number of seconds to wait before the next attempt; return it within 0 and `LONGEST_RETRY`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise InvalidInputError(field, "must be a number of seconds")
    return float(max(0, min(value, LONGEST_RETRY.total_seconds())))


class Queue(ABC):
    """A durable queue. Any number of threads and processes may share one.

    Public methods that are not abstract are the same for all queues.
    """

    def __init__(self, *, size: int, clock: Clock | None, retention: Retention | None) -> None:
        self.size = size
        self.retention = retention or Retention()
        self._clock = clock or utc_now
        self.watchers = Watchers()
        self._waiting = Watchers()

    # putting

    def put(self, task: Task) -> Accepted:
        """Accept a task: durable when this returns. `QueueFullError` if too much is waiting."""
        return self.put_many([task])[0]

    @abstractmethod
    def put_many(self, tasks: Sequence[Task]) -> list[Accepted]:
        """Accept all tasks in one transaction, or none."""

    # working

    def take(
        self,
        worker: str,
        limit: int,
        *,
        names: Sequence[str] | None = None,
        seconds: float = LEASE_SECONDS,
        finished: Sequence[Outcome] = (),
    ) -> TakenJobs:
        """Record what is finished and take up to ``limit`` jobs, in one transaction."""
        now = self.now()
        wanted = JobRequest(
            worker=worker,
            limit=limit,
            names=None if names is None else tuple(names),
            until=now + timedelta(seconds=seconds),
        )
        taken = self.exchange([settlement(outcome, now) for outcome in finished], wanted)
        if any(isinstance(outcome, Returned) for outcome in finished):
            self.announce()
        if finished:
            self._waiting.wake()
        return taken

    def settle(self, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
        """Record what is finished; return the ids of jobs that other workers held by then."""
        return self.take("", 0, finished=outcomes).lost

    @abstractmethod
    def exchange(self, settlements: Sequence[Settlement], wanted: JobRequest) -> TakenJobs:
        """Do the exchange of `take`. A settlement counts only with the fence of the present lease; repeating it is
        safe.
        """

    @abstractmethod
    def renew(self, leases: Sequence[Lease], seconds: float = LEASE_SECONDS) -> tuple[str, ...]:
        """Extend these leases by this many seconds from now; return the ids of lost ones."""

    def recover(self, worker: str = "", held: Sequence[Lease] = ()) -> int:
        """Free the jobs of dead workers; return their number.

        A worker is dead if its lease has expired or, on this machine, if its process has ended. A worker that passes
        its name and leases releases jobs it took without knowing, after a connection broke.
        """
        now, mine = self.now(), {(lease.job.id, lease.fence) for lease in held}
        dead: dict[str, bool] = {}
        freed: list[Settlement] = []
        for lease, owner, until in self.running():
            if owner == worker:
                if (lease.job.id, lease.fence) not in mine:
                    freed.append(settlement(Returned(lease), now, revoked=True))
                continue
            if owner not in dead:
                dead[owner] = is_dead(owner)
            if dead[owner] or until <= now:
                freed.append(settlement(FailedAttempt(lease, "the worker that ran it died", 0.0), now, revoked=True))
        if not freed:
            return 0
        lost = self.exchange(freed, JobRequest(worker="", limit=0, names=(), until=now)).lost
        self.announce()
        return len(freed) - len(lost)

    @abstractmethod
    def running(self) -> list[tuple[Lease, str, datetime]]:
        """Return the leased jobs with their owner and expiry."""

    @abstractmethod
    def next_at(self, names: Sequence[str] | None = None) -> datetime | None:
        """Return when the next job that waits for its time is due."""

    @abstractmethod
    def has_due(self, names: Sequence[str] | None = None) -> bool:
        """Return True if a job is due: one that can be taken, or as soon as those running now are finished."""

    # asking

    @abstractmethod
    def job(self, job_id: str) -> Job | None:
        """Return the job; None if it never existed or is no longer remembered."""

    @abstractmethod
    def collect(self, job_id: str) -> Job | None:
        """Return the job with its result; if it is finished, the result is removed at the same time."""

    def wait(self, job_id: str, timeout: float) -> Job | None:
        """Return the job once it is finished, or as it is after ``timeout`` seconds; None as with `job`."""
        deadline = time.monotonic() + timeout
        pause = _SOONEST
        with self._waiting.watching() as watcher:
            while True:
                job = self.job(job_id)
                left = deadline - time.monotonic()
                if job is None or job.finished or left <= 0:
                    return job
                watcher.wait(min(pause, left))
                pause = min(pause * 1.5, _LATEST)

    def run_or_queue(self, task: Task, timeout: float = 0.2) -> Job:
        """Queue the task and wait briefly: if it does not finish in time, `collect` returns it later."""
        accepted = self.put(task)
        job = self.wait(accepted.id, timeout)
        if job is None:
            raise NotFoundError(f"the job {accepted.id} was removed while it ran")
        return job

    @abstractmethod
    def depth(self) -> dict[State, int]:
        """Count the jobs in each state."""

    @abstractmethod
    def waiting(self) -> dict[str, int]:
        """Count the jobs that nobody has taken yet, by name."""

    # dead letters and operations

    @abstractmethod
    def metrics(self, tenant: str | None = None) -> QueueMetrics:
        """Return statistics of the queue, for all jobs or a tenant's. Jobs of no user belong to the default tenant."""

    @abstractmethod
    def dead(self, *, user_id: str | None = None, tenant: str | None = None, limit: int = 100) -> list[Job]:
        """Return the dead jobs, newest first."""

    @abstractmethod
    def retry(self, job_id: str) -> Job:
        """Restart a dead job. `NotFoundError` if it is not dead; refused while its key is queued again."""

    @abstractmethod
    def drop(self, job_id: str) -> bool:
        """Remove a job that is not running; return False if there is none."""

    @abstractmethod
    def drop_waiting(self, name: str) -> int:
        """Remove the jobs of this name that nobody has taken yet; return their number."""

    @abstractmethod
    def erase_user(self, user_id: str) -> int:
        """Remove all jobs of a user, including running ones, whose results are then ignored."""

    @property
    def pending(self) -> bool:
        """True if a log still holds erased jobs, because somebody else is reading."""
        return False

    @abstractmethod
    def erase_jobs(self, wanted: Callable[[Job], bool]) -> int:
        """Remove the jobs for which ``wanted`` is true, including running ones; return their number."""

    @abstractmethod
    def tidy(self) -> int:
        """Remove finished jobs and results past their retention; return the number of jobs."""

    # schedules

    @abstractmethod
    def slot(self, schedule: str) -> datetime | None:
        """Return the latest time for which this schedule was queued."""

    @abstractmethod
    def advance(self, schedule: str, slot: datetime, tasks: Sequence[Task] = ()) -> bool:
        """Queue the tasks of this time and record it, in one transaction. False if another process was first."""

    # the rest

    def now(self) -> datetime:
        """Return the time that all users of this queue agree on."""
        return self._clock()

    def watcher(self) -> Watcher:
        """Return a watcher that wakes when there may be work. Close it in the end."""
        return self.watchers.add(Watcher())

    def announce(self) -> None:
        """Wake all who may take ready jobs."""
        self.watchers.wake()

    @abstractmethod
    def close(self) -> None:
        """Release files and connections; the next use opens them again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def settlement(outcome: Outcome, now: datetime, *, revoked: bool = False) -> Settlement:
    """Return the next state of a job after an attempt."""
    lease = outcome.lease
    job = lease.job
    plain: dict[str, Any] = {"id": job.id, "fence": lease.fence, "attempts": job.attempts, "revoked": revoked}
    match outcome:
        case Done(result=result):
            return Settlement(**plain, state="done", finished_at=now, result=result)
        case Returned():
            return Settlement(**plain | {"attempts": job.attempts - 1}, state="ready", error=job.error)
        case FailedAttempt(error=error, retry_in=seconds):
            if seconds is None or job.attempts >= job.max_attempts:
                return Settlement(**plain, state="dead", finished_at=now, error=error)
            wait = timedelta(seconds=check_delay("retry_in", seconds))
            return Settlement(**plain, state="ready", run_at=now + wait, error=error)


Handler = Callable[[Job], Any]
"""Does a job and returns its result, small JSON or None. It may be called again for the same id after a crash between
its effect and the record of it, so the effect must be tied to the id.
"""
