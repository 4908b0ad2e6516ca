"""The routes that are not about one memory: users, runs, metrics, trends, tokens, login links, tool declarations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args
from urllib.parse import quote

from pydantic import ConfigDict, Field

from recollect.app import Recollect
from recollect.errors import InvalidInputError
from recollect.fields import component_schema
from recollect.identity.login import Login
from recollect.memory.trends import FEWEST, PERIODS, Trend
from recollect.records import ExtractionRun, Receipt
from recollect.store.tenants import first_of, stored_id, users_of
from recollect.surfaces.http import argument_schemas
from recollect.surfaces.http.authentication import LONGEST_TOKEN, Authentication
from recollect.surfaces.http.messages import Request, Response, Route, respond
from recollect.surfaces.http.problems import Problem
from recollect.surfaces.http.schema import NoArguments, StrictModel
from recollect.tools.catalog import SUITES, tools_of
from recollect.tools.wire import Format, declarations
from recollect.usage_metrics import UsageMetrics
from recollect.verbs import PAGE

FORMATS = (*get_args(Format), "mcp")


class UsersRequest(StrictModel):
    """The part of the list to return."""

    cursor: argument_schemas.USER_BEFORE | None = Field(
        None, description="the user to continue after: ``next`` of the previous page"
    )
    page: argument_schemas.integer_type(1, 1000) = Field(PAGE, description="the maximum number of users")  # type: ignore[valid-type]


class TokenRequest(StrictModel):
    """The user, scope and lifetime of a token."""

    user: argument_schemas.LOCAL_USER
    scope: Literal["read", "write"] = "read"
    minutes: argument_schemas.integer_type(1, LONGEST_TOKEN) = 15  # type: ignore[valid-type]


class LoginRequest(StrictModel):
    """The user or operator to log in to the web console."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["user"], "properties": {"user": component_schema("UserId")}},
                {"required": ["operator"], "properties": {"operator": {"const": True}}},
            ]
        }
    )

    user: argument_schemas.LOCAL_USER | None = None
    operator: bool = False
    read_only: bool = False


class RunsRequest(StrictModel):
    """The runs to return."""

    kind: argument_schemas.LINE | None = None
    limit: argument_schemas.integer_type(1, 1000) = 20  # type: ignore[valid-type]


class MetricsRequest(StrictModel):
    """The period of the metrics."""

    days: argument_schemas.integer_type(1, 366) = 7  # type: ignore[valid-type]


class TrendsRequest(StrictModel):
    """The minimum number of users and the period."""

    k: argument_schemas.integer_type(FEWEST, 1_000_000) = FEWEST  # type: ignore[valid-type]
    days: int = Field(30, json_schema_extra={"enum": list(PERIODS)})


class ToolsRequest(StrictModel):
    """The format of the declarations."""

    format: str = Field("openai", json_schema_extra={"enum": list(FORMATS)})
    suites: list[str] = Field(default_factory=list, json_schema_extra={"items": {"enum": list(SUITES)}}, max_length=20)
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCreated:
    """A token. It is shown only once."""

    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginCreated:
    """A one-time login code for the web console."""

    code: str
    link: str
    """The login link; without MEMORY_CONSOLE_URL, below the address of the request."""
    expires_at: datetime


