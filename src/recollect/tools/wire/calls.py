"""Parses the calls of a model from the response of its provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from recollect.errors import InvalidInputError

Format = Literal["openai", "responses", "anthropic", "gemini"]
"""OpenAI's chat completions, which many others use; OpenAI's responses; Anthropic's messages; Gemini's contents."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a model made. ``arguments`` are unparsed: text, a mapping, or something else."""

    id: str
    """The provider's id of the call; empty where there is none."""
    name: str
    arguments: Any = None
    kind: Literal["function", "custom", "legacy"] = "function"
    """``custom`` takes free text and is never ours; ``legacy`` is OpenAI's ``function_call``."""
    whole: bool = True
    """False if the call was cut off, so that its arguments are not what was meant."""


def calls(response: Any, format: Format) -> list[Call]:
    """Return the calls in a response that wait for a result, in order.

    ``response`` is what the library or the service returned, or the part of it with the calls: a message, or a list of
    output items, content blocks or parts, as from a stream. Of several choices, the first is used.
    """
    return _reader(format)(response)


def _reader(format: str) -> Callable[[Any], list[Call]]:
    if format not in _READERS:
        raise InvalidInputError("format", f"must be one of {', '.join(_READERS)}")
    return _READERS[format]


def _openai_calls(response: Any) -> list[Call]:
    choices = _list(_get(response, "choices"))
    message = _get(choices[0] if choices else response, "message") or response
    found = []
    for one in _list(_get(message, "tool_calls")):
        custom, function = _get(one, "custom"), _get(one, "function")
        if custom is not None and function is None:
            found.append(_call(one, custom, ("id",), ("input",), "custom"))
        else:
            found.append(_call(one, function, ("id",), ("arguments",)))
    legacy = _get(message, "function_call")
    if legacy is not None and not found:
        found.append(_call(None, legacy, ("id",), ("arguments",), "legacy"))
    return found


def _responses_calls(response: Any) -> list[Call]:
    found = []
    for item in _list(response) if isinstance(response, list | tuple) else _list(_get(response, "output")):
        match _get(item, "type"):
            case "function_call":
                found.append(_call(item, item, ("call_id", "id"), ("arguments",)))
            case "custom_tool_call":
                found.append(_call(item, item, ("call_id", "id"), ("input",), "custom"))
    return found


def _anthropic_calls(response: Any) -> list[Call]:
    blocks = _list(response) if isinstance(response, list | tuple) else _list(_get(response, "content"))
    cut = _get(response, "stop_reason") in ("max_tokens", "model_context_window_exceeded")
    return [
        # libraries complete the JSON of a call that was cut off, so that it looks complete
        _call(block, block, ("id",), ("input",), whole=not (cut and block is blocks[-1]))
        for block in blocks
        if _get(block, "type") == "tool_use"
    ]


def _gemini_calls(response: Any) -> list[Call]:
    made = [_get(part, "function_call", "functionCall") for part in _parts(response)]
    return [_call(one, one, ("id",), ("args",)) for one in made if one is not None]


def _parts(thing: Any) -> list[Any]:
    """Return the parts of a response, a content, or a list of them."""
    if isinstance(thing, list | tuple):
        return [part for one in thing for part in _parts(one)]
    for inner in (_list(_get(thing, "candidates"))[:1], _get(thing, "content"), _list(_get(thing, "parts"))):
        if inner:
            return _parts(inner)
    return [thing]


def is_malformed(response: Any) -> bool:
    """Return True if Gemini dropped a call that it could not parse: there are then no parts and no text."""
    if isinstance(response, list | tuple):  # the pieces of a stream
        return any(map(is_malformed, response))
    candidates = _list(_get(response, "candidates"))
    reason = _get(candidates[0], "finish_reason", "finishReason") if candidates else None
    return getattr(reason, "value", reason) == "MALFORMED_FUNCTION_CALL"


_READERS: dict[str, Callable[[Any], list[Call]]] = {
    "openai": _openai_calls,
    "responses": _responses_calls,
    "anthropic": _anthropic_calls,
    "gemini": _gemini_calls,
}


def _call(
    holder: Any,
    function: Any,
    id: Sequence[str],
    arguments: Sequence[str],
    kind: Literal["function", "custom", "legacy"] = "function",
    *,
    whole: bool = True,
) -> Call:
    given = _get(function, *arguments)
    return Call(str(_get(holder, *id) or ""), str(_get(function, "name") or ""), given, kind, whole)


def _get(thing: Any, *names: str) -> Any:
    """Return the first of these names that exists, in plain data or in an object."""
    for name in names:
        found = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if found is not None:
            return found
    return None


def _list(value: Any) -> list[Any]:
    """Return the items of a list, or of a mapping from numbers, as stream assemblers keep it."""
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else []
