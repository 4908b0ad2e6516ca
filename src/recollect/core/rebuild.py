"""When the database is lost or damaged: set it aside, and take over what MEMORY.md and the daily notes hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from recollect.core.person import Person
from recollect.core.writing import Acting
from recollect.errors import NothingToRebuildError, StoreCorruptError
from recollect.records import CONSENTS
from recollect.store.contract import Query, Salvage


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildReport:
    """What was restored, what could not be, and where the old database is."""

    restored: dict[str, int]
    lost: tuple[str, ...]
    aside: Path | None
    notices: tuple[str, ...] = ()


def rebuild(person: Person, *, force: bool = False) -> RebuildReport:
    """A new database from the files. A healthy one is left alone unless forced."""
    if person.user.exists() and not force and not _is_damaged(person):
        raise NothingToRebuildError()
    salvage = person.user.set_aside()
    person.start_over()
    with person.write(Acting()) as write:
        if salvage.aside is not None or salvage.lost:
            # if it is not known whether the person had paused, nothing is captured until they say so
            write.tx.set_mode(salvage.mode or "paused")
            if salvage.secret is not None:
                write.tx.set_state(replace(write.tx.state(), secret=salvage.secret))
                write.tx.bury(salvage.tombstones)
            for name, at in (salvage.consents or {}).items():
                if name in CONSENTS:
                    write.tx.set_consent(name, True, at)
                    write.mark("consent", "", reason=name)
        write.mark("rebuild", "", reason=f"set aside {salvage.aside.name}" if salvage.aside else "no database")
        restored = Counter(record.kind for record in write.tx.find(Query()))
    person.start_over()
    return RebuildReport(
        restored=dict(restored),
        lost=tuple(_lost(salvage, restored)),
        aside=salvage.aside,
        notices=tuple(write.notices),
    )


def _is_damaged(person: Person) -> bool:
    try:
        if person.user.check():
            return True
        with person.user.read() as reader:  # what the database takes for whole may still say nonsense
            reader.find(Query(statuses=()))
            reader.entries()
            reader.tombstones()
            reader.calls()
            reader.spending()
            reader.consents()
            reader.interactions()
            reader.runs()
        return False
    except StoreCorruptError:
        return True


def _lost(salvage: Salvage, restored: Counter[str]) -> list[str]:
    lost = [
        "the journal: history and undo begin anew",
        "the log of tool calls and the ledger: they begin anew too",
        "what the application reported, and the runs that learned from it",
        "sources, confidence and times of the restored records",
    ]
    if salvage.counts is None:
        lost.append("notes, observations, episodes, messages, scratch items and pruned facts, if there were any")
    else:
        for kind, missing in sorted((Counter(salvage.counts) - restored).items()):
            lost.append(f"{missing} record(s) of kind {kind}, which the files do not hold")
    gone = salvage.aside is not None or salvage.lost
    if gone and salvage.mode is None:
        lost.append("whether memory was paused: it is paused now, `recollect resume` switches it on")
    if gone and (salvage.secret is None or not salvage.all_tombstones):
        lost.append("the list of what was erased: it could be learned again")
    if gone and salvage.consents is None:
        lost.append("what the person consented to: nothing now, `recollect consent` gives it again")
    return lost
