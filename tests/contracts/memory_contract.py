"""What a memory must do wherever it is kept. Inherited by the tests of each deployment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest

import recollect
from recollect import (
    Conflict,
    DailyEntry,
    Demoted,
    Duplicate,
    Episode,
    Fact,
    Forgotten,
    Interaction,
    InvalidInputError,
    Memory,
    Merged,
    Message,
    NotFoundError,
    Recollect,
    Refused,
    Reported,
    Spending,
    ToolCall,
    UndoError,
    Updated,
    Written,
)
from recollect.errors import AmbiguousError, StoreError
from recollect.memory.unprocessed import Unread
from recollect.testing import FrozenClock
from tests.contracts.store_contract import extraction_run, tool_call
from tests.volume import IS_LONG
from tests.words import mentions


def written(outcome: recollect.Outcome) -> recollect.Record:
    assert isinstance(outcome, Written), outcome
    return outcome.record


def texts(memory: Memory, **filters: object) -> list[str]:
    return [record.text for record in memory.read(**filters)]  # type: ignore[arg-type]


def reported(outcome: recollect.Outcome) -> Interaction:
    assert isinstance(outcome, Reported) and outcome.done, outcome
    return outcome.interaction


def log(memory: Memory, *calls: ToolCall) -> None:
    """As the tools do it: beside the memory, without touching a file."""
    with memory._user_memory.write_alongside() as tx:
        tx.log_calls(calls)


class MemoryContract:
    """Subclass it and provide the fixture ``app``."""

    @pytest.fixture
    def clock(self) -> FrozenClock:
        return FrozenClock()

    @pytest.fixture
    def app(self, clock: FrozenClock) -> Iterator[Recollect]:
        raise NotImplementedError

    @pytest.fixture
    def memory(self, app: Recollect) -> Iterator[Memory]:
        memory = app.user("u1")
        yield memory
        assert memory.verify() == []

    # records

    def test_R1_every_kind_can_be_written_and_read(self, memory: Memory, clock: FrozenClock) -> None:
        fact = written(memory.remember("Senior engineer", key="role", category="work_context"))
        jot = written(memory.jot("Read 6 posts", section="Reading Activity"))
        note = written(memory.note("The user's name is Shantanu", title="Name", tags=["id"]))
        seen = written(memory.observe("The API limit is 100 a minute", "finding", source="GOAL:check"))
        day = written(
            memory.episode("Birthday plans", "They plan a party.", importance=0.8, valence="positive", tags=["party"])
        )
        said = written(memory.say("How do I prune?", session="s1", role="user", speaker="Anna"))
        memory.set_scratch("api.endpoint", "https://api.example.com")
        for kind, record in {
            "fact": fact, "daily": jot, "note": note, "observation": seen, "episode": day, "message": said,
        }.items():  # fmt: skip
            assert memory.read(kind=kind) == [record]
            assert memory.get(record.id) == record
            assert record.id.startswith(kind + "-") and record.kind == kind
            assert record.created_at == clock() and record.status == "active"
        assert isinstance(fact, Fact) and fact.text == "role: Senior engineer"
        assert isinstance(jot, DailyEntry) and jot.day == date(2026, 2, 12)
        assert isinstance(day, Episode) and (day.topic, day.valence) == ("Birthday plans", "positive")
        assert isinstance(said, Message) and (said.role, said.speaker, said.session) == ("user", "Anna", "s1")
        assert memory.scratch("api.endpoint") == "https://api.example.com"
        memory.set_scratch("api.endpoint", "https://other.example.com")
        assert memory.scratch("api.endpoint") == "https://other.example.com" and memory.scratch("nothing") is None

    def test_R1_ids_sort_by_time(self, memory: Memory) -> None:
        ids = [written(memory.note(f"note about subject number {n}")).id for n in range(5)]
        assert ids == sorted(ids) and len(set(ids)) == 5

    def test_R2_every_record_can_tell_why_it_is_known(self, memory: Memory) -> None:
        agent = memory.acting("agent", agent="discussion-bot", session="chat-7", call="call-1", trusted=False)
        fact = written(
            agent.remember(
                "Skeptical about crypto",
                source="discussion:42",
                excerpt="I do not believe in crypto",
                messages=["m1", "m2"],
                confidence=0.8,
            )
        )
        assert (fact.source, fact.session, fact.agent, fact.trusted) == (
            "discussion:42",
            "chat-7",
            "discussion-bot",
            False,
        )
        why = memory.why(fact.id)
        for part in ("discussion (42)", "2026-02-12", "chat-7", "discussion-bot", "I do not believe in crypto", "m1, m2",
                     "0.80", "untrusted"):  # fmt: skip
            assert part in why.message
        [entry] = why.entries
        assert (entry.actor, entry.call, entry.source) == ("agent", "call-1", "discussion:42")
        plain = written(memory.remember("Likes tea"))
        assert "You asked to remember it" in memory.why(plain.id).message

    def test_R3_a_fact_holds_from_a_time_until_a_time(self, memory: Memory, clock: FrozenClock) -> None:
        start = clock()
        memory.remember("Kyiv", key="location", type="personal", valid_from="2020-01-01")
        clock.tick(days=10)
        outcome = memory.update("location", "Lviv", source="explicit")
        assert isinstance(outcome, Updated) and outcome.previous.content == "Kyiv"
        assert outcome.record.id == outcome.previous.id
        assert texts(memory, key="location") == ["location: Lviv"]
        assert texts(memory, key="location", as_of=start) == ["location: Kyiv"]
        assert texts(memory, key="location", as_of="2020-06-01") == ["location: Kyiv"]
        assert texts(memory, as_of="2019-12-31") == []
        assert texts(memory, key="location", as_of=clock()) == ["location: Lviv"]

    def test_R3_used_to_live_is_told_with_the_date_of_the_move(self, memory: Memory, clock: FrozenClock) -> None:
        memory.remember("Kyiv", key="location", valid_from="2015-03-01")
        memory.update("location", "Lviv", valid_from="2022-05-01")
        assert texts(memory, as_of="2021-01-01") == ["location: Kyiv"]
        assert texts(memory, as_of="2023-01-01") == ["location: Lviv"]

    def test_R3_an_update_holds_from_its_date_also_if_the_old_value_was_learned_later(
        self, memory: Memory, clock: FrozenClock
    ) -> None:
        learned = clock()
        memory.remember("Kyiv", key="location")
        clock.tick(hours=1)
        outcome = memory.update("location", "Lviv", valid_from=learned.date())
        assert isinstance(outcome, Updated) and outcome.previous.content == "Kyiv"
        assert texts(memory, as_of=clock()) == texts(memory, as_of=learned) == ["location: Lviv"]
        memory.update("location", "Odesa", valid_from="2000-01-01")
        assert texts(memory, as_of="2010-01-01") == texts(memory, as_of=learned) == ["location: Odesa"]
        assert texts(memory, as_of="1999-12-31") == []
        assert [entry.after.content for entry in memory.history("location") if entry.after] == ["Kyiv", "Lviv", "Odesa"]
        memory.undo()
        assert texts(memory, key="location") == ["location: Lviv"]
        assert texts(memory, as_of="2010-01-01") == []

    def test_R3_a_correction_was_always_so(self, memory: Memory, clock: FrozenClock) -> None:
        memory.remember("Kyiv", key="location")
        clock.tick(days=1)
        memory.update("location", "Lviv", reason="correction")
        assert texts(memory, as_of=clock() - timedelta(hours=12)) == ["location: Lviv"]

    # journal

    def test_R5_every_operation_is_one_entry(self, memory: Memory, clock: FrozenClock) -> None:
        memory.remember("Engineer", key="role")
        memory.update("role", "Architect", reason="correction", note="promoted")
        memory.forget("role", reason="asked to")
        entries = memory.history()
        assert [(e.seq, e.op, e.actor) for e in entries] == [
            (1, "remember", "person"), (2, "update", "person"), (3, "forget", "person"),
        ]  # fmt: skip
        assert entries[0].before is None and entries[1].before == entries[0].after
        assert entries[2].before == entries[1].after and entries[2].reason == "asked to"
        assert entries[1].reason == "promoted"
        assert memory.history(entries[0].record_id) == entries
        assert [e.seq for e in memory.history(limit=2)] == [2, 3]

    def test_R5_undo_takes_back_each_kind_of_change_and_can_itself_be_undone(self, memory: Memory) -> None:
        memory.remember("Engineer", key="role")
        memory.update("role", "Architect")
        memory.undo(2)
        assert texts(memory) == ["role: Engineer"]
        memory.undo(3)
        assert texts(memory) == ["role: Architect"]
        memory.forget("role")
        memory.undo()
        assert texts(memory) == ["role: Architect"]
        with pytest.raises(UndoError, match="was changed after entry 1"):
            memory.undo(1)
        assert texts(memory) == ["role: Architect"]

    def test_R5_undo_of_what_was_remembered_forgets_it(self, memory: Memory) -> None:
        memory.remember("Likes tea")
        memory.undo()
        assert texts(memory) == []
        with pytest.raises(NotFoundError):
            memory.undo()
        with pytest.raises(NotFoundError, match="no journal entry 99"):
            memory.undo(99)
        with pytest.raises(NotFoundError, match="no run"):
            memory.undo("run-x")

    def test_R5_undo_says_when_it_is_done_already_or_in_conflict(self, memory: Memory) -> None:
        memory.remember("Engineer", key="role")
        memory.forget("role")
        memory.remember("Pilot", key="role")
        with pytest.raises(UndoError, match="is now 'Pilot'"):
            memory.undo(2)
        memory.forget("role")
        memory.undo(2)
        with pytest.raises(UndoError, match="already been undone"):
            memory.undo(2)

    def test_R5_a_whole_run_is_undone_at_once(self, memory: Memory) -> None:
        memory.remember("Likes tea")
        before = memory.show()
        run = memory.acting("agent", run="run-extraction-1")
        run.remember("Works at Stripe", key="company")
        run.remember("Learns Zig on weekends")
        run.forget(memory.search("tea")[0].record.id)
        assert len(memory.history(run="run-extraction-1")) == 3
        memory.undo("run-extraction-1")
        assert texts(memory) == ["Likes tea"] and memory.show() == before

    def test_R5_undo_means_the_last_change_and_not_what_was_merely_said(self, memory: Memory) -> None:
        memory.remember("Likes tea")
        memory.say("I like tea", session="s1")
        memory.set_scratch("task", "tea")
        memory.undo()
        assert texts(memory, kind="fact") == [] and len(memory.read(kind="message")) == 1
        memory.undo(memory.history(limit=1)[0].seq)  # the undo itself: then it can be taken back once more
        assert texts(memory, kind="fact") == ["Likes tea"]
        memory.undo()
        assert texts(memory, kind="fact") == []
        with pytest.raises(recollect.NotFoundError, match="nothing to undo"):
            memory.undo()

    def test_R5_merging_something_with_itself_is_merging_it_once(self, memory: Memory) -> None:
        tea = written(memory.remember("Likes tea", key="drink")).id
        mate = written(memory.remember("Likes mate")).id
        merged = memory.merge([tea, "drink", mate, tea], "Likes tea and mate")
        assert isinstance(merged, Merged) and [one.id for one in merged.merged] == [tea, mate]
        assert memory.verify() == []
        with pytest.raises(InvalidInputError, match="different"):
            memory.merge([merged.record.id, merged.record.id], "Likes hot drinks")

    def test_R5_merge_is_one_run(self, memory: Memory) -> None:
        a = written(memory.remember("Python", key="language", type="skill", confidence=0.8, tags=["a"]))
        b = written(memory.remember("Writes a lot of Rust at night", type="skill", confidence=0.9, tags=["b"]))
        outcome = memory.merge([a.id, b.id], "Python and Rust")
        assert isinstance(outcome, Merged)
        assert texts(memory) == ["language: Python and Rust"]
        assert outcome.record.confidence == 0.9 and outcome.record.tags == ("a", "b")
        assert [r.superseded_by for r in outcome.merged] == [outcome.record.id] * 2
        memory.undo(outcome.run)
        assert sorted(texts(memory)) == ["Writes a lot of Rust at night", "language: Python"]
        with pytest.raises(InvalidInputError, match="at least two"):
            memory.merge([a.id, a.id], "x y")

    def test_R5_verify_finds_what_was_changed_behind_its_back(self, app: Recollect) -> None:
        memory = app.user("u2")
        record = written(memory.remember("Likes tea"))
        with memory._user_memory.user.write() as tx:
            tx.put(replace(record, content="Likes coffee"))
        assert any(record.id in problem for problem in memory.verify())

    # policy

    def test_P1_low_confidence_goes_to_the_daily_note_and_says_so(self, memory: Memory) -> None:
        outcome = memory.remember("Probably likes jazz", confidence=0.6, source="batch_extraction")
        assert isinstance(outcome, Demoted) and "0.60" in outcome.message and "0.70" in outcome.message
        assert "jazz" not in memory.show() and "- Probably likes jazz" in memory.daily()
        assert isinstance(memory.remember("Likes opera", confidence=0.7), Written)
        assert "opera" in memory.show()
        memory.remember("Engineer", key="role")
        assert isinstance(memory.update("role", "Astronaut", confidence=0.3), Demoted)
        assert memory.get("role").content == "Engineer"

    def test_P2_duplicate_conflict_and_similar(self, memory: Memory) -> None:
        tea = written(memory.remember("Likes green tea in the morning"))
        again = memory.remember("the user likes GREEN tea in the morning!")
        assert isinstance(again, Duplicate) and again.record.id == tea.id
        near = memory.remember("Likes green tea in the morning and coffee")
        assert isinstance(near, Written) and near.similar[0].id == tea.id and tea.text in near.message
        unrelated = memory.remember("Likes green cars")
        assert isinstance(unrelated, Written)
        role = written(memory.remember("Engineer", key="role"))
        conflict = memory.remember("Pilot", key="role")
        assert isinstance(conflict, Conflict) and conflict.record.id == role.id and "Update" in conflict.message
        assert isinstance(memory.remember("engineer", key="Role"), Duplicate)
        assert memory.get("role").content == "Engineer"

    def test_P3_the_same_city_in_another_script_is_a_duplicate(self, memory: Memory) -> None:
        memory.remember("Kyiv", key="location", type="personal")
        assert isinstance(memory.remember("Київ", key="location", type="personal", confidence=0.9), Duplicate)

    def test_P4_code_is_refused_and_prose_about_code_is_not(self, memory: Memory) -> None:
        for content in ("```python\nprint(1)\n```", "def f(x):\n    return x", "SELECT * FROM users WHERE id = 1;"):
            outcome = memory.remember(content)
            assert isinstance(outcome, Refused) and outcome.reason == "code", content
        assert isinstance(memory.remember("Prefers pytest over unittest"), Written)
        assert isinstance(memory.say("```python\nprint(1)\n```", session="s"), Written)

    def test_P5_secrets_are_refused_or_masked_and_never_reach_the_journal(self, memory: Memory) -> None:
        secret = "sk-" + "abcdefghijklmnopqrstuvwx0123456789ABCD"
        for attempt in (
            memory.remember(f"My API key is {secret}"),
            memory.remember(secret, key="token"),
            memory.note(f"Remember {secret}"),
            memory.note("A harmless text", title=f"token {secret}"),
            memory.remember("Something harmless", tags=[secret]),
        ):
            assert isinstance(attempt, Refused) and attempt.reason == "secret" and secret not in attempt.message
        memory.remember("Uses OpenAI", excerpt=f"my key {secret} works", metadata={"raw": [f"x {secret}"]})
        memory.say(f"here: {secret}", session="s")
        memory.update(memory.search("OpenAI")[0].record.id, f"token: {secret}")
        told = repr(memory.history()) + repr(memory.read(status="all")) + memory.show() + memory.daily()
        assert secret not in told and "removed]" in told

    def test_P7_paused_stores_nothing_but_recalls(self, memory: Memory) -> None:
        memory.remember("Likes tea")
        memory.pause()
        assert memory.mode == "paused"
        for outcome in (
            memory.remember("Likes coffee"), memory.note("x y z"), memory.say("hello", session="s"), memory.jot("a b c"),
            memory.set_scratch("plan", "x"),
            memory.update(memory.search("tea")[0].record.id, "Likes mate"), memory.observe("a fact", "finding"),
        ):  # fmt: skip
            assert isinstance(outcome, Refused) and outcome.reason == "paused"
        assert texts(memory) == ["Likes tea"] and memory.search("tea")
        assert isinstance(memory.forget(memory.search("tea")[0].record.id), Forgotten)
        with memory.batch() as batch:
            batch.resume()
            assert isinstance(batch.remember("Likes coffee"), Written)
        assert [e.op for e in memory.history() if not e.record_id] == ["pause", "resume"]

    def test_P7_incognito_neither_reads_nor_writes(self, memory: Memory) -> None:
        memory.remember("Likes tea")
        memory.pause(incognito=True)
        outcome = memory.remember("Likes coffee")
        assert isinstance(outcome, Refused) and outcome.reason == "incognito"
        assert memory.read() == [] and memory.search("tea") == []
        memory.resume()
        assert texts(memory) == ["Likes tea"]

    # correcting and removing

    def test_F5_updating_or_removing_an_unknown_key_says_so_and_names_the_nearest(self, memory: Memory) -> None:
        memory.remember("Engineer", key="role", category="work_context")
        with pytest.raises(NotFoundError, match=r"'rolle'; the nearest: role"):
            memory.update("rolle", "Pilot")
        with pytest.raises(NotFoundError):
            memory.update("999", "x")
        assert texts(memory) == ["role: Engineer"]
        with pytest.raises(NotFoundError, match="nothing is remembered under 'company'"):
            memory.forget("company")
        with pytest.raises(NotFoundError):
            memory.update("fact-00000000000000000000000000", "x")

    def test_F5_the_same_key_in_two_categories_must_be_told_apart(self, memory: Memory) -> None:
        memory.remember("Python", key="language", type="skill")
        memory.remember("Ukrainian", key="language", type="personal")
        with pytest.raises(AmbiguousError, match="could be any of"):
            memory.update("language", "Rust")
        memory.update("language", "Rust", type="skill")
        assert sorted(texts(memory)) == ["language: Rust", "language: Ukrainian"]
        memory.forget("language", type="personal")
        assert texts(memory) == ["language: Rust"]

    def test_update_changes_everything_a_record_has(self, memory: Memory) -> None:
        memory.remember("Engineer", key="role", category="work_context", metadata={"a": 1})
        outcome = memory.update(
            "role", category="personal_context", key="job", importance=0.9, pinned=True, tags=["x"], metadata={"b": 2}
        )
        assert isinstance(outcome, Updated)
        record = memory.get("job")
        assert (record.category, record.importance, record.pinned, record.tags, record.metadata) == (
            "personal_context", 0.9, True, ("x",), {"a": 1, "b": 2},
        )  # fmt: skip
        assert "- Job: Engineer" in memory.show() and "Role" not in memory.show()
        assert isinstance(memory.update("job", "Engineer"), Duplicate)

    def test_forget_can_name_what_takes_its_place(self, memory: Memory) -> None:
        old = written(memory.remember("Works at Stripe"))
        new = written(memory.remember("Works for Adyen in Amsterdam"))
        memory.forget(old.id, replaced_by=new.id)
        assert [r.superseded_by for r in memory.read(status="superseded")] == [new.id]
        assert texts(memory) == ["Works for Adyen in Amsterdam"]

    def test_R7_erase_leaves_only_a_tombstone(self, memory: Memory) -> None:
        memory.remember("Kyiv", key="location")
        memory.update("location", "Lviv")
        memory.remember("Likes tea")
        memory.jot("Moved to Lviv in May")
        outcome = memory.erase("location")
        assert outcome.receipt.places["records"] == 1 and outcome.receipt.places["versions"] == 2
        assert outcome.receipt.places["journal"] == 2
        everything = repr(memory.history()) + repr(memory.read(status="all")) + memory.show()
        assert "Kyiv" not in everything and "location" not in everything
        entries = memory.history(outcome.receipt.ids[0])
        assert [e.op for e in entries] == ["remember", "update", "erase"] and all(e.erased for e in entries[:2])
        for entry in entries:
            with pytest.raises(UndoError):
                memory.undo(entry.seq)
        for value in ("Kyiv", "Lviv", "Львів"):
            again = memory.remember(value, key="location", source="batch_extraction")
            assert isinstance(again, Refused) and again.reason == "erased", value
        assert isinstance(memory.remember("Lviv", key="location", source="explicit"), Written)

    def test_R7_erase_by_topic_lists_first(self, memory: Memory) -> None:
        memory.remember("Loves distributed systems")
        memory.note("Notes on distributed systems: Raft")
        memory.jot("Read about a distributed system", section="Reading Activity")
        memory.say("I like distributed systems", session="s")
        memory.remember("Likes tea")
        listed, receipt = memory.erase_topic("distributed systems", dry_run=True)
        assert len(listed) == 4 and receipt is None and len(memory.read()) == 5
        gone, receipt = memory.erase_topic("distributed systems")
        assert receipt is not None and len(receipt.ids) == len(gone) == 4
        assert texts(memory) == ["Likes tea"]
        assert "distributed" not in memory.show() + memory.daily() + repr(memory.history())

    def test_R7_erasing_within_a_batch(self, memory: Memory) -> None:
        old = written(memory.remember("The zebra incident"))
        with memory.batch() as batch:
            batch.remember("Likes tea")
            new = written(batch.remember("The okapi incident"))
            batch.erase(old.id, new.id)
            batch.remember("Likes coffee")
        assert sorted(texts(memory)) == ["Likes coffee", "Likes tea"]
        assert "incident" not in memory.show() and "- Likes coffee" in memory.show() and "- Likes tea" in memory.show()

    def test_R7_clear_removes_everything_and_nothing_comes_back(self, memory: Memory) -> None:
        memory.remember("Likes tea")
        memory.forget(memory.search("tea")[0].record.id)
        memory.jot("Read 6 posts", section="Reading Activity")
        memory.note("A private note")
        outcome = memory.clear()
        assert len(outcome.receipt.ids) == 3
        assert memory.read(status="all") == [] and memory.search("tea") == []
        assert not mentions(memory.show(), "tea") and memory.daily() == "" and "private" not in repr(memory.history())
        with pytest.raises(NotFoundError):
            memory.undo()
        assert isinstance(memory.remember("Likes tea", source="batch_extraction"), Refused)
        assert isinstance(memory.remember("Plays chess", source="batch_extraction"), Written)

    def test_R7_erase_of_a_user_leaves_nothing(self, app: Recollect) -> None:
        for user in ("a", "b"):
            app.user(user).remember(f"Secret of {user}")
        receipt = app.erase_user("a")
        assert sum(receipt.places.values()) > 0
        assert list(app.users()) == ["b"] and not app.user("a").exists
        assert app.user("a").read() == [] and texts(app.user("b")) == ["Secret of b"]

    def test_R7_clear_takes_the_log_and_the_consents_along_and_leaves_the_ledger(
        self, memory: Memory, clock: FrozenClock
    ) -> None:
        memory.remember("Likes tea")
        assert not {"tool calls", "consents"} & memory.clear().receipt.places.keys()
        memory.consent("trends")
        memory.spend("extract", tokens_in=100, cost=0.5)
        log(memory, tool_call("call-1"), tool_call("call-2", 1))
        memory.remember("Likes tea")
        spent = memory.usage()
        places = memory.clear().receipt.places
        assert places["tool calls"] == 2 and places["consents"] == 1
        assert memory.calls() == [] and memory.consents() == () and memory.usage() == spent != []
        assert [entry.op for entry in memory.history()][-3:] == ["remember", "withdraw", "erase"]

    # beside the memory

    def test_U7_the_log_of_tool_calls_is_read_by_time_tool_and_session(
        self, app: Recollect, memory: Memory, clock: FrozenClock
    ) -> None:
        assert memory.calls() == [] and not memory.exists
        first, second = tool_call("call-1", session="s1"), tool_call("call-2", 1, tool="memory_search")
        log(memory, first, second)
        assert memory.history() == [] and memory.read() == []
        assert memory.calls() == [second, first] and memory.calls(newest_first=False) == [first, second]
        assert memory.calls(limit=1) == [second] and memory.calls(tool="memory_save") == [first]
        assert memory.calls(session="s1") == [first]
        assert memory.calls(since=second.at) == [second] and memory.calls(until="2026-02-12T09:31:00Z") == [first]
        assert memory.calls(since="2026-02-13") == []
        for wrong in ({"limit": 0}, {"since": "yesterday"}, {"tool": ""}, {"session": 3}):
            with pytest.raises(InvalidInputError):
                memory.calls(**wrong)
        memory.remember("Likes tea")
        with memory.batch() as batch:
            assert batch.calls() == [second, first] and app.user("u2").calls() == []

    def test_R5_the_history_of_a_tool_call(self, memory: Memory) -> None:
        agent = memory.acting("agent", call="call-7")
        agent.remember("Likes tea", key="drink")
        memory.remember("Likes chess")
        agent.update("drink", "Likes coffee")
        assert [(e.seq, e.op) for e in memory.history(call="call-7")] == [(1, "remember"), (3, "update")]
        assert [e.seq for e in memory.history("drink", call="call-7", limit=1)] == [3]
        assert memory.history(call="call-8") == []

    def test_T7_what_a_host_spends_adds_up(self, app: Recollect, memory: Memory, clock: FrozenClock) -> None:
        assert memory.usage() == []
        memory.spend("extract", tokens_in=1000, tokens_out=50, cost=0.25)
        memory.spend("extract", tokens_in=500)
        memory.spend("embed")
        today = [
            Spending(day=date(2026, 2, 12), operation="embed", calls=1),
            Spending(day=date(2026, 2, 12), operation="extract", calls=2, tokens_in=1500, tokens_out=50, cost=0.25),
        ]
        assert memory.usage() == today and memory.history() == []
        clock.tick(days=1)
        assert memory.usage() == []
        with memory.batch() as batch:
            batch.spend("extract", cost=1)
            [tomorrow] = batch.usage()
            with pytest.raises(StoreError, match="batch"):
                memory.spend("extract")
        assert memory.usage(since="2026-02-12") == [*today, tomorrow] == memory.usage(until=date(2026, 2, 13))
        assert memory.usage(since="2026-02-12", until="2026-02-12") == today
        with pytest.raises(RuntimeError), memory.batch() as batch:
            batch.spend("extract", cost=1)
            raise RuntimeError
        assert memory.usage() == [tomorrow] and app.user("u2").usage() == []

    @pytest.mark.everyday(4)
    @pytest.mark.parametrize(
        "wrong",
        [
            {"operation": ""},
            {"operation": "a\nb"},
            {"tokens_in": -1},
            {"tokens_in": 10**13},
            {"tokens_out": 1.5},
            {"tokens_out": True},
            {"cost": -0.01},
            {"cost": float("nan")},
            {"cost": float("inf")},
            {"cost": "1"},
        ],
    )
    def test_T7_nothing_impossible_enters_the_ledger(self, memory: Memory, wrong: dict[str, object]) -> None:
        with pytest.raises(InvalidInputError) as raised:
            memory.spend(**({"operation": "extract"} | wrong))  # type: ignore[arg-type]
        assert raised.value.field == next(iter(wrong)) and memory.usage() == []

    def test_R5_consents_are_given_withdrawn_and_in_the_journal(self, memory: Memory) -> None:
        assert memory.consents() == () and not memory.exists
        memory.remember("Likes tea")
        memory.consent("trends")
        memory.acting("agent", run="run-1", call="call-1").consent("across_chats")
        memory.consent("trends")
        assert memory.consents() == ("across_chats", "trends")
        memory.consent("trends", False)
        memory.consent("trends", given=False)
        assert memory.consents() == ("across_chats",)
        entries = memory.history()[1:]
        assert [(e.op, e.reason) for e in entries] == [
            ("consent", "trends"),
            ("consent", "across_chats"),
            ("withdraw", "trends"),
        ]
        assert (entries[1].actor, entries[1].call) == ("agent", "call-1")
        for target in (2, "run-1"):
            with pytest.raises(UndoError):
                memory.undo(target)
        memory.undo()  # the last change of a record, whatever was consented to since
        assert memory.read() == [] and memory.consents() == ("across_chats",)
        for name in ("everything", "", 1):
            with pytest.raises(InvalidInputError, match="across_chats, trends"):
                memory.consent(name)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError):
            memory.consent("trends", "yes")  # type: ignore[arg-type]

    def test_G3_a_host_reports_what_happened(self, app: Recollect, memory: Memory, clock: FrozenClock) -> None:
        assert memory.interactions() == [] and not memory.exists
        liked = reported(
            memory.report(
                "reaction", value="👍", item="post:1", title="Rust  async", topics=["rust", "rust"], metadata={"n": 1}
            )
        )
        assert liked == Interaction(
            id=liked.id,
            at=clock(),
            kind="reaction",
            item="post:1",
            title="Rust  async",
            value="👍",
            topics=("rust",),
            metadata={"n": 1},
        )
        assert liked.id.startswith("event-") and memory.exists and memory.history() == [] and memory.read() == []
        clock.tick(hours=1)
        talked = reported(memory.acting("app", session="s1").report("discussion", title="Rust"))
        early = reported(memory.report("command", value="/saved", at="2026-02-12T09:00:00+01:00", session="s2"))
        day = reported(memory.report("save", text="two\r\nlines", at=date(2026, 2, 11)))
        assert talked.session == "s1" and early.at.hour == 8 and day.text == "two\nlines"
        assert memory.interactions() == [day, early, liked, talked]
        assert memory.interactions(newest_first=True, limit=1) == [talked] and memory.interactions(limit=1) == [day]
        assert memory.interactions(kinds=["command", "save"]) == [day, early]
        assert memory.interactions(since="2026-02-12", until=clock()) == [early, liked]
        assert memory.interactions(session="s1") == [talked] and app.user("u2").interactions() == []
        for wrong in ({"limit": 0}, {"since": "yesterday"}, {"kinds": ["like"]}, {"kinds": "save"}, {"session": ""}):
            with pytest.raises(InvalidInputError):
                memory.interactions(**wrong)
        assert not memory.search("rust", include_conversation=True)
        assert memory.context("rust").count("Rust") == 1 and 'Reacted 👍 to "Rust' in memory.context("rust")

    def test_G3_what_was_stored_since_is_unread_whenever_it_happened(
        self, app: Recollect, memory: Memory, clock: FrozenClock
    ) -> None:
        def contents(found: Unread) -> list[str]:
            return sorted([one.content for one in found.messages] + [one.title or "" for one in found.interactions])

        nothing = memory.unread(until=clock())
        assert contents(nothing) == [] and not memory.exists
        start = clock()
        memory.say("first", session="a", said_at=start - timedelta(days=400))
        memory.report("save", title="one", at=start - timedelta(days=80))
        memory.say("to come", session="a", said_at=start + timedelta(hours=1))
        first = memory.unread(until=start + timedelta(minutes=1))
        assert contents(first) == ["first", "one"]
        clock.now = start - timedelta(hours=5)  # the clock of another machine
        memory.report("save", title="two", at=clock() - timedelta(days=1))
        memory.say("second", session="b", said_at=clock() - timedelta(days=1))
        clock.now = start + timedelta(hours=2)
        for message in memory.read(kind="message"):
            memory.mark_important([message.id], "high")  # a new version is no new message
        second = memory.unread([first.mark], until=clock())
        assert contents(second) == ["second", "to come", "two"]
        assert contents(memory.unread([first.mark], until=clock(), session="b")) == ["second"]
        assert contents(memory.unread([first.mark], until=start)) == ["second", "two"]
        for marks in ([first.mark, second.mark], [second.mark, first.mark, nothing.mark], [second.mark]):
            assert contents(memory.unread(marks, until=clock())) == []
        assert contents(app.user("u2").unread(until=clock())) == []
        memory.pause(incognito=True)
        assert contents(memory.unread(until=clock())) == []

    def test_records_are_read_by_when_they_were_said(self, memory: Memory, clock: FrozenClock) -> None:
        start = clock()
        for hours in range(4):
            memory.say(f"message {hours}", session="s", said_at=start + timedelta(hours=hours))
        memory.remember("Oslo", key="city", valid_from="2020-01-01")
        memory.update("city", "Lviv")

        def said(**bounds: Any) -> list[str]:
            return [one.content for one in memory.read(**bounds)]

        one, three = start + timedelta(hours=1), start + timedelta(hours=3)
        assert said(kind="message", since=one, until=three) == ["message 1", "message 2"]
        assert said(kind="message", until=one) == ["message 0"] and said(since=three) == ["message 3"]
        assert said(kind="message", since=one, newest_first=True, limit=1) == ["message 3"]
        assert said(kind="message", since=three, until=one) == []
        assert said(kind="fact", until="2021-01-01") == [] and said(kind="fact", since=start.date()) == ["Lviv"]
        assert said(kind="fact", until="2021-01-01", as_of="2020-06-01") == ["Oslo"]
        for wrong in ({"since": "yesterday"}, {"until": 5}):
            with pytest.raises(InvalidInputError):
                memory.read(**wrong)

    def test_R2_an_update_tells_what_supports_the_new_value(self, memory: Memory) -> None:
        memory.remember("Oslo", key="city", messages=["message-1"], excerpt="I live in Oslo")
        memory.update("city", "Lviv", messages=["message-2", "message-3"])
        city = memory.get("city")
        assert city.messages == ("message-2", "message-3") and city.excerpt is None
        assert "message-2" in memory.why("city").message and "message-1" not in memory.why("city").message
        memory.update("city", importance=0.9)
        assert memory.get("city").messages == ("message-2", "message-3"), "what is not given stays"
        memory.update("city", messages=["message-4"])
        assert memory.get("city").messages == ("message-4",)
        memory.update("city", "Kyiv")
        assert memory.get("city").messages == (), "what supported the old value does not support the new one"
        with pytest.raises(InvalidInputError):
            memory.update("city", "Rome", messages="message-6")

    def test_P1_what_is_not_sure_is_noted_on_the_day_it_is_about(self, memory: Memory, clock: FrozenClock) -> None:
        yesterday = clock().date() - timedelta(days=1)
        noted = memory.remember("Likes tea", confidence=0.5, day=yesterday)
        assert isinstance(noted, Demoted) and f"uncertain, noted for {yesterday}: " in noted.message
        memory.remember("Likes rum", durability="daily", day=yesterday.isoformat())
        memory.remember("Likes ale", durability="daily", day="2999-01-01")
        with pytest.raises(InvalidInputError, match="too long ago"):
            memory.remember("Likes gin", durability="daily", day=clock().date() - timedelta(days=900))
        assert noted.record.kind == "fact" and noted.record.tier == str(yesterday)
        days = {entry.content: entry.day for entry in memory.read(kind="daily") if isinstance(entry, DailyEntry)}
        assert days == {"Likes rum": yesterday, "Likes ale": date(2999, 1, 1)}
        assert [one.content for one in memory.read(kind="daily", key=str(yesterday))] == ["Likes rum"]
        assert "- Likes tea\n- Likes rum\n" in memory.daily(yesterday)
        with pytest.raises(InvalidInputError):
            memory.remember("Likes tea", day="yesterday")

    def test_G3_a_host_may_report_as_often_as_it_likes(self, memory: Memory, clock: FrozenClock) -> None:
        first = memory.report("save", id="update 7", title="Rust")
        clock.tick(hours=1)
        second = memory.report("save", id="update 7", title="Go")
        assert isinstance(first, Reported) and isinstance(second, Reported)
        assert (first.fresh, first.message) == (True, "Reported: save, Rust")
        assert (second.fresh, second.message) == (False, "Already reported: save, Rust")
        assert second.interaction == first.interaction and memory.interactions() == [first.interaction]
        progress: list[tuple[int, int]] = []
        events: list[dict[str, object]] = [
            {"kind": "read", "id": f"{n % 1500}", "item": f"post:{n}"} for n in range(2500)
        ]
        outcomes = memory.report_many(iter(events), progress=lambda done, total: progress.append((done, total)))
        assert sum(isinstance(outcome, Reported) and outcome.fresh for outcome in outcomes) == 1500
        assert [reported(outcome).item for outcome in outcomes] == [f"post:{n % 1500}" for n in range(2500)]
        assert progress == [(1000, 2500), (2000, 2500), (2500, 2500)] and len(memory.interactions()) == 1501
        again = memory.report_many(memory.interactions())
        assert len(again) == 1501 and not any(isinstance(outcome, Reported) and outcome.fresh for outcome in again)
        assert memory.report_many([]) == []

    def test_G3_many_reports_are_stored_together_or_not_at_all(self, memory: Memory) -> None:
        with pytest.raises(InvalidInputError, match=r"events\[1\]: kind: 'sve' is not one of delivery, read") as raised:
            memory.report_many([{"kind": "save", "title": "Rust"}, {"kind": "sve", "title": "Rust"}])
        assert raised.value.field == "events[1]" and not memory.exists
        for wrong in ({"kind": "save", "titel": "Rust"}, {"title": "x"}, ["save"], None, {"kind": "save", 1: 2}):
            with pytest.raises(InvalidInputError, match=r"events\[0\]"):
                memory.report_many([wrong])  # type: ignore[list-item]
        with memory.batch() as batch:
            batch.remember("Likes tea")
            assert reported(batch.report("save", title="Rust")) in batch.interactions()
            batch.note_run(extraction_run("run-1"))
            with pytest.raises(StoreError, match="batch"):
                memory.report("save", title="Go")
        with pytest.raises(RuntimeError), memory.batch() as batch:
            batch.report("save", title="Go")
            batch.note_run(extraction_run("run-2", 13))
            raise RuntimeError
        assert [one.title for one in memory.interactions()] == ["Rust"] and len(memory.runs()) == 1

    @pytest.mark.everyday(8)
    @pytest.mark.parametrize(
        ("field", "wrong"),
        [
            ("kind", {"kind": "like"}),
            ("kind", {"kind": None}),
            ("at", {"at": "2026-02-12T09:35:01Z"}),
            ("at", {"at": "2026-02-12T09:30:00"}),
            ("at", {"at": datetime(2026, 2, 12)}),
            ("at", {"at": "yesterday"}),
            ("at", {"at": 1770888600}),
            ("id", {"id": "x" * 201}),
            ("id", {"id": ""}),
            ("title", {"title": "x" * 501}),
            ("title", {"title": "a\nb"}),
            ("title", {"title": "a\x00b"}),
            ("title", {"title": None}),
            ("item", {"item": "a\x1bb"}),
            ("value", {"value": "x" * 201}),
            ("value", {"kind": "reaction"}),
            ("value", {"kind": "command"}),
            ("text", {"text": "x" * 20_001}),
            ("text", {"text": "\ud800"}),
            ("topics", {"topics": "rust"}),
            ("topics[1]", {"topics": ["rust", 3]}),
            ("session", {"session": 7}),
            ("metadata", {"metadata": {"at": object()}}),
            ("metadata", {"metadata": [1]}),
        ],
    )
    def test_G3_what_cannot_be_is_not_reported(self, memory: Memory, field: str, wrong: dict[str, object]) -> None:
        with pytest.raises(InvalidInputError) as raised:
            memory.report(**({"kind": "save", "title": "Rust"} | wrong))  # type: ignore[arg-type]
        assert raised.value.field == field and not memory.exists

    def test_P7_while_paused_nothing_is_reported(self, app: Recollect, memory: Memory) -> None:
        memory.report("save", title="Rust")
        for incognito in (False, True):
            memory.pause(incognito=incognito)
            reason = "incognito" if incognito else "paused"
            for outcome in (
                memory.report("save", title="Go"),
                *memory.report_many([{"kind": "read", "item": "1"}] * 2),
            ):
                assert isinstance(outcome, Refused) and outcome.reason == reason
            assert len(memory.interactions()) == (0 if incognito else 1), "incognito recalls nothing either"
            memory.resume()
        assert [one.title for one in memory.interactions()] == ["Rust"]
        memory.pause()
        memory.note_run(extraction_run("run-1", status="failed"))  # a run that a pause ended is noted all the same
        assert len(memory.runs()) == 1
        with memory.batch() as batch:
            assert isinstance(batch.report("save", title="Go"), Refused)
            batch.resume()
            assert isinstance(batch.report("save", title="Go"), Reported)

    def test_P5_secrets_in_a_report_are_masked(self, memory: Memory) -> None:
        key, card = "sk-proj-" + "4f9aXb72Lq" * 3, "4111 1111 1111 1111"
        stored = reported(
            memory.report(
                "save",
                id="4111111111111111",
                item=f"https://anna:hunter22@example.org/{key}",
                title=f"The key is {key}",
                value=key,
                topics=[key, "rust"],
                text=f"pay with {card}",
                metadata={"deep": [{"key": key}]},
            )
        )
        for text in (repr(stored), repr(memory.interactions())):
            assert key not in text and card not in text and "hunter22" not in text
        assert stored.title == "The key is [API key removed]" and stored.topics[1] == "rust"
        assert reported(memory.report("read", item="4111111111111111")).item == "4111111111111111", "an id is no card"
        run = memory.note_run(extraction_run("run-1", status="failed", error=f"used {key}", details={"key": key}))
        assert key not in repr(run) and key not in repr(memory.runs())

    def test_G3_runs_are_noted_by_day(self, app: Recollect, memory: Memory, clock: FrozenClock) -> None:
        assert memory.runs() == [] and not memory.exists
        first = memory.note_run(extraction_run("run-1", status="running"))
        done = replace(first, status="completed", interactions_processed=3, duration_ms=1500, tier="rules")
        assert memory.note_run(done) == done and memory.runs() == [done] and memory.history() == []
        later = memory.note_run(
            extraction_run("run-2", 13, status="failed", error=" \x00out of tokens\x1b" + "!" * 5000)
        )
        assert later.error is not None and later.error.startswith("out of tokens") and len(later.error) == 2000
        assert memory.runs() == [later, done] and memory.runs(limit=1) == [later]
        assert memory.runs(kind="batch") == [later, done] and memory.runs(kind="discussion") == []
        assert memory.runs(since="2026-02-13") == [later] and memory.runs(limit=None, since=date(2026, 2, 14)) == []
        elsewhere = app.user("u2").note_run(extraction_run("run-3", 14))
        assert app.runs() == [("u2", elsewhere), ("u1", later), ("u1", done)] and app.runs(limit=1)[0][0] == "u2"

    @pytest.mark.everyday(5)
    @pytest.mark.parametrize(
        "wrong",
        [
            {"id": ""},
            {"day": "tomorrow"},
            {"started_at": "now"},
            {"status": "done"},
            {"kind": "x" * 201},
            {"kind": "a\nb"},
            {"interactions_processed": -1},
            {"memories_written": 1.5},
            {"memories_updated": True},
            {"tokens_used": 10**13},
            {"duration_ms": "1"},
            {"error": 5},
            {"tier": ""},
            {"details": {1: 2}},
        ],
    )
    def test_G3_no_impossible_run_is_noted(self, memory: Memory, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidInputError) as raised:
            memory.note_run(replace(extraction_run("run-1"), **wrong))
        assert raised.value.field == next(iter(wrong)) and not memory.exists
        with pytest.raises(InvalidInputError):
            memory.note_run({"id": "run-1"})  # type: ignore[arg-type]

    def test_R7_clear_takes_interactions_and_runs_along(self, app: Recollect, memory: Memory) -> None:
        memory.report("save", title="Rust")
        assert memory.clear().receipt.places["interactions"] == 1 and memory.interactions() == []
        memory.remember("Likes tea")
        memory.report("save", title="Rust")
        memory.report("save", title="Go")
        memory.note_run(extraction_run("run-1", status="completed"))
        app.user("u2").report("save", title="Zig")
        memory.erase_topic("tea")
        assert len(memory.interactions()) == 2
        places = memory.clear().receipt.places
        assert places["interactions"] == 2 and places["runs"] == 1
        assert memory.interactions() == [] and memory.runs() == [] and len(app.user("u2").interactions()) == 1
        assert not {"interactions", "runs"} & memory.clear().receipt.places.keys()
        app.erase_user("u2")
        assert app.user("u2").interactions() == [] and not app.user("u2").exists

    # keeping

    def test_R6_old_interactions_are_removed_by_upkeep(self, memory: Memory, clock: FrozenClock) -> None:
        memory.report("save", id="old", title="Rust", at="2026-02-12T09:29:59Z")
        memory.report("save", id="new", title="Rust")
        memory.note_run(extraction_run("run-1"))
        assert memory.upkeep().interactions == 0
        clock.tick(days=90)
        assert memory.upkeep(dry_run=True).interactions == 1 and len(memory.interactions()) == 2
        report = memory.upkeep()
        assert (report.interactions, report.expired) == (1, {}) and [o.id for o in memory.interactions()] == ["new"]
        runs = [run.id for run in memory.runs()]
        assert "run-1" in runs and len(runs) == 2  # the other one learned from what was removed

    def test_R6_old_tool_calls_are_removed_by_upkeep(self, memory: Memory, clock: FrozenClock) -> None:
        memory.remember("Likes tea")
        log(memory, tool_call("call-1"), tool_call("call-2", 1))
        clock.tick(days=90)
        assert memory.upkeep().calls == 0
        clock.tick(seconds=60)
        assert memory.upkeep(dry_run=True).calls == 1 and len(memory.calls()) == 2
        report = memory.upkeep()
        assert (report.calls, report.expired) == (1, {}) and [call.id for call in memory.calls()] == ["call-2"]

    def test_R6_daily_entries_expire(self, memory: Memory, clock: FrozenClock) -> None:
        memory.jot("Read 6 posts")
        memory.remember("Likes tea")
        clock.tick(days=90)
        assert memory.upkeep().expired == {} and "Read 6" in memory.daily("2026-02-12")
        clock.tick(days=1)
        assert texts(memory) == ["Likes tea"]
        assert memory.upkeep().expired == {"daily": 1}
        assert memory.daily("2026-02-12") == "" and "Read 6" not in repr(memory.history())
        assert memory.read(kind="daily", status="all") == [] and texts(memory) == ["Likes tea"]

    def test_R6_messages_expire_unless_important(self, memory: Memory, clock: FrozenClock) -> None:
        memory.say("before there was a retention", session="s")
        memory._user_memory.config = replace(memory.config, message_retention_days=30)
        ids = [written(memory.say(f"message {n}", session="s", said_at="2020-01-01")).id for n in range(3)]
        memory.mark_important([ids[1]], "high", reason="a promise")
        memory.mark_important([ids[2]], "critical")
        clock.tick(days=31)
        assert memory.upkeep().expired == {"message": 2}  # the one stored before there was a retention, too
        assert {m.id for m in memory.read(kind="message")} == {*ids[1:]}
        clock.tick(days=30)
        assert memory.upkeep().expired == {"message": 1}
        clock.tick(days=300)
        assert memory.upkeep().expired == {} and {m.id for m in memory.read(kind="message")} == {ids[2]}

    def test_F6_pruning_moves_the_least_valuable_out_of_the_file_and_loses_nothing(
        self, app: Recollect, clock: FrozenClock
    ) -> None:
        memory = app.user("long")
        pinned = written(memory.remember("Pinned at the very beginning of everything", pinned=True, confidence=0.7))
        weak = written(memory.remember("Weak rumour about an ancient bicycle trip", confidence=0.7, importance=0.0))
        loved = written(memory.remember("Weak rumour about a famous lighthouse keeper", confidence=0.7, importance=0.0))
        clock.tick(days=200)
        assert memory.search("lighthouse")[0].record.id == loved.id
        towns, sights = (260, 0) if IS_LONG else (70, 27)
        for n in range(towns):
            seen = " ".join(f"sight{n * 7919 + number}" for number in range(sights))
            memory.remember(
                f"Visited town number {n} with companion {n * 7919 % 1009} in year {1600 + n} {seen}", confidence=0.9
            )
            assert len(memory.show().split()) <= 2000
        assert pinned.text in memory.show() and weak.text not in memory.show()
        assert memory.get(weak.id).tier == "archive" and memory.get(weak.id).status == "active"
        assert memory.search("ancient bicycle")[0].record.id == weak.id
        assert len(memory.read(kind="fact")) == towns + 3
        order = [e.record_id for e in memory.history() if e.op == "prune"]
        assert order.index(weak.id) == 0 and (loved.id not in order or order.index(loved.id) > 0)
        assert memory.verify() == []

    # working together

    def test_batch_is_all_or_nothing(self, memory: Memory) -> None:
        with memory.batch() as together:
            together.remember("Likes tea", key="drink")
            assert isinstance(together.remember("likes tea.", key="drink"), Duplicate)
            assert together.get("drink").content == "Likes tea" and together.search("tea")
            assert len(together.history()) == len(together.read()) == 1
            together.note("A note of the batch")
        assert len(memory.read()) == 2
        with pytest.raises(RuntimeError), memory.batch() as together:
            together.remember("Likes coffee")
            raise RuntimeError
        assert len(memory.read()) == 2 and "coffee" not in memory.show()
        assert isinstance(memory.remember("Likes coffee"), Written)
        with memory.batch() as together, pytest.raises(StoreError, match="batch"):
            memory.remember("Likes water")

    def test_a_write_that_could_not_begin_or_was_rolled_back_changes_nothing_that_is_known(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        memory.remember("Likes tea")
        with monkeypatch.context() as patched:

            def busy() -> None:
                raise StoreError("busy")

            patched.setattr(memory._user_memory.user, "write", busy)
            with pytest.raises(StoreError, match="busy"):
                memory.remember("Likes coffee")
        assert memory.search("tea") and isinstance(memory.remember("likes tea"), Duplicate)
        with pytest.raises(RuntimeError), memory.batch() as together:
            together.erase(memory.search("tea")[0].record.id)
            raise RuntimeError
        assert memory.search("tea")
        memory.forget(memory.search("tea")[0].record.id)
        assert isinstance(memory.remember("Likes tea", source="tool:write_memory"), Written)

    def test_many_threads_on_one_user_lose_nothing(self, app: Recollect) -> None:
        errors: list[BaseException] = []

        def work(n: int) -> None:
            try:
                memory = app.user("shared")
                for i in range(5):
                    memory.remember(f"Worker {n} saw the number {n * 100 + i}")
                    memory.search(f"worker {n}")
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        memory = app.user("shared")
        assert len(memory.read()) == 40 and memory.verify() == []

    def test_R4_one_user_never_sees_another(self, app: Recollect) -> None:
        app.user("a").remember("Likes tea")
        app.user("b").remember("Likes coffee")
        secret = app.user("a").read()[0]
        b = app.user("b")
        assert texts(b) == ["Likes coffee"] and b.search("tea") == []
        for verb in (b.get, b.why, b.forget, b.history, b.erase):
            with pytest.raises(NotFoundError):
                verb(secret.id)
        assert isinstance(b.remember("Likes tea"), Written)
        assert list(app.users()) == ["a", "b"]

    def test_integers_are_users_too(self, app: Recollect) -> None:
        app.user(12345).remember("Likes tea")
        assert texts(app.user("12345")) == ["Likes tea"]

    def test_reading_creates_nothing(self, app: Recollect) -> None:
        memory = app.user("nobody")
        assert memory.read() == [] and memory.search("x") == [] and memory.history() == [] and memory.daily() == ""
        assert "# User Memory" in memory.show()
        assert not memory.exists and list(app.users()) == []
