"""Seed A, the tool API, as its author would run it: one check for each sentence of A-tool-api.md that promises something.

Written from the seed and the documentation alone. A docstring quotes the sentence it checks; "Corrections" are those at
the end of the specification, which settle what the seed leaves open.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import math
import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import psycopg
import pytest
from mcp import Client, StdioServerParameters

import recollect
from recollect.agents.discuss import Discussion
from recollect.agents.extract import Extracted, extract
from recollect.agents.models import open_model
from recollect.testing import FrozenClock
from recollect.testing.models import Call, ModelRequest, ModelServer, Say, Turn
from recollect.tools import wire

NOW = datetime(2026, 2, 13, 12, 0, tzinfo=timezone.utc)
TODAY = "2026-02-13"
CATEGORIES = ["preference", "work_context", "personal_context", "reading_history"]

DECLARATIONS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "write_memory",
            "description": "Write or update a memory entry about the user. Durable entries go to MEMORY.md, ephemeral to daily notes.",
            "parameters": {
                "type": "object",
                "properties": {
                    "key": {
                        "type": "string",
                        "description": "Short identifier for the memory (e.g., 'role', 'interested_in_rust', 'opinion_on_crypto')",
                    },
                    "value": {"type": "string", "description": "The memory content (natural language, no code)"},
                    "category": {
                        "type": "string",
                        "enum": ["preference", "work_context", "personal_context", "reading_history"],
                        "description": "Memory category",
                    },
                    "durability": {
                        "type": "string",
                        "enum": ["durable", "daily"],
                        "description": "durable = MEMORY.md (persists indefinitely), daily = memory/YYYY-MM-DD.md (auto-expires in 90 days)",
                    },
                    "source": {
                        "type": "string",
                        "description": "Where this memory came from (e.g., 'discussion:uuid', 'explicit_mention', 'batch_extraction')",
                    },
                    "confidence": {
                        "type": "number",
                        "minimum": 0,
                        "maximum": 1,
                        "description": "Confidence score (0-1). Only writes to MEMORY.md if >= 0.7",
                    },
                },
                "required": ["key", "value", "category", "durability"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "read_memory",
            "description": "Read all memory entries in a specific category to understand user context.",
            "parameters": {
                "type": "object",
                "properties": {
                    "category": {
                        "type": "string",
                        "enum": ["preference", "work_context", "personal_context", "reading_history"],
                        "description": "Memory category to read",
                    },
                    "limit": {
                        "type": "integer",
                        "description": "Max number of entries to return (default: 20)",
                        "default": 20,
                    },
                },
                "required": ["category"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "search_memory",
            "description": "Search user memory using full-text BM25 search. Useful for finding related past context.",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "Search query (e.g., 'kubernetes', 'python async', 'distributed systems')",
                    },
                    "limit": {"type": "integer", "description": "Max number of results (default: 5)", "default": 5},
                    "category": {
                        "type": "string",
                        "enum": ["preference", "work_context", "personal_context", "reading_history", "all"],
                        "description": "Filter by category or search all (default: all)",
                        "default": "all",
                    },
                },
                "required": ["query"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "get_memory_context",
            "description": "Get formatted memory context string for injection into agent prompts (~1500 tokens).",
            "parameters": {
                "type": "object",
                "properties": {
                    "topic": {
                        "type": "string",
                        "description": "Article topic or discussion topic (e.g., 'PostgreSQL 18'). Used for BM25 search.",
                    },
                    "max_tokens": {
                        "type": "integer",
                        "description": "Max tokens in returned context (default: 1500)",
                        "default": 1500,
                    },
                },
                "required": ["topic"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "update_memory",
            "description": "Update an existing memory entry (modify value, change category, etc.)",
            "parameters": {
                "type": "object",
                "properties": {
                    "key": {"type": "string", "description": "The memory key to update"},
                    "value": {"type": "string", "description": "New value"},
                    "category": {
                        "type": "string",
                        "enum": ["preference", "work_context", "personal_context", "reading_history"],
                        "description": "Category (optional, keeps current if not specified)",
                    },
                },
                "required": ["key", "value"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "delete_memory",
            "description": "Delete a memory entry (e.g., user says they forgot something or want to remove a belief).",
            "parameters": {
                "type": "object",
                "properties": {"key": {"type": "string", "description": "The memory key to delete"}},
                "required": ["key"],
            },
        },
    },
]

PRESENTATION = {
    "key": "upcoming_presentation_db_perf",
    "value": "Presenting on database performance next week",
    "category": "personal_context",
    "durability": "durable",
    "source": "explicit_mention_in_discussion",
    "confidence": 0.95,
}
"""The call in "Data Flow: Explicit Memory Capture During Discussion"."""


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NOW)


@pytest.fixture
def app(tmp_path: Path, clock: FrozenClock) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path / "data" / "memory", clock=clock) as opened:
        yield opened


@pytest.fixture
def memory(app: recollect.Recollect) -> recollect.Memory:
    return app.user("u1")


@pytest.fixture
def tools(app: recollect.Recollect) -> recollect.Suite:
    return app.tools("u1", "entries")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "memory" / "u1"


def call(tools: recollect.Suite, name: str, **arguments: Any) -> str:
    return tools.call(name, arguments).text


def write(tools: recollect.Suite, key: str, value: str, category: str = "work_context", **more: Any) -> str:
    return call(tools, "write_memory", key=key, value=value, category=category, **{"durability": "durable", **more})


def memory_md(folder: Path) -> str:
    path = folder / "MEMORY.md"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def daily_md(folder: Path, day: str = TODAY) -> str:
    path = folder / "memory" / f"{day}.md"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def entries_of(answer: str) -> list[str]:
    """The entries that read_memory lists."""
    return [line for line in answer.splitlines() if line.startswith("- ")]


def hits_of(answer: str) -> list[tuple[str, str, str, float]]:
    """What search_memory found: category, key, value, score."""
    pattern = r"^\d+\. \[(\w+)\] (.+)\n   (.+)\n   \(score: (\d+\.\d\d)\)$"
    return [(kind, key, value, float(score)) for kind, key, value, score in re.findall(pattern, answer, re.M)]


def lines_with(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if word.lower() in line.lower()]


# Memory Storage API (tool definitions)


@pytest.mark.parametrize("declared", DECLARATIONS, ids=lambda one: str(one["function"]["name"]))
def test_each_tool_is_declared_as_in_the_seed(tools: recollect.Suite, declared: dict[str, Any]) -> None:
    """ "Memory Storage API (Tool Definitions)": the six declarations: name, description, parameters, enums, defaults."""
    ours = {one["function"]["name"]: one for one in wire.declarations(tools, "openai")}
    found = ours[declared["function"]["name"]]
    assert found["type"] == "function"
    assert found["function"]["description"] == declared["function"]["description"]
    wanted = declared["function"]["parameters"]
    parameters = found["function"]["parameters"]
    assert parameters["type"] == "object"
    assert parameters["required"] == wanted["required"]
    assert list(parameters["properties"]) == list(wanted["properties"])
    for name, schema in wanted["properties"].items():
        assert {field: parameters["properties"][name].get(field) for field in schema} == schema


def test_the_suite_has_these_six_tools_and_no_others(tools: recollect.Suite) -> None:
    """The tools are numbered 1 to 6: write, read, search, get context, update, delete."""
    declared = [one["function"]["name"] for one in wire.declarations(tools, "openai")]
    assert sorted(declared) == sorted(one["function"]["name"] for one in DECLARATIONS)


@pytest.mark.parametrize("format", ["openai", "responses", "anthropic", "gemini", "mcp"])
def test_the_tools_are_declared_for_every_provider(tools: recollect.Suite, format: Any) -> None:
    """ "The memory system should expose operations via **LLM tool calling**"."""
    text = json.dumps(wire.declarations(tools, format))
    for one in DECLARATIONS:
        assert f'"{one["function"]["name"]}"' in text


def test_the_command_line_prints_the_declarations_and_calls_the_tools(tmp_path: Path) -> None:
    """ "Unified API for memory operations. Can be called by agents or directly.": here by the command line."""
    program = Path(sys.executable).parent / "recollect"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}

    def run(*arguments: str) -> str:
        command = [str(program), *arguments, "--root", str(tmp_path), "--user", "u1"]
        return subprocess.run(command, env=kept, check=True, capture_output=True, text=True, encoding="utf-8").stdout

    declared = json.loads(run("tools", "--suite", "entries", "--format", "openai"))
    assert [one["function"]["name"] for one in declared] == [one["function"]["name"] for one in DECLARATIONS]
    said = run("tool", "write_memory", json.dumps(PRESENTATION))
    assert said.strip() == "✓ Memory written: personal_context/upcoming_presentation_db_perf (confidence: 95.0%)"
    assert lines_with((tmp_path / "u1" / "MEMORY.md").read_text(encoding="utf-8"), "database performance")


def test_an_mcp_client_finds_and_calls_the_tools(tmp_path: Path) -> None:
    """ "The memory system should expose operations via **LLM tool calling**": here for MCP clients."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    arguments = ["mcp", "--root", str(tmp_path), "--user", "u1", "--suite", "entries"]
    server = StdioServerParameters(command=str(Path(sys.executable).parent / "recollect"), args=arguments, env=kept)

    async def session() -> tuple[list[str], str]:
        async with Client(server) as client:
            listed = await client.list_tools()
            answer: Any = await client.call_tool("write_memory", PRESENTATION)
            return [tool.name for tool in listed.tools], answer.content[0].text

    names, said = asyncio.run(session())
    assert sorted(names) == sorted(one["function"]["name"] for one in DECLARATIONS)
    assert said == "✓ Memory written: personal_context/upcoming_presentation_db_perf (confidence: 95.0%)"


