"""User ids: which are accepted, and the folder of each.

A user id is the host application's own id of a person. It is never used as a path or in SQL text: the folder name is
derived from it, and two different ids never share a folder, even on a file system that ignores case or Unicode form.
"""

from __future__ import annotations

import hashlib
import re

from recollect.errors import InvalidInputError

MAX_LENGTH = 128
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_RESERVED = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")
_UNSAFE = re.compile(r"[^a-z0-9_-]+")


def text_of_number(value: int) -> str:
    """Return a number as text; a huge number becomes a text that is too long to be accepted."""
    return str(value) if value.bit_length() < 1000 else "9" * 1000


def check_user_id(value: object) -> str:
    """Return the id as text, or raise `InvalidInputError`. Integers become text."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = text_of_number(value)
    if not isinstance(value, str):
        raise InvalidInputError("user", f"must be text or an integer, not {type(value).__name__}")
    if not 1 <= len(value) <= MAX_LENGTH:
        raise InvalidInputError("user", f"must have 1 to {MAX_LENGTH} characters, not {len(value)}")
    if not value.isprintable() or value.isspace():
        raise InvalidInputError("user", "must be printable characters, without control characters or line breaks")
    return value


def folder_name(user_id: str) -> str:
    """Return a safe, unique folder name: a plain id unchanged, any other as a readable part and a hash."""
    if _PLAIN.fullmatch(user_id) and not _RESERVED.fullmatch(user_id):
        return user_id
    readable = _UNSAFE.sub("-", user_id.lower()).strip("-_")[:32] or "user"
    digest = hashlib.blake2b(user_id.encode("utf-8"), digest_size=10).hexdigest()
    # "~" never occurs in a plain name, so a hashed name cannot collide with one
    return f"{readable}~{digest}"
