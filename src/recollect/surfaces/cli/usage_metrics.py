"""The command that shows operators how memories are used."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.surfaces.cli.output import format_moment
from recollect.surfaces.cli.program import WHOLE, command
from recollect.surfaces.cli.session import CliSession
from recollect.usage_metrics import Latency, UsageMetrics

_HEAD = ("tool", "calls", "success", "p50", "p95", "p99")


@command(WHOLE, "recollect metrics", "recollect metrics --days 30", "recollect metrics --tenant acme --json")
def metrics_command(
    session: CliSession,
    days: Annotated[int, typer.Option("--days", help="The number of days, including today.", metavar="NUMBER")] = 7,
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", help="Only the users of this tenant.", metavar="NAME", show_default=False),
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
    per_talk = found.facts_per_conversation
    lines = [
        f"From {found.since} to {found.until}, {found.users:,} users: {found.calls:,} calls,"
        f" {_percent(found.success)} successful.",
        f"Latency (p50, p95, p99): {', '.join(_latency_row(found.latency))}"
        f"; of writes {', '.join(_latency_row(found.writing))}.",
        f"Facts per conversation: {'-' if per_talk is None else f'{per_talk:.1f}'}. Episodes: {found.episodes:,}."
        f" Updates and forgets: {found.updates:,} and {found.forgets:,}. Duplicates: {_percent(found.duplicate_rate)}.",
    ]
    if found.unread:
        lines.append(f"{found.unread:,} users cannot be read and are not counted.")
    if (queue := found.queue) is not None:
        lines.append(
            f"Queue: {queue.waiting:,} waiting{f' since {format_moment(queue.oldest)}' if queue.oldest else ''},"
            f" {queue.running:,} running, {queue.dead:,} failed;"
            f" done after {', '.join(_latency_row(queue.completion))} ({queue.completion.number:,} jobs)."
        )
    return lines


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _latency_row(spread: Latency) -> tuple[str, ...]:
    return tuple("-" if time is None else _format_milliseconds(time) for time in (spread.p50, spread.p95, spread.p99))


def _format_milliseconds(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.1f} s"
