"""The server as a process: bad guests harm nobody, a stop loses nothing, and a kill leaves nothing behind."""

from __future__ import annotations

import json
import logging
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import recollect
from recollect import Recollect
from recollect.surfaces import http_server
from recollect.surfaces.http.rate_limits import RateLimits
from recollect.surfaces.http.request_buffer import BufferFolder, sweep
from tests.serving import serving
from tests.test_http import PATIENCE, _raw, _until_closed

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
LIVE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLOSING = LIVE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
NOTE = b"POST /v1/users/42/note HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


WARM = """
import json, os, signal, socket, sys
import recollect
from recollect.store.keys import ApiKeys
from recollect.surfaces.http_server import Address
from recollect.surfaces.serve import Server, run_server

door = socket.socket(fileno=int(sys.argv[1]))
while (asked := socket.recv_fds(door, 65536, 2))[0]:
    told, pipes = json.loads(asked[0]), asked[1]
    if child := os.fork():
        for pipe in pipes:
            os.close(pipe)
        door.sendall(b"%d " % child)
        door.sendall(b"%d " % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        continue
    for pipe, place in zip(pipes, (1, 2)):
        os.dup2(pipe, place)
        os.close(pipe)
    os.environ.update(told["env"])
    exec(told["before"])
    with recollect.open(told["where"]) as app:
        server = Server(app, Address.parse("127.0.0.1:0"))
        run_server(server, app, workers=0, listening=lambda port: print(port, flush=True))
    sys.exit(0)
"""


class Begun:
    """A server in a process of its own, begun by one that has imported everything already."""

    def __init__(self, nursery: socket.socket, told: dict[str, Any]) -> None:
        self._nursery = nursery
        self._code: int | None = None
        (out, its_out), (said, its_said) = os.pipe(), os.pipe()
        socket.send_fds(nursery, [json.dumps(told).encode()], [its_out, its_said])
        os.close(its_out)
        os.close(its_said)
        self.stdout, self.stderr = os.fdopen(out), os.fdopen(said)
        self.pid = self._number()

    def send_signal(self, number: int) -> None:
        if self._code is None:
            os.kill(self.pid, number)

    def wait(self) -> int:
        if self._code is None:
            self._code = self._number()
        return self._code

    def _number(self) -> int:
        return int(b"".join(iter(lambda: self._nursery.recv(1).strip(), b"")))


Process = Callable[..., AbstractContextManager[tuple[Begun, str]]]


@pytest.fixture(scope="module")
def process() -> Iterator[Process]:
    """Makes servers in processes of their own, and tells their addresses. They are given time to end by themselves."""
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    command = [sys.executable, "-c", WARM, str(theirs.fileno())]
    with subprocess.Popen(command, pass_fds=[theirs.fileno()]), ours:
        theirs.close()

        @contextmanager
        def begin(where: str, *, before: str = "", **env: str) -> Iterator[tuple[Begun, str]]:
            begun = Begun(ours, {"where": where, "before": before, "env": env})
            with begun.stdout, begun.stderr:
                try:
                    yield begun, f"http://127.0.0.1:{int(begun.stdout.readline())}"
                finally:
                    begun.send_signal(signal.SIGTERM)
                    begun.wait()

        yield begin


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Recollect]:
    with recollect.open(tmp_path) as app:
        yield app


def statuses(answer: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d+)", answer)]


# bad guests


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_BODY_SECONDS", "_IDLE_SECONDS", "_SEND_SECONDS"):
        monkeypatch.setattr(http_server, name, 0.1)


@pytest.mark.parametrize("path", ["/mcp", "/console/login", "/health/live"])
def test_U5_a_body_that_does_not_go_on_is_not_waited_for(app: Recollect, path: str, impatient: None) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
    with serving(app) as url, _raw(url) as slow:
        slow.sendall(f"{head}Content-Length: 100\r\n\r\n".encode() + b'{"half":')
        assert 200 not in statuses(_until_closed(slow))
        assert httpx.get(f"{url}/health/live").is_success


