"""Which tool declarations the services take. The rules and their sources are in the package's docstring."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")

COMBINERS = ("anyOf", "oneOf", "allOf")
TYPED = frozenset({"type", "$ref", "enum", "const", *COMBINERS})
RARE = (
    "oneOf not if then else dependentRequired dependentSchemas patternProperties propertyNames unevaluatedProperties "
    "unevaluatedItems minProperties maxProperties contains minContains maxContains uniqueItems minLength maxLength"
).split()
FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())

OPENAI_STRICT_REFUSES = frozenset({*RARE, "allOf", "default"})
OPENAI_LEVELS = 10
OPENAI_PROPERTIES = 5000
OPENAI_ENUMS = 1000

ANTHROPIC_STRICT_REFUSES = frozenset(
    {*RARE, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "maxItems", "prefixItems"}
)
ANTHROPIC_STRICT_TOOLS = 20
ANTHROPIC_OPTIONAL = 24

GEMINI_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
GEMINI_FIELDS = frozenset(
    (
        "type format title description nullable enum items maxItems minItems properties required minProperties "
        "maxProperties minLength maxLength pattern example anyOf propertyOrdering default minimum maximum"
    ).split()
)

Where = tuple[str, ...]


class WrongSchemaError(Exception):
    """A schema that is not accepted: where in it, and why."""

    def __init__(self, where: Where, reason: str) -> None:
        super().__init__(reason)
        self.where = where
        self.reason = reason


@dataclass(frozen=True)
class Node:
    """A schema inside a schema."""

    where: Where
    schema: Mapping[str, Any]
    level: int


def nodes(schema: Any, where: Where = (), level: int = 1) -> Iterator[Node]:
    """The schema and all schemas in it."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise WrongSchemaError(where, "is not a schema")
    yield Node(where, schema, level)
    deeper = level + 1
    for keyword in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas"):
        inner = schema.get(keyword, {})
        if not isinstance(inner, dict):
            raise WrongSchemaError((*where, keyword), "is not an object of schemas")
        for name, value in inner.items():
            yield from nodes(value, (*where, keyword, name), deeper if keyword == "properties" else 1)
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        inner = schema.get(keyword, [])
        if not isinstance(inner, list) or (keyword in schema and not inner):
            raise WrongSchemaError((*where, keyword), "is not a list of schemas")
        for number, value in enumerate(inner):
            yield from nodes(value, (*where, keyword, str(number)), level)
    for keyword in ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
        if keyword in schema:
            yield from nodes(schema[keyword], (*where, keyword), level)


