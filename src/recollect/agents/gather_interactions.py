"""Interactions and conversations that were not learned from yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import groupby

from recollect.agents.apply import source_of
from recollect.agents.rules import ReadingEvent
from recollect.memory.memory import Memory
from recollect.memory.unprocessed import Mark
from recollect.policy.preferences import speaks_against
from recollect.records import DailyEntry, Interaction, Message, Record
from recollect.text import folded_words
from recollect.times import parse_moment

OWN = ("command", "reaction", "save")
"""Kinds whose text the person wrote. Elsewhere it is what they were given, and so unverified."""
_TOUCHED = ("delivery", "read", "reaction", "save", "discussion")
"""Kinds that show that something was delivered or opened: nobody likes, saves or discusses what they have not read.
"""
_SAVED = frozenset("⭐ 🔖 ❤️".split())
_MOST_TITLES, _LONGEST_TITLE = 20, 150
DISCUSSED = "discussed"
"""The metadata of a line in a daily note that reports a discussion: its title."""
_TITLE = re.compile(r"[>\s#*_]*(?:the |your )?user memory[*_:\s]*", re.IGNORECASE)
_PART = re.compile(
    r"[>\s]*#{1,6}\s*(?:Core Profile|Relevant Past Context|Recent Activity|Further Facts|User Preferences|Work Context"
    r"|Personal Context|Key Facts|Reading History)[*_:\s]*",
    re.IGNORECASE,
)
_INSIDE = re.compile(r"[>\s]*(?:#{1,6}\s.*|[-*+•]\s.*|</?[\w -]+>)?\s*")
_TAG = re.compile(r"\s*</?[\w -]+>\s*")


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message, or a text that came with an interaction."""

    text: str
    """Without the memory block that a host application put in front of it."""
    at: datetime
    source: str
    message: str | None = None
    role: str = "user"
    speaker: str | None = None
    trusted: bool = True

    @property
    def own(self) -> bool:
        """True for the person's own words."""
        return self.role == "user" and self.trusted

    @property
    def origin(self) -> str:
        """An identifier, like `Finding.origin`."""
        return self.message or self.source


@dataclass(frozen=True, slots=True)
class ConversationPart:
    """A part of a conversation."""

    session: str
    title: str | None
    messages: tuple[Message, ...]
    chat: str | None = None
    """The chat it belongs to, if any."""

    @property
    def minutes(self) -> int:
        """Its duration."""
        return round((self.messages[-1].valid_from - self.messages[0].valid_from) / timedelta(minutes=1))

    def by_day(self) -> list[tuple[date, ConversationPart]]:
        """Split it by day."""
        days = groupby(self.messages, key=lambda message: message.valid_from.date())
        return [(day, replace(self, messages=tuple(messages))) for day, messages in days]


@dataclass(frozen=True, slots=True)
class Gathered:
    """The material to learn from, oldest first, and the mark after it."""

    mark: Mark
    interactions: tuple[Interaction, ...] = ()
    talks: tuple[ConversationPart, ...] = ()

    @property
    def until(self) -> datetime:
        """The time before which all of it happened."""
        return self.mark.until

    @property
    def times(self) -> list[datetime]:
        return [one.at for one in self.interactions] + [m.valid_from for talk in self.talks for m in talk.messages]

    @property
    def last(self) -> datetime:
        """The time of the last interaction or message."""
        return max(self.times, default=self.until)

    @property
    def count(self) -> int:
        """The number of interactions and messages."""
        return len(self.interactions) + sum(len(talk.messages) for talk in self.talks)

    @property
    def sayings(self) -> list[Utterance]:
        """All messages and texts, in the order in which `describe_for_model` numbers them."""
        said = [utterance_with(one) for one in self.interactions if has_words(one)]
        return said + [utterance_of(message) for talk in self.talks for message in talk.messages]

    def by_chat(self) -> dict[str | None, Gathered]:
        """Split it by chat; what belongs to none comes first."""
        chats = dict.fromkeys([None, *(talk.chat for talk in self.talks), *map(_chat_of, self.interactions)])
        parts = {
            chat: replace(
                self,
                interactions=tuple(one for one in self.interactions if _chat_of(one) == chat),
                talks=tuple(talk for talk in self.talks if talk.chat == chat),
            )
            for chat in chats
        }
        return {chat: part for chat, part in parts.items() if part.count}

    def only(self, wanted: Callable[[Utterance], bool]) -> Gathered:
        """Return a copy with only some texts, without conversations in which the person then says nothing."""
        interactions = [
            replace(one, text=None) if has_words(one) and not wanted(utterance_with(one)) else one
            for one in self.interactions
        ]
        talks = []
        for talk in self.talks:
            kept = tuple(message for message in talk.messages if wanted(utterance_of(message)))
            if any(message.role == "user" for message in kept):
                talks.append(replace(talk, messages=kept))
        return replace(self, interactions=tuple(interactions), talks=tuple(talks))


