"""An example memory for first-time visitors: two weeks of an invented person.

The conversations in ``example.jsonl`` are invented, but the real code stores them, calls the tools and extracts by
rules. The example has its own user, so it never mixes with a real memory and is removed as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import recollect
from recollect.agents.conclude import conclude
from recollect.agents.extract import by_rules, extract
from recollect.app import Recollect
from recollect.memory.memory import Memory
from recollect.records import Receipt

USER = "example"
_KEY = "example"
_SAID = "an invented example to explore; none of it is yours, and one click in the console removes it"
_SUITES = ("facts", "profile", "notes", "observations")
_PAUSE = timedelta(seconds=25)


class _StoryClock:
    """A clock that shows the time within the story."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def is_example(memory: Memory) -> bool:
    """Return True if this memory is the complete example, by its last note."""
    return memory.user_id == USER and any(one.content == _SAID for one in memory.read(key=_KEY))


def remove_example(app: Recollect) -> Receipt:
    """Erase the example user."""
    return app.erase_user(USER)


def fill_example(app: Recollect) -> None:
    """Write the example, unless it exists. Restart an interrupted one; leave a real user of that name alone."""
    memory = app.user(USER)
    story = [json.loads(line) for line in Path(__file__).with_suffix(".jsonl").read_text("utf-8").splitlines()]
    if memory.exists:
        first = memory.read(kind="message", limit=1)
        if is_example(memory) or not first or first[0].content != story[1]["user"]:
            return
        remove_example(app)
    today = memory.clock()
    clock = _StoryClock(today - timedelta(days=story[0]["days_ago"] + 1))
    with recollect.open(config=app.config, clock=clock) as past:
        for talk, turns in _conversations(story):
            day = today - timedelta(days=talk["days_ago"])
            clock.now = max(clock.now, _at(day, talk["at"]))
            _replay_conversation(past, talk["session"], turns, clock)
            clock.now = max(clock.now, _at(day, "23:00"))
            extract(past.user(USER), clock.now.date(), extractor=by_rules, clock=clock)
        past.user(USER).remember(_SAID, key=_KEY, category="key_fact", pinned=True)


def _conversations(story: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    begins = [at for at, line in enumerate(story) if "session" in line]
    for begin, end in zip(begins, [*begins[1:], len(story)], strict=True):
        yield story[begin], story[begin + 1 : end]


def _replay_conversation(app: Recollect, session: str, turns: list[dict[str, Any]], clock: _StoryClock) -> None:
    memory = app.user(USER)
    tools = app.tools(USER, *_SUITES, session=session, agent="assistant", fixed_user=True, wait=True)
    for turn in turns:
        clock.now += _PAUSE
        match turn:
            case {"user": said}:
                memory.say(said, session=session)
            case {"assistant": said}:
                memory.say(said, session=session, role="assistant")
            case {"noted": said}:
                memory.jot(said)
            case {"tool": "update_episode" as name, "with": given}:
                [number] = memory.numbers([memory.read(kind="episode", limit=1)[0].id]).values()
                tools.call(name, {"episode_id": number, **given})
            case {"tool": name, "with": given}:
                tools.call(name, given)
    conclude(memory, session, extractor=by_rules, clock=clock)


def _at(day: datetime, time: str) -> datetime:
    hour, minute = map(int, time.split(":"))
    return day.replace(hour=hour, minute=minute, second=0, microsecond=0)
