"""Several processes share one folder, and lose nothing: each sees what every other was told is stored."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.process_worker import ProcessWorker, run_command


def test_what_is_acknowledged_after_another_process_ended_is_kept(tmp_path: Path) -> None:
    long_lived = ProcessWorker(tmp_path)
    first = long_lived("remember", "the first, of the process that stays")
    assert list(long_lived("read")) == [first]
    run_command(tmp_path, "note", "of the command line, which ends")
    last = long_lived("remember", "the last, of the process that stays")
    read = run_command(tmp_path, "read", "--kind", "note")
    assert {first, last} <= {record["id"] for record in read} and len(read) == 3
    assert len(long_lived("read")) == 3
    long_lived.end()
    assert len(run_command(tmp_path, "read", "--kind", "note")) == 3
    _check_files(tmp_path)


@pytest.mark.parametrize("seed", range(30))
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
