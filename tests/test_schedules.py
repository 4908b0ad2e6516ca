"""Several processes and a person with an editor on one folder, from outside: the everyday slice of `python -m tests.soak`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

import recollect
from tests.soak.model import new_token
from tests.volume import volume

HERE = Path(__file__).parent.parent


def soak(*arguments: str, folder: Path) -> dict[str, int]:
    """Run one mode and return its counts. What it found is in the message if it found anything."""
    command = [sys.executable, "-m", "tests.soak", *arguments, "--json", "--dir", str(folder)]
    ran = subprocess.run(command, cwd=HERE, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
    counts: dict[str, int] = json.loads(ran.stdout.splitlines()[-1])
    return counts


@pytest.mark.parametrize("seed", ["a", pytest.param("b", marks=pytest.mark.slow)])
def test_F8_every_process_sees_exactly_what_was_acknowledged(tmp_path: Path, seed: str) -> None:
    count = volume(3, 100)
    options = ("--everyday", "--seed", seed, "--count", str(count), "--length", "12", "--jobs", "1")
    counts = soak("schedules", *options, folder=tmp_path)
    assert counts["schedules"] == count
    assert counts["looks"] > 5 * count and counts["kills"] > count / 10 and counts["saves"] > count / 10


@pytest.mark.slow
def test_F8_every_surface_sees_exactly_what_was_acknowledged(tmp_path: Path) -> None:
    count = volume(1, 6)
    counts = soak("schedules", "--seed", "surfaces", "--count", str(count), "--jobs", "1", folder=tmp_path)
    assert counts["schedules"] == count


def test_F8_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    count = volume(3, 60)
    counts = soak("kills", "--seed", "a", "--count", str(count), "--jobs", "1", folder=tmp_path)
    assert counts["kills"] >= count and counts["read_first"] * 2 >= counts["processes"]


def test_F4_what_a_person_saves_is_kept_while_agents_write(tmp_path: Path) -> None:
    count = volume(2, 80)
    counts = soak("editor", "--seed", "a", "--count", str(count), "--jobs", "1", folder=tmp_path)
    assert counts["saves"] >= count


@pytest.mark.everyday(3)
@pytest.mark.parametrize("between", [1, 10, 60, 200])
def test_F4_saving_a_buffer_deletes_nothing_that_was_stored_since_it_was_opened(tmp_path: Path, between: int) -> None:
    """The person opens the file, agents store so many facts, the person adds a line and saves."""
    random = Random(between)
    memory = recollect.open(tmp_path).user("u1")
    memory.remember("Keeps a diary")
    file = tmp_path / "u1" / "MEMORY.md"
    opened = file.read_text()
    stored = [new_token(random) for _ in range(between)]
    for token in stored:
        assert memory.remember(f"Is fond of {token}").done
    file.write_text(opened.replace("## Key Facts\n", "## Key Facts\n- Wants to paint a bridge\n"))
    known = " ".join(record.text for record in memory.read())
    assert "Wants to paint a bridge" in known
    assert [token for token in stored if token not in known] == []
