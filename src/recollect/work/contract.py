"""What a queue of work is, whatever keeps it.

A `Task` says what to do; whoever puts it owns it until it is accepted. A `Job` is a task in the queue with its
fate, known by its id. A `Lease` is a job in the hands of one worker for a time, known by its fence: a number that
grows whenever the job changes hands, so that who was thought dead cannot finish what another has begun again.

Jobs of one user run one at a time: those of a higher priority first, then in the order they were put. A job that
waits to be tried again keeps its place, and those behind it wait; a job put for later takes its place when it is
due. Jobs of no user run in any order. Knows no database.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from recollect.errors import NotFoundError, RecollectError
from recollect.times import Clock, utc_now
from recollect.usage_metrics import QueueMetrics
from recollect.work.lease_owners import is_dead
from recollect.work.wakeup import Watcher, Watchers

State = Literal["ready", "running", "done", "dead"]
STATES: tuple[State, ...] = ("ready", "running", "done", "dead")

QUEUE_SIZE = 1000
MAX_ATTEMPTS = 5
LEASE_SECONDS = 60.0
_SOONEST, _LATEST = 0.002, 0.05
"""How long `Queue.wait` pauses between looks at a job that another process may finish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to do.

    ``key``: while a job with the same key is not finished, this is not put again. With ``once`` a finished job
    counts as well, for as long as it is remembered (`Keeping.once`).
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
    """A task in the queue. ``attempts`` counts the present one; ``error`` never quotes what was worked on."""

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
        """Whether nothing more will be done about it."""
        return self.state in ("done", "dead")


@dataclass(frozen=True, slots=True)
class Accepted:
    """The task is durable. ``fresh`` is False if a job with its key was there already; ``id`` is that job's."""

    id: str
    fresh: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """A job in the hands of one worker."""

    job: Job
    fence: int


@dataclass(frozen=True, slots=True)
class Done:
    """The job is done; the result is kept until collected or expired."""

    lease: Lease
    result: Any = None


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """The attempt failed; the next one in so many seconds, or, with None, never."""

    lease: Lease
    error: str
    retry_in: float | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """The job was not begun; as if it had never been taken."""

    lease: Lease


Outcome = Done | FailedAttempt | Returned


