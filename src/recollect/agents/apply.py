"""Storing what agents learned: the one way from findings into the memory.

Rules and models both produce `Finding` values. The policy of the memory decides whether and where each is stored, and
its outcomes say so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from typing import Literal

from recollect.errors import InvalidInputError, NotFoundError
from recollect.memory.memory import Memory
from recollect.policy.duplicates.comparison import Relation, Statement, relation
from recollect.policy.retention import daily_expiry
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
from recollect.text import fold, terms

_LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)
"""The start of a value of which is only known that it no longer holds."""
_LONGEST_SOURCE = 200
_LONGEST_NOTE = 300
_AND = frozenset("and or & / und oder et ou y o та і й и или або i oraz lub".split())

Action = Literal["add", "update", "remove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to store, change or remove. ``previous`` is the value that it replaces, if that was said."""

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
    """True if the person explicitly asked for it."""
    trusted: bool = True
    previous: str | None = None
    ends: tuple[str, ...] = ()
    """Lines that memory may hold and that contradict it, or no longer hold if it is to be removed."""
    several: bool = False
    """True if a person may have several of these: another value of the key is kept beside the known one."""
    corrects: bool = False
    """True if it clearly says that something known has changed."""
    replaces: bool = True
    """False if another value of the key is to be reported as a conflict, not replaced."""
    said_at: datetime | None = None
    """When it was said, if not now. What was said later wins."""
    chat: str | None = None
    """The chat it was said in: it is compared with what is known there, and stored there."""

    @property
    def origin(self) -> str:
        """The message it comes from, or else its source."""
        return self.messages[0] if self.messages else self.source


@dataclass(slots=True)
class AppliedFindings:
    """The outcomes of findings, counted as an extraction run reports them."""

    written: int = 0
    updated: int = 0
    removed: int = 0
    demoted: int = 0
    known: int = 0
    refused: int = 0
    outcomes: list[Outcome] = field(default_factory=list)

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> AppliedFindings:
        kept = cls()
        for outcome in outcomes:
            kept.add(outcome)
        return kept

    @property
    def changed(self) -> int:
        """The number of things that memory now holds differently."""
        return self.written + self.updated + self.removed + self.demoted

    def add(self, outcome: Outcome) -> None:
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


def apply_findings(memory: Memory, findings: Iterable[Finding]) -> AppliedFindings:
    """Store what can be stored. An error in one finding does not lose the others."""
    kept = AppliedFindings()
    for finding in findings:
        try:
            trusted = None if finding.trusted else False
            kept.add(_apply_finding(memory.acting(chat=finding.chat, trusted=trusted), finding))
        except InvalidInputError as error:
            kept.add(Refused(reason="invalid", message=f"Not stored: {error}"))
        except NotFoundError as error:
            kept.add(Refused(reason="unknown", message=f"Not changed: {error}"))
    return kept


def source_of(origin: str, name: str) -> str:
    """Return a source such as ``discussion:chat-7``, on one line and short enough to be stored."""
    return f"{origin}:{' '.join(name.split())}"[:_LONGEST_SOURCE]


def _apply_finding(memory: Memory, finding: Finding) -> Outcome:
    if finding.kind == "insight":
        return _store_insight(memory, finding)
    sure = finding.trusted and finding.confidence >= memory.config.confidence_threshold
    if finding.action == "remove":
        if not sure:
            return Refused(reason="unsure", message="Not changed: it is not certain that this no longer holds.")
        return _forget_matching(memory, finding)
    if forgotten := _find_withdrawn(memory, finding):
        return Duplicate(message="This was forgotten after it was said; it stays forgotten.", record=forgotten)
    if not (sure and finding.durable):
        return _store_daily(memory, finding)
    outcome = _store_finding(memory, finding)
    if finding.ends and isinstance(outcome, Written | Updated | Duplicate):
        for record in _facts_ended(memory, finding):
            if record.id != outcome.record.id and _may_end(finding, record):
                memory.forget(record.id, reason=_ending_text(finding), replaced_by=outcome.record.id)
    return outcome


