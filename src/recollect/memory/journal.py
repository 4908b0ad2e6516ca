"""Reading the journal: the history of a record, why it is known, undo, and the check that journal, records and files
agree.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from recollect.counts import pluralize
from recollect.errors import NotFoundError, UndoError
from recollect.memory.user_memory import UserMemory
from recollect.memory.write import Write
from recollect.records import USER_EDIT, Fact, JournalEntry, Record, Undone, new_id
from recollect.store.contract import LOST, Query, Reader

Progress = Callable[[int, int], None]
"""Called with the amount done and the total."""

_RECENT = 200
_AUTOMATIC = frozenset({"prune", "expire", "spend", "rebuild", LOST})
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The reason a record is known: its origin, its support, and what happened to it since."""

    record: Record
    message: str
    entries: tuple[JournalEntry, ...]


def explain_record(reader: Reader, record: Record) -> Why:
    """Answer "why do you know this?"."""
    entries = tuple(reader.entries(record_id=record.id))
    return Why(record=record, message=_explanation(record, entries), entries=entries)


def _explanation(record: Record, entries: tuple[JournalEntry, ...]) -> str:
    parts = [f"{_describe_origin(record)} on {record.created_at:%Y-%m-%d}"]
    if record.session:
        parts.append(f"in the conversation {record.session}")
    if record.agent:
        parts.append(f"written by {record.agent}")
    sentences = [", ".join(parts), f"confidence {record.confidence:.2f}"]
    if record.excerpt:
        sentences.append(f"based on: “{record.excerpt}”")
    if record.messages:
        sentences.append(f"supported by {pluralize(len(record.messages), 'message')}: {', '.join(record.messages)}")
    if not record.trusted:
        sentences.append("from an untrusted source")
    changes = len(entries) - 1
    if changes > 0:
        last = entries[-1]
        sentences.append(
            f"changed {pluralize(changes, 'time')}, last by {last.actor} ({last.op}) on {last.at:%Y-%m-%d}"
        )
    if record.status != "active":
        sentences.append(f"now {record.status}")
    return "; ".join(sentences) + "."


def _describe_origin(record: Record) -> str:
    origin, _, detail = record.source.partition(":")
    told = {
        USER_EDIT: "You wrote it into the file yourself",
        "explicit": "You asked to remember it",
        "explicit_mention": "You asked to remember it",
        "discussion": "It came up in a discussion",
        "reaction": "It follows from a reaction of yours",
        "batch_extraction": "It was extracted from your conversations",
        "tool": "An agent stored it with a tool",
        "import": "It was imported",
    }.get(origin, f"It came from {record.source}")
    return f"{told} ({detail})" if detail and origin in ("discussion", "reaction", "tool", "import") else told


def undo_target(write: Write, target: int | str) -> Undone:
    """Undo one journal entry by its number, or a whole run by its id."""
    if isinstance(target, int):
        entry = write.tx.entry(target)
        if entry is None:
            raise NotFoundError(f"there is no journal entry {target}")
        done = [_undo_entry(write, entry, write.acting.run)]
    else:
        entries = write.tx.entries(run=target, newest_first=True)
        if not entries:
            raise NotFoundError(f"there is no run {target}")
        run = new_id("run")
        done = [_undo_entry(write, entry, run) for entry in entries if entry.after]
        if not done:
            raise UndoError(f"run {target} changed nothing that can be undone")
    told = "; ".join(f"{entry.op} of {entry.after.text}" for entry in done[:3] if entry.after)
    return Undone(message=f"Undone: {told}" + ("; …" if len(done) > 3 else ""), entries=tuple(done))


def last_change(newest_first: Iterable[JournalEntry]) -> JournalEntry | None:
    """Return the last change still in effect that a person would mean: no messages, scratch values or automatic
    changes.
    """
    undone: set[int] = set()
    for entry in newest_first:
        if entry.undoes is not None:
            undone |= {entry.undoes} if entry.seq not in undone else set()
        elif entry.seq not in undone and _is_change(entry):
            return entry
    return None


def followed_by(newest_first: Iterable[JournalEntry]) -> JournalEntry | None:
    """Return what was done after the last change that `last_change` returns: a setting, a message, a link, an erasure.

    None if nothing was. Automatic changes and what was undone do not count.
    """
    undone: set[int] = set()
    for entry in newest_first:
        if entry.undoes is not None:
            undone |= {entry.undoes} if entry.seq not in undone else set()
        elif entry.seq not in undone and entry.op not in _AUTOMATIC:
            return None if _is_change(entry) else entry
    return None


