"""Over streamable HTTP: many clients and many users at once, each let in by `callers`.

A session belongs to the credential that opened it: with another one it does not exist. Answers are plain JSON, so that
what is running when the server is stopped is still answered.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from recollect.app import Recollect
from recollect.core.aio import in_thread
from recollect.errors import InvalidInputError, StoreError
from recollect.surfaces.mcp.callers import Caller, Callers, Stranger
from recollect.surfaces.mcp.server import MemoryServer
from recollect.surfaces.mcp.stopping import on_signals

PATH = "/mcp"
MAX_BODY = 4 * 1024 * 1024
"""The largest request, in bytes."""
_LONGEST_CALL = 60
_BACKLOG = 2048
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
    def parse(cls, text: str) -> Address:
        """Read ``PORT`` or ``HOST:PORT``; an IPv6 address is in brackets."""
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
        if not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise InvalidInputError("--http", f"{text!r} is not PORT or HOST:PORT")
        try:
            found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise InvalidInputError("--http", f"{host!r} is no address of this machine") from None
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


def run(app: Recollect, callers: Callers, address: Address, hosts: Sequence[str] = ()) -> None:
    """Serve until a signal comes. ``hosts`` are further names by which the server is reached."""
    asyncio.run(_serve(app, callers, address, hosts))


async def _serve(app: Recollect, callers: Callers, address: Address, hosts: Sequence[str]) -> None:
    memory = MemoryServer(app, _whose)
    manager = StreamableHTTPSessionManager(
        memory.server, json_response=True, security_settings=_security(address, hosts), max_request_body_size=MAX_BODY
    )
    door = _Door(manager, callers)
    web = Starlette(routes=[Route(PATH, endpoint=door)], lifespan=lambda _: manager.run())
    with address.listen() as bound:
        server = _Uvicorn(
            uvicorn.Config(
                web,
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

        def finish() -> None:
            server.should_exit = True
            memory.changes.close()
            door.close()

        def give_up() -> None:
            server.force_exit = True

        with on_signals(finish, give_up):
            port = bound.getsockname()[1]
            print(f"recollect: listening on http://{address.shown}:{port}{PATH}", file=sys.stderr, flush=True)
            await server.serve([bound])


class _Uvicorn(uvicorn.Server):
    """Without its signal handlers, which end the process as the signal would have."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Door:
    """Lets requests in, with a name tag; when the server stops, it ends the streams that would never end."""

    def __init__(self, manager: StreamableHTTPSessionManager, callers: Callers) -> None:
        self._manager = manager
        self._callers = callers
        self._closed = asyncio.Event()

    def close(self) -> None:
        """The server is about to stop."""
        self._closed.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = await in_thread("", self._callers.caller, scope["headers"])  # it may have to look into a file
        if isinstance(caller, Stranger):
            await _refusal(caller)(scope, receive, send)
            return
        scope["user"] = _NameTag(caller)
        if scope["method"] == "GET":
            await self._stream(scope, receive, send)
        else:
            await self._manager.handle_request(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A stream of notifications, which never ends by itself: when the server stops, the client seems to leave."""
        is_open = False

        async def until_closed() -> Message:
            coming = asyncio.ensure_future(receive())
            closing = asyncio.ensure_future(self._closed.wait())
            try:
                await asyncio.wait((coming, closing), return_when=asyncio.FIRST_COMPLETED)
                return coming.result() if coming.done() else {"type": "http.disconnect"}
            finally:
                coming.cancel()
                closing.cancel()

        async def watched(message: Message) -> None:
            nonlocal is_open
            is_open = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

        await self._manager.handle_request(scope, until_closed, watched)
        if is_open and self._closed.is_set():
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class _NameTag(AuthenticatedUser):
    """Who sent a request. The SDK binds sessions to the client id and the subject in it."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(AccessToken(token="", client_id=caller.credential, scopes=[], subject=caller.user))
        self.caller = caller


def _whose(ctx: ServerRequestContext[Any, Any]) -> Caller:
    tag = None if ctx.request is None else ctx.request.scope.get("user")
    if not isinstance(tag, _NameTag):
        raise MCPError(INVALID_REQUEST, "nobody is known to have sent this")
    return tag.caller


def _refusal(stranger: Stranger) -> Response:
    headers = {}
    if stranger.status == 401:
        error = f', error="{stranger.error}", error_description="{stranger.why}"' if stranger.error else ""
        headers["WWW-Authenticate"] = f'Bearer realm="recollect"{error}'
    body = json.dumps({"error": stranger.error or "unauthorized", "error_description": stranger.why})
    return Response(body, status_code=stranger.status, headers=headers, media_type="application/json")


def _security(address: Address, more: Sequence[str]) -> TransportSecuritySettings:
    """By which names the server may be called: a web page cannot call it by a name of its own."""
    names = [*(_LOOPBACK if address.is_loopback else () if address.is_any else (address.shown,)), *more]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[entry for name in names for entry in (name, f"{name}:*")],
        allowed_origins=[
            f"{scheme}://{entry}" for name in names for entry in (name, f"{name}:*") for scheme in ("http", "https")
        ],
    )
