"""The one recall path: a query, the user's own index, the rows, hits that say why they matched."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.core.known import KINDS
from recollect.core.person import Person
from recollect.errors import InvalidInputError
from recollect.policy.duplicates import Statement
from recollect.records import Hit, Record
from recollect.store.contract import Query, Reader
from recollect.text import terms


def search(
    person: Person, reader: Reader, query: str, limit: int, kinds: Sequence[str] = (), category: str | None = None
) -> list[Hit]:
    """The best records for a query, each with a score from 0 to 1 and the words that matched."""
    state = reader.state()
    if state.mode == "incognito":
        return []
    known = person.known_in(state)
    with known.guard:
        if not known.is_open:  # else it is ahead of the store, and knows what the open write did
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


def speaking_of(reader: Reader, topic: str) -> list[Record]:
    """Every record, of any kind and status, that has all the words of a topic."""
    wanted = frozenset(terms(topic))
    if not wanted:
        raise InvalidInputError("topic", "has no words to look for")
    return [record for record in reader.find(Query(statuses=())) if wanted <= frozenset(terms(record.text))]


def _normal(score: float) -> float:
    """Any score as 0 to 1, in the same order."""
    return score if score <= 0 else 1 - 1 / (1 + score)
