"""What can be queued, and what comes by the clock: learning from a day, ending discussions, upkeep.

Each job is about one user, and can be done again without harm: an extraction is that of its day, a discussion is
concluded once, upkeep removes what is there. Knows no backend; it is handed a way to the memories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Any

from recollect.agents.conclude import conclude, idle_sessions
from recollect.agents.extract import NOT_YET, Extracted, Extractor, by_rules, extract
from recollect.config import Config
from recollect.errors import QueueFullError
from recollect.memory.memory import Memory
from recollect.policy.topics import Topic, strings_in
from recollect.times import Clock, from_text, utc_now
from recollect.work.contract import GiveUpError, Handler, Job, Queue, RetryLaterError, Task
from recollect.work.schedule import Cron, Schedule, ScheduleEntry

EXTRACT, EXTRACT_EVERYONE = "extract", "extract everyone"
UPKEEP, UPKEEP_EVERYONE = "upkeep", "upkeep everyone"
CONCLUDE = "conclude"
_AT_ONCE = 200
_STRUCTURE = frozenset({"agent", "call", "language_code", "people", "suite", "tool", "type", "user"})
"""Of what jobs hold, names that the person did not give."""
_FULL_SECONDS, _FAILED_SECONDS = 5.0, 60.0


def extract_task(user_id: str, day: date) -> Task:
    """Learn from a day of a user, once."""
    key = f"{EXTRACT}:{user_id}:{day.isoformat()}"
    return Task(name=EXTRACT, user_id=user_id, payload={"day": day.isoformat()}, key=key, once=True)


def conclude_task(user_id: str, session: str, title: str | None = None) -> Task:
    """Keep what a discussion brought."""
    payload = {"session": session} | ({"title": title} if title else {})
    return Task(name=CONCLUDE, user_id=user_id, payload=payload, key=f"{CONCLUDE}:{user_id}:{session}")


def speaks_of(job: Job, topics: Sequence[Topic]) -> bool:
    """Whether a job speaks of one of these topics: in what is to be done, what came of it, or what went wrong."""
    texts = [*strings_in(job.payload, names=False, skip=_STRUCTURE), *strings_in(job.result, names=False)]
    texts += [job.error] if job.error else []
    if job.name == CONCLUDE and job.key:
        texts.append(job.key.removeprefix(f"{CONCLUDE}:{job.user_id}:"))
    return any(topic.is_in(texts) for topic in topics)


def upkeep_task(user_id: str) -> Task:
    """Remove what has expired."""
    return Task(name=UPKEEP, user_id=user_id, key=f"{UPKEEP}:{user_id}", priority=-1)


class Jobs:
    """The handlers of a worker."""

    def __init__(
        self,
        queue: Queue,
        memory: Callable[[str], Memory],
        users: Callable[[], Iterable[str]],
        *,
        extractor: Extractor = by_rules,
        clock: Clock = utc_now,
    ) -> None:
        self._queue = queue
        self._memory = memory
        self._users = users
        self._extractor = extractor
        self._clock = clock

    def handlers(self) -> Mapping[str, Handler]:
        """Each job by its name."""
        return {
            EXTRACT: self.extract,
            EXTRACT_EVERYONE: self.extract_everyone,
            CONCLUDE: self.conclude,
            UPKEEP: self.upkeep,
            UPKEEP_EVERYONE: self.upkeep_everyone,
        }

    def extract(self, job: Job) -> dict[str, Any]:
        """End the discussions that fell silent, then learn from the day."""
        memory = self._of(job)
        if memory.mode == "on" and memory.exists:
            for session in idle_sessions(memory, clock=self._clock):
                conclude(memory, session, extractor=self._extractor, clock=self._clock)
        day = date.fromisoformat(str(job.payload["day"]))
        return _extraction_result(extract(memory, day, extractor=self._extractor, clock=self._clock))

    def conclude(self, job: Job) -> dict[str, Any]:
        """Keep what a discussion brought."""
        done = conclude(
            self._of(job),
            str(job.payload["session"]),
            title=job.payload.get("title"),
            extractor=self._extractor,
            clock=self._clock,
        )
        return {"status": "nothing was said"} if done is None else _extraction_result(done)

    def upkeep(self, job: Job) -> dict[str, Any]:
        """Remove what has expired, keep MEMORY.md short."""
        memory = self._of(job)
        if not memory.exists:
            return {"status": "no memory yet"}
        return {"status": "done", "expired": memory.upkeep().expired}

    def extract_everyone(self, job: Job) -> dict[str, Any]:
        """A job for each user, for the day of the schedule."""
        day = from_text(str(job.payload["slot"])).date()
        return self._put(extract_task(user, day) for user in self._users())

    def upkeep_everyone(self, job: Job) -> dict[str, Any]:
        """A job for each user."""
        return self._put(upkeep_task(user) for user in self._users())

    def _put(self, tasks: Iterable[Task]) -> dict[str, Any]:
        """Put many, some at a time. If the queue is full, later again: what was put is not put twice."""
        fresh = 0
        for some in _task_batches(tasks):
            try:
                fresh += sum(accepted.fresh for accepted in self._queue.put_many(some))
            except QueueFullError:
                raise RetryLaterError(_FULL_SECONDS, "the queue is full") from None
        return {"put": fresh}

    def _of(self, job: Job) -> Memory:
        if job.user_id is None:
            raise GiveUpError("the task names no user")
        return self._memory(job.user_id)


def schedule(queue: Queue, config: Config) -> Schedule:
    """Learning every day as MEMORY_EXTRACTION_SCHEDULE says, upkeep in the early morning (UTC)."""
    nightly = Cron(config.extraction_schedule, "MEMORY_EXTRACTION_SCHEDULE")
    entries = [
        ScheduleEntry(name="extraction", cron=nightly, task=EXTRACT_EVERYONE),
        ScheduleEntry(name="upkeep", cron=Cron("30 3 * * *"), task=UPKEEP_EVERYONE),
    ]
    return Schedule(queue, entries)


def _extraction_result(done: Extracted) -> dict[str, Any]:
    if done.skipped == NOT_YET:  # a clock that went back, or is behind that of who put it
        raise RetryLaterError(_FAILED_SECONDS, "the day has not begun")
    if done.skipped is not None or done.run is None:
        return {"status": done.skipped or "nothing"}
    if done.run.status == "failed":
        raise RetryLaterError(_FAILED_SECONDS, "the extraction failed; its run says why")
    return {"status": "done", "written": done.run.memories_written, "updated": done.run.memories_updated}


def _task_batches(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    remaining = iter(tasks)
    while some := list(islice(remaining, _AT_ONCE)):
        yield some
