"""The PostgreSQL store: many users and many machines on one database, in the tables of the seeds.

Tables live in the first schema of the search path, which a URL can set
(``?options=-csearch_path%3Drecollect``) and which is made if it is not there. An advisory lock keyed by the
user serialises writers of all processes and is held until the after-commit hooks are done; the server
releases it when a connection dies, so a pooler between us and the server must keep sessions apart.
Transactions run in pipeline mode: what is written waits for no answer until something is read or the
transaction ends. Knows no policy and no Markdown.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import ConfigError, StoreCorruptError, StoreError
from recollect.records import JournalEntry, Record, Session, Spending, ToolCall
from recollect.store.contract import FileState, Query, Salvage, State, Tombstone, VectorRow
from recollect.store.postgres_connections import Connections, mapped_errors, parse_url
from recollect.store.rows import (
    call_from_row,
    call_to_row,
    entry_from_row,
    entry_to_row,
    file_from_row,
    file_to_row,
    from_row,
    load_migrations,
    load_queries,
    spending_from_row,
    spending_to_row,
    to_row,
)
from recollect.times import from_text, to_text, utc_now

if TYPE_CHECKING:
    from psycopg import Connection

_HERE = Path(__file__).parent
_SQL: dict[str, Any] = load_queries(_HERE / "postgres.sql")
_SCAN_PAGE = 2000
_MIGRATION_LOCK = 0x5245434F4C4C4543


class PostgresStore:
    """All users of one database. Connects at the first use; ``pool_size`` bounds the connections in use."""

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        self._conninfo = parse_url(url)
        self._pool_size = pool_size
        # by process: a forked child must neither use nor close its parent's connections
        self._connections: dict[int, Connections] = {}

    def user(self, user_id: str) -> PostgresUser:
        return PostgresUser(self, user_id)

    def users(self) -> Iterator[str]:
        with mapped_errors(), self.reading() as db:
            rows = [] if db is None else db.execute(_SQL["users"]).fetchall()
        yield from (row[0] for row in rows)

    def erase_user(self, user_id: str, also: Callable[[], None] | None = None) -> dict[str, int]:
        beside = ("tool calls", "ledger", "consents")
        places = ("records", "journal", "files", "tombstones", "recalls", "runs", *beside, "users")
        with mapped_errors(), self.reading() as known:
            if known is None:
                if also is not None:
                    also()
                return dict.fromkeys(places, 0)
        with self.user(user_id).locked([]) as db:
            row = db.execute(_SQL["erase_user"], {"user_id": user_id}).fetchone() or ()
            db.execute(_SQL["drop_user"], (user_id,))
            db.execute(_SQL["clear_user"], (user_id,))
            if also is not None:
                also()
        return dict(zip(places, row, strict=True))

    def close(self) -> None:
        connections = self._connections.pop(os.getpid(), None)
        if connections is not None:
            connections.close()

    def here(self) -> Connections:
        """The connections of this process."""
        pid = os.getpid()
        return self._connections.get(pid) or self._connections.setdefault(
            pid, Connections(self._conninfo, self._pool_size)
        )

    @contextmanager
    def reading(self) -> Iterator[Connection | None]:
        """A connection for reading; None if nothing was ever written, so that reading creates no tables."""
        here = self.here()
        with here.lend() as db:
            here.migrated = here.migrated or _migrate(db, reading=True)
            yield db if here.migrated else None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection to a database that has all its tables."""
        here = self.here()
        with here.lend() as db:
            here.migrated = here.migrated or _migrate(db, reading=False)
            yield db


class PostgresUser:
    """One user's rows."""

    def __init__(self, store: PostgresStore, user_id: str) -> None:
        self.user_id = user_id
        self._store = store
        # stable between processes; two users who share a number only wait for each other
        digest = hashlib.blake2b(user_id.encode(), digest_size=8, person=b"recollect").digest()
        self._lock = int.from_bytes(digest, "big", signed=True)

    def exists(self) -> bool:
        with mapped_errors(), self._store.reading() as db:
            return db is not None and db.execute(_SQL["exists"], (self.user_id,)).fetchone() is not None

    @contextmanager
    def read(self) -> Iterator[PostgresReader]:
        with mapped_errors(), self._store.reading() as db:
            if db is None:
                yield PostgresReader(None, self.user_id)
                return
            with db.pipeline():
                db.execute(_SQL["begin_reading"])
                yield PostgresReader(db, self.user_id)
                db.execute("ROLLBACK")

    @contextmanager
    def write(self) -> Iterator[PostgresTransaction]:
        hooks: list[Callable[[], None]] = []
        with self.locked(hooks) as db:
            transaction = PostgresTransaction(db, self.user_id, hooks)
            yield transaction
            transaction.finish()

    @contextmanager
    def locked(self, hooks: list[Callable[[], None]]) -> Iterator[Connection]:
        """A transaction that keeps all other writers of this user out, until the hooks ran after it."""
        from psycopg import OperationalError

        with mapped_errors(), self._store.here().turn(self.user_id), self._store.writing() as db:
            with db.pipeline():
                db.execute(_SQL["lock"], (self._lock,))
                db.execute("BEGIN")
                yield db
                db.execute("COMMIT")
                if not hooks:
                    db.execute(_SQL["unlock"], (self._lock,))
            for hook in hooks:
                hook()
            if hooks:
                # a connection that broke by now has let go of the lock, and the write is done
                with suppress(OperationalError):
                    db.execute(_SQL["unlock"], (self._lock,))

    def text_search(self, query: str, limit: int) -> list[Record]:
        """Active records whose content has all words of the query, by PostgreSQL's own English search."""
        with mapped_errors(), self._store.reading() as db:
            rows = [] if db is None else db.execute(_SQL["text_search"], (query, self.user_id, limit)).fetchall()
        return [from_row(row) for row in rows]

    def check(self) -> list[str]:
        try:
            with mapped_errors(), self._store.reading() as db:
                rows = [] if db is None else db.execute(_SQL["check"], {"user_id": self.user_id}).fetchall()
        except StoreCorruptError as error:
            return [str(error)]
        return [row[0] for row in rows]

    def set_aside(self) -> Salvage:
        raise StoreError("a user's rows in PostgreSQL cannot be set aside; restore the database from a backup")

    def close(self) -> None:
        """Connections belong to the store."""


