"""The jobs that can be queued or scheduled: extraction of a day, ending discussions, upkeep.

Each job is about one user and can be repeated safely: an extraction belongs to its day, a discussion is concluded once,
upkeep removes what is there.
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
JOB_NAMES = frozenset({EXTRACT, EXTRACT_EVERYONE, UPKEEP, UPKEEP_EVERYONE, CONCLUDE})
_AT_ONCE = 200
_STRUCTURE = frozenset({"agent", "call", "language_code", "people", "suite", "tool", "type", "user"})
"""Names in job payloads that the person did not choose."""
_FULL_SECONDS, _FAILED_SECONDS = 5.0, 60.0


def extract_task(user_id: str, day: date) -> Task:
    """Return the task to extract from a day of a user, once."""
    key = f"{EXTRACT}:{user_id}:{day.isoformat()}"
    return Task(name=EXTRACT, user_id=user_id, payload={"day": day.isoformat()}, key=key, once=True)


def conclude_task(user_id: str, session: str, title: str | None = None) -> Task:
    """Return the task to conclude a discussion."""
    payload = {"session": session} | ({"title": title} if title else {})
    return Task(name=CONCLUDE, user_id=user_id, payload=payload, key=f"{CONCLUDE}:{user_id}:{session}")


def speaks_of(job: Job, topics: Sequence[Topic]) -> bool:
    """Return True if a job mentions one of these topics, in its payload, its result or its error."""
    if not topics:
        return False
    texts = _texts_of(job)
    if job.name == CONCLUDE and job.key:
        texts.append(job.key.removeprefix(f"{CONCLUDE}:{job.user_id}:"))
    return any(topic.is_in(texts) for topic in topics)


def repeats(job: Job, is_erased: Callable[[str], bool]) -> bool:
    """Return True if a text of a job is what was erased, or a line of it is."""
    return any(map(is_erased, _texts_of(job)))


def _texts_of(job: Job) -> list[str]:
    is_ours = job.name in JOB_NAMES or job.name == "tool" or job.name.startswith("telegram")
    texts = [*strings_in(job.payload, names=not is_ours, skip=_STRUCTURE if is_ours else frozenset())]
    texts += strings_in(job.result, names=not is_ours)
    texts += [] if is_ours else [job.name, job.key or ""]  # the application chose these names
    return [*texts, job.error] if job.error else texts


def upkeep_task(user_id: str) -> Task:
    """Return the task to remove what has expired."""
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
        """Return the handlers by job name."""
        return {
            EXTRACT: self.extract,
            EXTRACT_EVERYONE: self.extract_everyone,
            CONCLUDE: self.conclude,
            UPKEEP: self.upkeep,
            UPKEEP_EVERYONE: self.upkeep_everyone,
        }

    def extract(self, job: Job) -> dict[str, Any]:
        """Conclude discussions that fell silent, then extract from the day."""
        memory = self._of(job)
        if memory.mode == "on" and memory.exists:
            for session in idle_sessions(memory, clock=self._clock):
                conclude(memory, session, extractor=self._extractor, clock=self._clock)
        day = date.fromisoformat(str(job.payload["day"]))
        return _extraction_result(extract(memory, day, extractor=self._extractor, clock=self._clock))

    def conclude(self, job: Job) -> dict[str, Any]:
        """Conclude a discussion."""
        done = conclude(
            self._of(job),
            str(job.payload["session"]),
            title=job.payload.get("title"),
            extractor=self._extractor,
            clock=self._clock,
        )
        return {"status": "nothing was said"} if done is None else _extraction_result(done)

    def upkeep(self, job: Job) -> dict[str, Any]:
        """Learn from what expires, then remove what has expired, and keep MEMORY.md short."""
        memory = self._of(job)
        if not memory.exists:
            return {"status": "no memory yet"}
        return {"status": "done", "expired": memory.upkeep().expired}

    def extract_everyone(self, job: Job) -> dict[str, Any]:
        """Queue an extraction for each user, for the day of the schedule."""
        day = from_text(str(job.payload["slot"])).date()
        return self._put(extract_task(user, day) for user in self._users())

    def upkeep_everyone(self, job: Job) -> dict[str, Any]:
        """Queue an upkeep for each user."""
        return self._put(upkeep_task(user) for user in self._users())

    def _put(self, tasks: Iterable[Task]) -> dict[str, Any]:
        """Queue many tasks in parts. If the queue is full, retry later: what was queued is not queued twice."""
        fresh = 0
        for some in _task_batches(tasks):
            try:
                fresh += sum(accepted.fresh for accepted in self._queue.put_many(some))
            except QueueFullError:
                raise RetryLaterError(_FULL_SECONDS, "the queue is full") from None
        return {"put": fresh}

    def _of(self, job: Job) -> Memory:
        if job.user_id is None:
            raise GiveUpError("the task has no user")
        return self._memory(job.user_id)


def schedule(queue: Queue, config: Config) -> Schedule:
    """Return the schedule: daily extraction by MEMORY_EXTRACTION_SCHEDULE, upkeep in the early morning (UTC)."""
    nightly = Cron(config.extraction_schedule, "MEMORY_EXTRACTION_SCHEDULE")
    entries = [
        ScheduleEntry(name="extraction", cron=nightly, task=EXTRACT_EVERYONE),
        ScheduleEntry(name="upkeep", cron=Cron("30 3 * * *"), task=UPKEEP_EVERYONE),
    ]
    return Schedule(queue, entries)


def _extraction_result(done: Extracted) -> dict[str, Any]:
    if done.skipped == NOT_YET:  # a clock that went back, or is behind that of the caller
        raise RetryLaterError(_FAILED_SECONDS, "the day has not begun")
    if done.skipped is not None or done.run is None:
        return {"status": done.skipped or "nothing"}
    if done.run.status == "failed":
        raise RetryLaterError(_FAILED_SECONDS, "the extraction failed; see its run for the reason")
    return {"status": "done", "written": done.run.memories_written, "updated": done.run.memories_updated}


def _task_batches(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    remaining = iter(tasks)
    while some := list(islice(remaining, _AT_ONCE)):
        yield some
