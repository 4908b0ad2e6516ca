"""Periodic upkeep: removing what has expired, old tool calls and interactions, and keeping MEMORY.md short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recollect.config import Config
from recollect.memory.erase import erase_records
from recollect.memory.files.contract import Files
from recollect.memory.write import Write
from recollect.policy.retention import IMPORTANCE, IMPORTANT_DAYS, has_outlived
from recollect.records import Record
from recollect.store.contract import Query, Reader

NOT_LEARNED = "some messages or interactions have expired but stay until they were learned from"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepReport:
    """The numbers of expired records by kind, tool calls and interactions that were removed."""

    expired: dict[str, int]
    calls: int = 0
    interactions: int = 0
    notices: tuple[str, ...] = ()


def remove_expired(write: Write, files: Files, learned: Collection[str] = ()) -> UpkeepReport:
    """Remove what has expired, from the files too. It can be learned again, so no tombstones are left.

    ``learned`` are the ids of messages and interactions that were learned from. Others stay: those that could not be
    read, and those that came since.
    """
    config, now = write.config, write.now
    due = find_expired(write.tx, config, now)
    gone = [record for record in due if record.kind != "message" or record.id in learned]
    if gone:
        erase_records(write, files, gone, op="expire", bury=False)
    before = now - timedelta(days=config.interaction_retention_days)
    waits = any(one.id not in learned for one in write.tx.interactions(until=before))
    if waits or len(gone) < len(due):
        write.notices.append(NOT_LEARNED)
    return UpkeepReport(
        expired=count_by_kind(gone),
        calls=write.tx.drop_calls(now - timedelta(days=config.call_retention_days)),
        interactions=0 if waits else write.tx.drop_interactions(before),
    )


def to_learn_from(reader: Reader, config: Config, now: datetime) -> set[str]:
    """Return the ids of messages and interactions that have expired."""
    events = reader.interactions(until=now - timedelta(days=config.interaction_retention_days))
    records = find_expired(reader, config, now)
    return {record.id for record in records if record.kind == "message"} | {event.id for event in events}


def would_remove(reader: Reader, config: Config, now: datetime) -> UpkeepReport:
    """Return what `remove_expired` would remove."""
    calls = reader.calls(until=now - timedelta(days=config.call_retention_days))
    interactions = reader.interactions(until=now - timedelta(days=config.interaction_retention_days))
    return UpkeepReport(
        expired=count_by_kind(find_expired(reader, config, now)), calls=len(calls), interactions=len(interactions)
    )


def find_expired(reader: Reader, config: Config, now: datetime) -> list[Record]:
    """Return records that are still stored although they have expired or are older than the retention."""
    found = {record.id: record for record in reader.find(Query(statuses=(), expired_at=now))}
    if days := config.message_retention_days:
        old = reader.find(Query(kinds=("message",), statuses=(), said_until=now - timedelta(days=days)))
        found |= {message.id: message for message in old if has_outlived(message, now, days)}
    return list(found.values())


def count_by_kind(records: list[Record]) -> dict[str, int]:
    """Count records by kind."""
    return dict(Counter(record.kind for record in records))


def mark_important(write: Write, messages: list[Record], level: str, reason: str | None) -> list[Record]:
    """Keep messages longer: 60 days if their importance is high, 365 if it is critical."""
    until = write.now + timedelta(days=IMPORTANT_DAYS[level])
    kept = []
    for message in messages:
        importance = IMPORTANCE[level]
        lasts = message.expires_at is None  # no retention is set
        if (lasts and message.importance < importance) or (
            message.expires_at is not None and message.expires_at < until
        ):
            longer = replace(message, expires_at=None if lasts else until, importance=importance)
            kept.append(write.apply("update", message, longer, reason=reason or f"marked {level}"))
        else:
            kept.append(message)
    return kept
