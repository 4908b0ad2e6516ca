"""The memory of one user: the façade over the core. The methods are short; the work is done below.

memory = recollect.open("data/memory").user("u1")
memory.remember("Senior engineer at Stripe", key="role", category="work_context")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from recollect import fields
from recollect.errors import ConfigError, InvalidInputError, NotFoundError
from recollect.fields import as_day, as_moment
from recollect.memory.erase import erase_everything, erase_records, erase_topic, records_mentioning
from recollect.memory.files.contract import MEMORY, daily_name
from recollect.memory.files.edit import edit_file
from recollect.memory.journal import Progress, last_target, undo_target, verify_memory
from recollect.memory.rebuild import RebuildReport, rebuild_memory
from recollect.memory.record_builders import RecordBuilders
from recollect.memory.references import find_message, find_record, find_records, find_to_change
from recollect.memory.report_verbs import ReportVerbs
from recollect.memory.transfer import ImportReport, export_archive, import_any, own_folders
from recollect.memory.upkeep import UpkeepReport, mark_important, remove_expired, to_learn_from, would_remove
from recollect.memory.write import Write
from recollect.records import Erased, Outcome, Receipt, Record, Refused, Undone
from recollect.store.contract import Query
from recollect.verbs import verb

TOGETHER = "Not stored: another one, given together with it, was refused."
_O = TypeVar("_O", bound=Outcome)


class Memory(ReportVerbs):
    """One user's memory. Get it from `Recollect.user`; it is safe to share between threads."""

    @verb(scope="read", elsewhere="the header Recollect-Acting")
    def acting(
        self,
        actor: fields.Actor | None = None,
        *,
        agent: fields.Agent | None = None,
        session: fields.Conversation | None = None,
        chat: fields.Chat | None = None,
        run: fields.RunId | None = None,
        call: fields.CallId | None = None,
        trusted: fields.Trusted | None = None,
    ) -> Self:
        """Return the same memory acting on behalf of someone; the journal records it.

        With a ``chat``, what was said in other chats is neither shown nor compared nor changed, unless the person gave
        the consent "across_chats". In a group (a chat whose name begins with "group:") only what was said there is
        visible, because others read along.
        """
        given = {"actor": actor, "agent": agent, "session": session, "chat": chat, "run": run, "call": call}
        changed = {name: value for name, value in (given | {"trusted": trusted}).items() if value is not None}
        return self._on_behalf(changed)

    def _unless(self, may_be_done: Callable[[], bool]) -> Memory:
        """Return the same memory for a call that another process may also make; raises `DoneAlreadyError` if it has."""
        return Memory(self._user_memory, replace(self._acting, may_be_done=may_be_done), self._open)

    @verb(scope="write", elsewhere="POST /v1/users/{user}/batch")
    @contextmanager
    def batch(self) -> Iterator[Memory]:
        """Make many changes in one transaction: all of them are durable at the end, or none is."""
        if self._open is not None:
            yield self
            return
        if self._acting.is_person:  # they may erase, and pending log entries cannot be written inside a batch
            self._user_memory.settle()
        with self._opened() as write:
            yield Memory(self._user_memory, self._acting, write)

    # writing

    @verb(scope="write", batch=True)
    def remember(
        self,
        content: fields.FactText,
        *,
        key: fields.Key | None = None,
        category: fields.FactCategory | None = None,
        type: fields.FactType | None = None,
        durability: fields.Durability = "durable",
        confidence: fields.Confidence = 1.0,
        importance: fields.Importance = 0.5,
        source: fields.Source = "explicit",
        excerpt: fields.Excerpt | None = None,
        messages: fields.Messages = (),
        tags: fields.Tags = (),
        valid_from: fields.ValidFrom | None = None,
        expires_at: fields.ExpiresAt | None = None,
        pinned: fields.Pinned = False,
        day: fields.NoteDay | None = None,
        metadata: fields.Metadata | None = None,
    ) -> Outcome:
        """Remember a fact about the user, under a key or as a sentence.

        What is not durable goes to the daily note of ``day``, by default today's, and so does the reading history. A
        fact that is not certain enough is shown there too, until it is confirmed by being said again. Without a
        category, a key that one current fact has means that fact: its category is used.
        """
        fact = self._drafts.fact(
            content,
            key=key,
            category=category,
            type=type,
            pinned=pinned,
            valid_from=as_moment(valid_from),
            expires_at=as_moment(expires_at),
            confidence=confidence,
            importance=importance,
            source=source,
            excerpt=excerpt,
            messages=messages,
            tags=tags,
            metadata=metadata,
        )
        durable = durability == "durable" and category != "reading_history"
        return self._remember(fact, durable=durable, day=as_day(day), any_category=category is None)

    @verb(scope="write", batch=True)
    def note(
        self,
        content: fields.Text,
        *,
        title: fields.Title | None = None,
        tags: fields.Tags = (),
        source: fields.Source = "explicit",
        importance: fields.Importance = 0.5,
        metadata: fields.Metadata | None = None,
    ) -> Outcome:
        """Store a free text with a stable id."""
        note = self._drafts.note(
            content, title=title, tags=tags, source=source, importance=importance, metadata=metadata
        )
        return self._remember(note)

    @verb(scope="write", batch=True)
    def observe(
        self,
        content: fields.Text,
        category: fields.ObservationCategory,
        *,
        source: fields.Source = "explicit",
        confidence: fields.Confidence = 1.0,
        excerpt: fields.Excerpt | None = None,
        messages: fields.Messages = (),
        tags: fields.Tags = (),
        said_at: fields.SaidAt | None = None,
        metadata: fields.Metadata | None = None,
    ) -> Outcome:
        """Store a finding, an insight or a lesson."""
        observation = self._drafts.observation(
            content,
            category,
            said_at=as_moment(said_at),
            source=source,
            confidence=confidence,
            excerpt=excerpt,
            messages=messages,
            tags=tags,
            metadata=metadata,
        )
        return self._remember(observation)

    @verb(scope="write", batch=True)
    def remember_fil(
        self,
        findings: fields.Findings = (),
        insights: fields.Insights = (),
        lessons: fields.Lessons = (),
        source: fields.Source = "explicit",
    ) -> list[Outcome]:
        """Store the findings, insights and lessons of a step: all of them, or none if one is refused."""
        groups = {"finding": findings, "insight": insights, "lesson": lessons}
        drafted = [
            self._drafts.observation(text, name, source=source) for name, texts in groups.items() for text in texts
        ]
        if not drafted:
            return []
        with self._writing() as write:
            refused = [write.refusal(one) for one in drafted]
            if any(refused):
                return _all_refused(refused)
            outcomes = [write.remember(one) for one in drafted]
        return [self._told(outcome, write) for outcome in outcomes]

    @verb(scope="write", batch=True)
    def episode(
        self,
        topic: fields.EpisodeTopic,
        summary: fields.Summary,
        *,
        importance: fields.Importance = 0.7,
        valence: fields.Valence = "neutral",
        tags: fields.Tags = (),
        messages: fields.Messages = (),
        participants: fields.Participants = (),
        source: fields.Source = "explicit",
        metadata: fields.Metadata | None = None,
    ) -> Outcome:
        """Store a stretch of conversation worth remembering as a whole."""
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

    @verb(scope="write", batch=True)
    def say(
        self,
        content: fields.Text,
        *,
        session: fields.Conversation | None = None,
        role: fields.Role = "user",
        speaker: fields.Speaker | None = None,
        said_at: fields.SaidAt | None = None,
        source: fields.Source = "conversation",
        metadata: fields.Metadata | None = None,
    ) -> Outcome:
        """Store one message of a conversation. Secrets in it are masked."""
        when = as_moment(said_at)
        message = self._drafts.message(
            content, session=session, role=role, speaker=speaker, said_at=when, source=source, metadata=metadata
        )
        return self._remember(message)

    @verb(scope="write", batch=True)
    def jot(
        self,
        content: fields.FactText,
        *,
        section: fields.Section | None = None,
        day: fields.NoteDay | None = None,
        source: fields.Source = "explicit",
        confidence: fields.Confidence = 1.0,
        metadata: fields.Metadata | None = None,
    ) -> Outcome:
        """Add an entry to a daily note, by default today's."""
        when = as_day(day)
        entry = self._drafts.daily(
            content, section=section, day=when, source=source, confidence=confidence, metadata=metadata
        )
        return self._remember(entry)

    @verb(scope="write", batch=True)
    def set_scratch(self, key: fields.ScratchKey, value: fields.ScratchText) -> Outcome:
        """Store a value under a key in working memory, replacing the previous one."""
        item = self._drafts.scratch(key, value)
        with self._writing() as write:
            known = write.tx.find(Query(kinds=("scratch",), key=key))
            said = {"content": item.content}
            outcome = write.update(known[0], said, reason="correction") if known else write.remember(item)
        return self._told(outcome, write)

    def _remember(self, record: Record, **how: Any) -> Outcome:
        with self._writing() as write:
            outcome = write.remember(record, **how)
        return self._told(outcome, write)

    @verb(scope="write", batch=True)
    def update(
        self,
        ref: fields.Ref,
        content: fields.NewText | None = None,
        *,
        category: fields.AnyCategory | None = None,
        type: fields.FactType | None = None,
        key: fields.Key | None = None,
        confidence: fields.Confidence | None = None,
        importance: fields.Importance | None = None,
        pinned: fields.Pinned | None = None,
        tags: fields.Tags | None = None,
        source: fields.NewSource | None = None,
        excerpt: fields.Excerpt | None = None,
        messages: fields.Messages | None = None,
        reason: fields.ChangeReason = "update",
        note: fields.Note | None = None,
        valid_from: fields.ValidFrom | None = None,
        metadata: fields.Metadata | None = None,
    ) -> Outcome:
        """Store a new version of a record, by id or key. If there is no such record, the error names the nearest keys.

        The reason says what happens to the old value: after an update or contradiction it held until now, after a
        correction or refinement it never did. Category and type select the record if several have the key; otherwise
        they are changed.
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
        with self._writing() as write:
            record = find_to_change(write.tx, ref, category, type, may_be_new=content is not None, alive_at=self._now)
            changes = self._drafts.changes(record, given, reason)
            outcome = write.update(record, changes, reason=reason, note=note, since=as_moment(valid_from))
        return self._told(outcome, write)

    @verb(scope="write")
    def edit(
        self, text: fields.FileText, *, day: fields.NoteDay | None = None, expect: fields.FileSeen | None = None
    ) -> Outcome:
        """Replace the text of MEMORY.md, or of the daily note of a day, as if saved in an editor.

        Lines that are added, changed, moved or missing become changes of records, which `undo` reverts together by the
        outcome's run. Text that is not a fact is kept in the file byte for byte and is not undone. With ``expect``, the
        text this one was made from, nothing happens if the file has changed since. The person's own edits are always
        accepted; for others, the policy refuses the whole text because of one line. A memory without files keeps only
        the records: a notice says what else was dropped, and a refused line refuses the text for anyone.
        """
        when = as_day(day)
        name = MEMORY if when is None else daily_name(when)
        with self._writing() as write:
            outcome = edit_file(write, self._files(write.tx), self._acting, name, text, expect)
        return self._told(outcome, write)

    @verb(scope="write", batch=True)
    def forget(
        self,
        ref: fields.Ref,
        *,
        category: fields.AnyCategory | None = None,
        type: fields.FactType | None = None,
        reason: fields.Reason | None = None,
        replaced_by: fields.ReplacedBy | None = None,
    ) -> Outcome:
        """Remove a record from search but keep it in the journal; `undo` brings it back."""
        with self._writing() as write:
            record = find_record(write.tx, ref, category=category, fact_type=type, alive_at=self._now)
            outcome = write.forget(record, reason=reason, replaced_by=replaced_by)
        return self._told(outcome, write)

    @verb(scope="write", batch=True)
    def merge(
        self,
        refs: fields.MergedRefs,
        content: fields.MergedText,
        *,
        confidence: fields.Confidence | None = None,
        reason: fields.Reason | None = None,
    ) -> Outcome:
        """Merge several facts, or several notes, into one. It keeps the key of the first that has one."""
        with self._writing() as write:
            named = [find_record(write.tx, ref) for ref in refs]
            records = list({record.id: record for record in named}.values())
            if len(records) < 2 or len({record.kind for record in records}) > 1:
                raise InvalidInputError("refs", "must name at least two different records of the same kind")
            for record in records:
                if record.status != "active":
                    raise NotFoundError(f"{record.id} is no longer active")
            merged = self._drafts.merged(records, content, confidence)
            outcome = write.merge(records, merged, reason=reason)
        return self._told(outcome, write)

    @verb(scope="write", batch=True)
    def pin(self, ref: fields.Ref, pinned: fields.Pinned = True) -> Outcome:
        """Pin a fact, so that it is never pruned from MEMORY.md, or unpin it."""
        return self.update(ref, pinned=pinned)

    @verb(scope="write", batch=True)
    def mark_important(
        self, messages: fields.MarkedMessages, level: fields.Level, *, reason: fields.Reason | None = None
    ) -> list[Record]:
        """Keep messages longer: 60 days for high, 365 for critical."""
        with self._writing() as write:
            found = [find_message(write.tx, ref) for ref in messages]
            return mark_important(write, found, level, reason)

    @verb(scope="write", batch=True)
    def pause(self, *, incognito: fields.Incognito = False) -> None:
        """Store nothing until `resume`; with ``incognito``, find nothing either."""
        self._switch("incognito" if incognito else "paused")

    @verb(scope="write", batch=True)
    def resume(self) -> None:
        """Store and find again after `pause`."""
        self._switch("on")

    def _switch(self, mode: str) -> None:
        with self._writing() as write:
            if write.state.mode != mode:
                write.tx.set_mode(mode)
                write.state = replace(write.state, mode=mode)
                write.mark({"on": "resume", "paused": "pause"}.get(mode, mode), "")

    @verb(scope="write", batch=True)
    def consent(self, name: fields.ConsentName, given: fields.Given = True) -> None:
        """Give a consent, or withdraw it.

        "across_chats": facts learned in one chat may be used in another. "trends": memories may be counted in
        aggregates over many users.
        """
        with self._writing() as write:
            if given != (name in write.tx.consents()):
                (write.consent if given else write.withdraw)(name)

    # undo and erasure

    @verb(scope="write", batch=True)
    def undo(self, target: fields.EntryOrRun | None = None) -> Undone:
        """Undo a journal entry by number, a run by id, or the last change of a record.

        Messages, working memory, settings and links are not meant by the last change.
        """
        with self._writing() as write:
            outcome = undo_target(write, last_target(write.tx) if target is None else target)
        return self._told(outcome, write)

    @verb(scope="write", batch=True, erases=True)
    def erase(self, *refs: fields.Ref) -> Erased:
        """Remove records everywhere, permanently. Only tombstones stay, so that they are not learned again."""
        self._outside_chats("erase")
        with self._writing() as write:
            write.before_erasing(())
            found = {r.id: r for ref in refs for r in find_records(write.tx, ref, any_status=True)}
            outcome = erase_records(write, self._user_memory.files, list(found.values()))
        return self._told(outcome, write)

    @verb(scope="write", erases=True)
    def erase_topic(
        self, topic: fields.Topic, *, dry_run: fields.DryRun = False
    ) -> tuple[list[Record], Receipt | None]:
        """Remove everything that mentions a topic, everywhere. A dry run lists the records."""
        self._outside_chats("erase_topic")
        if dry_run or not self.exists:
            self._user_memory.before_erasing(())  # before reading: it may have to complete a link
            with self._reading(notes=True) as reader:
                return records_mentioning(reader, topic, self._user_memory.before_erasing), None
        self._user_memory.settle()
        with self._writing() as write:
            found, receipt = erase_topic(write, self._user_memory.files, topic)
        return found, replace(receipt, notices=tuple(write.notices)) if receipt.places else None

    @verb(scope="write", erases=True)
    def clear(self) -> Erased:
        """Erase everything about this user and start again with an empty MEMORY.md."""
        self._outside_chats("clear")
        self._user_memory.settle()  # otherwise a pending tool call would be logged afterwards
        with self._writing() as write:
            outcome = erase_everything(write, self._user_memory.files)
        return self._told(outcome, write)

    # the whole memory

    @verb(scope="read", elsewhere="GET /v1/users/{user}/export, a stream")
    def export(self, path: fields.PathName, *, progress: Progress | None = None) -> Path:
        """Export the whole memory as one archive of Markdown and JSON Lines."""
        self._outside_chats("export")
        return export_archive(self._user_memory, Path(path), progress, outside=own_folders(self._user_memory))

    @verb(scope="write", elsewhere="POST /v1/users/{user}/import, a stream")
    def import_(
        self,
        path: fields.PathName,
        *,
        from_user: fields.FromUser | None = None,
        dry_run: fields.DryRun = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import an archive made by `export`, a folder of Markdown, an MCP memory.jsonl, or a mem0 export.

        If a mem0 export has several users, ``from_user`` selects one.
        """
        self._outside_chats("import_")
        return import_any(
            self._user_memory, self._acting, Path(path), from_user=from_user, dry_run=dry_run, progress=progress
        )

    @verb(scope="read", method="GET")
    def verify(self, *, progress: Progress | None = None) -> list[str]:
        """Return the disagreements between database, journal and files; an empty list if all is well."""
        self._outside_chats("verify")
        return verify_memory(self._user_memory, progress)

    @verb(scope="admin")
    def rebuild(self, *, force: fields.Force = False) -> RebuildReport:
        """Repair a damaged or lost database: keep what can be read, restore from the files, report what is lost."""
        self._outside_chats("rebuild")
        return rebuild_memory(self._user_memory, force=force)

    @verb(scope="admin")
    def rebuild_index(self) -> int:
        """Rebuild the search index from the records; return their number. Search does this by itself when necessary."""
        self._outside_chats("rebuild_index")
        return self._user_memory.index.rebuild(self._user_memory.user)

    @verb(scope="admin")
    def embed(self, *, progress: Progress | None = None) -> int:
        """Create all missing vectors now instead of in the background; return their number."""
        self._outside_chats("embed")
        if self._user_memory.vectors is None:
            raise ConfigError("no embedder is configured; set MEMORY_EMBEDDER")
        return self._user_memory.vectors.embed_all(progress)

    @verb(scope="admin")
    def upkeep(self, *, dry_run: fields.DryRun = False) -> UpkeepReport:
        """Remove what has expired, keep MEMORY.md short, and settle the files. A dry run reports what has expired.

        Messages and interactions are learned from before they expire: while memory is off, they stay.
        Tool calls older than MEMORY_CALL_RETENTION_DAYS and interactions older than MEMORY_INTERACTION_RETENTION_DAYS
        are removed too.
        """
        self._outside_chats("upkeep")
        with self._reading(notes=True) as reader:
            config, now = self._user_memory.config, self._user_memory.clock()
            if dry_run:
                return would_remove(reader, config, now)
            is_on, due = reader.state().mode == "on", to_learn_from(reader, config, now)
        learned = due.difference(self._user_memory.learn()) if due and is_on else ()
        upkeep = replace(self._acting, actor="upkeep")
        with self._user_memory.write(upkeep) as write:
            self._user_memory.files.take_over_daily(write)
            report = remove_expired(write, self._user_memory.files, learned)
        return replace(report, notices=tuple(write.notices))

    @verb(scope="write")
    def notices(self) -> list[str]:
        """Return notices for the user that came up while reading and that no outcome included; each once."""
        if self._acting.chat is not None:
            return []
        told, self._user_memory.notices = self._user_memory.notices, []
        return list(dict.fromkeys(told))

    # inside

    def _on_behalf(self, changed: dict[str, Any]) -> Self:
        return type(self)(self._user_memory, replace(self._acting, **changed), self._open)

    @contextmanager
    def _writing(self) -> Iterator[Write]:
        """Open a write with the chat's view. Every verb that changes something goes through here."""
        with self._opened() if self._open is None else nullcontext(self._open) as write, write.inside(self._acting):
            yield write

    @contextmanager
    def _opened(self) -> Iterator[Write]:
        with self._user_memory.write(self._acting) as write:
            if self._acting.chat is not None:  # notices about edits of files are for the person, not for this chat
                self._user_memory.notices += write.notices
                write.notices.clear()
            yield write

    def _outside_chats(self, verb: str) -> None:
        """Raise an error if this acts in a chat: only the person may change the whole memory."""
        if self._acting.chat is not None:
            raise InvalidInputError("chat", f"must not be given: {verb} concerns the whole memory")

    @staticmethod
    def _told(outcome: _O, write: Write) -> _O:
        return replace(outcome, notices=tuple(write.notices)) if write.notices else outcome

    @property
    def _drafts(self) -> RecordBuilders:
        return RecordBuilders(self._acting, self._user_memory.config, self._now)


def _all_refused(refusals: Sequence[Refused | None]) -> list[Outcome]:
    """Return the outcomes of records that are stored together or not at all, if some of them are refused."""
    first = next(one for one in refusals if one is not None)
    others = replace(first, message=TOGETHER)
    return [one or others for one in refusals]
