"""Explicit capture: the person says "remember that …", and it is kept at once and confirmed.

By rules: what counts as asking to remember is in their tables, in many languages. Knows no channel; a chat hands
over each message of the person before it is answered.
"""

from __future__ import annotations

from dataclasses import dataclass

from recollect.agents.keeping import Finding, Kept, keep
from recollect.agents.rules import Learned, explicit, learn
from recollect.core.memory import Memory
from recollect.records import Duplicate, Refused

CONFIRMED = "Got it, I'll remember that."
NOTED = "Got it, I've noted that for today."
KNOWN = "I know that already."
_BACK = "What should I remember? Tell me in a sentence."


@dataclass(frozen=True, slots=True)
class Captured:
    """What came of a request to remember something; ``reply`` is what to tell the person."""

    reply: str
    kept: Kept


def capture(
    memory: Memory,
    text: str,
    *,
    before: str | None = None,
    session: str | None = None,
    message: str | None = None,
    source: str = "explicit",
) -> Captured | None:
    """Keep what a message asks to remember; None if it asks for nothing.

    ``before`` is what was said before, which "remember this" is about; ``message`` is the id of the stored message.
    """
    asked = explicit(text)
    if asked is None:
        return None
    if asked.refers_back:
        said = (before or "").strip()
        if not said:
            return Captured(_BACK, Kept())
        findings = [finding_of(one.told(), source, message) for one in learn(said)] or [
            Finding(content=said, source=source, excerpt=said[:500], told=True, messages=(message,) if message else ())
        ]
    else:
        findings = [finding_of(one, source, message) for one in learn(text) if one.explicit]
        if not findings:  # the rules would not have it as a fact, a secret for one: let the policy say why
            findings = [
                Finding(
                    content=asked.content or text,
                    category="key_fact",
                    source=source,
                    excerpt=text[:500],
                    durable=asked.durable,
                    told=True,
                    messages=(message,) if message else (),
                )
            ]
    with memory.acting("agent:capture", session=session).batch() as open_memory:
        kept = keep(open_memory, findings)
        if kept.written or kept.updated:
            open_memory.jot(f'User said: "{_one_line(text)}"', section="Explicit Memories", source=source)
    return Captured(_reply(kept, durable=all(finding.durable for finding in findings)), kept)


def finding_of(learned: Learned, source: str, message: str | None = None) -> Finding:
    """What the rules learned, as something to keep."""
    return Finding(
        content=learned.content,
        key=learned.fact_key,
        category=learned.category,
        type=learned.type,
        action=learned.action,
        confidence=learned.confidence,
        source=source,
        excerpt=learned.excerpt,
        messages=(message,) if message else (),
        durable=learned.durable,
        kind=learned.kind,
        told=learned.explicit,
        previous=learned.previous,
    )


def _reply(kept: Kept, *, durable: bool) -> str:
    if kept.changed:
        return CONFIRMED if durable and not kept.demoted else NOTED
    refused = next((outcome for outcome in kept.outcomes if isinstance(outcome, Refused)), None)
    if refused is not None:
        return refused.message
    if any(isinstance(outcome, Duplicate) for outcome in kept.outcomes):
        return KNOWN
    return kept.outcomes[0].message if kept.outcomes else KNOWN


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:297] + "…"
