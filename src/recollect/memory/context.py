"""The block of memory that goes into a prompt: who the person is, what is known of the topic, what happened lately.

    ## User Memory

    ### Core Profile
    - Role: Senior engineer

    ### Relevant Past Context
    - 2026-05-03 (note): The Kubernetes migration is planned for May

    ### Recent Activity
    - 2026-11-14: Read 6 posts on databases

The core comes first and depends on nothing but what is stored and on the budget: not on the topic, the hour or
what was recalled. So a prompt begins with the same bytes from turn to turn, and a prompt cache keeps working.
Its share is settled before the others are looked at, for the same reason.

Everything is counted line by line, which is exact because `tokens.count` is (see there).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta, timezone
from typing import Final, NamedTuple

from recollect.document.memory_md import SECTIONS, label_of
from recollect.memory.search import MEMORY_KINDS, Asked, search
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

_CORE_SHARE = 0.5  # of the budget at most, unless all of the core fits beside the rest
_USUAL_ENTRY = 60  # tokens kept free for each other memory when the core takes more than its share
_RELEVANT_SHARE = 2 / 3  # of what the core leaves, while there is recent activity to tell
_SPARE = 20  # hits looked at beyond those shown, because the core may show some of them already
_LEAST_ENTRY = 12  # tokens: a date alone has as many
_LONGEST_TOKEN = 16  # characters

_WORDS_FLOOR = 0.2
_MANY_WORDS = 1.5
_SCORE_FLOOR = 1 / 3
_NEAR = 0.5
_MOST_NEAR = 5
_CLOSE = 0.8


class _Entry(NamedTuple):
    """One line of the block."""

    record_id: str
    said: str
    """What it says, folded, to be said once only."""
    line: str
    cost: int


@dataclass(slots=True)
class _Part:
    """A section of the block: what it could say, and what of that was chosen. It is shown in the order given."""

    heading: str
    entries: Sequence[_Entry]
    chosen: set[int] = field(default_factory=set)

    def take(self, room: int, shown: set[str], order: Iterable[int] | None = None) -> int:
        """Choose what fits into so many tokens and was not shown yet, in this order; the tokens that are left."""
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
        """The section; nothing, if there is nothing to say."""
        lines = [self.entries[number].line for number in sorted(self.chosen)]
        return self.head + "".join(lines) if lines else ""


def context(
    person: UserMemory,
    reader: Reader,
    topic: str,
    budget: int,
    *,
    now: datetime | None = None,
    conversation: bool = False,
    asked: Asked | None = None,
    within: int | None = None,
) -> str:
    """The block for a topic, in at most so many tokens; empty if there is nothing to say, or no room to say it.

    If the reader is an open write, ``within`` says how far it has come.
    """
    if reader.state().mode == "incognito":
        return ""
    shown: set[str] = set()
    kinds = (*MEMORY_KINDS, "message") if conversation else MEMORY_KINDS
    room = budget - count(_TITLE)
    core, left = _core(person, reader, kinds, budget, room, shown)
    moment = now or person.clock()
    recent = _Part("Recent Activity", _recent(reader, moment.date(), person.clock(), left, len(shown)))
    relevant = _Part("Relevant Past Context", ())
    if topic.strip() and left > 0:
        where = Filter(kinds=kinds, alive_at=person.clock())
        most = MOST_RELEVANT + min(len(shown), _SPARE)
        hits = search(person, reader, topic, where, most, asked=asked, now=now, within=within)
        found = _above_floor(hits, *_called_for(person, reader, topic, moment, within))
        fitting = (_found(hit) for hit in found if _may_fit(hit.passage, left))
        new = [entry for entry in fitting if entry.record_id not in shown and entry.said not in shown]
        relevant = _Part(relevant.heading, new[:MOST_RELEVANT])
    share = int(left * _RELEVANT_SHARE) if recent.entries else left
    left -= share - relevant.take(share, shown)
    left = recent.take(left, shown)
    relevant.take(left, shown)
    parts = core.text() + relevant.text() + recent.text()
    return _TITLE + parts if parts else ""


# the core


def _core(
    person: UserMemory, reader: Reader, kinds: Sequence[str], budget: int, room: int, shown: set[str]
) -> tuple[_Part, int]:
    """What MEMORY.md shows, and the tokens it leaves. Nothing here may change merely because time passes.

    All of it, if that takes no more than its share, or leaves enough for whatever else is remembered. If not, the
    most valuable facts, within its share.
    """
    query = Query(kinds=("fact",), tier="file", alive_at=person.clock())
    facts = sorted(
        (fact for fact in reader.find(query) if isinstance(fact, Fact)),
        key=lambda fact: (_ORDER.get(fact.category or "", len(_ORDER)), fact.created_at, fact.id),
    )
    core = _Part("Core Profile", [_entry(fact, _said(fact)) for fact in facts])
    whole = _cost(core.head) + sum(entry.cost for entry in core.entries)
    share = min(room, int(budget * _CORE_SHARE))
    if whole > share:
        others = sum(n for (kind, status), n in reader.count().items() if status == "active" and kind in kinds)
        if whole + _USUAL_ENTRY * (others - len(facts)) <= room:
            share = room
    return core, room - share + core.take(share, shown, sorted(range(len(facts)), key=lambda n: _rank(facts[n])))


def _rank(fact: Fact) -> tuple[object, ...]:
    """The most valuable first; as if it had been used just now, so that it does not change from day to day."""
    category = _ORDER.get(fact.category or "", len(_ORDER))
    return not fact.pinned, -value(fact, fact.updated_at, None), category, -fact.updated_at.timestamp(), fact.id


# what is relevant


def _called_for(
    person: UserMemory, reader: Reader, topic: str, now: datetime, within: int | None
) -> tuple[float, bool]:
    """The score by words that a topic calls for, and whether it has words at all or only names a time.

    A text of usual length that has all the words would score the sum of their rarities. A fifth of it is called for:
    one rare word of three, two of six. A word that no memory has is the rarest of all, so that a topic of such words
    asks for much, and a common word alone does not meet it. Of a long topic nobody has a fifth; there the worth of
    one and a half of its rarest words is enough.
    """
    from recollect.search.question import Question  # here, not above: it loads NumPy

    state = reader.state()
    if within is not None:
        state = replace(state, seq=within)
    with person.catalogue.guard:
        index = person.catalogue.caught_up(reader, state, in_write=within is not None)
        question = Question.of(topic, now, index.names(), person.config.language)
        rarity = index.idf(question.words)
    return min(_WORDS_FLOOR * sum(rarity), _MANY_WORDS * max(rarity, default=0.0)), bool(question.words)


def _above_floor(hits: Sequence[Hit], needed: float, has_words: bool) -> list[Hit]:
    """The hits that are about the topic, and do not just have something in common with it.

    A hit must have a third of the best hit's score, and one of these:

    - The score by words that the topic calls for (see `_called_for`), half of it if it is of the time that the topic
      names. What was said right before and after a message counts as search counts it.
    - The time that the topic names, if the topic has no other words.
    - A meaning close to the topic's, as the embedder sees it, if only few are near. Some vectors are the nearest even
      if nothing is about the topic, but then many are nearly as near.
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


