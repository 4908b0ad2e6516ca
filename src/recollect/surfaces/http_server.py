"""The HTTP server: its address, accepted host names, limits and shutdown.

uvicorn does the work, with documented settings only. Clients that are slow to send request headers or hold idle
connections are left to the reverse proxy in front (docs/deployment.md).
"""

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

import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.errors import InvalidInputError, StoreError

LOGGER = logging.getLogger("recollect.http")

_BACKLOG = 128
"""The number of connections that wait to be accepted. asyncio also retries that often when no more files can be
opened."""
_SHUTDOWN_SECONDS = 60
_IDLE_SECONDS = 75
"""The keep-alive timeout: longer than the minute after which most proxies close their side."""
_BODY_SECONDS = 40.0
"""The timeout for the next part of a body. The API and the console use a shorter one and respond with 408."""
_SEND_SECONDS = 30.0
"""The timeout for a client that does not read its response."""
_HEAD_BYTES = 64 * 1024
_WANTED_FILES = 65536
_WARN_SECONDS = 10.0
"""The interval between log lines that say that connections cannot be accepted."""
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on."""

    host: str
    port: int
    family: int
    is_loopback: bool
    is_any: bool

    @classmethod
    def parse(cls, text: str, option: str = "address") -> Address:
        """Parse ``PORT`` or ``HOST:PORT``; an IPv6 address is in brackets. ``option`` names the source in errors."""
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
        if not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise InvalidInputError(option, f"{text!r} is not PORT or HOST:PORT")
        try:
            found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise InvalidInputError(option, f"{host!r} is not an address of this machine") from None
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
    def url_host(self) -> str:
        """The host as it appears in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def listen(self) -> socket.socket:
        """Return a listening socket."""
        bound = socket.socket(
            socket.AddressFamily(self.family), socket.SOCK_STREAM, socket.IPPROTO_TCP
        )  # named, or asyncio would leave Nagle on
        try:
            if sys.platform != "win32":  # there it would let another program take over the port
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((self.host, self.port))
            # accepted connections inherit both: no Nagle delay within a response,
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # and clients that do not read it are disconnected
                bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1e3 * _SEND_SECONDS))
            bound.listen(_BACKLOG)
        except OSError as error:
            bound.close()
            raise StoreError(f"cannot listen on {self.url_host}:{self.port}: {error.strerror}") from None
        return bound

    def names(self, more: Sequence[str] = ()) -> list[str]:
        """Return the accepted host names, with any port. This stops DNS rebinding by web pages."""
        own = _LOOPBACK if self.is_loopback else () if self.is_any else (self.url_host,)
        return [entry for name in (*own, *more) for entry in (name, f"{name}:*")]


class Listener:
    """Serves an application at an address. Stopping finishes the accepted requests."""

    def __init__(self, app: ASGIApp, address: Address) -> None:
        self._app = app
        self._address = address
        self._server: _UvicornServer | None = None

    async def serve(self, listening: Callable[[int], None] = lambda port: None) -> None:
        """Serve until `stop`. ``listening`` is called with the port once it is open."""
        logging.getLogger("uvicorn.error").addFilter(_without_trace)
        asyncio.get_running_loop().set_exception_handler(_LoopErrors())
        with self._address.listen() as bound:
            self._server = _UvicornServer(
                uvicorn.Config(
                    _Guard(self._app),
                    http="h11",
                    ws="none",
                    lifespan="on",
                    log_config=None,
                    access_log=False,
                    server_header=False,
                    proxy_headers=False,
                    backlog=_BACKLOG,
                    limit_concurrency=raised_file_limit() // 2,  # the other half is for the stores
                    h11_max_incomplete_event_size=_HEAD_BYTES,
                    timeout_keep_alive=_IDLE_SECONDS,
                    timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
                )
            )
            listening(bound.getsockname()[1])
            await self._server.serve([bound])

    def stop(self) -> None:
        """Finish accepted requests, then end. Call it in the event loop."""
        if self._server is not None:
            self._server.should_exit = True

    def give_up(self) -> None:
        """End immediately."""
        if self._server is not None:
            self._server.force_exit = True


class _Guard:
    """Rejects requests that a proxy may parse differently, and stops waiting for a body that stalls."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        framing = {name for name, _ in scope["headers"]} & {b"content-length", b"transfer-encoding"}
        if len(framing) == 2 or not scope["raw_path"].startswith(b"/"):
            refusal = Response("Bad request.\n", 400, {"connection": "close"})
            await refusal(scope, receive, send)
            return
        is_coming = bool(framing)

        async def receive_in_time() -> Message:
            nonlocal is_coming
            try:
                async with asyncio.timeout(_BODY_SECONDS if is_coming else None):
                    message = await receive()
            except TimeoutError:
                return {"type": "http.disconnect"}
            is_coming = message.get("more_body", False)
            return message

        await self._app(scope, receive_in_time, send)


class _UvicornServer(uvicorn.Server):
    """Leaves signals to `shutdown`; uvicorn would re-raise them and end the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def raised_file_limit() -> int:
    """Raise the limit of open files as far as allowed, and return it."""
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


class _LoopErrors:
    """Logs errors of the event loop without their texts, which may contain what a user said."""

    def __init__(self) -> None:
        self._warned_at = -_WARN_SECONDS

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in _OUT_OF_FILES):
            LOGGER.error("%s: %s", context.get("message"), type(error).__name__)
        elif loop.time() - self._warned_at >= _WARN_SECONDS:
            self._warned_at = loop.time()
            LOGGER.error("cannot accept connections: too many open files; raise the limit (ulimit -n)")


def _without_trace(record: logging.LogRecord) -> bool:
    """Reduce uvicorn's tracebacks to the name of the error; drop those of requests that a forced stop cancels."""
    if record.exc_info and record.exc_info[0]:
        record.msg, record.args = f"a request failed: {record.exc_info[0].__name__}", ()
        record.exc_info = None
    return "CancelledError" not in record.getMessage()
