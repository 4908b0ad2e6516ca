"""How the server says no. Knows nothing about what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PHRASES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    413: "Request Entity Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


class RefusalError(Exception):
    """The request is not one that Telegram would take, or not now."""

    def __init__(self, problem: str = "", *, status: int = 400, parameters: Mapping[str, Any] | None = None) -> None:
        phrase = _PHRASES.get(status, "Error")
        self.description = f"{phrase}: {problem}" if problem else phrase
        self.status = status
        self.parameters = dict(parameters or {})
        super().__init__(self.description)

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"ok": False, "error_code": self.status, "description": self.description}
        return {**body, "parameters": self.parameters} if self.parameters else body


def too_many_requests(seconds: int) -> RefusalError:
    return RefusalError(f"retry after {seconds}", status=429, parameters={"retry_after": seconds})
