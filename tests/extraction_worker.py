"""A process that extracts one user after another and is killed while it does: each in a fork, at a random instant.

``python -m tests.extraction_worker ROOT URL SEED USER…``; the first user is left in peace, to see how long it takes.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sys
import time
from datetime import datetime, timedelta, timezone

import recollect
from recollect import Memory, Recollect
from recollect.agents.extract import extract
from recollect.testing import MemoryStore

NOW = datetime(2026, 2, 12, 23, 0, tzinfo=timezone.utc)
SAID = (
    "Hi, I'm Priya and I work at Stripe.",
    "I used to live in Kyiv, now Lviv.",
    "I love jazz. I am allergic to nuts.",
    "We decided to use OAuth2 for the login.",
    "I guess I prefer tea.",
    "Actually I'm at Google now, not Stripe.",
    "I think PostgreSQL is good enough for most use cases.",
)


def opened(root: str, url: str) -> Recollect:
    """The memories, at the moment of the extraction."""
    return recollect.open(url, files=root, clock=lambda: NOW) if url else recollect.open(root, clock=lambda: NOW)


def lived(memory: Memory) -> None:
    """A day in a life."""
    memory.remember("Kyoto", key="origin", category="personal_context")
    for number, text in enumerate(SAID):
        memory.say(text, session=f"s{number % 2}", said_at=NOW - timedelta(hours=10 - number))
    memory.report("discussion", title="PostgreSQL 18 Released", session="s0", at=NOW - timedelta(hours=11))
    titles = ("PostgreSQL 18 Released", "Scaling PostgreSQL", "PostgreSQL vacuum")
    memory.report_many({"kind": "reaction", "value": "👍", "title": t, "at": NOW - timedelta(hours=5)} for t in titles)


def warm() -> None:
    """Load the tables and compile the patterns, so that what is left to be killed in is mostly the extraction."""
    with Recollect(MemoryStore(), recollect.Config.load(), folder=None, clock=lambda: NOW) as app:
        lived(app.user("warm"))
        extract(app.user("warm"), NOW.date(), clock=lambda: NOW)


def main(root: str, url: str, seed: str, *users: str) -> None:
    chance, whole = random.Random(seed), 0.0
    killed = 0
    warm()
    for user in users:
        began = time.perf_counter()
        alive, held = os.pipe()
        child = os.fork()
        if child == 0:
            with opened(root, url) as app:
                extract(app.user(user), NOW.date(), clock=lambda: NOW)
            os._exit(0)
        os.close(held)  # only the child holds it now: when it ends, there is something to read
        if whole and not select.select([alive], [], [], chance.uniform(0, whole))[0]:
            os.kill(child, signal.SIGKILL)
            killed += 1
        os.waitpid(child, 0)
        os.close(alive)
        whole = whole or time.perf_counter() - began
    print(killed)


if __name__ == "__main__":
    main(*sys.argv[1:])
