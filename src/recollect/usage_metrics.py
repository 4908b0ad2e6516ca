"""Usage metrics for operators: counts and durations, never content or user ids.

A `Tally` is what a store counted; `UsageMetrics` are computed from it. Durations are counted in twenty steps per power
of ten, so that percentiles are accurate to 7 %.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import accumulate
from math import ceil, sqrt
from typing import NamedTuple

_STEPS = (1.0, 1.12, 1.25, 1.4, 1.6, 1.8, 2.0, 2.24, 2.5, 2.8, 3.15, 3.55, 4.0, 4.5, 5.0, 5.6, 6.3, 7.1, 8.0, 9.0)
"""Renard's preferred numbers: each is at most a seventh greater than the one before."""
BOUNDS = tuple(round(step * 10.0**power, 8) for power in range(-1, 8) for step in _STEPS)
"""The boundaries of the steps in milliseconds, from a tenth to a day."""
FACT_TOOLS = ("remember_fact", "remember_relationship", "write_memory")
"""The tools that write facts."""
FAILED = frozenset({"error", "timeout", "invalid", "limited"})
"""The statuses of failed calls. A refusal by the policy is not a failure."""
CHANGED = frozenset({"written", "demoted", "updated", "forgotten", "merged", "edited", "undone", "erased"})
"""The outcomes of calls that changed a memory."""


class CallGroup(NamedTuple):
    """Calls that are counted together. ``step`` is the index of the bound that they took less than."""

    day: str
    tool: str
    status: str
    outcome: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The counts of a store over many users. Days are text such as 2026-05-02, in UTC."""

    calls: Mapping[CallGroup, int] = field(default_factory=dict)
    talks: Mapping[str, int] = field(default_factory=dict)
    """Conversations with tool calls. One that lasts several days counts on each of them."""
    facts: Mapping[str, int] = field(default_factory=dict)
    """Facts written in these conversations."""
    episodes: Mapping[str, int] = field(default_factory=dict)
    users: int = 0
    unread: int = 0
    """Users whose data could not be read."""
    waiting: int = 0
    """Users whose counts are missing or outdated, because there was no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Durations in milliseconds. Without data there are no percentiles."""

    number: int = 0
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    steps: tuple[tuple[float, int], ...] = ()
    """The count per bound: less than this bound and not less than the one before. Zero counts are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMetrics:
    """The metrics of one tool."""

    tool: str
    calls: int
    failed: int
    success: float | None
    """The share of successful calls; None if none has ended."""
    latency: Latency


