"""Calls that take longer than a reply may wait (W1): queued where no kill can lose them, done once, told later."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.agents.discuss import Discussion
from recollect.agents.models import open_model
from recollect.errors import QueueFullError, StoreFullError
from recollect.memory.memory import Memory
from recollect.records import Record
from recollect.testing import MemoryStore
from recollect.testing.embedding import HashEmbedder
from recollect.testing.models import ModelServer, Say
from recollect.tools.catalog import SUITES, tools_of
from recollect.tools.deferred import DeferredCall, ReplyTimeouts
from recollect.tools.suite import Result, Suite
from recollect.tools.tool import Scope, ToolAnswer, tool
from recollect.work.deferred_calls import TOOL, DeferredCalls


def ahead(minutes: int = 5) -> datetime:
    """Now, for someone whose clock says that what was put aside is long due."""
    return datetime.now(timezone.utc) + timedelta(minutes=minutes)


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path) if request.param == "sqlite" else str(request.getfixturevalue("postgres_tables"))


def opened(where: str, **settings: Any) -> recollect.Recollect:
    return recollect.open(where, **{"tool_async": True, "tool_timeout_ms": 30} | settings)


@contextmanager
def held(memory: Memory) -> Iterator[None]:
    """Nobody else can write to this memory meanwhile."""
    begun, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with memory.batch():
            begun.set()
            assert leave.wait(120)

    holder = threading.Thread(target=hold)
    holder.start()
    assert begun.wait(60)
    try:
        yield
    finally:
        leave.set()
        holder.join()


def waiting(app: recollect.Recollect) -> int:
    with app.queue() as queue:
        depth = queue.depth()
        return depth["ready"] + depth["running"]


def wait_for(app: recollect.Recollect) -> None:
    """Until nothing is kept any more."""
    moment = threading.Event()
    for _ in range(12_000):
        if not waiting(app):
            return
        moment.wait(0.01)
    raise AssertionError("something stays in the queue")


def settled(app: recollect.Recollect, suite: Suite) -> list[Result]:
    """What was finished, once nothing is kept any more."""
    wait_for(app)
    return suite.finished()


def asked_until_answered(suite: Suite, name: str, arguments: dict[str, Any] | None = None) -> Result:
    """The answer of a tool that only reads, however many times a busy machine is too slow for it."""
    while (result := suite.call(name, arguments or {})).status == "queued":
        threading.Event().wait(0.01)
    return result


def contents(records: list[Record]) -> list[str]:
    return sorted(record.content for record in records)


# what changes something


def test_W1_a_write_that_takes_too_long_is_queued_and_done_once_and_told_at_the_next_interaction(where: str) -> None:
    with opened(where) as app:
        memory = app.user("u1")
        memory.note("exists")
        suite = app.tools("u1", session="s1")
        with held(memory):
            result = suite.call("memory_save", {"content": "Likes oolong"})
            assert (result.status, result.outcome, result.is_error) == ("queued", "queued", False)
            told = json.loads(result.text)
            assert told["status"] == "queued" and told["task_id"] == result.call and "do not repeat" in told["message"]
            assert waiting(app) == 1 and suite.finished() == []
        [done] = settled(app, suite)
        assert (done.call, done.status, done.outcome) == (result.call, "ok", "written")
        assert suite.finished() == []  # told once
        assert contents(memory.read(kind="note")) == ["Likes oolong", "exists"]
        assert len(memory.history(call=result.call)) == 1
        [row] = [row for row in memory.calls() if row.id == result.call]
        assert (row.status, row.outcome) == ("queued", "written")
        assert row.latency_ms > result.latency_ms and row.tokens_in > 0


def test_W1_the_queued_answer_of_a_suite_of_sentences_is_a_sentence(tmp_path: Path) -> None:
    with opened(str(tmp_path)) as app:
        memory = app.user("u1")
        memory.note("exists")
        suite = app.tools("u1", "entries")
        with held(memory):
            result = suite.call("write_memory", _SAMPLES["write_memory"])
        assert result.status == "queued"
        assert result.text == "write_memory takes longer than usual and continues in the background; do not repeat it"
        assert [one.status for one in settled(app, suite)] == ["ok"]


def test_W1_awaited_calls_are_queued_the_same_way_and_the_loop_goes_on(where: str) -> None:
    async def main() -> None:
        with held(memory):
            going = asyncio.Event()
            results = await asyncio.gather(*(suite.acall("memory_save", {"content": f"note {n}"}) for n in range(5)))
            assert {result.status for result in results} == {"queued"}
            asyncio.get_running_loop().call_soon(going.set)
            await going.wait()

    with opened(where) as app:
        memory = app.user("u1")
        memory.note("exists")
        suite = app.tools("u1", session="s1")
        asyncio.run(main())
        assert len(settled(app, suite)) == 5
        assert contents(memory.read(kind="note")) == ["exists", *(f"note {n}" for n in range(5))]


def test_W1_what_cannot_be_queued_because_too_much_waits_is_waited_for_instead(tmp_path: Path) -> None:
    with opened(str(tmp_path), tool_queue_size=1) as app:
        memory = app.user("u1")
        memory.note("exists")
        suite = app.tools("u1", session="s1")
        results: list[Result] = []
        with held(memory):
            assert suite.call("memory_save", {"content": "first"}).status == "queued"
            second = threading.Thread(target=lambda: results.append(suite.call("memory_save", {"content": "second"})))
            second.start()
            second.join(0.2)
            assert second.is_alive() and results == []  # nobody was told that it would be done
        second.join(60)
        assert [result.status for result in results] == ["ok"]
        settled(app, suite)
        assert contents(memory.read(kind="note")) == ["exists", "first", "second"]


def test_W1_who_waits_for_a_full_queue_in_vain_is_told_that_nothing_is_certain(tmp_path: Path) -> None:
    class Full:
        def keep(self, late: DeferredCall) -> str:
            raise QueueFullError()

        def drop(self, kept: str) -> None: ...
        def done(self, kept: str, late: DeferredCall, result: Result) -> None: ...
        def failed(self, kept: str) -> None: ...
        def finished(self, user_id: str, session: str | None, chat: str | None = None) -> list[Result]:
            return []

    with opened(str(tmp_path)) as app:
        memory = app.user("u1")
        memory.note("exists")
        impatient = [replace(one, timeout=0.05) for one in tools_of(["notes"])]
        suite = Suite(memory, impatient, timeouts=ReplyTimeouts(0.01, 0.01, Full()))
        with held(memory):
            result = suite.call("memory_save", {"content": "Likes oolong"})
            assert (result.status, result.is_error) == ("timeout", True)
            assert "check if" in result.text or "nothing was done" in result.text


def test_W1_with_MEMORY_TOOL_ASYNC_false_a_reply_waits_as_long_as_the_tool_says(tmp_path: Path) -> None:
    with opened(str(tmp_path), tool_async=False) as app:
        memory = app.user("u1")
        memory.note("exists")
        suite = app.tools("u1")
        results: list[Result] = []
        with held(memory):
            caller = threading.Thread(target=lambda: results.append(suite.call("memory_save", {"content": "x"})))
            caller.start()
            caller.join(0.2)
            assert caller.is_alive()
        caller.join(60)
        assert [result.status for result in results] == ["ok"] and suite.finished() == []
        assert not (tmp_path / "queue.db").exists()


def test_W1_a_queued_call_that_fails_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(str(tmp_path)) as app:
        memory = app.user("u1")
        memory.note("exists")
        suite = app.tools("u1", session="s1")
        note, failures = Memory.note, [StoreFullError()]

        def failing(self: Memory, *args: Any, **kwargs: Any) -> Any:
            with self.batch():  # waits for its turn
                if failures:
                    raise failures.pop()
            return note(self, *args, **kwargs)

        monkeypatch.setattr(Memory, "note", failing)
        with held(memory):
            assert suite.call("memory_save", {"content": "Likes oolong"}).status == "queued"
        while failures:
            threading.Event().wait(0.01)
        assert waiting(app) == 1
        with opened(str(tmp_path), clock=ahead) as other, other.queue() as queue, other.worker(queue) as worker:
            assert worker.wait_idle(60)
        assert contents(memory.read(kind="note")) == ["Likes oolong", "exists"] and waiting(app) == 0


def test_W2_a_call_that_a_worker_did_first_is_not_done_again_by_the_one_who_was_asked(where: str) -> None:
    with opened(where) as app, opened(where, clock=ahead) as other, other.queue() as queue:
        memory = app.user("u1")
        memory.note("exists")
        suite = app.tools("u1", session="s1")
        with held(memory):
            call = suite.call("memory_save", {"content": "Likes oolong"}).call
            # a process whose clock says that it is due, and which waits for the same lock
            worker = other.worker(queue).start()
            while not queue.depth()["running"]:
                threading.Event().wait(0.01)
        assert worker.stop(60)
        settled(app, suite)
        assert contents(memory.read(kind="note")) == ["Likes oolong", "exists"]
        assert len(memory.history(call=call)) == 1


_DIES = """
import os, sys, threading
import recollect
app = recollect.open(sys.argv[1], tool_async=True, tool_timeout_ms=30)
memory = app.user("u1")
memory.note("exists")
suite = app.tools("u1", session="s1", chat="c1", agent="helper")
held, done = threading.Event(), threading.Event()
def hold():
    with memory.batch():
        held.set()
        done.wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
