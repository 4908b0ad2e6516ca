"""User ids of tenants: each tenant is a host application whose users are separate from all others.

Users of the default tenant keep their ids, so that the command line and embedded programs use the same names. Those of
the tenant ``acme`` are stored as ``@acme/42``, and no other tenant can name them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import islice

from recollect.errors import InvalidInputError
from recollect.store.keys import DEFAULT_TENANT
from recollect.userid import MAX_LENGTH, check_user_id

_TAKEN = re.compile(r"@[a-z0-9][a-z0-9-]{0,31}/")


def stored_id(tenant: str, user: str) -> str:
    """Return the id under which a tenant's user is stored."""
    check_user_id(user)
    try:
        user.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInputError("user", "must be printable characters") from None
    if tenant == DEFAULT_TENANT:
        if _TAKEN.match(user):
            raise InvalidInputError("user", "must not begin with @ and a tenant name")
        return user
    prefix = f"@{tenant}/"
    if len(prefix) + len(user) > MAX_LENGTH:
        raise InvalidInputError("user", f"must have at most {MAX_LENGTH - len(prefix)} characters")
    return prefix + user


def local_id(tenant: str, stored: str) -> str | None:
    """Return the id by which a tenant knows a user; None if it is not one of theirs."""
    if tenant == DEFAULT_TENANT:
        return None if _TAKEN.match(stored) else stored
    prefix = f"@{tenant}/"
    return stored.removeprefix(prefix) if stored.startswith(prefix) else None


def belongs(tenant: str | None, stored: str) -> bool:
    """Return True if a user belongs to a tenant; without a tenant, every user does."""
    return tenant is None or local_id(tenant, stored) is not None


def prefix_of(tenant: str) -> str | None:
    """Return the prefix of a tenant's stored ids; None for the default tenant, which has all others."""
    return None if tenant == DEFAULT_TENANT else f"@{tenant}/"


def first_of(tenant: str | None, begins: str) -> str:
    """Return the prefix of stored ids for a tenant's users, or all users, whose own ids begin with ``begins``."""
    return ("" if tenant is None else prefix_of(tenant) or "") + begins


def beyond(prefix: str) -> str | None:
    """Return the smallest text that sorts after everything with this prefix; None if there is none."""
    if not prefix:
        return None
    following = ord(prefix[-1]) + 1
    if 0xD800 <= following < 0xE000:  # surrogates are not characters
        following = 0xE000
    return beyond(prefix[:-1]) if following > sys.maxunicode else prefix[:-1] + chr(following)


def some_of(
    users: Iterable[str], tenant: str | None = None, begins: str = "", after: str = "", limit: int | None = None
) -> Iterator[str]:
    """Filter sorted users as `Store.users` specifies."""
    first = first_of(tenant, begins)
    wanted = (one for one in users if one > after and one.startswith(first) and belongs(tenant, one))
    return islice(wanted, limit)


def users_of(tenant: str, users: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the users of a tenant: the id that the tenant knows, and the stored one."""
    for stored in users:
        if (local := local_id(tenant, stored)) is not None:
            yield local, stored
