"""The PostgreSQL store keeps the contract, and what only a server can get wrong."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

import recollect
from recollect import store as store_package
from recollect.agents.extract import extract
from recollect.errors import (
    ConfigError,
    MissingExtraError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from recollect.records import ExtractionRun, JournalEntry, Record, Spending
from recollect.store import postgres
from recollect.store.contract import FileState, Query, Store
from recollect.store.postgres import PostgresStore
from recollect.store.postgres_views import account_of
from recollect.store.rows import load_migrations, load_queries
from recollect.testing.postgres import PostgresServer
from recollect.times import utc_now
from tests.contracts.store_contract import T0, StoreContract, extraction_run, fact, interaction, tool_call, write
from tests.volume import first


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def store(self, postgres_url: str) -> Iterator[Store]:
        store = PostgresStore(postgres_url)
        yield store
        store.close()


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    yield store
    store.close()


@pytest.fixture
def sql(postgres_url: str) -> Iterator[Callable[..., list[Any]]]:
    """Look at the tables directly, as an application of the deployment would."""
    with psycopg.connect(postgres_url, autocommit=True) as db:

        def run(statement: str, *values: Any) -> list[Any]:
            cursor = db.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

        yield run


def together(work: Callable[[int], None], number: int) -> None:
    """Run in many threads at once; the first exception of any comes out."""
    failures: list[BaseException] = []
    barrier = threading.Barrier(number)

    def run(n: int) -> None:
        barrier.wait(30)
        try:
            work(n)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def shown(error: BaseException) -> str:
    """All messages a traceback of it would show."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return f"{error}\n{shown(before)}" if before else str(error)


