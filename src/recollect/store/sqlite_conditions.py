"""A `Query` as SQLite conditions with their values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from recollect.store.contract import Query
from recollect.times import to_text

_SETS = {"kinds": "kind", "categories": "category", "types": "type", "statuses": "status"}


def conditions_of(query: Query) -> tuple[list[str], list[Any]]:
    """Return the conditions that a row must fulfil, and their values."""
    conditions: list[str] = []
    values: list[Any] = []

    def add(condition: str, *new: Any) -> None:
        conditions.append(condition)
        values.extend(new)

    def among(column: str, allowed: Sequence[str]) -> None:
        if len(allowed) == 1:
            add(f"{column} = ?", allowed[0])
        else:
            add(f"{column} IN (SELECT value FROM json_each(?))", json.dumps(list(allowed)))

    if query.valid_at is None:
        add("latest = 1")
    else:
        moment = to_text(query.valid_at)
        add(
            """version = (SELECT max(held.version) FROM records AS held WHERE held.id = records.id
            AND held.status <> 'archived' AND held.valid_from <= ?
            AND (held.valid_until IS NULL OR held.valid_until > ?))""",
            moment,
            moment,
        )
        add("id NOT IN (SELECT gone.id FROM records AS gone WHERE gone.latest = 1 AND gone.status = 'archived')")
    for name, column in _SETS.items():
        allowed = getattr(query, name)
        if allowed and (name != "statuses" or query.valid_at is None):
            among(column, allowed)
    if query.ids is not None:
        among("id", query.ids)
    for column in ("key", "tier", "session"):
        if (value := getattr(query, column)) is not None:
            add(f"{column} = ?", value)
    if query.source is not None:
        add(
            "(source = ? OR substr(source, 1, ?) = ?)",
            query.source,
            len(query.source) + 1,
            query.source + ":",
        )
    if query.chats is not None:
        named = json.dumps([chat for chat in query.chats if chat is not None])
        chat = "json_extract(extra, '$.metadata.chat')"
        own = f"{chat} IN (SELECT value FROM json_each(?))"
        add(f"({own} OR {chat} IS NULL)" if None in query.chats else own, named)
    for tag in query.tags:
        add("EXISTS (SELECT 1 FROM json_each(extra, '$.tags') WHERE value = ?)", tag)
    if query.said_from is not None:
        add("valid_from >= ?", to_text(query.said_from))
    if query.said_until is not None:
        add("valid_from < ?", to_text(query.said_until))
    if query.changed_after is not None:
        add("seq > ?", query.changed_after)
    if query.alive_at is not None:
        add("(expires_at IS NULL OR expires_at > ?)", to_text(query.alive_at))
    if query.expired_at is not None:
        add("expires_at <= ?", to_text(query.expired_at))
    if query.after is not None:
        add(f"(created_at, id) {'<' if query.newest_first else '>'} (?, ?)", to_text(query.after[0]), query.after[1])
    return conditions, values
