"""The event loop of a host is never held up by memory: proved by what goes on while memory has to wait.

A gate before the store is shut, something is awaited, and while a thread stands at the gate the loop does other things;
what was awaited is done only after the gate is opened. Meanwhile a watch on the thread of the loop sees every function
that is called in it: nothing that reads, writes, searches or judges a memory may be among them.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import re
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp import Client
from numpy.typing import NDArray

import recollect
from recollect import AsyncMemory, Config, ExtractionRun, Recollect
from recollect.errors import RecollectError
from recollect.memory.async_memory import in_thread
from recollect.records import CONSENTS, OBSERVATION_CATEGORIES
from recollect.surfaces.mcp.authentication import McpCaller, RejectedCaller
from recollect.surfaces.mcp.http import Mcp
from recollect.surfaces.mcp.server import MemoryServer
from recollect.testing import MemoryStore
from recollect.testing.embedding import HashEmbedder
from recollect.tools.catalog import tools_of
from recollect.tools.wire import aanswer

PACKAGE = f"{Path(recollect.__file__).parent}/"
PATIENCE = 60.0
"""How long to wait for what must happen, in seconds; nothing is asserted about how fast it was."""
MEGABYTE = "The quick brown fox prefers tea. " * 32_000
VERBS = [name for name, _ in inspect.getmembers(AsyncMemory, inspect.iscoroutinefunction)]


class Gate:
    """Where threads wait while it is shut."""

    def __init__(self) -> None:
        self.passed_on_loop = 0
        """How often somebody came by in the thread of the event loop, who cannot wait."""
        self._open = threading.Event()
        self._open.set()

    def pass_by(self) -> None:
        """What has to wait comes by here."""
        if self._open.is_set():
            return
        if threading.current_thread() is threading.main_thread():
            self.passed_on_loop += 1
        else:
            self._loop.call_soon_threadsafe(self._came.set)
            assert self._open.wait(PATIENCE)

    @contextmanager
    def shut(self) -> Iterator[asyncio.Event]:
        """Until the end of the block; the event is set when somebody waits."""
        self._loop, self._came = asyncio.get_running_loop(), asyncio.Event()
        self._open.clear()
        try:
            yield self._came
        finally:
            self._open.set()


class GatedStore:
    """A store with a gate before everything that is of a user."""

    def __init__(self, gate: Gate) -> None:
        self._gate, self._store = gate, MemoryStore()

    def user(self, user_id: str) -> Any:
        return _GatedUser(self._store.user(user_id), self._gate)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _GatedUser:
    def __init__(self, user: Any, gate: Gate) -> None:
        self._user, self._gate = user, gate

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._user, name)
        if name not in ("read", "write", "exists", "check", "repair"):
            return inner

        def gated(*args: Any) -> Any:
            self._gate.pass_by()
            return inner(*args)

        return gated


# what is called in the thread of the loop

HARMLESS = re.compile(
    r"memory/(async_memory|thread_pool)\.py:"
    r"|memory/read_verbs\.py:user_id$|memory/user_memory\.py:(check_no_batch|has_batch_here)$"
    r"|tools/(suite|active_call|parameters|tool|workers|formatting|results|deferred)\.py:|tools/wire/|tools/log\.py:(add|__init__)$"
    r"|surfaces/mcp/(server|subscriptions|http)\.py:|surfaces/mcp/resources\.py:(?!listed|read|context)"
    r"|(records|ids|times|errors|userid)\.py:"
)
"""Functions of ours that may be called there: they hand over, or are done with a few names and numbers."""
HANDING = re.compile(
    r"memory/(async_memory|thread_pool)\.py:|tools/suite\.py:(acall|_is_short)$|tools/wire/answers\.py:"
)
LONG = 10_000
FILES = {"open", "stat", "lstat", "read", "write", "fsync", "fdatasync", "replace", "rename", "unlink", "listdir"}
FILES |= {"scandir", "mkdir", "rmdir", "utime", "link"}


class Watch:
    """Every function of ours that the thread of the loop calls, and every system call that one of them makes."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.system: list[str] = []
        self.burdened: list[str] = []
        """Who of ours was given something long, besides those who only hand it over."""

    @property
    def heavy(self) -> list[str]:
        """What has no place there."""
        return [name for name in dict.fromkeys(self.called) if not HARMLESS.match(name)] + self.system

    def __enter__(self) -> Watch:
        gc.disable()  # what earlier tests left would be finalised in whatever thread happens to collect it
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        gc.enable()

    def _see(self, frame: Any, event: str, what: Any) -> None:
        if event == "call":
            if (name := _ours(frame)) is not None:
                self.called.append(name)
                if not HANDING.match(name) and any(_is_long(value) for value in frame.f_locals.values()):
                    self.burdened.append(name)
        elif event == "c_call" and _is_system(what) and (name := _caller_of_ours(frame)) is not None:
            self.system.append(f"{what.__qualname__} for {name}")


