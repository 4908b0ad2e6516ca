"""Postings, which words are in which passages: sorted immutable arrays, and a short log of new ones.

A word is identified by a 64-bit hash that is the same in every process, so a segment needs no dictionary and can be
used as read from a file. The log is searched linearly, which is fast while it is short; when it is long it becomes a
segment, and segments are merged as they grow. Passage numbers only go up, so the passages of a word are in order within
a segment and from one segment to the next.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

FREEZE_AT = 8192
"""The number of postings at which the log becomes a segment."""

_GROWTH = 2  # a segment is merged with its successor once that is more than half as large
_AT_ONCE = 1 << 20  # postings moved at a time in a merge, so that it needs little extra memory

Numbers = NDArray[np.int32]
Counts = NDArray[np.unsignedinteger[Any]]


def hash_text(text: str, salt: bytes = b"") -> int:
    """Return a 64-bit hash of a text, the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=salt).digest(), "little")


@lru_cache(maxsize=16384)
def word_hash(word: str) -> int:
    return hash_text(word)


def mark_hash(mark: str) -> int:
    """Return the hash of a mark; never that of a word."""
    return hash_text(mark, b"mark")


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Postings in the order of their words' hashes; those of word i are at offsets[i] to offsets[i + 1]."""

    hashes: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    passages: Numbers
    counts: Counts

    def __len__(self) -> int:
        return len(self.passages)


def _narrow(counts: Counts) -> Counts:
    """Return the same numbers in the smallest type that holds them: nearly always one byte."""
    most = int(counts.max()) if len(counts) else 0
    return counts.astype(np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32, copy=False)


def _group_postings(hashes: NDArray[np.uint64], ends: NDArray[np.int64], passages: Numbers, counts: Counts) -> Segment:
    """Return a segment from ordered runs of postings; runs of the same word are joined, empty ones dropped."""
    if len(hashes):
        last = np.append(hashes[1:] != hashes[:-1], True)
        hashes, ends = hashes[last], ends[last]
        filled = np.diff(ends, prepend=0) > 0
        hashes, ends = hashes[filled], ends[filled]
    return Segment(hashes, np.concatenate(([0], ends)).astype(np.int64), passages, _narrow(counts))


def merge_segments(segments: Sequence[Segment], keep: NDArray[np.bool_], renumber: Numbers | None = None) -> Segment:
    """Return one segment of several, only with the passages to keep, renumbered in the same order."""
    hashes = np.concatenate([segment.hashes for segment in segments])
    lengths = np.concatenate([np.diff(segment.offsets) for segment in segments])
    passages = np.concatenate([segment.passages for segment in segments])
    counts = np.concatenate([segment.counts for segment in segments])
    order = np.argsort(hashes, kind="stable")
    starts = (np.cumsum(lengths) - lengths)[order]
    lengths = lengths[order]
    ends = np.cumsum(lengths)
    moved, moved_counts = np.empty_like(passages), np.empty_like(counts)
    kept = np.zeros(len(lengths), dtype=np.int64)  # how much of each run
    filled = first = 0
    while first < len(lengths):
        done = int(ends[first - 1]) if first else 0
        until = max(first + 1, int(np.searchsorted(ends, done + _AT_ONCE, side="right")))
        span = lengths[first:until]
        places = np.repeat(starts[first:until] - (ends[first:until] - span - done), span)
        places += np.arange(len(places))
        part, part_counts = passages[places], counts[places]
        stays = keep[part]
        part, part_counts = part[stays], part_counts[stays]
        running = np.concatenate(([0], np.cumsum(stays)))
        kept[first:until] = np.diff(running[np.concatenate(([0], np.cumsum(span)))])
        if renumber is not None:
            part = renumber[part]
        moved[filled : filled + len(part)] = part
        moved_counts[filled : filled + len(part)] = part_counts
        filled += len(part)
        first = until
    if filled < len(moved):  # a copy, so that the larger array is released
        moved, moved_counts = moved[:filled].copy(), moved_counts[:filled].copy()
    return _group_postings(hashes[order], np.cumsum(kept), moved, moved_counts)


class Postings:
    """All postings of an index."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self.segments = list(segments)
        self._hashes = array("Q")
        self._passages = array("i")
        self._counts = array("I")

    def add(self, passage: int, counts: dict[int, int]) -> None:
        """Add a passage, with a higher number than any before it, and its word counts."""
        self._hashes.extend(counts.keys())
        self._counts.extend(counts.values())
        self._passages.extend([passage] * len(counts))

    @property
    def log_is_long(self) -> bool:
        return len(self._hashes) >= FREEZE_AT

    def freeze(self, keep: NDArray[np.bool_]) -> None:
        """Make the log a segment, and merge segments that are small compared to what follows them."""
        fresh = self._frozen()
        run, total = [fresh], len(fresh)
        while self.segments and len(self.segments[-1]) <= _GROWTH * total:
            run.insert(0, self.segments.pop())
            total += len(run[0])
        fresh = merge_segments(run, keep)
        if len(fresh):
            self.segments.append(fresh)

    def rebuild(self, keep: NDArray[np.bool_], renumber: Numbers) -> Segment:
        """Make everything one segment, only with the passages to keep, under their new numbers."""
        whole = merge_segments([*self.segments, self._frozen()], keep, renumber)
        self.segments = [whole]
        return whole

    def _frozen(self) -> Segment:
        hashes = np.array(self._hashes, dtype=np.uint64)
        passages = np.array(self._passages, dtype=np.int32)
        counts = np.array(self._counts, dtype=np.uint32)
        del self._hashes[:], self._passages[:], self._counts[:]
        order = np.argsort(hashes, kind="stable")
        return _group_postings(hashes[order], np.arange(1, len(order) + 1), passages[order], counts[order])

    def find(self, hashes: Sequence[int]) -> list[list[tuple[Numbers, Counts]]]:
        """Return for each word its passages and the counts in each, in ordered pieces."""
        found: list[list[tuple[Numbers, Counts]]] = [[] for _ in hashes]
        if not found:
            return found
        keys = np.array(hashes, dtype=np.uint64)
        for segment in self.segments:
            known, offsets = segment.hashes, segment.offsets
            places = known.searchsorted(keys)
            for pieces, key, place in zip(found, hashes, places.tolist(), strict=True):
                if place < len(known) and known[place] == key:
                    begin, end = offsets[place], offsets[place + 1]
                    pieces.append((segment.passages[begin:end], segment.counts[begin:end]))
        if self._hashes:
            # These are views of the arrays themselves, which cannot grow while views exist: none may leave.
            log = np.frombuffer(self._hashes, dtype=np.uint64)
            passages = np.frombuffer(self._passages, dtype=np.int32)
            counts = np.frombuffer(self._counts, dtype=np.uint32)
            for pieces, key in zip(found, keys, strict=True):
                hits = np.flatnonzero(log == key)
                if len(hits):
                    pieces.append((passages[hits], counts[hits]))
        return found
