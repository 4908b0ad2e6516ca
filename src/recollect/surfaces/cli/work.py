"""The commands for background work: the worker and its queue."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from recollect.errors import InvalidInputError
from recollect.surfaces.cli.options import Files, Json, Root, User
from recollect.surfaces.cli.output import SHORT_ID, format_moment
from recollect.surfaces.cli.program import AGENTS, CliGroup, app, command, command_below
from recollect.surfaces.cli.session import DONE, NOT_FOUND, CliSession

if TYPE_CHECKING:
    from recollect.work.contract import Job, Queue, State

_Verb = TypeVar("_Verb", bound=Callable[..., int | None])
_Ids = Annotated[
    list[str] | None, typer.Argument(help="Jobs, by id or the end of an id.", metavar="IDS", show_default=False)
]
_AllDead = Annotated[bool, typer.Option("--all-dead", help="All failed jobs.")]
_HEAD = ("id", "when (UTC)", "tries", "job", "user", "error")


@command(AGENTS, "recollect worker", "recollect worker --concurrency 8", "recollect worker --once")
def worker_command(
    session: CliSession,
    concurrency: Annotated[
        int, typer.Option("--concurrency", help="The number of jobs at a time.", min=1, max=64, metavar="NUMBER")
    ] = 4,
    once: Annotated[bool, typer.Option("--once", help="Run all due jobs, then exit.")] = False,
) -> int:
    """Run background jobs: daily learning, upkeep, the queue."""
    recollect = session.recollect
    with recollect.queue() as queue:
        running = recollect.worker(queue, concurrency=concurrency)
        if once:
            running.start()
            running.wait_idle()
            running.stop()
        else:
            session.out.aside(
                f"Running up to {concurrency} jobs at a time. Learning: {recollect.config.extraction_schedule} UTC."
            )
            stop = threading.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: stop.set())
            running.start()
            while not stop.wait(1):  # wake up regularly: a signal may reach another thread first
                pass
            session.out.aside("Finishing …")
            running.stop()
        depth = queue.depth()
    session.out.document(depth)
    session.out.line(_depth_text(depth))
    return DONE


_queue = typer.Typer(cls=CliGroup, name="queue")
app.add_typer(
    _queue,
    rich_help_panel=AGENTS,
    epilog="recollect queue show\nrecollect queue dead\nrecollect queue retry --all-dead",
)


@_queue.callback()
def _queue_group(
    ctx: typer.Context, user: User = "me", root: Root = None, files: Files = None, json: Json = False
) -> None:
    """Inspect the job queue; retry or drop failed jobs."""
    given = {"user": user, "root": root, "files": files, "json": json}
    ctx.default_map = dict.fromkeys(("show", "dead", "retry", "drop"), given)


@command_below(_queue, "recollect queue show", "recollect queue show --json")
def queue_show_command(session: CliSession) -> None:
    """Show the number of jobs by state."""
    with session.recollect.queue() as queue:
        depth = queue.depth()
        due = queue.next_at()
    session.out.document({"depth": depth, "next": due})
    session.out.line(_depth_text(depth))
    if due is not None:
        session.out.line(f"Next job due: {format_moment(due)}.")


@command_below(_queue, "recollect queue dead", "recollect queue dead --json")
def queue_dead_command(session: CliSession) -> None:
    """List failed jobs and why they failed."""
    with session.recollect.queue() as queue:
        found = queue.dead()
    session.out.document(found)
    if not found:
        session.out.aside("There are no failed jobs.")
        return
    session.out.table(_HEAD, [_job_row(job) for job in found], right=("tries",))


@command_below(_queue, "recollect queue retry 4k7q2m9x", "recollect queue retry --all-dead")
def queue_retry_command(session: CliSession, ids: _Ids = None, all_dead: _AllDead = False) -> int:
    """Retry failed jobs."""
    return _for_each_job(session, ids, all_dead, "queued again", lambda queue, job: queue.retry(job.id))


@command_below(_queue, "recollect queue drop 4k7q2m9x", "recollect queue drop --all-dead")
def queue_drop_command(session: CliSession, ids: _Ids = None, all_dead: _AllDead = False) -> int:
    """Remove failed jobs."""
    return _for_each_job(session, ids, all_dead, "removed", lambda queue, job: queue.drop(job.id))


def _for_each_job(
    session: CliSession, ids: list[str] | None, all_dead: bool, done: str, act: Callable[[Queue, Job], object]
) -> int:
    if bool(ids) == all_dead:
        raise InvalidInputError("IDS", "name the jobs, or use --all-dead")
    with session.recollect.queue() as queue:
        known = queue.dead(limit=100_000)
        chosen = known if all_dead else [job for job in known if any(job.id.endswith(end) for end in ids or ())]
        for job in chosen:
            act(queue, job)
    session.out.document({"jobs": [job.id for job in chosen]})
    session.out.line(f"{len(chosen)} job{'s' * (len(chosen) != 1)} {done}.")
    return DONE if chosen or all_dead else NOT_FOUND


def _depth_text(depth: Mapping[State, int]) -> str:
    found = ", ".join(f"{number:,} {state}" for state, number in depth.items() if number)
    return f"In the queue: {found or 'nothing'}."


def _job_row(job: Job) -> tuple[str, ...]:
    ended = format_moment(job.finished_at, zone=False) if job.finished_at else ""
    return job.id[-SHORT_ID:], ended, str(job.attempts), job.name, job.user_id or "", job.error or ""
