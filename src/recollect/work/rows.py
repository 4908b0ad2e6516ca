"""Tasks and jobs as rows: validation before anything is stored, and the columns.

Used by all queues, so that they cannot differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.checks import MAX_NESTING, is_nested_deeper
from recollect.errors import InvalidInputError, NotFoundError
from recollect.records import new_id
from recollect.store.tenants import prefix_of
from recollect.times import from_text, parse_moment, to_text
from recollect.usage_metrics import QueueMetrics, latency_of
from recollect.userid import check_user_id
from recollect.work.contract import Job, Lease, Settlement, Task

COLUMNS = (
    "id, name, user_id, payload, priority, run_at, attempts, max_attempts, state, key, created_at, finished_at, "
    "error, result"
)
SOME = 100
"""The number of jobs examined first when taking some: enough, unless they belong to few users."""
PAYLOAD_BYTES = 1_000_000
RESULT_BYTES = 64_000
_NAME, _KEY = 100, 300
_SAID = {"ready": "waiting", "running": "running", "done": "done", "dead": "dead"}


@dataclass(frozen=True, slots=True)
class JobRow:
    id: str
    name: str
    user_id: str | None
    payload: str
    priority: int
    run_at: str
    max_attempts: int
    key: str | None
    once: bool
    created_at: str


def to_row(task: Task, now: datetime) -> JobRow:
    """Return the row of a new job, or raise `InvalidInputError`."""
    _check_text("name", task.name, _NAME)
    if task.key is not None:
        _check_text("key", task.key, _KEY)
    if task.once and task.key is None:
        raise InvalidInputError("once", "needs a key, because jobs without one are never the same")
    for field, value, low, high in (
        ("priority", task.priority, -1000, 1000),
        ("max_attempts", task.max_attempts, 1, 1000),
    ):
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise InvalidInputError(field, f"must be a whole number from {low} to {high}")
    run_at = now if task.run_at is None else parse_moment("run_at", task.run_at)
    return JobRow(
        id=new_id("job"),
        name=task.name,
        user_id=None if task.user_id is None else check_user_id(task.user_id),
        payload=_dump_payload(task.payload),
        priority=task.priority,
        run_at=to_text(run_at),
        max_attempts=task.max_attempts,
        key=task.key,
        once=task.once,
        created_at=to_text(now),
    )


def to_rows(tasks: Sequence[Task], now: datetime) -> list[JobRow]:
    """Return the row of each task; all are validated before the first is stored."""
    return [to_row(task, now) for task in tasks]


def from_row(row: Sequence[Any]) -> Job:
    """Return the job of a row with `COLUMNS`."""
    job_id, name, user_id, payload, priority, run_at, attempts, most, state, key, created, finished, error, result = row
    return Job(
        id=job_id,
        name=name,
        user_id=user_id,
        payload=json.loads(payload),
        priority=priority,
        run_at=from_text(run_at),
        attempts=attempts,
        max_attempts=most,
        state=state,
        key=key,
        created_at=from_text(created),
        finished_at=None if finished is None else from_text(finished),
        error=error,
        result=None if result is None else json.loads(result),
    )


def lease_from_row(row: Sequence[Any]) -> Lease:
    """Return the lease of a row with `COLUMNS` and the fence."""
    return Lease(from_row(row[:-1]), row[-1])


def settlement_to_row(settled: Settlement) -> dict[str, Any]:
    return {
        "id": settled.id,
        "fence": settled.fence,
        "new_fence": settled.fence + settled.revoked,
        "state": settled.state,
        "attempts": settled.attempts,
        "run_at": None if settled.run_at is None else to_text(settled.run_at),
        "finished_at": None if settled.finished_at is None else to_text(settled.finished_at),
        "error": settled.error,
        "result": None if settled.result is None else dump("result", settled.result, RESULT_BYTES),
    }


def tenant_condition(queries: Mapping[str, str], tenant: str | None) -> tuple[str, dict[str, str | None]]:
    """Return a condition for the jobs of a tenant, or for all, and its value."""
    if tenant is None:
        return "1 = 1", {}
    prefix = prefix_of(tenant)
    return queries["of_no_tenant" if prefix is None else "of_tenant"].format(), {"prefix": prefix}


def queue_metrics(counts: Iterable[Sequence[Any]], completion: Iterable[tuple[int, int]]) -> QueueMetrics:
    """Return statistics from rows of (state, number, oldest) and of (step, number)."""
    numbers = {state: (number, oldest) for state, number, oldest in counts}
    oldest = numbers.get("ready", (0, None))[1]
    return QueueMetrics(
        **{name: numbers.get(state, (0, None))[0] for state, name in _SAID.items()},
        oldest=None if oldest is None else from_text(oldest),
        completion=latency_of(dict(completion)),
    )


def retry_refusal(job: Job | None) -> Exception:
    """Return the error for a job that cannot be restarted."""
    if job is None or job.state != "dead":
        return NotFoundError("there is no such dead letter")
    return InvalidInputError("id", "another job with the same key is queued; drop this one, or wait for the other")


def dump(field: str, value: object, most: int) -> str:
    """Return JSON that any database accepts: anything outside ASCII is escaped."""
    if is_nested_deeper(value):
        raise InvalidInputError(field, f"is nested too deeply; at most {MAX_NESTING} levels are allowed")
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInputError(field, "must be plain JSON: objects, lists, text, finite numbers") from None
    if len(text) > most:
        raise InvalidInputError(field, f"must have at most {most:,} bytes as JSON, not {len(text):,}")
    return text


def _dump_payload(payload: object) -> str:
    """Return the JSON of a payload that comes back as it was; keys that are not text would not."""
    if not isinstance(payload, Mapping):
        raise InvalidInputError("payload", f"must be a mapping, not {type(payload).__name__}")
    text = dump("payload", dict(payload), PAYLOAD_BYTES)
    if not _has_text_keys(payload):
        raise InvalidInputError("payload", "must have text keys, as in JSON")
    return text


def _has_text_keys(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _has_text_keys(item) for key, item in value.items())
    return not isinstance(value, list | tuple) or all(_has_text_keys(item) for item in value)


def _check_text(field: str, value: object, most: int) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= most or not value.isprintable():
        raise InvalidInputError(field, f"must be text of 1 to {most} printable characters")
