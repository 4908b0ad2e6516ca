"""The parameters of a tool: their JSON Schema, and a forgiving parser for what models send.

Models get arguments wrong in small ways: a number as text, a list as a JSON string, null for nothing, a key in another
spelling. Where the meaning is certain it is accepted; otherwise the error is one sentence that says what to give.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from rapidfuzz.distance import OSA

from recollect.errors import RecollectError

_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_WANTED = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
}
_YES_NO = {"true": True, "yes": True, "false": False, "no": False}
_NOTHING = ("", "null", "none", "undefined")
_WRAPPERS = ("arguments", "parameters", "input", "args", "kwargs")
_LARGEST = 2**63
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


class ArgumentsError(RecollectError):
    """The arguments are invalid. The message is one sentence that the model can act on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arg:
    """The declaration of a parameter besides its type; part of its ``Annotated`` type."""

    says: str = ""
    low: float | None = None
    high: float | None = None
    items_low: int | None = None
    items_high: int | None = None
    declared: bool = False
    """True if the schema includes the default."""
    at_least: int | None = None
    """A lower bound that is not in the schema."""
    at_most: int | None = None
    """An upper bound that is not in the schema. Larger values are reduced to it."""
    aside: bool = False
    """True if it is about the call and not itself stored: the text "null" means no value."""
    reference: bool = False
    """True if it names a record by its number; text ids of other suites are accepted too."""
    also: tuple[str, ...] = ()
    """Other names that models use for it: those in the prompts of the suite."""
    user: bool = False
    """True if it names the user. The connection decides who that is; the model can only agree."""
    required: bool = False
    """True if a model must give it, although it has a default for those who call the function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a tool."""

    name: str
    type: str
    required: bool
    default: Any = None
    enum: tuple[str, ...] = ()
    items: str | None = None
    arg: Arg = Arg()

    def schema(self) -> dict[str, Any]:
        """Return its JSON Schema."""
        arg = self.arg
        schema: dict[str, Any] = {"type": self.type}
        if self.items is not None:
            schema["items"] = {"type": self.items}
        if self.enum:
            schema["enum"] = list(self.enum)
        limits = {"minimum": arg.low, "maximum": arg.high, "minItems": arg.items_low, "maxItems": arg.items_high}
        schema |= {name: limit for name, limit in limits.items() if limit is not None}
        if arg.says:
            schema["description"] = arg.says
        if arg.declared:
            schema["default"] = self.default
        return schema

    def read(self, value: Any) -> Any:
        """Return the intended value, or raise an error that says what is allowed."""
        if self.type == "array":
            return self._list(value)
        if self.arg.reference and is_id(value):
            return value
        return self._bounded(_read_scalar(self.name, self.type, value, self.enum))

    def _list(self, value: Any) -> list[Any]:
        assert self.items is not None
        if isinstance(value, str):
            value = self._unpacked(value)
        if not isinstance(value, list | tuple):
            raise self._error(value)
        items = [
            item if self.arg.reference and is_id(item) else _read_scalar(f"{self.name}[{number}]", self.items, item)
            for number, item in enumerate(value)
        ]
        low, high = self.arg.items_low, self.arg.items_high
        if (low is not None and len(items) < low) or (high is not None and len(items) > high):
            raise ArgumentsError(f"{self.name} has {len(items)} items; it must have from {low or 0} to {high}")
        return items

    def _unpacked(self, text: str) -> Sequence[Any]:
        """Parse a list that was sent as text: as JSON, or as its only item."""
        if text.lstrip().startswith("["):
            try:
                return list(json.loads(text))
            except (ValueError, RecursionError):
                raise self._error(text) from None
        if self.items == "string" and ("," in text or "\n" in text):
            raise self._error(text)
        return [text] if text.strip() else []

    def _bounded(self, value: Any) -> Any:
        arg = self.arg
        if isinstance(value, str | bool):
            return value
        if arg.at_most is not None and value > arg.at_most:
            return arg.at_most
        if arg.at_least is not None and value < arg.at_least:
            raise ArgumentsError(f"{self.name} is {_preview_json(value)}; it must be at least {arg.at_least}")
        if arg.low is not None and arg.high is not None and not arg.low <= value <= arg.high:
            raise ArgumentsError(f"{self.name} is {_preview_json(value)}; it must be from {arg.low} to {arg.high}")
        return value

    def _error(self, value: Any) -> ArgumentsError:
        wanted = _WANTED[self.type]
        if self.items:
            wanted += {"string": ' of texts, such as ["a", "b"]', "integer": " of whole numbers, such as [1, 2]"}.get(
                self.items, ""
            )
        return ArgumentsError(f"{self.name} is {_preview_json(value)}; it must be {wanted}")


