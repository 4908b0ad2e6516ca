"""What a person sees of their memory: the file, one record, what is found, what happened. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from starlette.responses import Response

from recollect.document.memory_md import Document, Item
from recollect.errors import InvalidInputError, NotFoundError
from recollect.memory.memory import Memory
from recollect.records import DailyEntry, Episode, ExtractionRun, Fact, JournalEntry, Record
from recollect.search.highlight import excerpt, marks
from recollect.surfaces.web.diffs import Words, words_changed
from recollect.surfaces.web.graph import MOST_DRAWN, Relationship, layout_graph
from recollect.surfaces.web.rendering import WebRequest, render_page
from recollect.times import parse_day

_PAGE = 100
_FEW = 30
"""How many runs or conversations are on a page."""
_MOST_LOOKED_AT = 5000
"""How many entries are looked at for one page, if few of them are to be shown."""
_LAST = 50
"""What happened before these changes of a record can hardly be undone any more."""

_KINDS = {
    "fact": ("", "fact", "facts"),
    "daily": ("daily", "daily entry", "daily entries"),
    "episode": ("episodes", "episode", "episodes"),
    "message": ("conversations", "message", "messages"),
    "note": ("notes", "note", "notes"),
    "observation": ("observations", "observation", "observations"),
    "scratch": ("working", "working value", "working values"),
}
"""Where records of a kind are shown, and what one and many of them are called."""
_LEARNED = ("fact", "observation", "episode", "note", "daily")

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
class FileLine:
    """One thing MEMORY.md says, and the fact that holds it, if there is one."""

    item: Item
    fact: Fact | None


@dataclass(frozen=True)
class TimelineEvent:
    """A journal entry as it is shown."""

    entry: JournalEntry
    said: str
    record: Record | None
    changed: tuple[Words, Words] | None
    can_undo: bool
    was_undone: bool


@dataclass(frozen=True)
class RunSummary:
    """What was done together: its last changes, and how learning went if that is what it was."""

    id: str
    events: list[TimelineEvent]
    is_more: bool
    """Whether there are others before these."""
    learned: ExtractionRun | None


def memory_view(asked: WebRequest) -> Response:
    """MEMORY.md, section by section."""
    mine = asked.memory
    text = mine.show()
    facts = [fact for fact in mine.read(kind="fact") if isinstance(fact, Fact)]
    in_file: dict[tuple[str | None, str], list[Fact]] = {}
    for fact in facts:
        if fact.tier != "archive":
            in_file.setdefault((fact.key, _squeeze_spaces(fact.content)), []).append(fact)
    sections: dict[str, list[FileLine]] = {}
    for item in Document.parse(text).items:
        known = in_file.get((item.key, _squeeze_spaces(item.content)), [])
        sections.setdefault(item.section, []).append(FileLine(item, known.pop(0) if known else None))
    archived = [fact for fact in facts if fact.tier == "archive"]
    return render_page(asked, "memory.html", sections=sections, archived=archived, counts=mine.count(), kinds=_KINDS)


def _squeeze_spaces(text: str) -> str:
    return " ".join(text.split())


def record_view(asked: WebRequest) -> Response:
    """One record: what it says, why it is known, what happened to it."""
    mine = asked.memory
    why = mine.why(asked.path["id"])
    found = why.record
    supports = [message for name in found.messages[:20] if (message := _find_record(asked, name)) is not None]
    successor = _find_record(asked, found.superseded_by) if found.superseded_by else None
    return render_page(
        asked,
        "record.html",
        record=found,
        why=why.message.partition("; ")[0].rstrip("."),  # the page shows the rest in its own way
        events=timeline_events(why.entries)[::-1],
        supports=supports,
        successor=successor,
    )


def _find_record(asked: WebRequest, ref: str) -> Record | None:
    try:
        return asked.memory.why(ref).record
    except (NotFoundError, InvalidInputError):
        return None


def search_view(asked: WebRequest) -> Response:
    """What was found, with the reasons marked in it."""
    query = asked.query.get("q", "").strip()
    conversation = asked.query.get("conversation") == "1"
    found = asked.memory.search(query, limit=30, include_conversation=conversation) if query else None
    shown = []
    for hit in found or ():
        text = hit.passage or hit.record.text
        shown.append((hit, *excerpt(text, marks(text, query), 320)))
    return render_page(asked, "search.html", q=query, conversation=conversation, found=found, shown=shown)


def timeline_view(asked: WebRequest) -> Response:
    """The journal, the latest first, page by page."""
    mine, before = asked.memory, asked.number("before", 0, 10**9) or None
    conversation = asked.query.get("conversation") == "1"

    def is_shown(entry: JournalEntry) -> bool:
        record = entry.after or entry.before
        return conversation or record is None or record.kind != "message"  # or talk would leave no room for changes

    entries, left, earlier = _walk_back(mine, before, is_shown, _PAGE)
    events = timeline_events(entries, _later_entries(mine, entries) if before else ())[::-1]
    return render_page(
        asked, "timeline.html", events=events, left=left, earlier=earlier, before=before, conversation=conversation
    )


def _walk_back(
    mine: Memory, before: int | None, is_shown: Callable[[JournalEntry], bool], enough: int
) -> tuple[list[JournalEntry], int, int | None]:
    """Entries to show that came before one, oldest first; how many were passed by; and before which to go on."""
    found: list[JournalEntry] = []
    looked_at = 0
    while looked_at < _MOST_LOOKED_AT and (some := mine.history(before=before, limit=2 * _PAGE)):
        for entry in reversed(some):
            if len(found) == enough:
                return found[::-1], looked_at - enough, before
            looked_at, before = looked_at + 1, entry.seq
            if is_shown(entry):
                found.append(entry)
    return found[::-1], looked_at - len(found), before if before is not None and before > 1 else None


def _later_entries(mine: Memory, entries: Iterable[JournalEntry]) -> list[JournalEntry]:
    """What happened last to the records of these entries."""
    found: list[JournalEntry] = []
    for name in {entry.record_id for entry in entries if entry.after is not None and not entry.erased}:
        found += mine.history(name, limit=_LAST)
    return found


def daily_view(asked: WebRequest) -> Response:
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
    return render_page(asked, "daily.html", day=day, days=days, sections=sections, today=today)


def records_view(kind: str, title: str, about: str, empty: str) -> Callable[[WebRequest], Response]:
    """A page of all records of a kind, the latest first; ``empty`` says how to come by one."""

    def listed(asked: WebRequest) -> Response:
        start = asked.number("from", 1, 1_000_000) - 1
        found = asked.memory.read(kind=kind, newest_first=True, limit=_PAGE + 1, offset=start)
        more = start + _PAGE + 1 if len(found) > _PAGE else None
        said: dict[str, Any] = {"kind": kind, "title": title, "about": about, "empty": empty}
        return render_page(asked, "records.html", records=found[:_PAGE], more=more, **said)

    return listed


def conversations_view(asked: WebRequest) -> Response:
    """The conversations whose messages are kept, each with how it began."""
    mine = asked.memory
    start = asked.number("from", 1, 1_000_000) - 1
    found = mine.sessions(limit=_FEW + 1, offset=start)
    talks = [(one, mine.read(kind="message", session=one.id, limit=1)) for one in found[:_FEW]]
    more = start + _FEW + 1 if len(found) > _FEW else None
    return render_page(asked, "conversations.html", talks=talks, more=more)


def conversation_view(asked: WebRequest) -> Response:
    """What was said in a conversation, and what is known from it."""
    mine, name = asked.memory, asked.query.get("id", "")
    start = asked.number("from", 1, 1_000_000) - 1
    messages = mine.read(kind="message", session=name, limit=_PAGE + 1, offset=start) if name else []
    learned = [one for kind in _LEARNED for one in mine.read(kind=kind, session=name, limit=_PAGE)] if name else []
    if not messages and not learned:
        raise NotFoundError("There is no such conversation, or it is not kept any more.")
    more = start + _PAGE + 1 if len(messages) > _PAGE else None
    return render_page(asked, "conversation.html", name=name, messages=messages[:_PAGE], learned=learned, more=more)


def scratch_view(asked: WebRequest) -> Response:
    """What agents keep in mind for the moment."""
    return render_page(asked, "working.html", items=asked.memory.read(kind="scratch", newest_first=True, limit=500))


def people_view(asked: WebRequest) -> Response:
    """Who is in the memory: relationships, and who took part in episodes."""
    ties: dict[str, Relationship] = {}
    myself = ("user", asked.memory.user_id.rpartition("/")[2].casefold())
    for fact in asked.memory.read(kind="fact", type="relationship"):
        role, name = (getattr(fact, "label", None) or fact.key or "").replace("_", " "), fact.content
        if name[:1].islower() and role[:1].isupper():  # "Inês: daughter", and not "Daughter: Inês"
            role, name = name, role
        _tie(ties, name, role, fact)
    for episode in asked.memory.read(kind="episode"):
        for name in episode.participants if isinstance(episode, Episode) else ():
            if name.casefold() not in myself:
                _tie(ties, name, "", episode)
    found = sorted(ties.values(), key=lambda tie: (-len(tie.records), tie.name.casefold()))
    return render_page(asked, "people.html", ties=found, drawing=layout_graph(found[:MOST_DRAWN]) if found else None)


def _tie(ties: dict[str, Relationship], name: str, role: str, record: Record) -> None:
    """Add to what is known of somebody: under the same name, or one that begins with it, as in "Milo, 6"."""
    short = name.split(",")[0].split(" from ")[0].strip() or name
    tie = ties.setdefault(short.casefold(), Relationship(short))
    tie.role = tie.role or role
    tie.records.append(record)


def runs_view(asked: WebRequest) -> Response:
    """What was done together, and can be undone together, the latest first."""
    mine, before = asked.memory, asked.number("before", 0, 10**9) or None
    learned = {run.id: run for run in mine.runs(limit=500)}
    seen: set[str] = set()

    def is_last(entry: JournalEntry) -> bool:
        is_new = entry.run is not None and entry.run not in seen
        if entry.run is not None:
            seen.add(entry.run)
        # one that went on after this page began is on a later one
        return is_new and (before is None or mine.history(run=entry.run, limit=1)[0].seq < before)

    entries, _, earlier = _walk_back(mine, before, is_last, _FEW)
    shown = [_run_summary(mine, entry.run or "", learned, 20) for entry in reversed(entries)]
    silent = [run for run in learned.values() if before is None and not mine.history(run=run.id, limit=1)]
    return render_page(asked, "runs.html", runs=shown, silent=silent, earlier=earlier, before=before)


def run_view(asked: WebRequest) -> Response:
    """One run with its changes."""
    mine, name = asked.memory, asked.path["run"]
    shown = _run_summary(mine, name, {run.id: run for run in mine.runs(limit=500)}, 500)
    if not shown.events:
        raise NotFoundError("There is no such run.")
    return render_page(asked, "run.html", run=shown)


def _run_summary(mine: Memory, name: str, learned: Mapping[str, ExtractionRun], most: int) -> RunSummary:
    entries = mine.history(run=name, limit=most + 1)
    last = entries[-most:]
    return RunSummary(name, timeline_events(last, _later_entries(mine, last)), len(entries) > most, learned.get(name))


def duplicates_view(asked: WebRequest) -> Response:
    """Records that say nearly the same, to be merged perhaps."""
    pairs = [(one, other, *words_changed(one.content, other.content)) for one, other in asked.memory.similar(limit=20)]
    return render_page(asked, "duplicates.html", pairs=pairs)


# the journal, as it is shown


def timeline_events(entries: Iterable[JournalEntry], since: Iterable[JournalEntry] = ()) -> list[TimelineEvent]:
    """Entries as they are shown. What was changed again, as ``since`` tells, cannot be undone before that is."""
    entries, found = list(entries), []
    known = sorted({entry.seq: entry for entry in (*entries, *since)}.values(), key=lambda entry: entry.seq)
    undone = _undone_in(known)
    last = {entry.record_id: entry.seq for entry in known if entry.op != "prune"}
    holds = {
        entry.record_id: entry.seq for entry in known if entry.op not in ("prune", "undo") and entry.seq not in undone
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
        found.append(TimelineEvent(entry, said, after or before, changed, can_undo, was_undone))
    return found


def _undone_in(entries: Sequence[JournalEntry]) -> Collection[int]:
    """Which entries do not hold any more, because a later one took them back."""
    undone: set[int] = set()
    for entry in reversed(entries):
        if entry.undoes is not None and entry.seq not in undone:
            undone.add(entry.undoes)
    return undone


def requested_day(asked: WebRequest) -> date | None:
    """The day whose note is meant; None: MEMORY.md."""
    return parse_day("day", asked.path["day"]) if "day" in asked.path else None
