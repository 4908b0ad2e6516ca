"""Every type of argument, declared once: its check, JSON Schema and command-line help.

The verbs of `Memory` use these types in their signatures. `recollect.verbs` applies the checks; the HTTP API, its
OpenAPI document and the command line use the rest. To editors and type checkers each is a plain type.
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
"""The maximum number of items for `rank`."""
MAX_REPORTED = 20_000
"""The maximum length of the text of a reported interaction."""
_MOST_IN_ADDRESS = 200
"""The maximum number of ids in the address of a request."""

Check = Callable[[str, Any], Any]
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field:
    """The declaration of a type of argument besides its Python type."""

    check: Check
    """Return the value in its normal form, or raise `InvalidInputError` for the argument of that name."""
    schema: Schema
    """The JSON Schema of accepted values."""
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
    """True if ``-`` on the command line reads it from standard input."""


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
"""Text that databases can store and search for."""
REFERENCE = "x-component"
"""A placeholder for ``$ref`` until the OpenAPI document is generated."""


def component_schema(component: str) -> Schema:
    """Return a schema that refers to a component of the OpenAPI document."""
    return {REFERENCE: component}


def pattern_schema(expression: str, most: int | None = None, **more: Any) -> Schema:
    """Return the schema of a text that matches an expression and has a maximum length."""
    if most is not None:
        # with this limit in the schema, generators of examples would produce only very long texts
        more |= {"maxLength": most} if most <= MAX_FACT else {"description": f"at most {most:,} characters"}
    return {"type": "string", "pattern": f"^{expression}$"} | more


_PLAIN = component_schema("Plain")
OBJECT: Schema = {"type": "object", "propertyNames": STORABLE, "additionalProperties": _PLAIN}
"""A JSON object that databases can store."""
PLAIN: Schema = {
    "description": "A JSON value that databases can store.",
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
    """Return the field of a text that is not empty."""
    check, schema = partial(_check_with_limit, checks.check_text, most), pattern_schema(_TEXT, most)
    said = f"{help}; - reads standard input." if stdin else help
    return Field(check=check, schema=schema, component=f"Text{most}", help=said, metavar=metavar, stdin=stdin)


def line_field(help: str = "", metavar: str = "TEXT", most: int = MAX_SHORT) -> Field:
    """Return the field of a single line that is not empty."""
    check = partial(_check_with_limit, checks.check_line, most)
    return Field(check=check, schema=pattern_schema(_LINE, most), component=f"Line{most}", help=help, metavar=metavar)


def choice_field(allowed: Sequence[str], help: str = "", metavar: str | None = "NAME") -> Field:
    """Return the field of one of several words. Without a help text, the words are listed."""
    words = f"{', '.join(allowed[:-1])} or {allowed[-1]}."
    schema = {"type": "string", "enum": list(allowed)}
    check = partial(_check_with_limit, checks.check_choice, tuple(allowed))
    return Field(check=check, schema=schema, json=Any, help=help or words, metavar=metavar)


def list_field(item: Field, most: int, least: int = 0, *, help: str = "", check: Check | None = None) -> Field:
    """Return the field of a list; by default a list of short texts without repetitions."""
    bounds = {"minItems": least} if least else {}
    schema = {"type": "array", "maxItems": most, **bounds}
    checked = check or partial(_check_each, item, most)
    return Field(check=checked, schema=schema, json=list, items=item, help=help or item.help, metavar=item.metavar)


def text_list_field(help: str) -> Field:
    """Return the field of a list of texts."""
    return list_field(text_field(MAX_TEXT, help), MAX_MESSAGES, check=_check_texts)


def integer_field(least: int, most: int, help: str = "", check: Check | None = None) -> Field:
    """Return the field of an integer."""
    checked = check or partial(_check_with_limit, checks.check_positive if least else checks.check_count, most)
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Field(check=checked, schema=schema, json=int, help=help, metavar="NUMBER")


def fraction_field(help: str) -> Field:
    """Return the field of a number from 0 to 1."""
    schema = {"type": "number", "minimum": 0, "maximum": 1}
    return Field(check=checks.check_fraction, schema=schema, json=Any, help=help, metavar="NUMBER")


def flag_field(help: str) -> Field:
    """Return the field of a boolean."""
    return Field(check=checks.check_flag, schema={"type": "boolean"}, json=bool, help=help)


def moment_field(help: str = "", last_year: int = 9_999, *, end: bool = False) -> Field:
    """Return the field of a point in time. With ``end``, a mere day means its end."""
    schema = pattern_schema(f"{_DAY}({_TIME}{_ZONE}?)?", description="YYYY-MM-DD or ISO 8601")
    check = partial(_check_with_limit, checks.check_end_moment if end else checks.check_moment, last_year)
    return Field(check=check, schema=schema, component="Moment", help=help, metavar="DATE")


def day_field(help: str = "", last_year: int = 9_999) -> Field:
    """Return the field of a day."""
    schema = pattern_schema(_DAY, description="YYYY-MM-DD")
    check = partial(_check_with_limit, checks.check_day, last_year)
    return Field(check=check, schema=schema, component="Day", help=help, metavar="DATE")


def filter_field(help: str = "", metavar: str = "TEXT") -> Field:
    """Return the field of a text to compare stored values with."""
    return Field(check=checks.check_filter_value, schema=STORABLE, component="Sought", help=help, metavar=metavar)


def query_field(help: str, metavar: str) -> Field:
    """Return the field of a query, which may be any text, even an empty one."""
    return Field(check=checks.check_query, schema={"type": "string"}, help=help, metavar=metavar)


def custom_field(check: Check, schema: Schema, component: str, help: str, metavar: str = "TEXT", **more: Any) -> Field:
    """Return the field of a text with its own check."""
    return Field(check=check, schema=schema, component=component, help=help, metavar=metavar, **more)


def _check_with_limit(check: Callable[[str, Any, Any], Any], limit: Any, name: str, value: Any) -> Any:
    return check(name, value, limit)


def _check_each(item: Field, most: int, name: str, value: Any) -> tuple[str, ...]:
    found = checks.check_words(name, value, most)
    return tuple(item.check(name, one) for one in found) if "enum" in item.schema else found


# checks of single fields


def _check_fact(name: str, value: object) -> str:
    found = one_block(checks.check_text(name, value, MAX_FACT))
    if not found:
        raise InvalidInputError(name, "must contain text")
    return found


def _check_key(name: str, value: object) -> str:
    label = checks.check_line(name, value, MAX_KEY)
    if not key_of(label):
        raise InvalidInputError(name, f"{label!r} has no letters or digits")
    return label


def _check_topic(name: str, value: object) -> str:
    found = checks.check_text(name, value, MAX_SHORT)
    if not terms(found):
        raise InvalidInputError(name, "must contain a word to search for")
    return found


def _check_source(name: str, value: object) -> str:
    return checks.check_line(name, value) if value else "explicit"


def _check_file(name: str, value: object) -> str:
    found = checks.check_file_text(name, value)
    if not found.strip("\ufeff \t\r\n"):
        raise InvalidInputError(name, "must not be empty; to forget everything, use clear")
    return found


def _check_moment_as_given(name: str, value: Any) -> Any:
    """Check a time, but keep it as given: later it matters if it had a time zone."""
    checks.check_moment(name, value)
    return value


def _check_ids(name: str, value: object) -> tuple[str, ...]:
    return checks.check_words(name, value, MAX_IDS)


def _check_texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidInputError(name, f"must be a list of texts, not {type(value).__name__}")
    if len(value) > MAX_MESSAGES:
        raise InvalidInputError(name, f"must have at most {MAX_MESSAGES:,} items")
    return tuple(checks.check_text(f"{name}[{number}]", one) for number, one in enumerate(value))


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
    """Accept any value; the verb checks the items one by one."""
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
    help="Additional data; repeatable.",
    metavar="NAME=VALUE",
)
NUMBER = integer_field(0, checks.MAX_NUMBER)
AMOUNT = integer_field(0, 10**12)
REF = line_field("An id, the end of an id, or the key of a fact.", "REF", 200)
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

# arguments of verbs that write

FactText = Annotated[
    str,
    custom_field(
        _check_fact, pattern_schema(_TEXT, MAX_FACT), "FactText", "The text; - reads standard input.", stdin=True
    ),
]
Text = Annotated[str, text_field(MAX_TEXT, "The text", stdin=True)]
NewText = Annotated[str, text_field(MAX_TEXT, "The new text", stdin=True)]
MergedText = Annotated[str, text_field(MAX_FACT, "The merged text", stdin=True)]
Summary = Annotated[str, text_field(MAX_TEXT, "What happened", "SUMMARY", stdin=True)]
ScratchText = Annotated[str, text_field(MAX_TEXT, "The value to store", "VALUE", stdin=True)]
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
        "Edit only if the text is still that of this file.",
        "FILE",
    ),
]
Key = Annotated[
    str, custom_field(_check_key, pattern_schema(_KEY, MAX_KEY), "Key", "The name of the fact, such as role.", "NAME")
]
ScratchKey = Annotated[str, line_field("The name of the value.", "KEY", 200)]
FactCategory = Annotated[str, choice_field(records.CATEGORIES)]
ObservationCategory = Annotated[str, choice_field(records.OBSERVATION_CATEGORIES)]
Findings = Annotated[Sequence[str], text_list_field("A factual discovery; repeatable.")]
Insights = Annotated[Sequence[str], text_list_field("A conclusion or decision; repeatable.")]
Lessons = Annotated[Sequence[str], text_list_field("Guidance for the future; repeatable.")]
AnyCategory = Annotated[str, choice_field(records.CATEGORIES + records.OBSERVATION_CATEGORIES, "Its category.")]
FactType = Annotated[str, choice_field(records.FACT_TYPES)]
Durability = Annotated[
    Literal["durable", "daily"], choice_field(("durable", "daily"), "durable: MEMORY.md; daily: the daily note.", None)
]
Confidence = Annotated[float, fraction_field("How certain it is, from 0 to 1.")]
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
Excerpt = Annotated[str, text_field(MAX_FACT, "The text that supports it.")]
_MESSAGE = line_field("The id of a message that supports it; repeatable.", "ID", 200)
Messages = Annotated[Sequence[str], list_field(_MESSAGE, MAX_MESSAGES)]
MarkedMessages = Annotated[Sequence[str], list_field(_MESSAGE, MAX_MESSAGES, help="The ids of messages.")]
_TAG = line_field("A tag; repeatable.", "WORD", 200)
Tags = Annotated[Sequence[str], list_field(_TAG, checks.MAX_TAGS)]
_NAME = line_field("A participant; repeatable.", "NAME", 200)
Participants = Annotated[Sequence[str], list_field(_NAME, checks.MAX_TAGS)]
ValidFrom = Annotated[datetime | date | str, moment_field("When it became true.")]
ExpiresAt = Annotated[datetime | date | str, moment_field("When to forget it.")]
SaidAt = Annotated[datetime | date | str, moment_field("When it was said (default: now).")]
NoteDay = Annotated[date | str, day_field("The day of the daily note (default: today).", LAST_YEAR)]
Section = Annotated[str, choice_field(SECTIONS)]
Pinned = Annotated[bool, flag_field("Always keep it in MEMORY.md.")]
Metadata = Annotated[Mapping[str, Any], METADATA]
Title = Annotated[str, line_field("A title.")]
EpisodeTopic = Annotated[str, line_field("What it was about.", "TOPIC")]
Valence = Annotated[str, choice_field(records.VALENCES, "The emotional tone.", None)]
Conversation = Annotated[str, line_field("The conversation it belongs to.", "ID")]
Role = Annotated[str, line_field("user, assistant or another.", "NAME")]
Speaker = Annotated[str, line_field("Who said it.", "NAME")]

# arguments of verbs that change

Ref = Annotated[str, REF]
MergedRefs = Annotated[Sequence[str], list_field(REF, MAX_MESSAGES, 2, help="Two or more records, by id or key.")]
ChangeReason = Annotated[
    str,
    choice_field(records.CHANGE_REASONS, "A correction or refinement means that the old value was never true.", None),
]
Note = Annotated[str, text_field(MAX_SHORT, "A remark for the journal.")]
Reason = Annotated[str, text_field(MAX_SHORT, "Why, for the journal.")]
ReplacedBy = Annotated[str, line_field("The id of the replacement.", "ID", 200)]
Level = Annotated[
    Literal["high", "critical"],
    choice_field(("high", "critical"), "high keeps messages for 60 days, critical for 365."),
]
Incognito = Annotated[bool, flag_field("Also stop using what is stored.")]
ConsentName = Annotated[str, choice_field(records.CONSENTS, "The name of the consent.")]
Given = Annotated[bool, flag_field("True to give the consent, false to withdraw it.")]
EntryOrRun = Annotated[
    int | str,
    custom_field(
        checks.check_entry_or_run,
        pattern_schema(rf"(?!\s*[0-9]{{19}}){_LINE}", 200),
        "RunId",
        "A number from the history, or a run (default: the last change).",
        "TARGET",
        also=NUMBER,
    ),
]
Topic = Annotated[
    str,
    custom_field(
        _check_topic,
        pattern_schema(_WORDS, MAX_SHORT),
        "TopicWords",
        "Everything that contains all these words.",
        "WORDS",
    ),
]
DryRun = Annotated[bool, flag_field("Show what would happen; change nothing.")]
Force = Annotated[bool, flag_field("Rebuild even if the database is intact.")]
PathName = Annotated[str | Path, Field(check=checks.check_path, schema={"type": "string"}, metavar="PATH")]
FromUser = Annotated[str, line_field("The user to take from a mem0 export of several.", "ID")]

# arguments of verbs that read

Kind = Annotated[str, choice_field(records.KINDS, "Only this kind, such as fact or note.", "KIND")]
_KIND = choice_field(records.KINDS, "Only this kind; repeatable.", "KIND")
Kinds = Annotated[Sequence[str], list_field(_KIND, checks.MAX_TAGS)]
OnlyCategory = Annotated[
    str,
    choice_field(records.CATEGORIES + records.OBSERVATION_CATEGORIES, "Only this category, such as preference."),
]
OnlyType = Annotated[str, choice_field(records.FACT_TYPES, "Only facts of this type, such as skill.", "TYPE")]
OnlyKey = Annotated[str, filter_field("Only with this key.", "NAME")]
StoredSession = Annotated[str, filter_field("Only from this conversation.", "ID")]
StoredSource = Annotated[str, filter_field("Only from this source, such as discussion.")]
OnlySession = Annotated[str, line_field("Only from this conversation.", "ID")]
OnlySource = Annotated[str, line_field("Only from this source, such as discussion.")]
OnlySpeaker = Annotated[str, line_field("Only what this person said.", "NAME")]
OnlyTool = Annotated[str, line_field("Only this tool.", "NAME")]
Status = Annotated[str, choice_field((*records.STATUSES, "all"), "active, archived, superseded or all.")]
Since = Annotated[datetime | date | str, moment_field("Only since this time.")]
Until = Annotated[datetime | date | str, moment_field("Only until this time.")]
AsOf = Annotated[datetime | date | str, moment_field("What was true at this time.", end=True)]
AskedAt = Annotated[datetime | date | str, moment_field("The time to which 'yesterday' or 'last week' refer.")]
ContextAt = Annotated[
    datetime | date | str, moment_field("The time to which 'yesterday' or 'last week' refer.", LAST_YEAR)
]
FirstDay = Annotated[date | str, day_field("Only since this day.")]
LastDay = Annotated[date | str, day_field("Only until this day.")]
ShownDay = Annotated[date | str, day_field("The day as YYYY-MM-DD (default: today).")]
NewestFirst = Annotated[bool, flag_field("Newest first.")]
Limit = Annotated[int, integer_field(1, _COUNT, "The maximum number of results.")]
MaxTokens = Annotated[int, integer_field(1, _COUNT, "The maximum number of tokens.")]
Offset = Annotated[int, integer_field(0, 2**31 - 1, "The number of results to skip.")]
Question = Annotated[str, query_field("What to look for.", "WORDS")]
ContextTopic = Annotated[str, query_field("The topic of the conversation, if known.", "TOPIC")]
Conversations = Annotated[bool, flag_field("Also search conversations.")]
Earlier = Annotated[bool, flag_field("Also by what records said before they were updated.")]
MinScore = Annotated[float, fraction_field("The minimum score, from 0 to 1.")]
OnlyRef = Annotated[str, line_field("Only this record, by id or key.", "REF", 200)]
OnlyRun = Annotated[str, filter_field("Only this run.", "ID")]
OnlyCall = Annotated[str, filter_field("Only this tool call, by id or the end of it.", "ID")]
EntryNumber = Annotated[int, NUMBER]
RecordIds = Annotated[Sequence[str], list_field(_ID, _MOST_IN_ADDRESS, check=_check_ids)]
_ITEM = Field(check=_check_item, schema=_item_schema(), json=Any, component="ItemToRank")
Items = Annotated[Iterable[Any], list_field(_ITEM, MAX_ITEMS, check=_accept_any)]

# usage and interactions

Operation = Annotated[str, line_field("What the model was called for.", "NAME", 200)]
Tokens = Annotated[int, AMOUNT]
Cost = Annotated[
    float, Field(check=checks.check_cost, schema={"type": "number", "minimum": 0, "maximum": 1e9}, json=float)
]
InteractionKind = Annotated[
    str, choice_field(records.INTERACTION_KINDS, f"{', '.join(records.INTERACTION_KINDS)}.", "KIND")
]
_INTERACTION_KIND = choice_field(records.INTERACTION_KINDS, "Only this kind; repeatable.")
InteractionKinds = Annotated[Sequence[str], list_field(_INTERACTION_KIND, checks.MAX_TAGS)]
InteractionId = Annotated[str, line_field("Your own id; an interaction reported twice is stored once.", "ID", 200)]
ReportedAt = Annotated[
    datetime | date | str,
    custom_field(
        _check_moment_as_given,
        pattern_schema(f"{_DAY}({_TIME}{_ZONE})?", description="YYYY-MM-DD, or ISO 8601 with a time zone"),
        "ZonedMoment",
        "When it happened (default: now).",
        "DATE",
    ),
]
ReportedItem = Annotated[str, line_field("The id or address of the item.", "ID")]
ReportedTitle = Annotated[str, line_field("What it was about.")]
ReportedValue = Annotated[str, line_field("The reaction or command: 👍, /saved.", "TEXT", 200)]
_TOPIC = line_field("A topic; repeatable.", "WORDS", 200)
Topics = Annotated[Sequence[str], list_field(_TOPIC, checks.MAX_TAGS)]
ReportedText = Annotated[str, text_field(MAX_REPORTED, "What was said", stdin=True)]
Events = Annotated[
    Iterable[Mapping[str, Any] | Interaction],
    Field(check=checks.check_list, schema={"type": "array"}, json=list, verb="report"),
]
Run = Annotated[ExtractionRun, Field(check=_check_run, schema={}, parts=RUN)]
RunKind = Annotated[str, line_field("Only this kind, such as batch.", "NAME")]
MARKS = Field(check=checks.check_list, schema={"type": "array"}, json=list, parts=MARK)
"""For the marks of `unread`."""

# provenance

Actor = Annotated[str, line_field("Who makes the change, for the journal.", "NAME")]
Agent = Annotated[str, line_field("The agent that writes.", "NAME")]
Chat = Annotated[
    str | int,
    custom_field(
        checks.check_chat, pattern_schema(_LINE, MAX_SHORT), "Chat", "The chat it belongs to.", "ID", also=NUMBER
    ),
]
RunId = Annotated[str, line_field("The run it belongs to; a run is undone together.", "ID")]
CallId = Annotated[str, line_field("The tool call it belongs to.", "ID")]
Trusted = Annotated[bool, flag_field("False if it comes from an untrusted source.")]


def as_moment(value: datetime | date | str | None) -> datetime | None:
    """Return an argument as a datetime, to which its check has already converted it."""
    assert value is None or isinstance(value, datetime)
    return value


def as_day(value: date | str | None) -> date | None:
    """Return an argument as a date, to which its check has already converted it."""
    assert value is None or isinstance(value, date)
    return value
