"""Seed C, "Exposing Memory as an LLM-Callable Tool", as its author would accept it: sentence by sentence, through the
public surfaces. A docstring quotes the sentence; "Corrections" and "issue 16" mark the lines that settle what C leaves open.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.agents.discuss import Discussion
from recollect.agents.models import ModelLimits, Turn, open_model
from recollect.testing import FrozenClock
from recollect.testing.embedding import HashEmbedder
from recollect.testing.models import Call, ModelServer, Say
from recollect.tools import wire
from tests.program import run_separately

NAMES = ("memory_search", "memory_save", "memory_update", "memory_delete")
DOCS = Path(__file__).parents[2] / "docs"

PARAMETERS = {
    "memory_search": {
        "query": ("string", True, "Natural language search query"),
        "top_k": ("integer", False, "Max results to return (default: 5, max: 20)"),
        "include_conversation": ("boolean", False, "Also search the current conversation session (default: false)"),
    },
    "memory_save": {
        "content": ("string", True, "Natural language text to save (fact, preference, decision, etc.)"),
    },
    "memory_update": {
        "note_id": ("string", True, "ID of the note to update (from `memory_search` or `memory_save` results)"),
        "content": ("string", True, "New content to replace the existing note"),
    },
    "memory_delete": {
        "note_id": ("string", True, "ID of the note to delete (from `memory_search` results)"),
    },
}
"""The seed's four tables: name, type, required, description."""

DESCRIPTIONS = {
    "memory_search": "Search your persistent memory for relevant information. Use this when you need to recall user preferences, past decisions, stored facts, or anything previously saved. Results are ranked by relevance using semantic similarity and keyword matching. By default searches only your saved notes; set include_conversation to true to also search the current conversation history.",
    "memory_save": "Save an important piece of information to your persistent memory as a natural language note. Use this proactively whenever the user shares preferences, makes decisions, states facts, or tells you something worth remembering across conversations. Saved notes persist across all sessions and channels. Returns a note_id for future reference.",
    "memory_update": "Update a previously saved note with new content. Use this when the user corrects or changes previously stored information (e.g., a new preferred name, an updated preference). First use memory_search to find the note and its note_id, then call this with the note_id and the new content.",
    "memory_delete": "Delete a previously saved note from memory. Use this when the user asks you to forget specific information. First use memory_search to find the note and its note_id, then call this with the note_id to remove it.",
}
"""Step 9."""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path / "memory") as app:
        yield app


@pytest.fixture
def tools(app: recollect.Recollect) -> recollect.Suite:
    return app.tools("shantanu", "notes", session="tui-1")


def call(tools: recollect.Suite, tool: str, /, **arguments: Any) -> Any:
    """What the model reads, as JSON."""
    return json.loads(tools.call(tool, arguments).text)


def save(tools: recollect.Suite, content: str, **more: Any) -> str:
    answer = call(tools, "memory_save", content=content, **more)
    note_id = answer["note_id"]
    assert isinstance(note_id, str)
    return note_id


def search(tools: recollect.Suite, query: str, **more: Any) -> list[dict[str, Any]]:
    found = call(tools, "memory_search", query=query, **more)
    assert isinstance(found, list), found
    return found


def texts(tools: recollect.Suite, query: str, **more: Any) -> list[str]:
    return [hit["text"] for hit in search(tools, query, **more)]


def declared(tools: recollect.Suite, name: str) -> dict[str, Any]:
    (one,) = (tool for tool in wire.declarations(tools, "mcp") if tool["name"] == name)
    return one


# Problem statement


def test_the_model_can_decide_to_remember_search_correct_and_forget(app: recollect.Recollect) -> None:
    """ "The LLM itself has no explicit tool it can call to search its memory, save a note for later, update a previously
    saved fact, or delete something it was told to forget." The loop of a model does all four here."""
    seen: list[str] = []

    def script(request: Any) -> Any:
        seen.extend(result.text for result in request.tool_results)
        steps: list[Any] = [
            lambda: Call("memory_save", {"content": "User likes chocolates"}),
            lambda: Call("memory_search", {"query": "chocolates"}),
            lambda: Call(
                "memory_update", {"note_id": json.loads(seen[1])[0]["note_id"], "content": "User likes dark chocolates"}
            ),
            lambda: Call("memory_delete", {"note_id": json.loads(seen[1])[0]["note_id"]}),
            lambda: Say("Forgotten."),
        ]
        return steps[len(seen)]()

    suite = app.tools("u1", "notes", session="s1")
    with ModelServer(script) as server, open_model(f"{server.openai_url}#any") as model:
        reply = model.converse(
            "You remember.", [Turn("user", "I like chocolates")], suite=suite, limits=ModelLimits(turns=8, seconds=60)
        )
        assert server.problems == []
    assert reply.text == "Forgotten."
    assert [one.status for one in reply.calls] == ["ok"] * 4
    assert search(suite, "chocolates") == []


