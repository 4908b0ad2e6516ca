"""The log of tool calls and the ledger of what they used: rows with names and numbers, nothing of the content.

Rows are gathered and written a moment later, many at once, so that a call does not wait for them: a kill loses the log
of the last moments, never a memory. Where a budget is set they are written before the call is answered, so that all
processes count the same. The calls of a user who has no memory yet are not kept.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date

from recollect.config import Config
from recollect.core.person import Person
from recollect.errors import RecollectError
from recollect.records import Spending, ToolCall
from recollect.search.tokens import count
from recollect.store.forks import renew_after_forks
from recollect.times import Clock

LOGGER = logging.getLogger("recollect.tools")

_SECONDS = 0.25
_MOST_WAITING = 20_000
_Row = tuple[ToolCall, str, str]


class CallLog:
    """Keeps the calls of all users of one process."""

    def __init__(self, people: Callable[[str], Person], config: Config, clock: Clock) -> None:
        self._people = people
        self._config = config
        self._clock = clock
        self._budgeted = config.daily_tokens > 0 or config.daily_cost > 0
        self._waiting: dict[str, list[_Row]] = {}
        self._number = 0
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._wake = threading.Event()
        renew_after_forks(self, CallLog._renew)

    def add(self, user_id: str, call: ToolCall, said: str, answered: str) -> None:
        """Log a call; ``said`` and ``answered`` are counted and dropped."""
        with self._guard:
            self._waiting.setdefault(user_id, []).append((call, said, answered))
            self._number += 1
            if self._number > _MOST_WAITING:  # the store has been failing for long
                lost = self._waiting.pop(next(iter(self._waiting)))
                self._number -= len(lost)
                LOGGER.error("the log of %d tool calls was lost: it could not be stored for long", len(lost))
            begin = self._thread is None and not self._budgeted
            if begin:
                # not a daemon: the interpreter waits for it at exit, and so the last rows are written
                self._thread = threading.Thread(target=self._write_soon, name="recollect-log")
                self._thread.start()
        if self._budgeted:
            self.flush(user_id)

    def refusal(self, user_id: str) -> str | None:
        """Why this user may not call anything more today, or None."""
        if not self._budgeted or not (user := self._people(user_id).user).exists():
            return None
        today = self._clock().date()
        with user.read() as reader:
            spent = reader.spending(since=today, until=today)
        tokens = sum(row.tokens_in + row.tokens_out for row in spent)
        cost = sum(row.cost for row in spent)
        if 0 < self._config.daily_tokens <= tokens:
            return f"the budget of {self._config.daily_tokens:,} tokens for today is used up; go on without memory"
        if 0 < self._config.daily_cost <= cost:
            return f"the budget of {self._config.daily_cost:g} for today is used up; go on without memory"
        return None

    def flush(self, user_id: str | None = None) -> None:
        """Write what is waiting, of one user or of all."""
        with self._writing:
            with self._guard:
                names = list(self._waiting) if user_id is None else [user_id]
                rows = {name: self._waiting.pop(name, []) for name in names}
                self._number -= sum(map(len, rows.values()))
            for name, waiting in rows.items():
                if waiting:
                    self._write(name, waiting)

    def forget(self, user_id: str) -> None:
        """The user is being erased: what is waiting must not bring them back."""
        with self._writing, self._guard:
            self._number -= len(self._waiting.pop(user_id, []))

    def _write_soon(self) -> None:
        while True:
            self._wake.wait(_SECONDS)
            try:
                self.flush()
            except Exception as error:  # the outermost handler of this thread
                LOGGER.error("the log of tool calls was not stored: %s", type(error).__name__)
            with self._guard:
                # a store that fails for good must not keep the interpreter from ending
                if not self._waiting or self._wake.is_set() or not threading.main_thread().is_alive():
                    self._thread = None
                    return

    def close(self) -> None:
        """Write what is waiting now."""
        with self._guard:
            thread = self._thread
            self._wake.set()
        if thread is not None:
            thread.join()
        self.flush()
        self._wake.clear()

    def _write(self, user_id: str, rows: list[_Row]) -> None:
        person = self._people(user_id)
        try:
            if not person.user.exists():
                return
            counted = [replace(call, tokens_in=count(said), tokens_out=count(told)) for call, said, told in rows]
            with person.write_beside() as tx:
                tx.log_calls(counted)
                tx.charge(self._spendings(counted))
        except RecollectError as error:
            LOGGER.warning("the log of %d tool calls waits: %s", len(rows), type(error).__name__)
            with self._guard:
                self._waiting[user_id] = rows + self._waiting.get(user_id, [])
                self._number += len(rows)

    def _spendings(self, calls: Iterable[ToolCall]) -> list[Spending]:
        """What calls used, by day and tool. The model wrote what went in and reads what came out."""
        price_in, price_out = self._config.price_in / 1e6, self._config.price_out / 1e6
        found: dict[tuple[date, str], Spending] = {}
        for call in calls:
            if call.status == "timeout" and call.outcome != "running":
                continue  # counted when it was answered
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
        """In a forked child: the thread is not there, and what waits is the parent's to write."""
        self._waiting = {}
        self._number = 0
        self._thread = None
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._wake = threading.Event()
