"""Sends what was written down to be sent: in each chat in order, once, however often it has to be tried.

Telegram has no way to say "send this unless you have it". If an attempt was cut short, by a kill or a broken
connection, we look whether its message is there: right behind the last one that surely was sent there, an edit to the
very same content is refused as no change. Nothing else of ours can stand there, so nothing else can be changed by it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from telegram import Bot as Api
from telegram import InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, ReplyParameters
from telegram.error import BadRequest, ChatMigrated, Forbidden, RetryAfter, TelegramError

from recollect.surfaces.telegram.rendering import without_tags
from recollect.surfaces.telegram.sent_log import SUPERGROUPS, SentLog
from recollect.work.contract import Job, RetryLaterError

LOGGER = logging.getLogger("recollect.telegram")
_NEAR, _MOST, _BEFORE, _FAR = 12, 300, 8, 40
"""How many numbers are looked at: behind the last message of the chat so many that are free, but not more than so many;
and before and behind the last of all private chats."""
_PAUSES = (0.25, 30.0)
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)

Act = Mapping[str, Any]
"""One request, as JSON: ``text`` or ``document`` to send, with ``thread``, ``reply_to`` and ``buttons``; with
``message``, that one is changed instead, to have no buttons if there is no text."""
Call = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a request of the library, and waits for it."""


class _GoneError(Exception):
    """Nothing can be sent to this chat."""