def test_a_person_can_ask_what_do_you_remember_about_x(app: recollect.Recollect, tools: recollect.Suite) -> None:
    """ "There is no user-facing way to ask "what do you remember about X?" and have the LLM deliberately query its memory
    store." """
    save(tools, "User is allergic to peanuts")
    save(tools, "User drives a red car")
    assert texts(tools, "what do you remember about peanuts?")[0] == "User is allergic to peanuts"


# Design goals


def test_the_suite_is_four_tools(tools: recollect.Suite) -> None:
    """ "Minimal surface area: 4 tools that cover the essential CRUD + search operations." """
    assert {tool["name"] for tool in wire.declarations(tools, "mcp")} == set(NAMES)


def test_notes_saved_on_one_channel_are_found_on_another(app: recollect.Recollect) -> None:
    """ "Notes saved on one channel (e.g., TUI) must be searchable from another channel (e.g., WhatsApp) for the same
    user." """
    save(app.tools("u1", "notes", session="tui-1", agent="tui"), "User prefers dark mode")
    assert texts(app.tools("u1", "notes", session="wa-9", agent="whatsapp"), "dark mode") == ["User prefers dark mode"]


def test_two_accounts_of_one_person_share_the_notes_once_linked(app: recollect.Recollect) -> None:
    """ "a user talking on WhatsApp and TUI should share the same memory space." """
    tui, whatsapp = ("terminal", "sg"), ("whatsapp", "49151")
    save(app.tools(app.identities.resolve(tui), "notes"), "User prefers dark mode")
    app.identities.enter_code(whatsapp, app.identities.start_link(tui).text)
    app.identities.confirm(whatsapp)
    app.identities.confirm(tui)
    assert texts(app.tools(app.identities.resolve(whatsapp), "notes"), "dark mode") == ["User prefers dark mode"]


def test_search_never_crosses_user_boundaries(app: recollect.Recollect) -> None:
    """ "Notes saved by user A are not visible to user B", "Search never crosses user boundaries"; "Never cross user
    boundaries." """
    ann, bob = app.tools("user_a", "notes", session="s"), app.tools("user_b", "notes", session="s")
    note = save(ann, "User's name is Ann")
    app.user("user_a").say("My name is Ann", session="s")
    assert search(bob, "name", include_conversation=True, top_k=20) == []
    assert search(bob, "everything", include_conversation=True) == []
    assert call(bob, "memory_update", note_id=note, content="User's name is Eve")["status"] == "error"
    assert call(bob, "memory_delete", note_id=note)["status"] == "error"
    assert texts(ann, "name") == ["User's name is Ann"]


def test_the_namespaces_of_two_users_are_fully_isolated(app: recollect.Recollect) -> None:
    """ "`memory:{user_a}` and `memory:{user_b}` are fully isolated": neither a user nor a session named like a namespace
    leads into it."""
    save(app.tools("a", "notes"), "User's name is Ann")
    assert search(app.tools("memory:a", "notes"), "name") == []
    assert search(app.tools("b", "notes", session="memory:a"), "name", include_conversation=True) == []


def test_the_model_cannot_choose_the_user(tools: recollect.Suite) -> None:
    """ "User-scoped": the user comes from the gateway ("`user_id` from `UserSessionState.user_id`"), not from an argument."""
    for name in NAMES:
        assert not [key for key in declared(tools, name)["inputSchema"]["properties"] if "user" in key]


def test_notes_are_free_natural_language(tools: recollect.Suite) -> None:
    """ "No key-value structure. Notes are free-form text." """
    said = "User's name is Shantanu; he says «просто SG», and — mind you — never 'Mr'.\nSecond line: 北京."
    save(tools, said)
    assert texts(tools, "Shantanu") == [said]


