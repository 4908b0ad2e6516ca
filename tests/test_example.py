"""The example that bot developers copy from: it runs as its README says, anywhere, and stays on the public side.

The story it must tell is in data/hn_companion.txt; ``python examples/hn_companion`` prints what to put there.
"""

from __future__ import annotations

import ast
import importlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from datetime import datetime, timezone
from pathlib import Path

import pytest

import recollect
from recollect.testing import FrozenClock
from recollect.testing.models import Call, Fail, ModelRequest, ModelServer, Say, Turn

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "hn_companion"
TOLD = (Path(__file__).parent / "data" / "hn_companion.txt").read_text("utf-8")
READERS = tuple(json.loads((EXAMPLE / "people.json").read_text("utf-8")))

Typed = Callable[..., list[str]]


def _environment(**more: str) -> dict[str, str]:
    """Ours, without settings of the memory."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")} | more


def _run(*arguments: object, cwd: Path, said: bytes = b"", **settings: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, str(EXAMPLE), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=_environment(**settings), input=said, capture_output=True)


@pytest.fixture(scope="module", autouse=True)
def _reachable() -> Iterator[None]:
    """The example can be imported, and no setting is in its way."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("MEMORY_")]:
            patch.delenv(name)
        patch.syspath_prepend(EXAMPLE)
        yield
    for name in ("companion", "prompt", "story"):
        sys.modules.pop(name, None)


def _tell(folder: Path) -> str:
    """The story, in this process."""
    companion, story = importlib.import_module("companion"), importlib.import_module("story")
    clock = story.Clock(folder)
    with redirect_stdout(io.StringIO()) as told, companion.Companion(folder, clock=clock) as bot:
        story.Story(bot, clock).tell()
    return told.getvalue()


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """What the bot answers to each line, and its goodbye."""

    def answers(*lines: str) -> list[str]:
        companion, prompt = importlib.import_module("companion"), importlib.import_module("prompt")
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
        with companion.Companion(tmp_path) as bot:
            prompt.Prompt(bot, "you").run()
        return capsys.readouterr().out.split("\n> ")[1:]

    return answers


def _known(folder: Path) -> dict[str, list[str]]:
    """Everything that is stored of each reader, in words."""
    clock = FrozenClock(datetime(2026, 2, 10, tzinfo=timezone.utc))
    known = {}
    with recollect.open(folder, clock=clock) as app:
        for user in READERS:
            memory = app.user(user)
            assert memory.verify() == []
            records = [f"{one.kind}: {one.text}" for one in memory.read() if one.kind != "scratch"]
            events = [f"{one.kind} {one.item} {one.value} {one.at}" for one in memory.interactions()]
            runs = [f"{one.kind} {one.day} {one.status} {one.memories_written}" for one in memory.runs(limit=None)]
            notes = [memory.show(), *(memory.daily(day) for day in memory.days())]
            known[user] = [*sorted(records), *sorted(events), *sorted(runs), *notes]
        with app.queue() as queue:
            depth = queue.depth()
    assert (depth["ready"], depth["running"], depth["dead"]) == (0, 0, 0)
    return known


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the story was told without a break. Look, or copy it."""
    folder = tmp_path_factory.mktemp("whole") / "new" / "memories"
    assert _tell(folder) == TOLD
    return folder


# the story


def test_T6_the_example_tells_the_same_story_anywhere_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    done = _run(cwd=tmp_path, TMPDIR=str(tmp_path / "temporary"), TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="1")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == TOLD
    assert [*tmp_path.rglob("*")] == [tmp_path / "temporary"]


def test_T6_each_digest_of_the_example_has_more_reasons_than_the_first() -> None:
    reasons = [int(number) for number in re.findall(r"18 posts sent, (\d+) of them for a reason", TOLD)]
    assert reasons[0] == 0 and min(reasons[1:]) >= 15 and reasons == sorted(reasons)
    assert "You discussed something similar last week: PostgreSQL" in TOLD
    last = TOLD.rpartition(": the digest ===")[2].partition("posts sent")[0]
    disliked = [text for text in re.split(r"\n(?=\w+:\n)", last) if text.startswith("Leo:")]
    assert len(disliked) == 1 and "crypto" not in disliked[0]  # Leo said he is not interested in it


def test_the_example_told_twice_in_one_folder_doubles_nothing(whole: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "again")
    with recollect.open(folder) as app:
        assert app.user("mira").consents() == ("trends",) and app.user("tomek").consents() == ()
        app.user("mira").consent("trends", False)
    again = _tell(folder)
    assert again.startswith("2026-02-05 is over.\n2026-02-06 is over.\n")
    assert again.count("That was done before.") == 2 and "0 posts sent" in again
    assert _known(folder) == _known(whole)
    with recollect.open(folder) as app:
        assert app.user("mira").consents() == ()  # who is known is not asked again
    assert "A trend" in TOLD and "A trend" not in again  # four are left


@pytest.mark.slow
def test_the_example_killed_again_and_again_ends_as_if_it_had_not_been(whole: Path, tmp_path: Path) -> None:
    """Killed in a discussion, in the night's work, and between a command and its undoing."""
    folder = tmp_path / "killed"
    for moment in ("Leo opens", "Reported: 10", "Amara: /forget"):
        command = [sys.executable, "-u", str(EXAMPLE), "--folder", str(folder)]
        with subprocess.Popen(command, env=_environment(), stdout=subprocess.PIPE, text=True, encoding="utf-8") as told:
            assert told.stdout is not None
            assert any(line.startswith(moment) for line in told.stdout), f"it ended before: {moment}"
            told.kill()
        assert told.returncode == -signal.SIGKILL
    _tell(folder)
    assert _known(folder) == _known(whole)


