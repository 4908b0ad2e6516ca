"""A model: the tool loop, and structured answers. Limited in every direction, it fails in only one way: with a
`ModelError` that says how and quotes nothing.

::

    converse   ask → calls? → run them, return the results, ask again … → text
    extract    ask → JSON that passes the check? → else say what is wrong, ask again …

Temporary failures are retried with growing pauses; each limit is checked before each request. The LLM library is only
used in `provider`.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

from recollect.agents.models.budget import Account
from recollect.agents.models.provider import ModelCall, OfferedTool, Provider, ProviderAnswer, ProviderFailure
from recollect.agents.models.structured import as_arguments, json_in, missing
from recollect.config import Config, model_parts
from recollect.errors import InvalidInputError, ModelError
from recollect.tools.suite import Result, Suite

LOGGER = logging.getLogger("recollect.models")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 20.0
_CUT_OFF = "Error: not done: the call was cut off at the limit of tokens; make it again, with shorter arguments"
_ENOUGH = "Error: not done: no more calls can be made here; answer now with what you have"
_UNREADABLE = "Your last call could not be read. Make it again, as the schema of the tool wants it, or answer."
_EARLIER = "(The conversation began earlier.)"
_BY_TEXT = "Answer with one JSON value and nothing else. It must fit this JSON Schema:\n"

Stopped = Literal["done", "turns", "calls", "tokens", "time"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """The limits of one conversation or extraction. The final answer, without tools, is not counted."""

    turns: int = 8
    """Answers of the model."""
    calls: int = 20
    """Tool calls in all; the limit per answer belongs to the suite."""
    tokens: int = 100_000
    """Tokens in all, read and written; checked before each request."""
    seconds: float = 180.0
    attempts: int = 3
    """Attempts per request."""
    corrections: int = 2
    """Corrections that `extract` sends to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The result of a conversation or extraction."""

    text: str
    turns: int
    calls: list[Result]
    tokens_in: int
    tokens_out: int
    stopped: Stopped
    retries: int
    data: Any = None
    """The data from `Model.extract`."""


class _TimeoutReachedError(Exception):
    """The time limit was reached."""


class Model:
    """A model, from `open_model`. Thread-safe; in async code, use `asyncio.to_thread`."""

    def __init__(
        self,
        provider: Provider,
        *,
        timeout: float,
        sleep: Callable[[float], object],
        clock: Callable[[], float],
    ) -> None:
        self.name = provider.model
        self._provider, self._timeout, self._sleep, self._clock = provider, timeout, sleep, clock
        self._by_text = False
        """True once the server turned out not to support tools: structured answers then come as text."""

    def __repr__(self) -> str:
        return f"<Model {self.name}>"

    @property
    def calls_tools(self) -> bool:
        """False once the server turned out not to support tools."""
        return not self._by_text

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; running requests fail. The next request opens new ones."""
        self._provider.close()

    def converse(
        self,
        system: str,
        messages: Sequence[Turn],
        *,
        suite: Suite | None = None,
        limits: ModelLimits | None = None,
        on_text: Callable[[str], None] | None = None,
        account: Account | None = None,
    ) -> Reply:
        """Answer the last message, using the tools of the suite.

        ``on_text`` receives the text in pieces as it arrives, including what the model says before a tool call; the
        text of the reply is what it said last. When a limit is reached, the model is asked once more for an answer
        without tools; when time runs out, the reply is what there is.
        """
        talk = _ModelConversation(self, system, limits or ModelLimits(), account, on_text)
        talk.history = self._history(messages)
        tools = (
            [] if suite is None else [OfferedTool(n, t.description, suite.schema(n)) for n, t in suite.tools.items()]
        )
        stopped: Stopped | None = None
        try:
            while stopped is None:
                said = talk.ask(tools)
                if said.calls and suite is not None:
                    talk.history.append(self._provider.results(talk.results_of(said.calls, suite)))
                elif said.ending == "malformed":
                    talk.history.append(self._provider.from_user(_UNREADABLE))
                else:
                    return talk.reply("tokens" if said.ending == "length" else "done")
                stopped = talk.limit_reached()
            talk.ask(tools, use="may not")
        except _TimeoutReachedError:
            if not talk.text and not talk.results:
                raise talk.error("timeout", "did not answer in time") from None
            stopped = "time"
        return talk.reply(stopped)

    def extract(
        self,
        system: str,
        prompt: str,
        schema: Mapping[str, Any],
        *,
        check: Callable[[Any], object] | None = None,
        limits: ModelLimits | None = None,
        account: Account | None = None,
    ) -> Reply:
        """Return data that fits the schema, as `Reply.data`.

        ``check`` raises ValueError with a sentence about what is wrong; the model reads it and may correct itself.
        """
        talk = _ModelConversation(self, system, limits or ModelLimits(), account)
        talk.history = self._history([Turn("user", prompt)])
        by_text = self._by_text
        try:
            while True:
                try:
                    said = talk.ask_for(schema, by_text)
                except ModelError as error:
                    if by_text or talk.turns or not error.form:
                        raise
                    by_text = True  # perhaps it does not support tools; any other problem will show again
                    continue
                problem, data = _read_answer(said, schema, check)
                if not problem:
                    self._by_text = by_text
                    return talk.reply("done", data)
                if talk.turns > talk.limits.corrections or talk.limit_reached():
                    raise talk.error("garbage", "did not give a valid answer, even after corrections")
                talk.history.append(self._corrected(said, problem))
        except _TimeoutReachedError:
            raise talk.error("timeout", "did not answer in time") from None

    def _corrected(self, said: ProviderAnswer, problem: str) -> Any:
        if said.calls:
            return self._provider.results([(call, f"Error: {problem}", True) for call in said.calls])
        return self._provider.from_user(f"This cannot be used: {problem}. Give the whole answer again, corrected.")

    def _history(self, messages: Sequence[Turn]) -> list[Any]:
        turns = [turn for turn in messages if turn.text.strip()]
        if not turns or turns[-1].role != "user":
            raise InvalidInputError("messages", "must end with a non-empty message of the user")
        if turns[0].role != "user":  # some providers require that the user speaks first
            turns.insert(0, Turn("user", _EARLIER))
        provider = self._provider
        return [(provider.from_user if turn.role == "user" else provider.from_model)(turn.text) for turn in turns]


