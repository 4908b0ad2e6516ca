"""The transaction of one user: the only code that commits a write or rolls it back.

A write changes five things that must agree afterwards: the store, the files a person reads, the duplicate candidates,
the search index, and the vectors. The store decides. Everything else is either derived from it or recognised
by it, so whatever fails, and wherever the process is killed, the rest can be brought back to what the store says:

=========================  ===========================================  ===============================================
moment                     what happens                                 if it fails, or the process is killed
=========================  ===========================================  ===============================================
begin, lock held           candidates and edited files are read         nothing has changed
the caller's changes       the store's transaction, and in memory       the store rolls back, memory is put right here
prepare, lock held         hooks, pruning, files written aside,         the same; the files written aside are deleted
                           the snapshot of erased words deleted
the store commits          from here on the write is acknowledged       the file written aside tells whether it did
commit, lock still held    files exchanged, candidates kept             finished by the next write (`placement`)
finish, lock released      the index and the vectors follow             they catch up by sequence number on their own
=========================  ===========================================  ===============================================

What breaks if the order is changed:

- Files are written aside before the commit. After it, a full disk would fail a write that is acknowledged.
- They are exchanged after the commit and under the lock. Before it, a failed write would be seen in MEMORY.md and be
  taken over as if the person had typed it; without the lock, the next writer would take our exchange for an edit.
- The snapshot is deleted before an erasure is committed. After it, a kill in between leaves erased words on disk.
- The index follows after the lock is released: it opens a reader, and nobody opens a reader while holding the
  index (see `recollect.memory.user_index`).
- After `StoreUnavailableError` nothing aside is deleted: the lock went with the connection, and by now it may be
  another process that wrote there. After any other failure it is deleted while the lock is still held, because only
  then it is certainly ours.
- A failed commit is not proof that nothing was stored: the answer may have been lost. So what is aside stays
  (``keep=True``), and the next write compares it with the fingerprint in the store.

Locks are taken in this order: the turn of the user's threads (`UserMemory`), the user's lock in the store, the index.
docs/concurrency.md has all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Protocol

from recollect.config import Config
from recollect.errors import StoreUnavailableError
from recollect.memory.files.contract import Files
from recollect.memory.mentions import Copy
from recollect.memory.user_index import UserIndex
from recollect.memory.vectors import UserVectors
from recollect.memory.write import Acting, DoneAlreadyError, Write
from recollect.memory.write_cache import WriteCache
from recollect.policy.retention import may_be_pruned, value
from recollect.policy.topics import Topic
from recollect.records import Record, new_id
from recollect.store.contract import Tombstone, Transaction, UserStore
from recollect.times import Clock

_ROOM_AFTER_PRUNING = 0.9


class Hooks(Protocol):
    """The application's additions to the writes of a user."""

    def before_erasing(self, topics: Sequence[Topic] = ()) -> Sequence[Copy]:
        """Return the copies that an erasure here erases too: all, or only those that mention these topics.

        Raises an error while something that may have to be erased is on its way into this memory.
        """
        ...

    def joined_tombstones(self, write: Write, record: Record) -> list[Tombstone]:
        """Return the tombstones of joined memories that recognise this record."""
        ...

    def before_commit(self, write: Write) -> None:
        """Inspect a write and add to it. The user's lock is held; an error rolls everything back."""
        ...

    def after_commit(self, acting: Acting) -> None:
        """Continue after a write. No lock is held."""
        ...

    def on_error(self, error: BaseException) -> None:
        """Raise a better error than the one that ended a write, or return to have that one raised. No lock is held."""
        ...


class NoHooks:
    """Hooks that do nothing."""

    def before_erasing(self, topics: Sequence[Topic] = ()) -> Sequence[Copy]:
        return ()

    def joined_tombstones(self, write: Write, record: Record) -> list[Tombstone]:
        return []

    def before_commit(self, write: Write) -> None:
        pass

    def after_commit(self, acting: Acting) -> None:
        pass

    def on_error(self, error: BaseException) -> None:
        pass


NO_HOOKS: Hooks = NoHooks()


@dataclass(frozen=True, slots=True)
class Participants:
    """Everything that must agree with the store after a write."""

    files: Files
    candidates: WriteCache
    index: UserIndex
    vectors: UserVectors | None
    recalled: dict[str, datetime]
    """Record ids found by searches but not stored yet. Searches add to it at any time."""


