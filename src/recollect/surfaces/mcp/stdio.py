"""MCP over standard input and output: one client, one user. Nothing else is written to standard output.

The SDK's transport waits for its reading thread when it ends, and drops running requests when the input ends. So a
reader of our own provides the lines, and passes on the end of input once everything is answered.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Self, cast

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from recollect.app import Recollect
from recollect.surfaces.mcp.authentication import McpCaller
from recollect.surfaces.mcp.server import MemoryServer
from recollect.surfaces.shutdown import on_signals

_LONGEST_LINE = 16 * 1024 * 1024
_MOST_WAITING = 64
_LONGEST_CALL = 60.0


def run_stdio(app: Recollect, caller: McpCaller) -> None:
    """Serve until the client disconnects or a signal arrives."""
    asyncio.run(_serve_stdio(MemoryServer(app, lambda _: caller)))


async def _serve_stdio(memory: MemoryServer) -> None:
    lines = _StdinLines()
    open_ = _PendingRequests(memory.changes.close)
    try:
        with anyio.CancelScope() as scope, on_signals(lines.stop, scope.cancel):
            lines.start()
            async with stdio_server(stdin=cast(Any, lines)) as (read, write):
                options = memory.server.create_initialization_options()
                writing = _Writing(write, open_)
                await memory.server.run(_Reading(read, open_, lines, writing), writing, options)
    except* ConnectionError:
        pass  # the client is gone


class _StdinLines:
    """Reads the lines of standard input in a daemon thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[str] = deque()
        self._room = threading.Semaphore(_MOST_WAITING)
        self._came = asyncio.Event()
        self._ended = False
        self.given: deque[str] = deque()
        """The lines that were given out. The SDK makes one message or error of each, in the same order."""

    def start(self) -> None:
        """Start reading. The thread uses the bare descriptor, so at exit it holds no lock that Python waits for."""
        threading.Thread(target=self._read, args=(os.dup(0),), name="recollect-stdin", daemon=True).start()

    def stop(self) -> None:
        """End the input here."""
        self._waiting.clear()
        self._end()

    def __aiter__(self) -> _StdinLines:
        return self

    async def __anext__(self) -> str:
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._came.clear()
            await self._came.wait()
        self._room.release()
        self.given.append(self._waiting.popleft())
        return self.given[-1]

    def _read(self, descriptor: int) -> None:
        rest = bytearray()
        try:
            while data := os.read(descriptor, 65536):
                searched = len(rest)
                rest += data
                while (end := rest.find(b"\n", searched)) >= 0:
                    self._give(rest[:end])
                    del rest[: end + 1]
                    searched = 0
                if len(rest) > _LONGEST_LINE:
                    break
            else:
                self._give(rest)
        except OSError:
            pass  # treated as the end
        except RuntimeError:
            return  # the loop is closed
        try:
            self._loop.call_soon_threadsafe(self._end)
        except RuntimeError:
            pass

    def _give(self, line: bytearray) -> None:
        if line.strip():
            self._room.acquire()
            self._loop.call_soon_threadsafe(self._add, line.decode("utf-8", errors="replace"))

    def _add(self, line: str) -> None:
        if not self._ended:
            self._waiting.append(line)
            self._came.set()

    def _end(self) -> None:
        self._ended = True
        self._came.set()


class _PendingRequests:
    """The requests without a response yet."""

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close
        self._ids: set[str] = set()
        self._all_answered = asyncio.Event()
        self._all_answered.set()

    def came(self, item: SessionMessage | Exception) -> None:
        """Note a message from the client."""
        match item:
            case SessionMessage(message=JSONRPCRequest(id=number)):
                self._ids.add(str(number))
                self._all_answered.clear()
            case SessionMessage(message=JSONRPCNotification(method="notifications/cancelled", params=params)):
                self._settle(str((params or {}).get("requestId")))  # a cancelled request gets no response

    def went(self, item: SessionMessage) -> None:
        """Note a message to the client."""
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._settle(str(item.message.id))

    async def settled(self) -> None:
        """Wait until everything is answered. Calls end by themselves; open streams are closed."""
        self._close()
        with anyio.move_on_after(_LONGEST_CALL):
            await self._all_answered.wait()

    def _settle(self, number: str) -> None:
        self._ids.discard(number)
        if not self._ids:
            self._all_answered.set()


class _Stream:
    """A stream of the SDK, of which it is noted what passes."""

    def __init__(self, inner: Any, unanswered: _PendingRequests) -> None:
        self._inner = inner
        self._unanswered = unanswered

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Reading(_Stream):
    """The incoming stream. Its end is passed on once everything is answered.

    A line that the SDK cannot read is answered here: the SDK would only log it, and the client would wait forever.
    """

    def __init__(self, inner: Any, unanswered: _PendingRequests, lines: _StdinLines, out: _Writing) -> None:
        super().__init__(inner, unanswered)
        self._lines = lines
        self._out = out

    @property
    def last_context(self) -> Any:
        return self._inner.last_context

    def __aiter__(self) -> _Reading:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            item: SessionMessage | Exception = await self._inner.__anext__()
        except StopAsyncIteration:
            await self._unanswered.settled()
            raise
        line = self._lines.given.popleft()
        if isinstance(item, Exception) and (problem := _problem_with(line)) is not None:
            await self._out.send(SessionMessage(problem))
        self._unanswered.came(item)
        return item

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None


class _Writing(_Stream):
    """The outgoing stream."""

    async def send(self, item: SessionMessage, /) -> None:
        if not _is_writable(item):
            if not isinstance(item.message, JSONRPCResponse | JSONRPCError):
                return  # a notification that nobody waits for
            item = SessionMessage(_error(item.message.id, INTERNAL_ERROR, "the answer contains half a character"))
        await self._inner.send(item)
        self._unanswered.went(item)


def _is_writable(item: SessionMessage) -> bool:
    """Return False for a message that would end the SDK's writer: one with a lone surrogate."""
    try:
        item.message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError:
        return False
    return True


def _problem_with(line: str) -> JSONRPCError | None:
    """Return the answer to a line that the SDK cannot read; None if it is a notification."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "the line is not JSON")
    number = told.get("id") if isinstance(told, dict) else None
    if isinstance(told, dict) and "method" in told and "id" not in told:
        return None
    try:
        json.dumps(told, ensure_ascii=False).encode()
        reason = "the line is not a JSON-RPC message"
    except (UnicodeEncodeError, RecursionError) as error:
        half = isinstance(error, UnicodeEncodeError)
        reason = "a text contains half a character (a lone surrogate)" if half else "the line is nested too deeply"
    return _error(number, INVALID_REQUEST, reason)


def _error(number: object, code: int, reason: str) -> JSONRPCError:
    usable = type(number) is int or (isinstance(number, str) and number.isprintable())
    return JSONRPCError(
        jsonrpc="2.0", id=cast("int | str", number) if usable else None, error=ErrorData(code=code, message=reason)
    )
