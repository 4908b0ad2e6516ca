"""The reading half of a memory. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import Annotated, Any, Self

from recollect import checks as check
from recollect import fields
from recollect.config import Config
from recollect.document.memory_md import key_of
from recollect.errors import NotFoundError
from recollect.fields import as_day, as_moment
from recollect.memory.chat_scope import reader_in, visible_chats
from recollect.memory.context import build_context
from recollect.memory.daily_notes import day_of, noted_records
from recollect.memory.files.contract import Files, NoFiles
from recollect.memory.interests import Ranked, rank_items
from recollect.memory.journal import Why, explain_record
from recollect.memory.paging import PageCursor, Place
from recollect.memory.references import find_record, id_of, is_id
from recollect.memory.search import MEMORY_KINDS, QueryVector, RecalledObservations, embed_query, search_records
from recollect.memory.similar import similar_pairs
from recollect.memory.unprocessed import Mark, Unread, find_unread
from recollect.memory.user_memory import UserMemory
from recollect.memory.write import Acting, Write
from recollect.records import (
    CONSENTS,
    ExtractionRun,
    Hits,
    Interaction,
    JournalEntry,
    Record,
    Session,
    Spending,
    ToolCall,
)
from recollect.search.filters import Filter
from recollect.store.contract import Query, Reader
from recollect.times import Clock, from_text, to_text
from recollect.verbs import Verb, verb


class ReadVerbs:
    """The verbs that read a memory."""

    _lane = ""
    """A prefix for the user id when verbs run in threads, where users take turns."""

    def __init__(
        self,
        memory: UserMemory,
        acting: Acting | None = None,
        write: Write | None = None,
        walk: PageCursor | None = None,
    ) -> None:
        wanted = "what `Recollect.user` makes a Memory of; call that"
        self._user_memory = check.check_instance("memory", memory, UserMemory, wanted)
        self._acting = acting or Acting()
        self._open = write
        self._walk = walk
        """If set, verbs that return lists return this page."""

    def __repr__(self) -> str:
        return f"<Memory of {self.user_id!r}>"

    @property
    def user_id(self) -> str:
        """The user whose memory this is."""
        return self._user_memory.user.user_id

    @property
    def config(self) -> Config:
        """The settings in effect."""
        return self._user_memory.config

    @property
    def clock(self) -> Clock:
        """The clock in use."""
        return self._user_memory.clock

    @property
    def is_semantic(self) -> bool:
        """True if an embedder is set, so that search compares meanings and not only words."""
        return self._user_memory.vectors is not None

    @property
    def in_chat(self) -> bool:
        """True if it acts in a chat and so sees only what that chat may see."""
        return self._acting.chat is not None

    @property
    def exists(self) -> bool:
        """True if anything was ever stored for this user, in the database or by hand in a file."""
        return self._user_memory.user.exists() or self._user_memory.files.any_text()

    @property
    def mode(self) -> str:
        """on, paused or incognito. Also paused if memory is off for everyone (MEMORY_ENABLED)."""
        with self._user_memory.user.read() as reader:
            mode = reader.state().mode
        return "paused" if mode == "on" and not self._user_memory.config.enabled else mode

    @verb(scope="read")
    def scratch(self, key: fields.ScratchKey) -> str | None:
        """Return the value stored under a key with `set_scratch`."""
        found = self.read(kind="scratch", key=key)
        return found[0].content if found else None

    @verb(scope="read")
    def get(self, ref: fields.Ref) -> Record:
        """Return one record, by id, by the key of a fact, or by the ending of an id."""
        with self._reading(notes=not is_id(ref)) as reader:
            return find_record(reader, ref, alive_at=self._user_memory.clock())

    @verb(scope="read", paged=True)
    def read(
        self,
        *,
        kind: fields.Kind | None = None,
        category: fields.OnlyCategory | None = None,
        type: fields.OnlyType | None = None,
        key: fields.OnlyKey | None = None,
        tags: fields.Tags = (),
        session: fields.StoredSession | None = None,
        source: fields.StoredSource | None = None,
        status: fields.Status = "active",
        since: fields.Since | None = None,
        until: fields.Until | None = None,
        as_of: fields.AsOf | None = None,
        newest_first: fields.NewestFirst = False,
        limit: fields.Limit | None = None,
        offset: fields.Offset = 0,
    ) -> list[Record]:
        """List records by kind, category, key and other properties. ``as_of`` returns those that held at another time.

        ``since`` (inclusive) and ``until`` (exclusive) bound when something was said or began to hold. A day as
        ``as_of`` means its end.
        """
        day = key if key and kind == "daily" and _is_day(key) else None
        query = Query(
            kinds=(kind,) if kind else (),
            categories=(category,) if category else (),
            types=(type,) if type else (),
            key=None if key is None or day else key if kind == "scratch" else key_of(key),
            day=day,
            tags=tuple(tags),
            session=session,
            source=source,
            statuses=() if status == "all" else (status,),
            said_from=as_moment(since),
            said_until=as_moment(until),
            alive_at=self._user_memory.clock(),
            valid_at=as_moment(as_of),
            newest_first=newest_first,
            limit=limit,
            offset=offset,
        )
        with self._reading(notes=kind in (None, "daily", "fact")) as reader:
            if reader.state().mode == "incognito":
                return []
            if self._walk is None:
                return reader.find(query)

            def find(place: Place | None, most: int) -> list[Record]:
                if place is None:
                    return reader.find(replace(query, limit=most))
                return reader.find(replace(query, after=(from_text(place[0]), place[1]), limit=most, offset=0))

            return self._walk.page(find, lambda record: [to_text(record.created_at), record.id], query.limit)

    @verb(scope="read", method="GET")
    def count(self, *, status: fields.Status = "active") -> dict[str, int]:
        """Count the records of each kind: the active ones, unless ``status`` says otherwise."""
        with self._reading(notes=True) as reader:
            found = reader.count()
        counts: dict[str, int] = {}
        for (kind, of), number in sorted(found.items()):
            if status in ("all", of):
                counts[kind] = counts.get(kind, 0) + number
        return counts

    @verb(scope="read")
    def search(
        self,
        query: fields.Question,
        *,
        limit: fields.Limit = 5,
        kinds: fields.Kinds = (),
        include_conversation: fields.Conversations = False,
        category: fields.OnlyCategory | None = None,
        type: fields.OnlyType | None = None,
        tags: fields.Tags = (),
        source: fields.OnlySource | None = None,
        session: fields.OnlySession | None = None,
        speaker: fields.OnlySpeaker | None = None,
        status: fields.Status = "active",
        since: fields.Since | None = None,
        until: fields.Until | None = None,
        min_score: fields.MinScore = 0.0,
        earlier: fields.Earlier = False,
        now: fields.AskedAt | None = None,
    ) -> Hits:
        """Find records that answer a question or mention a topic, best first.

        A question for everything lists: the newest and most important first. Conversations are searched only on
        request, by ``include_conversation`` or by kind. With ``earlier``, records are found last by what they said
        before an update, which the hit quotes. ``since`` and ``until`` bound when something was said; ``now`` is when
        the question is asked, if not at present.
        """
        where = Filter(
            kinds=tuple(kinds) or (*MEMORY_KINDS, *(("message",) if include_conversation else ())),
            statuses=() if status == "all" else (status,),
            categories=(category,) if category else (),
            types=(type,) if type else (),
            tags=tuple(tags),
            source=source,
            session=session,
            speakers=() if speaker is None else (speaker,),
            said_from=as_moment(since),
            said_until=as_moment(until),
            alive_at=self._user_memory.clock(),
        )
        moment = as_moment(now)
        with self._asking(query, moment) as (reader, vector, within):
            return search_records(
                self._user_memory,
                reader,
                query,
                where,
                limit,
                asked=vector,
                now=moment,
                min_score=min_score,
                earlier=earlier,
                within=within,
            )

    @verb(scope="read")
    def recall_by_category(
        self, query: fields.Question, category: fields.ObservationCategory, limit: fields.Limit = 5
    ) -> list[str]:
        """Return the texts of the findings, insights or lessons that answer a question, best first."""
        hits = self.search(query, kinds=("observation",), category=category, limit=limit)
        return [hit.record.content for hit in hits]

    @verb(scope="read")
    def recall_fil(self, query: fields.Question, limit_per_category: fields.Limit = 5) -> RecalledObservations:
        """Return the findings, insights and lessons that answer a question, each best first."""
        names = {"findings": "finding", "insights": "insight", "lessons": "lesson"}
        found = {name: self.recall_by_category(query, one, limit_per_category) for name, one in names.items()}
        return RecalledObservations(**{name: tuple(texts) for name, texts in found.items()})

    @verb(scope="read")
    def context(
        self,
        topic: fields.ContextTopic = "",
        *,
        max_tokens: fields.MaxTokens | None = None,
        include_conversation: fields.Conversations = False,
        now: fields.ContextAt | None = None,
    ) -> str:
        """Return what an agent should know before it answers, as a Markdown block for its prompt.

        It has the core profile, what is known of the topic, and the last seven days, in at most ``max_tokens``
        (MEMORY_CONTEXT_MAX_TOKENS); it is empty if nothing is known. Conversations are included on request.
        """
        room = self._user_memory.config.context_max_tokens if max_tokens is None else max_tokens
        moment = as_moment(now)
        with self._asking(topic, moment) as (reader, vector, within):
            return build_context(
                self._user_memory,
                reader,
                topic,
                room,
                now=moment,
                conversation=include_conversation,
                asked=vector,
                within=within,
            )

    @verb(scope="read", method="GET")
    def show(self) -> str:
        """Return MEMORY.md as it is now."""
        with self._reading() as reader:
            return self._files(reader).text(reader)

    @verb(scope="read", method="GET")
    def daily(self, day: fields.ShownDay | None = None) -> str:
        """Return the daily note of a day, by default today's; empty if there is none."""
        when = as_day(day) or self._user_memory.clock().date()
        with self._reading(notes=True) as reader:
            return self._files(reader).daily_text(reader, when)

    @verb(scope="read", method="GET")
    def days(self) -> list[date]:
        """List the days that have a daily note."""
        with self._reading(notes=True) as reader:
            if reader.state().mode == "incognito":
                return []
            noted = noted_records(reader, alive_at=self._user_memory.clock())
        return sorted({day for record in noted if (day := day_of(record))})

    @verb(scope="read", paged=True)
    def history(
        self,
        ref: fields.OnlyRef | None = None,
        *,
        run: fields.OnlyRun | None = None,
        call: fields.OnlyCall | None = None,
        before: fields.EntryNumber | None = None,
        limit: fields.Limit | None = None,
    ) -> list[JournalEntry]:
        """List journal entries, oldest first: of one record, one run, one tool call, or all (the last ``limit``).

        ``before`` is the number of an entry: only earlier ones are returned, to read a long journal page by page.
        """
        with self._reading() as reader:
            record_id = None if ref is None else id_of(reader, ref)
            entries = partial(reader.entries, record_id=record_id, run=run, call=call)
            if self._walk is None:
                return entries(before=before, newest_first=True, limit=limit)[::-1]

            def find(place: Place | None, size: int) -> list[JournalEntry]:
                if place is not None:
                    return entries(after=place[0], before=place[1], limit=size)
                oldest = entries(before=bound, newest_first=True, limit=1, offset=limit - 1) if limit else []
                return entries(after=oldest[0].seq - 1 if oldest else 0, before=bound, limit=size)

            bound = (
                reader.state().seq + 1 if before is None else before
            )  # what happens during the walk is not part of it
            walk = self._walk
            return walk.page(find, lambda entry: [entry.seq, walk.kept or bound], None)

    @verb(scope="read", method="GET")
    def numbers(self, ids: fields.RecordIds) -> dict[str, int]:
        """Return permanent whole numbers for records, for callers that cannot use ids."""
        with self._reading() as reader:
            return reader.numbers(ids)

    @verb(scope="read", method="GET")
    def numbered(self, number: fields.EntryNumber) -> Record:
        """Return the record that has this number."""
        with self._reading() as reader:
            entry = reader.entry(number)
            record = None if entry is None else reader.get(entry.record_id)
        if record is None:
            raise NotFoundError(f"there is no record number {number}")
        return record

    @verb(scope="read", method="GET")
    def similar(
        self, *, kinds: fields.Kinds = ("fact", "note"), limit: fields.Limit = 20
    ) -> list[tuple[Record, Record]]:
        """Find pairs of records that say nearly the same and may be merged; the older of each first."""
        with self._reading() as reader:
            return (
                []
                if reader.state().mode == "incognito"
                else similar_pairs(self._user_memory, reader, tuple(kinds), limit)
            )

    @verb(scope="read")
    def rank(self, items: fields.Items, *, limit: fields.Limit | None = None) -> list[Ranked]:
        """Rank items by the user's interests: what they like and work on first, what they dislike last.

        An item is a text, or has a ``title``, a ``text`` or ``topics``, as a mapping or as attributes. Each is returned
        with a score from -1 to 1 and the reasons, which name the memories; equals stay in their order.
        """
        if self._open is None:
            self._user_memory.index.prepare(self._user_memory.user)
        with self._reading(notes=True) as reader:
            return rank_items(
                self._user_memory, reader, items, limit, within=self._open.last_seq if self._open else None
            )

    @verb(scope="read", method="GET", paged=True)
    def sessions(self, *, limit: fields.Limit = 20, offset: fields.Offset = 0) -> list[Session]:
        """List the sessions whose messages are kept, the latest first."""
        with self._reading() as reader:
            if reader.state().mode == "incognito":
                return []
            if self._walk is None:
                return reader.sessions(limit=limit, offset=offset)
            # a message during the walk must not move a session to the front, past the reader
            newest = reader.find(Query(kinds=("message",), newest_first=True, limit=1))
            now = newest[0].created_at if newest else self._user_memory.clock()

            def find(place: Place | None, size: int) -> list[Session]:
                if place is None:
                    return reader.sessions(limit=size, offset=offset, as_of=now)
                after = from_text(place[0]), place[1]
                return reader.sessions(limit=size, after=after, as_of=from_text(place[2]))

            walk = self._walk
            begun = to_text(now)
            return walk.page(find, lambda one: [to_text(one.ended), one.id, walk.kept or begun], limit)

    @verb(scope="read")
    def why(self, ref: fields.Ref) -> Why:
        """Explain why a record is known."""
        with self._reading() as reader:
            return explain_record(reader, find_record(reader, ref, any_status=True))

    @verb(scope="read", method="GET")
    def consents(self) -> tuple[str, ...]:
        """List the consents given, of "across_chats" and "trends"."""
        with self._reading() as reader:
            given = reader.consents()
        return tuple(name for name in CONSENTS if name in given)

    # actions on the person's behalf

    @verb(scope="read", method="GET", paged=True)
    def calls(
        self,
        *,
        since: fields.Since | None = None,
        until: fields.Until | None = None,
        tool: fields.OnlyTool | None = None,
        session: fields.OnlySession | None = None,
        limit: fields.Limit | None = 100,
        newest_first: fields.NewestFirst = True,
    ) -> list[ToolCall]:
        """List tool calls: what was called, how it ended, how long it took. The log has no content."""
        begin, end = as_moment(since), as_moment(until)
        self._user_memory.settle()
        with self._reading() as reader:
            calls = partial(reader.calls, since=begin, until=end, tool=tool, session=session, newest_first=newest_first)
            if self._walk is None:
                return calls(limit=limit)
            return self._walk.page(
                lambda place, size: calls(after=_moment_and_id(place), limit=size),
                lambda made: [to_text(made.at), made.id],
                limit,
            )

    @verb(scope="read", method="GET")
    def usage(self, *, since: fields.FirstDay | None = None, until: fields.LastDay | None = None) -> list[Spending]:
        """List spending by day and operation, from one day to another (both included), or today's."""
        first, last = as_day(since), as_day(until)
        if first is None and last is None:
            first = last = self._user_memory.clock().date()
        self._user_memory.settle()
        with self._reading() as reader:
            return reader.spending(since=first, until=last)

    @verb(scope="read", method="GET", paged=True)
    def interactions(
        self,
        *,
        since: fields.Since | None = None,
        until: fields.Until | None = None,
        kinds: fields.InteractionKinds = (),
        session: fields.OnlySession | None = None,
        limit: fields.Limit | None = None,
        newest_first: fields.NewestFirst = False,
    ) -> list[Interaction]:
        """List interactions from ``since`` on and before ``until``, oldest first by default."""
        begin, end = as_moment(since), as_moment(until)
        with self._reading() as reader:
            if reader.state().mode == "incognito":
                return []
            found = partial(
                reader.interactions,
                since=begin,
                until=end,
                kinds=tuple(kinds),
                session=session,
                newest_first=newest_first,
            )
            if self._walk is None:
                return found(limit=limit)
            return self._walk.page(
                lambda place, size: found(after=_moment_and_id(place), limit=size),
                lambda one: [to_text(one.at), one.id],
                limit,
            )

    @verb(scope="read")
    def unread(
        self,
        marks: Annotated[Iterable[Mark], fields.MARKS] = (),
        *,
        until: fields.Until,
        session: fields.OnlySession | None = None,
    ) -> Unread:
        """Return messages and interactions before a moment that lie after all of these marks.

        The time of storage counts: something about last week is unread if it was stored after the mark was made.
        """
        end = as_moment(until)
        assert end is not None
        known = [_check_mark(mark) for mark in check.check_list("marks", marks, Mark)]
        with self._reading() as reader:
            hidden = reader.state().mode == "incognito"
            found = find_unread(reader, known, until=end, session=session)
        return replace(found, messages=(), interactions=()) if hidden else found

    @verb(scope="read", method="GET")
    def runs(
        self,
        *,
        since: fields.FirstDay | None = None,
        kind: fields.RunKind | None = None,
        limit: fields.Limit | None = 20,
    ) -> list[ExtractionRun]:
        """List extraction runs, the latest day first; of one kind, such as batch, or all."""
        with self._reading() as reader:
            return reader.runs(since=as_day(since), kind=kind, newest_first=True, limit=limit)

    # inside

    def _run_verb(self, verb: Verb, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args = verb.checked(args, kwargs)
        return verb.function(self, *args, **kwargs)

    def _walking(self, walk: PageCursor) -> Self:
        """Return the same memory with its lists limited to the page of this walk."""
        return type(self)(self._user_memory, self._acting, self._open, walk)

    @contextmanager
    def _asking(self, query: str, now: datetime | None) -> Iterator[tuple[Reader, QueryVector, int | None]]:
        """Open a view to search in, with the query's vector; a batch has none, as it must not wait for an embedder."""
        if self._open is not None:
            note = (
                ""
                if self._user_memory.vectors is None
                else "searched by words only, because embedders are not called within a batch"
            )
            with self._reading() as reader:
                yield reader, QueryVector(note=note), self._open.last_seq
            return
        vector = embed_query(self._user_memory, self._reading, query, now)
        with self._reading(notes=True) as reader:
            yield reader, vector, None

    @contextmanager
    def _reading(self, *, notes: bool = False) -> Iterator[Reader]:
        """Open a consistent view as the chat sees it; within a batch, one that includes its changes."""
        acting = self._acting
        if self._open is not None:
            with self._open.inside(acting) as write:
                yield write.tx
        else:
            with self._user_memory.read(notes=notes) as reader:
                yield reader_in(reader, acting.chat, acting.session)

    def _files(self, reader: Reader) -> Files:
        """Return the person's files, or for a chat, files that show only what it may see."""
        return self._user_memory.files if visible_chats(reader) is None else NoFiles()


def _moment_and_id(place: Place | None) -> tuple[datetime, str] | None:
    return None if place is None else (from_text(place[0]), place[1])


def _check_mark(mark: Mark) -> Mark:
    return Mark(**{name: field.check("marks", getattr(mark, name)) for name, field in fields.MARK.items()})


def _is_day(key: str) -> bool:
    """Return True if this is the day of a note rather than a key."""
    try:
        return date.fromisoformat(key).isoformat() == key
    except ValueError:
        return False
