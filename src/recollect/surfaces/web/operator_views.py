"""What an operator sees: how many users there are, how the tools do, and what waits. Never what anybody remembers.

Operators see their own tenant only. They can erase a user who asks for it, and mend the queue.
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
"""How many are on a page."""
LETTERS = 100
SECONDS = 2.0
"""How long a page waits for many users to be counted; the next time it is opened, more of them are."""
_MOST_BARS = 12
_ENOUGH = 0.9
"""The share of calls that should succeed."""
_KEPT = "From being put, or due if put for later, to being done. Done jobs are kept for a day."


def dashboard_view(asked: WebRequest) -> Response:
    """How the tools were used, how well and how fast."""
    days = asked.number("days", 7, SPANS[-1])
    days = days if days in SPANS else 7
    found = asked.app.metrics(days=days, tenant=asked.login.tenant, seconds=SECONDS)
    return render_page(
        asked,
        "dashboard.html",
        spans=SPANS,
        days=days,
        found=found,
        churn=_churn(found),
        lasting=charts.format_duration,
        **_charts(found),
    )


def users_view(asked: WebRequest) -> Response:
    """A part of the users of the tenant, with how much is kept."""
    tenant, begins, after = asked.login.tenant, asked.query.get("q", ""), asked.query.get("after", "")
    behind = stored_id(tenant, after) if after else ""
    some = asked.app.users(tenant=tenant, begins=begins, after=behind, limit=USERS + 1)
    found = list(users_of(tenant, some))
    return render_page(
        asked,
        "users.html",
        rows=[(local, *_user_summary(asked, stored)) for local, stored in found[:USERS]],
        begins=begins,
        after=after,
        more=found[USERS - 1][0] if len(found) > USERS else None,
    )


def confirm_erase_user_view(asked: WebRequest) -> Response:
    """Ask whether somebody is to be erased, and who."""
    local = asked.query.get("user", "")
    counts, mode, _ = _user_summary(asked, _require_user(asked, local))
    return render_page(asked, "erase_user.html", local=local, counts=counts, whether=mode)


def erase_user_view(asked: WebRequest) -> Response:
    """Remove a user everywhere, if it was said twice who, and show the receipt."""
    local = asked.field("user")
    stored = _require_user(asked, local)
    if asked.form.get("typed", "") != local:
        raise InvalidInputError("typed", "must be the id of the user, exactly as it is shown; nothing was erased")
    return render_page(asked, "erased_user.html", local=local, receipt=asked.app.erase_user(stored))


def queue_view(asked: WebRequest) -> Response:
    """What waits, how long things took, and what was given up."""
    with asked.app.queue() as waiting:
        found = waiting.metrics(asked.login.tenant)
        dead = waiting.dead(tenant=asked.login.tenant, limit=LETTERS)
    letters = [(job, local) for job in dead if (local := _local_user(asked, job)) is not None]
    took = _histogram(found.completion, "Time until done", "Jobs", _KEPT)
    return render_page(
        asked, "queue.html", queue=found, letters=letters, lasting=charts.format_duration, completion=took
    )


def dead_letter_view(asked: WebRequest) -> Response:
    """Begin a job anew, or remove it."""
    name, retry = asked.path["id"], asked.form.get("do") == "retry"
    with asked.app.queue() as waiting:
        job = waiting.job(name)
        if job is None or job.state != "dead" or _local_user(asked, job) is None:
            raise NotFoundError("There is no such dead letter; perhaps it was retried already.")
        if retry:
            waiting.retry(name)
        else:
            waiting.drop(name)
    return redirect_with_notice(asked, "operator/queue", "retried" if retry else "dropped")


def _charts(found: UsageMetrics) -> dict[str, Any]:
    """The charts, where there is something to draw."""
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
    """Updates for each time something was forgotten."""
    if not found.forgets:
        return "no forgets" if found.updates else "—"
    return f"{found.updates / found.forgets:.1f} : 1"


def _user_summary(asked: WebRequest, stored: str) -> tuple[dict[str, int] | None, str, datetime | None]:
    """How much is kept of somebody, whether memory is on, and the last change."""
    memory = asked.app.user(stored)
    try:
        last = memory.history(limit=1)
        return memory.count(), memory.mode, last[-1].at if last else None
    except StoreError:
        return None, "cannot be read", None


def _require_user(asked: WebRequest, local: str) -> str:
    stored = stored_id(asked.login.tenant, local)
    if not asked.app.user(stored).exists:
        raise NotFoundError("There is no such user.")
    return stored


def _local_user(asked: WebRequest, job: Job) -> str | None:
    """Whose job it is, as the operator's tenant knows them; None if it is none of theirs."""
    tenant = asked.login.tenant
    if not job.user_id:
        return "everyone" if tenant == DEFAULT_TENANT else None
    return local_id(tenant, job.user_id)
