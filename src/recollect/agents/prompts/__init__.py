"""The prompts, as text files beside this module."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def prompt(name: str) -> str:
    return (Path(__file__).parent / f"{name}.md").read_text(encoding="utf-8").strip()
