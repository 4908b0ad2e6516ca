"""Parses Telegram updates: who did what, where, and if it is meant for the bot.

Updates are parsed from their JSON, so that they can be queued unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recollect.surfaces.chat.conversation import COMMANDS

KINDS = ("message", "edited_message", "callback_query", "message_reaction")
"""The kinds of updates that the bot requests."""
_LONGEST_NAME = 60
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_]*)(?:@(\w+))?(?=\s|$)")
_OURS = frozenset({"start", *(name.removeprefix("/") for name in COMMANDS)})
"""The commands that need no bot name in a group; others may be for another bot."""
_UNREADABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_ANONYMOUS = frozenset({1087968824, 136817688})
"""Telegram's own accounts, which stand for anonymous administrators and channels in groups."""


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The bot's Telegram account."""

    id: int
    username: str


@dataclass(frozen=True, slots=True)
class ChatPlace:
    """A place to write to: a chat, and a topic in it if it is a forum."""

    chat: int
    thread: int | None = None
    private: bool = True

    @property
    def place(self) -> str:
        """The name of the place for a `Conversation`."""
        return f"telegram/{self.chat}" if self.thread is None else f"telegram/{self.chat}/{self.thread}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageUpdate:
    """A message. ``reply`` is the message it replies to; ``nobody`` is True if it was sent as a group or channel."""

    person: int
    name: str
    spot: ChatPlace
    message: int
    text: str
    forwarded: bool = False
    edited: int | None = None
    reply: Mapping[str, Any] = field(default_factory=dict)
    quote: str | None = None
    nobody: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonUpdate:
    """A pressed button. ``owner`` is the person whom the message with the button answered, if Telegram still knows."""

    person: int
    name: str
    spot: ChatPlace
    query: str
    data: str
    message: int
    owner: int | None = None
    under: Mapping[str, Any] = field(default_factory=dict)
    """The message with the button."""
    lost: bool = False
    """True if that message can no longer be edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionUpdate:
    """A reaction to a message, or its removal."""

    person: int
    spot: ChatPlace
    message: int
    emoji: tuple[str, ...]


Event = MessageUpdate | ButtonUpdate | ReactionUpdate


def read_update(update: Mapping[str, Any], me: BotIdentity) -> Event | None:
    """Parse an update; return None if it is not for the bot."""
    try:
        if "callback_query" in update:
            return _read_button(update["callback_query"])
        if "message_reaction" in update:
            return _read_reaction(update["message_reaction"])
        kind = next((one for one in ("message", "edited_message") if one in update), None)
        return None if kind is None else _read_message(update[kind], me, edited=kind == "edited_message")
    except (KeyError, TypeError, ValueError):  # a kind of update that is newer than this code
        return None


def lane(update: Mapping[str, Any]) -> str:
    """Return the lane of an update: the person, whose updates are answered in order."""
    for kind in KINDS:
        body = update.get(kind)
        if isinstance(body, Mapping):
            who = body.get("from") or body.get("user") or body.get("chat") or {}
            return str(who.get("id", "nobody")) if isinstance(who, Mapping) else "nobody"
    return "nobody"


def _read_message(message: Mapping[str, Any], me: BotIdentity, *, edited: bool) -> MessageUpdate | None:
    sender, chat = message.get("from") or {}, message["chat"]
    nobody = "sender_chat" in message or sender.get("id") in _ANONYMOUS
    if not sender or (sender.get("is_bot") and not nobody) or message.get("is_automatic_forward"):
        return None
    if chat["type"] not in ("private", "group", "supergroup") or "via_bot" in message:
        return None
    text = str(message.get("text") or message.get("caption") or "")
    spot = _place_of(message)
    reply = message.get("reply_to_message") or {}
    if "forum_topic_created" in reply:  # every message in a topic replies to the topic's first message
        reply = {}
    forwarded = "forward_origin" in message
    readable = _UNREADABLE.sub(" ", text).replace("\u2028", "\n").replace("\u2029", "\n")
    command = _COMMAND.match(readable.lstrip())
    if command and command[2] and command[2].casefold() != me.username.casefold():
        return None  # for another bot
    obeyed = command is not None and not forwarded and bool(command[2] or command[1].lower() in _OURS)
    if not spot.private and not obeyed and not _is_meant(message, text, reply, me):
        return None
    if not text and not (spot.private and _is_content(message)):
        return None
    own_name = re.compile(rf"@{re.escape(me.username)}\b", re.IGNORECASE)
    return MessageUpdate(
        person=int(sender["id"]),
        name=_sender_name(sender),
        spot=spot,
        message=int(message["message_id"]),
        text=readable if spot.private or command else own_name.sub(" ", readable).strip(),
        forwarded=forwarded,
        edited=int(message["edit_date"]) if edited else None,
        reply=reply,
        quote=(message.get("quote") or {}).get("text"),
        nobody=nobody,
    )


def _is_meant(message: Mapping[str, Any], text: str, reply: Mapping[str, Any], me: BotIdentity) -> bool:
    """Return True if a group message mentions the bot or replies to it."""
    if (reply.get("from") or {}).get("id") == me.id:
        return True
    encoded = text.encode("utf-16-le", "surrogatepass")
    for entity in [*message.get("entities", ()), *message.get("caption_entities", ())]:
        start, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
        words = encoded[start:end].decode("utf-16-le", "replace")
        if entity["type"] == "mention" and words.casefold() == f"@{me.username}".casefold():
            return True
        if entity["type"] == "text_mention" and (entity.get("user") or {}).get("id") == me.id:
            return True
    return False


def _is_content(message: Mapping[str, Any]) -> bool:
    """Return True if a person sent something without text, rather than a service message of Telegram."""
    return any(kind in message for kind in ("photo", "document", "voice", "video", "audio", "sticker", "animation"))


def _read_button(query: Mapping[str, Any]) -> ButtonUpdate | None:
    message, sender = query.get("message"), query["from"]
    if message is None or "data" not in query or sender.get("is_bot"):
        return None
    lost = not message.get("date")
    answered = (message.get("reply_to_message") or {}).get("from") or {}
    return ButtonUpdate(
        person=int(sender["id"]),
        name=_sender_name(sender),
        spot=_place_of(message),
        query=str(query["id"]),
        data=str(query["data"]),
        message=int(message["message_id"]),
        owner=answered.get("id"),
        under=message,
        lost=lost,
    )


def _read_reaction(reaction: Mapping[str, Any]) -> ReactionUpdate | None:
    sender = reaction.get("user")
    if sender is None or sender.get("is_bot"):
        return None
    emoji = tuple("⭐" if one["type"] == "paid" else str(one.get("emoji", "")) for one in reaction["new_reaction"])
    spot = _place_of(reaction)
    return ReactionUpdate(person=int(sender["id"]), spot=spot, message=int(reaction["message_id"]), emoji=emoji)


def _place_of(message: Mapping[str, Any]) -> ChatPlace:
    chat = message["chat"]
    thread = message.get("message_thread_id") if message.get("is_topic_message") else None
    return ChatPlace(int(chat["id"]), thread, chat["type"] == "private")


def _sender_name(sender: Mapping[str, Any]) -> str:
    """Return a sender's name, made safe to show, because it can contain anything."""
    shown = "".join(
        one if unicodedata.category(one)[0] not in "CZ" else " " for one in str(sender.get("first_name", ""))
    )
    return " ".join(shown.split())[:_LONGEST_NAME] or "Somebody"