def last_target(reader: Reader) -> int | str:
    """Return what `undo_target` reverts by default."""
    for limit in (_RECENT, None):
        if found := last_change(reader.entries(newest_first=True, limit=limit)):
            return found.run or found.seq
    raise NotFoundError("there is nothing to undo")


def _is_change(entry: JournalEntry) -> bool:
    if (
        entry.after is None
        or entry.op in ("prune", LOST)
        or entry.after.kind == "scratch"
        or entry.actor.startswith("link:")
    ):
        return False  # linking channels is undone as a whole
    return entry.after.kind != "message" or entry.op != "remember"


def _undo_entry(write: Write, entry: JournalEntry, run: str | None) -> JournalEntry:
    if entry.erased:
        raise UndoError(f"entry {entry.seq} was erased and cannot be undone")
    if entry.op == LOST:
        raise UndoError(f"entry {entry.seq} was lost when the database was repaired and cannot be undone")
    if entry.after is None:
        raise UndoError(
            f"entry {entry.seq} ({entry.op}) changed no record; change a setting back with the verb that set it,"
            " such as resume after pause"
        )
    current = write.tx.get(entry.record_id)
    if current is None or _substance(current) != _substance(entry.after):
        if write.tx.entries(undoes=entry.seq, limit=1):
            raise UndoError(f"entry {entry.seq} has already been undone")
        later = [e.seq for e in write.tx.entries(record_id=entry.record_id, after=entry.seq) if e.op != "prune"]
        raise UndoError(
            f"{entry.record_id} was changed after entry {entry.seq}, by {', '.join(map(str, later)) or 'something'};"
            " undo that first"
        )
    restored = entry.before or replace(entry.after, status="archived")
    if isinstance(restored, Fact) and restored.status == "active":
        taken = write.same_key(restored)
        if taken is not None and taken.id != restored.id and not _shared_key_then(write.tx, taken, entry):
            raise UndoError(f"{restored.key} is now {taken.content!r} ({taken.id}); forget that first")
    write.apply("undo", current, restored, reason=f"undo of {entry.op}", run=run, undoes=entry.seq)
    return entry


def _shared_key_then(reader: Reader, other: Fact, entry: JournalEntry) -> bool:
    """Return True if another fact already had its key at the time: a person may write two of a key into a file."""
    earlier = [e for e in reader.entries(record_id=other.id) if e.seq < entry.seq]
    then = earlier[-1].after if earlier else None
    return then is not None and then.status == "active" and (then.key, then.category) == (other.key, other.category)


def _substance(record: Record) -> Record:
    """Return the record without the fields that every change or pruning touches."""
    return replace(record, seq=0, version=0, updated_at=_EPOCH, tier=None)


def verify_memory(memory: UserMemory, progress: Progress | None = None) -> list[str]:
    """Return the disagreements between database, journal, records and files; empty if all is well."""
    problems = memory.user.check()
    if problems:
        return problems
    problems += memory.user.lost()
    with memory.read(notes=True) as reader:
        state = reader.state()
        records = {record.id: record for record in reader.find(Query(statuses=()))}
        entries = reader.entries()
        # counted first: an archive may claim more entries than fit into memory
        if len(entries) != state.seq or any(entry.seq != number for number, entry in enumerate(entries, 1)):
            problems.append(f"the journal has gaps: {len(entries)} entries, last number {state.seq}")
        lost = [entry.seq for entry in entries if entry.op == LOST]  # a repair reported it, and the person was told
        last: dict[str, JournalEntry] = {}
        for done, entry in enumerate(entries):
            if progress and done % 1000 == 0:
                progress(done, len(entries))
            before = last.get(entry.record_id)
            if entry.record_id and not entry.erased and entry.after is not None:
                expected = before.after if before else None
                known = entry.op != LOST and not _any_between(lost, before.seq if before else 0, entry.seq)
                if known and entry.before != expected and not (before and before.erased):
                    problems.append(
                        f"journal entry {entry.seq}: its old record is not what entry {before and before.seq} left"
                    )
            if entry.record_id and (entry.after is not None or entry.erased or entry.op in ("erase", "expire")):
                last[entry.record_id] = entry
        for record_id, entry in last.items():
            gone = entry.after is None
            if gone and record_id in records:
                problems.append(f"{record_id}: erased in the journal but still stored")
            elif not gone and records.get(record_id) != entry.after:
                problems.append(f"{record_id}: stored differently from journal entry {entry.seq}")
        problems += [f"{record_id}: not in the journal" for record_id in records.keys() - last.keys()]
        problems += memory.files.problems(reader)
    if progress:
        progress(len(entries), len(entries))
    return problems


def _any_between(numbers: list[int], begin: int, end: int) -> bool:
    place = bisect_right(numbers, begin)
    return place < len(numbers) and numbers[place] < end
