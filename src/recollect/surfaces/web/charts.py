"""Charts as SVG, drawn here: bars and columns, whose look is the style sheet's. Text in them is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

_ROW, _LABEL, _VALUE, _WIDTH = 30, 170, 60, 640
_HEIGHT, _FOOT, _TOP = 140, 24, 20


def bars(rows: Sequence[tuple[str, int]], title: str) -> Markup:
    """A bar for each name, the longest for the greatest number."""
    most = max((number for _, number in rows), default=0) or 1
    room = _WIDTH - _LABEL - _VALUE
    parts = []
    for at, (name, number) in enumerate(rows):
        y = at * _ROW
        long = max(round(room * number / most, 1), 2)
        shown = name if len(name) <= 22 else name[:21] + "…"
        parts.append(
            Markup(
                '<text class="name" x="{}" y="{}" text-anchor="end">{}</text>'
                '<rect class="bar" x="{}" y="{}" width="{}" height="16" rx="3"/>'
                '<text class="value" x="{}" y="{}">{}</text>'
            ).format(_LABEL - 12, y + 20, shown, _LABEL, y + 7, long, _LABEL + long + 8, y + 20, f"{number:,}")
        )
    return _svg(_WIDTH, max(len(rows), 1) * _ROW + 4, title, parts)


def columns(rows: Sequence[tuple[str, int]], title: str, *, labels: int = 8) -> Markup:
    """A column for each name, from left to right; about so many of the names are written below."""
    most = max((number for _, number in rows), default=0) or 1
    wide = _WIDTH / max(len(rows), 1)
    every = max(-(-len(rows) // labels), 1)
    parts = [Markup('<line class="axis" x1="0" x2="{}" y1="{y}" y2="{y}"/>').format(_WIDTH, y=_TOP + _HEIGHT)]
    for at, (name, number) in enumerate(rows):
        high = round(_HEIGHT * number / most, 1)
        x = round(at * wide, 1)
        if number:
            parts.append(
                Markup(
                    '<rect class="bar" x="{}" y="{}" width="{}" height="{}" rx="2"><title>{}: {}</title></rect>'
                ).format(
                    round(x + wide * 0.12, 1),
                    round(_TOP + _HEIGHT - high, 1),
                    round(wide * 0.76, 1),
                    high,
                    name,
                    number,
                )
            )
            if number == most or len(rows) <= 15:
                parts.append(
                    Markup('<text class="value" x="{}" y="{}" text-anchor="middle">{}</text>').format(
                        round(x + wide / 2, 1), round(_TOP + _HEIGHT - high - 5, 1), f"{number:,}"
                    )
                )
        if at % every == 0:
            parts.append(
                Markup('<text class="name" x="{}" y="{}" text-anchor="middle">{}</text>').format(
                    round(x + wide / 2, 1), _TOP + _HEIGHT + 18, name
                )
            )
    return _svg(_WIDTH, _TOP + _HEIGHT + _FOOT, title, parts)


def gauge(share: float, title: str) -> Markup:
    """A share of a whole, as a part of a line."""
    long = round(200 * min(max(share, 0.0), 1.0), 1)
    parts = [
        Markup('<rect class="rest" x="0" y="2" width="200" height="8" rx="4"/>'),
        Markup('<rect class="bar" x="0" y="2" width="{}" height="8" rx="4"/>').format(long),
    ]
    return _svg(200, 12, title, parts)


def _svg(width: float, height: float, title: str, parts: Sequence[Markup]) -> Markup:
    head = Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(width, height, title)
    return head + Markup("").join(parts) + Markup("</svg>")
