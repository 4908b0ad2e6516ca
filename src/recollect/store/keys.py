"""API keys, and stored answers to requests that may be repeated: the same in both databases.

A key gives a host application access. It belongs to a tenant, whose users are separate from all others, and may read,
write or administer. Only a hash of it is stored: its text is shown once, when it is created.

Answers are stored encrypted with the idempotency key of the request, which is not stored. So what was erased from a
memory does not survive here.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from recollect.errors import InvalidInputError, MissingExtraError, NotFoundError
from recollect.store.rows import load_queries, readable
from recollect.store.service_tables import NoServiceTables, ServiceTables, Tables
from recollect.times import Clock, from_text, to_text, utc_now

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEYS = Tables(
    name="keys",
    queries=load_queries(Path(__file__).with_name("keys.sql")),
    versions="memory_key_versions",
    lock=0x4B4559532D4B4559,
    if_lost="all keys are lost",
    in_turns=False,  # each statement concerns one row
)

Scope = Literal["read", "write", "admin"]
SCOPES: tuple[str, ...] = get_args(Scope)
DEFAULT_TENANT = "default"
KEPT = timedelta(hours=24)
"""The retention of the answer to a request, for repetitions."""

_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_NONCE = 12
_WRITTEN = re.compile(r"rk_([0-9a-f]{16})_([0-9a-f]{48})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key without its secret."""

    id: str
    tenant: str
    name: str
    scope: Scope
    made_at: datetime
    revoked_at: datetime | None = None

    def may(self, scope: str) -> bool:
        """Return True if the key has this scope: write includes read, admin includes both."""
        return self.revoked_at is None and SCOPES.index(scope) <= SCOPES.index(self.scope)


def check_tenant(tenant: str) -> str:
    """Return the name of a tenant, or raise an error if it is invalid."""
    if not isinstance(tenant, str) or not _TENANT.fullmatch(tenant):
        raise InvalidInputError("tenant", "must be 1 to 32 lower-case letters, digits or -, such as acme")
    return tenant


def _check_key_id(value: object) -> None:
    if not isinstance(value, str) or not value.isprintable():
        raise InvalidInputError("key_id", "must be the id of a key, as text")


