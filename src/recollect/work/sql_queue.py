"""The common part of the queues in SQLite and PostgreSQL: their statements, and the verbs that only run them.

The statements are in queue.sql, written once with ``:name`` placeholders. A `Dialect` fills in the differences between
the databases; statements of only one are in a file of its own (embedded.sql, distributed.sql).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from recollect.store.rows import load_queries
from recollect.times import from_text, to_text
from recollect.usage_metrics import BOUNDS, QueueMetrics
from recollect.work.contract import STATES, Job, JobRequest, Lease, Queue, State
from recollect.work.rows import COLUMNS, SOME, from_row, lease_from_row, queue_metrics, tenant_condition

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The differences between the two databases in the statements of queue.sql."""

    jobs: str
    schedules: str
    named: str
    """Tests if the name of a job is among ``:names``, if these are given."""
    one_running: str = ""
    line: str = ""
    """The indexes to use, where the database is told."""
    held: str = ""
    """Locks a row that is read, where the transaction alone does not."""


def queries(own: str, dialect: Dialect, **words: str) -> dict[str, str]:
    """Return the statements of a queue: the common ones, and those of its own file. ``words`` are filled in too."""
    found = load_queries(_HERE / "queue.sql") | load_queries(_HERE / own)
    sql = {name: text.format(columns=COLUMNS, **asdict(dialect), **words) for name, text in found.items()}
    for chosen in ("first_of_some", "first_of_all"):
        sql[f"take_{chosen}"] = sql["take"].format(chosen=sql[chosen])
    return sql


class SqlQueue(Queue):
    """A queue in a database. The connections it lends can `execute`, as in either database."""

    sql: ClassVar[Mapping[str, Any]]

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Any]:
        """Lend a connection for a single statement."""

    @abstractmethod
    def _writing(self, *, erases: bool = False) -> AbstractContextManager[Any]:
        """Lend a connection with a transaction. What it ``erases`` must not survive in a log."""

    @staticmethod
    @abstractmethod
    def _list(values: Sequence[str] | None) -> Any:
        """Return a list of texts as a value for a statement."""

    def running(self) -> list[tuple[Lease, str, datetime]]:
        return [(lease_from_row(row[:-2]), row[-2], from_text(row[-1])) for row in self._rows("running")]

    def next_at(self, names: Sequence[str] | None = None) -> datetime | None:
        [[at]] = self._rows("next_at", now=to_text(self.now()), names=self._list(names))
        return None if at is None else from_text(at)

    def has_due(self, names: Sequence[str] | None = None) -> bool:
        [[due]] = self._rows("has_due", now=to_text(self.now()), names=self._list(names))
        return bool(due)

    def waiting(self) -> dict[str, int]:
        return dict(self._rows("waiting"))

    def drop_waiting(self, name: str) -> int:
        with self._writing() as db:
            return int(db.execute(self.sql["drop_waiting"], {"name": name}).rowcount)

    def job(self, job_id: str) -> Job | None:
        rows = self._rows("job", id=job_id)
        return from_row(rows[0]) if rows else None

    def collect(self, job_id: str) -> Job | None:
        with self._writing() as db:
            row = db.execute(self.sql["collect"], {"id": job_id}).fetchone()
            db.execute(self.sql["forget_result"], {"id": job_id})
        return None if row is None else from_row(row)

    def depth(self) -> dict[State, int]:
        counts: dict[State, int] = dict(self._rows("depth"))
        return {state: counts.get(state, 0) for state in STATES}

    def metrics(self, tenant: str | None = None) -> QueueMetrics:
        condition, values = tenant_condition(self.sql, tenant)
        given = {"now": to_text(self.now()), "bounds": list(BOUNDS), **values}
        counts, took = (self._rows(name, condition, **given) for name in ("count", "completion"))
        return queue_metrics(counts, took)

    def dead(self, *, user_id: str | None = None, tenant: str | None = None, limit: int = 100) -> list[Job]:
        condition, values = tenant_condition(self.sql, tenant)
        return [from_row(row) for row in self._rows("dead", condition, user_id=user_id, limit=limit, **values)]

    def drop(self, job_id: str) -> bool:
        with self._writing() as db:
            return bool(db.execute(self.sql["drop"], {"id": job_id}).rowcount > 0)

    def erase_user(self, user_id: str) -> int:
        with self._writing(erases=True) as db:
            return int(db.execute(self.sql["erase_user"], {"user_id": user_id}).rowcount)

    def erase_jobs(self, wanted: Callable[[Job], bool]) -> int:
        with self._writing(erases=True) as db:
            found = [job.id for job in map(from_row, db.execute(self.sql["every_job"]).fetchall()) if wanted(job)]
            return sum(db.execute(self.sql["erase_job"], {"id": job_id}).rowcount for job_id in found)

    def tidy(self) -> int:
        now = self.now()
        limits = {name: to_text(now - age) for name, age in asdict(self.retention).items()}
        with self._writing() as db:
            db.execute(self.sql["tidy_results"], limits)
            return int(db.execute(self.sql["tidy"], limits).rowcount)

    def slot(self, schedule: str) -> datetime | None:
        rows = self._rows("slot", name=schedule)
        return from_text(rows[0][0]) if rows else None

    def _take(self, db: Any, wanted: JobRequest) -> list[Any]:
        values = {
            "now": to_text(self.now()),
            "until": to_text(wanted.until),
            "worker": wanted.worker,
            "names": self._list(wanted.names),
            "some": SOME,
        }
        rows: list[Any] = []
        for name in ("take_first_of_some", "take_first_of_all"):
            if len(rows) < wanted.limit:
                rows += db.execute(self.sql[name], values | {"limit": wanted.limit - len(rows)}).fetchall()
        return rows

    def _rows(self, name: str, whose: str = "", /, **values: Any) -> list[Any]:
        sql = self.sql[name].format(whose=whose) if whose else self.sql[name]
        with self._reading() as db:
            return list(db.execute(sql, values).fetchall())
