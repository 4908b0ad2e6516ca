"""The thread pool for asynchronous callers: one per process, started when first needed and again after a fork.

No user can occupy all threads: the work of one user, which may have to wait for itself, leaves room for others.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
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

    def _renew(self) -> None:
        self._guard = threading.Lock()
        self._pool = None
        self._waiting = {}
        self._busy = Counter()


WORKERS = ThreadPool()
