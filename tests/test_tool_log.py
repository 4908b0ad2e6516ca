"""The log of tool calls, the ledger and the budgets: every call is a row, no row is content, no user pays for another."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import errors
from recollect.memory.memory import Memory
from recollect.records import ToolCall
from recollect.search.tokens import count
from recollect.testing import FrozenClock, MemoryStore
from recollect.testing.memory_store import MemoryTransaction
from recollect.tools import log as log_module
from recollect.tools.suite import Suite
from tests.tooling import Forked, SlowStore, forked
from tests.words import mentions


@pytest.fixture
def app(tmp_path: Path) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path) as app:
        app.user("u1").note("exists")
        yield app


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is waiting is not written by itself."""
    monkeypatch.setattr(log_module, "_SECONDS", 3600.0)
    monkeypatch.setattr(log_module, "_MOST_SECONDS", 3600.0)


def _rows(memory: Memory) -> list[ToolCall]:
    return memory.calls(limit=None, newest_first=False)


# rows


def test_T7_every_call_is_a_row(tmp_path: Path) -> None:
    clock = FrozenClock()
    with recollect.open(tmp_path, clock=clock) as app:
        app.user("u1").note("exists")
        suite = app.tools("u1", session="s1", agent="helper")
        given = {"content": "Likes green tea very much"}
        results = [
            suite.call("memory_save", given),
            suite.call("memory_save", given),
            suite.call("memory_save", {}),
            suite.call("memory_delete", {"note_id": "nothing"}),
            suite.call("nothing"),
            suite.response(0).call("memory_search", {"query": "tea"}),
            asyncio.run(suite.acall("recall", {"query": "tea"})),
        ]
        rows = {row.id: row for row in _rows(app.user("u1"))}
        assert len(rows) == len(results)
        for result in results:
            row = rows[result.call]
            assert (row.tool, row.status, row.outcome, row.latency_ms) == (
                result.tool,
                result.status,
                result.outcome,
                result.latency_ms,
            )
            assert (row.session, row.agent, row.at) == ("s1", "helper", clock())
            assert row.tokens_out == count(result.text) > 0 and row.latency_ms > 0
        assert [rows[result.call].outcome for result in results] == [
            "written", "duplicate", "bad arguments", "NotFoundError", "unknown tool", "too many calls", "found",
        ]  # fmt: skip
        assert [rows[result.call].suite for result in results] == [
            "notes",
            "notes",
            "notes",
            "notes",
            "",
            "notes",
            "observations",
        ]
        assert count(given["content"]) <= rows[results[0].call].tokens_in <= count(given["content"]) + 10
        assert not mentions(repr(rows), "tea")
        assert app.user("u1").calls(tool="recall")[0].id == results[-1].call
        assert app.user("u1").calls(session="other") == []


def test_T7_arguments_are_counted_in_whatever_form_they_come(app: recollect.Recollect) -> None:
    suite = app.tools("u1")
    for given in ({"query": "green tea"}, '{"query": "green tea"}', b'{"query": "green tea"}'):
        suite.call("memory_search", given)
    suite.call("memory_search", {"query": object()})
    tokens = [row.tokens_in for row in _rows(app.user("u1"))]
    assert sorted(tokens) == [0, tokens[0], tokens[0], tokens[0]] or max(tokens) - sorted(tokens)[1] <= 2


def test_T7_a_very_long_argument_is_counted_by_its_beginning(app: recollect.Recollect) -> None:
    app.tools("u1").call("memory_save", {"content": "tea " * 200_000})
    [row] = _rows(app.user("u1"))
    assert 190_000 < row.tokens_in < 300_000


