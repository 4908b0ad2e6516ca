"""OpenAI's protocols: chat completions (``POST /v1/chat/completions``) and responses (``POST /v1/responses``)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from typing import Any

from recollect.testing.models.protocol import (
    Conversation,
    ModelAnswer,
    Protocol,
    RefusedError,
    dump_arguments,
    event,
    parse_arguments,
    pieces,
    required,
    text_of,
)
from recollect.testing.models.script import Call, DeclaredTool, ModelRequest, Say


class _OpenAI(Protocol):
    def error(self, status: int, message: str, retry_after: float | None = None) -> Any:
        kind = "requests" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}

    def read_tools(self, body: Mapping[str, Any]) -> Iterator[DeclaredTool]:
        for tool in body.get("tools") or ():
            kind = required(tool, "type", str)
            if kind == "function":
                one = self.function(tool)
                name, schema, strict = required(one, "name", str), one.get("parameters") or {}, bool(one.get("strict"))
                yield DeclaredTool(name, one.get("description") or "", schema, strict=strict)
            else:
                yield DeclaredTool(str(tool.get("name", kind)), kind=kind)

    def function(self, tool: Mapping[str, Any]) -> Any:
        """Return the part of a declared tool, or of a tool call, that describes the function."""
        return tool


class ChatCompletions(_OpenAI):
    name = "openai-chat"

    def function(self, tool: Mapping[str, Any]) -> Any:
        return required(tool, "function", dict)

    def read_messages(self, body: Mapping[str, Any], conversation: Conversation) -> None:
        if not body.get("tools") and body.get("tool_choice") not in (None, "none"):
            raise RefusedError("'tool_choice' is only allowed when 'tools' are specified.")
        for message in required(body, "messages", list):
            role = required(message, "role", str)
            content = message.get("content")
            if role == "tool":
                conversation.add_result(message.get("tool_call_id"), text_of(required(message, "content", str, list)))
                continue
            calls = [self._call(call) for call in message.get("tool_calls") or ()]
            if not isinstance(content, str | list) and not calls:
                raise RefusedError(f"Invalid value for 'content': expected a string, got {content!r}.")
            conversation.add(role, text_of(content), calls)

    def _call(self, call: Any) -> Call:
        function = self.function(call)
        arguments = parse_arguments(required(function, "arguments", str))
        return Call(required(function, "name", str), arguments, id=required(call, "id", str))

    def write(self, request: ModelRequest, answer: ModelAnswer) -> Any:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
            for call in answer.calls
        ]
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or (None if calls else "")}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(answer)}
        return {**_head(request, answer, "chat.completion"), "choices": [choice], "usage": _chat_usage(answer)}

    def stream(self, request: ModelRequest, answer: ModelAnswer) -> Iterator[bytes]:
        head = _head(request, answer, "chat.completion.chunk")

        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        yield chunk({"role": "assistant", "content": None if answer.calls else ""})
        for piece in pieces(answer.text):
            yield chunk({"content": piece})
        for index, call in enumerate(answer.calls):
            function = {"name": call.name, "arguments": ""}
            yield chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
            for piece in pieces(_arguments(call)):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, _finish_reason(answer))
        if (request.raw.get("stream_options") or {}).get("include_usage"):
            yield event({**head, "choices": [], "usage": _chat_usage(answer)})
        yield b"data: [DONE]\n\n"


class Responses(_OpenAI):
    name = "openai-responses"

    def read_messages(self, body: Mapping[str, Any], conversation: Conversation) -> None:
        if body.get("previous_response_id") or body.get("conversation"):
            raise RefusedError("This server stores no responses: send the whole conversation.")
        if isinstance(body.get("instructions"), str):
            conversation.system.append(body["instructions"])
        items = required(body, "input", str, list)
        for item in items if isinstance(items, list) else [{"role": "user", "content": items}]:
            kind = item.get("type", "message") if isinstance(item, Mapping) else None
            if kind == "message":
                conversation.add(required(item, "role", str), text_of(required(item, "content", str, list)))
            elif kind == "function_call":
                arguments = parse_arguments(required(item, "arguments", str))
                call = Call(required(item, "name", str), arguments, id=required(item, "call_id", str))
                conversation.add("assistant", "", [call])
            elif kind == "function_call_output":
                conversation.add_result(item.get("call_id"), text_of(required(item, "output", str, list)))
            elif not isinstance(kind, str):
                raise RefusedError("Missing or invalid field 'type' in 'input'.")

    def write(self, request: ModelRequest, answer: ModelAnswer) -> Any:
        usage = {
            "input_tokens": answer.usage.input,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": answer.usage.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.usage.input + answer.usage.output,
        }
        return {
            "id": f"resp_{answer.id}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "completed",
            "model": request.model,
            "output": _output(answer),
            "usage": usage,
            "parallel_tool_calls": True,
            "tool_choice": request.raw.get("tool_choice", "auto"),
            "tools": request.raw.get("tools", []),
        }

    def stream(self, request: ModelRequest, answer: ModelAnswer) -> Iterator[bytes]:
        numbers = itertools.count()

        def named(kind: str, **fields: Any) -> bytes:
            return event({"type": f"response.{kind}", "sequence_number": next(numbers), **fields}, f"response.{kind}")

        response = self.write(request, answer)
        yield named("created", response={**response, "status": "in_progress", "output": [], "usage": None})
        for index, item in enumerate(response["output"]):
            place = {"item_id": item["id"], "output_index": index}
            empty: dict[str, Any] = {"content": []} if "content" in item else {"arguments": ""}
            yield named("output_item.added", output_index=index, item={**item, **empty, "status": "in_progress"})
            if item["type"] == "message":
                (part,) = item["content"]
                inside = {**place, "content_index": 0}
                yield named("content_part.added", **inside, part={**part, "text": ""})
                for piece in pieces(part["text"]):
                    yield named("output_text.delta", **inside, delta=piece, logprobs=[])
                yield named("output_text.done", **inside, text=part["text"], logprobs=[])
                yield named("content_part.done", **inside, part=part)
            else:
                for piece in pieces(item["arguments"]):
                    yield named("function_call_arguments.delta", **place, delta=piece)
                done = {"name": item["name"], "arguments": item["arguments"]}
                yield named("function_call_arguments.done", **place, **done)
            yield named("output_item.done", output_index=index, item=item)
        yield named("completed", response=response)


def _arguments(call: Call) -> str:
    return dump_arguments(call.arguments)


def _finish_reason(answer: ModelAnswer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _head(request: ModelRequest, answer: ModelAnswer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.id}", "object": kind, "created": int(time.time()), "model": request.model}


def _chat_usage(answer: ModelAnswer) -> dict[str, Any]:
    used = answer.usage
    return {
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
    }


def _output(answer: ModelAnswer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for number, part in enumerate(answer.parts):
        item: dict[str, Any] = {"status": "completed"}
        if isinstance(part, Say):
            content = [{"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}]
            item |= {"id": f"msg_{answer.id}_{number}", "type": "message", "role": "assistant", "content": content}
        else:
            item |= {"id": f"fc_{answer.id}_{number}", "type": "function_call", "call_id": part.id}
            item |= {"name": part.name, "arguments": _arguments(part)}
        items.append(item)
    return items
