"""The suite `sessions`: past conversations, and the memory in and out as text."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

import recollect
from recollect.testing import FrozenClock
from tests.tooling import Caller, caller


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(datetime(2026, 3, 1, 12, tzinfo=timezone.utc))


@pytest.fixture
def app(tmp_path: Path, clock: FrozenClock) -> recollect.Recollect:
    return recollect.open(tmp_path, clock=clock)


@pytest.fixture
def call(app: recollect.Recollect) -> Caller:
    return caller(app, "u1", "sessions")


def _talk(app: recollect.Recollect, clock: FrozenClock, session: str, *texts: str, user: str = "u1") -> None:
    for number, text in enumerate(texts):
        app.user(user).say(text, session=session, role="assistant" if number % 2 else "user")
        clock.tick(seconds=60)


def test_T5_sessions_are_listed_with_what_they_began_with(
    call: Caller, app: recollect.Recollect, clock: FrozenClock
) -> None:
    assert call("memory_list_sessions") == []
    _talk(app, clock, "first", "Shall we plan the trip to Norway?\nIn summer.", "Gladly.", "When?")
    _talk(app, clock, "second", "Hello")
    _talk(app, clock, "other", "Not mine", user="u2")
    listed = call("memory_list_sessions")
    assert [(one["session_id"], one["title"], one["messages"]) for one in listed] == [
        ("second", "Hello", 1),
        ("first", "Shall we plan the trip to Norway?", 3),
    ]
    assert (listed[1]["began"], listed[1]["ended"]) == (
        "2026-03-01T12:00:00.000000Z",
        "2026-03-01T12:02:00.000000Z",
    )
    assert [one["session_id"] for one in call("memory_list_sessions", limit=1, offset=1)] == ["first"]


def test_T5_a_session_is_read_in_pages(call: Caller, app: recollect.Recollect, clock: FrozenClock) -> None:
    _talk(app, clock, "s", *(f"Message {number}" for number in range(7)))
    page = call("memory_read_session", session_id="s", limit=3, offset=2)
    assert [(one["role"], one["text"]) for one in page] == [
        ("user", "Message 2"),
        ("assistant", "Message 3"),
        ("user", "Message 4"),
    ]
    assert call.result("memory_read_session", session_id="none").status == "error"


def test_T5_a_deleted_session_is_gone_and_can_be_brought_back(
    call: Caller, app: recollect.Recollect, clock: FrozenClock
) -> None:
    _talk(app, clock, "s", "I like norwegian cheese", "Noted")
    _talk(app, clock, "t", "I like tea")
    app.user("u1").note("The person likes norwegian cheese")
    told = call("memory_delete_session", session_id="s")
    assert told["message"] == "Deleted 2 messages."
    assert [one["session_id"] for one in call("memory_list_sessions")] == ["t"]
    assert app.user("u1").search("cheese", kinds=("message",)) == []
    assert len(app.user("u1").search("cheese")) == 1
    assert call.result("memory_delete_session", session_id="s").status == "error"
    app.user("u1").undo(told["run"])
    assert len(call("memory_list_sessions")) == 2


def test_T5_what_is_exported_can_be_imported(call: Caller, app: recollect.Recollect) -> None:
    memory = app.user("u1")
    memory.remember("Engineer", key="role", category="work_context", type="skill", confidence=0.8)
    memory.remember("Prefers tea")
    memory.note("A note of several words", tags=["x"])
    memory.observe("The API is slow", "finding")
    pages, offset = [], 0
    while True:
        told = call("memory_export", limit=3, offset=offset)
        pages.append(told)
        if "next_offset" not in told:
            break
        offset = told["next_offset"]
    assert [len(page["items"]) for page in pages] == [3, 1]
    other = caller(app, "u2", "sessions")
    for page in pages:
        assert other("memory_import", data=json.dumps(page))["status"] == "success"
    assert [(r.kind, r.key, r.category, r.type, r.content, r.confidence) for r in app.user("u2").read()] == [
        (r.kind, r.key, r.category, r.type, r.content, r.confidence) for r in memory.read()
    ]
    again = other("memory_import", data=json.dumps(pages[0]))
    assert (again["saved"], again["duplicates"]) == (0, 3)


def test_T5_import_of_texts_goes_through_the_policy(call: Caller, app: recollect.Recollect) -> None:
    texts = ["Likes tea", "Likes tea.", "token: ghp_abcdefghijklmnopqrstuvwxyz0123456789", "Lives by the sea"]
    told = call("memory_import", data=json.dumps(texts))
    assert (told["saved"], told["duplicates"], told["refused"]) == (2, 1, 1)
    assert "ghp_" not in json.dumps(told)


@pytest.mark.parametrize(
    "data", ["not json", "{}", "3", '{"items": 4}', '[{"kind": "message", "text": "x"}]', '["fine", 7]', '["fine", ""]']
)
def test_T5_a_bad_import_stores_nothing(call: Caller, app: recollect.Recollect, data: str) -> None:
    result = call.result("memory_import", data=data)
    assert result.status == "invalid"
    assert app.user("u1").read() == []


def test_C8_all_conversations_are_searched(call: Caller, app: recollect.Recollect) -> None:
    memory = app.user("u1")
    memory.say("We met Priya at the opera", session="monday", speaker="Anna")
    memory.say("The plumber comes at nine", session="tuesday")
    [hit] = call("memory_search_sessions", query="opera")
    assert (hit["session_id"], hit["text"], hit["speaker"]) == ("monday", "We met Priya at the opera", "Anna")
    assert 0 < hit["score"] <= 1 and hit["at"]
    assert {hit["session_id"] for hit in call("memory_search_sessions", query="everything")} == {"monday", "tuesday"}
    memory.acting(chat="1").say("The code word is zorblatt", session="one")
    for chat, found in (("1", True), ("7", False)):
        told = app.tools("u1", "sessions", chat=chat).call("memory_search_sessions", {"query": "zorblatt"}).text
        assert ("zorblatt" in told) is found


def test_C8_a_session_has_a_summary(call: Caller, app: recollect.Recollect) -> None:
    memory = app.user("u1")
    memory.say("We met Priya at the opera\nIt was late", session="monday")
    memory.say("Good night", session="monday", role="assistant")
    [session] = call("memory_list_sessions")
    assert (session["title"], session["summary"]) == (
        "We met Priya at the opera",
        "We met Priya at the opera … Good night",
    )
    memory.set_scratch("summary:monday", json.dumps({"until": "", "text": "An evening at the opera."}))
    assert call("memory_list_sessions")[0]["summary"] == "An evening at the opera."


def test_C8_exported_notes_keep_their_category(app: recollect.Recollect) -> None:
    notes, sessions = app.tools("u1", "notes", "sessions"), app.tools("u2", "notes", "sessions")
    notes.call("memory_save", {"content": "The tea company is our client", "category": "work"})
    sessions.call("memory_import", {"data": notes.call("memory_export", {}).text})
    assert "tea company" in sessions.call("memory_search", {"query": "tea", "category": "work"}).text