def test_each_save_has_a_stable_id(tools: recollect.Suite) -> None:
    """ "Each `memory_save` produces a note with a stable ID"; `format!("note-{}", …)`."""
    one, two = save(tools, "User's name is Shantanu"), save(tools, "User likes chocolates")
    assert one != two and one.startswith("note-") and two.startswith("note-")
    assert [hit["note_id"] for hit in search(tools, "name")] == [one]


@pytest.mark.parametrize(
    ("name", "reads", "seconds"),
    [
        ("memory_search", True, 15),
        ("memory_save", False, 10),
        ("memory_update", False, 10),
        ("memory_delete", False, 10),
    ],
)
def test_safety_tier_and_timeout(tools: recollect.Suite, name: str, reads: bool, seconds: int) -> None:
    """ "`memory_search` is `ReadOnly`; `memory_save`, `memory_update`, `memory_delete` are `SideEffecting`"; "Timeout | 15s",
    "Timeout | 10s"."""
    assert declared(tools, name)["annotations"]["readOnlyHint"] is reads
    page = (DOCS / "tools" / "notes.md").read_text().split(f"## {name}\n")[1].split("\n## ")[0]
    assert f"within {seconds} seconds" in page


def test_the_session_is_created_lazily(tmp_path: Path) -> None:
    """ "Ensure the user memory session (`memory:{user_id}`) is lazily created on first `memory_save` — no upfront
    provisioning needed." """
    with recollect.open(tmp_path / "m") as app:
        suite = app.tools("u1", "notes")
        assert search(suite, "name") == []
        assert "u1" not in list(app.users())
        save(suite, "User's name is Shantanu")
        assert "u1" in list(app.users())


def test_notes_persist(tmp_path: Path) -> None:
    """ "This session persists across all conversation sessions and channels for that user." """
    with recollect.open(tmp_path) as app:
        note = save(app.tools("u1", "notes", session="one"), "User's name is Shantanu")
    with recollect.open(tmp_path) as app:
        assert [hit["note_id"] for hit in search(app.tools("u1", "notes", session="two"), "name")] == [note]


# schemas


@pytest.mark.parametrize("name", NAMES)
def test_the_parameters_are_those_of_the_seed(tools: recollect.Suite, name: str) -> None:
    """ "Schema validation for all four tools (parameter names, types, required fields)", and the four tables."""
    schema = declared(tools, name)["inputSchema"]
    for key, (kind, _, says) in PARAMETERS[name].items():
        assert schema["properties"][key]["type"] == kind
        assert schema["properties"][key]["description"] == says
    assert sorted(schema["required"]) == sorted(key for key, (_, required, _) in PARAMETERS[name].items() if required)
    more = schema["properties"].keys() - PARAMETERS[name].keys()
    assert more <= {"category"}  # the seed's own extension 4


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("format", ["openai", "responses", "anthropic", "gemini", "mcp"])
def test_the_tools_are_declared_for_every_provider(tools: recollect.Suite, name: str, format: Any) -> None:
    """ "LLM-friendly schemas"; `MEMORY_SEARCH_TOOL_NAME` … `MEMORY_DELETE_TOOL_NAME`."""
    assert f'"name": "{name}"' in json.dumps(wire.declarations(tools, format))


@pytest.mark.parametrize("name", NAMES)
def test_the_descriptions_are_those_of_step_9(tmp_path: Path, name: str) -> None:
    """ "Tool descriptions are critical for the LLM to use tools correctly and proactively. Each tool's `schema()`
    description: …" With an embedder, where all of it is true."""
    with recollect.open(tmp_path, embedder=HashEmbedder()) as app:
        assert declared(app.tools("u1", "notes"), name)["description"].startswith(DESCRIPTIONS[name])


def test_the_description_claims_semantic_search_only_with_an_embedder(tmp_path: Path, tools: recollect.Suite) -> None:
    """Issue 16: "descriptions say what is true (semantic only where an embedder is set)"."""
    assert "semantic" not in declared(tools, "memory_search")["description"].casefold()
    with recollect.open(tmp_path / "other", embedder=HashEmbedder()) as app:
        assert "semantic" in declared(app.tools("u1", "notes"), "memory_search")["description"].casefold()


# memory_search


def test_search_returns_an_array_with_note_id_text_score_and_source(tools: recollect.Suite) -> None:
    """ "JSON array of matching notes/chunks with `note_id`, `text`, `score`, and `source`"; "`source` ("user_memory" or
    "conversation")"."""
    note = save(tools, "User's name is Shantanu")
    (hit,) = search(tools, "name")
    assert (hit["note_id"], hit["text"], hit["source"]) == (note, "User's name is Shantanu", "user_memory")
    assert isinstance(hit["score"], float) and 0 < hit["score"] <= 1


