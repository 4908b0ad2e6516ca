"""Authentication: a host application with an API key, or one of its users with a token created by that key.

Keys are looked up for every request, so a revoked key is rejected at once by every process. A token is signed and names
its user, scope and expiry; it becomes invalid with the key that created it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.errors import InvalidInputError, StoreError
from recollect.identity.signing import sign, verify
from recollect.store.keys import DEFAULT_TENANT, SCOPES, ApiKey, ApiKeys
from recollect.store.tenants import stored_id
from recollect.surfaces.http.problems import Problem
from recollect.surfaces.http.rate_limits import RateLimits
from recollect.surfaces.mcp.authentication import McpCaller, RejectedCaller
from recollect.times import Clock, utc_now

LONGEST_TOKEN = 24 * 60
USER = b"recollect-user"
"""The header in which an MCP client with an API key names the user."""
FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})
"""Headers that proxies add. A request with one of them does not come from this machine."""
_TOKEN = "rt_"
_Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class HttpCaller:
    """An authenticated caller and their scope."""

    tenant: str
    scope: str
    key: str
    """The id of the key; empty if none is required."""
    user: str | None = None
    """The only user the token is valid for, within the tenant."""

    def may(self, scope: str) -> bool:
        """Return True if the caller has this scope."""
        return SCOPES.index(scope) <= SCOPES.index(self.scope)


class Authentication:
    """Identifies the sender of a request. With ``open``, everyone is accepted until the first key is created."""

    def __init__(self, keys: ApiKeys, *, open: bool, clock: Clock = utc_now) -> None:
        self._keys = keys
        self._open = open
        self._clock = clock

    def caller(self, headers: _Headers) -> HttpCaller:
        """Return the caller. Raise a `Problem` if authentication fails."""
        headers = list(headers)
        given = [value for name, value in headers if name == b"authorization"]
        if not given and self._open and not self._keys.any():
            if any(name in FORWARDED for name, _ in headers):
                raise _unknown_caller_problem(
                    "requests through a proxy require an API key; create one with `recollect keys create`"
                )
            return HttpCaller(DEFAULT_TENANT, "admin", "")
        scheme, _, text = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        if scheme.lower() != b"bearer":
            raise _unknown_caller_problem(
                "an API key is required (Authorization: Bearer rk_…); create one with `recollect keys create`"
            )
        try:
            told = text.strip().decode("ascii")
        except UnicodeDecodeError:
            raise _unknown_caller_problem("this is not an API key") from None
        if told.startswith(_TOKEN):
            return self._by_token(told)
        key = self._keys.named_by(told)
        if key is None:
            raise _unknown_caller_problem("the API key is unknown or was revoked")
        return HttpCaller(key.tenant, key.scope, key.id)

    def token(self, caller: HttpCaller, user: str, scope: str, minutes: int) -> tuple[str, datetime]:
        """Create a token for one user. Return its text and expiry."""
        until = (self._clock() + timedelta(minutes=minutes)).replace(microsecond=0)
        told = {"k": caller.key, "u": user, "s": scope, "e": int(until.timestamp())}
        return _TOKEN + sign(self._keys.secret, "token", told), until

    def _by_token(self, text: str) -> HttpCaller:
        told = verify(self._keys.secret, "token", text.removeprefix(_TOKEN))
        if told is None:
            raise _unknown_caller_problem("this token was not issued by this server")
        if told["e"] <= self._clock().timestamp():
            raise _unknown_caller_problem("the token has expired; ask for a new one")
        key = self._keys.get(told["k"]) if told["k"] else self._nobody()
        if key is None or not key.may(told["s"]):
            raise _unknown_caller_problem("the API key that created this token was revoked")
        return HttpCaller(key.tenant, told["s"], key.id, told["u"])

    def _nobody(self) -> ApiKey | None:
        """Return the creator of tokens while no key exists; None once there is one."""
        if not self._open or self._keys.any():
            return None
        return ApiKey(id="", tenant=DEFAULT_TENANT, name="", scope="admin", made_at=self._clock())


class McpAuthentication:
    """Authentication of MCP clients. A token names its user; with an API key, the header Recollect-User does.

    Their requests count towards the rate limits of the API.
    """

    def __init__(self, authentication: Authentication, limits: RateLimits, user: str, suites: tuple[str, ...]) -> None:
        self._authentication = authentication
        self._limits = limits
        self._user = user
        self._suites = suites

    def caller(self, headers: _Headers) -> McpCaller | RejectedCaller:
        """Return the caller, or why the request is rejected."""
        headers = list(headers)
        try:
            caller = self._authentication.caller(headers)
            named = [value.decode("utf-8") for name, value in headers if name == USER]
            if caller.user is not None and named not in ([], [caller.user]):
                return RejectedCaller(403, "the token belongs to another user")
            user = caller.user or (named[0] if len(named) == 1 else "" if caller.key else self._user)
            if not user:
                return RejectedCaller(401, "the header Recollect-User must name the user")
            if not caller.may("write"):
                return RejectedCaller(403, "MCP requires an API key or a token with the scope write")
            stored = stored_id(caller.tenant, user)
            self._limits.take(caller.key, stored)
            return McpCaller(stored, self._suites, f"{caller.key}/{caller.user or ''}")
        except Problem as problem:
            # in ASCII, because it goes into a header
            said = problem.detail.encode("ascii", "ignore").decode()
            if problem.status == 429:
                return RejectedCaller(429, said, "too_many_requests", seconds=problem.more["seconds"])
            return RejectedCaller(problem.status, said, "invalid_token")
        except StoreError:
            return RejectedCaller(503, "authentication is not available right now; try again in a moment")
        except InvalidInputError:
            return RejectedCaller(401, "the header Recollect-User is not a user id")
        except ValueError:
            return RejectedCaller(401, "the header Recollect-User is not UTF-8")


def _unknown_caller_problem(why: str) -> Problem:
    return Problem(401, "NotAllowedError", why, headers={"www-authenticate": 'Bearer realm="recollect"'})
