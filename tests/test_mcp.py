"""The MCP server, by clients of the official SDK in other processes, over real pipes and real sockets."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client, MCPDeprecationWarning, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation, ResourceUpdatedNotification, TextContent, TextResourceContents
from typer.testing import CliRunner

import recollect
from recollect.errors import ConfigError, InvalidInputError
from recollect.surfaces.cli import mcp as _command  # noqa: F401
from recollect.surfaces.cli.program import app
from recollect.surfaces.http_server import Address
from recollect.surfaces.mcp.authentication import McpCaller, NamedByProxy, RejectedCaller, TokenFile, checked_suites
from recollect.tools.catalog import SUITES, tools_of
from tests.program import PROGRAM, ProgramProcess

SOURCE = str(Path(recollect.__file__).parents[1])
WAIT = 120.0
"""How long to wait for what must happen, in seconds; nothing is asserted about how fast it was."""
ANN, BEN, BEN_TOO, EVE = (name * 8 for name in ("ann-", "ben-", "bee-", "eve-"))
DAY = (datetime.now(timezone.utc) - timedelta(days=1)).date().isoformat()
MODES: list[Literal["legacy", "auto"]] = ["legacy", "auto"]
both_protocols = pytest.mark.parametrize("mode", MODES)


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    return kept | {"PYTHONPATH": SOURCE, "PYTHONWARNINGS": "error"}


def until(happened: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        if found := happened():
            return found
        time.sleep(0.02)
    raise AssertionError(f"it never happened: {what}")


def texts(memory: recollect.Memory) -> list[str]:
    return sorted(record.content for record in memory.read(kind="note"))


def said(answer: Any) -> str:
    (part,) = answer.content
    assert isinstance(part, TextContent)
    return part.text


def text_of(read: Any) -> str:
    (part,) = read.contents
    assert isinstance(part, TextResourceContents)
    assert part.mime_type == "text/markdown"
    return part.text


# a server on pipes


def by_stdio(root: Path, *args: str, mode: str = "auto", name: str = "tests") -> Client:
    command, *rest = PROGRAM
    server = StdioServerParameters(command=command, args=[*rest, "mcp", "--root", str(root), *args], env=environment())
    return Client(server, mode=mode, client_info=Implementation(name=name, version="1"), read_timeout_seconds=WAIT)


class Pipes:
    """The server with its bare protocol."""

    def __init__(self, root: Path, *args: str) -> None:
        self.process = ProgramProcess(
            *("mcp", "--root", str(root), *args),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        self.answers: dict[Any, dict[str, Any]] = {}

    def send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0"} | one).encode() + b"\n" for one in messages))
        self.process.stdin.flush()

    def initialize(self) -> None:
        params = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bare\n  pipes", "version": "1"},
        }
        self.send({"id": 0, "method": "initialize", "params": params}, {"method": "notifications/initialized"})
        self.answer(0)

    def answer(self, number: int) -> dict[str, Any]:
        assert self.process.stdout is not None
        while number not in self.answers:
            message = json.loads(self.process.stdout.readline())
            self.answers[message.get("id")] = message
        return self.answers[number]

    def call(self, number: int, tool: str, **arguments: Any) -> dict[str, Any]:
        return {"id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}

    def rest(self) -> tuple[int, list[dict[str, Any]], str]:
        """Wait for its end: the exit code, what else it answered, and its standard error."""
        out, err = self.process.communicate(timeout=WAIT)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


@pytest.fixture
def pipes(tmp_path: Path) -> Iterator[Pipes]:
    opened = Pipes(tmp_path, "--user", "u1")
    try:
        yield opened
    finally:
        opened.process.kill()
        opened.process.communicate()


# a server on a socket


@dataclass
class Web:
    """The server over HTTP."""

    root: Path
    process: subprocess.Popen[str]
    port: int = 0
    log: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @asynccontextmanager
    async def client(self, token: str | None = None, mode: str = "auto", **more: Any) -> AsyncIterator[Client]:
        headers = more.pop("headers", {} if token is None else {"Authorization": f"Bearer {token}"})
        async with (
            httpx2.AsyncClient(headers=headers, timeout=WAIT) as carrier,
            Client(
                streamable_http_client(self.url, http_client=carrier),
                mode=mode,
                client_info=Implementation(name="web tests", version="1"),
                **more,
            ) as client,
        ):
            yield client

    def post(self, body: Any, **headers: str) -> tuple[int, dict[str, str], str]:
        """One bare request: status, headers and body of the answer."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        plain = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        data = body if isinstance(body, bytes) else json.dumps({"jsonrpc": "2.0"} | body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            link.request("POST", given.pop("path", "/mcp"), data, plain | given)
            answer = link.getresponse()
            return (
                answer.status,
                {name.lower(): value for name, value in answer.headers.items()},
                answer.read().decode(),
            )
        finally:
            link.close()

    def open_session(self, **headers: str) -> str:
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}
        status, told, _ = self.post({"id": 0, "method": "initialize", "params": params}, **headers)
        assert status == 200
        self.post({"method": "notifications/initialized"}, **headers, Mcp_Session_Id=told["mcp-session-id"])
        return told["mcp-session-id"]

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(WAIT)


