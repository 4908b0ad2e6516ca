"""Numbers of things in words."""

from __future__ import annotations


def pluralize(number: int, one: str = "memory", many: str | None = None) -> str:
    """Return ``1 memory`` or ``3 memories``. Without ``many``, the plural ends in s, or in ies after a y."""
    plural = many or (f"{one[:-1]}ies" if one.endswith("y") else f"{one}s")
    return f"{number:,} {one if number == 1 else plural}"
