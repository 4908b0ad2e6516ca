"""What a host application asks beside the memories: its users, how learning went, tokens, and which tools there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from pydantic import Field

from recollect.app import Recollect
from recollect.core.trends import Trend
from recollect.errors import InvalidInputError
from recollect.records import ExtractionRun, Receipt
from recollect.store.tenants import stored_id, users_of
from recollect.surfaces.http.callers import LONGEST_TOKEN, Door
from recollect.surfaces.http.exchange import Answer, Asked, Route, told
from recollect.surfaces.http.memories import page_of
from recollect.surfaces.http.problems import Problem
from recollect.surfaces.http.schema import Nothing, Paged, Strict
from recollect.tools.catalog import SUITES, tools_of
from recollect.tools.wire import Format, declarations

FORMATS = (*get_args(Format), "mcp")


class TokenAsked(Strict):
    """For whom a token is, what for, and how long."""

    user: str
    scope: Literal["read", "write"] = "read"
    minutes: int = Field(15, ge=1, le=LONGEST_TOKEN)


class RunsAsked(Strict):
    """Which runs."""

    kind: str | None = None
    limit: int = Field(20, ge=1, le=1000)


class TrendsAsked(Strict):
    """How many have to share a topic, and since when."""

    k: int = Field(5, ge=1, le=1_000_000)
    days: int = Field(30, json_schema_extra={"enum": [7, 30, 90, 365]})


class ToolsAsked(Strict):
    """How the tools are to be declared."""

    format: str = Field("openai", json_schema_extra={"enum": list(FORMATS)})
    suites: list[str] = Field(default_factory=list, json_schema_extra={"items": {"enum": list(SUITES)}})
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMade:
    """A token, which is told here and never again."""

    token: str
    expires_at: datetime


class Operators:
    """Everything that is not about one memory."""

    def __init__(self, app: Recollect, door: Door) -> None:
        self._app = app
        self._door = door

    def routes(self) -> list[Route]:
        """What can be asked."""
        return [
            Route(
                method="GET",
                path="/users",
                name="users",
                does="The users of the tenant.",
                scope="admin",
                takes=Paged,
                returns=list[str],
                handle=self._users,
                paged=True,
            ),
            Route(
                method="DELETE",
                path="/users/{user}",
                name="erase_user",
                does="Remove a user and everything about them, everywhere, and tell what was removed.",
                scope="admin",
                takes=Nothing,
                returns=Receipt,
                handle=self._erase,
            ),
            Route(
                method="GET",
                path="/runs",
                name="all_runs",
                does="How learning went, for all users of the tenant, the latest day first.",
                scope="admin",
                takes=RunsAsked,
                returns=list[tuple[str, ExtractionRun]],
                handle=self._runs,
            ),
            Route(
                method="GET",
                path="/trends",
                name="trends",
                does="Topics that many users of the tenant share who consented to being counted.",
                scope="admin",
                takes=TrendsAsked,
                returns=list[Trend],
                handle=self._trends,
            ),
            Route(
                method="POST",
                path="/tokens",
                name="make_token",
                does="A token for one user, good for a while.",
                scope="read",
                takes=TokenAsked,
                returns=TokenMade,
                handle=self._token,
                statuses={201: "The token"},
            ),
            Route(
                method="GET",
                path="/tools",
                name="tools",
                does="The tools, declared as a provider wants them.",
                scope="read",
                takes=ToolsAsked,
                returns=list[dict[str, Any]],
                handle=self._tools,
            ),
        ]

    def _users(self, asked: Asked) -> Answer:
        found = sorted(local for local, _ in users_of(asked.caller.tenant, self._app.users()))
        page, following = page_of(found, asked.values.get("cursor"), asked.values.get("page", 500))
        return told(page, next=following)

    def _erase(self, asked: Asked) -> Answer:
        return told(self._app.erase_user(asked.user))

    def _runs(self, asked: Asked) -> Answer:
        limit, kind = asked.values.get("limit", 20), asked.values.get("kind")
        found = [
            (local, run)
            for local, stored in users_of(asked.caller.tenant, self._app.users())
            for run in self._app.user(stored).runs(kind=kind, limit=limit)
        ]
        found.sort(key=lambda one: (one[1].day, one[1].started_at), reverse=True)
        return told(found[:limit])

    def _trends(self, asked: Asked) -> Answer:
        among = (stored for _, stored in users_of(asked.caller.tenant, self._app.users()))
        return told(self._app.trends(**asked.values, among=among))

    def _token(self, asked: Asked) -> Answer:
        values: dict[str, Any] = {"scope": "read", "minutes": 15} | asked.values
        stored_id(asked.caller.tenant, values["user"])
        if not asked.caller.may(values["scope"]):
            raise Problem(403, "NotAllowedError", "the key may not do itself what the token is for")
        token, until = self._door.token(asked.caller, **values)
        return told(TokenMade(token=token, expires_at=until), 201)

    def _tools(self, asked: Asked) -> Answer:
        values: dict[str, Any] = {"format": "openai", "suites": [], "strict": False} | asked.values
        if values["format"] not in FORMATS:
            raise InvalidInputError("format", f"must be one of {', '.join(FORMATS)}")
        return told(declarations(tools_of(values["suites"]), values["format"], strict=values["strict"]))