# write_memory


def test_a_durable_entry_goes_to_memory_md(tools: recollect.Suite, folder: Path) -> None:
    """ "Durable entries go to MEMORY.md"."""
    write(tools, "role", "Senior Backend Engineer")
    assert lines_with(memory_md(folder), "Senior Backend Engineer") == ["- Role: Senior Backend Engineer"]
    assert "Senior Backend Engineer" not in daily_md(folder)


def test_a_daily_entry_goes_to_the_daily_note(tools: recollect.Suite, folder: Path) -> None:
    """ "ephemeral to daily notes"; "daily = memory/YYYY-MM-DD.md"."""
    write(tools, "mood_today", "In a hurry before a release", "personal_context", durability="daily")
    assert len(lines_with(daily_md(folder), "In a hurry before a release")) == 1
    assert "hurry" not in memory_md(folder)


def test_writing_answers_with_category_key_and_confidence(tools: recollect.Suite) -> None:
    """ "✓ Memory written: {category}/{key} (confidence: {confidence:.1%})"."""
    assert write(tools, "role", "Senior Backend Engineer") == "✓ Memory written: work_context/role (confidence: 100.0%)"
    said = write(tools, "opinion_on_crypto", "Sceptical about crypto", "personal_context", confidence=0.85)
    assert said == "✓ Memory written: personal_context/opinion_on_crypto (confidence: 85.0%)"


def test_writing_a_daily_entry_answers_the_same(tools: recollect.Suite) -> None:
    """ "✓ Memory written: {category}/{key} (confidence: {confidence:.1%})" comes after both tiers."""
    said = write(tools, "read_pg18", "Read about PostgreSQL 18", "reading_history", durability="daily")
    assert said == "✓ Memory written: reading_history/read_pg18 (confidence: 100.0%)"


@pytest.mark.parametrize("key", ["role", "interested_in_rust", "opinion_on_crypto"])
def test_the_example_keys_are_kept(tools: recollect.Suite, memory: recollect.Memory, key: str) -> None:
    """ "Short identifier for the memory (e.g., 'role', 'interested_in_rust', 'opinion_on_crypto')"."""
    write(tools, key, "Something about the user that matters", "personal_context")
    assert memory.get(key).key == key


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    return x + 1",
        "```python\nprint('hello')\n```",
        "for (let i = 0; i < n; i++) { total += prices[i]; }",
        "SELECT id, name FROM users WHERE id = 4;",
    ],
)
def test_code_is_not_written(tools: recollect.Suite, folder: Path, code: str) -> None:
    """ "The memory content (natural language, no code)"; "Never store code snippets or technical implementations"."""
    said = write(tools, "snippet", code)
    assert not said.startswith("✓")
    assert "code" in said.lower()
    assert "snippet" not in memory_md(folder).lower()


@pytest.mark.parametrize(
    "value", ["Interested in Rust async runtime design", "Uses PostgreSQL 18 and Kubernetes at work"]
)
def test_prose_about_technology_is_written(tools: recollect.Suite, value: str) -> None:
    """ "Be specific: "interested in Rust async runtime design" > "likes Rust" "."""
    assert write(tools, "tech", value).startswith("✓ Memory written")


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize("durability", ["durable", "daily"])
def test_every_category_is_written_and_read_back(tools: recollect.Suite, category: str, durability: str) -> None:
    """ "enum": ["preference", "work_context", "personal_context", "reading_history"], durable and daily."""
    write(tools, "a_key", "Something worth knowing", category, durability=durability)
    assert entries_of(call(tools, "read_memory", category=category)) == ["- a_key: Something worth knowing"]
    for other in set(CATEGORIES) - {category}:
        assert call(tools, "read_memory", category=other) == f"No memories in {other}"


def test_an_unknown_category_is_answered_with_the_known_ones(tools: recollect.Suite, memory: recollect.Memory) -> None:
    """ "category": {"enum": [...]}: another one is an error that the model can act on."""
    said = write(tools, "role", "Senior Backend Engineer", "hobby")
    assert all(name in said for name in CATEGORIES)
    assert memory.read(kind="fact") == []


@pytest.mark.parametrize("missing", ["key", "value", "category", "durability"])
def test_a_required_argument_that_is_missing_is_named(tools: recollect.Suite, missing: str) -> None:
    """ "required": ["key", "value", "category", "durability"]."""
    given = {name: PRESENTATION[name] for name in ("key", "value", "category", "durability") if name != missing}
    result = tools.call("write_memory", given)
    assert result.status == "invalid"
    assert missing in result.text


@pytest.mark.parametrize("confidence", [-0.1, 1.1])
def test_confidence_is_from_0_to_1(tools: recollect.Suite, memory: recollect.Memory, confidence: float) -> None:
    """ "minimum": 0, "maximum": 1."""
    said = write(tools, "role", "Senior Backend Engineer", confidence=confidence)
    assert not said.startswith("✓")
    assert "confidence" in said
    assert memory.read() == []


def test_the_source_is_kept(tools: recollect.Suite, memory: recollect.Memory) -> None:
    """ "Where this memory came from (e.g., 'discussion:uuid', 'explicit_mention', 'batch_extraction')"."""
    source = "discussion:3f1c2a9e-5c0d-4a51-9a39-1f4ee1f5a111"
    write(tools, "role", "Senior Backend Engineer", source=source)
    assert memory.get("role").source == source


def test_the_default_confidence_is_1(tools: recollect.Suite, memory: recollect.Memory) -> None:
    """ "confidence: float = 1.0"."""
    write(tools, "role", "Senior Backend Engineer")
    assert memory.get("role").confidence == 1.0


# the confidence gate


def test_below_the_threshold_nothing_goes_to_memory_md(tools: recollect.Suite, folder: Path) -> None:
    """ "Only writes to MEMORY.md if >= 0.7"."""
    write(tools, "interested_in_zig", "Interested in Zig", "preference", confidence=0.69)
    assert "Zig" not in memory_md(folder)


def test_at_the_threshold_it_goes_to_memory_md(tools: recollect.Suite, folder: Path) -> None:
    """ "Only writes to MEMORY.md if >= 0.7"."""
    write(tools, "interested_in_zig", "Interested in Zig", "preference", confidence=0.7)
    assert lines_with(memory_md(folder), "Zig")


