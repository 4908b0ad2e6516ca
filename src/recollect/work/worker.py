"""The worker of a queue: threads that run handlers, and one that communicates with the queue.

That thread takes as many jobs as there are worker threads, recording in the same transaction what has been finished
meanwhile. It renews the leases, frees the jobs of dead workers, and ticks the schedule. When the database cannot be
reached it keeps what is finished and retries. Logs contain ids, names and error classes, never the data.
"""

from __future__ import annotations

import json
import logging
import random
import re
import threading
import traceback
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from types import TracebackType

from recollect.errors import InvalidInputError, QueueFullError, RecollectError
from recollect.store.forks import renew_after_forks
from recollect.work.contract import (
    LEASE_SECONDS,
    Done,
    FailedAttempt,
    GiveUpError,
    Handler,
    Lease,
    Outcome,
    Queue,
    RetryLaterError,
    Returned,
    check_delay,
)
from recollect.work.lease_owners import new_owner
from recollect.work.rows import RESULT_BYTES, dump
from recollect.work.schedule import Schedule
from recollect.work.wakeup import Watcher

_log = logging.getLogger("recollect.work")
_IDLE_SECONDS = 1.0
"""The polling interval when nothing announces new jobs."""
_RECOVER_SECONDS = 1.0
_TIDY_SECONDS = 600.0
_OUTAGE_SECONDS = (0.1, 5.0)
_MESSAGE = 1_000
"""The longest message of a handler that is stored."""
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
_INHERITED: list[Watcher] = []
"""The parent's watchers in a forked child, whose connections the child must not close."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The wait before the next attempt: doubling each time, with jitter."""

    first: float = 1.0
    longest: float = 3600.0

    def seconds(self, attempt: int) -> float:
        """Return the wait after this attempt, the first being 1."""
        whole: float = min(self.first * 2.0 ** min(attempt - 1, 60), self.longest)
        return whole * random.uniform(0.5, 1.0)


