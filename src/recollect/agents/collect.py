"""What a person did and said in a stretch of time: what the host reported, and the conversations, put together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.agents.rules import Event
from recollect.core.memory import Memory
from recollect.records import Interaction, Message

_NEGATIVE = frozenset("👎 👎🏻 👎🏽 👎🏿 😡 💩 dislike downvote -1 thumbs_down".split())
_SAVED = frozenset("⭐ 🔖 ❤️".split())
_MOST_TITLES, _LONGEST_TITLE = 20, 150
_TITLE = re.compile(r"[>\s#*_]*(?:the |your )?user memory[*_:\s]*", re.IGNORECASE)
_PART = re.compile(
    r"[>\s]*#{1,6}\s*(?:Core Profile|Relevant Past Context|Recent Activity|User Preferences|Work Context"
    r"|Personal Context|Key Facts|Reading History)[*_:\s]*",
    re.IGNORECASE,
)
_INSIDE = re.compile(r"[>\s]*(?:#{1,6}\s.*|[-*+•]\s.*|</?[\w -]+>)?\s*")
_TAG = re.compile(r"\s*</?[\w -]+>\s*")


@dataclass(frozen=True, slots=True)
class Talk:
    """The part of a conversation that belongs to a stretch of time."""

    session: str
    title: str | None
    messages: tuple[Message, ...]

    @property
    def minutes(self) -> int:
        """How long it took."""
        return round((self.messages[-1].valid_from - self.messages[0].valid_from) / timedelta(minutes=1))


@dataclass(frozen=True, slots=True)
class Collected:
    """Everything of a stretch of time, oldest first."""

    since: datetime
    until: datetime
    interactions: tuple[Interaction, ...]
    talks: tuple[Talk, ...]

    @property
    def count(self) -> int:
        """How many interactions and messages that is."""
        return len(self.interactions) + sum(len(talk.messages) for talk in self.talks)


def collect(
    memory: Memory,
    since: datetime,
    until: datetime,
    *,
    session: str | None = None,
    after: tuple[datetime, str] | None = None,
) -> Collected:
    """What happened from one moment to another; with ``after``, the messages that were stored after that one.

    It is told by when it was stored and its id, which an export and a rebuild keep, and sequence numbers do not.
    """
    events = memory.interactions(since=since, until=until, session=session)
    titles = {event.session: event.title for event in events if event.session and event.title}
    said: dict[str, list[Message]] = {}
    for record in memory.read(kind="message", session=session):
        if not isinstance(record, Message) or not record.session:
            continue
        stored = record.created_at, record.id
        if stored > after if after is not None else since <= record.valid_from < until:
            said.setdefault(record.session, []).append(record)
    talks = [
        Talk(name, titles.get(name), tuple(sorted(messages, key=lambda one: (one.valid_from, one.seq))))
        for name, messages in said.items()
    ]
    talks.sort(key=lambda talk: talk.messages[0].valid_from)
    return Collected(since, until, tuple(events), tuple(talks))


def own_words(message: Message) -> str:
    """What the person said in a message, without the memory that a host put in front of it."""
    return without_memory(message.content)


def without_memory(text: str) -> str:
    """A text without the blocks that `Memory.context` and MEMORY.md look like. What was recalled is not learned again.

    A block begins with its title or one of its headings and goes on while there are headings, lists and empty lines.
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


def events_of(interactions: tuple[Interaction, ...] | list[Interaction]) -> list[Event]:
    """Reactions, saves, discussions and reads, as the rules count them into interests."""
    found = []
    for one in interactions:
        if one.kind in ("reaction", "save", "discussion", "read") and one.title:
            positive = (one.value or "").strip() not in _NEGATIVE
            kind = "save" if one.kind == "reaction" and (one.value or "").strip() in _SAVED else one.kind
            found.append(Event(kind=kind, title=one.title, topics=one.topics, positive=positive))  # type: ignore[arg-type]
    return found


def notes_of(collected: Collected) -> list[tuple[str, str]]:
    """The lines of the daily note, each with its section: what was read, and what was talked about."""
    lines: list[tuple[str, str]] = []
    kinds: dict[str, list[Interaction]] = {}
    for one in collected.interactions:
        kinds.setdefault(one.kind, []).append(one)
    if delivered := kinds.get("delivery"):
        read = {one.item or one.title for one in kinds.get("read", [])}
        lines.append(("Reading Activity", f"Read {len(read)}/{len(delivered)} digest posts"))
    reactions: dict[str, list[str]] = {}
    for one in kinds.get("reaction", []):
        reactions.setdefault((one.value or "👍").strip(), []).append(_quoted(one))
    lines += [("Reading Activity", f"{value} {_listed(titles)}") for value, titles in reactions.items()]
    if saved := kinds.get("save"):
        lines.append(("Reading Activity", f"⭐ Saved {_listed([_quoted(one) for one in saved])}"))
    for talk in collected.talks:
        if talk.title:
            count = f"{len(talk.messages)} message{'s' * (len(talk.messages) != 1)}, {talk.minutes} min"
            lines.append(("Discussions", f'Discussed "{talk.title}" ({count})'))
    return lines


def _quoted(one: Interaction) -> str:
    return f'"{(one.title or one.item or "something")[:_LONGEST_TITLE]}"'


def _listed(titles: list[str]) -> str:
    """Each once, and no more than fit on a line."""
    each = list(dict.fromkeys(titles))
    more = len(each) - _MOST_TITLES
    return ", ".join(each[:_MOST_TITLES]) + (f" and {more} more" if more > 0 else "")


def described(collected: Collected) -> str:
    """The same for a model: everything that happened, in plain words, each message with its number."""
    told = [f"- {_told(one)}" for one in collected.interactions]
    number = 0
    for talk in collected.talks:
        about = f' about "{talk.title}"' if talk.title else ""
        told.append(f"\nConversation {talk.session}{about}:")
        for message in talk.messages:
            number += 1
            who = "person" if message.role == "user" else message.role
            lines = own_words(message).splitlines() or [""]
            told.append(f"[{number}] {who}: " + "\n    ".join(lines))  # indented: nobody speaks within another's turn
    return "\n".join(told)


def _told(one: Interaction) -> str:
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
