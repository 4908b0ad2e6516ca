"""Declares our tools in each provider's format, plain or strict. See docs/wire.md for the rules and their sources."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Literal, get_args

from recollect.errors import InvalidInputError
from recollect.tools.suite import Suite
from recollect.tools.tool import Tool
from recollect.tools.wire.calls import Format

Json = dict[str, Any]

ANTHROPIC_STRICT_TOOLS = 20
ANTHROPIC_STRICT_OPTIONAL = 24
"""The maximum number of strict tools in a request, and of their optional parameters together."""

_ANTHROPIC_KNOWS = {"memory": "memory_20250818"}
"""Tools that the provider itself declares to its models, by our name."""
_ANTHROPIC_REFUSES = frozenset({"default", "minimum", "maximum", "minItems", "maxItems"})
_SAID = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "default": "default {}",
}


def declarations(tools: Suite | Iterable[Tool], format: Format | Literal["mcp"], *, strict: bool = False) -> list[Json]:
    """Return the ``tools`` of a request.

    Plain declarations contain the JSON Schema of the tool. In strict mode, the provider enforces the schema, which is
    converted to the form that the mode supports; what it cannot express moves to the descriptions. Anthropic limits the
    number of strict tools; the last ones beyond the limit are declared plainly. Gemini is strict in the modes VALIDATED
    and ANY, which the request chooses.
    """
    if isinstance(tools, Suite):
        offered = [(tool, tools.schema(name)) for name, tool in tools.tools.items()]
    else:
        offered = [(tool, tool.schema()) for tool in tools]
    match format:
        case "openai":
            return [
                {"type": "function", "function": _openai_declaration(tool, schema, strict)} for tool, schema in offered
            ]
        case "responses":
            # strict is the default of this service
            return [
                {"type": "function", "strict": False} | _openai_declaration(tool, schema, strict)
                for tool, schema in offered
            ]
        case "anthropic":
            return _anthropic_declarations(offered, strict)
        case "gemini":
            return [{"function_declarations": [_gemini_declaration(tool, schema, strict) for tool, schema in offered]}]
        case "mcp":
            return [_mcp_declaration(tool, schema) for tool, schema in offered]
    raise InvalidInputError("format", f"must be one of {', '.join((*get_args(Format), 'mcp'))}")


def _openai_declaration(tool: Tool, schema: Json, strict: bool) -> Json:
    declared = {"name": tool.name, "description": tool.description, "parameters": schema}
    if not strict:
        return declared
    properties = {
        name: _without({"default"}, value if name in schema["required"] else _nullable(value))
        for name, value in schema["properties"].items()
    }
    closed = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return declared | {"parameters": closed, "strict": True}


def _anthropic_declarations(offered: Iterable[tuple[Tool, Json]], strict: bool) -> list[Json]:
    tools, optional = (ANTHROPIC_STRICT_TOOLS, ANTHROPIC_STRICT_OPTIONAL) if strict else (0, 0)
    declared: list[Json] = []
    for tool, schema in offered:
        if kind := _ANTHROPIC_KNOWS.get(tool.name):
            declared.append({"type": kind, "name": tool.name})
            continue
        one: Json = {"name": tool.name, "description": tool.description, "input_schema": schema}
        own = len(schema["properties"]) - len(schema["required"])
        if tools > 0 and own <= optional:
            tools, optional = tools - 1, optional - own
            properties = {name: _without(_ANTHROPIC_REFUSES, value) for name, value in schema["properties"].items()}
            one |= {"input_schema": schema | {"properties": properties, "additionalProperties": False}, "strict": True}
        declared.append(one)
    return declared


def _gemini_declaration(tool: Tool, schema: Json, strict: bool) -> Json:
    declared: Json = {"name": tool.name, "description": tool.description}
    if not schema["properties"]:  # an object without properties is rejected
        return declared
    if strict:
        properties = {name: _without({"default"}, value) for name, value in schema["properties"].items()}
        schema = schema | {"properties": properties}
    return declared | {"parameters": schema}


def _mcp_declaration(tool: Tool, schema: Json) -> Json:
    hints = {
        "readOnlyHint": tool.tier == "read_only",
        "destructiveHint": tool.tier == "destructive",
        "idempotentHint": tool.idempotent,
        "openWorldHint": False,
    }
    said = {"name": tool.name, "title": tool.title, "description": tool.description}
    return said | {"inputSchema": schema, "annotations": hints}


def _nullable(schema: Json) -> Json:
    """Return a schema that also allows null, which means not given where all parameters are required."""
    enum = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return schema | {"type": [schema["type"], "null"]} | enum


def _without(keywords: Collection[str], schema: Json) -> Json:
    """Return a schema without some keywords, whose meaning is added to the description if it is missing there."""
    kept = {keyword: value for keyword, value in schema.items() if keyword not in keywords}
    description = str(schema.get("description", ""))
    numbers = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", description)}
    said = []
    for keyword, form in _SAID.items():
        value = schema.get(keyword)
        if keyword in kept or value is None:
            continue
        told = (
            str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
        )
        known = told in description if isinstance(value, str | bool) else float(value) in numbers
        if not known:
            said.append(form.format(told))
    if said:
        kept["description"] = f"{description} ({', '.join(said)})".lstrip()
    return kept
