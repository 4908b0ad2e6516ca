"""Random schedules of several processes and a person with an editor, checked against the model after every step."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.soak.model import Item, Model, State, new_token, tokens_in
from tests.soak.surfaces import SURFACES, Answer, Api, HungError, Op, Surface, as_tool
from tests.soak.warm import USER

ALL_KINDS = frozenset({"fact", "daily", "note", "observation", "episode", "message", "scratch"})
SEEN_BY = {"mcp": frozenset({"fact", "note", "observation", "episode"})}
"""What each surface can list; the others list everything."""

WRITES = {
    "remember": "fact",
    "note": "note",
    "observe": "observation",
    "episode": "episode",
    "say": "message",
    "jot": "daily",
    "scratch": "scratch",
}
PHRASES = (
    "Keeps {} in the cellar",
    "Is fond of {}",
    "Met {} on a train",
    "Has heard of {} before",
    "Wants to paint {}",
)

Step = dict[str, Any]


class Violation(Exception):
    """A promise was broken."""


# -- making schedules ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Schedule:
    """Which surfaces there are, what happens, and how often everybody looks."""

    surfaces: tuple[str, ...]
    steps: tuple[Step, ...]
    density: float
    seed: str

    def to_json(self) -> str:
        return json.dumps(self.__dict__)

    @staticmethod
    def from_json(text: str) -> Schedule:
        fields = json.loads(text)
        return Schedule(tuple(fields["surfaces"]), tuple(fields["steps"]), fields["density"], fields["seed"])


WEIGHTS = {
    "write": 34,
    "update": 10,
    "forget": 6,
    "undo": 4,
    "write_undo": 3,
    "erase": 3,
    "search": 6,
    "read": 8,
    "pair": 5,
    "open_file": 7,
    "change_file": 9,
    "save": 8,
    "close": 4,
    "exit": 5,
    "kill": 4,
    "kill_write": 7,
}


def make_schedule(seed: str, length: int, everyday: bool) -> Schedule:
    """A schedule that depends on its seed alone."""
    random = Random(seed)
    shares = (20, 2, 1, 1, 1) if everyday else (6, 2, 3, 2, 2)
    surfaces = tuple(random.choices(("api", "cli", "shell", "mcp", "http"), shares, k=random.randint(2, 4)))
    steps = []
    for n in range(random.randint(max(3, length // 2), length)):
        do = random.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0]
        step: Step = {
            "n": n,
            "do": do,
            "at": random.randrange(len(surfaces)),
            "pick": int(random.random() * 10_000) / 10_000,
        }
        if do in ("write", "write_undo", "kill_write", "pair"):
            verbs = ("remember", "note", "observe", "episode", "say", "jot", "scratch")
            weights = (12, 3, 2, 2, 0, 0, 0) if do == "write_undo" else (12, 3, 2, 2, 2, 2, 1)
            step["verb"] = random.choices(verbs, weights)[0]
            step["keyed"] = random.random() < 0.7
            step["tool"] = random.random() < 0.3
            if do in ("kill_write", "pair"):
                step["other"] = random.randrange(len(surfaces))
                step["change"] = random.choice(("write", "write", "update", "forget"))
        elif do in ("update", "forget", "search"):
            step["tool"] = random.random() < 0.3
        elif do == "save":
            step["style"] = random.choice(("rename", "in place"))
        if do in ("change_file", "save"):
            step["edit"] = random.choice(("add", "add", "change", "delete"))
        if do in ("open_file", "change_file", "save"):
            step["buffer"] = random.randrange(2)
        steps.append(step)
    return Schedule(surfaces, tuple(steps), random.choice((1.0, 1.0, 0.5, 0.15)), seed)


# -- the person's editor ---------------------------------------------------------------------------------------------


@dataclass
class Buffer:
    """MEMORY.md as it was when the person opened it, and what they made of it since."""

    text: str
    base: State

    changed: bool = False


# -- running one -----------------------------------------------------------------------------------------------------


@dataclass
class Counts:
    """What was done."""

    schedules: int = 0
    steps: int = 0
    looks: int = 0
    kills: int = 0
    saves: int = 0
    violations: int = 0

    def add(self, other: Counts) -> None:
        for name, value in other.__dict__.items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Pool:
    """API processes that are used again for the next schedule, with another folder."""

    folder: Path
    idle: list[Api] = field(default_factory=list)

    def take(self, root: Path) -> Api:
        while self.idle:
            api = self.idle.pop()
            if api.alive:
                api.move(root)
                return api
        return Api(root, self.folder / "errors")

    def give_back(self, api: Api) -> None:
        if api.alive:
            api.close()
            self.idle.append(api)

    def end(self) -> None:
        for api in self.idle:
            api.exit()


class Run:
    """One schedule on one fresh folder."""

    def __init__(self, schedule: Schedule, folder: Path, pool: Pool) -> None:
        self.schedule = schedule
        self.random = Random(schedule.seed + " run")
        self.folder = folder
        self.root = folder / "memory"
        self.pool = pool
        self.model = Model()
        self.counts = Counts(schedules=1)
        self.buffers: list[Buffer | None] = [None, None]
        self.durations: dict[tuple[str, str], float] = {}
        self.closed: set[int] = set()
        self.open: set[int] = set()
        """The processes that have the memory open."""
        self.slots: list[Surface] = [self._make(name) for name in schedule.surfaces]
        self.unseen: list[Buffer] = []
        self.story: list[str] = []

    def _make(self, name: str) -> Surface:
        return self.pool.take(self.root) if name == "api" else SURFACES[name](self.root, self.folder / "errors")

    @property
    def file(self) -> Path:
        return self.root / USER / "MEMORY.md"

    # -- the schedule

    def run(self) -> None:
        """Do all of it. Raise Violation at the first broken promise."""
        self.root.mkdir(parents=True)
        try:
            for step in self.schedule.steps:
                self.counts.steps += 1
                before = len(self.story)
                self.random = Random(f"{self.schedule.seed} {step['n']}")  # whatever steps are left out before it
                getattr(self, f"_do_{step['do']}")(step)
                if len(self.story) > before and self.random.random() < self.schedule.density:
                    self._everybody_looks()
            self._everybody_looks()
            self._end()
        except HungError as hung:
            raise Violation(f"hang: {hung}") from None
        finally:
            for slot in self.slots:
                slot.kill()

    def _ask(self, at: int, op: Op) -> Answer:
        self._note_open(at)
        return self.slots[at].ask(op)

    def _note_open(self, at: int) -> None:
        if not self.open:
            self.model.recover()
        if self.slots[at].name != "cli":
            self.open.add(at)

    def _tell(self, what: str) -> None:
        self.story.append(what)

    def _everybody_looks(self) -> None:
        order = [at for at in range(len(self.slots)) if at not in self.closed]
        self.random.shuffle(order)
        for at in order:
            if self.slots[at].alive:
                self._look(at)

    def _look(self, at: int) -> None:
        """This process must see exactly what was acknowledged, and so must the file."""
        self.counts.looks += 1
        slot = self.slots[at]
        answer = self._ask(at, Op("read"))
        self._check_answer(at, "read", answer)
        self._settle()
        wrong = self.model.observe(answer.records, SEEN_BY.get(slot.name, ALL_KINDS))
        if wrong is None and (self.file.exists() or any(self.model.states)):
            wrong = self.model.check_file(self.file.read_text() if self.file.exists() else "")
        if wrong:
            raise Violation(f"{slot.name} {at} looks: {wrong}")

    def _check_answer(self, at: int, what: str, answer: Answer) -> None:
        if not answer.acknowledged:
            raise Violation(f"{self.slots[at].name} {at} died in {what}: {self._errors()}")
        if answer.error is not None:
            raise Violation(f"{self.slots[at].name} {at} answered {what} with {answer.error}")

    def _errors(self) -> str:
        log = self.folder / "errors"
        return log.read_text()[-800:] if log.exists() else ""

    # -- writing

    def _new_write(self, step: Step, number: int) -> tuple[Op, Item, str]:
        token = new_token(self.random)
        verb = step["verb"]
        keyed = (step["keyed"] and verb == "remember") or verb == "scratch"
        key = f"about {new_token(self.random)[:8]}" if keyed else None
        text = token if key and self.random.random() < 0.3 else self.random.choice(PHRASES).format(token)
        op = Op(verb, text, WRITES[verb], key, number=number, tool=step["tool"])
        return op, Item(WRITES[verb], key), token

    def _able(self, at: int, op: Op) -> bool:
        return self.slots[at].can(op)

    def _prepare(self, step: Step, at: int, avoid: int | None = None) -> Prepared | None:
        """A change for this process, with what it does to the state; None if there is nothing that it could do."""
        change = str(step.get("change", step["do"]))
        if change in ("write", "write_undo"):
            op, item, token = self._new_write(step, int(step["pick"] * 1000))
            if not self._able(at, op):
                op, item, token = self._new_write({**step, "verb": "remember", "keyed": True}, 0)
            number = self.model.add_item(item, token)
            return Prepared(op, number, token, None)
        targets = []
        for number, token in sorted(self.model.certain()):
            possible = self._change_op(change, number, step)
            if number != avoid and possible is not None and self._able(at, possible):
                targets.append((number, token, possible))
        if not targets:
            return None
        number, token, op = targets[int(step["pick"] * len(targets))]
        if change == "update":
            new = new_token(self.random)
            self.model.owner[new] = number
            op = Op(**{**op.__dict__, "text": self.random.choice(PHRASES).format(new)})
            return Prepared(op, number, new, token)
        return Prepared(op, number, None, token)

    def _change_op(self, change: str, number: int, step: Step) -> Op | None:
        item = self.model.items[number]
        ref = item.id or item.key or ""
        if change == "undo":
            return Op("undo", number=item.undoable[0]) if item.undoable else None
        if not ref or (change == "update" and item.kind not in ("fact", "note")):
            return None
        if item.kind == "scratch" and not item.id:
            return None
        tool = bool(step.get("tool"))
        op = Op(change, kind=item.kind, key=item.key, ref=ref, tool=tool)
        return op if as_tool(op) or not tool else Op(change, kind=item.kind, key=item.key, ref=ref)

    def _send(self, at: int, prepared: Prepared) -> float:
        slot = self.slots[at]
        if not slot.alive:
            slot.start()
        self.closed.discard(at)
        self._note_open(at)
        began = time.monotonic()
        slot.send(prepared.op)
        return began

    def _acknowledge(self, at: int, prepared: Prepared, answer: Answer) -> None:
        """The process said that it is done."""
        op = prepared.op
        self._check_answer(at, f"{op.verb} {op.text or op.ref}", answer)
        self.model.apply(prepared.effect)
        self._remember_ids(prepared, answer)

    def _remember_ids(self, prepared: Prepared, answer: Answer) -> None:
        item = self.model.items[prepared.number]
        item.id = item.id or answer.id
        item.undoable = (answer.seq, prepared.before) if answer.seq else None
        if prepared.op.verb == "erase" and prepared.before:
            self.model.erased.add(prepared.before)

    def _do_change(self, step: Step) -> Prepared | None:
        at = step["at"]
        self._settle()
        prepared = self._prepare(step, at)
        if prepared is None:
            return None
        began = self._send(at, prepared)
        answer = self.slots[at].receive()
        self._took(at, prepared, began)
        self._acknowledge(at, prepared, answer)
        self._tell(f"{self.slots[at].name} {at} {prepared}")
        return prepared

    _do_write = _do_update = _do_forget = _do_erase = _do_change

    def _took(self, at: int, prepared: Prepared, began: float) -> None:
        self.durations[self.slots[at].name, prepared.op.verb] = time.monotonic() - began

    def _do_undo(self, step: Step) -> None:
        at = step["at"]
        self._settle()
        gone = {number for number, _ in self.model.certain()}
        choices = []
        for number, item in enumerate(self.model.items):
            sure = number in gone or all(number not in dict(state) for state in self.model.states)
            if item.undoable and sure:
                choices.append(number)
        if not choices or not self._able(at, Op("undo")):
            return
        number = choices[int(step["pick"] * len(choices))]
        item = self.model.items[number]
        assert item.undoable is not None
        seq, token = item.undoable
        prepared = Prepared(Op("undo", number=seq), number, token, None)
        began = self._send(at, prepared)
        answer = self.slots[at].receive()
        self._took(at, prepared, began)
        self._check_answer(at, f"undo {seq}", answer)
        self.model.apply(prepared.effect)
        item.undoable = None
        self._tell(f"{self.slots[at].name} {at} undo {seq} of record {number}")

    def _do_write_undo(self, step: Step) -> None:
        """Write, and take back the last change without saying which."""
        at = step["at"]
        if not self._able(at, Op("undo_last")):
            return
        prepared = self._do_change(step)
        if prepared is None:
            return
        self._check_answer(at, "undo", self._ask(at, Op("undo_last")))
        self.model.apply(lambda state: frozenset(pair for pair in state if pair[0] != prepared.number))
        self.model.items[prepared.number].undoable = None
        self._tell(f"{self.slots[at].name} {at} undo")

    def _do_pair(self, step: Step) -> None:
        """Two processes are asked at once."""
        first, second = step["at"], step["other"]
        if first == second:
            return
        self._settle()
        one = self._prepare({**step, "change": "write"}, first)
        two = self._prepare(step, second, avoid=one.number if one else None)
        if one is None or two is None:
            return
        self._send(first, one)
        self._send(second, two)
        answers = self.slots[first].receive(), self.slots[second].receive()
        before = set(self.model.states)
        self.model.apply(two.effect)  # either may have been first: both orders leave versions of the file
        self.model.states = before
        self._acknowledge(first, one, answers[0])
        self._acknowledge(second, two, answers[1])
        self._tell(f"at once: {self.slots[first].name} {first} {one} | {self.slots[second].name} {second} {two}")

    # -- reading

    def _do_read(self, step: Step) -> None:
        at = step["at"]
        self.closed.discard(at)
        self._look(at)
        self._tell(f"{self.slots[at].name} {at} read")

    def _do_search(self, step: Step) -> None:
        at = step["at"]
        self._settle()
        kinds = SEEN_BY.get(self.slots[at].name, ALL_KINDS - {"scratch"}) if not step["tool"] else SEEN_BY["mcp"]
        targets = sorted(pair for pair in self.model.certain() if self.model.items[pair[0]].kind in kinds)
        op = Op("search", tool=bool(step["tool"]))
        if not targets or not self._able(at, op):
            return
        _, token = targets[int(step["pick"] * len(targets))]
        self.closed.discard(at)
        answer = self._ask(at, Op("search", token, tool=op.tool))
        self._check_answer(at, "search", answer)
        found = {word for _, text in answer.records for word in tokens_in(text)}
        if token not in found:
            raise Violation(f"{self.slots[at].name} {at} searched {token} and found {sorted(found)}")
        ghosts = found - {token for state in self.model.states for _, token in state}
        if ghosts:
            raise Violation(f"{self.slots[at].name} {at} found what is not there any more: {sorted(ghosts)}")
        self._tell(f"{self.slots[at].name} {at} search {token}")

    # -- the editor

    def _do_open_file(self, step: Step) -> None:
        if not self.file.exists():
            return
        text = self.file.read_text()
        lines = frozenset((self.model.owner[token], token) for token in tokens_in(text) if token in self.model.owner)
        pending = self.model.pending
        buffer = Buffer(text, pending.base if pending else lines)
        if pending:
            self.unseen.append(buffer)
        else:
            self.model.note_version(lines)
        self.buffers[step["buffer"]] = buffer
        self._tell(f"the person opens the file (buffer {step['buffer']})")

    def _do_change_file(self, step: Step) -> None:
        buffer = self.buffers[step["buffer"]]
        if buffer is None:
            return
        lines = buffer.text.splitlines(keepends=True)
        facts = [at for at, line in enumerate(lines) if tokens_in(line)]
        if step["edit"] == "add":
            token = new_token(self.random)
            key = f"About {new_token(self.random)[:8]}" if step["pick"] < 0.5 else None
            number = self.model.add_item(Item("fact", key.lower() if key else None), token)
            line = f"- {key}: {token}\n" if key else f"- {self.random.choice(PHRASES).format(token)}\n"
            headings = [at for at, text in enumerate(lines) if text.startswith("## ")]
            lines.insert(headings[int(step["pick"] * len(headings))] + 1, line)
            what = f"adds {token} (record {number})"
        elif not facts:
            return
        else:
            at = facts[int(step["pick"] * len(facts))]
            token = tokens_in(lines[at])[0]
            if step["edit"] == "change":
                new = new_token(self.random)
                self.model.owner[new] = self.model.owner[token]
                lines[at] = lines[at].replace(token, new)
                what = f"changes {token} to {new}"
            else:
                del lines[at]
                what = f"deletes {token}"
        buffer.text = "".join(lines)
        buffer.changed = True
        self._tell(f"the person {what} (buffer {step['buffer']})")

    def _do_save(self, step: Step) -> None:
        if self.buffers[step["buffer"]] is None:
            self._do_open_file(step)
        if (buffer := self.buffers[step["buffer"]]) is not None and not buffer.changed:
            self._do_change_file(step)
        if buffer is None or not buffer.changed:
            return
        lines = frozenset((self.model.owner[token], token) for token in tokens_in(buffer.text))
        save_file(self.file, buffer.text, step["style"])
        self.model.save(lines, buffer.base)
        self.unseen = [buffer]
        self.counts.saves += 1
        buffer.changed = False
        self._tell(f"the person saves buffer {step['buffer']} ({step['style']})")

    def _settle(self) -> None:
        """Somebody looks at the file. A buffer goes on from what was saved once that was seen, and not before."""
        if self.model.pending is not None:
            for buffer in self.unseen:
                buffer.base = self.model.pending.lines
            self.unseen = []
        before = set(self.model.states)
        self.model.settle()
        possible = before | self.model.states
        for number, _ in frozenset().union(*possible) - frozenset.intersection(*possible):
            self.model.items[number].undoable = None  # the person's change comes first now

    # -- ends

    def _do_close(self, step: Step) -> None:
        at = step["at"]
        slot = self.slots[at]
        if slot.alive and slot.name != "cli":
            slot.close()
            self.closed.add(at)
            self.open.discard(at)
            self._tell(f"{slot.name} {at} closes")

    def _do_exit(self, step: Step) -> None:
        at = step["at"]
        slot = self.slots[at]
        if slot.alive and slot.name != "cli":
            slot.exit()
            self.open.discard(at)
            self._tell(f"{slot.name} {at} exits")

    def _do_kill(self, step: Step) -> None:
        at = step["at"]
        slot = self.slots[at]
        if slot.alive and slot.name != "cli":
            slot.kill()
            self.open.discard(at)
            self.counts.kills += 1
            self._tell(f"{slot.name} {at} is killed")

    def _do_kill_write(self, step: Step) -> None:
        """A kill at some instant of a call: it is done or not, and then stays so."""
        at = step["at"]
        slot = self.slots[at]
        self._settle()
        prepared = self._prepare(step, at)
        if prepared is None:
            return
        self._send(at, prepared)
        usual = self.durations.get((slot.name, prepared.op.verb), 0.2 if slot.name in ("cli", "shell") else 0.01)
        time.sleep(usual * step["pick"] * 1.3)
        child = slot.child
        if child is not None:
            child.kill()
        self.counts.kills += 1
        answer = slot.receive()
        slot.kill()
        self.open.discard(at)
        if answer.acknowledged:
            self._acknowledge(at, prepared, answer)
        else:
            self.model.apply(prepared.effect, certain=False)
            self.model.items[prepared.number].undoable = None
            if prepared.op.verb in WRITES:
                self.model.items[prepared.number].id = None
        self._tell(
            f"{slot.name} {at} is killed in {prepared}: {'acknowledged' if answer.acknowledged else 'not answered'}"
        )

    def _end(self) -> None:
        """Everybody leaves, and somebody new finds everything in order and nothing that was erased."""
        for slot in self.slots:
            if slot.alive:
                if isinstance(slot, Api) and self.random.random() < 0.8:
                    self.pool.give_back(slot)
                elif self.random.random() < 0.5:
                    slot.exit()
                else:
                    slot.kill()
        self.open.clear()
        self.slots = [slot for slot in self.slots if slot not in self.pool.idle]
        self.slots.append(self.pool.take(self.root))
        at = len(self.slots) - 1
        self._look(at)
        problems = self.slots[at].ask(Op("verify"))
        self._check_answer(at, "verify", problems)
        if problems.problems:
            raise Violation(f"verify: {problems.problems}")
        if self.model.erased:
            self._check_answer(at, "note", self.slots[at].ask(Op("note", "The last note of all")))
            self.slots[at].close()
            self._check_erased()
        api = self.slots.pop()
        assert isinstance(api, Api)
        self.pool.give_back(api)

    def _check_erased(self) -> None:
        for path in sorted(self.root.rglob("*")):
            if path.is_file():
                held = path.read_bytes().lower()
                for token in self.model.erased:
                    if token.encode() in held:
                        raise Violation(f"erased, and still in {path.relative_to(self.root)}: {token}")


@dataclass(frozen=True)
class Prepared:
    """A change, and what it does."""

    op: Op
    number: int
    token: str | None
    before: str | None

    def effect(self, state: State) -> State:
        rest = frozenset(pair for pair in state if pair[0] != self.number)
        return rest if self.token is None else rest | {(self.number, self.token)}

    def __str__(self) -> str:
        way = " by a tool" if self.op.tool else ""
        return f"{self.op.verb}{way} record {self.number}: {self.before or ''} -> {self.token or ''}"


def save_file(path: Path, text: str, style: str) -> None:
    """Save as vim does (a new file, renamed over the old one), or as others do (the same file, written anew)."""
    if style == "rename":
        new = path.with_name(f"{path.name}.{os.getpid()}~")
        new.write_text(text, newline="")
        new.rename(path)
    else:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(target, text.encode())
        os.close(target)


# -- many ------------------------------------------------------------------------------------------------------------


def try_schedule(schedule: Schedule, folder: Path, pool: Pool) -> tuple[Counts, str | None, list[str]]:
    """Run it on a fresh folder. Return the counts, what went wrong if anything did, and the story."""
    place = folder / f"run-{time.monotonic_ns()}"
    run = Run(schedule, place, pool)
    wrong = None
    try:
        run.run()
    except Violation as violation:
        wrong = str(violation)
        run.counts.violations = 1
    shutil.rmtree(place, ignore_errors=True)
    return run.counts, wrong, run.story


def shrink(schedule: Schedule, folder: Path, pool: Pool, seconds: float) -> Schedule:
    """Leave out steps and processes as long as it still fails."""
    end = time.monotonic() + seconds
    smaller = schedule
    again = True
    while again and time.monotonic() < end:
        again = False
        for fewer in _fewer_steps(smaller):
            if time.monotonic() > end:
                break
            if any(try_schedule(fewer, folder, pool)[1] for _ in range(2)):
                smaller, again = fewer, True
                break
    return smaller


def _fewer_steps(schedule: Schedule) -> Iterator[Schedule]:
    size = len(schedule.steps) // 2
    while size:
        for at in range(0, len(schedule.steps), size):
            steps = schedule.steps[:at] + schedule.steps[at + size :]
            yield Schedule(schedule.surfaces, steps, schedule.density, schedule.seed)
        size //= 2
