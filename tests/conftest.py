"""What several test files share: one throw-away PostgreSQL for the whole run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from recollect.testing.postgres import PostgresServer

os.environ["MEMORY_TOOL_ASYNC"] = "false"
"""Tests wait for what they call, however busy the machine is. Those of the calls that are queued say otherwise."""


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server, one for each worker of the run. Do not stop it: other tests use it."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """An empty schema of this test's own."""
    return postgres.empty_url()