def check_json_schema(schema: Any) -> None:
    """That it is a JSON Schema (2020-12) of type object, as far as a service looks."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        kind = schema.get("type") if isinstance(schema, dict) else None
        raise WrongSchemaError((), f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'.")
    for node in nodes(schema):
        kinds = node.schema.get("type", [])
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            if kind not in TYPES:
                raise WrongSchemaError(node.where, f"'{kind}' is not valid under any of the given schemas.")
        names = node.schema.get("required", [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise WrongSchemaError((*node.where, "required"), "is not a list of names.")
        if "enum" in node.schema and (not isinstance(node.schema["enum"], list) or not node.schema["enum"]):
            raise WrongSchemaError((*node.where, "enum"), "is not a list of values.")
        if "$ref" in node.schema:
            resolved(schema, node)


def resolved(root: Mapping[str, Any], node: Node) -> Mapping[str, Any]:
    """What a reference refers to."""
    reference = node.schema["$ref"]
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise WrongSchemaError(node.where, f"reference '{reference}' is not within the schema.")
    found: Any = root
    for step in filter(None, reference[1:].split("/")):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        raise WrongSchemaError(node.where, f"reference '{reference}' can not be resolved.")
    return found


def check_openai(schema: Any, *, strict: bool) -> None:
    check_json_schema(schema)
    for keyword in (*COMBINERS, "enum", "not"):
        if keyword in schema:
            raise WrongSchemaError(
                (),
                "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
            )
    if "properties" not in schema and not strict:
        raise WrongSchemaError((), "object schema missing properties.")
    count = enums = 0
    for node in nodes(schema):
        if _is(node, "array") and "items" not in node.schema and "prefixItems" not in node.schema:
            raise WrongSchemaError(node.where, "array schema missing items.")
        if strict:
            _strict_openai(node)
            count += len(node.schema.get("properties", {}))
            enums += len(node.schema.get("enum", []))
    if count > OPENAI_PROPERTIES:
        raise WrongSchemaError((), f"{count} properties exceed the limit of {OPENAI_PROPERTIES}.")
    if enums > OPENAI_ENUMS:
        raise WrongSchemaError((), f"{enums} enum values exceed the limit of {OPENAI_ENUMS}.")


def _strict_openai(node: Node) -> None:
    for keyword in node.schema:
        if keyword in OPENAI_STRICT_REFUSES:
            raise WrongSchemaError(node.where, f"'{keyword}' is not permitted.")
    _typed(node)
    others = sorted(set(node.schema) - {"$ref"})
    if "$ref" in node.schema and others:
        raise WrongSchemaError(node.where, f"$ref cannot have keywords {others}.")
    if node.schema.get("format", "date") not in FORMATS:
        raise WrongSchemaError(node.where, f"'{node.schema['format']}' is not a valid format.")
    if _is(node, "object") or "properties" in node.schema:
        if node.level > OPENAI_LEVELS:
            raise WrongSchemaError((), f"{node.level} levels of nesting exceeds limit of {OPENAI_LEVELS}.")
        if node.schema.get("additionalProperties") is not False:
            raise WrongSchemaError(node.where, "'additionalProperties' is required to be supplied and to be false.")
        properties, names = node.schema.get("properties", {}), dict.fromkeys(node.schema.get("required", []))
        for name in properties:
            if name not in names:
                raise WrongSchemaError(
                    node.where,
                    "'required' is required to be supplied and to be an array including every key in properties. "
                    f"Missing '{name}'.",
                )
        for name in names:
            if name not in properties:
                raise WrongSchemaError(node.where, f"Extra required key '{name}' supplied.")


def check_anthropic(schema: Any, *, strict: bool) -> int:
    """Returns how many properties are optional, of which strict tools may not have many."""
    check_json_schema(schema)
    for keyword in COMBINERS:
        if keyword in schema:
            raise WrongSchemaError((), "input_schema does not support oneOf, allOf, or anyOf at the top level")
    for name in schema.get("properties", {}):
        if not PROPERTY.fullmatch(name):
            raise WrongSchemaError(("properties",), f"Property keys should match pattern '^{PROPERTY.pattern}$'")
    optional = 0
    for node in nodes(schema) if strict else ():
        _typed(node)
        for keyword in node.schema:
            if keyword in ANTHROPIC_STRICT_REFUSES:
                raise WrongSchemaError(node.where, f"For '{_kind(node)}' type, property '{keyword}' is not supported")
        if node.schema.get("minItems", 0) not in (0, 1):
            raise WrongSchemaError(
                node.where, "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
            )
        if node.schema.get("format", "date") not in FORMATS | {"uri"}:
            raise WrongSchemaError(node.where, f"format '{node.schema['format']}' is not supported")
        if _is(node, "object"):
            if node.schema.get("additionalProperties") is not False:
                raise WrongSchemaError(
                    node.where, "For 'object' type, 'additionalProperties' must be explicitly set to false"
                )
            optional += len(set(node.schema.get("properties", {})) - set(node.schema.get("required", [])))
        if "$ref" in node.schema and _reaches(schema, resolved(schema, node), node.schema["$ref"], set()):
            raise WrongSchemaError(node.where, f"recursive reference '{node.schema['$ref']}' is not supported")
    return optional


def _reaches(root: Mapping[str, Any], start: Mapping[str, Any], reference: str, seen: set[str]) -> bool:
    for node in nodes(start):
        other = node.schema.get("$ref")
        if other == reference:
            return True
        if isinstance(other, str) and other not in seen:
            seen.add(other)
            if _reaches(root, resolved(root, node), reference, seen):
                return True
    return False


def check_gemini(schema: Any, where: Where = ("parameters",), *, top: bool = True) -> None:
    """The Schema subset of Gemini's ``parameters``; field names may be written in either of protobuf's two ways."""
    if not isinstance(schema, dict):
        raise WrongSchemaError(where, "is not a Schema")
    fields = {re.sub(r"_([a-z])", lambda match: match[1].upper(), name): value for name, value in schema.items()}
    for name in fields:
        if name not in GEMINI_FIELDS:
            raise WrongSchemaError(where, f'Unknown name "{name}": Cannot find field.')
    kind = fields.get("type")
    if kind is not None and (not isinstance(kind, str) or kind.upper() not in GEMINI_TYPES):
        raise WrongSchemaError((*where, "type"), f'Invalid value "{kind}"')
    kind = kind.upper() if kind else None
    if top and kind != "OBJECT":
        raise WrongSchemaError(where, "functionDeclaration parameters schema should be of type OBJECT.")
    properties = fields.get("properties", {})
    if not isinstance(properties, dict):
        raise WrongSchemaError((*where, "properties"), "is not an object of schemas")
    if kind == "OBJECT" and not properties:
        raise WrongSchemaError((*where, "properties"), "should be non-empty for OBJECT type")
    if kind == "ARRAY" and "items" not in fields:
        raise WrongSchemaError((*where, "items"), "missing field.")
    if not all(isinstance(value, str) for value in fields.get("enum", [])):
        raise WrongSchemaError((*where, "enum"), "Invalid value (TYPE_STRING)")
    for number, name in enumerate(fields.get("required", [])):
        if name not in properties:
            raise WrongSchemaError((*where, f"required[{number}]"), "property is not defined")
    for name, value in properties.items():
        check_gemini(value, (*where, "properties", name), top=False)
    for number, value in enumerate(fields.get("anyOf", [])):
        check_gemini(value, (*where, "anyOf", str(number)), top=False)
    if "items" in fields:
        check_gemini(fields["items"], (*where, "items"), top=False)


def _typed(node: Node) -> None:
    if not TYPED & node.schema.keys():
        raise WrongSchemaError(node.where, "schema must have a 'type' key.")


def _is(node: Node, kind: str) -> bool:
    found = node.schema.get("type")
    return found == kind or (isinstance(found, list) and kind in found)


def _kind(node: Node) -> str:
    found = node.schema.get("type", "any")
    return str(found[0] if isinstance(found, list) and found else found)
