"""What an operator sees: how many users there are, how the tools do, and what waits. Never what anybody remembers."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone

from starlette.responses import Response

from recollect.errors import NotFoundError, RecollectError, StoreError
from recollect.records import ToolCall
from recollect.store.keys import DEFAULT_TENANT
from recollect.store.tenants import local_id, users_of
from recollect.surfaces.web import charts
from recollect.surfaces.web.figures import BOUNDS, by_day, figures, spread
from recollect.surfaces.web.pages import Asked, page, then
from recollect.work.contract import Job

SPANS = (1, 7, 30, 90)
_MOST_USERS = 500
_MOST_CALLS = 20_000
_STATES = {"ready": "waiting", "running": "running", "done": "done", "dead": "given up"}


def dashboard(asked: Asked) -> Response:
    """How the tools were used, how well and how fast."""
    days = asked.number("days", 7, 90)
    days = days if days in SPANS else 7
    last = datetime.now(timezone.utc).date()
    first = last - timedelta(days=days - 1)
    calls: list[ToolCall] = []
    episodes: list[date] = []
    took: list[float] = []
    unread, names = 0, [stored for _, stored in users_of(asked.visitor.tenant, asked.app.users())]
    since = datetime.combine(first, time(), timezone.utc)
    for stored in names[:_MOST_USERS]:
        memory = asked.app.user(stored)
        try:
            calls += memory.calls(since=since, limit=_MOST_CALLS)
            took += [
                float(run.duration_ms) for run in memory.runs(since=first, limit=500) if run.duration_ms is not None
            ]
            episodes += [one.created_at.date() for one in memory.read(kind="episode", since=since)]
        except StoreError:
            unread += 1
    found = figures(calls, first, last)
    bounds = [str(bound) if bound < 1000 else f"{bound // 1000}k" for bound in BOUNDS] + ["more"]
    return page(
        asked,
        "dashboard.html",
        spans=SPANS,
        days=days,
        found=found,
        users=len(names),
        left=max(len(names) - _MOST_USERS, 0) + unread,
        per_tool=charts.bars(found.per_tool[:12], "Calls per tool") if found.per_tool else None,
        per_day=charts.columns([(f"{day:%-d %b}", number) for day, number in found.per_day], "Calls per day"),
        success=None if found.success is None else charts.gauge(found.success, f"{found.success:.1%} succeeded"),
        latency=charts.columns(list(zip(bounds, found.latency.bars, strict=True)), "Calls by latency", labels=13),
        episodes=len(episodes) / days,
        per_day_episodes=charts.columns(
            [(f"{day:%-d %b}", number) for day, number in by_day(episodes, first, last)], "Episodes per day"
        ),
        completion=spread(took),
        depth=_depth(asked),
    )


def users(asked: Asked) -> Response:
    """Everyone of the tenant, with how much is kept."""
    rows: list[tuple[str, dict[str, int] | None, str, datetime | None]] = []
    found = sorted(users_of(asked.visitor.tenant, asked.app.users()))
    start = asked.number("from", 1, 1_000_000) - 1
    for local, stored in found[start : start + 100]:
        memory = asked.app.user(stored)
        try:
            last = memory.history(limit=1)
            rows.append((local, memory.count(), memory.mode, last[-1].at if last else None))
        except StoreError:
            rows.append((local, None, "cannot be read", None))
    more = start + 101 if len(found) > start + 100 else None
    return page(asked, "users.html", rows=rows, number=len(found), more=more)


def queue(asked: Asked) -> Response:
    """What waits, and what was given up."""
    with asked.app.queue() as waiting:
        letters = [(job, local) for job in waiting.dead(limit=200) if (local := _local(asked, job)) is not None]
    return page(asked, "queue.html", depth=_depth(asked), letters=letters)


def dead_letter(asked: Asked) -> Response:
    """Begin a job anew, or remove it."""
    name, retry = asked.path["id"], asked.form.get("do") == "retry"
    with asked.app.queue() as waiting:
        job = waiting.job(name)
        if job is None or job.state != "dead" or _local(asked, job) is None:
            raise NotFoundError("There is no such dead letter; perhaps it was retried already.")
        if retry:
            waiting.retry(name)
        else:
            waiting.drop(name)
    return then(asked, "operator/queue", "retried" if retry else "dropped")


def _depth(asked: Asked) -> dict[str, int] | None:
    try:
        with asked.app.queue() as waiting:
            found = waiting.depth()
    except RecollectError:
        return None
    return {said: found.get(state, 0) for state, said in _STATES.items()}  # type: ignore[call-overload]


def _local(asked: Asked, job: Job) -> str | None:
    """Whose job it is, as the operator's tenant knows them; None if it is none of theirs."""
    tenant = asked.visitor.tenant
    if not job.user_id:
        return "everyone" if tenant == DEFAULT_TENANT else None
    return local_id(tenant, job.user_id)
