"""Tools offered to a model over one memory. `Suite.call` is the single way in: it reads the arguments, keeps to the
limits, runs the tool in a thread, phrases what came of it, logs it, and never raises.

A call that outlives its timeout is answered so. If it had not begun, it never will; if it had, it goes on, and what
it changes is in the journal under the id of the call.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import logging
import operator
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

from recollect.core.memory import Memory
from recollect.errors import InvalidInputError, RecollectError, StoreError
from recollect.records import ToolCall, new_id
from recollect.times import Clock, utc_now
from recollect.tools.log import CallLog
from recollect.tools.parameters import ArgumentsError, Parameter, read_arguments
from recollect.tools.phrasing import MAX_OUTPUT as MAX_OUTPUT
from recollect.tools.phrasing import phrased
from recollect.tools.tool import Answer, Scope, Tool
from recollect.tools.workers import WORKERS

LOGGER = logging.getLogger("recollect.tools")

_PAUSED = {
    "paused": "Not done: memory is paused. Nothing is stored or changed until the person resumes it.",
    "incognito": "Not done: this conversation is incognito. Memory is neither read nor written.",
}

Status = Literal["ok", "refused", "invalid", "error", "timeout", "limited"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a call. ``text`` is for the model; the rest is for the host."""

    text: str
    status: Status
    outcome: str
    tool: str
    call: str
    latency_ms: float
    content: Any = None
    """The answer before it became text."""
    ignored: tuple[str, ...] = ()
    """Arguments that the tool does not have."""

    @property
    def is_error(self) -> bool:
        """Whether the call failed; that the policy refuses something is not a failure."""
        return self.status not in ("ok", "refused")

    def __str__(self) -> str:
        return self.text


class Telemetry(Protocol):
    """Whoever wants to know of calls: numbers and names, never content."""

    def called(self, tool: Tool, call: ToolCall, began_ns: int) -> None:
        """A call has been answered."""
        ...

    def pattern(self, name: str) -> None:
        """The model behaved in a way that has a name."""
        ...


