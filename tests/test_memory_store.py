"""The in-memory store keeps the same contract as the real ones."""

from __future__ import annotations

import pytest

from recollect.store.contract import Store
from recollect.testing import MemoryStore
from tests.contracts.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()
