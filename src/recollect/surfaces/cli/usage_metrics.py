"""The command that shows operators how memories are used."""

from __future__ import annotations

from typing import Annotated

from recollect.surfaces.cli.options import option
from recollect.surfaces.cli.output import format_moment
from recollect.surfaces.cli.program import WHOLE, command
from recollect.surfaces.cli.session import CliSession
from recollect.usage_metrics import Latency, UsageMetrics

_HEAD = ("tool", "calls", "success", "p50", "p95", "p99")


@command(WHOLE, "recollect metrics", "recollect metrics --days 30", "recollect metrics --tenant acme --json")
def metrics_command(
    session: CliSession,
    days: Annotated[int, option("--days", "The number of days, including today.", "NUMBER")] = 7,
    tenant: Annotated[
        str | None, option("--tenant", "Only the users of this tenant.", "NAME", show_default=False)
    ] = None,
) -> None:
    """Show usage metrics: calls, success rate, latency, queue."""
    found = session.recollect.metrics(days=days, tenant=tenant)
    session.out.document(found)
    for line in _metric_lines(found):
        session.out.line(line)
    if not found.calls:
        session.out.aside("No tool was called in this period.")
        return
    rows = [(one.tool, f"{one.calls:,}", _percent(one.success), *_latency_row(one.latency)) for one in found.tools]
    session.out.table(_HEAD, rows, right=_HEAD[1:])


def _metric_lines(found: UsageMetrics) -> list[str]:
    per_talk, duplicates = found.facts_per_conversation, found.duplicate_rate
    successful = "" if found.success is None else f", {found.success:.1%} successful"
    facts = "" if per_talk is None else f"Facts per conversation: {per_talk:.1f}. "
    users, calls = _count(found.users, "user"), _count(found.calls, "call")
    lines = [
        f"From {found.since} to {found.until}, {users}: {calls}{successful}.",
        f"{facts}Episodes: {found.episodes:,}. Updates and forgets: {found.updates:,} and {found.forgets:,}."
        + ("" if duplicates is None else f" Duplicates: {duplicates:.1%}."),
    ]
    if found.latency.number:
        writes = f"; of writes {_latencies(found.writing)}" if found.writing.number else ""
        lines.insert(1, f"Latency (p50, p95, p99): {_latencies(found.latency)}{writes}.")
    if found.unread:
        lines.append(f"{_count(found.unread, 'user')} cannot be read and {_is_or_are(found.unread)} not counted.")
    if (queue := found.queue) is not None:
        since = f" since {format_moment(queue.oldest)}" if queue.oldest else ""
        done = queue.completion
        times = f"; done after {_latencies(done)} ({_count(done.number, 'job')})" if done.number else ""
        lines.append(
            f"Queue: {queue.waiting:,} waiting{since}, {queue.running:,} running, {queue.dead:,} failed{times}."
        )
    return lines


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _is_or_are(number: int) -> str:
    return "is" if number == 1 else "are"


def _latencies(spread: Latency) -> str:
    return ", ".join(_latency_row(spread))


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _latency_row(spread: Latency) -> tuple[str, ...]:
    return tuple("-" if time is None else _format_milliseconds(time) for time in (spread.p50, spread.p95, spread.p99))


def _format_milliseconds(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.1f} s"
