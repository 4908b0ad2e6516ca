"""The contract of a store. SQLite, PostgreSQL and the in-memory store of `recollect.testing` all fulfil it.

A `Store` holds many users; a `UserStore` is the part that belongs to one of them and cannot reach others. Reads use a
`Reader`: one consistent view. Writes use a `Transaction`: it sees its own changes, is all or nothing, and is durable
once it has ended. At most one transaction of a user is open at a time, in all processes together; `after_commit` hooks
run before the next may begin.

Failures are the `StoreError`s of `recollect.errors`, the same for every store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Protocol, Required, TypedDict, Unpack

from recollect.records import ExtractionRun, Interaction, JournalEntry, Record, Session, Spending, ToolCall
from recollect.usage_metrics import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search for records. Empty means any; by default only the latest versions of active records."""

    ids: Sequence[str] | None = None
    kinds: Sequence[str] = ()
    key: str | None = None
    categories: Sequence[str] = ()
    types: Sequence[str] = ()
    statuses: Sequence[str] = ("active",)
    tier: str | None = None
    source: str | None = None
    """The source itself, or its part before a colon: "discussion" finds "discussion:42"."""
    session: str | None = None
    chats: Sequence[str | None] | None = None
    """Only records of these chats; None among them stands for records of no chat."""
    tags: Sequence[str] = ()
    """Only records with all of these tags."""
    said_from: datetime | None = None
    said_until: datetime | None = None
    """From this moment on and before that one, by when it was said or began to hold."""
    changed_after: int | None = None
    """Only what changed after this sequence number."""
    alive_at: datetime | None = None
    """Leave out what has expired at this moment."""
    expired_at: datetime | None = None
    """Only what has expired at this moment."""
    valid_at: datetime | None = None
    """Only what held at this moment: the highest version valid then, unless the record is archived by now. Overrides
    `statuses`.
    """
    replaced: bool = False
    """Only what was replaced and is kept: earlier versions, and superseded records. Overrides `statuses`."""
    newest_first: bool = False
    after: tuple[datetime, str] | None = None
    """The creation time and id of the last record seen: only what comes after it, in the requested order."""
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state of one user besides records."""

    user_id: str
    created_at: datetime
    seq: int = 0
    mode: str = "on"
    secret: bytes = b""
    """The key for the hashes of tombstones, so that they cannot be compared between users."""
    place: int = field(default=0, compare=False)
    """The file it was read from, if any: another number means that the file was replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """The last rendering of a file: its fingerprint, the sequence number it shows, and the one before."""

    name: str
    fingerprint: str
    seq: int
    previous_fingerprint: str = ""
    previous_seq: int = 0
    boot: str = ""
    versions: tuple[tuple[int, ...], ...] = ()
    """The versions somebody may have open in an editor, the oldest first, written as in `memory.files.versions`. They
    are numbers only: the text of a version is in the journal, and an erasure removes it there.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """All that remains of an erased record."""

    hash: str
    record_id: str
    at: datetime


LOST = "lost"
"""The operation of a journal entry that stands for one lost in a repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """The data that a repair could not read. Everything else is in the new database."""

    aside: Path | None = None
    """The damaged data, complete."""
    lost: bool = False
    """True if there was data, but nothing of it is left."""
    mode: str | None = None
    has_secret: bool = False
    """True if the key of the tombstones' hashes could be read; without it they recognise nothing."""
    all_tombstones: bool = False
    all_consents: bool = False
    missing: dict[str, int] = field(default_factory=dict)
    """The number of lost rows, by kind of record or by table."""
    uncounted: tuple[str, ...] = ()
    """Tables of which more may be missing than could be counted."""
    older: dict[str, int] = field(default_factory=dict)
    """Records of which only an earlier state may be left, by kind."""
    gaps: tuple[tuple[int, int], ...] = ()
    """Ranges of lost journal entries."""
    pages: int = 0
    frames: int = 0
    """Pages of the database, and frames of its write-ahead log, that could not be read."""


@dataclass(frozen=True, slots=True)
class VectorRow:
    """The vectors of one version of a record. Derived: never exported, computed again if lost."""

    number: int
    """Ascending for each user and never reused: later rows have higher numbers."""
    record_id: str
    version: int
    data: bytes
    """The vectors of the passages, one after another, each as little-endian float16."""


class EntryFilter(TypedDict, total=False):
    """Selects journal entries by sequence number, after ``after`` and before ``before``."""

    record_id: str | None
    run: str | None
    call: str | None
    undoes: int | None
    after: int
    before: int | None
    newest_first: bool
    limit: int | None
    offset: int


class CallFilter(TypedDict, total=False):
    """Selects tool calls from ``since`` on and before ``until``, by time and then id; ``call`` is an id."""

    since: datetime | None
    until: datetime | None
    tool: str | None
    session: str | None
    call: str | None
    after: tuple[datetime, str] | None
    newest_first: bool
    limit: int | None


