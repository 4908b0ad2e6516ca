"""Turns the problems of a server (RFC 9457) back into Recollect errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect import errors
from recollect.errors import RecollectError
from recollect.times import from_text


class NotAllowedError(RecollectError):
    """The server rejected the request: the key is missing, unknown or revoked, or its scope is too narrow."""


class TooManyRequestsError(RecollectError):
    """There were too many requests; retry after ``seconds``."""

    seconds: float = 1.0


class BadRequestError(RecollectError):
    """The server cannot read the request: its path, method, host, type or body is wrong."""


class TooSlowError(RecollectError):
    """The body of the request did not arrive in time."""


class TooLargeError(RecollectError):
    """The body of the request is too large."""


class PreconditionFailedError(RecollectError):
    """The file was changed in the meantime; read it again and edit the new text."""


class DoneAlreadyError(RecollectError):
    """The request was already done, and its response is lost; the journal has its changes."""


class InternalError(RecollectError):
    """The server failed; its log says why."""


class UnansweredError(RecollectError):
    """The client does not understand the server's response."""


_OWN: dict[str, type[RecollectError]] = {
    cls.__name__: cls
    for cls in (
        BadRequestError,
        DoneAlreadyError,
        InternalError,
        NotAllowedError,
        PreconditionFailedError,
        TooLargeError,
        TooManyRequestsError,
        TooSlowError,
    )
}
_TOLD = ("field", "kind", "extra", "seconds")


def error_of(problem: Mapping[str, Any], status: int) -> RecollectError:
    """Return the error for a problem."""
    name = str(problem.get("error", ""))
    cls = _OWN.get(name) or getattr(errors, name, None)
    if not (isinstance(cls, type) and issubclass(cls, RecollectError)):
        cls = UnansweredError
    error = cls.__new__(cls)
    # without its own constructor: the message is already complete
    Exception.__init__(error, str(problem.get("detail") or f"the server answered with status {status}"))
    for told in _TOLD:
        if told in problem:
            setattr(error, told, problem[told])
    if isinstance(error, errors.LinkError):
        retry_at = problem.get("retry_at")
        error.retry_at = from_text(retry_at) if retry_at else None
    return error
