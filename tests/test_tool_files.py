"""The suite `files`: Anthropic's memory tool over the user's own files."""

from __future__ import annotations

import multiprocessing
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recollect
from recollect import Memory, Recollect, Written
from recollect.policy.injection import without_markup
from recollect.testing import FrozenClock, MemoryStore
from recollect.tools.files import TOOLS
from recollect.tools.suite import Result, Suite
from tests.tooling import SEED_TOOLS
from tests.volume import volume

SECRET = "sk-ant-api03-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3"
CODE = "def total(items):\n    result = sum(item.price for item in items)\n    return result\n"
DAY = "2026-02-12"


class Files:
    """The tool as a model calls it; each method is a command."""

    def __init__(self, suite: Suite) -> None:
        self.suite = suite

    def __call__(self, command: str, path: str | None = None, **more: Any) -> Result:
        given = more if path is None else {"path": path, **more}
        return self.suite.call("memory", {"command": command, **given})

    def ok(self, command: str, path: str | None = None, **more: Any) -> str:
        result = self(command, path, **more)
        assert result.status == "ok", result
        return result.text

    def error(self, command: str, path: str | None = None, **more: Any) -> str:
        result = self(command, path, **more)
        assert result.status in ("error", "invalid"), result
        return result.text

    def refused(self, command: str, path: str | None = None, **more: Any) -> Result:
        result = self(command, path, **more)
        assert result.status == "refused", result
        return result

    def text(self, path: str) -> str:
        """The text of a file, taken out of the numbered lines of a view."""
        head, *lines = self.ok("view", path).split("\n")
        assert head == f"Here's the content of {path} with line numbers:"
        assert [line.partition("\t")[0] for line in lines] == [f"{n:6d}" for n in range(1, len(lines) + 1)]
        return "".join(line.partition("\t")[2] + "\n" for line in lines)

    def names(self, path: str = "/memories") -> list[str]:
        """What a directory lists, without itself."""
        head, whole, *lines = self.ok("view", path).split("\n")
        assert head.startswith("Here're the files and directories up to 2 levels deep in ")
        assert whole.split("\t")[1] == path
        return [line.split("\t")[1].removeprefix(f"{path}/") for line in lines if not line.startswith("(")]


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def app(tmp_path: Path, clock: FrozenClock) -> Iterator[Recollect]:
    with recollect.open(tmp_path / "data", clock=clock) as app:
        yield app


@pytest.fixture
def memory(app: Recollect) -> Iterator[Memory]:
    memory = app.user("u1")
    yield memory
    if memory.exists:
        assert memory.verify() == []


@pytest.fixture
def files(app: Recollect, memory: Memory) -> Files:
    return Files(app.tools("u1", "files", session="chat-7", agent="helper"))


def on_disk(root: Path) -> dict[str, bytes]:
    """Every file below a folder that is not a part of the database or the index."""
    kept = (path for path in root.rglob("*") if path.is_file() and not path.name.startswith("memory.db"))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in kept if "index" not in path.parts}


# viewing


def test_T8_it_is_declared_as_anthropic_does() -> None:
    (tool,) = TOOLS
    assert tool.name == "memory" and tool.tier == "destructive" and tool.name not in SEED_TOOLS
    schema = tool.schema()
    assert schema["required"] == ["command"]
    assert schema["properties"]["command"]["enum"] == ["view", "create", "str_replace", "insert", "delete", "rename"]
    assert set(schema["properties"]) == {
        "command", "path", "view_range", "file_text", "old_str", "new_str", "insert_line", "insert_text",
        "old_path", "new_path",
    }  # fmt: skip


def test_T8_an_empty_memory_is_a_directory_and_looking_creates_nothing(files: Files, tmp_path: Path) -> None:
    head, whole, only = files.ok("view", "/memories").split("\n")
    assert head == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:"
    )
    assert re.fullmatch(r"\d+B\t/memories", whole) and re.fullmatch(r"\d+B\t/memories/MEMORY.md", only)
    assert files.ok("view", "/memories/") == "\n".join([head, whole, only])
    assert files.text("/memories/MEMORY.md").startswith("# User Memory\n")
    assert files.ok("view", "/memories/memory").endswith("\n0B\t/memories/memory")
    asked: list[tuple[str, str | None, dict[str, Any]]] = [
        ("view", "/memories/nothing.md", {}),
        ("delete", "/memories/nothing.md", {}),
        ("str_replace", "/memories/nothing.md", {"old_str": "a", "new_str": "b"}),
        ("insert", "/memories/nothing.md", {"insert_line": 0, "insert_text": "b"}),
        ("rename", None, {"old_path": "/memories/nothing.md", "new_path": "/memories/b.md"}),
        ("create", "/memories/memory/x.md", {"file_text": "Hello"}),
        ("create", "/memories/x.md", {"file_text": "  "}),
    ]
    for command, path, more in asked:
        files.error(command, path, **more)
    assert not (tmp_path / "data").exists() or not any((tmp_path / "data").iterdir())


def test_T8_a_directory_lists_two_levels_with_sizes(files: Files, memory: Memory) -> None:
    memory.jot("Read about Zig", day=DAY)
    memory.note("Loose, without a path")
    files.ok("create", "/memories/a.md", file_text="Київ")
    files.ok("create", "/memories/d/b.md", file_text="x" * 2047)
    files.ok("create", "/memories/d/e/deep/c.md", file_text="Far below")
    files.ok("create", "/memories/node_modules/left.md", file_text="Something else entirely")
    (note,) = [note for note in memory.read(kind="note") if note.content.startswith("Loose")]
    lines = files.ok("view", "/memories").split("\n")[1:]
    listed = {name: size for size, name in (line.split("\t") for line in lines)}
    assert next(iter(listed)) == "/memories" and "node_modules" not in "".join(listed)
    assert listed["/memories/a.md"] == "9B"  # four letters of two bytes, and the end of the line
    assert listed["/memories/d/b.md"] == "2K" and listed["/memories/d/"] == "2.0K".replace(".0", "")
    assert listed["/memories/d/e/"] == "10B" and not any("deep" in name for name in listed)
    assert listed[f"/memories/memory/{DAY}.md"] == f"{len(memory.daily(DAY).encode())}B"
    assert listed[f"/memories/notes/{note.id}.md"] == "22B"
    assert files.names("/memories/d") == ["b.md", "e/", "e/deep/"]
    assert files.names("/memories/d/e/deep") == ["c.md"]
    assert files.text(f"/memories/notes/{note.id}.md") == "Loose, without a path\n"


def test_T8_a_file_is_viewed_with_line_numbers_and_in_part(files: Files) -> None:
    files.ok("create", "/memories/a.md", file_text="one\ntwo\n\nfour")
    head = "Here's the content of /memories/a.md with line numbers:\n"
    assert files.ok("view", "/memories/a.md") == head + "     1\tone\n     2\ttwo\n     3\t\n     4\tfour"
    assert files.ok("view", "/memories/a.md", view_range=[2, 3]) == head + "     2\ttwo\n     3\t"
    assert files.ok("view", "/memories/a.md", view_range=[4, -1]) == head + "     4\tfour"
    assert files.ok("view", "/memories/a.md", view_range=[0, 1]) == head + "     1\tone"
    assert files.ok("view", "/memories/a.md", view_range=[3, 99]) == head + "     3\t\n     4\tfour"
    for wrong in ([5, 9], [3, 2], [2], [1, 2, 3], [1, -2], [1, 0]):
        assert "from 1 to 4" in files.error("view", "/memories/a.md", view_range=wrong)
    assert files.error("view", "/memories/b.md") == (
        "The path /memories/b.md does not exist. Please provide a valid path."
    )
    assert "path is missing" in files.error("view")


