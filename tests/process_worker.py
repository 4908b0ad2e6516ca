"""Processes that a test tells what to do with a memory, one command at a time: the API kept open, or the command line.

They are forked by a fork server, which has loaded everything, in milliseconds.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import Stemmer  # noqa: F401  (this and what else is loaded with the first call otherwise)
from pydantic import TypeAdapter  # noqa: F401

import recollect
import recollect.identity.identities
import recollect.memory.search
import recollect.search.index.index
import recollect.store.service_tables_sqlite
from recollect.surfaces.cli import memory_commands, read_commands, remove_commands, write_commands  # noqa: F401  (makes them part of the program)
from recollect.surfaces.cli.program import program

_processes = multiprocessing.get_context("forkserver")
_PROGRAM = program()


class ProcessWorker:
    """A process with a memory open, as the test sees it."""

    def __init__(self, root: Path, user: str = "u1") -> None:
        _processes.set_forkserver_preload(["tests.process_worker"])  # for its next start: others want other things
        self._here, there = _processes.Pipe()
        self._process = _processes.Process(target=_obey, args=(there, str(root), user), daemon=True)
        self._process.start()
        there.close()

    def __call__(self, verb: str, *arguments: Any) -> Any:
        """Have it do something, and give what came of it."""
        self._here.send((verb, arguments))
        assert self._here.poll(120), f"{verb} does not end"
        done, result = self._here.recv()
        assert done, result
        return result

    def end(self) -> None:
        """Let it close the memory and exit."""
        self._here.send(None)
        self._process.join(60)
        assert self._process.exitcode == 0

    def kill(self) -> None:
        """End it without a chance to close anything."""
        self._process.kill()
        self._process.join(60)


def run_command(root: Path, *arguments: str, user: str = "u1") -> Any:
    """Run one command of the command line in a process of its own, and give its JSON."""
    worker = ProcessWorker(root, user)
    result = worker("command", *arguments)
    worker.end()
    return result


class _Verbs:
    """What a worker can be told."""

    def __init__(self, root: str, user: str) -> None:
        self._root, self._user = root, user
        self.app = recollect.open(root)
        self.memory = self.app.user(user)

    def remember(self, text: str) -> str:
        outcome = self.memory.note(text)
        assert outcome.done, outcome
        return outcome.record.id  # type: ignore[attr-defined, no-any-return]

    def update(self, record_id: str, text: str) -> None:
        assert self.memory.update(record_id, text).done

    def erase(self, *record_ids: str) -> dict[str, int]:
        return self.memory.erase(*record_ids).receipt.places

    def read(self) -> dict[str, str]:
        return {record.id: record.content for record in self.memory.read(kind="note", limit=None)}

    def search(self, text: str) -> list[str]:
        return [hit.record.content for hit in self.memory.search(text)]

    def verify(self) -> list[str]:
        return self.memory.verify()

    def close(self) -> None:
        self.app.close()

    def command(self, *arguments: str) -> Any:
        code, out = self._run(*arguments)
        assert not code, out
        return json.loads(out or "null")

    def try_command(self, *arguments: str) -> int:
        return self._run(*arguments)[0]

    def _run(self, *arguments: str) -> tuple[int, str]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            line = [*arguments, "--json", "--root", self._root, "--user", self._user]
            return int(_PROGRAM.main(line, standalone_mode=False)), out.getvalue()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(self.app, self.memory, *arguments)


def _obey(pipe: Connection, root: str, user: str) -> None:
    verbs = _Verbs(root, user)
    with contextlib.suppress(EOFError):  # the test is over
        _obey_all(pipe, verbs)
    verbs.app.close()


def _obey_all(pipe: Connection, verbs: _Verbs) -> None:
    while (told := pipe.recv()) is not None:
        verb, arguments = told
        try:
            pipe.send((True, getattr(verbs, verb)(*arguments)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))
