"""A host with some users, and a process that does its background work as ``recollect worker`` does, to be killed.

``python -m tests.nightly_worker ROOT URL`` works until it is killed. The time is what the file CLOCK says, so that
nights pass when the test wants them to; what is read of whom is told in the file TOLD, a line each.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import recollect
from recollect import Memory, Recollect
from recollect.agents.extract import Extraction, Extractor, extract
from recollect.agents.gather_interactions import Gathered
from recollect.store.contract import Store
from recollect.store.postgres import PostgresStore
from recollect.store.sqlite import SqliteStore
from recollect.testing import MemoryStore
from tests.volume import volume

NIGHTS = int(os.environ.get("RECOLLECT_NIGHTS") or volume(1, 2))
FIRST = datetime.now(timezone.utc).replace(hour=20, minute=0, second=0, microsecond=0) - timedelta(days=NIGHTS + 2)
"""The first evening, so that the last is not long ago."""
READERS = tuple(f"reader-{number}" for number in range(volume(4, 9)))
PAUSED, INCOGNITO, BROKEN = "paused", "incognito", "broken"
EVERYONE = (*READERS, PAUSED, INCOGNITO, BROKEN)
CLOCK, TOLD = "clock", "told"

_TOWNS = ("Oslo", "Kyiv", "Lima", "Rome", "Pune", "Bergen", "Ghent", "Quito", "Izmir", "Turin", "Lyon", "Cork")
_FIRMS = ("Stripe", "Siemens", "Nokia", "Ubisoft", "Spotify", "Zalando", "Philips", "Bosch", "Adyen", "Volvo")
_SUBJECTS = ("PostgreSQL", "Kubernetes", "Rust", "WebAssembly", "SQLite", "Erlang")


class Host(Recollect):
    """The app, telling what is read of whom; the extraction of one user fails, unless it is mended."""

    def __init__(self, root: Path, url: str, *, mended: bool = False) -> None:
        settings: dict[str, Any] = {"memory_dir": root / "memories", "database_url": url}
        self._root, self._mended = root, mended
        self._told = os.open(root / TOLD, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        store: Store = PostgresStore(url) if url else SqliteStore(root / "memories")
        super().__init__(
            _Watched(store, self.tell),
            recollect.Config.load(**settings),
            folder=root / "memories",
            clock=lambda: now(root),
        )

    def tell(self, *words: object) -> None:
        """One line, whole even if several processes tell at once."""
        os.write(self._told, (" ".join(map(str, (os.getpid(), *words))) + "\n").encode())

    def extractor(self, *, required: bool = True) -> Extractor:
        """What the settings say, told when it begins and ends."""
        inner = super().extractor()

        def watched(memory: Memory, collected: Gathered) -> Extraction:
            user, about = memory.user_id, _about(collected)
            self.tell("begin", user, about)
            try:
                if user == BROKEN and not self._mended:
                    raise RuntimeError(f"what {BROKEN} said")
                return inner(memory, collected)
            finally:
                self.tell("end", user, about)

        return watched


def _about(collected: Gathered) -> str:
    """A discussion that is concluded by its session, a whole day as such."""
    sessions = sorted({talk.session or "" for talk in collected.talks})
    return sessions[0] if len(sessions) == 1 else "day"


class _Watched:
    """A store that tells what else than their state is read of them while their memory is not on."""

    def __init__(self, store: Store, tell: Any) -> None:
        self._store, self._tell = store, tell

    def user(self, user_id: str) -> Any:
        user = self._store.user(user_id)
        return _WatchedUser(user, self._tell) if user_id in (PAUSED, INCOGNITO) else user

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _WatchedUser:
    def __init__(self, user: Any, tell: Any) -> None:
        self._user, self._tell = user, tell

    @contextmanager
    def read(self) -> Iterator[Any]:
        with self._user.read() as reader:
            yield _WatchedReader(reader, lambda what: self._tell("read", self._user.user_id, what))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._user, name)


class _WatchedReader:
    def __init__(self, reader: Any, tell: Any) -> None:
        self._reader, self._tell = reader, tell

    def __getattr__(self, name: str) -> Any:
        if name != "state" and self._reader.state().mode != "on":
            self._tell(name)
        return getattr(self._reader, name)


# time


def now(root: Path) -> datetime:
    """The time of this host."""
    return datetime.fromisoformat((root / CLOCK).read_text("ascii"))


def set_clock(root: Path, moment: datetime) -> None:
    """Let it be this late, for all processes at the same instant."""
    (root / "next").write_text(moment.isoformat(), "ascii")
    (root / "next").rename(root / CLOCK)


# what the users do


def evening(night: int) -> datetime:
    """When they come home."""
    return FIRST + timedelta(days=night)


def sessions(night: int) -> tuple[str, str]:
    """The discussions they have, in their order."""
    return f"first-{night}", f"second-{night}"


def marker(user: str) -> str:
    """A word that only this user says."""
    return f"Zq{user.replace('-', '')}word"


def lived(memory: Memory, night: int) -> None:
    """An evening of one user: two discussions, and some things they did."""
    who, came = EVERYONE.index(memory.user_id), evening(night)
    turn = who + 5 * night
    said = (
        f"I work at {_FIRMS[turn % len(_FIRMS)]}.",
        f"I live in {_TOWNS[turn % len(_TOWNS)]} now.",
        f"I love {marker(memory.user_id)}{night} music. I think {_SUBJECTS[turn % 6]} is overrated.",
        f"We decided to use {_SUBJECTS[(turn + 1) % 6]} for the login.",
        "I guess I prefer tea.",
    )
    for number, text in enumerate(said):
        session = sessions(night)[number >= 3]
        memory.say(text, session=session, said_at=came - timedelta(minutes=50 - number))
    subject = _SUBJECTS[(turn + 2) % 6]
    titles = (f"{subject} 18 Released", f"Scaling {subject}", f"{subject} at home")
    memory.report_many(
        {"kind": "reaction", "value": "👍", "title": title, "at": came - timedelta(hours=1)} for title in titles
    )


def warm() -> None:
    """Load the tables and compile the patterns: forked processes begin with that done."""
    with Recollect(MemoryStore(), recollect.Config.load(), folder=None, clock=lambda: FIRST) as app:
        lived(app.user(READERS[0]), 0)
        extract(app.user(READERS[0]), FIRST.date(), clock=lambda: FIRST)


def main(root: str, url: str) -> None:
    """Work until killed."""
    with Host(Path(root), url) as app, app.queue() as queue:
        app.worker(queue, concurrency=3).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
