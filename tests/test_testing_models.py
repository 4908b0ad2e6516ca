"""The scripted model server, spoken to by the providers' own libraries over real HTTP, in all four protocols."""

from __future__ import annotations

import dataclasses
import functools
import http.client
import importlib
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from recollect.testing.models import (
    Call,
    ChatMessage,
    Cut,
    DeclaredTool,
    Fail,
    Garbage,
    ModelRequest,
    ModelServer,
    Say,
    Script,
    Stall,
    ToolResult,
    Turn,
    Usage,
)
from tests.fakes.model_server import StrictModelServer

PROTOCOLS = ("openai-chat", "openai-responses", "anthropic", "gemini")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "what to look for"}},
    "required": ["query"],
    "additionalProperties": False,
}
SEARCH = DeclaredTool("memory_search", "Finds memories.", SCHEMA)
CALL = Call("memory_search", {"query": "name, ім'я"})


@dataclasses.dataclass
class Heard:
    """An answer as the library understood it."""

    text: str
    calls: list[Call]
    usage: tuple[int, int]
    raw: Any = None


class Speaker:
    """A conversation held with one of the libraries: what each protocol calls differently, under one name."""

    def __init__(self, server: ModelServer, http_client: Any, *, stream: bool = False, **options: Any) -> None:
        self.server, self.http, self.streamed = server, http_client, stream
        self.history: list[Any] = []
        self.options = {"max_retries": 0, "timeout": 20.0, **options}
        self.system = "Be brief."
        self.tools: Sequence[DeclaredTool] = [SEARCH]

    @functools.cached_property
    def client(self) -> Any:
        raise NotImplementedError

    def ask(self, text: str) -> Heard:
        raise NotImplementedError

    def give(self, *results: ToolResult) -> Heard:
        raise NotImplementedError


class OpenAISpeaker(Speaker):
    @functools.cached_property
    def client(self) -> Any:
        openai = importlib.import_module("openai")
        return openai.OpenAI(base_url=self.server.openai_url, api_key="test", http_client=self.http, **self.options)


class ChatSpeaker(OpenAISpeaker):
    def ask(self, text: str) -> Heard:
        self.history.append({"role": "user", "content": text})
        return self._send()

    def give(self, *results: ToolResult) -> Heard:
        for result in results:
            self.history.append({"role": "tool", "tool_call_id": result.id, "content": result.text})
        return self._send()

    def _send(self) -> Heard:
        asked: dict[str, Any] = {"model": "m", "messages": [{"role": "system", "content": self.system}, *self.history]}
        if self.tools:
            asked["tools"] = [
                {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.schema}}
                for t in self.tools
            ]
        completions = self.client.chat.completions
        if self.streamed:
            with completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                answer = stream.get_final_completion()
        else:
            answer = completions.create(**asked)
        message = answer.choices[0].message
        self.history.append(message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
        for call in self.history[-1].get("tool_calls", []):
            call["function"].pop("parsed_arguments", None)
        calls = [
            Call(call.function.name, _loaded(call.function.arguments), id=call.id) for call in message.tool_calls or []
        ]
        assert answer.choices[0].finish_reason == ("tool_calls" if calls else "stop")
        return Heard(message.content or "", calls, (answer.usage.prompt_tokens, answer.usage.completion_tokens), answer)


class ResponsesSpeaker(OpenAISpeaker):
    def ask(self, text: str) -> Heard:
        self.history.append({"role": "user", "content": text})
        return self._send()

    def give(self, *results: ToolResult) -> Heard:
        for result in results:
            self.history.append({"type": "function_call_output", "call_id": result.id, "output": result.text})
        return self._send()

    def _send(self) -> Heard:
        tools = [
            {
                "type": "function",
                "name": t.name,
                "description": t.description,
                "parameters": t.schema,
                "strict": t.strict,
            }
            for t in self.tools
        ]
        asked = {"model": "m", "instructions": self.system, "input": self.history, "tools": tools}
        responses = self.client.responses
        if self.streamed:
            with responses.stream(**asked) as stream:
                answer = stream.get_final_response()
        else:
            answer = responses.create(**asked)
        assert answer.status == "completed"
        calls = []
        for item in answer.output:
            self.history.append(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}))
            if item.type == "function_call":
                calls.append(Call(item.name, _loaded(item.arguments), id=item.call_id))
            else:
                for part in self.history[-1]["content"]:
                    part.pop("parsed", None)
        return Heard(answer.output_text, calls, (answer.usage.input_tokens, answer.usage.output_tokens), answer)


class AnthropicSpeaker(Speaker):
    @functools.cached_property
    def client(self) -> Any:
        anthropic = importlib.import_module("anthropic")
        return anthropic.Anthropic(
            base_url=self.server.anthropic_url, api_key="test", http_client=self.http, **self.options
        )

    def ask(self, text: str) -> Heard:
        self.history.append({"role": "user", "content": text})
        return self._send()

    def give(self, *results: ToolResult) -> Heard:
        blocks = [
            {"type": "tool_result", "tool_use_id": one.id, "content": one.text, "is_error": one.is_error}
            for one in results
        ]
        self.history.append({"role": "user", "content": blocks})
        return self._send()

    def _send(self) -> Heard:
        tools = [{"name": t.name, "description": t.description, "input_schema": t.schema} for t in self.tools]
        asked = {"model": "m", "max_tokens": 100, "system": self.system, "messages": self.history, "tools": tools}
        if self.streamed:
            with self.client.messages.stream(**asked) as stream:
                answer = stream.get_final_message()
        else:
            answer = self.client.messages.create(**asked)
        self.history.append(
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]}
        )
        text = "\n".join(block.text for block in answer.content if block.type == "text")
        calls = [Call(block.name, block.input, id=block.id) for block in answer.content if block.type == "tool_use"]
        assert answer.stop_reason == ("tool_use" if calls else "end_turn")
        return Heard(text, calls, (answer.usage.input_tokens, answer.usage.output_tokens), answer)


