"""What was erased stays erased, whatever a tool makes of it; what the person says again is kept.

From outside: the public API, every tool of every suite, the chat.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Duplicate, Memory, Refused
from recollect.surfaces.chat.conversation import Conversation
from recollect.testing import FrozenClock
from recollect.tools.catalog import tools_of
from tests.test_chats import Known, arguments
from tests.volume import volume

SAID = "Suffers from zirconitis since 2019"
USER = "123"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def app(tmp_path: Path, clock: FrozenClock) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path / "data", clock=clock) as app:
        yield app


def store_and_erase(memory: Memory) -> Known:
    """Something of every kind, and one fact that is then erased."""
    memory.remember(SAID, key="illness", category="personal_context")
    memory.remember("tea", key="drink", category="preference")
    memory.remember("Olena", key="sister", type="relationship")
    memory.note("A note on cats")
    memory.note("A plan for the summer", tags=["file"], metadata={"path": "b.txt"})
    memory.observe("Dogs bark", "finding")
    memory.episode("cats", "We talked about cats")
    memory.jot("Read about cats")
    memory.set_scratch("step", "one")
    for number in range(4):
        memory.say(f"hello {number}", session="c")
    memory.erase("illness")
    records = memory.read()
    return Known([one.id for one in records], sorted(memory.numbers([one.id for one in records]).values()))


def assert_gone(memory: Memory, about: object) -> None:
    """No record, no journal entry, no file and no context has a word of it."""
    told = [*map(repr, memory.read(status="all")), *map(repr, memory.history())]
    told += [memory.show(), memory.daily(), memory.context("zirconitis", include_conversation=True)]
    assert not any("zirconitis" in one.casefold() for one in told), about


def spellings(name: str) -> list[str]:
    if "path" in name:
        return [f"/memories/{SAID}.txt", f"/memories/{SAID}/a.txt", "/memories/suffers_from_zirconitis_since_2019.md"]
    if name == "data":
        return [json.dumps([SAID]), json.dumps({"items": [{"kind": "fact", "key": SAID, "text": "yes"}]})]
    return [SAID, f"{SAID.upper()}!", f"- {SAID}", f"> {SAID}", f"First\n\n{SAID}\n\nlast", f"## {SAID}"]


@pytest.mark.everyday(12)
@pytest.mark.parametrize("name", [tool.name for tool in tools_of()])
def test_R7_no_string_that_a_tool_takes_stores_an_erased_statement(app: recollect.Recollect, name: str) -> None:
    memory = app.user(USER)
    known = store_and_erase(memory)
    suite = app.tools(USER, session="c", wait=True)
    schema = suite.schema(name)
    for parameter, declared in schema["properties"].items():
        given = json.dumps(declared)
        if '"string"' not in given or '"enum"' in given or parameter == "user_id":
            continue
        for turn, said in enumerate(spellings(parameter) * volume(1, 5)):
            chosen = arguments(schema, known, random.Random(f"{name} {parameter} {turn}"))
            suite.call(name, chosen | {parameter: [said] if '"array"' in given else said})
            assert_gone(memory, (name, chosen, parameter, said))
    assert memory.verify() == []


CALLS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("write_memory", {"key": "x", "value": SAID, "category": "preference", "durability": kept, "source": source})
        for kept in ("durable", "daily")
        for source in ("explicit", "explicit:chat", "explicit_mention", "inference")
    ),
    ("remember_fact", {"fact_type": "personal", "fact_key": SAID, "fact_value": "yes", "confidence": 0.9}),
    (
        "remember_fact",
        {"fact_type": "personal", "fact_key": "a", "fact_value": "b c", "confidence": 0.9, "source_excerpt": SAID},
    ),
    ("create_episode", {"topic": SAID, "summary": "We talked about it", "importance": 0.9}),
    ("scratchpad_set", {"key": "k", "value": SAID}),
    ("scratchpad_set", {"key": SAID, "value": "yes"}),
    ("remember_observation", {"content": f"Known:\n{SAID}", "category": "finding", "source": SAID}),
    ("memory", {"command": "rename", "old_path": "/memories/b.txt", "new_path": f"/memories/{SAID}.txt"}),
    ("memory", {"command": "create", "path": f"/memories/{SAID}.txt", "file_text": "yes"}),
    *(
        ("memory", {"command": "insert", "path": "/memories/MEMORY.md", "insert_line": 1, "insert_text": text})
        for text in (SAID, f"> {SAID}", f"<!-- {SAID} -->", f"## {SAID}\n- yes", f"| {SAID} | yes |\n|---|---|")
    ),
]


@pytest.mark.everyday(8)
@pytest.mark.parametrize(("tool", "given"), CALLS)
def test_R7_a_tool_is_refused_wherever_it_puts_an_erased_statement(
    app: recollect.Recollect, tool: str, given: dict[str, Any]
) -> None:
    memory = app.user(USER)
    store_and_erase(memory)
    before = memory.read(), memory.show()
    schema = app.tools(USER, session="c").schema(tool)
    given = given | ({"user_id": int(USER)} if "user_id" in schema["properties"] else {})
    result = app.tools(USER, session="c").call(tool, given)
    assert result.status in ("refused", "error", "invalid"), result.text
    assert "erased" in result.text
    assert (memory.read(), memory.show()) == before
    assert_gone(memory, result.text)


def test_R7_an_episode_does_not_grow_by_an_erased_statement(app: recollect.Recollect) -> None:
    memory = app.user(USER)
    store_and_erase(memory)
    number = memory.numbers([memory.read(kind="episode")[0].id]).popitem()[1]
    tools = app.tools(USER, session="c")
    for change in ({"additional_summary": SAID}, {"add_tags": [SAID]}):
        assert tools.call("update_episode", {"episode_id": number} | change).status == "refused"
    assert_gone(memory, "update_episode")


def test_R7_working_memory_does_not_keep_an_erased_statement(app: recollect.Recollect) -> None:
    memory = app.user(USER)
    store_and_erase(memory)
    for key in ("step", "other"):
        outcome = memory.set_scratch(key, SAID)
        assert isinstance(outcome, Refused) and outcome.reason == "erased"
    memory.set_scratch("step", "the second phase")
    memory.clear()
    assert memory.set_scratch("step", "the second phase").done  # only what was remembered is refused


def test_R7_a_tool_may_change_what_the_person_had_remembered_again(app: recollect.Recollect) -> None:
    memory = app.user(USER)
    store_and_erase(memory)
    assert memory.remember(SAID, key="illness").done
    tool = memory.acting("tool:update_fact")
    assert tool.update("illness", importance=0.9).done
    assert not tool.update("drink", SAID, source="explicit").done


def test_R7_an_old_export_brings_back_no_title(app: recollect.Recollect, tmp_path: Path, clock: FrozenClock) -> None:
    memory = app.user(USER)
    memory.note("What the doctor said", title=SAID)
    memory.remember(SAID)
    memory.export(tmp_path / "old.zip")
    clock.tick(seconds=1)
    memory.clear()
    memory.import_(tmp_path / "old.zip")
    assert_gone(memory, "import")


# other spellings, and other hands

MARKUP = [
    *(
        "~~{}~~",
        "🙂 {}",
        "🙂 {} 🙂",
        "✓ {}",
        "→ {}",
        "☐ {}",
        "+{}+",
        "${}$",
        "{}™",
        "{}²",
        "★{}★",
        "<b>{}</b>",
    ),
    *("&quot;{}&quot;", "{}&nbsp;", "[{}](http://x)", "![{}](x.png)", "{0}, {0}", "{0}; {0}; {0}", "(1) {}", "a) {}"),
    *("{} [1]", "{}.[2]", "- [ ] {}", "Note: {}", "me — {}", "{} — so they say", "one\n{}.\nthree"),
]
JOINTS = [" / ", " + ", "~", "+", "%20", ", ", "\u00a0", "_"]


@pytest.mark.everyday(12)
@pytest.mark.parametrize("said", [*(one.format(SAID) for one in MARKUP), *(SAID.replace(" ", one) for one in JOINTS)])
def test_R7_symbols_and_markup_do_not_hide_an_erased_statement(app: recollect.Recollect, said: str) -> None:
    memory = app.user(USER)
    store_and_erase(memory)
    for write in (memory.remember, memory.note, lambda text, source: memory.episode("x", text, source=source)):
        outcome = write(said, source="discussion:1")
        assert isinstance(outcome, Refused) and outcome.reason == "erased", said
    assert memory.remember(said).done  # the person may


def test_R7_symbols_that_say_something_are_not_dropped(app: recollect.Recollect) -> None:
    memory = app.user(USER)
    for said in ("Likes C++", "I like 🍎", SAID):
        memory.remember(said)
        memory.erase(memory.read()[-1].id)
    for other in ("Likes C", "Likes C#", "I like 🍊", "Suffers since 2019", f"Her aunt, who {SAID.lower()}, is well"):
        assert memory.remember(other, source="inferred").done, other
    assert not memory.remember("I like 🍎!", source="inferred").done


def test_R7_a_source_that_is_inherited_claims_nothing(app: recollect.Recollect) -> None:
    memory = app.user(USER)
    store_and_erase(memory)
    agent = memory.acting("agent:x", agent="x")
    ids = [memory.remember(text).record.id for text in ("Owns a boat", "Sails it")]  # type: ignore[attr-defined]
    assert isinstance(agent.merge(ids, SAID), Refused)
    assert isinstance(agent.update("drink", tags=[SAID]), Refused)
    assert isinstance(agent.edit(f"---\ntitle: {SAID}\n---\n# User Memory\n"), Refused)
    memory.update("drink", "coffee", note=SAID, source="discussion:1")
    assert_gone(memory, "inherited")
    assert memory.merge(ids, SAID).done  # the person may


def test_R7_another_program_s_memory_does_not_bring_it_back(app: recollect.Recollect, tmp_path: Path) -> None:
    memory = app.user(USER)
    store_and_erase(memory)
    told = [("me", SAID), (SAID, "good"), ("me", "Owns a boat")]
    lines = [
        json.dumps({"type": "entity", "name": name, "entityType": "person", "observations": [text]})
        for name, text in told
    ]
    (tmp_path / "memory.jsonl").write_text("\n".join(lines))
    report = memory.import_(tmp_path / "memory.jsonl")
    assert (report.written, report.refused) == (1, 2)
    assert_gone(memory, "import")


def test_R7_agents_may_say_what_the_person_had_remembered_again(app: recollect.Recollect, clock: FrozenClock) -> None:
    memory = app.user(USER)
    store_and_erase(memory)
    clock.tick(seconds=1)
    agent = memory.acting("agent:x")
    assert isinstance(agent.remember(SAID, key="illness", source="inferred"), Refused)
    memory.remember(SAID, key="illness")
    assert isinstance(agent.remember(SAID, key="illness", source="inferred"), Duplicate)
    assert agent.say(SAID, session="c", role="assistant").done
    assert agent.note(f"What we know\n\n- {SAID}", source="inferred").done
    clock.tick(seconds=1)
    memory.erase("illness")
    assert isinstance(agent.remember(SAID, source="inferred"), Refused)
    assert isinstance(agent.say(SAID, session="d", role="assistant"), Refused)


# what the person says again

ERASURES: list[Callable[[Memory], object]] = [
    Memory.clear,
    lambda memory: memory.erase(*[one.id for one in memory.read()]),
    lambda memory: memory.erase_topic("Rome"),
]


@pytest.mark.parametrize("erase", ERASURES)
def test_R7_what_the_person_says_again_is_stored(
    app: recollect.Recollect, clock: FrozenClock, erase: Callable[[Memory], object]
) -> None:
    memory = app.user(USER)
    for text in ("hello", "yes", "I live in Rome"):
        memory.say(text, session="a")
    clock.tick(seconds=60)
    erase(memory)
    clock.tick(seconds=60)
    for session in ("a", "b"):
        for text in ("hello", "yes", "I live in Rome"):
            assert memory.say(text, session=session).done
    late = memory.say("I live in Rome", session="a", said_at=clock() - timedelta(seconds=90))
    assert isinstance(late, Refused) and late.reason == "erased"
    for role in ("assistant", "tool"):
        assert isinstance(memory.say("I live in Rome", session="a", role=role), Refused)
    found = memory.acting("agent:extract").remember("I live in Rome", source="batch_extraction")
    assert isinstance(found, Refused) and found.reason == "erased"
    assert memory.verify() == []


def test_R7_the_chat_stores_each_message_after_clear(app: recollect.Recollect, clock: FrozenClock) -> None:
    chat = Conversation(app, ("test", "ann"), place="chat", clock=clock)
    for text in ("hello", "I live in Rome", "remember that I like opera"):
        chat.say(text)
    clock.tick(seconds=60)
    memory = app.identities.memory(("test", "ann"))
    memory.clear()
    clock.tick(seconds=60)
    for text in ("hello", "I live in Rome", "remember that I like opera"):
        pages = chat.say(text)
        assert "cannot store" not in str(pages) and "erased" not in str(pages)
    said = [one.text for one in memory.read(kind="message") if getattr(one, "role", "") == "user"]
    assert said == ["hello", "I live in Rome", "remember that I like opera"]
    assert any("opera" in one.text for one in memory.read(kind="fact"))