def test_the_example_tells_the_same_story_on_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    monkeypatch.setenv("MEMORY_DATABASE_URL", postgres_url)
    assert _tell(tmp_path) == TOLD
    assert "Prefers short, technical summaries" in (tmp_path / "mira" / "MEMORY.md").read_text("utf-8")
    assert not (tmp_path / "mira" / "memory.db").exists()


def test_the_example_stores_nothing_of_readers_who_are_paused(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        for user in READERS:
            app.user(user).pause()
    told = _tell(tmp_path)
    assert told.count("Not stored: memory is paused.") == 3 and told.count("nobody looked") == 3 * len(READERS)
    assert told.count("Reported: nothing") == 3
    with recollect.open(tmp_path) as app:
        for user in READERS:
            memory = app.user(user)
            assert (memory.read(), memory.interactions(), memory.runs()) == ([], [], [])


# with a model


def _model(asked: ModelRequest) -> Turn:
    if asked.system is not None and "look after the long-term memory" in asked.system:
        return Call(asked.tools[0].name, {"memory_updates": [], "daily_notes": []})
    return Say("As you like it.")


def test_the_example_talks_with_a_model_that_knows_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(_model) as server:
        monkeypatch.setenv("MEMORY_MODEL", f"{server.openai_url}#any")
        told = _tell(tmp_path)
    assert server.problems == []
    assert told.count("bot: As you like it.") == TOLD.count("bot: Noted.") + 4  # three captures and a question
    question = next(one for one in server.requests if one.text == "What do I think of PostgreSQL?")
    assert question.system is not None
    assert "Prefers short, technical summaries" in question.system  # said last week, in another conversation
    assert "An index in the wrong order" in question.system  # the post that is discussed
    assert "Zig" not in question.system  # what another reader said


# at the keyboard


def _piped(folder: Path, *lines: str) -> list[str]:
    """The same in a process of its own."""
    done = _run("--interactive", "--folder", folder, cwd=folder.parent, said="\n".join(lines).encode())
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().split("\n> ")[1:]


def test_a_reader_at_the_keyboard_is_remembered(tmp_path: Path) -> None:
    folder = tmp_path / "memories"
    answers = _piped(
        folder,
        "/like 3",
        "/like 5",
        "/save 5",
        "/learn",
        "/discuss 6",
        "I'm a baker, and I live in Oslo.",
        "Remember that I prefer short answers",
        "/end",
        "/digest",
        "/memory",
    )
    assert answers[0] == "Reported: reaction 👍, PostgreSQL learns to vacuum without stopping the world"
    assert answers[3] == "Remembered: Interested in databases"
    assert answers[6] == "Got it, I'll remember that."
    assert "Baker" in answers[7] and "Oslo" in answers[7]
    assert "database" in answers[8].splitlines()[0] and "you liked 2 articles" in answers[8]
    for known in ("- Role: Baker", "- Prefers short answers", "- Interested in databases"):
        assert known in answers[9]
    later = _piped(folder, "What do I prefer?", "/forget short answers", "/memory", "/undo", "/memory")
    assert "Prefers short answers" in later[0]
    assert later[1] == "Forgotten: Prefers short answers"
    assert "short answers" not in later[2] and "- Prefers short answers" in later[4]


def test_a_reader_at_the_keyboard_may_type_anything(typed: Typed) -> None:
    answers = typed(
        "/like",
        "/like 9",
        "/like ²",
        "/what",
        "/forget pancakes",
        "/undo",
        "half a letter: \udcff",
        "Remember that my key is sk-proj-4f9aXb72Lq4f9aXb72Lq4f9aXb72Lq",
        "/pause",
        "/save 1",
        "/resume",
        "/save 1",
        "/quit",
        "not read any more",
    )
    assert all(answer.startswith("Which one? Say its number, from 1 to 8") for answer in answers[:3])
    assert answers[3].startswith("/digest")
    assert answers[4:6] == ["I know nothing about that.", "There is nothing to take back."]
    assert "only ordinary characters" in answers[6] and "secret" in answers[7]
    assert answers[8] == "Memory is paused." and "Not stored: memory is paused" in answers[9]
    assert answers[11].startswith("Reported: save") and answers[12].endswith("Bye!\n")


def test_a_reader_at_the_keyboard_sees_that_the_model_is_away(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(lambda asked: Fail(401, "no such key")) as server:
        monkeypatch.setenv("MEMORY_MODEL", f"{server.openai_url}#any")
        answer = typed("Good morning")[0]
    assert answer.endswith("(rejected: answered from memory)")


def test_the_example_says_in_a_line_what_is_wrong_with_its_settings(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    for done, about in (
        (_run(cwd=tmp_path, MEMORY_MODEL="nonsense:x"), b"MEMORY_MODEL"),
        (_run("--folder", taken, cwd=tmp_path), b"taken"),
    ):
        assert done.returncode == 1 and about in done.stderr and done.stderr.count(b"\n") == 1


# what it is made of


def test_the_example_uses_what_is_public_and_documented() -> None:
    documents = "".join(
        path.read_text("utf-8")
        for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    )
    for path in EXAMPLE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("recollect"):
                for name in node.names:
                    assert not name.name.startswith("_")
                    if node.module == "recollect":
                        assert name.name in recollect.__all__
                    else:
                        assert f"from {node.module} import" in documents, (
                            f"{path.name}: {node.module} is not documented"
                        )
            elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                assert isinstance(node.value, ast.Name) and node.value.id == "self", f"{path.name}: {node.attr}"


def test_what_happens_in_the_example_is_about_its_posts_and_readers() -> None:
    posts = json.loads((EXAMPLE / "posts.json").read_text("utf-8"))
    events = [json.loads(line) for line in (EXAMPLE / "days.jsonl").read_text("utf-8").splitlines()]
    assert len(posts) >= 40 and len({post["title"] for post in posts}) == len({post["id"] for post in posts}) == len(
        posts
    )
    days = {post["id"]: post["day"] for post in posts}
    assert {event["who"] for event in events} == set(READERS)
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)
    for event in events:
        if "post" in event:
            assert days[event["post"]] <= event["at"][:10], "nobody reads what is not there yet"
