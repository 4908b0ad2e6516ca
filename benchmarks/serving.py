"""How many searches a second a server answers over HTTP, how long they take, and what bad guests do to the others.

The server is a process of its own, the one that asks another; both share the cores of the machine. Everything is
measured in one run, beside the same searches without HTTP and a request that does nothing, so that a busy machine slows
all of it; and in the processor's time that the server takes for a search, which hardly depends on others.

    python -m benchmarks.serving [--seconds 5] [--users 20] [--records 500] [--rate 500] [--root URL]
    python -m benchmarks.serving --soak 10
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
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import recollect
from benchmarks.timing import rate_line
from recollect.surfaces.http_server import raised_file_limit

WORDS = "tea coffee rust python garden music travel kitchen bicycle mountain river history physics novel film".split()
HEAD = "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
Request = tuple[str, str, bytes]


def fill(where: str, users: int, records: int) -> None:
    """Memories to search in."""
    chosen = random.Random(7)
    with recollect.open(where) as app:
        for user in range(users):
            with app.user(f"user-{user}").batch() as memory:
                for number in range(records):
                    memory.note(f"Note {number}: {' '.join(chosen.sample(WORDS, 4))} in {1900 + number}")


def embedded(where: str, users: int, seconds: float) -> float:
    """Searches a second in one thread, without HTTP."""
    with recollect.open(where) as app:
        memories = [app.user(f"user-{user}") for user in range(users)]
        for memory in memories:
            memory.search("tea")
        done, until = 0, time.perf_counter() + seconds
        while time.perf_counter() < until:
            memories[done % users].search(" ".join(random.sample(WORDS, 2)))
            done += 1
        return done / seconds


class Caller(asyncio.Protocol):
    """One connection that asks again and again; as cheap as can be, for it takes from what the server has."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._got = bytearray()
        self._size = -1
        self._answer: asyncio.Future[int] | None = None
        self.transport: asyncio.Transport | None = None

    async def open(self) -> Caller:
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._port)
        return self

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._got += data
        if self._size < 0 and (end := self._got.find(b"\r\n\r\n")) >= 0:
            length = re.search(rb"content-length: (\d+)", self._got[:end])
            self._size = end + 4 + (int(length[1]) if length else 0)
        if 0 <= self._size <= len(self._got):
            status = int(self._got[9:12])
            self._got.clear()
            self._size = -1
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(status)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("closed before it answered"))

    async def ask(self, method: str, path: str, body: bytes = b"") -> int:
        """The status of the answer."""
        if self.transport is None:
            raise ConnectionError("closed")
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(HEAD.format(method, path, len(body)).encode() + body)
        return await self._answer

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()


def search(users: int) -> Request:
    """Something to look for."""
    asked = {"query": " ".join(random.sample(WORDS, 2))}
    return "POST", f"/v1/users/user-{random.randrange(users)}/search", json.dumps(asked).encode()


