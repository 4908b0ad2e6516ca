"""What all generated cases have in common: the memory they are tried on, and what must hold."""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import recollect
from recollect.testing import MemoryStore
from tests.soak.warm import USER

CASES_IN_A_CHUNK = 500
PATIENCE = 120
"""Seconds after which a case counts as hung; the stack of every thread is printed then."""


class Raw(Exception):
    """Something that is not one of the library's documented answers."""


class Loud(logging.Handler):
    """Keeps what was logged with a stack: an exception that somebody swallowed."""

    def __init__(self) -> None:
        super().__init__()
        self.stacks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if (
            record.exc_info
            and record.exc_info[1] is not None
            and not isinstance(record.exc_info[1], recollect.RecollectError)
        ):
            self.stacks.append("".join(traceback.format_exception(record.exc_info[1]))[-1500:])


Case = tuple[str, Callable[[], bool]]
"""What is tried, in words for the report, and the trial itself, which returns whether the input was accepted."""


@contextlib.contextmanager
def memory_app(place: Path, random: Random) -> Iterator[recollect.Recollect]:
    """A memory with something in it; mostly without files, which is quicker. It must work at the end as well."""
    app = recollect.open(MemoryStore() if random.random() < 0.85 else place / "memory", tool_async=False)
    memory = app.user(USER)
    memory.remember("Likes green tea", key="drink")
    memory.note("The garden gate is blue")
    memory.say("Hello there", session="s1")
    memory.episode("A trip", "We went to Lviv by train")
    memory.observe("Trains are late", "finding")
    try:
        yield app
        check_memory(memory)
    finally:
        app.close()


def check_memory(memory: recollect.Memory) -> None:
    """Write, find and verify."""
    memory.resume()
    written = memory.note("A quokka sleeps in the lighthouse")
    if not any("quokka" in hit.record.content for hit in memory.search("quokka lighthouse")):
        raise Raw(f"not found after {written!r}")
    if problems := memory.verify():
        raise Raw(f"verify: {problems}")


def call_verb(memory: recollect.Memory, verb: str, positional: list[Any], named: dict[str, Any]) -> bool:
    try:
        repr(getattr(memory, verb)(*positional, **named))
    except recollect.RecollectError:
        return False
    return True
