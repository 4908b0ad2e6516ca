"""Three API processes, two workers and a host on one PostgreSQL, killed again and again under load.

A failure names its seed: ``RECOLLECT_SEED=…`` repeats the same choices. ``benchmarks/scale_out.py`` does the same for
minutes.
"""

from __future__ import annotations

import multiprocessing.forkserver
import os
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

import recollect
from recollect import InvalidInputError, Recollect
from recollect.client import connect
from recollect.errors import StoreBusyError
from recollect.store import postgres_connections
from recollect.store.postgres import _SQL, PostgresStore
from recollect.store.tenants import stored_id
from recollect.testing.postgres import PostgresServer
from tests.fakes.cluster import Cluster
from tests.fakes.traffic import Killer, Traffic
from tests.serving import serving
from tests.volume import volume

_SEED = int(os.environ.get("RECOLLECT_SEED") or random.SystemRandom().getrandbits(32))
_KILLS = volume(4, 10)


@pytest.fixture(scope="module", autouse=True)
def nursery() -> Iterator[None]:
    """A process of our own that members are forked from: one that another test began has not loaded what they need."""
    forkserver: Any = multiprocessing.forkserver
    forkserver._forkserver._stop()
    yield
    forkserver._forkserver._stop()


@pytest.mark.slow
def test_W5_processes_that_are_killed_lose_nothing_repeat_nothing_and_show_nothing_old() -> None:
    print(f"RECOLLECT_SEED={_SEED}")
    chance = random.Random(_SEED)
    with PostgresServer() as server, Cluster(url := server.empty_url(), hosts=1) as cluster:
        traffic = Traffic(cluster, lambda: recollect.open(url), people=4, users=2, seed=_SEED)
        killer = Killer(cluster, _SEED)
        with traffic.running():
            for number in range(_KILLS):
                traffic.over.wait(chance.uniform(0, 0.8))
                if number == _KILLS // 3:
                    killer.freeze(2.0)
                elif number == 2 * _KILLS // 3:
                    server.stop(immediate=True)
                    server.start()
                else:
                    killer.kill()
            while sum(len(person.promises) for person in traffic.people) < 20 and not traffic.wrong:
                traffic.over.wait(0.05)
        traffic.settle()
        assert traffic.check() == []
        print(traffic.told(), killer.kills)
        assert sum(killer.kills.values()) >= _KILLS - 2


