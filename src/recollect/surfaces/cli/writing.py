"""The commands that write: facts, notes, daily notes, observations, episodes, messages, working memory."""

from __future__ import annotations

from dataclasses import replace
from difflib import unified_diff
from typing import Annotated, Literal

import typer

from recollect.records import (
    CATEGORIES,
    FACT_TYPES,
    Category,
    ChangeReason,
    Edited,
    FactType,
    Merged,
    ObservationCategory,
    Refused,
    Updated,
    Valence,
)
from recollect.surfaces.cli.options import (
    AnyCategory,
    Confidence,
    DryRun,
    Importance,
    Meta,
    Reason,
    Ref,
    Source,
    Tags,
    Text,
)
from recollect.surfaces.cli.output import RECORD_HEAD, SHORT_ID, record_rows, told, when
from recollect.surfaces.cli.program import CHANGE, REMEMBER, command
from recollect.surfaces.cli.session import DONE, NOT_FOUND, Session, content_of, pairs, text_of

_Category = Annotated[
    Category | None,
    typer.Option("--category", "-c", help=f"{', '.join(CATEGORIES[:-1])} or {CATEGORIES[-1]}.", metavar="NAME"),
]
_Type = Annotated[
    FactType | None,
    typer.Option("--type", help=f"{', '.join(FACT_TYPES[:-1])} or {FACT_TYPES[-1]}.", metavar="NAME"),
]
_Key = Annotated[str | None, typer.Option("--key", "-k", help="The name of the fact, such as role.", metavar="NAME")]
_Excerpt = Annotated[str | None, typer.Option("--excerpt", help="The words that support it.", metavar="TEXT")]
_Messages = Annotated[
    list[str] | None,
    typer.Option("--message", help="The id of a message that supports it; may be repeated.", metavar="ID"),
]
_Since = Annotated[str | None, typer.Option("--since", help="When it began to be so.", metavar="DATE")]


@command(
    REMEMBER,
    'recollect remember "Prefers concise summaries" --category preference',
    'recollect remember "Senior engineer at Stripe" --key role',
    "cat fact.txt | recollect remember -",
    writes=True,
)
def remember(
    session: Session,
    content: Text,
    key: _Key = None,
    category: _Category = None,
    type: _Type = None,
    daily: Annotated[bool, typer.Option("--daily", help="For the daily note, not for MEMORY.md.")] = False,
    day: Annotated[
        str | None,
        typer.Option("--day", help="Which daily note, if it goes to one; today's otherwise.", metavar="DATE"),
    ] = None,
    confidence: Confidence = 1.0,
    importance: Importance = 0.5,
    source: Source = "explicit",
    excerpt: _Excerpt = None,
    message: _Messages = None,
    tag: Tags = None,
    since: _Since = None,
    expires: Annotated[str | None, typer.Option("--expires", help="When to forget it.", metavar="DATE")] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Keep it in MEMORY.md whatever happens.")] = False,
    meta: Meta = None,
) -> int:
    """Remember a fact about the person."""
    outcome = session.memory.remember(
        text_of(content),
        key=key,
        category=category,
        type=type,
        durability="daily" if daily else "durable",
        confidence=confidence,
        importance=importance,
        source=source,
        excerpt=excerpt,
        messages=message or (),
        tags=tag or (),
        valid_from=since,
        expires_at=expires,
        pinned=pin,
        day=day,
        metadata=pairs(meta),
    )
    return session.answer(outcome)


@command(
    REMEMBER,
    'recollect note "The release is cut on the first Monday." --title Releases',
    "recollect note - --title Minutes < minutes.txt",
    writes=True,
)
def note(
    session: Session,
    content: Text,
    title: Annotated[str | None, typer.Option("--title", help="A title.", metavar="TEXT")] = None,
    tag: Tags = None,
    source: Source = "explicit",
    importance: Importance = 0.5,
    meta: Meta = None,
) -> int:
    """Save a free text with an id of its own."""
    outcome = session.memory.note(
        text_of(content),
        title=title,
        tags=tag or (),
        source=source,
        importance=importance,
        metadata=pairs(meta),
    )
    return session.answer(outcome)


@command(
    REMEMBER,
    'recollect jot "Read the paper on BM25"',
    'recollect jot "Talked about the move" --section Discussions --day 2026-02-12',
    writes=True,
)
def jot(
    session: Session,
    content: Text,
    section: Annotated[
        str | None,
        typer.Option(
            "--section",
            help="Reading Activity, Discussions, Extracted Insights or Explicit Memories.",
            metavar="NAME",
        ),
    ] = None,
    day: Annotated[str | None, typer.Option("--day", help="Another day than today.", metavar="DATE")] = None,
    source: Source = "explicit",
    confidence: Confidence = 1.0,
    meta: Meta = None,
) -> int:
    """Add an entry to a daily note."""
    outcome = session.memory.jot(
        text_of(content), section=section, day=day, source=source, confidence=confidence, metadata=pairs(meta)
    )
    return session.answer(outcome)


