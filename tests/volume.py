"""How much a test tries: a little in the everyday run, more in the long one."""

from __future__ import annotations

import os

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE", "everyday") != "everyday"


def volume(everyday: int, long: int) -> int:
    """Return how many examples, kills or schedules this run tries."""
    return long if IS_LONG else everyday
