"""The commands for interactions that applications report, and for the runs that learn from them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import typer

from recollect.errors import InvalidInputError, StoreError
from recollect.records import ExtractionRun, Interaction, Refused, Reported
from recollect.surfaces.cli.options import Everyone, Files, Given, Json, Last, Root, User
from recollect.surfaces.cli.output import SHORT_ID, format_moment, progress, shorten_line
from recollect.surfaces.cli.program import AGENTS, CliGroup, app, command, command_below
from recollect.surfaces.cli.session import DONE, STORAGE, CliSession, read_file_argument
from recollect.times import utc_now

_Verb = TypeVar("_Verb", bound=Callable[..., int | None])
_MOST_LISTED = 20
_MOST_SHOWN, _MOST_KIND = 160, 24

_events = typer.Typer(cls=CliGroup, name="events")
app.add_typer(
    _events,
    rich_help_panel=AGENTS,
    epilog='recollect events report save --title "Rust async"\nrecollect events import events.jsonl\n'
    "recollect events list --kind reaction",
)


@_events.callback()
def _events_group(
    ctx: typer.Context, user: User = "me", root: Root = None, files: Files = None, json: Json = False
) -> None:
    """Report and list interactions: what the user did."""
    given = {"user": user, "root": root, "files": files, "json": json}
    # options before the name of the subcommand apply to it, too
    ctx.default_map = dict.fromkeys(("report", "import", "list"), given)


def _event_command(*examples: str, mirrors: str | None = None, without: Sequence[str] = ()) -> Callable[[_Verb], _Verb]:
    return command_below(_events, *examples, mirrors=mirrors, without=without)


@_event_command(
    'recollect events report reaction --value 👍 --title "Rust async" --topic rust',
    "recollect events report command --value /saved --id update-4711",
    'recollect events report discussion --title "Rust async" --session chat-7',
    mirrors="report",
)
def events_report_command(session: CliSession, given: Given) -> int:
    """Report one thing the user did or was shown."""
    outcome = session.memory.report(**given)
    code = session.print_outcome(outcome)
    if isinstance(outcome, Reported):
        session.out.line(f"  {outcome.interaction.id}")
    return code


@_event_command("recollect events import events.jsonl", "recollect events import - --skip-bad < events.jsonl")
def events_import_command(
    session: CliSession,
    file: Annotated[
        str,
        typer.Argument(help="One JSON object per line; - reads standard input.", metavar="FILE", show_default=False),
    ],
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip invalid lines and store the others.")] = False,
) -> int:
    """Report many interactions from a JSON Lines file."""
    good, bad = _parse_lines(read_file_argument("FILE", file))
    if bad and not skip_bad:
        for number, problem in list(bad.items())[:_MOST_LISTED]:
            session.out.aside(f"line {number}: {problem}")
        number, problem = next(iter(bad.items()))
        first = f", the first is line {number} ({problem})" if session.json else ""
        raise InvalidInputError(
            "FILE",
            f"{_count_lines(len(bad))} cannot be read{first}; nothing was stored. Fix the file, or add --skip-bad",
        )
    with progress("Storing") as tell:
        outcomes = session.memory.report_many(good, progress=tell)
    if outcomes and isinstance(outcomes[0], Refused):
        return session.print_outcome(outcomes[0])
    stored = sum(isinstance(outcome, Reported) and outcome.fresh for outcome in outcomes)
    known = len(outcomes) - stored
    skipped = [{"line": number, "problem": str(problem)} for number, problem in bad.items()]
    session.out.document({"stored": stored, "known": known, "skipped": skipped})
    told = [f"{stored:,} stored", f"{known:,} already known" if known else "", f"{len(bad):,} skipped" if bad else ""]
    session.out.line(f"{', '.join(filter(None, told))}.")
    for number, problem in list(bad.items())[:_MOST_LISTED]:
        session.out.aside(f"line {number}: {problem}")
    if len(bad) > _MOST_LISTED:
        session.out.aside(f"… and {_count_lines(len(bad) - _MOST_LISTED)} more (use --json to see all)")
    return DONE


def _parse_lines(text: str) -> tuple[list[Interaction], dict[int, InvalidInputError]]:
    """Return the valid interactions, and the errors of the other lines by line number."""
    from recollect.memory.interaction_log import read_lines

    lines = text.split("\n")
    good: list[Interaction] = []
    bad: dict[int, InvalidInputError] = {}
    with progress("Reading") as tell:
        for number, read in enumerate(read_lines(lines, now=utc_now()), 1):
            if isinstance(read, InvalidInputError):
                bad[number] = read
            elif read is not None:
                good.append(read)
            if number % 1000 == 0:
                tell(number, len(lines))
    return good, bad


def _count_lines(number: int) -> str:
    return f"{number:,} {'line' if number == 1 else 'lines'}"


@_event_command(
    "recollect events list",
    "recollect events list --kind reaction --kind save --since 2026-02-12",
    "recollect events list --session chat-7 --limit 0 --json",
    mirrors="interactions",
    without=("newest_first",),
)
def events_list_command(
    session: CliSession,
    given: Given,
    limit: Last = 20,
) -> None:
    """List reported interactions, newest first."""
    memory = session.existing_memory
    found = memory.interactions(**given, limit=limit or None, newest_first=True)
    session.out.document(found)
    if not found:
        hidden = memory.mode == "incognito"
        session.out.aside("Nothing is shown: memory is incognito." if hidden else "No interactions.")
        return
    rows = [
        (one.id[-SHORT_ID:], format_moment(one.at, zone=False), one.kind, one.value or "", _event_subject(one))
        for one in found
    ]
    session.out.table(("id", "when (UTC)", "kind", "value", "about"), rows)
    if len(found) == limit and sys.stdout.isatty():
        session.out.aside(f"Showing the last {limit}; use --limit for more.")


def _event_subject(one: Interaction) -> str:
    text = ": ".join(filter(None, [one.title or one.item, one.text])) or one.session or ""
    return shorten_line(text, _MOST_SHOWN) + (f" [{', '.join(one.topics)}]" if one.topics else "")


@command(AGENTS, "recollect runs", "recollect runs --all --limit 100 --json", mirrors="runs", without=("since",))
def runs_command(
    session: CliSession,
    given: Given,
    limit: Last = 20,
    all: Everyone = False,
) -> int:
    """List extraction runs, newest first."""
    kind, most = given.get("kind"), limit or 1_000_000
    unread: dict[str, StoreError] = {}
    if all:
        found = session.recollect.runs(kind=kind, limit=most, unreadable=unread.__setitem__)
        problems = [{"user": user, "problem": str(error)} for user, error in unread.items()]
        session.out.document([{"user": user, "run": run} for user, run in found] + problems)
        for user, error in unread.items():
            session.out.aside(f"{user} was skipped: {error}")
    else:
        found = [(session.user, run) for run in session.existing_memory.runs(kind=kind, limit=most)]
        session.out.document([run for _, run in found])
    if not found:
        session.out.aside("No extraction has run yet." if kind is None else f"There are no runs of kind {kind}.")
        return STORAGE if unread else DONE
    head = ("day", "kind", "status", "interactions", "written", "updated", "tokens", "ms", "error")
    rows = [(user, *_run_row(run)) if all else _run_row(run) for user, run in found]
    session.out.table(("user", *head) if all else head, rows, right=head[3:-1])
    return STORAGE if unread else DONE


def _run_row(run: ExtractionRun) -> tuple[str, ...]:
    counts = (run.interactions_processed, run.memories_written, run.memories_updated, run.tokens_used)
    took = "" if run.duration_ms is None else f"{run.duration_ms:,}"
    error = shorten_line(run.error or "", _MOST_SHOWN)
    kind = shorten_line(run.kind, _MOST_KIND)
    return (str(run.day), kind, run.status, *(f"{count:,}" for count in counts), took, error)
