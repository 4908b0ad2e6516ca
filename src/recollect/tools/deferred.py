"""Deferred calls: tool calls that take longer than a reply may wait.

A call that writes is put into a durable queue before the model is told that it will be done. After that, both the
thread that started it and a worker that finds it in the queue after a crash may run it: the first to commit wins, and
the other sees that in its own transaction. A call that only reads continues, and the same call made again gets its
result.

The invariant: once the model was told "queued", the call is done exactly once, whatever is killed.

- `Backlog.keep` returns before the model is told. In the other order, a kill in between loses a promised call.
- From then on two may run it, and neither is stopped: a lease would expire on a slow disk. Both write the call's id
  into the journal with their changes and check for it in the same transaction, under the user's lock
  (`Acting.may_be_done`, `recollect.memory.transaction`). A check outside the transaction would let both pass.
- Only the first write of a call checks: its later writes would find the id that the first one left.
- `Backlog.done` comes after the commit. After a kill in between, a worker finds the call done; in the other order, it
  would be neither done nor queued.
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
"""How long, and how many, late results of reads are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredCall:
    """A deferred call as plain data, from which any process can run it."""

    call: str
    user: str
    tool: str
    arguments: Mapping[str, Any] = field(repr=False)
    session: str | None = None
    chat: str | None = None
    agent: str | None = None
    people: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-compatible data."""
        return asdict(self) | {"arguments": dict(self.arguments), "people": list(self.people)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DeferredCall:
        """Return a call from the data of `to_dict`."""
        return cls(**{**data, "people": tuple(data["people"])})


class Backlog(Protocol):
    """Stores deferred calls durably."""

    def keep(self, late: DeferredCall) -> str:
        """Store a call durably and return its name. Raise `QueueFullError` if too many are waiting."""
        ...

    def done(self, kept: str, late: DeferredCall, result: Result) -> None:
        """Remove a call that was done here, and keep its result for the next interaction."""
        ...

    def drop(self, kept: str) -> None:
        """Remove a call that was answered at the last moment."""
        ...

    def failed(self, kept: str) -> None:
        """Release a call that failed here, so that it is retried."""
        ...

    def finished(self, user_id: str, session: str | None, chat: str | None = None) -> list[Result]:
        """Return the results since the last call of this method."""
        ...


class DeferredAnswers(Generic[_T]):
    """Late results of reads, by question. They are dropped after a change and after some time."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: dict[str, tuple[Future[_T], float]] = {}

    def keep(self, question: str, answer: Future[_T]) -> None:
        """Keep an answer for the next time the question is asked."""
        with self._guard:
            self._kept[question] = answer, time.monotonic() + _KEPT_SECONDS
            while len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]

    def take(self, question: str) -> Future[_T] | None:
        """Return and remove the answer to a question, if there is one."""
        with self._guard:
            answer, until = self._kept.pop(question, (None, 0.0))
        return answer if time.monotonic() < until else None

    def forget(self) -> None:
        """Drop all answers, because the memory changes."""
        with self._guard:
            self._kept.clear()

    def __bool__(self) -> bool:
        return bool(self._kept)


@dataclass(frozen=True, slots=True)
class ReplyTimeouts:
    """How many seconds a reply waits for a call that reads, and for one that writes."""

    reads: float
    writes: float
    backlog: Backlog