def test_T7_the_ledger_adds_up_by_tool(tmp_path: Path) -> None:
    with recollect.open(tmp_path, price_in=2.0, price_out=10.0, clock=FrozenClock()) as app:
        app.user("u1").note("exists")
        suite = app.tools("u1")
        for number in range(4):
            suite.call("memory_save", {"content": f"number {number} is {number * 7919}"})
            suite.call("memory_search", {"query": "number"})
        suite.call("memory_search", {})
        rows, spent = _rows(app.user("u1")), app.user("u1").usage()
        assert [one.operation for one in spent] == ["tool:memory_save", "tool:memory_search"]
        for one in spent:
            mine = [row for row in rows if f"tool:{row.tool}" == one.operation]
            tokens_in, tokens_out = sum(row.tokens_in for row in mine), sum(row.tokens_out for row in mine)
            assert (one.calls, one.tokens_in, one.tokens_out) == (len(mine), tokens_in, tokens_out)
            assert one.cost == pytest.approx((tokens_in * 10 + tokens_out * 2) / 1e6)
        assert app.user("u2").usage() == []


def test_T7_a_user_without_a_memory_has_no_log(app: recollect.Recollect) -> None:
    assert app.tools("u9").call("memory_search", {"query": "tea"}).status == "ok"
    assert app.user("u9").calls() == [] and list(app.users()) == ["u1"]
    app.tools("u9").call("memory_save", {"content": "Likes tea"})
    assert [row.tool for row in app.user("u9").calls()] == ["memory_save"]


# when they are written


@pytest.mark.usefixtures("quiet")
def test_T7_who_looks_finds_all_that_was_called(app: recollect.Recollect) -> None:
    suite = app.tools("u1")
    for number in range(1, 6):
        suite.call("memory_search", {"query": "tea"})
        assert len(app.user("u1").calls()) == number
        assert app.user("u1").usage()[0].calls == number


@pytest.mark.usefixtures("quiet")
def test_T7_closing_writes_what_is_waiting(tmp_path: Path) -> None:
    app = recollect.open(tmp_path)
    app.user("u1").note("exists")
    for _ in range(3):
        app.tools("u1").call("memory_search", {"query": "tea"})
    app.close()
    with recollect.open(tmp_path) as other:
        assert len(other.user("u1").calls()) == 3
    app.tools("u1").call("memory_search", {"query": "tea"})  # in use again
    app.close()
    with recollect.open(tmp_path) as other:
        assert len(other.user("u1").calls()) == 4


def test_T7_rows_are_written_by_themselves(tmp_path: Path, app: recollect.Recollect) -> None:
    app.tools("u1").call("memory_search", {"query": "tea"})
    thread = app._call_log()._thread
    assert thread is not None
    thread.join(60)
    with recollect.open(tmp_path) as other:
        assert len(other.user("u1").calls()) == 1


PROGRAM = """
import os, signal, sys
import recollect
app = recollect.open(sys.argv[1])
app.user("u1").note("exists")
suite = app.tools("u1")
for number in range(5):
    assert suite.call("memory_save", {"content": f"number {number} is {number * 7919}"}).status == "ok"
"""


def _run(tmp_path: Path, more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM + more, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.everyday(1)
@pytest.mark.parametrize("ending", ["", "raise SystemExit(0)", "import gc; del app, suite; gc.collect()"])
def test_T7_an_interpreter_that_ends_without_closing_writes_what_is_waiting(tmp_path: Path, ending: str) -> None:
    ran = _run(tmp_path, ending)
    assert (ran.returncode, ran.stderr) == (0, "")
    with recollect.open(tmp_path) as app:
        assert [row.outcome for row in app.user("u1").calls()] == ["written"] * 5
        assert app.user("u1").verify() == []


@pytest.mark.skipif(sys.platform == "win32", reason="no signals there")
def test_T7_a_host_that_handles_sigterm_keeps_the_log_and_one_that_does_not_keeps_the_memory(tmp_path: Path) -> None:
    handled = (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); os.kill(os.getpid(), signal.SIGTERM); signal.pause()"
    )
    ran = _run(tmp_path / "handled", handled)
    assert (ran.returncode, ran.stderr) == (0, "")
    killed = _run(tmp_path / "killed", "os.kill(os.getpid(), signal.SIGTERM); signal.pause()")
    assert killed.returncode == -signal.SIGTERM
    for name in ("handled", "killed"):
        with recollect.open(tmp_path / name) as app:
            assert len(app.user("u1").read(kind="note")) == 6 and app.user("u1").verify() == []
            assert len(app.user("u1").calls()) == 5 or name == "killed"


