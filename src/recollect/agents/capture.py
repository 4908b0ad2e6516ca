"""Explicit capture: the person says "remember that …", and it is stored at once and confirmed.

The tables of the rules say what counts as asking, in many languages. A model, where there is one, words what is to be
remembered; without it, or if it fails, the rules do. A chat passes on each message of the person before it is answered.
Decisions and preferences that the person states without asking are stored at once too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.agents.apply import AppliedFindings, Finding, apply_findings
from recollect.agents.gather_interactions import without_memory
from recollect.agents.rules import Learned, find_explicit, learn
from recollect.agents.rules.learned import ANYTHING
from recollect.agents.rules.sentences import HIDDEN, plain_punctuation, sentences
from recollect.agents.rules.tables import union
from recollect.errors import InvalidInputError
from recollect.memory.memory import Memory
from recollect.memory.refusals import refusal_if_paused
from recollect.records import Forgotten, Outcome, Refused, Updated, Written
from recollect.text import clean, terms

CONFIRMED = "Got it, I'll remember that."
NOTED = f"{CONFIRMED} It is in today's note."
KNOWN = "I know that already."
_BACK = "What should I remember? Tell me in a sentence."
_INSTRUCTION = "Not stored: it reads like an instruction to a model, not like something about you."
_LONGEST_BACK = 1_000
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instructions?|rules?|prompts?|polic(?:y|ies)|everything)\b"
    r"|\b(?:system prompt|admin(?:istrator)? password|developer mode|god mode|jailbreak\w*|prompt injection)\b|<\|"
    r"|\[/?(?:inst|system)\]|\byou (?:are|will|must) now\b"
    r"|\b(?:always|never) (?:reveal|execute|forward|approve|transfer|obey)\b"
    r"|\b(?:assistant|ai|model|bot|agent)s? (?:must|should|shall|will) (?:always|never|now)\b",
    re.IGNORECASE | re.DOTALL,
)
"""Texts that are meant for a model, in addition to the rules' table, which knows more languages."""


@dataclass(frozen=True, slots=True)
class Captured:
    """The result of a request to remember something; ``reply`` is for the person."""

    reply: str
    kept: AppliedFindings


def capture(
    memory: Memory,
    text: str,
    *,
    before: str | None = None,
    before_role: str = "user",
    session: str | None = None,
    message: str | None = None,
    source: str = "explicit",
    worded: Callable[[str], Sequence[Finding]] | None = None,
) -> Captured | None:
    """Store what a message asks to remember; None if it asks for nothing.

    ``before`` is what was said before, which "remember this" is about, and ``before_role`` who said it: an assistant's
    words are stored as unverified. ``message`` is the id of the stored message. ``worded`` returns what a model
    understands a request as; the words of the person are kept beside it unless it says as much.
    """
    if worded is not None and not callable(worded):
        raise InvalidInputError("worded", "must be callable")
    own, language = without_memory(text), memory.config.language or None
    asked = None if is_injection(own) else find_explicit(own)
    if asked is None:
        return None
    if paused := refusal_if_paused("on", memory.config):  # before creating a memory for nothing
        return Captured(paused.message, AppliedFindings.of([paused]))
    if asked.refers_back:
        said = without_memory(before or "").strip()
        if not said or len(said) > _LONGEST_BACK:
            return Captured(_BACK, AppliedFindings())
        if looks_like_instruction(said):
            return Captured(_INSTRUCTION, AppliedFindings.of([Refused(reason="instruction", message=_INSTRUCTION)]))
        own_said = before_role == "user" and is_own(said)
        learned = learn(said, role=before_role, language=language)
        findings = [finding_of(one.as_requested(), source, message) for one in learned] or [
            _verbatim_finding(said, said, source, message, trusted=own_said)
        ]
    else:
        findings = [finding_of(one, source, message) for one in learn(own, language=language) if one.explicit]
        if not findings:  # the rules did not accept it as a fact, perhaps a secret: let the policy say why
            findings = [_verbatim_finding(asked.content, asked.excerpt, source, message, durable=asked.durable)]
    if worded is not None and all(one.trusted and one.action == "add" for one in findings):
        findings = _merge_wordings(findings, worded(said if asked.refers_back else own), source, message)
    with memory.acting("agent:capture", session=session).batch() as open_memory:
        kept = apply_findings(open_memory, findings)
        kept.outcomes = [_keep_unknown_ending(open_memory, *pair) for pair in zip(findings, kept.outcomes, strict=True)]
        kept = AppliedFindings.of(kept.outcomes)
        stored = [one for one in kept.outcomes if isinstance(one, Written | Updated) and one.record.kind == "fact"]
        for line in dict.fromkeys(one.record.excerpt or "" for one in stored):
            open_memory.jot(f'User said: "{_one_line(line)}"', section="Explicit Memories", source=source)
    return Captured(_reply(kept), kept)


