"""Everything a write must know of the stored records: possible duplicates, the facts in MEMORY.md, and what was erased.

Candidates come from the user's index, by the marks of each record: its signature, and its words as they are compared.
Changes of the open write are kept apart until it commits or rolls back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING

from recollect.memory.user_index import UserIndex
from recollect.policy.duplicates.comparison import Statement
from recollect.records import Fact, Record
from recollect.store.contract import Query, Reader, State

if TYPE_CHECKING:
    from recollect.search.index.index import Index

COMPARED = frozenset({"fact", "note"})
"""The kinds that are never stored twice, however they are worded."""
_EXACT = frozenset({"observation", "episode"})  # compared word for word, and only when imported

_MOST_POSTINGS = 32
_MOST_CANDIDATES = 6
_MOST_SEEN_THROUGH = 32


@lru_cache(4096)
def _statement(content: str, key: str | None) -> Statement:
    return Statement.of(content, key)


def statement_of(record: Record) -> Statement:
    """Return a record for comparison. It is cached, because a new one is looked up first and marked later."""
    return _statement(record.content, record.key if record.kind == "fact" else None)


def marks_of(record: Record) -> Sequence[str]:
    """Return the marks under which a record is found when a new one is compared."""
    if record.kind in COMPARED:
        statement = statement_of(record)
        return [_signature_mark(statement), *map(_word_mark, statement.terms)]
    return [f"!{record.content}"] if record.kind in _EXACT else ()


def _signature_mark(statement: Statement) -> str:
    return f"={statement.signature}"


def _word_mark(term: str) -> str:
    return f"~{term}"


class WriteCache:
    """The cache of one user. Use it under the user's write lock."""

    def __init__(self, index: UserIndex) -> None:
        self._life: object = None  # another life begins when the user is erased or rebuilt
        self._seq = -1
        self.in_file: dict[str, Fact] = {}
        self.buried: set[str] = set()
        self._user_index = index
        self._state: State | None = None
        self._reader: Reader | None = None
        self._changed: dict[str, Record | None] = {}  # by this write; None if removed
        self._marks: dict[str, dict[str, None]] = {}  # of its changes, as far as requested
        self._unmarked: dict[str, Record] = {}  # changed since then
        self._has_archived: bool | None = None  # None until requested
        self._before: tuple[dict[str, Fact], set[str]] | None = None
        self._dirty = False  # the write has changed something, of any kind

    def begin(self, reader: Reader, state: State) -> None:
        """Begin a write with everything stored so far; `roll_back` returns to this state."""
        life = (state.secret, state.created_at)
        if (self._life, self._seq) != (life, state.seq):
            shown = reader.find(Query(kinds=("fact",), tier="file"))
            self.in_file = {fact.id: fact for fact in shown if isinstance(fact, Fact)}
            self.buried = {tombstone.hash for tombstone in reader.tombstones()}
            self._life, self._seq = life, state.seq
        self._reader, self._state = reader, state
        self._before = dict(self.in_file), self.buried

    def roll_back(self) -> None:
        """Return to the state at `begin`, if there was no `commit` since."""
        if self._before is not None:
            self.in_file, self.buried = self._before
            self._end()

    def commit(self, seq: int) -> None:
        """Keep the changes since `begin`, which are now stored."""
        self._seq = seq
        self._end()

    def _end(self) -> None:
        self._changed, self._marks, self._unmarked, self._dirty = {}, {}, {}, False
        self._has_archived = None
        self._before = self._reader = self._state = None

    def note(self, record: Record) -> None:
        """Add a new version of a record."""
        self._dirty = True
        if isinstance(record, Fact) and record.tier == "file" and record.status == "active":
            self.in_file[record.id] = record
        else:
            self.in_file.pop(record.id, None)
        if record.tier == "archive":
            self._has_archived = True
        if record.kind not in COMPARED and record.kind not in _EXACT:
            return
        self._unmark(record.id)
        self._changed[record.id] = record if record.status == "active" else None
        if record.status == "active":
            self._unmarked[record.id] = record

    def drop(self, record_id: str) -> None:
        """Remove a record."""
        self._dirty = True
        self.in_file.pop(record_id, None)
        self._unmark(record_id)
        self._changed[record_id] = None

    def _unmark(self, record_id: str) -> None:
        known = self._changed.get(record_id)
        if self._unmarked.pop(record_id, None) is None and known is not None:
            for mark in marks_of(known):
                self._marks[mark].pop(record_id, None)

    def _mark(self) -> None:
        """Make this write's changes findable. Done on request only: merging a file never needs it."""
        for record in self._unmarked.values():
            for mark in marks_of(record):
                self._marks.setdefault(mark, {})[record.id] = None
        self._unmarked = {}

    def archived_copy(self, fact: Fact, fits: Callable[[Record], bool] | None = None) -> Fact | None:
        """Return the same fact, word for word, from the archive."""
        if self._has_archived is None and self._reader is not None:
            self._has_archived = bool(self._reader.find(Query(kinds=("fact",), tier="archive", limit=1)))
        if not self._has_archived:
            return None
        for other, _ in self.likely(statement_of(fact), "fact", fits):
            same = (other.key, other.content) == (fact.key, fact.content)
            if same and isinstance(other, Fact) and other.tier == "archive":
                return other
        return None

    def likely(
        self, statement: Statement, kind: str, fits: Callable[[Record], bool] | None = None
    ) -> list[tuple[Record, Statement]]:
        """Return the few fitting records of a kind that could say the same as a statement, the likeliest first."""
        self._mark()
        words = frozenset(map(_word_mark, statement.terms))
        signed = _signature_mark(statement)
        found = self._likely_stored(signed, words, kind, _MOST_CANDIDATES if fits is None else _MOST_SEEN_THROUGH)
        found += [self._changed[record_id] for record_id in self._likely_changed(signed, words)]
        likely = [
            (record, statement_of(record))
            for record in found
            if record is not None and record.kind == kind and (fits is None or fits(record))
        ]
        shared = [(-len(words.intersection(map(_word_mark, theirs.terms))), n) for n, (_, theirs) in enumerate(likely)]
        return [likely[place] for _, place in nsmallest(_MOST_CANDIDATES, shared)]

    def exact_copy(self, record: Record) -> Record | None:
        """Return a record of the same kind and chat with the same words."""
        self._mark()
        mark = f"!{record.content}"
        found = list(filter(None, map(self._changed.get, self._marks.get(mark, ()))))
        with self._user_index.guard:
            index = self._index()
            kind = index.code("kind", record.kind)
            ids = [index.id_of(number) for number in index.marked(mark).tolist() if index.kind[number] == kind]
        ids = [record_id for record_id in ids if record_id not in self._changed]
        if ids and self._reader is not None:
            found += self._reader.find(Query(ids=ids))
        return next((one for one in found if (one.kind, one.chat) == (record.kind, record.chat)), None)

    def _likely_stored(self, signed: str, words: frozenset[str], kind: str, most: int) -> list[Record | None]:
        with self._user_index.guard:
            ids = self._index().alike([signed, *words], kind, most)
        ids = [record_id for record_id in ids if record_id not in self._changed]
        if not ids or self._reader is None:
            return []
        records = {record.id: record for record in self._reader.find(Query(ids=ids))}
        return [records.get(record_id) for record_id in ids]

    def _likely_changed(self, signed: str, words: frozenset[str]) -> Iterator[str]:
        found = dict.fromkeys(self._marks.get(signed, ()))
        lists = [self._marks.get(word, {}) for word in words]
        for ids in sorted(lists, key=len):
            if found and len(found) + len(ids) > _MOST_POSTINGS:
                break
            found.update(dict.fromkeys(islice(ids, _MOST_POSTINGS)))
        for record_id in found:
            if 2 * sum(record_id in self._marks.get(word, ()) for word in words) >= len(words):
                yield record_id

    def _index(self) -> Index:
        assert self._reader is not None and self._state is not None
        return self._user_index.caught_up(self._reader, self._state, in_write=self._dirty)


def forget_statements() -> None:
    """Clear cached texts, after an erasure."""
    _statement.cache_clear()
