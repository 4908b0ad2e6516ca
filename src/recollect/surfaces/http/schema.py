"""The types of what is asked and answered, made from the verbs of `Memory` and our dataclasses.

They check each argument in itself. Whether arguments fit each other and what is remembered is for the memory to say.
"""

from __future__ import annotations

import re
import types
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from recollect import records
from recollect.client.plain import names_of, outcome_types
from recollect.client.verbs import PAGE, VERBS, Verb
from recollect.core import events
from recollect.core import validation as check
from recollect.core.interests import MAX_ITEMS
from recollect.core.unread import Mark
from recollect.document.daily_md import SECTIONS
from recollect.errors import InvalidInputError
from recollect.records import ExtractionRun, Hit, Hits, Outcome, Record
from recollect.surfaces.http import shapes
from recollect.surfaces.http.exchange import Asked, parsed

CURSOR = r"^[A-Za-z0-9_-]{1,2000}$"
"""A place in a list, as `recollect.core.paging` writes it."""
_WHERE = "where to go on: ``next`` of the page before"
_MOST_FIELDS = 200
_CLEANED = frozenset({"query", "topic"})
"""Whatever is in a question, the memory makes the best of it."""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_ANY_CATEGORY = shapes.one_of(records.CATEGORIES + records.OBSERVATION_CATEGORIES)
_KINDS = shapes.several(shapes.one_of(records.KINDS), check.MAX_TAGS)
_SHAPES: dict[str, Any] = {
    "as_of": shapes.MOMENT,
    "at": shapes.ZONED,
    "before": shapes.NUMBER,
    "call": shapes.SOUGHT,
    "category": _ANY_CATEGORY,
    "confidence": shapes.SHARE,
    "content": shapes.TEXT,
    "cost": Annotated[float, Field(ge=0, le=1e9)],
    "day": shapes.NOTED_DAY,
    "excerpt": shapes.text(check.MAX_FACT),
    "expect": shapes.SEEN,
    "expires_at": shapes.MOMENT,
    "id": shapes.REF,
    "ids": shapes.several(shapes.ID, _MOST_FIELDS),
    "importance": shapes.SHARE,
    "item": shapes.LINE,
    "items": shapes.several(shapes.ITEM, MAX_ITEMS),
    "key": shapes.KEY,
    "kind": shapes.one_of(records.KINDS),
    "kinds": _KINDS,
    "limit": shapes.COUNT,
    "max_tokens": shapes.COUNT,
    "messages": shapes.MESSAGES,
    "metadata": shapes.METADATA,
    "min_score": shapes.SHARE,
    "name": shapes.one_of(records.CONSENTS),
    "note": shapes.text(check.MAX_SHORT),
    "now": shapes.MOMENT,
    "number": shapes.NUMBER,
    "offset": shapes.whole(0, 2**31 - 1),
    "operation": shapes.REF,
    "participants": shapes.TAGS,
    "query": shapes.ASKED,
    "reason": shapes.text(check.MAX_SHORT),
    "ref": shapes.REF,
    "refs": shapes.REF,
    "replaced_by": shapes.REF,
    "role": shapes.LINE,
    "run": shapes.SOUGHT,
    "said_at": shapes.MOMENT,
    "section": shapes.one_of(SECTIONS),
    "session": shapes.LINE,
    "since": shapes.MOMENT,
    "source": shapes.SOURCE,
    "speaker": shapes.LINE,
    "status": shapes.one_of((*records.STATUSES, "all")),
    "summary": shapes.TEXT,
    "tags": shapes.TAGS,
    "target": shapes.ENTRY_OR_RUN | shapes.NUMBER,
    "text": shapes.FILE,
    "title": shapes.LINE,
    "tokens_in": shapes.AMOUNT,
    "tokens_out": shapes.AMOUNT,
    "tool": shapes.LINE,
    "topic": shapes.LINE,
    "topics": shapes.TAGS,
    "type": shapes.one_of(records.FACT_TYPES),
    "until": shapes.MOMENT,
    "valence": shapes.one_of(records.VALENCES),
    "valid_from": shapes.MOMENT,
    "value": shapes.TEXT,
    "context.now": shapes.NOW,
    "context.topic": shapes.ASKED,
    "daily.day": shapes.DAY,
    "erase_topic.topic": shapes.TOPIC,
    "interactions.kinds": shapes.several(shapes.one_of(records.INTERACTION_KINDS), check.MAX_TAGS),
    "jot.content": shapes.FACT,
    "merge.content": shapes.text(check.MAX_FACT),
    "merge.refs": shapes.several(shapes.REF, check.MAX_MESSAGES, 2),
    "observe.category": shapes.one_of(records.OBSERVATION_CATEGORIES),
    "read.key": shapes.SOUGHT,
    "read.session": shapes.SOUGHT,
    "read.source": shapes.SOUGHT,
    "remember.category": shapes.one_of(records.CATEGORIES),
    "remember.content": shapes.FACT,
    "report.kind": shapes.one_of(records.INTERACTION_KINDS),
    "report.text": shapes.text(events.MAX_TEXT),
    "report.value": shapes.REF,
    "runs.kind": shapes.LINE,
    "runs.since": shapes.DAY,
    "scratch.key": shapes.REF,
    "search.source": shapes.LINE,
    "set_scratch.key": shapes.REF,
    "update.reason": shapes.one_of(records.CHANGE_REASONS),
    "update.source": shapes.LINE,
    "usage.since": shapes.DAY,
    "usage.until": shapes.DAY,
    "ExtractionRun.day": shapes.DAY,
    "ExtractionRun.details": shapes.METADATA,
    "ExtractionRun.duration_ms": shapes.AMOUNT,
    "ExtractionRun.error": shapes.SOUGHT,
    "ExtractionRun.interactions_processed": shapes.AMOUNT,
    "ExtractionRun.kind": shapes.REF,
    "ExtractionRun.memories_updated": shapes.AMOUNT,
    "ExtractionRun.memories_written": shapes.AMOUNT,
    "ExtractionRun.started_at": shapes.MOMENT,
    "ExtractionRun.status": shapes.one_of(records.RUN_STATUSES),
    "ExtractionRun.tier": shapes.line(64),
    "ExtractionRun.tokens_used": shapes.AMOUNT,
    "Mark.reported": shapes.MOMENT,
    "Mark.seq": shapes.NUMBER,
}
"""How an argument may look, by its name, or by verb or class and name."""


