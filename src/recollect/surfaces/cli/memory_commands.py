"""The commands for a memory as a whole: export and import, verify and repair, upkeep, usage, users, settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from recollect.counts import pluralize
from recollect.errors import (
    ConfigError,
    InvalidInputError,
    NotFoundError,
    NothingToRebuildError,
    RecollectError,
    StoreError,
)
from recollect.records import Spending
from recollect.surfaces.cli.options import DryRun, Everyone, Given, Yes, argument, option
from recollect.surfaces.cli.output import count_each, plain_data, progress
from recollect.surfaces.cli.program import START, WHOLE, command
from recollect.surfaces.cli.session import DONE, NO, STORAGE, CliSession
from recollect.userid import folder_name

if TYPE_CHECKING:
    from recollect.memory.memory import Memory
    from recollect.memory.rebuild import RebuildReport
    from recollect.memory.transfer import ImportReport
    from recollect.memory.upkeep import UpkeepReport

_MOST_REASONS = 20
_INTACT = str(NothingToRebuildError()).replace("pass force=True", "use --force")


@command(WHOLE, "recollect export", "recollect export backup.zip --yes")
def export_command(
    session: CliSession,
    path: Annotated[
        Path | None, argument("PATH", "The archive, or - for standard output (default: named by user and day).")
    ] = None,
    yes: Yes = False,
) -> int:
    """Export the whole memory to one archive."""
    memory = session.existing_memory
    if path == Path("-"):
        return _export_to_standard_output(session, memory)
    target = path or Path(f"recollect-{folder_name(session.user)}-{date.today()}.zip")
    if target.is_file() and not session.agreed(f"Replace {target}?", yes):
        return NO
    with progress("Exporting") as tell:
        written = memory.export(target, progress=tell)
    held, inactive = memory.count(), _inactive(memory)
    size = written.stat().st_size if written.is_file() else None  # unknown for a pipe
    session.out.document({"path": written, "bytes": size, "records": held, "inactive": inactive})
    told = [f"{written}: {_held(held, inactive)}", *([] if size is None else [f"{size:,} bytes"])]
    session.out.line(", ".join(told))
    return DONE


def _inactive(memory: Memory) -> int:
    """Return how many records are kept that are no longer active."""
    return sum(memory.count(status="all").values()) - sum(memory.count().values())


def _held(active: Mapping[str, int], inactive: int) -> str:
    """Return what an archive holds, in the same words after an export and after it was restored."""
    told = [count_each(active), f"{inactive:,} forgotten or superseded" if inactive else ""]
    return ", ".join(filter(None, told)) or "empty"


def _export_to_standard_output(session: CliSession, memory: Memory) -> int:
    import shutil
    import tempfile

    if session.json:
        raise InvalidInputError("--json", "requires a file name; with - the archive itself goes to standard output")
    if sys.stdout.isatty():
        raise InvalidInputError("path", "an archive cannot be shown on a terminal; name a file or redirect the output")
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder, progress("Exporting") as tell:
        with memory.export(Path(folder) / "memory.zip", progress=tell).open("rb") as archive:
            shutil.copyfileobj(archive, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    return DONE


@command(
    WHOLE,
    "recollect import backup.zip",
    "recollect import ~/notes --dry-run",
    "recollect import mem0.json --from-user 42",
    name="import",
)
def import_command(
    session: CliSession,
    path: Annotated[str, argument("PATH", "An export, a folder of Markdown, an MCP memory.jsonl, or a mem0 export.")],
    from_user: Annotated[
        str | None, option("--from-user", "The user to take from a mem0 export of several.", "ID")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> int:
    """Import a memory, from Recollect or another program."""
    from recollect import checks as check
    from recollect.memory.transfer import check_source

    memory = session.memory
    check_source(check.check_path("path", path))
    question = f"{session.user!r} already has a memory. Add to it?"
    if memory.exists and not dry_run and not session.agreed(question, yes):
        return NO
    with progress("Importing") as tell:
        report = memory.import_(path, from_user=from_user, dry_run=dry_run, progress=tell)
    session.out.document(plain_data(report) | ({"dry_run": True} if dry_run else {}))
    _print_import(session, report)
    restored = report.format == "recollect" and report.written and report.run is None and not dry_run
    if restored and (inactive := _inactive(memory)):  # else what was written is what the export named
        session.out.line(f"Restored: {_held(memory.count(), inactive)}.")
    if restored:
        session.out.aside("It was restored with its own history. To remove all of it again: recollect clear")
    session.changed_nothing(dry_run)
    return DONE


def _print_import(session: CliSession, report: ImportReport) -> None:
    parts = [
        f"{number:,} {what}"
        for number, what in (
            (report.written, "written"),
            (report.interactions, "interaction" if report.interactions == 1 else "interactions"),
            (report.duplicates, "already known"),
            (report.conflicts, "in conflict"),
            (report.refused, "refused"),
            (len(report.skipped) - report.conflicts - report.refused, "unreadable"),
        )
        if number or what == "written"
    ]
    name = {"recollect": "a Recollect export", "markdown": "Markdown", "mcp": "an MCP memory"}
    session.out.line(f"From {name.get(report.format, report.format)}: {', '.join(parts)}.")
    if report.skipped:
        session.out.line("Not imported:")
    for reason in report.skipped[:_MOST_REASONS]:
        session.out.line(f"  {reason}")
    if len(report.skipped) > _MOST_REASONS:
        session.out.line(f"  … and {len(report.skipped) - _MOST_REASONS:,} more (use --json to see all)")
    if report.run:
        session.out.aside(f"To undo: recollect undo {report.run}")


@command(WHOLE, "recollect verify", "recollect verify --all --json")
def verify_command(session: CliSession, all: Everyone = False) -> int:
    """Check that database, journal and files agree."""
    from recollect.memory.files.placement import PUT_RIGHT

    worst, damaged = DONE, False
    answers: list[dict[str, Any]] = []
    for user, problems in _for_each_user(session, all, "Verifying", lambda memory, tell: memory.verify(progress=tell)):
        failed = isinstance(problems, RecollectError)
        found = [str(problems)] if isinstance(problems, RecollectError) else problems
        worst = max(worst, STORAGE if failed else NO if found else DONE)
        damaged |= any(not problem.endswith(PUT_RIGHT) for problem in found)
        answers.append({"user": user, "ok": not found, "problems": found})
        session.out.line(f"{user}: {'no problems found' if not found else pluralize(len(found), 'problem')}")
        for problem in found:
            session.out.line(f"  {problem}")
    session.out.document(answers if all else answers[0])
    if damaged:
        session.out.aside(
            "Run `recollect rebuild` to repair a memory. It keeps everything readable and reports what is lost."
        )
    return worst


@command(WHOLE, "recollect upkeep", "recollect upkeep --all", writes=True)
def upkeep_command(session: CliSession, all: Everyone = False, dry_run: DryRun = False) -> int:
    """Remove what has expired, and keep MEMORY.md short."""

    def do(memory: Memory) -> UpkeepReport:
        return memory.upkeep(dry_run=dry_run)

    def tell(report: UpkeepReport) -> tuple[dict[str, Any], str]:
        gone = count_each(report.expired | {"tool call": report.calls, "interaction": report.interactions})
        done = f"{'would remove' if dry_run else 'removed'} {gone}"
        answer = plain_data(report) | ({"dry_run": True} if dry_run else {})
        return answer, done if gone else "nothing has expired"

    code = _tell_each(session, all, _for_each_user(session, all, "Upkeep", lambda memory, _: do(memory)), tell)
    session.changed_nothing(dry_run)
    return code


@command(WHOLE, "recollect rebuild --dry-run", "recollect rebuild", writes=True)
def rebuild_command(
    session: CliSession,
    force: Annotated[bool, option("--force", "Rebuild even if the database is intact.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> int:
    """Repair a lost or damaged database."""
    from recollect.memory.rebuild import needs_rebuild

    if not dry_run:
        memory = session.existing_memory
        if not force and not needs_rebuild(memory._user_memory):
            raise NothingToRebuildError(_INTACT)
        question = f"Set aside the database of {session.user!r} and build a new one from everything readable?"
        if not session.agreed(question, yes):
            return NO
    try:
        report = _rebuild_a_copy(session, force) if dry_run else memory.rebuild(force=force)
    except NothingToRebuildError:
        raise NothingToRebuildError(_INTACT) from None
    session.out.document(plain_data(report) | ({"dry_run": True} if dry_run else {}))
    files = f", {report.from_files} of them from the files" if report.from_files else ""
    restored = f"{count_each(report.restored) or 'nothing'}{files}."
    session.out.line(f"Would restore: {restored}" if dry_run else f"Restored: {restored}")
    session.out.line("Not recovered:" if report.lost else "Nothing was lost.")
    for lost in report.lost:
        session.out.line(f"  {lost}")
    if report.aside is not None and not dry_run:
        session.out.aside(f"The old database is kept as {report.aside}.")
    session.out.asides(report.notices)
    session.changed_nothing(dry_run)
    return DONE


def _rebuild_a_copy(session: CliSession, force: bool) -> RebuildReport:
    """Rebuild a temporary copy of the user's folder."""
    import tempfile

    import recollect
    from recollect.store.locks import FileLock

    config = session.config
    if config.database_url:
        raise InvalidInputError("--dry-run", "works on a folder only; restore a memory in PostgreSQL from a backup")
    folder = config.memory_dir / folder_name(session.user)
    if not folder.is_dir():
        raise NotFoundError(f"There is no memory for {session.user!r} yet.")
    with tempfile.TemporaryDirectory(prefix="recollect-") as copy:
        lock = FileLock(folder / ".lock", timeout=30)
        lock.acquire()  # no writes while the files are copied
        try:
            # recollect.db tells which users exist, and so what counts as lost
            _copy_live_files([folder, *config.memory_dir.glob("recollect.db*")], Path(copy))
        finally:
            lock.release()
            lock.close()
        with recollect.open(copy) as trial:
            return replace(trial.user(session.user).rebuild(force=force), aside=None)


