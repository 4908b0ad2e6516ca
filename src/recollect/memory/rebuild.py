"""Repair of a lost or damaged database: keep every readable row, restore the rest from MEMORY.md and the daily notes,
and report what is lost.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from recollect.counts import pluralize
from recollect.errors import NothingToRebuildError, StoreCorruptError
from recollect.memory.journal import verify_memory
from recollect.memory.user_memory import UserMemory
from recollect.memory.write import Acting
from recollect.store.contract import Query, Salvage

_NAMES = {
    "interactions": "reported interaction",
    "extraction_runs": "extraction run",
    "calls": "logged tool call",
    "spending": "ledger line",
    "tombstones": "tombstone",
    "consents": "consent",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildReport:
    """The result of a repair: what was restored, what was lost, and where the old database is."""

    restored: dict[str, int]
    """Active records by kind; ``from_files`` of them came from MEMORY.md and the daily notes."""
    from_files: int = 0
    lost: tuple[str, ...] = ()
    """The losses, one sentence each."""
    missing: dict[str, int] = field(default_factory=dict)
    """The same in numbers: lost records by kind, and rows of other tables."""
    older: dict[str, int] = field(default_factory=dict)
    """Records of which only an earlier state may be left."""
    gaps: tuple[tuple[int, int], ...] = ()
    """Ranges of lost journal entries."""
    aside: Path | None = None
    notices: tuple[str, ...] = ()


def rebuild_memory(memory: UserMemory, *, force: bool = False) -> RebuildReport:
    """Build a new database from everything readable. A healthy one is left alone unless forced."""
    if not force and not needs_rebuild(memory):
        raise NothingToRebuildError()
    salvage = memory.user.repair()
    memory.start_over()
    with memory.write(Acting()) as write:
        memory.files.take_over_daily(write)
        known = Counter(change.after.kind for change in write.changes if change.after and not change.before)
        if (salvage.aside or salvage.lost) and salvage.mode is None:
            # if the person may have paused, capture nothing until they say so
            write.tx.set_mode("paused")
        write.mark("rebuild", "", reason=f"set aside {salvage.aside.name}" if salvage.aside else "no database")
        restored = Counter(record.kind for record in write.tx.find(Query()))
    memory.start_over()
    missing = dict(Counter(salvage.missing) - known)
    return RebuildReport(
        restored=dict(restored),
        from_files=known.total(),
        lost=tuple(_describe_losses(salvage, missing)),
        missing=missing,
        older=salvage.older,
        gaps=salvage.gaps,
        aside=salvage.aside,
        notices=tuple(write.notices),
    )


def needs_rebuild(memory: UserMemory) -> bool:
    """Return True if the database is missing or damaged."""
    return not memory.user.exists() or _is_damaged(memory)


def _is_damaged(memory: UserMemory) -> bool:
    try:
        if verify_memory(memory):
            return True
        with memory.user.read() as reader:  # rows that the database considers intact may still be nonsense
            reader.tombstones()
            reader.calls()
            reader.spending()
            reader.consents()
            reader.interactions()
            reader.runs()
        return False
    except StoreCorruptError:
        return True


def _describe_losses(salvage: Salvage, missing: dict[str, int]) -> list[str]:
    if salvage.aside is None and not salvage.lost:
        return []
    lost = []
    if salvage.lost:
        lost.append("everything except the facts and daily entries in the files, including all history")
    for kind, number in missing.items():
        more = (
            "at least " if kind in salvage.uncounted or (kind not in _NAMES and "records" in salvage.uncounted) else ""
        )
        of_kind = "" if kind in _NAMES else f" of kind {kind}"
        lost.append(f"{more}{pluralize(number, _NAMES.get(kind, 'record'))}{of_kind}")
    for kind, number in salvage.older.items():
        lost.append(f"the last state of up to {pluralize(number, 'record')} of kind {kind}, now as in the journal")
    if salvage.gaps:
        number = sum(end - begin + 1 for begin, end in salvage.gaps)
        ranges = ", ".join(str(begin) if begin == end else f"{begin}-{end}" for begin, end in salvage.gaps)
        lost.append(f"{pluralize(number, 'journal entry')}: {ranges}")
    if uncounted := [name for name in salvage.uncounted if not salvage.lost]:
        pages = f"{pluralize(salvage.pages, 'page')} could not be read"
        lost.append(f"possibly more, of unknown number: {pages}, of {', '.join(uncounted)}")
    if salvage.frames:
        lost.append(f"{pluralize(salvage.frames, 'page')} of the write-ahead log, with the last changes")
    if salvage.mode is None:
        lost.append("whether memory was paused; it is paused now, use `recollect resume` to continue")
    if not (salvage.has_secret and salvage.all_tombstones):
        lost.append("the list of erased items, so they could be learned again")
    if not salvage.all_consents:
        lost.append("the consents; check them and give them again with `recollect consent`")
    return lost
