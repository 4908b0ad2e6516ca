"""What an operation costs grows with what it is about, and no faster: counted in calls and steps, never in seconds."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import recollect
import recollect.identity.links  # loaded at the first erasure otherwise, which must not count here
from recollect.document import matching
from recollect.memory import user_index
from recollect.memory.memory import Memory

SMALL, LARGE = 120, 480
MOST = 6
"""How much more four times as much may cost: four, and room for what is sorted."""


class Cost:
    """Counts function calls, and steps of SQLite's machine in hundreds, while it is entered."""

    def __init__(self) -> None:
        self.calls = 0
        self.steps = 0
        self._counting = False

    def step(self) -> int:
        self.steps += self._counting
        return 0

    def of(self, work: Callable[[], object]) -> int:
        def count(frame: FrameType, event: str, argument: Any) -> None:
            self.calls += event != "return"

        self.calls = self.steps = 0
        self._counting = True
        sys.setprofile(count)
        try:
            work()
        finally:
            sys.setprofile(None)
            self._counting = False
        return self.calls + 20 * self.steps  # a hundred steps take about as long as twenty calls


@pytest.fixture
def cost(monkeypatch: pytest.MonkeyPatch) -> Cost:
    cost = Cost()
    connect = sqlite3.connect

    def counted(*given: Any, **named: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*given, **named)
        db.set_progress_handler(cost.step, 100)
        return db

    monkeypatch.setattr(sqlite3, "connect", counted)
    # both sizes lie beyond the bounds, so that what is compared is the same work
    monkeypatch.setattr(user_index, "_AT_ONCE", 10**9)
    monkeypatch.setattr(matching, "MAX_PAIRS", SMALL)
    return cost


LINES: dict[str, Callable[[int], str]] = {
    "sentences": lambda n: f"- The user likes thing number {n} very much\n",
    "labels": lambda n: f"- Label {n}: value {n}\n",
    "one label": lambda n: f"- Note: value {n}\n",
    "paragraphs": lambda n: f"Paragraph {n} of a long text\n\n",
    "beside code": lambda n: f"- Item {n}\n" if n else "```\ncode\n\nmore\n```\n\n",
}


def text_of(shape: str, size: int) -> str:
    return "# User Memory\n\n## Key Facts\n\n" + "".join(map(LINES[shape], range(size)))


def opened(root: Path, shape: str, size: int) -> tuple[Memory, Path]:
    """A user whose MEMORY.md is about to be taken over."""
    memory = recollect.open(root, max_words=100_000).user("u1")
    memory.remember("Plays the theremin")
    memory.search("theremin")
    path = root / "u1" / "MEMORY.md"
    path.write_text(text_of(shape, size), encoding="utf-8", newline="")
    return memory, path


def assert_near_linear(small: int, large: int) -> None:
    assert large < MOST * small, f"four times as much cost {large / small:.1f} times as much"


@pytest.mark.everyday(1)
@pytest.mark.parametrize("shape", LINES)
def test_taking_over_a_large_file_costs_what_its_lines_cost(shape: str, cost: Cost, tmp_path: Path) -> None:
    spent = []
    for size in (SMALL, LARGE):
        memory, path = opened(tmp_path / str(size), shape, size)
        spent.append(cost.of(memory.show))
        text = path.read_text(encoding="utf-8")
        assert text.replace("- Plays the theremin\n", "") == text_of(shape, size) and text != text_of(shape, size)
        assert len(memory.read(kind="fact")) >= size - 1
    assert_near_linear(*spent)


def _rewritten(memory: Memory, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    path.write_text("".join(map(_reworded, text.splitlines(keepends=True))), encoding="utf-8")
    memory.show()


def _reworded(line: str) -> str:
    return line.replace("\n", " indeed\n") if line.startswith("- ") else line


def _most_deleted(memory: Memory, path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 4]), encoding="utf-8")
    memory.show()


def _emptied(memory: Memory, path: Path) -> None:
    path.write_text("", encoding="utf-8")
    memory.show()


def _undone(memory: Memory, path: Path) -> None:
    memory.undo(memory.history(limit=1)[0].run)


