"""Processes that can be killed: a spawner that forks workers in milliseconds, and what those workers do.

A worker opens a memory, works on it, and tells through a pipe, one JSON line each, what it is about to do
(``begin``) and, once the call returned, what must hold from then on (``ack``). Whoever reads the lines knows
what was acknowledged when the worker died. The spawner is a process of its own with a single thread, because
the process of the tests may have several, and those do not survive a fork.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import random
import resource
import selectors
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import traceback
import urllib.parse  # noqa: F401  (newer Pythons load it late, when the worker may no longer read the library)
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import recollect
from recollect import Edited, Memory, Merged, Record, Refused, Updated, Written
from recollect.memory.files import file_system
from recollect.store.sqlite import SqliteStore
from recollect.testing import FrozenClock, MemoryStore
from recollect.times import utc_now

State = list[Any]
"""What a record is: its kind, status, content, and whether it is pinned."""


# the side of the tests


class Worker:
    """A running process, as the test sees it."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid = pid
        self.pipe = pipe
        self.ended = False
        self._rest = b""

    def lines(self, timeout: float) -> list[dict[str, Any]]:
        """What it has said, as soon as it says something; nothing if the time is over or it ended."""
        if self.ended:
            return []
        with selectors.DefaultSelector() as selector:
            selector.register(self.pipe, selectors.EVENT_READ)
            if not selector.select(max(timeout, 0)):
                return []
        return self.take()

    def take(self) -> list[dict[str, Any]]:
        """What it has said; waits for it."""
        data = os.read(self.pipe, 1 << 20)
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        told = [json.loads(line) for line in lines]
        for line in told:
            assert "error" not in line, f"the worker failed:\n{line['error']}"
        return told

    def until(self, what: str, timeout: float = 60) -> dict[str, Any]:
        """Wait for a line of this kind; the lines before it are dropped."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and not self.ended:
            for line in self.lines(deadline - time.monotonic()):
                if what in line:
                    return line
        raise AssertionError(f"the worker {'ended' if self.ended else 'was silent'} before it told {what!r}")

    def rest(self, timeout: float = 60) -> list[dict[str, Any]]:
        """All that it says until it ends."""
        told: list[dict[str, Any]] = []
        deadline = time.monotonic() + timeout
        while not self.ended:
            assert time.monotonic() < deadline, "the worker does not end"
            told += self.lines(deadline - time.monotonic())
        return told

    def kill(self) -> list[dict[str, Any]]:
        """Kill it, and give what it said last."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return self.rest()

    def close(self) -> None:
        """Let go of it, dead."""
        if not self.ended:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.pipe >= 0:
            os.close(self.pipe)
        self.ended, self.pipe = True, -1


class Spawner:
    """Forks workers on request. A context manager; workers still alive at its end are killed."""

    def __enter__(self) -> Spawner:
        self._here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        paths = [str(Path(__file__).parents[1]), str(Path(recollect.__file__).parents[1])]
        environ = os.environ | {"PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.durability_worker", str(there.fileno())],
                pass_fds=[there.fileno()],
                env=environ,
            )
        self._workers: list[Worker] = []
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()
        self._here.close()
        self._process.wait(30)

    def start(self, job: str, **arguments: Any) -> Worker:
        """Run a function of this module in a new process."""
        read, write = os.pipe()
        request = json.dumps({"job": job, "arguments": arguments}, default=str).encode()
        socket.send_fds(self._here, [request], [write])
        os.close(write)
        worker = Worker(int(self._here.recv(100)), read)
        self._workers.append(worker)
        return worker


# the side of the workers


def main(control: int) -> None:
    """Fork a worker for each request, until the tests hang up."""
    _warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a worker: its pipe tells that it ended
    here = socket.socket(fileno=control)
    while True:
        request, fds, _, _ = socket.recv_fds(here, 1 << 20, 1)
        if not request:
            return
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            here.close()
            _work(fds[0], **json.loads(request))
        os.close(fds[0])
        here.send(str(pid).encode())


