"""Search within PostgreSQL, for users too large to load: their words in a GIN index, the signs of their vectors.

The tables are filled only for users who need them; see the migrations. The caller makes the words: `to_tsvector` would
stem English, while the index of all others stems by the text's language. No extension is needed: signs are bit strings,
and PostgreSQL counts differing bits.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.records import KINDS
from recollect.store.contract import Query, VectorRow
from recollect.store.rows import COLUMNS, from_row, load_queries
from recollect.store.sql_views import SqlReader, values_of
from recollect.store.word_contract import KeptWords, PassageWords, WordQuery
from recollect.times import from_text, to_text

if TYPE_CHECKING:
    from psycopg import Connection

_SQL: dict[str, Any] = load_queries(Path(__file__).parent / "postgres.sql")
_RECORD = len(COLUMNS) + 1  # columns of a record
_LONGEST_EVENT = timedelta(days=367)
_MOST_ROWS = 10_000  # passages compared by their words, at most
_MOST_SEVERAL = 4  # words whose count in a passage matters
_FIRST_LOOK, _ENOUGH = 8192, 500  # the nearest of all by their signs, and how many of them must match


class PostgresWordReader(SqlReader):
    """The part of a reader that searches."""

    SQL = _SQL
    COLUMNS = {"categories": "type", "types": "fact_type"}  # noqa: RUF012
    LATEST = "latest"
    CHAT = "extra #>> '{metadata,chat}'"
    TAG = "tags @> ARRAY[?::text]"
    MOMENT = "?::timestamptz"
    LAST_MOMENT = "infinity"
    NO_LIMIT = None

    def __init__(self, db: Connection | None, user_id: str) -> None:
        super().__init__()
        self.db = db
        self._user_id = user_id
        self._is_planned = False

    def _rows(self, sql: Any, *values: Any) -> list[Any]:
        if self.db is None:
            return []
        return self.db.execute(sql.replace("?", "%s"), (self._user_id, *values)).fetchall()

    def _named(self, name: str, **values: Any) -> list[Any]:
        return [] if self.db is None else self.db.execute(_SQL[name], {"user_id": self._user_id, **values}).fetchall()

    @staticmethod
    def _among(column: str, allowed: Sequence[str]) -> tuple[str, Any]:
        return f"{column} = ANY(?)", list(allowed)

    def _found(self, sql: str, *values: Any) -> list[str]:
        """Return ids by a statement whose plan must not depend on luck."""
        if self.db is not None and not self._is_planned:
            self.db.execute(_SQL["plan_search"])
            self._is_planned = True
        return [row[0] for row in self._rows(sql, *values)]

    def kept_words(self) -> KeptWords | None:
        rows = self._rows(_SQL["kept_words"])
        return KeptWords(*rows[0]) if rows else None

    def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        return dict(self._rows(_SQL["frequencies"], list(terms))) if terms else {}

    def counted_words(self, record_ids: Sequence[str]) -> list[tuple[list[str], int]]:
        return self._rows(_SQL["counted_words"], list(record_ids)) if record_ids else []

    def speakers(self) -> list[str]:
        return [row[0] for row in self._named("speakers")]

    def worded(self, record_ids: Sequence[str]) -> list[PassageWords]:
        return [_passage_from_row(row) for row in self._rows(_SQL["worded"], list(record_ids))] if record_ids else []

    def holding(self, wanted: WordQuery, where: Query, limit: int) -> list[str]:
        among = " | ".join(f"({' & '.join(map(_quote_term, words))})" for words in wanted.among if words)
        if not among:
            return []
        if wanted.also:
            among = f"({among}) & ({' | '.join(map(_quote_term, wanted.also))})"
        gains = [(gain, _quote_term(word)) for word, gain in wanted.gains.items()]
        several = [(gain, _quote_term(_twice(word))) for word, gain in islice(wanted.gains.items(), _MOST_SEVERAL)]
        once, twice = _sum(len(gains)), _sum(len(several))
        below = "(%s::float8 + %s::float8 * length)"
        score = f"max({once} / (1 + {below}) + {twice} * (2 / (2 + {below}) - 1 / (1 + {below})))"
        line = (wanted.flat, wanted.slope)
        by = [*_flat(gains), *line, *_flat(several), *line, *line]
        fitting, values = self._kept("record_id, terms, length", "terms @@ %s::tsquery", where, wanted.speakers)
        sql = (
            f"SELECT record_id FROM ({fitting} LIMIT {_MOST_ROWS}) AS found"
            f" GROUP BY record_id ORDER BY {score} DESC, record_id DESC LIMIT %s"
        )
        return self._found(sql, among, *values, *by, limit)

    def told_of(
        self, begin: datetime, end: datetime, where: Query, limit: int, speakers: Sequence[str] = ()
    ) -> list[str]:
        earliest = (
            begin - _LONGEST_EVENT if begin > datetime.min.replace(tzinfo=begin.tzinfo) + _LONGEST_EVENT else begin
        )
        told = "event_from >= %s AND event_from < %s AND event_until > %s"
        fitting, values = self._kept("record_id", told, where, speakers)
        span = (to_text(earliest), to_text(end), to_text(begin))
        return self._found(f"{fitting} ORDER BY event_from DESC LIMIT %s", *span, *values, limit)

    def said_in(self, where: Query, limit: int) -> list[str]:
        fitting, values = self._kept("record_id", "passage = 0", where)
        return self._found(f"{fitting} ORDER BY valid_from DESC LIMIT %s", *values, limit)

    def said_first_and_last(self) -> list[str]:
        return [row[0] for row in self._named("said_first_and_last", kinds=list(KINDS))]

    def neighbours(self, record_ids: Sequence[str]) -> list[tuple[str, str | None, str | None]]:
        return self._rows(_SQL["neighbours"], list(record_ids)) if record_ids else []

    def vectors_of(self, embedder: str, record_ids: Sequence[str]) -> list[VectorRow]:
        values = (self._user_id, embedder, list(record_ids))
        rows = [] if self.db is None else self.db.execute(_SQL["vectors_of"], values, binary=True).fetchall()
        return [VectorRow(*row) for row in rows]

    def some_vectors(self, embedder: str, numbers: Sequence[int]) -> list[VectorRow]:
        return [VectorRow(*row) for row in self._rows(_SQL["vectors_numbered"], embedder, list(numbers))]

    def nearest(
        self, embedder: str, query: Sequence[float], where: Query, limit: int, speakers: Sequence[str] = ()
    ) -> list[VectorRow]:
        conditions = self.conditions_of(where) | ({_SQL["spoken_by"]: list(speakers)} if speakers else {})
        fitting = " AND ".join(["user_id = %s AND id = record_id", *conditions])
        given = (embedder, len(query), _sign_bit_string(query), self._user_id, *values_of(conditions), limit)
        found: list[str] = []
        for among in (f"ORDER BY apart LIMIT {_FIRST_LOOK}", ""):  # if few match, all must be compared
            near = f"{_SQL['nearest']} {among})"
            found = self._found(
                f"{near} SELECT id FROM memory_records, near WHERE {fitting} ORDER BY apart, id LIMIT %s", *given
            )
            if len(found) >= min(limit, _ENOUGH):
                break
        return self.vectors_of(embedder, found)

    def _kept(self, columns: str, condition: str, where: Query, speakers: Sequence[str] = ()) -> tuple[str, list[Any]]:
        """Return the start of a statement about stored words that match, and the values for it."""
        conditions = self.narrowing(where) | ({"speaker = ANY(%s)": list(speakers)} if speakers else {})
        is_told = replace(where, kinds=(), statuses=(), said_from=None, said_until=None, alive_at=None) == _EVERYTHING
        source = "memory_words" if is_told else _SQL["words_and_records"]
        sql = " AND ".join([f"SELECT {columns} FROM {source} WHERE user_id = %s", condition, *conditions])
        return sql, values_of(conditions)


class PostgresWordWriter(PostgresWordReader):
    """The part of a transaction that stores words."""

    db: Connection

    def begin_words(self, life: str) -> None:
        self.end_words()
        self.db.execute(_SQL["begin_words"], (self._user_id, life))

    def put_words(self, record_ids: Sequence[str], rows: Sequence[PassageWords], *, seq: int, complete: bool) -> None:
        self.drop_words(record_ids)
        if rows:
            values = zip(*map(_values, rows), strict=True)
            self.db.execute(_SQL["put_words"], (self._user_id, *map(list, values)))
        counted = [row for row in rows if row.is_counted]
        numbers = Counter(term for row in counted for term in row.terms)
        if numbers:
            self.db.execute(_SQL["add_terms"], (self._user_id, list(numbers), list(numbers.values())))
        sums = {
            "records": sum(row.passage == 0 for row in rows),
            "passages": len(counted),
            "words": sum(row.length for row in counted),
        }
        self.db.execute(_SQL["set_words"], {"user_id": self._user_id, "seq": seq, "complete": complete, **sums})

    def drop_words(self, record_ids: Sequence[str]) -> int:
        """Remove the words of some records; return the number of passages, which is 0 for most users."""
        dropped = self._named("drop_words", ids=list(record_ids)) if record_ids else []
        if dropped:
            self.db.execute(_SQL["drop_unused_terms"], (self._user_id,))
        return dropped[0][0] if dropped else 0

    def end_words(self) -> None:
        self.db.execute(_SQL["end_words"], {"user_id": self._user_id})

    def keep_meanings(self, embedder: str, dimensions: int, limit: int) -> int:
        [(last,)] = self._rows(_SQL["last_meaning"], embedder)
        new = self._rows(_SQL["new_meanings"], embedder, last, 2 * dimensions, limit)
        signs = [_sign_bit_string(struct.unpack(f"<{dimensions}e", data)) for _, _, data in new]
        numbers, ids = [number for number, _, _ in new], [record_id for _, record_id, _ in new]
        self.db.execute(_SQL["put_meanings"], (self._user_id, embedder, ids, numbers, signs))
        return len(new)


def _quote_term(term: str) -> str:
    """Quote a term for a query; the terms are hashes, so nothing needs escaping."""
    return f"'{term}'"


def _twice(term: str) -> str:
    return f"{term}2"


def _sum(number: int) -> str:
    return f"({' + '.join(['%s::float8 * (terms @@ %s::tsquery)::int'] * number) or '0'})"


def _flat(pairs: Sequence[tuple[float, str]]) -> list[Any]:
    return [value for pair in pairs for value in pair]


def _values(row: PassageWords) -> tuple[Any, ...]:
    record, (begin, end) = row.record, row.event or (None, None)
    return (
        record.id,
        row.passage,
        row.begin,
        row.length,
        record.kind,
        record.status,
        getattr(record, "speaker", None),
        to_text(record.valid_from),
        None if record.expires_at is None else to_text(record.expires_at),
        row.asks,
        row.tells_when,
        None if begin is None else to_text(begin),
        None if end is None else to_text(end),
        " ".join([*row.terms, *map(_twice, row.several)]),
        row.counts,
    )


def _passage_from_row(row: tuple[Any, ...]) -> PassageWords:
    passage, begins, length, counts, asks, tells_when, begin, end = row[_RECORD:]
    event = None if begin is None else (from_text(begin), from_text(end))
    return PassageWords(from_row(row[:_RECORD]), passage, begins, length, counts, asks, tells_when, event)


def _sign_bit_string(numbers: Sequence[float]) -> str:
    return "".join("1" if number > 0 else "0" for number in numbers)


_EVERYTHING = Query(statuses=())
