"""The routes that are not about one memory: users, runs, metrics, trends, tokens, login links, tool declarations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, cast, get_args
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
from recollect.surfaces.http.authentication import Authentication
from recollect.surfaces.http.messages import Request, Response, respond
from recollect.surfaces.http.problems import Problem
from recollect.surfaces.http.routes import RouteGroup, route
from recollect.surfaces.http.schema import StrictModel
from recollect.tools.catalog import SUITES, tools_of
from recollect.tools.wire import Format, declarations
from recollect.usage_metrics import UsageMetrics
from recollect.verbs import PAGE

FORMATS = (*get_args(Format), "mcp")


_Before = Annotated[
    argument_schemas.USER_BEFORE | None, Field(description="the user to continue after: ``next`` of the previous page")
]
_Page = Annotated[argument_schemas.FEW, Field(description="the maximum number of users")]
_Period = Annotated[int, Field(json_schema_extra={"enum": list(PERIODS)})]
_Format = Annotated[str, Field(json_schema_extra={"enum": list(FORMATS)})]
_ALL: list[str] = []
_Suites = Annotated[list[str], Field(json_schema_extra={"items": {"enum": list(SUITES)}}, max_length=20)]


class LoginRequest(StrictModel):
    """The user to log in to the web console, or an operator."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {
                    "required": ["user"],
                    "properties": {"user": component_schema("UserId"), "operator": {"const": False}},
                },
                {"required": ["operator"], "properties": {"operator": {"const": True}, "user": {"type": "null"}}},
            ]
        }
    )

    user: argument_schemas.LOCAL_USER | None = None
    operator: bool = False
    read_only: bool = False


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


class AdminRoutes(RouteGroup):
    """The handlers of these routes."""

    def __init__(self, app: Recollect, authentication: Authentication) -> None:
        self._app = app
        self._authentication = authentication

    @route("GET", "/users", "admin", returns=list[str], paged=True)
    def users(self, request: Request, *, cursor: _Before = None, page: _Page = PAGE) -> Response:
        """List the users of the tenant."""
        tenant = request.caller.tenant
        stored = self._app.users(tenant=tenant, after=first_of(tenant, cursor or ""), limit=page + 1)
        found = [local for local, _ in users_of(tenant, stored)]
        return respond(found[:page], next=found[page - 1] if len(found) > page else None)

    @route("DELETE", "/users/{user}", "admin")
    def erase_user(self, request: Request) -> Receipt:
        """Erase a user and everything about them, and return a receipt."""
        return self._app.erase_user(request.user)

    @route("GET", "/runs", "admin")
    def all_runs(
        self, request: Request, *, kind: argument_schemas.LINE | None = None, limit: argument_schemas.FEW = 20
    ) -> list[tuple[str, ExtractionRun]]:
        """List extraction runs of all users of the tenant, latest day first."""
        tenant = request.caller.tenant
        found = [
            (local, run)
            for local, stored in users_of(tenant, self._app.users(tenant=tenant))
            for run in self._app.user(stored).runs(kind=kind, limit=limit)
        ]
        found.sort(key=lambda one: (one[1].day, one[1].started_at), reverse=True)
        return found[:limit]

    @route("GET", "/metrics", "admin")
    def metrics(self, request: Request, *, days: argument_schemas.DAYS = 7) -> UsageMetrics:
        """Return usage metrics of the tenant: calls, success rate, latency, queue. No content."""
        return self._app.metrics(days=days, tenant=request.caller.tenant)

    @route("GET", "/trends", "admin")
    def trends(self, request: Request, *, k: argument_schemas.SHARING = FEWEST, days: _Period = 30) -> list[Trend]:
        """List topics that many users of the tenant share. Only users who consented are counted."""
        return self._app.trends(k=k, days=days, among=self._app.users(tenant=request.caller.tenant))

    @route("POST", "/tokens", "read", returns=TokenCreated, statuses={201: "The token"})
    def make_token(
        self,
        request: Request,
        *,
        user: argument_schemas.LOCAL_USER,
        scope: Literal["read", "write"] = "read",
        minutes: argument_schemas.MINUTES = 15,
    ) -> Response:
        """Create a short-lived token for one user."""
        stored_id(request.caller.tenant, user)
        if not request.caller.may(scope):
            raise Problem(403, "NotAllowedError", "a token cannot have a wider scope than the key that creates it")
        token, until = self._authentication.token(request.caller, user=user, scope=scope, minutes=minutes)
        return respond(TokenCreated(token=token, expires_at=until), 201)

    @route("POST", "/logins", "read", takes=LoginRequest, returns=LoginCreated, statuses={201: "The link"})
    def create_login(
        self, request: Request, *, user: str | None = None, operator: bool = False, read_only: bool = False
    ) -> Response:
        """Create a login link to the web console for a user. It works once, within ten minutes."""
        if not request.caller.may("admin" if operator else "read" if read_only else "write"):
            raise Problem(403, "NotAllowedError", "a link cannot have a wider scope than the key that creates it")
        who = {"tenant": request.caller.tenant, "operator": operator, "read_only": read_only, "key": request.caller.key}
        code, until = Login(self._app.keys).code(user, **who)
        where = self._app.config.console_url.rstrip("/") or "/console"
        return respond(LoginCreated(code=code, link=f"{where}/login?code={quote(code)}", expires_at=until), 201)

    @route("GET", "/tools", "read")
    def tools(
        self, request: Request, *, format: _Format = "openai", suites: _Suites = _ALL, strict: bool = False
    ) -> list[dict[str, Any]]:
        """Return the tool declarations in the format of a provider."""
        if format not in FORMATS:
            raise InvalidInputError("format", f"must be one of {', '.join(FORMATS)}")
        return declarations(tools_of(suites), cast(Format, format), strict=strict)
