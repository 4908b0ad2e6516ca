"""The prompts, as text files beside this module.

``NAME.CODE.md`` is the guidance for a tool suite in one language: how to use its tools well.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_GUIDANCE = {"facts": ("facts", "episodes")}
"""The guidance that comes with a suite."""


@cache
def prompt(name: str) -> str:
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()


def guidance(suites: Iterable[str], language: str) -> str:
    """Return the guidance for these suites, in this language if there is a translation, or else in English."""
    names = [name for suite in dict.fromkeys(suites) for name in _GUIDANCE.get(suite, ())]
    return "\n\n".join(
        prompt(f"{name}.{language}" if (_FOLDER / f"{name}.{language}.md").exists() else f"{name}.en") for name in names
    )
