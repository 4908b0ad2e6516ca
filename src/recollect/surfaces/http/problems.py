"""What went wrong, told as problem details (RFC 9457): our name for it, and what to do. Never what others said."""

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
    400: "The request cannot be read",
    401: "Who are you?",
    403: "Not allowed",
    404: "Not found",
    405: "Not like that",
    408: "Too slow",
    409: "Not as things are",
    410: "Gone",
    412: "Changed meanwhile",
    413: "Too much",
    415: "Wrong kind of content",
    421: "Not for this server",
    422: "Something in it is wrong",
    429: "Too many requests",
    500: "Something went wrong inside",
    502: "Somebody else did not answer",
    503: "Not now",
    507: "No room left",
}


class Problem(Exception):
    """Ends a request with an answer that says what is wrong."""

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
        """As it is sent."""
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
    """For arguments that are right in themselves: what is said against them is that they do not fit each other, or
    what is there."""
    try:
        yield
    except InvalidInputError as error:
        raise Problem(409, "InvalidInputError", str(error), field=error.field) from None


def problem_of(error: RecollectError) -> Problem:
    """An error of ours, as it is told."""
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
