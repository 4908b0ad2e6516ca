"""The discussion agent: memory in the prompt, tools, stored messages, a rolling summary; and what it does without a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect.agents.discuss import Discussion
from recollect.agents.models import open_model
from recollect.config import SUITE_NAMES
from recollect.errors import ConfigError
from recollect.surfaces.chat.conversation import Conversation
from recollect.testing.models import Call, Fail, ModelRequest, ModelServer, Say
from recollect.tools.catalog import SUITES


@pytest.fixture
def app(tmp_path: Path) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path) as app:
        yield app


def _discussion(app: recollect.Recollect, server: ModelServer | None, title: str | None = None) -> Discussion:
    model = None if server is None else open_model(f"{server.openai_url}#test", key="test")
    return Discussion(app.tools("u1", "notes", session="d1"), model, title=title)


def test_G8_memory_is_in_the_system_prompt_and_messages_are_stored(app: recollect.Recollect) -> None:
    app.user("u1").remember("Senior engineer at Stripe", key="role", category="work_context")
    with ModelServer([Say("Vacuum is faster now.")]) as server:
        talk = _discussion(app, server, title="PostgreSQL 18")
        talk.begin()
        answer = talk.answer("What is new in vacuum?")
        assert answer.text == "Vacuum is faster now." and answer.degraded is None
        asked = server.requests[0]
    assert "## User Memory" in (asked.system or "") and "Senior engineer at Stripe" in (asked.system or "")
    assert "PostgreSQL 18" in (asked.system or "")
    assert {tool.name for tool in asked.tools} == {"memory_search", "memory_save", "memory_update", "memory_delete"}
    said = [
        (one.role, one.content) for one in app.user("u1").read(kind="message") if isinstance(one, recollect.Message)
    ]
    assert said == [("user", "What is new in vacuum?"), ("assistant", "Vacuum is faster now.")]
    assert any(row.operation == "discuss" for row in app.user("u1").usage())
    (event,) = app.user("u1").interactions(kinds=("discussion",))
    assert (event.title, event.session) == ("PostgreSQL 18", "d1")


def test_G8_the_model_uses_the_tools(app: recollect.Recollect) -> None:
    with ModelServer([Call("memory_save", {"content": "Evaluating PostgreSQL 18"}), Say("Good luck!")]) as server:
        assert _discussion(app, server).answer("We evaluate PG 18 for production").text == "Good luck!"
    assert [note.content for note in app.user("u1").read(kind="note")] == ["Evaluating PostgreSQL 18"]


def test_G8_G4_what_the_person_asks_to_remember_is_kept_before_the_model_answers(app: recollect.Recollect) -> None:
    with ModelServer([Fail(503, "down")] * 9) as server:
        talk = _discussion(app, server)
        talk._model._sleep = lambda seconds: None  # type: ignore[union-attr]
        answer = talk.answer("Remember that I prefer technical articles")
    assert answer.text == "Got it, I'll remember that."
    assert answer.degraded is not None and answer.degraded.startswith("unavailable")
    assert "Prefers technical articles" in app.user("u1").show()


def test_G8_a_conversation_is_taken_up_again(app: recollect.Recollect) -> None:
    with ModelServer([Say("Hello Ann."), Say("You are Ann.")]) as server:
        _discussion(app, server).answer("I am Ann")
        _discussion(app, server).answer("Who am I?")
        asked = server.requests[1]
    assert [message.text for message in asked.messages] == ["I am Ann", "Hello Ann.", "Who am I?"]


def test_G8_a_long_conversation_is_carried_on_by_a_rolling_summary(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    for number in range(60):
        role = "assistant" if number % 2 else "user"
        memory.say(
            f"Message {number}: " + f"we compared engine number {number} with others at length. " * 6,
            session="d1",
            role=role,
        )

    def script(asked: ModelRequest) -> Say:
        if "Sum up" in (asked.system or ""):
            first = "engine number 0 " in asked.messages[-1].text
            return Say("SUMMARY ONE" if first else "SUMMARY TWO")
        return Say("Noted. " + "All of these engines were compared for a very long time indeed. " * 10)

    with ModelServer(script) as server:
        talk = _discussion(app, server)
        talk.answer("Which was best?")
        last = server.requests[-1]
        assert "SUMMARY ONE" in last.messages[0].text
        assert "engine number 0 " not in "".join(message.text for message in last.messages)
        assert last.messages[-1].text.endswith("Which was best?")
        before = len([one for one in server.requests if "Sum up" in (one.system or "")])
        for number in range(12):
            talk.answer(f"And now? {number}")
        again = [one for one in server.requests if "Sum up" in (one.system or "")][before:]
        assert again and all("SUMMARY" in one.messages[-1].text for one in again), "only what is new is summed up"
        assert "SUMMARY TWO" in server.requests[-1].messages[0].text


def test_G8_without_a_model_it_answers_from_memory(app: recollect.Recollect) -> None:
    talk = _discussion(app, None)
    assert talk.answer("What about vacuum?").text == "I have nothing about that in memory."
    app.user("u1").remember("Interested in vacuum improvements")
    assert talk.answer("What about vacuum?").text == "What I remember about that:\n- Interested in vacuum improvements"
    assert talk.answer("remember that I like tea").text == "Got it, I'll remember that."


def test_G8_P7_paused_nothing_is_stored_and_the_model_still_answers(app: recollect.Recollect) -> None:
    app.user("u1").remember("Likes tea")
    app.user("u1").pause()
    with ModelServer([Say("Hello.")]) as server:
        assert _discussion(app, server).answer("Hi there").text == "Hello."
        assert "Likes tea" in (server.requests[0].system or "")
    assert app.user("u1").read(kind="message") == []


def test_G8_G4_remember_this_is_about_the_words_of_the_person(app: recollect.Recollect) -> None:
    talk = _discussion(app, None)
    talk.answer("I live in Oslo")
    assert talk.answer("remember this").text == "Got it, I'll remember that."
    assert app.user("u1").get("location").content == "Oslo"


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Hello!", "Hello! Tell me something, or ask what I remember."),
        ("Добрий день, Рексе", "Hello! Tell me something, or ask what I remember."),
        ("Hi, I'm a nurse and I live in Lviv", "Noted."),
        ("Do you know my name?", "I have nothing about that in memory."),
    ],
)
def test_G8_without_a_model_it_answers_as_one_would_expect(app: recollect.Recollect, said: str, answer: str) -> None:
    assert _discussion(app, None).answer(said).text == answer


def test_G8_P7_without_a_model_it_says_that_nothing_is_kept(app: recollect.Recollect) -> None:
    app.user("u1").note("exists")
    for off, told in ((False, "Memory is paused"), (True, "This is incognito")):
        app.user("u1").pause(incognito=off)
        assert told in _discussion(app, None).answer("I live in Oslo now").text


def test_C11_the_persona_comes_first_and_guidance_only_with_the_tools(tmp_path: Path) -> None:
    with ModelServer(lambda asked: Say("Ага")) as server, open_model(f"{server.openai_url}#test", key="k") as model:
        for tool_based in (True, False):
            with recollect.open(tmp_path, persona="Ти гряг, саркастичний бот.", tool_based=tool_based) as app:
                Discussion(app.tools("u1", "facts", session="d1"), model).answer("Привіт")
                Discussion(app.tools("u1", "facts", session="d2"), model, persona="You are Bo.").answer("Hi")
                Discussion(app.tools("u1", "notes", session="d3"), model).answer("Hi")
        ours, own, notes, *without = (request.system or "" for request in server.requests)
    assert ours.startswith("Ти гряг, саркастичний бот.\n") and "СИСТЕМА ПАМ'ЯТІ" in ours  # as the persona is Ukrainian
    assert own.startswith("You are Bo.\n") and "MEMORY MANAGEMENT" in own and "EPISODE CREATION" in own
    assert "remember_fact" not in notes
    assert not any("remember_fact" in each for each in without)


def test_C11_a_chat_that_began_without_tools_goes_on_without_them(tmp_path: Path) -> None:
    with ModelServer(lambda asked: Say("Mhm.")) as server, open_model(f"{server.openai_url}#test", key="k") as model:
        for setting, chats in ((0, ["old"]), (100, ["middle"]), ("new", ["old", "middle", "new", "old", "new"])):
            with recollect.open(tmp_path, tool_rollout=setting) as app:
                for chat in chats:
                    Discussion(app.tools("u1", "notes", session=chat), model).answer("Hello")
        assert [bool(asked.tools) for asked in server.requests] == [False, True, False, True, True, False, True]


def test_C11_settings_of_the_discussion_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"MEMORY_TOOL_ROLLOUT .*whole number or new"):
        recollect.Config.load({"MEMORY_TOOL_ROLLOUT": "old"})
    with pytest.raises(ConfigError, match="from 0 to 100"):
        recollect.Config(tool_rollout=101)
    with pytest.raises(ConfigError, match=r"MEMORY_TOOL_ROLLOUT .*whole number or new"):
        recollect.Config(tool_rollout="some")
    with pytest.raises(ConfigError, match="'nots' is not one of entries, notes"):
        recollect.open(tmp_path, tool_suites="facts, nots")
    with pytest.raises(ConfigError, match="MEMORY_TOOL_SUITES names no suite"):
        recollect.Config(tool_suites=" ,")
    assert tuple(SUITES) == SUITE_NAMES


def test_G1_a_model_that_only_calls_tools_leaves_the_answer_to_memory(app: recollect.Recollect) -> None:
    app.user("u1").remember("Lives in Kyiv", key="location")
    with ModelServer(lambda asked: Call("memory_search", {"query": "x"})) as server:
        answer = _discussion(app, server).answer("Where do I live?")
        assert "Kyiv" in answer.text and answer.degraded is not None and "tool calls" in answer.degraded
        model = open_model(f"{server.openai_url}#test", key="test")
        [page] = Conversation(app, ("test", "ann"), place="chat", model=model).say("Hello there")
        assert "The model did not answer (only tool calls); this is from memory." in str(page)
