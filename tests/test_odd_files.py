"""What a person may put where MEMORY.md or a daily note is: nothing of it hangs, crashes or leads out."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import recollect
from recollect import Memory, Written
from recollect.testing import FrozenClock

DAY = "2026-02-12"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def memory(root: Path) -> Memory:
    memory = recollect.open(root, clock=FrozenClock()).user("u1")
    memory.remember("Likes tea")
    memory.jot("Read about Rust")
    return memory


def _socket(path: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(path.parent)  # the name of a socket must be short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.fchdir(here)
        os.close(here)


def _device(path: Path) -> None:
    try:
        os.mknod(path, 0o20600, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        path.symlink_to("/dev/zero")


ODD: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "device": _device,
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "socket": _socket,
    "directory": os.mkdir,
    "loop": lambda path: path.symlink_to(path.name),
    "link into nowhere": lambda path: path.symlink_to("/nonexistent/folder/MEMORY.md"),
    "too large": lambda path: path.write_bytes(b"- a\n" * 400_000),
    "not UTF-8": lambda path: path.write_bytes(b"## Key Facts\n- \xff\xfe\n"),
    "NUL": lambda path: path.write_bytes(b"## Key Facts\n- a\0b\n"),
}


@pytest.mark.everyday(10)
@pytest.mark.parametrize("name", ["MEMORY.md", f"memory/{DAY}.md"])
@pytest.mark.parametrize("odd", list(ODD))
def test_an_odd_file_is_left_as_it_is_and_the_memory_goes_on(memory: Memory, root: Path, name: str, odd: str) -> None:
    path = root / "u1" / name
    path.unlink()
    ODD[odd](path)
    before = os.lstat(path)
    outcome = memory.remember("Likes coffee") if name == "MEMORY.md" else memory.jot("Read about maps")
    assert isinstance(outcome, Written)
    assert any("was not changed" in notice for notice in outcome.notices), outcome.notices
    again = recollect.open(root, clock=FrozenClock()).user("u1")
    for reader in (memory, again):
        texts = {record.text for record in reader.read()} | {record.text for record in reader.read(kind="daily")}
        assert {"Likes tea", "Read about Rust"} < texts
        assert reader.search("Rust") and reader.verify()
        reader.show(), reader.daily(DAY), reader.notices()
        reader.export(root.parent / f"{len(list(root.parent.iterdir()))}.zip")
    after = os.lstat(path)
    assert (before.st_ino, before.st_mode, before.st_size) == (after.st_ino, after.st_mode, after.st_size)
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()
    memory.remember("Likes milk")
    memory.jot("Read about opera")
    assert sorted(record.text for record in memory.read(kind="fact"))[-2:] == ["Likes milk", "Likes tea"]
    assert memory.verify() == [] and path.is_file()


@pytest.mark.parametrize("name", ["MEMORY.md", f"memory/{DAY}.md"])
def test_a_link_is_written_through_to_its_target(memory: Memory, root: Path, tmp_path: Path, name: str) -> None:
    path, vault = root / "u1" / name, tmp_path / "vault"
    vault.mkdir()
    shutil.move(path, vault / "me.md")
    path.symlink_to(vault / "me.md")
    memory.remember("Likes coffee")
    memory.jot("Read about maps")
    line = "Likes coffee" if name == "MEMORY.md" else "Read about maps"
    assert path.is_symlink() and line in (vault / "me.md").read_text()
    (vault / "me.md").write_text((vault / "me.md").read_text() + "- Typed in the vault\n")
    texts = {record.text for record in memory.read(kind="fact")} | {record.text for record in memory.read(kind="daily")}
    assert "Typed in the vault" in texts
    memory.verify()
    assert [file.name for file in vault.iterdir()] == ["me.md"] and memory.verify() == []


def test_a_link_to_a_file_that_is_yet_to_be_is_filled(root: Path, tmp_path: Path) -> None:
    (root / "u1").mkdir(parents=True)
    (tmp_path / "vault").mkdir()
    (root / "u1" / "MEMORY.md").symlink_to(tmp_path / "vault" / "me.md")
    (root / "u1" / "memory").symlink_to(tmp_path / "vault")
    memory = recollect.open(root, clock=FrozenClock()).user("u1")
    memory.remember("Likes tea")
    memory.jot("Read about Rust")
    assert "Likes tea" in (tmp_path / "vault" / "me.md").read_text()
    assert "Rust" in (tmp_path / "vault" / f"{DAY}.md").read_text() and memory.verify() == []


@pytest.mark.parametrize("beside", [".MEMORY.md.new", ".MEMORY.md.old"])
@pytest.mark.parametrize("odd", ["link", "fifo", "directory"])
def test_a_file_written_aside_is_never_followed_out(
    memory: Memory, root: Path, tmp_path: Path, beside: str, odd: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    made = {"link": lambda path: path.symlink_to(victim), "fifo": os.mkfifo, "directory": os.mkdir}
    made[odd](root / "u1" / beside)
    assert isinstance(memory.remember("Likes coffee"), Written)
    again = recollect.open(root, clock=FrozenClock()).user("u1")
    again.remember("Likes milk")
    assert victim.read_text() == "precious" and victim.stat().st_nlink == 1
    assert "Likes milk" in (root / "u1" / "MEMORY.md").read_text() and again.verify() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_a_link_to_a_file_of_another_owner_is_not_followed(memory: Memory, root: Path, tmp_path: Path) -> None:
    path, theirs = root / "u1" / "MEMORY.md", tmp_path / "theirs.md"
    theirs.write_text("## Key Facts\n- Theirs alone\n")
    os.chown(theirs, 1234, 1234)
    path.unlink()
    path.symlink_to(theirs)
    outcome = memory.remember("Likes coffee")
    assert any("another owner" in notice for notice in outcome.notices)
    assert theirs.read_text() == "## Key Facts\n- Theirs alone\n"
    assert "Theirs alone" not in {record.text for record in memory.read()} and "Theirs alone" not in memory.show()


def test_a_second_name_of_the_file_keeps_its_text_and_the_file_goes_on(memory: Memory, root: Path) -> None:
    path, twin = root / "u1" / "MEMORY.md", root / "u1" / "twin.md"
    os.link(path, twin)
    before = twin.read_bytes()
    memory.remember("Likes coffee")
    assert twin.read_bytes() == before and "Likes coffee" in path.read_text() and memory.verify() == []


def test_a_folder_of_notes_that_is_a_file_is_left_as_it_is(memory: Memory, root: Path) -> None:
    shutil.rmtree(root / "u1" / "memory")
    (root / "u1" / "memory").write_text("mine")
    outcome = memory.jot("Read about maps")
    assert isinstance(outcome, Written) and any("was not changed" in notice for notice in outcome.notices)
    assert "Read about maps" in {record.text for record in memory.read(kind="daily")}
    assert (root / "u1" / "memory").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="needs another user")
def test_a_file_that_may_not_be_read_is_left_as_it_is(memory: Memory, root: Path, tmp_path: Path) -> None:
    path = root / "u1" / "MEMORY.md"
    os.chown(path, 0, 0)
    path.chmod(0)
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == 0 and not folder.stat().st_mode & 1:
            folder.chmod(folder.stat().st_mode | 0o11)
    for file in [root, *root.rglob("*")]:
        if file != path:
            os.chown(file, 4321, 4321)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgid(4321)
            os.setuid(4321)
            outcome = recollect.open(root, clock=FrozenClock()).user("u1").remember("Likes coffee")
            code = 0 if any("was not changed" in notice for notice in outcome.notices) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    path.chmod(0o644)
    assert "Likes coffee" in {record.text for record in memory.read()}


@pytest.mark.parametrize("odd", list(ODD))
def test_importing_a_folder_with_odd_files_takes_the_rest(root: Path, tmp_path: Path, odd: str) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("## Key Facts\n- Likes tea\n")
    ODD[odd](folder / "odd.md")
    memory = recollect.open(root).user("u1")
    memory.import_(folder)
    assert "Likes tea" in {record.text for record in memory.read()}


@pytest.mark.parametrize("odd", ["fifo", "device", "socket", "loop", "link into nowhere"])
@pytest.mark.parametrize("name", ["a.zip", "a.md", "a.json"])
def test_importing_an_odd_file_is_one_of_our_errors(root: Path, tmp_path: Path, odd: str, name: str) -> None:
    ODD[odd](tmp_path / name)
    with pytest.raises(recollect.RecollectError):
        recollect.open(root).user("u1").import_(tmp_path / name)
