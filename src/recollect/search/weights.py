"""The weights of the search signals. The numbers are measured: see docs/recall.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from recollect.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weight of each signal relative to the best match by words, which counts 1."""

    neighbours: float = 0.4
    """The messages right before and after it, as a share of their score."""
    session: float = 0.5
    """The best match in its conversation."""
    vector: float = 1.0
    """The similarity of its vector."""
    speaker: float = 0.6
    """It was said by the one speaker the question names."""
    person: float = 0.75
    """It is the person's own, not the assistant's, unless the question asks for what the assistant said."""
    date: float = 0.75
    """It was said at the time the question names."""
    event: float = 0.5
    """It is about that time."""
    when: float = 0.5
    """It gives a time, and the question asks when."""
    asks: float = -0.15
    """It only asks something."""
    latest: float = 0.25
    """It is recent, and the question asks for what is current."""
    importance: float = 0.2
    """It was marked as important, or as unimportant."""
    confidence: float = 0.2
    """It is uncertain."""

    def but(self, changes: Mapping[str, float]) -> Weights:
        """Return the same with some weights changed."""
        unknown = set(changes) - {f.name for f in fields(self)}
        if unknown:
            known = ", ".join(f.name for f in fields(self))
            raise ConfigError(f"weights: there is no weight {sorted(unknown)[0]!r}; use one of {known}")
        return replace(self, **changes)
