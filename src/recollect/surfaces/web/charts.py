"""Charts as SVG: bars, columns, lines and histograms, styled by the style sheet.

For accessibility, each part has a title, and the page shows a table with each chart. Text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from recollect.usage_metrics import BOUNDS, Latency

_WIDTH, _HEIGHT = 640, 140
_TOP, _FOOT, _LEFT = 16, 26, 60
_ROW = 42
_MOST_COLUMNS = 40
_FEW = 15
"""The maximum number of columns that are labelled with their numbers."""


@dataclass(frozen=True)
class Chart:
    """A chart with its title, its legend, and its data as a table."""

    picture: Markup
    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]
    legend: tuple[tuple[str, str], ...] = ()
    note: str = ""


def bar_chart(rows: Sequence[tuple[str, int]], title: str) -> Markup:
    """Return a horizontal bar for each name, with its number and share."""
    most = max((number for _, number in rows), default=0) or 1
    whole = sum(number for _, number in rows) or 1
    parts = []
    for at, (name, number) in enumerate(rows):
        y = at * _ROW
        parts.append(
            Markup(
                '<g><title>{name}: {number}</title><text class="value" x="0" y="{text}">{shown}</text>'
                '<text class="name" x="{right}" y="{text}" text-anchor="end">{number} · {share}</text>'
                '<rect class="rest" x="0" y="{y}" width="{right}" height="8" rx="4"/>'
                '<rect class="bar" x="0" y="{y}" width="{long}" height="8" rx="4"/></g>'
            ).format(
                name=name,
                shown=name if len(name) <= 32 else name[:31] + "…",
                number=f"{number:,}",
                share=f"{number / whole:.0%}",
                text=y + 16,
                y=y + 24,
                right=_WIDTH,
                long=max(round(_WIDTH * number / most, 1), 4),
            )
        )
    return _svg(_WIDTH, max(len(rows), 1) * _ROW, title, parts)


def column_chart(rows: Sequence[tuple[str, int]], title: str, *, failed: Sequence[int] = (), labels: int = 6) -> Markup:
    """Return a column for each name, with the failed part at its foot. About ``labels`` of the names are shown."""
    top, parts = _grid(max((number for _, number in rows), default=0))
    wide = (_WIDTH - _LEFT) / max(len(rows), 1)
    every = max(-(-len(rows) // labels), 1)
    for at, (name, number) in enumerate(rows):
        x = _LEFT + at * wide
        bad = failed[at] if failed else 0
        told = f"{name}: {number:,}" + (f", {bad:,} failed" if bad else "")
        if number:
            parts.append(_column(x, wide, number, bad, top, told))
            if len(rows) <= _FEW:
                parts.append(_svg_text("value", x + wide / 2, _y(number, top) - 5, f"{number:,}"))
        if at % every == 0:
            parts.append(_svg_text("name", x + wide / 2, _TOP + _HEIGHT + 18, name))
    return _svg(_WIDTH, _TOP + _HEIGHT + _FOOT, title, parts)


def line_chart(names: Sequence[str], series: Sequence[tuple[str, Sequence[float | None]]], title: str) -> Markup:
    """Return a line for each series, in milliseconds, with gaps where there is no value."""
    top, parts = _grid(
        max((value for _, line in series for value in line if value is not None), default=0), format_duration
    )
    wide = (_WIDTH - _LEFT) / max(len(names), 1)
    every = max(-(-len(names) // 6), 1)
    for at in range(0, len(names), every):
        parts.append(_svg_text("name", _LEFT + (at + 0.5) * wide, _TOP + _HEIGHT + 18, names[at]))
    size = 3.5 if wide > 12 else 2.5
    dot = Markup('<circle class="point l{}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}</title></circle>')
    for number, (called, line) in enumerate(series, 1):
        points = [(_LEFT + (at + 0.5) * wide, value) for at, value in enumerate(line)]
        path, pen = [], "M"
        for x, value in points:
            path.append(f"{pen}{x:.1f} {_y(value, top):.1f}" if value is not None else "")
            pen = "M" if value is None else "L"
        parts.append(Markup('<path class="line l{}" d="{}"/>').format(number, "".join(path)))
        for (x, value), name in zip(points, names, strict=True):
            if value is not None:
                told = f"{name}, {called}: {format_duration(value)}"
                parts.append(dot.format(number, x, _y(value, top), size, told))
    return _svg(_WIDTH, _TOP + _HEIGHT + _FOOT, title, parts)


def histogram(spread: Latency, title: str) -> Markup:
    """Return a histogram of durations on a logarithmic scale, with percentiles."""
    numbers = {BOUNDS.index(bound): number for bound, number in spread.steps}
    first, last = min(numbers, default=0), max(numbers, default=0)
    middle, room = (first + last) // 2, max(last - first + 5, 30)
    first = max(min(middle - room // 2, len(BOUNDS) - room), 0)
    each = -(-room // _MOST_COLUMNS)
    grouped = [sum(numbers.get(first + at + more, 0) for more in range(each)) for at in range(0, room, each)]
    top, parts = _grid(max(grouped))
    wide = (_WIDTH - _LEFT) / len(grouped)

    def place(milliseconds: float) -> float:
        begin = math.log10(BOUNDS[first - 1]) if first else math.log10(BOUNDS[0]) - 0.05
        return _LEFT + (math.log10(max(milliseconds, 1e-3)) - begin) * 20 / each * wide

    for at, number in enumerate(grouped):
        if number:
            low = first + at * each
            below = BOUNDS[min(low + each - 1, len(BOUNDS) - 1)]
            begin = f"{format_duration(BOUNDS[low - 1])} to " if low else "less than "
            parts.append(
                _column(_LEFT + at * wide, wide, number, 0, top, f"{begin}{format_duration(below)}: {number:,}")
            )
    for power in range(-1, 8):
        for step in (1.0,) if room > 50 else (1.0, 3.15):
            x = place(step * 10.0**power)
            if _LEFT <= x <= _WIDTH - 20:
                parts.append(_svg_text("name", x, _TOP + _HEIGHT + 18, format_duration(step * 10.0**power)))
    mark = Markup('<g><title>{}: {}</title><line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{}" y2="{}"/></g>')
    for name, value in (("p50", spread.p50), ("p95", spread.p95), ("p99", spread.p99)):
        if value is not None:
            parts.append(mark.format(name, format_duration(value), _TOP - 8, _TOP + _HEIGHT, x=place(value)))
    return _svg(_WIDTH, _TOP + _HEIGHT + _FOOT, title, parts)


def gauge_chart(share: float, title: str, *, enough: float = 0.0) -> Markup:
    """Return a share as a gauge, in another colour if it is below ``enough``."""
    long = round(200 * min(max(share, 0.0), 1.0), 1)
    parts = [
        Markup('<rect class="rest" x="0" y="2" width="200" height="8" rx="4"/>'),
        Markup('<rect class="{}" x="0" y="2" width="{}" height="8" rx="4"/>').format(
            "bar" if share >= enough else "bad", long
        ),
    ]
    return _svg(200, 12, title, parts, "chart gauge")


def format_duration(milliseconds: float) -> str:
    """Return a duration with two or three digits and a unit."""
    for unit, size, least in (("h", 3_600_000, 2), ("min", 60_000, 2), ("s", 1000, 1)):
        if milliseconds >= least * size:
            return f"{_short_number(milliseconds / size)} {unit}"
    return f"{_short_number(milliseconds)} ms"


def compact_number(number: float) -> str:
    """Return a short form of a number: 950, 1.2k, 34k, 1.5M."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:g}"


