"""What strangers found when they tried the promises of README and docs: each from outside, one test per finding."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import recollect
from recollect.surfaces.cli import (  # noqa: F401  (they add their commands)
    chat,
    memory_commands,
    read_commands,
    remove_commands,
    write_commands,
)
from recollect.surfaces.cli.program import app as program


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def app(root: Path) -> Iterator[recollect.Recollect]:
    with recollect.open(root) as app:
        yield app


def cli(root: Path, *args: str, code: int = 0, typed: str | None = None) -> Result:
    result = CliRunner().invoke(program, [*args, "--root", str(root)], input=typed)
    assert result.exit_code == code, f"{args}: {result.exit_code}\n{result.stdout}\n{result.stderr}"
    return result


def flat(text: str) -> str:
    return " ".join(text.split())


# what was erased is not learned again

LONE_WORDS: list[tuple[str, str, dict[str, Any]]] = [
    ("notes", "memory_save", {"content": "berlin"}),
    ("observations", "remember_observation", {"content": "Berlin.", "category": "insight"}),
    (
        "entries",
        "write_memory",
        {"key": "city", "value": "Berlin", "category": "personal_context", "durability": "daily"},
    ),
    ("files", "memory", {"command": "create", "path": "/memories/city.txt", "file_text": "Berlin"}),
]


@pytest.mark.parametrize(("suite", "tool", "arguments"), LONE_WORDS)
def test_R7_an_erased_word_without_its_key_is_the_erased_thing(
    app: recollect.Recollect, suite: str, tool: str, arguments: dict[str, Any]
) -> None:
    memory = app.user("1")
    memory.remember("Berlin", key="city")
    memory.erase("city")
    app.tools("1", suite).call(tool, arguments)
    agent = memory.acting("agent")
    for outcome in (agent.remember("Berlin", source="batch_extraction"), agent.jot("Berlin", source="discussion:1")):
        assert isinstance(outcome, recollect.Refused)
        assert outcome.reason == "erased"
    assert memory.read() == []
    assert memory.say("Berlin", session="s").done  # what somebody says is not an entry
    assert agent.remember("Berlin", key="birthplace", source="discussion:1").done
    assert memory.remember("Berlin", category="key_fact").done  # the person may say it again
