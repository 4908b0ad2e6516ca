"""Answers updates: passes them to the person's `Conversation` and returns what to send where.

Groups are public: what a person says to the bot there is stored for them, but their memory is shown only in private.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from recollect.agents.conclude import IDLE
from recollect.agents.discuss import RECALLED
from recollect.agents.extract import Extractor
from recollect.agents.models import Model
from recollect.app import Recollect
from recollect.memory.memory import Memory
from recollect.records import Reported
from recollect.surfaces.chat.commands import Commands
from recollect.surfaces.chat.conversation import Conversation
from recollect.surfaces.chat.page import ChatLine, ChatPage, chat_page
from recollect.surfaces.telegram.posts import BUTTONS, DISCUSS, SAVE, PostTopic, delivered_post, message_topic
from recollect.surfaces.telegram.rendering import MessagePart, parse_button, render_messages
from recollect.surfaces.telegram.updates import (
    BotIdentity,
    ButtonUpdate,
    ChatPlace,
    Event,
    MessageUpdate,
    ReactionUpdate,
)
from recollect.times import Clock, utc_now

CHANNEL = "telegram"
_MOST_TALKS = 2000
_MOST_LOOKED_AT = 100
_NOT_YOURS = "This button is for the person I answered. Send me your own message."
_ELSEWHERE = "Let's do that in our private chat."
WENT_WRONG = chat_page(ChatLine("Something went wrong on my side. Please send it again.", "bad"))


@dataclass(frozen=True, slots=True)
class BotReply:
    """What to send to a chat, and what to show for the button that was pressed."""

    chat: int
    acts: list[dict[str, Any]] = field(default_factory=list)
    toast: str = ""


class Replier:
    """Answers events. Thread-safe; the events of one person arrive one after the other."""

    def __init__(
        self,
        app: Recollect,
        me: BotIdentity,
        *,
        model: Model | None = None,
        extractor: Extractor | None = None,
        conversation: Callable[..., Conversation] = Conversation,
        clock: Clock = utc_now,
    ) -> None:
        self._app = app
        self._me = me
        self._model = model
        self._extractor = extractor or app.extractor(required=False)
        self._conversation = conversation
        self._clock = clock
        self._guard = threading.Lock()
        self._talks: OrderedDict[tuple[int, str], Conversation] = OrderedDict()
        self._names: OrderedDict[tuple[int, str], str] = OrderedDict()

    def answer(self, event: Event, update: int) -> BotReply:
        """Return the answer to an event."""
        match event:
            case MessageUpdate():
                return self._said(event)
            case ButtonUpdate():
                return self._pressed(event)
            case ReactionUpdate():
                self._reacted(event, update)
                return BotReply(event.spot.chat)

    def sorry(self, event: Event) -> BotReply:
        """Return the answer after a failure."""
        if isinstance(event, ReactionUpdate):
            return BotReply(event.spot.chat)
        return self._told(event.spot, [WENT_WRONG], event.message)

    def memory(self, person: int) -> Memory:
        """Return the memory of a person."""
        return self._app.identities.memory((CHANNEL, str(person)))

    def talk(self, person: int, spot: ChatPlace, name: str) -> Conversation:
        """Return the person's `Conversation` in this place. It is kept, because some state lives only in it."""
        key = (person, spot.place)
        with self._guard:
            if not spot.private:
                self._names[key] = name
                self._names.move_to_end(key)
                while len(self._names) > _MOST_TALKS:
                    self._names.popitem(last=False)
            talk = self._talks.get(key)
            if talk is None:
                talk = self._talks[key] = self._conversation(
                    self._app,
                    (CHANNEL, str(person)),
                    place=spot.place,
                    model=self._model,
                    extractor=self._extractor,
                    speaker=None if spot.private else name,
                    company=partial(self._company, key),
                    clock=self._clock,
                )
            self._talks.move_to_end(key)
            while len(self._talks) > _MOST_TALKS:
                self._talks.popitem(last=False)
            return talk

    def _company(self, key: tuple[int, str]) -> list[str]:
        """Return who else has recently talked to the bot in this place."""
        with self._guard:
            return [name for (person, place), name in self._names.items() if place == key[1] and person != key[0]]

    # messages

    def _said(self, said: MessageUpdate) -> BotReply:
        spot, verb = said.spot, _command_of(said.text)
        if said.nobody:
            told = "You are writing as a group or a channel, so I can't tell whose memory this is."
            return self._told(spot, [chat_page(told, ChatLine("Write as yourself.", "aside"))], said.message)
        if said.edited is not None and (verb or said.forwarded):
            return BotReply(spot.chat)  # commands run when they are sent, not when they are edited
        if said.edited is not None and _is_known_message(self.memory(said.person), said):
            return BotReply(spot.chat)
        if not said.text.strip():
            return self._told(spot, [_no_text_page()], said.message)
        if verb == "start" and not said.forwarded:
            return self._started(said)
        if verb == "memory" and not spot.private and not said.forwarded:
            return self._in_private(said)
        pages, keep = self._heard(said, verb)
        answer = self._told(spot, pages, said.message, keep=keep)
        if said.forwarded and spot.private and answer.acts:
            answer.acts[-1] |= {"reply_to": said.message, "buttons": [[*BUTTONS], *answer.acts[-1].get("buttons", [])]}
        return answer

    def _heard(self, said: MessageUpdate, verb: str) -> tuple[list[ChatPage], bool]:
        """Return the pages, and True if they are conversation rather than the answer to a command."""
        talk = self.talk(said.person, said.spot, said.name)
        name = str(said.message) if said.edited is None else f"{said.message}.{said.edited}"
        if said.forwarded:
            return talk.say(said.text, message=name, forwarded=True), True
        by_me = (said.reply.get("from") or {}).get("id") == self._me.id
        if verb == "discuss" and said.reply and len(said.text.split()) == 1:
            topic = self._topic(said.person, said.spot, said.reply)
            return talk.say(said.text if topic is None else topic.command, message=name), False
        if verb:
            return talk.say(said.text, message=name), False
        pages: list[ChatPage] = []
        if by_me and (post := delivered_post(self.memory(said.person), said.spot.chat, int(said.reply["message_id"]))):
            if not _is_about(talk.memory, said.spot, post, self._clock()):
                pages = talk.say(post.command, message=f"{name}.post")
            return [*pages, *talk.say(said.text, message=name)], True
        return talk.say(said.text, message=name, quoted=_quoted_text(said, by_me)), True

    def _started(self, said: MessageUpdate) -> BotReply:
        talk = self.talk(said.person, said.spot, said.name)
        if not said.spot.private:
            return self._told(said.spot, talk.say("/help"), said.message)
        if said.text.split()[1:] == ["memory"]:  # from a button in a group; other link parameters are ignored
            return self._told(said.spot, talk.say("/memory"), said.message)
        hello = chat_page(
            ChatLine("Hello!", "title"),
            "I remember what you tell me, and only you can see it.",
            "Say “remember that I like tea”, or just talk to me. Forward me something to discuss it.",
            ChatLine("/memory shows what I know; /memory help lists the commands.", "aside"),
        )
        return self._told(said.spot, [hello, *talk.greeting()], said.message)

    def _in_private(self, said: MessageUpdate) -> BotReply:
        link = f"https://t.me/{self._me.username}?start=memory"
        told = MessagePart("Your memory is private, so I show it only to you.", ((("Open our chat", link),),))
        return BotReply(said.spot.chat, _acts(said.spot, [told], said.message))

    # buttons and reactions

    def toast(self, event: ButtonUpdate) -> str | None:
        """Return the immediate response to a press; None if it must wait for the result."""
        if event.data in (DISCUSS, SAVE):
            return None
        command, _ = parse_button(event.data)
        if not event.spot.private:
            if event.owner != event.person:
                return _NOT_YOURS
            if not command.startswith(("undo", "/end", "/discuss")):
                return _ELSEWHERE
        return ""

    def _pressed(self, press: ButtonUpdate) -> BotReply:
        spot = press.spot
        talk = self.talk(press.person, spot, press.name)
        if press.data in (DISCUSS, SAVE):
            topic = self._topic(press.person, spot, press.under)
            if topic is None:
                return BotReply(spot.chat, toast="I no longer have that post. Forward it to me.")
            if press.data == SAVE:
                return BotReply(spot.chat, toast=_save_post(talk.memory, press, topic))
            pages = talk.say(topic.command, message=f"press{press.query}")
            return self._told(spot, pages, press.message, reply_to=press.message)
        toast = self.toast(press) or ""
        if toast:
            return BotReply(spot.chat, toast=toast)
        command, keep = parse_button(press.data)
        asked = (press.under.get("reply_to_message") or {}).get("message_id")
        answer = self._told(spot, talk.choose(command), press.message, reply_to=None if spot.private else asked)
        if press.lost or not answer.acts:
            return answer
        if keep:
            answer.acts.append({"message": press.message})
        elif "text" in answer.acts[0]:
            first = answer.acts[0]
            answer.acts[0] = {"message": press.message, "thread": first.get("thread")} | {
                name: first[name] for name in ("text", "buttons") if name in first
            }
        return answer

    def _reacted(self, reaction: ReactionUpdate, update: int) -> None:
        memory = self.memory(reaction.person)
        post = delivered_post(memory, reaction.spot.chat, reaction.message)
        for emoji in reaction.emoji if post is not None else ():
            assert post is not None
            if emoji == "⭐":
                memory.report("save", id=f"telegram:{update}", **post.about)
            elif emoji:
                memory.report("reaction", id=f"telegram:{update}", value=emoji, **post.about)

    # helpers

    def _topic(self, person: int, spot: ChatPlace, message: Mapping[str, Any]) -> PostTopic | None:
        """Return the topic of a message: the post delivered as it, the message it replies to, or its own text."""
        number = int(message["message_id"])
        known = delivered_post(self.memory(person), spot.chat, number)
        return known or message_topic(message.get("reply_to_message") or {}) or message_topic(message)

    def _told(
        self, spot: ChatPlace, pages: Sequence[ChatPage], after: int, *, keep: bool = False, reply_to: int | None = None
    ) -> BotReply:
        shown = pages if spot.private else self._public(pages)
        to = reply_to or (None if spot.private else after)
        acts: list[dict[str, Any]] = []
        for one in _merge_pages(shown):
            acts += _acts(spot, render_messages(one, keep=keep) if isinstance(one, ChatPage) else [one], after, to)
            if isinstance(one, ChatPage) and one.document is not None and spot.private:
                acts.append({"document": str(one.document), "after": after})
        return BotReply(spot.chat, acts)

    def _public(self, pages: Sequence[ChatPage]) -> list[ChatPage | MessagePart]:
        """Return the part of an answer that may be shown in a group: only what the person just said there."""
        told: list[ChatPage | MessagePart] = []
        for one in pages:
            if any(choice.command.startswith("link") for row in one.choices for choice in row):
                continue  # the private chat asks too
            said = tuple(line for line in one.lines if line.style != "aside")
            if not said:
                continue
            if any(line.text == RECALLED for line in said):
                link = f"https://t.me/{self._me.username}?start=memory"
                told.append(
                    MessagePart(
                        "I know something about that, but I tell it only to you.", ((("Open our chat", link),),)
                    )
                )
                continue
            told.append(replace(one, lines=said))
        return told


