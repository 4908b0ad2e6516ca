"""Groups: what the model knows there and what it can do, over the memories of several people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Memory, Recollect
from recollect.agents.discuss import Discussion
from recollect.agents.models import open_model
from recollect.surfaces.chat.conversation import Conversation
from recollect.surfaces.chat.members import members_of
from recollect.testing import FrozenClock
from recollect.testing.models import Call, ModelRequest, ModelServer, Say, Turn

ANN, BO, EVE = 123, 789, 555
TRIP = "telegram/-100"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def app(tmp_path: Path, clock: FrozenClock) -> Iterator[Recollect]:
    with recollect.open(tmp_path / "memory", clock=clock) as app:
        yield app


def memory(app: Recollect, person: int) -> Memory:
    return app.identities.memory(("telegram", person))


def says(app: Recollect, clock: FrozenClock, person: int, text: str, place: str = TRIP, name: str = "") -> None:
    speaker = name or {ANN: "Ann", BO: "Bo", EVE: "Eve"}[person]
    Conversation(app, ("telegram", person), place=place, speaker=speaker, clock=clock).say(text)
    clock.tick(hours=1)


def asked(
    app: Recollect,
    clock: FrozenClock,
    text: str,
    *,
    script: list[Turn] | Callable[[ModelRequest], Turn] = lambda request: Say("Mhm."),
    place: str = TRIP,
    **more: Any,
) -> list[ModelRequest]:
    """What the model is sent when Ann says something in a group."""
    with ModelServer(script) as server, open_model(f"{server.openai_url}#any") as model:
        talk = Conversation(
            app, ("telegram", ANN), place=place, speaker="Ann", model=model, suites=("facts",), clock=clock, **more
        )
        talk.say(text)
        return list(server.requests)


def test_C10_what_members_said_in_a_group_is_known_there_after_a_restart(tmp_path: Path, clock: FrozenClock) -> None:
    with recollect.open(tmp_path, clock=clock) as app:
        says(app, clock, BO, "Remember that I bring the merlot")
        says(app, clock, EVE, "Remember that I bring the canoe", place="telegram/-200")
    with recollect.open(tmp_path, clock=clock) as app:
        (request,) = asked(app, clock, "Who brings what?")
        assert "merlot" in request.system and "Memory of Bo" in request.system
        assert "Bo: Remember that I bring the merlot" in str(request.raw)
        assert "canoe" not in str(request.raw)  # another group


def test_C10_nothing_private_of_any_member_enters_a_group(app: Recollect, clock: FrozenClock) -> None:
    for person in (ANN, BO):
        memory(app, person).remember(f"Salary is 9000{person}", key="salary")
        memory(app, person).consent("across_chats")
        Conversation(app, ("telegram", person), place=f"telegram/{person}", clock=clock).say(
            f"I owe 4000{person} euros"
        )
        says(app, clock, person, "Hello everybody")
    script: list[Turn] = [
        Call("recall_facts", {"user_id": BO}),
        Call("recall_facts", {"user_id": BO, "search_query": "salary"}),
        Call("recall_episodes", {}),
        Say("I do not know."),
    ]
    requests = asked(app, clock, "What is the salary of Bo, and what does he owe?", script=script)
    told = "".join(str(request.raw) for request in requests)
    assert "9000" not in told and "4000" not in told and len(requests) == 4


def test_C10_other_groups_are_told_only_with_consent(app: Recollect, clock: FrozenClock) -> None:
    says(app, clock, BO, "Remember that I sing tenor", place="telegram/-200")
    says(app, clock, BO, "Hello")
    assert "tenor" not in str(asked(app, clock, "Does Bo sing?")[0].raw)
    memory(app, BO).consent("across_chats")
    assert "tenor" in asked(app, clock, "Does Bo sing?")[0].system
    memory(app, BO).consent("across_chats", False)
    assert "tenor" not in asked(app, clock, "Does Bo sing?")[0].system


def test_C10_the_erased_and_the_incognito_are_not_told(app: Recollect, clock: FrozenClock) -> None:
    says(app, clock, BO, "Remember that I bring the merlot")
    says(app, clock, EVE, "Remember that I bring the canoe")
    assert all(thing in str(asked(app, clock, "Who brings what?")[0].raw) for thing in ("merlot", "canoe"))
    app.erase_user(memory(app, BO).user_id)
    memory(app, EVE).pause(incognito=True)
    (request,) = asked(app, clock, "Who brings what?")
    assert "merlot" not in str(request.raw) and "canoe" not in str(request.raw) and "789" not in str(request.raw)


def test_C10_tools_read_members_of_the_group_and_write_only_for_who_speaks(app: Recollect, clock: FrozenClock) -> None:
    says(app, clock, BO, "Remember that I bring the merlot")
    fact = {"fact_type": "preference", "fact_key": "drink", "fact_value": "Red wine", "confidence": 0.9}
    key = {"fact_type": "personal", "fact_key": "drink"}
    script: list[Turn] = [
        Call("recall_facts", {"user_id": BO}),
        Call("remember_fact", {"user_id": BO, **fact}),
        Call("update_fact", {"user_id": BO, **key, "new_value": "x", "confidence": 1, "change_reason": "update"}),
        Call("forget_fact", {"user_id": BO, **key, "reason": "incorrect"}),
        Call("clear_profile", {"user_id": BO, "confirm": True}),
        Call("remember_fact", {"user_id": EVE, **fact}),
        Say("Noted."),
    ]
    before = memory(app, BO).read()
    requests = asked(app, clock, "Bo likes red wine", script=script)
    assert "Ann: 123" in requests[0].system and "Bo: 789" in requests[0].system
    assert "only for Ann, who speaks now" in requests[0].system
    read, *written, eve = (request.tool_results[-1].text for request in requests[1:])
    assert "merlot" in read and "it can only be" in eve
    assert all("Not done: in a group" in one and "(123)" in one for one in written) and len(written) == 4
    assert memory(app, BO).read() == before
    requests = asked(app, clock, "I like red wine", script=[Call("remember_fact", {"user_id": ANN, **fact}), Say("Ok")])
    assert "success" in requests[1].tool_results[-1].text
    (stored,) = memory(app, ANN).read(kind="fact", key="drink")
    assert stored.chat == f"group:{TRIP}" and not memory(app, EVE).exists


@pytest.mark.parametrize("user_id", [ANN, str(ANN), f"telegram:{ANN}"])
@pytest.mark.parametrize("speaker", ["Ann", None])
@pytest.mark.parametrize("linked", [False, True])
def test_a_person_is_named_by_their_telegram_id_in_every_chat(
    app: Recollect, clock: FrozenClock, user_id: int | str, speaker: str | None, linked: bool
) -> None:
    if linked:
        app.identities.bind(("telegram", ANN), "ann@example.org")
    fact = {"fact_type": "personal", "fact_key": "city", "fact_value": "Lviv", "confidence": 0.9, "user_id": user_id}
    script: list[Turn] = [Call("remember_fact", fact), Say("Noted.")]
    with ModelServer(script) as server, open_model(f"{server.openai_url}#any") as model:
        place = TRIP if speaker else f"telegram/{ANN}"
        talk = Conversation(
            app, ("telegram", ANN), place=place, speaker=speaker, model=model, suites=("facts",), clock=clock
        )
        talk.say("I moved")
        assert "success" in server.requests[1].tool_results[-1].text
    assert memory(app, ANN).get("city").content == "Lviv"


def test_C12_an_episode_made_in_a_group_has_everybodys_messages(app: Recollect, clock: FrozenClock) -> None:
    says(app, clock, BO, "The cabin is booked for Saturday")
    episode = {"topic": "The trip", "summary": "They booked a cabin.", "importance": 0.8}
    asked(app, clock, "Great, I drive", script=[Call("create_episode", episode), Say("Noted.")])
    (made,) = memory(app, ANN).read(kind="episode")
    said = {one.id for person in (ANN, BO) for one in memory(app, person).read(kind="message")}
    assert getattr(made, "participants", ()) == ("Bo", "Ann")
    assert len(made.messages) == 3 and set(made.messages) <= said


def test_C10_a_linked_member_is_one_member(app: Recollect, clock: FrozenClock) -> None:
    says(app, clock, BO, "Remember that I bring the merlot")
    app.identities.bind(("terminal", "bo"), memory(app, BO).user_id)
    says(app, clock, BO, "And glasses", name="Bo B.")
    found = members_of(app).participants(f"group:{TRIP}")
    assert [(one.name, one.memory.user_id) for one in found] == [("Bo B.", "telegram:789")]


def test_C10_a_discussion_that_is_not_private_needs_tools_of_a_group(app: Recollect) -> None:
    app.user(1).remember("Salary is 90000", key="salary")
    with ModelServer(lambda request: Say("Mhm.")) as server, open_model(f"{server.openai_url}#any") as model:
        Discussion(app.tools(1, "facts", session="s"), model, private=False).answer("What is my salary?")
        (request,) = server.requests
    assert not request.tools and "90000" not in str(request.raw)
