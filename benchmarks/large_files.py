"""What a line of a large MEMORY.md costs, and what a record of a large import: as ratios within one run.

    python -m benchmarks.large_files [--lines 20000] [--records 50000]

Prints, for each operation, the CPU time at 1,000 lines and at the number asked for, and what a line costs there
compared with what it costs at 1,000: 1.0 is linear. An import is compared with the bare insertion of the same rows
into SQLite (`executemany`, one transaction), which no import can undercut.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import recollect
from recollect.memory.memory import Memory

_WORDS = [start + end for start in "ba ko li mu ne ra so ti va zu".split() for end in "nder ling ster dow ssel".split()]
_SECTIONS = ("User Preferences", "Work Context", "Personal Context", "Key Facts")


def _said(chance: random.Random, words: int) -> str:
    return " ".join(chance.choice(_WORDS) for _ in range(words))


def _text(lines: int) -> str:
    chance = random.Random(lines)
    parts = ["# User Memory\n"]
    for section in _SECTIONS:
        parts.append(f"\n## {section}\n")
        for number in range(lines // len(_SECTIONS)):
            label = f"Label {section[0]}{number}: " if number % 2 else ""
            parts.append(f"- {label}{_said(chance, 4)} {number}\n")
    return "".join(parts)


def _seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _file_costs(lines: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, recollect.open(folder) as app:
        memory = app.user("u1")
        memory.remember("Plays the theremin")
        memory.search("theremin")  # what is loaded on first use is loaded
        path = Path(folder) / "u1" / "MEMORY.md"
        path.write_text(_text(lines), encoding="utf-8")
        spent = {"taken over": _seconds(memory.show), "shown": _seconds(memory.show)}
        spent["first search"] = _seconds(lambda: memory.search("theremin"))
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("\n- ", "\n- A line of mine\n- ", 1), encoding="utf-8")
        spent["a line added"] = _seconds(memory.show)
        agent = memory.acting("agent")
        spent["agent's write"] = _seconds(lambda: agent.remember("Was born in Ulaanbaatar", key="birthplace"))
        spent["a fact erased"] = _seconds(lambda: memory.erase(memory.get("birthplace").id))
        kept = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(kept[: len(kept) // 2]), encoding="utf-8")
        spent["half deleted"] = _seconds(memory.show)
        return spent


def _fill(memory: Memory, records: int) -> None:
    chance = random.Random(records)
    with memory.batch() as batch:
        for number in range(records):
            if number % 10 < 6:
                batch.say(_said(chance, 8), session=f"s{number // 60}")
            elif number % 10 < 8:
                batch.note(f"{_said(chance, 9)} {number}")
            elif number % 10 < 9:
                batch.remember(f"Likes {_said(chance, 4)} {number}")
            else:
                batch.episode(_said(chance, 2), f"{_said(chance, 10)} {number}")


def _bare(source: Path, target: Path) -> float:
    """The rows of a memory, copied by `executemany` in one transaction."""
    rows: dict[str, list[tuple[object, ...]]] = {}
    with sqlite3.connect(source) as db:
        schema = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
        for table in ("records", "journal"):
            rows[table] = db.execute(f"SELECT * FROM {table}").fetchall()
    db = sqlite3.connect(target)
    for sql in schema:
        db.execute(sql)

    def insert() -> None:
        with db:
            for table, found in rows.items():
                db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(found[0]))})", found)

    spent = _seconds(insert)
    db.close()
    return spent


def _import_costs(records: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as outer, recollect.open(Path(outer) / "memory") as app:
        folder = Path(outer) / "memory"
        source = app.user("source")
        _fill(source, records)
        archive = Path(outer) / "archive.zip"
        source.export(archive)
        used = app.user("used")
        used.remember("Something else")
        return {
            "bare": _bare(folder / "source" / "memory.db", Path(outer) / "bare.db"),
            "restored": _seconds(lambda: app.user("empty").import_(archive)),
            "merged": _seconds(lambda: used.import_(archive)),
            "again": _seconds(lambda: used.import_(archive)),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--records", type=int, default=50_000)
    asked = parser.parse_args()
    if asked.lines:
        small, large = _file_costs(1000), _file_costs(asked.lines)
        print(f"{'MEMORY.md':16} {'1,000':>8} {asked.lines:>8,}  a line costs")
        for name, spent in large.items():
            ratio = spent / asked.lines / max(small[name] / 1000, 1e-9)
            print(f"{name:16} {small[name]:7.2f}s {spent:7.2f}s  {ratio:6.2f} times as much")
    if asked.records:
        found = _import_costs(asked.records)
        print(f"\n{'import':16} {asked.records:>8,}  of a bare insertion")
        for name, spent in found.items():
            print(f"{name:16} {spent:7.2f}s  {spent / found['bare']:6.1f} times")


if __name__ == "__main__":
    main()
