"""A server, as a host application uses it: the memories of its users, and what its operator asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

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
    """Lets whoever has it use the memory of one user, for a while."""

    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginLink:
    """Lets whoever has it into the web console, once."""

    code: str
    link: str
    expires_at: datetime


class Client:
    """The memories on a server. Make it with `recollect.client.connect`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    def user(self, user_id: str | int) -> RemoteMemory:
        """The memory of one user. Nothing is created until something is stored."""
        return RemoteMemory(self._connection, check_user_id(user_id))

    def users(self) -> Iterator[str]:
        """The ids of everyone who has a memory there. Needs a key that administers, as all below here."""
        cursor: str | None = None
        while True:
            answer = self._connection.ask("GET", "users", query={"cursor": cursor} if cursor else None)
            yield from answer["result"]
            cursor = answer["next"]
            if cursor is None:
                return

    def erase_user(self, user_id: str | int) -> Receipt:
        """Remove a user and everything about them, everywhere."""
        return self._ask(Receipt, "DELETE", _path(user_id))

    def runs(self, *, kind: str | None = None, limit: int = 20) -> list[tuple[str, ExtractionRun]]:
        """How learning went, for everyone: user and run, the latest day first."""
        query: dict[str, Any] = {"limit": limit} | ({} if kind is None else {"kind": kind})
        return self._ask(list[tuple[str, ExtractionRun]], "GET", "runs", query=query)

    def metrics(self, *, days: int = 7) -> UsageMetrics:
        """How memories were used in the last days, today included: calls, success, latency, the queue."""
        return self._ask(UsageMetrics, "GET", "metrics", query={"days": days})

    def trends(self, *, k: int = 5, days: int = 30) -> list[Trend]:
        """Topics that at least ``k`` users share who consented to being counted."""
        return self._ask(list[Trend], "GET", "trends", query={"k": k, "days": days})

    def token(self, user_id: str | int, *, scope: Literal["read", "write"] = "read", minutes: int = 15) -> UserToken:
        """A token for one user, to be handed to their own device. It ends by itself, or with the key."""
        asked = {"user": check_user_id(user_id), "scope": scope, "minutes": minutes}
        return self._ask(UserToken, "POST", "tokens", body=asked)

    def create_login(self, user_id: str | int, *, read_only: bool = False) -> LoginLink:
        """A link that lets one user into the web console, once and within ten minutes."""
        return self._ask(LoginLink, "POST", "logins", body={"user": check_user_id(user_id), "read_only": read_only})

    def declarations(self, format: str, *suites: str) -> list[dict[str, Any]]:
        """The tools of these suites, or of all, declared as a provider wants them."""
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
        """Call a tool for a user. One that takes long is queued, unless you ``wait``; see `task`."""
        told = {"session": session, "chat": chat, "agent": agent, "suites": list(suites) or None, "wait": wait or None}
        body = {"arguments": arguments or {}} | {name: value for name, value in told.items() if value is not None}
        return self._ask(Result, "POST", f"{_path(user_id)}/tools/{segment(tool)}", body=body, again=False)

    def task(self, user_id: str | int, call: str) -> dict[str, Any]:
        """What became of a call that was queued: its ``status`` is queued or done, and then what it changed."""
        return self._ask(dict[str, Any], "GET", f"{_path(user_id)}/tasks/{segment(call)}")

    def _ask(self, kind: type[_T], method: str, path: str, **how: Any) -> _T:
        found: _T = from_plain(kind, self._connection.ask(method, path, **how)["result"])
        return found

    def close(self) -> None:
        """Let go of the connections."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _path(user_id: str | int) -> str:
    return f"users/{segment(check_user_id(user_id))}"


def connect(url: str, *, key: str | None = None, timeout: float = 30.0) -> Client:
    """The memories on a server: ``connect("http://127.0.0.1:8765", key="rk_…").user("42").remember("…")``.

    ``timeout`` is how many seconds an answer may take.
    """
    if not url.startswith(("http://", "https://")):
        raise InvalidInputError("url", "must begin with http:// or https://")
    return Client(HttpConnection(url, key, timeout=timeout))