def test_below_the_threshold_the_answer_says_so(tools: recollect.Suite) -> None:
    """ "Entry '{key}' confidence {confidence:.1%} below 0.7 threshold. Would write to daily notes instead."

    Corrections C1: write_memory still says that it went to the daily note.
    """
    said = write(tools, "interested_in_zig", "Interested in Zig", "preference", confidence=0.6)
    assert said.startswith("Entry 'interested_in_zig' confidence 60.0% below 0.7 threshold.")
    assert re.search(r"daily notes?", said)


@pytest.mark.parametrize("confidence", [0.55, 0.69, 0.3])
def test_below_the_threshold_it_is_in_the_daily_note(tools: recollect.Suite, folder: Path, confidence: float) -> None:
    """ "Would write to daily notes instead." Corrections C1: where it is visible."""
    write(tools, "interested_in_zig", "Interested in Zig", "preference", confidence=confidence)
    assert len(lines_with(daily_md(folder), "Interested in Zig")) == 1


def test_the_threshold_is_for_durable_writes_only(tools: recollect.Suite, folder: Path) -> None:
    """ "if durability == "durable" and confidence < 0.7"."""
    said = write(tools, "mood", "Seemed tired", "personal_context", durability="daily", confidence=0.5)
    assert said == "✓ Memory written: personal_context/mood (confidence: 50.0%)"
    assert len(lines_with(daily_md(folder), "Seemed tired")) == 1


def test_low_confidence_does_not_clutter_the_context(tools: recollect.Suite) -> None:
    """ "Prevents low-confidence facts from cluttering MEMORY.md". Corrections C1: nor the stable context."""
    write(tools, "interested_in_zig", "Interested in Zig", "preference", confidence=0.6)
    write(tools, "role", "Senior Backend Engineer")
    core = call(tools, "get_memory_context", topic="piano lessons").split("### Recent")[0].split("### Relevant")[0]
    assert "Senior Backend Engineer" in core
    assert "Zig" not in core


# daily and gated entries keep key and category (Corrections C3)

SHORT_LIVED = pytest.mark.parametrize(
    "more", [{"durability": "daily"}, {"confidence": 0.6}], ids=["daily", "below the threshold"]
)


@SHORT_LIVED
def test_a_daily_or_gated_entry_is_read_by_category(tools: recollect.Suite, more: dict[str, Any]) -> None:
    """ "Read all memory entries in a specific category". Corrections C3: daily entries keep key and category."""
    write(tools, "read_pg18", "Read about PostgreSQL 18", "reading_history", **more)
    assert entries_of(call(tools, "read_memory", category="reading_history")) == [
        "- read_pg18: Read about PostgreSQL 18"
    ]


@SHORT_LIVED
def test_a_daily_or_gated_entry_is_found_by_category(tools: recollect.Suite, more: dict[str, Any]) -> None:
    """ "Filter by category or search all". Corrections C3."""
    write(tools, "read_pg18", "Read about PostgreSQL 18", "reading_history", **more)
    for category in ("reading_history", "all"):
        hits = hits_of(call(tools, "search_memory", query="postgresql", category=category))
        assert [hit[:3] for hit in hits] == [("reading_history", "read_pg18", "Read about PostgreSQL 18")]
    assert hits_of(call(tools, "search_memory", query="postgresql", category="preference")) == []


@SHORT_LIVED
def test_a_daily_or_gated_entry_is_updated_by_key(tools: recollect.Suite, more: dict[str, Any]) -> None:
    """ "The memory key to update". Corrections C3: updated by it, and there is one entry as before."""
    write(tools, "read_pg18", "Read about PostgreSQL 18", "reading_history", **more)
    said = call(tools, "update_memory", key="read_pg18", value="Read three articles about PostgreSQL 18")
    assert said.startswith("✓ Memory updated: read_pg18")
    listed = entries_of(call(tools, "read_memory", category="reading_history"))
    assert listed == ["- read_pg18: Read three articles about PostgreSQL 18"]


@SHORT_LIVED
def test_a_daily_or_gated_entry_is_deleted_by_key(tools: recollect.Suite, more: dict[str, Any]) -> None:
    """ "The memory key to delete". Corrections C3."""
    write(tools, "read_pg18", "Read about PostgreSQL 18", "reading_history", **more)
    assert call(tools, "delete_memory", key="read_pg18") == "✓ Memory deleted: read_pg18"
    assert call(tools, "read_memory", category="reading_history") == "No memories in reading_history"
    assert call(tools, "search_memory", query="postgresql") == "No memories found matching 'postgresql'"


@SHORT_LIVED
def test_the_same_daily_or_gated_entry_three_times_is_one_line(
    tools: recollect.Suite, folder: Path, more: dict[str, Any]
) -> None:
    """ "Avoid duplicates". Corrections C3: the same entry on the same day is one line."""
    for _ in range(3):
        write(tools, "read_pg18", "Read about PostgreSQL 18", "reading_history", **more)
    assert len(lines_with(daily_md(folder), "PostgreSQL 18")) == 1
    assert len(entries_of(call(tools, "read_memory", category="reading_history"))) == 1


def test_a_gated_entry_that_is_mentioned_again_with_certainty_becomes_durable(
    tools: recollect.Suite, folder: Path
) -> None:
    """ "Only writes to MEMORY.md if >= 0.7": what was a weak signal is said clearly later, under the same key."""
    write(tools, "interested_in_zig", "Interested in Zig", "preference", confidence=0.6)
    write(tools, "interested_in_zig", "Interested in Zig", "preference", confidence=0.95)
    assert len(lines_with(memory_md(folder), "Zig")) == 1
    assert entries_of(call(tools, "read_memory", category="preference")) == ["- interested_in_zig: Interested in Zig"]


def test_daily_entries_expire_after_90_days(app: recollect.Recollect, clock: FrozenClock, folder: Path) -> None:
    """ "daily = memory/YYYY-MM-DD.md (auto-expires in 90 days)"."""
    tools, memory = app.tools("u1", "entries"), app.user("u1")
    write(tools, "read_pg18", "Read about PostgreSQL 18", "reading_history", durability="daily")
    clock.tick(days=89)
    memory.upkeep()
    assert "read_pg18" in call(tools, "search_memory", query="postgresql")
    clock.tick(days=2)
    assert call(tools, "search_memory", query="postgresql") == "No memories found matching 'postgresql'"
    assert call(tools, "read_memory", category="reading_history") == "No memories in reading_history"
    memory.upkeep()
    assert "PostgreSQL" not in daily_md(folder)


def test_durable_entries_persist_indefinitely(
    tools: recollect.Suite, memory: recollect.Memory, clock: FrozenClock
) -> None:
    """ "durable = MEMORY.md (persists indefinitely)"."""
    write(tools, "role", "Senior Backend Engineer")
    clock.tick(days=3650)
    memory.upkeep()
    assert entries_of(call(tools, "read_memory", category="work_context")) == ["- role: Senior Backend Engineer"]


# search before write


def test_the_same_entry_again_offers_update_memory(tools: recollect.Suite, folder: Path) -> None:
    """ "Similar entries found. Consider using update_memory() instead:\\n{similar}"."""
    write(tools, "role", "Senior Backend Engineer")
    said = write(tools, "role", "Senior Backend Engineer")
    assert said.startswith("Similar entries found. Consider using update_memory() instead:\n")
    assert "role" in said
    assert "Senior Backend Engineer" in said
    assert len(lines_with(memory_md(folder), "Engineer")) == 1


def test_another_value_under_the_same_key_offers_update_memory(tools: recollect.Suite, folder: Path) -> None:
    """ "Similar entries found. Consider using update_memory() instead:\\n{similar}"."""
    write(tools, "role", "Senior Backend Engineer")
    said = write(tools, "role", "Staff Engineer")
    assert said.startswith("Similar entries found. Consider using update_memory() instead:\n")
    assert "Senior Backend Engineer" in said
    assert lines_with(memory_md(folder), "Engineer") == ["- Role: Senior Backend Engineer"]


