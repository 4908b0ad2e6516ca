"""The client of a server: the memories of its users, and the operator's calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

from recollect import checks as check
from recollect.client.connection import HttpConnection, segment
from recollect.client.json_values import from_plain
from recollect.client.remote import RemoteMemory
from recollect.errors import InvalidInputError
from recollect.memory.trends import Trend
from recollect.records import ExtractionRun, Receipt
from recollect.tools.results import Result
from recollect.usage_metrics import UsageMetrics
from recollect.userid import check_user_id

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserToken:
    """A short-lived credential for the memory of one user."""

    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginLink:
    """A one-time login to the web console."""

    code: str
    link: str
    expires_at: datetime


class Client:
    """The memories on a server. Created by `recollect.client.connect`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = check.check_instance(
            "connection", connection, HttpConnection, "what `connect` makes; call that"
        )

    def user(self, user_id: str | int) -> RemoteMemory:
        """Return the memory of one user. Nothing is created until something is stored."""
        return RemoteMemory(self._connection, check_user_id(user_id))

    def users(self) -> Iterator[str]:
        """Yield the ids of all users. Like all methods below, it requires a key with the scope admin."""
        cursor: str | None = None
        while True:
            answer = self._connection.ask("GET", "users", query={"cursor": cursor} if cursor else None)
            yield from answer["result"]
            cursor = answer["next"]
            if cursor is None:
                return

    def erase_user(self, user_id: str | int) -> Receipt:
        """Erase a user and everything about them."""
        return self._ask(Receipt, "DELETE", _path(user_id))

    def runs(self, *, kind: str | None = None, limit: int = 20) -> list[tuple[str, ExtractionRun]]:
        """Return the extraction runs of all users, latest day first, each with its user."""
        query: dict[str, Any] = {"limit": limit} | ({} if kind is None else {"kind": kind})
        return self._ask(list[tuple[str, ExtractionRun]], "GET", "runs", query=query)

    def metrics(self, *, days: int = 7) -> UsageMetrics:
        """Return usage metrics of the last days, including today: calls, success, latency, the queue."""
        return self._ask(UsageMetrics, "GET", "metrics", query={"days": days})

    def trends(self, *, k: int = 5, days: int = 30) -> list[Trend]:
        """Return topics that at least ``k`` consenting users share."""
        return self._ask(list[Trend], "GET", "trends", query={"k": k, "days": days})

    def token(self, user_id: str | int, *, scope: Literal["read", "write"] = "read", minutes: int = 15) -> UserToken:
        """Create a token for a user's own device. It is valid until it expires or the key is revoked."""
        asked = {"user": check_user_id(user_id), "scope": scope, "minutes": minutes}
        return self._ask(UserToken, "POST", "tokens", body=asked)

    def create_login(self, user_id: str | int, *, read_only: bool = False) -> LoginLink:
        """Create a login link to the web console for a user. It works once, within ten minutes."""
        return self._ask(LoginLink, "POST", "logins", body={"user": check_user_id(user_id), "read_only": read_only})

    def declarations(self, format: str, *suites: str) -> list[dict[str, Any]]:
        """Return the declarations of the tools of these suites, or of all, in a provider's format."""
        query: dict[str, Any] = {"format": format} | ({"suites": list(suites)} if suites else {})
        return self._ask(list[dict[str, Any]], "GET", "tools", query=query)

    def call(
        self,
        user_id: str | int,
        tool: str,
        arguments: dict[str, Any] | None = None,
        *,
        suites: Sequence[str] = (),
        session: str | None = None,
        chat: str | None = None,
        agent: str | None = None,
        wait: bool = False,
    ) -> Result:
        """Call a tool for a user. A slow call is deferred unless you ``wait``; see `task`."""
        told = {
            "session": session,
            "chat": chat,
            "agent": agent,
            "suites": check.check_list("suites", suites) or None,
            "wait": wait or None,
        }
        body = {"arguments": arguments or {}} | {name: value for name, value in told.items() if value is not None}
        return self._ask(Result, "POST", f"{_path(user_id)}/tools/{segment(tool)}", body=body, again=False)

    def task(self, user_id: str | int, call: str) -> dict[str, Any]:
        """Return the state of a deferred call: its ``status``, queued or done, and what it changed."""
        return self._ask(dict[str, Any], "GET", f"{_path(user_id)}/tasks/{segment(call)}")

    def _ask(self, kind: type[_T], method: str, path: str, **how: Any) -> _T:
        found: _T = from_plain(kind, self._connection.ask(method, path, **how)["result"])
        return found

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _path(user_id: str | int) -> str:
    return f"users/{segment(check_user_id(user_id))}"


def connect(url: str, *, key: str | None = None, timeout: float = 30.0) -> Client:
    """Return a client: ``connect("http://127.0.0.1:8765", key="rk_…").user("42").remember("…")``.

    ``timeout`` is the maximum time for a response, in seconds.
    """
    if not check.check_line("url", url).startswith(("http://", "https://")):
        raise InvalidInputError("url", "must begin with http:// or https://")
    key = check.check_optional_line("key", key)
    if key is not None and not key.isascii():
        raise InvalidInputError("key", "must be as the operator gave it: letters, digits and underscores")
    return Client(HttpConnection(url, key, timeout=check.check_seconds("timeout", timeout)))
