"""MCP over streamable HTTP, for many clients and users at once.

A session belongs to the credential that opened it; with another credential it does not exist. Responses are plain JSON,
so that requests that are running when the server stops are still answered.
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
    """Serve until a signal arrives. ``hosts`` are additional accepted host names."""

    def tell(port: int) -> None:
        print(f"recollect: listening on http://{address.url_host}:{port}{PATH}", file=sys.stderr, flush=True)

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
    """The ASGI application for MCP. It authenticates requests with ``callers`` and attaches the user to them.

    ``names`` are the accepted host names. When the server stops, `close` ends the open streams.
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
        """Return the context in which requests can be answered. It can be entered once."""
        return self._manager.run()

    def close(self) -> None:
        """End open streams before the server stops. Call it in the event loop."""
        self._memory.changes.close()
        self._closed.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = await in_thread("", self._callers.caller, scope["headers"])  # it may read a file
        if isinstance(caller, RejectedCaller):
            await _rejection_response(caller)(scope, receive, send)
            return
        scope["user"] = _NameTag(caller)
        if scope["method"] == "GET":
            await self._stream(scope, receive, send)
        else:
            await self._manager.handle_request(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream of notifications. It never ends by itself, so a stop simulates a disconnect."""
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
    """The sender of a request. The SDK binds sessions to its client id and subject."""

    def __init__(self, caller: McpCaller) -> None:
        super().__init__(AccessToken(token="", client_id=caller.credential, scopes=[], subject=caller.user))
        self.caller = caller


def _caller_of(ctx: ServerRequestContext[Any, Any]) -> McpCaller:
    tag = None if ctx.request is None else ctx.request.scope.get("user")
    if not isinstance(tag, _NameTag):
        raise MCPError(INVALID_REQUEST, "the request is not authenticated")
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
