"""The bot as a whole: takes updates in, has them answered and the answers sent, and ends what has fallen silent.

Three steps, each durable before the next: an update is a job of the person's, its answer a job of the chat's, and what
was sent is logged. Jobs of one person, and of one chat, run in order; those of others run beside them.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Any

from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, RetryAfter, TelegramError

from recollect.agents.conclude import IDLE, conclude, idle_sessions
from recollect.agents.extract import Extractor
from recollect.agents.models import Model
from recollect.app import Recollect
from recollect.errors import InvalidInputError, QueueFullError, RecollectError, StoreBusyError, StoreError
from recollect.memory.memory import Memory
from recollect.store.locks import FileLock
from recollect.surfaces.chat.conversation import COMMANDS
from recollect.surfaces.chat.page import ChatLine, chat_page
from recollect.surfaces.telegram.connection import TelegramConnection
from recollect.surfaces.telegram.outbox import Sender, remove_documents, seconds_of
from recollect.surfaces.telegram.posts import BUTTONS, Post, delivery_id
from recollect.surfaces.telegram.rendering import render_messages
from recollect.surfaces.telegram.replies import CHANNEL, BotReply, Replier
from recollect.surfaces.telegram.sent_log import SentLog
from recollect.surfaces.telegram.updates import (
    KINDS,
    BotIdentity,
    ButtonUpdate,
    Event,
    MessageUpdate,
    lane,
    read_update,
)
from recollect.surfaces.telegram.webhook import Webhook
from recollect.times import Clock, utc_now
from recollect.work.contract import Job, RetryLaterError, Task
from recollect.work.worker import Worker

LOGGER = logging.getLogger("recollect.telegram")
URL = "https://api.telegram.org"
_TOKEN = re.compile(r"[1-9]\d{0,19}:[A-Za-z0-9_-]+")
_MANY_ATTEMPTS = 1000  # a kill is an attempt, too
_MOST_FAILURES = 3
_PAUSES = (0.2, 30.0)
_FULL_SECONDS = 0.5
_EARLY_SECONDS, _EARLY_LOOKS = 0.2, 5
_TYPING_SECONDS = 4.0
_PRESS_PAUSES = (0.2, 1.0, 3.0)
_TICK_SECONDS = 60.0
_END_SECONDS = 20.0
_PREDECESSOR_SECONDS = 1.0
_MOST_ANSWERED = 1000
_LONGEST_SHOWN = 1500
"""Of a post, in characters: all of it is known when it is discussed."""


class BotError(RecollectError):
    """The bot cannot go on."""


class Bot:
    """A bot on Telegram over the memories of an `app`. As a with block, it works until the block ends.

    ``model`` answers in conversations; without one, memory does. ``url`` is another Bot API server than Telegram's own.
    By default updates are fetched; with ``webhook_url`` Telegram brings them there, which has to lead to ``listen``.
    """

    def __init__(
        self,
        app: Recollect,
        token: str,
        *,
        model: Model | None = None,
        extractor: Extractor | None = None,
        url: str = URL,
        webhook_url: str | None = None,
        listen: str = "127.0.0.1:8443",
        concurrency: int = 16,
        clock: Clock = utc_now,
    ) -> None:
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise InvalidInputError("token", "is not one of a bot; @BotFather gives it to you")
        self.id = int(token.partition(":")[0])
        self._app = app
        self._token = token
        self._url = url
        self._place = (webhook_url, listen)
        self._model = model
        self._extractor = extractor or app.extractor()
        self._concurrency = concurrency
        self._clock = clock
        self._queue = app.queue()
        self._inbox, self._outbox, self._rests = (f"telegram {what} {self.id}" for what in ("update", "answer", "rest"))
        self._ended = threading.Event()
        self._stopping = threading.Event()
        self._problem: BotError | None = None
        self._started = False
        self._guard = threading.Lock()
        self._spoke: dict[str, tuple[datetime, int]] = {}
        """When each person spoke last, by their line in the queue."""
        self._failures: dict[str, int] = {}
        self._answered: dict[str, None] = {}
        """The presses that were answered, so that it is not done twice."""

    # for programs

    def deliver(self, person: int, post: Post) -> bool:
        """Hand a post to somebody who has started the bot. False if they got it before.

        It is durable when this returns, and sent by the bot that runs, here or in another process. What they do with
        it, a reaction, a save, a discussion, is reported to their memory.
        """
        shown = post.text.strip()
        if len(shown) > _LONGEST_SHOWN:
            shown = f"{shown[:_LONGEST_SHOWN].rsplit(maxsplit=1)[0]} …"
        text = chat_page(ChatLine(post.title, "title"), *shown.splitlines(), *([post.url] if post.url else []))
        act = {"text": render_messages(text)[0].text, "buttons": [[list(button) for button in BUTTONS]]}
        payload = {"chat": person, "acts": [act], "report": {"person": person, "about": post.about}}
        key = f"telegram:{self.id}:post:{person}:{post.id}"
        return self._queue.put(self._task(self._outbox, f"chat {person}", payload, key)).fresh

    # from beginning to end

    def start(self) -> Bot:
        """Reach Telegram, and work in the background."""
        if self._started:
            raise InvalidInputError("bot", "was started already; make another")
        self._started = True
        self._connection = TelegramConnection(self._token, self._url)
        self._sent: SentLog | None = None
        self._lock: FileLock | None = None
        self._webhook: Webhook | None = None
        self._workers: list[Worker] = []
        self._ticking = threading.Thread(target=self._tick_on, name="recollect-telegram-tick", daemon=True)
        try:
            self._begin()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Take nothing more in, and finish what was begun."""
        self._stopping.set()
        if not self._started or self._ended.is_set():
            self._queue.close()
            return
        if self._webhook is not None:
            self._webhook.close()
        for worker in self._workers[:1]:
            worker.stop(_END_SECONDS)
        for worker in self._workers[1:]:
            worker.wait_idle(_END_SECONDS)
            worker.stop(_END_SECONDS)
        self._connection.close()
        if self._ticking.is_alive():
            self._ticking.join(_END_SECONDS)
        if self._sent is not None:
            self._sent.close()
        if self._lock is not None:
            self._lock.release()
            self._lock.close()
        self._queue.close()
        self._ended.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Until something ends it; raises `BotError` if it cannot go on. False if nothing did in so many seconds."""
        ended = self._stopping.wait(timeout)
        if self._problem is not None:
            raise self._problem
        return ended

    def wake(self) -> None:
        """Let `wait` return; `stop` has to follow."""
        self._stopping.set()

    def __enter__(self) -> Bot:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _begin(self) -> None:
        api = self._connection.api
        self._reached(api.initialize)
        self.me = BotIdentity(api.id, str(api.username))
        self._answering = Replier(self._app, self.me, model=self._model, extractor=self._extractor, clock=self._clock)
        self._sent = self._only_one()
        sender = Sender(api, self._connection.call, self._sent, self._arrived)
        commands = [(name.removeprefix("/"), told) for name, told in COMMANDS.items()]
        self._reached(lambda: api.set_my_commands(commands))
        url, listen = self._place
        if url is None:
            self._reached(lambda: api.delete_webhook(drop_pending_updates=False))
        self._workers = [
            Worker(self._queue, handlers, concurrency=self._concurrency).start()
            for handlers in ({self._inbox: self._answer, self._rests: self._rest}, {self._outbox: sender.send})
        ]
        if url is None:
            self._connection.spawn(self._poll())
        else:
            secret = secrets.token_urlsafe(32)
            self._webhook = Webhook(url, listen, secret, lambda update: self._take_in([update]))
            self._reached(lambda: api.set_webhook(url, allowed_updates=KINDS, secret_token=secret, max_connections=1))
        self._ticking.start()

    def _only_one(self) -> SentLog:
        """The log of what was sent, which no other program may write to meanwhile."""
        place = self._app.config.memory_dir / f"telegram-{self.id}.log"
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(place.with_suffix(".lock"), _PREDECESSOR_SECONDS)
        try:
            lock.acquire()
        except StoreBusyError:
            raise BotError("This bot is running already, on the same memories") from None
        self._lock = lock
        return SentLog(place)

    def _reached(self, request: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Do it, however long Telegram cannot be reached."""
        pause = _PAUSES[0]
        while not self._stopping.is_set():
            try:
                self._connection.call(request())
                return
            except (InvalidToken, Forbidden):
                raise BotError("Telegram does not know this token; look at TELEGRAM_BOT_TOKEN") from None
            except BadRequest as error:
                raise BotError(f"Telegram refuses that: {error.message}") from None
            except RetryAfter as error:
                self._stopping.wait(seconds_of(error))
            except TelegramError as error:
                LOGGER.warning("Telegram cannot be reached (%s); trying again", type(error).__name__)
                self._stopping.wait(pause)
                pause = min(pause * 2, _PAUSES[1])
        raise BotError("Telegram was not reached")

    # updates come in

    async def _poll(self) -> None:
        """Fetch updates. The next request confirms the ones before it, which are durable by then."""
        offset, pause = None, _PAUSES[0]
        while not self._stopping.is_set():
            try:
                updates = await self._connection.api.updates(offset, KINDS)
                if await self._kept(updates):
                    offset = max((update["update_id"] + 1 for update in updates), default=offset)
                pause = _PAUSES[0]
                continue
            except Conflict:
                self._fail("Another program fetches the updates of this bot; only one can")
            except (InvalidToken, Forbidden):
                self._fail("Telegram no longer accepts this token")
            except RetryAfter as error:
                pause = seconds_of(error)
            except (TelegramError, RecollectError) as error:
                LOGGER.warning("no updates for now (%s); trying again", type(error).__name__)
            except Exception as error:  # the outermost handler: a bot that does not listen would look alive
                LOGGER.error("no updates for now (%s); trying again", type(error).__name__)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _PAUSES[1])

    async def _kept(self, updates: Sequence[dict[str, Any]]) -> bool:
        """Whether they are durable; while the queue is full, they wait at Telegram."""
        while updates and not self._stopping.is_set():
            try:
                await asyncio.to_thread(self._take_in, updates)
                return True
            except QueueFullError:
                await asyncio.sleep(_FULL_SECONDS)
        return False

    def _take_in(self, updates: Sequence[dict[str, Any]]) -> None:
        """Make updates durable. Half of the queue is left to others, among them our own answers."""
        depth = self._queue.depth()
        if depth["ready"] + depth["running"] > self._queue.size // 2:
            raise QueueFullError()
        tasks = [
            self._task(self._inbox, f"person {lane(one)}", {"update": one}, f"telegram:{self.id}:{one['update_id']}")
            for one in updates
        ]
        self._queue.put_many(tasks)
        for update in updates:
            event = read_update(update, self.me)
            if isinstance(event, ButtonUpdate) and (toast := self._answering.toast(event)) is not None:
                self._connection.spawn(self._show(event.query, toast))

    def _task(self, name: str, line: str, payload: Mapping[str, Any], key: str) -> Task:
        line = f"telegram {self.id} {line}"
        return Task(name=name, user_id=line, payload=payload, key=key[:300], once=True, max_attempts=_MANY_ATTEMPTS)

    def _fail(self, why: str) -> None:
        self._problem = BotError(why)
        self._stopping.set()

    # and are answered

    def _answer(self, job: Job) -> None:
        update = job.payload["update"]
        event = read_update(update, self.me)
        if event is None:
            return
        if self._is_early(event, job):
            raise RetryLaterError(_EARLY_SECONDS, "the message is still being sent")
        answer = self._tried(job, event, int(update["update_id"]))
        if answer.acts:
            payload = {"chat": answer.chat, "acts": answer.acts}
            if not self._put(self._task(self._outbox, f"chat {answer.chat}", payload, f"{job.key}:answer")):
                remove_documents(answer.acts)  # it was answered before a kill
        if isinstance(event, ButtonUpdate) and event.query not in self._answered:
            self._connection.spawn(self._show(event.query, answer.toast))
        with self._guard:
            self._spoke[job.user_id or ""] = self._clock(), event.person

    def _put(self, task: Task) -> bool:
        """As soon as there is room. False if it is there already."""
        while True:
            try:
                return self._queue.put(task).fresh
            except QueueFullError:
                if self._stopping.wait(_FULL_SECONDS):
                    raise RetryLaterError(_FULL_SECONDS, "the queue is full") from None

    def _is_early(self, event: Event, job: Job) -> bool:
        """Whether somebody was so quick that the message is not yet noted that they press, reply or react to."""
        if isinstance(event, MessageUpdate):
            ours = (event.reply.get("from") or {}).get("id") == self.me.id
            number = int(event.reply["message_id"]) if ours else 0
        else:
            number = event.message
        assert self._sent is not None
        return job.attempts < _EARLY_LOOKS and self._sent.last(event.spot.chat).message < number

    def _tried(self, job: Job, event: Event, update: int) -> BotReply:
        typing = (
            self._connection.spawn(self._typing(event)) if self._model and isinstance(event, MessageUpdate) else None
        )
        try:
            answer = self._answering.answer(event, update)
            self._failures.pop(job.id, None)
            return answer
        except Exception as error:  # the outermost handler: the person has to hear something
            failures = self._failures[job.id] = self._failures.get(job.id, 0) + 1
            if failures < _MOST_FAILURES:
                raise
            del self._failures[job.id]
            LOGGER.error("an update could not be answered: %s", type(error).__name__)
            return self._answering.sorry(event)
        finally:
            if typing is not None:
                typing.cancel()

    async def _typing(self, said: MessageUpdate) -> None:
        """Show that an answer is on its way."""
        while True:
            with suppress(TelegramError):
                await self._connection.api.send_chat_action(said.spot.chat, "typing", said.spot.thread)
            await asyncio.sleep(_TYPING_SECONDS)

    async def _show(self, query: str, toast: str) -> None:
        """End the little clock on a button."""
        self._answered[query] = None
        while len(self._answered) > _MOST_ANSWERED:
            del self._answered[next(iter(self._answered))]
        for pause in _PRESS_PAUSES:
            try:
                await self._connection.api.answer_callback_query(query, text=toast or None)
                return
            except (BadRequest, Forbidden):
                return  # too late, or answered before a kill
            except TelegramError:
                await asyncio.sleep(pause)

    def _arrived(self, report: Mapping[str, Any], chat: int, message: int) -> None:
        memory = self._answering.memory(int(report["person"]))
        memory.report("delivery", id=delivery_id(chat, message), **report["about"])

    # what has fallen silent

    def tick(self) -> None:
        """Have concluded what has been silent for half an hour."""
        now = self._clock()
        with self._guard:
            due = {line: who for line, (at, who) in self._spoke.items() if at <= now - IDLE}
            for line in due:
                del self._spoke[line]
        for line, person in due.items():
            self._put_rest(line, self._answering.memory(person).user_id)

    def _put_rest(self, line: str, user: str) -> None:
        task = Task(name=self._rests, user_id=line, payload={"user": user}, key=f"telegram:rest:{user}")
        with suppress(QueueFullError):  # the daily extraction does it, too
            self._queue.put(task)

    def _rest(self, job: Job) -> None:
        """In the person's line, so that nobody speaks meanwhile. Silently: they have turned to something else."""
        memory = self._app.user(job.payload["user"])
        for session in _silent(memory, self._clock):
            conclude(memory, session, extractor=self._extractor, clock=self._clock)

    def _tick_on(self) -> None:
        try:
            for user in self._app.users():  # what fell silent while nobody looked
                if self._stopping.is_set():
                    return
                with suppress(StoreError):
                    if sessions := _silent(self._app.user(user), self._clock):
                        who = sessions[0].removeprefix(f"{CHANNEL}/").partition("@")[0]
                        self._put_rest(f"telegram {self.id} person {who}", user)
            while not self._stopping.wait(_TICK_SECONDS):
                self.tick()
        except Exception as error:  # the outermost handler of this thread
            LOGGER.warning("silent discussions are left to the daily extraction: %s", type(error).__name__)


def _silent(memory: Memory, clock: Clock) -> list[str]:
    """The sessions on Telegram that nobody has gone on with."""
    if not memory.exists or memory.mode != "on":
        return []
    return [one for one in idle_sessions(memory, clock=clock) if one.startswith(f"{CHANNEL}/")]
