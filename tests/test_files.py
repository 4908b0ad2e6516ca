"""The files a person reads and edits: MEMORY.md and the daily notes, through the public API."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recollect
from recollect import Duplicate, Memory, Updated, Written
from recollect.memory.files import disk as files_module
from recollect.memory.files import file_system
from recollect.testing import FrozenClock
from recollect.userid import folder_name
from tests.volume import first, volume


@dataclass
class Desk:
    """A user's memory, and the folder they look into."""

    memory: Memory
    folder: Path
    reopen: Callable[[], Memory]

    @property
    def path(self) -> Path:
        return self.folder / "MEMORY.md"

    @property
    def text(self) -> str:
        return self.path.read_bytes().decode("utf-8")

    def edit(self, old: str, new: str) -> None:
        text = self.text
        assert old in text
        self.path.write_bytes(text.replace(old, new, 1).encode("utf-8"))

    def save_calmly(self, data: bytes) -> None:
        """Save in place what was opened a while after it was written, and edited for a while."""
        save_calmly(self.path, data)

    def facts(self) -> list[str]:
        return [record.text for record in self.memory.read(kind="fact")]

    def ops(self) -> list[tuple[str, str, str]]:
        return [(e.op, e.actor, (e.after or e.before).text) for e in self.memory.history()]  # type: ignore[union-attr]