def test_T8_all_of_a_long_file_can_be_seen(files: Files) -> None:
    lines = [f"Entry {n}: the weather in town number {n * 7} was fine" for n in range(1000)]
    files.ok("create", "/memories/long.md", file_text="\n".join(lines))
    seen: list[str] = []
    span = [1, -1]
    while True:
        _, *shown = files.ok("view", "/memories/long.md", view_range=span).split("\n")
        rest = re.fullmatch(r"\(lines (\d+) to (\d+) are left out; view_range \[\1, \2\] shows them\)", shown[-1])
        seen += [line.partition("\t")[2] for line in (shown[:-1] if rest else shown)]
        if rest is None:
            break
        span = [int(rest[1]), int(rest[2])]
    assert seen == lines
    files.ok("create", "/memories/wide.md", file_text="word " * 30_000 + "\nand a second line")
    assert "149,999 characters" not in files.ok("view", "/memories/wide.md", view_range=[2, 2])
    text = files.ok("view", "/memories/wide.md")
    assert "characters)" in text and "and a second line" in text


def test_T8_what_is_not_trusted_says_so(files: Files, memory: Memory) -> None:
    memory.acting("tool:web", trusted=False).note("Read <b>on</b> some page")
    (note,) = memory.read(kind="note")
    assert files.ok("view", f"/memories/notes/{note.id}.md").endswith(
        "     1\tRead ‹b›on‹/b› some page\n(this text came from a source that is not trusted)"
    )
    files.ok("create", "/memories/own.md", file_text="Of my own")
    assert "not trusted" not in files.ok("view", "/memories/own.md")


# creating


def test_T8_create_makes_a_note_that_all_suites_find(app: Recollect, files: Files, memory: Memory) -> None:
    done = files("create", "/memories/projects/tomatoes.md", file_text="Planted twelve tomatoes\n")
    assert done.text == "File created successfully at: /memories/projects/tomatoes.md"
    (note,) = memory.read(kind="note")
    assert (note.content, note.source, note.agent, note.session) == (
        "Planted twelve tomatoes", "tool:memory", "helper", "chat-7",
    )  # fmt: skip
    (entry,) = memory.history(call=done.call)
    assert (entry.actor, entry.op, entry.record_id) == ("tool:memory", "remember", note.id)
    notes = app.tools("u1", "notes")
    (hit,) = notes.call("memory_search", {"query": "tomatoes"}).content
    assert hit["note_id"] == note.id
    assert notes.call("memory_update", {"note_id": note.id, "content": "Planted ten tomatoes"}).status == "ok"
    assert files.text("/memories/projects/tomatoes.md") == "Planted ten tomatoes\n"
    assert notes.call("memory_delete", {"note_id": note.id}).status == "ok"
    files.error("view", "/memories/projects/tomatoes.md")
    files.error("view", f"/memories/notes/{note.id}.md")
    assert files.names() == ["MEMORY.md"]
    assert app.user("u2").read() == [] and not app.user("u2").exists


def test_T8_what_exists_is_not_created_again(files: Files, memory: Memory) -> None:
    files.ok("create", "/memories/d/a.md", file_text="Alpha")
    memory.jot("Something", day=DAY)
    for path in ("d/a.md", "d", "MEMORY.md", f"memory/{DAY}.md", "memory", "notes", ""):
        whole = f"/memories/{path}".removesuffix("/")
        assert files.error("create", whole, file_text="Beta") == f"Error: File {whole} already exists"
    assert files.text("/memories/d/a.md") == "Alpha\n"
    assert "/memories/d/a.md says the same" in files.error("create", "/memories/other.md", file_text="alpha")
    assert "file_text is missing" in files.error("create", "/memories/e.md")
    assert "file_text" in files.error("create", "/memories/e.md", file_text=" \n ")
    assert "file_text" in files.error("create", "/memories/e.md", file_text="a\x00b")
    assert "file_text" in files.error("create", "/memories/e.md", file_text="many words " * 20_000)


def test_T8_a_file_is_no_directory_and_a_directory_no_file(files: Files) -> None:
    files.ok("create", "/memories/a", file_text="Alpha")
    files.ok("create", "/memories/d.md/b", file_text="Beta")
    assert files.error("create", "/memories/a/b", file_text="Gamma") == (
        "Error: /memories/a is a file and not a directory"
    )
    assert "is a file" in files.error("create", "/memories/a/b/c", file_text="Gamma")
    assert "already exists" in files.error("create", "/memories/d.md", file_text="Gamma")
    assert "is a file" in files.error("rename", old_path="/memories/d.md", new_path="/memories/a/d")
    assert "is a file" in files.error("create", "/memories/MEMORY.md/x", file_text="Gamma")
    files.ok("create", "/memories/ab", file_text="Gamma")
    assert files.names() == ["MEMORY.md", "a", "ab", "d.md/", "d.md/b"]
    asked: list[tuple[str, dict[str, Any]]] = [
        ("str_replace", {"old_str": "Beta", "new_str": "x"}),
        ("insert", {"insert_line": 0, "insert_text": "x"}),
    ]
    for command, more in asked:
        assert "does not exist" in files.error(command, "/memories/d.md", **more)


def test_T8_names_of_our_own_are_never_taken(files: Files, memory: Memory) -> None:
    memory.note("Somebody else's note")
    (note,) = memory.read(kind="note")
    files.ok("create", "/memories/own.md", file_text="Mine")
    taken = [
        "memory.md", "Memory.MD", "ＭEMORY.md", "MEMОRY.md", "Memory/x.md", "MEMORY/2026-02-12.md", "Notes/a.md",
        "memory/x.md", "memory/2026-02-12.md/x", "memory/sub/2026-02-12.md", "memory/2026-02-12.txt",
        "memory/٢٠٢٦-02-12.md", "notes/note-01jcs0m3y7q8r9t0v1w2x3y4z5.md", f"notes/{note.id}.md",
        f"notes/{note.id}.md/x",
    ]  # fmt: skip
    for path in taken:
        files.error("create", f"/memories/{path}", file_text="Something new")
        files.error("rename", old_path="/memories/own.md", new_path=f"/memories/{path}")
    assert "path" in files.error("create", "/memories/memory/2026-02-31.md", file_text="Something new")
    files.ok("create", "/memories/notes/plan.md", file_text="A plan")
    assert files.names() == ["MEMORY.md", "notes/", *sorted([f"notes/{note.id}.md", "notes/plan.md"]), "own.md"]
    assert files.error("rename", old_path="/memories/own.md", new_path=f"/memories/notes/{note.id}.md") == (
        f"Error: /memories/notes/{note.id}.md has its name from what it is and cannot be renamed or replaced"
    )


