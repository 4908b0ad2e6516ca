"""What a store promises. SQLite, PostgreSQL and the in-memory store of `recollect.testing` keep it alike.

A `Store` holds many users; a `UserStore` is the part of it that belongs to one of them and can reach nobody
else's. Reading happens in a `Reader`: one consistent view. Writing happens in a `Transaction`: it sees its
own changes, it is all or nothing, and it is durable once it ended. At most one transaction of a user is open
at a time, in all processes together; what was registered with `after_commit` runs before the next may begin.

Failures are the `StoreError`s of `recollect.errors`, the same ones for every store.
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
    """Which records to find. Empty means any; by default only the latest versions of active records."""

    ids: Sequence[str] | None = None
    kinds: Sequence[str] = ()
    key: str | None = None
    categories: Sequence[str] = ()
    types: Sequence[str] = ()
    statuses: Sequence[str] = ("active",)
    tier: str | None = None
    source: str | None = None
    """The source itself, or what it begins with up to a colon: "discussion" finds "discussion:42"."""
    session: str | None = None
    chats: Sequence[str | None] | None = None
    """Only records of these chats; None among them stands for records of no chat."""
    tags: Sequence[str] = ()
    """Records that carry all of these."""
    said_from: datetime | None = None
    said_until: datetime | None = None
    """From this moment on and before that one, by when it was said or has held since."""
    changed_after: int | None = None
    """Only what changed after this sequence number."""
    alive_at: datetime | None = None
    """Leave out what has expired at this moment."""
    expired_at: datetime | None = None
    """Only what has expired at this moment."""
    valid_at: datetime | None = None
    """What held at this moment: of each record the highest version valid then, unless the record is
    archived by now. Overrides `statuses`."""
    newest_first: bool = False
    after: tuple[datetime, str] | None = None
    """The time of creation and the id of the last record seen: only what comes behind it, in the order asked for."""
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a store keeps about one user besides records."""

    user_id: str
    created_at: datetime
    seq: int = 0
    mode: str = "on"
    secret: bytes = b""
    """Keys the hashes of tombstones, so that they cannot be compared between users."""
    place: int = field(default=0, compare=False)
    """The file it was read from, if it is in one: another number says that the file was replaced."""


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
    """The versions somebody may have open in an editor, the oldest first; `memory.files.versions` says how each is
    written. Numbers only: what a version said is in the journal, and an erasure takes it out there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """All that stays of an erased record."""

    hash: str
    record_id: str
    at: datetime


LOST = "lost"
"""The operation of a journal entry that stands for one that could not be read when a database was repaired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """What a repair could not read. Everything else is in the new database."""

    aside: Path | None = None
    """The damaged data, whole."""
    lost: bool = False
    """There was data, but nothing of it is left."""
    mode: str | None = None
    has_secret: bool = False
    """Whether what the hashes of the tombstones are keyed with could be read; without it they recognise nothing."""
    all_tombstones: bool = False
    all_consents: bool = False
    missing: dict[str, int] = field(default_factory=dict)
    """How many rows are lost, by kind of record or by table."""
    uncounted: tuple[str, ...] = ()
    """Tables of which more may be missing than could be counted."""
    older: dict[str, int] = field(default_factory=dict)
    """Records of which only an earlier state may be left, by kind."""
    gaps: tuple[tuple[int, int], ...] = ()
    """Journal entries that are lost, from number to number."""
    pages: int = 0
    frames: int = 0
    """Pages of the database, and entries of its write-ahead log, that could not be read."""


@dataclass(frozen=True, slots=True)
class VectorRow:
    """What an embedder made of one version of a record. Derived: never exported, computed again if it is gone."""

    number: int
    """Ascending for each user, and never given twice: what came later has a higher one."""
    record_id: str
    version: int
    data: bytes
    """The passages one after another, each as many float16 numbers, little-endian, as the embedder has dimensions."""


class EntryFilter(TypedDict, total=False):
    """Which journal entries: behind ``after`` and before ``before``, by sequence number."""

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
    """Which tool calls: from ``since`` on and before ``until``, by time and then id; ``call`` is an id."""

    since: datetime | None
    until: datetime | None
    tool: str | None
    session: str | None
    call: str | None
    after: tuple[datetime, str] | None
    newest_first: bool
    limit: int | None


