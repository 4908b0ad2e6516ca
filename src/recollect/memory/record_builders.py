"""Record builders: from the checked arguments of a verb to a record, with every default filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from recollect import checks as check
from recollect.config import Config
from recollect.document.memory_md import key_of, one_block, split_label
from recollect.errors import InvalidInputError
from recollect.memory.daily_notes import category_of_line, section_of_day
from recollect.memory.gate import Gate
from recollect.memory.write import Acting
from recollect.policy.retention import check_kept, daily_expiry, message_expiry
from recollect.records import (
    CATEGORIES,
    CATEGORY_OF_TYPE,
    OBSERVATION_CATEGORIES,
    USER_EDIT,
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

_CATEGORIES_OF = {"fact": CATEGORIES, "observation": OBSERVATION_CATEGORIES}
_ANY = CATEGORIES + OBSERVATION_CATEGORIES


class RecordBuilders:
    """Builds records on behalf of an actor, at one moment."""

    def __init__(self, acting: Acting, config: Config, now: datetime) -> None:
        self._acting = acting
        self._config = config
        self._now = now

    def fact(
        self,
        content: str,
        *,
        key: str | None,
        category: str | None,
        type: str | None,
        pinned: bool,
        valid_from: datetime | None,
        expires_at: datetime | None,
        **common: Any,
    ) -> Fact:
        """Return a fact under a key, or as a sentence; a sentence such as "Role: engineer" gives its key itself."""
        label = key
        if key is None and (found := split_label(content)):
            label, content = found
        return Fact(
            **self._common("fact", valid_from, **common),
            **label_fields(label),
            content=content,
            category=category or (CATEGORY_OF_TYPE[type] if type else "key_fact"),
            type=type,
            tier="file",
            pinned=pinned,
            expires_at=expires_at,
        )

    def note(self, content: str, *, title: str | None, **common: Any) -> Note:
        return Note(**self._common("note", **common), content=content, title=title)

    def observation(
        self, content: str, category: str, *, said_at: datetime | None = None, **common: Any
    ) -> Observation:
        """Return a finding, an insight or a lesson."""
        return Observation(**self._common("observation", said_at, **common), content=content, category=category)

    def episode(self, topic: str, summary: str, *, valence: str, participants: Sequence[str], **common: Any) -> Episode:
        return Episode(
            **self._common("episode", **common),
            content=summary,
            topic=topic,
            valence=valence,
            participants=tuple(participants),
        )

    def message(
        self,
        content: str,
        *,
        session: str | None,
        role: str,
        speaker: str | None,
        said_at: datetime | None,
        **common: Any,
    ) -> Message:
        where = session or self._acting.session
        if where is None:
            raise InvalidInputError("session", "is required for a message; name the conversation it belongs to")
        return Message(
            **self._common("message", said_at, **common) | {"session": where},
            content=content,
            role=role,
            speaker=speaker,
            expires_at=message_expiry(said_at or self._now, self._config.message_retention_days),
        )

    def daily(self, content: str, *, section: str | None, day: date | None, **common: Any) -> DailyEntry:
        when = check_kept(day or self._now.date(), self._now, self._config.daily_retention_days)
        entry = DailyEntry(
            **self._common("daily", **common),
            content=content,
            day=when,
            key=when.isoformat(),
            expires_at=daily_expiry(when, self._config.daily_retention_days),
        )
        entry = replace(entry, section=section or section_of_day(entry))
        return replace(entry, category=category_of_line(entry.section, content))

    def scratch(self, key: str, value: str) -> ScratchItem:
        return ScratchItem(**self._common("scratch"), content=value, key=key)

    def merged(self, records: Sequence[Record], content: str, confidence: float | None) -> Record:
        """Return one record that combines several; its key is that of the first that has one."""
        first = next((record for record in records if record.key), records[0])
        sure = max(r.confidence for r in records) if confidence is None else confidence
        if isinstance(first, Fact) and first.noted_on is not None:
            first = Gate(self._config, self._now).passed(first)
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
            content=one_block(content) if first.kind == "fact" else content,
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
        """Return the fields of a record that a caller wants changed; None means unchanged.

        Only a fact with another value loses the excerpt and the messages that supported the old one.
        """
        changes: dict[str, Any] = {}
        if given["content"] is not None:
            in_a_file = record.kind in ("fact", "daily")
            text = check.check_text("content", given["content"], check.MAX_FACT if in_a_file else check.MAX_TEXT)
            changes["content"] = one_block(text) if in_a_file else text
            # the new text is attributed to whoever writes it
            changes |= {"agent": self._acting.agent, "trusted": self._acting.trusted}
            if record.kind == "fact" and reason != "refinement":
                changes |= {"excerpt": None, "messages": ()}
            else:  # most of it was there before
                changes["trusted"] = record.trusted and self._acting.trusted
            changes["source"] = "explicit"
            changes["session"] = self._acting.session or record.session
        for name in ("confidence", "importance", "pinned", "excerpt"):
            if given[name] is not None:
                changes[name] = given[name]
        for name in ("tags", "messages"):
            if given[name] is not None:
                changes[name] = tuple(given[name])
        if given["source"] is not None:
            changes["source"] = self._source(given["source"])
        if given["metadata"] is not None:
            changes["metadata"] = record.metadata | given["metadata"]
        if record.kind == "fact" and given["key"] is not None:
            changes |= label_fields(given["key"])
        if record.kind == "fact" and given["type"] is not None:
            changes |= {"type": given["type"], "category": CATEGORY_OF_TYPE[given["type"]]}
        if given["category"] is not None:
            changes["category"] = check.check_choice(
                "category", given["category"], _CATEGORIES_OF.get(record.kind, _ANY)
            )
        if record.kind == "fact" and changes.get("category", record.category) != record.category:
            changes["section"] = None
        return changes

    def _source(self, source: str) -> str:
        """Return the source, refusing to let a tool pass for the person, whose words no pause or pruning touches."""
        if source == USER_EDIT and not self._acting.is_person:
            raise InvalidInputError("source", f"{USER_EDIT} is reserved for what a person writes into a file")
        return source

    def _common(
        self,
        kind: str,
        valid_from: datetime | None = None,
        *,
        source: str = "explicit",
        confidence: float = 1.0,
        importance: float = 0.5,
        excerpt: str | None = None,
        messages: Sequence[str] = (),
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        return {
            "id": new_id(kind),
            "created_at": self._now,
            "updated_at": self._now,
            "valid_from": valid_from or self._now,
            "source": self._source(source),
            "confidence": confidence,
            "importance": importance,
            "excerpt": excerpt,
            "messages": tuple(messages),
            "tags": tuple(tags),
            "session": self._acting.session,
            "agent": self._acting.agent,
            "trusted": self._acting.trusted,
            "metadata": metadata or {},
        }


def label_fields(label: str | None) -> dict[str, Any]:
    """Return the key of a label, and the label itself if it says more than the key."""
    if label is None:
        return {"key": None, "label": None}
    key = key_of(label)
    if not key:
        raise InvalidInputError("key", f"{label!r} has no letters or digits")
    return {"key": key, "label": label if label != key else None}
