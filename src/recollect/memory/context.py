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

Tokens are counted line by line, which is never too little: lines together have no more tokens than each for itself.
What that leaves unused is filled in the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta, timezone
from typing import Final, NamedTuple

from recollect.document.memory_md import SECTIONS
from recollect.memory.daily_notes import day_of, lines_of_day
from recollect.memory.references import line_text, reports_change
from recollect.memory.search import MEMORY_KINDS, QueryVector, search_records
from recollect.memory.user_memory import UserMemory
from recollect.policy.injection import neutral
from recollect.policy.retention import value
from recollect.records import Fact, Hit, Interaction, Message, Record
from recollect.search.filters import Filter
from recollect.search.passages import indexed_text
from recollect.search.tokens import count
from recollect.store.contract import Query, Reader
from recollect.text import fold

RECENT_DAYS: Final = 7
MOST_RELEVANT: Final = 500

_TITLE: Final = "## User Memory\n"
_ORDER: Final = {category: number for number, category in enumerate(SECTIONS)}

_CORE_SHARE = 0.5  # of the budget at most, unless all of the core fits along with the rest
_USUAL_ENTRY = 60  # tokens reserved for each other memory when the core takes more than its share
_RELEVANT_SHARE = 2 / 3  # of what the core leaves, while there is recent activity
_SPARE = 20  # hits fetched beyond those that fit, because the core may already show some of them
_LEAST_ENTRY = 12  # tokens: the length of a date and a word
_USUAL_HIT = 30  # tokens of a line with its date and kind
_FEW = 30  # hits among which vectors are compared
_REPORTED = ("reaction", "read", "save")
_LONGEST_TOKEN = 16  # characters

_NO_WORD = "\0"
_NOTHING = 1e-6
_WORDS_FLOOR = 0.2
_MANY_WORDS = 1.5
_MOST_WORDS = 2 / 3
_SCORE_FLOOR = 1 / 3
_NEAR = 0.5
_MOST_NEAR = 5
_CLOSE = 0.8
_USUAL_MEMORY = 100
"""In a memory of fewer passages than this, it is not known yet which words are rare."""


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
            cost = entry.cost + (0 if self.chosen else count(self.head))
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
        needed = _called_for(memory, reader, topic, moment, within)
        most = left // _USUAL_HIT + min(len(shown), _SPARE) + 1
        while True:
            hits = search_records(memory, reader, topic, where, most, asked=asked, now=now, within=within)
            kept = _above_floor(hits, *needed)
            fitting = (_hit_line(hit) for hit in kept if _may_fit(hit.passage, left))
            new = [entry for entry in fitting if entry.record_id not in shown and entry.said not in shown]
            weaker = len(kept) < len(hits) or len(hits) < most  # than required, all that follow
            if weaker or most >= MOST_RELEVANT or sum(entry.cost for entry in new) >= left:
                break
            most *= 4  # they are short: there is room for more
        relevant = _ContextSection(relevant.heading, new)
    share = int(left * _RELEVANT_SHARE) if recent.entries else left
    left -= share - relevant.take(share, shown)
    left = recent.take(left, shown)
    relevant.take(left, shown)
    parts = core.text() + relevant.text() + recent.text()
    if (spare := budget - count(_TITLE + parts)) >= _LEAST_ENTRY:
        spare = recent.take(relevant.take(spare, shown), shown)
        further = _ContextSection("Further Facts", () if topic.strip() else core.entries)
        further.take(spare, shown)  # without a topic nothing else needs the room, and the core stays the same
        parts = core.text() + relevant.text() + recent.text() + further.text()
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
    core = _ContextSection("Core Profile", [_context_line(fact, line_text(fact)) for fact in facts])
    whole = count(core.head) + sum(entry.cost for entry in core.entries)
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


def _called_for(memory: UserMemory, reader: Reader, topic: str, now: datetime, within: int | None) -> tuple[float, int]:
    """Return the word score that a hit on this topic needs, and its number of words: 0 if it only names a time.

    Of several lines, the first is the title: what it requires is enough.

    A text of usual length with all the words would score the sum of their rarities. A fifth of that is required: one
    rare word of three, two of six. A word that no memory contains is the rarest of all, so a topic of such words
    requires much, and one common word does not suffice. Nothing matches a fifth of a long topic; there, the worth of
    one and a half of its rarest words is enough. A small memory knows too few words to call one rare: there, all count
    more alike.
    """
    from recollect.search.question import Question  # here, not above: it loads NumPy
    from recollect.search.ranking import rarities

    state = reader.state()
    if within is not None:
        state = replace(state, seq=within)
    with memory.index.guard:
        index = memory.index.caught_up(reader, state, in_write=within is not None)
        needed, words = [], 0
        for part in dict.fromkeys((topic, topic.strip().partition("\n")[0])):
            question = Question.of(part, now, index.names(), memory.config.language)
            words = words or len(set(question.words))
            if question.words:
                needed.append(_required(rarities(index, question), index.idf([_NO_WORD])[0]))
    return min(needed, default=0.0), words


def _required(rarity: Sequence[float], highest: float) -> float:
    """Return the word score that a topic of words of these rarities requires; that of unknown words is the highest."""
    passages = math.exp(highest) / 2  # that of a word that none of n passages has is ln(2n + 2)
    added = math.log1p(_USUAL_MEMORY / passages)  # as if that many more passages had none of the words
    known = max((each for each in rarity if each < highest - _NOTHING), default=highest)
    alike = _WORDS_FLOOR * sum(each + added for each in rarity) * known / (known + added)
    return min(alike, _MANY_WORDS * max(rarity))


