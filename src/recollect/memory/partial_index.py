"""The index of a user too large to load: only what could answer one query, with the statistics of everything.

The store finds candidates by words, time, speaker and neighbours. They are then ranked as usual, because a
`PartialIndex` is an `Index` with fewer documents. Changes since the store last took in words are always included, so
nothing written is ever missed. It serves one query and is built for each, from that query's reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import accumulate, chain, combinations, groupby, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.records import Message, Record
from recollect.search.embedders.embedder import unpack
from recollect.search.filters import Filter
from recollect.search.index.index import Found, Index, Terms
from recollect.search.passages import indexed_text, passages
from recollect.search.question import Question
from recollect.search.ranking import asked_words, reach
from recollect.search.signs import Signs, signs_of
from recollect.store.contract import Query, VectorRow
from recollect.store.word_contract import KeptWords, PassageWords, WordQuery, WordReader
from recollect.text import folded_words as text_words

Marks = Callable[[Record], Sequence[str]]

CANDIDATES = 100
"""The minimum number of candidates drawn for a query."""
_MOST_TERMS, _MOST_MARKS = 16_384, 4096  # per passage: a tsvector is limited to a megabyte
_HASH, _TIMES = np.dtype(">u8"), np.dtype("<u2")
_MOST_TIMES = np.iinfo(_TIMES).max
_MOST_GAINS = 12  # words by which candidates are compared
_MOST_PAIRED = 6  # words searched for in pairs
_ROWS = 5000  # passages examined for one query, as a rule
_LEAST_PAIRS = 2  # examined in any case
_TALKING = 100  # candidates whose neighbours are examined
_BY_SIGNS = 2000  # vectors compared exactly: enough to include nearly all of the nearest five of 100,000
_MOST_ALIKE = 32  # records examined as possible duplicates of one
_MOST_REMEMBERED = 50_000  # hashes of words
_MOST_MARKED = 64  # marks searched for
_FEW_MARKS = 500  # passages that have one of the marks


class Lexemes:
    """Words and marks as the store keeps them: hashed with the user's secret, so that they reveal nothing to others."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret[:64]
        self._words: dict[str, str] = {}

    def word(self, word: str) -> str:
        if (known := self._words.get(word)) is None:
            if len(self._words) >= _MOST_REMEMBERED:
                self._words.clear()
            known = self._words[word] = self._hashed(word, b"word")
        return known

    def mark(self, mark: str) -> str:
        return self._hashed(mark, b"mark")

    def _hashed(self, text: str, sort: bytes) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return blake2b(data, digest_size=8, key=self._secret, person=sort).hexdigest()


def index_passages(record: Record, lexemes: Lexemes, terms: Terms, marks: Marks) -> list[PassageWords]:
    """Return a record's words as the store keeps them."""
    text = indexed_text(record)
    signs = signs_of(text, record.valid_from)
    rows = []
    for number, (begin, end) in enumerate(passages(text)):
        found = Counter(terms(text[begin:end]))
        own = {lexemes.word(word): times for word, times in found.items()}
        held = tuple(islice(own, _MOST_TERMS))
        marked = () if number else (*sorted(map(lexemes.mark, marks(record)))[:_MOST_MARKS], *_role_of(record, lexemes))
        rows.append(
            PassageWords(
                record,
                number,
                begin,
                found.total(),
                _pack_counts(own),
                signs.asks,
                signs.tells_when,
                None if number else signs.event,
                tuple(dict.fromkeys((*held, *marked))),
                tuple(term for term in held if own[term] > 1),
            )
        )
    return rows


def _pack_counts(counts: Mapping[str, int]) -> bytes:
    """Pack terms and their counts: first all hashes, then all counts."""
    often = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
    return bytes.fromhex("".join(counts)) + often.clip(max=_MOST_TIMES).astype(_TIMES).tobytes()


def _unpack_counts(data: bytes) -> dict[int, int]:
    number = len(data) // (_HASH.itemsize + _TIMES.itemsize)
    hashes = np.frombuffer(data, dtype=_HASH, count=number)
    times = np.frombuffer(data, dtype=_TIMES, offset=number * _HASH.itemsize)
    return dict(zip(hashes.tolist(), times.tolist(), strict=True))


