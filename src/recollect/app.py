"""The application: reads the settings, opens the store and returns memories. Only this module chooses a backend."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from recollect import checks as check
from recollect.config import Config
from recollect.errors import ConfigError, InvalidInputError, StoreError
from recollect.identity.erasure import ErasureHooks
from recollect.memory.files.contract import Files, NoFiles
from recollect.memory.files.disk import DiskFiles
from recollect.memory.files.file_system import remove_folder
from recollect.memory.memory import Memory
from recollect.memory.user_memory import UserMemory
from recollect.memory.vectors import Embedding
from recollect.records import FILES_LEFT, PENDING, ExtractionRun, Receipt
from recollect.store.contract import Store
from recollect.store.forks import renew_after_forks
from recollect.store.sqlite import SqliteStore
from recollect.times import Clock, checked_clock, utc_now
from recollect.usage_metrics import QueueMetrics, UsageMetrics, compute_metrics
from recollect.userid import check_user_id, folder_name

if TYPE_CHECKING:
    from recollect.agents.extract import Extractor
    from recollect.identity.links import Identities
    from recollect.memory.trends import Trend
    from recollect.memory.write import Write
    from recollect.search.embedders.embedder import Embedder
    from recollect.store.keys import ApiKeys
    from recollect.store.postgres_connections import Pool
    from recollect.store.service_tables import ServiceTables, Tables
    from recollect.tools.deferred import DeferredCall, ReplyTimeouts
    from recollect.tools.log import CallLog
    from recollect.tools.suite import Suite, Telemetry
    from recollect.work.contract import Job, Queue
    from recollect.work.deferred_calls import DeferredCalls
    from recollect.work.worker import Worker

LOGGER = logging.getLogger("recollect")
_MOST_REMEMBERED = 256
_MOST_DAYS = 366
_MOST_INDEXED = 1_000_000
"""The maximum number of records in all loaded indexes: half a gigabyte. One user's index is always kept."""


