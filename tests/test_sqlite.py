"""The SQLite store keeps the contract, and what only a file can get wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.records import JournalEntry
from recollect.store.contract import Store
from recollect.store.sqlite import SqliteStore
from tests.contracts.store_contract import T0, StoreContract, fact, write


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = SqliteStore(tmp_path)
        yield store
        store.close()


def test_R7_a_log_that_a_dying_process_left_after_an_erasure_is_emptied(tmp_path: Path) -> None:
    with SqliteStore(tmp_path).user("u").write() as tx:
        record = write(tx, fact("the zebra incident"))
    store = SqliteStore(tmp_path)
    with store.user("u").read(), SqliteStore(tmp_path).user("u").write() as tx:  # the reader keeps the log in place
        tx.erase([record.id])
        seq = tx.next_seq()
        tx.log([JournalEntry(seq=seq, at=T0, actor="person", op="erase", record_id=record.id)])
        tx.erased = False  # as if it died before it emptied the log
    log = tmp_path / "u" / "memory.db-wal"
    assert b"zebra" in log.read_bytes()
    with SqliteStore(tmp_path).user("u").write():
        assert b"zebra" not in log.read_bytes()
        assert b"zebra" not in (tmp_path / "u" / "memory.db").read_bytes()
