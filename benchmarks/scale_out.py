"""Several API processes and workers on one PostgreSQL: what they stand, and what they do.

    python -m benchmarks.scale_out ordeal [--minutes 5] [--seed 1]
    python -m benchmarks.scale_out speed [--seconds 5]
    python -m benchmarks.scale_out connections [--seconds 5]
    python -m benchmarks.scale_out users [--number 100000]

``ordeal`` kills one process after another under load, freezes some, stops PostgreSQL once as in a crash, and then looks
for what was lost, done twice or shown late. ``speed`` tells how much 1, 2 and 3 API processes do, and what it costs to
read on one what was written on another. ``connections`` tells how many connections to the database are worth having,
``users`` how long it takes to list some of many. Everything shares the cores of this machine, PostgreSQL and those who
ask too, so only the ratios say something.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import islice
from statistics import median

import psycopg
from tests.fakes.cluster import Api, Cluster
from tests.fakes.traffic import Killer, Traffic

import recollect
from benchmarks.timing import rate_line
from recollect.testing.postgres import PostgresServer

WORDS = "tea coffee rust python garden music travel kitchen bicycle mountain river history physics novel film".split()
USERS, NOTES = 50, 40
Question = tuple[str, dict[str, object]]


def ordeal(minutes: float, seed: int) -> None:
    """Kill for minutes, and look what is left."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    settings = {"MEMORY_TOOL_TIMEOUT_MS": "1"}  # so that tools are queued
    with PostgresServer() as server, Cluster(url := server.empty_url(), hosts=1, settings=settings) as cluster:
        traffic = Traffic(
            cluster, lambda: recollect.open(url, tool_queue_size=100_000), people=6, users=4, seed=seed, tools=True
        )
        killer = Killer(cluster, seed)
        began = time.monotonic()
        until, crash = began + minutes * 60, began + minutes * 30
        with traffic.running():
            while time.monotonic() < until and not traffic.wrong:
                time.sleep(chance.uniform(0.2, 3))
                if time.monotonic() > crash:
                    crash = until
                    server.stop(immediate=True)
                    time.sleep(2)
                    server.start()
                elif chance.random() < 0.15:
                    killer.freeze(chance.uniform(1, 8))
                else:
                    killer.kill()
        print(f"{time.monotonic() - began:.0f} s under load")
        traffic.settle()
        wrong = traffic.check()
        print("done      ", traffic.told())
        print("killed    ", sum(killer.kills.values()), dict(killer.kills), "frozen", killer.freezes)
        print("wrong     ", len(wrong))
        for sentence in wrong[:50]:
            print("   ", sentence)


class Caller:
    """One connection that asks again and again."""

    def __init__(self, address: str) -> None:
        self._port = int(address.rpartition(":")[2])

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, path: str, told: dict[str, object]) -> str:
        body = json.dumps(told).encode()
        head = f"POST /v1/users/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer)
        found = await self._reader.readexactly(int(length[1]) if length else 0)
        assert answer[9:12] == b"200", found
        return found.decode()

    def close(self) -> None:
        self._writer.close()


def some_words() -> str:
    return " ".join(random.sample(WORDS, 4))


def write() -> Question:
    return f"user-{random.randrange(USERS)}/note", {"content": f"{some_words()} {random.getrandbits(64)}"}


def search() -> Question:
    return f"user-{random.randrange(USERS)}/search", {"query": " ".join(random.sample(WORDS, 2))}


async def load(addresses: Iterable[str], seconds: float, callers: int, what: Callable[[], Question]) -> list[float]:
    """How long each request took, by so many who ask the processes in turn."""
    places = list(addresses)
    everyone = [Caller(places[number % len(places)]) for number in range(callers)]
    for one in everyone:
        await one.open()
    took: list[float] = []
    until = time.perf_counter() + seconds

    async def go(one: Caller) -> None:
        while (began := time.perf_counter()) < until:
            await one.ask(*what())
            took.append(time.perf_counter() - began)

    await asyncio.gather(*(go(one) for one in everyone))
    for one in everyone:
        one.close()
    return sorted(took)


async def elsewhere(here: str, there: str, rounds: int) -> tuple[float, float]:
    """A search right after a write on another process, and one with nothing new, in milliseconds."""
    writer, reader = Caller(here), Caller(there)
    await writer.open()
    await reader.open()
    fresh: list[float] = []
    stale: list[float] = []
    for number in range(rounds):
        user, word = f"user-{number % USERS}", f"word{random.getrandbits(64)}"
        await writer.ask(f"{user}/note", {"content": f"{some_words()} {word}"})
        for took in (fresh, stale):
            began = time.perf_counter()
            assert word in await reader.ask(f"{user}/search", {"query": word})
            took.append(time.perf_counter() - began)
    writer.close()
    reader.close()
    return median(fresh) * 1000, median(stale) * 1000


