"""Anthropic's protocol: messages (``POST /v1/messages``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recollect.testing.http_server import HttpRequest
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
from recollect.testing.models.script import Call, DeclaredTool, ModelRequest

_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Messages(Protocol):
    name = "anthropic"

    def key(self, request: HttpRequest) -> str:
        return request.headers.get("x-api-key", "").strip() or super().key(request)

    def error(self, status: int, message: str, retry_after: float | None = None) -> Any:
        kind = _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}

    def read(self, request: HttpRequest, body: Mapping[str, Any]) -> ModelRequest:
        if not request.headers.get("anthropic-version"):
            raise RefusedError("anthropic-version: header is required")
        required(body, "max_tokens", int)
        return super().read(request, body)

    def read_messages(self, body: Mapping[str, Any], conversation: Conversation) -> None:
        if body.get("system"):
            conversation.system.append(text_of(body["system"]))
        messages = required(body, "messages", list)
        if required(messages[0], "role", str) != "user":
            raise RefusedError('messages: first message must use the "user" role')
        for message in messages:
            role, content = required(message, "role", str), required(message, "content", str, list)
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            if any(block.get("type") == "text" and not block.get("text") for block in blocks):
                raise RefusedError("messages: text content blocks must be non-empty")
            if _of_type(blocks, "tool_result" if role == "assistant" else "tool_use"):
                raise RefusedError(f"messages: tool blocks of the other side are in a message of role {role}")
            if role == "user":
                _read_user(blocks, conversation)
            else:
                conversation.add(role, text_of(blocks), [_call(block) for block in _of_type(blocks, "tool_use")])

    def read_tools(self, body: Mapping[str, Any]) -> Iterator[DeclaredTool]:
        for tool in body.get("tools") or ():
            name, kind = required(tool, "name", str), tool.get("type") or "custom"
            if kind == "custom":
                schema = required(tool, "input_schema", dict)
                yield DeclaredTool(name, tool.get("description") or "", schema, strict=bool(tool.get("strict")))
            else:
                yield DeclaredTool(name, kind=kind)

    def write(self, request: ModelRequest, answer: ModelAnswer) -> Any:
        return {
            "id": f"msg_{answer.id}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": _content(answer),
            "stop_reason": "tool_use" if answer.calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": answer.usage.input, "output_tokens": answer.usage.output},
        }

    def stream(self, request: ModelRequest, answer: ModelAnswer) -> Iterator[bytes]:
        def named(kind: str, **fields: Any) -> bytes:
            return event({"type": kind, **fields}, kind)

        message = self.write(request, answer)
        texts = {call.id: dump_arguments(call.arguments) for call in answer.calls}
        yield named("message_start", message={**message, "content": [], "stop_reason": None})
        for index, block in enumerate(message["content"]):
            if block["type"] == "tool_use":
                start = {**block, "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(texts[block["id"]])]
            else:
                start = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
            yield named("content_block_start", index=index, content_block=start)
            for delta in deltas:
                yield named("content_block_delta", index=index, delta=delta)
            yield named("content_block_stop", index=index)
        ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield named("message_delta", delta=ending, usage=message["usage"])
        yield named("message_stop")


def _of_type(blocks: list[Any], kind: str) -> list[Any]:
    return [block for block in blocks if required(block, "type", str) == kind]


def _read_user(blocks: list[Any], conversation: Conversation) -> None:
    results = _of_type(blocks, "tool_result")
    if results != blocks[: len(results)]:
        raise RefusedError("messages: `tool_result` blocks must come first in the message after the `tool_use` blocks")
    for block in results:
        is_error = bool(block.get("is_error"))
        conversation.add_result(block.get("tool_use_id"), text_of(block.get("content")), is_error=is_error)
    if len(results) < len(blocks):
        conversation.add("user", text_of(blocks))


def _call(block: Mapping[str, Any]) -> Call:
    if not isinstance(block.get("input"), dict):
        raise RefusedError("messages: the input of a `tool_use` block must be an object")
    return Call(required(block, "name", str), block["input"], id=required(block, "id", str))


def _content(answer: ModelAnswer) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in answer.parts:
        if isinstance(part, Call):
            arguments = parse_arguments(part.arguments)
            given = {"INVALID_JSON": arguments} if isinstance(arguments, str) else arguments
            content.append({"type": "tool_use", "id": part.id, "name": part.name, "input": given})
        elif part.text:
            content.append({"type": "text", "text": part.text})
    return content