@contextmanager
def web(root: Path, *args: str) -> Iterator[Web]:
    process = ProgramProcess(
        *("mcp", "--http", "0", "--root", str(root), *args),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    assert process.stderr is not None
    assert process.stdout is not None
    server = Web(root, process)
    try:
        first = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", first)
        assert found, first + process.stderr.read()
        server.port = int(found[1])
        reader = threading.Thread(target=lambda: server.log.extend(process.stderr or ()))
        reader.start()
        yield server
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stderr.close()
        process.stdout.close()


def write_tokens(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


TOKENS = f"# who may come in\n{ANN} ann all\n{BEN} ben\n{BEN_TOO} ben notes,entries\n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server for ann and ben. Tests that use it use words of their own."""
    folder = tmp_path_factory.mktemp("mcp")
    with web(folder / "memory", "--tokens", str(write_tokens(folder / "tokens", TOKENS))) as server:
        yield server
        assert server.stop() == 0
        assert [line for line in server.log if "Traceback" in line] == []


# tools

ONE_OF_EACH: dict[str, tuple[str, dict[str, Any]]] = {
    "entries": ("write_memory", {"key": "role", "value": "Baker", "category": "work_context", "durability": "durable"}),
    "notes": ("memory_save", {"content": "Collects stamps of Peru"}),
    "observations": ("remember_observation", {"content": "Rye needs a longer rest", "category": "lesson"}),
    "facts": ("remember_fact", {"fact_type": "skill", "fact_key": "dance", "fact_value": "tango", "confidence": 0.9}),
    "profile": ("remember_relationship", {"person": "Oksana", "relation": "sister", "confidence": 0.9}),
    "sessions": ("memory_list_sessions", {}),
    "files": ("memory", {"command": "view", "path": "/memories"}),
}


@pytest.mark.everyday(1)
@both_protocols
def test_U4_over_stdio_every_suite_is_offered_as_declared_and_can_be_called(tmp_path: Path, mode: str) -> None:
    async def check() -> None:
        async with by_stdio(tmp_path, "--user", "u1", "--suite", "all", mode=mode) as client:
            assert client.server_info is not None
            assert (client.server_info.name, client.server_info.version) == ("recollect", recollect.__version__)
            assert client.instructions is not None
            assert "long-term memory" in client.instructions
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            with recollect.open(tmp_path) as opened:
                declared = opened.tools("u1", fixed_user=True)
            assert list(listed) == list(declared.tools)
            for name, tool in declared.tools.items():
                shown = listed[name]
                assert (shown.title, shown.description) == (tool.title, tool.description)
                assert shown.input_schema == declared.schema(name)
                assert '"user_id"' not in json.dumps(shown.input_schema)
                assert shown.output_schema is None
                hints = shown.annotations
                assert hints is not None
                assert hints.read_only_hint is (tool.tier == "read_only")
                assert hints.destructive_hint is (tool.tier == "destructive")
                assert hints.idempotent_hint is tool.idempotent
                assert hints.open_world_hint is False
            for tool_name, arguments in ONE_OF_EACH.values():
                answer = await client.call_tool(tool_name, arguments)
                assert not answer.is_error, said(answer)
                content = json.loads(said(answer)) if declared.tools[tool_name].json else None
                assert answer.structured_content == (content if isinstance(content, dict) else None)

    assert ONE_OF_EACH.keys() == SUITES.keys()
    asyncio.run(check())
    with recollect.open(tmp_path) as opened:
        memory = opened.user("u1")
        assert memory.get("role").content == "Baker"
        assert memory.get("role").agent == "tests"
        assert {call.tool for call in memory.calls()} == {name for name, _ in ONE_OF_EACH.values()}
        assert {call.session for call in memory.calls()} - {None} == {memory.get("role").session}


@both_protocols
def test_U4_the_user_is_never_an_argument(shared: Web, mode: str) -> None:
    async def check() -> None:
        async with shared.client(ANN, mode) as client:
            fact = {"fact_type": "trait", "fact_key": f"pace {mode}", "fact_value": f"hurried {mode}", "confidence": 1}
            answer = await client.call_tool("remember_fact", fact | {"user_id": "ben"})
            assert answer.is_error
            assert "can only be ann" in said(answer)

    asyncio.run(check())
    with recollect.open(shared.root) as opened:
        for user in ("ann", "ben"):
            assert not opened.user(user).search("hurried")


@both_protocols
def test_U4_errors_are_told_in_the_way_of_the_protocol(shared: Web, mode: str) -> None:
    async def check() -> None:
        async with shared.client(BEN, mode) as client:
            with pytest.raises(MCPError, match="there is no tool 'telepathy'") as unknown:
                await client.call_tool("telepathy", {})
            assert unknown.value.code == -32602
            with pytest.raises(MCPError):  # there is one, but not for ben
                await client.call_tool("remember_fact", {})
            missing = await client.call_tool("memory_save", {})
            assert missing.is_error
            assert missing.structured_content == {
                "status": "error",
                "message": "content is missing; give content (text)",
            }
            nothing = await client.call_tool("memory_delete", {"note_id": "note-0"})
            assert nothing.is_error
            assert "there is no note" in said(nothing)
            refused = await client.call_tool("memory_save", {"content": "My key is sk-proj-" + "4f9aXb72Lq" * 3})
            assert not refused.is_error
            assert (refused.structured_content or {})["status"] == "refused"
            for uri in (
                "memory://nowhere",
                "memory://daily/yesterday",
                "memory://daily/1999-01-01",
                "file:///etc/passwd",
            ):
                with pytest.raises(MCPError, match="Unknown resource") as error:
                    await client.read_resource(uri)
                assert error.value.code == -32602
            with pytest.raises(MCPError, match="there is no prompt 'sing'"):
                await client.get_prompt("sing")
            with pytest.raises(MCPError, match="remember_this requires the argument text"):
                await client.get_prompt("remember_this", {"text": " "})

    asyncio.run(check())


@both_protocols
def test_U4_odd_arguments_are_answered(shared: Web, mode: str) -> None:
    async def check() -> None:
        async with shared.client(BEN, mode) as client:
            for content in ("\x00 nul", "x" * 200_000, "", "\u202e turned", ["a list"], {"an": "object"}, 5, None):
                answer = await client.call_tool("memory_save", {"content": content, "more": {"deep": [[[]]]}})
                assert said(answer)
            assert said(await client.call_tool("memory_search", {"query": "x" * 100_000}))

    asyncio.run(check())


def test_U4_a_lone_surrogate_is_answered(shared: Web) -> None:
    headers = {"Authorization": f"Bearer {BEN}"}
    session = shared.open_session(**headers)
    body = rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_save","arguments":{"content":"\ud800"}}}'
    assert shared.post(body, **headers, Mcp_Session_Id=session)[0] in (200, 400)
    modern = json.loads(body)
    modern["params"]["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    routing = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call", "Mcp_Name": "memory_save"}
    status, _, told = shared.post(modern, **headers, **routing)
    assert status in (200, 400)
    assert json.loads(told)


# resources and prompts


@both_protocols
def test_U4_resources(shared: Web, mode: str) -> None:
    with recollect.open(shared.root) as opened:
        memory = opened.user("ann")
        memory.remember("Keeps nine beehives", key=f"bees {mode}", category="preference")
        memory.jot(f"Moved a hive, {mode}", day=DAY)
        shown, note = memory.show(), memory.daily(DAY)
    assert "Keeps nine beehives" in shown

    async def check() -> None:
        async with shared.client(ANN, mode) as client:
            listed = {one.uri: one for one in (await client.list_resources()).resources}
            assert list(listed)[:2] == ["memory://MEMORY.md", "memory://context"]
            assert f"memory://daily/{DAY}" in listed
            assert {one.mime_type for one in listed.values()} == {"text/markdown"}
            templates = (await client.list_resource_templates()).resource_templates
            assert [one.uri_template for one in templates] == ["memory://daily/{day}", "memory://context/{topic}"]
            assert text_of(await client.read_resource("memory://MEMORY.md")) == shown
            assert text_of(await client.read_resource("memory://memory.md")) == shown
            assert text_of(await client.read_resource(f"memory://daily/{DAY}")) == note
            assert "beehives" in text_of(await client.read_resource("memory://context"))
            assert "beehives" in text_of(await client.read_resource("memory://context/bee%20hives%2Fhoney"))

    asyncio.run(check())


@both_protocols
def test_U4_prompts(shared: Web, mode: str) -> None:
    def prompted(result: Any) -> str:
        (message,) = result.messages
        assert message.role == "user"
        return str(message.content.text)

    with recollect.open(shared.root) as opened:
        opened.user("ben").note(f"Plays the theremin, {mode}")

    async def check() -> None:
        async with shared.client(BEN, mode) as client:
            names = [one.name for one in (await client.list_prompts()).prompts]
            assert names == ["use_memory", "what_do_you_know", "remember_this"]
            how = prompted(await client.get_prompt("use_memory"))
            for tool in tools_of(["notes"]):
                assert f"`{tool.name}`" in how
            assert "remember_fact" not in how
            known = prompted(await client.get_prompt("what_do_you_know", {"topic": "theremin"}))
            assert "about theremin" in known
            assert f"Plays the theremin, {mode}" in known
            assert "about me" in prompted(await client.get_prompt("what_do_you_know"))
            assert prompted(await client.get_prompt("remember_this", {"text": "It rains"})).endswith("\n\nIt rains")

    asyncio.run(check())


def test_U4_paused_and_incognito(tmp_path: Path) -> None:
    tokens = write_tokens(tmp_path / "tokens", TOKENS)
    with recollect.open(tmp_path / "memory") as opened:
        memory = opened.user("ann")
        memory.remember("Keeps bees", category="preference")
        memory.jot("Moved a hive", day=DAY)

        async def check(server: Web) -> None:
            async with server.client(ANN) as client:
                memory.pause()
                saved = await client.call_tool("memory_save", {"content": "Sells honey"})
                assert (saved.structured_content or {})["status"] == "refused"
                assert "paused" in said(saved)
                assert "bees" in said(await client.call_tool("memory_search", {"query": "bees"}))
                assert "bees" in text_of(await client.read_resource("memory://MEMORY.md"))
                memory.pause(incognito=True)
                assert "incognito" in said(await client.call_tool("memory_search", {"query": "bees"}))
                uris = [one.uri for one in (await client.list_resources()).resources]
                assert uris == ["memory://MEMORY.md", "memory://context"]
                for uri in (*uris, "memory://context/bees", f"memory://daily/{DAY}"):
                    told = text_of(await client.read_resource(uri))
                    assert told.startswith("This memory is incognito")
                prompt = await client.get_prompt("what_do_you_know", {"topic": "bees"})
                assert "Keeps bees" not in str(prompt)
                memory.resume()
                assert "bees" in text_of(await client.read_resource("memory://context/bees"))

        with web(tmp_path / "memory", "--tokens", str(tokens)) as server:
            asyncio.run(check(server))
        assert texts(memory) == []


# changes


def test_U4_who_listens_is_told_of_changes_of_their_own_memory_only(shared: Web) -> None:
    uri = "memory://MEMORY.md"
    fact = {"fact_type": "skill", "fact_key": "unicycle", "fact_value": "rides one", "confidence": 0.9}
    entry = {"key": "kayak", "value": "Paddles", "category": "preference", "durability": "durable"}

    async def check() -> None:
        async with (
            shared.client(ANN) as ann,
            shared.client(BEN_TOO) as ben,
            ann.listen(resource_subscriptions=[uri]) as of_ann,
            ben.listen(resource_subscriptions=[uri]) as of_ben,
        ):
            await ann.call_tool("recall_facts", {})
            await ann.call_tool("remember_fact", fact)
            event = await asyncio.wait_for(anext(aiter(of_ann)), WAIT)
            assert getattr(event, "uri", None) == uri
            waiting = asyncio.ensure_future(anext(aiter(of_ben)))
            await ann.call_tool("remember_fact", fact | {"fact_key": "unicycle since", "fact_value": "1999"})
            await asyncio.wait_for(anext(aiter(of_ann)), WAIT)
            assert not waiting.done()
            await ben.call_tool("write_memory", entry)
            assert getattr(await asyncio.wait_for(waiting, WAIT), "uri", None) == uri

    asyncio.run(check())


def test_U4_subscriptions_of_the_protocol_with_sessions(shared: Web) -> None:
    uri = "memory://MEMORY.md"
    told: list[str] = []
    entry = {"key": "harp", "value": "Tunes harps", "category": "preference", "durability": "durable"}

    async def check() -> None:
        came = asyncio.Event()

        async def hear(message: Any) -> None:
            if isinstance(message, ResourceUpdatedNotification):
                told.append(message.params.uri)
                came.set()

        async with (
            shared.client(BEN_TOO, "legacy", message_handler=hear) as client,
            shared.client(BEN_TOO, "legacy") as other,
        ):
            with pytest.warns(MCPDeprecationWarning):
                await client.subscribe_resource(uri)
            # the stream for notifications is opened on the side: repeat until it is there
            for number in range(200):
                await other.call_tool(
                    "write_memory", entry | {"key": f"harp {number}", "value": f"Harp of {number} strings"}
                )
                try:
                    await asyncio.wait_for(came.wait(), 0.2)
                    break
                except TimeoutError:
                    continue
            with pytest.warns(MCPDeprecationWarning):
                await client.unsubscribe_resource(uri)

    asyncio.run(check())
    assert set(told) == {uri}


# who is who


def test_U4_tokens_are_checked_and_read_again_when_they_change(tmp_path: Path) -> None:
    tokens = write_tokens(tmp_path / "tokens", TOKENS)
    ping = {"id": 1, "method": "ping"}
    with web(tmp_path / "memory", "--tokens", str(tokens)) as server:
        for header in ({}, {"Authorization": "Basic " + ANN}, {"Authorization": "Bearer"}, {"Authorization": ANN}):
            status, told, _ = server.post(ping, **header)
            assert (status, told["www-authenticate"]) == (401, 'Bearer realm="recollect"')
        for wrong in (EVE, ANN[:-1], ANN + "x", ANN.upper(), "ä" * 20):
            status, told, body = server.post(ping, Authorization=f"Bearer {wrong}")
            assert status == 401
            assert 'error="invalid_token"' in told["www-authenticate"]
            assert wrong not in body
        by_ann = {"Authorization": f"bearer {ANN}"}
        session = server.open_session(**by_ann)
        assert server.post(ping, **by_ann, Mcp_Session_Id=session)[0] == 200

        write_tokens(tokens, f"{EVE} eve\n")
        assert server.post(ping, **by_ann, Mcp_Session_Id=session)[0] == 401
        assert server.open_session(Authorization=f"Bearer {EVE}")

        tokens.chmod(0o604)
        assert server.post(ping, Authorization=f"Bearer {EVE}")[0] == 503
        until(lambda: any("chmod 600" in line for line in server.log), "the log says why nobody is let in")
        tokens.unlink()
        assert server.post(ping, Authorization=f"Bearer {EVE}")[0] == 503
        write_tokens(tokens, json.dumps({EVE: {"user": "eve", "suites": ["notes"]}}))
        assert server.open_session(Authorization=f"Bearer {EVE}")
        assert not [line for line in server.log if EVE in line or ANN in line]


@pytest.mark.everyday(1)
@both_protocols
def test_U4_users_at_once_are_kept_apart(shared: Web, mode: str) -> None:
    async def one(token: str, other: str, word: str) -> None:
        async with shared.client(token, mode) as client:
            for number in range(5):
                saved = await client.call_tool("memory_save", {"content": f"{word} {mode} number {number} is mine"})
                assert (saved.structured_content or {})["status"] == "success", said(saved)
                found = said(
                    await client.call_tool("memory_search", {"query": f"{word} {other} {mode} mine", "top_k": 20})
                )
                assert word in found
                assert other not in found

    async def check() -> None:
        await asyncio.gather(one(ANN, "Walrus", "Okapi"), one(BEN, "Okapi", "Walrus"))

    asyncio.run(check())
    with recollect.open(shared.root) as opened:
        assert not [text for text in texts(opened.user("ben")) if "Okapi" in text]
        mine = [note for note in opened.user("ann").read(kind="note") if f"Okapi {mode}" in note.content]
        assert len(mine) == 5
        assert {note.agent for note in mine} == {"web tests"}
        # only the older protocol has sessions
        assert {note.session is None for note in mine} == {mode == "auto"}


def test_U4_a_session_belongs_to_who_opened_it(shared: Web) -> None:
    session = shared.open_session(Authorization=f"Bearer {ANN}")
    ask = {"id": 1, "method": "tools/list"}
    assert shared.post(ask, Authorization=f"Bearer {ANN}", Mcp_Session_Id=session)[0] == 200
    for other in (BEN, BEN_TOO):
        status, _, told = shared.post(ask, Authorization=f"Bearer {other}", Mcp_Session_Id=session)
        assert status == 404
        assert "tools" not in told
    assert shared.post(ask, Mcp_Session_Id=session)[0] == 401
    of_ben = shared.open_session(Authorization=f"Bearer {BEN}")
    assert shared.post(ask, Authorization=f"Bearer {BEN_TOO}", Mcp_Session_Id=of_ben)[0] == 404  # his other token
    link = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=WAIT)
    for method in ("GET", "DELETE"):
        headers = {"Authorization": f"Bearer {BEN}", "Mcp-Session-Id": session, "Accept": "text/event-stream"}
        link.request(method, "/mcp", headers=headers)
        answer = link.getresponse()
        assert (answer.status, b"not found" in answer.read()) == (404, True)
    link.close()
    assert shared.post(ask, Authorization=f"Bearer {ANN}", Mcp_Session_Id=session)[0] == 200


def test_U4_strange_requests_are_turned_away(shared: Web) -> None:
    ask, by_ann = {"id": 1, "method": "ping"}, {"Authorization": f"Bearer {ANN}"}
    session = {"Mcp_Session_Id": shared.open_session(**by_ann)}
    assert shared.post(ask, **by_ann, **session)[0] == 200
    assert shared.post(ask, **by_ann, **session, Host="evil.example")[0] == 421
    assert shared.post(ask, **by_ann, **session, Host=f"evil.example:{shared.port}")[0] == 421
    assert shared.post(ask, **by_ann, **session, Origin="https://evil.example")[0] == 403
    assert shared.post(ask, **by_ann, **session, Origin=f"http://localhost:{shared.port}")[0] == 200
    assert shared.post(ask, **by_ann, **session, MCP_Protocol_Version="2026-07-28", Host="evil.example")[0] == 421
    assert shared.post(b"{" + b" " * 5_000_000, **by_ann, **session)[0] == 413
    assert shared.post(b"{not json", **by_ann, **session)[0] == 400
    assert shared.post(ask, **by_ann, **session, Content_Type="text/plain")[0] == 400
    assert shared.post(ask, **by_ann, Mcp_Session_Id="made-up")[0] == 404
    assert shared.post(ask, **by_ann, path="/")[0] == 404


def test_U4_a_proxy_can_say_who_it_is(tmp_path: Path) -> None:
    with web(tmp_path, "--user-header", "X-User", "--allow-host", "memory.example") as server:

        async def save(user: str, text: str) -> None:
            async with server.client(headers={"X-User": user}) as client:
                assert not (await client.call_tool("memory_save", {"content": text})).is_error

        async def check() -> None:
            await asyncio.gather(save("ann", "Likes tea"), save("ben@example.org", "Likes coffee"))

        asyncio.run(check())
        assert server.post({"id": 1, "method": "ping"})[0] == 401
        session = server.open_session(X_User="ann", Host="memory.example")
        assert server.post({"id": 1, "method": "ping"}, X_User="ann", Mcp_Session_Id=session)[0] == 200
        assert server.post({"id": 1, "method": "ping"}, X_User="ben", Mcp_Session_Id=session)[0] == 404
        assert server.stop(signal.SIGINT) == 0
    with recollect.open(tmp_path) as opened:
        assert texts(opened.user("ann")) == ["Likes tea"]
        assert texts(opened.user("ben@example.org")) == ["Likes coffee"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--http", "8765"], "one of --user, --tokens and --user-header"),
        (["--http", "8765", "--user", "me", "--user-header", "X-User"], "one of --user, --tokens and --user-header"),
        (["--http", "0.0.0.0:8765", "--user", "me"], "use --tokens"),
        (["--http", "[::]:8765", "--user", "me"], "use --tokens"),
        (["--http", "0.0.0.0:8765", "--user-header", "X-User"], "add --behind-proxy"),
        (["--http", "0.0.0.0:8765", "--user-header", "X-User", "--behind-proxy"], "add --allow-host"),
        (["--http", "8765", "--user-header", "X User"], "not a valid header name"),
        (["--http", "8765", "--user", "me", "--behind-proxy"], "requires --user-header"),
        (["--http", "8765", "--tokens", "nowhere.txt"], "cannot read nowhere.txt"),
        (["--http", "port", "--user", "me"], "is not PORT or HOST:PORT"),
        (["--http", "99999", "--user", "me"], "is not PORT or HOST:PORT"),
        (["--http", "no.such.host.invalid:8765", "--user", "me"], "not an address of this machine"),
        (["--tokens", "tokens.txt"], "requires --http"),
        (["--behind-proxy"], "requires --http"),
        (["--suite", "everything"], "is not one of"),
        (["--user", ""], "must have 1 to"),
    ],
)
def test_U4_what_would_not_be_safe_is_refused_at_the_start(tmp_path: Path, args: list[str], says: str) -> None:
    result = CliRunner().invoke(app, ["mcp", "--root", str(tmp_path), *args])
    assert result.exit_code == 2, result.output
    assert says in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_U4_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with Address.parse("0").listen() as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(app, ["mcp", "--root", str(tmp_path), "--user", "me", "--http", port])
    assert result.exit_code == 4
    assert f"cannot listen on 127.0.0.1:{port}" in result.stderr


