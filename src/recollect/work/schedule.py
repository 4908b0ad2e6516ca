"""Scheduled work: cron expressions in UTC.

The latest time queued is stored with the queue, in one transaction with the job. So only one of many processes queues
it, and what was missed while none ran is caught up once, not once per missed time. There is no thread: the worker, or
any other caller, calls `tick`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from cronsim import CronSim, CronSimError

from recollect.errors import ConfigError
from recollect.times import to_text
from recollect.work.contract import Queue, Task


class Cron:
    """A cron expression of five fields: minute, hour, day of the month, month, day of the week. In UTC."""

    def __init__(self, expression: str, variable: str = "the schedule") -> None:
        self.expression = expression
        try:
            if len(expression.split()) != 5:
                raise CronSimError("five fields")
            next(CronSim(expression, datetime(2026, 1, 1)))
        except (CronSimError, StopIteration):
            raise ConfigError(
                f"{variable} is {expression!r}; use minute, hour, day, month and weekday in UTC, such as 0 23 * * *"
            ) from None

    def after(self, moment: datetime) -> datetime:
        """Return the first time after this one."""
        return next(CronSim(self.expression, moment))

    def until(self, moment: datetime) -> datetime:
        """Return the last time that is not after this one."""
        return next(CronSim(self.expression, moment + timedelta(microseconds=1), reverse=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleEntry:
    """A task and its schedule. ``name`` identifies it in the queue: do not change it."""

    name: str
    cron: Cron
    task: str
    priority: int = 0
    payload: dict[str, Any] = field(default_factory=dict)


class Schedule:
    """Queues the tasks of its entries when they are due."""

    def __init__(self, queue: Queue, entries: Sequence[ScheduleEntry]) -> None:
        names = [entry.name for entry in entries]
        if len(set(names)) != len(names):
            raise ConfigError("two entries of a schedule have the same name")
        self._queue = queue
        self._entries = tuple(entries)

    def tick(self) -> datetime | None:
        """Queue what is due; return when to call it next. Safe to call at any time, from anywhere.

        The job's payload has its time (``slot``) and the previous one (``since``).
        """
        return min((self._tick(entry) for entry in self._entries), default=None)

    def _tick(self, entry: ScheduleEntry) -> datetime:
        queue, now = self._queue, self._queue.now()
        last = queue.slot(entry.name)
        if last is None:
            # the first time ever: nothing was missed
            queue.advance(entry.name, now)
            last = now
        if entry.cron.after(last) <= now:
            slot = entry.cron.until(now)
            times = {"slot": to_text(slot), "since": to_text(last)}
            task = Task(
                name=entry.task,
                payload={**entry.payload, **times},
                priority=entry.priority,
                key=f"schedule:{entry.name}:{to_text(slot)}",
                once=True,
            )
            queue.advance(entry.name, slot, [task])
            last = slot
        return entry.cron.after(last)