class UserTransaction:
    """One write of one user, from the lock to the end. Use it once."""

    def __init__(
        self, user: UserStore, parts: Participants, config: Config, clock: Clock, acting: Acting, hooks: Hooks
    ) -> None:
        self._user = user
        self._parts = parts
        self._config = config
        self._clock = clock
        self._acting = acting
        self._hooks = hooks
        self._recalled: dict[str, datetime] = {}
        self._committed = False

    @contextmanager
    def open(self) -> Iterator[Write]:
        """Yield the write; commit it at the end, or roll it back."""
        try:
            with self._user.write() as tx:
                write = self._begin(tx)
                with self._files_discarded_on_error():
                    self._parts.files.take_over(write)
                    yield write
                    self._prepare(write)
            self._finish(write, pending=tx.pending)
        except BaseException:
            if not self._committed:
                self._roll_back()
            raise

    def _begin(self, tx: Transaction) -> Write:
        """Read what the write must know. Its commit hook is the first: it runs before the files are exchanged."""
        self._parts.candidates.begin(tx, tx.state())
        may_be_done = self._acting.may_be_done is not None and self._acting.may_be_done()
        if may_be_done and tx.entries(call=self._acting.call, limit=1):
            raise DoneAlreadyError()
        write = Write(tx, self._parts.candidates, self._config, self._clock(), self._acting)
        write.before_erasing = self._hooks.before_erasing
        write.joined_tombstones = partial(self._hooks.joined_tombstones, write)
        tx.after_commit(lambda: self._commit(write))
        return write

    def _prepare(self, write: Write) -> None:
        """Do everything that can fail."""
        self._hooks.before_commit(write)
        prune(write, self._parts.files, self._parts.recalled)
        self._parts.files.publish(write)
        self._recalled = dict(self._parts.recalled)
        if self._recalled:
            write.tx.set_recalled(self._recalled)
        if write.erased:
            self._parts.index.drop()

    def _commit(self, write: Write) -> None:
        """Follow the store, which has just committed. Must not fail."""
        self._committed = True
        self._parts.candidates.commit(write.last_seq)
        for record_id, moment in self._recalled.items():
            if self._parts.recalled.get(record_id) == moment:  # otherwise it was found again meanwhile
                self._parts.recalled.pop(record_id, None)

    def _finish(self, write: Write, *, pending: bool) -> None:
        if pending:
            write.add_pending()
        self._parts.index.commit(write.last_seq, erased=write.erased)
        if self._parts.vectors is not None:
            self._parts.vectors.soon()

    def _roll_back(self) -> None:
        self._parts.candidates.roll_back()
        self._parts.index.roll_back()
        self._parts.files.discard(keep=True)  # it may have been committed after all: the files aside will tell

    @contextmanager
    def _files_discarded_on_error(self) -> Iterator[None]:
        try:
            yield
        except StoreUnavailableError:
            raise
        except BaseException:
            self._parts.files.discard()
            raise


def prune(write: Write, files: Files, unsaved: dict[str, datetime]) -> None:
    """Move the least valuable facts out of MEMORY.md until it fits. Search still finds them.

    ``unsaved`` holds the times of searches that are not stored yet.
    """
    limit = write.config.max_words
    surplus = files.words_over(write, limit)
    if surplus <= 0:
        return
    recalled = write.tx.recalled() | dict(unsaved)  # a copy: searches go on
    candidates = sorted(
        (fact for fact in write.cache.in_file.values() if may_be_pruned(fact)),
        key=lambda fact: (value(fact, write.now, recalled.get(fact.id)), fact.id),
    )
    surplus += int(limit * (1 - _ROOM_AFTER_PRUNING))
    pruned = []
    for fact in candidates:
        if surplus <= 0:
            break
        surplus -= len(fact.text.split()) + 1
        pruned.append((fact, replace(fact, tier="archive")))
    write.apply_all("prune", pruned, reason="MEMORY.md was too long", run=new_id("run"))
    if files.words_over(write, limit) > 0:
        write.notices.append(
            f"MEMORY.md is longer than {limit} words, and you wrote or pinned all of it; nothing was removed"
        )