def test_addresses() -> None:
    def told(text: str) -> tuple[str, int, bool, bool]:
        address = Address.parse(text)
        return address.url_host, address.port, address.is_loopback, address.is_any

    assert told("8765") == ("127.0.0.1", 8765, True, False)
    assert told("127.0.0.9:1") == ("127.0.0.9", 1, True, False)
    assert told("[::1]:80") == ("[::1]", 80, True, False)
    assert told("0.0.0.0:80") == ("0.0.0.0", 80, False, True)
    assert told("10.1.2.3:80") == ("10.1.2.3", 80, False, False)
    assert Address.parse("localhost:80").is_loopback


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "contains no tokens"),
        ("# nothing\n", "contains no tokens"),
        (ANN, "line 1: must be TOKEN USER"),
        (f"{ANN} a b c", "line 1: must be TOKEN USER"),
        (f"{ANN} ann\n{ANN} ben", "line 2: duplicate token"),
        (f"{ANN} ann nonsense", "is not one of"),
        ("short ann", "at least 16 ASCII characters"),
        ("тайна" * 8 + " ann", "at least 16 ASCII characters"),
        ("{", "not valid JSON"),
        (json.dumps({ANN: 5.5}), "must be text or an integer"),
        (json.dumps({ANN: {"user": "ann", "suites": [1]}}), "must be a list of names"),
        (f'{{"{ANN}": "ann", "{ANN}": "ben"}}', "duplicate name"),
    ],
)
def test_U4_a_wrong_token_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match="--tokens") as error:
        TokenFile(write_tokens(tmp_path / "tokens", text), ("notes",))
    assert says in str(error.value)
    assert ANN not in str(error.value)
    assert "short" not in str(error.value)


