"""The connection to a provider: the only module that uses an LLM library. Sends one request, and returns an answer or a
failure.

The library is asynchronous and its connections belong to an event loop, so each provider has a loop in its own thread;
threads that ask share its connections. A failure is a value and quotes nothing.
"""

from __future__ import annotations

import asyncio
import importlib
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple

from recollect.config import model_parts
from recollect.errors import ConfigError, MissingExtraError
from recollect.search.tokens import count
from recollect.store.forks import renew_after_forks

_EXTRAS = {"": "llm", "openai": "llm", "anthropic": "anthropic", "gemini": "google"}
_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "gemini": "GOOGLE_API_KEY"}
_CONNECT_SECONDS = 5.0
_CLOSE_SECONDS = 5.0
_ANTHROPIC_TOKENS = 16_000
"""The longest answer, where a limit is required; the library would allow the model's maximum."""


class OfferedTool(NamedTuple):
    """A tool that the model may call."""

    name: str
    description: str
    schema: dict[str, Any]


class ModelCall(NamedTuple):
    """A call that the model made; the arguments as they came. One that was cut off is not whole."""

    id: str
    name: str
    arguments: Any
    whole: bool


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """The model's answer. ``message`` is the library's own, for the history."""

    text: str
    calls: tuple[ModelCall, ...]
    message: Any
    tokens_in: int
    tokens_out: int
    ending: str
    """``stop``, ``length``, ``filter``, or ``malformed``: it tried to call, and the provider could not read it."""


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """The reason there is no answer, safe for a log."""

    kind: str
    problem: str
    again: bool = False
    """True if a retry may help."""
    after: float | None = None
    """Seconds to wait, as the provider asked."""
    form: bool = False
    """True if the same request may work in another form."""


