"""The suite `files`: Anthropic's memory tool over the user's own files.

Below ``/memories`` stand MEMORY.md and the daily notes (``memory/YYYY-MM-DD.md``), and an edit of them is an edit as a
person would make it, by a tool. Every other file is a note with a path; notes that have none are in ``notes/``. Nothing
here touches the disk: a path is only ever a name, and those that try to be more are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from recollect.core.memory import Memory
from recollect.errors import InvalidInputError, RecollectError
from recollect.records import Duplicate, Note, Outcome, Record, Refused, new_id
from recollect.times import parse_day
from recollect.tools.parameters import Arg
from recollect.tools.tool import Answer, Scope, outcome_of, tool

ROOT = "/memories"
MEMORY = "MEMORY.md"
_DAILY = re.compile(r"memory/(\d{4}-\d{2}-\d{2})\.md")
_NOTE = re.compile(r"notes/(note-[0-9a-z]{26})\.md")
_LONGEST_PATH = 300
_DEEPEST = 2
_TAG = "file"


def _only_views(arguments: Mapping[str, Any]) -> bool:
    return arguments["command"] == "view"


class PathError(RecollectError):
    """What was asked of a path cannot be done; the message says so as the model expects it."""


@tool("files", does="other", tier="destructive", timeout=15, json=False, reads=_only_views)
def memory(
    scope: Scope,
    command: Annotated[Literal["view", "create", "str_replace", "insert", "delete", "rename"], Arg(says="What to do")],
    path: Annotated[str | None, Arg(says="The file or directory, below /memories (all but rename)")] = None,
    view_range: Annotated[
        list[int] | None, Arg(says="view: the first and the last line to show; -1 for the end of the file")
    ] = None,
    file_text: Annotated[str | None, Arg(says="create: the text of the new file")] = None,
    old_str: Annotated[str | None, Arg(says="str_replace: the text to replace; it must be in the file once")] = None,
    new_str: Annotated[str | None, Arg(says="str_replace: the text to put in its place")] = None,
    insert_line: Annotated[int | None, Arg(says="insert: after which line; 0 for the top of the file")] = None,
    insert_text: Annotated[str | None, Arg(says="insert: the text to put there")] = None,
    old_path: Annotated[str | None, Arg(says="rename: the file or directory")] = None,
    new_path: Annotated[str | None, Arg(says="rename: its new path")] = None,
) -> Answer:
    """View and edit files in your memory directory /memories, which persists between conversations. MEMORY.md holds
    what is known of the person, memory/YYYY-MM-DD.md the notes of a day; other files are yours to make."""
    tree = _Tree(scope)
    try:
        match command:
            case "view":
                return _view(tree, _asked("path", path), view_range)
            case "create":
                return tree.create(_asked("path", path), _given("file_text", file_text))
            case "str_replace":
                return _str_replace(tree, _asked("path", path), _given("old_str", old_str), new_str or "")
            case "insert":
                if insert_line is None:
                    raise PathError("Error: insert needs insert_line")
                return _insert(tree, _asked("path", path), insert_line, _given("insert_text", insert_text))
            case "delete":
                return tree.delete(_asked("path", path))
            case "rename":
                return tree.rename(_asked("old_path", old_path), _asked("new_path", new_path))
    except PathError as error:
        return Answer(str(error), "path", "error", exact=True)


TOOLS = (memory,)


# what is done to texts


def _view(tree: _Tree, path: str, lines: list[int] | None) -> Answer:
    if tree.is_directory(path):
        head = f"Here're the files and directories up to 2 levels deep in {_shown(path)},"
        listed = "\n".join(f"{_size(size)}\t{name}" for name, size in tree.listed(path))
        return Answer(f"{head} excluding hidden items and node_modules:\n{listed}", "found")
    text = tree.read(path)
    if text is None:
        raise PathError(f"The path {_shown(path)} does not exist. Please provide a valid path.")
    first, last = (lines[0], lines[1]) if lines and len(lines) == 2 else (1, -1)
    numbered = _numbered(text.removesuffix("\n").split("\n"), max(first, 1), last)
    return Answer(f"Here's the content of {_shown(path)} with line numbers:\n{numbered}", "found")


def _str_replace(tree: _Tree, path: str, old: str, new: str) -> Answer:
    def change(text: str) -> tuple[str, str]:
        found = [match.start() for match in re.finditer(f"(?={re.escape(old)})", text)]
        if not found:
            raise PathError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {_shown(path)}.")
        if len(found) > 1:
            lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in found)
            raise PathError(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}."
                " Please ensure it is unique"
            )
        changed = text[: found[0]] + new + text[found[0] + len(old) :]
        line = text.count("\n", 0, found[0]) + 1
        snippet = _numbered(changed.split("\n"), max(line - 2, 1), line + new.count("\n") + 2)
        return changed, f"The memory file has been edited. Here is the change with line numbers:\n{snippet}"

    return tree.change(path, change, f"Error: The path {_shown(path)} does not exist. Please provide a valid path.")


def _insert(tree: _Tree, path: str, line: int, text: str) -> Answer:
    def change(before: str) -> tuple[str, str]:
        lines = before.removesuffix("\n").split("\n") if before else []
        if not 0 <= line <= len(lines):
            raise PathError(
                f"Error: Invalid `insert_line` parameter: {line}."
                f" It should be within the range of lines of the file: [0, {len(lines)}]"
            )
        lines[line:line] = text.rstrip("\n").split("\n")
        return "\n".join(lines) + "\n", f"The file {_shown(path)} has been edited."

    return tree.change(path, change, f"Error: The path {_shown(path)} does not exist")


def _numbered(lines: list[str], first: int, last: int) -> str:
    end = len(lines) if last == -1 else last
    return "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(lines[first - 1 : end], first))


# where texts are


class _Tree:
    """The files of one user by their paths below /memories; a path here is without it."""

    def __init__(self, scope: Scope) -> None:
        self._memory = scope.memory
        self._source = f"tool:{scope.tool}"

    def is_directory(self, path: str) -> bool:
        if path in ("", "memory", "notes"):
            return True
        return any(name.startswith(f"{path}/") for name in self._notes(self._memory))

    def listed(self, path: str) -> list[tuple[str, int]]:
        """Paths and sizes, directories too, two levels deep; the directory itself first."""
        memory = self._memory
        files = {name: len(note.content.encode()) for name, note in self._notes(memory).items()}
        files[MEMORY] = len(memory.show().encode())
        files |= {f"memory/{day}.md": len(memory.daily(day).encode()) for day in memory.days()}
        below = f"{path}/" if path else ""
        inside = {name[len(below) :]: size for name, size in files.items() if name.startswith(below)}
        shown: dict[str, int] = {}
        for name, size in inside.items():
            parts = name.split("/")
            for depth in range(1, min(len(parts), _DEEPEST) + 1):
                ending = "/" if depth < len(parts) else ""
                entry = "/".join(parts[:depth]) + ending
                shown[entry] = shown.get(entry, 0) + size
        whole = _shown(path)
        return [(whole, sum(inside.values())), *((f"{whole}/{name}", shown[name]) for name in sorted(shown))]

    def read(self, path: str) -> str | None:
        """The text of a file; None if there is none."""
        return self._read(self._memory, path)

    def create(self, path: str, text: str) -> Answer:
        if self.is_directory(path) or self.read(path) is not None:
            raise PathError(f"Error: File {_shown(path)} already exists")
        done = f"File created successfully at: {_shown(path)}"
        if day := _DAILY.fullmatch(path):
            return self._told(self._memory.edit(text, day=parse_day("path", day[1])), done)
        with self._memory.batch() as memory:
            if path in self._notes(memory):
                raise PathError(f"Error: File {_shown(path)} already exists")
            outcome = memory.note(text, tags=[_TAG], source=self._source, metadata={"path": path})
        if isinstance(outcome, Duplicate):
            where = _shown(_path_of(outcome.record))
            raise PathError(f"Error: File {_shown(path)} was not created: {where} says the same")
        return self._told(outcome, done)

    def change(self, path: str, change: Callable[[str], tuple[str, str]], missing: str) -> Answer:
        """Put what ``change`` makes of a text in its place; twice if somebody else was quicker."""
        for again in (True, False):
            text = self.read(path)
            if text is None:
                raise PathError(missing)
            changed, told = change(text)
            if not changed.strip():
                raise PathError(f"Error: {_shown(path)} would be empty; delete it instead, or leave a line in it")
            outcome = self._write(path, changed, text)
            if not (again and isinstance(outcome, Refused) and outcome.reason == "changed"):
                break
        return self._told(outcome, told)

    def delete(self, path: str) -> Answer:
        if path == "":
            raise PathError("Error: Cannot delete the /memories directory itself")
        if path == MEMORY or path == "memory" or _DAILY.fullmatch(path):
            raise PathError(f"Error: {_shown(path)} stays; delete the lines in it that should be forgotten")
        with self._memory.acting(run=new_id("run")).batch() as memory:
            notes = self._below(memory, path)
            for note in notes.values():
                memory.forget(note.id, reason="the file was deleted by a tool")
        if not notes:
            raise PathError(f"Error: The path {_shown(path)} does not exist")
        return Answer(f"Successfully deleted {_shown(path)}", "forgotten")

    def rename(self, old: str, new: str) -> Answer:
        for path in (old, new):
            if path == "":
                raise PathError("Error: Cannot rename the /memories directory itself")
            if path == MEMORY or path.split("/")[0] == "memory" or _NOTE.fullmatch(new):
                raise PathError(f"Error: {_shown(path)} has its name from what it is and cannot be renamed or replaced")
        if new.startswith(f"{old}/"):
            raise PathError(f"Error: {_shown(old)} cannot be moved into itself")
        with self._memory.acting(run=new_id("run")).batch() as memory:
            notes = self._below(memory, old)
            taken = self._notes(memory)
            if not notes:
                raise PathError(f"Error: The path {_shown(old)} does not exist")
            if any(name == new or name.startswith(f"{new}/") for name in taken):
                raise PathError(f"Error: The destination {_shown(new)} already exists")
            for name, note in notes.items():
                path = new + name[len(old) :]
                memory.update(note.id, tags=[*note.tags, _TAG], metadata={"path": path}, reason="refinement")
        return Answer(f"Successfully renamed {_shown(old)} to {_shown(new)}", "updated")

    def _read(self, memory: Memory, path: str) -> str | None:
        if path == MEMORY:
            return memory.show()
        if day := _DAILY.fullmatch(path):
            try:
                return memory.daily(day[1]) or None
            except InvalidInputError:
                return None
        note = self._notes(memory).get(path)
        return None if note is None else note.content + "\n"

    def _write(self, path: str, text: str, expect: str) -> Outcome:
        if path == MEMORY:
            return self._memory.edit(text, expect=expect)
        if day := _DAILY.fullmatch(path):
            return self._memory.edit(text, day=day[1], expect=expect)
        with self._memory.batch() as memory:
            note = self._notes(memory).get(path)
            if note is None or note.content + "\n" != expect:
                return Refused(reason="changed", message=f"{_shown(path)} was changed meanwhile; look at it again")
            return memory.update(note.id, text, source=self._source, reason="refinement")

    def _below(self, memory: Memory, path: str) -> dict[str, Record]:
        """The file itself, or all in the directory."""
        notes = self._notes(memory)
        return {name: note for name, note in notes.items() if name == path or name.startswith(f"{path}/")}

    def _notes(self, memory: Memory) -> dict[str, Record]:
        return {_path_of(note): note for note in memory.read(kind="note")}

    @staticmethod
    def _told(outcome: Outcome, done: str) -> Answer:
        if isinstance(outcome, Refused):
            return Answer(outcome.message, outcome_of(outcome), "refused")
        notices = "".join(f"\n(Note: {notice})" for notice in outcome.notices)
        return Answer(done + notices, outcome_of(outcome))


def _path_of(record: Record) -> str:
    """Where a note is; one that was not made as a file goes by its id."""
    path = record.metadata.get("path")
    return path if isinstance(record, Note) and isinstance(path, str) and path else f"notes/{record.id}.md"


def _asked(name: str, given: str | None) -> str:
    """A path below /memories, without it. What is not plainly one is refused: a path is never resolved."""
    if given is None:
        raise PathError(f"Error: {name} is missing")
    path = given.strip()
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise PathError(f"Error: Path must start with {ROOT}, got: {path[:100]}")
    parts = [part for part in path[len(ROOT) :].split("/") if part]
    plain = unquote(path)
    odd = "\\" in plain or not path.isprintable() or len(path) > _LONGEST_PATH
    if odd or any(part.startswith(".") for part in [*parts, *plain.split("/")]):
        raise PathError(f"Error: Path {path[:100]!r} would escape the {ROOT} directory or is not a plain path")
    return "/".join(parts)


def _given(name: str, text: str | None) -> str:
    if not text:
        raise PathError(f"Error: {name} is missing or empty")
    return text


def _shown(path: str) -> str:
    return f"{ROOT}/{path}" if path else ROOT


def _size(size: int) -> str:
    return f"{size}B" if size < 1024 else f"{size / 1024:.1f}K".replace(".0K", "K")