class GeminiSpeaker(Speaker):
    @functools.cached_property
    def client(self) -> Any:
        genai = importlib.import_module("google.genai")
        options = {
            "base_url": self.server.gemini_url,
            "httpx_client": self.http,
            "timeout": int(self.options["timeout"] * 1000),
        }
        return genai.Client(api_key="test", http_options=options)

    def ask(self, text: str) -> Heard:
        self.history.append({"role": "user", "parts": [{"text": text}]})
        return self._send()

    def give(self, *results: ToolResult) -> Heard:
        parts = [
            {
                "function_response": {
                    "id": one.id,
                    "name": one.name,
                    "response": {"error" if one.is_error else "output": one.text},
                }
            }
            for one in results
        ]
        self.history.append({"role": "user", "parts": parts})
        return self._send()

    def _send(self) -> Heard:
        declared = [
            {"name": t.name, "description": t.description, "parameters_json_schema": t.schema} for t in self.tools
        ]
        config: dict[str, Any] = {
            "system_instruction": self.system,
            "automatic_function_calling": {"disable": True},
        }
        if declared:
            config["tools"] = [{"function_declarations": declared}]
        asked = {"model": "m", "contents": self.history, "config": config}
        if self.streamed:
            chunks = list(self.client.models.generate_content_stream(**asked))
        else:
            chunks = [self.client.models.generate_content(**asked)]
        found = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
        texts = [part.text for part in found if part.text]
        self.history.append({"role": "model", "parts": [part.model_dump(exclude_none=True) for part in found]})
        calls = [
            Call(part.function_call.name, part.function_call.args, id=part.function_call.id)
            for part in found
            if part.function_call
        ]
        usage = chunks[-1].usage_metadata
        joined = ("" if self.streamed else "\n").join(texts)
        return Heard(joined, calls, (usage.prompt_token_count, usage.candidates_token_count), chunks[-1])


SPEAKERS: dict[str, type[Speaker]] = {
    "openai-chat": ChatSpeaker,
    "openai-responses": ResponsesSpeaker,
    "anthropic": AnthropicSpeaker,
    "gemini": GeminiSpeaker,
}
Speak = Callable[..., Speaker]


def _loaded(arguments: str) -> Mapping[str, Any] | str:
    try:
        return json.loads(arguments)  # type: ignore[no-any-return]
    except ValueError:
        return arguments


@pytest.fixture(scope="module")
def http_client() -> Iterator[Any]:
    """One for all: making one reads all certificates of the machine."""
    httpx2: Any = importlib.import_module("httpx2")
    with httpx2.Client(trust_env=False) as client:
        yield client


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def speak(protocol: str, http_client: Any) -> Speak:
    def speak(server: ModelServer, *, stream: bool = False, **options: Any) -> Speaker:
        return SPEAKERS[protocol](server, http_client, stream=stream, **options)

    return speak


def errors_of(protocol: str) -> Any:
    """The exception that each library raises for a status, and for a connection that broke."""
    if protocol == "gemini":
        return importlib.import_module("google.genai.errors")
    return importlib.import_module("anthropic" if protocol == "anthropic" else "openai")


class TestAnswers:
    def test_a_text(self, speak: Speak, stream: bool) -> None:
        text = "You are called SG, я це знаю 🙂\n\n  and  more\n"
        with ModelServer([Say(text), Say("")]) as server:
            speaker = speak(server, stream=stream)
            assert speaker.ask("Who am I?").text == text
            speaker.history = []
            empty = speaker.ask("And now?")
        assert (empty.text, empty.calls, server.problems, server.remaining) == ("", [], [], 0)

    def test_a_call_and_its_result(self, speak: Speak, stream: bool, protocol: str) -> None:
        with ModelServer([[CALL], Say("You are called SG.")]) as server:
            speaker = speak(server, stream=stream)
            heard = speaker.ask("Who am I?")
            assert heard.calls == [CALL]
            assert (
                speaker.give(ToolResult("memory_search", "name: SG", id=heard.calls[0].id)).text == "You are called SG."
            )
        first, second = server.requests
        assert server.problems == []
        assert (first.protocol, first.model, first.system, first.stream) == (protocol, "m", "Be brief.", stream)
        assert first.tools == (SEARCH,)
        assert first.messages == (ChatMessage("user", "Who am I?"),) and first.tool_results == ()
        assert second.messages == (
            ChatMessage("user", "Who am I?"),
            ChatMessage("assistant", calls=(CALL,)),
            ChatMessage("tool", results=(ToolResult("memory_search", "name: SG"),)),
        )
        assert second.tool_results == (ToolResult("memory_search", "name: SG"),)
        assert second.tool_results[0].id == second.messages[1].calls[0].id == heard.calls[0].id != ""
        assert second.text == "Who am I?"
        assert ("contents" if protocol == "gemini" else "model") in second.raw and "host" in second.headers

    def test_parallel_calls_with_a_text(self, speak: Speak, stream: bool, protocol: str) -> None:
        other = Call("memory_search", {"query": "age"})
        with ModelServer([[Say("Let me look."), CALL, other], Say("SG, 42.")]) as server:
            speaker = speak(server, stream=stream)
            heard = speaker.ask("Who am I?")
            assert (heard.text, heard.calls) == ("Let me look.", [CALL, other])
            first, second = (call.id for call in heard.calls)
            assert first != second
            results = [
                ToolResult("memory_search", "SG", id=first),
                ToolResult("memory_search", "nothing", True, second),
            ]
            assert speaker.give(*results).text == "SG, 42."
        failed = protocol in ("anthropic", "gemini")  # OpenAI has no word for it
        assert server.requests[1].tool_results == (
            ToolResult("memory_search", "SG"),
            ToolResult("memory_search", "nothing", failed),
        )
        assert server.requests[1].messages[1] == ChatMessage("assistant", "Let me look.", (CALL, other))

    @pytest.mark.everyday(4)
    def test_usage_numbers_arrive(self, speak: Speak, stream: bool) -> None:
        turns: list[Turn] = [
            Say("Hello", usage=Usage(123, 45)),
            [Call("memory_search", {"query": "x"}, usage=Usage(7, 1)), Say("y", usage=Usage(0, 2))],
            Say("No numbers given"),
        ]
        with ModelServer(turns) as server:
            heard = []
            for _ in turns:
                heard.append(speak(server, stream=stream).ask("Hi").usage)
        assert heard[:2] == [(123, 45), (7, 3)]
        assert heard[2][0] > 1 and heard[2][1] > 1

    def test_a_script_can_be_a_function(self, speak: Speak, stream: bool) -> None:
        def script(asked: ModelRequest) -> Turn:
            if asked.tool_results:
                return Say(f"It says {asked.tool_results[0].text}")
            return Call(asked.tools[0].name, {"query": asked.text})

        with ModelServer(script) as server:
            speaker = speak(server, stream=stream)
            heard = speaker.ask("tea")
            assert heard.calls == [Call("memory_search", {"query": "tea"})]
            assert speaker.give(ToolResult("memory_search", "green", id=heard.calls[0].id)).text == "It says green"
            assert server.remaining is None

    def test_a_turn_can_be_a_function(self, speak: Speak) -> None:
        with ModelServer([Say("one"), lambda asked: Say(asked.text.upper())]) as server:
            speaker = speak(server)
            assert [speaker.ask("a").text, speaker.ask("b").text] == ["one", "B"]

    def test_malformed_arguments(self, speak: Speak, stream: bool, protocol: str) -> None:
        text = '{"query": name}'
        with ModelServer([Call("memory_search", text)]) as server:
            speaker = speak(server, stream=stream)
            if protocol == "anthropic" and stream:
                with pytest.raises(ValueError, match="JSON"):
                    speaker.ask("Hi")
            elif protocol == "anthropic":
                assert speaker.ask("Hi").calls == [Call("memory_search", {"INVALID_JSON": text})]
            elif protocol == "gemini":
                heard = speaker.ask("Hi")
                assert heard.calls == [] and heard.raw.candidates[0].finish_reason == "MALFORMED_FUNCTION_CALL"
            else:
                assert speaker.ask("Hi").calls == [Call("memory_search", text)]

    def test_ids_can_be_chosen(self, speak: Speak) -> None:
        with ModelServer([Call("memory_search", {"query": "x"}, id="mine_1")]) as server:
            assert speak(server).ask("Hi").calls[0].id == "mine_1"


