"""A model server that also refuses the names and schemas of tools that the real services refuse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from recollect.testing.models import DeclaredTool, ModelRequest, ModelServer
from recollect.testing.models.gemini import field_of
from recollect.testing.models.protocol import RefusedError

_TYPES = frozenset("object array string integer number boolean null".split())
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_BUILT_IN = re.compile(r"[a-z][a-z0-9_]*_\d{8}")
_MOST_STRICT_TOOLS = 20
_MOST_OPTIONAL = 24
_PLACES = ("properties", "$defs", "definitions")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_TYPED = frozenset({"type", "$ref", "enum", "const", "anyOf", "oneOf", "allOf"})
_RARE = frozenset(
    (
        "oneOf not if then else dependentRequired dependentSchemas patternProperties propertyNames "
        "unevaluatedProperties unevaluatedItems minProperties maxProperties contains minContains maxContains "
        "uniqueItems minLength maxLength"
    ).split()
)
_FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())
_NOT_IN_OPENAI = _RARE | {"allOf", "default"}
_NOT_IN_ANTHROPIC = _RARE | frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf maxItems prefixItems".split()
)
_GEMINI_FIELDS = frozenset(
    (
        "type format title description nullable enum items maxItems minItems properties required minProperties "
        "maxProperties minLength maxLength pattern example anyOf propertyOrdering default minimum maximum"
    ).split()
)


class StrictModelServer(ModelServer):
    """A model server that checks declared tools as strictly as each service does."""

    def check(self, request: ModelRequest) -> None:
        pattern = _GEMINI_NAME if request.protocol == "gemini" else _NAME
        for tool in request.tools:
            if not pattern.fullmatch(tool.name):
                raise RefusedError(f"The tool name {tool.name!r} does not match the pattern '^{pattern.pattern}$'.")
        if request.protocol == "gemini":
            _check_gemini_tools(request)
        elif request.protocol == "anthropic":
            _check_anthropic_tools(request.tools)
        else:
            for tool in request.raw.get("tools") or ():
                function = tool.get("function", tool)
                if tool["type"] == "function" and function.get("parameters") is not None:
                    _check_openai(function["parameters"], function["name"], strict=bool(function.get("strict")))


def _check_unique(tools: Iterable[DeclaredTool]) -> None:
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise RefusedError("tools: Tool names must be unique.")


def _check_anthropic_tools(tools: Sequence[DeclaredTool]) -> None:
    _check_unique(tools)
    if unknown := [tool.kind for tool in tools if tool.kind and not _BUILT_IN.fullmatch(tool.kind)]:
        raise RefusedError(f"tools: the type {unknown[0]!r} is not known")
    optional = sum(_check_anthropic(tool.schema, tool.name, strict=tool.strict) for tool in tools if not tool.kind)
    if sum(tool.strict for tool in tools) > _MOST_STRICT_TOOLS or optional > _MOST_OPTIONAL:
        raise RefusedError(
            f"tools: at most {_MOST_STRICT_TOOLS} tools may be strict, with {_MOST_OPTIONAL} optional parameters"
        )


def _check_gemini_tools(request: ModelRequest) -> None:
    _check_unique(tool for tool in request.tools if not tool.kind)
    for tool in request.raw.get("tools") or ():
        for function in field_of(tool, "functionDeclarations") or ():
            subset, schema = field_of(function, "parameters"), field_of(function, "parametersJsonSchema")
            if subset is not None:
                _check_gemini(subset, function["name"])
            if schema is not None:
                _check_object(schema, function["name"])


def _check_object(schema: Any, tool: str) -> None:
    """Check that this is a JSON Schema of type object, as far as every service looks."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise RefusedError(f"The schema of '{tool}' must be a JSON Schema of type 'object'.")
    for where, node in _nodes(schema):
        types = node.get("type", [])
        unknown = set(types if isinstance(types, list) else [types]) - _TYPES
        names = node.get("required", [])
        if unknown or not isinstance(names, list) or node.get("enum", [1]) == []:
            raise RefusedError(f"The schema of '{tool}' is invalid at {where or 'the top'}: {sorted(unknown)}")
        if "$ref" in node and not str(node["$ref"]).startswith("#"):
            raise RefusedError(f"The schema of '{tool}' refers to {node['$ref']!r}, which is outside of it.")


