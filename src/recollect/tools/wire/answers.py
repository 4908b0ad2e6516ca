"""Runs the calls of a response and returns their results in the provider's format."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from recollect.errors import InvalidInputError
from recollect.tools.suite import Result, Suite
from recollect.tools.wire.calls import Call, Format, calls, is_malformed

Json = dict[str, Any]

# prefixes that models and services add to the name of a tool; a name with another prefix is the host's tool
_NAMESPACE = re.compile(r"(functions|default_api|tools)[.:]")
_CUT_OFF = "Error: not done: the call was cut off at the token limit; make it again with shorter arguments"
_MALFORMED = "Your function call was malformed and was not executed. Make it again with arguments that are valid JSON."


class Answered:
    """The results of the calls of one response.

    Append ``messages`` to the conversation after the assistant's message; they are in the order of the calls. Calls of
    the host's own tools are in ``others`` until the host has added their results: providers require the results of all
    calls of a response, and two of them require them in one message.
    """

    def __init__(self, format: Format, response: Any) -> None:
        self.format: Format = format
        self.calls = tuple(calls(response, format))
        self.ours: list[tuple[Call, Result]] = []
        """The results of the calls that ran here."""
        self._texts: dict[int, tuple[str, bool]] = {}
        self._malformed = format == "gemini" and not self.calls and is_malformed(response)

    def __repr__(self) -> str:
        return f"<Answered {len(self._texts)} of {len(self.calls)} calls>"

    @property
    def others(self) -> list[Call]:
        """The calls without a result yet, which are for the host's own tools."""
        return [call for number, call in enumerate(self.calls) if number not in self._texts]

    @property
    def messages(self) -> list[Json]:
        """The messages to append to the conversation; empty if the model made no calls, which ends its turn."""
        if self._malformed:
            return [{"role": "user", "parts": [{"text": _MALFORMED}]}]
        results = [(self.calls[number], *self._texts[number]) for number in sorted(self._texts)]
        return _WRITERS[self.format](results) if results else []

    def add(self, call: Call, text: str, *, is_error: bool = False) -> None:
        """Add the result of a call of the host's own tools."""
        for number, one in enumerate(self.calls):
            if one is call and number not in self._texts:
                self._texts[number] = (text, is_error)
                return
        raise InvalidInputError("call", "must be one of the others of this response that has no result yet")

    def _waiting(self, suite: Suite, host_tools: Collection[str] | None) -> list[Call]:
        ours = [call for call in self.calls if call.kind != "custom" and _is_ours(suite, call.name, host_tools)]
        for call in ours:
            if not call.whole:
                self.add(call, _CUT_OFF, is_error=True)
        return [call for call in ours if call.whole]

    def _put(self, call: Call, result: Result) -> None:
        self.ours.append((call, result))
        self.add(call, result.text, is_error=result.is_error)


def answer(suite: Suite, response: Any, format: Format, *, host_tools: Collection[str] | None = None) -> Answered:
    """Run the calls of memory tools in a response, and return what to append to the conversation.

    They run one after the other, in order: each finds what the one before wrote, and if there are too many, the last
    ones are not executed. `Suite.response` limits their number, unless the suite is one already.

    Calls of other tools are left to the host, see `Answered.others`. With ``host_tools``, the names of the host's own
    tools, only those are left; any other call gets an error that there is no such tool.
    """
    answered, bounded = Answered(format, response), suite if suite.is_response else suite.response()
    for call in answered._waiting(suite, host_tools):
        answered._put(call, bounded.call(call.name, call.arguments))
    return answered


async def aanswer(
    suite: Suite, response: Any, format: Format, *, host_tools: Collection[str] | None = None
) -> Answered:
    """Like `answer`, without blocking the event loop."""
    answered, bounded = Answered(format, response), suite if suite.is_response else suite.response()
    for call in answered._waiting(suite, host_tools):
        answered._put(call, await bounded.acall(call.name, call.arguments))
    return answered


def _is_ours(suite: Suite, name: str, host_tools: Collection[str] | None) -> bool:
    """Return True if a call is for us. The suite accepts any prefix, but here it may name another tool."""
    if host_tools is not None:
        return name not in host_tools
    bare = _NAMESPACE.sub("", name, count=1) if _NAMESPACE.match(name) else name
    return bare in suite.tools or (not re.search(r"__|[.:/]", bare) and suite.find(bare) is not None)


_Results = list[tuple[Call, str, bool]]


def _openai_messages(results: _Results) -> list[Json]:
    return [
        {"role": "function", "name": call.name, "content": text}
        if call.kind == "legacy"
        else {"role": "tool", "tool_call_id": call.id, "content": text}
        for call, text, _ in results
    ]


def _responses_items(results: _Results) -> list[Json]:
    return [
        {
            "type": "custom_tool_call_output" if call.kind == "custom" else "function_call_output",
            "call_id": call.id,
            "output": text,
        }
        for call, text, _ in results
    ]


def _anthropic_message(results: _Results) -> list[Json]:
    blocks = [
        {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": is_error}
        for call, text, is_error in results
    ]
    return [{"role": "user", "content": blocks}]


def _gemini_content(results: _Results) -> list[Json]:
    parts = [
        {
            "functionResponse": ({"id": call.id} if call.id else {})
            | {"name": call.name, "response": {"error" if is_error else "output": text}}
        }
        for call, text, is_error in results
    ]
    return [{"role": "user", "parts": parts}]


_WRITERS: dict[str, Callable[[_Results], list[Json]]] = {
    "openai": _openai_messages,
    "responses": _responses_items,
    "anthropic": _anthropic_message,
    "gemini": _gemini_content,
}
