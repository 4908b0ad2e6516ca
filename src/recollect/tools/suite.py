"""Tools offered to a model over one memory. All calls go through `Suite.call`: it parses the arguments, enforces the
limits, runs the tool in a thread, formats and logs the result, and never raises.

A call that takes longer than a reply may wait is stored durably, answered as queued, and continues. A call that cannot
be stored and exceeds its timeout is answered as such: if it had not started, it never will; if it had, it continues.
Its changes are in the journal under the id of the call.
"""

from __future__ import annotations

import itertools
import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextvars import copy_context
from dataclasses import replace
from typing import Any, Protocol

from recollect import checks as check
from recollect.config import TURNED_OFF
from recollect.errors import InvalidInputError, NotFoundError, RecollectError
from recollect.memory.async_memory import in_thread
from recollect.memory.chat_scope import group_chat
from recollect.memory.memory import Memory
from recollect.memory.refusals import mask_session
from recollect.memory.thread_pool import CALLS, WORKERS
from recollect.memory.write import DoneAlreadyError
from recollect.records import ToolCall, new_id
from recollect.times import Clock, utc_now
from recollect.tools.active_call import ActiveCall
from recollect.tools.deferred import DeferredAnswers, DeferredCall, ReplyTimeouts
from recollect.tools.formatting import MAX_OUTPUT as MAX_OUTPUT
from recollect.tools.formatting import neutralize, render_answer
from recollect.tools.functions import function_of
from recollect.tools.log import CallLog
from recollect.tools.parameters import ArgumentsError, Parameter, read_arguments
from recollect.tools.results import Result as Result
from recollect.tools.results import Status, answer_to_crash, answer_to_error, mark_failure, preview_text
from recollect.tools.tool import Scope, Tool, ToolAnswer

LOGGER = logging.getLogger("recollect.tools")

CALLS_PER_RESPONSE = 5
"""The default maximum number of memory tool calls in one response of a model."""

_PAUSED = {
    "paused": "Not done: memory is paused. Nothing is stored or changed until the person resumes it.",
    "incognito": "Not done: this conversation is incognito. Memory is neither read nor written.",
}


_NOT_THEIRS = (
    "Not done: in a group you store, change and forget only for the person who speaks ({}). What others shared here can"
    " be read. They can ask for it themselves."
)
_FEW, _SHORT = 20, 4_000
_DONE = ToolAnswer("already done", "done")


class Telemetry(Protocol):
    """Receives metrics of calls: numbers and names, never content."""

    def called(self, tool: Tool, call: ToolCall, began_ns: int) -> None:
        """Record a finished call."""
        ...

    def pattern(self, name: str) -> None:
        """Count a behaviour of the model."""
        ...


class _Allowance:
    """The number of calls a response has left."""

    def __init__(self, calls: int) -> None:
        self.calls = max(calls, 0)
        self._taken = itertools.count()

    def take(self) -> bool:
        return next(self._taken) < self.calls  # atomic across threads


