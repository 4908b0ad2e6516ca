"""Views of one user's SQLite database: a reader, and the one open transaction."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from recollect.errors import StoreError
from recollect.records import JournalEntry, Record, to_dict
from recollect.store.contract import State
from recollect.store.rows import (
    data_to_row,
    dump,
    dump_record,
    entry_to_row,
    from_row,
    load_queries,
    readable,
    to_row,
)
from recollect.store.sql_views import SqlReader, SqlTransaction
from recollect.store.sqlite_copies import copies, erase_from_copies
from recollect.times import from_text, to_text, utc_now

_moment = readable(from_text)


class SqliteReader(SqlReader):
    SQL = load_queries(Path(__file__).parent / "sqlite.sql")
    COLUMNS = {"categories": "category", "types": "type"}  # noqa: RUF012
    LATEST = "latest = 1"  # in these words the index has it
    CHAT = "json_extract(extra, '$.metadata.chat')"
    TAG = "EXISTS (SELECT 1 FROM json_each(extra, '$.tags') WHERE value = ?)"
    LAST_MOMENT = "Z"
    NO_LIMIT = -1

    def __init__(self, db: sqlite3.Connection, user_id: str, place: int = 0) -> None:
        super().__init__()
        self.db = db
        self._user_id = user_id
        self._place = place

    def state(self) -> State:
        rows = self._rows(self.SQL["state"])
        if not rows:
            return State(user_id=self._user_id, created_at=utc_now())
        [(user_id, created_at, seq, mode, secret)] = rows
        moment = _moment(created_at)
        return State(user_id=user_id, created_at=moment, seq=seq, mode=mode, secret=secret, place=self._place)

    def scan(self) -> Iterator[Record]:
        return (from_row(row) for row in self.db.execute(f"{self.SQL['find']} AND {self.LATEST}"))

    def _rows(self, sql: Any, *values: Any) -> list[Any]:
        return self.db.execute(sql, values).fetchall()

    def _named(self, name: str, **values: Any) -> list[Any]:
        return self.db.execute(self.SQL[name], values).fetchall()

    @staticmethod
    def _among(column: str, allowed: Sequence[str]) -> tuple[str, Any]:
        return f"{column} IN (SELECT value FROM json_each(?))", json.dumps(list(allowed))


class SqliteTransaction(SqliteReader, SqlTransaction):
    def __init__(self, db: sqlite3.Connection, user_id: str, place: int = 0) -> None:
        super().__init__(db, user_id, place)
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
            self._change("drop_latest", record.id, record.version)
        data = to_dict(record)
        self._dumped = (record, dump(data))
        self._change("put", *data_to_row(data))

    def put_many(self, records: Iterable[Record]) -> None:
        records = list(records)
        self._each("drop_latest", [(r.id, r.version) for r in records if r.version > 1])
        self._each("put", map(to_row, records))

    def keep(self, record: Record) -> None:
        self._change("keep", *to_row(record))

    def log(self, entries: Iterable[JournalEntry]) -> None:
        record, dumped = self._dumped
        self._each("log", [entry_to_row(entry, dumped if entry.after is record else None) for entry in entries])

    def set_mode(self, mode: str) -> None:
        self._change("set_mode", mode)
        self._state = replace(self._state, mode=mode)

    def set_state(self, state: State) -> None:
        created_at = to_text(state.created_at)
        self._change("create_state", self._user_id, created_at, state.seq, state.mode, state.secret)
        self._state = replace(state, user_id=self._user_id)
        self._seq = state.seq

    def put_vectors(self, embedder: str, rows: Iterable[tuple[str, int, bytes]]) -> None:
        [last] = self.db.execute(self.SQL["last_number"]).fetchone()
        numbered = [(number, embedder, *row) for number, row in enumerate(rows, last + 1)]
        if numbered:
            self._change("set_embedder", embedder, numbered[-1][0])
            self._each("put_vector", numbered)

    def erase(self, record_ids: Sequence[str]) -> dict[str, int]:
        ids = json.dumps(list(record_ids))
        copied = self._erase_from_copies(record_ids, ids)
        self._change("erase_vectors", ids)
        self._change("erase_recalls", ids)
        journal, versions = self._removed("erase_journal", ids), self._removed("erase_records", ids)
        self.erased = True
        return {"versions": versions, "journal": journal} | copied

    def _erase_from_copies(self, record_ids: Sequence[str], ids: str) -> dict[str, int]:
        """Erase from databases that a repair set aside: after the commit, or when the next process opens this one."""
        path = Path(self.db.execute("PRAGMA database_list").fetchone()[2])
        if not copies(path):
            return {}
        texts = [row[0] for row in self.db.execute(self.SQL["contents"], (ids,))]

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
        self._each("redact", rows)
        self.erased = True

    def _each(self, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self.db.executemany(self.SQL[name], rows)

    def _change(self, name: str, *values: Any) -> None:
        self.db.execute(self.SQL[name], values)

    def _removed(self, name: str, *values: Any) -> int:
        return self.db.execute(self.SQL[name], values).rowcount