_COPY = """
import pathlib, shutil, sys
*sources, target = map(pathlib.Path, sys.argv[1:])
def unwanted(folder, names):
    paths = {name: pathlib.Path(folder, name) for name in names}
    return [name for name, path in paths.items() if name == ".lock" or not (path.is_file() or path.is_dir())]
for source in sources:
    if source.is_dir():
        shutil.copytree(source, target / source.name, ignore=unwanted)
    else:
        shutil.copy(source, target / source.name)
"""


def _copy_live_files(sources: Sequence[Path], target: Path) -> None:
    """Copy databases that may be in use, byte for byte, in another process.

    In this process, closing the files would drop the locks that SQLite holds on them.
    """
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", _COPY, *map(str, sources), str(target)], capture_output=True, text=True
    )
    if done.returncode:
        raise StoreError(f"the memory cannot be copied: {done.stderr.strip().splitlines()[-1]}")


@command(WHOLE, "recollect rebuild-index", "recollect rebuild-index --all", name="rebuild-index")
def rebuild_index_command(session: CliSession, all: Everyone = False) -> int:
    """Rebuild the search index from the records."""
    indexed = _for_each_user(session, all, "Indexing", lambda memory, _: memory.rebuild_index())
    return _tell_each(session, all, indexed, lambda number: _print_counts(number, "record", "indexed"))


