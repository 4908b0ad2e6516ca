"""Keeps tool calls that take longer than a reply may wait, in the queue.

The process that was asked goes on with the call, and takes it out of the queue when it is done. If the process dies,
or the call fails, it is still there and due a moment later: whoever works on the queue does it then, this process too.

Two may be at the same call, and that is no harm: see the invariant in `recollect.tools.deferred`. The grace period only
makes it rare. ``_guard`` protects this object's own fields. It is held while the queue is opened, and never while a job
is put, taken or dropped: that waits for a database, and whoever erases holds a user's lock and calls `forget`.
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
"""How long the process that was asked is left alone with a call. Longer, and it is no harm if two do it."""
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
        """Durable when this returns."""
        queue = self._opened()
        task = Task(name=TOOL, user_id=late.user, payload=late.to_dict(), run_at=queue.now() + _GRACE, key=late.call)
        return queue.put(task).id

    def done(self, kept: str, late: DeferredCall, result: Result) -> None:
        """Keep it no longer, but its result until somebody asks."""
        self._tell(late, result)
        self.drop(kept)

    def drop(self, kept: str) -> None:
        """Keep it no longer."""
        self._opened().drop(kept)

    def failed(self, kept: str) -> None:
        """Have it tried again, by this process if no other does."""
        self.resume()

    def finished(self, user_id: str, session: str | None, chat: str | None = None) -> list[Result]:
        """What was done since this was asked last, in this process."""
        with self._guard:
            if chat is not None:
                return self._results.pop((user_id, session, chat), [])
            found = [key for key in self._results if key[:2] == (user_id, session)]  # no wall: those of all chats
            return [result for key in found for result in self._results.pop(key)]

    def forget(self, user_id: str) -> None:
        """Something of this user was erased: keep no result about them."""
        with self._guard:
            for key in [key for key in self._results if key[0] == user_id]:
                del self._results[key]

    def resume_if_any(self) -> None:
        """Work on what other processes left in the queue, if there is anything."""
        try:
            depth = self._opened().depth()
        except StoreError as error:  # whoever needs the queue gets the error; nobody does yet
            LOGGER.warning("the queue cannot be read: %s", type(error).__name__)
            return
        if depth["ready"] or depth["running"]:
            self.resume()

    def resume(self) -> None:
        """Work on what is in the queue, until `close`."""
        queue = self._opened()
        with self._guard:
            if self._worker is None:
                self._worker = Worker(queue, {TOOL: self.do}, concurrency=1).start()

    def do(self, job: Job) -> dict[str, Any]:
        """The handler: do a call, unless it was done. What fails is tried again."""
        late = DeferredCall.from_dict(job.payload)
        suite = self._tools(late)
        if suite.find(late.tool) is None:
            raise GiveUpError("the tool is not one of Recollect's own, and only the host can call it")
        result = suite.redo(late)
        if result.status in ("error", "limited"):
            raise RetryLaterError(_AGAIN_SECONDS * 2 ** (job.attempts - 1), f"the call ended with {result.outcome}")
        self._tell(late, result)
        return {"status": result.status, "outcome": result.outcome}

    def close(self) -> None:
        """Stop working on the queue. What is in it stays."""
        with self._guard:
            worker, self._worker = self._worker, None
            queue, self._queue = self._queue, None
        if worker is not None:
            worker.stop()
        if queue is not None:
            queue.close()

    def _tell(self, late: DeferredCall, result: Result) -> None:
        with self._guard:
            # by the conversation, and so by the user it is with: the call may be about another who takes part
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
        """In a forked child: the worker is the parent's, and so is what it was told."""
        self._guard = threading.Lock()
        self._queue = self._worker = None
        self._results = OrderedDict()
