"""Gemini's protocol: ``POST /v1beta/models/{model}:generateContent`` and ``:streamGenerateContent``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recollect.testing.http_server import HttpRequest
from recollect.testing.models.protocol import (
    Conversation,
    ModelAnswer,
    Protocol,
    RefusedError,
    event,
    parse_arguments,
    pieces,
    required,
)
from recollect.testing.models.script import Call, DeclaredTool, ModelRequest

PATH = re.compile(r"/v1(?:beta|alpha)?/models/([^/:]+):(generateContent|streamGenerateContent)")
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


class Gemini(Protocol):
    name = "gemini"
    missing_key_status = 403

    def key(self, request: HttpRequest) -> str:
        return request.headers.get("x-goog-api-key", "") or request.query.get("key", "") or super().key(request)

    def error(self, status: int, message: str, retry_after: float | None = None) -> Any:
        error: dict[str, Any] = {"code": status, "message": message, "status": _STATUSES.get(status, "UNKNOWN")}
        if retry_after is not None:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            error["details"] = [{"@type": kind, "retryDelay": f"{retry_after:g}s"}]
        return {"error": error}

    def model(self, request: HttpRequest, body: Mapping[str, Any]) -> str:
        place = PATH.fullmatch(request.path)
        return place[1] if place else ""

    def is_streamed(self, request: HttpRequest, body: Mapping[str, Any]) -> bool:
        return request.path.endswith(":streamGenerateContent")

    def read_messages(self, body: Mapping[str, Any], conversation: Conversation) -> None:
        instruction = field_of(body, "systemInstruction") or {}
        parts = instruction.get("parts", [])
        conversation.system.append(_text([parts] if isinstance(parts, dict) else parts))
        for content in required(body, "contents", list):
            role, parts = content.get("role", "user"), required(content, "parts", list)
            calls, results = _all(parts, "functionCall"), _all(parts, "functionResponse")
            if role == "model":  # a streamed text comes back in pieces
                conversation.add("assistant", _text(parts, ""), [_call(*numbered) for numbered in enumerate(calls)])
                continue
            if role not in ("user", "function") or calls:
                raise RefusedError("Please use a valid role: user, model.")
            for result in results:
                _read_result(result, conversation)
            if len(results) < len(parts):
                conversation.add("user", _text(parts))

    def read_tools(self, body: Mapping[str, Any]) -> Iterator[DeclaredTool]:
        for tool in body.get("tools") or ():
            yield from (DeclaredTool(kind, kind=kind) for kind in tool if "unction" not in kind)
            for function in field_of(tool, "functionDeclarations") or ():
                schema = field_of(function, "parametersJsonSchema") or field_of(function, "parameters") or {}
                yield DeclaredTool(required(function, "name", str), function.get("description") or "", schema)

    def write(self, request: ModelRequest, answer: ModelAnswer) -> Any:
        return _chunk(request, answer, _parts(answer), _finish_reason(answer))

    def stream(self, request: ModelRequest, answer: ModelAnswer) -> Iterator[bytes]:
        chunks: list[list[Any]] = []
        for part in _parts(answer):
            chunks += [[{"text": piece}] for piece in pieces(part["text"])] if "text" in part else [[part]]
        for parts in chunks[:-1]:
            yield event(_chunk(request, answer, parts, None))
        yield event(_chunk(request, answer, chunks[-1] if chunks else [], _finish_reason(answer)))


def field_of(body: Any, name: str) -> Any:
    """Return a field, whose name may be written in either of protobuf's two ways."""
    return body.get(name, body.get(re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)))


def _all(parts: Sequence[Any], name: str) -> list[Any]:
    return [found for part in parts if (found := field_of(part, name)) is not None]


def _text(parts: Sequence[Any], between: str = "\n") -> str:
    return between.join(part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought"))


def _call(number: int, call: Mapping[str, Any]) -> Call:
    name = required(call, "name", str)
    return Call(name, call.get("args") or {}, id=str(call.get("id") or f"{name}#{number}"))


def _read_result(result: Mapping[str, Any], conversation: Conversation) -> None:
    """Read the result of a call, which is named by its id or, without one, by the name of the tool."""
    name, response, id = required(result, "name", str), result.get("response"), result.get("id")
    if not isinstance(response, dict):
        raise RefusedError("function_response.response: must be an object.")
    if not id:
        id = next((call.id for call in conversation.open_calls.values() if call.name == name), None)
    conversation.add_result(id, _output(response), is_error="error" in response)


def _output(response: Mapping[str, Any]) -> str:
    """Return the text of a result. "output" and "error" are Gemini's fields, its library wraps texts in "result"."""
    if len(response) == 1:
        ((name, value),) = response.items()
        if name in ("output", "result", "error") and isinstance(value, str):
            return value
    return json.dumps(response, ensure_ascii=False)


def _finish_reason(answer: ModelAnswer) -> str:
    malformed = any(isinstance(parse_arguments(call.arguments), str) for call in answer.calls)
    return "MALFORMED_FUNCTION_CALL" if malformed else "STOP"


def _parts(answer: ModelAnswer) -> list[Any]:
    if _finish_reason(answer) != "STOP":
        return []
    return [
        {"functionCall": {"id": part.id, "name": part.name, "args": parse_arguments(part.arguments)}}
        if isinstance(part, Call)
        else {"text": part.text}
        for part in answer.parts
        if isinstance(part, Call) or part.text
    ]


def _chunk(request: ModelRequest, answer: ModelAnswer, parts: list[Any], finish: str | None) -> dict[str, Any]:
    content: dict[str, Any] = {"role": "model", "parts": parts} if parts else {"role": "model"}
    candidate: dict[str, Any] = {"content": content, "index": 0}
    usage = {"promptTokenCount": answer.usage.input, "totalTokenCount": answer.usage.input}
    if finish is not None:
        candidate["finishReason"] = finish
        usage["candidatesTokenCount"] = answer.usage.output
        usage["totalTokenCount"] += answer.usage.output
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": request.model, "responseId": answer.id}