@command(WHOLE, "recollect embed", "recollect embed --all")
def embed_command(session: CliSession, all: Everyone = False) -> int:
    """Compute missing vectors for semantic search."""
    embedded = _for_each_user(session, all, "Embedding", lambda memory, tell: memory.embed(progress=tell))
    return _tell_each(session, all, embedded, lambda number: _print_counts(number, "vector", "made"))


def _print_counts(number: int, what: str, done: str) -> tuple[dict[str, Any], str]:
    return {f"{what}s": number}, f"{number:,} {what}{'' if number == 1 else 's'} {done}"


def _tell_each(
    session: CliSession,
    everyone: bool,
    results: Iterator[tuple[str, Any]],
    tell: Callable[[Any], tuple[dict[str, Any], str]],
) -> int:
    """Tell what came of it for whom, and return the exit code."""
    worst = DONE
    answers: list[dict[str, Any]] = []
    for user, result in results:
        if isinstance(result, RecollectError):
            worst = STORAGE
            answer, line = {"error": str(result)}, str(result)
        else:
            answer, line = tell(result)
        answers.append({"user": user, **answer})
        session.out.line(f"{user}: {line}")
        session.out.asides(getattr(result, "notices", ()))
    session.out.document(answers if everyone else answers[0])
    return worst


