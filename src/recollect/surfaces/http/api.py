"""Parses, authenticates, answers and logs all requests below ``/v1``.

The event loop only waits: authentication, parsing and handlers run in threads. Paths are split before they are decoded,
so that any user id is one segment of a path.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import unquote

from starlette.types import Receive, Scope, Send

from recollect.app import Recollect
from recollect.errors import InvalidInputError, RecollectError
from recollect.memory.async_memory import in_thread
from recollect.records import new_id
from recollect.store.tenants import stored_id
from recollect.surfaces.http import openapi
from recollect.surfaces.http.admin_routes import AdminRoutes
from recollect.surfaces.http.authentication import Authentication, HttpCaller
from recollect.surfaces.http.concurrency import ConcurrencyLimiter
from recollect.surfaces.http.identity_routes import IdentityRoutes
from recollect.surfaces.http.messages import JSON, Request, Response, Route
from recollect.surfaces.http.metrics import Metrics
from recollect.surfaces.http.problems import TYPE, Problem, problem_of
from recollect.surfaces.http.rate_limits import RateLimits
from recollect.surfaces.http.schema import request_arguments
from recollect.surfaces.http.streams import TransferRoutes
from recollect.surfaces.http.tool_routes import ToolRoutes
from recollect.surfaces.http.verb_routes import VerbRoutes

LOGGER = logging.getLogger("recollect.http")

MOST_BODY = 4 * 1024 * 1024
"""The maximum size in bytes of a body that is not a stream."""
SECONDS = 30.0
"""The timeout for a body."""
_SHORT_BODY = 64 * 1024
"""Bodies up to this size are read before authentication, which saves a switch into a thread."""
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class HttpApi:
    """Everything under ``/v1``."""

    def __init__(
        self,
        app: Recollect,
        authentication: Authentication,
        limits: RateLimits,
        metrics: Metrics | None = None,
        *,
        seconds: float = SECONDS,
    ) -> None:
        memories = VerbRoutes(app)
        self.authentication = authentication
        self.metrics = metrics or Metrics()
        self.routes: Sequence[Route] = (
            *memories.routes(),
            *TransferRoutes(memories, seconds).routes(),
            *ToolRoutes(app).routes(),
            *AdminRoutes(app, authentication).routes(),
            *IdentityRoutes(app).routes(),
        )
        self._limits = limits
        # PostgreSQL requests mostly wait for the network, so they need no limit
        self._limiter = None if app.config.database_url else ConcurrencyLimiter()
        self._seconds = seconds
        self._by_path: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in self.routes:
            path = route.path.replace("{call}", "{name}")
            self._by_path.setdefault(tuple(path.split("/")[1:]), {})[route.method] = route

    def document(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        return openapi.openapi_document(self.routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
        request_id = request_id_of(headers)
        began = time.perf_counter()
        route, answer = await self._answered(scope, receive, headers, request_id)
        name = "unknown" if route is None else route.name
        answer.headers["x-request-id"] = request_id
        self.metrics.count(name, answer.status, time.perf_counter() - began)
        LOGGER.info("%s %s %d %.1f ms", request_id, name, answer.status, (time.perf_counter() - began) * 1000)
        await send_response(answer, send, self._seconds)

    async def _answered(
        self, scope: Scope, receive: Receive, headers: dict[str, str], request_id: str
    ) -> tuple[Route | None, Response]:
        """Answer a request, and turn any error into a problem response."""
        route: Route | None = None
        self.metrics.running += 1
        try:
            route, parts = self._find(scope)
            return route, await self._asked(route, parts, scope, receive, headers)
        except Problem as problem:
            found = problem
        except RecollectError as error:
            found = problem_of(error)
            if found.status >= 500:
                LOGGER.error("%s failed: %s", request_id, type(error).__name__)
        except Exception as error:
            # not the message or the traceback: both may contain what a user said
            LOGGER.error("%s failed: %s", request_id, type(error).__name__)
            found = Problem(500, "InternalError", "internal error; see the server log")
        finally:
            self.metrics.running -= 1
        if found.status in (400, 408, 413):
            found.headers["connection"] = "close"  # the rest of the body is not read
        return route, Response(found.status, found.body(request_id), TYPE, dict(found.headers))

    def _find(self, scope: Scope) -> tuple[Route, list[str]]:
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        try:
            parts = [unquote(part.decode("ascii"), errors="strict") for part in raw.split(b"/")[2:]]
        except UnicodeDecodeError:
            raise Problem(400, "BadRequestError", "the path is not percent-encoded UTF-8") from None
        shape = list(parts)
        if shape[:1] == ["users"]:
            shape[1:2] = ["{user}"] if len(shape) > 1 else []
            shape[3:4] = ["{name}"] if len(shape) > 3 else []
        found = self._by_path.get(tuple(shape))
        if found is None:
            raise Problem(404, "NotFoundError", "this path does not exist; see /v1/openapi.json")
        route = found.get(scope["method"])
        if route is None:
            allowed = ", ".join(sorted(found))
            raise Problem(405, "BadRequestError", f"use {allowed} here", headers={"allow": allowed})
        return route, parts

    async def _asked(
        self, route: Route, parts: list[str], scope: Scope, receive: Receive, headers: dict[str, str]
    ) -> Response:
        if route.has_body and headers.get("content-type", JSON).partition(";")[0].strip().lower() != JSON:
            raise Problem(415, "BadRequestError", f"the body must be {JSON}")
        size = _content_length(headers)
        if route.has_body and size is not None and size > MOST_BODY:
            raise _too_large_problem()
        request = Request(
            route=route,
            caller=_NOBODY,
            headers=headers,
            query=scope["query_string"],
            body=b"",
            receive=receive,
            local=parts[1] if route.has_user else "",
            name=parts[3] if len(parts) > 3 else "",
        )
        # the user's lane, as far as it is known before authentication: tenants do not wait for each other's users
        lane = f"{headers.get('authorization', '')[:26]}\0{request.local}"
        if not route.has_body:
            pass
        elif size is not None and size <= _SHORT_BODY:
            request.body = await self._body(receive)
        else:
            await in_thread("", self._let_in, request, scope)
            request.body = await self._body(receive)
        if route.handle is not None:
            if route.scope != "read" or self._limiter is None:
                return await in_thread(lane, self._work, request, scope)
            async with self._limiter.slot():
                return await in_thread(lane, self._work, request, scope)
        limits = await in_thread("", self._let_in_and_read, request, scope)
        assert route.handle_async is not None
        answer = await route.handle_async(request)
        answer.headers |= limits
        return answer

    def _work(self, request: Request, scope: Scope) -> Response:
        """Authenticate, parse and handle a request, in a thread."""
        limits = self._let_in_and_read(request, scope)
        assert request.route.handle is not None
        answer = request.route.handle(request)
        answer.headers |= limits
        return answer

    def _let_in_and_read(self, request: Request, scope: Scope) -> dict[str, str]:
        self._let_in(request, scope)
        limits = self._limits.take(request.caller.key, request.user or None)
        request.values = request_arguments(request)
        return limits

    def _let_in(self, request: Request, scope: Scope) -> None:
        caller = self.authentication.caller(scope["headers"])
        route = request.route
        if not caller.may(route.scope):
            what = "an API key or a token" if route.has_user and route.scope != "admin" else "an API key"
            raise Problem(403, "NotAllowedError", f"this requires {what} with the scope {route.scope}")
        if caller.user is not None and (not route.has_user or caller.user != request.local):
            raise Problem(403, "NotAllowedError", "the token is valid only for the memory of its own user")
        request.caller = caller
        if route.has_user:
            request.user = stored_id(caller.tenant, request.local)

    async def _body(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(400, "BadRequestError", "the body is incomplete")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > MOST_BODY:
                        raise _too_large_problem()
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            raise Problem(408, "TooSlowError", "the rest of the body did not arrive in time") from None


async def send_response(answer: Response, send: Send, seconds: float = SECONDS) -> None:
    """Send a response. The client must read each part of a stream in time."""
    headers = {"content-type": answer.kind, "cache-control": "no-store", "x-content-type-options": "nosniff"}
    if answer.stream is None and answer.status != 304:
        headers["content-length"] = str(len(answer.body))
    headers |= answer.headers
    raw = [(name.encode(), value.encode("latin-1", errors="replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": raw})
    if answer.stream is None:
        await send({"type": "http.response.body", "body": b"" if answer.status == 304 else answer.body})
        return
    async with aclosing(answer.stream) as parts:  # type: ignore[type-var]
        async for part in parts:
            async with asyncio.timeout(seconds):
                await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


_NOBODY = HttpCaller("", "read", "")


def request_id_of(headers: Mapping[str, str]) -> str:
    """Return the id that the client gave the request, if it is one, or a new one."""
    given = headers.get("x-request-id", "")
    return given if _SANE_ID.fullmatch(given) else new_id("request")


def _content_length(headers: dict[str, str]) -> int | None:
    if "transfer-encoding" in headers:
        return None
    given = headers.get("content-length", "0")
    if not given.isdigit():
        raise InvalidInputError("Content-Length", "must be a number")
    return int(given)


def _too_large_problem() -> Problem:
    return Problem(413, "TooLargeError", f"the body may have at most {MOST_BODY >> 20} MB")