class InteractionFilter(TypedDict, total=False):
    """Which interactions: from ``since`` on and before ``until``, by time and then id.

    ``after`` is the time and id of the last one seen: only what comes behind it, in the order asked for.
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
    """Which extraction runs: from a day on, by day and then kind."""

    since: date | None
    kind: str | None
    newest_first: bool
    limit: int | None


class SessionPage(TypedDict, total=False):
    """Which conversations: behind the one that ended at ``after`` with its id; only what was stored at ``as_of``."""

    limit: Required[int]
    offset: int
    after: tuple[datetime, str] | None
    as_of: datetime | None


class Reader(Protocol):
    """One consistent view of one user's memory."""

    def state(self) -> State:
        """The user's state; for a user never written to, a fresh one with ``seq`` 0."""
        ...

    def get(self, record_id: str) -> Record | None:
        """The latest version of a record, whatever its status."""
        ...

    def find(self, query: Query) -> list[Record]:
        """The records that fit, by time of creation and then id, oldest first unless asked otherwise."""
        ...

    def scan(self) -> Iterator[Record]:
        """Every record at its latest version, whatever its status, one after another; never all in memory."""
        ...

    def changed(self, after: int) -> list[tuple[int, str]]:
        """Sequence number and record id of every change after this one, without what changed."""
        ...

    def count(self) -> dict[tuple[str, str], int]:
        """How many records there are, by kind and status; latest versions only."""
        ...

    def versions(self, record_id: str) -> list[Record]:
        """Every kept version of a record, oldest first; the last one is the latest."""
        ...

    def ids_ending(self, ending: str) -> list[str]:
        """Ids that end so; at most ten."""
        ...

    def entry(self, seq: int) -> JournalEntry | None:
        """One journal entry."""
        ...

    def entries(self, **wanted: Unpack[EntryFilter]) -> list[JournalEntry]:
        """Journal entries, by sequence number."""
        ...

    def numbers(self, record_ids: Sequence[str]) -> dict[str, int]:
        """The sequence number of the first journal entry of each of these records: an integer that stays theirs.

        A record that never was is not in it.
        """
        ...

    def file(self, name: str) -> FileState | None:
        """The last rendering of a file."""
        ...

    def files(self) -> list[FileState]:
        """The last rendering of every file, by name."""
        ...

    def tombstones(self, hashes: Sequence[str] | None = None) -> list[Tombstone]:
        """The tombstones with these hashes, or all of them."""
        ...

    def recalled(self) -> dict[str, datetime]:
        """When each record was last recalled; records never recalled are not in it."""
        ...

    def sessions(self, **page: Unpack[SessionPage]) -> list[Session]:
        """Conversations with active messages, by when the last of them was said, the latest first, and then by id."""
        ...

    def calls(self, **wanted: Unpack[CallFilter]) -> list[ToolCall]:
        """The log of tool calls."""
        ...

    def spending(self, *, since: date | None = None, until: date | None = None) -> list[Spending]:
        """What was spent from one day to another, both included, by day and then operation."""
        ...

    def consents(self) -> dict[str, datetime]:
        """What the person consented to, and when. What they withdrew is not in it."""
        ...

    def interactions(self, **wanted: Unpack[InteractionFilter]) -> list[Interaction]:
        """What was reported."""
        ...

    def last_reported(self) -> datetime | None:
        """The latest ``reported_at`` of all interactions, if there are any. One look-up."""
        ...

    def run(self, day: date, kind: str) -> ExtractionRun | None:
        """The extraction run of a day."""
        ...

    def runs(self, **wanted: Unpack[RunFilter]) -> list[ExtractionRun]:
        """Extraction runs."""
        ...

    def vectors(self, embedder: str, *, after: int = 0, limit: int | None = None) -> list[VectorRow]:
        """The vectors of this embedder with a higher number than ``after``, by number."""
        ...

    def last_vector(self, embedder: str) -> int:
        """The highest number a vector of this embedder was ever given, 0 if none. One look-up: each search asks."""
        ...

    def unembedded(self, embedder: str, *, kinds: Sequence[str], limit: int) -> list[Record]:
        """Active records of these kinds whose current version has no vector of this embedder, oldest first."""
        ...


