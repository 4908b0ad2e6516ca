"""A file given anew: `Memory.edit` in each deployment, and what it means with and without files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recollect
from recollect import (
    DailyEntry,
    Edited,
    InvalidInputError,
    Memory,
    Outcome,
    Recollect,
    Refused,
    Unchanged,
)
from recollect.errors import DocumentError
from recollect.memory.files.disk import DiskFiles
from recollect.testing import FrozenClock, MemoryStore
from tests.volume import volume

_SECRET = "sk-ant-api03-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3"
DAY = "2026-02-12"


def edited(outcome: Outcome) -> Edited:
    assert isinstance(outcome, Edited) and outcome.done, outcome
    return outcome


def refused(outcome: Outcome, reason: str) -> Refused:
    assert isinstance(outcome, Refused) and not outcome.done and outcome.reason == reason, outcome
    return outcome


def facts(memory: Memory) -> list[str]:
    return sorted(record.text for record in memory.read(kind="fact"))


def in_place(memory: Memory, old: str, new: str) -> str:
    """MEMORY.md with one change."""
    text = memory.show()
    assert old in text
    return text.replace(old, new, 1)


class EditContract:
    """What an edit does wherever the memory is kept. Subclass it and provide the fixture ``app``."""

    @pytest.fixture
    def clock(self) -> FrozenClock:
        return FrozenClock()

    @pytest.fixture
    def app(self, clock: FrozenClock) -> Iterator[Recollect]:
        raise NotImplementedError

    @pytest.fixture
    def memory(self, app: Recollect) -> Iterator[Memory]:
        memory = app.user("u1")
        yield memory
        assert memory.verify() == []

    @pytest.fixture
    def tool(self, memory: Memory) -> Memory:
        return memory.acting("tool:memory", agent="helper", session="chat-7", call="call-1")

    def test_F4_an_edit_through_the_api_becomes_operations(self, memory: Memory) -> None:
        memory.remember("Engineer", key="role", category="work_context", confidence=0.8, source="discussion:1")
        memory.remember("Likes tea", category="preference")
        memory.remember("Learning Zig", category="personal_context")
        memory.remember("Plays chess", category="personal_context")
        text = memory.show().replace("Role: Engineer", "Role: Architect").replace("role: Engineer", "role: Architect")
        text = text.replace("- Plays chess\n", "").replace("- Learning Zig\n", "")
        text = text.replace("## Work Context\n", "## Work Context\n- Learning Zig\n")
        text = text.replace("- Likes tea\n", "- Likes tea\n- Pet: a cat\n")
        outcome = edited(memory.edit(text))
        assert [record.text for record in outcome.added] == ["Pet: a cat"]
        assert sorted(record.content for record in outcome.updated) == ["Architect", "Learning Zig"]
        assert [(record.text, record.status) for record in outcome.removed] == [("Plays chess", "archived")]
        assert outcome.message == "Edited MEMORY.md: 1 added, 2 changed, 1 removed." and not outcome.notices
        by_text = {record.content: record for record in memory.read(kind="fact")}
        assert by_text.keys() == {"Architect", "Learning Zig", "Likes tea", "a cat"}
        assert by_text["Learning Zig"].category == "work_context"
        for content in ("Architect", "Learning Zig", "a cat"):
            assert (by_text[content].source, by_text[content].confidence) == ("user_edit", 1.0)
        assert by_text["Likes tea"].source == "explicit"
        entries = memory.history(run=outcome.run)
        assert {entry.actor for entry in entries} == {"person"} and len(entries) == 4
        assert sorted(entry.op for entry in entries) == ["forget", "remember", "update", "update"]

    def test_R5_an_edit_is_undone_as_one(self, memory: Memory) -> None:
        memory.remember("Engineer", key="role", category="work_context")
        memory.remember("Likes tea")
        known = facts(memory)
        text = in_place(memory, "Engineer", "Architect").replace("- Likes tea\n", "- Sails on Sundays\n")
        outcome = edited(memory.edit(text))
        assert facts(memory) != known
        assert outcome.run and len(memory.undo(outcome.run).entries) == len(memory.history(run=outcome.run)) >= 2
        assert facts(memory) == known

    def test_R5_an_edit_of_two_facts_of_one_key_is_undone_too(self, memory: Memory) -> None:
        memory.edit("## Key Facts\n- Role: Alpha\n- Role: Beta\n- Likes tea\n")
        for lines in ("- Role: Beta\n", "- Role: Gamma\n", "- Role: Gamma\n- Role: Delta\n- Role: Epsilon\n"):
            outcome = edited(memory.edit(f"## Key Facts\n{lines}- Likes tea\n"))
            assert outcome.run
            memory.undo(outcome.run)
            assert facts(memory) == ["Likes tea", "Role: Alpha", "Role: Beta"]

    def test_F4_the_same_text_changes_nothing(self, memory: Memory) -> None:
        memory.remember("Likes tea")
        before = len(memory.history())
        outcome = memory.edit(memory.show())
        assert isinstance(outcome, Unchanged) and not outcome.done and "MEMORY.md" in outcome.message
        assert len(memory.history()) == before

    def test_F4_a_memory_can_begin_with_an_edit(self, memory: Memory) -> None:
        assert not memory.exists
        outcome = edited(memory.edit("## Key Facts\n- Likes tea\n"))
        assert facts(memory) == ["Likes tea"] and outcome.added[0].source == "user_edit"

    def test_F4_what_changed_meanwhile_is_not_overwritten(self, memory: Memory, tool: Memory) -> None:
        memory.remember("Likes tea")
        seen = memory.show()
        tool.remember("Learned meanwhile", source="discussion:1")
        outcome = refused(memory.edit(seen + "- Mine\n", expect=seen), "changed")
        assert "MEMORY.md has changed in the meantime" in outcome.message
        assert facts(memory) == ["Learned meanwhile", "Likes tea"]
        seen = memory.show()
        edited(memory.edit(seen + "- Mine\n", expect=seen))
        assert facts(memory) == ["Learned meanwhile", "Likes tea", "Mine"]
        refused(memory.edit("# 2026-02-12\n", day=DAY, expect="something"), "changed")

    def test_R2_a_tools_edit_says_whose_it_is(self, memory: Memory, tool: Memory) -> None:
        memory.remember("Engineer", key="role", category="work_context", confidence=0.8)
        memory.edit(in_place(memory, "## Key Facts\n", "## Key Facts\n- Typed by the person\n- And another one\n"))
        text = in_place(memory, "Engineer", "Architect").replace("- Typed by the person\n", "")
        text = text.replace("## Personal Context\n", "## Personal Context\n- Typed by the person\n- Has a cat\n")
        outcome = edited(tool.edit(text))
        by = {record.content: record for record in memory.read(kind="fact")}
        for content, confidence in (("Architect", 0.8), ("Has a cat", 1.0)):
            record = by[content]
            assert (record.source, record.agent, record.session) == ("tool:memory", "helper", "chat-7")
            assert record.confidence == confidence
        assert by["Typed by the person"].category == "personal_context"
        assert by["Typed by the person"].source == "user_edit", "it was moved; the words are still the person's"
        assert by["And another one"].source == "user_edit"
        entries = memory.history(run=outcome.run)
        assert {(entry.actor, entry.call) for entry in entries} == {("tool:memory", "call-1")} and len(entries) == 3
        assert "An agent stored it with a tool (memory)" in memory.why(by["Has a cat"].id).message

    @pytest.mark.parametrize(
        ("context", "source"),
        [
            ({"actor": "user_edit"}, "tool:user_edit"),
            ({"actor": "agent"}, "tool:agent"),
            ({"agent": "bot"}, "tool:bot"),
            ({"session": "console"}, "user_edit"),
        ],
    )
    def test_R2_only_the_person_edits_as_the_person(self, memory: Memory, context: dict[str, str], source: str) -> None:
        outcome = edited(memory.acting(**context).edit("## Key Facts\n- Likes tea\n"))  # type: ignore[arg-type]
        assert outcome.added[0].source == source

    def test_P5_a_tools_edit_with_a_secret_or_code_is_refused_as_a_whole(self, memory: Memory, tool: Memory) -> None:
        memory.remember("Likes tea")
        before = memory.show()
        line = before[: before.index("- Likes tea")].count("\n") + 2
        for bad, reason, at in (
            (f"- Likes tea\n- Has a cat\n- Token: {_SECRET}\n", "secret", line + 1),
            (f"- Likes tea\n- Has a cat\n<!-- {_SECRET} -->\n", "secret", line + 1),
            (f"- Likes tea\n\n## {_SECRET}\n- Has a cat\n", "secret", line + 1),
            ("- Likes tea\n- def f(x): return x + 1; import os\n", "code", line),
            ("- Likes tea\n```python\nimport os\n```\n", "code", line),
        ):
            outcome = refused(tool.edit(before.replace("- Likes tea\n", bad)), reason)
            assert f"line {at}:" in outcome.message and _SECRET not in outcome.message
            assert memory.show() == before and facts(memory) == ["Likes tea"]
        refused(tool.edit(f"# {DAY}\n\n## Discussions\n- The token is {_SECRET}\n", day=DAY), "secret")
        assert memory.daily(DAY) == ""

    def test_P7_while_memory_is_paused_only_the_person_edits(self, memory: Memory, tool: Memory) -> None:
        memory.remember("Likes tea")
        for incognito in (False, True):
            memory.pause(incognito=incognito)
            before = memory.show()
            for text in (before + "- Has a cat\n", before.replace("- Likes tea\n", "")):
                refused(tool.edit(text), "incognito" if incognito else "paused")
            refused(
                tool.edit(f"# {DAY}\n\n## Discussions\n- Talked\n", day=DAY), "incognito" if incognito else "paused"
            )
            assert memory.show() == before
        edited(memory.edit(before + "- Has a cat\n"))
        memory.resume()
        assert facts(memory) == ["Has a cat", "Likes tea"]

    def test_R7_what_was_erased_does_not_come_back_by_a_tool(self, memory: Memory, tool: Memory) -> None:
        memory.remember("Lives in Lviv", key="home")
        memory.remember("Likes tea")
        memory.erase("home")
        text = memory.show() + "- home: Lives in Lviv\n"
        outcome = refused(tool.edit(text), "erased")
        assert "Lviv" not in outcome.message and facts(memory) == ["Likes tea"]
        edited(memory.edit(text))
        assert facts(memory) == ["Likes tea", "home: Lives in Lviv"]

    def test_F7_a_daily_note_is_edited_by_the_same_rules(self, memory: Memory, tool: Memory) -> None:
        memory.jot("Read 6 posts", section="Reading Activity", confidence=0.7)
        memory.jot("Talked about Rust", section="Discussions")
        text = memory.daily(DAY).replace("6 posts", "7 posts").replace("- Talked about Rust\n", "- Slept well\n")
        outcome = edited(tool.edit(text, day=date(2026, 2, 12), expect=memory.daily(DAY)))
        assert memory.daily(DAY) == text
        [new] = outcome.added
        assert isinstance(new, DailyEntry) and (new.content, new.source) == ("Slept well", "tool:memory")
        assert new.expires_at is not None and new.session == "chat-7"
        [changed] = outcome.updated
        assert (changed.content, changed.source, changed.confidence) == ("Read 7 posts", "tool:memory", 0.7)
        assert [record.content for record in outcome.removed] == ["Talked about Rust"]
        edited(memory.edit(text.replace("7 posts", "8 posts"), day=DAY))
        entries = {entry.content: entry for entry in memory.read(kind="daily")}
        assert (entries["Read 8 posts"].source, entries["Read 8 posts"].confidence) == ("user_edit", 1.0)
        assert outcome.message.startswith(f"Edited memory/{DAY}.md: ")

    def test_F4_a_note_of_a_day_without_one_begins_with_an_edit(self, memory: Memory) -> None:
        text = "# 2026-02-11\n\n## Discussions\n- Talked about Rust\n"
        edited(memory.edit(text, day="2026-02-11"))
        assert memory.daily("2026-02-11") == text and memory.days() == [date(2026, 2, 11)]

    @pytest.mark.everyday(10)
    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            (None, "must be text"),
            (b"bytes", "must be text"),
            ("", "must not be empty"),
            ("\ufeff \r\n\t", "must not be empty"),
            ("- a\0b", "control character"),
            ("- a\ud800b", "half a character"),
            ("x" * 1_000_001, "at most 1,000,000"),
            ("é" * 600_000, "bytes as UTF-8"),
        ],
    )
    def test_bad_text_is_an_error(self, memory: Memory, text: str, problem: str) -> None:
        memory.remember("Likes tea")
        with pytest.raises(InvalidInputError, match=problem):
            memory.edit(text)
        with pytest.raises(InvalidInputError, match="expect"):
            memory.edit("fine", expect=b"old")  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="day"):
            memory.edit("fine", day="yesterday or so")
        assert facts(memory) == ["Likes tea"]

    def test_F4_an_edit_within_a_batch_sees_and_keeps_what_the_batch_did(self, memory: Memory) -> None:
        memory.remember("Likes tea")
        text = in_place(memory, "- Likes tea\n", "- Likes green tea\n- Has a cat\n")
        with memory.batch() as batch:
            batch.remember("Has a cat")
            edited(batch.edit(text))
            batch.remember("Plays chess")
        assert facts(memory) == ["Has a cat", "Likes green tea", "Plays chess"]
        assert len(memory.read(status="all", kind="fact")) == 3

    def test_F4_an_edit_in_a_batch_that_fails_leaves_no_trace(self, memory: Memory) -> None:
        memory.remember("Likes tea")
        before = memory.show()
        with pytest.raises(RuntimeError), memory.batch() as batch:
            batch.edit(before + "- Has a cat\n")
            raise RuntimeError
        assert memory.show() == before and facts(memory) == ["Likes tea"]

    def test_F6_a_tools_edit_can_be_pruned_and_the_persons_cannot(self, app: Recollect, memory: Memory) -> None:
        many = "".join(f"- Number {n} of the things {'that were said ' * 20}{n}\n" for n in range(40))
        memory.edit("## Key Facts\n- Typed by the person\n")
        edited(memory.acting("tool:memory").edit(memory.show() + many))
        shown = [record.content for record in memory.read(kind="fact") if record.tier == "file"]
        assert "Typed by the person" in shown and 1 < len(shown) < 41
        assert len(memory.read(kind="fact")) == 41
        person = app.user("u2")
        outcome = edited(person.edit("## Key Facts\n" + many))
        assert all(record.tier == "file" for record in person.read(kind="fact"))
        assert "nothing was removed" in outcome.notices[0]


class TestEmbedded(EditContract):
    @pytest.fixture
    def app(self, clock: FrozenClock, tmp_path: Path) -> Iterator[Recollect]:
        with recollect.open(tmp_path, clock=clock, max_words=500) as app:
            yield app


class TestInMemory(EditContract):
    @pytest.fixture
    def app(self, clock: FrozenClock) -> Iterator[Recollect]:
        with recollect.open(MemoryStore(), clock=clock, max_words=500) as app:
            yield app


@pytest.mark.slow
class TestPostgres(EditContract):
    @pytest.fixture
    def app(self, clock: FrozenClock, postgres_tables: str) -> Iterator[Recollect]:
        with recollect.open(postgres_tables, clock=clock, max_words=500) as app:
            yield app


@pytest.mark.slow
class TestPostgresWithFiles(EditContract):
    @pytest.fixture
    def app(self, clock: FrozenClock, postgres_tables: str, tmp_path: Path) -> Iterator[Recollect]:
        with recollect.open(postgres_tables, files=tmp_path, clock=clock, max_words=500) as app:
            yield app


# with files


@pytest.fixture(params=["sqlite", "postgres"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """The two deployments with files."""
    where = request.getfixturevalue("postgres_tables") if request.param == "postgres" else tmp_path
    with recollect.open(where, files=tmp_path if request.param == "postgres" else None, clock=FrozenClock()) as app:
        yield app.user("u1")
        assert app.user("u1").verify() == []


_ODD = (
    "\ufeff---\r\nmine: yes\r\n---\r\n# My own title 🐻\r\n<!-- a comment\r\n- not a fact\r\n-->\r\nprose above\r\n\r\n"
    "## WORK CONTEXT:\r\n*   **Role**:   Engineer\r\n\r\n\r\n## חיות\r\n+ כלב בשם רקס\r\n1. first\r\n> quoted\r\n"
    "```\r\n## code\r\n- x\r\n```\r\n| a | b |\r\n|---|---|\r\n- [ ] buy milk"
)


def test_F3_what_is_not_a_fact_stays_as_it_was_given(memory: Memory, tmp_path: Path) -> None:
    memory.remember("Engineer", key="role", category="work_context")
    edited(memory.edit(_ODD))
    assert (tmp_path / "u1" / "MEMORY.md").read_bytes().decode() == _ODD == memory.show()
    assert facts(memory) == sorted(["role: Engineer", "כלב בשם רקס", "first", "buy milk"])
    only_prose = edited(memory.edit(_ODD.replace("prose above", "prose BELOW")))
    assert only_prose.run is None and only_prose.message == "Edited MEMORY.md: no fact changed."
    assert "prose BELOW" in memory.show()


def test_F3_a_passage_with_a_byte_order_mark_moves_to_another_section_with_all_its_text(
    memory: Memory, tmp_path: Path
) -> None:
    edited(memory.edit("# User Memory\n\n## Work Context\n\n\ufeffKeeps bees.\nOn the roof.\n"))
    [fact] = memory.read(kind="fact")
    assert memory.update(fact.id, category="preference").done
    assert "\n\ufeffKeeps bees.\nOn the roof.\n" in (tmp_path / "u1" / "MEMORY.md").read_text()


def test_F4_the_persons_own_secret_stays_in_the_file_and_a_tool_may_edit_around_it(memory: Memory) -> None:
    text = f"## Key Facts\n- Token: {_SECRET}\n- Likes tea\n"
    outcome = edited(memory.edit(text))
    assert memory.show() == text and facts(memory) == ["Likes tea"]
    assert "line 2 stays in your file but is not remembered" in outcome.notices[0]
    assert _SECRET not in outcome.notices[0]
    tool = memory.acting("tool:memory")
    edited(tool.edit(text.replace("tea", "green tea")))
    assert facts(memory) == ["Likes green tea"] and _SECRET in memory.show()


def test_F4_what_is_edited_on_disk_meanwhile_is_taken_over_first(memory: Memory, tmp_path: Path) -> None:
    memory.remember("Likes tea")
    seen = memory.show()
    path = tmp_path / "u1" / "MEMORY.md"
    path.write_text(seen.replace("- Likes tea\n", "- Likes tea\n- Typed on disk\n"))
    tool = memory.acting("tool:memory")
    refused(tool.edit(seen.replace("tea", "coffee"), expect=seen), "changed")
    assert facts(memory) == ["Likes tea", "Typed on disk"]
    path.write_text(path.read_text().replace("Typed on disk", "Typed again"))
    edited(tool.edit(seen.replace("tea", "coffee")))
    actors = [entry.actor for entry in memory.history()]
    assert actors[-1] == "tool:memory" and "person" in actors[-4:]
    assert facts(memory) == ["Likes coffee"] and memory.show() == seen.replace("tea", "coffee")
    note = tmp_path / "u1" / "memory" / f"{DAY}.md"
    memory.jot("Read 6 posts")
    note.write_text(note.read_text() + "- Typed on disk\n")
    refused(tool.edit("# mine\n", day=DAY, expect="# 2026-02-12\n"), "changed")
    assert "Typed on disk" in [entry.content for entry in memory.read(kind="daily")]


def test_F8_a_save_in_the_very_moment_of_an_edit_is_not_overwritten(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.remember("Likes tea")
    path, write_aside = tmp_path / "u1" / "MEMORY.md", DiskFiles._write_aside
    text = memory.show()

    def meanwhile(self: DiskFiles, *args: object) -> None:
        write_aside(self, *args)  # type: ignore[arg-type]
        path.write_text(text + "- Typed just now\n")

    with monkeypatch.context() as patched:
        patched.setattr(DiskFiles, "_write_aside", meanwhile)
        outcome = edited(memory.edit(text + "- Has a cat\n"))
    assert "saved by another program at the same moment" in outcome.notices[0]
    assert facts(memory) == ["Has a cat", "Likes tea", "Typed just now"]
    assert "- Has a cat\n" in memory.show() and "- Typed just now\n" in memory.show()


def test_F8_an_edit_that_was_committed_survives_a_death_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recollect.open(tmp_path) as app:
        app.user("u1").remember("Likes tea")
        with monkeypatch.context() as patched:
            patched.setattr(DiskFiles, "_rename", lambda *_: None)  # the process died here
            edited(app.user("u1").edit(_ODD))
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        assert memory.show() == _ODD and memory.verify() == [] and "first" in facts(memory)


def test_F4_a_file_that_cannot_be_read_is_not_replaced(memory: Memory, tmp_path: Path) -> None:
    memory.remember("Likes tea")
    path = tmp_path / "u1" / "MEMORY.md"
    good = path.read_bytes()
    path.write_bytes(b"- caf\xe9\n")
    with pytest.raises(DocumentError, match=r"MEMORY\.md cannot be edited here: line 1, byte 6 is not UTF-8"):
        memory.edit("## Key Facts\n- Has a cat\n")
    assert path.read_bytes() == b"- caf\xe9\n" and facts(memory) == ["Likes tea"]
    path.write_bytes(good)


# without files


def test_F4_without_files_prose_is_dropped_and_told() -> None:
    with recollect.open(MemoryStore()) as app:
        memory = app.user("u1")
        outcome = edited(memory.edit("Dear diary\n\n## Key Facts\n- Likes tea\n> a quote\n"))
        assert outcome.notices == (
            "MEMORY.md: 2 passages of your text not kept, because only facts are kept in a memory without files",
        )
        assert facts(memory) == ["Likes tea"] and "diary" not in memory.show()
        nothing = memory.edit("Dear diary, again\n\n## Key Facts\n- Likes tea\n")
        assert isinstance(nothing, Unchanged) and "1 passage of" in nothing.notices[0]
        assert not edited(memory.edit(memory.show() + "- Has a cat\n")).notices
        refused(memory.edit(memory.show() + f"- Token: {_SECRET}\n"), "secret")


# any text

_line = st.one_of(
    st.sampled_from(
        [
            "# User Memory", "## Key Facts", "## Work Context", "## My own", "### Deeper", "", "", "prose", "> quoted",
            "```", "<!--", "-->", "---", "| a | b |", "- ", "    code", "\tcode", "- [ ] milk", "* **Role**: Engineer",
            "- Role: Architect", "- role: Architect", "1. first", "- first", "  deeper", "- Likes tea", "- likes tea!",
        ]
    ),
    st.builds(
        lambda mark, key, said: f"{mark}{key}{said}",
        st.sampled_from(["- ", "* ", "+ ", "2) ", ""]),
        st.sampled_from(["", "", "Role: ", "City: ", "**Pet**: "]),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    ),
)  # fmt: skip
_document = st.builds(
    lambda mark, lines, end, last: mark + end.join(lines) + last,
    st.sampled_from(["", "", "\ufeff"]),
    st.lists(_line, max_size=14),
    st.sampled_from(["\n", "\n", "\r\n", "\r"]),
    st.sampled_from(["", "\n"]),
).filter(lambda text: bool(text.strip("\ufeff \t\r\n")))

_any_text = settings(
    max_examples=volume(12, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@_any_text
@given(texts=st.lists(_document, min_size=2, max_size=4), by_tool=st.booleans(), of_day=st.booleans())
def test_F4_whatever_the_text_is_it_is_shown_and_all_agree(
    texts: list[str], by_tool: bool, of_day: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, day = tmp_path_factory.mktemp("any"), DAY if of_day else None

    def shown(memory: Memory) -> str:
        return memory.daily(day) if day else memory.show()

    with recollect.open(folder, clock=FrozenClock()) as app:
        memory = app.user("u1")
        editor = memory.acting("tool:memory") if by_tool else memory
        for text in texts:
            before = shown(memory)
            outcome = editor.edit(text, day=day, expect=before)
            expected = before if isinstance(outcome, Refused) else text
            assert shown(memory) == expected
            assert memory.verify() == []
        last, known = shown(memory), memory.read()
    with recollect.open(folder, clock=FrozenClock()) as app:
        memory = app.user("u1")
        assert shown(memory) == last and memory.read() == known and memory.verify() == []


@_any_text
@given(texts=st.lists(_document, min_size=2, max_size=4))
def test_F4_the_same_texts_give_the_same_facts_without_files(
    texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        recollect.open(tmp_path_factory.mktemp("any"), clock=FrozenClock()) as with_files,
        recollect.open(MemoryStore(), clock=FrozenClock()) as without,
    ):
        for text in texts:
            if isinstance(without.user("u1").edit(text), Refused):
                break  # with files, the line would stay there
            with_files.user("u1").edit(text)
            assert facts(with_files.user("u1")) == facts(without.user("u1"))
            assert without.user("u1").verify() == []
