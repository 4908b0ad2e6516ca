"""The server: it finds the protocol of a request, takes a turn of the script, and encodes it."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from recollect.testing.http_server import HttpRequest, HttpResponse, HttpServer
from recollect.testing.models import gemini
from recollect.testing.models.anthropic import Messages
from recollect.testing.models.openai import ChatCompletions, Responses
from recollect.testing.models.protocol import ModelAnswer, Protocol, RefusedError, encode
from recollect.testing.models.script import (
    Call,
    Cut,
    Fail,
    Garbage,
    ModelRequest,
    Say,
    Script,
    Stall,
    Turn,
    Usage,
)

_STREAM = "text/event-stream; charset=utf-8"
_STALL_STEP = 0.02
"""Seconds between two checks of whether a stalled client is still there."""


class ModelServer:
    """A model on this machine that follows a script, for the time of a with block.

    ``script`` is a list of turns, one per request whatever its protocol, or a function, which may be called from
    several threads at once. ``key`` is the only API key that is accepted; any key is if it is empty.

    ``requests`` holds the accepted requests, ``problems`` what went wrong: refused requests, and a script that was too
    short or failed. A test that expects none asserts ``server.problems == []``.
    """

    def __init__(self, script: Script, *, key: str = "") -> None:
        self.requests: list[ModelRequest] = []
        self.problems: list[str] = []
        self.key = key
        self._script = script
        self._taken = 0
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._protocols: dict[str, Protocol] = {
            "/v1/chat/completions": ChatCompletions(),
            "/v1/responses": Responses(),
            "/v1/messages": Messages(),
        }
        self._gemini = gemini.Gemini()

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI's library."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for Anthropic's library."""
        return self.url

    @property
    def gemini_url(self) -> str:
        """The base URL for Google's library."""
        return self.url

    @property
    def remaining(self) -> int | None:
        """The number of turns that are left; None if the script is a function."""
        return None if callable(self._script) else max(0, len(self._script) - self._taken)

    def __enter__(self) -> Self:
        self._server = HttpServer(self._answer, self.problems)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def check(self, request: ModelRequest) -> None:
        """Raise RefusedError for a request that this server does not accept; a subclass may."""

    def _answer(self, request: HttpRequest) -> HttpResponse:
        is_gemini = gemini.PATH.fullmatch(request.path) or "x-goog-api-key" in request.headers
        protocol = self._gemini if is_gemini else self._protocols.get(request.path, self._protocols["/v1/responses"])
        try:
            accepted = self._accept(protocol, request)
            return self._play(protocol, accepted, self._next_turn(accepted), request)
        except RefusedError as refused:
            self.problems.append(
                f"{request.method} {request.path} was refused with {refused.status}: {refused.message}"
            )
            return HttpResponse(refused.status, encode(protocol.error(refused.status, refused.message)))

    def _accept(self, protocol: Protocol, request: HttpRequest) -> ModelRequest:
        key = protocol.key(request)
        if not key or (self.key and key != self.key):
            raise RefusedError("Incorrect API key provided." if key else "No API key.", protocol.missing_key_status)
        if request.method != "POST" or not (request.path in self._protocols or gemini.PATH.fullmatch(request.path)):
            raise RefusedError(f"Invalid URL ({request.method} {request.path})", 404)
        try:
            accepted = protocol.read(request, json.loads(request.body))
            self.check(accepted)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise RefusedError(f"The request could not be read: {error!r}") from error
        with self._lock:
            self.requests.append(accepted)
        return accepted

    def _next_turn(self, request: ModelRequest) -> Turn:
        step: Any = self._script
        if not callable(self._script):
            with self._lock:
                place, self._taken = self._taken, self._taken + 1
            if place >= len(self._script):
                # 400, because the libraries retry after a 500
                raise RefusedError(f"The script is exhausted after {len(self._script)} turns.")
            step = self._script[place]
        try:
            return step(request) if callable(step) else step  # type: ignore[no-any-return]
        except Exception as error:  # the test's own function: its failure must reach the test
            raise RefusedError(f"The script failed: {error!r}") from error

    def _play(self, protocol: Protocol, request: ModelRequest, turn: Turn, http: HttpRequest) -> HttpResponse:
        if isinstance(turn, Stall):
            self._stall(turn, http)
            if turn.then is None or self._server.stopping.is_set():
                raise ConnectionAbortedError("the script closes the connection")
            return self._play(protocol, request, turn.then, http)
        if isinstance(turn, Fail):
            retry = {} if turn.retry_after is None else {"Retry-After": f"{turn.retry_after:g}"}
            body = protocol.error(turn.status, turn.message, turn.retry_after)
            return HttpResponse(turn.status, encode(body), headers=retry)
        if isinstance(turn, Garbage):
            return HttpResponse(200, turn.body, turn.content_type)
        if isinstance(turn, Cut):
            if turn.at <= 0:
                raise ConnectionAbortedError("the script cuts the connection")
            whole = self._encoded(protocol, request, turn.turn)
            return replace(whole, sent=min(int(len(whole.body) * turn.at), len(whole.body) - 1))
        return self._encoded(protocol, request, turn)

    def _encoded(
        self, protocol: Protocol, request: ModelRequest, turn: Say | Call | Sequence[Say | Call]
    ) -> HttpResponse:
        parts = [turn] if isinstance(turn, Say | Call) else list(turn)
        if not all(isinstance(part, Say | Call) for part in parts):
            raise RefusedError(f"The script failed: {turn!r} is not a turn.")
        number = next(self._numbers)
        prefix = "toolu" if protocol.name == "anthropic" else "call"
        parts = [
            replace(part, id=part.id or f"{prefix}_{number}_{place}") if isinstance(part, Call) else part
            for place, part in enumerate(parts)
        ]
        answer = ModelAnswer(f"{number:08d}", tuple(parts), _usage(request.raw, parts))
        if request.stream:
            return HttpResponse(200, b"".join(protocol.stream(request, answer)), _STREAM)
        return HttpResponse(200, encode(protocol.write(request, answer)))

    def _stall(self, stall: Stall, http: HttpRequest) -> None:
        """Wait until the time is over, the event is set, the client hangs up or the server stops."""
        left = stall.seconds
        while not self._server.stopping.is_set() and not (stall.until is not None and stall.until.is_set()):
            if left is not None and left <= 0:
                return
            if http.hung_up(_STALL_STEP):
                raise ConnectionAbortedError("the client hung up")
            left = None if left is None else left - _STALL_STEP


def _usage(raw: Mapping[str, Any], parts: Sequence[Say | Call]) -> Usage:
    """Return the usage that the script gives, or an estimate."""
    given = [part.usage for part in parts if part.usage is not None]
    if given:
        return Usage(sum(one.input for one in given), sum(one.output for one in given))
    written = sum(len(part.text if isinstance(part, Say) else f"{part.name}{part.arguments}") for part in parts)
    return Usage(len(json.dumps(raw)) // 4 + 1, written // 4 + 1)
