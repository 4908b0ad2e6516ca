"""Everything in a memory that mentions a topic: what `erase_topic` removes and what forgetting a topic lists.

One implementation serves every surface. Names of agents, tools and runs do not count: they say who wrote something, not
what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from recollect import text
from recollect.document import daily_md
from recollect.errors import InvalidInputError
from recollect.policy.topics import Topic, strings_in
from recollect.records import ExtractionRun, Interaction, JournalEntry, Record, ToolCall
from recollect.store.contract import Query, Reader

_PAGE = 1000
_BEGINNING = 2000
"""The characters of a text from which its language is detected."""
_OWN_NAMES = frozenset({"about", "chat", "merged_from", "message", "path", "person", "to"})
"""Names in the metadata that are our own."""
_ORIGINS = frozenset(
    {"explicit", "explicit_mention", "user_edit", "conversation", "discussion", "reaction", "batch_extraction"}
    | {"import", "tool", "link"}
)
_PLACES = frozenset({"about", "chat", "conversation", "discussion", "session", "telegram", "terminal", "thread"})
"""Words that begin the name of a session and only say where it was held."""


@dataclass(slots=True, kw_only=True)
class Mentions:
    """Everything that mentions a topic, by place. False if there is nothing."""

    topic: Topic
    records: list[Record] = field(default_factory=list)
    """To be erased whole, at their latest version, whatever their status."""
    versions: list[Record] = field(default_factory=list)
    """Earlier versions of records that no longer mention it."""
    entries: list[JournalEntry] = field(default_factory=list)
    """Journal entries of records that stay, with the mentions removed."""
    interactions: list[Interaction] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    runs: list[ExtractionRun] = field(default_factory=list)
    """Extraction runs with the mentions removed."""

    def __bool__(self) -> bool:
        found = (self.records, self.versions, self.entries, self.interactions, self.calls, self.runs)
        return any(found)


class Copy(Protocol):
    """The copy of a memory that was joined with another, kept to undo the joining."""

    @property
    def name(self) -> str:
        """The identity whose memory it was."""
        ...

    def states(self) -> list[Record]:
        """Return everything that its records say or ever said, the latest versions last."""
        ...


def topic_of(records: Iterable[Record], topic: str) -> Topic:
    """Return a topic to be looked for in every language of these records."""
    found = Topic(topic, {text.language_of(record.text[:_BEGINNING]) for record in records})
    if not found:
        raise InvalidInputError("topic", "has no words to search for")
    return found


def records_about(records: Iterable[Record], topic: Topic, *, derived: bool = True) -> list[Record]:
    """Return the records that mention a topic, and those learned from messages that do."""
    found: dict[str, Record] = {}
    supported: list[Record] = []
    for record in records:
        if topic.is_in(texts_of(record)):
            found[record.id] = record
        elif derived and record.messages:
            supported.append(record)
    for record in supported:
        # An episode summarises all its messages; anything else stays if a message still supports it.
        enough = any if record.kind == "episode" else all
        if enough(message in found for message in record.messages):
            found[record.id] = record
    return sorted(found.values(), key=lambda record: (record.created_at, record.id))


def records_mentioning(reader: Reader, words: str, copies: Callable[[Sequence[Topic]], Sequence[Copy]]) -> list[Record]:
    """Return every record, of any kind and status, that mentions a topic, here or in copies."""
    topic = topic_of(reader.scan(), words)
    return [*records_about(reader.scan(), topic), *copied_records(reader, copies([topic]), topic)]


def copied_records(reader: Reader, copies: Iterable[Copy], topic: Topic) -> list[Record]:
    """Return the records about a topic that only these copies have, as archived ones: here they are not in use."""
    latest = {state.id: state for copy in copies for state in copy.states()}
    about = records_about(latest.values(), topic)
    known = {record.id for record in reader.find(Query(ids=[record.id for record in about], statuses=()))}
    return [replace(record, status="archived") for record in about if record.id not in known]


def find_mentions(reader: Reader, words: str) -> Mentions:
    """Find everything that mentions a topic."""
    topic = topic_of(reader.scan(), words)
    found = Mentions(topic=topic, records=records_about(reader.scan(), topic))
    gone = {record.id for record in found.records}
    for entry in _journal_entries(reader):
        if entry.record_id not in gone and (rest := _redact_entry(entry, topic)) != entry:
            found.entries.append(rest)
    # not only of the entries: earlier versions that came from a joined memory have none here
    for record_id in [record.id for record in reader.scan() if record.version > 1 and record.id not in gone]:
        found.versions += [one for one in reader.versions(record_id)[:-1] if topic.is_in(texts_of(one))]
    found.interactions = [one for one in reader.interactions() if topic.is_in(texts_of_interaction(one))]
    found.calls = [call for call in reader.calls() if topic.is_in(_session_words(call.session))]
    for run in reader.runs():
        redacted = replace(run, error=_redact_data(run.error, topic), details=_redact_data(run.details, topic))
        if redacted != run:
            found.runs.append(redacted)
    return found


def texts_of(record: Record) -> Iterator[str]:
    """Yield every text of a record: its content, its names, and why it is known."""
    yield record.content
    section = getattr(record, "section", None)
    for name in ("key", "label", "title", "topic", "excerpt", "speaker"):
        if value := getattr(record, name, None):
            yield value
    if section and section not in daily_md.SECTIONS:
        yield section
    yield from record.tags
    yield from getattr(record, "participants", ())
    yield from strings_in(record.metadata, skip=_OWN_NAMES)
    yield from _session_words(record.session)
    yield from _source_words(record.source)


def texts_of_interaction(one: Interaction) -> Iterator[str]:
    """Yield every text of an interaction."""
    yield from filter(None, (one.id, one.item, one.title, one.value, one.text))
    yield from one.topics
    yield from strings_in(one.metadata)
    yield from _session_words(one.session)


def _redact_entry(entry: JournalEntry, topic: Topic) -> JournalEntry:
    def rest(record: Record | None) -> Record | None:
        return None if record is not None and topic.is_in(texts_of(record)) else record

    return replace(
        entry,
        before=rest(entry.before),
        after=rest(entry.after),
        reason=_redact_data(entry.reason, topic),
        source=None if entry.source and topic.is_in(_source_words(entry.source)) else entry.source,
    )


def _journal_entries(reader: Reader) -> Iterator[JournalEntry]:
    """Iterate over the journal without loading all of it."""
    last = 0
    while page := reader.entries(after=last, limit=_PAGE):
        yield from page
        last = page[-1].seq


def _session_words(session: str | None) -> Iterator[str]:
    if session:
        yield " ".join(word for word in text.letter_runs(text.fold(session)) if word not in _PLACES)


def _source_words(source: str) -> Iterator[str]:
    origin, _, detail = source.partition(":")
    if origin not in _ORIGINS:
        yield source
    elif origin != "tool":
        yield detail


def _redact_data(value: Any, topic: Topic) -> Any:
    if isinstance(value, str):
        return None if topic.is_in([value]) else value
    if isinstance(value, dict):
        kept = {name: _redact_data(item, topic) for name, item in value.items() if not topic.is_in([str(name)])}
        return {name: item for name, item in kept.items() if item is not None or value[name] is None}
    if isinstance(value, Sequence):
        return [item for item in (_redact_data(one, topic) for one in value) if item is not None]
    return value