result = suite.call(sys.argv[2], sys.argv[3])
print(result.status, result.call, flush=True)
done.wait()
"""


def killed(where: str, name: str = "memory_save", arguments: str = '{"content": "Likes oolong"}') -> str:
    """A process is told that its call is queued, and killed before it is done; gives the id of the call."""
    asking = subprocess.Popen(
        [sys.executable, "-c", _DIES, where, name, arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": "src"},
    )
    assert asking.stdout is not None
    status, call = asking.stdout.readline().split()
    asking.send_signal(signal.SIGKILL)
    asking.wait()
    asking.stdout.close()
    assert status == "queued"
    return call


@pytest.mark.everyday(1)
def test_W2_a_kill_does_not_lose_what_was_queued(where: str) -> None:
    call = killed(where)
    with opened(where, clock=ahead) as app:
        memory = app.user("u1")
        assert contents(memory.read(kind="note")) == ["exists"]
        with app.queue() as queue, app.worker(queue) as worker:
            assert worker.wait_idle(60)
        suite = app.tools("u1", session="s1")
        [done] = settled(app, suite)  # the next interaction, in another process
        assert (done.call, done.outcome) == (call, "written")
        [entry] = memory.history(call=call)
        assert entry.actor == "tool:memory_save" and entry.after is not None
        assert (entry.after.agent, entry.after.session) == ("helper", "s1")
        assert contents(memory.read(kind="note")) == ["Likes oolong", "exists"]
        assert [(row.id, row.status, row.outcome) for row in memory.calls()] == [(call, "queued", "written")]


def test_W2_an_embedded_process_does_what_a_killed_one_left_without_any_worker(tmp_path: Path) -> None:
    call = killed(str(tmp_path))
    with opened(str(tmp_path), clock=ahead) as app:
        suite = app.tools("u1", session="s1")
        assert [result.call for result in settled(app, suite)] == [call]
        assert contents(app.user("u1").read(kind="note")) == ["Likes oolong", "exists"]


@pytest.mark.everyday(1)
def test_R7_an_erased_user_is_not_brought_back_by_what_was_queued(where: str) -> None:
    killed(where)
    with opened(where, clock=ahead) as app:
        assert app.erase_user("u1").places["jobs"] == 1
        with app.queue() as queue, app.worker(queue) as worker:
            assert worker.wait_idle(60)
        assert list(app.users()) == []


def test_P7_what_was_queued_before_a_pause_is_not_done_in_it(tmp_path: Path) -> None:
    killed(str(tmp_path))
    with opened(str(tmp_path), clock=ahead) as app:
        app.user("u1").pause()
        [done] = settled(app, app.tools("u1", session="s1"))
        assert (done.status, done.outcome) == ("refused", "refused:paused")
        assert contents(app.user("u1").read(kind="note")) == ["exists"]


def test_W2_a_queued_call_of_a_tool_of_the_host_becomes_a_dead_letter_where_nobody_has_it(tmp_path: Path) -> None:
    with opened(str(tmp_path)) as app:
        app.user("u1").note("exists")
        late = DeferredCall(call="call_1", user="u1", tool="water_the_plants", arguments={}, people=("u1",))
        keeping = DeferredCalls(app.queue, lambda late: app.tools(late.user))
        keeping.keep(late)
        keeping.close()
        with opened(str(tmp_path), clock=ahead) as other, other.queue() as queue:
            with other.worker(queue) as worker:
                assert worker.wait_idle(60)
            [dead] = queue.dead()
        assert dead.name == TOOL and "host" in (dead.error or "")


_SAMPLES: dict[str, dict[str, Any]] = {
    "write_memory": {"category": "preference", "key": "tea", "value": "oolong", "durability": "durable"},
    "update_memory": {"key": "drink", "value": "coffee"},
    "delete_memory": {"key": "drink"},
    "memory_save": {"content": "Has a cat called Tom"},
    "memory_update": {"note_id": "note", "content": "Has two dogs"},
    "memory_delete": {"note_id": "note"},
    "remember_observation": {"content": "The build is green", "category": "finding"},
    "remember_fil": {"findings": ["It rains", "It pours"], "lessons": ["Take an umbrella"]},
    "scratchpad_set": {"key": "task", "value": "done"},
    "scratchpad_delete": {"key": "task"},
    "remember_fact": {"fact_type": "skill", "fact_key": "language", "fact_value": "Rust", "confidence": 0.9},
    "update_fact": {"fact_type": "preference", "fact_key": "drink", "new_value": "coffee", "confidence": 0.9, "change_reason": "update"},
    "forget_fact": {"fact_type": "preference", "fact_key": "drink", "reason": "incorrect"},
    "merge_facts": {"fact_ids": ["drink", "snack"], "merged_value": "Likes tea and cake", "merged_confidence": 0.9},
    "create_episode": {"topic": "Party", "summary": "They planned a party", "importance": 0.8},
    "update_episode": {"episode_id": "episode", "additional_summary": "And it rained"},
    "archive_episode": {"episode_id": "episode", "reason": "over"},
    "mark_important": {"importance_level": "high", "reason": "a promise"},
    "clear_profile": {"confirm": True, "reason": "asked to"},
    "remember_relationship": {"person": "Olena", "relation": "sister", "confidence": 0.9},
    "memory_delete_session": {"session_id": "s1"},
    "memory_import": {"data": "export"},
    "memory": {"command": "insert", "path": "/memories/plan.md", "insert_line": 0, "insert_text": "Buy tea"},
}  # fmt: skip


def stocked(memory: Memory) -> dict[str, Any]:
    """A memory for the samples, and what they name in it."""
    memory.remember("Tea", key="drink", type="preference")
    memory.remember("Cake", key="snack", type="preference")
    note = recorded(memory.note("Has a dog called Rex")).id
    episode = recorded(memory.episode("Birthday", "They went out")).id
    memory.say("I promise to come", session="s1")
    memory.set_scratch("task", "write tests")
    facts = {fact.key or "": fact.id for fact in memory.read(kind="fact")}
    return {"note": note, **{key: memory.numbers([ref])[ref] for key, ref in facts.items()},
            "episode": memory.numbers([episode])[episode]}  # fmt: skip


def recorded(outcome: Any) -> Record:
    record = outcome.record
    assert isinstance(record, Record)
    return record


def exported() -> str:
    """Something to import."""
    with recollect.open(MemoryStore()) as other:
        other.user("u9").note("Comes from elsewhere")
        return other.tools("u9", "sessions").call("memory_export", {}).text


def test_W2_every_tool_that_writes_has_a_sample_here() -> None:
    assert {one.name for one in tools_of(SUITES) if one.tier != "read_only"} == set(_SAMPLES)


@pytest.mark.parametrize("name", sorted(_SAMPLES))
def test_W2_a_call_that_is_done_again_after_a_crash_changes_nothing_more(name: str, tmp_path: Path) -> None:
    with recollect.open(MemoryStore()) as app:
        memory = app.user(7)
        named = stocked(memory) | {"export": exported() if name == "memory_import" else ""}
        suite = app.tools(7, session="s1", chat="c1")
        if name == "memory":
            suite.call("memory", {"command": "create", "path": "/memories/plan.md", "file_text": "Sleep"})
        filled = {
            key: [named[one] for one in value] if key == "fact_ids" else named.get(value, value) if key in _NAMED else value
            for key, value in _SAMPLES[name].items()
        }  # fmt: skip
        before = len(memory.history())
        late = DeferredCall(
            call="call_1", user="7", tool=name, arguments=filled, session="s1", chat="c1", people=("7",)
        )
        again = DeferredCall.from_dict(json.loads(json.dumps(late.to_dict())))
        done = suite.redo(late)
        assert done.status == "ok", done.text
        after = memory.history()
        assert len(after) > before and {entry.call for entry in after[before:]} == {"call_1"}
        assert again == late
        repeated = suite.redo(again)  # what it changed is in the journal under its id
        assert not repeated.is_error or name in _GONE, repeated.text
        assert memory.history() == after and memory.verify() == []


_NAMED = ("note_id", "episode_id", "data")
_GONE: frozenset[str] = frozenset()


def test_W1_G8_a_discussion_tells_the_model_what_was_finished_since(tmp_path: Path) -> None:
    with opened(str(tmp_path)) as app, ModelServer([Say("Good."), Say("Fine.")]) as server:
        memory = app.user("u1")
        memory.note("exists")
        talk = Discussion(app.tools("u1", "notes", session="s1"), open_model(f"{server.openai_url}#test", key="test"))
        with held(memory):
            assert talk.tools.call("memory_save", {"content": "Likes oolong"}).status == "queued"
        wait_for(app)
        talk.answer("Hello")
        talk.answer("Hello again")
        first, second = (asked.system or "" for asked in server.requests)
    assert "Meanwhile done" in first and "memory_save" in first and "Meanwhile done" not in second


def test_W2_a_store_that_fails_twice_leaves_the_call_to_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    going, told = threading.Event(), threading.Event()

    class Keeps:
        def keep(self, late: DeferredCall) -> str:
            return "job"

        def drop(self, kept: str) -> None: ...
        def done(self, kept: str, late: DeferredCall, result: Result) -> None: ...
        def failed(self, kept: str) -> None:
            told.set()

        def finished(self, user_id: str, session: str | None, chat: str | None = None) -> list[Result]:
            return []

    def fails(self: Memory, *args: Any, **kwargs: Any) -> Any:
        assert going.wait(60)
        raise StoreFullError()

    with recollect.open(MemoryStore()) as app:
        suite = Suite(app.user(7), tools_of(["notes"]), timeouts=ReplyTimeouts(0.01, 0.01, Keeps()))
        monkeypatch.setattr(Memory, "note", fails)
        monkeypatch.setattr(Memory, "history", fails)
        assert suite.call("memory_save", {"content": "Likes oolong"}).status == "queued"
        going.set()
        assert told.wait(120)


# what only reads


def test_W1_a_question_that_takes_too_long_is_answered_when_it_is_asked_again(tmp_path: Path) -> None:
    going = threading.Event()
    asked: list[str] = []

    @tool("slow", does="recall", timeout=60)
    def look_up(scope: Scope, what: str) -> ToolAnswer:
        """Look something up, slowly."""
        asked.append(what)
        assert going.wait(60)
        return ToolAnswer({"status": "success", "found": len(asked)})

    with opened(str(tmp_path)) as app:
        memory = app.user("u1")
        memory.note("exists")
        log = app.tools("u1")._log
        suite = Suite(memory, [look_up, *tools_of(["notes"])], log=log, timeouts=app.tools("u1")._timeouts)
        first = suite.call("look_up", {"what": "tea"})
        assert (first.status, first.is_error) == ("queued", False) and "again" in first.text
        second = suite.call("look_up", {"what": "tea"})  # joins the first, which still runs
        assert second.status == "queued" and second.call != first.call
        going.set()
        third = asked_until_answered(suite, "look_up", {"what": "tea"})
        assert json.loads(third.text) == {"status": "success", "found": 1} and asked == ["tea"]
        fourth = asked_until_answered(suite, "look_up", {"what": "tea"})
        assert fourth.status == "ok" and asked == ["tea", "tea"]  # looked up anew
        assert waiting(app) == 0 and suite.finished() == []
        by_call = {row.id: row.status for row in memory.calls()}
        assert [by_call[one.call] for one in (first, second, third)] == ["queued", "queued", "ok"]


def test_W1_an_answer_that_came_too_late_is_not_given_after_something_changed(tmp_path: Path) -> None:
    going, asked = threading.Event(), []

    @tool("slow", does="recall", timeout=60)
    def look_up(scope: Scope) -> ToolAnswer:
        """Look something up, slowly."""
        asked.append(len(scope.memory.read(kind="note")))
        assert going.wait(60)
        return ToolAnswer({"status": "success", "notes": asked[-1]})

    with opened(str(tmp_path)) as app:
        memory = app.user("u1")
        memory.note("exists")
        suite = Suite(memory, [look_up, *tools_of(["notes"])], timeouts=app.tools("u1")._timeouts)
        assert suite.call("look_up").status == "queued"
        going.set()
        suite.call("memory_save", {"content": "Likes oolong"})
        settled(app, suite)
        assert json.loads(asked_until_answered(suite, "look_up").text)["notes"] == 2


def test_W1_a_search_has_the_time_of_the_embedder_on_top(tmp_path: Path) -> None:
    with opened(str(tmp_path), embedder=HashEmbedder(), embedder_timeout_ms=700) as app:
        timeouts = app.tools("u1")._timeouts
        assert timeouts is not None and (timeouts.reads, timeouts.writes) == (0.73, 0.03)
