"""What a host reports, beyond the contract of every deployment: files, lines of JSON, the commands."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import recollect
from recollect import AsyncMemory, Config, ExtractionRun, Interaction, InvalidInputError, Refused, Reported
from recollect.errors import StoreCorruptError
from recollect.memory import interaction_log
from recollect.records import INTERACTION_KINDS
from recollect.surfaces.cli import (  # noqa: F401  (their commands)
    extraction,
    interaction_commands,
    memory_commands,
    read_commands,
    remove_commands,
    write_commands,
)
from recollect.surfaces.cli.program import app as program
from recollect.testing import FrozenClock
from tests.contracts.store_contract import T0, extraction_run, interaction

KEY = "sk-proj-" + "4f9aXb72Lq" * 3


# beside the memory


def test_G3_F2_the_first_report_makes_the_file_and_is_not_in_it(tmp_path: Path) -> None:
    with recollect.open(tmp_path, clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.report("save", title="Rust")
        memory.note_run(extraction_run("run-1"))
        assert memory.interactions() and memory.runs() and (tmp_path / "u1" / "MEMORY.md").exists()
        memory.remember("Likes tea")
        text = (tmp_path / "u1" / "MEMORY.md").read_text()
        assert "Likes tea" in text and "Rust" not in text
        assert memory.verify() == [] and list(app.users()) == ["u1"]


def test_P7_with_memory_switched_off_for_everyone_no_memory_is_made(tmp_path: Path) -> None:
    with recollect.open(tmp_path, config=Config(memory_dir=tmp_path, enabled=False)) as app:
        outcome = app.user("u1").report("save", title="Rust")
        assert isinstance(outcome, Refused) and outcome.reason == "paused" and not outcome.done
        assert not app.user("u1").exists and not (tmp_path / "u1").exists()


def test_R7_cleared_interactions_are_in_no_file(tmp_path: Path) -> None:
    with recollect.open(tmp_path, clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.report("save", id="zebra", title="zebra", text="zebra " * 3000, session="zebra", topics=["zebra"])
        memory.note_run(extraction_run("zebra", error="zebra"))
        memory.clear()
        for path in (tmp_path / "u1").rglob("*"):
            assert path.is_dir() or b"zebra" not in path.read_bytes(), path


def test_F9_a_rebuild_says_which_interactions_are_lost(tmp_path: Path) -> None:
    import sqlite3

    with recollect.open(tmp_path, clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.remember("Likes tea")
        memory.report("save", title="Rust")
        memory.note_run(extraction_run("run-1"))
        app.close()
        db = sqlite3.connect(tmp_path / "u1" / "memory.db")
        db.execute("UPDATE interactions SET topics = 'rust'")
        db.commit()
        db.close()
        with pytest.raises(StoreCorruptError, match="recollect rebuild"):
            memory.interactions()
        report = memory.rebuild()
        assert report.lost == ("1 reported interaction",)
        assert memory.interactions() == [] and len(memory.runs()) == 1 and memory.verify() == []


def test_a_run_is_undone_by_its_id(tmp_path: Path) -> None:
    with recollect.open(tmp_path, clock=FrozenClock()) as app:
        memory = app.user("u1")
        run = memory.note_run(extraction_run("run-1", status="completed"))
        memory.acting("extraction", run=run.id).remember("Likes Rust")
        memory.undo(run.id)
        assert memory.read() == [] and memory.runs() == [run]


def test_the_same_verbs_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        with recollect.open(tmp_path, clock=FrozenClock()) as app:
            memory = AsyncMemory(app.user("u1"))
            outcome = await memory.report("save", title="Rust")
            assert isinstance(outcome, Reported)
            [again] = await memory.report_many([outcome.interaction])
            assert isinstance(again, Reported) and not again.fresh
            assert await memory.interactions() == [outcome.interaction]
            assert [await memory.note_run(extraction_run("run-1"))] == await memory.runs()

    asyncio.run(main())


# as plain data


def test_a_clock_a_little_ahead_is_no_future() -> None:
    assert interaction_log.parse_interaction("save", now=T0, title="x", at="2026-02-12T09:35:00Z").at > T0
    with pytest.raises(InvalidInputError, match=r"2026-02-12T09:35:00.000001Z is in the future"):
        interaction_log.parse_interaction("save", now=T0, title="x", at="2026-02-12T09:35:00.000001Z")


@pytest.mark.parametrize("kind", INTERACTION_KINDS)
def test_R8_an_interaction_as_plain_data_comes_back(kind: str) -> None:
    bare = interaction("a", kind=kind)
    full = interaction(
        "b", 1, kind=kind, item="i", value="v", topics=("t",), text="x", session="s", metadata={"a": [1]}
    )
    for one in (bare, full):
        data = json.loads(json.dumps(interaction_log.event_to_dict(one)))
        assert interaction_log.interaction_from_dict(data) == one
    assert interaction_log.event_to_dict(bare) == {
        "id": "a",
        "at": "2026-02-12T09:30:00.000000Z",
        "kind": kind,
        "title": "Rust",
    }
    run = extraction_run("run-1", duration_ms=0, details={"a": 1}, error="e", tier="rules", tokens_used=5)
    assert interaction_log.run_from_dict(json.loads(json.dumps(interaction_log.event_to_dict(run)))) == run


def test_lines_are_read_one_by_one() -> None:
    lines = [
        '\ufeff{"kind": "save", "title": "Rust"}\r',
        "",
        "  \t",
        '{"kind": "save"',
        '"save"',
        '{"kind": "save", "title": "x", "now": 1}',
        '{"kind": "save", "title": "' + KEY + '", "at": "2027-01-01T00:00:00Z"}',
        "[" * 100_000,
    ]
    read = list(interaction_log.read_lines(lines, now=T0))
    assert isinstance(read[0], Interaction) and read[0].title == "Rust" and read[1:3] == [None, None]
    told = [str(one) for one in read[3:]]
    assert told[0].startswith("event: is not JSON (") and told[1].startswith("event: must be a mapping of id, at, kind")
    assert told[2].startswith("now: is not a field") and "is in the future" in told[3] and KEY not in told[3]
    assert "is not JSON" in told[4]


# the commands


class Cli:
    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(self, *args: str, code: int = 0, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(program, [*args, "--root", str(self.root)], input=stdin)
        assert result.exit_code == code, f"{args}: {result.exit_code}\n{result.stdout}\n{result.stderr}"
        return result

    def json(self, *args: str, code: int = 0, stdin: str | None = None) -> Any:
        return json.loads(self(*args, "--json", code=code, stdin=stdin).stdout)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "memory")


def test_U3_events_are_reported_and_listed(cli: Cli) -> None:
    cli("events", "list", code=3)
    shown = cli(
        *("events", "report", "reaction", "--value", "👍", "--title", "Rust async", "--topic", "rust", "--topic", "io"),
        *(
            "--item",
            "post:1",
            "--at",
            "2026-02-12T09:30:00Z",
            "--session",
            "chat-7",
            "--metadata",
            "a=b",
            "--id",
            "own-1",
        ),
    )
    assert shown.stdout == "Reported: reaction 👍, Rust async\n  own-1\n"
    told = cli.json(
        "events", "report", "save", "--text", "-", "--at", "2026-02-13", "--id", "own-2", stdin="two\nlines"
    )
    assert (told["outcome"], told["done"], told["fresh"]) == ("reported", True, True)
    assert told["interaction"]["text"] == "two\nlines" and told["interaction"]["metadata"] == {}
    again = cli.json("events", "report", "save", "--title", "other", "--id", "own-2")
    assert again["fresh"] is False and again["interaction"] == told["interaction"]
    assert cli("events", "list").stdout == (
        "id     when (UTC)        kind      value  about\n"
        "own-2  2026-02-13 00:00  save             two lines\n"
        "own-1  2026-02-12 09:30  reaction  👍     Rust async [rust, io]\n"
    )
    [one] = cli.json("events", "list", "--kind", "reaction", "--kind", "read", "--session", "chat-7", "--limit", "0")
    assert one["topics"] == ["rust", "io"] and one["metadata"] == {"a": "b"} and one["item"] == "post:1"
    assert [o["id"] for o in cli.json("events", "list", "--limit", "1")] == ["own-2"]
    assert [o["id"] for o in cli.json("events", "list", "--since", "2026-02-13")] == ["own-2"]
    assert [o["id"] for o in cli.json("events", "list", "--until", "2026-02-13")] == ["own-1"]
    assert cli("events", "list", "--kind", "read").stderr == "No interactions.\n"
    cli("events", "list", "--kind", "like", code=2)
    cli("events", "report", "like", "--title", "x", code=2)
    assert "value: is required for a reaction, such as" in cli("events", "report", "reaction", code=2).stderr
    assert "no time zone" in cli("events", "report", "save", "--title", "x", "--at", "2026-02-12T09:30", code=2).stderr
    cli("pause")
    refused = cli.json("events", "report", "save", "--title", "Go", code=1)
    assert (refused["outcome"], refused["reason"]) == ("refused", "paused")
    cli("pause", "--incognito")
    assert "incognito" in cli("events", "list").stderr


def test_U3_events_are_imported_whole_or_with_skip_bad(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "interaction_log.jsonl"
    lines = [{"kind": "save", "id": f"s{n}", "title": f"Post {n}", "at": "2026-02-12T09:30:00Z"} for n in range(3)]
    good = "".join(json.dumps(line) + "\n" for line in lines)
    file.write_text(f'{good}{{"kind": "sve"}}\n\nnonsense\n')
    stopped = cli("events", "import", str(file), code=2)
    assert stopped.stdout == "" and stopped.stderr.splitlines()[:2] == [
        "line 4: kind: 'sve' is not one of delivery, read, reaction, save, command, discussion",
        "line 6: event: is not JSON (Expecting value)",
    ]
    assert "2 lines cannot be read; nothing was stored" in stopped.stderr and not cli.root.exists()
    error = json.loads(cli("events", "import", str(file), "--json", code=2).stderr)
    assert error["error"] == "invalid_input" and "the first is line 4 (kind" in error["message"]
    taken = cli("events", "import", str(file), "--skip-bad")
    assert taken.stdout == "3 stored, 2 skipped.\n" and "line 6: event" in taken.stderr
    told = cli.json("events", "import", "-", "--skip-bad", stdin=good + '{"kind": "save", "title": "new"}\n{}\n')
    assert (told["stored"], told["known"]) == (1, 3) and [row["line"] for row in told["skipped"]] == [5]
    assert cli("events", "import", "-", stdin=good).stdout == "0 stored, 3 already known.\n"
    assert cli("events", "import", "-", stdin="\n").stdout == "0 stored.\n"
    many = cli("events", "import", "-", "--skip-bad", stdin="{}\n" * 25)
    assert many.stderr.splitlines()[-1] == "… and 5 lines more (use --json to see all)"
    assert "cannot read" in cli("events", "import", str(tmp_path / "none"), code=2).stderr
    assert len(cli.json("events", "list", "--limit", "0")) == 4
    cli("pause")
    assert cli.json("events", "import", "-", code=1, stdin='{"kind": "save", "title": "x"}')["reason"] == "paused"


def test_U3_what_stands_before_the_name_holds_for_it(cli: Cli) -> None:
    for args in (
        ["events", "--user", "anna", "--root", str(cli.root), "report", "save", "--title", "x"],
        ["--user", "anna", "--root", str(cli.root), "events", "report", "save", "--title", "y"],
        ["events", "report", "save", "--title", "z", "--user", "anna", "--root", str(cli.root)],
    ):
        assert CliRunner().invoke(program, args).exit_code == 0
    assert len(cli.json("events", "list", "--user", "anna")) == 3


def test_U3_runs_are_listed(cli: Cli) -> None:
    cli("runs", code=3)
    assert cli("runs", "--all").stderr == "No extraction has run yet.\n"
    with recollect.open(cli.root) as app:
        app.user("me").report("save", title="x")
        assert cli("runs").stderr == "No extraction has run yet.\n"
        done: dict[str, Any] = {"interactions_processed": 1200, "memories_written": 3, "memories_updated": 1}
        app.user("me").note_run(
            extraction_run("run-1", status="completed", tokens_used=18400, duration_ms=2300, **done)
        )
        app.user("me").note_run(extraction_run("run-2", 13, kind="discussion", status="failed", error="out of\ntokens"))
        app.user("anna").note_run(extraction_run("run-3", 14, status="running"))
    assert cli("runs").stdout == (
        "day         kind        status     interactions  written  updated  tokens     ms  error\n"
        "2026-02-13  discussion  failed                0        0        0       0         out of tokens\n"
        "2026-02-12  batch       completed         1,200        3        1  18,400  2,300\n"
    )
    assert [run["id"] for run in cli.json("runs", "--limit", "1")] == ["run-2"]
    assert [run["id"] for run in cli.json("runs", "--kind", "batch")] == ["run-1"]
    assert [row["run"]["id"] for row in cli.json("runs", "--kind", "batch", "--all")] == ["run-3", "run-1"]
    assert [(row["user"], row["run"]["day"]) for row in cli.json("runs", "--all")] == [
        ("anna", "2026-02-14"),
        ("me", "2026-02-13"),
        ("me", "2026-02-12"),
    ]
    assert re.search(r"^anna +2026-02-14 +batch +running", cli("runs", "--all", "--limit", "0").stdout, re.MULTILINE)


def test_R6_U3_upkeep_and_import_tell_of_interactions(cli: Cli, tmp_path: Path) -> None:
    with recollect.open(cli.root, clock=FrozenClock(datetime(2020, 1, 1, tzinfo=timezone.utc))) as app:
        app.user("me").remember("Likes tea")
        app.user("me").report("save", title="Rust")
    cli("export", str(tmp_path / "a.zip"))
    assert cli("import", str(tmp_path / "a.zip"), "--user", "anna").stdout.endswith("1 written, 1 interaction.\n")
    assert cli("upkeep", "--dry-run").stdout == "me: would remove 1 interaction\n"
    assert cli("upkeep").stdout == "me: removed 1 interaction\n"
    assert cli.json("events", "list") == []


def test_a_run_needs_no_more_than_its_day() -> None:
    run = ExtractionRun(id="run-1", day=T0.date(), started_at=T0)
    assert (run.status, run.kind, run.duration_ms, run.details) == ("pending", "batch", None, {})


def test_G3_one_damaged_database_does_not_hide_the_runs_of_others(cli: Cli, caplog: pytest.LogCaptureFixture) -> None:
    with recollect.open(cli.root) as app:
        for user in ("a", "b", "c"):
            app.user(user).note_run(extraction_run(f"run-{user}", status="completed"))
    for path in cli.root.glob("b/**/*.db*"):
        path.write_bytes(b"damaged " * 2000)
    with recollect.open(cli.root) as app:
        told: list[str] = []
        assert sorted(user for user, _ in app.runs(unreadable=lambda user, _: told.append(user))) == ["a", "c"]
        assert told == ["b"]
        assert len(app.runs()) == 2 and "cannot be read: StoreCorruptError" in caplog.text
    shown = cli("runs", "--all", code=4)
    assert "b was skipped" in shown.stderr and shown.stdout.count("completed") == 2
    listed = cli.json("runs", "--all", code=4)
    assert (
        sorted(one["user"] for one in listed) == ["a", "b", "c"] and listed[-1]["user"] == "b" and listed[-1]["problem"]
    )


def test_G3_when_it_was_reported_is_for_the_memory_to_say(tmp_path: Path) -> None:
    clock = FrozenClock()
    with recollect.open(tmp_path, clock=clock) as app:
        memory = app.user("u1")
        memory.report_many([{"kind": "save", "id": "a", "title": "Rust", "reported_at": "1999-01-01"}])
        clock.tick(hours=-2)
        memory.report("save", id="b", title="Go")
        a, b = sorted(memory.interactions(), key=lambda one: one.id)
        assert a.reported_at is not None and b.reported_at is not None and T0 <= a.reported_at < b.reported_at
        copied = app.user("u2")
        copied.import_(memory.export(f"{tmp_path}.zip"))
        assert [one.reported_at for one in copied.interactions()] == [b.reported_at, a.reported_at]


def test_U3_G3_extraction_tells_what_it_does_and_what_was_asked_wrongly(cli: Cli) -> None:
    cli("say", "I live in Oslo.", "--session", "s", "--user", "anna")
    dry = cli("extract", "--all", "--dry-run")
    assert "anna (dry run):\n  Remembered: location: Oslo" in dry.stdout and "1 memory written" in dry.stdout
    assert "nothing was changed" in dry.stderr and "tokens are in the ledger" not in dry.stderr
    assert "combined with --user-id" in cli("extract", "--all", "--user-id", "anna", code=2).stderr
    wrong = cli("extract", "--user-id", "anna", "--date", "yesterday", code=2)
    assert "use YYYY-MM-DD" in wrong.stderr and "No model" not in wrong.stderr
    assert "no memory yet" in cli("extract", "--user-id", "nobody", code=3).stdout
    assert "Remembered: location: Oslo" in cli("extract", "--user-id", "anna").stdout
    assert "There are no runs of kind x." in cli("runs", "--user", "anna", "--kind", "x").stderr
