"""Pairs of records that say nearly the same and may be merged."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.memory.search import search_records
from recollect.memory.user_memory import UserMemory
from recollect.policy.duplicates.comparison import Relation, Statement, relation
from recollect.records import Record
from recollect.search.filters import Filter
from recollect.store.contract import Query, Reader

_MOST_COMPARED = 1_000
_NEIGHBOURS = 6


def similar_pairs(memory: UserMemory, reader: Reader, kinds: Sequence[str], limit: int) -> list[tuple[Record, Record]]:
    """Return pairs of active records of one kind, the older first, the latest pairs first.

    Each record, of very many the latest, is compared with those that a search for its own words finds. Keys are
    ignored: the same thing may be known under two.
    """
    found: dict[tuple[str, str], tuple[Record, Record]] = {}
    for kind in kinds:
        where = Filter(kinds=(kind,), alive_at=memory.clock())
        query = Query(kinds=(kind,), alive_at=memory.clock(), newest_first=True, limit=_MOST_COMPARED)
        for record in reader.find(query):
            statement = Statement.of(record.content, None)
            for hit in search_records(memory, reader, record.content[:1000], where, _NEIGHBOURS):
                other = hit.record
                pair = (min(record.id, other.id), max(record.id, other.id))
                if other.id == record.id or pair in found:
                    continue
                if relation(statement, Statement.of(other.content, None)) in (Relation.SAME, Relation.NEAR):
                    older, newer = sorted((record, other), key=lambda one: one.id)
                    found[pair] = (older, newer)
            if len(found) >= limit:
                break
    return list(found.values())[:limit]
