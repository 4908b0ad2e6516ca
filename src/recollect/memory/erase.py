"""Permanent removal from the records, the journal, the files and the write cache."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recollect.counts import pluralize
from recollect.memory.daily_notes import day_of
from recollect.memory.files.contract import Files
from recollect.memory.interaction_log import interaction_hash
from recollect.memory.mentions import Copy, Mentions, copied_records, find_mentions, records_mentioning
from recollect.memory.references import ABOUT
from recollect.memory.tombstones import burial_hashes
from recollect.memory.write import Change, Write
from recollect.memory.write_cache import forget_statements
from recollect.records import Erased, Interaction, JournalEntry, Receipt, Record
from recollect.store.contract import Query, Tombstone

__all__ = ["erase_everything", "erase_records", "erase_topic", "records_mentioning"]


def erase_records(
    write: Write,
    files: Files,
    records: Sequence[Record],
    *,
    op: str = "erase",
    bury: bool = True,
    keeps_copies: bool = True,
) -> Erased:
    """Remove these records everywhere, leaving tombstones so that they are not learned again.

    A database copy that a repair set aside is kept, with the records overwritten in it, unless ``keeps_copies`` is
    False because the caller deletes it.
    """
    if bury:
        records = [*records, *_reports_on(write, records)]
    ids = [record.id for record in records]
    if any(day_of(record) for record in records):
        # a pending edit of the note would bring back what is erased below it
        files.take_over_daily(write)
        records = write.tx.find(Query(ids=ids, statuses=()))
    if bury:
        write.tx.bury([tombstone for record in records for tombstone in _tombstones(write, record)])
    lines = files.erase(write, records)
    write.erased = True
    forget_statements()
    places = write.places = {"records": len(ids), **write.tx.erase(ids), **lines}
    for record in records:
        write.mark(op, record.id)
        write.cache.drop(record.id)
        write.changes.append(Change(record, None))
    if bury:
        write.know_tombstones()
        tell_of_joined(write, write.before_erasing(()))
    if keeps_copies:
        _tell_of_copies(write, files)
    number = pluralize(len(ids), "record")
    return Erased(
        message=f"Erased {number}; only tombstones stay." if bury else f"Removed {number}.",
        receipt=Receipt(at=write.now, ids=tuple(ids), places=places, notices=tuple(write.notices)),
    )


def _reports_on(write: Write, records: Sequence[Record]) -> list[Record]:
    """Return the lines of daily notes that report changes of these records, and that are not among them."""
    ids = {record.id for record in records}
    if not any(record.kind == "fact" for record in records):
        return []
    lines = write.tx.find(Query(kinds=("daily",), statuses=()))
    return [line for line in lines if line.metadata.get(ABOUT) in ids and line.id not in ids]


def _tell_of_copies(write: Write, files: Files) -> None:
    """Say which databases, set aside by a repair, may still hold something of what is erased."""
    for copy in files.damaged_copies():
        notice = (
            f"A repair left {copy} in the user's folder. The erased"
            " records were overwritten in it where readable, but the history of other records may still hold them."
            " Delete the file to be sure"
        )
        if notice not in write.notices:
            write.notices.append(notice)


def tell_of_joined(write: Write, copies: Sequence[Copy]) -> None:
    """Say which links become final, because the copies of these joined memories are erased when the write ends."""
    for copy in copies:
        notice = f"The link can no longer be undone: the copy of the memory of {copy.name} is erased too"
        if notice not in write.notices:
            write.notices.append(notice)
    if copies:
        write.places["joined copies"] = len(copies)


def erase_topic(write: Write, files: Files, words: str) -> tuple[list[Record], Receipt]:
    """Remove everything that mentions a topic: records, earlier versions, interactions, and lines of the files.

    Data kept outside the memory is removed when the write ends, by its owner (see `Write.topics`). The receipt has no
    places if nothing was found.
    """
    write.before_erasing(())
    files.take_over_daily(write)  # a pending edit would bring it back
    found = find_mentions(write.tx, words)
    write.topics.append(found.topic)
    copied = copied_records(write.tx, write.before_erasing([found.topic]), found.topic)
    places = _erase_mentions(write, files, found) if found else {}
    for place, number in files.erase_topic(write, found.topic).items():
        places[place] = places.get(place, 0) + number
    write.places = {place: number for place, number in places.items() if number}
    if write.places:
        # Last: a journal that ends with an erasure tells the store to finish it, even after a kill.
        write.erased = True
        write.tx.redact([])
        write.mark("erase", "")
        _tell_of_copies(write, files)
    # not found here, it is looked for in the copies, which hold more than what was merged
    tell_of_joined(write, write.before_erasing(() if write.places else [found.topic]))
    records = [*found.records, *copied]
    ids = tuple(record.id for record in records)
    return records, Receipt(at=write.now, ids=ids, places=write.places, notices=tuple(write.notices))


def _erase_mentions(write: Write, files: Files, found: Mentions) -> dict[str, int]:
    tx = write.tx
    places = dict(erase_records(write, files, found.records).receipt.places)
    gone = [one for entry in found.entries for one in _states(tx.entry(entry.seq), without=entry)]
    tx.bury(tombstone for one in [*gone, *found.versions] for tombstone in tombstones_of(write, one))
    _bury_interactions(write, found.interactions)
    write.know_tombstones()
    tx.redact(found.entries)
    for run in found.runs:
        tx.put_run(run)
    places["journal"] += len(found.entries)
    places["versions"] += tx.drop_versions((one.id, one.version) for one in found.versions)
    return places | {
        "interactions": tx.drop_interactions(ids=[one.id for one in found.interactions]),
        "tool calls": tx.drop_calls(ids=[call.id for call in found.calls]),
        "runs": len(found.runs),
    }


def erase_everything(write: Write, files: Files) -> Erased:
    """Erase everything stored about this user, and start with an empty MEMORY.md.

    The ledger stays: it is the operator's account of what was spent and contains no content.
    """
    write.before_erasing(())
    _bury_interactions(write, write.tx.interactions())
    told = {"interactions": write.tx.drop_interactions(), "runs": write.tx.drop_runs()}
    beside = {"tool calls": write.tx.drop_calls(), **told, "consents": 0}
    for name in write.tx.consents():
        write.withdraw(name)
        beside["consents"] += 1
    write.cleared = True
    files.take_over_daily(write)  # what a person has just written there is erased too, and recognised later
    outcome = erase_records(write, files, write.tx.find(Query(statuses=())), keeps_copies=False)
    if not outcome.receipt.ids and any(beside.values()):
        write.mark("erase", "")  # the journal tells that the memory is in use: an import merges, and sees tombstones
    places = write.places = outcome.receipt.places | files.reset(write)
    places.update({place: amount for place, amount in beside.items() if amount})
    return Erased(
        message=f"Cleared: {pluralize(len(outcome.receipt.ids), 'record')} erased.",
        receipt=Receipt(at=write.now, ids=outcome.receipt.ids, places=places),
    )


def _bury_interactions(write: Write, interactions: Iterable[Interaction]) -> None:
    """Leave tombstones of interactions: neither an import nor a report of the same id brings them back."""
    hashes = (interaction_hash(write.state.secret, one.id) for one in interactions)
    write.tx.bury([Tombstone(hash=hash, record_id="", at=write.now) for hash in hashes])


def _tombstones(write: Write, record: Record) -> set[Tombstone]:
    """Return tombstones for everything the record ever said."""
    said = [record, *write.tx.versions(record.id)]
    said += [state for entry in write.tx.entries(record_id=record.id) for state in _states(entry)]
    return {tombstone for state in said for tombstone in tombstones_of(write, state)}


def tombstones_of(write: Write, record: Record) -> list[Tombstone]:
    """Return tombstones for what this version of a record says."""
    hashes = burial_hashes(record, write.state.secret)
    return [Tombstone(hash=hash, record_id=record.id, at=write.now) for hash in hashes]


def _states(entry: JournalEntry | None, without: JournalEntry | None = None) -> Iterable[Record]:
    """Yield the record before and after a change, where the redacted entry ``without`` no longer has it."""
    if entry is not None:
        if entry.before is not None and (without is None or without.before is None):
            yield entry.before
        if entry.after is not None and (without is None or without.after is None):
            yield entry.after
