"""Entries with a key and uncertain facts, which daily notes show: by key and category, in the files, and over time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

import recollect
from recollect import Conflict, DailyEntry, Demoted, Duplicate, Fact, Memory, Refused, Updated, Written
from recollect.testing import FrozenClock
from tests.tooling import caller

TODAY = date(2026, 2, 12)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def app(tmp_path: Path, clock: FrozenClock) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path / "root", clock=clock) as opened:
        yield opened


@pytest.fixture
def memory(app: recollect.Recollect) -> Iterator[Memory]:
    memory = app.user("u1")
    yield memory
    assert memory.verify() == []


@pytest.fixture
def note(tmp_path: Path) -> Path:
    return tmp_path / "root" / "u1" / "memory" / f"{TODAY}.md"


def guess(memory: Memory, value: str = "Kyiv", key: str = "location", **more: object) -> recollect.Outcome:
    return memory.remember(value, key=key, category="personal_context", **{"confidence": 0.6, **more})  # type: ignore[arg-type]


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("- ")]


# entries with a key (C3)


def test_C3_an_entry_of_a_note_is_known_by_key_and_category(memory: Memory) -> None:
    outcome = memory.remember("Tired", key="mood", category="personal_context", durability="daily")
    assert isinstance(outcome, Written) and isinstance(outcome.record, DailyEntry)
    assert (outcome.record.key, outcome.record.category, outcome.record.day) == ("mood", "personal_context", TODAY)
    assert memory.get("Mood").id == outcome.record.id and memory.read(kind="fact") == []
    assert memory.read(category="personal_context") == memory.read(kind="daily", key=str(TODAY)) == [outcome.record]
    assert [hit.record.key for hit in memory.search("mood", category="personal_context")] == ["mood"]


def test_C3_the_line_of_an_entry_follows_it(memory: Memory) -> None:
    memory.jot("Slept well", section="Explicit Memories")
    memory.remember("Tired", key="mood", durability="daily")
    memory.jot("Ran 5 km", section="Explicit Memories")
    assert lines(memory.daily()) == ["- Slept well", "- mood: Tired", "- Ran 5 km"]
    memory.update("mood", "Awake")
    assert lines(memory.daily()) == ["- Slept well", "- mood: Awake", "- Ran 5 km"]
    memory.forget("mood")
    assert lines(memory.daily()) == ["- Slept well", "- Ran 5 km"]
    memory.undo()
    assert sorted(lines(memory.daily())) == ["- Ran 5 km", "- Slept well", "- mood: Awake"]


def test_C3_one_day_has_an_entry_once_and_each_day_its_own(memory: Memory, clock: FrozenClock) -> None:
    for _ in range(3):
        memory.remember("Tired", key="mood", durability="daily")
    assert isinstance(memory.remember("tired!", key="mood", durability="daily"), Duplicate)
    assert isinstance(memory.remember("Excited", key="mood", durability="daily"), Written)
    clock.tick(days=1)
    assert isinstance(memory.remember("Tired", key="mood", durability="daily"), Written)
    assert memory.daily().count("Tired") == 1 and memory.daily(TODAY).count("Tired") == 1
    assert memory.get("mood").created_at == clock(), "the latest"


def test_C3_a_tool_deletes_the_entries_of_all_days(
    app: recollect.Recollect, memory: Memory, clock: FrozenClock
) -> None:
    memory.remember("Tired", key="mood", durability="daily")
    clock.tick(days=1)
    memory.remember("Excited", key="mood", durability="daily")
    assert app.tools("u1", "entries").call("delete_memory", {"key": "mood"}).text == "✓ Memory deleted: mood"
    assert memory.read(kind="daily") == [] and "mood" not in memory.daily() + memory.daily(TODAY)


def test_F4_a_person_edits_the_line_of_an_entry(memory: Memory, note: Path) -> None:
    memory.remember("Read about PostgreSQL 18", key="read_pg18", category="reading_history", durability="daily")
    memory.remember("Tired", key="mood", durability="daily")
    note.write_text(note.read_text().replace("Read about PostgreSQL 18", "Read all of PostgreSQL 18"))
    record = memory.get("read_pg18")
    assert (record.content, record.source) == ("Read all of PostgreSQL 18", "user_edit")
    assert lines(memory.daily()) == ["- read_pg18: Read all of PostgreSQL 18", "- mood: Tired"]
    note.write_text(note.read_text().replace("- mood: Tired\n", "- Slept badly\n"))
    assert [entry.text for entry in memory.read(kind="daily")] == [
        "read_pg18: Read all of PostgreSQL 18",
        "Slept badly",
    ]


def test_B_reading_history_is_for_daily_notes(memory: Memory) -> None:
    memory.remember("Discussed CRDTs", category="reading_history")
    memory.jot("Read 6 posts", section="Reading Activity")
    assert [one.content for one in memory.read(category="reading_history")] == ["Discussed CRDTs", "Read 6 posts"]
    assert "CRDTs" not in memory.show()


# uncertain facts (C1)


def test_C1_an_uncertain_fact_is_a_fact_that_the_note_shows(memory: Memory) -> None:
    outcome = guess(memory)
    assert isinstance(outcome, Demoted) and isinstance(outcome.record, Fact)
    assert memory.get("location").id == outcome.record.id and memory.read(kind="fact") == [outcome.record]
    assert lines(memory.daily()) == ["- location: Kyiv"] and "Kyiv" not in memory.show()
    assert "Kyiv" in memory.context("weather").partition("### Recent Activity")[2] and memory.days() == [TODAY]


def test_C1_a_mention_in_another_conversation_confirms_it(memory: Memory) -> None:
    guess(memory.acting(session="s1"))
    again = guess(memory.acting(session="s1"), confidence=0.65)
    assert isinstance(again, Updated) and 0.65 <= again.record.confidence < 0.7
    confirmed = guess(memory.acting(session="s2"))
    assert isinstance(confirmed, Updated) and confirmed.record.confidence > 0.7 and confirmed.record.expires_at is None
    assert "- Location: Kyiv" in memory.show() and lines(memory.daily()) == []
    memory.undo()
    assert "Kyiv" not in memory.show() and lines(memory.daily()) == ["- location: Kyiv"]


def test_C1_the_same_message_and_a_stranger_confirm_nothing(memory: Memory) -> None:
    guess(memory, messages=["m1"])
    assert isinstance(guess(memory, messages=["m1"]), Duplicate)
    assert isinstance(guess(memory.acting(trusted=False, session="s2")), Duplicate)
    assert isinstance(guess(memory, confidence=0.3), Duplicate)
    assert memory.get("location").confidence == 0.6


def test_C1_it_is_confirmed_under_another_key_too(memory: Memory) -> None:
    guess(memory, "Lives in Kyiv", key="home")
    outcome = memory.remember("Lives in Kyiv", key="city", category="personal_context")
    assert isinstance(outcome, Updated) and outcome.record.key == "home"
    assert lines(memory.show()) == ["- Home: Lives in Kyiv"] and len(memory.read()) == 1


def test_C1_what_is_certain_replaces_it_and_what_is_not_replaces_nothing(memory: Memory) -> None:
    guess(memory)
    other = guess(memory, "Lviv")
    assert isinstance(other, Demoted) and other.record.kind == "daily"
    assert memory.get("location").content == "Kyiv"
    assert isinstance(guess(memory, "Odesa", confidence=0.9), Updated)
    assert lines(memory.show()) == ["- Location: Odesa"]
    assert lines(memory.daily()) == []  # the uncertain value is outdone, too
    assert isinstance(guess(memory, "Kharkiv", confidence=0.9), Conflict)
    assert isinstance(memory.update("location", "Kharkiv", confidence=0.6), Demoted)
    assert memory.get("location").content == "Odesa"


def test_C1_an_update_passes_the_gate_or_falls_behind_it(memory: Memory) -> None:
    guess(memory)
    memory.update("location", "Lviv")
    assert lines(memory.daily()) == ["- location: Lviv"] and memory.get("location").confidence == 0.6
    memory.update("location", confidence=0.9)
    assert lines(memory.show()) == ["- Location: Lviv"] and lines(memory.daily()) == []
    memory.update("location", confidence=0.55)
    assert lines(memory.show()) == [] and lines(memory.daily()) == ["- location: Lviv"]
    memory.update("location", confidence=0.9)
    memory.pin("location")
    memory.update("location", confidence=0.55)
    assert lines(memory.show()) == ["- Location: Lviv"], "what the person pinned stays"


def test_C1_it_expires_with_the_note(memory: Memory, clock: FrozenClock) -> None:
    guess(memory)
    clock.tick(days=92)
    assert memory.read(kind="fact") == [] and memory.search("Kyiv") == []
    assert isinstance(guess(memory, "Lviv"), Demoted) and memory.get("location").content == "Lviv"
    memory.upkeep()
    assert memory.daily(TODAY) == "" and [fact.content for fact in memory.read(kind="fact")] == ["Lviv"]


def test_F4_a_person_writes_into_memory_md_what_was_uncertain(memory: Memory, note: Path) -> None:
    guess(memory)
    path = note.parent.parent / "MEMORY.md"
    path.write_text(path.read_text().replace("## Personal Context\n", "## Personal Context\n- Location: Kyiv\n"))
    (fact,) = memory.read(kind="fact")
    assert (fact.tier, fact.confidence, fact.source, fact.expires_at) == ("file", 1.0, "user_edit", None)
    memory.jot("Something else")
    assert lines(memory.daily()) == ["- Something else"]


def test_F4_a_person_deletes_or_changes_the_line_of_an_uncertain_fact(memory: Memory, note: Path) -> None:
    guess(memory)
    guess(memory, "Chess", key="hobby")
    note.write_text(note.read_text().replace("- location: Kyiv\n", "").replace("Chess", "Go"))
    (fact,) = memory.read(kind="fact")
    assert (fact.key, fact.content, fact.source) == ("hobby", "Go", "user_edit")


def test_R7_what_is_erased_goes_from_the_note_and_stays_away(memory: Memory, note: Path) -> None:
    guess(memory, "Collects zebra stamps", key="hobby")
    memory.remember("Saw a zebra in the zoo", key="zoo", durability="daily")
    old = note.read_text()
    for key in ("hobby", "zoo"):
        memory.erase(memory.get(key).id)
    assert "zebra" not in memory.daily()
    agent = memory.acting("agent:x")
    assert isinstance(guess(agent, "Collects zebra stamps", key="pastime", source="batch"), Refused)
    note.write_text(old)
    assert "zebra" not in memory.daily() and memory.read() == [], "an editor wrote the old note back"


def test_R7_a_key_is_erased_from_all_notes(memory: Memory, clock: FrozenClock) -> None:
    memory.remember("Oslo", key="location")
    memory.remember("Bergen, perhaps", key="location", durability="daily")
    clock.tick(days=1)
    memory.remember("Tromsø, perhaps", key="location", durability="daily")
    memory.erase("location")
    assert memory.read() == [] and "perhaps" not in memory.daily() + memory.daily(TODAY)


def test_R8_both_survive_an_export_and_a_merge(
    app: recollect.Recollect, memory: Memory, tmp_path: Path, clock: FrozenClock
) -> None:
    guess(memory)
    memory.remember("Tired", key="mood", category="personal_context", durability="daily")
    archive = memory.export(tmp_path / "u1.zip")
    for name, before in (("empty", ()), ("other", ("Likes tea",))):
        other = app.user(name)
        for text in before:
            other.remember(text)
        other.import_(archive)
        other.import_(archive)
        assert (other.get("location").confidence, other.get("mood").category) == (0.6, "personal_context")
        assert sorted(lines(other.daily())) == ["- location: Kyiv", "- mood: Tired"] and "Kyiv" not in other.show()
        assert other.verify() == []


def test_C10_uncertain_facts_of_two_chats_are_two_lines(memory: Memory) -> None:
    home, work = memory.acting(chat="home"), memory.acting(chat="work")
    assert isinstance(guess(home), Demoted) and isinstance(guess(work), Demoted)
    assert lines(memory.daily()) == ["- location: Kyiv"] * 2
    assert len(home.read(kind="fact")) == len(work.read(kind="fact")) == 1
    home.forget("location")
    assert lines(memory.daily()) == ["- location: Kyiv"] and work.get("location").content == "Kyiv"


def test_F9_the_lines_come_back_from_the_files_alone(memory: Memory, note: Path) -> None:
    guess(memory)
    memory.remember("Tired", key="mood", durability="daily")
    memory.rebuild(force=True)
    assert sorted(lines(memory.daily())) == ["- location: Kyiv", "- mood: Tired"]
    assert memory.get("location").content == "Kyiv"


def test_T4_no_tool_says_success_and_changes_nothing(app: recollect.Recollect) -> None:
    call = caller(app, 123, "facts")
    told = {"user_id": 123, "fact_type": "personal", "fact_key": "location"}
    call("remember_fact", **told, fact_value="Kyiv", confidence=0.95)
    other = call("remember_fact", **told, fact_value="Lviv", confidence=0.6)
    assert (other["status"], other["reason"], other["known_value"]) == ("skipped", "uncertain", "Kyiv")
    updated = call("update_fact", **told, new_value="Lviv", confidence=0.6, change_reason="update")
    assert (updated["status"], updated["known_value"]) == ("skipped", "Kyiv")
    assert [fact["value"] for fact in call("recall_facts", user_id=123)["facts"]] == ["Kyiv"]