def test_U4_a_token_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "tokens", TOKENS)
    path.chmod(stat.S_IRUSR | stat.S_IROTH)
    with pytest.raises(ConfigError, match="chmod 600"):
        TokenFile(path, ("notes",))
    result = CliRunner().invoke(app, ["mcp", "--root", str(tmp_path), "--http", "0", "--tokens", str(path)])
    assert result.exit_code == 2
    assert "chmod 600" in result.stderr


def test_who_calls(tmp_path: Path) -> None:
    def header(token: str) -> list[tuple[bytes, bytes]]:
        return [(b"accept", b"*/*"), (b"authorization", f"Bearer {token}".encode())]

    lines = TokenFile(write_tokens(tmp_path / "lines", TOKENS), ("facts",))
    ann, ben, too = (lines.caller(header(token)) for token in (ANN, BEN, BEN_TOO))
    assert isinstance(ann, McpCaller)
    assert isinstance(ben, McpCaller)
    assert isinstance(too, McpCaller)
    assert (ann.user, ann.suites) == ("ann", tuple(SUITES))
    assert (ben.user, ben.suites) == ("ben", ("facts",))
    assert (too.user, too.suites) == ("ben", ("notes", "entries"))
    assert len({ann.credential, ben.credential, too.credential}) == 3
    assert ANN not in repr(ann)
    assert isinstance(lines.caller(header(ANN) * 2), RejectedCaller)
    as_json = TokenFile(
        write_tokens(tmp_path / "json", json.dumps({ANN: 42, BEN: {"user": "ben", "suites": "all"}})), ("notes",)
    )
    found = as_json.caller(header(ANN))
    assert isinstance(found, McpCaller)
    assert found.user == "42"

    proxy = NamedByProxy("X-User", ("notes",))
    assert proxy.caller([(b"x-user", "Олена".encode())]) == McpCaller("Олена", ("notes",))
    for wrong in ([], [(b"x-user", b"a"), (b"x-user", b"b")], [(b"x-user", b"")], [(b"x-user", b"\xff")]):
        assert isinstance(proxy.caller(wrong), RejectedCaller)

    assert checked_suites(None) == checked_suites([]) == ("notes",)
    assert checked_suites(["notes,facts", "facts"]) == ("notes", "facts")
    with pytest.raises(InvalidInputError):
        checked_suites(["all of them"])