def _short_number(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}".removesuffix(".0") if number >= 0.1 else "0.1"


def _grid(most: float, write: Callable[[float], str] = compact_number) -> tuple[float, list[Markup]]:
    """Return the top of the scale, a round number, and the lines at the top, in the middle and at the bottom."""
    size = 10.0 ** math.floor(math.log10(most)) if most > 0 else 1.0
    top = next(step * size for step in (1, 2, 4, 6, 10) if step * size >= most)
    parts = []
    for part in (0.0, 0.5, 1.0) if top != 1 else (0.0, 1.0):
        y = round(_TOP + _HEIGHT * (1 - part), 1)
        parts.append(Markup('<line class="axis" x1="{}" x2="{}" y1="{y}" y2="{y}"/>').format(_LEFT, _WIDTH, y=y))
        parts.append(_svg_text("name", _LEFT - 8, y + 4, write(part * top) if part else "0", "end"))
    return top, parts


def _column(x: float, wide: float, number: int, bad: int, top: float, told: str) -> Markup:
    box = '<rect class="{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="{}"/>'
    inner, gap = wide * 0.8, wide * 0.1
    made = Markup("<g><title>{}</title>").format(told)
    made += Markup(box).format("bar", x + gap, _y(number, top), inner, _high(number, top), 2 if inner > 6 else 0)
    if bad:
        made += Markup(box).format("bad", x + gap, _y(bad, top), inner, _high(bad, top), 0)
    return made + Markup("</g>")


def _high(number: float, top: float) -> float:
    return round(_HEIGHT * number / top, 1)


def _y(number: float, top: float) -> float:
    return round(_TOP + _HEIGHT - _high(number, top), 1)


def _svg_text(kind: str, x: float, y: float, said: str, anchor: str = "middle") -> Markup:
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        kind, round(x, 1), round(y, 1), anchor, said
    )


def _svg(width: float, height: float, title: str, parts: Sequence[Markup], look: str = "chart") -> Markup:
    head = Markup('<svg class="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(look, width, height, title)
    return head + Markup("").join(parts) + Markup("</svg>")
