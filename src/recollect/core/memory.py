"""The memory of one user: the one façade over the core. Short methods; the work is done below.

memory = recollect.open("data/memory").user("u1")
memory.remember("Senior engineer at Stripe", key="role", category="work_context")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypeVar

from recollect.core import validation as check
from recollect.core.drafts import Drafts, Moment
from recollect.core.editing import edit
from recollect.core.erase import about, clear, erase, erase_topic
from recollect.core.files import MEMORY, daily_name
from recollect.core.journal import Progress, last_target, undo, verify
from recollect.core.rebuild import RebuildReport, rebuild
from recollect.core.references import find_record, find_records, find_to_change
from recollect.core.reporting import Reporting
from recollect.core.transfer import ImportReport, export_archive, import_any, own_folders
from recollect.core.upkeep import UpkeepReport, mark_important, remove_expired, would_remove
from recollect.core.writing import Write
from recollect.errors import ConfigError, InvalidInputError, NotFoundError
from recollect.policy.retention import IMPORTANT_DAYS
from recollect.records import (
    CATEGORIES,
    CHANGE_REASONS,
    CONSENTS,
    FACT_TYPES,
    OBSERVATION_CATEGORIES,
    Erased,
    Outcome,
    Receipt,
    Record,
    Undone,
)
from recollect.store.contract import Query

_O = TypeVar("_O", bound=Outcome)


class Memory(Reporting):
    """One user's memory. Get it from `Recollect.user`; it is safe to share between threads."""

    def acting(
        self,
        actor: str | None = None,
        *,
        agent: str | None = None,
        session: str | None = None,
        chat: str | None = None,
        run: str | None = None,
        call: str | None = None,
        trusted: bool | None = None,
    ) -> Memory:
        """The same memory on behalf of someone: what is written through it says so in the journal.

        With a ``chat`` there is a wall: what was said in other chats is neither shown nor compared nor changed, unless
        the person consented to that ("across_chats"). Others read along in a group, a chat whose name begins with
        "group:", so nothing is seen there but what was said in it.
        """
        now = self._acting
        acting = replace(
            now,
            actor=check.optional_line("actor", actor) or now.actor,
            agent=check.optional_line("agent", agent) or now.agent,
            session=check.optional_line("session", session) or now.session,
            chat=check.optional_line("chat", chat) or now.chat,
            run=check.optional_line("run", run) or now.run,
            call=check.optional_line("call", call) or now.call,
            trusted=now.trusted if trusted is None else check.flag("trusted", trusted),
        )
        return Memory(self._person, acting, self._open)

    def _unless(self, may_be_done: Callable[[], bool]) -> Memory:
        """The same memory for a call that another process may do too: `DoneAlreadyError` if it has done it."""
        return Memory(self._person, replace(self._acting, may_be_done=may_be_done), self._open)

    @contextmanager
    def batch(self) -> Iterator[Memory]:
        """Many changes in one transaction: all of them are durable at the end, or none is."""
        if self._open is not None:
            yield self
            return
        if self._acting.is_person:  # they may erase, and what waits to be logged cannot be written inside of a batch
            self._person.settle()
        with self._opened() as write:
            yield Memory(self._person, self._acting, write)

    # writing

    def remember(
        self,
        content: str,
        *,
        key: str | None = None,
        category: str | None = None,
        type: str | None = None,
        durability: Literal["durable", "daily"] = "durable",
        confidence: float = 1.0,
        importance: float = 0.5,
        source: str = "explicit",
        excerpt: str | None = None,
        messages: Sequence[str] = (),
        tags: Sequence[str] = (),
        valid_from: Moment | None = None,
        expires_at: Moment | None = None,
        pinned: bool = False,
        day: date | str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """A fact about the person, under a key or as a sentence.

        What is not durable, or not sure enough, goes to the daily note of ``day``, today's unless another is given.
        """
        noted_on = check.optional_day("day", day, check.LAST_YEAR)
        durable = check.one_of("durability", durability, ("durable", "daily")) == "durable"
        fact = self._drafts.fact(
            content,
            key=key,
            category=category,
            type=type,
            pinned=pinned,
            valid_from=check.optional_moment("valid_from", valid_from),
            expires_at=check.optional_moment("expires_at", expires_at),
            confidence=confidence,
            importance=importance,
            source=source,
            excerpt=excerpt,
            messages=messages,
            tags=tags,
            metadata=metadata,
        )
        return self._remember(fact, durable=durable, day=noted_on)

    def note(
        self,
        content: str,
        *,
        title: str | None = None,
        tags: Sequence[str] = (),
        source: str = "explicit",
        importance: float = 0.5,
        metadata: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """A free text with a stable id."""
        note = self._drafts.note(
            content, title=title, tags=tags, source=source, importance=importance, metadata=metadata
        )
        return self._remember(note)

    def observe(
        self,
        content: str,
        category: str,
        *,
        source: str = "explicit",
        confidence: float = 1.0,
        excerpt: str | None = None,
        messages: Sequence[str] = (),
        tags: Sequence[str] = (),
        said_at: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """A finding, an insight or a lesson."""
        observation = self._drafts.observation(
            content,
            category,
            said_at=check.optional_moment("said_at", said_at),
            source=source,
            confidence=confidence,
            excerpt=excerpt,
            messages=messages,
            tags=tags,
            metadata=metadata,
        )
        return self._remember(observation)

    def episode(
        self,
        topic: str,
        summary: str,
        *,
        importance: float = 0.7,
        valence: str = "neutral",
        tags: Sequence[str] = (),
        messages: Sequence[str] = (),
        participants: Sequence[str] = (),
        source: str = "explicit",
        metadata: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """A stretch of conversation worth remembering as a whole."""
        episode = self._drafts.episode(
            topic,
            summary,
            valence=valence,
            participants=participants,
            importance=importance,
            tags=tags,
            messages=messages,
            source=source,
            metadata=metadata,
        )
        return self._remember(episode)

    def say(
        self,
        content: str,
        *,
        session: str | None = None,
        role: str = "user",
        speaker: str | None = None,
        said_at: Moment | None = None,
        source: str = "conversation",
        metadata: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """One message of a conversation. Secrets in it are masked."""
        when = check.optional_moment("said_at", said_at)
        message = self._drafts.message(
            content, session=session, role=role, speaker=speaker, said_at=when, source=source, metadata=metadata
        )
        return self._remember(message)

    def jot(
        self,
        content: str,
        *,
        section: str | None = None,
        day: date | str | None = None,
        source: str = "explicit",
        confidence: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """An entry in a daily note, today's unless another day is given."""
        when = check.optional_day("day", day, check.LAST_YEAR)
        entry = self._drafts.daily(
            content, section=section, day=when, source=source, confidence=confidence, metadata=metadata
        )
        return self._remember(entry)

    def set_scratch(self, key: str, value: str) -> Outcome:
        """Keep a value under a key as working memory, in place of what was there."""
        name = check.line("key", key, 200)
        item = self._drafts.scratch(name, value)
        with self._writing() as write:
            known = write.tx.find(Query(kinds=("scratch",), key=name))
            said = {"content": item.content}
            outcome = write.update(known[0], said, reason="correction") if known else write.remember(item)
        return self._told(outcome, write)

    def _remember(self, record: Record, *, durable: bool = True, day: date | None = None) -> Outcome:
        with self._writing() as write:
            outcome = write.remember(record, durable=durable, day=day)
        return self._told(outcome, write)

    def update(
        self,
        ref: str,
        content: str | None = None,
        *,
        category: str | None = None,
        type: str | None = None,
        key: str | None = None,
        confidence: float | None = None,
        importance: float | None = None,
        pinned: bool | None = None,
        tags: Sequence[str] | None = None,
        source: str | None = None,
        excerpt: str | None = None,
        messages: Sequence[str] | None = None,
        reason: str = "update",
        note: str | None = None,
        valid_from: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """A new version of a record, by id or key. If there is no such record, the error names the nearest keys.

        The reason says what happens to the old value: after an update or contradiction it held until now,
        after a correction or refinement it never did. Category and type narrow down which record is meant
        if several have the key; otherwise they are changed.
        """
        given = {
            "content": content,
            "category": category,
            "type": type,
            "key": key,
            "confidence": confidence,
            "importance": importance,
            "pinned": pinned,
            "tags": tags,
            "source": source,
            "excerpt": excerpt,
            "messages": messages,
            "metadata": metadata,
        }
        why_changed = check.one_of("reason", reason, CHANGE_REASONS)
        since = check.optional_moment("valid_from", valid_from)
        check.optional_one_of("category", category, CATEGORIES + OBSERVATION_CATEGORIES)
        check.optional_one_of("type", type, FACT_TYPES)
        with self._writing() as write:
            record = find_to_change(write.tx, check.line("ref", ref, 200), category, type)
            changes = self._drafts.changes(record, given, why_changed)
            outcome = write.update(
                record, changes, reason=why_changed, note=check.optional_text("note", note), since=since
            )
        return self._told(outcome, write)

    def edit(self, text: str, *, day: date | str | None = None, expect: str | None = None) -> Outcome:
        """Another text for MEMORY.md, or for the daily note of a day, as if saved in an editor.

        Lines added, changed, moved and missing become changes of records, undone together by the run of the
        outcome; what is not a fact stays in the file as given, byte for byte, and is not undone. With ``expect``, the
        text this one was made from, nothing happens if the file has changed since. The person's own edit always
        holds; from others the policy refuses the whole text for one line. A memory without files keeps only the
        records, so a notice says what else was dropped, and a line that is refused refuses the text for anyone.
        """
        given = check.whole_file("text", text)
        if not given.strip("\ufeff \t\r\n"):
            raise InvalidInputError("text", "must not be empty; an empty file forgets nothing. To do so, use clear")
        seen = None if expect is None else check.whole_file("expect", expect)
        name = MEMORY if day is None else daily_name(check.day("day", day, check.LAST_YEAR))
        with self._writing() as write:
            outcome = edit(write, self._files(write.tx), self._acting, name, given, seen)
        return self._told(outcome, write)

    def forget(
        self,
        ref: str,
        *,
        category: str | None = None,
        type: str | None = None,
        reason: str | None = None,
        replaced_by: str | None = None,
    ) -> Outcome:
        """Out of recall, kept in the journal; `undo` brings it back."""
        check.optional_one_of("category", category, CATEGORIES + OBSERVATION_CATEGORIES)
        check.optional_one_of("type", type, FACT_TYPES)
        why, instead = check.optional_text("reason", reason), check.optional_line("replaced_by", replaced_by, 200)
        with self._writing() as write:
            record = find_record(write.tx, check.line("ref", ref, 200), category=category, fact_type=type)
            outcome = write.forget(record, reason=why, replaced_by=instead)
        return self._told(outcome, write)

    def merge(
        self, refs: Sequence[str], content: str, *, confidence: float | None = None, reason: str | None = None
    ) -> Outcome:
        """Several facts, or several notes, become one. It takes over the key of the first that has one."""
        with self._writing() as write:
            named = [find_record(write.tx, ref) for ref in check.words("refs", refs, check.MAX_MESSAGES)]
            records = list({record.id: record for record in named}.values())
            if len(records) < 2 or len({record.kind for record in records}) > 1:
                raise InvalidInputError("refs", "must name at least two different records of the same kind")
            for record in records:
                if record.status != "active":
                    raise NotFoundError(f"{record.id} is no longer active")
            merged = self._drafts.merged(records, content, confidence)
            outcome = write.merge(records, merged, reason=check.optional_text("reason", reason))
        return self._told(outcome, write)

    def pin(self, ref: str, pinned: bool = True) -> Outcome:
        """Keep a fact in MEMORY.md whatever happens, or no longer."""
        return self.update(ref, pinned=pinned)

    def mark_important(
        self, messages: Sequence[str], level: Literal["high", "critical"], *, reason: str | None = None
    ) -> list[Record]:
        """Keep messages for longer: high 60 days, critical 365."""
        check.one_of("level", level, tuple(IMPORTANT_DAYS))
        with self._writing() as write:
            found = [find_record(write.tx, ref) for ref in check.words("messages", messages, check.MAX_MESSAGES)]
            return mark_important(write, found, level, check.optional_text("reason", reason))

    def pause(self, *, incognito: bool = False) -> None:
        """Store nothing more until `resume`; incognito, recall nothing either."""
        self._switch("incognito" if check.flag("incognito", incognito) else "paused")

    def resume(self) -> None:
        """Store and recall again."""
        self._switch("on")

    def _switch(self, mode: str) -> None:
        with self._writing() as write:
            if write.state.mode != mode:
                write.tx.set_mode(mode)
                write.state = replace(write.state, mode=mode)
                write.mark({"on": "resume", "paused": "pause"}.get(mode, mode), "")

    def consent(self, name: str, given: bool = True) -> None:
        """The person consents to something, or no longer does.

        "across_chats": facts learned in one chat may be recalled in another. "trends": memories may be counted
        into aggregates over many users.
        """
        check.one_of("name", name, CONSENTS)
        wanted = check.flag("given", given)
        with self._writing() as write:
            if wanted != (name in write.tx.consents()):
                (write.consent if wanted else write.withdraw)(name)

    # taking back and removing

    def undo(self, target: int | str | None = None) -> Undone:
        """Take back a journal entry by number, a run by id, or the last change."""
        with self._writing() as write:
            outcome = undo(write, last_target(write.tx) if target is None else check.entry_or_run("target", target))
        return self._told(outcome, write)

    def erase(self, *refs: str) -> Erased:
        """Remove records everywhere, for good. Only tombstones stay, so that they are not learned again."""
        self._outside_chats("erase")
        with self._writing() as write:
            wanted = [check.line("refs", ref, 200) for ref in refs]
            found = {r.id: r for ref in wanted for r in find_records(write.tx, ref, any_status=True)}
            outcome = erase(write, self._person.files, list(found.values()))
        return self._told(outcome, write)

    def erase_topic(self, topic: str, *, dry_run: bool = False) -> tuple[list[Record], Receipt | None]:
        """Remove all that speaks of a topic, everywhere. A dry run tells which records that would be."""
        self._outside_chats("erase_topic")
        words, only_tell = check.text("topic", topic, check.MAX_SHORT), check.flag("dry_run", dry_run)
        if only_tell or not self.exists:
            with self._reading(notes=True) as reader:
                return about(reader, words), None
        self._person.settle()
        with self._writing() as write:
            found, receipt = erase_topic(write, self._person.files, words)
        return found, receipt if receipt.places else None

    def clear(self) -> Erased:
        """Erase everything about this person and start again with an empty MEMORY.md."""
        self._outside_chats("clear")
        self._person.settle()  # else a tool call that is not logged yet would be logged afterwards
        with self._writing() as write:
            outcome = clear(write, self._person.files)
        return self._told(outcome, write)

    # the whole memory

    def export(self, path: str | Path, *, progress: Progress | None = None) -> Path:
        """The whole memory as one archive of Markdown and JSON Lines."""
        self._outside_chats("export")
        target = check.path("path", path)
        return export_archive(self._person, target, progress, outside=own_folders(self._person))

    def import_(
        self,
        path: str | Path,
        *,
        from_user: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """An archive made by `export`, a folder of Markdown, an MCP memory.jsonl, or mem0's export.

        If a mem0 export holds several users, ``from_user`` says whose memories to take.
        """
        self._outside_chats("import_")
        where, whose = check.path("path", path), check.optional_line("from_user", from_user)
        only_tell = check.flag("dry_run", dry_run)
        return import_any(self._person, self._acting, where, from_user=whose, dry_run=only_tell, progress=progress)

    def verify(self, *, progress: Progress | None = None) -> list[str]:
        """What does not agree between database, journal and files; an empty list if all is well."""
        self._outside_chats("verify")
        return verify(self._person, progress)

    def rebuild(self, *, force: bool = False) -> RebuildReport:
        """Repair a damaged or lost database: keep all that can be read, fill in from the files, say what is lost."""
        self._outside_chats("rebuild")
        return rebuild(self._person, force=check.flag("force", force))

    def rebuild_index(self) -> int:
        """Build the search index anew from the records; how many there are. Search does that itself when it must."""
        self._outside_chats("rebuild_index")
        return self._person.catalogue.rebuild(self._person.user)

    def embed(self, *, progress: Progress | None = None) -> int:
        """Make all vectors that are missing now, instead of in the background; how many that were."""
        self._outside_chats("embed")
        if self._person.meaning is None:
            raise ConfigError("no embedder is set; MEMORY_EMBEDDER names one")
        return self._person.meaning.embed_all(progress)

    def upkeep(self, *, dry_run: bool = False) -> UpkeepReport:
        """Remove what has expired, keep MEMORY.md short, settle the files. A dry run tells what has expired.

        Of the log of tool calls, what is older than MEMORY_CALL_RETENTION_DAYS is removed, and of interactions what
        is older than MEMORY_INTERACTION_RETENTION_DAYS.
        """
        self._outside_chats("upkeep")
        if check.flag("dry_run", dry_run):
            with self._reading(notes=True) as reader:
                return would_remove(reader, self._person.config, self._person.clock())
        upkeep = replace(self._acting, actor="upkeep")
        with self._person.write(upkeep) as write:
            self._person.files.take_over_daily(write)
            report = remove_expired(write, self._person.files)
        return replace(report, notices=tuple(write.notices))

    def notices(self) -> list[str]:
        """What the person should know and no outcome told, because it came up while reading; each once."""
        if self._acting.chat is not None:
            return []
        told, self._person.notices = self._person.notices, []
        return list(dict.fromkeys(told))

    # inside

    @contextmanager
    def _writing(self) -> Iterator[Write]:
        """An open write, behind the wall of the chat. Every verb that changes something goes through here."""
        with self._opened() if self._open is None else nullcontext(self._open) as write, write.inside(self._acting):
            yield write

    @contextmanager
    def _opened(self) -> Iterator[Write]:
        with self._person.write(self._acting) as write:
            if self._acting.chat is not None:  # what the person's edits of their files led to is told to them, not here
                self._person.notices += write.notices
                write.notices.clear()
            yield write

    def _outside_chats(self, verb: str) -> None:
        """Complain if this acts in a chat: what is done to the whole memory is done by the person."""
        if self._acting.chat is not None:
            raise InvalidInputError("chat", f"must not be given: {verb} is about the whole memory and not about a chat")

    @staticmethod
    def _told(outcome: _O, write: Write) -> _O:
        return replace(outcome, notices=tuple(write.notices)) if write.notices else outcome

    @property
    def _drafts(self) -> Drafts:
        return Drafts(self._acting, self._person.config, self._now)
