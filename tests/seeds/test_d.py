"""Seed D, observations, as its author would run it: one check for each sentence of D-observations.md that promises something.

Written from the seed and the documentation alone. A docstring quotes the sentence it checks; "Corrections" are those at
the end of the specification, which settle what the seed leaves open. The seed is in Go: its store is a memory here, its
methods are the tools of the suite "observations" and the verbs of a memory, in Python's spelling.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.agents.consolidate import TranscriptMessage as Said
from recollect.agents.consolidate import consolidate
from recollect.agents.models import open_model
from recollect.agents.observe import Observations, observe
from recollect.agents.observe import store_observations as remember
from recollect.testing import FrozenClock, MemoryStore
from recollect.testing.models import Call, Fail, Garbage, ModelRequest, ModelServer, Say, Turn
from recollect.tools import wire

NOW = datetime(2026, 2, 13, 12, 0, tzinfo=timezone.utc)
FINDINGS = ["API uses OAuth2", "Rate limit is 100/min"]
INSIGHTS = ["REST is better for this use case"]
LESSONS = ["Always check rate limits first"]
FIL = {"findings": FINDINGS, "insights": INSIGHTS, "lessons": LESSONS, "source": "GOAL:api-analysis"}
"""The batch of "Basic Observation Storage"."""
VERSION = {"content": "PostgreSQL version is 15.2", "category": "finding", "source": "GOAL:check-database"}
"""The single observation of "Basic Observation Storage"."""


@pytest.fixture(params=["folder", "in memory"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[recollect.Recollect]:
    """ "Single interface for testing (in-memory) and production (Bleve)": every check runs on both."""
    where = tmp_path / "memory" if request.param == "folder" else MemoryStore()
    with recollect.open(where, clock=FrozenClock(NOW)) as opened:
        yield opened


@pytest.fixture
def memory(app: recollect.Recollect) -> recollect.Memory:
    return app.user("agent")


@pytest.fixture
def tools(app: recollect.Recollect) -> recollect.Suite:
    return app.tools("agent", "observations")


def call(tools: recollect.Suite, name: str, **arguments: Any) -> Any:
    """What a tool answers, as a model would read it."""
    return json.loads(tools.call(name, arguments).text)


def observations(memory: recollect.Memory) -> list[tuple[str, str | None]]:
    return [(one.content, one.category) for one in memory.read(kind="observation")]


def hits_of(answer: Any) -> list[Any]:
    """The list of hits in the answer of recall, whatever is around it."""
    if isinstance(answer, list):
        return answer
    (found,) = [value for value in answer.values() if isinstance(value, list)]
    return list(found)


def texts_of(answer: Any) -> list[str]:
    """The list of texts in the answer of recall_by_category, whatever is around it."""
    return [one if isinstance(one, str) else str(one["content"]) for one in hits_of(answer)]


# Core types


def test_an_observation_has_the_fields_of_the_seed(memory: recollect.Memory, tools: recollect.Suite) -> None:
    """ "type Memory struct { ID "id"; Content "content"; Category "category"; Source "source"; CreatedAt "created_at" }"."""
    made = call(tools, "remember_observation", **VERSION)
    found = call(tools, "retrieve_by_id", id=made["id"])
    assert {name: found[name] for name in ("id", "content", "category", "source")} == {"id": made["id"], **VERSION}
    assert datetime.fromisoformat(found["created_at"]) == NOW
    record = memory.get(made["id"])
    assert isinstance(record, recollect.Observation)
    assert (record.content, record.category, record.source, record.created_at) == (*VERSION.values(), NOW)


@pytest.mark.parametrize("category", ["finding", "insight", "lesson"])
def test_the_three_categories_are_kept(memory: recollect.Memory, tools: recollect.Suite, category: str) -> None:
    """ "Category string `json:"category"` // "finding" | "insight" | "lesson""."""
    call(tools, "remember_observation", content="Something learned", category=category, source="GOAL:x")
    assert observations(memory) == [("Something learned", category)]


def test_another_category_is_an_error_that_names_the_three(memory: recollect.Memory, tools: recollect.Suite) -> None:
    """ "Category … "finding" | "insight" | "lesson"": nothing else."""
    result = tools.call("remember_observation", {"content": "A text", "category": "idea"})
    assert all(name in result.text for name in ("finding", "insight", "lesson"))
    assert observations(memory) == []


@pytest.mark.parametrize("source", ["GOAL:step-name", "session:xyz"])
def test_the_source_is_kept_as_it_is(memory: recollect.Memory, tools: recollect.Suite, source: str) -> None:
    """ "Source … // "GOAL:step-name", "session:xyz", etc."."""
    made = call(tools, "remember_observation", content="Something learned", category="finding", source=source)
    assert memory.get(made["id"]).source == source


def test_an_extracted_observation_has_the_fields_of_the_seed() -> None:
    """ "type Observation struct { Findings; Insights; Lessons; StepName; StepType }"."""
    found = Observations(findings=("a",), insights=("b",), lessons=("c",), step_name="deploy-api", step_type="GOAL")
    assert (found.findings, found.insights, found.lessons) == (("a",), ("b",), ("c",))
    assert (found.step_name, found.step_type) == ("deploy-api", "GOAL")


# Store interface, as tools


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("remember_observation", ["content", "category", "source"]),
        ("remember_fil", ["findings", "insights", "lessons", "source"]),
        ("retrieve_by_id", ["id"]),
        ("recall_by_category", ["query", "category", "limit"]),
        ("recall_fil", ["query", "limit_per_category"]),
        ("recall", ["query", "limit", "min_score"]),
        ("scratchpad_get", ["key"]),
        ("scratchpad_set", ["key", "value"]),
        ("scratchpad_list", ["prefix"]),
        ("scratchpad_search", ["query"]),
    ],
)
def test_each_method_of_the_store_is_a_tool_with_its_parameters(
    tools: recollect.Suite, name: str, parameters: list[str]
) -> None:
    """ "type Store interface": RememberObservation(content, category, source), RememberFIL(findings, insights, lessons,
    source), RetrieveByID(id), RecallByCategory(query, category, limit), RecallFIL(query, limitPerCategory), Recall(query,
    opts), Get(key), Set(key, value), List(prefix), Search(query)."""
    assert list(tools.schema(name)["properties"]) == parameters


def test_the_tools_package_can_use_memory(tools: recollect.Suite) -> None:
    """ "Bridges `memory.Store` to the tools package interface": RememberFIL and Recall(ctx, "query", 10)."""
    api = tools.functions()
    assert len(json.loads(api["remember_fil"](**FIL))["ids"]) == 4
    assert hits_of(json.loads(api["recall"](query="rate limit", limit=10)))


@pytest.mark.parametrize("format", ["openai", "responses", "anthropic", "gemini", "mcp"])
def test_the_tools_are_declared_for_every_provider(tools: recollect.Suite, format: Any) -> None:
    """ "Tools package can now use memory features"."""
    text = json.dumps(wire.declarations(tools, format))
    assert all(f'"{name}"' in text for name in ("remember_fil", "recall_fil", "recall_by_category", "scratchpad_set"))


# Usage patterns: basic observation storage


def test_remember_observation_returns_an_id(memory: recollect.Memory, tools: recollect.Suite) -> None:
    """ "id, _ := store.RememberObservation(ctx, "PostgreSQL version is 15.2", "finding", "GOAL:check-database")"."""
    made = call(tools, "remember_observation", **VERSION)
    assert memory.get(made["id"]).content == "PostgreSQL version is 15.2"


def test_the_verb_observe_does_the_same(memory: recollect.Memory) -> None:
    """ "RememberObservation(ctx, content, category, source string) (string, error)"."""
    outcome: Any = memory.observe("PostgreSQL version is 15.2", "finding", source="GOAL:check-database")
    assert outcome.done
    assert memory.get(outcome.record.id).content == "PostgreSQL version is 15.2"


def test_remember_fil_returns_an_id_for_each(memory: recollect.Memory, tools: recollect.Suite) -> None:
    """ "ids, _ := store.RememberFIL(ctx, []string{"API uses OAuth2", …}, …, "GOAL:api-analysis")"."""
    ids = call(tools, "remember_fil", **FIL)["ids"]
    assert [memory.get(one).content for one in ids] == [*FINDINGS, *INSIGHTS, *LESSONS]
    assert [memory.get(one).category for one in ids] == ["finding", "finding", "insight", "lesson"]
    assert {memory.get(one).source for one in ids} == {"GOAL:api-analysis"}


def test_remember_fil_takes_some_of_the_lists(memory: recollect.Memory, tools: recollect.Suite) -> None:
    """ "Findings []string `json:"findings,omitempty"`": each list may be missing."""
    ids = call(tools, "remember_fil", lessons=LESSONS, source="GOAL:api-analysis")["ids"]
    assert [memory.get(one).category for one in ids] == ["lesson"]


def test_remember_fil_is_a_verb(memory: Any) -> None:
    """ "RememberFIL(ctx, findings, insights, lessons []string, source string) ([]string, error)"."""
    made = memory.remember_fil(FINDINGS, INSIGHTS, LESSONS, source="GOAL:api-analysis")
    assert len(made) == 4
    wanted = [(text, "finding") for text in FINDINGS] + [(INSIGHTS[0], "insight"), (LESSONS[0], "lesson")]
    assert observations(memory) == wanted


def test_recall_fil_is_a_verb(memory: Any, tools: recollect.Suite) -> None:
    """ "fil, _ := store.RecallFIL(ctx, "API integration", 5)"; "fil.Findings", "fil.Insights", "fil.Lessons"."""
    call(tools, "remember_fil", **FIL)
    fil = memory.recall_fil("rate limit use case", 5)
    assert (fil.findings[0], list(fil.insights), list(fil.lessons)) == ("Rate limit is 100/min", INSIGHTS, LESSONS)


def test_recall_by_category_is_a_verb(memory: Any, tools: recollect.Suite) -> None:
    """ "RecallByCategory(ctx, query, category string, limit int) ([]string, error)"."""
    call(tools, "remember_fil", **FIL)
    assert list(memory.recall_by_category("rate limits", "lesson", 5)) == LESSONS


def test_retrieve_by_an_unknown_id_is_an_error_and_no_exception(tools: recollect.Suite) -> None:
    """ "RetrieveByID(ctx, id) (*ObservationItem, error)"."""
    result = tools.call("retrieve_by_id", {"id": "no-such-id"})
    assert result.status != "ok"
    assert "no-such-id" in result.text


def test_observations_are_append_only(memory: recollect.Memory, tools: recollect.Suite) -> None:
    """ "No history tracking; observations are append-only": a second finding leaves the first as it is."""
    first = call(tools, "remember_observation", **VERSION)
    second = call(tools, "remember_observation", **{**VERSION, "content": "PostgreSQL version is 16.1"})
    assert first["id"] != second["id"]
    assert memory.get(first["id"]).content == "PostgreSQL version is 15.2"
    assert len(observations(memory)) == 2


def test_the_same_observation_again_returns_an_id(memory: recollect.Memory, tools: recollect.Suite) -> None:
    """ "RememberObservation(…) (string, error)": an id and no error, also for what another step found before."""
    call(tools, "remember_observation", **VERSION)
    again = call(tools, "remember_observation", **{**VERSION, "source": "GOAL:check-again"})
    assert memory.get(again["id"]).content == VERSION["content"]


# technical text (Corrections C9)

TECHNICAL = [
    "API rate limit is 100/min",
    "Auth uses OAuth2",
    "REST is simpler than GraphQL for this use case",
    "Avoid library X - it lacks TypeScript support",
    "The config key is server.max_connections=100",
    "kubectl rollout restart fixes stale config",
    "pip install needs --break-system-packages on Debian 12",
    "Run `make test` before pushing, it also lints",
    "SELECT count(*) FROM orders takes 4 s without an index on created_at",
    "npm ci && npm run build must run in packages/web",
    "GET /v1/users?page=2 returns 429 after 100 requests; the header Retry-After says how long",
    "Set DATABASE_URL=postgresql://localhost:5432/app in .env",
    "The failing line is src/app.py:42: `return cache[key]` raises KeyError",
    "git rebase --onto main feature~3 feature keeps the merge commit out",
    "docker run --rm -p 8080:80 nginx:1.27 is enough to reproduce it",
    "func (s *Store) Close() error must be called twice safely",
    "TypeError: unsupported operand type(s) for +: 'int' and 'str' comes from the CSV parser",
    "chmod 600 ~/.ssh/config fixes 'Bad owner or permissions'",
    "```yaml\nreplicas: 3\nstrategy: Recreate\n```",
    'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nZeroDivisionError: division by zero',
]


@pytest.mark.parametrize("content", TECHNICAL)
def test_technical_text_is_an_observation(content: str) -> None:
    """ "remember observations (findings, insights, lessons)". Corrections C9: observations accept technical text."""
    tools = recollect.open(MemoryStore()).tools("agent", "observations")
    result = tools.call("remember_observation", {"content": content, "category": "finding", "source": "GOAL:x"})
    assert result.status == "ok", result.text
    assert observations(tools.memory) == [(content, "finding")]


@pytest.mark.parametrize("content", TECHNICAL)
def test_technical_text_is_kept_in_the_scratchpad(content: str) -> None:
    """ "Simple key-value storage for transient working memory". Corrections C9: it accepts technical text."""
    tools = recollect.open(MemoryStore()).tools("agent", "observations")
    result = tools.call("scratchpad_set", {"key": "plan", "value": content})
    assert result.status == "ok", result.text
    assert tools.memory.scratch("plan") == content


def test_technical_text_is_kept_in_a_batch(memory: recollect.Memory, tools: recollect.Suite) -> None:
    """ "RememberFIL". Corrections C9: all of it is knowledge, and none is left out."""
    assert len(call(tools, "remember_fil", findings=TECHNICAL, source="GOAL:x")["ids"]) == len(TECHNICAL)
    assert len(observations(memory)) == len(TECHNICAL)


SECRETS = [
    "The key is sk-proj-4f9aXb72Lq4f9aXb72Lq4f9aXb72Lq",
    "Log in with AKIAIOSFODNN7EXAMPLQ / wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq0yJ0x\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("content", SECRETS)
def test_secrets_are_refused(memory: recollect.Memory, tools: recollect.Suite, content: str) -> None:
    """Corrections C9: secrets are refused everywhere."""
    result = tools.call("remember_observation", {"content": content, "category": "finding"})
    assert result.status == "refused"
    assert tools.call("scratchpad_set", {"key": "key", "value": content}).status == "refused"
    assert observations(memory) == []


# Semantic recall


def test_recall_mixes_all_categories(tools: recollect.Suite) -> None:
    """ "Generic recall (returns all categories mixed)"; "Recall all categories, ranked by relevance"."""
    call(tools, "remember_fil", findings=["The cache expires after an hour"], insights=["The cache is too small"], lessons=["Warm the cache first"])  # fmt: skip
    found = hits_of(call(tools, "recall", query="cache", limit=10))
    assert {hit["category"] for hit in found} == {"finding", "insight", "lesson"}


def test_a_hit_has_category_score_and_content(tools: recollect.Suite) -> None:
    """ "fmt.Printf("[%s] %.2f: %s\\n", r.Category, r.Score, r.Content)"."""
    call(tools, "remember_observation", **VERSION)
    (hit,) = hits_of(call(tools, "recall", query="PostgreSQL version", limit=10, min_score=0.1))
    assert (hit["category"], hit["content"]) == ("finding", "PostgreSQL version is 15.2")
    assert 0.1 <= hit["score"] <= 1


def test_recall_ranks_by_relevance(tools: recollect.Suite) -> None:
    """ "Recall all categories, ranked by relevance": most relevant first, scores descending."""
    call(tools, "remember_fil", findings=["The deploy needs a database migration", "The database connection pool has 20 slots and the database accepts 100", "Tests take four minutes"])  # fmt: skip
    found = hits_of(call(tools, "recall", query="database connection pool", limit=10))
    assert found[0]["content"].startswith("The database connection pool")
    assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)
    assert "Tests take four minutes" not in [hit["content"] for hit in found]


def test_recall_keeps_the_limit(tools: recollect.Suite) -> None:
    """ "RecallOpts{ Limit: 10 }"."""
    call(tools, "remember_fil", findings=[f"Server {number} runs Debian" for number in range(15)])
    assert len(hits_of(call(tools, "recall", query="debian", limit=10))) == 10
    assert len(hits_of(call(tools, "recall", query="debian", limit=3))) == 3


def test_recall_leaves_out_what_scores_less(tools: recollect.Suite) -> None:
    """ "RecallOpts{ MinScore: 0.1 }"."""
    call(tools, "remember_fil", **FIL)
    every = hits_of(call(tools, "recall", query="API rate limit", limit=10))
    middle = (every[0]["score"] + every[-1]["score"]) / 2
    some = hits_of(call(tools, "recall", query="API rate limit", limit=10, min_score=middle))
    assert [hit["content"] for hit in some] == [hit["content"] for hit in every if hit["score"] >= middle]
    assert 0 < len(some) < len(every)


def test_database_configuration_recalls_the_version(tools: recollect.Suite) -> None:
    """ "store.Recall(ctx, "database configuration", RecallOpts{Limit: 10, MinScore: 0.1})" after the example was stored:
    "Retrieve relevant memories based on meaning, not just keywords"."""
    call(tools, "remember_observation", **VERSION)
    call(tools, "remember_fil", **FIL)
    found = hits_of(call(tools, "recall", query="database configuration", limit=10, min_score=0.1))
    assert found[0]["content"] == "PostgreSQL version is 15.2"


def test_database_recalls_the_version_among_findings(tools: recollect.Suite) -> None:
    """ "findings, _ := store.RecallByCategory(ctx, "database", "finding", 5)" after the example was stored."""
    call(tools, "remember_observation", **VERSION)
    call(tools, "remember_fil", **FIL)
    found = texts_of(call(tools, "recall_by_category", query="database", category="finding", limit=5))
    assert found[:1] == ["PostgreSQL version is 15.2"]


def test_api_integration_recalls_the_three_lists(tools: recollect.Suite) -> None:
    """ "fil, _ := store.RecallFIL(ctx, "API integration", 5)" after the example was stored."""
    call(tools, "remember_fil", **FIL)
    fil = call(tools, "recall_fil", query="API integration", limit_per_category=5)
    assert "API uses OAuth2" in fil["findings"]


def test_recall_by_category_filters_exactly(tools: recollect.Suite) -> None:
    """ "Keyword field: exact match only (category filtering)"; "boolQuery.AddMust(categoryQuery)"."""
    call(tools, "remember_fil", findings=["The cache expires after an hour"], insights=["The cache is too small"], lessons=["Warm the cache first"])  # fmt: skip
    for category, text in (
        ("finding", "The cache expires after an hour"),
        ("insight", "The cache is too small"),
        ("lesson", "Warm the cache first"),
    ):
        assert texts_of(call(tools, "recall_by_category", query="cache", category=category, limit=5)) == [text]


def test_recall_by_category_answers_with_texts(tools: recollect.Suite) -> None:
    """ "RecallByCategory(…) ([]string, error)"."""
    call(tools, "remember_fil", **FIL)
    answer = call(tools, "recall_by_category", query="rate limit", category="lesson", limit=5)
    assert hits_of(answer) == LESSONS


def test_recall_by_category_keeps_the_limit(tools: recollect.Suite) -> None:
    """ "RecallByCategory(ctx, query, category string, limit int)"."""
    call(tools, "remember_fil", findings=[f"Server {number} runs Debian" for number in range(9)])
    assert len(texts_of(call(tools, "recall_by_category", query="debian", category="finding", limit=4))) == 4


def test_recall_fil_answers_with_three_lists(tools: recollect.Suite) -> None:
    """ "type FILResult struct { Findings "findings"; Insights "insights"; Lessons "lessons" }": lists of texts."""
    call(tools, "remember_fil", **FIL)
    fil = call(tools, "recall_fil", query="rate limit use case", limit_per_category=5)
    assert fil["findings"][0] == "Rate limit is 100/min"
    assert (fil["insights"], fil["lessons"]) == (INSIGHTS, LESSONS)


def test_recall_fil_has_all_three_lists_even_if_nothing_is_found(tools: recollect.Suite) -> None:
    """ "Findings []string `json:"findings"`": without omitempty."""
    fil = call(tools, "recall_fil", query="zeppelins")
    assert (fil["findings"], fil["insights"], fil["lessons"]) == ([], [], [])


def test_recall_fil_limits_each_category(tools: recollect.Suite) -> None:
    """ "RecallFIL(ctx, query string, limitPerCategory int)"."""
    call(tools, "remember_fil", findings=[f"Server {n} runs Debian" for n in range(7)], lessons=[f"Debian lesson {n}" for n in range(7)])  # fmt: skip
    fil = call(tools, "recall_fil", query="debian", limit_per_category=3)
    assert (len(fil["findings"]), len(fil["insights"]), len(fil["lessons"])) == (3, 0, 3)


# BM25 text search


@pytest.mark.parametrize("query", ["configurations", "CONFIGURATION", "configured"])
def test_the_text_is_tokenized_and_stemmed(memory: recollect.Memory, query: str) -> None:
    """ "Text field: analyzed for full-text search (tokenized, stemmed)"."""
    memory.observe("The configuration lies in /etc", "finding")
    assert [hit.record.content for hit in memory.search(query, kinds=["observation"])] == [
        "The configuration lies in /etc"
    ]


def test_the_source_is_a_filter(memory: recollect.Memory) -> None:
    """ "Keyword field: exact match only": "obsMapping.AddFieldMappingsAt("source", keywordFieldMapping)"."""
    memory.observe("The cache is small", "finding", source="GOAL:one")
    memory.observe("The cache is slow", "finding", source="GOAL:two")
    found = memory.search("cache", kinds=["observation"], source="GOAL:two")
    assert [hit.record.content for hit in found] == ["The cache is slow"]


def test_the_time_is_a_filter(tmp_path: Path) -> None:
    """ "Date field: for time-based filtering"."""
    clock = FrozenClock(NOW)
    with recollect.open(tmp_path, clock=clock) as app:
        memory = app.user("agent")
        memory.observe("The cache is small", "finding")
        clock.tick(days=10)
        memory.observe("The cache is slow", "finding")
        early = memory.search("cache", kinds=["observation"], until="2026-02-20")
        late = memory.search("cache", kinds=["observation"], since="2026-02-20")
    assert [hit.record.content for hit in early] == ["The cache is small"]
    assert [hit.record.content for hit in late] == ["The cache is slow"]


def scored(memory: recollect.Memory) -> dict[float, float]:
    """Raw scores, above and below 1, and what became of them."""
    for text in ("zeppelin zeppelin mooring", "zeppelin hangar", "violin", "tomato", "garden", "cello", "harbour"):
        memory.observe(text, "finding")
    scores = {hit.raw_score: hit.score for hit in memory.search("zeppelin mooring", limit=10)}
    assert min(scores) <= 1 < max(scores)
    return scores


def test_high_scores_are_normalised_as_in_the_seed(memory: recollect.Memory) -> None:
    """ "if score > 1 { score = 1 - (1 / (1 + score)) } // Maps high scores to 0.5-1.0 range"."""
    high = {raw: score for raw, score in scored(memory).items() if raw > 1}
    assert high == {raw: pytest.approx(1 - 1 / (1 + raw)) for raw in high}


def test_scores_up_to_1_stay_as_they_are(memory: recollect.Memory) -> None:
    """ "score := float32(hit.Score); if score > 1 { … }": the others are not changed."""
    low = {raw: score for raw, score in scored(memory).items() if raw <= 1}
    assert low == {raw: pytest.approx(raw) for raw in low}


def test_no_embedder_is_needed() -> None:
    """ "Vector embeddings: BM25 provides sufficient relevance; avoids embedding costs"."""
    assert recollect.Config().embedder == ""


@pytest.mark.parametrize("query", ['"unclosed AND (', "field:value^2 ~", "*", "+-!{}[]", "a OR", "content:/reg[ex/"])
def test_no_query_is_a_parsing_error(tools: recollect.Suite, query: str) -> None:
    """ "Search failure | Query parsing error | Simplify query": here none is refused."""
    call(tools, "remember_fil", **FIL)
    for name in ("recall", "recall_fil", "scratchpad_search"):
        assert tools.call(name, {"query": query}).status == "ok"


# LLM-based extraction

OUTPUT = (
    "Deployed the API. The gateway allows 100 requests per minute. We chose REST. Library X has no TypeScript types."
)
FOUND = {
    "findings": ["API rate limit is 100/min"],
    "insights": ["REST is simpler than GraphQL for this use case"],
    "lessons": ["Avoid library X - it lacks TypeScript support"],
}
Extract = Callable[..., tuple[Observations | None, ModelServer]]


@pytest.fixture
def extract() -> Extract:
    """Extract(ctx, "deploy-api", "GOAL", stepOutput) with a model that follows a script."""

    def run(script: Any, output: str = OUTPUT) -> tuple[Observations | None, ModelServer]:
        with ModelServer(script) as server, open_model(f"{server.openai_url}#any", sleep=lambda _: None) as model:
            memory = recollect.open(MemoryStore()).user("agent")
            return observe(model, memory, "deploy-api", "GOAL", output), server

    return run


def always(turn: Turn) -> Callable[[ModelRequest], Turn]:
    """A model that always does the same."""
    return lambda request: turn


AS_TEXT = [
    json.dumps(FOUND),
    f"```json\n{json.dumps(FOUND, indent=2)}\n```",
    f"```\n{json.dumps(FOUND)}\n```",
    f"Here is what I found:\n\n```json\n{json.dumps(FOUND)}\n```\nThat is all.",
]


@pytest.mark.parametrize("said", AS_TEXT, ids=["plain", "fenced as json", "fenced", "among prose"])
def test_json_is_read_with_and_without_code_fences(extract: Extract, said: str) -> None:
    """ "Handles JSON wrapped in markdown code blocks"; "Returns: *Observation with populated Findings, Insights, Lessons"."""
    found, _ = extract(always(Say(said)))
    assert found is not None
    assert {name: list(getattr(found, name)) for name in FOUND} == FOUND


def test_a_structured_answer_is_read_as_well(extract: Extract) -> None:
    """ "Returns: *Observation with populated Findings, Insights, Lessons"."""
    found, _ = extract([Call("answer", FOUND)])
    assert found is not None
    assert {name: list(getattr(found, name)) for name in FOUND} == FOUND


def test_the_step_is_named(extract: Extract) -> None:
    """ "StepName // Source step identifier", "StepType // GOAL, AGENT, RUN"."""
    found, _ = extract(always(Say(AS_TEXT[0])))
    assert found is not None
    assert (found.step_name, found.step_type) == ("deploy-api", "GOAL")


def test_a_short_output_is_skipped(extract: Extract) -> None:
    """ "Skips outputs shorter than 50 characters"."""
    found, server = extract(always(Say(AS_TEXT[0])), "x" * 49)
    assert found is None
    assert server.requests == []


def test_an_output_of_50_characters_is_not_skipped(extract: Extract) -> None:
    """ "Skips outputs shorter than 50 characters"."""
    found, server = extract(always(Say(AS_TEXT[0])), "The gateway allows 100 requests per minute, no more."[:50])
    assert found is not None
    assert len(server.requests) == 1


def test_a_long_output_is_truncated(extract: Extract) -> None:
    """ "Truncates outputs longer than 4000 characters"."""
    _, server = extract(always(Say(AS_TEXT[0])), "é" * 4000 + "ü" * 100)
    asked = "".join(message.text for message in server.requests[0].messages)
    assert asked.count("é") == 4000
    assert "ü" not in asked


@pytest.mark.parametrize(
    "turn",
    [
        Fail(500),
        Fail(401, "wrong key"),
        Garbage(),
        Say("I found nothing that I could put into JSON"),
        Say("{"),
        Say("[1, 2]"),
    ],
    ids=["error", "wrong key", "garbage", "prose", "half", "a list"],
)
def test_a_failure_returns_nothing_and_raises_nothing(extract: Extract, turn: Turn) -> None:
    """ "Returns nil (not error) if extraction fails"; "Extraction and consolidation failures are non-fatal."."""
    assert extract(always(turn))[0] is None


def test_without_a_model_nothing_is_returned(memory: recollect.Memory) -> None:
    """ "The package returns `nil` rather than errors for graceful degradation."."""
    assert observe(None, memory, "deploy-api", "GOAL", OUTPUT) is None


def test_nothing_to_extract_is_nothing(extract: Extract) -> None:
    """ "if err != nil || obs == nil { return // Extraction failed or nothing to extract }"."""
    assert extract(always(Say('{"findings": [], "insights": [], "lessons": []}')))[0] is None


def test_an_answer_without_some_of_the_lists_is_read(extract: Extract) -> None:
    """ "Findings []string `json:"findings,omitempty"`": each list may be missing."""
    found, _ = extract(always(Say('{"findings": ["API rate limit is 100/min"]}')))
    assert found is not None
    assert (list(found.findings), list(found.insights), list(found.lessons)) == (["API rate limit is 100/min"], [], [])


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        ("Identify factual discoveries as Findings", ["finding", "fact"]),
        ("Extract conclusions and decisions as Insights", ["insight", "conclusion", "decision"]),
        ("Capture learnings for future as Lessons", ["lesson", "future|next time|later"]),
    ],
)
def test_the_prompt_has_the_instruction(extract: Extract, instruction: str, words: list[str]) -> None:
    """ "The system prompt instructs the LLM to: 1. Identify factual discoveries as Findings …"."""
    _, server = extract(always(Say(AS_TEXT[0])))
    told = server.requests[0].system.lower()
    assert [word for word in words if not re.search(word, told)] == [], instruction


def test_the_model_reads_step_and_output(extract: Extract) -> None:
    """ "extractor.Extract(ctx, "deploy-api", "GOAL", stepOutput)"."""
    _, server = extract(always(Say(AS_TEXT[0])))
    asked = "".join(message.text for message in server.requests[0].messages)
    assert OUTPUT in asked
    assert "deploy-api" in asked


def test_what_was_extracted_is_stored_and_queried(memory: recollect.Memory) -> None:
    """ "obsStore.StoreObservation(ctx, observation)", "obsStore.QueryRelevantObservations(ctx, "query", 5)"."""
    found = Observations(
        tuple(FOUND["findings"]), tuple(FOUND["insights"]), tuple(FOUND["lessons"]), "deploy-api", "GOAL"
    )
    remember(memory, found)
    assert observations(memory) == [
        (FOUND["findings"][0], "finding"),
        (FOUND["insights"][0], "insight"),
        (FOUND["lessons"][0], "lesson"),
    ]
    hits = memory.search("rate limit", kinds=["observation"], limit=5)
    assert hits[0].record.content == "API rate limit is 100/min"


def test_what_was_extracted_has_the_step_as_its_source(memory: recollect.Memory) -> None:
    """ "Source … "GOAL:step-name""."""
    remember(memory, Observations(("API rate limit is 100/min",), (), (), "deploy-api", "GOAL"))
    assert [one.source for one in memory.read(kind="observation")] == ["GOAL:deploy-api"]


@pytest.mark.parametrize("content", TECHNICAL)
def test_extracted_technical_text_is_stored(content: str) -> None:
    """ "Store extracted observations". Corrections C9: technical text is knowledge."""
    memory = recollect.open(MemoryStore()).user("agent")
    remember(memory, Observations((content,), (), (), "deploy-api", "GOAL"))
    assert observations(memory) == [(content, "finding")]


# Session consolidation

TRANSCRIPT = [
    Said("user", "How should we handle auth?"),
    Said("assistant", "We decided to use OAuth2 because..."),
]


def test_a_session_is_consolidated_into_insights(memory: recollect.Memory) -> None:
    """ "store.ConsolidateSession(ctx, "session-123", transcript) // Extracts messages containing decision language and
    stores as insights"."""
    consolidate(memory, "session-123", TRANSCRIPT)
    ((content, category),) = observations(memory)
    assert "We decided to use OAuth2" in content
    assert category == "insight"


