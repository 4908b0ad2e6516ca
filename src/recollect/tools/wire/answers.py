"""The calls of a response run, and their results as the provider wants them back."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from recollect.errors import InvalidInputError
from recollect.tools.suite import Result, Suite
from recollect.tools.wire.calls import Call, Format, calls, is_malformed

Json = dict[str, Any]

# names that models and services put before the name of a tool; whatever else comes before it is the host's
_NAMESPACE = re.compile(r"(functions|default_api|tools)[.:]")
_CUT_OFF = "Error: not done: the call was cut off at the limit of tokens; make it again, with shorter arguments"
_MALFORMED = "Your function call was malformed and was not done. Make it again, with arguments that are valid JSON."


class Answered:
    """The results of the calls of one response.

    ``messages`` are what has to be appended to the conversation after the assistant's message, in the order of the
    calls. Calls of tools that are the host's are in ``others`` until the host has added their results: providers want
    the results of all calls of a response, and two of them want those in one message.
    """

    def __init__(self, format: Format, response: Any) -> None:
        self.format: Format = format
        self.calls = tuple(calls(response, format))
        self.ours: list[tuple[Call, Result]] = []
        """What was called here, and what came of it."""
        self._texts: dict[int, tuple[str, bool]] = {}
        self._malformed = format == "gemini" and not self.calls and is_malformed(response)

    def __repr__(self) -> str:
        return f"<Answered {len(self._texts)} of {len(self.calls)} calls>"

    @property
    def others(self) -> list[Call]:
        """The calls that have no result yet: they are of the host's own tools."""
        return [call for number, call in enumerate(self.calls) if number not in self._texts]

    @property
    def messages(self) -> list[Json]:
        """What to append to the conversation; empty if the model called nothing, which is when its turn is over."""
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
        raise InvalidInputError("call", "must be one of the others of this response, and have no result yet")

    def _waiting(self, suite: Suite, host_tools: Collection[str] | None) -> list[Call]:
        """Those to call here."""
        ours = [call for call in self.calls if call.kind != "custom" and _is_ours(suite, call.name, host_tools)]
        for call in ours:
            if not call.whole:
                self.add(call, _CUT_OFF, is_error=True)
        return [call for call in ours if call.whole]

    def _put(self, call: Call, result: Result) -> None:
        self.ours.append((call, result))
        self.add(call, result.text, is_error=result.is_error)


def answer(suite: Suite, response: Any, format: Format, *, host_tools: Collection[str] | None = None) -> Answered:
    """Run the calls of memory tools in a response, and give what has to be appended to the conversation.

    They run one after the other, in their order: what one writes the next one finds, and of too many calls it is the
    last that are not done. Their number is limited by `Suite.response`, unless the suite is one already.

    Calls of other tools are left to the host, see `Answered.others`. With ``host_tools``, the names of the host's own,
    only those are: whatever else the model calls is answered here, if only by saying that there is no such tool.
    """
    answered, bounded = Answered(format, response), suite if suite.is_response else suite.response()
    for call in answered._waiting(suite, host_tools):
        answered._put(call, bounded.call(call.name, call.arguments))
    return answered


async def aanswer(
    suite: Suite, response: Any, format: Format, *, host_tools: Collection[str] | None = None
) -> Answered:
    """`answer`, awaited; the event loop goes on meanwhile."""
    answered, bounded = Answered(format, response), suite if suite.is_response else suite.response()
    for call in answered._waiting(suite, host_tools):
        answered._put(call, await bounded.acall(call.name, call.arguments))
    return answered


def _is_ours(suite: Suite, name: str, host_tools: Collection[str] | None) -> bool:
    """Whether a call is for us. The suite takes a name with anything before it; here that may be another's tool."""
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
