"""How fast a memory is, and how much it needs: writing, searching, starting, beside others, as ratios of one run.

For each number of records one user gets that many, through the ordinary write path. Then the same questions are
asked of the memory, of its index alone and of the others, in turn, so that a noisy machine disturbs all alike; a
question's time is the median of several rounds. Beside the time by the clock there is that of the processor: where
they differ, the machine had other work to do. A search of the memory also reads the records and says why they
matched; the others, and our index alone, only name the ten best. At last many users with few records each share one
folder.

Files are read from the system's cache: nothing here measures a cold disk.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import recollect
from benchmarks import engines, new_process
from benchmarks.made_up import BEGIN, FORMS, SPAN, Entry, Talk, Wanted
from benchmarks.timing import milliseconds, percentiles
from recollect.errors import InvalidInputError
from recollect.memory.memory import Memory
from recollect.text import terms

if TYPE_CHECKING:
    from recollect.search.index.index import Index

SIZES = (1000, 10_000, 100_000, 1_000_000)
USERS = 10_000
QUICK_SIZES = (1000, 10_000)
QUICK_USERS = 200
OURS, ALONE = "recollect", "index alone"
EVERYTHING, FILTERED = "everything", "with filters"
SEARCHES = (EVERYTHING, FILTERED, *FORMS)
"""What is searched: everything; narrowed, all forms together; each form."""

_USER = "bench"
_BATCH = 5000
_OF_A_USER = 100
_PROCESSES = 5
_QUESTIONS = 96
_KEPT = 36_500  # days; messages expire, and these were said long ago

Progress = Callable[[str, int, int], None]
Figures = dict[str, Any]


@dataclass
class _Clock:
    """Tells the time of what is being told."""

    now: datetime = BEGIN

    def __call__(self) -> datetime:
        return self.now


@dataclass
class _Times:
    """Milliseconds by the clock and of the processor, for each question those of all rounds."""

    questions: int
    wall: list[list[float]] = field(init=False)
    processor: list[list[float]] = field(init=False)

    def __post_init__(self) -> None:
        self.wall = [[] for _ in range(self.questions)]
        self.processor = [[] for _ in range(self.questions)]

    def figures(self, form: int | None = None) -> Figures:
        """The usual ones, over all questions or those of one form."""
        of_form = slice(None) if form is None else slice(form, None, len(FORMS))
        wall, processor = (
            [statistics.median(rounds) for rounds in times[of_form]] for times in (self.wall, self.processor)
        )
        return percentiles(wall) | {"processor_p50": statistics.median(processor)}


def measure(
    sizes: Sequence[int] = SIZES,
    users: int = USERS,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Figures:
    """All figures, and which goals they reach. The data is in a folder of its own, in ``folder`` if given."""
    if not sizes or min(sizes) < 100:
        raise InvalidInputError("sizes", "must be numbers of records, each at least 100")
    if users < 0:
        raise InvalidInputError("users", "must be a number of users, or 0 to leave them out")
    tell = progress or (lambda what, done, total: None)
    figures: Figures = {"machine": _machine(), "sizes": [], "users": None}
    with tempfile.TemporaryDirectory(prefix="recollect-bench-", dir=folder) as name:
        place = Path(name)
        if users:  # first, while this process is small: its memory is measured too
            figures["users"] = _many_users(place / "users", users, tell)
            shutil.rmtree(place / "users")
        for size in sorted(set(sizes)):
            (place / str(size)).mkdir()
            figures["sizes"].append(_one_user(place / str(size), size, tell))
            shutil.rmtree(place / str(size))
            gc.collect()
    figures["goals"] = goals(figures)
    return figures


def _machine() -> Figures:
    import numpy

    return {
        "system": platform.platform(),
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "sqlite": sqlite3.sqlite_version,
        "recollect": recollect.__version__,
    }


# one user


def _one_user(folder: Path, size: int, tell: Progress) -> Figures:
    talk, clock = Talk(), _Clock()
    count = _QUESTIONS if size <= 10_000 else 48 if size <= 100_000 else 24
    questions, filters = talk.questions(count), talk.narrowed(count, size)
    with _opened(folder / "memory", clock) as app:
        memory = app.user(_USER)
        figures: Figures = {"records": size, "load_per_s": _load(memory, clock, talk.records(size), size, tell)}
        memory.search(questions[0])
        memory._user_memory.index.save()
        figures |= _new_processes(folder / "memory", questions[1])
        with ExitStack() as opened:
            figures["search"] = _searches(opened, folder, memory, talk, size, questions, filters, tell)
        rounds = len(questions)
        tell(f"{size:,}: writing", 0, rounds)
        figures["after_write"] = _after_a_write(memory, questions, talk)
        figures["write_ms"] = _writes(memory, talk, rounds)
        tell(f"{size:,}: writing", rounds, rounds)
    return figures


def _opened(folder: Path, clock: _Clock) -> recollect.Recollect:
    return recollect.open(folder, clock=clock, embedder="", weights="", message_retention_days=_KEPT)


def _store(memory: Memory, entry: Entry) -> None:
    if entry.kind == "message":
        memory.say(entry.text, session=entry.session, role=entry.role, speaker=entry.speaker, said_at=entry.said_at)
    elif entry.kind == "note":
        memory.note(entry.text, tags=entry.tags)
    else:
        memory.observe(entry.text, entry.category or "", tags=entry.tags)


def _load(memory: Memory, clock: _Clock, entries: Iterator[Entry], size: int, tell: Progress) -> float:
    """Store all of them, in batches; how many a second."""
    at_once = min(_BATCH, max(size // 20, 50))  # what is no message is said when its batch is written
    done, seconds = 0, 0.0
    while part := list(islice(entries, at_once)):
        tell(f"{size:,}: loading", done, size)
        began = time.perf_counter()
        clock.now = part[0].said_at
        with memory.batch() as batch:
            for entry in part:
                _store(batch, entry)
        seconds += time.perf_counter() - began
        done += len(part)
    clock.now = BEGIN + SPAN
    return done / seconds


def _searches(
    opened: ExitStack,
    folder: Path,
    memory: Memory,
    talk: Talk,
    size: int,
    questions: Sequence[str],
    filters: Sequence[Wanted],
    tell: Progress,
) -> Figures:
    """Each kind of search, by everyone who can: p50, p95, and how many times ours that is."""
    from recollect.search.question import Question

    index = new_process.index_of(memory)
    index_names = index.names()
    words = [Question.of(question, BEGIN + SPAN, index_names).words for question in questions]
    asks: dict[str, Callable[[int, Wanted | None], object]] = {
        OURS: lambda place, wanted: _search(memory, questions[place], wanted),
        ALONE: lambda place, wanted: _index_alone(index, words[place], wanted),
    }
    for name in filter(engines.installed, engines.NAMES):
        tell(f"{size:,}: loading {name}", 0, size)
        told = ((entry, terms(entry.text)) for entry in _told(talk.records(size), f"{size:,}: {name}", size, tell))
        ask = opened.enter_context(engines.built(name, folder, told))
        asks[name] = lambda place, wanted, ask=ask: ask(words[place], wanted)  # type: ignore[misc]
    rounds = 3 if size <= 100_000 else 2
    narrowed: dict[str, Sequence[Wanted | None]] = {EVERYTHING: [None] * len(questions), FILTERED: filters}
    times = {(name, what): _Times(len(questions)) for name in asks for what in narrowed}
    for turn in range(rounds + 1):
        for place in range(len(questions)):
            tell(f"{size:,}: searching", turn * len(questions) + place, (rounds + 1) * len(questions))
            for what, wanted in narrowed.items():
                for name, ask_one in asks.items():
                    if turn == 0 and place >= 3:
                        continue  # the first turn only warms up
                    busy = time.thread_time()
                    took = milliseconds(lambda: ask_one(place, wanted[place]))  # noqa: B023  (called at once)
                    if turn:
                        times[name, what].wall[place].append(took)
                        times[name, what].processor[place].append(1e3 * (time.thread_time() - busy))
    figures: Figures = {}
    for what in SEARCHES:
        form = FORMS.index(what) if what in FORMS else None
        figures[what] = {
            name: times[name, EVERYTHING if what == EVERYTHING else FILTERED].figures(form) if name in asks else None
            for name in (OURS, ALONE, *engines.NAMES)
        }
    for by in figures.values():
        for found_by in by.values():
            if found_by is not None:
                found_by["ratio"] = found_by["p50"] / by[OURS]["p50"]
                found_by["to_index"] = found_by["p50"] / by[ALONE]["p50"]
                found_by["processor_ratio"] = found_by["processor_p50"] / by[OURS]["processor_p50"]
    return figures


def _told(entries: Iterator[Entry], what: str, size: int, tell: Progress) -> Iterator[Entry]:
    for done, entry in enumerate(entries):
        if done % 1000 == 0:
            tell(what, done, size)
        yield entry


def _search(memory: Memory, question: str, wanted: Wanted | None) -> object:
    if wanted is None:
        return memory.search(question, limit=engines.BEST, include_conversation=True)
    return memory.search(
        question,
        limit=engines.BEST,
        kinds=(wanted.kind,),
        category=wanted.category,
        session=wanted.session,
        since=wanted.since,
        until=wanted.until,
    )


def _index_alone(index: Index, words: Sequence[str], wanted: Wanted | None) -> object:
    """Scores, filter, the ten best: what the others do, in our arrays."""
    import numpy as np

    from recollect.search.filters import Filter

    where = Filter()
    if wanted is not None:
        where = Filter(
            kinds=(wanted.kind,),
            categories=() if wanted.category is None else (wanted.category,),
            session=wanted.session,
            said_from=wanted.since,
            said_until=wanted.until,
        )
    scores = index.scores(words)
    scores *= index.select(where)
    best = least = float(scores.max())
    while least > best / 64 and np.count_nonzero(scores >= least) < engines.BEST:
        least /= 2  # a few looks at all of it are quicker than putting all of it in order
    found = np.flatnonzero(scores >= max(least, 1e-9))
    return found[np.argsort(-scores[found])][: engines.BEST]


def _after_a_write(memory: Memory, questions: Sequence[str], talk: Talk) -> Figures:
    """A search right after one write, against the same without one, in turn."""
    fresh_texts = [entry for entry in talk.records(4 * len(questions)) if entry.kind == "note"]
    without, after = [], []
    for place, (question, entry) in enumerate(zip(questions, fresh_texts, strict=False)):
        _search(memory, question, None)
        without.append(milliseconds(lambda: _search(memory, question, None)))  # noqa: B023  (called at once)
        memory.note(f"{entry.text} Written {place} after all.", tags=entry.tags)
        after.append(milliseconds(lambda: _search(memory, question, None)))  # noqa: B023
    slower = [late - early for late, early in zip(after, without, strict=True)]
    return {
        "without_ms": statistics.median(without),
        "after_ms": statistics.median(after),
        "slower_ms": statistics.median(slower),
        "slower_p95_ms": percentiles(slower)["p95"],
    }


def _writes(memory: Memory, talk: Talk, number: int) -> Figures:
    """Single writes, each durable before it returns: messages and notes in turn."""
    times = []
    for place, entry in enumerate(talk.records(number)):
        text = f"{entry.text} Told again as number {place}."
        if place % 2:
            times.append(milliseconds(lambda: memory.note(text)))  # noqa: B023  (called at once)
        else:
            times.append(milliseconds(lambda: memory.say(text, session="talk-new")))  # noqa: B023
    return percentiles(times)


def _new_processes(folder: Path, question: str) -> Figures:
    """The first search of a new process, and what it holds in memory."""

    def run(what: str) -> Figures:
        command = [sys.executable, "-P", "-m", new_process.__name__, str(folder), _USER, question, what]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise RuntimeError(f"a new process failed: {done.stderr.strip()[-500:]}")
        found: Figures = json.loads(done.stdout)
        return found

    sources = (str(Path(recollect.__file__).parents[1]), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sources))}
    # compiled once, as after an installation, even where that is switched off
    environment |= {"PYTHONPYCACHEPREFIX": str(folder.parent / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
    run("first")
    runs = [run("first") for _ in range(_PROCESSES)]
    held = run("index")
    size = held["index_bytes"]
    return {
        "first": {name: statistics.median(r[name] for r in runs) for name in ("import_ms", "first_ms", "next_ms")},
        "memory": {
            "resident": runs[-1]["resident"],
            "most_resident": runs[-1]["most_resident"],
            "index": size,
            "postings": held["postings"],
            "bytes_per_posting": None if size is None else size / held["postings"],
        },
    }


# many users


def _many_users(folder: Path, number: int, tell: Progress) -> Figures:
    """So many users with a hundred records each, in one folder: written, then searched in any order."""
    talk, clock, chance = Talk(), _Clock(BEGIN + SPAN), random.Random("users")
    entries = list(talk.records(50 * _OF_A_USER))
    questions = talk.questions(100)
    with _opened(folder, clock) as app:
        seconds = 0.0
        for user in range(number):
            tell(f"{number:,} users: writing", user, number)
            begin = user % 50 * _OF_A_USER
            began = time.perf_counter()
            with app.user(f"user-{user}").batch() as batch:
                for entry in entries[begin : begin + _OF_A_USER]:
                    _store(batch, entry)
            seconds += time.perf_counter() - began
    with _opened(folder, clock) as app:
        cold, warm, held = [], [], []
        order = chance.sample(range(number), min(number, 2000))
        for place, user in enumerate(order):
            tell(f"{number:,} users: searching", place, len(order))
            question = questions[place % len(questions)]
            memory = app.user(f"user-{user}")
            cold.append(milliseconds(lambda: _search(memory, question, None)))  # noqa: B023  (called at once)
            warm.append(milliseconds(lambda: _search(memory, question, None)))  # noqa: B023
            if place in (len(order) // 4, len(order) - 1):
                gc.collect()
                held.append(new_process.resident())
    early, late = held[0], held[-1]
    return {
        "users": number,
        "records": number * _OF_A_USER,
        "write_per_s": number * _OF_A_USER / seconds,
        "searched": len(order),
        "cold_ms": percentiles(cold),
        "warm_ms": percentiles(warm),
        "resident_early": early,
        "resident": late,
        "growth": late / early if early and late else None,
    }


# figures


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be reached: a figure at one size, and its bound."""

    text: str
    size: int
    where: tuple[str, ...]
    bound: float
    at_least: bool = False
    scale: float = 1.0
    unit: str = ""


