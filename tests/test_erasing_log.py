"""What is erased is in no file, also not in a write-ahead log that another process is reading; until it is gone, the
receipt says so. Looked at from outside: the bytes of all files."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.store import sqlite_erasure
from recollect.work.contract import Task
from tests.process_worker import ProcessWorker, run_command

SECRET = "zebrafinch"


@contextmanager
def long_read(path: Path) -> Iterator[None]:
    """Another program that reads, and goes on reading."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as db:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        yield


def files_with(word: str, root: Path) -> list[str]:
    """In another process: reading a database here would take the locks from the connections of this one."""
    return subprocess.run(["grep", "-rila", word, str(root)], stdout=subprocess.PIPE, text=True).stdout.split()


def store_secret(root: Path) -> str:
    worker = ProcessWorker(root)
    record_id: str = worker("remember", f"the {SECRET} affair")
    worker("remember", "tea")
    worker.end()
    return record_id


def write_again(root: Path) -> None:
    run_command(root, "note", f"something else, at {time.monotonic_ns()}")


def do_upkeep(root: Path) -> None:
    run_command(root, "upkeep")


@pytest.mark.everyday(1)
@pytest.mark.parametrize("later", [write_again, do_upkeep])
def test_R7_an_erasure_that_a_reader_holds_up_says_so_and_is_finished_later(
    tmp_path: Path, later: Callable[[Path], None]
) -> None:
    record_id = store_secret(tmp_path)
    path = tmp_path / "u1" / "memory.db"
    with closing(sqlite3.connect(path)) as kept:  # so that nobody is the last to close it, which would empty the log
        kept.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        with long_read(path):
            erased = run_command(tmp_path, "erase", record_id, "--yes")
            assert erased["receipt"]["places"]["pending"] == 1
            assert any("in its log" in notice for notice in erased["notices"])
            later(tmp_path)  # cannot finish it either
            assert files_with(SECRET, tmp_path), "this test would prove nothing"
        later(tmp_path)
        assert files_with(SECRET, tmp_path) == []


def test_R7_an_erasure_without_readers_leaves_nothing_and_nothing_is_pending(tmp_path: Path) -> None:
    record_id = store_secret(tmp_path)
    erased = run_command(tmp_path, "erase", record_id, "--yes")
    assert "pending" not in erased["receipt"]["places"] and files_with(SECRET, tmp_path) == []


def test_R7_a_process_that_stays_finishes_an_erasure_by_itself(tmp_path: Path) -> None:
    record_id = store_secret(tmp_path)
    idle = ProcessWorker(tmp_path)
    with long_read(tmp_path / "u1" / "memory.db"):
        assert idle("erase", record_id)["pending"] == 1
    deadline = time.monotonic() + 60
    while found := files_with(SECRET, tmp_path):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    idle.end()


def test_R7_a_process_killed_between_erasing_and_emptying_the_log_leaves_a_note(tmp_path: Path) -> None:
    record_id = store_secret(tmp_path)
    with closing(sqlite3.connect(tmp_path / "u1" / "memory.db")) as kept:
        kept.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        killed = ProcessWorker(tmp_path)
        with pytest.raises(EOFError):
            killed("call", _erase_and_die, record_id)
        assert files_with(SECRET, tmp_path)
        write_again(tmp_path)
        assert files_with(SECRET, tmp_path) == []


def _erase_and_die(app: recollect.Recollect, memory: recollect.Memory, record_id: str) -> None:
    def die(*_: Any) -> bool:
        os.kill(os.getpid(), signal.SIGKILL)
        return True

    sqlite_erasure.Erasure.finish = die  # type: ignore[assignment, method-assign]
    memory.erase(record_id)


@pytest.mark.slow
def test_R7_a_cleared_memory_says_in_a_batch_too_what_is_pending(tmp_path: Path) -> None:
    store_secret(tmp_path)
    with recollect.open(tmp_path) as app, long_read(tmp_path / "u1" / "memory.db"):
        with app.user("u1").batch() as batch:
            outcome = batch.clear()
        assert outcome.receipt.still_pending and "pending" not in outcome.receipt.removed


@pytest.mark.slow
def test_R7_an_erased_user_says_which_logs_are_pending(tmp_path: Path) -> None:
    store_secret(tmp_path)
    with recollect.open(tmp_path) as app, app.queue() as queue:
        queue.put(Task(name="extract", user_id="u1", payload={"text": f"the {SECRET} affair"}))
        with long_read(tmp_path / "queue.db"):
            receipt = app.erase_user("u1")
            assert receipt.places["pending"] == 1 and receipt.still_pending
        queue.tidy()
        assert not queue.pending and files_with(SECRET, tmp_path) == []
        assert "pending" not in app.erase_user("u1").places


def test_R7_a_file_that_a_program_has_open_for_writing_is_told_as_pending_and_cleaned_later(tmp_path: Path) -> None:
    memory = recollect.open(tmp_path).user("u1")
    memory.remember("Allergic to penicillin")
    memory.remember("Likes tea")
    file = tmp_path / "u1" / "MEMORY.md"
    with file.open("r+", encoding="utf-8"):
        _, receipt = memory.erase_topic("penicillin")
        assert receipt is not None and receipt.places["pending"] == 1 and receipt.still_pending
        assert "penicillin" not in file.read_text(encoding="utf-8")
        memory.remember("Likes coffee too")
    assert {fact.text for fact in recollect.open(tmp_path).user("u1").read(kind="fact")} == {
        "Likes tea",
        "Likes coffee too",
    }
    found = subprocess.run(["grep", "-rlia", "penicillin", str(tmp_path)], capture_output=True, text=True)
    assert found.stdout == ""