# beginning and end


def test_U4_all_is_answered_before_the_end_and_nothing_else_is_on_standard_output(pipes: Pipes) -> None:
    pipes.initialize()
    pipes.send(
        pipes.call(1, "memory_save", content="Likes tea"),
        pipes.call(2, "memory_search", query="coffee"),
        {"id": 3, "method": "resources/subscribe", "params": {"uri": "memory://MEMORY.md"}},
        {"id": 4, "method": "no/such/method"},
    )
    code, answers, err = pipes.rest()  # closes its input at once
    assert code == 0
    assert err == ""
    by_id = {answer["id"]: answer for answer in answers if "id" in answer}
    assert by_id.keys() == {1, 2, 3, 4}
    assert by_id[1]["result"]["structuredContent"]["status"] == "success"
    assert by_id[4]["error"]["code"] == -32601


def test_U4_a_line_that_cannot_be_read_is_answered_and_the_next_one_too(pipes: Pipes) -> None:
    pipes.initialize()
    assert pipes.process.stdin is not None
    half = json.dumps(pipes.call(1, "memory_save", content="bad half") | {"jsonrpc": "2.0"}).encode()
    deep = json.dumps(pipes.call(2, "memory_save", content="deep") | {"jsonrpc": "2.0"}).encode()
    lines = [
        half.replace(b"bad", b"bad \\ud800"),
        deep.replace(b'"deep"', b"[" * 500 + b"]" * 500),
        b'{"jsonrpc": "2.0", "id": 3, "method": 7}',
        b'{"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": "\\udfff"}}',
        b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}',
        b"{not JSON",
        b'{"jsonrpc": "2.0", "id": 4, "method": "prompts/get", "params": {"name": "\\udc00"}}',
        b'{"jsonrpc": "2.0", "id": 5, "method": "ping"}',
    ]
    pipes.process.stdin.write(b"\n".join(lines) + b"\n")
    pipes.process.stdin.flush()
    code, answers, err = pipes.rest()
    assert (code, err) == (0, "")
    by_id = {answer["id"]: answer for answer in answers if answer["id"] is not None}
    assert by_id.keys() == {1, 2, 3, 4, 5} and by_id[5]["result"] == {}
    assert "half a character" in by_id[1]["error"]["message"] and "half a character" in by_id[4]["error"]["message"]
    assert by_id[3]["error"]["code"] == -32600
    assert sorted(answer["error"]["code"] for answer in answers if answer["id"] is None) == [-32700, -32600]