def gather(memory: Memory, marks: Iterable[Mark], until: datetime, *, session: str | None = None) -> Gathered:
    """Return what happened before a moment, in one session or all, and lies after these marks."""
    found = memory.unread(marks, until=until, session=session)
    events = sorted(found.interactions, key=lambda one: (one.at, one.id))
    titles = {event.session: event.title for event in events if event.session and event.title}
    said: dict[tuple[str, str | None], list[Message]] = {}
    for message in sorted(found.messages, key=lambda one: (one.valid_from, one.seq)):
        if message.session:
            said.setdefault((message.session, message.chat), []).append(message)
    talks = [ConversationPart(name, titles.get(name), tuple(messages), chat) for (name, chat), messages in said.items()]
    return Gathered(found.mark, tuple(events), tuple(talks))


def in_chat_of(memory: Memory, session: str) -> Memory:
    """Return the memory acting in the chat that a session belongs to, if any."""
    first = memory.read(kind="message", session=session, limit=1)
    return memory.acting(chat=first[0].chat) if first else memory


def _chat_of(one: Interaction) -> str | None:
    chat = one.metadata.get("chat")
    return None if chat is None else str(chat)


def end_of(day: date) -> datetime:
    """Return the first moment after a day."""
    return parse_moment("day", day + timedelta(days=1))


def has_words(one: Interaction) -> bool:
    """Return True if the person wrote something with it."""
    return one.kind in OWN and bool(one.text)


def utterance_with(one: Interaction) -> Utterance:
    return Utterance(without_memory(one.text or ""), one.at, source_of(one.kind, one.id))


def utterance_of(message: Message) -> Utterance:
    return Utterance(
        without_memory(message.content),
        message.valid_from,
        source_of("discussion", message.session or ""),
        message.id,
        message.role,
        message.speaker,
        message.trusted,
    )


def without_memory(text: str) -> str:
    """Return a text without blocks that look like `Memory.context` or MEMORY.md, so that they are not learned again.

    A block begins with its title or one of its headings and continues through headings, lists and empty lines.
    """
    lines, kept, inside = text.splitlines(), list[str](), False
    for line in lines:
        starts = _TITLE.fullmatch(line) or _PART.fullmatch(line)
        if starts and not inside:
            while kept and (not kept[-1].strip() or _TAG.fullmatch(kept[-1])):
                kept.pop()  # the tag that a host put around it
        inside = bool(starts) or (inside and _INSIDE.fullmatch(line) is not None)
        if not inside:
            kept.append(line)
    return text if len(kept) == len(lines) else "\n".join(kept).strip()


def events_of(interactions: Iterable[Interaction]) -> list[ReadingEvent]:
    """Return reactions, saves, discussions and reads, as the rules count them towards interests."""
    found = []
    for one in interactions:
        if one.kind in ("reaction", "save", "discussion", "read") and one.title:
            positive = not speaks_against(one.value)
            kind = "save" if one.kind == "reaction" and (one.value or "").strip() in _SAVED else one.kind
            found.append(ReadingEvent(kind=kind, title=one.title, topics=one.topics, positive=positive))  # type: ignore[arg-type]
    return found


@dataclass(frozen=True, slots=True)
class DailyLine:
    """A line for the daily note; for the day of the run if it has none."""

    section: str
    text: str
    day: date | None = None
    chat: str | None = None
    discussed: str | None = None
    """The title of the discussion that the line reports. It is stored with the line, so that it need not be parsed out
    of the sentence.
    """
    below: tuple[str, ...] = ()
    """Lines that stand indented below it, such as the opinions of a discussion."""
    about: str | None = None
    """The id of the record whose change the line reports."""
    source: str = "batch_extraction"
    """The discussion, or the one reaction or save, that the line reports."""