@command(WHOLE, "recollect usage", "recollect usage --since 2026-02-01 --until 2026-02-28 --json", mirrors="usage")
def usage_command(session: CliSession, given: Given) -> None:
    """Show token usage and cost, for today or a period."""
    days = session.existing_memory.usage(**given)
    operations: dict[str, Spending] = {}
    for spent in days:
        known = operations.get(spent.operation)
        operations[spent.operation] = spent if known is None else _sum_spending((known, spent))
    rows = sorted(operations.values(), key=lambda spent: (-spent.cost, -spent.tokens_in - spent.tokens_out))
    total = _sum_spending(rows) if rows else None
    session.out.document({"days": days, "total": _spending_numbers(total) if total else {}})
    if total is None:
        session.out.aside("No usage in this period." if given else "No usage today (UTC).")
        return
    head = ("calls", "tokens in", "tokens out", "cost", "operation")
    told = [replace(total, operation="total")] if len(rows) > 1 else []
    session.out.table(
        head,
        [
            (f"{spent.calls:,}", f"{spent.tokens_in:,}", f"{spent.tokens_out:,}", f"{spent.cost:,.4f}", spent.operation)
            for spent in [*rows, *told]
        ],
        right=head[:-1],
    )


def _sum_spending(spendings: Iterable[Spending]) -> Spending:
    first, *others = spendings
    return replace(
        first,
        calls=first.calls + sum(spent.calls for spent in others),
        tokens_in=first.tokens_in + sum(spent.tokens_in for spent in others),
        tokens_out=first.tokens_out + sum(spent.tokens_out for spent in others),
        cost=first.cost + sum(spent.cost for spent in others),
    )


def _spending_numbers(spent: Spending) -> dict[str, float]:
    names = ("calls", "tokens_in", "tokens_out", "cost")
    return {name: getattr(spent, name) for name in names}


@command(WHOLE, "recollect users", "recollect users --json")
def users_command(session: CliSession) -> int:
    """List all users who have a memory."""
    worst = DONE
    rows: list[dict[str, Any]] = []
    for user in session.recollect.users():
        memory = session.recollect.user(user)
        try:
            rows.append({"user": user, "mode": memory.mode, "records": memory.count()})
        except RecollectError as error:
            worst = STORAGE
            rows.append({"user": user, "error": str(error), "records": {}})
    shown = [(r["user"], r.get("mode", "?"), r.get("error") or count_each(r["records"]) or "nothing") for r in rows]
    session.out.listing(rows, ("user", "mode", "records"), shown, nothing="There are no users yet.")
    return worst


@command(START, "recollect config", "MEMORY_MAX_WORDS=500 recollect config")
def config_command(session: CliSession) -> None:
    """Show every setting, its value and its default."""
    settings = session.config
    values = settings.values()
    rows = [
        {"variable": variable, "value": values[variable], "default": default, "description": description}
        for variable, default, description in settings.table()
    ]
    session.out.document(rows)
    for row in rows:
        changed = "" if row["value"] == row["default"] else f"  (default: {row['default'] or 'empty'})"
        session.out.line(f"{row['variable']} = {row['value'] or 'empty'}{changed}")
        session.out.line(f"  {row['description']}")


def _for_each_user(
    session: CliSession,
    everyone: bool,
    what: str,
    act: Callable[[Memory, Callable[[int, int], None]], Any],
) -> Iterator[tuple[str, Any]]:
    """Do something for one user or for all. With all, one user's failure does not stop the others."""
    with progress(what) as tell:
        if not everyone:
            yield session.user, act(session.existing_memory, tell)
            return
        names = list(session.recollect.users())
        for done, name in enumerate(names):
            tell(done, len(names))
            try:
                result = act(session.recollect.user(name), lambda done, total: None)
            except ConfigError:
                raise  # the same for everyone
            except RecollectError as error:
                result = error
            yield name, result
