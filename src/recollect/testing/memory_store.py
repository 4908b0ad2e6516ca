"""A store in memory: the plainest implementation of the contract. It forgets everything when it is closed."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from typing import Any, TypeVar, Unpack

from recollect.errors import StoreError
from recollect.memory.chat_scope import sessions_of
from recollect.records import ExtractionRun, Interaction, JournalEntry, Record, Session, Spending, ToolCall
from recollect.store.contract import (
    CallFilter,
    EntryFilter,
    FileState,
    InteractionFilter,
    Query,
    RunFilter,
    Salvage,
    SessionPage,
    State,
    Tombstone,
    VectorRow,
)
from recollect.store.tenants import some_of
from recollect.times import utc_now
from recollect.usage_metrics import FACT_TOOLS, CallGroup, Tally, latency_step

_Key = TypeVar("_Key")
_Row = TypeVar("_Row")


@dataclass
class _Data:
    state: State
    latest: dict[str, Record] = field(default_factory=dict)
    closed: dict[tuple[str, int], Record] = field(default_factory=dict)
    journal: dict[int, JournalEntry] = field(default_factory=dict)
    files: dict[str, FileState] = field(default_factory=dict)
    tombstones: dict[tuple[str, str], Tombstone] = field(default_factory=dict)
    recalls: dict[str, datetime] = field(default_factory=dict)
    vectors: dict[tuple[str, str], VectorRow] = field(default_factory=dict)
    """By embedder and record."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The last number given, by embedder."""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    ledger: dict[tuple[date, str], Spending] = field(default_factory=dict)
    consents: dict[str, datetime] = field(default_factory=dict)
    interactions: dict[str, Interaction] = field(default_factory=dict)
    runs: dict[tuple[date, str], ExtractionRun] = field(default_factory=dict)

    def copy(self) -> _Data:
        tables = {one.name: dict(getattr(self, one.name)) for one in fields(self) if one.name != "state"}
        return _Data(self.state, **tables)


class MemoryStore:
    """All users of one process."""

    def __init__(self) -> None:
        self._users: dict[str, MemoryUser] = {}
        self._guard = threading.Lock()

    def user(self, user_id: str) -> MemoryUser:
        with self._guard:
            return self._users.setdefault(user_id, MemoryUser(user_id))

    def users(
        self, *, tenant: str | None = None, begins: str = "", after: str = "", limit: int | None = None
    ) -> Iterator[str]:
        with self._guard:
            users = list(self._users.items())
        names = sorted(user_id for user_id, user in users if user.exists())
        yield from some_of(names, tenant, begins, after, limit)

    def tally(self, tenant: str | None, since: date, until: date, seconds: float | None = None) -> Tally:
        names = list(self.users(tenant=tenant))
        calls: Counter[CallGroup] = Counter()
        talks: Counter[str] = Counter()
        facts: Counter[str] = Counter()
        episodes: Counter[str] = Counter()
        for name in names:
            with self.user(name).read() as reader:
                spoken = set()
                for one in reader.calls():
                    day = one.at.date().isoformat()
                    calls[CallGroup(day, one.tool, one.status, one.outcome, latency_step(one.latency_ms))] += 1
                    if one.session is not None:
                        spoken.add((day, one.session))
                        facts[day] += one.outcome == "written" and one.tool in FACT_TOOLS
                talks.update(day for day, _ in spoken)
                every = reader.find(Query(kinds=("episode",), statuses=()))
                episodes.update(one.created_at.date().isoformat() for one in every)
        return Tally(calls=calls, talks=talks, facts=facts, episodes=episodes, users=len(names))

    def erase_user(self, user_id: str, also: Callable[[], None] | None = None) -> dict[str, int]:
        return self.user(user_id).erase_all(also)

    def close(self) -> None:
        with self._guard:
            self._users.clear()


class MemoryUser:
    """One user's part: a value that a transaction copies and then swaps."""

    def __init__(self, user_id: str) -> None:
        self.user_id = user_id
        self._data: _Data | None = None
        self._guard = threading.RLock()

    def exists(self) -> bool:
        return self._data is not None

    @contextmanager
    def read(self) -> Iterator[MemoryReader]:
        yield MemoryReader(self._data or _Data(State(user_id=self.user_id, created_at=utc_now())))

    @contextmanager
    def write(self) -> Iterator[MemoryTransaction]:
        with self._guard:
            fresh = State(user_id=self.user_id, created_at=utc_now(), secret=secrets.token_bytes(16))
            transaction = MemoryTransaction(self._data.copy() if self._data else _Data(fresh))
            yield transaction
            self._data = transaction.data
            for hook in transaction.hooks:
                hook()

    def rehearsal(self) -> AbstractContextManager[MemoryUser]:
        return nullcontext(self)

    def check(self) -> list[str]:
        return []

    def lost(self) -> list[str]:
        return []

    def repair(self) -> Salvage:
        raise StoreError("a memory without files cannot be rebuilt from them; restore it from an export or a backup")

    def close(self) -> None:
        pass

    def erase_all(self, also: Callable[[], None] | None = None) -> dict[str, int]:
        """Drop everything."""
        with self._guard:
            data, self._data = self._data, None
            if also is not None:
                also()
        return {"records": len(data.latest), "journal": len(data.journal)} if data else {"records": 0, "journal": 0}


