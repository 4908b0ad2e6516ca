"""The threads in which tools run, one pool for the process. Begun when first needed, and anew after a fork."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from recollect.store.forks import renew_after_forks

_P = ParamSpec("_P")
_T = TypeVar("_T")
_MOST = 64


class Workers:
    """A pool of threads that a fork does not break."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        renew_after_forks(self, Workers._renew)

    def submit(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Do this in a thread."""
        with self._guard:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_MOST, thread_name_prefix="recollect-tool")
            return self._pool.submit(work, *args, **kwargs)

    def _renew(self) -> None:
        self._guard = threading.Lock()
        self._pool = None


WORKERS = Workers()
