"""Filters of a search, besides the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Selects documents. Empty means any; by default only active ones."""

    kinds: Sequence[str] = ()
    statuses: Sequence[str] = ("active",)
    categories: Sequence[str] = ()
    types: Sequence[str] = ()
    tier: str | None = None
    source: str | None = None
    """The source itself, or its part before a colon: "discussion" finds "discussion:42"."""
    session: str | None = None
    chats: Sequence[str | None] | None = None
    """Only documents of these chats; None among them stands for documents of no chat."""
    speakers: Sequence[str] = ()
    tags: Sequence[str] = ()
    """Only documents with all of these tags."""
    said_from: datetime | None = None
    said_until: datetime | None = None
    """Said from this moment on, and before that one."""
    alive_at: datetime | None = None
    """Leave out what has expired at this moment."""
