"""The block of memory that goes into a prompt: who the person is, what is known of the topic, what happened lately.

    ## User Memory

    ### Core Profile
    - Role: Senior engineer

    ### Relevant Past Context
    - 2026-05-03 (note): The Kubernetes migration is planned for May

    ### Recent Activity
    - 2026-11-14: Read 6 posts on databases

The core comes first and depends only on the stored facts and the budget, not on the topic, the time or earlier
searches. So a prompt begins with the same bytes from turn to turn, and prompt caches keep working. For the same reason
its share is settled before the other sections are considered.

Tokens are counted line by line, which is exact because `tokens.count` is (see there).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta, timezone
from typing import Final, NamedTuple

from recollect.document.memory_md import SECTIONS, label_of
from recollect.memory.references import reports_change
from recollect.memory.search import MEMORY_KINDS, QueryVector, search_records
from recollect.memory.user_memory import UserMemory
from recollect.policy.injection import neutral
from recollect.policy.retention import value
from recollect.records import DailyEntry, Fact, Hit, Message, Note, Record
from recollect.search.filters import Filter
from recollect.search.passages import indexed_text
from recollect.search.tokens import count
from recollect.store.contract import Query, Reader
from recollect.text import fold

RECENT_DAYS: Final = 7
MOST_RELEVANT: Final = 10

_TITLE: Final = "## User Memory\n"
_ORDER: Final = {category: number for number, category in enumerate(SECTIONS)}

_CORE_SHARE = 0.5  # of the budget at most, unless all of the core fits along with the rest
_USUAL_ENTRY = 60  # tokens reserved for each other memory when the core takes more than its share
_RELEVANT_SHARE = 2 / 3  # of what the core leaves, while there is recent activity
_SPARE = 20  # hits fetched beyond those shown, because the core may already show some of them
_LEAST_ENTRY = 12  # tokens: the length of a date alone
_LONGEST_TOKEN = 16  # characters

_WORDS_FLOOR = 0.2
_MANY_WORDS = 1.5
_SCORE_FLOOR = 1 / 3
_NEAR = 0.5
_MOST_NEAR = 5
_CLOSE = 0.8


class _ContextLine(NamedTuple):
    record_id: str
    said: str
    """Its text, folded, so that it is shown only once."""
    line: str
    cost: int


@dataclass(slots=True)
class _ContextSection:
    """A section of the block: its possible entries, in the order shown, and those chosen."""

    heading: str
    entries: Sequence[_ContextLine]
    chosen: set[int] = field(default_factory=set)

    def take(self, room: int, shown: set[str], order: Iterable[int] | None = None) -> int:
        """Choose unshown entries that fit into ``room`` tokens, in this order; return the tokens left."""
        for number in range(len(self.entries)) if order is None else order:
            entry = self.entries[number]
            cost = entry.cost + (0 if self.chosen else _cost(self.head))
            if cost <= room and entry.record_id not in shown and entry.said not in shown:
                room -= cost
                self.chosen.add(number)
                shown |= {entry.record_id, entry.said}
        return room

    @property
    def head(self) -> str:
        return f"\n### {self.heading}\n"

    def text(self) -> str:
        """Return the section, or an empty string if no entry was chosen."""
        lines = [self.entries[number].line for number in sorted(self.chosen)]
        return self.head + "".join(lines) if lines else ""


def build_context(
    memory: UserMemory,
    reader: Reader,
    topic: str,
    budget: int,
    *,
    now: datetime | None = None,
    conversation: bool = False,
    asked: QueryVector | None = None,
    within: int | None = None,
) -> str:
    """Return the block for a topic in at most ``budget`` tokens; empty if there is nothing to show or no room.

    If the reader is an open write, ``within`` is its current sequence number.
    """
    if reader.state().mode == "incognito":
        return ""
    shown: set[str] = set()
    kinds = (*MEMORY_KINDS, "message") if conversation else MEMORY_KINDS
    room = budget - count(_TITLE)
    core, left = _core(memory, reader, kinds, budget, room, shown)
    moment = now or memory.clock()
    recent = _ContextSection("Recent Activity", _recent(reader, moment.date(), memory.clock(), left, len(shown)))
    relevant = _ContextSection("Relevant Past Context", ())
    if topic.strip() and left > 0:
        where = Filter(kinds=kinds, alive_at=memory.clock())
        most = MOST_RELEVANT + min(len(shown), _SPARE)
        hits = search_records(memory, reader, topic, where, most, asked=asked, now=now, within=within)
        found = _above_floor(hits, *_called_for(memory, reader, topic, moment, within))
        fitting = (_hit_line(hit) for hit in found if _may_fit(hit.passage, left))
        new = [entry for entry in fitting if entry.record_id not in shown and entry.said not in shown]
        relevant = _ContextSection(relevant.heading, new[:MOST_RELEVANT])
    share = int(left * _RELEVANT_SHARE) if recent.entries else left
    left -= share - relevant.take(share, shown)
    left = recent.take(left, shown)
    relevant.take(left, shown)
    parts = core.text() + relevant.text() + recent.text()
    return _TITLE + parts if parts else ""


# the core


def _core(
    memory: UserMemory, reader: Reader, kinds: Sequence[str], budget: int, room: int, shown: set[str]
) -> tuple[_ContextSection, int]:
    """Return the facts that MEMORY.md shows and the tokens left. Nothing here may change merely because time passes.

    All facts are included if they take no more than their share or leave enough room for everything else that is
    remembered. Otherwise the most valuable ones that fit their share are.
    """
    query = Query(kinds=("fact",), tier="file", alive_at=memory.clock())
    facts = sorted(
        (fact for fact in reader.find(query) if isinstance(fact, Fact)),
        key=lambda fact: (_ORDER.get(fact.category or "", len(_ORDER)), fact.created_at, fact.id),
    )
    core = _ContextSection("Core Profile", [_context_line(fact, _line_text(fact)) for fact in facts])
    whole = _cost(core.head) + sum(entry.cost for entry in core.entries)
    share = min(room, int(budget * _CORE_SHARE))
    if whole > share:
        others = sum(n for (kind, status), n in reader.count().items() if status == "active" and kind in kinds)
        if whole + _USUAL_ENTRY * (others - len(facts)) <= room:
            share = room
    return core, room - share + core.take(share, shown, sorted(range(len(facts)), key=lambda n: _fact_order(facts[n])))


def _fact_order(fact: Fact) -> tuple[object, ...]:
    """Return a sort key, most valuable first, as if just used, so that the order is stable from day to day."""
    category = _ORDER.get(fact.category or "", len(_ORDER))
    return not fact.pinned, -value(fact, fact.updated_at, None), category, -fact.updated_at.timestamp(), fact.id


# relevant memories


def _called_for(
    memory: UserMemory, reader: Reader, topic: str, now: datetime, within: int | None
) -> tuple[float, bool]:
    """Return the word score that a hit on this topic needs, and whether the topic has words or only names a time.

    A text of usual length with all the words would score the sum of their rarities. A fifth of that is required: one
    rare word of three, two of six. A word that no memory contains is the rarest of all, so a topic of such words
    requires much, and one common word does not suffice. Nothing matches a fifth of a long topic; there, the worth of
    one and a half of its rarest words is enough.
    """
    from recollect.search.question import Question  # here, not above: it loads NumPy

    state = reader.state()
    if within is not None:
        state = replace(state, seq=within)
    with memory.index.guard:
        index = memory.index.caught_up(reader, state, in_write=within is not None)
        question = Question.of(topic, now, index.names(), memory.config.language)
        rarity = index.idf(question.words)
    return min(_WORDS_FLOOR * sum(rarity), _MANY_WORDS * max(rarity, default=0.0)), bool(question.words)


def _above_floor(hits: Sequence[Hit], needed: float, has_words: bool) -> list[Hit]:
    """Return the hits that are about the topic rather than merely sharing something with it.

    A hit needs a third of the best hit's score, and one of these:

    - The word score that the topic requires (see `_called_for`), or half of it if the hit is from the time that the
      topic names. Neighbouring messages count as they do in search.
    - The time that the topic names, if the topic has no other words.
    - A vector close to the topic's, if only few are near. Some vectors are always nearest, even if nothing is about the
      topic, but then many are nearly as near.
    """
    nearest = max((hit.signals.get("vector", 0.0) for hit in hits), default=0.0)
    near = [hit for hit in hits if 0 < _NEAR * nearest <= hit.signals.get("vector", 0.0)]
    close = [hit for hit in near if hit.signals["vector"] >= _CLOSE * nearest] if len(near) <= _MOST_NEAR else []
    by_meaning = {hit.record.id for hit in close}
    best = max((hit.raw_score for hit in hits), default=0.0)
    kept = []
    for hit in hits:
        by_words = hit.signals.get("words", 0.0) + hit.signals.get("neighbours", 0.0)
        in_time = hit.signals.get("date", 0.0) > 0 or hit.signals.get("event", 0.0) > 0
        speaks = by_words >= (needed / 2 if in_time else needed) if has_words else in_time
        if hit.raw_score >= _SCORE_FLOOR * best and (speaks or hit.record.id in by_meaning):
            kept.append(hit)
    return kept


# recent activity


def _recent(reader: Reader, today: date, alive_at: datetime, room: int, shown: int) -> list[_ContextLine]:
    """Return the daily notes and episodes of the last days, newest first, at most as many as could fit."""
    most = max(room, 0) // _LEAST_ENTRY + shown + MOST_RELEVANT
    entries: list[_ContextLine] = []
    for back in range(min(RECENT_DAYS, today.toordinal())):
        day = today - timedelta(days=back)
        begin = datetime.combine(day, time(), timezone.utc)
        daily = Query(kinds=("daily",), key=day.isoformat(), alive_at=alive_at, newest_first=True, limit=most)
        until = begin + timedelta(days=1)
        episodes = Query(
            kinds=("episode",), said_from=begin, said_until=until, alive_at=alive_at, newest_first=True, limit=most
        )
        found = [one for one in (*reader.find(daily), *reader.find(episodes)) if not reports_change(one)]
        found.sort(key=lambda record: (record.created_at, record.id.partition("-")[2]), reverse=True)
        entries += [
            _context_line(record, record.text, day.isoformat()) for record in found if _may_fit(record.text, room)
        ]
        if len(entries) >= most:
            break
    return entries


# lines


def _hit_line(hit: Hit) -> _ContextLine:
    record = hit.record
    whole = indexed_text(record).strip()
    text = _line_text(record)
    if hit.passage and hit.passage != whole:
        before = "" if whole.startswith(hit.passage) else "… "
        after = "" if whole.endswith(hit.passage) else " …"
        text = f"{before}{hit.passage}{after}"
    return _context_line(record, text, f"{_record_day(record).isoformat()} ({_describe_kind(record)})")


def _describe_kind(record: Record) -> str:
    if isinstance(record, Message):
        return f"conversation, {neutral(record.speaker or record.role)}"
    if record.kind == "observation":
        return record.category or record.kind
    return "daily note" if record.kind == "daily" else record.kind


def _line_text(record: Record) -> str:
    """Return the text of a record's line; a fact as in MEMORY.md."""
    if isinstance(record, Fact) and record.key:
        return f"{record.label or label_of(record.key)}: {record.content}"
    if isinstance(record, Note) and record.title:
        return f"{record.title}: {record.content}"
    return record.text


def _record_day(record: Record) -> date:
    return record.day if isinstance(record, DailyEntry) else record.valid_from.date()


def _context_line(record: Record, text: str, lead: str = "") -> _ContextLine:
    said = neutral(text) or "(empty)"
    mark = "" if record.trusted else "(unverified)"
    if lead:
        line = f"- {lead} {mark}: {said}\n" if mark else f"- {lead}: {said}\n"
    else:
        line = f"- {mark} {said}\n" if mark else f"- {said}\n"
    return _ContextLine(record.id, fold(text), line, _cost(line))


def _may_fit(text: str, room: int) -> bool:
    """Return False for a text that is certainly too long, to save rendering it."""
    return len(text) <= _LONGEST_TOKEN * room


def _cost(lines: str) -> int:
    """Return the tokens that whole lines add to a text."""
    return count(lines) - 1
