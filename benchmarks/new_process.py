"""Measures what a new process needs: `speed` runs it as a program on a folder that holds a memory.

    python -m benchmarks.new_process FOLDER USER QUESTION first|index

``first`` times the first search, from opening the folder on; the libraries are loaded before, and timed apart.
``index`` tells how much memory the index takes: what the process has resident (``Rss`` in /proc/self/smaps_rollup,
mapped files included) after the index was opened, less what it had before, when all code was loaded.
Prints JSON. Imports nothing of ours above, or the time to import could not be told.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.memory.memory import Memory
    from recollect.search.index.index import Index


def resident() -> int | None:
    """Bytes of this process that are in memory, mapped files included; None where the system does not tell."""
    return _kilobytes("/proc/self/smaps_rollup", "Rss:")


def most_resident() -> int | None:
    """The most that was, since the process began."""
    return _kilobytes("/proc/self/status", "VmHWM:")


def _kilobytes(path: str, name: str) -> int | None:
    try:
        with open(path) as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith(name))
    except (OSError, StopIteration):
        return None


def index_of(memory: Memory) -> Index:
    """The index of a user. The public API has no way to it, and nobody else needs one."""
    person = memory._user_memory
    with person.user.read() as reader:
        return person.index.caught_up(reader, reader.state())


def first(folder: str, user: str, question: str) -> dict[str, float | int | None]:
    """The first search, and the next."""
    began = time.perf_counter()
    import recollect.search.events  # noqa: F401  (what a search needs, NumPy included: else the first would load it)
    from recollect import open as open_memories  # by name: the package loads its parts when they are asked for

    imported = time.perf_counter()
    with open_memories(folder, embedder="", weights="") as app:
        memory = app.user(user)
        memory.search(question, limit=10, include_conversation=True)
        found = time.perf_counter()
        memory.search(question, limit=10, include_conversation=True)
        again = time.perf_counter()
        return {
            "import_ms": 1e3 * (imported - began),
            "first_ms": 1e3 * (found - imported),
            "next_ms": 1e3 * (again - found),
            "resident": resident(),
            "most_resident": most_resident(),
        }


def index(folder: str, user: str, question: str) -> dict[str, float | int | None]:
    """What the index of the user takes."""
    import tempfile

    import recollect

    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as empty, recollect.open(empty, embedder="") as app:
        app.user("warm").note(question)
        app.user("warm").search(question)
    with recollect.open(folder, embedder="", weights="") as app:
        memory = app.user(user)
        memory.count()
        before = resident()
        postings = index_of(memory)._postings
        number = sum(map(len, postings.segments)) + len(postings._hashes)
        after = resident()
    return {"postings": number, "index_bytes": None if before is None or after is None else after - before}


if __name__ == "__main__":
    _folder, _user, _question, _what = sys.argv[1:]
    print(json.dumps((first if _what == "first" else index)(_folder, _user, _question)))
