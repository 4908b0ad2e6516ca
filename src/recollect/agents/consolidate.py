"""Decisions of a working session: the sentences that state them and how it ended, or by a model, if there is one.

By words it works in a few languages. Insights are stored with the session as their source, each once. Tools and other
programs decide nothing, whatever they say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from recollect.agents.apply import AppliedFindings, Finding, apply_findings, source_of
from recollect.agents.capture import looks_like_instruction
from recollect.agents.gather_interactions import in_chat_of, without_memory
from recollect.agents.models import Model
from recollect.agents.observe import LONGEST, observe
from recollect.memory.memory import Memory
from recollect.memory.refusals import refusal_if_paused
from recollect.records import Message
from recollect.text import fold

_DECIDED = re.compile(
    r"\b(decided|conclusions?|important|remember|note that|key insight|learned that|will use|should use|agreed"
    r"|entschieden|beschlossen|wichtig|décidé|conclu|decidido|acordado|вирішили|домовились|важливо"
    r"|решили|договорились|важно|zdecydowaliśmy|ustalono)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:not|never|nothing|nobody|haven't|hasn't|hadn't|isn't|aren't|don't|didn't|doesn't|yet to|nicht|pas|nie|не)\b"
    r"(?:\s+\S+){0,3}?\s+(?:decided|agreed|important|remember|use|entschieden|beschlossen|décidé|вирішили|решили)\b",
    re.IGNORECASE,
)
"""Statements that something is not decided."""
_SENTENCE = re.compile(r"[^\n。！？]*?(?:[.!?]+(?=\s|$)|[。！？]+|(?=\n)|$)")
_LONG_ENOUGH, _MOST = 100, 500
_MOST_INSIGHTS = 50
_SPEAKERS = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    role: str
    text: str


def consolidate(
    memory: Memory, session: str, transcript: Sequence[TranscriptMessage] | None = None, *, model: Model | None = None
) -> AppliedFindings:
    """Store the decisions of a session. Without a transcript, the stored messages of the session are read."""
    if paused := refusal_if_paused(memory.mode, memory.config):
        return AppliedFindings.of([paused])
    memory = in_chat_of(memory, session)
    said = transcript if transcript is not None else _stored_messages(memory, session)
    source = source_of("session", session)
    texts = _insights_by_model(model, memory, session, said)
    if texts is None:
        known = [fold(fact.content) for fact in memory.read(kind="fact") if len(fact.content.split()) > 1]
        # what the assistant quoted from memory is not learned again
        texts = [text for text in insights(said) if not any(fact in fold(text) for fact in known)]
    findings = [Finding(content=text, kind="insight", source=source, excerpt=text) for text in texts]
    with memory.acting("agent:consolidate", session=session).batch() as open_memory:
        return apply_findings(open_memory, findings)


def insights(transcript: Sequence[TranscriptMessage]) -> list[str]:
    """Return the sentences about a decision, and the last long answer as a summary."""
    found: dict[str, str] = {}
    answer = ""
    for message in transcript:
        text = without_memory(message.text)
        if message.role not in _SPEAKERS or looks_like_instruction(text):
            continue
        for sentence in _SENTENCE.findall(text):
            said = " ".join(sentence.split())
            decided = _DECIDED.search(said) and not _OPEN.search(said)
            if decided and not said.endswith(("?", "？")) and len(said.split()) >= 3:
                found.setdefault(fold(said), said[:_MOST])
        if message.role == "assistant" and len(text) > _LONG_ENOUGH:
            answer = " ".join(text.split())
    if answer:
        found.setdefault(fold(answer), answer[:_MOST])
    return list(found.values())[-_MOST_INSIGHTS:]


def _insights_by_model(
    model: Model | None, memory: Memory, session: str, said: Sequence[TranscriptMessage]
) -> list[str] | None:
    """Return what a model finds in the end of the session; None if there is no model, or it failed."""
    told = "\n".join(f"{one.role}: {without_memory(one.text)}" for one in said if one.role in _SPEAKERS)
    found = observe(model, memory, session, "SESSION", told[-LONGEST:])
    return None if found is None else [*found.findings, *found.insights, *found.lessons]


def _stored_messages(memory: Memory, session: str) -> list[TranscriptMessage]:
    messages = memory.read(kind="message", session=session)
    return [TranscriptMessage(one.role, one.content) for one in messages if isinstance(one, Message) and one.trusted]
