"""Archives, from outside: where an export may go, and what an import refuses without holding on to it."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import recollect
from recollect.agents.extract import extract
from recollect.client import connect
from recollect.errors import InvalidInputError, RecollectError, StoreFullError
from recollect.surfaces.cli import memory_commands as _whole  # noqa: F401  (adds its commands)
from recollect.surfaces.cli.program import app as cli
from recollect.testing.clock import FrozenClock
from tests.serving import serving


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[recollect.Memory]:
    with recollect.open(tmp_path / "memory", clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.remember("Likes tea")
        yield memory


# out


def _folder(path: Path) -> None:
    path.mkdir()


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _device(path: Path) -> None:
    if os.geteuid() != 0:
        path.symlink_to("/dev/null")
        return
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))  # as /dev/null is one
    except OSError:
        path.symlink_to("/dev/null")


def _link_to_device(path: Path) -> None:
    path.symlink_to("/dev/null")


@pytest.mark.parametrize("there", [_folder, _socket, _pipe, _loop, _device, _link_to_device])
def test_R8_an_export_replaces_nothing_but_a_file(
    memory: recollect.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: Callable[[Path], None]
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path = folder / "a.zip"
    there(path)
    before = path.lstat()
    with pytest.raises(InvalidInputError, match="path"):
        memory.export(path)
    result = CliRunner().invoke(cli, ["export", str(path), "--yes", "--user", "u1", "--root", str(tmp_path / "memory")])
    assert result.exit_code == 2, result.output
    after = path.lstat()
    assert (after.st_ino, after.st_mode, after.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)
    assert list(folder.iterdir()) == [path], "something was left behind"
    null = os.stat("/dev/null")
    assert stat.S_ISCHR(null.st_mode)


def test_R8_an_export_goes_where_a_link_leads_and_the_link_stays(memory: recollect.Memory, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    target, link = tmp_path / "vault" / "real.zip", tmp_path / "a.zip"
    link.symlink_to(target)
    memory.export(link)  # to a target that is not there yet
    target.write_bytes(b"older")
    memory.export(link)
    assert link.is_symlink() and zipfile.is_zipfile(target) and not target.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_R8_an_export_can_be_written_into_a_pipe(memory: recollect.Memory, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    parts: list[bytes] = []
    fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # a reader is there before the export begins
    os.set_blocking(fd, True)

    def read() -> None:
        with os.fdopen(fd, "rb") as file:
            parts.append(file.read())

    writer = os.open(pipe, os.O_WRONLY)  # and does not see the end before it
    reader = threading.Thread(target=read)
    reader.start()
    memory.export(pipe)
    os.close(writer)
    reader.join(30)
    (tmp_path / "read.zip").write_bytes(parts[0])
    assert "MEMORY.md" in zipfile.ZipFile(tmp_path / "read.zip").namelist()
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_R8_a_missing_folder_is_named(memory: recollect.Memory, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"the folder .*nowhere does not exist"):
        memory.export(tmp_path / "nowhere" / "a.zip")
    (tmp_path / "file").write_text("x")
    with pytest.raises(RecollectError):
        memory.export(tmp_path / "file" / "a.zip")


def test_R8_what_was_exported_before_stays_whole_when_the_disk_is_full(
    memory: recollect.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = memory.export(tmp_path / "a.zip")
    before = path.read_bytes()
    memory.note("More " * 1000)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(StoreFullError):
        patched.setattr(os, "fsync", full)
        memory.export(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".new")] == []


def test_R8_what_lies_where_an_export_was_prepared_is_not_written_through(
    memory: recollect.Memory, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".a.zip.new").symlink_to(victim)
    memory.export(tmp_path / "a.zip")
    assert victim.read_text() == "mine" and (tmp_path / ".a.zip.new").is_symlink()


# in


def _packed(path: Path, name: str, line: bytes, size: int) -> Path:
    """An archive whose member of this name repeats a line until it has so many bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for other, text in {
            "manifest.json": json.dumps({"format": "recollect-memory", "version": 1}),
            "state.json": json.dumps(
                {"created_at": "2026-02-12T09:30:00.000000Z", "seq": 1, "mode": "on", "secret": "00"}
            ),
        }.items():
            if other != name:
                archive.writestr(other, text)
        with archive.open(name, "w", force_zip64=True) as file:
            chunk = line * max(1, (1 << 20) // len(line))
            for _ in range(0, size, len(chunk)):
                file.write(chunk)
    return path


_RECORD = json.dumps(
    {"kind": "note", "id": "note-01jcs0m3y7q8r9t0v1w2x3y4z5", "content": "x"}
    | dict.fromkeys(("created_at", "updated_at", "valid_from"), "2026-02-12T09:30:00.000000Z")
).encode()

BOMBS = {
    "endless line": ("records.jsonl", b"x"),
    "no JSON": ("records.jsonl", b"what is this\n"),
    "empty lines": ("records.jsonl", b" \n"),
    "rows": ("records.jsonl", _RECORD + b"\n"),
    "nested": ("records.jsonl", b"["),
    "manifest": ("manifest.json", b" "),
    "journal": ("journal.jsonl", b"{}\n"),
    "a file": ("MEMORY.md", b"- Likes tea\n"),
    "not ours": ("holiday.mov", b"\0"),
}

_EVERYDAY = ("rows", "endless line", "journal")

_IMPORTS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]) << 20,) * 2)
import recollect
from recollect.errors import InvalidInputError
memory, kept = recollect.open(sys.argv[1]).user("u1"), []
for number in range(8):
    try:
        memory.import_(sys.argv[2])
    except InvalidInputError as error:
        kept.append(error)  # as whoever answers it may do
