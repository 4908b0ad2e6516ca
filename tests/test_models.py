"""Models: the tool loop, structured answers, and every way in which a provider fails, over the real protocols."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.agents.extract import extract
from recollect.agents.models import (
    Account,
    Model,
    ModelLimits,
    Turn,
    check_budget,
    configured_model,
    json_in,
    open_model,
    spend,
)
from recollect.config import Config
from recollect.errors import ConfigError, InvalidInputError, MissingExtraError, ModelError
from recollect.testing.models import Call, Cut, Fail, Garbage, ModelRequest, Say, Script, Stall, Usage
from recollect.times import utc_now
from tests.fakes.model_server import StrictModelServer

PROTOCOLS = ("chat", "openai", "anthropic", "gemini")
SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}
MARKER = "xyzzy-of-the-person"
HELLO = [Turn("user", "hello")]


def spec_for(server: StrictModelServer, protocol: str) -> tuple[str, str]:
    return {
        "chat": (f"{server.openai_url}#local", ""),
        "openai": ("openai:gpt-5.5", server.openai_url),
        "anthropic": ("anthropic:claude-opus-5-5", server.anthropic_url),
        "gemini": ("gemini:gemini-3-flash", server.gemini_url),
    }[protocol]


@contextmanager
def serving(protocol: str, script: Script, **options: Any) -> Iterator[tuple[Model, StrictModelServer]]:
    with StrictModelServer(script) as server:
        spec, url = spec_for(server, protocol)
        given: dict[str, Any] = {"timeout": 30.0, "sleep": lambda _: None} | options
        with open_model(spec, key="test", url=url, **given) as model:
            yield model, server


class Hands:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def app(tmp_path: Path) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path) as app:
        yield app


@pytest.fixture
def suite(app: recollect.Recollect) -> recollect.Suite:
    return app.tools("u1", "notes", session="s1")


def failure(model: Model, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        model.converse("Be brief.", HELLO, **options)
    assert caught.value.__cause__ is None
    return caught.value


# answers


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_G1_a_model_of_any_provider_answers(protocol: str, streamed: bool) -> None:
    pieces: list[str] = []
    turns = [Turn("assistant", "Welcome back."), Turn("user", "hello"), Turn("assistant", " "), Turn("user", "again")]
    said = "An answer of several words, so that it comes in pieces."
    with serving(protocol, [Say(said, usage=Usage(120, 7))]) as (model, server):
        reply = model.converse("Be brief.", turns, on_text=pieces.append if streamed else None)
    assert (reply.text, reply.tokens_in, reply.tokens_out, reply.turns) == (said, 120, 7, 1)
    assert (reply.stopped, reply.retries, reply.calls) == ("done", 0, [])
    assert "".join(pieces) == (said if streamed else "") and len(pieces) != 1
    assert server.problems == []
    asked = server.requests[0]
    assert asked.system == "Be brief." and asked.text.endswith("again")
    assert any("Welcome back." in message.text for message in asked.messages if message.role == "assistant")


@pytest.mark.everyday(4)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_G2_the_loop_runs_the_calls_and_hands_the_results_back(
    suite: recollect.Suite, protocol: str, streamed: bool
) -> None:
    pieces: list[str] = []
    script: Script = [
        [
            Say("Let me see."),
            Call("memory_save", {"content": "Plays the oboe"}),
            Call("memory_search", {"query": "oboe"}),
        ],
        Say("You play the oboe."),
    ]
    with serving(protocol, script) as (model, server):
        reply = model.converse("", HELLO, suite=suite, on_text=pieces.append if streamed else None)
    assert server.problems == []
    assert reply.text == "You play the oboe." and reply.stopped == "done" and reply.turns == 2
    assert [result.tool for result in reply.calls] == ["memory_save", "memory_search"]
    assert [note.text for note in suite.memory.read(kind="note")] == ["Plays the oboe"]
    assert "Plays the oboe" in server.requests[1].tool_results[1].text
    assert {tool.name for tool in server.requests[0].tools} == set(suite.tools)
    if streamed:
        assert "".join(pieces) == "Let me see.\n\nYou play the oboe."


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_G2_a_malformed_call_and_an_unknown_tool_are_answered_so_that_the_model_can_retry(
    suite: recollect.Suite, protocol: str
) -> None:
    script: Script = [
        Call("memory_save", '{"content": "Plays'),
        Call("memory_forget_everything"),
        Call("memory_save", {}),
        Call("memory_save", {"content": "Plays the oboe"}),
        Say("Noted."),
    ]
    with serving(protocol, script) as (model, server):
        reply = model.converse("", HELLO, suite=suite)
    assert server.problems == [] and reply.text == "Noted." and reply.turns == 5
    malformed = [] if protocol == "gemini" else ["invalid"]  # Gemini drops such a call, and we ask for it again
    assert [result.status for result in reply.calls] == [*malformed, "invalid", "invalid", "ok"]
    if protocol == "gemini":
        assert "could not be read" in server.requests[1].text
    if protocol in ("anthropic", "gemini"):
        assert server.requests[2].tool_results[0].is_error
    assert [note.text for note in suite.memory.read(kind="note")] == ["Plays the oboe"]


def chat_body(**choice: Any) -> Garbage:
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "local", "choices": [{"index": 0, **choice}]}
    return Garbage(json.dumps(body).encode(), "application/json")


def test_a_call_that_was_cut_off_is_not_done(suite: recollect.Suite) -> None:
    function = {"name": "memory_save", "arguments": json.dumps({"content": "Plays the"})}
    calls = [{"id": "c1", "type": "function", "function": function}]
    cut = chat_body(finish_reason="length", message={"role": "assistant", "content": None, "tool_calls": calls})
    with serving("chat", [cut, Say("Never mind.")]) as (model, server):
        reply = model.converse("", HELLO, suite=suite)
    assert "cut off" in server.requests[1].tool_results[0].text
    assert reply.calls == [] and list(suite.memory.read(kind="note")) == []


def test_an_answer_that_was_cut_off_says_so() -> None:
    with serving("chat", [chat_body(finish_reason="length", message={"role": "assistant", "content": "I"})]) as (
        model,
        _,
    ):
        reply = model.converse("", HELLO)
    assert (reply.text, reply.stopped) == ("I", "tokens")
    assert reply.tokens_in > 0 and reply.tokens_out > 0  # counted here, where the server does not


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("<think>What does he mean? </think>\n\nHi there.", "Hi there."),
        ("<thinker> is a word", "<thinker> is a word"),
        ("<", "<"),
    ],
)
def test_what_a_local_model_thinks_is_not_handed_on(said: str, heard: str, streamed: bool) -> None:
    pieces: list[str] = []
    with serving("chat", [Say(said)]) as (model, _):
        assert model.converse("", HELLO, on_text=pieces.append if streamed else None).text == heard
    assert "".join(pieces) == (heard if streamed else "")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_half_a_character_can_be_said(protocol: str) -> None:
    with serving(protocol, [Say("Hm.")]) as (model, server):
        assert model.converse("half \ud83d", [Turn("user", "a \ud83d")]).text == "Hm."
    assert server.requests[0].text == "a ?"


def test_a_call_where_nothing_was_offered_is_no_answer() -> None:
    with serving("chat", lambda _: Call("memory_save", {"content": "a"})) as (model, _):
        assert failure(model).kind == "garbage"


@pytest.mark.parametrize("messages", [[], [Turn("user", " ")], [Turn("user", "a"), Turn("assistant", "b")]])
def test_a_conversation_ends_with_the_user(messages: Sequence[Turn]) -> None:
    with serving("chat", []) as (model, _), pytest.raises(InvalidInputError, match="messages"):
        model.converse("", messages)


# limits


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_G2_an_endless_loop_ends_with_a_last_question_without_tools(suite: recollect.Suite, protocol: str) -> None:
    def forever(asked: ModelRequest) -> Any:
        barred = "none" in json.dumps(asked.raw.get("tool_choice") or asked.raw.get("toolConfig") or "").lower()
        return Say("Here is what I have.") if barred else Call("memory_search", {"query": "x"})

    with serving(protocol, forever) as (model, server):
        reply = model.converse("", HELLO, suite=suite, limits=ModelLimits(turns=3))
    assert server.problems == [] and len(server.requests) == 4
    assert (reply.text, reply.stopped, reply.turns, len(reply.calls)) == ("Here is what I have.", "turns", 4, 3)


def test_a_model_that_calls_to_the_very_end_is_stopped_all_the_same(suite: recollect.Suite) -> None:
    with serving("chat", lambda _: Call("memory_search", {"query": "x"})) as (model, server):
        reply = model.converse("", HELLO, suite=suite, limits=ModelLimits(turns=2))
    assert (reply.text, reply.stopped, len(reply.calls), len(server.requests)) == ("", "turns", 2, 3)


def test_the_calls_of_all_turns_are_limited(suite: recollect.Suite) -> None:
    two = [Call("memory_search", {"query": "a"}), Call("memory_save", {"content": "Not to be kept"})]
    with serving("chat", [two, two, Say("Enough.")]) as (model, server):
        reply = model.converse("", HELLO, suite=suite, limits=ModelLimits(calls=3))
    assert (reply.stopped, len(reply.calls), reply.text) == ("calls", 3, "Enough.")
    assert "no more calls" in server.requests[2].tool_results[1].text
    assert server.requests[2].raw["tool_choice"] == "none"


def test_T7_one_answer_may_make_as_many_calls_as_the_suite_allows(suite: recollect.Suite) -> None:
    many = [Call("memory_search", {"query": str(number)}) for number in range(7)]
    with serving("chat", [many, many, Say("Done.")]) as (model, _):
        reply = model.converse("", HELLO, suite=suite)
    assert [result.status for result in reply.calls] == [*["ok"] * 5, *["limited"] * 2] * 2
    with serving("chat", [many, many, Say("Done.")]) as (model, _):
        reply = model.converse("", HELLO, suite=suite.response())  # the host counts several answers as one
    assert [result.status for result in reply.calls].count("ok") == 5


def test_the_tokens_are_limited(suite: recollect.Suite) -> None:
    call = Call("memory_search", {"query": "a"}, usage=Usage(400, 100))
    with serving("chat", [call, call, Say("Enough.", usage=Usage(1, 1))]) as (model, _):
        reply = model.converse("", HELLO, suite=suite, limits=ModelLimits(tokens=1000))
    assert (reply.stopped, reply.text, reply.tokens_in, reply.tokens_out) == ("tokens", "Enough.", 801, 201)


def test_when_time_is_over_the_reply_is_what_there_is(suite: recollect.Suite) -> None:
    clock = Hands()

    def slow(asked: ModelRequest) -> Any:
        clock.now += 70
        return [Say("So far so good."), Call("memory_search", {"query": "a"})]

    with serving("chat", slow, clock=clock) as (model, server):
        reply = model.converse("", HELLO, suite=suite, limits=ModelLimits(seconds=100))
    assert (reply.stopped, reply.text, len(reply.calls), len(server.requests)) == ("time", "So far so good.", 1, 2)


def test_time_that_ends_within_the_first_request_is_an_error() -> None:
    clock = Hands()

    def slow(asked: ModelRequest) -> Any:
        clock.now += 100
        return Fail(500)

    with serving("chat", slow, clock=clock) as (model, server):
        assert failure(model, limits=ModelLimits(seconds=100)).kind == "timeout"
    assert len(server.requests) == 1


# failures


@pytest.mark.everyday(12)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("turn", "kind", "tries"),
    [
        (Fail(500, MARKER), "unavailable", 3),
        (Fail(503, MARKER), "unavailable", 3),
        (Fail(529, MARKER), "unavailable", 3),
        (Fail(429, MARKER), "rate_limited", 3),
        (Fail(429, MARKER, retry_after=3600), "rate_limited", 1),
        (Fail(401, MARKER), "rejected", 1),
        (Fail(403, MARKER), "rejected", 1),
        (Fail(404, MARKER), "rejected", 1),
        (Fail(400, MARKER), "rejected", 1),
        (Cut(Say(MARKER * 9)), "unavailable", 3),
        (Cut(Say(MARKER), at=0), "unavailable", 3),
        (Garbage(MARKER.encode()), "garbage", 3),
        (Garbage(b'{"' + MARKER.encode(), "application/json"), "garbage", 3),
        (Garbage(json.dumps({MARKER: 1}).encode(), "application/json"), "garbage", 3),
        (Say(""), "garbage", 3),
    ],
)
def test_G2_every_failure_has_a_kind_and_tells_nothing_of_what_was_said(
    protocol: str, turn: Any, kind: str, tries: int, caplog: pytest.LogCaptureFixture
) -> None:
    pauses: list[float] = []
    with (
        caplog.at_level(logging.DEBUG, "recollect"),
        serving(protocol, lambda _: turn, sleep=pauses.append) as (model, server),
        pytest.raises(ModelError) as caught,
    ):
        model.converse(MARKER, [Turn("user", MARKER)])
    assert caught.value.kind == kind and len(server.requests) == tries == len(pauses) + 1
    shown = f"{caught.value} {caught.value!r} {caught.value.__cause__} {caught.value.__context__} {caplog.text}"
    assert MARKER not in shown and model.name in str(caught.value)
    if len(pauses) == 2:
        assert 0.25 <= pauses[0] <= 0.5 and 0.5 <= pauses[1] <= 1


@pytest.mark.everyday(2)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_provider_that_does_not_answer(protocol: str, streamed: bool) -> None:
    on_text = (lambda _: None) if streamed else None
    with serving(protocol, [Stall(), Stall()], timeout=0.1) as (model, _):
        assert failure(model, on_text=on_text, limits=ModelLimits(attempts=2)).kind == "timeout"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_provider_that_is_down(protocol: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        spec = {"chat": f"{url}#m", "openai": "openai:m", "anthropic": "anthropic:m", "gemini": "gemini:m"}[protocol]
        with open_model(spec, key="test", url=url, timeout=30, sleep=lambda _: None) as model:
            assert failure(model).kind == "unavailable"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_after_a_failure_that_passes_it_is_asked_again(protocol: str) -> None:
    pauses: list[float] = []
    script: Script = [Fail(429, retry_after=7), Cut(Say("An answer that is cut off")), Say("Here I am.")]
    with serving(protocol, script, sleep=pauses.append) as (model, _):
        reply = model.converse("", HELLO)
    assert (reply.text, reply.retries, reply.turns) == ("Here I am.", 2, 1)
    assert 7 <= pauses[0] <= 7.7 and 0.5 <= pauses[1] <= 1


def test_the_attempts_are_limited_and_one_is_one() -> None:
    with serving("chat", lambda _: Fail(500)) as (model, server):
        assert failure(model, limits=ModelLimits(attempts=1)).kind == "unavailable"
        assert failure(model, limits=ModelLimits(attempts=5)).kind == "unavailable"
    assert len(server.requests) == 6


@pytest.mark.everyday(2)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_was_handed_on_is_not_said_twice(protocol: str) -> None:
    pieces: list[str] = []
    with serving(protocol, [Cut(Say("One sentence, and many more after it. " * 5)), Say("Again.")]) as (model, server):
        assert failure(model, on_text=pieces.append).kind == "unavailable"
    assert pieces and len(server.requests) == 1
    with serving(protocol, [Cut(at=0), Fail(503), Say("Here I am.")]) as (model, server):
        assert model.converse("", HELLO, on_text=pieces.append).text == "Here I am."


def test_a_stream_that_ends_too_early_is_a_failure() -> None:
    start = {
        "type": "message_start",
        "message": {
            "id": "1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    }
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half a"}}
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in (start, block, piece))
    with serving("anthropic", [Garbage(body.encode(), "text/event-stream")]) as (model, _):
        assert failure(model, on_text=lambda _: None).kind == "unavailable"


def test_who_listens_may_have_enough() -> None:
    def stop(piece: str) -> None:
        raise KeyboardInterrupt

    with serving("chat", [Say("A long story."), Say("And then?")]) as (model, _):
        with pytest.raises(KeyboardInterrupt):
            model.converse("", HELLO, on_text=stop)
        assert model.converse("", HELLO).text == "And then?"


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("chat", {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "content_filter", "message": {"role": "assistant", "content": MARKER}}]}),
        ("chat", {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": None, "refusal": MARKER}}]}),
        ("anthropic", {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": MARKER}], "stop_reason": "refusal", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}),
        ("gemini", {"candidates": [{"finishReason": "SAFETY", "index": 0}], "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1}}),
        ("gemini", {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1}}),
    ],
)  # fmt: skip
def test_a_refusal_is_not_asked_again(protocol: str, body: dict[str, Any]) -> None:
    with serving(protocol, [Garbage(json.dumps(body).encode(), "application/json")]) as (model, server):
        error = failure(model)
    assert error.kind == "refused" and MARKER not in str(error) and len(server.requests) == 1


def test_a_closed_model_fails_requests_under_way_and_opens_again() -> None:
    arrived = threading.Event()

    def first(asked: ModelRequest) -> Any:
        arrived.set()
        return Stall()

    with serving("chat", [first, Say("Here I am.")]) as (model, _), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(failure, model, limits=ModelLimits(attempts=1))
        assert arrived.wait(30)
        model.close()
        assert waiting.result(30).kind == "unavailable"
        assert model.converse("", HELLO).text == "Here I am."


# structured answers


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_data_by_schema(protocol: str) -> None:
    with serving(protocol, [Call("answer", {"facts": ["a"]}, usage=Usage(50, 5))]) as (model, server):
        reply = model.extract("Extract.", "I am a.", SCHEMA)
    assert reply.data == {"facts": ["a"]} and (reply.tokens_in, reply.tokens_out) == (50, 5)
    assert server.problems == [] and server.requests[0].tools[0].name == "answer"


@pytest.mark.everyday(4)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("wrong", [Call("answer", {"facts": ["too long"]}), Call("answer", {}), Say("Sorry, what?")])
def test_data_that_does_not_pass_is_corrected(protocol: str, wrong: Any) -> None:
    def check(data: Any) -> None:
        if any(len(fact) > 3 for fact in data["facts"]):
            raise ValueError("each fact must have at most 3 letters")

    with serving(protocol, [wrong, Call("answer", {"facts": ["abc"]})]) as (model, server):
        reply = model.extract("Extract.", "I am a.", SCHEMA, check=check)
    assert reply.data == {"facts": ["abc"]} and reply.turns == 2 and server.problems == []
    last = server.requests[1]
    told = last.tool_results[0].text if last.tool_results else last.text
    assert "at most 3 letters" in told or "lacks facts" in told or "no JSON" in told


@pytest.mark.parametrize("shape", [{"facts": 3}, {"facts": [3]}, {"facts": [{}]}])
def test_a_check_may_stumble_over_data_of_another_shape(shape: Any) -> None:
    def check(data: Any) -> None:
        assert all(fact["text"].strip() for fact in data["facts"])

    right = {"facts": [{"text": "a"}]}
    with serving("chat", [Call("answer", shape), Call("answer", right)]) as (model, server):
        assert model.extract("", "x", SCHEMA, check=check).data == right
    assert "shape" in server.requests[1].tool_results[0].text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_garbage_to_the_end_is_an_error(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    def check(data: Any) -> None:
        raise ValueError(f"{MARKER} is wrong")

    with serving(protocol, lambda _: Call("answer", {"facts": [MARKER]}, usage=Usage(10, 1))) as (model, server):
        with pytest.raises(ModelError) as caught:
            model.extract("Extract.", "I am a.", SCHEMA, check=check, limits=ModelLimits(corrections=1))
        assert caught.value.kind == "garbage" and len(server.requests) == 2 and caught.value.tokens_in == 20
        with pytest.raises(ModelError):
            model.extract("Extract.", "I am a.", SCHEMA, check=check, limits=ModelLimits(tokens=11))
        assert len(server.requests) == 3
    assert MARKER not in f"{caught.value} {caplog.text}"


def test_a_server_without_tools_is_asked_for_text() -> None:
    def no_tools(asked: ModelRequest) -> Any:
        return Fail(400, "this model does not support tools") if asked.tools else Say('```json\n{"facts": ["a"]}\n```')

    with serving("chat", no_tools) as (model, server):
        assert model.extract("Extract.", "I am a.", SCHEMA).data == {"facts": ["a"]}
        assert len(server.requests) == 2 and '"facts"' in server.requests[1].system
        assert model.extract("Extract.", "I am a.", SCHEMA).data == {"facts": ["a"]}
        assert len(server.requests) == 3  # it is known by now
    with serving("chat", lambda _: Fail(401)) as (model, server):
        with pytest.raises(ModelError, match="key"):
            model.extract("Extract.", "I am a.", SCHEMA)
        assert len(server.requests) == 1


def test_a_list_by_schema() -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    with serving("chat", [Call("answer", {"answer": ["a"]}), Say('Here: ["b"]'), Say("{}"), Say("[]")]) as (
        model,
        server,
    ):
        assert model.extract("", "x", schema).data == ["a"]
        assert model.extract("", "x", schema).data == ["b"]
        assert model.extract("", "x", schema).data == []
    assert server.problems == []


def test_time_that_ends_within_an_extraction() -> None:
    clock = Hands()

    def slow(asked: ModelRequest) -> Any:
        clock.now += 70
        return Say("No.")

    with serving("chat", slow, clock=clock) as (model, server), pytest.raises(ModelError) as caught:
        model.extract("", "x", SCHEMA, limits=ModelLimits(seconds=100))
    assert caught.value.kind == "timeout" and len(server.requests) == 2


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Sure!\n```\n[1, 2]\n```\nAnything else?', [1, 2]),
        ('```JSON\n{"a": "```"}', {"a": "```"}),
        ('I think [sic] it is {"a": {"b": [1]}}, really {"c": 2}', {"a": {"b": [1]}}),
        ("\ufeff {}", {}),
        ("nothing: []", []),
    ],
)  # fmt: skip
def test_json_in_or_out_of_fences(text: str, data: Any) -> None:
    assert json_in(text) == data


@pytest.mark.parametrize("text", ["", "no", "{", '{"a": ', "null", "3", "[" * 5000, "```json\n```", "{" * 50_000])
def test_no_json(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        json_in(text)


# spending


def test_T7_what_is_used_is_entered_and_the_budget_holds(tmp_path: Path) -> None:
    with recollect.open(tmp_path, price_in=2.0, price_out=10.0, daily_tokens=1_500) as app:
        memory = app.user("u1")
        memory.remember("Likes tea")
        account = Account(memory, "discuss", app.config)
        script = [Say("a", usage=Usage(1000, 100)), Say("b", usage=Usage(500, 0))]
        with serving("chat", script) as (model, server):
            model.converse("", HELLO, account=account)
            row = memory.usage()[0]
            assert (row.operation, row.tokens_in, row.tokens_out) == ("discuss", 1000, 100)
            assert row.cost == pytest.approx(0.003)
            model.converse("", HELLO, account=account)
            with pytest.raises(ModelError, match="1,500 tokens") as caught:
                model.converse("", HELLO, account=account)
            assert caught.value.kind == "budget"
            with pytest.raises(ModelError, match="1,500 tokens"):
                model.extract("", "x", SCHEMA, account=account)
            assert len(server.requests) == 2


def test_what_a_failure_used_is_entered_too(app: recollect.Recollect, suite: recollect.Suite) -> None:
    memory = app.user("u1")
    memory.remember("Likes tea")
    with serving("chat", [Call("memory_search", {"query": "a"}, usage=Usage(30, 3)), Fail(400)]) as (model, _):
        error = failure(model, suite=suite, account=Account(memory, "discuss", app.config))
    assert (error.tokens_in, error.tokens_out) == (30, 3)
    assert [(row.tokens_in, row.tokens_out) for row in memory.usage() if row.operation == "discuss"] == [(30, 3)]
    spend(memory, "extract", error, app.config)
    assert [row.tokens_in for row in memory.usage() if row.operation == "extract"] == [30]


def test_a_budget_of_money(tmp_path: Path) -> None:
    with recollect.open(tmp_path, daily_cost=0.5) as app:
        memory = app.user("u1")
        memory.remember("Likes tea")
        check_budget(memory, app.config)
        memory.spend("chat", cost=0.5)
        with pytest.raises(ModelError, match=r"budget of 0\.5"):
            check_budget(memory, app.config)


# settings


@pytest.mark.parametrize(
    "spec", ["gpt 5.5", "openai:", "mistral:large", "http://localhost/v1", "http://#m", "openai: x", "ftp://host#m"]
)
def test_U8_a_wrong_model_names_the_variable(spec: str) -> None:
    with pytest.raises(ConfigError, match="MEMORY_MODEL is"):
        configured_model(Config.load({"MEMORY_MODEL": spec}))
    with pytest.raises(ConfigError, match="MEMORY_EXTRACTION_MODEL is"):
        configured_model(Config.load({"MEMORY_EXTRACTION_MODEL": spec}), extraction=True)
    with pytest.raises(ConfigError, match="MEMORY_MODEL is"):
        open_model(spec)


@pytest.mark.parametrize("setting", ["model", "extraction_model", "local_model"])
def test_a_wrong_model_stops_only_what_needs_a_model(tmp_path: Path, setting: str) -> None:
    wrong: dict[str, Any] = {setting: "mistral:large"}
    with recollect.open(tmp_path, **wrong) as app, app.queue() as queue:
        app.user("u1").say("I live in Oslo.", session="chat-1")
        with pytest.raises(ConfigError, match="MEMORY_"):
            app.extractor()
        with app.worker(queue) as worker:
            worker.wait_idle(timeout=30)
        extracted = extract(app.user("u1"), utc_now().date(), extractor=app.extractor(required=False))
        assert extracted.run is not None and "mistral:large" in extracted.run.details["problem"]
        assert "Oslo" in app.user("u1").show()


def test_U8_secrets_are_masked_and_the_url_is_checked() -> None:
    config = Config(model="http://me:secret@host/v1#m", model_key="secret", model_url="http://me:secret@host")
    assert "secret" not in str(config.values()) and config.values()["MEMORY_MODEL_KEY"] == "***"
    with pytest.raises(ConfigError, match="MEMORY_MODEL_URL"):
        Config(model_url="host:8080")
    with pytest.raises(ConfigError, match="MEMORY_MODEL is empty"):
        open_model("")


@pytest.mark.parametrize(
    ("spec", "variable"),
    [("openai:m", "OPENAI_API_KEY"), ("anthropic:m", "ANTHROPIC_API_KEY"), ("gemini:m", "GOOGLE_API_KEY")],
)
def test_without_a_key_the_variables_are_named(spec: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match=f"MEMORY_MODEL needs a key: set MEMORY_MODEL_KEY or {variable}"):
        open_model(spec)


@pytest.mark.parametrize(
    ("spec", "module", "extra"),
    [
        ("openai:m", "pydantic_ai.models", "llm"),
        ("http://localhost/v1#m", "pydantic_ai.models.openai", "llm"),
        ("anthropic:m", "pydantic_ai.models.anthropic", "anthropic"),
        ("gemini:m", "pydantic_ai.models.google", "google"),
    ],
)
def test_a_missing_extra_is_named(spec: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"recollect\[{extra}\]"):
        open_model(spec, key="test")


def test_G1_with_no_model_there_is_none() -> None:
    assert configured_model(Config()) is None and configured_model(Config(), extraction=True) is None


def test_the_key_goes_to_the_model_it_belongs_to_and_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-anthropic")

    def key_of(config: Config, extraction: bool = False) -> str:
        model = configured_model(config, extraction=extraction)
        assert model is not None
        with model:
            model.converse("", HELLO)
        return server.requests[-1].headers["authorization"].removeprefix("Bearer ")

    with StrictModelServer(lambda _: Say("Hi.")) as server:
        here = f"{server.openai_url}#a"
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.anthropic_url)
        assert key_of(Config(model=here)) == "none"  # not the one of OpenAI
        both = Config(model=here, extraction_model="anthropic:m", model_key="ours")
        assert key_of(both) == "ours" and key_of(both, extraction=True) == "of-anthropic"
        assert key_of(Config(model=here, model_key="ours", extraction_model=f"{server.openai_url}#b"), True) == "ours"
        assert server.requests[-1].model == "b"
        assert key_of(Config(extraction_model=here, model_key="ours"), True) == "ours"
        assert key_of(Config(model="anthropic:m", model_key="k", model_url=server.anthropic_url)) == "k"


# one model for all


@pytest.mark.everyday(1)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_many_threads_share_a_model(app: recollect.Recollect, protocol: str) -> None:
    def script(asked: ModelRequest) -> Any:
        if asked.tool_results:
            return Say(f"{asked.text}: {asked.tool_results[0].text.count('note-')}")
        return Call("memory_save", {"content": f"Is called {asked.text}"})

    def ask(number: int) -> str:
        tools = app.tools(f"u{number % 4}", "notes")
        streamed = (lambda _: None) if number % 2 else None
        return model.converse("", [Turn("user", f"n{number}")], suite=tools, on_text=streamed).text

    with serving(protocol, script) as (model, server), ThreadPoolExecutor(16) as pool:
        said = list(pool.map(ask, range(16)))
    assert said == [f"n{number}: 1" for number in range(16)] and server.problems == []


def test_nothing_is_loaded_before_a_model_is_opened_and_a_forgotten_one_does_not_keep_the_process() -> None:
    code = (
        "import sys, recollect, recollect.agents.models as models; assert 'pydantic_ai' not in sys.modules;"
        "from recollect.testing.models import ModelServer, Say\n"
        "with ModelServer([Say('Hi.'), Say('Me too.')]) as server:\n"
        "    model = models.open_model(server.openai_url + '#m')\n"
        "    assert model.converse('', [models.Turn('user', 'x')]).text == 'Hi.'\n"
        "    import os\n"
        "    child = os.fork()\n"  # the child opens its own connections
        "    if not child:\n"
        "        os._exit(model.converse('', [models.Turn('user', 'x')]).text != 'Me too.')\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
    )
    # every warning, but not -X dev: its event loops complain of whatever takes a busy machine long
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, env=dict(os.environ)
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_G1_a_model_that_is_collected_in_its_own_thread_leaves_nothing_open() -> None:
    with StrictModelServer([Say("Hello")]) as server:
        model = open_model(f"{server.openai_url}#test", key="test")
        model.converse("Be brief.", [Turn("user", "Hi")])
        running = model._provider._running
        assert running is not None
        running.loop.call_soon_threadsafe(running.stop)  # as the collector does it there
        running.thread.join(60)
        assert running.loop.is_closed()
