"""The command line: the real program where it matters (streams, exit codes, questions on a terminal), and
typer's runner for the breadth."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import recollect
from recollect.config import Config
from recollect.records import Hit, Note
from recollect.search.tokens import count
from recollect.surfaces.cli import chat as _chat  # noqa: F401
from recollect.surfaces.cli import (  # noqa: F401  (their commands)
    extraction,
    identity,
    interaction_commands,
    mcp,
    memory_commands,
    read_commands,
    remove_commands,
    tools,
    tour,
    usage_metrics,
    work,
    write_commands,
)
from recollect.surfaces.cli import interests as _interests  # noqa: F401
from recollect.surfaces.cli import keys as _keys  # noqa: F401
from recollect.surfaces.cli import serve as _serve  # noqa: F401
from recollect.surfaces.cli import telegram as _telegram  # noqa: F401
from recollect.surfaces.cli.output import (
    MarkedCell,
    Output,
    count_each,
    explain_score,
    progress,
    shorten_line,
    strip_steering,
)
from recollect.surfaces.cli.program import PANELS, app, exit_code, program
from recollect.testing import FrozenClock
from tests.contracts.store_contract import tool_call
from tests.fakes.embedding_server import EmbeddingServer
from tests.program import ProgramProcess, run_separately

DOCS = Path(__file__).parents[1] / "docs" / "cli.md"
SOURCE = Path(recollect.__file__).parents[1]
KEY = "sk-proj-" + "4f9aXb72Lq" * 3
YESTERDAY = (datetime.now(timezone.utc) - timedelta(days=1)).date().isoformat()


@dataclass
class Cli:
    """The program on a folder of its own."""

    root: Path

    def __call__(self, *args: str, code: int = 0, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(app, [*args, "--root", str(self.root)], input=stdin)
        assert result.exit_code == code, f"{args}: {result.exit_code}\n{result.stdout}\n{result.stderr}"
        return result

    def json(self, *args: str, code: int = 0, stdin: str | None = None) -> Any:
        return json.loads(self(*args, "--json", code=code, stdin=stdin).stdout)

    def remember(self, *args: str) -> str:
        """Remember something, and give its id."""
        return str(self.json("remember", *args)["record"]["id"])


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "memory")


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_", "NO_COLOR"))}
    return kept | {"PYTHONPATH": str(SOURCE), "TERM": "xterm-256color"} | more


def run(*args: str, stdin: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """The real program, with pipes."""
    return run_separately(*args, input=stdin, env=environment(**variables), timeout=120)


def on_terminal(*args: str, answer: str = "", columns: int = 80, **variables: str) -> tuple[int, str]:
    """The real program on a pseudo-terminal; the answer is typed once it asks."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    child = ProgramProcess(*args, stdin=inside, stdout=inside, stderr=inside, env=environment(**variables))
    os.close(inside)
    shown = b""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:  # Linux says so when the other end is closed
            break
        if not data:
            break
        shown += data
        if answer and shown.rstrip().endswith(b"[y/N]"):
            os.write(terminal, f"{answer}\n".encode())
            answer = ""
    os.close(terminal)
    return child.wait(timeout=120), shown.decode().replace("\r\n", "\n")


def without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@contextmanager
def at(moment: datetime, root: Path) -> Iterator[recollect.Memory]:
    with recollect.open(root, clock=FrozenClock(moment)) as opened:
        yield opened.user("me")


# help


def test_U3_help_lists_every_command_in_groups() -> None:
    shown = run("--help").stdout.decode()
    for panel in PANELS:
        assert f"\n{panel}:\n" in shown
    for name, command in program().commands.items():
        assert re.search(rf"^  {name} +\S", shown, re.MULTILINE)
        assert command.help
        assert "..." not in command.get_short_help_str(64), name
    assert max(map(len, shown.splitlines())) <= 80


def test_U3_help_and_version_answer_at_once() -> None:
    heavy = "print({'rich', 'pydantic'} & set(sys.modules))"
    code = f"import sys\nfrom recollect.surfaces.cli import main\ntry:\n    main()\nfinally:\n    {heavy}"
    for option in ("--help", "--version"):
        answer = subprocess.run(
            [sys.executable, "-c", code, option], capture_output=True, env=environment(), timeout=120, check=True
        )
        assert answer.stdout.decode().splitlines()[-1] == "set()"


def test_version() -> None:
    expected = f"recollect {recollect.__version__}\n"
    assert run("--version").stdout.decode() == expected
    assert CliRunner().invoke(app, ["--version"]).stdout == expected


def test_no_command_shows_the_help() -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    assert "Usage: recollect" in result.stdout


@pytest.mark.parametrize("name", sorted(program().commands))
def test_U3_each_command_explains_itself_and_takes_the_shared_options(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    for expected in ("--user", "--root", "--files", "--json", "Examples:\n  "):
        assert expected in result.stdout


# documentation


def _documented_lines() -> list[str]:
    blocks = re.findall(r"^```\n(.*?)^```", DOCS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    examples = [line for command in program().commands.values() for line in (command.epilog or "").splitlines()]
    return [line for line in lines + examples if re.search(r"(^|\s)recollect\s", line)]


def test_U3_every_command_and_option_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    told = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text, re.IGNORECASE))
    whole = program()
    for name, command in whole.commands.items():
        assert f"\n### {name}\n" in text, f"docs/cli.md has no section on {name}"
        group = text[: text.index(f"\n### {name}\n")].rpartition("\n## ")[2].partition("\n")[0]
        assert group == getattr(command, "rich_help_panel", None), f"docs/cli.md has {name} in another group"
        below = list(getattr(command, "commands", {}).values())
        for parameter in [parameter for each in (command, *below) for parameter in each.params]:
            if parameter.param_type_name == "option":
                missing = {option for option in parameter.opts if option.startswith("--")} - told
                assert not missing, f"docs/cli.md does not mention {missing} of {name}"
    assert {option for parameter in whole.params for option in parameter.opts} <= told
    for code in (0, 1, 2, 3, 4, 130, 141):
        assert f"| {code} |" in text


def test_documented_command_lines_are_valid() -> None:
    lines = _documented_lines()
    assert len(lines) > 60
    whole = program()
    for line in lines:
        typed = re.split(r"[<>|](?![^\"]*\"[^\"]*$)", line[line.index("recollect") :])[0]
        name, *args = shlex.split(typed)[1:]
        if not name.startswith("-"):
            with whole.commands[name].make_context(name, args):
                pass


# exit codes


def test_U3_exit_0_when_done(cli: Cli) -> None:
    result = cli("remember", "Drinks tea", "--category", "preference")
    assert result.stdout.splitlines()[0] == "Remembered: Drinks tea"
    assert re.fullmatch(r"  fact-[0-9a-z]{26}", result.stdout.splitlines()[1])
    assert result.stderr == ""


def test_U3_exit_1_when_the_policy_says_no(cli: Cli) -> None:
    cli("remember", "Engineer", "--key", "role")
    again = cli("remember", "engineer!", "--key", "role", code=1)
    assert (again.stdout, again.stderr.splitlines()[0]) == ("", "Already known: role: Engineer")
    conflict = cli("remember", "Teacher", "--key", "role", code=1)
    assert "already known as 'Engineer'" in conflict.stderr
    assert 'recollect update role "…"' in conflict.stderr
    secret = cli("remember", f"My key is {KEY}", code=1)
    assert "secret" in secret.stderr
    assert KEY not in secret.stderr + secret.stdout
    cli("pause")
    assert "paused" in cli("remember", "Drinks tea", code=1).stderr


@pytest.mark.parametrize(
    "args",
    [
        ("nonsense",),
        ("read", "--nonsense"),
        ("remember",),
        ("remember", "x", "--category", "nonsense"),
        ("remember", "x", "--confidence", "7"),
        ("remember", " "),
        ("remember", "x", "--metadata", "nonsense"),
        ("say", "no session"),
        ("read", "--user", "a\nb"),
        ("remember", "x", "--valid-from", "yesterday"),
        ("remember", "x", "--root", "ftp://x"),
        ("show", "--files", "x"),
        ("import", "/nowhere/at/all"),
        ("forget", "--yes"),
        ("erase", "--yes", "a", "--everything"),
    ],
)
def test_U3_exit_2_for_wrong_usage_in_one_line(cli: Cli, args: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, list(args) if "--root" in args else [*args, "--root", str(cli.root)])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert re.fullmatch(r"recollect: [^\n]+\n", result.stderr)


