"""Extraction by a model, falling back to the rules if it fails.

A model's answer is not trusted as it is. An entry must quote words that the person said in a message of their own;
anything else is stored as untrusted in the daily note, like its own notes, and what reads like an instruction or is
code is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from recollect.agents.apply import Finding
from recollect.agents.capture import is_injection, looks_like_instruction
from recollect.agents.extract import Extraction, Extractor, by_rules
from recollect.agents.gather_interactions import DailyLine, Gathered, Utterance, describe_for_model
from recollect.agents.models import Account, Model, ModelLimits
from recollect.agents.prompts import prompt
from recollect.agents.rules.learned import sort_of
from recollect.agents.rules.sentences import sentences
from recollect.agents.rules.tables import union
from recollect.checks import MAX_KEY, check_query
from recollect.document.memory_md import label_of
from recollect.errors import ModelError
from recollect.memory.memory import Memory
from recollect.policy.code import looks_like_code
from recollect.policy.injection import without_markup
from recollect.text import fold, folded_words, terms

_CATEGORIES = ("preference", "work_context", "personal_context", "reading_history")
_ACTIONS = ("add", "update", "remove")
_UNSURE = 0.5
"""The confidence of entries without support in the person's own words: for the daily note only."""
_MOST_ENTRIES = 40
_MOST_TEXT = 60_000
_MOST_NOTES = 20
_LONGEST_NOTE = 300
_LONGEST_QUOTE = 500
_SHORTEST_QUOTE = 4
_SEVERAL = 2
_SPOKEN = ("interested_in", "likes", "dislikes", "prefers", "learning")

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


def by_model(model: Model, *, limits: ModelLimits | None = None) -> Extractor:
    """Return an extractor that calls a model, falling back to the rules."""

    def extractor(memory: Memory, collected: Gathered) -> Extraction:
        plain = by_rules(memory, collected)
        if collected.count == 0:
            return plain
        happened = describe_for_model(collected)
        asked = f"# Known\n\n{without_markup(memory.show())}\n\n# What happened\n\n{happened[:_MOST_TEXT]}"
        try:
            reply = model.extract(
                prompt("extract"),
                asked,
                SCHEMA,
                check=check_answer,
                limits=limits,
                account=Account(memory, "extract", memory.config),
            )
        except ModelError as error:
            used = error.tokens_in + error.tokens_out
            return replace(plain, tokens=used, problem=f"{error.kind}: by rules instead")
        remarks = []
        if len(happened) > _MOST_TEXT:
            remarks.append("too long for the model: the end was read by rules only")
        if (many := len(reply.data["memory_updates"])) > _MOST_ENTRIES:
            remarks.append(f"the model gave {many} entries: only the first {_MOST_ENTRIES} were used")
        own = tuple(DailyLine("Extracted Insights", text) for text in _notes(reply.data["daily_notes"]))
        understood = {(one.key, one.origin) for one in plain.findings if one.key}
        found = [one for one in findings_of(reply.data, collected) if (one.key, one.origin) not in understood]
        return Extraction(
            (*plain.findings, *found),
            plain.notes,
            f"model:{model.name}",
            reply.tokens_in + reply.tokens_out,
            remark="; ".join(remarks) or None,
            unverified=own,
        )

    return extractor


def findings_of(data: dict[str, Any], collected: Gathered) -> list[Finding]:
    """Return a model's findings; without support in the person's own words they are not trusted."""
    sayings = collected.sayings
    found = []
    for entry in data["memory_updates"][:_MOST_ENTRIES]:
        value, quote, key = (
            _single_line(entry["value"]),
            _single_line(entry["quote"])[:_LONGEST_QUOTE],
            _single_line(entry["key"]),
        )
        if any(map(looks_like_instruction, (f"{key}: {value}", quote))) or looks_like_code(entry["value"]):
            continue
        said = _cited_utterance(entry["message"], quote, f"{key.replace('_', ' ')} {value}", sayings)
        supported = said is not None or (
            entry["message"] == 0 and _is_shown_by_actions(entry["category"], value, collected)
        )
        confidence = float(entry["confidence"]) if supported else min(float(entry["confidence"]), _UNSURE)
        name, content = _storage_key(key, value)
        found.append(
            Finding(
                content=content,
                key=name,
                category=entry["category"],
                action=entry["action"],
                confidence=confidence,
                source="batch_extraction" if said is None else said.source,
                excerpt=quote or None,
                messages=(said.message,) if said is not None and said.message else (),
                durable=supported and entry["category"] != "reading_history",
                trusted=supported,
                several=_of_several("_".join(folded_words(key))),
                corrects=entry["action"] == "update" and union("corrections", "").search(quote) is not None,
                said_at=collected.last if said is None else said.at,
            )
        )
    return found