class Suite:
    """Tools over the memory of one user, for one conversation. Returned by `Recollect.tools`. Thread-safe.

    ``others`` are the memories of the other participants: a tool that takes a ``user_id`` reaches them too, and no
    one else.
    """

    def __init__(
        self,
        memory: Memory,
        tools: Iterable[Tool],
        *,
        session: str | None = None,
        chat: str | None = None,
        agent: str | None = None,
        others: Sequence[Memory] = (),
        fixed_user: bool | None = None,
        log: CallLog | None = None,
        telemetry: Telemetry | None = None,
        timeouts: ReplyTimeouts | None = None,
        clock: Clock = utc_now,
    ) -> None:
        check.check_instance("memory", memory, Memory, "a Memory, as recollect.open(…).user(…) gives it")
        self.tools: dict[str, Tool] = {}
        for tool in tools:
            if self.tools.setdefault(tool.name, tool) is not tool:
                raise InvalidInputError("tools", f"two tools are called {tool.name}")
        if memory.is_semantic:
            self.tools = {name: tool.with_embedder() for name, tool in self.tools.items()}
        # check these now, so that the host gets the error; with others, the chat is a group
        chat = group_chat(chat) if chat and others else chat
        memory.acting(agent=agent, session=session)
        self.memory = memory.acting(chat=chat)
        self.session, self.chat, self.agent = session, chat, agent
        self._people = {one.user_id: one.acting(chat=chat) for one in (memory, *others)}
        numbers = {_number(name): one for name, one in self._people.items()}
        self._numbers = numbers if len(numbers) == len(self._people) else {}
        """The people by the part of their ids that a channel knows."""
        self._reads_others = False
        self.fixed_user = not self._have_numbers() if fixed_user is None else fixed_user
        self._spellings = {_spelling(name): tool for name, tool in self.tools.items()}
        self._reading = {tool.name: self._parameters(tool) for tool in self.tools.values()}
        self._log = log
        self._telemetry = telemetry
        self._timeouts = timeouts
        self._clock = clock
        self._questions = DeferredAnswers[Result]()
        self._allowance: _Allowance | None = None
        self._habits = _Habits(telemetry)

    def __repr__(self) -> str:
        return f"<Suite of {len(self.tools)} tools over {self.memory!r}>"

    def response(self, calls: int | None = None) -> Suite:
        """Return the same tools for one response of the model, with a limited number of calls."""
        most = CALLS_PER_RESPONSE if calls is None else check.check_instance("calls", calls, int, "a whole number")
        return self._with(_allowance=_Allowance(most))

    def for_speaker(self) -> Suite:
        """Return the same tools for a group in which the user speaks: the memories of others are only read."""
        return self._with(_reads_others=True)

    def known_as(self, identity: str) -> Suite:
        """Return the same tools, in which the user has another id too: that of the channel, such as telegram:12345."""
        identity = check.check_instance("identity", identity, str, "a user id such as telegram:12345")
        names = {identity: self.memory, _number(identity): self.memory}
        return self._with(_numbers=names | self._numbers)

    def _with(self, **changes: Any) -> Suite:
        changed = object.__new__(Suite)
        changed.__dict__.update(self.__dict__, **changes)
        return changed

    @property
    def is_response(self) -> bool:
        """True if this is for one response, with a limited number of calls."""
        return self._allowance is not None

    def schema(self, name: str) -> dict[str, Any]:
        """Return the JSON Schema of a tool's arguments."""
        if not isinstance(name, str) or name not in self.tools:
            raise NotFoundError(f"there is no tool {preview_text(name)}")
        return self.tools[name].schema(with_user=not self.fixed_user)

    def functions(self) -> dict[str, Callable[..., str]]:
        """Return the tools as plain functions with typed signatures."""
        return {name: function_of(self, tool) for name, tool in self.tools.items()}

    def find(self, name: object) -> Tool | None:
        """Return the tool for a name. Clients add prefixes, and models vary how words are joined."""
        if not isinstance(name, str):
            return None
        found = self.tools.get(name) or self._spellings.get(_spelling(name))
        return found or self._spellings.get(_spelling(re.split(r"__|[.:/]", name)[-1]))

    # calling

    def call(self, name: str, arguments: Any = None) -> Result:
        """Call a tool. ``arguments`` are a mapping or JSON. Errors are returned as results, never raised."""
        asked, begun = self._ask(name, arguments)
        if not isinstance(begun, Future):
            return begun
        soon, later = self._times(asked)
        while (left := asked.remaining(soon)) > 0:
            try:
                return begun.result(left)
            except FutureTimeoutError:
                continue
            except CancelledError:
                break
        if later and (answered := self._set_aside(asked, begun)) is not None:
            return answered
        try:
            return begun.result(later)
        except (FutureTimeoutError, CancelledError):
            return self._give_up(asked, begun)

    async def acall(self, name: str, arguments: Any = None) -> Result:
        """Call a tool without blocking the event loop."""
        import asyncio

        in_batch = any(memory._user_memory.has_batch_here for memory in self._people.values())
        if in_batch or _is_short(name, arguments):
            asked, begun = self._ask(name, arguments)
        else:  # parsing it would block the event loop for too long
            asked, begun = await in_thread("", self._ask, name, arguments)
        if not isinstance(begun, Future):
            return begun
        soon, later = self._times(asked)
        waiting = asyncio.wrap_future(begun)
        try:
            done: set[Any] = set()
            while not done and (left := asked.remaining(soon)) > 0:
                done, _ = await asyncio.wait([waiting], timeout=left)
            if not done and later:
                if (answered := await in_thread("", self._set_aside, asked, begun)) is not None:
                    return answered
                done, _ = await asyncio.wait([waiting], timeout=later)
            return begun.result() if done else self._give_up(asked, begun)
        except asyncio.CancelledError:
            self._give_up(asked, begun)
            raise
        finally:
            waiting.cancel()  # the loop may be closed when a deferred call ends

    def finished(self) -> list[Result]:
        """Return results of deferred calls of this conversation since the last call of this method."""
        if self._timeouts is None:
            return []
        return self._timeouts.backlog.finished(self.memory.user_id, self.session, self.chat)

    def redo(self, late: DeferredCall) -> Result:
        """Run a deferred call of a process that may have died. What is already done is not repeated."""
        tool = self.find(check.check_instance("late", late, DeferredCall, "a call as the queue keeps it").tool)
        if tool is None:
            raise NotFoundError(f"there is no tool {preview_text(late.tool)}")
        asked = ActiveCall(tool, late.call, time.perf_counter_ns(), late.arguments, late.user, late=late)
        try:
            asked.values, asked.ignored = read_arguments(self._reading[tool.name], late.arguments)
            result = self._result(asked, *self._done(asked, self._people[late.user], asked.values))
        except RecollectError as error:
            result = self._result(asked, *answer_to_error(asked.tool, error))
        if self._log is not None:
            row = replace(self._row(asked, result), status="queued")
            self._log.add(asked.user, row, late.arguments, result.text, again=True, may_wait=True)
        return result

    def _ask(self, name: str, given: Any) -> tuple[ActiveCall, Future[Result] | Result]:
        """Start a call. Return its future, or an immediate result."""
        asked, begun = self._begin(name, given)
        asked.submitted = time.monotonic()
        return asked, begun if isinstance(begun, Future) else self._end(asked, *begun)

    def _begin(self, name: str, given: Any) -> tuple[ActiveCall, Future[Result] | tuple[ToolAnswer, Status]]:
        """Parse and check a call and hand it to a thread. Return an answer if it does not get that far."""
        began = time.perf_counter_ns()
        tool = self.find(name)
        asked = ActiveCall(tool or _unknown(), new_id("call"), began, given, self.memory.user_id)
        if tool is None:
            names = ", ".join(self.tools)
            return asked, (
                ToolAnswer(f"there is no tool {preview_text(name)}; the tools are {names}", "unknown tool"),
                "invalid",
            )
        if self._allowance is not None and not self._allowance.take():
            most = self._allowance.calls
            said = f"not done: a response may make {most} memory calls, and {most} were made; answer the person now"
            return asked, (ToolAnswer(said, "too many calls"), "limited")
        try:
            values, asked.ignored = read_arguments(self._reading[tool.name], given)
            asked.values = values
            memory = self._whose(tool, values)
            if self._reads_others and memory.user_id != self.memory.user_id and not tool.reads(values):
                return asked, (
                    ToolAnswer(_NOT_THEIRS.format(self.user_number(self.memory.user_id)), "others"),
                    "refused",
                )
            asked.user = memory.user_id
            memory._user_memory.check_no_batch()  # the worker thread would wait for this one
        except RecollectError as error:
            return asked, answer_to_error(asked.tool, error)
        except Exception as error:
            LOGGER.warning("the arguments of %s could not be read: %s", tool.name, type(error).__name__)
            return asked, (
                ToolAnswer("the arguments are not plain data; give one JSON object", "bad arguments"),
                "invalid",
            )
        try:
            if self._questions and not asked.reads:
                self._questions.forget()
            if self._questions and (known := self._questions.take(asked.question)) is not None:
                return asked, self._joined(asked, known)
            # in the caller's context, so that spans belong to the host's trace
            return asked, WORKERS.submit(asked.user, copy_context().run, self._work, asked, memory, values)
        except RuntimeError as error:  # no thread can start, or the interpreter is shutting down
            return asked, answer_to_crash(asked.tool, asked.call, error)

    def _work(self, asked: ActiveCall, memory: Memory, values: dict[str, Any]) -> Result:
        """Run and log a call, in a thread."""
        with CALLS.turn() as asked.watch:
            result = self._result(asked, *self._done(asked, memory, values))
        with asked.guard:
            asked.result = result
        if asked.given_up is None:
            self._note(asked, result, may_wait=True)
            return result
        if self._log is not None:
            row, told = asked.given_up
            row = replace(row, outcome=result.outcome, latency_ms=result.latency_ms)
            try:
                self._log.add(asked.user, row, asked.said, told, again=True, may_wait=True)
            except Exception as error:
                LOGGER.error("the end of the call %s was not logged: %s", asked.call, type(error).__name__)
        self._settle(asked, result)
        return result

    def _done(self, asked: ActiveCall, memory: Memory, values: dict[str, Any]) -> tuple[ToolAnswer, Status]:
        """Run the tool. Any exception becomes an answer."""
        tool = asked.tool
        try:
            if self._log is not None and (why := self._log.refusal(asked.user)):
                return ToolAnswer(f"not done: {why}", "budget"), "limited"
            mode = memory.mode
            if mode == "incognito" or (mode == "paused" and not tool.reads(values)):
                told = _PAUSED[mode] if mode == "incognito" or memory.config.enabled else f"Not done: {TURNED_OFF}."
                return ToolAnswer(told, f"refused:{mode}"), "refused"
            here = memory.acting(f"tool:{tool.name}", agent=self.agent, session=self.session, call=asked.call)
            here = here._unless(asked.may_be_done)
            others = tuple(one for one in self._people.values() if one.user_id != memory.user_id)
            people = tuple(self._people)
            scope = Scope(memory=here, tool=tool.name, session=self.session, people=people, others=others)
            answer = tool.run(scope, **values)
            return answer, answer.status
        except DoneAlreadyError:
            return _DONE, "ok"
        except RecollectError as error:
            # not found because another process has already forgotten it
            if asked.late is not None and _is_in_journal(memory, asked.call):
                return _DONE, "ok"
            return answer_to_error(asked.tool, error)
        except BaseException as error:  # the outermost handler: nothing may reach the model's loop
            return answer_to_crash(asked.tool, asked.call, error)

    def _result(self, asked: ActiveCall, answer: ToolAnswer, status: Status) -> Result:
        try:
            content = neutralize(mark_failure(asked.tool, answer, status))
            text = render_answer(content, MAX_OUTPUT)
        except Exception as error:  # the tool returned something that cannot be formatted
            answer, status = answer_to_crash(asked.tool, asked.call, error)
            content = mark_failure(asked.tool, answer, status)
            text = render_answer(content, MAX_OUTPUT)
        return Result(
            text=text,
            status=status,
            outcome=answer.outcome,
            tool=asked.tool.name,
            call=asked.call,
            latency_ms=(time.perf_counter_ns() - asked.began) / 1e6,
            content=content,
            ignored=asked.ignored,
        )

    def _end(self, asked: ActiveCall, answer: ToolAnswer, status: Status) -> Result:
        """Format the answer to a call that was not started, and log it."""
        result = self._result(asked, answer, status)
        self._note(asked, result)
        return result

    def _joined(self, asked: ActiveCall, known: Future[Result]) -> Future[Result]:
        """Return a future for the result of the same call that is already running."""
        mine: Future[Result] = Future()
        mine.set_running_or_notify_cancel()

        def answer(done: Future[Result]) -> None:
            latency = (time.perf_counter_ns() - asked.began) / 1e6
            result = replace(done.result(), call=asked.call, latency_ms=latency, ignored=asked.ignored)
            with asked.guard:
                asked.result = result
            if asked.given_up is None:
                self._note(asked, result)
            mine.set_result(result)

        known.add_done_callback(answer)
        return mine

    def _times(self, asked: ActiveCall) -> tuple[float, float]:
        """Return how long a reply waits for this call, and how much longer if it cannot be stored."""
        if self._timeouts is None or asked.tool.waits:
            return asked.tool.timeout, 0.0
        soon = self._timeouts.reads if asked.reads else self._timeouts.writes
        soon = min(soon, asked.tool.timeout)
        return soon, asked.tool.timeout - soon

    def _set_aside(self, asked: ActiveCall, begun: Future[Result]) -> Result | None:
        """Defer a call: store it durably and return the result that says so; None if that is not possible."""
        assert self._timeouts is not None
        if asked.reads:
            self._questions.keep(asked.question, begun)
            said = f"{asked.tool.name} takes longer than usual; call it again with the same arguments to get the result"
        else:
            try:
                asked.late = self._late(asked)
                asked.kept = self._timeouts.backlog.keep(asked.late)
            except Exception as error:
                LOGGER.warning("the call %s cannot be queued: %s", asked.call, type(error).__name__)
                return None
            said = f"{asked.tool.name} takes longer than usual and continues in the background; do not repeat it"
        with asked.guard:
            if asked.result is None:
                answer = {"status": "queued", "task_id": asked.call, "message": said} if asked.tool.json else said
                result = self._result(asked, ToolAnswer(answer, "queued"), "queued")
                asked.given_up = (self._note(asked, result), result.text)
                return result
        self._settle(asked, None)
        return asked.result

    def _settle(self, asked: ActiveCall, result: Result | None) -> None:
        """Mark a stored call as done or to be retried. Without a result, it was answered in time after all."""
        if self._timeouts is None or asked.kept is None or asked.late is None:
            return
        backlog = self._timeouts.backlog
        try:
            if result is None:
                backlog.drop(asked.kept)
            elif result.status == "error":
                backlog.failed(asked.kept)
            else:
                backlog.done(asked.kept, asked.late, result)
        except Exception as error:  # it stays stored, and a retry will find it done
            LOGGER.warning("the call %s stays queued: %s", asked.call, type(error).__name__)

    def _late(self, asked: ActiveCall) -> DeferredCall:
        return DeferredCall(
            call=asked.call,
            user=asked.user,
            tool=asked.tool.name,
            arguments=asked.values,
            session=self.session,
            chat=self.chat,
            agent=self.agent,
            people=tuple(self._people),
        )

    def _give_up(self, asked: ActiveCall, begun: Future[Result]) -> Result:
        """Answer a call that exceeded its timeout. If it has started, it continues and is logged when it ends."""
        seconds = f"{asked.tool.timeout:g} s"
        if begun.cancel():
            said = f"{asked.tool.name} could not start within {seconds}; nothing was done, and you can try again"
            return self._end(asked, ToolAnswer(said, "not begun"), "timeout")
        said = (
            f"{asked.tool.name} is not done after {seconds} and continues; check if it was done before you"
            f" repeat it (call {asked.call})"
        )
        with asked.guard:
            if asked.result is not None:  # finished at the last moment
                return asked.result
            result = self._result(asked, ToolAnswer(said, "running"), "timeout")
            asked.given_up = (self._note(asked, result), result.text)
            return result

    def _note(self, asked: ActiveCall, result: Result, *, may_wait: bool = False) -> ToolCall:
        """Log a call. Errors of the log do not affect its result."""
        row = self._row(asked, result)
        try:
            if self._log is not None:
                self._log.add(asked.user, row, asked.said, result.text, may_wait=may_wait)
        except Exception as error:
            LOGGER.error("the call %s was not logged: %s", asked.call, type(error).__name__)
        try:
            if self._telemetry is not None:
                self._telemetry.called(asked.tool, row, asked.began)
                self._habits.seen(asked.tool, result.status)
        except Exception as error:
            LOGGER.error("the call %s is missing in telemetry: %s", asked.call, type(error).__name__)
        return row

    def _row(self, asked: ActiveCall, result: Result) -> ToolCall:
        return ToolCall(
            id=asked.call,
            at=self._clock(),
            tool=asked.tool.name,
            suite=asked.tool.suite,
            status=result.status,
            outcome=result.outcome,
            latency_ms=result.latency_ms,
            session=mask_session(self.session),
            agent=self.agent,
        )

    # users

    def _parameters(self, tool: Tool) -> tuple[Parameter, ...]:
        """Return the parameters with the user optional, because the connection decides it."""
        return tuple(
            replace(parameter, type="string", required=len(self._people) > 1 and not self.fixed_user)
            if parameter.arg.user
            else parameter
            for parameter in tool.parameters
        )

    def user_number(self, user_id: str) -> str:
        """Return the ``user_id`` by which tools know a participant: "12345" in a group for "telegram:12345"."""
        return _number(user_id) if self._numbers and len(self._people) > 1 else user_id

    def _have_numbers(self) -> bool:
        """Return True if every participant has a number of their own, as the schemas of the tools want it."""
        return all(self.user_number(name).isdigit() for name in self._people)

    def _whose(self, tool: Tool, values: dict[str, Any]) -> Memory:
        """Return the memory of a call. Only participants of the conversation can be named."""
        for parameter in tool.parameters:
            if parameter.arg.user and (named := values[parameter.name]) is not None:
                number = named.strip().removesuffix(".0")
                found = self._people.get(named) or self._people.get(number) or self._numbers.get(number)
                if found is None:
                    allowed = " or ".join(map(self.user_number, self._people))
                    raise ArgumentsError(f"{parameter.name} is {preview_text(named)}; here it can only be {allowed}")
                return found
        return self.memory


