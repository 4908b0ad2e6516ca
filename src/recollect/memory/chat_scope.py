"""Isolation of chats: which records a chat may see, and which chat a record belongs to.

A record belongs to the chat in which its present text was said (``metadata["chat"]``), or to none if the person wrote
it themselves or the host application names no chats. A handle that acts in a chat gets a `ChatReader` or a
`ChatTransaction` instead of the store's own. Every read goes through it, so verbs and tools need no checks of their
own.

- Without a chat, on the person's own surfaces, everything is visible.
- In a chat: its own records, and those of no chat. With the consent "across_chats", everything.
- In a group (a chat whose name begins with ``group:``): its own records only, whatever the consent.
- `OUTSIDE` all chats, for learning from records of no chat: only those. With the consent, everything.

The consent is read in the same view as the records, so withdrawing it takes effect at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any, Protocol, TypeVar, Unpack

from recollect.errors import InvalidInputError
from recollect.records import ExtractionRun, Interaction, JournalEntry, Record, Session, Spending, ToolCall
from recollect.store.contract import (
    CallFilter,
    EntryFilter,
    FileState,
    InteractionFilter,
    Query,
    Reader,
    RunFilter,
    SessionPage,
    State,
    Tombstone,
    Transaction,
    VectorRow,
)

GROUP = "group:"
"""The prefix of a group's name."""
OUTSIDE = "person:"
"""The chat of records that only the person's own surfaces show. To act in it is to act outside all chats."""
CONSENT = "across_chats"

_T = TypeVar("_T", bound=Reader)
_Found = TypeVar("_Found")


class HasMetadata(Protocol):
    """Anything that can belong to a chat."""

    @property
    def metadata(self) -> dict[str, Any]: ...


def group_chat(chat: str) -> str:
    """Return the name of a chat as that of a group."""
    return chat if is_group(chat) else GROUP + chat


def is_group(chat: str | None) -> bool:
    """Return True if several people are in a chat."""
    return chat is not None and chat.startswith(GROUP)


def may_cross(chat: str | None, reader: Reader) -> bool:
    """Return True if what was said in other chats may be used in this one."""
    return not is_group(chat) and CONSENT in reader.consents()


def chats_seen(chat: str | None, reader: Reader) -> tuple[str | None, ...] | None:
    """Return the chats whose records are visible from a chat (None stands for "no chat"), or None if all are."""
    if chat is None or may_cross(chat, reader):
        return None
    return (chat,) if is_group(chat) else (chat, None)


def move_to_chat(record: Record, chat: str | None) -> Record:
    """Return the record as one of this chat."""
    if record.chat == chat:
        return record
    metadata = {name: value for name, value in record.metadata.items() if name != "chat"}
    return replace(record, metadata=metadata if chat is None else metadata | {"chat": chat})


def chat_metadata(metadata: dict[str, Any], chat: str | None) -> dict[str, Any]:
    """Return the metadata of something that happens in this chat."""
    return metadata if chat in (None, OUTSIDE) else metadata | {"chat": chat}


def keep_chat(before: Record | None, after: Record, chat: str | None) -> Record:
    """Return a new version of a record with the chat it belongs to when written from this one.

    Text reworded in a chat was said there. A group's record that is reworded elsewhere leaves the group, because its
    members would read the new text.
    """
    if before is None:
        return after if chat in (None, OUTSIDE) else move_to_chat(after, chat)
    if _content_fields(before) == _content_fields(after):
        return move_to_chat(after, before.chat)
    if chat not in (None, OUTSIDE):
        return move_to_chat(after, chat)
    return move_to_chat(after, OUTSIDE) if is_group(before.chat) else after


def common_chat(records: Sequence[Record]) -> str | None:
    """Return the chat of a record made from several: their common chat, or the person's own surfaces."""
    chats = {record.chat for record in records}
    return chats.pop() if len(chats) == 1 else OUTSIDE


def _content_fields(record: Record) -> tuple[object, ...]:
    """Return everything somebody said, leaving out what pruning, pinning or forgetting changes."""
    about = {name: value for name, value in record.metadata.items() if name != "chat"}
    named = [getattr(record, name, None) for name in ("label", "title", "topic", "participants", "speaker")]
    return record.content, record.key, record.excerpt, record.tags, record.messages, about, *named


def unscoped(reader: _T) -> _T:
    """Return the store's own reader, for the search index, which must see everything."""
    return reader.whole if isinstance(reader, ChatReader) else reader


def visible_chats(reader: Reader) -> tuple[str | None, ...] | None:
    """Return the chats whose records a reader shows, or None if all."""
    return reader.chats if isinstance(reader, ChatReader) else None


def reader_in(reader: Reader, chat: str | None, session: str | None = None) -> Reader:
    """Return the view that a chat has of a memory."""
    chats = chats_seen(chat, reader)
    return reader if chats is None else ChatReader(reader, chats, session)


def transaction_in(tx: Transaction, chat: str | None, session: str | None = None) -> Transaction:
    """`reader_in` for an open write."""
    chats = chats_seen(chat, tx)
    return tx if chats is None else ChatTransaction(tx, chats, session)


