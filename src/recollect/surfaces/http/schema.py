"""The types of requests and responses, generated from the verbs of `Memory` and the dataclasses.

They check each argument by itself. The memory checks arguments against each other and against its records.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic import Field as Constraints

from recollect import records
from recollect.client.json_values import names_of, outcome_types
from recollect.errors import InvalidInputError
from recollect.fields import Field
from recollect.records import Hit, Hits, Outcome, Record
from recollect.surfaces.http.argument_schemas import integer_type, json_type
from recollect.surfaces.http.messages import Request, parse_json
from recollect.verbs import PAGE, VERBS, Argument, Verb

CURSOR = r"^[A-Za-z0-9_-]{1,2000}$"
"""A cursor, as `recollect.memory.paging` writes it."""
_WHERE = "where to continue: ``next`` of the previous page"
_MOST_FIELDS = 200
_CLEANED = frozenset({"query", "topic"})
"""A query may contain anything."""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class StrictModel(BaseModel):
    """A request model that rejects unknown fields and does not convert values."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class NoArguments(StrictModel):
    """No arguments."""


class PageArguments(StrictModel):
    """The part of the list to return."""

    cursor: Annotated[str, Constraints(pattern=CURSOR)] | None = Constraints(None, description=_WHERE)
    page: integer_type(1, 1000) = Constraints(PAGE, description="the maximum number of items")  # type: ignore[valid-type]


@cache
def arguments_of(name: str) -> type[BaseModel]:
    """Return the model of a verb's arguments."""
    verb = VERBS[name]
    given: dict[str, Any] = {}
    for argument in verb.parameters.values():
        kind = _type_of(verb, argument)
        if argument.is_variadic:
            given[argument.name] = (list[kind], ...)  # type: ignore[valid-type]
        elif argument.is_required:
            given[argument.name] = (kind, ...)
        else:
            default = list(argument.default) if isinstance(argument.default, tuple) else argument.default
            given[argument.name] = (kind, default)
    return create_model(f"{_titled(name)}Arguments", __base__=PageArguments if verb.paged else StrictModel, **given)


def _type_of(verb: Verb, argument: Argument) -> Any:
    field = argument.field
    if field is None:
        raise TypeError(f"{verb.name} takes {argument.name}: its type must be one of recollect.fields")
    if field.verb:
        return list[arguments_of(field.verb)]  # type: ignore[misc]
    if field.parts is None:
        kind = json_type(field)
    elif field.json is list:
        (cls,) = get_args(argument.type)
        kind = list[_input_model(cls, field.parts)]  # type: ignore[misc]
    else:
        kind = _input_model(argument.type, field.parts)
    return kind | None if argument.is_optional else kind


# responses


def response_type(hint: Any) -> Any:
    """Return the type of a result, for the document only; it checks nothing."""
    return _build_response_type(hint)


@cache
def _build_response_type(hint: Any) -> Any:
    if hint is Hits:
        found: dict[str, Any] = {"hits": (list[response_type(Hit)], ...), "mode": (str, ...), "note": (str, ...)}  # type: ignore[misc]
        return create_model("Hits", **found)
    if hint is Record:
        return Annotated[
            Union[tuple(response_type(cls) for cls in records.RECORD_TYPES.values())],  # noqa: UP007
            Constraints(discriminator="kind"),
        ]
    if hint is Outcome:
        return Annotated[
            Union[tuple(response_type(cls) for cls in outcome_types().values())],  # noqa: UP007
            Constraints(discriminator="outcome"),
        ]
    if isinstance(hint, type) and is_dataclass(hint):
        return _model(hint)
    if hint is Path:
        return str
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(one if one is types.NoneType else response_type(one) for one in inner)]  # noqa: UP007
    if origin in (list, tuple, dict):
        return origin[tuple(one if one is ... else response_type(one) for one in inner)]
    return hint


