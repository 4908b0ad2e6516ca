"""Who logs in: a person by a one-time link or code, an operator by a link or a key, or whoever sits at a machine of
their own.

A link is signed and good for a few minutes and one login, whichever process it reaches; a code that can be typed stands
for one. A login session is a signed cookie; it ends with its hours, with the key that made its link, or with leaving.
Forms carry a CSRF token that only the user's own pages know.
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
"""How long a login session lasts. Less than answers are kept, or one that was ended could begin again."""
LINK_LIFETIME = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class LoginSession:
    """Who looks at a page: a person sees their own memory, an operator numbers about everybody of their tenant."""

    tenant: str
    user: str | None
    """As stored; None for an operator who is nobody here."""
    operator: bool
    is_open: bool = False
    """On a machine of one's own, where nobody had to say who they are."""
    may_write: bool = True
    nonce: str = ""


class LoginRefusedError(InvalidInputError):
    """A link or a key that lets nobody in."""


class Login:
    """Starts login sessions. ``open``: as long as there never was a key, everybody is ``user`` and operator, as on a
    machine of one's own."""

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
        """The code of a one-time link for a user, as the tenant knows them, and when it ends.

        ``key`` is the id of the API key on whose behalf it is made; a session ends when that is revoked.
        """
        check_tenant(tenant)
        stored = None if user is None else stored_id(tenant, user)
        if stored is None and not operator:
            raise InvalidInputError("user", "must be given, unless the link is an operator's")
        return self._signed("link", {"t": tenant, "u": stored, "o": operator, "r": read_only, "k": key}, LINK_LIFETIME)

    def code(self, user: str | None, **how: Any) -> tuple[str, datetime]:
        """The same as a code that can be typed, such as ``K7QM2-XWDPA``; of it only a hash is stored."""
        link, until = self.link(user, **how)
        code = new_code()
        kept = self._kept_as(normal(code))
        self._keys.keep_answer(kept, "console", 200, link.encode())
        # a store of one's own keeps nothing: there the link is its own code
        return code if self._keys.answer(kept) else link, datetime.fromtimestamp(until, timezone.utc)

    def enter(self, code: str) -> tuple[str, int]:
        """Begin a login session with the code of a link or with an admin key: the cookie, and when it ends."""
        given = code.strip()
        if given.startswith("rk_"):
            key = self._keys.named_by(given)
            if key is None or not key.may("admin"):
                raise LoginRefusedError("key", "is not known, was revoked, or is not one that administers")
            return self._signed(
                "session", {"t": key.tenant, "u": None, "o": True, "r": False, "k": key.id}, SESSION_LIFETIME
            )
        told = self._told("link", given if len(given) > MOST_TYPED else self._link_of(given))
        if told is None or not self._is_good(told) or not self._spend(told["n"]):
            raise LoginRefusedError(
                "code", "was used already, or is too old, or is not one of this server; ask for another"
            )
        return self._signed("session", {name: told[name] for name in "tuork"}, SESSION_LIFETIME)

    def session(self, cookie: str) -> LoginSession | None:
        """Who this is; None if nobody is known by that cookie."""
        told = self._told("session", cookie) if cookie else None
        if told is not None and self._is_good(told) and not self._is_spent(told["n"]):
            return LoginSession(told["t"], told["u"], told["o"], may_write=not told["r"], nonce=told["n"])
        if self._open and not self._keys.any():
            return LoginSession(DEFAULT_TENANT, self._user(), True, is_open=True)
        return None

    def leave(self, session: LoginSession) -> None:
        """End a login session, for whoever has its cookie."""
        if session.nonce:
            self._spend(session.nonce)

    def csrf_token(self, browser: str) -> str:
        """Return what a form must carry that is sent by this browser in this login session."""
        return url_safe(hmac.digest(self._secret, b"form " + browser.encode(), "sha256"))

    def is_csrf_token(self, browser: str, token: str) -> bool:
        """Return whether a form comes from a page of ours."""
        return hmac.compare_digest(self.csrf_token(browser).encode(), token.encode())

    # inside

    def _link_of(self, typed: str) -> str:
        """The link that a code stands for; empty if it is none."""
        try:
            with self._guessing:  # a slow hash, so one at a time: who guesses takes no more than that of the machine
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
        except ConfigError:  # a store of one's own keeps none: this process alone
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
        """Use something up; whether this was the first time, of all processes."""
        with self._guard:
            if nonce in self._used:
                return False
            self._used.add(nonce)
        mine = secrets.token_bytes(16)
        self._keys.keep_answer(IdempotentRequest("", nonce), "console", 200, mine)  # the first one's stays
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
