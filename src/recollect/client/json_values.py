"""Converts records, outcomes and all other results of a memory to JSON-compatible data and back.

A record includes its ``kind``, an outcome its name as ``outcome`` and ``done``. All fields are included, even those
with default values. Reading is directed by the expected type.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from recollect.records import RECORD_TYPES, Hit, Hits, Outcome, Record
from recollect.times import from_text, to_text

_AS_IT_IS = frozenset({str, int, float, bool, types.NoneType})
TOLD = ("text", "why", "message")
"""Properties that are included with the fields."""


def outcome_types() -> dict[str, type[Outcome]]:
    """Return all outcome types by name."""
    return {cls.__name__.lower(): cls for cls in Outcome.__subclasses__()}


@cache
def names_of(cls: type) -> tuple[str, ...]:
    """Return the names of a dataclass's fields and included properties."""
    own = tuple(one.name for one in fields(cls))
    return own + tuple(name for name in TOLD if isinstance(getattr(cls, name, None), property))


def to_plain(value: Any) -> Any:
    """Return a value as JSON-compatible data."""
    if type(value) in _AS_IT_IS or isinstance(value, int | float | str):
        return value
    if isinstance(value, datetime):
        if value.tzinfo is timezone.utc:  # nearly always
            return to_text(value)
        return value.isoformat() if value.tzinfo is None else to_text(value.astimezone(timezone.utc))
    if type(value) in (list, tuple):
        return [to_plain(one) for one in value]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Hits):
        return {"hits": [to_plain(hit) for hit in value], "mode": value.mode, "note": value.note}
    if is_dataclass(value) and not isinstance(value, type):
        cls = type(value)
        plain = {
            name: one if type(one := getattr(value, name)) in _AS_IT_IS else to_plain(one) for name in names_of(cls)
        }
        if isinstance(value, Record):
            return {"kind": value.kind, **plain}
        if isinstance(value, Outcome):
            return {"outcome": cls.__name__.lower(), "done": value.done, **plain}
        return plain
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError("names must be text")
        return {name: to_plain(one) for name, one in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Iterable):
        return [to_plain(one) for one in value]
    raise TypeError(f"{type(value).__name__} is not plain data")


def from_plain(kind: Any, data: Any) -> Any:
    """Return the value of this type from plain data; the inverse of `to_plain`."""
    if data is None or kind is Any:
        return data
    if kind is datetime:
        return from_text(data)
    if kind is date:
        return date.fromisoformat(data)
    if kind is Path:
        return Path(data)
    if kind is Hits:
        return Hits((from_plain(Hit, one) for one in data["hits"]), mode=data["mode"], note=data["note"])
    if isinstance(kind, type) and is_dataclass(kind):
        return _from_fields(_concrete_type(kind, data), data)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return from_plain(next(one for one in inner if one is not types.NoneType), data)
    if origin is tuple:
        each = inner[:1] * len(data) if inner[1:] == (...,) else inner
        return tuple(from_plain(one, item) for one, item in zip(each, data, strict=True))
    if origin is dict:
        return {name: from_plain(inner[1], item) for name, item in data.items()}
    if origin is not None and origin is not Literal and isinstance(origin, type) and issubclass(origin, Iterable):
        return [from_plain(inner[0], item) for item in data]
    return data


def _concrete_type(kind: type, data: dict[str, Any]) -> type:
    if issubclass(kind, Record):
        return RECORD_TYPES[data["kind"]]
    if issubclass(kind, Outcome):
        return outcome_types()[data["outcome"]]
    return kind


@cache
def _fields(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {one.name: hints[one.name] for one in fields(cls)}


def _from_fields(cls: type, data: dict[str, Any]) -> Any:
    return cls(**{name: from_plain(hint, data[name]) for name, hint in _fields(cls).items() if name in data})