class TestWireFormats:
    """The libraries forgive much; their types, strictly validated, do not."""

    TURN = (Say("Let me look at it."), CALL, Call("memory_search", {"query": "b"}))

    def _streamed(self, server: ModelServer, path: str, body: Any, headers: Mapping[str, str]) -> list[Any]:
        status, content, _ = post(server, path, body, headers)
        assert status == 200
        lines = content.decode().split("\n")
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]

    def test_chat(self) -> None:
        types: Any = importlib.import_module("openai.types.chat")
        with ModelServer([self.TURN, self.TURN]) as server:
            _, whole, _ = post(server, "/v1/chat/completions", CHAT, BEARER)
            chunks = self._streamed(
                server,
                "/v1/chat/completions",
                {**CHAT, "stream": True, "stream_options": {"include_usage": True}},
                BEARER,
            )
        assert types.ChatCompletion.model_validate_json(whole).choices[0].finish_reason == "tool_calls"
        seen = [types.ChatCompletionChunk.model_validate(chunk) for chunk in chunks]
        assert seen[-1].choices == [] and seen[-1].usage.total_tokens and all(c.usage is None for c in seen[:-1])

    def test_responses(self) -> None:
        types: Any = importlib.import_module("openai.types.responses")
        pydantic: Any = importlib.import_module("pydantic")
        with ModelServer([self.TURN, self.TURN]) as server:
            _, whole, _ = post(server, "/v1/responses", RESPONSES, BEARER)
            events = self._streamed(server, "/v1/responses", {**RESPONSES, "stream": True}, BEARER)
        assert [item.type for item in types.Response.model_validate_json(whole).output] == [
            "message",
            "function_call",
            "function_call",
        ]
        adapter = pydantic.TypeAdapter(types.ResponseStreamEvent)
        seen = [adapter.validate_python(one) for one in events]
        assert [one.sequence_number for one in seen] == list(range(len(seen)))
        assert all(not type(one).__name__.startswith("ResponseError") for one in seen)

    def test_messages(self) -> None:
        types: Any = importlib.import_module("anthropic.types")
        pydantic: Any = importlib.import_module("pydantic")
        with ModelServer([self.TURN, self.TURN]) as server:
            _, whole, _ = post(server, "/v1/messages", MESSAGES, ANTHROPIC)
            events = self._streamed(server, "/v1/messages", {**MESSAGES, "stream": True}, ANTHROPIC)
        assert types.Message.model_validate_json(whole).stop_reason == "tool_use"
        adapter = pydantic.TypeAdapter(types.RawMessageStreamEvent)
        kinds = [adapter.validate_python(one).type for one in events if one["type"] != "ping"]
        assert (kinds[0], kinds[-2], kinds[-1]) == ("message_start", "message_delta", "message_stop")
        assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 3

    def test_gemini(self) -> None:
        types: Any = importlib.import_module("google.genai.types")
        path = "/v1beta/models/m:streamGenerateContent"
        with ModelServer([self.TURN] * 2) as server:
            _, whole, _ = post(server, "/v1beta/models/m:generateContent", GEMINI, GOOGLE)
            events = self._streamed(server, path + "?alt=sse", GEMINI, GOOGLE)
        assert len(types.GenerateContentResponse.model_validate_json(whole).function_calls) == 2
        seen = [types.GenerateContentResponse.model_validate(one) for one in events]
        assert "".join(one.candidates[0].content.parts[0].text or "" for one in seen) == "Let me look at it."
        assert [one.candidates[0].finish_reason for one in seen] == [None] * (len(seen) - 1) + ["STOP"]


def _status(error: Any) -> int:
    return int(getattr(error, "status_code", None) or error.code)


