"""One user, as all handles on them share it: their part of the store, their files, what is known by heart.

The order of a write is decided here: take over what the person edited, do what was asked, keep MEMORY.md
within its size, bring the files up to date.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from recollect.config import Config
from recollect.core.catalogue import Catalogue
from recollect.core.files import Files
from recollect.core.known import Known, marks_of
from recollect.core.meaning import Embedding, Meaning
from recollect.core.writing import Acting, DoneAlreadyError, Write
from recollect.errors import StoreError, StoreFullError, StoreReadOnlyError, StoreUnavailableError
from recollect.policy.retention import may_be_pruned, value
from recollect.records import new_id
from recollect.search.weights import Weights
from recollect.store.contract import Reader, State, Transaction, UserStore
from recollect.store.forks import renew_after_forks
from recollect.times import Clock

_ROOM_AFTER_PRUNING = 0.9


class Person:
    """What belongs to one user."""

    def __init__(
        self,
        user: UserStore,
        files: Files,
        config: Config,
        clock: Clock,
        embedding: Embedding | None = None,
        used: Callable[[Person], None] | None = None,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self.user = user
        self.files = files
        self.config = config
        self.clock = clock
        self.catalogue = Catalogue(user.read, files.folder, config, marks_of)
        self.known = Known(self.catalogue)
        self.meaning = None if embedding is None else Meaning(embedding, user, self.catalogue)
        self.weights = Weights().but(config.weight_changes())
        self.recalled: dict[str, datetime] = {}
        """Recalls not yet written down; the next write takes them along."""
        self.notices: list[str] = []
        """What came up while reading and was not told yet."""
        self._writing: int | None = None
        self._turn = threading.RLock()
        """Held until a failed write is put right, which is longer than the user's lock."""
        self._used = used
        self.settle = settle
        """Writes down what is waiting to be logged, so that who looks finds it."""
        renew_after_forks(self, Person._renew)

    @contextmanager
    def write(self, acting: Acting) -> Iterator[Write]:
        """The one way to change anything of this user."""
        self.check_no_batch()
        committed = False
        recalled: dict[str, datetime] = {}

        def know() -> None:
            nonlocal committed
            committed = True
            self.known.commit(write.last_seq)
            for record_id, moment in recalled.items():
                if self.recalled.get(record_id) == moment:  # else it was recalled again meanwhile
                    self.recalled.pop(record_id, None)

        with self._turn:
            try:
                with self.user.write() as tx:
                    self._writing = threading.get_ident()
                    tx.after_commit(know)
                    state = tx.state()
                    known = self.known_in(state)
                    self.known = known if known.seq <= state.seq else Known(self.catalogue, known.life)
                    self.known.begin(tx, state)
                    may_be_done = acting.may_be_done is not None and acting.may_be_done()
                    if may_be_done and tx.entries(call=acting.call, limit=1):
                        raise DoneAlreadyError()
                    write = Write(tx, self.known, self.config, self.clock(), acting)
                    try:
                        self.files.take_over(write)
                        yield write
                        self._prune(write)
                        self.files.publish(write)
                        recalled.update(self.recalled)  # a copy: searches go on
                        if recalled:
                            tx.set_recalled(recalled)
                        if write.erased:
                            self.catalogue.drop()  # before the commit: what is erased must not outlive a crash in there
                    except StoreUnavailableError:
                        raise  # the lock went with the connection: what is aside may be another's by now
                    except BaseException:
                        self.files.discard()  # here, where what is written aside is certainly this write's own
                        raise
                if tx.pending:
                    write.add_pending()
                self.catalogue.committed(write.last_seq, erased=write.erased)
                if self.meaning is not None:
                    self.meaning.soon()
            except BaseException:
                if not committed:
                    self.known.roll_back()
                    self.catalogue.failed()
                    # it may have been committed after all, and others may write by now: what is aside tells
                    self.files.discard(keep=True)
                raise
            finally:
                self._writing = None
        self._tell_use()

    @contextmanager
    def write_beside(self) -> Iterator[Transaction]:
        """For what is kept beside the memory, the log of tool calls and the ledger: no file is read or made."""
        self.check_no_batch()
        with self.user.write() as tx:
            yield tx

    @property
    def has_batch_here(self) -> bool:
        """Whether this thread has a batch of this user open."""
        return self._writing == threading.get_ident()

    def check_no_batch(self) -> None:
        """Complain if this thread has a batch of this user open: it would wait for itself."""
        if self.has_batch_here:
            raise StoreError("a batch of this user is open in this thread; use the memory that batch() gave you")

    def known_in(self, state: State) -> Known:
        """What is known by heart, if it is about this life of the user; else nothing."""
        life = (state.secret, state.created_at)
        if self.known.life is None:
            self.known.life = life
        return self.known if self.known.life == life else Known(self.catalogue, life)

    @contextmanager
    def read(self, *, notes: bool = False) -> Iterator[Reader]:
        """A consistent view, after what the person edited has been taken over, in the notes too if asked."""
        with self.user.read() as reader:
            if not (edited := self.files.edited(reader, notes=notes)):
                yield reader
        if not edited:
            self._tell_use()
            return
        try:
            with self.write(Acting()) as write:
                if notes:
                    self.files.take_over_daily(write)
            self.notices += write.notices
        except (StoreReadOnlyError, StoreFullError):
            pass  # what cannot be written cannot be taken over either; the stored memory still answers
        with self.user.read() as reader:
            yield reader
        self._tell_use()

    def _tell_use(self) -> None:
        """While no lock is held: to make room, other people's indexes may be put away."""
        if self._used is not None and self.catalogue.is_loaded:
            self._used(self)

    def _renew(self) -> None:
        """In a forked child: whatever other threads were doing, they are not here."""
        self._turn, self._writing = threading.RLock(), None
        self.catalogue.renew()
        if self.meaning is not None:
            self.meaning.renew()
        self.known = Known(self.catalogue)

    def _prune(self, write: Write) -> None:
        """Move the least valuable facts out of MEMORY.md until it fits. They stay findable."""
        surplus = self.files.words_over(write, self.config.max_words)
        if surplus <= 0:
            return
        recalled = write.tx.recalled() | dict(self.recalled)
        candidates = sorted(
            (fact for fact in self.known.in_file.values() if may_be_pruned(fact)),
            key=lambda fact: (value(fact, write.now, recalled.get(fact.id)), fact.id),
        )
        surplus += int(self.config.max_words * (1 - _ROOM_AFTER_PRUNING))
        pruned = []
        for fact in candidates:
            if surplus <= 0:
                break
            surplus -= len(fact.text.split()) + 1
            pruned.append((fact, replace(fact, tier="archive")))
        write.apply_all("prune", pruned, reason="MEMORY.md was too long", run=new_id("run"))
        if self.files.words_over(write, self.config.max_words) > 0:
            write.notices.append(
                f"MEMORY.md is longer than {self.config.max_words} words, and all of it was written or pinned by you;"
                " nothing was taken out"
            )

    def start_over(self) -> None:
        """The database was replaced: know nothing by heart."""
        self.known = Known(self.catalogue)
        self.catalogue.forget()
        self.files.discard(keep=True)
