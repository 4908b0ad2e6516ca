"""Promises as somebody outside would try them: what goes wrong is said plainly, and nothing is lost, replaced or left."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import recollect
from recollect.client import connect
from recollect.errors import InvalidInputError
from recollect.records import FILES_LEFT, Receipt
from recollect.store.sqlite import SqliteStore
from recollect.work.contract import Task
from recollect.work.deferred_calls import TOOL
from tests.command_line import app as app
from tests.command_line import program
from tests.command_line import root as root
from tests.serving import serving


@pytest.fixture
def memory(app: recollect.Recollect) -> recollect.Memory:
    memory = app.user("me")
    memory.remember("Likes tea")
    return memory


def cli(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(program, list(args))
    assert result.exit_code == code, f"{args}: {result.exit_code}\n{result.stdout}\n{result.stderr}"
    return result


# where a memory is


@pytest.mark.parametrize("how", ["argument", "setting", "environment", "store"])
def test_a_memory_stays_where_it_was_opened_when_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.chdir(first)
    if how == "environment":
        monkeypatch.setenv("MEMORY_DIR", "mem")
    where: dict[str, Callable[[], recollect.Recollect]] = {
        "argument": lambda: recollect.open("mem"),
        "setting": lambda: recollect.open(memory_dir=Path("mem")),
        "environment": recollect.open,
        "store": lambda: recollect.open(SqliteStore(Path("mem")), files="mem"),
    }
    with where[how]() as app:
        app.user("me").remember("Likes tea")
        monkeypatch.chdir(second)
        app.user("me").remember("Likes maps")
        app.user("you").remember("Likes bells")
        app.identities.resolve(("telegram", "1"))
        with app.queue() as queue:
            queue.metrics(None)
        assert {one.text for one in app.user("me").read()} == {"Likes tea", "Likes maps"}
    assert list(second.iterdir()) == []
    assert "Likes maps" in (first / "mem" / "me" / "MEMORY.md").read_text("utf-8")
    assert (first / "mem" / "you").is_dir()


# where an export may go


OWN = ["me/memory.db", "me/MEMORY.md", "me/.lock", "recollect.db", "new.zip", "me/new.zip", "me/../new.zip"]


@pytest.mark.everyday(8)
@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("reached", ["directly", "through a linked folder", "by a link"])
def test_an_export_never_replaces_a_file_of_the_memory(
    memory: recollect.Memory, root: Path, tmp_path: Path, name: str, reached: str
) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and "memory.db" not in path.name}
    target = root / name
    if reached == "through a linked folder":
        (tmp_path / "link").symlink_to(root)
        target = tmp_path / "link" / name
    elif reached == "by a link":
        target = tmp_path / "out.zip"
        target.symlink_to(root / name)
    with pytest.raises(InvalidInputError, match="inside the memory's own folder; choose another path"):
        memory.export(target)
    told = cli("export", str(target), "--yes", "--root", str(root), code=2).stderr
    assert "inside the memory's own folder" in " ".join(told.split())
    after = {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and "memory.db" not in path.name}
    assert after == before
    assert memory.verify() == [] and [one.text for one in memory.read()] == ["Likes tea"]


def test_an_export_does_not_replace_files_beside_a_store_of_ones_own(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data")
    with recollect.open(store, files=tmp_path / "notes") as app:
        app.user("me").remember("Likes tea")
        for place in ("data/x.zip", "notes/me/MEMORY.md"):
            with pytest.raises(InvalidInputError, match="inside the memory's own folder"):
                app.user("me").export(tmp_path / place)
        assert zipfile.is_zipfile(app.user("me").export(tmp_path / "x.zip"))


def test_an_export_goes_to_standard_output(
    memory: recollect.Memory, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    archive = tmp_path / "a.zip"
    archive.write_bytes(cli("export", "-", "--root", str(root)).stdout_bytes)
    assert not (tmp_path / "-").exists()
    with recollect.open(tmp_path / "other") as other:
        assert other.user("me").import_(archive).written == 1
    assert "standard output" in cli("export", "-", "--json", "--root", str(root), code=2).stderr


def test_an_export_into_a_pipe_tells_no_size_that_it_cannot_know(
    memory: recollect.Memory, root: Path, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        told = cli("export", str(pipe), "--yes", "--root", str(root)).stdout
    finally:
        os.close(reader)
    assert told == f"{pipe}: 1 fact\n"


# what an import refuses


def _zip64(path: Path, archive: Path) -> None:
    path.write_bytes(b"PK\x06\x06" + b"\xff" * 52 + b"PK\x06\x07" + b"\xff" * 16 + b"PK\x05\x06" + b"\xff" * 18)


def _garbage_before_zip64(path: Path, archive: Path) -> None:
    _zip64(path, archive)
    path.write_bytes(b"hello" + path.read_bytes())


def _rewritten(old: bytes, new: bytes) -> Callable[[Path, Path], None]:
    def write(path: Path, archive: Path) -> None:
        with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(path, "w") as changed:
            for name in whole.namelist():
                changed.writestr(name, whole.read(name).replace(old, new))

    return write


def _without_manifest(path: Path, archive: Path) -> None:
    with zipfile.ZipFile(path, "w") as empty:
        empty.writestr("other.txt", "x")


BROKEN: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
    "zip64": ("a.zip", _zip64),
    "zip64 later": ("a.zip", _garbage_before_zip64),
    "half a character": ("a.zip", _rewritten(b"Likes tea", b"\\ud800 tea")),
    "half a character, large": ("a.zip", _rewritten(b"Likes tea", b"\\uD800 tea")),
    "no manifest": ("a.zip", _without_manifest),
    "deep archive": ("a.zip", _rewritten(b'"Likes tea"', b"[" * 100_000)),
    "deep json": ("a.json", lambda path, _: path.write_text("[" * 100_000)),
    "deep jsonl": ("a.jsonl", lambda path, _: path.write_text('{"type":' * 50_000)),
}


@pytest.mark.everyday(3)
@pytest.mark.parametrize("kind", list(BROKEN))
def test_a_broken_import_is_refused_in_plain_words_and_leaves_nothing(
    memory: recollect.Memory, app: recollect.Recollect, root: Path, tmp_path: Path, kind: str
) -> None:
    archive = memory.export(tmp_path / "good.zip")
    name, write = BROKEN[kind]
    path = tmp_path / name
    write(path, archive)
    for user in ("new", "me"):
        with pytest.raises(InvalidInputError) as refused:
            app.user(user).import_(path)
        told = cli("import", str(path), "--yes", "--root", str(root), "--user", user, code=2).stderr
        for words in (str(refused.value), told):
            assert not any(sign in words for sign in ("Error(", "Traceback", "KeyError", "codec")), words
    assert not app.user("new").exists
    assert [one.text for one in memory.read()] == ["Likes tea"] and memory.verify() == []
    with serving(app) as url, connect(url) as client, pytest.raises(InvalidInputError):
        client.user("new").import_(path)


def test_a_path_that_no_file_can_have_is_refused(app: recollect.Recollect, root: Path) -> None:
    with serving(app) as url, connect(url) as client:
        for user in (app.user("new"), client.user("new")):
            for path in ("a" * 400, "", "no/such/file"):
                with pytest.raises(InvalidInputError, match="path"):
                    user.import_(path)
    assert not app.user("new").exists
    for path in ("a" * 400, ""):
        cli("import", path, "--root", str(root), code=2)


def test_a_row_that_is_not_as_expected_is_told_in_plain_words(app: recollect.Recollect, tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    path.write_text(json.dumps({"type": "entity"}) + "\n", encoding="utf-8")
    (skipped,) = app.user("me").import_(path).skipped
    assert skipped == "memory.jsonl line 1: a field is missing or has the wrong type"


# what was erased is not learned again


SAID = "Ich habe eine Depression"
ENTRY: dict[str, Any] = {"key": "health", "value": SAID, "category": "personal_context", "durability": "durable"}
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("entries", "write_memory", ENTRY),
    ("entries", "write_memory", ENTRY | {"key": "other", "source": "discussion:42"}),
    ("entries", "update_memory", {"key": "health", "value": SAID, "category": "personal_context"}),
    ("facts", "remember_fact", {"fact_type": "personal", "fact_key": "x", "fact_value": SAID, "confidence": 0.9}),
    ("notes", "memory_save", {"content": SAID}),
    ("observations", "remember_observation", {"content": SAID, "category": "insight"}),
]


@pytest.mark.everyday(12)
@pytest.mark.parametrize("how", ["erase_topic", "erase"])
@pytest.mark.parametrize("key", [None, "health", "illness"])
@pytest.mark.parametrize(("suite", "tool", "arguments"), CALLS)
def test_what_was_erased_is_not_stored_again_by_an_agent_with_or_without_a_key(
    app: recollect.Recollect, how: str, key: str | None, suite: str, tool: str, arguments: dict[str, object]
) -> None:
    memory = app.user("1")
    memory.remember("Likes tea")
    memory.remember(SAID, key=key)
    if how == "erase":
        memory.erase(next(one.id for one in memory.read() if "Depression" in one.text))
    else:
        memory.erase_topic("Depression")
    app.tools("1", suite).call(tool, arguments)
    assert [one.text for one in memory.read()] == ["Likes tea"]
    assert memory.remember(SAID, key=key).done  # the person may say it again
    assert memory.verify() == []


def test_a_single_word_is_another_statement_under_another_key(app: recollect.Recollect) -> None:
    memory = app.user("1")
    memory.remember("no", key="pets")
    memory.erase("pets")
    agent = memory.acting("agent")
    assert not agent.remember("no", key="pets", source="discussion:1").done
    assert agent.remember("no", key="children", source="discussion:1").done


# nothing is left


@pytest.mark.parametrize("how", ["clear", "clear in a batch", "erase_topic", "erase_topic in a batch", "erase_user"])
def test_a_tool_call_just_before_an_erasure_is_not_logged_after_it(
    app: recollect.Recollect, root: Path, how: str
) -> None:
    memory = app.user("me")
    memory.remember("Likes tea")
    fact = {"fact_type": "personal", "fact_key": "city", "fact_value": "Lviv", "confidence": 0.95}
    app.tools("me", "facts", session="depression-chat").call("remember_fact", fact)
    if how == "erase_user":
        app.erase_user("me")
    else:
        with memory.batch() if "batch" in how else nullcontext(memory) as open_memory:
            if how.startswith("clear"):
                assert open_memory.clear().receipt.places["tool calls"] == 1
            else:
                open_memory.erase_topic("depression")
    assert app.user("me").calls() == []
    app.close()
    assert [path for path in root.rglob("*") if path.is_file() and b"depression-chat" in path.read_bytes()] == []
    assert app.user("me").calls() == []


def test_clear_removes_the_tool_calls_that_wait_for_the_person(app: recollect.Recollect) -> None:
    with app.queue() as queue:
        for user in ("me", "you"):
            app.user(user).remember("Likes tea")
        kept = [queue.put(Task(name=TOOL, user_id=user, payload={"tool": "x"})).id for user in ("me", "you")]
        assert app.user("me").clear().receipt.places["jobs"] == 1
        assert [queue.job(one) is not None for one in kept] == [False, True]


FORMS = [
    ("e-mail", ["email me", "e-mail me", "E\u2011Mail", "emails", "wrote E-Mails"]),
    ("email", ["my e-mail address", "E-Mails", "e\u00admail"]),
    ("don't", ["don\u2019t ask", "dont ask", "don't ask"]),
    ("dont", ["don't ask", "don\u2019t ask"]),
    ("o'brien", ["O\u2019Brien", "OBrien", "o\u2019brien's car"]),
    ("OBrien", ["O'Brien", "o\u2019brien's car"]),
    ("depression", ["a de-pression", "de\u00adpression"]),
    ("de-pression", ["a depression", "Depressionen"]),
    ("gpt-4", ["uses gpt4", "uses GPT-4"]),
]


@pytest.mark.parametrize(("topic", "texts"), FORMS)
def test_a_topic_is_erased_with_or_without_hyphens_and_apostrophes(
    app: recollect.Recollect, topic: str, texts: list[str]
) -> None:
    memory = app.user("me")
    kept = ["Drinks tea on 2024-01-15", "The mail-order shop", "It's 10-20 minutes"]
    for text in [*texts, *kept]:
        memory.say(text, session="s")
    found, _ = memory.erase_topic(topic)
    assert {one.content for one in found} == set(texts)
    assert {one.content for one in memory.read(kind="message")} == set(kept)


# what is said


def test_files_that_an_erasure_cannot_reach_are_told_as_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, app: recollect.Recollect
) -> None:
    app.user("me").remember("Likes tea")
    erase_user = recollect.Recollect.erase_user

    def with_files_left(self: recollect.Recollect, user_id: str | int) -> Receipt:  # as with PostgreSQL
        receipt = erase_user(self, user_id)
        return replace(receipt, places=receipt.places | {FILES_LEFT: 2})

    monkeypatch.setattr(recollect.Recollect, "erase_user", with_files_left)
    told = " ".join(cli("erase", "--everything", "--yes", "--root", str(root)).stdout.split())
    assert "nothing is left" not in told
    assert "Erased 'me'. 2 files are left:" in told and "Delete the user's folder there." in told
    assert "2 files left" not in told


def test_yes_answers_only_a_question(root: Path, app: recollect.Recollect) -> None:
    app.user("me").remember("Drinks oolong daily")
    lines = "/memory forget oolong\nyes\nyes\nno\n/memory search oolong\n"
    told = CliRunner().invoke(program, ["chat", "--root", str(root)], input=lines).stdout
    assert "Forgotten." in told and "Undone" not in told
    assert [one.text for one in app.user("me").read(kind="fact")] == []


SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


def test_a_secret_is_not_stored_as_the_name_of_a_session(app: recollect.Recollect, root: Path) -> None:
    memory = app.user("me")
    memory.remember("Likes tea")
    for outcome in (
        memory.say("Hello", session=SECRET),
        memory.acting("agent", session=SECRET).remember("Likes maps"),
    ):
        assert isinstance(outcome, recollect.Refused) and outcome.reason == "secret" and SECRET not in outcome.message
    memory.report("read", title="Maps", session=SECRET)
    app.tools("me", "facts", session=SECRET).call("recall_facts", {})
    app.close()
    assert SECRET not in repr((memory.read(), memory.history(), memory.interactions(), memory.calls()))
    assert [path for path in root.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()] == []
    for name in ("telegram:4111111111111111", "5e0c7a3e-8a53-4a0f-9a5e-0b8f1f1e6d11", "s1"):
        assert memory.say("Hello again", session=name).done


@pytest.mark.parametrize("ref", ["999", "fact-01m7gk63x20000nvd6ym0zc5jn", "rolle"])
def test_an_update_of_something_unknown_says_how_to_add_it(memory: recollect.Memory, ref: str) -> None:
    memory.remember("Senior", key="role")
    with pytest.raises(recollect.NotFoundError, match="use remember to add something new"):
        memory.update(ref, "x")
