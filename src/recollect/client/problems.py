"""What went wrong, as the server tells it (RFC 9457), turned back into the errors of Recollect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect import errors
from recollect.errors import RecollectError
from recollect.times import from_text


class NotAllowedError(RecollectError):
    """The server does not let this in: the key is missing, unknown or revoked, or may not do this."""


class TooManyRequestsError(RecollectError):
    """There were too many requests; ``seconds`` says when to try again."""

    seconds: float = 1.0


class UnansweredError(RecollectError):
    """The server did not answer in a way that this client understands."""


_OWN = {cls.__name__: cls for cls in (NotAllowedError, TooManyRequestsError)}
_TOLD = ("field", "kind", "extra", "seconds")


def error_of(problem: Mapping[str, Any], status: int) -> RecollectError:
    """The error that a problem tells of."""
    name = str(problem.get("error", ""))
    cls = _OWN.get(name) or getattr(errors, name, None)
    if not (isinstance(cls, type) and issubclass(cls, RecollectError)):
        cls = UnansweredError
    error = cls.__new__(cls)
    # not by its own constructor: the message is complete already
    Exception.__init__(error, str(problem.get("detail") or f"the server answered with status {status}"))
    for told in _TOLD:
        if told in problem:
            setattr(error, told, problem[told])
    if isinstance(error, errors.LinkError):
        retry_at = problem.get("retry_at")
        error.retry_at = from_text(retry_at) if retry_at else None
    return error