def save_calmly(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    written = FrozenClock()().timestamp()
    os.utime(path, (written + 10, written + 20))


@pytest.fixture(params=first(1, ["sqlite", "postgres"]))
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    """Both deployments that have files: the embedded one, and seed B's with PostgreSQL as the database."""
    where = request.getfixturevalue("postgres_tables") if request.param == "postgres" else tmp_path
    clock = FrozenClock()
    apps: list[recollect.Recollect] = []

    def reopen() -> Memory:
        files = tmp_path if request.param == "postgres" else None
        apps.append(recollect.open(where, files=files, clock=clock))
        return apps[-1].user("u1")

    yield Desk(reopen(), tmp_path / "u1", reopen)
    for app in apps:
        app.close()


def test_F1_layout(desk: Desk) -> None:
    desk.memory.remember("Likes tea")
    desk.memory.jot("Read 6 posts", section="Reading Activity")
    assert (desk.folder / "MEMORY.md").is_file()
    assert (desk.folder / "memory" / "2026-02-12.md").is_file()
    assert not [path.name for path in desk.folder.rglob("*.new")]


def test_R4_other_users_of_the_machine_cannot_look_in(desk: Desk, tmp_path: Path) -> None:
    desk.memory.remember("Likes tea")
    archive = desk.memory.export(f"{tmp_path}.zip")
    assert desk.folder.stat().st_mode & 0o077 == 0 and archive.stat().st_mode & 0o077 == 0


def test_F2_the_first_interaction_creates_the_template(desk: Desk) -> None:
    desk.memory.say("hello", session="s")
    assert desk.text == (
        "# User Memory\n\n## User Preferences\n\n## Work Context\n\n## Personal Context\n\n## Key Facts\n"
    )


def test_F3_facts_render_as_a_person_would_write_them(desk: Desk) -> None:
    desk.memory.remember("distributed systems, Rust", key="interested_in", category="preference")
    desk.memory.remember("Prefers concise, technical summaries", category="preference")
    desk.memory.remember("Senior Backend Engineer", key="Role", category="work_context")
    desk.memory.remember("Learning Zig on weekends", type="opinion")
    desk.memory.remember("Timezone: PST (UTC-8)")
    desk.memory.remember("Discussed PostgreSQL 18", category="reading_history")
    assert desk.text == (
        "# User Memory\n\n"
        "## User Preferences\n- Interested in: distributed systems, Rust\n- Prefers concise, technical summaries\n\n"
        "## Work Context\n- Role: Senior Backend Engineer\n\n"
        "## Personal Context\n- Learning Zig on weekends\n\n"
        "## Key Facts\n- Timezone: PST (UTC-8)\n"
    )
    assert desk.memory.daily() == "# 2026-02-12\n\n## Reading Activity\n- Discussed PostgreSQL 18\n"


def test_F3_what_a_person_wrote_stays_as_it_is(desk: Desk) -> None:
    desk.memory.remember("Engineer", key="role", category="work_context")
    odd = (
        "\ufeff---\r\nmine: yes\r\n---\r\n# My own title 🐻\r\n<!-- a comment\r\n- not a fact\r\n-->\r\nprose above\r\n\r\n"
        "## WORK CONTEXT:\r\n*   **Role**:   Engineer\r\n\r\n\r\n## חיות\r\n+ כלב בשם רקס\r\n1. first\r\n> quoted\r\n"
        "```\r\n## code\r\n- x\r\n```\r\n| a | b |\r\n|---|---|\r\n- [ ] buy milk"
    )
    desk.path.write_bytes(odd.encode("utf-8"))
    assert set(desk.facts()) == {"role: Engineer", "כלב בשם רקס", "first", "buy milk"}
    assert desk.text == odd
    desk.memory.remember("Learns Zig")
    assert desk.text.startswith(odd) and "- Learns Zig" in desk.text
    desk.memory.update("role", "Architect")
    assert "*   **Role**:   Architect\r\n" in desk.text
    assert desk.text.replace("Architect", "Engineer").startswith(odd)


def test_F4_added_changed_moved_and_deleted_lines_become_operations(desk: Desk) -> None:
    memory = desk.memory
    memory.remember("Engineer", key="role", category="work_context", confidence=0.8)
    memory.remember("Likes tea", category="preference")
    memory.remember("Learning Zig", category="personal_context")
    memory.remember("Plays chess", category="personal_context")
    text = desk.text.replace("- Role: Engineer", "- Role: Architect").replace("- Plays chess\n", "")
    text = text.replace("- Learning Zig\n", "").replace("## Work Context\n", "## Work Context\n- Learning Zig\n")
    text = text.replace("- Likes tea\n", "- Likes tea\n- Pet: a cat\n")
    desk.path.write_text(text)
    assert sorted(desk.facts()) == ["Learning Zig", "Likes tea", "Pet: a cat", "Role: Architect"]
    by_text = {record.text: record for record in memory.read(kind="fact")}
    assert by_text["Learning Zig"].category == "work_context"
    for edited in ("Role: Architect", "Pet: a cat", "Learning Zig"):
        assert (by_text[edited].source, by_text[edited].confidence) == ("user_edit", 1.0)
    assert by_text["Likes tea"].source == "explicit"
    assert sorted(desk.ops()[4:]) == [
        ("forget", "person", "Plays chess"),
        ("remember", "person", "Pet: a cat"),
        ("update", "person", "Learning Zig"),
        ("update", "person", "Role: Architect"),
    ]
    assert desk.text == text
    memory.undo()
    assert sorted(desk.facts()) == ["Learning Zig", "Likes tea", "Plays chess", "role: Engineer"]
    assert memory.verify() == []


def test_F4_edits_are_read_back_before_a_write_too(desk: Desk) -> None:
    desk.memory.remember("Likes tea")
    desk.edit("Likes tea", "Likes mint tea")
    outcome = desk.memory.remember("Likes mint tea")
    assert isinstance(outcome, Duplicate) and outcome.record.source == "user_edit"


def test_F4_an_edit_of_the_same_length_in_the_same_instant_is_noticed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "_RACY_SECONDS", 3600)  # the same instant, however slow this machine is
    for number in range(3):  # others each time: a line that was cleared would be taken out of the file again
        desk.memory.remember(f"Likes tea {number}")
        before = os.stat(desk.path)
        desk.edit(f"Likes tea {number}", f"Likes ice {number}")
        os.utime(desk.path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert desk.facts() == [f"Likes ice {number}"]
        desk.memory.clear()


def test_F4_a_renamed_key_keeps_the_record(desk: Desk) -> None:
    record = desk.memory.remember("Engineer", key="role", category="work_context")
    assert isinstance(record, Written)
    desk.edit("- Role: Engineer", "- Job Title: Engineer")
    renamed = desk.memory.get("job_title")
    assert renamed.id == record.record.id and renamed.text == "Job Title: Engineer"


def test_F4_a_new_section_and_prose_are_remembered(desk: Desk) -> None:
    desk.memory.remember("Likes tea")
    desk.path.write_text(desk.text + "\n## Pets\n- Rex: a dog\n\nAllergic to peanuts,\nseriously.\n")
    assert desk.facts() == ["Likes tea", "Rex: a dog", "Allergic to peanuts,\nseriously."]
    assert desk.memory.search("peanuts")[0].record.source == "user_edit"
    assert desk.memory.get("rex").section == "Pets"  # type: ignore[attr-defined]
    desk.memory.update("rex", "an old dog")
    assert "## Pets\n- Rex: an old dog\n" in desk.text


def test_F4_the_person_wins_over_an_agent_and_the_agent_is_in_the_journal(desk: Desk) -> None:
    memory = desk.memory
    memory.remember("Engineer", key="role")
    memory.remember("Likes tea")
    memory.remember("Likes chess")
    good = desk.path.read_bytes()
    desk.path.write_bytes(b"\xff" + good)  # the file cannot be read for a while, and the agent goes on
    agent = memory.acting("agent")
    outcome = agent.update("role", "Pilot")
    assert isinstance(outcome, Updated) and "not UTF-8" in outcome.notices[0] and "line 1" in outcome.notices[0]
    agent.forget(memory.search("tea")[0].record.id)
    agent.update(memory.search("chess")[0].record.id, "Likes go")
    agent.remember("Likes opera")
    assert desk.path.read_bytes() == b"\xff" + good
    edited = good.replace(b"Engineer", b"Baker").replace(b"- Likes tea\n", b"- Likes tea\n- Likes rain\n")
    desk.path.write_bytes(edited)
    assert sorted(desk.facts()) == ["Likes go", "Likes opera", "Likes rain", "Role: Baker"]
    assert ("update", "agent", "role: Pilot") in desk.ops() and ("update", "person", "Role: Baker") in desk.ops()
    assert memory.verify() == [] and "Likes tea" not in desk.text and "chess" not in desk.text


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"# \xff\xfe", "not UTF-8"), (b"- a\n- \x00b", "NUL"), (b"- x\n" * 3_000_000, "bytes")],
    ids=["invalid UTF-8", "NUL", "12 MB"],
)
def test_F4_a_file_that_cannot_be_read_is_left_alone(desk: Desk, data: bytes, problem: str) -> None:
    desk.memory.remember("Likes tea")
    desk.path.write_bytes(data)
    outcome = desk.memory.remember("Likes coffee")
    assert isinstance(outcome, Written) and problem in outcome.notices[0] and "was not changed" in outcome.notices[0]
    assert desk.path.read_bytes() == data
    assert sorted(desk.facts()) == ["Likes coffee", "Likes tea"]
    desk.path.write_text("## Key Facts\n- Likes tea\n- Likes milk\n")
    assert sorted(desk.facts()) == ["Likes coffee", "Likes milk", "Likes tea"]
    assert "Likes coffee" in desk.text and desk.memory.verify() == []


