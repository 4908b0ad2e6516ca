"""Errors as problem details (RFC 9457). They never contain internal messages of other components."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recollect import errors
from recollect.errors import InvalidInputError, LinkError, RecollectError, StoreError
from recollect.times import to_text

TYPE = "application/problem+json"
_STATUS: dict[type[RecollectError], int] = {
    errors.InvalidInputError: 422,
    errors.NotFoundError: 404,
    errors.AmbiguousError: 409,
    errors.QueueFullError: 503,
    errors.UndoError: 409,
    errors.LinkError: 409,
    errors.NothingToRebuildError: 409,
    errors.DocumentError: 409,
    errors.ConfigError: 409,
    errors.MissingExtraError: 409,
    errors.EmbedderError: 502,
    errors.ModelError: 502,
    errors.StoreBusyError: 503,
    errors.StoreReadOnlyError: 503,
    errors.StoreFullError: 507,
    errors.StoreUnavailableError: 503,
    errors.StoreError: 500,
}
_TITLES = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    408: "Request timeout",
    409: "Conflict",
    410: "Gone",
    412: "Precondition failed",
    413: "Content too large",
    415: "Unsupported media type",
    421: "Misdirected request",
    422: "Invalid input",
    429: "Too many requests",
    500: "Internal error",
    502: "Bad gateway",
    503: "Service unavailable",
    507: "Insufficient storage",
}


class Problem(Exception):
    """An error response. Raising it ends the request."""

    def __init__(
        self, status: int, error: str, detail: str, *, headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.detail = detail
        self.headers = headers or {}
        self.more = more

    def body(self, request_id: str) -> bytes:
        """Return the JSON body of the response."""
        told = {
            "type": f"urn:recollect:error:{self.error}",
            "title": _TITLES.get(self.status, "Error"),
            "status": self.status,
            "detail": self.detail,
            "error": self.error,
            **self.more,
            "request_id": request_id,
        }
        return json.dumps(told).encode()


@contextmanager
def as_things_are() -> Iterator[None]:
    """Turn invalid input into a conflict, for arguments that are valid by themselves but conflict with each other or
    with the current state."""
    try:
        yield
    except InvalidInputError as error:
        raise Problem(409, "InvalidInputError", str(error), field=error.field) from None


def problem_of(error: RecollectError) -> Problem:
    """Return the problem for a Recollect error."""
    name = type(error).__name__
    status = next((_STATUS[cls] for cls in type(error).__mro__ if cls in _STATUS), 500)
    more: dict[str, Any] = {told: getattr(error, told) for told in ("field", "kind", "extra") if hasattr(error, told)}
    headers = {"retry-after": "1"} if status == 503 else {}
    detail = str(error)
    if isinstance(error, StoreError):
        detail = (type(error).__doc__ or "").strip()  # the message may name folders of the server
    if isinstance(error, LinkError):
        more["retry_at"] = None if error.retry_at is None else to_text(error.retry_at)
        status = 429 if error.kind == "limited" else status
    return Problem(status, name, detail, headers=headers, **more)
