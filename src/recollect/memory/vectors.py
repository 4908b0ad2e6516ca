"""Vector search: an embedder shared by all users, and one user's vectors.

Vectors are made after the write, in batches, by a background thread. Missing ones are found by asking the store, so
nothing is lost in a crash and nothing needs queueing. An embedder that fails or is slow is left alone for a while;
searches continue by words and say so. A record without a vector yet is found by its words.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from recollect.errors import EmbedderError, RecollectError
from recollect.memory.user_index import UserIndex, life_of
from recollect.records import Record
from recollect.search.filters import Filter
from recollect.search.passages import indexed_text
from recollect.store.contract import Query, Reader, UserStore
from recollect.store.forks import renew_after_forks
from recollect.store.word_contract import WordReader, WordWriter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.memory.partial_index import PartialIndex
    from recollect.search.embedders.embedder import Embedder
    from recollect.search.index.index import Index
    from recollect.search.vectors import Vectors

EMBEDDED = ("fact", "note", "observation", "episode", "daily", "message")
"""The kinds that get a vector."""

_BATCH = 64
_AT_A_TIME = 2  # concurrent queries to the embedder
_MOST_TEXT = 2000  # characters: embedders read a few hundred tokens
_BEFORE = 300  # of the message before: an answer alone often does not say what it is about
_QUERIES = 256  # cached vectors of queries
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds, after failures

_NEAREST = 200  # records drawn for a query, of a user too large to load
_SAMPLE, _SAMPLE_GROWTH = 500, 1.2  # vectors that give the usual similarity, and when to choose others
_KEPT_AT_ONCE = 200  # vectors stored at once, while others wait to write
_NONE_YET = "searched by words only: the vectors are not ready yet"

Progress = Callable[[int, int], None]


class _Embeds(Protocol):
    def embed_some(self) -> int: ...


class Embedding:
    """The embedder and its background thread, shared by all users of a process."""

    def __init__(self, embedder: Embedder, timeout: float) -> None:
        self.embedder = embedder
        self._timeout = timeout
        self._queries: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._asking = threading.BoundedSemaphore(_AT_A_TIME)
        self._guard = threading.Condition()
        self._waiting: OrderedDict[int, _Embeds] = OrderedDict()
        self._worker: threading.Thread | None = None
        self._closed = False
        self._pause = 0.0
        self._rests_until = 0.0
        self._problem = ""
        renew_after_forks(self, Embedding._renew)

    def _renew(self) -> None:
        self._asking = threading.BoundedSemaphore(_AT_A_TIME)
        self._guard = threading.Condition()
        self._waiting.clear()
        self._worker = None

    def of_query(self, text: str) -> tuple[NDArray[np.float32] | None, str]:
        """Return the vector of a query, or the reason there is none."""
        with self._guard:
            if (known := self._queries.get(text)) is not None:
                return known, ""
            if time.monotonic() < self._rests_until:
                return None, self._problem
        if self._closed:
            return None, "searched by words only: the application was closed"
        try:
            vector = self._asked(text)
        except RecollectError as error:
            self._failed(str(error))
            return None, self._problem
        with self._guard:
            self._worked()
            self._queries[text] = vector
            while len(self._queries) > _QUERIES:
                self._queries.popitem(last=False)
        return vector, ""

    def _asked(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a text, or raise in time. The thread does not delay exit."""
        answer: queue.SimpleQueue[NDArray[np.float32] | RecollectError] = queue.SimpleQueue()
        asking, embedder = self._asking, self.embedder
        late = EmbedderError(f"the embedder took longer than {self._timeout:g} s")

        def ask() -> None:
            try:
                answer.put(embedder.embed([text])[0])
            except RecollectError as error:
                answer.put(error)
            finally:
                asking.release()

        if not asking.acquire(timeout=self._timeout):
            raise late
        threading.Thread(target=ask, name="recollect-query", daemon=True).start()
        try:
            found = answer.get(timeout=self._timeout)
        except queue.Empty:
            raise late from None
        if isinstance(found, RecollectError):
            raise found
        return found

    def soon(self, who: _Embeds) -> None:
        """Make vectors for a user in the background."""
        with self._guard:
            if self._closed:
                return
            self._waiting[id(who)] = who
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="recollect-embed", daemon=True)
                self._worker.start()
            self._guard.notify_all()

    def close(self) -> None:
        """Stop the thread after its current batch."""
        with self._guard:
            self._closed = True
            self._waiting.clear()
            self._guard.notify_all()
            worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join(self._timeout)

    def _work(self) -> None:
        while True:
            with self._guard:
                while not self._closed and (not self._waiting or time.monotonic() < self._rests_until):
                    rest = self._rests_until - time.monotonic()
                    self._guard.wait(rest if self._waiting and rest > 0 else None)
                if self._closed:
                    return
                key, who = self._waiting.popitem(last=False)  # first: what is written from now on needs another turn
            try:
                done = who.embed_some() == 0
                with self._guard:
                    self._worked()
            except RecollectError as error:  # of the embedder or the store: retried after a pause
                self._failed(str(error))
                done = False
            if not done:
                with self._guard:
                    self._waiting.setdefault(key, who)  # the others first

    def _failed(self, problem: str) -> None:
        with self._guard:
            self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _LONGEST_PAUSE)
            self._rests_until = time.monotonic() + self._pause
            self._problem = f"searched by words only: {problem}"

    def _worked(self) -> None:
        self._pause = self._rests_until = 0.0


