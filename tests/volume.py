"""How much a test tries: a little in the everyday run, more in the long one."""

from __future__ import annotations

import os
from typing import Any

import pytest

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE", "everyday") != "everyday"


def volume(everyday: int, long: int) -> int:
    """Return how many examples, kills or schedules this run tries."""
    return long if IS_LONG else everyday


def seeds(everyday: int, long: int) -> list[Any]:
    """Return the seeds of a parametrized test: the first for every day, the others slow."""
    return [pytest.param(seed, marks=[] if seed < everyday else [pytest.mark.slow]) for seed in range(long)]
