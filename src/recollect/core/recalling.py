"""The reading half of a memory: what is known, found, shown and explained. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import Any, Self

from recollect.config import Config
from recollect.core import validation as check
from recollect.core.chats import reader_in, seen_by
from recollect.core.context import context
from recollect.core.drafts import Moment
from recollect.core.files import Files, NoFiles
from recollect.core.interests import Ranked, rank
from recollect.core.journal import Why, why
from recollect.core.paging import Place, Walk
from recollect.core.person import Person
from recollect.core.recall import MEMORY_KINDS, Asked, asked, search
from recollect.core.references import find_record, id_of
from recollect.core.similar import similar
from recollect.core.unread import Mark, Unread, unread
from recollect.core.writing import Acting, Write
from recollect.document.memory_md import key_of
from recollect.errors import NotFoundError
from recollect.records import (
    CATEGORIES,
    CONSENTS,
    FACT_TYPES,
    INTERACTION_KINDS,
    KINDS,
    OBSERVATION_CATEGORIES,
    STATUSES,
    DailyEntry,
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


class Recalling:
    """What one can ask a memory."""

    def __init__(
        self, person: Person, acting: Acting | None = None, write: Write | None = None, walk: Walk | None = None
    ) -> None:
        self._person = person
        self._acting = acting or Acting()
        self._open = write
        self._walk = walk
        """If there is one, verbs that list give this page of what they would give."""

    def __repr__(self) -> str:
        return f"<Memory of {self.user_id!r}>"

    @property
    def user_id(self) -> str:
        """Whose memory this is."""
        return self._person.user.user_id

    @property
    def config(self) -> Config:
        """The settings in force."""
        return self._person.config

    @property
    def clock(self) -> Clock:
        """What tells the time here."""
        return self._person.clock

    @property
    def in_chat(self) -> bool:
        """Whether it is behind the wall of a chat, because it acts in one."""
        return self._acting.chat is not None

    @property
    def exists(self) -> bool:
        """Whether anything was ever stored for this user, in the database or by hand in a file."""
        return self._person.user.exists() or self._person.files.any_text()

    @property
    def mode(self) -> str:
        """on, paused or incognito. Paused too if memory is off for everyone (MEMORY_ENABLED)."""
        with self._person.user.read() as reader:
            mode = reader.state().mode
        return "paused" if mode == "on" and not self._person.config.enabled else mode

    def scratch(self, key: str) -> str | None:
        """The value kept under a key with `set_scratch`."""
        found = self.read(kind="scratch", key=check.line("key", key, 200))
        return found[0].content if found else None

    def get(self, ref: str) -> Record:
        """One record, by id, by the key of a fact, or by the ending of an id."""
        with self._reading() as reader:
            return find_record(reader, check.line("ref", ref, 200))

    def read(
        self,
        *,
        kind: str | None = None,
        category: str | None = None,
        type: str | None = None,
        key: str | None = None,
        tags: Sequence[str] = (),
        session: str | None = None,
        source: str | None = None,
        status: str = "active",
        since: Moment | None = None,
        until: Moment | None = None,
        as_of: Moment | None = None,
        newest_first: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Record]:
        """Records by what they are. ``as_of`` gives what held at another time.

        ``since`` and ``until`` bound when something was said, or has held since: from the one on, before the other.
        """
        named = check.sought("key", key) or None
        query = Query(
            kinds=(check.one_of("kind", kind, KINDS),) if kind else (),
            categories=(check.one_of("category", category, CATEGORIES + OBSERVATION_CATEGORIES),) if category else (),
            types=(check.one_of("type", type, FACT_TYPES),) if type else (),
            key=named if named is None or kind in ("scratch", "daily") else key_of(named),
            tags=check.words("tags", tags),
            session=check.sought("session", session),
            source=check.sought("source", source),
            statuses=() if status == "all" else (check.one_of("status", status, (*STATUSES, "all")),),
            said_from=check.optional_moment("since", since),
            said_until=check.optional_moment("until", until),
            alive_at=self._person.clock(),
            valid_at=check.optional_moment("as_of", as_of),
            newest_first=check.flag("newest_first", newest_first),
            limit=check.optional_positive("limit", limit),
            offset=check.amount("offset", offset),
        )
        with self._reading(notes=kind in (None, "daily")) as reader:
            if reader.state().mode == "incognito":
                return []
            if self._walk is None:
                return reader.find(query)

            def find(place: Place | None, most: int) -> list[Record]:
                if place is None:
                    return reader.find(replace(query, limit=most))
                return reader.find(replace(query, after=(from_text(place[0]), place[1]), limit=most, offset=0))

            return self._walk.page(find, lambda record: [to_text(record.created_at), record.id], query.limit)

    def count(self) -> dict[str, int]:
        """How many active records of each kind there are."""
        with self._reading(notes=True) as reader:
            found = reader.count()
        return {kind: number for (kind, status), number in sorted(found.items()) if status == "active"}

    def search(
        self,
        query: str,
        *,
        limit: int = 5,
        kinds: Sequence[str] = (),
        include_conversation: bool = False,
        category: str | None = None,
        type: str | None = None,
        tags: Sequence[str] = (),
        source: str | None = None,
        session: str | None = None,
        speaker: str | None = None,
        status: str = "active",
        since: Moment | None = None,
        until: Moment | None = None,
        min_score: float = 0.0,
        now: Moment | None = None,
    ) -> Hits:
        """Records that answer a question or speak of something, best first.

        Conversations are searched if asked for, by ``include_conversation`` or by kind. ``since`` and ``until``
        bound when something was said; ``now`` is when the question is asked, if that is another time.
        """
        wanted = tuple(check.one_of("kinds", kind, KINDS) for kind in check.words("kinds", kinds))
        too = ("message",) if check.flag("include_conversation", include_conversation) else ()
        where = Filter(
            kinds=wanted or (*MEMORY_KINDS, *too),
            statuses=() if status == "all" else (check.one_of("status", status, (*STATUSES, "all")),),
            categories=(check.one_of("category", category, CATEGORIES + OBSERVATION_CATEGORIES),) if category else (),
            types=(check.one_of("type", type, FACT_TYPES),) if type else (),
            tags=check.words("tags", tags),
            source=check.optional_line("source", source),
            session=check.optional_line("session", session),
            speakers=() if speaker is None else (check.line("speaker", speaker),),
            said_from=check.optional_moment("since", since),
            said_until=check.optional_moment("until", until),
            alive_at=self._person.clock(),
        )
        text, moment = check.query("query", query), check.optional_moment("now", now)
        most, least = check.positive("limit", limit), check.share("min_score", min_score)
        with self._asking(text, moment) as (reader, vector, within):
            return search(
                self._person, reader, text, where, most, asked=vector, now=moment, min_score=least, within=within
            )

    def context(
        self,
        topic: str = "",
        *,
        max_tokens: int | None = None,
        include_conversation: bool = False,
        now: Moment | None = None,
    ) -> str:
        """What an agent should know before it answers, as a Markdown block for its prompt; empty if nothing is known.

        The core profile, what is known of the topic, and what happened in the last seven days, never longer than
        ``max_tokens`` (MEMORY_CONTEXT_MAX_TOKENS). Conversations are included if asked for.
        """
        budget = self._person.config.context_max_tokens if max_tokens is None else max_tokens
        text, moment = check.query("topic", topic), check.optional_moment("now", now, check.LAST_YEAR)
        room, conversation = (
            check.positive("max_tokens", budget),
            check.flag("include_conversation", include_conversation),
        )
        with self._asking(text, moment) as (reader, vector, within):
            return context(
                self._person,
                reader,
                text,
                room,
                now=moment,
                conversation=conversation,
                asked=vector,
                within=within,
            )

    def show(self) -> str:
        """MEMORY.md as it is now."""
        with self._reading() as reader:
            return self._files(reader).text(reader)

    def daily(self, day: date | str | None = None) -> str:
        """The daily note of a day, today's by default; empty if there is none."""
        when = check.optional_day("day", day) or self._person.clock().date()
        with self._reading(notes=True) as reader:
            return self._files(reader).daily_text(reader, when)

    def days(self) -> list[date]:
        """The days that have a daily note."""
        entries = self.read(kind="daily")
        return sorted({entry.day for entry in entries if isinstance(entry, DailyEntry)})

    def history(
        self,
        ref: str | None = None,
        *,
        run: str | None = None,
        call: str | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> list[JournalEntry]:
        """What happened, oldest first: to one record, in one run, by one tool call, or at all (the last ``limit``).

        ``before`` is the number of an entry: only what happened before it, to read a long journal page by page.
        """
        which, most = check.optional_line("ref", ref, 200), check.optional_positive("limit", limit)
        in_run, by_call = check.sought("run", run), check.sought("call", call)
        end = None if before is None else check.number("before", before)
        with self._reading() as reader:
            record_id = None if which is None else id_of(reader, which)
            entries = partial(reader.entries, record_id=record_id, run=in_run, call=by_call)
            if self._walk is None:
                return entries(before=end, newest_first=True, limit=most)[::-1]

            def find(place: Place | None, size: int) -> list[JournalEntry]:
                if place is not None:
                    return entries(after=place[0], before=place[1], limit=size)
                oldest = entries(before=bound, newest_first=True, limit=1, offset=most - 1) if most else []
                return entries(after=oldest[0].seq - 1 if oldest else 0, before=bound, limit=size)

            bound = reader.state().seq + 1 if end is None else end  # what happens during the walk is not part of it
            walk = self._walk
            return walk.page(find, lambda entry: [entry.seq, walk.kept or bound], None)

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Whole numbers to call records by, for those who cannot use ids: they never change."""
        wanted = check.words("ids", ids, check.MAX_IDS)
        with self._reading() as reader:
            return reader.numbers(wanted)

    def numbered(self, number: int) -> Record:
        """The record that is called by this number."""
        seq = check.number("number", number)
        with self._reading() as reader:
            entry = reader.entry(seq)
            record = None if entry is None else reader.get(entry.record_id)
        if record is None:
            raise NotFoundError(f"there is no record with the number {seq}")
        return record

    def similar(self, *, kinds: Sequence[str] = ("fact", "note"), limit: int = 20) -> list[tuple[Record, Record]]:
        """Pairs of records that say nearly the same, to be merged perhaps; the older of each first."""
        wanted = tuple(check.one_of("kinds", kind, KINDS) for kind in check.words("kinds", kinds))
        most = check.positive("limit", limit)
        with self._reading() as reader:
            return [] if reader.state().mode == "incognito" else similar(self._person, reader, wanted, most)

    def rank(self, items: Iterable[Any], *, limit: int | None = None) -> list[Ranked]:
        """Items by what the person cares about: what they like and work on first, what they dislike last.

        An item is a text, or has a ``title``, a ``text`` or ``topics``, as a mapping or as attributes. Each comes
        back with a score from -1 to 1 and the reasons, which name the memories; equals stay in their order.
        """
        if self._open is None:
            self._person.catalogue.prepare(self._person.user)
        with self._reading(notes=True) as reader:
            return rank(self._person, reader, items, limit, within=self._open.last_seq if self._open else None)

    def sessions(self, *, limit: int = 20, offset: int = 0) -> list[Session]:
        """The conversations whose messages are kept, the latest first."""
        most, start = check.positive("limit", limit), check.amount("offset", offset)
        with self._reading() as reader:
            if reader.state().mode == "incognito":
                return []
            if self._walk is None:
                return reader.sessions(limit=most, offset=start)
            # who speaks during the walk must not bring a conversation to the front, past those who look for it
            newest = reader.find(Query(kinds=("message",), newest_first=True, limit=1))
            now = newest[0].created_at if newest else self._person.clock()

            def find(place: Place | None, size: int) -> list[Session]:
                if place is None:
                    return reader.sessions(limit=size, offset=start, as_of=now)
                after = from_text(place[0]), place[1]
                return reader.sessions(limit=size, after=after, as_of=from_text(place[2]))

            walk = self._walk
            begun = to_text(now)
            return walk.page(find, lambda one: [to_text(one.ended), one.id, walk.kept or begun], most)

    def why(self, ref: str) -> Why:
        """Why this is known."""
        with self._reading() as reader:
            return why(reader, find_record(reader, check.line("ref", ref, 200), any_status=True))

    def consents(self) -> tuple[str, ...]:
        """What the person consented to, of `CONSENTS`."""
        with self._reading() as reader:
            given = reader.consents()
        return tuple(name for name in CONSENTS if name in given)

    # what was done on the person's behalf

    def calls(
        self,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        tool: str | None = None,
        session: str | None = None,
        limit: int | None = 100,
        newest_first: bool = True,
    ) -> list[ToolCall]:
        """The log of tool calls: what was called, how it ended, how long it took. Nothing of the content is in it."""
        begin, end = check.optional_moment("since", since), check.optional_moment("until", until)
        name, where = check.optional_line("tool", tool), check.optional_line("session", session)
        latest, most = check.flag("newest_first", newest_first), check.optional_positive("limit", limit)
        self._person.settle()
        with self._reading() as reader:
            calls = partial(reader.calls, since=begin, until=end, tool=name, session=where, newest_first=latest)
            if self._walk is None:
                return calls(limit=most)
            return self._walk.page(
                lambda place, size: calls(after=_moment_and_id(place), limit=size),
                lambda made: [to_text(made.at), made.id],
                most,
            )

    def usage(self, *, since: date | str | None = None, until: date | str | None = None) -> list[Spending]:
        """What was spent, by day and operation: from one day to another, both included, or today."""
        first, last = check.optional_day("since", since), check.optional_day("until", until)
        if first is None and last is None:
            first = last = self._person.clock().date()
        self._person.settle()
        with self._reading() as reader:
            return reader.spending(since=first, until=last)

    def interactions(
        self,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        kinds: Sequence[str] = (),
        session: str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[Interaction]:
        """What the host reported, from ``since`` on and before ``until``, oldest first unless asked otherwise."""
        wanted = tuple(check.one_of("kinds", kind, INTERACTION_KINDS) for kind in check.words("kinds", kinds))
        begin, end = check.optional_moment("since", since), check.optional_moment("until", until)
        where, most = check.optional_line("session", session), check.optional_positive("limit", limit)
        latest = check.flag("newest_first", newest_first)
        with self._reading() as reader:
            if reader.state().mode == "incognito":
                return []
            found = partial(
                reader.interactions, since=begin, until=end, kinds=wanted, session=where, newest_first=latest
            )
            if self._walk is None:
                return found(limit=most)
            return self._walk.page(
                lambda place, size: found(after=_moment_and_id(place), limit=size),
                lambda one: [to_text(one.at), one.id],
                most,
            )

    def unread(self, marks: Iterable[Mark] = (), *, until: Moment, session: str | None = None) -> Unread:
        """Messages and interactions that happened before a moment and lie behind all of these marks.

        It goes by when they were stored: what tells of last week is unread if it came after the mark was made.
        """
        end, where = check.moment("until", until), check.optional_line("session", session)
        known = [_checked(mark) for mark in check.several("marks", marks, Mark)]
        with self._reading() as reader:
            hidden = reader.state().mode == "incognito"
            found = unread(reader, known, until=end, session=where, alive_at=self._person.clock())
        return replace(found, messages=(), interactions=()) if hidden else found

    def runs(
        self, *, since: date | str | None = None, kind: str | None = None, limit: int | None = 20
    ) -> list[ExtractionRun]:
        """How learning from each day went, the latest day first; of one kind, such as batch, or of all."""
        first, sort = check.optional_day("since", since), check.optional_line("kind", kind)
        most = check.optional_positive("limit", limit)
        with self._reading() as reader:
            return reader.runs(since=first, kind=sort, newest_first=True, limit=most)

    # inside

    def _walking(self, walk: Walk) -> Self:
        """The same memory, of whose lists one page is given: that of the walk, which says where the next begins."""
        return type(self)(self._person, self._acting, self._open, walk)

    @contextmanager
    def _asking(self, query: str, now: datetime | None) -> Iterator[tuple[Reader, Asked, int | None]]:
        """A view to search in, with the vector of the query. Within a batch there is none: nobody may wait in there."""
        if self._open is not None:
            note = (
                "" if self._person.meaning is None else "searched by words alone: within a batch nothing else is asked"
            )
            with self._reading() as reader:
                yield reader, Asked(note=note), self._open.last_seq
            return
        vector = asked(self._person, self._reading, query, now)
        with self._reading(notes=True) as reader:
            yield reader, vector, None

    @contextmanager
    def _reading(self, *, notes: bool = False) -> Iterator[Reader]:
        """A consistent view, behind the wall of the chat; within a batch, one that sees what the batch did."""
        acting = self._acting
        if self._open is not None:
            with self._open.inside(acting) as write:
                yield write.tx
        else:
            with self._person.read(notes=notes) as reader:
                yield reader_in(reader, acting.chat, acting.session)

    def _files(self, reader: Reader) -> Files:
        """The person's files; behind a wall, files that show what may be seen and nothing else."""
        return self._person.files if seen_by(reader) is None else NoFiles()


def _moment_and_id(place: Place | None) -> tuple[datetime, str] | None:
    return None if place is None else (from_text(place[0]), place[1])


def _checked(mark: Mark) -> Mark:
    return Mark(
        seq=check.number("marks", mark.seq),
        reported=check.moment("marks", mark.reported),
        until=check.moment("marks", mark.until),
    )
