"""What a link means: decisions about links and identities, each within one view of the identity tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta

from recollect.errors import LinkError
from recollect.identity.codes import new_salt
from recollect.identity.erasure import UnfinishedError
from recollect.identity.identities import Identity, Joined
from recollect.memory.copies import KeptCopy
from recollect.store.identities import Link, links, one_link
from recollect.store.service_tables import View
from recollect.times import to_text

TRIES_MINUTES = 15
"""The minutes for which wrong codes count."""
_TOLD_DAYS = 1


def digest(user_id: str) -> str:
    """Return a hash that recognises an erased user without naming them."""
    return hashlib.sha256(f"erased user {user_id}".encode()).hexdigest()


def limits(now: datetime) -> dict[str, str]:
    return {
        "now": to_text(now),
        "links_before": to_text(now - timedelta(days=_TOLD_DAYS)),
        "failures_before": to_text(now - timedelta(minutes=TRIES_MINUTES)),
    }


def named(who: Identity) -> dict[str, str]:
    return {"channel": who.channel, "name": who.name}


def own_user(view: View, who: Identity) -> str:
    """Return the user of an identity before any joining."""
    rows = view.rows("bound", **named(who))
    return str(rows[0][0]) if rows else str(who)


def home_of(view: View, who: Identity) -> str:
    return str(view.rows("resolve", own=str(who), **named(who))[0][0])


def salt_of(view: View) -> str:
    rows = view.rows("salt")
    if rows:
        return str(rows[0][0])
    salt = new_salt()
    view.run("set_salt", salt=salt)
    return salt


def copies_of(view: View, user_id: str) -> list[Link]:
    """Return the links with a copy that may hold what this user erases, and those that are not complete."""
    found = [link for link in links(view, "below", user_id=user_id) if link.undoable or link.state == "joining"]
    return [*found, *links(view, "unlinkings", user_id=user_id)]


def check_finished(found: Iterable[Link]) -> None:
    """Raise `UnfinishedError` if one of these memories is being joined or separated."""
    if any(link.state != "joined" for link in found):
        raise UnfinishedError()


def kept_copy(view: View, link: Link) -> KeptCopy:
    """Return the copy of a joined memory; without data if there is none."""
    name = "" if link.entered is None else str(Identity(*link.entered))
    return KeptCopy(link.id, name, view.rows("copy", id=link.id)[0][0] or b"")


def begin_joining(view: View, link_id: str) -> tuple[LinkError | None, list[Link]]:
    """Begin to join once both have agreed; return an error if it is impossible, or links to be completed before."""
    link = one_link(view, "link", id=link_id)
    if link is None or link.entered is None or not all(link.agreed):
        return None, []
    survivor, joined = home_of(view, Identity(*link.shown)), home_of(view, Identity(*link.entered))
    if survivor == joined:
        view.run("close_open", state="declined", **named(Identity(*link.shown)))
        return LinkError("joined", "These two channels are already joined."), []
    if before := links(view, "touching", one=survivor, other=joined, id=link.id):
        return None, before
    view.run("begin_joining", id=link.id, survivor=survivor, joined=joined)
    return None, []


def last_joining(view: View, who: Identity) -> Link | None:
    """Return the last of the joinings by which an identity came to its present user."""
    link, further = None, one_link(view, "joins", user_id=own_user(view, who))
    while further is not None:
        link = further
        further = None if link.state in ("unlinking", "restored") else one_link(view, "joins", user_id=link.survivor)
    return link


def joinings_above(view: View, link: Link) -> list[Link]:
    """Return the joinings by which the survivor of a link became a part of others, the last one last."""
    found: list[Link] = []
    while (further := one_link(view, "joins", user_id=(found[-1] if found else link).survivor)) is not None:
        found.append(further)
    return found


def not_undoable(view: View, link: Link | None, who: Identity, now: datetime) -> LinkError | None:
    if link is None:
        if others := links(view, "joined_to", user_id=own_user(view, who)):
            names = " or ".join(str(Identity(*other.entered)) for other in others if other.entered)
            return LinkError("nothing", f"{who} owns the linked memory; unlink {names} instead.")
        return LinkError("nothing", f"{who} is not linked to anything.")
    if link.state in ("unlinking", "restored"):
        return None
    if link.state == "joining":
        return LinkError("nothing", "The link is not complete yet; confirm it again first.")
    if not link.undoable or link.until <= now:
        return LinkError(
            "final", "This link can no longer be undone, because it is too old or something was erased since."
        )
    return None


def joined_of(link: Link) -> Joined:
    assert link.entered is not None
    return Joined(
        identity=Identity(*link.entered),
        with_identity=Identity(*link.shown),
        user_id=link.survivor,
        run=link.id,
        counts=link.details.get("counts", {}),
        undo_until=link.until if link.undoable else None,
    )
