"""After a discussion: what was talked about, what the person thinks of it, what it connects to.

A discussion ends when the host says so, when the person turns to another, or after half an hour of silence. Which ones
have ended is asked of the memory itself, so a restart forgets none; what has been concluded is noted as a run.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from recollect.agents.collect import Collected, Talk, collect
from recollect.agents.extract import Extracted, Extraction, Extractor, by_rules, stored
from recollect.core.memory import Memory
from recollect.records import ExtractionRun, new_id
from recollect.times import Clock, utc_now

IDLE = timedelta(minutes=30)
_BEGINNING = datetime(1970, 1, 1, tzinfo=timezone.utc)
_RELATED = 0.3
"""How well a past discussion must match to be called a connection."""


def conclude(
    memory: Memory,
    session: str,
    *,
    title: str | None = None,
    extractor: Extractor = by_rules,
    clock: Clock = utc_now,
) -> Extracted | None:
    """Keep what a discussion brought, since it was last concluded; None if nothing was said since."""
    if memory.mode != "on":
        return Extracted(memory.user_id, None, skipped=memory.mode)
    now = clock()
    last = _last(memory, session)
    since = _BEGINNING if last is None else datetime.fromisoformat(last.details["until"])
    collected = collect(memory, since, now + timedelta(microseconds=1), session=session)
    if not collected.talks:
        return None
    if title is not None:
        collected = replace(collected, talks=tuple(replace(talk, title=title) for talk in collected.talks))
    kind = f"discussion:{session}"[:200]
    again = last is not None and last.day == now.date()
    run = ExtractionRun(
        id=last.id if last is not None and again else new_id("run"), day=now.date(), started_at=now, kind=kind
    )

    def with_connections(memory: Memory, collected: Collected) -> Extraction:
        found = extractor(memory, collected)
        return replace(found, notes=(*found.notes, *_connections(memory, collected.talks[0])))

    return stored(memory, run, collected, with_connections, clock=clock)


def idle(memory: Memory, *, after: timedelta = IDLE, clock: Clock = utc_now, limit: int = 100) -> list[str]:
    """The sessions that have been silent for so long and were not concluded since."""
    now, found = clock(), []
    for session in memory.sessions(limit=limit):
        if session.ended <= now - after:
            last = _last(memory, session.id)
            if last is None or datetime.fromisoformat(last.details["until"]) <= session.ended:
                found.append(session.id)
    return found


def _last(memory: Memory, session: str) -> ExtractionRun | None:
    kind = f"discussion:{session}"[:200]
    runs = [run for run in memory.runs(limit=None) if run.kind == kind and run.status == "completed"]
    return max(runs, key=lambda run: run.details.get("until", ""), default=None)


def _connections(memory: Memory, talk: Talk) -> list[tuple[str, str]]:
    """An earlier discussion of something similar, if there is one."""
    if not talk.title:
        return []
    hits = memory.search(talk.title, kinds=("daily", "episode"), limit=5, min_score=_RELATED)
    for hit in hits:
        if hit.record.content.startswith('Discussed "') and f'"{talk.title}"' not in hit.record.content:
            about = hit.record.content.split('"')[1]
            return [("Discussions", f'Connected to "{about}", discussed on {hit.record.valid_from:%Y-%m-%d}')]
    return []
