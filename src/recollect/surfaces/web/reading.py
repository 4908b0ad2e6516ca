"""What a person sees of their memory: the file, one record, what is found, what happened. Changes nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import date

from starlette.responses import Response

from recollect.document.memory_md import Document, Item
from recollect.errors import InvalidInputError, NotFoundError
from recollect.records import DailyEntry, Episode, Fact, JournalEntry, Record
from recollect.search.highlight import excerpt, marks
from recollect.surfaces.web.differences import Words, words_changed
from recollect.surfaces.web.graph import Tie, draw
from recollect.surfaces.web.pages import Asked, page
from recollect.times import parse_day

_MOST_ENTRIES = 5000
_PAGE = 100

OPS = {
    "remember": "Remembered",
    "update": "Changed",
    "forget": "Forgot",
    "merge": "Merged",
    "edit": "Edited",
    "undo": "Undid",
    "prune": "Moved out of MEMORY.md",
    "expire": "Expired",
    "erase": "Erased",
    "clear": "Cleared everything",
    "pause": "Paused",
    "incognito": "Went incognito",
    "resume": "Resumed",
    "consent": "Consented",
    "withdraw": "Withdrew consent",
    "import": "Imported",
    "restore": "Brought back",
}


@dataclass(frozen=True)
class Line:
    """One thing MEMORY.md says, and the fact that holds it, if there is one."""

    item: Item
    fact: Fact | None


@dataclass(frozen=True)
class Event:
    """A journal entry as it is shown."""

    entry: JournalEntry
    said: str
    record: Record | None
    changed: tuple[Words, Words] | None
    can_undo: bool
    was_undone: bool


def memory(asked: Asked) -> Response:
    """MEMORY.md, section by section."""
    mine = asked.memory
    text = mine.show()
    facts = [fact for fact in mine.read(kind="fact") if isinstance(fact, Fact)]
    in_file: dict[tuple[str | None, str], list[Fact]] = {}
    for fact in facts:
        if fact.tier != "archive":
            in_file.setdefault((fact.key, _bare(fact.content)), []).append(fact)
    sections: dict[str, list[Line]] = {}
    for item in Document.parse(text).items:
        known = in_file.get((item.key, _bare(item.content)), [])
        sections.setdefault(item.section, []).append(Line(item, known.pop(0) if known else None))
    archived = [fact for fact in facts if fact.tier == "archive"]
    return page(asked, "memory.html", sections=sections, archived=archived, counts=mine.count(), exists=bool(facts))


def _bare(text: str) -> str:
    return " ".join(text.split())


def record(asked: Asked) -> Response:
    """One record: what it says, why it is known, what happened to it."""
    mine = asked.memory
    why = mine.why(asked.path["id"])
    found = why.record
    supports = [message for name in found.messages[:20] if (message := _get(asked, name)) is not None]
    successor = _get(asked, found.superseded_by) if found.superseded_by else None
    events = told(why.entries, undone_in(why.entries))

    return page(
        asked,
        "record.html",
        record=found,
        why=why.message,
        events=events[::-1],
        supports=supports,
        successor=successor,
    )


def _get(asked: Asked, ref: str) -> Record | None:
    try:
        return asked.memory.why(ref).record
    except (NotFoundError, InvalidInputError):
        return None


def search(asked: Asked) -> Response:
    """What was found, with the reasons marked in it."""
    query = asked.query.get("q", "").strip()
    conversation = asked.query.get("conversation") == "1"
    found = asked.memory.search(query, limit=30, include_conversation=conversation) if query else None
    shown = []
    for hit in found or ():
        text = hit.passage or hit.record.text
        shown.append((hit, *excerpt(text, marks(text, query), 320)))
    return page(asked, "search.html", q=query, conversation=conversation, found=found, shown=shown)


def timeline(asked: Asked) -> Response:
    """The journal by day, the latest first."""
    limit = asked.number("limit", _PAGE, _MOST_ENTRIES)
    entries = asked.memory.history(limit=limit)
    conversation = asked.query.get("conversation") == "1"
    more = min(limit + 2 * _PAGE, _MOST_ENTRIES) if len(entries) == limit < _MOST_ENTRIES else None
    events = told(entries, undone_in(entries))[::-1]
    if not conversation:  # what was merely said would leave no room for what changed
        events = [event for event in events if event.record is None or event.record.kind != "message"]
    said = len(entries) - len(events)
    days = [(day, list(some)) for day, some in itertools.groupby(events, lambda event: event.entry.at.date())]
    return page(asked, "timeline.html", days=days, more=more, conversation=conversation, said=said)


def daily(asked: Asked) -> Response:
    """The daily note of a day, and which others there are."""
    mine = asked.memory
    today = mine.clock().date()
    day = parse_day("day", asked.path["day"]) if "day" in asked.path else today
    entries = [one for one in mine.read(kind="daily") if isinstance(one, DailyEntry)]
    days = sorted({entry.day for entry in entries} | {today}, reverse=True)
    sections: dict[str, list[DailyEntry]] = {}
    for entry in entries:
        if entry.day == day:
            sections.setdefault(entry.section, []).append(entry)
    return page(asked, "daily.html", day=day, days=days, sections=sections, today=today)


def records(kind: str, title: str, about: str) -> Callable[[Asked], Response]:
    """A page of all records of a kind, the latest first."""

    def listed(asked: Asked) -> Response:
        start = asked.number("from", 1, 1_000_000) - 1
        found = asked.memory.read(kind=kind, newest_first=True, limit=_PAGE + 1, offset=start)
        more = start + _PAGE + 1 if len(found) > _PAGE else None
        return page(asked, "records.html", kind=kind, title=title, about=about, records=found[:_PAGE], more=more)

    return listed


def people(asked: Asked) -> Response:
    """Who is in the memory: relationships, and who took part in episodes."""
    ties: dict[str, Tie] = {}
    for fact in asked.memory.read(kind="fact", type="relationship"):
        role = (getattr(fact, "label", None) or fact.key or "").replace("_", " ")
        _tie(ties, fact.content, role, fact)
    for episode in asked.memory.read(kind="episode"):
        for name in episode.participants if isinstance(episode, Episode) else ():
            _tie(ties, name, "", episode)
    found = sorted(ties.values(), key=lambda tie: (-len(tie.records), tie.name.casefold()))
    return page(asked, "people.html", ties=found, drawing=draw(found[:24]) if found else None)


def _tie(ties: dict[str, Tie], name: str, role: str, record: Record) -> None:
    """Add to what is known of somebody: under the same name, or one that begins with it, as in "Milo, 6"."""
    short = name.split(",")[0].split(" from ")[0].strip() or name
    tie = ties.setdefault(short.casefold(), Tie(short))
    tie.role = tie.role or role
    tie.records.append(record)


def runs(asked: Asked) -> Response:
    """What was done together, and can be undone together."""
    mine = asked.memory
    learned = {run.id: run for run in mine.runs(limit=100)}
    entries = mine.history(limit=_MOST_ENTRIES)
    undone = undone_in(entries)
    groups: dict[str, list[JournalEntry]] = {}
    for entry in entries:
        if entry.run:
            groups.setdefault(entry.run, []).append(entry)
    shown = [(name, told(some, undone), learned.get(name)) for name, some in groups.items()][::-1]
    silent = [run for name, run in learned.items() if name not in groups]
    return page(asked, "runs.html", groups=shown[:100], silent=silent)


def duplicates(asked: Asked) -> Response:
    """Records that say nearly the same, to be merged perhaps."""
    pairs = [(one, other, *words_changed(one.content, other.content)) for one, other in asked.memory.similar(limit=20)]
    return page(asked, "duplicates.html", pairs=pairs)


# the journal, as it is shown


def undone_in(entries: Iterable[JournalEntry]) -> Collection[int]:
    """Which entries do not hold any more, because a later one took them back."""
    undone: set[int] = set()
    for entry in sorted(entries, key=lambda one: one.seq, reverse=True):
        if entry.undoes is not None and entry.seq not in undone:
            undone.add(entry.undoes)
    return undone


def told(entries: Iterable[JournalEntry], undone: Collection[int]) -> list[Event]:
    """Entries as they are shown. What was changed again since cannot be taken back before that is."""
    entries, found = list(entries), []
    last = {entry.record_id: entry.seq for entry in entries if entry.op != "prune"}
    holds = {
        entry.record_id: entry.seq for entry in entries if entry.op not in ("prune", "undo") and entry.seq not in undone
    }
    for entry in entries:
        before, after = entry.before, entry.after
        changed = None
        if before is not None and after is not None and before.content != after.content:
            changed = words_changed(before.content, after.content)
        was_undone = entry.seq in undone
        is_latest = entry.seq in (last.get(entry.record_id), holds.get(entry.record_id))
        can_undo = after is not None and not entry.erased and not was_undone and is_latest
        said = OPS.get(entry.op, entry.op.capitalize())
        found.append(Event(entry, said, after or before, changed, can_undo, was_undone))
    return found


def day_of(asked: Asked) -> date | None:
    """The day whose note is meant; None: MEMORY.md."""
    return parse_day("day", asked.path["day"]) if "day" in asked.path else None