def test_search_gives_five_results_and_at_most_twenty(tools: recollect.Suite) -> None:
    """ "Max results to return (default: 5, max: 20)"."""
    for number in range(25):
        save(tools, f"Chapter {number} of the manual is about turbines of type {number * 7}")
    assert len(search(tools, "turbines")) == 5
    assert len(search(tools, "turbines", top_k=3)) == 3
    assert len(search(tools, "turbines", top_k=20)) == 20
    beyond = call(tools, "memory_search", query="turbines", top_k=50)
    assert isinstance(beyond, dict) or len(beyond) == 20  # an error that says so, or the maximum


def test_search_needs_a_query(tools: recollect.Suite) -> None:
    """ "`query` | string | yes"."""
    answer = call(tools, "memory_search")
    assert answer["status"] == "error" and "query" in answer["message"]


def test_results_are_ranked_by_relevance(tools: recollect.Suite) -> None:
    """ "Results are ranked by relevance using semantic similarity and keyword matching." """
    for note in ("User owns a cat", "User's cat is called Mia and the cat sleeps all day", "User plays chess"):
        save(tools, note)
    found = search(tools, "what is the cat called?")
    assert found[0]["text"].startswith("User's cat is called Mia")
    assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)


def test_the_conversation_is_searched_on_request_only(app: recollect.Recollect, tools: recollect.Suite) -> None:
    """ "Also search the current conversation session (default: false)"; "By default searches only your saved notes"."""
    app.user("shantanu").say("My sister is called Meera", session="tui-1")
    assert search(tools, "sister") == []
    (hit,) = search(tools, "sister", include_conversation=True)
    assert (hit["source"], hit["text"]) == ("conversation", "My sister is called Meera")


def test_include_conversation_means_the_current_session(app: recollect.Recollect, tools: recollect.Suite) -> None:
    """ "also search the current conversation history"."""
    app.user("shantanu").say("My sister is called Meera", session="another")
    assert search(tools, "sister", include_conversation=True) == []


def test_both_sources_are_merged_reranked_and_deduplicated(app: recollect.Recollect, tools: recollect.Suite) -> None:
    """ "`memory_search` with `include_conversation=true` merges results from both sessions"; "re-rank by score, deduplicate
    by `chunk_id`"."""
    save(tools, "User's sister is called Meera")
    app.user("shantanu").say("My sister visits us on Sunday", session="tui-1")
    found = search(tools, "sister", include_conversation=True)
    assert {hit["source"] for hit in found} == {"user_memory", "conversation"}
    assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)
    assert len({(hit["source"], hit["text"]) for hit in found}) == len(found) == 2
    assert len(search(tools, "sister", include_conversation=True, top_k=1)) == 1


def test_the_weights_of_vectors_and_words_are_configured(tmp_path: Path) -> None:
    """ "Uses configured vector/FTS weights from `RuntimeLimits::retrieval`." """
    with recollect.open(tmp_path, embedder=HashEmbedder(), weights="vector=0.2") as app:
        suite = app.tools("u1", "notes")
        save(suite, "User's name is Shantanu")
        assert texts(suite, "name") == ["User's name is Shantanu"]


@pytest.mark.parametrize("query", ["what do you know about me?", "everything", "all notes"])
def test_a_broad_query_lists_the_notes(tools: recollect.Suite, query: str) -> None:
    """ "`memory_search` with a broad query effectively lists/reads relevant notes." Corrections C8: "A broad query lists."; the
    queries are those of issue 16."""
    saved = {"User's name is Shantanu", "User likes chocolates", "The project uses libSQL"}
    for note in saved:
        save(tools, note)
    assert set(texts(tools, query)) == saved


@pytest.mark.parametrize("query", ["what do you know about me?", "everything", "all notes"])
def test_a_broad_query_lists_the_newest_first_within_the_limit(tmp_path: Path, query: str) -> None:
    """Issue 16: "lists, newest and most important first, within the limit"."""
    clock = FrozenClock()
    with recollect.open(tmp_path, clock=clock) as app:
        suite = app.tools("u1", "notes")
        things = ("apples", "bicycles", "castles", "dolphins", "elephants", "fountains", "guitars")
        for thing in things:
            save(suite, f"User photographs {thing}")
            clock.tick(days=1)
        assert texts(suite, query) == [f"User photographs {thing}" for thing in things[:1:-1]]
        assert len(search(suite, query, top_k=2)) == 2