def _role_of(record: Record, lexemes: Lexemes) -> list[str]:
    """Return a mark for the role of a message, so that roles can be counted over all records."""
    return [lexemes.mark(f"@{record.role}")] if isinstance(record, Message) else []


class PartialIndex(Index):
    """The documents drawn for one query. It is not shared, so it needs no lock."""

    def __init__(
        self, reader: WordReader, kept: KeptWords, lexemes: Lexemes, *, k1: float, b: float, terms: Terms, marks: Marks
    ) -> None:
        super().__init__(k1=k1, b=b, terms=terms)
        self._reader, self._kept, self._lexemes, self._marks = reader, kept, lexemes, marks
        self._before: dict[str, str] = {}  # each message with the one said right before it
        self._linked: NDArray[np.int32] | None = None
        self._known: dict[str, int] = {}
        self._spoken: frozenset[str] | None = None
        fresh = reader.find(Query(statuses=(), changed_after=kept.seq))
        for record in fresh:
            self.put(record, marks(record))
        self._changed_since = len(fresh)
        stale = reader.counted_words([record.id for record in fresh])
        self._stale = Counter(term for found, _ in stale for term in found)
        self._fresh = self._passages.size
        self._all = (
            kept.passages - len(stale) + self._counted,
            kept.words - sum(length for _, length in stale) + self._words,
        )
        self._link([record for record in fresh if record.kind == "message"])

    # -- statistics of everything ----------------------------------------------------------------------------

    def names(self) -> frozenset[str]:
        if self._spoken is None:
            named = (frozenset(text_words(name)) for name in self._reader.speakers())
            self._spoken = frozenset().union(*named)
        return self._spoken | super().names()

    def code(self, column: str, value: str) -> int | None:
        if column == "role" and super().code(column, value) is None:
            self._ask([role := self._lexemes.mark(f"@{value}")])
            if self._known[role] > self._stale[role]:
                return self._documents.tables[column].code(value)
        return super().code(column, value)

    def idf(self, words: Sequence[str]) -> list[float]:
        self._learn(words)
        return super().idf(words)

    def unknown(self, words: Sequence[str]) -> list[str]:
        self._learn(words)
        missing = super().unknown(words)
        return [word for word in missing if not self._holding(word, ())]

    def _statistics(self) -> tuple[int, int]:
        return self._all

    def _hash(self, word: str) -> int:
        return int(self._lexemes.word(word), 16)

    def _holding(self, word: str, found: Found) -> int:
        term = self._lexemes.word(word)
        if term not in self._known:
            self._learn([word])
        counts = self._passages.view("counts")
        fresh = sum(int(np.count_nonzero(counts[numbers[numbers < self._fresh]])) for numbers, _ in found)
        return self._known[term] - self._stale[term] + fresh

    def _learn_of(self, question: Question) -> None:
        """Fetch in one query all frequencies that ranking will need."""
        otherwise = chain(question.otherwise, *question.otherwise.values())
        related = (word for word, _, _ in question.related)
        words = map(self._lexemes.word, chain(question.words, question.name_words, otherwise, related))
        self._ask(dict.fromkeys([*words, self._lexemes.mark("@assistant")]))

    def _learn(self, words: Iterable[str]) -> None:
        self._ask(dict.fromkeys(map(self._lexemes.word, words)))

    def _ask(self, terms: Iterable[str]) -> None:
        missing = [term for term in terms if term not in self._known]
        if missing:
            self._known |= dict.fromkeys(missing, 0) | self._reader.frequencies(missing)

    # -- drawing candidates ----------------------------------------------------------------------------------

    def gather(self, question: Question, where: Filter, most: int) -> None:
        self._learn_of(question)
        gains = self._gains(question)
        number = max(CANDIDATES, 2 * most)
        self._draw(gains, where, most, number)
        if len(question.names) == 1:
            name = question.names[0]
            speakers = [one for one in self._reader.speakers() if name in text_words(one)]
            if where.speakers:
                speakers = [one for one in speakers if one in where.speakers]
            if speakers:
                self._draw(gains, replace(where, speakers=speakers), most, number // 2)
        for span in question.spans:
            for begin, end in ((span.start, span.end), reach(span)):
                then = replace(
                    where,
                    said_from=max(filter(None, (where.said_from, begin))),
                    said_until=min(filter(None, (where.said_until, end))),
                )
                self._draw(gains, then, most, number)
                self.include(self._reader.said_in(_store_query(then), number))
                self.include(self._reader.told_of(begin, end, _store_query(where), number, where.speakers))
        if question.wants_latest:
            self.include(self._reader.said_first_and_last())
        self._draw_message(where)

    def _draw_message(self, where: Filter) -> None:
        """Include a message if there is any, because its existence matters even if none is among the best."""
        if where.kinds and "message" not in where.kinds:
            return
        talk = replace(where, kinds=("message",))
        if not self.select(talk).any():
            self.include(self._reader.said_in(_store_query(talk), 1))

    def gather_words(self, words: Sequence[str], also: Sequence[str], where: Filter, most: int) -> None:
        gains = dict.fromkeys(words, 1.0)
        self._draw(gains, where, most, most)
        if also:
            self._draw(gains, where, most, most, also=[self._lexemes.word(word) for word in also])

    def include(self, record_ids: Sequence[str]) -> None:
        found = self._place(record_ids)
        self._link([record for record in found if record.kind == "message"][:_TALKING])

    def draw_nearest(self, embedder: str, query: NDArray[np.float32], where: Filter, number: int) -> None:
        """Include the nearest vectors: compared exactly, among those nearest by their signs."""
        found = self._reader.nearest(embedder, query.tolist(), _store_query(where), _BY_SIGNS, where.speakers)
        rows = [row for row in found if len(row.data) == 2 * len(query)]  # otherwise re-embedded by another model since
        if rows:
            vectors = np.array([unpack(row.data, len(query))[0] for row in rows])
            best = np.argsort(-(vectors @ query), kind="stable")[:number]
            self.include([rows[place].record_id for place in best])

    def vectors(self, embedder: str) -> list[VectorRow]:
        """Return the vectors of all documents here."""
        return self._reader.vectors_of(embedder, self.ids(np.arange(self.size)))

    def some_vectors(self, embedder: str, numbers: Sequence[int]) -> list[VectorRow]:
        """Return the vectors with these numbers, of any documents."""
        return self._reader.some_vectors(embedder, numbers)

    def last_vector(self, embedder: str) -> int:
        """Return the highest number of a vector."""
        return self._reader.last_vector(embedder)

    def _place(self, record_ids: Iterable[str]) -> list[Record]:
        """Add missing records from what the store keeps of their words; without their content."""
        missing = [one for one in dict.fromkeys(record_ids) if self.number(one) is None]
        kept = {one: list(rows) for one, rows in groupby(self._reader.worded(missing), lambda row: row.record.id)}
        placed = [kept[one] for one in missing if one in kept]
        for rows in placed:
            number = self._documents.new(rows[0].record.id)
            self._living += 1
            self._documents.note(number, rows[0].record, 0)
            self._documents.note_signs(number, Signs(rows[0].asks, rows[0].tells_when, rows[0].event))
            self._settle(
                number, [(_unpack_counts(row.counts), row.length) for row in rows], [row.begin for row in rows]
            )
            self._count(number, 1)
        self._changed()
        return [rows[0].record for rows in placed]

    def _put_marked(self, record_ids: Sequence[str]) -> None:
        missing = [one for one in record_ids if self.number(one) is None]
        for record in self._reader.find(Query(ids=missing, statuses=())) if missing else ():
            self.put(record, self._marks(record))

    def _link(self, messages: Sequence[Record]) -> None:
        """Add the messages said right before and after these: others may stand between those that are here."""
        rows = self._reader.neighbours([message.id for message in messages])
        for record_id, before, after in rows:
            if before is not None:
                self._before[record_id] = before
            if after is not None:
                self._before[after] = record_id
        self._place(one for row in rows for one in row[1:] if one is not None)
        self._chain = self._linked = None

    @property
    def previous(self) -> NDArray[np.int32]:  # type: ignore[override]
        """The number of the message said right before each document, where both are here."""
        if self._linked is None or len(self._linked) != self.size:
            self._linked = np.full(self.size, -1, dtype=np.int32)
            for after, before in self._before.items():
                number, previous = self.number(after), self.number(before)
                if number is not None and previous is not None:
                    self._linked[number] = previous
        return self._linked

    def _gains(self, question: Question) -> dict[str, float]:
        """Return the weight of each word of a query, before its rarity."""
        gains = asked_words(self, question.words, question)
        for word in question.name_words:
            gains[word] = gains.get(word, 0.0) + 1.0
        for word, weight, _ in question.related:
            gains[word] = max(gains.get(word, 0.0), weight)
        return gains

    def _draw(
        self, gains: Mapping[str, float], where: Filter, most: int, number: int, also: Sequence[str] = ()
    ) -> None:
        """Include the best matches for these words, by the rare ones if they suffice."""
        if not gains:
            return
        rarity = dict(zip(gains, self.idf(list(gains)), strict=True))
        worth = sorted(((rarity[word] * gain, self._lexemes.word(word)) for word, gain in gains.items()), reverse=True)
        if set(where.statuses) == {"active"}:
            worth = [(gain, term) for gain, term in worth if self._known[term]]
        every = [term for _, term in worth]
        wanted = WordQuery(
            gains={term: gain for gain, term in worth[:_MOST_GAINS]},
            among=self._rare(every),
            also=also,
            speakers=where.speakers,
            flat=self._k1 * (1 - self._b),
            slope=self._slope,
        )
        number += self._changed_since  # their stored words are outdated, and they are here already
        found = self._reader.holding(wanted, _store_query(where), number)
        if len(found) < most and set(wanted.among) != (alone := {(term,) for term in every}):
            wanted = replace(wanted, among=list(alone))
            found = self._reader.holding(wanted, _store_query(where), number)
        self.include(found)

    def _rare(self, terms: Iterable[str]) -> list[tuple[str, ...]]:
        """Return the rarest words singly and the next ones in pairs, which few passages have."""
        by_number = sorted(terms, key=lambda term: self._known[term])
        alone = len(_take_within(_ROWS, [self._known[term] for term in by_number]))
        rows = sum(self._known[term] for term in by_number[:alone])
        common = by_number[alone : alone + _MOST_PAIRED]
        together = sorted(
            (self._known[one] * self._known[other] / max(self._all[0], 1), one, other)
            for one, other in combinations(common, 2)
        )
        pairs = together[: max(len(_take_within(_ROWS - rows, [number for number, *_ in together])), _LEAST_PAIRS)]
        chosen: list[tuple[str, ...]] = [(term,) for term in by_number[:alone]]
        chosen += [(one, other) for _, one, other in pairs]
        return chosen or [(term,) for term in by_number]

    # -- duplicates ------------------------------------------------------------------------------------------

    def marked(self, mark: str) -> NDArray[np.int32]:
        wanted = WordQuery(gains={}, among=[(self._lexemes.mark(mark),)])
        self._put_marked(self._reader.holding(wanted, Query(), 1000))
        return super().marked(mark)

    def alike(self, marks: Sequence[str], kind: str, most: int) -> list[str]:
        terms = list(map(self._lexemes.mark, marks))
        self._ask(terms)
        known = sorted((term for term in terms[1:] if self._known[term]), key=lambda term: self._known[term])
        rare, rows = terms[:1], 0
        for term in known[:_MOST_MARKED]:
            rows += self._known[term]
            if len(rare) > 1 and rows > _FEW_MARKS:
                break
            rare.append(term)
        wanted = WordQuery(gains=dict.fromkeys(known[:_MOST_MARKED], 1.0), among=[(term,) for term in rare])
        self._put_marked(self._reader.holding(wanted, Query(kinds=(kind,)), _MOST_ALIKE + self._changed_since))
        return super().alike(marks, kind, most)


def _take_within(most: float, numbers: Sequence[float]) -> Sequence[float]:
    """Return the longest prefix of these numbers whose sum is at most ``most``."""
    return [number for number, total in zip(numbers, accumulate(numbers), strict=True) if total <= most]


def _store_query(where: Filter) -> Query:
    """Return a filter as a store query. Speakers are passed separately."""
    same: dict[str, Any] = {
        name: getattr(where, name)
        for name in (
            "kinds",
            "statuses",
            "categories",
            "types",
            "tier",
            "source",
            "session",
            "chats",
            "tags",
            "said_from",
            "said_until",
            "alive_at",
        )
    }
    return Query(**same)
