"""One process that serves it all: the API, MCP, health and numbers, and a worker beside them.

Who calls it by another name than its own is turned away, so that no web page can reach it through a browser. A stop
finishes what was accepted. Whoever sends nothing for too long is let go.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from html import escape
from ipaddress import ip_address
from typing import Any

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect import __version__
from recollect.app import Recollect
from recollect.core.aio import in_thread
from recollect.errors import ConfigError, RecollectError
from recollect.surfaces.http.api import SECONDS, Api, sent
from recollect.surfaces.http.callers import Door, McpDoor
from recollect.surfaces.http.exchange import JSON, Answer
from recollect.surfaces.http.limits import Limits
from recollect.surfaces.http.metrics import TYPE as METRICS_TYPE
from recollect.surfaces.http.metrics import Metrics
from recollect.surfaces.http.problems import TYPE, Problem
from recollect.surfaces.mcp.http import MAX_BODY, PATH, Address, _Door, _security, _Uvicorn, _whose
from recollect.surfaces.mcp.server import MemoryServer
from recollect.surfaces.mcp.stopping import on_signals

LOGGER = logging.getLogger("recollect.http")

_OPENAPI = "/v1/openapi.json"
_BACKLOG = 2048
_LONGEST_CALL = 60
_TURN_SECONDS = 0.0002
"""How long a thread keeps the interpreter while others wait: the event loop has little to do, and often."""
_HEADERS_SECONDS = 10.0
"""How long the head of a request may take to come."""
_FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})


class Server:
    """What is served, and how it ends.

    ``seconds`` is how long a body may take to come; ``more`` are further routes, such as those of a web console.
    """

    def __init__(
        self,
        app: Recollect,
        address: Address,
        *,
        hosts: Sequence[str] = (),
        user: str = "me",
        suites: tuple[str, ...] = ("notes",),
        limits: Limits | None = None,
        seconds: float = SECONDS,
        more: Sequence[BaseRoute] = (),
    ) -> None:
        if not address.is_loopback and not any(key.revoked_at is None for key in app.keys.all()):
            raise ConfigError(
                f"anybody who reaches {address.host} could read and change every memory: make a key first"
                " (recollect keys create), or listen on 127.0.0.1"
            )
        config = app.config
        self._app = app
        self._address = address
        self._door = Door(app.keys, open=address.is_loopback)
        limits = limits or Limits(config.http_key_rate, config.http_user_rate)
        self.api = Api(app, self._door, limits, Metrics(), seconds=seconds)
        self._memory = MemoryServer(app, _whose)
        security = _security(address, hosts)
        self._manager = StreamableHTTPSessionManager(
            self._memory.server, json_response=True, security_settings=security, max_request_body_size=MAX_BODY
        )
        self._mcp = _Door(self._manager, McpDoor(self._door, user, suites))
        self._names = _Names(self._routed(more), security.allowed_hosts, security.allowed_origins)
        self._uvicorn: uvicorn.Server | None = None
        self._document = b""

    def _routed(self, more: Sequence[BaseRoute]) -> ASGIApp:
        routes: list[BaseRoute] = [
            Route("/", self._page(_front)),
            Route("/docs", self._page(lambda: _docs(self.api))),
            Route(_OPENAPI, self._openapi),
            Route("/health/live", self._live),
            Route("/health/ready", self._ready),
            Route("/metrics", self._metrics),
            Route(PATH, endpoint=self._mcp),
            *more,
        ]
        return _Split(self.api, Starlette(routes=routes, lifespan=self._lifespan))

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        async with self._manager.run():
            yield

    async def serve(self, listening: Callable[[int], None] = lambda port: None) -> None:
        """Serve until `stop`; ``listening`` is told the port as soon as there is one."""
        with self._address.listen() as bound:
            # inherited by what is accepted: else the end of an answer waits until its beginning is acknowledged
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._uvicorn = _Uvicorn(
                uvicorn.Config(
                    self._names,
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
            await self._uvicorn.serve([bound])

    def stop(self) -> None:
        """Finish what was accepted, and end. Called in the event loop."""
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
        self._memory.changes.close()
        self._mcp.close()

    def give_up(self) -> None:
        """End at once."""
        if self._uvicorn is not None:
            self._uvicorn.force_exit = True

    # what is asked beside the API

    async def _live(self, request: Any) -> Response:
        return Response('{"status":"ok"}', media_type=JSON)

    async def _ready(self, request: Any) -> Response:
        wrong = await in_thread("", self._trouble)
        told = {"status": "no" if wrong else "ok", "trouble": wrong}
        return Response(json.dumps(told), status_code=503 if wrong else 200, media_type=JSON)

    def _trouble(self) -> list[str]:
        """What cannot be reached."""

        def look_into_queue() -> None:
            with self._app.queue() as queue:
                queue.depth()

        found = []
        looks: dict[str, Callable[[], Any]] = {
            "store": lambda: next(self._app.users(), None),
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
                caller = await in_thread("", self._door.caller, request.scope["headers"])
                if not caller.may("admin"):
                    raise Problem(403, "NotAllowedError", "this needs a key that administers")
            except Problem as problem:
                return Response(problem.body(""), problem.status, problem.headers, TYPE)
        return Response(await in_thread("", self.api.metrics.text), headers={"content-type": METRICS_TYPE})

    def _is_near(self, scope: Scope) -> bool:
        """Whether it comes from this very machine, and through no proxy."""
        if not self._address.is_loopback or any(name in _FORWARDED for name, _ in scope["headers"]):
            return False
        client = scope.get("client")
        return client is not None and ip_address(client[0].partition("%")[0]).is_loopback

    async def _openapi(self, request: Any) -> Response:
        if not self._document:
            self._document = await in_thread("", lambda: json.dumps(self.api.document()).encode())
        return Response(self._document, media_type=JSON)

    @staticmethod
    def _page(make: Callable[[], str]) -> Callable[[Any], Any]:
        async def page(request: Any) -> Response:
            headers = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
            return Response(await in_thread("", make), media_type="text/html", headers=headers)

        return page


class _Split:
    """What is below ``/v1`` is the API's, as it was asked; no other router has a say in how users are called."""

    def __init__(self, api: Api, others: ASGIApp) -> None:
        self._api = api
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_ours = scope["type"] == "http" and scope["raw_path"].startswith(b"/v1/") and scope["path"] != _OPENAPI
        await (self._api if is_ours else self._others)(scope, receive, send)


