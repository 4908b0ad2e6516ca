"""OpenAI chat completions: ``POST /v1/chat/completions``."""

from __future__ import annotations

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
    now,
    parsed,
    pieces,
    required,
    text_of,
    written,
)
from recollect.testing.models.schema import NAME, WrongSchemaError, check_openai
from recollect.testing.models.script import Asked, Call, Fail, Say, Tool

ERROR_TYPES = {401: "invalid_request_error", 403: "invalid_request_error", 429: "requests"}
ERROR_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class OpenAI(Protocol):
    """What chat completions and responses have in common."""

    def no_key(self, wrong: bool) -> RefusalError:
        if wrong:
            return RefusalError("Incorrect API key provided.", status=401, code="invalid_api_key")
        return RefusalError("You didn't provide an API key.", status=401)

    def error(self, refusal: RefusalError, request_id: str) -> Any:
        kind = ERROR_TYPES.get(refusal.status, "server_error" if refusal.status >= 500 else "invalid_request_error")
        return {
            "error": {"message": refusal.message, "type": kind, "param": refusal.param, "code": refusal.code},
        }

    def failure(self, fail: Fail, request_id: str) -> Any:
        refusal = RefusalError(fail.message, status=fail.status, code=ERROR_CODES.get(fail.status))
        return self.error(refusal, request_id)

    def headers(self, request_id: str) -> dict[str, str]:
        return {"x-request-id": request_id, "openai-version": "2020-10-01"}

    def models(self, names: Sequence[str]) -> Any:
        return {"object": "list", "data": [self.model(name) for name in names]}

    def model(self, name: str) -> Any:
        return {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "recollect"}


def function_tool(function: Any, where: str) -> Tool:
    """A declared function; raises RefusalError if it is not in order."""
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise RefusalError(
            f"Missing required parameter: '{where}.name'.", param=f"{where}.name", code="missing_required_parameter"
        )
    name, strict = function["name"], function.get("strict")
    if not NAME.fullmatch(name):
        raise RefusalError(
            f"Invalid '{where}.name': string does not match pattern. "
            f"Expected a string that matches the pattern '^{NAME.pattern}$'.",
            param=f"{where}.name",
            code="invalid_value",
        )
    if strict is not None and not isinstance(strict, bool):
        raise RefusalError(f"Invalid type for '{where}.strict'.", param=f"{where}.strict", code="invalid_type")
    schema = function.get("parameters")
    try:
        if schema is not None:
            check_openai(schema, strict=bool(strict))
    except WrongSchemaError as wrong:
        context = f"In context={wrong.where}, " if wrong.where or strict else ""
        raise RefusalError(
            f"Invalid schema for function '{name}': {context}{wrong.reason}",
            param=f"{where}.parameters",
            code="invalid_function_parameters",
        ) from None
    return Tool(name, function.get("description") or "", schema or {}, strict=bool(strict))