def test_T8_a_note_that_claims_a_path_it_cannot_have_goes_by_its_id(files: Files, memory: Memory) -> None:
    claims = [
        "MEMORY.md",
        "../../etc/passwd",
        "memory/2026-02-12.md",
        "/abs",
        "a//b",
        "notes",
        "a\nb",
        "x" * 999,
        7,
        "",
    ]
    for number, path in enumerate(claims):
        memory.note(f"Claim number {number} of a host", tags=["file"], metadata={"path": path})
    memory.note("With a path but never made as a file", metadata={"path": "plain.md"})
    memory.note("Odd edges", tags=["file"], metadata={"path": "odd.md", "edges": [1]})
    by_id = [f"notes/{note.id}.md" for note in memory.read(kind="note") if note.metadata["path"] != "odd.md"]
    assert files.names() == ["MEMORY.md", "notes/", *sorted(by_id), "odd.md"]
    assert all(files.text(f"/memories/{name}") for name in [*by_id, "odd.md"])
    files.error("view", "/memories/plain.md")


# replacing and inserting


@pytest.mark.parametrize("path", ["/memories/own.md", "/memories/MEMORY.md", f"/memories/memory/{DAY}.md"])
class TestTexts:
    """What holds for files of all three kinds."""

    BEGIN = "# 2026-02-12\n\n## Discussions\n- Likes tea\n- Grüße aus Köln\n- Price (1+1)*2 [net]\n- Ends here\n"

    @pytest.fixture
    def text(self, path: str, files: Files, memory: Memory) -> str:
        if path.endswith("own.md"):
            files.ok("create", path, file_text=self.BEGIN)
        else:
            memory.edit(self.BEGIN, day=DAY if "memory/" in path else None)
        assert files.text(path) == self.BEGIN
        return self.BEGIN

    def test_T8_str_replace(self, path: str, files: Files, text: str) -> None:
        told = files.ok("str_replace", path, old_str="- Likes tea", new_str="- Likes coffee\n- Drinks it black")
        assert told == (
            "The memory file has been edited. Here is the change with line numbers:\n     2\t\n     3\t## Discussions\n"
            "     4\t- Likes coffee\n     5\t- Drinks it black\n     6\t- Grüße aus Köln\n     7\t- Price (1+1)*2 [net]"
        )
        files.ok("str_replace", path, old_str="Price (1+1)*2 [net]", new_str=r"Costs \1 and $2 \g<0>")
        files.ok("str_replace", path, old_str="Grüße aus Köln", new_str="Привіт, Києве 🌻")
        files.ok("str_replace", path, old_str="black\n- Привіт", new_str="black, always\n- Привіт")
        files.ok("str_replace", path, old_str="- Ends here\n")
        assert files.text(path) == (
            "# 2026-02-12\n\n## Discussions\n- Likes coffee\n- Drinks it black, always\n- Привіт, Києве 🌻\n"
            "- Costs \\1 and $2 \\g<0>\n"
        )

    def test_T8_errors_of_str_replace(self, path: str, files: Files, text: str) -> None:
        assert files.error("str_replace", path, old_str="likes TEA", new_str="x") == (
            f"No replacement was performed, old_str `likes TEA` did not appear verbatim in {path}."
        )
        assert files.error("str_replace", path, old_str="- ", new_str="* ") == (
            "No replacement was performed. Multiple occurrences of old_str `- ` in lines: 4, 5, 6, 7."
            " Please ensure it is unique"
        )
        assert "missing or empty" in files.error("str_replace", path, old_str="", new_str="x")
        assert "missing or empty" in files.error("str_replace", path, new_str="x")
        assert "would be empty" in files.error("str_replace", path, old_str=text, new_str=" ")
        assert "new_str" in files.error("str_replace", path, old_str="Likes tea", new_str="a\x00b")
        long = files.error("str_replace", path, old_str="never " * 5000, new_str="x")
        assert len(long) < 400
        assert files.text(path) == text

    def test_T8_insert(self, path: str, files: Files, text: str) -> None:
        assert (
            files.ok("insert", path, insert_line=4, insert_text="- Has a cat\n") == f"The file {path} has been edited."
        )
        files.ok("insert", path, insert_line=8, insert_text="- The very last")
        files.ok("insert", path, insert_line=0, insert_text="<!-- top -->\n\n")
        assert (
            files.text(path) == "‹!-- top --›\n\n" + text.replace("tea\n", "tea\n- Has a cat\n") + "- The very last\n"
        )

    def test_T8_insert_out_of_range(self, path: str, files: Files, text: str) -> None:
        for line in (-1, 8, 10**9):
            assert files.error("insert", path, insert_line=line, insert_text="x") == (
                f"Error: Invalid `insert_line` parameter: {line}."
                " It should be within the range of lines of the file: [0, 7]"
            )
        files.error("insert", path, insert_line=1)
        files.error("insert", path, insert_text="x")
        assert files.text(path) == text

    def test_T8_P5_secrets_are_refused_and_the_line_is_named(
        self, path: str, files: Files, memory: Memory, text: str, app: Recollect, tmp_path: Path
    ) -> None:
        before = len(memory.history())
        for result in (
            files.refused("insert", path, insert_line=5, insert_text=f"- The key is {SECRET}"),
            files.refused("str_replace", path, old_str="- Price (1+1)*2 [net]", new_str=f"- Its key: {SECRET}"),
        ):
            assert "because of line 6: " in result.text and "secret" in result.text and SECRET not in result.text
            assert result.outcome == "refused:secret"
        assert files.text(path) == text and len(memory.history()) == before
        assert not any(SECRET.encode() in data for data in on_disk(tmp_path).values())

    def test_T8_P4_code_is_refused(self, path: str, files: Files, memory: Memory, text: str) -> None:
        before = len(memory.history())
        result = files.refused("insert", path, insert_line=7, insert_text=f"\n```python\n{CODE}```")
        assert result.outcome == "refused:code" and "because of line 9: " in result.text
        assert files.text(path) == text and len(memory.history()) == before

    def test_T8_P7_paused_only_views(self, path: str, files: Files, memory: Memory, text: str) -> None:
        memory.pause()
        assert files.text(path) == text and files.names()
        asked: list[tuple[str, str | None, dict[str, Any]]] = [
            ("create", "/memories/new.md", {"file_text": "New"}),
            ("str_replace", path, {"old_str": "Likes tea", "new_str": "x"}),
            ("insert", path, {"insert_line": 4, "insert_text": "- x"}),
            ("delete", path, {}),
            ("rename", None, {"old_path": path, "new_path": "/memories/b.md"}),
        ]
        for command, where, more in asked:
            assert files.refused(command, where, **more).outcome == "refused:paused"
        memory.pause(incognito=True)
        for command, where, more in [*asked, ("view", path, {}), ("view", "/memories", {})]:
            result = files.refused(command, where, **more)
            assert result.outcome == "refused:incognito" and "Likes tea" not in result.text
        memory.resume()
        assert files.text(path) == text and "new.md" not in files.names()


