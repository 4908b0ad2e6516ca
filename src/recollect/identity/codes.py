"""One-time codes: ten characters nobody confuses, and their hashes.

The hash is slow on purpose: with the database in hand, trying out all codes takes far longer than one is good.
"""

from __future__ import annotations

import hashlib
import secrets

from recollect.errors import InvalidInputError

ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
LENGTH = 10
_MOST = 64


def new_code() -> str:
    """A fresh code such as ``K7QM2-XWDPA``."""
    text = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
    return f"{text[:5]}-{text[5:]}"


def normal(code: object) -> str:
    """The code as it was made, however it was typed. What cannot be one is `InvalidInputError`, and is no guess."""
    if not isinstance(code, str) or len(code) > _MOST:
        raise InvalidInputError("code", f"must be the {LENGTH} characters that the other channel shows")
    typed = "".join(code.upper().replace("-", " ").replace("‐", " ").replace("–", " ").split())
    if len(typed) != LENGTH or not set(typed) <= set(ALPHABET):
        raise InvalidInputError(
            "code", f"must be the {LENGTH} letters and digits that the other channel shows, such as K7QM2-XWDPA"
        )
    return typed


def hashed(code: str, salt: str) -> str:
    """What is stored of a code."""
    return hashlib.scrypt(code.encode(), salt=bytes.fromhex(salt), n=1 << 12, r=8, p=1, dklen=24).hex()


def new_salt() -> str:
    """One for each database."""
    return secrets.token_hex(16)
