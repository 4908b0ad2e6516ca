"""The one recall path: a query, the user's own index, the rows, hits that say why they matched."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.core.known import KINDS
from recollect.core.person import Person
from recollect.policy.duplicates import Statement
from recollect.records import Hit
from recollect.store.contract import Query, Reader


def search(
    person: Person, reader: Reader, query: str, limit: int, kinds: Sequence[str] = (), category: str | None = None
) -> list[Hit]:
    """The best records for a query, each with a score from 0 to 1 and the words that matched."""
    state = reader.state()
    if state.mode == "incognito":
        return []
    known = person.known
    with known.guard:
        known.catch_up(reader, max(state.seq, known.seq))
        found = known.search(Statement.of(query).terms, kinds or KINDS, limit if category is None else 10 * limit)
    wanted = Query(
        ids=[record_id for record_id, _, _ in found],
        categories=(category,) if category else (),
        alive_at=person.clock(),
    )
    records = {record.id: record for record in reader.find(wanted)}
    hits = [
        Hit(record=records[record_id], score=_normal(score), raw_score=score, why=words)
        for record_id, score, words in found
        if record_id in records
    ][:limit]
    now = person.clock()
    person.recalled.update({hit.record.id: now for hit in hits})
    return hits


def _normal(score: float) -> float:
    """Any score as 0 to 1, in the same order."""
    return score if score <= 0 else 1 - 1 / (1 + score)
