"""Recognising lines of a person's file that were erased, or went with another memory, after they had opened it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from recollect.memory.files.versions import Base
from recollect.memory.tombstones import SEPARATED
from recollect.memory.write import Write
from recollect.records import Record

Span: TypeAlias = tuple[int, int]
"""The journal entries that stored and erased a record: the versions from the first until the second showed it."""


def erased_spans(write: Write, lines: Iterable[Record]) -> list[list[Span]]:
    """Return, for each line of a person that was erased or separated once, when the file showed it."""
    if not write.acting.is_person or not write.cache.buried:
        return []
    return [spans for line in lines if (spans := _spans(write, line))]


def was_erased(write: Write, line: Record, base: Base | None) -> bool:
    """Return True if a person's line was erased after a version that they may have started from, or any if unknown."""
    since = -1 if base is None else base.since
    return any(last > since for spans in erased_spans(write, [line]) for _, last in spans)


def _spans(write: Write, line: Record) -> list[Span]:
    hash = write.tombstone_hash(line)
    known = [one for one in (hash, SEPARATED + hash) if one in write.cache.buried]
    if not known:
        return []
    spans = []
    for record_id in {tombstone.record_id for tombstone in write.tx.tombstones(known)}:
        first = write.tx.entries(record_id=record_id, limit=1)
        last = write.tx.entries(record_id=record_id, newest_first=True, limit=1)
        if first and last:
            spans.append((first[0].seq, last[0].seq))
    return spans