def test_U4_without_a_word_it_ends_well(pipes: Pipes) -> None:
    assert pipes.rest() == (0, [], "")


def test_U4_a_client_that_only_stops_reading_ends_it_too(pipes: Pipes) -> None:
    pipes.initialize()
    assert pipes.process.stdout is not None
    pipes.process.stdout.close()
    pipes.send({"id": 1, "method": "ping"})
    assert pipes.process.wait(WAIT) == 0
    assert pipes.process.stderr is not None
    assert pipes.process.stderr.read() == b""


def test_U4_who_listens_over_stdio_is_told_the_end(pipes: Pipes) -> None:
    about = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    wanted = {"resourceSubscriptions": ["memory://context"]}
    pipes.send({"id": 1, "method": "subscriptions/listen", "params": {"notifications": wanted, "_meta": about}})
    save = pipes.call(2, "memory_save", content="Likes tea")
    save["params"]["_meta"] = about
    pipes.send(save)
    pipes.answer(2)
    code, rest, err = pipes.rest()
    assert (code, err) == (0, "")
    assert [message["id"] for message in rest if "id" in message] == [1]
    assert "error" not in rest[-1]


def test_U4_a_signal_lets_the_running_call_finish(pipes: Pipes, tmp_path: Path) -> None:
    pipes.initialize()
    with recollect.open(tmp_path) as opened, opened.user("u1").batch() as held:
        held.note("Has the lock")
        pipes.send(pipes.call(1, "memory_save", content="Likes tea"), {"id": 2, "method": "ping"})
        pipes.answer(2)  # so it has read the call, too
        assert 1 not in pipes.answers
        pipes.process.send_signal(signal.SIGTERM)
    assert pipes.answer(1)["result"]["structuredContent"]["status"] == "success"
    code, _, err = pipes.rest()
    assert (code, err) == (0, "")
    with recollect.open(tmp_path) as opened:
        memory = opened.user("u1")
        assert texts(memory) == ["Has the lock", "Likes tea"]
        (call,) = memory.calls()
        assert (call.tool, call.status, call.agent) == ("memory_save", "ok", "bare pipes")
        assert memory.verify() == []


