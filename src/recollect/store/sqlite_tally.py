"""Usage statistics over many users' SQLite files, without opening those that have not changed since.

A change is recognised by the size and time of a database and its log. Counts are stored as pairs of small integers
together with their sum: of five thousand users, only the active ones are read.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import StoreError
from recollect.store.forks import close_before_forks, renew_after_forks
from recollect.store.rows import load_queries
from recollect.store.sqlite_connections import connect_reading, mapped_errors
from recollect.usage_metrics import BOUNDS, FACT_TOOLS, CallGroup, Tally

_HERE = Path(__file__).parent
_MIGRATIONS = _HERE / "sqlite_migrations"
_DOUBTFUL = 2 * 10**9
"""Nanoseconds. A file written this recently may be written again without a new modification time."""
_MOST_KEYS = 1_000_000


class _CountKey(NamedTuple):
    """The key of a count: calls by group, and the rest by day."""

    what: str
    of: CallGroup | str


@dataclass(frozen=True, slots=True)
class _UserCounts:
    """The counts of one user: the files read, and pairs of a key and a number; None if unreadable."""

    files: tuple[int, ...]
    pairs: array[int] | None
    lasting: bool
    """True if every later change shows in the files."""


class SqliteTally:
    """The counts cached in one process. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._keys: dict[_CountKey, int] = {}
        self._groups: dict[str | None, _TenantTally] = {}
        close_before_forks(self)
        renew_after_forks(self, SqliteTally._renew)

    def tally(self, tenant: str | None, databases: Iterable[tuple[str, Path]], seconds: float | None = None) -> Tally:
        """Return the sum over these users, who are all of a tenant's, each with the database."""
        seen, waiting = set(), 0
        end = math.inf  # measured from the first user that must be read: each time, at least one is
        for user_id, path in databases:
            seen.add(user_id)
            files = _files(path)
            with self._guard:  # per user: what one thread has read is there for the others
                known = self._group(tenant).users.get(user_id)
                if known is not None and known.files == files and known.lasting:
                    continue
                if time.monotonic() >= end:
                    waiting += 1
                    continue
                end = min(end, math.inf if seconds is None else time.monotonic() + seconds)
                lasting = max(files[0], files[3]) < time.time_ns() - _DOUBTFUL
                self._group(tenant).put(user_id, _UserCounts(files, self._read(path), lasting))
        with self._guard:
            group = self._group(tenant)
            for user_id in group.users.keys() - seen:
                group.drop(user_id)
            told = replace(self._told(group), users=len(seen), waiting=waiting)
            if len(self._keys) > _MOST_KEYS:  # days pass, and their keys stay
                self._keys, self._groups = {}, {}
            return told

    def hold(self, seconds: float) -> bool:
        """Keep all threads out until `let_go`; False if one does not finish in time, or it is this one."""
        return self._guard.acquire(timeout=seconds)

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def let_go(self) -> None:
        """Let threads in again."""
        self._guard.release()

    def _renew(self) -> None:
        self._guard = threading.Lock()
        self._keys, self._groups = {}, {}

    def _group(self, tenant: str | None) -> _TenantTally:
        return self._groups.setdefault(tenant, _TenantTally())

    def _read(self, path: Path) -> array[int] | None:
        try:
            with mapped_errors(path.parent, path):
                db, _ = connect_reading(path, _MIGRATIONS)
                try:
                    pairs = array("q")
                    for key, number in _rows(db):
                        pairs.extend((self._keys.setdefault(key, len(self._keys)), number))
                    return pairs
                finally:
                    db.close()
        except StoreError:
            return None

    def _told(self, group: _TenantTally) -> Tally:
        parts: dict[str, dict[Any, int]] = {"calls": {}, "talks": {}, "facts": {}, "episodes": {}}
        for key, at in self._keys.items():
            if number := group.sums.get(at):
                parts[key.what][key.of] = number
        calls, talks, facts, episodes = parts.values()
        unread = sum(one.pairs is None for one in group.users.values())
        return Tally(calls=calls, talks=talks, facts=facts, episodes=episodes, unread=unread)


class _TenantTally:
    def __init__(self) -> None:
        self.users: dict[str, _UserCounts] = {}
        self.sums: dict[int, int] = {}

    def put(self, user_id: str, counted: _UserCounts) -> None:
        self.drop(user_id)
        self.users[user_id] = counted
        self._add(counted, 1)

    def drop(self, user_id: str) -> None:
        if (known := self.users.pop(user_id, None)) is not None:
            self._add(known, -1)

    def _add(self, counted: _UserCounts, sign: int) -> None:
        pairs = counted.pairs or ()
        for key, number in zip(pairs[::2], pairs[1::2], strict=True):
            self.sums[key] = self.sums.get(key, 0) + sign * number


def _rows(db: sqlite3.Connection) -> Iterator[tuple[_CountKey, int]]:
    db.execute("BEGIN")
    for day, number in db.execute(_SQL["tally_episodes"]):
        yield _CountKey("episodes", day), number
    for *group, number in db.execute(_CALLS):
        yield _CountKey("calls", CallGroup(*group)), number
    for day, talks, facts in db.execute(_TALKS):
        yield _CountKey("talks", day), talks
        yield _CountKey("facts", day), facts


def _files(path: Path) -> tuple[int, ...]:
    """Return values that change when a database or its log is written to."""
    found: list[int] = []
    for name in (path, f"{path}-wal"):
        try:
            stat = os.stat(name)
        except OSError:
            stat = None
        # a mere reader may leave an empty log
        found += (stat.st_mtime_ns, stat.st_ino, stat.st_size) if stat is not None and stat.st_size else (0, 0, 0)
    return tuple(found)


def _step(low: int = 0, high: int = len(BOUNDS)) -> str:
    """Return an SQL expression for the bucket of a latency, with as few comparisons as possible."""
    if low == high:
        return str(low)
    middle = (low + high) // 2
    return f"CASE WHEN latency_ms < {BOUNDS[middle]!r} THEN {_step(low, middle)} ELSE {_step(middle + 1, high)} END"


_SQL = load_queries(_HERE / "sqlite.sql")
LATENCY_STEP = _step()
"""An SQL expression for the bucket of ``latency_ms``."""
_CALLS = _SQL["tally_calls"].format(step=LATENCY_STEP)
_TALKS = _SQL["tally_talks"].format(tools=", ".join(f"'{tool}'" for tool in FACT_TOOLS))
