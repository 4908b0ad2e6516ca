"""Connections to PostgreSQL: how they are made and lent, and how their errors are mapped.

A connection is made in the thread that needs it, so that a server that is down is reported at once and in its own
words. There are no background threads and nothing that a fork breaks.
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
    # a server that vanished silently is noticed within a minute
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
_SETTINGS = {
    "lock_timeout": f"{_BUSY_SECONDS}s",
    # likewise a vanished client by the server, which then releases its locks
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "idle_in_transaction_session_timeout": "10min",
}
"""Session settings, unless the URL says otherwise."""


def parse_url(url: str) -> dict[str, str]:
    """Return the parameters of a connection. Errors do not quote the URL: it contains a password."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise MissingExtraError("postgres", "PostgreSQL") from None
    problem = "the database URL is invalid; use postgresql://user:password@host:5432/database"
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError:
        raise ConfigError(problem) from None
    if not re.fullmatch(r"[\d,]*", given.get("port", "")) or "@" in given.get("host", ""):
        raise ConfigError(f"{problem}, and percent-encode special characters in the password (@ is %40)")
    # a writer that waited for the lock must see what was committed meanwhile: no earlier snapshot
    fixed = "-c TimeZone=UTC -c DateStyle=ISO -c default_transaction_isolation=read\\ committed"
    settings = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
    options = f"{settings} {given.get('options', '')} {fixed}"
    return {**_DEFAULTS, **given, "client_encoding": "utf8", "options": options}


_OWN_USERS = (
    "Recollect does not know this column of your table users: insert a user's row before their memory is used, with "
    "its id as the user id, or give the column a default"
)


@contextmanager
def mapped_errors() -> Iterator[None]:
    """Map PostgreSQL's errors to ours. Not chained: their details quote the data."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise _map_error(error) from None


def _map_error(error: Error) -> StoreError:
    import psycopg

    code = error.sqlstate or ""
    if code == "53100":
        return StoreFullError()
    if code in ("55P03", "40001", "40P01", "57014"):
        return StoreBusyError()
    if code == "25006":
        return StoreReadOnlyError()
    if code == "42501":
        return StoreReadOnlyError("the database user lacks permission; grant it rights on the tables and the schema")
    if code in ("XX001", "XX002"):
        return StoreCorruptError(f"PostgreSQL found damaged data ({code}); restore it from a backup")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnavailableError(f"{StoreUnavailableError.__doc__} ({str(error).partition(chr(10))[0]})")
    missing = re.match(r'relation "([a-z_]+)" does not exist', error.diag.message_primary or "")
    if code == "42P01" and missing:
        return StoreError(
            f"the table {missing[1]} is missing: it was dropped or renamed. Restore it from a backup; or `recollect"
            " export` each user, which does not need a mirror, and import into an empty database"
        )
    names = (error.diag.table_name, error.diag.column_name, error.diag.constraint_name)
    where = ".".join(name for name in names if name)
    refused = f"PostgreSQL refused a statement: {type(error).__name__} {code} {where}".rstrip()
    return StoreError(f"{refused}; {_OWN_USERS}" if code == "23502" and names[0] == "users" else refused)


class _FairSemaphore:
    """A fair semaphore, first come, first served: a plain one may let the same quick thread in again and again."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[threading.Lock] = deque()
        self._guard = threading.Lock()

    def enter(self, seconds: float) -> bool:
        """Wait for a place; return False if none was free in time."""
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
        with self._guard:
            is_free = self._free > 0
            self._free -= is_free
            return is_free

    def leave(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1

    def _withdraw(self, mine: threading.Lock) -> bool:
        """Stop waiting; return False if a place was handed over at the last moment."""
        with self._guard:
            if mine not in self._waiting:
                return False
            self._waiting.remove(mine)
            return True


class _WriteTurn(_FairSemaphore):
    """The turn to write for one user in this process: one thread at a time."""

    owner: int | None = None


class Pool:
    """The connections of each process: a forked child must neither use nor close its parent's."""

    def __init__(self, conninfo: dict[str, str], size: int) -> None:
        self._conninfo = conninfo
        self._size = size
        self._by_process: dict[int, Connections] = {}

    def here(self) -> Connections:
        """Return the connections of this process."""
        pid = os.getpid()
        return self._by_process.get(pid) or self._by_process.setdefault(pid, Connections(self._conninfo, self._size))

    def close(self) -> None:
        """Close the connections of this process; the next use makes new ones."""
        connections = self._by_process.pop(os.getpid(), None)
        if connections is not None:
            connections.close()


class Connections:
    """The connections of one process; ``size`` threads may use one at a time, and as many are kept for reuse.

    A thread that needs a second connection at the same time draws from half as many more, for a third from a quarter,
    and so on. So there are never many more than twice as many, and threads cannot wait for each other in a circle.
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
        """Let one thread at a time write for a user, so that waiting threads need no connection.

        Yields False if another thread has the turn and ``wait`` is False.
        """
        with self._guard:
            turn = self._turns.get(user_id)
            if turn is None:
                turn = self._turns[user_id] = _WriteTurn(1)
        if not wait and not turn.enter_if_free():
            yield False
            return
        if wait and turn.owner == threading.get_ident():
            raise StoreError("this thread already has a transaction of this user open; end it first")
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
        """Lend a connection for a with block, clean before and after."""
        depth: int = getattr(self._lent, "depth", 0)
        places = self._places[depth]
        if not places.enter(_BUSY_SECONDS):
            said = f"all {self._size} database connections of this process are in use (MEMORY_DATABASE_POOL)"
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
                db.close()  # interrupted anywhere, even between a request and its answer
                raise
            finally:
                self._give_back(db)
        finally:
            self._lent.depth = depth
            places.leave()

    def close(self) -> None:
        """Close idle connections now, and the others when they come back."""
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
                    reason = str(error).partition("\n")[0]
                    told = f"The database cannot be reached: {reason}. Check the address, then retry"
                    raise StoreUnavailableError(told) from None
            if time.monotonic() > until:
                raise StoreBusyError(
                    "PostgreSQL accepts no more connections; raise its max_connections, or lower MEMORY_DATABASE_POOL"
                )
            time.sleep(random.uniform(0.02, 0.1))  # until one of ours comes back, or somebody else's is closed

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
            self._drop_idle()  # they are older, and likely as dead
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
            db.close()  # after a failover this was the old primary: look for the new one
        if not db.closed:
            try:
                db.execute("ROLLBACK; SELECT pg_advisory_unlock_all()")
            except psycopg.Error:
                db.close()

    def _connect(self) -> Connection:
        import psycopg
        from psycopg.types.string import TextLoader

        db = psycopg.connect(**self._conninfo, autocommit=True)  # type: ignore[arg-type]
        # times and JSON stay text: `rows` reads them as it does for SQLite
        for kind in ("timestamptz", "json"):
            db.adapters.register_loader(kind, TextLoader)
        return db


def _is_quiet(db: Connection) -> bool:
    """Return True if an idle connection is intact: a server that closed it has sent something."""
    if db.closed:
        return False
    if not hasattr(select, "poll"):  # pragma: no cover
        return not select.select([db.fileno()], [], [], 0)[0]
    poll = select.poll()
    poll.register(db.fileno(), select.POLLIN)
    return not poll.poll(0)