class Provider:
    """One model of one provider. Thread-safe, and survives forks."""

    def __init__(self, spec: str, *, key: str = "", url: str = "", timeout: float = 60.0, variable: str) -> None:
        self.kind, self.model, place = model_parts(spec, variable)
        if not self.model:
            raise ConfigError(f"{variable} is empty; set a model")
        self._key, self._url, self._timeout, self._variable = key, place or url, timeout, variable
        self._guard = threading.Lock()
        self._running: _RunningClient | None = None
        self._start()  # so that the operator learns of wrong settings now
        renew_after_forks(self, Provider._renew)

    # messages in the form the library needs

    def from_user(self, text: str) -> Any:
        from pydantic_ai.messages import ModelRequest

        return ModelRequest.user_text_prompt(_without_surrogates(text))

    def from_model(self, text: str) -> Any:
        from pydantic_ai.messages import ModelResponse, TextPart

        return ModelResponse(parts=[TextPart(_without_surrogates(text))])

    def results(self, answers: Sequence[tuple[ModelCall, str, bool]]) -> Any:
        """Return the results of calls: the call, its result, and whether that is an error."""
        from pydantic_ai.messages import ModelRequest, ToolReturnPart

        native = self.kind in ("anthropic", "gemini")  # the others have no field for it, and the text says it too
        return ModelRequest(
            parts=[
                ToolReturnPart(
                    call.name, _without_surrogates(text), call.id, outcome="failed" if wrong and native else "success"
                )
                for call, text, wrong in answers
            ]
        )

    # asking

    def ask(
        self,
        system: str,
        messages: Sequence[Any],
        tools: Sequence[OfferedTool] = (),
        *,
        use: str = "may",
        seconds: float,
        on_text: Callable[[str], None] | None = None,
    ) -> ProviderAnswer | ProviderFailure:
        """Ask once. Tools ``may`` be used, ``must`` be, or ``may not`` be, which keeps them known to the model."""
        running = self._start()
        pieces: SimpleQueue[str | None] = SimpleQueue()
        send = None if on_text is None else pieces.put
        asking = self._asking(running, system, messages, tools, use, seconds, send)
        try:
            future = asyncio.run_coroutine_threadsafe(asking, running.loop)
        except RuntimeError:  # closed just now
            asking.close()
            return ProviderFailure("unavailable", "was closed")
        try:
            if on_text is not None:
                future.add_done_callback(lambda _: pieces.put(None))
                while (piece := pieces.get()) is not None:
                    on_text(piece)
            return future.result()
        except CancelledError:
            return ProviderFailure("unavailable", "was closed")
        finally:
            future.cancel()  # the caller was interrupted, or does not want the rest

    async def _asking(
        self,
        running: _RunningClient,
        system: str,
        messages: Sequence[Any],
        tools: Sequence[OfferedTool],
        use: str,
        seconds: float,
        send: Callable[[str], None] | None,
    ) -> ProviderAnswer | ProviderFailure:
        from pydantic_ai import direct
        from pydantic_ai.messages import InstructionPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.tools import ToolDefinition

        settings: Any = {"max_retries": 0}  # retries are ours, with our limits
        if self.kind == "openai":
            settings["openai_store"] = False  # what is said about a person is not theirs to keep
        if self.kind == "anthropic":
            settings["max_tokens"] = _ANTHROPIC_TOKENS
        declared = [
            ToolDefinition(
                name=tool.name,
                parameters_json_schema=tool.schema,
                description=tool.description,
                kind="output" if use == "must" else "function",
            )
            for tool in tools
        ]
        if use == "must":
            parameters = ModelRequestParameters(output_tools=declared, output_mode="tool", allow_text_output=False)
        else:
            parameters = ModelRequestParameters(function_tools=declared)
            if declared and use == "may not":
                settings["tool_choice"] = "none"
        parameters.instruction_parts = [InstructionPart(content=_without_surrogates(system))] if system else []
        given: dict[str, Any] = {
            "model_settings": settings,
            "model_request_parameters": parameters,
            "instrument": False,  # a host that traces this library would trace what is said
        }
        try:
            async with asyncio.timeout(seconds):
                if send is None:
                    response = await direct.model_request(running.model, list(messages), **given)
                else:
                    async with direct.model_request_stream(running.model, list(messages), **given) as stream:
                        aloud = _SpokenText(send)
                        async for event in stream:
                            if piece := _event_text(event):
                                aloud.say(piece)
                        aloud.end()
                        response = stream.get()
                    if self.kind and response.finish_reason is None:  # others need not say how an answer ends
                        return ProviderFailure("unavailable", "was cut off in its answer", again=True)
            return _answer_from_response(system, messages, response)
        except Exception as error:  # the outermost handler: the library may raise anything
            return _failure(error)

    # the client

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        with self._guard:
            running, self._running = self._running, None
        if running is not None:
            running.stop()

    def _start(self) -> _RunningClient:
        with self._guard:
            if self._running is None:
                self._running = _RunningClient(*self._build())
                weakref.finalize(self, self._running.stop)
            return self._running

    def _renew(self) -> None:
        """Reset in a forked child, where the thread does not exist and the connections are the parent's."""
        self._guard = threading.Lock()
        self._running = None

    def _build(self) -> tuple[Any, Any]:
        """Return the HTTP client, which is ours to close, and the library's model using it."""
        extra = _EXTRAS[self.kind]
        try:
            models = importlib.import_module("pydantic_ai.models")
            module = {"anthropic": "anthropic", "gemini": "google"}.get(self.kind, "openai")
            classes = importlib.import_module(f"pydantic_ai.models.{module}")
            places = importlib.import_module(f"pydantic_ai.providers.{module if self.kind else 'openai_compatible'}")
            http2 = importlib.import_module("httpx2")
        except ImportError:
            raise MissingExtraError(extra, f"the model {self.model}") from None
        timeout = http2.Timeout(self._timeout, connect=min(_CONNECT_SECONDS, self._timeout))
        http = models.create_async_httpx2_client(timeout=timeout)
        given: dict[str, Any] = {"http_client": http, "api_key": self._key or None, "base_url": self._url or None}
        problem = ""
        try:
            if self.kind == "anthropic":
                return http, classes.AnthropicModel(self.model, provider=places.AnthropicProvider(**given))
            if self.kind == "gemini":
                return http, classes.GoogleModel(self.model, provider=places.GoogleProvider(**given))
            if self.kind == "openai":
                return http, classes.OpenAIResponsesModel(self.model, provider=places.OpenAIProvider(**given))
            given["api_key"] = self._key or "none"  # never send an OpenAI key to another server
            return http, classes.OpenAIChatModel(
                self.model, provider=places.OpenAICompatibleProvider("server", **given)
            )
        except Exception as error:
            problem = type(error).__name__
        if not self._key and self.kind:
            raise ConfigError(f"{self._variable} needs a key: set MEMORY_MODEL_KEY or {_KEYS[self.kind]}")
        raise ConfigError(f"{self._variable} cannot be used: {problem}; check the URL and the key")


