"""The SQLite store keeps the contract, and what only a file can get wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect.store
from recollect.records import JournalEntry
from recollect.store.contract import Query, Store
from recollect.store.rows import load_migrations
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


def test_S2_a_database_of_the_first_schema_is_read_as_it_is_and_brought_forward_by_a_write(tmp_path: Path) -> None:
    migrations = Path(recollect.store.__file__).parent / "sqlite_migrations"
    newest = len(load_migrations(migrations))
    with SqliteStore(tmp_path).user("u").write() as tx:
        record = write(tx, fact("tea"))
    path = tmp_path / "u" / "memory.db"
    db = sqlite3.connect(path)
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        if f"CREATE TABLE {table} " not in load_migrations(migrations)[0]:
            db.execute(f"DROP TABLE {table}")
    db.execute("PRAGMA user_version = 1")
    db.close()

    store = SqliteStore(tmp_path)
    with store.user("u").read() as reader:
        assert reader.find(Query()) == [record] == reader.unembedded("e", kinds=("fact",), limit=5)
        assert reader.vectors("e") == [] and reader.last_vector("e") == 0
    assert _version(path) == 1
    with SqliteStore(tmp_path).user("u").write() as tx:
        tx.put_vectors("e", [(record.id, 1, b"x")])
    assert _version(path) == newest > 1
    with store.user("u").read() as reader:  # the connection from before sees it too
        assert [row.data for row in reader.vectors("e")] == [b"x"] and reader.last_vector("e") == 1
        assert reader.unembedded("e", kinds=("fact",), limit=5) == []
    assert store.user("u").check() == []


def test_R7_S2_an_erased_vector_is_in_no_file(tmp_path: Path) -> None:
    user = SqliteStore(tmp_path).user("u")
    with user.write() as tx:
        record = write(tx, fact())
        tx.put_vectors("e", [(record.id, 1, b"zebra" * 3000)])
    with user.write() as tx:
        tx.erase([record.id])
    for path in (tmp_path / "u").iterdir():
        assert b"zebra" not in path.read_bytes()


def _version(path: Path) -> int:
    db = sqlite3.connect(path)
    try:
        return int(db.execute("PRAGMA user_version").fetchone()[0])
    finally:
        db.close()