GOALS = (
    Goal("BM25 of a kind, faster than FTS5", 10_000, ("search", FORMS[0], "FTS5", "to_index"), 20, True, unit="×"),
    Goal("BM25 of a kind, faster than FTS5", 100_000, ("search", FORMS[0], "FTS5", "to_index"), 50, True, unit="×"),
    Goal("search with filters", 100_000, ("search", FILTERED, OURS, "p50"), 3, unit=" ms"),
    Goal("first search of a new process", 100_000, ("first", "first_ms"), 60, unit=" ms"),
    Goal("next search after one write, slower by", 100_000, ("after_write", "slower_ms"), 2, unit=" ms"),
    Goal("index in memory, a posting", 100_000, ("memory", "bytes_per_posting"), 60, unit=" bytes"),
    Goal("process that searched one user", 1_000_000, ("memory", "most_resident"), 1.5, scale=1e-9, unit=" GB"),
)


def goals(figures: Figures) -> list[Figures]:
    """Each goal with the figure, and whether it is reached; None for what was not measured."""
    by_size = {each["records"]: each for each in figures["sizes"]}
    told = []
    for goal in GOALS:
        value: Any = by_size.get(goal.size)
        for name in goal.where:
            value = None if value is None else value.get(name)
        value = None if value is None else value * goal.scale
        reached = None if value is None else value >= goal.bound if goal.at_least else value <= goal.bound
        told.append(
            {
                "goal": goal.text,
                "records": goal.size,
                "bound": f"{'≥' if goal.at_least else '≤'} {goal.bound:g}{goal.unit}",
                "figure": value,
                "unit": goal.unit,
                "reached": reached,
            }
        )
    return told
