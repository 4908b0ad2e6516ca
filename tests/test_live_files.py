"""No code of ours opens a live database file, its log or its shared memory, except through SQLite: closing such a file
would drop the locks of this process, and the next process to end would delete a log that is in use."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

import recollect
from recollect.surfaces.cli import extraction, identity, interaction_commands, keys, usage_metrics, work  # noqa: F401
from tests.process_worker import ProcessWorker

_LIVE = (".db", ".db-wal", ".db-shm", ".db-journal")


def test_no_verb_opens_a_live_database_file(tmp_path: Path) -> None:
    root, other = tmp_path / "memories", tmp_path / "aside"
    other.mkdir()
    worker = ProcessWorker(root)
    opened = worker("call", _use_everything, str(other))
    worker.end()
    assert opened == []


def test_no_command_opens_a_live_database_file(tmp_path: Path) -> None:
    worker = ProcessWorker(tmp_path / "memories")
    worker("call", _watch)
    note = worker("command", "note", "tea")["record"]["id"]
    archive = str(tmp_path / "memory.zip")
    commands = [
        ["remember", "Engineer", "--key", "role"], ["update", "role", "Architect"], ["jot", "Read 6 posts"], ["read"],
        ["search", "tea"], ["show"], ["history"], ["why", note], ["verify", "--all"], ["export", archive],
        ["import", archive], ["rebuild-index"], ["upkeep", "--all"], ["users"], ["metrics"], ["link", "show"],
        ["rebuild", "--dry-run", "--force"], ["rebuild", "--force", "--yes"], ["undo", "--yes"],
        ["erase", "role", "--yes"], ["clear", "--yes"], ["erase", "--everything", "--yes"],
    ]  # fmt: skip
    done = [command for command in commands if worker("try_command", *command) == 0]
    assert worker("call", _opened) == []
    worker.end()
    assert len(done) >= len(commands) - 3, f"too few commands worked to mean anything: {done}"


def test_the_watch_notices_an_open(tmp_path: Path) -> None:
    worker = ProcessWorker(tmp_path)
    worker("remember", "tea")
    worker("call", _watch)
    worker("call", _open_it)
    assert len(worker("call", _opened)) == 1
    worker.end()


_seen: list[str] = []


def _watch(app: recollect.Recollect, memory: recollect.Memory) -> None:
    root = str(app.config.memory_dir)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and str(args[0]).startswith(root) and str(args[0]).endswith(_LIVE):
            _seen.append(f"{args[0]}\n{''.join(traceback.format_stack()[-6:-1])}")

    sys.addaudithook(hook)


def _opened(app: recollect.Recollect, memory: recollect.Memory) -> list[str]:
    return _seen


def _open_it(app: recollect.Recollect, memory: recollect.Memory) -> None:
    with open(Path(app.config.memory_dir) / "u1" / "memory.db", "rb"):
        pass


def _use_everything(app: recollect.Recollect, memory: recollect.Memory, other: str) -> list[str]:
    from recollect.work.contract import Task

    _watch(app, memory)
    for number in range(5):
        memory.remember(f"Fact number {number}")
    memory.note("tea")
    memory.jot("Read 6 posts")
    memory.say("hello", session="s")
    memory.search("tea")
    memory.context()
    memory.verify()
    memory.upkeep()
    archive = memory.export(Path(other) / "memory.zip")
    app.user("u2").import_(archive)
    with app.queue() as queue:
        queue.put(Task(name="extract", user_id="u1"))
        queue.take("worker", 1)
        queue.depth()
    app.identities.enter_code(("cli", "ann"), app.identities.start_link(("chat", "ann")).text)
    app.metrics()
    app.trends()
    memory.rebuild_index()
    memory.rebuild(force=True)
    memory.undo()
    memory.erase(*[record.id for record in memory.read()[:2]])
    memory.clear()
    app.erase_user("u2")
    app.close()
    memory.read()
    return _seen