@dataclass(frozen=True, slots=True)
class TakenJobs:
    """What an exchange gave: new leases, and the ids of jobs that were in other hands by then."""

    leases: tuple[Lease, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long finished jobs are kept: done ones with their results, ``once`` ones without, and dead letters."""

    done: timedelta = timedelta(days=1)
    once: timedelta = timedelta(days=30)
    dead: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What becomes of a leased job. Worked out here once, so that no two queues can differ."""

    id: str
    fence: int
    state: State
    attempts: int
    run_at: datetime | None = None
    finished_at: datetime | None = None
    error: str | None = None
    result: Any = None
    revoked: bool = False
    """The lease was taken away from its worker: its fence must no longer fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What a worker would take: so many, of these names (None: all), until then unless it renews the lease."""

    worker: str
    limit: int
    names: tuple[str, ...] | None
    until: datetime


class GiveUpError(RecollectError):
    """Raise it in a handler: this job can never succeed. The message is stored; quote no memory content in it."""


class RetryLaterError(RecollectError):
    """Raise it in a handler: try again in so many seconds. The message is stored; quote no memory content in it."""

    def __init__(self, seconds: float, message: str | None = None) -> None:
        self.seconds = seconds
        super().__init__(message or "to be tried again later")


class Queue(ABC):
    """A durable queue. Any number of threads and processes may use the same one.

    Public methods that are not abstract are the same for all queues.
    """

    def __init__(self, *, size: int, clock: Clock | None, keeping: Retention | None) -> None:
        self.size = size
        self.keeping = keeping or Retention()
        self._clock = clock or utc_now
        self.watchers = Watchers()
        self._waiting = Watchers()

    # putting

    def put(self, task: Task) -> Accepted:
        """Accept a task: durable when this returns. `QueueFullError` if too much is waiting already."""
        return self.put_many([task])[0]

    @abstractmethod
    def put_many(self, tasks: Sequence[Task]) -> list[Accepted]:
        """Accept all of them in one transaction, or none."""

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
        """Record what is finished, and take up to so many jobs, all in one transaction."""
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
        """Record what is finished; gives the ids of jobs that were in other hands by then."""
        return self.take("", 0, finished=outcomes).lost

    @abstractmethod
    def exchange(self, settlements: Sequence[Settlement], wanted: JobRequest) -> TakenJobs:
        """`take`, worked out. A settlement counts only with the fence of the present lease; repeating it is fine."""

    @abstractmethod
    def renew(self, leases: Sequence[Lease], seconds: float = LEASE_SECONDS) -> tuple[str, ...]:
        """Hold on to these from now on for so many seconds; gives the ids of those that are lost."""

    def recover(self, worker: str = "", held: Sequence[Lease] = ()) -> int:
        """Free what dead workers hold; gives how many.

        A worker is dead if its lease is over, or, on this machine, if its process has ended. A worker that
        gives its name and what it holds gets rid of what it took without being told, when a connection broke.
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
        """What is leased, by whom and until when."""

    @abstractmethod
    def next_at(self, names: Sequence[str] | None = None) -> datetime | None:
        """When the next job that waits for its time is due."""

    # asking

    @abstractmethod
    def job(self, job_id: str) -> Job | None:
        """The job; None if there never was one, or it is no longer remembered."""

    @abstractmethod
    def collect(self, job_id: str) -> Job | None:
        """The job with its result, which, if it is finished, is forgotten at the same moment."""

    def wait(self, job_id: str, timeout: float) -> Job | None:
        """The job as soon as it is finished, or as it is after so many seconds; None as with `job`."""
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
        """Put the task and wait for it a moment: what does not finish goes on, and `collect` gives it later."""
        accepted = self.put(task)
        job = self.wait(accepted.id, timeout)
        if job is None:
            raise NotFoundError(f"the job {accepted.id} was removed while it ran")
        return job

    @abstractmethod
    def depth(self) -> dict[State, int]:
        """How many jobs there are in each state."""

    # dead letters, and what else an operator does

    @abstractmethod
    def metrics(self, tenant: str | None = None) -> QueueMetrics:
        """How much waits and how long things took, of all jobs or of a tenant's. Those of no user are the default's."""

    @abstractmethod
    def dead(self, *, user_id: str | None = None, tenant: str | None = None, limit: int = 100) -> list[Job]:
        """The jobs that were given up, newest first."""

    @abstractmethod
    def retry(self, job_id: str) -> Job:
        """Begin a dead job anew. `NotFoundError` if it is not dead; refused while its key is queued again."""

    @abstractmethod
    def drop(self, job_id: str) -> bool:
        """Remove a job that is not running; False if there is none."""

    @abstractmethod
    def erase_user(self, user_id: str) -> int:
        """Remove all jobs of a user, running ones too: what their workers then say is not recorded."""

    @property
    def pending(self) -> bool:
        """Whether erased jobs are still in a log, because somebody else is reading."""
        return False

    @abstractmethod
    def erase_jobs(self, wanted: Callable[[Job], bool]) -> int:
        """Remove the jobs for which this is true, running ones too; return how many there were."""

    @abstractmethod
    def tidy(self) -> int:
        """Remove finished jobs and results that are kept no longer; gives how many jobs."""

    # schedules

    @abstractmethod
    def slot(self, schedule: str) -> datetime | None:
        """The latest moment for which this schedule was put."""

    @abstractmethod
    def advance(self, schedule: str, slot: datetime, tasks: Sequence[Task] = ()) -> bool:
        """Put the tasks of this moment, in one transaction with noting it. False if somebody was first."""

    # the rest

    def now(self) -> datetime:
        """The time all users of this queue agree on."""
        return self._clock()

    def watcher(self) -> Watcher:
        """Something that wakes when there may be work. Close it in the end."""
        return self.watchers.add(Watcher())

    def announce(self) -> None:
        """Wake all who may take what is ready now."""
        self.watchers.wake()

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections; the next use opens them again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def settlement(outcome: Outcome, now: datetime, *, revoked: bool = False) -> Settlement:
    """What becomes of the job, by what became of the attempt."""
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
            return Settlement(**plain, state="ready", run_at=now + timedelta(seconds=seconds), error=error)


Handler = Callable[[Job], Any]
"""Does a job and gives its result, small JSON or None. It may be called again for the same id: after a crash between
its effect and the record of it, so the effect must be tied to the id."""
