"""The SQLite store keeps the contract, and what only a file can get wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

import recollect
from recollect.errors import StoreError
from recollect.store import sqlite_connections
from recollect.store.contract import Query, Store
from recollect.store.rows import load_migrations
from recollect.store.sql_views import values_of
from recollect.store.sqlite import SqliteStore
from tests.contracts.store_contract import T0, StoreContract, fact, interaction, write


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = SqliteStore(tmp_path)
        yield store
        store.close()


def test_R7_a_log_that_a_reader_held_up_is_emptied_by_the_next_write(tmp_path: Path) -> None:
    with SqliteStore(tmp_path).user("u").write() as tx:
        record = write(tx, fact("the zebra incident"))
    reading, erasing = SqliteStore(tmp_path), SqliteStore(tmp_path)
    with reading.user("u").read() as reader:
        assert reader.find(Query()) == [record]
        with erasing.user("u").write() as tx:
            tx.erase([record.id])
        assert tx.pending
        erasing.close()
    with SqliteStore(tmp_path).user("u").write() as tx:
        pass
    assert not tx.pending
    reading.close()
    for path in (tmp_path / "u").iterdir():
        assert b"zebra" not in path.read_bytes()


def test_R7_S2_an_erased_vector_is_in_no_file(tmp_path: Path) -> None:
    user = SqliteStore(tmp_path).user("u")
    with user.write() as tx:
        record = write(tx, fact())
        tx.put_vectors("e", [(record.id, 1, b"zebra" * 3000)])
    with user.write() as tx:
        tx.erase([record.id])
    for path in (tmp_path / "u").iterdir():
        assert b"zebra" not in path.read_bytes()


def test_a_later_schema_reads_an_earlier_one_and_brings_it_forward_by_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteStore(tmp_path).user("u").write() as tx:
        record = write(tx, fact("tea"))
        tx.put_vectors("e", [(record.id, 1, b"x")])
    path = tmp_path / "u" / "memory.db"
    before = _version(path)
    monkeypatch.setattr(
        sqlite_connections,
        "load_migrations",
        lambda folder: [
            *load_migrations(folder),
            "CREATE TABLE more (one TEXT) STRICT;\nCREATE INDEX m ON more (one);\n",
        ],
    )
    store = SqliteStore(tmp_path)
    with store.user("u").read() as reader:
        assert reader.find(Query()) == [record] and [row.data for row in reader.vectors("e")] == [b"x"]
    assert _version(path) == before
    with SqliteStore(tmp_path).user("u").write() as tx:
        tx.db.execute("INSERT INTO more VALUES ('x')")
    assert _version(path) == before + 1
    with store.user("u").read() as reader:  # the connection from before sees it too
        assert reader.db.execute("SELECT one FROM more").fetchall() == [("x",)]
        assert reader.find(Query()) == [record]
    assert store.user("u").check() == []


def test_a_newer_schema_is_left_alone(tmp_path: Path) -> None:
    with SqliteStore(tmp_path).user("u").write() as tx:
        write(tx, fact("tea"))
    path = tmp_path / "u" / "memory.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer Recollect"), SqliteStore(tmp_path).user("u").read():
        pass
    with pytest.raises(StoreError, match="newer Recollect"), SqliteStore(tmp_path).user("u").write():
        pass
    assert _version(path) == 99


def test_calls_and_interactions_are_found_by_an_index(tmp_path: Path) -> None:
    with SqliteStore(tmp_path).user("u").write() as tx:
        plan = tx.db.execute("EXPLAIN QUERY PLAN SELECT seq FROM journal WHERE call = 'call-1'").fetchall()
        assert "journal_by_call" in str(plan)
        plan = tx.db.execute(
            "EXPLAIN QUERY PLAN SELECT id FROM interactions WHERE at >= 'x' ORDER BY at, id"
        ).fetchall()
        assert "interactions_by_time" in str(plan)


def test_R6_R7_dropped_interactions_are_in_no_file(tmp_path: Path) -> None:
    user = SqliteStore(tmp_path).user("u")
    with user.write() as tx:
        tx.put_interactions([interaction("event-zebra", title="zebra", text="zebra " * 3000)])
        tx.put_interactions([interaction("event-2", 1)])
    with user.write() as tx:
        assert tx.drop_interactions(T0 + timedelta(minutes=1)) == 1
    for path in (tmp_path / "u").iterdir():
        assert b"zebra" not in path.read_bytes()


def _version(path: Path) -> int:
    db = sqlite3.connect(path)
    try:
        return int(db.execute("PRAGMA user_version").fetchone()[0])
    finally:
        db.close()


def test_messages_of_a_day_are_found_by_an_index(tmp_path: Path) -> None:
    with SqliteStore(tmp_path).user("u").write() as tx:
        write(tx, fact("tea"))
        query = Query(kinds=("message",), said_from=T0, said_until=T0 + timedelta(days=1), alive_at=T0)
        conditions = tx.conditions_of(query)
        sql = f"EXPLAIN QUERY PLAN SELECT * FROM records WHERE {' AND '.join(conditions)} ORDER BY created_at, id, version"
        plan = str(tx.db.execute(sql, values_of(conditions)).fetchall())
    assert "records_by_time" in plan and "valid_from>?" in plan


def test_a_folder_whose_records_are_elsewhere_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    page = tmp_path / "u1" / "MEMORY.md"
    page.parent.mkdir()
    page.write_text("# User Memory\n\n## Key Facts\n- Likes tea\n")
    with recollect.open(tmp_path) as app:
        assert "If their records are in PostgreSQL, set MEMORY_DATABASE_URL" in caplog.text
        app.user("u1").remember("Likes coffee")
    caplog.clear()
    with recollect.open(tmp_path) as app:
        assert "Likes tea" in app.user("u1").show() and caplog.text == ""