def _merge_pages(pages: Sequence[ChatPage | MessagePart]) -> list[ChatPage | MessagePart]:
    """Join pages without choices with the next one, so that each answer causes few notifications."""
    told: list[ChatPage | MessagePart] = []
    for one in pages:
        before = told[-1] if told else None
        if (
            isinstance(one, ChatPage)
            and isinstance(before, ChatPage)
            and not before.choices
            and before.document is None
        ):
            told[-1] = replace(one, lines=(*before.lines, ChatLine(""), *one.lines))
        else:
            told.append(one)
    return told


def _acts(
    spot: ChatPlace, drawn: Sequence[MessagePart], after: int, reply_to: int | None = None
) -> list[dict[str, Any]]:
    """Return parts as requests. The first is a reply to ``reply_to``, if given."""
    acts = []
    for part in drawn:
        act: dict[str, Any] = {"text": part.text, "after": after}
        if part.buttons:
            act["buttons"] = [[list(button) for button in row] for row in part.buttons]
        if spot.thread is not None:
            act["thread"] = spot.thread
        if reply_to is not None or not spot.private:
            act["reply_to"] = reply_to or after
        acts.append(act)
    return acts


def _command_of(text: str) -> str:
    if Commands.owns(text):
        return "memory"
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return first[1:].partition("@")[0].lower() if first.startswith("/") else ""


