"""From what was learned to what is kept: one way into the memory for everything that agents find out.

Rules and models alike hand over `Finding` values; whether and where each is stored is decided by the policy of the
memory, and told by its outcomes. Knows nothing about where findings come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from recollect.core.memory import Memory
from recollect.errors import InvalidInputError, NotFoundError
from recollect.records import (
    USER_EDIT,
    Conflict,
    Demoted,
    Duplicate,
    Forgotten,
    Outcome,
    Record,
    Refused,
    Updated,
    Written,
)

Action = Literal["add", "update", "remove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to keep, change or drop. ``previous`` is the value that it replaces, if that was said."""

    content: str
    key: str | None = None
    category: str | None = None
    type: str | None = None
    action: Action = "add"
    confidence: float = 1.0
    source: str = "batch_extraction"
    excerpt: str | None = None
    messages: tuple[str, ...] = ()
    durable: bool = True
    kind: Literal["fact", "insight"] = "fact"
    told: bool = False
    """Whether the person asked for it in so many words."""
    trusted: bool = True
    previous: str | None = None


@dataclass(slots=True)
class Kept:
    """What became of findings, counted as the run of an extraction tells it."""

    written: int = 0
    updated: int = 0
    removed: int = 0
    demoted: int = 0
    known: int = 0
    refused: int = 0
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def changed(self) -> int:
        """How many things memory holds otherwise than before."""
        return self.written + self.updated + self.removed + self.demoted

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.outcomes.append(outcome)
        match outcome:
            case Written():
                self.written += 1
            case Updated():
                self.updated += 1
            case Forgotten():
                self.removed += 1
            case Demoted():
                self.demoted += 1
            case Refused():
                self.refused += 1
            case _:
                self.known += 1


def keep(memory: Memory, findings: Iterable[Finding]) -> Kept:
    """Keep what can be kept. What is wrong with one finding is no reason to lose the others."""
    kept = Kept()
    for finding in findings:
        try:
            kept.add(_kept(memory if finding.trusted else memory.acting(trusted=False), finding))
        except InvalidInputError as error:
            kept.add(Refused(reason="invalid", message=f"Not stored: {error}"))
        except NotFoundError as error:
            kept.add(Refused(reason="unknown", message=f"Not changed: {error}"))
    return kept


def _kept(memory: Memory, finding: Finding) -> Outcome:
    if finding.kind == "insight":
        return memory.observe(finding.content, "insight", source=finding.source, confidence=finding.confidence)
    if finding.action == "remove":
        return _removed(memory, finding)
    if finding.previous and finding.key and finding.durable:
        _remembered(memory, finding, finding.previous)
    outcome = _remembered(memory, finding, finding.content)
    if not isinstance(outcome, Conflict):
        return outcome
    if not _may_replace(finding, outcome.record):
        return outcome
    return memory.update(
        outcome.record.id,
        finding.content,
        confidence=finding.confidence,
        source=finding.source,
        excerpt=finding.excerpt,
        reason="update",
        note=f"said otherwise than before ({finding.source})",
    )


def _remembered(memory: Memory, finding: Finding, content: str) -> Outcome:
    return memory.remember(
        content,
        key=finding.key,
        category=finding.category,
        type=finding.type,
        durability="durable" if finding.durable else "daily",
        confidence=finding.confidence,
        source=finding.source,
        excerpt=finding.excerpt,
        messages=finding.messages,
    )


def _may_replace(finding: Finding, known: Record) -> bool:
    """A later word replaces an earlier one; what the person wrote into the file, only if it is a clear correction."""
    by_hand = known.source == USER_EDIT or known.pinned
    return finding.told or finding.action == "update" or finding.previous is not None or not by_hand


def _removed(memory: Memory, finding: Finding) -> Outcome:
    """Forget what has the key; or, without one, what says the same."""
    found: Sequence[Record] = memory.read(kind="fact", key=finding.key) if finding.key else []
    if finding.content and not finding.key:
        found = [hit.record for hit in memory.search(finding.content, kinds=("fact", "note"), limit=1, min_score=0.5)]
    if not found:
        raise NotFoundError(f"nothing is known under {finding.key or 'these words'}")
    if any(record.source == USER_EDIT or record.pinned for record in found) and not finding.told:
        return Duplicate(message="The person wrote this themselves; it stays.", record=found[0])
    return memory.forget(found[0].id, reason=f"no longer so ({finding.source})")
