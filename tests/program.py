"""The real program in a process of its own, forked from one that has loaded everything.

Most of what a short command costs is loading Python modules, a server's start even two seconds of them. What a test sees
is the same: its own process with its own environment, streams, terminal, signals and exit status.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import importlib
import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

PROGRAM = (sys.executable, "-c", "from recollect.surfaces.cli import main; main()")
"""How it is started otherwise."""

_READ_AT_START = ("PYTHON", "LANG", "LC_", "TZ")
"""Variables that Python reads before anything else: with others than ours, a program is started and not forked."""
_ANYWAY = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS")
_NUMBER = struct.Struct("=i")
_CAN_FORK = sys.version_info[:2] == (3, 11) and sys.platform == "linux"
"""Where the private methods of ``subprocess`` are known; elsewhere each program is really started."""


class ProgramProcess(subprocess.Popen[Any]):
    """The program with these arguments. With ``owns_terminal``, its standard input becomes its controlling terminal."""

    def __init__(self, *arguments: str, owns_terminal: bool = False, **options: Any) -> None:
        self._owns_terminal = owns_terminal
        self._status = -1
        if owns_terminal and not _CAN_FORK:
            options["preexec_fn"] = lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        super().__init__([*PROGRAM, *arguments], start_new_session=owns_terminal, **options)

    def _execute_child(self, args: Sequence[str], *how: Any) -> None:
        """Fork it, in place of what ``subprocess`` does to start one."""
        cwd, env = how[4], how[5]
        reads, writes, errors = (how[number] for number in (9, 12, 14))
        environ = dict(os.environ if env is None else env)
        if not _CAN_FORK or _at_start(environ) != _at_start(os.environ):
            super()._execute_child(args, *how)  # type: ignore[misc]
            return
        self._status, theirs = os.pipe()
        streams = [own if given == -1 else given for own, given in enumerate((reads, writes, errors))]
        request = {
            "arguments": list(args[len(PROGRAM) :]),
            "environ": environ,
            "folder": os.fspath(cwd or Path.cwd()),
            "owns_terminal": self._owns_terminal,
        }
        _fork_server().send(request, [*streams, theirs])
        os.close(theirs)
        self.pid = self._receive()
        self._child_created = True
        self._close_pipe_fds(*how[9:15])  # type: ignore[attr-defined]

    def _internal_poll(self, *how: Any, **more: Any) -> int | None:
        if self._status == -1:
            return super()._internal_poll(*how, **more)  # type: ignore[misc, no-any-return]
        lock: threading.Lock = self._waitpid_lock  # type: ignore[attr-defined]
        if self.returncode is None and lock.acquire(blocking=False):
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                lock.release()
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """Return its id and status, or zeros while it runs: it is the child of another process."""
        if self._status == -1:
            return super()._try_wait(wait_flags)  # type: ignore[misc, no-any-return]
        os.set_blocking(self._status, wait_flags == 0)
        try:
            status = self._receive()
        except BlockingIOError:
            return 0, 0
        os.close(self._status)
        return self.pid, status

    def _receive(self) -> int:
        data = os.read(self._status, _NUMBER.size)
        number: int = _NUMBER.unpack(data)[0]
        return number


def run_separately(
    *arguments: str, input: Any = None, timeout: float | None = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Run the program to its end with pipes, as ``subprocess.run`` does."""
    pipes: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    if input is not None:
        pipes["stdin"] = subprocess.PIPE
    with ProgramProcess(*arguments, **pipes, **options) as program:
        try:
            out, err = program.communicate(input, timeout=timeout)
        except BaseException:
            program.kill()
            raise
    return subprocess.CompletedProcess(program.args, program.returncode, out, err)


def _at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(_READ_AT_START) and name not in _ANYWAY}


class _ForkServer:
    """The process that has loaded everything, as the tests see it."""

    def __init__(self) -> None:
        self._here, there = socket.socketpair()
        self._lock = threading.Lock()
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.program", str(there.fileno())],
                stdin=subprocess.DEVNULL,
                cwd=Path(__file__).parents[1],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
                pass_fds=[there.fileno()],
                start_new_session=True,
            )
        atexit.register(self._close)

    def send(self, request: dict[str, Any], descriptors: list[int]) -> None:
        """Ask for a process with these descriptors: its three streams, and where to tell its id and then its status."""
        data = json.dumps(request).encode()
        with self._lock:
            socket.send_fds(self._here, [_NUMBER.pack(len(data))], descriptors)
            self._here.sendall(data)

    def _close(self) -> None:
        self._here.close()
        self._process.wait(30)


@functools.cache
def _fork_server() -> _ForkServer:
    return _ForkServer()


# in the fork server


def _serve(requests: socket.socket) -> None:
    _load()
    while True:
        size, descriptors, _, _ = socket.recv_fds(requests, _NUMBER.size, 4)
        if not size:
            return
        data = b""
        while len(data) < _NUMBER.unpack(size)[0]:
            data += requests.recv(1 << 20)
        if os.fork() == 0:
            _watch(json.loads(data), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _load() -> None:
    """Load what programs need, without opening files or starting threads. Not ``readline``: it looks at the terminal."""
    from recollect.surfaces.cli import main, program
    from tests.soak import warm

    program.program = functools.cache(program.program)
    sys.argv = ["-c"]
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere), contextlib.suppress(SystemExit):
        main()
    importlib.import_module("pydantic_ai.models.openai")
    importlib.import_module("pydantic").TypeAdapter(str)  # used by typer, as soon as there are arguments
    warm.load()


def _watch(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Start the program, and tell its id and its status."""
    pid = os.fork()
    if pid == 0:
        _become(request, descriptors)
    os.write(descriptors[3], _NUMBER.pack(pid))
    for descriptor in descriptors[:3]:
        os.close(descriptor)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):  # the test does not want to know
        os.write(descriptors[3], _NUMBER.pack(status))
    os._exit(0)


def _become(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Be the program, as it is after its start."""
    code = 70
    try:
        if request["owns_terminal"]:
            _own_terminal(descriptors[0])
        encoding, errors = sys.stdin.encoding, sys.stdin.errors
        for number in range(3):
            os.dup2(descriptors[number], number)
        os.closerange(3, 1024)
        sys.stdin = _text(0, encoding, errors)
        sys.stdout = _text(1, encoding, errors)
        sys.stderr = _text(2, encoding, "backslashreplace")
        os.environ.clear()
        os.environ.update(request["environ"])
        os.chdir(request["folder"])
        warnings._processoptions(os.environ.get("PYTHONWARNINGS", "").split(","))  # type: ignore[attr-defined]
        sys.argv = ["-c", *request["arguments"]]
        code = _run()
        threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter does at its end, in its order
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    finally:
        os._exit(code)


def _own_terminal(descriptor: int) -> None:
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)


def _text(descriptor: int, encoding: str, errors: str | None) -> io.TextIOWrapper:
    """Return a standard stream as Python makes it."""
    is_terminal = os.isatty(descriptor)
    binary: IO[bytes] = open(descriptor, "wb" if descriptor else "rb", closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(binary, encoding, errors, line_buffering=is_terminal or descriptor == 2)


def _run() -> int:
    from recollect.surfaces.cli import main

    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _serve(socket.socket(fileno=int(sys.argv[1])))
