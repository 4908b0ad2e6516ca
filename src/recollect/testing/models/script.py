"""The words of a script and of what was asked: the same for every protocol. Knows no wire format."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

ProtocolName = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]


@dataclass(frozen=True)
class Usage:
    """Tokens, as the service would bill them."""

    input: int
    output: int


@dataclass(frozen=True)
class Say:
    """The model says something."""

    text: str
    usage: Usage | None = field(default=None, compare=False, kw_only=True)


@dataclass(frozen=True)
class Call:
    """The model calls a tool. ``arguments`` as text is sent as it stands, so that it may be malformed on purpose.

    Where a protocol has no place for malformed JSON, the model's mistake appears as it does there: Gemini answers with
    the finish reason MALFORMED_FUNCTION_CALL, Anthropic, if not streamed, with the input ``{"INVALID_JSON": "..."}``.
    Two calls are equal if name and arguments are; ``id`` is made up if it is empty.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = field(default="", compare=False, kw_only=True)
    usage: Usage | None = field(default=None, compare=False, kw_only=True)


@dataclass(frozen=True)
class Fail:
    """The service answers with an error, in the format of the protocol."""

    status: int = 500
    message: str = "The server had an error while processing your request."
    retry_after: float | None = None


@dataclass(frozen=True)
class Stall:
    """Nothing comes: for some seconds, until an event is set, or until the client hangs up, whichever is first.

    Afterwards ``then`` is answered; without it the connection is closed.
    """

    seconds: float | None = None
    until: threading.Event | None = None
    then: Turn | None = None


@dataclass(frozen=True)
class Cut:
    """The connection drops when the given part of the body is out; with ``at=0`` before anything is."""

    turn: Say | Call | Sequence[Say | Call] = Say("This sentence will never be")
    at: float = 0.5


@dataclass(frozen=True)
class Garbage:
    """Status 200 and a body that is not the protocol, as from a proxy in the way."""

    body: bytes = b"<html>It works!</html>"
    content_type: str = "text/html"


Turn = Say | Call | Fail | Stall | Cut | Garbage | Sequence[Say | Call]
"""What the model or the service does with one request. Several calls and texts in a list are one answer."""


@dataclass(frozen=True)
class Result:
    """What a tool returned, as the agent sent it back. Two are equal if name, text and failure are."""

    name: str
    text: str
    is_error: bool = False
    id: str = field(default="", compare=False)


@dataclass(frozen=True)
class Message:
    """One message of the conversation. All results that follow a message of the assistant are one of role tool."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()


@dataclass(frozen=True)
class Tool:
    """A tool as it was declared. One that is built into the service has a ``kind`` and no schema."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""
    strict: bool = False


@dataclass(frozen=True)
class Asked:
    """A request that was accepted. ``tool_results`` are the new ones, which answer the last message of the assistant.

    ``raw`` is the body as it came, ``headers`` have lower-case names.
    """

    protocol: ProtocolName
    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    raw: Mapping[str, Any]
    headers: Mapping[str, str]
    stream: bool = False
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def tool_results(self) -> tuple[Result, ...]:
        found: list[Result] = []
        for message in reversed(self.messages):
            if message.role == "assistant":
                break
            found[:0] = message.results
        return tuple(found)

    @property
    def text(self) -> str:
        """What the user said last."""
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")


Step = Turn | Callable[[Asked], Turn]
Script = Sequence[Step] | Callable[[Asked], Turn]
"""Turns in order, each of which may be a function of what was asked; or one function for all requests."""


def parts_of(turn: Say | Call | Sequence[Say | Call]) -> list[Say | Call]:
    return [turn] if isinstance(turn, Say | Call) else list(turn)
