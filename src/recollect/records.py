"""The data types of Recollect: records, journal entries, and outcomes.

Record
    One thing remembered about one user. Its identity is its ``id``, which sorts by time of creation and
    never changes; each change creates a new ``version``. The user owns it: a person's edit wins over an
    agent's. There are seven kinds:

    Fact          a statement about the person, with a ``key`` ("role") or as a free sentence. MEMORY.md shows
                  the facts of tier "file"; those of tier "archive" are found by search. An uncertain one has a
                  day as its tier: the daily note of that day shows it until it is confirmed or expires.
    DailyEntry    one entry of a daily note; it expires. With a key of its own, its tier is the day.
    Note          a free text an agent or a person saved, with a stable id.
    Observation   a finding, insight or lesson an agent made while working.
    Episode       a stretch of conversation worth remembering as a whole.
    Message       one turn of a conversation, in a session; it expires unless marked important.
    ScratchItem   a value kept under a key as working memory.

JournalEntry
    One change of one record: when, who, what, before and after. Its identity is its ``seq``; the sequence
    numbers of a user have no gaps. Entries are never changed, except that erasing removes their text.

ToolCall
    One call of a tool: which, when, its status and duration, but nothing of its content. Its identity is its
    ``id``, which is the ``call`` of the journal entries of its changes. The user owns it.

Spending
    The usage of one operation on one day, in tokens and money. The operator owns it: it stays when the user
    clears their memory.

Interaction
    Something the person did, or was shown, in the host application: a delivery, a reaction, a save. The host
    reports it, and extraction reads it. Its identity is its ``id``, the host's own if it has one. The user owns
    it; it is kept for a limited time.

ExtractionRun
    The result of learning from one day. There is one per day and kind; its ``id`` is the ``run`` of the journal
    entries of its changes.

Outcome
    The result of a write. Policy decisions are outcomes, not errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field, fields
from datetime import date, datetime
from operator import attrgetter
from typing import Any, ClassVar, Literal, TypeVar, get_args

from recollect.ids import new_id as new_id
from recollect.receipt import FILES_LEFT as FILES_LEFT
from recollect.receipt import PENDING as PENDING
from recollect.receipt import STILL_PENDING as STILL_PENDING
from recollect.receipt import Receipt as Receipt
from recollect.times import from_text, to_text

Kind = Literal["fact", "daily", "note", "observation", "episode", "message", "scratch"]
Category = Literal["preference", "work_context", "personal_context", "reading_history", "key_fact"]
FactType = Literal["personal", "preference", "skill", "trait", "opinion", "relationship"]
ObservationCategory = Literal["finding", "insight", "lesson"]
Status = Literal["active", "archived", "superseded"]
Tier = Literal["file", "archive"]
Valence = Literal["positive", "negative", "neutral", "mixed"]
ChangeReason = Literal["correction", "update", "refinement", "contradiction"]
Mode = Literal["on", "paused", "incognito"]
Consent = Literal["across_chats", "trends"]
InteractionKind = Literal["delivery", "read", "reaction", "save", "command", "discussion"]
RunStatus = Literal["pending", "running", "completed", "failed"]

KINDS: tuple[str, ...] = get_args(Kind)
CATEGORIES: tuple[str, ...] = get_args(Category)
FACT_TYPES: tuple[str, ...] = get_args(FactType)
OBSERVATION_CATEGORIES: tuple[str, ...] = get_args(ObservationCategory)
STATUSES: tuple[str, ...] = get_args(Status)
VALENCES: tuple[str, ...] = get_args(Valence)
MODES: tuple[str, ...] = get_args(Mode)
CHANGE_REASONS: tuple[str, ...] = get_args(ChangeReason)
CONSENTS: tuple[str, ...] = get_args(Consent)
INTERACTION_KINDS: tuple[str, ...] = get_args(InteractionKind)
RUN_STATUSES: tuple[str, ...] = get_args(RunStatus)

CONSENT_MEANINGS: dict[str, str] = {
    "across_chats": "facts learned in one chat may be recalled in another",
    "trends": "memories may be counted into aggregates over many users",
}

CATEGORY_OF_TYPE: dict[str, str] = {
    "preference": "preference",
    "skill": "work_context",
    "personal": "personal_context",
    "trait": "personal_context",
    "opinion": "personal_context",
    "relationship": "personal_context",
}

USER_EDIT = "user_edit"
"""The source of everything that a person wrote into a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The base of all kinds. Create one of the kinds below, not this."""

    kind: ClassVar[str] = ""

    id: str
    content: str
    created_at: datetime
    updated_at: datetime
    valid_from: datetime
    version: int = 1
    seq: int = 0
    status: str = "active"
    key: str | None = None
    category: str | None = None
    type: str | None = None
    tier: str | None = None
    session: str | None = None
    source: str = "explicit"
    confidence: float = 1.0
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    # provenance
    excerpt: str | None = None
    messages: tuple[str, ...] = ()
    agent: str | None = None
    trusted: bool = True
    # importance
    importance: float = 0.5
    pinned: bool = False
    tags: tuple[str, ...] = ()
    superseded_by: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The record as one line of prose: ``Role: engineer`` or the content itself."""
        return self.content

    @property
    def entry_key(self) -> str | None:
        """The key by which it is named, if it has one: of a fact, or of an entry of a daily note."""
        return None

    @property
    def chat(self) -> str | None:
        """The chat it belongs to, if any; `recollect.memory.chat_scope` decides who may see it."""
        chat = self.metadata.get("chat")
        return None if chat is None else str(chat)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Record):
    """A statement about the user."""

    kind: ClassVar[str] = "fact"

    label: str | None = None
    section: str | None = None

    @property
    def text(self) -> str:
        return f"{self.label or self.key}: {self.content}" if self.key else self.content

    @property
    def entry_key(self) -> str | None:
        return self.key

    @property
    def noted_on(self) -> date | None:
        """The day whose note shows it, because it is uncertain; None if it is certain."""
        return date.fromisoformat(self.tier) if self.tier and self.tier[0].isdigit() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyEntry(Record):
    """One entry of the daily note of ``day``. Without a key of its own, its key is the day."""

    kind: ClassVar[str] = "daily"

    day: date
    section: str = "Extracted Insights"
    label: str | None = None

    @property
    def text(self) -> str:
        return f"{self.label or self.key}: {self.content}" if self.entry_key else self.content

    @property
    def entry_key(self) -> str | None:
        return self.key if self.tier else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Record):
    """A free text with a stable id."""

    kind: ClassVar[str] = "note"

    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation(Record):
    """A finding, an insight or a lesson, as its ``category`` says."""

    kind: ClassVar[str] = "observation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode(Record):
    """A stretch of conversation: a topic, and a summary as its content."""

    kind: ClassVar[str] = "episode"

    topic: str = ""
    valence: str = "neutral"
    participants: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"{self.topic}: {self.content}" if self.topic else self.content


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Record):
    """One turn of a conversation. ``valid_from`` is when it was said."""

    kind: ClassVar[str] = "message"

    role: str = "user"
    speaker: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchItem(Record):
    """A value under a key, as working memory."""

    kind: ClassVar[str] = "scratch"

    @property
    def text(self) -> str:
        return f"{self.key}: {self.content}"


