"""The suite `files`: Anthropic's memory tool over the user's own files.

``/memories`` contains MEMORY.md and the daily notes (``memory/YYYY-MM-DD.md``), and editing them works like an edit by
a person, made by a tool. Every other file is a note with a path; notes without a path are in ``notes/``, by id. Nothing
here touches the disk: a path is only a name, and anything else is refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Annotated, Any, Literal

from anyascii import anyascii

from recollect import checks as check
from recollect.document.blocks import parse_blocks
from recollect.errors import InvalidInputError, NotFoundError, RecollectError
from recollect.memory.memory import Memory
from recollect.memory.refusals import refusal_of_code, refusal_of_secret
from recollect.policy.secrets import find_secrets
from recollect.records import DailyEntry, Duplicate, Note, Outcome, Record, Refused, Unchanged, new_id
from recollect.times import parse_day
from recollect.tools.formatting import memory_text
from recollect.tools.parameters import Arg
from recollect.tools.tool import Scope, ToolAnswer, outcome_of, tool

ROOT = "/memories"
MEMORY = "MEMORY.md"
_DAILY = re.compile(r"memory/([0-9]{4}-[0-9]{2}-[0-9]{2})\.md")
_NOTE = re.compile(r"notes/(note-[0-9a-z]{26})\.md")
_RESERVED = {name.casefold(): name for name in (MEMORY, "memory", "notes")}
"""The built-in names at the top level. No other name there may look like one of them."""
_ESCAPED = re.compile(r"%(?:[0-9a-fA-F]{2}|u)")
_SLASHES = re.compile("[\\\\\u2044\u2215\u2216\u29f5\u29f8\u29f9\u2571\u2572]")
"""Characters that are, or look like, another form of a slash."""
_LONGEST_PATH = 300
_LONGEST_QUOTE = 200
_DEEPEST = 2
_MOST_LISTED = 100
_MOST_SHOWN = 18_000
"""The maximum number of characters in one view: a little less than an answer may have."""
_MOST_PLACES = 20
_TRIES = 20
_TAG = "file"
_EDGES = ["", "\n"]
_TEXTS = {"create": "file_text", "str_replace": "new_str", "insert": "insert_text"}


def _only_views(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments["command"] == "view")


class PathError(RecollectError):
    """A request for a path failed; the message has the form that the model expects."""


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
) -> ToolAnswer:
    """View and edit files in your memory directory /memories, which persists between conversations. MEMORY.md holds
    what is known about the person, memory/YYYY-MM-DD.md the notes of a day; other files are yours to create."""
    tree = _MemoryTree(scope)
    try:
        match command:
            case "view":
                return _view(tree, tree.find(_to_path("path", path)), view_range)
            case "create":
                return tree.create(_to_path("path", path), _need("file_text", file_text))
            case "str_replace":
                return _str_replace(tree, tree.find(_to_path("path", path)), _need("old_str", old_str), new_str or "")
            case "insert":
                if insert_line is None or insert_text is None:
                    raise PathError("Error: insert needs insert_line and insert_text")
                return _insert(tree, tree.find(_to_path("path", path)), insert_line, insert_text)
            case "delete":
                return tree.delete(tree.find(_to_path("path", path)))
            case "rename":
                return tree.rename(tree.find(_to_path("old_path", old_path)), _to_path("new_path", new_path))
    except PathError as error:
        return ToolAnswer(str(error), "path", "error", exact=True)
    except InvalidInputError as error:  # with the parameter name that the model knows
        name = _TEXTS.get(command, "path") if error.field in ("content", "text") else error.field
        raise InvalidInputError(name, str(error).partition(": ")[2]) from None


TOOLS = (memory,)


# commands


def _view(tree: _MemoryTree, path: str, lines: list[int] | None) -> ToolAnswer:
    if tree.is_directory(path):
        head = f"Here're the files and directories up to 2 levels deep in {_rooted(path)},"
        listed, more = tree.listed(path)
        told = [
            f"{head} excluding hidden items and node_modules:",
            *(f"{_size(size)}\t{name}" for name, size in listed),
        ]
        if more > 0:
            told.append(f"({more:,} older notes in {_rooted('notes')} are not listed)")
        return ToolAnswer("\n".join(told), "found")
    found = tree.read(path)
    if found is None:
        raise PathError(f"The path {_rooted(path)} does not exist. Please provide a valid path.")
    text, trusted = found
    numbered = _number_lines(_split_lines(text.replace("\r\n", "\n")), lines)
    doubt = "" if trusted else "\n(this text came from a source that is not trusted)"
    return ToolAnswer(f"Here's the content of {_rooted(path)} with line numbers:\n{numbered}{doubt}", "found")


def _str_replace(tree: _MemoryTree, path: str, old: str, new: str) -> ToolAnswer:
    def change(text: str) -> tuple[str, str]:
        found, size = _find_places(text, old), len(old)
        if not found and (spans := _shown_places(text, old)):
            found, size = [begin for begin, _ in spans], spans[0][1] - spans[0][0]
        if not found:
            raise PathError(
                f"No replacement was performed, old_str `{_clip(old)}` did not appear verbatim in {_rooted(path)}."
            )
        if len(found) > 1:
            lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in found[:_MOST_PLACES])
            more = " and more" if len(found) > _MOST_PLACES else ""
            raise PathError(
                f"No replacement was performed. Multiple occurrences of old_str `{_clip(old)}` in lines:"
                f" {lines}{more}. Please ensure it is unique"
            )
        changed = text[: found[0]] + new + text[found[0] + size :]
        line = text.count("\n", 0, found[0]) + 1
        lines_now = _split_lines(changed)
        last = min(line + new.count("\n") + 2, len(lines_now))
        snippet = _number_lines(lines_now, [min(max(line - 2, 1), last), last])
        return changed, f"The memory file has been edited. Here is the change with line numbers:\n{snippet}"

    return tree.change(path, change, f"Error: The path {_rooted(path)} does not exist. Please provide a valid path.")


def _find_places(text: str, wanted: str) -> list[int]:
    """Return the positions of a text in another, including overlaps; a few are enough to know that it is not unique."""
    found: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(found) <= _MOST_PLACES:
        found.append(at)
        at = text.find(wanted, at + 1)
    return found


def _shown_places(text: str, wanted: str) -> list[tuple[int, int]]:
    """Return the positions of a text that was copied from an answer, where parts that look like a prompt are replaced.

    Answers keep line breaks, so only the columns in the first and the last line have to be mapped back.
    """
    shown = memory_text(text)
    lines, shown_lines = text.split("\n"), shown.split("\n")
    if shown == text or not wanted or len(lines) != len(shown_lines):
        return []
    begins = list(accumulate((len(line) + 1 for line in lines), initial=0))

    def place(at: int, *, end: bool) -> int:
        line, column = shown.count("\n", 0, at), at - (shown.rfind("\n", 0, at) + 1)
        return begins[line] + _column(lines[line], shown_lines[line], column, end=end)

    return [(place(at, end=False), place(at + len(wanted), end=True)) for at in _find_places(shown, wanted)]


def _column(line: str, shown: str, column: int, *, end: bool) -> int:
    """Return the position in a line for a column of the line as it is shown.

    Invisible characters right before or after are included.
    """
    places = []
    for _, first, last, shown_first, shown_last in SequenceMatcher(None, line, shown, autojunk=False).get_opcodes():
        if shown_first <= column <= shown_last:
            if last - first == shown_last - shown_first:
                places.append(first + column - shown_first)
            elif shown_first < column < shown_last:
                places.append(last if end else first)
            else:
                places += [first] * (column == shown_first) + [last] * (column == shown_last)
    return (max if end else min)(places, default=0)


def _insert(tree: _MemoryTree, path: str, line: int, text: str) -> ToolAnswer:
    def change(before: str) -> tuple[str, str]:
        lines = _split_lines(before)
        if not 0 <= line <= len(lines):
            raise PathError(
                f"Error: Invalid `insert_line` parameter: {line}."
                f" It should be within the range of lines of the file: [0, {len(lines)}]"
            )
        lines[line:line] = _split_lines(text)
        return "\n".join(lines) + "\n", f"The file {_rooted(path)} has been edited."

    return tree.change(path, change, f"Error: The path {_rooted(path)} does not exist")


def _split_lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _number_lines(lines: list[str], asked: list[int] | None) -> str:
    """Return lines with their numbers, as many as fit into an answer, and how to see the others."""
    first, last = asked if asked and len(asked) == 2 else (1, -1)
    first, last = max(first, 1), len(lines) if last == -1 else min(last, len(lines))
    if (asked and len(asked) != 2) or first > last:
        raise PathError(
            f"Error: Invalid `view_range` parameter: {_clip(str(asked))}. It should be [first line, last line],"
            f" from 1 to {len(lines)}, or -1 for the end of the file"
        )
    shown: list[str] = []
    room = _MOST_SHOWN
    for number in range(first, last + 1):
        line = f"{number:6d}\t{lines[number - 1]}"
        if len(line) > _MOST_SHOWN:
            line = line[: _MOST_SHOWN // 2] + f"… (the line has {len(lines[number - 1]):,} characters)"
        room -= len(line) + 1
        if room < 0:
            shown.append(f"(lines {number} to {last} are left out; view_range [{number}, {last}] shows them)")
            break
        shown.append(line)
    return "\n".join(shown)


# the tree of files


class _MemoryTree:
    """The files of one user. Paths are relative to /memories."""

    def __init__(self, scope: Scope) -> None:
        self._memory = scope.memory
        self._source = f"tool:{scope.tool}"

    def find(self, path: str) -> str:
        """Return the path itself, or the one that is shown like this, because answers replace some characters."""
        if "‹" not in path and "›" not in path:
            return path
        files = self._files(self._memory)
        names = [*files, *(parent for name in files for parent in _parents(name))]
        return path if path in names else next((name for name in names if memory_text(name) == path), path)

    def is_directory(self, path: str) -> bool:
        return not _NOTE.fullmatch(path) and _is_directory(path, self._files(self._memory))

    def listed(self, path: str) -> tuple[list[tuple[str, int]], int]:
        """Return paths and sizes, two levels deep, the directory itself first; and the number of notes left out."""
        memory = self._memory
        named = self._files(memory)
        files = {name: len(_file_text(note).encode()) for name, note in named.items()}
        more = 0
        if path == "":
            files[MEMORY] = len(memory.show().encode())
        if path in ("", "memory"):
            files |= self._days(memory)
        if path in ("", "notes"):
            loose, more = self._loose(memory, named)
            files |= loose
        below = f"{path}/" if path else ""
        inside = {name[len(below) :]: size for name, size in files.items() if name.startswith(below)}
        shown: dict[str, int] = {}
        for name, size in inside.items():
            parts = name.split("/")
            for depth in range(1, min(len(parts), _DEEPEST) + 1):
                if "node_modules" not in parts[:depth]:
                    entry = "/".join(parts[:depth]) + ("/" if depth < len(parts) else "")
                    shown[entry] = shown.get(entry, 0) + size
        whole = _rooted(path)
        return [(whole, sum(inside.values())), *((f"{whole}/{name}", shown[name]) for name in sorted(shown))], more

    def read(self, path: str) -> tuple[str, bool] | None:
        """Return the text of a file, and True if it is trusted as a whole; None if there is no such file."""
        memory = self._memory
        if path == MEMORY:
            return memory.show(), True
        if day := _DAILY.fullmatch(path):
            try:
                text = memory.daily(day[1])
            except InvalidInputError:
                return None
            return (text, True) if text else None
        note = self._find(memory, path)
        return None if note is None else (_file_text(note), note.trusted)

    def create(self, path: str, text: str) -> ToolAnswer:
        exists = f"Error: File {_rooted(path)} already exists"
        done = f"File created successfully at: {_rooted(path)}"
        if path in ("", MEMORY):
            raise PathError(exists)
        if day := _DAILY.fullmatch(path):
            outcome = self._memory.edit(text, day=parse_day("path", day[1]), expect="")
            if isinstance(outcome, Refused) and outcome.reason == "changed":
                raise PathError(exists)
            return _edit_answer(outcome, done)
        content, edges = _split_blanks("file_text", text)
        metadata = {"path": path} if edges == _EDGES else {"path": path, "edges": edges}
        self._check_free(self._memory, path, exists)  # before a write, which would create the memory
        with self._memory.batch() as memory:
            self._check_free(memory, path, exists)
            outcome = memory.note(content, tags=[_TAG], source=self._source, metadata=metadata)
        if isinstance(outcome, Duplicate):
            where = _rooted(self._path_of(self._memory, outcome.record))
            raise PathError(f"Error: File {_rooted(path)} was not created: {where} says the same")
        return _edit_answer(outcome, done, text)

    def change(self, path: str, change: Callable[[str], tuple[str, str]], missing: str) -> ToolAnswer:
        """Replace a text with the result of ``change``; retry if the file was changed in the meantime."""
        for _try in range(_TRIES):
            found = self.read(path)
            if found is None:
                raise PathError(missing)
            text, _ = found
            # changes use \n, as models write it; the file keeps its own line endings and byte order mark
            mark = "\ufeff" if text.startswith("\ufeff") else ""
            returns = 0 < text.count("\r\n") == text.count("\n")
            plain = text.removeprefix(mark)
            changed, told = change(plain.replace("\r\n", "\n") if returns else plain)
            if not changed.strip():
                raise PathError(f"Error: {_rooted(path)} would be empty; delete it instead, or leave a line in it")
            if returns:
                changed = changed.replace("\r\n", "\n").replace("\n", "\r\n")
            outcome = self._write(path, mark + changed, text)
            if not (isinstance(outcome, Refused) and outcome.reason == "changed"):
                break
        return _edit_answer(outcome, told, changed)

    def delete(self, path: str) -> ToolAnswer:
        if path == "":
            raise PathError("Error: Cannot delete the /memories directory itself")
        if path == MEMORY or path == "memory" or _DAILY.fullmatch(path):
            raise PathError(f"Error: {_rooted(path)} stays; delete the lines in it that should be forgotten")
        if path == "notes":
            raise PathError(f"Error: {_rooted(path)} stays; delete the notes in it that should be forgotten")
        missing = f"Error: The path {_rooted(path)} does not exist"
        if not self._below(self._memory, path):
            raise PathError(missing)
        with self._memory.acting(run=new_id("run")).batch() as memory:
            notes = self._below(memory, path)
            if not notes:
                raise PathError(missing)
            for note in notes.values():
                memory.forget(note.id, reason="the file was deleted by a tool")
        return ToolAnswer(f"Successfully deleted {_rooted(path)}", "forgotten")

    def rename(self, old: str, new: str) -> ToolAnswer:
        for path in (old, new):
            if path == "":
                raise PathError("Error: Cannot rename the /memories directory itself")
            if path in (MEMORY, "notes") or path.split("/")[0] == "memory" or (path == new and _NOTE.fullmatch(new)):
                raise PathError(
                    f"Error: {_rooted(path)} has its name from what it is and cannot be renamed or replaced"
                )
        self._check_rename(self._memory, old, new)  # before a write
        with self._memory.acting(run=new_id("run")).batch() as memory:
            for path, note in self._check_rename(memory, old, new).items():
                tags = note.tags if _TAG in note.tags else (*note.tags, _TAG)
                moved = memory.update(note.id, tags=tags, metadata={"path": path}, reason="refinement")
                if isinstance(moved, Refused):  # all or none
                    raise PathError(f"Error: {_rooted(old)} was not renamed. {moved.message}")
        return ToolAnswer(f"Successfully renamed {_rooted(old)} to {_rooted(new)}", "updated")

    # helpers

    def _check_rename(self, memory: Memory, old: str, new: str) -> dict[str, Record]:
        """Check a rename, and return the notes to move by their new paths."""
        notes = self._below(memory, old)
        if not notes:
            raise PathError(f"Error: The path {_rooted(old)} does not exist")
        if new.startswith(f"{old}/"):
            raise PathError(f"Error: {_rooted(old)} cannot be moved into itself")
        self._check_free(memory, new, f"Error: The destination {_rooted(new)} already exists")
        moved = {new + name[len(old) :]: note for name, note in notes.items()}
        if any(map(_flaw, moved)):
            raise PathError(f"Error: {_rooted(new)} is too long a path for what is in {_rooted(old)}")
        return moved

    def _check_free(self, memory: Memory, path: str, exists: str) -> None:
        """Raise an error if a file or directory cannot have this path."""
        top, _, rest = path.partition("/")
        if top == "memory" and rest:
            raise PathError(f"Error: {_rooted('memory')} contains only daily notes, as memory/YYYY-MM-DD.md")
        if top == MEMORY and rest:
            raise PathError(f"Error: {_rooted(MEMORY)} is a file and not a directory")
        like = _RESERVED.get(anyascii(unicodedata.normalize("NFKC", top)).casefold())
        if like is not None and like != top:
            raise PathError(f"Error: {_rooted(top)} is too similar to {_rooted(like)}; use that, or another name")
        if _is_by_id(path):
            raise PathError(
                f"Error: {_rooted(path)} cannot be created: such names are reserved for notes without a path"
            )
        if find_secrets(path):
            raise PathError("Error: the path seems to contain a secret; use another name")
        files = self._files(memory)
        if path in files or _is_directory(path, files):
            raise PathError(exists)
        for parent in _parents(path):
            if parent in files:
                raise PathError(f"Error: {_rooted(parent)} is a file and not a directory")

    def _write(self, path: str, text: str, expect: str) -> Outcome:
        if path == MEMORY:
            return self._memory.edit(text, expect=expect)
        if day := _DAILY.fullmatch(path):
            return self._memory.edit(text, day=day[1], expect=expect)
        content, edges = _split_blanks("content", text)
        with self._memory.batch() as memory:
            note = self._find(memory, path)
            if note is None or _file_text(note) != expect:
                return Refused(reason="changed", message=f"{_rooted(path)} was changed in the meantime; view it again")
            metadata = None if edges == _edges_of(note) else {"edges": edges}
            return memory.update(note.id, content, source=self._source, reason="refinement", metadata=metadata)

    def _find(self, memory: Memory, path: str) -> Record | None:
        if not (by_id := _NOTE.fullmatch(path)):
            return self._files(memory).get(path)
        try:
            note = memory.get(by_id[1])
        except NotFoundError:
            return None
        return note if note.status == "active" and self._path_of(memory, note) == path else None

    def _below(self, memory: Memory, path: str) -> dict[str, Record]:
        if _NOTE.fullmatch(path):
            note = self._find(memory, path)
            return {} if note is None else {path: note}
        files = self._files(memory)
        return {name: note for name, note in files.items() if name == path or name.startswith(f"{path}/")}

    def _files(self, memory: Memory) -> dict[str, Record]:
        """Return the notes with paths. If an undo made two notes collide, one has the path and the other its id."""
        named: dict[str, Record] = {}
        for note in memory.read(kind="note", tags=[_TAG]):
            path = _own_path(note)
            if path and (path not in named or named[path].seq < note.seq):
                named[path] = note
        directories = {parent for path in named for parent in _parents(path)}
        return {path: note for path, note in named.items() if path not in directories}

    def _path_of(self, memory: Memory, note: Record) -> str:
        """Return the path of a note; without a path of its own, one with its id."""
        path = _own_path(note)
        if path and (holder := self._files(memory).get(path)) and holder.id == note.id:
            return path
        return f"notes/{note.id}.md"

    def _loose(self, memory: Memory, files: dict[str, Record]) -> tuple[dict[str, int], int]:
        """Return the latest notes without a path, with their sizes, and the number of further ones."""
        named = {note.id for note in files.values()}
        latest = memory.read(kind="note", newest_first=True, limit=_MOST_LISTED + len(named))
        loose = [note for note in latest if note.id not in named][:_MOST_LISTED]
        more = memory.count().get("note", 0) - len(named) - len(loose)
        return {f"notes/{note.id}.md": len(_file_text(note).encode()) for note in loose}, more

    @staticmethod
    def _days(memory: Memory) -> dict[str, int]:
        """Return the daily notes with their sizes, including those whose entries are all forgotten."""
        entries = memory.read(kind="daily", status="all")
        days = {entry.day for entry in entries if isinstance(entry, DailyEntry)}
        sizes = {f"memory/{day}.md": len(memory.daily(day).encode()) for day in days}
        return {name: size for name, size in sizes.items() if size}


def _edit_answer(outcome: Outcome, done: str, text: str = "") -> ToolAnswer:
    notices = "".join(f"\n(Note: {notice})" for notice in outcome.notices)
    if isinstance(outcome, Refused):
        message = outcome.message
        if outcome.reason in ("secret", "code") and message.startswith("Not stored: ") and (line := _culprit(text)):
            message = f"Not stored, because of line {line}: {message.removeprefix('Not stored: ')}"
        return ToolAnswer(message + notices, outcome_of(outcome), "refused")
    if isinstance(outcome, Unchanged):
        done = outcome.message
    return ToolAnswer(done + notices, outcome_of(outcome))


def _culprit(text: str) -> int | None:
    """Return the number of the line to which the policy objects, if it can be determined."""
    if secrets := find_secrets(text):
        return text.count("\n", 0, secrets[0].start) + 1
    line = 1
    for block in parse_blocks(text):
        if refusal_of_code(block.text) or refusal_of_secret(block.text):
            return line
        line += block.lines
    return None


# notes as files


def _file_text(note: Record) -> str:
    before, after = _edges_of(note)
    return before + note.content + after


def _edges_of(note: Record) -> list[str]:
    """Return the whitespace around the text of a file, which a note does not keep; by default a final line break."""
    edges = note.metadata.get("edges")
    fits = isinstance(edges, list) and len(edges) == 2 and all(isinstance(edge, str) for edge in edges)
    return list(edges) if fits and edges else _EDGES


def _split_blanks(name: str, text: str) -> tuple[str, list[str]]:
    content = check.check_text(name, text)
    before, _, after = text.replace("\r\n", "\n").replace("\r", "\n").partition(content)
    return content, [before, after or "\n"]


def _own_path(note: Record) -> str | None:
    """Return the valid path that a note was given as a file, or None."""
    path = note.metadata.get("path")
    if not (isinstance(note, Note) and _TAG in note.tags and isinstance(path, str) and path) or _flaw(path):
        return None
    path = unicodedata.normalize("NFC", path)
    return None if path.split("/")[0] in (MEMORY, "memory") or path == "notes" or _is_by_id(path) else path


# paths


def _to_path(name: str, given: str | None) -> str:
    """Return a path relative to /memories. Anything that is not plainly one is refused; paths are never resolved."""
    if given is None:
        raise PathError(f"Error: {name} is missing")
    if given != ROOT and not given.startswith(f"{ROOT}/"):
        raise PathError(f"Error: Path must start with {ROOT}, got: {_clip(given)!r}")
    path = unicodedata.normalize("NFC", given[len(ROOT) :].removeprefix("/").removesuffix("/"))
    if flaw := _flaw(path):
        raise PathError(f"Error: Path {_clip(given)!r} would escape the {ROOT} directory or is not plain: {flaw}")
    return path


def _flaw(path: str) -> str:
    """Return why this is not a plain path below /memories; empty if it is one."""
    if len(path) > _LONGEST_PATH:
        return f"it is longer than {_LONGEST_PATH} characters"
    if not path.isprintable():
        return "it contains invisible characters"
    if _ESCAPED.search(path):
        return "it contains an escaped character; write it out"
    for seen in (path, unicodedata.normalize("NFKC", path)):  # look-alikes become what they look like
        if _SLASHES.search(seen) or (seen.count("/") != path.count("/")):
            return "parts are separated by / only"
        for part in seen.split("/") if path else ():
            if not part.strip(". ") or part != part.strip() or part.startswith(".") or part.endswith("."):
                return "a name is empty or hidden, or it begins or ends with a dot or a space"
    return ""


def _parents(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _is_by_id(path: str) -> bool:
    """Return True if this is the path of a note without a path of its own, or below it."""
    return any(_NOTE.fullmatch(part) for part in (path, *_parents(path)))


def _is_directory(path: str, files: Mapping[str, Record]) -> bool:
    return path in ("", "memory", "notes") or any(name.startswith(f"{path}/") for name in files)


def _need(name: str, text: str | None) -> str:
    if not text:
        raise PathError(f"Error: {name} is missing or empty")
    return text


def _rooted(path: str) -> str:
    return f"{ROOT}/{path}" if path else ROOT


def _clip(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"


def _size(size: int) -> str:
    if size < 1024:
        return f"{size}B"
    in_units = f"{size / 1024:.1f}K" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f}M"
    return in_units.replace(".0", "")