def test_T7_a_store_that_fails_for_good_does_not_keep_the_interpreter_from_ending(tmp_path: Path) -> None:
    ending = """
from recollect.errors import StoreFullError
from recollect.memory.user_memory import UserMemory
def fail(self): raise StoreFullError()
UserMemory.write_alongside = fail
suite.call("memory_search", {"query": "tea"})
"""
    ran = _run(tmp_path, ending)
    assert ran.returncode == 0 and "yet: StoreFullError" in ran.stderr and "number" not in ran.stderr


# what goes wrong


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Iterator[None]:
    def fail(self: object, *_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(MemoryTransaction, "log_calls", fail)
        yield


@pytest.mark.parametrize(
    "error", [errors.StoreFullError(), errors.StoreUnavailableError(), OSError("likes tea"), UnicodeError("likes tea")]
)
@pytest.mark.parametrize("budget", [0, 10**6])
def test_T7_a_store_that_fails_keeps_the_rows_and_gets_them_later(
    monkeypatch: pytest.MonkeyPatch, error: Exception, budget: int, caplog: pytest.LogCaptureFixture
) -> None:
    with recollect.open(MemoryStore(), daily_tokens=budget) as app:
        for user in ("u1", "u2"):
            app.user(user).note("exists")
        with failing(monkeypatch, error):
            results = [app.tools(user).call("memory_search", {"query": "tea"}) for user in ("u1", "u2", "u1")]
            assert [result.status for result in results] == ["ok"] * 3
            assert app.user("u1").calls() == []
            app.tools("u1").call("memory_search", {})
        assert [len(app.user(user).calls()) for user in ("u1", "u2")] == [3, 1]
        assert app.user("u1").usage()[0].calls == 3
        assert all(row.tokens_out for row in app.user("u1").calls())
        assert not mentions(caplog.text, "tea")


def test_T7_rows_are_dropped_when_the_store_fails_for_too_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_module, "_MOST_WAITING", 10)
    with recollect.open(MemoryStore()) as app:
        app.user("u1").note("exists")
        with failing(monkeypatch, errors.StoreFullError()):
            for _ in range(25):
                assert app.tools("u1").call("memory_search", {"query": "tea"}).status == "ok"
        assert 0 < len(app.user("u1").calls()) <= 25 and "lost the log of" in caplog.text


def test_T7_a_call_does_not_wait_for_the_log() -> None:
    store = SlowStore()
    with recollect.open(store) as app:
        app.user("u1").note("exists")
        suite = app.tools("u1")
        with store.held():
            for _ in range(3):
                assert suite.call("memory_search", {"query": "tea"}).status == "ok"
            assert store.waiting.wait(60)  # the log does, in its own thread
            assert suite.call("memory_search", {"query": "tea"}).status == "ok"
        assert len(app.user("u1").calls()) == 4


@pytest.mark.usefixtures("quiet")
def test_T7_looking_at_the_log_within_a_batch_does_not_wait_for_itself(app: recollect.Recollect) -> None:
    memory, log = app.user("u1"), app._call_log()
    suite = app.tools("u1")
    with memory.batch() as batch:
        caller = threading.Thread(target=suite.call, args=("memory_search", {"query": "tea"}))
        caller.start()
        caller.join()
        app.tools("u2", "notes").call("memory_save", {"content": "Likes tea"})
        log._wake.set()  # the thread of the log begins to write, and waits for this batch
        while "u1" not in log._writing:
            pass
        assert batch.calls() == [] and memory.calls() == []
        log._wake.clear()
    assert len(memory.calls()) == 1 and len(app.user("u2").calls()) == 1


# those who are gone


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("who", ["this process", "another process"])
def test_T7_waiting_rows_do_not_bring_an_erased_user_back(tmp_path: Path, app: recollect.Recollect, who: str) -> None:
    suite = app.tools("u1")
    for _ in range(3):
        suite.call("memory_search", {"query": "tea"})
    if who == "this process":
        app.erase_user("u1")
    else:
        program = "import recollect, sys; recollect.open(sys.argv[1]).erase_user('u1')"
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=120)
    suite.call("memory_search", {"query": "tea"})
    assert app.user("u1").calls() == [] and app.user("u1").usage() == []
    app.close()
    assert list(app.users()) == [] and not (tmp_path / "u1").exists()