@pytest.mark.parametrize("how", ["deleted", "emptied", "blanked"])
def test_F4_a_lost_file_is_written_again_and_nothing_is_forgotten(desk: Desk, how: str) -> None:
    desk.memory.remember("Likes tea")
    before = desk.text
    if how == "deleted":
        desk.path.unlink()
    else:
        desk.path.write_text("" if how == "emptied" else " \n\n")
    outcome = desk.memory.remember("Likes tea")
    assert isinstance(outcome, Duplicate) and "nothing was forgotten" in outcome.notices[0]
    assert desk.text == before and desk.memory.verify() == []
    desk.path.unlink()
    assert desk.facts() == ["Likes tea"]
    assert [notice.split(" and ")[0] for notice in desk.memory.notices()] == ["MEMORY.md was missing"]
    assert desk.memory.notices() == []


def test_F4_deleting_all_lines_but_the_headings_forgets_all_and_can_be_undone(desk: Desk) -> None:
    desk.memory.remember("Likes tea")
    desk.memory.remember("Engineer", key="role")
    desk.path.write_text("# User Memory\n\n## Key Facts\n")
    assert desk.facts() == []
    desk.memory.undo()
    assert sorted(desk.facts()) == ["Likes tea", "role: Engineer"] and desk.memory.verify() == []


def test_F4_deleting_the_line_an_agent_just_wrote_forgets_it(desk: Desk) -> None:
    desk.memory.remember("Likes tea")
    desk.memory.remember("Likes coffee")
    desk.edit("- Likes coffee\n", "")
    assert desk.facts() == ["Likes tea"] and "coffee" not in desk.text