class _RunningClient:
    """A client and the thread with its event loop."""

    def __init__(self, http: Any, model: Any) -> None:
        self.http, self.model = http, model
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="recollect-model", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.loop.run_forever()
        self.loop.close()  # here: it may have been stopped from within

    def stop(self) -> None:
        if not self.thread.is_alive():  # stopped before, or this is a forked child
            return
        if threading.current_thread() is self.thread:  # garbage-collected in there
            self._ending = self.loop.create_task(self._end())
            self._ending.add_done_callback(lambda _: self.loop.stop())
            return
        try:
            asyncio.run_coroutine_threadsafe(self._end(), self.loop).result(_CLOSE_SECONDS)
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(_CLOSE_SECONDS)
        except (RuntimeError, TimeoutError):
            pass  # another thread stops it, or a connection will not close: the thread is a daemon

    async def _end(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.http.aclose()
        await self.loop.shutdown_asyncgens()


class _SpokenText:
    """Passes on what a model says, without its thoughts, which local servers leave in the text between marks."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._held: str | None = ""

    def say(self, piece: str) -> None:
        if self._held is not None:
            self._held = re.sub(r"^\s*<think>.*?</think>\s*", "", self._held + piece, flags=re.DOTALL).lstrip()
            if self._held.startswith("<think>") or "<think>".startswith(self._held):
                return
            piece, self._held = self._held, None
        self._send(piece)

    def end(self) -> None:
        if self._held and not self._held.startswith("<think>"):
            self._send(self._held)


def _event_text(event: Any) -> str:
    match event.event_kind:
        case "part_start" if event.part.part_kind == "text":
            return str(event.part.content)
        case "part_delta" if event.delta.part_delta_kind == "text":
            return str(event.delta.content_delta)
    return ""


def _answer_from_response(system: str, messages: Sequence[Any], response: Any) -> ProviderAnswer | ProviderFailure:
    finish = response.finish_reason
    if finish == "content_filter":
        return ProviderFailure("refused", "did not answer: the provider's filter stopped it")
    made = [part for part in response.parts if part.part_kind == "tool-call"]
    cut = response.parts[-1] if response.parts and finish == "length" else None
    calls = tuple(ModelCall(one.tool_call_id, one.tool_name, one.args, one is not cut) for one in made)
    text = "".join(part.content for part in response.parts if part.part_kind == "text")
    text = re.sub(r"^\s*<think>.*?(</think>|\Z)", "", text, flags=re.DOTALL).strip()
    details = response.provider_details or {}
    ending = "length" if finish == "length" else "stop"
    if not calls and "MALFORMED" in str(details.get("finish_reason", "")):
        ending = "malformed"
    tokens_in, tokens_out = response.usage.input_tokens, response.usage.output_tokens
    if not tokens_in and not tokens_out:  # many servers do not count; budgets need a number all the same
        tokens_in = count(system) + sum(count(_content(message)) for message in messages)
        tokens_out = count(_content(response))
    return ProviderAnswer(text, calls, response, tokens_in, tokens_out, ending)


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be sent."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _content(message: Any) -> str:
    parts = (getattr(part, "content", None) or getattr(part, "args", None) for part in message.parts)
    return "\n".join(str(part) for part in parts if part)


def _failure(error: Exception) -> ProviderFailure:
    """Return the failure for an exception. Its text is not used: providers repeat what they were sent."""
    from pydantic_ai import exceptions as known

    status, code = getattr(error, "status_code", None), getattr(error, "provider_error_code", None)
    said = "" if status is None else f" with status {status}"
    if isinstance(code, str) and re.fullmatch(r"[a-zA-Z_]{3,40}", code):
        said += f" ({code})"
    after = getattr(error, "retry_after", None)
    match error:
        case known.ContentFilterError():
            return ProviderFailure("refused", "did not answer: the provider's filter stopped it")
        case known.ModelRequestTimeout() | known.ModelTimeoutError() | TimeoutError():
            return ProviderFailure("timeout", "did not answer in time", again=True)
        case known.ModelRateLimitError():
            return ProviderFailure("rate_limited", f"is rate limited{said}", again=True, after=after)
        case known.ModelQuotaExceededError():
            return ProviderFailure("rejected", f"has no quota or credit left{said}")
        case known.ModelAuthenticationError():
            return ProviderFailure("rejected", f"does not accept the key{said}; check MEMORY_MODEL_KEY")
        case known.ModelNotFoundError():
            return ProviderFailure("rejected", f"does not exist there{said}; check MEMORY_MODEL")
        case known.ModelContextWindowExceededError():
            return ProviderFailure("rejected", f"was given more than its context allows{said}")
        case known.ModelUnavailableError() | known.ModelServerError():
            return ProviderFailure("unavailable", f"is not available{said}", again=True, after=after)
        case known.ModelConnectionError() | OSError():
            return ProviderFailure("unavailable", "cannot be reached, or the connection was cut", again=True)
        case known.ModelHTTPError():
            again = status in (408, 409, 425) or (status or 0) >= 500
            kind = "unavailable" if again else "rejected"
            form = status in (400, 422)
            return ProviderFailure(kind, f"rejected the request{said}", again=again, after=after, form=form)
        case known.ModelRequestRejectedError() | known.UserError():
            return ProviderFailure("rejected", f"rejected the request{said}")
    if type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2", "anyio"):
        return ProviderFailure("unavailable", "cannot be reached, or the connection was cut", again=True)
    return ProviderFailure("garbage", "gave an unreadable answer", again=True)
