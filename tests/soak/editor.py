"""A person saves MEMORY.md, in both ways that editors save, at any moment, while agents write."""

from __future__ import annotations

import json
import select
import shutil
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
from tests.soak.surfaces import PATIENCE, Api, Op, do_with_api
from tests.soak.warm import USER, Child

SAVES_IN_A_FOLDER = 40
HEADINGS = ("## User Preferences\n", "## Work Context\n", "## Personal Context\n", "## Key Facts\n")


@dataclass
class Counts:
    saves: int = 0
    stale_saves: int = 0
    writes: int = 0
    violations: int = 0


def write_until_told(root: str, seed: str) -> int:
    """An agent: it adds facts, and sometimes reads, until its input ends. Each token is told once it is acknowledged."""
    random = Random(seed)
    app = recollect.open(root)
    written = 0
    while not select.select([0], [], [], 0)[0]:
        token = new_token(random)
        key = f"about {new_token(random)[:8]}" if random.random() < 0.5 else None
        verb = "remember" if written < 60 and random.random() < 0.7 else "note"
        try:
            fields = do_with_api(app, Op(verb, random.choice(PHRASES).format(token), key=key))
        except recollect.RecollectError as error:
            fields = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps({"token": token, "error": fields.get("error")}) + "\n")
        sys.stdout.flush()
        written += verb == "remember"
        if random.random() < 0.1:
            app.user(USER).read(limit=5)
        if written >= 60 and random.random() < 0.5:
            time.sleep(0.005)
    app.close()
    return 0


@dataclass
class Person:
    """Who edits the file: what they added, and what they took out of a version that had it."""

    file: Path
    random: Random
    keeps_buffers: bool
    added: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    buffers: list[str] = field(default_factory=list)

    def edit(self, counts: Counts, api: Api) -> None:
        """Open the file or take up an old buffer, change something, save."""
        random = self.random
        stale = bool(self.buffers) and random.random() < 0.3 and self.keeps_buffers
        if stale:
            api.ask(
                Op("show")
            )  # a person who writes over what they just saved, before anybody saw it, has taken it back
        try:
            text = self.buffers.pop(random.randrange(len(self.buffers))) if stale else self.file.read_text()
        except FileNotFoundError:
            return
        heading = random.choice(HEADINGS)
        if heading not in text:
            return  # an editor that shows half a file: whoever checks will see whether it stays so
        if self.keeps_buffers and random.random() < 0.2 and len(self.buffers) < 3:
            api.ask(Op("show"))  # so that what is on the screen is a version that was seen, and not only saved
            self.buffers.append(self.file.read_text())
        token = new_token(random)
        text = text.replace(heading, f"{heading}- {random.choice(PHRASES).format(token)}\n", 1)
        lines = text.splitlines(keepends=True)
        facts = [
            at for at, line in enumerate(lines) if (found := tokens_in(line)) and found[0] not in {token} | self.deleted
        ]
        gone = None
        if facts and random.random() < 0.2:
            at = random.choice(facts)
            gone = tokens_in(lines[at])[0]
            del lines[at]
        save_file(self.file, "".join(lines), random.choice(("rename", "in place")))
        self.added.add(token)
        if gone:
            self.deleted.add(gone)
        counts.saves += 1
        counts.stale_saves += stale


def one_folder(place: Path, seed: str, stale: bool) -> tuple[Counts, str | None]:
    """Agents write and a person saves, for a while. Return the counts and what is wrong, if anything is."""
    random = Random(seed)
    root = place / "memory"
    root.mkdir(parents=True)
    counts = Counts()
    api = Api(root, place / "errors")
    began = time.monotonic()
    api.ask(Op("remember", "Keeps a diary"))
    pace = time.monotonic() - began
    agents = []
    for at in range(random.randint(1, 3)):
        agents.append(Child(partial(write_until_told, str(root), f"{seed}.{at}"), place / "errors"))
    person = Person(root / USER / "MEMORY.md", random, stale)
    while counts.saves < SAVES_IN_A_FOLDER:
        time.sleep(random.random() * pace * random.choice((0.1, 0.5, 2)))
        person.edit(counts, api)
    acknowledged, wrong = finish(agents)
    counts.writes = len(acknowledged)
    wrong = wrong or check(api, person, acknowledged)
    api.kill()
    counts.violations = wrong is not None
    shutil.rmtree(place, ignore_errors=True)
    return counts, wrong


def finish(agents: list[Child]) -> tuple[set[str], str | None]:
    """Let the agents end. Return what they were told is done, and what went wrong with them."""
    acknowledged: set[str] = set()
    wrong = None
    end = time.monotonic() + PATIENCE
    for agent in agents:
        agent.close_input()
    for agent in agents:
        while select.select([agent.read_end], [], [], max(0.0, end - time.monotonic()))[0] and agent.read_some():
            pass
        if time.monotonic() > end:
            wrong = "hang: an agent did not end"
        for line in agent.received.split(b"\n")[:-1]:
            said = json.loads(line)
            if said["error"] is None:
                acknowledged.add(said["token"])
            elif "Busy" not in said["error"]:
                wrong = f"an agent was answered with {said['error']}"
        agent.dispose()
    return acknowledged, wrong


def check(api: Api, person: Person, acknowledged: set[str]) -> str | None:
    """Everything saved is in memory or file, everything acknowledged in memory, unless the person took it out."""
    answer = api.ask(Op("read"))
    if answer.error or not answer.acknowledged:
        return f"read: {answer.error}"
    seen = [token for _, text in answer.records for token in tokens_in(text)]
    twice = [token for token, count in Counter(seen).items() if count > 1]
    if twice:
        return f"seen twice: {[text for _, text in answer.records if set(tokens_in(text)) & set(twice)]}{story(api, twice)}"
    text = person.file.read_text()
    if not all(heading in text for heading in HEADINGS):
        return f"MEMORY.md is not whole: {text!r}"
    lost = sorted(person.added - person.deleted - set(seen) - set(tokens_in(text)))
    if lost:
        return f"saved by the person, and neither in memory nor in the file: {lost} of {len(person.added)}"
    lost = sorted(acknowledged - person.deleted - set(seen))
    if lost:
        return f"acknowledged, not deleted by the person, and not there: {len(lost)} of {len(acknowledged)}: {story(api, lost)}"
    problems = api.ask(Op("verify"))
    return f"verify: {problems.problems} {problems.error or ''}" if problems.problems or problems.error else None


def story(api: Api, tokens: list[str]) -> str:
    """What the journal says of these."""
    return "".join(f"\n    {token}: {api.ask(Op('history', token)).text}" for token in tokens[:5])
