"""Full disks, read-only folders, servers that go away, damaged databases, others in the way: what fails says so in
one clear line, what was acknowledged stays, and what can be had goes on.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Fact, Memory, NotFoundError, Record, Refused, Updated, Written
from recollect.errors import (
    NothingToRebuildError,
    StoreBusyError,
    StoreCorruptError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from recollect.memory.files import disk as files_module
from recollect.testing import FrozenClock
from recollect.testing.postgres import PostgresServer
from recollect.times import utc_now
from tests.durability_worker import Spawner, lines_of, open_memory
from tests.volume import seeds


@pytest.fixture(scope="module")
def spawner() -> Iterator[Spawner]:
    with Spawner() as spawner:
        yield spawner


def written(outcome: recollect.Outcome) -> Record:
    assert isinstance(outcome, Written), outcome
    return outcome.record


def check_agreement(memory: Memory, folder: Path) -> None:
    """Database, journal and files say the same, and nothing is left lying about."""
    assert memory.verify() == []
    facts = {r.content for r in memory.read(kind="fact") if isinstance(r, Fact) and r.tier == "file"}
    shown = list(lines_of((folder / "MEMORY.md").read_text(encoding="utf-8")))
    assert len(shown) == len(facts) and {line.rpartition(": ")[2] for line in shown} == facts
    assert not list(folder.rglob("*.new"))


# a full disk


@contextmanager
def small_disk(size: str) -> Iterator[Path | None]:
    """A file system of its own, so small that it is soon full; None if this user may not mount one."""
    folder = Path(tempfile.mkdtemp(prefix="recollect-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = shutil.which("mount") is not None and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


def test_F8_a_full_disk_is_told_and_loses_nothing(spawner: Spawner, tmp_path: Path) -> None:
    with small_disk("2m") as disk:
        if disk is None:
            return _check_limited_files(spawner, tmp_path)
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(400_000))
        with recollect.open(disk) as app:
            memory, acknowledged = app.user("u1"), {}
            with pytest.raises(StoreFullError, match="disk is full") as told:
                for number in range(5000):
                    text = f"{number} {number * 7919 % 10007} tea"
                    if number % 3 == 0:
                        outcome = memory.remember(text)
                    else:
                        outcome = memory.jot(text) if number % 3 == 1 else memory.note(text + "x" * 3000)
                    acknowledged[written(outcome).id] = text
            assert "sqlite" not in str(told.value).lower() and "\n" not in str(told.value)
            assert len(acknowledged) > 20
            with pytest.raises(StoreFullError):
                memory.jot("more " * 40)
            with pytest.raises(StoreFullError):
                memory.note("n" * 90_000)
            newcomer = app.user("newcomer")
            with pytest.raises(StoreFullError):
                for number in range(1000):
                    newcomer.note(f"{number} {'y' * 5000}")
            with recollect.open(disk) as other:  # also for someone who comes only now
                for reader in (memory, other.user("u1")):
                    found = {record.id: record.content for record in reader.read()}
                    assert set(found) == set(acknowledged)
                    assert all(found[i].startswith(text) for i, text in acknowledged.items())
                    assert reader.verify() == []
            text = memory.show()
            assert text.startswith("# User Memory") and text.endswith("\n")
            ballast.unlink()
            memory.remember("There is room again")
            memory.jot("Room in the daily note too")
            assert isinstance(newcomer.remember("Comes in at last"), Written)
            assert len(memory.read()) == len(acknowledged) + 2
            check_agreement(memory, disk / "u1")
            check_agreement(newcomer, disk / "newcomer")
    return None


def _check_limited_files(spawner: Spawner, root: Path) -> None:
    """Without a disk of one's own: files that may not grow."""
    lines = spawner.start("fill", root=root, limit=300_000).rest()
    [(kind, message)] = [line["full"] for line in lines if "full" in line]
    assert kind in ("StoreFullError", "StoreError") and "\n" not in message
    with recollect.open(root) as app:
        memory = app.user("u1")
        assert {line["ack"] for line in lines if "ack" in line} == {record.id for record in memory.read()}
        memory.remember("There is room again")
        check_agreement(memory, root / "u1")