@command(
    REMEMBER,
    'recollect observe "Retries hide the timeout bug" --category lesson',
    writes=True,
)
def observe(
    session: Session,
    content: Text,
    category: Annotated[ObservationCategory, typer.Option("--category", "-c", help="What it is.")] = "finding",
    tag: Tags = None,
    source: Source = "explicit",
    confidence: Confidence = 1.0,
    excerpt: _Excerpt = None,
    message: _Messages = None,
    at: Annotated[str | None, typer.Option("--at", help="When it was said, if not now.", metavar="DATE")] = None,
    meta: Meta = None,
) -> int:
    """Keep a finding, an insight or a lesson."""
    outcome = session.memory.observe(
        text_of(content),
        category,
        source=source,
        confidence=confidence,
        excerpt=excerpt,
        messages=message or (),
        tags=tag or (),
        said_at=at,
        metadata=pairs(meta),
    )
    return session.answer(outcome)


@command(
    REMEMBER,
    'recollect episode "Planning the move" "Chose Lviv, by train." --with Olena',
    writes=True,
)
def episode(
    session: Session,
    topic: Annotated[str, typer.Argument(help="What it was about.", metavar="TOPIC", show_default=False)],
    summary: Annotated[
        str,
        typer.Argument(help="What happened; - reads standard input.", metavar="SUMMARY", show_default=False),
    ],
    importance: Importance = 0.7,
    valence: Annotated[Valence, typer.Option("--valence", help="How it felt.")] = "neutral",
    tag: Tags = None,
    message: _Messages = None,
    participant: Annotated[
        list[str] | None, typer.Option("--with", help="Who took part; may be repeated.", metavar="NAME")
    ] = None,
    source: Source = "explicit",
    meta: Meta = None,
) -> int:
    """Keep a stretch of conversation as a whole."""
    outcome = session.memory.episode(
        topic,
        text_of(summary),
        importance=importance,
        valence=valence,
        tags=tag or (),
        messages=message or (),
        participants=participant or (),
        source=source,
        metadata=pairs(meta),
    )
    return session.answer(outcome)


@command(
    REMEMBER,
    'recollect say "Shall we meet on Friday?" --session chat-7 --role user',
    writes=True,
)
def say(
    session: Session,
    content: Text,
    role: Annotated[str, typer.Option("--role", help="user, assistant or another.", metavar="NAME")] = "user",
    speaker: Annotated[str | None, typer.Option("--speaker", help="Who said it.", metavar="NAME")] = None,
    at: Annotated[str | None, typer.Option("--at", help="When it was said.", metavar="DATE")] = None,
    source: Source = "conversation",
    meta: Meta = None,
) -> int:
    """Store one message of a conversation (give its --session)."""
    outcome = session.memory.say(
        text_of(content), role=role, speaker=speaker, said_at=at, source=source, metadata=pairs(meta)
    )
    return session.answer(outcome)


@command(
    REMEMBER,
    'recollect scratch plan "1. call 2. write"',
    "recollect scratch plan",
    writes=True,
)
def scratch(
    session: Session,
    key: Annotated[str, typer.Argument(help="The name of the item.", metavar="KEY", show_default=False)],
    value: Annotated[str | None, typer.Argument(help="What to keep; - reads standard input.", metavar="VALUE")] = None,
) -> int:
    """Keep a value under a key as working memory, or get it back."""
    if value is not None:
        outcome = session.memory.set_scratch(key, text_of(value))
        if isinstance(outcome, Refused):
            return session.answer(outcome)
        session.out.document({"key": key, "value": outcome.record.content})  # type: ignore[attr-defined]
        session.out.aside(f"Kept under {key}.")
        return DONE
    found = session.known.scratch(key)
    session.out.document({"key": key, "value": found})
    if found is None:
        session.out.aside(f"Nothing is kept under {key}.")
        return NOT_FOUND
    session.out.line(found)
    return DONE


@command(
    CHANGE,
    'recollect update role "Staff engineer at Stripe"',
    'recollect update role "Staff engineer" --because correction',
    "recollect update v1w2x3y4 --category work_context",
    writes=True,
)
def update(
    session: Session,
    ref: Ref,
    content: Annotated[str | None, typer.Argument(help="The new text; - reads standard input.", metavar="TEXT")] = None,
    category: Annotated[
        AnyCategory | None, typer.Option("--category", "-c", help="Its category.", metavar="NAME")
    ] = None,
    type: _Type = None,
    key: _Key = None,
    confidence: Annotated[
        float | None, typer.Option("--confidence", help="How sure it is, from 0 to 1.", metavar="SHARE")
    ] = None,
    importance: Annotated[
        float | None, typer.Option("--importance", help="How much it matters, from 0 to 1.", metavar="SHARE")
    ] = None,
    tag: Tags = None,
    source: Annotated[str | None, typer.Option("--source", help="Where it comes from.", metavar="TEXT")] = None,
    excerpt: _Excerpt = None,
    message: _Messages = None,
    because: Annotated[
        ChangeReason,
        typer.Option("--because", help="After a correction or refinement, the old value never held."),
    ] = "update",
    reason: Reason = None,
    since: _Since = None,
    meta: Meta = None,
) -> int:
    """Change a record."""
    outcome = session.known.update(
        ref,
        None if content is None else text_of(content),
        category=category,
        type=type,
        key=key,
        confidence=confidence,
        importance=importance,
        tags=tag,
        source=source,
        excerpt=excerpt,
        messages=message,
        reason=because,
        note=reason,
        valid_from=since,
        metadata=pairs(meta),
    )
    return session.answer(outcome)


