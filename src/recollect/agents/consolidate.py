"""What a working session decided: the sentences that say so, and how it ended.

By words alone, in a few languages. What is stored are insights with the session as their source, each once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from recollect.agents.keeping import Finding, Kept, keep
from recollect.core.memory import Memory
from recollect.records import Message
from recollect.text import fold

_DECIDED = re.compile(
    r"\b(decided|conclusion|important|remember|note that|key insight|learned that|will use|should use|agreed"
    r"|entschieden|beschlossen|wichtig|décidé|conclu|important|decidido|acordado|вирішили|домовились|важливо"
    r"|решили|договорились|важно|zdecydowaliśmy|ustalono)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_LONG_ENOUGH, _MOST = 100, 500
_MOST_INSIGHTS = 50


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a transcript."""

    role: str
    text: str


def consolidate(memory: Memory, session: str, transcript: Sequence[Said] | None = None) -> Kept:
    """Keep what a session decided. Without a transcript, the stored messages of the session are read."""
    said = transcript if transcript is not None else _stored(memory, session)
    source = f"session:{session}"
    known = {fold(one.content) for one in memory.read(kind="observation", source=source)}
    findings = []
    for text in insights(said):
        if fold(text) not in known:
            known.add(fold(text))
            findings.append(Finding(content=text, kind="insight", source=source, excerpt=text))
    with memory.acting("agent:consolidate", session=session).batch() as open_memory:
        return keep(open_memory, findings)


def insights(transcript: Sequence[Said]) -> list[str]:
    """The sentences that tell of a decision, and the last long answer as a summary."""
    found: dict[str, str] = {}
    for message in transcript:
        for sentence in _SENTENCE.findall(message.text):
            said = " ".join(sentence.split())
            if _DECIDED.search(said) and not said.endswith("?") and len(said.split()) >= 3:
                found.setdefault(fold(said), said[:_MOST])
    answers = [one.text for one in transcript if one.role == "assistant" and len(one.text) > _LONG_ENOUGH]
    if answers:
        said = " ".join(answers[-1].split())
        found.setdefault(fold(said), said[:_MOST])
    return list(found.values())[-_MOST_INSIGHTS:]


def _stored(memory: Memory, session: str) -> list[Said]:
    messages = memory.read(kind="message", session=session)
    return [Said(one.role, one.content) for one in messages if isinstance(one, Message) and one.trusted]
