"""What the seeds promise and Recollect does not do yet, by the checks that fail, each with the reason.

A check is named as pytest names it, without the folder; a name without brackets stands for all of its cases. Each is
expected to fail: one that passes is an error, so that this list and `docs/seeds.md` say what is true today.
"""

from __future__ import annotations

NOT_DONE: dict[str, str] = {
    "test_d.py::test_scores_up_to_1_stay_as_they_are": (
        "on purpose: a raw score of 0.99 would rank above one of 1.01 (decision 59)"
    ),
}


def reason_for(check: str) -> str | None:
    """Return why a check fails; None if it is to pass."""
    return NOT_DONE.get(check) or NOT_DONE.get(check.partition("[")[0])
