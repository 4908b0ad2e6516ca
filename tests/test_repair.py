"""Repair of a damaged database, from outside: some of it is overwritten, then the public `rebuild`. Everything that a
plain reader could still read is there afterwards, and what is reported lost is what is lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import stat
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import recollect
from recollect.errors import NothingToRebuildError, StoreCorruptError, UndoError
from recollect.memory.rebuild import RebuildReport
from recollect.records import Refused, Written
from recollect.surfaces.cli import memory_commands as _whole  # noqa: F401  (adds its commands)
from recollect.surfaces.cli.program import app as cli
from recollect.testing.clock import FrozenClock
from tests.contracts.memory_contract import log
from tests.contracts.store_contract import extraction_run, tool_call
from tests.volume import seeds

_PAGE = 4096
_CASES = int(os.environ.get("RECOLLECT_REPAIR_CASES", "40"))
_PARTS = ("records", "journal", "tombstones", "interactions", "runs")

Rows = dict[str, dict[Any, dict[str, Any]]]
"""By member of the archive and key: everything a memory holds."""


def rows_of(memory: recollect.Memory, folder: Path) -> Rows:
    path = memory.export(f"{folder}-everything.zip")
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(f"{part}.jsonl").decode().split("\n") for part in _PARTS}
    path.unlink()
    found: Rows = {}
    for part, lines in parts.items():
        rows = [json.loads(line) for line in lines if line]
        found[part] = {_key(part, row): row for row in rows}
    found["calls"] = {call.id: {} for call in memory.calls(limit=1000)}
    return found


def _key(part: str, row: dict[str, Any]) -> Any:
    if part == "records":
        return row["id"], row.get("version", 1)
    return row["seq"] if part == "journal" else (row["hash"], row["record_id"]) if part == "tombstones" else row["id"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rows, str]:
    """300 notes, 300 messages, 50 episodes, facts with versions, and everything else there can be."""
    root = tmp_path_factory.mktemp("whole")
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        with memory.batch() as batch:
            for number in range(300):
                batch.note(f"Note {number} about {number * 7919 % 10007}: " + f"{number * 31} words " * (number % 40))
                batch.say(f"Message {number}, number {number * 13}", session=f"chat-{number % 5}")
            for number in range(50):
                batch.episode(f"Topic {number}", f"Summary {number} of what happened " * 5, messages=[f"m-{number}"])
                batch.observe(f"Observation {number} of {number * 7919 % 10007}", "insight")
                batch.set_scratch(f"place {number}", f"value {number}")
            for number in range(60):
                batch.remember(f"Street {number}, house {number * 7919 % 10007}", key=f"address {number}")
        with memory.batch() as batch:
            for number in range(0, 60, 3):
                batch.update(f"address {number}", f"Road {number}, flat {number * 31}")
            for number in range(20):
                batch.jot(f"Read {number} posts about {number * 7919 % 10007}")
        memory.note("A very long note " * 3000)
        memory.remember("Owes money to Max", source="discussion:1")
        memory.erase(memory.search("money")[0].record.id)
        for number in range(200):
            memory.report("save", id=f"event-{number}", title=f"Title {number} " * 5)
        log(memory, *(tool_call(f"call-{number}", number) for number in range(200)))
        for day in range(1, 20):
            memory.note_run(extraction_run(f"run-{day}", day))
        memory.spend("extract", tokens_in=100, cost=0.5)
        memory.consent("trends")
        shown = memory.show()
        rows = rows_of(memory, root)
        assert memory.verify() == []
    with sqlite3.connect(root / "u1" / "memory.db") as db:
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    db.close()
    return root, rows, shown


_LOOKED_UP = {
    "records": "SELECT * FROM records WHERE id = ? AND version = ?",
    "journal": "SELECT * FROM journal WHERE seq = ?",
    "interactions": "SELECT * FROM interactions WHERE id = ?",
    "runs": "SELECT * FROM extraction_runs WHERE run_date = ? AND kind = ?",
    "calls": "SELECT * FROM calls WHERE id = ?",
}


def readable(path: Path, rows: Rows, original: Path) -> dict[str, set[Any]]:
    """The keys of what plain SQLite can still look up as it was, one row after another."""
    found: dict[str, set[Any]] = {part: set() for part in _LOOKED_UP}
    db, whole = (sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True) for file in (path, original))
    for part, query in _LOOKED_UP.items():
        for key, row in rows[part].items():
            given = key if isinstance(key, tuple) else (row["day"], row["kind"]) if part == "runs" else (key,)
            try:
                if db.execute(query, given).fetchone() == whole.execute(query, given).fetchone():
                    found[part].add(key)
            except sqlite3.Error:
                pass
    db.close()
    whole.close()
    return found


def check_repaired(
    memory: recollect.Memory, report: RebuildReport, rows: Rows, before: dict[str, set[Any]], folder: Path, shown: str
) -> Rows:
    now = rows_of(memory, folder)
    for part, keys in before.items():
        for key in keys:
            assert key in now[part], f"{part} {key} could be read, and is gone"
            if part in ("records", "journal"):
                assert now[part][key] == rows[part][key], f"{part} {key} is not as it was"
    lost = {seq for begin, end in report.gaps for seq in range(begin, end + 1)}
    assert lost == {s for s, row in now["journal"].items() if row["op"] == "lost"}
    changed = {s for s in rows["journal"] if now["journal"].get(s) != rows["journal"][s]}
    assert lost & rows["journal"].keys() <= changed
    assert not (changed - lost) & before["journal"]
    facts = [r["content"] for r in _latest(rows).values() if r["kind"] in ("fact", "daily")]
    stored = [r["content"] for r in _latest(now).values() if r["kind"] in ("fact", "daily")]
    if memory.show() == shown:
        assert not Counter(facts) - Counter(stored), "a fact that the files show is gone"
    assert memory.mode == "on" or any("paused" in line for line in report.lost)
    memory.resume()
    assert isinstance(memory.remember("Learns to repair"), Written)
    assert memory.verify() == []
    assert isinstance(memory.remember("Owes money to Max", source="batch_extraction"), Refused) or any(
        "erased" in line for line in report.lost
    )
    with pytest.raises(NothingToRebuildError):
        memory.rebuild()
    return now


def _latest(rows: Rows) -> dict[str, dict[str, Any]]:
    return {key[0]: row for key, row in sorted(rows["records"].items())}


def _counted_lost(rows: Rows, now: Rows) -> dict[str, int]:
    """What is really lost, as the report counts it; what came back from the files under another id is not."""
    before, after = _latest(rows), _latest(now)
    texts = Counter((row["kind"], row["content"]) for key, row in after.items() if key not in before)
    lost: Counter[str] = Counter()
    for record_id, row in before.items():
        if record_id not in after:
            if texts[row["kind"], row["content"]]:
                texts[row["kind"], row["content"]] -= 1
            else:
                lost[row["kind"]] += 1
    for part, name in (("interactions", "interactions"), ("runs", "extraction_runs"), ("calls", "calls")):
        lost[name] += len(rows[part].keys() - now[part].keys())
    return {name: number for name, number in lost.items() if number}


def _overwrite(path: Path, chance: random.Random) -> str:
    """Damage one page or a few, wholly or in part."""
    pages = path.stat().st_size // _PAGE
    wanted = chance.sample(range(pages), chance.choice((1, 1, 1, 2, 4)))
    how = chance.choice(("zeros", "garbage", "garbage", "some garbage", "some zeros"))
    with path.open("r+b") as file:
        for page in wanted:
            size = _PAGE if not how.startswith("some") else chance.randrange(30, 400)
            file.seek(page * _PAGE + chance.randrange(0, _PAGE - size + 1))
            file.write(bytes(size) if how.endswith("zeros") else chance.randbytes(size))
    return f"{how} in pages {wanted} of {pages}"


@pytest.mark.everyday(1)
@pytest.mark.parametrize("seed", seeds(8, _CASES))
def test_C17_repair_keeps_every_row_that_can_be_read(whole: tuple[Path, Rows, str], tmp_path: Path, seed: int) -> None:
    template, rows, shown = whole
    root = tmp_path / "memory"
    shutil.copytree(template, root)
    path = root / "u1" / "memory.db"
    what = _overwrite(path, random.Random(seed))
    before = readable(path, rows, template / "u1" / "memory.db")
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        try:
            report = memory.rebuild()
        except NothingToRebuildError:
            assert {part: len(keys) for part, keys in before.items()} == {part: len(rows[part]) for part in before}, (
                what
            )
            return
        now = check_repaired(memory, report, rows, before, tmp_path, shown)
        really = _counted_lost(rows, now)
        told = {name: number for name, number in report.missing.items() if name not in ("spending", "tombstones")}
        if not any("possibly more" in line for line in report.lost):
            assert told == really, f"{what}: {report.lost}"
        for name, number in told.items():
            assert number <= really.get(name, 0), f"{what}: {report.lost}"
        assert report.aside is not None and report.aside.is_file()


@pytest.mark.slow
def test_F9_a_damaged_index_or_journal_page_costs_no_record(whole: tuple[Path, Rows, str], tmp_path: Path) -> None:
    template, rows, _ = whole
    for tree in ("records_by_kind", "journal_by_record", "journal"):
        root = tmp_path / tree
        shutil.copytree(template, root)
        path = root / "u1" / "memory.db"
        db = sqlite3.connect(path)
        (number,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (tree,)).fetchone()
        db.close()
        with path.open("r+b") as file:
            file.seek((number - 1) * _PAGE)
            file.write(random.Random(1).randbytes(_PAGE))
        with recollect.open(root, clock=FrozenClock()) as app:
            memory = app.user("u1")
            report = memory.rebuild()
            # even a root page: the pages below it are found without it
            assert report.lost == () and report.missing == {} and report.gaps == (), report.lost
            now = rows_of(memory, tmp_path)
            for part in (*_PARTS, "calls"):
                assert now[part].items() >= rows[part].items(), (tree, part)
            assert len(now["journal"]) == len(rows["journal"]) + 1, "the repair itself"
            assert memory.verify() == [] and memory.mode == "on" and memory.consents() == ("trends",)
            assert [spent.cost for spent in memory.usage(since="2026-02-12", until="2026-02-12")] == [0.5]


@pytest.mark.slow
def test_F9_what_the_repair_could_not_read_is_named_and_no_alarm(whole: tuple[Path, Rows, str], tmp_path: Path) -> None:
    root = tmp_path / "memory"
    shutil.copytree(whole[0], root)
    path = root / "u1" / "memory.db"
    marks = [b'"Observation 7 of', b"Message 17, number"]
    data = bytearray(path.read_bytes())
    for mark in marks:
        place = data.find(mark)
        while place >= 0:
            begin = place - place % _PAGE
            data[begin : begin + _PAGE] = bytes(_PAGE)
            place = data.find(mark)
    path.write_bytes(data)
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        assert memory.verify() != []
        report = memory.rebuild()
        assert report.missing["message"] >= 1 and report.gaps
        (line,) = [line for line in report.lost if "journal entries" in line or "journal entry" in line]
        assert ", ".join(str(b) if b == e else f"{b}-{e}" for b, e in report.gaps) in line
        assert memory.verify() == []
        first = report.gaps[0][0]
        (entry,) = [entry for entry in memory.history(limit=10_000) if entry.seq == first]
        assert entry.op == "lost" and entry.actor == "rebuild"
        with pytest.raises(UndoError, match="was lost when the database was repaired"):
            memory.undo(first)
        # the gap is known after an export and an import, too
        other = app.user("u2")
        other.import_(memory.export(tmp_path / "archive.zip"))
        assert other.verify() == []


Damage = Callable[[Path], None]


def _truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 + 1000)


def _zeroed_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(100))


def _no_first_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(random.Random(3).randbytes(_PAGE))


def _emptied(path: Path) -> None:
    os.truncate(path, 0)


def _folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe_instead(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _foreign_log(path: Path) -> None:
    path.with_name(path.name + "-wal").write_bytes(random.Random(4).randbytes(50_000))


@pytest.mark.everyday(2)
@pytest.mark.parametrize(
    "damage",
    [_truncated, _zeroed_header, _no_first_page, _emptied, _folder_instead, _pipe_instead, _foreign_log],
    ids=lambda damage: damage.__name__.strip("_"),
)
def test_F9_other_damage_is_repaired_too(whole: tuple[Path, Rows, str], tmp_path: Path, damage: Damage) -> None:
    template, rows, shown = whole
    root = tmp_path / "memory"
    shutil.copytree(template, root)
    path = root / "u1" / "memory.db"
    damage(path)
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        if damage is _foreign_log:  # SQLite passes over what never was its log
            assert memory.verify() == []
            report = memory.rebuild(force=True)
        else:
            with pytest.raises(StoreCorruptError, match="recollect rebuild"):
                memory.read()
            report = memory.rebuild()
        nothing: dict[str, set[Any]] = {part: set() for part in _LOOKED_UP}
        now = check_repaired(memory, report, rows, nothing, tmp_path, shown)
        assert report.aside is not None and os.path.lexists(report.aside)
        if damage in (_zeroed_header, _no_first_page, _foreign_log):
            assert _counted_lost(rows, now) == {} and report.gaps == () and report.missing == {}
        elif damage is _truncated:
            assert _counted_lost(rows, now) == report.missing or any("at least" in line for line in report.lost)
        else:
            assert any("everything except" in line for line in report.lost)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.everyday(1)
@pytest.mark.parametrize("how", ["missing", "header", "first frame", "middle", "end"])
def test_F9_a_damaged_log_costs_what_it_held_there(tmp_path: Path, how: str) -> None:
    app = recollect.open(tmp_path / "live", clock=FrozenClock())
    memory = app.user("u1")
    for number in range(40):
        memory.note(f"Note {number} about {number * 7919}")
        memory.remember(f"Street {number * 31}", key=f"address {number}")
    root = tmp_path / "copy"
    shutil.copytree(tmp_path / "live", root)  # with the log, as a kill would leave it
    app.close()
    path = root / "u1" / "memory.db-wal"
    size = path.stat().st_size
    assert size > 100 * _PAGE
    if how == "missing":
        path.unlink()
    else:
        place = {"header": 0, "first frame": 40, "middle": size // 2, "end": size - 1000}[how]
        with path.open("r+b") as file:
            file.seek(place)
            file.write(random.Random(5).randbytes(200 if how != "header" else 32))
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        report = memory.rebuild(force=True)
        contents = {record.content for record in memory.read(limit=1000)}
        assert {f"Street {number * 31}" for number in range(40)} <= contents, "the files have the facts"
        if how in ("first frame", "middle"):  # every page is in the log many times
            assert {f"Note {number} about {number * 7919}" for number in range(40)} <= contents, report.lost
        assert memory.verify() == []


def test_F9_only_repair_is_needed_after_one_was_interrupted(whole: tuple[Path, Rows, str], tmp_path: Path) -> None:
    template, rows, _ = whole
    root = tmp_path / "memory"
    shutil.copytree(template, root)
    folder = root / "u1"
    (folder / "MEMORY.md").unlink()
    (folder / "memory.db").rename(folder / "memory.db.damaged-20260212T093000000000")
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        with pytest.raises(StoreCorruptError, match="recollect rebuild"):
            memory.note("As if nothing had been")
        memory.rebuild()
        assert rows_of(memory, tmp_path)["records"] == rows["records"]


def test_R7_what_is_erased_is_overwritten_in_the_copy_that_was_set_aside(tmp_path: Path) -> None:
    with recollect.open(tmp_path, clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.remember("Adores the zebra Zora", key="animal", excerpt="that zebra of mine")
        memory.update("animal", "Adores the zebra Zita")
        memory.note("The zebra needs hay " * 700)
        memory.note("The boiler was repaired")
        report = memory.rebuild(force=True)
        assert report.aside is not None and report.lost == ()
        aside = [path for path in (tmp_path / "u1").iterdir() if path.name.startswith(report.aside.name)]
        erased = memory.erase(*(record.id for record in memory.read() if "zebra" in record.content))
        assert erased.receipt.places["rows of damaged copies"] > 0
        assert any(report.aside.name in notice and "Delete the file" in notice for notice in erased.notices)
        assert report.aside.exists(), "nothing set aside is deleted without being asked"
        for path in aside:
            assert b"zebra" not in path.read_bytes().lower(), path
        held = sum(path.read_bytes().count(b"boiler") for path in aside)
        assert held, "the rest of the copy stays"
        memory.clear()
        assert not any(path.exists() for path in aside), "who clears asks for everything to go"


def test_F9_the_command_says_what_is_lost_and_keeps_the_notes(whole: tuple[Path, Rows, str], tmp_path: Path) -> None:
    root = tmp_path / "memory"
    shutil.copytree(whole[0], root)
    with (root / "u1" / "memory.db").open("r+b") as file:
        file.seek(20 * _PAGE)
        file.write(bytes(_PAGE))
    given = ["--user", "u1", "--root", str(root)]
    damaged = CliRunner().invoke(cli, ["verify", *given])
    assert damaged.exit_code == 1 and "recollect rebuild" in damaged.output
    would = CliRunner().invoke(cli, ["rebuild", "--dry-run", *given])
    done = CliRunner().invoke(cli, ["rebuild", "--yes", *given])
    assert would.exit_code == done.exit_code == 0, done.output
    assert would.stdout == done.stdout.replace("Restored:", "Would restore:", 1)
    assert "301 notes" in done.stdout and "300 messages" in done.stdout
    assert CliRunner().invoke(cli, ["verify", *given]).stdout == "u1: no problems found\n"
