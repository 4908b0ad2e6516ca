"""The types of what is asked and answered, made from the verbs of `Memory` and our dataclasses.

They check the shape of arguments; whether a value makes sense is for the memory to say, in its own words. So what is
only told here, such as which categories there are, cannot differ from what holds.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, create_model

from recollect import records
from recollect.client.plain import from_plain, names_of, outcome_types
from recollect.client.verbs import PAGE, VERBS, Verb
from recollect.core.unread import Mark
from recollect.errors import InvalidInputError
from recollect.records import ExtractionRun, Hit, Hits, Interaction, Outcome, Record
from recollect.surfaces.http.exchange import Asked, parsed

_MOST_FIELDS = 200
_ANY_CATEGORY = records.CATEGORIES + records.OBSERVATION_CATEGORIES
_WORDS: dict[str, tuple[str, ...]] = {
    "category": _ANY_CATEGORY,
    "remember.category": records.CATEGORIES,
    "observe.category": records.OBSERVATION_CATEGORIES,
    "type": records.FACT_TYPES,
    "kind": records.KINDS,
    "kinds": records.KINDS,
    "report.kind": records.INTERACTION_KINDS,
    "interactions.kinds": records.INTERACTION_KINDS,
    "status": (*records.STATUSES, "all"),
    "valence": records.VALENCES,
    "update.reason": records.CHANGE_REASONS,
    "consent.name": records.CONSENTS,
}
"""Which words an argument may be, by its name, or by verb and name."""
_FREE = frozenset({"runs.kind"})
_CLEANED = frozenset({"query", "topic"})
"""Whatever is in a question, the memory makes the best of it."""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_SHARES = frozenset({"confidence", "importance", "min_score"})
_COUNTS = frozenset({"limit", "max_tokens"})


class Strict(BaseModel):
    """What is asked: nothing unknown in it, and nothing taken for something else."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class Nothing(Strict):
    """No arguments."""


class Paged(Strict):
    """Which part of a long list."""

    cursor: str | None = Field(None, description="where to go on: ``next`` of the page before", max_length=500)
    page: int = Field(PAGE, description="how many items at most", ge=1, le=1000)


@cache
def arguments_of(name: str) -> type[BaseModel]:
    """What a verb takes."""
    verb = VERBS[name]
    given: dict[str, Any] = {}
    for parameter in verb.parameters.values():
        kind = _argument(verb, parameter.name, verb.hints[parameter.name])
        if parameter.kind is parameter.VAR_POSITIONAL:
            given[parameter.name] = (list[kind], ...)  # type: ignore[valid-type]
        elif parameter.default is parameter.empty:
            given[parameter.name] = (kind, ...)
        else:
            default = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
            given[parameter.name] = (kind, default)
    return create_model(f"{_titled(name)}Arguments", __base__=Paged if verb.paged else Strict, **given)


def _argument(verb: Verb, name: str, hint: Any) -> Any:
    """The type of an argument, as JSON can hold it."""
    inner = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        plain = {one for one in inner if one is not types.NoneType}
        if plain <= {datetime, date, str}:
            said = "YYYY-MM-DD or ISO 8601" if datetime in plain else "YYYY-MM-DD"
            kind: Any = str if plain == {str} else Annotated[str, Field(description=said)]
            kind = _worded(verb, name, kind)
        else:
            kind = Union[tuple(_argument(verb, name, one) for one in plain)]  # noqa: UP007
        return kind | None if types.NoneType in inner else kind
    origin = get_origin(hint)
    if hint is str:
        return _worded(verb, name, str)
    if isinstance(hint, type) and issubclass(hint, int | float) and hint is not bool:
        return _bounded(name, hint)
    if hint in (Mark, ExtractionRun):
        return taken(hint)
    if origin is Literal or not isinstance(origin, type):
        return hint
    if issubclass(origin, Mapping):
        return dict[str, Any]
    if issubclass(origin, Iterable):
        return list[_items(verb, name, inner[0])]  # type: ignore[misc]
    return hint


def _items(verb: Verb, name: str, hint: Any) -> Any:
    if Interaction in get_args(hint):
        return arguments_of("report")
    return Any if hint is Any else _argument(verb, name, hint)


def _worded(verb: Verb, name: str, kind: Any) -> Any:
    full = f"{verb.name}.{name}"
    words = None if full in _FREE else _WORDS.get(full) or _WORDS.get(name)
    if not words:
        return kind
    # what else it may be, the memory says; but it only compares with a type that is looked for
    checked_here = str if name == "type" and not verb.writes else Any
    return Annotated[checked_here, WithJsonSchema({"type": "string", "enum": list(words)})]


def _bounded(name: str, kind: type) -> Any:
    if name in _SHARES:
        return Annotated[kind, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})]
    if name == "offset":
        return Annotated[int, Field(ge=0, lt=2**31)]
    if name in _COUNTS:
        return Annotated[kind, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 1_000_000})]
    if kind is int:
        return Annotated[int, Field(ge=-(2**63), lt=2**63)]  # what a database can hold
    return Annotated[kind, Field(allow_inf_nan=False)]


