"""Login to the console: a person by a one-time link or code, an operator by a link or a key, or anybody on a machine of
their own.

A link is signed, valid for a few minutes and one login, in any process; a code that can be typed stands for one. A
login session is a signed cookie; it ends after some hours, when the key that made its link is revoked, or on logout.
Forms carry a CSRF token that only the session's own pages know.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from recollect.errors import ConfigError, InvalidInputError, NotFoundError
from recollect.identity.codes import MOST_TYPED, hashed, new_code, normal
from recollect.identity.signing import sign, url_safe, verify
from recollect.store.keys import DEFAULT_TENANT, ApiKeys, IdempotentRequest, check_tenant
from recollect.store.tenants import stored_id
from recollect.times import Clock, utc_now

SESSION_LIFETIME = timedelta(hours=12)
"""The lifetime of a session. Shorter than answers are kept, or one that was ended could begin again."""
LINK_LIFETIME = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class LoginSession:
    """A login session: a person sees their own memory, an operator statistics of their tenant."""

    tenant: str
    user: str | None
    """The stored user id; None for an operator without a user."""
    operator: bool
    is_open: bool = False
    """True on a local machine, where no login is required."""
    may_write: bool = True
    nonce: str = ""


class LoginRefusedError(InvalidInputError):
    """The link, code or key is not valid."""


class Login:
    """Manages login sessions. With ``open``, as long as no key was ever created, everybody is ``user`` and operator, as
    on a local machine.
    """

    def __init__(
        self, keys: ApiKeys, *, open: bool = False, user: str | Callable[[], str] = "me", clock: Clock = utc_now
    ) -> None:
        self._keys = keys
        self._open = open
        self._user = user if callable(user) else lambda: user
        self._clock = clock
        self._own_secret: bytes | None = None
        self._used: set[str] = set()
        self._guessing = threading.Lock()
        self._guard = threading.Lock()

    def link(
        self,
        user: str | None,
        *,
        tenant: str = DEFAULT_TENANT,
        operator: bool = False,
        read_only: bool = False,
        key: str = "",
    ) -> tuple[str, int]:
        """Return a one-time link code for a user, as the tenant knows them, and its expiry.

        ``key`` is the id of the API key it is made with; the session ends when that is revoked.
        """
        check_tenant(tenant)
        stored = None if user is None else stored_id(tenant, user)
        if stored is None and not operator:
            raise InvalidInputError("user", "is required, unless the link is for an operator")
        if stored is not None and operator:
            raise InvalidInputError("operator", "cannot be combined with a user; create a link for each")
        return self._signed("link", {"t": tenant, "u": stored, "o": operator, "r": read_only, "k": key}, LINK_LIFETIME)

    def code(self, user: str | None, **how: Any) -> tuple[str, datetime]:
        """Return a code that can be typed, such as ``K7QM2-XWDPA``, instead of a link; only its hash is stored."""
        link, until = self.link(user, **how)
        code = new_code()
        kept = self._kept_as(normal(code))
        self._keys.keep_answer(kept, "console", 200, link.encode())
        # a custom store keeps nothing: there the link is its own code
        return code if self._keys.answer(kept) else link, datetime.fromtimestamp(until, timezone.utc)

    def enter(self, code: str) -> tuple[str, int]:
        """Start a session with a link code or an admin key; return the cookie and its expiry."""
        given = code.strip()
        if given.startswith("rk_"):
            key = self._keys.named_by(given)
            if key is None or not key.may("admin"):
                raise LoginRefusedError("key", "is unknown, was revoked, or does not have the scope admin")
            return self._signed(
                "session", {"t": key.tenant, "u": None, "o": True, "r": False, "k": key.id}, SESSION_LIFETIME
            )
        told = self._told("link", given if len(given) > MOST_TYPED else self._link_of(given))
        if told is None or not self._is_good(told) or not self._spend(told["n"]):
            raise LoginRefusedError(
                "code", "was already used, has expired, or is not from this server; request a new one"
            )
        return self._signed("session", {name: told[name] for name in "tuork"}, SESSION_LIFETIME)

    def session(self, cookie: str) -> LoginSession | None:
        """Return the login session of this cookie; None if it is not valid."""
        told = self._told("session", cookie) if cookie else None
        if told is not None and self._is_good(told) and not self._is_spent(told["n"]):
            return LoginSession(told["t"], told["u"], told["o"], may_write=not told["r"], nonce=told["n"])
        if self._open and not self._keys.any():
            return LoginSession(DEFAULT_TENANT, self._user(), True, is_open=True)
        return None

    def leave(self, session: LoginSession) -> None:
        """End a session, for everyone who has its cookie."""
        if session.nonce:
            self._spend(session.nonce)

    def csrf_token(self, browser: str) -> str:
        """Return the token that forms of this browser and session must carry."""
        return url_safe(hmac.digest(self._secret, b"form " + browser.encode(), "sha256"))

    def is_csrf_token(self, browser: str, token: str) -> bool:
        """Return True if a form comes from our own page."""
        return hmac.compare_digest(self.csrf_token(browser).encode(), token.encode())

    # inside

    def _link_of(self, typed: str) -> str:
        """Return the link that a code stands for; empty if it is not valid."""
        try:
            with self._guessing:  # a slow hash, so one at a time: guessing cannot use up the machine
                found = self._keys.answer(self._kept_as(normal(typed)))
        except (InvalidInputError, NotFoundError):
            return ""
        return "" if found is None or found[2] is None else found[2].decode()

    def _kept_as(self, code: str) -> IdempotentRequest:
        salt = hmac.digest(self._secret, b"console code", "sha256")[:16].hex()
        return IdempotentRequest("", f"console code {hashed(code, salt)}")

    @property
    def _secret(self) -> bytes:
        try:
            return self._keys.secret
        except ConfigError:  # a custom store keeps none: this process alone
            with self._guard:
                self._own_secret = self._own_secret or secrets.token_bytes(32)
                return self._own_secret

    def _signed(self, what: str, told: dict[str, Any], lasts: timedelta) -> tuple[str, int]:
        until = int((self._clock() + lasts).timestamp())
        return sign(self._secret, f"console {what}", told | {"e": until, "n": secrets.token_hex(16)}), until

    def _told(self, what: str, text: str) -> dict[str, Any] | None:
        return verify(self._secret, f"console {what}", text)

    def _is_good(self, told: dict[str, Any]) -> bool:
        if told["e"] <= self._clock().timestamp():
            return False
        key = self._keys.get(told["k"]) if told["k"] else None
        needed = "admin" if told["o"] else "read" if told["r"] else "write"
        return not told["k"] or (key is not None and key.may(needed))

    def _spend(self, nonce: str) -> bool:
        """Use something up; return True if this was the first time in all processes."""
        with self._guard:
            if nonce in self._used:
                return False
            self._used.add(nonce)
        mine = secrets.token_bytes(16)
        self._keys.keep_answer(IdempotentRequest("", nonce), "console", 200, mine)  # the first one stays
        kept = self._kept(nonce)
        return kept is None or kept == mine

    def _is_spent(self, nonce: str) -> bool:
        return nonce in self._used or self._kept(nonce) is not None

    def _kept(self, nonce: str) -> bytes | None:
        try:
            found = self._keys.answer(IdempotentRequest("", nonce))
        except NotFoundError:
            return b""
        return None if found is None else found[2] or b""