def _store_finding(memory: Memory, finding: Finding) -> Outcome:
    before: Outcome | None = None
    if finding.previous and finding.key and fold(finding.previous) != fold(finding.content):
        before = _remember_finding(memory, replace(finding, said_at=_LONG_AGO), finding.previous)
        if isinstance(before, Written) and (message := _supporting_message(memory, finding)):
            # it was not known: a record of its own for the time before, which ended with this message
            memory.forget(before.record.id, reason=_ending_text(finding), replaced_by=message)
    outcome = _remember_finding(memory, finding, finding.content)
    if isinstance(outcome, Refused) and isinstance(before, Written) and memory.get(before.record.id).status == "active":
        memory.forget(before.record.id, reason="its successor could not be stored")
    if not isinstance(outcome, Conflict):
        return outcome
    if finding.several and finding.action == "add":
        return _remember_finding(memory, replace(finding, key=None), _value_with_key(finding))
    if not finding.replaces or not _may_replace(finding, outcome.record):
        return outcome
    if not finding.corrects and set(terms(finding.content)) < set(terms(outcome.record.content)):
        return Duplicate(message=f"Already known: {outcome.record.text}", record=outcome.record)  # and it says more
    return memory.update(
        outcome.record.id,
        finding.content,
        confidence=finding.confidence,
        source=finding.source,
        excerpt=finding.excerpt,
        messages=finding.messages,
        reason="update",
        note=f"said differently than before ({finding.source})"[:_LONGEST_NOTE],
        valid_from=finding.said_at,
    )


def _remember_finding(memory: Memory, finding: Finding, content: str, *, durable: bool = True) -> Outcome:
    return memory.remember(
        content,
        key=finding.key,
        category=finding.category,
        type=finding.type,
        durability="durable" if durable else "daily",
        confidence=finding.confidence,
        source=finding.source,
        excerpt=finding.excerpt,
        messages=finding.messages,
        valid_from=finding.said_at,
        day=_note_day(memory, finding),
    )


def _note_day(memory: Memory, finding: Finding) -> date | None:
    """Return the day whose note it would go to: when it was said, unless that note is no longer kept; else today's."""
    if finding.said_at is None:
        return None
    day, now = finding.said_at.date(), memory.clock()
    is_kept = daily_expiry(day, memory.config.daily_retention_days) > now
    return day if is_kept and day <= now.date() else None


def _value_with_key(finding: Finding) -> str:
    """Return a value without its key, which another has: "Chess" alone would not say what it is."""
    return finding.content if len(finding.content.split()) > 2 else f"{finding.content} ({finding.key})"


def _store_insight(memory: Memory, finding: Finding) -> Outcome:
    """Store an insight, once per source."""
    for known in memory.read(kind="observation", source=finding.source):
        if fold(known.content) == fold(finding.content):
            return Duplicate(message=f"Already known: {known.text}", record=known)
    return memory.observe(
        finding.content,
        "insight",
        source=finding.source,
        confidence=finding.confidence,
        excerpt=finding.excerpt,
        messages=finding.messages,
        said_at=finding.said_at,
    )


def _store_daily(memory: Memory, finding: Finding) -> Outcome:
    """Add a finding to the daily note, because it is uncertain or short-lived; once for the same messages."""
    said = fold(finding.content)
    known = memory.read(kind="daily", source=None if finding.messages else finding.source)
    for entry in known:
        text = fold(entry.content)
        if entry.messages == finding.messages and (text == said or text.endswith(f": {said}")):
            return Duplicate(message=f"Already noted: {entry.text}", record=entry)
    # an unverified statement is not a fact, however certain it is said to be
    return _remember_finding(memory, finding, finding.content, durable=finding.durable and finding.trusted)


def _may_replace(finding: Finding, known: Record) -> bool:
    """Return True if a later statement may replace a known one; the person's own edits only for a clear correction."""
    if finding.said_at is not None and finding.said_at < known.valid_from:
        return False  # what is known was said later
    by_hand = known.source == USER_EDIT or known.pinned
    return finding.told or finding.corrects or not by_hand


