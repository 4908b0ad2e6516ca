"""From what was learned to what is kept: one way into the memory for everything that agents find out.

Rules and models alike hand over `Finding` values; whether and where each is stored is decided by the policy of the
memory, and told by its outcomes. Knows nothing about where findings come from.
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
"""Since when a value held of which is only known that it no longer does."""
_LONGEST_SOURCE = 200
_LONGEST_NOTE = 300
_AND = frozenset("and or & / und oder et ou y o та і й и или або i oraz lub".split())

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
    ends: tuple[str, ...] = ()
    """Lines that memory may hold and that are not true beside it, or no longer if it is to be dropped."""
    several: bool = False
    """Whether a person may have several of these: another value of the key stands beside the known one."""
    corrects: bool = False
    """Whether it plainly says that something known is otherwise by now."""
    said_at: datetime | None = None
    """When it was said, if that is not now. What was said later stands."""
    chat: str | None = None
    """The chat it was said in, if that has a wall: it is compared with what is known there, and kept there."""

    @property
    def origin(self) -> str:
        """The message it comes from, or else its source."""
        return self.messages[0] if self.messages else self.source


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

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Kept:
        """Outcomes, counted."""
        kept = cls()
        for outcome in outcomes:
            kept.add(outcome)
        return kept

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
            trusted = None if finding.trusted else False
            kept.add(_kept(memory.acting(chat=finding.chat, trusted=trusted), finding))
        except InvalidInputError as error:
            kept.add(Refused(reason="invalid", message=f"Not stored: {error}"))
        except NotFoundError as error:
            kept.add(Refused(reason="unknown", message=f"Not changed: {error}"))
    return kept


def source_of(origin: str, name: str) -> str:
    """Where something comes from, such as ``discussion:chat-7``, on one line and not too long to be stored."""
    return f"{origin}:{' '.join(name.split())}"[:_LONGEST_SOURCE]


def _kept(memory: Memory, finding: Finding) -> Outcome:
    if finding.kind == "insight":
        return _observed(memory, finding)
    sure = finding.trusted and finding.confidence >= memory.config.confidence_threshold
    if finding.action == "remove":
        if not sure:
            return Refused(reason="unsure", message="Not changed: it is not sure that this no longer holds.")
        return _removed(memory, finding)
    if not (sure and finding.durable):
        return _noted(memory, finding)
    if forgotten := _taken_back(memory, finding):
        return Duplicate(message="This was forgotten since it was said; it stays so.", record=forgotten)
    outcome = _stored(memory, finding)
    if finding.ends and isinstance(outcome, Written | Updated | Duplicate):
        for record in _ended(memory, finding):
            if record.id != outcome.record.id and _may_end(finding, record):
                memory.forget(record.id, reason=_no_longer(finding), replaced_by=outcome.record.id)
    return outcome


def _stored(memory: Memory, finding: Finding) -> Outcome:
    before: Outcome | None = None
    if finding.previous and finding.key and fold(finding.previous) != fold(finding.content):
        before = _remembered(memory, replace(finding, said_at=_LONG_AGO), finding.previous)
    outcome = _remembered(memory, finding, finding.content)
    if isinstance(outcome, Refused) and isinstance(before, Written):
        memory.forget(before.record.id, reason="what came after it could not be stored")
    if not isinstance(outcome, Conflict):
        return outcome
    if finding.several and finding.action == "add":
        return _remembered(memory, replace(finding, key=None), _beside(finding))
    if not _may_replace(finding, outcome.record):
        return outcome
    return memory.update(
        outcome.record.id,
        finding.content,
        confidence=finding.confidence,
        source=finding.source,
        excerpt=finding.excerpt,
        messages=finding.messages,
        reason="update",
        note=f"said otherwise than before ({finding.source})"[:_LONGEST_NOTE],
        valid_from=finding.said_at,
    )


def _remembered(memory: Memory, finding: Finding, content: str, *, durable: bool = True) -> Outcome:
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


def _beside(finding: Finding) -> str:
    """A value without its key, which another has: "Chess" alone would not say what it is."""
    return finding.content if len(finding.content.split()) > 2 else f"{finding.content} ({finding.key})"


def _observed(memory: Memory, finding: Finding) -> Outcome:
    """An insight; one and the same is told once by each source."""
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


def _noted(memory: Memory, finding: Finding) -> Outcome:
    """For the daily note: not sure enough, or not for long. From the same messages it is noted once."""
    said = fold(finding.content)
    for entry in memory.read(kind="daily", source=finding.source):
        text = fold(entry.content)
        if entry.messages == finding.messages and (text == said or text.endswith(f": {said}")):
            return Duplicate(message=f"Already noted: {entry.text}", record=entry)
    # what nobody vouches for is no fact, however sure it is said to be
    return _remembered(memory, finding, finding.content, durable=finding.durable and finding.trusted)


def _may_replace(finding: Finding, known: Record) -> bool:
    """A later word replaces an earlier one; what the person wrote into the file, only if it is a clear correction."""
    if finding.said_at is not None and finding.said_at < known.valid_from:
        return False  # what is known was said later
    by_hand = known.source == USER_EDIT or known.pinned
    return finding.told or finding.corrects or not by_hand


def _taken_back(memory: Memory, finding: Finding) -> Record | None:
    """The fact that says the same and was forgotten, or undone, after this was said."""
    if finding.said_at is None:  # said just now: whoever asks for it again wants it
        return None
    said = Statement.of(finding.content, finding.key)
    for record in memory.read(kind="fact", status="all", key=finding.key):
        later = record.status != "active" and _over_since(memory, record) > finding.said_at
        if later and relation(said, Statement.of(record.content, record.key)) is Relation.SAME:
            return record
    return None


def _over_since(memory: Memory, record: Record) -> datetime:
    """When what took the place of a record was said; or else when it was forgotten."""
    try:
        return memory.get(record.superseded_by).valid_from if record.superseded_by else record.updated_at
    except NotFoundError:
        return record.updated_at


def _removed(memory: Memory, finding: Finding) -> Outcome:
    """Forget what has the key and the value; or, without a key, what says the same."""
    facts = memory.read(kind="fact", key=finding.key)
    found = [fact for fact in facts if _is_meant(finding, fact)]
    ended = _ended(memory, finding)
    if not ended and (not found or (finding.key is None and len(found) > 1)):
        raise NotFoundError(f"nothing is known under {finding.key or 'these words'}")
    first, *others = {one.id: one for one in (*ended, *(found if finding.key or len(found) == 1 else ()))}.values()
    for other in others:
        if _may_end(finding, other):
            memory.forget(other.id, reason=_no_longer(finding), replaced_by=_witness(memory, finding))
    return _dropped(memory, finding, first)


def _dropped(memory: Memory, finding: Finding, record: Record) -> Outcome:
    if finding.said_at is not None and finding.said_at < record.valid_from:
        return Duplicate(message="What is known was said later; it stays.", record=record)
    if (record.source == USER_EDIT or record.pinned) and not finding.told:
        return Duplicate(message="The person wrote this themselves; it stays.", record=record)
    return memory.forget(record.id, reason=_no_longer(finding), replaced_by=_witness(memory, finding))


def _no_longer(finding: Finding) -> str:
    return f"no longer so ({finding.source})"[:_LONGEST_NOTE]


def _witness(memory: Memory, finding: Finding) -> str | None:
    """The message that says so: it takes the place of what ended, which stays known for the time before."""
    try:
        return memory.get(finding.messages[0]).id if finding.messages else None
    except NotFoundError:
        return None


def _may_end(finding: Finding, record: Record) -> bool:
    """Not what was said later, and not what the person wrote themselves, unless they ask for it."""
    later = finding.said_at is not None and finding.said_at < record.valid_from
    return not later and (finding.told or not (record.source == USER_EDIT or record.pinned))


def _ended(memory: Memory, finding: Finding) -> list[Record]:
    """The facts that a finding ends."""
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
    """Whether a fact is what no longer holds. "I left Stripe" says nothing about who works at Google by now."""
    said, known = fold(finding.content).strip(), fold(fact.content)
    if finding.key is not None and (not said or f" {said} " in f" {known} " or f" {known} " in f" {said} "):
        return True
    if not said:
        return False
    if relation(Statement.of(finding.content, finding.key), Statement.of(fact.content, fact.key)) is Relation.SAME:
        return True
    words = set(terms(finding.content))
    return len(words) > 1 and words <= set(terms(fact.text))
