"""How memories are used, in numbers: names, days and times, nothing of the content and nobody's name.

A `Tally` is what a store counted, a `UsageMetrics` what an operator wants to know of it. Times are counted by how long
they took: twenty steps for each power of ten, so that a percentile is within 7 % of the true one. Knows no database.
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
"""Renard's preferred numbers: one is at most a seventh greater than the one before."""
BOUNDS = tuple(round(step * 10.0**power, 8) for power in range(-1, 8) for step in _STEPS)
"""Where a step ends and the next begins, in milliseconds: from a tenth to a day."""
FACT_TOOLS = ("remember_fact", "remember_relationship", "write_memory")
"""The tools that write facts."""
FAILED = frozenset({"error", "timeout", "invalid", "limited"})
"""How a call ends that was not answered. That the policy refuses something is an answer."""
CHANGED = frozenset({"written", "demoted", "updated", "forgotten", "merged", "edited", "undone", "erased"})
"""What came of a call that changed a memory."""


class CallGroup(NamedTuple):
    """Calls that are counted together; ``step`` is which of `BOUNDS` they took less than."""

    day: str
    tool: str
    status: str
    outcome: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a store counted of many users. Days are as in 2026-05-02, in UTC."""

    calls: Mapping[CallGroup, int] = field(default_factory=dict)
    talks: Mapping[str, int] = field(default_factory=dict)
    """Conversations in which tools were called; one that goes on for days counts on each of them."""
    facts: Mapping[str, int] = field(default_factory=dict)
    """Facts that were written in them."""
    episodes: Mapping[str, int] = field(default_factory=dict)
    users: int = 0
    unread: int = 0
    """Users whose data could not be read."""
    waiting: int = 0
    """Users who are not counted yet, or not anew, because there was no time for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long things took, in milliseconds. Without any there are no percentiles."""

    number: int = 0
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    steps: tuple[tuple[float, int], ...] = ()
    """How many took less than this and not less than the bound before, where there are any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMetrics:
    """How one tool does."""

    tool: str
    calls: int
    failed: int
    success: float | None
    """The share of calls that were answered; None if all of them still wait."""
    latency: Latency


@dataclass(frozen=True, slots=True, kw_only=True)
class DayMetrics:
    """One day."""

    day: date
    calls: int = 0
    failed: int = 0
    p50: float | None = None
    p95: float | None = None
    episodes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMetrics:
    """What waits to be done, what is done, and how long that took."""

    waiting: int = 0
    running: int = 0
    done: int = 0
    dead: int = 0
    oldest: datetime | None = None
    """When the job was due that has waited longest."""
    completion: Latency = Latency()
    """From when a job was put, or due if it was put for later, until it was done; of those that are still kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageMetrics:
    """How memories were used from one day to another, both included."""

    since: date
    until: date
    users: int = 0
    unread: int = 0
    """Users whose data could not be read, and who are in none of the numbers."""
    waiting: int = 0
    """Users who are still to be counted, or counted anew: ask again."""
    calls: int = 0
    failed: int = 0
    success: float | None = None
    latency: Latency = Latency()
    writing: Latency = Latency()
    """Of the calls that changed a memory: until the change was durable and answered."""
    tools: tuple[ToolMetrics, ...] = ()
    days: tuple[DayMetrics, ...] = ()
    conversations: int = 0
    """One that goes on for days counts on each of them."""
    facts_per_conversation: float | None = None
    episodes: int = 0
    updates: int = 0
    forgets: int = 0
    duplicates: int = 0
    duplicate_rate: float | None = None
    """The share of what tools wanted to write that was known already."""
    queue: QueueMetrics | None = None
    """None if there can be no queue, or it cannot be read."""


def latency_step(milliseconds: float) -> int:
    """Where a time is counted: under the first bound that is greater."""
    return bisect_right(BOUNDS, milliseconds)


def latency_of(steps: Mapping[int, int]) -> Latency:
    """Percentiles of what was counted. What took longer than the last bound counts as that."""
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
    """Calls added up."""

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
        """The share of those that have ended."""
        ended = self.calls - self.queued
        return (ended - self.failed) / ended if ended else None


def compute_metrics(tally: Tally, since: date, until: date) -> UsageMetrics:
    """What an operator wants to know, from one day to another."""
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
    """A time that stands for a step: no time in it is further away than the root of the ratio of its ends."""
    return round(sqrt(BOUNDS[step - 1] * BOUNDS[step]), 4) if step else BOUNDS[0]
