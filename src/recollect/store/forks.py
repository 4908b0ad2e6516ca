"""Releasing files before the process forks.

SQLite remembers for each process which files it has locked. A forked child inherits that memory, but not the locks:
the parent would consider itself the last user of a database and delete the log that the child writes. So nothing is
open while the process forks; parent and child open it again when they need it. A transaction that is open in the
forking thread itself stays the parent's; the child must not use that memory.

The order in a fork, and why:

1. Before it, in the forking thread: each store is held (its write guard, then its read guard, as everywhere) and
   closed. All of them are held until the fork is over; otherwise a thread could open one again in between.
2. A thread that does not finish within ``_SECONDS``, or is this very thread, is skipped: waiting longer could mean
   forever, because its transaction may wait for something that the forking thread holds.
3. After it, in the parent and in the child: the guards are released by the thread that took them.
4. In the child only: every object with locks or threads of its own makes new ones. Another thread may have held the
   old ones, and nothing would ever release them. A registered object must not take a lock in its renewal.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary, WeakSet

_T = TypeVar("_T")
_SECONDS = 5.0
"""The longest that a fork waits for a transaction of another thread."""


class OpenFiles(Protocol):
    """An object with open files."""

    def hold(self, seconds: float) -> bool:
        """Keep all threads out until `let_go`; False if one does not finish in time, or it is this one."""
        ...

    def close(self) -> None:
        """Close the files; the next use opens them again."""
        ...

    def let_go(self) -> None:
        """Let threads in again."""
        ...


_watched: WeakSet[OpenFiles] = WeakSet()
_renewals: WeakKeyDictionary[Any, Callable[[Any], None]] = WeakKeyDictionary()
_held: list[OpenFiles] = []


def close_before_forks(files: OpenFiles) -> None:
    """Close these whenever the process forks, as long as they exist."""
    _watched.add(files)
    _register()


def renew_after_forks(threaded: _T, renew: Callable[[_T], None]) -> None:
    """Call ``renew`` on the object in every forked child, as long as it exists.

    The threads that held its locks or worked for it do not exist there.
    """
    _renewals[threaded] = renew
    _register()


@cache
def _register() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_close_watched, after_in_parent=_let_go, after_in_child=_begin_child)


def _close_watched() -> None:
    for files in list(_watched):
        if files.hold(_SECONDS):
            files.close()
            _held.append(files)


def _let_go() -> None:
    while _held:
        _held.pop().let_go()


def _begin_child() -> None:
    _let_go()
    for threaded, renew in list(_renewals.items()):
        renew(threaded)
