"""Extraction by a model, falling back to the rules if it fails.

A model that can call tools is an agent: it searches, then writes or updates (`extraction_agent`). Any other gives its
findings as structured output (`memory_update`). Neither is trusted as it is: what nothing supports of what the person
said or did is not stored as a fact (`evidence`), and what reads like an instruction or is code is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

from recollect.agents.apply import Finding
from recollect.agents.capture import looks_like_instruction
from recollect.agents.evidence import LONGEST_QUOTE, Evidence, Support
from recollect.agents.extract import Extraction, Extractor, by_rules
from recollect.agents.extraction_agent import StagedChanges
from recollect.agents.gather_interactions import (
    DailyLine,
    Gathered,
    Utterance,
    add_below,
    describe_for_model,
    same_words,
)
from recollect.agents.memory_update import MOST_ENTRIES, Action, Category, DailyMemoryUpdate, MemoryEntry, read_update
from recollect.agents.models import Account, Model, ModelLimits, Turn, json_in
from recollect.agents.prompts import prompt
from recollect.agents.rules.learned import sort_of
from recollect.agents.rules.tables import union
from recollect.checks import MAX_KEY, check_query
from recollect.document import daily_md
from recollect.document.memory_md import label_of
from recollect.errors import ModelError
from recollect.memory.memory import Memory
from recollect.policy.code import looks_like_code
from recollect.policy.injection import without_markup
from recollect.policy.secrets import mask
from recollect.text import folded_words, terms
from recollect.tools.log import CallLog

_UNSURE = 0.5
"""The confidence of entries without support in the person's own words: for the daily note only."""
_MOST_TEXT = 60_000
_MOST_NOTES = 20
_LONGEST_NOTE = 300
_LONGEST_SUMMARY = 300
_SPOKEN = ("interested_in", "likes", "dislikes", "prefers", "learning")
_AGENT = ModelLimits(turns=24, calls=40, seconds=300)
_REQUEST = ModelLimits(turns=2, seconds=20, attempts=2, corrections=1)
_INSIGHTS = "Extracted Insights"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "memory_updates": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "category": {"type": "string", "enum": list(get_args(Category))},
                    "key": {"type": "string", "description": "short identifier such as role, or opinion_on_crypto"},
                    "value": {"type": "string"},
                    "action": {"type": "string", "enum": list(get_args(Action))},
                    "confidence": {"type": "number"},
                    "message": {"type": "integer", "description": "number of the message it comes from, or 0"},
                    "quote": {"type": "string", "description": "the person's words that support it"},
                },
                "required": ["category", "key", "value", "action", "confidence", "message", "quote"],
                "additionalProperties": False,
            },
        },
        "daily_notes": {"type": "string", "description": "Markdown for the daily note; may be empty"},
        "summary": {"type": "string", "description": "one line on what changed"},
    },
    "required": [],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Found:
    """What a model found, and what it used for that."""

    findings: tuple[Finding, ...]
    tokens: int = 0
    notes: tuple[DailyLine, ...] = ()
    summary: str | None = None
    remark: str | None = None
    problem: str | None = None


def by_model(
    model: Model, *, limits: ModelLimits | None = None, tools: bool = True, log: CallLog | None = None
) -> Extractor:
    """Return an extractor that calls a model, falling back to the rules.

    A model that supports tools works with them, unless ``tools`` is False. Its calls are recorded in the ``log``, by
    default in one of their own.
    """

    def extractor(memory: Memory, collected: Gathered) -> Extraction:
        plain = by_rules(memory, collected)
        if collected.count == 0:
            return plain
        happened = describe_for_model(collected)
        asked = f"# Known\n\n{without_markup(memory.show())}\n\n# What happened\n\n{happened[:_MOST_TEXT]}"
        try:
            found = _ask(model, memory, collected, asked, limits, tools, log)
        except ModelError as error:
            used = error.tokens_in + error.tokens_out
            return replace(plain, tokens=used, problem=f"{error.kind}: by rules instead")
        remarks = [found.remark] if found.remark else []
        if len(happened) > _MOST_TEXT:
            remarks.insert(0, "too long for the model: the end was read by rules only")
        sure = memory.config.confidence_threshold
        understood = {one.origin for one in found.findings if one.trusted and one.confidence >= sure}
        notes, unverified = _merge_notes(plain.notes, found.notes, memory, collected)
        return Extraction(
            (*(one for one in plain.findings if one.origin not in understood), *found.findings),
            notes,
            f"model:{model.name}",
            found.tokens,
            problem=found.problem,
            remark="; ".join(remarks) or None,
            unverified=unverified,
            summary=found.summary,
        )

    return extractor


