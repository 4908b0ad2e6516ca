"""Tokens that are handed out and brought back: encrypted and signed with Fernet, so that nobody else can make one.

Each use has a key of its own, derived from the secret of the deployment with HKDF.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from recollect.errors import MissingExtraError

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

_MOST = 4000


def sign(secret: bytes, what: str, told: dict[str, Any]) -> str:
    """Return a URL-safe token with this content. ``what`` keeps different uses apart."""
    token = _fernet(secret, what).encrypt(json.dumps(told, separators=(",", ":")).encode())
    return token.rstrip(b"=").decode("ascii")


def verify(secret: bytes, what: str, text: str) -> dict[str, Any] | None:
    """Return the content of a token; None if it was not made with this secret for this use."""
    if len(text) > _MOST or not text.isascii():
        return None
    fernet = _fernet(secret, what)
    from cryptography.fernet import InvalidToken

    try:
        told: dict[str, Any] = json.loads(fernet.decrypt(text + "=" * (-len(text) % 4)))
    except InvalidToken:
        return None
    return told


def url_safe(data: bytes) -> str:
    """Return bytes in URL-safe characters."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _fernet(secret: bytes, what: str) -> Fernet:
    try:
        from cryptography.fernet import Fernet
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError:
        raise MissingExtraError("web", "signing tokens and links") from None
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=f"recollect {what}".encode()).derive(secret)
    return Fernet(base64.urlsafe_b64encode(key))
