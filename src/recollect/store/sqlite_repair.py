"""Repair of a damaged SQLite database: set it aside whole, and make a new one from every readable row.

Journal and records repeat each other, and are completed from each other.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from recollect.errors import StoreError
from recollect.records import CONSENTS, JournalEntry, Record
from recollect.store.contract import LOST, FileState, Salvage
from recollect.store.rows import entry_from_row, entry_to_row, file_to_row, from_row, load_queries, to_row
from recollect.store.sqlite_copies import copies
from recollect.store.sqlite_pages import PageFile, Value
from recollect.store.sqlite_salvage import SalvagedRows, TableSchema, all_tables, empty_database, read_rows
from recollect.times import to_text, utc_now

_SQL = load_queries(Path(__file__).parent / "sqlite.sql")
_GONE = frozenset({"erase", "expire"})
_SMALLEST_ENTRY = 24
"""The minimum size of a journal entry in bytes."""
_DERIVED = frozenset({"vectors", "embedders", "recalls", "files"})
"""Tables that need no repair: they are made again."""


def repair(path: Path, user_id: str) -> Salvage:
    """Set a damaged database aside, and replace it with a new one that has every readable row.

    The order matters, because a process may die at any point. First all parts are linked under their new name, then the
    originals are removed, then the new database appears, whole, by one rename. In between there is no ``memory.db`` but
    a copy set aside, which `_check_not_lost` in `sqlite` recognises; the next repair starts from that copy.
    """
    if os.path.lexists(path):
        aside = _set_aside(path)
    else:
        if not (earlier := copies(path)):
            return Salvage()
        aside = earlier[-1]
    new = path.with_name(f"{path.name}.repaired")
    new.unlink(missing_ok=True)
    if not aside.is_file():  # a folder, or a pipe without a writer
        return Salvage(aside=aside, lost=True)
    salvage = _rebuild_database(PageFile(aside), new, user_id)
    os.replace(new, path)
    _sync(path.parent)
    return replace(salvage, aside=aside)


def _set_aside(path: Path) -> Path:
    aside = path.with_name(f"{path.name}.damaged-{utc_now():%Y%m%dT%H%M%S%f}")
    if not path.is_file():
        path.rename(aside)
        return aside
    parts = [path.with_name(path.name + ending) for ending in ("-wal", "-shm", "")]
    parts = [part for part in parts if part.exists()]
    for part in parts:  # all of them first: a crash must not separate the database from its log
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


# interpreting the rows


@dataclass(slots=True)
class _History:
    entries: dict[int, JournalEntry]
    versions: dict[tuple[str, int], Record]
    latest: dict[str, Record] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    older: set[str] = field(default_factory=set)
    """Records of which only an earlier state is left, or perhaps only that."""


def _rebuild_database(pages: PageFile, new: Path, user_id: str) -> Salvage:
    """Build a new database from the pages; return what is missing in it."""
    tables = all_tables()
    found = read_rows(pages, tables)
    state: Any = next(iter(found["state"].rows.values()), None)
    if state is not None and state[1] != user_id:
        raise StoreError("the damaged database belongs to another user; use export and import to copy a memory")
    now = utc_now()
    erased = {row[1] for row in found["tombstones"].rows.values()}
    last = _last_number(found, state, pages.count * pages.page_size // _SMALLEST_ENTRY)
    history = _complete(found, erased, last, now)
    _restore_consents(found["consents"], history)
    records, files = found["records"], found["files"]
    whole = records.counted and files.complete and not history.older and not _lost_records(found, history, erased)
    _write(new, tables, found, history, (user_id, state, now), keep_files=whole)
    return _report_salvage(pages, found, history, erased, state)


def _last_number(found: dict[str, SalvagedRows], state: Any, most: int) -> int:
    """Return the last number given. Entries are never removed, so the size of the file limits it."""
    numbers: list[Any] = [*found["journal"].rows, *(row[3] for row in found["records"].rows.values())]
    numbers += found["journal"].known
    numbers += [row[2] for row in found["files"].rows.values()]
    numbers.append(state[3] if state is not None else 0)
    return max((number for number in numbers if number <= most), default=0)


def _complete(found: dict[str, SalvagedRows], erased: set[Any], last: int, now: datetime) -> _History:
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
    """Restore records that only the journal has, and prefer its text where both differ, because it is checked."""
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
    """Restore the closed version that an update left, as the write path keeps it."""
    if before.content != after.content and after.valid_from > before.valid_from:
        closed = replace(before, status="superseded", valid_until=after.valid_from)
        history.versions.setdefault((before.id, before.version), closed)


def _between(numbers: list[int], begin: int, end: int) -> bool:
    place = bisect_right(numbers, begin)
    return place < len(numbers) and numbers[place] < end


def _fill_gaps(history: _History, now: datetime) -> None:
    """Add an entry for every missing number, so that the gap is visible and `verify` knows it."""
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


def _lost_records(found: dict[str, SalvagedRows], history: _History, erased: set[Any]) -> dict[str, int]:
    """Count records that an index knows but that were not restored, by kind."""
    known = set() if found["records"].complete else {key[0] for key in found["records"].known}
    return dict(Counter(_kind_of(record_id) for record_id in known - history.latest.keys() - erased))


def _kind_of(record_id: str) -> str:
    return record_id.partition("-")[0]


def _restore_consents(consents: SalvagedRows, history: _History) -> None:
    """Restore consents from the journal if their table cannot be read."""
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
    tables: dict[str, TableSchema],
    found: dict[str, SalvagedRows],
    history: _History,
    about: tuple[str, Any, datetime],
    *,
    keep_files: bool,
) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))  # new, and nobody has it open
    db = empty_database(str(path))
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


def _insert(db: sqlite3.Connection, table: TableSchema, rows: Iterable[tuple[Value, ...]]) -> None:
    names, marks = ", ".join(table.columns), ", ".join("?" * len(table.columns))
    db.executemany(f"INSERT OR IGNORE INTO {table.name} ({names}) VALUES ({marks})", rows)
    if table.name == "interactions" and "reported_at" in table.columns:
        db.execute("UPDATE interactions SET reported_at = at WHERE reported_at = ''")


def _doubt_files(db: sqlite3.Connection, found: dict[str, SalvagedRows], history: _History, last: int) -> None:
    """Have the files read again, as possibly older or newer ones: then a missing line is not a deletion."""
    active = [record for record in history.latest.values() if record.status == "active"]
    days = {record.tier or record.key for record in active if record.kind == "daily"}
    days |= {record.tier for record in active if record.kind == "fact"} - {"file", "archive", None}
    names: set[Any] = {"MEMORY.md", *(f"memory/{day}.md" for day in days)}
    names |= {row[0] for row in found["files"].rows.values()}
    for name in sorted(names):
        db.execute(
            _SQL["set_file"], file_to_row(FileState(name=name, fingerprint="", seq=last, boot="before the repair"))
        )


# reporting


def _report_salvage(
    pages: PageFile, found: dict[str, SalvagedRows], history: _History, erased: set[Any], state: Any
) -> Salvage:
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