def _above_floor(hits: Sequence[Hit], needed: float, words: int) -> list[Hit]:
    """Return the hits that are about the topic rather than merely sharing something with it.

    A hit needs a third of the best hit's score, or two thirds of the words of the topic; and one of these:

    - The word score that the topic requires (see `_called_for`), or half of it if the hit is from the time that the
      topic names. Neighbouring messages count as they do in search.
    - The time that the topic names, if the topic has no other words.
    - The topic asks for everything.
    - A vector close to the topic's, if only few are near. Some vectors are always nearest, even if nothing is about the
      topic, but then many are nearly as near.
    """
    first = hits[:_FEW]
    nearest = max((hit.signals.get("vector", 0.0) for hit in first), default=0.0)
    near = [hit for hit in first if 0 < _NEAR * nearest <= hit.signals.get("vector", 0.0)]
    close = [hit for hit in near if hit.signals["vector"] >= _CLOSE * nearest] if len(near) <= _MOST_NEAR else []
    by_meaning = {hit.record.id for hit in close}
    best = max((hit.raw_score for hit in hits), default=0.0)
    kept = []
    for hit in hits:
        by_words = hit.signals.get("words", 0.0) + hit.signals.get("neighbours", 0.0)
        in_time = hit.signals.get("date", 0.0) > 0 or hit.signals.get("event", 0.0) > 0
        speaks = by_words >= (needed / 2 if in_time else needed) if words else in_time
        covers = words > 0 and len(hit.words) >= _MOST_WORDS * words
        if "listed" in hit.signals or (
            (covers or hit.raw_score >= _SCORE_FLOOR * best) and (speaks or hit.record.id in by_meaning)
        ):
            kept.append(hit)
    return kept


# recent activity


def _recent(reader: Reader, today: date, alive_at: datetime, room: int, shown: int) -> list[_ContextLine]:
    """Return the daily notes, episodes, reactions and reads of the last days, newest first, as many as could fit."""
    most = max(room, 0) // _LEAST_ENTRY + shown + _SPARE
    entries: list[_ContextLine] = []
    reported = _reported(reader, today, most)
    for back in range(min(RECENT_DAYS, today.toordinal())):
        day = today - timedelta(days=back)
        begin = datetime.combine(day, time(), timezone.utc)
        until = begin + timedelta(days=1)
        episodes = Query(
            kinds=("episode",), said_from=begin, said_until=until, alive_at=alive_at, newest_first=True, limit=most
        )
        of_day = lines_of_day(reader, day, alive_at=alive_at, newest_first=True, limit=most)
        found = [one for one in (*of_day, *reader.find(episodes)) if not reports_change(one)]
        found.sort(key=lambda record: (record.created_at, record.id.partition("-")[2]), reverse=True)
        entries += [
            _context_line(record, record.text, day.isoformat()) for record in found if _may_fit(record.text, room)
        ]
        noted = " ".join(fold(record.text) for record in found)
        entries += [
            _ContextLine(one.id, fold(told), line, count(line))
            for one in reported.get(day, ())
            if fold(one.title or one.item or "") not in noted
            and (told := _describe_interaction(one))
            and _may_fit(told, room)
            and (line := f"- {day.isoformat()}: {told}\n")
        ]
        if len(entries) >= most:
            break
    return entries


def _reported(reader: Reader, today: date, most: int) -> dict[date, list[Interaction]]:
    """Return what the person read, saved and reacted to, by day: daily notes may not tell of it yet."""
    first = today - timedelta(days=min(RECENT_DAYS, today.toordinal()) - 1)
    since, until = (datetime.combine(day, time(), timezone.utc) for day in (first, today + timedelta(days=1)))
    found: dict[date, list[Interaction]] = {}
    for one in reader.interactions(since=since, until=until, kinds=_REPORTED, newest_first=True, limit=most):
        found.setdefault(one.at.date(), []).append(one)
    return found


def _describe_interaction(one: Interaction) -> str:
    what = neutral(one.title or one.item or "")
    if not what:
        return ""
    if one.kind == "reaction":
        return f'Reacted {neutral(one.value or "")} to "{what}"'
    return f'{"Saved" if one.kind == "save" else "Read"} "{what}"'


# lines


def _hit_line(hit: Hit) -> _ContextLine:
    record = hit.record
    whole = indexed_text(record).strip()
    text = line_text(record)
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
    if record.kind == "fact" and day_of(record):
        return "uncertain"
    return "daily note" if record.kind == "daily" else record.kind


def _record_day(record: Record) -> date:
    return day_of(record) or record.valid_from.date()


def _context_line(record: Record, text: str, lead: str = "") -> _ContextLine:
    said = neutral(text) or "(empty)"
    mark = "" if record.trusted else "(unverified)"
    if lead:
        line = f"- {lead} {mark}: {said}\n" if mark else f"- {lead}: {said}\n"
    else:
        line = f"- {mark} {said}\n" if mark else f"- {said}\n"
    return _ContextLine(record.id, fold(text), line, count(line))


def _may_fit(text: str, room: int) -> bool:
    """Return False for a text that is certainly too long, to save rendering it."""
    return len(text) <= _LONGEST_TOKEN * room