@dataclass(frozen=True, slots=True, kw_only=True)
class DayMetrics:
    """The metrics of one day."""

    day: date
    calls: int = 0
    failed: int = 0
    p50: float | None = None
    p95: float | None = None
    episodes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMetrics:
    """The metrics of the queue."""

    waiting: int = 0
    running: int = 0
    done: int = 0
    dead: int = 0
    oldest: datetime | None = None
    """When the longest waiting job was due."""
    completion: Latency = Latency()
    """The time from when a job was queued (or due) until it was done, for the jobs that are still kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageMetrics:
    """Usage metrics from one day to another, both included."""

    since: date
    until: date
    users: int = 0
    unread: int = 0
    """Users whose data could not be read; they are not counted."""
    waiting: int = 0
    """Users whose counts are missing or outdated; ask again."""
    calls: int = 0
    failed: int = 0
    success: float | None = None
    latency: Latency = Latency()
    writing: Latency = Latency()
    """The latency of calls that changed a memory, until the change was durable and answered."""
    tools: tuple[ToolMetrics, ...] = ()
    days: tuple[DayMetrics, ...] = ()
    conversations: int = 0
    """One that lasts several days counts on each of them."""
    facts_per_conversation: float | None = None
    episodes: int = 0
    updates: int = 0
    forgets: int = 0
    duplicates: int = 0
    duplicate_rate: float | None = None
    """The share of attempted writes that were already known."""
    queue: QueueMetrics | None = None
    """None if there is no queue, or it cannot be read."""


def latency_step(milliseconds: float) -> int:
    """Return the step of a duration: the index of the first greater bound."""
    return bisect_right(BOUNDS, milliseconds)


def latency_of(steps: Mapping[int, int]) -> Latency:
    """Return the percentiles of counted durations. Those beyond the last bound count as that bound."""
    within: Counter[int] = Counter()
    for step, number in steps.items():
        within[min(step, len(BOUNDS) - 1)] += number
    counted = sorted((step, number) for step, number in within.items() if number > 0)
    sums = list(accumulate(number for _, number in counted))
    if not counted:
        return Latency()
    p50, p95, p99 = (
        _step_midpoint(counted[bisect_left(sums, ceil(share * sums[-1]))][0]) for share in (0.5, 0.95, 0.99)
    )
    return Latency(
        number=sums[-1], p50=p50, p95=p95, p99=p99, steps=tuple((BOUNDS[step], number) for step, number in counted)
    )


class _CallTotals:
    """Sums of calls."""

    def __init__(self) -> None:
        self.calls = self.failed = self.queued = 0
        self.steps: Counter[int] = Counter()

    def add(self, status: str, step: int, number: int) -> None:
        self.calls += number
        self.steps[step] += number
        if status in FAILED:
            self.failed += number
        elif status == "queued":
            self.queued += number

    @property
    def success(self) -> float | None:
        """Return the share of successful calls among those that have ended."""
        ended = self.calls - self.queued
        return (ended - self.failed) / ended if ended else None


def compute_metrics(tally: Tally, since: date, until: date) -> UsageMetrics:
    """Return the metrics from one day to another."""
    span = [since + timedelta(days=number) for number in range((until - since).days + 1)]
    whole, writing = _CallTotals(), Counter[int]()
    tools: dict[str, _CallTotals] = {}
    days = {day.isoformat(): _CallTotals() for day in span}
    outcomes: Counter[str] = Counter()
    for (day, tool, status, outcome, step), number in tally.calls.items():
        if day in days:
            days[day].add(status, step, number)
            tools.setdefault(tool, _CallTotals()).add(status, step, number)
            whole.add(status, step, number)
            outcomes[outcome] += number
            if outcome in CHANGED:
                writing[step] += number
    told = outcomes["written"] + outcomes["demoted"] + outcomes["duplicate"]
    talks, facts, episodes = (
        sum(number for day, number in by.items() if day in days) for by in (tally.talks, tally.facts, tally.episodes)
    )
    return UsageMetrics(
        since=since,
        until=until,
        users=tally.users,
        unread=tally.unread,
        waiting=tally.waiting,
        calls=whole.calls,
        failed=whole.failed,
        success=whole.success,
        latency=latency_of(whole.steps),
        writing=latency_of(writing),
        tools=tuple(sorted((_tool_metrics(*each) for each in tools.items()), key=lambda one: (-one.calls, one.tool))),
        days=tuple(_day_metrics(day, days[day.isoformat()], tally.episodes) for day in span),
        conversations=talks,
        facts_per_conversation=facts / talks if talks else None,
        episodes=episodes,
        updates=outcomes["updated"],
        forgets=outcomes["forgotten"],
        duplicates=outcomes["duplicate"],
        duplicate_rate=outcomes["duplicate"] / told if told else None,
    )


def _tool_metrics(tool: str, of: _CallTotals) -> ToolMetrics:
    return ToolMetrics(tool=tool, calls=of.calls, failed=of.failed, success=of.success, latency=latency_of(of.steps))


def _day_metrics(day: date, of: _CallTotals, episodes: Mapping[str, int]) -> DayMetrics:
    took = latency_of(of.steps)
    return DayMetrics(
        day=day,
        calls=of.calls,
        failed=of.failed,
        p50=took.p50,
        p95=took.p95,
        episodes=episodes.get(day.isoformat(), 0),
    )


def _step_midpoint(step: int) -> float:
    """Return the geometric mean of a step, which is off by at most the square root of the ratio of its ends."""
    return round(sqrt(BOUNDS[step - 1] * BOUNDS[step]), 4) if step else BOUNDS[0]
