"""Connections to PostgreSQL: how they are made, lent and given back, and what their errors mean.

Made in the thread that needs one, so that a server that is down is known at once and in its own words; no
threads in the background, nothing that a fork breaks. Knows nothing about tables.
"""

from __future__ import annotations

import os
import random
import re
import select
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from recollect.errors import (
    ConfigError,
    MissingExtraError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from psycopg import Connection, Error

POOL_SIZE = 10
_BUSY_SECONDS = 30
_DEEPEST = 8
_FULL_SECONDS = 10
_FULL = ("too many clients", "too many connections", "connection slots are reserved")
_DEFAULTS = {
    "connect_timeout": "10",
    "fallback_application_name": "recollect",
    # a server that vanished without a word is noticed in a minute
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
_SETTINGS = {
    "lock_timeout": f"{_BUSY_SECONDS}s",
    # and a client that vanished by the server, which then lets go of the locks that it held
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "idle_in_transaction_session_timeout": "10min",
}
"""Of a session, unless the URL says otherwise."""


def parse_url(url: str) -> dict[str, str]:
    """The parameters of a connection. Errors do not quote the URL: it holds a password."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise MissingExtraError("postgres", "PostgreSQL") from None
    problem = "the database URL cannot be read; use postgresql://user:password@host:5432/database"
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError:
        raise ConfigError(problem) from None
    if not re.fullmatch(r"[\d,]*", given.get("port", "")) or "@" in given.get("host", ""):
        raise ConfigError(f"{problem}, with special characters of the password percent-encoded (@ is %40)")
    # whoever waited for the lock must see what was committed meanwhile: no snapshot from before
    fixed = "-c TimeZone=UTC -c DateStyle=ISO -c default_transaction_isolation=read\\ committed"
    settings = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
    options = f"{settings} {given.get('options', '')} {fixed}"
    return {**_DEFAULTS, **given, "client_encoding": "utf8", "options": options}


@contextmanager
def mapped_errors() -> Iterator[None]:
    """PostgreSQL's errors as ours. Not chained: their details quote what was to be stored."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise _mapped(error) from None


def _mapped(error: Error) -> StoreError:
    import psycopg

    code = error.sqlstate or ""
    if code == "53100":
        return StoreFullError()
    if code in ("55P03", "40001", "40P01", "57014"):
        return StoreBusyError()
    if code == "25006":
        return StoreReadOnlyError()
    if code == "42501":
        return StoreReadOnlyError("the database user may not do this; grant it rights on the tables and the schema")
    if code in ("XX001", "XX002"):
        return StoreCorruptError(f"PostgreSQL found damaged data ({code}); restore it from a backup")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnavailableError(f"{StoreUnavailableError.__doc__} ({str(error).partition(chr(10))[0]})")
    names = (error.diag.table_name, error.diag.column_name, error.diag.constraint_name)
    where = ".".join(name for name in names if name)
    return StoreError(f"PostgreSQL refused a statement: {type(error).__name__} {code} {where}".rstrip())


class _FairSemaphore:
    """So many at a time, first come, first served: a semaphore lets in whoever is quick, again and again."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[threading.Lock] = deque()
        self._guard = threading.Lock()

    def enter(self, seconds: float) -> bool:
        """Wait for a place; False if none was free in time."""
        with self._guard:
            if self._free:
                self._free -= 1
                return True
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        try:
            return mine.acquire(timeout=seconds) or not self._withdraw(mine)
        except BaseException:
            if not self._withdraw(mine):
                self.leave()
            raise

    def enter_if_free(self) -> bool:
        """Take a place if there is one."""
        with self._guard:
            is_free = self._free > 0
            self._free -= is_free
            return is_free

    def leave(self) -> None:
        """Hand the place over to whoever waits longest."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1

    def _withdraw(self, mine: threading.Lock) -> bool:
        """Wait no longer; False if a place was handed over at the last moment."""
        with self._guard:
            if mine not in self._waiting:
                return False
            self._waiting.remove(mine)
            return True


class _WriteTurn(_FairSemaphore):
    """Writing for one user in this process: one thread at a time."""

    owner: int | None = None


class Pool:
    """The connections of each process: a forked child must neither use nor close its parent's."""

    def __init__(self, conninfo: dict[str, str], size: int) -> None:
        self._conninfo = conninfo
        self._size = size
        self._by_process: dict[int, Connections] = {}

    def here(self) -> Connections:
        """Those of this process."""
        pid = os.getpid()
        return self._by_process.get(pid) or self._by_process.setdefault(pid, Connections(self._conninfo, self._size))

    def close(self) -> None:
        """Close those of this process; the next use makes new ones."""
        connections = self._by_process.pop(os.getpid(), None)
        if connections is not None:
            connections.close()


class Connections:
    """The connections of one process; ``size`` threads have one at a time, and as many are kept for the next use.

    For a thread that needs a second one meanwhile there are half as many more, for a third a quarter, and so on: so
    there are hardly ever more, never much more than twice as many, and nobody waits for somebody who waits for them.
    """

    def __init__(self, conninfo: dict[str, str], size: int) -> None:
        self.migrated = False
        self._conninfo = conninfo
        self._size = size
        self._idle: list[Connection] = []
        self._places = [_FairSemaphore(max(size >> depth, 1)) for depth in range(_DEEPEST)]
        self._lent = threading.local()
        self._turns: WeakValueDictionary[str, _WriteTurn] = WeakValueDictionary()
        self._guard = threading.Lock()
        self._closed = False

    @contextmanager
    def turn(self, user_id: str, *, wait: bool = True) -> Iterator[bool]:
        """Let one thread at a time write for a user, so that those who wait need no connection for it.

        False if it is somebody else's turn and nobody is to ``wait``.
        """
        with self._guard:
            turn = self._turns.get(user_id)
            if turn is None:
                turn = self._turns[user_id] = _WriteTurn(1)
        if not wait and not turn.enter_if_free():
            yield False
            return
        if wait and turn.owner == threading.get_ident():
            raise StoreError("a transaction of this user is open in this thread already; end it first")
        if wait and not turn.enter(_BUSY_SECONDS):
            raise StoreBusyError()
        turn.owner = threading.get_ident()
        try:
            yield True
        finally:
            turn.owner = None
            turn.leave()

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """A connection for the time of a with block, clean before and after."""
        depth: int = getattr(self._lent, "depth", 0)
        places = self._places[depth]
        if not places.enter(_BUSY_SECONDS):
            said = f"the {self._size} connections of this process to the database are in use (MEMORY_DATABASE_POOL)"
            raise StoreBusyError(f"{said}; try again")
        self._lent.depth = depth + 1
        try:
            db = self._take()
            try:
                yield db
            except Exception as error:
                self._reset(db, error)
                raise
            except BaseException:
                db.close()  # interrupted anywhere, even between a question and its answer
                raise
            finally:
                self._give_back(db)
        finally:
            self._lent.depth = depth
            places.leave()

    def close(self) -> None:
        """Close what is idle now, and the rest as it comes back."""
        self._closed = True
        self._drop_idle()

    def _take(self) -> Connection:
        import psycopg

        until = time.monotonic() + _FULL_SECONDS
        while True:
            if (db := self._idle_one()) is not None:
                return db
            try:
                return self._connect()
            except psycopg.OperationalError as error:
                if not any(said in str(error) for said in _FULL):
                    raise
            if time.monotonic() > until:
                raise StoreBusyError(
                    "PostgreSQL takes no more connections; raise its max_connections, or lower MEMORY_DATABASE_POOL"
                )
            time.sleep(random.uniform(0.02, 0.1))  # until one of ours comes back, or another's is closed

    def _idle_one(self) -> Connection | None:
        while True:
            with self._guard:
                db = self._idle.pop() if self._idle else None
            if db is None or _is_quiet(db):
                return db
            db.close()

    def _give_back(self, db: Connection) -> None:
        from psycopg.pq import TransactionStatus

        if db.closed:
            self._drop_idle()  # they were made before, and are likely as dead
        elif db.info.transaction_status is not TransactionStatus.IDLE:
            db.close()
        else:
            with self._guard:
                if keep := not self._closed and len(self._idle) < self._size:
                    self._idle.append(db)
            if not keep:
                db.close()

    def _drop_idle(self) -> None:
        with self._guard:
            dropped, self._idle = self._idle, []
        for db in dropped:
            db.close()

    def _reset(self, db: Connection, error: Exception) -> None:
        import psycopg

        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            db.close()  # after a fail-over this was the old primary: look for the new one
        if not db.closed:
            try:
                db.execute("ROLLBACK; SELECT pg_advisory_unlock_all()")
            except psycopg.Error:
                db.close()

    def _connect(self) -> Connection:
        import psycopg
        from psycopg.types.string import TextLoader

        db = psycopg.connect(**self._conninfo, autocommit=True)  # type: ignore[arg-type]
        # moments and JSON stay text: `rows` reads them as it does for SQLite
        for kind in ("timestamptz", "json"):
            db.adapters.register_loader(kind, TextLoader)
        return db


def _is_quiet(db: Connection) -> bool:
    """Whether an idle connection still stands: a server that closed it, or wants to, has said something."""
    if db.closed:
        return False
    if not hasattr(select, "poll"):  # pragma: no cover
        return not select.select([db.fileno()], [], [], 0)[0]
    poll = select.poll()
    poll.register(db.fileno(), select.POLLIN)
    return not poll.poll(0)