def test_an_insight_of_a_session_names_the_session(memory: recollect.Memory) -> None:
    """ "Source … "session:xyz""."""
    consolidate(memory, "session-123", TRANSCRIPT)
    assert [one.source for one in memory.read(kind="observation")] == ["session:session-123"]


TRIGGERS = {
    "decided": "We decided to cache responses for ten minutes.",
    "conclusion": "The conclusion is that the index is too large.",
    "important": "It is important to rotate the logs every week.",
    "remember": "Please remember to warm the cache before a release.",
    "note that": "Note that the staging server has less memory.",
    "key insight": "The key insight is that reads outnumber writes.",
    "learned that": "We learned that retries hide the timeout bug.",
    "will use": "We will use PostgreSQL for the new service.",
    "should use": "You should use a connection pool here.",
    "agreed": "We agreed on weekly releases.",
}


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("trigger", TRIGGERS)
def test_each_trigger_word_makes_an_insight(memory: recollect.Memory, trigger: str, role: str) -> None:
    """The table "Trigger Words": "decided", "conclusion", "important", "remember", "note that", "key insight", "learned
    that", "will use", "should use", "agreed"."""
    consolidate(memory, "session-123", [Said("user", "How is it going?"), Said(role, TRIGGERS[trigger])])
    stored = observations(memory)
    assert [category for _, category in stored] == ["insight"]
    assert TRIGGERS[trigger].rstrip(".").lower() in stored[0][0].lower()


