"""The bot: receives updates, answers them, sends the answers, and concludes silent conversations.

There are three steps, each durable before the next: an update is a job in the person's lane, its answer a job in the
chat's lane, and each sent message is logged. Jobs of one lane run in order; lanes run in parallel.
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
from recollect.surfaces.chat.conversation import COMMANDS, Conversation
from recollect.surfaces.chat.members import members_of
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
_TOKEN = re.compile(r"[1-9]\d{0,19}:[A-Za-z0-9_-]+")
_MANY_ATTEMPTS = 1000  # a kill counts as an attempt
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
"""The maximum length of a post, in characters. The whole text is used in a discussion."""


class BotError(RecollectError):
    """The bot cannot continue."""


class Bot:
    """A Telegram bot over the memories of an `app`. In a ``with`` block, it runs until the block ends.

    ``model`` answers in conversations; without one, the bot answers from memory. ``url`` is the Bot API server
    (default: MEMORY_TELEGRAM_URL). By default the bot fetches updates; with ``webhook_url``, Telegram sends them there,
    and the URL must lead to ``listen``. ``conversation`` makes the `Conversation` with a person: a subclass can add
    commands.
    """

    def __init__(
        self,
        app: Recollect,
        token: str,
        *,
        model: Model | None = None,
        extractor: Extractor | None = None,
        url: str | None = None,
        webhook_url: str | None = None,
        listen: str = "127.0.0.1:8443",
        concurrency: int = 16,
        conversation: Callable[..., Conversation] = Conversation,
        clock: Clock = utc_now,
    ) -> None:
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise InvalidInputError("token", "is not a bot token; get one from @BotFather")
        self.id = int(token.partition(":")[0])
        self._app = app
        self._token = token
        self._url = url or app.config.telegram_url
        self._place = (webhook_url, listen)
        self._model = model
        self._extractor = extractor or app.extractor(required=False)
        self._conversation = conversation
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
        """The time of each person's last message, by lane."""
        self._failures: dict[str, int] = {}
        self._answered: dict[str, None] = {}
        """The button presses that were already answered."""

    # for programs

    def deliver(self, person: int, post: Post) -> bool:
        """Deliver a post to a person who has started the bot. Return False if they already got it.

        The post is durable when this returns. The running bot sends it, in this or another process. Reactions, saves
        and discussions of the post are reported to the person's memory.
        """
        shown = post.text.strip()
        if len(shown) > _LONGEST_SHOWN:
            shown = f"{shown[:_LONGEST_SHOWN].rsplit(maxsplit=1)[0]} …"
        text = chat_page(ChatLine(post.title, "title"), *shown.splitlines(), *([post.url] if post.url else []))
        act = {"text": render_messages(text)[0].text, "buttons": [[list(button) for button in BUTTONS]]}
        payload = {"chat": person, "acts": [act], "report": {"person": person, "about": post.about}}
        key = f"telegram:{self.id}:post:{person}:{post.id}"
        return self._queue.put(self._task(self._outbox, f"chat {person}", payload, key)).fresh

    # start and stop

    def start(self) -> Bot:
        """Connect to Telegram and run in the background."""
        if self._started:
            raise InvalidInputError("bot", "was already started; create another one")
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
        """Stop receiving updates and finish those in progress."""
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
        """Wait until the bot ends. Raise `BotError` if it cannot continue; return False after ``timeout`` seconds."""
        ended = self._stopping.wait(timeout)
        if self._problem is not None:
            raise self._problem
        return ended

    def wake(self) -> None:
        """Make `wait` return. Call `stop` afterwards."""
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
        self._answering = Replier(
            self._app,
            self.me,
            model=self._model,
            extractor=self._extractor,
            conversation=self._conversation,
            clock=self._clock,
        )
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
        """Open the log of sent messages, and lock it against other processes."""
        place = self._app.config.memory_dir / f"telegram-{self.id}.log"
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(place.with_suffix(".lock"), _PREDECESSOR_SECONDS)
        try:
            lock.acquire()
        except StoreBusyError:
            raise BotError("this bot is already running on the same memories") from None
        self._lock = lock
        return SentLog(place)

    def _reached(self, request: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Make a request, and retry for as long as Telegram cannot be reached."""
        pause = _PAUSES[0]
        while not self._stopping.is_set():
            try:
                self._connection.call(request())
                return
            except (InvalidToken, Forbidden):
                raise BotError("Telegram does not accept this token; check TELEGRAM_BOT_TOKEN") from None
            except BadRequest as error:
                raise BotError(f"Telegram rejected the request: {error.message}") from None
            except RetryAfter as error:
                self._stopping.wait(seconds_of(error))
            except TelegramError as error:
                LOGGER.warning("cannot reach Telegram (%s); retrying", type(error).__name__)
                self._stopping.wait(pause)
                pause = min(pause * 2, _PAUSES[1])
        raise BotError("Telegram could not be reached")

    # receiving updates

    async def _poll(self) -> None:
        """Fetch updates. Each request confirms the updates before it, which are durable by then."""
        offset, pause = None, _PAUSES[0]
        while not self._stopping.is_set():
            try:
                updates = await self._connection.api.updates(offset, KINDS)
                if await self._kept(updates):
                    offset = max((update["update_id"] + 1 for update in updates), default=offset)
                pause = _PAUSES[0]
                continue
            except Conflict:
                self._fail("another program is fetching the updates of this bot; stop it first")
            except (InvalidToken, Forbidden):
                self._fail("Telegram no longer accepts this token; check TELEGRAM_BOT_TOKEN")
            except RetryAfter as error:
                pause = seconds_of(error)
            except (TelegramError, RecollectError) as error:
                LOGGER.warning("cannot fetch updates (%s); retrying", type(error).__name__)
            except Exception as error:  # the outermost handler: without this loop the bot would only look alive
                LOGGER.error("cannot fetch updates (%s); retrying", type(error).__name__)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _PAUSES[1])

    async def _kept(self, updates: Sequence[dict[str, Any]]) -> bool:
        """Return True once updates are durable. While the queue is full, they wait at Telegram."""
        while updates and not self._stopping.is_set():
            try:
                await asyncio.to_thread(self._take_in, updates)
                return True
            except QueueFullError:
                await asyncio.sleep(_FULL_SECONDS)
        return False

    def _take_in(self, updates: Sequence[dict[str, Any]]) -> None:
        """Put updates into the queue. Half of it stays free for other jobs, such as the answers."""
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

    # answering updates

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
                remove_documents(answer.acts)  # already answered, before a kill
        if isinstance(event, ButtonUpdate) and event.query not in self._answered:
            self._connection.spawn(self._show(event.query, answer.toast))
        with self._guard:
            self._spoke[job.user_id or ""] = self._clock(), event.person

    def _put(self, task: Task) -> bool:
        """Put a task into the queue, or retry later while it is full. Return False if it is already there."""
        while True:
            try:
                return self._queue.put(task).fresh
            except QueueFullError:
                if self._stopping.wait(_FULL_SECONDS):
                    raise RetryLaterError(_FULL_SECONDS, "the queue is full") from None

    def _is_early(self, event: Event, job: Job) -> bool:
        """Return True if the message that the event refers to is not logged yet, because the person was fast."""
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
        except Exception as error:  # the outermost handler: the person must get an answer
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
        while True:
            with suppress(TelegramError):
                await self._connection.api.send_chat_action(said.spot.chat, "typing", said.spot.thread)
            await asyncio.sleep(_TYPING_SECONDS)

    async def _show(self, query: str, toast: str) -> None:
        """Stop the spinner on a button."""
        self._answered[query] = None
        while len(self._answered) > _MOST_ANSWERED:
            del self._answered[next(iter(self._answered))]
        for pause in _PRESS_PAUSES:
            try:
                await self._connection.api.answer_callback_query(query, text=toast or None)
                return
            except (BadRequest, Forbidden):
                return  # too late, or already answered before a kill
            except TelegramError:
                await asyncio.sleep(pause)

    def _arrived(self, report: Mapping[str, Any], chat: int, message: int) -> None:
        memory = self._answering.memory(int(report["person"]))
        memory.report("delivery", id=delivery_id(chat, message), **report["about"])

    # silent conversations

    def tick(self) -> None:
        """Queue the conclusion of conversations that have been silent for half an hour."""
        now = self._clock()
        with self._guard:
            due = {line: who for line, (at, who) in self._spoke.items() if at <= now - IDLE}
            for line in due:
                del self._spoke[line]
        for line, person in due.items():
            self._put_rest(line, self._answering.memory(person).user_id)

    def _put_rest(self, line: str, user: str) -> None:
        task = Task(name=self._rests, user_id=line, payload={"user": user}, key=f"telegram:rest:{user}")
        with suppress(QueueFullError):  # the daily extraction concludes them too
            self._queue.put(task)

    def _rest(self, job: Job) -> None:
        """Conclude a person's silent conversations, in their lane and without a message to them."""
        memory = self._app.user(job.payload["user"])
        for session in _silent(memory, self._clock):
            company = members_of(self._app).names(memory, session)
            conclude(memory, session, company=company, extractor=self._extractor, clock=self._clock)

    def _tick_on(self) -> None:
        try:
            for user in self._app.users():  # conversations that fell silent while the bot was not running
                if self._stopping.is_set():
                    return
                with suppress(StoreError):
                    if sessions := _silent(self._app.user(user), self._clock):
                        who = sessions[0].removeprefix(f"{CHANNEL}/").partition("@")[0]
                        self._put_rest(f"telegram {self.id} person {who}", user)
            while not self._stopping.wait(_TICK_SECONDS):
                self.tick()
        except Exception as error:  # the outermost handler of this thread
            LOGGER.warning("silent conversations are left to the daily extraction: %s", type(error).__name__)


def _silent(memory: Memory, clock: Clock) -> list[str]:
    """Return the Telegram sessions that have been silent for half an hour."""
    if not memory.exists or memory.mode != "on":
        return []
    return [one for one in idle_sessions(memory, clock=clock) if one.startswith(f"{CHANNEL}/")]
