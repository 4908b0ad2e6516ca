"""Requests, responses and routes. Knows nothing about memories."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from recollect.client.json_values import to_plain
from recollect.surfaces.http.authentication import HttpCaller
from recollect.surfaces.http.problems import Problem

JSON = "application/json"


@dataclass(slots=True)
class Response:
    """What is sent back: a body, or a stream of them."""

    status: int = 200
    body: bytes = b""
    kind: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None


@dataclass(slots=True)
class Request:
    """A request, once it is known who sent it."""

    route: Route
    caller: HttpCaller
    headers: dict[str, str]
    query: bytes
    body: bytes
    receive: Callable[[], Awaitable[Any]]
    """For what comes as a stream: the next message of the body."""
    local: str = ""
    """The user as the tenant knows them."""
    user: str = ""
    """The user as they are stored."""
    name: str = ""
    """The last part of the path, where it is a name."""
    values: dict[str, Any] = field(default_factory=dict)
    """The arguments, read and checked."""


Handler = Callable[[Request], Response]
AsyncHandler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Something that can be asked: how, by whom, with which arguments, and what is answered."""

    method: str
    path: str
    name: str
    does: str
    scope: Literal["read", "write", "admin"]
    takes: type[BaseModel]
    returns: Any = None
    handle: Handler | None = None
    handle_async: AsyncHandler | None = None
    paged: bool = False
    repeatable: bool = False
    """It takes an idempotency key."""
    acts: bool = False
    """It takes the header that says on whose behalf."""
    streams: Literal["", "in", "out"] = ""
    statuses: dict[int, str] = field(default_factory=dict)
    """Further answers it may give."""

    @property
    def has_user(self) -> bool:
        """Whether it is about one user."""
        return "{user}" in self.path

    @property
    def has_body(self) -> bool:
        """Whether its arguments are in the body."""
        return self.method == "POST" and self.streams != "in"


def respond(value: Any, status: int = 200, **more: Any) -> Response:
    """Return a response that holds a value as ``result``, and what else is said beside it."""
    plain = {"result": to_plain(value), **more}
    return Response(status, json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode())


def parse_json(body: bytes) -> Any:
    """The JSON of a body; a `Problem` if it is none."""
    if not body:
        return {}
    try:
        return json.loads(body, parse_constant=_no_number)
    except UnicodeDecodeError:
        raise Problem(400, "BadRequestError", "the body is not UTF-8") from None
    except RecursionError:
        raise Problem(400, "BadRequestError", "the body is nested too deeply") from None
    except ValueError as error:
        where = f"line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "it"
        raise Problem(400, "BadRequestError", f"the body is not JSON: see {where}") from None


def _no_number(name: str) -> Any:
    raise ValueError(name)
