"""Views of one user's SQLite database: a reader, and the one open transaction."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from recollect.errors import StoreError
from recollect.records import ExtractionRun, Interaction, JournalEntry, Record, Session, Spending, ToolCall, to_dict
from recollect.store.contract import FileState, Query, State, Tombstone, VectorRow
from recollect.store.rows import (
    call_from_row,
    call_to_row,
    data_to_row,
    dump,
    dump_record,
    entry_from_row,
    entry_to_row,
    file_from_row,
    file_to_row,
    from_row,
    interaction_from_row,
    interaction_to_row,
    load_queries,
    readable,
    run_from_row,
    run_to_row,
    spending_from_row,
    spending_to_row,
    to_row,
)
from recollect.store.sqlite_conditions import conditions_of
from recollect.store.sqlite_copies import copies, erase_from_copies
from recollect.times import from_text, to_text, utc_now

_SQL = load_queries(Path(__file__).parent / "sqlite.sql")
_moment = readable(from_text)
_LAST = "Z"  # sorts after every time


class SqliteReader:
    def __init__(self, db: sqlite3.Connection, user_id: str, place: int = 0) -> None:
        self.db = db
        self._user_id = user_id
        self._place = place

    def state(self) -> State:
        row = self.db.execute(_SQL["state"]).fetchone()
        if row is None:
            return State(user_id=self._user_id, created_at=utc_now())
        return State(
            user_id=row[0], created_at=_moment(row[1]), seq=row[2], mode=row[3], secret=row[4], place=self._place
        )

    def get(self, record_id: str) -> Record | None:
        row = self.db.execute(_SQL["find"] + " WHERE id = ? AND latest = 1", (record_id,)).fetchone()
        return None if row is None else from_row(row)

    def find(self, query: Query) -> list[Record]:
        conditions, values = conditions_of(query)
        order = "created_at DESC, id DESC, version DESC" if query.newest_first else "created_at, id, version"
        if query.changed_after is not None:
            order = "seq DESC" if query.newest_first else "seq"
        sql = f"{_SQL['find']} WHERE {' AND '.join(conditions)} ORDER BY {order}"
        if query.limit is not None or query.offset:
            sql += " LIMIT ? OFFSET ?"
            values += [-1 if query.limit is None else query.limit, query.offset]
        return [from_row(row) for row in self.db.execute(sql, values)]

    def scan(self) -> Iterator[Record]:
        return (from_row(row) for row in self.db.execute(_SQL["find"] + " WHERE latest = 1"))

    def changed(self, after: int) -> list[tuple[int, str]]:
        return self.db.execute(_SQL["changed"], (after,)).fetchall()

    def count(self) -> dict[tuple[str, str], int]:
        return {(kind, status): number for kind, status, number in self.db.execute(_SQL["count"])}

    def versions(self, record_id: str) -> list[Record]:
        rows = self.db.execute(_SQL["find"] + " WHERE id = ? ORDER BY version", (record_id,))
        return [from_row(row) for row in rows]

    def ids_ending(self, ending: str) -> list[str]:
        return [row[0] for row in self.db.execute(_SQL["ids_ending"], (ending,))]

    def entry(self, seq: int) -> JournalEntry | None:
        row = self.db.execute(_SQL["entries"] + " WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else entry_from_row(row)

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
        same = {"record_id = ?": record_id, "run = ?": run, "call = ?": call, "undoes = ?": undoes}
        wanted = {"seq > ?": after, "seq < ?": before, **same}
        return [entry_from_row(row) for row in self._rows("entries", wanted, ("seq",), newest_first, limit, offset)]

    def numbers(self, record_ids: Sequence[str]) -> dict[str, int]:
        return dict(self.db.execute(_SQL["numbers"], (json.dumps(list(record_ids)),)))

    def file(self, name: str) -> FileState | None:
        row = self.db.execute(_SQL["files"] + " WHERE name = ?", (name,)).fetchone()
        return None if row is None else file_from_row(row)

    def files(self) -> list[FileState]:
        return [file_from_row(row) for row in self.db.execute(_SQL["files"] + " ORDER BY name")]

    def tombstones(self, hashes: Sequence[str] | None = None) -> list[Tombstone]:
        sql, values = _SQL["tombstones"], []
        if hashes is not None:
            sql += " WHERE hash IN (SELECT value FROM json_each(?))"
            values = [json.dumps(list(hashes))]
        rows = self.db.execute(sql + " ORDER BY record_id, hash", values)
        return [Tombstone(hash=row[0], record_id=row[1], at=_moment(row[2])) for row in rows]

    def recalled(self) -> dict[str, datetime]:
        return {record_id: _moment(at) for record_id, at in self.db.execute(_SQL["recalls"])}

    def sessions(
        self,
        *,
        limit: int,
        offset: int = 0,
        after: tuple[datetime, str] | None = None,
        as_of: datetime | None = None,
    ) -> list[Session]:
        ended, session = (_LAST, "") if after is None else (to_text(after[0]), after[1])
        stored = _LAST if as_of is None else to_text(as_of)
        rows = self.db.execute(_SQL["sessions"], {
            "ended": ended, "session": session, "stored": stored, "limit": limit, "offset": offset,
        })  # fmt: skip
        return [Session(id=row[0], messages=row[1], began=_moment(row[2]), ended=_moment(row[3])) for row in rows]

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
            "at >= ?": None if since is None else to_text(since),
            "at < ?": None if until is None else to_text(until),
            "tool = ?": tool,
            "session = ?": session,
            "id = ?": call,
            f"(at, id) {'<' if newest_first else '>'} (?, ?)": None if after is None else (to_text(after[0]), after[1]),
        }
        return [call_from_row(row) for row in self._rows("calls", wanted, ("at", "id"), newest_first, limit)]

    def spending(self, *, since: date | None = None, until: date | None = None) -> list[Spending]:
        wanted = {
            "day >= ?": None if since is None else since.isoformat(),
            "day <= ?": None if until is None else until.isoformat(),
        }
        return [spending_from_row(row) for row in self._rows("spending", wanted, ("day", "operation"))]

    def consents(self) -> dict[str, datetime]:
        return {name: _moment(at) for name, at in self.db.execute(_SQL["consents"])}

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
        wanted = {
            "at >= ?": None if since is None else to_text(since),
            "at < ?": None if until is None else to_text(until),
            "reported_at > ?": None if reported_after is None else to_text(reported_after),
            "kind IN (SELECT value FROM json_each(?))": json.dumps(list(kinds)) if kinds else None,
            "session = ?": session,
            "id IN (SELECT value FROM json_each(?))": None if ids is None else json.dumps(list(ids)),
            f"(at, id) {'<' if newest_first else '>'} (?, ?)": None if after is None else (to_text(after[0]), after[1]),
        }
        rows = self._rows("interactions", wanted, ("at", "id"), newest_first, limit)
        return [interaction_from_row(row) for row in rows]

    def last_reported(self) -> datetime | None:
        [last] = self.db.execute(_SQL["last_reported"]).fetchone()
        return None if last is None else _moment(last)

    def run(self, day: date, kind: str) -> ExtractionRun | None:
        found = list(self._rows("runs", {"run_date = ?": day.isoformat(), "kind = ?": kind}, ("run_date",)))
        return run_from_row(found[0]) if found else None

    def runs(
        self,
        *,
        since: date | None = None,
        kind: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[ExtractionRun]:
        wanted = {"run_date >= ?": None if since is None else since.isoformat(), "kind = ?": kind}
        return [run_from_row(row) for row in self._rows("runs", wanted, ("run_date", "kind"), newest_first, limit)]

    def vectors(self, embedder: str, *, after: int = 0, limit: int | None = None) -> list[VectorRow]:
        rows = self.db.execute(_SQL["vectors"], (after, embedder, -1 if limit is None else limit))
        return [VectorRow(*row) for row in rows]

    def last_vector(self, embedder: str) -> int:
        row = self.db.execute(_SQL["last_vector"], (embedder,)).fetchone()
        return row[0] if row else 0

    def unembedded(self, embedder: str, *, kinds: Sequence[str], limit: int) -> list[Record]:
        if not kinds:
            return []
        conditions, values = conditions_of(Query(kinds=kinds))
        conditions.append(_SQL["unembedded"])
        values.append(embedder)
        sql = f"{_SQL['find']} WHERE {' AND '.join(conditions)} ORDER BY created_at, id LIMIT ?"
        return [from_row(row) for row in self.db.execute(sql, [*values, limit])]

    def _rows(
        self,
        name: str,
        wanted: Mapping[str, Any],
        order: Sequence[str],
        newest_first: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> Iterator[Any]:
        """Return the rows of a named query that match the conditions; those without a value are ignored."""
        given = {condition: value for condition, value in wanted.items() if value is not None}
        where = f" WHERE {' AND '.join(given)}" if given else ""
        by = ", ".join(f"{column} DESC" if newest_first else column for column in order)
        sql = f"{_SQL[name]}{where} ORDER BY {by}"
        values = [value for each in given.values() for value in (each if isinstance(each, tuple) else (each,))]
        if limit is not None:
            sql += " LIMIT ? OFFSET ?"
            values += [limit, offset]
        return self.db.execute(sql, values)


class SqliteTransaction(SqliteReader):
    def __init__(self, db: sqlite3.Connection, user_id: str, place: int = 0) -> None:
        super().__init__(db, user_id, place)
        self.hooks: list[Callable[[], None]] = []
        self.erased = False
        self.pending = False
        self._dumped: tuple[Record | None, str | None] = (None, None)
        """The record stored last, with its JSON, which the journal needs too."""
        self._state = super().state()
        if not self._state.secret:
            self.set_state(replace(self._state, secret=secrets.token_bytes(16)))
        self._seq = self._state.seq

    def state(self) -> State:
        return replace(self._state, seq=self._seq) if self._seq != self._state.seq else self._state

    def next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def put(self, record: Record) -> None:
        if record.version > 1:
            self.db.execute(_SQL["drop_latest"], (record.id, record.version))
        data = to_dict(record)
        self._dumped = (record, dump(data))
        self.db.execute(_SQL["put"], data_to_row(data))

    def put_many(self, records: Iterable[Record]) -> None:
        records = list(records)
        self.db.executemany(_SQL["drop_latest"], [(r.id, r.version) for r in records if r.version > 1])
        self.db.executemany(_SQL["put"], map(to_row, records))

    def keep(self, record: Record) -> None:
        self.db.execute(_SQL["keep"], to_row(record))

    def log(self, entries: Iterable[JournalEntry]) -> None:
        record, dumped = self._dumped
        rows = [entry_to_row(entry, dumped if entry.after is record else None) for entry in entries]
        self.db.executemany(_SQL["log"], rows)

    def set_mode(self, mode: str) -> None:
        self.db.execute(_SQL["set_mode"], (mode,))
        self._state = replace(self._state, mode=mode)

    def set_state(self, state: State) -> None:
        self.db.execute(
            _SQL["create_state"],
            (self._user_id, to_text(state.created_at), state.seq, state.mode, state.secret),
        )
        self._state = replace(state, user_id=self._user_id)
        self._seq = state.seq

    def set_file(self, state: FileState) -> None:
        self.db.execute(_SQL["set_file"], file_to_row(state))

    def drop_file(self, name: str) -> None:
        self.db.execute(_SQL["drop_file"], (name,))

    def bury(self, tombstones: Iterable[Tombstone]) -> None:
        self.db.executemany(_SQL["bury"], ((t.hash, t.record_id, to_text(t.at)) for t in tombstones))

    def set_recalled(self, moments: Mapping[str, datetime]) -> None:
        self.db.executemany(_SQL["set_recall"], ((record_id, to_text(at)) for record_id, at in moments.items()))

    def log_calls(self, calls: Iterable[ToolCall]) -> None:
        self.db.executemany(_SQL["log_call"], map(call_to_row, calls))

    def drop_calls(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        if ids is not None:
            self.erased = True
            return self.db.execute(_SQL["erase_calls"], (json.dumps(list(ids)),)).rowcount
        moment = None if before is None else to_text(before)
        return self.db.execute(_SQL["drop_calls"], (moment,)).rowcount

    def charge(self, spendings: Iterable[Spending]) -> None:
        self.db.executemany(_SQL["charge"], map(spending_to_row, spendings))

    def set_consent(self, name: str, given: bool, at: datetime) -> None:
        if given:
            self.db.execute(_SQL["give_consent"], (name, to_text(at)))
        else:
            self.db.execute(_SQL["withdraw_consent"], (name,))

    def put_interactions(self, interactions: Iterable[Interaction]) -> None:
        self.db.executemany(_SQL["put_interaction"], map(interaction_to_row, interactions))

    def drop_interactions(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        if ids is not None:
            number = self.db.execute(_SQL["erase_interactions"], (json.dumps(list(ids)),)).rowcount
        else:
            moment = None if before is None else to_text(before)
            number = self.db.execute(_SQL["drop_interactions"], (moment,)).rowcount
        self.erased = self.erased or number > 0  # they are about the person: not even the write-ahead log may keep them
        return number

    def put_run(self, run: ExtractionRun) -> None:
        self.db.execute(_SQL["drop_run"], (run.id, run.day.isoformat(), run.kind))
        self.db.execute(_SQL["put_run"], run_to_row(run))

    def drop_runs(self) -> int:
        return self.db.execute(_SQL["drop_runs"]).rowcount

    def put_vectors(self, embedder: str, rows: Iterable[tuple[str, int, bytes]]) -> None:
        [last] = self.db.execute(_SQL["last_number"]).fetchone()
        numbered = [(number, embedder, *row) for number, row in enumerate(rows, last + 1)]
        if numbered:
            self.db.execute(_SQL["set_embedder"], (embedder, numbered[-1][0]))
            self.db.executemany(_SQL["put_vector"], numbered)

    def drop_vectors(self, *, keep: str | None) -> int:
        return self.db.execute(_SQL["drop_vectors"], (keep,)).rowcount

    def erase(self, record_ids: Sequence[str]) -> dict[str, int]:
        ids = json.dumps(list(record_ids))
        copied = self._erase_from_copies(record_ids, ids)
        self.db.execute(_SQL["erase_vectors"], (ids,))
        self.db.execute(_SQL["erase_recalls"], (ids,))
        journal = self.db.execute(_SQL["erase_journal"], (ids,)).rowcount
        versions = self.db.execute(_SQL["erase_records"], (ids,)).rowcount
        self.erased = True
        return {"versions": versions, "journal": journal} | copied

    def _erase_from_copies(self, record_ids: Sequence[str], ids: str) -> dict[str, int]:
        """Erase from databases that a repair set aside: after the commit, or when the next process opens this one."""
        path = Path(self.db.execute("PRAGMA database_list").fetchone()[2])
        if not copies(path):
            return {}
        texts = [row[0] for row in self.db.execute(_SQL["contents"], (ids,))]

        def overwrite() -> None:
            try:
                erase_from_copies(path, record_ids, texts)
            except OSError as error:
                names = ", ".join(copy.name for copy in copies(path))
                raise StoreError(f"erased, but not from {names} ({error.strerror}); delete it yourself") from error

        self.after_commit(overwrite)
        return {"rows of damaged copies": erase_from_copies(path, record_ids, texts, dry_run=True)}

    def redact(self, entries: Iterable[JournalEntry]) -> None:
        rows = [(dump_record(one.before), dump_record(one.after), one.reason, one.source, one.seq) for one in entries]
        self.db.executemany(_SQL["redact"], rows)
        self.erased = True

    def drop_versions(self, versions: Iterable[tuple[str, int]]) -> int:
        keys = list(versions)
        self.db.execute(_SQL["erase_vectors"], (json.dumps([record_id for record_id, _ in keys]),))
        self.erased = True
        return sum(self.db.execute(_SQL["drop_version"], key).rowcount for key in keys)

    def after_commit(self, hook: Callable[[], None]) -> None:
        self.hooks.append(hook)
