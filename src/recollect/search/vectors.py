"""Vectors of many texts, and their similarity to a query.

They are stored as half-precision rows, and also as their signs, one bit per dimension. For a few thousand rows the
similarity is the exact cosine. For more it is estimated from the signs, which is a hundred times less to read, and
computed exactly for the rows that look best.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXACT = 8192
"""The number of rows that are compared exactly."""


class Vectors:
    """Rows of one embedder, each of length 1. A row has a number and never changes."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.size = 0
        self._rows = np.zeros((0, dimensions), dtype=np.float16)
        self._signs = np.zeros((0, -(-dimensions // 64)), dtype=np.uint64)

    def add(self, rows: NDArray[np.float32]) -> int:
        """Add rows; return the number of the first."""
        first, needed = self.size, self.size + len(rows)
        if needed > len(self._rows):
            self._rows, self._signs = (
                self._grown(array, max(256, needed * 3 // 2)) for array in (self._rows, self._signs)
            )
        self._rows[first:needed] = rows
        self._signs[first:needed] = _sign_bits(rows)
        self.size = needed
        return first

    def _grown(self, array: NDArray[Any], capacity: int) -> NDArray[Any]:
        grown = np.zeros((capacity, array.shape[1]), dtype=array.dtype)
        grown[: self.size] = array[: self.size]
        return grown

    def similarity(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of every row with a vector of length 1, exact for the nearest."""
        rows = self._rows[: self.size]
        if self.size <= EXACT:
            return rows.astype(np.float32) @ query
        differing = np.zeros(self.size, dtype=np.uint16)
        for column, own in zip(self._signs[: self.size].T, _sign_bits(query[None])[0], strict=True):
            differing += np.bitwise_count(column ^ own)
        angles = np.arange(self.dimensions + 1) * (math.pi / self.dimensions)
        estimated: NDArray[np.float32] = np.cos(angles).astype(np.float32)[differing]
        nearest = np.argpartition(differing, EXACT)[:EXACT]
        estimated[nearest] = rows[nearest].astype(np.float32) @ query
        return estimated


def _sign_bits(rows: NDArray[np.float32]) -> NDArray[np.uint64]:
    padded = np.zeros((len(rows), -(-rows.shape[1] // 64) * 64), dtype=np.bool_)
    padded[:, : rows.shape[1]] = rows > 0
    return np.packbits(padded, axis=1).view(np.uint64)