def test_F4_the_text_of_before_an_agent_wrote_is_not_a_deletion_unless_somebody_took_their_time(desk: Desk) -> None:
    desk.memory.remember("Likes tea")
    before = desk.path.read_bytes()
    desk.memory.remember("Likes coffee")
    now = desk.path.read_bytes()
    desk.path.write_bytes(before)  # from an editor that was opened before, or by someone who deleted the new line
    assert desk.facts() == ["Likes tea", "Likes coffee"] and desk.path.read_bytes() == now
    assert any("1 added" in notice for notice in desk.memory.notices())
    desk.save_calmly(before)
    assert desk.facts() == ["Likes tea"] and desk.path.read_bytes() == before


def test_F4_a_line_the_policy_refuses_stays_in_the_file_and_is_not_remembered(desk: Desk) -> None:
    desk.memory.remember("Likes tea")
    secret = "sk-" + "abcdefghijklmnopqrstuvwx0123456789ABCD"
    desk.path.write_text(desk.text + f"- my key is {secret}\n- Likes rain\n")
    outcome = desk.memory.remember("Likes snow")
    assert any("line 11 stays in your file but is not remembered" in notice for notice in outcome.notices)
    assert secret in desk.text and secret not in repr(desk.memory.history())
    assert sorted(desk.facts()) == ["Likes rain", "Likes snow", "Likes tea"]
    desk.memory.remember("Likes wind")
    assert secret in desk.text and desk.memory.verify() == []


def test_F4_repeated_lines_are_one_fact(desk: Desk) -> None:
    desk.memory.remember("Likes tea")
    desk.edit("- Likes tea\n", "- Likes tea\n- Likes tea\n")
    assert desk.facts() == ["Likes tea"]
    desk.edit("- Likes tea\n- Likes tea\n", "- Likes tea\n")
    assert desk.facts() == ["Likes tea"]


def test_F4_a_paused_memory_still_takes_over_what_the_person_writes(desk: Desk) -> None:
    desk.memory.remember("Likes tea")
    desk.memory.pause()
    desk.edit("Likes tea", "Likes mate")
    assert desk.facts() == ["Likes mate"]


def test_F4_writing_again_what_was_pruned_brings_it_back(tmp_path: Path) -> None:
    with recollect.open(tmp_path, max_words=50) as app:
        memory = app.user("u1")
        for n in range(12):
            memory.remember(f"Visited the town {n * 37} with friend {n * 91}")
        pruned = next(record for record in memory.read(kind="fact") if record.tier == "archive")
        path = tmp_path / "u1" / "MEMORY.md"
        path.write_text(path.read_text() + f"- {pruned.content}\n")
        assert (memory.get(pruned.id).tier, memory.get(pruned.id).source) == ("file", "user_edit")
        for n in range(20, 30):
            memory.remember(f"Visited the town {n * 37} with friend {n * 91}")
        assert pruned.content in memory.show() and len(memory.show().split()) <= 50 and memory.verify() == []


def test_F6_what_the_person_wrote_is_never_pruned(tmp_path: Path) -> None:
    with recollect.open(tmp_path, max_words=50) as app:
        memory = app.user("u1")
        memory.remember("Likes tea")
        path = tmp_path / "u1" / "MEMORY.md"
        mine = "".join(f"- I wrote the line number {n} myself\n" for n in range(12))
        path.write_text(path.read_text() + mine)
        outcome = memory.remember("Likes coffee")
        assert mine in path.read_text() and any("longer than 50 words" in notice for notice in outcome.notices)
        assert "Likes coffee" not in path.read_text() and memory.search("coffee") and memory.verify() == []