@dataclass(slots=True)
class _ModelConversation:
    """One running conversation or extraction: its history, and what it has used of its limits."""

    model: Model
    system: str
    limits: ModelLimits
    account: Account | None
    on_text: Callable[[str], None] | None = None
    history: list[Any] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    text: str = ""
    turns: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    deadline: float = 0.0
    told: bool = False
    """True if a piece of the current answer was passed on, which cannot be taken back."""

    def __post_init__(self) -> None:
        self.deadline = self.model._clock() + self.limits.seconds
        if self.account is not None:
            self.account.check()

    def reply(self, stopped: Stopped, data: Any = None) -> Reply:
        return Reply(
            text=self.text,
            turns=self.turns,
            calls=self.results,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            stopped=stopped,
            retries=self.retries,
            data=data,
        )

    def error(self, kind: str, problem: str, *, form: bool = False) -> ModelError:
        said = f"the model {self.model.name} {problem}"
        return ModelError(kind, said, tokens_in=self.tokens_in, tokens_out=self.tokens_out, form=form)

    def limit_reached(self) -> Stopped | None:
        """Return the limit that ends the loop; time first, because then nothing more can be asked."""
        if self.model._clock() >= self.deadline:
            raise _TimeoutReachedError
        if self.turns >= self.limits.turns:
            return "turns"
        if len(self.results) >= self.limits.calls:
            return "calls"
        if self.tokens_in + self.tokens_out >= self.limits.tokens:
            return "tokens"
        return None

    def results_of(self, calls: Sequence[ModelCall], suite: Suite) -> list[tuple[ModelCall, str, bool]]:
        """Run the calls of one answer in order: what one writes, the next one finds."""
        bounded = suite if suite.is_response else suite.response()
        answers = []
        for call in calls:
            if self.model._clock() >= self.deadline:
                raise _TimeoutReachedError
            if not call.whole:
                answers.append((call, _CUT_OFF, True))
            elif len(self.results) >= self.limits.calls:
                answers.append((call, _ENOUGH, True))
            else:
                result = bounded.call(call.name, call.arguments)
                self.results.append(result)
                answers.append((call, result.text, result.is_error))
        return answers

    def ask_for(self, schema: Mapping[str, Any], by_text: bool) -> ProviderAnswer:
        """Ask for data: as the arguments of a tool, or as text."""
        if by_text:
            shape = json.dumps(schema, ensure_ascii=False)
            return self.ask((), system=f"{self.system}\n\n{_BY_TEXT}{shape}")
        tool = OfferedTool("answer", "Give the answer in this form.", as_arguments(schema))
        return self.ask([tool], use="must")

    def ask(self, tools: Sequence[OfferedTool], *, use: str = "may", system: str | None = None) -> ProviderAnswer:
        """Ask, with retries. The answer is charged to the account and added to the history."""
        self.told = False
        attempt = 0
        while True:
            attempt += 1
            outcome = self._once(tools, use, self.system if system is None else system)
            if isinstance(outcome, ProviderAnswer):
                return outcome
            left = self.deadline - self.model._clock()
            if left <= 0:
                raise _TimeoutReachedError
            pause = _retry_delay(attempt, outcome.after)
            if not outcome.again or self.told or attempt >= self.limits.attempts or pause >= left:
                LOGGER.warning("the model %s %s (%s)", self.model.name, outcome.problem, outcome.kind)
                raise self.error(outcome.kind, outcome.problem, form=outcome.form)
            self.retries += 1
            LOGGER.info("the model %s %s; retrying in %.1f s", self.model.name, outcome.problem, pause)
            self.model._sleep(pause)

    def _once(self, tools: Sequence[OfferedTool], use: str, system: str) -> ProviderAnswer | ProviderFailure:
        seconds = min(self.model._timeout, self.deadline - self.model._clock())
        if seconds <= 0:
            raise _TimeoutReachedError
        hand_on = None if self.on_text is None else self._hand_on
        outcome = self.model._provider.ask(system, self.history, tools, use=use, seconds=seconds, on_text=hand_on)
        if isinstance(outcome, ProviderFailure):
            return outcome
        self.tokens_in += outcome.tokens_in
        self.tokens_out += outcome.tokens_out
        if self.account is not None:
            self.account.charge(outcome)
        usable = outcome.text or (outcome.calls and tools) or outcome.ending == "malformed"
        if not usable and not self.text and not self.results:
            return ProviderFailure("garbage", "gave an empty answer", again=outcome.ending != "length")
        self.turns += 1
        self.text = outcome.text or self.text
        if outcome.text or outcome.calls:
            self.history.append(outcome.message)
        return outcome

    def _hand_on(self, piece: str) -> None:
        assert self.on_text is not None
        if not self.told and self.text:
            self.on_text("\n\n")  # between what was said before a call and after it
        self.told = True
        self.on_text(piece)