def test_F8_where_no_disk_can_be_mounted_files_that_may_not_grow_lose_nothing(spawner: Spawner, tmp_path: Path) -> None:
    _check_limited_files(spawner, tmp_path)


@pytest.mark.parametrize("after", [0, 10])
@pytest.mark.parametrize("verb", ["remember", "jot", "import"])
def test_F8_no_space_for_the_file_written_aside_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, after: int
) -> None:
    with recollect.open(tmp_path, clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.remember("Likes tea")
        memory.jot("Read 6 posts")
        archive = memory.export(f"{tmp_path}.zip")
        do: dict[str, Callable[[], object]] = {
            "remember": lambda: memory.remember("Likes coffee"),
            "jot": lambda: memory.jot("Read 7 posts"),
            "import": lambda: app.user("u2").import_(archive),
        }
        before = (memory.read(), memory.show(), memory.daily(), memory.history())

        def write(fd: int, data: bytes) -> int:
            if after and len(data) > after:
                return real(fd, data[:after])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        real = os.write
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", write)
            with pytest.raises(StoreFullError):
                do[verb]()
        assert (memory.read(), memory.show(), memory.daily(), memory.history()) == before
        assert app.user("u2").read() == []
        do[verb]()
        check_agreement(memory, tmp_path / "u1")
        if verb == "import":
            assert app.user("u2").read() == memory.read()
            check_agreement(app.user("u2"), tmp_path / "u2")


# a folder that cannot be written to


@pytest.fixture
def public(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder that everybody can reach, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="recollect-public-"))
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(folder)


def _fill_and_close(root: Path) -> None:
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.remember("Likes tea")
        memory.remember("Engineer", key="role")
        memory.jot("Read 6 posts")
    for path in [root, *root.rglob("*")]:  # as an operator who lets another account read it
        path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))


def _forbid(root: Path) -> None:
    for path in [*root.rglob("*"), root]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def _check_read_only(first: dict[str, Any], refusals: list[list[str]], root: Path) -> None:
    assert first["read"] == ["Likes tea", "Read 6 posts", "role: Engineer"]
    assert first["search"] == ["Likes tea"] and "You asked to remember it" in first["why"]
    assert "- Likes tea" in first["show"] and "- Read 6 posts" in first["daily"] and first["history"] == 3
    assert first["verify"] == [] and first["users"] == ["u1"]
    assert len(refusals) == 6
    for kind, message in refusals:
        assert kind == "StoreReadOnlyError" and "\n" not in message and str(root) in message, (kind, message)


def _contents(root: Path) -> dict[str, bytes]:
    shared = ("memory.db-shm", "recollect.db-shm")  # who reads is written down there
    return {str(p): p.read_bytes() for p in root.rglob("*") if p.is_file() and p.name not in shared}


@pytest.mark.parametrize("left_by_a_killed_process", [False, True])
def test_a_read_only_folder_can_be_read_and_says_that_it_cannot_be_written(
    spawner: Spawner, public: Path, left_by_a_killed_process: bool
) -> None:
    root = public / "memory"
    if left_by_a_killed_process:
        with recollect.open(public / "original", clock=FrozenClock()) as app:
            memory = app.user("u1")
            memory.remember("Likes tea")
            memory.remember("Engineer", key="role")
            memory.jot("Read 6 posts")
            shutil.copytree(public / "original", root)  # with the log that nobody has put into the database
        assert (root / "u1" / "memory.db-wal").stat().st_size > 0
    else:
        _fill_and_close(root)
    _forbid(root)
    before = _contents(root)
    lines = spawner.start("read_without_rights", root=root).rest()
    [first] = [line["first"] for line in lines if "first" in line]
    _check_read_only(first, [line["refused"] for line in lines if "refused" in line], root)
    assert [line["second"] for line in lines if "second" in line] == [first]
    assert _contents(root) == before


