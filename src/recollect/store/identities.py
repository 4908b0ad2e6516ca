"""Storage of identities and links: one row per link, codes only as hashes, the same in both databases.

Links are rare, so writers take turns. `recollect.identity` decides what a state means.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from recollect.store.rows import load_queries, readable
from recollect.store.service_tables import Tables, View
from recollect.times import from_text

_COLUMNS = (
    "id, state, made_at, until, shown_channel, shown_name, shown_user, shown_ok, entered_channel, entered_name, "
    "entered_user, entered_ok, survivor, joined, merged, undoable, secret, details"
)
_SQL = load_queries(Path(__file__).with_name("identities.sql"))
IDENTITIES = Tables(
    name="identities",
    queries={name: sql.format(columns=_COLUMNS) for name, sql in _SQL.items()},
    versions="memory_identity_versions",
    lock=0x4944454E54495459,
    if_lost="all links are lost",
)


@dataclass(frozen=True, slots=True)
class Link:
    """One attempt to link two identities, from the code shown to the joined memory. Its id is that of its run."""

    id: str
    state: str
    """shown, entered, joining, joined, unlinking (the joined memory is being restored), restored (it is in use again,
    and what it had brought is being removed from the survivor); or finished: replaced, declined, unlinked.
    """
    made_at: datetime
    until: datetime
    """When the code or its confirmation expires; once joined, until when it can be undone."""
    shown: tuple[str, str]
    entered: tuple[str, str] | None
    agreed: tuple[bool, bool]
    """The confirmations of the side that showed the code and the side that entered it."""
    survivor: str
    joined: str
    merged: bool
    """True if all of the joined memory is in the surviving one and may be removed from its old place."""
    undoable: bool
    secret: str
    """The key of the joined memory's tombstones; empty if there was no memory."""
    details: dict[str, Any] = field(default_factory=dict)


@readable
def link_from_row(row: tuple[Any, ...]) -> Link:
    (link_id, state, made, until, shown_channel, shown_name, _, shown_ok, channel, name, _, entered_ok, *rest) = row
    survivor, joined, merged, undoable, secret, details = rest
    return Link(
        id=link_id,
        state=state,
        made_at=from_text(made),
        until=from_text(until),
        shown=(shown_channel, shown_name),
        entered=None if channel is None else (channel, name),
        agreed=(bool(shown_ok), bool(entered_ok)),
        survivor=survivor or "",
        joined=joined or "",
        merged=bool(merged),
        undoable=bool(undoable),
        secret=secret,
        details=json.loads(details),
    )


def one_link(view: View, query: str, **values: Any) -> Link | None:
    """Return the link a query finds, if any."""
    rows = view.rows(query, **values)
    return link_from_row(rows[0]) if rows else None


def links(view: View, query: str, **values: Any) -> list[Link]:
    return [link_from_row(row) for row in view.rows(query, **values)]
