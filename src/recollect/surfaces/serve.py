"""One process that serves everything: the API, MCP, the web console, health, metrics, and a background worker.

Requests for unknown host names are rejected, so that no web page can reach the server through a browser (DNS
rebinding). Stopping finishes the accepted requests.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from html import escape
from ipaddress import ip_address
from typing import Any

from starlette.applications import Starlette
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.app import Recollect
from recollect.errors import ConfigError, RecollectError
from recollect.identity.login import Login
from recollect.memory.async_memory import in_thread
from recollect.surfaces import example
from recollect.surfaces.http.api import SECONDS, HttpApi, request_id_of, send_response
from recollect.surfaces.http.authentication import FORWARDED, Authentication, McpAuthentication
from recollect.surfaces.http.messages import JSON
from recollect.surfaces.http.messages import Response as ApiResponse
from recollect.surfaces.http.metrics import TYPE as METRICS_TYPE
from recollect.surfaces.http.metrics import Metrics
from recollect.surfaces.http.problems import TYPE, Problem
from recollect.surfaces.http.rate_limits import RateLimits
from recollect.surfaces.http.request_buffer import sweep
from recollect.surfaces.http_server import Address, Listener
from recollect.surfaces.mcp.http import PATH as MCP
from recollect.surfaces.mcp.http import Mcp
from recollect.surfaces.shutdown import on_signals
from recollect.surfaces.web.console import console
from recollect.surfaces.web.live import Live

LOGGER = logging.getLogger("recollect.http")

CONSOLE = "/console"
_OPENAPI = "/v1/openapi.json"
_READY_SECONDS = 1.0
_TURN_SECONDS = 0.001
"""The interpreter's switch interval: short, because the event loop has little to do, but often."""


class Server:
    """The server.

    ``user`` is the user on this machine until the first API key is created. ``seconds`` is the timeout for a body.
    """

    def __init__(
        self,
        app: Recollect,
        address: Address,
        *,
        hosts: Sequence[str] = (),
        user: str = "me",
        suites: tuple[str, ...] = ("notes",),
        limits: RateLimits | None = None,
        live: Live | None = None,
        seconds: float = SECONDS,
    ) -> None:
        if not address.is_loopback and not any(key.revoked_at is None for key in app.keys.all()):
            raise ConfigError(
                f"anyone who can reach {address.host} could read and change every memory; create an API key first"
                " (recollect keys create), or listen on 127.0.0.1"
            )
        config = app.config
        names = address.names(hosts)
        self._app = app
        self._address = address
        self._authentication = Authentication(app.keys, open=address.is_loopback)
        limits = limits or RateLimits(config.http_key_rate, config.http_user_rate)
        self.api = HttpApi(app, self._authentication, limits, Metrics(), seconds=seconds)
        self._mcp = Mcp(app, McpAuthentication(self._authentication, limits, user, suites), names)
        self._live = live or Live(app)
        who = Login(app.keys, open=address.is_loopback, user=lambda: self._sits_here(user))
        self._console = console(app, who=who, live=self._live)
        self._listener = Listener(_Names(self._routed(), names), address)
        self._document = b""
        self._ready: tuple[float, list[str]] = (-_READY_SECONDS, [])

    def _routed(self) -> ASGIApp:
        routes: list[BaseRoute] = [
            Route("/", self._front),
            Route("/docs", self._docs),
            Route(_OPENAPI, self._openapi),
            Route("/health/live", self._is_live),
            Route("/health/ready", self._is_ready),
            Route("/metrics", self._metrics),
            Route(MCP, endpoint=self._mcp),
            Mount(CONSOLE, self._console),
        ]
        return _Split(self.api, Starlette(routes=routes, lifespan=lambda _: self._mcp.running()))

    def _sits_here(self, user: str) -> str:
        """Return the user whose memory the console shows without login: the example's, while there is one."""
        return example.USER if example.is_example(self._app.user(example.USER)) else user

    async def serve(self, listening: Callable[[int], None] = lambda port: None) -> None:
        """Serve until `stop`. ``listening`` is called with the port once it is open."""
        await self._listener.serve(listening)

    def stop(self) -> None:
        """Finish accepted requests, then end. Call it in the event loop."""
        self._listener.stop()
        self._mcp.close()
        self._live.close()

    def give_up(self) -> None:
        """End immediately."""
        self._listener.give_up()

    # requests outside the API

    async def _is_live(self, request: Any) -> Response:
        return Response('{"status":"ok"}', media_type=JSON)

    async def _is_ready(self, request: Any) -> Response:
        wrong = await in_thread("ready", self._looked)  # in its own lane, so that health checks delay no other request
        told = {"status": "no" if wrong else "ok", "trouble": wrong}
        return Response(json.dumps(told), status_code=503 if wrong else 200, media_type=JSON)

    def _looked(self) -> list[str]:
        """Return what cannot be reached, cached for a moment, because anyone may ask as often as they like."""
        when, found = self._ready
        if time.monotonic() - when >= _READY_SECONDS:
            found = self._trouble()
            self._ready = time.monotonic(), found
        return found

    def _trouble(self) -> list[str]:
        def look_into_queue() -> None:
            with self._app.queue() as queue:
                queue.depth()

        found = []
        looks: dict[str, Callable[[], Any]] = {
            "store": lambda: next(self._app.users(limit=1), None),
            "keys": self._app.keys.any,
            "queue": look_into_queue,
        }
        for name, look in looks.items():
            try:
                look()
            except (RecollectError, OSError) as error:
                LOGGER.error("not ready: %s: %s", name, type(error).__name__)
                found.append(name)
        return found

    async def _metrics(self, request: Any) -> Response:
        if not self._is_near(request.scope):
            try:
                caller = await in_thread("", self._authentication.caller, request.scope["headers"])
                if not caller.may("admin"):
                    raise Problem(403, "NotAllowedError", "this requires an API key with the scope admin")
            except Problem as problem:
                return Response(problem.body(""), problem.status, problem.headers, TYPE)
        return Response(await in_thread("", self.api.metrics.text), headers={"content-type": METRICS_TYPE})

    def _is_near(self, scope: Scope) -> bool:
        """Return True if the request comes from this machine and not through a proxy."""
        if not self._address.is_loopback or any(name in FORWARDED for name, _ in scope["headers"]):
            return False
        client = scope.get("client")
        return client is not None and ip_address(client[0].partition("%")[0]).is_loopback

    async def _openapi(self, request: Any) -> Response:
        if not self._document:
            self._document = await in_thread("", lambda: json.dumps(self.api.document()).encode())
        return Response(self._document, media_type=JSON)

    async def _front(self, request: Any) -> Response:
        return RedirectResponse(f"{CONSOLE}/", 307)

    async def _docs(self, request: Any) -> Response:
        headers = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(await in_thread("", _documents, self.api), media_type="text/html", headers=headers)


