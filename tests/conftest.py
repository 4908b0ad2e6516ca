"""What several test files share: one throw-away PostgreSQL for the whole run."""

from __future__ import annotations

import compileall
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import settings

import recollect
from recollect.testing.postgres import PostgresServer

os.environ["MEMORY_TOOL_ASYNC"] = "false"
"""Tests wait for what they call, however busy the machine is. Those of the calls that are queued say otherwise."""

_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "everyday")
settings.register_profile("everyday", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(_PROFILE)
if _PROFILE == "everyday":
    os.environ.setdefault("RECOLLECT_SEED", "1")
"""In the everyday run every test makes the same choices each time; ``make test-long`` makes new ones. How long something
takes says nothing on a busy machine, so nothing has a deadline."""

sys.dont_write_bytecode = False  # pytest compiles the tests anew in each worker and each run otherwise


def pytest_configure(config: pytest.Config) -> None:
    """Compile the package, once: or else every process that a test starts does it, if Python is told to keep nothing."""
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(recollect.__file__).parent, quiet=2)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server, one for each worker of the run. Do not stop it: other tests use it."""
    with PostgresServer(settings={"fsync": "off"}) as server:  # it may be killed, but the machine will not go down
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
