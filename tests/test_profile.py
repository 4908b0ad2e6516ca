"""The suite `profile`: what the seeds plan for later."""

from __future__ import annotations

from pathlib import Path

import pytest

import recollect
from tests.tooling import Caller, caller


@pytest.fixture
def app(tmp_path: Path) -> recollect.Recollect:
    return recollect.open(tmp_path)


@pytest.fixture
def call(app: recollect.Recollect) -> Caller:
    return caller(app, 7, "facts", "profile")


def test_T5_suggest_merge_finds_what_says_nearly_the_same(call: Caller) -> None:
    memory = call.suite.memory
    memory.remember("Plays the guitar in a band", key="hobby")
    memory.remember("Plays guitar in a small band on weekends", key="music")
    memory.remember("Lives in Lviv", key="city")
    told = call("suggest_merge")
    assert told["count"] == 1
    (suggestion,) = told["suggestions"]
    assert {fact["key"] for fact in suggestion["facts"]} == {"hobby", "music"}
    merged = call(
        "merge_facts", fact_ids=suggestion["fact_ids"], merged_value="Plays guitar in a band", merged_confidence=1
    )
    assert merged["status"] == "success"
    assert call("suggest_merge")["count"] == 0


def test_T5_a_summary_keeps_to_its_length_and_takes_what_matters(call: Caller) -> None:
    memory = call.suite.memory
    assert call("generate_profile_summary")["summary"] == ""
    memory.remember("Staff engineer at Stripe", key="role", category="work_context", importance=0.9)
    memory.remember("Prefers short answers", category="preference")
    for number in range(100):
        memory.remember(f"Once read book number {number} about {number * 31} things", importance=0.1)
    told = call("generate_profile_summary", max_words=40)
    assert told["facts"] == 102 and 2 < told["told"] < 10
    assert len(told["summary"].split()) <= 40
    assert "Work: role: Staff engineer at Stripe." in told["summary"]
    assert "Preferences: Prefers short answers." in told["summary"]


def test_T5_relationships(call: Caller) -> None:
    told = call("remember_relationship", person="Oksana", relation="sister", confidence=0.9)
    assert told["status"] == "success"
    call("remember_relationship", person="Taras", relation="colleague at Stripe", confidence=0.8)
    assert call("remember_relationship", person="Oksana", relation="Sister", confidence=1)["reason"] == "duplicate"
    assert call("remember_relationship", person="Oksana", relation="cousin", confidence=1)["reason"] == "conflict"
    people = call("recall_relationships")["relationships"]
    assert {(one["person"], one["relation"]) for one in people} == {
        ("Oksana", "sister"),
        ("Taras", "colleague at Stripe"),
    }
    assert [one["relation"] for one in call("recall_relationships", person="oksana")["relationships"]] == ["sister"]
    assert [one["person"] for one in call("recall_relationships", person="stripe")["relationships"]] == ["Taras"]
    assert call.suite.memory.get("oksana").type == "relationship"
    assert "- Oksana: sister" in call.suite.memory.show()
    facts = call("recall_facts", fact_types=["relationship"])
    assert facts["count"] == 2


def test_T5_facts_of_other_chats_need_consent(app: recollect.Recollect) -> None:
    fact = {"fact_type": "personal", "confidence": 1}
    family = caller(app, 7, "facts", "profile", chat="family")
    work = caller(app, 7, "facts", "profile", chat="work")
    family("remember_fact", fact_key="illness", fact_value="has a heart condition", **fact)
    app.user(7).remember("Lives in Lviv", key="city")
    assert {one["key"] for one in family("recall_facts")["facts"]} == {"illness", "city"}
    assert {one["key"] for one in work("recall_facts")["facts"]} == {"city"}
    assert work("recall_facts", search_query="heart condition")["count"] == 0
    refused = work.result("recall_facts_global", search_query="heart")
    assert refused.status == "refused" and "not consented" in refused.text
    app.user(7).consent("across_chats")
    assert work("recall_facts_global", search_query="heart")["count"] == 1
    app.user(7).consent("across_chats", False)
    assert work.result("recall_facts_global").status == "refused"
    assert [entry.op for entry in app.user(7).history()][-2:] == ["consent", "withdraw"]