def test_U4_what_the_client_cancels_is_not_answered_and_ends_in_the_journal(pipes: Pipes, tmp_path: Path) -> None:
    pipes.initialize()
    pipes.send({"id": 9, "method": "tools/list"})
    pipes.answer(9)  # the tools are there: a call is logged from its beginning
    with recollect.open(tmp_path) as opened:
        memory = opened.user("u1")
        with memory.batch() as held:
            held.note("Has the lock")
            pipes.send(pipes.call(1, "memory_save", content="Likes tea"), {"id": 2, "method": "ping"})
            pipes.answer(2)
            pipes.send(
                {"method": "notifications/cancelled", "params": {"requestId": 1}},
                {"id": 3, "method": "ping"},
            )
            pipes.answer(3)
        pipes.send(pipes.call(4, "memory_save", content="Likes coffee"))
        pipes.answer(4)
        # the cancelled call had begun, or had not; the log knows, and the memory agrees
        outcome = until(
            lambda: (
                {call.outcome for call in memory.calls(tool="memory_save")} & {"written", "not begun"}
                and {call.outcome for call in memory.calls(tool="memory_save") if call.status == "timeout"}
                - {"running"}
            ),
            "the log tells the end of the call",
        )
        assert texts(memory) == ["Has the lock", "Likes coffee", *["Likes tea"] * ("written" in outcome)]
    code, _, err = pipes.rest()
    assert (code, err) == (0, "")
    assert 1 not in pipes.answers