class TestTables:
    """D1: the tables of the seeds, made by migrations."""

    def test_D1_queries_of_the_seed_work(self, store: PostgresStore, sql: Callable[..., list[Any]]) -> None:
        with store.user("u").write() as tx:
            old = write(tx, fact("tea", key="drink", category="preference", type="opinion", confidence=0.75))
            tx.keep(replace(old, status="superseded", valid_until=T0))
            write(tx, replace(old, content="coffee", version=2, expires_at=T0))
            write(tx, fact("a free sentence"))
        found = sql(
            "SELECT content, key, source, confidence, created_at, updated_at, expires_at, source_post_id"
            " FROM memory WHERE user_id = %s AND active = true AND type = 'preference'"
            " ORDER BY created_at DESC",
            account_of("u"),
        )
        assert found == [("coffee", "drink", "explicit", Decimal("0.75"), T0, T0, T0, None)]
        assert sql("SELECT fact_type FROM memory_records WHERE active AND key = 'drink'") == [("opinion",)]
        sql("INSERT INTO memory_extraction_runs (user_id, run_date) VALUES (%s, '2026-02-12')", account_of("u"))
        assert sql("SELECT status, tokens_used FROM memory_extraction_runs") == [("pending", 0)]
        indexes = {name for (name,) in sql("SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()")}
        assert {
            "idx_memory_user_active",
            "idx_memory_type",
            "idx_memory_fts",
            "idx_memory_created",
        } <= indexes
        assert store.erase_user("u")["records"] == 3
        assert sql("SELECT 1 FROM memory UNION SELECT 1 FROM memory_extraction_runs UNION SELECT 1 FROM users") == []

    def test_D1_memory_enabled_follows_the_mode_and_the_application_may_switch_it(
        self, store: PostgresStore, sql: Callable[..., list[Any]]
    ) -> None:
        user = store.user("u")
        for mode, enabled in (("incognito", False), ("on", True), ("paused", False)):
            with user.write() as tx:
                tx.set_mode(mode)
                assert tx.state().mode == mode
            assert sql("SELECT memory_enabled, memory_mode FROM users, memory_users") == [(enabled, mode)]
            with user.read() as reader:
                assert reader.state().mode == mode
        for enabled, mode in ((True, "on"), (False, "paused")):
            sql("UPDATE users SET memory_enabled = %s", enabled)
            with user.read() as reader:
                assert reader.state().mode == mode

    def test_reading_an_empty_database_creates_nothing(
        self, store: PostgresStore, sql: Callable[..., list[Any]]
    ) -> None:
        with store.user("u").read() as reader:
            assert reader.find(Query()) == []
            assert reader.count() == {}
            assert reader.recalled() == {}
        assert not store.user("u").exists()
        assert list(store.users()) == []
        assert store.user("u").check() == []
        assert store.user("u").text_search("tea", ["fact"], 3) == []
        assert sum(store.erase_user("u").values()) == 0
        assert sql("SELECT 1 FROM pg_class WHERE relnamespace = current_schema()::regnamespace") == []
        with store.user("u").write() as tx:
            write(tx, fact())
        assert store.user("u").exists()

    @pytest.mark.slow
    def test_migrating_from_many_threads_and_processes_at_once(
        self, postgres_url: str, sql: Callable[..., list[Any]]
    ) -> None:
        script = (
            "import sys; from recollect.store.postgres import PostgresStore\n"
            "sys.stdin.readline()\n"
            "with PostgresStore(sys.argv[1]).user(sys.argv[2]).write(): pass"
        )
        processes = [
            subprocess.Popen([sys.executable, "-c", script, postgres_url, f"process {n}"], stdin=subprocess.PIPE)
            for n in range(2)
        ]

        def work(n: int) -> None:
            store = PostgresStore(postgres_url)
            with store.user(f"thread {n}").write() as tx:
                write(tx, fact())
            store.close()

        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        together(work, 4)
        assert [process.wait(30) for process in processes] == [0, 0]
        known = len(load_migrations(Path(store_package.__file__).parent / "postgres_migrations"))
        assert sql("SELECT version FROM recollect_migrations ORDER BY version") == [(n + 1,) for n in range(known)]
        assert sql("SELECT count(*) FROM users") == [(6,)]

    def test_an_applications_table_of_users_is_extended(
        self, store: PostgresStore, sql: Callable[..., list[Any]]
    ) -> None:
        ann, bob = (str(uuid.uuid4()) for _ in range(2))
        sql("CREATE TABLE users (id UUID PRIMARY KEY, email TEXT NOT NULL, secret TEXT, since DATE)")
        sql("INSERT INTO users VALUES (%s, 'ann@example.org', 'hers', '2020-01-01'), (%s, '', '', NULL)", ann, bob)
        sql("ALTER TABLE users ADD COLUMN memory_enabled BOOLEAN DEFAULT true")
        sql("UPDATE users SET memory_enabled = false WHERE id = %s", bob)
        assert not store.user(ann).exists()
        with store.user(ann).write() as tx:
            write(tx, fact())
        with store.user(bob).write() as tx:
            assert tx.state().mode == "paused"
        assert list(store.users()) == sorted([ann, bob])
        refused = pytest.raises(StoreError, match=r"NotNullViolation 23502 users\.email")
        with refused as caught, store.user("nobody they know").write():
            pass
        assert "they know" not in shown(caught.value)
        assert "insert a user's row before" in str(caught.value) and "give the column a default" in str(caught.value)
        sql("INSERT INTO memory (user_id, type, key, content) VALUES (%s, 'preference', 'x', 'their own')", ann)
        sql("UPDATE memory SET content = 'changed'")
        assert sql("SELECT content FROM memory WHERE record_id IS NULL") == [("changed",)]
        assert sql("SELECT count(*) FROM memory WHERE record_id IS NOT NULL AND content = 'changed'") == [(0,)]
        store.erase_user(ann)
        assert sql("SELECT id::text, email, secret FROM users WHERE id = %s", ann) == [(ann, "ann@example.org", "hers")]
        assert sql("SELECT count(*) FROM memory") == [(0,)]
        assert not store.user(ann).exists()
        assert list(store.users()) == [bob]

    def test_C6_ids_that_are_no_uuids_get_one_and_two_spellings_are_two_users(
        self, store: PostgresStore, sql: Callable[..., list[Any]]
    ) -> None:
        one = str(uuid.uuid4())
        for name in (one, one.upper(), "ann", "@acme/ann"):
            with store.user(name).write() as tx:
                write(tx, fact(f"Known as {name}", category="preference"))
        kept = dict(sql("SELECT id, account FROM memory_users"))
        assert kept[one] == uuid.UUID(one) and kept[one.upper()].version == kept["ann"].version == 5
        assert {key: account_of(key) for key in kept} == kept and len(set(kept.values())) == 4
        assert dict(sql("SELECT content, user_id FROM memory")) == {f"Known as {key}": kept[key] for key in kept}

    def test_D1_every_row_has_one_of_the_seeds_types_and_says_which_post_it_is_about(
        self, postgres_url: str, sql: Callable[..., list[Any]]
    ) -> None:
        talked, liked, saved = (str(uuid.uuid4()) for _ in range(3))
        with recollect.open(postgres_url) as app:
            memory = app.user("u")
            memory.remember("Likes tea")
            memory.report("discussion", title="PostgreSQL 18", item=talked, session="d1")
            memory.say("Good to know.", session="d1")
            memory.report("reaction", value="👍", title="Raft", item=liked)
            memory.report("save", title="CRDTs", item=saved)
            extract(memory, utc_now().date())
        found = sql("SELECT content, type, source_post_id::text FROM memory ORDER BY created_at, content")
        assert found[0] == ("Likes tea", "personal_context", None)
        assert {row[0].partition(" (")[0]: row[1:] for row in found[1:]} == {
            '👍 "Raft"': ("reading_history", liked),
            '⭐ Saved "CRDTs"': ("reading_history", saved),
            'Discussed "PostgreSQL 18"': ("reading_history", talked),
        }
        assert sql("SELECT count(*) FROM memory WHERE key <> record_id") == [(0,)], "none has a key of its own"

    def test_C6_the_mirror_follows_every_change(self, postgres_url: str, sql: Callable[..., list[Any]]) -> None:
        def mirrored() -> list[Any]:
            return sql("SELECT key, content, active FROM memory ORDER BY content")

        with recollect.open(postgres_url) as app:
            memory = app.user("ann")
            memory.say("Hello!", session="s")
            memory.note("A note")
            role: Any = memory.remember("Engineer", key="role")
            memory.update("role", "Staff engineer")
            assert mirrored() == [("role", "Staff engineer", True)]
            memory.undo()
            assert mirrored() == [("role", "Engineer", True)]
            memory.forget("role")
            assert mirrored() == [("role", "Engineer", False)]
            memory.undo()
            with pytest.raises(RuntimeError), memory.batch() as batch:
                batch.remember("Likes tea")
                raise RuntimeError
            assert mirrored() == [("role", "Engineer", True)]
            memory.erase(role.record.id)
            assert mirrored() == []
            memory.remember("Likes tea")
            memory.clear()
            assert mirrored() == [] and len(sql("SELECT 1 FROM users")) == 1
            app.erase_user("ann")
            assert sql("SELECT 1 FROM users") == []

    def test_C6_a_search_may_use_the_databases_own(self, postgres_url: str) -> None:
        with recollect.open(postgres_url, tsvector=True) as app:
            memory = app.user("ann")
            memory.remember("Interested in distributed systems", category="preference")
            memory.remember("Builds systems", category="work_context")
            memory.acting(chat="other").remember("Distributed systems in another chat")
            found = memory.search("distributed system")
            assert found.mode == "tsvector" and found[0].record.content.startswith(("Interested", "Distributed"))
            assert [hit.record.content for hit in memory.search("system", category="work_context")] == [
                "Builds systems"
            ]
            here = memory.acting(chat="here").search("distributed systems")
            assert [hit.record.content for hit in here] == ["Interested in distributed systems"]
            assert memory.search("distributed zeppelin") == [] and memory.search("") == []

    @pytest.mark.parametrize(
        ("table", "complaint"),
        [
            ("users (id BIGINT PRIMARY KEY)", "bigint"),
            ("users (id TEXT PRIMARY KEY)", "text"),
            ("users (name TEXT)", "missing"),
            ("users (id UUID)", "not unique"),
            ("memory (id UUID PRIMARY KEY)", "does not belong to Recollect"),
        ],
    )
    def test_tables_that_cannot_be_shared_are_refused(
        self, store: PostgresStore, sql: Callable[..., list[Any]], table: str, complaint: str
    ) -> None:
        sql(f"CREATE TABLE {table}")
        with pytest.raises(ConfigError, match=complaint) as caught, store.user("u").write():
            pass
        assert "search_path" in str(caught.value)
        assert len(sql("SELECT 1 FROM pg_tables WHERE schemaname = current_schema()")) == 1

    def test_a_schema_named_in_the_url_is_made_by_the_first_write(self, postgres: PostgresServer) -> None:
        store = PostgresStore(f"{postgres.url}?options=-csearch_path%3D%22Own%22%2Cpublic")
        assert list(store.users()) == []
        with store.user("u").write() as tx:
            write(tx, fact())
        with psycopg.connect(postgres.url) as db:
            assert db.execute('SELECT count(*) FROM "Own".memory_records').fetchone() == (1,)
            assert db.execute("SELECT to_regclass('public.memory')").fetchone() == (None,)
        store.close()

    def test_a_newer_schema_is_left_alone(self, postgres_url: str, sql: Callable[..., list[Any]]) -> None:
        store = PostgresStore(postgres_url)
        with store.user("u").write():
            pass
        store.close()
        sql("INSERT INTO recollect_migrations VALUES (99)")
        with pytest.raises(StoreError, match="newer Recollect"), store.user("u").read():
            pass
        with pytest.raises(StoreError, match="newer Recollect"), store.user("u").write():
            pass
        store.close()

    def test_a_later_schema_brings_an_earlier_one_forward(
        self, postgres_url: str, sql: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = PostgresStore(postgres_url)
        with store.user("u").write() as tx:
            record = write(tx, fact())
        store.close()
        monkeypatch.setattr(
            postgres,
            "load_migrations",
            lambda folder: [*load_migrations(folder), "CREATE TABLE memory_more (one TEXT)"],
        )
        with store.user("u").read() as reader:
            assert reader.find(Query()) == [record]
        with store.user("u").write() as tx:
            assert tx.find(Query()) == [record]
        assert sql("SELECT count(*) FROM memory_more") == [(0,)]
        known = len(load_migrations(Path(store_package.__file__).parent / "postgres_migrations"))
        assert sql("SELECT max(version) FROM recollect_migrations") == [(known + 1,)]
        store.close()

    def test_U7_the_log_of_an_erased_user_is_gone(self, store: PostgresStore, sql: Callable[..., list[Any]]) -> None:
        with store.user("u").write() as tx:
            tx.log_calls([tool_call("call-2")])
            tx.charge([Spending(day=T0.date(), operation="extract", calls=1)])
            tx.set_consent("trends", True, T0)
        places = store.erase_user("u")
        assert (places["tool calls"], places["ledger"], places["consents"]) == (1, 1, 1)
        for table in ("memory_calls", "memory_spending", "memory_consents"):
            assert sql(f"SELECT count(*) FROM {table}") == [(0,)]

    def test_R4_every_statement_names_the_user(self) -> None:
        folder = Path(store_package.__file__).parent
        for name, statement in load_queries(folder / "postgres.sql").items():
            if name in ("users", "strangers"):  # who is here, and which tables
                continue
            if name.startswith("tally_"):  # of a tenant: names and numbers
                assert "{whose}" in statement
                continue
            code = re.sub(r"--.*", "", statement)
            # from each mention of a table to the next one
            parts = re.split(r"\b(?:FROM|INTO|UPDATE|JOIN) (users|memory|memory_\w+)\b", code)
            for table, part in zip(parts[1::2], parts[2::2], strict=True):
                wanted = r"\b(id|account)\b" if table in ("users", "memory_users") else r"\buser_id\b"
                assert re.search(wanted, part), f"{name}: {table}{part}"

    def test_D1_rows_that_were_lost_come_back_and_a_dropped_table_is_named(
        self, store: PostgresStore, sql: Callable[..., list[Any]]
    ) -> None:
        with recollect.open(store) as app:
            memory = app.user("u")
            memory.remember("Engineer", key="role")
            sql("TRUNCATE memory")
            page = (Path(__file__).parent.parent / "docs/storage.md").read_text(encoding="utf-8")
            statement = re.search(r"UPDATE memory_records .*;", page)
            assert statement is not None
            sql(statement[0])
            assert sql("SELECT key, content FROM memory") == [("role", "Engineer")]
            sql("UPDATE users SET memory_enabled = NULL")
            assert memory.mode == "on"
            memory.pause(incognito=True)
            sql("UPDATE users SET memory_enabled = NULL")
            assert memory.mode == "incognito"
            memory.resume()
            sql("DROP TABLE memory CASCADE")
            with pytest.raises(StoreError, match=r"the table memory is missing.* backup"):
                memory.remember("Likes tea")
            assert len(memory.read()) == 1

    def test_G3_D1_the_daily_runs_are_in_the_seeds_table_and_gone_with_the_user(
        self, store: PostgresStore, sql: Callable[..., list[Any]]
    ) -> None:
        run = replace(extraction_run("run-1"), status="failed", error="full", tokens_used=10**11)
        with store.user("u").write() as tx:
            tx.put_run(run)
            tx.put_run(replace(run, id="run-2", kind="discussion"))
        mirrored = "SELECT status, error_message, tokens_used, user_id FROM memory_extraction_runs"
        assert sql(mirrored) == [("failed", "full", 2**31 - 1, account_of("u"))]
        with store.user("u").write() as tx:
            tx.put_run(replace(run, id="run-3", status="completed", error=None, tokens_used=5))
            assert sorted(one.id for one in tx.runs()) == ["run-2", "run-3"]
        assert sql(mirrored) == [("completed", None, 5, account_of("u"))]
        assert store.erase_user("u")["runs"] == 2
        assert sql(mirrored) == []

    def test_D1_the_row_of_the_user_tells_when_they_were_last_extracted(
        self, store: PostgresStore, sql: Callable[..., list[Any]]
    ) -> None:
        def last() -> Any:
            return sql("SELECT memory_last_extracted_at FROM users WHERE id = %s", account_of("u"))[0][0]

        def note(run: ExtractionRun) -> None:
            with store.user("u").write() as tx:
                tx.put_run(run)

        with store.user("v").write() as tx:
            tx.put_run(extraction_run("run-0", 20, status="completed"))
        note(extraction_run("run-1", status="running"))
        assert last() is None
        note(extraction_run("run-1", status="completed", duration_ms=1500))
        assert last() == T0 + timedelta(seconds=1.5)
        note(extraction_run("run-2", 11, status="completed"))  # an earlier day, made up for
        note(extraction_run("run-3", 13, status="failed"))
        assert last() == T0 + timedelta(seconds=1.5)
        note(extraction_run("run-3", 13, status="completed"))
        assert last() == T0 + timedelta(days=1)
        with store.user("u").write() as tx:
            assert tx.drop_runs() == 3
        assert last() is None

    def test_G3_interactions_are_found_by_an_index(self, store: PostgresStore) -> None:
        with store.user("u").write() as tx:
            tx.put_interactions([interaction(f"event-{number}", number) for number in range(200)])
            tx.db.execute("SET LOCAL enable_seqscan = off")
            tx.db.execute("SET LOCAL enable_sort = off")
            plan = tx.db.execute(
                "EXPLAIN SELECT id FROM memory_interactions WHERE user_id = 'u'"
                " AND (at, id) > ('2026-02-12T09:30:00Z'::timestamptz, 'x') ORDER BY at, id LIMIT 5"
            ).fetchall()
        assert "memory_interactions_by_time" in str(plan)


class TestValues:
    def test_odd_values_come_back_as_they_were(self, store: PostgresStore) -> None:
        records: list[Record] = [
            fact("year one", at=datetime(1, 1, 1, tzinfo=timezone.utc)),
            fact("the end", at=datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)),
            fact("exact", confidence=0.1 + 0.2, importance=1 / 3),
            fact("numbers", metadata={"big": 10**40, "float": 1e23, "small": 5e-324, "half": 1.0, "empty": {}}),
            fact(
                "escapes \\ ' \" % %s {} \x7f",
                excerpt="a\x00b",
                metadata={"\x00": "\x00"},
                tags=("%", "{,}", "ж"),
            ),
            fact("long " + "word" * 1000, key="k" * 64, session="ж" * 500, source="ж" * 500),
            fact("".join(chr(0x4E00 + n % 20000) + " " for n in range(100_000))),
        ]
        user = store.user("ж" * 128)
        with user.write() as tx:
            records = [write(tx, record, run="\u2028", reason="why\n") for record in records]
        with user.read() as reader:
            for record in records:
                assert reader.get(record.id) == record
                assert reader.entry(record.seq).after == record  # type: ignore[union-attr]
            assert reader.find(Query(tags=("{,}", "%"))) == [records[4]]
            assert reader.find(Query())[0] == records[0]
            assert reader.find(Query(newest_first=True))[0] == records[1]
            assert reader.get(records[0].id).created_at.tzinfo is timezone.utc  # type: ignore[union-attr]

    def test_users_are_in_order_of_code_points(self, store: PostgresStore) -> None:
        ids = ["a", "B", "_", "é", "Z", "ж", "👍", "\uff21", "a b"]
        for user_id in ids:
            with store.user(user_id).write():
                pass
        assert list(store.users()) == sorted(ids)

    def test_D2_text_search(self, store: PostgresStore, sql: Callable[..., list[Any]]) -> None:
        with store.user("u").write() as tx:
            once = write(tx, fact("likes running in the morning before work and long before breakfast"))
            often = write(tx, fact("runs, ran, running: a runner"))
            write(tx, fact("runs no more", status="archived"))
            write(tx, fact("swims"))
        with store.user("v").write() as tx:
            write(tx, fact("v runs too"))
        user = store.user("u")

        def found(query: str, limit: int = 9) -> list[str]:
            return [record_id for record_id, _ in user.text_search(query, ["fact"], limit)]

        assert found("run") == [often.id, once.id]
        assert found("the RUNNING", 1) == [often.id]
        assert found("running breakfasts") == [once.id]
        assert found("run & ! | <-> ' :*") == [often.id, once.id]
        assert found("") == [] and user.text_search("run", ["note"], 9) == []
        with user.write() as tx:
            tx.put_many(fact(f"swims {n} lengths") for n in range(2000))
        sql("ANALYZE memory_records")
        sql("SET enable_seqscan = off")
        query = load_queries(Path(store_package.__file__).parent / "postgres.sql")["text_search"]
        plan = "\n".join(row[0] for row in sql("EXPLAIN " + query, "run", "u", ["fact"], 9))
        assert "memory_by_text" in plan

    def test_check_reports_what_is_wrong(self, store: PostgresStore, sql: Callable[..., list[Any]]) -> None:
        user = store.user("u")
        with user.write() as tx:
            record = write(tx, fact("secret content"))
            write(tx, fact())
        assert user.check() == []
        sql("UPDATE memory_users SET memory_seq = 1")
        assert len(user.check()) == 2
        assert all("beyond the last sequence number" in line for line in user.check())
        sql("UPDATE memory_users SET memory_seq = 2")
        sql("UPDATE memory_records SET latest = false WHERE id = %s", record.id)
        assert user.check() == [f"record {record.id}: no version is marked as the latest"]
        assert store.user("v").check() == []