class MemoryReader:
    """A view of one user's data."""

    def __init__(self, data: _Data) -> None:
        self.data = data

    def state(self) -> State:
        return self.data.state

    def get(self, record_id: str) -> Record | None:
        return self.data.latest.get(record_id)

    def find(self, query: Query) -> list[Record]:
        pool = list(self.data.latest.values()) if query.valid_at is None else self._held_at(query.valid_at)
        wanted = {one.name: getattr(query, one.name) for one in fields(query)}
        if query.replaced:
            pool = [*self.data.closed.values(), *self.data.latest.values()]
            wanted["statuses"] = ("superseded",)
        elif query.valid_at is not None:
            wanted["statuses"] = None
        by_seq = query.changed_after is not None
        order = (lambda r: r.seq) if by_seq else (lambda r: (r.created_at, r.id, r.version))
        return _selected(_behind(pool, wanted, lambda r: (r.created_at, r.id)), _RECORDS, order, wanted)

    def _held_at(self, moment: datetime) -> list[Record]:
        held: dict[str, Record] = {}
        for record in [*self.data.closed.values(), *self.data.latest.values()]:
            latest = self.data.latest[record.id]
            if (
                "archived" not in (record.status, latest.status)
                and record.valid_from <= moment
                and (record.valid_until is None or record.valid_until > moment)
                and (record.id not in held or held[record.id].version < record.version)
            ):
                held[record.id] = record
        return list(held.values())

    def scan(self) -> Iterator[Record]:
        return iter(list(self.data.latest.values()))

    def changed(self, after: int) -> list[tuple[int, str]]:
        return [(entry.seq, entry.record_id) for entry in self.entries(after=after)]

    def count(self) -> dict[tuple[str, str], int]:
        return dict(Counter((record.kind, record.status) for record in self.data.latest.values()))

    def versions(self, record_id: str) -> list[Record]:
        found = [record for (owner, _), record in self.data.closed.items() if owner == record_id]
        if latest := self.data.latest.get(record_id):
            found.append(latest)
        return sorted(found, key=lambda record: record.version)

    def ids_ending(self, ending: str) -> list[str]:
        return sorted(record_id for record_id in self.data.latest if record_id.endswith(ending))[:10]

    def entry(self, seq: int) -> JournalEntry | None:
        return self.data.journal.get(seq)

    def entries(self, **wanted: Unpack[EntryFilter]) -> list[JournalEntry]:
        return _selected(self.data.journal.values(), _ENTRIES, lambda entry: entry.seq, wanted)

    def numbers(self, record_ids: Sequence[str]) -> dict[str, int]:
        wanted = set(record_ids)
        found: dict[str, int] = {}
        for seq, entry in sorted(self.data.journal.items()):
            if entry.record_id in wanted:
                found.setdefault(entry.record_id, seq)
        return found

    def file(self, name: str) -> FileState | None:
        return self.data.files.get(name)

    def files(self) -> list[FileState]:
        return [state for _, state in sorted(self.data.files.items())]

    def tombstones(self, hashes: Sequence[str] | None = None) -> list[Tombstone]:
        found = [t for t in self.data.tombstones.values() if hashes is None or t.hash in hashes]
        return sorted(found, key=lambda t: (t.record_id, t.hash))

    def recalled(self) -> dict[str, datetime]:
        return dict(self.data.recalls)

    def sessions(self, **page: Unpack[SessionPage]) -> list[Session]:
        return sessions_of(self.find(Query(kinds=("message",))), **page)

    def calls(self, **wanted: Unpack[CallFilter]) -> list[ToolCall]:
        return _selected(_behind(self.data.calls.values(), wanted, _place), _CALLS, _place, wanted)

    def spending(self, *, since: date | None = None, until: date | None = None) -> list[Spending]:
        return [
            spending
            for (day, _), spending in sorted(self.data.ledger.items())
            if (since is None or day >= since) and (until is None or day <= until)
        ]

    def consents(self) -> dict[str, datetime]:
        return dict(sorted(self.data.consents.items()))

    def interactions(self, **wanted: Unpack[InteractionFilter]) -> list[Interaction]:
        return _selected(_behind(self.data.interactions.values(), wanted, _place), _INTERACTIONS, _place, wanted)

    def last_reported(self) -> datetime | None:
        return max(map(_reported, self.data.interactions.values()), default=None)

    def run(self, day: date, kind: str) -> ExtractionRun | None:
        return self.data.runs.get((day, kind))

    def runs(self, **wanted: Unpack[RunFilter]) -> list[ExtractionRun]:
        return _selected(self.data.runs.values(), _RUNS, lambda run: (run.day, run.kind), wanted)

    def vectors(self, embedder: str, *, after: int = 0, limit: int | None = None) -> list[VectorRow]:
        found = [row for (owner, _), row in self.data.vectors.items() if owner == embedder and row.number > after]
        return sorted(found, key=lambda row: row.number)[:limit]

    def last_vector(self, embedder: str) -> int:
        return self.data.numbers.get(embedder, 0)

    def unembedded(self, embedder: str, *, kinds: Sequence[str], limit: int) -> list[Record]:
        rows = self.data.vectors
        found = [
            record
            for record in (self.find(Query(kinds=kinds)) if kinds else [])
            if (row := rows.get((embedder, record.id))) is None or row.version != record.version
        ]
        return found[:limit]


