"""Fields as pydantic types, for requests and the OpenAPI document, and the fields that only requests have.

Each argument is checked before anything is done, by the library's own check and with its message, so the document
promises no more than is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema
from pydantic import Field as Constraints
from pydantic_core import PydanticCustomError

from recollect import checks, fields
from recollect.errors import InvalidInputError
from recollect.fields import PLAIN, REFERENCE, STORABLE, Field, component_schema, pattern_schema
from recollect.identity.codes import ALPHABET, LENGTH, normal
from recollect.memory.trends import FEWEST
from recollect.store.keys import DEFAULT_TENANT
from recollect.store.tenants import stored_id
from recollect.surfaces.http.authentication import LONGEST_TOKEN
from recollect.tools.catalog import SUITES
from recollect.userid import MAX_LENGTH, check_user_id

COMPONENTS: dict[str, dict[str, Any]] = {"Plain": PLAIN}
"""The named schemas."""


def json_type(field: Field) -> Any:
    """Return the type of the JSON values that pass the check of a field, described by its schema."""
    if field.items is not None:
        bounds = Constraints(min_length=field.schema.get("minItems"), max_length=field.schema["maxItems"])
        return Annotated[list[json_type(field.items)], bounds]  # type: ignore[misc]
    if field.json in (int, float):
        bounds = Constraints(ge=field.schema["minimum"], le=field.schema["maximum"])
        return Annotated[int, bounds, BeforeValidator(_as_integer)] if field.json is int else Annotated[float, bounds]
    if field.json is bool:
        return bool
    kind = field.json

    def check(value: Any) -> Any:
        try:
            field.check("it", value)
        except InvalidInputError as error:
            problem = str(error).removeprefix(f"{error.field}: ")
            raise PydanticCustomError("refused", "{problem}", {"problem": problem}) from None
        return value

    if field.component:
        COMPONENTS[field.component] = field.schema
    schema = component_schema(field.component) if field.component else field.schema
    checked: Any = Annotated[kind, AfterValidator(check), WithJsonSchema(schema)]
    return checked if field.also is None else checked | json_type(field.also)


def _as_integer(value: Any) -> Any:
    """Return a whole number as an int: in JSON, 5.0 is one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def with_references(told: Any) -> Any:
    """Return a document with ``$ref`` references to the named schemas, which pydantic does not know, and with
    descriptions in Markdown."""
    if isinstance(told, list):
        return [with_references(one) for one in told]
    if not isinstance(told, dict):
        return told
    made = {name: with_references(one) for name, one in told.items() if name != REFERENCE}
    if isinstance(description := made.get("description"), str):
        made["description"] = description.replace("``", "`")  # from docstrings; OpenAPI reads Markdown
    return {"$ref": f"#/components/schemas/{told[REFERENCE]}"} | made if REFERENCE in told else made


# fields that only requests have

_VISIBLE = r"\p{L}\p{M}\p{N}\p{P}\p{S}"
# the end of a block of marks, which no character has: some take the whole block for marks
_ASSIGNED = r"(?![\s\S]*[\u20f1-\u20ff])"
_LETTERS = ALPHABET + ALPHABET.lower()
_LONGEST_PERSON = MAX_LENGTH - 2
"""The maximum length of a name on a channel: the channel, a colon and the name must form a user id."""
_USER_SCHEMA = pattern_schema(rf"(?!@[a-z0-9][a-z0-9-]{{0,31}}/){_ASSIGNED} *[{_VISIBLE}][{_VISIBLE} ]*", MAX_LENGTH)


def _user(_name: str, value: str) -> None:
    stored_id(DEFAULT_TENANT, value)


def _person(name: str, value: str) -> None:
    if not 1 <= len(value) <= _LONGEST_PERSON or value != value.strip():
        raise InvalidInputError(name, f"must have 1 to {_LONGEST_PERSON} characters and no space at either end")
    if value.startswith("@"):
        raise InvalidInputError(name, "must not begin with @, as the users of other tenants do")
    _user(name, value)


def _user_before(name: str, value: str) -> None:
    if len(value) > 500 or not value.isprintable():
        raise InvalidInputError(name, "must be ``next`` of the previous page")


def integer_type(least: int, most: int) -> Any:
    """Return the type of a whole number."""
    return json_type(fields.integer_field(least, most))


def choice_type(allowed: Iterable[str]) -> Any:
    """Return the type of one word out of several."""
    return json_type(fields.choice_field(tuple(allowed)))


def storable_text_type(most: int) -> Any:
    """Return the type of any text that is not too long."""
    text = json_type(Field(check=checks.check_filter_value, schema=STORABLE | {"maxLength": most}))
    return Annotated[text, Constraints(max_length=most)]


LINE = json_type(fields.line_field())
NUMBER = json_type(fields.NUMBER)
FEW = integer_type(1, 1000)
DAYS = integer_type(1, 366)
MINUTES = integer_type(1, LONGEST_TOKEN)
SHARING = integer_type(FEWEST, 1_000_000)
"""How many users have to share a topic."""
SUITE = choice_type(SUITES)
FILE_NAME = storable_text_type(200)
OBJECT = Annotated[dict[str, Any], WithJsonSchema(fields.OBJECT)]
USER = json_type(Field(check=_user, schema=_USER_SCHEMA, component="UserId"))
LOCAL_USER = json_type(Field(check=lambda _name, value: check_user_id(value), schema=_USER_SCHEMA, component="UserId"))
"""A user id within the tenant of the key."""
USER_BEFORE = json_type(
    Field(check=_user_before, schema=pattern_schema(f"{_ASSIGNED}[{_VISIBLE} ]*", 500), component="UserBefore")
)
CHANNEL = Annotated[str, Constraints(pattern="^[a-z0-9_-]{1,32}$")]
_PERSON_SCHEMA = pattern_schema(rf"(?!@){_ASSIGNED}[{_VISIBLE}]([{_VISIBLE} ]*[{_VISIBLE}])?", _LONGEST_PERSON)
PERSON = json_type(Field(check=_person, schema=_PERSON_SCHEMA, component="PersonName"))
_CODE_SCHEMA = pattern_schema(f"[{_LETTERS}]{{{LENGTH // 2}}}-?[{_LETTERS}]{{{LENGTH // 2}}}")
CODE = json_type(Field(check=lambda _name, value: normal(value), schema=_CODE_SCHEMA))
