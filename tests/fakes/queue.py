"""The plainest queue that keeps the contract: the durable ones are compared with it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recollect.errors import QueueFullError
from recollect.store.tenants import belongs
from recollect.times import Clock
from recollect.usage_metrics import QueueMetrics, latency_of, latency_step
from recollect.work.contract import (
    LEASE_SECONDS,
    QUEUE_SIZE,
    Accepted,
    Job,
    JobRequest,
    Lease,
    Queue,
    Retention,
    Settlement,
    State,
    TakenJobs,
    Task,
)
from recollect.work.rows import COLUMNS, JobRow, from_row, retry_refusal, settlement_to_row, to_rows


@dataclass
class _Entry:
    """A job and who holds it."""

    job: Job
    seq: int
    once: bool
    fence: int = 0
    worker: str = ""
    until: datetime | None = None

    @property
    def active(self) -> bool:
        return not self.job.finished

    @property
    def place(self) -> tuple[int, int]:
        return -self.job.priority, self.seq


class MemoryQueue(Queue):
    """A queue in memory."""

    def __init__(
        self, *, size: int = QUEUE_SIZE, clock: Clock | None = None, retention: Retention | None = None
    ) -> None:
        super().__init__(size=size, clock=clock, retention=retention)
        self._entries: dict[str, _Entry] = {}
        self._slots: dict[str, datetime] = {}
        self._count = 0
        self._guard = threading.RLock()

    def put_many(self, tasks: Sequence[Task]) -> list[Accepted]:
        rows = to_rows(tasks, self.now())
        with self._guard:
            before = dict(self._entries)
            accepted = [self._put(row) for row in rows]
            active = sum(entry.active for entry in self._entries.values())
            if active > self.size and any(put.fresh for put in accepted):
                self._entries = before
                raise QueueFullError()
        self.watchers.wake()
        return accepted

    def exchange(self, settlements: Sequence[Settlement], wanted: JobRequest) -> TakenJobs:
        for settled in settlements:
            settlement_to_row(settled)  # refuses what the others refuse
        with self._guard:
            lost = tuple(settled.id for settled in settlements if not self._settle(settled))
            return TakenJobs(tuple(self._take(wanted)), lost)

    def renew(self, leases: Sequence[Lease], seconds: float = LEASE_SECONDS) -> tuple[str, ...]:
        with self._guard:
            lost = []
            for lease in leases:
                entry = self._entries.get(lease.job.id)
                if entry is None or entry.fence != lease.fence or entry.job.state != "running":
                    lost.append(lease.job.id)
                else:
                    entry.until = self.now() + timedelta(seconds=seconds)
            return tuple(lost)

    def running(self) -> list[tuple[Lease, str, datetime]]:
        with self._guard:
            return [
                (Lease(entry.job, entry.fence), entry.worker, entry.until)
                for entry in self._entries.values()
                if entry.job.state == "running" and entry.until is not None
            ]

    def next_at(self, names: Sequence[str] | None = None) -> datetime | None:
        now = self.now()
        with self._guard:
            jobs = [entry.job for entry in self._entries.values() if entry.job.state == "ready"]
        return min(
            (job.run_at for job in jobs if job.run_at > now and (names is None or job.name in names)), default=None
        )

    def has_due(self, names: Sequence[str] | None = None) -> bool:
        now, held = self.now(), set[str]()
        with self._guard:
            entries = sorted(self._entries.values(), key=lambda entry: entry.place)
        for job in (entry.job for entry in entries):
            if job.state != "ready" or (names is not None and job.name not in names):
                continue
            if job.run_at <= now and job.user_id not in held:
                return True
            if job.attempts > 0 and job.user_id is not None:
                held.add(job.user_id)
        return False

    def waiting(self) -> dict[str, int]:
        with self._guard:
            return dict(sorted(Counter(e.job.name for e in self._entries.values() if e.job.state == "ready").items()))

    def drop_waiting(self, name: str) -> int:
        return self._remove(lambda entry: entry.job.name == name and entry.job.state == "ready")

    def job(self, job_id: str) -> Job | None:
        with self._guard:
            entry = self._entries.get(job_id)
            return None if entry is None else entry.job

    def collect(self, job_id: str) -> Job | None:
        with self._guard:
            entry = self._entries.get(job_id)
            if entry is None:
                return None
            job = entry.job
            if job.finished:
                entry.job = replace(job, result=None)
            return job

    def depth(self) -> dict[State, int]:
        counts: dict[State, int] = {"ready": 0, "running": 0, "done": 0, "dead": 0}
        with self._guard:
            for entry in self._entries.values():
                counts[entry.job.state] += 1
        return counts

    def metrics(self, tenant: str | None = None) -> QueueMetrics:
        now, took = self.now(), Counter[int]()
        numbers, due = Counter[str](), list[datetime]()
        for job in self._jobs(tenant):
            numbers[job.state] += 1
            if job.state == "ready" and job.run_at <= now:
                due.append(job.created_at if job.attempts else job.run_at)
            if job.state == "done" and job.finished_at is not None:
                began = max(job.run_at, job.created_at) if job.attempts == 1 else job.created_at
                took[latency_step((job.finished_at - began) / timedelta(milliseconds=1))] += 1
        return QueueMetrics(
            waiting=numbers["ready"],
            running=numbers["running"],
            done=numbers["done"],
            dead=numbers["dead"],
            oldest=min(due, default=None),
            completion=latency_of(took),
        )

    def _jobs(self, tenant: str | None) -> list[Job]:
        with self._guard:
            return [entry.job for entry in self._entries.values() if belongs(tenant, entry.job.user_id or "")]

    def dead(self, *, user_id: str | None = None, tenant: str | None = None, limit: int = 100) -> list[Job]:
        with self._guard:
            found = [
                (entry.job.finished_at, entry.seq, entry.job)
                for entry in self._entries.values()
                if entry.job.state == "dead"
                and user_id in (None, entry.job.user_id)
                and belongs(tenant, entry.job.user_id or "")
            ]
        return [job for _, _, job in sorted(found, key=lambda item: item[:2], reverse=True)][:limit]

    def retry(self, job_id: str) -> Job:
        with self._guard:
            entry = self._entries.get(job_id)
            if entry is None or entry.job.state != "dead":
                raise retry_refusal(None)
            if entry.job.key is not None and self._same_key(entry.job.key, active=True) is not None:
                raise retry_refusal(entry.job)
            entry.job = replace(entry.job, state="ready", attempts=0, run_at=self.now(), finished_at=None)
            entry.fence += 1
        self.watchers.wake()
        return entry.job

    def drop(self, job_id: str) -> bool:
        return self._remove(lambda entry: entry.job.id == job_id and entry.job.state != "running") > 0

    def erase_user(self, user_id: str) -> int:
        return self._remove(lambda entry: entry.job.user_id == user_id)

    def erase_jobs(self, wanted: Callable[[Job], bool]) -> int:
        return self._remove(lambda entry: wanted(entry.job))

    def tidy(self) -> int:
        now, retention = self.now(), self.retention

        def stale(entry: _Entry) -> bool:
            ages = {"done": retention.once if entry.once else retention.done, "dead": retention.dead}
            at = entry.job.finished_at
            return at is not None and at < now - ages[entry.job.state]

        with self._guard:
            for entry in self._entries.values():
                if entry.job.state == "done" and entry.job.finished_at and entry.job.finished_at < now - retention.done:
                    entry.job = replace(entry.job, result=None)
            return self._remove(stale)

    def slot(self, schedule: str) -> datetime | None:
        return self._slots.get(schedule)

    def advance(self, schedule: str, slot: datetime, tasks: Sequence[Task] = ()) -> bool:
        with self._guard:
            last = self._slots.get(schedule)
            if last is not None and slot <= last:
                return False
            self.put_many(tasks)
            self._slots[schedule] = slot
            return True

    def close(self) -> None:
        """There is nothing to let go of."""

    def _put(self, row: JobRow) -> Accepted:
        if row.key is not None:
            same = self._same_key(row.key, active=not row.once)
            if same is not None:
                return Accepted(same, fresh=False)
        values = {"attempts": 0, "state": "ready", "finished_at": None, "error": None, "result": None}
        job = from_row([values[name] if name in values else getattr(row, name) for name in COLUMNS.split(", ")])
        self._count += 1
        self._entries[job.id] = _Entry(job, self._count, row.once)
        return Accepted(job.id, fresh=True)

    def _same_key(self, key: str, *, active: bool) -> str | None:
        for entry in reversed(self._entries.values()):
            if entry.job.key == key and (entry.active or (entry.once and not active)):
                return entry.job.id
        return None

    def _settle(self, settled: Settlement) -> bool:
        entry = self._entries.get(settled.id)
        if entry is None or entry.fence != settled.fence:
            return False
        if entry.job.state == "running":
            entry.fence += settled.revoked
            entry.job = replace(
                entry.job,
                state=settled.state,
                attempts=settled.attempts,
                run_at=settled.run_at or entry.job.run_at,
                finished_at=settled.finished_at,
                error=settled.error,
                result=settled.result,
                payload={} if settled.state == "done" else entry.job.payload,
            )
        return True

    def _take(self, wanted: JobRequest) -> list[Lease]:
        now = self.now()
        entries = sorted(self._entries.values(), key=lambda entry: entry.place)
        blocked = {entry.job.user_id for entry in entries if entry.job.state == "running"}
        leases: list[Lease] = []
        for entry in entries:
            job = entry.job
            if job.state != "ready" or len(leases) >= wanted.limit:
                continue
            due = job.run_at <= now
            free = job.user_id is None or job.user_id not in blocked
            if wanted.names is not None and job.name not in wanted.names:
                continue
            if due or job.attempts > 0:
                blocked.add(job.user_id)
            if due and free:
                entry.job = replace(job, state="running", attempts=job.attempts + 1)
                entry.fence, entry.worker, entry.until = entry.fence + 1, wanted.worker, wanted.until
                leases.append(Lease(entry.job, entry.fence))
        return leases

    def _remove(self, wanted: Callable[[_Entry], bool]) -> int:
        with self._guard:
            gone = [job_id for job_id, entry in self._entries.items() if wanted(entry)]
            for job_id in gone:
                del self._entries[job_id]
            return len(gone)


__all__ = ["MemoryQueue"]