SAME = [
    ("preference", "summary_style", "Prefers concise summaries", "digest_format", "Prefers concise summaries"),
    ("preference", "summary_style", "Prefers concise summaries", "communication_style", "prefers concise summaries."),
    ("work_context", "role", "Senior Backend Engineer", "job_title", "Senior backend engineer"),
    ("work_context", "company", "Works at Stripe", "employer", "Works at Stripe"),
    ("work_context", "stack", "Uses PostgreSQL and Go", "tech_stack", "Uses Go and PostgreSQL"),
    ("preference", "interested_in_rust", "Interested in Rust", "topic_rust", "Interested in Rust"),
    ("personal_context", "opinion_on_crypto", "Sceptical about crypto", "crypto_view", "Sceptical about crypto."),
    ("personal_context", "hobby", "Plays the piano", "music", "Plays the piano"),
    ("personal_context", "home", "Lives in Kyiv", "city", "Lives in Київ"),
    ("personal_context", "goal", "Learning Japanese", "learning_goals", "Learning Japanese"),
    ("reading_history", "read_pg18", "Read about PostgreSQL 18", "pg18_article", "Read about PostgreSQL 18"),
    ("personal_context", "upcoming_presentation_db_perf", "Presenting on database performance next week",
     "presentation", "Presenting on database performance next week"),
]  # fmt: skip


@pytest.mark.parametrize(("category", "key", "value", "other_key", "other_value"), SAME)
def test_the_same_fact_under_another_key_is_a_duplicate(
    tools: recollect.Suite, folder: Path, category: str, key: str, value: str, other_key: str, other_value: str
) -> None:
    """ "Search before write: Automatic deduplication". Corrections C2: the same statement under another key is the
    same fact; the answer names the known key."""
    assert write(tools, key, value, category).startswith("✓")
    said = write(tools, other_key, other_value, category)
    assert not said.startswith("✓")
    assert key in said
    assert len(entries_of(call(tools, "read_memory", category=category))) == 1


DIFFERENT = [
    ("role", "Senior Backend Engineer", "company", "Stripe, a payments company with many engineers"),
    ("interested_in_rust", "Interested in Rust", "interested_in_go", "Interested in Go"),
    ("role", "Backend Engineer", "former_role", "Frontend Engineer"),
    ("city", "Lives in Lviv", "birthplace", "Was born in Lviv"),
    ("likes_tea", "Likes tea", "dislikes_coffee", "Does not like coffee"),
    ("favorite_language", "Python", "language_at_work", "Python"),
    ("city", "Lviv", "birthplace", "Lviv"),
    ("sister", "Anna", "manager", "Anna"),
    ("db", "Uses PostgreSQL 15 at work", "db_home", "Uses SQLite at home"),
    ("team_size", "Leads a team of 5", "previous_team_size", "Led a team of 12"),
    ("reading_rust", "Reads about Rust async runtimes", "project_rust", "Builds a Rust async runtime at work"),
]


@pytest.mark.parametrize(("key", "value", "other_key", "other_value"), DIFFERENT)
def test_a_new_fact_is_not_refused_because_a_word_matches(
    tools: recollect.Suite, key: str, value: str, other_key: str, other_value: str
) -> None:
    """ "Search for duplicates": it finds duplicates. Corrections C2: different attributes of one thing are none."""
    assert write(tools, key, value).startswith("✓ Memory written")
    assert write(tools, other_key, other_value).startswith("✓ Memory written")


# read_memory


def test_read_memory_lists_keys_and_values_under_a_title(tools: recollect.Suite) -> None:
    """ "\\n**{category.replace('_', ' ').title()}:**\\n" and "- {entry['key']}: {entry['value']}\\n"."""
    write(tools, "role", "Senior Backend Engineer")
    write(tools, "company", "Stripe")
    said = call(tools, "read_memory", category="work_context")
    assert said.strip("\n") == "**Work Context:**\n- role: Senior Backend Engineer\n- company: Stripe"


def test_read_memory_answers_byte_for_byte_as_written(tools: recollect.Suite) -> None:
    """ "formatted = f"\\n**...:**\\n"": the answer begins with an empty line and ends each entry with a line break."""
    write(tools, "role", "Senior Backend Engineer")
    assert (
        call(tools, "read_memory", category="work_context") == "\n**Work Context:**\n- role: Senior Backend Engineer\n"
    )


@pytest.mark.parametrize("category", CATEGORIES)
def test_read_memory_of_an_empty_category_says_so(tools: recollect.Suite, category: str) -> None:
    """ "No memories in {category}"."""
    assert call(tools, "read_memory", category=category) == f"No memories in {category}"


HOBBIES = (
    "piano, chess, rowing, sailing, knitting, astronomy, pottery, fencing, archery, beekeeping, calligraphy, origami, "
    "juggling, carpentry, gardening, birdwatching, photography, swimming, climbing, cycling, baking, fishing, "
    "skating, surfing, yoga"
).split(", ")


def test_read_memory_returns_20_entries_by_default(tools: recollect.Suite) -> None:
    """ "Max number of entries to return (default: 20)"."""
    for hobby in HOBBIES:
        write(tools, f"hobby_{hobby}", f"Enjoys {hobby}", "personal_context")
    assert len(entries_of(call(tools, "read_memory", category="personal_context"))) == 20
    assert len(entries_of(call(tools, "read_memory", category="personal_context", limit=3))) == 3
    assert len(entries_of(call(tools, "read_memory", category="personal_context", limit=100))) == len(HOBBIES)


def test_an_entry_that_the_person_wrote_by_hand_is_read(tools: recollect.Suite, folder: Path) -> None:
    """ "entries = await self._load_from_memory_md(category, limit)"."""
    write(tools, "company", "Stripe")
    path = folder / "MEMORY.md"
    path.write_text(
        memory_md(folder).replace("- Company: Stripe", "- Company: Stripe\n- Team: Payments"), encoding="utf-8"
    )
    assert "- team: Payments" in entries_of(call(tools, "read_memory", category="work_context"))


# search_memory


def test_search_answers_with_category_key_value_and_score(tools: recollect.Suite) -> None:
    """ "Search results:\\n" and "\\n{i}. [{category}] {key}\\n   {value}\\n   (score: {score:.2f})\\n"."""
    write(tools, "interested_in", "PostgreSQL performance optimization", "preference")
    said = call(tools, "search_memory", query="postgresql")
    pattern = (
        r"Search results:\n\n1\. \[preference\] interested_in\n"
        r"   PostgreSQL performance optimization\n   \(score: \d+\.\d\d\)"
    )
    assert re.fullmatch(pattern, said.rstrip("\n"))


def test_search_without_a_match_says_so(tools: recollect.Suite) -> None:
    """ "No memories found matching '{query}'"."""
    write(tools, "role", "Senior Backend Engineer")
    assert call(tools, "search_memory", query="kubernetes") == "No memories found matching 'kubernetes'"


@pytest.mark.parametrize("query", ["kubernetes", "python async", "distributed systems"])
def test_the_example_queries_find_what_they_name(tools: recollect.Suite, query: str) -> None:
    """ "Search query (e.g., 'kubernetes', 'python async', 'distributed systems')"."""
    write(tools, "ops", "Runs Kubernetes clusters in production")
    write(tools, "learning", "Wants to learn Python async patterns", "personal_context")
    write(tools, "interested_in", "Distributed systems and consensus", "preference")
    best = hits_of(call(tools, "search_memory", query=query))[0]
    assert query.split()[0].lower() in best[2].lower()


def test_search_returns_5_results_by_default(tools: recollect.Suite) -> None:
    """ "Max number of results (default: 5)"."""
    for hobby in HOBBIES[:8]:
        write(tools, f"hobby_{hobby}", f"Enjoys {hobby} on Sundays", "personal_context")
    assert len(hits_of(call(tools, "search_memory", query="sundays"))) == 5
    assert len(hits_of(call(tools, "search_memory", query="sundays", limit=2))) == 2
    assert len(hits_of(call(tools, "search_memory", query="sundays", limit=50))) == 8


