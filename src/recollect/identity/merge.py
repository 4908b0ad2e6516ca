"""Merging one memory into another, through the ordinary write path, in one transaction and under one run, as an import
does; and undoing it, in one transaction too.

A kill leaves all of it or nothing. What is already there is recognised, so the merge can be repeated for what was
written in the meantime.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from recollect.errors import NotFoundError, UndoError
from recollect.identity.erasure import bury_copied, carried, erased_before, keys_of, own_tombstones, said_again
from recollect.memory.copies import KeptCopy
from recollect.memory.erase import erase_records, tombstones_of
from recollect.memory.interaction_log import erased_interactions, store_interactions
from recollect.memory.journal import undo_target
from recollect.memory.tombstones import SEPARATED, tombstone_hashes
from recollect.memory.transaction import NO_HOOKS
from recollect.memory.transfer import StoredRecords, within_chat
from recollect.memory.user_memory import UserMemory
from recollect.memory.write import Acting, Write, mask_data
from recollect.policy.secrets import mask
from recollect.records import (
    MODES,
    USER_EDIT,
    Conflict,
    Duplicate,
    Fact,
    Interaction,
    JournalEntry,
    Record,
    Spending,
    ToolCall,
    Written,
)
from recollect.store.contract import Query, Reader, State, Tombstone

Still = Callable[[], None]
"""Raises if the joining was cancelled meanwhile; called under the user's lock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Everything that a memory brings along."""

    state: State
    records: list[Record]
    closed: dict[str, list[Record]]
    """Earlier versions, by record."""
    tombstones: list[Tombstone]
    carried: list[Tombstone]
    recalled: dict[str, datetime]
    consents: set[str]
    interactions: list[Interaction]
    calls: list[ToolCall]
    spending: list[Spending]

    @property
    def mark(self) -> dict[str, Any]:
        """A value that tells if the memory has changed since."""
        return mark_of(self.state, self.consents, self.interactions)


def mark_of(state: State, consents: Iterable[str], interactions: Sequence[Interaction]) -> dict[str, Any]:
    return {
        "secret": state.secret.hex(),
        "seq": state.seq,
        "mode": state.mode,
        "consents": sorted(consents),
        "interactions": len(interactions),
    }


def contents(reader: Reader, run: str, now: datetime) -> Contents:
    """Return the contents from one consistent view."""
    records = reader.find(Query(alive_at=now))
    return Contents(
        state=reader.state(),
        records=records,
        closed={one.id: reader.versions(one.id)[:-1] for one in records if one.version > 1},
        tombstones=own_tombstones(reader),
        carried=carried(reader, run, now),
        recalled=reader.recalled(),
        consents=set(reader.consents()),
        interactions=reader.interactions(),
        calls=reader.calls(),
        spending=reader.spending(),
    )


