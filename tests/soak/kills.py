"""SIGKILL at random instants: one to eight processes write, many of them after reading, while a person saves MEMORY.md."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

import recollect
from tests.soak.model import new_token, tokens_in
from tests.soak.schedules import PHRASES, save_file
from tests.soak.surfaces import PATIENCE, Answer, Api, Op, do_with_api
from tests.soak.warm import USER, Child

VERBS = ("remember", "note", "observe", "episode", "say", "jot", "scratch")
RECORDS_IN_A_FOLDER = 120
"""After so many, a folder is given up for a fresh one: looking at everything after each kill must stay cheap."""


# -- the processes that are killed -----------------------------------------------------------------------------------


def write_forever(root: str, seed: str, reads_first: bool, changes: int, born: float) -> int:
    """Read, perhaps; then write, and say before each change what it will be and after it that it is done."""
    random = Random(seed)
    app = recollect.open(root)
    memory = app.user(USER)
    own: list[tuple[str, Op]] = []

    def tell(**fields: object) -> None:
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()

    if reads_first:
        random.choice((memory.read, memory.show, lambda: memory.search("anything at all"), memory.count))()
    for number in range(changes):
        record = f"{seed} {number}"
        token = new_token(random)
        text = random.choice(PHRASES).format(token)
        choice = random.random()
        if own and choice < 0.2:
            at = random.randrange(len(own))
            record, first = own[at]
            op = Op("update", text, first.kind, first.key, first.ref)
        elif own and choice < 0.3:
            record, first = own.pop(random.randrange(len(own)))
            op, token = Op("forget", "", first.kind, first.key, first.ref), ""
        else:
            verb = random.choices(VERBS, (10, 3, 2, 2, 2, 2, 1))[0]
            keyed = verb == "scratch" or (verb == "remember" and random.random() < 0.6)
            key = f"about {new_token(random)[:8]}" if keyed else None
            op = Op(verb, text, key=key, number=number, tool=random.random() < 0.3)
        tell(about=record, token=token, verb=op.verb, ready=0 if number else time.monotonic() - born)
        began = time.monotonic()
        try:
            fields = do_with_api(app, op)
        except recollect.RecollectError as error:
            fields = {"error": f"{type(error).__name__}: {error}"}
        tell(about=record, done=fields.get("error") is None, error=fields.get("error"), took=time.monotonic() - began)
        if op.verb in ("remember", "note") and fields.get("id"):
            kind = "fact" if op.verb == "remember" else "note"
            own.append((record, Op("", kind=kind, key=op.key, ref=str(fields["id"]))))
        if random.random() < 0.1:
            memory.read()
        if random.random() < 0.05:
            app.close()
    app.close()
    return 0


@dataclass
class Pace:
    """How long things take on this machine, lately, so that kills come where something happens."""

    took: float = 0.01
    """A change."""
    ready: float = 0.03
    """From the start of a process to its first change."""


PACE = Pace()


@dataclass
class Told:
    """What the processes said: which tokens each record may have now. An empty token means that it is gone."""

    records: dict[str, set[str]] = field(default_factory=dict)
    coming: dict[str, str] = field(default_factory=dict)
    watched: dict[str, set[str]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def hear(self, line: bytes) -> None:
        said = json.loads(line)
        record = said["about"]
        if "token" in said:
            before = self.records.get(record, {""})
            self.records[record] = before | {said["token"]}
            self.coming[record] = said["token"]
            if record in self.watched:
                self.watched[record].add(said["token"])
            if said["ready"]:
                PACE.ready = 0.8 * PACE.ready + 0.2 * said["ready"]
        elif said["done"]:
            self.records[record] = {self.coming[record]}
            PACE.took = 0.9 * PACE.took + 0.1 * said["took"]
        else:
            self.errors.append(said["error"])

    def watch(self) -> None:
        """From now on somebody looks: what each record may be is what it may be now, or becomes until `check`."""
        self.watched = {record: set(possible) for record, possible in self.records.items()}

    def check(self, seen: set[str]) -> str | None:
        """Compare with what somebody saw who began to look at `watch`, and has ended before all this was said."""
        lost = []
        for record, possible in self.watched.items():
            there = possible & seen
            if not there and "" not in possible:
                lost.append(f"{record}: one of {sorted(possible)}")
            if len(there) > 1:
                lost.append(f"{record}: both of {sorted(there)}")
        return f"acknowledged and not there: {lost}" if lost else None


@dataclass
class Writer:
    """A process that writes, and what it said so far."""

    child: Child
    reads_first: bool

    def drain(self, told: Told) -> bool:
        """Hear all it said up to now. Return False at the end."""
        more = True
        while more and select.select([self.child.read_end], [], [], 0)[0]:
            before = len(self.child.received)
            more = self.child.read_some()
            if more and len(self.child.received) == before:
                break
        *lines, self.child.received = self.child.received.split(b"\n")
        for line in lines:
            told.hear(line)
        return more


def kill_at_once(children: list[Child]) -> int:
    """Kill these processes in one instant. Return how many of them had not ended before."""
    running = [child for child in children if child.poll() is None]
    for child in running:
        os.kill(child.pid, signal.SIGKILL)
    return sum(child.wait() == -signal.SIGKILL for child in running)


# -- one folder ------------------------------------------------------------------------------------------------------


@dataclass
class Counts:
    kills: int = 0
    processes: int = 0
    read_first: int = 0
    writes: int = 0
    saves: int = 0
    busy: int = 0
    violations: int = 0


class Folder:
    """One memory with those who work on it."""

    def __init__(self, place: Path, seed: str, processes: int, editor: bool) -> None:
        self.place = place
        self.root = place / "memory"
        self.root.mkdir(parents=True)
        self.random = Random(seed)
        self.seed = seed
        self.processes = processes
        self.editor = editor
        self.told = Told()
        self.saved: list[str] = []
        self.rounds = 0

    @property
    def file(self) -> Path:
        return self.root / USER / "MEMORY.md"

    @property
    def full(self) -> bool:
        return len(self.told.records) + len(self.saved) > RECORDS_IN_A_FOLDER

    def round(self, counts: Counts) -> str | None:
        """Start some processes and kill most of them, one by one or several at once. Return what is wrong, or None."""
        self.rounds += 1
        random, told = self.random, self.told
        before = len(told.records)
        writers = []
        for at in range(random.randint(1, self.processes)):
            reads_first = random.random() < 0.65
            seed = f"{self.seed}.{self.rounds}.{at}"
            changes = random.randint(1, 6)
            write = partial(write_forever, str(self.root), seed, reads_first, changes, time.monotonic())
            child = Child(write, self.place / "errors")
            child.close_input()
            writers.append(Writer(child, reads_first))
            counts.processes += 1
            counts.read_first += reads_first
        wrong = None
        time.sleep(PACE.ready * random.choice((0, 0.5, 1, 1, 1, 1.5)))
        while writers and wrong is None:
            time.sleep(PACE.took * random.choice((0.3, 1, 3)) * random.random())
            if random.random() < 0.4 and self.editor:
                counts.saves += self._save()
            if random.random() < 0.12:  # one may end in peace
                self._finish(writers.pop(random.randrange(len(writers))))
                continue
            some = random.randint(1, len(writers))
            killed = random.sample(writers, random.choice((1, some, len(writers))))
            counts.kills += kill_at_once([writer.child for writer in killed])
            for writer in writers:
                writer.drain(told)
            for writer in killed:
                writers.remove(writer)
                writer.child.dispose()
            wrong = self._check(writers)
        for writer in writers:
            writer.child.dispose()
        counts.writes += len(told.records) - before
        errors, told.errors = told.errors, []
        for error in errors:
            if "Busy" in error:
                counts.busy += 1
            elif wrong is None:
                wrong = f"a write was answered with {error}"
        return wrong

    def _finish(self, writer: Writer) -> None:
        end = time.monotonic() + PATIENCE
        while writer.drain(self.told):
            if time.monotonic() > end:
                self.told.errors.append("hang: a writer did not end")
                break
            select.select([writer.child.read_end], [], [], 1)
        writer.child.dispose()

    def _save(self) -> int:
        """The person opens the file, adds a line and saves."""
        try:
            text = self.file.read_text()
        except FileNotFoundError:
            return 0
        if "## Key Facts\n" not in text:
            return 0  # what is wrong with it will be found by the check
        token = new_token(self.random)
        heading, line = "## Key Facts\n", f"- {self.random.choice(PHRASES).format(token)}\n"
        save_file(self.file, text.replace(heading, heading + line, 1), self.random.choice(("rename", "in place")))
        self.saved.append(token)
        return 1

    def _check(self, writers: list[Writer]) -> str | None:
        """Open anew, in a new process, and look."""
        api = Api(self.root, self.place / "errors")
        try:
            self.told.watch()
            answer = api.ask(Op("read"))
            for writer in writers:
                writer.drain(self.told)
            if wrong := self._wrong_answer("read", answer):
                return wrong
            seen = [token for _, text in answer.records for token in tokens_in(text)]
            twice = [token for token, count in Counter(seen).items() if count > 1]
            if twice:
                return f"seen twice: {twice}"
            if wrong := self.told.check(set(seen)):
                return wrong
            if writers:
                return None
            text = self.file.read_text() if self.file.exists() else ""
            if seen and not (text.startswith("# User Memory") and "## Key Facts" in text and text.endswith("\n")):
                return f"MEMORY.md is not whole: {text!r}"
            lost = sorted(set(self.saved) - set(seen) - set(tokens_in(text)))
            if lost:
                return f"saved by the person, and neither in memory nor in the file: {lost}"
            answer = api.ask(Op("verify"))
            if wrong := self._wrong_answer("verify", answer):
                return wrong
            return f"verify: {answer.problems}" if answer.problems else None
        finally:
            api.kill()

    def _wrong_answer(self, what: str, answer: Answer) -> str | None:
        if not answer.acknowledged:
            errors = self.place / "errors"
            return f"{what} died: {errors.read_text()[-800:] if errors.exists() else ''}"
        return f"{what} was answered with {answer.error}" if answer.error else None


def one_folder(place: Path, seed: str, kills_left: int, processes: int, editor: bool) -> tuple[Counts, str | None]:
    """Work on a fresh folder until it is full. Return the counts and what is wrong, if anything is."""
    folder = Folder(place, seed, processes, editor)
    counts = Counts()
    rounds = folder.random.choice((1, 2, 4, 8))
    wrong = None
    while wrong is None and folder.rounds < rounds and not folder.full and counts.kills < kills_left:
        wrong = folder.round(counts)
    counts.violations = wrong is not None
    if wrong is None or not os.environ.get("SOAK_KEEP"):
        shutil.rmtree(place, ignore_errors=True)
    return counts, wrong