def test_T8_blanks_around_a_text_are_kept(files: Files, memory: Memory) -> None:
    files.ok("create", "/memories/a.md", file_text="\n  indented\nend  \n\n")
    assert files.text("/memories/a.md") == "\n  indented\nend  \n\n"
    files.ok("insert", "/memories/a.md", insert_line=0, insert_text="\n")
    files.ok("insert", "/memories/a.md", insert_line=5, insert_text="\n")
    assert files.text("/memories/a.md") == "\n\n  indented\nend  \n\n\n"
    files.ok("str_replace", "/memories/a.md", old_str="\n\n  indented\nend  \n\n\n", new_str="plain")
    assert files.text("/memories/a.md") == "plain\n"
    files.ok("create", "/memories/b.md", file_text="lines\r\nof another\rsystem")
    assert files.text("/memories/b.md") == "lines\nof another\nsystem\n"
    assert [hit.record.content for hit in memory.search("plain")] == ["plain"]


def test_T8_many_occurrences_are_told_shortly(files: Files) -> None:
    files.ok("create", "/memories/a.md", file_text="a" * 150_000)
    error = files.error("str_replace", "/memories/a.md", old_str="a" * 70_000, new_str="b")
    assert "and more. Please ensure it is unique" in error and len(error) < 500


def test_T8_F3_windows_line_ends_and_a_mark_stay(files: Files, memory: Memory, tmp_path: Path) -> None:
    memory.remember("Likes tea")
    path = tmp_path / "data" / "u1" / "MEMORY.md"
    path.write_bytes(b"\xef\xbb\xbf# Mine\r\n\r\n## Key Facts\r\n- Likes tea\r\n- Likes cake\r\n")
    files.ok("str_replace", "/memories/MEMORY.md", old_str="- Likes tea\n- Likes cake", new_str="- Likes rum\n- Is 8")
    files.ok("insert", "/memories/MEMORY.md", insert_line=0, insert_text="<!-- top -->")
    assert path.read_bytes() == (b"\xef\xbb\xbf<!-- top -->\r\n# Mine\r\n\r\n## Key Facts\r\n- Likes rum\r\n- Is 8\r\n")
    assert "\r" not in files.ok("view", "/memories/MEMORY.md")
    assert sorted(fact.text for fact in memory.read(kind="fact")) == ["Is 8", "Likes rum"]


# edits of the person's files


def test_T8_R5_an_edit_is_journaled_found_and_undone(app: Recollect, files: Files, memory: Memory) -> None:
    memory.remember("Likes tea", category="preference")
    memory.remember("Plays chess", category="preference")
    before = sorted(fact.text for fact in memory.read(kind="fact"))
    done = files(
        "str_replace", "/memories/MEMORY.md", old_str="- Likes tea\n- Plays chess", new_str="- Likes rum\n- Pet: Rex"
    )
    entries = memory.history(call=done.call)
    assert done.status == "ok" and done.outcome == "edited" and entries
    for entry in entries:
        assert (entry.actor, entry.call, entry.run) == ("tool:memory", done.call, entries[0].run)
    by_text = {fact.text: fact for fact in memory.read(kind="fact")}
    assert by_text.keys() == {"Likes rum", "Pet: Rex"}
    assert {(fact.source, fact.session, fact.agent) for fact in by_text.values()} == {
        ("tool:memory", "chat-7", "helper")
    }
    notes = app.tools("u1", "notes")
    assert [hit["text"] for hit in notes.call("memory_search", {"query": "rum"}).content] == ["Likes rum"]
    assert notes.call("memory_search", {"query": "chess"}).content == []
    assert memory.get("pet").content == "Rex"
    run = entries[0].run
    assert run is not None
    memory.undo(run)
    assert sorted(fact.text for fact in memory.read(kind="fact")) == before
    assert "- Likes tea\n" in files.text("/memories/MEMORY.md")


def test_T8_F3_the_file_on_disk_is_what_the_tool_made(files: Files, memory: Memory, tmp_path: Path) -> None:
    memory.remember("Likes tea")
    path = tmp_path / "data" / "u1" / "MEMORY.md"
    text = path.read_text("utf-8")
    edits: list[tuple[str, str]] = [
        ("- Likes tea\n", "- Likes tea\n\n> A quote of theirs\n\n| a | table |\n|---|---|\n"),
        ("- Likes tea", "*  Likes tea, and   cake  🍰"),
        ("## Key Facts\n", "## Key Facts\n<!-- mine -->\n"),
        ("# User Memory\n", "# Про мене\n\nשלום\n"),
    ]
    for old, new in edits:
        files.ok("str_replace", "/memories/MEMORY.md", old_str=old, new_str=new)
        text = text.replace(old, new)
        assert path.read_bytes() == text.encode()
    heading = text.split("\n").index("## Work Context") + 1
    files.ok("insert", "/memories/MEMORY.md", insert_line=heading, insert_text="- Writes Zig")  # an empty section
    text = text.replace("## Work Context\n", "## Work Context\n- Writes Zig\n")
    assert path.read_bytes() == text.encode() and files.text("/memories/MEMORY.md") == without_markup(text)
    (fact,) = memory.read(kind="fact", category="work_context")
    assert fact.text == "Writes Zig"


def test_T8_daily_notes_are_made_and_edited(files: Files, memory: Memory, tmp_path: Path) -> None:
    path = f"/memories/memory/{DAY}.md"
    text = f"# {DAY}\n\n## Discussions\n- Spoke of tomatoes\n"
    done = files("create", path, file_text=text)
    assert done.text == f"File created successfully at: {path}"
    assert (tmp_path / "data" / "u1" / "memory" / f"{DAY}.md").read_text("utf-8") == text
    (entry,) = memory.history(call=done.call)
    assert (entry.actor, entry.source, entry.op) == ("tool:memory", "tool:memory", "remember")
    assert [hit.record.kind for hit in memory.search("tomatoes")] == ["daily"]
    files.ok("str_replace", path, old_str="tomatoes", new_str="potatoes")
    assert memory.search("tomatoes") == [] and len(memory.search("potatoes")) == 1
    assert files.names("/memories/memory") == [f"{DAY}.md"]
    (record,) = memory.read(kind="daily")
    memory.forget(record.id)  # the line stays in the note, so the note must still be listed
    assert files.names("/memories/memory") == [f"{DAY}.md"] and "potatoes" in files.text(path)
    for command, more in (("delete", {"path": path}), ("rename", {"old_path": path, "new_path": "/memories/a.md"})):
        files.error(command, **more)
    assert "delete the lines" in files.error("delete", "/memories/memory")
    assert "does not exist" in files.error("view", "/memories/memory/2026-02-31.md")