def _ours(frame: Any) -> str | None:
    path: str = frame.f_code.co_filename
    return f"{path.removeprefix(PACKAGE)}:{frame.f_code.co_name}" if path.startswith(PACKAGE) else None


def _is_long(value: Any) -> bool:
    return len(value) > LONG if isinstance(value, str | bytes | list | tuple | dict) else False


def _caller_of_ours(frame: Any) -> str | None:
    """Who of ours wanted it; None if it is the event loop or the test itself."""
    while frame is not None and "asyncio" not in frame.f_code.co_filename:
        if (name := _ours(frame)) is not None and "testing" not in name:
            return name
        frame = frame.f_back
    return None


def _is_system(function: Any) -> bool:
    module = function.__module__ or type(function.__self__).__module__
    name = function.__name__
    return (
        module.startswith(("sqlite3", "psycopg", "_sqlite3", "fcntl", "_ssl"))
        or (module in ("posix", "nt") and name in FILES)
        or (module in ("io", "_io") and name in ("open", "open_code", "read", "write", "readline"))
        or (module in ("_socket", "socket") and name in ("connect", "sendall", "recv", "getaddrinfo"))
        or (module == "time" and name == "sleep")
    )


def test_the_watch_sees_what_it_should(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app, Watch() as watch:
        app.user("u1").remember("Likes tea")
    assert {"store/sqlite.py:write", "memory/memory.py:remember"} <= set(watch.heavy)
    assert [name for name in watch.heavy if "policy/" in name] and [name for name in watch.heavy if "search/" in name]
    assert {"execute", "open", "stat"} <= {name.split(" ")[0].split(".")[-1] for name in watch.system}


# waiting at the gate


async def waited(gate: Gate, begin: Callable[[], Awaitable[Any]], meanwhile: Callable[[], Awaitable[Any]]) -> Any:
    """Whatever it gives that had to wait at the gate while something else was done."""
    with gate.shut() as came, Watch() as watch:
        doing, standing = asyncio.ensure_future(begin()), asyncio.ensure_future(came.wait())
        await asyncio.wait([doing, standing], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        assert standing.done(), f"nobody came to the gate: {doing}"
        await asyncio.wait_for(meanwhile(), PATIENCE)
        assert not doing.done(), f"it did not wait: {doing}"
    try:
        return await asyncio.wait_for(doing, PATIENCE)
    except RecollectError as error:
        return error
    finally:
        assert gate.passed_on_loop == 0 and watch.heavy == []


async def turn() -> None:
    """The loop goes round, and a thread of the host's own is to be had."""
    for _ in range(20):
        await asyncio.sleep(0)
    assert await asyncio.to_thread(lambda: "free") == "free"


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def app(gate: Gate, tmp_path: Path) -> Iterator[Recollect]:
    store: Any = GatedStore(gate)
    with Recollect(store, Config.load(), folder=tmp_path / "files") as app:
        memory = app.user("u1")
        for key, text in (("drink", "Tea"), ("food", "Noodles")):
            memory.remember(text, key=key, category="preference")
        memory.say("Hello", session="s1")
        memory.jot("Had tea")
        memory.export(tmp_path / "before.zip")
        yield app


def _arguments(verb: str, tmp_path: Path) -> tuple[list[Any], dict[str, Any]]:
    """Something for each argument that must be given, by its name; what a new verb takes has to be added here."""
    known: dict[str, Any] = {
        "content": "Likes coffee", "text": "# Memory\n", "topic": "tea", "summary": "They had tea", "query": "tea",
        "ref": "drink", "refs": ["drink", "food"], "key": "draft", "value": "some text", "number": 1, "kind": "save",
        "events": [{"kind": "save", "title": "Tea"}], "items": ["Tea in Japan"], "until": datetime.now(timezone.utc),
        "path": tmp_path / ("before.zip" if verb == "import_" else "after.zip"), "operation": "test",
        "category": OBSERVATION_CATEGORIES[0], "name": CONSENTS[0], "messages": ["message-1"], "level": "high",
        "run": ExtractionRun(id="run-1", day=date.today(), started_at=datetime.now(timezone.utc)), "ids": ["drink"],
    }  # fmt: skip
    args: list[Any] = []
    given: dict[str, dict[str, Any]] = {
        "say": {"session": "s1"},
        "report": {"title": "Tea"},
        "remember_fil": {"lessons": ["Tea is hot"]},
    }
    named = given.get(verb, {})
    for name, parameter in list(inspect.signature(getattr(AsyncMemory, verb)).parameters.items())[1:]:
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += known[name]
        elif parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            args.append(known[name])
        elif parameter.default is parameter.empty:
            named[name] = known[name]
    return args, named


@pytest.mark.everyday(20)
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("notices", "embed")])
def test_W1_whatever_is_awaited_of_a_memory_the_loop_goes_on(
    verb: str, app: Recollect, gate: Gate, tmp_path: Path
) -> None:
    args, named = _arguments(verb, tmp_path)

    async def main() -> None:
        memory = AsyncMemory(app.user("u1"))
        await waited(gate, lambda: getattr(memory, verb)(*args, **named), turn)

    asyncio.run(main())


