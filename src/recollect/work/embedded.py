"""The queue of one machine: ``queue.db`` in the folder of the memories, beside ``recollect.db``.

A file of its own: hundreds of commits a second would make everyone wait who registers a user in ``recollect.db``,
whose schema has its own versions; a damaged queue costs no memory; and a job could not share a transaction with a
record in either file, because records are in a file of each user's. Every commit is synced to disk. All writes of a
process go over one connection, so that SQLite tells which changes are another's.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from recollect.errors import QueueFullError, StoreError
from recollect.figures import QueueFigures
from recollect.store.rows import load_queries
from recollect.store.sqlite_file import SqliteFile
from recollect.store.sqlite_tally import LATENCY_STEP
from recollect.times import Clock, from_text, to_text
from recollect.work.contract import (
    LEASE_SECONDS,
    QUEUE_SIZE,
    STATES,
    Accepted,
    Job,
    Keeping,
    Lease,
    Queue,
    Settlement,
    State,
    Taken,
    Task,
    Wanted,
)
from recollect.work.rows import (
    COLUMNS,
    SOME,
    Row,
    from_row,
    lease_from_row,
    refusal,
    settlement_to_row,
    to_rows,
    told,
    whose,
)
from recollect.work.watching import PollingWatcher, Watcher

_HERE = Path(__file__).parent
_SQL = {name: sql.format(columns=COLUMNS) for name, sql in load_queries(_HERE / "embedded.sql").items()}
_TAKE = [_SQL["take"].format(chosen=_SQL[chosen]) for chosen in ("first_of_some", "first_of_all")]
_MIGRATIONS = _HERE / "embedded_migrations"


class EmbeddedQueue(Queue):
    """A queue in a folder. Opens its file at the first use."""

    def __init__(
        self, root: Path, *, size: int = QUEUE_SIZE, clock: Clock | None = None, keeping: Keeping | None = None
    ) -> None:
        super().__init__(size=size, clock=clock, keeping=keeping)
        self._file = SqliteFile(
            root / "queue.db", _MIGRATIONS, if_damaged="Stop all processes and move it away: a new one is begun"
        )

    def put_many(self, tasks: Sequence[Task]) -> list[Accepted]:
        rows = to_rows(tasks, self.now())
        if not rows:
            return []
        with self._file.write() as db:
            accepted = self._put(db, rows)
        self.watchers.wake()
        return accepted

    def exchange(self, settlements: Sequence[Settlement], wanted: Wanted) -> Taken:
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
        leases.sort(key=lambda row: (-row[4], row[-1]))  # by priority, then as they were put
        return Taken(tuple(lease_from_row(row[:-1]) for row in leases), tuple(lost))

    def renew(self, leases: Sequence[Lease], seconds: float = LEASE_SECONDS) -> tuple[str, ...]:
        until = to_text(self.now() + timedelta(seconds=seconds))
        with self._file.write() as db:
            return tuple(
                lease.job.id
                for lease in leases
                if not db.execute(_SQL["renew"], (until, lease.job.id, lease.fence)).rowcount
            )

    def running(self) -> list[tuple[Lease, str, datetime]]:
        with self._file.open() as db:
            rows = db.execute(_SQL["running"]).fetchall()
        return [(lease_from_row(row[:-2]), row[-2], from_text(row[-1])) for row in rows]

    def next_at(self, names: Sequence[str] | None = None) -> datetime | None:
        with self._file.open() as db:
            [at] = db.execute(_SQL["next_at"], {"now": to_text(self.now()), "names": _names(names)}).fetchone()
        return None if at is None else from_text(at)

    def job(self, job_id: str) -> Job | None:
        with self._file.open() as db:
            row = db.execute(_SQL["job"], (job_id,)).fetchone()
        return None if row is None else from_row(row)

    def collect(self, job_id: str) -> Job | None:
        with self._file.write() as db:
            row = db.execute(_SQL["job"], (job_id,)).fetchone()
            db.execute(_SQL["forget_result"], (job_id,))
        return None if row is None else from_row(row)

    def depth(self) -> dict[State, int]:
        with self._file.open() as db:
            counts: dict[State, int] = dict(db.execute(_SQL["depth"]).fetchall())
        return {state: counts.get(state, 0) for state in STATES}

    def figures(self, tenant: str | None = None) -> QueueFigures:
        condition, values = whose(_SQL, tenant)
        counted, took = (_SQL[name].format(whose=condition, step=LATENCY_STEP) for name in ("count", "completion"))
        with self._file.open() as db:
            counts = db.execute(counted, {"now": to_text(self.now()), **values}).fetchall()
            return told(counts, db.execute(took, values).fetchall())

    def dead(self, *, user_id: str | None = None, tenant: str | None = None, limit: int = 100) -> list[Job]:
        condition, values = whose(_SQL, tenant)
        sql = _SQL["dead"].format(whose=condition)
        with self._file.open() as db:
            rows = db.execute(sql, {"user_id": user_id, "limit": limit, **values}).fetchall()
        return [from_row(row) for row in rows]

    def retry(self, job_id: str) -> Job:
        with self._file.write() as db:
            done = db.execute(_SQL["retry"], {"id": job_id, "now": to_text(self.now())}).rowcount
            row = db.execute(_SQL["job"], (job_id,)).fetchone()
        job = None if row is None else from_row(row)
        if not done or job is None:
            raise refusal(job)
        self.watchers.wake()
        return job

    def drop(self, job_id: str) -> bool:
        with self._file.write() as db:
            return db.execute(_SQL["drop"], (job_id,)).rowcount > 0

    def erase_user(self, user_id: str) -> int:
        with self._file.write(erases=True) as db:
            return db.execute(_SQL["erase_user"], (user_id,)).rowcount

    @property
    def pending(self) -> bool:
        return self._file.pending

    def erase_jobs(self, wanted: Callable[[Job], bool]) -> int:
        with self._file.write(erases=True) as db:
            found = [job.id for job in map(from_row, db.execute(_SQL["every_job"]).fetchall()) if wanted(job)]
            return sum(db.execute(_SQL["erase_job"], (job_id,)).rowcount for job_id in found)

    def tidy(self) -> int:
        now = self.now()
        limits = {name: to_text(now - age) for name, age in asdict(self.keeping).items()}
        with self._file.write() as db:
            db.execute(_SQL["tidy_results"], limits)
            return db.execute(_SQL["tidy"], limits).rowcount

    def slot(self, schedule: str) -> datetime | None:
        with self._file.open() as db:
            row = db.execute(_SQL["slot"], (schedule,)).fetchone()
        return None if row is None else from_text(row[0])

    def advance(self, schedule: str, slot: datetime, tasks: Sequence[Task] = ()) -> bool:
        rows = to_rows(tasks, self.now())
        with self._file.write() as db:
            if not db.execute(_SQL["advance"], (schedule, to_text(slot))).rowcount:
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

    def _put(self, db: sqlite3.Connection, rows: Sequence[Row]) -> list[Accepted]:
        accepted = []
        for row in rows:
            if db.execute(_SQL["put"], asdict(row)).rowcount:
                accepted.append(Accepted(row.id, fresh=True))
            else:
                accepted.append(Accepted(db.execute(_SQL["same_key"], {"key": row.key}).fetchone()[0], fresh=False))
        if any(put.fresh for put in accepted) and db.execute(_SQL["active"]).fetchone()[0] > self.size:
            raise QueueFullError()
        return accepted

    def _take(self, db: sqlite3.Connection, wanted: Wanted) -> list[Any]:
        values = {
            "now": to_text(self.now()),
            "until": to_text(wanted.until),
            "worker": wanted.worker,
            "names": _names(wanted.names),
            "some": SOME,
        }
        rows: list[Any] = []
        for statement in _TAKE:
            if len(rows) < wanted.limit:
                rows += db.execute(statement, values | {"limit": wanted.limit - len(rows)}).fetchall()
        return rows

    def _version(self) -> tuple[int, int]:
        """Changes when another connection commits."""
        try:
            with self._file.open() as db:
                return id(db), db.execute("PRAGMA data_version").fetchone()[0]
        except StoreError:
            return 0, 0  # whoever wakes because of this gets the error


def _names(names: Sequence[str] | None) -> str | None:
    return None if names is None else json.dumps(list(names))