def test_T8_P5_a_secret_in_a_new_file_is_refused(files: Files, memory: Memory, tmp_path: Path) -> None:
    result = files.refused("create", "/memories/a.md", file_text=f"About the server\n\nIts key is {SECRET}\n")
    assert "because of line 3: " in result.text and SECRET not in result.text
    result = files.refused("create", f"/memories/memory/{DAY}.md", file_text=f"# {DAY}\n\n## Discussions\n- {SECRET}\n")
    assert "because of line 4: " in result.text and SECRET not in result.text
    assert "secret" in files.error("create", f"/memories/{SECRET}.md", file_text="Something")
    files.ok("create", "/memories/plain.md", file_text="Something")
    assert "secret" in files.error("rename", old_path="/memories/plain.md", new_path=f"/memories/{SECRET}.md")
    assert files.refused("create", "/memories/a.md", file_text=f"```python\n{CODE}```\n").outcome == "refused:code"
    assert files.names() == ["MEMORY.md", "plain.md"] and len(memory.history()) == 1
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_T8_F4_a_persons_edit_in_between_stands(files: Files, memory: Memory, tmp_path: Path) -> None:
    memory.remember("Likes tea")
    path = tmp_path / "data" / "u1" / "MEMORY.md"
    files.ok("view", "/memories/MEMORY.md")
    path.write_text(path.read_text("utf-8").replace("- Likes tea\n", "- Likes cocoa\n- Typed by hand\n"), "utf-8")
    assert "did not appear verbatim" in files.error(
        "str_replace", "/memories/MEMORY.md", old_str="Likes tea", new_str="Likes rum"
    )
    done = files(
        "str_replace", "/memories/MEMORY.md", old_str="- Likes cocoa\n", new_str="- Likes cocoa\n- Has a cat\n"
    )
    assert [entry.actor for entry in memory.history(call=done.call)] == ["tool:memory"]
    sources = {fact.text: fact.source for fact in memory.read(kind="fact")}
    assert sources == {"Likes cocoa": "user_edit", "Typed by hand": "user_edit", "Has a cat": "tool:memory"}
    assert "- Likes cocoa\n- Has a cat\n- Typed by hand\n" in path.read_text("utf-8")


