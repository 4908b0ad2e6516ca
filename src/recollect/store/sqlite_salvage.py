"""The readable rows of a damaged SQLite database, table by table.

They are read page by page: a damaged page costs only what it held. The indexes tell what is missing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recollect.errors import StoreCorruptError
from recollect.records import CONSENTS, MODES
from recollect.store.rows import (
    call_from_row,
    entry_from_row,
    from_row,
    interaction_from_row,
    run_from_row,
    spending_from_row,
)
from recollect.store.sqlite_connections import migrate_database
from recollect.store.sqlite_pages import TABLE_INTERIOR, PageFile, PageTree, UnreadablePageError, Value, page_kind
from recollect.times import from_text

_MIGRATIONS = Path(__file__).parent / "sqlite_migrations"
_TYPES: dict[str, type | tuple[type, ...]] = {"TEXT": str, "INTEGER": int, "REAL": (float, int), "BLOB": bytes}


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The shape of a table's rows."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    required: tuple[bool, ...]
    defaults: tuple[Any, ...]
    key: tuple[int, ...]
    stored: tuple[int, ...]
    """The column of each stored value."""
    rowid_column: int | None
    without_rowid: bool
    indexes: dict[str, tuple[int, ...]]
    """For indexes that cover all rows: the position of the key in their rows."""

    def fit(self, rowid: int | None, values: Sequence[Value]) -> tuple[Value, ...] | None:
        """Return a row in the order of the columns, or None if it does not fit. Columns added later may be missing."""
        if len(values) > len(self.stored) or (rowid is None) != self.without_rowid:
            return None
        row = list(self.defaults)
        for place, value in zip(self.stored, values, strict=False):
            row[place] = value
        if self.rowid_column is not None:
            row[self.rowid_column] = rowid
        for place, value in enumerate(row):
            kind = self.types[place]
            if value is None:
                if self.required[place]:
                    return None
            elif not isinstance(value, _TYPES[kind]) or (isinstance(value, str) and "\0" in value):
                return None
            elif kind == "REAL":
                row[place] = float(value)  # type: ignore[arg-type]
        return tuple(row)

    def key_of(self, rowid: int | None, row: Sequence[Value]) -> Any:
        """Return the key of a row, as the indexes hold it."""
        return tuple(row[place] for place in self.key) if self.without_rowid else rowid


@dataclass(slots=True)
class SalvagedRows:
    rows: dict[Any, tuple[Value, ...]] = field(default_factory=dict)
    known: set[Any] = field(default_factory=set)
    """Keys of rows that existed, as far as indexes tell."""
    complete: bool = False
    counted: bool = False
    """True if ``known`` has all of them."""

    def missing(self) -> int:
        return 0 if self.complete else len(self.known - self.rows.keys())


def all_tables() -> dict[str, TableSchema]:
    db = empty_database(":memory:")
    try:
        names = db.execute("SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'").fetchall()
        return {name: _table(db, name, bool(wr)) for name, wr in names if not name.startswith("sqlite_")}
    finally:
        db.close()


def _table(db: sqlite3.Connection, name: str, without_rowid: bool) -> TableSchema:
    columns = db.execute('SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)', (name,)).fetchall()
    key = tuple(place for place, _ in sorted(((p, c[4]) for p, c in enumerate(columns) if c[4]), key=lambda e: e[1]))
    alias = key[0] if not without_rowid and len(key) == 1 and columns[key[0]][1] == "INTEGER" else None
    rest = tuple(place for place in range(len(columns)) if place not in key)
    indexes: dict[str, tuple[int, ...]] = {}
    for index, partial in db.execute("SELECT name, partial FROM pragma_index_list(?)", (name,)).fetchall():
        cids = [row[0] for row in db.execute("SELECT cid FROM pragma_index_xinfo(?)", (index,))]
        latest = partial and name == "records" and index in ("records_by_kind", "records_by_time")
        if (not partial or latest) and not (without_rowid and len(cids) == len(columns)):
            indexes[index] = tuple(cids.index(place) for place in key) if without_rowid else (len(cids) - 1,)
    return TableSchema(
        name=name,
        columns=tuple(column[0] for column in columns),
        types=tuple(column[1] for column in columns),
        required=tuple(bool(column[2]) or (column[4] > 0 and without_rowid) for column in columns),
        defaults=tuple(
            None if column[3] is None else db.execute(f"SELECT {column[3]}").fetchone()[0] for column in columns
        ),
        key=key,
        stored=key + rest if without_rowid else tuple(range(len(columns))),
        rowid_column=alias,
        without_rowid=without_rowid,
        indexes=indexes,
    )


def read_rows(pages: PageFile, tables: dict[str, TableSchema]) -> dict[str, SalvagedRows]:
    """Return all rows of all tables: from their trees as far as they are intact, then from pages no tree leads to."""
    found = {name: SalvagedRows() for name in tables}
    roots = _roots(pages)
    for name, table in tables.items():
        if name in roots:
            tree = pages.tree(roots[name])
            found[name].complete = _take(tree.rows, table, found[name]) and tree.complete
    walked = [index for table in tables.values() for index in table.indexes]
    for name, table in tables.items():
        here = found[name]
        for index, places in table.indexes.items():
            if index not in roots:
                continue
            tree = pages.tree(roots[index])
            keys = [_key_in(values, places, table) for _, values in tree.rows]
            here.known.update(key for key in keys if key is not None)
            here.counted |= tree.complete and None not in keys
        here.counted |= here.complete
    for index, root in roots.items():  # partial ones, so that their pages are not taken for strays
        if index not in found and index not in walked:
            pages.tree(root)
    if not all(here.complete for here in found.values()):
        _read_strays(pages, tables, found)
    return found


def _key_in(values: list[Value], places: tuple[int, ...], table: TableSchema) -> Any:
    """Return the key in a row of an index; None if it is not valid."""
    if max(places) >= len(values):
        return None
    key = tuple(values[place] for place in places)
    types = [table.types[place] for place in table.key] if table.without_rowid else ["INTEGER"]
    for value, kind in zip(key, types, strict=True):
        if not isinstance(value, _TYPES[kind]) or (isinstance(value, str) and not value.isprintable()):
            return None
    return key if table.without_rowid else key[0]


def _roots(pages: PageFile) -> dict[str, int]:
    roots: dict[str, int] = {}
    for _, values in pages.tree(1).rows:
        if len(values) == 5 and isinstance(values[1], str) and isinstance(values[3], int) and values[3] > 1:
            roots[values[1]] = values[3]
    return roots


def _read_strays(pages: PageFile, tables: dict[str, TableSchema], found: dict[str, SalvagedRows]) -> None:
    """Read rows of pages that no tree leads to, because the page above them is damaged."""
    free = pages.free_pages()
    for number in range(1, pages.count + 1):
        if number in pages.seen or number in free or number in pages.unreadable:
            continue
        try:
            kind = page_kind(pages.page(number), number)
        except UnreadablePageError:
            continue
        if kind == TABLE_INTERIOR:
            continue
        for rowid, values in list(pages.rows(number, PageTree())):
            for name, table in tables.items():
                if not found[name].complete and _take([(rowid, values)], table, found[name]):
                    break


def _take(rows: Iterable[tuple[int | None, list[Value]]], table: TableSchema, found: SalvagedRows) -> bool:
    """Collect rows; return True if all of them fit this table."""
    whole = True
    for rowid, values in rows:
        row = table.fit(rowid, values)
        if row is None or not _is_sound(table.name, row):
            whole = False
        else:
            found.rows.setdefault(table.key_of(rowid, row), row)
    return whole


def _moments(*places: int) -> Callable[[tuple[Any, ...]], object]:
    return lambda row: [from_text(row[place]) for place in places]


def _check_consent(row: tuple[Any, ...]) -> None:
    from_text(row[1])
    if row[0] not in CONSENTS:
        raise ValueError(row[0])


def _check_state(row: tuple[Any, ...]) -> None:
    from_text(row[2])
    if row[4] not in MODES or not row[5]:
        raise ValueError


_LOADERS: dict[str, Callable[[Any], object]] = {
    "state": _check_state,
    "records": lambda row: from_row((row[0], row[1], *row[3:])),
    "journal": entry_from_row,
    "tombstones": _moments(2),
    "recalls": _moments(1),
    "calls": call_from_row,
    "spending": spending_from_row,
    "consents": _check_consent,
    "interactions": lambda row: interaction_from_row(row if len(row) > 10 and row[10] else (*row[:10], row[1])),
    "extraction_runs": run_from_row,
}


def _is_sound(table: str, row: tuple[Any, ...]) -> bool:
    try:
        if table in _LOADERS:
            _LOADERS[table](row)
    except (StoreCorruptError, ValueError, TypeError):
        return False
    return True


def empty_database(path: str) -> sqlite3.Connection:
    """Create a database of the present schema, without rows."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    migrate_database(db, _MIGRATIONS)
    return db