def filled(server: PostgresServer) -> str:
    """A database with memories to search in."""
    url = server.empty_url()
    with recollect.open(url) as app:
        for user in range(USERS):
            with app.user(f"user-{user}").batch() as memory:
                for number in range(NOTES):
                    memory.note(f"Note {number}: {some_words()} in {1900 + number}")
    return url


def compare(groups: dict[str, list[Api]], callers: int, seconds: float, rounds: int = 4) -> None:
    """Writes and searches through each of these groups in turn, several times, so that a busy machine slows all."""
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    spent: dict[tuple[str, str], float] = defaultdict(float)
    for number in range(rounds + 1):
        for name, apis in groups.items():
            for verb, what in (("writes", write), ("searches", search)):
                before = sum(api.cpu_seconds() for api in apis)
                found = asyncio.run(load([api.address for api in apis], seconds / rounds, callers, what))
                if number:  # the first time, indexes are loaded
                    took[name, verb] += found
                    spent[name, verb] += sum(api.cpu_seconds() for api in apis) - before
    for (name, verb), each in took.items():
        cpu = spent[name, verb] / len(each) * 1000
        print(rate_line(f"{name}, {verb}", len(each) / seconds, each, f"   {cpu:.2f} ms of CPU each"))


def speed(seconds: float) -> None:
    """1, 2 and 3 API processes."""
    with PostgresServer() as server, Cluster(filled(server), apis=3, workers=0) as cluster:
        compare({f"{number} processes": cluster.apis[:number] for number in (1, 2, 3)}, 16, seconds)
        fresh, stale = asyncio.run(elsewhere(cluster.apis[0].address, cluster.apis[1].address, USERS * 4))
        print(f"{'search after a write elsewhere':32} {fresh:.2f} ms, without one {stale:.2f} ms")


def connections(seconds: float) -> None:
    """One API process, asked by 200 at once, over so many connections."""
    with PostgresServer(settings={"max_connections": "200"}) as server, ExitStack() as started:
        url = filled(server)
        groups = {}
        for size in (1, 2, 4, 6, 10, 16, 32):
            settings = {"MEMORY_DATABASE_POOL": str(size)}
            named = f"{url}&application_name=pool-{size}"
            groups[f"pool of {size}"] = started.enter_context(Cluster(named, apis=1, workers=0, settings=settings)).apis
        compare(groups, 200, seconds)
        with psycopg.connect(server.url) as db:
            query = "SELECT application_name, count(*) FROM pg_stat_activity GROUP BY 1"
            print("connections", {name: number for name, number in db.execute(query) if name.startswith("pool-")})


def users(number: int) -> None:
    """Some of many users."""
    with PostgresServer() as server, recollect.open(server.empty_url()) as app:
        app.user("first").note("so that there are tables")
        with psycopg.connect(app.config.database_url) as db:
            db.execute(
                "WITH made AS (INSERT INTO users SELECT FROM generate_series(1, %s) RETURNING id), "
                "numbered AS (SELECT id AS account, row_number() OVER () AS n FROM made) INSERT INTO memory_users "
                "SELECT '@tenant-' || n %% 100 || '/' || n, account, true, now(), 0, 'on', 'x' FROM numbered",
                (number,),
            )
            db.execute("INSERT INTO users SELECT FROM generate_series(1, %s)", (number,))
        asked: dict[str, Callable[[], Iterable[str]]] = {
            "everyone": lambda: app.users(),
            "all of a tenant": lambda: app.users(tenant="tenant-7"),
            "a page of a tenant": lambda: app.users(tenant="tenant-7", after="@tenant-7/50", limit=50),
            "a page by its beginning": lambda: app.users(tenant="tenant-7", begins="99", limit=50),
            "the default tenant": lambda: app.users(tenant="default", limit=50),
            "a page, looking at everyone": lambda: islice(
                (one for one in app.users() if one.startswith("@tenant-7/")), 50
            ),
        }
        for name, ask in asked.items():
            began = time.perf_counter()
            found = len(list(ask()))
            print(f"{name:32} {found:7} users {(time.perf_counter() - began) * 1000:8.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    killing = commands.add_parser("ordeal")
    killing.add_argument("--minutes", type=float, default=5)
    killing.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    for name in ("speed", "connections"):
        commands.add_parser(name).add_argument("--seconds", type=float, default=5)
    commands.add_parser("users").add_argument("--number", type=int, default=100_000)
    given = vars(parser.parse_args())
    doing: dict[str, Callable[..., None]] = {
        "ordeal": ordeal,
        "speed": speed,
        "connections": connections,
        "users": users,
    }
    doing[given.pop("command")](**given)


if __name__ == "__main__":
    main()
