"""Usage statistics over many users in PostgreSQL: a few queries for all users of a tenant.

Days before yesterday are counted again only if their number of calls changed, which an index tells.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.store.forks import renew_after_forks
from recollect.store.postgres_connections import mapped_errors
from recollect.store.rows import load_queries
from recollect.store.tenants import beyond, prefix_of
from recollect.times import utc_now
from recollect.usage_metrics import BOUNDS, FACT_TOOLS, CallGroup, Tally

if TYPE_CHECKING:
    from psycopg import Connection

_SQL: dict[str, Any] = load_queries(Path(__file__).parent / "postgres.sql")
_MOST_TENANTS = 64


@dataclass(slots=True)
class _DayCounts:
    number: int
    calls: dict[CallGroup, int] = field(default_factory=dict)
    talks: int = 0
    facts: int = 0


class PostgresTally:
    """The counts cached in one process. Thread-safe."""

    def __init__(self, reading: Callable[[], AbstractContextManager[Connection | None]]) -> None:
        self._reading = reading
        self._known: OrderedDict[str | None, dict[str, _DayCounts]] = OrderedDict()
        self._guard = threading.Lock()
        renew_after_forks(self, PostgresTally._renew)

    def tally(self, tenant: str | None, since: date, until: date) -> Tally:
        """Return the sum over a tenant's users, or over everyone."""
        with self._guard:
            known = dict(self._known.get(tenant, {}))
        with mapped_errors(), self._reading() as db:
            if db is None:
                return Tally()
            with db.transaction():
                db.execute(_SQL["one_view"])
                ask = _TallyQueries(db, tenant)
                numbers = dict(ask("days", since, until))
                recent = (utc_now().date() - timedelta(days=1)).isoformat()
                days = {
                    day: known[day]
                    if day < recent and day in known and known[day].number == number
                    else _DayCounts(number)
                    for day, number in numbers.items()
                }
                if anew := [day for day, counted in days.items() if not counted.calls]:
                    span = date.fromisoformat(min(anew)), date.fromisoformat(max(anew))
                    days |= {day: _DayCounts(numbers[day]) for day in numbers if min(anew) <= day <= max(anew)}
                    for *group, number in ask("calls", *span):
                        days[group[0]].calls[CallGroup(*group)] = number
                    for day, talks, facts in ask("talks", *span):
                        days[day].talks, days[day].facts = talks, facts
                episodes = dict(ask("episodes", since, until))
                [[users]] = ask("users", since, until)
        with self._guard:
            self._known[tenant] = self._known.get(tenant, {}) | days
            self._known.move_to_end(tenant)
            while len(self._known) > _MOST_TENANTS:
                self._known.popitem(last=False)
        return Tally(
            calls={group: number for counted in days.values() for group, number in counted.calls.items()},
            talks={day: counted.talks for day, counted in days.items() if counted.talks},
            facts={day: counted.facts for day, counted in days.items() if counted.talks},
            episodes=episodes,
            users=users,
        )

    def _renew(self) -> None:
        self._guard = threading.Lock()


class _TallyQueries:
    def __init__(self, db: Connection, tenant: str | None) -> None:
        self._db = db
        first = None if tenant is None else prefix_of(tenant)
        self._values = {
            "first": first,
            "beyond": beyond(first or ""),
            "bounds": list(BOUNDS),
            "tools": list(FACT_TOOLS),
        }
        whose = "of_everyone" if tenant is None else "of_no_tenant" if first is None else "of_tenant"
        self._whose = _SQL[whose].format()

    def __call__(self, what: str, since: date, until: date) -> list[Any]:
        sql: Any = _SQL[f"tally_{what}"].format(whose=self._whose)
        return self._db.execute(sql, {"since": since, "until": until, **self._values}).fetchall()
