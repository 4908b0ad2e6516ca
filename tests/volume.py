"""How much a test tries: a little in the everyday run, more in the long one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pytest

_Value = TypeVar("_Value")

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE", "everyday") != "everyday"


def volume(everyday: int, long: int) -> int:
    """Return how many examples, kills or schedules this run tries."""
    return long if IS_LONG else everyday


def seeds(everyday: int, long: int) -> list[Any]:
    """Return the seeds of a parametrized test: the first for every day, the others slow."""
    return first(everyday, range(long))


def first(everyday: int, values: Iterable[Any]) -> list[Any]:
    """Return the parameters of a test: the first ones for every day, the others slow."""
    return [
        pytest.param(value, marks=[] if number < everyday else [pytest.mark.slow])
        for number, value in enumerate(values)
    ]


def sample(every: int, values: Sequence[_Value]) -> Sequence[_Value]:
    """Return one of so many values every day, and all of them in the long run."""
    return values if IS_LONG else values[::every]
