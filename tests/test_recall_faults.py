"""Search under everything that goes wrong: many threads, several processes, kills, damaged snapshots, full disks,
embedders that hang. What was acknowledged is found at once, what was erased is in no file, and nothing raises.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import random
import shutil
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import recollect
from recollect import Memory, Record, Written
from recollect.memory.write_cache import marks_of
from recollect.records import Hits
from recollect.search.embedders.embedder import pack
from recollect.search.index import snapshot
from recollect.search.index.index import Index
from recollect.search.index.postings import mark_hash, word_hash
from recollect.testing import FrozenClock
from recollect.testing.embedding import HashEmbedder
from recollect.text import terms
from tests.durability_worker import Spawner, Tell, Worker, open_memory
from tests.volume import volume

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SEED = int(os.environ.get("RECOLLECT_SEED") or random.SystemRandom().getrandbits(32))
_DEADLINE = 120.0
_LETTERS = "bcdfghjklmnpqrtv"


@pytest.fixture(scope="module")
def spawner() -> Iterator[Spawner]:
    with Spawner() as spawner:
        yield spawner


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory, where more fits into the time."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="recollect-", dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str | None:
    return str(request.getfixturevalue("postgres_url")) if request.param == "postgres" else None


both_stores = pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)


# what is said, and what is found


def word(number: int) -> str:
    """A word that is like no other, in no language."""
    text = ""
    number = number * 40503 + 65537
    while number:
        number, digit = divmod(number, 16)
        text += _LETTERS[digit]
    return f"x{text}k"


def sentence(number: int) -> str:
    return f"{word(3 * number)} and {word(3 * number + 1)} met {word(3 * number + 2)}"


def written(outcome: recollect.Outcome) -> Record:
    assert isinstance(outcome, Written), outcome
    return outcome.record


def write(memory: Memory, verb: str, text: str) -> recollect.Outcome:
    if verb == "say":
        return memory.say(text, session="s")
    return memory.note(text) if verb == "note" else memory.remember(text)


def search(memory: Memory, text: str, limit: int = 5) -> Hits:
    return memory.search(text, limit=limit, include_conversation=True)


def found(memory: Memory, text: str) -> list[str]:
    """What is found by its words; not what was only said next to it."""
    return [hit.record.content for hit in search(memory, text) if hit.words]


def answers(memory: Memory, queries: Sequence[str]) -> list[list[tuple[str, float]]]:
    """What each query finds, with the scores, in an order that does not depend on ties."""
    return [
        sorted((hit.record.id, round(hit.raw_score, 4)) for hit in search(memory, query, limit=500))
        for query in queries
    ]


def check_index(memory: Memory, numbers: Sequence[int]) -> None:
    """The index finds what one that is built anew finds, with the same scores."""
    queries = [word(3 * number + number % 3) for number in numbers] + ["met", "and", "met and"]
    before = answers(memory, queries)
    memory.rebuild_index()
    assert answers(memory, queries) == before


def unembedded(memory: Memory) -> int:
    """How many records still wait for their vector."""
    with memory._user_memory.user.read() as reader:
        return len(reader.unembedded("hash:64", kinds=("note", "message"), limit=1000))


def together(jobs: Sequence[Callable[[], None]]) -> None:
    """Run all of these at once; they end in time, and none fails."""
    problems: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], None]) -> None:
        try:
            start.wait(_DEADLINE)
            job()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + _DEADLINE
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if problems:
        raise problems[0]
    assert not any(thread.is_alive() for thread in threads), "a deadlock"


def elsewhere(job: Callable[[], Any]) -> Any:
    """What a job gives in another thread."""
    results: list[Any] = []
    together([lambda: results.append(job())])
    return results[0]


# another process, that does what it is told


def obey(tell: Tell, root: str, fifo: str, url: str | None, clock_days: float = 0) -> None:
    """Do what comes through a pipe, one JSON line each, and tell what came of it."""
    clock = FrozenClock()
    clock.tick(days=clock_days)
    app = open_memory(root, url, clock=clock, max_words=100_000)
    memory = app.user("u1")

    def save() -> None:
        search(memory, "marmalade")
        memory._user_memory.index.save()

    def limit_files(size: int) -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def stop() -> None:
        app.close()

    def notes(first: int, count: int) -> None:
        with memory.batch() as batch:
            for number in range(first, first + count):
                batch.say(sentence(number), session="s")

    verbs: dict[str, Callable[..., Any]] = {
        "note": lambda text: written(memory.note(text)).id,
        "notes": notes,
        "find": lambda text: found(memory, text),
        "erase": lambda *refs: memory.erase(*refs).receipt.places,
        "clear": lambda: memory.clear().receipt.places,
        "erase_user": lambda: app.erase_user("u1").places,
        "save": save,
        "limit_files": limit_files,
        "close": stop,
    }
    with open(fifo, encoding="utf-8") as commands:
        for line in commands:
            verb, *arguments = json.loads(line)
            tell(told=verbs[verb](*arguments))


class Other:
    """A process that has the memory of u1 open."""

    def __init__(self, spawner: Spawner, root: Path, url: str | None = None, **more: Any) -> None:
        folder = Path(tempfile.mkdtemp(prefix="recollect-fifo-"))
        fifo = folder / "fifo"
        os.mkfifo(fifo)
        self.worker: Worker = spawner.start("tests.test_recall_faults:obey", root=root, fifo=fifo, url=url, **more)
        self._commands = open(fifo, "w", encoding="utf-8")  # noqa: SIM115  (as long as the process)
        shutil.rmtree(folder)

    def ask(self, *command: Any) -> Any:
        self._commands.write(json.dumps(command) + "\n")
        self._commands.flush()
        return self.worker.until("told")["told"]

    def __enter__(self) -> Other:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(BrokenPipeError):
            self._commands.close()
        if not self.worker.ended:
            self.worker.rest()


# many threads


class Crowd:
    """Threads that write and search, and the words they may rely on."""

    def __init__(self, memory_of: Callable[[int], Memory], shared: bool) -> None:
        self.memory_of = memory_of
        self.shared = shared
        self.lasting: list[tuple[int, str]] = []
        self.numbers = iter(range(1_000_000))
        self._guard = threading.Lock()

    def number(self) -> int:
        with self._guard:
            return next(self.numbers)

    def work(self, who: int, steps: int) -> None:
        memory, chance = self.memory_of(who), random.Random(_SEED + who)
        own: list[tuple[int, str]] = []
        for step in range(steps):
            chance.choice([self._writes, self._writes, self._updates, self._forgets])(memory, chance, own)
            known = list(self.lasting) if self.shared else own  # before the search begins
            for number, record_id in chance.sample(known, min(2, len(known))):
                hits = search(memory, word(3 * number + step % 3))
                assert record_id in [hit.record.id for hit in hits], f"{word(3 * number)} was acknowledged"

    def _writes(self, memory: Memory, chance: random.Random, own: list[tuple[int, str]]) -> None:
        number = self.number()
        record = written(write(memory, chance.choice(["say", "note", "remember"]), sentence(number)))
        assert found(memory, word(3 * number))[:1] == [record.content]
        own.append((number, record.id))
        self.lasting.append((number, record.id))

    def _updates(self, memory: Memory, chance: random.Random, own: list[tuple[int, str]]) -> None:
        old, new = self.number(), self.number()
        record = written(memory.note(sentence(old)))
        memory.update(record.id, sentence(new))
        assert found(memory, word(3 * new + 1))[:1] == [sentence(new)]
        assert found(memory, word(3 * old)) == []

    def _forgets(self, memory: Memory, chance: random.Random, own: list[tuple[int, str]]) -> None:
        number = self.number()
        record = written(memory.remember(sentence(number)))
        assert found(memory, word(3 * number)) == [record.content]
        memory.forget(record.id)
        assert found(memory, word(3 * number)) == []


@pytest.mark.parametrize(
    ("url", "threads", "steps"),
    [("sqlite", volume(16, 64), 5), pytest.param("postgres", 12, 5, marks=pytest.mark.slow)],
    indirect=["url"],
)
def test_S3_many_threads_of_one_user_find_every_acknowledged_word(
    folder: Path, url: str | None, threads: int, steps: int
) -> None:
    with open_memory(folder, url, clock=FrozenClock(), max_words=100_000) as app:
        memory = app.user("u1")
        crowd = Crowd(lambda who: memory, shared=True)
        together([lambda who=who: crowd.work(who, steps) for who in range(threads)])  # type: ignore[misc]
        last = crowd.number()
        check_index(memory, random.Random(_SEED).sample(range(last), min(50, last)))
        for number, record_id in crowd.lasting:
            assert record_id in [hit.record.id for hit in search(memory, word(3 * number))]


@pytest.mark.parametrize(
    ("url", "threads", "steps"),
    [("sqlite", volume(16, 64), 2), pytest.param("postgres", 12, 3, marks=pytest.mark.slow)],
    indirect=["url"],
)
def test_S3_many_users_at_once_each_find_their_own(folder: Path, url: str | None, threads: int, steps: int) -> None:
    with open_memory(folder, url, clock=FrozenClock(), max_words=100_000) as app:
        memories = [app.user(f"u{who}") for who in range(threads)]
        crowd = Crowd(lambda who: memories[who], shared=False)
        together([lambda who=who: crowd.work(who, steps) for who in range(threads)])  # type: ignore[misc]
        for who in range(0, threads, 16):
            check_index(memories[who], range(crowd.number())[-50:])
            others = [n for n, record_id in crowd.lasting if record_id not in {r.id for r in memories[who].read()}]
            assert not any(found(memories[who], word(3 * number)) for number in others[:20])


# batches


class ChangedMindError(Exception):
    """Ends a batch."""


@pytest.mark.everyday(1)
@both_stores
@pytest.mark.parametrize("ends", ["kept", "given up"])
def test_S3_others_search_what_is_stored_while_a_batch_is_open(folder: Path, url: str | None, ends: str) -> None:
    with open_memory(folder, url, clock=FrozenClock(), max_words=100_000) as app:
        memory = app.user("u1")
        changed, gone = (written(memory.note(sentence(number))) for number in (0, 1))
        search(memory, word(0))
        with suppress(ChangedMindError), memory.batch() as batch:
            batch.update(changed.id, sentence(2))
            batch.forget(gone.id)
            batch.note(sentence(3))
            # the batch finds what it did
            assert [found(batch, word(3 * number)) for number in range(4)] == [[], [], [sentence(2)], [sentence(3)]]
            # the others find what is stored
            seen = elsewhere(lambda: [found(memory, word(3 * number)) for number in range(4)])
            assert seen == [[sentence(0)], [sentence(1)], [], []]
            assert [found(batch, word(3 * number)) for number in range(4)] == [[], [], [sentence(2)], [sentence(3)]]
            if ends == "given up":
                raise ChangedMindError
        after = [[], [], [sentence(2)], [sentence(3)]] if ends == "kept" else [[sentence(0)], [sentence(1)], [], []]
        assert [found(memory, word(3 * number)) for number in range(4)] == after
        check_index(memory, range(4))


@both_stores
@pytest.mark.parametrize("loaded", [True, False])
def test_S3_nothing_of_a_batch_that_was_given_up_stays_in_the_index(
    folder: Path, url: str | None, loaded: bool
) -> None:
    """Also of what is not compared with anything, such as messages and daily entries."""
    with open_memory(folder, url, clock=FrozenClock()) as app:
        memory = app.user("u1")
        if loaded:
            search(memory, "marmalade")
        said = written(memory.say(sentence(0), session="s"))
        with suppress(ChangedMindError), memory.batch() as batch:
            for number in range(40):  # more than a search looks at
                batch.say(f"{word(0)} {word(0)} {word(100 + number)}", session="s")
                batch.jot(f"{word(0)} {word(0)} {word(200 + number)}")
            batch.forget(said.id)
            batch.note(sentence(1))  # looked up in the index
            raise ChangedMindError
        assert found(memory, word(0)) == [sentence(0)]
        check_index(memory, range(2))


@pytest.mark.slow
def test_S3_batches_that_end_well_and_badly_while_others_search(folder: Path) -> None:
    with recollect.open(folder, clock=FrozenClock(), max_words=100_000) as app:
        memory = app.user("u1")
        stored: list[int] = []
        given_up: list[int] = []
        done = threading.Event()
        for number in range(20):
            written(memory.say(sentence(number), session="s"))
            stored.append(number)

        def work() -> None:
            chance = random.Random(_SEED)
            try:
                for begin in range(100, 400, 10):
                    ends_well = chance.random() < 0.5
                    with suppress(ChangedMindError), memory.batch() as batch:
                        for number in range(begin, begin + 8):
                            batch.say(sentence(number), session="s")
                        batch.note(sentence(begin + 8))
                        assert found(batch, word(3 * begin)) == [sentence(begin)]
                        if not ends_well:
                            raise ChangedMindError
                    (stored if ends_well else given_up).extend(range(begin, begin + 9))
            finally:
                done.set()

        def look(seed: int) -> None:
            chance = random.Random(seed)
            while not done.is_set():
                bad = list(given_up)
                number = chance.choice(list(stored))
                assert found(memory, word(3 * number)) == [sentence(number)]
                if bad:
                    assert found(memory, word(3 * chance.choice(bad))) == []

        together([work, *(lambda seed=seed: look(seed) for seed in range(6))])
        for number in given_up:
            assert found(memory, word(3 * number)) == []
        check_index(memory, stored[-50:])


# several processes


@pytest.mark.everyday(1)
@both_stores
def test_S3_what_one_process_wrote_the_others_find_at_their_next_search(
    spawner: Spawner, folder: Path, url: str | None
) -> None:
    with Other(spawner, folder, url) as one, Other(spawner, folder, url) as other:
        assert one.ask("find", word(0)) == other.ask("find", word(0)) == []
        for number in range(0, 20, 2):
            one.ask("note", sentence(number))
            assert other.ask("find", word(3 * number)) == [sentence(number)]
            gone = other.ask("note", sentence(number + 1))
            assert one.ask("find", word(3 * number + 3)) == [sentence(number + 1)]
            if number % 4:
                one.ask("erase", gone)
                assert other.ask("find", word(3 * number + 3)) == []
        one.ask("notes", 1000, 700)  # more than is taken in at once
        assert other.ask("find", word(3 * 1699)) == [sentence(1699)]
    with open_memory(folder, url, clock=FrozenClock()) as app:
        check_index(app.user("u1"), range(1000, 1050))


def search_and_fork(tell: Tell, root: str, embedder: bool) -> None:
    """Search, then fork while another thread writes; the child searches and writes."""
    app = recollect.open(root, embedder=HashEmbedder() if embedder else None, embedder_timeout_ms=5000)
    memory = app.user("u1")
    written(memory.note(sentence(0)))
    assert found(memory, word(0)) == [sentence(0)]
    if embedder:
        memory.embed()
        assert search(memory, "met and").mode == "words and vectors"
    stop, began = threading.Event(), threading.Event()

    def work() -> None:
        number = 1000
        while not stop.is_set():
            memory.note(sentence(number))
            search(memory, word(3 * number))
            number += 1
            began.set()

    writer = threading.Thread(target=work)
    if not embedder:
        writer.start()
        began.wait(_DEADLINE)
    for round in range(1, 2 if embedder else 9):
        child = os.fork()
        if child == 0:
            signal.alarm(8)  # a child that waits for a thread of its parent would wait for ever
            assert found(memory, word(0)) == [sentence(0)]
            tell(searched=round)
            written(memory.note(sentence(round)))
            tell(wrote=round)
            assert found(memory, word(3 * round)) == [sentence(round)]
            if embedder:
                while unembedded(memory):
                    time.sleep(0.01)
                hits = search(memory, f"something else {word(0)}")
                assert hits.mode == "words and vectors", hits.note
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        tell(child=status)
        if status:
            break
    stop.set()
    if not embedder:
        writer.join()
    tell(parent=[bool(found(memory, word(3 * number))) for number in range(round + 1)])


@pytest.mark.parametrize("embedder", [False, True])
def test_S3_a_forked_child_searches_and_writes(spawner: Spawner, folder: Path, embedder: bool) -> None:
    lines = spawner.start("tests.test_recall_faults:search_and_fork", root=folder, embedder=embedder).rest()
    children = [line["child"] for line in lines if "child" in line]
    assert children == [0] * (1 if embedder else 8), f"a child died or waited in vain: {lines}"
    assert all(lines[-2]["parent"]), lines


# snapshots


_MANY = 230


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with a snapshot of all of it, and another user with one."""
    root = tmp_path_factory.mktemp("template")
    with recollect.open(root, clock=FrozenClock()) as app:
        for user, first in (("u1", 0), ("u2", 5000)):
            with app.user(user).batch() as batch:
                for number in range(first, first + _MANY):
                    batch.say(sentence(number), session=f"s{number % 7}")
            search(app.user(user), "marmalade")
    assert snapshot.read_snapshot(saved(root)) is not None
    return root


