"""Records, journal entries and other data as rows: which fields are columns, and which go into the JSON.

Used by both databases, so that they cannot differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from recollect.errors import StoreCorruptError
from recollect.records import (
    ExtractionRun,
    Interaction,
    JournalEntry,
    Record,
    Spending,
    ToolCall,
    from_dict,
    to_dict,
)
from recollect.store.contract import FileState
from recollect.times import from_text, to_text

_Stored = TypeVar("_Stored")
_Loaded = TypeVar("_Loaded")

COLUMNS: tuple[str, ...] = (
    "id",
    "version",
    "seq",
    "kind",
    "status",
    "key",
    "category",
    "type",
    "tier",
    "session",
    "source",
    "content",
    "confidence",
    "created_at",
    "updated_at",
    "valid_from",
    "valid_until",
    "expires_at",
)
_COLUMN_SET = frozenset(COLUMNS)
_DEFAULTS: dict[str, Any] = {
    "version": 1,
    "seq": 0,
    "status": "active",
    "source": "explicit",
    "confidence": 1.0,
}


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dump(data: Mapping[str, Any]) -> str:
    """Return compact JSON that keeps every script readable."""
    return _encode(data)


def dump_record(record: Record | None) -> str | None:
    """Return a record as JSON text, for the journal."""
    return None if record is None else dump(to_dict(record))


def readable(load: Callable[[_Stored], _Loaded]) -> Callable[[_Stored], _Loaded]:
    """Wrap a loader of stored data: a failure to load means that the data is damaged."""

    @wraps(load)
    def loaded(stored: _Stored) -> _Loaded:
        try:
            return load(stored)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreCorruptError(
                f"a stored row is damaged ({type(error).__name__}); run `recollect rebuild` to restore everything"
                " readable"
            ) from error

    return loaded


@readable
def load_record(text: str | None) -> Record | None:
    """Invert `dump_record`."""
    return None if text is None else from_dict(json.loads(text))


def to_row(record: Record) -> tuple[Any, ...]:
    """Return a record as the values of `COLUMNS`, and last the rest as JSON text."""
    return data_to_row(to_dict(record))


def data_to_row(data: dict[str, Any]) -> tuple[Any, ...]:
    """Return the row of a record given as plain data, which is consumed."""
    values = [data.pop(name, _DEFAULTS.get(name)) for name in COLUMNS]
    values.append(dump(data))
    return tuple(values)


@readable
def from_row(row: tuple[Any, ...]) -> Record:
    """Invert `to_row`; times are text."""
    data: dict[str, Any] = json.loads(row[-1])
    for name, value in zip(COLUMNS, row, strict=False):
        if value is not None:
            data[name] = value
    return from_dict(data)


def entry_to_row(entry: JournalEntry, after: str | None = None) -> tuple[Any, ...]:
    """Return a journal entry as a row; ``after`` if the record after the change is already JSON text."""
    return (
        entry.seq,
        to_text(entry.at),
        entry.actor,
        entry.op,
        entry.record_id,
        dump_record(entry.before),
        after or dump_record(entry.after),
        entry.reason,
        entry.source,
        entry.run,
        entry.call,
        entry.undoes,
        entry.erased,
    )


@readable
def entry_from_row(row: tuple[Any, ...]) -> JournalEntry:
    """Invert `entry_to_row`."""
    return JournalEntry(
        seq=row[0],
        at=from_text(row[1]),
        actor=row[2],
        op=row[3],
        record_id=row[4],
        before=load_record(row[5]),
        after=load_record(row[6]),
        reason=row[7],
        source=row[8],
        run=row[9],
        call=row[10],
        undoes=row[11],
        erased=bool(row[12]),
    )


def file_to_row(state: FileState) -> tuple[Any, ...]:
    fingerprints = (state.fingerprint, state.seq, state.previous_fingerprint, state.previous_seq)
    return (state.name, *fingerprints, state.boot, json.dumps(state.versions, separators=(",", ":")))


def file_from_row(row: tuple[Any, ...]) -> FileState:
    """Invert `file_to_row`."""
    name, fingerprint, seq, previous_fingerprint, previous_seq, boot, versions = row
    return FileState(
        name=name,
        fingerprint=fingerprint,
        seq=seq,
        previous_fingerprint=previous_fingerprint,
        previous_seq=previous_seq,
        boot=boot,
        versions=tuple(tuple(int(number) for number in version) for version in json.loads(versions)),
    )


def call_to_row(call: ToolCall) -> tuple[Any, ...]:
    told = (call.tool, call.suite, call.status, call.outcome)
    used = (call.latency_ms, call.tokens_in, call.tokens_out)
    return (call.id, to_text(call.at), *told, *used, call.session, call.agent)


@readable
def call_from_row(row: tuple[Any, ...]) -> ToolCall:
    """Invert `call_to_row`."""
    return ToolCall(
        id=row[0],
        at=from_text(row[1]),
        tool=row[2],
        suite=row[3],
        status=row[4],
        outcome=row[5],
        latency_ms=row[6],
        tokens_in=row[7],
        tokens_out=row[8],
        session=row[9],
        agent=row[10],
    )


def spending_to_row(spending: Spending) -> tuple[Any, ...]:
    used = (spending.calls, spending.tokens_in, spending.tokens_out, spending.cost)
    return (spending.day.isoformat(), spending.operation, *used)


@readable
def spending_from_row(row: tuple[Any, ...]) -> Spending:
    """Invert `spending_to_row`; the day is text."""
    day, operation, calls, tokens_in, tokens_out, cost = row
    return Spending(
        day=date.fromisoformat(day),
        operation=operation,
        calls=calls,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=cost,
    )


def interaction_to_row(interaction: Interaction) -> tuple[Any, ...]:
    """Return an interaction as a row; topics and metadata as JSON text."""
    about = (interaction.item, interaction.title, interaction.value, json.dumps(interaction.topics, ensure_ascii=False))
    told = (interaction.text, interaction.session, dump(interaction.metadata))
    reported = to_text(interaction.reported_at or interaction.at)
    return (interaction.id, to_text(interaction.at), interaction.kind, *about, *told, reported)


@readable
def interaction_from_row(row: tuple[Any, ...]) -> Interaction:
    """Invert `interaction_to_row`."""
    return Interaction(
        id=row[0],
        at=from_text(row[1]),
        kind=row[2],
        item=row[3],
        title=row[4],
        value=row[5],
        topics=tuple(json.loads(row[6])),
        text=row[7],
        session=row[8],
        metadata=json.loads(row[9]),
        reported_at=from_text(row[10]),
    )


def run_to_row(run: ExtractionRun) -> tuple[Any, ...]:
    """Return an extraction run as a row, in the order of the seed's table."""
    counts = (run.interactions_processed, run.memories_written, run.memories_updated, run.tokens_used)
    ended = (run.duration_ms, run.status, run.error, to_text(run.started_at))
    return (run.id, run.day.isoformat(), *counts, *ended, run.kind, run.tier, dump(run.details))


