"""The times of a search over the number of records, as an SVG picture: both axes logarithmic, readable on any ground.

Knows nothing about how the times were measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 760, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 150, 56, 60
_COLOURS = ("#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#b58900")  # told apart by nearly everyone
_LABEL_ROOM = 16
_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 16px; font-weight: 600 }
  .grid { stroke: #24292f; stroke-opacity: .15 }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .grid { stroke: #e6edf3 } }
"""

Points = Sequence[tuple[float, float]]


def svg(title: str, lines: Mapping[str, Points], *, across: str, upwards: str) -> str:
    """A line for each name, through its points; numbers that are not positive are left out."""
    kept = {name: [(x, y) for x, y in points if x > 0 and y > 0] for name, points in lines.items()}
    kept = {name: points for name, points in kept.items() if points}
    low_x, high_x = _decades([x for points in kept.values() for x, _ in points])
    low_y, high_y = _decades([y for points in kept.values() for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        right = (math.log10(x) - low_x) / (high_x - low_x) * (_WIDTH - _LEFT - _RIGHT)
        up = (math.log10(y) - low_y) / (high_y - low_y) * (_HEIGHT - _TOP - _BOTTOM)
        return round(_LEFT + right, 1), round(_HEIGHT - _BOTTOM - up, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        f' aria-label="{escape(title, {chr(34): "&quot;"})}">',
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="{_LEFT}" y="28">{escape(title)}</text>',
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 16}" text-anchor="middle">{escape(across)}</text>',
        f'<text transform="translate(20 {(_TOP + _HEIGHT - _BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(upwards)}</text>",
    ]
    for power in range(low_x, high_x + 1):
        x, bottom = place(10.0**power, 10.0**low_y)
        parts.append(f'<line class="grid" x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}"/>')
        parts.append(f'<text x="{x}" y="{bottom + 20}" text-anchor="middle">{_told(power)}</text>')
    for power in range(low_y, high_y + 1):
        left, y = place(10.0**low_x, 10.0**power)
        parts.append(f'<line class="grid" x1="{left}" y1="{y}" x2="{_WIDTH - _RIGHT}" y2="{y}"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{_told(power)}</text>')
    drawn = {name: [place(x, y) for x, y in points] for name, points in kept.items()}
    heights = _apart({name: points[-1][1] for name, points in drawn.items()})
    for (name, points), colour in zip(drawn.items(), _COLOURS * len(drawn), strict=False):
        path = " ".join(f"{x},{y}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>' for x, y in points]
        label = f'<text x="{points[-1][0] + 10}" y="{heights[name] + 4}" style="fill: {colour}">{escape(name)}</text>'
        parts.append(label)
    return "\n".join((*parts, "</svg>", ""))


def _told(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:.{-power}f}"


def _decades(numbers: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around the numbers, at least one apart."""
    low = math.floor(math.log10(min(numbers, default=1)))
    return low, max(math.ceil(math.log10(max(numbers, default=10))), low + 1)


def _apart(heights: Mapping[str, float]) -> dict[str, float]:
    """The same heights, moved down where names would cover each other."""
    moved: dict[str, float] = {}
    last = -math.inf
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        last = moved[name] = max(height, last + _LABEL_ROOM)
    return moved