class TestConcurrency:
    def test_a_busy_user_is_reported_and_others_are_not_kept(self, postgres_url: str, store: PostgresStore) -> None:
        impatient = PostgresStore(postgres_url.replace("search_path", "lock_timeout%3D200ms%20-csearch_path"))
        with store.user("u").write() as tx:
            write(tx, fact())
            with pytest.raises(StoreBusyError), impatient.user("u").write():
                pass
            with impatient.user("v").write() as other:
                write(other, fact())
            with impatient.user("u").read() as reader:
                assert reader.find(Query()) == []
        with impatient.user("u").write() as tx:
            assert write(tx, fact()).seq == 2
        impatient.close()

    def test_a_writer_sees_what_was_committed_while_it_waited(self, postgres_url: str) -> None:
        store = PostgresStore(
            postgres_url.replace("search_path", "default_transaction_isolation%3Dserializable%20-csearch_path")
        )
        other = PostgresStore(postgres_url)
        with store.user("u").write() as tx:
            write(tx, fact())
        waiting = threading.Event()
        seen: list[int] = []

        def second() -> None:
            waiting.set()
            with store.user("u").write() as tx:
                seen.append(write(tx, fact()).seq)

        thread = threading.Thread(target=second)
        with other.user("u").write() as tx:
            write(tx, fact())
            thread.start()
            assert waiting.wait(120)
            time.sleep(0.1)  # it waits inside the server by now
        thread.join()
        assert seen == [3]
        store.close()
        other.close()

    def test_a_connection_is_kept_after_a_failed_transaction(self, store: PostgresStore) -> None:
        with store.user("u").write() as tx:
            write(tx, fact())
        [before] = store.here()._idle
        for use in (store.user("u").write, store.user("u").read):
            with pytest.raises(IndexError), use() as view:
                print([view.get("x")][1])
        assert store.here()._idle == [before]

    def test_a_second_transaction_in_the_same_thread_is_refused_at_once(self, store: PostgresStore) -> None:
        user = store.user("u")
        with user.write() as tx:
            with pytest.raises(StoreError, match="already"), store.user("u").write():
                pass
            write(tx, fact())
        with user.read() as reader:
            assert len(reader.find(Query())) == 1

    def test_a_failing_hook_lets_the_next_writer_in(self, postgres_url: str, store: PostgresStore) -> None:
        def fail() -> None:
            raise OSError("disk")

        def attempt() -> None:
            with store.user("u").write() as tx:
                write(tx, fact())
                tx.after_commit(fail)

        with pytest.raises(OSError, match="disk"):
            attempt()
        other = PostgresStore(postgres_url)
        with other.user("u").write() as tx:
            assert write(tx, fact()).seq == 2
        other.close()

    @pytest.mark.everyday(1)
    @pytest.mark.parametrize("users", [1, 64])
    def test_many_threads_with_hooks_that_read_on_a_small_pool(self, postgres_url: str, users: int) -> None:
        store = PostgresStore(postgres_url, pool_size=4)

        def work(n: int) -> None:
            user = store.user(f"u{n % users}")
            for _ in range(2):
                with user.write() as tx:
                    record = write(tx, fact())

                    def hook(record: Any = record) -> None:
                        with user.read() as reader:
                            assert reader.get(record.id) == record

                    tx.after_commit(hook)

        together(work, 64)
        for user_id in store.users():
            with store.user(user_id).read() as reader:
                assert [e.seq for e in reader.entries()] == list(range(1, 128 // users + 1))
        assert len(store.here()._idle) <= 4
        store.close()

    def test_the_lock_of_a_killed_process_is_released(self, postgres_url: str, store: PostgresStore) -> None:
        with store.user("u").write():
            pass
        script = (
            "import sys, time; from recollect.store.postgres import PostgresStore\n"
            "from recollect.store.contract import FileState\n"
            "with PostgresStore(sys.argv[1]).user('u').write() as tx:\n"
            "    tx.set_file(FileState(name='x', fingerprint='', seq=0)); tx.files()\n"
            "    print('in', flush=True); time.sleep(60)"
        )
        process = subprocess.Popen([sys.executable, "-c", script, postgres_url], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"in\n"
        threading.Timer(0.2, process.kill).start()
        with store.user("u").write() as tx:
            assert tx.files() == []
        process.stdout.close()
        assert process.wait() == -9

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_a_forked_child_makes_connections_of_its_own(self, store: PostgresStore) -> None:
        user = store.user("u")
        with user.write() as tx:
            write(tx, fact())
            child = os.fork()  # while the parent holds the lock and is in a transaction
            if child == 0:
                try:
                    with store.user("u").read() as reader:
                        empty = reader.find(Query()) == []
                    with store.user("v").write() as tx:
                        write(tx, fact("of the child"))
                    store.close()
                    os._exit(0 if empty else 1)
                except BaseException:
                    traceback.print_exc()
                    os._exit(2)
            assert os.waitpid(child, 0)[1] == 0
        with user.read() as reader:
            assert len(reader.find(Query())) == 1
        with store.user("v").read() as reader:
            assert [r.content for r in reader.find(Query())] == ["of the child"]


class TestErrors:
    @pytest.mark.everyday(4)
    @pytest.mark.parametrize(
        ("code", "error"),
        [
            ("53100", StoreFullError),
            ("55P03", StoreBusyError),
            ("40P01", StoreBusyError),
            ("25006", StoreReadOnlyError),
            ("42501", StoreReadOnlyError),
            ("XX001", StoreCorruptError),
            ("XX002", StoreCorruptError),
            ("57P01", StoreUnavailableError),
            ("53300", StoreUnavailableError),
            ("23505", StoreError),
            ("XX000", StoreError),
        ],
    )
    def test_what_the_server_reports_becomes_ours(
        self, store: PostgresStore, code: str, error: type[StoreError]
    ) -> None:
        raising = f"DO $$ BEGIN RAISE 'oops' USING ERRCODE = '{code}', DETAIL = 'Key=(likes tea)'; END $$"

        def attempt() -> None:
            with store.user("u").write() as tx:
                write(tx, fact())
                tx.db.execute(raising.encode())

        with pytest.raises(StoreError) as caught:
            attempt()
        assert type(caught.value) is error
        assert "likes tea" not in shown(caught.value)
        with store.user("u").write() as tx:
            assert write(tx, fact()).seq == 1

    def test_a_refused_write_leaves_nothing_and_says_nothing_of_its_content(self, store: PostgresStore) -> None:
        user = store.user("u")
        with user.write() as tx:
            write(tx, fact())
        again = JournalEntry(seq=1, at=T0, actor="a", op="forget", record_id="r", reason="a private matter")

        def attempt() -> None:
            with user.write() as tx:
                tx.put(fact("a private matter"))
                tx.log([again])
                tx.set_file(FileState(name="x", fingerprint="", seq=1))

        with pytest.raises(StoreError, match="UniqueViolation") as caught:
            attempt()
        assert "private" not in shown(caught.value)
        with pytest.raises(StoreError, match="DataError") as caught, user.write() as tx:
            tx.put(fact("a private \x00 matter"))
        assert "private" not in shown(caught.value)
        with user.read() as reader:
            assert len(reader.find(Query())) == 1
            assert reader.files() == []

    def test_a_read_only_database_can_be_read(self, postgres_url: str, store: PostgresStore) -> None:
        with store.user("u").write() as tx:
            record = write(tx, fact())
        replica = PostgresStore(
            postgres_url.replace("search_path", "default_transaction_read_only%3Don%20-csearch_path")
        )
        with replica.user("u").read() as reader:
            assert reader.get(record.id) == record
        with pytest.raises(StoreReadOnlyError), replica.user("new").write() as tx:
            write(tx, fact())
        replica.close()

    @pytest.mark.parametrize(
        "change",
        [
            lambda url: re.sub(r":\d+/", ":1/", url),
            lambda url: re.sub(r":[^:@]+@", ":hunter2@", url),
            lambda url: url.replace("/postgres?", "/nowhere?"),
            lambda url: url.replace("127.0.0.1", "host.invalid"),
        ],
    )
    def test_an_unreachable_database_is_reported_without_the_password(
        self, postgres_url: str, change: Callable[[str], str]
    ) -> None:
        url = change(postgres_url)
        password = re.findall(r":([^:@/]+)@", url)[0]
        store = PostgresStore(url)
        for use in (
            lambda: list(store.users()),
            lambda: store.user("u").exists(),
            lambda: store.user("u").check(),
        ):
            with pytest.raises(StoreUnavailableError) as caught:
                use()
            assert password not in shown(caught.value)

    @pytest.mark.parametrize(
        "url",
        ["nonsense", "mysql://u:hunter2@h/d", "postgresql://u:hunter2@ss@h/d", "postgresql+psycopg://u:hunter2@h/d",
         "postgresql://u:hunter2@h:port/d", "postgresql://u:h/hunter2@h/d"],
    )  # fmt: skip
    def test_a_wrong_url_is_refused_without_quoting_it(self, url: str) -> None:
        with pytest.raises(ConfigError) as caught:
            PostgresStore(url)
        assert "hunter2" not in shown(caught.value)

    def test_a_missing_driver_names_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(MissingExtraError, match=r"recollect\[postgres\]"):
            PostgresStore("postgresql://localhost/x")


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresServer]:
    """A server that may be stopped."""
    with PostgresServer() as server:
        yield server


class TestRestart:
    """W5: a server that goes away and comes back."""

    @pytest.mark.slow
    @pytest.mark.parametrize("immediate", first(1, [True, False]))
    def test_nothing_acknowledged_is_lost(self, mortal: PostgresServer, immediate: bool) -> None:
        store = PostgresStore(mortal.empty_url(), pool_size=4)
        acknowledged: dict[str, list[int]] = {f"u{n}": [] for n in range(6)}
        failures: list[str] = []
        done = threading.Event()

        def work(n: int) -> None:
            user, number = store.user(f"u{n}"), 0
            while not done.is_set():
                number += 1
                try:
                    with user.write() as tx:
                        write(tx, fact(f"{number} a"))
                        write(tx, fact(f"{number} b"))
                    acknowledged[user.user_id].append(number)
                except StoreUnavailableError:
                    failures.append(user.user_id)
                    done.wait(0.02)

        def until_all_wrote(more: int) -> None:
            wanted = {user_id: len(numbers) + more for user_id, numbers in acknowledged.items()}
            deadline = time.monotonic() + 120
            while any(len(acknowledged[user_id]) < count for user_id, count in wanted.items()):
                assert time.monotonic() < deadline, "writers did not come back"
                time.sleep(0.005)

        def operate(n: int) -> None:
            if n < 6:
                return work(n)
            try:
                until_all_wrote(5)
                for _ in range(2):
                    mortal.stop(immediate=immediate)
                    time.sleep(0.05)
                    mortal.start()
                    until_all_wrote(5)
            finally:
                done.set()

        together(operate, 7)
        assert failures, "nobody noticed that the server was gone"
        for user_id, numbers in acknowledged.items():
            with store.user(user_id).read() as reader:
                contents = [record.content for record in reader.find(Query())]
                pairs = [content.split()[0] for content in contents if content.endswith("a")]
                assert sorted(contents) == sorted(f"{number} {half}" for number in pairs for half in "ab")
                assert {str(number) for number in numbers} <= set(pairs)
                assert [e.seq for e in reader.entries()] == list(range(1, reader.state().seq + 1))
            assert store.user(user_id).check() == []
        store.close()

    def test_a_server_that_dies_during_the_hooks_does_not_undo_the_write(self, mortal: PostgresServer) -> None:
        store = PostgresStore(mortal.empty_url())
        with store.user("u").write() as tx:
            record = write(tx, fact())
            tx.after_commit(lambda: mortal.stop(immediate=True))
        mortal.start()
        with store.user("u").write() as tx:
            assert tx.get(record.id) == record
        store.close()

    def test_an_idle_store_works_again_by_itself(self, mortal: PostgresServer) -> None:
        store = PostgresStore(mortal.empty_url())
        with store.user("u").write() as tx:
            record = write(tx, fact())

        def attempt() -> None:
            with store.user("u").read() as reader:
                mortal.stop(immediate=True)
                reader.get(record.id)

        with pytest.raises(StoreUnavailableError):
            attempt()
        mortal.start()
        with store.user("u").read() as reader:
            assert reader.get(record.id) == record
        mortal.stop()
        with pytest.raises(StoreUnavailableError, match=r"^The database cannot be reached: "), store.user("u").write():
            pass
        with pytest.raises(StoreUnavailableError, match=r"^The database cannot be reached: "), store.user("u").read():
            pass
        mortal.start()
        with store.user("u").write() as tx:
            assert write(tx, fact()).seq == 2
        store.close()


class TestPostgresServer:
    def test_settings_port_and_cleanup(self) -> None:
        server = PostgresServer(settings={"fsync": "off", "max_connections": "20"})
        try:
            url = server.start().url
            assert server.start().url == url
            assert server.running
            with psycopg.connect(url) as db:
                assert db.execute("SHOW max_connections").fetchone() == ("20",)
                db.execute("CREATE TABLE kept ()")
            server.stop()
            assert not server.running
            server.start()
            assert server.url == url
            with psycopg.connect(url) as db:
                assert db.execute("SELECT to_regclass('kept') IS NOT NULL").fetchone() == (True,)
        finally:
            server.cleanup()
        assert not server.folder.exists()
        assert not server.running
        server.cleanup()

    @pytest.mark.slow
    def test_a_wrong_setting_shows_what_the_server_said(self) -> None:
        server = PostgresServer(settings={"no_such_setting": "1"})
        try:
            with pytest.raises(StoreUnavailableError, match="no_such_setting"):
                server.start()
        finally:
            server.cleanup()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user")
    def test_as_root_it_runs_as_another_user(self, postgres: PostgresServer, tmp_path: Path) -> None:
        assert (postgres.folder / "data").stat().st_uid != 0
        tmp_path.chmod(0o700)
        with pytest.raises(ConfigError, match="cannot be reached"):
            PostgresServer(tmp_path / "data")

    @pytest.mark.slow
    @pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user")
    def test_programs_in_a_private_folder_are_copied(
        self, postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        original = postgres._bin.parent
        package = original.parent
        programs = tmp_path / package.name / original.name
        for source in (original, package.with_name(package.name + ".libs")):
            if source.exists():
                shutil.copytree(source, tmp_path / source.relative_to(package.parent))
        tmp_path.chmod(0o700)
        monkeypatch.setattr("recollect.testing.postgres._find_programs", lambda: programs)
        with PostgresServer() as server, psycopg.connect(server.url) as db:
            assert db.execute("SELECT 1").fetchone() == (1,)

    @pytest.mark.slow
    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
    def test_without_root(self) -> None:
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                with PostgresServer() as server, psycopg.connect(server.empty_url()) as db:
                    fine = db.execute("SELECT 1").fetchone() == (1,)
                os._exit(0 if fine and not server.folder.exists() else 1)
            except BaseException:
                traceback.print_exc()
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0

    def test_a_missing_package_names_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("recollect.testing.postgres._PROGRAMS", (("no_such_package", "x"),))
        with pytest.raises(MissingExtraError, match=r"recollect\[testing\]"):
            PostgresServer()
