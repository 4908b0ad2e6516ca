"""The OpenAPI document, generated from the routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field, TypeAdapter, create_model

from recollect import __version__
from recollect.checks import MAX_SHORT
from recollect.fields import STORABLE, component_schema
from recollect.surfaces.http import argument_schemas
from recollect.surfaces.http.idempotency import LONGEST, SHORTEST
from recollect.surfaces.http.messages import JSON, Route
from recollect.surfaces.http.problems import TYPE
from recollect.surfaces.http.schema import response_type, titled
from recollect.surfaces.http.verb_routes import ACTING_FIELDS

_ABOUT = """Long-term memory for AI agents over HTTP. Each verb of the library is a route with the same name, below its
user. Policy decisions (a duplicate, a conflict, a refusal) are outcomes, not errors."""


class ProblemDetails(BaseModel):
    """A problem (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str = Field(description="what is wrong and what to do")
    error: str = Field(description="the name of the error in recollect.errors or recollect.client")
    field: str | None = Field(None, description="the argument that is wrong")
    request_id: str


def openapi_document(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the document that describes these routes."""
    adapters: list[tuple[str, Any, TypeAdapter[Any]]] = [("problem", "serialization", TypeAdapter(ProblemDetails))]
    for route in routes:
        adapters.append((f"{route.name} takes", "validation", TypeAdapter(route.takes)))
        if route.streams != "out":
            adapters.append((f"{route.name} returns", "serialization", TypeAdapter(_response_model(route))))
    schemas, components = TypeAdapter.json_schemas(adapters, ref_template="#/components/schemas/{model}")
    known = {name: schema for (name, _), schema in schemas.items()}
    models = components.get("$defs", {}) | argument_schemas.COMPONENTS
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(f"/v1{route.path}", {})[route.method.lower()] = _operation(route, known, models)
    made: dict[str, Any] = argument_schemas.with_references(
        {
            "openapi": "3.1.0",
            "info": {"title": "Recollect", "version": __version__, "description": _ABOUT},
            "paths": paths,
            "components": {
                "schemas": models,
                "securitySchemes": {
                    "key": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "an API key (rk_…) or a user's token (rt_…)",
                    }
                },
            },
            "security": [{"key": []}, {}],
        }
    )
    return made


def _response_model(route: Route) -> Any:
    kind = response_type(route.returns)
    more: dict[str, Any] = {"next": (str | None, ...)} if route.paged else {}
    return create_model(f"{titled(route.name)}Answer", result=(kind, ...), **more)


def _operation(route: Route, known: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    takes = known[f"{route.name} takes"]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name, schema in (("user", _USER), ("name", _NAME), ("call", _NAME))
        if f"{{{name}}}" in route.path
    ]
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.does.replace("`", ""),
        "description": f"Requires an API key with the scope {route.scope}.",
        "parameters": parameters,
        "responses": _responses(route, known),
    }
    if route.has_body:
        required = bool(_resolved(takes, defs).keys() & {"required", "anyOf"})
        operation["requestBody"] = {"required": required, "content": {JSON: {"schema": takes}}}
    else:
        parameters += _in_query(_resolved(takes, defs))
    if route.streams == "in":
        file = {"schema": {"type": "string", "format": "binary"}}
        operation["requestBody"] = {"required": True, "content": {"application/octet-stream": file}}
    if route.repeatable:
        said = "a unique value for each request; a retry with the same value is executed once"
        pattern = f"^[!-~][ -~]{{{SHORTEST - 2},{LONGEST - 2}}}[!-~]$"
        parameters.append(_header("Idempotency-Key", said, pattern=pattern))
    if route.acts:
        parameters.append(_ACTING)
    if route.name == "edit":
        operation["description"] += (
            " If-Match takes the ETag of the text that was edited; if it was changed since, the answer is 412."
        )
    if route.name in ("show", "daily"):
        parameters.append(_header("If-None-Match", "the ETag of the text you have"))
    return operation


def _responses(route: Route, known: dict[str, Any]) -> dict[str, Any]:
    problem = {"content": {TYPE: {"schema": known["problem"]}}}
    if route.streams == "out":
        content: dict[str, Any] = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}
    else:
        content = {JSON: {"schema": known[f"{route.name} returns"]}}
    good = [status for status in (200, *route.statuses) if status < 300]
    if 201 in good:
        good.remove(200)
    responses: dict[str, Any] = {
        str(status): {"description": route.statuses.get(status, "The result"), "content": content} for status in good
    }
    if route.name in ("show", "daily"):
        responses["304"] = {"description": "Not modified"}
    for status, said in {**_ERRORS, **route.statuses}.items():
        if status >= 400:
            responses[str(status)] = {"description": said, **problem}
    responses["default"] = {"description": "Any other error", **problem}
    return responses


_USER = component_schema("UserId")
_NAME = STORABLE | {"minLength": 1}
_ERRORS = {
    400: "The request cannot be parsed",
    401: "The API key is missing or invalid",
    403: "The API key does not allow this",
    404: "Not found",
    409: "The request conflicts with the current state, or its arguments with each other",
    422: "An argument is invalid; `field` names it",
    429: "Too many requests; Retry-After says when to retry",
}


def _resolved(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = defs[name] if name else schema
    return found


def _in_query(schema: dict[str, Any]) -> list[dict[str, Any]]:
    needed = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in needed, "schema": _in_address(one, name in needed)}
        for name, one in schema.get("properties", {}).items()
    ]


def _in_address(schema: dict[str, Any], is_needed: bool) -> dict[str, Any]:
    """Return a schema for a query parameter: null and empty lists are left out of an address."""
    kinds = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if not kinds:
        return schema | ({"minItems": 1} if is_needed and schema.get("type") == "array" else {})
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return rest | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds})


def _header(name: str, said: str, **more: Any) -> dict[str, Any]:
    kind = {"type": "string", **more}
    return {"name": name, "in": "header", "required": False, "description": said, "schema": kind}


_LINE = {"anyOf": [component_schema(f"Line{MAX_SHORT}"), {"type": "null"}]}
_FLAG = {"type": ["boolean", "null"]}
_ACTING = {
    "name": "Recollect-Acting",
    "in": "header",
    "required": False,
    "description": "who acts, and in which conversation",
    "content": {
        JSON: {
            "schema": {
                "type": "object",
                "properties": {name: _FLAG if name == "trusted" else _LINE for name in ACTING_FIELDS},
                "additionalProperties": False,
            }
        }
    },
}
