"""Episodes that are made without being asked for: a discussion of some weight, or a long conversation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from recollect.agents.apply import source_of
from recollect.agents.tiers import had_tools
from recollect.memory.memory import Memory
from recollect.records import Message

_LONG_TALK = 10
_LONG_TIME = timedelta(minutes=5)
_FEWEST_REMARKS = 3
"""What a person says at least in a discussion that is remembered as an episode."""
_MOST_MESSAGES = 50
_LONGEST_TOPIC = 100
_LONGEST_QUOTE = 240
_IMPORTANCE = 0.5


def note_episode(memory: Memory, session: str, *, title: str | None = None, company: Sequence[str] = ()) -> None:
    """Store a concluded conversation as an episode if it had some weight and is not one yet.

    It has if it had a title and the person took part in earnest, or others did (``company``, their names); or if it
    was long: ten messages in five minutes or more. Where a model manages memory alone, that is its task.
    """
    said = [one for one in memory.read(kind="message", session=session) if isinstance(one, Message)]
    own = [one for one in said if one.role == "user" and one.trusted]
    if not own or not _has_weight(said, own, title, company):
        return
    if not memory.config.automated_fallback and had_tools(said):
        return
    ids = {one.id for one in said}
    if any(ids.intersection(one.messages) for one in memory.read(kind="episode")):
        return
    speaker = next((one.speaker for one in own if one.speaker), None) or memory.user_id
    memory.episode(
        title or _cut(own[0].content, _LONGEST_TOPIC),
        _summary(said, own, company, speaker),
        importance=_IMPORTANCE,
        participants=list(dict.fromkeys([speaker, *company])),
        messages=[one.id for one in said][-_MOST_MESSAGES:],
        source=source_of("discussion", session),
    )


def _has_weight(said: Sequence[Message], own: Sequence[Message], title: str | None, company: Sequence[str]) -> bool:
    if title and (company or len(own) >= _FEWEST_REMARKS):
        return True
    return len(said) >= _LONG_TALK and said[-1].valid_from - said[0].valid_from >= _LONG_TIME


def _summary(said: Sequence[Message], own: Sequence[Message], company: Sequence[str], speaker: str) -> str:
    minutes = round((said[-1].valid_from - said[0].valid_from) / timedelta(minutes=1))
    lead = (
        f"Discussed with {', '.join(company)}." if company else f"Talked for {minutes} minutes, {len(said)} messages."
    )
    name = f"{speaker}: " if company else ""
    # how it began, how it ended, and what took the most words in between
    chosen = [own[0], *sorted(own[1:-1], key=lambda one: -len(one.content))[:1], *own[1:][-1:]]
    quotes = dict.fromkeys(_cut(one.content, _LONGEST_QUOTE) for one in chosen)
    return " ".join([lead, *(f"{name}“{quote}”" for quote in quotes)])


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rsplit(maxsplit=1)[0]}…"
