"""The script of a model, and the requests it answers, in the same form for every protocol."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

ProtocolName = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]


@dataclass(frozen=True)
class Usage:
    """The number of tokens, as the service would bill them."""

    input: int
    output: int


@dataclass(frozen=True)
class Say:
    """A text of the model."""

    text: str
    usage: Usage | None = field(default=None, compare=False, kw_only=True)


@dataclass(frozen=True)
class Call:
    """A tool call of the model. ``arguments`` given as text are sent unchanged, so they may be malformed on purpose.

    Gemini answers malformed JSON with the finish reason MALFORMED_FUNCTION_CALL; Anthropic, if not streamed, with the
    input ``{"INVALID_JSON": "..."}``. Calls are equal if name and arguments are. An empty ``id`` is made up.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = field(default="", compare=False, kw_only=True)
    usage: Usage | None = field(default=None, compare=False, kw_only=True)


@dataclass(frozen=True)
class Fail:
    """An error of the service, in the format of the protocol."""

    status: int = 500
    message: str = "The server had an error while processing your request."
    retry_after: float | None = None


@dataclass(frozen=True)
class Stall:
    """Silence for some seconds, until an event is set, or until the client hangs up, whichever is first.

    Afterwards ``then`` is answered; without it the connection is closed.
    """

    seconds: float | None = None
    until: threading.Event | None = None
    then: Turn | None = None


@dataclass(frozen=True)
class Cut:
    """A connection that drops after this part of the answer's body; with ``at=0`` before anything is sent."""

    turn: Say | Call | Sequence[Say | Call] = Say("This sentence will never be")
    at: float = 0.5


@dataclass(frozen=True)
class Garbage:
    """Status 200 and a body of your choice, as from a proxy in the way."""

    body: bytes = b"<html>It works!</html>"
    content_type: str = "text/html"


Turn = Say | Call | Fail | Stall | Cut | Garbage | Sequence[Say | Call]
"""The reaction to one request. Several texts and calls in a list are one answer."""


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool, as the agent sent it back. Two are equal if name, text and failure are."""

    name: str
    text: str
    is_error: bool = False
    id: str = field(default="", compare=False)


@dataclass(frozen=True)
class ChatMessage:
    """One message of the conversation. Results that follow a message of the assistant are one message of role tool."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True)
class DeclaredTool:
    """A tool as it was declared. One that is built into the service has a ``kind`` and no schema."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""
    strict: bool = False


@dataclass(frozen=True)
class ModelRequest:
    """An accepted request. ``raw`` is its body, ``headers`` have lower-case names."""

    protocol: ProtocolName
    model: str
    system: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[DeclaredTool, ...]
    raw: Mapping[str, Any]
    headers: Mapping[str, str]
    stream: bool = False

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results that answer the last message of the assistant."""
        results: list[ToolResult] = []
        for message in reversed(self.messages):
            if message.role == "assistant":
                break
            results[:0] = message.results
        return tuple(results)

    @property
    def text(self) -> str:
        """The last message of the user."""
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")


Step = Turn | Callable[[ModelRequest], Turn]
Script = Sequence[Step] | Callable[[ModelRequest], Turn]
"""Turns in order, each of which may be a function of the request; or one function for all requests."""
