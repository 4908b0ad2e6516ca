"""What the write path must know by heart about one user: which facts could be the same as a new one,
which facts MEMORY.md shows, and what was erased.

Derived from the store and caught up by sequence number, so it sees what any process wrote. Knows no files.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from functools import lru_cache
from heapq import nsmallest
from itertools import islice

from recollect.policy.duplicates import Statement
from recollect.records import Fact, Record
from recollect.store.contract import Query, Reader

KINDS = ("fact", "note", "observation", "episode", "daily")
"""The kinds that are compared and searched here."""

_MOST_POSTINGS = 32
_MOST_CANDIDATES = 6
_NONE: frozenset[str] = frozenset()


@lru_cache(256)
def _statement(content: str, key: str | None) -> Statement:
    return Statement.of(content, key)


def statement_of(record: Record) -> Statement:
    """A record as it is compared; a new one is looked up first and noted then, so it is kept for a while."""
    return _statement(record.content, record.key if record.kind == "fact" else None)


def _discard(lists: dict[str, set[str]], name: str, record_id: str) -> None:
    ids = lists.get(name)
    if ids is not None:
        ids.discard(record_id)
        if not ids:
            del lists[name]


class Known:
    """Active records by their words. Use it under the user's write lock, or under `guard`."""

    def __init__(self, life: object = None) -> None:
        self.life = life
        """Which of the user's lives this is about: another one begins when they are erased or rebuilt."""
        self.seq = 0
        self.guard = threading.RLock()
        self.in_file: dict[str, Fact] = {}
        self.buried: set[str] = set()
        self._records: dict[str, Record] = {}
        self._statements: dict[str, Statement] = {}
        self._words: dict[str, frozenset[str]] = {}
        self._signatures: dict[str, set[str]] = {}
        self._postings: dict[str, set[str]] = {}
        self._replaced: list[tuple[str, Record | None]] = []
        self._buried_before: set[str] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a write has begun that may still be rolled back."""
        return self._buried_before is not None

    def begin(self) -> None:
        """From here on `roll_back` can return to what was known."""
        self._replaced = []
        self._buried_before = self.buried

    def roll_back(self) -> None:
        """Know again what was known at `begin`; nothing happens if there was none since `commit`."""
        with self.guard:
            if self._buried_before is None:
                return
            for record_id, record in reversed(self._replaced):
                self._remove(record_id)
                if record is not None:
                    self._insert(record)
            self._replaced = []
            self.buried, self._buried_before = self._buried_before, None

    def commit(self) -> None:
        """What was taken in since `begin` is stored, and stays known."""
        self._replaced = []
        self._buried_before = None

    def catch_up(self, reader: Reader, seq: int) -> None:
        """Take in everything up to this sequence number."""
        if seq == self.seq:
            return
        with self.guard:
            if self.seq == 0:
                for record in reader.find(Query(kinds=KINDS)):
                    self._insert(record)
            else:
                ids = list(dict.fromkeys(entry.record_id for entry in reader.entries(after=self.seq)))
                found = {record.id: record for record in reader.find(Query(ids=ids, statuses=()))}
                for record_id in ids:
                    self._remove(record_id)
                    changed = found.get(record_id)
                    if changed is not None and changed.status == "active" and changed.kind in KINDS:
                        self._insert(changed)
            self.buried = {tombstone.hash for tombstone in reader.tombstones()}
            self.seq = seq

    def note(self, record: Record) -> None:
        """Take in a new version of a record."""
        if record.kind not in KINDS:
            return
        with self.guard:
            known = self._records.get(record.id)
            if known and record.status == "active" and (known.content, known.key) == (record.content, record.key):
                self._replaced.append((record.id, known))  # it says the same, so it is found by the same words
                self._place(record)
                return
            self._replaced.append((record.id, self._remove(record.id)))
            if record.status == "active":
                self._insert(record)

    def drop(self, record_id: str) -> None:
        """Let go of a record."""
        with self.guard:
            self._replaced.append((record_id, self._remove(record_id)))

    def _insert(self, record: Record) -> None:
        statement = statement_of(record)
        self._place(record)
        self._statements[record.id] = statement
        self._words[record.id] = frozenset(statement.terms)
        self._signatures.setdefault(statement.signature, set()).add(record.id)
        for term in statement.terms:
            self._postings.setdefault(term, set()).add(record.id)

    def _place(self, record: Record) -> None:
        self._records[record.id] = record
        if isinstance(record, Fact) and record.tier == "file":
            self.in_file[record.id] = record
        else:
            self.in_file.pop(record.id, None)

    def _remove(self, record_id: str) -> Record | None:
        record = self._records.pop(record_id, None)
        self.in_file.pop(record_id, None)
        statement = self._statements.pop(record_id, None)
        self._words.pop(record_id, None)
        if statement is not None:
            _discard(self._signatures, statement.signature, record_id)
            for term in statement.terms:
                _discard(self._postings, term, record_id)
        return record

    def of_kind(self, kind: str) -> list[Record]:
        """All active records of a kind."""
        return [record for record in self._records.values() if record.kind == kind]

    def likely(self, statement: Statement, kind: str) -> list[tuple[Record, Statement]]:
        """The few records of a kind that could say the same as a statement, the likeliest first."""
        words = frozenset(statement.terms)
        found = dict.fromkeys(self._signatures.get(statement.signature, ()))
        # rare words first: whoever says the same shares most of them, and their lists are short
        for ids in sorted((self._postings.get(word, _NONE) for word in words), key=len):
            if found and len(found) + len(ids) > _MOST_POSTINGS:
                break
            found.update(dict.fromkeys(islice(ids, _MOST_POSTINGS)))
        shared = [(-len(words & self._words[record_id]), order, record_id) for order, record_id in enumerate(found)]
        best = nsmallest(_MOST_CANDIDATES, [pair for pair in shared if -2 * pair[0] >= len(words)])
        likely = [(self._records[record_id], self._statements[record_id]) for _, _, record_id in best]
        return [pair for pair in likely if pair[0].kind == kind]

    def search(
        self, terms: Iterable[str], kinds: Iterable[str], limit: int
    ) -> list[tuple[str, float, tuple[str, ...]]]:
        """Ids with a BM25 score and the words that matched, best first."""
        wanted = frozenset(kinds)
        with self.guard:
            weights = self._weights(terms)
            average = sum(len(s.terms) for s in self._statements.values()) / max(len(self._statements), 1)
            scores: dict[str, float] = {}
            matched: dict[str, list[str]] = {}
            for term, weight in weights.items():
                for record_id in self._postings.get(term, ()):
                    if self._records[record_id].kind not in wanted:
                        continue
                    length = len(self._statements[record_id].terms)
                    gain = weight * 2.5 / (1 + 1.5 * (0.25 + 0.75 * length / average))
                    scores[record_id] = scores.get(record_id, 0.0) + gain
                    matched.setdefault(record_id, []).append(term)
        best = sorted(scores, key=lambda record_id: (-scores[record_id], record_id))[:limit]
        return [(record_id, scores[record_id], tuple(matched[record_id])) for record_id in best]

    def _weights(self, terms: Iterable[str]) -> dict[str, float]:
        count = len(self._records)
        return {
            term: math.log(1 + (count - (n := len(self._postings.get(term, ()))) + 0.5) / (n + 0.5))
            for term in dict.fromkeys(terms)
        }
