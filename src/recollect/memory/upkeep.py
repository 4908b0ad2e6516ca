"""Periodic upkeep: removing what has expired, old tool calls and interactions, and keeping MEMORY.md short."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recollect.config import Config
from recollect.memory.erase import erase_records
from recollect.memory.files.contract import Files
from recollect.memory.write import Write
from recollect.policy.retention import IMPORTANT_DAYS
from recollect.records import Record
from recollect.store.contract import Query, Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepReport:
    """The numbers of expired records by kind, tool calls and interactions that were removed."""

    expired: dict[str, int]
    calls: int = 0
    interactions: int = 0
    notices: tuple[str, ...] = ()


def remove_expired(write: Write, files: Files) -> UpkeepReport:
    """Remove what has expired, from the files too. It can be learned again, so no tombstones are left."""
    gone = find_expired(write.tx, write.now)
    if gone:
        erase_records(write, files, gone, op="expire", bury=False)
    config, now = write.config, write.now
    return UpkeepReport(
        expired=count_by_kind(gone),
        calls=write.tx.drop_calls(now - timedelta(days=config.call_retention_days)),
        interactions=write.tx.drop_interactions(now - timedelta(days=config.interaction_retention_days)),
    )


def would_remove(reader: Reader, config: Config, now: datetime) -> UpkeepReport:
    """Return what `remove_expired` would remove."""
    calls = reader.calls(until=now - timedelta(days=config.call_retention_days))
    interactions = reader.interactions(until=now - timedelta(days=config.interaction_retention_days))
    return UpkeepReport(
        expired=count_by_kind(find_expired(reader, now)), calls=len(calls), interactions=len(interactions)
    )


def find_expired(reader: Reader, now: datetime) -> list[Record]:
    """Return expired records that are still stored."""
    return reader.find(Query(statuses=(), expired_at=now))


def count_by_kind(records: list[Record]) -> dict[str, int]:
    """Count records by kind."""
    return dict(Counter(record.kind for record in records))


def mark_important(write: Write, messages: list[Record], level: str, reason: str | None) -> list[Record]:
    """Keep messages longer: 60 days if their importance is high, 365 if it is critical."""
    until = write.now + timedelta(days=IMPORTANT_DAYS[level])
    kept = []
    for message in messages:
        importance = 1.0 if level == "critical" else 0.8
        lasts = message.expires_at is None  # no retention is set
        if (lasts and message.importance < importance) or (
            message.expires_at is not None and message.expires_at < until
        ):
            longer = replace(message, expires_at=None if lasts else until, importance=importance)
            kept.append(write.apply("update", message, longer, reason=reason or f"marked {level}"))
        else:
            kept.append(message)
    return kept
