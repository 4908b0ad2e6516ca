"""How much work the queues get through, with every put synced to disk before it returns.

    python -m benchmarks.work [--jobs N] [--json]

One process puts tasks of fifty users, one after another or in batches, while two worker processes of eight threads
do nothing as quickly as they can; the time ends when the last job is recorded as done. Then how soon a waiting
worker begins, in the same process and in another. Beside them, how many bare commits this disk makes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sqlite3
import statistics
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from recollect.testing.postgres import PostgresServer
from recollect.work.contract import Job, Queue, Task
from recollect.work.distributed import DistributedQueue
from recollect.work.embedded import EmbeddedQueue
from recollect.work.worker import Worker

_USERS = 50
_SIZE = 1_000_000


def opened(where: str) -> Queue:
    if where.startswith("postgresql:"):
        return DistributedQueue(where, size=_SIZE)
    return EmbeddedQueue(Path(where), size=_SIZE)


def work(where: str, pipe: Connection) -> None:
    """A worker process that tells when it is ready, when it is idle again, and when a single job began."""

    def told(job: Job) -> None:
        pipe.send(time.time())

    with opened(where) as queue, Worker(queue, {"nothing": lambda job: None, "tell": told}, concurrency=8, ahead=8):
        pipe.send("ready")
        pipe.recv()


class Workers:
    """Processes that work on a queue for the time of a with block."""

    def __init__(self, where: str, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipes: list[Connection] = []
        self.processes = []
        for _ in range(number):
            mine, theirs = context.Pipe()
            process = context.Process(target=work, args=(where, theirs))
            process.start()
            self.pipes.append(mine)
            self.processes.append(process)

    def __enter__(self) -> Workers:
        for pipe in self.pipes:
            pipe.recv()
        return self

    def __exit__(self, *_: object) -> None:
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            pipe.send("stop")
            process.join()


def finish(queue: Queue) -> None:
    pause = threading.Event()
    while any(queue.depth()[state] for state in ("ready", "running")):
        pause.wait(0.02)


def through(where: str, jobs: int, batch: int, workers: int) -> dict[str, float]:
    """Jobs a minute, from the first put to the last recorded as done."""
    with opened(where) as queue, Workers(where, workers):
        tasks = [Task(name="nothing", user_id=f"u{n % _USERS}", payload={"n": n}) for n in range(jobs)]
        began = time.perf_counter()
        for start in range(0, jobs, batch):
            queue.put_many(tasks[start : start + batch])
        put = time.perf_counter() - began
        finish(queue)
        whole = time.perf_counter() - began
    return {"puts a minute": jobs / put * 60, "jobs a minute": jobs / whole * 60}


def one_user(where: str, jobs: int) -> float:
    """Jobs a minute when all are one user's, so that they run one after another."""
    with opened(where) as queue, Workers(where, 2):
        began = time.perf_counter()
        queue.put_many([Task(name="nothing", user_id="u1") for _ in range(jobs)])
        finish(queue)
        return jobs / (time.perf_counter() - began) * 60


def latency(where: str, rounds: int) -> dict[str, float]:
    """Milliseconds from the call of put to the first line of the handler, median."""
    times: dict[str, list[float]] = {"same process": [], "other process": []}
    with opened(where) as queue:
        begun: list[float] = []
        ran = threading.Event()

        def note(job: Job) -> None:
            begun.append(time.time())
            ran.set()

        with Worker(queue, {"note": note}):
            for _ in range(rounds):
                ran.wait(0.1)
                ran.clear()
                start = time.time()
                queue.put(Task(name="note"))
                ran.wait()
                times["same process"].append(begun[-1] - start)
        with Workers(where, 1) as workers:
            pause = threading.Event()
            for _ in range(rounds):
                pause.wait(0.2)  # until it polls seldom
                start = time.time()
                queue.put(Task(name="tell"))
                times["other process"].append(workers.pipes[0].recv() - start)
    return {name: statistics.median(values) * 1e3 for name, values in times.items()}


def bare_commits(folder: Path, rounds: int = 500) -> float:
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE t (n INTEGER)")
    began = time.perf_counter()
    for n in range(rounds):
        db.execute("INSERT INTO t VALUES (?)", (n,))
    rate = rounds / (time.perf_counter() - began) * 60
    db.close()
    return rate


def measure(where: list[str], jobs: int) -> dict[str, float]:
    """Each figure on a queue of its own."""
    single, batches, alone, line, wake = where
    one = through(single, jobs, 1, 2)
    return {
        "puts a minute, one by one": one["puts a minute"],
        "jobs a minute, put one by one, 2 worker processes": one["jobs a minute"],
        "jobs a minute, put in batches of 100, 2 worker processes": through(batches, jobs, 100, 2)["jobs a minute"],
        "jobs a minute, put in batches of 100, 1 worker process": through(alone, jobs, 100, 1)["jobs a minute"],
        "jobs a minute of a single user": one_user(line, jobs // 4),
        **{f"ms until begun, {name}": value for name, value in latency(wake, 40).items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=4000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = {"SQLite": measure([str(folder / str(n)) for n in range(5)], options.jobs)}
        with PostgresServer() as server:
            figures["PostgreSQL"] = measure([server.empty_url() for _ in range(5)], options.jobs)
        commits = bare_commits(folder)
    if options.json:
        print(json.dumps({**figures, "bare commits a minute": commits}, indent=2))
        return
    print(f"{'':58}{'SQLite':>12}{'PostgreSQL':>12}")
    for figure, value in figures["SQLite"].items():
        print(f"{figure:58}{value:12,.1f}{figures['PostgreSQL'][figure]:12,.1f}")
    print(f"{'bare commits of SQLite a minute on this disk':58}{commits:12,.1f}")


if __name__ == "__main__":
    main()
