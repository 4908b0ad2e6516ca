"""Every type of argument, declared once: its check, its JSON Schema, and its words on the command line.

A verb of `Memory` names these types in its signature. `recollect.verbs` applies the checks; the HTTP API, its OpenAPI
document and the command line take the rest from here. To editors and type checkers each is a plain type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from recollect import checks, records
from recollect.checks import LAST_YEAR, MAX_FACT, MAX_FILE, MAX_IDS, MAX_KEY, MAX_MESSAGES, MAX_SHORT, MAX_TEXT
from recollect.document.blocks import one_block
from recollect.document.daily_md import SECTIONS
from recollect.document.labels import key_of
from recollect.errors import InvalidInputError
from recollect.records import ExtractionRun, Interaction
from recollect.text import terms

MAX_ITEMS = 10_000
"""How many things `rank` takes at once."""
MAX_REPORTED = 20_000
"""How many characters the text of a reported interaction may have."""
_MOST_IN_ADDRESS = 200
"""How many ids fit into the address of a request."""

Check = Callable[[str, Any], Any]
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field:
    """What is known about a type of argument beyond its Python type."""

    check: Check
    """Return the value in its normal form, or raise `InvalidInputError` for the argument of that name."""
    schema: Schema
    """The JSON Schema of what is accepted."""
    json: Any = str
    """The Python type of the JSON value, before it is checked."""
    component: str = ""
    """The name of the schema in the OpenAPI document, if it is used in several places."""
    items: Field | None = None
    """The field of each item, if it is a list."""
    parts: Mapping[str, Field] | None = None
    """The field of each attribute, if it is a dataclass or a list of them."""
    verb: str = ""
    """The verb whose arguments each item has, if it is a list of mappings."""
    also: Field | None = None
    """Another form in which it may be given."""
    help: str = ""
    metavar: str | None = None
    stdin: bool = False
    """Whether the command line reads it from standard input for ``-``."""


# JSON Schema

_CONTROLS = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029"
_SPACES = r"\t\n\r \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_INVISIBLE = r"\ufeff\u200b\u2060"
_SEEN = f"[^{_CONTROLS}{_SPACES}{_INVISIBLE}]"
_TEXT = f"[{_SPACES}{_INVISIBLE}]*{_SEEN}[^{_CONTROLS}]*"
_LINE = rf"[{_SPACES}]*[{_INVISIBLE}]*[{_SPACES}]*{_SEEN}[^{_CONTROLS}\r\n]*[{_SPACES}]*"
_KEY = rf"[{_SPACES}]*[^{_CONTROLS}\r\n]*[\p{{L}}\p{{N}}][^{_CONTROLS}\r\n]*[{_SPACES}]*"
_WORDS = rf"[^{_CONTROLS}]*[\p{{L}}\p{{N}}][^{_CONTROLS}]*"
_DAY = (
    "[1-8][0-9]{3}-"
    "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_TIME = r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
_ZONE = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"

STORABLE: Schema = {"type": "string", "pattern": r"^[^\x00]*$"}
"""Text that a database can hold, or look for."""
REFERENCE = "x-component"
"""Stands for ``$ref`` until the OpenAPI document is put together."""


def component_schema(component: str) -> Schema:
    """Return a schema that refers to a component of the OpenAPI document."""
    return {REFERENCE: component}


def pattern_schema(expression: str, most: int | None = None, **more: Any) -> Schema:
    """Return the schema of a text that matches an expression and has at most so many characters."""
    if most is not None:
        # a generator of examples would produce nothing but very long texts if it knew this limit
        more |= {"maxLength": most} if most <= MAX_FACT else {"description": f"at most {most:,} characters"}
    return {"type": "string", "pattern": f"^{expression}$"} | more


_PLAIN = component_schema("Plain")
OBJECT: Schema = {"type": "object", "propertyNames": STORABLE, "additionalProperties": _PLAIN}
"""A JSON object that a database can hold."""
PLAIN: Schema = {
    "description": "What both JSON and a database can hold.",
    "anyOf": [{"type": ["null", "boolean", "number"]}, STORABLE, {"type": "array", "items": _PLAIN}, OBJECT],
}


def _item_schema() -> Schema:
    text_or_null = {"anyOf": [STORABLE, {"type": "null"}]}
    not_empty = STORABLE | {"minLength": 1}
    topics = {"anyOf": [not_empty, {"type": "array", "items": STORABLE, "minItems": 1}]}
    optional = {
        "title": text_or_null,
        "text": text_or_null,
        "topics": {"anyOf": [text_or_null, {"type": "array", "items": STORABLE}]},
    }
    required = {"title": not_empty, "text": not_empty, "topics": topics}
    objects = [OBJECT | {"properties": optional | {name: one}, "required": [name]} for name, one in required.items()]
    return {"anyOf": [STORABLE, *objects]}


# kinds of fields


def text_field(most: int, help: str = "", metavar: str = "TEXT", *, stdin: bool = False) -> Field:
    """Return the field of a text with something in it."""
    check, schema = partial(_check_with_limit, checks.check_text, most), pattern_schema(_TEXT, most)
    said = f"{help}; - reads standard input." if stdin else help
    return Field(check=check, schema=schema, component=f"Text{most}", help=said, metavar=metavar, stdin=stdin)


def line_field(help: str = "", metavar: str = "TEXT", most: int = MAX_SHORT) -> Field:
    """Return the field of a single line with something in it."""
    check = partial(_check_with_limit, checks.check_line, most)
    return Field(check=check, schema=pattern_schema(_LINE, most), component=f"Line{most}", help=help, metavar=metavar)


def choice_field(allowed: Sequence[str], help: str = "", metavar: str | None = "NAME") -> Field:
    """Return the field of one word out of several; without a help text, the words are listed."""
    words = f"{', '.join(allowed[:-1])} or {allowed[-1]}."
    schema = {"type": "string", "enum": list(allowed)}
    check = partial(_check_with_limit, checks.check_choice, tuple(allowed))
    return Field(check=check, schema=schema, json=Any, help=help or words, metavar=metavar)


def list_field(item: Field, most: int, least: int = 0, *, help: str = "", check: Check | None = None) -> Field:
    """Return the field of a list. Without a check of its own, it is a list of short texts, each of them once."""
    bounds = {"minItems": least} if least else {}
    schema = {"type": "array", "maxItems": most, **bounds}
    checked = check or partial(_check_each, item, most)
    return Field(check=checked, schema=schema, json=list, items=item, help=help or item.help, metavar=item.metavar)


def integer_field(least: int, most: int, help: str = "", check: Check | None = None) -> Field:
    """Return the field of a whole number."""
    checked = check or partial(_check_with_limit, checks.check_positive if least else checks.check_count, most)
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Field(check=checked, schema=schema, json=int, help=help, metavar="NUMBER")


def fraction_field(help: str) -> Field:
    """Return the field of a number from 0 to 1."""
    schema = {"type": "number", "minimum": 0, "maximum": 1}
    return Field(check=checks.check_fraction, schema=schema, json=Any, help=help, metavar="SHARE")


def flag_field(help: str) -> Field:
    """Return the field of true or false."""
    return Field(check=checks.check_flag, schema={"type": "boolean"}, json=bool, help=help)


def moment_field(help: str = "", last_year: int = 9_999) -> Field:
    """Return the field of a point in time."""
    schema = pattern_schema(f"{_DAY}({_TIME}{_ZONE}?)?", description="YYYY-MM-DD or ISO 8601")
    check = partial(_check_with_limit, checks.check_moment, last_year)
    return Field(check=check, schema=schema, component="Moment", help=help, metavar="DATE")


def day_field(help: str = "", last_year: int = 9_999) -> Field:
    """Return the field of a day."""
    schema = pattern_schema(_DAY, description="YYYY-MM-DD")
    check = partial(_check_with_limit, checks.check_day, last_year)
    return Field(check=check, schema=schema, component="Day", help=help, metavar="DATE")


def filter_field(help: str = "", metavar: str = "TEXT") -> Field:
    """Return the field of a text that something stored must be equal to."""
    return Field(check=checks.check_filter_value, schema=STORABLE, component="Sought", help=help, metavar=metavar)


def query_field(help: str, metavar: str) -> Field:
    """Return the field of a question. Anything may be asked, also nothing."""
    return Field(check=checks.check_query, schema={"type": "string"}, help=help, metavar=metavar)


def custom_field(check: Check, schema: Schema, component: str, help: str, metavar: str = "TEXT", **more: Any) -> Field:
    """Return the field of a text with a check of its own."""
    return Field(check=check, schema=schema, component=component, help=help, metavar=metavar, **more)


def _check_with_limit(check: Callable[[str, Any, Any], Any], limit: Any, name: str, value: Any) -> Any:
    return check(name, value, limit)


def _check_each(item: Field, most: int, name: str, value: Any) -> tuple[str, ...]:
    found = checks.check_words(name, value, most)
    return tuple(item.check(name, one) for one in found) if "enum" in item.schema else found


# checks that only some arguments need


def _check_fact(name: str, value: object) -> str:
    found = one_block(checks.check_text(name, value, MAX_FACT))
    if not found:
        raise InvalidInputError(name, "there is no text in it")
    return found


def _check_key(name: str, value: object) -> str:
    label = checks.check_line(name, value, MAX_KEY)
    if not key_of(label):
        raise InvalidInputError(name, f"{label!r} has no letters or digits")
    return label


def _check_topic(name: str, value: object) -> str:
    found = checks.check_text(name, value, MAX_SHORT)
    if not terms(found):
        raise InvalidInputError(name, "has no words to look for")
    return found


def _check_source(name: str, value: object) -> str:
    return checks.check_line(name, value) if value else "explicit"


def _check_file(name: str, value: object) -> str:
    found = checks.check_file_text(name, value)
    if not found.strip("\ufeff \t\r\n"):
        raise InvalidInputError(name, "must not be empty; an empty file forgets nothing. To do so, use clear")
    return found


def _check_moment_as_given(name: str, value: Any) -> Any:
    """Check a moment, but keep it as it was given: whether it had a time zone is of interest later."""
    checks.check_moment(name, value)
    return value


def _check_ids(name: str, value: object) -> tuple[str, ...]:
    return checks.check_words(name, value, MAX_IDS)


def _check_item(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise InvalidInputError(name, "must be text, or have a title, a text or topics")
    title, said, topics = (value.get(part) for part in ("title", "text", "topics"))
    listed = topics if isinstance(topics, list) else [topics]
    if any(one is not None and not isinstance(one, str) for one in (title, said, *listed)) or None in listed[1:]:
        raise InvalidInputError(name, "must have texts as its title, text and topics")
    if not (title or said or topics):
        raise InvalidInputError(name, "must have a title, a text or topics")
    return value


def _accept_any(_name: str, value: Any) -> Any:
    """Leave it to the verb, which reads the items one by one."""
    return value


def _check_run(name: str, value: object) -> ExtractionRun:
    if not isinstance(value, ExtractionRun):
        raise InvalidInputError(name, f"must be an ExtractionRun, not {type(value).__name__}")
    return value


METADATA = Field(
    check=checks.check_metadata,
    schema=OBJECT | {"description": f"as JSON, at most {checks.MAX_METADATA:,} characters"},
    json=dict[str, Any],
    component="Metadata",
    help="Further data; may be repeated.",
    metavar="NAME=VALUE",
)
NUMBER = integer_field(0, checks.MAX_NUMBER)
AMOUNT = integer_field(0, 10**12)
REF = line_field("An id, the ending of an id, or the key of a fact.", "REF", 200)
_ID = Field(
    check=partial(_check_with_limit, checks.check_line, 200),
    schema={"type": "string", "pattern": "^[!-~]{1,64}$"},
    metavar="ID",
)
_COUNT = 1_000_000
RUN: Mapping[str, Field] = {
    "id": REF,
    "day": day_field(),
    "started_at": moment_field(),
    "kind": REF,
    "status": choice_field(records.RUN_STATUSES),
    "interactions_processed": AMOUNT,
    "memories_written": AMOUNT,
    "memories_updated": AMOUNT,
    "tokens_used": AMOUNT,
    "duration_ms": AMOUNT,
    "error": filter_field(),
    "tier": line_field(most=64),
    "details": METADATA,
}
"""The attributes of an `ExtractionRun`."""
MARK: Mapping[str, Field] = {"seq": NUMBER, "reported": moment_field(), "until": moment_field()}
"""The attributes of a `recollect.memory.unprocessed.Mark`."""

# what is written

FactText = Annotated[
    str,
    custom_field(
        _check_fact, pattern_schema(_TEXT, MAX_FACT), "FactText", "The text; - reads standard input.", stdin=True
    ),
]
Text = Annotated[str, text_field(MAX_TEXT, "The text", stdin=True)]
NewText = Annotated[str, text_field(MAX_TEXT, "The new text", stdin=True)]
MergedText = Annotated[str, text_field(MAX_FACT, "What they become", stdin=True)]
Summary = Annotated[str, text_field(MAX_TEXT, "What happened", "SUMMARY", stdin=True)]
ScratchText = Annotated[str, text_field(MAX_TEXT, "What to keep", "VALUE", stdin=True)]
FileText = Annotated[
    str,
    custom_field(
        _check_file,
        pattern_schema(r"[\ufeff \t\r\n]*[^\x00\ufeff \t\r\n][^\x00]*", MAX_FILE),
        "FileText",
        "The new text; - reads standard input.",
        "FILE",
    ),
]
FileSeen = Annotated[
    str,
    custom_field(
        checks.check_file_text,
        pattern_schema(r"[^\x00]*", MAX_FILE),
        "FileSeen",
        "Only if it still says what this file says.",
        "FILE",
    ),
]
Key = Annotated[
    str, custom_field(_check_key, pattern_schema(_KEY, MAX_KEY), "Key", "The name of the fact, such as role.", "NAME")
]
ScratchKey = Annotated[str, line_field("The name of the item.", "KEY", 200)]
FactCategory = Annotated[str, choice_field(records.CATEGORIES)]
ObservationCategory = Annotated[str, choice_field(records.OBSERVATION_CATEGORIES)]
AnyCategory = Annotated[str, choice_field(records.CATEGORIES + records.OBSERVATION_CATEGORIES, "Its category.")]
FactType = Annotated[str, choice_field(records.FACT_TYPES)]
Durability = Annotated[
    Literal["durable", "daily"], choice_field(("durable", "daily"), "For MEMORY.md, or for the daily note.", None)
]
Confidence = Annotated[float, fraction_field("How sure it is, from 0 to 1.")]
Importance = Annotated[float, fraction_field("How much it matters, from 0 to 1.")]
Source = Annotated[
    str,
    custom_field(
        _check_source,
        pattern_schema(f"({_LINE})?", MAX_SHORT),
        "SourceName",
        "Where it comes from, such as discussion:42.",
    ),
]
NewSource = Annotated[str, line_field("Where it comes from, such as discussion:42.")]
Excerpt = Annotated[str, text_field(MAX_FACT, "The words that support it.")]
_MESSAGE = line_field("The id of a message that supports it; may be repeated.", "ID", 200)
Messages = Annotated[Sequence[str], list_field(_MESSAGE, MAX_MESSAGES)]
MarkedMessages = Annotated[Sequence[str], list_field(_MESSAGE, MAX_MESSAGES, help="The ids of messages.")]
_TAG = line_field("A tag; may be repeated.", "WORD", 200)
Tags = Annotated[Sequence[str], list_field(_TAG, checks.MAX_TAGS)]
_NAME = line_field("Who took part; may be repeated.", "NAME", 200)
Participants = Annotated[Sequence[str], list_field(_NAME, checks.MAX_TAGS)]
ValidFrom = Annotated[datetime | date | str, moment_field("When it began to be so.")]
ExpiresAt = Annotated[datetime | date | str, moment_field("When to forget it.")]
SaidAt = Annotated[datetime | date | str, moment_field("When it was said, if not now.")]
NoteDay = Annotated[date | str, day_field("The day of the daily note; otherwise today.", LAST_YEAR)]
Section = Annotated[str, choice_field(SECTIONS)]
Pinned = Annotated[bool, flag_field("Keep it in MEMORY.md whatever happens.")]
Metadata = Annotated[Mapping[str, Any], METADATA]
Title = Annotated[str, line_field("A title.")]
EpisodeTopic = Annotated[str, line_field("What it was about.", "TOPIC")]
Valence = Annotated[str, choice_field(records.VALENCES, "How it felt.", None)]
Conversation = Annotated[str, line_field("The conversation it belongs to.", "ID")]
Role = Annotated[str, line_field("user, assistant or another.", "NAME")]
Speaker = Annotated[str, line_field("Who said it.", "NAME")]

# what is changed

Ref = Annotated[str, REF]
MergedRefs = Annotated[Sequence[str], list_field(REF, MAX_MESSAGES, 2, help="Two records or more, by id or key.")]
ChangeReason = Annotated[
    str, choice_field(records.CHANGE_REASONS, "After a correction or refinement, the old value never held.", None)
]
Note = Annotated[str, text_field(MAX_SHORT, "A remark for the journal.")]
Reason = Annotated[str, text_field(MAX_SHORT, "Why, for the journal.")]
ReplacedBy = Annotated[str, line_field("The id of what takes its place.", "ID", 200)]
Level = Annotated[
    Literal["high", "critical"], choice_field(("high", "critical"), "high keeps for 60 days, critical for 365.")
]
Incognito = Annotated[bool, flag_field("Recall nothing either.")]
ConsentName = Annotated[str, choice_field(records.CONSENTS, "What to consent to.")]
Given = Annotated[bool, flag_field("Whether the person consents.")]
EntryOrRun = Annotated[
    int | str,
    custom_field(
        checks.check_entry_or_run,
        pattern_schema(rf"(?!\s*[0-9]{{19}}){_LINE}", 200),
        "RunId",
        "A number from the history or a run; otherwise the last change.",
        "TARGET",
        also=NUMBER,
    ),
]
Topic = Annotated[
    str,
    custom_field(
        _check_topic, pattern_schema(_WORDS, MAX_SHORT), "TopicWords", "Everything that has all these words.", "WORDS"
    ),
]
DryRun = Annotated[bool, flag_field("Show what would happen; change nothing.")]
Force = Annotated[bool, flag_field("Even if the database is in order.")]
PathName = Annotated[str | Path, Field(check=checks.check_path, schema={"type": "string"}, metavar="PATH")]
FromUser = Annotated[str, line_field("If a mem0 export holds several: whose.", "ID")]

# what is read

Kind = Annotated[str, choice_field(records.KINDS, "Only this kind, such as fact or note.", "KIND")]
_KIND = choice_field(records.KINDS, "Only this kind; may be repeated.", "KIND")
Kinds = Annotated[Sequence[str], list_field(_KIND, checks.MAX_TAGS)]
OnlyCategory = Annotated[
    str,
    choice_field(records.CATEGORIES + records.OBSERVATION_CATEGORIES, "Only of this category, such as preference."),
]
OnlyType = Annotated[str, choice_field(records.FACT_TYPES, "Only facts of this type, such as skill.", "TYPE")]
OnlyKey = Annotated[str, filter_field("Only under this key.", "NAME")]
StoredSession = Annotated[str, filter_field("Only from this conversation.", "ID")]
StoredSource = Annotated[str, filter_field("Only from this source, such as discussion.")]
OnlySession = Annotated[str, line_field("Only from this conversation.", "ID")]
OnlySource = Annotated[str, line_field("Only from this source, such as discussion.")]
OnlySpeaker = Annotated[str, line_field("Only what this person said.", "NAME")]
OnlyTool = Annotated[str, line_field("Only of this tool.", "NAME")]
Status = Annotated[str, choice_field((*records.STATUSES, "all"), "active, archived, superseded or all.")]
Since = Annotated[datetime | date | str, moment_field("Only from then on.")]
Until = Annotated[datetime | date | str, moment_field("Only until then.")]
AsOf = Annotated[datetime | date | str, moment_field("What held then.")]
AskedAt = Annotated[datetime | date | str, moment_field("As if asked then: for 'yesterday', 'last week'.")]
ContextAt = Annotated[datetime | date | str, moment_field("As if asked then: for 'yesterday', 'last week'.", LAST_YEAR)]
FirstDay = Annotated[date | str, day_field("Only from then on.")]
LastDay = Annotated[date | str, day_field("Only until then.")]
ShownDay = Annotated[date | str, day_field("The day, as YYYY-MM-DD; otherwise today.")]
NewestFirst = Annotated[bool, flag_field("The newest first.")]
Limit = Annotated[int, integer_field(1, _COUNT, "At most so many.")]
MaxTokens = Annotated[int, integer_field(1, _COUNT, "At most so many tokens.")]
Offset = Annotated[int, integer_field(0, 2**31 - 1, "Skip so many.")]
Question = Annotated[str, query_field("What to look for.", "WORDS")]
ContextTopic = Annotated[str, query_field("What it will be about, if that is known.", "TOPIC")]
Conversations = Annotated[bool, flag_field("What was said in conversations, too.")]
MinScore = Annotated[float, fraction_field("Only what scores as much, from 0 to 1.")]
OnlyRef = Annotated[str, line_field("Only of this record, by id or key.", "REF", 200)]
OnlyRun = Annotated[str, filter_field("Only of this run.", "ID")]
OnlyCall = Annotated[str, filter_field("Only by this tool call; the ending will do.", "ID")]
EntryNumber = Annotated[int, NUMBER]
RecordIds = Annotated[Sequence[str], list_field(_ID, _MOST_IN_ADDRESS, check=_check_ids)]
_ITEM = Field(check=_check_item, schema=_item_schema(), json=Any, component="ItemToRank")
Items = Annotated[Iterable[Any], list_field(_ITEM, MAX_ITEMS, check=_accept_any)]

# what happened around a memory

Operation = Annotated[str, line_field("What the model was called for.", "NAME", 200)]
Tokens = Annotated[int, AMOUNT]
Cost = Annotated[
    float, Field(check=checks.check_cost, schema={"type": "number", "minimum": 0, "maximum": 1e9}, json=float)
]
InteractionKind = Annotated[
    str, choice_field(records.INTERACTION_KINDS, f"{', '.join(records.INTERACTION_KINDS)}.", "KIND")
]
_INTERACTION_KIND = choice_field(records.INTERACTION_KINDS, "Only of this kind; may be repeated.")
InteractionKinds = Annotated[Sequence[str], list_field(_INTERACTION_KIND, checks.MAX_TAGS)]
InteractionId = Annotated[str, line_field("Your own id: reported twice, stored once.", "ID", 200)]
ReportedAt = Annotated[
    datetime | date | str,
    custom_field(
        _check_moment_as_given,
        pattern_schema(f"{_DAY}({_TIME}{_ZONE})?", description="YYYY-MM-DD, or ISO 8601 with a time zone"),
        "ZonedMoment",
        "When, if not now.",
        "DATE",
    ),
]
ReportedItem = Annotated[str, line_field("Its id or address elsewhere.", "ID")]
ReportedTitle = Annotated[str, line_field("What it was about.")]
ReportedValue = Annotated[str, line_field("Which reaction or command: 👍, /saved.", "TEXT", 200)]
_TOPIC = line_field("A topic; may be repeated.", "WORDS", 200)
Topics = Annotated[Sequence[str], list_field(_TOPIC, checks.MAX_TAGS)]
ReportedText = Annotated[str, text_field(MAX_REPORTED, "What was said", stdin=True)]
Events = Annotated[
    Iterable[Mapping[str, Any] | Interaction],
    Field(check=checks.check_list, schema={"type": "array"}, json=list, verb="report"),
]
Run = Annotated[ExtractionRun, Field(check=_check_run, schema={}, parts=RUN)]
RunKind = Annotated[str, line_field("Only of this kind, such as batch.", "NAME")]
MARKS = Field(check=checks.check_list, schema={"type": "array"}, json=list, parts=MARK)
"""For the marks of `unread`."""

# on whose behalf

Actor = Annotated[str, line_field("Who does this, for the journal.", "NAME")]
Agent = Annotated[str, line_field("The agent that writes.", "NAME")]
Chat = Annotated[str, line_field("The chat it is said in.", "ID")]
RunId = Annotated[str, line_field("The run it belongs to; undone as one.", "ID")]
CallId = Annotated[str, line_field("The tool call it belongs to.", "ID")]
Trusted = Annotated[bool, flag_field("Whether it comes from a trusted source.")]


def as_moment(value: datetime | date | str | None) -> datetime | None:
    """Return a moment that a verb was given: its check has made a datetime of it."""
    assert value is None or isinstance(value, datetime)
    return value


def as_day(value: date | str | None) -> date | None:
    """Return a day that a verb was given: its check has made a date of it."""
    assert value is None or isinstance(value, date)
    return value