def test_search_filters_by_category_or_searches_all(tools: recollect.Suite) -> None:
    """ "Filter by category or search all (default: all)"."""
    write(tools, "interested_in_rust", "Interested in Rust compilers", "preference")
    write(tools, "project_rust", "Maintains a Rust parser at work", "work_context")
    write(tools, "read_rust", "Read a history of Rust", "reading_history", durability="daily")
    for category in ("preference", "work_context", "reading_history"):
        assert {hit[0] for hit in hits_of(call(tools, "search_memory", query="rust", category=category))} == {category}
    everything = {"preference", "work_context", "reading_history"}
    assert {hit[0] for hit in hits_of(call(tools, "search_memory", query="rust", category="all"))} == everything
    assert {hit[0] for hit in hits_of(call(tools, "search_memory", query="rust"))} == everything


def test_search_results_are_ranked(tools: recollect.Suite) -> None:
    """ "ranked = sorted(enumerate(scores), key=lambda x: x[1], reverse=True)"."""
    write(
        tools,
        "a",
        "Enjoys long walks and once tried PostgreSQL during a course on many other things",
        "personal_context",
    )
    write(tools, "b", "PostgreSQL performance, PostgreSQL internals", "preference")
    hits = hits_of(call(tools, "search_memory", query="postgresql performance"))
    assert [hit[1] for hit in hits] == ["b", "a"]
    assert hits[0][3] >= hits[1][3]


# get_memory_context


def test_the_context_has_core_relevant_and_recent_memory(tools: recollect.Suite) -> None:
    """ "## User Memory\\n\\n{core}\\n\\n{search_results}\\n\\n## Recent Activity\\n{recent}"."""
    write(tools, "role", "Senior Backend Engineer")
    write(tools, "read_pg18", "Read about PostgreSQL 18 release", "reading_history", durability="daily")
    write(tools, "read_bees", "Read about beekeeping", "reading_history", durability="daily")
    block = call(tools, "get_memory_context", topic="PostgreSQL 18")
    assert block.startswith("## User Memory\n")
    core, heading, recent = block.partition("# Recent Activity\n")
    assert heading
    assert "Senior Backend Engineer" in core
    assert "Read about PostgreSQL 18 release" in block
    assert "Read about beekeeping" in recent


def test_the_context_has_daily_notes_of_7_days(app: recollect.Recollect, clock: FrozenClock) -> None:
    """ "recent = await self._load_recent_daily_notes(days=7)"."""
    tools = app.tools("u1", "entries")
    write(tools, "read_old", "Read about beekeeping", "reading_history", durability="daily")
    clock.tick(days=5)
    write(tools, "read_new", "Read about astronomy", "reading_history", durability="daily")
    clock.tick(days=4)
    recent = call(tools, "get_memory_context", topic="piano lessons").partition("Recent Activity")[2]
    assert "astronomy" in recent
    assert "beekeeping" not in recent


def test_the_context_finds_what_the_topic_is_about(app: recollect.Recollect, clock: FrozenClock) -> None:
    """ "Article topic or discussion topic (e.g., 'PostgreSQL 18'). Used for BM25 search.": also what is older."""
    tools = app.tools("u1", "entries")
    write(tools, "read_pg17", "Read about PostgreSQL 17 and its vacuum", "reading_history", durability="daily")
    clock.tick(days=30)
    assert "PostgreSQL 17" in call(tools, "get_memory_context", topic="PostgreSQL 18")
    assert "PostgreSQL 17" not in call(tools, "get_memory_context", topic="piano lessons")


def much(memory: recollect.Memory) -> None:
    """More than fits into a context."""
    with memory.batch() as batch:
        for number, hobby in enumerate(HOBBIES * 5):
            text = (
                f"Spends day {number} of a quarter on {hobby} and writes PostgreSQL notes about it to friend {number}"
            )
            batch.remember(text, key=f"note_{number}_{hobby}", category="personal_context")


def real_tokens(text: str) -> int:
    if importlib.util.find_spec("bpe_openai") is None:
        pytest.skip("needs bpe-openai")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoding = importlib.import_module("bpe_openai").get_encoding("o200k_base")
    return len(encoding.encode_ordinary(text))


def test_the_context_has_at_most_1500_tokens_by_default_and_fills_them(tools: recollect.Suite) -> None:
    """ "formatted memory context string for injection into agent prompts (~1500 tokens)". Corrections C14: 90 %."""
    much(tools.memory)
    assert 1350 <= real_tokens(call(tools, "get_memory_context", topic="PostgreSQL")) <= 1500


@pytest.mark.parametrize("most", [100, 400, 3000])
def test_the_context_keeps_the_given_budget_and_fills_it(tools: recollect.Suite, most: int) -> None:
    """ "Max tokens in returned context"; "Agent stays aware of token usage". Corrections C14: 90 % where there is enough."""
    much(tools.memory)
    used = real_tokens(call(tools, "get_memory_context", topic="PostgreSQL", max_tokens=most))
    assert used <= most
    assert used >= 0.9 * most - 30  # entries are not cut: the last one may not fit


# update_memory


def test_update_answers_as_in_the_seed(tools: recollect.Suite) -> None:
    """ "✓ Memory updated: {key}"."""
    write(tools, "role", "Senior Backend Engineer")
    assert call(tools, "update_memory", key="role", value="Staff Engineer") == "✓ Memory updated: role"


def test_update_changes_the_value(tools: recollect.Suite, folder: Path) -> None:
    """ "Update an existing memory entry (modify value…)"."""
    write(tools, "role", "Senior Backend Engineer")
    call(tools, "update_memory", key="role", value="Staff Engineer")
    assert lines_with(memory_md(folder), "Engineer") == ["- Role: Staff Engineer"]
    assert entries_of(call(tools, "read_memory", category="work_context")) == ["- role: Staff Engineer"]


def test_update_keeps_the_category_if_none_is_given(tools: recollect.Suite) -> None:
    """ "Category (optional, keeps current if not specified)"."""
    write(tools, "role", "Senior Backend Engineer", "personal_context")
    call(tools, "update_memory", key="role", value="Staff Engineer")
    assert entries_of(call(tools, "read_memory", category="personal_context")) == ["- role: Staff Engineer"]


def test_update_changes_the_category(tools: recollect.Suite, folder: Path) -> None:
    """ "(modify value, change category, etc.)"."""
    write(tools, "role", "Senior Backend Engineer", "personal_context")
    call(tools, "update_memory", key="role", value="Staff Engineer", category="work_context")
    assert call(tools, "read_memory", category="personal_context") == "No memories in personal_context"
    assert entries_of(call(tools, "read_memory", category="work_context")) == ["- role: Staff Engineer"]
    section = memory_md(folder).partition("## Work Context")[2].partition("\n## ")[0]
    assert "- Role: Staff Engineer" in section


def test_update_changes_the_category_alone(tools: recollect.Suite) -> None:
    """ "change category": with the value that it has."""
    write(tools, "role", "Senior Backend Engineer", "personal_context")
    call(tools, "update_memory", key="role", value="Senior Backend Engineer", category="work_context")
    assert entries_of(call(tools, "read_memory", category="work_context")) == ["- role: Senior Backend Engineer"]


def test_update_of_a_new_key_without_a_category_is_shown_by_a_category(tools: recollect.Suite) -> None:
    """ "update_memory(key="interested_in", value="Rust async runtime design, PostgreSQL performance optimization")"."""
    value = "Rust async runtime design, PostgreSQL performance optimization"
    assert call(tools, "update_memory", key="interested_in", value=value).startswith("✓")
    listed = [line for name in CATEGORIES for line in entries_of(call(tools, "read_memory", category=name))]
    assert listed == [f"- interested_in: {value}"]


# delete_memory


