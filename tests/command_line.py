"""The command line in the process of a test, with all of its commands, and a memory on disk to use it with."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import recollect
from recollect.surfaces import cli as commands
from recollect.surfaces.cli.program import app as program

__all__ = ["app", "cli", "program", "root"]

for module in pkgutil.iter_modules(commands.__path__):
    importlib.import_module(f"{commands.__name__}.{module.name}")  # modules add their commands when they are loaded


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def app(root: Path) -> Iterator[recollect.Recollect]:
    with recollect.open(root) as app:
        yield app


def cli(root: Path, *args: str, code: int = 0, typed: str | None = None) -> Result:
    """Run a command on the memories of this folder; it must end with this exit code."""
    result = CliRunner().invoke(program, [*args, "--root", str(root)], input=typed)
    assert result.exit_code == code, f"{args}: {result.exit_code}\n{result.stdout}\n{result.stderr}"
    return result