def test_U5_who_takes_nothing_of_an_answer_is_let_go(app: Recollect, impatient: None) -> None:
    with app.user("42").batch() as memory:
        for number in range(60):
            memory.note(f"Note number {number}: " + f"word{number} " * 300)
    with serving(app) as url:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.settimeout(PATIENCE)
            deaf.connect(("127.0.0.1", int(url.rpartition(":")[2])))
            asked = b"{}"
            head = NOTE.replace(b"/note", b"/read") + b"Content-Length: %d\r\n\r\n" % len(asked)
            deaf.sendall((head + asked) * 80)  # more than the kernel keeps for it
            while _connections(url) > 1:  # ours, which asks
                pass
        assert httpx.get(f"{url}/health/live").is_success


def _connections(url: str) -> int:
    """How many there are to this server, in this very process."""
    port = int(url.rpartition(":")[2])
    local = f"{port:04X}"
    established = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return 1 + sum(1 for row in established if row[1].endswith(f":{local}") and row[3] == "01")


@pytest.mark.parametrize(
    "sent",
    [
        LIVE.replace(b"localhost\r\n", b"localhost\r\nX: a\0b\r\n"),
        LIVE.replace(b"localhost\r\n", b"localhost\r\nHost: localhost\r\n"),
        LIVE.replace(b"/health/live", b"/\xff"),
        LIVE.replace(b"/health/live", b"http://["),
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\nxx",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /v1/users\r\n\r\n",
        b"GET /v1/users HTTP/0.9\r\n\r\n",
        NOTE + b"Content-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + LIVE,
        NOTE + b"Transfer-Encoding: chunked\r\nContent-Length: 30\r\n\r\n0\r\n\r\n" + LIVE,
        NOTE + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + LIVE,
        NOTE + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + LIVE,
        NOTE + b"Content-Length: +2\r\n\r\n{}" + LIVE,
    ],
)
def test_U5_what_could_be_read_in_two_ways_is_refused_and_nothing_after_it_is_read(app: Recollect, sent: bytes) -> None:
    with serving(app) as url, _raw(url) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        found = statuses(_until_closed(connection))
        assert len(found) == 1 and found[0] in (400, 421)
        assert list(app.users()) == []


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (CLOSING.replace(b"localhost\r\n", b"localhost\r\nX: a\r\n b\r\n"), [200]),
        (CLOSING.replace(b"\r\n", b"\n"), [200]),
        (NOTE + b"Content-Length: 2, 2\r\n\r\n{}" + CLOSING, [422, 200]),
        (NOTE + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 21 + b"\r\n" + CLOSING, [400]),
    ],
)
def test_U5_old_ways_of_writing_a_request_have_one_meaning(app: Recollect, sent: bytes, found: list[int]) -> None:
    with serving(app) as url, _raw(url) as connection:
        connection.sendall(sent)
        assert statuses(_until_closed(connection)) == found
        assert list(app.users()) == []


def test_U5_a_head_is_not_too_large_however_it_comes(app: Recollect) -> None:
    line = b"X: " + b"a" * 1000 + b"\r\n"
    with serving(app) as url:
        for large in (b"X: " + b"a" * 200_000 + b"\r\n", line * 200):
            with _raw(url) as connection:
                try:
                    connection.sendall(LIVE[:-2] + large + b"\r\n")
                except OSError:
                    pass  # it was closed while we were talking
                assert statuses(_until_closed(connection)) in ([400], [])
        with _raw(url) as connection:
            connection.sendall(LIVE[:-2] + line * 50 + b"Connection: close\r\n\r\n")
            assert statuses(_until_closed(connection)) == [200]