def _find_withdrawn(memory: Memory, finding: Finding) -> Record | None:
    """Return the fact that says the same and was forgotten, or undone, after this was said."""
    if finding.said_at is None:  # said just now: asking again means wanting it
        return None
    said = Statement.of(finding.content, finding.key)
    for record in memory.read(kind="fact", status="all", key=finding.key):
        later = record.status != "active" and _ended_at(memory, record) > finding.said_at
        if later and relation(said, Statement.of(record.content, record.key)) is Relation.SAME:
            return record
    return None


def _ended_at(memory: Memory, record: Record) -> datetime:
    """Return when the successor of a record was said, or else when it was forgotten."""
    try:
        return memory.get(record.superseded_by).valid_from if record.superseded_by else record.updated_at
    except NotFoundError:
        return record.updated_at


def _forget_matching(memory: Memory, finding: Finding) -> Outcome:
    """Forget what has the key and the value or, without a key, what says the same."""
    facts = memory.read(kind="fact", key=finding.key)
    found = [fact for fact in facts if _is_meant(finding, fact)]
    ended = _facts_ended(memory, finding)
    if not ended and (not found or (finding.key is None and len(found) > 1)):
        raise NotFoundError(f"nothing is known under {finding.key or 'these words'}")
    first, *others = {one.id: one for one in (*ended, *(found if finding.key or len(found) == 1 else ()))}.values()
    for other in others:
        if _may_end(finding, other):
            memory.forget(other.id, reason=_ending_text(finding), replaced_by=_supporting_message(memory, finding))
    return _forget_record(memory, finding, first)


def _forget_record(memory: Memory, finding: Finding, record: Record) -> Outcome:
    if finding.said_at is not None and finding.said_at < record.valid_from:
        return Duplicate(message="What is known was said later, so it stays.", record=record)
    if (record.source == USER_EDIT or record.pinned) and not finding.told:
        return Duplicate(message="The person wrote this themselves, so it stays.", record=record)
    return memory.forget(record.id, reason=_ending_text(finding), replaced_by=_supporting_message(memory, finding))


def _ending_text(finding: Finding) -> str:
    return f"no longer so ({finding.source})"[:_LONGEST_NOTE]


def _supporting_message(memory: Memory, finding: Finding) -> str | None:
    """Return the message that says so: it replaces what ended, which stays known for the time before."""
    try:
        return memory.get(finding.messages[0]).id if finding.messages else None
    except NotFoundError:
        return None


def _may_end(finding: Finding, record: Record) -> bool:
    """Return False for what was said later, and for the person's own edits unless they ask for it."""
    later = finding.said_at is not None and finding.said_at < record.valid_from
    return not later and (finding.told or not (record.source == USER_EDIT or record.pinned))


def _facts_ended(memory: Memory, finding: Finding) -> list[Record]:
    return [fact for fact in memory.read(kind="fact") if _is_ended(finding, fact)] if finding.ends else []


def _is_ended(finding: Finding, fact: Record) -> bool:
    known = fact.content.casefold()
    for line in finding.ends:
        said = line.casefold()
        if said.rpartition(" ")[2][:4] not in known:
            continue  # cheap, and true of nearly all
        if said == fact.text.casefold():
            return True
        if relation(Statement.of(line), Statement.of(fact.content)) is Relation.SAME:
            return True
        rest = known.removeprefix(f"{said} ")
        if finding.action == "remove" and " " in said and rest != known:
            return rest.partition(" ")[0] not in _AND  # "Plays tennis every Sunday"
    return False


def _is_meant(finding: Finding, fact: Record) -> bool:
    """Return True if a fact is what no longer holds. "I left Stripe" says nothing about working at Google."""
    said, known = fold(finding.content).strip(), fold(fact.content)
    if finding.key is not None and (not said or f" {said} " in f" {known} " or f" {known} " in f" {said} "):
        return True
    if not said:
        return False
    if relation(Statement.of(finding.content, finding.key), Statement.of(fact.content, fact.key)) is Relation.SAME:
        return True
    words = set(terms(finding.content))
    return len(words) > 1 and words <= set(terms(fact.text))