def daily_lines(memory: Memory, collected: Gathered) -> list[DailyLine]:
    """Return the lines of the daily notes: what was read and discussed, each on the day it happened."""
    lines: list[DailyLine] = []
    for day, some in groupby(collected.interactions, key=lambda one: one.at.date()):
        lines += [
            DailyLine("Reading Activity", text, day, source=source)
            for text, source in _reading_lines(memory, day, list(some), collected.until)
        ]
    for talk in collected.talks:
        for day, part in talk.by_day() if talk.title else ():
            count = f"{len(part.messages)} message{'s' * (len(part.messages) != 1)}, {part.minutes} min"
            text, source = f'Discussed "{talk.title}" ({count})', source_of("discussion", talk.session)
            lines.append(DailyLine("Discussions", text, day, discussed=talk.title, source=source))
    return lines


def discussed_title(record: Record) -> str | None:
    """Return the title of the discussion that a line of a daily note reports, if it does."""
    title = record.metadata.get(DISCUSSED) if isinstance(record, DailyEntry) else None
    return title if isinstance(title, str) else None


def same_words(text: str) -> str:
    """Return the form in which lines below a discussion are compared: without quotes, punctuation and case."""
    return " ".join(folded_words(text))


def add_below(line: DailyLine, more: Iterable[str]) -> DailyLine:
    """Return a line with more lines below it, each once."""
    below: dict[str, str] = {}
    for text in (*line.below, *more):
        below.setdefault(same_words(text), text)
    return replace(line, below=tuple(below.values()))


def _reading_lines(
    memory: Memory, day: date, interactions: Sequence[Interaction], until: datetime
) -> list[tuple[str, str]]:
    """Return lines on what was read, liked and saved on a day, with the source of each."""
    lines = []
    if any(one.kind in _TOUCHED for one in interactions):
        # of the whole day: an earlier run may have read a part of it
        whole = memory.interactions(since=day, until=min(end_of(day), until), kinds=_TOUCHED)
        delivered = [one.item or one.title for one in whole if one.kind == "delivery"]
        read = {one.item or one.title for one in whole if one.kind == "read"}
        read |= {one.item or one.title for one in whole if one.kind != "delivery"} & set(delivered)
        if delivered:
            lines.append((f"Read {len(read)}/{len(delivered)} digest posts", "batch_extraction"))
    reactions: dict[str, list[Interaction]] = {}
    for one in interactions:
        if one.kind == "reaction":
            reactions.setdefault((one.value or "👍").strip(), []).append(one)
    lines += [(f"{value} {_list_titles(some)}", _source_of_line(some)) for value, some in reactions.items()]
    if saved := [one for one in interactions if one.kind == "save"]:
        lines.append((f"⭐ Saved {_list_titles(saved)}", _source_of_line(saved)))
    return lines


def _source_of_line(reported: Sequence[Interaction]) -> str:
    return source_of(reported[0].kind, reported[0].id) if len(reported) == 1 else "batch_extraction"


def _quote_title(one: Interaction) -> str:
    return f'"{(one.title or one.item or "something")[:_LONGEST_TITLE]}"'


def _list_titles(reported: Sequence[Interaction]) -> str:
    each = list(dict.fromkeys(map(_quote_title, reported)))
    more = len(each) - _MOST_TITLES
    return ", ".join(each[:_MOST_TITLES]) + (f" and {more} more" if more > 0 else "")


def describe_for_model(collected: Gathered) -> str:
    """Describe everything that happened for a model, in plain words, with all texts numbered."""
    told = []
    number = 0
    for one in collected.interactions:
        told.append(f"- {_describe_event(one)}")
        if has_words(one):
            number += 1
            told.append(_number_utterance(number, "person", utterance_with(one)))
    for talk in collected.talks:
        about = f' about "{talk.title}"' if talk.title else ""
        told.append(f"\nConversation {talk.session}{about}:")
        for message in talk.messages:
            number += 1
            who = "person" if message.role == "user" else message.role
            told.append(_number_utterance(number, who, utterance_of(message)))
    return "\n".join(told)


def _number_utterance(number: int, who: str, said: Utterance) -> str:
    lines = said.text.splitlines() or [""]
    return f"[{number}] {who}: " + "\n    ".join(lines)  # indented: nobody speaks within another's turn


def _describe_event(one: Interaction) -> str:
    what = f'"{one.title or one.item or ""}"'
    match one.kind:
        case "reaction":
            return f"reacted {one.value or ''} to {what}"
        case "save":
            return f"saved {what}"
        case "read":
            return f"read {what}"
        case "delivery":
            return f"was given {what}"
        case "command":
            return f"used the command {one.value or ''}"
    return f"discussed {what}"