def test_a_reader_without_rights_sees_what_a_writer_does_meanwhile(spawner: Spawner, public: Path) -> None:
    root, fifo = public / "memory", public / "go"
    os.mkfifo(fifo, 0o644)
    _fill_and_close(root)
    if os.getuid() != 0:
        _forbid(root)
    worker = spawner.start("read_without_rights", root=root, fifo=fifo)
    worker.until("tried")
    for path in [root, *root.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    with recollect.open(root, clock=FrozenClock()) as app:
        for number in range(50):
            app.user("u1").note(f"Another thing, the {number}th, {number * 7919}")
        if os.getuid() != 0:
            _forbid(root)
        with open(fifo, "wb"):
            pass
        second = worker.until("second")["second"]
    assert len(second["read"]) == 53 and second["verify"] == []


def test_a_read_only_file_system_can_be_read(spawner: Spawner, public: Path) -> None:
    with small_disk("4m") as disk:
        root = (public if disk is None else disk) / "memory"
        _fill_and_close(root)
        if disk is None:
            _forbid(root)
        else:
            disk.chmod(0o755)
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        lines = spawner.start("read_without_rights", root=root).rest()
        [first] = [line["first"] for line in lines if "first" in line]
        _check_read_only(first, [line["refused"] for line in lines if "refused" in line], root)
        if disk is not None:
            with recollect.open(root, clock=FrozenClock()) as app:  # even root cannot write here
                assert len(app.user("u1").read()) == 3
                with pytest.raises(StoreReadOnlyError, match="memory/u1"):
                    app.user("u1").remember("Likes coffee")


# a server that goes away


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresServer]:
    """A server that may be stopped."""
    with PostgresServer() as server:
        yield server


@pytest.mark.everyday(1)
@pytest.mark.parametrize("with_files", [False, True])
@pytest.mark.parametrize("immediate", [True, False])
def test_F8_a_server_that_stops_and_starts_loses_nothing(
    mortal: PostgresServer, tmp_path: Path, with_files: bool, immediate: bool
) -> None:
    with recollect.open(mortal.empty_url(), files=tmp_path if with_files else None) as app:
        acknowledged: dict[int, list[str]] = {n: [] for n in range(4)}
        failures: list[BaseException] = []
        failed = [threading.Event() for _ in range(4)]
        done = threading.Event()

        def work(n: int) -> None:
            memory, number = app.user(f"u{n % 2}"), 0
            while not done.is_set():
                number += 1
                text = f"thread {n} wrote {number} and {number * 7919 % 10007}"
                try:
                    outcome = memory.jot(text) if number % 3 == 0 else memory.remember(text)
                    assert isinstance(outcome, Written), outcome
                    acknowledged[n].append(text)
                except StoreUnavailableError as error:
                    assert "\n" not in str(error)
                    failed[n].set()
                    done.wait(0.02)
                except BaseException as error:
                    failures.append(error)
                    done.set()

        def until(reached: Callable[[], bool]) -> None:
            deadline = time.monotonic() + 120
            while not reached():
                assert time.monotonic() < deadline and not failures, failures
                done.wait(0.005)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(2):
                goal = {n: len(texts) + 8 for n, texts in acknowledged.items()}
                until(lambda goal=goal: all(len(acknowledged[n]) >= goal[n] for n in goal))  # type: ignore[misc]
                for event in failed:
                    event.clear()
                mortal.stop(immediate=immediate)
                until(lambda: all(event.is_set() for event in failed))
                mortal.start()
            goal = {n: len(texts) + 5 for n, texts in acknowledged.items()}
            until(lambda: all(len(acknowledged[n]) >= goal[n] for n in goal))
        finally:
            done.set()
            for thread in threads:
                thread.join()
            mortal.start()
        assert not failures
        for user in (0, 1):
            memory = app.user(f"u{user}")
            stored = {record.content for record in memory.read()}
            assert {*acknowledged[user], *acknowledged[user + 2]} <= stored
            assert memory.verify() == []
            assert not [e for e in memory.history() if e.actor == "person" and e.source == "user_edit"]
            if with_files:
                check_agreement(memory, tmp_path / f"u{user}")