def _quoted_text(said: MessageUpdate, by_me: bool) -> str | None:
    """Return the text that is replied to, unless it is ours or the person's own."""
    author = (said.reply.get("from") or {}).get("id")
    if not said.reply or by_me or (author == said.person and "forward_origin" not in said.reply):
        return None
    return said.quote or said.reply.get("text") or said.reply.get("caption")


def _is_known_message(memory: Memory, said: MessageUpdate) -> bool:
    """Return True if this text is already stored: Telegram also reports edits that do not change the text."""
    name = f"{said.spot.place}/{said.message}"
    for one in memory.read(kind="message", newest_first=True, limit=_MOST_LOOKED_AT) if memory.exists else []:
        if str(one.metadata.get("message", "")).partition(".")[0] == name:
            return one.content.strip() == said.text.strip()
    return False


def _is_about(memory: Memory, spot: ChatPlace, post: PostTopic, now: datetime) -> bool:
    for one in memory.interactions(kinds=("discussion",), newest_first=True, limit=20):
        if (one.session or "").rpartition("@")[0] == spot.place:
            said = memory.read(kind="message", session=one.session, newest_first=True, limit=1)
            lately = max([one.at, *(message.created_at for message in said)]) > now - IDLE
            begun = (one.title or "\n").removesuffix("…")  # a long title was cut
            return lately and one.value is None and " ".join(post.title.split()).startswith(begun)
    return False


def _save_post(memory: Memory, press: ButtonUpdate, topic: PostTopic) -> str:
    outcome = memory.report("save", id=f"telegram:save:{press.spot.chat}:{press.message}:{press.person}", **topic.about)
    if not isinstance(outcome, Reported):
        return "Memory is off, so nothing was saved."
    return "Saved." if outcome.fresh else "You already saved this."


def _no_text_page() -> ChatPage:
    return chat_page("I can only read text so far, including captions.")