def test_F7_daily_notes_are_only_appended(desk: Desk) -> None:
    path = desk.folder / "memory" / "2026-02-12.md"
    seen = b""
    for section, text in [
        ("Discussions", "Discussed «PG 18» (12 messages)\n- Interested in async I/O"),
        ("Discussions", "Discussed Raft"),
        ("Explicit Memories", "Presents next week"),
        ("Discussions", "Discussed CRDTs"),
    ]:
        desk.memory.jot(text, section=section)
        now = path.read_bytes()
        lines = iter(now.splitlines())
        assert all(line in lines for line in seen.splitlines()) and len(now) > len(seen)
        seen = now
    assert desk.memory.daily() == (
        "# 2026-02-12\n\n## Discussions\n- Discussed «PG 18» (12 messages)\n  - Interested in async I/O\n- Discussed Raft\n"
        "- Discussed CRDTs\n\n## Explicit Memories\n- Presents next week\n"
    )
    with pytest.raises(recollect.InvalidInputError, match="cannot be changed"):
        desk.memory.update(desk.memory.search("raft")[0].record.id, "Discussed Paxos")
    desk.memory.forget(desk.memory.search("raft")[0].record.id)
    assert path.read_bytes() == seen and len(desk.memory.read(kind="daily")) == 3
    desk.memory.undo()
    assert path.read_bytes() == seen and len(desk.memory.read(kind="daily")) == 4
    assert desk.memory.days() == [date(2026, 2, 12)] and desk.memory.verify() == []


def test_F7_a_person_may_edit_a_daily_note_too(desk: Desk) -> None:
    path = desk.folder / "memory" / "2026-02-12.md"
    desk.memory.jot("Read 6 posts", section="Reading Activity")
    desk.memory.jot("Saved an article", section="Reading Activity")
    path.write_text(
        path.read_text().replace("Read 6 posts", "Read 7 posts").replace("- Saved an article\n", "") + "- Ran 5 km\n"
    )
    assert [record.text for record in desk.memory.read(kind="daily")] == ["Read 7 posts", "Ran 5 km"]
    path.unlink()
    assert len(desk.memory.read(kind="daily")) == 2 and "Ran 5 km" in path.read_text()
    other = desk.folder / "memory" / "2026-02-10.md"
    other.write_text("# 2026-02-10\n\n## Discussions\n- Discussed Rust\n")
    (desk.folder / "memory" / "2026-99-99.md").write_text("not a day")
    assert "Discussed Rust" in [record.text for record in desk.memory.read(kind="daily")]
    assert desk.memory.days() == [date(2026, 2, 10), date(2026, 2, 12)] and desk.memory.verify() == []


def test_F7_an_odd_daily_note_is_read_and_left_as_it_is(desk: Desk) -> None:
    path = desk.folder / "memory" / "2026-02-10.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text := "## Discussions\n\\\tAfter a backslash and a tab\nmore\n\n\\ # no heading\n")
    assert len(desk.memory.read(kind="daily")) == 2
    desk.memory.jot("Something of today")
    assert path.read_text() == text and desk.memory.verify() == []


def test_R7_erasing_reaches_every_file(desk: Desk) -> None:
    desk.memory.remember("The zebra incident", key="secret")
    desk.memory.jot("Talked about the zebra incident")
    desk.memory.remember("Likes tea")
    desk.memory.update("secret", "The okapi incident")
    _gone, receipt = desk.memory.erase_topic("incident")
    assert receipt is not None and receipt.places["lines of MEMORY.md"] == 1
    assert receipt.places["lines of daily notes"] == 1
    desk.memory._user_memory.user.close()
    for path in desk.folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"zebra" not in content and b"okapi" not in content, path
    assert not (desk.folder / "memory" / "2026-02-12.md").exists()
    memory = desk.reopen()
    assert [record.text for record in memory.read()] == ["Likes tea"] and memory.verify() == []


def test_R7_erasing_an_entry_of_a_note_that_was_just_edited(desk: Desk) -> None:
    entry = desk.memory.jot("Talked about the zebra incident")
    assert isinstance(entry, Written)
    path = desk.folder / "memory" / "2026-02-12.md"
    path.write_text(path.read_text().replace("zebra incident", "zebra incident again") + "- Ran 5 km\n")
    desk.memory.erase(entry.record.id)
    assert [record.text for record in desk.memory.read()] == ["Ran 5 km"]
    assert "zebra" not in path.read_text() and "Ran 5 km" in path.read_text() and desk.memory.verify() == []


def test_R7_clear_resets_the_files_and_what_the_person_wrote_in_them(desk: Desk) -> None:
    desk.memory.remember("Likes tea")
    desk.memory.jot("Read 6 posts")
    desk.path.write_text(desk.text + "\n## Mine\nsome words of mine\n")
    receipt = desk.memory.clear().receipt
    assert receipt.places["daily notes"] == 1
    assert desk.text.splitlines()[0] == "# User Memory" and "mine" not in desk.text
    assert list((desk.folder / "memory").iterdir()) == []
    memory = desk.reopen()
    assert memory.read() == [] and memory.verify() == []


