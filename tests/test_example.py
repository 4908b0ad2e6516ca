"""HN Pal, the example that bot developers copy from: it does what its README says, anywhere, with public APIs only."""

from __future__ import annotations

import ast
import importlib
import io
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.surfaces.chat.page import ChatPage
from recollect.surfaces.telegram import Bot
from recollect.testing import FrozenClock
from recollect.testing.models import Call, Fail, ModelRequest, ModelServer, Say, Turn
from tests.fakes.telegram import FaultyTelegramServer, Phone

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "hn_pal"
MODULES = ("bot", "hacker_news", "pal", "recording", "week")
NAMES = ("Mira", "Leo", "Amara", "Jonas", "Sofia", "Tomek")
READERS = tuple(name.lower() for name in NAMES)

Typed = Callable[..., list[str]]


def _environment(**more: str) -> dict[str, str]:
    """Ours, without settings of the memory."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")} | more


@pytest.fixture(scope="module", autouse=True)
def _reachable() -> Iterator[None]:
    """The example can be imported, and no setting is in its way."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("MEMORY_")]:
            patch.delenv(name)
        patch.syspath_prepend(EXAMPLE)
        yield
    for name in MODULES:
        sys.modules.pop(name, None)


def _module(name: str) -> Any:
    return importlib.import_module(name)


@contextmanager
def _pal(folder: Path, clock: Any) -> Iterator[Any]:
    """HN Pal with the recorded news."""
    with (
        _module("recording").RecordedNews(clock, getattr(clock, "first_day", date(2026, 2, 5))) as recorded,
        _module("pal").HNPal(folder, _module("hacker_news").HackerNews(recorded.url), clock=clock) as pal,
    ):
        yield pal


def _thursday() -> Callable[[], datetime]:
    """A clock that runs, from the first morning of the recording on."""
    ahead = datetime(2026, 2, 5, 9, tzinfo=timezone.utc) - datetime.now(timezone.utc)
    return lambda: datetime.now(timezone.utc) + ahead


