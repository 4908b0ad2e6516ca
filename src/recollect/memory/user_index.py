"""One user's search index, kept up to date with the store.

The index is derived data. It is loaded from a snapshot if there is a valid one, caught up by sequence number from
whatever store and process wrote last, and rebuilt if nothing fits. Losing it costs only time. A snapshot is saved now
and then, so that the next process continues from there; after an erasure at once, because the old one still has hashes
of the erased words.

A user with more records than may be loaded has no index in memory, if the store can search by itself: the store keeps
their words, also caught up by sequence number, and each query gets an excerpt of what could answer it.

The invariant: an index with the number ``seq`` holds exactly what the journal says up to ``seq``, of one life of the
user. Everything here keeps it.

- ``_caught_up`` applies what the journal has after ``index.seq`` and up to the number that the reader sees, in one
  view. With two views, a record could be read that is newer than the number noted for it, and be applied twice.
- Open the reader first and take ``guard`` second, in every thread. The other way round, a thread that holds the index
  and waits for a reader blocks one that has the reader and waits for the index. That is why `commit` opens its reader
  outside of the user's lock and before ``guard``.
- An open write may search its own changes: then the index is ahead of the store (``_ahead``), others get
``_stored_index``,
  and `roll_back` discards it. It is never saved meanwhile: a snapshot must not hold what is rolled back.
- Numbers alone do not identify a change. A restored backup has the same numbers with other contents, so
  ``index.life`` and ``index.last`` (the change itself) must agree, or the index is rebuilt.
- For an erasure the snapshot is deleted before the commit (`drop`) and saved again after it. A kill in between costs a
  rebuild; in the other order it would leave erased words on disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import cached_property, lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.config import Config
from recollect.errors import StoreError
from recollect.memory.chat_scope import unscoped
from recollect.records import Record
from recollect.search.index.snapshot import notes_of
from recollect.store.contract import Query, Reader, State, UserStore
from recollect.store.word_contract import KeptWords, WordReader, WordStore, WordWriter
from recollect.text import terms

if TYPE_CHECKING:
    from recollect.memory.partial_index import Lexemes
    from recollect.search.index.index import Index

_AT_ONCE = 500  # records fetched together when catching up
_LATER = 5000  # changes that wait for the first search: saving a large file does not wait for indexing
_REBUILD_SHARE = 0.5  # of all changes: above this, reading all records is faster
_SAVE_AFTER = 1000  # changes, or a tenth of the index
_SAVE_AT_END = 50  # changes worth more than the time to save them
_SNAPSHOT = "words.idx"
_STEP = 2000  # records whose words are passed to the store at once
_BEHIND = 200  # changes that a search examines by itself before the store indexes them


@lru_cache(maxsize=256)
def _life(secret: bytes, created_at: datetime) -> str:
    return blake2b(secret + str(created_at).encode(), digest_size=12).hexdigest()


def life_of(state: State) -> str:
    """Return an id of the user's life: another one begins when they are erased or rebuilt."""
    return _life(state.secret, state.created_at)