class Merge:
    """The merge of one memory's contents into another's. ``name`` is the identity they come from."""

    def __init__(self, person: UserMemory, brought: Contents, run: str, name: str, still: Still) -> None:
        self.person = person
        self.brought = brought
        self.counts: Counter[str] = Counter()
        self._acting = Acting(actor=f"link:{name}", run=run)
        self._run = run
        self._reason = f"joined with {name}"
        self._still = still

    def __call__(self) -> Counter[str]:
        """Merge everything; return how many records were written, already known, and so on."""
        records = sorted(self.brought.records, key=lambda one: (one.kind, one.session or "", one.valid_from, one.id))
        with self.person.write(self._acting, hooks=NO_HOOKS) as write:
            self._still()
            # a pause stops new learning, not what is already known; it holds again after this
            write.state = replace(write.state, mode="on")
            is_first = not _ends_with(write, self._run, "join")
            self._drop_what_was_erased_there(write)
            stored = StoredRecords(write)
            stored.look_up([record.id for record in records])
            for record in records:
                self.counts[self._take(write, stored, record)] += 1
            self._merge_the_rest(write)
            if is_first:
                write.tx.charge(self.brought.spending)
                self._take_over_state(write)
                write.mark("join", "", reason=self._reason)
        return self.counts

    def _drop_what_was_erased_there(self, write: Write) -> None:
        """Erase the same records here too, and forget those that merely say the same until said again."""
        if not self.brought.tombstones:
            return
        keys = keys_of(self.brought.state, self.brought.tombstones)
        by_hash: dict[str, list[Tombstone]] = {}
        for tombstone in self.brought.tombstones:
            by_hash.setdefault(tombstone.hash, []).append(tombstone)
        interactions = erased_interactions(keys, by_hash, write.tx.interactions())
        if interactions:
            write.tx.drop_interactions(ids=sorted(interactions))
        gone = {tombstone.record_id for tombstone in self.brought.tombstones} - {one.id for one in self.brought.records}
        same = write.tx.find(Query(ids=sorted(gone), statuses=()))
        if same:
            erase_records(write, self.person.files, same)
        for record in write.tx.find(Query()):
            found = [one for key in keys for hash in tombstone_hashes(record, key) for one in by_hash.get(hash, ())]
            if found and not said_again(record, found):
                write.forget(record, reason=f"erased on the other side, {self._reason}")

    def _take(self, write: Write, stored: StoredRecords, record: Record) -> str:
        """Merge one record; return what became of it."""
        if erased_before(write, record, lambda run: True):
            return "erased before"
        if stored.has_id(record):
            return "known"
        record = replace(record, seq=0)
        if (same := _same(write, stored, record)) is not None:
            if record.kind == "scratch" and same.content != record.content and record.updated_at > same.updated_at:
                return self._updated(write, same, {"content": record.content}, "correction")
            return self._kept(write, same, record)
        # a less certain one is known all the same: it must not become a daily note now
        sure = max(record.confidence, write.config.confidence_threshold)
        with within_chat(write, record.chat):
            outcome = write.remember(replace(record, confidence=sure))
        if isinstance(outcome, Written):
            if sure != record.confidence:
                lowered = replace(outcome.record, confidence=record.confidence, updated_at=record.updated_at)
                write.apply("update", outcome.record, lowered, reason=self._reason)
            for version in self.brought.closed.get(record.id, ()):
                if write.refusal(version) is None:
                    write.tx.keep(replace(_clean(version), seq=outcome.record.seq))
            return "written"
        if isinstance(outcome, Duplicate):
            return self._kept(write, outcome.record, record)
        if isinstance(outcome, Conflict) and isinstance(outcome.record, Fact):
            return self._settled(write, outcome.record, record)
        return "refused"

    def _kept(self, write: Write, known: Record, record: Record) -> str:
        """Keep the existing record, with the more important properties of the other."""
        known = write.tx.get(known.id) or known  # another of the same may have changed it just now
        changes: dict[str, Any] = {}
        if record.pinned and not known.pinned:
            changes["pinned"] = True
        if record.importance > known.importance:
            changes["importance"] = record.importance
        if known.expires_at is not None and (record.expires_at is None or record.expires_at > known.expires_at):
            changes["expires_at"] = record.expires_at
        if record.source == USER_EDIT != known.source:
            changes["source"] = USER_EDIT
        if changes and write.refusal(replace(known, **changes)) is None:
            write.apply("update", known, replace(known, **changes), reason=self._reason)
        return "known"

    def _settled(self, write: Write, known: Fact, record: Record) -> str:
        """Resolve two values of one key: the newer wins, unless the person wrote the older one by hand."""
        newer, older = sorted((known, record), key=lambda one: (one.valid_from, one.updated_at), reverse=True)
        if older.source == USER_EDIT != newer.source:
            newer, older = older, newer
        if newer is record:
            values = ("content", "source", "confidence", "expires_at", "excerpt", "messages", "agent", "trusted")
            changes = {name: getattr(record, name) for name in (*values, "session", "metadata")}
            changes["pinned"] = record.pinned or known.pinned
            changes["importance"] = max(record.importance, known.importance)
            changes["tags"] = tuple(dict.fromkeys((*known.tags, *record.tags)))
            return self._updated(write, known, changes, "update", max(record.valid_from, known.valid_from))
        lost = replace(
            record,
            status="superseded",
            superseded_by=known.id,
            valid_until=max(record.valid_from, known.valid_from),
            tier="archive",
        )
        if write.refusal(lost) is not None:
            return "refused"
        write.apply("merge", None, _clean(lost), reason=self._reason)
        return "superseded"

    def _updated(
        self, write: Write, known: Record, changes: dict[str, Any], reason: str, since: datetime | None = None
    ) -> str:
        outcome = write.update(known, changes, reason=reason, note=self._reason, since=since)
        return "updated" if outcome.done else "refused"

    def _merge_the_rest(self, write: Write) -> None:
        """Merge what is not a record and can be merged repeatedly."""
        brought, tx = self.brought, write.tx
        erased = erased_interactions(keys_of(write.state, own_tombstones(tx)), write.cache.buried, brought.interactions)
        store_interactions(tx, [one for one in brought.interactions if one.id not in erased], write.now)
        tx.log_calls(brought.calls)
        tx.set_recalled({ref: at for ref, at in brought.recalled.items() if tx.get(ref) is not None})
        if brought.carried:
            tx.bury(brought.carried)
            write.know_tombstones()

    def _take_over_state(self, write: Write) -> None:
        """Choose the more careful state: paused if either is, and only consents that both gave."""
        mode = max(write.tx.state().mode, self.brought.state.mode, key=MODES.index)
        if mode != write.tx.state().mode:
            write.tx.set_mode(mode)
            write.mark({"paused": "pause"}.get(mode, mode), "", reason=self._reason)
        given, is_new = set(write.tx.consents()), self._was_empty(write)
        for name in sorted(self.brought.consents - given if is_new else given - self.brought.consents):
            (write.consent if is_new else write.withdraw)(name)

    def _was_empty(self, write: Write) -> bool:
        """Return True if nothing but this joining ever happened here: then no consent was refused."""
        return all(entry.run == self._run for entry in write.tx.entries(limit=1))