class MemoryTransaction(MemoryReader):
    """A copy that takes the place of the original when it ends well."""

    def __init__(self, data: _Data) -> None:
        super().__init__(data)
        self.hooks: list[Callable[[], None]] = []
        self.pending = False

    def next_seq(self) -> int:
        self.data.state = replace(self.data.state, seq=self.data.state.seq + 1)
        return self.data.state.seq

    def put(self, record: Record) -> None:
        self.data.latest[record.id] = record

    def put_many(self, records: Iterable[Record]) -> None:
        for record in records:
            self.put(record)

    def keep(self, record: Record) -> None:
        self.data.closed[record.id, record.version] = record

    def log(self, entries: Iterable[JournalEntry]) -> None:
        for entry in entries:
            self.data.journal[entry.seq] = entry

    def set_mode(self, mode: str) -> None:
        self.data.state = replace(self.data.state, mode=mode)

    def set_state(self, state: State) -> None:
        self.data.state = replace(state, user_id=self.data.state.user_id)

    def set_file(self, state: FileState) -> None:
        self.data.files[state.name] = state

    def drop_file(self, name: str) -> None:
        self.data.files.pop(name, None)

    def bury(self, tombstones: Iterable[Tombstone]) -> None:
        for tombstone in tombstones:
            self.data.tombstones.setdefault((tombstone.hash, tombstone.record_id), tombstone)

    def set_recalled(self, moments: Mapping[str, datetime]) -> None:
        self.data.recalls.update(moments)

    def log_calls(self, calls: Iterable[ToolCall]) -> None:
        self.data.calls.update((call.id, call) for call in calls)

    def drop_calls(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        return _drop(self.data.calls, before, ids)

    def charge(self, spendings: Iterable[Spending]) -> None:
        for more in spendings:
            known = self.data.ledger.get((more.day, more.operation), Spending(day=more.day, operation=more.operation))
            self.data.ledger[more.day, more.operation] = replace(
                known,
                calls=known.calls + more.calls,
                tokens_in=known.tokens_in + more.tokens_in,
                tokens_out=known.tokens_out + more.tokens_out,
                cost=known.cost + more.cost,
            )

    def set_consent(self, name: str, given: bool, at: datetime) -> None:
        if given:
            self.data.consents[name] = at
        else:
            self.data.consents.pop(name, None)

    def put_interactions(self, interactions: Iterable[Interaction]) -> None:
        for one in interactions:
            self.data.interactions.setdefault(one.id, replace(one, reported_at=_reported(one)))

    def drop_interactions(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        return _drop(self.data.interactions, before, ids)

    def put_run(self, run: ExtractionRun) -> None:
        self.data.runs = {key: known for key, known in self.data.runs.items() if known.id != run.id}
        self.data.runs[run.day, run.kind] = run

    def drop_runs(self) -> int:
        dropped, self.data.runs = len(self.data.runs), {}
        return dropped

    def put_vectors(self, embedder: str, rows: Iterable[tuple[str, int, bytes]]) -> None:
        last = max(self.data.numbers.values(), default=0)
        for number, (record_id, version, data) in enumerate(rows, last + 1):
            self.data.numbers[embedder] = number
            if record_id in self.data.latest:
                self.data.vectors[embedder, record_id] = VectorRow(number, record_id, version, data)

    def drop_vectors(self, *, keep: str | None) -> int:
        return _remove(self.data.vectors, lambda key: key[0] != keep)

    def erase(self, record_ids: Sequence[str]) -> dict[str, int]:
        gone = set(record_ids)
        _remove(self.data.recalls, gone.__contains__)
        _remove(self.data.vectors, lambda key: key[1] in gone)
        versions = _remove(self.data.closed, lambda key: key[0] in gone) + _remove(self.data.latest, gone.__contains__)
        scrubbed = [
            entry
            for entry in self.data.journal.values()
            if entry.record_id in gone
            and (not entry.erased or entry.before or entry.after or entry.reason or entry.source)
        ]
        for entry in scrubbed:
            self.data.journal[entry.seq] = replace(
                entry, before=None, after=None, reason=None, source=None, call=None, erased=True
            )
        return {"versions": versions, "journal": len(scrubbed)}

    def redact(self, entries: Iterable[JournalEntry]) -> None:
        for entry in entries:
            self.data.journal[entry.seq] = replace(entry, erased=True)

    def drop_versions(self, versions: Iterable[tuple[str, int]]) -> int:
        keys = list(versions)
        gone = {record_id for record_id, _ in keys}
        _remove(self.data.vectors, lambda key: key[1] in gone)
        return sum(self.data.closed.pop(key, None) is not None for key in keys)

    def after_commit(self, hook: Callable[[], None]) -> None:
        self.hooks.append(hook)


def _remove(table: dict[_Key, Any], is_gone: Callable[[_Key], bool]) -> int:
    """Remove entries by their key, and return how many there were."""
    gone = [key for key in table if is_gone(key)]
    for key in gone:
        del table[key]
    return len(gone)


def _drop(table: dict[str, Any], before: datetime | None, ids: Sequence[str] | None) -> int:
    """Remove what has one of these ids, or else what is older than a moment, or else everything."""
    if ids is not None:
        return _remove(table, set(ids).__contains__)
    return _remove(table, lambda key: before is None or table[key].at < before)


def _reported(one: Interaction) -> datetime:
    return one.reported_at or one.at


_Test = Callable[[Any, Any], bool]
"""Whether a row fits what a filter was given."""


def _equal(name: str) -> _Test:
    return lambda row, value: getattr(row, name) == value


def _any(name: str) -> _Test:
    return lambda row, values: not values or getattr(row, name) in values


_ENTRIES: dict[str, _Test] = {
    "after": lambda entry, seq: entry.seq > seq,
    "before": lambda entry, seq: entry.seq < seq,
    **{name: _equal(name) for name in ("record_id", "run", "call", "undoes")},
}
_WHEN: dict[str, _Test] = {"since": lambda row, at: row.at >= at, "until": lambda row, at: row.at < at}
_CALLS = _WHEN | {"tool": _equal("tool"), "session": _equal("session"), "call": _equal("id")}
_INTERACTIONS = _WHEN | {
    "kinds": _any("kind"),
    "session": _equal("session"),
    "ids": lambda row, ids: row.id in ids,
    "reported_after": lambda row, at: _reported(row) > at,
}
_RUNS: dict[str, _Test] = {"since": lambda run, day: run.day >= day, "kind": _equal("kind")}
_RECORDS: dict[str, _Test] = {
    **{name: _equal(name) for name in ("key", "tier", "session")},
    "statuses": _any("status"),
    "kinds": _any("kind"),
    "categories": _any("category"),
    "types": _any("type"),
    "ids": lambda record, ids: record.id in ids,
    "chats": lambda record, chats: record.chat in chats,
    "source": lambda record, source: record.source == source or record.source.startswith(source + ":"),
    "tags": lambda record, tags: all(tag in record.tags for tag in tags),
    "said_from": lambda record, at: record.valid_from >= at,
    "said_until": lambda record, at: record.valid_from < at,
    "changed_after": lambda record, seq: record.seq > seq,
    "alive_at": lambda record, at: record.expires_at is None or record.expires_at > at,
    "expired_at": lambda record, at: record.expires_at is not None and record.expires_at <= at,
}


def _selected(
    rows: Iterable[_Row], tests: Mapping[str, _Test], order: Callable[[_Row], Any], wanted: Mapping[str, Any]
) -> list[_Row]:
    """Return the rows that fit every filter that was given: in order, and of these a page."""
    given = [(test, value) for name, test in tests.items() if (value := wanted.get(name)) is not None]
    found = [row for row in rows if all(test(row, value) for test, value in given)]
    found.sort(key=order, reverse=wanted.get("newest_first", False))
    begin, limit = wanted.get("offset", 0), wanted.get("limit")
    return found[begin : None if limit is None else begin + limit]


def _place(row: ToolCall | Interaction) -> tuple[datetime, str]:
    return row.at, row.id


def _behind(rows: Iterable[_Row], wanted: Mapping[str, Any], place: Callable[[_Row], Any]) -> Iterable[_Row]:
    """Return what comes behind the last row that was seen, in the order asked for."""
    after, newest_first = wanted.get("after"), wanted.get("newest_first", False)
    return (row for row in rows if after is None or (place(row) < after if newest_first else place(row) > after))