def test_trigger_words_in_capitals_count(memory: recollect.Memory) -> None:
    """ "keyword detection": as people write them."""
    consolidate(memory, "session-123", [Said("assistant", "IMPORTANT: the backup runs at midnight.")])
    assert len(observations(memory)) == 1


def test_messages_without_trigger_words_make_no_insight(memory: recollect.Memory) -> None:
    """ "Extracts messages containing decision language": no others."""
    consolidate(
        memory, "session-123", [Said("user", "How are you?"), Said("assistant", "Fine, thanks. The tests pass.")]
    )
    assert observations(memory) == []


LONG = "The service reads from the replica, the writer publishes events, and the worker folds them into daily totals later."


def test_the_last_long_answer_is_stored_as_a_summary(memory: recollect.Memory) -> None:
    """ "Additionally, the last assistant message over 100 characters is stored as a summary."."""
    assert len(LONG) > 100
    first = LONG.replace("replica", "primary")
    consolidate(memory, "s", [Said("assistant", first), Said("user", "And now?"), Said("assistant", LONG), Said("assistant", "Ok.")])  # fmt: skip
    ((content, _),) = observations(memory)
    assert LONG.rstrip(".") in content
    assert "primary" not in content


def test_an_answer_of_100_characters_is_no_summary(memory: recollect.Memory) -> None:
    """ "over 100 characters"; a long message of the user is none either."""
    consolidate(memory, "s", [Said("user", LONG), Said("assistant", LONG[:99] + ".")])
    assert observations(memory) == []


