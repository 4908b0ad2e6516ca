"""The pages that show a memory: the file, records, search, history. They change nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from starlette.responses import Response

from recollect.document.memory_md import Document, Item
from recollect.errors import InvalidInputError, NotFoundError
from recollect.memory.daily_notes import day_of, has_own_line, section_of_day
from recollect.memory.memory import Memory
from recollect.records import DailyEntry, Episode, ExtractionRun, Fact, JournalEntry, Record
from recollect.search.highlight import excerpt, match_spans
from recollect.surfaces.web.diffs import Words, words_changed
from recollect.surfaces.web.graph import MOST_DRAWN, Relationship, layout_graph
from recollect.surfaces.web.rendering import WebRequest, render_page
from recollect.times import parse_day

_PAGE = 100
_FEW = 30
"""The number of runs or conversations on a page."""
_MOST_LOOKED_AT = 5000
"""The maximum number of entries to read for one page, if few of them are shown."""
_LAST = 50
"""Changes before one of these can no longer be undone."""

_KINDS = {
    "fact": ("", "fact", "facts"),
    "daily": ("daily", "daily entry", "daily entries"),
    "episode": ("episodes", "episode", "episodes"),
    "message": ("conversations", "message", "messages"),
    "note": ("notes", "note", "notes"),
    "observation": ("observations", "observation", "observations"),
    "scratch": ("working", "working value", "working values"),
}
"""The page of each kind, and its name in singular and plural."""
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
    "restore": "Restored",
}


@dataclass(frozen=True)
class FileLine:
    """A line of MEMORY.md and its fact, if there is one."""

    item: Item
    fact: Fact | None


@dataclass(frozen=True)
class TimelineEvent:
    """A journal entry for display."""

    entry: JournalEntry
    said: str
    record: Record | None
    changed: tuple[Words, Words] | None
    can_undo: bool
    was_undone: bool


@dataclass(frozen=True)
class RunSummary:
    """A run: its last changes, and the extraction if it was one."""

    id: str
    events: list[TimelineEvent]
    is_more: bool
    """True if there are earlier changes."""
    learned: ExtractionRun | None


def memory_view(request: WebRequest) -> Response:
    """Show MEMORY.md by section."""
    mine = request.memory
    text = mine.show()
    facts = [fact for fact in mine.read(kind="fact") if isinstance(fact, Fact)]
    in_file: dict[tuple[str | None, str], list[Fact]] = {}
    for fact in facts:
        if fact.tier == "file":
            in_file.setdefault((fact.key, _squeeze_spaces(fact.content)), []).append(fact)
    sections: dict[str, list[FileLine]] = {}
    for item in Document.parse(text).items:
        known = in_file.get((item.key, _squeeze_spaces(item.content)), [])
        sections.setdefault(item.section, []).append(FileLine(item, known.pop(0) if known else None))
    archived = [fact for fact in facts if fact.tier == "archive"]
    return render_page(request, "memory.html", sections=sections, archived=archived, counts=mine.count(), kinds=_KINDS)


def _squeeze_spaces(text: str) -> str:
    return " ".join(text.split())


def record_view(request: WebRequest) -> Response:
    """Show one record: its text, its origin, its history."""
    mine = request.memory
    why = mine.why(request.path["id"])
    found = why.record
    supports = [message for name in found.messages[:20] if (message := _find_record(request, name)) is not None]
    successor = _find_record(request, found.superseded_by) if found.superseded_by else None
    return render_page(
        request,
        "record.html",
        record=found,
        why=why.message.partition("; ")[0].rstrip("."),  # the page shows the rest separately
        events=timeline_events(why.entries)[::-1],
        supports=supports,
        successor=successor,
    )


def _find_record(request: WebRequest, ref: str) -> Record | None:
    try:
        return request.memory.why(ref).record
    except (NotFoundError, InvalidInputError):
        return None


def search_view(request: WebRequest) -> Response:
    """Show search results with the matches highlighted."""
    query = request.query.get("q", "").strip()
    conversation = request.query.get("conversation") == "1"
    found = request.memory.search(query, limit=30, include_conversation=conversation) if query else None
    shown = []
    for hit in found or ():
        text = hit.passage or hit.record.text
        shown.append((hit, *excerpt(text, match_spans(text, query), 320)))
    return render_page(request, "search.html", q=query, conversation=conversation, found=found, shown=shown)


def timeline_view(request: WebRequest) -> Response:
    """Show the journal, latest first."""
    mine, before = request.memory, request.number("before", 0, 10**9) or None
    conversation = request.query.get("conversation") == "1"

    def is_shown(entry: JournalEntry) -> bool:
        record = entry.after or entry.before
        return conversation or record is None or record.kind != "message"  # messages would crowd out the changes

    entries, left, earlier = _walk_back(mine, before, is_shown, _PAGE)
    events = timeline_events(entries, _later_entries(mine, entries) if before else ())[::-1]
    return render_page(
        request, "timeline.html", events=events, left=left, earlier=earlier, before=before, conversation=conversation
    )


def _walk_back(
    mine: Memory, before: int | None, is_shown: Callable[[JournalEntry], bool], enough: int
) -> tuple[list[JournalEntry], int, int | None]:
    """Return the entries to show before one, oldest first; the number skipped; and where the next page starts."""
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
    found: list[JournalEntry] = []
    for name in {entry.record_id for entry in entries if entry.after is not None and not entry.erased}:
        found += mine.history(name, limit=_LAST)
    return found


def daily_view(request: WebRequest) -> Response:
    """Show a daily note and the list of days."""
    mine = request.memory
    today = mine.clock().date()
    day = parse_day("day", request.path["day"]) if "day" in request.path else today
    days = sorted({*mine.days(), today}, reverse=True)
    sections: dict[str, list[DailyEntry | Fact]] = {}
    for entry in mine.read(kind="daily", key=day.isoformat()) + mine.read(kind="fact"):
        if isinstance(entry, DailyEntry | Fact) and day_of(entry) == day and has_own_line(entry):
            sections.setdefault(entry.section or section_of_day(entry), []).append(entry)
    return render_page(request, "daily.html", day=day, days=days, sections=sections, today=today)


def records_view(kind: str, title: str, about: str, empty: str) -> Callable[[WebRequest], Response]:
    """Return a page that lists records of a kind, latest first. ``empty`` says how to get the first one."""

    def listed(request: WebRequest) -> Response:
        start = request.number("from", 1, 1_000_000) - 1
        found = request.memory.read(kind=kind, newest_first=True, limit=_PAGE + 1, offset=start)
        more = start + _PAGE + 1 if len(found) > _PAGE else None
        said: dict[str, Any] = {"kind": kind, "title": title, "about": about, "empty": empty}
        return render_page(request, "records.html", records=found[:_PAGE], more=more, **said)

    return listed


def conversations_view(request: WebRequest) -> Response:
    """List stored conversations with their first messages."""
    mine = request.memory
    start = request.number("from", 1, 1_000_000) - 1
    found = mine.sessions(limit=_FEW + 1, offset=start)
    talks = [(one, mine.read(kind="message", session=one.id, limit=1)) for one in found[:_FEW]]
    more = start + _FEW + 1 if len(found) > _FEW else None
    return render_page(request, "conversations.html", talks=talks, more=more)


def conversation_view(request: WebRequest) -> Response:
    """Show a conversation and the records derived from it."""
    mine, name = request.memory, request.query.get("id", "")
    start = request.number("from", 1, 1_000_000) - 1
    messages = mine.read(kind="message", session=name, limit=_PAGE + 1, offset=start) if name else []
    learned = [one for kind in _LEARNED for one in mine.read(kind=kind, session=name, limit=_PAGE)] if name else []
    if not messages and not learned:
        raise NotFoundError("This conversation does not exist or is no longer stored.")
    more = start + _PAGE + 1 if len(messages) > _PAGE else None
    return render_page(request, "conversation.html", name=name, messages=messages[:_PAGE], learned=learned, more=more)


def scratch_view(request: WebRequest) -> Response:
    """Show the working memory of agents."""
    return render_page(request, "working.html", items=request.memory.read(kind="scratch", newest_first=True, limit=500))


def people_view(request: WebRequest) -> Response:
    """Show people: relationships and participants of episodes."""
    ties: dict[str, Relationship] = {}
    myself = ("user", request.memory.user_id.rpartition("/")[2].casefold())
    for fact in request.memory.read(kind="fact", type="relationship"):
        role, name = (getattr(fact, "label", None) or fact.key or "").replace("_", " "), fact.content
        if name[:1].islower() and role[:1].isupper():  # "Inês: daughter" instead of "Daughter: Inês"
            role, name = name, role
        _tie(ties, name, role, fact)
    for episode in request.memory.read(kind="episode"):
        for name in episode.participants if isinstance(episode, Episode) else ():
            if name.casefold() not in myself:
                _tie(ties, name, "", episode)
    found = sorted(ties.values(), key=lambda tie: (-len(tie.records), tie.name.casefold()))
    return render_page(request, "people.html", ties=found, drawing=layout_graph(found[:MOST_DRAWN]) if found else None)


def _tie(ties: dict[str, Relationship], name: str, role: str, record: Record) -> None:
    """Add a record to a person's tie: the same name, or one that begins with it, as in "Milo, 6"."""
    short = name.split(",")[0].split(" from ")[0].strip() or name
    tie = ties.setdefault(short.casefold(), Relationship(short))
    tie.role = tie.role or role
    tie.records.append(record)