def test_U3_exit_3_for_what_is_not_there(cli: Cli) -> None:
    for args in (
        ["show"],
        ["read"],
        ["search", "x"],
        ["get", "x"],
        ["history"],
        ["export"],
        ["verify"],
        ["undo"],
    ):
        assert cli(*args, code=3).stderr == "recollect: There is no memory for 'me' yet.\n"
    assert not cli.root.exists(), "reading must create nothing"
    cli("remember", "Engineer", "--key", "role")
    assert "nothing is remembered under 'city'" in cli("get", "city", code=3).stderr
    cli("forget", "city", "--yes", code=3)
    cli("undo", "99", code=3)
    cli("scratch", "plan", code=3)
    cli("daily", "2020-01-01", code=3)
    cli("erase", "--topic", "zebra", "--yes", code=3)
    cli("forget", "--topic", "zebra", "--yes", code=3)
    cli("remember", "Teacher", "--key", "role", "--category", "work_context")
    assert "could be any of" in cli("get", "role", code=3).stderr


def test_U3_exit_4_when_the_storage_fails(cli: Cli) -> None:
    cli("remember", "Drinks tea")
    (cli.root / "me" / "memory.db").write_bytes(b"not a database" * 100)
    failed = cli("read", code=4)
    assert re.fullmatch(r"recollect: [^\n]+recollect rebuild[^\n]+\n", failed.stderr)
    cli("users", code=4)
    cli("upkeep", "--all", code=4)
    error = json.loads(cli("read", "--json", code=4).stderr)
    assert error["error"] == "store_corrupt"


def test_U3_an_export_into_a_folder_that_does_not_exist_is_refused(cli: Cli, tmp_path: Path) -> None:
    cli("remember", "Drinks tea")
    assert cli("export", str(tmp_path / "no" / "such" / "folder.zip"), code=2).stderr.startswith(
        f"recollect: path: the folder {tmp_path / 'no' / 'such'} does not exist"
    )


def test_U3_exit_130_when_interrupted(tmp_path: Path) -> None:
    args = ("remember", "-", "--root", str(tmp_path))
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with ProgramProcess(*args, **pipes, env=environment()) as child:
        for _ in range(300):  # until it waits for its standard input
            if Path(f"/proc/{child.pid}/wchan").exists() and _reads_input(child.pid):
                break
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    assert child.returncode == 130
    assert out == b""
    assert b"Traceback" not in err


def _reads_input(pid: int) -> bool:
    """Whether the process is blocked in read(0, …); where the system does not tell, wait a little instead."""
    try:
        call = Path(f"/proc/{pid}/syscall").read_text().split()
    except OSError:
        time.sleep(1)
        return True
    return call[0] in ("0", "63") and call[1] == "0x0"  # read, on x86-64 and on ARM; mmap begins with 0, too