def test_U5_what_was_asked_before_nonsense_is_answered(app: Recollect) -> None:
    asked = NOTE + b"Content-Length: 24\r\n\r\n" + b'{"content": "Likes tea"}'
    with serving(app) as url, _raw(url) as connection:
        connection.sendall(asked + b"nonsense\r\n\r\n" + LIVE)
        answer = _until_closed(connection)
        assert statuses(answer) == [200, 400] and b"Likes tea" in answer
        assert [note.text for note in app.user("42").read()] == ["Likes tea"]


def test_U5_who_asks_for_another_protocol_gets_the_answer_in_this_one(app: Recollect) -> None:
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    body = b'{"content": "Likes tea"}'
    with serving(app) as url, _raw(url) as connection:
        connection.sendall(NOTE + wish + b"Content-Length: 24\r\n\r\n" + body[:10])
        connection.sendall(body[10:] + LIVE + LIVE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert statuses(_until_closed(connection)) == [200, 200, 200]
        assert [note.text for note in app.user("42").read()] == ["Likes tea"]


def test_U5_a_stream_ends_with_its_connection_whatever_was_asked_behind_it(app: Recollect) -> None:
    with serving(app) as url, _raw(url) as connection:
        connection.sendall(LIVE.replace(b"/health/live", b"/console/events") + LIVE)
        assert b"text/event-stream" in connection.recv(65536)
        # the server stops at the end, which waits for all that is running


def test_U5_more_connections_than_half_the_files_are_refused_until_there_are_fewer(
    app: Recollect, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "raised_file_limit", lambda: 20)
    with serving(app) as url:
        many = [_raw(url) for _ in range(9)]
        with _raw(url) as one_too_many:
            one_too_many.sendall(CLOSING)
            assert statuses(_until_closed(one_too_many)) == [503]
        for one in many:
            one.close()
        while httpx.get(f"{url}/health/live").status_code == 503:
            pass
        assert httpx.post(f"{url}/v1/users/42/note", json={"content": "Likes tea"}).is_success
    assert "concurrency limit" in caplog.text


def test_U5_as_many_files_as_allowed_may_be_open_and_when_there_are_none_left_it_is_said(
    tmp_path: Path, process: Process
) -> None:
    few = (
        "import resource; from recollect.surfaces import http_server\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128))\n"
        "limit, http_server.raised_file_limit = http_server.raised_file_limit, lambda: limit() * 10\n"
    )
    with process(str(tmp_path), before=few) as (server, url):
        assert httpx.get(f"{url}/health/live").is_success
        limits = Path(f"/proc/{server.pid}/limits").read_text()
        assert re.search(r"Max open files\s+128\s+128", limits)
        many = [_raw(url) for _ in range(130)]
        said = next(line for line in server.stderr if "cannot accept connections" in line)
        assert "ulimit -n" in said
        for one in many:
            one.close()
        assert httpx.get(f"{url}/health/live", timeout=PATIENCE).is_success


def test_U5_the_limit_of_files_is_raised_only_as_far_as_allowed() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        raised = http_server.raised_file_limit()
        assert raised == resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_U5_a_second_signal_ends_the_server_without_a_traceback(tmp_path: Path, process: Process) -> None:
    with process(str(tmp_path)) as (server, url), httpx.stream("GET", f"{url}/console/events") as stream:
        assert stream.is_success
        server.send_signal(signal.SIGTERM)
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert server.stderr.read() == "recollect: stopped\n"


def test_R4_U5_no_error_outside_the_api_puts_what_was_said_into_the_log(
    app: Recollect, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)

    def fails(*_: Any) -> str:
        raise RuntimeError("a secret that a person told")

    monkeypatch.setattr("recollect.surfaces.http.metrics.Metrics.text", fails)
    with serving(app) as url:
        assert httpx.get(f"{url}/metrics").status_code == 500
    assert "RuntimeError" in caplog.text and "secret" not in caplog.text


# limits, and sent twice


def test_U4_U5_what_mcp_clients_ask_counts_as_what_is_asked_of_the_api(app: Recollect) -> None:
    _, key = app.keys.create(scope="admin")
    headers = {
        "authorization": f"Bearer {key}",
        "recollect-user": "42",
        "accept": "application/json, text/event-stream",
    }
    with serving(app, limits=RateLimits(100, 3)) as url, httpx.Client(base_url=url, headers=headers) as http:
        assert http.post("/mcp", json=HELLO).is_success
        assert http.get("/v1/users/42/count").headers["ratelimit-remaining"] == "1"
        assert http.post("/mcp", json=HELLO).is_success
        refused = http.post("/mcp", json=HELLO)
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 0
        assert refused.json()["error"] == "too_many_requests"
        assert http.get("/v1/users/42/count").status_code == 429
        assert http.post("/mcp", json=HELLO, headers={"recollect-user": "43"}).is_success


KILL_AT = """
calls = iter(range(100))
keep = ApiKeys.keep_answer
def kept(self, *how):
    if next(calls) == {number}:
        os.kill(os.getpid(), signal.SIGKILL)
    keep(self, *how)
ApiKeys.keep_answer = kept
"""
BATCH = {
    "operations": [
        {"verb": "note", "arguments": {"content": "Likes tea"}},
        {"verb": "note", "arguments": {"content": "Likes tea"}},
        {"verb": "remember", "arguments": {"content": "Kyiv", "key": "city"}},
        {"verb": "spend", "arguments": {"operation": "chat", "cost": 2.0}},
        {"verb": "forget", "arguments": {"ref": "city"}},
    ]
}
OUTCOMES = ["written", "duplicate", "written", None, "forgotten"]


@pytest.mark.everyday(1)
@pytest.mark.parametrize("number", [0, 1])
def test_U5_W2_a_batch_whose_answer_was_lost_is_told_again_and_done_once(
    tmp_path: Path, number: int, process: Process
) -> None:
    """Killed just before all of it is durable, and just after."""
    headers = {"idempotency-key": "a batch that is lost"}
    with process(str(tmp_path), before=KILL_AT.format(number=number)) as (server, url):
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{url}/v1/users/42/batch", json=BATCH, headers=headers, timeout=PATIENCE)
        assert server.wait() == -signal.SIGKILL
    with recollect.open(tmp_path) as app, serving(app) as url:
        memory = app.user("42")
        assert len(memory.history()) == (4 if number else 0)
        answers = [httpx.post(f"{url}/v1/users/42/batch", json=BATCH, headers=headers) for _ in range(2)]
        told = answers[0].raise_for_status().json()["result"]
        assert [one and one["outcome"] for one in told] == OUTCOMES
        assert answers[0].content == answers[1].content
        [note] = memory.read(kind="note")
        assert told[0]["record"]["id"] == note.id and len(memory.history()) == 4
        assert [(one.calls, one.cost) for one in memory.usage()] == [(1, 2.0)]
        other = {"operations": BATCH["operations"][:1]}
        assert httpx.post(f"{url}/v1/users/42/batch", json=other, headers=headers).status_code == 409


def test_U5_W2_what_was_spent_is_counted_once_whatever_is_killed(tmp_path: Path, process: Process) -> None:
    spent, headers = {"operation": "chat", "tokens_in": 7, "cost": 0.5}, {"idempotency-key": "spent only once"}
    with process(str(tmp_path), before=KILL_AT.format(number=0)) as (server, url):
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{url}/v1/users/42/spend", json=spent, headers=headers, timeout=PATIENCE)
        assert server.wait() == -signal.SIGKILL
    with recollect.open(tmp_path) as app, serving(app) as url:
        for _ in range(2):
            again = httpx.post(f"{url}/v1/users/42/spend", json=spent, headers=headers)
            assert again.raise_for_status().json() == {"result": None}
        memory = app.user("42")
        assert [(one.calls, one.tokens_in, one.cost) for one in memory.usage()] == [(1, 7, 0.5)]
        assert memory.verify() == []


# what is left behind


def test_U5_no_kill_leaves_a_part_of_a_memory_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: Process
) -> None:
    spools = tmp_path / "spools"
    spools.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spools))
    with process(str(tmp_path / "memories"), TMPDIR=str(spools)) as (server, url), _raw(url) as connection:
        head = NOTE.replace(b"/note", b"/import?name=a.md")
        connection.sendall(head + b"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n")
        assert b"100 Continue" in connection.recv(1000)
        connection.sendall(b"- Likes tea")
        in_use = BufferFolder()
        while not list(spools.glob("*/import.md")):
            pass
        sweep()
        assert len(list(spools.iterdir())) == 2, "what is in use stays"
        server.send_signal(signal.SIGKILL)
        server.wait()
    assert len(list(spools.iterdir())) == 2
    (spools / "recollect-spool-of-another").symlink_to(tmp_path / "memories", target_is_directory=True)
    with process(str(tmp_path / "memories"), TMPDIR=str(spools)):
        assert sorted(path.name for path in spools.iterdir()) == sorted(
            [in_use.folder.name, "recollect-spool-of-another"]
        )
    in_use.close()
    assert not (tmp_path / "memories" / ".lock").exists()