class Similarity(NamedTuple):
    """The similarity of each document to a query, NaN for those without a vector, or the reason it is unknown."""

    values: NDArray[np.float32] | None = None
    usual: float | None = None
    """The similarity of an average document, if those at hand are not representative."""
    note: str = ""


class UserVectors:
    def __init__(self, embedding: Embedding, user: UserStore, index: UserIndex) -> None:
        self.embedding = embedding
        self._user = user
        self._user_index = index
        self._guard = threading.Lock()
        self._last = 0
        self._life = ""
        self._vectors: Vectors | None = None
        self._row_of: dict[str, tuple[int, int]] = {}
        self._mapped: Index | None = None
        self._alone = False  # no other embedder has vectors here
        self._sample: NDArray[np.float32] | None = None
        self._sampled = ("", 0)
        self._compared = ("", 0)  # of a user too large to load: up to which vector the store can compare them

    def renew(self) -> None:
        """Reset in a forked child: another thread may have been using it."""
        self._guard = threading.Lock()
        self._vectors = self._mapped = None

    def soon(self) -> None:
        """Make the vectors of a write in the background."""
        self.embedding.soon(self)

    def similar(self, index: Index, reader: Reader, query: NDArray[np.float32], where: Filter) -> Similarity:
        """Return the similarity of each document to a query. For a user too large to load, draw the nearest first."""
        from recollect.memory.partial_index import PartialIndex

        if isinstance(index, PartialIndex):
            return self._similar_in(index, query, where)
        values = self.similarity(index, reader, query)
        return Similarity(note=_NONE_YET) if values is None else Similarity(values)

    def similarity(self, index: Index, reader: Reader, query: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """Return the similarity of each document; NaN for those without a vector, None if none has one."""
        import numpy as np

        self._catch_up(index, reader)
        if self._vectors is None or self._vectors.size == 0:
            return None
        found = np.append(self._vectors.similarity(query), np.float32(np.nan))
        similar: NDArray[np.float32] = found[index.vector]
        return similar

    def _similar_in(self, excerpt: PartialIndex, query: NDArray[np.float32], where: Filter) -> Similarity:
        import numpy as np

        from recollect.search.embedders.embedder import unpack

        self._vectors = self._mapped = None  # no longer needed
        name, dimensions = self.embedding.embedder.name, self.embedding.embedder.dimensions
        if self._compared != (excerpt.life, excerpt.last_vector(name)):
            self.soon()  # until then, only what has the words or is known already
        excerpt.draw_nearest(name, query, where, _NEAREST)
        values = np.full(excerpt.size, np.nan, dtype=np.float32)
        for each in excerpt.vectors(name):
            number = excerpt.number(each.record_id)
            if number is not None and excerpt.version[number] == each.version and len(each.data) == 2 * dimensions:
                values[number] = unpack(each.data, dimensions)[0] @ query
        if np.isnan(values).all():
            return Similarity(note=_NONE_YET)
        return Similarity(values, self._usual(excerpt, query))

    def _usual(self, excerpt: PartialIndex, query: NDArray[np.float32]) -> float | None:
        """Return the similarity of an average record by a cached sample, because the nearest are not representative."""
        import numpy as np

        from recollect.search.embedders.embedder import unpack

        name, dimensions = self.embedding.embedder.name, self.embedding.embedder.dimensions
        last = excerpt.last_vector(name)
        if self._sample is None or self._sampled[0] != excerpt.life or last > self._sampled[1] * _SAMPLE_GROWTH:
            numbers = np.unique(np.linspace(1, last, _SAMPLE, dtype=np.int64)).tolist()
            rows = [each.data for each in excerpt.some_vectors(name, numbers) if len(each.data) == 2 * dimensions]
            self._sample = np.array([unpack(data, dimensions)[0] for data in rows], dtype=np.float32)
            self._sampled = excerpt.life, last
        return float((self._sample @ query).mean()) if len(self._sample) else None

    def _catch_up(self, index: Index, reader: Reader) -> None:
        from recollect.search.embedders.embedder import unpack
        from recollect.search.vectors import Vectors

        name, dimensions = self.embedding.embedder.name, self.embedding.embedder.dimensions
        if self._vectors is None or self._life != index.life:
            self._vectors, self._row_of, self._mapped = Vectors(dimensions), {}, None
            self._life, self._last = index.life, 0
            self.soon()  # a process that was killed may have left some to be made
        if self._mapped is not index:
            self._mapped = index
            for record_id, (row, version) in self._row_of.items():
                self._place(index, record_id, row, version)
        newest = reader.last_vector(name)
        if newest == self._last:
            return
        for each in reader.vectors(name, after=self._last):
            if len(each.data) != 2 * dimensions:
                continue  # of another model under the same name
            row = self._vectors.add(unpack(each.data, dimensions)[:1])
            self._row_of[each.record_id] = row, each.version
            self._place(index, each.record_id, row, each.version)
        self._last = newest

    @staticmethod
    def _place(index: Index, record_id: str, row: int, version: int) -> None:
        number = index.number(record_id)
        if number is not None and index.version[number] == version:  # otherwise it is of an older text
            index.vector[number] = row

    def embed_some(self) -> int:
        """Make the vectors of one batch of records that have none; return their number."""
        from recollect.search.embedders.embedder import pack

        embedder = self.embedding.embedder
        with self._guard:
            if not self._user.exists():
                return 0  # a write would create the user
            self._user_index.prepare(self._user)
            with self._user.read() as reader:
                records = reader.unembedded(embedder.name, kinds=EMBEDDED, limit=_BATCH)
                texts = self._texts(reader, records)
            if not records:
                self._drop_others()
                self._keep_nearest()
                return 0
            vectors = embedder.embed(texts)  # outside any transaction: it may take long
            if not self._user.exists():
                return 0  # erased meanwhile
            with self._user.write() as tx:
                rows = [
                    (record.id, record.version, pack(vector[None]))
                    for record, vector in zip(records, vectors, strict=True)
                ]
                tx.put_vectors(embedder.name, rows)
            return len(records)

    def embed_all(self, progress: Progress | None = None) -> int:
        """Make all missing vectors; return their number."""
        done = 0
        while some := self.embed_some():
            done += some
            if progress is not None:
                progress(done, done + (_BATCH if some == _BATCH else 0))
        return done

    def _texts(self, reader: Reader, records: list[Record]) -> list[str]:
        """Return the texts to embed: the record, and for a message also the end of the one before it."""
        with self._user_index.using(reader, reader.state()) as index:
            index.include([record.id for record in records if record.kind == "message"])
            before = {record.id: self._before(index, record.id) for record in records if record.kind == "message"}
        wanted = Query(ids=[each for each in before.values() if each], statuses=())
        said = {record.id: record.content for record in reader.find(wanted)}
        texts = []
        for record in records:
            earlier = said.get(before.get(record.id, ""), "")[:_BEFORE]
            texts.append(f"{earlier} {indexed_text(record)[:_MOST_TEXT]}".strip())
        return texts

    @staticmethod
    def _before(index: Index, record_id: str) -> str:
        number = index.number(record_id)
        previous = -1 if number is None else int(index.previous[number])
        return index.id_of(previous) if previous >= 0 else ""

    def _drop_others(self) -> None:
        """Drop the vectors of other embedders, once this one has done everything."""
        if not self._alone:
            with self._user.write() as tx:
                tx.drop_vectors(keep=self.embedding.embedder.name)
            self._alone = True

    def _keep_nearest(self) -> None:
        """Let the store prepare vectors it cannot compare yet, for a user too large to load."""
        embedder = self.embedding.embedder
        kept = _KEPT_AT_ONCE
        while kept == _KEPT_AT_ONCE and self._user.exists():
            with self._user.read() as reader:
                if not isinstance(reader, WordReader) or reader.kept_words() is None:
                    return
                newest = life_of(reader.state()), reader.last_vector(embedder.name)
            with self._user.write() as tx:
                if not isinstance(tx, WordWriter):
                    return
                kept = tx.keep_meanings(embedder.name, embedder.dimensions, _KEPT_AT_ONCE)
            self._compared = newest
