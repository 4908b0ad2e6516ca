"""Erasure where memories were joined: what a user erases is also removed from the copies kept to undo a joining, and
what was erased in a joined memory is not learned again in the surviving one.

A tombstone recognises only what is hashed with the key of its own memory. So a joined memory brings along its
tombstones and, as one more, their key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Protocol

from recollect.errors import StoreBusyError
from recollect.memory.copies import KeptCopy
from recollect.memory.erase import erase_records, tell_of_joined, tombstones_of
from recollect.memory.files.contract import Files
from recollect.memory.mentions import texts_of
from recollect.memory.tombstones import SEPARATED, is_persons, tombstone_hashes
from recollect.memory.write import ERASED, Acting, Write
from recollect.policy.topics import Topic
from recollect.records import Record
from recollect.store.contract import Query, Reader, State, Tombstone

_KEY = "key:"


class UnfinishedError(Exception):
    """A memory is being joined with this one, or separated from it."""


class Copies(Protocol):
    """The operations on joined memories that a user's writes need."""

    def kept(self, user_id: str, topics: Sequence[Topic] = ()) -> list[KeptCopy]:
        """Return every copy that may hold what this user erases, or only those that mention these topics.

        Raises `UnfinishedError` while a memory is being joined with theirs or separated from it: some of that would
        come in after the erasure.
        """
        ...

    def drop(self, user_id: str, copies: Sequence[KeptCopy]) -> None:
        """Erase these copies of memories joined with this user's. Raises `UnfinishedError` as `kept` does."""
        ...

    @property
    def erasure_pending(self) -> bool:
        """True if a log still holds a copy that was dropped."""
        ...

    def is_joined(self, run: str) -> bool:
        """Return True if the joining of this run is still in effect."""
        ...

    def upkeep(self) -> None:
        """Complete interrupted joinings and unlinkings, and drop what has expired."""
        ...


Elsewhere = Callable[[Write], dict[str, int]]
"""Removes data kept outside of a memory after an erasure of records, of topics or of everything; returns the amounts
by place.
"""


class ErasureHooks:
    """Hooks that erase what a write erases from copies and other places too, before it is committed.

    A kill in between leaves too little rather than too much.
    """

    def __init__(self, user_id: str, files: Files, copies: Callable[[], Copies], elsewhere: Elsewhere) -> None:
        self._user_id = user_id
        self._files = files
        self._copies = copies
        self._elsewhere = elsewhere
        self._buried: set[str] = set()
        self._keys: list[str] = []

    def before_erasing(self, topics: Sequence[Topic] = ()) -> Sequence[KeptCopy]:
        return self._copies().kept(self._user_id, topics)

    def joined_tombstones(self, write: Write, record: Record) -> list[Tombstone]:
        if self._buried is not write.cache.buried:  # a new set whenever there are new tombstones
            self._buried, self._keys = write.cache.buried, _keys(write.cache.buried)
        return _joined_tombstones(write, record, self._keys, self._copies().is_joined) if self._keys else []

    def before_commit(self, write: Write) -> None:
        self._erase_again(write)
        if write.has_buried or (write.topics and write.erased):
            self._erase_copies(write)
        elif write.topics:  # not found here, but the copies hold more than what was merged
            self._erase_copies(write, write.topics)
        if write.has_buried or write.topics:
            for place, number in self._elsewhere(write).items():
                write.places[place] = write.places.get(place, 0) + number

    def after_commit(self, acting: Acting) -> None:
        if acting.actor == "upkeep":
            self._copies().upkeep()

    def on_error(self, error: BaseException) -> None:
        """Complete a joining or an unlinking that blocks an erasure, so that the next attempt succeeds."""
        if isinstance(error, UnfinishedError):
            self._copies().upkeep()
            raise StoreBusyError(
                "A memory was being joined with this one or separated from it, so nothing was erased. Erase again."
            ) from None

    def _erase_copies(self, write: Write, topics: Sequence[Topic] = ()) -> None:
        copies = self._copies().kept(self._user_id, topics)
        if copies:
            self._copies().drop(self._user_id, copies)
            bury_copied(write, [state for copy in copies for state in copy.states()])
            tell_of_joined(write, copies)
        if self._copies().erasure_pending:
            write.add_pending()

    def _erase_again(self, write: Write) -> None:
        """Erase new records that were erased in a joined memory, under another key. They are refused from then on."""
        fresh = [change.after for change in write.changes if change.before is None and change.after is not None]
        if not fresh or not _keys(write.cache.buried):
            return
        again = [
            record
            for record in fresh
            if write.tx.get(record.id) is not None and erased_before(write, record, self._copies().is_joined)
        ]
        if again:
            erase_records(write, self._files, again)
            write.notices.append(ERASED)


def bury_copied(write: Write, states: Sequence[Record]) -> None:
    """Leave tombstones for what only an erased copy had, and for what it said about erased topics."""
    stored = write.tx.find(Query(statuses=()))
    ids = {record.id for record in stored}
    alive = {
        hash for record in stored if record.status == "active" for hash in tombstone_hashes(record, write.state.secret)
    }
    gone = [one for one in states if one.id not in ids or any(topic.is_in(texts_of(one)) for topic in write.topics)]
    if gone:
        write.tx.bury(one for state in gone for one in tombstones_of(write, state) if one.hash not in alive)
        write.know_tombstones()


def erased_before(write: Write, record: Record, holds: Callable[[str], bool]) -> bool:
    """Return True if the person had this erased, here or in a joined memory, and has not said it again since.

    ``holds`` tells if the joining of a run is still in effect.
    """
    buried = write.cache.buried
    if not buried:
        return False
    found: list[Tombstone] = []
    if own := write.buried_hashes(record):
        found += write.tx.tombstones(own)
    found += _joined_tombstones(write, record, _keys(buried), holds)
    return bool(found) and not said_again(record, found)


def _joined_tombstones(
    write: Write, record: Record, keys: Iterable[str], holds: Callable[[str], bool]
) -> list[Tombstone]:
    """Return the tombstones that recognise this record under the keys of joined memories."""
    found: list[Tombstone] = []
    for key in keys:
        theirs = [one for one in tombstone_hashes(record, bytes.fromhex(key)) if one in write.cache.buried]
        if theirs and any(holds(brought.record_id) for brought in write.tx.tombstones([_KEY + key])):
            found += write.tx.tombstones(theirs)
    return found


def said_again(record: Record, tombstones: Iterable[Tombstone]) -> bool:
    """Return True if the person themselves said it again after it was erased."""
    return is_persons(record) and all(record.created_at > tombstone.at for tombstone in tombstones)


def carried(reader: Reader, run: str, now: datetime) -> list[Tombstone]:
    """Return the tombstones of a memory with their key, for the memory it is joined with."""
    own = own_tombstones(reader)
    key = Tombstone(hash=f"{_KEY}{reader.state().secret.hex()}", record_id=run, at=now)
    return [*own, key] if own else []


def own_tombstones(reader: Reader) -> list[Tombstone]:
    """Return the tombstones of a memory without those for what went with another: that was not erased."""
    return [one for one in reader.tombstones() if not one.hash.startswith(SEPARATED)]


def keys_of(state: State, tombstones: Iterable[Tombstone]) -> list[bytes]:
    """Return the keys of a memory's tombstones: its own, and those of memories joined with it."""
    return [state.secret, *(bytes.fromhex(key) for key in _keys({one.hash for one in tombstones}))]


def _keys(buried: set[str]) -> list[str]:
    return sorted(hash.removeprefix(_KEY) for hash in buried if hash.startswith(_KEY))
