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
    choices = _as_list(_first_field(response, "choices"))
    message = _first_field(choices[0] if choices else response, "message") or response
    found = []
    for one in _as_list(_first_field(message, "tool_calls")):
        custom, function = _first_field(one, "custom"), _first_field(one, "function")
        if custom is not None and function is None:
            found.append(_make_call(one, custom, ("id",), ("input",), "custom"))
        else:
            found.append(_make_call(one, function, ("id",), ("arguments",)))
    legacy = _first_field(message, "function_call")
    if legacy is not None and not found:
        found.append(_make_call(None, legacy, ("id",), ("arguments",), "legacy"))
    return found


def _responses_calls(response: Any) -> list[Call]:
    found = []
    for item in (
        _as_list(response) if isinstance(response, list | tuple) else _as_list(_first_field(response, "output"))
    ):
        match _first_field(item, "type"):
            case "function_call":
                found.append(_make_call(item, item, ("call_id", "id"), ("arguments",)))
            case "custom_tool_call":
                found.append(_make_call(item, item, ("call_id", "id"), ("input",), "custom"))
    return found


def _anthropic_calls(response: Any) -> list[Call]:
    blocks = _as_list(response) if isinstance(response, list | tuple) else _as_list(_first_field(response, "content"))
    cut = _first_field(response, "stop_reason") in ("max_tokens", "model_context_window_exceeded")
    return [
        # libraries complete the JSON of a call that was cut off, so that it looks complete
        _make_call(block, block, ("id",), ("input",), whole=not (cut and block is blocks[-1]))
        for block in blocks
        if _first_field(block, "type") == "tool_use"
    ]


def _gemini_calls(response: Any) -> list[Call]:
    made = [_first_field(part, "function_call", "functionCall") for part in _response_parts(response)]
    return [_make_call(one, one, ("id",), ("args",)) for one in made if one is not None]


def _response_parts(thing: Any) -> list[Any]:
    if isinstance(thing, list | tuple):
        return [part for one in thing for part in _response_parts(one)]
    for inner in (
        _as_list(_first_field(thing, "candidates"))[:1],
        _first_field(thing, "content"),
        _as_list(_first_field(thing, "parts")),
    ):
        if inner:
            return _response_parts(inner)
    return [thing]


def is_malformed(response: Any) -> bool:
    """Return True if Gemini dropped a call that it could not parse: there are then no parts and no text."""
    if isinstance(response, list | tuple):  # the pieces of a stream
        return any(map(is_malformed, response))
    candidates = _as_list(_first_field(response, "candidates"))
    reason = _first_field(candidates[0], "finish_reason", "finishReason") if candidates else None
    return getattr(reason, "value", reason) == "MALFORMED_FUNCTION_CALL"


_READERS: dict[str, Callable[[Any], list[Call]]] = {
    "openai": _openai_calls,
    "responses": _responses_calls,
    "anthropic": _anthropic_calls,
    "gemini": _gemini_calls,
}


def _make_call(
    holder: Any,
    function: Any,
    id: Sequence[str],
    arguments: Sequence[str],
    kind: Literal["function", "custom", "legacy"] = "function",
    *,
    whole: bool = True,
) -> Call:
    given = _first_field(function, *arguments)
    return Call(str(_first_field(holder, *id) or ""), str(_first_field(function, "name") or ""), given, kind, whole)


def _first_field(thing: Any, *names: str) -> Any:
    """Return the first of these names that exists, in plain data or in an object."""
    for name in names:
        found = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if found is not None:
            return found
    return None


def _as_list(value: Any) -> list[Any]:
    """Return the items of a list, or of a mapping from numbers, as stream assemblers keep it."""
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else []