def _storage_key(key: str, value: str) -> tuple[str | None, str]:
    """Return the key to store a value under. An interest is a sentence of its own, as with the rules."""
    name = "_".join(folded_words(key))
    if name not in _SPOKEN:
        return key[:MAX_KEY].strip() or None, value
    label = label_of(name)
    begun = not value or set(terms(label)) & set(terms(value))
    return None, value if begun else f"{label} {value}"


def _of_several(name: str) -> bool:
    try:
        return sort_of(name).several
    except KeyError:
        return False


def _cited_utterance(number: int, quote: str, value: str, sayings: Sequence[Utterance]) -> Utterance | None:
    """Return the text an entry quotes, if the quote is the person's own and related to the value."""
    words_of_it = fold(quote).strip(" .,;:!…\"'")
    if not 1 <= number <= len(sayings) or len(words_of_it) < _SHORTEST_QUOTE:
        return None
    said = sayings[number - 1]
    if not said.own or words_of_it not in _in_earnest(said):
        return None
    return said if _numbers(value) <= _numbers(quote) and _share_word(value, quote) else None


def _in_earnest(said: Utterance) -> str:
    """Return what the person says in earnest: nothing that is quoted, pasted, or meant for a model."""
    if is_injection(said.text):
        return ""
    return fold(" ".join(sentence.text for sentence in sentences(said.text, said.speaker)))


def _is_shown_by_actions(category: str, value: str, collected: Gathered) -> bool:
    """Return True if interactions show it: several of them, and only for likes and reading."""
    if category not in ("preference", "reading_history"):
        return False
    shown = [f"{one.title or ''} {' '.join(one.topics)}" for one in collected.interactions if one.kind != "delivery"]
    needed = 1 if category == "reading_history" else _SEVERAL
    return sum(_share_word(value, text) for text in shown) >= needed


def _share_word(value: str, text: str) -> bool:
    return bool(set(terms(value)) & set(terms(text)))


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+", text))


def _notes(given: Sequence[str]) -> list[str]:
    lines = [_single_line(part).lstrip("-•*# ").strip() for line in given for part in line.splitlines()]
    return [line[:_LONGEST_NOTE] for line in lines if line and not looks_like_instruction(line)][:_MOST_NOTES]


def _single_line(text: str) -> str:
    return " ".join(check_query("text", text).split())


def check_answer(data: Any) -> None:
    """Raise ValueError with a sentence for the model if an answer does not fit the schema."""
    entries, notes = data["memory_updates"], data["daily_notes"]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("memory_updates must be a list of objects")
    if not isinstance(notes, list) or not all(isinstance(line, str) for line in notes):
        raise ValueError("daily_notes must be a list of texts")
    for number, entry in enumerate(entries[:_MOST_ENTRIES]):
        if problem := _entry_problem(entry):
            raise ValueError(f"memory_updates[{number}].{problem}")


def _entry_problem(entry: dict[str, Any]) -> str:
    """Return the problem with an entry; empty if there is none."""
    for name in ("category", "key", "value", "action", "quote"):
        if not isinstance(entry.get(name), str):
            return f"{name} must be text"
    if entry["category"] not in _CATEGORIES:
        return f"category must be one of {', '.join(_CATEGORIES)}"
    if entry["action"] not in _ACTIONS:
        return f"action must be one of {', '.join(_ACTIONS)}"
    if entry["action"] != "remove" and not _single_line(entry["value"]):
        return "value is empty"
    number, confidence = entry.get("message"), entry.get("confidence")
    if isinstance(number, bool) or not isinstance(number, int):
        return "message must be a whole number"
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        return "confidence must be a number from 0 to 1"
    return ""
