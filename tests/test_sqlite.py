"""The SQLite store keeps the contract, and what only a file can get wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.store.contract import Store
from recollect.store.sqlite import SqliteStore
from tests.contracts.store_contract import StoreContract


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = SqliteStore(tmp_path)
        yield store
        store.close()
