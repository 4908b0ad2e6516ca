"""Observations from the output of a step: findings, insights and lessons, by a model.

It never raises: an output that cannot be read teaches nothing, and that is all.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from recollect.agents.models import Account, Limits, Model
from recollect.agents.prompts import prompt
from recollect.core.memory import Memory
from recollect.errors import RecollectError
from recollect.records import Outcome

LOGGER = logging.getLogger("recollect.agents")

SHORTEST, LONGEST = 50, 4_000
_NAMES = {"findings": "finding", "insights": "insight", "lessons": "lesson"}
_MOST_EACH = 20
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "array", "items": {"type": "string"}} for name in _NAMES},
    "required": list(_NAMES),
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Observations:
    """What a step taught."""

    findings: tuple[str, ...] = ()
    insights: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()
    step_name: str = ""
    step_type: str = ""

    def __bool__(self) -> bool:
        return bool(self.findings or self.insights or self.lessons)


def observe(model: Model | None, memory: Memory, step_name: str, step_type: str, output: str) -> Observations | None:
    """What the output of a step teaches; None if it is short, if there is no model, or if that failed."""
    if model is None or len(output) < SHORTEST:
        return None
    asked = f"Step {step_name} ({step_type}):\n\n{output[:LONGEST]}"
    limits = Limits(turns=3, tokens=20_000, seconds=60)
    try:
        reply = model.extract(
            prompt("observe"), asked, SCHEMA, limits=limits, account=Account(memory, "observe", memory.config)
        )
        texts = {name: _texts(reply.data.get(name)) for name in _NAMES}
    except (RecollectError, AttributeError) as error:
        LOGGER.warning("nothing was learned from a step: %s", type(error).__name__)
        return None
    found = Observations(**texts, step_name=step_name, step_type=step_type)
    return found if found else None


def remember(memory: Memory, found: Observations) -> list[Outcome]:
    """Store what a step taught, all of it or nothing."""
    source = f"{found.step_type}:{found.step_name}"
    with memory.acting("agent:observe").batch() as open_memory:
        return [
            open_memory.observe(text, category, source=source)
            for name, category in _NAMES.items()
            for text in getattr(found, name)
        ]


def _texts(given: Any) -> tuple[str, ...]:
    return (
        tuple(one.strip() for one in given if isinstance(one, str) and one.strip())[:_MOST_EACH]
        if isinstance(given, list)
        else ()
    )
