"""People around a person, as a drawing: the more is known together, the stronger the line and the nearer they stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from recollect.records import Record

WIDTH, HEIGHT = 720, 520
_FAR, _NEAR = 200.0, 130.0
_WIDE = 1.25
_MOST_NAME, _MOST_ROLE = 15, 18


@dataclass
class Tie:
    """Somebody, what they are to the person, and the records that speak of them."""

    name: str
    role: str = ""
    records: list[Record] = field(default_factory=list)


@dataclass(frozen=True)
class Dot:
    """Where somebody stands."""

    name: str
    role: str
    href: str
    x: float
    y: float
    strength: int


@dataclass(frozen=True)
class Drawing:
    """A graph, laid out."""

    width: int
    height: int
    x: float
    y: float
    dots: tuple[Dot, ...]


def draw(ties: Sequence[Tie]) -> Drawing:
    """Everybody in a ring, in turns nearer and farther if they are many, so that names do not touch."""
    middle_x, middle_y = WIDTH / 2, HEIGHT / 2
    dots = []
    for number, tie in enumerate(ties):
        angle = 2 * math.pi * number / len(ties) - math.pi / 2
        far = _FAR if len(ties) <= 8 or number % 2 == 0 else _NEAR
        x, y = middle_x + _WIDE * far * math.cos(angle), middle_y + far * math.sin(angle)
        dots.append(
            Dot(
                tie.name if len(tie.name) <= _MOST_NAME else tie.name[: _MOST_NAME - 1] + "…",
                tie.role if len(tie.role) <= _MOST_ROLE else tie.role[: _MOST_ROLE - 1] + "…",
                tie.records[0].id,
                round(x, 1),
                round(y, 1),
                min(len(tie.records), 5),
            )
        )
    return Drawing(WIDTH, HEIGHT, middle_x, middle_y, tuple(dots))