class InteractionFilter(TypedDict, total=False):
    """Selects interactions from ``since`` on and before ``until``, by time and then id.

    ``after`` is the time and id of the last one seen: only what comes after it, in the requested order.
    """

    since: datetime | None
    until: datetime | None
    kinds: Sequence[str]
    session: str | None
    ids: Sequence[str] | None
    after: tuple[datetime, str] | None
    reported_after: datetime | None
    newest_first: bool
    limit: int | None


class RunFilter(TypedDict, total=False):
    """Selects extraction runs from a day on, by day and then kind."""

    since: date | None
    kind: str | None
    newest_first: bool
    limit: int | None


class SessionPage(TypedDict, total=False):
    """Selects sessions after the one with this end and id; only what was stored at ``as_of`` counts."""

    limit: Required[int]
    offset: int
    after: tuple[datetime, str] | None
    as_of: datetime | None


class Reader(Protocol):
    """One consistent view of one user's memory."""

    def state(self) -> State:
        """Return the user's state; for a user never written to, a fresh one with ``seq`` 0."""
        ...

    def get(self, record_id: str) -> Record | None:
        """Return the latest version of a record, whatever its status."""
        ...

    def find(self, query: Query) -> list[Record]:
        """Return matching records by creation time and then id, by default oldest first."""
        ...

    def scan(self) -> Iterator[Record]:
        """Iterate over every record at its latest version, whatever its status, without loading all of them."""
        ...

    def changed(self, after: int) -> list[tuple[int, str]]:
        """Return sequence number and record id of every change after this one."""
        ...

    def count(self) -> dict[tuple[str, str], int]:
        """Count records by kind and status; latest versions only."""
        ...

    def versions(self, record_id: str) -> list[Record]:
        """Return every kept version of a record, oldest first; the last one is the latest."""
        ...

    def ids_ending(self, ending: str) -> list[str]:
        """Return at most ten ids with this ending."""
        ...

    def entry(self, seq: int) -> JournalEntry | None:
        """Return one journal entry."""
        ...

    def entries(self, **wanted: Unpack[EntryFilter]) -> list[JournalEntry]:
        """Return journal entries by sequence number."""
        ...

    def numbers(self, record_ids: Sequence[str]) -> dict[str, int]:
        """Return the sequence number of each record's first journal entry: an integer that stays the same.

        Records that never existed are left out.
        """
        ...

    def file(self, name: str) -> FileState | None:
        """Return the last rendering of a file."""
        ...

    def files(self) -> list[FileState]:
        """Return the last rendering of every file, by name."""
        ...

    def tombstones(self, hashes: Sequence[str] | None = None) -> list[Tombstone]:
        """Return the tombstones with these hashes, or all."""
        ...

    def recalled(self) -> dict[str, datetime]:
        """Return when each record was last found by a search; others are left out."""
        ...

    def sessions(self, **page: Unpack[SessionPage]) -> list[Session]:
        """Return sessions with active messages, the latest first, by the time of their last message and then id."""
        ...

    def calls(self, **wanted: Unpack[CallFilter]) -> list[ToolCall]:
        """Return logged tool calls."""
        ...

    def spending(self, *, since: date | None = None, until: date | None = None) -> list[Spending]:
        """Return spending from one day to another, both included, by day and then operation."""
        ...

    def consents(self) -> dict[str, datetime]:
        """Return the consents given and when. Withdrawn ones are left out."""
        ...

    def interactions(self, **wanted: Unpack[InteractionFilter]) -> list[Interaction]:
        """Return interactions."""
        ...

    def last_reported(self) -> datetime | None:
        """Return the latest ``reported_at`` of all interactions, if any. A single look-up."""
        ...

    def run(self, day: date, kind: str) -> ExtractionRun | None:
        """Return the extraction run of a day."""
        ...

    def runs(self, **wanted: Unpack[RunFilter]) -> list[ExtractionRun]:
        """Return extraction runs."""
        ...

    def vectors(self, embedder: str, *, after: int = 0, limit: int | None = None) -> list[VectorRow]:
        """Return the vectors of this embedder with a number above ``after``, by number."""
        ...

    def last_vector(self, embedder: str) -> int:
        """Return the highest number ever given to a vector of this embedder, or 0. Each search asks, so it is fast."""
        ...

    def unembedded(self, embedder: str, *, kinds: Sequence[str], limit: int) -> list[Record]:
        """Return active records of these kinds whose current version has no vector of this embedder, oldest first."""
        ...


