"""The routes for identities: the user of an identity, and linking two of them with a one-time code.

Only the default tenant has them: codes are global, and must not link users of two tenants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

from recollect.app import Recollect
from recollect.identity.identities import BoundIdentity, Identity
from recollect.store.keys import DEFAULT_TENANT
from recollect.store.tenants import stored_id
from recollect.surfaces.http import argument_schemas
from recollect.surfaces.http.messages import Request, Response, Route, Scope, respond
from recollect.surfaces.http.problems import Problem, as_things_are
from recollect.surfaces.http.routes import RouteGroup, route
from recollect.surfaces.http.schema import StrictModel, first_line


class IdentityRequest(StrictModel):
    """An identity: a person's account on one channel."""

    channel: argument_schemas.CHANNEL
    name: argument_schemas.PERSON


class BindRequest(IdentityRequest):
    """The user of an identity."""

    user: argument_schemas.USER


class CodeRequest(IdentityRequest):
    """A code that was shown on another channel."""

    code: argument_schemas.CODE


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedUser:
    """The user of an identity."""

    user: str


class IdentityRoutes(RouteGroup):
    """The handlers of these routes."""

    def __init__(self, app: Recollect) -> None:
        self._app = app
        self._identities = app.identities

    def routes(self) -> list[Route]:
        """Return the routes: those declared below, and one for each method of `Identities` that is offered."""
        post = self._post
        return [
            *super().routes(),
            post(
                "resolve", "read", returns=ResolvedUser, do=lambda who: ResolvedUser(user=self._identities.resolve(who))
            ),
            post("bind", takes=BindRequest, do=self._bind),
            post("start_link"),
            post("enter_code", takes=CodeRequest),
            post("pending", "read"),
            post("confirm"),
            post("decline"),
            post("code_until", "read"),
            post("unlink"),
        ]

    @route("GET", "/identities", "admin")
    def identities(self, request: Request) -> list[BoundIdentity]:
        """List bound and linked identities with their users."""
        _check_tenant(request)
        return self._identities.all()

    def _bind(self, who: Identity, user: str) -> None:
        self._identities.bind(who, stored_id(DEFAULT_TENANT, user))

    def _post(
        self,
        name: str,
        scope: Scope = "write",
        *,
        takes: type[IdentityRequest] = IdentityRequest,
        returns: Any = None,
        do: Callable[..., Any] | None = None,
    ) -> Route:
        method = getattr(self._identities, name)

        def handle(request: Request) -> Response:
            _check_tenant(request)
            given = dict(request.values)
            who = Identity(given.pop("channel"), given.pop("name"))
            with as_things_are():
                return respond((do or method)(who, *given.values()))

        return Route(
            method="POST",
            path=f"/identities/{name}",
            name=f"identity_{name}",
            does=first_line(method),
            scope=scope,
            takes=takes,
            returns=returns or get_type_hints(method)["return"],
            handle=handle,
        )


def _check_tenant(request: Request) -> None:
    if request.caller.tenant != DEFAULT_TENANT:
        raise Problem(403, "NotAllowedError", "identities can be linked only in the default tenant")
