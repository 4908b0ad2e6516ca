"""What several test files share: one throw-away PostgreSQL for the whole run."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer.testing
from hypothesis import settings

from recollect.testing.postgres import PostgresServer
from tests.volume import IS_LONG

os.environ["MEMORY_TOOL_ASYNC"] = "false"
"""Tests wait for what they call, however busy the machine is. Those of the calls that are queued say otherwise."""

settings.register_profile("everyday", deadline=None, derandomize=True, max_examples=15)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))
if not IS_LONG:
    os.environ.setdefault("RECOLLECT_SEED", "1")
"""In the everyday run every test makes the same few choices each time; ``make test-all`` makes more, and new ones. How
long something takes says nothing on a busy machine, so nothing has a deadline."""

_MEMORY = Path("/dev/shm")
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 2 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
"""The folders of tests are in memory where there is room: each commit waits for the disk otherwise. Tests that
need a real disk take the fixture ``on_disk``."""

sys.dont_write_bytecode = False  # pytest compiles the tests again in each worker and each run otherwise
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # and so does every process that a test starts


_WITHOUT_DISK = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "jit": "off"}
"""The shared server may be killed, but the machine will not go down, and tables do not live long enough to be tended."""

_COMMANDS: dict[tuple[typer.Typer, int], Any] = {}


def _built(typer_instance: typer.Typer) -> Any:
    """Return the program's commands, which take longer to build than most of them to run."""
    known = (typer_instance, len(typer_instance.registered_commands) + len(typer_instance.registered_groups))
    if known not in _COMMANDS:
        _COMMANDS[known] = typer.main.get_command(typer_instance)
    return _COMMANDS[known]


typer.testing._get_command = _built  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of a test as slow, but for as many as its mark ``everyday`` says."""
    cases: dict[tuple[Path, Any, str], list[pytest.Function]] = {}
    for item in items:
        is_long = item.get_closest_marker("slow") is not None
        if isinstance(item, pytest.Function) and item.get_closest_marker("everyday") and not is_long:
            cases.setdefault((item.path, item.cls, item.originalname), []).append(item)
    for found in cases.values():
        marker = found[0].get_closest_marker("everyday")
        assert marker is not None
        # the first and others that stand anywhere in the list, always the same ones
        others = sorted(found[1:], key=lambda item: zlib.crc32(item.name.encode(errors="surrogatepass")))
        for item in [found[0], *others][marker.args[0] :]:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Keep what was loaded and collected out of every later search for garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder on the disk, where a commit takes as long as it does for users."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server, one for each worker of the run. Do not stop it: other tests use it."""
    in_memory = os.environ.get("PYTEST_DEBUG_TEMPROOT") == str(_MEMORY)
    folder = Path(tempfile.mkdtemp(prefix="recollect-pg-", dir=_MEMORY)) if in_memory else None
    with PostgresServer(folder, settings=_WITHOUT_DISK) as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """An empty schema of this test's own."""
    return postgres.empty_url()


@pytest.fixture(scope="session")
def emptied(postgres: PostgresServer) -> Iterator[Emptied]:
    """Schemas that tests are done with."""
    with psycopg.connect(postgres.url, autocommit=True) as db:
        yield Emptied(postgres, db)


@pytest.fixture
def postgres_tables(emptied: Emptied) -> Iterator[str]:
    """A schema for this test alone that may have its tables already, with nothing in them: ten times as quick to get."""
    url = emptied.take()
    yield url
    emptied.give_back(url)


class Emptied:
    """Makes schemas, and makes those empty that come back."""

    def __init__(self, server: PostgresServer, db: psycopg.Connection) -> None:
        self._server = server
        self._db = db
        self._free: list[str] = []
        # nobody checks the order in which tables are emptied, and who still holds something must not be waited for
        db.execute("SET session_replication_role = replica; SET lock_timeout = '2s'")

    def take(self) -> str:
        return self._free.pop() if self._free else self._server.empty_url()

    def give_back(self, url: str) -> None:
        schema = re.findall(r"search_path%3D(\w+)%2C", url)[0]
        rows = self._db.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
        tables = [name for (name,) in rows if not name.endswith(("migrations", "versions"))]
        try:
            self._db.execute("; ".join(f'DELETE FROM "{schema}"."{name}"' for name in tables).encode())
        except psycopg.errors.LockNotAvailable:
            return  # a test has left a transaction open
        self._free.append(url)
