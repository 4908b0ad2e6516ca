"""Where a server listens, by which names it may be called, and how it ends: for everything that is served over HTTP."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.errors import InvalidInputError, StoreError

_BACKLOG = 2048
_LONGEST_CALL = 60
_HEADERS_SECONDS = 10.0
"""How long the head of a request may take to come."""
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
        with self._address.listen() as bound:
            # inherited by what is accepted: else the end of an answer waits until its beginning is acknowledged
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._server = _Uvicorn(
                uvicorn.Config(
                    self._app,
                    http=_Patient,
                    log_config=None,
                    access_log=False,
                    server_header=False,
                    proxy_headers=False,
                    ws="none",
                    lifespan="on",
                    backlog=_BACKLOG,
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


class _Uvicorn(uvicorn.Server):
    """Without its signal handlers, which end the process as the signal would have."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Patient(H11Protocol):
    """Lets those go who begin a request and do not go on."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._wait_no_more()
        elif self._timer is None and not self.transport.is_closing():
            self._wait()

    def _wait(self) -> None:
        self._timer = self.loop.call_later(_HEADERS_SECONDS, self._end)

    def _wait_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
