"""Things that go wrong on demand: refusals, silence, and connections that drop."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType

from recollect.errors import InvalidInputError
from recollect.testing.telegram.changes import Changes
from recollect.testing.telegram.refusal import RefusalError


@dataclass(eq=False)
class Fault:
    """What happens to the next requests of a method. ``after`` is whether they first take effect."""

    method: str
    times: int | None
    after: bool

    def fits(self, method: str) -> bool:
        return self.method in ("*", method.lower()) and self.times != 0


@dataclass(eq=False)
class Failure(Fault):
    """An error is answered; with a body, it is sent as it stands, as from a proxy in the way."""

    refusal: RefusalError = field(default_factory=RefusalError)
    content: bytes | None = None


@dataclass(eq=False)
class Drop(Fault):
    """The connection ends without an answer."""


@dataclass(eq=False)
class Stall(Fault):
    """Requests wait here until they are let go. As a with block, it lets them go at its end."""

    changed: Changes = field(default_factory=Changes)
    released: bool = False
    held: int = 0
    """How many requests have come here."""

    def reached(self, timeout: float = 20.0, *, count: int = 1) -> None:
        """Waits until so many requests have come here; raises TimeoutError."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.held >= count, timeout):
                raise TimeoutError(f"{self.held} of {count} requests have come to {self.method}")

    def release(self) -> None:
        """Lets go those that wait; those that come later do not stop any more."""
        with self.changed:
            self.released = True
            self.times = 0
            self.changed.tell()

    def __enter__(self) -> Stall:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Faults:
    """The faults that are set, oldest first; each request takes the first that fits."""

    def __init__(self, changed: Changes) -> None:
        self._changed = changed
        self._set: list[Fault] = []

    def add(self, fault: Fault) -> None:
        if fault.times is not None and fault.times < 1:
            raise InvalidInputError("times", "give a number above 0, or None for as long as it is set")
        fault.method = fault.method.lower()
        with self._changed:
            self._set.append(fault)

    def take(self, method: str) -> Fault | None:
        with self._changed:
            for fault in self._set:
                if fault.fits(method):
                    if fault.times is not None:
                        fault.times -= 1
                    return fault
            return None

    def clear(self) -> None:
        with self._changed:
            for fault in self._set:
                if isinstance(fault, Stall):
                    fault.release()
            self._set.clear()
