"""A whole memory out and in again, and what people bring from elsewhere."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import InvalidInputError, Memory, RecollectError
from recollect.testing import FrozenClock, MemoryStore
from tests.contracts.store_contract import extraction_run, tool_call


def fill(memory: Memory, clock: FrozenClock) -> None:
    """A bit of everything, with a past."""
    memory.remember("Kyiv", key="location", type="personal", tags=["home"], metadata={"n": [1, None, "ї"]})
    clock.tick(days=1)
    memory.update("location", "Lviv")
    memory.remember("Engineer", key="role", category="work_context", excerpt="I am an engineer", messages=["m1"])
    memory.forget("role", reason="outdated")
    memory.remember("Likes tea")
    memory.remember("Secret hobby", key="hobby")
    memory.erase("hobby")
    memory.note("A note with\n\nparagraphs 👍", title="Note", tags=["a"])
    memory.observe("The limit is 100", "finding")
    memory.episode("Party", "They planned a party", tags=["fun"])
    memory.say("Hello there", session="s1")
    memory.set_scratch("k", "v")
    memory.jot("Read 6 posts", section="Reading Activity")
    memory.search("tea")
    memory.pause()
    memory.resume()
    memory.consent("trends")
    memory.consent("across_chats")
    memory.consent("trends", False)
    memory.spend("extract", tokens_in=5)
    memory.report("reaction", value="👍", title="Rust", topics=["rust"], session="s1", metadata={"n": [1.0, None]})
    memory.report("save", id="own", text="two\nlines")
    memory.note_run(extraction_run("run-1", status="failed", error="full", details={"n": 1}))
    memory.note_run(extraction_run("run-2", 13))
    with memory._user_memory.write_alongside() as tx:
        tx.log_calls([tool_call("call-1")])


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def everything(memory: Memory) -> tuple[Any, ...]:
    return (memory.read(status="all"), memory.history(), memory.show(), memory.daily("2026-02-13"), memory.mode)


@pytest.fixture(params=["sqlite", "memory", "postgres", "postgres with files"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """Where the archive goes: each kind of deployment."""
    where: Any = {"sqlite": tmp_path / "target", "memory": MemoryStore()}.get(request.param)
    if where is None:
        where = request.getfixturevalue("postgres_tables")
    files = tmp_path / "files" if request.param == "postgres with files" else None
    with recollect.open(where, files=files, clock=FrozenClock()) as app:
        yield app.user("someone else")


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def source(tmp_path: Path, clock: FrozenClock) -> Iterator[Memory]:
    with recollect.open(tmp_path / "source", clock=clock) as app:
        memory = app.user("u1")
        fill(memory, clock)
        path = tmp_path / "source" / "u1" / "MEMORY.md"
        path.write_text(
            path.read_text().replace("\n", "\r\n") + "\r\n## My own\r\n* a line of mine\r\n<!-- kept -->\r\n",
            newline="",
        )
        memory.read()
        yield memory


def test_R8_an_archive_comes_back_exactly_as_it_was(source: Memory, target: Memory, tmp_path: Path) -> None:
    first = source.export(tmp_path / "a.zip")
    report = target.import_(first)
    assert (report.format, report.skipped) == ("recollect", []) and report.written == len(source.read(status="all"))
    assert target.verify() == []
    files = target._user_memory.files.any_text()
    expected, got = everything(source), everything(target)
    assert got[:2] == expected[:2] and got[4] == expected[4]
    second = contents(target.export(tmp_path / "b.zip"))
    exported = contents(first)
    data = {"records.jsonl", "journal.jsonl", "state.json", "tombstones.jsonl", "recalls.jsonl", "consents.jsonl"}
    data |= {"interactions.jsonl", "runs.jsonl"}
    assert report.interactions == 2 and target.interactions() == source.interactions() != []
    assert target.runs() == source.runs() != []
    for name in data:
        assert second[name] == exported[name], name
    assert target.consents() == source.consents() == ("across_chats",)
    # the log of tool calls and the ledger are about what was done here
    assert source.calls() and source.usage()
    assert target.calls() == [] and target.usage(since="2000-01-01") == []
    assert {name for name in exported if not name.endswith(".md")} == data | {"manifest.json"}
    if files:
        assert got[2:4] == expected[2:4]
        assert second["MEMORY.md"] == exported["MEMORY.md"] and b"\r\n* a line of mine\r\n" in second["MEMORY.md"]
    # what was erased stays erased, what was forgotten can be undone
    assert isinstance(target.remember("Secret hobby", key="hobby", source="batch_extraction"), recollect.Refused)
    forgotten = next(entry for entry in target.history() if entry.op == "forget")
    target.undo(forgotten.seq)
    assert target.get("role").content == "Engineer" and target.verify() == []


def test_R8_importing_into_a_memory_in_use_merges_through_the_policy(
    source: Memory, tmp_path: Path, clock: FrozenClock
) -> None:
    archive = source.export(tmp_path / "a.zip")
    with recollect.open(tmp_path / "target", clock=clock) as app:
        memory = app.user("u1")
        memory.remember("likes TEA.")
        memory.remember("Berlin", key="location", type="personal")
        plan = memory.import_(archive, dry_run=True)
        assert plan.written > 5 and len(memory.read()) == 2 and plan.run is None
        report = memory.import_(archive)
        assert (report.written, report.duplicates, report.conflicts) == (plan.written, plan.duplicates, plan.conflicts)
        assert report.duplicates == 1 and report.conflicts == 1 and "location" in report.skipped[0]
        assert memory.get("location").content == "Berlin" and "a line of mine" in memory.show()
        again = memory.import_(archive)
        assert again.written == 0
        assert report.run is not None
        memory.undo(report.run)
        assert sorted(r.text for r in memory.read()) == ["likes TEA.", "location: Berlin"] and memory.verify() == []


def test_R8_consents_are_not_merged_and_an_archive_without_them_is_read(source: Memory, tmp_path: Path) -> None:
    archive = source.export(tmp_path / "a.zip")
    with recollect.open(tmp_path / "target", clock=FrozenClock()) as app:
        used = app.user("used")
        used.consent("trends")
        used.import_(archive)
        assert used.consents() == ("trends",) and used.verify() == []
        logged = app.user("only called so far")
        logged.spend("extract")
        assert logged.import_(archive).run is None and logged.consents() == ("across_chats",)
        assert logged.verify() == [] and len(logged.usage()) == 1
        for name, rows in (("old", None), ("newer", '{"name":"telepathy","at":"2026-02-12T09:30:00.000000Z"}\n')):
            with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as changed:
                for member, data in contents(archive).items():
                    if member != "consents.jsonl":
                        changed.writestr(member, data)
                if rows is not None:
                    changed.writestr("consents.jsonl", rows)
            memory = app.user(name)
            assert memory.import_(tmp_path / f"{name}.zip").written == len(source.read(status="all"))
            assert memory.consents() == () and memory.verify() == []


def test_R8_interactions_are_merged_by_their_ids_and_an_archive_without_them_is_read(
    source: Memory, tmp_path: Path
) -> None:
    archive = source.export(tmp_path / "a.zip")
    with recollect.open(tmp_path / "target", clock=FrozenClock()) as app:
        used = app.user("used")
        used.remember("Plays chess")
        used.report("read", id="own", title="another of this id")
        used.note_run(extraction_run("run-9"))
        assert used.import_(archive, dry_run=True).interactions == 1 and len(used.interactions()) == 1
        assert used.import_(archive).interactions == 1 and used.import_(archive).interactions == 0
        assert sorted(filter(None, (one.title for one in used.interactions()))) == ["Rust", "another of this id"]
        assert [run.id for run in used.runs()] == ["run-9"] and used.verify() == []
        paused = app.user("paused")
        paused.remember("Plays chess")
        paused.pause()
        report = paused.import_(archive)
        assert paused.interactions() == [] and "interactions: Not stored: memory is paused" in report.skipped[0]
        told = app.user("only told so far")
        told.report("save", title="Zig")
        assert told.import_(archive).interactions == 2 and len(told.interactions()) == 3 and told.verify() == []
        with zipfile.ZipFile(tmp_path / "old.zip", "w") as changed:
            for member, data in contents(archive).items():
                if member not in ("interactions.jsonl", "runs.jsonl"):
                    changed.writestr(member, data)
        memory = app.user("old")
        assert memory.import_(tmp_path / "old.zip").written == len(source.read(status="all"))
        assert memory.interactions() == [] and memory.runs() == [] and memory.verify() == []


def test_R8_characters_that_some_take_for_line_ends_come_back(tmp_path: Path) -> None:
    odd = "one\u2028two\u2029three\x85four"
    with recollect.open(tmp_path / "source", clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.remember("Likes tea", metadata={"raw": odd})
        path = tmp_path / "source" / "u1" / "MEMORY.md"
        path.write_bytes(path.read_bytes() + f"- Motto: {odd}\n".encode())
        before = everything(memory)
        archive = memory.export(tmp_path / "a.zip")
    with recollect.open(tmp_path / "target", clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.import_(archive)
        assert everything(memory) == before and memory.verify() == []
        assert "\u2028" in memory.get("motto").content


def test_R8_an_archive_that_claims_more_entries_than_it_has_is_verified_in_no_time(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "memory") as app:
        source = app.user("source")
        source.remember("Likes tea")
        parts = contents(source.export(tmp_path / "good.zip"))
        state = json.loads(parts["state.json"]) | {"seq": 2**40}
        bad = tmp_path / "bad.zip"
        with zipfile.ZipFile(bad, "w") as packed:
            for part, data in (parts | {"state.json": json.dumps(state).encode()}).items():
                packed.writestr(part, data)
        memory = app.user("u1")
        memory.import_(bad)
        assert memory.verify() == [f"the journal has gaps: 1 entries, last number {2**40}"]


def _each(names: tuple[str, ...], *values: Any) -> list[tuple[str, Any]]:
    return [(name, value) for name in names for value in values]


_WRONG_VALUES: list[tuple[str, Any]] = [
    *_each(("id", "content", "source", "key", "session"), 5, [], "half \ud800"),
    *_each(("confidence", "importance"), "1", [], True, 7, float("nan"), None),
    *_each(("version", "seq"), "1", 1.5, 10**30, True),
    *((name, "finding") for name in ("category", "type", "status", "tier")),
    *_each(("tags", "messages"), [1], [None], 5, ["half \ud800"]),
    *_each(("pinned", "trusted"), "yes", 1),
    *_each(("created_at", "expires_at"), 5, "soon", []),
    ("metadata", ["a"]),
    ("metadata", {"a": "half \udfff"}),
    ("content", ""),
    ("content", "\n \n"),
    ("section", "\x07"),
    ("unheard_of", 1),
]


@pytest.mark.parametrize("member", ["records.jsonl", "journal.jsonl"])
def test_R8_an_archive_with_one_wrong_value_is_refused_whole(tmp_path: Path, member: str) -> None:
    with recollect.open(tmp_path / "memory") as app:
        source = app.user("source")
        source.remember("Likes tea", key="drink")
        archive = source.export(tmp_path / "good.zip")
        assert app.user("good").import_(archive).written == 1
        parts = contents(archive)
        [row] = map(json.loads, parts[member].splitlines())
        for number, (name, value) in enumerate(_WRONG_VALUES):
            if member == "journal.jsonl" and name in ("content", "section") and isinstance(value, str):
                continue  # what was erased has left no text there
            wrong = row | {name: value} if member == "records.jsonl" else row | {"after": row["after"] | {name: value}}
            bad = tmp_path / "bad.zip"
            with zipfile.ZipFile(bad, "w") as packed:
                for part, data in (parts | {member: json.dumps(wrong).encode() + b"\n"}).items():
                    packed.writestr(part, data)
            target = app.user(f"u{number}")
            with pytest.raises(InvalidInputError, match="damaged"):
                target.import_(bad)
            assert not target.exists, (name, value)


@pytest.mark.everyday(4)
@pytest.mark.parametrize(
    "damage",
    [
        "not a zip",
        "no manifest",
        "cut",
        "newer",
        "wrong row",
        "row is a list",
        "wrong mode",
        "numbers without end",
        "numbers beyond its own",
        "flipped bits",
        "encrypted",
    ],
)
def test_R8_a_damaged_archive_is_refused_whole(source: Memory, tmp_path: Path, damage: str) -> None:
    archive = source.export(tmp_path / "a.zip")
    parts = contents(archive)
    bad = tmp_path / "bad.zip"
    if damage == "not a zip":
        bad.write_bytes(b"PK\x03\x04 nonsense")
    elif damage in ("flipped bits", "encrypted"):
        raw = bytearray(archive.read_bytes())
        if damage == "encrypted":  # the flag of every member, in both headers
            for mark, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
                at = raw.find(mark)
                while at >= 0:
                    raw[at + flag] |= 1
                    at = raw.find(mark, at + 1)
        else:
            at = raw.index(b"records.jsonl") + len("records.jsonl")
            raw[at : at + 40] = bytes(255 - byte for byte in raw[at : at + 40])
        bad.write_bytes(raw)
    elif damage == "cut":
        bad.write_bytes(archive.read_bytes()[:-200])
    else:
        if damage == "no manifest":
            del parts["manifest.json"]
        elif damage == "row is a list":
            parts["journal.jsonl"] += b"[1, 2]\n"
        elif damage == "wrong mode":
            parts["state.json"] = parts["state.json"].replace(b'"on"', b'"off"')
        elif damage.startswith("numbers"):
            state = json.loads(parts["state.json"])
            state["seq"] = 2**63 - 1 if damage == "numbers without end" else 1
            parts["state.json"] = json.dumps(state).encode()
        elif damage == "newer":
            parts["manifest.json"] = json.dumps({"format": "recollect-memory", "version": 99}).encode()
        else:
            parts["records.jsonl"] += b'{"kind": "fact"}\n'
        with zipfile.ZipFile(bad, "w") as out:
            for name, data in parts.items():
                out.writestr(name, data)
    with recollect.open(tmp_path / "target") as app:
        memory = app.user("u1")
        with pytest.raises(InvalidInputError, match=r"path: bad\.zip"):
            memory.import_(bad)
        assert not memory.exists


def test_R4_an_archive_cannot_write_outside_the_users_folder(source: Memory, tmp_path: Path) -> None:
    archive = source.export(tmp_path / "a.zip")
    names = [
        "memory/../../evil.md",
        "memory/notes.md",
        "/etc/evil.md",
        "memory/2026-02-12.md/../x.md",
        "memory/..\\x.md",
    ]
    with zipfile.ZipFile(archive, "a") as out:
        for name in names:
            out.writestr(name, "evil")
    with recollect.open(tmp_path / "target", clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.import_(archive)
        assert memory.verify() == []
    assert not [path for path in tmp_path.rglob("*") if "evil" in path.name or path.name == "x.md"]
    assert sorted(path.name for path in (tmp_path / "target" / "u1" / "memory").iterdir()) == ["2026-02-13.md"]


def test_R8_an_archive_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("manifest.json", "0" * 2_000_000)
    monkeypatch.setattr("recollect.memory.transfer._LARGEST", 1_000_000)
    with recollect.open(tmp_path / "target") as app, pytest.raises(InvalidInputError, match="unpacks to more than"):
        app.user("u1").import_(tmp_path / "bomb.zip")


def test_R8_a_folder_of_markdown(tmp_path: Path, clock: FrozenClock) -> None:
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / ".obsidian").mkdir()
    (folder / "MEMORY.md").write_text("# M\n\n## Work Context\n- Role: Engineer\n- Uses Vim\n\n## Pets\n- Rex\n")
    (folder / "memory" / "2026-02-10.md").write_text("# 2026-02-10\n\n## Discussions\n- Discussed Rust\n")
    (folder / "2019-05-01.md").write_text("# A day long ago\n\nWe went to the sea.\n")
    (folder / "ideas.md").write_text("---\ntitle: My ideas\ntags: [one, two]\n---\n\nA boat that can fly.\n\nReally.\n")
    (folder / "list.markdown").write_text("# Shopping\n\nbuy bread\n")
    (folder / "code.md").write_text("# Snippet\n\n```python\nprint('x')\n```\n")
    (folder / "bad.md").write_bytes(b"\xff\xfe")
    (folder / "empty.md").write_text("")
    (folder / ".obsidian" / "hidden.md").write_text("hidden")
    (tmp_path / "outside.md").write_text("outside")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    with recollect.open(tmp_path / "target", clock=clock) as app:
        memory = app.user("u1")
        report = memory.import_(folder)
        assert report.format == "markdown" and report.written == 7
        assert sorted(r.text for r in memory.read(kind="fact")) == ["Rex", "Role: Engineer", "Uses Vim"]
        assert [r.text for r in memory.read(kind="daily")] == ["Discussed Rust"]
        notes = {r.title: r for r in memory.read(kind="note")}  # type: ignore[attr-defined]
        assert set(notes) == {"My ideas", "Shopping", "A day long ago"} and notes["My ideas"].tags == ("one", "two")
        assert notes["My ideas"].source == "import:ideas.md" and "hidden" not in repr(memory.read())
        assert {line.split(":")[0] for line in report.skipped} == {"bad.md", "code.md", "empty.md", "link.md"}
        assert memory.import_(folder).written == 0
        assert report.run is not None
        memory.undo(report.run)
        assert memory.read() == [] and memory.verify() == []


def test_R8_the_mcp_memory_servers_file(tmp_path: Path) -> None:
    rows = [
        {
            "type": "entity",
            "name": "default_user",
            "entityType": "person",
            "observations": ["Likes tea", "Role: Engineer"],
        },
        {"type": "entity", "name": "Anna", "entityType": "person", "observations": ["Lives in Paris", "Plays chess"]},
        {"type": "relation", "from": "default_user", "to": "Anna", "relationType": "is_married_to"},
        {"type": "entity", "name": "Broken"},
        {"type": "other"},
        {"type": "entity", "observations": ["x"]},
    ]
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    with recollect.open(tmp_path / "target") as app:
        memory = app.user("u1")
        report = memory.import_(path)
        assert report.format == "mcp" and report.written == 5
        assert sorted(record.text for record in memory.read()) == [
            "Anna — Lives in Paris", "Anna — Plays chess", "Likes tea", "Role: Engineer", "default user is married to Anna",
        ]  # fmt: skip
        assert memory.read(type="relationship")[0].source == "import:mcp"
        assert len(report.skipped) == 2 and "line 5" in report.skipped[0]
        assert memory.import_(path).written == 0


@pytest.mark.parametrize("shape", ["list", "results", "memories"])
def test_R8_mem0s_export(tmp_path: Path, shape: str) -> None:
    rows = [
        {"id": "1", "memory": "Likes tea", "user_id": "anna", "created_at": "2024-05-01T10:00:00-07:00", "categories": ["food"],
         "metadata": {"app": "x"}},
        {"id": "2", "memory": "Is a vegetarian", "user_id": "anna", "created_at": None, "metadata": None},
        {"id": "3", "memory": "Likes meat", "user_id": "bob"},
        {"id": "4", "memory": "", "user_id": "anna"},
    ]  # fmt: skip
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps(rows if shape == "list" else {shape: rows}))
    with recollect.open(tmp_path / "target") as app:
        with pytest.raises(InvalidInputError, match=r"from_user: mem0\.json has memories of 2 users"):
            app.user("u1").import_(path)
        with pytest.raises(InvalidInputError, match="has no memories of user 'eve'"):
            app.user("u1").import_(path, from_user="eve")
        for memory, whose in ((app.user("u1"), "anna"), (app.user("anna"), None)):
            report = memory.import_(path, from_user=whose)
            assert report.format == "mem0" and report.written == 2 and len(report.skipped) == 1
            assert [record.text for record in memory.read()] == ["Likes tea", "Is a vegetarian"]
            tea = memory.search("tea")[0].record
            assert (
                tea.tags == ("food",)
                and tea.metadata == {"app": "x"}
                and tea.valid_from.isoformat().startswith("2024-05-01T17")
            )


def test_R8_anything_else_is_refused(tmp_path: Path) -> None:
    for name, data in {"a.json": b"{}", "b.txt": b"hello", "c.bin": b"\xff\x00", "d.json": b"[1, 2]"}.items():
        (tmp_path / name).write_bytes(data)
        with recollect.open(tmp_path / "target") as app, pytest.raises(InvalidInputError, match="path: "):
            app.user("u1").import_(tmp_path / name)


def test_R8_a_file_that_cannot_be_read_is_exported_and_restored_as_it_is(source: Memory, tmp_path: Path) -> None:
    path = tmp_path / "source" / "u1" / "MEMORY.md"
    broken = b"\xff" + path.read_bytes()
    path.write_bytes(broken)
    archive = source.export(tmp_path / "a.zip")
    assert contents(archive)["MEMORY.md"] == broken
    with recollect.open(tmp_path / "target", clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.import_(archive)
        assert (tmp_path / "target" / "u1" / "MEMORY.md").read_bytes() == broken
        assert memory.read(status="all") == source.read(status="all")
        assert "was not changed" in memory.notices()[0]


def test_R8_export_to_an_impossible_place_leaves_nothing(source: Memory, tmp_path: Path) -> None:
    with pytest.raises(RecollectError):
        source.export(tmp_path / "no" / "such" / "folder" / "a.zip")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("also_records", [False, True])
@pytest.mark.parametrize("how", ["clear", "topic"])
def test_R8_an_archive_does_not_bring_back_erased_interactions(tmp_path: Path, how: str, also_records: bool) -> None:
    with recollect.open(tmp_path / "memories") as app:
        memory = app.user("u1")
        if also_records:
            memory.remember("Likes tea")
        memory.report("read", title="Zoloftium dosage guide", id="ev-1")
        memory.report("read", title="About zoloftium")
        archive = memory.export(tmp_path / "old.zip")
        if how == "clear":
            memory.clear()
        else:
            memory.erase_topic("zoloftium")
        report = memory.import_(archive)
        assert report.interactions == 0 and report.refused >= 2 and memory.interactions() == []
        assert memory.report("read", title="Zoloftium dosage guide", id="ev-1").message.startswith("Not stored")
        assert memory.interactions() == [] and memory.verify() == []
        memory.report("read", title="Something new")
        assert len(memory.interactions()) == 1