def _ask(
    model: Model,
    memory: Memory,
    collected: Gathered,
    asked: str,
    limits: ModelLimits | None,
    tools: bool,
    log: CallLog | None,
) -> _Found:
    if tools and model.calls_tools:
        try:
            return _ask_agent(model, memory, collected, asked, limits or _AGENT, log)
        except ModelError as error:
            if not error.form:
                raise
    reply = model.extract(
        f"{prompt('extract')}\n\n{prompt('extract_by_answer')}",
        asked,
        SCHEMA,
        check=read_update,
        limits=limits,
        account=Account(memory, "extract", memory.config),
    )
    return _read_answer(memory, collected, reply.data, reply.tokens_in + reply.tokens_out)


def _ask_agent(
    model: Model, memory: Memory, collected: Gathered, asked: str, limits: ModelLimits, log: CallLog | None
) -> _Found:
    """Let the model work with the tools. One that gives JSON instead of calling them is understood too."""
    staged, log = StagedChanges(memory, collected), log or CallLog.of(memory)
    try:
        reply = model.converse(
            f"{prompt('extract')}\n\n{prompt('extract_by_tools')}",
            [Turn("user", asked)],
            suite=staged.suite(limits.calls, log),
            limits=limits,
            account=Account(memory, "extract", memory.config),
        )
    except ModelError as error:
        if not staged.findings:
            raise
        used = error.tokens_in + error.tokens_out
        return _Found(tuple(staged.findings), used, problem=f"{error.kind}: the rest by rules")
    finally:
        log.flush(memory.user_id)
    used = reply.tokens_in + reply.tokens_out
    if not reply.calls:
        try:
            return _read_answer(memory, collected, json_in(reply.text), used)
        except ValueError:
            pass  # it had nothing to say
    remark = None if reply.stopped == "done" else f"the model was stopped at the limit of {reply.stopped}"
    return _Found(tuple(staged.findings), used, remark=remark)


def _read_answer(memory: Memory, collected: Gathered, data: Any, tokens: int) -> _Found:
    update = read_update(data)
    many = len(data.get("memory_updates") or ())
    remark = f"the model gave {many} entries: only the first {MOST_ENTRIES} were used" if many > MOST_ENTRIES else None
    summary = mask(_single_line(update.summary))[:_LONGEST_SUMMARY]
    return _Found(
        tuple(findings_of(update, Evidence.of(memory, collected), memory.config.confidence_threshold)),
        tokens,
        tuple(note_lines(update.daily_notes)),
        summary if summary and not looks_like_instruction(summary) else None,
        remark,
    )


def word_request(model: Model, memory: Memory, text: str) -> list[Finding]:
    """Return what a model understands a request to remember something as; nothing if it fails."""
    said = Utterance(text, memory.clock(), "explicit")
    asked = f"# Known\n\n{without_markup(memory.show())}\n\n# What the person asks to remember\n\n{text}"
    try:
        reply = model.extract(
            f"{prompt('extract')}\n\n{prompt('capture')}",
            asked[:_MOST_TEXT],
            SCHEMA,
            check=read_update,
            limits=_REQUEST,
            account=Account(memory, "capture", memory.config),
        )
    except ModelError:
        return []
    evidence = Evidence(memory, [said], said.at)
    return findings_of(read_update(reply.data), evidence, memory.config.confidence_threshold)


