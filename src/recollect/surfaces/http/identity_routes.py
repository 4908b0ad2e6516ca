"""The routes for identities: the user of an identity, and linking two of them with a one-time code.

Only the default tenant has them: codes are global, and must not link users of two tenants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.app import Recollect
from recollect.identity.identities import BoundIdentity, Code, Identity, Joined, Pending, Unlinked
from recollect.store.keys import DEFAULT_TENANT
from recollect.store.tenants import stored_id
from recollect.surfaces.http import argument_schemas
from recollect.surfaces.http.messages import Request, Response, Route, respond
from recollect.surfaces.http.problems import Problem, as_things_are
from recollect.surfaces.http.schema import NoArguments, StrictModel


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


class IdentityRoutes:
    """The handlers of these routes."""

    def __init__(self, app: Recollect) -> None:
        self._app = app

    def routes(self) -> list[Route]:
        """Return the routes."""
        all_ = self._app.identities
        post = self._post
        return [
            Route(
                method="GET",
                path="/identities",
                name="identities",
                does="List bound and linked identities with their users.",
                scope="admin",
                takes=NoArguments,
                returns=list[BoundIdentity],
                handle=self._for_default(lambda request: respond(all_.all())),
            ),
            post("resolve", IdentityRequest, ResolvedUser, lambda who, _: ResolvedUser(user=all_.resolve(who)), "read"),
            post(
                "bind", BindRequest, None, lambda who, given: all_.bind(who, stored_id(DEFAULT_TENANT, given["user"]))
            ),
            post("start_link", IdentityRequest, Code, lambda who, _: all_.start_link(who)),
            post("enter_code", CodeRequest, Pending, lambda who, given: all_.enter_code(who, given["code"])),
            post("pending", IdentityRequest, Pending | None, lambda who, _: all_.pending(who), "read"),
            post("confirm", IdentityRequest, Joined | Pending, lambda who, _: all_.confirm(who)),
            post("decline", IdentityRequest, bool, lambda who, _: all_.decline(who)),
            post("code_until", IdentityRequest, datetime | None, lambda who, _: all_.code_until(who), "read"),
            post("unlink", IdentityRequest, Unlinked, lambda who, _: all_.unlink(who)),
        ]

    def _post(
        self,
        name: str,
        takes: type[IdentityRequest],
        returns: Any,
        do: Callable[[tuple[str, str], dict[str, Any]], Any],
        scope: Any = "write",
    ) -> Route:
        def handle(request: Request) -> Response:
            given = request.values
            with as_things_are():
                return respond(do(Identity(given["channel"], given["name"]), given))

        return Route(
            method="POST",
            path=f"/identities/{name}",
            name=f"identity_{name}",
            does=(getattr(type(self._app.identities), name).__doc__ or "").strip().partition("\n")[0],
            scope=scope,
            takes=takes,
            returns=returns,
            handle=self._for_default(handle),
        )

    @staticmethod
    def _for_default(handle: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def checked(request: Request) -> Response:
            if request.caller.tenant != DEFAULT_TENANT:
                raise Problem(403, "NotAllowedError", "identities can be linked only in the default tenant")
            return handle(request)

        return checked