def test_a_consolidation_whose_model_fails_is_done_by_words(memory: recollect.Memory) -> None:
    """ "Extraction and consolidation failures are non-fatal."."""
    with (
        ModelServer(always(Fail(500))) as server,
        open_model(f"{server.openai_url}#any", sleep=lambda _: None) as model,
    ):
        consolidate(memory, "session-123", TRANSCRIPT, model=model)
    assert len(observations(memory)) == 1


def test_an_empty_transcript_is_no_error(memory: recollect.Memory) -> None:
    """ "Extraction and consolidation failures are non-fatal."."""
    consolidate(memory, "session-123", [])
    assert observations(memory) == []


# Key-value scratchpad


@pytest.fixture
def scratchpad(tools: recollect.Suite) -> recollect.Suite:
    """The working data of the example."""
    call(tools, "scratchpad_set", key="current_task", value="implement-api")
    call(tools, "scratchpad_set", key="api.endpoint", value="https://api.example.com")
    return tools


def test_get_returns_what_was_set(scratchpad: recollect.Suite) -> None:
    """ "endpoint, _ := store.Get("api.endpoint")"."""
    assert call(scratchpad, "scratchpad_get", key="api.endpoint")["value"] == "https://api.example.com"
    assert call(scratchpad, "scratchpad_get", key="current_task")["value"] == "implement-api"


