"""From what a caller hands in to a record: every argument checked, every default filled in.

Knows nothing about what is already remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from recollect.config import Config
from recollect.core import validation as check
from recollect.core.writing import Acting, section_of_day
from recollect.document import daily_md
from recollect.document.memory_md import key_of, one_block, split_label
from recollect.errors import InvalidInputError
from recollect.policy.retention import daily_expiry, message_expiry
from recollect.records import (
    CATEGORIES,
    CATEGORY_OF_TYPE,
    FACT_TYPES,
    OBSERVATION_CATEGORIES,
    USER_EDIT,
    VALENCES,
    DailyEntry,
    Episode,
    Fact,
    Message,
    Note,
    Observation,
    Record,
    ScratchItem,
    new_id,
)
from recollect.times import parse_day, parse_moment

_CATEGORIES_OF = {"fact": CATEGORIES, "observation": OBSERVATION_CATEGORIES}
_ANY = CATEGORIES + OBSERVATION_CATEGORIES

Moment = datetime | date | str
"""A point in time as a caller may give it."""


class Drafts:
    """Makes records on behalf of someone, at one moment."""

    def __init__(self, acting: Acting, config: Config, now: datetime) -> None:
        self._acting = acting
        self._config = config
        self._now = now

    def fact(
        self,
        content: object,
        *,
        key: object,
        category: object,
        type: object,
        pinned: object,
        valid_from: Moment | None,
        expires_at: Moment | None,
        **common: Any,
    ) -> Fact:
        """A fact under a key, or as a sentence; a sentence such as "Role: engineer" gives its key itself."""
        text = one_block(check.text("content", content, check.MAX_FACT))
        label: str | None = None
        if key is not None:
            label = check.line("key", key, check.MAX_KEY)
        elif found := split_label(text):
            label, text = found
        sort = check.optional_one_of("type", type, FACT_TYPES)
        default = CATEGORY_OF_TYPE[sort] if sort else "key_fact"
        values = self._common("fact", **common)
        if valid_from is not None:
            values["valid_from"] = parse_moment("valid_from", valid_from)
        return Fact(
            **values,
            **named(label),
            content=text,
            category=check.optional_one_of("category", category, CATEGORIES) or default,
            type=sort,
            tier="file",
            pinned=check.flag("pinned", pinned),
            expires_at=None if expires_at is None else parse_moment("expires_at", expires_at),
        )

    def note(self, content: object, *, title: object, **common: Any) -> Note:
        """A note."""
        text = check.text("content", content)
        return Note(**self._common("note", **common), content=text, title=check.optional_line("title", title))

    def observation(
        self, content: object, category: object, *, said_at: Moment | None = None, **common: Any
    ) -> Observation:
        """A finding, an insight or a lesson."""
        text = check.text("content", content)
        sort = check.one_of("category", category, OBSERVATION_CATEGORIES)
        values = self._common("observation", **common)
        if said_at is not None:
            values["valid_from"] = parse_moment("said_at", said_at)
        return Observation(**values, content=text, category=sort)

    def episode(
        self, topic: object, summary: object, *, valence: object, participants: object, **common: Any
    ) -> Episode:
        """An episode."""
        return Episode(
            **self._common("episode", **common),
            content=check.text("summary", summary),
            topic=check.line("topic", topic),
            valence=check.one_of("valence", valence, VALENCES),
            participants=check.words("participants", participants),
        )

    def message(
        self,
        content: object,
        *,
        session: object,
        role: object,
        speaker: object,
        said_at: Moment | None,
        **common: Any,
    ) -> Message:
        """A message of a conversation."""
        text = check.text("content", content)
        where = check.optional_line("session", session) or self._acting.session
        if where is None:
            raise InvalidInputError("session", "must be given: which conversation is this a message of?")
        values = self._common("message", **common) | {"session": where}
        if said_at is not None:
            values["valid_from"] = parse_moment("said_at", said_at)
        return Message(
            **values,
            content=text,
            role=check.line("role", role),
            speaker=check.optional_line("speaker", speaker),
            expires_at=message_expiry(self._now, self._config.message_retention_days),
        )

    def daily(self, content: object, *, section: object, day: date | str | None, **common: Any) -> DailyEntry:
        """An entry of a daily note."""
        text = one_block(check.text("content", content, check.MAX_FACT))
        when = self._now.date() if day is None else parse_day("day", day)
        entry = DailyEntry(
            **self._common("daily", **common),
            content=text,
            day=when,
            key=when.isoformat(),
            expires_at=daily_expiry(when, self._config.daily_retention_days),
        )
        heading = check.optional_one_of("section", section, daily_md.SECTIONS)
        return replace(entry, section=heading or section_of_day(entry))

    def scratch(self, key: str, value: object) -> ScratchItem:
        """A value under a key."""
        return ScratchItem(**self._common("scratch"), content=check.text("value", value), key=key)

    def merged(self, records: Sequence[Record], content: object, confidence: object) -> Record:
        """One record that takes over what several had; the key is that of the first that has one."""
        text = check.text("content", content, check.MAX_FACT)
        first = next((record for record in records if record.key), records[0])
        sure = max(r.confidence for r in records) if confidence is None else check.share("confidence", confidence)
        told = {name: value for record in (*records[::-1], first) for name, value in record.metadata.items()}
        if isinstance(first, Episode):
            there = dict.fromkeys(
                who for record in records if isinstance(record, Episode) for who in record.participants
            )
            first = replace(first, participants=tuple(there))
        return replace(
            first,
            id=new_id(first.kind),
            version=1,
            content=one_block(text) if first.kind == "fact" else text,
            created_at=self._now,
            updated_at=self._now,
            valid_from=min(record.valid_from for record in records),
            confidence=sure,
            importance=max(record.importance for record in records),
            pinned=any(record.pinned for record in records),
            trusted=all(record.trusted for record in records),
            tags=tuple(dict.fromkeys(tag for record in records for tag in record.tags)),
            messages=tuple(dict.fromkeys(message for record in records for message in record.messages)),
            excerpt=first.excerpt or next((record.excerpt for record in records if record.excerpt), None),
            tier="file" if first.kind == "fact" else None,
            metadata=told | {"merged_from": [record.id for record in records]},
        )

    def changes(self, record: Record, given: Mapping[str, Any], reason: str) -> dict[str, Any]:
        """The fields of a record that a caller wants changed; what they left at None stays.

        Only a fact with another value loses the excerpt and the messages that supported the old one.
        """
        changes: dict[str, Any] = {}
        if given["content"] is not None:
            in_a_file = record.kind in ("fact", "daily")
            text = check.text("content", given["content"], check.MAX_FACT if in_a_file else check.MAX_TEXT)
            changes["content"] = one_block(text) if in_a_file else text
            # what is said now is said by whoever says it now
            changes |= {"agent": self._acting.agent, "trusted": self._acting.trusted}
            if record.kind == "fact" and reason != "refinement":
                changes |= {"excerpt": None, "messages": ()}
            else:  # most of it is what was there before
                changes["trusted"] = record.trusted and self._acting.trusted
            changes["source"] = "explicit"
            changes["session"] = self._acting.session or record.session
        for name in ("confidence", "importance"):
            if given[name] is not None:
                changes[name] = check.share(name, given[name])
        if given["pinned"] is not None:
            changes["pinned"] = check.flag("pinned", given["pinned"])
        if given["tags"] is not None:
            changes["tags"] = check.words("tags", given["tags"])
        if given["source"] is not None:
            changes["source"] = self._source(given["source"])
        if given["excerpt"] is not None:
            changes["excerpt"] = check.text("excerpt", given["excerpt"], check.MAX_FACT)
        if given["messages"] is not None:
            changes["messages"] = check.words("messages", given["messages"], check.MAX_MESSAGES)
        if given["metadata"] is not None:
            changes["metadata"] = record.metadata | check.metadata("metadata", given["metadata"])
        if record.kind == "fact" and given["key"] is not None:
            changes |= named(check.line("key", given["key"], check.MAX_KEY))
        if record.kind == "fact" and given["type"] is not None:
            changes |= {"type": given["type"], "category": CATEGORY_OF_TYPE[given["type"]]}
        if given["category"] is not None:
            changes["category"] = check.one_of("category", given["category"], _CATEGORIES_OF.get(record.kind, _ANY))
        if record.kind == "fact" and changes.get("category", record.category) != record.category:
            changes["section"] = None
        return changes

    def _source(self, source: object) -> str:
        """Where something comes from. A tool must not pass for the person, whose words no pause or pruning touches."""
        cleaned = check.line("source", source)
        if cleaned == USER_EDIT and not self._acting.is_person:
            raise InvalidInputError("source", f"{USER_EDIT} is kept for what a person writes into a file themselves")
        return cleaned

    def _common(
        self,
        kind: str,
        *,
        source: object = "explicit",
        confidence: object = 1.0,
        importance: object = 0.5,
        excerpt: object = None,
        messages: object = (),
        tags: object = (),
        metadata: object = None,
    ) -> dict[str, Any]:
        return {
            "id": new_id(kind),
            "created_at": self._now,
            "updated_at": self._now,
            "valid_from": self._now,
            "source": self._source(source) if source else "explicit",
            "confidence": check.share("confidence", confidence),
            "importance": check.share("importance", importance),
            "excerpt": check.optional_text("excerpt", excerpt, check.MAX_FACT),
            "messages": check.words("messages", messages, check.MAX_MESSAGES),
            "tags": check.words("tags", tags),
            "session": self._acting.session,
            "agent": self._acting.agent,
            "trusted": self._acting.trusted,
            "metadata": check.metadata("metadata", metadata),
        }


def named(label: str | None) -> dict[str, Any]:
    """The key that a label stands for, and the label itself if it says more than the key."""
    if label is None:
        return {"key": None, "label": None}
    key = key_of(label)
    if not key:
        raise InvalidInputError("key", f"{label!r} has no letters or digits")
    return {"key": key, "label": label if label != key else None}
