"""Requests, responses and routes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from recollect.checks import MAX_NESTING, is_nested_deeper
from recollect.client.json_values import to_plain
from recollect.surfaces.http.authentication import HttpCaller
from recollect.surfaces.http.problems import Problem

JSON = "application/json"
_OUTER_LEVELS = 10
"""The levels of a body around metadata."""


@dataclass(slots=True)
class Response:
    """A response: a body or a stream."""

    status: int = 200
    body: bytes = b""
    kind: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None


@dataclass(slots=True)
class Request:
    """An authenticated request."""

    route: Route
    caller: HttpCaller
    headers: dict[str, str]
    query: bytes
    body: bytes
    receive: Callable[[], Awaitable[Any]]
    """Returns the next message of the body, for streams."""
    local: str = ""
    """The user id within the tenant."""
    user: str = ""
    """The user id in the store."""
    name: str = ""
    """The last segment of the path, where it is a name."""
    values: dict[str, Any] = field(default_factory=dict)
    """The parsed and checked arguments."""


Scope = Literal["read", "write", "admin"]
Handler = Callable[[Request], Response]
AsyncHandler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route: its method, path, scope, arguments and result."""

    method: str
    path: str
    name: str
    does: str
    scope: Scope
    takes: type[BaseModel]
    returns: Any = None
    handle: Handler | None = None
    handle_async: AsyncHandler | None = None
    paged: bool = False
    repeatable: bool = False
    """True if it accepts an idempotency key."""
    acts: bool = False
    """True if it accepts the Recollect-Acting header."""
    streams: Literal["", "in", "out"] = ""
    statuses: dict[int, str] = field(default_factory=dict)
    """Descriptions of further statuses."""

    @property
    def has_user(self) -> bool:
        """True if it is about one user."""
        return "{user}" in self.path

    @property
    def has_body(self) -> bool:
        """True if its arguments are in the body."""
        return self.method == "POST" and self.streams != "in"


def respond(value: Any, status: int = 200, **more: Any) -> Response:
    """Return a response with a value as ``result`` and further fields."""
    plain = {"result": to_plain(value), **more}
    return Response(status, json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode())


def parse_json(body: bytes) -> Any:
    """Parse the JSON of a body. Raise a `Problem` if it is invalid."""
    if not body:
        return {}
    try:
        value = json.loads(body, parse_constant=_no_number)
        if is_nested_deeper(value, MAX_NESTING + _OUTER_LEVELS):
            raise RecursionError
    except UnicodeDecodeError:
        raise Problem(400, "BadRequestError", "the body is not UTF-8") from None
    except RecursionError:
        raise Problem(400, "BadRequestError", "the body is nested too deeply") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Problem(400, "BadRequestError", f"the body is not JSON: see {where}") from None
    except ValueError:  # Python parses no number with more digits
        raise Problem(400, "BadRequestError", "the body contains a number with too many digits") from None
    return value


def _no_number(name: str) -> Any:
    raise Problem(400, "BadRequestError", f"the body is not JSON: {name} is not a number there")
