"""An embedder for tests that needs no model: texts that share words are near to each other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from recollect.search.embedders.embedder import normalise_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray


class HashEmbedder:
    """A deterministic embedder that adds up one pseudo-random vector for each word of a text."""

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions
        self.name = f"hash:{dimensions}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.casefold()):
                rows[row] += _word_vector(word, self.dimensions)
        return normalise_rows(rows)


@lru_cache(maxsize=10_000)
def _word_vector(word: str, dimensions: int) -> NDArray[np.float32]:
    seed = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)
