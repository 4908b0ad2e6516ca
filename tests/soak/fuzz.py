"""Generated cases for tools, verbs, the parser, files, imports and HTTP: no raw exception, no hang, no crash.

A case is one call, document, file, archive or request, with its checks. After each case the memory still answers; after
each chunk it takes a new note and finds it, and `verify` finds nothing wrong.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import mmap
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from tests.soak.calls import tool_cases, verb_cases
from tests.soak.cases import PATIENCE, Case, Loud, Raw
from tests.soak.documents import file_cases, import_cases, parser_cases
from tests.soak.requests import api_document, http_cases, socket_cases

AREAS: dict[str, tuple[Callable[[Path, Random], Iterator[Case]], int]] = {
    "tools": (tool_cases, 6),
    "verbs": (verb_cases, 13),
    "parser": (parser_cases, 16),
    "files": (file_cases, 1),
    "imports": (import_cases, 1),
    "http": (http_cases, 2),
    "socket": (socket_cases, 1),
}
"""What there is, and how many of forty chunks it gets."""


def area_of(number: int) -> str:
    areas = [area for area, (_, share) in AREAS.items() for _ in range(share)]
    return areas[number * 7 % len(areas)]


class Board:
    """Memory that two processes share: one says what it is about to try, the other reads it if that one dies."""

    SIZE = 1 << 14

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, self.SIZE)

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")[: self.SIZE - 1] + b"\0"
        self._memory[: len(data)] = data

    def read(self) -> str:
        return self._memory[:].partition(b"\0")[0].decode("utf-8", "replace")


def run_chunk(area: str, seed: str, place: Path, board: Board) -> dict[str, int]:
    """Try the cases of one chunk, in a process of its own. Return the counts; die at a hang, with every stack told."""
    place.mkdir(parents=True, exist_ok=True)
    swallowed = Loud()
    logging.getLogger().addHandler(swallowed)
    logging.getLogger("recollect").addHandler(swallowed)
    stack = (place / "stack").open("w")
    faulthandler.register(signal.SIGALRM, file=stack, chain=True)  # whose default is to die
    cases = accepted = 0
    what = "nothing yet"
    try:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        for what, trial in AREAS[area][0](place, Random(f"{area} {seed}")):
            cases += 1
            board.write(f"case {cases}: {what}")
            accepted += trial()
            if swallowed.stacks:
                raise Raw(f"swallowed and logged: {swallowed.stacks.pop()}")
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    except Exception:
        wrong = f"case {cases}: {what}\n  {traceback.format_exc()[-1800:]}"
        (place / "wrong").write_text(wrong, errors="backslashreplace")
        raise
    signal.setitimer(signal.ITIMER_REAL, 0)
    return {"cases": cases, area: cases, f"{area}_accepted": accepted}


def one_chunk(area: str, seed: str, place: Path) -> tuple[dict[str, int], str | None]:
    """Run a chunk in a process of its own. Return the counts, and what is wrong, with how to see it again."""
    if area == "http":
        api_document()
    reading, writing = os.pipe()
    board = Board()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
            sys.stderr = sys.stdout
            os.write(writing, json.dumps(run_chunk(area, seed, place, board)).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    said = b""
    while data := os.read(reading, 1000):
        said += data
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    counts: dict[str, int] = json.loads(said or b"{}") | {"violations": int(status != 0)}
    wrong = None
    if status:
        parts = [f"{area}, exit code {os.waitstatus_to_exitcode(status)}"]
        if (place / "wrong").exists():
            parts.append((place / "wrong").read_text()[:4000])
        else:
            parts += [(place / "stack").read_text()[:4000], board.read()[:2000]]
        wrong = "\n  ".join(parts) + f"\n  python -m tests.soak fuzz --replay {area}/{seed}"
    shutil.rmtree(place, ignore_errors=True)
    return counts, wrong
