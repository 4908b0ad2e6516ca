"""The additional contract of a store that can search the words of users too large to load: currently PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from recollect.records import Record
from recollect.store.contract import Query, Reader, Transaction, UserStore, VectorRow


@dataclass(frozen=True, slots=True)
class KeptWords:
    """The state of the words that a store keeps of a user too large to load."""

    life: str
    """The life of the user and the rules they were made for."""
    seq: int = 0
    """Every change up to this number is included."""
    complete: bool = False
    """True if they ever covered everything; before that they cannot be searched."""
    records: int = 0
    passages: int = 0
    """The passages that count in the statistics, and the number of their words."""
    words: int = 0


@dataclass(frozen=True, slots=True)
class PassageWords:
    """The words of a passage of a record. The caller hashes them: letters and digits only."""

    record: Record
    passage: int
    begin: int
    """The offset in the text of the record."""
    length: int
    counts: bytes
    """Its words and their counts, as the caller packs them."""
    asks: bool
    tells_when: bool
    event: tuple[datetime, datetime] | None
    terms: tuple[str, ...] = ()
    """The terms it is found by; not returned when it is read."""
    several: tuple[str, ...] = ()
    """The terms that it has more than once."""

    @property
    def is_counted(self) -> bool:
        """True if it is in the statistics."""
        return self.record.status == "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordQuery:
    """A search for records by their words, and the weights for comparing their passages (approximately BM25)."""

    gains: Mapping[str, float]
    """The weight of each word, the highest first."""
    among: Sequence[tuple[str, ...]]
    """A passage with all words of one of these is found."""
    also: Sequence[str] = ()
    """In addition, one of these is required, if there are any."""
    speakers: Sequence[str] = ()
    flat: float = 0.0
    """The denominator for a passage without words, and its increase per word."""
    slope: float = 0.0


@runtime_checkable
class WordReader(Reader, Protocol):
    """A reader that can search by itself, of a store that keeps the words of users too large to load."""

    def kept_words(self) -> KeptWords | None:
        """Return the state of the stored words; None if there are none."""
        ...

    def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """Return the number of passages with each of these terms; terms without any are left out."""
        ...

    def counted_words(self, record_ids: Sequence[str]) -> list[tuple[list[str], int]]:
        """Return the terms and the length of each counted passage of these records."""
        ...

    def speakers(self) -> list[str]:
        """Return the names of all speakers."""
        ...

    def worded(self, record_ids: Sequence[str]) -> list[PassageWords]:
        """Return the stored passages of these records. The records come without their content."""
        ...

    def holding(self, wanted: WordQuery, where: Query, limit: int) -> list[str]:
        """Return matching records that have these words, the best first."""
        ...

    def told_of(
        self, begin: datetime, end: datetime, where: Query, limit: int, speakers: Sequence[str] = ()
    ) -> list[str]:
        """Return matching records that are about this time, the latest first."""
        ...

    def said_in(self, where: Query, limit: int) -> list[str]:
        """Return matching records, the latest said first."""
        ...

    def said_first_and_last(self) -> list[str]:
        """Return the records that were said first and last."""
        ...

    def neighbours(self, record_ids: Sequence[str]) -> list[tuple[str, str | None, str | None]]:
        """Return, for the messages among these, what was said right before and after each."""
        ...

    def vectors_of(self, embedder: str, record_ids: Sequence[str]) -> list[VectorRow]:
        """Return the vectors of these records."""
        ...

    def some_vectors(self, embedder: str, numbers: Sequence[int]) -> list[VectorRow]:
        """Return the vectors with these numbers, where they exist."""
        ...

    def nearest(
        self, embedder: str, query: Sequence[float], where: Query, limit: int, speakers: Sequence[str] = ()
    ) -> list[VectorRow]:
        """Return the vectors of matching records that are nearest by their signs, in any order, as far as signs are
        stored.
        """
        ...


@runtime_checkable
class WordWriter(WordReader, Transaction, Protocol):
    """A transaction that can also store words."""

    def begin_words(self, life: str) -> None:
        """Start storing words of this user; earlier ones are dropped."""
        ...

    def put_words(self, record_ids: Sequence[str], rows: Sequence[PassageWords], *, seq: int, complete: bool) -> None:
        """Replace the stored words of these records."""
        ...

    def end_words(self) -> None:
        """Stop storing words of this user."""
        ...

    def keep_meanings(self, embedder: str, dimensions: int, limit: int) -> int:
        """Make further vectors known to `nearest`; return their number."""
        ...


@runtime_checkable
class WordStore(UserStore, Protocol):
    """One user's part of a store that can search by itself."""

    def write_if_free(self) -> AbstractContextManager[WordWriter | None]:
        """Open a transaction without waiting; None if somebody else is writing."""
        ...