class Chat(OpenAI):
    name = "openai-chat"

    def read(self, request: Request) -> Asked:
        body = request.body
        model = required(body, "model", str, "a string")
        messages = required(body, "messages", list, "an array of objects")
        if not messages:
            raise RefusalError(
                "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array "
                "instead.",
                param="messages",
                code="empty_array",
            )
        tools = self._tools(body)
        if body.get("stream_options") is not None and not body.get("stream"):
            raise RefusalError(
                "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
            )
        talk = Conversation()
        waiting: list[str] = []
        for number, message in enumerate(messages):
            self._message(number, message, talk, waiting)
        _nothing_waits(waiting)
        return Asked(
            self.name,
            model,
            "\n".join(talk.system),
            tuple(talk.messages),
            tools,
            body,
            request.headers,
            bool(body.get("stream")),
        )

    def _tools(self, body: Mapping[str, Any]) -> tuple[Tool, ...]:
        declared = body.get("tools")
        if declared is None:
            for name in ("tool_choice", "parallel_tool_calls"):
                if body.get(name) not in (None, "none"):
                    raise RefusalError(f"'{name}' is only allowed when 'tools' are specified.", param=name)
            return ()
        if not isinstance(declared, list) or not declared:
            raise RefusalError("Invalid 'tools': empty array.", param="tools", code="empty_array")
        tools = []
        for number, tool in enumerate(declared):
            kind = tool.get("type") if isinstance(tool, dict) else None
            if kind == "custom":
                tools.append(Tool(str(tool.get("custom", {}).get("name")), kind="custom"))
            elif kind == "function":
                tools.append(function_tool(tool.get("function"), f"tools[{number}].function"))
            else:
                raise RefusalError(f"Invalid value: '{kind}'.", param=f"tools[{number}].type", code="invalid_value")
        choice = body.get("tool_choice")
        if isinstance(choice, dict) and choice.get("type") == "function":
            wanted = choice.get("function", {}).get("name")
            if wanted not in [tool.name for tool in tools]:
                raise RefusalError(f"Tool choice '{wanted}' not found in 'tools' parameter.", param="tool_choice")
        return tuple(tools)

    def _message(self, number: int, message: Any, talk: Conversation, waiting: list[str]) -> None:
        where = f"messages.[{number}]"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ROLES:
            raise RefusalError(
                f"Invalid value: '{role}'. Supported values are: {', '.join(map(repr, ROLES))}.",
                param=f"{where}.role",
                code="invalid_value",
            )
        content = message.get("content")
        if role == "tool":
            id = message.get("tool_call_id")
            if not isinstance(id, str):
                raise RefusalError(
                    "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
                    param=f"{where}.tool_call_id",
                )
            if id not in waiting:
                raise RefusalError(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
                    f"'tool_calls'. '{id}' is not a call that waits for its result.",
                    param=f"{where}.role",
                )
            if not isinstance(content, str | list):
                raise RefusalError(
                    f"Invalid value for 'content': expected a string, got {content!r}.", param=f"{where}.content"
                )
            waiting.remove(id)
            talk.result(id, text_of(content))
            return
        _nothing_waits(waiting)
        calls = _calls(message, where) if role == "assistant" else []
        if not isinstance(content, str | list) and not calls and not message.get("refusal"):
            raise RefusalError(
                f"Invalid value for 'content': expected a string, got {content!r}.", param=f"{where}.content"
            )
        waiting.extend(call.id for call in calls)
        talk.say(role, text_of(content), calls)

    def _base(self, asked: Asked, answer: Answer, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{answer.id}",
            "object": kind,
            "created": now(),
            "model": asked.model,
            "service_tier": "default",
            "system_fingerprint": "fp_recollect",
        }

    def write(self, asked: Asked, answer: Answer) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None, "annotations": []}
        if any(isinstance(part, Say) for part in answer.parts) or not answer.parts:
            message["content"] = answer.text
        if answer.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": written(call.arguments)},
                }
                for call in answer.calls
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
        return {**self._base(asked, answer, "chat.completion"), "choices": [choice], "usage": _usage(answer)}

    def stream(self, asked: Asked, answer: Answer) -> Iterator[bytes]:
        base = self._base(asked, answer, "chat.completion.chunk")
        options = asked.raw.get("stream_options") or {}
        if options.get("include_usage"):
            base["usage"] = None

        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return event({**base, "choices": [choice]})

        yield chunk({"role": "assistant", "content": None if answer.calls and not answer.text else "", "refusal": None})
        for piece in pieces(answer.text):
            yield chunk({"content": piece})
        for index, call in enumerate(answer.calls):
            function = {"name": call.name, "arguments": ""}
            yield chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
            for piece in json_pieces(written(call.arguments)):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, _finish(answer))
        if options.get("include_usage"):
            yield event({**base, "choices": [], "usage": _usage(answer)})
        yield b"data: [DONE]\n\n"


def _calls(message: Mapping[str, Any], where: str) -> list[Call]:
    calls = []
    declared = message.get("tool_calls")
    if declared is not None and (not isinstance(declared, list) or not declared):
        raise RefusalError(f"Invalid '{where}.tool_calls': empty array.", param=f"{where}.tool_calls")
    for number, call in enumerate(declared or []):
        function = call.get("function") if isinstance(call, dict) else None
        here = f"{where}.tool_calls[{number}]"
        if isinstance(call, dict) and call.get("type") == "custom":
            function = {"name": call["custom"].get("name"), "arguments": call["custom"].get("input")}
        if not isinstance(function, dict) or not isinstance(call.get("id"), str):
            raise RefusalError(f"Missing required parameter: '{here}.id' or '{here}.function'.", param=here)
        if not isinstance(function.get("name"), str) or not isinstance(function.get("arguments"), str):
            raise RefusalError(
                f"Invalid type for '{here}.function.arguments': expected a string.",
                param=f"{here}.function.arguments",
                code="invalid_type",
            )
        calls.append(Call(function["name"], parsed(function["arguments"]), id=call["id"]))
    return calls


def _nothing_waits(waiting: Sequence[str]) -> None:
    if waiting:
        raise RefusalError(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(waiting),
            param="messages",
        )


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "prompt_tokens": answer.usage.input,
        "completion_tokens": answer.usage.output,
        "total_tokens": answer.usage.input + answer.usage.output,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }
