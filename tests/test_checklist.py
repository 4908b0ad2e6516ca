"""The manual checklist of the design that HN Pal was written from, end to end: with a scripted model, and by rules alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.agents.discuss import Discussion
from recollect.agents.extract import extract_all
from recollect.agents.models import Model, configured_model
from recollect.testing import FrozenClock
from recollect.testing.models import Call, ModelRequest, ModelServer, Say, Turn

EVENING = datetime(2026, 2, 12, 18, 0, tzinfo=timezone.utc)
POSTS = ("PostgreSQL 18 Released", "PostgreSQL vacuum internals", "Scaling PostgreSQL to 10 TB")


def _model(asked: ModelRequest) -> Turn:
    """A model that discusses, and extracts what the person said of their role."""
    if not asked.system or "look after the long-term memory" not in asked.system:
        return Say("Interesting! Tell me more.")
    found = []
    for line in asked.text.splitlines():
        if line.startswith("[") and "person: " in line and "backend engineer" in line:
            number, quote = int(line[1 : line.index("]")]), line.partition("person: ")[2]
            found.append(
                {
                    "category": "work_context",
                    "key": "role",
                    "value": "Senior backend engineer at Stripe",
                    "action": "add",
                    "confidence": 0.95,
                    "message": number,
                    "quote": quote,
                }
            )
    data: dict[str, Any] = {"memory_updates": found, "daily_notes": []}
    return Call(asked.tools[0].name, data) if asked.tools else Say(json.dumps(data))


@pytest.fixture(params=["a model", "rules alone"])
def server(request: pytest.FixtureRequest) -> Iterator[ModelServer | None]:
    if request.param == "rules alone":
        yield None
        return
    with ModelServer(_model) as server:
        yield server
    assert server.problems == []


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(EVENING)


@pytest.fixture
def app(tmp_path: Path, clock: FrozenClock, server: ModelServer | None) -> Iterator[recollect.Recollect]:
    model: dict[str, Any] = {} if server is None else {"model": f"{server.openai_url}#test", "model_key": "test"}
    with recollect.open(tmp_path, clock=clock, **model) as app:
        yield app


@pytest.fixture
def model(app: recollect.Recollect) -> Iterator[Model | None]:
    found = configured_model(app.config)
    yield found
    if found is not None:
        found.close()


def _night(app: recollect.Recollect, clock: FrozenClock) -> str:
    """The batch of the night, for everyone."""
    clock.now = max(clock.now, EVENING.replace(hour=23)) + timedelta(seconds=1)
    return str(
        extract_all((app.user(name) for name in app.users()), clock().date(), extractor=app.extractor(), clock=clock)
    )


def test_G3_G8_the_first_version(app: recollect.Recollect, clock: FrozenClock, model: Model | None) -> None:
    memory = app.user("u1")
    talk = Discussion(app.tools("u1", "entries", session="post-1"), model, title=POSTS[0])
    talk.begin()
    # mention your job role → check MEMORY.md after extraction
    talk.answer("I'm a senior backend engineer at Stripe, so this matters to me.")
    assert "Stripe" not in memory.show()
    # "remember that I prefer technical articles" → immediately in MEMORY.md
    answer = talk.answer("Remember that I prefer technical articles")
    assert answer.captured is not None and answer.captured.reply == "Got it, I'll remember that."
    assert "- Prefers technical articles" in memory.show()
    # 👍 on three posts of one topic → an interest in the daily batch
    for title in POSTS:
        memory.report("reaction", title=title, value="👍")
    told = _night(app, clock)
    assert told.startswith("1 user processed")
    shown = memory.show()
    assert "- Role: Senior backend engineer\n- Company: Stripe" in shown
    assert "Interested in PostgreSQL" in shown
    daily = memory.daily("2026-02-12")
    assert f'👍 "{POSTS[0]}"' in daily and f'Discussed "{POSTS[0]}"' in daily
    # what is shown is what is stored
    assert memory.verify() == []
    (run,) = memory.runs(kind="batch")
    assert run.status == "completed" and run.memories_written >= 2
    # pause → no extraction in the next batch
    memory.pause()
    Discussion(app.tools("u1", "entries", session="post-2"), model).answer("I moved to Lviv last month")
    clock.tick(days=1)
    assert "(1 skipped, 0 failed)" in _night(app, clock)
    assert "Lviv" not in memory.show()
    memory.resume()
    # clear → MEMORY.md is reset
    memory.clear()
    assert "Stripe" not in memory.show() and memory.read() == [] and memory.interactions() == []


def test_G3_G8_S7_the_second_version(
    app: recollect.Recollect, clock: FrozenClock, model: Model | None, server: ModelServer | None
) -> None:
    memory = app.user("u1")
    memory.remember("Interested in distributed systems", category="preference")
    memory.remember("Interested in PostgreSQL", category="preference")
    talk = Discussion(app.tools("u1", "entries", session="post-1"), model, title=POSTS[0])
    talk.begin()
    talk.answer("The async vacuum is what I waited for")
    _night(app, clock)
    # search for a past discussion
    assert any(POSTS[0] in hit.record.text for hit in memory.search("what did we discuss about PostgreSQL 18?"))
    # the context is in the system prompt of the next discussion
    next_talk = Discussion(app.tools("u1", "entries", session="post-2"), model, title="CockroachDB pricing")
    prompt = next_talk.prompt("What does it cost?")
    assert "### Core Profile" in prompt and "Interested in distributed systems" in prompt
    if server is not None:
        next_talk.answer("What does it cost?")
        assert "Interested in distributed systems" in (server.requests[-1].system or "")
    # forget a topic
    for hit in memory.search("distributed systems", kinds=("fact",)):
        if "distributed systems" in hit.record.text:
            memory.forget(hit.record.id)
    assert "distributed systems" not in memory.show()
    assert memory.search("distributed systems", kinds=("fact",)) == []
