"""Batch extraction: what a day taught about each person. Once for each user and day, whatever happens in between.

What is found is stored in one transaction together with the record of the run: a kill leaves all of it or nothing, and
the next run begins again where this one did. A model, where there is one, is asked before that transaction; if it
fails, the rules do it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from typing import Protocol

from recollect.agents.capture import finding_of
from recollect.agents.collect import Collected, collect, events_of, notes_of, own_words
from recollect.agents.keeping import Finding, Kept, keep
from recollect.agents.rules import interests, learn
from recollect.core.memory import Memory
from recollect.errors import RecollectError
from recollect.records import ExtractionRun, new_id
from recollect.times import Clock, utc_now

BATCH = "batch"
_DAY = timedelta(days=1)
_LOOK_BACK = timedelta(days=14)
"""How far back reactions are counted into interests."""
_LONGEST_GAP = timedelta(days=7)
"""After a longer time without a run, only the last day is read."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What an extractor found: things to keep, lines for the daily note, and what it used."""

    findings: tuple[Finding, ...]
    notes: tuple[tuple[str, str], ...]
    tier: str
    tokens: int = 0
    problem: str | None = None


class Extractor(Protocol):
    """Reads what happened and says what to keep."""

    def __call__(self, memory: Memory, collected: Collected) -> Extraction: ...


@dataclass(frozen=True, slots=True)
class Extracted:
    """What came of the extraction for one user and day. ``skipped`` says why nothing was done."""

    user_id: str
    run: ExtractionRun | None
    kept: Kept = field(default_factory=Kept)
    skipped: str | None = None
    notes: tuple[tuple[str, str], ...] = ()


def by_rules(memory: Memory, collected: Collected) -> Extraction:
    """What the rules find: in what the person said themselves, and in what they did."""
    findings: list[Finding] = []
    for talk in collected.talks:
        for message in talk.messages:
            if message.role == "user" and message.trusted:
                learned = learn(own_words(message), role=message.role, speaker=message.speaker)
                findings += [finding_of(one, f"discussion:{talk.session}", message.id) for one in learned]
    recent = memory.interactions(since=collected.until - _LOOK_BACK, until=collected.until)
    findings += [finding_of(one, "reaction:batch") for one in interests(events_of(recent))]
    return Extraction(tuple(findings), tuple(notes_of(collected)), "rules")


def extract(
    memory: Memory,
    day: date,
    *,
    extractor: Extractor = by_rules,
    dry_run: bool = False,
    clock: Clock = utc_now,
) -> Extracted:
    """Learn from a day of one user, unless that was done. A dry run tells what would be kept, and keeps nothing."""
    user = memory.user_id
    if memory.mode != "on":
        return Extracted(user, None, skipped=memory.mode)
    if not memory.exists:
        return Extracted(user, None, skipped="no memory yet")
    runs = {(run.day, run.kind): run for run in memory.runs(limit=60)}
    known = runs.get((day, BATCH))
    if known is not None and known.status == "completed" and not dry_run:
        return Extracted(user, known, skipped="done already")
    since, until = _window(day, list(runs.values()), clock())
    run = ExtractionRun(id=known.id if known is not None else new_id("run"), day=day, started_at=clock(), kind=BATCH)
    return stored(memory, run, collect(memory, since, until), extractor, dry_run=dry_run, clock=clock)


def stored(
    memory: Memory,
    run: ExtractionRun,
    collected: Collected,
    extractor: Extractor,
    *,
    dry_run: bool = False,
    clock: Clock = utc_now,
) -> Extracted:
    """Find out what to keep, and keep it together with the record of the run. A failure is a run that failed."""
    user, began = memory.user_id, time.perf_counter()
    try:
        found = extractor(memory, collected)
        kept = _store(memory, run, found, dry_run, lambda done: _completed(run, found, done, collected, began))
    except RecollectError as error:
        told = f"{type(error).__name__}: {error}"[:500]
        failed = replace(run, status="failed", error=told, duration_ms=_ms(began))
        if not dry_run:
            memory.note_run(failed)
        return Extracted(user, failed)
    return Extracted(user, _completed(run, found, kept, collected, began), kept, notes=found.notes)


