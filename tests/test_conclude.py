"""After a discussion: when it ended, what it brought, what it connects to; each part once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import recollect
from recollect import Episode, Memory, Recollect
from recollect.agents.conclude import conclude, idle_sessions
from recollect.agents.extract import Extraction, by_rules, extract
from recollect.agents.gather_interactions import Gathered
from recollect.agents.llm_extractor import by_model
from recollect.agents.models import open_model
from recollect.testing import FrozenClock
from recollect.testing.models import Call, Fail, ModelRequest, ModelServer, Turn

TITLE = "PostgreSQL 18 Released"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def app(tmp_path: Path, clock: FrozenClock) -> Iterator[Recollect]:
    with recollect.open(tmp_path, clock=clock) as app:
        yield app


@pytest.fixture
def memory(app: Recollect) -> Memory:
    return app.user("u1")


def talk(memory: Memory, clock: FrozenClock, *texts: str, session: str = "s1") -> None:
    for text in texts:
        memory.say(text, session=session)
        clock.tick(seconds=60)


def facts(memory: Memory) -> list[str]:
    return sorted(fact.text for fact in memory.read(kind="fact"))


def test_G5_a_discussion_that_ends_brings_notes_and_durable_insights(memory: Memory, clock: FrozenClock) -> None:
    memory.report("discussion", title=TITLE, session="s1")
    talk(memory, clock, "I think PostgreSQL is good enough for most use cases.", "I work at Stripe.", "Thanks!")
    done = conclude(memory, "s1", clock=clock)
    assert done is not None and done.run is not None and done.run.status == "completed"
    assert done.run.kind == "discussion:s1" and done.run.details["session"] == "s1"
    assert "Company: Stripe" in memory.show() and "good enough" in memory.show()
    note = memory.daily()
    assert f'- Discussed "{TITLE}" (3 messages, 2 min)' in note
    assert 'Opinion: "I think PostgreSQL is good enough for most use cases."' in note
    assert conclude(memory, "s1", clock=clock) is None
    assert conclude(memory, "unknown", clock=clock) is None
    assert memory.verify() == []


def test_G5_more_messages_are_concluded_as_a_part_of_their_own(memory: Memory, clock: FrozenClock) -> None:
    seen: list[list[str]] = []

    def looking(memory: Memory, collected: Gathered) -> Extraction:
        seen.append([message.content for one in collected.talks for message in one.messages])
        return by_rules(memory, collected)

    memory.report("discussion", title=TITLE, session="s1")
    memory.say("I live in Oslo.", session="s1")
    first = conclude(memory, "s1", extractor=looking, clock=clock)
    memory.say("I work at Stripe.", session="s1")  # at the very same moment
    memory.say("An old remark of mine.", session="s1", said_at=clock() - timedelta(days=2))
    second = conclude(memory, "s1", extractor=looking, clock=clock)
    assert seen == [["I live in Oslo."], ["An old remark of mine.", "I work at Stripe."]]
    assert first is not None and second is not None and first.run is not None and second.run is not None
    assert (first.run.id, first.run.kind) != (second.run.id, second.run.kind) and len(memory.runs()) == 2
    assert memory.daily().count("Discussed") == 1
    memory.undo(second.run.id)
    assert facts(memory) == ["location: Oslo"]
    memory.undo(first.run.id)
    assert facts(memory) == []


def test_G5_a_switch_of_topics_in_one_session(memory: Memory, clock: FrozenClock) -> None:
    talk(memory, clock, "I live in Oslo.")
    conclude(memory, "s1", title=TITLE, clock=clock)
    talk(memory, clock, "I work at Stripe.")
    conclude(memory, "s1", title="Rust 2.0", clock=clock)
    assert memory.daily().count("(1 message, 0 min)") == 2
    assert f'"{TITLE}"' in memory.daily() and '"Rust 2.0"' in memory.daily()


def test_G5_a_session_silent_for_half_an_hour_is_found_once_also_after_a_restart(
    tmp_path: Path, clock: FrozenClock
) -> None:
    with recollect.open(tmp_path, clock=clock) as app:
        memory = app.user("u1")
        talk(memory, clock, "I live in Oslo.", session="a")
        clock.tick(seconds=600)
        talk(memory, clock, "I work at Stripe.", session="b")
        clock.tick(seconds=60 * 22)
        assert idle_sessions(memory, clock=clock) == ["a"]
    with recollect.open(tmp_path, clock=clock) as app:
        memory = app.user("u1")
        clock.tick(seconds=60 * 20)
        assert sorted(idle_sessions(memory, clock=clock)) == ["a", "b"]
        for session in idle_sessions(memory, clock=clock):
            conclude(memory, session, clock=clock)
        assert facts(memory) == ["company: Stripe", "location: Oslo"]
    with recollect.open(tmp_path, clock=clock) as app:
        memory = app.user("u1")
        assert idle_sessions(memory, clock=clock) == []
        talk(memory, clock, "I like tea.", session="a")
        assert idle_sessions(memory, clock=clock) == []
        clock.tick(hours=1)
        assert idle_sessions(memory, clock=clock) == ["a"]
        memory.pause()
        assert idle_sessions(memory, clock=clock) == []


@pytest.mark.slow
def test_G5_the_oldest_of_many_sessions_are_found_too(memory: Memory, clock: FrozenClock) -> None:
    with memory.batch() as batch:
        for number in range(230):
            batch.say("Hello there", session=f"s{number}", said_at=clock() - timedelta(days=1, minutes=number))
    found = idle_sessions(memory, clock=clock, limit=1000)
    assert len(found) == 230 and len(idle_sessions(memory, clock=clock, limit=7)) == 7
    for session in found[:220]:
        conclude(memory, session, clock=clock)
    assert sorted(idle_sessions(memory, clock=clock)) == sorted(found[220:])


def test_G5_long_names_of_sessions_are_told_apart(memory: Memory, clock: FrozenClock) -> None:
    names = ["x" * 300 + "a", "x" * 300 + "b", "x" * 41]
    for name in names:
        talk(memory, clock, "I live in Oslo.", session=name)
    for name in names:
        done = conclude(memory, name, clock=clock)
        assert done is not None and done.run is not None and done.run.status == "completed"
    assert len({run.kind for run in memory.runs()}) == 3


def test_G5_a_discussion_is_connected_to_a_past_one(memory: Memory, clock: FrozenClock) -> None:
    for title, session in (("Scaling PostgreSQL to 1 TB", "a"), ('Rust "async" Released', "b")):
        talk(memory, clock, "Interesting, is it not?", session=session)
        conclude(memory, session, title=title, clock=clock)
    day = clock().date()
    clock.tick(days=7)
    talk(memory, clock, "What about vacuum?", session="c")
    conclude(memory, "c", title=TITLE, clock=clock)
    assert f'Connected to "Scaling PostgreSQL to 1 TB", discussed on {day}' in memory.daily()
    assert "Rust" not in memory.daily()
    talk(memory, clock, "What about tokio?", session="d")
    conclude(memory, "d", title="Rust runtimes", clock=clock)
    assert 'Connected to "Rust "async" Released"' in memory.daily()
    assert "Connected" not in memory.daily(day)


def test_G5_a_discussion_before_midnight_is_noted_on_its_day(memory: Memory, clock: FrozenClock) -> None:
    clock.now = clock.now.replace(hour=23, minute=50)
    day = clock().date()
    talk(memory, clock, "I live in Oslo.")
    clock.tick(hours=1)
    conclude(memory, "s1", title=TITLE, clock=clock)
    assert "Discussed" in memory.daily(day) and "Discussed" not in memory.daily()


def test_G5_G3_the_batch_after_a_conclusion_adds_nothing_twice(memory: Memory, clock: FrozenClock) -> None:
    memory.report("discussion", title=TITLE, session="s1")
    said = ("I live in Oslo.", "We decided to use OAuth2 for the login.", "I guess I prefer tea.", "I like jazz.")
    talk(memory, clock, *said)
    conclude(memory, "s1", clock=clock)
    note = memory.daily()
    clock.tick(seconds=5)
    forgotten = memory.get("location")
    memory.forget(forgotten.id)
    clock.tick(hours=5)
    extract(memory, clock().date(), clock=clock)
    assert memory.daily() == note
    known = ["Decided to use OAuth2 for the login", "Likes jazz", "Prefers tea"]
    assert sorted(facts(memory)) == known, "what the person had forgotten came back"
    assert "tea" not in memory.show(), "they only guess"


def test_G5_R3_what_was_said_later_stands_when_the_batch_reads_it_all_again(memory: Memory, clock: FrozenClock) -> None:
    said = ("I live in Kyiv.", "I work at Stripe.", "I live in Lviv now.", "I no longer work at Stripe.", "I use Vim.")
    talk(memory, clock, *said, "Actually I use Emacs now, not Vim.", "I used to be in Rome, now I live in Oslo.")
    conclude(memory, "s1", clock=clock)
    held, journal = facts(memory), len(memory.history())
    assert "location: Oslo" in held and not any("Stripe" in text for text in held)
    clock.tick(hours=8)
    extract(memory, clock().date(), clock=clock)
    assert (facts(memory), len(memory.history())) == (held, journal)


def test_G5_P7_who_is_paused_is_left_alone(memory: Memory, clock: FrozenClock) -> None:
    talk(memory, clock, "I live in Oslo.")
    memory.pause()
    done = conclude(memory, "s1", clock=clock)
    assert done is not None and done.skipped == "paused" and facts(memory) == [] and memory.runs() == []
    memory.resume()
    assert conclude(memory, "s1", clock=clock) is not None and facts(memory) == ["location: Oslo"]


def test_G5_a_failure_is_noted_and_the_discussion_is_found_again(memory: Memory, clock: FrozenClock) -> None:
    def broken(memory: Memory, collected: Gathered) -> Extraction:
        raise RuntimeError("I live in Oslo.")

    talk(memory, clock, "I live in Oslo.")
    clock.tick(hours=1)
    done = conclude(memory, "s1", extractor=broken, clock=clock)
    assert done is not None and done.run is not None and (done.run.status, done.run.error) == ("failed", "RuntimeError")
    assert idle_sessions(memory, clock=clock) == ["s1"]
    conclude(memory, "s1", clock=clock)
    assert facts(memory) == ["location: Oslo"] and idle_sessions(memory, clock=clock) == []
    assert [run.status for run in memory.runs()] == ["completed"]


def test_G5_R7_R8_after_a_clear_and_an_import_it_goes_on(
    memory: Memory, app: Recollect, clock: FrozenClock, tmp_path: Path
) -> None:
    for number in range(20):
        memory.set_scratch("n", str(number))
    talk(memory, clock, "I live in Oslo.")
    conclude(memory, "s1", clock=clock)
    archive = memory.export(f"{tmp_path}.zip")
    other = app.user("u2")
    other.import_(archive)
    assert conclude(other, "s1", clock=clock) is None and idle_sessions(other, after=timedelta(0), clock=clock) == []
    memory.clear()
    for one in (memory, other):
        talk(one, clock, "I work at Stripe.")
        assert conclude(one, "s1", clock=clock) is not None
    assert facts(memory) == ["company: Stripe"] and facts(other) == ["company: Stripe", "location: Oslo"]


def test_G5_with_a_model(memory: Memory, clock: FrozenClock) -> None:
    talk(memory, clock, "Vacuum still gives me nightmares.", "Bye!")
    found = {
        "category": "personal_context",
        "key": "opinion_on_vacuum",
        "value": "Vacuum gives them nightmares",
        "action": "add",
        "confidence": 0.9,
        "message": 1,
        "quote": "Vacuum still gives me nightmares",
    }
    script = [Call("answer", {"memory_updates": [found], "daily_notes": ["Worried about vacuum"]})]
    with ModelServer(script) as server, open_model(f"{server.openai_url}#any", key="k") as model:
        conclude(memory, "s1", title=TITLE, extractor=by_model(model, tools=False), clock=clock)
    assert "nightmares" in memory.show() and "Worried about vacuum" in memory.daily()


def test_G5_it_works_on_postgresql(postgres_url: str, clock: FrozenClock) -> None:
    with recollect.open(postgres_url, clock=clock) as app:
        memory = app.user("u1")
        talk(memory, clock, "I live in Oslo.")
        clock.tick(hours=1)
        assert idle_sessions(memory, clock=clock) == ["s1"]
        assert conclude(memory, "s1", title=TITLE, clock=clock) is not None
        assert idle_sessions(memory, clock=clock) == [] and facts(memory) == ["location: Oslo"]


def test_C12_a_discussion_of_some_weight_becomes_one_episode(memory: Memory, clock: FrozenClock) -> None:
    memory.report("discussion", title=TITLE, session="s1")
    talk(memory, clock, "We run it in production.", "The vacuum worries me.")
    conclude(memory, "s1", clock=clock)
    assert memory.read(kind="episode") == []  # two remarks
    talk(memory, clock, "So we upgrade in May.")
    done = conclude(memory, "s1", clock=clock)
    (episode,) = memory.read(kind="episode")
    assert isinstance(episode, Episode) and (episode.topic, episode.participants) == (TITLE, ("u1",))
    assert len(episode.messages) == 3 and "“So we upgrade in May.”" in episode.content
    talk(memory, clock, "One more thing.")
    conclude(memory, "s1", clock=clock)
    assert [one.id for one in memory.read(kind="episode")] == [episode.id]
    assert done is not None and done.run is not None
    memory.undo(done.run.id)
    assert memory.read(kind="episode") == []


@pytest.mark.parametrize(("number", "seconds", "made"), [(10, 40, 1), (9, 60, 0), (10, 10, 0)])
def test_C12_a_long_conversation_becomes_an_episode(
    memory: Memory, clock: FrozenClock, number: int, seconds: int, made: int
) -> None:
    for count in range(number):
        memory.say(f"For the wedding we need thing number {count}", session="s1")
        clock.tick(seconds=seconds)
    conclude(memory, "s1", clock=clock)
    assert len(memory.read(kind="episode")) == made


@pytest.mark.parametrize(("fallback", "made"), [(True, 1), (False, 0)])
def test_C12_where_a_model_manages_memory_alone_episodes_are_its_task(
    tmp_path: Path, clock: FrozenClock, fallback: bool, made: int
) -> None:
    with recollect.open(tmp_path / "other", clock=clock, automated_fallback=fallback) as app:
        memory = app.user("u1")
        talk(memory, clock, *(f"Thing number {number} is missing" for number in range(12)))
        memory.say("Mhm.", session="s1", role="assistant", metadata={"tools": True})
        conclude(memory, "s1", clock=clock)
        assert len(memory.read(kind="episode")) == made


def test_C12_an_episode_that_a_model_made_is_kept_as_it_is(app: Recollect, memory: Memory, clock: FrozenClock) -> None:
    talk(memory, clock, *(f"Thing number {number} is missing" for number in range(12)))
    given = {"topic": "The wedding", "summary": "What is missing.", "importance": 0.8}
    app.tools("u1", "facts", session="s1").call("create_episode", given)
    conclude(memory, "s1", clock=clock)
    assert [one.content for one in memory.read(kind="episode")] == ["What is missing."]


def test_G5_what_says_less_than_is_known_replaces_nothing(memory: Memory, clock: FrozenClock) -> None:
    memory.remember("Senior Backend Engineer at Stripe", key="role", category="work_context")
    talk(memory, clock, "I'm a backend engineer.")
    conclude(memory, "s1", clock=clock)
    assert memory.get("role").content == "Senior Backend Engineer at Stripe"


_OPINION = {"category": "personal_context", "key": "opinion_on_pg", "value": "PG is good enough for most use cases"}
_UPDATE = {
    "memory_updates": [
        _OPINION | {"action": "add", "confidence": 0.6},
        {"category": "reading_history", "key": "pg18", "value": "Discussed PostgreSQL 18 (positive)"}
        | {"action": "add", "confidence": 0.9},
    ],
    "daily_notes": f'## Discussions\n- Discussed "{TITLE}" (12 messages, 15 min)\n'
    '  - Opinion: "PG is good enough for most use cases"\n  - Wants to fly to the moon\n',
}


@pytest.mark.parametrize("at_night", [False, True])
def test_G5_a_discussion_is_one_line_with_each_opinion_once(memory: Memory, clock: FrozenClock, at_night: bool) -> None:
    memory.report("discussion", title=TITLE, session="s1")
    talk(memory, clock, "Hello there!", "PG is good enough for most use cases.")
    with ModelServer([Call("answer", _UPDATE)]) as server, open_model(f"{server.openai_url}#any") as model:
        extractor = by_model(model, tools=False)
        if at_night:
            extract(memory, clock().date(), extractor=extractor, clock=clock)
        else:
            conclude(memory, "s1", extractor=extractor, clock=clock)
    note = memory.daily()
    assert note.count("Discussed") == 1 and note.count("good enough") == 1
    assert f'- Discussed "{TITLE}" (2 messages, 1 min)\n  - Opinion: "PG is good enough for most use cases"' in note
    assert "opinion_on_pg" not in note and "pg18" not in note
    assert f'- More on "{TITLE}"\n  - Wants to fly to the moon' in note, "they never said that: it is not verified"
    known = memory.get("opinion_on_pg")
    assert (known.content, known.confidence) == ("PG is good enough for most use cases", 0.6)
    assert memory.get("pg18").category == "reading_history" and memory.verify() == []
    memory.update("opinion_on_pg", "PG is too slow")
    assert "PG is too slow" in memory.daily(), "the note shows what it does not say elsewhere"


def test_G5_no_model_reads_a_message_twice(memory: Memory, clock: FrozenClock) -> None:
    seen: list[str] = []

    def answer(asked: ModelRequest) -> Turn:
        seen.append(asked.text)
        return Call("answer", {"summary": "Nothing."})

    with ModelServer(answer) as server, open_model(f"{server.openai_url}#any") as model:
        extractor = by_model(model, tools=False)
        memory.report("discussion", title=TITLE, session="s1")
        talk(memory, clock, "Our old boat needs paint.")
        conclude(memory, "s1", extractor=extractor, clock=clock)
        talk(memory, clock, "The mast is broken as well.")
        extract(memory, clock().date(), extractor=extractor, clock=clock)
        talk(memory, clock, "We sail to Bergen in June.")
        clock.tick(days=1)
        conclude(memory, "s1", extractor=extractor, clock=clock)
        extract(memory, clock().date(), extractor=extractor, clock=clock)
    happened = [text.partition("# What happened")[2] for text in seen]
    for said in ("needs paint", "mast is broken", "Bergen"):
        assert [said in text for text in happened].count(True) == 1
    assert len(seen) == 3, "the second night had nothing to read"


def test_G5_what_a_model_failed_at_is_read_at_night(memory: Memory, clock: FrozenClock) -> None:
    script: list[Turn] = [Fail(401, "no such key"), Call("answer", {"summary": "Nothing."})]
    with ModelServer(script) as server, open_model(f"{server.openai_url}#any") as model:
        talk(memory, clock, "Our old boat needs paint.")
        conclude(memory, "s1", extractor=by_model(model, tools=False), clock=clock)
        extract(memory, clock().date(), extractor=by_model(model, tools=False), clock=clock)
    assert len(server.requests) == 2 and "needs paint" in server.requests[1].text


@pytest.mark.parametrize("order", ["e", "ec", "ce", "ece", "csc", "cse", "esc"])
def test_G5_a_discussion_is_reported_once_with_its_opinions_in_any_order_of_runs(
    memory: Memory, clock: FrozenClock, order: str
) -> None:
    """By (c)onclusion and nightly (e)xtraction, while more is (s)aid."""
    memory.report("discussion", title=TITLE, session="s1")
    talk(memory, clock, "I think PostgreSQL is good enough for most use cases.")
    for step in order:
        clock.tick(seconds=120)
        if step == "c":
            conclude(memory, "s1", clock=clock)
        elif step == "e":
            extract(memory, clock().date(), clock=clock)
        else:
            talk(memory, clock, "I think vacuum is terrible.")
    note = memory.daily().partition("## Extracted")[0]
    assert note.count("- Discussed") == 1 and note.count("  - Opinion: ") == 1 + order.count("s")
