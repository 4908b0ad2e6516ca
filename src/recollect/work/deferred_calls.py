"""The queue of tool calls that take longer than a reply may wait.

The process that received the call continues it, and removes it from the queue when done. If the process dies or the
call fails, it is still there and due a moment later: any worker of the queue, including this process, does it then.

Two may run the same call, which is harmless: see the invariant in `recollect.tools.deferred`. The grace period only
makes it rare. ``_guard`` protects this object's own fields. It is held while the queue is opened, and never while a job
is put, taken or dropped: that waits for a database, and an erasure holds a user's lock and calls `forget`.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from recollect.errors import StoreError
from recollect.store.forks import renew_after_forks
from recollect.tools.deferred import DeferredCall
from recollect.tools.suite import Result, Suite
from recollect.work.contract import GiveUpError, Job, Queue, RetryLaterError, Task
from recollect.work.worker import Worker

LOGGER = logging.getLogger("recollect.work")

TOOL = "tool"
_GRACE = timedelta(seconds=15)
"""The head start of the process that received a call. After it, two may run it, which is harmless."""
_AGAIN_SECONDS = 5.0
_MOST_TALKS, _MOST_RESULTS = 1000, 50


class DeferredCalls:
    """The `Backlog` of one process."""

    def __init__(self, open_queue: Callable[[], Queue], tools: Callable[[DeferredCall], Suite]) -> None:
        self._open_queue = open_queue
        self._tools = tools
        self._guard = threading.Lock()
        self._queue: Queue | None = None
        self._worker: Worker | None = None
        self._results: OrderedDict[tuple[str, str | None, str | None], list[Result]] = OrderedDict()
        renew_after_forks(self, DeferredCalls._renew)

    def keep(self, late: DeferredCall) -> str:
        """Queue a call; durable when this returns."""
        queue = self._opened()
        task = Task(name=TOOL, user_id=late.user, payload=late.to_dict(), run_at=queue.now() + _GRACE, key=late.call)
        return queue.put(task).id

    def done(self, kept: str, late: DeferredCall, result: Result) -> None:
        """Remove a call from the queue, but keep its result until it is asked for."""
        self._tell(late, result)
        self.drop(kept)

    def drop(self, kept: str) -> None:
        """Remove a call from the queue."""
        self._opened().drop(kept)

    def failed(self, kept: str) -> None:
        """Have a call retried, by this process if no other does."""
        self.resume()

    def finished(self, user_id: str, session: str | None, chat: str | None = None) -> list[Result]:
        """Return the results of this process since the last call."""
        with self._guard:
            if chat is not None:
                return self._results.pop((user_id, session, chat), [])
            found = [key for key in self._results if key[:2] == (user_id, session)]  # no chat: the results of all chats
            return [result for key in found for result in self._results.pop(key)]

    def forget(self, user_id: str) -> None:
        """Remove all results about a user of whom something was erased."""
        with self._guard:
            for key in [key for key in self._results if key[0] == user_id]:
                del self._results[key]

    def resume_if_any(self) -> None:
        """Work on what other processes left in the queue, if anything."""
        try:
            depth = self._opened().depth()
        except StoreError as error:  # later users of the queue get the error; there are none yet
            LOGGER.warning("the queue cannot be read: %s", type(error).__name__)
            return
        if depth["ready"] or depth["running"]:
            self.resume()

    def resume(self) -> None:
        """Work on the queue until `close`."""
        queue = self._opened()
        with self._guard:
            if self._worker is None:
                self._worker = Worker(queue, {TOOL: self.do}, concurrency=1).start()

    def do(self, job: Job) -> dict[str, Any]:
        """Handle a job: run the call unless it was done. Failures are retried."""
        late = DeferredCall.from_dict(job.payload)
        suite = self._tools(late)
        if suite.find(late.tool) is None:
            raise GiveUpError("the tool does not belong to Recollect; only the host application can call it")
        result = suite.redo(late)
        if result.status in ("error", "limited"):
            raise RetryLaterError(_AGAIN_SECONDS * 2 ** (job.attempts - 1), f"the call ended with {result.outcome}")
        self._tell(late, result)
        return {"status": result.status, "outcome": result.outcome}

    def close(self) -> None:
        """Stop working on the queue. Its jobs stay."""
        with self._guard:
            worker, self._worker = self._worker, None
            queue, self._queue = self._queue, None
        if worker is not None:
            worker.stop()
        if queue is not None:
            queue.close()

    def _tell(self, late: DeferredCall, result: Result) -> None:
        with self._guard:
            # keyed by the session, and so by its own user: the call may be about another participant
            whose = late.people[0] if late.people else late.user
            told = self._results.setdefault((whose, late.session, late.chat), [])
            told.append(result)
            del told[:-_MOST_RESULTS]
            while len(self._results) > _MOST_TALKS:
                self._results.popitem(last=False)

    def _opened(self) -> Queue:
        with self._guard:
            if self._queue is None:
                self._queue = self._open_queue()
            return self._queue

    def _renew(self) -> None:
        """Reset in a forked child: the worker and its results are the parent's."""
        self._guard = threading.Lock()
        self._queue = self._worker = None
        self._results = OrderedDict()
