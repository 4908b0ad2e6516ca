"""A person saves from an editor that was opened long ago: what others stored meanwhile stays.

From outside: the public API and real files.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

import recollect
from recollect import Memory, Written
from recollect.records import JournalEntry
from recollect.testing import FrozenClock
from tests.volume import seeds


def in_place(path: Path, text: str) -> None:
    path.write_bytes(text.encode())


def by_rename(path: Path, text: str) -> None:
    """As vim does: a new file takes the name, the old one goes."""
    new = path.with_name("4913")
    new.write_bytes(text.encode())
    os.rename(path, backup := path.with_name(f"{path.name}~"))
    os.rename(new, path)
    backup.unlink()


def in_place_with_backup(path: Path, text: str) -> None:
    backup = path.with_name(f"{path.name}~")
    backup.write_bytes(path.read_bytes())
    path.write_bytes(text.encode())
    backup.unlink()


SAVES = [in_place, by_rename, in_place_with_backup]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return recollect.open(tmp_path, clock=FrozenClock()).user("u1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "u1" / "MEMORY.md"


def facts(memory: Memory) -> list[str]:
    return sorted(record.text for record in memory.read(kind="fact"))


@pytest.mark.parametrize("save", SAVES)
def test_C16_a_stale_buffer_deletes_and_reverts_nothing(
    memory: Memory, path: Path, save: Callable[[Path, str], None]
) -> None:
    memory.remember("Engineer", key="role", category="work_context")
    memory.remember("Likes tea")
    buffer = path.read_text()
    agent = memory.acting("agent")
    agent.remember("Penicillin", key="allergy")
    agent.update("role", "Architect")
    assert "Penicillin" in path.read_text()  # looking does not change anything
    for _ in range(2):  # the same buffer may be saved twice
        save(path, buffer + "- Likes jazz\n")
        assert facts(memory) == ["Likes jazz", "Likes tea", "allergy: Penicillin", "role: Architect"]
        assert "Allergy: Penicillin" in path.read_text() and "Role: Architect" in path.read_text()
        assert any("merged" in notice and "1 added, 1 changed" in notice for notice in memory.notices())
    assert memory.verify() == []


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("looked", [False, True])
def test_C16_a_stale_buffer_that_only_lacks_what_was_added_deletes_nothing(
    memory: Memory, path: Path, save: Callable[[Path, str], None], looked: bool
) -> None:
    memory.remember("Likes tea")
    buffer = path.read_text()
    for number in range(3):
        memory.remember(f"Stored meanwhile {'abc'[number] * 9}")
        if looked:
            assert "Stored meanwhile" in path.read_text()
    for _ in range(2):
        save(path, buffer)
        assert len(facts(memory)) == 4 and path.read_text().count("Stored meanwhile") == 3
    assert [entry.op for entry in memory.history()] == ["remember"] * 4
    assert memory.verify() == []


@pytest.mark.parametrize("save", SAVES)
def test_C16_a_line_that_only_the_newest_version_has_can_be_extended(
    memory: Memory, path: Path, save: Callable[[Path, str], None]
) -> None:
    memory.remember("Likes tea")
    assert "tea" in path.read_text()  # somebody read the version before, so the text may come from there too
    added = memory.remember("Plays the oboe")
    assert isinstance(added, Written)
    save(path, path.read_text().replace("Plays the oboe", "Plays the oboe on Sundays"))
    assert facts(memory) == ["Likes tea", "Plays the oboe on Sundays"]
    assert memory.get(added.record.id).text == "Plays the oboe on Sundays"
    assert memory.verify() == []


@pytest.mark.parametrize("save", SAVES)
def test_C16_what_the_person_did_to_their_version_holds(
    memory: Memory, path: Path, save: Callable[[Path, str], None]
) -> None:
    memory.remember("Engineer", key="role", category="work_context")
    memory.remember("Lives in Lyon", category="personal_context")
    memory.remember("Likes tea", category="preference")
    memory.remember("Plays the oboe", category="personal_context")
    buffer = path.read_text()
    agent = memory.acting("agent")
    agent.update("role", "Pilot")
    agent.remember("Penicillin", key="allergy")
    agent.update(memory.search("oboe")[0].record.id, "Plays the bassoon")
    agent.forget(memory.search("Lyon")[0].record.id)
    text = buffer.replace("- Role: Engineer", "- Role: Baker").replace("- Likes tea\n", "")
    text = text.replace("- Plays the oboe\n", "").replace(
        "## User Preferences\n", "## User Preferences\n- Plays the oboe\n"
    )
    save(path, text)
    assert facts(memory) == ["Plays the bassoon", "Role: Baker", "allergy: Penicillin"]
    assert memory.search("bassoon")[0].record.category == "preference"
    assert ("update", "agent", "role: Pilot") in [
        (entry.op, entry.actor, entry.after.text) for entry in memory.history() if entry.after
    ]
    assert "Lyon" not in path.read_text() and "oboe" not in path.read_text()
    assert memory.verify() == []
    memory.undo()
    assert facts(memory) == ["Likes tea", "Plays the bassoon", "allergy: Penicillin", "role: Pilot"]
    assert memory.verify() == []


def test_C16_a_buffer_of_many_versions_ago_over_several_processes(tmp_path: Path, path: Path) -> None:
    def stored(number: int) -> str:
        return f"Fact number {number} about {'abcdefghij'[number % 10] * 6}"

    with recollect.open(tmp_path) as app:
        app.user("u1").remember("Engineer", key="role")
        buffer = path.read_text()
    for number in range(30):
        with recollect.open(tmp_path) as app:
            app.user("u1").acting(f"agent {number % 3}").remember(stored(number))
            assert stored(number) in path.read_text()
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        path.write_text(buffer.replace("Engineer", "Baker"))
        assert facts(memory) == sorted(["Role: Baker", *(stored(number) for number in range(30))])
        assert memory.verify() == []


def test_C16_an_old_file_from_a_backup_keeps_what_came_later(memory: Memory, path: Path) -> None:
    memory.remember("Engineer", key="role")
    memory.remember("Likes tea")
    yesterday = path.read_bytes()
    memory.forget(memory.search("tea")[0].record.id)
    memory.update("role", "Pilot")
    memory.remember("Likes opera")
    by_rename(path, yesterday.decode().replace("\n", "\r\n"))
    assert facts(memory) == ["Likes opera", "role: Pilot"]
    assert memory.verify() == []


def test_C16_more_versions_than_are_remembered_delete_nothing(memory: Memory, path: Path) -> None:
    memory.remember("Engineer", key="role")
    buffer = path.read_text()
    for number in range(230):
        memory.update("role", f"Engineer of grade {number}")
        assert path.read_text()
    memory.remember("Likes opera")
    path.write_text(buffer)
    assert facts(memory) == ["Likes opera", "role: Engineer of grade 229"]
    assert memory.verify() == []


@pytest.mark.parametrize("save", SAVES)
def test_R7_a_stale_buffer_does_not_bring_back_what_was_erased(
    memory: Memory, path: Path, save: Callable[[Path, str], None]
) -> None:
    memory.remember("Likes tea")
    outcome = memory.remember("Has a secret passion for marzipan")
    assert isinstance(outcome, Written)
    buffer = path.read_text()
    memory.erase(outcome.record.id)
    save(path, buffer + "- Likes jazz\n")
    assert facts(memory) == ["Likes jazz", "Likes tea"]
    assert "marzipan" not in path.read_text() and any("erased since" in notice for notice in memory.notices())
    for file in path.parent.rglob("*"):
        assert not file.is_file() or b"marzipan" not in file.read_bytes()


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("looked", [False, True])
def test_R7_a_stale_buffer_does_not_bring_back_what_was_cleared(
    memory: Memory, path: Path, save: Callable[[Path, str], None], looked: bool
) -> None:
    memory.remember("tea", key="drink")
    memory.remember("Has a secret passion for marzipan")
    memory.jot("Read about marzipan")
    note = path.parent / "memory" / "2026-02-12.md"
    buffer, old_note = path.read_text(), note.read_text()
    memory.clear()
    if looked:
        assert memory.show() and memory.read() == [] and path.read_text()
    for _ in range(2):
        save(path, buffer + "- Likes jazz\n")
        note.write_text(old_note)
        assert [record.text for record in memory.read()] == ["Likes jazz"]
        assert sum("erased since" in notice for notice in memory.notices()) == 2
        for file in path.parent.rglob("*"):
            assert not file.is_file() or b"marzipan" not in file.read_bytes()
    assert memory.verify() == []


@pytest.mark.parametrize("erase", [Memory.clear, lambda one: one.erase(*[record.id for record in one.read()])])
def test_R7_something_remembered_again_does_not_make_a_stale_buffer_new(
    memory: Memory, path: Path, erase: Callable[[Memory], object]
) -> None:
    memory.remember("Likes green tea")
    memory.remember("Has a secret passion for marzipan")
    buffer = path.read_text()
    erase(memory)
    memory.remember("Likes green tea")
    assert path.read_text()
    memory.remember("Plays the oboe")
    path.write_text(buffer)
    assert facts(memory) == ["Likes green tea", "Plays the oboe"]
    assert any("erased since" in notice for notice in memory.notices())
    assert memory.verify() == []


def test_R7_a_daily_note_edited_just_before_clear_does_not_come_back(memory: Memory, path: Path) -> None:
    memory.remember("tea", key="drink")
    note = path.parent / "memory" / "2026-02-12.md"
    note.parent.mkdir()
    note.write_text("# 2026-02-12\n\n## Discussions\n- Talked about marzipan\n")
    memory.clear()
    assert not note.exists()
    note.write_text("# 2026-02-12\n\n## Discussions\n- Talked about marzipan\n")
    assert memory.daily("2026-02-12").count("marzipan") == 0 and memory.read() == []


@pytest.mark.parametrize("save", [in_place, by_rename])
@pytest.mark.parametrize(
    "typed", ["# User Memory\n\n## Key Facts\n- Likes cakes\n", "# Me\n\n## Food\n- Likes cakes\n", "# Me\n"]
)
def test_C16_a_file_that_was_begun_before_there_was_one_deletes_nothing(
    memory: Memory, path: Path, save: Callable[[Path, str], None], typed: str
) -> None:
    agent = memory.acting("agent")
    agent.remember("Allergic to penicillin")
    agent.remember("Plays the violin")
    save(path, typed)
    assert {"Allergic to penicillin", "Plays the violin"} <= set(facts(memory))
    assert "Likes cakes" in facts(memory) or "cakes" not in typed
    assert "2 added" in str(memory.notices())
    text = path.read_text()
    save(path, text.replace("- Allergic to penicillin\n", ""))  # this version was theirs
    assert "Allergic to penicillin" not in facts(memory) and "Plays the violin" in facts(memory)


@pytest.mark.parametrize("save", [in_place, by_rename])
def test_C16_a_note_that_was_begun_before_there_was_one_deletes_nothing(
    memory: Memory, tmp_path: Path, save: Callable[[Path, str], None]
) -> None:
    for line in ("Met Ann", "Read about bees"):
        memory.acting("agent").jot(line)
    note = next((tmp_path / "u1" / "memory").glob("*.md"))
    save(note, "# My day\n\n## Discussions\n- Talked about cakes\n")
    assert {record.text for record in memory.read(kind="daily")} == {"Met Ann", "Read about bees", "Talked about cakes"}


@pytest.mark.parametrize("begun", ["# User Memory\n", "# User Memory\n\n## User Preferences\n"])
def test_C16_a_buffer_without_facts_that_is_saved_again_deletes_nothing(memory: Memory, path: Path, begun: str) -> None:
    path.parent.mkdir(parents=True)
    in_place(path, begun)
    memory.show()
    memory.acting("agent").remember("Allergic to penicillin")
    in_place(path, begun)
    assert facts(memory) == ["Allergic to penicillin"] and "1 added" in str(memory.notices())


@pytest.mark.parametrize("emptied", [False, True])
def test_C16_of_two_editors_that_began_without_facts_neither_deletes_what_the_other_added(
    memory: Memory, path: Path, emptied: bool
) -> None:
    path.parent.mkdir(parents=True)
    in_place(path, "# User Memory\n\n## User Preferences\n")
    if emptied:
        memory.remember("Likes jam", key="food")
        memory.forget("food")
    memory.show()
    text = path.read_text()
    in_place(path, f"{text}- Allergic to penicillin\n")
    assert facts(memory) == ["Allergic to penicillin"]
    in_place(path, f"{text}- Likes green tea\n")
    assert facts(memory) == ["Allergic to penicillin", "Likes green tea"]


def test_C16_whoever_deletes_every_line_of_the_first_version_has_deleted_them(memory: Memory, path: Path) -> None:
    memory.remember("Likes tea")
    memory.remember("Plays the violin")
    in_place(path, path.read_text().replace("- Likes tea\n", "").replace("- Plays the violin\n", ""))
    assert facts(memory) == []


@pytest.mark.everyday(1)
@pytest.mark.parametrize("kind", ["fact", "daily"])
def test_R7_an_erased_line_is_not_taken_for_a_new_wording_of_one_that_the_person_deleted(
    tmp_path: Path, kind: str
) -> None:
    """Whatever the person and an agent did before: the line stays erased, and the notice counts what was removed."""
    lines = ["Takes aspirin daily", "Takes ibuprofen daily", "Takes zoloftium daily"]
    for number, (deleted, added, agent, reworded) in enumerate(itertools.product([False, True], repeat=4)):
        memory = recollect.open(tmp_path / str(number)).user("u1")
        store = memory.remember if kind == "fact" else memory.jot
        for line in lines:
            store(line)
        folder = tmp_path / str(number) / "u1"
        path = folder / "MEMORY.md" if kind == "fact" else next((folder / "memory").glob("*.md"))
        text = path.read_text()
        if agent:
            (memory.acting("agent").remember if kind == "fact" else memory.acting("agent").jot)("Walks to work")
        text = text.replace("- Takes ibuprofen daily\n", "") if deleted else text
        text = text.replace("zoloftium", "much zoloftium") if reworded else text
        text = text + "- Sleeps well\n" if added else text
        if deleted or added or reworded:
            path.write_text(text)
        memory.read()
        memory.notices()
        old = path.read_text()
        memory.erase_topic("zoloftium")
        path.write_text(old)
        known = [record.text for record in memory.read()]
        assert "zoloftium" not in f"{known} {path.read_text()}", (deleted, added, agent, reworded)
        assert "1 line" in str(memory.notices()) and "Takes aspirin daily" in known and memory.verify() == []


@pytest.mark.parametrize("save", SAVES)
def test_C16_a_daily_note_is_merged_too(memory: Memory, path: Path, save: Callable[[Path, str], None]) -> None:
    memory.jot("Read about Rust", section="Reading Activity")
    memory.jot("Read about maps", section="Reading Activity")
    note = path.parent / "memory" / "2026-02-12.md"
    buffer = note.read_text()
    memory.jot("Talked about opera", section="Discussions")
    for _ in range(2):
        save(note, buffer.replace("- Read about maps\n", "") + "- Typed by hand\n")
        entries = sorted(record.text for record in memory.read(kind="daily"))
        assert entries == ["Read about Rust", "Talked about opera", "Typed by hand"]
        assert "Talked about opera" in note.read_text() and "maps" not in note.read_text()
    assert memory.verify() == []


# whatever the order


@dataclass
class Person:
    """Somebody with a text open: what they started from, and what they have made of it."""

    base: set[str]
    text: str
    mine: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)


def _statement(random: Random, number: int) -> str:
    """Unlike every other: what looks like a reworded line is taken for one."""
    return (
        " ".join("".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(7)) for _ in range(3))
        + f" {number}"
    )


def _said(entry: JournalEntry) -> set[str]:
    return {record.text for record in (entry.before, entry.after) if record is not None}


def _lines(text: str) -> set[str]:
    return {line[2:] for line in text.splitlines() if line.startswith("- ")}


@pytest.mark.everyday(4)
@pytest.mark.parametrize("seed", seeds(12, 60))
def test_C16_nothing_that_a_person_did_not_have_is_deleted_whatever_the_order(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    path = tmp_path / "u1" / "MEMORY.md"
    app = recollect.open(tmp_path, clock=FrozenClock())
    memory = app.user("u1")
    for number in range(4):
        memory.remember(_statement(random, number))
    people: list[Person] = []
    number = 10
    for _ in range(40):
        number += 1
        step = random.choice(["add", "update", "forget", "open", "open", "type", "delete", "save", "save", "restart"])
        stored = {record.text: record for record in memory.read(kind="fact")}
        if step == "add":
            memory.acting("agent").remember(_statement(random, number))
        elif step == "update" and stored:
            memory.acting("agent").update(stored[random.choice(sorted(stored))].id, _statement(random, number))
        elif step == "forget" and stored:
            memory.acting("agent").forget(stored[random.choice(sorted(stored))].id)
        elif step == "restart":
            app.close()
            app = recollect.open(tmp_path, clock=FrozenClock())
            memory = app.user("u1")
        elif step == "open":
            text = path.read_text()
            people.append(Person(_lines(text), text))
        elif step == "type" and people:
            person, line = random.choice(people), _statement(random, number)
            person.text += f"- {line}\n"
            person.mine.add(line)
        elif step == "delete" and people:
            person = random.choice(people)
            if lines := sorted(_lines(person.text) - person.mine):
                line = random.choice(lines)
                person.text = person.text.replace(f"- {line}\n", "")
                person.deleted.add(line)
        elif step == "save" and people:
            person = random.choice(people)
            random.choice(SAVES)(path, person.text)
            after = {record.text for record in memory.read(kind="fact")}
            # what an agent has reworded meanwhile is still the line that the person deleted
            deleted = {entry.record_id for entry in memory.history() if _said(entry) & person.deleted}
            kept = {text for text, record in stored.items() if record.id not in deleted}
            assert kept <= after, "something went that the person had not deleted"
            assert after <= set(stored) | person.mine, "something came that the person had not typed"
            assert person.mine <= after, "what the person typed is not there"
            assert _lines(path.read_text()) == after and memory.verify() == []
            person.base, person.mine, person.deleted = _lines(person.text), set(), person.deleted
    assert memory.verify() == []
    app.close()


@pytest.mark.parametrize("save", SAVES)
def test_C16_a_version_that_was_opened_before_a_write_and_read_after_it_deletes_nothing(
    memory: Memory, path: Path, save: Callable[[Path, str], None]
) -> None:
    memory.remember("Likes tea")
    for number in range(3):
        with path.open(encoding="utf-8") as opened:
            memory.remember(f"Owns a boat called Number {number}")
            text = opened.read()
        assert f"Number {number}" not in text
        save(path, text + f"- Went to harbour {number}\n")
        facts = [fact.text for fact in memory.read(kind="fact")]
        assert f"Owns a boat called Number {number}" in facts and f"Went to harbour {number}" in facts
