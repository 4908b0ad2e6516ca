"""Checks of arguments. Each returns the normal form, or raises an error that names the field and what is allowed."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

from recollect.document.blocks import MAX_BYTES
from recollect.errors import InvalidInputError
from recollect.times import parse_day, parse_moment

_T = TypeVar("_T")

MAX_FACT = 4_000
MAX_TEXT = 200_000
MAX_KEY = 64
MAX_SHORT = 500
MAX_TAGS = 50
MAX_MESSAGES = 1_000
MAX_IDS = 100_000
MAX_METADATA = 20_000
MAX_NESTING = 100
"""How deep lists and mappings may be nested: reading them takes a call or two per level, of about a thousand."""
MAX_FILE = 1_000_000
MAX_DATE = 64
MAX_NUMBER = 2**63 - 1
"""The largest integer that every database can store."""
LAST_YEAR = 9_000
"""The last year from which days can be added without leaving the calendar."""

_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NOT_IN_A_FILE = re.compile(r"[\x00\ud800-\udfff]")
_PLAIN = (str, bool, int, float, type(None))


def check_text(field: str, value: object, limit: int = MAX_TEXT) -> str:
    """Check that text is not empty and has no control characters; line breaks become ``\\n``."""
    if not isinstance(value, str):
        raise InvalidInputError(field, f"must be text, not {_type_name(value)}")
    if len(value) > limit:
        raise InvalidInputError(field, f"has {len(value):,} characters; at most {limit:,} are allowed")
    if value.isprintable() and (cleaned := value.strip()):
        return cleaned
    if found := _FORBIDDEN.search(value.replace("\r\n", "\n").replace("\r", "\n")):
        raise InvalidInputError(
            field,
            f"has {_describe_character(found[0])} at position {value.index(found[0])};"
            " only ordinary characters, tabs and line breaks are allowed",
        )
    cleaned = value.replace("\r\n", "\n").replace("\r", "\n").strip().strip("\ufeff\u200b\u2060").strip()
    if not cleaned:
        raise InvalidInputError(field, "must not be empty")
    return cleaned


def check_file_text(field: str, value: object) -> str:
    """Check the text of a whole file, which may contain everything that a text file can hold."""
    if not isinstance(value, str):
        raise InvalidInputError(field, f"must be text, not {_type_name(value)}")
    if len(value) > MAX_FILE:
        raise InvalidInputError(field, f"has {len(value):,} characters; at most {MAX_FILE:,} are allowed")
    if found := _NOT_IN_A_FILE.search(value):
        raise InvalidInputError(
            field, f"has {_describe_character(found[0])} at position {found.start()}, which a file cannot hold"
        )
    if len(value) * 4 > MAX_BYTES and (size := len(value.encode("utf-8"))) > MAX_BYTES:
        raise InvalidInputError(field, f"has {size:,} bytes as UTF-8; at most {MAX_BYTES:,} are allowed")
    return value


def check_filter_value(field: str, value: object) -> str | None:
    """Check a value to compare stored values with, or None."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInputError(field, f"must be text, not {_type_name(value)}")
    if found := _NOT_IN_A_FILE.search(value):
        raise InvalidInputError(
            field, f"has {_describe_character(found[0])} at position {found.start()}, which is never stored"
        )
    return value


def check_query(field: str, value: object) -> str:
    """Check that a query is text. It may be empty; the result is then empty."""
    if not isinstance(value, str):
        raise InvalidInputError(field, f"must be text, not {_type_name(value)}")
    return _FORBIDDEN.sub(" ", value)


def check_optional_text(field: str, value: object, limit: int = MAX_SHORT) -> str | None:
    """Check text, or return None for None."""
    return None if value is None else check_text(field, value, limit)


def check_line(field: str, value: object, limit: int = MAX_SHORT) -> str:
    """Check text on a single line."""
    cleaned = check_text(field, value, limit)
    if "\n" in cleaned:
        raise InvalidInputError(field, "must be a single line")
    return cleaned


