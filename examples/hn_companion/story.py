"""Three days of six invented readers, told as they happen. The clock is the story's, so it reads the same each time.

Stopped in the middle and started again in the same folder, it begins the day anew, and nothing happens twice: what is
reported or said has an id, and a day is learned from once.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from companion import SIGNS, Companion, Post, Reader

HERE = Path(__file__).parent
POSTS: list[Post] = json.loads((HERE / "posts.json").read_text("utf-8"))
PEOPLE: dict[str, dict[str, Any]] = json.loads((HERE / "people.json").read_text("utf-8"))
EVENTS = [json.loads(line) for line in (HERE / "days.jsonl").read_text("utf-8").splitlines()]


class Clock:
    """The time of the story. It is kept in a file: time does not go back when a process ends."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "story-clock"
        self.now = datetime.fromisoformat(self._file.read_text() if self._file.exists() else "2026-02-05T07:30Z")

    def __call__(self) -> datetime:
        return self.now

    def move(self, moment: str) -> None:
        """Let it be this late, if it is not later already."""
        self.now = max(self.now, datetime.fromisoformat(moment))
        (written := self._file.with_suffix(".new")).write_text(self.now.isoformat())
        written.replace(self._file)  # a kill before this leaves the file as it was


class Story:
    """The readers, and what happens."""

    def __init__(self, companion: Companion, clock: Clock) -> None:
        self.companion, self.clock = companion, clock
        self.readers = {user: Reader(companion, user) for user in PEOPLE}

    def tell(self) -> None:
        """From the first morning to the last night."""
        first, *_, last = days = sorted({post["day"] for post in POSTS})
        for day in days:
            if day < str(self.clock().date()):
                print(f"{day} is over.")
                continue
            self.clock.move(f"{day}T07:30Z")
            self.companion.work()
            for user, reader in self.readers.items():
                if not reader.memory.exists:  # who is new is asked, once
                    reader.memory.consent("trends", PEOPLE[user]["trends"])
            self._morning([post for post in POSTS if post["day"] == day])
            if day == last:
                self._known("mira", first)
            self._day(day)
            self.clock.move(f"{day}T23:00Z")
            self.companion.work()
            self._night()

    def _morning(self, posts: list[Post]) -> None:
        print(f"\n=== {self.clock():%A, %d %B %Y}: the digest ===")
        alike: dict[str, list[str]] = {}
        scores: list[float] = []
        for user, reader in self.readers.items():
            if not reader.has_digest():
                digest = reader.digest(posts)
                shown = "\n".join(f"  - {one.item['title']}" + f"\n      {one.why}" * (one.score > 0) for one in digest)
                alike.setdefault(shown, []).append(PEOPLE[user]["name"])
                scores += [one.score for one in digest]
                reader.delivered(digest)
        for shown, names in alike.items():
            print(f"{', '.join(names)}:\n{shown}")
        print(f"{len(scores)} posts sent, {sum(score > 0 for score in scores)} of them for a reason.")
        for trend in self.companion.app.trends(k=5, days=7):
            print(f"A trend among those who agreed to be counted: {trend.topic} ({trend.users} readers or more)")

    def _day(self, day: str) -> None:
        print("\n--- the day ---")
        stored: Counter[str] = Counter()
        for number, event in enumerate(EVENTS):
            if event["at"].startswith(day):
                self.clock.move(event["at"])
                stored.update(self._happens(f"event-{number}", **event))
        print("Reported:", ", ".join(f"{number} {sign}" for sign, number in stored.items()) or "nothing")

    def _happens(self, id: str, at: str, who: str, do: str, post: str = "", text: str = "") -> list[str]:
        """One thing that a reader does; gives the sign of a reaction that was stored."""
        name, reader = PEOPLE[who]["name"], self.readers[who]
        about = next((one for one in POSTS if one["id"] == post), {})
        match do:
            case "like" | "dislike" | "save":
                return [SIGNS[do]] * reader.react(about, do, id=id).done
            case "discuss":
                reminder = reader.discuss(about)
                print(f'{name} opens "{about["title"]}"' + (f"\n  bot: {reminder.text}" if reminder else ""))
            case "say":
                print(f"{name}: {text}\n  bot: {reader.say(text, id=id).text}")
            case "end":
                print(f"{name} is done with it.", *(f"  {learned}" for learned in reader.end()), sep="\n")
            case "forget":
                print(f"{name}: /forget {text}\n  bot: {reader.forget(text, id=id)}")
            case "undo":
                print(f"{name}: /undo\n  bot: {reader.undo(id=id)}")
        return []

    def _night(self) -> None:
        print("\n--- the night's work ---")
        for user, reader in self.readers.items():
            learned = {run.day: f"{run.memories_written} learned" for run in reader.memory.runs(kind="batch")}
            print(f"{PEOPLE[user]['name']}:", learned.get(self.clock().date(), "nobody looked"))

    def _known(self, user: str, day: str) -> None:
        memory = self.readers[user].memory
        print(f"\n--- what is known of {PEOPLE[user]['name']}: MEMORY.md ---\n{memory.show().strip()}")
        print(f"\n--- and the note of {day} ---\n{memory.daily(day).strip()}")