class Recollect:
    """The memories of many users. Created by `recollect.open`."""

    def __init__(
        self,
        store: Store,
        config: Config,
        *,
        folder: Path | None,
        clock: Clock = utc_now,
        embedder: Embedder | None = None,
    ) -> None:
        if not callable(getattr(store, "user", None)):
            raise InvalidInputError("where", "must be a folder, a postgresql:// address, or a store")
        check.check_instance("config", config, Config, "a recollect.Config")
        # absolute, because a relative folder would follow the working directory
        if isinstance(store, SqliteStore):
            config = replace(config, memory_dir=store.root)
        self.config = replace(config, memory_dir=config.memory_dir.absolute())
        self._embedding = _embedding(config, embedder)
        self._store = store
        self._folder = None if folder is None else folder.absolute()
        self._clock = checked_clock(clock)
        self._people: OrderedDict[str, UserMemory] = OrderedDict()
        self._searched: OrderedDict[int, UserMemory] = OrderedDict()
        self._guard = threading.Lock()
        self._log: CallLog | None = None
        self._deferred_calls: DeferredCalls | None = None
        self._identities: Identities | None = None
        self._keys: ApiKeys | None = None
        self._queue_pool: Pool | None = None
        renew_after_forks(self, Recollect._renew)

    def user(self, user_id: str | int) -> Memory:
        """Return the memory of one user. Nothing is created until something is stored."""
        return Memory(self._user_memory(check_user_id(user_id)))

    def _user_memory(self, name: str) -> UserMemory:
        with self._guard:
            person = self._people[name] = self._people.get(name) or self._new_person(name)
            self._people.move_to_end(name)
            while len(self._people) > _MOST_REMEMBERED:
                self._people.popitem(last=False)
        return person

    def _new_person(self, name: str) -> UserMemory:
        files = self._files(name)
        return UserMemory(
            self._store.user(name),
            files,
            self.config,
            self._clock,
            self._embedding,
            self._was_used,
            lambda: self._settle(name),
            ErasureHooks(name, files, lambda: self.identities, partial(self._erase_elsewhere, name)),
            lambda: self._learn_expiring(name),
        )

    def _learn_expiring(self, name: str) -> set[str]:
        from recollect.agents.extract import learn_expiring

        return learn_expiring(self.user(name), self.extractor(required=False))

    @property
    def identities(self) -> Identities:
        """The identities on all channels: their users, and linking two of them with a one-time code."""
        from recollect.identity.links import Identities, People
        from recollect.store.identities import IDENTITIES

        with self._guard:
            if self._identities is None:
                people = People(self._user_memory, self._remove_user, self.config, self._clock)
                self._identities = Identities(self._service_tables(IDENTITIES), people)
            return self._identities

    @property
    def keys(self) -> ApiKeys:
        """The API keys."""
        from recollect.store.keys import KEYS, ApiKeys

        with self._guard:
            if self._keys is None:
                self._keys = ApiKeys(self._service_tables(KEYS), self._clock)
            return self._keys

    def _service_tables(self, tables: Tables) -> ServiceTables:
        if isinstance(self._store, SqliteStore):
            from recollect.store.service_tables_sqlite import SqliteServiceTables

            return SqliteServiceTables(self._store.root, tables)
        from recollect.store.postgres import PostgresStore
        from recollect.store.service_tables_postgres import PostgresServiceTables

        if isinstance(self._store, PostgresStore):
            return PostgresServiceTables(self._store, tables)
        from recollect.store.service_tables import NoServiceTables

        return NoServiceTables(tables)

    def tools(
        self,
        user_id: str | int,
        *suites: str,
        session: str | None = None,
        chat: str | int | None = None,
        agent: str | None = None,
        others: Sequence[str | int] = (),
        fixed_user: bool | None = None,
        wait: bool = False,
    ) -> Suite:
        """Return the tools of these suites, or of all, over the memory of one user.

        ``session`` is the conversation, ``chat`` the chat it belongs to: the facts suite does not recall facts from
        another chat. ``others`` are the other participants, whom tools with a ``user_id`` can reach; with
        ``fixed_user`` no tool takes one. With ``wait``, a call may take its tool's timeout, not MEMORY_TOOL_TIMEOUT_MS.
        """
        from recollect.tools.catalog import tools_of
        from recollect.tools.suite import Suite

        offered = tools_of(check.check_words("suites", suites))
        if self.config.model:
            from recollect.agents.summarize import with_model

            offered = with_model(offered, self.config)
        return Suite(
            self.user(user_id),
            offered,
            session=session,
            chat=None if chat is None else check.check_chat("chat", chat),
            agent=agent,
            others=[self.user(other) for other in check.check_list("others", others)],
            fixed_user=fixed_user,
            log=self._call_log(),
            telemetry=self._telemetry(),
            timeouts=None if wait else self._reply_timeouts(),
            clock=self._clock,
        )

    def _call_log(self) -> CallLog:
        from recollect.tools.log import CallLog

        with self._guard:
            if self._log is None:
                self._log = CallLog(lambda name: self.user(name)._user_memory, self.config, self._clock)
            return self._log

    def _reply_timeouts(self) -> ReplyTimeouts | None:
        """Return how long a reply waits for a tool; None (the tool's own timeout) without a queue or if turned off."""
        config = self.config
        if not config.tool_async or not (config.database_url or isinstance(self._store, SqliteStore)):
            return None
        from recollect.memory.search import load_search
        from recollect.tools.deferred import ReplyTimeouts

        load_search()  # now, so that no reply waits for it
        seconds = config.tool_timeout_ms / 1000
        embedding = 0.0 if self._embedding is None else config.embedder_timeout_ms / 1000
        return ReplyTimeouts(seconds + embedding, seconds, self._late_calls())

    def _late_calls(self, *, resume: bool = True) -> DeferredCalls:
        from recollect.work.deferred_calls import DeferredCalls

        with self._guard:
            if self._deferred_calls is not None:
                return self._deferred_calls
            late = self._deferred_calls = DeferredCalls(self.queue, self._tools_for)
        if resume and isinstance(self._store, SqliteStore) and (self._store.root / "queue.db").exists():
            # run the deferred calls of a dead process; with PostgreSQL, workers do that
            threading.Thread(target=late.resume_if_any, name="recollect-resume", daemon=True).start()
        return late

    def _tools_for(self, late: DeferredCall) -> Suite:
        others = [name for name in late.people if name != late.user]
        return self.tools(late.user, session=late.session, chat=late.chat, agent=late.agent, others=others)

    def _telemetry(self) -> Telemetry | None:
        if not self.config.telemetry:
            return None
        from recollect.tools.telemetry import telemetry

        return telemetry(self.config.telemetry)

    def _settle(self, name: str) -> None:
        if self._log is not None:
            self._log.flush(name)

    def queue(self) -> Queue:
        """Open the job queue, which is in the folder or the PostgreSQL database of the memories. Close it after use."""
        if self.config.database_url:
            from recollect.work.distributed import DistributedQueue

            url, size = self.config.database_url, self.config.tool_queue_size
            return DistributedQueue(url, size=size, clock=self._clock, pool=self._queue_connections())
        from recollect.work.embedded import EmbeddedQueue

        return EmbeddedQueue(self.config.memory_dir, size=self.config.tool_queue_size, clock=self._clock)

    def _queue_connections(self) -> Pool:
        from recollect.store.postgres_connections import Pool, parse_url
        from recollect.work.distributed import POOL_SIZE

        with self._guard:
            if self._queue_pool is None:
                self._queue_pool = Pool(parse_url(self.config.database_url), POOL_SIZE)
            return self._queue_pool

    def worker(self, queue: Queue, *, concurrency: int = 4) -> Worker:
        """Return a worker that runs queued and scheduled jobs, with the configured model or by rules."""
        from recollect.work.deferred_calls import TOOL
        from recollect.work.jobs import Jobs, schedule
        from recollect.work.worker import Worker

        jobs = Jobs(queue, self.user, self.users, extractor=self.extractor(required=False), clock=self._clock)
        handlers = {**jobs.handlers(), TOOL: self._late_calls(resume=False).do}
        most = check.check_positive("concurrency", concurrency)
        return Worker(queue, handlers, concurrency=most, schedule=schedule(queue, self.config))

    def extractor(self, *, required: bool = True) -> Extractor:
        """Return the configured model or the rules; unless ``required``, rules replace one that cannot be opened."""
        from recollect.agents.tiers import by_rules_because, without_fallback

        try:
            tiers = self._tiers()
        except ConfigError as error:
            if required:
                raise
            LOGGER.warning("extracting by rules: %s", error)
            tiers = by_rules_because(str(error))
        falls_back = self.config.automated_fallback or not self.config.model
        return tiers if falls_back else without_fallback(tiers, self.config)

    def _tiers(self) -> Extractor:
        from recollect.agents.extract import by_rules

        config = self.config
        if not (config.extraction_model or config.model or config.local_model):
            return by_rules
        from recollect.agents.llm_extractor import by_model
        from recollect.agents.models import configured_model
        from recollect.agents.tiers import by_tiers

        near, far = configured_model(config, local=True), configured_model(config, extraction=True)
        if near is None:
            return by_rules if far is None else by_model(far, log=self._call_log())
        return by_tiers([by_model(model, log=self._call_log()) for model in (near, far) if model is not None])

    def _renew(self) -> None:
        """Replace the lock in a forked child: another thread may have held it."""
        self._guard = threading.Lock()

    def _was_used(self, memory: UserMemory) -> None:
        """Keep the indexes of the users who searched last, and unload the others."""
        with self._guard:
            known = id(memory) in self._searched
            self._searched[id(memory)] = memory
            self._searched.move_to_end(id(memory))
            if known:
                return
            left = []
            total = sum(other.index.size for other in self._searched.values())
            while len(self._searched) > 1 and (len(self._searched) > _MOST_REMEMBERED or total > _MOST_INDEXED):
                other = self._searched.popitem(last=False)[1]
                total -= other.index.size
                left.append(other)
        for other in left:
            other.index.close()

    def users(
        self, *, tenant: str | None = None, begins: str = "", after: str = "", limit: int | None = None
    ) -> Iterator[str]:
        """Yield the ids of all users who have a memory, in order, as they are stored.

        Optionally only those of a ``tenant``, with a prefix (within the tenant), ``after`` another id, and up to a
        maximum number.
        """
        from recollect.store.keys import check_tenant

        for field, value in (("begins", begins), ("after", after)):
            if not isinstance(value, str) or (value and not value.isprintable()):
                raise InvalidInputError(field, "must be text that could be the beginning of an id")
        return self._store.users(
            tenant=None if tenant is None else check_tenant(check.check_line("tenant", tenant)),
            begins=begins,
            after=after,
            limit=check.check_optional_positive("limit", limit),
        )

    def runs(
        self,
        *,
        kind: str | None = None,
        limit: int = 20,
        unreadable: Callable[[str, StoreError], None] | None = None,
    ) -> list[tuple[str, ExtractionRun]]:
        """Return the extraction runs of all users, latest day first, each with its user; of one kind or of all.

        Users whose data cannot be read are skipped and reported to ``unreadable``, or else logged.
        """
        sort, most = check.check_optional_line("kind", kind), check.check_positive("limit", limit)
        found: list[tuple[str, ExtractionRun]] = []
        for name in self.users():
            try:
                with self._store.user(name).read() as reader:
                    found += [(name, run) for run in reader.runs(kind=sort, newest_first=True, limit=most)]
            except StoreError as error:
                if unreadable is None:
                    LOGGER.warning("the runs of a user cannot be read: %s", type(error).__name__)
                else:
                    unreadable(name, error)
        return sorted(found, key=lambda one: (one[1].day, one[1].started_at), reverse=True)[:most]

    def metrics(self, *, days: int = 7, tenant: str | None = None, seconds: float | None = None) -> UsageMetrics:
        """Return usage metrics of the last days, including today: calls, success, latency, the queue. No content.

        For all users, or those of one ``tenant``. Where each user has a separate file, the first count of many users
        takes a while: after ``seconds`` it returns what it has, and the next call continues.
        """
        from recollect.store.keys import check_tenant

        most = check.check_positive("days", days, _MOST_DAYS)
        whose = None if tenant is None else check_tenant(check.check_line("tenant", tenant))
        until = self._clock().date()
        since = until - timedelta(days=most - 1)
        if self._log is not None:
            self._log.flush()
        patience = None if seconds is None else check.check_cost("seconds", seconds)
        found = compute_metrics(self._store.tally(whose, since, until, patience), since, until)
        return replace(found, queue=self._queue_metrics(whose))

    def _queue_metrics(self, tenant: str | None) -> QueueMetrics | None:
        if not self._has_queue:
            return QueueMetrics() if isinstance(self._store, SqliteStore) else None
        try:
            with self.queue() as queue:
                return queue.metrics(tenant)
        except StoreError as error:
            LOGGER.warning("the queue cannot be read: %s", type(error).__name__)
            return None

    def trends(self, *, k: int = 5, days: int = 30, among: Iterable[str] | None = None) -> list[Trend]:
        """Return topics that at least ``k`` users share, most shared first. Only users who consented ("trends") count.

        They are of the last 7, 30, 90 or 365 days, without today. Counts are rounded down, and no user is named.
        ``among`` limits the users, for example to those of a tenant.
        """
        from recollect.memory.trends import find_trends

        names = self.users() if among is None else map(check_user_id, check.check_list("among", among))
        people = ((self._store.user(name), self._files(name)) for name in names if self.config.enabled)
        return find_trends(people, k=k, days=days, now=self._clock(), code=self.config.language)

    def erase_user(self, user_id: str | int) -> Receipt:
        """Erase a user and everything about them, everywhere."""
        name = check_user_id(user_id)
        is_theirs = self._lines_of(name)  # before their identities are removed
        # first: copies in linked memories must not outlive the user, and no link may continue
        linked, unfinished = self.identities.erase_user(name)
        for one in (name, *unfinished):
            if self._store.user(one).exists():
                self.identities.bury(one)
        self.keys.forget_answers(name)
        places = self._remove_user(name)
        for other in unfinished:
            self._remove_user(other)
        if beside := self.identities.erasure_pending + self.keys.erasure_pending:
            places[PENDING] = places.get(PENDING, 0) + beside
        if self._has_queue:
            with self.queue() as queue:  # except running jobs: this erasure may be one
                jobs = queue.erase_jobs(lambda job: job.state != "running" and is_theirs(job))
            places |= {"jobs": places.get("jobs", 0) + jobs} if jobs else {}
        return Receipt(at=self._clock(), ids=(), places=places | linked)

    def _remove_user(self, name: str, unless: Callable[[], None] | None = None) -> dict[str, int]:
        """Remove a user's memory and queued jobs, unless the check under their lock raises."""
        if self._log is not None:
            self._log.forget(name)
        with self._guard:
            person = self._people.pop(name, None)
        if person is not None:
            person.index.forget()
        jobs, pending = self._erase_jobs(name)  # first: a job that runs later would bring the user back
        folder = None if self._folder is None else self._folder / folder_name(name)
        if folder is not None and isinstance(self._store, SqliteStore) and self._store.root == self._folder:
            folder = None  # the store removes its own folder
        removed: list[int] = []

        def under_lock() -> None:
            if unless is not None:
                unless()
            if folder is not None:
                # under the store's lock: otherwise new writes would be deleted, or deleted files read
                removed.append(remove_folder(folder))

        places = self._store.erase_user(name, None if unless is None and folder is None else under_lock)
        if folder is not None:
            places["files"] = places.get("files", 0) + sum(removed)
        elif places.get("files") and not isinstance(self._store, SqliteStore):
            places[FILES_LEFT] = places.pop("files")
        if pending:
            places[PENDING] = places.get(PENDING, 0) + 1
        return places | ({"jobs": jobs} if jobs else {})

    def _erase_elsewhere(self, name: str, write: Write) -> dict[str, int]:
        """Remove what is stored outside a user's memory after an erasure of records, of topics or of everything."""
        removed = {"kept answers": self.keys.forget_answers(name)}
        if self._deferred_calls is not None:
            self._deferred_calls.forget(name)
        if self._has_queue:
            from recollect.work.deferred_calls import TOOL
            from recollect.work.jobs import repeats, speaks_of

            is_theirs = self._lines_of(name)

            def must_go(job: Job) -> bool:
                if not is_theirs(job):
                    return False
                if job.user_id != name:  # messages to a bot came after the erasure and stay queued
                    return (write.cleared and job.state == "dead") or speaks_of(job, write.topics)
                if write.cleared and job.name != TOOL:
                    # a job that runs may be this erasure; one that is done without a result holds nothing
                    return job.state in ("ready", "dead") or job.result is not None
                return write.cleared or speaks_of(job, write.topics) or repeats(job, write.has_just_erased)

            with self.queue() as queue:
                removed["jobs"] = queue.erase_jobs(must_go)
                if removed["jobs"] and queue.pending:
                    write.add_pending()
        return {place: number for place, number in removed.items() if number}

    def _lines_of(self, name: str) -> Callable[[Job], bool]:
        """Return a function that tells if a job belongs to a user: in their own lane, or in their lane of a bot."""
        accounts = {known.identity for known in self.identities.all() if known.user_id == name}
        names = {one.name for one in accounts if one.channel == "telegram"}
        if name.startswith("telegram:"):
            names.add(name.removeprefix("telegram:"))
        endings = tuple(f" {kind} {one}" for kind in ("person", "chat") for one in names)

        def is_theirs(job: Job) -> bool:
            line = job.user_id or ""
            return line == name or (line.startswith("telegram ") and line.endswith(endings))

        return is_theirs

    @property
    def _has_queue(self) -> bool:
        """Return True if there may be a queue. Checking does not create its file."""
        if isinstance(self._store, SqliteStore):
            return (self._store.root / "queue.db").exists()
        return bool(self.config.database_url)

    def _erase_jobs(self, name: str) -> tuple[int, bool]:
        """Remove a user's queued jobs. Return their number, and True if a log still holds them."""
        if not self._has_queue:
            return 0, False
        with self.queue() as queue:
            return queue.erase_user(name), queue.pending

    def close(self) -> None:
        """Close files and connections. Memories in use open them again."""
        if self._deferred_calls is not None:
            self._deferred_calls.close()
        if self._log is not None:
            self._log.close()
        if self._embedding is not None:
            self._embedding.close()
        with self._guard:
            left = list(self._searched.values())
            self._people.clear()
            self._searched.clear()
        for person in left:
            person.index.close()
        if self._identities is not None:
            self._identities.close()
        if self._keys is not None:
            self._keys.close()
        if self._queue_pool is not None:
            self._queue_pool.close()
        self._store.close()

    def __enter__(self) -> Recollect:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _files(self, user_id: str) -> Files:
        if self._folder is None:
            return NoFiles()
        return DiskFiles(
            self._folder / folder_name(user_id),
            lambda: self.identities.erased_at(user_id),
            only_writer=isinstance(self._store, SqliteStore),
        )


