"""Repair of a damaged database, from outside: some of it is overwritten, then the public `rebuild`. Everything that a
plain reader could still read is there afterwards, and what is reported lost is what is lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import recollect
from recollect.core.rebuild import RebuildReport
from recollect.errors import NothingToRebuildError, StoreCorruptError, UndoError
from recollect.records import Refused, Written
from recollect.surfaces.cli.program import app as cli
from recollect.testing.clock import FrozenClock
from tests.contracts.memory_contract import log
from tests.contracts.store_contract import extraction_run, tool_call

_PAGE = 4096
_CASES = int(os.environ.get("RECOLLECT_REPAIR_CASES", "40"))
_PARTS = ("records", "journal", "tombstones", "interactions", "runs")

Rows = dict[str, dict[Any, dict[str, Any]]]
"""By member of the archive and key: everything a memory holds."""


def rows_of(memory: recollect.Memory, folder: Path) -> Rows:
    path = memory.export(folder / "everything.zip")
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
    assert lost == {s for s in rows["journal"] if now["journal"].get(s) != rows["journal"][s]} | (
        lost - rows["journal"].keys()
    )
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


@pytest.mark.parametrize("seed", range(_CASES))
def test_F9_repair_keeps_every_row_that_can_be_read(whole: tuple[Path, Rows, str], tmp_path: Path, seed: int) -> None:
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
        if not any("perhaps more" in line for line in report.lost):
            assert told == really, f"{what}: {report.lost}"
        for name, number in told.items():
            assert number <= really.get(name, 0), f"{what}: {report.lost}"
        assert report.aside is not None and report.aside.is_file()
