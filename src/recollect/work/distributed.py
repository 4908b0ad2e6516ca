"""The queue of many machines: tables ``memory_jobs`` and ``memory_schedules`` beside those of the PostgreSQL store.

A task can be queued within the caller's transaction, and exists only if that commits. Workers take turns at taking jobs
(a lock of a millisecond, for as many jobs as the worker has threads), never at working. NOTIFY announces new jobs. The
time is the server's. For why this is not procrastinate, see docs/work.md.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from recollect.errors import ConfigError, QueueFullError, StoreError
from recollect.store.postgres_connections import Pool, mapped_errors, parse_url
from recollect.store.rows import for_postgres, load_migrations
from recollect.times import Clock, from_text, to_text, utc_now
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
    lease_from_row,
    retry_refusal,
    settlement_to_row,
    to_rows,
)
from recollect.work.sql_queue import Dialect, SqlQueue, queries
from recollect.work.wakeup import Watcher

if TYPE_CHECKING:
    from psycopg import Connection

POOL_SIZE = 4
"""A worker needs one connection at a time, and a caller that queues a task a second."""
_HERE = Path(__file__).parent
_SQL: dict[str, Any] = for_postgres(
    queries(
        "distributed.sql",
        Dialect(
            jobs="memory_jobs",
            schedules="memory_schedules",
            named="(:names::text[] IS NULL OR name = ANY(:names::text[]))",
            held=" FOR UPDATE",
        ),
    )
)
_MIGRATION_LOCK = 0x5245434F4C4C4543
"""The store's lock: both may have to create the schema."""


class DistributedQueue(SqlQueue):
    """A queue in a database. Connects at the first use, with connections of its own or those of a ``pool``.

    The size limit is not exact: tasks queued at the same moment may exceed it.
    """

    sql = _SQL

    def __init__(
        self,
        url: str,
        *,
        size: int = QUEUE_SIZE,
        clock: Clock | None = None,
        retention: Retention | None = None,
        pool: Pool | None = None,
    ) -> None:
        super().__init__(size=size, clock=clock, retention=retention)
        self._conninfo = parse_url(url)
        self._own_pool = pool is None
        self._pool = pool or Pool(self._conninfo, POOL_SIZE)
        self._own_clock = clock not in (None, utc_now)
        self._ahead: timedelta | None = timedelta() if self._own_clock else None

    def put_many(self, tasks: Sequence[Task]) -> list[Accepted]:
        if not tasks:
            return []
        with self._transaction() as db:
            return self.put_within(db, tasks)

    def put_within(self, db: Connection[Any], tasks: Sequence[Task]) -> list[Accepted]:
        """Accept tasks as part of the caller's open transaction: they exist only if it commits.

        The connection must have the same search path as this queue, whose tables must exist; `prepare` creates them.
        """
        rows = to_rows(tasks, self.now())
        with mapped_errors():
            accepted = [self._put(db, row) for row in rows]
            if any(put.fresh for put in accepted):
                [active] = db.execute(_SQL["active"], {"most": self.size + 1}).fetchone() or (0,)
                if active > self.size:
                    raise QueueFullError()
                db.execute(_SQL["notify"])
        return accepted

    def prepare(self) -> None:
        """Create the tables now, rather than at the first use."""
        with mapped_errors(), self._lent():
            pass

    def exchange(self, settlements: Sequence[Settlement], wanted: JobRequest) -> TakenJobs:
        rows = [settlement_to_row(settled) for settled in settlements]
        # always in the same order: two that settle the same jobs must not wait for each other
        rows.sort(key=lambda row: str(row["id"]))
        leases: list[Any] = []
        lost: list[str] = []
        with self._transaction() as db:
            for row, settled in self._settle(db, rows):
                if not settled and not db.execute(_SQL["settled_before"], row).fetchone():
                    lost.append(row["id"])
            if wanted.limit > 0:
                db.execute(_SQL["one_taker"])
                leases = self._take(db, wanted)
        leases.sort(key=lambda row: (-row[4], row[-1]))  # by priority, then in order
        return TakenJobs(tuple(lease_from_row(row[:-1]) for row in leases), tuple(lost))

    def renew(self, leases: Sequence[Lease], seconds: float = LEASE_SECONDS) -> tuple[str, ...]:
        values = {
            "until": to_text(self.now() + timedelta(seconds=seconds)),
            "ids": [lease.job.id for lease in leases],
            "fences": [lease.fence for lease in leases],
        }
        with self._transaction() as db:
            held = set(db.execute(_SQL["renew"], values).fetchall())
        return tuple(lease.job.id for lease in leases if (lease.job.id, lease.fence) not in held)

    def recover(self, worker: str = "", held: Sequence[Lease] = ()) -> int:
        self._set_clock()
        return super().recover(worker, held)

    def retry(self, job_id: str) -> Job:
        from psycopg.errors import UniqueViolation

        done = 0
        # if the same key is queued at this very moment, the index refuses
        with suppress(UniqueViolation), self._transaction(mapped=False) as db:
            done = db.execute(_SQL["retry"], {"id": job_id, "now": to_text(self.now())}).rowcount
            db.execute(_SQL["notify"])
        job = self.job(job_id)
        if not done or job is None:
            raise retry_refusal(job)
        return job

    def advance(self, schedule: str, slot: datetime, tasks: Sequence[Task] = ()) -> bool:
        with self._transaction() as db:
            if not db.execute(_SQL["advance"], {"name": schedule, "slot": to_text(slot)}).rowcount:
                return False
            self.put_within(db, tasks)
        return True

    def now(self) -> datetime:
        return self._clock() + (self._ahead or timedelta())

    def watcher(self) -> Watcher:
        return self.watchers.add(ListeningWatcher(self._conninfo))

    def announce(self) -> None:
        super().announce()
        with self._transaction() as db:
            db.execute(_SQL["notify"])

    def close(self) -> None:
        if self._own_pool:
            self._pool.close()

    def _put(self, db: Connection[Any], row: JobRow) -> Accepted:
        for _ in range(10):
            # asks for a row and not for a count, because the store's transactions are pipelines
            if db.execute(_SQL["put"], asdict(row)).fetchone():
                return Accepted(row.id, fresh=True)
            found = db.execute(_SQL["same_key"], {"key": row.key}).fetchone()
            if found is not None:
                return Accepted(found[0], fresh=False)
            # it was finished between the two statements
        raise StoreError("a job with this key keeps appearing and finishing; try again")

    def _settle(self, db: Connection[Any], rows: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], bool]]:
        if not rows:
            return []
        with db.pipeline():
            cursors = [(row, db.execute(_SQL["settle"], row)) for row in rows]
        return [(row, cursor.rowcount > 0) for row, cursor in cursors]

    @contextmanager
    def _reading(self) -> Iterator[Connection[Any]]:
        with mapped_errors(), self._lent() as db:
            yield db

    def _writing(self, *, erases: bool = False) -> AbstractContextManager[Connection[Any]]:
        return self._transaction()

    @staticmethod
    def _list(values: Sequence[str] | None) -> list[str] | None:
        return None if values is None else list(values)

    @contextmanager
    def _transaction(self, *, mapped: bool = True) -> Iterator[Connection[Any]]:
        if mapped:
            with mapped_errors(), self._transaction(mapped=False) as db:
                yield db
        else:
            with self._lent() as db, db.transaction():
                yield db

    @contextmanager
    def _lent(self) -> Iterator[Connection[Any]]:
        here = self._pool.here()
        with here.lend() as db:
            if not here.migrated:
                _migrate_queue(db)
                here.migrated = True
            if self._ahead is None:
                self._ahead = _ahead(db)
            yield db

    def _set_clock(self) -> None:
        """Use the server's clock, so that leases end at the same moment for everyone."""
        if not self._own_clock:
            with mapped_errors(), self._lent() as db:
                self._ahead = _ahead(db)


