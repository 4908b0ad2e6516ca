"""Waking up when there may be work: at once within a process; across processes, each queue has its own way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from weakref import WeakSet

from recollect.store.forks import renew_after_forks

_SOONEST, _LATEST = 0.005, 0.05


class Watcher:
    """Waits for a wake-up within this process. One thread waits, any may wake it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wake(self) -> None:
        """End the present wait, or the next one if nobody is waiting."""
        self._event.set()

    def wait(self, seconds: float) -> None:
        """Wait until woken, or for this many seconds. May return early."""
        self._event.wait(seconds)
        self._event.clear()

    def close(self) -> None:
        """Release resources."""


class PollingWatcher(Watcher):
    """Also polls, less and less often, for changes by another process."""

    def __init__(self, changed: Callable[[], bool]) -> None:
        super().__init__()
        self._changed = changed

    def wait(self, seconds: float) -> None:
        deadline, pause = monotonic() + seconds, _SOONEST
        while not self._changed():
            left = deadline - monotonic()
            if left <= 0 or self._event.wait(min(pause, left)):
                break
            pause = min(pause * 1.5, _LATEST)
        self._event.clear()


class Watchers:
    """All watchers of this process."""

    def __init__(self) -> None:
        self._all: WeakSet[Watcher] = WeakSet()
        self._guard = threading.Lock()
        renew_after_forks(self, Watchers._renew)

    def add(self, watcher: Watcher) -> Watcher:
        """Wake this watcher too from now on."""
        with self._guard:
            self._all.add(watcher)
        return watcher

    def wake(self) -> None:
        """Wake all watchers."""
        with self._guard:
            watchers = list(self._all)
        for watcher in watchers:
            watcher.wake()

    @contextmanager
    def watching(self) -> Iterator[Watcher]:
        """Provide a plain watcher for a with block."""
        watcher = self.add(Watcher())
        try:
            yield watcher
        finally:
            with self._guard:
                self._all.discard(watcher)

    def _renew(self) -> None:
        self._all, self._guard = WeakSet(), threading.Lock()