def test_hits_carry_dates(tmp_path: Path) -> None:
    """Issue 16: "hits carry dates"."""
    clock = FrozenClock()
    with recollect.open(tmp_path, clock=clock) as app:
        suite = app.tools("u1", "notes", session="s")
        save(suite, "User's sister is called Meera")
        app.user("u1").say("My sister visits us on Sunday", session="s")
        day = clock().date().isoformat()
        for hit in search(suite, "sister", include_conversation=True):
            assert any(isinstance(value, str) and value.startswith(day) for key, value in hit.items() if key != "text")


def test_a_long_note_is_found_by_any_part_of_it(tools: recollect.Suite) -> None:
    """ "Notes are a logical grouping of one or more chunks"; "verify all chunks are found"."""
    filler = " ".join(f"Paragraph {number} speaks of ordinary matters and quiet afternoons." for number in range(400))
    note = save(tools, f"The release is cut on Mondays. {filler} The deployment key lives in the blue cupboard.")
    assert [hit["note_id"] for hit in search(tools, "release")] == [note]
    assert [hit["note_id"] for hit in search(tools, "blue cupboard")] == [note]


# memory_save


def test_save_returns_a_note_id_and_a_confirmation(tools: recollect.Suite) -> None:
    """ "JSON object with `note_id` (stable identifier for future update/delete) and confirmation message." """
    answer = call(tools, "memory_save", content="User's name is Shantanu")
    assert answer["status"] == "success" and answer["note_id"].startswith("note-") and answer["message"]


def test_save_needs_content(tools: recollect.Suite) -> None:
    """ "`content` | string | yes"."""
    for arguments in ({}, {"content": ""}):
        answer = call(tools, "memory_save", **arguments)
        assert answer["status"] == "error" and "content" in answer["message"]


# memory_update


def test_the_workflow_of_update(tools: recollect.Suite) -> None:
    """ "1. `memory_search("user's name")` → finds note `note-abc123` with "User's name is Shantanu" 2. `memory_update("note-
    abc123", "User prefers to be called SG")`"; "keeping the identifier stable"."""
    saved = save(tools, "User's name is Shantanu")
    (hit,) = search(tools, "user's name")
    assert hit["note_id"] == saved
    answer = call(tools, "memory_update", note_id=hit["note_id"], content="User prefers to be called SG")
    assert answer["status"] == "success" and answer["note_id"] == saved and answer["message"]
    assert [(one["note_id"], one["text"]) for one in search(tools, "called")] == [
        (saved, "User prefers to be called SG")
    ]


def test_update_replaces_every_chunk(tools: recollect.Suite) -> None:
    """ "Update a note: verify old chunks removed, new chunks created with same note_id". What it said before is found as
    earlier at most (Corrections C8), never as its text."""
    filler = " ".join(f"Paragraph {number} speaks of ordinary matters." for number in range(300))
    note = save(tools, f"{filler} The key lives in the blue cupboard.")
    call(tools, "memory_update", note_id=note, content="The key lives in the safe.")
    assert [(hit["note_id"], hit["text"]) for hit in search(tools, "key")] == [(note, "The key lives in the safe.")]
    assert not any("blue cupboard" in text for text in texts(tools, "blue cupboard"))


def test_update_of_a_nonexistent_note_is_an_error(tools: recollect.Suite) -> None:
    """ "`memory_update` with nonexistent note_id returns error"."""
    answer = call(tools, "memory_update", note_id="note-nonexistent", content="x")
    assert answer["status"] == "error" and "note-nonexistent" in answer["message"]
    assert search(tools, "x") == []


# memory_delete


def test_the_workflow_of_delete(app: recollect.Recollect, tools: recollect.Suite) -> None:
    """ "1. `memory_search("chocolates")` → finds note `note-xyz789` with "User likes chocolates" 2. `memory_delete("note-
    xyz789")`"; "Return confirmation"; "deleted notes don't reappear in recalls"."""
    save(tools, "User likes chocolates")
    (hit,) = search(tools, "chocolates")
    answer = call(tools, "memory_delete", note_id=hit["note_id"])
    assert answer["status"] == "success" and answer["message"]
    assert search(tools, "chocolates", include_conversation=True) == []
    assert search(tools, "everything", include_conversation=True) == []
    assert "chocolates" not in app.user("shantanu").context("chocolates", include_conversation=True)


