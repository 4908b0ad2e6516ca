"""A discussion with a person who is remembered: their memory in the prompt, the tools at hand, every message stored.

What was said long ago stands in the prompt as a summary that rolls along with the conversation. Without a model, or
if it fails, the answer comes from memory alone, and says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from recollect.agents.capture import Captured, capture
from recollect.agents.models import Account, Limits, Model, Reply, Turn
from recollect.agents.prompts import prompt
from recollect.agents.tiers import model_keeps_memory
from recollect.core.memory import Memory
from recollect.errors import ModelError
from recollect.policy.injection import neutral
from recollect.records import Message, Refused
from recollect.search.tokens import count
from recollect.tools.suite import Suite

_RECENT_TOKENS = 2_000
"""How much of the conversation stands in the prompt as it was said."""
_MOST_MESSAGES = 400
_SUMMARY_WORDS = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered. ``degraded`` says why no model did, if one should have; ``captured`` what was kept at once."""

    text: str
    captured: Captured | None = None
    degraded: str | None = None
    reply: Reply | None = None


class Discussion:
    """One conversation, known by the session of its tools. It can be taken up again in another process."""

    def __init__(
        self,
        tools: Suite,
        model: Model | None = None,
        *,
        title: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.tools = tools
        self.memory: Memory = tools.memory
        self.session = tools.session or "chat"
        self.title = title
        self._model = model
        self._limits = limits or Limits(turns=6, seconds=90)

    def begin(self) -> None:
        """Tell the memory that a discussion of something has begun, so that it can be concluded by its title."""
        self.memory.report("discussion", title=self.title, session=self.session)

    def answer(self, text: str, *, speaker: str | None = None, on_text: Callable[[str], None] | None = None) -> Answer:
        """Answer the person. What they say is stored first, and kept at once if they ask for that."""
        before = self._last_said()
        stored = self.memory.say(text, session=self.session, role="user", speaker=speaker)
        message = None if isinstance(stored, Refused) else getattr(stored, "record", None)
        captured = capture(
            self.memory,
            text,
            before=before,
            session=self.session,
            message=None if message is None else message.id,
            source="explicit",
        )
        degraded, reply = None, None
        if self._model is None:
            said = captured.reply if captured is not None else self._from_memory(text)
        else:
            try:
                reply = self._asked(text, captured, on_text)
                said = reply.text
            except ModelError as error:
                degraded = f"{error.kind}: answered from memory"
                said = captured.reply if captured is not None else self._from_memory(text)
        if said.strip():
            self.memory.say(said, session=self.session, role="assistant")
        return Answer(said, captured, degraded, reply)

    def prompt(self, text: str) -> str:
        """What the model is told: how to behave, and what is known. The stable part comes first."""
        about = f"\n\nThe topic: {neutral(self.title)}" if self.title else ""
        context = self.memory.context(f"{self.title or ''} {text}".strip())
        return f"{prompt('discuss')}{about}\n\n{context}".strip()

    def _asked(self, text: str, captured: Captured | None, on_text: Callable[[str], None] | None) -> Reply:
        assert self._model is not None
        turns = self._turns()
        if not turns or turns[-1].role != "user":  # nothing is stored while memory is paused
            turns.append(Turn("user", text))
        system = self.prompt(text)
        if captured is not None and captured.kept.changed:
            system += f'\n\nWhat the person just asked to remember is stored. Begin with: "{captured.reply}"'
        account = Account(self.memory, "discuss", self.memory.config)
        suite = self.tools if model_keeps_memory(self.tools.chat or self.session, self.memory.config) else None
        return self._model.converse(system, turns, suite=suite, limits=self._limits, on_text=on_text, account=account)

    # the conversation so far

    def _turns(self) -> list[Turn]:
        """The latest messages as they were said, after a summary of those before."""
        recent: list[Message] = []
        room = _RECENT_TOKENS
        messages = self._messages()
        for message in reversed(messages):
            room -= count(message.content)
            if room < 0 and recent:
                break
            recent.insert(0, message)
        turns = [Turn("assistant" if one.role == "assistant" else "user", one.content) for one in recent]
        older = messages[: len(messages) - len(recent)]
        if older:
            turns.insert(0, Turn("user", f"(What was said before, in short: {self._summary(older)})"))
        return _alternating(turns)

    def _summary(self, older: list[Message]) -> str:
        """A summary that grows with the conversation: only what is new is summed up again."""
        key = f"summary:{self.session}"[:200]
        kept = json.loads(self.memory.scratch(key) or "{}")
        fresh = [message for message in older if message.id > kept.get("until", "")]
        if not fresh:
            return str(kept.get("text", ""))
        said = "\n".join(f"{message.role}: {message.content}" for message in fresh)
        assert self._model is not None
        asked = f"So far:\n{kept.get('text', '(nothing)')}\n\nThen:\n{said}"
        system = f"Sum up this conversation for someone who has to go on with it, in at most {_SUMMARY_WORDS} words."
        account = Account(self.memory, "summary", self.memory.config)
        limits = Limits(turns=1, seconds=30)
        text = self._model.converse(system, [Turn("user", asked)], limits=limits, account=account).text.strip()
        if text:
            self.memory.set_scratch(key, json.dumps({"until": older[-1].id, "text": text}, ensure_ascii=False))
        return text or str(kept.get("text", ""))

    def _messages(self) -> list[Message]:
        found = self.memory.read(kind="message", session=self.session, newest_first=True, limit=_MOST_MESSAGES)
        return [one for one in reversed(found) if isinstance(one, Message)]

    def _last_said(self) -> str | None:
        """What the person said last: "remember this" is about their words, not about the answer to them."""
        found = self.memory.read(kind="message", session=self.session, newest_first=True, limit=10)
        return next((one.content for one in found if isinstance(one, Message) and one.role == "user"), None)

    # without a model

    def _from_memory(self, text: str) -> str:
        """What memory has to say to it."""
        hits = self.memory.search(text, limit=3, min_score=0.15)
        if not hits:
            return "I have nothing about that in memory."
        return "What I remember about that:\n" + "\n".join(f"- {neutral(hit.record.text)}" for hit in hits)


def _alternating(turns: list[Turn]) -> list[Turn]:
    """Neighbours of one role joined: providers want the roles to take turns."""
    joined: list[Turn] = []
    for turn in turns:
        if joined and joined[-1].role == turn.role:
            joined[-1] = Turn(turn.role, f"{joined[-1].text}\n\n{turn.text}")
        else:
            joined.append(turn)
    return joined