@command(
    CHANGE,
    "recollect edit --file new.md --dry-run",
    "recollect show --raw | sed s/tea/coffee/ | recollect edit --file -",
    "recollect edit --file note.md --day 2026-02-12",
    writes=True,
)
def edit(
    session: Session,
    file: Annotated[str, typer.Option("--file", "-f", help="The new text; - reads standard input.", metavar="FILE")],
    day: Annotated[
        str | None, typer.Option("--day", help="The daily note of this day, not MEMORY.md.", metavar="DATE")
    ] = None,
    expect: Annotated[
        str | None, typer.Option("--expect", help="Only if it still says what this file says.", metavar="FILE")
    ] = None,
    dry_run: DryRun = False,
) -> int:
    """Give MEMORY.md or a daily note another text."""
    text = content_of("--file", file)
    seen = None if expect is None else content_of("--expect", expect)
    if not dry_run:
        outcome = session.memory.edit(text, day=day, expect=seen)
    else:
        memory = session.known
        before = memory.show() if day is None else memory.daily(day)
        outcome = session.rehearse(lambda trial: trial.edit(text, day=day, expect=seen))
        for line in unified_diff(before.splitlines(), text.splitlines(), "now", "then", lineterm=""):
            session.out.line(line)
    code = session.answer(outcome, dry_run=dry_run)
    if isinstance(outcome, Edited) and outcome.run and not dry_run:
        session.out.aside(f"To take it back: recollect undo {outcome.run}")
    return code


@command(CHANGE, "recollect pin role", "recollect pin role --off", writes=True)
def pin(
    session: Session,
    ref: Ref,
    off: Annotated[bool, typer.Option("--off", help="No longer.")] = False,
) -> int:
    """Keep a fact in MEMORY.md whatever happens."""
    outcome = session.known.pin(ref, not off)
    if isinstance(outcome, Updated):
        told_so = f"{'No longer pinned' if off else 'Pinned'}: {outcome.record.text}"
        outcome = replace(outcome, message=told_so)
    return session.answer(outcome)


@command(CHANGE, "recollect important v1w2x3y4 --level critical", writes=True)
def important(
    session: Session,
    messages: Annotated[list[str], typer.Argument(help="The ids of messages.", metavar="MESSAGES", show_default=False)],
    level: Annotated[
        Literal["high", "critical"], typer.Option("--level", help="high keeps for 60 days, critical for 365.")
    ] = "high",
    reason: Reason = None,
) -> None:
    """Keep messages for longer."""
    kept = session.known.mark_important(messages, level, reason=reason)
    session.out.document(kept)
    rows = [(message.id[-SHORT_ID:], when(message.expires_at), told(message)) for message in kept]
    session.out.table(("id", "expires", "text"), rows)


@command(
    CHANGE,
    'recollect merge x3y4z5a6 b7c8d9e0 --into "Drinks tea, never coffee"',
    writes=True,
)
def merge(
    session: Session,
    refs: Annotated[
        list[str],
        typer.Argument(help="Two records or more, by id or key.", metavar="REFS", show_default=False),
    ],
    into: Annotated[str, typer.Option("--into", help="What they become; - reads standard input.", metavar="TEXT")],
    confidence: Annotated[
        float | None, typer.Option("--confidence", help="How sure it is, from 0 to 1.", metavar="SHARE")
    ] = None,
    reason: Reason = None,
    dry_run: DryRun = False,
) -> int:
    """Make one fact or note out of several."""
    text = text_of(into)
    if dry_run:
        outcome = session.rehearse(lambda trial: trial.merge(refs, text, confidence=confidence, reason=reason))
    else:
        outcome = session.known.merge(refs, text, confidence=confidence, reason=reason)
    if not isinstance(outcome, Merged):
        return session.answer(outcome, dry_run=dry_run)
    session.out.table(RECORD_HEAD, record_rows(outcome.merged))
    code = session.answer(outcome, dry_run=dry_run)
    if not dry_run:
        session.out.aside(f"To bring them back: recollect undo {outcome.run}")
    return code
