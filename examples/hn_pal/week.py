"""The demo: a week of six invented readers, played as it happens. ``week.txt`` is the script: who types what, when.

The clock is the demo's own, so the week is always the same, whenever it begins. If it is stopped and started again in
the same folder, it continues where it was, and nothing happens twice.
"""

from __future__ import annotations

import re
import sys
import time
from datetime import date, datetime, timedelta
from pathlib import Path
from textwrap import indent

from pal import HNPal, PalConversation
from recording import DAYS, FIRST_DAY

from recollect.surfaces.chat.page import ChatPage

HERE = Path(__file__).parent
READERS = ("mira", "leo", "amara", "jonas", "sofia", "tomek")
NOT_COUNTED = ("tomek",)
"""Readers who do not take part in trends."""
SCRIPT = re.findall(r"^(\S+ \S+) (\w+): (.+)$", (HERE / "week.txt").read_text("utf-8"), re.MULTILINE)
_TRENDS_DAY = 4
"""The day of the week, from 0, on which trends are shown."""
_PACE_SECONDS = 0.3 if sys.stdout.isatty() else 0.0


class DemoClock:
    """The time of the demo, how much of the script was played, and the first day. All are kept in a file."""

    def __init__(self, folder: Path, first_day: date = FIRST_DAY) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "demo-clock"
        begun = self._file.read_text() if self._file.exists() else f"{first_day}T07:30Z 0 {first_day}"
        moment, played, first = begun.split()
        self.now, self.played, self.first_day = datetime.fromisoformat(moment), int(played), date.fromisoformat(first)

    def __call__(self) -> datetime:
        return self.now

    def move(self, moment: str, played: int | None = None) -> None:
        """Move on to this moment, unless it is later already."""
        self.now = max(self.now, datetime.fromisoformat(moment))
        self.played = self.played if played is None else played
        (written := self._file.with_suffix(".new")).write_text(f"{self.now.isoformat()} {self.played} {self.first_day}")
        written.replace(self._file)  # a kill before this leaves the file as it was


class Week:
    """The readers, and what happens to them."""

    def __init__(self, pal: HNPal, clock: DemoClock) -> None:
        self._pal, self._clock = pal, clock
        self._talks: dict[str, PalConversation] = {}
        self._pages: list[ChatPage] = []
        for name in READERS:
            pal.app.identities.bind(("terminal", name), name)
            self._talks[name] = pal.conversation(("terminal", name), "terminal")
            memory = self._talks[name].memory
            if not memory.exists:  # new readers are asked once
                memory.consent("trends", name not in NOT_COUNTED)

    def play(self) -> None:
        """Play from the present moment to the end of the week."""
        self._pal.work()  # what is scheduled counts from here on
        for recorded, day in zip(DAYS, self._days(), strict=True):
            if day < str(self._clock().date()):
                _show(f"{day} is over.")
                continue
            if self._clock() <= datetime.fromisoformat(f"{day}T07:30Z"):
                self._clock.move(f"{day}T07:30Z")
                self._morning()
            for number, (moment, name, line) in enumerate(SCRIPT):
                if moment.startswith(recorded) and number >= self._clock.played:
                    self._clock.move(f"{moment.replace(recorded + ' ', day + 'T')}Z")
                    self._type(name, line, number)
                    self._clock.move(str(self._clock()), number + 1)
            self._clock.move(f"{day}T23:00Z")
            self._pal.work()
            self._night()
        self._known("mira", self._days()[0])

    def _days(self) -> list[str]:
        return [str(self._clock.first_day + timedelta(days=number)) for number in range(len(DAYS))]

    def _morning(self) -> None:
        _show(f"\n=== {self._clock():%A, %d %B %Y} ===")
        posts = [post for talk in self._talks.values() for post in talk.today()]
        reasons = sum("\nFor you: " in post.text for post in posts)
        _show(f"{len(self._talks)} readers get {len(posts)} stories, {reasons} of them for a reason.")
        if str(self._clock().date()) == self._days()[_TRENDS_DAY]:
            for trend in self._pal.app.trends(k=5, days=7):
                _show(f"A trend among those who agreed to be counted: {trend.topic} ({trend.users} readers or more)")

    def _type(self, name: str, line: str, number: int) -> None:
        talk = self._talks[name]
        if line == "yes":
            asked = self._pages or talk.say(SCRIPT[number - 1][2])  # after a restart, ask again
            choices = [choice for page in asked for row in page.choices for choice in row]
            self._pages = talk.choose(choices[0].command) if choices else asked
        else:
            self._pages = talk.say(line, message=f"line-{number}")
        answer = indent("\n\n".join(map(str, self._pages)), "    ")
        _show(f"\n{self._clock():%H:%M} {name.title()}: {line}\n{answer}")

    def _night(self) -> None:
        _show("\n23:00 The nightly extraction:")
        for name, talk in self._talks.items():
            runs = [run for run in talk.memory.runs(kind="batch") if run.day == self._clock().date()]
            entries = [entry for run in runs for entry in talk.memory.history(run=run.id)]
            learned = [entry.after.text for entry in entries if entry.after and entry.after.kind == "fact"]
            _show(f"    {name.title()}: {'; '.join(learned) or ('nothing new' if runs else 'skipped')}")

    def _known(self, name: str, day: str) -> None:
        memory = self._talks[name].memory
        _show(f"\n=== What HN Pal knows about {name.title()}: MEMORY.md ===\n{memory.show().strip()}")
        _show(f"\n=== The daily note of {day} ===\n{memory.daily(day).strip()}")


def _show(text: str) -> None:
    print(text, flush=True)
    time.sleep(_PACE_SECONDS)