def test_T7_rows_on_their_way_do_not_bring_back_a_user_whom_another_process_erases() -> None:
    store = SlowStore()
    with recollect.open(store) as app:
        app.user("u1").note("exists")
        with store.held():
            app.tools("u1").call("memory_search", {"query": "tea"})
            assert store.waiting.wait(60)  # the log has seen the user, and waits for the lock
            store.erase_user("u1")
        app._call_log().flush()
        assert list(app.users()) == []
        app.user("u1").spend("extraction", tokens_in=1)  # who has nothing but a ledger is there
        app.tools("u1").call("memory_search", {"query": "tea"})
        assert len(app.user("u1").calls()) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.usefixtures("quiet")
def test_T7_a_forked_child_does_not_write_the_rows_of_its_parent(tmp_path: Path, app: recollect.Recollect) -> None:
    suite = app.tools("u1")
    parents = [suite.call("memory_search", {"query": "tea"}).call for _ in range(3)]

    def child() -> Forked:
        mine = suite.call("memory_search", {"query": "milk"}).call
        rows = [row.id for row in suite.memory.calls()]
        return [rows == [mine], mine]

    alone, mine = forked(child)
    assert alone
    assert sorted(row.id for row in suite.memory.calls()) == sorted([*parents, mine])
    assert suite.memory.usage()[0].calls == 4


# budgets


def _spend_all(suite: Suite, most: int = 200) -> int:
    """Calls until one is refused; how many went through."""
    for number in range(most):
        result = suite.call("memory_search", {"query": f"tea {number}"})
        if result.status == "limited":
            assert result.outcome == "budget" and "used up" in result.text
            return number
        assert result.status == "ok", result.text
    raise AssertionError("there is no limit")


BUDGETS: dict[str, dict[str, Any]] = {
    "tokens": {"daily_tokens": 300},
    "cost": {"daily_cost": 0.003, "price_in": 10.0, "price_out": 10.0},
}


@pytest.mark.parametrize("kind", BUDGETS)
def test_T7_a_budget_is_hard_for_the_day_and_for_this_user_only(tmp_path: Path, kind: str) -> None:
    clock = FrozenClock()
    with recollect.open(tmp_path, clock=clock, **BUDGETS[kind]) as app:
        for user in ("u1", "u2"):
            app.user(user).note("Likes tea")
        through = _spend_all(app.tools("u1"))
        assert 2 < through < 30
        refused = app.tools("u1").call("memory_save", {"content": "Likes milk"})
        assert refused.status == "limited" and app.user("u1").history(call=refused.call) == []
        assert asyncio.run(app.tools("u1").acall("recall", {"query": "tea"})).status == "limited"
        spent = app.user("u1").usage()
        tokens, cost = sum(one.tokens_in + one.tokens_out for one in spent), sum(one.cost for one in spent)
        assert tokens >= 300 and cost >= (0.003 if kind == "cost" else 0)
        assert app.tools("u2").call("memory_search", {"query": "tea"}).status == "ok"
        clock.tick(days=1)
        assert app.tools("u1").call("memory_save", {"content": "Likes milk"}).status == "ok"
        assert _spend_all(app.tools("u1")) > 1
        assert len(app.user("u1").usage(since="2026-02-12", until="2026-02-12")) == len(spent)


def test_T7_a_budget_holds_for_all_processes_together(tmp_path: Path) -> None:
    clock = FrozenClock()
    with recollect.open(tmp_path / "one", clock=clock, daily_tokens=300) as app:
        app.user("u1").note("Likes tea")
        alone = _spend_all(app.tools("u1"))
    with (
        recollect.open(tmp_path / "two", clock=clock, daily_tokens=300) as one,
        recollect.open(tmp_path / "two", clock=clock, daily_tokens=300) as other,
    ):
        one.user("u1").note("Likes tea")
        through = 0
        while one.tools("u1").call("memory_search", {"query": f"tea {through}"}).status == "ok":
            through += 1
            if other.tools("u1").call("memory_search", {"query": f"tea {through}"}).status == "ok":
                through += 1
        assert through == alone
        assert other.tools("u1").call("memory_search", {"query": "tea"}).status == "limited"


