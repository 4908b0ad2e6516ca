"""Recollect on several processes and one PostgreSQL, for tests that kill them.

::

    with PostgresServer() as server, Cluster(server.empty_url(), apis=3, workers=2) as cluster:
        cluster.apis[0].kill()
        connect(cluster.apis[1].address).user("42").remember("…")

Each member is a process of its own, as an operator starts it: ``recollect serve``, ``recollect worker``, and the
worker of a host that does jobs of its own. They are forked from one that has loaded the code, so that they are there
again in a moment.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import recollect
from recollect.errors import StoreUnavailableError
from recollect.testing.postgres import free_port
from recollect.work.contract import Job, Task
from recollect.work.worker import Worker

START_SECONDS = 60.0
HOST_JOB = "host: keep this"
HOST = "host"
_KEPT_LINES = 2000
_LOADED = [
    "tests.fakes.cluster",
    "recollect.surfaces.cli",
    "recollect.surfaces.serve",
    "recollect.memory.read_verbs",
    "recollect.search.index.index",
    "recollect.work.jobs",
    "recollect.work.distributed",
    "recollect.store.service_tables_postgres",
    "psycopg",
]


def host_task(user_id: str, name: str, text: str) -> Task:
    """A job of a host's own, that is done once: keep a fact under this name."""
    return Task(name=HOST_JOB, user_id=user_id, payload={"name": name, "text": text}, key=f"host:{name}", once=True)


class Member:
    """One process of the cluster, which can be killed, frozen and started anew."""

    def __init__(self, name: str, command: Sequence[str], settings: Mapping[str, str], tells: str) -> None:
        self.name = name
        self.said: deque[str] = deque(maxlen=_KEPT_LINES)
        """What it wrote to its standard error, also before it was killed."""
        self.fell = False
        """Whether it ever ended without being killed, once it had begun."""
        self._command = list(command)
        self._settings = dict(settings)
        self._tells = tells
        self._process: BaseProcess | None = None
        self._begun: Future[bool] = Future()

    @property
    def is_ready(self) -> bool:
        """Whether it has begun to do what it is for, and was not killed since."""
        return self._begun.done() and self._begun.result()

    def start(self) -> None:
        """Begin; see `wait_ready`."""
        ear, mouth = _processes().Pipe(duplex=False)
        told = {**os.environ, **self._settings}
        begun: BaseProcess = _processes().Process(target=_live, args=(self._command, told, mouth), name=self.name)
        begun.start()
        mouth.close()
        self._process, self._begun = begun, Future()
        threading.Thread(target=self._listen, args=(ear, self._begun), daemon=True).start()

    def wait_ready(self) -> None:
        """Until it does what it is for; started again if it could not begin, as whoever keeps it running would do."""
        until = time.monotonic() + START_SECONDS
        while not self._begun.result(START_SECONDS):
            if time.monotonic() > until:
                raise StoreUnavailableError(f"{self.name} did not start: {' '.join(self.said)[-500:]}")
            self.start()

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self._begun = Future()
        if self._process is not None:
            self._process.kill()
            self._process.join()

    def freeze(self) -> None:
        """Stand still, with everything it holds."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on as if nothing had happened."""
        self._signal(signal.SIGCONT)

    def cpu_seconds(self) -> float:
        """What it has computed since it was started (Linux)."""
        stat = Path(f"/proc/{self._pid}/stat").read_text("ascii")
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    @property
    def _pid(self) -> int:
        assert self._process is not None and self._process.pid is not None, "it was not started"
        return self._process.pid

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.is_alive():
            os.kill(self._pid, number)

    def _listen(self, ear: Any, begun: Future[bool]) -> None:
        with ear, open(ear.fileno(), encoding="utf-8", errors="replace", closefd=False) as voice:
            for line in voice:
                self.said.append(line)
                if self._tells in line:
                    begun.set_result(True)
        if not begun.done():
            begun.set_result(False)
        elif begun is self._begun:
            self.fell = True


def _processes() -> Any:
    """Processes forked in milliseconds from one that has loaded everything and has no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    return context


def _live(command: list[str], told: dict[str, str], mouth: Any) -> None:
    """In a process of its own: what the command line does, or the worker of a host."""
    os.dup2(mouth.fileno(), 2)
    mouth.close()
    os.environ.clear()
    os.environ.update(told)
    if command == [HOST]:
        work_as_host()
    else:
        from recollect.surfaces.cli import main

        sys.argv = ["recollect", *command]
        main()


class Api(Member):
    """``recollect serve``, at an address that stays its own."""

    def __init__(self, number: int, settings: Mapping[str, str]) -> None:
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        command = ("serve", "--port", str(port), "--workers", "0")
        super().__init__(f"api-{number}", command, settings, "Press Ctrl-C to stop")


class Cluster:
    """API processes, workers and hosts on one database; started and ended with a with block."""

    def __init__(
        self, url: str, *, apis: int = 3, workers: int = 2, hosts: int = 0, settings: Mapping[str, str] | None = None
    ) -> None:
        told = {"MEMORY_DATABASE_URL": url, "MEMORY_FILES": "false", "MEMORY_HTTP_KEY_RATE": "0"}
        told |= {"MEMORY_HTTP_USER_RATE": "0", **(settings or {})}
        self.url = url
        self.apis = [Api(number, told) for number in range(apis)]
        self.workers = [Member(f"worker-{number}", ["worker"], told, "Running up to") for number in range(workers)]
        self.hosts = [Member(f"host-{number}", [HOST], told, "Working") for number in range(hosts)]

    @property
    def members(self) -> list[Member]:
        """Everyone."""
        return [*self.apis, *self.workers, *self.hosts]

    def start(self) -> Cluster:
        """Start everyone, and wait until all are ready."""
        for member in self.members:
            member.start()
        self.wait_ready()
        return self

    def wait_ready(self) -> None:
        """Until everyone does what they are for."""
        for member in self.members:
            member.wait_ready()

    def close(self) -> None:
        """Kill everyone."""
        for member in self.members:
            member.thaw()
            member.kill()

    def __enter__(self) -> Cluster:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()


def work_as_host() -> None:
    """The worker of a host: what it does is tied to the name in the job, so doing it again changes nothing."""
    with recollect.open() as app, app.queue() as queue:

        def keep(job: Job) -> None:
            assert job.user_id is not None
            app.user(job.user_id).remember(job.payload["text"], key=job.payload["name"], category="preference")

        print("Working.", file=sys.stderr, flush=True)
        Worker(queue, {HOST_JOB: keep}).run()
