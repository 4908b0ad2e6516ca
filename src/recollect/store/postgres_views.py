"""Views of one user's rows in PostgreSQL: a reader, and the one open transaction."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, UUID, uuid5

from recollect.records import ExtractionRun, JournalEntry, Record
from recollect.store.contract import State
from recollect.store.postgres_words import PostgresWordReader, PostgresWordWriter
from recollect.store.rows import (
    dump_record,
    entry_to_row,
    from_row,
    load_queries,
    to_row,
)
from recollect.store.sql_views import SqlTransaction
from recollect.times import from_text, to_text, utc_now

if TYPE_CHECKING:
    from psycopg import Connection

_SQL: dict[str, Any] = load_queries(Path(__file__).parent / "postgres.sql")
_SCAN_PAGE = 2000


class PostgresReader(PostgresWordReader):
    """A view of one user's rows; without a connection, of none."""

    def state(self) -> State:
        rows = self._rows(_SQL["state"])
        return _state_from_row(rows[0], self._user_id) if rows else State(user_id=self._user_id, created_at=utc_now())

    def scan(self) -> Iterator[Record]:
        last = 0
        while rows := self._rows(_SQL["find"] + " AND latest AND seq > %s ORDER BY seq LIMIT %s", last, _SCAN_PAGE):
            for row in rows:
                record = from_row(row)
                yield record
            last = record.seq


class PostgresTransaction(PostgresReader, PostgresWordWriter, SqlTransaction):
    db: Connection

    def __init__(self, db: Connection, user_id: str, hooks: list[Callable[[], None]]) -> None:
        super().__init__(db, user_id)
        self.hooks = hooks
        rows = self._rows(_SQL["state"])
        if rows:
            self._state = _state_from_row(rows[0], user_id)
        else:
            self._state = State(user_id=user_id, created_at=utc_now(), secret=secrets.token_bytes(16))
            self._change_user("create_state", self._state)
            # an application's row may say that memory is off
            self._state = _state_from_row(self._rows(_SQL["state"])[0], user_id)
        self._seq = self._state.seq

    def state(self) -> State:
        return self._state

    def next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def put(self, record: Record) -> None:
        if record.version > 1:
            self._change("drop_latest", record.id, record.version)
        self._change("put", *_row(record, latest=True))

    def put_many(self, records: Iterable[Record]) -> None:
        records = list(records)
        older = [(record.id, record.version) for record in records if record.version > 1]
        if older:
            self._each("drop_latest", older)
        self._each("put", (_row(record, latest=True) for record in records))

    def keep(self, record: Record) -> None:
        self._change("put", *_row(record, latest=False))

    def log(self, entries: Iterable[JournalEntry]) -> None:
        self._each("log", map(entry_to_row, entries))

    def set_mode(self, mode: str) -> None:
        self._state = replace(self._state, mode=mode)
        self._change_user("set_mode", self._state)

    def set_state(self, state: State) -> None:
        self._state = replace(state, user_id=self._user_id)
        self._seq = state.seq
        self._change_user("set_state", self._state)

    def put_vectors(self, embedder: str, rows: Iterable[tuple[str, int, bytes]]) -> None:
        [(last,)] = self._rows(_SQL["last_number"])
        numbered = list(enumerate(rows, last + 1))
        if numbered:
            self._change("set_embedder", embedder, numbered[-1][0])
            self._each("put_vector", [(embedder, number, *row) for number, row in numbered])

    def erase(self, record_ids: Sequence[str]) -> dict[str, int]:
        values = {"user_id": self._user_id, "ids": list(record_ids)}
        words = self.drop_words(record_ids)
        versions, journal = self.db.execute(_SQL["erase"], values).fetchone() or (0, 0)
        return {"versions": versions, "journal": journal} | ({"words": words} if words else {})

    def redact(self, entries: Iterable[JournalEntry]) -> None:
        for one in entries:
            content = (dump_record(one.before), dump_record(one.after), one.reason, one.source)
            self.db.execute(_SQL["redact"], (*content, self._user_id, one.seq))

    def finish(self) -> None:
        """Store the last sequence number taken."""
        if self._seq != self._state.seq:
            self._change_user("set_seq", replace(self._state, seq=self._seq))

    def _change_user(self, name: str, state: State) -> None:
        values = {"user_id": self._user_id, "seq": state.seq, "mode": state.mode, "secret": state.secret}
        account = account_of(self._user_id)
        self.db.execute(_SQL[name], {**values, "account": account, "created_at": to_text(state.created_at)})

    def put_run(self, run: ExtractionRun) -> None:
        super().put_run(run)
        if run.status == "completed":
            self.db.execute(_SQL["set_last_extracted"], {"user_id": self._user_id})

    def drop_runs(self) -> int:
        dropped: int = super().drop_runs()
        self.db.execute(_SQL["set_last_extracted"], {"user_id": self._user_id})
        return dropped

    def _each(self, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
        values = [(self._user_id, *row) for row in rows]  # making them may read, which a running statement forbids
        with self.db.cursor() as cursor:
            cursor.executemany(_SQL[name], values)

    def _change(self, name: str, *values: Any) -> None:
        self.db.execute(_SQL[name], (self._user_id, *values))

    def _removed(self, name: str, *values: Any) -> int:
        return int(self._rows(_SQL[name], *values)[0][0])  # a count that is selected: a pipeline knows no row counts


def account_of(user_id: str) -> UUID:
    """Return the id of a user in the table users: the user id if it is a UUID, or one made from it."""
    try:
        account = UUID(user_id)
    except ValueError:
        account = None
    # written in another way it is another user
    return account if account is not None and str(account) == user_id else uuid5(NAMESPACE_URL, f"recollect:{user_id}")


def _state_from_row(row: tuple[Any, ...], user_id: str) -> State:
    return State(user_id=user_id, created_at=from_text(row[0]), seq=row[1], mode=row[2], secret=row[3])


def _row(record: Record, *, latest: bool) -> tuple[Any, ...]:
    return (latest, list(record.tags), *to_row(record))