class _RollBack(Exception):
    """Ends a dry run so that nothing is kept of it."""


def _store(
    memory: Memory,
    run: ExtractionRun,
    found: Extraction,
    dry_run: bool,
    completed: Callable[[Kept], ExtractionRun],
) -> Kept:
    """All of it in one transaction, with the record of the run."""
    kept = Kept()
    try:
        with memory.acting("agent:extract", run=run.id).batch() as open_memory:
            kept = keep(open_memory, found.findings)
            noted = open_memory.read(kind="daily", source="batch_extraction")
            known = {_subject(entry.content) for entry in noted if entry.key == run.day.isoformat()}
            for section, line in found.notes:
                if _subject(line) not in known:
                    open_memory.jot(line, section=section, day=run.day, source="batch_extraction")
            open_memory.note_run(completed(kept))
            if dry_run:
                raise _RollBack
    except _RollBack:
        pass
    return kept


def _subject(line: str) -> str:
    """What a line of the daily note is about: a discussion is told once, however long it went on."""
    return line.rpartition(" (")[0] if line.startswith('Discussed "') else line


def _window(day: date, runs: list[ExtractionRun], now: datetime) -> tuple[datetime, datetime]:
    """From where the run before ended, or a day back, to the end of the day or now."""
    end = datetime.combine(day + _DAY, datetime.min.time(), tzinfo=timezone.utc)
    until = min(end, now)
    ends = [
        datetime.fromisoformat(run.details["until"])
        for run in runs
        if run.kind == BATCH and run.status == "completed" and run.day < day and "until" in run.details
    ]
    last = max(ends, default=None)
    if last is None or not until - _LONGEST_GAP <= last <= until:
        return until - _DAY, until
    return last, until


def _completed(run: ExtractionRun, found: Extraction, kept: Kept, collected: Collected, began: float) -> ExtractionRun:
    details = {"until": collected.until.isoformat(), "demoted": kept.demoted, "known": kept.known}
    details |= {"removed": kept.removed, "refused": kept.refused}
    if found.problem:
        details["problem"] = found.problem
    return replace(
        run,
        status="completed",
        interactions_processed=collected.count,
        memories_written=kept.written,
        memories_updated=kept.updated,
        tokens_used=found.tokens,
        duration_ms=_ms(began),
        tier=found.tier,
        details=details,
    )


def _ms(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)


@dataclass(slots=True)
class Summary:
    """What a batch did, for the line at its end."""

    users: int = 0
    skipped: int = 0
    failed: int = 0
    written: int = 0
    updated: int = 0
    tokens: int = 0

    def add(self, one: Extracted) -> None:
        """Count one user."""
        if one.skipped is not None:
            self.skipped += 1
        elif one.run is not None and one.run.status == "failed":
            self.failed += 1
        elif one.run is not None:
            self.users += 1
            self.written += one.run.memories_written
            self.updated += one.run.memories_updated
            self.tokens += one.run.tokens_used

    def __str__(self) -> str:
        told = f"{self.users} users processed, {self.written} memories written, {self.updated} updated"
        told += f", {self.tokens} tokens used"
        if self.skipped or self.failed:
            told += f" ({self.skipped} skipped, {self.failed} failed)"
        return told


def extract_all(
    memories: Iterable[Memory],
    day: date,
    *,
    extractor: Extractor = by_rules,
    dry_run: bool = False,
    clock: Clock = utc_now,
    each: Callable[[Extracted], None] = lambda _: None,
) -> Summary:
    """Every user in turn; the failure of one does not stop the others."""
    summary = Summary()
    for memory in memories:
        try:
            done = extract(memory, day, extractor=extractor, dry_run=dry_run, clock=clock)
        except RecollectError as error:
            failed = ExtractionRun(id=new_id("run"), day=day, started_at=clock(), status="failed")
            done = Extracted(memory.user_id, replace(failed, error=f"{type(error).__name__}: {error}"[:500]))
        summary.add(done)
        each(done)
    return summary
