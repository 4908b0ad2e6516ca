"""The SQLite store keeps the contract, and what only a file can get wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import recollect.store
from recollect.records import Spending
from recollect.store.contract import Query, Store
from recollect.store.rows import load_migrations
from recollect.store.sqlite import SqliteStore
from recollect.store.sqlite_conditions import conditions_of
from tests.contracts.store_contract import T0, StoreContract, extraction_run, fact, interaction, tool_call, write


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


def test_S2_a_database_of_the_first_schema_is_read_as_it_is_and_brought_forward_by_a_write(tmp_path: Path) -> None:
    migrations = Path(recollect.store.__file__).parent / "sqlite_migrations"
    newest = len(load_migrations(migrations))
    with SqliteStore(tmp_path).user("u").write() as tx:
        record = write(tx, fact("tea"))
    path = tmp_path / "u" / "memory.db"
    _take_back_to(1, path)

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


@pytest.mark.parametrize("version", [1, 2])
def test_U7_the_log_begins_with_the_first_write_to_a_database_of_an_earlier_schema(
    tmp_path: Path, version: int
) -> None:
    with SqliteStore(tmp_path).user("u").write() as tx:
        record = write(tx, fact("tea"), call="call-1")
        tx.put_vectors("e", [(record.id, 1, b"x")])
    path = tmp_path / "u" / "memory.db"
    _take_back_to(version, path)

    store = SqliteStore(tmp_path)
    with store.user("u").read() as reader:
        assert reader.find(Query()) == [record]
        assert reader.calls() == [] and reader.spending() == [] and reader.consents() == {}
        assert [entry.seq for entry in reader.entries(call="call-1")] == [1] and reader.numbers([record.id])
    assert _version(path) == version
    call = tool_call("call-2")
    with SqliteStore(tmp_path).user("u").write() as tx:
        tx.log_calls([call])
        tx.charge([Spending(day=T0.date(), operation="extract", calls=1)])
        tx.set_consent("trends", True, T0)
    assert _version(path) > version
    with store.user("u").read() as reader:  # the connection from before sees it too
        assert reader.calls() == [call] and len(reader.spending()) == 1 and reader.consents() == {"trends": T0}
        assert reader.find(Query()) == [record] and [e.seq for e in reader.entries(call="call-1")] == [1]
        assert [row.data for row in reader.vectors("e")] == ([] if version == 1 else [b"x"])
        plan = reader.db.execute("EXPLAIN QUERY PLAN SELECT seq FROM journal WHERE call = 'call-1'").fetchall()
        assert "journal_by_call" in str(plan)
    assert store.user("u").check() == []


@pytest.mark.parametrize("version", [1, 2, 3])
def test_G3_interactions_begin_with_the_first_write_to_a_database_of_an_earlier_schema(
    tmp_path: Path, version: int
) -> None:
    with SqliteStore(tmp_path).user("u").write() as tx:
        record = write(tx, fact("tea"))
        tx.log_calls([tool_call("call-1")])
        tx.set_consent("trends", True, T0)
    path = tmp_path / "u" / "memory.db"
    _take_back_to(version, path)

    store = SqliteStore(tmp_path)
    with store.user("u").read() as reader:
        assert reader.find(Query()) == [record] and len(reader.calls()) == (version == 3)
        assert reader.interactions() == [] and reader.runs() == [] and reader.run(T0.date(), "batch") is None
    assert _version(path) == version
    with SqliteStore(tmp_path).user("u").write() as tx:
        tx.put_interactions([interaction("event-1")])
        tx.put_run(extraction_run("run-1"))
    assert _version(path) > version
    with store.user("u").read() as reader:  # the connection from before sees it too
        assert reader.interactions() == [interaction("event-1")] and reader.runs() == [extraction_run("run-1")]
        assert reader.find(Query()) == [record] and len(reader.consents()) == (version == 3)
        plan = reader.db.execute("EXPLAIN QUERY PLAN SELECT id FROM interactions WHERE at >= 'x' ORDER BY at, id")
        assert "interactions_by_time" in str(plan.fetchall())
    assert store.user("u").check() == []


def test_R6_R7_dropped_interactions_are_in_no_file(tmp_path: Path) -> None:
    user = SqliteStore(tmp_path).user("u")
    with user.write() as tx:
        tx.put_interactions([interaction("event-zebra", title="zebra", text="zebra " * 3000)])
        tx.put_interactions([interaction("event-2", 1)])
    with user.write() as tx:
        assert tx.drop_interactions(T0 + timedelta(minutes=1)) == 1
    for path in (tmp_path / "u").iterdir():
        assert b"zebra" not in path.read_bytes()


def _take_back_to(version: int, path: Path) -> None:
    """As if an earlier Recollect had written it: without what later migrations made."""
    migrations = Path(recollect.store.__file__).parent / "sqlite_migrations"
    made = "".join(load_migrations(migrations)[:version])
    db = sqlite3.connect(path)
    for kind, name in db.execute("SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type").fetchall():
        if f"CREATE {kind.upper()} {name} " not in made:
            db.execute(f"DROP {kind} IF EXISTS {name}")
    db.execute("ALTER TABLE files DROP COLUMN versions")
    db.execute(f"PRAGMA user_version = {version}")
    db.close()


def _version(path: Path) -> int:
    db = sqlite3.connect(path)
    try:
        return int(db.execute("PRAGMA user_version").fetchone()[0])
    finally:
        db.close()


def test_G3_interactions_of_an_earlier_schema_were_reported_when_they_happened(tmp_path: Path) -> None:
    with SqliteStore(tmp_path).user("u").write() as tx:
        tx.put_interactions([interaction("event-1"), interaction("event-2", 5)])
    path = tmp_path / "u" / "memory.db"
    db = sqlite3.connect(path)
    db.executescript(
        "DROP INDEX interactions_by_report; DROP INDEX records_by_time; ALTER TABLE interactions DROP COLUMN reported_at; ALTER TABLE files DROP COLUMN versions;"
        "PRAGMA user_version = 4"
    )
    db.close()
    store = SqliteStore(tmp_path)
    with store.user("u").read() as reader:
        assert [one.reported_at for one in reader.interactions(reported_after=T0)] == [T0 + timedelta(minutes=5)]
        assert reader.last_reported() == T0 + timedelta(minutes=5)
    with store.user("u").write() as tx:
        tx.put_interactions([interaction("event-3", reported_at=T0 + timedelta(minutes=9))])
        assert [one.id for one in tx.interactions(reported_after=T0)] == ["event-3", "event-2"]
    assert _version(path) == 7 and store.user("u").check() == []


def test_messages_of_a_day_are_found_by_an_index(tmp_path: Path) -> None:
    with SqliteStore(tmp_path).user("u").write() as tx:
        write(tx, fact("tea"))
        query = Query(kinds=("message",), said_from=T0, said_until=T0 + timedelta(days=1), alive_at=T0)
        conditions, values = conditions_of(query)
        sql = f"EXPLAIN QUERY PLAN SELECT * FROM records WHERE {' AND '.join(conditions)} ORDER BY created_at, id, version"
        plan = str(tx.db.execute(sql, values).fetchall())
    assert "records_by_time" in plan and "valid_from>?" in plan
