"""Batch extraction: learning from a day, exactly once per user and day.

A run reads everything that happened until the end of its day and that no run has read, however late it was stored.
Findings are stored in one transaction together with the record of the run: a kill leaves all or nothing, and the next
run starts where this one did. A model, if there is one, is called before that transaction; if it fails, the rules take
over.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from sys import maxsize
from typing import Protocol

from recollect.agents.apply import AppliedFindings, Finding, apply_findings
from recollect.agents.capture import finding_of, is_injection, looks_like_instruction
from recollect.agents.gather_interactions import (
    DISCUSSED,
    ConversationPart,
    DailyLine,
    Gathered,
    Utterance,
    add_below,
    daily_lines,
    discussed_title,
    end_of,
    events_of,
    gather,
    same_words,
)
from recollect.agents.rules import learn, learn_interests
from recollect.document.memory_md import label_of
from recollect.errors import InvalidInputError, ModelError, StoreError
from recollect.memory.chat_scope import OUTSIDE
from recollect.memory.memory import Memory
from recollect.memory.references import ABOUT
from recollect.memory.unprocessed import Mark
from recollect.policy.retention import daily_expiry
from recollect.records import ExtractionRun, Fact, Outcome, Refused, Updated, Written, new_id
from recollect.text import fold, folded_words, terms
from recollect.times import Clock, parse_moment

BATCH = "batch"
RULES = "rules"
"""The tier of extraction without a model."""
DONE = "done already"
NOT_YET = "not yet"
UNKNOWN = "no memory yet"
_OVERTAKEN = "overtaken"
_LOOK_BACK = timedelta(days=14)
"""The period in which reactions count towards interests."""
_LONGEST_TIER = 64
_LONGEST_INSIGHT = 300


@dataclass(frozen=True, slots=True)
class Extraction:
    """The result of an extractor: findings, lines for the daily note, and tokens used.

    ``unverified`` are lines from untrusted sources. A ``problem`` is why it was not done as requested, a ``remark``
    what else the run should report; neither quotes what was said.
    """

    findings: tuple[Finding, ...]
    notes: tuple[DailyLine, ...]
    tier: str
    tokens: int = 0
    problem: str | None = None
    unverified: tuple[DailyLine, ...] = ()
    remark: str | None = None
    summary: str | None = None
    """One line of a model on what changed."""


class Extractor(Protocol):
    """Reads what happened and returns what to store."""

    def __call__(self, memory: Memory, collected: Gathered) -> Extraction: ...


@dataclass(frozen=True, slots=True)
class Extracted:
    """The result of the extraction for one user and day. ``skipped`` says why nothing was done."""

    user_id: str
    run: ExtractionRun | None
    kept: AppliedFindings = field(default_factory=AppliedFindings)
    skipped: str | None = None
    notes: tuple[DailyLine, ...] = ()


def by_rules(memory: Memory, collected: Gathered) -> Extraction:
    """Return what the rules find in what the person said and did."""
    findings: list[Finding] = []
    recent: deque[Utterance] = deque(maxlen=2)
    for said in collected.sayings:
        if said.own and not is_injection(said.text):
            before = [(one.role, one.text) for one in recent if one.trusted and one.source == said.source]
            language = memory.config.language or None
            learned = learn(said.text, role=said.role, speaker=said.speaker, language=language, before=before)
            findings += [finding_of(one, said.source, said.message, said.at) for one in learned]
        recent.append(said)
    findings += _interest_findings(memory, collected)
    lines = [_with_opinions(line, findings) for line in daily_lines(memory, collected)]
    return Extraction(tuple(findings), tuple(lines), RULES)


def opinion_lines(findings: Iterable[Finding]) -> list[DailyLine]:
    """Return the person's opinions in their own words, for the daily note."""
    said = [one for one in findings if one.trusted and (one.type == "opinion" or (one.key or "").startswith("opinion"))]
    texts = {" ".join((one.excerpt or one.content).split())[:300]: one for one in said}
    return [
        DailyLine("Discussions", f'Opinion: "{text}"', one.said_at.date() if one.said_at else None, source=one.source)
        for text, one in texts.items()
    ]


