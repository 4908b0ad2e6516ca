"""The state of one user that all handles share: their part of the store, their files and caches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime

from recollect.config import Config
from recollect.errors import RecollectError, StoreError, StoreFullError, StoreReadOnlyError
from recollect.memory.files.contract import Files
from recollect.memory.mentions import Copy
from recollect.memory.transaction import NO_HOOKS, Hooks, Participants, UserTransaction
from recollect.memory.user_index import UserIndex
from recollect.memory.vectors import Embedding, UserVectors
from recollect.memory.write import Acting, Write
from recollect.memory.write_cache import WriteCache, marks_of
from recollect.policy.topics import Topic
from recollect.search.weights import Weights
from recollect.store.contract import Reader, Transaction, UserStore
from recollect.store.forks import renew_after_forks
from recollect.times import Clock


class UserMemory:
    def __init__(
        self,
        user: UserStore,
        files: Files,
        config: Config,
        clock: Clock,
        embedding: Embedding | None = None,
        used: Callable[[UserMemory], None] | None = None,
        settle: Callable[[], None] = lambda: None,
        hooks: Hooks = NO_HOOKS,
        learn: Callable[[], Collection[str]] = lambda: (),
    ) -> None:
        self.user = user
        self.files = files
        self.config = config
        self.clock = clock
        self.index = UserIndex(user.read, files.folder, config, marks_of)
        self.cache = WriteCache(self.index)
        self.vectors = None if embedding is None else UserVectors(embedding, user, self.index)
        self.weights = Weights().but(config.weight_changes())
        self.recalled: dict[str, datetime] = {}
        """Times of searches that are not stored yet; the next write stores them."""
        self.notices: list[str] = []
        """Notices that came up while reading and were not delivered yet."""
        self._writing: int | None = None
        self._turn = threading.RLock()
        """Held until a failed write is put right, which is longer than the user's lock."""
        self._used = used
        self._hooks = hooks
        self.settle = settle
        """Writes pending log entries, so that readers find them."""
        self.learn = learn
        """Learns from messages and interactions before they expire; returns the ids of those still to be read."""
        renew_after_forks(self, UserMemory._renew)

    @contextmanager
    def write(self, acting: Acting, *, hooks: Hooks | None = None) -> Iterator[Write]:
        """Open the one way to change this user's memory, with these hooks or the user's own.

        `recollect.memory.transaction` explains the order of the steps.
        """
        self.check_no_batch()
        hooks = self._hooks if hooks is None else hooks
        try:
            with self._in_turn(), self._transaction(acting, hooks).open() as write:
                yield write
        except BaseException as error:
            hooks.on_error(error)
            raise
        self._tell_use()
        hooks.after_commit(acting)
        if self.files.displaced:
            with suppress(RecollectError), self.read(notes=True):
                pass  # merges the save that this write displaced, so that the file shows it again

    def _transaction(self, acting: Acting, hooks: Hooks) -> UserTransaction:
        parts = Participants(self.files, self.cache, self.index, self.vectors, self.recalled)
        return UserTransaction(self.user, parts, self.config, self.clock, acting, hooks)

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        with self._turn:
            self._writing = threading.get_ident()
            try:
                yield
            finally:
                self._writing = None

    @contextmanager
    def write_alongside(self) -> Iterator[Transaction]:
        """Open a transaction for data stored alongside the memory, such as the call log; no file is read or written."""
        self.check_no_batch()
        with self.user.write() as tx:
            yield tx

    @property
    def has_batch_here(self) -> bool:
        """True if this thread has a batch of this user open."""
        return self._writing == threading.get_ident()

    def before_erasing(self, topics: Sequence[Topic]) -> Sequence[Copy]:
        """Return the copies that mention these topics, which are erased with what this memory has about them.

        Raises `StoreBusyError` if something that may have to be erased was on its way into this memory.
        """
        try:
            return self._hooks.before_erasing(topics)
        except BaseException as error:
            self._hooks.on_error(error)
            raise

    def check_no_batch(self) -> None:
        """Raise an error if this thread has a batch of this user open: it would wait for itself."""
        if self.has_batch_here:
            raise StoreError("a batch of this user is open in this thread; use the memory that batch() returned")

    @contextmanager
    def read(self, *, notes: bool = False) -> Iterator[Reader]:
        """Open a consistent view, after merging the person's edits, including the daily notes on request."""
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
            pass  # if nothing can be written, edits cannot be merged; the stored memory still answers
        with self.user.read() as reader:
            yield reader
        self._tell_use()

    def _tell_use(self) -> None:
        """Report the use, while no lock is held: other users' indexes may be released to make room."""
        if self._used is not None and self.index.is_loaded:
            self._used(self)

    def _renew(self) -> None:
        """Reset in a forked child, where other threads do not exist."""
        self._turn, self._writing = threading.RLock(), None
        self.index.renew()
        if self.vectors is not None:
            self.vectors.renew()
        self.cache = WriteCache(self.index)

    def start_over(self) -> None:
        """Drop all caches after the database was replaced."""
        self.cache = WriteCache(self.index)
        self.index.forget()
        self.files.discard(keep=True)