def test_set_replaces_the_value(scratchpad: recollect.Suite) -> None:
    """ "store.Set("current_task", "implement-api")": a key has one value."""
    call(scratchpad, "scratchpad_set", key="current_task", value="write-docs")
    assert call(scratchpad, "scratchpad_get", key="current_task")["value"] == "write-docs"


def test_list_returns_the_keys_with_the_prefix(scratchpad: recollect.Suite) -> None:
    """ "keys, _ := store.List("api.")  // Returns: ["api.endpoint"]"."""
    assert hits_of(call(scratchpad, "scratchpad_list", prefix="api.")) == ["api.endpoint"]
    assert sorted(hits_of(call(scratchpad, "scratchpad_list", prefix=""))) == ["api.endpoint", "current_task"]


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("example.com", "api.endpoint"),
        ("endpoint", "api.endpoint"),
        ("implement", "current_task"),
        ("TASK", "current_task"),
    ],
)
def test_search_looks_into_keys_and_values(scratchpad: recollect.Suite, query: str, key: str) -> None:
    """ "// Search across keys and values"; "results, _ := store.Search("example.com")"."""
    assert [hit["key"] for hit in hits_of(call(scratchpad, "scratchpad_search", query=query))] == [key]


def test_a_key_that_does_not_exist_is_expected(scratchpad: recollect.Suite) -> None:
    """ "Key not found | KV key doesn't exist | Expected for queries": an answer that says so, and no exception."""
    result = scratchpad.call("scratchpad_get", {"key": "no.such.key"})
    assert "no.such.key" in result.text
    assert "example.com" not in result.text