def take_back(
    person: UserMemory, run: str, details: dict[str, Any], name: str, still: Callable[[], bool], erased: KeptCopy | None
) -> tuple[int, int]:
    """Undo a joining in the surviving memory, if that is ``still`` to be done; return the numbers of changes reverted
    and kept.

    What came only by it is removed; what was changed again since was learned together and stays. With the copy of a
    memory that is ``erased``, it is not learned again. Otherwise it may be, but an old file does not bring it back.
    """
    acting = Acting(actor=f"link:{name}", run=f"{run}-undo")
    done = kept = 0
    gone: list[Record] = []
    with person.write(acting, hooks=NO_HOOKS) as write:
        if not still():
            return 0, 0
        is_first = not _ends_with(write, f"{run}-undo", "unjoin")
        for entry in write.tx.entries(run=run, newest_first=True):
            if entry.after is None:
                continue
            if _take_back(write, entry):
                done += 1
            elif not write.tx.entries(undoes=entry.seq, limit=1):
                kept += 1
                continue
            record = write.tx.get(entry.record_id)
            if entry.before is None and record is not None and record.status == "archived":
                gone.append(record)
        if gone:
            if erased is None:
                write.tx.bury(tombstone for record in gone for tombstone in _separated(write, record))
            erase_records(write, person.files, gone, bury=erased is not None)
            write.know_tombstones()
        if erased is not None:
            for entry in write.tx.entries(run=run):
                _redact(write, entry)
            bury_copied(write, erased.states())
        _restore_state(write, details)
        if is_first:
            write.mark("unjoin", "", reason=f"no longer joined with {name}")
    return done, kept


def erase_brought(person: UserMemory, copy: KeptCopy, interactions: Sequence[str]) -> None:
    """Erase what an erased user's memory brought into this one by way of others, as far as it is unchanged."""
    states = copy.states()
    said = {state.id: state.content for state in states}
    with person.write(Acting(actor=f"link:{copy.name}"), hooks=NO_HOOKS) as write:
        found = write.tx.find(Query(ids=sorted(said), statuses=()))
        if gone := [record for record in found if record.content == said[record.id]]:
            erase_records(write, person.files, gone)
        write.tx.drop_interactions(ids=interactions)
        bury_copied(write, states)


