"""OpenAI responses: ``POST /v1/responses``. Remembers what it answered, for ``previous_response_id``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from recollect.testing.models.chat import OpenAI, function_tool
from recollect.testing.models.protocol import (
    Answer,
    Conversation,
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
from recollect.testing.models.script import Asked, Call, Tool

TEXTS = ("input_text", "output_text", "text")
ECHOED: dict[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
}


class Responses(OpenAI):
    name = "openai-responses"

    def __init__(self) -> None:
        self._stored: dict[str, list[Any]] = {}

    def read(self, request: Request) -> Asked:
        body = request.body
        model = required(body, "model", str, "a string")
        given = required(body, "input", (str, list), "a string or an array of items")
        if body.get("conversation") is not None:
            raise RefusalError(
                "Conversations are not kept by this server: use 'previous_response_id'.", param="conversation"
            )
        tools = self._tools(body)
        talk = Conversation()
        waiting: dict[str, str] = {}
        items = self._before(body) + (given if isinstance(given, list) else [{"role": "user", "content": given}])
        if not items:
            raise RefusalError("Invalid 'input': empty array.", param="input", code="empty_array")
        for number, item in enumerate(items):
            self._item(f"input[{number}]", item, talk, waiting)
        for id in waiting:
            raise RefusalError(f"No tool output found for function call {id}.", param="input")
        system = [body["instructions"]] if isinstance(body.get("instructions"), str) else []
        return Asked(
            self.name,
            model,
            "\n".join(system + talk.system),
            tuple(talk.messages),
            tools,
            body,
            request.headers,
            bool(body.get("stream")),
        )

    def _before(self, body: Mapping[str, Any]) -> list[Any]:
        previous = body.get("previous_response_id")
        if previous is None:
            return []
        if previous not in self._stored:
            raise RefusalError(
                f"Previous response with id '{previous}' not found.",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        return self._stored[previous]

    def _tools(self, body: Mapping[str, Any]) -> tuple[Tool, ...]:
        tools = []
        for number, tool in enumerate(body.get("tools") or []):
            kind = tool.get("type") if isinstance(tool, dict) else None
            if not isinstance(kind, str):
                raise RefusalError(
                    f"Missing required parameter: 'tools[{number}].type'.", param=f"tools[{number}].type"
                )
            if kind == "function":
                tools.append(function_tool(tool, f"tools[{number}]"))
            else:
                tools.append(Tool(str(tool.get("name", kind)), kind=kind))
        return tuple(tools)

    def _item(self, where: str, item: Any, talk: Conversation, waiting: dict[str, str]) -> None:
        if not isinstance(item, dict):
            raise RefusalError(f"Invalid type for '{where}': expected an object.", param=where, code="invalid_type")
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message":
            role = item.get("role")
            if role not in ("user", "assistant", "system", "developer"):
                raise RefusalError(f"Invalid value: '{role}'.", param=f"{where}.role", code="invalid_value")
            if not isinstance(item.get("content"), str | list):
                raise RefusalError(
                    f"Missing required parameter: '{where}.content'.",
                    param=f"{where}.content",
                    code="missing_required_parameter",
                )
            talk.say(role, text_of(item["content"], TEXTS))
        elif kind == "function_call":
            for name in ("call_id", "name", "arguments"):
                if not isinstance(item.get(name), str):
                    raise RefusalError(
                        f"Missing required parameter: '{where}.{name}'.",
                        param=f"{where}.{name}",
                        code="missing_required_parameter",
                    )
            waiting[item["call_id"]] = item["name"]
            talk.say("assistant", "", [Call(item["name"], parsed(item["arguments"]), id=item["call_id"])])
        elif kind == "function_call_output":
            id = item.get("call_id")
            if id not in waiting:
                raise RefusalError(f"No tool call found for function call output with call_id {id}.", param="input")
            if not isinstance(item.get("output"), str | list):
                raise RefusalError(f"Missing required parameter: '{where}.output'.", param=f"{where}.output")
            del waiting[id]
            talk.result(id, text_of(item["output"], TEXTS))
        elif not isinstance(kind, str):
            raise RefusalError(f"Missing required parameter: '{where}.type'.", param=f"{where}.type")

    def answered(self, asked: Asked, answer: Answer) -> None:
        if asked.raw.get("store") is False:
            return
        given = asked.raw["input"]
        new = given if isinstance(given, list) else [{"role": "user", "content": given}]
        self._stored[f"resp_{answer.id}"] = [*self._before(asked.raw), *new, *_output(answer)]

    def _response(self, asked: Asked, answer: Answer, status: str) -> dict[str, Any]:
        done = status == "completed"
        echoed = {name: asked.raw.get(name, default) for name, default in ECHOED.items()}
        return {
            **echoed,
            "id": f"resp_{answer.id}",
            "object": "response",
            "created_at": now(),
            "status": status,
            "completed_at": now() if done else None,
            "error": None,
            "incomplete_details": None,
            "model": asked.model,
            "output": _output(answer) if done else [],
            "usage": _usage(answer) if done else None,
        }

    def write(self, asked: Asked, answer: Answer) -> Any:
        return self._response(asked, answer, "completed")

    def stream(self, asked: Asked, answer: Answer) -> Iterator[bytes]:
        numbers = itertools.count()

        def named(kind: str, **fields: Any) -> bytes:
            kind = f"response.{kind}"
            return event({"type": kind, "sequence_number": next(numbers), **fields}, kind)

        yield named("created", response=self._response(asked, answer, "in_progress"))
        yield named("in_progress", response=self._response(asked, answer, "in_progress"))
        for index, item in enumerate(_output(answer)):
            place = {"item_id": item["id"], "output_index": index}
            if item["type"] == "message":
                part = item["content"][0]
                inside = {**place, "content_index": 0}
                started = {**item, "status": "in_progress", "content": []}
                yield named("output_item.added", output_index=index, item=started)
                yield named("content_part.added", **inside, part={**part, "text": ""})
                for piece in pieces(part["text"]):
                    yield named("output_text.delta", **inside, delta=piece, logprobs=[])
                yield named("output_text.done", **inside, text=part["text"], logprobs=[])
                yield named("content_part.done", **inside, part=part)
            else:
                started = {**item, "status": "in_progress", "arguments": ""}
                yield named("output_item.added", output_index=index, item=started)
                for piece in json_pieces(item["arguments"]):
                    yield named("function_call_arguments.delta", **place, delta=piece)
                done = {"name": item["name"], "arguments": item["arguments"]}
                yield named("function_call_arguments.done", **place, **done)
            yield named("output_item.done", output_index=index, item=item)
        yield named("completed", response=self._response(asked, answer, "completed"))


def _output(answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for number, part in enumerate(answer.parts):
        if isinstance(part, Call):
            items.append(
                {
                    "id": f"fc_{answer.id}_{number}",
                    "type": "function_call",
                    "status": "completed",
                    "call_id": part.id,
                    "name": part.name,
                    "arguments": written(part.arguments),
                }
            )
        else:
            text = {"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}
            items.append(
                {
                    "id": f"msg_{answer.id}_{number}",
                    "type": "message",
                    "status": "completed",
                    "role": "assistant",
                    "content": [text],
                }
            )
    return items


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "input_tokens": answer.usage.input,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.usage.input + answer.usage.output,
    }
