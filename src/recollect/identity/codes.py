"""One-time codes: ten characters nobody confuses, and their hashes.

The hash is slow on purpose: with the database in hand, trying out all codes takes far longer than one is good.

Guesses are limited for each account and each code (`links`), and not for all together: strangers could keep everyone
from linking. Guessing at random stays hopeless without that. There are 31^10 = 8.2e14 codes, good for 10 minutes. A
million accounts with 5 tries each, while 1,000 codes are shown, hit one of them with a probability of
5e6 * 1e3 / 8.2e14 = 6e-6 in a quarter of an hour; and who hits one has joined nothing, because the person who showed it
still has to confirm. In fact far fewer tries are possible: each costs a slow hash, and all take turns (about 100 a
second, or 7e-8 in the life of a code).
"""

from __future__ import annotations

import hashlib
import secrets

from recollect.errors import InvalidInputError

ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
LENGTH = 10
MOST_TYPED = 64
"""What is longer cannot be a code, however it was typed."""


def new_code() -> str:
    """A fresh code such as ``K7QM2-XWDPA``."""
    text = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
    return f"{text[:5]}-{text[5:]}"


def normal(code: object) -> str:
    """The code as it was made, however it was typed. What cannot be one is `InvalidInputError`, and is no guess."""
    if not isinstance(code, str) or len(code) > MOST_TYPED:
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