# numbers


def test_U7_U5_with_telemetry_on_the_numbers_hold_those_of_tools(tmp_path: Path, process: Process) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with process(str(tmp_path), MEMORY_TELEMETRY=f"prometheus:{port}") as (_, url), httpx.Client(base_url=url) as http:
        saved = http.post("/v1/users/42/tools/memory_save", json={"arguments": {"content": "Likes tea"}})
        assert saved.is_success
        told = http.get("/metrics").raise_for_status().text
        assert 'recollect_http_requests_total{route="call_tool",status="200"} 1' in told
        tools = [line for line in told.splitlines() if "memory_save" in line and "_total" in line]
        assert tools and "Likes" not in told
        assert told.endswith("\n") and "\n\n" not in told
        elsewhere = httpx.get(f"http://127.0.0.1:{port}/metrics").text
        assert all(line in elsewhere for line in tools)


# the end


@pytest.mark.slow
def test_W1_U5_a_stop_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path, process: Process) -> None:
    """Fifty write at once, again and again, when SIGTERM comes: each is answered, or not begun."""
    acknowledged: list[str] = []
    refused: list[str] = []
    begun = threading.Barrier(51)
    enough = threading.Semaphore(0)

    def write(number: int) -> None:
        with httpx.Client(base_url=url, timeout=PATIENCE) as http:
            http.get("/health/live")
            begun.wait(PATIENCE)
            for turn in range(1000):
                content = f"Note {turn} of writer {number}"
                try:
                    answer = http.post(f"/v1/users/user-{number % 7}/note", json={"content": content})
                except httpx.TransportError:
                    refused.append(content)
                    return
                assert answer.status_code == 200, answer.text
                assert json.loads(answer.content)["result"]["outcome"] in ("written", "duplicate")
                acknowledged.append(content)
                enough.release()

    with process(str(tmp_path), MEMORY_HTTP_KEY_RATE="0", MEMORY_HTTP_USER_RATE="0") as (server, url):
        with ThreadPoolExecutor(50) as pool:
            writing = [pool.submit(write, number) for number in range(50)]
            begun.wait(PATIENCE)
            for _ in range(60):
                assert enough.acquire(timeout=PATIENCE)
            server.send_signal(signal.SIGTERM)
            for one in writing:
                one.result(PATIENCE)
        assert server.wait() == 0
    with recollect.open(tmp_path) as app:
        kept = {note.text for user in app.users() for note in app.user(user).read(kind="note")}
        assert all(app.user(user).verify() == [] for user in app.users())
    assert len(acknowledged) >= 60 and len(refused) == 50
    assert set(acknowledged) <= kept, "an acknowledged write is gone"
    assert not kept & set(refused), "what was not answered was done"