@pytest.fixture
def root(template: Path, folder: Path) -> Path:
    shutil.copytree(template, folder / "root")
    return folder / "root"


def saved(root: Path, user: str = "u1") -> Path:
    return root / user / "index" / "words.idx"


def check_found(root: Path, numbers: Sequence[int] = (0, 1, 57, 113, _MANY - 1), absent: Sequence[int] = ()) -> None:
    """A new process's view: all of it is found, and the index is as if built anew."""
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        for number in numbers:
            assert found(memory, word(3 * number)) == [sentence(number)]
        for number in absent:
            assert found(memory, word(3 * number)) == []


def check_good_snapshot(root: Path) -> None:
    """There is one of all that is stored."""
    index = Index.load(saved(root))
    assert index is not None
    with recollect.open(root, clock=FrozenClock()) as app:
        assert index.seq == app.user("u1").history(limit=1)[0].seq
        assert len(index) == len(app.user("u1").read(status="all"))


def _truncate_to_nothing(root: Path) -> None:
    saved(root).write_bytes(b"")


def _other_version(root: Path) -> None:
    data = bytearray(saved(root).read_bytes())
    data[8:12] = (snapshot.VERSION + 1).to_bytes(4, "little")
    saved(root).write_bytes(data)


def _other_analysis(root: Path) -> None:
    told = snapshot.read_snapshot(saved(root))
    assert told is not None
    notes, arrays = told
    snapshot.write_snapshot(saved(root), notes | {"analysis": "of another release"}, arrays)


