"""Sends queued messages: in order within each chat, and exactly once despite retries.

Telegram has no idempotency keys. If an attempt was interrupted by a kill or a broken connection, we check if its
message arrived: we edit the messages right after the last one that was certainly sent, with the same content, and
Telegram answers "not modified" if it is there. No other message of ours can be there, so the edit changes nothing else.
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
"""The message numbers to check: after the chat's last message, until so many in a row are free or a maximum is reached;
and before and after the highest number of all private chats."""
_PAUSES = (0.25, 30.0)
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)

Act = Mapping[str, Any]
"""One request, as JSON: ``text`` or ``document`` to send, with ``thread``, ``reply_to`` and ``buttons``. With
``message``, that message is edited instead; without ``text``, only its buttons are removed."""
Call = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a request of the library and waits for it."""


class _ChatGoneError(Exception):
    """The bot cannot send to this chat."""


class Sender:
    """Runs the jobs of the outbox. ``arrived`` is called for each sent message that is to be reported."""

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
        """The highest message number before the first attempt, per job that this process has tried."""
        self._refused: set[str] = set()
        """The jobs whose last attempt certainly sent nothing."""

    def send(self, job: Job) -> None:
        """Run all requests of a job that are not done yet."""
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
        except _ChatGoneError:
            pass
        with self._guard:
            self._tried.pop(job.id, None)
        remove_documents(job.payload["acts"])

    def _done(self, job: Job, chat: int, act: Act, unsure: bool) -> int:
        """Run a request and return the number of the new message, or 0."""
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
            raise _ChatGoneError from None  # the bot was blocked or removed
        except BadRequest as error:
            return self._refusal(chat, act, error)
        except TelegramError as error:
            pause = min(_PAUSES[0] * 2 ** min(job.attempts - 1, 20), _PAUSES[1])
            raise RetryLaterError(pause, f"Telegram could not be reached: {type(error).__name__}") from None

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
            act = {"text": "The file no longer exists. /memory export makes a new one."}
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
        why = error.message.lower()
        if "not modified" in why:
            return 0
        if "chat not found" in why or "not enough rights" in why:
            raise _ChatGoneError
        if "message" in act and "text" in act:  # the message was deleted or is too old: send a new one
            return self._again(chat, {name: act[name] for name in ("text", "buttons", "thread") if name in act})
        if "thread not found" in why and act.get("thread") is not None:
            return self._again(chat, {**act, "thread": None})
        LOGGER.warning("Telegram rejected a message (%s)", "it is too large" if "too" in why else "bad request")
        if "document" in act:
            return self._again(chat, {"text": "The file is too large for Telegram. Use `recollect export` instead."})
        return (
            0 if "text" not in act else self._again(chat, {**act, "text": without_tags(act["text"]), "buttons": None})
        )

    def _again(self, chat: int, act: Act) -> int:
        try:
            return self._act(chat, act)
        except BadRequest:
            return 0

    # finding the message of an interrupted attempt

    def _find(self, job: Job, chat: int, act: Act) -> int | None:
        """Return the number of the message that an earlier attempt sent, if it did."""
        floor = max(self._sent.last(chat).message, int(act.get("after") or 0))
        number, missing = floor, 0
        while missing < _NEAR and number < floor + _MOST:
            number += 1
            found = self._look(chat, number, act)
            if found:
                return number
            missing = missing + 1 if found is None else 0  # messages of others may come before it
        if chat > SUPERGROUPS:
            highest = self._tried.get(job.id, self._began_at)
            for far in range(max(number + 1, highest - _BEFORE), highest + _FAR):
                if self._look(chat, far, act):
                    return far
        return None

    def _look(self, chat: int, number: int, act: Act) -> bool | None:
        """Return True if this message is ours, None if there is none."""
        try:
            text = act.get("text", "…")
            self._change(chat, {"message": number, "text": text}, _keyboard(act.get("buttons")))
        except BadRequest as error:
            why = error.message.lower()
            if "not modified" not in why and "no text in the message" not in why:
                return None if "not found" in why or "invalid" in why else False
        return True


def remove_documents(acts: Sequence[Act]) -> None:
    """Delete the files that were created to be sent."""
    for act in acts:
        if "document" in act:
            with suppress(OSError):
                Path(act["document"]).unlink()


def seconds_of(error: RetryAfter) -> float:
    """Return how long Telegram wants us to wait."""
    wait = error._retry_after  # the public attribute emits a deprecation warning
    return max(float(wait.total_seconds()), 0.1)


def _keyboard(rows: Any) -> InlineKeyboardMarkup | None:
    if not rows:
        return None
    return InlineKeyboardMarkup([[_button(label, value) for label, value in row] for row in rows])


def _button(label: str, value: str) -> InlineKeyboardButton:
    if value.startswith("https://"):
        return InlineKeyboardButton(label, url=value)
    return InlineKeyboardButton(label, callback_data=value)