# a damaged database

Damage = Callable[[Path, random.Random], None]


def _header(path: Path, chance: random.Random) -> None:
    with path.open("r+b") as file:
        file.write(chance.randbytes(100))


def _pages(path: Path, chance: random.Random) -> None:
    pages = path.stat().st_size // 4096
    with path.open("r+b") as file:
        for page in chance.sample(range(1, pages), 12):
            file.seek(page * 4096)
            file.write(chance.randbytes(4096))


def _text(path: Path, chance: random.Random) -> None:
    """The structure stays, what is said in it does not."""
    data = bytearray(path.read_bytes())
    for mark in (b'{"label"', b'{"id":"fact', b'"created_at"', "Київ".encode()):
        start = 0
        while (start := data.find(mark, start)) >= 0:
            data[start : start + 6] = b"\xff\xfe}{\xc0\x80"
            start += 6
    path.write_bytes(data)


def _nonsense(path: Path, chance: random.Random) -> None:
    """Not even the text is damaged, only what it means."""
    path.write_bytes(path.read_bytes().replace(b'":', b'";'))


def _truncated(path: Path, chance: random.Random) -> None:
    os.truncate(path, path.stat().st_size // 2 + 1000)


def _emptied(path: Path, chance: random.Random) -> None:
    os.truncate(path, 0)


def _deleted(path: Path, chance: random.Random) -> None:
    path.unlink()


def _log(path: Path, chance: random.Random) -> None:
    path.with_name(path.name + "-wal").write_bytes(chance.randbytes(50_000))


def _first_pages(path: Path, chance: random.Random) -> None:
    with path.open("r+b") as file:
        file.seek(100)
        file.write(chance.randbytes(8 * 4096))


_DAMAGES: list[Damage] = [_header, _first_pages, _pages, _text, _nonsense, _truncated, _emptied, _deleted, _log]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few hundred records of a person who paused, and had something erased."""
    root = tmp_path_factory.mktemp("large")
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        with memory.batch() as batch:
            for number in range(150):
                batch.remember(f"Visited Київ {number} times with friend {number * 7919 % 10007}")
                batch.note(f"A longer note about {number}\n" + f"{number * 31} words " * 20)
            for number in range(40):
                batch.jot(f"Read {number} posts about {number * 7919 % 10007}")
        memory.remember("Owes money to Max", source="discussion:1")
        memory.erase(memory.search("money")[0].record.id)
        memory.pause()
    return root


@pytest.mark.everyday(2)
@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("damage", _DAMAGES, ids=lambda damage: damage.__name__.strip("_"))
def test_F9_a_damaged_database_says_so_and_is_rebuilt(large: Path, tmp_path: Path, damage: Damage, seed: int) -> None:
    root = tmp_path / "memory"
    shutil.copytree(large, root)
    with recollect.open(large, clock=FrozenClock()) as app:
        before = {
            r.content for r in app.user("u1").read() if (r.kind == "fact" and r.tier == "file") or r.kind == "daily"
        }
    damage(root / "u1" / "memory.db", random.Random(seed))
    shown = (root / "u1" / "MEMORY.md").read_bytes()
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        told = 0
        for verb in (
            lambda: memory.read(),
            lambda: memory.read(kind="daily", status="all"),
            lambda: memory.search("friend"),
            lambda: memory.show(),
            lambda: memory.history(),
            lambda: memory.verify(),
            lambda: memory.mode,
            lambda: memory.remember("Likes coffee"),
            lambda: memory.note("Another note"),
            lambda: memory.upkeep(),
            lambda: list(app.users()),
            lambda: memory.export(tmp_path / "archive.zip"),
        ):
            try:
                verb()
            except StoreCorruptError as error:
                told += 1
                assert "recollect rebuild" in str(error) and "\n" not in str(error)
        if damage in (_header, _first_pages, _text, _nonsense, _truncated, _emptied, _deleted):
            assert told > 0
        problems = memory.verify() if not told else ["something"]
        if not problems:
            # nothing that is read is damaged
            with pytest.raises(NothingToRebuildError):
                memory.rebuild()
        else:
            assert (root / "u1" / "MEMORY.md").read_bytes() == shown
            report = memory.rebuild()
            if damage is not _deleted:
                assert report.aside is not None and report.aside.exists()
                assert report.aside.name.startswith("memory.db.damaged-")
            assert memory.mode == "paused"
            assert report.restored.pop("note", 0) == 150 or report.lost
            assert report.restored == {"fact": sum("Visited" in c for c in before), "daily": 40}
            assert "Owes money" not in memory.show()
            memory.resume()
            again = memory.remember("Owes money to Max", source="discussion:1")
            assert isinstance(again, Refused) or any("erased" in line for line in report.lost)
        stored = {record.content for record in memory.read()}
        assert before <= stored
        memory.resume()
        assert isinstance(memory.remember("Learns to rebuild"), Written)
        assert memory.verify() == []
        with pytest.raises(NothingToRebuildError):
            memory.rebuild()


def test_F9_a_healthy_database_is_rebuilt_only_if_forced(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        memory.remember("Likes tea")
        memory.note("Not in the files")
        with pytest.raises(NothingToRebuildError, match="force"):
            memory.rebuild()
        assert len(memory.read()) == 2
        report = memory.rebuild(force=True)
        assert report.restored == {"fact": 1, "note": 1} and report.lost == ()
        assert [record.text for record in memory.read()] == ["Likes tea", "Not in the files"] and memory.mode == "on"


def test_R7_what_was_erased_does_not_come_back_by_a_rebuild(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app, recollect.open(tmp_path) as other:
        memory = app.user("u1")
        memory.remember("Likes tea")
        memory.remember("Owes money to Max")
        memory.erase(memory.search("money")[0].record.id)
        bystander = other.user("u1")
        assert bystander.search("tea")
        memory.rebuild(force=True)
        for someone in (memory, bystander, recollect.open(tmp_path).user("u1")):
            outcome = someone.remember("Owes money to Max", source="batch_extraction")
            assert isinstance(outcome, Refused) and outcome.reason == "erased"
        assert [record.text for record in bystander.read()] == ["Likes tea"] and bystander.verify() == []


# others in the way


def test_a_writer_that_waits_too_long_says_so_and_loses_nothing(
    spawner: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.store.sqlite.BUSY_SECONDS", 0.15)
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        memory.remember("Likes tea")
        worker = spawner.start("hold_batch", root=tmp_path, fifo=fifo)
        worker.until("open")
        with pytest.raises(StoreBusyError, match="too long; try again"):
            memory.remember("Likes coffee")
        assert [record.text for record in memory.read()] == ["Likes tea"]  # reading never waits
        with open(fifo, "wb"):
            pass
        worker.until("done")
        memory.remember("Likes coffee")
        assert {r.text for r in memory.read()} == {"Likes tea", "Likes coffee", "Written in a long batch"}
        check_agreement(memory, tmp_path / "u1")


def _pause_before_rename(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Stop the next write of this memory where its file is written aside and not yet renamed."""
    reached, go_on = threading.Event(), threading.Event()
    files = memory._user_memory.files
    assert isinstance(files, files_module.DiskFiles)
    rename = files._rename

    def slow(*args: Any) -> None:
        reached.set()
        assert go_on.wait(120)
        rename(*args)

    monkeypatch.setattr(files, "_rename", slow)
    return reached, go_on


def test_F8_a_writer_that_gave_up_does_not_spoil_what_another_is_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recollect.open(tmp_path) as slow_app:
        slow = slow_app.user("u1")
        slow.remember("Likes tea")
        monkeypatch.setattr("recollect.store.sqlite.BUSY_SECONDS", 0.05)
        with recollect.open(tmp_path) as app:
            memory = app.user("u1")
            memory.remember("Likes coffee")
            reached, go_on = _pause_before_rename(slow, monkeypatch)
            outcomes: list[recollect.Outcome] = []
            thread = threading.Thread(target=lambda: outcomes.append(slow.remember("Likes maps")))
            thread.start()
            assert reached.wait(120)
            with pytest.raises(StoreBusyError):
                memory.remember("Likes opera")
            go_on.set()
            thread.join()
            written(outcomes[0])
            assert outcomes[0].notices == ()
            assert {record.text for record in memory.read()} == {"Likes tea", "Likes coffee", "Likes maps"}
            check_agreement(memory, tmp_path / "u1")


def test_F8_a_failing_thread_does_not_spoil_what_another_is_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        memory.remember("Likes tea")
        failing, in_the_middle, put_right = threading.Event(), threading.Event(), threading.Event()
        roll_back = memory._user_memory.cache.roll_back

        def slow_roll_back() -> None:
            failing.set()
            in_the_middle.wait(0.5)  # if nothing keeps the other thread out, it is in the middle of its write now
            roll_back()

        def work() -> None:
            assert failing.wait(120)
            with memory.batch() as batch:
                outcomes.append(batch.remember("Likes coffee"))
                in_the_middle.set()
                assert put_right.wait(120)
                outcomes.append(batch.jot("Read 6 posts"))

        outcomes: list[recollect.Outcome] = []
        thread = threading.Thread(target=work)
        thread.start()
        with monkeypatch.context() as patched:
            patched.setattr(memory._user_memory.cache, "roll_back", slow_roll_back)
            with pytest.raises(NotFoundError):
                memory.forget("nothing of that name")
        put_right.set()
        thread.join()
        assert all(isinstance(outcome, Written) for outcome in outcomes) and len(outcomes) == 2
        assert {record.text for record in memory.read()} == {"Likes tea", "Likes coffee", "Read 6 posts"}
        assert isinstance(memory.remember("Likes coffee"), recollect.Duplicate)
        check_agreement(memory, tmp_path / "u1")


def test_F8_four_processes_all_get_their_turn(spawner: Spawner, tmp_path: Path) -> None:
    workers = [spawner.start("write_notes", root=tmp_path, name=f"p{n}", number=100) for n in range(4)]
    acknowledged = [[line["ack"] for line in worker.rest(60) if "ack" in line] for worker in workers]
    assert [len(texts) for texts in acknowledged] == [100] * 4
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        assert {r.content for r in memory.read()} == {text for texts in acknowledged for text in texts}
        assert len(memory.history()) == 400 and memory.verify() == []


def test_F8_parent_and_child_of_a_fork_both_go_on(spawner: Spawner, tmp_path: Path) -> None:
    acknowledged = [line["ack"] for line in spawner.start("fork_and_write", root=tmp_path).rest() if "ack" in line]
    assert len(acknowledged) == 32
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        assert sorted(record.content for record in memory.read(kind="note")) == sorted(acknowledged)
        check_agreement(memory, tmp_path / "u1")


# a user who is erased while others have them open


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_R7_a_user_erased_by_one_process_begins_anew_in_the_other(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    url = str(request.getfixturevalue("postgres_url")) if kind == "postgres" else None
    with open_memory(tmp_path, url) as one, open_memory(tmp_path, url) as other:
        one.user("u1").remember("Owes money to Max")
        one.user("u1").remember("Likes tea")
        one.user("u1").jot("Talked about money")
        memory = other.user("u1")
        assert memory.search("money") and memory.read()
        one.erase_user("u1")
        assert memory.read() == [] and memory.search("money") == [] and not list(one.users())
        for text in ("Likes coffee", "Owes money to Max", "Likes maps"):  # the second can be said anew
            assert isinstance(memory.remember(text), Written)
            assert "Likes tea" not in (tmp_path / "u1" / "MEMORY.md").read_text()
        assert isinstance(one.user("u1").remember("Likes opera"), Written)
        for someone in (memory, one.user("u1")):
            assert len(someone.read()) == 4 and someone.search("tea") == [] and len(someone.search("money")) == 1
            check_agreement(someone, tmp_path / "u1")
        one.erase_user("u1")
        for number in range(20):  # by now the new life is longer than the old one was
            one.user("u1").remember(f"Counts to {number} and {number * 7919}")
        assert memory.search("coffee") == [] and isinstance(memory.remember("Likes maps"), Written)
        with memory.batch() as batch:
            batch.remember("Likes coffee")
            batch.forget(memory.search("maps")[0].record.id)
        (tmp_path / "u1" / "MEMORY.md").unlink()  # to be written again from what is known
        assert len(memory.read()) == 21 and "money" not in memory.show()
        check_agreement(memory, tmp_path / "u1")


def test_R7_a_user_is_erased_while_another_process_writes(spawner: Spawner, tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        worker = spawner.start("write_notes", root=tmp_path, name="w", number=100_000)
        for round_ in range(12):
            before: list[str] = []
            while len(before) < 8:
                before += [line["ack"] for line in worker.lines(20) if "ack" in line]
            app.erase_user("u1")
            worker.lines(0)  # what was said while the user was erased; from here on everything is later
            began: set[str] = set()
            after: list[str] = []
            while len(after) < 8:
                for line in worker.lines(20):
                    began |= {line["begin"]} if "begin" in line else set()
                    after += [line["ack"]] if line.get("ack") in began else []
            if round_ % 4 == 3:
                after += [line["ack"] for line in worker.kill() if line.get("ack") in began]
            memory = app.user("u1")
            stored = {record.content for record in memory.read()}
            assert set(after) <= stored and not stored & set(before)
            if worker.ended:
                check_agreement(memory, tmp_path / "u1")
                everything = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
                assert not [text for text in before if text.encode() in everything]
                worker = spawner.start("write_notes", root=tmp_path, name=f"w{round_}", number=100_000)


# clocks


def test_a_clock_that_goes_backwards_breaks_nothing(tmp_path: Path) -> None:
    clock = FrozenClock()
    with recollect.open(tmp_path, clock=clock) as app:
        memory = app.user("u1")
        memory.remember("Engineer", key="role")
        for number in range(12):
            clock.tick(hours=-1)
            assert isinstance(memory.update("role", f"Engineer of level {number}"), Updated)
            memory.jot(f"Entry {number} of {number * 7919}")
            own = written(memory.remember(f"Thing {number} of {number * 7919}"))
            memory.forget(own.id)
            memory.undo(memory.history(own.id)[-1].seq)
            memory.upkeep()
        path = tmp_path / "u1" / "MEMORY.md"
        path.write_text(path.read_text() + "- Written by hand, before it all began\n")
        clock.tick(days=-3)
        assert memory.search("hand") and memory.get("role").content == "Engineer of level 11"
        assert len(memory.read(kind="fact")) == 14 and len(memory.read(kind="daily")) == 12
        check_agreement(memory, tmp_path / "u1")


def test_processes_whose_clocks_differ_by_an_hour_break_nothing(spawner: Spawner, tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        memory.remember("The first value", key="shared")
        workers = [spawner.start("change_shared", root=tmp_path, number=30, clock_hours=h) for h in (-1, 0, 1)]
        workers.append(spawner.start("write_notes", root=tmp_path, name="w", number=40, clock_hours=1))
        acknowledged = [[line["ack"] for line in worker.rest(60) if "ack" in line] for worker in workers]
        assert [len(texts) for texts in acknowledged] == [30, 30, 30, 40]
        assert memory.get("shared").content in {texts[-1] for texts in acknowledged[:3]}
        assert len([e for e in memory.history("shared") if e.op == "update"]) == 90
        later = recollect.open(tmp_path, clock=lambda: utc_now() + timedelta(hours=2)).user("u1")
        assert set(acknowledged[3]) <= {record.content for record in later.read()}
        assert memory.verify() == []
