"""Calls that take longer than a reply may wait: what is known of one, and who keeps it until it is done.

What changes a memory is kept in a durable queue before the model is told that it will be done, and then the thread that
has begun it and whoever finds it in the queue after a crash may both do it: the first to commit has done it, and the
other sees that in its own transaction. What only reads goes on, and the same question asked again gets its answer.

The invariant: once the model was told "queued", the call is done exactly once, whatever is killed.

- `Backlog.keep` returns before the model is told. In the other order a kill in between loses a call that was promised.
- From then on two may do it, and nobody tries to stop one of them: a lease would expire under a slow disk. Both write
  the call's id into the journal with their changes and look for it in the same transaction, under the user's lock
  (`Acting.may_be_done`, `recollect.memory.transaction`). Looking outside of the transaction would let both pass.
- Only the first write of a call looks: its later writes find the id that the first one left.
- `Backlog.done` comes after the commit. A kill in between makes a worker find the call done; in the other order
  it would be neither done nor kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from recollect.tools.results import Result

_T = TypeVar("_T")
_KEPT_SECONDS, _MOST_KEPT = 60.0, 16
"""For how long, and of how many questions, an answer is kept that came too late for a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredCall:
    """A call that is not done yet, as plain data: whoever has it can do it."""

    call: str
    user: str
    tool: str
    arguments: Mapping[str, Any] = field(repr=False)
    session: str | None = None
    chat: str | None = None
    agent: str | None = None
    people: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self) | {"arguments": dict(self.arguments), "people": list(self.people)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DeferredCall:
        """The inverse of `to_dict`."""
        return cls(**{**data, "people": tuple(data["people"])})


class Backlog(Protocol):
    """Keeps late calls so that a kill cannot lose them."""

    def keep(self, late: DeferredCall) -> str:
        """Durable when this returns the name it is kept by; `QueueFullError` if too much waits already."""
        ...

    def done(self, kept: str, late: DeferredCall, result: Result) -> None:
        """It has been done here: it need not be kept, and its result is there for the next interaction."""
        ...

    def drop(self, kept: str) -> None:
        """It was answered at the last moment: it need not be kept."""
        ...

    def failed(self, kept: str) -> None:
        """It could not be done here: it is to be tried again."""
        ...

    def finished(self, user_id: str, session: str | None, chat: str | None = None) -> list[Result]:
        """What has been done since this was asked last."""
        ...


class DeferredAnswers(Generic[_T]):
    """Answers that came too late for a reply, by their question. A change may make them wrong, and so may time."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: dict[str, tuple[Future[_T], float]] = {}

    def keep(self, question: str, answer: Future[_T]) -> None:
        """Whoever asks this again gets this answer, once."""
        with self._guard:
            self._kept[question] = answer, time.monotonic() + _KEPT_SECONDS
            while len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]

    def take(self, question: str) -> Future[_T] | None:
        """The answer to a question that was asked before."""
        with self._guard:
            answer, until = self._kept.pop(question, (None, 0.0))
        return answer if time.monotonic() < until else None

    def forget(self) -> None:
        """Something changes."""
        with self._guard:
            self._kept.clear()

    def __bool__(self) -> bool:
        return bool(self._kept)


@dataclass(frozen=True, slots=True)
class ReplyTimeouts:
    """How many seconds a reply waits for a call: for one that only reads, and for one that changes something."""

    reads: float
    writes: float
    backlog: Backlog