def test_F8_after_a_crash_between_commit_and_rename_the_next_open_repairs(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.memory.remember("Likes tea")
    before = desk.path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(files_module.DiskFiles, "_rename", lambda *_: None)  # the process died here
        with desk.memory.batch() as batch:
            batch.remember("Likes coffee")
            batch.jot("Read 6 posts")
    assert desk.path.read_bytes() == before and (desk.folder / ".MEMORY.md.new").exists()
    memory = desk.reopen()
    assert sorted(record.text for record in memory.read()) == ["Likes coffee", "Likes tea", "Read 6 posts"]
    assert "Likes coffee" in desk.text and "Read 6 posts" in memory.daily() and memory.verify() == []
    assert not list(desk.folder.rglob("*.new"))


def test_F8_an_edit_of_the_old_file_after_such_a_crash_loses_neither(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.memory.remember("Likes tea")
    desk.memory.remember("Engineer", key="role")
    with monkeypatch.context() as patched:
        patched.setattr(files_module.DiskFiles, "_rename", lambda *_: None)
        desk.memory.update("role", "Pilot")
    desk.edit("- Likes tea\n", "- Likes mate\n- Likes rain\n")
    memory = desk.reopen()
    assert sorted(record.text for record in memory.read()) == ["Likes mate", "Likes rain", "role: Pilot"]
    assert memory.verify() == []


def test_F8_after_a_loss_of_power_a_file_that_went_back_in_time_deletes_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.memory.remember("Likes tea")
    desk.memory.remember("Engineer", key="role")
    old = desk.path.read_bytes()
    desk.memory.remember("Likes coffee")
    desk.memory.update("role", "Pilot")
    desk.memory.forget(desk.memory.search("tea")[0].record.id)
    desk.path.write_bytes(old)  # what the disk had when the power went
    monkeypatch.setattr(file_system, "boot", lambda: "another start of the machine")
    memory = desk.reopen()
    assert sorted(record.text for record in memory.read()) == ["Likes coffee", "role: Pilot"]
    assert "Likes coffee" in desk.text and "Likes tea" not in desk.text and memory.verify() == []


def test_F8_an_edit_in_the_very_moment_of_writing_is_not_overwritten(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.memory.remember("Likes tea")
    write_aside = files_module.DiskFiles._write_aside

    def meanwhile(self: files_module.DiskFiles, *args: object) -> None:
        write_aside(self, *args)  # type: ignore[arg-type]
        desk.edit("- Likes tea\n", "- Likes tea\n- Typed just now\n")

    with monkeypatch.context() as patched:
        patched.setattr(files_module.DiskFiles, "_write_aside", meanwhile)
        desk.memory.remember("Likes coffee")
    assert "Typed just now" in desk.text
    assert sorted(desk.facts()) == ["Likes coffee", "Likes tea", "Typed just now"]
    assert "Likes coffee" in desk.text and "Typed just now" in desk.text and desk.memory.verify() == []


def test_a_folder_that_is_copied_is_a_person_that_moved(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a") as app:
        app.user("Anna K.").remember("Likes tea")
    name = folder_name("Anna K.")
    shutil.copytree(tmp_path / "a" / name, tmp_path / "b" / name)
    with recollect.open(tmp_path / "b") as app:
        assert list(app.users()) == ["Anna K."]
        assert [record.text for record in app.user("Anna K.").read()] == ["Likes tea"]


def test_R4_another_persons_folder_under_a_wrong_name_is_not_opened(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        app.user("anna").remember("Likes tea")
    shutil.copytree(tmp_path / "anna", tmp_path / "bob")
    with recollect.open(tmp_path) as app:
        with pytest.raises(recollect.StoreError, match="belongs to another user"):
            app.user("bob").read()
        with pytest.raises(recollect.StoreError, match="belongs to another user"):
            app.user("bob").remember("Likes coffee")
        assert list(app.users()) == ["anna"]


def test_F4_a_file_that_is_there_before_anything_else_is_taken_over(desk: Desk) -> None:
    (desk.folder / "memory").mkdir(parents=True)
    desk.path.write_text("# Me\n\n## Work Context\n- Role: Engineer\n")
    (desk.folder / "memory" / "2026-02-11.md").write_text("# 2026-02-11\n\n## Discussions\n- Discussed Rust\n")
    assert desk.facts() == ["Role: Engineer"]
    assert [record.text for record in desk.memory.read(kind="daily")] == ["Discussed Rust"]
    assert desk.text == "# Me\n\n## Work Context\n- Role: Engineer\n"


# a person and an agent, taking turns

_WORDS = ["tea", "rust", "chess", "opera", "bread", "trains", "maps", "snow", "Київ", "東京", "naïve", "🐻"]
_statement = st.builds(
    lambda verb, what, number: f"{verb} {what} {number}",
    st.sampled_from(["Likes", "Avoids", "Studies", "Collects"]),
    st.sampled_from(_WORDS),
    st.integers(1, 40),
)
_step = st.one_of(
    st.tuples(st.just("agent adds"), _statement),
    st.tuples(st.just("agent updates"), _statement),
    st.tuples(st.just("agent forgets"), st.just("")),
    st.tuples(st.just("person adds"), _statement),
    st.tuples(st.just("person changes"), _statement),
    st.tuples(st.just("person deletes"), st.just("")),
    st.tuples(st.just("person writes prose"), _statement),
    st.tuples(st.just("person comments"), _statement),
    st.tuples(st.just("person uses CRLF"), st.just("")),
    st.tuples(st.just("person shuffles"), st.just("")),
    st.tuples(st.just("undo"), st.just("")),
)


@settings(max_examples=volume(12, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(_step, min_size=1, max_size=12), pick=st.integers(0, 10**6))
def test_F4_a_person_and_an_agent_taking_turns_agree_in_the_end(
    steps: list[tuple[str, str]], pick: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("turns")
    with recollect.open(folder, clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.remember("Begins here 0")
        path = folder / "u1" / "MEMORY.md"
        comments: list[str] = []
        for number, (step, text) in enumerate(steps):
            bullets = [line for line in path.read_bytes().decode().splitlines() if line.startswith(("- ", "* "))]
            active = [record for record in memory.read(kind="fact") if record.tier == "file"]
            assert len(bullets) <= len(active)
            content = path.read_bytes().decode()
            chosen = bullets[(pick + number) % len(bullets)] if bullets else None
            if step == "agent adds":
                memory.remember(text)
            elif step == "agent updates" and active:
                memory.update(active[(pick + number) % len(active)].id, text)
            elif step == "agent forgets" and active:
                memory.forget(active[(pick + number) % len(active)].id)
            elif step == "person adds":
                content += ("" if content.endswith("\n") else "\n") + f"* {text} by hand {number}\n"
            elif step == "person changes" and chosen:
                content = content.replace(chosen, f"- {text} changed {number}", 1)
            elif step == "person deletes" and chosen:
                content = content.replace(chosen, "", 1)
            elif step == "person writes prose":
                content += f"\n\n{text} in prose {number}.\n\n"
            elif step == "person comments":
                comments.append(f"<!-- {text} {number} -->")
                content += f"\n\n{comments[-1]}\n"
            elif step == "person uses CRLF":
                content = content.replace("\r\n", "\n").replace("\n", "\r\n")
            elif step == "person shuffles":
                content = content.replace("## Work Context", "## Interests of mine")
            elif step == "undo":
                try:
                    memory.undo()
                except recollect.RecollectError:
                    continue
            if step.startswith("person"):
                save_calmly(path, content.encode())
                shown = memory.show()
                assert shown == content  # taking over an edit changes nothing in the file
            facts = {record.content for record in memory.read(kind="fact") if record.tier == "file"}
            text_now = path.read_bytes().decode()
            for fact in facts:
                assert fact in text_now
            for comment in comments:
                assert comment in text_now
        assert memory.verify() == []
        again = recollect.open(folder).user("u1")
        assert again.read() == memory.read() and again.verify() == []


def test_a_note_that_was_erased_is_not_reported_as_missing(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        memory.jot("Went out")
        memory.erase(memory.read(kind="daily")[0].id)
        assert not memory.jot("Came back").notices and memory.notices() == []
        assert "Came back" in memory.daily() and memory.verify() == []
