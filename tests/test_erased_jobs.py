"""What was erased is gone from the queue too: the host's jobs, dead letters, results and deferred tool calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import recollect
from recollect.work.contract import GiveUpError, Job, Queue, Task
from recollect.work.worker import Worker

SAID = "Wears crimson zephyrquux slippers"


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[recollect.Recollect]:
    with ExitStack() as stack:
        where = tmp_path if request.param == "sqlite" else request.getfixturevalue("postgres_tables")
        yield stack.enter_context(recollect.open(where))


def _jobs(queue: Queue) -> list[Job]:
    found: list[Job] = []
    queue.erase_jobs(lambda job: bool(found.append(job)))  # type: ignore[func-returns-value]
    return found


def _left(queue: Queue) -> set[tuple[str, str | None]]:
    return {(job.name, job.user_id) for job in _jobs(queue)}


def _put(queue: Queue) -> None:
    def give_up(job: Job) -> None:
        raise GiveUpError(f"no {job.payload['text']}")

    queue.put_many([Task(name=name, user_id="u1", payload={"text": SAID}) for name in ("dead", "done")])
    queue.put(Task(name="once", user_id="u1", payload={"text": SAID}, key="once", once=True))
    handlers = {"dead": give_up, "done": lambda job: job.payload["text"], "once": lambda job: None}
    with Worker(queue, handlers) as worker:
        assert worker.wait_idle(60)
    queue.put(Task(name="custom", user_id="u1", payload={"text": SAID}))
    queue.put(Task(name="tool", user_id="u1", payload={"arguments": {"value": SAID}}))
    queue.put(Task(name="other", user_id="u1", payload={"text": "Likes tea"}))
    queue.put(Task(name="custom", user_id="u2", payload={"text": SAID}))


def test_clear_removes_the_jobs_of_the_user(app: recollect.Recollect, tmp_path: Path) -> None:
    memory = app.user("u1")
    memory.remember("Likes tea")
    with app.queue() as queue:
        _put(queue)
        assert memory.clear().receipt.places["jobs"] == 5
        assert _left(queue) == {("once", "u1"), ("custom", "u2")}
        queue.erase_jobs(lambda job: job.user_id == "u2")
    app.close()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"zephyrquux" in path.read_bytes()]


@pytest.mark.parametrize("how", ["id", "topic"])
def test_an_erasure_removes_the_jobs_that_repeat_it(app: recollect.Recollect, how: str) -> None:
    memory = app.user("u1")
    memory.remember(SAID, key="shoes")
    with app.queue() as queue:
        _put(queue)
        receipt = memory.erase("shoes").receipt if how == "id" else memory.erase_topic("zephyrquux")[1]
        assert receipt is not None and receipt.places["jobs"] >= 3
        assert _left(queue) == {("other", "u1"), ("once", "u1"), ("custom", "u2")}


def test_erasing_something_else_keeps_the_jobs(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    memory.remember(SAID, key="shoes")
    memory.remember("Owns a yellow bicycle", key="bicycle")
    memory.erase("shoes")
    with app.queue() as queue:
        queue.put(Task(name="custom", user_id="u1", payload={"text": SAID}))  # the host's, after the erasure
        assert "jobs" not in memory.erase("bicycle").receipt.places
        assert queue.depth()["ready"] == 1


@pytest.mark.everyday(2)
@pytest.mark.parametrize("topic", [True, False])
def test_names_and_keys_that_the_application_chose_are_erased_too(
    app: recollect.Recollect, tmp_path: Path, topic: bool
) -> None:
    memory = app.user("u1")
    memory.remember(SAID, key="shoes")
    with app.queue() as queue:
        queue.put(Task(name="done", user_id="u1", key=f"{SAID} 1", once=True))
        with Worker(queue, {"done": lambda job: {SAID: 1}}) as worker:
            assert worker.wait_idle(60)
        queue.put(Task(name="custom", user_id="u1", payload={SAID: 1}, key="a"))
        queue.put(Task(name="custom", user_id="u1", key=SAID))
        queue.put(Task(name=SAID, user_id="u1", key="b"))
        queue.put(Task(name="kept", user_id="u1", payload={"text": "Likes tea"}))
        memory.erase_topic("zephyrquux") if topic else memory.erase("shoes")
        assert _left(queue) == {("kept", "u1")}
    app.close()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"zephyrquux" in path.read_bytes()]
