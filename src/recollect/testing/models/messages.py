"""Anthropic messages: ``POST /v1/messages``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recollect.testing.models.protocol import (
    Answer,
    Conversation,
    Protocol,
    RefusalError,
    Request,
    event,
    json_pieces,
    parsed,
    pieces,
    text_of,
    written,
)
from recollect.testing.models.schema import (
    ANTHROPIC_OPTIONAL,
    ANTHROPIC_STRICT_TOOLS,
    NAME,
    WrongSchemaError,
    check_anthropic,
)
from recollect.testing.models.script import Asked, Call, Say, Tool

VERSIONS = ("2023-01-01", "2023-06-01", "2026-10-21")
SAMPLING = ("temperature", "top_p", "top_k")
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
BUILT_IN = re.compile(r"[a-z][a-z0-9_]*_\d{8}|mcp_toolset")


class Messages(Protocol):
    name = "anthropic"

    def key_of(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str:
        return headers.get("x-api-key", "").strip() or super().key_of(headers, query)

    def no_key(self, wrong: bool) -> RefusalError:
        return RefusalError("invalid x-api-key" if wrong else "x-api-key header is required", status=401)

    def error(self, refusal: RefusalError, request_id: str) -> Any:
        kind = ERROR_TYPES.get(refusal.status, "api_error" if refusal.status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": refusal.message}, "request_id": request_id}

    def headers(self, request_id: str) -> dict[str, str]:
        return {"request-id": request_id}

    def models(self, names: Sequence[str]) -> Any:
        data = [self.model(name) for name in names]
        ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
        return {"data": data, "has_more": False, **ends}

    def model(self, name: str) -> Any:
        return {
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "2025-01-01T00:00:00Z",
            "lifecycle": "active",
            "max_input_tokens": 200_000,
            "max_tokens": 64_000,
        }

    def read(self, request: Request) -> Asked:
        body = request.body
        version = request.headers.get("anthropic-version", "")
        if not version:
            raise RefusalError("anthropic-version: header is required")
        if version not in VERSIONS:
            raise RefusalError(f'anthropic-version: "{version}" is not a valid version')
        for name, kind in (("model", str), ("max_tokens", int), ("messages", list)):
            if name not in body:
                raise RefusalError(f"{name}: Field required")
            if not isinstance(body[name], kind) or isinstance(body[name], bool):
                raise RefusalError(f"{name}: Input should be a valid {kind.__name__}")
        if body["max_tokens"] < 1:
            raise RefusalError("max_tokens: Input should be greater than or equal to 1")
        strict = version >= "2026-10-21"
        for name in SAMPLING if strict else ():
            if name in body:
                raise RefusalError(f"{name}: Extra inputs are not permitted")
        tools = self._tools(body)
        talk = Conversation()
        if isinstance(body.get("system"), str | list):
            talk.system.append(text_of(body["system"]))
        self._messages(body["messages"], talk, strict)
        return Asked(
            self.name,
            body["model"],
            "\n".join(talk.system),
            tuple(talk.messages),
            tools,
            body,
            request.headers,
            bool(body.get("stream")),
        )

    def _tools(self, body: Mapping[str, Any]) -> tuple[Tool, ...]:
        tools: list[Tool] = []
        optional = 0
        for number, tool in enumerate(body.get("tools") or []):
            if not isinstance(tool, dict):
                raise RefusalError(f"tools.{number}: Input should be an object")
            kind = tool.get("type") or "custom"
            if kind != "custom":
                tools.append(_built_in(kind, tool, number))
                continue
            where = f"tools.{number}.custom"
            name, strict = tool.get("name"), bool(tool.get("strict"))
            if not isinstance(name, str):
                raise RefusalError(f"{where}.name: Field required")
            if not NAME.fullmatch(name):
                raise RefusalError(f"{where}.name: String should match pattern '^{NAME.pattern}$'")
            if "input_schema" not in tool:
                raise RefusalError(f"{where}.input_schema: Field required")
            try:
                found = check_anthropic(tool["input_schema"], strict=strict)
            except WrongSchemaError as wrong:
                place = ".".join(("input_schema", *wrong.where))
                raise RefusalError(f"{where}.{place}: {wrong.reason}") from None
            optional += found
            tools.append(Tool(name, tool.get("description") or "", tool["input_schema"], strict=strict))
        if len({tool.name for tool in tools}) < len(tools):
            raise RefusalError("tools: Tool names must be unique.")
        if sum(tool.strict for tool in tools) > ANTHROPIC_STRICT_TOOLS:
            raise RefusalError(f"tools: at most {ANTHROPIC_STRICT_TOOLS} tools may be strict")
        if optional > ANTHROPIC_OPTIONAL:
            raise RefusalError(f"tools: strict tools may have at most {ANTHROPIC_OPTIONAL} optional parameters in all")
        choice = body.get("tool_choice")
        if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
            if not tools:
                raise RefusalError("tool_choice: may only be specified while providing tools")
            if choice["type"] == "tool" and choice.get("name") not in [tool.name for tool in tools]:
                raise RefusalError(f"tool_choice: Tool '{choice.get('name')}' not found in provided tools")
        return tuple(tools)

    def _messages(self, messages: Sequence[Any], talk: Conversation, strict: bool) -> None:
        if not messages:
            raise RefusalError("messages: at least one message is required")
        turns: list[tuple[int, str, list[Any]]] = []
        for number, message in enumerate(messages):
            role = message.get("role") if isinstance(message, dict) else None
            if role not in ("user", "assistant", "system"):
                raise RefusalError(f"messages.{number}.role: Input should be 'user', 'assistant' or 'system'")
            blocks = _blocks(number, message, strict)
            if role == "system":
                talk.say("system", text_of(blocks))
            elif turns and turns[-1][1] == role:
                turns[-1][2].extend(blocks)  # the service joins what one side says in a row
            else:
                turns.append((number, role, blocks))
        if not turns or turns[0][1] != "user":
            raise RefusalError('messages: first message must use the "user" role')
        waiting: list[str] = []
        seen: set[str] = set()
        for number, role, blocks in turns:
            if role == "assistant":
                calls = [_call(number, block) for block in blocks if block["type"] == "tool_use"]
                waiting = [call.id for call in calls]
                if seen & set(waiting) or len(set(waiting)) < len(waiting):
                    raise RefusalError(f"messages.{number}: `tool_use` ids must be unique")
                seen.update(waiting)
                talk.say("assistant", text_of(blocks), calls)
            else:
                waiting = _results(number, blocks, waiting, talk)
        if waiting:
            _unanswered(turns[-1][0], waiting)

    def _message(self, asked: Asked, answer: Answer) -> dict[str, Any]:
        return {
            "id": f"msg_{answer.id}",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": [
                {"type": "tool_use", "id": part.id, "name": part.name, "input": _input(part)}
                if isinstance(part, Call)
                else {"type": "text", "text": part.text}
                for part in _said(answer)
            ],
            "stop_reason": "tool_use" if answer.calls else "end_turn",
            "stop_sequence": None,
            "usage": _usage(answer, answer.usage.output),
        }

    def write(self, asked: Asked, answer: Answer) -> Any:
        return self._message(asked, answer)

    def stream(self, asked: Asked, answer: Answer) -> Iterator[bytes]:
        def named(kind: str, **fields: Any) -> bytes:
            return event({"type": kind, **fields}, kind)

        empty: dict[str, Any] = {"content": [], "stop_reason": None, "usage": _usage(answer, 1)}
        yield named("message_start", message={**self._message(asked, answer), **empty})
        for index, part in enumerate(_said(answer)):
            if isinstance(part, Call):
                start = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
                deltas = [
                    {"type": "input_json_delta", "partial_json": piece}
                    for piece in ["", *json_pieces(written(part.arguments))]
                ]
            else:
                start = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": piece} for piece in pieces(part.text)]
            yield named("content_block_start", index=index, content_block=start)
            if index == 0:
                yield named("ping")
            for delta in deltas:
                yield named("content_block_delta", index=index, delta=delta)
            yield named("content_block_stop", index=index)
        reason = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
        usage = {"input_tokens": answer.usage.input, "output_tokens": answer.usage.output}
        yield named("message_delta", delta=reason, usage=usage)
        yield named("message_stop")


def _said(answer: Answer) -> list[Say | Call]:
    return [part for part in answer.parts if isinstance(part, Call) or part.text]


def _input(call: Call) -> Mapping[str, Any]:
    arguments = parsed(call.arguments)
    return {"INVALID_JSON": arguments} if isinstance(arguments, str) else arguments


def _built_in(kind: Any, tool: Mapping[str, Any], number: int) -> Tool:
    if not isinstance(kind, str) or not BUILT_IN.fullmatch(kind):
        raise RefusalError(
            f"tools.{number}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        )
    if kind.startswith("memory_") and tool.get("name") != "memory":
        raise RefusalError(f"tools.{number}.{kind}.name: Input should be 'memory'")
    return Tool(str(tool.get("name", kind)), kind=kind)


def _blocks(number: int, message: Mapping[str, Any], strict: bool) -> list[Any]:
    content, role = message.get("content"), message["role"]
    if content is None:
        raise RefusalError(f"messages.{number}.content: Field required")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise RefusalError(f"messages.{number}.content: Input should be a valid list")
    if not blocks or content == "":
        raise RefusalError(f"messages.{number}: {role} messages must have non-empty content")
    for place, block in enumerate(blocks):
        where, kind = f"messages.{number}.content.{place}", block.get("type")
        if not isinstance(kind, str):
            raise RefusalError(f"{where}.type: Field required")
        if kind == "text" and not block.get("text"):
            raise RefusalError("messages: text content blocks must be non-empty")
        if kind == ("tool_result" if role == "assistant" else "tool_use"):
            raise RefusalError(f"messages.{number}: `{kind}` blocks can not be in {role} messages")
        if strict and role == "assistant" and kind == "document":
            raise RefusalError(f"{where}: `document` blocks can not be in assistant messages")
        if strict and role == "user" and kind == "text" and block.get("citations"):
            raise RefusalError(f"{where}.citations: can not be in user messages")
    return list(blocks)


def _call(number: int, block: Mapping[str, Any]) -> Call:
    for name, kind in (("id", str), ("name", str), ("input", dict)):
        if not isinstance(block.get(name), kind):
            raise RefusalError(f"messages.{number}.content.tool_use.{name}: Input should be a valid {kind.__name__}")
    if not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]):
        raise RefusalError(f"messages.{number}.content.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    return Call(block["name"], block["input"], id=block["id"])


def _results(number: int, blocks: Sequence[Any], waiting: Sequence[str], talk: Conversation) -> list[str]:
    left = list(waiting)
    other = False
    for place, block in enumerate(blocks):
        if block["type"] != "tool_result":
            other = True
            continue
        id = block.get("tool_use_id")
        if id not in left:
            raise RefusalError(
                f"messages.{number}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if other:
            _unanswered(number, left)
        left.remove(id)
        talk.result(id, text_of(block.get("content")), is_error=bool(block.get("is_error")))
    if left:
        _unanswered(number, left)
    if other:
        talk.say("user", text_of(blocks))
    return []


def _unanswered(number: int, ids: Sequence[str]) -> None:
    raise RefusalError(
        f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _usage(answer: Answer, output: int) -> dict[str, Any]:
    return {
        "input_tokens": answer.usage.input,
        "output_tokens": output,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "service_tier": "standard",
    }