@readable
def run_from_row(row: tuple[Any, ...]) -> ExtractionRun:
    """Invert `run_to_row`; the day is text."""
    return ExtractionRun(
        id=row[0],
        day=date.fromisoformat(row[1]),
        interactions_processed=row[2],
        memories_written=row[3],
        memories_updated=row[4],
        tokens_used=row[5],
        duration_ms=row[6],
        status=row[7],
        error=row[8],
        started_at=from_text(row[9]),
        kind=row[10],
        tier=row[11],
        details=json.loads(row[12]),
    )


_PLACEHOLDER = re.compile(r"(?<![\w:]):(\w+)")  # not the type in a cast with ::
_NAMED = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load_queries(path: Path) -> dict[str, str]:
    """Return the named queries of a .sql file: ``-- name: put`` begins one, comments under it describe it."""
    parts = _NAMED.split(path.read_text(encoding="utf-8"))
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def for_postgres(queries: Mapping[str, str]) -> dict[str, Any]:
    """Return the same queries with psycopg's placeholders instead of ``:name``."""
    return {name: _PLACEHOLDER.sub(r"%(\1)s", sql) for name, sql in queries.items()}


@cache
def load_migrations(folder: Path) -> tuple[str, ...]:
    """Return the numbered .sql files of a folder, in order; the n-th migrates the schema to version n. Read once."""
    return tuple(path.read_text(encoding="utf-8") for path in sorted(folder.glob("[0-9]*.sql")))