def learn_at_once(memory: Memory, text: str, *, source: str, message: str, said_at: datetime) -> AppliedFindings | None:
    """Store the decisions and preferences that a message states, None if there are none. The rest is learned later."""
    if is_injection(text):
        return None
    learned = [one for one in learn(without_memory(text)) if one.kind == "insight" or one.category == "preference"]
    findings = [finding_of(one, source, message, said_at) for one in learned]
    sure = [one for one in findings if one.durable and one.confidence >= memory.config.confidence_threshold]
    if not sure:
        return None
    with memory.acting("agent:capture").batch() as open_memory:
        return apply_findings(open_memory, sure)


def _merge_wordings(own: list[Finding], better: Sequence[Finding], source: str, message: str | None) -> list[Finding]:
    """Return a model's wording of a request in place of that of the rules, or beside it if it says less."""
    told = [
        replace(
            one,
            source=source,
            told=True,
            durable=one.durable and all(rule.durable for rule in own),
            excerpt=own[0].excerpt,
            messages=(message,) if message else (),
            said_at=None,
        )
        for one in better
        if one.trusted and one.action != "remove"
    ]
    said = set(terms(" ".join(one.content for one in told)))
    wanted = set(terms(" ".join(one.content for one in own)))
    return told if told and len(wanted & said) * 2 >= len(wanted) else [*own, *told]


def is_own(text: str) -> bool:
    """Return True if a text is entirely the author's own: nothing in it is quoted, pasted or code."""
    said = " ".join(sentence.text for sentence in sentences(text))
    return HIDDEN not in said and "".join(said.split()) == "".join(plain_punctuation(text).split())


def looks_like_instruction(text: str) -> bool:
    """Return True if a text tries to give orders to a model, instead of saying something about the person."""
    return _ORDERS.search(clean(text)) is not None or is_injection(text)


def is_injection(text: str) -> bool:
    """Check by the rules' table alone, even if the words are hidden among invisible characters."""
    return union("injection").search(plain_punctuation(clean(text))) is not None


def _verbatim_finding(
    content: str, said: str, source: str, message: str | None, *, durable: bool = True, trusted: bool = True
) -> Finding:
    return Finding(
        content=content,
        category="key_fact",
        source=source,
        excerpt=said[:500],
        durable=durable,
        told=True,
        trusted=trusted,
        messages=(message,) if message else (),
    )


def _keep_unknown_ending(memory: Memory, finding: Finding, outcome: Outcome) -> Outcome:
    """Keep a statement as it was said if it ends something that was never known."""
    if finding.action != "remove" or not (isinstance(outcome, Refused) and outcome.reason == "unknown"):
        return outcome
    said = find_explicit(finding.excerpt or "")
    content = said.content if said is not None and said.content else finding.excerpt or finding.content
    return apply_findings(memory, [replace(finding, action="add", content=content, key=None)]).outcomes[0]


def finding_of(learned: Learned, source: str, message: str | None = None, said_at: datetime | None = None) -> Finding:
    """Return what the rules learned as a finding."""
    gone = learned.action == "remove" and ANYTHING in learned.ends
    return Finding(
        content="" if gone else learned.content,
        key=learned.fact_key,
        category=learned.category,
        type=learned.type,
        action=learned.action,
        confidence=learned.confidence,
        source=source,
        excerpt=learned.excerpt,
        messages=(message,) if message else (),
        durable=learned.durable,
        told=learned.explicit,
        previous=learned.previous,
        ends=tuple(line for line in learned.ends if line != ANYTHING),
        corrects=learned.action == "update",
        said_at=said_at,
    )


def _reply(kept: AppliedFindings) -> str:
    refused = " ".join(dict.fromkeys(one.message for one in kept.outcomes if isinstance(one, Refused)))
    if kept.changed:
        durable = any(
            isinstance(one, Updated | Forgotten) or (isinstance(one, Written) and one.record.kind != "daily")
            for one in kept.outcomes
        )
        return f"{CONFIRMED if durable else NOTED} {refused}".strip()
    return refused or KNOWN


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:297] + "…"
