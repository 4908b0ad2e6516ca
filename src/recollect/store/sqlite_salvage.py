"""Repair of a damaged SQLite database: set it aside whole, and make a new one from every row that can still be read.

Rows are read page by page, so that a damaged page costs what it held and nothing else. Journal and records repeat each
other, and are completed from each other; the indexes tell what is missing.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from recollect.errors import StoreCorruptError, StoreError
from recollect.records import CONSENTS, KINDS, MODES, JournalEntry, Record
from recollect.store.contract import LOST, Salvage
from recollect.store.rows import (
    call_from_row,
    entry_from_row,
    entry_to_row,
    from_row,
    interaction_from_row,
    load_migrations,
    load_queries,
    run_from_row,
    spending_from_row,
    to_row,
)
from recollect.store.sqlite_pages import (
    FRAME_HEADER,
    LOG_HEADER,
    TABLE_INTERIOR,
    PageFile,
    Tree,
    UnreadablePageError,
    Value,
    cells,
    page_kind,
)
from recollect.times import from_text, to_text, utc_now

_SQL = load_queries(Path(__file__).parent / "sqlite.sql")
_TYPES: dict[str, type | tuple[type, ...]] = {"TEXT": str, "INTEGER": int, "REAL": (float, int), "BLOB": bytes}
_GONE = frozenset({"erase", "expire"})
_ID = re.compile(rb"(?:%s)-[0-9a-z]{26}" % "|".join(KINDS).encode())
"""The first id in a row is that of the record it is about; others follow."""
_SMALLEST_ENTRY = 24
"""No journal entry takes fewer bytes."""
_DERIVED = frozenset({"vectors", "embedders", "recalls", "files"})
"""Tables that nobody misses: they are made again."""


@dataclass(frozen=True, slots=True)
class _Table:
    """What rows of a table look like."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    required: tuple[bool, ...]
    defaults: tuple[Any, ...]
    key: tuple[int, ...]
    stored: tuple[int, ...]
    """Which column each stored value belongs to."""
    rowid_column: int | None
    without_rowid: bool
    indexes: dict[str, tuple[int, ...]]
    """Of the indexes that cover all rows: where in their rows the key is."""

    def fit(self, rowid: int | None, values: Sequence[Value]) -> tuple[Value, ...] | None:
        """A row in the order of the columns, if it can be one of this table. Columns added later may be missing."""
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
        """What a row is told from others by, as the indexes tell it."""
        return tuple(row[place] for place in self.key) if self.without_rowid else rowid


@dataclass(slots=True)
class _Rows:
    """What was read of one table."""

    rows: dict[Any, tuple[Value, ...]] = field(default_factory=dict)
    known: set[Any] = field(default_factory=set)
    """Keys of rows that were there, as far as indexes tell."""
    complete: bool = False
    counted: bool = False
    """Whether ``known`` has all of them."""

    def missing(self) -> int:
        return 0 if self.complete else len(self.known - self.rows.keys())


def repair(path: Path, user_id: str) -> Salvage:
    """Set a damaged database aside, and put a new one in its place with every row that can be read.

    The order matters, for a process may die at any point. First all parts are linked under their new name, then the
    originals go, then the new database appears, whole, by one rename. In between there is no ``memory.db`` and a copy
    set aside, which is how `interrupted` knows; the next repair starts from that copy.
    """
    if os.path.lexists(path):
        aside = _set_aside(path)
    else:
        if not (earlier := copies(path)):
            return Salvage()
        aside = earlier[-1]
    new = path.with_name(f"{path.name}.repaired")
    new.unlink(missing_ok=True)
    if not aside.is_file():  # a folder, or a pipe that nobody would ever write to
        return Salvage(aside=aside, lost=True)
    salvage = _rebuild(PageFile(aside), new, user_id)
    os.replace(new, path)
    _sync(path.parent)
    return replace(salvage, aside=aside)


def copies(path: Path) -> list[Path]:
    """Databases that were set aside, the latest last."""
    return sorted(path.parent.glob(f"{path.name}.damaged-????????T????????????"))


def erase_from_copies(path: Path, ids: Iterable[str], texts: Iterable[str] = (), *, dry_run: bool = False) -> int:
    """Overwrite the rows of these records in databases that were set aside, and say how many.

    On pages that cannot be read, their ids and ``texts`` are overwritten wherever they stand.
    """
    wanted = frozenset(ids)
    return sum(_Copy(copy).erase(wanted, texts, dry_run) for copy in copies(path) if copy.is_file()) if wanted else 0


