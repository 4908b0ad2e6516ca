"""The one search path: a query, the user's index, the rows, and hits that explain why they matched."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from recollect.memory.chat_scope import unscoped, visible_chats
from recollect.memory.listing import find_earlier, list_records
from recollect.memory.references import reports_change
from recollect.memory.user_memory import UserMemory
from recollect.records import Hit, Hits, Record
from recollect.search.filters import Filter
from recollect.search.passages import indexed_text
from recollect.store.contract import Query, Reader, TextSearch
from recollect.text import fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.search.index.index import Index
    from recollect.search.question import Question
    from recollect.search.ranking import Ranking

MEMORY_KINDS = ("fact", "note", "observation", "episode", "daily")
"""The default kinds to search: everything except conversations and working memory."""


@dataclass(frozen=True, slots=True)
class RecalledObservations:
    """The texts of observations by category, best first."""

    findings: tuple[str, ...] = ()
    insights: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()


_BEGINNING = 400
_SPARE = 8  # ranked beyond the limit, in case some are equal or gone


class _FoundDocument(NamedTuple):
    record_id: str
    total: float
    words: tuple[str, ...]
    signals: dict[str, float]
    passage: tuple[int, int | None]


class QueryVector(NamedTuple):
    """The vector of a query, or the reason there is none."""

    vector: NDArray[np.float32] | None = None
    note: str = ""


def load_search() -> None:
    """Load what a search needs, NumPy and the word tables, which takes a moment."""
    from recollect.search import events, question, ranking  # noqa: F401


def embed_query(
    memory: UserMemory, reading: Callable[[], AbstractContextManager[Reader]], query: str, now: datetime | None = None
) -> QueryVector:
    """Get the vector of a query from the embedder, while no reader and no transaction is open: it may take long.

    So may indexing by the store, which must precede the search of a user too large to load.
    """
    memory.index.prepare(memory.user)
    if memory.vectors is None or not query.strip():
        return QueryVector()
    from recollect.search.question import Question  # here, not above: it loads NumPy

    with reading() as reader:
        state = reader.state()
        if state.mode == "incognito":
            return QueryVector()
        with memory.index.using(reader, state) as index:
            names = index.names()
    question = Question.of(query, now or memory.clock(), names, memory.config.language)
    return QueryVector(*memory.vectors.embedding.of_query(question.in_first_person()))


def search_records(
    memory: UserMemory,
    reader: Reader,
    query: str,
    where: Filter,
    limit: int,
    *,
    asked: QueryVector | None = None,
    now: datetime | None = None,
    min_score: float = 0.0,
    earlier: bool = False,
    within: int | None = None,
) -> Hits:
    """Return the best records for a query, each with a score from 0 to 1 and the reasons it matched.

    ``now`` is when the question is asked, for "yesterday" and "last week". If the reader is an open write, ``within``
    is its current sequence number.
    """
    state = reader.state()
    if within is not None:
        state = replace(state, seq=within)
    if state.mode == "incognito":
        return Hits()
    if memory.config.tsvector and isinstance(memory.user, TextSearch) and within is None and _is_simple(where):
        return _search_in_database(memory.user, reader, query, where, limit, min_score)
    from recollect.search.events import with_event  # here, not above: they load NumPy
    from recollect.search.question import Question, asks_for_everything
    from recollect.search.ranking import rank_documents

    moment = memory.clock()
    where = replace(where, chats=visible_chats(reader))
    if asks_for_everything(query):
        return Hits(list_records(reader, where, limit, now or moment, min_score))
    vector, note = asked or QueryVector()
    most = limit + _SPARE
    while True:
        with memory.index.using(reader, state, in_write=within is not None) as index:
            question = Question.of(query, now or moment, index.names(), memory.config.language)
            index.gather(question, where, most)
            timed = with_event(
                index, question, index.select(where), now or moment, memory.weights, memory.config.language
            )
            if timed is not question:
                index.gather(question := timed, where, most)
            similarity = usual = None
            if memory.vectors is not None and vector is not None:
                similarity, usual, note = memory.vectors.similar(index, unscoped(reader), vector, where)
            fits = index.select(where)
            ranking = rank_documents(
                index, question, fits, most, similarity=similarity, usual=usual, weights=memory.weights
            )
            found = _describe_documents(index, question, ranking)
        hits = _load_hits(reader, found, limit, min_score)
        if len(hits) == limit or len(found) < most or _normalize_score(found[-1].total) < min_score:
            break
        most *= 4  # many say the same: what comes after them?
    if earlier and len(hits) < limit:
        hits += find_earlier(reader, question, where, hits, limit - len(hits))
    memory.recalled.update({hit.record.id: moment for hit in hits})
    return Hits(hits, mode="words" if similarity is None else "words and vectors", note=note)


def _is_simple(where: Filter) -> bool:
    """Return True for what the database's own search can select."""
    return where.statuses == ("active",) and not where.speakers


