"""Lists come page by page; a page costs what it shows, and a walk shows everything once, whatever others do meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recollect
from recollect.memory.memory import Memory
from recollect.memory.paging import PageCursor
from recollect.records import ToolCall, new_id
from recollect.store import rows, sql_views
from recollect.testing.clock import FrozenClock
from recollect.testing.memory_store import MemoryStore
from tests.volume import first, volume

START = datetime(2026, 2, 12, 9, 30, tzinfo=timezone.utc)
Lister = Callable[[Memory], list[Any]]


def walked(memory: Memory, lister: Lister, size: int, meanwhile: Callable[[int], None] = lambda _: None) -> list[Any]:
    """All pages of a list, one after another; something may happen after each."""
    found: list[Any] = []
    cursor: str | None = None
    for number in range(10_000):
        walk = PageCursor(size, cursor)
        page = lister(memory._walking(walk))
        assert len(page) <= size
        found += page
        cursor = walk.following
        if cursor is None:
            return found
        assert page, "a page with another one behind it is not empty"
        meanwhile(number)
    raise AssertionError("the walk does not end")


def fill(memory: Memory, clock: FrozenClock, number: int) -> None:
    with memory.batch() as batch:
        for n in range(number):
            clock.tick(seconds=60)
            batch.say(f"Message {n}", session=f"s{n // 4}", said_at=clock())
            if n % 5 == 0:
                batch.note(f"Note number {n}")
    memory.report_many([{"kind": "reaction", "title": f"Item {n}", "value": "👍"} for n in range(number)])
    with memory._user_memory.write_alongside() as tx:
        tx.log_calls(
            ToolCall(
                id=new_id("call"),
                at=START + timedelta(seconds=n),
                tool="memory_save",
                suite="notes",
                status="ok",
                outcome="written",
                latency_ms=1.0,
            )
            for n in range(number)
        )


LISTERS: dict[str, Lister] = {
    "messages": lambda memory: list(memory.read(kind="message")),
    "messages, the latest first": lambda memory: list(memory.read(kind="message", newest_first=True)),
    "a session": lambda memory: list(memory.read(kind="message", session="s1")),
    "everything": lambda memory: list(memory.read()),
    "everything with its past": lambda memory: list(memory.read(status="all", as_of="2027-01-01")),
    "the first few": lambda memory: list(memory.read(limit=11)),
    "behind the first few": lambda memory: list(memory.read(offset=5)),
    "history": lambda memory: list(memory.history()),
    "the last of history": lambda memory: list(memory.history(limit=13)),
    "history before": lambda memory: list(memory.history(before=20, limit=13)),
    "history of a record": lambda memory: list(memory.history(memory.history(limit=1)[0].record_id, limit=9)),
    "sessions": lambda memory: list(memory.sessions(limit=100)),
    "some sessions": lambda memory: list(memory.sessions(limit=4, offset=1)),
    "calls": lambda memory: list(memory.calls(limit=None)),
    "calls, the oldest first": lambda memory: list(memory.calls(newest_first=False, limit=17)),
    "interactions": lambda memory: list(memory.interactions()),
    "interactions, the latest first": lambda memory: list(memory.interactions(newest_first=True)),
}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Memory, FrozenClock]]:
    clock = FrozenClock(START)
    place: Any = tmp_path if request.param == "sqlite" else MemoryStore()
    if request.param == "postgres":
        place = request.getfixturevalue("postgres_tables")
    with recollect.open(place, clock=clock) as app:
        memory = app.user("u1")
        fill(memory, clock, 30)
        yield memory, clock


@pytest.mark.everyday(20)
@pytest.mark.parametrize("size", first(2, [7, 1000, 1]))
@pytest.mark.parametrize("name", LISTERS)
def test_the_pages_of_a_list_are_the_list(name: str, size: int, memory: tuple[Memory, FrozenClock]) -> None:
    there, _ = memory
    whole = LISTERS[name](there)
    assert len(whole) > 3 or name == "history of a record"
    assert walked(there, LISTERS[name], size) == whole


@settings(max_examples=volume(10, 40), suppress_health_check=list(HealthCheck), deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["say", "note", "forget", "erase", "tell"]), st.integers(0, 99)), max_size=20
    ),
    size=st.integers(1, 9),
    name=st.sampled_from(["messages", "messages, the latest first", "everything", "sessions", "history"]),
)
def test_a_walk_shows_what_was_there_all_the_time_once_while_others_write(
    steps: list[tuple[str, int]], size: int, name: str
) -> None:
    clock = FrozenClock(START)
    with recollect.open(MemoryStore(), clock=clock) as app:
        memory = app.user("u1")
        fill(memory, clock, 30)
        lister = LISTERS[name]
        before = {_id(one) for one in lister(memory)}
        waiting = list(steps)

        def meanwhile(_: int) -> None:
            for what, number in [waiting.pop() for _ in range(min(3, len(waiting)))]:
                clock.tick(seconds=1)
                messages = memory.read(kind="message")
                one = messages[number % len(messages)]
                if what == "say":
                    memory.say("More", session=f"s{number % 12}")
                elif what == "tell":  # of long ago
                    memory.say("Earlier", session=f"s{number % 12}", said_at=START - timedelta(days=number))
                elif what == "note":
                    memory.note(f"Another {number} {clock()}")
                elif name == "sessions":
                    continue  # a conversation that loses its last message stands elsewhere
                elif what == "forget":
                    memory.forget(one.id)
                else:
                    memory.erase(one.id)

        found = [_id(one) for one in walked(memory, lister, size, meanwhile)]
        always = before & {_id(one) for one in lister(memory)}
        assert always <= set(found)
        assert len(found) == len(set(found))


def _id(one: Any) -> object:
    return getattr(one, "id", None) or one.seq


@pytest.mark.everyday(1)
@pytest.mark.parametrize(
    "name", ["messages", "messages, the latest first", "everything", "history", "calls", "sessions"]
)
def test_a_page_reads_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: the rows that are loaded, and the steps of SQLite's machine, which a page behind many others takes."""
    loaded: list[object] = []
    for loader in ("from_row", "entry_from_row", "call_from_row"):
        load = getattr(rows, loader)

        def counting(row: Any, load: Callable[[Any], object] = load) -> object:
            loaded.append(row)
            return load(row)

        monkeypatch.setattr(sql_views, loader, counting)
    steps = [0]
    connect = sqlite3.connect

    def step() -> int:
        steps[0] += 1
        return 0

    def counted(*given: Any, **named: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*given, **named)
        db.set_progress_handler(step, 1)
        return db

    monkeypatch.setattr(sqlite3, "connect", counted)
    clock, spent = FrozenClock(START), []
    for number in (100, 1000):
        with recollect.open(tmp_path / str(number), clock=clock) as app:
            memory = app.user("u1")
            fill(memory, clock, number)
            cursor = None
            for _ in range(10 if number == 100 else 100):  # to the same share of the list
                walk = PageCursor(5, cursor)
                loaded.clear()
                steps[0] = 0
                LISTERS[name](memory._walking(walk))
                cursor = walk.following or cursor
                assert len(loaded) <= 8
            spent.append(steps[0])
    assert spent[1] < 2 * spent[0] + 500, f"the same page of a list ten times as long took {spent}"