def _with_opinions(line: DailyLine, findings: Iterable[Finding]) -> DailyLine:
    """Return the line on a discussion with the opinions of that day below it."""
    if not line.discussed:
        return line
    opinions = opinion_lines(one for one in findings if one.source == line.source)
    return add_below(line, [one.text for one in opinions if one.day in (None, line.day)])


def _interest_findings(memory: Memory, collected: Gathered) -> list[Finding]:
    """Return the interests shown by recent reactions and saves, and by any that nobody has read yet.

    What the person had forgotten must show again.
    """
    first = min([collected.until - _LOOK_BACK, *(one.at for one in collected.interactions)])
    happened = memory.interactions(since=first, until=collected.until)
    recent = [one for one in happened if not looks_like_instruction(" ".join((one.title or "", *one.topics)))]
    if not recent:
        return []
    last = recent[-1].at
    forgotten: dict[str, datetime] = {}
    for fact in memory.read(kind="fact", status="archived", source="reaction:batch"):
        said = fold(fact.content)
        forgotten[said] = max(fact.updated_at, forgotten.get(said, fact.updated_at))
    found = []
    for one in learn_interests(events_of(recent)):
        since = forgotten.get(fold(one.content))
        later = [event for event in recent if since is None or event.at > since]
        if since is None or one.content in [again.content for again in learn_interests(events_of(later))]:
            found.append(finding_of(one, "reaction:batch", said_at=last))
    return found


