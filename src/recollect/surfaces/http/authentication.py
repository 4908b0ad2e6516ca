"""Who asks: a host application with a key, or one of its users with a token that the key made.

A key is looked up for every request, so that a revoked one lets nobody in, whichever process is asked. A token is
signed and says whose memory it is good for, for what and until when; it is worth no more than the key that made it.
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
"""The header in which an MCP client with a key names the user."""
FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})
"""What proxies add: a request that has one is not of this machine."""
_TOKEN = "rt_"
_Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class HttpCaller:
    """Who asks, and what they may do."""

    tenant: str
    scope: str
    key: str
    """The id of the key; empty where none is needed."""
    user: str | None = None
    """The only user a token is good for, as the tenant knows them."""

    def may(self, scope: str) -> bool:
        """Whether this may be done at all."""
        return SCOPES.index(scope) <= SCOPES.index(self.scope)


class Authentication:
    """Finds out who sends a request. ``open``: without any key, everybody is let in, as on a machine of your own."""

    def __init__(self, keys: ApiKeys, *, open: bool, clock: Clock = utc_now) -> None:
        self._keys = keys
        self._open = open
        self._clock = clock

    def caller(self, headers: _Headers) -> HttpCaller:
        """Who it is; a `Problem` if nobody is known."""
        headers = list(headers)
        given = [value for name, value in headers if name == b"authorization"]
        if not given and self._open and not self._keys.any():
            if any(name in FORWARDED for name, _ in headers):
                raise _unknown_caller_problem(
                    "this came through a proxy, so a key is needed; `recollect keys create` makes one"
                )
            return HttpCaller(DEFAULT_TENANT, "admin", "")
        scheme, _, text = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        if scheme.lower() != b"bearer":
            raise _unknown_caller_problem(
                "a key is needed, as in: Authorization: Bearer rk_…; `recollect keys create` makes one"
            )
        try:
            told = text.strip().decode("ascii")
        except UnicodeDecodeError:
            raise _unknown_caller_problem("this is not a key") from None
        if told.startswith(_TOKEN):
            return self._by_token(told)
        key = self._keys.named_by(told)
        if key is None:
            raise _unknown_caller_problem("the key is not known, or was revoked")
        return HttpCaller(key.tenant, key.scope, key.id)

    def token(self, caller: HttpCaller, user: str, scope: str, minutes: int) -> tuple[str, datetime]:
        """A token for one user; its text, and how long it is good."""
        until = (self._clock() + timedelta(minutes=minutes)).replace(microsecond=0)
        told = {"k": caller.key, "u": user, "s": scope, "e": int(until.timestamp())}
        return _TOKEN + sign(self._keys.secret, "token", told), until

    def _by_token(self, text: str) -> HttpCaller:
        told = verify(self._keys.secret, "token", text.removeprefix(_TOKEN))
        if told is None:
            raise _unknown_caller_problem("this is not a token of this server")
        if told["e"] <= self._clock().timestamp():
            raise _unknown_caller_problem("the token is no longer good; ask for another one")
        key = self._keys.get(told["k"]) if told["k"] else self._nobody()
        if key is None or not key.may(told["s"]):
            raise _unknown_caller_problem("the key that made this token was revoked")
        return HttpCaller(key.tenant, told["s"], key.id, told["u"])

    def _nobody(self) -> ApiKey | None:
        """Who made a token while no key was needed, as long as none is."""
        if not self._open or self._keys.any():
            return None
        return ApiKey(id="", tenant=DEFAULT_TENANT, name="", scope="admin", made_at=self._clock())


class McpAuthentication:
    """The same for MCP clients: a token says whose memory it is, and with a key the header Recollect-User does.

    What they ask counts as what is asked of the API does.
    """

    def __init__(self, authentication: Authentication, limits: RateLimits, user: str, suites: tuple[str, ...]) -> None:
        self._authentication = authentication
        self._limits = limits
        self._user = user
        self._suites = suites

    def caller(self, headers: _Headers) -> McpCaller | RejectedCaller:
        """Who it is."""
        headers = list(headers)
        try:
            caller = self._authentication.caller(headers)
            named = [value.decode("utf-8") for name, value in headers if name == USER]
            if caller.user is not None and named not in ([], [caller.user]):
                return RejectedCaller(403, "the token is another user's")
            user = caller.user or (named[0] if len(named) == 1 else "" if caller.key else self._user)
            if not user:
                return RejectedCaller(401, "the header Recollect-User must say whose memory it is")
            if not caller.may("write"):
                return RejectedCaller(403, "the key may only read; MCP needs one that may write")
            stored = stored_id(caller.tenant, user)
            self._limits.take(caller.key, stored)
            return McpCaller(stored, self._suites, f"{caller.key}/{caller.user or ''}")
        except Problem as problem:
            # in ASCII: it goes into a header
            said = problem.detail.encode("ascii", "ignore").decode()
            if problem.status == 429:
                return RejectedCaller(429, said, "too_many_requests", seconds=problem.more["seconds"])
            return RejectedCaller(problem.status, said, "invalid_token")
        except StoreError:
            return RejectedCaller(503, "it cannot be found out now who asks; try again in a moment")
        except InvalidInputError:
            return RejectedCaller(401, "the header Recollect-User is not a user id")
        except ValueError:
            return RejectedCaller(401, "the header Recollect-User is not UTF-8")


def _unknown_caller_problem(why: str) -> Problem:
    return Problem(401, "NotAllowedError", why, headers={"www-authenticate": 'Bearer realm="recollect"'})
