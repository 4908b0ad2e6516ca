"""What the tests of the tool suites share."""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect.app import Recollect
from recollect.testing import MemoryStore
from recollect.testing.memory_store import MemoryTransaction, MemoryUser
from recollect.tools.suite import Result, Suite

SEED_TOOLS: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "seed_tools.json").read_text("utf-8"))
"""The declarations of the seeds, as they have them."""


class Caller:
    """Calls tools by name, and reads JSON answers."""

    def __init__(self, suite: Suite) -> None:
        self.suite = suite

    def __call__(self, tool: str, /, **arguments: Any) -> Any:
        result = self.result(tool, **arguments)
        return result.content if isinstance(result.content, dict | list) else result.text

    def result(self, tool: str, /, **arguments: Any) -> Result:
        result = self.suite.call(tool, arguments)
        if isinstance(result.content, dict | list):
            assert json.loads(result.text) == result.content
        return result


def caller(recollect: Recollect, user: str | int = "u1", *suites: str, **where: Any) -> Caller:
    """Tools over the memory of a user."""
    return Caller(recollect.tools(user, *suites, **where))


class SlowStore(MemoryStore):
    """A store whose writers wait while it is `held`; the next that works for a tool can be told to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = threading.Event()
        """Somebody waits to write."""
        self.failing: Exception | None = None
        self._open = threading.Event()
        self._open.set()

    def user(self, user_id: str) -> MemoryUser:
        with self._guard:
            return self._users.setdefault(user_id, _SlowUser(user_id, self))

    @contextmanager
    def held(self) -> Iterator[None]:
        self.waiting.clear()
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    def pass_by(self) -> None:
        """Where writers wait."""
        if not self._open.is_set():
            self.waiting.set()
            assert self._open.wait(60)
        if self.failing is not None and threading.current_thread().name.startswith("recollect-tool"):
            failing, self.failing = self.failing, None
            raise failing

    @staticmethod
    def wait_done(app: Recollect, call: str) -> None:
        """Until the log tells how a call ended that had been given up."""
        for _ in range(10_000):
            rows = [row for name in app.users() for row in app.user(name).calls()]
            if [row.outcome for row in rows if row.id == call] not in ([], ["running"]):
                return
            time.sleep(0.005)
        raise AssertionError("the log never tells")


class _SlowUser(MemoryUser):
    def __init__(self, user_id: str, store: SlowStore) -> None:
        super().__init__(user_id)
        self._store = store

    @contextmanager
    def write(self) -> Iterator[MemoryTransaction]:
        self._store.pass_by()
        with super().write() as transaction:
            yield transaction


Forked = list[Any]


def forked(work: Callable[[], Forked]) -> Forked:
    """What a forked child makes of this, as JSON can tell it."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child == 0:
        told: Forked = ["failed"]
        try:
            told = work()
        finally:
            os.write(write, json.dumps(told).encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = json.loads(pipe.read())
    os.waitpid(child, 0)
    return told