class ListeningWatcher(Watcher):
    """Waits for a NOTIFY, on its own connection, or for a wake-up in this process."""

    def __init__(self, conninfo: dict[str, str]) -> None:
        super().__init__()
        self._conninfo = conninfo
        self._db: Connection[Any] | None = None
        self._pid = os.getpid()
        self._ear, self._mouth = socket.socketpair()
        self._ear.setblocking(False)
        self._mouth.setblocking(False)

    def wake(self) -> None:
        with suppress(OSError):  # full: it will wake anyway; closed: nothing sleeps
            self._mouth.send(b".")

    def wait(self, seconds: float) -> None:
        import psycopg

        deadline = monotonic() + seconds
        try:
            if self._db is None:
                self._db = psycopg.connect(**self._conninfo, autocommit=True)  # type: ignore[arg-type]
                self._db.execute(_SQL["listen"])
                return  # earlier notifications are not repeated: look once
            self._sleep(deadline, self._db.fileno())
            for _ in self._db.notifies(timeout=0):
                pass
        except (psycopg.Error, OSError):
            self._close_connection()
            self._sleep(deadline)

    def close(self) -> None:
        if os.getpid() == self._pid:
            self._close_connection()
            self._ear.close()
            self._mouth.close()

    def _sleep(self, deadline: float, *files: int) -> None:
        select.select([self._ear.fileno(), *files], [], [], max(deadline - monotonic(), 0))
        with suppress(BlockingIOError):
            while self._ear.recv(1024):
                pass

    def _close_connection(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = None


def _ahead(db: Connection[Any]) -> timedelta:
    """Return how far the server's clock is ahead of ours, within the time of a round trip."""
    before = utc_now()
    [text] = db.execute(_SQL["time"]).fetchone() or ("",)
    return from_text(text) - (before + (utc_now() - before) / 2)


def _migrate_queue(db: Connection[Any]) -> None:
    from psycopg import sql

    migrations = load_migrations(_HERE / "distributed_migrations")
    path, current, there = db.execute(_SQL["home"]).fetchone() or ("", None, False)
    if there and _version(db, len(migrations)) == len(migrations):
        return
    schema = path.split(",")[0].strip().strip('"')
    if schema in ("$user", ""):
        schema = current
    if schema is None:
        raise ConfigError("the search path of the database has no schema; add ?options=-csearch_path%3Drecollect")
    # before the transaction: one that began earlier may not see the tables another process made
    db.execute(_SQL["lock"], {"lock": _MIGRATION_LOCK})
    with db.transaction():
        if schema != current:
            db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        db.execute(_SQL["make_versions"])
        version = _version(db, len(migrations))  # another process may have been first
        for number, script in enumerate(migrations[version:], version + 1):
            db.execute(script.encode())
            db.execute(_SQL["set_version"], {"version": number})
    db.execute(_SQL["unlock"], {"lock": _MIGRATION_LOCK})


def _version(db: Connection[Any], known: int) -> int:
    [version] = db.execute(_SQL["version"]).fetchone() or (0,)
    if version > known:
        raise StoreError(
            f"this queue was written by a newer Recollect (schema {version}, this one knows {known}); upgrade Recollect"
        )
    return int(version)