def test_get_and_set_are_verbs(memory: recollect.Memory) -> None:
    """ "Get(key string) (string, error)", "Set(key, value string) error"."""
    memory.set_scratch("current_task", "implement-api")
    assert memory.scratch("current_task") == "implement-api"
    assert memory.scratch("no.such.key") is None


# Storage backends


def stored_in(folder: Path) -> None:
    with recollect.open(folder) as app:
        tools = app.tools("agent", "observations")
        call(tools, "remember_fil", **FIL)
        call(tools, "scratchpad_set", key="current_task", value="implement-api")


def test_memory_survives_close_and_open(tmp_path: Path) -> None:
    """ "Persistence across Close/Open"; "Survive process restarts and session boundaries"."""
    stored_in(tmp_path)
    with recollect.open(tmp_path) as app:
        tools = app.tools("agent", "observations")
        assert call(tools, "recall_fil", query="rate limits")["lessons"] == LESSONS
        assert call(tools, "scratchpad_get", key="current_task")["value"] == "implement-api"


def test_memory_is_there_in_another_process(tmp_path: Path) -> None:
    """ "Survive process restarts and session boundaries"."""
    stored_in(tmp_path)
    program = [str(Path(sys.executable).parent / "recollect"), "tool", "recall_fil", '{"query": "rate limits"}']
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    command = [*program, "--root", str(tmp_path), "--user", "agent"]
    done = subprocess.run(command, env=kept, check=True, capture_output=True, text=True, encoding="utf-8")
    assert json.loads(done.stdout)["lessons"] == LESSONS


