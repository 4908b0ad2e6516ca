"""A tool call in progress: what was asked, how long it has run, and how it ended."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from recollect.memory.thread_pool import CALLS, WORKERS, Stopwatch
from recollect.records import ToolCall
from recollect.tools.deferred import DeferredCall
from recollect.tools.results import Result
from recollect.tools.tool import Tool

_PATIENCE = 3
"""How many of its timeouts a call may take on a machine where everything takes long."""
_CROWDED = 10
"""How many times as long a reply waits for a call that runs while others queue for their turn, as long as calls end."""


@dataclass(slots=True)
class ActiveCall:
    """A call in progress."""

    tool: Tool
    call: str
    began: int
    said: Any
    user: str
    ignored: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict, repr=False)
    late: DeferredCall | None = None
    """Its stored form, if it is deferred."""
    kept: str | None = None
    submitted: float = field(default_factory=time.monotonic)
    watch: Stopwatch | None = None
    """Measures how long it has run."""
    writes: bool = False
    """True once its first transaction has begun."""
    guard: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Guards the decision between the two fields below."""
    result: Result | None = None
    given_up: tuple[ToolCall, str] | None = None
    """The log row and the answer when it took too long."""

    @property
    def reads(self) -> bool:
        """True if it changes nothing."""
        return self.tool.reads(self.values)

    @property
    def question(self) -> str:
        """A key that is the same for the same tool and arguments."""
        return json.dumps([self.user, self.tool.name, self.values], sort_keys=True, default=repr)

    def remaining(self, seconds: float) -> float:
        """Return how much longer a reply waits that waits this long for a call that runs.

        While a call waits for its turn, it is not slow: the machine is busy. It waits as long as other calls end. In a
        crowd a call that runs is slow because all of them are, and deferring it would only add work for the disk.
        """
        waited = time.monotonic() - self.submitted
        if self.watch is not None:
            left = self.watch.remaining(seconds)
            if left <= 0 and CALLS.crowded:
                left = min(CALLS.remaining(seconds), self.watch.remaining(_CROWDED * seconds))
        elif (left := seconds - waited) <= 0 and not WORKERS.has_full_lane(self.user):
            left = CALLS.remaining(seconds)
        return min(left, _PATIENCE * self.tool.timeout - waited)

    def may_be_done(self) -> bool:
        """Return True in the first transaction of a deferred call, which must check if another process was faster."""
        first, self.writes = not self.writes, True
        return first and self.late is not None