def test_delete_removes_the_entry_and_says_so(tools: recollect.Suite, folder: Path) -> None:
    """ "Delete a memory entry (e.g., user says they forgot something…)"; "✓ Memory deleted: {key}"."""
    write(tools, "opinion_on_crypto", "Sceptical about crypto", "personal_context")
    assert call(tools, "delete_memory", key="opinion_on_crypto") == "✓ Memory deleted: opinion_on_crypto"
    assert "crypto" not in memory_md(folder)
    assert call(tools, "search_memory", query="crypto") == "No memories found matching 'crypto'"


def test_delete_of_an_unknown_key_does_not_say_that_it_was_deleted(tools: recollect.Suite) -> None:
    """ "# Find and remove entry": there is none to find."""
    said = call(tools, "delete_memory", key="nothing_of_that_name")
    assert not said.startswith("✓")
    assert "nothing_of_that_name" in said


def test_writes_at_the_same_time_are_all_kept(app: recollect.Recollect, folder: Path) -> None:
    """ "Write/update/delete memory entries atomically"."""

    def work(hobby: str) -> None:
        tools = app.tools("u1", "entries")
        write(tools, f"hobby_{hobby}", f"Wants to try {hobby}", "personal_context")
        call(tools, "update_memory", key=f"hobby_{hobby}", value=f"Enjoys {hobby}")

    threads = [threading.Thread(target=work, args=(hobby,)) for hobby in HOBBIES[:10]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(line.partition(": ")[2] for line in lines_with(memory_md(folder), "hobby")) == sorted(
        f"Enjoys {hobby}" for hobby in HOBBIES[:10]
    )


# MemoryStorageAPI: "can be called by agents or directly"


def test_the_folder_is_data_memory_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "self.memory_dir = Path(f"data/memory/{user_id}")"."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEMORY_DIR", raising=False)
    monkeypatch.delenv("MEMORY_DATABASE_URL", raising=False)
    with recollect.open() as app:
        write(app.tools("u1", "entries"), "role", "Senior Backend Engineer")
    assert "Senior Backend Engineer" in Path("data/memory/u1/MEMORY.md").read_text(encoding="utf-8")


def test_the_tools_are_plain_functions(tools: recollect.Suite, folder: Path) -> None:
    """ "Unified API for memory operations. Can be called by agents or directly."."""
    api = tools.functions()
    said = api["write_memory"](**PRESENTATION)
    assert said == "✓ Memory written: personal_context/upcoming_presentation_db_perf (confidence: 95.0%)"
    assert "database performance" in api["search_memory"](query="database performance")
    assert "- upcoming_presentation_db_perf:" in api["read_memory"](category="personal_context")
    assert "database performance" in api["get_memory_context"](topic="PostgreSQL 18")
    key = "upcoming_presentation_db_perf"
    assert api["update_memory"](key=key, value="Presented on databases").startswith(f"✓ Memory updated: {key}")
    assert api["delete_memory"](key=key) == f"✓ Memory deleted: {key}"
    assert "databases" not in memory_md(folder)


@pytest.mark.parametrize(
    ("name", "defaults"),
    [
        ("write_memory", {"durability": "durable", "source": "", "confidence": 1.0}),
        ("search_memory", {"limit": 5, "category": "all"}),
        ("update_memory", {"category": None}),
        ("delete_memory", {}),
        ("read_memory", {"limit": 20}),
        ("get_memory_context", {"max_tokens": 1500}),
    ],
)
def test_the_functions_have_the_defaults_of_the_seed(
    tools: recollect.Suite, name: str, defaults: dict[str, Any]
) -> None:
    """ "async def write_memory(self, key, value, category, durability="durable", source="", confidence=1.0)" and so on."""
    parameters = inspect.signature(tools.functions()[name]).parameters
    found = {one.name: one.default for one in parameters.values() if one.default is not inspect.Parameter.empty}
    assert found == defaults


def test_called_directly_an_entry_is_durable_by_default(tools: recollect.Suite, folder: Path) -> None:
    """ "durability: str = "durable""."""
    tools.functions()["write_memory"](key="role", value="Senior Backend Engineer", category="work_context")
    assert lines_with(memory_md(folder), "Senior Backend Engineer")


def test_the_tools_can_be_awaited(tools: recollect.Suite) -> None:
    """ "async def write_memory(…)"; "return await self.memory_api.write_memory(**args)"."""

    async def both() -> tuple[str, str]:
        written = await tools.acall("write_memory", PRESENTATION)
        found = await tools.acall("search_memory", {"query": "database performance"})
        return written.text, found.text

    written, found = asyncio.run(both())
    assert written.startswith("✓ Memory written")
    assert "upcoming_presentation_db_perf" in found


def test_a_model_may_send_the_arguments_as_json(tools: recollect.Suite) -> None:
    """ "args = json.loads(tool_call.function.arguments)"."""
    assert tools.call("write_memory", json.dumps(PRESENTATION)).text.startswith("✓ Memory written")


def test_every_operation_is_logged(tools: recollect.Suite, memory: recollect.Memory) -> None:
    """ "This makes memory operations explicit, logged, and auditable."; "Every memory operation is logged and traceable"."""
    write(tools, "role", "Senior Backend Engineer")
    call(tools, "search_memory", query="engineer")
    call(tools, "update_memory", key="role", value="Staff Engineer")
    call(tools, "delete_memory", key="role")
    logged = [one.tool for one in memory.calls(newest_first=False)]
    assert logged == ["write_memory", "search_memory", "update_memory", "delete_memory"]


def test_every_change_is_traced_to_its_call(tools: recollect.Suite, memory: recollect.Memory) -> None:
    """ "Every memory operation is logged and traceable"."""
    result = tools.call("write_memory", PRESENTATION)
    (entry,) = memory.history(call=result.call)
    assert entry.after is not None
    assert entry.after.content == PRESENTATION["value"]
    assert entry.source == PRESENTATION["source"]


def test_one_user_does_not_see_the_entries_of_another(app: recollect.Recollect) -> None:
    """ "MemoryStorageAPI(user_id)": one for each user."""
    write(app.tools("u1", "entries"), "role", "Senior Backend Engineer")
    other = app.tools("u2", "entries")
    assert call(other, "read_memory", category="work_context") == "No memories in work_context"
    assert call(other, "search_memory", query="engineer") == "No memories found matching 'engineer'"


def test_entries_are_mirrored_in_postgresql(postgres_tables: str, tmp_path: Path) -> None:
    """ "Natural language facts live in files, metadata mirrors in PostgreSQL for queries"."""
    with recollect.open(postgres_tables, files=tmp_path) as app:
        write(app.tools("u1", "entries"), "role", "Senior Backend Engineer")
    assert "Senior Backend Engineer" in (tmp_path / "u1" / "MEMORY.md").read_text(encoding="utf-8")
    with psycopg.connect(postgres_tables) as db:
        rows = db.execute("SELECT type, key, content FROM memory WHERE active").fetchall()
    assert rows == [("work_context", "role", "Senior Backend Engineer")]


# BM25


def test_k1_and_b_are_1_5_and_0_75() -> None:
    """ "def __init__(self, user_id: str, k1: float = 1.5, b: float = 0.75)"."""
    config = recollect.Config()
    assert (config.bm25_k1, config.bm25_b) == (1.5, 0.75)