def check_optional_line(field: str, value: object, limit: int = MAX_SHORT) -> str | None:
    """Check a line, or return None for None."""
    return None if value is None else check_line(field, value, limit)


def check_chat(field: str, value: object) -> str:
    """Check the id of a chat, which may be an integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= 2**63:
            raise InvalidInputError(field, "must be text, or a number of at most 18 digits")
        value = str(value)
    return check_line(field, value)


def check_choice(field: str, value: object, allowed: Sequence[str]) -> str:
    """Check that a value is one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidInputError(field, f"{_preview_value(value)} is not one of {', '.join(allowed)}")
    return value


def check_fraction(field: str, value: object) -> float:
    """Check a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInputError(field, f"{_preview_value(value)} is not a number from 0 to 1")
    return float(value)


def check_flag(field: str, value: object) -> bool:
    """Check a boolean."""
    if not isinstance(value, bool):
        raise InvalidInputError(field, f"{_preview_value(value)} is not true or false")
    return value


def check_positive(field: str, value: object, most: int = 1_000_000) -> int:
    """Check an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidInputError(field, f"{_preview_value(value)} is not a whole number from 1 to {most:,}")
    return value


def check_optional_positive(field: str, value: object) -> int | None:
    """Check an integer of at least 1, or return None for None."""
    return None if value is None else check_positive(field, value)


def check_count(field: str, value: object, most: int = 10**12) -> int:
    """Check an integer of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise InvalidInputError(field, f"{_preview_value(value)} is not a whole number from 0 to {most:,}")
    return value


def check_number(field: str, value: object) -> int:
    """Check a sequence number, such as that of a journal entry."""
    return check_count(field, value, MAX_NUMBER)


def check_entry_or_run(field: str, value: object) -> int | str:
    """Check the number of a journal entry or the id of a run."""
    if not isinstance(value, str):
        return check_number(field, value)
    name = check_line(field, value, 200)
    return check_number(field, int(name)) if name.isascii() and name.isdecimal() else name


def check_cost(field: str, value: object, most: float = 1e9) -> float:
    """Check an amount of money of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise InvalidInputError(field, f"{_preview_value(value)} is not a number from 0 to {most:,.0f}")
    return float(value)


def check_words(field: str, value: object, most: int = MAX_TAGS) -> tuple[str, ...]:
    """Check a list of short texts, and remove repetitions."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInputError(field, f"must be a list of texts, not {_type_name(value)}")
    if len(value) > most:
        raise InvalidInputError(field, f"has {len(value)} items; at most {most} are allowed")
    return tuple(dict.fromkeys(check_line(f"{field}[{index}]", item, 200) for index, item in enumerate(value)))


def check_list(field: str, value: Iterable[_T], kind: type[_T] | None = None) -> list[_T]:
    """Check a list, optionally with items of one type."""
    if not isinstance(value, Iterable):
        raise InvalidInputError(field, f"must be a list, not {_type_name(value)}")
    found = list(value)
    for index, item in enumerate(found if kind else ()):
        if kind and not isinstance(item, kind):
            raise InvalidInputError(f"{field}[{index}]", f"must be a {kind.__name__}, not {_type_name(item)}")
    return found


def check_instance(field: str, value: object, kind: type[_T], wanted: str) -> _T:
    """Something of a class of ours; ``wanted`` says where the caller gets it."""
    if not isinstance(value, kind):
        raise InvalidInputError(field, f"must be {wanted}, not {_type_name(value)}")
    return value


def check_callable(field: str, value: _T) -> _T:
    """Check something to call, or None."""
    if value is not None and not callable(value):
        raise InvalidInputError(field, f"must be a function, not {_type_name(value)}")
    return value


def check_seconds(field: str, value: object, most: float = 86_400) -> float:
    """A length of time, more than 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise InvalidInputError(
            field, f"{_preview_value(value)} is not a number of seconds, more than 0 and at most {most:,}"
        )
    return float(value)


