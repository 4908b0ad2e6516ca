"""Sentences of the documentation that were found to be untrue: each is kept here from outside, one test per finding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import recollect
from recollect.config import Config
from recollect.errors import UndoError
from recollect.surfaces.chat.commands import Commands
from recollect.surfaces.chat.conversation import Conversation
from tests.command_line import app as app
from tests.command_line import cli, program
from tests.command_line import root as root

ANNA = ("terminal", "anna")


def everything_below(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


# what the chat says it keeps


def test_a_memory_of_messages_alone_is_not_called_empty(app: recollect.Recollect) -> None:
    Conversation(app, ANNA, place="room").say("I met Bob")
    shown = str(Commands(app, ANNA).run("/memory"))
    assert "No facts yet." in shown
    assert "And 2 messages of our conversations." in shown
    assert "don't remember anything" not in shown
    app.identities.memory(ANNA).remember("Likes tea")
    assert "Likes tea" in str(Commands(app, ANNA).run("/memory"))
    Commands(app, ANNA).run("/memory undo")
    assert "And 2 messages of our conversations." in str(Commands(app, ANNA).run("/memory"))


def test_forwarded_words_are_not_quoted_as_the_persons_own(app: recollect.Recollect) -> None:
    talk = Conversation(app, ANNA, place="room")
    talk.say("I live in Rome and my name is Bob", forwarded=True)
    answer = str(talk.say("Where do I live?")[0])
    assert "You told me" not in answer
    assert "forwarded or quoted" in answer or "nothing about that" in answer
    found = str(Commands(app, ANNA).run("/memory search Bob"))
    assert "Forwarded: I live in Rome" in found and "You: I live" not in found


def test_a_cleared_memory_tells_what_is_kept(app: recollect.Recollect) -> None:
    app.identities.memory(ANNA).remember("Likes tea")
    commands = Commands(app, ANNA)
    asked = commands.run("/memory clear")
    done = str(commands.run(next(c.command for row in asked.choices for c in row if c.danger)))
    assert "Nothing is left" not in done
    assert "fingerprints" in done and "cannot be undone" in done


# dry runs change nothing


@pytest.mark.parametrize("kind", ["folder", "md", "jsonl"])
def test_a_dry_import_creates_nothing(root: Path, tmp_path: Path, kind: str) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# About\n\n- Likes tea\n")
    entity = {"type": "entity", "name": "Anna", "entityType": "person", "observations": ["Likes tea"]}
    (notes / "memory.jsonl").write_text(json.dumps(entity) + "\n")
    source = {"folder": notes, "md": notes / "a.md", "jsonl": notes / "memory.jsonl"}[kind]
    if kind == "folder":
        (notes / "memory.jsonl").unlink()
    cli(root, "remember", "Likes cake")
    before = everything_below(root)
    would = json.loads(cli(root, "import", str(source), "--user", "zed", "--dry-run", "--json").stdout)
    assert would["written"] >= 1 and would["run"] is None
    assert everything_below(root) == before
    cli(root, "read", "--user", "zed", code=3)
    done = json.loads(cli(root, "import", str(source), "--user", "zed", "--json").stdout)
    assert done["written"] == would["written"]


def test_a_dry_import_creates_nothing_in_postgres(postgres_tables: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# About\n\n- Likes tea\n")
    with recollect.open(postgres_tables, files=tmp_path / "files") as app:
        assert app.user("zed").import_(tmp_path / "a.md", dry_run=True).written == 1
        assert not app.user("zed").exists and list(app.users()) == []
    assert not (tmp_path / "files" / "zed").exists()


def test_a_dry_edit_of_a_new_memory_creates_nothing(root: Path, tmp_path: Path) -> None:
    cli(root, "remember", "Likes cake")
    text = tmp_path / "new.md"
    text.write_text("## Key Facts\n\n- Likes tea\n")
    before = everything_below(root)
    assert "+- Likes tea" in cli(root, "edit", "--file", str(text), "--user", "zed", "--dry-run").stdout
    assert everything_below(root) == before
    cli(root, "edit", "--file", str(text), "--user", "zed")
    assert "Likes tea" in cli(root, "read", "--user", "zed").stdout


def test_looking_at_the_queue_creates_nothing(root: Path) -> None:
    cli(root, "remember", "Likes cake")
    before = everything_below(root)
    cli(root, "queue", "show")
    cli(root, "queue", "dead")
    assert everything_below(root) == before


# what is off


def test_memory_that_is_off_for_everyone_is_not_called_paused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_ENABLED", "false")
    off = "memory is turned off for everyone (MEMORY_ENABLED); the operator can turn it on"
    assert off in cli(root, "remember", "Likes tea", code=1).stderr
    resumed = cli(root, "resume", code=1)
    assert off in resumed.stderr and "Memory is on" not in resumed.stdout


def test_the_tools_and_the_chat_say_so_too(root: Path) -> None:
    with recollect.open(root, config=Config(enabled=False)) as app:
        result = app.tools("u1").call("memory_save", {"content": "Likes tea"})
        assert "turned off for everyone" in result.text
        answers = Conversation(app, ANNA, place="room").say("I met Bob")
        assert "turned off for everyone" in "\n".join(map(str, answers))


# undo


def test_what_is_not_undone_says_how_to_change_it_back(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    memory.pause()
    with pytest.raises(UndoError, match="setting"):
        memory.undo(1)


def test_a_restored_archive_says_how_to_take_it_back(root: Path, tmp_path: Path) -> None:
    cli(root, "remember", "Likes tea")
    cli(root, "export", str(tmp_path / "all.zip"))
    told = cli(root, "import", str(tmp_path / "all.zip"), "--user", "zed").stderr
    assert "recollect clear" in told


# errors name what was typed


@pytest.mark.parametrize(
    ("command", "begins"),
    [
        ("read --limit abc", "--limit: must be a whole number"),
        ("read --limit -1", "--limit: -1 is not"),
        ("history --limit -1", "--limit: must be at least 0"),
        ("read --since nope", "--since: 'nope' is not"),
        ("remember tea --confidence 7", "--confidence: 7.0 is not"),
        ("remember tea --confidence abc", "--confidence: must be a number"),
        ("remember tea --run=", "--run: must not be empty"),
        ("jot tea --day nope", "--day: 'nope' is not"),
        ("edit --file /dev/null --day nope", "--day: 'nope' is not"),
        ("trends --days 3", "--days: must be one of"),
        ("tools --suite nope", "--suite: "),
        ("forget --topic !! --yes", "--topic: must contain"),
        ("keys create --scope nope", "--scope: must be one of"),
        ("read --kind nope", "--kind: 'nope' is not one of"),
        ("say hello", "--session: is required"),
        ("read --user=", "--user: must"),
        ("extract --user=", "--user: must"),
        ("link status --user=", "--user: must"),
        ("read --root=", "--root: must"),
    ],
)
def test_errors_name_options_as_they_are_typed(root: Path, command: str, begins: str) -> None:
    cli(root, "remember", "Likes cake")
    where = () if "--root" in command else ("--root", str(root))
    told = CliRunner().invoke(program, [*command.split(), *where])
    assert told.exit_code == 2
    assert f"recollect: {begins}" in told.stderr.splitlines()[-1], told.stderr


def test_an_unknown_call_is_not_found(root: Path) -> None:
    cli(root, "remember", "Likes cake")
    assert "There is no call nope." in cli(root, "history", "--call", "nope", code=3).stderr


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("erase nope", 3, "nope"),
        ("erase --topic nope", 3, "nothing is remembered about 'nope'"),
        ("forget nope", 3, "nope"),
        ("forget --topic nope", 3, "nothing is remembered about 'nope'"),
        ("link undo", 1, "is not linked to anything"),
        ("rebuild", 1, "there is nothing to rebuild"),
        ("clear --user zed", 3, "There is no memory for 'zed' yet."),
        ("erase cake", 2, "this needs a confirmation"),
    ],
)
def test_a_command_with_nothing_to_do_says_so_before_it_asks(root: Path, command: str, code: int, says: str) -> None:
    cli(root, "remember", "Likes cake", "--key", "cake")
    assert says in cli(root, *command.split(), code=code).stderr


def test_one_thing_is_not_one_thing_s(root: Path) -> None:
    cli(root, "remember", "Likes cake", "--key", "cake")
    assert "Erased 1 record;" in cli(root, "erase", "cake", "--yes").stdout
    cli(root, "remember", "Likes tea")
    for folder in root.iterdir():
        if folder.is_dir():
            (folder / "memory.db").write_bytes(b"nonsense")
    told = cli(root, "verify", code=1).stdout
    assert "1 problem\n" in told
    would = cli(root, "rebuild", "--dry-run").stdout
    assert would.startswith("Would restore: ") and "(s)" not in would


def test_errors_say_what_to_do(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert "choose another" in cli(tmp_path / "file" / "memory", "remember", "Likes tea", code=4).stderr
    cli(root, "remember", "Likes cake")
    assert "choose today or an earlier day" in cli(root, "extract", "--date", "2990-01-01").stdout


def test_help_is_not_cut_off() -> None:
    for group in ("queue", "keys", "link", "events"):
        told = CliRunner().invoke(program, [group, "--help"]).stdout
        assert not [line for line in told.splitlines()[1:] if line.endswith("...")]
