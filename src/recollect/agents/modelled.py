"""Extraction by a model, and the tiers: rules first, a model where there is one, the rules again if it fails.

What a model gives back is not believed as it stands. An entry must quote words that the person said in a message of
their own; what it took from elsewhere is kept as untrusted and goes to the daily note, and what reads like an
instruction is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from recollect.agents.collect import Collected, described, notes_of, own_words
from recollect.agents.extract import Extraction, Extractor, by_rules
from recollect.agents.keeping import Finding
from recollect.agents.models import Account, Limits, Model
from recollect.agents.prompts import prompt
from recollect.core.memory import Memory
from recollect.errors import ModelError
from recollect.records import Message
from recollect.text import fold

_CATEGORIES = ("preference", "work_context", "personal_context", "reading_history")
_ACTIONS = ("add", "update", "remove")
_UNSURE = 0.5
"""The confidence of what a model did not take from the person's own words: for the daily note only."""
_MOST_ENTRIES = 40
_MOST_TEXT = 60_000

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "memory_updates": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "category": {"type": "string", "enum": list(_CATEGORIES)},
                    "key": {"type": "string", "description": "short identifier such as role, or opinion_on_crypto"},
                    "value": {"type": "string"},
                    "action": {"type": "string", "enum": list(_ACTIONS)},
                    "confidence": {"type": "number"},
                    "message": {"type": "integer", "description": "number of the message it comes from, or 0"},
                    "quote": {"type": "string", "description": "the person's words that support it"},
                },
                "required": ["category", "key", "value", "action", "confidence", "message", "quote"],
                "additionalProperties": False,
            },
        },
        "daily_notes": {"type": "array", "items": {"type": "string"}, "description": "one line each; may be empty"},
    },
    "required": ["memory_updates", "daily_notes"],
    "additionalProperties": False,
}

_INSTRUCTION = re.compile(
    r"\b(ignore|disregard|forget|override)\b.{0,40}\b(instructions?|rules?|prompts?|everything)\b"
    r"|\b(system prompt|admin password|developer mode|jailbreak)\b|<\|",
    re.IGNORECASE,
)


def by_model(model: Model, *, limits: Limits | None = None) -> Extractor:
    """An extractor that asks a model, and lets the rules do it if that fails."""

    def extractor(memory: Memory, collected: Collected) -> Extraction:
        plain = by_rules(memory, collected)
        if collected.count == 0:
            return plain
        asked = f"# Known\n\n{memory.show()}\n\n# What happened\n\n{described(collected)[:_MOST_TEXT]}"
        try:
            reply = model.extract(
                prompt("extract"),
                asked,
                SCHEMA,
                check=_check,
                limits=limits,
                account=Account(memory, "extract", memory.config),
            )
        except ModelError as error:
            return Extraction(plain.findings, plain.notes, "rules", problem=f"{error.kind}: by rules instead")
        findings = [*plain.findings, *findings_of(reply.data, collected)]
        notes = [("Extracted Insights", line.strip("-• \n")) for line in reply.data["daily_notes"] if line.strip()]
        notes = [*notes_of(collected), *(note for note in notes[:20] if not _INSTRUCTION.search(note[1]))]
        return Extraction(tuple(findings), tuple(notes), f"model:{model.name}", reply.tokens_in + reply.tokens_out)

    return extractor


def findings_of(data: dict[str, Any], collected: Collected) -> list[Finding]:
    """What a model found, as far as the person's own words support it."""
    messages = [message for talk in collected.talks for message in talk.messages]
    found = []
    for entry in data["memory_updates"][:_MOST_ENTRIES]:
        if _INSTRUCTION.search(f"{entry['value']} {entry['quote']}"):
            continue
        message = _cited(entry, messages)
        supported = message is not None or (entry["message"] == 0 and bool(collected.interactions))
        confidence = min(max(float(entry["confidence"]), 0.0), 1.0)
        found.append(
            Finding(
                content=entry["value"].strip(),
                key=entry["key"].strip() or None,
                category=entry["category"],
                action=entry["action"],
                confidence=confidence if supported else min(confidence, _UNSURE),
                source=f"discussion:{message.session}" if message is not None else "batch_extraction",
                excerpt=entry["quote"].strip()[:500] or None,
                messages=(message.id,) if message is not None else (),
                durable=supported and entry["category"] != "reading_history",
                trusted=supported,
            )
        )
    return found


def _cited(entry: dict[str, Any], messages: Sequence[Message]) -> Message | None:
    """The message of the person's own that an entry quotes."""
    number, quote = entry["message"], fold(entry["quote"])
    if not 1 <= number <= len(messages) or not quote:
        return None
    message = messages[number - 1]
    said = fold("\n".join(line for line in own_words(message).splitlines() if not line.lstrip().startswith(">")))
    return message if message.role == "user" and message.trusted and quote in said else None


def _check(data: Any) -> None:
    for number, entry in enumerate(data["memory_updates"]):
        if entry["category"] not in _CATEGORIES:
            raise ValueError(f"memory_updates[{number}].category must be one of {', '.join(_CATEGORIES)}")
        if entry["action"] not in _ACTIONS:
            raise ValueError(f"memory_updates[{number}].action must be one of {', '.join(_ACTIONS)}")
        if not str(entry["value"]).strip() and entry["action"] != "remove":
            raise ValueError(f"memory_updates[{number}].value is empty")
        if not 0 <= float(entry["confidence"]) <= 1:
            raise ValueError(f"memory_updates[{number}].confidence must be from 0 to 1")