def check_end_moment(field: str, value: object, last_year: int = 9_999) -> datetime:
    """Return a point in time; a mere day means its end."""
    found = check_moment(field, value, last_year)
    is_day = len(value.strip()) <= len("2026-02-12") if isinstance(value, str) else not isinstance(value, datetime)
    return found.replace(hour=23, minute=59, second=59, microsecond=999_999) if is_day else found


def check_moment(field: str, value: object, last_year: int = 9_999) -> datetime:
    """Check a point in time: a datetime, a date, or ISO 8601 text."""
    if not isinstance(value, date | str) or (isinstance(value, str) and len(value) > MAX_DATE):
        raise InvalidInputError(field, f"{_preview_value(value)} is not a date; use YYYY-MM-DD or ISO 8601")
    if (found := parse_moment(field, value)).year > last_year:
        raise InvalidInputError(field, f"{found:%Y-%m-%d} is too far ahead; the last year is {last_year}")
    return found


def check_day(field: str, value: object, last_year: int = 9_999) -> date:
    """Check a date, or text as ``YYYY-MM-DD``."""
    if not isinstance(value, date | str):
        raise InvalidInputError(field, f"{_preview_value(value)} is not a day; use YYYY-MM-DD")
    if (found := parse_day(field, value)).year > last_year:
        raise InvalidInputError(field, f"{found} is too far ahead; the last year is {last_year}")
    return found


def check_path(field: str, value: object) -> Path:
    """Check that a path is valid for a file."""
    if not isinstance(value, str | Path):
        raise InvalidInputError(field, f"must be a path, not {_type_name(value)}")
    if not str(value) or len(str(value)) > MAX_FACT:
        raise InvalidInputError(field, f"must have 1 to {MAX_FACT:,} characters")
    try:
        writable = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        writable = False
    if not writable:
        raise InvalidInputError(field, "contains a character that is not allowed in file names")
    return Path(value)


def check_metadata(field: str, value: object) -> dict[str, Any]:
    """Check a JSON-compatible mapping, and return a copy."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInputError(field, "must be a mapping with text keys")
    if is_nested_deeper(value):
        raise InvalidInputError(field, f"is nested too deeply; at most {MAX_NESTING} levels are allowed")
    try:
        encoded = json.dumps(value, ensure_ascii=False, allow_nan=False)
        encoded.encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        raise InvalidInputError(
            field, "must contain only JSON values: text, numbers, true, false, null, lists"
        ) from None
    if len(encoded) > MAX_METADATA:
        raise InvalidInputError(field, f"is {len(encoded):,} characters as JSON; at most {MAX_METADATA:,} are allowed")
    if "\\u0000" in encoded:
        raise InvalidInputError(field, "must not contain null characters")
    copy: dict[str, Any] = json.loads(encoded)
    return copy


def is_nested_deeper(value: object, levels: int = MAX_NESTING) -> bool:
    """Return True if lists and mappings are nested deeper than this. Works for any depth, and for cycles."""
    level: list[object] = [value]
    for _ in range(levels):
        inner = (item for part in level for item in _items(part) if isinstance(item, Mapping | list | tuple))
        level = list({id(item): item for item in inner}.values())
        if not level:
            return False
    return True


def _items(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _describe_character(character: str) -> str:
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        return f"half a character (a lone surrogate, U+{code:04X})"
    return f"a control character ({unicodedata.name(character, f'U+{code:04X}')})"


def _type_name(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


def _preview_value(value: object) -> str:
    """Return a short plain value as it is, and the type of anything else, which may be endless or unprintable."""
    if type(value) not in _PLAIN or (isinstance(value, int) and value.bit_length() > 100):
        return f"this {type(value).__name__}"
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
