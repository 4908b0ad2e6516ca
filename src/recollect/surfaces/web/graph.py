"""A drawing of the people around a person. Lines are stronger the more is known; thin lines connect people who share
an episode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

from recollect.records import Record

WIDTH = 720
MOST_DRAWN = 24
_FAR, _NEAR = 195.0, 118.0
_WIDE = 1.4
_MOST_NAME, _MOST_ROLE = 15, 18
_ONE_RING = 8
_ABOVE, _BELOW = 50, 90
"""The space for one person and the text below."""


@dataclass
class Relationship:
    """A person, their relationship, and the records that mention them."""

    name: str
    role: str = ""
    records: list[Record] = field(default_factory=list)


@dataclass(frozen=True)
class GraphNode:
    """The position of a person."""

    name: str
    initial: str
    role: str
    href: str
    x: float
    y: float
    strength: int


@dataclass(frozen=True)
class GraphLayout:
    """A graph with positions."""

    width: int
    height: float
    x: float
    y: float
    dots: tuple[GraphNode, ...]
    together: tuple[tuple[GraphNode, GraphNode], ...]


def layout_graph(ties: Sequence[Relationship]) -> GraphLayout:
    """Place everyone in a ring. If there are many, alternate between two distances, so that names do not overlap."""
    middle_x, dots = WIDTH / 2, []
    places = [_node_position(number, len(ties)) for number in range(len(ties))]
    middle_y = _ABOVE - min(y for _, y in places)
    height = middle_y + max(y for _, y in places) + _BELOW
    for tie, (x, y) in zip(ties, places, strict=True):
        dots.append(
            GraphNode(
                _shorten_label(tie.name, _MOST_NAME),
                tie.name[:1].upper(),
                _shorten_label(tie.role, _MOST_ROLE),
                tie.records[0].id,
                round(middle_x + x, 1),
                round(middle_y + y, 1),
                min(len(tie.records), 5),
            )
        )
    ids = [{record.id for record in tie.records} for tie in ties]
    together = [(dots[one], dots[other]) for one, other in combinations(range(len(ties)), 2) if ids[one] & ids[other]]
    return GraphLayout(WIDTH, round(height, 1), middle_x, round(middle_y, 1), tuple(dots), tuple(together))


def _node_position(number: int, of: int) -> tuple[float, float]:
    # rotate two or four, so that no line crosses a name below a dot
    angle = 2 * math.pi * (number + (0.5 if of in (2, 4) else 0)) / of - math.pi / 2
    far = _FAR if of <= _ONE_RING or number % 2 == 0 else _NEAR
    return _WIDE * far * math.cos(angle), far * math.sin(angle)


def _shorten_label(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