def open_model(
    spec: str,
    *,
    key: str = "",
    url: str = "",
    timeout: float = 60.0,
    variable: str = "MEMORY_MODEL",
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Model:
    """Open the model of a setting: openai:NAME, anthropic:NAME, gemini:NAME, or http://HOST/v1#NAME.

    ``timeout`` is for one request, in seconds. An invalid setting is a `ConfigError` with the name of the variable.
    """
    provider = Provider(spec, key=key, url=url, timeout=timeout, variable=variable)
    return Model(provider, timeout=timeout, sleep=sleep, clock=clock)


def configured_model(config: Config, *, extraction: bool = False, local: bool = False) -> Model | None:
    """Return the configured model, for conversations or extraction, or the local one; None if there is none.

    Key and URL belong to MEMORY_MODEL. The others get them only if they use the same provider, or are the only one.
    """
    spec, variable = config.model, "MEMORY_MODEL"
    if local:
        spec, variable, extraction = config.local_model, "MEMORY_LOCAL_MODEL", False
    if extraction and config.extraction_model:
        spec, variable = config.extraction_model, "MEMORY_EXTRACTION_MODEL"
    if not spec:
        return None
    (kind, _, place), (owner, _, home) = model_parts(spec, variable), model_parts(config.model or spec)
    same = (kind, place) == (owner, home)
    key, url = (config.model_key, config.model_url) if same else ("", "")
    return open_model(spec, key=key, url=url, timeout=config.model_timeout_ms / 1000, variable=variable)


def _read_answer(
    said: ProviderAnswer, schema: Mapping[str, Any], check: Callable[[Any], object] | None
) -> tuple[str, Any]:
    """Return the problem with an answer, as a sentence for the model, and the data."""
    try:
        if said.ending == "length":
            return "it was cut off at the limit of tokens; make it shorter", None
        if said.calls:
            given = said.calls[-1].arguments
            data = json_in(given) if isinstance(given, str) else given
        else:
            data = json_in(said.text)
        if schema.get("type") != "object" and isinstance(data, dict) and data.keys() == {"answer"}:
            data = data["answer"]
        if problem := missing(data, schema):
            return problem, None
        if check is not None:
            check(data)
    except ValueError as error:
        return str(error) or "it does not pass the check", None
    except (TypeError, LookupError, AttributeError):  # a check that failed on data of another shape
        return "it does not have the shape that the schema asks for", None
    return "", data


def _retry_delay(attempt: int, after: float | None) -> float:
    """Return the seconds to wait: as the provider asked, or doubling each time, with jitter."""
    if after is not None:
        return after * random.uniform(1.0, 1.1)
    return min(_FIRST_PAUSE * 2.0 ** (attempt - 1), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)