class AdminRoutes:
    """The handlers of these routes."""

    def __init__(self, app: Recollect, authentication: Authentication) -> None:
        self._app = app
        self._authentication = authentication

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route(
                method="GET",
                path="/users",
                name="users",
                does="List the users of the tenant.",
                scope="admin",
                takes=UsersRequest,
                returns=list[str],
                handle=self._users,
                paged=True,
            ),
            Route(
                method="DELETE",
                path="/users/{user}",
                name="erase_user",
                does="Erase a user and everything about them, and return a receipt.",
                scope="admin",
                takes=NoArguments,
                returns=Receipt,
                handle=self._erase,
            ),
            Route(
                method="GET",
                path="/runs",
                name="all_runs",
                does="List extraction runs of all users of the tenant, latest day first.",
                scope="admin",
                takes=RunsRequest,
                returns=list[tuple[str, ExtractionRun]],
                handle=self._runs,
            ),
            Route(
                method="GET",
                path="/metrics",
                name="metrics",
                does="Return usage metrics of the tenant: calls, success rate, latency, queue. No content.",
                scope="admin",
                takes=MetricsRequest,
                returns=UsageMetrics,
                handle=self._metrics,
            ),
            Route(
                method="GET",
                path="/trends",
                name="trends",
                does="List topics that many users of the tenant share. Only users who consented are counted.",
                scope="admin",
                takes=TrendsRequest,
                returns=list[Trend],
                handle=self._trends,
            ),
            Route(
                method="POST",
                path="/tokens",
                name="make_token",
                does="Create a short-lived token for one user.",
                scope="read",
                takes=TokenRequest,
                returns=TokenCreated,
                handle=self._token,
                statuses={201: "The token"},
            ),
            Route(
                method="POST",
                path="/logins",
                name="create_login",
                does="Create a login link to the web console for a user. It works once, within ten minutes.",
                scope="read",
                takes=LoginRequest,
                returns=LoginCreated,
                handle=self._login,
                statuses={201: "The link"},
            ),
            Route(
                method="GET",
                path="/tools",
                name="tools",
                does="Return the tool declarations in the format of a provider.",
                scope="read",
                takes=ToolsRequest,
                returns=list[dict[str, Any]],
                handle=self._tools,
            ),
        ]

    def _users(self, request: Request) -> Response:
        tenant, size = request.caller.tenant, request.values.get("page", PAGE)
        cursor = request.values.get("cursor") or ""
        stored = self._app.users(tenant=tenant, after=first_of(tenant, cursor), limit=size + 1)
        found = [local for local, _ in users_of(tenant, stored)]
        return respond(found[:size], next=found[size - 1] if len(found) > size else None)

    def _erase(self, request: Request) -> Response:
        return respond(self._app.erase_user(request.user))

    def _runs(self, request: Request) -> Response:
        tenant, limit, kind = request.caller.tenant, request.values.get("limit", 20), request.values.get("kind")
        found = [
            (local, run)
            for local, stored in users_of(tenant, self._app.users(tenant=tenant))
            for run in self._app.user(stored).runs(kind=kind, limit=limit)
        ]
        found.sort(key=lambda one: (one[1].day, one[1].started_at), reverse=True)
        return respond(found[:limit])

    def _metrics(self, request: Request) -> Response:
        return respond(self._app.metrics(**request.values, tenant=request.caller.tenant))

    def _trends(self, request: Request) -> Response:
        among = self._app.users(tenant=request.caller.tenant)
        return respond(self._app.trends(**request.values, among=among))

    def _token(self, request: Request) -> Response:
        values: dict[str, Any] = {"scope": "read", "minutes": 15} | request.values
        stored_id(request.caller.tenant, values["user"])
        if not request.caller.may(values["scope"]):
            raise Problem(403, "NotAllowedError", "a token cannot have a wider scope than the key that creates it")
        token, until = self._authentication.token(request.caller, **values)
        return respond(TokenCreated(token=token, expires_at=until), 201)

    def _login(self, request: Request) -> Response:
        operator, read_only = request.values.get("operator", False), request.values.get("read_only", False)
        if not request.caller.may("admin" if operator else "read" if read_only else "write"):
            raise Problem(403, "NotAllowedError", "a link cannot have a wider scope than the key that creates it")
        who = {"tenant": request.caller.tenant, "operator": operator, "read_only": read_only, "key": request.caller.key}
        code, until = Login(self._app.keys).code(request.values.get("user"), **who)
        where = self._app.config.console_url.rstrip("/") or "/console"
        return respond(LoginCreated(code=code, link=f"{where}/login?code={quote(code)}", expires_at=until), 201)

    def _tools(self, request: Request) -> Response:
        values: dict[str, Any] = {"format": "openai", "suites": [], "strict": False} | request.values
        if values["format"] not in FORMATS:
            raise InvalidInputError("format", f"must be one of {', '.join(FORMATS)}")
        return respond(declarations(tools_of(values["suites"]), values["format"], strict=values["strict"]))
