"""The extraction agent: a model with tools, whose changes are staged, supported by what was said, and stored once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Memory, Recollect
from recollect.agents.conclude import conclude
from recollect.agents.evidence import Evidence
from recollect.agents.extract import Extracted, extract
from recollect.agents.gather_interactions import Utterance
from recollect.agents.llm_extractor import by_model
from recollect.agents.models import ModelLimits, open_model
from recollect.testing import FrozenClock, MemoryStore
from recollect.testing.models import Call, Fail, ModelServer, Say

NOON = datetime(2026, 2, 12, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NOON)


@pytest.fixture
def app(tmp_path: Path, clock: FrozenClock) -> Iterator[Recollect]:
    with recollect.open(tmp_path, clock=clock) as app:
        yield app


@pytest.fixture
def memory(app: Recollect) -> Memory:
    return app.user("u1")


def write(key: str, value: str, **more: Any) -> Call:
    about = {"category": "personal_context", "durability": "durable", "confidence": 0.95}
    return Call("write_memory", {"key": key, "value": value} | about | more)


def night(
    memory: Memory, clock: FrozenClock, *script: Any, dry_run: bool = False, **options: Any
) -> tuple[Extracted, list[str], ModelServer]:
    """Let a model work through a script. Return the run, what the tools answered, and the server."""
    clock.tick(hours=1)
    with ModelServer([*script, Say("Done.")]) as server, open_model(f"{server.openai_url}#m", key="k") as model:
        done = extract(memory, clock().date(), extractor=by_model(model, **options), dry_run=dry_run, clock=clock)
    answers = [result.text for request in server.requests for result in request.tool_results]
    return done, answers, server


def facts(memory: Memory) -> list[str]:
    return sorted(fact.text for fact in memory.read(kind="fact"))


def test_C4_what_the_agent_writes_its_next_search_finds_and_one_run_stores(memory: Memory, clock: FrozenClock) -> None:
    memory.say("We rent a wooden house by the fjord.", session="s")
    script = [write("home", "Rents a wooden house"), Call("search_memory", {"query": "house"})]
    script += [Call("update_memory", {"key": "home", "value": "Rents a wooden house by the fjord"})]
    done, answers, server = night(memory, clock, *script)
    assert answers[0].startswith("✓") and "Rents a wooden house" in answers[1] and answers[2].startswith("✓ Memory up")
    assert facts(memory) == ["home: Rents a wooden house by the fjord"] and server.problems == []
    assert done.run is not None
    assert {entry.run for entry in memory.history() if entry.record_id.startswith("fact-")} == {done.run.id}
    home = memory.get("home")
    assert home.source == "discussion:s" and home.messages and home.excerpt == "We rent a wooden house by the fjord."
    memory.undo(done.run.id)
    assert facts(memory) == [] and memory.verify() == []


def test_G3_a_dry_run_of_the_agent_stores_nothing(memory: Memory, clock: FrozenClock) -> None:
    memory.say("We rent a wooden house.", session="s")
    before = memory.history(), memory.show()
    done, answers, _ = night(memory, clock, write("home", "Rents a wooden house"), dry_run=True)
    assert answers[0].startswith("✓") and done.kept.written == 1
    assert (memory.history(), memory.show(), memory.runs()) == (*before, [])


def test_G3_a_model_that_fails_halfway_loses_nothing_of_what_it_did(memory: Memory, clock: FrozenClock) -> None:
    memory.say("We rent a wooden house.", session="s")
    memory.say("I work at Stripe.", session="s")
    done, _, _ = night(memory, clock, write("home", "Rents a wooden house"), Fail(401, "no"))
    assert facts(memory) == ["company: Stripe", "home: Rents a wooden house"]
    assert done.run is not None and done.run.details["problem"] == "rejected: the rest by rules"


@pytest.mark.everyday(3)
@pytest.mark.parametrize(
    "call",
    [
        write("city", "Lives in Paris with two cats"),
        write("home", "Rents a wooden house in Norway"),
        write("home", "Rents 3 wooden houses"),
        write("interest", "Interested in boats", category="preference"),
        Call("update_memory", {"key": "home", "value": "Owns a stone castle"}),
        Call("delete_memory", {"key": "pet"}),
    ],
    ids=str,
)
def test_G3_P8_what_nobody_said_is_refused_and_told(memory: Memory, clock: FrozenClock, call: Call) -> None:
    memory.remember("Has a dog called Rex", key="pet", category="personal_context")
    clock.tick(hours=1)
    memory.say("We rent a wooden house, the three of us.", session="s")
    memory.say("You live in Paris and own a stone castle with two cats.", session="s", role="assistant")
    _, answers, _ = night(memory, clock, call)
    assert answers[0].startswith("Not done"), answers
    assert facts(memory) == ["pet: Has a dog called Rex"] and "Paris" not in memory.daily()


def test_G3_F4_what_the_person_wrote_stays(memory: Memory, clock: FrozenClock, tmp_path: Path) -> None:
    memory.remember("A house", key="home", category="personal_context")
    file = tmp_path / "u1" / "MEMORY.md"
    file.write_text(file.read_text("utf-8").replace("A house", "A wooden house"), "utf-8")
    memory.show()
    clock.tick(hours=1)
    memory.say("Our wooden house got a new roof.", session="s")
    _, answers, _ = night(
        memory, clock, Call("update_memory", {"key": "home", "value": "Wooden house with a new roof"})
    )
    assert answers == ["Not done: the person wrote this entry themselves or said it later, so it stays."]
    assert facts(memory) == ["Home: A wooden house"]


def test_G3_an_entry_is_deleted_when_the_person_says_so(memory: Memory, clock: FrozenClock) -> None:
    memory.remember("Skeptical about crypto", key="opinion_on_crypto", category="personal_context")
    clock.tick(hours=1)
    memory.say("Please drop my opinion on crypto.", session="s")
    _, answers, _ = night(memory, clock, Call("delete_memory", {"key": "opinion_on_crypto"}))
    assert answers[0].startswith("✓") and facts(memory) == []


def test_C4_a_model_that_answers_in_json_instead_of_calling_is_understood(memory: Memory, clock: FrozenClock) -> None:
    memory.say("We rent a wooden house.", session="s")
    entry = {"category": "personal_context", "key": "home", "value": "Rents a wooden house", "action": "add"}
    update = {"memory_updates": [entry | {"confidence": 0.9, "source": "x"}], "summary": "Learned where they live"}
    done, _, _ = night(memory, clock, Say(f"Here it is:\n```json\n{json.dumps(update)}\n```"))
    assert facts(memory) == ["home: Rents a wooden house"]
    assert done.run is not None and done.run.details["summary"] == "Learned where they live"


def test_C4_the_agent_is_bounded(memory: Memory, clock: FrozenClock) -> None:
    memory.say("We rent a wooden house.", session="s")
    calls = [Call("search_memory", {"query": "house"})] * 3
    done, answers, _ = night(memory, clock, *calls, limits=ModelLimits(calls=2, turns=9))
    assert len(answers) == 2 and done.run is not None and "limit of calls" in done.run.details["remark"]


def test_G3_a_model_claims_no_source_that_is_not_its_own(memory: Memory, clock: FrozenClock) -> None:
    memory.say("We rent a wooden house.", session="s")
    night(memory, clock, write("home", "Rents a wooden house", source="explicit"))
    assert memory.get("home").source == "discussion:s"


def test_G3_what_a_run_changed_is_in_the_note_and_goes_with_the_fact(memory: Memory, clock: FrozenClock) -> None:
    memory.say("I work at Stripe.", session="s")
    clock.tick(hours=1)
    extract(memory, clock().date(), clock=clock)
    assert '- Added work context: "Company: Stripe"' in memory.daily()
    assert [hit.record.kind for hit in memory.search("Stripe")] == ["fact"]
    assert "Added" not in memory.context("Stripe")
    memory.erase("company")
    assert "Stripe" not in memory.daily() and "Stripe" not in memory.show() and memory.verify() == []


def test_G5_a_discussion_that_goes_on_adds_what_is_new_below_it(memory: Memory, clock: FrozenClock) -> None:
    memory.report("discussion", title="PostgreSQL 18", session="s")
    memory.say("I think PostgreSQL is good enough for most use cases.", session="s")
    conclude(memory, "s", clock=clock)
    clock.tick(seconds=60)
    memory.say("I think vacuum is a weak point of it.", session="s")
    conclude(memory, "s", clock=clock)
    note = memory.daily()
    assert note.count("Discussed") == 1 and note.count("## Discussions") == 1
    assert '\n  - Opinion: "I think PostgreSQL is good enough' in note
    assert "Reading Activity" not in note


SAID = [
    ("I moved from Lyon to Porto with my partner last spring.", "Lives in Porto with partner", True),
    ("I moved from Lyon to Porto with my partner last spring.", "Married to a dentist", False),
    ("Mostly I cook vegetarian, fish on Fridays.", "Cooks vegetarian, with fish on Fridays", True),
    ("Mostly I cook vegetarian, fish on Fridays.", "Allergic to nuts", False),
    ("My manager is called Priya and she is great.", "Manager is Priya", True),
    ("My manager is called Priya and she is great.", "Manager is Arjun", False),
    ("We have 12 people on the data team.", "Data team of 12 people", True),
    ("We have 12 people on the data team.", "Data team of 20 people", False),
    ("Should I move to Berlin?", "Lives in Berlin", False),
    ('My boss wrote "I am moving to Berlin next year, for good".', "Moving to Berlin", False),
    ("Я живу у Львові і працюю вчителькою.", "Живе у Львові, вчителька", True),
    ("Я живу у Львові і працюю вчителькою.", "Живе в Одесі", False),
    ("Ich arbeite als Lehrer in Köln.", "Lehrer in Köln", True),
    ("Ich arbeite als Lehrer in Köln.", "Arzt in Berlin", False),
    ("我在北京当老师", "北京的老师", True),
    ("我在北京当老师", "上海的医生", False),
]


@pytest.mark.parametrize(("said", "claim", "supported"), SAID)
def test_G3_P8_a_claim_is_supported_by_what_was_said_or_not(said: str, claim: str, supported: bool) -> None:
    memory = recollect.open(MemoryStore()).user("u1")
    evidence = Evidence(memory, [Utterance(said, NOON, "discussion:s")], NOON)
    assert (evidence.stated(claim) is not None) is supported
