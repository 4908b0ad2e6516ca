"""A user who was erased does not come back: not from files that another process left, nor from a backup of them.

And every entry point reads the same settings, so that none leaves files behind that another one reads.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

import recollect
from recollect.surfaces.cli.session import CliSession
from tests.program import ProgramProcess, run_separately

SECRET = "Allergic to penicillin"


def _run(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return run_separately(*args, text=True, env=_environment(environ))


def _environment(given: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")} | given


def test_a_user_erased_without_files_does_not_come_back_from_them(tmp_path: Path, postgres_url: str) -> None:
    with recollect.open(postgres_url, files=tmp_path) as app:
        app.user("u1").remember(SECRET)
        app.user("u1").jot(SECRET)
        kept = next(tmp_path.rglob("MEMORY.md"))
    with recollect.open(postgres_url) as app:
        receipt = app.erase_user("u1")
        assert "files" not in receipt.places  # the receipt does not claim what was not done
        assert any(place.startswith("files left") for place in receipt.places)
    assert SECRET in kept.read_text("utf-8")
    with recollect.open(postgres_url, files=tmp_path) as app:
        memory = app.user("u1")
        assert not memory.exists
        assert memory.read() == [] and SECRET not in memory.show()
        outcome = memory.remember("Likes tea")
        assert [record.text for record in memory.read()] == ["Likes tea"]
        assert any("older than the erasure" in notice for notice in outcome.notices)
        assert SECRET not in memory.show() and "Likes tea" in memory.show()
        assert SECRET in kept.read_text("utf-8")  # it was not ours to change
        assert not memory.search("penicillin")
        kept.unlink()
        memory.remember("Likes jazz")
        assert SECRET not in kept.read_text("utf-8") and "Likes tea" in kept.read_text("utf-8")


def test_a_user_erased_from_a_folder_does_not_come_back_from_a_backup(tmp_path: Path) -> None:
    root, backup = tmp_path / "root", tmp_path / "backup"
    with recollect.open(root) as app:
        app.user("u1").remember(SECRET)
        app.user("u1").jot(SECRET)
    shutil.copytree(root / "u1", backup)
    for database in backup.glob("*.db*"):
        database.unlink()
    with recollect.open(root) as app:
        app.erase_user("u1")
    shutil.copytree(backup, root / "u1")  # keeps the times, as rsync, tar and most backups do
    with recollect.open(root) as app:
        memory = app.user("u1")
        assert memory.read() == [] and SECRET not in memory.show()
        memory.remember("Likes tea")
        assert [record.text for record in memory.read()] == ["Likes tea"]
        (root / "u1" / "MEMORY.md").touch()  # the person wants it back
        assert {record.text for record in memory.read(kind="fact")} == {"Likes tea", SECRET}


def test_a_new_user_of_the_same_name_is_as_any_other(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        app.user("u1").remember(SECRET)
        app.erase_user("u1")
        memory = app.user("u1")
        memory.remember("Likes tea")
        path = tmp_path / "u1" / "MEMORY.md"
        path.write_text(path.read_text("utf-8") + "- Likes jazz\n", "utf-8")
        assert {record.text for record in memory.read()} == {"Likes tea", "Likes jazz"}
        assert memory.verify() == []
    assert b"u1" not in (tmp_path / "identities.db").read_bytes()


@pytest.mark.parametrize(
    ("environ", "files"),
    [
        ({}, None),
        ({"MEMORY_DIR": "env"}, "env"),
        ({"MEMORY_FILES": "true"}, "data/memory"),
        ({"MEMORY_FILES": "false", "MEMORY_DIR": "env"}, None),
        ({"MEMORY_FILES": "true", "MEMORY_DIR": "env"}, "env"),
    ],
)
@pytest.mark.parametrize("named", ["open", "environment", "--root", "--database-url"])
def test_every_entry_point_reads_the_same_settings(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], files: str | None, named: str
) -> None:
    for name in ("MEMORY_DIR", "MEMORY_FILES", "MEMORY_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    url = "postgresql://nobody@localhost:1/none"  # nothing connects before something is stored
    if named == "environment":
        monkeypatch.setenv("MEMORY_DATABASE_URL", url)
    if named == "open":
        app = recollect.open(url)
    elif named == "environment":
        app = recollect.open()
    else:  # what serve does with --database-url, and every command with --root
        app = CliSession(user="me", root=url, files=None, json=False).recollect
    with app:
        assert app.config.database_url == url
        assert app._folder == (None if files is None else Path(files).absolute())
        assert app.config.files is (files is not None)


def test_files_named_beside_a_folder_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(recollect.InvalidInputError, match="PostgreSQL"):
        recollect.open(tmp_path, files=tmp_path / "files")


def test_every_command_opens_what_the_session_says() -> None:
    """No entry point reads the settings on its own."""
    source = Path(recollect.__file__).parent
    allowed = {"app.py", "config.py", "surfaces/cli/session.py"}
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if "Config.load(" in path.read_text("utf-8") and "testing" not in path.parts
    }
    assert found <= allowed


@pytest.mark.slow
def test_serve_honours_the_files_of_the_environment(tmp_path: Path, postgres_url: str) -> None:
    environ = {"MEMORY_DIR": str(tmp_path), "MEMORY_FILES": "true", "HOME": str(tmp_path)}
    written = _run("remember", SECRET, "--user", "u1", "--root", postgres_url, "--json", **environ)
    assert json.loads(written.stdout)["done"], written.stderr
    assert SECRET in next(tmp_path.rglob("MEMORY.md")).read_text("utf-8")
    command = ["serve", "--database-url", postgres_url, "--port", "0", "--workers", "0"]
    with ProgramProcess(*command, stderr=subprocess.PIPE, text=True, env=_environment(environ)) as server:
        try:
            assert server.stderr is not None
            address = next(found[0] for line in server.stderr if (found := re.search(r"http://\S+/v1", line)))
            answer = httpx.delete(f"{address}/users/u1", timeout=60)
            assert answer.status_code == 200, answer.text
            assert '"files"' in answer.text
        finally:
            server.terminate()
    assert list(tmp_path.rglob("MEMORY.md")) == []
    again = _run("read", "--user", "u1", "--root", postgres_url, "--json", **environ)
    assert SECRET not in again.stdout


def test_files_follow_what_a_process_without_files_erased_forgot_and_changed(tmp_path: Path, postgres_url: str) -> None:
    with recollect.open(postgres_url, files=tmp_path) as keeps, recollect.open(postgres_url) as bare:
        person, other = keeps.user("u1"), bare.user("u1")
        person.remember("Likes mathematics")
        person.remember("Engineer", key="role")
        person.remember("Owns a boat")
        person.jot("Read about mathematics")
        file = tmp_path / "u1" / "MEMORY.md"
        file.write_text(file.read_text(encoding="utf-8") + "\n<!-- mine -->\n", encoding="utf-8")
        person.read()
        other.erase_topic("mathematics")
        other.update("role", "Pilot")
        other.remember("Has a dog")
        assert {fact.text for fact in person.read(kind="fact")} == {"role: Pilot", "Owns a boat", "Has a dog"}
        text = file.read_text(encoding="utf-8")
        assert "mathematics" not in text and "Pilot" in text and "Has a dog" in text and "<!-- mine -->" in text
        assert all("mathematics" not in note.read_text(encoding="utf-8") for note in (tmp_path / "u1").rglob("*.md"))
        assert person.show() == text and person.verify() == []
