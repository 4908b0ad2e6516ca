"""When the database is lost or damaged: repair it from every row that can be read, then fill in from MEMORY.md and the
daily notes, and say what could not be saved."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from recollect.errors import NothingToRebuildError, StoreCorruptError
from recollect.memory.journal import verify
from recollect.memory.user_memory import UserMemory
from recollect.memory.write import Acting
from recollect.store.contract import Query, Salvage

_NAMES = {
    "interactions": "interaction(s) that the application reported",
    "extraction_runs": "extraction run(s)",
    "calls": "tool call(s) of the log",
    "spending": "line(s) of the ledger",
    "tombstones": "tombstone(s)",
    "consents": "consent(s)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildReport:
    """What was restored, what could not be, and where the old database is."""

    restored: dict[str, int]
    """Active records by kind, and how many of them came from MEMORY.md and the daily notes."""
    from_files: int = 0
    lost: tuple[str, ...] = ()
    """What could not be saved, one sentence each."""
    missing: dict[str, int] = field(default_factory=dict)
    """The same in numbers: lost records by kind, and rows of other tables."""
    older: dict[str, int] = field(default_factory=dict)
    """Records of which only an earlier state may be left."""
    gaps: tuple[tuple[int, int], ...] = ()
    """Lost journal entries, from number to number."""
    aside: Path | None = None
    notices: tuple[str, ...] = ()


def rebuild(person: UserMemory, *, force: bool = False) -> RebuildReport:
    """A new database from all that can be read. A healthy one is left alone unless forced."""
    if person.user.exists() and not force and not _is_damaged(person):
        raise NothingToRebuildError()
    salvage = person.user.repair()
    person.start_over()
    with person.write(Acting()) as write:
        person.files.take_over_daily(write)
        known = Counter(change.after.kind for change in write.changes if change.after and not change.before)
        if (salvage.aside or salvage.lost) and salvage.mode is None:
            # if it is not known whether the person had paused, nothing is captured until they say so
            write.tx.set_mode("paused")
        write.mark("rebuild", "", reason=f"set aside {salvage.aside.name}" if salvage.aside else "no database")
        restored = Counter(record.kind for record in write.tx.find(Query()))
    person.start_over()
    missing = dict(Counter(salvage.missing) - known)
    return RebuildReport(
        restored=dict(restored),
        from_files=known.total(),
        lost=tuple(_lost(salvage, missing)),
        missing=missing,
        older=salvage.older,
        gaps=salvage.gaps,
        aside=salvage.aside,
        notices=tuple(write.notices),
    )


def _is_damaged(person: UserMemory) -> bool:
    try:
        if verify(person):
            return True
        with person.user.read() as reader:  # what the database takes for whole may still say nonsense
            reader.tombstones()
            reader.calls()
            reader.spending()
            reader.consents()
            reader.interactions()
            reader.runs()
        return False
    except StoreCorruptError:
        return True


def _lost(salvage: Salvage, missing: dict[str, int]) -> list[str]:
    if salvage.aside is None and not salvage.lost:
        return []
    lost = []
    if salvage.lost:
        lost.append("everything but the facts and daily entries that the files hold, with all history")
    for kind, number in missing.items():
        more = (
            "at least " if kind in salvage.uncounted or (kind not in _NAMES and "records" in salvage.uncounted) else ""
        )
        lost.append(f"{more}{number} {_NAMES.get(kind, f'record(s) of kind {kind}')}")
    for kind, number in salvage.older.items():
        lost.append(
            f"the last state of up to {number} record(s) of kind {kind}, which are as the journal last knew them"
        )
    if salvage.gaps:
        number = sum(end - begin + 1 for begin, end in salvage.gaps)
        ranges = ", ".join(str(begin) if begin == end else f"{begin}-{end}" for begin, end in salvage.gaps)
        lost.append(f"{number} journal entries: {ranges}")
    if uncounted := [name for name in salvage.uncounted if not salvage.lost]:
        pages = f"{salvage.pages} page(s) could not be read"
        lost.append(f"perhaps more, which nothing tells the number of: {pages}, of {', '.join(uncounted)}")
    if salvage.frames:
        lost.append(f"{salvage.frames} page(s) of the write-ahead log, and what was changed there last")
    if salvage.mode is None:
        lost.append("whether memory was paused: it is paused now, `recollect resume` switches it on")
    if not (salvage.has_secret and salvage.all_tombstones):
        lost.append("the list of what was erased: it could be learned again")
    if not salvage.all_consents:
        lost.append("what the person consented to: check it, `recollect consent` gives it again")
    return lost
