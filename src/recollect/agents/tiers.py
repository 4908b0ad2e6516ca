"""Hybrid extraction: rules, then a local model, then a remote one, each only where the one before is not certain.

Models are not asked about what the rules understood. What a local model gives with little confidence, or fails at, goes
to the remote one. Also decides which chats let the model manage memory itself, with tools.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from recollect.agents.apply import Finding
from recollect.agents.extract import Extraction, Extractor, by_rules
from recollect.agents.gather_interactions import ConversationPart, Gathered, Utterance
from recollect.config import Config
from recollect.memory.memory import Memory
from recollect.records import Message, Record

_FEWEST_WORDS = 4
_SURE = 0.7
WITH_TOOLS = "tools"
"""The metadata of an answer that a model with memory tools gave."""


def by_tiers(models: Sequence[Extractor]) -> Extractor:
    """Return an extractor that applies the rules first, then each of these for what is still open, in order."""

    def extractor(memory: Memory, collected: Gathered) -> Extraction:
        found = by_rules(memory, collected)
        still_open = _not_understood(collected, found.findings)
        tokens, problems, tiers = 0, [], [found.tier]
        for model in models:
            if not still_open.sayings:
                break
            more = model(memory, still_open)
            tokens += more.tokens
            tiers.append(more.tier)
            if more.problem:
                problems.append(more.problem)
                continue
            sure = [finding for finding in more.findings if finding.confidence >= _SURE]
            unsure = [finding for finding in more.findings if finding.confidence < _SURE]
            last = model is models[-1]
            found = replace(
                found,
                findings=(*found.findings, *sure, *(unsure if last else ())),
                notes=tuple(dict.fromkeys((*found.notes, *more.notes))),
                unverified=(*found.unverified, *more.unverified),
                summary=more.summary or found.summary,
            )
            still_open = _only(still_open, {finding.origin for finding in unsure})
        told = " + ".join(dict.fromkeys(tiers))
        return replace(found, tier=told, tokens=tokens, problem="; ".join(problems) or None)

    return extractor


def by_rules_because(problem: str) -> Extractor:
    """Return an extractor that applies the rules alone and says why."""

    def extractor(memory: Memory, collected: Gathered) -> Extraction:
        return replace(by_rules(memory, collected), problem=f"{problem}: by rules instead")

    return extractor


def _not_understood(collected: Gathered, findings: Sequence[Finding]) -> Gathered:
    """Return what the rules did not understand and might matter: statements of the person of some length."""
    understood = {finding.origin for finding in findings}
    return collected.only(
        lambda said: said.role != "user" or (said.origin not in understood and _may_hold_something(said))
    )


def _only(collected: Gathered, origins: set[str]) -> Gathered:
    return collected.only(lambda said: said.origin in origins)


def _may_hold_something(said: Utterance) -> bool:
    text = said.text.strip()
    return len(text.split()) >= _FEWEST_WORDS and not text.endswith(("?", "？", "؟"))


def model_keeps_memory(chat: str, config: Config, *, had_tools: bool | None = None) -> bool:
    """Return True if the model gets the tools in this chat. A chat stays on its side, whatever else changes.

    ``had_tools`` says if the last answer in this chat came with tools; None for a new chat. It decides where only new
    chats get them.
    """
    if not config.tool_based:
        return False
    if isinstance(config.tool_rollout, str):
        return had_tools is not False
    number = int.from_bytes(hashlib.blake2b(chat.encode("utf-8"), digest_size=8).digest(), "big")
    return number % 100 < config.tool_rollout


def had_tools(messages: Iterable[Record]) -> bool | None:
    """Return whether the last answer among these messages, oldest first, came with tools; None without an answer."""
    answers = [one for one in messages if isinstance(one, Message) and one.role == "assistant"]
    return bool(answers[-1].metadata.get(WITH_TOOLS)) if answers else None


def without_fallback(extractor: Extractor, config: Config) -> Extractor:
    """Return an extractor that skips conversations of models with tools, which manage memory themselves."""

    def by_model(talk: ConversationPart) -> bool:
        place = talk.session.rpartition("@")[0] or talk.session
        had = had_tools(talk.messages)
        return bool(had) or model_keeps_memory(place, config, had_tools=bool(had))

    def extract(memory: Memory, collected: Gathered) -> Extraction:
        return extractor(memory, replace(collected, talks=tuple(one for one in collected.talks if not by_model(one))))

    return extract
