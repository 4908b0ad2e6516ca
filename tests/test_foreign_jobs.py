"""Jobs that no worker here has a handler for: they hold up nobody, and can be found and removed."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect.work.contract import Done, Job, Queue, Task
from recollect.work.worker import Worker
from tests.fakes.queue import MemoryQueue
from tests.program import run_separately
from tests.test_late import ahead, contents, killed, opened, waiting


@pytest.fixture
def app(tmp_path: Path) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path) as app:
        yield app


@pytest.fixture
def queue(app: recollect.Recollect) -> Iterator[Queue]:
    with app.queue() as queue:
        yield queue


@pytest.mark.everyday(1)
@pytest.mark.parametrize("by", ["a worker", "the next process that opens tools"])
def test_W2_a_queued_call_is_done_behind_a_job_that_nobody_can_do(tmp_path: Path, by: str) -> None:
    with opened(str(tmp_path)) as app, app.queue() as queue:
        queue.put(Task(name="send-mail", user_id="u1"))
    killed(str(tmp_path))
    with opened(str(tmp_path), clock=ahead) as app:
        if by == "a worker":
            with app.queue() as queue, app.worker(queue) as worker:
                assert worker.wait_idle(60)
        else:
            app.tools("u1", session="s1")
            while waiting(app) > 1:
                threading.Event().wait(0.01)
        assert contents(app.user("u1").read(kind="note")) == ["Likes oolong", "exists"]
        assert waiting(app) == 1  # the mail is still there for whoever can send it


def test_W2_a_worker_is_not_idle_while_its_job_waits_for_that_of_another_worker() -> None:
    queue = MemoryQueue()
    queue.put_many([Task(name="theirs", user_id="u1"), Task(name="mine", user_id="u1")])
    [theirs] = queue.take("another worker of another machine", 1, names=["theirs"]).leases
    done: list[str] = []

    def mine(job: Job) -> None:
        done.append(job.id)

    with Worker(queue, {"mine": mine}) as worker:
        assert not worker.wait_idle(0.3) and not done
        queue.settle([Done(theirs)])
        assert worker.wait_idle(60) and len(done) == 1


def _recollect(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_separately(*arguments, "--root", str(root), text=True, stdin=subprocess.DEVNULL)


def test_W2_the_program_tells_of_jobs_it_cannot_do_and_removes_them_on_request(tmp_path: Path, queue: Queue) -> None:
    queue.put_many([Task(name="send-mail", user_id="u1"), Task(name="send-mail"), Task(name="upkeep", user_id="u1")])
    assert json.loads(_recollect(tmp_path, "queue", "show", "--json").stdout)["no_handler"] == {"send-mail": 2}
    shown = _recollect(tmp_path, "queue", "show").stdout
    assert "send-mail: 2 waiting" in shown and "upkeep" not in shown
    refused = _recollect(tmp_path, "queue", "drop", "send-mail")
    assert refused.returncode == 2 and "--yes" in refused.stderr and queue.depth()["ready"] == 3
    assert _recollect(tmp_path, "queue", "drop", "send-mail", "--yes").stdout == "2 jobs removed.\n"
    assert queue.waiting() == {"upkeep": 1}
    assert _recollect(tmp_path, "queue", "drop", "send-mail", "--yes").returncode == 3
