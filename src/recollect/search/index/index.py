"""One user's search index: BM25 over passages, with columns for filters and weights.

A document is the latest version of one record, of any kind and status. It is cut into passages; a passage is what the
formula calls a document, and a document scores as its best passage. Only active documents count in the statistics.
Nothing is precomputed that a later change could invalidate: the same records give the same scores, whatever happened
before.

Document numbers are valid until the next `put`, `remove` or `save`. Hold ``guard`` when several threads use an index.
The caller decides what to put and when to save.
"""

from __future__ import annotations

import json
import math
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from recollect.records import Record
from recollect.search.filters import Filter
from recollect.search.index import snapshot
from recollect.search.index.columns import Documents, Growing
from recollect.search.index.postings import Postings, Segment, hash_text, mark_hash, word_hash
from recollect.search.passages import MOST_WORDS, indexed_text, passages
from recollect.search.signs import signs_of
from recollect.text import folded_words as text_words
from recollect.text import terms as text_terms

if TYPE_CHECKING:
    from recollect.search.question import Question

Terms = Callable[[str], Sequence[str]]

_ANALYSIS = 1
"""Increase it when words or passages are made differently: saved indexes are then rebuilt."""
_SAMPLE = (
    "The user's running shoes weren't bought in Node.js 18.2, e.g. at 6:30 on 2026-02-12; -5 C++ u.s.a. "
    "Ich habe die Hauser gesehen und gehe nun. Les pommes que nous avons mangees sont belles."
)
_AT_ONCE = 8192  # postings scored at a time, so that intermediate results stay in the processor's cache
_MOST_ALIKE = 32  # documents examined as possible duplicates of one
_COMPACT_AT = 1024  # dead passages, at least, before they are worth renumbering
_PASSAGES: dict[str, type[np.generic]] = {
    "owner": np.int32,  # its document; -1: none
    "length": np.float32,  # in words; infinite without a document, so that it scores nothing
    "counts": np.bool_,  # in the statistics
    "begin": np.int32,  # the offset in the text; it ends where the next one begins
    "slot": np.int32,  # where its score is summed: its document or, if that has several, its own place from the end
}
_LEAST = float(np.finfo(np.float32).tiny)
_POSTINGS = ("hashes", "offsets", "passages", "counts")

Found = Sequence[tuple[NDArray[np.int32], Any]]
"""The passages of a word and its count in each, in pieces."""

T = TypeVar("T", bound=np.generic)


