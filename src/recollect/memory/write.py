"""The one write path. Every change, by a tool, an agent, a person or an edited file, goes through a `Write`: one
transaction, one journal entry per change, checked by the policy.

`recollect.memory.files.contract` updates the files from what a write changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from recollect.config import Config
from recollect.errors import InvalidInputError, NotFoundError
from recollect.memory.acting import Acting as Acting
from recollect.memory.acting import DoneAlreadyError as DoneAlreadyError
from recollect.memory.chat_scope import common_chat, keep_chat, move_to_chat, transaction_in, visible_chats
from recollect.memory.gate import LEAST, Gate
from recollect.memory.mentions import Copy
from recollect.memory.refusals import (
    ERASED,
    mask_data,
    mask_label,
    refusal_if_paused,
    refusal_of_code,
    refusal_of_secret,
    refusal_of_secret_name,
    refusal_to_reword,
)
from recollect.memory.repetitions import just_captured, noted_already, outdone_entries
from recollect.memory.tombstones import is_persons, lines_of, text_hashes, texts_beside, tombstone_hashes
from recollect.memory.write_cache import COMPARED, WriteCache, statement_of
from recollect.policy.duplicates.comparison import Relation, Statement, relation
from recollect.policy.retention import check_kept, may_be_pruned
from recollect.policy.secrets import mask
from recollect.policy.topics import Topic
from recollect.records import (
    PENDING,
    STILL_PENDING,
    USER_EDIT,
    Conflict,
    Demoted,
    Duplicate,
    Fact,
    Forgotten,
    JournalEntry,
    Merged,
    Outcome,
    Record,
    Refused,
    Updated,
    Written,
    new_id,
)
from recollect.store.contract import Query, Tombstone, Transaction

_PROSE = frozenset({"fact", "daily", "note", "episode"})
_IN_PLACE = frozenset({"correction", "refinement"})
_FEW, _MANY = 4, 500  # facts under one key that are read at once: at first, and then


@dataclass(frozen=True, slots=True)
class Change:
    """One record before and after; ``written`` if the file already has it, because it came from there."""

    before: Record | None
    after: Record | None
    written: bool = False

    @property
    def record_id(self) -> str:
        record = self.after or self.before
        return record.id if record else ""


class Write:
    """One open write, made by `UserMemory.write`; its methods are the verbs that change a memory."""

    def __init__(self, tx: Transaction, cache: WriteCache, config: Config, now: datetime, acting: Acting) -> None:
        self.tx = tx
        """The transaction that verbs see: within `inside`, only what the chat may see."""
        self._whole = tx
        self._chat: str | None = None
        self.cache = cache
        self.config = config
        self.now = now
        self.acting = acting
        self.gate = Gate(config, now)
        self.state = tx.state()
        self.last_seq = self.state.seq
        self.changes: list[Change] = []
        self.notices: list[str] = []
        self.erased = False
        """True if something was removed permanently, by the person or because it had expired."""
        self.has_buried = False
        """True if this write left tombstones: something was erased on request and must go everywhere."""
        self.places: dict[str, int] = {}
        """The places in the receipt of an erasure; whoever removes something elsewhere adds to it."""
        self.topics: list[Topic] = []
        """Topics that were erased: they must also go from data kept outside the memory."""
        self.cleared = False
        """True if everything was erased: then all data kept outside must go."""
        self.before_erasing: Callable[[Sequence[Topic]], Sequence[Copy]] = lambda topics: ()
        self.joined_tombstones: Callable[[Record], list[Tombstone]] = lambda record: []
        """Both as in `recollect.memory.transaction.Hooks`."""

    def add_pending(self, why: str = STILL_PENDING) -> None:
        """Report in the receipt that a log or a file still holds what was erased."""
        self.places[PENDING] = self.places.get(PENDING, 0) + 1
        if why not in self.notices:
            self.notices.append(why)

    # the verbs

    def remember(
        self, record: Record, *, durable: bool = True, day: date | None = None, any_category: bool = False
    ) -> Outcome:
        """Store a new record if the policy allows it. What is not durable or not certain goes to a daily note.

        With ``any_category``, nobody chose the category of a fact: it is that of the one current fact with its key.
        """
        record = self._clean(record)
        if any_category and isinstance(record, Fact):
            record = self._in_known_category(record)
        if refused := self.refusal(record):
            return refused
        certain = not isinstance(record, Fact) or self.gate.passes(record)
        if isinstance(record, Fact):
            if not durable:
                return self._note(record, demoted=False, day=day, any_category=any_category)
            if known := self.same_key(record):
                return self._known_key(record, known, day)
            by_tool = self.acting.actor.startswith("tool:")
            if certain and by_tool and (captured := just_captured(self.tx, record, self.now)):
                return self._named(record, captured)
        similar: list[Record] = []
        if record.kind in COMPARED:
            same, similar = self._compare(record)
            if same is not None:
                return self._said_again(record, same)
        if not certain:
            assert isinstance(record, Fact)
            return self._note(record, demoted=True, day=day, any_category=any_category)
        written = self._keep("remember", None, record)
        message = f"Remembered: {written.text}"
        if similar:
            message += f" (similar to: {similar[0].text})"
        return Written(message=message, record=written, similar=tuple(similar))

    def update(
        self,
        record: Record,
        changes: dict[str, Any],
        *,
        reason: str = "update",
        note: str | None = None,
        since: datetime | None = None,
    ) -> Outcome:
        """Store a new version of a record. A correction was always true; an update holds from ``since`` or now."""
        if record.kind == "daily" and not record.entry_key and changes.get("content", record.content) != record.content:
            raise InvalidInputError("content", "of a daily note cannot be changed; jot a new entry, or erase this one")
        changed = self._clean(replace(record, **changes))
        if refused := self.refusal(changed, known=[record], inherits="source" not in changes):
            return refused
        if refused := refusal_to_reword(record, changed, by_person=self.acting.is_person):
            return refused
        if note and not is_persons(changed) and self._repeats_erased(note, anyone=True):
            note = None
        if isinstance(record, Fact) and isinstance(changed, Fact):
            if changed.category == "reading_history" != record.category:
                return self._move_to_notes(record, changed)
            is_less_certain = "confidence" in changes and record.noted_on is None and not self.gate.passes(changed)
            if is_less_certain and changed.content != record.content:  # what is certain stays
                return self._note(replace(changed, id=new_id("fact")), demoted=True, is_entry=True)
            if record.noted_on is not None or (is_less_certain and may_be_pruned(record)):
                changed = self.gate.placed(changed, record, sure="confidence" in changes)
        if changed == record:
            return Duplicate(message=f"Already so: {record.text}", record=record)
        if changed.key != record.key and isinstance(changed, Fact):
            taken = self.same_key(changed)
            if taken is not None and taken.id != record.id:
                return Conflict(message=_conflict_message(taken), record=taken)
        moves_on = changed.content != record.content and reason not in _IN_PLACE
        if moves_on:
            # without a date it holds from now; the clock may be behind the one that wrote the old value
            changed = replace(changed, valid_from=since or max(self.now, record.valid_from))
        if isinstance(changed, Fact) and changed.tier == "archive" and changed.status == "active":
            changed = replace(changed, tier="file")
        updated = self._keep("update", record, changed, reason=note or reason)
        if moves_on:
            # a value that began later never held; as of any time, the highest version that held then counts
            until = max(updated.valid_from, record.valid_from)
            self.tx.keep(replace(record, status="superseded", valid_until=until))
        return Updated(message=f"Updated: {updated.text}", record=updated, previous=record)

    def forget(self, record: Record, *, reason: str | None = None, replaced_by: str | None = None) -> Outcome:
        """Archive a record, so that search no longer finds it."""
        if record.status != "active":
            raise NotFoundError(
                f"{record.id} is already {'forgotten' if record.status == 'archived' else 'superseded'}"
            )
        if replaced_by is not None:
            if self.tx.get(replaced_by) is None:
                raise NotFoundError(f"there is no record {replaced_by} to replace it")
            changed = replace(record, status="superseded", superseded_by=replaced_by, valid_until=self.now)
        else:
            changed = replace(record, status="archived")
        forgotten = self.apply("forget", record, changed, reason=reason)
        return Forgotten(message=f"Forgotten: {record.text}", record=forgotten)

    def merge(self, records: Sequence[Record], merged: Record, *, reason: str | None = None) -> Outcome:
        """Merge several records into one; they stay as superseded."""
        merged = self._clean(merged)
        if refused := self.refusal(merged, known=records, inherits=True):
            return refused
        if refused := refusal_to_reword(records[0], merged, by_person=self.acting.is_person):
            return refused
        merged = move_to_chat(merged, common_chat(records))
        certain = True
        if isinstance(merged, Fact) and not self.gate.passes(merged) and may_be_pruned(merged):
            certain, merged = False, self.gate.uncertain(merged, self.now.date())
        run = self.acting.run or new_id("run")
        gone = []
        for record in records:  # first, so that undoing the run in reverse frees the key before it is needed
            superseded = replace(record, status="superseded", superseded_by=merged.id, valid_until=self.now)
            gone.append(self.apply("merge", record, superseded, reason=reason, run=run))
        kept = self.apply("merge", None, merged, reason=reason, run=run)
        return Merged(
            message=f"Merged {len(records)} into: {kept.text}" + ("" if certain else f" ({self.gate.shortfall(kept)})"),
            record=kept,
            merged=tuple(gone),
            run=run,
        )

    # building blocks of the verbs

    @contextmanager
    def inside(self, acting: Acting) -> Iterator[Write]:
        """Limit reads and writes to what this actor's chat may see, and record changes as made there."""
        before = self.tx, self._chat
        self.tx, self._chat = transaction_in(self._whole, acting.chat, acting.session), acting.chat
        try:
            yield self
        finally:
            self.tx, self._chat = before

    @property
    def is_walled(self) -> bool:
        """True if not everything may be seen."""
        return visible_chats(self.tx) is not None

    def shows(self, record: Record) -> bool:
        """Return True if a record may be seen."""
        chats = visible_chats(self.tx)
        return chats is None or record.chat in chats

    def likely(self, statement: Statement, kind: str) -> list[tuple[Record, Statement]]:
        """Return the few visible records of a kind that could say the same as a statement."""
        return self.cache.likely(statement, kind, self.shows if self.is_walled else None)

    def archived_copy(self, fact: Fact) -> Fact | None:
        """Return the same fact, word for word, from the archive, if it may be seen."""
        return self.cache.archived_copy(fact, self.shows if self.is_walled else None)

    def as_person(self) -> AbstractContextManager[None]:
        """Attribute changes that come from a file to the person, whoever caused it to be read."""
        return self.on_behalf(Acting(actor="person", run=new_id("run")))

    @contextmanager
    def on_behalf(self, acting: Acting) -> Iterator[None]:
        """Attribute changes to another actor for a while."""
        acting, self.acting = self.acting, acting
        try:
            yield
        finally:
            self.acting = acting

    def apply(
        self,
        op: str,
        before: Record | None,
        after: Record,
        *,
        reason: str | None = None,
        run: str | None = None,
        undoes: int | None = None,
        written: bool = False,
    ) -> Record:
        """Store one change of one record and its journal entry."""
        entry = self._entry(op, before, after, reason, run, undoes)
        assert entry.after is not None
        self.tx.put(entry.after)
        self.tx.log([entry])
        self.cache.note(entry.after)
        # the person's own file does not have yet what was written into the view that a chat has of it
        self.changes.append(Change(before, entry.after, written and not self.is_walled))
        return entry.after

    def apply_all(self, op: str, pairs: Sequence[tuple[Record, Record]], *, reason: str, run: str) -> None:
        """Apply many changes at once."""
        entries = [self._entry(op, before, after, reason, run, None) for before, after in pairs]
        changed = [entry.after for entry in entries if entry.after is not None]
        self.tx.put_many(changed)
        self.tx.log(entries)
        for (before, _), after in zip(pairs, changed, strict=True):
            self.cache.note(after)
            self.changes.append(Change(before, after))

    def _entry(
        self, op: str, before: Record | None, after: Record, reason: str | None, run: str | None, undoes: int | None
    ) -> JournalEntry:
        self.last_seq = self.tx.next_seq()
        version, updated = (before.version + 1, self.now) if before else (after.version, after.updated_at)
        after = replace(after, seq=self.last_seq, version=version, updated_at=updated)
        if op != "undo":  # undo restores the past as it was
            after = keep_chat(before, after, self._chat)
        return JournalEntry(
            seq=self.last_seq,
            at=self.now,
            actor=self.acting.actor,
            op=op,
            record_id=after.id,
            before=before,
            after=after,
            reason=None if reason is None or self._repeats_erased(reason) else mask_label(reason),
            source=after.source,
            run=run or self.acting.run,
            call=self.acting.call,
            undoes=undoes,
        )

    def mark(self, op: str, record_id: str, *, reason: str | None = None) -> None:
        """Add a journal entry about something other than a record's text: a pause, an erasure."""
        self.last_seq = self.tx.next_seq()
        entry = JournalEntry(
            seq=self.last_seq,
            at=self.now,
            actor=self.acting.actor,
            op=op,
            record_id=record_id,
            reason=None if reason is None else mask_label(reason),
            run=self.acting.run,
            call=self.acting.call,
        )
        self.tx.log([entry])

    def consent(self, name: str) -> None:
        """Record a consent, also in the journal."""
        self.tx.set_consent(name, True, self.now)
        self.mark("consent", "", reason=name)

    def withdraw(self, name: str) -> None:
        """Record the withdrawal of a consent."""
        self.tx.set_consent(name, False, self.now)
        self.mark("withdraw", "", reason=name)

    def tombstone_hash(self, record: Record) -> str:
        """Return the hash that recognises an erased record without revealing it: with its key, if it has one."""
        return tombstone_hashes(record, self.state.secret)[0]

    def buried_hashes(self, record: Record, known: Sequence[Record] = ()) -> list[str]:
        """Return the tombstones that recognise this record, or any text of it that ``known`` ones do not have."""
        secret = self.state.secret
        beside = {text for other in known for text in texts_beside(other)}
        hashes = text_hashes((text for text in texts_beside(record) if text not in beside), secret)
        if (record.key, record.content) not in {(other.key, other.content) for other in known}:
            hashes += tombstone_hashes(record, secret)
        return [one for one in hashes if one in self.cache.buried]

    def had(self, record: Record) -> bool:
        """Return True if a record was stored before this write."""
        return all(change.after is None or change.after.id != record.id or change.before for change in self.changes)

    def know_tombstones(self) -> None:
        """Recognise from now on what this write has erased. Call it after storing the tombstones."""
        self.cache.buried = {tombstone.hash for tombstone in self.tx.tombstones()}
        self.has_buried = True

    def _clean(self, record: Record) -> Record:
        """Mask secrets in messages and around a record; a secret in the text itself is refused later."""
        changes: dict[str, Any] = {}
        if record.kind == "message" and (cleaned := mask(record.content)) != record.content:
            changes["content"] = cleaned
        if record.excerpt and (cleaned := mask(record.excerpt)) != record.excerpt:
            changes["excerpt"] = cleaned
        if (cleaned := mask_label(record.source)) != record.source:
            changes["source"] = cleaned
        if record.metadata and (hidden := mask_data(record.metadata)) != record.metadata:
            changes["metadata"] = hidden
        return replace(record, **changes) if changes else record

    def paused(self) -> Refused | None:
        """Return the refusal of everybody but the person while memory is off, or None."""
        return refusal_if_paused(self.state.mode, self.config)

    def refusal(self, record: Record, known: Sequence[Record] = (), *, inherits: bool = False) -> Refused | None:
        """Return the policy's refusal of this record, or None; what ``known`` records say already may stay.

        With ``inherits`` its source is that of a known record, and so not a claim of whoever changes it.
        """
        by_person = record.source == USER_EDIT and self.acting.is_person
        if not by_person and (paused := self.paused()):
            return paused
        text = record.text
        beside = _side_text(record)
        if refused := refusal_of_secret(f"{text}\n{beside}" if beside else text):
            return refused
        if record.session and (refused := refusal_of_secret_name(record.session)):
            return refused
        if record.kind in _PROSE and (
            refused := refusal_of_code(text) or (refusal_of_code(record.content) if record.key else None)
        ):
            return refused
        if self.cache.buried and not by_person and self._is_erased(record, known, inherits):
            return Refused(reason="erased", message=ERASED)
        return None

    def refusal_of_prose(self, text: str) -> Refused | None:
        """Return the policy's refusal of a passage that somebody else writes into the person's file, or None."""
        if refused := refusal_of_secret(text) or refusal_of_code(text):
            return refused
        return Refused(reason="erased", message=ERASED) if self._repeats_erased(text) else None

    def _repeats_erased(self, text: str, *, anyone: bool = False) -> bool:
        """Return True if somebody but the person, or ``anyone``, writes an erased statement, or a line that is one."""
        if not self.cache.buried or (self.acting.is_person and not anyone):
            return False
        return bool(self._without_remembered(self._tombstones_in(text), [text]))

    def has_just_erased(self, text: str) -> bool:
        """Return True if this write erased this statement, or one that is a line of the text."""
        return any(tombstone.at >= self.now for tombstone in self._tombstones_in(text))

    def _tombstones_in(self, text: str) -> list[Tombstone]:
        hashes = [one for one in text_hashes(lines_of(text), self.state.secret) if one in self.cache.buried]
        return self.tx.tombstones(hashes) if hashes else []

    def _is_erased(self, record: Record, known: Sequence[Record], inherits: bool) -> bool:
        """Return True if the person had this erased, and it is not they who say it again."""
        acting = self.acting
        claimed = not acting.actor.startswith("tool:") and (acting.is_person or not inherits)
        if is_persons(record) and record.kind != "message" and claimed:
            return False
        found = self._tombstones_of(record, known)
        if record.kind == "message" and is_persons(record):
            return any(tombstone.at >= record.valid_from for tombstone in found)
        key = record.key if record.kind == "fact" else None
        return bool(self._without_remembered(found, [record.content, *texts_beside(record)], key))

    def _without_remembered(
        self, found: Sequence[Tombstone], texts: Iterable[str], key: str | None = None
    ) -> list[Tombstone]:
        """Return the tombstones but those of what the person had remembered again, under this key, and keeps."""
        if not found:
            return []
        again: set[str] = set()
        for line in dict.fromkeys(line for text in texts for line in lines_of(text)):
            for kind in COMPARED:
                for known, _ in self.likely(Statement.of(line, key), kind):
                    if is_persons(known) and key in (None, known.key):
                        hashes = {*tombstone_hashes(known, self.state.secret)}
                        hashes |= {one.hash for one in self.joined_tombstones(known)}
                        again |= {one.hash for one in found if one.hash in hashes and known.updated_at >= one.at}
        return [one for one in found if one.hash not in again]

    def was_erased(self, record: Record) -> bool:
        """Return True if the person had this erased after it was made, even if they had asked to remember it then."""
        return any(tombstone.at >= record.created_at for tombstone in self._tombstones_of(record))

    def _tombstones_of(self, record: Record, known: Sequence[Record] = ()) -> list[Tombstone]:
        if not self.cache.buried:
            return []
        hashes = self.buried_hashes(record, known)
        found = self.tx.tombstones(hashes) if hashes else []
        if all((record.key, record.content) != (other.key, other.content) for other in known):
            found = [*found, *self.joined_tombstones(record)]
        # working memory may have the same value again
        return [one for one in found if record.kind != "scratch" or not one.record_id.startswith("scratch-")]

    def _note(
        self,
        fact: Fact,
        *,
        demoted: bool,
        day: date | None = None,
        any_category: bool = False,
        is_entry: bool = False,
    ) -> Outcome:
        """Add a fact to a daily note: as an uncertain fact, or as an entry if it is short-lived or a mere guess."""
        kept = self.config.daily_retention_days
        day = self.gate.day_for(fact) if day is None else check_kept(day, self.now, kept)
        when = "today" if day == self.now.date() else day.isoformat()
        noted: Record
        if demoted and not is_entry and (fact.confidence >= LEAST or fact.noted_on is not None):
            noted = self.gate.uncertain(fact, day)
        else:
            noted = self.gate.entry(replace(fact, category=None) if any_category and not fact.type else fact, day)
            facts = self.likely(statement_of(noted), "fact")
            if same := noted_already(self.tx, noted, day, facts, self.now):
                return Duplicate(message=f"Already noted for {when}: {same.text}", record=same)
        written = self.apply("remember", None, noted)
        if not demoted:
            return Written(message=f"Noted for {when}: {written.text}", record=written)
        how = f"noted for {when} only" if written.kind == "daily" else f"uncertain, noted for {when}"
        return Demoted(message=f"{self.gate.shortfall(fact)}: {how}: {written.text}", record=written)

    def _keep(self, op: str, before: Record | None, after: Record, *, reason: str | None = None) -> Record:
        """Store a record, and in the same run remove the entries of daily notes that a certain fact outdoes."""
        is_certain = isinstance(after, Fact) and after.noted_on is None and self.gate.passes(after)
        outdone: list[Record] = []
        if is_certain and (before is None or before.text != after.text or before.tier != after.tier):
            assert isinstance(after, Fact)
            outdone = outdone_entries(self.tx, after, self.config.confidence_threshold, self.now)
        run = self.acting.run or (new_id("run") if outdone else None)
        for entry in outdone:  # first, as in `merge`
            gone = replace(entry, status="superseded", superseded_by=after.id, valid_until=self.now)
            self.apply("forget", entry, gone, reason="known with certainty", run=run)
        return self.apply(op, before, after, reason=reason, run=run)

    def _move_to_notes(self, fact: Fact, changed: Fact) -> Outcome:
        """Replace a fact by an entry of today's note: what was read is never in MEMORY.md."""
        with self.on_behalf(replace(self.acting, run=self.acting.run or new_id("run"))):
            self.forget(fact, reason="reading history is in the daily notes")
            noted = self._note(replace(changed, id=new_id("fact"), type=None, tier="file"), demoted=False)
        record = getattr(noted, "record", fact)
        return Updated(message=f"Updated: {record.text}", record=record, previous=fact)

    def _in_known_category(self, fact: Fact) -> Fact:
        """Return the fact in the category of the only current one that has its key, and its type if it names one."""
        if fact.key is None:
            return fact
        types = (fact.type,) if fact.type else ()
        found = self.tx.find(Query(kinds=("fact",), key=fact.key, types=types, alive_at=self.now, limit=2))
        return replace(fact, category=found[0].category) if len(found) == 1 else fact

    def same_key(self, fact: Fact) -> Fact | None:
        """Return the active fact that has the same key, if any."""
        if fact.key is None:
            return None
        query = Query(kinds=("fact",), key=fact.key, alive_at=self.now, limit=_FEW)
        while found := self.tx.find(query):  # a person may have written thousands under one key
            for other in found:
                if other.category == fact.category and (not other.type or not fact.type or other.type == fact.type):
                    assert isinstance(other, Fact)
                    return other
            query = replace(query, after=(found[-1].created_at, found[-1].id), limit=_MANY)
        return None

    def _known_key(self, fact: Fact, known: Fact, day: date | None) -> Outcome:
        if relation(statement_of(fact), statement_of(known)) is Relation.SAME:
            return self._said_again(fact, known)
        if not self.gate.passes(fact):
            return self._note(fact, demoted=True, day=day, is_entry=True)
        if known.noted_on is None or (known.trusted and not fact.trusted):
            return Conflict(message=_conflict_message(known), record=known)
        certain = self._keep("update", known, self.gate.replaced(known, fact), reason="said with certainty")
        return Updated(message=f"Remembered: {certain.text}", record=certain, previous=known)

    def _said_again(self, record: Record, known: Record) -> Outcome:
        """Return what became of something that is known: nothing, unless it was uncertain."""
        if isinstance(known, Fact) and known.noted_on is not None and isinstance(record, Fact):
            confirmed = self.gate.confirmed(known, record)
            if confirmed != known:
                changed = self._keep("update", known, confirmed, reason="said again")
                return Updated(message=f"Confirmed: {changed.text}", record=changed, previous=known)
        return Duplicate(message=f"Already known: {known.text}", record=known)

    def _named(self, fact: Fact, captured: Fact) -> Outcome:
        """Put what was captured under the key, and into the words, of a tool that stores the same."""
        taken = {name: getattr(fact, name) for name in ("key", "label", "category", "type", "content")}
        named = self.apply("update", captured, replace(captured, **taken, section=None), reason="named by a tool")
        return Updated(message=f"Remembered: {named.text}", record=named, previous=captured)

    def _compare(self, record: Record) -> tuple[Record | None, list[Record]]:
        statement = statement_of(record)
        similar: list[Record] = []
        for known, theirs in self.likely(statement, record.kind):
            if known.expires_at is not None and known.expires_at <= self.now:
                continue
            found = relation(statement, theirs)
            # the key of a relationship is the other person
            others = known.key != record.key and "relationship" in (known.type, record.type)
            if found is Relation.SAME and not others:
                return known, []
            if found is not Relation.DIFFERENT:
                similar.append(known)
        return None, similar


def _conflict_message(known: Fact) -> str:
    return f"{known.key} is already known as {known.content!r}. Update it if that has changed."


def _side_text(record: Record) -> str:
    return "\n".join([*filter(None, [getattr(record, "title", None)]), *record.tags])
