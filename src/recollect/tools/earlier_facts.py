"""Facts that held before, or at another time, for the tools that recall facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from recollect.memory.memory import Memory
from recollect.records import Hit, Record
from recollect.times import to_text

_MOST = 500


def facts_at(memory: Memory, as_of: str, query: str | None, kinds: Sequence[str]) -> list[Record]:
    """Return the facts that held at a time: the latest first, or those that a query finds, best first."""
    held = [one for kind in kinds for one in memory.read(kind=kind, as_of=as_of, newest_first=True)]
    if not query or not query.strip():
        return held
    hits = memory.search(query, kinds=kinds, limit=_MOST, earlier=True)
    order = {name: place for place, hit in reversed(list(enumerate(hits))) for name in (hit.record.id, hit.record.key)}
    found = [one for one in held if one.id in order or (one.key and one.key in order)]
    return sorted(found, key=lambda one: order.get(one.id, order.get(one.key, len(order))))


def with_earlier_facts(memory: Memory, hit: Hit, query: str) -> list[Record]:
    """Return the fact that was found, after what it said before if the query asks for that or matches only that."""
    from recollect.search.question import asks_for_the_past  # here, not above: it loads much

    past = bool(hit.earlier) or asks_for_the_past(query)
    return [*(_earlier_facts(memory, hit.record) if past else ()), hit.record]


def _earlier_facts(memory: Memory, record: Record) -> list[Record]:
    """Return the earlier values of a fact and the facts that had its key, the latest first.

    A value that was corrected never held and is left out.
    """
    found: list[Record] = []
    for entry in memory.history(record.id):
        before, after = entry.before, entry.after
        if not before or not after or before.content == after.content or before.valid_from == after.valid_from:
            continue
        if before.valid_from < after.valid_from or entry.op == "update":  # not after an undo
            until = after.valid_from
            began = min(before.valid_from, until)
            found.append(replace(before, status="superseded", valid_from=began, valid_until=until))
    if record.kind == "fact" and record.key:
        found += [one for one in memory.read(kind="fact", key=record.key, status="superseded") if one.id != record.id]
    values = {one.content: one for one in found if one.content != record.content}
    return sorted(values.values(), key=lambda one: one.valid_until or one.valid_from, reverse=True)


def held_fields(record: Record) -> dict[str, Any]:
    """Return from when until when a fact held that no longer does."""
    if record.status != "superseded" or record.valid_until is None:
        return {}
    return {"earlier": True, "valid_from": to_text(record.valid_from), "valid_until": to_text(record.valid_until)}
