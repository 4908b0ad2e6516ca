"""The log of tool calls and the ledger of their usage: names and numbers, never content.

Rows are written in batches a moment later, so that calls do not wait for them. A kill, or a SIGTERM that the host does
not handle, loses the log of the last moments, but never a memory. With a budget, the thread of the call writes its row
before the answer, so that all processes count the same; a call may start while any budget is left, and running calls
are finished. The calls of users without a memory are not logged.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from recollect.config import Config
from recollect.errors import NotFoundError
from recollect.memory.memory import Memory
from recollect.memory.user_memory import UserMemory
from recollect.records import Spending, ToolCall
from recollect.search.tokens import count
from recollect.store.forks import renew_after_forks
from recollect.times import Clock

LOGGER = logging.getLogger("recollect.tools")

_SECONDS = 0.25
_MOST_SECONDS = 2.0
_MOST_WAITING = 20_000
_MOST_COUNTED = 20_000


@dataclass(frozen=True, slots=True)
class _PendingCall:
    """A row to write. The tokens of ``said`` and ``told`` are counted when it is written."""

    call: ToolCall
    said: Any = ""
    told: str = ""
    again: bool = False
    """True for the end of a call that was logged before: it replaces that row and is already charged."""

    def counted(self) -> _PendingCall:
        call = self.call
        tokens_in, tokens_out = (
            call.tokens_in + _tokens(_arguments_text(self.said)),
            call.tokens_out + _tokens(self.told),
        )
        return replace(self, call=replace(call, tokens_in=tokens_in, tokens_out=tokens_out), said="", told="")


class CallLog:
    """The log of all users of one process."""

    def __init__(self, people: Callable[[str], UserMemory], config: Config, clock: Clock) -> None:
        self._people = people
        self._config = config
        self._clock = clock
        self._budgeted = config.daily_tokens > 0 or config.daily_cost > 0
        self._waiting: dict[str, list[_PendingCall]] = {}
        self._writing: set[str] = set()
        self._number = 0
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._written = threading.Condition(self._guard)
        self._wake = threading.Event()
        renew_after_forks(self, CallLog._renew)

    @classmethod
    def of(cls, memory: Memory) -> CallLog:
        """Return a log of one user, for those who have no `Recollect` at hand."""
        return cls(lambda _: memory._user_memory, memory.config, memory.clock)

    def add(
        self, user_id: str, call: ToolCall, said: Any, told: str, *, again: bool = False, may_wait: bool = False
    ) -> None:
        """Log a call. With ``may_wait`` and a budget, it is written before this returns."""
        with self._guard:
            self._waiting.setdefault(user_id, []).append(_PendingCall(call, said, told, again))
            self._number += 1
            if self._number > _MOST_WAITING:  # the store has been failing for a long time
                lost = self._waiting.pop(next(iter(self._waiting)))
                self._number -= len(lost)
                LOGGER.error("lost the log of %d tool calls: it could not be stored for a long time", len(lost))
        if self._budgeted and may_wait:
            self.flush(user_id)
        with self._guard:
            if self._thread is None and self._waiting:
                # not a daemon: the interpreter waits for it at exit, so that the last rows are written
                thread = threading.Thread(target=self._write_soon, name="recollect-log")
                thread.start()
                self._thread = thread

    def refusal(self, user_id: str) -> str | None:
        """Return why this user may make no more calls today, or None."""
        if not self._budgeted or not (user := self._people(user_id).user).exists():
            return None
        self.flush(user_id)
        today = self._clock().date()
        with user.read() as reader:
            spent = reader.spending(since=today, until=today)
        tokens = sum(row.tokens_in + row.tokens_out for row in spent)
        cost = sum(row.cost for row in spent)
        if 0 < self._config.daily_tokens <= tokens:
            return f"the budget of {self._config.daily_tokens:,} tokens for today is used up; continue without memory"
        if 0 < self._config.daily_cost <= cost:
            return f"the budget of {self._config.daily_cost:g} for today is used up; continue without memory"
        return None

    def flush(self, user_id: str | None = None) -> None:
        """Write waiting rows of one user or of all. If a batch of the user is open in this thread, write them later."""
        if user_id is None:
            with self._guard:
                names = {*self._waiting, *self._writing}
            for name in sorted(names):
                self.flush(name)
        elif rows := self._take(user_id):
            try:
                self._write(user_id, rows)
            except Exception as error:  # the outermost handler: reading the log must not fail because of waiting rows
                self._put_back(user_id, rows)
                LOGGER.warning("cannot write the log of %d tool calls yet: %s", len(rows), type(error).__name__)
            finally:
                with self._guard:
                    self._writing.remove(user_id)
                    self._written.notify_all()

    def forget(self, user_id: str) -> None:
        """Drop waiting rows of a user who is being erased."""
        if self._take(user_id):
            with self._guard:
                self._writing.remove(user_id)
                self._written.notify_all()

    def _take(self, user_id: str) -> list[_PendingCall]:
        """Take the waiting rows of a user, after any other thread has finished writing theirs."""
        with self._guard:
            if user_id not in self._waiting and user_id not in self._writing:
                return []
        if self._people(user_id).has_batch_here:
            return []  # a batch is open in this thread, and the writing thread may be waiting for it
        with self._guard:
            self._written.wait_for(lambda: user_id not in self._writing)
            rows = self._waiting.pop(user_id, [])
            self._number -= len(rows)
            if rows:
                self._writing.add(user_id)
            return rows

    def _put_back(self, user_id: str, rows: list[_PendingCall]) -> None:
        counted = [row.counted() for row in rows]  # numbers are small, texts may be large
        with self._guard:
            self._waiting[user_id] = counted + self._waiting.get(user_id, [])
            self._number += len(counted)

    def _write_soon(self) -> None:
        seconds = _SECONDS
        while True:
            self._wake.wait(seconds)
            self.flush()
            seconds = min(2 * seconds, _MOST_SECONDS)
            with self._guard:
                # a store that keeps failing must not keep the interpreter from exiting
                if not self._waiting or self._wake.is_set() or not threading.main_thread().is_alive():
                    self._thread = None
                    return

    def close(self) -> None:
        """Write waiting rows now."""
        with self._guard:
            thread = self._thread
            self._wake.set()
        if thread is not None:
            thread.join()
        self.flush()
        self._wake.clear()

    def _write(self, user_id: str, rows: list[_PendingCall]) -> None:
        person = self._people(user_id)
        counted = [row.counted() for row in rows]
        if not person.user.exists():
            return
        with suppress(NotFoundError), person.write_alongside() as tx:
            if tx.state().seq == 0 and not tx.spending():
                raise NotFoundError  # erased by another process while this one waited for the lock
            tx.log_calls(row.call for row in counted)
            tx.charge(self._spendings(row.call for row in counted if not row.again))

    def _spendings(self, calls: Iterable[ToolCall]) -> list[Spending]:
        """Return the usage of calls by day and tool. The model writes the arguments and reads the answers."""
        price_in, price_out = self._config.price_in / 1e6, self._config.price_out / 1e6
        found: dict[tuple[date, str], Spending] = {}
        for call in calls:
            key = (call.at.date(), call.tool)
            now = found.get(key) or Spending(day=call.at.date(), operation=f"tool:{call.tool}")
            found[key] = replace(
                now,
                calls=now.calls + 1,
                tokens_in=now.tokens_in + call.tokens_in,
                tokens_out=now.tokens_out + call.tokens_out,
                cost=now.cost + call.tokens_in * price_out + call.tokens_out * price_in,
            )
        return list(found.values())

    def _renew(self) -> None:
        """Reset in a forked child: the thread does not exist there, and the parent writes the waiting rows."""
        self._waiting = {}
        self._writing = set()
        self._number = 0
        self._thread = None
        self._guard = threading.Lock()
        self._written = threading.Condition(self._guard)
        self._wake = threading.Event()


def _tokens(text: str) -> int:
    """Return the number of tokens; for a very long text, estimated from its beginning."""
    if len(text) <= _MOST_COUNTED:
        return count(text)
    return count(text[:_MOST_COUNTED]) * len(text) // _MOST_COUNTED


def _arguments_text(arguments: Any) -> str:
    """Return the arguments roughly as the model wrote them, to count their tokens."""
    if isinstance(arguments, str):
        return arguments
    try:
        if isinstance(arguments, bytes | bytearray):
            return bytes(arguments).decode("utf-8", errors="replace")
        if isinstance(arguments, Mapping):
            arguments = dict(arguments)
        return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    except Exception:  # not plain data
        return ""