class _Copy:
    """A database that was set aside, to be written to: all its pages, those in its log too."""

    def __init__(self, path: Path) -> None:
        self._parts = [part for part in (path, path.with_name(path.name + "-wal")) if part.is_file()]
        self._data = [bytearray(part.read_bytes()) for part in self._parts]
        file = PageFile(path)
        self._size, self._usable = file.page_size, file.usable
        self._pages: dict[int, list[tuple[bytearray, int]]] = {}
        for begin in range(0, len(self._data[0]), self._size):
            self._pages[begin // self._size + 1] = [(self._data[0], begin)]
        for number, data, begin in self._frames():
            self._pages.setdefault(number, []).append((data, begin))

    def _frames(self) -> Iterator[tuple[int, bytearray, int]]:
        for data in self._data[1:]:
            for begin in range(LOG_HEADER, len(data), FRAME_HEADER + self._size):
                yield int.from_bytes(data[begin : begin + 4], "big"), data, begin + FRAME_HEADER

    def erase(self, ids: frozenset[str], texts: Iterable[str], dry_run: bool) -> int:
        said = [*ids, *(text for text in texts if len(text) > 3)]
        longest_first = sorted({re.escape(text.encode()) for text in said}, key=lambda trace: -len(trace))
        traces = re.compile(b"|".join(longest_first))
        number = 0
        for page, places in list(self._pages.items()):
            for data, begin in places:
                number += self._erase_on(page, data, begin, ids, traces)
        if number and not dry_run:
            for part, data in zip(self._parts, self._data, strict=True):
                with part.open("r+b") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
        return number

    def _erase_on(self, page: int, data: bytearray, begin: int, ids: frozenset[str], traces: re.Pattern[bytes]) -> int:
        number, failures = 0, []
        foreign = [name.encode() for name in ids if not _ID.fullmatch(name.encode())]
        content = bytes(data[begin : begin + self._size])
        try:
            for cell in cells(content, page, self._usable, lambda: failures.append(page)):
                row = content[cell.begin : cell.begin + cell.local]
                named = _ID.search(row)
                if (named is not None and named.group().decode() in ids) or any(odd in row for odd in foreign):
                    data[begin + cell.begin : begin + cell.begin + cell.local] = bytes(cell.local)
                    self._erase_chain(cell.overflow)
                    number += 1
        except (UnreadablePageError, IndexError):
            failures.append(page)
        if failures:
            for found in traces.finditer(bytes(data[begin : begin + self._size])):
                data[begin + found.start() : begin + found.end()] = bytes(found.end() - found.start())
                number += 1
        return number

    def _erase_chain(self, number: int) -> None:
        waiting, done = [number], {0}
        while waiting:
            page = waiting.pop()
            if page not in done:
                done.add(page)
                for data, begin in self._pages.get(page, ()):
                    if data[begin] == 0:  # as on every overflow page; else it is one of a tree by now
                        waiting.append(int.from_bytes(data[begin : begin + 4], "big"))
                        end = min(begin + self._size, len(data))
                        data[begin:end] = bytes(end - begin)


def _set_aside(path: Path) -> Path:
    aside = path.with_name(f"{path.name}.damaged-{utc_now():%Y%m%dT%H%M%S%f}")
    if not path.is_file():
        path.rename(aside)
        return aside
    parts = [path.with_name(path.name + ending) for ending in ("-wal", "-shm", "")]
    parts = [part for part in parts if part.exists()]
    for part in parts:  # all of them first: a crash must not part the database from its log
        copy = aside.with_name(aside.name + part.name.removeprefix(path.name))
        try:
            copy.hardlink_to(part)
        except OSError:  # not every file system has links
            shutil.copyfile(part, copy)
    for part in parts[::-1]:
        part.unlink()
    return aside


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# reading


def _tables(version: int) -> dict[str, _Table]:
    """The tables of a schema."""
    db = _empty(":memory:", version)
    try:
        names = db.execute("SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'").fetchall()
        return {name: _table(db, name, bool(wr)) for name, wr in names if not name.startswith("sqlite_")}
    finally:
        db.close()


def _table(db: sqlite3.Connection, name: str, without_rowid: bool) -> _Table:
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
    return _Table(
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


def _read(pages: PageFile, tables: dict[str, _Table]) -> dict[str, _Rows]:
    """All rows of all tables: down their trees as far as these hold together, then from pages no tree leads to."""
    found = {name: _Rows() for name in tables}
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


def _key_in(values: list[Value], places: tuple[int, ...], table: _Table) -> Any:
    """The key that a row of an index leads to; None if it makes no sense."""
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


def _read_strays(pages: PageFile, tables: dict[str, _Table], found: dict[str, _Rows]) -> None:
    """Rows of pages that no tree leads to, because the page above them is damaged."""
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
        for rowid, values in list(pages.rows(number, Tree())):
            for name, table in tables.items():
                if not found[name].complete and _take([(rowid, values)], table, found[name]):
                    break


def _take(rows: Iterable[tuple[int | None, list[Value]]], table: _Table, found: _Rows) -> bool:
    """Take rows over; whether all of them are rows of this table."""
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


def _consent(row: tuple[Any, ...]) -> None:
    from_text(row[1])
    if row[0] not in CONSENTS:
        raise ValueError(row[0])


def _state(row: tuple[Any, ...]) -> None:
    from_text(row[2])
    if row[4] not in MODES or not row[5]:
        raise ValueError


_LOADERS: dict[str, Callable[[Any], object]] = {
    "state": _state,
    "records": lambda row: from_row((row[0], row[1], *row[3:])),
    "journal": entry_from_row,
    "tombstones": _moments(2),
    "recalls": _moments(1),
    "calls": call_from_row,
    "spending": spending_from_row,
    "consents": _consent,
    "interactions": lambda row: interaction_from_row(row if len(row) > 10 and row[10] else (*row[:10], row[1])),
    "extraction_runs": run_from_row,
}


def _is_sound(table: str, row: tuple[Any, ...]) -> bool:
    """Whether what a row says can be understood."""
    try:
        if table in _LOADERS:
            _LOADERS[table](row)
    except (StoreCorruptError, ValueError, TypeError):
        return False
    return True


# making sense of it


@dataclass(slots=True)
class _History:
    """Records and journal, completed from each other."""

    entries: dict[int, JournalEntry]
    versions: dict[tuple[str, int], Record]
    latest: dict[str, Record] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    older: set[str] = field(default_factory=set)
    """Records of which only an earlier state is left, or perhaps only that."""


def _rebuild(pages: PageFile, new: Path, user_id: str) -> Salvage:
    """A new database from what the pages hold, and what is not in it."""
    migrations = len(load_migrations(Path(__file__).parent / "sqlite_migrations"))
    version = pages.schema_version
    version = version if version is not None and 1 <= version <= migrations else migrations
    tables = _tables(version)
    found = _read(pages, tables)
    state: Any = next(iter(found["state"].rows.values()), None)
    if state is not None and state[1] != user_id:
        raise StoreError("the damaged database holds another user's memory; use export and import to copy a memory")
    now = utc_now()
    erased = {row[1] for row in found["tombstones"].rows.values()}
    last = _last_number(found, state, pages.count * pages.page_size // _SMALLEST_ENTRY)
    history = _complete(found, erased, last, now)
    _restore_consents(found["consents"], history)
    records, files = found["records"], found["files"]
    whole = records.counted and files.complete and not history.older and not _lost_records(found, history, erased)
    _write(new, version, tables, found, history, (user_id, state, now), keep_files=whole)
    return _tell(pages, found, history, erased, state)


def _last_number(found: dict[str, _Rows], state: Any, most: int) -> int:
    """The last number that was given. Entries are never removed, so the size of the file bounds it."""
    numbers: list[Any] = [*found["journal"].rows, *(row[3] for row in found["records"].rows.values())]
    numbers += found["journal"].known
    numbers += [row[2] for row in found["files"].rows.values()]
    numbers.append(state[3] if state is not None else 0)
    return max((number for number in numbers if number <= most), default=0)


def _complete(found: dict[str, _Rows], erased: set[Any], last: int, now: datetime) -> _History:
    rows: list[Any] = [row for seq, row in sorted(found["journal"].rows.items()) if 0 < seq <= last]
    entries = {entry.seq: entry for entry in map(entry_from_row, rows)}
    stored: list[Any] = sorted(row for row in found["records"].rows.values() if _number_of(row) <= last)
    history = _History(entries, {})
    gone = erased | {e.record_id for e in entries.values() if e.erased or e.op in _GONE}
    for row in stored:
        record = from_row((row[0], row[1], *row[3:]))
        if record.id not in gone:
            history.versions[record.id, record.version] = record
            if row[2]:
                history.latest[record.id] = record
    history.lost = [seq for seq in range(1, last + 1) if seq not in entries]
    indexed: dict[Any, int] = {}
    for record_id, version in found["records"].known:
        indexed[record_id] = max(version, indexed.get(record_id, 0))
    _restore_from_journal(history, gone, indexed)
    _fill_gaps(history, now)
    return history


def _number_of(row: Any) -> int:
    return int(row[3])


def _restore_from_journal(history: _History, gone: set[Any], indexed: dict[Any, int]) -> None:
    """Records that only the journal has, and what it says where both differ: its text is the one that is checked."""
    last: dict[str, JournalEntry] = {}
    for seq, entry in history.entries.items():
        if entry.after is None or entry.record_id in gone:
            continue
        if entry.source != entry.after.source:  # one is a copy of the other
            entry = history.entries[seq] = replace(entry, source=entry.after.source)
        before = last.get(entry.record_id)
        uninterrupted = not _between(history.lost, before.seq if before else 0, seq)
        if uninterrupted and entry.before != (before.after if before else None):
            entry = history.entries[seq] = replace(entry, before=before.after if before else None)
        last[entry.record_id] = entry
        if entry.before is not None and entry.after is not None and entry.op == "update":
            _restore_version(history, entry.before, entry.after)
    for record_id, entry in last.items():
        known = history.latest.get(record_id)
        if entry.after is not None and (known is None or known.seq <= entry.seq) and known != entry.after:
            unsure = record_id not in indexed and bool(history.lost) and history.lost[-1] > entry.seq
            if known is None and (unsure or indexed.get(record_id, 0) > entry.after.version):
                history.older.add(record_id)
            if known is not None:
                history.versions.pop((record_id, known.version), None)
            history.latest[record_id] = history.versions[record_id, entry.after.version] = entry.after
    for record_id, version in sorted(history.versions, reverse=True):
        if record_id not in history.latest:  # only closed versions are left: better the newest of them than none
            newest = replace(history.versions[record_id, version], status="active", valid_until=None)
            history.latest[record_id] = history.versions[record_id, version] = newest
            history.older.add(record_id)


def _restore_version(history: _History, before: Record, after: Record) -> None:
    """The closed version that an update left, as the write path keeps it."""
    if before.content != after.content and after.valid_from > before.valid_from:
        closed = replace(before, status="superseded", valid_until=after.valid_from)
        history.versions.setdefault((before.id, before.version), closed)


def _between(numbers: list[int], begin: int, end: int) -> bool:
    place = bisect_right(numbers, begin)
    return place < len(numbers) and numbers[place] < end


def _fill_gaps(history: _History, now: datetime) -> None:
    """An entry for every number that is missing, so that everybody sees that and `verify` knows it."""
    left = {entry.before.seq: entry.before for entry in history.entries.values() if entry.before is not None}
    left |= {record.seq: record for record in history.latest.values()}
    told = {entry.record_id: entry.after for _, entry in sorted(history.entries.items()) if entry.after is not None}
    for record in list(history.latest.values()):  # which no entry, read or lost, accounts for
        if record.seq not in history.lost and told.get(record.id) != record:
            seq = max([0, *history.entries, *history.lost]) + 1
            history.lost.append(seq)
            found = left[seq] = replace(record, seq=seq)
            history.latest[record.id] = history.versions[record.id, record.version] = found
    for seq in history.lost:
        after = left.get(seq)
        history.entries[seq] = JournalEntry(
            seq=seq,
            at=now if after is None else after.updated_at,
            actor="rebuild",
            op=LOST,
            record_id="" if after is None else after.id,
            after=after,
            reason="this entry could not be read when the database was repaired",
        )


def _lost_records(found: dict[str, _Rows], history: _History, erased: set[Any]) -> dict[str, int]:
    """Records that an index knows and that are not restored, by kind."""
    known = set() if found["records"].complete else {key[0] for key in found["records"].known}
    return dict(Counter(_kind_of(record_id) for record_id in known - history.latest.keys() - erased))


def _kind_of(record_id: str) -> str:
    return record_id.partition("-")[0]


def _restore_consents(consents: _Rows, history: _History) -> None:
    """If their table cannot be read, the journal tells them too."""
    if consents.complete or history.lost:
        return
    for _, entry in sorted(history.entries.items()):
        if entry.op == "consent" and entry.reason in CONSENTS:
            consents.rows[(entry.reason,)] = (entry.reason, to_text(entry.at))
        elif entry.op == "withdraw":
            consents.rows.pop((entry.reason,), None)
    consents.complete = True


# writing


def _write(
    path: Path,
    version: int,
    tables: dict[str, _Table],
    found: dict[str, _Rows],
    history: _History,
    about: tuple[str, Any, datetime],
    *,
    keep_files: bool,
) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))  # new, and nobody has it open
    db = _empty(str(path), version)
    user_id, state, now = about
    last = max(history.entries, default=0)
    try:
        db.execute("BEGIN")
        created = min((r.created_at for r in history.latest.values()), default=now)
        row = (
            (state[2], last, state[4], state[5])
            if state
            else (to_text(created), last, "paused", secrets.token_bytes(16))
        )
        db.execute(_SQL["create_state"], (user_id, *row))
        db.executemany(_SQL["put"], map(to_row, history.latest.values()))
        closed = [record for record in history.versions.values() if record != history.latest[record.id]]
        db.executemany(_SQL["keep"], map(to_row, closed))
        db.executemany(_SQL["log"], (entry_to_row(entry) for _, entry in sorted(history.entries.items())))
        for name, table in tables.items():
            if name not in ("state", "records", "journal") and (keep_files or name != "files"):
                _insert(db, table, found[name].rows.values())
        if "vectors" in tables:
            db.execute(_SQL["drop_stray_vectors"])
        if not keep_files:
            _doubt_files(db, found, history, last)
        db.execute("COMMIT")
    finally:
        db.close()
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _insert(db: sqlite3.Connection, table: _Table, rows: Iterable[tuple[Value, ...]]) -> None:
    names, marks = ", ".join(table.columns), ", ".join("?" * len(table.columns))
    db.executemany(f"INSERT OR IGNORE INTO {table.name} ({names}) VALUES ({marks})", rows)
    if table.name == "interactions" and "reported_at" in table.columns:
        db.execute("UPDATE interactions SET reported_at = at WHERE reported_at = ''")


def _doubt_files(db: sqlite3.Connection, found: dict[str, _Rows], history: _History, last: int) -> None:
    """Have the files read again, as ones that may be older or newer: then a line they lack is not a deletion."""
    days = {record.key for record in history.latest.values() if record.kind == "daily" and record.status == "active"}
    names: set[Any] = {"MEMORY.md", *(f"memory/{day}.md" for day in days)}
    names |= {row[0] for row in found["files"].rows.values()}
    for name in sorted(names):
        db.execute(_SQL["set_file"], (name, "", last, "", 0, "before the repair"))


def _empty(path: str, version: int) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("BEGIN")
    for script in load_migrations(Path(__file__).parent / "sqlite_migrations")[:version]:
        for statement in script.split(";\n"):
            if statement.strip():
                db.execute(statement)
    db.execute(f"PRAGMA user_version = {version}")
    db.execute("COMMIT")
    return db


# telling


def _tell(pages: PageFile, found: dict[str, _Rows], history: _History, erased: set[Any], state: Any) -> Salvage:
    missing = {name: rows.missing() for name, rows in found.items() if name not in _DERIVED}
    for name in ("records", "journal", "state"):
        missing.pop(name, None)
    missing |= _lost_records(found, history, erased)
    uncounted = {name for name, rows in found.items() if not rows.counted and name not in _DERIVED}
    stones = found["tombstones"]
    return Salvage(
        lost=not any(rows.rows for rows in found.values()),
        mode=state[4] if state else None,
        has_secret=state is not None,
        all_tombstones=stones.complete or (stones.counted and not stones.missing()),
        all_consents=found["consents"].complete,
        missing={name: number for name, number in sorted(missing.items()) if number},
        uncounted=tuple(sorted(uncounted - {"state", "consents", "tombstones"})),
        gaps=_ranges(history.lost),
        older=dict(Counter(_kind_of(record_id) for record_id in sorted(history.older))),
        pages=len(pages.unreadable),
        frames=pages.broken_frames,
    )


def _ranges(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return tuple(ranges)
