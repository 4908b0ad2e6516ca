"""Keys of many machines: tables ``memory_keys`` and ``memory_http_answers`` beside those of the PostgreSQL store.

Who makes the tables takes turns by an advisory lock; after that, each statement is about one row and needs none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import StoreError
from recollect.store.keys import QUERIES
from recollect.store.postgres import PostgresStore
from recollect.store.postgres_connections import mapped_errors
from recollect.store.rows import load_migrations

if TYPE_CHECKING:
    from psycopg import Connection

_MIGRATIONS = Path(__file__).parent / "keys_postgres_migrations"
_SQL: dict[str, Any] = {name: re.sub(r"(?<!\w):(\w+)", r"%(\1)s", sql) for name, sql in QUERIES.items()}
_LOCK = 0x4B4559532D4B4559
_LOCKED = "SELECT pg_advisory_xact_lock(%s)"
_THERE = "SELECT to_regclass('memory_key_versions') IS NOT NULL"
_VERSION = "SELECT coalesce(max(version), 0) FROM memory_key_versions"


class PostgresView:
    """The tables over an open connection."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(_SQL[query], values).fetchall()

    def run(self, query: str, **values: Any) -> int:
        return self._db.execute(_SQL[query], values).rowcount


class PostgresKeys:
    """Keys in the database of a store, over its connections."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._ready = False

    @contextmanager
    def read(self) -> Iterator[PostgresView | None]:
        with mapped_errors(), self._store.reading() as db:
            yield None if db is None or not self._is_ready(db) else PostgresView(db)

    @contextmanager
    def write(self) -> Iterator[PostgresView]:
        with mapped_errors(), self._store.writing() as db:
            if not self._is_ready(db):
                with db.transaction():
                    db.execute(_LOCKED, (_LOCK,))
                    _migrate(db)
            with db.transaction():
                yield PostgresView(db)

    def close(self) -> None:
        """Connections belong to the store."""

    def _is_ready(self, db: Connection) -> bool:
        if not self._ready:
            [there] = db.execute(_THERE).fetchone() or (False,)
            self._ready = bool(there) and _version(db) == len(load_migrations(_MIGRATIONS))
        return self._ready


def _migrate(db: Connection) -> None:
    """Bring the tables forward, one numbered file after another, within the caller's transaction."""
    db.execute("CREATE TABLE IF NOT EXISTS memory_key_versions (version INTEGER PRIMARY KEY)")
    for number, script in enumerate(load_migrations(_MIGRATIONS)[_version(db) :], _version(db) + 1):
        db.execute(script.encode())
        db.execute("INSERT INTO memory_key_versions VALUES (%s)", (number,))


def _version(db: Connection) -> int:
    [version] = db.execute(_VERSION).fetchone() or (0,)
    known = len(load_migrations(_MIGRATIONS))
    if version > known:
        raise StoreError(f"keys were written by a newer Recollect (schema {version}, this one knows {known}); upgrade")
    return int(version)