def _incomplete(root: Path) -> None:
    told = snapshot.read_snapshot(saved(root))
    assert told is not None
    notes, arrays = told
    arrays.pop("word_hashes")
    snapshot.write_snapshot(saved(root), notes, arrays)


def _of_another_user(root: Path) -> None:
    shutil.copy(saved(root, "u2"), saved(root))


def _rubbish(root: Path) -> None:
    saved(root).write_bytes(random.Random(_SEED).randbytes(100_000))


def _rubbish_that_begins_well(root: Path) -> None:
    saved(root).write_bytes(saved(root).read_bytes()[:2000] + random.Random(_SEED).randbytes(100_000))


def _no_folder(root: Path) -> None:
    shutil.rmtree(saved(root).parent)


DAMAGES: list[Callable[[Path], None]] = [
    lambda root: saved(root).unlink(),
    _no_folder,
    _truncate_to_nothing,
    _other_version,
    _other_analysis,
    _incomplete,
    _of_another_user,
    _rubbish,
    _rubbish_that_begins_well,
]


@pytest.mark.everyday(4)
@pytest.mark.parametrize("damage", range(len(DAMAGES)))
def test_S3_whatever_became_of_the_snapshot_search_is_right_and_it_is_good_again(root: Path, damage: int) -> None:
    DAMAGES[damage](root)
    check_found(root, absent=[5000, 5001])
    check_good_snapshot(root)
    check_found(root)


