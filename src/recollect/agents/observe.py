"""Observations from the output of a step: findings, insights and lessons, by a model.

It never raises: from an output that cannot be read, nothing is learned.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from recollect.agents.apply import source_of
from recollect.agents.capture import looks_like_instruction
from recollect.agents.models import Account, Model, ModelLimits
from recollect.agents.prompts import prompt
from recollect.checks import check_query
from recollect.memory.memory import Memory
from recollect.policy.secrets import find_secrets, mask
from recollect.records import Outcome

LOGGER = logging.getLogger("recollect.agents")

SHORTEST, LONGEST = 50, 4_000
_NAMES = ("findings", "insights", "lessons")
_MOST_EACH = 20
_LONGEST_TEXT = 1_000
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "array", "items": {"type": "string"}} for name in _NAMES},
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Observations:
    findings: tuple[str, ...] = ()
    insights: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()
    step_name: str = ""
    step_type: str = ""

    def __bool__(self) -> bool:
        return bool(self.findings or self.insights or self.lessons)


def observe(model: Model | None, memory: Memory, step_name: str, step_type: str, output: str) -> Observations | None:
    """Return what the output of a step teaches; None if it is short, there is no model, or that failed."""
    if model is None or not isinstance(output, str) or len(output) < SHORTEST:
        return None
    asked = f"Step {step_name} ({step_type}):\n\n{mask(output[: 2 * LONGEST])[:LONGEST]}"
    limits = ModelLimits(turns=3, tokens=20_000, seconds=60)
    try:
        if memory.mode != "on":
            return None
        reply = model.extract(
            prompt("observe"), asked, SCHEMA, limits=limits, account=Account(memory, "observe", memory.config)
        )
        texts = {name: _storable_texts(reply.data.get(name)) for name in _NAMES}
    except Exception as error:  # the promise of this function: a step never fails because nothing was learned from it
        LOGGER.warning("learned nothing from a step: %s", type(error).__name__)
        return None
    found = Observations(**texts, step_name=step_name, step_type=step_type)
    return found if found else None


def store_observations(memory: Memory, found: Observations) -> list[Outcome]:
    """Store what a step taught, all of it or nothing."""
    texts = {name: _storable_texts(list(getattr(found, name))) for name in _NAMES}
    source = source_of(found.step_type or "STEP", found.step_name)
    return memory.acting("agent:observe").remember_fil(**texts, source=source)


def _storable_texts(given: Any) -> tuple[str, ...]:
    """Return the texts that can be stored: not empty, each once, without secrets, and not an order to a model."""
    if not isinstance(given, list):
        return ()
    shown = [check_query("text", one) for one in given if isinstance(one, str)]
    texts = dict.fromkeys(one.strip()[:_LONGEST_TEXT].strip() for one in shown)  # lines stay: a setting has several
    storable = (one for one in texts if any(map(str.isalnum, one)) and not find_secrets(one))
    return tuple(one for one in storable if not looks_like_instruction(one))[:_MOST_EACH]
