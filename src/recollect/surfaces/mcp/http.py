"""Over streamable HTTP: many clients and many users at once, each let in by `callers`.

A session belongs to the credential that opened it: with another one it does not exist. Answers are plain JSON, so that
what is running when the server is stopped is still answered.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

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
from recollect.memory.async_memory import in_thread
from recollect.surfaces.http_server import Address, Listener
from recollect.surfaces.mcp.authentication import Callers, McpCaller, RejectedCaller
from recollect.surfaces.mcp.server import MemoryServer
from recollect.surfaces.shutdown import on_signals

PATH = "/mcp"
MAX_BODY = 4 * 1024 * 1024
"""The largest request, in bytes."""


def run_http(app: Recollect, callers: Callers, address: Address, hosts: Sequence[str] = ()) -> None:
    """Serve until a signal comes. ``hosts`` are further names by which the server is reached."""

    def tell(port: int) -> None:
        print(f"recollect: listening on http://{address.shown}:{port}{PATH}", file=sys.stderr, flush=True)

    async def serve() -> None:
        mcp = Mcp(app, callers, address.names(hosts))
        listener = Listener(Starlette(routes=[Route(PATH, endpoint=mcp)], lifespan=lambda _: mcp.running()), address)

        def finish() -> None:
            listener.stop()
            mcp.close()

        with on_signals(finish, listener.give_up):
            await listener.serve(tell)

    asyncio.run(serve())


class Mcp:
    """MCP at one address, as an application: who is let in by ``callers`` gets a name tag.

    ``names`` are those by which the server may be called. When the server stops, `close` ends the streams that would
    never end.
    """

    def __init__(self, app: Recollect, callers: Callers, names: Sequence[str]) -> None:
        self._memory = MemoryServer(app, _caller_of)
        self._manager = StreamableHTTPSessionManager(
            self._memory.server,
            json_response=True,
            security_settings=TransportSecuritySettings(
                enable_dns_rebinding_protection=True,
                allowed_hosts=list(names),
                allowed_origins=[f"{scheme}://{name}" for name in names for scheme in ("http", "https")],
            ),
            max_request_body_size=MAX_BODY,
        )
        self._callers = callers
        self._closed = asyncio.Event()

    def running(self) -> AbstractAsyncContextManager[None]:
        """Within it requests can be answered; once."""
        return self._manager.run()

    def close(self) -> None:
        """The server is about to stop. Called in the event loop."""
        self._memory.changes.close()
        self._closed.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = await in_thread("", self._callers.caller, scope["headers"])  # it may have to look into a file
        if isinstance(caller, RejectedCaller):
            await _rejection_response(caller)(scope, receive, send)
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

    def __init__(self, caller: McpCaller) -> None:
        super().__init__(AccessToken(token="", client_id=caller.credential, scopes=[], subject=caller.user))
        self.caller = caller


def _caller_of(ctx: ServerRequestContext[Any, Any]) -> McpCaller:
    tag = None if ctx.request is None else ctx.request.scope.get("user")
    if not isinstance(tag, _NameTag):
        raise MCPError(INVALID_REQUEST, "nobody is known to have sent this")
    return tag.caller


def _rejection_response(stranger: RejectedCaller) -> Response:
    headers = {}
    if stranger.status == 401:
        error = f', error="{stranger.error}", error_description="{stranger.why}"' if stranger.error else ""
        headers["WWW-Authenticate"] = f'Bearer realm="recollect"{error}'
    if stranger.seconds:
        headers["Retry-After"] = str(stranger.seconds)
    body = json.dumps({"error": stranger.error or "unauthorized", "error_description": stranger.why})
    return Response(body, status_code=stranger.status, headers=headers, media_type="application/json")
