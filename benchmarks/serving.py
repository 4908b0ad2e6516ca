"""How many searches a second a server answers over HTTP, how long they take, and with a thousand connections open.

The server is a process of its own, the one that asks another; both share the cores of the machine. Everything is
measured in one run, beside the same searches without HTTP, so that a busy machine slows all of it.

    python benchmarks/serving.py [--seconds 5] [--users 20] [--records 500]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import recollect

WORDS = "tea coffee rust python garden music travel kitchen bicycle mountain river history physics novel film".split()


def fill(folder: str, users: int, records: int) -> None:
    """Memories to search in."""
    chosen = random.Random(7)
    with recollect.open(folder) as app:
        for user in range(users):
            with app.user(f"user-{user}").batch() as memory:
                for number in range(records):
                    memory.note(f"Note {number}: {' '.join(chosen.sample(WORDS, 4))} in {1900 + number}")


def embedded(folder: str, users: int, seconds: float) -> float:
    """Searches a second in one thread, without HTTP."""
    with recollect.open(folder) as app:
        memories = [app.user(f"user-{user}") for user in range(users)]
        for memory in memories:
            memory.search("tea")
        done, until = 0, time.perf_counter() + seconds
        while time.perf_counter() < until:
            memories[done % users].search(" ".join(random.sample(WORDS, 2)))
            done += 1
        return done / seconds


class Caller:
    """One connection that asks again and again."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, method: str, path: str, body: bytes = b"") -> int:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        told = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", told)
        await self._reader.readexactly(int(length[1]) if length else 0)
        return int(told[9:12])

    def close(self) -> None:
        self._writer.close()


def search(users: int) -> tuple[str, str, bytes]:
    asked = {"query": " ".join(random.sample(WORDS, 2))}
    return "POST", f"/v1/users/user-{random.randrange(users)}/search", json.dumps(asked).encode()


async def load(
    port: int, seconds: float, callers: int, what: Callable[[], tuple[str, str, bytes]], idle: int = 0
) -> tuple[float, list[float]]:
    """Requests a second, and how long each took; so many other connections are open meanwhile and ask now and then."""
    everyone = [Caller(port) for _ in range(callers + idle)]
    for one in everyone:
        await one.open()
    took: list[float] = []
    until = time.perf_counter() + seconds

    async def go(one: Caller) -> None:
        while (began := time.perf_counter()) < until:
            assert await one.ask(*what()) == 200
            took.append(time.perf_counter() - began)

    async def idle_one(one: Caller) -> None:
        await asyncio.sleep(random.random() * seconds)
        assert await one.ask("GET", "/health/live") == 200

    busy, rest = everyone[:callers], everyone[callers:]
    await asyncio.gather(*(go(one) for one in busy), *(idle_one(one) for one in rest))
    for one in everyone:
        one.close()
    return len(took) / seconds, sorted(took)


def told(name: str, rate: float, took: list[float]) -> None:
    p50, p99 = (took[int(len(took) * share)] * 1000 for share in (0.5, 0.99))
    print(f"{name:44} {rate:8.0f}/s   p50 {p50:6.1f} ms   p99 {p99:6.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--records", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, given.users, given.records)
        alone = embedded(folder, given.users, given.seconds)
        print(f"{'embedded, one thread, no HTTP':44} {alone:8.0f}/s")
        command = [sys.executable, "-c", "from recollect.surfaces.cli import main; main()"]
        server = subprocess.Popen(
            [*command, "serve", "--root", folder, "--port", "0", "--workers", "0"],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"MEMORY_HTTP_KEY_RATE": "0", "MEMORY_HTTP_USER_RATE": "0"},
        )
        assert server.stderr is not None
        address = re.search(r":(\d+)/v1", server.stderr.readline())
        assert address is not None
        port = int(address[1])
        try:
            asyncio.run(load(port, 1, 4, lambda: search(given.users)))  # load the indexes
            rate, took = asyncio.run(load(port, given.seconds, 8, lambda: ("GET", "/health/live", b"")))
            told("GET /health/live, 8 connections", rate, took)
            rate, took = asyncio.run(load(port, given.seconds, 8, lambda: search(given.users)))
            told("searches, 8 connections", rate, took)
            print(f"{'':44} {rate / alone:8.2f} of embedded")
            rate, took = asyncio.run(load(port, given.seconds, 8, lambda: search(given.users), idle=1000))
            told("searches, 8 of 1,008 connections", rate, took)
            rate, took = asyncio.run(load(port, given.seconds, 64, lambda: search(given.users)))
            told("searches, 64 connections", rate, took)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
