"""One-time codes: ten unambiguous characters, and their hashes.

The hash is slow on purpose: even with the database, trying all codes takes far longer than one is valid.

Guesses are limited per account and per code (`links`), but not globally: strangers could keep everyone from linking.
Random guessing stays hopeless without a global limit. There are 31^10 = 8.2e14 codes, valid for 10 minutes. A million
accounts with 5 tries each, while 1,000 codes are shown, hit one of them with a probability of 5e6 * 1e3 / 8.2e14 = 6e-6
in a quarter of an hour; and a hit joins nothing, because the person who showed the code still has to confirm. In fact
far fewer tries are possible: each costs a slow hash, one at a time (about 100 per second, or 7e-8 in the life of a
code).
"""

from __future__ import annotations

import hashlib
import secrets

from recollect.errors import InvalidInputError

ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
LENGTH = 10
MOST_TYPED = 64
"""Longer input cannot be a code, however it was typed."""


def new_code() -> str:
    """Return a fresh code such as ``K7QM2-XWDPA``."""
    text = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
    return f"{text[:5]}-{text[5:]}"


def normal(code: object) -> str:
    """Return the code as it was made, however it was typed. Other input is `InvalidInputError` and not a guess."""
    if not isinstance(code, str) or len(code) > MOST_TYPED:
        raise InvalidInputError("code", f"must be the {LENGTH} characters that the other channel shows")
    typed = "".join(code.upper().replace("-", " ").replace("‐", " ").replace("–", " ").split())
    if len(typed) != LENGTH or not set(typed) <= set(ALPHABET):
        raise InvalidInputError(
            "code", f"must be the {LENGTH} letters and digits that the other channel shows, such as K7QM2-XWDPA"
        )
    return typed


def hashed(code: str, salt: str) -> str:
    """Return the hash of a code."""
    return hashlib.scrypt(code.encode(), salt=bytes.fromhex(salt), n=1 << 12, r=8, p=1, dklen=24).hex()


def new_salt() -> str:
    """Return a salt, one for each database."""
    return secrets.token_hex(16)