class PostgresReader:
    """A view of one user's rows; without a connection, of none."""

    def __init__(self, db: Connection | None, user_id: str) -> None:
        self.db = db
        self._user_id = user_id

    def _rows(self, sql: Any, *values: Any) -> list[Any]:
        return [] if self.db is None else self.db.execute(sql, (self._user_id, *values)).fetchall()

    def _fitting(
        self,
        name: str,
        wanted: Mapping[str, Any],
        order: Sequence[str],
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[Any]:
        """The rows of a named query that fit the conditions, those without a value left out."""
        given = {condition: value for condition, value in wanted.items() if value is not None}
        by = ", ".join(f"{column} DESC" if newest_first else column for column in order)
        sql = " AND ".join([_SQL[name], *given]) + f" ORDER BY {by} LIMIT %s"
        return self._rows(sql, *given.values(), limit)

    def state(self) -> State:
        rows = self._rows(_SQL["state"])
        return _state(rows[0], self._user_id) if rows else State(user_id=self._user_id, created_at=utc_now())

    def get(self, record_id: str) -> Record | None:
        rows = self._rows(_SQL["find"] + " AND id = %s AND latest", record_id)
        return from_row(rows[0]) if rows else None

    def find(self, query: Query) -> list[Record]:
        conditions, values = _conditions(query)
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
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[JournalEntry]:
        same = {"record_id = %s": record_id, "run = %s": run, "call = %s": call, "undoes = %s": undoes}
        wanted = {"seq > %s": after, **same}
        return [entry_from_row(row) for row in self._fitting("entries", wanted, ("seq",), newest_first, limit)]

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

    def sessions(self, *, limit: int, offset: int = 0) -> list[Session]:
        rows = self._rows(_SQL["sessions"], limit, offset)
        return [Session(id=row[0], messages=row[1], began=from_text(row[2]), ended=from_text(row[3])) for row in rows]

    def calls(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        tool: str | None = None,
        session: str | None = None,
        call: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[ToolCall]:
        wanted = {
            "at >= %s": None if since is None else to_text(since),
            "at < %s": None if until is None else to_text(until),
            "tool = %s": tool,
            "session = %s": session,
            "id = %s": call,
        }
        return [call_from_row(row) for row in self._fitting("calls", wanted, ("at", "id"), newest_first, limit)]

    def spending(self, *, since: date | None = None, until: date | None = None) -> list[Spending]:
        wanted = {"day >= %s": since, "day <= %s": until}
        rows = self._fitting("spending", wanted, ("memory_spending.day", "operation"))
        return [spending_from_row(row) for row in rows]

    def consents(self) -> dict[str, datetime]:
        return {name: from_text(at) for name, at in self._rows(_SQL["consents"])}

    def vectors(self, embedder: str, *, after: int = 0, limit: int | None = None) -> list[VectorRow]:
        return [VectorRow(*row) for row in self._rows(_SQL["vectors"], embedder, after, limit)]

    def last_vector(self, embedder: str) -> int:
        rows = self._rows(_SQL["last_vector"], embedder)
        return rows[0][0] if rows else 0

    def unembedded(self, embedder: str, *, kinds: Sequence[str], limit: int) -> list[Record]:
        if not kinds:
            return []
        conditions, values = _conditions(Query(kinds=kinds))
        conditions.append(_SQL["unembedded"])
        order = "ORDER BY created_at, id LIMIT %s"
        sql = " ".join([_SQL["find"], *(f"AND {condition}" for condition in conditions), order])
        return [from_row(row) for row in self._rows(sql, *values, embedder, limit)]


class PostgresTransaction(PostgresReader):
    """The one open transaction of a user."""

    db: Connection

    def __init__(self, db: Connection, user_id: str, hooks: list[Callable[[], None]]) -> None:
        super().__init__(db, user_id)
        self._hooks = hooks
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

    def drop_calls(self, before: datetime | None = None) -> int:
        [(number,)] = self._rows(_SQL["drop_calls"], "infinity" if before is None else to_text(before))
        return int(number)

    def charge(self, spendings: Iterable[Spending]) -> None:
        self._each("charge", ((self._user_id, *spending_to_row(spending)) for spending in spendings))

    def set_consent(self, name: str, given: bool, at: datetime) -> None:
        if given:
            self.db.execute(_SQL["give_consent"], (self._user_id, name, to_text(at)))
        else:
            self.db.execute(_SQL["withdraw_consent"], (self._user_id, name))

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
        row = self.db.execute(_SQL["erase"], values).fetchone() or (0, 0)
        return {"versions": row[0], "journal": row[1]}

    def after_commit(self, hook: Callable[[], None]) -> None:
        self._hooks.append(hook)

    def finish(self) -> None:
        """Write down the last sequence number taken."""
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


def _migrate(db: Connection, *, reading: bool) -> bool:
    """Bring the schema forward, one numbered file after another. For reading, an empty schema stays empty."""
    import psycopg
    from psycopg import sql

    migrations = load_migrations(_HERE / "postgres_migrations")
    schema, there, version = _schema(db, len(migrations))
    if version == len(migrations) or (reading and version == 0):
        return version > 0
    # before the transaction: one that began earlier may still not see the tables another process made
    db.execute(_SQL["lock"], (_MIGRATION_LOCK,))
    with db.transaction():
        if not there:
            db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        version = _schema(db, len(migrations))[2]  # another process may have been first
        if version == 0:
            _check_strangers(db, schema)
        for number, script in enumerate(migrations[version:], version + 1):
            try:
                db.execute(script.encode())
            except psycopg.errors.InvalidForeignKey:
                raise ConfigError(f"the id of table {schema}.users is not unique; {_OWN_SCHEMA}") from None
            db.execute(_SQL["set_version"], (number,))
    db.execute(_SQL["unlock"], (_MIGRATION_LOCK,))
    return True


def _schema(db: Connection, known: int) -> tuple[str, bool, int]:
    """The schema for our tables, whether it is there, and the version of its tables."""
    path, current, migrated = db.execute(_SQL["home"]).fetchone() or ("", None, False)
    schema = path.split(",")[0].strip().strip('"')
    if schema in ("$user", ""):
        schema = current
    if schema is None:
        raise ConfigError(f"the search path of the database names no schema; {_OWN_SCHEMA}")
    if schema != current or not migrated:
        return schema, schema == current, 0
    [version] = db.execute(_SQL["version"]).fetchone() or (0,)
    if version > known:
        raise StoreError(
            f"this memory was written by a newer Recollect (schema {version}, this one knows {known}); "
            "upgrade Recollect"
        )
    return schema, True, version


_OWN_SCHEMA = "give Recollect a schema of its own, by adding ?options=-csearch_path%3Drecollect to the database URL"


def _check_strangers(db: Connection, schema: str) -> None:
    """Refuse to mix with tables of somebody else's, but for a table of users with text ids."""
    for table, id_type in db.execute(_SQL["strangers"]).fetchall():
        if table != "users":
            raise ConfigError(f"the database has a table {schema}.{table} that is not Recollect's; {_OWN_SCHEMA}")
        if id_type not in ("text", "character varying"):
            raise ConfigError(
                f"the id of table {schema}.users is {id_type or 'missing'}, and Recollect's user ids are "
                f"text; {_OWN_SCHEMA}"
            )


_SETS = {"kinds": "kind", "categories": "type", "types": "fact_type", "statuses": "status"}


def _conditions(query: Query) -> tuple[list[str], list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []

    def add(condition: str, *new: Any) -> None:
        conditions.append(condition)
        values.extend(new)

    if query.valid_at is None:
        add("latest")
    else:
        add(_SQL["held_at"], to_text(query.valid_at), to_text(query.valid_at))
    for name, column in _SETS.items():
        allowed = getattr(query, name)
        if allowed and (name != "statuses" or query.valid_at is None):
            add(f"{column} = ANY(%s)", list(allowed))
    if query.ids is not None:
        add("id = ANY(%s)", list(query.ids))
    for column in ("key", "tier", "session"):
        if (value := getattr(query, column)) is not None:
            add(f"{column} = %s", value)
    if query.source is not None:
        add("(source = %s OR starts_with(source, %s))", query.source, query.source + ":")
    if query.tags:
        add("tags @> %s", list(query.tags))
    if query.said_from is not None:
        add("valid_from >= %s", to_text(query.said_from))
    if query.said_until is not None:
        add("valid_from < %s", to_text(query.said_until))
    if query.changed_after is not None:
        add("seq > %s", query.changed_after)
    if query.alive_at is not None:
        add("(expires_at IS NULL OR expires_at > %s)", to_text(query.alive_at))
    if query.expired_at is not None:
        add("expires_at <= %s", to_text(query.expired_at))
    return conditions, values


def _state(row: tuple[Any, ...], user_id: str) -> State:
    return State(user_id=user_id, created_at=from_text(row[0]), seq=row[1], mode=row[2], secret=row[3])
