"""Hybrid extraction, its fallback, and the rollout of tools by chat."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.agents.discuss import Discussion
from recollect.agents.extract import extract
from recollect.agents.models import open_model
from recollect.agents.tiers import model_keeps_memory
from recollect.config import Config
from recollect.testing import FrozenClock
from recollect.testing.models import Call, Fail, ModelServer, Say

Answers = Callable[[Any], Any]
NOON = datetime(2026, 2, 12, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NOON)


def _entry(message: int, quote: str, **more: Any) -> dict[str, Any]:
    entry = {"category": "personal_context", "key": "hobby", "value": "Restores old radios", "action": "add"}
    return entry | {"confidence": 0.9, "message": message, "quote": quote} | more


def _found(*entries: dict[str, Any]) -> Say:
    return Say(json.dumps({"memory_updates": list(entries), "daily_notes": []}))


class Models:
    """Two scripted models, one near by and one far away. A test says what each answers; until then both refuse."""

    def __init__(self, serving: ExitStack) -> None:
        self.near_answers: Answers = lambda asked: Fail(401, "not to be asked")
        self.far_answers: Answers = self.near_answers
        self.near = serving.enter_context(ModelServer(lambda asked: self.near_answers(asked)))
        self.far = serving.enter_context(ModelServer(lambda asked: self.far_answers(asked)))


@pytest.fixture
def models() -> Iterator[Models]:
    with ExitStack() as serving:
        yield Models(serving)


def _app(tmp_path: Path, models: Models, clock: FrozenClock) -> recollect.Recollect:
    return recollect.open(
        tmp_path,
        clock=clock,
        local_model=f"{models.near.openai_url}#near",
        model=f"{models.far.openai_url}#far",
        model_key="test",
    )


def _answers(asked: Any, data: Say) -> Any:
    """As the tool for structured output, if it is offered; else as text."""
    return Call("answer", json.loads(data.text)) if "answer" in [tool.name for tool in asked.tools] else data


def test_G10_no_model_is_asked_about_what_the_rules_understood(
    tmp_path: Path, models: Models, clock: FrozenClock
) -> None:
    with _app(tmp_path, models, clock) as app:
        app.user("u1").say("I live in Oslo", session="s")
        app.user("u1").say("Hello!", session="s")
        clock.tick(seconds=1)
        done = extract(app.user("u1"), NOON.date(), extractor=app.extractor(), clock=clock)
    assert done.run is not None and done.run.tier == "rules" and done.run.tokens_used == 0
    assert models.near.requests == [] and models.far.requests == []


def test_G10_the_near_model_is_asked_where_the_rules_are_not_sure_and_the_far_one_where_it_is_not(
    tmp_path: Path, models: Models, clock: FrozenClock
) -> None:
    quote = "old radios get a second life in my cellar"
    models.near_answers = lambda asked: _answers(asked, _found(_entry(1, quote, confidence=0.5)))
    models.far_answers = lambda asked: _answers(
        asked, _found(_entry(1, quote, value="Restores old radios in the cellar"))
    )
    with _app(tmp_path, models, clock) as app:
        app.user("u1").say("I live in Oslo", session="s")
        app.user("u1").say(f"On Sundays {quote}, a dozen by now.", session="s")
        clock.tick(seconds=1)
        done = extract(app.user("u1"), NOON.date(), extractor=app.extractor(), clock=clock)
        assert app.user("u1").get("hobby").content == "Restores old radios in the cellar"
    assert done.run is not None and done.run.tier == "rules + model:near + model:far"
    assert "Oslo" not in models.near.requests[0].text.partition("What happened")[2], "what is understood is not asked"


def test_G10_a_near_model_that_fails_is_followed_by_the_far_one(
    tmp_path: Path, models: Models, clock: FrozenClock
) -> None:
    quote = "old radios get a second life in my cellar"
    models.near_answers = lambda asked: Fail(401, "no")
    models.far_answers = lambda asked: _answers(asked, _found(_entry(1, quote)))
    with _app(tmp_path, models, clock) as app:
        app.user("u1").say(f"On Sundays {quote}, a dozen by now.", session="s")
        clock.tick(seconds=1)
        done = extract(app.user("u1"), NOON.date(), extractor=app.extractor(), clock=clock)
        assert app.user("u1").get("hobby").content == "Restores old radios"
    assert done.run is not None and "rejected" in done.run.details["problem"]


def test_G10_the_rollout_divides_chats_and_keeps_each_on_its_side() -> None:
    chats = [f"chat-{number}" for number in range(2_000)]
    half = {chat for chat in chats if model_keeps_memory(chat, Config(tool_rollout=50))}
    assert 900 < len(half) < 1_100
    assert half <= {chat for chat in chats if model_keeps_memory(chat, Config(tool_rollout=60))}
    assert not any(model_keeps_memory(chat, Config(tool_rollout=0)) for chat in chats)
    assert all(model_keeps_memory(chat, Config()) for chat in chats)
    assert not any(model_keeps_memory(chat, Config(tool_based=False)) for chat in chats)


def test_G10_outside_the_rollout_the_model_gets_no_tools_and_the_rules_still_learn(tmp_path: Path) -> None:
    clock = FrozenClock(NOON)
    with ModelServer([Say("Nice city.")]) as server, recollect.open(tmp_path, clock=clock, tool_based=False) as app:
        with open_model(f"{server.openai_url}#m", key="k") as model:
            Discussion(app.tools("u1", "notes", session="s"), model).answer("I live in Oslo")
        assert server.requests[0].tools == ()
        clock.tick(seconds=timedelta(hours=1).total_seconds())
        extract(app.user("u1"), NOON.date(), clock=clock)
        assert app.user("u1").get("location").content == "Oslo"


def test_G10_without_the_fallback_chats_with_tools_are_left_to_the_model(tmp_path: Path, models: Models) -> None:
    for fallback, learned in ((True, 1), (False, 0)):
        clock = FrozenClock(NOON)
        settings: dict[str, Any] = {"model": f"{models.far.openai_url}#far", "automated_fallback": fallback}
        with recollect.open(tmp_path / str(fallback), clock=clock, **settings) as app:
            app.user("u1").say("I live in Oslo", session="s")
            clock.tick(seconds=1)
            done = extract(app.user("u1"), NOON.date(), extractor=app.extractor(), clock=clock)
            assert done.run is not None and done.run.memories_written == learned


def test_G10_what_was_written_with_a_reaction_is_asked_about_if_the_rules_are_not_sure(
    tmp_path: Path, models: Models, clock: FrozenClock
) -> None:
    quote = "old radios get a second life in my cellar"
    models.near_answers = lambda asked: _answers(asked, _found(_entry(1, quote)))
    with _app(tmp_path, models, clock) as app:
        memory = app.user("u1")
        memory.report("command", value="/note", text="I live in Oslo")
        memory.report("reaction", id="r7", value="👍", title="Radio", text=f"On Sundays {quote}, a dozen by now.")
        clock.tick(seconds=1)
        done = extract(memory, NOON.date(), extractor=app.extractor(), clock=clock)
        assert memory.get("hobby").source == "reaction:r7" and memory.get("location").content == "Oslo"
    assert done.run is not None and done.run.tier == "rules + model:near" and models.far.requests == []
    assert "Oslo" not in models.near.requests[0].text.partition("What happened")[2]