def seed_bm25(documents: list[list[str]], query: list[str], k1: float = 1.5, b: float = 0.75) -> list[float]:
    """BM25MemoryIndex.search of the seed, line by line."""
    scores = [0.0] * len(documents)
    average = sum(len(one) for one in documents) / len(documents)
    for token in query:
        having = [number for number, one in enumerate(documents) if token in one]
        if not having:
            continue
        idf = math.log((len(documents) - len(having) + 0.5) / (len(having) + 0.5) + 1)
        for number in having:
            tf = documents[number].count(token)
            numerator = tf * (k1 + 1)
            denominator = tf + k1 * (1 - b + b * len(documents[number]) / average)
            scores[number] += idf * (numerator / denominator)
    return scores


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (1.2, 0.4)])
def test_scores_are_those_of_the_formula(tmp_path: Path, k1: float, b: float) -> None:
    """ "idf = math.log((n - df + 0.5) / (df + 0.5) + 1)" and the lines after it."""
    texts = [
        "kubernetes postgres kubernetes",
        "postgres tomato garden violin",
        "violin",
        "kubernetes violin tomato tomato tomato garden",
    ]
    with recollect.open(tmp_path, bm25_k1=k1, bm25_b=b, language="en") as app:
        memory = app.user("u1")
        for text in texts:
            memory.note(text)
        found = {hit.record.content: hit.raw_score for hit in memory.search("kubernetes postgres", limit=10)}
    wanted = seed_bm25([text.split() for text in texts], ["kubernetes", "postgres"], k1, b)
    assert found == {
        text: pytest.approx(score, rel=1e-6) for text, score in zip(texts, wanted, strict=True) if score > 0
    }


def test_what_was_written_is_found_at_once(tools: recollect.Suite) -> None:
    """ "# Reindex: await self.bm25_index.rebuild()" after each write."""
    write(tools, "role", "Senior Backend Engineer")
    assert hits_of(call(tools, "search_memory", query="engineer"))
    call(tools, "update_memory", key="role", value="Product Manager")
    assert call(tools, "search_memory", query="engineer") == "No memories found matching 'engineer'"
    assert hits_of(call(tools, "search_memory", query="manager"))


def test_the_index_covers_what_a_person_wrote_into_the_files(tools: recollect.Suite, folder: Path) -> None:
    """ "Rebuild index from MEMORY.md and recent daily notes."."""
    write(tools, "company", "Stripe")
    write(tools, "mood", "Seemed tired", "personal_context", durability="daily")
    (folder / "MEMORY.md").write_text(memory_md(folder) + "- Instrument: plays the oboe\n", encoding="utf-8")
    note = folder / "memory" / f"{TODAY}.md"
    note.write_text(daily_md(folder) + "- Asked about zeppelins\n", encoding="utf-8")
    assert "oboe" in call(tools, "search_memory", query="oboe")
    assert "zeppelins" in call(tools, "search_memory", query="zeppelins")


def test_the_index_is_built_at_startup(tmp_path: Path) -> None:
    """ "Built at startup, rebuilt after daily extraction."."""
    with recollect.open(tmp_path) as app:
        write(app.tools("u1", "entries"), "role", "Senior Backend Engineer")
    with recollect.open(tmp_path) as app:
        assert hits_of(call(app.tools("u1", "entries"), "search_memory", query="engineer"))


def test_search_needs_no_embedder_and_no_service() -> None:
    """ "BM25 search: zero external dependencies"."""
    assert recollect.Config().embedder == ""
    assert recollect.Config().database_url == ""


# MemoryExtractionAgent


def then_done(*turns: Turn) -> Any:
    """A model that takes these turns and then has nothing more to do."""
    left = iter(turns)

    def model(request: ModelRequest) -> Turn:
        return next(left, Say("Done."))

    return model


ROLE = {
    "key": "role",
    "value": "Backend engineer at Stripe",
    "category": "work_context",
    "durability": "durable",
    "source": "discussion",
    "confidence": 0.95,
}
READ = {
    "key": "read_postgresql_18",
    "value": "Liked an article about PostgreSQL 18",
    "category": "reading_history",
    "durability": "daily",
    "source": "reaction",
    "confidence": 0.9,
}


def interact(memory: recollect.Memory) -> None:
    """The interactions of the seed's docstring: a reaction, a discussion, a save."""
    memory.report("reaction", item="post-1", value="👍", title="PostgreSQL 18")
    memory.report("discussion", title="Scaling payments", session="chat-1")
    memory.say("I'm a backend engineer at Stripe and I care about PostgreSQL.", session="chat-1")
    memory.report("save", title="A tour of async runtimes in Rust")


def extracted(
    tmp_path: Path | str, script: Any, provider: str = "", **before: str
) -> tuple[ModelServer, recollect.Memory, Extracted]:
    """A night's run with a model that follows the script, on a memory that knows ``before``."""
    clock = FrozenClock(NOW)
    with ModelServer(script) as server:
        settings: dict[str, Any] = {"model": f"{server.openai_url}#gpt-4o-mini"}
        if provider:
            urls = {"openai": server.openai_url, "anthropic": server.anthropic_url, "gemini": server.gemini_url}
            settings = {"model": f"{provider}:any", "model_url": urls[provider], "model_key": "test"}
        with recollect.open(tmp_path, clock=clock, **settings) as app:
            memory = app.user("u1")
            for key, value in before.items():
                memory.remember(value, key=key, category="preference")
            interact(memory)
            clock.tick(hours=11)
            return server, memory, extract(memory, clock().date(), extractor=app.extractor())


def results_of(server: ModelServer) -> list[tuple[str, str]]:
    """What the tools answered to the model, in order: names and texts."""
    return [(result.name, result.text) for request in server.requests for result in request.tool_results]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> ModelRequest:
    """The first thing that a model is asked at night."""
    server, _, _ = extracted(tmp_path_factory.mktemp("asked"), then_done())
    return server.requests[0]


def test_the_agent_is_offered_the_tools(asked: ModelRequest) -> None:
    """ "tools = [write_memory.openai_schema(), search_memory…, update_memory…, read_memory…]". Corrections C4."""
    offered = {tool.name for tool in asked.tools}
    assert {"write_memory", "search_memory", "update_memory", "read_memory"} <= offered


def test_the_agent_may_choose_whether_to_call(asked: ModelRequest) -> None:
    """ "tool_choice="auto""."""
    assert asked.raw.get("tool_choice", "auto") == "auto"


def test_the_agent_reads_the_interactions(asked: ModelRequest) -> None:
    """ "Extract meaningful memories from these interactions:\\n\\n{interaction_text}"."""
    texts = json.dumps([message.text for message in asked.messages], ensure_ascii=False)
    for part in (
        "PostgreSQL 18",
        "👍",
        "Scaling payments",
        "backend engineer at Stripe",
        "A tour of async runtimes in Rust",
    ):
        assert part in texts


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (
            "Search existing memory FIRST using `search_memory()` before writing new entries.",
            ["search_memory", "first"],
        ),
        ("If an entry exists, use `update_memory()` instead of `write_memory()`", ["update_memory", "write_memory"]),
        ("Merge related facts instead of creating new entries", ["merge"]),
        (
            "User preferences; Work context; Personal context; Reading history",
            ["preference", "work", "personal", "reading"],
        ),
        ("Clear facts from explicit mentions: 0.9-1.0", ["0.9"]),
        ("Weak signals: 0.5-0.7", ["0.5"]),
        ("Don't write entries with confidence < 0.7 to durable memory", ["0.7", "durable"]),
        ("Never store code snippets or technical implementations", ["code"]),
        ("Be specific", ["specific"]),
        ("Daily: reading patterns, temporary observations, day-specific context", ["daily"]),
        ("Log each operation with source (discussion, reaction, batch, etc.)", ["source"]),
    ],
)
def test_the_system_prompt_has_the_rule(asked: ModelRequest, rule: str, words: list[str]) -> None:
    """ "MEMORY_EXTRACTION_SYSTEM_PROMPT": its rules, one by one."""
    system = asked.system.lower()
    assert [word for word in words if word not in system] == [], rule


def test_the_agent_searches_then_writes(tmp_path: Path) -> None:
    """ "search_memory() to check for related existing entries … If new: use write_memory()"."""
    script = then_done(Call("search_memory", {"query": "role"}), Call("write_memory", ROLE))
    server, memory, _ = extracted(tmp_path, script)
    assert results_of(server) == [
        ("search_memory", "No memories found matching 'role'"),
        ("write_memory", "✓ Memory written: work_context/role (confidence: 95.0%)"),
    ]
    assert "- Role: Backend engineer at Stripe" in memory.show()
    assert server.problems == []


