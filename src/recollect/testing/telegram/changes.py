"""One lock for everything, and a way to wait under it until something is so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any


class Changes:
    """A lock that may be taken again by who holds it. Who changes something calls `tell` before letting it go.

    Unlike `threading.Condition`, it is the teller who looks whether anybody's wait is over, so that of a hundred who
    wait only those wake up who have a reason to; and what was so for a moment is not missed.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: list[_Waiter] = []

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def tell(self) -> None:
        """Something has changed; to be called with the lock held."""
        for waiter in list(self._waiting):
            if waiter.looks():
                self._waiting.remove(waiter)

    def wait_for(self, condition: Callable[[], Any], timeout: float | None = None) -> Any:
        """What the condition gives when it holds, or its last no; to be called with the lock held."""
        waiter = _Waiter(condition, threading.Condition(self._lock))
        if not waiter.looks():
            self._waiting.append(waiter)
            if not waiter.condition.wait_for(lambda: waiter.over, timeout):
                self._waiting.remove(waiter)
        if waiter.error is not None:
            raise waiter.error
        return waiter.result


class _Waiter:
    """Somebody who waits, and for what."""

    def __init__(self, holds: Callable[[], Any], condition: threading.Condition) -> None:
        self.condition = condition
        self.over = False
        self.result: Any = None
        self.error: Exception | None = None
        self._holds = holds

    def looks(self) -> bool:
        """Whether the wait is over; a condition that fails fails for who waits, not for who looks."""
        try:
            self.result = self._holds()
        except Exception as error:
            self.error = error
        self.over = bool(self.result) or self.error is not None
        if self.over:
            self.condition.notify_all()
        return self.over