class Column(Generic[T]):
    """A column of an index, as an array with a value for each document."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, index: None, owner: type) -> Column[T]: ...
    @overload
    def __get__(self, index: Index, owner: type) -> NDArray[T]: ...
    def __get__(self, index: Index | None, owner: type) -> Column[T] | NDArray[T]:
        return self if index is None else index._documents.view(self._name)


class Index:
    """The searchable documents of one user."""

    kind = Column[np.int8]()
    status = Column[np.int8]()
    category = Column[np.int32]()
    type = Column[np.int32]()
    source = Column[np.int32]()
    session = Column[np.int32]()
    speaker = Column[np.int32]()
    tier = Column[np.int32]()
    role = Column[np.int32]()
    chat = Column[np.int32]()
    tags = Column[np.int32]()
    said_at = Column[np.int64]()
    expires_at = Column[np.int64]()
    importance = Column[np.float32]()
    confidence = Column[np.float32]()
    trusted = Column[np.bool_]()
    alive = Column[np.bool_]()
    previous = Column[np.int32]()
    following = Column[np.int32]()
    asks = Column[np.bool_]()
    tells_when = Column[np.bool_]()
    event_from = Column[np.int64]()
    event_until = Column[np.int64]()
    version = Column[np.int32]()
    vector = Column[np.int32]()

    def __init__(self, *, k1: float = 1.5, b: float = 0.75, terms: Terms = text_terms) -> None:
        self.seq = 0
        self.life = ""
        self.last = ""
        self.unsaved = 0
        self.guard = threading.RLock()
        self._k1, self._b, self._terms = k1, b, terms
        self._documents = Documents()
        self._passages = Growing(_PASSAGES)
        self._postings = Postings()
        self._living = 0
        self._counted = 0  # passages in the statistics, and all their words
        self._words = 0
        self._dead = 0  # passages without a document
        self._own_slots = 0  # passages with a place of their own
        self._plain = True  # the slot of each passage is its number
        self._norms: NDArray[np.float32] | None = None  # None until requested
        self._several: NDArray[np.int64] | None = None
        self._chain: tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]] | None = None
        self._speakers: list[frozenset[str]] = []
        self._names: frozenset[str] = frozenset()

    def gather(self, question: Question, where: Filter, most: int) -> None:
        """Load what could be among the best ``most`` for a question. A complete index has it already."""

    def gather_words(self, words: Sequence[str], also: Sequence[str], where: Filter, most: int) -> None:
        """Load what matches and has most of these words, and all that also has one of the others."""

    def include(self, record_ids: Sequence[str]) -> None:
        """Load these records, and the messages right before and after them."""

    # -- changing --------------------------------------------------------------------------------------------

    def put(self, record: Record, marks: Sequence[str] = ()) -> None:
        """Add a record, or replace its earlier version."""
        text = indexed_text(record)
        marks = sorted(set(marks))
        text_digest = hash_text("\0".join((str(len(text)), text, str(record.valid_from), *marks)))
        documents = self._documents
        number = self.number(record.id)
        if number is not None and documents.whole["digest"][number] == text_digest:
            self._count(number, -1)
            documents.note(number, record, text_digest)
            self._count(number, 1)
        else:
            spans = passages(text)
            cut = [self._terms(text[begin:end]) for begin, end in spans]
            if number is None:
                number = documents.new(record.id)
                self._living += 1
            else:
                self._count(number, -1)
                self._abandon(number)
            documents.note(number, record, text_digest)
            documents.whole["vector"][number] = -1  # its vector is of another text
            documents.note_signs(number, signs_of(text, record.valid_from))
            counted = [(self._counts(words), len(words)) for words in cut]
            counted[0][0].update((mark_hash(mark), 1) for mark in marks)
            self._settle(number, counted, [begin for begin, _ in spans])
            self._count(number, 1)
        self._changed()

    def remove(self, record_id: str) -> None:
        """Remove a record, if it is known."""
        number = self.number(record_id)
        if number is None:
            return
        self._count(number, -1)
        self._abandon(number)
        self._documents.bury(number)
        self._living -= 1
        self._changed()

    def _count(self, number: int, sign: int) -> None:
        """Add a document's passages to the statistics, or remove them, if it is active."""
        whole = self._documents.whole
        if whole["status"][number] != self._documents.tables["status"].codes.get("active", -2):
            return
        begin = int(whole["first"][number])
        end = begin + int(whole["count"][number])
        self._counted += sign * (end - begin)
        self._words += sign * int(self._passages.whole["length"][begin:end].sum())
        self._passages.whole["counts"][begin:end] = sign > 0

    def _settle(self, number: int, cut: Sequence[tuple[dict[int, int], int]], begins: Sequence[int]) -> None:
        """Give a document its passages: their word counts, lengths and offsets."""
        first = self._passages.add(len(cut))
        for passage, (counts, length) in enumerate(cut, first):
            self._postings.add(passage, counts)
            self._passages.whole["length"][passage] = length
        self._passages.whole["begin"][first : first + len(cut)] = begins
        self._passages.whole["owner"][first : first + len(cut)] = number
        self._documents.whole["first"][number] = first
        self._documents.whole["count"][number] = len(cut)
        slots = self._passages.whole["slot"]
        if len(cut) == 1:
            slots[first] = number
        else:
            self._own_slots += len(cut)
            slots[first : first + len(cut)] = np.arange(len(cut)) - self._own_slots
        self._plain = self._plain and first == slots[first]

    def _abandon(self, number: int) -> None:
        """Detach a document's passages; their numbers stay, but count for nothing."""
        whole = self._documents.whole
        begin, count = int(whole["first"][number]), int(whole["count"][number])
        self._passages.whole["owner"][begin : begin + count] = -1
        self._passages.whole["length"][begin : begin + count] = np.inf
        self._dead += count

    def _changed(self) -> None:
        self._norms = self._several = self._chain = None
        self.unsaved += 1
        if self._dead >= _COMPACT_AT and self._dead * 2 > self._passages.size:
            self._compact()
        elif self._postings.log_is_long:
            self._postings.freeze(self._passages.view("owner") >= 0)

    def _compact(self) -> Segment:
        """Drop everything that was replaced or removed. Numbers change."""
        kept = self._passages.view("owner") >= 0
        renumber = np.cumsum(kept, dtype=np.int32) - np.int32(1)
        segment = self._postings.rebuild(kept, renumber)
        documents = self._documents
        heirs = np.cumsum(documents.view("alive"), dtype=np.int32) - np.int32(1)
        documents.compact()
        if self._dead:
            self._passages.keep(kept)
            self._passages.view("owner")[:] = heirs[self._passages.view("owner")]
            documents.view("first")[:] = renumber[documents.view("first")]
        self._dead = 0
        self._norms = self._several = self._chain = None
        self._speakers = []
        self._assign_slots()
        return segment

    def _assign_slots(self) -> None:
        slots, owners = self._passages.view("slot"), self._passages.view("owner")
        own = self._documents.view("count")[owners] > 1
        self._own_slots = int(np.count_nonzero(own))
        slots[:] = owners
        slots[own] = np.arange(self._own_slots) - self._own_slots
        self._plain = bool((slots == np.arange(len(slots))).all())

    # -- look-ups --------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._living

    @property
    def size(self) -> int:
        """The upper bound of document numbers; some may be dead."""
        return self._documents.size

    def number(self, record_id: str) -> int | None:
        """Return the number of a live document."""
        return self._documents.ids.find(record_id, self._documents.whole["alive"])

    def id_of(self, number: int) -> str:
        return self._documents.ids.of(number)

    def ids(self, numbers: NDArray[Any]) -> list[str]:
        """Return the ids of some documents, in the same order."""
        return [self._documents.ids.of(number) for number in numbers.tolist()]

    def code(self, column: str, value: str) -> int | None:
        """Return the code of a string in a column, if any document ever had it."""
        return self._documents.tables[column].codes.get(value)

    def value(self, column: str, code: int) -> str | None:
        """Return the string of a column's code; None for -1. For ``tags``, all of them with commas."""
        if code < 0:
            return None
        value = self._documents.tables[column].values[code]
        return ", ".join(value) if column == "tags" else str(value)

    def speakers(self) -> list[frozenset[str]]:
        """Return the names of all speakers, by code, each as its folded words."""
        names = self._documents.tables["speaker"].values
        if len(self._speakers) != len(names):
            self._speakers = [frozenset(text_words(name)) for name in names]
            self._names = frozenset().union(*self._speakers)
        return self._speakers

    def names(self) -> frozenset[str]:
        """Return all words of the names of all speakers."""
        self.speakers()
        return self._names

    @property
    def sessions(self) -> int:
        """The number of sessions, which is above all their codes."""
        return len(self._documents.tables["session"].values)

    def with_neighbours(self, values: NDArray[np.float32], share: float) -> NDArray[np.float32]:
        """Return values of all documents, each with a share of those of its neighbours in the conversation."""
        if self._chain is None:
            previous = self.previous
            straight = previous[1:] == np.arange(self.size - 1, dtype=np.int32)  # true of nearly all
            others = np.flatnonzero((previous[1:] >= 0) & ~straight) + 1
            if self.size and previous[0] >= 0:
                others = np.append(others, 0)
            self._chain = straight, others, previous[others].astype(np.intp)
        straight, others, before = self._chain
        around = values.copy()
        if len(values) > 1:
            shared = straight * np.float32(share)
            around[1:] += values[:-1] * shared
            around[:-1] += values[1:] * shared
        around[others] += values[before] * np.float32(share)
        around[before] += values[others] * np.float32(share)
        return around

    def select(self, wanted: Filter) -> NDArray[np.bool_]:
        """Return the live documents that match, as a mask."""
        return self._documents.select(wanted)

    # -- words -----------------------------------------------------------------------------------------------

    def scores(self, words: Sequence[str], weights: Sequence[float] | None = None) -> NDArray[np.float32]:
        """Return the BM25 score of every document; 0 for dead ones. A word given twice counts twice."""
        documents = self._documents
        asked: dict[str, float] = {}
        for word, weight in zip(words, weights or [1.0] * len(words), strict=True):
            asked[word] = asked.get(word, 0.0) + weight
        slots = self._sums(asked)
        scores = slots[: documents.size]
        if not self._own_slots:
            return scores
        if self._several is None:
            self._several = np.flatnonzero(documents.view("count") > 1)
        # The passages of a document have consecutive slots. One slot follows the last, because every bound must be an
        # index.
        begin = self._passages.whole["slot"].take(documents.view("first")[self._several]) - 1
        bounds = np.stack((begin, begin + documents.view("count")[self._several]), axis=1) + len(slots)
        scores[self._several] = np.maximum.reduceat(slots, bounds.ravel())[::2]
        return scores

    def _hash(self, word: str) -> int:
        return word_hash(word)

    def _counts(self, words: Sequence[str]) -> dict[int, int]:
        return {self._hash(word): times for word, times in Counter(words).items()}

    def _sums(self, asked: Mapping[str, float]) -> NDArray[np.float32]:
        """Return what the words add to every slot: those of documents, those of single passages, and one more."""
        sums = np.zeros(self._documents.size + self._own_slots + 1, dtype=np.float32)
        pieces = self._postings.find([self._hash(word) for word in asked])
        numbers, counts, weights, lengths = [], [], [], []
        for (word, times), found in zip(asked.items(), pieces, strict=True):
            if found:
                numbers += [passages for passages, _ in found]
                counts += [often for _, often in found]
                lengths.append(sum(len(passages) for passages, _ in found))
                weights.append(times * (self._k1 + 1) * self._idf(word, found))
        if not numbers:
            return sums
        where, often = np.concatenate(numbers), np.concatenate(counts)
        weight = np.repeat(np.array(weights, dtype=np.float32), lengths)
        norms, slots = self._norm(), self._passages.view("slot")
        real = sums[:-1]  # slots from the end are counted from the last one in use
        for begin in range(0, len(where), _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            places, times_in = where[part].astype(np.intp), often[part].astype(np.float32)
            gained = norms.take(places)
            gained += times_in
            np.divide(times_in, gained, out=gained)
            gained *= weight[part]
            np.add.at(real, places if self._plain else slots.take(places), gained)
        return sums

    def _norm(self) -> NDArray[np.float32]:
        """Return what the length of each passage adds to the denominator."""
        if self._norms is None:
            # never zero, because zero times an infinite length is not a number
            norms = self._passages.view("length") * np.float32(max(self._slope, _LEAST))
            norms += np.float32(self._k1 * (1 - self._b))
            self._norms = norms
        return self._norms

    @property
    def _slope(self) -> float:
        """The increase of the denominator per word."""
        counted, words = self._statistics()
        return self._k1 * self._b / (words / counted if words else 1.0)

    def _statistics(self) -> tuple[int, int]:
        return self._counted, self._words

    def _holding(self, word: str, found: Found) -> int:
        if self._counted == self._passages.size:
            return sum(len(numbers) for numbers, _ in found)
        counts = self._passages.view("counts")
        return sum(int(np.count_nonzero(counts.take(numbers))) for numbers, _ in found)

    def _idf(self, word: str, found: Found) -> float:
        counted, holding = self._statistics()[0], self._holding(word, found)
        return math.log((counted - holding + 0.5) / (holding + 0.5) + 1)

    def idf(self, words: Sequence[str]) -> list[float]:
        """Return the rarity of each word."""
        pieces = self._postings.find([self._hash(word) for word in words])
        return [self._idf(word, found) for word, found in zip(words, pieces, strict=True)]

    def unknown(self, words: Sequence[str]) -> list[str]:
        """Return the words that no document has."""
        found = self._postings.find([self._hash(word) for word in words])
        return [word for word, pieces in zip(words, found, strict=True) if not pieces]

    def other_stems(self, otherwise: Mapping[str, Sequence[str]]) -> dict[str, dict[str, float]]:
        """Return the known stems of each word, with weights that give all of them the rarity of the most common one.

        Which stem a document has depends on the language it was taken for, which a short text hardly reveals. A word of
        which no other stem is known is left out.
        """
        every = [stem for word, others in otherwise.items() for stem in (word, *others)]
        missing = set(self.unknown(every))
        found = {}
        for word, others in otherwise.items():
            known = [stem for stem in (word, *others) if stem not in missing]
            if known and known != [word]:
                rarity = self.idf(known)
                found[word] = {stem: min(rarity) / each for stem, each in zip(known, rarity, strict=True)}
        return found

    def matching(self, numbers: NDArray[np.intp], words: Sequence[str]) -> NDArray[np.bool_]:
        """Return which of these documents have which of these words: a row for each word."""
        first = self._documents.view("first")[numbers]
        after = first + self._documents.view("count")[numbers]
        matches = np.zeros((len(words), len(numbers)), dtype=np.bool_)
        for row, found in zip(matches, self._postings.find([self._hash(word) for word in words]), strict=True):
            for where, _ in found:
                row |= where.searchsorted(first) < where.searchsorted(after)
        return matches

    def passages_of(self, number: int) -> int:
        """Return the number of passages of a document."""
        return int(self._documents.whole["count"][number])

    def best_passage(self, number: int, words: Sequence[str]) -> tuple[int, int | None]:
        """Return the start and end of a document's best passage in its text; the first of equals."""
        first = int(self._documents.whole["first"][number])
        begins = self._passages.whole["begin"][first : first + self.passages_of(number)].tolist()
        scores = np.zeros(len(begins), dtype=np.float64)
        norms = self._norm()
        for word, (within, often, found) in zip(words, self._within(number, words), strict=True):
            if len(within):
                scores[within - first] += self._idf(word, found) * often / (often + norms[within])
        best = int(scores.argmax())
        return begins[best], begins[best + 1] if best + 1 < len(begins) else None

    def _within(self, number: int, words: Sequence[str]) -> Iterable[tuple[NDArray[Any], NDArray[Any], Any]]:
        """Yield, for each word, the passages of one document that have it, the counts, and all its postings."""
        begin = int(self._documents.whole["first"][number])
        end = begin + self.passages_of(number)
        nothing = np.zeros(0, dtype=np.int32)
        for found in self._postings.find([self._hash(word) for word in words]):
            for numbers, often in found:
                low, high = numbers.searchsorted((begin, end))
                if low < high:
                    yield numbers[low:high], often[low:high], found
                    break
            else:
                yield nothing, nothing, found

    def marked(self, mark: str) -> NDArray[np.int32]:
        """Return the active documents with this mark."""
        found = self._postings.find([mark_hash(mark)])[0]
        if not found:
            return np.zeros(0, dtype=np.int32)
        numbers = np.concatenate([passages for passages, _ in found])
        owners: NDArray[np.int32] = self._passages.view("owner")[numbers[self._passages.view("counts")[numbers]]]
        return owners

    def alike(self, marks: Sequence[str], kind: str, most: int) -> list[str]:
        """Return the ids of the few active documents of a kind that have the first mark, or at least half of the
        others.

        Those with most of the marks come first. Of frequent marks, only documents that also have a rare one are
        examined: one that shares half of them usually shares a rare one too.
        """
        code = self.code("kind", kind)
        if code is None or not marks:
            return []
        lists = [[passages for passages, _ in found] for found in self._postings.find(list(map(mark_hash, marks)))]
        chosen: dict[int, None] = dict.fromkeys(int(each) for part in lists[0] for each in part[:_MOST_ALIKE])
        for parts in sorted(lists[1:], key=lambda parts: sum(map(len, parts))):
            if chosen and len(chosen) + sum(map(len, parts)) > _MOST_ALIKE:
                break
            chosen.update(dict.fromkeys(int(each) for part in parts for each in part[:_MOST_ALIKE]))
        passages = np.array(list(chosen), dtype=np.int32)
        passages = passages[self._passages.view("counts")[passages]]
        owners = self._passages.view("owner")[passages]
        passages, owners = passages[self.kind[owners] == code], owners[self.kind[owners] == code]
        shared = np.zeros(len(passages), dtype=np.int64)
        for parts in lists[1:]:
            for part in parts:
                shared += part[part.searchsorted(passages).clip(max=len(part) - 1)] == passages
        order = np.argsort(-shared, kind="stable")
        return [self.id_of(int(owners[at])) for at in order[:most] if 2 * shared[at] >= len(lists) - 1]

    # -- as a file -------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write everything to one file, without anything that was removed. Numbers may change."""
        segment = self._compact()
        documents = self._documents
        tables = {name: table.values for name, table in documents.tables.items()}
        arrays = documents.arrays()
        arrays |= {f"passage_{name}": self._passages.view(name) for name in _PASSAGES if name != "slot"}
        arrays |= {f"word_{name}": getattr(segment, name) for name in _POSTINGS}
        arrays["tables"] = np.frombuffer(json.dumps(tables).encode("ascii"), dtype=np.uint8)
        notes = {"analysis": analysis_of(self._terms), "seq": self.seq, "life": self.life, "last": self.last}
        snapshot.write_snapshot(path, notes, arrays)
        self.unsaved = 0

    @classmethod
    def load(cls, path: Path, *, k1: float = 1.5, b: float = 0.75, terms: Terms = text_terms) -> Index | None:
        """Load a saved index; None if there is none, it is damaged, or words are made differently now."""
        if (saved := snapshot.read_snapshot(path)) is None:
            return None
        notes, arrays = saved
        if notes.get("analysis") != analysis_of(terms):
            return None
        index = cls(k1=k1, b=b, terms=terms)
        documents = index._documents
        try:
            index.seq, index.life, index.last = int(notes["seq"]), str(notes["life"]), str(notes["last"])
            documents.restore(arrays, json.loads(arrays["tables"].tobytes()))
            saved_passages = {name: arrays[f"passage_{name}"] for name in _PASSAGES if name != "slot"}
            index._passages.fill(saved_passages | {"slot": saved_passages["owner"]})
            index._assign_slots()
            segment = Segment(*(arrays[f"word_{name}"] for name in _POSTINGS))
        except (KeyError, ValueError, TypeError, IndexError):
            return None
        index._postings = Postings([segment])
        index._living = documents.size
        counted = index._passages.view("counts")
        index._counted = int(np.count_nonzero(counted))
        index._words = int(index._passages.view("length")[counted].sum(dtype=np.float64))
        return index


@lru_cache(maxsize=16)
def analysis_of(terms: Terms) -> str:
    """Identify how words and passages are made, as far as possible: by the function's name and by a sample."""
    from Stemmer import version  # here, not above: only who saves or loads needs it

    name = f"{getattr(terms, '__module__', '')}.{getattr(terms, '__qualname__', type(terms).__qualname__)}"
    made = [_ANALYSIS, MOST_WORDS, unicodedata.unidata_version, version(), name, list(terms(_SAMPLE))]
    return f"{hash_text(json.dumps(made)):016x}"