@pytest.mark.slow
def test_T7_a_budget_holds_across_two_real_processes(tmp_path: Path) -> None:
    program = """
import recollect, sys
with recollect.open(sys.argv[1], daily_tokens=300) as app:
    app.user("u1").note("Likes tea")
    told = [app.tools("u1").call("memory_search", {"query": "tea"}).status for _ in range(40)]
    print(told.count("ok"), told.count("limited"))
"""
    ran = [
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, timeout=120
        )
        for _ in range(2)
    ]
    (first, limited), (second, _) = (map(int, one.stdout.split()) for one in ran)
    assert first > 2 and limited == 40 - first and second == 0


def test_T7_what_the_host_spends_counts_into_the_same_budget(tmp_path: Path) -> None:
    with recollect.open(tmp_path, daily_tokens=1000, daily_cost=5.0) as app:
        memory = app.user("u1")
        memory.note("Likes tea")
        suite = app.tools("u1")
        assert suite.call("memory_search", {"query": "tea"}).status == "ok"
        memory.spend("extraction", tokens_in=100, tokens_out=20, cost=4.99)
        assert suite.call("memory_search", {"query": "tea"}).status == "ok"
        memory.spend("extraction", cost=0.01)
        assert suite.call("memory_search", {"query": "tea"}).status == "limited"
        [spent] = [one for one in memory.usage() if one.operation == "extraction"]
        assert (spent.calls, spent.tokens_in, spent.tokens_out) == (2, 100, 20)
        app.user("u2").spend("extraction", tokens_in=1000)
        assert app.tools("u2").call("memory_search", {"query": "tea"}).status == "limited"


def test_T7_calls_that_are_wrong_count_too(tmp_path: Path) -> None:
    with recollect.open(tmp_path, daily_tokens=300) as app:
        app.user("u1").note("Likes tea")
        suite = app.tools("u1")
        for _ in range(20):
            suite.call("memory_search", {})
        assert suite.call("memory_search", {"query": "tea"}).status == "limited"


def test_T7_who_is_asked_about_pays_and_has_a_budget(tmp_path: Path) -> None:
    with recollect.open(tmp_path, daily_tokens=300) as app:
        for user in (1, 2):
            app.user(user).note("Likes tea")
        group = app.tools(1, others=[2])
        told = [group.call("recall_facts", {"user_id": 2}).status for _ in range(40)]
        assert told.count("ok") < 30 and told[-1] == "limited"
        assert group.call("recall_facts", {"user_id": 1}).status == "ok"
        assert {len(app.user(user).calls()) for user in (1, 2)} == {1, 40}


def test_T7_a_budget_that_cannot_be_read_is_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    with recollect.open(MemoryStore(), daily_tokens=300) as app:
        app.user("u1").note("Likes tea")

        def fail(*_: object, **__: object) -> None:
            raise errors.StoreUnavailableError()

        monkeypatch.setattr(MemoryTransaction, "spending", fail)
        monkeypatch.setattr("recollect.testing.memory_store.MemoryReader.spending", fail)
        result = app.tools("u1").call("memory_save", {"content": "Likes milk"})
        assert result.status == "error" and len(app.user("u1").read()) == 1


def test_T7_many_threads_together_exceed_a_budget_by_no_more_than_they_had_begun(tmp_path: Path) -> None:
    with recollect.open(tmp_path, daily_tokens=300) as app:
        app.user("u1").note("Likes tea")
        patient = [replace(one, timeout=300) for one in app.tools("u1", "notes").tools.values()]
        suite = Suite(app.user("u1"), patient, log=app._call_log())
        told: list[str] = []
        threads = [
            threading.Thread(
                target=lambda: told.extend(suite.call("memory_search", {"query": "tea"}).status for _ in range(20))
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        alone = (
            300 // min(row.tokens_in + row.tokens_out for row in app.user("u1").calls(limit=None) if row.status == "ok")
            + 1
        )
        assert 0 < told.count("ok") <= alone + 8 and told.count("ok") + told.count("limited") == 160
