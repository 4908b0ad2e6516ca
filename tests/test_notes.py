"""The suite `notes`, as seed C has it: its lifecycle, scoping and round trips."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recollect
from recollect.tools.notes import TOOLS
from recollect.tools.tool import record_of
from tests.tooling import SEED_TOOLS, Caller, caller


@pytest.fixture
def app(tmp_path: Path) -> recollect.Recollect:
    return recollect.open(tmp_path)


@pytest.fixture
def call(app: recollect.Recollect) -> Caller:
    return caller(app, "u1", "notes", session="s1")


def test_T2_tiers_and_timeouts_are_those_of_the_seed() -> None:
    tiers = {"ReadOnly": ("read_only",), "SideEffecting": ("side_effecting", "destructive")}
    for tool in TOOLS:
        seed = SEED_TOOLS[tool.name]
        assert tool.tier in tiers[seed["tier"]] and tool.timeout == seed["timeout"]


def test_T2_the_round_trip_of_the_seed(call: Caller) -> None:
    saved = call("memory_save", content="User's name is Shantanu")
    assert saved["status"] == "success"
    note = saved["note_id"]
    found = call("memory_search", query="name")
    assert [(hit["note_id"], hit["text"], hit["source"]) for hit in found] == [
        (note, "User's name is Shantanu", "user_memory")
    ]
    assert 0 < found[0]["score"] <= 1
    assert call("memory_update", note_id=note, content="User prefers the name SG")["note_id"] == note
    assert [hit["text"] for hit in call("memory_search", query="name")] == ["User prefers the name SG"]
    (earlier,) = call("memory_search", query="Shantanu")
    assert (earlier["note_id"], earlier["text"]) == (note, "User prefers the name SG")
    assert earlier["earlier"] == "User's name is Shantanu"
    assert call("memory_delete", note_id=note)["status"] == "success"
    assert call("memory_search", query="name") == []


@pytest.mark.parametrize("tool", ["memory_update", "memory_delete"])
def test_T2_a_note_that_does_not_exist_is_a_clear_error(call: Caller, tool: str) -> None:
    more = {"content": "x"} if tool == "memory_update" else {}
    for note_id in ("note-abc123", "note-01jcs0m3y7q8r9t0v1w2x3y4z5", "7"):
        result = call.result(tool, note_id=note_id, **more)
        assert result.status == "error"
        assert result.content == {
            "status": "error",
            "message": f"there is no note '{note_id}'; memory_search lists the ids of notes",
        }
    assert call.suite.memory.read() == []


def test_T2_a_deleted_note_cannot_be_updated(call: Caller) -> None:
    note = call("memory_save", content="User likes chocolates")["note_id"]
    call("memory_delete", note_id=note)
    assert "was deleted" in call("memory_update", note_id=note, content="likes tea")["message"]


def test_T2_the_same_note_is_saved_once(call: Caller) -> None:
    note = call("memory_save", content="User likes chocolates")["note_id"]
    again = call("memory_save", content="user likes chocolates.")
    assert (again["status"], again["note_id"]) == ("duplicate", note)


def test_T2_users_never_see_each_other(app: recollect.Recollect) -> None:
    a, b = caller(app, "a", "notes"), caller(app, "b", "notes")
    note = a("memory_save", content="User A likes chocolates")["note_id"]
    assert b("memory_search", query="chocolates") == []
    assert b("memory_delete", note_id=note)["status"] == "error"
    assert b("memory_update", note_id=note, content="mine")["status"] == "error"
    assert len(a("memory_search", query="chocolates")) == 1


def test_T2_notes_are_the_users_and_not_the_sessions(app: recollect.Recollect) -> None:
    caller(app, "u1", "notes", session="tui")("memory_save", content="User likes chocolates")
    assert len(caller(app, "u1", "notes", session="whatsapp")("memory_search", query="chocolates")) == 1


def test_T2_S9_the_conversation_is_searched_on_request(call: Caller, app: recollect.Recollect) -> None:
    memory = app.user("u1")
    call("memory_save", content="User likes dark chocolates")
    memory.say("I had chocolates in Brussels", session="s1", speaker="Ann")
    memory.say("Chocolates were bought in Zurich", session="another")
    assert len(call("memory_search", query="chocolates")) == 1
    found = call("memory_search", query="chocolates", include_conversation=True)
    assert {hit["source"] for hit in found} == {"user_memory", "conversation"}
    assert any("Brussels" in hit["text"] for hit in found) and not any("Zurich" in hit["text"] for hit in found)
    assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)
    assert len(call("memory_search", query="chocolates", include_conversation=True, top_k=1)) == 1


def test_T2_S9_what_was_said_and_saved_is_found_once(call: Caller, app: recollect.Recollect) -> None:
    app.user("u1").say("I like chocolates", session="s1")
    call("memory_save", content="I like chocolates")
    assert len(call("memory_search", query="chocolates", include_conversation=True)) == 1


def test_T2_deleting_a_note_removes_the_message_that_is_the_same(call: Caller, app: recollect.Recollect) -> None:
    memory = app.user("u1")
    memory.say("I like chocolates", session="s1")
    memory.say("I like chocolates from Lviv and from Brussels", session="s1")
    note = call("memory_save", content="I like chocolates")["note_id"]
    assert "1 message" in call("memory_delete", note_id=note)["message"]
    found = call("memory_search", query="chocolates", include_conversation=True)
    assert [hit["text"] for hit in found] == ["I like chocolates from Lviv and from Brussels"]
    entry = memory.history(note)[-1]
    assert entry.run is not None
    memory.undo(entry.run)
    assert len(memory.search("chocolates", include_conversation=True)) == 2


def test_T2_top_k_is_at_most_20(call: Caller) -> None:
    with call.suite.memory.batch() as memory:
        for number in range(30):
            memory.note(f"chocolate number {number} came from city {number * 7}")
    assert len(call("memory_search", query="chocolate", top_k=500)) == 20


def test_T2_a_long_note_answers_with_the_part_that_matched(call: Caller) -> None:
    filler = "\n\n".join(f"Paragraph {n} speaks of weather, gardens and long walks by the river." for n in range(60))
    call("memory_save", content=f"{filler}\n\nThe safe word is xylophone.\n\n{filler}")
    (hit,) = call("memory_search", query="xylophone")
    assert "xylophone" in hit["text"] and len(hit["text"]) < 4000


def test_C8_a_broad_query_lists_the_newest_and_most_important(app: recollect.Recollect, call: Caller) -> None:
    memory = app.user("u1")
    memory.note("Bought tulips", importance=1.0)
    for number in range(6):
        memory.note(f"Paid invoice {number} to supplier {number * 7}")
    for query in ("everything", "Що ти знаєш про мене?", "was weißt du über mich?", "所有笔记", "list all my notes"):
        found = [hit["text"] for hit in call("memory_search", query=query)]
        assert len(found) == 5 and found[0] == "Bought tulips" and found[1].startswith("Paid invoice 5"), query
    for query in ("notes about tulips", "what do you know about tulips?"):
        assert [hit["text"] for hit in call("memory_search", query=query)] == ["Bought tulips"], query


def test_C8_what_a_note_said_before_is_found_until_it_is_erased(app: recollect.Recollect, call: Caller) -> None:
    note = call("memory_save", content="User's name is Shantanu")["note_id"]
    call("memory_update", note_id=note, content="User prefers SG")
    call("memory_update", note_id=note, content="User prefers Sam")
    (hit,) = call("memory_search", query="Shantanu")
    assert (hit["text"], hit["earlier"]) == ("User prefers Sam", "User's name is Shantanu")
    assert app.user("u1").search("Shantanu") == []
    app.user("u1").erase_topic("Shantanu")
    assert call("memory_search", query="Shantanu") == []


def test_C8_what_a_corrected_or_undone_note_said_is_not_an_earlier_state(
    app: recollect.Recollect, call: Caller
) -> None:
    memory = app.user("u1")
    note = call("memory_save", content="The piano is green")["note_id"]
    memory.update(note, "The organ is red", reason="correction")
    assert call("memory_search", query="piano") == []
    memory.undo()
    assert [hit["text"] for hit in call("memory_search", query="piano")] == ["The piano is green"]


def test_C8_the_earlier_wording_stays_behind_the_wall_of_its_chat(app: recollect.Recollect) -> None:
    one, two = (app.tools("u1", "notes", chat=chat, session=chat) for chat in ("1", "2"))
    note = json.loads(one.call("memory_save", {"content": "The code word is zorblatt"}).text)["note_id"]
    one.call("memory_update", {"note_id": note, "content": "There is no password now"})
    assert "earlier" in one.call("memory_search", {"query": "zorblatt"}).text
    assert json.loads(two.call("memory_search", {"query": "zorblatt"}).text) == []
    assert json.loads(two.call("memory_search", {"query": "everything"}).text) == []


def test_C8_a_category_is_found_however_it_is_written(app: recollect.Recollect, call: Caller) -> None:
    call("memory_save", content="The tea company is our client", category="Big Clients")
    app.user("u1").remember("Prefers tea", category="preference")
    assert [hit["category"] for hit in call("memory_search", query="tea", category=" big  clients")] == ["big clients"]
    assert [hit["text"] for hit in call("memory_search", query="tea", category="preference")] == ["Prefers tea"]
    assert call("memory_search", query="tea", category="garden") == []


REWRITES = [
    ("notes", "memory_update", "note_id", "content"),
    ("notes", "memory_delete", "note_id", None),
    ("entries", "update_memory", "key", "value"),
    ("entries", "delete_memory", "key", None),
]


@pytest.mark.parametrize(("suite", "tool", "ref", "text"), REWRITES)
@pytest.mark.parametrize("length", [None, 8])
def test_no_tool_rewrites_or_deletes_what_the_person_said(
    app: recollect.Recollect, suite: str, tool: str, ref: str, text: str | None, length: int | None
) -> None:
    memory = app.user("u1")
    said = record_of(memory.say("The barn roof leaks", session="s1")).id
    named = said if length is None else said[-length:]
    result = caller(app, "u1", suite, session="s1").result(
        tool, **{ref: named}, **({text: "The roof is fine"} if text else {})
    )
    assert result.status == "refused" and "a message, which stays as it was said" in result.text
    assert memory.get(said).content == "The barn roof leaks" and memory.get(said).status == "active"


@pytest.mark.parametrize(("suite", "tool", "ref", "text"), [REWRITES[0], REWRITES[2]])
def test_no_tool_rewrites_observations_and_episodes(
    app: recollect.Recollect, suite: str, tool: str, ref: str, text: str
) -> None:
    memory = app.user("u1")
    seen = record_of(memory.observe("The API allows 100 requests a minute", "finding")).id
    episode = record_of(memory.episode("Barn", "We talked about the barn.")).id
    for record in (seen, episode):
        before = memory.get(record)
        result = caller(app, "u1", suite).result(tool, **{ref: record}, **{text: "Something else"})
        assert result.status == "refused" and "Not changed" in result.text
        assert memory.get(record) == before


def test_only_the_person_changes_the_words_of_a_message(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    said = record_of(memory.say("The barn roof leaks", session="s1")).id
    other = record_of(memory.say("The barn is red", session="s1")).id
    for agent in (memory.acting(agent="bot"), memory.acting("tool:x"), memory.acting("extraction")):
        outcome = agent.update(said, "The barn roof is fine")
        assert isinstance(outcome, recollect.Refused) and outcome.reason == "message"
        assert isinstance(agent.merge([said, other], "All is fine"), recollect.Refused)
        assert agent.update(said, importance=0.9 if agent.get(said).importance < 0.9 else 0.8).done
    assert memory.get(said).content == "The barn roof leaks"
    assert memory.update(said, "The barn roof leaks badly").done


@pytest.mark.parametrize("query", ["everything", "what do you know about me?", "*", ""])
def test_a_broad_query_lists_also_beside_a_very_long_note(call: Caller, query: str) -> None:
    notes = [call("memory_save", content=f"User likes {thing}")["note_id"] for thing in ("tea", "chess", "cats")]
    text = " ".join(f'Item {n}: the board spoke about "matter {n}" at length.' for n in range(700))
    notes += [call("memory_save", content=f"Minutes {day}. {text}")["note_id"] for day in ("of May", "of June")]
    result = call.result("memory_search", query=query, top_k=20)
    found = json.loads(result.text)
    assert isinstance(found, list) and {hit["note_id"] for hit in found} == set(notes)
    assert len(result.text) <= 20_000
    assert all(hit["text"].endswith("…") == hit["text"].startswith("Minutes") for hit in found)


def test_a_known_note_under_another_category_is_filed_there_too(call: Caller) -> None:
    note = call("memory_save", content="User likes rowing", category="Sport")["note_id"]
    told = call("memory_save", content="User likes rowing", category="hobby")
    assert (told["status"], told["note_id"]) == ("duplicate", note)
    assert told["message"] == "Already saved, now filed under hobby too: User likes rowing"
    for category in ("sport", "hobby"):
        assert [hit["note_id"] for hit in call("memory_search", query="rowing", category=category)] == [note]
    again = call("memory_save", content="User likes rowing", category="hobby")
    assert again["message"] == "Already saved, and filed under hobby: User likes rowing"
    assert call("memory_save", content="User likes rowing", category="sport")["message"].startswith("Already saved: ")