@dataclass(slots=True)
class _Asked:
    """A call that is being worked on."""

    tool: Tool
    call: str
    began: int
    said: Any
    user: str
    ignored: tuple[str, ...] = ()
    guard: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Held by who decides between the two below."""
    result: Result | None = None
    given_up: tuple[ToolCall, str] | None = None
    """How it was logged when it took too long, and what was told."""


class _Allowance:
    """How many calls a response has left."""

    def __init__(self, calls: int) -> None:
        self.calls = max(calls, 0)
        self._taken = itertools.count()

    def take(self) -> bool:
        return next(self._taken) < self.calls  # one step, also for threads


class Suite:
    """Some tools over the memory of one user, for one conversation. Get it from `Recollect.tools`.

    ``others`` are the memories of those who take part in the conversation besides the user: a tool that takes a
    ``user_id`` reaches them too, and nobody else. Safe to share between threads.
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
        calls_per_response: int = 5,
        log: CallLog | None = None,
        telemetry: Telemetry | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self.memory = memory
        self.tools: dict[str, Tool] = {}
        for tool in tools:
            if self.tools.setdefault(tool.name, tool) is not tool:
                raise InvalidInputError("tools", f"two tools are called {tool.name}")
        memory.acting(agent=agent, session=session)  # what is wrong with these is for the host to know, and now
        self.session, self.chat, self.agent = session, chat, agent
        self._people = {one.user_id: one for one in (memory, *others)}
        self.fixed_user = not all(name.isdigit() for name in self._people) if fixed_user is None else fixed_user
        self._spellings = {_spelling(name): tool for name, tool in self.tools.items()}
        self._reading = {tool.name: self._parameters(tool) for tool in self.tools.values()}
        self._calls_per_response = calls_per_response
        self._log = log
        self._telemetry = telemetry
        self._clock = clock
        self._allowance: _Allowance | None = None
        self._habits = _Habits(telemetry)

    def __repr__(self) -> str:
        return f"<Suite of {len(self.tools)} tools over {self.memory!r}>"

    def response(self, calls: int | None = None) -> Suite:
        """The same tools for one response of the model, which may make so many calls and no more."""
        bounded = object.__new__(Suite)
        bounded.__dict__.update(self.__dict__)
        bounded._allowance = _Allowance(self._calls_per_response if calls is None else calls)
        return bounded

    @property
    def is_response(self) -> bool:
        """Whether the number of calls is limited, because this is for one response."""
        return self._allowance is not None

    def schema(self, name: str) -> dict[str, Any]:
        """The JSON Schema of a tool's arguments, as it is offered here."""
        return self.tools[name].schema(with_user=not self.fixed_user)

    def functions(self) -> dict[str, Callable[..., str]]:
        """The tools as plain functions with typed signatures, for whatever takes functions."""
        return {name: self._function(tool) for name, tool in self.tools.items()}

    def find(self, name: object) -> Tool | None:
        """The tool that a name means. Clients put a name of theirs before ours, models vary how words are joined."""
        if not isinstance(name, str):
            return None
        found = self.tools.get(name) or self._spellings.get(_spelling(name))
        return found or self._spellings.get(_spelling(re.split(r"__|[.:/]", name)[-1]))

    # calling

    def call(self, name: str, arguments: Any = None) -> Result:
        """Call a tool. ``arguments`` are a mapping or JSON; whatever happens, the answer is a result."""
        asked, begun = self._begin(name, arguments)
        if not isinstance(begun, Future):
            return self._end(asked, *begun)
        try:
            return begun.result(asked.tool.timeout)
        except (FutureTimeoutError, CancelledError):
            return self._give_up(asked, begun)

    async def acall(self, name: str, arguments: Any = None) -> Result:
        """`call`, awaited; the event loop goes on meanwhile."""
        import asyncio

        asked, begun = self._begin(name, arguments)
        if not isinstance(begun, Future):
            return self._end(asked, *begun)
        waiting = asyncio.wrap_future(begun)
        try:
            done, _ = await asyncio.wait([waiting], timeout=asked.tool.timeout)
            return begun.result() if done else self._give_up(asked, begun)
        except asyncio.CancelledError:
            self._give_up(asked, begun)
            raise
        finally:
            waiting.cancel()  # the loop may be closed when a late one ends

    def _begin(self, name: str, given: Any) -> tuple[_Asked, Future[Result] | tuple[Answer, Status]]:
        """Read, check, and hand over to a thread; or the answer, if it need not come so far."""
        began = time.perf_counter_ns()
        tool = self.find(name)
        asked = _Asked(tool or _unknown(), new_id("call"), began, given, self.memory.user_id)
        if tool is None:
            names = ", ".join(self.tools)
            return asked, (Answer(f"there is no tool {_shown(name)}; there are {names}", "unknown tool"), "invalid")
        if self._allowance is not None and not self._allowance.take():
            most = self._allowance.calls
            said = f"not done: a response may make {most} memory calls, and {most} were made; answer the person now"
            return asked, (Answer(said, "too many calls"), "limited")
        try:
            values, asked.ignored = read_arguments(self._reading[tool.name], given)
            memory = self._whose(tool, values)
            asked.user = memory.user_id
            memory._person.check_no_batch()  # the thread that does it would wait for this one
        except RecollectError as error:
            return asked, _failed(asked, error)
        except Exception as error:
            LOGGER.warning("the arguments of %s could not be read: %s", tool.name, type(error).__name__)
            return asked, (Answer("the arguments are not plain data; give one JSON object", "bad arguments"), "invalid")
        try:
            # in the context of the caller: what is traced there belongs to the host's own trace
            return asked, WORKERS.submit(asked.user, copy_context().run, self._work, asked, memory, values)
        except RuntimeError as error:  # no thread can begin, or the interpreter is ending
            return asked, _crashed(asked, error)

    def _work(self, asked: _Asked, memory: Memory, values: dict[str, Any]) -> Result:
        """In a thread: do it, and log it."""
        result = self._result(asked, *self._done(asked, memory, values))
        with asked.guard:
            asked.result = result
        if asked.given_up is None:
            self._note(asked, result, may_wait=True)
        elif self._log is not None:
            row, told = asked.given_up
            row = replace(row, outcome=result.outcome, latency_ms=result.latency_ms)
            try:
                self._log.add(asked.user, row, _as_said(asked.said), told, again=True, may_wait=True)
            except Exception as error:
                LOGGER.error("the end of the call %s was not logged: %s", asked.call, type(error).__name__)
        return result

    def _done(self, asked: _Asked, memory: Memory, values: dict[str, Any]) -> tuple[Answer, Status]:
        """Run the tool. Whatever it raises becomes an answer."""
        tool = asked.tool
        try:
            if self._log is not None and (why := self._log.refusal(asked.user)):
                return Answer(f"not done: {why}", "budget"), "limited"
            mode = memory.mode
            if mode == "incognito" or (mode == "paused" and not tool.reads(values)):
                return Answer(_PAUSED[mode], f"refused:{mode}"), "refused"
            here = memory.acting(f"tool:{tool.name}", agent=self.agent, session=self.session, call=asked.call)
            scope = Scope(memory=here, tool=tool.name, session=self.session, chat=self.chat, people=tuple(self._people))
            answer = tool.run(scope, **values)
            return answer, answer.status
        except RecollectError as error:
            return _failed(asked, error)
        except BaseException as error:  # the outermost handler: nothing may reach the model's loop
            return _crashed(asked, error)

    def _result(self, asked: _Asked, answer: Answer, status: Status) -> Result:
        """Phrase the answer."""
        try:
            content = _put(asked.tool, answer, status)
            text = phrased(content, MAX_OUTPUT)
        except Exception as error:  # a tool gave what cannot be told
            answer, status = _crashed(asked, error)
            content = _put(asked.tool, answer, status)
            text = phrased(content, MAX_OUTPUT)
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

    def _end(self, asked: _Asked, answer: Answer, status: Status) -> Result:
        """Phrase the answer to what was not begun, and log the call."""
        result = self._result(asked, answer, status)
        self._note(asked, result)
        return result

    def _give_up(self, asked: _Asked, begun: Future[Result]) -> Result:
        """It takes too long. What has begun goes on; the log is told when it ends."""
        seconds = f"{asked.tool.timeout:g} s"
        if begun.cancel():
            said = f"{asked.tool.name} could not begin within {seconds}; nothing was done, and you can try again"
            return self._end(asked, Answer(said, "not begun"), "timeout")
        said = (
            f"{asked.tool.name} is not done after {seconds} and goes on; look whether it was done before you"
            f" repeat it (call {asked.call})"
        )
        with asked.guard:
            if asked.result is not None:  # at the last moment
                return asked.result
            result = self._result(asked, Answer(said, "running"), "timeout")
            asked.given_up = (self._note(asked, result), result.text)
            return result

    def _note(self, asked: _Asked, result: Result, *, may_wait: bool = False) -> ToolCall:
        """Log a call that is answered now, whatever happens to the log."""
        row = self._row(asked, result)
        try:
            if self._log is not None:
                self._log.add(asked.user, row, _as_said(asked.said), result.text, may_wait=may_wait)
        except Exception as error:
            LOGGER.error("the call %s was not logged: %s", asked.call, type(error).__name__)
        try:
            if self._telemetry is not None:
                self._telemetry.called(asked.tool, row, asked.began)
                self._habits.seen(asked.tool, result.status)
        except Exception as error:
            LOGGER.error("the call %s is missing in telemetry: %s", asked.call, type(error).__name__)
        return row

    def _row(self, asked: _Asked, result: Result) -> ToolCall:
        return ToolCall(
            id=asked.call,
            at=self._clock(),
            tool=asked.tool.name,
            suite=asked.tool.suite,
            status=result.status,
            outcome=result.outcome,
            latency_ms=result.latency_ms,
            session=self.session,
            agent=self.agent,
        )

    # inside

    def _parameters(self, tool: Tool) -> tuple[Parameter, ...]:
        """As they are read: who the user is, is known, and need not be told."""
        return tuple(
            replace(parameter, type="string", required=len(self._people) > 1) if parameter.arg.user else parameter
            for parameter in tool.parameters
        )

    def _whose(self, tool: Tool, values: dict[str, Any]) -> Memory:
        """The memory that a call is about. Only those who take part in the conversation can be named."""
        for parameter in tool.parameters:
            if parameter.arg.user and (named := values[parameter.name]) is not None:
                found = self._people.get(named) or self._people.get(named.strip().removesuffix(".0"))
                if found is None:
                    allowed = " or ".join(self._people)
                    raise ArgumentsError(f"{parameter.name} is {_shown(named)}; here it can only be {allowed}")
                return found
        return self.memory

    def _function(self, tool: Tool) -> Callable[..., str]:
        shown = [parameter for parameter in tool.parameters if not (parameter.arg.user and self.fixed_user)]
        takes = inspect.signature(tool.run).parameters

        def function(*args: Any, **kwargs: Any) -> str:
            named = dict(zip(signature.parameters, args, strict=False))
            certain = len(named) == len(args) and not named.keys() & kwargs.keys()
            return self.call(tool.name, named | kwargs if certain else args).text

        hints = {name: _plain_type(hint) for name, hint in get_type_hints(tool.run).items()}
        # those that must be given first, as a signature wants it
        ordered = sorted(shown, key=lambda parameter: not parameter.required)
        signature = inspect.Signature(
            [
                takes[parameter.name].replace(
                    kind=inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=hints[parameter.name]
                )
                for parameter in ordered
            ],
            return_annotation=str,
        )
        function.__name__ = function.__qualname__ = tool.name
        function.__doc__ = tool.description
        function.__signature__ = signature  # type: ignore[attr-defined]
        function.__annotations__ = {parameter.name: hints[parameter.name] for parameter in ordered} | {"return": str}
        return function


