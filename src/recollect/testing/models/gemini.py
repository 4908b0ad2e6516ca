"""Gemini: ``POST /v1beta/models/{model}:generateContent`` and ``:streamGenerateContent``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recollect.testing.models.protocol import (
    Answer,
    Conversation,
    Protocol,
    RefusalError,
    Request,
    encoded,
    event,
    parsed,
    pieces,
)
from recollect.testing.models.schema import GEMINI_NAME, WrongSchemaError, check_gemini, check_json_schema
from recollect.testing.models.script import Asked, Call, Fail, Tool

PATH = re.compile(r"/v1(?:beta|alpha)?/models/([^/:]+):(generateContent|streamGenerateContent)")
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
FUNCTIONS = ("functionDeclarations", "function_declarations")
_MISSING = object()


class Gemini(Protocol):
    name = "gemini"

    def key_of(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str:
        return headers.get("x-goog-api-key", "") or query.get("key", "") or super().key_of(headers, query)

    def no_key(self, wrong: bool) -> RefusalError:
        if wrong:
            return RefusalError("API key not valid. Please pass a valid API key.", code="API_KEY_INVALID")
        return RefusalError(
            "Method doesn't allow unregistered callers (callers without established identity).", status=403
        )

    def error(self, refusal: RefusalError, request_id: str) -> Any:
        status = STATUSES.get(refusal.status, "UNKNOWN")
        error: dict[str, Any] = {"code": refusal.status, "message": refusal.message, "status": status}
        if refusal.code:
            kind = "type.googleapis.com/google.rpc.ErrorInfo"
            error["details"] = [{"@type": kind, "reason": refusal.code, "domain": "googleapis.com"}]
        return {"error": error}

    def failure(self, fail: Fail, request_id: str) -> Any:
        body = super().failure(fail, request_id)
        if fail.retry_after is not None:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            body["error"]["details"] = [{"@type": kind, "retryDelay": f"{fail.retry_after:g}s"}]
        return body

    def headers(self, request_id: str) -> dict[str, str]:
        return {"server-timing": "gfet4t7; dur=1"}

    def models(self, names: Sequence[str]) -> Any:
        return {"models": [self.model(name) for name in names]}

    def model(self, name: str) -> Any:
        return {
            "name": f"models/{name}",
            "version": "001",
            "displayName": name,
            "inputTokenLimit": 1_000_000,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent"],
        }

    def read(self, request: Request) -> Asked:
        body = request.body
        place = PATH.fullmatch(request.path)
        if place is None:
            raise RefusalError("Requested entity was not found.", status=404)
        contents = body.get("contents")
        if not isinstance(contents, list) or not contents:
            raise RefusalError("* GenerateContentRequest.contents: contents is not specified")
        tools = self._tools(body)
        talk = Conversation()
        waiting: list[Call] = []
        for number, content in enumerate(contents):
            waiting = self._content(number, content, talk, waiting)
        if waiting:
            _unequal()
        instruction = _field(body, "systemInstruction")
        parts = instruction.get("parts", []) if isinstance(instruction, dict) else []
        parts = [parts] if isinstance(parts, dict) else parts
        return Asked(
            self.name,
            place[1],
            "\n".join([str(part.get("text", "")) for part in parts] + talk.system),
            tuple(talk.messages),
            tools,
            body,
            request.headers,
            place[2] == "streamGenerateContent",
            request.query,
        )

    def _tools(self, body: Mapping[str, Any]) -> tuple[Tool, ...]:
        tools: list[Tool] = []
        for number, tool in enumerate(body.get("tools") or []):
            if not isinstance(tool, dict):
                raise RefusalError(f"Invalid value at 'tools[{number}]'")
            declared = _field(tool, "functionDeclarations") or []
            tools.extend(Tool(kind, kind=kind) for kind in tool if kind not in FUNCTIONS)
            for place, function in enumerate(declared):
                where = f"GenerateContentRequest.tools[{number}].function_declarations[{place}]"
                tools.append(_function(function, where))
        names = [tool.name for tool in tools if not tool.kind]
        for name in names:
            if names.count(name) > 1:
                raise RefusalError(f"Duplicate function declaration found: {name}")
        return tuple(tools)

    def _content(self, number: int, content: Any, talk: Conversation, waiting: list[Call]) -> list[Call]:
        role = content.get("role", "user") if isinstance(content, dict) else None
        if role not in ("user", "model", "function"):
            raise RefusalError("Please use a valid role: user, model.")
        parts = content.get("parts")
        if not isinstance(parts, list) or not parts:
            raise RefusalError(f"* GenerateContentRequest.contents[{number}].parts: contents.parts must not be empty.")
        texts = [part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought")]
        text = ("" if role == "model" else "\n").join(texts)  # a streamed answer comes back piece by piece
        made = [_field(part, "functionCall") for part in parts if _field(part, "functionCall") is not None]
        results = [_field(part, "functionResponse") for part in parts if _field(part, "functionResponse") is not None]
        if role == "model":
            if waiting:
                _unequal()
            calls = [_call(number, call) for call in made]
            talk.say("assistant", text, calls)
            return calls
        if made:
            raise RefusalError("Please ensure that function call turn comes immediately after a user turn.")
        if len(results) != len(waiting):
            _unequal()
        left = list(waiting)
        for result in results:
            call = _answered(result, left)
            left = [other for other in left if other is not call]
            response = result.get("response")
            if not isinstance(response, dict):
                raise RefusalError(
                    f"* GenerateContentRequest.contents[{number}].parts.function_response.response: must be an object."
                )
            talk.result(call.id, _output(response), name=call.name, is_error="error" in response)
        if text or not results:
            talk.say("user", text)
        return []

    def _chunk(self, asked: Asked, answer: Answer, parts: list[Any], finish: str | None) -> dict[str, Any]:
        content = {"role": "model", "parts": parts} if parts else {"role": "model"}
        candidate: dict[str, Any] = {"content": content, "index": 0}
        usage = {"promptTokenCount": answer.usage.input, "totalTokenCount": answer.usage.input}
        if finish is not None:
            candidate["finishReason"] = finish
            usage["candidatesTokenCount"] = answer.usage.output
            usage["totalTokenCount"] += answer.usage.output
            if finish != "STOP":
                candidate["finishMessage"] = "Malformed function call: " + ", ".join(
                    f"{call.name}({call.arguments})" for call in answer.calls
                )
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": asked.model,
            "responseId": answer.id,
        }

    def _finish(self, answer: Answer) -> str:
        malformed = any(isinstance(parsed(call.arguments), str) for call in answer.calls)
        return "MALFORMED_FUNCTION_CALL" if malformed else "STOP"

    def _parts(self, answer: Answer) -> list[Any]:
        if self._finish(answer) != "STOP":
            return []
        return [
            {"functionCall": {"id": part.id, "name": part.name, "args": parsed(part.arguments)}}
            if isinstance(part, Call)
            else {"text": part.text}
            for part in answer.parts
            if isinstance(part, Call) or part.text
        ]

    def write(self, asked: Asked, answer: Answer) -> Any:
        return self._chunk(asked, answer, self._parts(answer), self._finish(answer))

    def stream(self, asked: Asked, answer: Answer) -> Iterator[bytes]:
        chunks: list[list[Any]] = []
        for part in self._parts(answer):
            chunks.extend([[{"text": piece}] for piece in pieces(part["text"])] if "text" in part else [[part]])
        bodies = [self._chunk(asked, answer, parts, None) for parts in chunks[:-1]]
        bodies.append(self._chunk(asked, answer, chunks[-1] if chunks else [], self._finish(answer)))
        if asked.query.get("alt") == "sse":
            yield from (event(body, end="\r\n\r\n") for body in bodies)
        else:  # without alt=sse the service streams one JSON array
            for number, body in enumerate(bodies):
                yield (b",\r\n" if number else b"[") + encoded(body)
            yield b"]"


def _field(value: Mapping[str, Any], name: str) -> Any:
    """A field, which protobuf lets one write in two ways."""
    found = value.get(name, _MISSING)
    return value.get(re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name)) if found is _MISSING else found


def _function(function: Any, where: str) -> Tool:
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or not GEMINI_NAME.fullmatch(name):
        raise RefusalError(
            f"* {where}.name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric "
            "(a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
        )
    subset, schema = _field(function, "parameters"), _field(function, "parametersJsonSchema")
    if subset is not None and schema is not None:
        raise RefusalError(f"* {where}: only one of parameters and parameters_json_schema may be set")
    try:
        if subset is not None:
            check_gemini(subset)
        if schema is not None:
            check_json_schema(schema)
    except WrongSchemaError as wrong:
        raise RefusalError(f"* {'.'.join((where, *wrong.where))}: {wrong.reason}") from None
    return Tool(name, function.get("description") or "", schema or subset or {})


def _call(number: int, call: Any) -> Call:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or not call["name"]:
        raise RefusalError(
            f"* GenerateContentRequest.contents[{number}].parts.function_call.name: Name cannot be empty."
        )
    return Call(call["name"], call.get("args") or {}, id=str(call.get("id") or ""))


def _answered(result: Any, left: Sequence[Call]) -> Call:
    """The call that a response answers: by its id if it has one, otherwise by its name."""
    name = result.get("name") if isinstance(result, dict) else None
    if not isinstance(name, str) or not name:
        raise RefusalError("* GenerateContentRequest.contents.parts.function_response.name: Name cannot be empty.")
    id = result.get("id")
    for call in left:
        if call.name == name and (not id or not call.id or call.id == id):
            return call
    raise RefusalError(
        f"Please ensure that each function response answers a function call of the turn before: '{name}' does not."
    )


def _unequal() -> None:
    raise RefusalError(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the "
        "function call turn."
    )


def _output(response: Mapping[str, Any]) -> str:
    """What a tool returned: "output" and "error" are Gemini's words, "result" is what its library wraps texts in."""
    if len(response) == 1:
        (name, value), *_ = response.items()
        if name in ("output", "result", "error") and isinstance(value, str):
            return value
    return json.dumps(response, ensure_ascii=False)
