"""The commands that write records: facts, notes, daily entries, observations, episodes, messages, scratch."""

from __future__ import annotations

from dataclasses import replace
from difflib import unified_diff
from typing import Annotated, Literal

from recollect.records import Edited, Merged, ObservationCategory, Refused, Updated
from recollect.surfaces.cli.options import DryRun, Given, Ref, argument, option
from recollect.surfaces.cli.output import RECORD_HEAD, SHORT_ID, format_moment, record_line, record_rows
from recollect.surfaces.cli.program import CHANGE, REMEMBER, command
from recollect.surfaces.cli.session import DONE, NOT_FOUND, CliSession, read_file_argument, read_text_argument


def _mirror(verb: str, does: str, *examples: str) -> None:
    """Make a verb that writes a command, with all its arguments."""

    def write(session: CliSession, given: Given) -> int:
        return session.print_outcome(
            getattr(session.memory, verb)(**given if verb == "say" else session.attribute(given))
        )

    write.__doc__ = does
    command(REMEMBER, *examples, name=verb, writes=True, mirrors=verb)(write)


_mirror(
    "remember",
    "Remember a fact about the user.",
    'recollect remember "Prefers concise summaries" --category preference',
    'recollect remember "Senior engineer at Stripe" --key role',
    "cat fact.txt | recollect remember -",
)
_mirror(
    "note",
    "Save a note: free text with a stable id.",
    'recollect note "The release is cut on the first Monday." --title Releases',
    "recollect note - --title Minutes < minutes.txt",
)
_mirror(
    "jot",
    "Add an entry to a daily note.",
    'recollect jot "Read the paper on BM25"',
    'recollect jot "Talked about the move" --section Discussions',
)


@command(
    REMEMBER,
    'recollect observe "Retries hide the timeout bug" --category lesson',
    writes=True,
    mirrors="observe",
)
def observe_command(
    session: CliSession,
    given: Given,
    category: Annotated[ObservationCategory, option("--category -c", "What it is.")] = "finding",
) -> int:
    """Store a finding, an insight or a lesson."""
    return session.print_outcome(session.memory.observe(category=category, **session.attribute(given)))


_mirror(
    "episode",
    "Store a summary of a stretch of conversation.",
    'recollect episode "The move" "Chose Lviv, by train." --participant Olena',
)
_mirror(
    "say",
    "Store one message of a conversation (see --session).",
    'recollect say "Shall we meet on Friday?" --session chat-7 --role user',
)


@command(
    REMEMBER,
    'recollect scratch plan "1. call 2. write"',
    "recollect scratch plan",
    writes=True,
)
def scratch_command(
    session: CliSession,
    key: Annotated[str, argument("KEY", "The name of the value.")],
    value: Annotated[str | None, argument("VALUE", "The value to store; - reads standard input.")] = None,
) -> int:
    """Store or read a value in working memory."""
    if value is not None:
        outcome = session.memory.set_scratch(key, read_text_argument(value))
        if isinstance(outcome, Refused):
            return session.print_outcome(outcome)
        session.out.document({"key": key, "value": outcome.record.content})  # type: ignore[attr-defined]
        session.out.aside(f"Stored under {key}.")
        return DONE
    found = session.existing_memory.scratch(key)
    session.out.document({"key": key, "value": found})
    if found is None:
        session.out.aside(f"Nothing is stored under {key}.")
        return NOT_FOUND
    session.out.line(found)
    return DONE


@command(
    CHANGE,
    'recollect update role "Staff engineer at Stripe"',
    'recollect update role "Staff engineer" --reason correction',
    "recollect update v1w2x3y4 --category work_context",
    writes=True,
    mirrors="update",
)
def update_command(session: CliSession, given: Given) -> int:
    """Change a record."""
    told = session.attribute(given) if "content" in given else given
    return session.print_outcome(session.existing_memory.update(**told))


@command(
    CHANGE,
    "recollect edit --file new.md --dry-run",
    "recollect show --raw | sed s/tea/coffee/ | recollect edit --file -",
    "recollect edit --file note.md --day 2026-02-12",
    writes=True,
)
def edit_command(
    session: CliSession,
    file: Annotated[str, option("--file -f", "The new text; - reads standard input.", "FILE")],
    day: Annotated[str | None, option("--day", "Edit the daily note of this day instead of MEMORY.md.", "DATE")] = None,
    expect: Annotated[
        str | None, option("--expect", "Edit only if the text is still that of this file.", "FILE")
    ] = None,
    dry_run: DryRun = False,
) -> int:
    """Replace the text of MEMORY.md or a daily note."""
    text = read_file_argument("--file", file)
    seen = None if expect is None else read_file_argument("--expect", expect)
    if not dry_run:
        outcome = session.memory.edit(text, day=day, expect=seen)
    else:
        memory = session.memory
        before = memory.show() if day is None else memory.daily(day)
        outcome = session.rehearse_new(lambda trial: trial.edit(text, day=day, expect=seen))
        for line in unified_diff(before.splitlines(), text.splitlines(), "now", "then", lineterm=""):
            session.out.line(line)
    code = session.print_outcome(outcome, dry_run=dry_run)
    if isinstance(outcome, Edited) and outcome.run and not dry_run:
        session.out.aside(f"To undo: recollect undo {outcome.run}")
    return code


@command(CHANGE, "recollect pin role", "recollect pin role --off", writes=True)
def pin_command(
    session: CliSession,
    ref: Ref,
    off: Annotated[bool, option("--off", "Unpin the fact.")] = False,
) -> int:
    """Pin a fact to MEMORY.md, so that it is never pruned."""
    outcome = session.existing_memory.pin(ref, not off)
    if isinstance(outcome, Updated):
        told_so = f"{'No longer pinned' if off else 'Pinned'}: {outcome.record.text}"
        outcome = replace(outcome, message=told_so)
    return session.print_outcome(outcome)


@command(CHANGE, "recollect important v1w2x3y4 --level critical", writes=True, mirrors="mark_important")
def important_command(
    session: CliSession,
    given: Given,
    level: Annotated[
        Literal["high", "critical"], option("--level", "high keeps messages for 60 days, critical for 365.")
    ] = "high",
) -> None:
    """Mark messages as important, to keep them longer."""
    kept = session.existing_memory.mark_important(level=level, **given)
    session.out.document(kept)
    rows = [(message.id[-SHORT_ID:], format_moment(message.expires_at), record_line(message)) for message in kept]
    session.out.table(("id", "expires", "text"), rows)


@command(
    CHANGE,
    'recollect merge x3y4z5a6 b7c8d9e0 --content "Drinks tea, never coffee"',
    writes=True,
    mirrors="merge",
)
def merge_command(
    session: CliSession,
    given: Given,
    content: Annotated[str, option("--content", "The merged text; - reads standard input.", "TEXT")],
    dry_run: DryRun = False,
) -> int:
    """Merge several facts or notes into one."""
    text = read_text_argument(content)
    if dry_run:
        outcome = session.rehearse(lambda trial: trial.merge(content=text, **given))
    else:
        outcome = session.existing_memory.merge(content=text, **given)
    if not isinstance(outcome, Merged):
        return session.print_outcome(outcome, dry_run=dry_run)
    session.out.table(RECORD_HEAD, record_rows(outcome.merged))
    code = session.print_outcome(outcome, dry_run=dry_run)
    if not dry_run:
        session.out.aside(f"To undo: recollect undo {outcome.run}")
    return code