def test_the_index_is_created_by_itself(tmp_path: Path) -> None:
    """ "Automatic index creation on first run"; "BasePath": a folder that does not exist yet."""
    with recollect.open(tmp_path / "path" / "to" / "storage") as app:
        tools = app.tools("agent", "observations")
        assert hits_of(call(tools, "recall", query="anything")) == []
        call(tools, "remember_fil", **FIL)
        assert hits_of(call(tools, "recall", query="rate limit"))


def test_a_corrupt_index_is_made_anew(tmp_path: Path) -> None:
    """ "Index open failure | Corrupted Bleve index | Delete and recreate"."""
    stored_in(tmp_path)
    files = [path for path in (tmp_path / "agent" / "index").rglob("*") if path.is_file()]
    for path in files:
        path.write_bytes(b"not an index")
    with recollect.open(tmp_path) as app:
        assert call(app.tools("agent", "observations"), "recall_fil", query="rate limits")["lessons"] == LESSONS


def test_the_store_in_memory_forgets_when_it_ends() -> None:
    """ "store := NewInMemoryStore() // Use in tests, data lost when test ends"."""
    with recollect.open(MemoryStore()) as app:
        call(app.tools("agent", "observations"), "remember_fil", **FIL)
        assert len(observations(app.user("agent"))) == 4
    with recollect.open(MemoryStore()) as app:
        assert observations(app.user("agent")) == []