class _Split:
    """Sends everything below ``/v1`` to the API with its raw path, so that no other router decodes user ids."""

    def __init__(self, api: HttpApi, others: ASGIApp) -> None:
        self._api = api
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_ours = scope["type"] == "http" and scope["raw_path"].startswith(b"/v1/") and scope["path"] != _OPENAPI
        await (self._api if is_ours else self._others)(scope, receive, send)


class _Names:
    """Rejects requests for unknown host names and from pages of other sites."""

    def __init__(self, app: ASGIApp, names: Sequence[str]) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request_id = request_id_of(given)

        async def send_with_id(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start" and b"x-request-id" not in dict(message["headers"]):
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode("latin-1"))]
            await send(message)

        if (problem := self._problem(scope)) is not None:
            await send_response(
                ApiResponse(problem.status, problem.body(request_id), TYPE, problem.headers), send_with_id
            )
            return
        await self._app(scope, receive, send_with_id)

    def _problem(self, scope: Scope) -> Problem | None:
        hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not _is_among(hosts[0], self._names):
            said = "the Host header does not name this server; add the name with --allow-host"
            return Problem(421, "BadRequestError", said)
        for name, value in scope["headers"]:
            if name == b"origin" and value.decode("latin-1").lower().partition("://")[2] != hosts[0]:
                return Problem(403, "NotAllowedError", "requests from pages of other sites are not allowed")
        return None


def _is_among(name: str, allowed: Sequence[str]) -> bool:
    """Return True if a name is allowed; ``name:*`` allows any port."""
    base, _, port = name.rpartition(":")
    return name in allowed or (port.isdigit() and f"{base}:*" in allowed)


@contextmanager
def _working(app: Recollect, concurrency: int) -> Iterator[None]:
    if not concurrency:
        yield
        return
    with app.queue() as queue:
        worker = app.worker(queue, concurrency=concurrency).start()
        try:
            yield
        finally:
            worker.stop()


def run_server(server: Server, app: Recollect, *, workers: int, listening: Callable[[int], None]) -> None:
    """Serve until a signal arrives."""

    async def main() -> None:
        with on_signals(server.stop, server.give_up):
            await server.serve(listening)

    sys.setswitchinterval(_TURN_SECONDS)
    sweep()
    with _working(app, workers):
        asyncio.run(main())
        print("recollect: stopped", file=sys.stderr, flush=True)


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>HTTP API</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1rem}</style>
<h1>HTTP API</h1><p>Full description: <a href="/v1/openapi.json">OpenAPI 3.1</a>.</p><dl>%s</dl></html>"""


def _documents(api: HttpApi) -> str:
    return _PAGE % "".join(
        f"<dt><code>{route.method} /v1{escape(route.path)}</code> ({route.scope})</dt><dd>{escape(route.does)}</dd>"
        for route in api.routes
    )
