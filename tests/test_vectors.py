"""Vectors: the exact cosine for few rows, and for many the exact one of those that matter."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from recollect.search import vectors
from recollect.search.embedders.embedder import normalise_rows
from recollect.search.vectors import Vectors


def rows(count: int, dimensions: int, seed: int = 1) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)
    return normalise_rows(drawn)


@pytest.mark.parametrize("dimensions", [1, 3, 63, 64, 65, 384])
def test_S2_few_rows_are_compared_exactly(dimensions: int) -> None:
    held, table = Vectors(dimensions), rows(700, dimensions)
    assert held.similarity(table[0]).shape == (0,)
    numbers = [held.add(table[begin : begin + 7]) for begin in range(0, 700, 7)]
    assert numbers == list(range(0, 700, 7)) and held.size == 700
    query = rows(1, dimensions, seed=2)[0]
    assert np.allclose(held.similarity(query), table @ query, atol=2e-3)
    assert held.similarity(table[345])[345] == pytest.approx(1.0, abs=2e-3)


def test_S2_rows_already_there_stay_as_they_are() -> None:
    held, table = Vectors(16), rows(600, 16)
    held.add(table[:250])
    before = held.similarity(table[3])
    held.add(table[250:])  # needs more room
    assert held.similarity(table[3])[:250] == pytest.approx(before, abs=1e-6)
    assert held.add(table[:0]) == 600 and held.size == 600


def test_S2_of_many_rows_the_nearest_are_exact_and_the_others_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "EXACT", 300)
    held, table = Vectors(384), rows(3000, 384)
    query = rows(1, 384, seed=2)[0]
    table[500:510] = 0.8 * query + 0.2 * table[500:510]
    table = normalise_rows(table)
    held.add(table)
    found, exact = held.similarity(query), table @ query
    assert found.dtype == np.float32 and found.shape == (3000,)
    assert set(np.argsort(-found)[:10].tolist()) == set(range(500, 510))
    assert np.allclose(found[500:510], exact[500:510], atol=2e-3)
    assert float(np.abs(found - exact).max()) < 0.4
    assert float(np.corrcoef(found, exact)[0, 1]) > 0.7


def test_S2_exactly_as_many_rows_as_are_compared_exactly_and_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "EXACT", 50)
    held, table = Vectors(64), rows(51, 64)
    held.add(table[:50])
    assert np.allclose(held.similarity(table[7]), table[:50] @ table[7], atol=2e-3)
    held.add(table[50:])
    found = held.similarity(table[7])
    assert int(found.argmax()) == 7 and found[7] == pytest.approx(1.0, abs=2e-3)


def test_S2_a_row_of_zeros_is_near_to_nothing() -> None:
    held = Vectors(8)
    held.add(np.zeros((2, 8), np.float32))
    assert held.similarity(rows(1, 8)[0]).tolist() == [0.0, 0.0]