def test_T8_F4_an_edit_between_reading_and_writing_is_not_lost(
    files: Files, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.remember("Likes tea")
    path = tmp_path / "data" / "u1" / "MEMORY.md"
    edit, tries = Memory.edit, []

    def meddle(self: Memory, text: str, **more: Any) -> Any:
        tries.append(text)
        if len(tries) == 1:
            path.write_text(path.read_text("utf-8") + "- Typed just now\n", "utf-8")
        return edit(self, text, **more)

    monkeypatch.setattr(Memory, "edit", meddle)
    files.ok("insert", "/memories/MEMORY.md", insert_line=0, insert_text="<!-- top -->")
    assert len(tries) == 2
    text = path.read_text("utf-8")
    assert text.startswith("<!-- top -->\n") and text.endswith("- Typed just now\n")
    assert sorted(fact.text for fact in memory.read(kind="fact")) == ["Likes tea", "Typed just now"]


def test_T8_a_file_that_cannot_be_read_is_left_alone(files: Files, memory: Memory, tmp_path: Path) -> None:
    memory.remember("Likes tea")
    path = tmp_path / "data" / "u1" / "MEMORY.md"
    good = path.read_bytes()
    path.write_bytes(good + b"\xff\xfe\n")
    assert "MEMORY.md" in files.error("str_replace", "/memories/MEMORY.md", old_str="Likes tea", new_str="x")
    assert path.read_bytes() == good + b"\xff\xfe\n"
    path.write_bytes(good)


@pytest.mark.parametrize("store", ["memory", "postgres"])
def test_T8_without_files_on_disk(store: str, request: pytest.FixtureRequest) -> None:
    where: Any = MemoryStore() if store == "memory" else request.getfixturevalue("postgres_url")
    with recollect.open(where, clock=FrozenClock()) as app:
        memory, files = app.user("u1"), Files(app.tools("u1", "files"))
        files.ok("create", "/memories/d/a.md", file_text="Alpha")
        files.ok("rename", old_path="/memories/d", new_path="/memories/e")
        files.ok("insert", "/memories/e/a.md", insert_line=1, insert_text="Beta")
        assert files.text("/memories/e/a.md") == "Alpha\nBeta\n"
        memory.remember("Likes tea")
        files.ok("str_replace", "/memories/MEMORY.md", old_str="Likes tea", new_str="Likes rum")
        assert [fact.text for fact in memory.read(kind="fact")] == ["Likes rum"]
        told = files.ok("insert", "/memories/MEMORY.md", insert_line=0, insert_text="<!-- top -->")
        assert "has been edited" not in told and "not kept" in told  # there is no file that could have the comment
        files.ok("create", f"/memories/memory/{DAY}.md", file_text=f"# {DAY}\n\n## Discussions\n- Spoke of Zig\n")
        assert files.names() == ["MEMORY.md", "e/", "e/a.md", "memory/", f"memory/{DAY}.md"]
        assert memory.verify() == []


# deleting and renaming


def test_T8_R5_delete(files: Files, memory: Memory) -> None:
    for name in ("d/a.md", "d/e/b.md", "dd.md"):
        files.ok("create", f"/memories/{name}", file_text=f"This is in {name}")
    memory.note("A loose one")
    (loose,) = (note.id for note in memory.read(kind="note") if note.content == "A loose one")
    done = files("delete", "/memories/d")
    assert done.text == "Successfully deleted /memories/d" and done.outcome == "forgotten"
    assert files.names() == ["MEMORY.md", "dd.md", "notes/", f"notes/{loose}.md"]
    entries = memory.history(call=done.call)
    assert [(entry.actor, entry.op) for entry in entries] == [("tool:memory", "forget")] * 2
    assert files.error("delete", "/memories/d") == "Error: The path /memories/d does not exist"
    assert files.error("delete", "/memories") == "Error: Cannot delete the /memories directory itself"
    assert files.error("delete", "/memories/") == "Error: Cannot delete the /memories directory itself"
    for stays in ("MEMORY.md", "notes", "memory"):
        assert "stays" in files.error("delete", f"/memories/{stays}")
    assert files.ok("delete", f"/memories/notes/{loose}.md") and memory.get(loose).status == "archived"
    run = entries[0].run
    assert run is not None
    memory.undo(run)
    assert files.names() == ["MEMORY.md", "d/", "d/a.md", "d/e/", "dd.md"]
    assert files.text("/memories/d/e/b.md") == "This is in d/e/b.md\n"


def test_T8_rename(files: Files, memory: Memory) -> None:
    for name in ("d/a.md", "d/e/b.md", "dd.md"):
        files.ok("create", f"/memories/{name}", file_text=f"This is in {name}")
    memory.note("A loose one", tags=["mine"])
    (loose,) = memory.read(kind="note", tags=["mine"])
    ids = {note.content: note.id for note in memory.read(kind="note")}
    assert files.ok("rename", old_path="/memories/d", new_path="/memories/x/y") == (
        "Successfully renamed /memories/d to /memories/x/y"
    )
    files.ok("rename", old_path="/memories/dd.md", new_path="/memories/d")
    files.ok("rename", old_path=f"/memories/notes/{loose.id}.md", new_path="/memories/x/loose.md")
    assert files.names("/memories/x") == ["loose.md", "y/", "y/a.md", "y/e/"]
    assert (
        files.text("/memories/x/y/e/b.md") == "This is in d/e/b.md\n"
        and files.text("/memories/d") == "This is in dd.md\n"
    )
    assert {note.content: note.id for note in memory.read(kind="note")} == ids and memory.get(loose.id).tags == (
        "mine",
        "file",
    )
    files.error("view", f"/memories/notes/{loose.id}.md")
    wrong = {
        ("d", "x/loose.md"): "The destination /memories/x/loose.md already exists",
        ("d", "x"): "The destination /memories/x already exists",
        ("d", "d"): "The destination /memories/d already exists",
        ("x", "x/y/z"): "cannot be moved into itself",
        ("d", "d/z"): "cannot be moved into itself",
        ("none", "new"): "The path /memories/none does not exist",
        ("none", "none/x"): "The path /memories/none does not exist",
        ("MEMORY.md", "new"): "cannot be renamed",
        ("d", "MEMORY.md"): "cannot be renamed or replaced",
        ("memory", "new"): "cannot be renamed",
        ("notes", "new"): "cannot be renamed",
        ("d", "memory/2026-02-12.md"): "/memories/memory/2026-02-12.md has its name",
        ("", "new"): "Cannot rename the /memories directory itself",
        ("d", ""): "Cannot rename the /memories directory itself",
        ("x", "z" * 297): "too long",
    }
    before = (files.ok("view", "/memories"), len(memory.history()))
    for (old, new), why in wrong.items():
        assert why in files.error("rename", old_path=f"/memories/{old}", new_path=f"/memories/{new}"), (old, new)
    assert "old_path is missing" in files.error("rename", new_path="/memories/new")
    assert "new_path is missing" in files.error("rename", old_path="/memories/d")
    assert (files.ok("view", "/memories"), len(memory.history())) == before


def test_T8_R5_a_renaming_is_undone_as_one(files: Files, memory: Memory) -> None:
    for name in ("d/a.md", "d/b.md"):
        files.ok("create", f"/memories/{name}", file_text=f"This is in {name}")
    done = files("rename", old_path="/memories/d", new_path="/memories/e")
    run = memory.history(call=done.call)[0].run
    assert run is not None
    memory.undo(run)
    assert files.names() == ["MEMORY.md", "d/", "d/a.md", "d/b.md"]


def test_T8_R5_what_an_undo_brings_to_a_taken_path_is_still_there(files: Files, memory: Memory) -> None:
    files.ok("create", "/memories/a", file_text="The first")
    (first,) = memory.read(kind="note")
    files.ok("delete", "/memories/a")
    gone = memory.history()[-1].seq
    files.ok("create", "/memories/a/b", file_text="The second")
    memory.undo(gone)
    assert files.names() == ["MEMORY.md", "a/", "a/b", "notes/", f"notes/{first.id}.md"]
    assert files.text(f"/memories/notes/{first.id}.md") == "The first\n"
    files.ok("delete", f"/memories/notes/{first.id}.md")
    files.ok("delete", "/memories/a")
    files.ok("create", "/memories/a", file_text="The third")
    memory.undo(memory.history(first.id)[-1].seq)
    texts = {files.text(f"/memories/{name}") for name in files.names() if name == "a" or name.startswith("notes/note-")}
    assert texts == {"The first\n", "The third\n"}


# paths


DISGUISES = [
    "", "/", "memories", "memories/a.md", "/memoriesfoo", "/memoriesfoo/a.md", "/etc/passwd", "/MEMORIES/a.md", "a.md",
    "//memories/a.md", "/memories//a.md", "/memories//etc/passwd", "/memories/a.md//", "/memories/d//a.md",
    "/memories/..", "/memories/../u2/MEMORY.md", "/memories/../../etc/passwd", "/memories/d/../../u2/MEMORY.md",
    "/memories/./a.md", "/memories/.", "/memories/...", "/memories/d/..", "/memories/d/.../a.md",
    "/memories/%2e%2e/u2/MEMORY.md", "/memories/%2E%2E%2Fu2", "/memories/%252e%252e/u2", "/memories/%252525252e/x",
    "/memories/..%2fu2", "/memories/..%c0%af", "/memories/%c0%ae%c0%ae/x", "/memories/%u002e%u002e/x", "/memories/a%00.md",
    "/memories/..\\u2\\MEMORY.md", "/memories\\..\\u2", "/memories/a\\b.md", "\\memories\\a.md", "/memories/%5c..%5c",
    "/memories/a\x00.md", "/memories/a.md\x00", "/memories/a\n.md", "/memories/a.md\n", "\n/memories/a.md", "/memories/\r",
    " /memories/a.md", "/memories/a.md ", "/memories/ a.md", "/memories/ ", "/memories/d /a.md", "/memories/a.md.",
    "/memories/a..", "/memories/d./a.md", "/memories/.hidden", "/memories/d/.git/config", "/memories/.MEMORY.md.new",
    "/memories/．．/u2/MEMORY.md", "/memories/‥/u2", "/memories/…/u2", "/memories/․․/u2", "/memories/．hidden",
    "/memories／..／u2", "/memories/a／b", "/memories/a∕b", "/memories/a⁄b", "/memories/..∕u2", "/memories/a＼b", "/memories/a﹨b",
    "/memories/a⧵b", "/memories/a\u202eb", "/memories/a\u200bb", "/memories/\ufeffa", "/memories/a\u2028b", "/memories/a\ud800",
    "/memories/" + "a" * 301, "/memories/" + "a/" * 10_000 + "b", "/memories/" + "../" * 10_000, "~/a.md", "file:///memories/a",
    "C:\\memories\\a.md", "/memories/../memories/a.md", "/memories/a.md/..", "/memories/a.md/.",
]  # fmt: skip


@pytest.mark.everyday(16)
@pytest.mark.parametrize("path", DISGUISES, ids=lambda path: ascii(path[:30]))
def test_T8_R4_a_path_is_never_more_than_a_name(path: str, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("outside", "utf-8")
    with recollect.open(tmp_path / "data") as app:
        app.user("u2").remember("The marker of the other user")
        app.user("u1").remember("Likes tea")
        files = Files(app.tools("u1", "files"))
        files.ok("create", "/memories/own.md", file_text="Mine")
        app._call_log().flush()
        disk, history = on_disk(tmp_path), app.user("u1").history()
        asked: list[tuple[str, dict[str, Any]]] = [
            ("view", {"path": path}),
            ("create", {"path": path, "file_text": "Some text that was made up"}),
            ("str_replace", {"path": path, "old_str": "e", "new_str": "x"}),
            ("insert", {"path": path, "insert_line": 0, "insert_text": "x"}),
            ("delete", {"path": path}),
            ("rename", {"old_path": path, "new_path": "/memories/new.md"}),
            ("rename", {"old_path": "/memories/own.md", "new_path": path}),
        ]
        for command, more in asked:
            text = files.error(command, **more)
            assert len(text) < 700 and "marker" not in text and "outside\n" not in text
        assert on_disk(tmp_path) == disk and app.user("u1").history() == history
        assert files.names() == ["MEMORY.md", "own.md"]


def test_T8_odd_names_that_are_only_names(files: Files, tmp_path: Path) -> None:
    before: set[str] = set()
    names = [
        "Київ та Львів.md",
        "メモ（１）.md",
        "a b.md",
        "100%.md",
        "a..b.md",
        "con",
        "x:y",
        "~",
        "$HOME",
        "*",
        "'; --",
        "é.md",
        "a.b.c",
        "🍰.md",
    ]
    for number, name in enumerate(names):
        files.ok("create", f"/memories/odd/{name}", file_text=f"Text of file number {number}")
        before = before or set(on_disk(tmp_path))
        assert files.text(f"/memories/odd/{name}") == f"Text of file number {number}\n"
    assert set(on_disk(tmp_path)) == before and sorted(files.names("/memories/odd")) == sorted(names)
    assert "already exists" in files.error("create", "/memories/odd/e\u0301.md", file_text="Composed otherwise")


@settings(max_examples=volume(60, 300))
@given(st.text(st.sampled_from("./\\%2eEmoris\n\x00 ․．／～日"), max_size=30))
def test_T8_R4_no_path_escapes_or_crashes(path: str) -> None:
    files = Files(_SHARED.tools("u1", "files"))
    result = files("view", f"/memories/{path}")
    assert result.status in ("ok", "error", "invalid") and result.outcome in ("found", "path", "bad arguments")
    assert result.status != "ok" or path in ("", "/") or "memory" in path or path.strip("/") == "MEMORY.md"


_SHARED = recollect.open(MemoryStore())


# many at once


def _create_in_a_process(folder: str, number: int, begin: Any, answers: Any) -> None:
    with recollect.open(folder) as app:
        files = Files(app.tools("u1", "files"))
        begin.wait()
        answers.put(files("create", "/memories/a.md", file_text=f"Made by number {number}").status)


@pytest.mark.slow
def test_T8_R4_of_processes_that_create_one_file_exactly_one_does(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    begin, answers = spawn.Barrier(3), spawn.Queue()
    running = [
        spawn.Process(target=_create_in_a_process, args=(str(tmp_path), number, begin, answers)) for number in range(3)
    ]
    for process in running:
        process.start()
    told = sorted(answers.get() for _ in running)
    for process in running:
        process.join()
    assert told == ["error", "error", "ok"]
    memory = recollect.open(tmp_path).user("u1")
    assert len(memory.read(kind="note")) == 1 and memory.verify() == []


def at_once(works: list[Callable[[], Result]]) -> list[Result]:
    """What comes of works that begin together."""
    begin = threading.Barrier(len(works))
    results: list[Result] = []

    def run(work: Callable[[], Result]) -> None:
        begin.wait()
        results.append(work())

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("path", ["/memories/a.md", f"/memories/memory/{DAY}.md"])
def test_T8_of_threads_that_create_one_file_exactly_one_does(path: str, files: Files) -> None:
    texts = [f"# {DAY}\n\n## Discussions\n- Made by number {number}\n" for number in range(8)]
    results = at_once([lambda text=text: files("create", path, file_text=text) for text in texts])  # type: ignore[misc]
    assert sorted(result.status for result in results) == ["error"] * 7 + ["ok"]
    assert all(result.status == "ok" or result.text == f"Error: File {path} already exists" for result in results)
    assert files.text(path) in texts


@pytest.mark.parametrize("path", ["/memories/a.md", "/memories/MEMORY.md", f"/memories/memory/{DAY}.md"])
def test_T8_no_replacement_is_lost(
    path: str, files: Files, memory: Memory, app: Recollect, clock: FrozenClock, tmp_path: Path
) -> None:
    text = f"# {DAY}\n\n## Discussions\n" + "".join(f"- Counter {n} is old\n" for n in range(10, 18))
    if "a.md" in path:
        files.ok("create", path, file_text=text)
    else:
        memory.edit(text, day=DAY if DAY in path else None)
    others = [recollect.open(tmp_path / "data", clock=clock) for _ in range(4)]  # as other processes would
    several = [Files(one.tools("u1", "files")) for one in (app, *others)]

    def replaces(number: int) -> Callable[[], Result]:
        of, old = several[number % len(several)], f"Counter {number} is old"
        return lambda: of("str_replace", path, old_str=old, new_str=old.replace("old", "new"))

    results = at_once([replaces(number) for number in range(10, 18)])
    for other in others:
        other.close()
    assert [result.status for result in results] == ["ok"] * 8
    assert files.text(path) == text.replace("old", "new")


# as a file system


@dataclass
class Model:
    """What a plain file system would hold."""

    files: dict[str, str] = field(default_factory=dict)

    def is_directory(self, path: str) -> bool:
        return any(name.startswith(f"{path}/") for name in self.files)

    def free(self, path: str) -> bool:
        parents = [path[:at] for at, letter in enumerate(path) if letter == "/"]
        return path not in self.files and not self.is_directory(path) and not any(one in self.files for one in parents)

    def create(self, path: str, text: str) -> bool:
        if not self.free(path):
            return False
        self.files[path] = text if text.endswith("\n") else text + "\n"
        return True

    def str_replace(self, path: str, old: str, new: str) -> bool:
        text = self.files.get(path, "")
        if text.count(old) != 1:
            return False
        changed = text.replace(old, new)
        if not changed.strip():
            return False
        self.files[path] = changed if changed.endswith("\n") else changed + "\n"
        return True

    def insert(self, path: str, line: int, text: str) -> bool:
        if path not in self.files:
            return False
        lines = self.files[path].removesuffix("\n").split("\n")
        if not 0 <= line <= len(lines):
            return False
        lines[line:line] = text.removesuffix("\n").split("\n")
        self.files[path] = "\n".join(lines) + "\n"
        return True

    def delete(self, path: str) -> bool:
        gone = [name for name in self.files if name == path or name.startswith(f"{path}/")]
        for name in gone:
            del self.files[name]
        return bool(gone)

    def rename(self, old: str, new: str) -> bool:
        moved = [name for name in self.files if name == old or name.startswith(f"{old}/")]
        if not moved or new.startswith(f"{old}/") or not self.free(new):
            return False
        for name in moved:
            self.files[new + name[len(old) :]] = self.files.pop(name)
        return True


paths = st.sampled_from(["a", "b.md", "a/x", "a/y.md", "a/x/z", "d/e/f.md", "d", "notes/plan.md", "notes/sub/x"])
pieces = st.sampled_from(["apple", "Київ", "pear\n", "\n", "  plum", "x.*", "fig \n\n", "pea"])
commands = st.lists(
    st.one_of(
        st.tuples(st.just("create"), paths, st.lists(pieces, min_size=1, max_size=4).map("".join)),
        st.tuples(st.just("str_replace"), paths, pieces, st.one_of(st.just(""), pieces)),
        st.tuples(st.just("insert"), paths, st.integers(-1, 6), pieces),
        st.tuples(st.just("delete"), paths),
        st.tuples(st.just("rename"), paths, paths),
    ),
    max_size=25,
)


@pytest.mark.parametrize("kept", ["in memory", "on disk"])
@settings(max_examples=volume(10, 40), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(asked=commands)
def test_T8_R5_it_behaves_as_a_file_system_does(
    kept: str, asked: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store: Any = MemoryStore() if kept == "in memory" else tmp_path_factory.mktemp("data")
    model = Model()
    app = recollect.open(store)
    files, memory = Files(app.tools("u1", "files")), app.user("u1")
    for number, (command, path, *rest) in enumerate(asked):
        where = f"/memories/{path}"
        match command:
            case "create":
                text = f"Unlike any other: {number * 7919}\n{rest[0]}"
                result, expected = files("create", where, file_text=text), model.create(path, text)
            case "str_replace":
                result = files("str_replace", where, old_str=rest[0], new_str=rest[1])
                expected = model.str_replace(path, *rest)
            case "insert":
                result = files("insert", where, insert_line=rest[0], insert_text=rest[1])
                expected = model.insert(path, *rest)
            case "delete" if path != "d":
                result, expected = files("delete", where), model.delete(path)
            case "rename":
                result = files("rename", old_path=where, new_path=f"/memories/{rest[0]}")
                expected = model.rename(path, rest[0])
            case _:
                continue
        assert result.status == ("ok" if expected else "error"), (command, path, rest, result.text)
        assert {note.metadata["path"] for note in memory.read(kind="note")} == model.files.keys()
    if kept == "on disk":
        app.close()  # what is in memory would be gone
    again = recollect.open(store)
    for reopened in (files, Files(again.tools("u1", "files"))):
        for path, text in model.files.items():
            assert reopened.text(f"/memories/{path}") == text
        listed = [name for name in reopened.names() if not name.endswith("/") and name != "MEMORY.md"]
        assert set(listed) == {path for path in model.files if path.count("/") < 2}
    assert memory.verify() == []
    again.close()
    app.close()


lines = st.sampled_from(["- Likes tea", "- Role: cook", "- Role: baker", "## Key Facts", "## Mine", "", "plain words here",
    "* Has a cat", "> quoted", "<!-- hm -->", "1. First of all", "  - nested", "Київ: так", "# Title"])  # fmt: skip


@settings(max_examples=volume(12, 60), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    asked=st.lists(
        st.one_of(
            st.tuples(
                st.just("insert"),
                st.integers(0, 12),
                st.lists(lines, min_size=1, max_size=3).map("\n".join).map("{}\n".format),
            ),
            st.tuples(st.just("str_replace"), lines.filter(bool), lines),
        ),
        max_size=12,
    )
)
def test_T8_F3_R5_memory_md_is_byte_for_byte_what_the_tool_made(
    asked: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("data")
    with recollect.open(folder) as app:
        memory, files = app.user("u1"), Files(app.tools("u1", "files"))
        memory.remember("Likes rum", category="preference")
        path = folder / "u1" / "MEMORY.md"
        model = Model({"MEMORY.md": path.read_text("utf-8")})
        for command, *rest in asked:
            if command == "insert":
                result = files("insert", "/memories/MEMORY.md", insert_line=rest[0], insert_text=rest[1])
                expected = model.insert("MEMORY.md", *rest)
            else:
                result = files("str_replace", "/memories/MEMORY.md", old_str=rest[0], new_str=rest[1])
                expected = model.str_replace("MEMORY.md", *rest)
            assert result.status == ("ok" if expected else "error"), result
            assert path.read_bytes() == model.files["MEMORY.md"].encode()
        assert memory.verify() == []


def test_T8_it_agrees_with_anthropics_own_files(tmp_path: Path, files: Files) -> None:
    from anthropic.lib.tools import ToolError
    from anthropic.tools import BetaLocalFilesystemMemoryTool

    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path / "theirs"))
    long = "\n".join(f"line {number}" for number in range(20))
    asked: list[tuple[str, dict[str, Any]]] = [
        ("create", {"path": "/memories/a.md", "file_text": "one\ntwo\nthree\n"}),
        ("create", {"path": "/memories/a.md", "file_text": "again"}),
        ("create", {"path": "/memories/d/b.md", "file_text": f"{long}\n"}),
        ("view", {"path": "/memories/d/b.md", "view_range": [3, 5]}),
        ("view", {"path": "/memories/none.md"}),
        ("str_replace", {"path": "/memories/a.md", "old_str": "two\nthree", "new_str": "2\n3"}),
        ("str_replace", {"path": "/memories/a.md", "old_str": "four", "new_str": "4"}),
        ("str_replace", {"path": "/memories/d/b.md", "old_str": "line", "new_str": "row"}),
        ("str_replace", {"path": "/memories/d", "old_str": "line", "new_str": "row"}),
        ("insert", {"path": "/memories/a.md", "insert_line": 0, "insert_text": "zero\n"}),
        ("insert", {"path": "/memories/a.md", "insert_line": 4, "insert_text": "four"}),
        ("insert", {"path": "/memories/a.md", "insert_line": 9, "insert_text": "nine"}),
        ("rename", {"old_path": "/memories/d", "new_path": "/memories/e/f"}),
        ("rename", {"old_path": "/memories/a.md", "new_path": "/memories/e/f/b.md"}),
        ("rename", {"old_path": "/memories/none", "new_path": "/memories/new"}),
        ("create", {"path": "/memories/../escaped.md", "file_text": "no"}),
        ("view", {"path": "/memories/../../etc/passwd"}),
        ("delete", {"path": "/memories/none.md"}),
        ("delete", {"path": "/memories"}),
        ("delete", {"path": "/memories/a.md"}),
    ]
    for command, more in asked:
        ours = files(command, **more)
        try:
            said, failed = str(theirs.call({"command": command, **more})), False
        except ToolError as error:
            said, failed = str(error), True
        assert (ours.status == "error") == failed, (command, more, ours, said)
        if not failed and command != "str_replace":
            assert ours.text == said
        for path in (tmp_path / "theirs" / "memories").rglob("*.md"):
            name = path.relative_to(tmp_path / "theirs").as_posix()
            assert files.text(f"/{name}") == path.read_text("utf-8")
    assert files.names() == ["MEMORY.md", "e/", "e/f/"]


# how much is read


def test_T8_one_file_is_viewed_without_reading_all_notes(
    files: Files, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with memory.batch() as many:
        made = [many.note(f"Loose note number {number} speaks of town {number * 7}") for number in range(250)]
    files.ok("create", "/memories/a.md", file_text="Alpha")
    read: list[int] = []
    find = Memory.read

    def counting(self: Memory, **asked: Any) -> Any:
        found = find(self, **asked)
        read.append(len(found))
        return found

    monkeypatch.setattr(Memory, "read", counting)
    files.text("/memories/a.md")
    assert sum(read) <= 2
    first = made[0]
    assert isinstance(first, Written)
    read.clear()
    assert files.text(f"/memories/notes/{first.record.id}.md").startswith("Loose note number 0 ")
    assert sum(read) == 0
    files.ok("str_replace", f"/memories/notes/{first.record.id}.md", old_str="number 0", new_str="number zero")
    files.ok("delete", f"/memories/notes/{first.record.id}.md")
    assert sum(read) == 0
    for path in ("/memories", "/memories/notes"):
        read.clear()
        listed = files.ok("view", path).split("\n")
        assert listed[-1] == "(149 older notes in /memories/notes are not listed)"
        assert sum("/notes/note-" in line for line in listed) == 100 and sum(read) <= 110
    assert "not listed" not in files.ok("view", "/memories/memory")
    last = made[-1]
    assert isinstance(last, Written) and f"notes/{last.record.id}.md" in files.names()