def _play(folder: Path, first_day: date = date(2026, 2, 5)) -> str:
    """The week, in this process."""
    week = _module("week")
    clock = week.DemoClock(folder, first_day)
    with redirect_stdout(io.StringIO()) as told, _pal(folder, clock) as pal:
        week.Week(pal, clock).play()
    return told.getvalue()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which the week was played without a break, and what was shown. Look, or copy it."""
    folder = tmp_path_factory.mktemp("whole") / "new" / "memories"
    return folder, _play(folder)


@pytest.fixture
def typed(tmp_path: Path) -> Typed:
    """What HN Pal answers to each line of a reader, on a Thursday."""
    clock = _thursday()

    def answers(*lines: str) -> list[str]:
        with _pal(tmp_path, clock) as pal:
            talk, texts = pal.conversation(("terminal", "me"), "terminal"), []
            pages: list[ChatPage] = []
            for line in lines:
                choices = [choice for page in pages for row in page.choices for choice in row]
                pages = talk.choose(choices[0].command) if line == "yes" else talk.say(line)
                texts.append("\n".join(map(str, pages)))
        return texts

    return answers


def _known(folder: Path) -> dict[str, list[str]]:
    """Everything that is stored of each reader, in words."""
    clock = FrozenClock(datetime(2026, 2, 12, tzinfo=timezone.utc))
    known = {}
    with recollect.open(folder, clock=clock) as app:
        for user in READERS:
            memory = app.user(user)
            assert memory.verify() == []
            records = [f"{one.kind}: {one.text}" for one in memory.read() if one.kind != "scratch"]
            events = [f"{one.kind} {one.item} {one.value} {one.at}" for one in memory.interactions()]
            runs = [
                f"{one.kind.partition('@')[0]} {one.day} {one.status} {one.memories_written}"
                for one in memory.runs(limit=None)
            ]
            notes = [memory.show(), *(memory.daily(day) for day in memory.days())]
            known[user] = [*sorted(records), *sorted(events), *sorted(runs), *notes]
        with app.queue() as queue:
            depth = queue.depth()
    assert (depth["ready"], depth["running"], depth["dead"]) == (0, 0, 0)
    return known


# the week


def test_T6_the_digests_of_the_week_are_ranked_with_reasons(whole: tuple[Path, str]) -> None:
    told = whole[1]
    reasons = [int(number) for number in re.findall(r"6 readers get 24 stories, (\d+) of them for a reason", told)]
    assert len(reasons) == 7 and reasons[0] == 0 and min(reasons[1:]) >= 5
    digests = re.findall(r"Mira: /digest\n    Today's stories\n\n    1\. (.*)\n", told)
    assert len(digests) == 4 and all("PostgreSQL" in first for first in digests)
    assert re.search(r"For you: .*you liked 2 articles about databases", told)
    assert "A trend among those who agreed to be counted: databases (5 readers or more)" in told
    with recollect.open(whole[0]) as app:  # Leo said he is not interested in crypto
        delivered = app.user("leo").interactions(kinds=["delivery"], since="2026-02-06")
    topics = [topic for one in delivered for topic in one.topics]
    assert topics and "crypto" not in topics


def test_T6_readers_are_remembered_reminded_and_learned_from(whole: tuple[Path, str]) -> None:
    told = whole[1]
    assert "You discussed something similar last week: PostgreSQL learns to vacuum" in told
    assert re.search(r"Mira: What do I think of PostgreSQL\?\n.*\n.*Thinks PostgreSQL is good enough", told)
    assert "Mira: Interested in databases; Interested in PostgreSQL" in told  # at night
    known = told.partition("MEMORY.md ===")[2]
    for line in (
        "- Prefers short, technical summaries",
        "- Interested in databases",
        "- Role: Senior backend engineer",
    ):
        assert line in known
    assert '- User said: "Remember that I prefer short, technical summaries."' in known
    assert 'Discussed "PostgreSQL learns to vacuum without stopping the world" (6 messages' in known


def test_T6_the_commands_of_the_week_do_what_they_say(whole: tuple[Path, str]) -> None:
    folder, told = whole
    assert "Mira: /saved\n    What you saved\n    • SQLite over a slow network, made bearable\n" in told
    assert re.search(r"/memory search upgrade\n    Found for “upgrade”\n    • Decided to upgrade in April", told)
    assert re.search(r"Amara: yes\n    Forgotten: 3 things\.", told) and "I remember again:" in told
    assert "Tomek: /like Async Rust\n    Not stored: memory is paused." in told
    saturday = told.partition("=== Saturday")[2].partition("\n=== ")[0]
    assert "Tomek: skipped" in saturday and "Mira: nothing new" in saturday
    with recollect.open(folder) as app:
        sofia, amara = app.user("sofia"), app.user("amara")
        assert sofia.read(kind="fact") == [] and sofia.interactions() == [], "she cleared her memory"
        assert "Giving a talk on batching in March" in [one.text for one in amara.read()], "she took it back"


def test_the_week_played_twice_in_one_folder_doubles_nothing(whole: tuple[Path, str], tmp_path: Path) -> None:
    folder = shutil.copytree(whole[0], tmp_path / "again")
    with recollect.open(folder) as app:
        assert app.user("mira").consents() == ("trends",) and app.user("tomek").consents() == ()
        app.user("mira").consent("trends", False)
    again = _play(folder)
    assert again.count(" is over.\n") == 6 and "Mira: /" not in again and "readers get" not in again
    assert _known(folder) == _known(whole[0])
    with recollect.open(folder) as app:
        assert app.user("mira").consents() == (), "she is known, so she is not asked again"


def test_opening_the_demo_in_the_console_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    week = _module("week")
    monkeypatch.setattr(week, "SCRIPT", [one for one in week.SCRIPT if one[1] == "mira" and one[0] < "2026-02-06"])
    monkeypatch.setattr(week, "READERS", ("mira",))
    _program("--folder", tmp_path, monkeypatch=monkeypatch)
    with recollect.open(tmp_path) as app:  # with the clock of this machine, as `recollect serve` does
        memory = app.user("mira")
        days = memory.days()
        memory.upkeep()
        assert memory.days() == days != []
        assert all(one.created_at <= datetime.now(timezone.utc) for one in memory.read())


@pytest.mark.slow
def test_T6_the_demo_shows_the_same_week_anywhere_and_leaves_nothing(whole: tuple[Path, str], tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    settings = {"TMPDIR": str(tmp_path / "temporary"), "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "1"}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], cwd=tmp_path, env=_environment(**settings), capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    told = done.stdout.decode()
    began_on = datetime.strptime(told.partition("\n=== ")[2].partition(" ===")[0], "%A, %d %B %Y").date()
    assert datetime.now(timezone.utc).date() - began_on in (timedelta(days=6), timedelta(days=7))
    assert [*tmp_path.rglob("*")] == [tmp_path / "temporary"]
    assert time.monotonic() - began < 120, "two minutes, on a busy machine too"
    assert told == _play(tmp_path / "same", began_on)


@pytest.mark.slow
def test_the_demo_killed_again_and_again_ends_as_if_it_had_not_been(whole: tuple[Path, str], tmp_path: Path) -> None:
    """Killed in a discussion, in the night's work, and between a command and its undoing."""
    folder = tmp_path / "killed"
    _module("week").DemoClock(folder).move("2026-02-05T07:30Z")  # as if it had been begun then
    for moment in ("08:33 Mira", "23:00", "09:01 Amara: yes"):
        command = [sys.executable, "-u", str(EXAMPLE), "--folder", str(folder)]
        with subprocess.Popen(command, env=_environment(), stdout=subprocess.PIPE, text=True, encoding="utf-8") as told:
            assert told.stdout is not None
            assert any(line.startswith(moment) for line in told.stdout), f"it ended before: {moment}"
            told.kill()
        assert told.returncode == -signal.SIGKILL
    _play(folder)
    assert _known(folder) == _known(whole[0])