class Sender:
    """Does the jobs of the outbox. ``arrived`` is told of each message that a job has something to report for."""

    def __init__(
        self, api: Api, call: Call, sent: SentLog, arrived: Callable[[Mapping[str, Any], int, int], None]
    ) -> None:
        self._api = api
        self._call = call
        self._sent = sent
        self._arrived = arrived
        self._began_at = sent.highest
        self._guard = threading.Lock()
        self._tried: dict[str, int] = {}
        """The highest message number before the first attempt, of the jobs that this process has tried."""
        self._refused: set[str] = set()
        """Jobs whose last attempt was surely not sent."""

    def send(self, job: Job) -> None:
        """All acts of a job that were not done yet."""
        chat = int(job.payload["chat"])
        last = self._sent.last(chat)
        begin = last.step + 1 if last.job == job.id else 0
        unsure = job.attempts > 1 and job.id not in self._refused
        with self._guard:
            self._refused.discard(job.id)
            self._tried.setdefault(job.id, self._began_at if unsure else self._sent.highest)
        try:
            for step, act in enumerate(job.payload["acts"]):
                if step >= begin:
                    number = self._done(job, chat, act, unsure and step == begin)
                    if job.payload.get("report") and number:
                        self._arrived(job.payload["report"], chat, number)
                    self._sent.note(chat, job.id, step, number)
        except _GoneError:
            pass
        with self._guard:
            self._tried.pop(job.id, None)
        remove_documents(job.payload["acts"])

    def _done(self, job: Job, chat: int, act: Act, unsure: bool) -> int:
        """Do it; gives the number of the new message, or 0."""
        try:
            if unsure and "message" not in act and (found := self._find(job, chat, act)):
                return found
            return self._act(chat, act)
        except RetryAfter as error:
            with self._guard:
                self._refused.add(job.id)
            raise RetryLaterError(seconds_of(error), "Telegram asked to wait") from None
        except ChatMigrated as error:
            return self._done(job, error.new_chat_id, act, False)
        except Forbidden:
            raise _GoneError from None  # blocked, or thrown out: they do not want to hear from us
        except BadRequest as error:
            return self._refusal(chat, act, error)
        except TelegramError as error:
            pause = min(_PAUSES[0] * 2 ** min(job.attempts - 1, 20), _PAUSES[1])
            raise RetryLaterError(pause, f"Telegram was not reached: {type(error).__name__}") from None

    def _act(self, chat: int, act: Act) -> int:
        buttons = _keyboard(act.get("buttons"))
        if "message" in act:
            self._change(chat, act, buttons)
            return 0
        to = act.get("reply_to")
        where: dict[str, Any] = {
            "chat_id": chat,
            "message_thread_id": act.get("thread"),
            "reply_parameters": ReplyParameters(to, allow_sending_without_reply=True) if to else None,
            "reply_markup": buttons,
        }
        if "document" in act:
            path = Path(act["document"])
            if path.is_file():
                content = path.read_bytes()
                return int(
                    self._call(self._api.send_document(document=content, filename=path.name, **where)).message_id
                )
            act = {"text": "The file is gone. /memory export makes a new one."}
        sent = self._call(
            self._api.send_message(text=act["text"], parse_mode="HTML", link_preview_options=_NO_PREVIEW, **where)
        )
        return int(sent.message_id)

    def _change(self, chat: int, act: Act, buttons: InlineKeyboardMarkup | None) -> None:
        where: dict[str, Any] = {"chat_id": chat, "message_id": act["message"], "reply_markup": buttons}
        if "text" in act:
            text: dict[str, Any] = {"text": act["text"], "parse_mode": "HTML", "link_preview_options": _NO_PREVIEW}
            self._call(self._api.edit_message_text(**text, **where))
        else:
            self._call(self._api.edit_message_reply_markup(**where))

    def _refusal(self, chat: int, act: Act, error: BadRequest) -> int:
        """What becomes of an act that Telegram does not want."""
        why = error.message.lower()
        if "not modified" in why:
            return 0
        if "chat not found" in why or "not enough rights" in why:
            raise _GoneError
        if "message" in act and "text" in act:  # the message is gone, or too old: say it below
            return self._again(chat, {name: act[name] for name in ("text", "buttons", "thread") if name in act})
        if "thread not found" in why and act.get("thread") is not None:
            return self._again(chat, {**act, "thread": None})
        LOGGER.warning("Telegram refused a message (%s)", "it is too large" if "too" in why else "bad request")
        if "document" in act:
            return self._again(chat, {"text": "The file is too large for Telegram. recollect export makes it, too."})
        return (
            0 if "text" not in act else self._again(chat, {**act, "text": without_tags(act["text"]), "buttons": None})
        )

    def _again(self, chat: int, act: Act) -> int:
        try:
            return self._act(chat, act)
        except BadRequest:
            return 0

    # whether it is there

    def _find(self, job: Job, chat: int, act: Act) -> int | None:
        """The number of the message that an attempt before this one sent, if it did."""
        floor = max(self._sent.last(chat).message, int(act.get("after") or 0))
        number, missing = floor, 0
        while missing < _NEAR and number < floor + _MOST:
            number += 1
            found = self._look(chat, number, act)
            if found:
                return number
            missing = missing + 1 if found is None else 0  # what others said meanwhile stands before it
        if chat > SUPERGROUPS:
            highest = self._tried.get(job.id, self._began_at)
            for far in range(max(number + 1, highest - _BEFORE), highest + _FAR):
                if self._look(chat, far, act):
                    return far
        return None

    def _look(self, chat: int, number: int, act: Act) -> bool | None:
        """Whether this message is ours; None if there is none."""
        try:
            text = act.get("text", "…")
            self._change(chat, {"message": number, "text": text}, _keyboard(act.get("buttons")))
        except BadRequest as error:
            why = error.message.lower()
            if "not modified" not in why and "no text in the message" not in why:
                return None if "not found" in why or "invalid" in why else False
        return True


def remove_documents(acts: Sequence[Act]) -> None:
    """The files that were made to be sent are needed no longer."""
    for act in acts:
        if "document" in act:
            with suppress(OSError):
                Path(act["document"]).unlink()


def seconds_of(error: RetryAfter) -> float:
    """How long Telegram wants us to wait."""
    wait = error._retry_after  # the public one warns that it will be this
    return max(float(wait.total_seconds()), 0.1)


def _keyboard(rows: Any) -> InlineKeyboardMarkup | None:
    if not rows:
        return None
    return InlineKeyboardMarkup([[_button(label, value) for label, value in row] for row in rows])


def _button(label: str, value: str) -> InlineKeyboardButton:
    if value.startswith("https://"):
        return InlineKeyboardButton(label, url=value)
    return InlineKeyboardButton(label, callback_data=value)
