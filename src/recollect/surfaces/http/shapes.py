"""How an argument may look: the memory's own check of it, and the same told as JSON Schema.

So what is wrong with an argument in itself is found before anything is done, in the words of the memory, and the
document promises no more than is taken. Knows nothing about which verb takes what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from recollect.core import validation as check
from recollect.document.blocks import one_block
from recollect.document.labels import key_of
from recollect.errors import InvalidInputError
from recollect.identity.codes import ALPHABET, LENGTH, normal
from recollect.store.keys import DEFAULT_TENANT
from recollect.store.tenants import stored_id
from recollect.text import terms
from recollect.userid import MAX_LENGTH, check_user_id

Check = Callable[[str, Any], object]

_CONTROLS = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029"
_SPACES = r"\t\n\r \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_INVISIBLE = r"\ufeff\u200b\u2060"
_SEEN = f"[^{_CONTROLS}{_SPACES}{_INVISIBLE}]"
_TEXT = f"[{_SPACES}{_INVISIBLE}]*{_SEEN}[^{_CONTROLS}]*"
_LINE = rf"[{_SPACES}]*[{_INVISIBLE}]*[{_SPACES}]*{_SEEN}[^{_CONTROLS}\r\n]*[{_SPACES}]*"
_KEY = rf"[{_SPACES}]*[^{_CONTROLS}\r\n]*[\p{{L}}\p{{N}}][^{_CONTROLS}\r\n]*[{_SPACES}]*"
_WORDS = rf"[^{_CONTROLS}]*[\p{{L}}\p{{N}}][^{_CONTROLS}]*"
_VISIBLE = r"\p{L}\p{M}\p{N}\p{P}\p{S}"
# the end of a block of marks, which no character has: some take the whole block for marks
_ASSIGNED = r"(?![\s\S]*[\u20f1-\u20ff])"
_DAY = (
    "[1-8][0-9]{3}-"
    "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_TIME = r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
_ZONE = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_LETTERS = ALPHABET + ALPHABET.lower()
_LONGEST_PERSON = MAX_LENGTH - 2
"""Of a name on a channel; the channel, a colon and the name have to be a user id."""

STORABLE = {"type": "string", "pattern": r"^[^\x00]*$"}
"""Text that a database can hold, or look for."""
_REF = "x-named"
NAMED: dict[str, dict[str, Any]] = {}
"""The schemas that have a name."""


def shaped(kind: Any, is_right: Check, schema: dict[str, Any], name: str = "") -> Any:
    """A type whose values pass a check, told as a schema says; by its name, if it has one."""

    def checked(value: Any) -> Any:
        try:
            is_right("it", value)
        except InvalidInputError as error:
            problem = str(error).removeprefix(f"{error.field}: ")
            raise PydanticCustomError("refused", "{problem}", {"problem": problem}) from None
        return value

    if name:
        NAMED[name] = schema
    return Annotated[kind, AfterValidator(checked), WithJsonSchema(ref(name) if name else schema)]


def ref(name: str) -> dict[str, Any]:
    """Where the document has a schema of this name; `with_refs` puts it there."""
    return {_REF: name}


def with_refs(told: Any) -> Any:
    """A document whose names are references. pydantic knows only those it made itself."""
    if isinstance(told, list):
        return [with_refs(one) for one in told]
    if not isinstance(told, dict):
        return told
    made = {name: with_refs(one) for name, one in told.items() if name != _REF}
    return {"$ref": f"#/components/schemas/{told[_REF]}"} | made if _REF in told else made


def text(most: int) -> Any:
    """Text with something in it."""
    return shaped(str, lambda name, value: check.text(name, value, most), _told(_TEXT, most), f"Text{most}")


def line(most: int = check.MAX_SHORT) -> Any:
    """A line with something in it."""
    return shaped(str, lambda name, value: check.line(name, value, most), _told(_LINE, most), f"Line{most}")


def one_of(allowed: Sequence[str]) -> Any:
    """One of these words."""
    schema = {"type": "string", "enum": list(allowed)}
    return shaped(Any, lambda name, value: check.one_of(name, value, allowed), schema)


def storable(most: int) -> Any:
    """Any text that is not too long."""
    return Annotated[shaped(str, check.sought, STORABLE | {"maxLength": most}), Field(max_length=most)]


def several(of: Any, most: int | None = None, least: int = 0) -> Any:
    """A list of them."""
    return Annotated[list[of], Field(min_length=least or None, max_length=most)]


def whole(least: int, most: int) -> Any:
    """A whole number; in JSON, 5.0 is one."""
    return Annotated[int, Field(ge=least, le=most), BeforeValidator(_whole)]


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _told(pattern: str, most: int | None = None, **more: Any) -> dict[str, Any]:
    if most is not None:
        # of a very long text it is only said: who tries out what a document allows would send nothing else
        more |= {"maxLength": most} if most <= check.MAX_FACT else {"description": f"at most {most:,} characters"}
    return {"type": "string", "pattern": f"^{pattern}$"} | more


# what only some arguments are


def _fact(name: str, value: str) -> None:
    if not one_block(check.text(name, value, check.MAX_FACT)):
        raise InvalidInputError(name, "there is no text in it")


def _key(name: str, value: str) -> None:
    if not key_of(check.line(name, value, check.MAX_KEY)):
        raise InvalidInputError(name, "has no letters or digits")


def _topic(name: str, value: str) -> None:
    if not terms(check.text(name, value, check.MAX_SHORT)):
        raise InvalidInputError(name, "has no words to look for")


def _source(name: str, value: str) -> None:
    if value:
        check.line(name, value)


def _file(name: str, value: str) -> None:
    if not check.whole_file(name, value).strip("\ufeff \t\r\n"):
        raise InvalidInputError(name, "must not be empty; an empty file forgets nothing. To do so, use clear")


def _person(name: str, value: str) -> None:
    if not 1 <= len(value) <= _LONGEST_PERSON or value != value.strip():
        raise InvalidInputError(name, f"must have 1 to {_LONGEST_PERSON} characters, and no space at either end")
    if value.startswith("@"):
        raise InvalidInputError(name, "must not begin with @, as the users of other tenants do")
    _user(name, value)


def _user_before(name: str, value: str) -> None:
    if len(value) > 500 or not value.isprintable():
        raise InvalidInputError(name, "must be ``next`` of the page before")


def _item(name: str, value: Any) -> None:
    if isinstance(value, str):
        return
    if not isinstance(value, dict):
        raise InvalidInputError(name, "must be text, or have a title, a text or topics")
    title, said, topics = (value.get(part) for part in ("title", "text", "topics"))
    listed = topics if isinstance(topics, list) else [topics]
    if any(one is not None and not isinstance(one, str) for one in (title, said, *listed)) or None in listed[1:]:
        raise InvalidInputError(name, "must have texts as its title, text and topics")
    if not (title or said or topics):
        raise InvalidInputError(name, "must have a title, a text or topics")


def _user(name: str, value: str) -> None:
    stored_id(DEFAULT_TENANT, value)


def _moment(zone: str, last_year: int = 9_999) -> Any:
    said = "YYYY-MM-DD or ISO 8601" if zone.endswith("?") else "YYYY-MM-DD, or ISO 8601 with a time zone"
    schema = _told(f"{_DAY}({_TIME}{zone})?", description=said)
    name = "Moment" if zone.endswith("?") else "ZonedMoment"
    return shaped(str, lambda name, value: check.moment(name, value, last_year), schema, name)


def _day(last_year: int = 9_999) -> Any:
    schema = _told(_DAY, description="YYYY-MM-DD")
    return shaped(str, lambda name, value: check.day(name, value, last_year), schema, "Day")


_PLAIN = ref("Plain")
_OBJECT = {"type": "object", "propertyNames": STORABLE, "additionalProperties": _PLAIN}
NAMED["Plain"] = {
    "description": "What both JSON and a database can hold.",
    "anyOf": [{"type": ["null", "boolean", "number"]}, STORABLE, {"type": "array", "items": _PLAIN}, _OBJECT],
}
_OR_NULL = {"anyOf": [STORABLE, {"type": "null"}]}
_SOMETHING = STORABLE | {"minLength": 1}
_TELLING: dict[str, Any] = {
    "title": _SOMETHING,
    "text": _SOMETHING,
    "topics": {"anyOf": [_SOMETHING, {"type": "array", "items": STORABLE, "minItems": 1}]},
}
_ITEM: dict[str, Any] = {
    "anyOf": [
        STORABLE,
        *(
            _OBJECT
            | {
                "properties": {
                    "title": _OR_NULL,
                    "text": _OR_NULL,
                    "topics": {"anyOf": [_OR_NULL, {"type": "array", "items": STORABLE}]},
                    name: one,
                },
                "required": [name],
            }
            for name, one in _TELLING.items()
        ),
    ]
}

SOUGHT = shaped(str, check.sought, STORABLE, "Sought")
ASKED = shaped(str, check.query, {"type": "string"})
FACT = shaped(str, _fact, _told(_TEXT, check.MAX_FACT), "FactText")
TEXT = text(check.MAX_TEXT)
LINE = line()
REF = line(200)
SOURCE = shaped(str, _source, _told(f"({_LINE})?", check.MAX_SHORT), "SourceName")
KEY = shaped(str, _key, _told(_KEY, check.MAX_KEY), "Key")
TOPIC = shaped(str, _topic, _told(_WORDS, check.MAX_SHORT), "TopicWords")
FILE = shaped(str, _file, _told(r"[\ufeff \t\r\n]*[^\x00\ufeff \t\r\n][^\x00]*", check.MAX_FILE), "FileText")
SEEN = shaped(str, check.whole_file, _told(r"[^\x00]*", check.MAX_FILE), "FileSeen")
ENTRY_OR_RUN = shaped(str, check.entry_or_run, _told(rf"(?!\s*[0-9]{{19}}){_LINE}", 200), "RunId")
ID = Annotated[str, Field(pattern="^[!-~]{1,64}$")]
"""Of a record, where many of them have to fit into an address."""
TAGS = several(REF, check.MAX_TAGS)
MESSAGES = several(REF, check.MAX_MESSAGES)
METADATA = shaped(
    dict[str, Any],
    check.metadata,
    _OBJECT | {"description": f"as JSON, at most {check.MAX_METADATA:,} characters"},
    "Metadata",
)
OBJECT = Annotated[dict[str, Any], WithJsonSchema(_OBJECT)]
DAY, NOTED_DAY = _day(), _day(check.LAST_YEAR)
MOMENT, ZONED, NOW = _moment(_ZONE + "?"), _moment(_ZONE), _moment(_ZONE + "?", check.LAST_YEAR)
SHARE = shaped(Any, check.share, {"type": "number", "minimum": 0, "maximum": 1})
COUNT = whole(1, 1_000_000)
NUMBER = whole(0, check.MAX_NUMBER)
AMOUNT = whole(0, 10**12)
ITEM = shaped(Any, _item, _ITEM, "ItemToRank")
_USER = _told(rf"(?!@[a-z0-9][a-z0-9-]{{0,31}}/){_ASSIGNED} *[{_VISIBLE}][{_VISIBLE} ]*", MAX_LENGTH)
USER = shaped(str, _user, _USER, "UserId")
LOCAL_USER = shaped(str, lambda name, value: check_user_id(value), _USER, "UserId")
"""As a tenant knows them, who may have others than the default one."""
USER_BEFORE = shaped(str, _user_before, _told(f"{_ASSIGNED}[{_VISIBLE} ]*", 500), "UserBefore")
CHANNEL = Annotated[str, Field(pattern="^[a-z0-9_-]{1,32}$")]
PERSON = shaped(
    str, _person, _told(rf"(?!@){_ASSIGNED}[{_VISIBLE}]([{_VISIBLE} ]*[{_VISIBLE}])?", _LONGEST_PERSON), "PersonName"
)
CODE = shaped(
    str, lambda name, value: normal(value), _told(f"[{_LETTERS}]{{{LENGTH // 2}}}-?[{_LETTERS}]{{{LENGTH // 2}}}")
)
