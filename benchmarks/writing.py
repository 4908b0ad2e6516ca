"""What a durable write costs, as ratios within one run.

    python -m benchmarks.writing [--json]

A bare SQLite insert with the same sync to disk is measured in turn with ours, so that a noisy machine
disturbs both alike. Two yardsticks: SQLite as this project uses it (WAL), and as it comes (rollback journal);
both sync every commit. Prints a table; ratios are what counts.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import recollect
from benchmarks.new_process import resident
from benchmarks.timing import milliseconds, print_report

_VERBS = (
    "likes avoids studies teaches collects reviews repairs paints sells plants records translates photographs designs "
    "climbs visits bakes reads edits tests measures restores organises sponsors compares funds follows prefers"
).split()
_THINGS = (
    "coffee trains databases chess gardens opera bicycles maps bread violins rockets novels beacons orchids kernels "
    "compilers museums sailboats cheeses volcanoes podcasts murals satellites bridges recipes tulips proteins canals "
    "dialects fossils glaciers hammocks islands jackets kettles lanterns marathons networks owls parsers quilts robots "
    "sculptures telescopes umbrellas vaccines windmills xylophones yachts zeppelins"
).split()
_PLACES = (
    "Lisbon Osaka Kyiv Toronto Nairobi Lima Oslo Bogota Hanoi Turin Lyon Galway Perth Quito Riga Sofia Tunis Utrecht "
    "Vilnius Warsaw Zagreb Accra Bergen Cusco Dakar Essen Fez Ghent"
).split()


def sentence(number: int) -> str:
    """A fact of ordinary length, unlike the others."""
    verb, thing = _VERBS[number % 28], _THINGS[number // 3 % 49]
    other, place = _THINGS[(number * 7 + 11) % 49], _PLACES[number // 5 % 28]
    return f"{verb.capitalize()} {thing} and {other} number {number} near {place} every {number % 29 + 2} weeks"


def bare_insert(folder: Path, journal: str = "WAL") -> Callable[[], object]:
    """The yardstick: one row, one commit, synced."""
    db = sqlite3.connect(folder / f"bare-{journal}.db", isolation_level=None)
    db.execute(f"PRAGMA journal_mode = {journal}")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE facts (id INTEGER PRIMARY KEY, content TEXT)")
    return lambda: db.execute("INSERT INTO facts (content) VALUES (?)", (sentence(12345),))


def single_writes(folder: Path, rounds: int = 400) -> dict[str, float]:
    """A fact, a note and a message, each against the bare insert."""
    memory = recollect.open(folder / "single").user("u1")
    bare, plain = bare_insert(folder), bare_insert(folder, "DELETE")
    for number in range(100):  # warm up, and a memory of ordinary size
        memory.remember(sentence(number))
        bare()
        plain()
    kinds = ("bare insert", "bare insert, rollback journal", "fact", "note", "message", "fact in a batch of 100")
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(1000, 1000 + rounds):
        text = sentence(number)
        times["bare insert"].append(milliseconds(bare))
        times["bare insert, rollback journal"].append(milliseconds(plain))
        times["fact"].append(milliseconds(lambda text=text: memory.remember(text)))  # type: ignore[misc]
        times["note"].append(milliseconds(lambda text=text: memory.note("Note: " + text)))  # type: ignore[misc]
        times["message"].append(milliseconds(lambda text=text: memory.say(text, session="s")))  # type: ignore[misc]
    for start in range(5000, 5500, 100):

        def together(start: int = start) -> None:
            with memory.batch() as batch:
                for number in range(start, start + 100):
                    batch.remember(sentence(number))

        times["fact in a batch of 100"].append(milliseconds(together) / 100)
    return {name: statistics.median(values) for name, values in times.items()}


def growth(folder: Path, most: int = 10_000, rounds: int = 200) -> dict[str, float]:
    """The 100th write of a user against the 10,000th of another, in turn."""
    app = recollect.open(folder / "growth")
    large = app.user("u1")
    for start in range(0, most - rounds, 500):
        with large.batch() as batch:
            for number in range(start, min(start + 500, most - rounds)):
                batch.remember(sentence(number))
    early: list[float] = []
    late: list[float] = []
    for turn in range(rounds):
        if turn % 40 == 0:  # a new user, from the 80th write to the 120th
            small = app.user(f"small-{turn}")
            with small.batch() as batch:
                for number in range(80):
                    batch.remember(sentence(number))
            small.remember("Warm by now")
        text = sentence(most + turn)
        early.append(milliseconds(lambda text=text, small=small: small.remember(text)))  # type: ignore[misc]
        late.append(milliseconds(lambda text=text: large.remember(text)))  # type: ignore[misc]
    return {
        "median": statistics.median(late) / statistics.median(early),
        "mean": statistics.mean(late) / statistics.mean(early),
    }


_OPENING = """
import sys, time, recollect
opened = recollect.open(sys.argv[1])
start = time.perf_counter()
memory = opened.user("u1")
memory.read(kind="fact", limit=20)
print((time.perf_counter() - start) * 1e3)
"""


def opening(folder: Path) -> float:
    """Opening a user of 10,000 records in a new process, and reading."""
    command = [sys.executable, "-c", _OPENING, str(folder / "growth")]
    runs = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(5)]
    return statistics.median(runs)


def many_users(folder: Path, number: int = 1000) -> tuple[int, int]:
    """Bytes in memory after 200 and after all users were opened in turn, each written to and read."""
    store = recollect.open(folder / "many")
    after_some = 0
    for user in range(number):
        memory = store.user(f"user-{user}")
        for fact in range(3):
            memory.remember(sentence(user * 10 + fact))
        memory.read(kind="fact")
        if user == 200:
            after_some = resident() or 0
    return after_some, resident() or 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        single = single_writes(folder)
        grown = growth(folder)
        opened = opening(folder)
        some, many = many_users(folder)
    wal, plain = single["bare insert"], single["bare insert, rollback journal"]
    figures = {
        "bare insert (WAL, FULL), ms": wal,
        "bare insert (SQLite's own defaults), ms": plain,
        **{f"{kind}, ms": single[kind] for kind in ("fact", "note", "message", "fact in a batch of 100")},
        **{
            f"{kind} / bare insert": single[kind] / wal
            for kind in ("fact", "note", "message", "fact in a batch of 100")
        },
        **{f"{kind} / bare insert, defaults": single[kind] / plain for kind in ("fact", "note", "message")},
        "10,000th write / 100th": grown["median"],
        "10,000th write / 100th, means": grown["mean"],
        "open 10,000 records, ms": opened,
        "memory after 1,000 users / after 200": many / max(some, 1),
    }
    goals = {
        "fact / bare insert": "3 is the aim; missed",
        "note / bare insert": "3 is the aim; missed",
        "message / bare insert": "3 is the aim",
        "fact / bare insert, defaults": "<= 3",
        "10,000th write / 100th": "<= 1.5",
        "open 10,000 records, ms": "< 50",
        "memory after 1,000 users / after 200": "about 1",
    }
    print_report(figures, as_json=options.json, goals=goals)


if __name__ == "__main__":
    main()