def test_delete_removes_every_chunk(tools: recollect.Suite) -> None:
    """ "Delete chunks by `note_id`, verify cleanup of chunks + embeddings + FTS"."""
    filler = " ".join(f"Paragraph {number} speaks of ordinary matters." for number in range(300))
    note = save(tools, f"The release is cut on Mondays. {filler} The key lives in the blue cupboard.")
    call(tools, "memory_delete", note_id=note)
    for query in ("release", "ordinary matters", "blue cupboard"):
        assert search(tools, query) == []


def test_delete_cleans_up_embeddings_too(tmp_path: Path) -> None:
    """ "Delete the chunks from `chunks`, `chunks_vec`, and `chunks_fts`"."""
    with recollect.open(tmp_path, embedder=HashEmbedder()) as app:
        suite = app.tools("u1", "notes")
        note = save(suite, "User likes chocolates")
        assert texts(suite, "chocolates") == ["User likes chocolates"]
        call(suite, "memory_delete", note_id=note)
        assert search(suite, "chocolates") == []


def test_delete_of_a_nonexistent_note_is_an_error(tools: recollect.Suite) -> None:
    """ "Return confirmation or "note not found" error"; "`memory_delete` with nonexistent note_id returns error"."""
    note = save(tools, "User likes chocolates")
    call(tools, "memory_delete", note_id=note)
    for missing in ("note-nonexistent", note):
        answer = call(tools, "memory_delete", note_id=missing)
        assert answer["status"] == "error" and missing in answer["message"]


# the roundtrip of step 10


def test_roundtrip_save_then_search(tools: recollect.Suite) -> None:
    """ "Save "User's name is Shantanu" → search "name" → finds it"."""
    save(tools, "User's name is Shantanu")
    assert texts(tools, "name") == ["User's name is Shantanu"]


def test_roundtrip_update_then_search(tools: recollect.Suite) -> None:
    """ "Update to "User prefers SG" → search "name" → finds updated version, old version gone"."""
    note = save(tools, "User's name is Shantanu")
    call(tools, "memory_update", note_id=note, content="User prefers SG")
    found = search(tools, "name")
    assert [hit["note_id"] for hit in found] == [note]
    assert "User prefers SG" in found[0]["text"] and "Shantanu" not in found[0]["text"]


def test_a_note_is_found_by_what_it_said_before_and_marked_as_earlier(tools: recollect.Suite) -> None:
    """Corrections C8: "`memory_search` finds a note by what it said before its update, marked as earlier." """
    note = save(tools, "User's name is Shantanu")
    call(tools, "memory_update", note_id=note, content="User prefers SG")
    (hit,) = search(tools, "Shantanu")
    assert hit["note_id"] == note and "earlier" in json.dumps(hit).casefold()


def test_roundtrip_delete_then_search(tools: recollect.Suite) -> None:
    """ "Delete → search "name" → no results"; "Full save → search → update → search → delete → search lifecycle"."""
    note = save(tools, "User's name is Shantanu")
    call(tools, "memory_update", note_id=note, content="User prefers SG")
    call(tools, "memory_delete", note_id=note)
    assert search(tools, "name") == []
    assert search(tools, "SG") == []


# the pipeline


def test_all_tools_say_clearly_that_memory_is_not_configured(tmp_path: Path) -> None:
    """ "All tools return clear errors when memory is not configured"."""
    with recollect.open(tmp_path) as app:
        note = save(app.tools("u1", "notes"), "User likes chocolates")
    with recollect.open(tmp_path, enabled=False) as app:
        suite = app.tools("u1", "notes")
        for name, arguments in (
            ("memory_save", {"content": "User likes tea"}),
            ("memory_update", {"note_id": note, "content": "User likes tea"}),
        ):
            answer = call(suite, name, **arguments)
            assert answer["status"] != "success"
            assert re.search(r"paused|disabled|off|not configured", answer["message"])


def test_a_store_that_cannot_be_opened_is_a_clear_error(tmp_path: Path) -> None:
    """ "All tools return clear errors when memory is not configured": the folder is no folder."""
    (tmp_path / "memory").write_text("a file")
    try:
        app = recollect.open(tmp_path / "memory")
        answer = call(app.tools("u1", "notes"), "memory_save", content="User likes tea")
    except recollect.RecollectError as error:
        assert str(tmp_path / "memory") in str(error)
    else:
        assert answer["status"] == "error" and answer["message"]