def runs_view(request: WebRequest) -> Response:
    """List runs, latest first."""
    mine, before = request.memory, request.number("before", 0, 10**9) or None
    learned = {run.id: run for run in mine.runs(limit=500)}
    seen: set[str] = set()

    def is_last(entry: JournalEntry) -> bool:
        is_new = entry.run is not None and entry.run not in seen
        if entry.run is not None:
            seen.add(entry.run)
        # a run with entries after this page begins is on a newer page
        return is_new and (before is None or mine.history(run=entry.run, limit=1)[0].seq < before)

    entries, _, earlier = _walk_back(mine, before, is_last, _FEW)
    shown = [_run_summary(mine, entry.run or "", learned, 20) for entry in reversed(entries)]
    silent = [run for run in learned.values() if before is None and not mine.history(run=run.id, limit=1)]
    return render_page(request, "runs.html", runs=shown, silent=silent, earlier=earlier, before=before)


def run_view(request: WebRequest) -> Response:
    """Show one run with its changes."""
    mine, name = request.memory, request.path["run"]
    shown = _run_summary(mine, name, {run.id: run for run in mine.runs(limit=500)}, 500)
    if not shown.events:
        raise NotFoundError("This run does not exist.")
    return render_page(request, "run.html", run=shown)


def _run_summary(mine: Memory, name: str, learned: Mapping[str, ExtractionRun], most: int) -> RunSummary:
    entries = mine.history(run=name, limit=most + 1)
    last = entries[-most:]
    return RunSummary(name, timeline_events(last, _later_entries(mine, last)), len(entries) > most, learned.get(name))


def duplicates_view(request: WebRequest) -> Response:
    """List pairs of similar records that could be merged."""
    pairs = [
        (one, other, *words_changed(one.content, other.content)) for one, other in request.memory.similar(limit=20)
    ]
    return render_page(request, "duplicates.html", pairs=pairs)


# the journal for display


def timeline_events(entries: Iterable[JournalEntry], since: Iterable[JournalEntry] = ()) -> list[TimelineEvent]:
    """Return entries for display. An entry whose record changed again (see ``since``) cannot be undone first."""
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
    undone: set[int] = set()
    for entry in reversed(entries):
        if entry.undoes is not None and entry.seq not in undone:
            undone.add(entry.undoes)
    return undone


def requested_day(request: WebRequest) -> date | None:
    """Return the day of the daily note; None means MEMORY.md."""
    return parse_day("day", request.path["day"]) if "day" in request.path else None