class Transaction(Reader, Protocol):
    """A view that can change things."""

    def next_seq(self) -> int:
        """Take the next sequence number. Each number taken must be logged with one journal entry."""
        ...

    def put(self, record: Record) -> None:
        """Store a record as the latest version of its id, replacing that version."""
        ...

    def put_many(self, records: Iterable[Record]) -> None:
        """`put` for many records at once."""
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
        """Take over a whole state; only for importing into an empty memory."""
        ...

    def set_file(self, state: FileState) -> None:
        """Note what a file is about to be."""
        ...

    def drop_file(self, name: str) -> None:
        """Forget about a file that is no longer there."""
        ...

    def bury(self, tombstones: Iterable[Tombstone]) -> None:
        """Keep tombstones."""
        ...

    def set_recalled(self, moments: Mapping[str, datetime]) -> None:
        """Note when records were last recalled. No journal entry: it changes nothing about them."""
        ...

    def log_calls(self, calls: Iterable[ToolCall]) -> None:
        """Append to the log of tool calls; one whose id is there already takes its place.

        Like the ledger and the consents it takes no sequence numbers.
        """
        ...

    def drop_calls(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        """Remove the calls before a moment, those with these ids, or all; return how many there were."""
        ...

    def charge(self, spendings: Iterable[Spending]) -> None:
        """Add to what the ledger has for these days and operations."""
        ...

    def set_consent(self, name: str, given: bool, at: datetime) -> None:
        """Note that the person consents to something, or no longer does."""
        ...

    def put_interactions(self, interactions: Iterable[Interaction]) -> None:
        """Store interactions; one whose id is there already stays as it is. They take no sequence numbers."""
        ...

    def drop_interactions(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        """Remove the interactions before a moment, those with these ids, or all; return how many there were."""
        ...

    def put_run(self, run: ExtractionRun) -> None:
        """Store an extraction run in place of the one of its day and kind, and of one that has its id."""
        ...

    def drop_runs(self) -> int:
        """Remove all extraction runs, and say how many it were."""
        ...

    def put_vectors(self, embedder: str, rows: Iterable[tuple[str, int, bytes]]) -> None:
        """Store vectors (record id, version, data), each in place of the one the record had of this embedder.

        A record that is no longer there is passed over: it may have been erased while its vector was computed.
        """
        ...

    def drop_vectors(self, *, keep: str | None) -> int:
        """Remove the vectors of all embedders but this one, and say how many it were."""
        ...

    def erase(self, record_ids: Sequence[str]) -> dict[str, int]:
        """Remove all versions of these records, their vectors, and the text of their journal entries, beyond recovery.

        Returns how many versions and journal entries it was.
        """
        ...

    def redact(self, entries: Iterable[JournalEntry]) -> None:
        """Store journal entries again with less text than before, beyond recovery. They count as erased."""
        ...

    def drop_versions(self, versions: Iterable[tuple[str, int]]) -> int:
        """Remove closed versions (record id, version) of records that stay, and the vectors of these records.

        Returns how many versions it was. Vectors are made again.
        """
        ...

    def after_commit(self, hook: Callable[[], None]) -> None:
        """Run this once the transaction is durable, before another one of this user may begin."""
        ...

    pending: bool
    """Once it ended: whether what it erased is still in a log of the store, which is emptied as soon as possible."""


class UserStore(Protocol):
    """One user's part of a store."""

    user_id: str

    def exists(self) -> bool:
        """Whether anything was ever written for this user."""
        ...

    def read(self) -> AbstractContextManager[Reader]:
        """A consistent view. Never waits for a writer, never creates anything."""
        ...

    def write(self) -> AbstractContextManager[Transaction]:
        """The one open transaction of this user; an exception inside rolls it back."""
        ...

    def check(self) -> list[str]:
        """What is wrong with the stored data itself, as far as the database can tell."""
        ...

    def lost(self) -> list[str]:
        """What was acknowledged and is no longer stored, as far as the store can tell."""
        ...

    def repair(self) -> Salvage:
        """Move damaged data out of the way, whole, and begin with all of it that can be read. Not every store can."""
        ...

    def close(self) -> None:
        """Let go of files and connections; the next use opens them again."""
        ...


class Store(Protocol):
    """Where many users' memories live."""

    def user(self, user_id: str) -> UserStore:
        """One user's part. The id has been checked by the caller."""
        ...

    def users(
        self, *, tenant: str | None = None, begins: str = "", after: str = "", limit: int | None = None
    ) -> Iterator[str]:
        """The ids of everyone who has a memory here, in the order of their code points.

        Of all, or of a ``tenant``; only those that begin so (as the tenant knows them) and come ``after`` another.
        """
        ...

    def tally(self, tenant: str | None, since: date, until: date, seconds: float | None = None) -> Tally:
        """How memories were used from one day to another, both included: of a tenant's users, or of everyone's.

        A store that has to look at each user may leave some for the next time after so many ``seconds``, and says how
        many. Numbers of other days may be in it, too.
        """
        ...

    def erase_user(self, user_id: str, also: Callable[[], None] | None = None) -> dict[str, int]:
        """Remove everything of a user, and say what it was, by place. ``also`` is done before others may write."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...
