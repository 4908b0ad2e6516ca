"""A clock that moves only when told."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


class FrozenClock:
    """Call it for the time; `tick` moves it on."""

    def __init__(self, start: datetime | None = None) -> None:
        self.now = start or datetime(2026, 2, 12, 9, 30, tzinfo=timezone.utc)

    def __call__(self) -> datetime:
        return self.now

    def tick(self, *, days: float = 0, hours: float = 0, seconds: float = 0) -> datetime:
        """Move on, and tell the new time."""
        self.now += timedelta(days=days, hours=hours, seconds=seconds)
        return self.now
