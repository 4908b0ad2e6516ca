"""The commands that learn from a day's interactions or from a transcript."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from recollect.errors import InvalidInputError
from recollect.surfaces.cli.options import DryRun, Everyone, argument, option
from recollect.surfaces.cli.output import plain_data, progress
from recollect.surfaces.cli.program import AGENTS, command
from recollect.surfaces.cli.session import DONE, NOT_FOUND, STORAGE, CliSession, read_file_argument
from recollect.times import parse_day, utc_now

if TYPE_CHECKING:
    from recollect.agents.consolidate import TranscriptMessage
    from recollect.agents.extract import Extracted

_UserId = Annotated[str | None, option("--user-id", "The same as --user.", "ID")]
_SKIPPED = {"not yet": "this day has not come yet; choose today or an earlier day"}
_Date = Annotated[str | None, option("--date", "The day to learn from (default: today).", "DATE")]


@command(
    AGENTS,
    "recollect extract --user-id u1 --dry-run",
    "recollect extract --all",
    "recollect extract --all --date 2026-02-12 --json",
)
def extract_command(
    session: CliSession, user_id: _UserId = None, all: Everyone = False, date: _Date = None, dry_run: DryRun = False
) -> int:
    """Learn from what users did and said on one day."""
    from recollect.agents.extract import UNKNOWN, extract_all

    if all and user_id is not None:
        raise InvalidInputError("--all", "cannot be combined with --user-id")
    day = utc_now().date() if date is None else parse_day("--date", date)
    config = session.config
    if not (config.extraction_model or config.model or config.local_model):
        session.out.aside("No model is configured (MEMORY_MODEL); extracting by rules.")
    users = list(session.recollect.users()) if all else [user_id or session.user]
    done: list[Extracted] = []
    with progress("Learning") as tell:

        def told(one: Extracted) -> None:
            done.append(one)
            tell(len(done), len(users))

        memories = (session.recollect.user(user) for user in users)
        summary = extract_all(memories, day, extractor=session.recollect.extractor(), dry_run=dry_run, each=told)
    session.out.document(
        {
            "day": day,
            "summary": plain_data(summary),
            "users": [_extraction_data(one) for one in done],
            "dry_run": dry_run,
        }
    )
    for one in done:
        if not all or dry_run or (one.run is not None and one.run.status == "failed"):
            _print_extraction(session, one, dry_run)
    session.out.line(f"{summary}.")
    session.changed_nothing(dry_run)
    if dry_run and summary.tokens:
        session.out.aside(f"The model was called even so; its {summary.tokens:,} tokens are in the ledger.")
    if summary.failed:
        return STORAGE
    return NOT_FOUND if not all and done[0].skipped == UNKNOWN else DONE


@command(
    AGENTS,
    "recollect consolidate transcript.jsonl --session chat-7",
    "recollect consolidate - --session chat-7 < transcript.jsonl",
    writes=True,
)
def consolidate_command(
    session: CliSession,
    file: Annotated[
        str, argument("FILE", "Messages as JSON Lines, each with role and content; - reads standard input.")
    ],
) -> int:
    """Save what a working session decided, from a transcript."""
    from recollect.agents.consolidate import consolidate as keep_decisions

    if session.session is None:
        raise InvalidInputError("--session", "is required: every insight names the session it comes from")
    kept = keep_decisions(session.memory, session.session, _parse_transcript(read_file_argument("FILE", file)))
    session.out.document(plain_data({"written": kept.written, "outcomes": kept.outcomes}))
    for outcome in kept.outcomes:
        session.out.line(outcome.message)
    session.out.line(f"Saved {kept.written} insight{'s' * (kept.written != 1)}.")
    return DONE


def _extraction_data(one: Extracted) -> dict[str, Any]:
    told = {"user": one.user_id, "skipped": one.skipped, "run": one.run}
    outcomes = [
        {"outcome": type(outcome).__name__.lower(), "message": outcome.message} for outcome in one.kept.outcomes
    ]
    data = plain_data(told | {"outcomes": outcomes, "notes": one.notes})
    assert isinstance(data, dict)
    return data


def _print_extraction(session: CliSession, one: Extracted, dry_run: bool) -> None:
    if one.skipped is not None:
        session.out.line(f"{one.user_id}: {_SKIPPED.get(one.skipped, one.skipped)}")
        return
    if one.run is not None and one.run.error:
        session.out.line(f"{one.user_id}: failed: {one.run.error}")
        return
    session.out.line(f"{one.user_id} (dry run):" if dry_run else f"{one.user_id}:")
    for outcome in one.kept.outcomes:
        session.out.line(f"  {outcome.message}")
    for line in one.notes:
        day = f" ({line.day})" if line.day not in (None, one.run and one.run.day) else ""
        session.out.line(f"  {line.section}{day}: {line.text}")
    if not one.kept.outcomes and not one.notes:
        session.out.line("  nothing to learn")
    for name in ("problem", "remark"):
        if one.run is not None and name in one.run.details:
            session.out.aside(f"  Note: {one.run.details[name]}")


def _parse_transcript(text: str) -> list[TranscriptMessage]:
    from recollect.agents.consolidate import TranscriptMessage

    found = []
    for number, line in enumerate(filter(str.strip, text.splitlines()), 1):
        try:
            message = json.loads(line)
            found.append(TranscriptMessage(str(message["role"]), str(message["content"])))
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InvalidInputError("FILE", f"line {number} is not an object with role and content") from None
    return found