def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a function, without the first, which is its scope."""
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name, signature in list(inspect.signature(function).parameters.items())[1:]:
        kind, arg = hints[name], Arg()
        if get_origin(kind) is Annotated:
            kind, *said = get_args(kind)
            arg = next(note for note in said if isinstance(note, Arg))
        optional = signature.default is not inspect.Parameter.empty
        found.append(_parameter(name, kind, arg, arg.required or not optional, signature.default if optional else None))
    return tuple(found)


def _parameter(name: str, kind: Any, arg: Arg, required: bool, default: Any) -> Parameter:
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(option for option in get_args(kind) if option is not type(None))
    if get_origin(kind) is Literal:
        return Parameter(name=name, type="string", required=required, default=default, enum=get_args(kind), arg=arg)
    if get_origin(kind) is list:
        items = _JSON_TYPES[get_args(kind)[0]]
        return Parameter(name=name, type="array", required=required, default=default, items=items, arg=arg)
    return Parameter(name=name, type=_JSON_TYPES[kind], required=required, default=default, arg=arg)


def schema_of(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these parameters."""
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema() for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.required],
    }


def read_arguments(parameters: Sequence[Parameter], given: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the parsed arguments, and the names of unknown ones."""
    values, unknown = _match_names(parameters, _mapping(parameters, given))
    missing = [parameter for parameter in parameters if parameter.required and parameter.name not in values]
    if missing:
        raise ArgumentsError(_describe_missing(missing, unknown))
    for name in unknown:
        for parameter in parameters:
            if parameter.name not in values and _similar_spelling(name, parameter.name):
                raise ArgumentsError(f"there is no argument {_preview_json(name)}; did you mean {parameter.name}?")
    read = {
        parameter.name: parameter.read(values[parameter.name]) if parameter.name in values else parameter.default
        for parameter in parameters
    }
    return read, tuple(unknown)


def _mapping(parameters: Sequence[Parameter], given: Any) -> Mapping[Any, Any]:
    """Return the arguments as a mapping. They may be JSON, JSON within JSON, or wrapped."""
    given = _parse_data(given)
    if not isinstance(given, Mapping):
        raise ArgumentsError("the arguments are not a JSON object; give them as {" + _example(parameters) + "}")
    known = {_spelling(parameter.name) for parameter in parameters}
    wrapped = [name for name in given if name in _WRAPPERS]
    if len(wrapped) == 1 and not any(_spelling(str(name)) in known for name in given):
        inner = given[wrapped[0]]
        if isinstance(inner, Mapping) or (isinstance(inner, str) and inner.lstrip().startswith("{")):
            return {name: value for name, value in given.items() if name != wrapped[0]} | dict(_parse_data(inner))
    return given


def _parse_data(given: Any) -> Any:
    for _ in range(2):
        if isinstance(given, bytes | bytearray):
            try:
                given = bytes(given).decode("utf-8-sig")
            except UnicodeDecodeError:
                raise ArgumentsError("the arguments are not valid UTF-8; give one JSON object as UTF-8") from None
        if isinstance(given, str):
            given = _json(given) if given.strip().lower() not in _NOTHING else {}
    return {} if given is None else given


def _match_names(parameters: Sequence[Parameter], given: Mapping[Any, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the values by parameter name. null means not given."""
    by_spelling = {_spelling(name): parameter for parameter in parameters for name in parameter.arg.also}
    by_spelling |= {_spelling(parameter.name): parameter for parameter in parameters}
    names = {parameter.name: parameter for parameter in parameters}
    values: dict[str, Any] = {}
    unknown: list[str] = []
    for key in sorted(given, key=lambda key: str(key) not in names):  # exact names first
        parameter = names.get(str(key)) or by_spelling.get(_spelling(str(key)))
        value = given[key]
        if parameter is None:
            unknown.append(str(key))
        elif parameter.name in values:
            if value != values[parameter.name] and value is not None:
                raise ArgumentsError(f"{parameter.name} is given twice, as {_preview_json(key)} too; give it once")
        elif value is not None and not _is_nothing(parameter, value):
            values[parameter.name] = value
    return values, unknown


def _is_nothing(parameter: Parameter, value: Any) -> bool:
    """Return True for text that means no value, unless the parameter takes text, where "null" may be meant."""
    if not isinstance(value, str) or value.strip().lower() not in _NOTHING:
        return False
    if parameter.type != "string":
        return True
    return not parameter.required and (bool(parameter.enum) or parameter.arg.aside or value == "")


def _describe_missing(missing: Sequence[Parameter], unknown: Sequence[str]) -> str:
    said = " and ".join(parameter.name for parameter in missing)
    text = f"{said} {'is' if len(missing) == 1 else 'are'} missing; give " + ", ".join(map(_describe_expected, missing))
    return f"{text} (instead of {', '.join(_preview_json(name) for name in unknown[:5])}?)" if unknown else text


def _describe_expected(parameter: Parameter) -> str:
    if parameter.enum:
        return f"{parameter.name} (one of {', '.join(parameter.enum)})"
    return f"{parameter.name} ({_WANTED[parameter.type]})"


def _example(parameters: Sequence[Parameter]) -> str:
    wanted = [parameter for parameter in parameters if parameter.required] or list(parameters[:1])
    return ", ".join(f'"{parameter.name}": …' for parameter in wanted)


def _read_scalar(name: str, kind: str, value: Any, enum: tuple[str, ...] = ()) -> Any:
    if kind == "string":
        return _read_choice(name, value, enum) if enum else _read_text(name, value)
    if kind == "boolean":
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip().lower() in _YES_NO:
            return _YES_NO[value.strip().lower()]
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        number = _read_number(value)
        if number is not None and (kind == "number" or number == int(number)):
            return int(number) if kind == "integer" else float(number)
    raise ArgumentsError(f"{name} is {_preview_json(value)}; it must be {_WANTED[kind]}")


def _read_text(name: str, value: Any) -> str:
    if isinstance(value, str):
        if found := _NO_TEXT.search(value):
            what = "a null character" if found[0] == "\0" else "half a character (a lone surrogate)"
            raise ArgumentsError(f"{name} has {what} at position {found.start()}; leave it out")
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and _read_number(value) is not None:
        return str(value)
    raise ArgumentsError(f"{name} is {_preview_json(value)}; it must be text")


def _read_choice(name: str, value: Any, enum: tuple[str, ...]) -> str:
    if isinstance(value, str):
        if value in enum:
            return value
        for word in enum:
            if _spelling(word) == _spelling(value):
                return word
    raise ArgumentsError(f"{name} is {_preview_json(value)}; it must be one of {', '.join(enum)}")


def _read_number(value: str | int | float) -> int | float | None:
    if isinstance(value, int):
        return value if abs(value) < _LARGEST else None
    if isinstance(value, str):
        text = value.strip()
        if not re.fullmatch(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?(e[+-]?[0-9]{1,2})?", text, re.IGNORECASE):
            return None
        value = float(text) if not text.lstrip("+-").isdigit() else int(text)
    return value if math.isfinite(value) and abs(value) < _LARGEST else None


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise ArgumentsError(
            "the arguments are not valid JSON; give one JSON object, with quotes and line breaks in texts escaped"
        ) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        for name, value in pairs:
            if found[name] != value:
                raise ArgumentsError(f"{_preview_json(name)} is given twice; give it once")
    return found


def _spelling(name: str) -> str:
    """Return a name without the differences that models make: case, and how words are joined."""
    return re.sub(r"[\s_\-.]+", "", name).casefold()


def is_id(value: Any) -> bool:
    """Return True if this has the form of a record id."""
    return isinstance(value, str) and re.fullmatch(r"[a-z]+-[0-9a-z]{26}", value) is not None


def _similar_spelling(one: str, other: str) -> bool:
    return OSA.normalized_similarity(_spelling(one), _spelling(other)) >= 0.75


def _preview_json(value: Any) -> str:
    try:
        shown = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        shown = type(value).__name__
    shown = shown.encode("utf-8", errors="replace").decode("utf-8")
    return shown if len(shown) <= 40 else shown[:37] + "…"