class ApiKeys:
    """The API keys of a deployment. Every check reads the store, so a revocation takes effect at once."""

    def __init__(self, store: ServiceTables, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock
        self._secret: bytes | None = None

    def create(self, tenant: str = DEFAULT_TENANT, *, scope: str = "write", name: str = "") -> tuple[ApiKey, str]:
        """Create a key; return it with its text, which is never shown again."""
        check_tenant(tenant)
        if scope not in SCOPES:
            raise InvalidInputError("scope", f"must be one of {', '.join(SCOPES)}")
        if not isinstance(name, str) or len(name) > 100 or not name.isprintable():
            raise InvalidInputError("name", "must be at most 100 printable characters")
        key = ApiKey(id=secrets.token_hex(8), tenant=tenant, name=name, scope=cast(Scope, scope), made_at=self._clock())
        secret = secrets.token_hex(24)
        with self._store.write() as view:
            view.run(
                "add_key",
                id=key.id,
                tenant=tenant,
                name=name,
                scope=scope,
                hash=_hash(secret),
                made_at=to_text(key.made_at),
            )
        return key, f"rk_{key.id}_{secret}"

    def all(self) -> list[ApiKey]:
        """Return every key ever created, the oldest first."""
        with self._store.read() as view:
            return [] if view is None else [_key_from_row(row)[0] for row in view.rows("keys")]

    def any(self) -> bool:
        """Return True if a key was ever created: then access requires one."""
        with self._store.read() as view:
            return view is not None and bool(view.rows("any_key"))

    def revoke(self, key_id: str) -> None:
        """Revoke a key and all tokens made with it, in every process."""
        _check_key_id(key_id)
        with self._store.write() as view:
            if not view.rows("key", id=key_id):
                raise NotFoundError(f"there is no key {key_id[:40]!r}")
            view.run("revoke_key", id=key_id, now=to_text(self._clock()))

    def get(self, key_id: str) -> ApiKey | None:
        """Return the key with this id, revoked or not."""
        _check_key_id(key_id)
        return self._found(key_id)[0]

    def named_by(self, text: str) -> ApiKey | None:
        """Return the key with this text, unless it was revoked."""
        written = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
        if written is None:
            return None
        key, known = self._found(written[1])
        same = hmac.compare_digest(known, _hash(written[2]))
        return key if key is not None and same and key.revoked_at is None else None

    @property
    def secret(self) -> bytes:
        """The secret that tokens are signed with: created once, the same for all processes."""
        if self._secret is None:
            with self._store.read() as view:
                rows = [] if view is None else view.rows("secret")
            if not rows:
                with self._store.write() as view:
                    view.run("add_secret", secret=secrets.token_hex(32))
                    rows = view.rows("secret")
            self._secret = bytes.fromhex(rows[0][0])
        return self._secret

    def _found(self, key_id: str) -> tuple[ApiKey | None, str]:
        with self._store.read() as view:
            rows = [] if view is None else view.rows("key", id=key_id)
        return _key_from_row(rows[0]) if rows else (None, _hash(""))

    # answers

    def renew_secret(self) -> None:
        """Replace the signing secret: earlier tokens, links and sessions become invalid once a process restarts."""
        with self._store.write() as view:
            view.run("drop_secret")
            view.run("add_secret", secret=secrets.token_hex(32))
        self._secret = None

    def answer(self, repeated: IdempotentRequest) -> tuple[str, int, bytes | None] | None:
        """Return the request, the status and the body of a stored answer; None if there is none."""
        since = to_text(self._clock() - KEPT)
        with self._store.read() as view:
            rows = [] if view is None else view.rows("answer", id=repeated.id, since=since)
        if not rows:
            return None
        request, status, encrypted = rows[0]
        return request, status, repeated.decrypt(bytes(encrypted)) if encrypted else None

    def keep_answer(self, repeated: IdempotentRequest, request: str, status: int, body: bytes) -> None:
        """Store an answer for a day; durable when this returns."""
        if isinstance(self._store, NoServiceTables):
            return  # only the journal records what was done
        now = self._clock()
        with self._store.write() as view:
            view.run("tidy_answers", before=to_text(now - KEPT))
            view.run(
                "keep_answer",
                id=repeated.id,
                user_id=repeated.user,
                request=request,
                status=status,
                sealed=repeated.encrypt(body),
                now=to_text(now),
            )

    def forget_answers(self, user: str) -> int:
        """Remove all answers about a user of whom something was erased; return their number."""
        with self._store.read() as view:
            if view is None or not view.rows("answers_of", user_id=user):
                return 0
        with self._store.write(erases=True) as view:
            return view.run("forget_answers", user_id=user, nothing=b"")

    @property
    def erasure_pending(self) -> bool:
        """True if a log still holds an answer that was removed."""
        return self._store.pending

    def close(self) -> None:
        self._store.close()


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request that may be sent again, identified by its idempotency key."""

    user: str
    key: str

    @property
    def id(self) -> str:
        """The id it is stored under; reveals nothing about the key."""
        return self._derived("id").hex()[:48]

    @property
    def call(self) -> str:
        """The call id of its changes in the journal, so that they are made only once."""
        return f"http-{self._derived('call').hex()[:26]}"

    def encrypt(self, body: bytes) -> bytes:
        """Encrypt an answer so that only the idempotency key can decrypt it (AES-256-GCM)."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher().encrypt(nonce, body, self.user.encode())

    def decrypt(self, encrypted: bytes) -> bytes | None:
        """Invert `encrypt`; None if the key does not fit."""
        cipher = self._cipher()
        from cryptography.exceptions import InvalidTag

        try:
            return cipher.decrypt(encrypted[:_NONCE], encrypted[_NONCE:], self.user.encode())
        except (InvalidTag, ValueError):
            return None

    def _cipher(self) -> AESGCM:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
            from cryptography.hazmat.primitives.hashes import SHA256
            from cryptography.hazmat.primitives.kdf.hkdf import HKDF
        except ImportError:
            raise MissingExtraError("web", "storing answers to repeated requests") from None
        info = f"recollect answer {self.user}".encode()
        return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(self.key.encode()))

    def _derived(self, what: str) -> bytes:
        return hmac.digest(self.key.encode(), f"{what} {self.user}".encode(), "sha256")


def _hash(secret: str) -> str:
    # a slow hash is unnecessary: the secret has 192 random bits and cannot be guessed
    return hashlib.sha256(b"recollect key " + secret.encode()).hexdigest()


@readable
def _key_from_row(row: tuple[Any, ...]) -> tuple[ApiKey, str]:
    key_id, tenant, name, scope, known, made, revoked = row
    key = ApiKey(
        id=key_id,
        tenant=tenant,
        name=name,
        scope=scope,
        made_at=from_text(made),
        revoked_at=None if revoked is None else from_text(revoked),
    )
    return key, known