# what happened lately


def _recent(reader: Reader, today: date, alive_at: datetime, room: int, shown: int) -> list[_Entry]:
    """The daily notes and episodes of the last days, the newest first: as many as there could be room for."""
    most = max(room, 0) // _LEAST_ENTRY + shown + MOST_RELEVANT
    entries: list[_Entry] = []
    for back in range(min(RECENT_DAYS, today.toordinal())):
        day = today - timedelta(days=back)
        begin = datetime.combine(day, time(), timezone.utc)
        daily = Query(kinds=("daily",), key=day.isoformat(), alive_at=alive_at, newest_first=True, limit=most)
        until = begin + timedelta(days=1)
        episodes = Query(
            kinds=("episode",), said_from=begin, said_until=until, alive_at=alive_at, newest_first=True, limit=most
        )
        found = [*reader.find(daily), *reader.find(episodes)]
        found.sort(key=lambda record: (record.created_at, record.id.partition("-")[2]), reverse=True)
        entries += [_entry(record, record.text, day.isoformat()) for record in found if _may_fit(record.text, room)]
        if len(entries) >= most:
            break
    return entries


# lines


def _found(hit: Hit) -> _Entry:
    record = hit.record
    whole = indexed_text(record).strip()
    text = _said(record)
    if hit.passage and hit.passage != whole:
        before = "" if whole.startswith(hit.passage) else "… "
        after = "" if whole.endswith(hit.passage) else " …"
        text = f"{before}{hit.passage}{after}"
    return _entry(record, text, f"{_day(record).isoformat()} ({_origin(record)})")


def _origin(record: Record) -> str:
    if isinstance(record, Message):
        return f"conversation, {neutral(record.speaker or record.role)}"
    if record.kind == "observation":
        return record.category or record.kind
    return "daily note" if record.kind == "daily" else record.kind


def _said(record: Record) -> str:
    """The record as its line says it; a fact as in MEMORY.md."""
    if isinstance(record, Fact) and record.key:
        return f"{record.label or label_of(record.key)}: {record.content}"
    if isinstance(record, Note) and record.title:
        return f"{record.title}: {record.content}"
    return record.text


def _day(record: Record) -> date:
    return record.day if isinstance(record, DailyEntry) else record.valid_from.date()


def _entry(record: Record, text: str, lead: str = "") -> _Entry:
    said = neutral(text) or "(empty)"
    mark = "" if record.trusted else "(unverified)"
    if lead:
        line = f"- {lead} {mark}: {said}\n" if mark else f"- {lead}: {said}\n"
    else:
        line = f"- {mark} {said}\n" if mark else f"- {said}\n"
    return _Entry(record.id, fold(text), line, _cost(line))


def _may_fit(text: str, room: int) -> bool:
    """False for what is certainly too long, to spare the work of making a line of it."""
    return len(text) <= _LONGEST_TOKEN * room


def _cost(lines: str) -> int:
    """What whole lines add to a text."""
    return count(lines) - 1
