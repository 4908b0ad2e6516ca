"""A batch of extraction by rules: many users with a day of interactions each.

python -m benchmarks.extract [--users 1000] [--interactions 50] [--json]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import recollect
from benchmarks.timing import print_report
from recollect.agents.extract import extract_all
from recollect.surfaces.cli.output import progress

_TOPICS = "PostgreSQL Rust Kubernetes compilers astronomy cycling jazz chess gardening robotics".split()
_SAID = (
    "I work as a nurse in the emergency ward",
    "What do you think about {topic}?",
    "I'm learning {topic} on weekends",
    "That article was long, but good.",
    "I live in Lviv and I love {topic}",
    "Thanks, that helps a lot!",
    "We decided to use {topic} for the new project",
    "My sister Oksana is a teacher",
    "lol, no way",
    "I prefer short answers without emojis",
)


def filled(app: recollect.Recollect, users: int, interactions: int, day: datetime) -> None:
    """A day of each user: reactions, saves, and what they said."""
    for number in range(users):
        memory = app.user(f"user-{number}")
        topic = _TOPICS[number % len(_TOPICS)]
        half = interactions // 2
        memory.report_many(
            {
                "kind": "reaction" if step % 3 else "save",
                "value": "👍" if step % 3 else None,
                "title": f"{topic if step % 2 else _TOPICS[step % 10]} in practice, part {step}",
                "at": day + timedelta(minutes=step),
            }
            for step in range(half)
        )
        with memory.batch() as batch:
            for step in range(interactions - half):
                text = _SAID[step % len(_SAID)].format(topic=topic)
                batch.say(text, session=f"s{step // 10}", said_at=day + timedelta(hours=2, minutes=step))


def measured(users: int, interactions: int) -> dict[str, Any]:
    """Fill, then extract in one process."""
    day = datetime.now(timezone.utc) - timedelta(hours=12)
    with tempfile.TemporaryDirectory() as folder:
        with recollect.open(Path(folder)) as app:
            filled(app, users, interactions, day)
        began = time.perf_counter()
        done = 0
        with recollect.open(Path(folder)) as app, progress("Learning") as tell:

            def each(_: object) -> None:
                nonlocal done
                done += 1
                tell(done, users)

            memories = (app.user(name) for name in app.users())
            summary = extract_all(memories, datetime.now(timezone.utc).date(), each=each)
        seconds = time.perf_counter() - began
    return {
        "users": users,
        "interactions each": interactions,
        "seconds": round(seconds, 2),
        "ms a user": round(seconds / users * 1000, 2),
        "memories written": summary.written,
        "failed": summary.failed,
        "peak MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--interactions", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measured(given.users, given.interactions)
    print_report(found, as_json=given.json)


if __name__ == "__main__":
    main()
