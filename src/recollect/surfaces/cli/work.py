"""The commands for background work: the worker and its queue."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from recollect.errors import InvalidInputError
from recollect.surfaces.cli.options import Yes, argument, option
from recollect.surfaces.cli.output import SHORT_ID, format_moment
from recollect.surfaces.cli.program import AGENTS, command, command_group
from recollect.surfaces.cli.session import DONE, NO, NOT_FOUND, CliSession

if TYPE_CHECKING:
    from recollect.work.contract import Job, Queue, State

_Ids = Annotated[list[str] | None, argument("IDS", "Jobs, by id or the end of an id.")]
_AllDead = Annotated[bool, option("--all-dead", "All failed jobs.")]
_HEAD = ("id", "when (UTC)", "tries", "job", "user", "error")


@command(AGENTS, "recollect worker", "recollect worker --concurrency 8", "recollect worker --once")
def worker_command(
    session: CliSession,
    concurrency: Annotated[int, option("--concurrency", "The number of jobs at a time.", "NUMBER", min=1, max=64)] = 4,
    once: Annotated[bool, option("--once", "Run all due jobs, then exit.")] = False,
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


_queue = command_group(
    "queue",
    AGENTS,
    "Inspect the job queue; retry or drop failed jobs.",
    "recollect queue show",
    "recollect queue dead",
    "recollect queue retry --all-dead",
)


@_queue("recollect queue show", "recollect queue show --json")
def queue_show_command(session: CliSession) -> None:
    """Count the jobs by state, and name those without a handler."""
    from recollect.work.deferred_calls import TOOL
    from recollect.work.jobs import JOB_NAMES

    with session.recollect.queue() as queue:
        depth = queue.depth()
        due = queue.next_at()
        foreign = {name: number for name, number in queue.waiting().items() if name not in (TOOL, *JOB_NAMES)}
    session.out.document({"depth": depth, "next": due, "no_handler": foreign})
    session.out.line(_depth_text(depth))
    if due is not None:
        session.out.line(f"Next job due: {format_moment(due)}.")
    for name, number in foreign.items():
        session.out.line(
            f"{name}: {number:,} waiting for a worker of your application; `recollect worker` has no handler."
        )
    if foreign:
        session.out.aside("To remove such jobs: recollect queue drop NAME")


@_queue("recollect queue dead", "recollect queue dead --json")
def queue_dead_command(session: CliSession) -> None:
    """List failed jobs and why they failed."""
    with session.recollect.queue() as queue:
        found = queue.dead()
    session.out.listing(found, _HEAD, map(_job_row, found), nothing="There are no failed jobs.", right=("tries",))


@_queue("recollect queue retry 4k7q2m9x", "recollect queue retry --all-dead")
def queue_retry_command(session: CliSession, ids: _Ids = None, all_dead: _AllDead = False) -> int:
    """Retry failed jobs."""
    with session.recollect.queue() as queue:
        failed = _failed_jobs(queue, ids, all_dead)
        for job in failed:
            queue.retry(job.id)
    session.out.document({"jobs": [job.id for job in failed]})
    session.out.line(f"{_count_jobs(len(failed))} queued again.")
    return DONE if failed or all_dead else NOT_FOUND


@_queue("recollect queue drop 4k7q2m9x", "recollect queue drop --all-dead", "recollect queue drop send-mail --yes")
def queue_drop_command(
    session: CliSession,
    ids: Annotated[list[str] | None, argument("IDS", "Failed jobs, by id; or the name of waiting jobs.")] = None,
    all_dead: _AllDead = False,
    yes: Yes = False,
) -> int:
    """Remove failed jobs, or the waiting jobs of a name."""
    with session.recollect.queue() as queue:
        failed = _failed_jobs(queue, ids, all_dead)
        waiting = {name: number for name, number in queue.waiting().items() if name in (ids or ())}
        if waiting:
            named = " and ".join(f"{_count_jobs(number)} named {name!r}" for name, number in waiting.items())
            if not session.agreed(f"Remove {named} that nobody has begun?", yes):
                return NO
        number = len(failed) + sum(map(queue.drop_waiting, waiting))
        for job in failed:
            queue.drop(job.id)
    session.out.document({"jobs": [job.id for job in failed], "removed": number})
    session.out.line(f"{_count_jobs(number)} removed.")
    return DONE if number or all_dead else NOT_FOUND


def _failed_jobs(queue: Queue, ids: list[str] | None, all_dead: bool) -> list[Job]:
    if bool(ids) == all_dead:
        raise InvalidInputError("IDS", "name the jobs, or use --all-dead")
    known = queue.dead(limit=100_000)
    return known if all_dead else [job for job in known if any(job.id.endswith(end) for end in ids or ())]


def _count_jobs(number: int) -> str:
    return f"{number:,} job{'s' * (number != 1)}"


def _depth_text(depth: Mapping[State, int]) -> str:
    found = ", ".join(f"{number:,} {state}" for state, number in depth.items() if number)
    return f"In the queue: {found or 'nothing'}."


def _job_row(job: Job) -> tuple[str, ...]:
    ended = format_moment(job.finished_at, zone=False) if job.finished_at else ""
    return job.id[-SHORT_ID:], ended, str(job.attempts), job.name, job.user_id or "", job.error or ""