def open(
    where: str | Path | Store | None = None,
    *,
    files: str | Path | None = None,
    config: Config | None = None,
    clock: Clock = utc_now,
    embedder: Embedder | str | None = None,
    **settings: Any,
) -> Recollect:
    """Open a folder, a ``postgresql://`` address, or a store of your own.

    A folder holds everything: SQLite databases and the files people read. With PostgreSQL, ``files`` is the folder for
    MEMORY.md and the daily notes; by default MEMORY_FILES and MEMORY_DIR decide. ``embedder`` is your own, or a name as
    in MEMORY_EMBEDDER. Other settings are those of `Config`; the environment provides those that are not given.
    """
    files = None if files is None else check.check_path("files", files)
    if isinstance(embedder, str):
        settings["embedder"], embedder = embedder, None
    if where is not None and not isinstance(where, str | Path):
        chosen = Config.load(**settings) if config is None else config
        return Recollect(where, chosen, folder=files, clock=clock, embedder=embedder)
    if isinstance(where, str) and "://" not in where:
        where = check.check_path("where", where)
    chosen = Config.resolve(where, files, **settings) if config is None else config
    check.check_instance("config", chosen, Config, "a recollect.Config")
    if chosen.database_url:
        from recollect.store.postgres import PostgresStore

        folder = chosen.memory_dir if chosen.files else None
        store = PostgresStore(chosen.database_url, pool_size=chosen.database_pool)
        return Recollect(store, chosen, folder=folder, clock=clock, embedder=embedder)
    return Recollect(SqliteStore(chosen.memory_dir), chosen, folder=chosen.memory_dir, clock=clock, embedder=embedder)


def _embedding(config: Config, embedder: Embedder | None) -> Embedding | None:
    if embedder is None and config.embedder in ("", "none"):
        return None
    if embedder is not None and not callable(getattr(embedder, "embed", None)):
        raise InvalidInputError(
            "embedder", "must be a name, as in MEMORY_EMBEDDER, or have name, dimensions and embed()"
        )
    from recollect.search.embedders.embedder import check_embedder  # here, not above: they load NumPy
    from recollect.search.embedders.opening import open_embedder

    chosen = open_embedder(config.embedder, key=config.embedder_key or None) if embedder is None else embedder
    return None if chosen is None else Embedding(check_embedder(chosen), config.embedder_timeout_ms / 1000)