def test_the_tools_appear_in_the_schemas_sent_to_the_provider(app: recollect.Recollect) -> None:
    """ "Memory tools appear in tool schemas sent to the provider"."""
    with ModelServer([Say("Hello!")]) as server, open_model(f"{server.openai_url}#any") as model:
        Discussion(app.tools("u1", "notes", session="s1"), model).answer("Hi")
        assert set(NAMES) <= {tool.name for tool in server.requests[0].tools}


def test_the_current_user_and_session_are_set_before_a_tool_runs(app: recollect.Recollect) -> None:
    """ "Context holders correctly set before tool execution": two users at once, each with their own conversation."""
    for user in ("a", "b"):
        app.user(user).say(f"The code word is {user}{user}{user}", session=f"s-{user}")

    async def both() -> list[str]:
        found = await asyncio.gather(
            *(
                app.tools(user, "notes", session=f"s-{user}").acall(
                    "memory_search", {"query": "code word", "include_conversation": True}
                )
                for user in "ab" * 10
            )
        )
        return [one.text for one in found]

    for number, text in enumerate(asyncio.run(both())):
        user = "ab"[number % 2]
        assert [hit["text"] for hit in json.loads(text)] == [f"The code word is {user}{user}{user}"]


def test_output_is_truncated_and_still_json(tools: recollect.Suite) -> None:
    """ "Memory tools work within the existing execution pipeline (safety tier gating, timeout, output truncation,
    scrubbing)"."""
    for number in range(20):
        save(tools, f"Turbine {number}: " + " ".join(f"w{number}x{word}" for word in range(900)))
    result = tools.call("memory_search", {"query": "turbine", "top_k": 20})
    assert len(result.text) <= 20_000
    json.loads(result.text)


def test_secrets_are_scrubbed(app: recollect.Recollect, tools: recollect.Suite) -> None:
    """ "scrubbing": a key never comes out of memory."""
    key = "sk-ant-api03-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"
    tools.call("memory_save", {"content": f"The API key is {key}"})
    app.user("shantanu").say(f"Use the key {key} for the API", session="tui-1")
    assert key not in tools.call("memory_search", {"query": "API key", "include_conversation": True}).text


def test_messages_are_stored_and_retrieved_automatically_beside_the_tools(app: recollect.Recollect) -> None:
    """ "the runtime auto-stores messages, auto-retrieves relevant context, and auto-summarizes"; "How the tools complement
    automatic context retrieval"."""
    save(app.tools("u1", "notes", session="old"), "User's dog is called Rex")
    with ModelServer([Say("Rex!")]) as server, open_model(f"{server.openai_url}#any") as model:
        Discussion(app.tools("u1", "notes", session="s1"), model).answer("What is my dog called?")
        assert "Rex" in server.requests[0].system
    said = [message.text for message in app.user("u1").read(kind="message")]
    assert any("What is my dog called?" in text for text in said) and any("Rex!" in text for text in said)


def test_the_tools_work_on_the_command_line_too(tmp_path: Path) -> None:
    """ "Composable with existing infra": the same notes from a shell."""
    common = ("--root", str(tmp_path), "--user", "u1")
    saved = run_separately("tool", "memory_save", '{"content": "User likes tea"}', *common, text=True)
    assert saved.returncode == 0, saved.stderr
    found = run_separately("tool", "memory_search", '{"query": "tea"}', *common, text=True)
    assert json.loads(found.stdout)[0]["text"] == "User likes tea"


# documentation


def test_the_documentation_has_the_catalogue_and_the_workflow() -> None:
    """ "Add memory tools to the tool catalog in Chapter 4, with descriptions and safety tiers"; "The LLM's typical workflow
    (search → update/delete)"."""
    page = (DOCS / "tools" / "notes.md").read_text()
    for name in NAMES:
        part = page.split(f"## {name}\n")[1].split("\n## ")[0]
        assert re.search(r"It (reads|writes|forgets)", part)
    assert "First use memory_search to find the note and its note_id" in page


# Future extensions