@pytest.mark.slow
def test_the_week_is_the_same_on_postgresql(
    whole: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    monkeypatch.setenv("MEMORY_DATABASE_URL", postgres_url)
    assert _play(tmp_path) == whole[1]
    assert "Prefers short, technical summaries" in (tmp_path / "mira" / "MEMORY.md").read_text("utf-8")
    assert not (tmp_path / "mira" / "memory.db").exists()


@pytest.mark.slow
def test_the_week_stores_nothing_of_readers_who_are_paused(tmp_path: Path) -> None:
    with recollect.open(tmp_path, clock=FrozenClock(datetime(2026, 2, 5, tzinfo=timezone.utc))) as app:
        for user in READERS:
            app.user(user).pause()
    week = _module("week")
    script, week.SCRIPT = (
        week.SCRIPT,
        [one for one in week.SCRIPT if not one[2].startswith("/memory") and one[2] != "yes"],
    )
    try:
        told = _play(tmp_path)
    finally:
        week.SCRIPT = script
    assert told.count("Not stored: memory is paused.") >= 15 and told.count(": skipped\n") == 7 * len(READERS)
    with recollect.open(tmp_path) as app:
        for user in READERS:
            memory = app.user(user)
            assert (memory.read(), memory.interactions(), memory.runs()) == ([], [], [])


# a reader


def test_a_reader_in_the_terminal_is_remembered(typed: Typed) -> None:
    answers = typed(
        "/digest",
        "/like 1",
        "/like SQLite",
        "/save 3",
        "/learn",
        "/discuss 4",
        "I'm a baker, and I live in Oslo.",
        "Remember that I prefer short answers",
        "/end",
        "/memory",
        "/saved",
        "/read 2",
    )
    assert "1. PostgreSQL learns to vacuum" in answers[0] and "“We run 4 TB with the patch." in answers[0]
    assert answers[1] == "Reported: reaction 👍, PostgreSQL learns to vacuum without stopping the world"
    assert answers[2].startswith("Reported: reaction 👍, SQLite") and answers[3].startswith("Reported: save, SQLite")
    assert "Remembered: Interested in databases" in answers[4]
    assert answers[5].startswith("📖 Discussing: Container queries")
    assert "Got it, I'll remember that." in answers[7]
    assert "Baker" in answers[8] and "Oslo" in answers[8]
    for known in ("Role: Baker", "Prefers short answers", "Interested in databases"):
        assert known in answers[9]
    assert "• SQLite as the only database" in answers[10]
    assert answers[11].splitlines()[0] == "Crypto exchange freezes withdrawals again"
    later = typed("What do I prefer?", "/memory forget short answers", "yes", "/memory", "/memory undo", "/memory")
    assert "Prefers short answers" in later[0] and "Forget" in later[1] and "Forgotten" in later[2]
    assert "Prefers short" not in later[3] and "Prefers short answers" in later[5]


def test_a_reader_may_type_anything(typed: Typed) -> None:
    answers = typed(
        "/like 1",
        "/digest",
        "/like",
        "/like 9",
        "/like ²",
        "/like pancakes",
        "/what",
        "/help",
        "/discuss The history of pancakes",
        "half a letter: \udcff",
        "Remember that my key is sk-proj-4f9aXb72Lq4f9aXb72Lq4f9aXb72Lq",
        "/memory pause",
        "/save 1",
        "/memory resume",
        "/save 1",
        "/memory clear",
        "yes",
        "/saved",
        "/discuss 99",
    )
    assert answers[18].startswith("Which one?")
    assert answers[0] == "Which one? /digest shows them."
    assert all(one == "Which one? Say its number, from 1 to 4, or a word of its title." for one in answers[2:6])
    assert "I don't know /what" in answers[6] and "/saved" in answers[7] and "/memory" in answers[7]
    assert answers[8].startswith("📖 Discussing: The history of pancakes") and "secret" in answers[10]
    assert "paused" in answers[11] and "Not stored: memory is paused" in answers[12]
    assert answers[14].startswith("Reported: save")
    assert "Erase everything" in answers[15] and "erased" in answers[16] and "Nothing yet" in answers[17]


def _model(asked: ModelRequest) -> Turn:
    if asked.system is not None and "look after the long-term memory" in asked.system:
        return Call(asked.tools[0].name, {"memory_updates": [], "daily_notes": []})
    return Say("As you like it.")


def test_with_a_model_summaries_and_discussions_know_the_reader(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    typed("Remember that I prefer short, technical summaries")
    with ModelServer(_model) as server:
        monkeypatch.setenv("MEMORY_MODEL", f"{server.openai_url}#any")
        digest, _, answer = typed("/digest", "/discuss 1", "What do I think of it?")
    assert server.problems == []
    assert digest.count("As you like it.") == 4 and answer == "As you like it."
    summary = next(one for one in server.requests if "We run 4 TB" in one.text)
    assert summary.system is not None and "Prefers short, technical summaries" in summary.system
    question = next(one for one in server.requests if one.text == "What do I think of it?")
    assert question.system is not None and "Prefers short, technical summaries" in question.system
    assert "PostgreSQL learns to vacuum" in question.system


def test_a_reader_sees_that_the_model_is_away(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(lambda asked: Fail(401, "no such key")) as server:
        monkeypatch.setenv("MEMORY_MODEL", f"{server.openai_url}#any")
        digest, answer = typed("/digest", "Good morning")
    assert "“We run 4 TB with the patch." in digest  # the lead and the comments instead
    assert "The model did not answer (rejected)" in answer


# on Telegram


@pytest.mark.filterwarnings("ignore:.*PTB_TIMEDELTA")
def test_on_telegram_posts_arrive_once_and_everything_done_with_them_is_reported(tmp_path: Path) -> None:
    clock = _thursday()
    with FaultyTelegramServer() as server, _pal(tmp_path, clock) as pal:
        pal_bot = _module("bot").PalBot(pal, server.token, server.url)
        with pal_bot.bot:
            server.wait_until_listening()
            ann = server.user("Ann")
            assert "/digest" in _ask(ann, "/start")
            memory = pal.app.identities.memory(("telegram", ann.id))
            assert pal_bot.deliver_digests() == 4
            post = ann.waits_for("SQLite as the only database of a busy shop")
            assert "“A copy is only a backup" in post.text and "https://example.org/" in post.text
            while len(memory.interactions(kinds=["delivery"])) < 4:
                time.sleep(0.02)
            assert pal_bot.deliver_digests() == 0
            ann.reacts("👍", post)
            assert ann.presses("⭐ Save", post).waits().text == "Saved."
            ann.presses("💬 Discuss", post).waits()
            ann.waits_for("📖 Discussing: SQLite")
            assert "Got it" in _ask(ann, "Remember that I prefer short answers")
            assert "• SQLite as the only database" in _ask(ann, "/saved")
            assert "Prefers short answers" in _ask(ann, "/memory")
            assert "Reported: reaction 👎" in _ask(ann, "/dislike Container")
        reported = memory.interactions()
    done = {(one.kind, one.value) for one in reported if one.topics}
    assert done >= {("delivery", None), ("reaction", "👍"), ("save", None), ("reaction", "👎")}
    assert server.problems == []


def _ask(person: Phone, text: str) -> str:
    return person.private.wait_for_reply(person.says(text)).text


# Hacker News


def test_the_client_reads_the_api_and_leaves_out_what_is_gone() -> None:
    recording, hacker_news = _module("recording"), _module("hacker_news")
    first = recording.DAYS[0]
    clock = FrozenClock(datetime.fromisoformat(f"{first}T09:00Z"))
    with recording.RecordedNews(clock) as recorded:
        client = hacker_news.HackerNews(recorded.url)
        story = client.top_stories(3)[0]
        assert story.topics == ("PostgreSQL", "databases") and len(client.top_stories(3)) == 3
        assert client.comments(story)[0].startswith("We run 4 TB")
        gone = replace(story, comments=(1, *story.comments))
        assert client.comments(gone, 2) == client.comments(story, 1), "the API answers null for what it does not have"
    with pytest.raises(OSError, match="refused"):
        client.top_stories()


def test_the_client_takes_the_markup_out_of_texts() -> None:
    hacker_news = _module("hacker_news")

    class Answers(hacker_news.HackerNews):  # type: ignore[name-defined, misc]
        def _get(self, path: str) -> Any:
            dead = {"id": 3, "type": "story", "title": "Dead", "dead": True}
            job = {"id": 4, "type": "job", "title": "A job"}
            text = "It&#x27;s &lt;b&gt;<p>Second <i>part</i>"
            return {
                "topstories": [2, 3, 4],
                "item/2": {"id": 2, "type": "story", "title": "Ask HN: Rust?", "text": text},
                "item/3": dead,
                "item/4": job,
            }[path]

    (story,) = Answers().top_stories()
    assert story.text == "It's <b>\nSecond part" and story.topics == ("Rust",)
    assert story.url == "https://news.ycombinator.com/item?id=2"


def test_without_hacker_news_a_reader_is_told_so(tmp_path: Path) -> None:
    news = _module("hacker_news").HackerNews("http://127.0.0.1:9")
    with _module("pal").HNPal(tmp_path, news) as pal:
        talk = pal.conversation(("terminal", "me"), "terminal")
        assert str(talk.say("/digest")[0]) == "Hacker News cannot be reached right now. Try again later."
        assert "Got it" in str(talk.say("Remember that I like tea")[-1]), "the rest works"


# the program


def _program(*arguments: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["hn_pal", *map(str, arguments)])
    runpy.run_path(str(EXAMPLE / "__main__.py"), run_name="__main__")


def test_the_program_talks_in_a_pipe_and_says_how_to_open_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = io.TextIOWrapper(io.BytesIO(b"/digest\nRemember that I like tea\n"))
    monkeypatch.setattr(sys, "stdin", lines)
    _program("--interactive", "--folder", tmp_path, monkeypatch=monkeypatch)
    told = capsys.readouterr().out
    assert "Today's stories" in told and "Remembered: Likes tea" in told and "Goodbye." in told
    assert f"recollect serve --root {tmp_path} --user me" in told


def test_an_extraction_model_without_a_key_does_not_stop_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With the seed's settings as they are, rules extract, and the log says why."""
    monkeypatch.setenv("MEMORY_EXTRACTION_MODEL", "gpt-4o-mini")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with _pal(tmp_path, _thursday()) as pal:
        assert "extracting by rules: MEMORY_EXTRACTION_MODEL needs a key" in caplog.text
        with FaultyTelegramServer() as server, Bot(pal.app, server.token, url=server.url):
            pass  # nor the bot of `recollect telegram`
        talk = pal.conversation(("terminal", "me"), "terminal")
        talk.say("I'm a baker, and I live in Oslo.")
        assert "Oslo" in str(talk.say("/learn")[0])


def test_the_console_is_pointed_to_the_records_in_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], postgres_url: str
) -> None:
    monkeypatch.setenv("MEMORY_DATABASE_URL", postgres_url)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Remember that I like tea\n")))
    _program("--interactive", "--folder", tmp_path, monkeypatch=monkeypatch)
    assert f"browser: MEMORY_DIR={tmp_path} recollect serve --user me\n" in capsys.readouterr().out


def test_the_program_says_in_a_line_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    for arguments, model, about in (((), "nonsense:x", "MEMORY_MODEL"), (("--folder", taken), "", "taken")):
        monkeypatch.setenv("MEMORY_MODEL", model)
        with pytest.raises(SystemExit) as ended:
            _program(*arguments, monkeypatch=monkeypatch)
        error = capsys.readouterr().err
        assert ended.value.code == 1 and about in error and error.count("\n") == 1


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
            elif isinstance(node, ast.Attribute) and re.match("_(?!_)", node.attr):
                assert isinstance(node.value, ast.Name) and node.value.id == "self", f"{path.name}: {node.attr}"
    assert sum(len(path.read_text("utf-8").splitlines()) for path in EXAMPLE.glob("*.py")) < 800


def test_the_recording_and_the_script_fit_together() -> None:
    recording = json.loads((EXAMPLE / "recording.json").read_text("utf-8"))
    items = {item["id"]: item for item in recording["items"]}
    assert len(items) == len(recording["items"])
    stories = [story for day in recording["topstories"].values() for story in day]
    assert len(stories) == len(set(stories)) >= 40 and len({items[story]["title"] for story in stories}) == len(stories)
    assert all(items[kid]["parent"] == story for story in stories for kid in items[story]["kids"])
    script = (EXAMPLE / "week.txt").read_text("utf-8").splitlines()
    assert len(script) == len(_module("week").SCRIPT), "every line can be read"
    assert script == sorted(script, key=lambda line: line[:16])
    assert {line.split(maxsplit=3)[2].rstrip(":") for line in script} == set(READERS)
    assert {line[:10] for line in script} == set(recording["topstories"])