class _Habits:
    """Counts if the model searches before it writes."""

    def __init__(self, telemetry: Telemetry | None) -> None:
        self._telemetry = telemetry
        self._looked = False

    def seen(self, tool: Tool, status: Status) -> None:
        if self._telemetry is None or status == "invalid":
            return
        if tool.does == "recall":
            self._looked = True
        elif tool.does in ("remember", "change", "forget"):
            self._telemetry.pattern(f"recall_before_{tool.does}" if self._looked else f"{tool.does}_without_recall")


def _unknown() -> Tool:
    """Return a placeholder for a tool that does not exist, so that its call is logged, but not its name."""
    return Tool(
        name="unknown",
        suite="",
        title="",
        description="",
        parameters=(),
        tier="read_only",
        does="other",
        idempotent=True,
        timeout=0,
        json=False,
        run=lambda: ToolAnswer(""),
    )


def _number(user_id: str) -> str:
    """Return the part of a user id that a channel knows: 12345 of telegram:12345."""
    return user_id.rpartition(":")[2]


def _spelling(name: str) -> str:
    return re.sub(r"[\s_\-]+", "", name).casefold()


def _is_in_journal(memory: Memory, call: str) -> bool:
    """Return True if the journal has this call; False if it cannot be read."""
    try:
        return bool(memory.history(call=call, limit=1))
    except RecollectError:
        return False


def _is_short(name: object, arguments: Any) -> bool:
    """Return True if the arguments are short enough to parse on the event loop."""
    given = [name, *arguments.values()] if isinstance(arguments, dict) and len(arguments) <= _FEW else [name, arguments]
    for value in given:
        plain = value is None or isinstance(value, bool | int | float)
        if not plain and not (isinstance(value, str) and len(value) <= _SHORT):
            return False
    return True
