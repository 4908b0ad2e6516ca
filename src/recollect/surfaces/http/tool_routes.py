"""The routes that call tools and return the results of deferred calls."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from recollect.app import Recollect
from recollect.errors import InvalidInputError, NotFoundError
from recollect.memory.async_memory import in_thread
from recollect.records import JournalEntry
from recollect.surfaces.http import argument_schemas, idempotency
from recollect.surfaces.http.messages import Request, Response, respond
from recollect.surfaces.http.problems import Problem
from recollect.surfaces.http.routes import RouteGroup, route
from recollect.surfaces.http.schema import is_storable
from recollect.tools.deferred import DeferredCall
from recollect.tools.suite import Result, Suite

_LONGEST_CALL = 100
_MOST_SUITES = 256
_MOST_RESULTS = 1000
_LOOKED_AT = 1000
"""The number of log rows to search for a deferred call."""
_NOTHING: dict[str, Any] = {}
_ALL: list[str] = []
_Conversation = tuple[str, tuple[str, ...], str | None, str | None, str | None, bool]
"""User, suites, session, chat, agent, and whether the caller waits."""


_Suites = Annotated[list[argument_schemas.SUITE], Field(max_length=20)]
_Wait = Annotated[bool, Field(description="wait for the tool, however long it takes, instead of deferring the call")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """The state of a deferred call: "queued", or "done" with its text, if that is known, and its changes."""

    call: str
    status: str
    outcome: str
    text: str | None
    entries: tuple[JournalEntry, ...]


class ToolRoutes(RouteGroup):
    """The tools over the memories of an app."""

    def __init__(self, app: Recollect) -> None:
        self._app = app
        self._guard = threading.Lock()
        self._suites: OrderedDict[_Conversation, Suite] = OrderedDict()
        self._results: OrderedDict[tuple[str, str], Result | None] = OrderedDict()
        """The results of calls deferred in this process; None until a call is done."""

    @route(
        "POST",
        "/users/{user}/tools/{name}",
        "read",
        returns=Result,
        repeatable=True,
        statuses={202: "Deferred; get the result at Location"},
    )
    async def call_tool(
        self,
        request: Request,
        *,
        arguments: argument_schemas.OBJECT = _NOTHING,
        suites: _Suites = _ALL,
        session: argument_schemas.LINE | None = None,
        chat: argument_schemas.LINE | None = None,
        agent: argument_schemas.LINE | None = None,
        wait: _Wait = False,
    ) -> Response:
        """Call a tool. A slow call is deferred: the response then says so, and where to get the result."""
        key: _Conversation = (request.user, tuple(suites), session, chat, agent, wait)
        suite = await in_thread("", self._suite, key)
        tool = suite.find(request.name)
        if tool is None:
            raise NotFoundError("this tool does not exist; GET /v1/tools lists the tools")
        if tool.tier != "read_only" and not request.caller.may("write"):
            reason = "this tool writes, so it requires an API key or a token with the scope write"
            raise Problem(403, "NotAllowedError", reason)
        if "idempotency-key" in request.headers:
            return await in_thread(request.user, self._once, request, suite, arguments)
        result = await suite.acall(request.name, arguments)
        return await in_thread("", self._told, request, result)

    def _told(self, request: Request, result: Result) -> Response:
        answer = respond(result, 202 if result.status == "queued" else 200)
        if result.status == "queued":
            with self._guard:
                self._results[request.user, result.call] = None
                while len(self._results) > _MOST_RESULTS:
                    self._results.popitem(last=False)
            answer.headers["location"] = f"/v1/users/{request.local}/tasks/{result.call}"
        return answer

    def _once(self, request: Request, suite: Suite, arguments: dict[str, Any]) -> Response:
        """Run a call with an idempotency key immediately, under a call id in the journal."""
        known = idempotency.idempotent_request(request)
        assert known is not None
        late = DeferredCall(
            call=known.call,
            user=request.user,
            tool=request.name,
            arguments=arguments,
            session=suite.session,
            chat=suite.chat,
            agent=suite.agent,
        )
        return idempotency.run_once(
            self._app.keys, request, lambda: respond(suite.redo(late)), lambda: respond(suite.redo(late))
        )

    def _suite(self, key: _Conversation) -> Suite:
        """Return the tools of this conversation. They are kept, because a suite counts earlier calls."""
        user, suites, session, chat, agent, wait = key
        with self._guard:
            suite = self._suites.get(key)
        if suite is None:
            suite = self._app.tools(user, *suites, session=session, chat=chat, agent=agent, fixed_user=True, wait=wait)
        with self._guard:
            suite = self._suites.setdefault(key, suite)  # another request may have been faster
            self._suites.move_to_end(key)
            while len(self._suites) > _MOST_SUITES:
                self._suites.popitem(last=False)
        return suite

    @route("GET", "/users/{user}/tasks/{call}", "read", returns=TaskStatus, statuses={202: "Not done yet"})
    def task(self, request: Request) -> Response:
        """Return the state of a deferred call."""
        call = request.name
        if not is_storable(call):
            raise InvalidInputError("call", "must be the id of a call")
        if len(call) > _LONGEST_CALL:
            raise NotFoundError("this call does not exist")
        self._collect(request.user)
        entries = tuple(self._app.user(request.user).history(call=call))
        known = self._results.get((request.user, call))
        outcome = known.outcome if known is not None else "done" if entries else self._outcome(request.user, call)
        queued = outcome == "queued"
        found = TaskStatus(
            call=call,
            status="queued" if queued else "done",
            outcome=outcome,
            text=None if known is None else known.text,
            entries=entries,
        )
        return respond(found, 202 if queued else 200)

    def _outcome(self, user: str, call: str) -> str:
        """Return the outcome of a call that has changed nothing yet."""
        if (user, call) in self._results:
            return "queued"
        # called by another process, or before this one started
        rows = self._app.user(user).calls(limit=_LOOKED_AT)
        found = next((one.outcome for one in rows if one.id == call), None)
        if found is None:
            raise NotFoundError("this call does not exist")
        return found

    def _collect(self, user: str) -> None:
        """Collect the results of deferred calls of this process."""
        with self._guard:
            mine = [suite for key, suite in self._suites.items() if key[0] == user]
        found = [result for suite in mine for result in suite.finished()]
        with self._guard:
            for result in found:
                self._results[user, result.call] = result