class TestConnections:
    """W5: how many connections a process has, and what happens when there are no more."""

    def test_a_busy_process_has_no_more_than_it_is_allowed(self, postgres_url: str) -> None:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bounded'"
        most, ended, users = [0], threading.Event(), volume(40, 80)

        def look() -> None:
            with psycopg.connect(postgres_url, autocommit=True) as db:
                while not ended.is_set():
                    [now] = db.execute(sql).fetchone() or (0,)
                    most[0] = max(most[0], now)

        with recollect.open(f"{postgres_url}&application_name=bounded", database_pool=4) as app:
            app.user("first").note("so that there are tables")

            def work(number: int) -> None:
                memory = app.user(f"u{number}")
                memory.note(f"What number {number} said")
                [hit] = memory.search("said")
                memory.erase(hit.record.id)  # which reads while it writes
                with app.queue() as queue:
                    queue.depth()

            watching = threading.Thread(target=look)
            watching.start()
            with ThreadPoolExecutor(40) as pool:
                list(pool.map(work, range(users)))
            ended.set()
            watching.join()
            counted = [len(memory.history()) for memory in map(app.user, app.users(begins="u"))]
        assert counted == [2] * users
        queues = 4
        assert 4 <= most[0] <= 4 + 2 + 1 + queues

    def test_who_waits_too_long_for_a_connection_is_told_so(
        self, postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(postgres_connections, "_BUSY_SECONDS", 0.01)
        store = PostgresStore(postgres_url, pool_size=1)
        with ThreadPoolExecutor(1) as other, store.user("a").read():
            with pytest.raises(StoreBusyError, match="MEMORY_DATABASE_POOL"):
                other.submit(store.user("b").exists).result()
            assert not store.user("b").exists()  # but whoever has one never waits for others
        assert not store.user("b").exists()
        store.close()

    @pytest.mark.slow
    def test_a_server_with_few_connections_is_shared(self, monkeypatch: pytest.MonkeyPatch) -> None:
        few = {"max_connections": "8", "superuser_reserved_connections": "0", "max_wal_senders": "0"}
        with PostgresServer(settings=few) as server:
            url = server.empty_url()
            stores = [PostgresStore(url, pool_size=16) for _ in range(2)]  # as of two processes

            def work(number: int) -> None:
                with stores[number % 2].user(f"u{number}").write() as tx:
                    tx.set_mode("paused")

            with ThreadPoolExecutor(32) as pool:
                list(pool.map(work, range(100)))
            assert len(list(stores[0].users())) == 100
            for store in stores:
                store.close()
            monkeypatch.setattr(postgres_connections, "_FULL_SECONDS", 0.0)
            with ExitStack() as taken:
                for _ in range(8):
                    taken.enter_context(psycopg.connect(url))
                with pytest.raises(StoreBusyError, match="max_connections"):
                    stores[0].user("u1").exists()
            assert stores[0].user("u1").exists()
            stores[0].close()

    def test_a_client_that_vanished_is_noticed_by_the_server(self, postgres_url: str) -> None:
        names = ("tcp_keepalives_idle", "tcp_keepalives_count", "idle_in_transaction_session_timeout", "lock_timeout")
        for url, wanted in (
            (postgres_url, ("30", "3", "10min", "30s")),
            (f"{postgres_url}%20-clock_timeout%3D5s%20-ctcp_keepalives_idle%3D90", ("90", "3", "10min", "5s")),
        ):
            store = PostgresStore(url)
            with store.here().lend() as db:
                assert tuple((db.execute(f"SHOW {name}".encode()).fetchone() or ("",))[0] for name in names) == wanted
            store.close()


class TestUsers:
    """R4: who is listed to whom, and in parts."""

    @pytest.fixture(params=["sqlite", "postgres"])
    def app(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Recollect]:
        where = tmp_path if request.param == "sqlite" else request.getfixturevalue("postgres_tables")
        with recollect.open(where) as app:
            yield app

    @pytest.mark.everyday(1)
    def test_R4_an_operator_reads_the_users_of_the_tenant_page_by_page(self, app: Recollect) -> None:
        keys = {tenant: app.keys.create(tenant, scope="admin")[1] for tenant in ("default", "acme", "acme-2")}
        local = ["2", "3", "@acme", "a/b", "\U0001f375"]
        for tenant in keys:
            for user in local:
                app.user(stored_id(tenant, user)).note("Drinks tea")
        with serving(app) as url:
            for tenant, key in keys.items():
                with connect(url, key=key) as client:
                    assert list(client.users()) == local
                with httpx.Client(base_url=f"{url}/v1", headers={"authorization": f"Bearer {key}"}) as http:
                    found, cursor = list[str](), ""
                    while cursor is not None:
                        page = http.get("/users", params={"page": 2, "cursor": cursor}).json()
                        assert 1 <= len(page["result"]) <= 2
                        found, cursor = found + page["result"], page["next"]
                    assert found == local, tenant
                    app.user(stored_id(tenant, "3")).note("is erased while somebody reads")
                    app.erase_user(stored_id(tenant, "3"))
                    assert http.get("/users", params={"page": 2, "cursor": "3"}).json()["result"] == ["@acme", "a/b"]
                    assert http.get("/users", params={"cursor": "\0"}).status_code == 422

    @pytest.mark.parametrize(
        "wrong",
        [{"tenant": "A"}, {"tenant": "a/b"}, {"begins": "\0"}, {"after": "\ud800"}, {"begins": 1}, {"limit": 0}],
    )
    def test_R4_who_asks_for_odd_users_is_told_what_is_wrong(self, app: Recollect, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            app.users(**wrong)

    def test_R4_a_page_of_users_is_found_by_an_index(self, postgres_url: str) -> None:
        with recollect.open(postgres_url) as app, psycopg.connect(postgres_url, autocommit=True) as db:
            app.user("first").note("so that there are tables")
            db.execute(
                "WITH made AS (INSERT INTO users SELECT FROM generate_series(1, 5000) RETURNING id),"
                " numbered AS (SELECT id AS account, row_number() OVER () AS n FROM made)"
                " INSERT INTO memory_users SELECT '@t' || n % 50 || '/' || n, account, true, now(), 0, 'on', 'x' FROM numbered"
            )
            assert list(app.users(tenant="t7", after="@t7/107", limit=3)) == ["@t7/1107", "@t7/1157", "@t7/1207"]
            assert list(app.users(tenant="t7", begins="49", limit=3)) == ["@t7/4907", "@t7/4957"]
            assert len(list(app.users())) == 5001  # in several parts
            db.execute("ANALYZE memory_users")
            sql: Any = "\n".join(["EXPLAIN", *(_SQL[part] for part in ("users", "users_before", "users_in_order"))])
            values = {"first": "@t7/49", "beyond": "@t7/4:", "after": "@t7/1", "limit": 50}
            plan = "\n".join(row[0] for row in db.execute(sql, values).fetchall())
        assert "Index" in plan and "Sort" not in plan and "Seq Scan" not in plan, plan