def findings_of(update: DailyMemoryUpdate, evidence: Evidence, threshold: float) -> list[Finding]:
    """Return the findings of an answer; without support they are not trusted."""
    found = []
    for entry in update.memory_updates:
        key, value, quote = _single_line(entry.key), _single_line(entry.value), _single_line(entry.quote or "")
        if any(map(looks_like_instruction, (f"{key}: {value}", quote))) or looks_like_code(entry.value):
            continue
        support = _support_of(entry, key, value, quote[:LONGEST_QUOTE], evidence, threshold)
        said = None if support is None else support.said
        name, content = _storage_key(key, value)
        excerpt = quote[:LONGEST_QUOTE] or (support.excerpt if support is not None else None)
        found.append(
            Finding(
                content=content,
                key=name,
                category=entry.category,
                action=entry.action,
                confidence=entry.confidence if support is not None else min(entry.confidence, _UNSURE),
                source="batch_extraction" if said is None else said.source,
                excerpt=excerpt or None,
                messages=(said.message,) if said is not None and said.message else (),
                durable=support is not None and entry.category != "reading_history",
                trusted=support is not None,
                several=_of_several("_".join(folded_words(key))),
                corrects=entry.action == "update" and union("corrections", "").search(excerpt or "") is not None,
                said_at=evidence.last if support is None else support.at,
            )
        )
    return found


def _support_of(
    entry: MemoryEntry, key: str, value: str, quote: str, evidence: Evidence, threshold: float
) -> Support | None:
    """Return what supports an entry: what it cites or, if it cites nothing, what states or shows it."""
    claim = f"{key.replace('_', ' ')}: {value}"
    if entry.message is not None:
        cited = evidence.cited(entry.message, quote, claim)
        return cited or (evidence.shown(entry.category, value) if entry.message == 0 else None)
    likes = entry.category in ("preference", "reading_history")
    stated = evidence.stated(claim if entry.action == "remove" else value, may_ask=likes)
    return stated or evidence.shown(entry.category, value, weak=entry.confidence < threshold)


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


def note_lines(markdown: str) -> list[DailyLine]:
    """Return the entries of a model's notes, each in its section. Code and instructions are left out."""
    lines = []
    for item in daily_md.parse_entries(f"## {_INSIGHTS}\n\n{check_query('text', markdown)}"):
        said = "\n".join(line.rstrip()[:_LONGEST_NOTE] for line in item.content.splitlines())
        if said.strip() and not looks_like_instruction(said) and not looks_like_code(said):
            section = item.section if item.section in daily_md.SECTIONS else _INSIGHTS
            lines.append(DailyLine(section, said.strip()))
    return lines[:_MOST_NOTES]


def _merge_notes(
    ours: tuple[DailyLine, ...], given: tuple[DailyLine, ...], memory: Memory, collected: Gathered
) -> tuple[tuple[DailyLine, ...], tuple[DailyLine, ...]]:
    """Return our lines and those of a model. What it says about a discussion that we report goes below our line.

    What the person did not say stays apart, because it is not verified.
    """
    lines, others, evidence = list(ours), list[DailyLine](), Evidence.of(memory, collected) if given else None
    for line in given:
        head, *rest = line.text.splitlines()
        place = next((n for n, one in enumerate(lines) if one.discussed and _reports(head, one.discussed)), None)
        if evidence is None or place is None:
            others.append(line)
            continue
        below = [part.strip().lstrip("-*• ") for part in rest if part.strip()]
        stated = [part for part in below if evidence.stated(part.removeprefix("Opinion:"))]
        lines[place] = add_below(lines[place], stated)
        if apart := tuple(part for part in below if part not in stated):
            others.append(DailyLine(line.section, "\n- ".join((f'More on "{lines[place].discussed}"', *apart))))
    return tuple(lines), tuple(others)


def _reports(head: str, title: str) -> bool:
    """Return True if a line reports that something with this title was discussed."""
    return same_words(head).startswith(f"discussed {same_words(title)}")


def _single_line(text: str) -> str:
    return " ".join(check_query("text", text).split())