class Server:
    """The process that is measured."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process = process
        self.port = port

    def processor_seconds(self) -> float:
        """How long it has had the processor; 0 where that cannot be told."""
        try:
            told = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(") ")[2].split()
        except OSError:
            return 0.0
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        """How much memory it takes; 0 where that cannot be told."""
        try:
            told = Path(f"/proc/{self._process.pid}/status").read_text()
        except OSError:
            return 0.0
        found = re.search(r"VmRSS:\s+(\d+)", told)
        return int(found[1]) / 1024 if found else 0.0


@contextmanager
def serving(root: str, *more: str) -> Iterator[Server]:
    """A server without limits, meanwhile."""
    where = ["--database-url", root] if "://" in root else ["--root", root]
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from recollect.surfaces.cli import main; main()",
            "serve",
            *where,
            "--port",
            "0",
            *more,
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"MEMORY_HTTP_KEY_RATE": "0", "MEMORY_HTTP_USER_RATE": "0"},
    )
    assert process.stderr is not None
    address = next((found for line in process.stderr if (found := re.search(r":(\d+)/v1", line))), None)
    assert address is not None, "the server did not start"
    try:
        yield Server(process, int(address[1]))
    finally:
        process.terminate()
        process.wait()


async def load(
    port: int, seconds: float, callers: int, what: Callable[[], Request], *, idle: int = 0, rate: float = 0
) -> tuple[float, list[float]]:
    """Requests a second, and how long each took, sorted.

    With a ``rate`` requests come evenly, answered or not, and waiting for a connection counts.
    So many other connections are open meanwhile and ask now and then.
    """
    everyone = [await Caller(port).open() for _ in range(callers + idle)]
    took: list[float] = []
    began = time.perf_counter()
    until = began + seconds
    sent = 0

    async def go(one: Caller) -> None:
        nonlocal sent
        while (at := time.perf_counter()) < until:
            if rate:
                at, sent = began + sent / rate, sent + 1
                if at >= until:
                    return
                await asyncio.sleep(at - time.perf_counter())
            assert await one.ask(*what()) == 200
            took.append(time.perf_counter() - at)

    async def rest(one: Caller) -> None:
        while (wait := random.expovariate(1 / 4)) < until - time.perf_counter():
            await asyncio.sleep(min(wait, 4))  # a connection that is idle for longer is closed
            assert await one.ask("GET", "/health/live") == 200

    await asyncio.gather(*(go(one) for one in everyone[:callers]), *(rest(one) for one in everyone[callers:]))
    for one in everyone:
        one.close()
    return len(took) / (time.perf_counter() - began), sorted(took)


def told(name: str, rate: float, took: list[float], each: float = 0) -> None:
    cost = f"   {each * 1000:5.2f} ms of the processor each" if each else ""
    print(rate_line(name, rate, took, cost), flush=True)


def speed(root: str, users: int, seconds: float, rate: float, more: list[str]) -> None:
    """How quick it is."""
    alone = embedded(root, users, seconds)
    print(f"{'embedded, one thread, no HTTP':40} {alone:6.0f}/s")
    with serving(root, "--workers", "0", *more) as server:

        def measured(name: str, callers: int, what: Callable[[], Request], idle: int = 0, rate: float = 0) -> None:
            before = server.processor_seconds()
            found, took = asyncio.run(load(server.port, seconds, callers, what, idle=idle, rate=rate))
            told(name, found, took, (server.processor_seconds() - before) / len(took))

        def one() -> Request:
            return search(users)

        asyncio.run(load(server.port, 1, 4, one))  # load the indexes
        measured("GET /health/live, 8 connections", 8, lambda: ("GET", "/health/live", b""))
        measured("searches, 8 connections", 8, one)
        measured("searches, 64 connections", 64, one)
        measured("searches, 8 of 1,008 connections", 8, one, idle=1000)
        if rate:
            measured(f"searches, {rate:.0f} a second, 64 connections", 64, one, rate=rate)


# bad guests: in a process of their own, each goes on until that is ended

MALFORMED = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /\r\n\r\n",
    b"GET /v1/users HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n",
    b"GET /v1/users HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n",
    b"GET /v1/users HTTP/1.1\nHost: localhost\n\n",
    b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    *(
        b"POST /v1/users/guest/search HTTP/1.1\r\nHost: localhost\r\n" + rest
        for rest in (
            b"Content-Length: -1\r\n\r\n",
            b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
            b"Content-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/users HTTP/1.1\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\nzzz\r\n",
            b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
            b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        )
    ),
]
_TO_SEARCH = b"POST /v1/users/guest/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


async def sends_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(random.choice(MALFORMED))
    await reader.read()
    await asyncio.sleep(0.2)


async def sends_too_much(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_TO_SEARCH + b"Content-Length: 50000000\r\n\r\n")
    for _ in range(50):
        writer.write(b"a" * 1_000_000)
        await writer.drain()
    await reader.read()


async def drips_a_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: ")
    while not reader.at_eof():
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.5)


async def drips_a_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_TO_SEARCH + b"Content-Length: 1000\r\n\r\n")
    while not reader.at_eof():
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.5)


async def reads_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    for _ in range(200):
        writer.write(b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.sleep(0.5)
        if writer.is_closing():
            return


async def watches(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET /console/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
    while await reader.read(65536):
        pass


async def keeps_alive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while not reader.at_eof():
        writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"}")
        await asyncio.sleep(random.uniform(20, 60))


GUESTS = {
    keeps_alive: 1000,
    watches: 20,
    drips_a_head: 50,
    drips_a_body: 50,
    reads_nothing: 20,
    sends_nonsense: 10,
    sends_too_much: 2,
}


async def invite(port: int) -> None:
    """All of them at once, again and again."""

    async def again(guest: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(random.random() * 5)
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            try:
                await guest(reader, writer)
            except (OSError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.transport.abort()

    raised_file_limit()
    await asyncio.gather(*(again(guest) for guest, number in GUESTS.items() for _ in range(number)))


async def ordinary(port: int, seconds: float, users: int, rate: float) -> tuple[list[float], list[str]]:
    """Searches and, each tenth, a write, evenly: how long they took, sorted, and what went wrong."""
    took: list[float] = []
    wrong: list[str] = []
    began = time.perf_counter()

    async def ask(one: Caller, number: int) -> None:
        note = json.dumps({"key": "moment", "value": str(time.time_ns())}).encode()  # so that the memory does not grow
        asked = ("POST", "/v1/users/writer/set_scratch", note) if number % 10 == 0 else search(users)
        at = began + number / rate
        await asyncio.sleep(at - time.perf_counter())
        try:
            if one.transport is None:
                await one.open()
            status = await asyncio.wait_for(one.ask(*asked), 30)
            if status != 200:
                wrong.append(str(status))
            took.append(time.perf_counter() - at)
        except (OSError, TimeoutError) as error:
            wrong.append(type(error).__name__)

    async def go(one: Caller, place: int) -> None:
        for number in range(place, int(seconds * rate), 16):
            await ask(one, number)
        one.close()

    callers = [await Caller(port).open() for _ in range(16)]
    await asyncio.gather(*(go(one, place) for place, one in enumerate(callers)))
    return sorted(took), wrong


def soak(root: str, users: int, minutes: float, rate: float, more: list[str]) -> None:
    """What bad guests do to the others, and whether the server grows."""
    with serving(root, "--workers", "0", *more) as server:
        asyncio.run(load(server.port, 1, 4, lambda: search(users)))
        took, wrong = asyncio.run(ordinary(server.port, 20, users, rate))
        told(f"without guests, {len(wrong)} errors", rate, took)
        guests = subprocess.Popen([sys.executable, "-m", "benchmarks.serving", "--guests", str(server.port)])
        try:
            asyncio.run(ordinary(server.port, 20, users, rate))  # until all of them are there
            print(f"{'':40} {server.megabytes():6.0f} MB at the start")
            all_wrong: list[str] = []
            for minute in range(round(minutes)):
                took, wrong = asyncio.run(ordinary(server.port, 60, users, rate))
                all_wrong += wrong
                told(f"minute {minute + 1}, {len(wrong)} errors, {server.megabytes():.0f} MB", rate, took)
            print(f"errors of the others: {len(all_wrong)} {sorted(set(all_wrong))}")
            assert guests.poll() is None, "the guests left early"
        finally:
            guests.kill()
            guests.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--rate", type=float, default=500, help="searches a second that come evenly")
    parser.add_argument("--root", help="a PostgreSQL database, rather than a folder")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="with bad guests, for so long")
    parser.add_argument("--guests", type=int, metavar="PORT", help=argparse.SUPPRESS)
    given, more = parser.parse_known_args()
    if given.guests:
        asyncio.run(invite(given.guests))
    with tempfile.TemporaryDirectory() as folder:
        root = given.root or folder
        fill(root, given.users, given.records)
        if given.soak:
            soak(root, given.users, given.soak, min(given.rate, 100), more)
            return
        speed(root, given.users, given.seconds, given.rate, more)


if __name__ == "__main__":
    main()
