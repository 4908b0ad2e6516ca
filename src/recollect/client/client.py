"""A server, as a host application uses it: the memories of its users, and what its operator asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Literal

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
        self._connection = check.check_instance(
            "connection", connection, HttpConnection, "what `connect` makes; call that"
        )

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
        answer = self._connection.ask("DELETE", f"users/{segment(check_user_id(user_id))}")
        receipt: Receipt = from_plain(Receipt, answer["result"])
        return receipt

    def runs(self, *, kind: str | None = None, limit: int = 20) -> list[tuple[str, ExtractionRun]]:
        """How learning went, for everyone: user and run, the latest day first."""
        query: dict[str, Any] = {"limit": limit} | ({} if kind is None else {"kind": kind})
        found: list[tuple[str, ExtractionRun]] = from_plain(
            list[tuple[str, ExtractionRun]], self._connection.ask("GET", "runs", query=query)["result"]
        )
        return found

    def metrics(self, *, days: int = 7) -> UsageMetrics:
        """How memories were used in the last days, today included: calls, success, latency, the queue."""
        found: UsageMetrics = from_plain(
            UsageMetrics, self._connection.ask("GET", "metrics", query={"days": days})["result"]
        )
        return found

    def trends(self, *, k: int = 5, days: int = 30) -> list[Trend]:
        """Topics that at least ``k`` users share who consented to being counted."""
        found: list[Trend] = from_plain(
            list[Trend], self._connection.ask("GET", "trends", query={"k": k, "days": days})["result"]
        )
        return found

    def token(self, user_id: str | int, *, scope: Literal["read", "write"] = "read", minutes: int = 15) -> UserToken:
        """A token for one user, to be handed to their own device. It ends by itself, or with the key."""
        asked = {"user": check_user_id(user_id), "scope": scope, "minutes": minutes}
        token: UserToken = from_plain(UserToken, self._connection.ask("POST", "tokens", body=asked)["result"])
        return token

    def create_login(self, user_id: str | int, *, read_only: bool = False) -> LoginLink:
        """A link that lets one user into the web console, once and within ten minutes."""
        asked = {"user": check_user_id(user_id), "read_only": read_only}
        link: LoginLink = from_plain(LoginLink, self._connection.ask("POST", "logins", body=asked)["result"])
        return link

    def declarations(self, format: str, *suites: str) -> list[dict[str, Any]]:
        """The tools of these suites, or of all, declared as a provider wants them."""
        query: dict[str, Any] = {"format": format} | ({"suites": list(suites)} if suites else {})
        found: list[dict[str, Any]] = self._connection.ask("GET", "tools", query=query)["result"]
        return found

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
        told = {
            "session": session,
            "chat": chat,
            "agent": agent,
            "suites": check.check_list("suites", suites) or None,
            "wait": wait or None,
        }
        body = {"arguments": arguments or {}} | {name: value for name, value in told.items() if value is not None}
        path = f"users/{segment(check_user_id(user_id))}/tools/{segment(tool)}"
        result: Result = from_plain(Result, self._connection.ask("POST", path, body=body, again=False)["result"])
        return result

    def task(self, user_id: str | int, call: str) -> dict[str, Any]:
        """What became of a call that was queued: its ``status`` is queued or done, and then what it changed."""
        path = f"users/{segment(check_user_id(user_id))}/tasks/{segment(call)}"
        found: dict[str, Any] = self._connection.ask("GET", path)["result"]
        return found

    def close(self) -> None:
        """Let go of the connections."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(url: str, *, key: str | None = None, timeout: float = 30.0) -> Client:
    """The memories on a server: ``connect("http://127.0.0.1:8765", key="rk_…").user("42").remember("…")``.

    ``timeout`` is how many seconds an answer may take.
    """
    if not check.check_line("url", url).startswith(("http://", "https://")):
        raise InvalidInputError("url", "must begin with http:// or https://")
    key = check.check_optional_line("key", key)
    if key is not None and not key.isascii():
        raise InvalidInputError("key", "must be as the operator gave it: letters, digits and underscores")
    return Client(HttpConnection(url, key, timeout=check.check_seconds("timeout", timeout)))
