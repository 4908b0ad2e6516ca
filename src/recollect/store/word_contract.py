"""What a store also promises that searches the words of users too large to load: today PostgreSQL."""

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
    """What a store says of the words it keeps of a user too large to load."""

    life: str
    """For which life of the user they were made, and by which rules."""
    seq: int = 0
    """Every change up to here is in them."""
    complete: bool = False
    """Whether they ever held everything; before that they cannot be searched."""
    records: int = 0
    passages: int = 0
    """Those that count in the statistics, and the number of their words."""
    words: int = 0


@dataclass(frozen=True, slots=True)
class PassageWords:
    """A passage of a record as its words. They are hashed by the caller: letters and digits only."""

    record: Record
    passage: int
    begin: int
    """Where in the text of the record it begins."""
    length: int
    counts: bytes
    """Its words and how often it has each, as the caller packs them."""
    asks: bool
    tells_when: bool
    event: tuple[datetime, datetime] | None
    terms: tuple[str, ...] = ()
    """What it is found by; not told when it is read."""
    several: tuple[str, ...] = ()
    """Those of the terms that it has more than once."""

    @property
    def is_counted(self) -> bool:
        """Whether it is in the statistics."""
        return self.record.status == "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordQuery:
    """Which records to find by their words, and how their passages are compared: by BM25, roughly."""

    gains: Mapping[str, float]
    """What each word is worth, the most valuable first."""
    among: Sequence[tuple[str, ...]]
    """Whoever has all words of one of these is found."""
    also: Sequence[str] = ()
    """And one of these, if there are any."""
    speakers: Sequence[str] = ()
    flat: float = 0.0
    """What stands below the line for a passage without words, and for each word more."""
    slope: float = 0.0


@runtime_checkable
class WordReader(Reader, Protocol):
    """A reader that can search by itself: of a store that keeps the words of users too large to load."""

    def kept_words(self) -> KeptWords | None:
        """What is kept; None if nothing is."""
        ...

    def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """In how many passages each of these is; those that are nowhere are not in it."""
        ...

    def counted_words(self, record_ids: Sequence[str]) -> list[tuple[list[str], int]]:
        """The terms and the length of each passage that is kept of these records and counts."""
        ...

    def speakers(self) -> list[str]:
        """The names of everyone who speaks."""
        ...

    def worded(self, record_ids: Sequence[str]) -> list[PassageWords]:
        """What is kept of these records, passage by passage. The records come without their content."""
        ...

    def holding(self, wanted: WordQuery, where: Query, limit: int) -> list[str]:
        """The kept records that fit and have these words, the best first."""
        ...

    def told_of(
        self, begin: datetime, end: datetime, where: Query, limit: int, speakers: Sequence[str] = ()
    ) -> list[str]:
        """The kept records that fit and speak of this time, the latest first."""
        ...

    def said_in(self, where: Query, limit: int) -> list[str]:
        """The kept records that fit, the latest said first."""
        ...

    def said_first_and_last(self) -> list[str]:
        """The kept records that were said first and last."""
        ...

    def neighbours(self, record_ids: Sequence[str]) -> list[tuple[str, str | None, str | None]]:
        """Of those of these that are messages of a conversation: what was said right before, and after."""
        ...

    def vectors_of(self, embedder: str, record_ids: Sequence[str]) -> list[VectorRow]:
        """The vectors of these records."""
        ...

    def some_vectors(self, embedder: str, numbers: Sequence[int]) -> list[VectorRow]:
        """The vectors with these numbers, as far as they are there."""
        ...

    def nearest(
        self, embedder: str, query: Sequence[float], where: Query, limit: int, speakers: Sequence[str] = ()
    ) -> list[VectorRow]:
        """The vectors of what fits that are nearest by their signs, in any order, as far as signs are kept."""
        ...


@runtime_checkable
class WordWriter(WordReader, Transaction, Protocol):
    """A transaction that also keeps words."""

    def begin_words(self, life: str) -> None:
        """Keep words of this user from now on; those that were kept are dropped."""
        ...

    def put_words(self, record_ids: Sequence[str], rows: Sequence[PassageWords], *, seq: int, complete: bool) -> None:
        """Keep these words of these records instead of what was kept of them."""
        ...

    def end_words(self) -> None:
        """Keep no words of this user any longer."""
        ...

    def keep_meanings(self, embedder: str, dimensions: int, limit: int) -> int:
        """Make vectors known to `nearest` that are not yet; how many that were."""
        ...


@runtime_checkable
class WordStore(UserStore, Protocol):
    """One user's part of a store that can search by itself."""

    def write_if_free(self) -> AbstractContextManager[WordWriter | None]:
        """`write` for who must not wait: None if somebody else is writing."""
        ...
