"""The process that all others are forked from: it has loaded everything and opened nothing."""

from __future__ import annotations

import atexit
import faulthandler
import gc
import importlib
import os
import pkgutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a fork must not leave threads behind

import recollect
from recollect.testing import MemoryStore

USER = "u1"
LOADED_FIRST = (
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.h11_impl",
    "mcp.server.stdio",
    "starlette.applications",
)


def load() -> None:
    """Load the package and its tables, so that a forked process is ready at once. Open no file and start no thread."""
    for module in pkgutil.walk_packages(recollect.__path__, "recollect."):
        if ".testing" not in module.name and not module.name.endswith("__main__"):
            _try_import(module.name)
    for name in LOADED_FIRST:
        _try_import(name)
    app = recollect.open(MemoryStore())
    memory = app.user(USER)
    memory.remember("Keeps bees", key="animals")
    memory.note("The hive is white")
    memory.observe("Bees fly at noon", "finding")
    memory.episode("Bees", "We spoke of bees")
    memory.say("Hello", session="s")
    memory.search("bees")
    memory.context("bees")
    app.close()
    gc.freeze()


def _try_import(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception:  # an extra that is not installed is not needed here
        pass


class Child:
    """A forked process with pipes to its standard input and output."""

    def __init__(self, run: Callable[[], int], errors: Path) -> None:
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _become(run, to_child, from_child, errors)
        os.close(to_child)
        os.close(from_child)
        os.set_blocking(self._read, False)
        self.exit_code: int | None = None
        self.received = b""

    @property
    def read_end(self) -> int:
        return self._read

    def write(self, data: bytes) -> bool:
        """Return whether all of it could be handed over."""
        try:
            while data:
                data = data[os.write(self._write, data) :]
        except BrokenPipeError:
            return False
        return True

    def read_some(self) -> bool:
        """Take in what is there. Return False at the end of the output."""
        try:
            data = os.read(self._read, 1 << 20)
        except BlockingIOError:
            return True
        self.received += data
        return bool(data)

    def kill(self) -> None:
        if self.exit_code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()

    def terminate(self) -> None:
        if self.exit_code is None:
            os.kill(self.pid, signal.SIGTERM)

    def close_input(self) -> None:
        if self._write >= 0:
            os.close(self._write)
            self._write = -1

    def wait(self) -> int:
        if self.exit_code is None:
            _, status = os.waitpid(self.pid, 0)
            self.exit_code = os.waitstatus_to_exitcode(status)
        return self.exit_code

    def poll(self) -> int | None:
        if self.exit_code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.exit_code = os.waitstatus_to_exitcode(status)
        return self.exit_code

    def dispose(self) -> None:
        self.kill()
        self.close_input()
        if self._read >= 0:
            os.close(self._read)
            self._read = -1


def _become(run: Callable[[], int], to_child: int, from_child: int, errors: Path) -> NoReturn:
    """Be the child: pipes on 0 and 1, everything else of the parent closed, as in a process that was started afresh."""
    code = 70
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.dup2(to_child, 0)
        os.dup2(from_child, 1)
        log = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 2)
        os.closerange(3, 1024)
        sys.stdin = os.fdopen(0, "r", encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, buffering=1)
        faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True)
        code = run()
        threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter does at its end, in its order
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # the child must never return into the parent's code
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)
