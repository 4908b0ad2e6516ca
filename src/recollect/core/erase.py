"""Removing things for good: from the records, the journal, the files and what is known by heart."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.core.files import Files
from recollect.core.known import forget_statements
from recollect.core.writing import Change, Write
from recollect.records import Erased, Receipt, Record
from recollect.store.contract import Query, Tombstone


def erase(
    write: Write,
    files: Files,
    records: Sequence[Record],
    *,
    op: str = "erase",
    bury: bool = True,
    keeps_copies: bool = True,
) -> Erased:
    """Remove these records everywhere. With tombstones, so that they are not learned again.

    A database that a repair set aside stays, unless ``keeps_copies`` says that the caller deletes it; the records are
    overwritten in it.
    """
    ids = [record.id for record in records]
    if any(record.kind == "daily" for record in records):
        # an edit of a note that was not taken over yet would bring back what is erased below it
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
        write.known.drop(record.id)
        write.changes.append(Change(record, None))
    if bury:
        write.known.buried = {tombstone.hash for tombstone in write.tx.tombstones()}
    for copy in files.damaged_copies() if keeps_copies else ():
        write.notices.append(
            f"{copy}, which a repair set aside in the person's folder, is still there. All of this that can be read was"
            " overwritten in it; what cannot be read may hold more of it. Delete the file to be sure"
        )
    return Erased(
        message=f"Erased {len(ids)} record(s); only tombstones stay." if bury else f"Removed {len(ids)} record(s).",
        receipt=Receipt(at=write.now, ids=tuple(ids), places=places),
    )


def clear(write: Write, files: Files) -> Erased:
    """Erase everything there is about this person, and start with an empty MEMORY.md.

    The ledger stays: it is the operator's account of what was spent, and holds nothing of what was said.
    """
    told = {"interactions": write.tx.drop_interactions(), "runs": write.tx.drop_runs()}
    beside = {"tool calls": write.tx.drop_calls(), **told, "consents": 0}
    for name in write.tx.consents():  # first: a journal that ends with an erasure tells the store to finish it
        write.withdraw(name)
        beside["consents"] += 1
    outcome = erase(write, files, write.tx.find(Query(statuses=())), keeps_copies=False)
    places = write.places = outcome.receipt.places | files.reset(write)
    places.update({place: number for place, number in beside.items() if number})
    return Erased(
        message=f"Cleared: {len(outcome.receipt.ids)} record(s) erased.",
        receipt=Receipt(at=write.now, ids=outcome.receipt.ids, places=places),
    )


def _tombstones(write: Write, record: Record) -> set[Tombstone]:
    """One for everything the record ever said."""
    said = [record, *write.tx.versions(record.id)]
    for entry in write.tx.entries(record_id=record.id):
        said += [state for state in (entry.before, entry.after) if state is not None]
    hashes = {write.tombstone_hash(state) for state in said}
    return {Tombstone(hash=hash, record_id=record.id, at=write.now) for hash in hashes}
