"""What strangers found when they tried the promises of README and docs: each from outside, one test per finding."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.main import get_command

import recollect
import recollect.client
import recollect.errors
from recollect.client import Client, RemoteMemory, connect
from recollect.errors import ConfigError, InvalidInputError, RecollectError
from recollect.memory import write
from recollect.surfaces.chat.commands import Commands
from recollect.surfaces.chat.conversation import Conversation
from recollect.surfaces.chat.page import ChatPage
from recollect.testing import FrozenClock
from recollect.verbs import VERBS
from recollect.work import contract as work_contract
from tests.command_line import app as app
from tests.command_line import cli, program
from tests.command_line import root as root
from tests.serving import serving


def flat(text: str) -> str:
    return " ".join(text.split())


# what was erased is not learned again

LONE_WORDS: list[tuple[str, str, dict[str, Any]]] = [
    ("notes", "memory_save", {"content": "berlin"}),
    ("observations", "remember_observation", {"content": "Berlin.", "category": "insight"}),
    (
        "entries",
        "write_memory",
        {"key": "city", "value": "Berlin", "category": "personal_context", "durability": "daily"},
    ),
    ("files", "memory", {"command": "create", "path": "/memories/city.txt", "file_text": "Berlin"}),
]


@pytest.mark.parametrize(("suite", "tool", "arguments"), LONE_WORDS)
def test_R7_an_erased_word_without_its_key_is_the_erased_thing(
    app: recollect.Recollect, suite: str, tool: str, arguments: dict[str, Any]
) -> None:
    memory = app.user("1")
    memory.remember("Berlin", key="city")
    memory.erase("city")
    app.tools("1", suite).call(tool, arguments)
    agent = memory.acting("agent")
    for outcome in (agent.remember("Berlin", source="batch_extraction"), agent.jot("Berlin", source="discussion:1")):
        assert isinstance(outcome, recollect.Refused)
        assert outcome.reason == "erased"
    assert memory.read() == []
    assert memory.say("Berlin", session="s").done  # what somebody says is not an entry
    assert agent.remember("Berlin", key="birthplace", source="discussion:1").done
    assert memory.remember("Berlin", category="key_fact").done  # the person may say it again


# a known key without a category means the fact that has it


@pytest.mark.parametrize("how", ["api", "cli", "label", "type"])
def test_P2_a_known_key_without_a_category_means_the_fact_that_has_it(
    app: recollect.Recollect, root: Path, how: str
) -> None:
    memory = app.user("me")
    kind = "skill" if how == "type" else None
    memory.remember("Engineer", key="role", category="personal_context" if kind else "work_context", type=kind)
    said: dict[str, Callable[[str], object]] = {
        "api": lambda value: memory.remember(value, key="role"),
        "cli": lambda value: cli(root, "remember", value, "--key", "role", "--user", "me", code=1),
        "label": lambda value: memory.remember(f"Role: {value}"),
        "type": lambda value: memory.remember(value, key="role", type="skill"),
    }
    said[how]("engineer")
    outcome = said[how]("Baker")
    if isinstance(outcome, recollect.Outcome):
        assert isinstance(outcome, recollect.Conflict)
    (fact,) = memory.read(kind="fact")
    assert fact.content == "Engineer"
    assert memory.update("role", "Pilot").done  # and so it is not ambiguous


def test_a_key_stays_unique_within_its_category_only_if_the_category_is_given(app: recollect.Recollect) -> None:
    memory = app.user("me")
    assert memory.remember("German", key="language", category="personal_context").done
    assert memory.remember("Rust", key="language", category="work_context").done
    assert memory.remember("Esperanto", key="language").done  # which one is meant is not known: another fact
    assert len(memory.read(kind="fact")) == 3


def test_P1_a_daily_entry_under_a_known_key_is_still_noted(app: recollect.Recollect) -> None:
    memory = app.user("me")
    memory.remember("Engineer", key="role", category="work_context")
    assert isinstance(memory.remember("Baker", key="role", confidence=0.5), recollect.Demoted)


DOCS = Path(__file__).parent.parent


def test_the_first_lines_of_readme_and_quickstart_run_one_after_the_other_in_one_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for page in ("README.md", "docs/quickstart-agents.md", "README.md"):
        (code, *_) = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
        exec(compile(code, page, "exec"), {})
        told = capsys.readouterr().out
        assert told.startswith("Already known: role: Senior Backend Engineer\n"), page
        assert "twelve tomatoes" in told, page
    assert [one.content for one in recollect.open("data/memory").user("u1").read(kind="fact")] == [
        "Senior Backend Engineer"
    ]


# what is left after an erasure is said, whatever was erased


def test_R7_erasing_a_topic_tells_of_the_copy_that_a_repair_set_aside(root: Path) -> None:
    cli(root, "remember", "Adores zebras", "--user", "me")
    cli(root, "remember", "Likes tea", "--user", "me")
    cli(root, "rebuild", "--force", "--yes", "--user", "me")
    for arguments in (["--topic", "tea"], ["--topic", "zebra"]):
        told = cli(root, "erase", *arguments, "--yes", "--user", "me")
        assert "Delete the file to be sure" in flat(told.stdout + told.stderr)
    receipt = recollect.open(root).user("me").erase_topic("zebra")[1]
    assert receipt is None  # nothing was there any more


@pytest.mark.parametrize("command", ["erase", "forget"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["role", "--topic", "tea"], "exactly one of these, not several together"),
        ([], "name a record, or use --topic"),
    ],
)
def test_U3_a_reference_and_a_topic_exclude_each_other_and_that_is_said(
    root: Path, command: str, arguments: list[str], said: str
) -> None:
    cli(root, "remember", "Likes tea", "--user", "me")
    told = cli(root, command, *arguments, "--yes", "--user", "me", code=2).stderr
    assert said in flat(told)
    assert [one.text for one in recollect.open(root).user("me").read()] == ["Likes tea"]


# verify says what is wrong with a file

ODD: dict[str, Callable[[Path], object]] = {
    "directory": Path.mkdir,
    "FIFO": os.mkfifo,
    "link to itself": lambda path: path.symlink_to(path.name),
    "No such file": lambda path: path.symlink_to("nowhere/at-all"),
    "not UTF-8": lambda path: path.write_bytes(b"- \xff\xfe\n"),
}


@pytest.mark.parametrize("name", ["MEMORY.md", "memory/2026-02-12.md"])
@pytest.mark.parametrize("what", ODD)
def test_F9_verify_says_what_is_wrong_with_a_file_and_what_to_do(root: Path, name: str, what: str) -> None:
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("me")
        memory.remember("Likes tea")
        memory.jot("Had tea")
        path = root / "me" / name
        path.unlink()
        ODD[what](path)
        (problem,) = memory.verify()
        assert name in problem
        assert what in problem
        told = cli(root, "verify", "--user", "me", code=1)
        assert "move it away" in flat(told.stdout)
        assert "rebuild" not in told.stdout + told.stderr
        path.rename(path.with_name("away"))
        memory.jot("More tea")
        assert memory.verify() == []
        assert "tea" in path.read_text("utf-8")


def test_F4_verify_takes_over_an_edited_daily_note_first(root: Path) -> None:
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("me")
        memory.jot("Had tea")
        note = root / "me" / "memory" / "2026-02-12.md"
        note.write_text(note.read_text("utf-8") + "- Had cake\n", "utf-8")
        assert memory.verify() == []
        assert [one.text for one in memory.read()] == ["Had tea", "Had cake"]


# whatever is handed in, the error is ours and says what to pass

JUNK = [5, -1, True, b"x", ["a"], {"a": 1}, object(), 1.5, float("nan"), "\x00", "\ud800"]


def _raises_only_ours(call: Callable[[], object]) -> None:
    try:
        call()
    except RecollectError as error:
        assert len(str(error)) > 10


@pytest.mark.parametrize("setting", [f.name for f in fields(recollect.Config)])
def test_U8_a_setting_of_the_wrong_type_is_named(root: Path, setting: str) -> None:
    default = getattr(recollect.Config(), setting)
    for value in [None, *JUNK]:
        for call in (recollect.Config, partial(recollect.Config.load, {}), partial(recollect.open, root)):
            _raises_only_ours(lambda call=call, value=value: call(**{setting: value}))  # type: ignore[misc]
    if not isinstance(default, str | Path):
        with pytest.raises(ConfigError, match=f"{setting}=.* must be"):
            recollect.Config(**dict[str, Any]({setting: "abc"}))


def test_U8_what_open_cannot_use_is_said_with_what_to_pass(root: Path) -> None:
    for arguments, said in (
        (dict[str, Any](max_words="abc"), r"MEMORY_MAX_WORDS \(max_words=\) must be a whole number, not str"),
        (dict[str, Any](files=True), "files: must be a path, not bool"),
        (dict[str, Any](clock=5), "clock: must be a function"),
        (dict[str, Any](config=5), "config: must be a recollect.Config, not int"),
        (dict[str, Any](embedder=5), "embedder"),
        (dict[str, Any](colour="red"), "no setting 'colour'"),
    ):
        with pytest.raises(RecollectError, match=said):
            recollect.open(root, **arguments)
    with pytest.raises(InvalidInputError, match="must be a folder, a postgresql:// address, or a store"):
        recollect.open(5)  # type: ignore[arg-type]
    with recollect.open(memory_dir=str(root)) as app:
        assert app.user("me").remember("Likes tea").done
    assert (root / "me" / "MEMORY.md").exists()


def _calls(label: str, thing: object, needed: dict[str, Any], skipped: tuple[str, ...] = ()) -> list[Any]:
    """Every public method of a thing, with junk for one argument at a time."""
    found = []
    for name, method in inspect.getmembers(thing, callable):
        if name.startswith("_") or name in skipped:
            continue
        parameters = inspect.signature(method).parameters.values()
        given = {p.name: needed.get(p.name, "me") for p in parameters if p.default is p.empty and p.kind <= 1}
        for p in parameters:
            if p.kind == p.VAR_POSITIONAL:
                found += [(f"{label}.{name}", partial(method, *given.values(), value)) for value in JUNK]
            elif p.kind != p.VAR_KEYWORD:
                found += [(f"{label}.{name}({p.name})", partial(method, **{**given, p.name: value})) for value in JUNK]
    return found


def test_no_public_function_answers_junk_with_a_raw_error(app: recollect.Recollect) -> None:
    app.user("1").remember("Likes tea")
    commands = Commands(app, ("telegram", "1"))
    makers: list[Callable[[Any], object]] = [
        recollect.AsyncMemory,
        recollect.Memory,
        partial(recollect.Suite, tools=[]),
        lambda junk: recollect.Recollect(junk, recollect.Config(), folder=None),
        lambda junk: Commands(junk, ("telegram", "1")),
        lambda junk: Commands(app, junk),
        connect,
        Client,
        lambda junk: RemoteMemory(junk, "me"),
        lambda junk: connect("http://127.0.0.1:9", key=junk),
        lambda junk: connect("http://127.0.0.1:9", timeout=junk),
    ]
    with app.queue() as queue:
        calls = [(repr(maker), partial(maker, junk)) for maker in makers for junk in JUNK]
        calls += _calls("app", app, {"queue": queue}, ("close", "queue"))
        calls += _calls("identities", app.identities, {"identity": ("telegram", "1"), "code": "ABCD"}, ("close",))
        calls += _calls("suite", app.tools("1"), {"arguments": {}})
        calls += _calls("commands", commands, {})
        for name, call in calls:
            try:
                answer = call()
                if isinstance(answer, Iterator):
                    list(answer)
                if inspect.iscoroutine(answer):
                    asyncio.run(answer)
            except RecollectError as error:
                assert len(str(error)) > 10, name
            except Exception as error:
                pytest.fail(f"{name}: {type(error).__name__}: {error}")


def test_the_client_says_that_something_cannot_be_sent() -> None:
    client = connect("http://127.0.0.1:9", timeout=1)
    bad: list[Callable[[], object]] = [
        lambda: client.call("me", "recall", {"query": object()}),
        lambda: client.call("me", 5),  # type: ignore[arg-type]
        lambda: client.call("me", "recall", suites=5),  # type: ignore[arg-type]
        lambda: client.task("me", None),  # type: ignore[arg-type]
        lambda: client.token("me", minutes=float("nan")),  # type: ignore[arg-type]
        lambda: client.declarations("\ud800"),
    ]
    for call in bad:
        with pytest.raises(InvalidInputError):
            call()


@pytest.mark.parametrize("text", [None, 5, b"/memory"])
def test_U1_a_command_is_a_text(app: recollect.Recollect, text: Any) -> None:
    for call in (Commands(app, ("telegram", "1")).run, Commands.owns):
        with pytest.raises(InvalidInputError, match="text: must be text"):
            call(text)


def test_U1_an_empty_section_is_shown_as_empty(app: recollect.Recollect) -> None:
    app.identities.memory(("test", "ann")).remember("Likes tea", category="preference")
    commands = Commands(app, ("test", "ann"))
    assert "There is nothing here yet." in str(commands.run("/memory work"))
    assert "I don't know" in str(commands.run("/memory wxyz"))


def test_U1_undo_after_a_setting_lists_all_that_it_would_undo(app: recollect.Recollect) -> None:
    memory = app.identities.memory(("test", "ann"))
    with memory.acting(run="run-of-two").batch() as both:
        both.remember("Likes green tea")
        both.remember("Plays the oboe")
    memory.pause()
    memory.resume()
    page = str(Commands(app, ("test", "ann")).run("/memory undo"))
    assert "green tea" in page and "oboe" in page


# a daily note that is no longer kept takes nothing


def test_R6_nothing_is_noted_for_a_day_that_is_no_longer_kept(root: Path) -> None:
    with recollect.open(root, clock=FrozenClock(), daily_retention_days=90) as app:
        memory = app.user("me")
        assert memory.jot("On the last day that is kept", day="2025-11-14").done
        late: dict[str, Any] = {"content": "Too late", "day": "2025-11-13"}
        calls: list[Callable[[], object]] = [
            partial(memory.jot, **late),
            partial(memory.remember, durability="daily", **late),
            partial(memory.remember, confidence=0.5, **late),
        ]
        for call in calls:
            with pytest.raises(InvalidInputError, match=r"day: 2025-11-13 is too long ago.* 90 days.* 2025-11-14"):
                call()
        told = cli(root, "jot", "Too late", "--day", "2020-01-01", "--user", "me", code=2).stderr
        assert "too long ago" in flat(told)
        memory.upkeep()
        assert [one.text for one in memory.read()] == ["On the last day that is kept"]


@pytest.mark.parametrize("day", ["2026-02-11", "2026-02-14"])
def test_R6_the_answer_names_the_day_that_was_given(root: Path, day: str) -> None:
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("me")
        assert memory.remember("Had tea", durability="daily", day=day).message == f"Noted for {day}: Had tea"
        assert f"uncertain, noted for {day}: Had" in memory.remember("Had cake", confidence=0.5, day=day).message
        assert f"noted for {day} only" in memory.remember("Had a cold", confidence=0.4, day=day).message
        assert memory.remember("Had pie", durability="daily").message == "Noted for today: Had pie"
        assert "today" not in memory.jot("Had jam", day=day).message


# the chat without a model

ASKED = [
    "where do I live?",
    "Where am I based",
    "wo wohne ich?",
    "où est-ce que j'habite ?",
    "де я живу?",
    "who is my dentist",
]


@pytest.mark.parametrize("question", ASKED)
def test_G1_without_a_model_the_chat_answers_from_memory_or_says_that_it_does_not_know(
    app: recollect.Recollect, question: str
) -> None:
    talk = Conversation(app, ("test", "ann"), place="chat")
    talk.say("Hello")
    assert "I have nothing about that in memory." in _text(talk.say(question))
    memory = app.identities.memory(("test", "ann"))
    memory.remember("Lviv", key="location", category="personal_context")
    memory.remember("Dr. Lviv", key="dentist")
    memory.remember("Likes tea")
    told = _text(talk.say(question))
    assert "Lviv" in told
    assert "tea" not in told


def test_G1_the_chat_answers_from_what_was_just_said(app: recollect.Recollect) -> None:
    talk = Conversation(app, ("test", "ann"), place="chat")
    talk.say("I live in Lviv")
    assert "I live in Lviv" in _text(talk.say("where do I live?"))


def test_U1_the_chat_leaves_no_state_of_its_own_in_the_memory(app: recollect.Recollect) -> None:
    Conversation(app, ("test", "ann"), place="chat").say("I live in Lviv")
    memory = app.identities.memory(("test", "ann"))
    assert {one.kind for one in memory.read()} == {"message"}


def _text(pages: list[ChatPage]) -> str:
    return "\n".join(line.text for page in pages for line in page.lines)


# HTTP


def test_U5_every_response_of_the_server_has_a_request_id(app: recollect.Recollect) -> None:
    with serving(app) as url, httpx.Client(base_url=url) as http:
        for path, headers, status in (
            ("/health/live", {}, 200),
            ("/health/ready", {}, 200),
            ("/health/live", {"host": "elsewhere.example"}, 421),
            ("/v1/users", {"host": "elsewhere.example"}, 421),
            ("/v1/users", {}, 200),
            ("/v1/nothing", {}, 404),
            ("/health/live", {"origin": "https://elsewhere.example"}, 403),
            ("/nowhere", {}, 404),
            ("/console/", {}, 200),
        ):
            for given in (None, "my-id-1"):
                sent = headers | ({"x-request-id": given} if given else {})
                answer = http.get(path, headers=sent)
                assert answer.status_code == status, path
                (found,) = answer.headers.get_list("x-request-id")
                assert found == given if given else found.startswith("request-")
                if "problem" in answer.headers["content-type"]:
                    assert answer.json()["request_id"] == found


def test_U5_the_head_of_a_request_is_bounded(app: recollect.Recollect) -> None:
    with serving(app) as url:
        assert httpx.get(f"{url}/health/live", headers={"x-long": "x" * 60_000}).status_code == 200
        try:
            assert httpx.get(f"{url}/health/live", headers={"x-long": "x" * 200_000}).status_code == 400
        except httpx.TransportError:
            pass  # it hung up before all of it was sent


# out and in


def test_R8_export_and_import_count_the_same_archive_alike(root: Path, tmp_path: Path) -> None:
    with recollect.open(root) as app:
        memory = app.user("me")
        memory.remember("Likes tea", key="drink")
        memory.forget(memory.note("Bought cake").record.id)  # type: ignore[attr-defined]
        memory.say("Hello", session="s")
        assert memory.count() == {"fact": 1, "message": 1}
        assert memory.count(status="archived") == {"note": 1}
        assert memory.count(status="all") == {"fact": 1, "message": 1, "note": 1}
    archive, other = str(tmp_path / "memory.zip"), tmp_path / "other"
    held = "1 fact, 1 message, 1 forgotten or superseded"
    assert f": {held}, " in flat(cli(root, "export", archive, "--user", "me").stdout)
    restored = flat(cli(other, "import", archive, "--user", "me").stdout)
    assert "3 written" in restored
    assert f"Restored: {held}." in restored
    again = flat(cli(other, "import", archive, "--yes", "--user", "me").stdout)
    assert "0 written, 2 already known" in again  # what is forgotten is not remembered again
    assert "Restored" not in again


# reading deletes nothing


@pytest.mark.parametrize("blank", ["", "\n", "  \n\n", "\ufeff\n"])
def test_F4_a_blank_daily_note_of_the_person_stays_as_it_is(root: Path, blank: str) -> None:
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("me")
        memory.remember("Likes tea")
        note = root / "me" / "memory" / "2026-02-11.md"
        note.parent.mkdir(exist_ok=True)
        note.write_text(blank, "utf-8")
        for act in (memory.read, memory.verify, memory.upkeep, lambda: memory.daily("2026-02-11")):
            act()
            assert note.read_text("utf-8") == blank
        assert memory.verify() == []
        memory.jot("Had tea", day="2026-02-11")
        assert "- Had tea" in note.read_text("utf-8")


def test_F9_the_schema_is_read_from_disk_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recollect.open(root).user("first").remember("Likes tea")
    read: list[str] = []
    whole = Path.read_text

    def noted(path: Path, *how: Any, **more: Any) -> str:
        read.append(path.suffix)
        return whole(path, *how, **more)

    monkeypatch.setattr(Path, "read_text", noted)
    recollect.open(root).user("second").remember("Likes tea")
    assert ".sql" not in read


# what the pages say is true


def test_the_pages_name_only_errors_that_can_be_imported() -> None:
    homes = [recollect.errors, recollect.client, builtins, work_contract, write]
    for page in [DOCS / "README.md", *(DOCS / "docs").glob("*.md")]:
        for name in set(re.findall(r"`([A-Z]\w+Error)\b", page.read_text("utf-8"))):
            assert any(hasattr(home, name) for home in homes), f"{page.name}: {name}"


def test_U5_the_page_about_http_names_every_route(app: recollect.Recollect) -> None:
    page = (DOCS / "docs" / "http.md").read_text("utf-8")
    verbs = {f"/v1/users/{{user}}/{verb}" for verb in VERBS}
    with serving(app) as url:
        paths = httpx.get(f"{url}/v1/openapi.json").json()["paths"]
    for path in paths.keys() - {path.replace("_", "-") for path in verbs} - verbs:
        first = "/".join(path.split("/")[:3])
        assert first in page, path


def test_U3_the_page_about_the_command_line_names_every_option() -> None:
    page = (DOCS / "docs" / "cli.md").read_text("utf-8")
    common = page[page.index("## Common options") : page.index("## Remember")]
    for name, command in get_command(program).commands.items():  # type: ignore[attr-defined]
        section = re.search(rf"^### {re.escape(name)}\n.*?(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
        assert section is not None, name
        options = {one for p in getattr(command, "params", []) for one in p.opts if one.startswith("--")}
        missing = {one for one in options - {"--help"} if one not in section[0] and f"`{one}" not in common}
        assert not missing, f"{name}: {missing}"
