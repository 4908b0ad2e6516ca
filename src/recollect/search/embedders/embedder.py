"""The interface of an embedder, the checks of its results, and the storage format of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from recollect.errors import EmbedderError, RecollectError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """Identifies model and options; stored with each vector. Another name means other vectors."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text, in order."""
        ...


class CheckedEmbedder:
    """Any embedder, with its results checked and each row normalised to length 1."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimensions(self) -> int:
        return self.embedder.dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        try:
            found = self.embedder.embed(list(texts))
        except RecollectError:
            raise
        except Exception as error:  # third-party code may raise anything
            raise EmbedderError(f"the embedder {self.name} failed ({type(error).__name__})") from error
        return as_vectors(found, len(texts), self.dimensions, self.name)


def check_embedder(embedder: Embedder) -> Embedder:
    """Return the same embedder with its results checked."""
    return embedder if isinstance(embedder, CheckedEmbedder) else CheckedEmbedder(embedder)


def as_vectors(found: ArrayLike, count: int, dimensions: int | None, name: str) -> NDArray[np.float32]:
    """Return the results as rows of length 1, or raise an `EmbedderError` with the problem."""
    try:
        with np.errstate(over="ignore"):  # numbers too large become infinite and are refused below
            rows = np.asarray(found, dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        raise EmbedderError(f"the embedder {name} did not return a table of numbers") from None
    if rows.ndim != 2 or len(rows) != count:
        raise EmbedderError(
            f"the embedder {name} returned an array of shape {rows.shape} for {count} texts; it must return a row"
            " for each text"
        )
    if rows.shape[1] == 0 or (dimensions is not None and rows.shape[1] != dimensions):
        wanted = "some" if dimensions is None else dimensions
        raise EmbedderError(
            f"the embedder {name} returned vectors of {rows.shape[1]} dimensions instead of {wanted}; if its model"
            " was changed, give it another name"
        )
    if not np.isfinite(rows).all():
        raise EmbedderError(f"the embedder {name} returned numbers that are not finite; its model may be damaged")
    return normalise_rows(rows)


def normalise_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return each row normalised to length 1, so that dot products are cosines; a row of zeros stays."""
    # in double precision: the squares of large float32 numbers do not fit
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def pack(rows: NDArray[np.float32]) -> bytes:
    """Return vectors in storage format: float16, little-endian, row after row."""
    return rows.astype("<f2").tobytes()


def unpack(data: bytes, dimensions: int) -> NDArray[np.float32]:
    """Invert `pack`."""
    if dimensions < 1 or len(data) % (2 * dimensions):
        raise EmbedderError(f"a stored vector does not have {dimensions} dimensions; compute it again")
    return np.frombuffer(data, "<f2").reshape(-1, dimensions).astype(np.float32)