def _search_in_database(
    user: TextSearch, reader: Reader, query: str, where: Filter, limit: int, min_score: float
) -> Hits:
    """Search with the database's own full-text search (MEMORY_TSVECTOR): whole words in one language, no signals."""
    ranks = dict(user.text_search(query, where.kinds, limit * _SPARE + _BEGINNING))
    names = ("kinds", "categories", "types", "tier", "source", "session", "tags", "said_from", "said_until", "alive_at")
    chosen = {name: getattr(where, name) for name in names}
    found = [
        _FoundDocument(record.id, ranks[record.id], (), {"words": ranks[record.id]}, (0, None))
        for record in reader.find(Query(ids=list(ranks), **chosen))
    ]
    found.sort(key=lambda each: -each.total)
    return Hits(_load_hits(reader, found, limit, min_score), mode="tsvector")


def _describe_documents(index: Index, question: Question, ranking: Ranking) -> list[_FoundDocument]:
    """Describe the documents that were found, while their numbers are valid."""
    own = list(dict.fromkeys(question.words))
    other = [(other, word) for word in question.otherwise for other in question.otherwise[word]]
    other += [(word, cause) for word, _, cause in question.related]
    terms, causes = own + [word for word, _ in other], own + [cause for _, cause in other]
    spelled = [question.spelled.get(cause, cause) for cause in causes]
    names = list(ranking.signals)
    described = zip(
        ranking.numbers.tolist(),
        index.ids(ranking.numbers),
        ranking.totals.tolist(),
        zip(*(values.tolist() for values in ranking.signals.values()), strict=True),
        index.matching(ranking.numbers, terms).T.tolist(),
        strict=True,
    )
    return [
        _FoundDocument(
            record_id,
            total,
            tuple(dict.fromkeys(compress(spelled, matched))),
            {name: value for name, value in zip(names, values, strict=True) if value},
            index.best_passage(number, terms) if index.passages_of(number) > 1 else (0, None),
        )
        for number, record_id, total, values, matched in described
    ]


def _load_hits(reader: Reader, found: list[_FoundDocument], limit: int, min_score: float) -> list[Hit]:
    """Return the hits with their records; one that repeats a better one, or is gone, makes room for the next."""
    found = [each for each in found if _normalize_score(each.total) >= min_score]
    hits: list[Hit] = []
    said: set[tuple[int, str]] = set()
    for part in (found[:limit], found[limit:]):
        if not part or len(hits) >= limit:
            break
        wanted = Query(ids=[each.record_id for each in part], statuses=())
        records = {record.id: record for record in reader.find(wanted)}
        for each in part:
            record = records.get(each.record_id)
            if record is None or reports_change(record):
                continue
            if (content := _content_key(record)) not in said:
                said.add(content)
                hits.append(_make_hit(record, each))
    return hits[:limit]


def _make_hit(record: Record, found: _FoundDocument) -> Hit:
    text = indexed_text(record)
    begin, end = found.passage
    return Hit(
        record=record,
        score=_normalize_score(found.total),
        raw_score=found.total,
        words=found.words,
        signals=found.signals,
        passage=text[begin:end].strip() if begin or end else text,
    )


def _content_key(record: Record) -> tuple[int, str]:
    """Return a key that is equal for records of the same text; of long texts the start and the length decide."""
    return len(record.text), fold(record.text[:_BEGINNING])


def _normalize_score(score: float) -> float:
    """Map any score to 0 to 1, keeping the order."""
    return 1 - 1 / (1 + max(score, 0.0))