class TestFailures:
    @pytest.mark.everyday(16)
    @pytest.mark.parametrize(
        ("status", "openai", "anthropic", "gemini"),
        [
            (400, "BadRequestError", "BadRequestError", "ClientError"),
            (401, "AuthenticationError", "AuthenticationError", "ClientError"),
            (403, "PermissionDeniedError", "PermissionDeniedError", "ClientError"),
            (429, "RateLimitError", "RateLimitError", "ClientError"),
            (500, "InternalServerError", "InternalServerError", "ServerError"),
            (503, "InternalServerError", "ServiceUnavailableError", "ServerError"),
        ],
    )
    def test_the_libraries_raise_their_own_errors(
        self, speak: Speak, protocol: str, stream: bool, status: int, openai: str, anthropic: str, gemini: str
    ) -> None:
        name = {"anthropic": anthropic, "gemini": gemini}.get(protocol, openai)
        with ModelServer([Fail(status, "that went wrong", retry_after=7), Say("better")]) as server:
            speaker = speak(server, stream=stream)
            with pytest.raises(getattr(errors_of(protocol), name), match="that went wrong") as caught:
                speaker.ask("Hi")
            assert _status(caught.value) == status
            assert caught.value.response.headers["retry-after"] == "7"
            speaker.history = []
            assert speaker.ask("Again").text == "better"
        assert server.problems == [] and len(server.requests) == 2

    def test_errors_are_in_the_format_of_the_protocol(self) -> None:
        with ModelServer([Fail(429, "slow down", 2.5)] * 3 + [Fail(529, "overloaded")]) as server:
            _, chat, _ = post(server, "/v1/chat/completions", CHAT, BEARER)
            _, claude, _ = post(server, "/v1/messages", MESSAGES, ANTHROPIC)
            _, gemini, _ = post(server, "/v1beta/models/m:generateContent", GEMINI, GOOGLE)
            _, busy, _ = post(server, "/v1/messages", MESSAGES, ANTHROPIC)
        assert json.loads(chat) == {"error": {"message": "slow down", "type": "requests", "param": None, "code": None}}
        wrong = json.loads(claude)
        assert (wrong["type"], wrong["error"]) == ("error", {"type": "rate_limit_error", "message": "slow down"})
        retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"}
        assert json.loads(gemini) == {
            "error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED", "details": [retry]}
        }
        assert json.loads(busy)["error"]["type"] == "overloaded_error"

    def test_the_library_retries_and_is_answered(self, http_client: Any) -> None:
        with ModelServer([Fail(429, retry_after=0.001), Fail(500, retry_after=0.001), Say("at last")]) as server:
            speaker = ChatSpeaker(server, http_client, max_retries=2)
            assert speaker.ask("Hi").text == "at last" and len(server.requests) == 3

    @pytest.mark.everyday(2)
    def test_a_stall_ends_in_the_clients_timeout(self, speak: Speak, stream: bool, protocol: str) -> None:
        with ModelServer([Stall(), Say("back")]) as server:
            httpx2: Any = importlib.import_module("httpx2")
            wanted = httpx2.TimeoutException if protocol == "gemini" else errors_of(protocol).APITimeoutError
            with pytest.raises(wanted):
                speak(server, stream=stream, timeout=0.15).ask("Hi")
            assert speak(server).ask("Hi").text == "back"
        assert server.problems == []

    def test_a_stall_until_an_event(self, speak: Speak, stream: bool) -> None:
        gate = threading.Event()
        arrived = threading.Event()

        def script(asked: ModelRequest) -> Turn:
            arrived.set()
            return Stall(until=gate, then=Say("late"))

        with ModelServer(script) as server, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(speak(server, stream=stream).ask, "Hi")
            assert arrived.wait(120) and not waiting.done()
            gate.set()
            assert waiting.result(120).text == "late"

    def test_a_stall_of_seconds(self, speak: Speak, protocol: str) -> None:
        with ModelServer([Stall(0.03, then=Say("late")), Stall(0.03)]) as server:
            assert speak(server).ask("Hi").text == "late"
            with pytest.raises(_broken(protocol)):
                speak(server).ask("Hi")

    @pytest.mark.everyday(8)
    @pytest.mark.parametrize("at", [0, 0.3, 1])
    def test_a_cut_connection(self, speak: Speak, stream: bool, protocol: str, at: float) -> None:
        with ModelServer([Cut(Say("a sentence that goes on and on"), at=at), Say("whole")]) as server:
            with pytest.raises(_broken(protocol)):
                speak(server, stream=stream).ask("Hi")
            assert speak(server, stream=stream).ask("Hi").text == "whole"

    def test_garbage(self, speak: Speak, protocol: str) -> None:
        with ModelServer([Garbage(), Garbage(b'{"hello": 1', "application/json"), Say("good")]) as server:
            for _ in range(2):
                with pytest.raises(Exception, match=r"."):  # each library in its own way, some by stumbling
                    speak(server).ask("Hi")
            assert speak(server).ask("Hi").text == "good"

    def test_garbage_arrives_as_it_is(self) -> None:
        with ModelServer([Garbage(b"\x00\xff")]) as server:
            status, body, headers = post(server, "/v1/messages", MESSAGES, ANTHROPIC)
        assert (status, body, headers["content-type"]) == (200, b"\x00\xff", "text/html")

    def test_an_exhausted_script(self, speak: Speak, stream: bool) -> None:
        with ModelServer([Say("only this")]) as server:
            speaker = speak(server, stream=stream)
            speaker.ask("Hi")
            with pytest.raises(Exception, match="exhausted after 1 turns") as caught:
                speaker.ask("More")
            assert _status(caught.value) == 400
        assert len(server.problems) == 1 and "exhausted" in server.problems[0]
        assert len(server.requests) == 2

    def test_a_script_that_fails(self, speak: Speak) -> None:
        def script(asked: ModelRequest) -> Turn:
            raise AssertionError("not what I expected")

        wrong: Any = [Fail()]
        for given in (script, [wrong], ["a text is no turn"]):
            broken: Any = given
            with ModelServer(broken) as server:
                with pytest.raises(Exception, match="The script failed"):
                    speak(server).ask("Hi")
                assert "The script failed" in server.problems[0]


def _broken(protocol: str) -> tuple[type[BaseException], ...]:
    """What a library raises when a connection breaks: its own error, or, for the body of some, httpx's."""
    httpx2: Any = importlib.import_module("httpx2")
    own = () if protocol == "gemini" else (errors_of(protocol).APIConnectionError,)
    return (*own, httpx2.TransportError)


BEARER = {"Authorization": "Bearer test"}
ANTHROPIC = {"x-api-key": "test", "anthropic-version": "2026-10-21"}
GOOGLE = {"x-goog-api-key": "test"}
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
RESPONSES: dict[str, Any] = {"model": "m", "input": "Hi"}
MESSAGES: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
GEMINI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
PLACES: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "openai-chat": ("/v1/chat/completions", CHAT, BEARER),
    "openai-responses": ("/v1/responses", RESPONSES, BEARER),
    "anthropic": ("/v1/messages", MESSAGES, ANTHROPIC),
    "gemini": ("/v1beta/models/m:generateContent", GEMINI, GOOGLE),
}