RECORD_TYPES: dict[str, type[Record]] = {
    cls.kind: cls for cls in (Fact, DailyEntry, Note, Observation, Episode, Message, ScratchItem)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One change of one record. ``erased`` marks an entry whose text was removed."""

    seq: int
    at: datetime
    actor: str
    op: str
    record_id: str
    before: Record | None = None
    after: Record | None = None
    reason: str | None = None
    source: str | None = None
    run: str | None = None
    call: str | None = None
    undoes: int | None = None
    erased: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation whose messages are stored."""

    id: str
    messages: int
    began: datetime
    ended: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool, without its content."""

    id: str
    at: datetime
    tool: str
    suite: str
    status: str
    outcome: str
    latency_ms: float
    tokens_in: int = 0
    tokens_out: int = 0
    session: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The usage of one operation on one day."""

    day: date
    operation: str
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """Something the user did or was shown, as the host application reported it."""

    id: str
    at: datetime
    kind: str
    item: str | None = None
    """The item it was about: the host's id or address."""
    title: str | None = None
    value: str | None = None
    """The reaction ("👍") or command ("/saved")."""
    topics: tuple[str, ...] = ()
    text: str | None = None
    """For a reaction, a save or a command, the person's own words; otherwise the text they were shown."""
    session: str | None = None
    """The conversation it belongs to."""
    metadata: dict[str, Any] = field(default_factory=dict)
    reported_at: datetime | None = field(default=None, compare=False)
    """When it was stored, later than everything before it. Extraction reads in this order, however late one arrives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionRun:
    """The result and the usage of learning from one day."""

    id: str
    day: date
    started_at: datetime
    kind: str = "batch"
    status: str = "pending"
    interactions_processed: int = 0
    memories_written: int = 0
    memories_updated: int = 0
    tokens_used: int = 0
    duration_ms: int | None = None
    error: str | None = None
    tier: str | None = None
    """The method of extraction, such as rules or a model."""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A record that a search found, and why.

    ``raw_score`` is the sum of the ``signals``, in units of BM25; with word matches only, it is plain BM25. ``score``
    is the same from 0 to 1. ``passage`` is the part of a long text that matched, ``earlier`` a former text that did.
    """

    record: Record
    score: float
    raw_score: float
    words: tuple[str, ...] = ()
    """The words of the query that the record contains, exactly or approximately."""
    signals: dict[str, float] = field(default_factory=dict)
    passage: str = ""
    earlier: str = ""

    @property
    def why(self) -> str:
        """The reason it was found, in a few words."""
        said = [", ".join(self.words)] if self.words else []
        told = _PHRASES if self.record.kind == "message" else _PHRASES.keys() - {"session"}
        said += [_PHRASES[name] for name in _PHRASES if name in told and self.signals.get(name, 0.0) > 0]
        return "; ".join(said)


_PHRASES = {
    "vector": "similar in meaning",
    "neighbours": "what was said around it",
    "session": "its conversation",
    "speaker": "who said it",
    "date": "the time asked about",
    "when": "it tells when",
    "latest": "recent",
    "importance": "important",
    "earlier": "what it said before",
}
"""The reasons that a hit shows for its signals. Other signals are only in ``signals``."""


class Hits(list[Hit]):
    """The results of a search, best first. ``mode`` is "words", or "words and vectors" if an embedder was used;
    ``note`` says why a configured embedder was not."""

    def __init__(self, hits: Iterable[Hit] = (), *, mode: str = "words", note: str = "") -> None:
        super().__init__(hits)
        self.mode = mode
        self.note = note


# Outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a write. ``done`` is True if memory changed; ``notices`` are for the person."""

    done: ClassVar[bool] = False
    message: str
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Outcome):
    """A new record was stored. ``similar`` are existing records that say nearly the same."""

    done: ClassVar[bool] = True
    record: Record
    similar: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Demoted(Outcome):
    """Too uncertain for MEMORY.md: the daily note shows it instead.

    The record is an uncertain fact, or an entry of the note if it is a mere guess or another value is known.
    """

    done: ClassVar[bool] = True
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated(Outcome):
    """A record has a new version, or was restored."""

    done: ClassVar[bool] = True
    record: Record
    previous: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten(Outcome):
    """A record was archived. This can be undone."""

    done: ClassVar[bool] = True
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged(Outcome):
    """Several records became one."""

    done: ClassVar[bool] = True
    record: Record
    merged: tuple[Record, ...]
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited(Outcome):
    """A file has a new text. To revert the records, undo its ``run``, which is None if only prose changed."""

    done: ClassVar[bool] = True
    added: tuple[Record, ...]
    updated: tuple[Record, ...]
    removed: tuple[Record, ...]
    run: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone(Outcome):
    """Changes were undone; each reversal is a journal entry."""

    done: ClassVar[bool] = True
    entries: tuple[JournalEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased(Outcome):
    """Records were removed everywhere; only tombstones stay."""

    done: ClassVar[bool] = True
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported(Outcome):
    """An interaction is stored. If its id was already known, it is the earlier one and not ``fresh``."""

    done: ClassVar[bool] = True
    interaction: Interaction
    fresh: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged(Outcome):
    """The file already has this text; nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate(Outcome):
    """The same is already known; nothing was written."""

    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict(Outcome):
    """The key already has another value; nothing was written. Update it, or use another key."""

    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Outcome):
    """The policy refused; ``reason`` is one of paused, incognito, secret, code, erased, changed, message.

    An edit is refused as ``changed`` if the file has changed since the editor read it, other words for a ``message``
    if they are not the person's.
    """

    reason: str


# Records as plain data, for the journal and for export

_R = TypeVar("_R", bound=Record)
_MOMENTS = frozenset({"created_at", "updated_at", "valid_from", "valid_until", "expires_at"})
_TUPLES = frozenset({"messages", "tags", "participants"})
_DEFAULTS: dict[type[Record], tuple[tuple[str, Any], ...]] = {
    cls: tuple(
        (f.name, f.default if f.default is not MISSING else ({} if f.default_factory is not MISSING else MISSING))
        for f in fields(cls)
    )
    for cls in RECORD_TYPES.values()
}
_VALUES: dict[type[Record], Callable[[Record], tuple[Any, ...]]] = {
    cls: attrgetter(*(name for name, _ in defaults)) for cls, defaults in _DEFAULTS.items()
}


def to_dict(record: Record) -> dict[str, Any]:
    """Return the record as JSON-compatible data, without fields that have their default value."""
    data: dict[str, Any] = {"kind": record.kind}
    cls = type(record)
    for (name, default), value in zip(_DEFAULTS[cls], _VALUES[cls](record), strict=True):
        if value is default or value == default:
            continue
        if name in _MOMENTS:
            value = to_text(value)
        elif name in _TUPLES:
            value = list(value)
        elif name == "day":
            value = value.isoformat()
        data[name] = value
    return data


def from_dict(data: dict[str, Any]) -> Record:
    """Return the record from the data of `to_dict`."""
    values = dict(data)
    cls = RECORD_TYPES[values.pop("kind")]
    for name, value in values.items():
        if value is None:
            continue
        if name in _MOMENTS:
            values[name] = from_text(value)
        elif name in _TUPLES:
            values[name] = tuple(value)
        elif name == "day":
            values[name] = date.fromisoformat(value)
    return cls(**values)