class Worker:
    """Runs jobs whose names have a handler, with as many threads as ``concurrency``. Passes over others.

    ``with Worker(queue, handlers):`` works until the block ends; `run` works in this thread until `stop`. After a fork
    the child has a worker that is not started.
    """

    def __init__(
        self,
        queue: Queue,
        handlers: Mapping[str, Handler],
        *,
        concurrency: int = 4,
        ahead: int = 0,
        lease_seconds: float = LEASE_SECONDS,
        backoff: Backoff | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        if concurrency < 1 or ahead < 0:
            raise InvalidInputError("concurrency", "must be at least 1, and ahead at least 0")
        self._queue = queue
        self._handlers = dict(handlers)
        self._concurrency = concurrency
        self._most = concurrency + ahead
        self._lease_seconds = lease_seconds
        self._backoff = backoff or Backoff()
        self._schedule = schedule
        self._name = new_owner()
        self._began = False
        self._watcher: Watcher | None = None
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._idle = threading.Event()
        self._looked = False
        """True if the previous turn also found nothing: what the schedule queued is seen by the next one."""
        self._inbox: SimpleQueue[Lease | None] = SimpleQueue()
        self._outbox: deque[Outcome] = deque()
        self._held: dict[str, Lease] = {}
        self._unsettled: list[Outcome] = []
        self._times: dict[str, float] = {}
        renew_after_forks(self, Worker._begin_anew)

    def start(self) -> Worker:
        """Work in the background."""
        self._begin()
        threading.Thread(target=self._run, name="recollect-worker", daemon=True).start()
        return self

    def stop(self, timeout: float | None = None) -> bool:
        """Finish running jobs and put back the rest; return False if that takes longer than ``timeout``.

        Jobs still running then continue, and so do their leases, until they finish or the process ends.
        """
        self._stopping.set()
        self._watcher_wake()
        return self._ended.wait(timeout) if self._began else True

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until nothing is due that has a handler here, and nothing is running here.

        Return False after ``timeout`` seconds. A job that waits for another worker's job of the same user is due.
        """
        self._idle.clear()
        self._looked = False
        self._watcher_wake()
        return self._idle.wait(timeout)

    def __enter__(self) -> Worker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def name(self) -> str:
        """The name under which this worker holds leases."""
        return self._name

    def run(self) -> None:
        """Work in this thread until `stop` is called in another."""
        self._begin()
        self._run()

    def _begin(self) -> None:
        if self._began:
            raise InvalidInputError("worker", "was already started; create another")
        self._began = True

    def _run(self) -> None:
        self._watcher = self._queue.watcher()
        hands = [
            threading.Thread(target=self._work, name=f"recollect-worker-{number}", daemon=True)
            for number in range(self._concurrency)
        ]
        for hand in hands:
            hand.start()
        try:
            self._talk()
        finally:
            for _ in hands:
                self._inbox.put(None)
            self._watcher.close()
            self._ended.set()

    def _begin_anew(self) -> None:
        if self._watcher is not None:
            _INHERITED.append(self._watcher)
        Worker.__init__(
            self,
            self._queue,
            self._handlers,
            concurrency=self._concurrency,
            ahead=self._most - self._concurrency,
            lease_seconds=self._lease_seconds,
            backoff=self._backoff,
            schedule=self._schedule,
        )

    # the thread that communicates with the queue

    def _talk(self) -> None:
        pause, longest = _OUTAGE_SECONDS
        sure = True
        while True:
            try:
                if not sure:
                    # a commit whose answer was lost may have given us jobs that we do not know of
                    self._queue.recover(self._name, list(self._held.values()))
                    sure = True
                wait = self._turn()
                pause = _OUTAGE_SECONDS[0]
            except Exception as error:  # the outermost handler: a worker that ends would abandon its jobs
                _log.warning("the queue cannot be used (%s); retrying in %.1f s", describe(error), pause)
                sure, wait, pause = False, pause, min(pause * 2, longest)
            if self._stopping.is_set() and not self._held and not self._unsettled:
                return
            if wait > 0:
                self._watch(wait)

    def _turn(self) -> float:
        """Do everything once; return the longest time to sleep."""
        stopping = self._stopping.is_set()
        if stopping:
            self._put_back()
        while self._outbox:
            self._unsettled.append(self._outbox.popleft())
        free = 0 if stopping else self._most - len(self._held) + len(self._unsettled)
        taken = 0
        if free or self._unsettled:
            taken = self._exchange(free)
        idle = free > 0 and not taken and not self._held and not self._outbox
        wait = min(self._renew(), self._recover(), self._tidy())
        if not stopping:
            wait = min(wait, self._tick())
        if not (idle and self._looked):
            self._idle.clear()
        elif not self._idle.is_set() and not self._queue.has_due(tuple(self._handlers)):
            self._idle.set()
        look_again, self._looked = idle and not self._looked, idle
        if self._outbox or look_again or (taken and taken == free):
            return 0.0
        if free > taken and (due := self._queue.next_at(tuple(self._handlers))) is not None:
            wait = min(wait, self._until(due))
        return max(wait, 0.001)

    def _exchange(self, free: int) -> int:
        finished = self._unsettled
        taken = self._queue.take(
            self._name, free, names=tuple(self._handlers), seconds=self._lease_seconds, finished=finished
        )
        self._unsettled = []
        for outcome in finished:
            self._held.pop(outcome.lease.job.id, None)
        for job_id in taken.lost:
            _log.warning("job %s finished here after another worker had taken it; the result is ignored", job_id)
        for lease in taken.leases:
            self._held[lease.job.id] = lease
            self._inbox.put(lease)
        return len(taken.leases)

    def _put_back(self) -> None:
        while True:
            try:
                lease = self._inbox.get_nowait()
            except Empty:
                return
            if lease is not None:
                self._outbox.append(Returned(lease))

    def _renew(self) -> float:
        if not self._held:
            self._times["renew"] = monotonic() + self._lease_seconds / 3
        elif self._is_time("renew", self._lease_seconds / 3):
            for job_id in self._queue.renew(list(self._held.values()), self._lease_seconds):
                _log.warning("job %s did not renew its lease in time; another worker has taken it", job_id)
        return self._times["renew"] - monotonic()

    def _recover(self) -> float:
        if self._is_time("recover", _RECOVER_SECONDS) and (freed := self._queue.recover()):
            _log.warning("freed %d jobs of dead workers", freed)
        return self._times["recover"] - monotonic()

    def _tidy(self) -> float:
        if self._is_time("tidy", _TIDY_SECONDS):
            self._queue.tidy()
        return self._times["tidy"] - monotonic()

    def _tick(self) -> float:
        if self._schedule is None:
            return _IDLE_SECONDS
        if self._is_time("tick", _IDLE_SECONDS):
            try:
                due = self._schedule.tick()
                if due is not None:
                    self._times["tick"] = monotonic() + min(max(self._until(due), 0.0), _IDLE_SECONDS)
            except QueueFullError:
                _log.warning("the queue is full; scheduled work will be queued when there is room")
        return self._times["tick"] - monotonic()

    def _until(self, due: datetime) -> float:
        return (due - self._queue.now()) / timedelta(seconds=1)

    def _is_time(self, what: str, every: float) -> bool:
        if monotonic() < self._times.get(what, 0.0):
            return False
        self._times[what] = monotonic() + every
        return True

    def _watch(self, seconds: float) -> None:
        if self._watcher is not None and not self._outbox:
            self._watcher.wait(seconds)

    def _watcher_wake(self) -> None:
        if self._watcher is not None:
            self._watcher.wake()

    # the worker threads

    def _work(self) -> None:
        inbox, outbox = self._inbox, self._outbox
        while (lease := inbox.get()) is not None:
            outbox.append(Returned(lease) if self._stopping.is_set() else self._attempt(lease))
            self._watcher_wake()

    def _attempt(self, lease: Lease) -> Outcome:
        job = lease.job
        try:
            result = self._handlers[job.name](job)
            # a copy: what the handler still changes could not be stored later
            return Done(lease, json.loads(dump("result", result, RESULT_BYTES)))
        except BaseException as error:  # the outermost handler: whatever it was, the job must come to an end
            text = describe(error)
            _log.warning("attempt %d of job %s (%s) failed: %s", job.attempts, job.id, job.name, text)
            if isinstance(error, GiveUpError):
                return FailedAttempt(lease, text)
            if isinstance(error, RetryLaterError):
                with suppress(Exception):  # a handler may have set anything
                    return FailedAttempt(lease, text, check_delay("seconds", error.seconds))
            return FailedAttempt(lease, text, self._backoff.seconds(job.attempts))


def describe(error: BaseException) -> str:
    """Describe an error without quoting anything: its class, its origin and, for our own errors, their meaning."""
    kind = type(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    if isinstance(error, GiveUpError | RetryLaterError):
        with suppress(Exception):  # its text may be anything, and must be one that every database stores
            return f"{kind.__name__}: {_UNSTORABLE.sub('?', str(error)[:_MESSAGE])}"
    if isinstance(error, RecollectError):
        return f"{kind.__name__}{where}: {(kind.__doc__ or '').strip().partition(chr(10))[0]}"
    return f"{kind.__name__}{where}"