def test_a_search_across_all_conversations_is_a_tool(app: recollect.Recollect) -> None:
    """ "Cross-conversation search (Phase 14): … `memory_search` can span all conversation sessions for a user". Corrections C8:
    "A search across conversations is a tool." """
    app.user("u1").say("We met Priya at the opera", session="monday")
    app.user("u1").say("The plumber comes at nine", session="tuesday")
    suite = app.tools("u1", session="friday")
    names = [
        tool["name"]
        for tool in wire.declarations(suite, "mcp")
        if "search" in tool["name"] and re.search("session|conversation", tool["name"])
    ]
    assert names, "no tool searches across conversations"
    answer = suite.call(names[0], {"query": "opera"}).text
    assert "Priya" in answer and "monday" in answer and "plumber" not in answer


def test_sessions_are_listed_read_and_deleted(app: recollect.Recollect) -> None:
    """ "`memory_list_sessions`, `memory_read_session`, `memory_delete_session` with proper session metadata (titles, summaries,
    timestamps)"."""
    app.user("u1").say("We met Priya at the opera", session="monday")
    suite = app.tools("u1", "sessions", session="friday")
    listed = call(suite, "memory_list_sessions")
    (session,) = listed["sessions"] if isinstance(listed, dict) else listed
    assert session["session_id"] == "monday"
    assert any(re.match(r"\d{4}-\d\d-\d\d", str(value)) for value in session.values())
    assert "Priya" in json.dumps(call(suite, "memory_read_session", session_id="monday"))
    call(suite, "memory_delete_session", session_id="monday")
    assert "monday" not in suite.call("memory_list_sessions", {}).text


def test_sessions_have_titles_and_summaries(app: recollect.Recollect) -> None:
    """ "proper session metadata (titles, summaries, timestamps)"."""
    app.user("u1").say("We met Priya at the opera", session="monday")
    listed = call(app.tools("u1", "sessions"), "memory_list_sessions")
    (session,) = listed["sessions"] if isinstance(listed, dict) else listed
    assert session["title"]
    assert "summary" in session


def test_notes_are_exported_and_imported(app: recollect.Recollect) -> None:
    """ "Bulk note operations: `memory_export` / `memory_import` for backup/migration." """
    first = app.tools("u1", "notes", "sessions")
    for note in ("User's name is Shantanu", "User likes chocolates"):
        save(first, note)
    second = app.tools("u2", "notes", "sessions")
    second.call("memory_import", {"data": first.call("memory_export", {}).text})
    assert texts(second, "name") == ["User's name is Shantanu"]
    assert texts(second, "chocolates") == ["User likes chocolates"]


@pytest.mark.parametrize("name", ["memory_save", "memory_search"])
def test_category_is_an_optional_parameter(tools: recollect.Suite, name: str) -> None:
    """ "Add optional `category` parameter to `memory_save` and `memory_search`". Corrections C8: "`category` on save and
    search"."""
    schema = declared(tools, name)["inputSchema"]
    assert schema["properties"]["category"]["type"] == "string"
    assert "category" not in schema["required"]


def test_category_filters_the_search(tools: recollect.Suite) -> None:
    """ "used as an optional filter in search queries", "without imposing structure on the content itself"."""
    save(tools, "The green tea is in the kitchen", category="household")
    save(tools, "The tea company is our largest client", category="work")
    save(tools, "Tea is drunk at five")
    assert texts(tools, "tea", category="work") == ["The tea company is our largest client"]
    assert len(search(tools, "tea")) == 3
    assert texts(tools, "everything", category="household") == ["The green tea is in the kitchen"]


def test_an_update_keeps_the_category(tools: recollect.Suite) -> None:
    """ "Stored in chunk metadata": it is the note's, and `memory_update` has no such parameter."""
    note = save(tools, "The tea company is our largest client", category="work")
    save(tools, "The green tea is in the kitchen", category="household")
    call(tools, "memory_update", note_id=note, content="The tea company is our second client")
    assert texts(tools, "tea", category="work") == ["The tea company is our second client"]


def test_plain_functions_have_the_same_names_and_arguments(tools: recollect.Suite) -> None:
    """The four tools for a framework that takes functions: `memory_update("note-abc123", "User prefers to be called SG")`."""
    functions = tools.functions()
    note = save(tools, "User's name is Shantanu")
    assert list(inspect.signature(functions["memory_update"]).parameters) == ["note_id", "content"]
    assert json.loads(functions["memory_update"](note, "User prefers to be called SG"))["note_id"] == note
    assert json.loads(functions["memory_search"]("called"))[0]["text"] == "User prefers to be called SG"
