"""Service tables for many machines, in the database of the PostgreSQL store.

Where turns are needed, writers take them by an advisory lock, as on one machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from recollect.errors import StoreError
from recollect.store.postgres import PostgresStore
from recollect.store.postgres_connections import mapped_errors
from recollect.store.rows import for_postgres, load_migrations
from recollect.store.service_tables import Tables, check_values

if TYPE_CHECKING:
    from psycopg import Connection

_LOCKED = "SELECT pg_advisory_xact_lock(%s)"


class PostgresView:
    def __init__(self, db: Connection, queries: dict[str, Any]) -> None:
        self._db = db
        self._queries = queries

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(self._queries[query], check_values(values)).fetchall()

    def run(self, query: str, **values: Any) -> int:
        return self._db.execute(self._queries[query], check_values(values)).rowcount


class PostgresServiceTables:
    """Tables in the database of a store, using its connections."""

    def __init__(self, store: PostgresStore, tables: Tables) -> None:
        self._store = store
        self._tables = tables
        self._queries = for_postgres(tables.queries)
        self._scripts = load_migrations(tables.migrations("postgres"))
        self._ready = False

    @contextmanager
    def read(self) -> Iterator[PostgresView | None]:
        if self._is_behind():
            with self.write():  # migrates them: existing data must not look missing
                pass
        with mapped_errors(), self._store.reading() as db:
            yield None if db is None or not self._is_ready(db) else PostgresView(db, self._queries)

    @contextmanager
    def write(self, *, erases: bool = False) -> Iterator[PostgresView]:
        with mapped_errors(), self._store.writing() as db:
            if not self._is_ready(db):
                with db.transaction():
                    db.execute(_LOCKED, (self._tables.lock,))
                    self._migrate(db)
            with db.transaction():
                if self._tables.in_turns:
                    db.execute(_LOCKED, (self._tables.lock,))
                yield PostgresView(db, self._queries)

    @property
    def pending(self) -> bool:
        return False  # its log is PostgreSQL's own business

    def finish_erasing(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing: connections belong to the store."""

    def _is_behind(self) -> bool:
        """Return True if an older Recollect made the tables."""
        if self._ready:
            return False
        with mapped_errors(), self._store.reading() as db:
            return db is not None and self._is_made(db) and not self._is_ready(db)

    def _is_made(self, db: Connection) -> bool:
        [there] = db.execute("SELECT to_regclass(%s) IS NOT NULL", (self._tables.versions,)).fetchone() or (False,)
        return bool(there)

    def _is_ready(self, db: Connection) -> bool:
        if not self._ready:
            self._ready = self._is_made(db) and self._version(db) == len(self._scripts)
        return self._ready

    def _migrate(self, db: Connection) -> None:
        versions = self._tables.versions
        db.execute(f"CREATE TABLE IF NOT EXISTS {versions} (version INTEGER PRIMARY KEY)".encode())
        for number, script in enumerate(self._scripts[self._version(db) :], self._version(db) + 1):
            db.execute(script.encode())
            db.execute(f"INSERT INTO {versions} VALUES (%s)".encode(), (number,))

    def _version(self, db: Connection) -> int:
        newest = f"SELECT coalesce(max(version), 0) FROM {self._tables.versions}"
        [version] = db.execute(newest.encode()).fetchone() or (0,)
        known = len(self._scripts)
        if version > known:
            raise StoreError(
                f"{self._tables.name} were written by a newer Recollect (schema {version}, this one knows {known});"
                " upgrade"
            )
        return int(version)