assert len(kept) == 8, kept
# not ru_maxrss, which includes the process that started this one
print(int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) >> 10)
"""


@pytest.mark.everyday(1)
@pytest.mark.parametrize(
    "bomb", [pytest.param(bomb, marks=[] if bomb in _EVERYDAY else [pytest.mark.slow]) for bomb in BOMBS]
)
def test_R8_archives_that_are_refused_take_no_memory(tmp_path: Path, bomb: str) -> None:
    path = _packed(tmp_path / "bomb.zip", *BOMBS[bomb], 290 << 20)
    assert path.stat().st_size < 3 << 20
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTS, str(tmp_path / "memory"), str(path), "1500"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < 400, "megabytes at most"


@pytest.mark.slow
def test_R8_a_size_that_is_not_true_is_noticed(memory: recollect.Memory, tmp_path: Path) -> None:
    path = _packed(tmp_path / "a.zip", "records.jsonl", _RECORD + b"\n", 2 << 20)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        told = archive.getinfo("records.jsonl").file_size
    for lie in (10, told * 2):
        place = data.rfind(b"PK\x01\x02")  # the last entry of the directory
        lying = data[: place + 24] + lie.to_bytes(4, "little") + data[place + 28 :]
        path.write_bytes(lying)
        with pytest.raises(InvalidInputError, match=r"damaged|not a Recollect export"):
            memory.import_(path)
    assert len(memory.read()) == 1


@pytest.mark.parametrize("place", ["end", "directory", "cut", "half", "start"])
def test_F7_a_damaged_zip_is_refused_in_our_words(memory: recollect.Memory, tmp_path: Path, place: str) -> None:
    path = memory.export(tmp_path / "a.zip")
    data = bytearray(path.read_bytes())
    if place == "cut":
        del data[-10:]
    elif place == "half":
        del data[len(data) // 2 :]
    else:
        begin = {"end": data.rfind(b"PK\x05\x06"), "directory": data.find(b"PK\x01\x02"), "start": 0}[place]
        for number in range(22):
            data[begin + number] ^= 0xA5
    path.write_bytes(data)
    with recollect.open(tmp_path / "other") as other:
        for someone in (memory, other.user("u2")):
            with pytest.raises(InvalidInputError):
                someone.import_(path)
    assert len(memory.read()) == 1


def test_F7_every_end_record_gets_an_answer(memory: recollect.Memory, tmp_path: Path) -> None:
    path = memory.export(tmp_path / "a.zip")
    whole = path.read_bytes()
    end = whole.rfind(b"PK\x05\x06")
    for offset in range(4, 22):
        for value in (0, 1, 0x7F, 0xFF):
            path.write_bytes(whole[: end + offset] + bytes([value]) + whole[end + offset + 1 :])
            try:
                memory.import_(path, dry_run=True)
            except RecollectError as error:
                assert "path" in str(error) or "export" in str(error)


def test_F7_what_is_neither_file_nor_folder_is_not_imported(memory: recollect.Memory, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(InvalidInputError, match="neither"):
            memory.import_(path)


_OVER_HTTP = """
import resource, sys
from pathlib import Path
import httpx
import recollect
from tests.serving import serving
with recollect.open(sys.argv[1]) as app, serving(app) as url:
    for path in sys.argv[2:]:
        for number in range(8):
            headers = {"content-type": "application/octet-stream"}
            where = f"{url}/v1/users/u1/import"
            answer = httpx.post(where, params={"name": "a.zip"}, content=Path(path).read_bytes(), headers=headers)
            assert answer.status_code in (409, 413, 422), (answer.status_code, answer.text[:300])