class ChatReader:
    """A reader that shows only the records of some chats."""

    def __init__(self, reader: Any, chats: tuple[str | None, ...], session: str | None = None) -> None:
        self.whole = reader
        self.chats = chats
        self._session = session

    def shows(self, one: HasMetadata) -> bool:
        chat = one.metadata.get("chat")
        return (None if chat is None else str(chat)) in self.chats

    def state(self) -> State:
        state: State = self.whole.state()
        return state

    def get(self, record_id: str) -> Record | None:
        record: Record | None = self.whole.get(record_id)
        return record if record is not None and self.shows(record) else None

    def find(self, query: Query) -> list[Record]:
        found: list[Record] = self.whole.find(replace(query, chats=self.chats))
        return found

    def scan(self) -> Iterator[Record]:
        return filter(self.shows, self.whole.scan())

    def changed(self, after: int) -> list[tuple[int, str]]:
        changes = self.whole.changed(after)
        seen = self._seen({record_id for _, record_id in changes})
        return [(seq, record_id) for seq, record_id in changes if not record_id or record_id in seen]

    def count(self) -> dict[tuple[str, str], int]:
        return dict(Counter((record.kind, record.status) for record in self.scan()))

    def versions(self, record_id: str) -> list[Record]:
        return [] if self.get(record_id) is None else [one for one in self.whole.versions(record_id) if self.shows(one)]

    def ids_ending(self, ending: str) -> list[str]:
        found = self.whole.ids_ending(ending)
        seen = self._seen(found)
        return [record_id for record_id in found if record_id in seen]

    def entry(self, seq: int) -> JournalEntry | None:
        entry: JournalEntry | None = self.whole.entry(seq)
        if entry is None or self._may_tell(entry):
            return entry
        if self.get(entry.record_id) is None:
            return None
        # the record moved here later: its number is known, but not what it said before
        return replace(entry, before=None, after=None, reason=None, source=None, erased=True)

    def entries(self, **wanted: Unpack[EntryFilter]) -> list[JournalEntry]:
        limit, offset = wanted.pop("limit", None), wanted.pop("offset", 0)

        def entries(most: int | None) -> list[JournalEntry]:
            found: list[JournalEntry] = self.whole.entries(**wanted, limit=most)
            return found

        return _enough(entries, self._may_tell, None if limit is None else offset + limit)[offset:]

    def numbers(self, record_ids: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = self.whole.numbers(sorted(self._seen(record_ids)))
        return found

    def file(self, name: str) -> FileState | None:
        return None

    def files(self) -> list[FileState]:
        return []

    def tombstones(self, hashes: Sequence[str] | None = None) -> list[Tombstone]:
        found: list[Tombstone] = self.whole.tombstones(hashes)
        return found

    def recalled(self) -> dict[str, datetime]:
        recalled = self.whole.recalled()
        seen = self._seen(recalled)
        return {record_id: at for record_id, at in recalled.items() if record_id in seen}

    def sessions(self, **page: Unpack[SessionPage]) -> list[Session]:
        return sessions_of(self.find(Query(kinds=("message",))), **page)

    def calls(self, **wanted: Unpack[CallFilter]) -> list[ToolCall]:
        if self._session is None or wanted.get("session") not in (None, self._session):
            return []  # a call names no chat; only those of this conversation are certainly of this one
        found: list[ToolCall] = self.whole.calls(**wanted | {"session": self._session})
        return found

    def spending(self, *, since: date | None = None, until: date | None = None) -> list[Spending]:
        found: list[Spending] = self.whole.spending(since=since, until=until)
        return found

    def consents(self) -> dict[str, datetime]:
        given: dict[str, datetime] = self.whole.consents()
        return given

    def interactions(self, **wanted: Unpack[InteractionFilter]) -> list[Interaction]:
        limit = wanted.pop("limit", None)

        def interactions(most: int | None) -> list[Interaction]:
            found: list[Interaction] = self.whole.interactions(**wanted, limit=most)
            return found

        return _enough(interactions, self.shows, limit)

    def last_reported(self) -> datetime | None:
        return max((one.reported_at or one.at for one in self.interactions()), default=None)

    def run(self, day: date, kind: str) -> ExtractionRun | None:
        run: ExtractionRun | None = self.whole.run(day, kind)
        return run if run is not None and run.details.get("chat") in self.chats else None

    def runs(self, **wanted: Unpack[RunFilter]) -> list[ExtractionRun]:
        limit = wanted.pop("limit", None)
        return [run for run in self.whole.runs(**wanted) if run.details.get("chat") in self.chats][:limit]

    def vectors(self, embedder: str, *, after: int = 0, limit: int | None = None) -> list[VectorRow]:
        return []  # whoever compares vectors does so with the whole index, and is told which records fit

    def last_vector(self, embedder: str) -> int:
        return 0

    def unembedded(self, embedder: str, *, kinds: Sequence[str], limit: int) -> list[Record]:
        return []

    def _may_tell(self, entry: JournalEntry) -> bool:
        """Return True if everything in a journal entry may be seen.

        The owner of erased content is unknown, and a pause or a consent is the person's own, unless a call made it.
        """
        states = [state for state in (entry.before, entry.after) if state is not None]
        return all(map(self.shows, states)) if states else not entry.record_id and entry.call is not None

    def _seen(self, record_ids: Iterable[str]) -> set[str]:
        return {record.id for record in self.find(Query(ids=sorted(set(record_ids)), statuses=()))}


class ChatTransaction(ChatReader):
    """A transaction that shows only what belongs to some chats. What is stored through it is stored as it is."""

    def last_reported(self) -> datetime | None:
        last: datetime | None = self.whole.last_reported()  # what is reported now comes after all that is there
        return last

    def next_seq(self) -> int:
        seq: int = self.whole.next_seq()
        return seq

    def put(self, record: Record) -> None:
        self.whole.put(record)

    def put_many(self, records: Iterable[Record]) -> None:
        self.whole.put_many(records)

    def keep(self, record: Record) -> None:
        self.whole.keep(record)

    def log(self, entries: Iterable[JournalEntry]) -> None:
        self.whole.log(entries)

    def set_mode(self, mode: str) -> None:
        self.whole.set_mode(mode)

    def set_state(self, state: State) -> None:
        self.whole.set_state(state)

    def set_file(self, state: FileState) -> None:
        self.whole.set_file(state)

    def drop_file(self, name: str) -> None:
        self.whole.drop_file(name)

    def bury(self, tombstones: Iterable[Tombstone]) -> None:
        self.whole.bury(tombstones)

    def set_recalled(self, moments: Mapping[str, datetime]) -> None:
        self.whole.set_recalled(moments)

    def log_calls(self, calls: Iterable[ToolCall]) -> None:
        self.whole.log_calls(calls)

    def drop_calls(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        return 0

    def charge(self, spendings: Iterable[Spending]) -> None:
        self.whole.charge(spendings)

    def set_consent(self, name: str, given: bool, at: datetime) -> None:
        self.whole.set_consent(name, given, at)

    def put_interactions(self, interactions: Iterable[Interaction]) -> None:
        self.whole.put_interactions(interactions)

    def drop_interactions(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        return 0

    def put_run(self, run: ExtractionRun) -> None:
        own = {known.id for known in self.runs()}
        for known in self.whole.runs():
            taken = known.id == run.id or (known.day, known.kind) == (run.day, run.kind)
            if taken and known.id not in own:  # it would go in its place
                raise InvalidInputError("run", "must have an id and a kind that are not in use")
        self.whole.put_run(run)

    def drop_runs(self) -> int:
        return 0

    def put_vectors(self, embedder: str, rows: Iterable[tuple[str, int, bytes]]) -> None:
        self.whole.put_vectors(embedder, rows)

    def drop_vectors(self, *, keep: str | None) -> int:
        return 0

    def erase(self, record_ids: Sequence[str]) -> dict[str, int]:
        erased: dict[str, int] = self.whole.erase(sorted(self._seen(record_ids)))
        return erased

    def redact(self, entries: Iterable[JournalEntry]) -> None:
        self.whole.redact([entry for entry in entries if self.get(entry.record_id) is not None])

    def drop_versions(self, versions: Iterable[tuple[str, int]]) -> int:
        dropped: int = self.whole.drop_versions([one for one in versions if self.get(one[0]) is not None])
        return dropped

    def after_commit(self, hook: Callable[[], None]) -> None:
        self.whole.after_commit(hook)

    @property
    def pending(self) -> bool:
        return bool(self.whole.pending)

    @pending.setter
    def pending(self, pending: bool) -> None:
        self.whole.pending = pending


def sessions_of(messages: Iterable[Record], **page: Unpack[SessionPage]) -> list[Session]:
    """The conversations that these messages are of, as a store lists them."""
    after, as_of, offset = page.get("after"), page.get("as_of"), page.get("offset", 0)
    said: dict[str, list[datetime]] = {}
    for message in messages:
        if message.session is not None and (as_of is None or message.created_at <= as_of):
            said.setdefault(message.session, []).append(message.valid_from)
    found = [Session(id=one, messages=len(at), began=min(at), ended=max(at)) for one, at in sorted(said.items())]
    found.sort(key=lambda one: one.ended, reverse=True)
    if after is not None:
        found = [one for one in found if one.ended < after[0] or (one.ended == after[0] and one.id > after[1])]
    return found[offset : offset + page["limit"]]


def _enough(find: Callable[[int | None], list[_Found]], fits: Callable[[Any], bool], limit: int | None) -> list[_Found]:
    """Return the first ``limit`` items that fit, fetching more until there are enough."""
    most = limit
    while True:
        found = find(most)
        fitting = [one for one in found if fits(one)]
        if limit is None or most is None:
            return fitting
        if len(fitting) >= limit or len(found) < most:
            return fitting[:limit]
        most = max(4 * most, 100)
