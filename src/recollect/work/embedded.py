"""The queue of one machine: ``queue.db`` in the folder of the memories, beside ``recollect.db``.

It has a file of its own: hundreds of commits per second would delay everyone who registers a user in ``recollect.db``,
whose schema has its own versions; a damaged queue costs no memory; and a job could not share a transaction with a
record in either file, because each user's records are in a file of their own. Every commit is synced to disk. All
writes of a process use one connection, so that SQLite tells which changes are another's.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from recollect.errors import QueueFullError, StoreError
from recollect.store.sqlite_file import SqliteFile
from recollect.store.sqlite_tally import LATENCY_STEP
from recollect.times import Clock, to_text
from recollect.work.contract import (
    LEASE_SECONDS,
    QUEUE_SIZE,
    Accepted,
    Job,
    JobRequest,
    Lease,
    Retention,
    Settlement,
    TakenJobs,
    Task,
)
from recollect.work.rows import (
    JobRow,
    from_row,
    lease_from_row,
    retry_refusal,
    settlement_to_row,
    to_rows,
)
from recollect.work.sql_queue import Dialect, SqlQueue, queries
from recollect.work.wakeup import PollingWatcher, Watcher

_HERE = Path(__file__).parent
_SQL = queries(
    "embedded.sql",
    Dialect(
        jobs="jobs",
        schedules="schedules",
        named="(:names IS NULL OR name IN (SELECT value FROM json_each(:names)))",
        one_running=" INDEXED BY jobs_one_running",
        line=" INDEXED BY jobs_line",
    ),
    step=LATENCY_STEP,
)
_MIGRATIONS = _HERE / "embedded_migrations"


class EmbeddedQueue(SqlQueue):
    """A queue in a folder. Opens its file at the first use."""

    sql = _SQL

    def __init__(
        self, root: Path, *, size: int = QUEUE_SIZE, clock: Clock | None = None, retention: Retention | None = None
    ) -> None:
        super().__init__(size=size, clock=clock, retention=retention)
        self._file = SqliteFile(
            root / "queue.db", _MIGRATIONS, if_damaged="Stop all processes and move it away; a new one is created"
        )

    def put_many(self, tasks: Sequence[Task]) -> list[Accepted]:
        rows = to_rows(tasks, self.now())
        if not rows:
            return []
        with self._file.write() as db:
            accepted = self._put(db, rows)
        self.watchers.wake()
        return accepted

    def exchange(self, settlements: Sequence[Settlement], wanted: JobRequest) -> TakenJobs:
        rows = [settlement_to_row(settled) for settled in settlements]
        with self._file.write() as db:
            lost = [
                row["id"]
                for row in rows
                if not db.execute(_SQL["settle"], row).rowcount
                and not db.execute(_SQL["settled_before"], row).fetchone()
            ]
            leases: list[Any] = []
            if wanted.limit > 0:
                leases = self._take(db, wanted)
        leases.sort(key=lambda row: (-row[4], row[-1]))  # by priority, then in order
        return TakenJobs(tuple(lease_from_row(row[:-1]) for row in leases), tuple(lost))

    def renew(self, leases: Sequence[Lease], seconds: float = LEASE_SECONDS) -> tuple[str, ...]:
        until = to_text(self.now() + timedelta(seconds=seconds))
        with self._file.write() as db:
            return tuple(
                lease.job.id
                for lease in leases
                if not db.execute(_SQL["renew"], {"until": until, "id": lease.job.id, "fence": lease.fence}).rowcount
            )

    def retry(self, job_id: str) -> Job:
        with self._file.write() as db:
            done = db.execute(_SQL["retry"], {"id": job_id, "now": to_text(self.now())}).rowcount
            row = db.execute(_SQL["job"], {"id": job_id}).fetchone()
        job = None if row is None else from_row(row)
        if not done or job is None:
            raise retry_refusal(job)
        self.watchers.wake()
        return job

    @property
    def pending(self) -> bool:
        return self._file.pending

    def advance(self, schedule: str, slot: datetime, tasks: Sequence[Task] = ()) -> bool:
        rows = to_rows(tasks, self.now())
        with self._file.write() as db:
            if not db.execute(_SQL["advance"], {"name": schedule, "slot": to_text(slot)}).rowcount:
                return False
            self._put(db, rows)
        self.watchers.wake()
        return True

    def watcher(self) -> Watcher:
        seen = [self._version()]

        def changed() -> bool:
            last, seen[0] = seen[0], self._version()
            return seen[0] != last

        return self.watchers.add(PollingWatcher(changed))

    def close(self) -> None:
        self._file.finish_and_close()

    def _put(self, db: sqlite3.Connection, rows: Sequence[JobRow]) -> list[Accepted]:
        accepted = []
        for row in rows:
            if db.execute(_SQL["put"], asdict(row)).fetchall():
                accepted.append(Accepted(row.id, fresh=True))
            else:
                accepted.append(Accepted(db.execute(_SQL["same_key"], {"key": row.key}).fetchone()[0], fresh=False))
        if any(put.fresh for put in accepted) and self._is_full(db):
            raise QueueFullError()
        return accepted

    def _is_full(self, db: sqlite3.Connection) -> bool:
        return bool(db.execute(_SQL["active"], {"most": self.size + 1}).fetchone()[0] > self.size)

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        # looking at a queue that nobody has used yet does not create it
        return self._file.open() if self._file.path.exists() else self._file.read()

    def _writing(self, *, erases: bool = False) -> AbstractContextManager[sqlite3.Connection]:
        return self._file.write(erases=erases)

    @staticmethod
    def _list(values: Sequence[str] | None) -> str | None:
        return None if values is None else json.dumps(list(values))

    def _version(self) -> tuple[int, int]:
        """Return a value that changes when another connection commits."""
        try:
            with self._file.open() as db:
                return id(db), db.execute("PRAGMA data_version").fetchone()[0]
        except StoreError:
            return 0, 0  # whoever wakes because of this gets the error