def test_W1_what_needs_no_store_does_not_wait_for_it(app: Recollect, gate: Gate) -> None:
    async def main() -> None:
        memory = AsyncMemory(app.user("u1"))
        with gate.shut(), Watch() as watch:
            assert await asyncio.wait_for(memory.notices(), PATIENCE) == []
        assert watch.heavy == []

    asyncio.run(main())


class _GatedEmbedder(HashEmbedder):
    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self._gate.pass_by()
        return super().embed(texts)


def test_W1_a_slow_embedder_does_not_hold_up_the_loop(tmp_path: Path, gate: Gate) -> None:
    async def main() -> None:
        with recollect.open(tmp_path, embedder=_GatedEmbedder(gate), embedder_timeout_ms=60_000) as app:
            memory = AsyncMemory(app.user("u1"))
            await memory.remember("Likes tea")
            assert await memory.embed() >= 0
            assert (await waited(gate, lambda: memory.search("What do I like to drink?"), turn))[0].record.content

            async def embed_what_is_new() -> int:
                await memory.remember("Likes noodles")
                return await memory.embed()

            assert await waited(gate, embed_what_is_new, turn) >= 0

    asyncio.run(main())


# tools


def _example(schema: dict[str, Any]) -> Any:
    """Something that fits a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type", "string"):
        case "object":
            return {name: _example(schema["properties"][name]) for name in schema.get("required", ())}
        case "array":
            return [_example(schema.get("items", {}))] * schema.get("minItems", 1)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
    return "tea"


@pytest.mark.everyday(15)
@pytest.mark.parametrize("tool", [tool.name for tool in tools_of(())])
def test_W1_whatever_tool_is_awaited_the_loop_goes_on(tool: str, app: Recollect, gate: Gate) -> None:
    async def main() -> None:
        suite = app.tools("u1", session="s1", fixed_user=True)
        result = await waited(gate, lambda: suite.acall(tool, _example(suite.schema(tool))), turn)
        assert result.tool == tool and result.status != "timeout"

    asyncio.run(main())


def test_W1_the_calls_of_a_response_are_awaited_one_after_the_other_beside_the_loop(app: Recollect, gate: Gate) -> None:
    calls = [
        {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "memory_save", "arguments": f'{{"content": "{n} tea"}}'},
        }
        for n in range(2)
    ]
    response = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]}

    async def main() -> None:
        suite = app.tools("u1", "notes", session="s1")
        answered = await waited(gate, lambda: aanswer(suite, response, "openai"), turn)
        assert [result.status for _, result in answered.ours] == ["ok", "ok"]

    asyncio.run(main())


# other users, and the host's own threads


def _open(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Recollect:
    if kind == "sqlite":
        return recollect.open(tmp_path)
    return recollect.open(request.getfixturevalue("postgres_tables"))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_W1_a_locked_memory_holds_up_neither_the_loop_nor_other_users(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    async def main() -> None:
        with _open(kind, request, tmp_path) as app:
            locked, other = AsyncMemory(app.user("locked")), AsyncMemory(app.user("other"))
            await locked.remember("Likes tea")
            with app.user("locked").batch(), Watch() as watch:  # the lock of the store itself, held by this thread
                writing = [asyncio.ensure_future(locked.remember(f"Likes tea number {n}")) for n in range(20)]
                assert (await asyncio.wait_for(other.remember("Likes coffee"), PATIENCE)).done
                assert await asyncio.wait_for(other.search("coffee"), PATIENCE)
                await turn()
                assert not any(one.done() for one in writing)
            assert watch.heavy == []
            assert all(outcome is not None for outcome in await asyncio.wait_for(asyncio.gather(*writing), PATIENCE))

    asyncio.run(main())


def test_W1_what_was_cancelled_before_it_began_is_never_done(app: Recollect, gate: Gate) -> None:
    async def main() -> None:
        memory = AsyncMemory(app.user("u1"))
        with gate.shut() as came:
            begun = [asyncio.ensure_future(memory.note(f"Note number {n}")) for n in range(8)]
            late = asyncio.ensure_future(memory.note("A note too late"))
            await asyncio.wait_for(came.wait(), PATIENCE)
            late.cancel()
            with pytest.raises(asyncio.CancelledError):
                await late
        await asyncio.gather(*begun)
        assert sorted(one.content for one in await memory.read(kind="note")) == [f"Note number {n}" for n in range(8)]

    asyncio.run(main())


def test_W1_work_is_done_in_the_context_of_who_awaits_it() -> None:
    from contextvars import ContextVar

    trace: ContextVar[str] = ContextVar("trace", default="none")

    async def main() -> None:
        trace.set("of the host")
        assert await in_thread("u1", trace.get) == "of the host"

    asyncio.run(main())


# the size of what is said


@pytest.mark.parametrize("verb", ["remember", "note", "say", "jot", "search", "context"])
def test_W1_a_megabyte_is_no_more_work_for_the_loop_than_a_word(verb: str, app: Recollect) -> None:
    async def calls(text: str) -> list[str]:
        memory = AsyncMemory(app.user("u1"))
        with Watch() as watch:
            try:
                await getattr(memory, verb)(text)
            except RecollectError:
                pass  # too long, which is for a thread to find out
        assert watch.heavy == watch.burdened == []
        # how often a coroutine goes on depends on who is quicker
        return [name for name in watch.called if not name.startswith("memory/async_memory.py")]

    async def main() -> None:
        assert await calls("tea") == await calls(MEGABYTE)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_save", {"content": MEGABYTE}),
        ("memory_save", json.dumps({"content": MEGABYTE})),
        ("memory_save", {f"argument {number}": "tea" for number in range(20_000)}),
        ("memory_" * 100_000, {}),
    ],
    ids=["a long text", "long JSON", "many arguments", "a long name"],
)
def test_W1_long_arguments_are_read_beside_the_loop(tool: str, arguments: Any, app: Recollect) -> None:
    async def main() -> None:
        suite = app.tools("u1", "notes", session="s1")
        with Watch() as watch:
            await suite.acall(tool, arguments)
        assert watch.heavy == watch.burdened == [] and len(watch.called) < 1_000

    asyncio.run(main())


# the MCP server

_Asks = Callable[[Client], Awaitable[Any]]
REQUESTS: dict[str, _Asks] = {
    "call a tool": lambda client: client.call_tool("memory_save", {"content": "Likes coffee"}),
    "list resources": lambda client: client.list_resources(),
    "read MEMORY.md": lambda client: client.read_resource("memory://MEMORY.md"),
    "read the context": lambda client: client.read_resource("memory://context/tea"),
    "read a day": lambda client: client.read_resource(f"memory://daily/{date.today()}"),
    "get a prompt": lambda client: client.get_prompt("what_do_you_know", {"topic": "tea"}),
    "subscribe": lambda client: client.subscribe_resource("memory://MEMORY.md"),
}


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
@pytest.mark.parametrize("asked", REQUESTS)
def test_W1_U4_the_server_answers_others_while_a_request_waits(asked: str, app: Recollect, gate: Gate) -> None:
    async def main() -> None:
        server = MemoryServer(app, lambda _: McpCaller("u1"))
        async with Client(server.server, mode="legacy") as client:

            async def others() -> None:
                assert (await client.list_prompts()).prompts
                assert len((await client.list_tools()).tools) == 4
                await turn()

            answer = await waited(gate, lambda: REQUESTS[asked](client), others)
            assert not isinstance(answer, Exception)

    asyncio.run(main())


def test_W1_U4_who_calls_is_found_out_beside_the_loop(gate: Gate) -> None:
    class Slow:
        def caller(self, headers: Any) -> RejectedCaller:
            gate.pass_by()
            return RejectedCaller(401, "a bearer token is required")

    async def main() -> None:
        door, sent = Mcp(recollect.open(MemoryStore()), Slow(), []), list[Any]()

        async def receive() -> Any:
            raise AssertionError("a stranger is not listened to")

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": []}
        await waited(gate, lambda: door(scope, receive, send), turn)
        assert sent[0]["status"] == 401

    asyncio.run(main())
