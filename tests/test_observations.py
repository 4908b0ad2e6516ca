"""The suite `observations` and its scratchpad, as seed D has them."""

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
    return caller(app, "agent", "observations")


def test_T3_an_observation_is_remembered_and_retrieved_by_id(call: Caller) -> None:
    told = call(
        "remember_observation", content="PostgreSQL version is 15.2", category="finding", source="GOAL:check-database"
    )
    assert told["status"] == "success"
    item = call("retrieve_by_id", id=told["id"])
    assert {name: item[name] for name in ("id", "content", "category", "source")} == {
        "id": told["id"],
        "content": "PostgreSQL version is 15.2",
        "category": "finding",
        "source": "GOAL:check-database",
    }
    assert item["created_at"].endswith("Z")
    assert call.result("retrieve_by_id", id="observation-nothing").status == "error"


def test_T3_findings_insights_and_lessons_at_once(call: Caller) -> None:
    told = call(
        "remember_fil",
        findings=["API uses OAuth2", "Rate limit is 100/min"],
        insights=["REST is better for this use case"],
        lessons=["Always check rate limits first"],
        source="GOAL:api-analysis",
    )
    assert told["status"] == "success" and len(told["ids"]) == 4
    kinds = [call("retrieve_by_id", id=one)["category"] for one in told["ids"]]
    assert kinds == ["finding", "finding", "insight", "lesson"]
    fil = call("recall_fil", query="API rate limits", limit_per_category=5)
    assert fil["findings"][0] == "Rate limit is 100/min" and fil["lessons"] == ["Always check rate limits first"]
    assert call("recall_by_category", query="rate", category="finding", limit=5) == ["Rate limit is 100/min"]
    again = call("remember_fil", findings=["API uses OAuth2"])
    assert again["status"] == "success" and again["ids"] != told["ids"][:1], "observations are only ever appended"


def test_T3_all_are_stored_or_none(call: Caller) -> None:
    result = call.result("remember_fil", findings=["The API answers in JSON", "x" * 300_000])
    assert result.status == "invalid"
    assert call.suite.memory.read() == []
    assert call.result("remember_fil").status == "error"


def test_T3_recall_mixes_categories_and_keeps_to_a_score(call: Caller) -> None:
    call("remember_fil", findings=["The database is PostgreSQL"], insights=["The database should be tuned"])
    found = call("recall", query="database configuration", limit=10, min_score=0.1)
    assert {one["category"] for one in found} == {"finding", "insight"}
    assert all(0.1 <= one["score"] <= 1 for one in found)
    assert call("recall", query="database", min_score=1) == []
    assert call("recall", query="zebra") == []


def test_T3_recall_survives_a_restart(call: Caller, app: recollect.Recollect, tmp_path: Path) -> None:
    call("remember_observation", content="Avoid library X: it lacks TypeScript support", category="lesson")
    app.close()
    again = caller(recollect.open(tmp_path), "agent", "observations")
    assert again("recall_by_category", query="TypeScript library", category="lesson") == [
        "Avoid library X: it lacks TypeScript support"
    ]


def test_T3_the_scratchpad_of_the_seed(call: Caller) -> None:
    call("scratchpad_set", key="current_task", value="implement-api")
    call("scratchpad_set", key="api.endpoint", value="https://api.example.com")
    assert call("scratchpad_get", key="api.endpoint")["value"] == "https://api.example.com"
    assert call("scratchpad_list", prefix="api.") == ["api.endpoint"]
    assert call("scratchpad_list") == ["api.endpoint", "current_task"]
    assert call("scratchpad_search", query="example.com") == [
        {"key": "api.endpoint", "value": "https://api.example.com"}
    ]
    assert call("scratchpad_search", query="CURRENT")[0]["value"] == "implement-api"
    call("scratchpad_set", key="current_task", value="test-api")
    assert call("scratchpad_get", key="current_task")["value"] == "test-api"
    assert call("scratchpad_delete", key="current_task")["status"] == "success"
    assert call.result("scratchpad_get", key="current_task").status == "error"
    assert call.result("scratchpad_delete", key="current_task").status == "error"
    call("scratchpad_set", key="current_task", value="again")
    assert call("scratchpad_get", key="current_task")["value"] == "again"


def test_T3_the_scratchpad_is_not_recalled(call: Caller) -> None:
    call("scratchpad_set", key="zebra", value="zebra crossing")
    assert call("recall", query="zebra") == []


def test_T3_nothing_is_stored_if_one_was_erased(call: Caller) -> None:
    memory = call.suite.memory
    memory.remember("Takes zoloftium daily", key="pill")
    memory.erase("pill")
    result = call.result("remember_fil", findings=["Found one", "Takes zoloftium daily"], lessons=["Lesson two"])
    assert result.status == "refused" and "findings[1]" in result.text and "Nothing was stored" in result.text
    assert memory.read() == []
    assert call.result("remember_fil", findings=["Found one"], lessons=["Lesson two"]).status == "ok"


def test_the_source_of_findings_insights_and_lessons_may_be_the_fourth_argument(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    memory.remember_fil(["API uses OAuth2"], ["REST is better here"], ["Check rate limits first"], "GOAL:api-analysis")
    assert {one.source for one in memory.read(kind="observation")} == {"GOAL:api-analysis"}