# what is answered


def answered(hint: Any) -> Any:
    """The type of what is answered, for the document; nothing is checked by it."""
    return _answered(hint)


@cache
def _answered(hint: Any) -> Any:
    if hint is Hits:
        found: dict[str, Any] = {"hits": (list[answered(Hit)], ...), "mode": (str, ...), "note": (str, ...)}  # type: ignore[misc]
        return create_model("Hits", **found)
    if hint is Record:
        return Annotated[
            Union[tuple(answered(cls) for cls in records.RECORD_TYPES.values())],  # noqa: UP007
            Field(discriminator="kind"),
        ]
    if hint is Outcome:
        return Annotated[
            Union[tuple(answered(cls) for cls in outcome_types().values())],  # noqa: UP007
            Field(discriminator="outcome"),
        ]
    if isinstance(hint, type) and is_dataclass(hint):
        return _model(hint)
    if hint is Path:
        return str
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(one if one is types.NoneType else answered(one) for one in inner)]  # noqa: UP007
    if origin in (list, tuple, dict):
        return origin[tuple(one if one is ... else answered(one) for one in inner)]
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
        given[name] = (answered(hints[name]) if name in hints else str, ...)
    return create_model(cls.__name__, __doc__=_first_line(cls), **given)


@cache
def taken(cls: type) -> type[BaseModel]:
    """A dataclass as it is given: what has a default may be left out."""
    hints = get_type_hints(cls)
    given: dict[str, Any] = {}
    for one in fields(cls):
        kind = answered(hints[one.name])
        if one.default is not MISSING:
            given[one.name] = (kind, one.default)
        elif one.default_factory is not MISSING:
            given[one.name] = (kind, Field(default_factory=one.default_factory))
        else:
            given[one.name] = (kind, ...)
    return create_model(f"{cls.__name__}Given", __base__=Strict, __doc__=_first_line(cls), **given)


# reading what was asked


def read(asked: Asked) -> dict[str, Any]:
    """The arguments of a request, as the handler wants them; only those that were given."""
    model = asked.route.takes
    if asked.route.has_body:
        return checked(model, parsed(asked.body), strict=True)
    return checked(model, _from_query(model, asked.query), strict=False)


def checked(model: type[BaseModel], data: Any, *, strict: bool) -> dict[str, Any]:
    """The fields that were given, if they are of the right shape."""
    if not isinstance(data, dict):
        raise InvalidInputError("body", "must be a JSON object")
    try:
        made = model.model_validate(_with_moments(model, data), strict=strict)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        raise InvalidInputError(where.lstrip(".")[:100] or "body", _said(first)) from None
    values = {name: _plain(getattr(made, name)) for name in made.model_fields_set}
    for name, value in values.items():
        if name not in _CLEANED and not _is_storable(value):
            raise InvalidInputError(name, "has a character that no database can hold: U+0000, or half of a pair")
    return values


def is_storable(text: str) -> bool:
    """Whether a database can hold this text, or look for it."""
    return _UNSTORABLE.search(text) is None


def _is_storable(value: Any) -> bool:
    if isinstance(value, str):
        return is_storable(value)
    if isinstance(value, dict):
        return all(is_storable(name) and _is_storable(one) for name, one in value.items())
    return not isinstance(value, list) or all(_is_storable(one) for one in value)


def given_as(verb: Verb, values: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a verb, made of plain values."""
    for name, value in values.items():
        hint = verb.hints.get(name)
        inner = get_args(hint)
        if hint is ExtractionRun:
            values[name] = ExtractionRun(**value)
        elif inner == (Mark,):
            values[name] = [Mark(**one) for one in value]
    return values


def _with_moments(model: type[BaseModel], data: dict[str, Any]) -> dict[str, Any]:
    """Moments and days as values where a dataclass is given: strictly, text is none."""
    made = dict(data)
    for name, of in (("run", ExtractionRun), ("marks", Mark)):
        known = model.model_fields.get(name)
        if known is None or name not in made or known.annotation not in (taken(of), list[taken(of)]):  # type: ignore[misc]
            continue
        many = made[name] if isinstance(made[name], list) else [made[name]]
        try:
            read_ = [
                {key: from_plain(get_type_hints(of).get(key, Any), value) for key, value in one.items()} for one in many
            ]
        except (TypeError, ValueError, AttributeError, KeyError):
            raise InvalidInputError(name, "must be as it was answered") from None
        made[name] = read_ if isinstance(made[name], list) else read_[0]
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in value.model_fields_set}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _from_query(model: type[BaseModel], query: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidInputError("query", "must be percent-encoded UTF-8, and not too long") from None
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


def _said(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "is not known here"
    if error["type"] == "missing":
        return "must be given"
    said = str(error["msg"])
    return said[:1].lower() + said[1:]


def _titled(name: str) -> str:
    return "".join(part.title() for part in name.split("_"))


def _first_line(cls: type) -> str:
    return (cls.__doc__ or "").strip().partition("\n")[0]