def _model(cls: type) -> type[BaseModel]:
    hints = get_type_hints(cls)
    given: dict[str, Any] = {}
    if issubclass(cls, Record):
        given["kind"] = (Literal[cls.kind], ...)
    if issubclass(cls, Outcome):
        given["outcome"] = (Literal[cls.__name__.lower()], ...)
        given["done"] = (Literal[cls.done], ...)
    for name in names_of(cls):
        given[name] = (response_type(hints[name]) if name in hints else str, ...)
    return create_model(cls.__name__, __doc__=_first_line(cls), **given)


def _input_model(cls: type, parts: Mapping[str, Field]) -> type[BaseModel]:
    """Return the model of a dataclass as an argument: fields with defaults are optional."""
    hints = get_type_hints(cls)
    given: dict[str, Any] = {}
    for one in fields(cls):
        kind = json_type(parts[one.name])
        if types.NoneType in get_args(hints[one.name]):
            kind = kind | None
        if one.default is not MISSING:
            given[one.name] = (kind, one.default)
        elif one.default_factory is not MISSING:
            given[one.name] = (kind, Constraints(default_factory=one.default_factory))
        else:
            given[one.name] = (kind, ...)
    return create_model(f"{cls.__name__}Given", __base__=StrictModel, __doc__=_first_line(cls), **given)


# parsing requests


def request_arguments(request: Request) -> dict[str, Any]:
    """Return the arguments that a request gives, parsed for its handler."""
    model = request.route.takes
    if request.route.has_body:
        return validate_fields(model, parse_json(request.body), strict=True)
    return validate_fields(model, _from_query(model, request.query), strict=False)


def validate_fields(model: type[BaseModel], data: Any, *, strict: bool) -> dict[str, Any]:
    """Return the given fields, checked against a model."""
    if not isinstance(data, dict):
        raise InvalidInputError("body", "must be a JSON object")
    try:
        made = model.model_validate(data, strict=strict)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        raise InvalidInputError(where.lstrip(".")[:100] or "body", _error_text(first)) from None
    values = {name: _plain_value(getattr(made, name)) for name in made.model_fields_set}
    for name, value in values.items():
        if name not in _CLEANED and not _is_storable(value):
            raise InvalidInputError(
                name, "contains a character that databases cannot store: U+0000 or a lone surrogate"
            )
    return values


def is_storable(text: str) -> bool:
    """Return True if databases can store this text and search for it."""
    return _UNSTORABLE.search(text) is None


def _is_storable(value: Any) -> bool:
    if isinstance(value, str):
        return is_storable(value)
    if isinstance(value, dict):
        return all(is_storable(name) and _is_storable(one) for name, one in value.items())
    return not isinstance(value, list) or all(_is_storable(one) for one in value)


def verb_arguments(verb: Verb, values: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a verb from plain values."""
    for name, value in values.items():
        argument = verb.parameters.get(name)
        if argument is None or argument.field is None or argument.field.parts is None:
            continue
        if argument.field.json is list:
            (cls,) = get_args(argument.type)
            values[name] = [cls(**one) for one in value]
        else:
            values[name] = argument.type(**value)
    return values


def _plain_value(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return {name: _plain_value(getattr(value, name)) for name in value.model_fields_set}
    return [_plain_value(one) for one in value] if isinstance(value, list) else value


def _from_query(model: type[BaseModel], query: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidInputError("query", "must be percent-encoded UTF-8 and not too long") from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        known = model.model_fields.get(name)
        if known is not None and _is_list(known.annotation):
            found.setdefault(name, []).append(value)
        elif name in found:
            raise InvalidInputError(name[:100], "must be given once")
        else:
            found[name] = value
    return found


def _is_list(hint: Any) -> bool:
    return get_origin(hint) is list or any(get_origin(one) is list for one in get_args(hint))


def _error_text(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "is not a known argument"
    if error["type"] == "missing":
        return "is required"
    said = str(error["msg"])
    return said[:1].lower() + said[1:]


def _titled(name: str) -> str:
    return "".join(part.title() for part in name.split("_"))


def _first_line(cls: type) -> str:
    return (cls.__doc__ or "").strip().partition("\n")[0]