def test_a_reader_that_leaves_ends_the_program_quietly(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as opened, opened.user("me").batch() as memory:
        for number in range(1500):
            memory.say(f"{number}, and some words to fill the pipe that nobody reads to its end", session="s")
    args = ("read", "--root", str(tmp_path))
    with ProgramProcess(*args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr is not None
        assert child.stderr.read() == b""
    assert child.returncode == 141


def test_every_error_has_an_exit_code() -> None:
    from recollect import errors

    for name in dir(errors):
        error = getattr(errors, name)
        if isinstance(error, type) and issubclass(error, errors.RecollectError):
            args = ("x", "y") if name in ("InvalidInputError", "LinkError", "MissingExtraError", "ModelError") else ()
            assert exit_code(error(*args)) in (1, 2, 3, 4)


# streams and JSON, with the real program


def test_U3_json_is_one_document_and_errors_go_to_stderr(tmp_path: Path) -> None:
    root = str(tmp_path / "m")
    written = run("remember", "Живе у Києві", "--json", "--root", root)
    assert written.stderr == b""
    answer = json.loads(written.stdout)
    assert (answer["outcome"], answer["done"], answer["record"]["content"]) == (
        "written",
        True,
        "Живе у Києві",
    )
    assert "Києві" in written.stdout.decode()
    again = run("remember", "Живе у Києві", "--json", "--root", root)
    assert (again.returncode, again.stderr) == (1, b"")
    assert json.loads(again.stdout)["outcome"] == "duplicate"
    missing = run("get", "nothing", "--json", "--root", root)
    assert (missing.returncode, missing.stdout) == (3, b"")
    assert json.loads(missing.stderr) == {
        "error": "not_found",
        "message": "nothing is remembered under 'nothing'",
    }
    misused = run("get", "--json", "--root", root)
    assert (misused.returncode, misused.stdout, json.loads(misused.stderr)["error"]) == (2, b"", "usage")


def test_U3_text_comes_from_standard_input_and_goes_to_a_pipe(tmp_path: Path) -> None:
    root = str(tmp_path / "m")
    assert (
        run("note", "-", "--title", "Minutes", "--root", root, stdin="Ми зустрілись\r\nу Львові".encode()).returncode
        == 0
    )
    shown = run("read", "--root", root)
    assert b"\x1b" not in shown.stdout
    assert shown.stdout.decode().splitlines()[1].endswith("  note  Minutes: Ми зустрілись у Львові")
    assert run("note", "-", "--root", root, stdin=b"\xff\xfe").returncode == 2


def test_an_old_terminal_encoding_loses_nothing(tmp_path: Path) -> None:
    root = str(tmp_path / "m")
    told = run("remember", "Живе у Києві", "--root", root, PYTHONIOENCODING="ascii")
    assert told.returncode == 0
    assert b"\\u0416" in told.stdout
    read = run("read", "--json", "--root", root, PYTHONIOENCODING="ascii")
    assert json.loads(read.stdout)[0]["content"] == "Живе у Києві"


def test_U8_the_root_comes_from_the_settings_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    run("remember", "Drinks tea", MEMORY_DIR=str(tmp_path / "here"))
    assert (tmp_path / "here" / "me" / "MEMORY.md").exists()
    wrong = run("config", MEMORY_MAX_WORDS="many")
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    assert wrong.stderr.decode() == "recollect: MEMORY_MAX_WORDS is 'many'; it must be a whole number\n"
    settings = {row["variable"]: row for row in json.loads(run("config", "--json", MEMORY_MAX_WORDS="300").stdout)}
    assert settings.keys() == {variable for variable, _, _ in Config.table()}
    assert (settings["MEMORY_MAX_WORDS"]["value"], settings["MEMORY_MAX_WORDS"]["default"]) == ("300", "2000")


def test_U8_config_shows_every_setting_without_a_password(cli: Cli) -> None:
    shown = cli("config").stdout
    for variable, _, description in Config.table():
        assert f"{variable} = " in shown
        assert description in shown
    result = CliRunner().invoke(app, ["config", "--root", "postgresql://anna:hidden@db/x"])
    assert "postgresql://anna:***@db/x" in result.stdout
    assert "hidden" not in result.stdout


# questions


def test_U1_forget_asks_on_a_terminal(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli("remember", "Lviv", "--key", "city")
    code, shown = on_terminal("forget", "city", "--root", str(tmp_path), answer="n")
    assert code == 1
    assert "city: Lviv" in shown
    assert "Nothing was changed." in shown
    assert cli.json("get", "city")["content"] == "Lviv"
    code, shown = on_terminal("forget", "city", "--root", str(tmp_path), answer="y")
    assert code == 0
    assert "Forgotten: city: Lviv" in shown
    cli("get", "city", code=3)


def test_U1_clear_asks_on_a_terminal(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli("remember", "Lviv", "--key", "city")
    code, shown = on_terminal("clear", "--root", str(tmp_path), answer="yes")
    assert code == 0
    assert "Permanently erase everything known about 'me' (1 fact)? [y/N]" in shown
    assert cli.json("read") == []


@pytest.mark.parametrize(
    "args",
    [
        ("forget", "city"),
        ("forget", "--topic", "Lviv"),
        ("erase", "city"),
        ("erase", "--everything"),
        ("clear",),
        ("rebuild", "--force"),
    ],
)
def test_U3_without_a_terminal_what_takes_away_needs_yes(cli: Cli, args: tuple[str, ...]) -> None:
    cli("remember", "Lviv", "--key", "city")
    refused = cli(*args, code=2, stdin="y\n")
    assert "add --yes" in refused.stderr
    assert json.loads(cli(*args, "--json", code=2).stderr)["error"] == "confirmation"
    assert cli.json("get", "city")["content"] == "Lviv"
    assert len(cli.json("history")) == 1


def test_U3_a_dry_run_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    first = cli.remember("Drinks green tea")
    second = cli.remember("Plays the cello on Sundays")
    cli("remember", "Lviv", "--key", "city")
    cli("export", str(tmp_path / "all.zip"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.md").write_text("# One\n\nSomething new.\n", encoding="utf-8")
    before = (cli.json("history"), cli("show").stdout, cli.json("read", "--status", "all"))
    for args in (
        ["forget", "city"],
        ["forget", "--topic", "tea"],
        ["erase", "city", first],
        ["erase", "--topic", "cello"],
        ["erase", "--everything"],
        ["clear"],
        ["undo"],
        ["merge", first, second, "--content", "Drinks tea and plays the cello"],
        ["import", str(tmp_path / "notes")],
        ["import", str(tmp_path / "all.zip")],
        ["rebuild", "--force"],
        ["upkeep"],
        ["upkeep", "--all"],
    ):
        assert cli(*args, "--dry-run").stderr.endswith("Dry run: nothing was changed.\n"), args
        answer = cli.json(*args, "--dry-run")
        assert (answer[0] if isinstance(answer, list) else answer)["dry_run"] is True
    assert (cli.json("history"), cli("show").stdout, cli.json("read", "--status", "all")) == before
    assert cli("verify").stdout == "me: no problems found\n"


# how it looks


def test_U3_on_a_terminal_it_is_drawn_within_80_columns(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli("remember", "Works on payments, mostly the ledger, " + "and is on call every fourth week " * 6)
    cli("note", "\N{FAMILY} " + "日本語のメモ " * 30, "--title", "長い")
    log(cli, tool_call("call-1", tool="memory_get_relevant_context", status="refused", outcome="refused:paused"))
    cli("consent", "trends")
    for args in (["read"], ["history"], ["search", "payments"], ["show"], ["users"], ["calls"], ["consent"]):
        code, shown = on_terminal(*args, "--root", str(tmp_path))
        assert code == 0
        assert "\x1b[" in shown
        assert max(len(line) for line in without_colour(shown).splitlines()) <= 80
    _, plain = on_terminal("read", "--root", str(tmp_path), NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", plain)
    _, raw = on_terminal("show", "--raw", "--root", str(tmp_path))
    assert "# User Memory\n" in raw


def test_a_table_in_a_pipe_has_one_line_for_each_row(cli: Cli) -> None:
    cli("note", "one\ntwo " + "long " * 40, "--title", "T")
    cli("remember", "日本語", "--key", "language")
    lines = cli("read").stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["what", "note", "key_fact"]
    assert all(line == line.rstrip() for line in lines)


def test_control_sequences_never_reach_a_terminal(cli: Cli, tmp_path: Path) -> None:
    cli("remember", "Drinks tea")
    file = cli.root / "me" / "MEMORY.md"
    file.write_text(file.read_text(encoding="utf-8") + "\nprose \x1b[31mred\n", encoding="utf-8")
    assert "\x1b[31m" in cli("show").stdout, "a pipe gets the file as it is"
    for option in ([], ["--raw"]):
        _, shown = on_terminal("show", *option, "--root", str(cli.root))
        assert "\x1b[31mred" not in shown
    assert strip_steering("a\x1b]0;x\x07b\tc\n") == "a\ufffd]0;x\ufffdb\tc\n"


def test_shortened_and_counted() -> None:
    assert shorten_line("a  b\nc", 10) == "a b c"
    assert shorten_line("abcdef", 4) == "abc…"
    assert count_each({"fact": 2, "daily": 1, "note": 0, "scratch": 2}) == "2 facts, 1 daily entry, 2 scratch items"


def test_U3_a_bar_appears_only_on_a_terminal_and_when_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def shown(stream: io.StringIO, patience: float) -> str:
        monkeypatch.setattr("recollect.surfaces.cli.output._PATIENCE", patience)
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm-256color")
        with progress("Counting") as tell:
            tell(1, 4)
            tell(2, 4)
        return stream.getvalue()

    assert "Counting" in shown(Terminal(), -1.0)
    assert shown(Terminal(), 60.0) == ""
    assert shown(io.StringIO(), -1.0) == ""


def test_json_answers_print_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(as_json=True)
    out.line("x")
    out.aside("x")
    out.raw("x")
    out.table(("a",), [("b",)])
    out.markdown("# x")
    out.document({"day": datetime(2026, 2, 12, tzinfo=timezone.utc), "path": Path("a"), "none": None})
    told = capsys.readouterr()
    assert json.loads(told.out) == {"day": "2026-02-12T00:00:00.000000Z", "path": "a", "none": None}
    assert told.err == ""


# the verbs


def test_U3_everything_a_fact_can_have(cli: Cli) -> None:
    answer = cli.json(
        "remember",
        "Plays the cello",
        "--key",
        "Instrument",
        "--type",
        "skill",
        "--confidence",
        "0.9",
        "--importance",
        "0.8",
        "--source",
        "discussion:7",
        "--excerpt",
        "I practise daily",
        "--message",
        "message-1",
        "--tag",
        "music",
        "-t",
        "hobby",
        "--valid-from",
        "2020-01-01",
        "--expires-at",
        "2099-01-01",
        "--pinned",
        "--metadata",
        "teacher=Olena",
        "--session",
        "chat-1",
        "--agent",
        "tutor",
        "--untrusted",
        "--actor",
        "agent",
        "--run",
        "run-1",
    )
    record = answer["record"]
    expected = {
        "key": "instrument",
        "label": "Instrument",
        "category": "work_context",
        "type": "skill",
        "confidence": 0.9,
        "importance": 0.8,
        "source": "discussion:7",
        "excerpt": "I practise daily",
        "messages": ["message-1"],
        "tags": ["music", "hobby"],
        "pinned": True,
        "metadata": {"teacher": "Olena"},
        "session": "chat-1",
        "agent": "tutor",
        "trusted": False,
        "valid_from": "2020-01-01T00:00:00.000000Z",
        "expires_at": "2099-01-01T00:00:00.000000Z",
    }
    assert record.items() >= expected.items()
    entry = cli.json("history")[0]
    assert (entry["actor"], entry["run"], entry["op"]) == ("agent", "run-1", "remember")
    card = cli("get", "instrument").stdout
    for part in (
        "Instrument: Plays the cello",
        "fact · work_context · skill",
        "music, hobby",
        "tutor",
        "2099-01-01",
        "discussion:7 (untrusted)",
        "I practise daily",
        '{"teacher": "Olena"}',
        "pinned",
    ):
        assert part in card


def test_U3_the_other_kinds(cli: Cli) -> None:
    assert cli.json("remember", "Likes jazz", "--confidence", "0.2")["outcome"] == "demoted"
    assert cli.json("remember", "Saw a heron", "--durability", "daily")["record"]["kind"] == "daily"
    note = cli.json("note", "-", "--title", "T", "-t", "work", stdin="A long text.")["record"]
    assert (note["title"], note["tags"]) == ("T", ["work"])
    jotted = cli.json("jot", "Read a paper", "--section", "Reading Activity", "--day", YESTERDAY)["record"]
    assert (jotted["day"], jotted["section"]) == (YESTERDAY, "Reading Activity")
    assert cli.json("observe", "Retries hide it", "-c", "lesson")["record"]["category"] == "lesson"
    episode = cli.json("episode", "The move", "To Lviv.", "--participant", "Olena", "--valence", "positive")["record"]
    assert (episode["topic"], episode["participants"], episode["valence"]) == (
        "The move",
        ["Olena"],
        "positive",
    )
    said = cli.json("say", "Hello", "--session", "s1", "--speaker", "Anna", "--said-at", "2026-02-12")["record"]
    assert (said["session"], said["speaker"]) == ("s1", "Anna")
    assert cli.json("important", said["id"], "--level", "critical")[0]["importance"] == 1.0
    assert "Anna: Hello" in cli("important", said["id"]).stdout
    wrong = cli("important", note["id"], code=2).stderr
    assert f"{note['id']} is a note; only messages can be marked important" in wrong
    assert cli("scratch", "plan", "call").stdout == ""
    assert cli("scratch", "plan").stdout == "call\n"
    assert cli.json("scratch", "plan", "write") == {"key": "plan", "value": "write"}
    shown = cli("read").stdout
    for text in (
        "T: A long text.",
        f"{YESTERDAY}: Read a paper",
        "The move: To Lviv.",
        "Anna: Hello",
        "plan: write",
    ):
        assert text in shown
    assert "Olena" in cli("get", episode["id"]).stdout


def test_U3_reading(cli: Cli) -> None:
    cli("remember", "Drinks tea", "-c", "preference", "-t", "drink")
    cli("remember", "Engineer", "-k", "role", "-c", "work_context")
    cli("note", "Tea is sold at the market")
    assert [r["content"] for r in cli.json("read", "--kind", "fact", "--newest-first")] == [
        "Engineer",
        "Drinks tea",
    ]
    assert len(cli.json("read", "--category", "preference")) == 1
    assert len(cli.json("read", "--tag", "drink")) == 1
    assert [r["content"] for r in cli.json("read", "--limit", "1", "--offset", "1")] == ["Engineer"]
    short = cli("read", "--key", "role").stdout.splitlines()[1].split()[0]
    assert cli.json("get", short)["key"] == "role"
    assert cli.json("show")["text"] == cli("show").stdout
    assert "- Role: Engineer" in cli("show").stdout
    assert cli("read", "--status", "nonsense", code=2).stdout == ""


def test_U3_searching(cli: Cli) -> None:
    cli("remember", "Drinks tea", "-c", "preference")
    cli("note", "Tea is sold at the market")
    found = cli.json("search", "tea", "market", "--kind", "note")
    assert (found["query"], found["mode"], found["note"]) == ("tea market", "words", "")
    assert "give one of them" in cli("search", "tea", "--query", "coffee", code=2).stderr
    [hit] = found["hits"]
    assert hit.keys() == {"record", "score", "raw_score", "words", "signals", "passage", "earlier", "why"}
    assert hit["record"]["kind"] == "note" and 0 < hit["score"] <= 1
    assert hit["words"] == ["tea", "market"] and hit["why"].startswith("tea, market")
    assert sum(hit["signals"].values()) == pytest.approx(hit["raw_score"])
    assert hit["passage"] == "Tea is sold at the market"
    head, *lines = cli("search", "tea").stdout.splitlines()
    assert head.split() == ["score", "id", "what", "when", "text"]
    today = datetime.now(timezone.utc).date()
    assert re.fullmatch(rf" 0\.\d\d  [0-9a-z]{{8}}  preference  {today}  Drinks tea", lines[0])
    nothing = cli("search", "zebra")
    assert (nothing.stdout, nothing.stderr) == ("", "Nothing found.\n")
    assert cli.json("search", "zebra")["hits"] == []


def test_U3_searching_only_what_fits(cli: Cli) -> None:
    cli("remember", "Speaks of tea and Java", "--type", "skill", "-t", "work", "--source", "discussion:7")
    cli("remember", "Drank tea in Kyiv", "--valid-from", "2020-05-01")
    cli("remember", "Tea is for guests", "--key", "habit")
    cli("say", "I bought tea", "--session", "s1", "--speaker", "Anna", "--said-at", "2026-02-12")
    cli("say", "I bought tea as well", "--session", "s2", "--speaker", "Olena", "--said-at", "2026-03-12")

    def found(*args: str) -> list[str]:
        return sorted(hit["record"]["content"] for hit in cli.json("search", "tea", *args)["hits"])

    said = ["I bought tea", "I bought tea as well"]
    assert len(found()) == 3 and not set(said) & set(found())
    assert set(said) < set(found("--include-conversation", "--limit", "9"))
    assert found("--kind", "message") == said
    assert found("--include-conversation", "--speaker", "Anna") == said[:1]
    assert found("--include-conversation", "--session", "s2") == said[1:]
    assert found("--include-conversation", "--since", "2026-01-01", "--until", "2026-03-01") == said[:1]
    assert found("--until", "2021-01-01") == ["Drank tea in Kyiv"]
    for only in (["--type", "skill"], ["-t", "work"], ["--source", "discussion:7"], ["-c", "work_context"]):
        assert found(*only) == ["Speaks of tea and Java"], only
    cli("forget", "habit", "--yes")
    assert found("--status", "archived") == ["Tea is for guests"] and len(found()) == 2
    assert found("--status", "all", "--limit", "2", "--min-score", "0.99") == []
    dated = cli.json("search", "tea last month", "--now", "2020-06-10")["hits"][0]
    assert dated["record"]["content"] == "Drank tea in Kyiv" and dated["signals"]["date"] > 0
    for wrong in (["--kind", "nonsense"], ["--min-score", "7"], ["--since", "soon"], ["--limit", "0"]):
        cli("search", "tea", *wrong, code=2)


def test_U3_a_search_explains_itself(cli: Cli) -> None:
    cli("remember", "Drinks tea", "--importance", "0.9")
    cli("remember", "Sells tea to guests", "--confidence", "0.8")
    lines = cli("search", "tea", "--explain").stdout.splitlines()
    assert len(lines) == 5
    assert re.fullmatch(r" {8}\d\.\d\d = words \d\.\d\d \+ importance \d\.\d\d \(tea; important\)", lines[2])
    assert re.fullmatch(r" {8}\d\.\d\d = words \d\.\d\d - confidence \d\.\d\d \(tea\)", lines[4])
    total, parts = lines[2].strip().split(" = ")
    assert sum(map(float, re.findall(r"\d\.\d\d", parts))) == pytest.approx(float(total), abs=0.02)
    assert explain_score(Hit(record=_note("x"), score=0.0, raw_score=0.0)) == "0.00 = nothing"


def _note(content: str, title: str | None = None) -> Note:
    now = datetime(2026, 2, 12, tzinfo=timezone.utc)
    return Note(id="note-1", content=content, title=title, created_at=now, updated_at=now, valid_from=now)


def test_U3_of_a_long_text_the_matching_part_is_shown(cli: Cli) -> None:
    text = "some words about nothing much\n" * 40 + "the tea market in Lviv " + "and still more of it " * 40
    cli("note", text, "--title", "On tea")
    cli("note", "nothing here", "--title", "Another\ttitle of tea")
    shown = cli("search", "tea", "market").stdout.splitlines()
    assert "  On tea: …" in shown[1] and " the tea market in Lviv " in shown[1] and shown[1].endswith("…")
    assert len(shown[1]) < 320
    assert shown[2].endswith("  Another title of tea: nothing here")


def test_U3_on_a_terminal_what_matched_stands_out(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli("note", "He sells cafe\u0301 and teas", "--title", "Tea")
    _, shown = on_terminal("search", "tea", "--explain", "--root", str(tmp_path))
    assert shown.count("\x1b[1;33m") == 2
    assert "\x1b[1;33mTea\x1b[0m: " in shown and "\x1b[1;33mteas\x1b[0m" in shown
    assert re.search(r"\x1b\[2m\d\.\d\d = words \d\.\d\d", shown)
    _, plain = on_terminal("search", "tea", "--root", str(tmp_path), NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", plain)
    assert b"\x1b" not in run("search", "tea", "--explain", "--root", str(tmp_path)).stdout


def test_marked_cells_are_harmless_too(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).table(("a", "b"), [("1", MarkedCell("x\x1b[31my", [(0, 1)], ["\x9bz"]))])
    assert capsys.readouterr().out == "a  b\n1  x\ufffd[31my\n        \ufffdz\n"


def test_S2_a_search_says_once_why_the_embedder_took_no_part(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("remember", "Drinks tea")
    monkeypatch.setenv("MEMORY_EMBEDDER", "http://127.0.0.1:1/v1#none")
    result = cli("search", "tea")
    assert "Drinks tea" in result.stdout
    assert re.fullmatch(r"Note: [^\n]+\n", result.stderr)
    answer = cli("search", "tea", "--json")
    assert json.loads(answer.stdout)["note"] and answer.stderr == ""


def test_S2_vectors_are_made_on_demand(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("remember", "Drinks tea")
    cli("remember", "Plays the cello")
    cli("remember", "Drinks tea", "--user", "anna")
    for everyone in ([], ["--all"]):
        assert "MEMORY_EMBEDDER" in cli("embed", *everyone, code=2).stderr
    with EmbeddingServer() as server:
        monkeypatch.setenv("MEMORY_EMBEDDER", f"{server.url}#m")
        assert cli("embed").stdout == "me: 2 vectors made\n"
        assert cli.json("embed", "--all") == [{"user": "anna", "vectors": 1}, {"user": "me", "vectors": 0}]
        found = cli.json("search", "tea")
    assert (found["mode"], found["note"]) == ("words and vectors", "")
    assert found["hits"][0]["signals"]["vector"] > 0


def test_U3_the_context_for_a_model(cli: Cli) -> None:
    cli("context", code=3)
    cli("remember", "Drinks green tea", "-c", "preference")
    cli("note", "The tea market in Lviv opens at nine")
    cli("say", "I will sell tea at the market", "--session", "s", "--speaker", "Anna", "--said-at", "2026-02-12")
    text = cli("context").stdout
    assert "Drinks green tea" in text and "market" not in text
    assert "The tea market in Lviv" in cli("context", "tea", "market").stdout
    assert "I will sell" not in cli("context", "sell tea").stdout
    assert "I will sell" in cli("context", "sell tea", "--include-conversation", "--now", "2026-02-13").stdout
    answer = cli.json("context", "tea", "market", "--max-tokens", "40")
    assert answer.keys() == {"user", "text", "tokens"} and answer["user"] == "me"
    assert answer["tokens"] == count(answer["text"]) <= 40
    cli("context", "--max-tokens", "0", code=2)
    cli("pause", "--incognito")
    hidden = cli("context")
    assert hidden.stdout == "" and "incognito" in hidden.stderr


def test_U3_the_context_is_drawn_on_a_terminal(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli("remember", "Drinks green tea", "-c", "preference")
    _, drawn = on_terminal("context", "--root", str(tmp_path))
    assert "Drinks green tea" in drawn and "#" not in drawn
    _, raw = on_terminal("context", "--raw", "--root", str(tmp_path))
    assert raw == cli("context").stdout


def test_U3_the_search_index_is_built_anew(cli: Cli) -> None:
    cli("rebuild-index", code=3)
    cli("remember", "Drinks tea")
    cli("note", "Tea is sold at the market")
    cli("remember", "Drinks tea", "--user", "anna")
    assert cli("rebuild-index").stdout == "me: 2 records indexed\n"
    assert cli("rebuild-index", "-a").stdout == "anna: 1 record indexed\nme: 2 records indexed\n"
    assert cli.json("rebuild-index") == {"user": "me", "records": 2}
    assert len(cli.json("search", "tea")["hits"]) == 2
    (cli.root / "me" / "memory.db").write_bytes(b"not a database" * 100)
    answers = cli.json("rebuild-index", "--all", code=4)
    assert answers[0] == {"user": "anna", "records": 1} and "rebuild" in answers[1]["error"]


def test_U3_reading_what_held_then(cli: Cli) -> None:
    cli("remember", "Kyiv", "--key", "city", "--valid-from", "2020-01-01")
    cli("update", "city", "Lviv", "--valid-from", "2025-01-01")
    assert [r["content"] for r in cli.json("read", "--key", "city")] == ["Lviv"]
    assert [r["content"] for r in cli.json("read", "--key", "city", "--as-of", "2021-06-01")] == ["Kyiv"]


def test_daily_notes(cli: Cli) -> None:
    cli("jot", "Read a paper", "--day", YESTERDAY)
    cli("jot", "Took a walk")
    days = cli.json("daily", "--days")
    assert days[0] == YESTERDAY
    assert len(days) == 2
    assert cli("daily", "--days").stdout.splitlines() == days
    assert "- Took a walk" in cli("daily").stdout
    text = cli("daily", YESTERDAY).stdout
    assert "- Read a paper" in text
    assert cli.json("daily", YESTERDAY) == {"user": "me", "day": YESTERDAY, "text": text}


def test_U3_changing(cli: Cli) -> None:
    record = cli.remember("Engineer", "--key", "role")
    updated = cli.json(
        "update",
        "role",
        "Staff engineer",
        "--reason",
        "correction",
        "--note",
        "misheard",
        "--importance",
        "0.9",
        "-t",
        "work",
        "--metadata",
        "a=b",
    )
    assert (updated["outcome"], updated["previous"]["content"]) == ("updated", "Engineer")
    assert updated["record"]["metadata"] == {"a": "b"}
    assert cli.json("history", "role")[-1]["reason"] == "misheard"
    assert cli.json("update", record, "--key", "job")["record"]["key"] == "job"
    assert cli.json("remember", "-", "--key", "city", stdin="Lviv")["outcome"] == "written"
    assert cli("pin", "city").stdout.startswith("Pinned: city: Lviv")
    assert "(pinned)" in cli("read").stdout
    assert cli("pin", "city", "--off").stdout.startswith("No longer pinned: city: Lviv")
    assert cli("pin", "city", "--off", code=1).stderr.startswith("Already so")


def test_U3_merging_and_undoing_a_run(cli: Cli) -> None:
    first, second = cli.remember("Drinks green tea"), cli.remember("Plays the cello on Sundays")
    merged = cli("merge", first, second, "--content", "Drinks tea and plays the cello")
    assert "Merged 2 into: Drinks tea and plays the cello" in merged.stdout
    run_id = merged.stderr.split()[-1]
    assert "3–5 belong together" in cli("history").stdout
    assert len(cli.json("history", "--run", run_id)) == 3
    refused = cli("undo", code=2)
    assert "add --yes" in refused.stderr
    assert "Drinks green tea" in cli("undo", run_id, "--yes").stdout
    assert len(cli.json("read")) == 2
    cli("merge", first, "--content", "x", code=2)


def test_U1_undo_takes_back_nothing_but_the_last_change(cli: Cli) -> None:
    cli("remember", "Likes tea")
    for done, told in (
        (("consent", "across_chats"), "recollect consent across_chats --withdraw"),
        (("consent", "across_chats", "--withdraw"), "recollect consent across_chats."),
        (("pause",), "recollect resume"),
        (("resume",), "recollect pause"),
        (("scratch", "plan", "one"), "a value in working memory; to take it back: recollect undo "),
        (("say", "Hello", "--session", "s"), "a message; to take it back: recollect undo "),
    ):
        cli(*done)
        refused = cli("undo", code=1)
        assert "nothing was undone" in refused.stderr and told in refused.stderr, refused.stderr
        assert "recollect undo 1" in refused.stderr  # the change before it
        assert [one["content"] for one in cli.json("read", "--kind", "fact")] == ["Likes tea"]
    last = cli.json("history")[-1]["seq"]
    cli("undo", str(last))
    cli("undo", str(last - 1))  # the working memory
    assert "'resume'" in cli("undo", code=1).stderr
    cli("remember", "Plays chess")
    assert "Plays chess" in cli("undo").stdout
    cli("remember", "Sails", "--key", "hobby")
    cli("erase", "hobby", "--yes")
    assert "an erasure, which cannot be undone" in cli("undo", code=1).stderr
    assert [one["content"] for one in cli.json("read", "--kind", "fact")] == ["Likes tea"]


@pytest.mark.parametrize("who", [("--agent", "bot"), ("--actor", "agent:bot")])
def test_R7_an_agent_on_the_command_line_does_not_speak_for_the_person(cli: Cli, who: tuple[str, str]) -> None:
    said = "Takes zoloftium daily"
    cli("remember", "tea", "--key", "drink")
    cli("remember", said, "--key", "pill")
    cli("erase", "pill", "--yes")
    for command in (
        ("remember", said),
        ("note", said),
        ("note", "About health", "--title", said),
        ("jot", said),
        ("observe", said),
        ("episode", "Health", said),
        ("update", "drink", said),
        ("update", "drink", "--tag", said),
    ):
        assert cli.json(*command, *who, code=1)["reason"] == "erased", command
    assert cli.json("remember", "Likes rum", *who)["record"]["source"] == f"tool:{who[1]}"
    assert cli.json("remember", said, *who, "--source", "explicit")["done"]  # which says that the person asked
    cli("erase", "--topic", "zoloftium", "--yes")
    assert cli.json("remember", said, "--actor", "person")["done"]


def test_U1_undo_says_what_it_took_back(cli: Cli) -> None:
    cli("remember", "Engineer", "--key", "role")
    cli("update", "role", "Teacher")
    assert cli("undo").stdout.splitlines() == ["Undone: update of role: Teacher", "Restored: role: Engineer"]
    assert cli.json("undo", "1")["outcome"] == "undone"
    assert "has already been undone" in cli("undo", "1", code=1).stderr
    cli("undo", code=3)


def test_undo_right_after_the_person_edited_the_file(cli: Cli) -> None:
    cli("remember", "Engineer", "--key", "role")
    file = cli.root / "me" / "MEMORY.md"
    file.write_text(file.read_text(encoding="utf-8").replace("Engineer", "Teacher"), encoding="utf-8")
    assert "Restored: role: Engineer" in cli("undo", "--yes").stdout.replace("Role", "role")
    assert "- Role: Engineer" in cli("show").stdout


def test_U1_forget_a_topic_in_one_run(cli: Cli) -> None:
    cli("remember", "Rents a flat in Kyiv")
    cli("note", "The flat has two rooms")
    cli("remember", "Drinks tea")
    forgotten = cli("forget", "--topic", "flat", "--yes")
    assert "Forgot 2 memories." in forgotten.stdout
    assert len(cli.json("read")) == 1
    cli("undo", forgotten.stderr.split()[-1], "--yes")
    assert len(cli.json("read")) == 3
    answer = cli.json("forget", "--topic", "flat", "--yes")
    assert (len(answer["records"]), answer["run"][:4]) == (2, "run-")
    cli("undo", "--yes")
    assert len(cli.json("read")) == 3


def test_U1_why(cli: Cli) -> None:
    cli("remember", "Engineer", "--key", "role", "--source", "discussion:7", "--excerpt", "I am an engineer")
    told = cli("why", "role").stdout
    assert "It came up in a discussion (7)" in told
    assert "I am an engineer" in told
    assert cli.json("why", "role")["entries"][0]["op"] == "remember"


def test_U1_pause_and_resume(cli: Cli) -> None:
    cli("remember", "Drinks tea")
    assert cli.json("pause") == {"user": "me", "mode": "paused"}
    assert len(cli.json("read")) == 1
    assert "Incognito" in cli("pause", "--incognito").stdout
    assert "memory is incognito" in cli("read").stderr
    assert cli.json("read") == []
    assert cli("resume").stdout == "Memory is on.\n"
    assert [entry["op"] for entry in cli.json("history", "--limit", "0")][1:] == [
        "pause",
        "incognito",
        "resume",
    ]


def test_R5_history_tells_who_did_what(cli: Cli) -> None:
    cli("remember", "Engineer", "--key", "role")
    cli("update", "role", "Teacher", "--actor", "agent")
    lines = cli("history").stdout.splitlines()
    assert lines[0].split() == ["no", "when", "(UTC)", "who", "what", "text"]
    assert lines[2].endswith("agent   update    role: Teacher (was: Engineer)")
    assert len(cli.json("history", "--limit", "1")) == 1
    missing = cli("history", "--run", "run-x", code=3)
    assert "There is no run run-x" in missing.stderr


def test_R5_verify_finds_what_does_not_agree(cli: Cli) -> None:
    import sqlite3

    cli("remember", "Drinks tea")
    cli("remember", "Drinks tea", "--user", "anna")
    assert cli("verify", "--all").stdout == "anna: no problems found\nme: no problems found\n"
    db = sqlite3.connect(cli.root / "me" / "memory.db")
    with db:
        db.execute("DELETE FROM journal")
    db.close()
    broken = cli("verify", code=1)
    assert "problem" in broken.stdout
    answers = cli.json("verify", "--all", code=1)
    assert [(a["user"], a["ok"]) for a in answers] == [("anna", True), ("me", False)]


def test_R6_upkeep_removes_what_has_expired(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_MESSAGE_RETENTION_DAYS", "90")
    long_ago = datetime.now(timezone.utc) - timedelta(days=400)
    with at(long_ago, cli.root) as memory:
        memory.jot("Read a paper long ago")
        memory.say("Hello", session="s")
    assert cli("upkeep", "--dry-run").stdout == "me: would remove 1 daily entry, 1 message\n"
    assert cli("upkeep", "--all").stdout == "me: removed 1 daily entry, 1 message\n"
    assert cli.json("upkeep") == {"user": "me", "expired": {}, "calls": 0, "interactions": 0, "notices": []}


def log(cli: Cli, *calls: recollect.ToolCall) -> None:
    with recollect.open(cli.root) as opened, opened.user("me")._user_memory.write_alongside() as tx:
        tx.log_calls(calls)


def test_U7_calls_are_listed_newest_first(cli: Cli) -> None:
    cli("calls", code=3)
    log(
        cli,
        tool_call("call-00000001", session="chat-7", tokens_in=1000, tokens_out=234),
        tool_call("call-00000002", 1, tool="memory_search", outcome="done"),
        tool_call("call-00000003", 2, status="refused", outcome="refused:paused"),
        tool_call("call-00000004", 3, status="error", outcome="timeout"),
        tool_call("call-00000005", 4, status="error", outcome=""),
    )
    shown = cli("calls")
    assert shown.stdout == (
        "id        when (UTC)        ms  tokens  tool           outcome\n"
        "00000005  2026-02-12 09:34   2          memory_save    error\n"
        "00000004  2026-02-12 09:33   2          memory_save    error: timeout\n"
        "00000003  2026-02-12 09:32   2          memory_save    refused: paused\n"
        "00000002  2026-02-12 09:31   2          memory_search  done\n"
        "00000001  2026-02-12 09:30   2   1,234  memory_save    written\n"
    )
    assert shown.stderr == ""
    assert [call["id"][-1] for call in cli.json("calls", "--limit", "2")] == ["5", "4"]
    assert (
        "Showing the last 2; use --limit for more." in on_terminal("calls", "--limit", "2", "--root", str(cli.root))[1]
    )
    assert [call["id"][-1] for call in cli.json("calls", "--tool", "memory_save", "--limit", "0")] == list("5431")
    assert cli.json("calls", "--session", "chat-7")[0]["tokens_out"] == 234
    between = cli.json("calls", "--since", "2026-02-12T09:31:00Z", "--until", "2026-02-12T09:32:00Z")
    assert [call["tool"] for call in between] == ["memory_search"]
    assert cli("calls", "--tool", "nothing").stderr == "No tool calls.\n"
    assert cli("upkeep").stdout == "me: removed 5 tool calls\n"


def test_R5_history_of_a_tool_call(cli: Cli) -> None:
    log(cli, tool_call("call-00000001"), tool_call("call-10000001"), tool_call("call-00000002"))
    with recollect.open(cli.root) as opened:
        opened.user("me").acting("agent", call="call-00000001").remember("Likes tea")
        opened.user("me").acting("agent", call="call-forgotten").remember("Plays chess")
    for ending in ("00000001", "call-00000001"):
        assert [entry["seq"] for entry in cli.json("history", "--call", ending)] == [1]
    assert [entry["seq"] for entry in cli.json("history", "--call", "call-forgotten")] == [2]
    assert "2 tool calls end in 0001" in cli("history", "--call", "0001", code=3).stderr
    assert cli("history", "--call", "00000002").stderr == "The call 00000002 changed nothing.\n"


def test_T7_usage_adds_up_by_operation(cli: Cli) -> None:
    cli("usage", code=3)
    with at(datetime(2026, 2, 12, tzinfo=timezone.utc), cli.root) as memory:
        memory.spend("extract", tokens_in=41_000, tokens_out=2_300, cost=0.25)
        memory.spend("search", tokens_in=20)
    assert cli("usage").stderr == "No usage today (UTC).\n"
    with at(datetime(2026, 2, 13, tzinfo=timezone.utc), cli.root) as memory:
        memory.spend("extract", tokens_in=1_000, cost=0.125)
    assert cli("usage", "--since", "2026-02-12").stdout == (
        "calls  tokens in  tokens out    cost  operation\n"
        "    2     42,000       2,300  0.3750  extract\n"
        "    1         20           0  0.0000  search\n"
        "    3     42,020       2,300  0.3750  total\n"
    )
    assert "total" not in cli("usage", "--since", "2026-02-13").stdout
    told = cli.json("usage", "--until", "2026-02-13")
    assert [(row["day"], row["operation"]) for row in told["days"]] == [
        ("2026-02-12", "extract"),
        ("2026-02-12", "search"),
        ("2026-02-13", "extract"),
    ]
    assert told["total"] == {"calls": 3, "tokens_in": 42_020, "tokens_out": 2_300, "cost": 0.375}
    assert cli.json("usage") == {"days": [], "total": {}}
    assert cli("usage", "--since", "2027-01-01").stderr == "No usage in this period.\n"
    cli("usage", "--since", "last week", code=2)


def test_U3_consent_is_listed_given_and_withdrawn(cli: Cli) -> None:
    cli("consent", code=3)
    cli("consent", "trends", "--withdraw", code=3)
    assert not cli.root.exists() or not (cli.root / "me").exists()
    assert cli("consent", "trends").stdout == (
        "Consent to trends given: memories may be counted into aggregates over many users.\n"
    )
    assert cli("consent").stdout == (
        "consent       given  what it means\n"
        "across_chats  no     facts learned in one chat may be recalled in another\n"
        "trends        yes    memories may be counted into aggregates over many users\n"
    )
    assert [row["given"] for row in cli.json("consent")] == [False, True]
    assert cli.json("consent", "across_chats", "--actor", "anna")["consents"] == ["across_chats", "trends"]
    assert cli("consent", "trends", "--withdraw").stdout == "Consent to trends withdrawn.\n"
    assert [(e["actor"], e["op"], e["reason"]) for e in cli.json("history")] == [
        ("person", "consent", "trends"),
        ("anna", "consent", "across_chats"),
        ("person", "withdraw", "trends"),
    ]
    cli("consent", "everything", code=2)
    assert "lists them" in cli("consent", "--withdraw", code=2).stderr


def test_R7_erase_leaves_nothing_and_prints_a_receipt(cli: Cli) -> None:
    cli("remember", "Secretly likes zebras", "--key", "animal")
    cli("update", "animal", "Openly likes zebras")
    shown = cli("erase", "animal", "--yes").stdout
    assert re.search(r"^ +1  records$", shown, re.MULTILINE)
    assert re.search(r"^ +1  lines of MEMORY.md$", shown, re.MULTILINE)
    left = b"".join(path.read_bytes() for path in cli.root.rglob("*") if path.is_file())
    assert b"zebra" not in left
    assert "(erased)" in cli("history").stdout
    cli("undo", "1", code=1)


def test_R7_erase_a_topic_and_everything(cli: Cli) -> None:
    cli("remember", "Likes zebras")
    cli("note", "Zebras live in Kenya")
    cli("remember", "Drinks tea")
    receipt = cli.json("erase", "--topic", "zebras", "--yes")["receipt"]
    assert (len(receipt["ids"]), receipt["places"]["records"]) == (2, 2)
    assert len(cli.json("read")) == 1
    assert "Erased 'me'. Only a tombstone stays" in cli("erase", "--everything", "--yes").stdout
    assert not (cli.root / "me").exists()
    cli("show", code=3)
    assert cli("users").stderr == "There are no users yet.\n"


def test_U3_what_to_remove_is_named_before_anything_is_asked(cli: Cli) -> None:
    cli("remember", "Likes zebras")
    assert "name a record, or use --topic or --everything" in cli("erase", code=2).stderr
    assert "name a record, or use --topic" in cli("forget", code=2).stderr
    assert "exactly one of these" in cli("erase", "x", "--topic", "y", code=2).stderr


def test_U3_errors_name_options_as_they_are_typed(cli: Cli) -> None:
    assert cli("remember", "x", "--valid-from", "soon", code=2).stderr.startswith("recollect: --valid-from: ")
    assert cli("remember", "x", "--tag", "a", "--tag", "", code=2).stderr == "recollect: --tag: must not be empty\n"
    assert cli("remember", "x", "--confidence", "3", code=2).stderr.startswith("recollect: --confidence: ")


def test_R7_clear(cli: Cli) -> None:
    cli("remember", "Likes zebras")
    assert cli("clear", "--dry-run").stdout.splitlines()[-1] == "Would erase 1 memory."
    assert cli.json("clear", "--yes")["receipt"]["places"]["records"] == 1
    assert "zebras" not in cli("show").stdout


def test_R8_export_and_import_back(cli: Cli, tmp_path: Path) -> None:
    cli("remember", "Engineer", "--key", "role")
    cli("jot", "Read a paper")
    archive = tmp_path / "all.zip"
    assert "1 daily entry, 1 fact" in cli("export", str(archive)).stdout
    cli("export", str(archive), code=2)
    assert cli.json("export", str(archive), "--yes")["bytes"] == archive.stat().st_size
    assert cli("import", str(archive), "--user", "anna").stdout == "From a Recollect export: 2 written.\n"
    assert cli("show", "--user", "anna").stdout == cli("show").stdout
    assert cli.json("history", "--user", "anna") == cli.json("history")
    assert "add --yes" in cli("import", str(archive), "--user", "anna", code=2).stderr
    assert "0 written, 2 already known" in cli("import", str(archive), "--user", "anna", "--yes").stdout
    cli("export", str(tmp_path), code=2)


def test_R8_an_export_names_itself(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cli("remember", "Engineer", "--key", "role")
    path = Path(cli.json("export")["path"])
    assert re.fullmatch(r"recollect-me-\d{4}-\d\d-\d\d\.zip", path.name)
    assert path.exists()


def test_R8_import_says_what_was_not_taken_over_and_why(cli: Cli, tmp_path: Path) -> None:
    memories = [
        {"memory": "Drinks green tea", "user_id": "42"},
        {"memory": "drinks GREEN tea", "user_id": "42"},
        {"memory": f"My key is {KEY}", "user_id": "42"},
        {"memory": "Belongs to somebody else", "user_id": "43"},
        {"memory": "", "user_id": "42"},
    ]
    (tmp_path / "mem0.json").write_text(json.dumps(memories), encoding="utf-8")
    assert "has memories of 2 users; choose one" in cli("import", str(tmp_path / "mem0.json"), code=2).stderr
    result = cli("import", str(tmp_path / "mem0.json"), "--from-user", "42")
    assert result.stdout.splitlines()[0] == "From mem0: 1 written, 1 already known, 1 refused, 1 unreadable."
    assert "mem0.json memory 5: memory: must not be empty" in result.stdout
    assert KEY not in result.stdout
    cli("undo", result.stderr.split()[-1], "--yes")
    assert cli.json("read") == []
    lines = "".join(json.dumps({"type": "entity", "name": f"n{n}", "observations": [""]}) + "\n" for n in range(30))
    (tmp_path / "memory.jsonl").write_text(lines, encoding="utf-8")
    assert "… and 10 more" in cli("import", str(tmp_path / "memory.jsonl"), "--yes").stdout


def test_F9_rebuild_says_what_could_not_be_recovered(cli: Cli) -> None:
    cli("remember", "Engineer", "--key", "role")
    cli("note", "Only in the database")
    refused = cli("rebuild", "--yes", code=1)
    assert "nothing to rebuild; use --force" in refused.stderr
    (cli.root / "me" / "memory.db").write_bytes(b"not a database" * 100)
    cli("verify", code=1)
    would = cli("rebuild", "--dry-run")
    done = cli("rebuild", "--yes")
    assert would.stdout == done.stdout.replace("Restored:", "Would restore:", 1)
    assert done.stdout.startswith("Restored: 1 fact, 1 of them from the files.\nNot recovered:\n")
    assert "everything except the facts" in done.stdout
    assert "memory.db.damaged-" in done.stderr
    assert cli.json("get", "role")["content"] == "Engineer"
    assert cli("verify").stdout == "me: no problems found\n"


def test_F9_a_lost_database_is_rebuilt(cli: Cli) -> None:
    cli("remember", "Engineer", "--key", "role")
    for path in (cli.root / "me").glob("memory.db*"):
        path.unlink()
    assert "rebuild" in cli("show", code=4).stderr
    rehearsed = cli.json("rebuild", "--dry-run")
    answer = cli.json("rebuild", "--yes")
    assert answer["restored"] == {"fact": 1} and answer["lost"] == rehearsed["lost"]
    assert any("paused" in lost for lost in answer["lost"])
    assert any("all history" in lost for lost in answer["lost"])
    cli("rebuild", "--user", "nobody", "--yes", code=3)
    cli("rebuild", "--user", "nobody", "--dry-run", code=3)


def test_a_memory_kept_only_in_files_can_be_read(cli: Cli) -> None:
    folder = cli.root / "me"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# User Memory\n\n## Key Facts\n- City: Lviv\n", encoding="utf-8")
    assert cli.json("get", "city")["content"] == "Lviv"


def test_R4_users_are_listed_and_kept_apart(cli: Cli) -> None:
    cli("remember", "Engineer", "--key", "role")
    cli("remember", "Teacher", "--key", "role", "--user", "Анна")
    rows = cli.json("users")
    assert [(row["user"], row["mode"], row["records"]) for row in rows] == [
        ("me", "on", {"fact": 1}),
        ("Анна", "on", {"fact": 1}),
    ]
    assert "1 fact" in cli("users").stdout
    assert cli.json("get", "role", "-u", "Анна")["content"] == "Teacher"


def test_notices_of_the_core_go_to_stderr(cli: Cli) -> None:
    cli("remember", "Drinks tea")
    (cli.root / "me" / "MEMORY.md").unlink()
    told = cli("remember", "Plays the cello")
    assert "Note: MEMORY.md was missing" in told.stderr
    (cli.root / "me" / "MEMORY.md").unlink()
    assert cli.json("remember", "Swims on Mondays")["notices"]


def test_U3_postgres_with_files(postgres_url: str, tmp_path: Path) -> None:
    def cli(*args: str, code: int = 0) -> Any:
        given = [*args, "--root", postgres_url, "--files", str(tmp_path), "--json"]
        result = CliRunner().invoke(app, given)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout) if code == 0 else json.loads(result.stderr)

    assert cli("show", code=3)["error"] == "not_found"
    cli("remember", "Engineer", "--key", "role")
    assert "- Role: Engineer" in (tmp_path / "me" / "MEMORY.md").read_text(encoding="utf-8")
    assert [row["user"] for row in cli("users")] == ["me"]
    assert cli("forget", "role", "--dry-run")["dry_run"] is True
    assert cli("verify")["ok"] is True
    assert cli("rebuild", "--dry-run", code=2)["error"] == "invalid_input"
    assert cli("rebuild", "--force", "--yes", code=4)["error"] == "store"


def test_an_unreachable_database_is_one_line() -> None:
    result = CliRunner().invoke(app, ["read", "--root", "postgresql://nobody:hidden@127.0.0.1:1/none"])
    assert result.exit_code == 4
    assert re.fullmatch(r"recollect: [^\n]+\n", result.stderr)
    assert "hidden" not in result.stderr


# the tour


def test_U3_the_tour_shows_real_commands_and_leaves_nothing(tmp_path: Path) -> None:
    result = run("tour", TMPDIR=str(tmp_path))
    shown = result.stdout.decode()
    assert (result.returncode, result.stderr) == (0, b"")
    for part in (
        "$ recollect remember",
        "- Role: Engineer",
        "Already known",
        "Not stored: it seems to contain a secret",
        "Updated: role: Staff engineer",
        "City: Lviv",
        "You wrote it into the file yourself",
        "Restored: role: Engineer",
        "me: no problems found",
        "Next steps",
    ):
        assert part in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert list(tmp_path.iterdir()) == []


def test_the_tour_as_json(cli: Cli) -> None:
    steps = cli.json("tour")["steps"]
    assert len(steps) > 10
    assert steps[0]["output"].startswith("Remembered: role: Engineer")


def test_U3_edit_gives_a_file_another_text(cli: Cli, tmp_path: Path) -> None:
    cli("remember", "Likes tea")
    shown = cli("show", "--raw").stdout
    new, old = tmp_path / "new.md", tmp_path / "old.md"
    old.write_text(shown)
    new.write_text(shown.replace("- Likes tea\n", "- Likes coffee\n- Has a cat\n\n> not a fact\n"))
    trial = cli("edit", "--file", str(new), "--expect", str(old), "--dry-run")
    assert "-- Likes tea\n+- Likes coffee\n" in trial.stdout and "nothing was changed" in trial.stderr
    assert cli("show", "--raw").stdout == shown
    done = cli.json("edit", "--file", str(new), "--expect", str(old))
    assert (done["outcome"], done["done"]) == ("edited", True)
    assert [record["content"] for record in done["added"]] == ["Has a cat"] and len(done["updated"]) == 1
    assert cli("show", "--raw").stdout == new.read_text()
    late = cli("edit", "--file", str(new), "--expect", str(old), code=1)
    assert "has changed in the meantime" in late.stderr
    assert cli.json("edit", "--file", str(new), code=1)["outcome"] == "unchanged"
    cli("undo", done["run"], "--yes")
    assert "- Likes tea\n" in cli("show", "--raw").stdout


def test_U3_edit_reads_standard_input_and_edits_notes(cli: Cli, tmp_path: Path) -> None:
    text = "# 2026-02-12\n\n## Discussions\n- Talked about Rust\n"
    told = cli("edit", "--file", "-", "--day", "2026-02-12", stdin=text)
    assert told.stdout.startswith("Edited memory/2026-02-12.md: 1 added.") and "recollect undo run-" in told.stderr
    assert cli("daily", "2026-02-12", "--raw").stdout == text
    refused = cli.json("edit", "-f", "-", "--agent", "bot", code=1, stdin="## Key Facts\n- import os; os.exit(1)\n")
    assert (refused["outcome"], refused["reason"]) == ("refused", "code")
    assert "cannot read" in cli("edit", "--file", str(tmp_path / "none.md"), code=2).stderr
    (tmp_path / "bad.md").write_bytes(b"\xff")
    assert "not UTF-8" in cli("edit", "--file", str(tmp_path / "bad.md"), code=2).stderr


_NOT_COMMANDS = {
    "user_id",
    "in_chat",
    "is_semantic",
    "unread",
    "config",
    "clock",
    "exists",
    "mode",
    "numbers",
    "numbered",
    "acting",
    "batch",
    "days",
    "count",
    "erase_topic",
    "mark_important",
    "notices",
    "set_scratch",
    "consents",
    "spend",
    "report",  # events report, events import, events list
    "report_many",
    "interactions",
    "note_run",
}


def test_U3_shared_options_may_stand_before_the_command(tmp_path: Path) -> None:
    before = ["--root", str(tmp_path), "--user=anna", "--json"]
    for line in (["remember", "Likes tea"], ["read", "--kind", "fact"]):
        done = run_separately(*before, *line, text=True)
        answer = json.loads(done.stdout)
    assert [record["content"] for record in answer] == ["Likes tea"] and (tmp_path / "anna").is_dir()
    assert run_separately("--root", str(tmp_path)).returncode == 2


def test_U3_every_verb_of_the_api_is_a_command() -> None:
    verbs = [name for name in dir(recollect.Memory) if not name.startswith("_")]
    commands = {name.replace("-", "_") for name in program().commands}
    missing = {name.strip("_") for name in verbs} - commands - _NOT_COMMANDS
    assert not missing, "mark_important is `important`, days is `daily --days`; these have no command"


# tools


def test_U3_tools_are_listed_and_declared(cli: Cli) -> None:
    listed = cli("tools").stdout
    assert re.search(r"^notes +memory_search +reads +Search your persistent memory", listed, re.MULTILINE)
    assert re.search(r"^facts +forget_fact +forgets +", listed, re.MULTILINE)
    for form in ("openai", "responses", "anthropic", "mcp"):
        told = json.loads(cli("tools", "--suite", "notes", "--format", form).stdout)
        names = [one.get("function", one)["name"] for one in told]
        assert names == ["memory_search", "memory_save", "memory_update", "memory_delete"]
    assert "memory_search" in cli("tools", "--suite", "notes", "--format", "gemini", "--strict").stdout
    assert cli("tools", "--suite", "notes", "--format", "markdown").stdout.startswith("# Tools: notes\n")
    assert "'nonsense' is not one of entries, notes" in cli("tools", "--suite", "nonsense", code=2).stderr


def test_U3_a_tool_is_called_by_hand(tmp_path: Path) -> None:
    root = ("--root", str(tmp_path / "memory"), "--user", "u1")
    saved = run("tool", "memory_save", '{"content": "Prefers short answers"}', *root, "--session", "s1")
    assert saved.returncode == 0 and json.loads(saved.stdout)["status"] == "success"
    cli, who = Cli(tmp_path / "memory"), ("--user", "u1")
    found = cli.json("tool", "memory_search", '{"query": "answers"}', *who)
    assert found["status"] == "ok" and found["answer"][0]["text"] == "Prefers short answers"
    wrong = run("tool", "memory_search", "{}", *root)
    assert (wrong.returncode, wrong.stdout) == (2, b"") and b"query is missing" in wrong.stderr
    cli("tool", "memory_search", "not json", *who, code=2)
    cli("tool", "write_memory", "{}", *who, "--suite", "notes", code=2)
    cli("pause", *who)
    cli("tool", "memory_save", '{"content": "Likes tea"}', *who, code=1)
    logged = cli.json("calls", *who)
    assert [(one["tool"], one["status"]) for one in logged][-2:] == [("memory_search", "ok"), ("memory_save", "ok")]
    assert logged[-1]["session"] == "s1" and logged[-1]["tokens_in"] > 0


def test_U3_sessions_and_similar(cli: Cli) -> None:
    memory, who = recollect.open(cli.root).user("u1"), ("--user", "u1")
    memory.note("Plays guitar in a band")
    assert "No similar facts or notes." in cli("similar", *who).stderr
    assert "No conversations." in cli("sessions", *who).stderr
    memory.note("Plays the guitar in a rock band")
    memory.say("Hello", session="chat-1")
    shown = cli("similar", *who).stdout
    assert "rock band" in shown and "Plays guitar in a band" in shown
    assert len(cli.json("similar", *who)) == 1
    assert re.search(r"^\S+ \S+ +1  chat-1$", cli("sessions", *who).stdout, re.MULTILINE)
    assert cli.json("sessions", *who)[0]["messages"] == 1