def _redact(write: Write, entry: JournalEntry) -> None:
    """Remove the value that a joining gave to a record, and that was taken back, from its history."""
    brought, record = entry.after, write.tx.get(entry.record_id)
    if (
        entry.before is None
        or brought is None
        or record is None
        or brought.content
        in (
            entry.before.content,
            record.content,
        )
    ):
        return

    def rest(state: Record | None) -> Record | None:
        return None if state is not None and state.content == brought.content else state

    write.tx.bury(tombstones_of(write, brought))
    history = [(one, rest(one.before), rest(one.after)) for one in write.tx.entries(record_id=record.id)]
    write.tx.redact(
        replace(one, before=before, after=after)
        for one, before, after in history
        if (before, after) != (one.before, one.after)
    )
    write.tx.drop_versions((one.id, one.version) for one in write.tx.versions(record.id)[:-1] if rest(one) is None)
    write.erased = True
    write.know_tombstones()


def _separated(write: Write, record: Record) -> set[Tombstone]:
    said = [record, *write.tx.versions(record.id)]
    return {Tombstone(hash=SEPARATED + write.tombstone_hash(one), record_id=one.id, at=write.now) for one in said}


def _ends_with(write: Write, run: str, op: str) -> bool:
    """Return whether the last entry of a run is this one: then all of the run is done."""
    return any(entry.op == op for entry in write.tx.entries(run=run, newest_first=True, limit=1))


def _take_back(write: Write, entry: JournalEntry) -> bool:
    try:
        undo_target(write, entry.seq)
    except (UndoError, NotFoundError):
        return False
    return True


def _restore_state(write: Write, details: dict[str, Any]) -> None:
    """Restore mode, consents and interactions, unless somebody changed them since."""
    tx = write.tx
    brought = set(details.get("interactions", ()))
    if brought:
        kept = [one for one in tx.interactions() if one.id not in brought]
        tx.drop_interactions()
        tx.put_interactions(kept)
    before, joined = details.get("before", {}), details.get("mark", {})
    mode = tx.state().mode
    if mode != before.get("mode", mode) and mode == joined["mode"]:
        tx.set_mode(before["mode"])
        write.mark({"on": "resume", "paused": "pause"}.get(before["mode"], before["mode"]), "")
    own, theirs = set(before.get("consents", ())), set(joined.get("consents", ()))
    for name in sorted(own - theirs - set(tx.consents())):
        write.consent(name)
    for name in sorted(theirs & set(tx.consents()) - own):
        write.withdraw(name)


def state_before(reader: Reader, interactions: Sequence[Interaction]) -> dict[str, Any]:
    """Return the state that a joining changes and that no journal entry reverts."""
    known = {one.id for one in reader.interactions(ids=[one.id for one in interactions])} if interactions else set()
    return {
        "before": {"mode": reader.state().mode, "consents": sorted(reader.consents())},
        "interactions": [one.id for one in interactions if one.id not in known],
    }


def memory_of(person: UserMemory) -> bool:
    """Return True if there is a memory, in the database or by hand in a file."""
    return person.user.exists() or person.files.any_text()


def secret_of(person: UserMemory) -> str:
    """Return what tells one life of a memory from another."""
    with person.user.read() as reader:
        return reader.state().secret.hex()


def _same(write: Write, stored: StoredRecords, record: Record) -> Record | None:
    """Return the same record at the same place, for kinds that the write path does not compare."""
    known = stored.same(record)
    same = None if known is None else write.tx.get(known.id)
    return None if same is None or (record.kind == "message" and same.session != record.session) else same


def _clean(record: Record) -> Record:
    return replace(record, excerpt=record.excerpt and mask(record.excerpt), metadata=mask_data(record.metadata))
