"""Checks of the values read from an archive, before any of it is imported.

An archive may be damaged or edited, and a record with a number in place of a text would fail at every read. So each
value must have the declared type of its field and be one that the field can have.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields
from datetime import date, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from recollect.document.blocks import one_block
from recollect.errors import InvalidInputError
from recollect.memory.daily_notes import day_of
from recollect.records import (
    CATEGORIES,
    FACT_TYPES,
    OBSERVATION_CATEGORIES,
    STATUSES,
    VALENCES,
    JournalEntry,
    Record,
)

T = TypeVar("T")
_Check = Callable[[Any], bool]

_MOST: Final = 2**63
_CHOICES: Final[dict[str, dict[str, tuple[str | None, ...]]]] = {
    "fact": {"category": (*CATEGORIES, None), "type": (*FACT_TYPES, None)},
    "observation": {"category": OBSERVATION_CATEGORIES},
    "episode": {"valence": VALENCES},
}


def check_archived(value: T) -> T:
    """Return a record, journal entry or other archived value; raise a ``ValueError`` that names an invalid field."""
    kind: type = type(value)
    for name, fits in _checks(kind):
        if not fits(getattr(value, name)):
            raise ValueError(name)
    if isinstance(value, Record):
        _check_choices(value)
    elif isinstance(value, JournalEntry):
        for record in (value.before, value.after):
            if record is not None:
                check_archived(record)
    return value


def check_archived_text(value: object) -> str:
    """Return a text; raise a ``ValueError`` if it is none, or one that a store cannot keep."""
    if not isinstance(value, str) or not _is_text(value):
        raise ValueError("text")
    return value


def check_unique(member: str, keys: Iterable[Hashable]) -> None:
    """Raise an error if two lines of a member of an archive are the same thing."""
    seen: set[Hashable] = set()
    for number, key in enumerate(keys, 1):
        if key in seen:
            raise InvalidInputError(
                "path", f"the archive is damaged: line {number:,} of {member} repeats an earlier one"
            )
        seen.add(key)


def check_file_line(record: Record) -> Record:
    """Return a record; raise a ``ValueError`` if it needs a line in a file and cannot be written as one."""
    if record.status == "active" and record.kind in ("fact", "daily"):
        section = getattr(record, "section", None)
        if not one_block(record.content) or (section and not one_block(section)):
            raise ValueError("content")
    return record


def _check_choices(record: Record) -> None:
    day = day_of(record)
    tiers = ("file", "archive", None, *([day.isoformat()] if day else []))
    choices = {"status": STATUSES, "tier": tiers, **_CHOICES.get(record.kind, {})}
    for name, allowed in choices.items():
        if getattr(record, name) not in allowed:
            raise ValueError(name)
    if not (0 <= record.confidence <= 1 and 0 <= record.importance <= 1):
        raise ValueError("confidence")


@cache
def _checks(cls: type) -> tuple[tuple[str, _Check], ...]:
    hints = get_type_hints(cls)
    return tuple((field.name, _check_of(hints[field.name])) for field in fields(cls))


def _check_of(hint: Any) -> _Check:
    if get_origin(hint) in (Union, UnionType):
        several = [_check_of(option) for option in get_args(hint)]
        return lambda value: any(fits(value) for fits in several)
    known: dict[Any, _Check] = {
        str: _is_text,
        int: lambda value: type(value) is int and -_MOST <= value < _MOST,
        float: lambda value: type(value) in (int, float) and math.isfinite(value),
        datetime: lambda value: isinstance(value, datetime) and value.tzinfo is not None,
        date: lambda value: type(value) is date,
        NoneType: lambda value: value is None,
    }
    if hint in known:
        return known[hint]
    if get_origin(hint) is tuple:
        return lambda value: isinstance(value, tuple) and _are_texts(value)
    if get_origin(hint) is dict:
        return lambda value: isinstance(value, dict) and _is_json(value)
    return lambda value: isinstance(value, hint)


def _are_texts(values: Iterable[Any]) -> bool:
    return all(_is_text(value) for value in values)


def _is_json(value: dict[str, Any]) -> bool:
    written = json.dumps(value, ensure_ascii=False)
    return "\\u0000" not in written and _is_text(written)


def _is_text(value: Any) -> bool:
    """Check for a string that every store can keep, without lone surrogates and null characters."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False