def test_U4_over_http_a_signal_lets_the_running_call_finish(tmp_path: Path) -> None:
    with web(tmp_path, "--user", "u1") as server:
        session = server.open_session()
        # nobody is asked for a token here: only the name keeps web pages out
        for name in ("evil.example", f"127.0.0.1.evil.example:{server.port}"):
            assert server.post({"id": 1, "method": "ping"}, Host=name, Mcp_Session_Id=session)[0] == 421
        assert server.post({"id": 1, "method": "ping"}, Origin="null", Mcp_Session_Id=session)[0] == 403
        stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT)
        stream.request("GET", "/mcp", headers={"Accept": "text/event-stream", "Mcp-Session-Id": session})
        assert stream.getresponse().status == 200  # would be open for ever
        params = {"name": "memory_save", "arguments": {"content": "Likes tea"}}
        with recollect.open(tmp_path) as opened, opened.user("u1").batch() as held:
            held.note("Has the lock")
            link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT)
            body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
            plain = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            link.request("POST", "/mcp", body, plain | {"Mcp-Session-Id": session})
            for _ in range(3):  # what came before these has been read
                assert server.post({"id": 1, "method": "ping"}, Mcp_Session_Id=session)[0] == 200
            server.process.send_signal(signal.SIGTERM)
        answer = link.getresponse()
        assert answer.status == 200
        assert json.loads(answer.read())["result"]["structuredContent"]["status"] == "success"
        assert server.process.wait(WAIT) == 0
        link.close()
        stream.close()
        assert [line for line in server.log if "Invalid Host" not in line and "Invalid Origin" not in line] == []
    with recollect.open(tmp_path) as opened:
        (call,) = opened.user("u1").calls()
        assert (call.tool, call.status, call.session) == ("memory_save", "ok", session)


@pytest.mark.slow
def test_U4_servers_on_one_folder_see_each_other_and_a_restart_loses_nothing(tmp_path: Path) -> None:
    async def check() -> None:
        async with (
            by_stdio(tmp_path, "--user", "u1", name="one") as one,
            by_stdio(tmp_path, "--user", "u1", name="two") as two,
        ):
            saved = await one.call_tool("memory_save", {"content": "Likes tea"})
            note_id = (saved.structured_content or {})["note_id"]
            assert note_id in said(await two.call_tool("memory_search", {"query": "tea"}))
            await two.call_tool("memory_update", {"note_id": note_id, "content": "Likes green tea"})
            assert "green" in said(await one.call_tool("memory_search", {"query": "tea"}))
            both = await asyncio.gather(
                *(client.call_tool("memory_save", {"content": f"{name} saw heron {number} at pond {name}{number}"})
                  for client, name in ((one, "Anna"), (two, "Bert")) for number in range(5))
            )  # fmt: skip
            assert not [said(answer) for answer in both if answer.is_error]
        async with by_stdio(tmp_path, "--user", "u1") as again:
            assert "green" in said(await again.call_tool("memory_search", {"query": "tea"}))
        async with by_stdio(tmp_path, "--user", "u2") as stranger:
            assert json.loads(said(await stranger.call_tool("memory_search", {"query": "tea"}))) == []

    asyncio.run(check())
    with recollect.open(tmp_path) as opened:
        assert opened.user("u1").verify() == []
        assert {entry.after.agent for entry in opened.user("u1").history() if entry.after} == {"one", "two"}


def test_help_does_not_load_the_sdk() -> None:
    code = "import sys\nfrom recollect.surfaces.cli import main\ntry:\n    main()\nfinally:\n    print({'mcp', 'mcp_types', 'uvicorn'} & set(sys.modules))"
    for args in (["--help"], ["mcp", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *args], capture_output=True, text=True, env=environment(), check=True
        )
        assert done.stdout.splitlines()[-1] == "set()"


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    result = CliRunner().invoke(app, ["mcp", "--root", str(tmp_path)])
    assert result.exit_code == 2
    assert "recollect[mcp]" in result.stderr


# another client

INSPECTOR = "0.15.0"


@pytest.mark.slow
def test_U4_the_inspector_can_use_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("node and npm are not installed")
    cache = getattr(request.config, "cache", None)
    folder = tmp_path / "inspector" if cache is None else cache.mkdir(f"mcp-inspector-{INSPECTOR}")
    script = folder / "node_modules/@modelcontextprotocol/inspector-cli/build/index.js"
    if not script.exists():
        package = f"@modelcontextprotocol/inspector-cli@{INSPECTOR}"
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        try:
            done = subprocess.run(
                [npm, "install", "--prefix", str(folder), package, *options], capture_output=True, timeout=90
            )
        except subprocess.TimeoutExpired:
            pytest.skip("npm takes too long to install the inspector")
        if done.returncode:
            pytest.skip("npm cannot install the inspector here")

    def inspect(*args: str) -> Any:
        server = [*PROGRAM, "mcp", "--root", str(tmp_path / "memory"), "--user", "u1"]
        # the inspector reads a dash after its own options as one of them: the program goes through a script
        starter = tmp_path / "server"
        starter.write_text("#!/bin/sh\nexec " + " ".join(f"'{part}'" for part in server) + "\n")
        starter.chmod(0o700)
        command = [node, str(script), str(starter), "--method", *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert [tool["name"] for tool in inspect("tools/list")["tools"]] == [tool.name for tool in tools_of(["notes"])]
    saved = inspect("tools/call", "--tool-name", "memory_save", "--tool-arg", "content=Likes tea")
    assert saved["structuredContent"]["status"] == "success"
    read = inspect("resources/read", "--uri", "memory://context")
    assert "text" in read["contents"][0]
    with recollect.open(tmp_path / "memory") as opened:
        assert texts(opened.user("u1")) == ["Likes tea"]