@pytest.mark.everyday(1)
def test_stores_are_safe_for_threads(app: recollect.Recollect) -> None:
    """ "Thread-safe (RWMutex protected)"; "Concurrency | Thread safety of stores"."""
    problems: list[str] = []

    def work(worker: int) -> None:
        tools = app.tools("agent", "observations")
        for number in range(8):
            content = f"Server {worker} finished task number {number}"
            for name, given in (
                ("remember_observation", {"content": content, "category": "finding", "source": f"RUN:{worker}"}),
                ("recall_fil", {"query": "server task"}),
                ("scratchpad_set", {"key": f"task.{worker}.{number}", "value": content}),
            ):
                result = tools.call(name, given)
                if result.status != "ok":
                    problems.append(result.text)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(observations(app.user("agent"))) == 48
    assert len(hits_of(call(app.tools("agent", "observations"), "scratchpad_list", prefix="task."))) == 48


def test_closing_twice_is_no_error(tmp_path: Path) -> None:
    """ "Close() error"."""
    app = recollect.open(tmp_path)
    call(app.tools("agent", "observations"), "remember_fil", **FIL)
    app.close()
    app.close()


def test_the_command_line_stores_and_recalls_as_well(tmp_path: Path) -> None:
    """ "store.RememberObservation(ctx, "PostgreSQL version is 15.2", "finding", "GOAL:check-database")", for scripts."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}

    def run(*arguments: str) -> str:
        command = [str(Path(sys.executable).parent / "recollect"), *arguments, "--root", str(tmp_path)]
        return subprocess.run(command, env=kept, check=True, capture_output=True, text=True, encoding="utf-8").stdout

    run("observe", "PostgreSQL version is 15.2", "--category", "finding", "--source", "GOAL:check-database")
    assert "PostgreSQL version is 15.2" in run("search", "PostgreSQL", "--kind", "observation", "--json")