def _warm_up() -> None:
    """Load and compile what every worker needs, so that it inherits it."""
    memory = recollect.open(MemoryStore()).user("u1")
    Writer(lambda **_: None, memory, Path("/nowhere"), "warm", 0, edits=False).work(60)
    memory.search("anything")
    memory.verify()
    SqliteStore(Path("/nowhere"))


def _work(pipe: int, job: str, arguments: dict[str, Any]) -> None:
    def tell(**line: Any) -> None:
        os.write(pipe, json.dumps(line).encode() + b"\n")

    try:
        module, _, name = job.rpartition(":")
        getattr(importlib.import_module(module or __name__), name)(tell, **arguments)
        tell(end=True)
    except BaseException:
        tell(error=traceback.format_exc())
    finally:
        os._exit(0)


Tell = Callable[..., None]


def state_of(record: Record) -> State:
    """What of a record must come back after a crash."""
    return [record.kind, record.status, record.content, record.pinned]


# one memory, random work

_THINGS = "tea rust chess opera bread trains maps snow Київ 東京 naïve 🐻 birds paint salt wool clay".split()


class Writer:
    """Does random things to a memory, and tells what must hold afterwards."""

    def __init__(self, tell: Tell, memory: Memory, folder: Path, name: str, seed: int, edits: bool) -> None:
        self.tell = tell
        self.memory = memory
        self.folder = folder
        self.name = name
        self.random = random.Random(seed)
        self.number = 0
        self.mine: list[str] = []
        self.verbs: dict[Callable[[], None], int] = {
            self.remember: 5, self.update: 4, self.forget: 2, self.undo: 2, self.note: 2, self.jot: 3, self.pin: 1,
            self.merge: 1, self.batch: 2, self.keyed: 1, self.failing: 1, self.gives_text: 2,
        }  # fmt: skip
        if edits:
            self.verbs |= {self.person_adds: 1, self.person_changes: 1, self.person_deletes: 1}

    def work(self, steps: int) -> None:
        # take up what an earlier life left
        self.mine += [r.id for r in self.memory.read(status="all") if r.content.startswith(f"{self.name} ")]
        verbs, weights = list(self.verbs), list(self.verbs.values())
        for _ in range(steps):
            self.random.choices(verbs, weights)[0]()

    def said(self) -> str:
        self.number += 1
        things = self.random.sample(_THINGS, 3)
        return f"{self.name} {self.random.getrandbits(40):x} {' '.join(things)} {self.number}"

    def pick(self, *, status: str = "active", kinds: tuple[str, ...] = ("fact", "note")) -> Record | None:
        found = [self.memory.get(i) for i in self.random.sample(self.mine, min(6, len(self.mine)))]
        return next((r for r in found if r.status == status and r.kind in kinds), None)

    def begin(self, verb: str, **after: State) -> None:
        """Tell what is to hold afterwards, by id, or by content for what has no id yet."""
        self.tell(begin=verb, after=after)

    def acknowledge(self, *ids: str, jot: str | None = None) -> None:
        self.mine += [i for i in ids if i not in self.mine]
        now = {record_id: state_of(self.memory.get(record_id)) for record_id in ids}
        path = self.folder / "MEMORY.md"
        shown = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
        self.tell(ack=now, jot=jot, shown=shown)

    def remember(self) -> None:
        text = self.said()
        self.begin("remember", **{text: ["fact", "active", text, False]})
        outcome = self.memory.remember(text, confidence=self.random.uniform(0.75, 1))
        assert isinstance(outcome, Written), outcome
        self.acknowledge(outcome.record.id)

    def keyed(self) -> None:
        text = self.said()
        key = f"{self.name}_key_{self.random.getrandbits(40):x}"
        self.begin("keyed", **{text: ["fact", "active", text, False]})
        outcome = self.memory.remember(text, key=key, category=self.random.choice(["preference", "work_context"]))
        assert isinstance(outcome, Written), outcome
        self.acknowledge(outcome.record.id)

    def note(self) -> None:
        text = self.said() + "\n\nwith a second paragraph"
        self.begin("note", **{text: ["note", "active", text, False]})
        outcome = self.memory.note(text)
        assert isinstance(outcome, Written), outcome
        self.acknowledge(outcome.record.id)

    def jot(self) -> None:
        text = self.said()
        self.begin("jot", **{text: ["daily", "active", text, False]})
        outcome = self.memory.jot(text)
        assert isinstance(outcome, Written), outcome
        self.acknowledge(outcome.record.id, jot=text)

    def update(self) -> None:
        if record := self.pick():
            text = self.said()
            self.begin("update", **{record.id: [record.kind, "active", text, record.pinned]})
            outcome = self.memory.update(record.id, text)
            assert isinstance(outcome, Updated), outcome
            self.acknowledge(record.id)

    def pin(self) -> None:
        if record := self.pick():
            self.begin("pin", **{record.id: [record.kind, "active", record.content, not record.pinned]})
            self.memory.pin(record.id, not record.pinned)
            self.acknowledge(record.id)

    def forget(self) -> None:
        if record := self.pick():
            self.begin("forget", **{record.id: [record.kind, "archived", record.content, record.pinned]})
            self.memory.forget(record.id)
            self.acknowledge(record.id)

    def undo(self) -> None:
        record = self.pick(status=self.random.choice(["active", "archived"]))
        if record is None:
            return
        entry = [e for e in self.memory.history(record.id) if e.op != "prune"][-1]
        if entry.op == "merge":
            return
        before = entry.before
        after = state_of(before) if before else [record.kind, "archived", record.content, record.pinned]
        self.begin("undo", **{record.id: after})
        self.memory.undo(entry.seq)
        self.acknowledge(record.id)

    def merge(self) -> None:
        first, second = self.pick(kinds=("fact",)), self.pick(kinds=("fact",))
        if first is None or second is None or first.id == second.id or (first.key and second.key):
            return
        text = self.said()
        after = {r.id: [r.kind, "superseded", r.content, r.pinned] for r in (first, second)}
        self.begin("merge", **after, **{text: ["fact", "active", text, first.pinned or second.pinned]})
        outcome = self.memory.merge([first.id, second.id], text)
        assert isinstance(outcome, Merged), outcome
        self.acknowledge(first.id, second.id, outcome.record.id)

    def batch(self) -> None:
        texts = [self.said() for _ in range(4)]
        kinds = ("fact", "note", "daily", "fact")
        after = {text: [kind, "active", text, False] for text, kind in zip(texts, kinds, strict=True)}
        record = self.pick()
        if record is not None:
            after[record.id] = [record.kind, "archived", record.content, record.pinned]
        self.begin("batch", **after)
        with self.memory.batch() as batch:
            done = [batch.remember(texts[0]), batch.note(texts[1]), batch.jot(texts[2]), batch.remember(texts[3])]
            if record is not None:
                batch.forget(record.id)
        assert all(isinstance(outcome, Written) for outcome in done), done
        ids = [outcome.record.id for outcome in done if isinstance(outcome, Written)]
        self.acknowledge(*ids, *([record.id] if record else []), jot=texts[2])

    def failing(self) -> None:
        """Nothing of a batch that fails is kept."""
        text = self.said()
        self.tell(begin="failing", after={})
        try:
            with self.memory.batch() as batch:
                batch.remember(text)
                batch.jot(text)
                raise _ChangedMindError
        except _ChangedMindError:
            pass
        self.acknowledge()

    def gives_text(self) -> None:
        """A tool changes one line of MEMORY.md and adds another, in one text."""
        text, record, shown = self.said(), self._listed(), self.memory.show()
        after, new = {text: ["fact", "active", text, False]}, f"{shown}- {text}\n"
        if record is not None and record.content in shown:
            changed = f"{record.content} in part {self.random.getrandbits(40):x}"
            after[record.id] = ["fact", "active", changed, record.pinned]
            new = new.replace(record.content, changed)
        self.begin("gives text", **after)
        outcome = self.memory.acting("tool:memory").edit(new, expect=shown)
        if isinstance(outcome, Edited):
            self.acknowledge(*(r.id for r in (*outcome.added, *outcome.updated)))
        else:  # another process was faster
            assert isinstance(outcome, Refused) and outcome.reason == "changed", outcome
            self.acknowledge()

    # a person with an editor, who works while nobody else does

    def _edit(self, change: Callable[[str], str]) -> None:
        path = self.folder / "MEMORY.md"
        aside = path.with_name("4913")  # as an editor names it
        aside.write_bytes(change(path.read_bytes().decode()).encode())
        os.replace(aside, path)
        self.memory.read()

    def person_adds(self) -> None:
        if not (self.folder / "MEMORY.md").exists():
            return
        text = self.said()
        self.begin("person adds", **{text: ["fact", "active", text, False]})
        self._edit(lambda now: now + f"- {text}\n")
        self.acknowledge(*(r.id for r in self.memory.read(kind="fact") if r.content == text))

    def _listed(self) -> Record | None:
        record = self.pick(kinds=("fact",))
        return record if record is not None and record.tier == "file" else None

    def person_changes(self) -> None:
        if record := self._listed():
            text = f"{record.content} in part {self.random.getrandbits(40):x}"
            self.begin("person changes", **{record.id: ["fact", "active", text, record.pinned]})
            self._edit(lambda now: now.replace(record.content, text))
            self.acknowledge(record.id)

    def person_deletes(self) -> None:
        record = self._listed()
        if record is not None and record.key is None:
            self.begin("person deletes", **{record.id: ["fact", "archived", record.content, record.pinned]})
            self._edit(lambda now: now.replace(f"- {record.content}\n", ""))
            self.acknowledge(record.id)