def test_the_agent_searches_then_updates(tmp_path: Path) -> None:
    """ "If exists: use update_memory() with new value": the example "interested_in" of the nightly flow."""
    value = "Rust async runtime design, PostgreSQL performance optimization"
    script = then_done(
        Call("search_memory", {"query": "interested in"}),
        Call("update_memory", {"key": "interested_in", "value": value}),
    )
    server, memory, _ = extracted(tmp_path, script, interested_in="Rust async runtime design")
    (_, found), (_, updated) = results_of(server)
    assert "interested_in" in found
    assert updated.startswith("✓ Memory updated: interested_in")
    assert lines_with(memory.show(), "Rust async") == [f"- Interested in: {value}"]


def test_several_calls_in_one_answer_are_all_done(tmp_path: Path) -> None:
    """ "for tool_call in response.tool_calls: result = await self._execute_tool(tool_call)"."""
    server, memory, _ = extracted(tmp_path, then_done([Call("write_memory", ROLE), Call("write_memory", READ)]))
    assert [text[:1] for _, text in results_of(server)] == ["✓", "✓"]
    assert "Backend engineer at Stripe" in memory.show()
    assert "Liked an article about PostgreSQL 18" in memory.daily(TODAY)


def test_the_run_says_that_it_is_completed_and_what_it_wrote(tmp_path: Path) -> None:
    """ "return {"user_id": …, "date": …, "status": "completed", "tool_calls_made": …}"."""
    script = then_done(Call("search_memory", {"query": "role"}), Call("write_memory", ROLE))
    _, memory, done = extracted(tmp_path, script)
    assert done.user_id == "u1"
    assert done.run is not None
    assert (done.run.day.isoformat(), done.run.status) == (TODAY, "completed")
    assert done.run.memories_written >= 1
    assert [one.tool for one in memory.calls(newest_first=False)] == ["search_memory", "write_memory"]


def test_what_the_agent_wrote_has_its_source(tmp_path: Path) -> None:
    """ "Log each operation with source (discussion, reaction, batch, etc.)"."""
    _, memory, _ = extracted(tmp_path, then_done(Call("write_memory", ROLE)))
    assert memory.get("role").source == "discussion"


def test_the_gate_holds_for_the_agent(tmp_path: Path) -> None:
    """ "Don't write entries with confidence < 0.7 to durable memory"."""
    weak = {
        **ROLE,
        "key": "interested_in_rust",
        "value": "Interested in Rust",
        "category": "preference",
        "confidence": 0.6,
    }
    server, memory, _ = extracted(tmp_path, then_done(Call("write_memory", weak)))
    assert "below 0.7 threshold" in results_of(server)[0][1]
    assert "Rust" not in memory.show()
    assert "Interested in Rust" in memory.daily(TODAY)


def test_a_duplicate_is_told_to_the_agent(tmp_path: Path) -> None:
    """ "Similar entries found. Consider using update_memory() instead": "LLM processes tool results and decides next"."""
    again = {**ROLE, "key": "topic_rust", "value": "Interested in Rust", "category": "preference"}
    server, memory, _ = extracted(
        tmp_path, then_done(Call("write_memory", again)), interested_in_rust="Interested in Rust"
    )
    said = results_of(server)[0][1]
    assert not said.startswith("✓")
    assert "interested_in_rust" in said
    assert len(lines_with(memory.show(), "Rust")) == 1


def test_a_model_that_never_stops_calling_is_stopped(tmp_path: Path) -> None:
    """ "while True:" in the seed; a bounded number of calls here, and what was written stays."""
    first = iter([Call("write_memory", ROLE)])

    def forever(request: ModelRequest) -> Turn:
        return next(first, Call("search_memory", {"query": "rust"})) if request.tools else Say("Done.")

    server, memory, done = extracted(tmp_path, forever)
    assert len(server.requests) < 60
    assert "Backend engineer at Stripe" in memory.show()
    assert done.run is not None and done.run.status == "completed"


def test_the_daily_observations_are_written_to_the_note_of_the_day(tmp_path: Path) -> None:
    """ "memory/2026-02-13.md written with daily observations"."""
    extracted(tmp_path, then_done(Call("write_memory", READ)))
    note = daily_md(tmp_path / "u1", "2026-02-13")
    assert len(lines_with(note, "Liked an article about PostgreSQL 18")) == 1


def test_what_the_agent_wrote_is_found_by_the_next_search(tmp_path: Path) -> None:
    """ "BM25 index rebuilt" after the nightly run."""
    _, memory, _ = extracted(tmp_path, then_done(Call("write_memory", ROLE)))
    assert "role" in [hit.record.key for hit in memory.search("stripe")]


def test_the_job_runs_at_23_utc() -> None:
    """ "Daily Batch Job starts (23:00 UTC)"."""
    assert recollect.Config().extraction_schedule == "0 23 * * *"


def test_the_job_logs_to_memory_extraction_runs(postgres_tables: str) -> None:
    """ "Job completes and logs to memory_extraction_runs table"."""
    extracted(postgres_tables, then_done(Call("write_memory", ROLE)))
    with psycopg.connect(postgres_tables) as db:
        rows = db.execute("SELECT run_date::text, status, memories_written > 0 FROM memory_extraction_runs").fetchall()
    assert rows == [(TODAY, "completed", True)]


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_the_agent_works_with_every_provider(tmp_path: Path, provider: str) -> None:
    """ "MemoryExtractionAgent(user_id, llm_client)": whichever client that is."""
    script = then_done(Call("search_memory", {"query": "role"}), Call("write_memory", ROLE))
    server, memory, _ = extracted(tmp_path, script, provider)
    assert [name for name, _ in results_of(server)] == ["search_memory", "write_memory"]
    assert "- Role: Backend engineer at Stripe" in memory.show()
    assert server.problems == []


# Data flow: explicit memory capture during discussion

ASKED = "Remember that I'm presenting on DB perf next week"
CONFIRMED = "Got it, I'll remember that you're presenting on database performance next week."


def discussed(tmp_path: Path) -> tuple[ModelServer, recollect.Memory, str]:
    with (
        ModelServer([Call("write_memory", PRESENTATION), Say(CONFIRMED)]) as server,
        recollect.open(tmp_path, clock=FrozenClock(NOW)) as app,
        open_model(f"{server.openai_url}#any") as model,
    ):
        talk = Discussion(app.tools("u1", "entries", session="post-3"), model, title="PostgreSQL 18")
        talk.begin()
        return server, app.user("u1"), talk.answer(ASKED).text


def test_the_discussion_offers_the_memory_tools(tmp_path: Path) -> None:
    """ "When user says "remember this", the DiscussionAgent calls memory tools"."""
    server, _, _ = discussed(tmp_path)
    assert {one["function"]["name"] for one in DECLARATIONS} <= {tool.name for tool in server.requests[0].tools}


def test_the_discussion_answers_with_the_confirmation_of_the_model(tmp_path: Path) -> None:
    """ "Bot responds: "Got it, I'll remember that you're presenting on database performance next week.""."""
    assert discussed(tmp_path)[2] == CONFIRMED


def test_the_discussion_tells_the_model_that_it_was_written(tmp_path: Path) -> None:
    """ "Return "✓ Memory written"" … "LLM receives confirmation"."""
    server, _, _ = discussed(tmp_path)
    assert server.requests[-1].tool_results[0].text.startswith("✓ Memory written")


def test_the_talk_about_database_performance_is_one_line(tmp_path: Path) -> None:
    """ "Search for duplicates/similar → Write to MEMORY.md": what was asked for is there once."""
    _, memory, _ = discussed(tmp_path)
    assert len(lines_with(memory.show(), "presenting")) == 1


def test_the_talk_is_known_by_the_key_of_the_call(tmp_path: Path) -> None:
    """ "key="upcoming_presentation_db_perf", value="Presenting on database performance next week""."""
    _, memory, _ = discussed(tmp_path)
    assert memory.get("upcoming_presentation_db_perf").content == "Presenting on database performance next week"
