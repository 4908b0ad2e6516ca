"""What has to be done now and then: removing what has expired, keeping MEMORY.md short."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from recollect.core.erase import erase
from recollect.core.writing import Write
from recollect.policy.retention import IMPORTANT_DAYS
from recollect.records import Record
from recollect.store.contract import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepReport:
    """How many records of each kind had expired and were removed."""

    expired: dict[str, int]
    notices: tuple[str, ...] = ()


def remove_expired(write: Write) -> UpkeepReport:
    """Remove what has expired, from the files too. It can be learned again, so no tombstone stays."""
    gone = write.tx.find(Query(statuses=(), expired_at=write.now))
    if gone:
        erase(write, gone, op="expire", bury=False)
    counts: dict[str, int] = {}
    for record in gone:
        counts[record.kind] = counts.get(record.kind, 0) + 1
    return UpkeepReport(expired=counts)


def mark_important(write: Write, messages: list[Record], level: str, reason: str | None) -> list[Record]:
    """Keep these messages for longer: 60 days if their importance is high, 365 if it is critical."""
    until = write.now + timedelta(days=IMPORTANT_DAYS[level])
    kept = []
    for message in messages:
        if message.expires_at is not None and message.expires_at < until:
            longer = replace(message, expires_at=until, importance=1.0 if level == "critical" else 0.8)
            kept.append(write.apply("update", message, longer, reason=reason or f"marked {level}"))
        else:
            kept.append(message)
    return kept
