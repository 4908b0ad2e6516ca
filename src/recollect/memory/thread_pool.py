"""The thread pool for asynchronous callers: one per process, started when first needed and again after a fork.

No user can occupy all threads: the work of one user, which may have to wait for itself, leaves room for others.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

from recollect.store.forks import renew_after_forks

_P = ParamSpec("_P")
_T = TypeVar("_T")
_MOST = 64
_MOST_EACH = 8


class ThreadPool:
    """A thread pool that survives forks."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        self._busy: Counter[str] = Counter()
        renew_after_forks(self, ThreadPool._renew)

    def submit(self, user: str, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Run work for a user in a thread. Until it has started, it can be cancelled."""
        future: Future[_T] = Future()
        job = (future, partial(work, *args, **kwargs))
        with self._guard:
            queue = self._waiting.setdefault(user, deque())
            queue.append(job)
            if self._busy[user] < _MOST_EACH:
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(_MOST, thread_name_prefix="recollect-tool")
                try:
                    self._pool.submit(self._do_next, user)
                except RuntimeError:
                    queue.remove(job)
                    raise
                self._busy[user] += 1
        return future

    def _do_next(self, user: str) -> None:
        """Run, in a thread, the job of this user that has waited longest, then let another user have a turn."""
        while True:
            with self._guard:
                queue = self._waiting.get(user)
                job = queue.popleft() if queue else None
            if job is not None and job[0].set_running_or_notify_cancel():
                try:
                    job[0].set_result(job[1]())
                except BaseException as error:  # re-raised where the result is awaited
                    job[0].set_exception(error)
            with self._guard:
                if not self._waiting.get(user):
                    self._busy[user] -= 1
                    if self._busy[user] <= 0:
                        del self._busy[user]
                        self._waiting.pop(user, None)
                    return
                try:
                    assert self._pool is not None
                    self._pool.submit(self._do_next, user)
                    return
                except RuntimeError:
                    pass  # the interpreter is exiting: this thread runs the remaining jobs

    def has_full_lane(self, user: str) -> bool:
        """Return True if the work of a user waits for other work of the same user."""
        with self._guard:
            return self._busy[user] >= _MOST_EACH if user in self._busy else False

    def _renew(self) -> None:
        self._guard = threading.Lock()
        self._pool = None
        self._waiting = {}
        self._busy = Counter()


class Stopwatch:
    """Measures how long a turn takes, without the time in which its thread, another one with a turn, or the main thread
    was ready to run and no processor was free: any of them may hold the interpreter's lock meanwhile.

    It is started in the thread and read by any. Only Linux tells these times; elsewhere all time counts.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._path = f"/proc/self/task/{threading.get_native_id()}/schedstat"
        self._begun, self._own, self._all = time.monotonic(), _starvation(self._path), turns.starvation()

    @property
    def starved(self) -> float:
        """The seconds in which its own thread waited for a processor."""
        return max(_starvation(self._path) - self._own, 0.0)

    def remaining(self, seconds: float) -> float:
        """Return what is left of so many seconds; it may be negative."""
        left = seconds - (time.monotonic() - self._begun)
        return left if left > 0 else left + max(self._turns.starvation() - self._all, 0.0)


def _starvation(path: str) -> float:
    """Return how long a thread has waited for a processor, in seconds; 0 on other systems, or if it has ended."""
    with suppress(OSError, ValueError, IndexError), open(path, encoding="ascii") as file:
        return int(file.read().split()[1]) / 1e9
    return 0.0


class Turns:
    """Lets a few threads work at a time, so that each of them is done soon. If a hundred calls begin together and share
    the processors, all of them end late.

    A turn is not a lock. After ``seconds`` the next one begins, whatever the first one waits for.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._renew()
        renew_after_forks(self, Turns._renew)

    @contextmanager
    def turn(self) -> Iterator[Stopwatch]:
        """Wait for a turn, and pass it on at the end. Yields how long it takes."""
        with self._changed:
            self._queued += 1
            try:
                while left := self._until_next():
                    self._changed.wait(left)
            finally:
                self._queued -= 1
            mine = Stopwatch(self)
            self._working.append(mine)
            self._last_change = time.monotonic()
        try:
            yield mine
        finally:
            with self._changed:
                self._past += mine.starved
                self._working.remove(mine)
                self._last_change = time.monotonic()
                self._changed.notify()

    def _until_next(self) -> float:
        """Return how long it takes at most until there is room for another; 0 if there is room."""
        left = [left for watch in self._working if (left := watch.remaining(self._seconds)) > 0]
        return min(left) if len(left) >= self._most else 0.0

    @property
    def crowded(self) -> bool:
        """True while others wait for a turn."""
        return self._queued > 0

    def starvation(self) -> float:
        """Return how long the main thread and those with turns have waited for a processor, all together."""
        return self._past + _starvation("/proc/self/schedstat") + sum(watch.starved for watch in list(self._working))

    def remaining(self, seconds: float) -> float:
        """Return what is left of so many seconds in which turns do not move on; it may be negative."""
        left = self._last_change + seconds - time.monotonic()
        return left if left > 0 else max([left, *(watch.remaining(seconds) for watch in list(self._working))])

    def _renew(self) -> None:
        self._changed = threading.Condition()
        self._working: list[Stopwatch] = []
        self._past = 0.0
        self._queued = 0
        self._last_change = 0.0
        """When a turn began or ended last, by the monotonic clock."""


WORKERS = ThreadPool()
CALLS = Turns(max(2, os.cpu_count() or 1), 0.05)
"""The turns of tool calls."""