class _ChangedMindError(Exception):
    """Ends a batch."""


def open_memory(root: str | Path, url: str | None, **settings: Any) -> recollect.Recollect:
    """The folder itself, or the database at an address with its files in the folder."""
    return recollect.open(root, **settings) if url is None else recollect.open(url, files=root, **settings)


def write_randomly(
    tell: Tell,
    root: str,
    name: str,
    seed: int,
    max_words: int,
    url: str | None = None,
    edits: bool = True,
    steps: int = 100_000,
) -> None:
    """Open the memory of user u1 and do random things until killed."""
    app = open_memory(root, url, max_words=max_words)
    Writer(tell, app.user("u1"), Path(root) / "u1", name, seed, edits).work(steps)


# one operation, killed at one point


class _Points:
    """Counts the points at which a crash could matter, and dies at the chosen one."""

    def __init__(self, tell: Tell, chosen: int) -> None:
        self.tell = tell
        self.chosen = chosen
        self.count = 0

    def reach(self, name: str) -> bool:
        """Die here if this is the point."""
        self.count += 1
        if self.count == self.chosen:
            self.tell(point=name)
            os.kill(os.getpid(), signal.SIGKILL)
        return self.count + 1 == self.chosen

    def install(self) -> None:
        """Before and after everything that changes the disk."""
        points = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                name = " ".join(sql.split()[:2])
                told = name.startswith(("COMMIT", "BEGIN IMMEDIATE", "PRAGMA wal_checkpoint", "PRAGMA journal_mode"))
                if told:
                    points.reach(f"before {name}")
                result = super().execute(sql, *values)
                if told:
                    points.reach(f"after {name}")
                return result

        connect = sqlite3.connect

        def connect_counted(*args: Any, **options: Any) -> sqlite3.Connection:
            made: sqlite3.Connection = connect(*args, **options | {"factory": Connection})
            return made

        sqlite3.connect = connect_counted  # type: ignore[assignment]
        for name in ("replace", "rename", "unlink", "rmdir", "mkdir"):
            setattr(os, name, self._around(name, getattr(os, name)))
        for name in ("exchange", "move"):
            setattr(file_system, name, self._around(name, getattr(file_system, name)))
        opened: set[int] = set()
        open_, write, close = os.open, os.write, os.close

        def open_counted(path: Any, flags: int, *rest: Any, **options: Any) -> int:
            writing = str(path).endswith((".new", ".md")) and flags & os.O_WRONLY
            ours = writing or str(path).endswith(".lock")
            if ours:
                points.reach(f"before open {Path(path).name}")
            fd = open_(path, flags, *rest, **options)
            if writing:
                opened.add(fd)
                points.reach(f"after open {Path(path).name}")
            return fd

        def write_counted(fd: int, data: Any) -> int:
            if fd not in opened:
                return write(fd, data)
            if points.reach("before write"):
                written = write(fd, data[: len(data) // 2])
                points.reach("in the middle of write")
                return written
            written = write(fd, data)
            points.reach("after write")
            return written

        def close_counted(fd: int) -> None:
            opened.discard(fd)
            close(fd)

        os.open, os.write, os.close = open_counted, write_counted, close_counted

    def _around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(path: Any, *rest: Any, **options: Any) -> Any:
            self.reach(f"before {name} {os.path.basename(path)}")
            result = function(path, *rest, **options)
            self.reach(f"after {name} {os.path.basename(path)}")
            return result

        return counted


def operations() -> dict[str, Callable[[recollect.Recollect, Memory, Path], object]]:
    """What is killed at every point, by name."""

    def edit(app: recollect.Recollect, memory: Memory, root: Path) -> object:
        path = root / "u1" / "MEMORY.md"
        text = path.read_text(encoding="utf-8").replace("Likes tea", "Likes mate") + "- Typed by hand\n"
        path.write_text(text, encoding="utf-8")  # the person's, not ours: not counted
        return memory.read()

    def give_text(app: recollect.Recollect, memory: Memory, root: Path) -> object:
        text = memory.show().replace("Likes tea", "Likes mate").replace("- Role: Architect\n", "")
        return memory.acting("tool:memory").edit(f"{text}- Written by a tool\n\n> and what is not a fact\n")

    def batch(app: recollect.Recollect, memory: Memory, root: Path) -> object:
        with memory.batch() as together:
            together.remember("Likes the sea")
            together.jot("Walked along the shore")
            together.note("A note about lighthouses")
            together.forget("role")
        return None

    return {
        "remember": lambda app, memory, root: memory.remember("Collects old maps of Paris"),
        "update": lambda app, memory, root: memory.update("role", "Pilot"),
        "forget": lambda app, memory, root: memory.forget("role"),
        "jot": lambda app, memory, root: memory.jot("Baked three loaves of bread", day="2026-02-12"),
        "jot_first_of_a_day": lambda app, memory, root: memory.jot("Baked three loaves", day="2026-02-20"),
        "note": lambda app, memory, root: memory.note("The boiler was repaired"),
        "undo": lambda app, memory, root: memory.undo(),
        "merge": lambda app, memory, root: memory.merge(["role", "city"], "Engineer in Lviv"),
        "batch": batch,
        "erase": lambda app, memory, root: memory.erase("zebra"),
        "erase_topic": lambda app, memory, root: memory.erase_topic("zebra"),
        "clear": lambda app, memory, root: memory.clear(),
        "pause": lambda app, memory, root: memory.pause(),
        "edit": edit,
        "give_text": give_text,
        "import": lambda app, memory, root: app.user("u2").import_(root / "archive.zip"),
        "rebuild": lambda app, memory, root: app.user("u4").rebuild(force=True),
        "erase_user": lambda app, memory, root: app.erase_user("u1"),
        "first_write": lambda app, memory, root: app.user("u3").remember("Has just arrived"),
    }


def perform(tell: Tell, root: str, operation: str, point: int, warm: bool) -> None:
    """Do one thing, and die at a point of it; point 0 is never reached."""
    app = recollect.open(root, clock=FrozenClock())
    memory = app.user("u1")
    if warm:
        memory.search("zebra")  # a process that has the memory open and knows it by heart
    points = _Points(tell, point)
    points.install()
    operations()[operation](app, memory, Path(root))
    tell(done=points.count)


# one thing each, for the faults


def wait_for(fifo: str) -> None:
    """Go on when the test opens the other end."""
    with open(fifo, "rb") as waiting:
        waiting.read()


def read_without_rights(tell: Tell, root: str, fifo: str | None = None) -> None:
    """As a user who may read the folder and not write there."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    app = recollect.open(root, clock=FrozenClock())
    memory = app.user("u1")

    def look() -> dict[str, Any]:
        found = memory.search("tea")
        return {
            "read": sorted(r.text for r in memory.read()),
            "search": [hit.record.text for hit in found],
            "why": memory.why(found[0].record.id).message,
            "show": memory.show(),
            "history": len(memory.history()),
            "daily": memory.daily(),
            "verify": memory.verify(),
            "users": list(app.users()),
        }

    tell(first=look())
    for verb in (
        lambda: memory.remember("Likes coffee"),
        lambda: memory.forget("role"),
        lambda: memory.jot("Something"),
        lambda: memory.clear(),
        lambda: app.erase_user("u1"),
        lambda: app.user("u2").remember("Someone new"),
    ):
        try:
            verb()
            tell(refused=["nothing", "it was done"])
        except recollect.RecollectError as error:
            tell(refused=[type(error).__name__, str(error)])
    tell(tried=True)
    if fifo is not None:
        wait_for(fifo)
    tell(second=look())


def fill(tell: Tell, root: str, limit: int) -> None:
    """Write until the disk is full, where a limit on the size of files stands for it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    memory = recollect.open(root).user("u1")
    try:
        for number in range(10_000):
            outcome = memory.note(f"{number} {'x' * 1000}")
            assert isinstance(outcome, Written), outcome
            tell(ack=outcome.record.id)
    except recollect.StoreError as error:
        tell(full=[type(error).__name__, str(error)])


def hold_batch(tell: Tell, root: str, fifo: str) -> None:
    """Keep a batch open until told to end it."""
    with recollect.open(root).user("u1").batch() as batch:
        batch.note("Written in a long batch")
        tell(open=True)
        wait_for(fifo)
    tell(done=True)


def write_notes(tell: Tell, root: str, name: str, number: int, clock_hours: float = 0) -> None:
    """So many notes, facts and daily entries, each acknowledged."""
    clock = (lambda: utc_now() + timedelta(hours=clock_hours)) if clock_hours else utc_now
    memory = recollect.open(root, clock=clock).user("u1")
    for n in range(number):
        text = f"{name} {n} {_THINGS[n % len(_THINGS)]} {n * 7919 % 10007}"
        tell(begin=text)
        outcome = memory.jot(text) if n % 5 == 4 else memory.remember(text) if n % 2 else memory.note(text)
        assert isinstance(outcome, Written), outcome
        tell(ack=text)


def change_shared(tell: Tell, root: str, number: int, clock_hours: float) -> None:
    """Update, forget and bring back one fact that others change too."""
    memory = recollect.open(root, clock=lambda: utc_now() + timedelta(hours=clock_hours)).user("u1")
    for n in range(number):
        outcome = memory.update("shared", f"value {clock_hours} {n}")
        assert isinstance(outcome, Updated), outcome
        if n % 4 == 3:
            own = memory.remember(f"{clock_hours} owns {n * 7919 % 10007}")
            assert isinstance(own, Written)
            memory.update(own.record.id, f"{clock_hours} owned {n * 7907 % 10007}")
            memory.forget(own.record.id)
            memory.undo(memory.history(own.record.id)[-1].seq)
        tell(ack=outcome.record.content)


def fork_and_write(tell: Tell, root: str) -> None:
    """A process that used a memory forks; both go on, and the parent is the first to close it."""
    app = recollect.open(root)
    memory = app.user("u1")

    def note(text: str) -> None:
        assert isinstance(memory.note(text), Written)
        tell(ack=text)

    note("The parent, before the fork")
    memory.search("parent")
    ready, go = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        for n in range(10):
            note(f"The child, while the parent has it open, {n}")
        os.write(ready[1], b".")
        os.read(go[0], 1)
        for n in range(10):
            note(f"The child, after the parent closed it, {n}")
        os.kill(os.getpid(), signal.SIGKILL)
    for n in range(10):
        note(f"The parent, while the child writes, {n}")
    os.read(ready[0], 1)
    app.close()
    os.write(go[1], b".")
    os.waitpid(pid, 0)
    note("The parent, after the child died")


def lines_of(text: str) -> Iterator[str]:
    """The items of a Markdown file whose items are one line each, as these workers write them."""
    for line in text.splitlines():
        if line.startswith("- "):
            yield line[2:]


if __name__ == "__main__":
    main(int(sys.argv[1]))