class Strict(BaseModel):
    """What is asked: nothing unknown in it, and nothing taken for something else."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class Nothing(Strict):
    """No arguments."""


class Paged(Strict):
    """Which part of a long list."""

    cursor: Annotated[str, Field(pattern=CURSOR)] | None = Field(None, description=_WHERE)
    page: shapes.whole(1, 1000) = Field(PAGE, description="how many items at most")  # type: ignore[valid-type]


@cache
def arguments_of(name: str) -> type[BaseModel]:
    """What a verb takes."""
    verb = VERBS[name]
    given: dict[str, Any] = {}
    for parameter in verb.parameters.values():
        kind = _argument(verb.name, parameter.name, verb.hints[parameter.name])
        if parameter.kind is parameter.VAR_POSITIONAL:
            given[parameter.name] = (list[kind], ...)  # type: ignore[valid-type]
        elif parameter.default is parameter.empty:
            given[parameter.name] = (kind, ...)
        else:
            default = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
            given[parameter.name] = (kind, default)
    return create_model(f"{_titled(name)}Arguments", __base__=Paged if verb.paged else Strict, **given)


def _argument(owner: str, name: str, hint: Any) -> Any:
    """The type of an argument, as JSON can hold it."""
    inner = get_args(hint)
    kind: Any
    if f"{owner}.{name}" in _SHAPES or (name in _SHAPES and hint is not ExtractionRun):
        kind = _SHAPES.get(f"{owner}.{name}", _SHAPES.get(name))
    elif hint is ExtractionRun:
        kind = taken(ExtractionRun)
    elif inner == (Mark,):
        kind = list[taken(Mark)]  # type: ignore[misc]
    elif name == "events":
        kind = list[arguments_of("report")]  # type: ignore[misc]
    elif hint in (bool, bool | None) or get_origin(hint) is Literal:
        return hint
    else:
        raise TypeError(f"{owner} takes {name}: say in the table above how it may look")
    return kind | None if types.NoneType in inner else kind


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
        kind = _argument(cls.__name__, one.name, hints[one.name])
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
        made = model.model_validate(data, strict=strict)
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