class Transaction(Reader, Protocol):
    """A view that can change data."""

    def next_seq(self) -> int:
        """Take the next sequence number. Each number taken must be logged with one journal entry."""
        ...

    def put(self, record: Record) -> None:
        """Store a record as the latest version of its id, replacing that version."""
        ...

    def put_many(self, records: Iterable[Record]) -> None:
        """Store many records at once, as `put` does."""
        ...

    def keep(self, record: Record) -> None:
        """Store a closed version beside the latest one."""
        ...

    def log(self, entries: Iterable[JournalEntry]) -> None:
        """Append journal entries; each has a number from `next_seq`."""
        ...

    def set_mode(self, mode: str) -> None:
        """Switch between on, paused and incognito."""
        ...

    def set_state(self, state: State) -> None:
        """Replace the whole state; only for importing into an empty memory."""
        ...

    def set_file(self, state: FileState) -> None:
        """Record the next rendering of a file."""
        ...

    def drop_file(self, name: str) -> None:
        """Remove the state of a file that no longer exists."""
        ...

    def bury(self, tombstones: Iterable[Tombstone]) -> None:
        """Store tombstones."""
        ...

    def set_recalled(self, moments: Mapping[str, datetime]) -> None:
        """Record when searches last found these records. No journal entry: the records do not change."""
        ...

    def log_calls(self, calls: Iterable[ToolCall]) -> None:
        """Append to the log of tool calls, replacing calls with the same id.

        Like the ledger and the consents it takes no sequence numbers.
        """
        ...

    def drop_calls(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        """Remove calls before a moment, those with these ids, or all; return their number."""
        ...

    def charge(self, spendings: Iterable[Spending]) -> None:
        """Add to the ledger for these days and operations."""
        ...

    def set_consent(self, name: str, given: bool, at: datetime) -> None:
        """Record that the person gives or withdraws a consent."""
        ...

    def put_interactions(self, interactions: Iterable[Interaction]) -> None:
        """Store interactions; one whose id is known stays as it is. They take no sequence numbers."""
        ...

    def drop_interactions(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        """Remove interactions before a moment, those with these ids, or all; return their number."""
        ...

    def put_run(self, run: ExtractionRun) -> None:
        """Store an extraction run, replacing that of its day and kind, and one with its id."""
        ...

    def drop_runs(self) -> int:
        """Remove all extraction runs; return their number."""
        ...

    def put_vectors(self, embedder: str, rows: Iterable[tuple[str, int, bytes]]) -> None:
        """Store vectors (record id, version, data), each replacing the record's previous one of this embedder.

        Records that no longer exist are skipped: they may have been erased while their vector was computed.
        """
        ...

    def drop_vectors(self, *, keep: str | None) -> int:
        """Remove the vectors of all embedders but this one; return their number."""
        ...

    def erase(self, record_ids: Sequence[str]) -> dict[str, int]:
        """Remove all versions of these records, their vectors, and the text of their journal entries, irrecoverably.

        Returns the numbers of versions and journal entries.
        """
        ...

    def redact(self, entries: Iterable[JournalEntry]) -> None:
        """Store journal entries again with less text than before, irrecoverably. They count as erased."""
        ...

    def drop_versions(self, versions: Iterable[tuple[str, int]]) -> int:
        """Remove closed versions (record id, version) of records that stay, and the vectors of these records.

        Returns the number of versions. Vectors are made again.
        """
        ...

    def after_commit(self, hook: Callable[[], None]) -> None:
        """Run a hook once the transaction is durable, before another one of this user may begin."""
        ...

    pending: bool
    """After the end: True if a log of the store still holds what was erased, until it is emptied."""


class UserStore(Protocol):
    """One user's part of a store."""

    user_id: str

    def exists(self) -> bool:
        """Return True if anything was ever written for this user."""
        ...

    def read(self) -> AbstractContextManager[Reader]:
        """Open a consistent view. Never waits for a writer, never creates anything."""
        ...

    def write(self) -> AbstractContextManager[Transaction]:
        """Open this user's only transaction; an exception inside rolls it back."""
        ...

    def rehearsal(self) -> AbstractContextManager[UserStore]:
        """Lend a store for writes that are rolled back: this one, or an empty one if those would create this one."""
        ...

    def check(self) -> list[str]:
        """Return problems of the stored data itself, as far as the database can tell."""
        ...

    def lost(self) -> list[str]:
        """Return what was acknowledged and is no longer stored, as far as the store can tell."""
        ...

    def repair(self) -> Salvage:
        """Move damaged data aside, complete, and start with everything readable. Not every store can."""
        ...

    def close(self) -> None:
        """Release files and connections; the next use opens them again."""
        ...


class Store(Protocol):
    """The memories of many users."""

    def user(self, user_id: str) -> UserStore:
        """Return one user's part. The caller has checked the id."""
        ...

    def users(
        self, *, tenant: str | None = None, begins: str = "", after: str = "", limit: int | None = None
    ) -> Iterator[str]:
        """Iterate over the ids of all users who have a memory here, in the order of their code points.

        ``tenant`` limits them to one tenant, ``begins`` to a prefix (as the tenant knows them), ``after`` to later
        ones.
        """
        ...

    def tally(self, tenant: str | None, since: date, until: date, seconds: float | None = None) -> Tally:
        """Return usage from one day to another, both included: of a tenant's users, or of everyone's.

        A store that must read each user may stop after ``seconds`` and report how many are left for the next time.
        Numbers of other days may be included.
        """
        ...

    def erase_user(self, user_id: str, also: Callable[[], None] | None = None) -> dict[str, int]:
        """Remove everything of a user; return what it was, by place. ``also`` runs before others may write."""
        ...

    def close(self) -> None: ...
