"""Numbers for operators, from the log of tool calls: names and times, nothing of the content."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from recollect.records import ToolCall

BOUNDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""The upper ends of the bars of a latency histogram, in milliseconds."""
_WRITTEN = frozenset({"written", "demoted", "updated", "forgotten", "merged", "edited", "undone", "erased"})
_FAILED = frozenset({"error", "timeout", "invalid", "limited"})


@dataclass(frozen=True)
class Spread:
    """How times are spread, in milliseconds."""

    number: int = 0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    bars: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)


@dataclass(frozen=True)
class Figures:
    """What a dashboard shows."""

    calls: int = 0
    per_tool: tuple[tuple[str, int], ...] = ()
    per_day: tuple[tuple[date, int], ...] = ()
    success: float | None = None
    latency: Spread = field(default_factory=Spread)
    writing: Spread = field(default_factory=Spread)
    facts_per_conversation: float | None = None
    updates: int = 0
    forgets: int = 0
    duplicate_rate: float | None = None

    @property
    def churn(self) -> str:
        """Updates for each time something was forgotten."""
        if not self.forgets:
            return "no forgets" if self.updates else "—"
        return f"{self.updates / self.forgets:.1f} : 1"


def figures(calls: Sequence[ToolCall], first: date, last: date) -> Figures:
    """The numbers of these calls, from one day to another."""
    if not calls:
        return Figures(per_day=by_day((), first, last))
    outcomes = Counter(call.outcome for call in calls)
    facts = [call for call in calls if call.outcome == "written" and "fact" in call.tool]
    talks = {call.session for call in calls if call.session}
    told = outcomes["written"] + outcomes["demoted"] + outcomes["duplicate"]
    ended = [call for call in calls if call.status != "queued"]
    return Figures(
        calls=len(calls),
        per_tool=tuple(Counter(call.tool for call in calls).most_common()),
        per_day=by_day((call.at.date() for call in calls), first, last),
        success=sum(call.status not in _FAILED for call in ended) / len(ended) if ended else None,
        latency=spread([call.latency_ms for call in calls]),
        writing=spread([call.latency_ms for call in calls if call.outcome in _WRITTEN]),
        facts_per_conversation=sum(bool(call.session) for call in facts) / len(talks) if talks else None,
        updates=outcomes["updated"],
        forgets=outcomes["forgotten"],
        duplicate_rate=outcomes["duplicate"] / told if told else None,
    )


def spread(times: Sequence[float]) -> Spread:
    """Percentiles, and how many lie between the bounds."""
    if not times:
        return Spread()
    ordered = sorted(times)
    bars = [0] * (len(BOUNDS) + 1)
    for one in ordered:
        bars[next((at for at, bound in enumerate(BOUNDS) if one <= bound), len(BOUNDS))] += 1
    p50, p95, p99 = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95, 0.99))
    return Spread(len(ordered), p50, p95, p99, tuple(bars))


def by_day(days: Iterable[date], first: date, last: date) -> tuple[tuple[date, int], ...]:
    """How many there are on each day, from one to another."""
    counted = Counter(days)
    length = (last - first).days + 1
    return tuple((day, counted[day]) for day in (first + timedelta(days=number) for number in range(length)))
