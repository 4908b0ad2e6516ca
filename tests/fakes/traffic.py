"""People who write and read through a `Cluster` that is killed meanwhile, and a ledger of what they were promised.

Each of them writes through one process and reads through another at once. A request that fails is sent again to
another process with the same idempotency key. What is found wrong on the way, or by `Traffic.check` in the end, is
told in sentences: nothing lost, nothing twice, nothing stale.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from uuid import UUID

from recollect import Memory, Recollect
from recollect.client.connection import HttpConnection
from recollect.errors import NotFoundError, QueueFullError, StoreBusyError, StoreError, StoreUnavailableError
from recollect.verbs import IDEMPOTENCY
from recollect.work.contract import Queue, Task
from recollect.work.jobs import conclude_task, extract_task
from tests.fakes.cluster import Cluster, Member, host_task

PATIENCE = 120.0
"""How long something is tried again before that is wrong, in seconds."""
_SYLLABLES = "ba de fi go lu ma ne pi ro su ta ve wi zo ka le mi no pu ra".split()
_VERBS = ("remember", "note", "say", "jot")
_CHANGEABLE = ("fact", "note")
_KINDS = ("fact", "note", "message", "daily")
_SENT_TWICE = 0.2
"""The share of writes that are sent again although they were answered."""
_DONE: dict[str, Any] = {}
"""It was done, but what was answered is no longer known."""
_NOT_NOW = (StoreBusyError, StoreUnavailableError)


@dataclass
class Promise:
    """One write that was acknowledged: whose, its words, and the record that was told."""

    user: str
    word: str
    record: str
    was: list[str] = field(default_factory=list)
    """Words it had before it was changed."""
    erased: bool = False


class Person(threading.Thread):
    """Writes, changes and erases, and looks after each through another process."""

    def __init__(self, traffic: Traffic, name: str, user: str, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.user = user
        self.promises: list[Promise] = []
        self.sessions: dict[str, str] = {}
        self.host_jobs: dict[str, str] = {}
        self.tool_calls: list[str] = []
        self.done: Counter[str] = Counter()
        self.again = 0
        """How many requests had to be sent once more."""
        self._traffic = traffic
        self._chance = random.Random(seed)
        self._doors = [
            HttpConnection(one.address, None, timeout=traffic.timeout, tries=1) for one in traffic.cluster.apis
        ]

    def run(self) -> None:
        try:
            with self._traffic.queue() as queue:
                while not self._traffic.over.is_set():
                    self._do(queue)
                    self._traffic.over.wait(self._traffic.pause)
        except Exception as error:
            self._wrong(f"gave up: {type(error).__name__}: {error}")
        finally:
            for door in self._doors:
                door.close()

    def _do(self, queue: Queue) -> None:
        what = self._chance.choices(("write", "change", "erase", "talk", "host", "tool"), self._traffic.weights)[0]
        self.done[what] += 1
        alive = [one for one in self.promises if not one.erased]
        changeable = [one for one in alive if one.record.startswith(_CHANGEABLE)]
        if what == "talk":
            self._talk(queue)
        elif what == "host":
            name, word = f"host-{self.name}-{len(self.host_jobs)}", self._word()
            self.host_jobs[name] = word
            self._put(queue, host_task(self.user, name, f"The host says {word}"))
        elif what == "tool":
            self._tool()
        elif what == "change" and changeable:
            self._change(self._chance.choice(changeable))
        elif what == "erase" and alive:
            self._erase(self._chance.choice(alive))
        else:
            self._write()

    def _write(self) -> None:
        verb, word = self._chance.choice(_VERBS), self._word()
        more = {"remember": {"key": f"{self.name}-{len(self.promises)}"}, "say": {"session": f"chat-{self.name}"}}
        body, key = {"content": f"Heard about {word}", **more.get(verb, {})}, self._key()
        at, told = self._ask(verb, body, key=key)
        if told is _DONE:
            [hit] = self._ask("search", {"query": word, "kinds": _KINDS})[1]["hits"]
            told = {"outcome": "written", **hit}
        if told["outcome"] != "written":
            self._wrong(f"{verb} was {told['outcome']}: {told['message']}")
            return
        promise = Promise(self.user, word, told["record"]["id"])
        self.promises.append(promise)
        self._look(promise, at)
        if self._chance.random() < _SENT_TWICE:
            _, again = self._ask(verb, body, at=self._all_but(at), key=key)
            if again is not _DONE and again["record"]["id"] != promise.record:
                self._wrong(f"sent again to another process, {promise} became {again['record']['id']}")

    def _change(self, promise: Promise) -> None:
        word = self._word()
        at, told = self._ask("update", {"ref": promise.record, "content": f"Heard about {word}"})
        if told is not _DONE and told["outcome"] not in ("updated", "written"):
            self._wrong(f"update was {told['outcome']}: {told['message']}")
            return
        promise.was.append(promise.word)
        promise.word = word
        self._look(promise, at)

    def _erase(self, promise: Promise) -> None:
        at, told = self._ask("erase", {"refs": [promise.record]})
        promise.erased = True
        if told is not _DONE and told["outcome"] != "erased":
            self._wrong(f"erase was {told['outcome']}")
        self._look(promise, at)

    def _talk(self, queue: Queue) -> None:
        """A discussion of one message, whose end is a job."""
        session, word = f"talk-{self.name}-{len(self.sessions)}", self._word()
        self._ask("say", {"content": f"I love {word} music. I work at {word.title()}.", "session": session})
        self.sessions[session] = word
        self._put(queue, conclude_task(self.user, session))

    def _tool(self) -> None:
        """A tool that takes longer than the reply waits: it is done later, by whoever lives. Sent once only."""
        word = self._word()
        body = {"arguments": {"content": f"A tool keeps {word}"}, "session": word}
        door = self._chance.choice(self._doors)
        try:
            told = door.ask("POST", f"users/{self.user}/tools/memory_save", body=body, again=False)["result"]
        except _NOT_NOW:
            return  # perhaps done, perhaps not: no promise
        if told["status"] in ("ok", "queued"):
            self.tool_calls.append(word)
        else:
            self._wrong(f"a tool said {told['status']}: {told['text']}")

    def _look(self, promise: Promise, written_at: int) -> None:
        """What was acknowledged by one process is seen by another."""
        elsewhere = self._all_but(written_at)
        _, found = self._ask("search", {"query": promise.word, "kinds": _KINDS}, at=elsewhere)
        hits = [hit["record"]["id"] for hit in found["hits"] if promise.word in hit["record"]["content"]]
        if hits != [] if promise.erased else hits != [promise.record]:
            self._wrong(f"a search on another process found {hits}, not {promise}")
        if promise.was and not promise.erased:
            _, found = self._ask("search", {"query": promise.was[-1], "kinds": _KINDS}, at=elsewhere)
            if any(promise.was[-1] in hit["record"]["content"] for hit in found["hits"]):
                self._wrong(f"a search on another process found what {promise} was before")
        if not promise.erased:
            _, record = self._ask("get", {"ref": promise.record}, at=elsewhere)
            if promise.word not in record["content"]:
                self._wrong(f"another process gave an old version of {promise}")

    def _ask(self, verb: str, body: Mapping[str, Any], *, at: Sequence[int] = (), key: str = "") -> tuple[int, Any]:
        """Which process answered, and what; sent to one after another until one does."""
        headers = {IDEMPOTENCY: key or self._key()}
        until = monotonic() + PATIENCE
        doors = list(at) or list(range(len(self._doors)))
        self._chance.shuffle(doors)
        while monotonic() < until:
            for number in doors:
                try:
                    answer = self._doors[number].ask(
                        "POST", f"users/{self.user}/{verb}", body=dict(body), headers=headers
                    )
                except _NOT_NOW:
                    self.again += 1
                    continue
                except NotFoundError:
                    # somebody else erased something of this user, and so answers that were kept for those who ask again
                    if verb in ("get", "search"):
                        raise
                    return number, _DONE
                return number, answer["result"]
            _pause(0.05)
        raise StoreUnavailableError(f"nobody answered {verb} in {PATIENCE:.0f} seconds")

    def _put(self, queue: Queue, task: Task) -> None:
        """Until it is accepted: its key lets it in once."""
        until = monotonic() + PATIENCE
        while True:
            try:
                queue.put(task)
                return
            except (StoreError, QueueFullError):
                self.again += 1
                if monotonic() > until:
                    raise
                _pause(0.1)

    def _all_but(self, number: int) -> list[int]:
        return [other for other in range(len(self._doors)) if other != number]

    def _key(self) -> str:
        return str(UUID(int=self._chance.getrandbits(128)))

    def _word(self) -> str:
        """One that nobody has used, and no rule takes for a secret."""
        return "".join(self._chance.choices(_SYLLABLES, k=7))

    def _wrong(self, sentence: str) -> None:
        self._traffic.wrong.append(f"{self.name}: {sentence}")


class Traffic:
    """Some people, all at once."""

    def __init__(
        self,
        cluster: Cluster,
        open_app: Callable[[], Recollect],
        *,
        people: int,
        users: int,
        seed: int,
        timeout: float = 5.0,
        pause: float = 0.0,
        tools: bool = False,
    ) -> None:
        self.cluster = cluster
        self.timeout = timeout
        self.pause = pause
        self.over = threading.Event()
        self.wrong: list[str] = []
        self.weights = (12, 3, 1, 2, 2, 1 if tools else 0)
        self._open_app = open_app
        self.people = [
            Person(self, f"person-{number}", f"user-{number % users}", seed * 1000 + number) for number in range(people)
        ]

    @contextmanager
    def queue(self) -> Iterator[Queue]:
        """The queue of the cluster, for one thread."""
        with self._open_app() as app, app.queue() as queue:
            yield queue

    @contextmanager
    def running(self) -> Iterator[None]:
        """While the block lasts; then everyone ends what they have begun."""
        for person in self.people:
            person.start()
        try:
            yield
        finally:
            self.over.set()
            for person in self.people:
                person.join(PATIENCE)
                if person.is_alive():
                    self.wrong.append(f"{person.name} waits for something that does not come")

    def settle(self) -> None:
        """A last job for everyone, put twice, and then until nothing is left to do."""
        with self._open_app() as app, app.queue() as queue:
            day = queue.now().date()
            for _ in range(2):
                queue.put_many([extract_task(user, day) for user in {person.user for person in self.people}])
            until = monotonic() + PATIENCE
            while (depth := queue.depth())["ready"] or depth["running"]:
                if monotonic() > until:
                    self.wrong.append(f"the queue is not empty: {depth}")
                    return
                _pause(0.05)

    def check(self) -> list[str]:
        """Everything that is not as it was promised."""
        wrong = self.wrong + [f"{member.name} ended by itself" for member in self.cluster.members if member.fell]
        with self._open_app() as app, app.queue() as queue:
            wrong += [f"given up: {job.name} of {job.user_id}: {job.error}" for job in queue.dead()]
            for person in self.people:
                wrong += [f"{person.name}: {told}" for told in _broken(person, app.user(person.user))]
            text = "".join("".join(member.said) for member in self.cluster.members)
        words = [one.word for person in self.people for one in person.promises]
        wrong += [f"a log has the word {word} of somebody's memory" for word in words if word in text]
        return wrong

    def told(self) -> dict[str, int]:
        """How much was done."""
        done: Counter[str] = Counter()
        for person in self.people:
            done.update(person.done)
            done["sent again"] += person.again
            done["promises"] += len(person.promises)
        return dict(done)


def _broken(person: Person, memory: Memory) -> Iterator[str]:
    """What of a person's memory is not as they were told."""
    yield from memory.verify()
    records = memory.read(status="all")
    text = {one.id: one.content for one in records}
    journal = memory.history(limit=1_000_000)
    added = Counter(entry.record_id for entry in journal if entry.before is None and not entry.undoes)
    for one in person.promises:
        if one.erased:
            if one.record in text:
                yield f"{one} is still there"
        elif one.word not in text.get(one.record, ""):
            yield f"{one} was lost"
        elif added[one.record] != 1:
            yield f"{one} is {added[one.record]} times in the journal"
    # by their words: whoever was told of one record must not have made another
    for one in person.promises:
        if [i for i, content in text.items() if one.word in content and "Heard about" in content] != (
            [] if one.erased else [one.record]
        ):
            yield f"{one} is there twice"
    runs = Counter(run.kind for run in memory.runs(limit=None) if run.status == "completed")
    learned = Counter(one.content for one in memory.read(kind="fact"))
    for session, word in person.sessions.items():
        if runs[f"discussion:{session}"] != 1:
            yield f"{session} was concluded {runs[f'discussion:{session}']} times"
        if learned[f"Loves {word} music"] != 1:
            yield f"what was said in {session} was learned {learned[f'Loves {word} music']} times"
    if runs["batch"] != 1:
        yield f"the day was learned from {runs['batch']} times"
    for name, word in person.host_jobs.items():
        entries = [one for one in journal if one.after is not None and f"The host says {word}" in one.after.content]
        if len(entries) != 1:
            yield f"the effect of {name} is {len(entries)} times in the journal"
    for word in person.tool_calls:
        found = [content for content in text.values() if f"A tool keeps {word}" in content]
        if len(found) != 1:
            yield f"what a tool was told to keep is there {len(found)} times"


class Killer:
    """Ends one process after another, at random instants, and starts it anew; now and then freezes one."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.kills: Counter[str] = Counter()
        self.freezes = 0
        self._chance = random.Random(seed)

    def kill(self) -> None:
        """One that is ready; of those that answer only if all of them do, so that others can be asked."""
        victim = self._victim()
        victim.kill()
        self.kills[victim.name] += 1
        victim.start()

    def freeze(self, seconds: float) -> None:
        """One stands still for a while, and goes on as if nothing had happened."""
        victim = self._victim()
        victim.freeze()
        self.freezes += 1
        _pause(seconds)
        victim.thaw()

    def _victim(self) -> Member:
        victim = self._chance.choice(self.cluster.members)
        victim.wait_ready()
        if victim in self.cluster.apis:
            for other in self.cluster.apis:
                other.wait_ready()
        return victim


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)
