"""A process is killed in a user's very first write, at every step of it: whoever reads next can read, also where nobody
may write, and whoever writes next can write."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import recollect
from tests.process_worker import ProcessWorker

_PARTS = 24
"""Each is killed at every twenty-fourth step: the first in the everyday run, all in the long one."""
_CHANGES = ("open", "os.link", "os.rename", "os.remove", "os.mkdir", "os.chmod", "sqlite3.connect")


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody can reach, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="recollect-public-"))
    folder.chmod(0o755)
    yield folder
    for path in folder.rglob("*"):
        path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, _PARTS))])
def test_after_a_kill_at_any_step_of_the_first_write_every_read_works(public: Path, part: int) -> None:
    step, steps = 0, 1
    while step <= steps:
        if step and step % _PARTS != part:
            step += 1
            continue
        root = public / str(step)
        root.mkdir()
        writing = ProcessWorker(root)
        if step == 0:
            steps = writing("call", _count_steps)
            assert steps > 25, "too few to mean anything"
        else:
            with pytest.raises(EOFError):
                writing("call", _die_at, step)
            _check_readable(root, public / f"{step}-read-only")
        step += 1


def _check_readable(root: Path, copy: Path) -> None:
    shutil.copytree(root, copy)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    reading = ProcessWorker(copy)
    seen = reading("call", _read_without_rights)
    reading.end()
    reading = ProcessWorker(root)
    assert reading("call", _look) == seen
    assert reading("verify") == []
    reading("remember", "the next write")
    assert [*reading("read").values()] == ["the next write"]
    reading.end()
    for path in root.rglob("*.db"):
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_what_an_earlier_version_left_of_a_first_write_can_be_read(tmp_path: Path) -> None:
    """It turned an empty file into a database in place, with a rollback journal that only a writer can take back."""
    writing = ProcessWorker(tmp_path)
    with pytest.raises(EOFError):
        writing("call", _leave_journal, str(tmp_path / "u1" / "memory.db"))
    assert (tmp_path / "u1" / "memory.db-journal").exists()
    reading = ProcessWorker(tmp_path)
    assert reading("read") == {} and reading("verify") == []
    reading.end()


def _leave_journal(app: recollect.Recollect, memory: recollect.Memory, path: str) -> None:
    os.makedirs(os.path.dirname(path))
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("BEGIN IMMEDIATE")
    db.execute("CREATE TABLE half (made)")
    db.execute("PRAGMA cache_spill = 1")
    db.execute("PRAGMA cache_size = 1")
    for _ in range(300):
        db.execute("INSERT INTO half VALUES (zeroblob(4000))")  # until pages are written, and the journal is synced
    os.kill(os.getpid(), signal.SIGKILL)


def _look(app: recollect.Recollect, memory: recollect.Memory) -> list[Any]:
    found = [hit.record.content for hit in memory.search("tea")]
    return [[r.content for r in memory.read()], found, memory.context(), [*app.users()]]


def _read_without_rights(app: recollect.Recollect, memory: recollect.Memory) -> list[Any]:
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    return _look(app, memory)


def _count_steps(app: recollect.Recollect, memory: recollect.Memory) -> int:
    return _write_counting(app, memory, 0)


def _die_at(app: recollect.Recollect, memory: recollect.Memory, step: int) -> None:
    _write_counting(app, memory, step)


def _write_counting(app: recollect.Recollect, memory: recollect.Memory, last: int) -> int:
    """The first write, with a kill before whatever changes a file: each call of the system's, each statement."""
    count = 0
    root = str(app.config.memory_dir)

    def reach(*_: object) -> None:
        nonlocal count
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in _CHANGES and root in str(args[0]):
            reach()

    connect = sqlite3.connect

    def connect_traced(*args: Any, **options: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*args, **options)
        if ".new?" not in str(args[0]):  # what is made aside is not there yet, however far it is
            db.set_trace_callback(reach)
        return db

    sqlite3.connect = connect_traced  # type: ignore[assignment]
    sys.addaudithook(hook)
    memory.remember("Likes tea")
    app.close()
    if last:
        os.kill(os.getpid(), signal.SIGKILL)  # fewer steps this time
    return count