def extract(
    memory: Memory,
    day: date,
    *,
    extractor: Extractor = by_rules,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> Extracted:
    """Learn from a day of one user, unless that was done. A dry run reports what would be stored and stores nothing."""
    user = memory.user_id
    if memory.mode != "on":
        return Extracted(user, None, skipped=memory.mode)
    if not memory.exists:
        return Extracted(user, None, skipped=UNKNOWN)
    now = (clock or memory.clock)()
    if day > now.date():
        return Extracted(user, None, skipped=NOT_YET)
    runs = memory.runs(kind=BATCH, limit=None)
    known = next((run for run in runs if run.day == day), None)
    if known is not None and known.status == "completed":
        return Extracted(user, known, skipped=DONE)
    read = [run for run in runs if run.status == "completed"]
    collected = gather(memory, map(read_mark, read), min(end_of(day), now))
    collected = without_read(memory, collected, concluding_runs(memory))
    if collected.count == 0 and any(run.day > day for run in read):
        return Extracted(user, None, skipped="done already, with a later day")
    run = ExtractionRun(id=known.id if known is not None else new_id("run"), day=day, started_at=now, kind=BATCH)
    done = run_extraction(memory, run, collected, extractor, read=read, dry_run=dry_run, clock=clock)
    if done.skipped == _OVERTAKEN:  # by the run of another day, which may have read the same
        return extract(memory, day, extractor=extractor, dry_run=dry_run, clock=clock)
    return done


def learn_expiring(memory: Memory, extractor: Extractor) -> set[str]:
    """Learn from everything until yesterday, before some of it expires; return the ids of what is still unread.

    Nothing is read while memory is off; upkeep then keeps it.
    """
    if memory.mode != "on":
        return set()
    now = memory.clock()
    extract(memory, now.date() - timedelta(days=1), extractor=extractor)
    read = [run for run in memory.runs(kind=BATCH, limit=None) if run.status == "completed"]
    left = memory.unread(map(read_mark, read), until=now)
    return {message.id for message in left.messages} | {event.id for event in left.interactions}


def read_mark(run: ExtractionRun) -> Mark:
    """Return how far a run has read. One without marks, as hosts may record it, has read everything before it."""
    seq, reported = run.details.get("seq"), _detail_moment(run, "reported")
    until = _detail_moment(run, "until") or run.started_at
    if not isinstance(seq, int) or reported is None:
        return Mark(seq=maxsize, reported=datetime.max.replace(tzinfo=timezone.utc), until=until)
    return Mark(seq=min(seq, maxsize), reported=reported, until=until)


def concluding_runs(memory: Memory) -> dict[str, list[ExtractionRun]]:
    """Return the completed runs that concluded discussions, by session."""
    found: dict[str, list[ExtractionRun]] = {}
    for run in memory.runs(limit=None):
        done = run.status == "completed" and run.kind.startswith("discussion:")
        if done and {"session", "ended"} <= run.details.keys():
            found.setdefault(run.details["session"], []).append(run)
    return found


def without_read(memory: Memory, collected: Gathered, runs: Mapping[str, Sequence[ExtractionRun]]) -> Gathered:
    """Return what no model has read in these runs of a session. What one failed at, and rules read instead, stays."""
    read = {session: [run for run in some if _was_read_by_model(run)] for session, some in runs.items()}
    talks, known = list[ConversationPart](), set[str]()
    for talk in collected.talks:
        if marks := [read_mark(run) for run in read.get(talk.session, ())]:
            fresh = memory.unread(marks, until=collected.until, session=talk.session)
            ids = {message.id for message in fresh.messages}
            talk = replace(talk, messages=tuple(message for message in talk.messages if message.id in ids))
            unknown = {one.id for one in fresh.interactions}
            known |= {one.id for one in collected.interactions if one.session == talk.session} - unknown
        talks += [talk] if talk.messages else []
    events = [replace(one, text=None) if one.id in known else one for one in collected.interactions]
    events = [one for one in events if one.id not in known or one.kind != "discussion"]
    return replace(collected, interactions=tuple(events), talks=tuple(talks))


def _was_read_by_model(run: ExtractionRun) -> bool:
    return run.tier not in ("", RULES) and not run.details.get("problem")


def _detail_moment(run: ExtractionRun, name: str) -> datetime | None:
    try:
        return parse_moment(name, run.details.get(name))
    except InvalidInputError:
        return None


def run_extraction(
    memory: Memory,
    run: ExtractionRun,
    collected: Gathered,
    extractor: Extractor,
    *,
    read: Sequence[ExtractionRun] | None = None,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> Extracted:
    """Find what to store, and store it together with the record of the run. A failure is recorded as a failed run.

    ``read`` are the runs of its kind that were complete when the data was collected: if there are others by the time it
    is to be stored, it is not.
    """
    user, began = memory.user_id, time.perf_counter()
    try:
        found = _by_chat(memory, collected, extractor)
        kept = _store_extraction(
            memory,
            run,
            found,
            read,
            dry_run,
            (clock or memory.clock)(),
            lambda done: _completed_run(run, found, done, collected, began),
        )
    except _PostponedError as left:
        return Extracted(user, None, skipped=str(left))
    except _DoneError as done:
        return Extracted(user, done.run, skipped=DONE)
    except Exception as error:  # an extractor of the host may raise anything: only this run has failed
        failed = replace(run, status="failed", error=_describe_failure(error), duration_ms=_ms(began))
        others = memory.runs(since=run.day, limit=None)
        if not dry_run and not any(_is_completed(other, run) for other in others):
            memory.note_run(failed)
        return Extracted(user, failed)
    return Extracted(
        user, _completed_run(run, found, kept, collected, began), kept, notes=(*found.notes, *found.unverified)
    )


def _by_chat(memory: Memory, collected: Gathered, extractor: Extractor) -> Extraction:
    """Extract each chat by itself: what is learned in one is compared with what is known there, and stored there.

    What belongs to no chat is read without what chats have said, unless the person consented, or no chat said anything.
    """
    parts, outside = collected.by_chat(), memory.acting(chat=OUTSIDE)
    if memory.in_chat or (parts.keys() <= {None} and outside.count() == memory.count()):
        return extractor(memory, collected)
    found = []
    for chat, part in parts.items():
        where = OUTSIDE if chat is None else chat
        one = extractor(memory.acting(chat=where), part)
        found.append(
            replace(
                one,
                findings=tuple(replace(finding, chat=where) for finding in one.findings),
                notes=tuple(replace(line, chat=where) for line in one.notes),
                unverified=tuple(replace(line, chat=where) for line in one.unverified),
            )
        )
    if not found:
        return extractor(outside, replace(collected, interactions=(), talks=()))
    problems = dict.fromkeys(one.problem for one in found if one.problem)
    remarks = dict.fromkeys(one.remark for one in found if one.remark)
    summaries = dict.fromkeys(one.summary for one in found if one.summary)
    return Extraction(
        tuple(finding for one in found for finding in one.findings),
        tuple(line for one in found for line in one.notes),
        " + ".join(dict.fromkeys(one.tier for one in found)),
        sum(one.tokens for one in found),
        "; ".join(problems) or None,
        tuple(line for one in found for line in one.unverified),
        "; ".join(remarks) or None,
        "; ".join(summaries) or None,
    )


class _DryRunDoneError(Exception):
    """Ends a dry run so that nothing of it is kept."""


class _PostponedError(Exception):
    """Postponed: memory was paused in the meantime, or another run was faster."""


class _DoneError(Exception):
    """Another process has done this run in the meantime."""

    def __init__(self, run: ExtractionRun) -> None:
        self.run = run
        super().__init__()


def _is_completed(other: ExtractionRun, run: ExtractionRun) -> bool:
    return (other.day, other.kind, other.status) == (run.day, run.kind, "completed")


def _describe_failure(error: Exception) -> str:
    """Describe a failure without quoting what was said, which other messages might."""
    name = type(error).__name__
    return f"{name}: {error}"[:500] if isinstance(error, StoreError | ModelError) else name


def _store_extraction(
    memory: Memory,
    run: ExtractionRun,
    found: Extraction,
    read: Sequence[ExtractionRun] | None,
    dry_run: bool,
    now: datetime,
    completed: Callable[[AppliedFindings], ExtractionRun],
) -> AppliedFindings:
    kept = AppliedFindings()
    try:
        with memory.acting("agent:extract", run=run.id).batch() as open_memory:
            for other in open_memory.runs(since=run.day, limit=None):
                if _is_completed(other, run):
                    raise _DoneError(other)
            if read is not None:
                done = {
                    other.id for other in open_memory.runs(kind=run.kind, limit=None) if other.status == "completed"
                }
                if done - {other.id for other in read}:
                    raise _PostponedError(_OVERTAKEN)
            kept = apply_findings(open_memory, _mark_reported(found, memory.config.confidence_threshold))
            for outcome in kept.outcomes:
                if isinstance(outcome, Refused) and outcome.reason in ("paused", "incognito"):
                    raise _PostponedError(outcome.reason)
            for line in (*found.notes, *_insight_lines(found.findings, kept.outcomes)):
                # a title is somebody else's text, whoever read it
                here = open_memory.acting(chat=line.chat, trusted=not looks_like_instruction(line.text))
                _jot(here, line, run.day, now)
            for line in found.unverified:
                _jot(open_memory.acting(chat=line.chat, trusted=False), line, run.day, now)
            open_memory.note_run(completed(kept))
            if dry_run:
                raise _DryRunDoneError
    except _DryRunDoneError:
        pass
    return kept


def _mark_reported(found: Extraction, threshold: float) -> list[Finding]:
    """Return the findings, with a mark on those for the daily note that one of its lines on a discussion says."""
    lines = [text for line in found.notes for text in (line.text, *line.below)]
    opinions = {same_words(text.removeprefix("Opinion:")) for text in lines}
    titles = [set(terms(line.discussed)) for line in found.notes if line.discussed]

    def is_reported(one: Finding) -> bool:
        if one.durable and one.confidence >= threshold:
            return False  # for MEMORY.md
        if one.category != "reading_history":
            return one.trusted and bool({same_words(one.content), same_words(one.excerpt or one.content)} & opinions)
        begins, words = folded_words(one.content)[:1] == ["discussed"], set(terms(one.content))
        return begins and any(2 * len(words & title) >= len(title) > 0 for title in titles)

    return [replace(one, reported=True) if is_reported(one) else one for one in found.findings]


def _jot(memory: Memory, line: DailyLine, of_run: date, now: datetime) -> None:
    """Add a line to the note of its day, unless it is there or the notes of that day have expired."""
    day = line.day or of_run
    noted = memory.read(kind="daily", key=day.isoformat())
    text, below = line.text, line.below
    metadata = {name: value for name, value in ((DISCUSSED, line.discussed), (ABOUT, line.about)) if value}
    if line.discussed and any(line.discussed == discussed_title(entry) for entry in noted):
        # a discussion is reported once, however long it lasted
        known = {same_words(part) for entry in noted for part in entry.content.splitlines()}
        text, below = f'More on "{line.discussed}"', tuple(one for one in below if same_words(one) not in known)
        metadata = {}
        if not below:
            return
    content = "\n- ".join((text, *below))
    if any(content == entry.content for entry in noted):
        return
    if daily_expiry(day, memory.config.daily_retention_days) <= now:
        return
    try:
        memory.jot(content, section=line.section, day=day, source=line.source, metadata=metadata or None)
    except InvalidInputError:
        pass  # a line that cannot be stored does not lose the run


def _insight_lines(findings: Sequence[Finding], outcomes: Sequence[Outcome]) -> list[DailyLine]:
    """Return lines on what a run added to MEMORY.md and updated in it."""
    lines = []
    for finding, outcome in zip(findings, outcomes, strict=True):
        verb = "Added" if isinstance(outcome, Written) else "Updated" if isinstance(outcome, Updated) else ""
        fact = getattr(outcome, "record", None)
        if not verb or not isinstance(fact, Fact):
            continue
        noun, said = (fact.category or "fact").replace("_", " "), fact.content
        if fact.key:
            said = f"{fact.label or label_of(fact.key)}: {said}"
        interest = label_of("interested_in")
        if fact.key == "interested_in" or said.startswith(f"{interest} "):
            noun, said = "interest", said.removeprefix(interest).lstrip(": ")
        one_line = " ".join(said.split())[:_LONGEST_INSIGHT]
        lines.append(DailyLine("Extracted Insights", f'{verb} {noun}: "{one_line}"', chat=finding.chat, about=fact.id))
    return lines


def _completed_run(
    run: ExtractionRun, found: Extraction, kept: AppliedFindings, collected: Gathered, began: float
) -> ExtractionRun:
    mark = collected.mark
    details = run.details | {"seq": mark.seq, "reported": mark.reported.isoformat(), "until": mark.until.isoformat()}
    details |= {"demoted": kept.demoted, "known": kept.known, "removed": kept.removed, "refused": kept.refused}
    if found.problem:
        details["problem"] = found.problem
    if found.remark:
        details["remark"] = found.remark
    if found.summary:
        details["summary"] = found.summary
    return replace(
        run,
        status="completed",
        interactions_processed=collected.count,
        memories_written=kept.written,
        memories_updated=kept.updated,
        tokens_used=found.tokens,
        duration_ms=_ms(began),
        tier=found.tier[:_LONGEST_TIER],
        details=details,
    )


def _ms(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)


@dataclass(slots=True)
class Summary:
    """The totals of a batch, for its last line."""

    users: int = 0
    skipped: int = 0
    failed: int = 0
    written: int = 0
    updated: int = 0
    tokens: int = 0

    def add(self, one: Extracted) -> None:
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
        memories = "memory" if self.written == 1 else "memories"
        told = f"{self.users} user{'s' * (self.users != 1)} processed, {self.written} {memories} written"
        told += f", {self.updated} updated, {self.tokens} tokens used"
        if self.skipped or self.failed:
            told += f" ({self.skipped} skipped, {self.failed} failed)"
        return told


def extract_all(
    memories: Iterable[Memory],
    day: date,
    *,
    extractor: Extractor = by_rules,
    dry_run: bool = False,
    clock: Clock | None = None,
    each: Callable[[Extracted], None] = lambda _: None,
) -> Summary:
    """Extract for every user in turn; the failure of one does not stop the others."""
    summary = Summary()
    for memory in memories:
        try:
            done = extract(memory, day, extractor=extractor, dry_run=dry_run, clock=clock)
        except Exception as error:  # the outermost handler: one user must not stop the others
            failed = ExtractionRun(id=new_id("run"), day=day, started_at=(clock or memory.clock)(), status="failed")
            done = Extracted(memory.user_id, replace(failed, error=_describe_failure(error)))
        summary.add(done)
        each(done)
    return summary