class _Names:
    """Turns away who calls the server by another name than its own, or comes from the page of another site."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str], origins: Sequence[str]) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (problem := self._problem(scope)) is not None:
            await sent(Answer(problem.status, problem.body(""), TYPE, problem.headers), send)
            return
        await self._app(scope, receive, send)

    def _problem(self, scope: Scope) -> Problem | None:
        hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not _is_among(hosts[0], self._hosts):
            said = "the Host header is not a name of this server; --allow-host adds one"
            return Problem(421, "BadRequestError", said)
        for name, value in scope["headers"]:
            if name == b"origin" and not _is_among(value.decode("latin-1").lower(), self._origins):
                return Problem(403, "NotAllowedError", "pages of other sites may not use this server")
        return None


def _is_among(name: str, allowed: Sequence[str]) -> bool:
    """Whether a name is allowed; ``name:*`` is any port."""
    base, _, port = name.rpartition(":")
    return name in allowed or (port.isdigit() and f"{base}:*" in allowed)


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


@contextmanager
def _working(app: Recollect, concurrency: int) -> Iterator[None]:
    """A worker beside the server."""
    if not concurrency:
        yield
        return
    with app.queue() as queue:
        worker = app.worker(queue, concurrency=concurrency).start()
        try:
            yield
        finally:
            worker.stop()


def run(server: Server, app: Recollect, *, workers: int, listening: Callable[[int], None]) -> None:
    """Serve until a signal comes."""

    async def main() -> None:
        with on_signals(server.stop, server.give_up):
            await server.serve(listening)

    sys.setswitchinterval(_TURN_SECONDS)
    with _working(app, workers):
        asyncio.run(main())
        print("recollect: stopped", file=sys.stderr, flush=True)


_STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1rem}code{font-size:.9em}"


def _html(title: str, body: str) -> str:
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f"{head}<h1>{title}</h1>{body}</html>"


def _front() -> str:
    return _html(
        "Recollect",
        f"<p>Version {escape(__version__)}. This is the HTTP API; a web console will be here.</p>"
        '<ul><li><a href="/docs">What can be asked</a></li><li><a href="/v1/openapi.json">OpenAPI document</a></li>'
        '<li><a href="/health/ready">Is it ready?</a></li></ul>',
    )


def _docs(api: Api) -> str:
    rows = "".join(
        f"<dt><code>{route.method} /v1{escape(route.path)}</code> ({route.scope})</dt><dd>{escape(route.does)}</dd>"
        for route in api.routes
    )
    return _html("What can be asked", f'<p>In full: <a href="/v1/openapi.json">OpenAPI 3.1</a>.</p><dl>{rows}</dl>')
