"""The receipt of an erasure: what was removed, and what is still to go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

PENDING = "pending"
FILES_LEFT = "files left: this process keeps none, another one does"
_ARE_LEFT = "left: another process keeps them in a folder unknown to this one. Delete the user's folder there."
STILL_PENDING = (
    "What was erased is out of the database, but still in its log or in an open file, because another process is using"
    " it. It goes once that process is done: with the next write, with `recollect upkeep`, or by itself while a server"
    " runs."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What an erasure removed: the counts by place, and the erased ids.

    ``places["pending"]``, if present, is the number of logs and files that still hold erased text; see `still_pending`.
    """

    at: datetime
    ids: tuple[str, ...]
    places: dict[str, int]
    notices: tuple[str, ...] = ()

    @property
    def removed(self) -> dict[str, int]:
        """The places without what is pending or left."""
        return {place: number for place, number in self.places.items() if place not in (PENDING, FILES_LEFT)}

    @property
    def left(self) -> str | None:
        """Sentences about what is not removed and what to do about it; None if everything is removed."""
        files = self.places.get(FILES_LEFT)
        told = f"{files:,} {'file is' if files == 1 else 'files are'} {_ARE_LEFT}" if files else None
        return " ".join(filter(None, (told, self.still_pending))) or None

    @property
    def still_pending(self) -> str | None:
        """Sentences about what is not removed yet and when it will be; None if everything is removed."""
        return STILL_PENDING if self.places.get(PENDING) else None
