"""Whose users are whose: each tenant is a host application, and its users are a world of their own.

The users of the default tenant keep their ids, so that the command line and embedded programs know them by the same
name. Those of the tenant ``acme`` are stored as ``@acme/42``, and nobody else can name them.
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
    """The id under which a tenant's user is stored."""
    check_user_id(user)
    try:
        user.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInputError("user", "must be printable characters") from None
    if tenant == DEFAULT_TENANT:
        if _TAKEN.match(user):
            raise InvalidInputError("user", "must not begin with @ and the name of a tenant")
        return user
    prefix = f"@{tenant}/"
    if len(prefix) + len(user) > MAX_LENGTH:
        raise InvalidInputError("user", f"must have at most {MAX_LENGTH - len(prefix)} characters")
    return prefix + user


def local_id(tenant: str, stored: str) -> str | None:
    """The id by which a tenant knows a user; None if it is none of theirs."""
    if tenant == DEFAULT_TENANT:
        return None if _TAKEN.match(stored) else stored
    prefix = f"@{tenant}/"
    return stored.removeprefix(prefix) if stored.startswith(prefix) else None


def belongs(tenant: str | None, stored: str) -> bool:
    """Whether a user is one of a tenant's; without a tenant, everybody is."""
    return tenant is None or local_id(tenant, stored) is not None


def prefix_of(tenant: str) -> str | None:
    """What the stored ids of a tenant's users begin with; None for the default tenant, which has all the others."""
    return None if tenant == DEFAULT_TENANT else f"@{tenant}/"


def first_of(tenant: str | None, begins: str) -> str:
    """What the stored ids begin with of a tenant's users, or of all, whose own ids begin so."""
    return ("" if tenant is None else prefix_of(tenant) or "") + begins


def beyond(prefix: str) -> str | None:
    """The least text behind all that begin so; None if there is none."""
    if not prefix:
        return None
    following = ord(prefix[-1]) + 1
    if 0xD800 <= following < 0xE000:  # these are no characters
        following = 0xE000
    return beyond(prefix[:-1]) if following > sys.maxunicode else prefix[:-1] + chr(following)


def some_of(
    users: Iterable[str], tenant: str | None = None, begins: str = "", after: str = "", limit: int | None = None
) -> Iterator[str]:
    """Of these users, which are in order, those that `Store.users` is asked for."""
    first = first_of(tenant, begins)
    wanted = (one for one in users if one > after and one.startswith(first) and belongs(tenant, one))
    return islice(wanted, limit)


def users_of(tenant: str, users: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The users of a tenant: the id that the tenant knows, and the one under which they are stored."""
    for stored in users:
        if (local := local_id(tenant, stored)) is not None:
            yield local, stored
