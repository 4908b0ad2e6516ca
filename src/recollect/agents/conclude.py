"""Concluding a discussion: its topic, the person's opinions, and connections to earlier ones.

A discussion ends when the host application says so, when the person turns to another, or after half an hour of silence.
The memory itself tells which have ended, so a restart forgets none; each conclusion is recorded as a run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from recollect.agents.episodes import note_episode
from recollect.agents.extract import (
    BATCH,
    Extracted,
    Extraction,
    Extractor,
    by_rules,
    concluding_runs,
    opinion_lines,
    read_mark,
    run_extraction,
    without_read,
)
from recollect.agents.gather_interactions import (
    ConversationPart,
    DailyLine,
    Gathered,
    add_below,
    discussed_title,
    gather,
    in_chat_of,
)
from recollect.agents.rules.tables import union
from recollect.memory.memory import Memory
from recollect.records import DailyEntry, ExtractionRun, new_id
from recollect.text import fold, folded_words, terms
from recollect.times import Clock

IDLE = timedelta(minutes=30)
_INSTANT = timedelta(microseconds=1)
_LONGEST_KIND = 40
_LONGEST_SAID, _LONGEST_QUERY = 20_000, 1_000
_SECTION = "Discussions"
_PAGE = 200


def conclude(
    memory: Memory,
    session: str,
    *,
    title: str | None = None,
    company: Sequence[str] = (),
    extractor: Extractor = by_rules,
    clock: Clock | None = None,
) -> Extracted | None:
    """Store what a discussion brought since it was last concluded; None if nothing was said since.

    It becomes an episode if it had some weight. ``company`` are the names of the others who took part.
    """
    if memory.mode != "on":
        return Extracted(memory.user_id, None, skipped=memory.mode)
    memory = in_chat_of(memory, session)
    now = (clock or memory.clock)()
    runs = concluding_runs(memory).get(session, [])
    collected = gather(memory, map(read_mark, runs), now + _INSTANT, session=session)
    if not collected.talks:
        return None
    talk = collected.talks[0]
    named = title or talk.title or _session_title(memory, session)
    collected = replace(collected, talks=(replace(talk, title=named),))
    run = ExtractionRun(
        id=new_id("run"),
        day=min(talk.messages[-1].valid_from, now).date(),
        started_at=now,
        kind=_run_kind(session, len(runs) + 1),
        details={"session": session, "ended": talk.messages[-1].valid_from.isoformat()},
    )

    nightly = [one for one in memory.runs(kind=BATCH, limit=None) if one.status == "completed"]

    def with_connections(memory: Memory, collected: Gathered) -> Extraction:
        unread = without_read(memory, collected, {session: nightly})
        found = extractor(memory, unread)
        said = found.findings
        if unread.talks != collected.talks:  # the night came in between: the lines are about all of it
            plain = by_rules(memory, collected)
            said, found = (*said, *plain.findings), replace(found, notes=plain.notes)
        about = [*opinion_lines(said), *_connections(memory, collected.talks[0], run)]
        return replace(found, notes=tuple(_discussion_lines(found.notes, about)))

    done = run_extraction(memory, run, collected, with_connections, clock=clock)
    if done.run is not None and done.skipped is None:
        note_episode(memory.acting(session=session, run=done.run.id), session, title=named, company=company)
    return done


def idle_sessions(
    memory: Memory, *, after: timedelta = IDLE, clock: Clock | None = None, limit: int = 100
) -> list[str]:
    """Return up to ``limit`` sessions that have been silent this long and were not concluded since."""
    if memory.mode != "on":
        return []
    now, found, offset = (clock or memory.clock)(), list[str](), 0
    concluded = concluding_runs(memory)
    while page := memory.sessions(limit=_PAGE, offset=offset):
        offset += len(page)
        for session in page:
            ended = [datetime.fromisoformat(run.details["ended"]) for run in concluded.get(session.id, [])]
            if session.ended <= now - after and (not ended or max(ended) < session.ended):
                found.append(session.id)
                if len(found) == limit:
                    return found
    return found


def _run_kind(session: str, part: int) -> str:
    """Return the kind of the run for a part of a discussion. A long name is shortened and gets a digest."""
    if len(session) > _LONGEST_KIND:
        digest = hashlib.blake2b(session.encode(), digest_size=6).hexdigest()
        session = f"{session[: _LONGEST_KIND - 13]}-{digest}"
    return f"discussion:{session}" + (f"#{part}" if part > 1 else "")


def _session_title(memory: Memory, session: str) -> str | None:
    """Return the title the host application gave when the discussion began."""
    return next((one.title for one in memory.interactions(session=session, newest_first=True) if one.title), None)


def _discussion_lines(notes: Iterable[DailyLine], about: list[DailyLine]) -> list[DailyLine]:
    """Return the lines on the discussion, each with those about it below. What was read is for the night to report."""
    lines = [line for line in notes if line.section == _SECTION]
    titled = [line for line in lines if line.discussed]
    if not titled:
        return [*lines, *about]
    found = []
    for line in lines:
        last = bool(titled) and line is titled[-1]
        days = {one.day for one in titled}
        below = [one.text for one in about if one.day == line.day or (last and one.day not in days)]
        found.append(add_below(line, below) if line.discussed else line)
    return found


def _connections(memory: Memory, talk: ConversationPart, run: ExtractionRun) -> list[DailyLine]:
    """Return a line about an earlier discussion that has a similar title, or whose topic came up in this one."""
    said = " ".join(message.content for message in talk.messages if message.role == "user" and message.trusted)
    own, mentioned = _topics(talk.title or ""), set(terms(said[:_LONGEST_SAID]))
    for query in (talk.title, said[:_LONGEST_QUERY]):
        for hit in memory.search(query, kinds=("daily",), limit=20) if query else ():
            title = discussed_title(hit.record)
            if title is None or fold(title) == fold(talk.title or ""):
                continue
            topics = _topics(title)
            if own & topics or (topics and len(mentioned & topics) >= min(2, len(topics))):
                day = hit.record.day if isinstance(hit.record, DailyEntry) else run.day
                return [DailyLine(_SECTION, f'Connected to "{title}", discussed on {day:%Y-%m-%d}')]
    return []


def _topics(title: str) -> set[str]:
    """Return the words of a title that say what it is about; "released" and "2026" occur in any."""
    common = union("title_words", "^", "$")
    about = [word for word in folded_words(title) if not common.match(word) and any(c.isalpha() for c in word)]
    return set(terms(" ".join(about)))