def test_S3_a_snapshot_cut_off_anywhere_is_none(root: Path) -> None:
    whole = saved(root).read_bytes()
    chance = random.Random(_SEED)
    lengths = {0, 1, 7, 8, 19, 20, 21, 64, 100, len(whole) // 2, len(whole) - 1, len(whole) - 64}
    for length in sorted(lengths | {chance.randrange(len(whole)) for _ in range(volume(40, 200))}):
        saved(root).write_bytes(whole[:length])
        assert snapshot.read_snapshot(saved(root)) is None, length
    for length in sorted(lengths):
        saved(root).write_bytes(whole[:length])
        check_found(root, [chance.randrange(_MANY)])
    check_good_snapshot(root)


def test_S3_a_snapshot_with_any_byte_changed_is_none(root: Path) -> None:
    whole = saved(root).read_bytes()
    chance = random.Random(_SEED)
    places = [*range(24), *(chance.randrange(len(whole)) for _ in range(volume(60, 300)))]
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << chance.randrange(8)
        saved(root).write_bytes(changed)
        assert snapshot.read_snapshot(saved(root)) is None, (place, _SEED)
        if place % 29 == 0:
            check_found(root, [chance.randrange(_MANY)])


def test_S3_a_folder_in_place_of_the_snapshot_or_a_file_in_place_of_its_folder(root: Path) -> None:
    saved(root).unlink()
    (saved(root) / "inside").mkdir(parents=True)
    check_found(root)
    shutil.rmtree(saved(root).parent)
    saved(root).parent.write_text("not a folder")
    check_found(root)
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        memory.erase(search(memory, word(0))[0].record.id)
        memory.rebuild_index()
        assert found(memory, word(0)) == []
    saved(root).parent.unlink()
    check_found(root, [1, 2], absent=[0])
    check_good_snapshot(root)


def search_without_rights(tell: Tell, root: str) -> None:
    """As a user who may read the folder and not write there."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    with recollect.open(root, clock=FrozenClock()) as app:
        tell(found=[found(app.user("u1"), word(3 * number)) for number in (0, 57, _MANY - 1)])


@pytest.mark.parametrize("snapshots", ["readable", "not readable", "none"])
def test_S3_a_folder_that_cannot_be_written_to_is_searched(spawner: Spawner, template: Path, snapshots: str) -> None:
    public = Path(tempfile.mkdtemp(prefix="recollect-public-"))
    try:
        root = shutil.copytree(template, public / "root")
        if snapshots == "none":
            shutil.rmtree(saved(root).parent)
        for path in [public, *public.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        if snapshots == "not readable":
            saved(root).parent.chmod(0o000)
        lines = spawner.start("tests.test_recall_faults:search_without_rights", root=root).rest()
        assert [line["found"] for line in lines if "found" in line] == [
            [[sentence(number)] for number in (0, 57, _MANY - 1)]
        ]
        assert saved(root).exists() == (snapshots != "none")
    finally:
        for path in [public, *public.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(public)


def test_S3_a_snapshot_older_than_the_store_is_caught_up(root: Path) -> None:
    old = saved(root).read_bytes()
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        gone = [search(memory, word(3 * number))[0].record.id for number in (0, 1)]
        memory.forget(gone[0])
        memory.erase(gone[1])
        for number in range(6000, 6040):
            written(memory.note(sentence(number)))
        memory.update(search(memory, word(3 * 6000))[0].record.id, sentence(6100))
        memory.rebuild_index()
    saved(root).write_bytes(old)
    check_found(root, [2, 6039, 6100], absent=[0, 1, 6000])
    with recollect.open(root, clock=FrozenClock()) as app:
        check_index(app.user("u1"), [*range(20), *range(6000, 6030)])


def _copy_database(root: Path, to: Path) -> None:
    """As somebody who makes a backup while nobody writes."""
    assert not (root / "u1" / "memory.db-wal").exists()
    shutil.copy(root / "u1" / "memory.db", to)


def _restore_database(root: Path, copy: Path) -> None:
    for end in ("-wal", "-shm"):
        (root / "u1" / f"memory.db{end}").unlink(missing_ok=True)
    shutil.copy(copy, root / "u1" / "memory.db.restored")
    os.replace(root / "u1" / "memory.db.restored", root / "u1" / "memory.db")


@pytest.mark.parametrize("as_many", [False, True])
def test_S3_a_snapshot_newer_than_a_restored_database_is_none(root: Path, folder: Path, as_many: bool) -> None:
    _copy_database(root, folder / "copy")
    with recollect.open(root, clock=FrozenClock()) as app:
        for number in range(6000, 6010):
            written(app.user("u1").note(sentence(number)))
        app.user("u1").rebuild_index()
    newer = saved(root).read_bytes()
    _restore_database(root, folder / "copy")
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        for number in range(7000, 7010 if as_many else 7001):
            written(memory.say(sentence(number), session="s"))
        saved(root).write_bytes(newer)
    check_found(root, [0, 7000], absent=[6000, 6009])
    check_good_snapshot(root)


@pytest.mark.everyday(1)
@pytest.mark.parametrize("as_many", [False, True])
@pytest.mark.parametrize("writer", ["this process", "another"])
def test_S3_a_database_restored_under_a_running_process_is_searched_as_it_is(
    spawner: Spawner, root: Path, folder: Path, writer: str, as_many: bool
) -> None:
    _copy_database(root, folder / "copy")
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        for number in range(6000, 6010):
            written(memory.note(sentence(number)))
        assert found(memory, word(3 * 6009)) == [sentence(6009)]
        _restore_database(root, folder / "copy")
        numbers = range(7000, 7010 if as_many else 7001)
        if writer == "another":
            with Other(spawner, root) as other:
                for number in numbers:
                    other.ask("note", sentence(number))
        else:
            for number in numbers:
                written(memory.note(sentence(number)))
        assert [found(memory, word(3 * number)) for number in numbers] == [[sentence(number)] for number in numbers]
        assert found(memory, word(3 * 6000)) == []
        check_index(memory, [0, 1, 2, *numbers])


@pytest.mark.parametrize("change", ["truncated", "overwritten"])
def test_S3_a_snapshot_changed_in_place_does_no_harm_to_who_has_it_open(
    spawner: Spawner, root: Path, change: str
) -> None:
    """As `cp` does that restores a backup: it does not make a new file."""
    with Other(spawner, root) as other:
        assert other.ask("find", word(0)) == [sentence(0)]
        with open(saved(root), "r+b") as file:
            if change == "truncated":
                file.truncate(0)
            else:
                file.write(b"\xff" * saved(root).stat().st_size)
        for number in (1, 57, _MANY - 1):
            assert other.ask("find", word(3 * number)) == [sentence(number)]


# kills


def write_and_save(tell: Tell, root: str, url: str | None, first: int, seed: int) -> None:
    """Write, search and save until killed."""
    memory = open_memory(root, url, clock=FrozenClock(), max_words=100_000).user("u1")
    chance = random.Random(seed)
    for number in range(first, first + 10_000):
        written(write(memory, chance.choice(["say", "note"]), sentence(number)))
        tell(ack=number)
        if chance.random() < 0.4:
            assert found(memory, word(3 * number)) == [sentence(number)]
        if chance.random() < 0.4:
            memory._user_memory.index.save()
        if chance.random() < 0.1:
            memory.rebuild_index()


@pytest.mark.everyday(1)
@pytest.mark.parametrize(("url", "lives"), [("sqlite", 8), ("postgres", 3)], indirect=["url"])
def test_S3_after_a_kill_at_any_instant_search_is_right(
    spawner: Spawner, folder: Path, url: str | None, lives: int
) -> None:
    chance = random.Random(_SEED)
    acknowledged: list[int] = []
    for life in range(lives):
        crew = [
            spawner.start(
                "tests.test_recall_faults:write_and_save",
                root=folder,
                url=url,
                first=20_000 * life + 10_000 * each,
                seed=chance.getrandbits(32),
            )
            for each in range(1 + life % 2)
        ]
        for worker in crew:
            acknowledged.append(worker.until("ack")["ack"])
        wanted = len(acknowledged) + chance.choice([0, 2, 5, 10])
        while len(acknowledged) < wanted:
            acknowledged += [line["ack"] for line in crew[0].lines(30) if "ack" in line]
        crew[0].lines(chance.uniform(0, 0.01))
        for worker in crew:
            acknowledged += [line["ack"] for line in worker.kill() if "ack" in line]
        with open_memory(folder, url, clock=FrozenClock(), max_words=100_000) as app:
            memory = app.user("u1")
            for number in acknowledged[-20:]:
                assert found(memory, word(3 * number)) == [sentence(number)], f"RECOLLECT_SEED={_SEED} life {life}"
            if life == lives - 1:
                check_index(memory, acknowledged[-50:])
                assert list((folder / "u1" / "index").iterdir()) == [saved(folder)], "something was left aside"


def save_often(tell: Tell, root: str, first: int) -> None:
    memory = recollect.open(root, clock=FrozenClock()).user("u1")
    for number in range(first, first + 25):
        written(memory.note(sentence(number)))
        assert found(memory, word(3 * number)) == [sentence(number)]
        memory._user_memory.index.save()


def test_S3_processes_that_save_at_the_same_time_leave_a_good_snapshot(spawner: Spawner, root: Path) -> None:
    crew = [
        spawner.start("tests.test_recall_faults:save_often", root=root, first=6000 + 100 * each) for each in range(3)
    ]
    for worker in crew:
        assert worker.rest()[-1] == {"end": True}
    assert Index.load(saved(root)) is not None
    assert list(saved(root).parent.iterdir()) == [saved(root)]
    check_found(root, [0, 6000, 6024, 6124, 6224])


# a full disk


@contextmanager
def no_space_for_snapshots(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A disk that is full whenever a snapshot is to be written."""
    refused: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        name = os.readlink(f"/proc/self/fd/{fd}")
        if name.endswith(".tmp"):
            refused.append(name)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        yield refused


def test_S3_a_disk_that_is_full_when_a_snapshot_is_saved_harms_no_search(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved(root).read_bytes()
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        with no_space_for_snapshots(monkeypatch) as refused:
            for number in range(6000, 6010):
                written(memory.note(sentence(number)))
                memory._user_memory.index.save()
                assert found(memory, word(3 * number)) == [sentence(number)]
            memory.rebuild_index()
            assert found(memory, word(3 * 6009)) == [sentence(6009)]
        assert len(refused) >= 10
        assert saved(root).read_bytes() == before
        assert list(saved(root).parent.iterdir()) == [saved(root)]
        memory.rebuild_index()
    check_good_snapshot(root)
    check_found(root, [0, 6009])


def fill_with_snapshots(tell: Tell, root: str) -> None:
    """Files may not grow beyond what a snapshot needs; the database is larger than that already."""
    import resource

    app = recollect.open(root, clock=FrozenClock())
    memory = app.user("u1")
    assert found(memory, word(0)) == [sentence(0)]
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    memory._user_memory.index.save()
    tell(found=found(memory, word(3)))
    memory.rebuild_index()
    tell(found=found(memory, word(3)))
    app.close()


def test_S3_files_that_may_not_grow_harm_no_search(spawner: Spawner, root: Path) -> None:
    before = saved(root).read_bytes()
    lines = spawner.start("tests.test_recall_faults:fill_with_snapshots", root=root).rest()
    assert [line["found"] for line in lines if "found" in line] == [[sentence(1)], [sentence(1)]]
    assert saved(root).read_bytes() == before and list(saved(root).parent.iterdir()) == [saved(root)]


# what was erased is in no file


def traces(record: Record) -> dict[str, bytes]:
    """What of a record could stand in a file, but for the words that all records have."""
    told = {term for term in terms(record.text) if term.startswith("x")}
    patterns = {f"word {term}": term.encode() for term in told}
    patterns |= {f"hash of {term}": word_hash(term).to_bytes(8, "little") for term in told}
    for mark in marks_of(record):
        if any(term in mark for term in told):
            patterns[f"hash of mark {mark}"] = mark_hash(mark).to_bytes(8, "little")
    return patterns | {"vector": pack(HashEmbedder().embed([record.content]))}


def left(folder: Path, patterns: dict[str, bytes]) -> set[tuple[str, str]]:
    """Which of these stand in which files."""
    files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {(what, name) for what, pattern in patterns.items() for name, data in files.items() if pattern in data}


def erasing(memory: Memory, clock: FrozenClock, verb: str, record: Record) -> None:
    if verb == "erase":
        memory.erase(record.id)
    elif verb == "erase_topic":
        gone, receipt = memory.erase_topic(record.content.split()[0])
        assert [each.id for each in gone] == [record.id] and receipt is not None
    elif verb == "clear":
        memory.clear()
    else:
        clock.tick(days=3)
        assert memory.upkeep().expired == {record.kind: 1}


_ERASING = ["erase", "erase_topic", "clear", "upkeep"]


@pytest.mark.everyday(6)
@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("verb", _ERASING)
@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_R7_what_was_erased_is_in_no_file_not_even_hashed(
    folder: Path, url: str | None, verb: str, loaded: bool
) -> None:
    clock = FrozenClock()
    with open_memory(folder, url, clock=clock, embedder=HashEmbedder()) as app:
        memory = app.user("u1")
        for number in range(10):
            written(memory.note(sentence(number)))
        record = written(memory.remember(sentence(7777), expires_at=clock() + timedelta(days=2)))
        memory.embed()
        search(memory, word(0))
        memory.rebuild_index()
    patterns = traces(record)
    present = {what for what, _ in left(folder / "u1", patterns)}
    assert present == {what for what in patterns if url is None or not what.startswith("vector")}
    with open_memory(folder, url, clock=clock, embedder=HashEmbedder()) as app:
        memory = app.user("u1")
        if loaded:
            assert found(memory, word(3 * 7777)) == [record.content]
        erasing(memory, clock, verb, record)
        assert left(folder / "u1", patterns) == set()
        assert found(memory, word(3 * 7777)) == []
        assert bool(found(memory, word(0))) == (verb != "clear")
        memory.rebuild_index()
        assert left(folder / "u1", patterns) == set()
    assert left(folder / "u1", patterns) == set()


def _with_secret(root: Path, number: int = 7777) -> Record:
    """One more record, with a snapshot that knows it."""
    with recollect.open(root, clock=FrozenClock()) as app:
        record = written(app.user("u1").note(sentence(number)))
        app.user("u1").rebuild_index()
    assert left(root / "u1", traces(record))
    return record


@pytest.mark.parametrize("loaded", [True, False])
def test_R7_what_a_killed_process_left_of_a_snapshot_goes_with_what_is_erased(root: Path, loaded: bool) -> None:
    record = _with_secret(root)
    shutil.copy(saved(root), saved(root).with_name(".words.idx.0badcafe.tmp"))
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        if loaded:
            search(memory, word(0))
        memory.erase(record.id)
        assert left(root / "u1", traces(record)) == set()


@pytest.mark.parametrize("loaded", [True, False])
def test_R7_a_full_disk_does_not_keep_what_was_erased(
    root: Path, monkeypatch: pytest.MonkeyPatch, loaded: bool
) -> None:
    record = _with_secret(root)
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        if loaded:
            search(memory, word(0))
        with no_space_for_snapshots(monkeypatch):
            memory.erase(record.id)
            assert left(root / "u1", traces(record)) == set()
            assert found(memory, word(3 * 7777)) == [] and found(memory, word(0)) == [sentence(0)]
    check_found(root, absent=[7777])


def erase_and_die(tell: Tell, root: str, verb: str, ref: str, loaded: bool) -> None:
    """Erase, and be killed as soon as it is committed."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            result = super().execute(sql, *values)
            if sql == "COMMIT" and dying.is_set():
                os.kill(os.getpid(), signal.SIGKILL)
            return result

    dying, connect = threading.Event(), sqlite3.connect
    sqlite3.connect = lambda *args, **options: connect(*args, **options | {"factory": Connection})
    memory = recollect.open(root, clock=FrozenClock()).user("u1")
    written(memory.say(sentence(6001), session="s"))
    if loaded:
        search(memory, word(0))
    dying.set()
    if verb == "erase":
        memory.erase(ref)
    else:
        memory.clear()


@pytest.mark.everyday(3)
@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize(
    ("verb", "then"),
    [("erase", "search"), ("erase", "write"), ("erase", "erase"), ("clear", "search")],
)
def test_R7_who_was_killed_after_erasing_leaves_nothing_of_it_after_the_next_use(
    spawner: Spawner, root: Path, verb: str, then: str, loaded: bool
) -> None:
    record = _with_secret(root)
    job = "tests.test_recall_faults:erase_and_die"
    lines = spawner.start(job, root=root, verb=verb, ref=record.id, loaded=loaded).rest()
    assert not lines, "it was not killed"
    with recollect.open(root, clock=FrozenClock()) as app:
        memory = app.user("u1")
        with pytest.raises(recollect.NotFoundError):
            memory.get(record.id)
        written(memory.say(sentence(6000), session="s"))
        if then == "erase":
            memory.erase(search(memory, word(0))[0].record.id)
        elif then == "search":
            assert found(memory, word(3 * 7777)) == []
        assert left(root / "u1", traces(record)) == set()
    assert left(root / "u1", traces(record)) == set()


@pytest.mark.parametrize("loaded", [True, False])
def test_R7_who_is_saving_a_snapshot_meanwhile_does_not_bring_it_back(
    root: Path, monkeypatch: pytest.MonkeyPatch, loaded: bool
) -> None:
    record = _with_secret(root)
    saving, go_on, real = threading.Event(), threading.Event(), os.fsync
    slow = threading.Thread(target=lambda: other.user("u1")._user_memory.index.save(), daemon=True)

    def fsync(fd: int) -> None:
        if threading.current_thread() is slow and os.readlink(f"/proc/self/fd/{fd}").endswith(".tmp"):
            saving.set()
            assert go_on.wait(_DEADLINE)
        real(fd)

    with recollect.open(root, clock=FrozenClock()) as app, recollect.open(root, clock=FrozenClock()) as other:
        memory = app.user("u1")
        if loaded:
            search(memory, word(0))
        search(other.user("u1"), word(0))
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fsync)
            slow.start()
            assert saving.wait(_DEADLINE)
            erasing = threading.Thread(target=lambda: memory.erase(record.id))
            erasing.start()
            erasing.join(_DEADLINE)
            go_on.set()
            slow.join(_DEADLINE)
        assert not erasing.is_alive() and not slow.is_alive()
        assert left(root / "u1", traces(record)) == set()


@pytest.mark.everyday(3)
@pytest.mark.parametrize("then", ["find", "save", "close", "note"])
@pytest.mark.parametrize("verb", ["erase", "clear"])
def test_R7_another_process_does_not_bring_back_what_was_erased(
    spawner: Spawner, root: Path, verb: str, then: str
) -> None:
    """One that has an index of before, with more in it than it saved."""
    with Other(spawner, root) as other:
        other.ask("notes", 6000, 250)
        other.ask("find", word(0))
        with recollect.open(root, clock=FrozenClock()) as app:
            memory = app.user("u1")
            record = written(memory.note(sentence(7777)))
            assert other.ask("find", word(3 * 7777)) == [sentence(7777)]
            assert memory.search(word(0), kinds=["message"])
            if verb == "erase":
                memory.erase(record.id)
            else:
                memory.clear()
            assert left(root / "u1", traces(record)) == set()
            if then == "find":
                assert other.ask("find", word(3 * 7777)) == []
            elif then == "note":
                other.ask("note", sentence(7778))
            else:
                other.ask(then)
            assert left(root / "u1", traces(record)) == set()
            other.ask("close")
            assert left(root / "u1", traces(record)) == set()


@both_stores
def test_R7_an_erased_user_has_no_index(folder: Path, url: str | None) -> None:
    with open_memory(folder, url, clock=FrozenClock()) as app:
        memory = app.user("u1")
        record = written(memory.note(sentence(7777)))
        memory.rebuild_index()
        assert left(folder, traces(record))
        app.erase_user("u1")
        assert not (folder / "u1").exists() and left(folder, traces(record)) == set()
        assert found(memory, word(3 * 7777)) == [] and found(app.user("u1"), word(3 * 7777)) == []
        memory._user_memory.index.save()
    assert not (folder / "u1").exists()


@both_stores
def test_R7_another_process_does_not_bring_back_an_erased_user(spawner: Spawner, folder: Path, url: str | None) -> None:
    with Other(spawner, folder, url) as other:
        other.ask("notes", 0, 250)
        other.ask("note", sentence(7777))
        assert other.ask("find", word(3 * 7777)) == [sentence(7777)]
        with open_memory(folder, url, clock=FrozenClock()) as app:
            [record] = app.user("u1").read(kind="note")
            app.erase_user("u1")
            assert left(folder, traces(record)) == set()
            written(app.user("u1").note(sentence(6000)))  # the folder is there again
            other.ask("close")
            assert left(folder, traces(record)) == set()


# closing, and many users


@pytest.mark.everyday(1)
@both_stores
@pytest.mark.parametrize("embedder", [False, True])
def test_S3_searches_go_on_while_the_memory_is_closed(folder: Path, url: str | None, embedder: bool) -> None:
    chosen = HashEmbedder() if embedder else None
    app = open_memory(folder, url, clock=FrozenClock(), embedder=chosen, embedder_timeout_ms=20_000)
    memory = app.user("u1")
    with memory.batch() as batch:
        for number in range(60):
            batch.say(sentence(number), session="s")
    closed = threading.Event()

    def look(seed: int) -> None:
        chance = random.Random(seed)
        for n in range(200):
            if n >= 10 and closed.is_set():
                break
            number = chance.randrange(60)
            assert found(memory, word(3 * number)) == [sentence(number)]

    def close() -> None:
        for _ in range(5):
            app.close()
        closed.set()

    together([close, *(lambda seed=seed: look(seed) for seed in range(8))])
    written(memory.note(sentence(6000)))
    assert found(memory, word(3 * 6000)) == [sentence(6000)]
    app.close()


def _living() -> int:
    gc.collect()
    return sum(isinstance(each, Index) for each in gc.get_objects())


@pytest.mark.slow
def test_S3_of_many_users_only_the_last_few_are_in_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.app._MOST_REMEMBERED", 64)
    others = _living()
    with recollect.open(folder, clock=FrozenClock()) as app:
        first = app.user("first")
        with first.batch() as batch:
            for number in range(_MANY):
                batch.say(sentence(number), session="s")
        assert found(first, word(0)) == [sentence(0)]
        assert not saved(folder, "first").exists()
        for who in range(80):
            memory = app.user(f"u{who}")
            written(memory.say(sentence(who), session="s"))
            assert found(memory, word(3 * who)) == [sentence(who)]
        assert _living() - others <= 65
        # who left memory was saved, and every handle goes on
        assert snapshot.notes_of(saved(folder, "first"))["seq"] == _MANY
        written(first.note(sentence(6000)))
        assert found(first, word(3 * 6000)) == [sentence(6000)] and found(first, word(0)) == [sentence(0)]
        assert found(app.user("first"), word(3 * 6000)) == [sentence(6000)]
        assert found(app.user("u0"), word(0)) == [sentence(0)]
        written(app.user("first").note(sentence(6001)))
        assert found(first, word(3 * 6001)) == [sentence(6001)]
    del first, memory, batch
    assert _living() == others


@pytest.mark.slow
def test_S3_handles_that_are_kept_keep_no_index_in_memory_for_ever(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.app._MOST_REMEMBERED", 64)
    others = _living()
    with recollect.open(folder, clock=FrozenClock()) as app:
        handles = [app.user(f"u{who}") for who in range(90)]
        for who, memory in enumerate(handles):
            written(memory.say(sentence(who), session="s"))
        for _ in range(2):
            for who, memory in enumerate(handles):
                assert found(memory, word(3 * who)) == [sentence(who)]
        assert _living() - others <= 65


def test_S3_indexes_in_memory_are_bounded_by_how_much_they_hold(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.app._MOST_INDEXED", 100)
    others = _living()
    with recollect.open(folder, clock=FrozenClock()) as app:
        handles = [app.user(f"u{who}") for who in range(6)]
        for memory in handles:
            with memory.batch() as batch:
                for number in range(40):
                    written(batch.note(sentence(number)))
            assert found(memory, word(0)) == [sentence(0)]
        assert 1 <= _living() - others <= 3
        assert found(handles[0], word(3)) == [sentence(1)]


# vectors


class HangingEmbedder(HashEmbedder):
    """Does not answer until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.let_go = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.set()
        self.let_go.wait(_DEADLINE)
        return super().embed(texts)


def test_S3_an_embedder_that_hangs_keeps_nobody_waiting(folder: Path) -> None:
    embedder = HangingEmbedder()
    app = recollect.open(folder, clock=FrozenClock(), embedder=embedder, embedder_timeout_ms=50)
    memory = app.user("u1")
    try:
        written(memory.note(sentence(0)))
        assert embedder.asked.wait(_DEADLINE)

        def work(first: int) -> None:
            for number in range(first, first + 10):
                written(memory.note(sentence(number)))
                assert found(memory, word(3 * number)) == [sentence(number)]

        together([lambda first=first: work(first) for first in range(100, 500, 100)])  # type: ignore[misc]
        hits = search(memory, word(0))
        assert hits.mode == "words" and hits.note
        gone = hits[0].record
        memory.erase(gone.id)  # while its vector is being made
        together([app.close])
    finally:
        embedder.let_go.set()
    for thread in threading.enumerate():
        if thread.name in ("recollect-embed", "recollect-query"):
            thread.join(_DEADLINE)
    assert left(folder / "u1", traces(gone)) == set()
    with recollect.open(folder, clock=FrozenClock(), embedder=HashEmbedder(), embedder_timeout_ms=20_000) as again:
        memory = again.user("u1")
        memory.embed()
        assert search(memory, word(3 * 100)).mode == "words and vectors"
        assert left(folder / "u1", traces(gone)) == set()


def exit_while_an_embedder_hangs(tell: Tell, root: str) -> None:
    """A program that ends as programs do, while an answer is still awaited."""
    import subprocess
    import sys

    program = f"""
import threading, recollect
from recollect.testing.embedding import HashEmbedder
class Hanging(HashEmbedder):
    def embed(self, texts):
        threading.Event().wait(30)
app = recollect.open({root!r}, embedder=Hanging(), embedder_timeout_ms=50)
app.user("u1").note("Likes tea")
app.user("u1").search("tea")
app.close()
"""
    try:
        tell(ended=subprocess.run([sys.executable, "-c", program], timeout=120).returncode)
    except subprocess.TimeoutExpired:
        tell(ended="not within ten seconds")


def test_S3_a_program_ends_although_its_embedder_hangs(spawner: Spawner, folder: Path) -> None:
    worker = spawner.start("tests.test_recall_faults:exit_while_an_embedder_hangs", root=folder)
    assert worker.until("ended")["ended"] == 0


def embed_slowly(tell: Tell, root: str, url: str | None) -> None:
    """Make the vectors of one batch of records, and hang at the next."""

    times = iter(range(10))

    class Once(HashEmbedder):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if next(times) == 1:
                tell(hangs=True)
                threading.Event().wait()
            return super().embed(texts)

    memory = open_memory(root, url, clock=FrozenClock(), embedder=Once()).user("u1")
    with memory.batch() as batch:
        for number in range(100):
            batch.say(sentence(number), session="s")
    threading.Event().wait()


@pytest.mark.everyday(1)
@both_stores
@pytest.mark.parametrize("then", ["search", "write"])
def test_S3_vectors_that_a_killed_process_did_not_make_are_made_later(
    spawner: Spawner, folder: Path, url: str | None, then: str
) -> None:
    worker = spawner.start("tests.test_recall_faults:embed_slowly", root=folder, url=url)
    worker.until("hangs")
    worker.kill()
    with open_memory(folder, url, clock=FrozenClock(), embedder=HashEmbedder(), embedder_timeout_ms=20_000) as app:
        memory = app.user("u1")
        assert unembedded(memory) == 100 - 64
        if then == "write":
            written(memory.note(sentence(6000)))
        assert search(memory, word(3 * 99))[0].record.content == sentence(99)
        deadline = time.monotonic() + 120
        while unembedded(memory) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert unembedded(memory) == 0