class _Habits:
    """Watches the order of calls for what it says of the model: whether it looks before it writes."""

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


def _plain_type(hint: Any) -> Any:
    """A type as whoever inspects functions understands it: without choices, which are texts to them."""
    if get_origin(hint) is Literal:
        return str
    if get_origin(hint) in (Union, UnionType):
        return functools.reduce(operator.or_, [_plain_type(option) for option in get_args(hint)])
    return hint


def _failed(asked: _Asked, error: RecollectError) -> tuple[Answer, Status]:
    """An error of ours, told to the model in its words."""
    if isinstance(error, ArgumentsError):
        return Answer(str(error), "bad arguments"), "invalid"
    if isinstance(error, InvalidInputError):
        field, _, item = error.field.partition("[")
        name = asked.tool.fields.get(field) or (f"{field}[{item}" if item else field)
        return Answer(f"{name}: {str(error).partition(': ')[2]}", "bad arguments"), "invalid"
    if isinstance(error, StoreError):
        LOGGER.error("%s failed: %s", asked.tool.name, type(error).__name__)
    return Answer(str(error), type(error).__name__), "error"


def _crashed(asked: _Asked, error: BaseException) -> tuple[Answer, Status]:
    # neither the message nor the trace: both may hold what a person said
    LOGGER.error("%s failed: %s (call %s)", asked.tool.name, type(error).__name__, asked.call)
    said = "something went wrong inside; whether it was done is in the journal"
    return Answer(f"{said} (call {asked.call})", type(error).__name__), "error"


