"""Views of one user's rows in PostgreSQL: a reader, and the one open transaction."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.records import ExtractionRun, Interaction, JournalEntry, Record, Session, Spending, ToolCall
from recollect.store.contract import FileState, Query, State, Tombstone, VectorRow
from recollect.store.postgres_words import KeepsWords, ReadsWords, conditions_of
from recollect.store.rows import (
    call_from_row,
    call_to_row,
    dump_record,
    entry_from_row,
    entry_to_row,
    file_from_row,
    file_to_row,
    from_row,
    interaction_from_row,
    interaction_to_row,
    load_queries,
    run_from_row,
    run_to_row,
    spending_from_row,
    spending_to_row,
    to_row,
)
from recollect.times import from_text, to_text, utc_now

if TYPE_CHECKING:
    from psycopg import Connection

_SQL: dict[str, Any] = load_queries(Path(__file__).parent / "postgres.sql")
_SCAN_PAGE = 2000


class PostgresReader(ReadsWords):
    """A view of one user's rows; without a connection, of none."""

    def _fitting(
        self,
        name: str,
        wanted: Mapping[str, Any],
        order: Sequence[str],
        newest_first: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Any]:
        """Return the rows of a named query that match the conditions; those without a value are ignored."""
        given = {condition: value for condition, value in wanted.items() if value is not None}
        by = ", ".join(f"{column} DESC" if newest_first else column for column in order)
        sql = " AND ".join([_SQL[name], *given]) + f" ORDER BY {by} LIMIT %s OFFSET %s"
        values = [value for each in given.values() for value in (each if isinstance(each, tuple) else (each,))]
        return self._rows(sql, *values, limit, offset)

    def state(self) -> State:
        rows = self._rows(_SQL["state"])
        return _state(rows[0], self._user_id) if rows else State(user_id=self._user_id, created_at=utc_now())

    def get(self, record_id: str) -> Record | None:
        rows = self._rows(_SQL["find"] + " AND id = %s AND latest", record_id)
        return from_row(rows[0]) if rows else None

    def find(self, query: Query) -> list[Record]:
        conditions, values = conditions_of(query)
        first = "created_at" if query.changed_after is None else "seq"
        down = " DESC" if query.newest_first else ""
        order = f"ORDER BY {first}{down}, id{down}, version{down} LIMIT %s OFFSET %s"
        sql = " ".join([_SQL["find"], *(f"AND {condition}" for condition in conditions), order])
        return [from_row(row) for row in self._rows(sql, *values, query.limit, query.offset)]

    def scan(self) -> Iterator[Record]:
        last = 0
        while rows := self._rows(_SQL["find"] + " AND latest AND seq > %s ORDER BY seq LIMIT %s", last, _SCAN_PAGE):
            for row in rows:
                record = from_row(row)
                yield record
            last = record.seq

    def changed(self, after: int) -> list[tuple[int, str]]:
        return self._rows(_SQL["changed"], after)

    def count(self) -> dict[tuple[str, str], int]:
        return {(kind, status): number for kind, status, number in self._rows(_SQL["count"])}

    def versions(self, record_id: str) -> list[Record]:
        return [from_row(row) for row in self._rows(_SQL["find"] + " AND id = %s ORDER BY version", record_id)]

    def ids_ending(self, ending: str) -> list[str]:
        return [row[0] for row in self._rows(_SQL["ids_ending"], ending, ending)]

    def entry(self, seq: int) -> JournalEntry | None:
        rows = self._rows(_SQL["entries"] + " AND seq = %s", seq)
        return entry_from_row(rows[0]) if rows else None

    def entries(
        self,
        *,
        record_id: str | None = None,
        run: str | None = None,
        call: str | None = None,
        undoes: int | None = None,
        after: int = 0,
        before: int | None = None,
        newest_first: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[JournalEntry]:
        same = {"record_id = %s": record_id, "run = %s": run, "call = %s": call, "undoes = %s": undoes}
        wanted = {"seq > %s": after, "seq < %s": before, **same}
        return [entry_from_row(row) for row in self._fitting("entries", wanted, ("seq",), newest_first, limit, offset)]

    def numbers(self, record_ids: Sequence[str]) -> dict[str, int]:
        return dict(self._rows(_SQL["numbers"], list(record_ids)))

    def file(self, name: str) -> FileState | None:
        rows = self._rows(_SQL["files"] + " AND name = %s", name)
        return file_from_row(rows[0]) if rows else None

    def files(self) -> list[FileState]:
        return [file_from_row(row) for row in self._rows(_SQL["files"] + " ORDER BY name")]

    def tombstones(self, hashes: Sequence[str] | None = None) -> list[Tombstone]:
        sql, values = _SQL["tombstones"], []
        if hashes is not None:
            sql += " AND hash = ANY(%s)"
            values = [list(hashes)]
        rows = self._rows(sql + " ORDER BY record_id, hash", *values)
        return [Tombstone(hash=row[0], record_id=row[1], at=from_text(row[2])) for row in rows]

    def recalled(self) -> dict[str, datetime]:
        return {record_id: from_text(at) for record_id, at in self._rows(_SQL["recalls"])}

    def sessions(
        self,
        *,
        limit: int,
        offset: int = 0,
        after: tuple[datetime, str] | None = None,
        as_of: datetime | None = None,
    ) -> list[Session]:
        ended, session = ("infinity", "") if after is None else (to_text(after[0]), after[1])
        stored = "infinity" if as_of is None else to_text(as_of)
        rows = self._named("sessions", ended=ended, session=session, stored=stored, limit=limit, offset=offset)
        return [Session(id=row[0], messages=row[1], began=from_text(row[2]), ended=from_text(row[3])) for row in rows]

    def calls(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        tool: str | None = None,
        session: str | None = None,
        call: str | None = None,
        after: tuple[datetime, str] | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[ToolCall]:
        wanted = {
            "at >= %s": None if since is None else to_text(since),
            "at < %s": None if until is None else to_text(until),
            "tool = %s": tool,
            "session = %s": session,
            "id = %s": call,
            f"(at, id) {'<' if newest_first else '>'} (%s::timestamptz, %s)": _place(after),
        }
        return [call_from_row(row) for row in self._fitting("calls", wanted, ("at", "id"), newest_first, limit)]

    def spending(self, *, since: date | None = None, until: date | None = None) -> list[Spending]:
        wanted = {"day >= %s": since, "day <= %s": until}
        rows = self._fitting("spending", wanted, ("memory_spending.day", "operation"))
        return [spending_from_row(row) for row in rows]

    def consents(self) -> dict[str, datetime]:
        return {name: from_text(at) for name, at in self._rows(_SQL["consents"])}

    def interactions(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        kinds: Sequence[str] = (),
        session: str | None = None,
        ids: Sequence[str] | None = None,
        after: tuple[datetime, str] | None = None,
        reported_after: datetime | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[Interaction]:
        wanted: dict[str, Any] = {
            "at >= %s": None if since is None else to_text(since),
            "at < %s": None if until is None else to_text(until),
            "reported_at > %s": None if reported_after is None else to_text(reported_after),
            "kind = ANY(%s)": list(kinds) or None,
            "session = %s": session,
            "id = ANY(%s)": None if ids is None else list(ids),
            f"(at, id) {'<' if newest_first else '>'} (%s::timestamptz, %s)": _place(after),
        }
        rows = self._fitting("interactions", wanted, ("at", "id"), newest_first, limit)
        return [interaction_from_row(row) for row in rows]

    def last_reported(self) -> datetime | None:
        rows = self._rows(_SQL["last_reported"])
        return from_text(rows[0][0]) if rows and rows[0][0] is not None else None

    def run(self, day: date, kind: str) -> ExtractionRun | None:
        rows = self._rows(_SQL["runs"] + " AND run_date = %s AND kind = %s", day, kind)
        return run_from_row(rows[0]) if rows else None

    def runs(
        self,
        *,
        since: date | None = None,
        kind: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[ExtractionRun]:
        wanted = {"run_date >= %s": since, "kind = %s": kind}
        rows = self._fitting("runs", wanted, ("memory_extraction_runs.run_date", "kind"), newest_first, limit)
        return [run_from_row(row) for row in rows]

    def vectors(self, embedder: str, *, after: int = 0, limit: int | None = None) -> list[VectorRow]:
        return [VectorRow(*row) for row in self._rows(_SQL["vectors"], embedder, after, limit)]

    def last_vector(self, embedder: str) -> int:
        rows = self._rows(_SQL["last_vector"], embedder)
        return rows[0][0] if rows else 0

    def unembedded(self, embedder: str, *, kinds: Sequence[str], limit: int) -> list[Record]:
        if not kinds:
            return []
        conditions, values = conditions_of(Query(kinds=kinds))
        conditions.append(_SQL["unembedded"])
        order = "ORDER BY created_at, id LIMIT %s"
        sql = " ".join([_SQL["find"], *(f"AND {condition}" for condition in conditions), order])
        return [from_row(row) for row in self._rows(sql, *values, embedder, limit)]


class PostgresTransaction(PostgresReader, KeepsWords):
    db: Connection

    def __init__(self, db: Connection, user_id: str, hooks: list[Callable[[], None]]) -> None:
        super().__init__(db, user_id)
        self._hooks = hooks
        self.pending = False
        rows = self._rows(_SQL["state"])
        if rows:
            self._state = _state(rows[0], user_id)
        else:
            self._state = State(user_id=user_id, created_at=utc_now(), secret=secrets.token_bytes(16))
            self._change_user("create_state", self._state)
            # an application's row may say that memory is off
            self._state = _state(self._rows(_SQL["state"])[0], user_id)
        self._seq = self._state.seq

    def state(self) -> State:
        return self._state

    def next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def put(self, record: Record) -> None:
        if record.version > 1:
            self.db.execute(_SQL["drop_latest"], (self._user_id, record.id, record.version))
        self.db.execute(_SQL["put"], self._row(record, latest=True))

    def put_many(self, records: Iterable[Record]) -> None:
        records = list(records)
        older = [(self._user_id, record.id, record.version) for record in records if record.version > 1]
        if older:
            self._each("drop_latest", older)
        self._each("put", (self._row(record, latest=True) for record in records))

    def keep(self, record: Record) -> None:
        self.db.execute(_SQL["put"], self._row(record, latest=False))

    def log(self, entries: Iterable[JournalEntry]) -> None:
        self._each("log", ((self._user_id, *entry_to_row(entry)) for entry in entries))

    def set_mode(self, mode: str) -> None:
        self._state = replace(self._state, mode=mode)
        self._change_user("set_mode", self._state)

    def set_state(self, state: State) -> None:
        self._state = replace(state, user_id=self._user_id)
        self._seq = state.seq
        self._change_user("set_state", self._state)

    def set_file(self, state: FileState) -> None:
        self.db.execute(_SQL["set_file"], (self._user_id, *file_to_row(state)))

    def drop_file(self, name: str) -> None:
        self.db.execute(_SQL["drop_file"], (self._user_id, name))

    def bury(self, tombstones: Iterable[Tombstone]) -> None:
        self._each("bury", ((self._user_id, t.hash, t.record_id, to_text(t.at)) for t in tombstones))

    def set_recalled(self, moments: Mapping[str, datetime]) -> None:
        self._each("set_recall", ((self._user_id, record_id, to_text(at)) for record_id, at in moments.items()))

    def log_calls(self, calls: Iterable[ToolCall]) -> None:
        self._each("log_call", ((self._user_id, *call_to_row(call)) for call in calls))

    def drop_calls(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        if ids is not None:
            return int(self._rows(_SQL["erase_calls"], list(ids))[0][0])
        [(number,)] = self._rows(_SQL["drop_calls"], "infinity" if before is None else to_text(before))
        return int(number)

    def charge(self, spendings: Iterable[Spending]) -> None:
        self._each("charge", ((self._user_id, *spending_to_row(spending)) for spending in spendings))

    def set_consent(self, name: str, given: bool, at: datetime) -> None:
        if given:
            self.db.execute(_SQL["give_consent"], (self._user_id, name, to_text(at)))
        else:
            self.db.execute(_SQL["withdraw_consent"], (self._user_id, name))

    def put_interactions(self, interactions: Iterable[Interaction]) -> None:
        self._each("put_interaction", ((self._user_id, *interaction_to_row(one)) for one in interactions))

    def drop_interactions(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        if ids is not None:
            return int(self._rows(_SQL["erase_interactions"], list(ids))[0][0])
        [(number,)] = self._rows(_SQL["drop_interactions"], "infinity" if before is None else to_text(before))
        return int(number)

    def put_run(self, run: ExtractionRun) -> None:
        self.db.execute(_SQL["drop_run"], (self._user_id, run.id, run.day, run.kind))
        self.db.execute(_SQL["put_run"], (self._user_id, *run_to_row(run)))
        if run.status == "completed":
            self.db.execute(_SQL["set_last_extracted"], {"user_id": self._user_id})

    def drop_runs(self) -> int:
        [(number,)] = self._rows(_SQL["drop_runs"])
        self.db.execute(_SQL["set_last_extracted"], {"user_id": self._user_id})
        return int(number)

    def put_vectors(self, embedder: str, rows: Iterable[tuple[str, int, bytes]]) -> None:
        [(last,)] = self._rows(_SQL["last_number"])
        numbered = list(enumerate(rows, last + 1))
        if numbered:
            self.db.execute(_SQL["set_embedder"], (self._user_id, embedder, numbered[-1][0]))
            values = [
                {"user_id": self._user_id, "embedder": embedder, "number": n, "record_id": i, "version": v, "data": d}
                for n, (i, v, d) in numbered
            ]
            with self.db.cursor() as cursor:
                cursor.executemany(_SQL["put_vector"], values)

    def drop_vectors(self, *, keep: str | None) -> int:
        [(number,)] = self._rows(_SQL["drop_vectors"], keep)
        return int(number)

    def erase(self, record_ids: Sequence[str]) -> dict[str, int]:
        values = {"user_id": self._user_id, "ids": list(record_ids)}
        words = self.drop_words(record_ids)
        versions, journal = self.db.execute(_SQL["erase"], values).fetchone() or (0, 0)
        return {"versions": versions, "journal": journal} | ({"words": words} if words else {})

    def redact(self, entries: Iterable[JournalEntry]) -> None:
        rows = [
            (dump_record(one.before), dump_record(one.after), one.reason, one.source, self._user_id, one.seq)
            for one in entries
        ]
        self._each("redact", rows)

    def drop_versions(self, versions: Iterable[tuple[str, int]]) -> int:
        keys = list(versions)
        self.db.execute(_SQL["erase_vectors"], (self._user_id, [record_id for record_id, _ in keys]))
        return sum(int(self._rows(_SQL["drop_version"], *key)[0][0]) for key in keys)

    def after_commit(self, hook: Callable[[], None]) -> None:
        self._hooks.append(hook)

    def finish(self) -> None:
        """Store the last sequence number taken."""
        if self._seq != self._state.seq:
            self._change_user("set_seq", replace(self._state, seq=self._seq))

    def _change_user(self, name: str, state: State) -> None:
        values = {"user_id": self._user_id, "seq": state.seq, "mode": state.mode, "secret": state.secret}
        self.db.execute(_SQL[name], {**values, "created_at": to_text(state.created_at)})

    def _row(self, record: Record, *, latest: bool) -> tuple[Any, ...]:
        return (self._user_id, latest, list(record.tags), *to_row(record))

    def _each(self, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
        values = list(rows)  # making them may read from the database, which a running statement forbids
        with self.db.cursor() as cursor:
            cursor.executemany(_SQL[name], values)


def _state(row: tuple[Any, ...], user_id: str) -> State:
    return State(user_id=user_id, created_at=from_text(row[0]), seq=row[1], mode=row[2], secret=row[3])


def _place(after: tuple[datetime, str] | None) -> tuple[str, str] | None:
    return None if after is None else (to_text(after[0]), after[1])
