"""Where a server listens, by which names it may be called, and how it ends: for everything that is served over HTTP."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from recollect.errors import InvalidInputError, StoreError

LOGGER = logging.getLogger("recollect.http")

_BACKLOG = 2048
_AT_ONCE = 16
"""How many connections are accepted in one go; asyncio tries as often even if no more files can be opened."""
_TOLD_SECONDS = 10.0
"""How often it is said that connections are refused."""
_LONGEST_CALL = 60
_IDLE_SECONDS = 75
"""How long a connection may wait for its next request: longer than the minute after which most proxies close theirs."""
_MOST_HEAD = 64 * 1024
"""How much of a head is read before it is complete, in bytes."""
_LOOK_SECONDS = 5.0
"""How often it is looked whether those who are waited for go on."""
_LOOKS_HEAD, _LOOKS_BODY, _LOOKS_ANSWER = 2, 8, 4
"""How often in a row they may be found not to."""
_LEAST = 4 * 1024
"""So many bytes from one look to the next are going on."""
_WANTED_FILES = 65536
_NO_ROOM = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen."""

    host: str
    port: int
    family: int
    is_loopback: bool
    is_any: bool

    @classmethod
    def parse(cls, text: str, option: str = "address") -> Address:
        """Read ``PORT`` or ``HOST:PORT``; an IPv6 address is in brackets. ``option`` is what it was given as."""
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
        if not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise InvalidInputError(option, f"{text!r} is not PORT or HOST:PORT")
        try:
            found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise InvalidInputError(option, f"{host!r} is no address of this machine") from None
        found.sort(key=lambda entry: entry[0] != socket.AF_INET)  # localhost is 127.0.0.1 first
        addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
        return cls(
            host=str(found[0][4][0]),
            port=int(port),
            family=int(found[0][0]),
            is_loopback=all(address.is_loopback for address in addresses),
            is_any=any(address.is_unspecified for address in addresses),
        )

    @property
    def shown(self) -> str:
        """The host as it stands in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def listen(self) -> socket.socket:
        """A socket that connections are accepted on."""
        bound = socket.socket(
            socket.AddressFamily(self.family), socket.SOCK_STREAM, socket.IPPROTO_TCP
        )  # named, or asyncio would leave Nagle on
        try:
            if sys.platform != "win32":  # where it would let another program take the port over
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((self.host, self.port))
            bound.listen(_BACKLOG)
        except OSError as error:
            bound.close()
            raise StoreError(f"cannot listen on {self.shown}:{self.port}: {error.strerror}") from None
        return bound

    def names(self, more: Sequence[str] = ()) -> list[str]:
        """By which names, with any port, the server may be called: a web page cannot call it by a name of its own."""
        own = _LOOPBACK if self.is_loopback else () if self.is_any else (self.shown,)
        return [entry for name in (*own, *more) for entry in (name, f"{name}:*")]


class Listener:
    """Serves an application at an address. A stop finishes what was accepted."""

    def __init__(self, app: ASGIApp, address: Address) -> None:
        self._app = app
        self._address = address
        self._server: _Uvicorn | None = None

    async def serve(self, listening: Callable[[int], None] = lambda port: None) -> None:
        """Serve until `stop`; ``listening`` is told the port as soon as there is one."""
        with self._address.listen() as bound, _told_plainly():
            # inherited by what is accepted: else the end of an answer waits until its beginning is acknowledged
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._server = _Uvicorn(
                uvicorn.Config(
                    self._app,
                    http=type("_Protocol", (_Patient,), {"most": raised_file_limit() // 2}),
                    log_config=None,
                    access_log=False,
                    server_header=False,
                    proxy_headers=False,
                    ws="none",
                    lifespan="on",
                    backlog=_AT_ONCE,
                    timeout_keep_alive=_IDLE_SECONDS,
                    timeout_graceful_shutdown=_LONGEST_CALL,
                )
            )
            listening(bound.getsockname()[1])
            await self._server.serve([bound])

    def stop(self) -> None:
        """Finish what was accepted, and end. Called in the event loop."""
        if self._server is not None:
            self._server.should_exit = True

    def give_up(self) -> None:
        """End at once."""
        if self._server is not None:
            self._server.force_exit = True


def raised_file_limit() -> int:
    """How many files and connections this process may have open, once that is as many as it may ask for."""
    try:
        import resource
    except ImportError:  # Windows
        return _WANTED_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, _WANTED_FILES)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return _WANTED_FILES if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


@contextmanager
def _told_plainly() -> Iterator[None]:
    """What goes wrong around requests, in a sentence of ours: what others raise may hold what a person said."""
    loop = asyncio.get_running_loop()
    others = logging.getLogger("uvicorn.error")
    said = -_TOLD_SECONDS

    def trouble(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal said
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            if loop.time() - said >= _TOLD_SECONDS:
                said = loop.time()
                LOGGER.error("no connection can be accepted: too many files are open; raise the limit (ulimit -n)")
        else:
            LOGGER.error("%s: %s", context.get("message"), type(error).__name__)

    def without_trace(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[0]:
            record.msg, record.args = f"a request failed: {record.exc_info[0].__name__}", ()
            record.exc_info = None
        return True

    before = loop.get_exception_handler()
    loop.set_exception_handler(trouble)
    others.addFilter(without_trace)
    try:
        yield
    finally:
        loop.set_exception_handler(before)
        others.removeFilter(without_trace)


class _Uvicorn(uvicorn.Server):
    """Without its signal handlers, which end the process as the signal would have."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(_BACKLOG)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Patient(HttpToolsProtocol):
    """Lets those go who begin a request and do not go on, or do not take what they asked for."""

    most = 0
    """How many connections there may be; the rest of the files is for the memories."""
    said = -_TOLD_SECONDS
    """When it was said last that there are more."""
    _part = b""
    """What came last."""
    _came = 0
    """How much came since it was looked the last time, and in a head that is not complete."""
    _head = 0
    _left = 0
    """How much of an answer was not taken, when it was looked the last time."""
    _looks = 0
    _is_head_whole = _is_whole = False
    _running: RequestResponseCycle | None = None
    _looking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            if self.loop.time() - type(self).said >= _TOLD_SECONDS:
                type(self).said = self.loop.time()
                LOGGER.warning("more than %d connections: raise the limit of open files (ulimit -n)", self.most)
            transport.write(_NO_ROOM)
            transport.close()
        self._looking = self.loop.call_later(_LOOK_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            # the base class tells only the last of those that were sent at once
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._came += len(data)
        for start in range(0, len(data), _MOST_HEAD):
            self._part = data[start : start + _MOST_HEAD]
            super().data_received(self._part)
            if self.transport.is_closing():
                return
            self._head = 0 if self._is_head_whole else self._head + len(self._part)
            if self._head > _MOST_HEAD:
                self.send_400_response("The head of the request is too large.")
                return

    def on_message_begin(self) -> None:
        self._is_head_whole = self._is_whole = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_head_whole = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_whole = True
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def send_400_response(self, msg: str) -> None:
        """What was asked before it on the same connection is answered first, and nothing after it."""
        running = self._running
        if running is None or running.response_complete or running.more_body:
            super().send_400_response(msg)
        else:
            self.pipeline.clear()
            running.keep_alive = False
            self.flow.pause_reading()

    # those who want to speak something else

    def _should_upgrade(self) -> bool:
        return True  # by `handle_websocket_upgrade`

    def handle_websocket_upgrade(self) -> None:
        """We speak nothing else. The request is read again without that wish, for which its body was not read."""
        error = sys.exception()
        if self.scope["method"] == "CONNECT" or not isinstance(error, httptools.HttpParserUpgrade):
            self.send_400_response("This is no proxy.")
            return
        head = f"{self.scope['method']} {self.url.decode('latin-1')} HTTP/{self.scope['http_version']}\r\n".encode(
            "latin-1"
        )
        lines = [b"%s: %s\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        rest = self._part[error.args[0] :]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(b"".join([head, *lines, b"\r\n", rest]))

    # those who are slow

    def _look(self) -> None:
        """Let go of who has not gone on for a while."""
        self._looking = self.loop.call_later(_LOOK_SECONDS, self._look)
        left = self.transport.get_write_buffer_size()
        if left:
            patience, went = _LOOKS_ANSWER, self._left - left
        elif not self._is_head_whole or self.cycle is None or (not self._is_whole and self.cycle.response_complete):
            patience, went = _LOOKS_HEAD, self._came
        elif not self._is_whole and not self.flow.read_paused:
            patience, went = _LOOKS_BODY, self._came
        else:
            patience, went = 0, _LEAST
        self._looks = 0 if went >= _LEAST else self._looks + 1
        self._left, self._came = left, 0
        if self._looks > patience:
            self.transport.abort()