print(int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) >> 10)
"""


@pytest.mark.slow
def test_R8_a_server_does_not_grow_with_archives_that_it_refuses(tmp_path: Path) -> None:
    paths = [
        str(_packed(tmp_path / f"{number}.zip", *BOMBS[name], 290 << 20))
        for number, name in enumerate(("rows", "no JSON"))
    ]
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", _OVER_HTTP, str(tmp_path / "memory"), *paths],
        capture_output=True, text=True, timeout=300, check=False, cwd=root,
        env=os.environ | {"PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < 500, "megabytes at most"


def test_R8_a_client_replaces_nothing_but_a_file_either(memory: recollect.Memory, tmp_path: Path) -> None:
    with recollect.open(tmp_path / "memory", clock=FrozenClock()) as app, serving(app) as url, connect(url) as client:
        remote = client.user("u1")
        for path in (Path("/dev/null"), tmp_path):
            with pytest.raises(InvalidInputError):
                remote.export(path)
        assert zipfile.is_zipfile(remote.export(tmp_path / "a.zip"))
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


# lines that a store would refuse


@pytest.fixture(params=["sqlite", "postgres"])
def new_app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[recollect.Recollect]:
    """Opens memories in a folder or in PostgreSQL."""
    url = request.getfixturevalue("postgres_tables") if request.param == "postgres" else ""
    with recollect.open(tmp_path / "new", database_url=url) as app:
        yield app


@pytest.fixture
def full_archive(tmp_path: Path) -> Path:
    """An archive with something in every member."""
    path = tmp_path / "full.zip"
    with recollect.open(tmp_path / "full", clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.remember("tea", key="drink")
        memory.update("drink", "coffee")
        memory.note("a note")
        memory.erase(memory.read(kind="note")[0].id)
        memory.search("coffee")
        memory.report("read", title="A page")
        memory.consent("trends")
        memory.say("I live in Oslo", session="s")
        extract(memory, FrozenClock()().date())
        memory.export(path)
    return path


def _changed_archive(archive: Path, member: str, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    changed = archive.with_name("changed.zip")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == member:
                rows = [json.loads(line) for line in data.splitlines()]
                assert rows
                change(rows)
                data = "\n".join(json.dumps(row) for row in rows).encode()
            new.writestr(name, data)
    return changed


@pytest.mark.parametrize("member", ["journal.jsonl", "records.jsonl", "interactions.jsonl", "runs.jsonl"])
def test_F7_an_archive_with_a_line_twice_is_refused_and_nothing_is_stored(
    new_app: recollect.Recollect, full_archive: Path, member: str
) -> None:
    changed = _changed_archive(full_archive, member, lambda rows: rows.append(rows[0]))
    memory = new_app.user("new")
    with pytest.raises(InvalidInputError, match=f"{member} repeats an earlier one"):
        memory.import_(changed)
    assert memory.read(status="all") == [] and memory.history() == []
    assert memory.import_(full_archive).written


@pytest.mark.everyday(8)
@pytest.mark.parametrize(
    ("member", "name", "value"),
    [
        ("journal.jsonl", "source", "a\0b"),
        ("journal.jsonl", "record_id", "a\0b"),
        ("records.jsonl", "content", "a\0b"),
        ("records.jsonl", "metadata", {"a": "a\0b"}),
        ("interactions.jsonl", "title", "a\0b"),
        ("runs.jsonl", "error", "a\0b"),
        ("runs.jsonl", "details", {"a\0b": 1}),
        ("tombstones.jsonl", "hash", "a\0b"),
        ("recalls.jsonl", "record_id", "a\0b"),
        ("recalls.jsonl", "record_id", None),
        ("recalls.jsonl", "record_id", 7),
    ],
)
def test_F7_an_archive_with_a_value_that_no_store_keeps_is_refused(
    new_app: recollect.Recollect, full_archive: Path, member: str, name: str, value: Any
) -> None:
    changed = _changed_archive(full_archive, member, lambda rows: rows[0].update({name: value}))
    memory = new_app.user("new")
    with pytest.raises(InvalidInputError, match="path"):
        memory.import_(changed)
    assert memory.read(status="all") == [] and memory.history() == []


def test_F7_an_archive_that_is_nested_too_deeply_is_refused(memory: recollect.Memory, full_archive: Path) -> None:
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    changed = _changed_archive(full_archive, "records.jsonl", lambda rows: rows[0].update(metadata={"a": deep}))
    with pytest.raises(InvalidInputError, match="path"):
        memory.import_(changed)