def _unknown() -> Tool:
    """Stands for a tool that does not exist, so that its call is logged too; not its name, which may be anything."""
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
        run=lambda: Answer(""),
    )


def _put(tool: Tool, answer: Answer, status: Status) -> str | dict[str, Any] | list[Any]:
    """What is told: what is wrong is marked as wrong, in the way of the suite."""
    content = answer.content
    if answer.exact or not isinstance(content, str) or status == "ok":
        return content
    if tool.json:
        return {"status": "refused" if status == "refused" else "error", "message": content}
    return content if status == "refused" else f"Error: {content}"


def _as_said(arguments: Any) -> str:
    """The arguments about as the model wrote them, to count their tokens."""
    if isinstance(arguments, str):
        return arguments
    try:
        if isinstance(arguments, bytes | bytearray):
            return bytes(arguments).decode("utf-8", errors="replace")
        if isinstance(arguments, Mapping):
            arguments = dict(arguments)
        return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    except Exception:  # it is no plain data
        return ""


def _spelling(name: str) -> str:
    return re.sub(r"[\s_\-]+", "", name).casefold()


def _shown(value: object) -> str:
    text = str(value).encode("utf-8", errors="replace").decode("utf-8")
    return repr(text if len(text) <= 40 else text[:37] + "…")