def post(
    server: ModelServer, path: str, body: Any, headers: Mapping[str, str], *, method: str = "POST"
) -> tuple[int, bytes, dict[str, str]]:
    """A request without any library, which would not let us send what is wrong."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=120)
    try:
        connection.request(method, path, content, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


@pytest.fixture(scope="module")
def agreeable() -> Iterator[ModelServer]:
    with StrictModelServer(lambda asked: Say("fine")) as server:
        yield server


def verdict(server: ModelServer, protocol: str, body: Any, headers: Mapping[str, str] | None = None) -> str:
    """What is wrong with a request; nothing if it is accepted."""
    path, _, usual = PLACES[protocol]
    status, content, _ = post(server, path, body, usual if headers is None else headers)
    if status == 200:
        return ""
    message: str = json.loads(content)["error"]["message"]
    return f"{status} {message}"


def declared(protocol: str, name: str, schema: Any, *, strict: bool | None = None) -> dict[str, Any]:
    """A good request with one tool."""
    more = {} if strict is None else {"strict": strict}
    tool: dict[str, Any] = {
        "openai-chat": {"type": "function", "function": {"name": name, "parameters": schema, **more}},
        "openai-responses": {"type": "function", "name": name, "parameters": schema, "strict": None, **more},
        "anthropic": {"name": name, "input_schema": schema, **more},
        "gemini": {"functionDeclarations": [{"name": name, "parametersJsonSchema": schema}]},
    }[protocol]
    return {**PLACES[protocol][1], "tools": [tool]}


def changed(**keywords: Any) -> dict[str, Any]:
    """The good schema, with more keywords for its one property."""
    return {**SCHEMA, "properties": {"query": {**SCHEMA["properties"]["query"], **keywords}}}


class TestRequired:
    def test_a_good_request_passes(self, agreeable: ModelServer, protocol: str) -> None:
        assert verdict(agreeable, protocol, PLACES[protocol][1]) == ""

    @pytest.mark.parametrize(
        ("protocol", "field"),
        [
            ("openai-chat", "model"),
            ("openai-chat", "messages"),
            ("openai-responses", "model"),
            ("openai-responses", "input"),
            ("anthropic", "model"),
            ("anthropic", "messages"),
            ("anthropic", "max_tokens"),
            ("gemini", "contents"),
        ],
    )
    def test_fields(self, agreeable: ModelServer, protocol: str, field: str) -> None:
        body = {name: value for name, value in PLACES[protocol][1].items() if name != field}
        assert verdict(agreeable, protocol, body).startswith("400 ") and field in verdict(agreeable, protocol, body)
        assert verdict(agreeable, protocol, {**body, field: 0.5}).startswith("400 ")
        if field not in ("model", "max_tokens"):
            assert verdict(agreeable, protocol, {**body, field: []}).startswith("400 ")

    def test_a_key(self, agreeable: ModelServer, protocol: str) -> None:
        _, body, headers = PLACES[protocol]
        without = {name: value for name, value in headers.items() if value not in ("test", "Bearer test")}
        assert verdict(agreeable, protocol, body, without).startswith("403 " if protocol == "gemini" else "401 ")

    def test_the_right_key(self, protocol: str) -> None:
        _, body, headers = PLACES[protocol]
        with ModelServer(lambda asked: Say("fine"), key="test") as server:
            assert verdict(server, protocol, body) == ""
            wrong = {name: value.replace("test", "other") for name, value in headers.items()}
            assert verdict(server, protocol, body, wrong).startswith("403 " if protocol == "gemini" else "401 ")

    def test_a_key_in_the_query(self, agreeable: ModelServer) -> None:
        assert post(agreeable, "/v1beta/models/m:generateContent?key=test", GEMINI, {})[0] == 200

    def test_a_body_that_is_an_object(self, agreeable: ModelServer, protocol: str) -> None:
        for body in (b"", b"{", b"[]", b'{"model": NaN}', b"\xff", b"[" * 100_000, {**PLACES[protocol][1], "tools": 3}):
            assert verdict(agreeable, protocol, body).startswith("400 ")

    def test_the_version_of_anthropic(self, agreeable: ModelServer) -> None:
        status, content, _ = post(agreeable, "/v1/messages", MESSAGES, {"x-api-key": "test"})
        assert status == 400 and b"anthropic-version: header is required" in content


def chat_of(*messages: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Hi"}, *messages]}


def called(*ids: str) -> dict[str, Any]:
    calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def told(id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "ok"}


def claude_of(*messages: Any) -> dict[str, Any]:
    named = [{"role": role, "content": content} for role, content in messages]
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}, *named]}


def use(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "f", "input": {}}


def outcome(id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "ok"}


def gemini_of(*contents: Any) -> dict[str, Any]:
    named = [{"role": role, "parts": list(parts)} for role, *parts in contents]
    return {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}, *named]}


def wish(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **more}}


def reply(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": "ok"}, **more}}


TEXT = {"type": "text", "text": "And?"}
RESULTS: list[tuple[str, Any, bool]] = [
    ("openai-chat", chat_of(called("a", "b"), told("b"), told("a")), True),
    ("openai-chat", chat_of(called("a"), told("a"), {"role": "user", "content": "And?"}), True),
    ("openai-chat", chat_of(called("a")), False),
    ("openai-chat", chat_of(called("a", "b"), told("a")), False),
    ("openai-chat", chat_of(called("a"), {"role": "user", "content": "And?"}, told("a")), False),
    ("openai-chat", chat_of(told("a")), False),
    ("openai-chat", chat_of(called("a"), told("b")), False),
    ("openai-chat", chat_of(called("a"), told("a"), told("a")), False),
    ("openai-chat", chat_of(called("a"), {"role": "tool", "content": "ok"}), False),
    ("openai-chat", chat_of(called("a"), {"role": "tool", "tool_call_id": "a"}), False),
    ("openai-chat", chat_of({"role": "assistant", "content": None}), False),
    ("openai-chat", chat_of({"role": "assistant", "content": None, "tool_calls": []}), False),
    ("openai-chat", chat_of({"role": "robot", "content": "Hi"}), False),
    (
        "openai-chat",
        chat_of(
            {
                "role": "assistant",
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": {}}}],
            }
        ),
        False,
    ),
    (
        "openai-responses",
        {
            "model": "m",
            "input": [
                {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a", "output": "ok"},
            ],
        },
        True,
    ),
    (
        "openai-responses",
        {"model": "m", "input": [{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}]},
        False,
    ),
    (
        "openai-responses",
        {"model": "m", "input": [{"type": "function_call_output", "call_id": "a", "output": "ok"}]},
        False,
    ),
    (
        "openai-responses",
        {
            "model": "m",
            "input": [
                {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a"},
            ],
        },
        False,
    ),
    ("openai-responses", {"model": "m", "input": [{"type": "function_call", "call_id": "a", "name": "f"}]}, False),
    ("openai-responses", {"model": "m", "input": [{"role": "user"}]}, False),
    ("openai-responses", {"model": "m", "input": [{"role": "robot", "content": "Hi"}]}, False),
    ("openai-responses", {"model": "m", "input": "Hi", "conversation": "conv_1"}, False),
    ("anthropic", claude_of(("assistant", [use("a"), use("b")]), ("user", [outcome("b"), outcome("a"), TEXT])), True),
    (
        "anthropic",
        claude_of(("assistant", [use("a"), use("b")]), ("user", [outcome("b")]), ("user", [outcome("a")])),
        True,
    ),
    ("anthropic", claude_of(("system", "Be brief."), ("user", "And?")), True),
    ("anthropic", claude_of(("assistant", [use("a")])), False),
    ("anthropic", claude_of(("assistant", [use("a"), use("b")]), ("user", [outcome("a")])), False),
    ("anthropic", claude_of(("assistant", [use("a")]), ("user", "And?"), ("user", [outcome("a")])), False),
    ("anthropic", claude_of(("assistant", [use("a")]), ("user", [TEXT, outcome("a")])), False),
    ("anthropic", claude_of(("user", [outcome("a")])), False),
    ("anthropic", claude_of(("assistant", [use("a")]), ("user", [outcome("b")])), False),
    ("anthropic", claude_of(("assistant", [use("a"), use("a")]), ("user", [outcome("a"), outcome("a")])), False),
    ("anthropic", claude_of(("assistant", [{**use("a"), "input": "{}"}]), ("user", [outcome("a")])), False),
    ("anthropic", claude_of(("assistant", [outcome("a")])), False),
    ("anthropic", claude_of(("user", [use("a")])), False),
    ("anthropic", claude_of(("assistant", "")), False),
    ("anthropic", claude_of(("assistant", [])), False),
    ("anthropic", claude_of(("assistant", [{"type": "text", "text": ""}])), False),
    ("anthropic", claude_of(("assistant", None)), False),
    ("anthropic", claude_of(("robot", "Hi")), False),
    ("anthropic", {**MESSAGES, "messages": [{"role": "assistant", "content": "Hi"}]}, False),
    ("gemini", gemini_of(("model", wish(), wish("g")), ("user", reply("g"), reply())), True),
    ("gemini", gemini_of(("model", wish(id="1"), wish(id="2")), ("user", reply(id="2"), reply(id="1"))), True),
    ("gemini", gemini_of(("model", {"function_call": {"name": "f"}}), ("function", reply())), True),
    ("gemini", gemini_of(("model", wish())), False),
    ("gemini", gemini_of(("model", wish(), wish())), False),
    ("gemini", gemini_of(("model", wish(), wish()), ("user", reply())), False),
    ("gemini", gemini_of(("model", wish()), ("user", {"text": "And?"})), False),
    ("gemini", gemini_of(("model", wish()), ("model", {"text": "And?"})), False),
    ("gemini", gemini_of(("user", reply())), False),
    ("gemini", gemini_of(("user", wish())), False),
    ("gemini", gemini_of(("model", wish()), ("user", reply("g"))), False),
    ("gemini", gemini_of(("model", wish(id="1")), ("user", reply(id="2"))), False),
    ("gemini", gemini_of(("model", wish()), ("user", reply(response="ok"))), False),
    ("gemini", gemini_of(("model", wish()), ("user", reply(""))), False),
    ("gemini", gemini_of(("model", wish("")), ("user", reply())), False),
    ("gemini", gemini_of(("model",)), False),
    ("gemini", gemini_of(("robot", {"text": "Hi"})), False),
]


@pytest.mark.parametrize(("name", "body", "right"), RESULTS)
def test_calls_and_results_belong_together(agreeable: ModelServer, name: str, body: Any, right: bool) -> None:
    found = verdict(agreeable, name, body)
    assert (found == "") if right else found.startswith("400 "), found


class TestTools:
    @pytest.mark.parametrize("name", ["a", "memory_search", "Memory-Search_2", "a" * 64])
    def test_good_names(self, agreeable: ModelServer, protocol: str, name: str) -> None:
        assert verdict(agreeable, protocol, declared(protocol, name, SCHEMA)) == ""

    @pytest.mark.parametrize("name", ["", "memory search", "пам'ять", "a" * 129, "a/b", None, "a\n"])
    def test_bad_names(self, agreeable: ModelServer, protocol: str, name: Any) -> None:
        assert verdict(agreeable, protocol, declared(protocol, name, SCHEMA)).startswith("400 ")

    def test_names_that_only_some_take(self, agreeable: ModelServer, protocol: str) -> None:
        for name, gemini in (("memory.search", True), ("memory:search", True), ("a" * 65, True), ("2nd", False)):
            found = verdict(agreeable, protocol, declared(protocol, name, SCHEMA))
            assert (found == "") == ((protocol == "gemini") == gemini)

    @pytest.mark.parametrize(
        "schema",
        [
            {},
            {"type": "string"},
            {"type": "object", "properties": []},
            {"type": "object", "properties": {"a": {"type": "text"}}},
            {"type": "object", "properties": {"a": "string"}},
            {"type": "object", "properties": {"a": {}}, "required": "a"},
            {"type": "object", "properties": {"a": {"enum": []}}},
            {"type": "object", "properties": {"a": {"$ref": "http://example.com/a"}}},
            "object",
        ],
    )
    def test_bad_schemas(self, agreeable: ModelServer, protocol: str, schema: Any) -> None:
        assert verdict(agreeable, protocol, declared(protocol, "f", schema)).startswith("400 ")

    def test_a_rich_schema_that_is_not_strict_passes(self, agreeable: ModelServer, protocol: str) -> None:
        schema = {
            "type": "object",
            "properties": {
                "a": {"type": ["string", "null"], "minLength": 1, "maxLength": 9, "default": None, "pattern": "a"},
                "b": {"anyOf": [{"type": "integer", "minimum": 1}, {"$ref": "#/$defs/b"}]},
                "c": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "uniqueItems": True},
                "d": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "$defs": {"b": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}}},
        }
        assert verdict(agreeable, protocol, declared(protocol, "f", schema)) == ""

    @pytest.mark.parametrize("name", ["openai-chat", "openai-responses", "anthropic"])
    def test_no_choice_at_the_top(self, agreeable: ModelServer, name: str) -> None:
        for keyword in ("anyOf", "oneOf", "allOf"):
            schema = {**SCHEMA, keyword: [{"required": ["query"]}]}
            assert verdict(agreeable, name, declared(name, "f", schema)).startswith("400 ")

    @pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
    def test_openai_wants_properties_and_items(self, agreeable: ModelServer, name: str) -> None:
        assert "no properties" in verdict(agreeable, name, declared(name, "f", {"type": "object"}))
        assert "without items" in verdict(agreeable, name, declared(name, "f", changed(type="array")))
        assert verdict(agreeable, name, declared(name, "f", None)) == ""

    def test_anthropic_built_in_tools(self, agreeable: ModelServer) -> None:
        memory = {"type": "memory_20250818", "name": "memory"}
        body = declared("anthropic", "f", SCHEMA)
        body["tools"].append(memory)
        assert verdict(agreeable, "anthropic", body) == ""
        assert agreeable.requests[-1].tools == (
            DeclaredTool("f", "", SCHEMA),
            DeclaredTool("memory", kind="memory_20250818"),
        )
        for wrong in ({"type": "memory", "name": "memory"}, {"name": "g"}, "memory"):
            assert verdict(agreeable, "anthropic", {**MESSAGES, "tools": [wrong]}).startswith("400 ")

    @pytest.mark.parametrize("name", ["anthropic", "gemini"])
    def test_no_name_twice(self, agreeable: ModelServer, name: str) -> None:
        body = declared(name, "f", SCHEMA)
        assert verdict(agreeable, name, {**body, "tools": body["tools"] * 2}).startswith("400 ")


STRICT = ["openai-chat", "openai-responses", "anthropic"]


class TestStrict:
    @pytest.mark.parametrize("name", STRICT)
    def test_a_strict_schema_passes(self, agreeable: ModelServer, name: str) -> None:
        inner = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        schema = {
            "type": "object",
            "properties": {
                "a": {"type": ["string", "null"], "format": "date", "pattern": "^a"},
                "b": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "null"}]},
                "c": {"type": "array", "items": {"type": "integer", "enum": [1, 2]}, "minItems": 1},
                "d": {"const": "x"},
            },
            "required": ["a", "b", "c", "d"],
            "additionalProperties": False,
            "$defs": {"b": inner},
        }
        assert verdict(agreeable, name, declared(name, "f", schema, strict=True)) == ""
        assert agreeable.requests[-1].tools[0].strict

    @pytest.mark.parametrize("name", STRICT)
    def test_no_additional_properties(self, agreeable: ModelServer, name: str) -> None:
        free = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        nested = changed(type="array", items={"type": "object", "properties": {}})
        for schema in (free, {**free, "additionalProperties": True}, nested):
            assert "additionalProperties" in verdict(agreeable, name, declared(name, "f", schema, strict=True))
            assert verdict(agreeable, name, declared(name, "f", schema, strict=False)) == ""

    @pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
    def test_openai_requires_everything(self, agreeable: ModelServer, name: str) -> None:
        for names in ([], ["query", "other"]):
            schema = {**SCHEMA, "required": names}
            assert "'required'" in verdict(agreeable, name, declared(name, "f", schema, strict=True))

    def test_anthropic_does_not(self, agreeable: ModelServer) -> None:
        body = declared("anthropic", "f", {**SCHEMA, "required": []}, strict=True)
        assert verdict(agreeable, "anthropic", body) == ""

    @pytest.mark.parametrize(
        ("keywords", "openai", "anthropic"),
        [
            ({"default": "x"}, False, True),
            ({"minLength": 1}, False, False),
            ({"maxLength": 1}, False, False),
            ({"oneOf": [{"type": "string"}]}, False, False),
            ({"allOf": [{"type": "string"}]}, False, True),
            ({"not": {"type": "string"}}, False, False),
            ({"if": {}, "then": {}, "else": {}}, False, False),
            ({"type": "integer", "minimum": 1}, True, False),
            ({"type": "integer", "maximum": 1}, True, False),
            ({"type": "number", "exclusiveMinimum": 1}, True, False),
            ({"type": "number", "multipleOf": 2}, True, False),
            ({"type": "array", "items": {"type": "string"}, "minItems": 1}, True, True),
            ({"type": "array", "items": {"type": "string"}, "minItems": 2}, True, False),
            ({"type": "array", "items": {"type": "string"}, "maxItems": 2}, True, False),
            ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, False, False),
            ({"pattern": "^a"}, True, True),
            ({"format": "uuid"}, True, True),
            ({"format": "uri"}, False, True),
            ({"format": "zip-code"}, False, False),
            ({"anyOf": [{"description": "untyped"}]}, False, False),
        ],
    )
    def test_keywords(self, agreeable: ModelServer, keywords: Any, openai: bool, anthropic: bool) -> None:
        for name in STRICT:
            right = anthropic if name == "anthropic" else openai
            found = verdict(agreeable, name, declared(name, "f", changed(**keywords), strict=True))
            assert (found == "") if right else found.startswith("400 "), found
            assert verdict(agreeable, name, declared(name, "f", changed(**keywords), strict=False)) == ""

    def test_anthropic_number_of_tools_and_options(self, agreeable: ModelServer) -> None:
        def tools(count: int, optional: int) -> dict[str, Any]:
            free = {f"p{number}": {"type": "string"} for number in range(optional)}
            schemas = [{**SCHEMA, "properties": {**SCHEMA["properties"], **free}}, *[SCHEMA] * (count - 1)]
            named = [{"name": f"f{n}", "input_schema": s, "strict": True} for n, s in enumerate(schemas)]
            return {**MESSAGES, "tools": named}

        assert verdict(agreeable, "anthropic", tools(20, 24)) == ""
        assert verdict(agreeable, "anthropic", tools(21, 0)).startswith("400 ")
        assert verdict(agreeable, "anthropic", tools(1, 25)).startswith("400 ")


def subset(schema: Any, **more: Any) -> dict[str, Any]:
    return {**GEMINI, "tools": [{"function_declarations": [{"name": "f", "parameters": schema, **more}]}]}


class TestGeminiSchema:
    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True, "format": "date-time"}}},
            {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]},
            {"type": "OBJECT", "properties": {"a": {"type": "ARRAY", "items": {"type": "STRING"}, "min_items": 1}}},
            {"type": "OBJECT", "properties": {"a": {"any_of": [{"type": "STRING"}, {"type": "NUMBER"}]}}},
            {"type": "OBJECT", "properties": {"a": {"type": "STRING", "enum": ["x"]}}, "propertyOrdering": ["a"]},
        ],
    )
    def test_the_subset_passes(self, agreeable: ModelServer, schema: Any) -> None:
        assert verdict(agreeable, "gemini", subset(schema)) == ""
        assert agreeable.requests[-1].tools == (DeclaredTool("f", "", schema),)

    @pytest.mark.parametrize(
        "schema",
        [
            SCHEMA,
            {"type": "STRING"},
            {"type": "OBJECT"},
            {"type": "OBJECT", "properties": {"a": {"type": "TEXT"}}},
            {"type": "OBJECT", "properties": {"a": {"type": ["STRING", "NULL"]}}},
            {"type": "OBJECT", "properties": {"a": {"oneOf": []}}},
            {"type": "OBJECT", "properties": {"a": {"$ref": "#/x"}}},
            {"type": "OBJECT", "properties": {"a": {"type": "ARRAY"}}},
            {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "required": ["b"]},
            {"type": "OBJECT", "properties": {"a": {"type": "ARRAY", "items": {"const": 1}}}},
            {"type": "OBJECT", "properties": {"a": {"anyOf": [{"type": "X"}]}}},
            {"type": "OBJECT", "properties": ["a"]},
            "OBJECT",
        ],
    )
    def test_the_rest_is_refused(self, agreeable: ModelServer, schema: Any) -> None:
        assert verdict(agreeable, "gemini", subset(schema)).startswith("400 ")

    def test_what_the_library_makes_of_a_function(self, http_client: Any) -> None:
        def remember(text: str, tags: list[str], sure: bool = True) -> str:
            """Keeps a memory."""
            return text

        with StrictModelServer([Say("kept")]) as server:
            config = {"tools": [remember], "automatic_function_calling": {"disable": True}}
            client = GeminiSpeaker(server, http_client).client
            assert client.models.generate_content(model="m", contents="Hi", config=config).text == "kept"
        assert [tool.name for tool in server.requests[0].tools] == ["remember"] and server.problems == []


class TestServer:
    @pytest.mark.everyday(2)
    def test_many_at_once(self, protocol: str, http_client: Any) -> None:
        def echo(asked: ModelRequest) -> Turn:
            return Say(f"echo {asked.text}")

        with ModelServer(echo) as server, ThreadPoolExecutor(32) as pool:
            together = threading.Barrier(32)
            client = SPEAKERS[protocol](server, http_client).client

            def ask(number: int) -> str:
                speaker = SPEAKERS[protocol](server, http_client, stream=bool(number % 2))
                speaker.client = client  # making one takes longer than talking
                together.wait(120)
                return speaker.ask(str(number)).text

            assert list(pool.map(ask, range(32))) == [f"echo {number}" for number in range(32)]
        assert len(server.requests) == 32 and server.problems == []

    def test_a_list_is_handed_out_once(self) -> None:
        with ModelServer([Say(str(number)) for number in range(64)]) as server, ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: post(server, "/v1/responses", RESPONSES, BEARER)[1], range(64)))
        said = {json.loads(answer)["output"][0]["content"][0]["text"] for answer in answers}
        assert said == {str(number) for number in range(64)}

    def test_connections_are_kept_alive(self, agreeable: ModelServer) -> None:
        connection = http.client.HTTPConnection(urlsplit(agreeable.url).netloc, timeout=120)
        connection.connect()
        first = connection.sock
        for protocol in PROTOCOLS:
            path, body, headers = PLACES[protocol]
            for wrong in ({}, body, {**body, "stream": True}):
                connection.request("POST", path, json.dumps(wrong), headers)
                assert connection.getresponse().read()
                assert connection.sock is first
        connection.close()

    def test_a_client_that_hangs_up(self) -> None:
        left = threading.Event()
        asked = threading.Event()

        def script(request: ModelRequest) -> Turn:
            if request.text != "leave":
                return Say("fine")
            asked.set()
            assert left.wait(120)
            return Say("word " * 200_000)

        with ModelServer(script) as server:
            content = json.dumps({**CHAT, "messages": [{"role": "user", "content": "leave"}], "stream": True}).encode()
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\nContent-Length: %d\r\n\r\n"
            for sent in (head % len(content) + content, head % 100 + b"{", head[:20], b""):
                with socket.create_connection(urlsplit(server.url).netloc.split(":")) as client:  # type: ignore[arg-type]
                    client.sendall(sent)
                    if sent.endswith(content):
                        assert asked.wait(120)
            left.set()
            assert post(server, "/v1/responses", RESPONSES, BEARER)[0] == 200
        assert server.problems == []

    def test_closing_ends_everything(self, http_client: Any) -> None:
        before = set(threading.enumerate())
        started = threading.Barrier(4)

        def script(asked: ModelRequest) -> Turn:
            started.wait(120)
            return Stall()

        with ThreadPoolExecutor(3) as pool:
            with ModelServer(script) as server:
                idle = socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0))
                waiting = [pool.submit(ChatSpeaker(server, http_client).ask, "Hi") for _ in range(3)]
                started.wait(120)
            for one in waiting:
                assert isinstance(one.exception(20), errors_of("openai").APIConnectionError)
            assert idle.recv(1) == b""
            idle.close()
        assert set(threading.enumerate()) - before == set()

    def test_text_that_is_not_unicode(self, protocol: str) -> None:
        path, body, headers = PLACES[protocol]
        scripts: list[Script] = [[Say("half \ud83d")]]
        for script in scripts:
            with ModelServer(script) as server:
                status, content, _ = post(server, path, body, headers)
            assert status == 200 and b"\\ud83d" in content
