"""The operators' pages: users, metrics and the queue, but never the content of a memory.

Operators see only their own tenant. They can erase a user on request, and retry or drop failed jobs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.responses import Response

from recollect.errors import InvalidInputError, NotFoundError, StoreError
from recollect.store.keys import DEFAULT_TENANT
from recollect.store.tenants import local_id, stored_id, users_of
from recollect.surfaces.web import charts
from recollect.surfaces.web.charts import Chart
from recollect.surfaces.web.rendering import WebRequest, redirect_with_notice, render_page
from recollect.usage_metrics import Latency, UsageMetrics
from recollect.work.contract import Job

SPANS = (1, 7, 30, 90)
USERS = 50
"""The number of users on a page."""
LETTERS = 100
SECONDS = 2.0
"""The time a page spends on counting users. The next request continues."""
_MOST_BARS = 12
_ENOUGH = 0.9
"""The share of calls that should succeed."""
_KEPT = "From when a job was queued (or due) until it was done. Done jobs are kept for a day."


def dashboard_view(request: WebRequest) -> Response:
    """Show usage metrics: calls, success rate, latency."""
    days = request.number("days", 7, SPANS[-1])
    days = days if days in SPANS else 7
    found = request.app.metrics(days=days, tenant=request.login.tenant, seconds=SECONDS)
    return render_page(
        request,
        "dashboard.html",
        spans=SPANS,
        days=days,
        found=found,
        churn=_churn(found),
        lasting=charts.format_duration,
        **_charts(found),
    )


def users_view(request: WebRequest) -> Response:
    """List users of the tenant with the size of their memories."""
    tenant, begins, after = request.login.tenant, request.query.get("q", ""), request.query.get("after", "")
    behind = stored_id(tenant, after) if after else ""
    some = request.app.users(tenant=tenant, begins=begins, after=behind, limit=USERS + 1)
    found = list(users_of(tenant, some))
    return render_page(
        request,
        "users.html",
        rows=[(local, *_user_summary(request, stored)) for local, stored in found[:USERS]],
        begins=begins,
        after=after,
        more=found[USERS - 1][0] if len(found) > USERS else None,
    )


def confirm_erase_user_view(request: WebRequest) -> Response:
    """Ask for confirmation before a user is erased."""
    local = request.query.get("user", "")
    counts, mode, _ = _user_summary(request, _require_user(request, local))
    return render_page(request, "erase_user.html", local=local, counts=counts, whether=mode)


def erase_user_view(request: WebRequest) -> Response:
    """Erase a user if the typed id matches, and show the receipt."""
    local = request.field("user")
    stored = _require_user(request, local)
    if request.form.get("typed", "") != local:
        raise InvalidInputError("typed", "must be the user's id exactly as shown; nothing was erased")
    return render_page(request, "erased_user.html", local=local, receipt=request.app.erase_user(stored))


def queue_view(request: WebRequest) -> Response:
    """Show the queue: waiting jobs, completion times, failed jobs."""
    with request.app.queue() as waiting:
        found = waiting.metrics(request.login.tenant)
        dead = waiting.dead(tenant=request.login.tenant, limit=LETTERS)
    letters = [(job, local) for job in dead if (local := _local_user(request, job)) is not None]
    took = _histogram(found.completion, "Time until done", "Jobs", _KEPT)
    return render_page(
        request, "queue.html", queue=found, letters=letters, lasting=charts.format_duration, completion=took
    )


def dead_letter_view(request: WebRequest) -> Response:
    """Retry or remove a failed job."""
    name, retry = request.path["id"], request.form.get("do") == "retry"
    with request.app.queue() as waiting:
        job = waiting.job(name)
        if job is None or job.state != "dead" or _local_user(request, job) is None:
            raise NotFoundError("This dead letter does not exist; it may have been retried already.")
        if retry:
            waiting.retry(name)
        else:
            waiting.drop(name)
    return redirect_with_notice(request, "operator/queue", "retried" if retry else "dropped")


def _charts(found: UsageMetrics) -> dict[str, Any]:
    success = found.success
    gauge = None if success is None else charts.gauge_chart(success, f"{success:.1%} succeeded", enough=_ENOUGH)
    return {
        "success": gauge,
        "per_tool": _tool_chart(found) if found.tools else None,
        "latency": _histogram(found.latency, "Calls by latency", "Calls"),
        "writing": _histogram(found.writing, "Writes by latency", "Calls"),
        **(_day_charts(found) if found.since < found.until else dict.fromkeys(("per_day", "latency_days", "episodes"))),
    }


def _tool_chart(found: UsageMetrics) -> Chart:
    bars = [(one.tool, one.calls) for one in found.tools]
    if len(bars) > _MOST_BARS:
        rest = bars[_MOST_BARS - 1 :]
        bars = [*bars[: _MOST_BARS - 1], (f"{len(rest)} others", sum(number for _, number in rest))]
    rows = [(one.tool, f"{one.calls:,}", f"{one.calls / found.calls:.1%}") for one in found.tools]
    return Chart(charts.bar_chart(bars, "Calls per tool"), "Calls per tool", ("Tool", "Calls", "Share"), rows)


def _day_charts(found: UsageMetrics) -> dict[str, Chart | None]:
    days, names = found.days, [f"{one.day:%-d %b}" for one in found.days]
    calls = charts.column_chart(
        list(zip(names, (one.calls for one in days), strict=True)),
        "Calls per day",
        failed=[one.failed for one in days],
    )
    times = (("p50", [one.p50 for one in days]), ("p95", [one.p95 for one in days]))
    latency = charts.line_chart(names, times, "Latency per day")
    episodes = charts.column_chart(list(zip(names, (one.episodes for one in days), strict=True)), "Episodes per day")
    return {
        "per_day": Chart(
            calls,
            "Calls per day",
            ("Day", "Calls", "Failed"),
            [(one.day, f"{one.calls:,}", f"{one.failed:,}") for one in days],
            (("k1", "answered"), ("kbad", "failed")),
        )
        if found.calls
        else None,
        "latency_days": Chart(
            latency,
            "Latency per day",
            ("Day", "p50", "p95"),
            [(one.day, _format_latency(one.p50), _format_latency(one.p95)) for one in days],
            (("k1", "p50"), ("k2", "p95")),
        )
        if found.calls
        else None,
        "episodes": Chart(
            episodes, "Episodes per day", ("Day", "Episodes"), [(one.day, f"{one.episodes:,}") for one in days]
        )
        if found.episodes
        else None,
    }


def _histogram(spread: Latency, title: str, what: str, note: str = "") -> Chart | None:
    if not spread.number:
        return None
    rows = [(charts.format_duration(bound), f"{number:,}") for bound, number in spread.steps]
    drawn = charts.histogram(spread, title)
    return Chart(drawn, title, ("Less than", what), rows, (("kmark", "p50, p95 and p99"),), note)


def _format_latency(milliseconds: float | None) -> str:
    return "—" if milliseconds is None else charts.format_duration(milliseconds)


def _churn(found: UsageMetrics) -> str:
    if not found.forgets:
        return "no forgets" if found.updates else "—"
    return f"{found.updates / found.forgets:.1f} : 1"


def _user_summary(request: WebRequest, stored: str) -> tuple[dict[str, int] | None, str, datetime | None]:
    memory = request.app.user(stored)
    try:
        last = memory.history(limit=1)
        return memory.count(), memory.mode, last[-1].at if last else None
    except StoreError:
        return None, "cannot be read", None


def _require_user(request: WebRequest, local: str) -> str:
    stored = stored_id(request.login.tenant, local)
    if not request.app.user(stored).exists:
        raise NotFoundError("This user does not exist.")
    return stored


def _local_user(request: WebRequest, job: Job) -> str | None:
    """Return the user of a job within the operator's tenant; None if it belongs to another tenant."""
    tenant = request.login.tenant
    if not job.user_id:
        return "everyone" if tenant == DEFAULT_TENANT else None
    return local_id(tenant, job.user_id)
