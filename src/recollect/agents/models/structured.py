"""JSON in a model's text: in a code fence, between sentences, or alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_DECODER = json.JSONDecoder()
_MOST_BEGINNINGS = 100
"""The number of brackets that begin no JSON after which the search stops."""


def json_in(text: str) -> Any:
    """Return the JSON object or list in a text; raise ValueError with the problem, for the model to read."""
    text = text.strip().removeprefix("\ufeff")
    places = [*(match[1] for match in _FENCE.finditer(text)), text]
    for place in places:
        try:
            found = json.loads(place)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict | list):
            return found
    for place in places:
        for number, match in enumerate(re.finditer(r"[{\[]", place)):
            if number == _MOST_BEGINNINGS:
                break
            try:
                found, _ = _DECODER.raw_decode(place, match.start())
            except (ValueError, RecursionError):
                continue
            if found or place[match.start() :].strip() in ("{}", "[]"):
                return found
    raise ValueError("there is no JSON in the answer; give one JSON value and nothing else")


def missing(data: Any, schema: Mapping[str, Any]) -> str:
    """Return the problem with the outermost shape, as a sentence; empty if none. The rest is for the caller's check."""
    if schema.get("type") == "object":
        if not isinstance(data, dict):
            return "the answer must be a JSON object"
        absent = [name for name in schema.get("required", ()) if name not in data]
        return f"the answer lacks {', '.join(absent)}" if absent else ""
    if schema.get("type") == "array" and not isinstance(data, list):
        return "the answer must be a JSON list"
    return ""


def as_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as the arguments of a tool: anything but an object becomes its only property."""
    if schema.get("type") == "object":
        return dict(schema)
    return {"type": "object", "properties": {"answer": dict(schema)}, "required": ["answer"]}
