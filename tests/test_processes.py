"""Several processes share one folder, and lose nothing: each sees what every other was told is stored."""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

import recollect
from recollect.client import connect
from recollect.work.contract import Task
from tests.process_worker import ProcessWorker, run_command
from tests.program import ProgramProcess
from tests.test_mcp import Pipes
from tests.volume import seeds, volume


def test_what_is_acknowledged_after_another_process_ended_is_kept(tmp_path: Path) -> None:
    run_command(tmp_path, "note", "there before")
    long_lived = ProcessWorker(tmp_path)
    assert len(long_lived("read")) == 1
    first = long_lived("remember", "the first, of the process that stays")
    run_command(tmp_path, "note", "of the command line, which ends")
    last = long_lived("remember", "the last, of the process that stays")
    read = run_command(tmp_path, "read", "--kind", "note")
    assert {first, last} <= {record["id"] for record in read} and len(read) == 4
    assert len(long_lived("read")) == 4
    long_lived.end()
    assert len(run_command(tmp_path, "read", "--kind", "note")) == 4
    _check_files(tmp_path)


@pytest.mark.parametrize("seed", seeds(1, 30))
def test_every_process_sees_every_acknowledged_change_at_every_step(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    workers = [ProcessWorker(tmp_path)]
    stored: dict[str, str] = {}
    for step in range(14):
        one = chance.choice(workers)
        match chance.choices(
            ["write", "update", "erase", "command", "search", "close", "start", "end", "kill"],
            [6, 2, 1, 4, 2, 1, 2, 2, 1],
        )[0]:
            case "write":
                text = f"number {step} of {seed}"
                stored[one("remember", text)] = text
            case "update" if stored:
                record_id = chance.choice(sorted(stored))
                one("update", record_id, text := f"changed in step {step} of {seed}")
                stored[record_id] = text
            case "erase" if stored:
                one("erase", record_id := chance.choice(sorted(stored)))
                del stored[record_id]
            case "command":
                text = f"number {step} of {seed}, on the command line"
                stored[run_command(tmp_path, "note", text)["record"]["id"]] = text
            case "search":
                assert set(one("search", "number")) <= set(stored.values())
            case "close":
                one("close")
            case "start" if len(workers) < 4:
                workers.append(ProcessWorker(tmp_path))
                if chance.random() < 0.7:
                    assert workers[-1]("read") == stored
            case "end" | "kill" as how if len(workers) > 1:
                workers.remove(one)
                getattr(one, how)()
        for worker in workers:
            if chance.random() < 0.7:
                assert worker("read") == stored, f"step {step} of seed {seed}"
    while workers:
        assert workers[0]("read") == stored
        workers.pop(0).end()
    assert {record["id"]: record["content"] for record in run_command(tmp_path, "read", "--kind", "note")} == stored
    _check_files(tmp_path)


def _check_files(root: Path) -> None:
    for path in root.rglob("*.db"):
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    last = ProcessWorker(root)
    assert last("verify") == []
    last.end()


# servers


def test_two_mcp_servers_and_the_command_line_see_each_others_writes_whoever_ends(tmp_path: Path) -> None:
    stored = ["word0"]
    run_command(tmp_path, "note", *stored)
    servers = [Pipes(tmp_path, "--user", "u1") for _ in range(2)]
    try:
        for server in servers:
            server.initialize()
        for number in range(1, 5):
            for server in servers:
                _check_found(server, number * 1000, stored)
                stored.append(f"word{len(stored)}")
                server.send(server.call(number, "memory_save", content=stored[-1]))
                assert not server.answer(number)["result"].get("isError")
                stored.append(f"word{len(stored)}")
                run_command(tmp_path, "note", stored[-1])
            for server in servers:
                _check_found(server, number * 1000 + 500, stored)
            if number == 2:
                servers.pop().process.communicate(timeout=60)
    finally:
        for server in servers:
            server.process.kill()
            server.process.communicate()
    assert sorted(record["content"] for record in run_command(tmp_path, "read", "--kind", "note")) == sorted(stored)
    _check_files(tmp_path)


def _check_found(server: Pipes, number: int, stored: list[str]) -> None:
    for at, word in enumerate(stored, number):
        server.send(server.call(at, "memory_search", query=word))
        assert word in json.dumps(server.answer(at)["result"])


def test_a_server_and_the_command_line_see_each_others_writes(tmp_path: Path) -> None:
    stored = ["there before"]
    run_command(tmp_path, "note", *stored)
    process = ProgramProcess("serve", "--port", "0", "--root", str(tmp_path), stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        while not (told := re.search(r"http://127\.0\.0\.1:\d+", line := process.stderr.readline())):
            assert line, "the server has ended"
        for number in range(volume(2, 4)):
            with connect(told.group()) as remote:
                memory = remote.user("u1")
                assert sorted(record.content for record in memory.read(kind="note")) == sorted(stored)
                stored.append(f"item {number} of the server")
                assert memory.note(stored[-1]).done
            stored.append(f"item {number} of the command line")
            run_command(tmp_path, "note", stored[-1])
            read = run_command(tmp_path, "read", "--kind", "note")
            assert sorted(record["content"] for record in read) == sorted(stored)
    finally:
        process.terminate()
        process.communicate(timeout=60)
    read = run_command(tmp_path, "read", "--kind", "note")
    assert sorted(record["content"] for record in read) == sorted(stored)
    _check_files(tmp_path)


# the log is taken away all the same


def test_a_process_whose_log_was_removed_acknowledges_nothing_more(tmp_path: Path) -> None:
    """Some other code in the process closes a descriptor of the database: its locks are gone, and so is its log."""
    careless = ProcessWorker(tmp_path)
    careless("remember", "stored")
    assert len(careless("read")) == 1
    careless("call", _open_and_close, str(tmp_path / "u1" / "memory.db"))
    run_command(tmp_path, "note", "of another process, which ends and takes itself for the last")
    for verb, *arguments in [["read"], ["remember", "lost"], ["search", "stored"], ["remember", "lost too"]]:
        with pytest.raises(AssertionError, match=r"StoreError: the log of .*memory\.db was removed.*restart"):
            careless(verb, *arguments)
    careless.end()
    stored = [record["content"] for record in run_command(tmp_path, "read", "--kind", "note")]
    assert sorted(stored) == ["of another process, which ends and takes itself for the last", "stored"]
    _check_files(tmp_path)


def _open_and_close(app: recollect.Recollect, memory: recollect.Memory, path: str) -> None:
    with open(path, "rb"):
        pass


@pytest.mark.everyday(1)
@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_log_removed_in_the_middle_of_a_write_is_noticed_before_it_is_acknowledged(
    tmp_path: Path, ending: str
) -> None:
    worker = ProcessWorker(tmp_path)
    worker("remember", "stored")
    with pytest.raises(AssertionError, match=r"StoreError: the log of .*memory\.db was removed"):
        worker("call", _write_and_remove, str(tmp_path / "u1" / f"memory.db{ending}"))
    worker.kill()


def _write_and_remove(app: recollect.Recollect, memory: recollect.Memory, path: str) -> None:
    with memory.batch() as batch:
        batch.note("half")
        os.unlink(path)


@pytest.mark.slow
def test_a_queue_whose_log_was_removed_accepts_nothing_more(tmp_path: Path) -> None:
    worker = ProcessWorker(tmp_path)
    with pytest.raises(AssertionError, match=r"StoreError: the log of .*queue\.db was removed"):
        worker("call", _put_and_remove, str(tmp_path / "queue.db-wal"))
    worker.kill()


def _put_and_remove(app: recollect.Recollect, memory: recollect.Memory, path: str) -> None:
    with app.queue() as queue:
        queue.put(Task(name="extract", user_id="u1"))
        os.unlink(path)
        queue.put(Task(name="extract", user_id="u2"))


def test_verify_notices_that_acknowledged_changes_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "u1" / "memory.db"
    run_command(tmp_path, "note", "the first")
    older = path.read_bytes()
    run_command(tmp_path, "note", "the second")
    assert run_command(tmp_path, "verify")["problems"] == []
    path.write_bytes(older)
    [problem] = ProcessWorker(tmp_path)("verify")
    assert "ends with change 1, but 2 were acknowledged" in problem
    rebuilt = ProcessWorker(tmp_path)
    rebuilt("call", _rebuild)
    assert rebuilt("verify") == []
    rebuilt.end()


def _rebuild(app: recollect.Recollect, memory: recollect.Memory) -> None:
    memory.rebuild(force=True)
