"""Service tables on one machine: a file in the folder of the memories, such as ``identities.db`` or ``keys.db``.

They have a file of their own, like the queue, because it is read for every message or request, and damage to it costs
no memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect.store.service_tables import Tables, check_values
from recollect.store.sqlite_file import SqliteFile


class SqliteView:
    def __init__(self, db: sqlite3.Connection, queries: Mapping[str, str]) -> None:
        self._db = db
        self._queries = queries

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(self._queries[query], check_values(values)).fetchall()

    def run(self, query: str, **values: Any) -> int:
        return self._db.execute(self._queries[query], check_values(values)).rowcount


class SqliteServiceTables:
    """Tables in a folder. The first write creates the file."""

    def __init__(self, root: Path, tables: Tables) -> None:
        self._tables = tables
        self._file = SqliteFile(
            root / f"{tables.name}.db",
            tables.migrations("sqlite"),
            if_damaged=f"Stop all processes and restore it, or move it away; then {tables.if_lost}",
        )

    @property
    def pending(self) -> bool:
        return self._file.pending

    @contextmanager
    def read(self) -> Iterator[SqliteView | None]:
        if not self._file.path.exists():
            yield None
            return
        with self._file.read() as db:
            yield SqliteView(db, self._tables.queries)

    @contextmanager
    def write(self, *, erases: bool = False) -> Iterator[SqliteView]:
        with self._file.write(erases=erases) as db:
            yield SqliteView(db, self._tables.queries)

    def finish_erasing(self) -> None:
        self._file.finish_erasing()

    def close(self) -> None:
        self._file.finish_and_close()