def _filled_by_an_agent(memory: Memory, path: Path) -> None:
    size = len(path.read_text(encoding="utf-8").splitlines())
    with memory.acting("agent").batch() as batch:
        for number in range(size // 4):
            batch.remember(f"Saw the train {number} from platform {number * 7}")


def _erased_one_by_one_in_a_batch(memory: Memory, path: Path) -> None:
    facts = memory.read(kind="fact", limit=len(memory.read(kind="fact")) // 10)
    memory.erase(*[fact.id for fact in facts])


def _verified(memory: Memory, path: Path) -> None:
    assert not memory.verify()


MANY: dict[str, Callable[[Memory, Path], None]] = {
    "many lines rewritten": _rewritten,
    "most lines deleted": _most_deleted,
    "the file emptied": _emptied,
    "the take-over undone": _undone,
    "many facts of an agent": _filled_by_an_agent,
    "many facts erased": _erased_one_by_one_in_a_batch,
    "verify": _verified,
}


_MANY_OF_EACH = [
    pytest.param(
        what, shape, marks=[] if shape == "sentences" or what == "many lines rewritten" else [pytest.mark.slow]
    )
    for shape in ("sentences", "labels", "beside code")
    for what in MANY
]
"""Every day each kind of change in one shape of file, and one kind in each shape."""


@pytest.mark.everyday(2)
@pytest.mark.parametrize(("what", "shape"), _MANY_OF_EACH)
def test_many_changes_of_a_large_file_cost_what_each_of_them_costs(
    what: str, shape: str, cost: Cost, tmp_path: Path
) -> None:
    spent = []
    for size in (SMALL, LARGE):
        memory, path = opened(tmp_path / str(size), shape, size)
        memory.show()
        spent.append(cost.of(lambda memory=memory, path=path: MANY[what](memory, path)))  # type: ignore[misc]
    assert_near_linear(*spent)


def _one_line_changed(memory: Memory, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("100", "one hundred", 1), encoding="utf-8")
    memory.show()


def _one_fact_of_an_agent(memory: Memory, path: Path) -> None:
    memory.acting("agent").remember("Was born in Ulaanbaatar", key="birthplace")


def _one_fact_erased(memory: Memory, path: Path) -> None:
    memory.erase(memory.read(kind="fact", limit=1)[0].id)


ONE: dict[str, Callable[[Memory, Path], None]] = {
    "a line changed": _one_line_changed,
    "a fact of an agent": _one_fact_of_an_agent,
    "a fact erased": _one_fact_erased,
}


@pytest.mark.everyday(1)
@pytest.mark.parametrize("what", ONE)
def test_one_change_beside_a_large_file_costs_far_less_than_the_file(what: str, cost: Cost, tmp_path: Path) -> None:
    spent = []
    for size in (SMALL, LARGE):
        memory, path = opened(tmp_path / str(size), "labels", size)
        whole = cost.of(memory.show)
        memory.search("label")
        one = cost.of(lambda memory=memory, path=path: ONE[what](memory, path))  # type: ignore[misc]
        share = 2 / 3 if what == "a line changed" else 1 / 3  # the person's text has to be read and compared
        assert one < whole * share, f"{one} of {whole}"
        spent.append(one)
    assert_near_linear(*spent)


def _archive(root: Path, messages: int) -> Path:
    """An export: one long conversation, a long day, facts and notes."""
    with recollect.open(root / "from", max_words=100_000) as app:
        source = app.user("source")
        with source.batch() as batch:
            for number in range(messages):
                batch.say(f"Message number {number}", session="one")
                batch.jot(f"Entry number {number}")
                batch.remember(f"Owns the book number {number}")
                batch.note(f"Note number {number} of the journey")
        return source.export(root / "archive.zip")


@pytest.mark.slow
def test_importing_many_records_costs_what_each_of_them_costs(cost: Cost, tmp_path: Path) -> None:
    merged, again, restored = [], [], []
    for size in (SMALL, LARGE):
        root = tmp_path / str(size)
        archive = _archive(root, size)
        with recollect.open(root / "to", max_words=100_000) as app:
            memory = app.user("u1")
            memory.remember("Plays the theremin")
            memory.search("theremin")
            merged.append(cost.of(lambda memory=memory, archive=archive: memory.import_(archive)))  # type: ignore[misc]
            assert memory.count()["message"] == memory.count()["daily"] == memory.count()["note"] == size
            again.append(cost.of(lambda memory=memory, archive=archive: memory.import_(archive)))  # type: ignore[misc]
            assert memory.count()["message"] == size and len(memory.history(limit=10**6)) == 4 * size + 1
            other = app.user("u2")
            restored.append(cost.of(lambda other=other, archive=archive: other.import_(archive)))  # type: ignore[misc]
            assert memory.verify() == other.verify() == []
    assert_near_linear(*merged)
    assert_near_linear(*again)
    assert_near_linear(*restored)


def test_an_import_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = _archive(tmp_path, 300)
    with recollect.open(tmp_path / "to") as app:
        memory = app.user("u1")
        memory.remember("Plays the theremin")
        before, shown = memory.history(), memory.show()

        def interrupt(done: int, of: int) -> None:
            if done >= 1000:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            memory.import_(archive, progress=interrupt)
        assert memory.history() == before and memory.show() == shown and memory.verify() == []
        report = memory.import_(archive)
        assert report.written == 1200