def _check_openai(schema: Any, tool: str, *, strict: bool) -> None:
    """Check a schema by OpenAI's rules; with ``strict`` also by those of structured outputs."""
    _check_object(schema, tool)
    _check_no_combinations(schema, tool, "anyOf", "oneOf", "allOf", "enum", "not")
    if "properties" not in schema and not strict:
        raise RefusedError(f"The schema of '{tool}' has no properties.")
    for where, node in _nodes(schema):
        if node.get("type") == "array" and "items" not in node:
            raise RefusedError(f"The schema of '{tool}' has an array without items at {where}.")
        if strict:
            _check_strict(tool, where, node, _NOT_IN_OPENAI, _FORMATS)
            if set(node.get("properties", ())) != set(node.get("required", ())):
                raise RefusedError(f"'required' of '{tool}' must list every property at {where or 'the top'}.")
            if "$ref" in node and len(node) > 1:
                raise RefusedError(f"A $ref of '{tool}' has other keywords next to it at {where}.")


def _check_anthropic(schema: Any, tool: str, *, strict: bool) -> int:
    """Check a schema by Anthropic's rules, and return how many properties of a strict one are optional."""
    _check_object(schema, tool)
    _check_no_combinations(schema, tool, "anyOf", "oneOf", "allOf")
    optional = 0
    for where, node in _nodes(schema) if strict else ():
        _check_strict(tool, where, node, _NOT_IN_ANTHROPIC, _FORMATS | {"uri"})
        if node.get("minItems", 0) > 1:
            raise RefusedError(f"'minItems' of '{tool}' must be 0 or 1 at {where}.")
        optional += len(set(node.get("properties", ())) - set(node.get("required", ())))
    return optional


def _check_gemini(schema: Any, tool: str, *, top: bool = True) -> None:
    """Check Gemini's own subset, whose field names may be written in either of protobuf's two ways."""
    if not isinstance(schema, Mapping):
        raise RefusedError(f"The schema of '{tool}' is not an object.")
    fields = {re.sub(r"_([a-z])", lambda match: match[1].upper(), name): value for name, value in schema.items()}
    kind = str(fields.get("type", "object" if top else "any")).lower()
    properties = fields.get("properties", {})
    if unknown := fields.keys() - _GEMINI_FIELDS:
        raise RefusedError(f"Unknown name \"{min(unknown)}\" in the schema of '{tool}': Cannot find field.")
    if kind not in _TYPES | {"any"} or (top and (kind != "object" or not properties)):
        raise RefusedError(f"The schema of '{tool}' has the invalid type {kind!r}, or no properties.")
    if (kind == "array" and "items" not in fields) or not set(fields.get("required", ())) <= set(properties):
        raise RefusedError(f"The schema of '{tool}' has an array without items, or requires what it does not define.")
    for inner in (*properties.values(), *fields.get("anyOf", ()), *([fields["items"]] if "items" in fields else ())):
        _check_gemini(inner, tool, top=False)


def _nodes(schema: Any, where: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the schema and all schemas in it, each with its path."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise RefusedError(f"There is no schema at {where}.")
    yield where, schema
    for keyword in _PLACES:
        for name, inner in schema.get(keyword, {}).items():
            yield from _nodes(inner, f"{where}/{keyword}/{name}")
    for keyword in _LISTS:
        for number, inner in enumerate(schema.get(keyword, ())):
            yield from _nodes(inner, f"{where}/{keyword}/{number}")
    for keyword in ("items", "additionalProperties", "not"):
        if keyword in schema:
            yield from _nodes(schema[keyword], f"{where}/{keyword}")


def _check_strict(
    tool: str, where: str, node: Mapping[str, Any], refused: frozenset[str], formats: frozenset[str]
) -> None:
    if wrong := node.keys() & refused:
        raise RefusedError(f"The strict tool '{tool}' may not have '{min(wrong)}' at {where}.")
    if not node.keys() & _TYPED or node.get("format", "date") not in formats:
        raise RefusedError(f"The strict tool '{tool}' needs a type, and a known format, at {where}.")
    if "object" in (node.get("type") or ()) and node.get("additionalProperties") is not False:
        raise RefusedError(f"'additionalProperties' of the strict tool '{tool}' must be false at {where or 'the top'}.")


def _check_no_combinations(schema: Mapping[str, Any], tool: str, *keywords: str) -> None:
    if any(keyword in schema for keyword in keywords):
        raise RefusedError(f"The schema of '{tool}' may not have {', '.join(keywords)} at its top.")