class UserIndex:
    """Finds the records of one user by their words. Safe to use from many threads."""

    def __init__(
        self,
        read: Callable[[], AbstractContextManager[Reader]],
        folder: Path | None,
        config: Config,
        marks: Callable[[Record], Sequence[str]],
    ) -> None:
        self.guard = threading.RLock()
        self._read = read
        self._folder = folder
        self._config = config
        self._marks = marks
        self._index: Index | None = None
        self._saved_seq: int | None = None  # None until it was read
        self._ahead = False  # it holds the changes of an open write
        self._stored: Index | None = None  # what others see meanwhile
        self._place = 0  # the file all this is about
        self._large = False  # as of the last check
        self._lexemes: tuple[bytes, Lexemes] | None = None

    @contextmanager
    def using(self, reader: Reader, state: State, *, in_write: bool = False) -> Iterator[Index]:
        """Yield `caught_up`, with ``guard`` held if others use the same index."""
        with self.guard:
            index = self.caught_up(reader, state, in_write=in_write)
            if not self._large:
                yield index
                return
        yield index

    def caught_up(self, reader: Reader, state: State, *, in_write: bool = False) -> Index:
        """Return the index with everything the reader can see, or more. Hold ``guard`` while using it.

        ``in_write`` says that the reader is an open write: its changes are searched, but not kept if it fails. Always
        open the reader first and then take ``guard``: all threads wait in this order.
        """
        reader = unscoped(reader)  # the index covers everything; each search says which records fit
        with self.guard:
            if (excerpt := self._excerpt(reader, state)) is not None:
                return excerpt
            life = life_of(state)
            index = self._index
            if state.place != self._place:  # another file: whatever it holds, it is not what we know
                self._place, index = state.place, None
            if index is not None and self._ahead and not in_write:
                return self._stored_index(reader, state)
            if index is None or index.life != life:
                index = self._loaded(life, reader)
            self._ahead = self._ahead or in_write
            if index.seq < state.seq:
                index = self._caught_up(index, reader, state.seq)
            self._index = index
            return index

    def commit(self, seq: int, *, erased: bool) -> None:
        """Index what has piled up after a write, so that no search has to wait for it, unless it is very much."""
        with self.guard:
            self._ahead, self._stored = False, None
            if self._large:
                return  # the next search or write indexes it
            index = self._index
            behind = seq - (index.seq if index is not None else self._on_disk())
        if _AT_ONCE <= behind < _LATER or (erased and index is not None):
            with suppress(StoreError), self._read() as reader, self.guard:  # the write is done in any case
                self.caught_up(reader, reader.state())
                if erased:
                    self.save()

    def roll_back(self) -> None:
        """Discard the index if it holds changes of a write that was rolled back."""
        with self.guard:
            if self._ahead:
                self._ahead, self._index, self._stored = False, None, None

    def save(self) -> None:
        """Write the snapshot. A failure to write it is harmless."""
        path = self._path
        with self.guard:
            index = self._index
            if index is None or self._ahead or path is None or not path.parent.parent.is_dir():
                return
            try:
                path.parent.mkdir(mode=0o700, exist_ok=True)
                index.save(path)
            except OSError:
                return  # a full or read-only disk, or another process that saved at the same time
            self._saved_seq = index.seq

    def drop(self) -> None:
        """Remove the snapshot, and what a killed process may have left of one."""
        path = self._path
        if path is None:
            return
        with self.guard:
            self._saved_seq = 0
            for left in (path, *path.parent.glob(f".{path.name}.*.tmp")):
                with suppress(OSError):
                    left.unlink(missing_ok=True)

    def close(self) -> None:
        """Save the index if that is worthwhile, and release it."""
        if self.is_loaded:
            with suppress(StoreError), self._read() as reader, self.guard:
                index = self.caught_up(reader, reader.state())  # what was erased meanwhile must not be saved again
                if index is self._index and index.unsaved >= _SAVE_AT_END:
                    self.save()
        self.forget()

    @property
    def is_loaded(self) -> bool:
        """True if there is an index in memory."""
        return self._index is not None

    @property
    def is_large(self) -> bool:
        """True if the store keeps this user's words, because there are too many to load."""
        return self._large

    @property
    def size(self) -> int:
        """The number of records in the index in memory."""
        index = self._index
        return 0 if index is None else index.size

    def renew(self) -> None:
        """Reset in a forked child: if another thread was using the index, it may be half done."""
        if not self.guard.acquire(blocking=False):
            self._index = None
        self.guard = threading.RLock()
        self._ahead, self._stored = False, None

    def forget(self) -> None:
        """Release the index without saving it."""
        with self.guard:
            self._index, self._stored, self._saved_seq = None, None, None

    def rebuild(self, user: UserStore) -> int:
        """Rebuild the index, or the words that the store keeps, from the records; return their number."""
        with self._read() as reader, self.guard:
            state = reader.state()
            if not isinstance(reader, WordReader) or reader.kept_words() is None:
                self._index = self._caught_up(self._new(life_of(state)), reader, state.seq)
                self.save()
                return len(self._index)
        self._make_words_anew(user)
        with self._read() as reader:
            return sum(reader.count().values())

    def _make_words_anew(self, user: UserStore) -> None:
        """Rebuild the stored words in steps, so that others can write meanwhile."""
        done, begun = False, False
        while not done:
            with user.write() as tx:
                if not isinstance(tx, WordWriter):
                    return
                done, begun = self._take_in(tx, anew=not begun), True

    def prepare(self, user: UserStore) -> None:
        """Let the store index the words of a user too large to load. Call it before a search, while no reader is open.

        A process that has the index in memory does it in steps, one before each search; another does all of it, because
        loading the index would take as long.
        """
        most, index = self._config.index_limit, self._index
        has_most = index is not None and len(index) >= most // 2
        if not isinstance(user, WordStore):
            return
        with suppress(StoreError):  # if it cannot be written it cannot be prepared; the search still works
            while self._is_due(most) and user.exists():
                with user.write_if_free() as tx:
                    if tx is None or self._take_in(tx) or has_most:
                        return

    def _is_due(self, most: int) -> bool:
        """Return True if the store has words to index or to release."""
        with self._read() as reader:
            state, index = reader.state(), self._index
            if not isinstance(reader, WordReader) or state.seq <= most:
                return False
            if index is not None and len(index) + state.seq - index.seq <= most:
                return False  # however many of the changes since then are new records
            if (kept := self._usable(reader, state)) is not None:
                return kept.records < most // 2 or state.seq - kept.seq >= _BEHIND
            return sum(reader.count().values()) > most or reader.kept_words() is not None

    def _taken_in(self, tx: WordWriter) -> KeptWords | None:
        """Let the store index all words, including those of this write; None if there are too few to keep."""
        while not self._take_in(tx):
            pass
        return tx.kept_words()

    def _take_in(self, tx: WordWriter, *, anew: bool = False) -> bool:
        """Let the store index the words of some more records; return True if these were all."""
        from recollect.memory.partial_index import index_passages

        state, most = tx.state(), self._config.index_limit
        if state.seq == 0:
            raise StoreError("the memory was erased meanwhile")  # so that nothing of this write stays
        life, kept = self._rules(state), tx.kept_words()
        is_new = kept is None or kept.life != life or anew
        if (is_new and sum(tx.count().values()) <= most) or (kept and kept.complete and kept.records < most // 2):
            tx.end_words()
            return True
        if kept is None or is_new:
            tx.begin_words(life)
            kept = KeptWords(life)
        records = tx.find(Query(statuses=(), changed_after=kept.seq, limit=_STEP))
        lexemes = self._lexemes_of(state)
        rows = [row for record in records for row in index_passages(record, lexemes, self._terms, self._marks)]
        done = len(records) < _STEP
        seq = max(state.seq if done else 0, records[-1].seq if records else kept.seq)
        tx.put_words([record.id for record in records], rows, seq=seq, complete=kept.complete or done)
        return done

    # inside

    def _excerpt(self, reader: Reader, state: State) -> Index | None:
        """Return an index to be filled by each query, for a user whose words the store keeps."""
        self._large = False
        if state.seq <= self._config.index_limit or not isinstance(reader, WordReader):
            return None
        kept = self._usable(reader, state)
        if isinstance(reader, WordWriter) and (kept is not None or self._index is None):
            kept = self._taken_in(reader)
        if kept is None:
            return None
        from recollect.memory.partial_index import PartialIndex  # here, not above: it loads NumPy

        self._index, self._stored, self._ahead, self._large = None, None, False, True
        excerpt = PartialIndex(
            reader,
            kept,
            self._lexemes_of(state),
            k1=self._config.bm25_k1,
            b=self._config.bm25_b,
            terms=self._terms,
            marks=self._marks,
        )
        excerpt.seq, excerpt.life = state.seq, life_of(state)
        return excerpt

    def _usable(self, reader: WordReader, state: State) -> KeptWords | None:
        kept = reader.kept_words()
        return kept if kept is not None and kept.complete and kept.life == self._rules(state) else None

    def _rules(self, state: State) -> str:
        """Identify the life and the analysis that words are made for."""
        from recollect.search.index.index import analysis_of

        return f"{life_of(state)} {analysis_of(self._terms)}"

    def _lexemes_of(self, state: State) -> Lexemes:
        from recollect.memory.partial_index import Lexemes

        if self._lexemes is None or self._lexemes[0] != state.secret:
            self._lexemes = state.secret, Lexemes(state.secret)
        return self._lexemes[1]

    @property
    def _path(self) -> Path | None:
        return None if self._folder is None else self._folder / "index" / _SNAPSHOT

    @cached_property
    def _terms(self) -> Callable[[str], Sequence[str]]:
        return partial(terms, code=self._config.language) if self._config.language else terms

    def _new(self, life: str) -> Index:
        from recollect.search.index.index import Index  # here, not above: it loads NumPy

        index = Index(k1=self._config.bm25_k1, b=self._config.bm25_b, terms=self._terms)
        index.life = life
        return index

    def _loaded(self, life: str, reader: Reader) -> Index:
        from recollect.search.index.index import Index

        if self._path is not None:
            k1, b = self._config.bm25_k1, self._config.bm25_b
            index = Index.load(self._path, k1=k1, b=b, terms=self._terms)
            if index is not None and index.life == life and index.last == _change(reader, index.seq):
                self._saved_seq = index.seq
                return index
        return self._new(life)

    def _stored_index(self, reader: Reader, state: State) -> Index:
        """Return the stored state, for searches while a write is open that has been searched itself."""
        if self._stored is None or self._stored.seq != state.seq or self._stored.life != life_of(state):
            self._stored = self._new(life_of(state))
            for record in reader.scan():
                self._stored.put(record, self._marks(record))
            self._stored.seq = state.seq
        return self._stored

    def _on_disk(self) -> int:
        if self._saved_seq is None:
            self._saved_seq = 0 if self._path is None else int(notes_of(self._path).get("seq", 0))
        return self._saved_seq

    def _caught_up(self, index: Index, reader: Reader, seq: int) -> Index:
        changed = [each for each in reader.changed(index.seq) if each[0] <= seq] if index.seq else []
        erased = False
        if index.seq == 0 or len(changed) > seq * _REBUILD_SHARE:
            index = self._new(index.life)
            for record in reader.scan():
                index.put(record, self._marks(record))
        else:
            ids = list(dict.fromkeys(record_id for _, record_id in changed if record_id))
            for begin in range(0, len(ids), _AT_ONCE):
                part = ids[begin : begin + _AT_ONCE]
                found = {record.id: record for record in reader.find(Query(ids=part, statuses=()))}
                for record_id in part:
                    if record_id in found:
                        index.put(found[record_id], self._marks(found[record_id]))
                    else:
                        index.remove(record_id)
                        erased = True
        index.seq, index.last = seq, _change(reader, seq)
        if index.unsaved > max(_SAVE_AFTER, len(index) // 10) or (erased and self._on_disk()):
            self._index = index
            self.save()
        return index


def _change(reader: Reader, seq: int) -> str:
    """Return what tells this change from another of the same number, in a database that was replaced by a copy."""
    entry = reader.entry(seq)
    return "" if entry is None else f"{entry.record_id} {entry.at}"
