"""Timing helpers and the one report format that all benchmarks share."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence


def milliseconds(act: Callable[[], object]) -> float:
    """Return how long one call takes."""
    began = time.perf_counter()
    act()
    return 1e3 * (time.perf_counter() - began)


def percentiles(times: Sequence[float], *shares: int) -> dict[str, float]:
    """Return the median and the given percentiles (95 by default), named p50, p95 and so on."""
    ordered = sorted(times)
    high = {f"p{share}": ordered[min(len(ordered) * share // 100, len(ordered) - 1)] for share in shares or (95,)}
    return {"p50": statistics.median(ordered), **high}


def rate_line(name: str, per_second: float, seconds: Sequence[float], note: str = "") -> str:
    """Return one line about repeated calls: how many a second, and how long they took."""
    found = percentiles([1e3 * each for each in seconds], 99)
    return f"{name:40} {per_second:7.0f}/s   p50 {found['p50']:7.1f} ms   p99 {found['p99']:7.1f} ms{note}"


def print_report(
    figures: Mapping[str, object], *, as_json: bool = False, goals: Mapping[str, str] | None = None
) -> None:
    """Print one figure per line with its goal, or all of them as JSON."""
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    width = max(map(len, figures))
    for name, figure in figures.items():
        shown = f"{figure:12,.3f}" if isinstance(figure, float) else f"{figure!s:>12}"
        print(f"{name:{width}} {shown}   {(goals or {}).get(name, '')}".rstrip())
