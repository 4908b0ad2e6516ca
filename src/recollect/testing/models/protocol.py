"""What the four protocols share: an answer before it is encoded, a refusal, and the conversation of a request."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from recollect.testing.http_server import HttpRequest
from recollect.testing.models.script import (
    Call,
    ChatMessage,
    DeclaredTool,
    ModelRequest,
    ProtocolName,
    Say,
    ToolResult,
    Usage,
)


class RefusedError(Exception):
    """The service would not accept this request."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


@dataclass(frozen=True)
class ModelAnswer:
    """The answer of the model, with ids and usage filled in."""

    id: str
    parts: tuple[Say | Call, ...]
    usage: Usage

    @property
    def calls(self) -> list[Call]:
        return [part for part in self.parts if isinstance(part, Call)]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Say))


class Protocol(ABC):
    """The wire format of one service."""

    name: ClassVar[ProtocolName]
    missing_key_status: ClassVar[int] = 401

    def key(self, request: HttpRequest) -> str:
        """Return the API key of a request, or an empty text."""
        return request.headers.get("authorization", "").removeprefix("Bearer ").strip()

    def read(self, request: HttpRequest, body: Mapping[str, Any]) -> ModelRequest:
        """Return the request in neutral form; raise RefusedError if the service would."""
        conversation = Conversation()
        self.read_messages(body, conversation)
        conversation.check_all_answered()
        return ModelRequest(
            self.name,
            self.model(request, body),
            "\n".join(conversation.system),
            tuple(conversation.messages),
            tuple(self.read_tools(body)),
            body,
            request.headers,
            self.is_streamed(request, body),
        )

    def model(self, request: HttpRequest, body: Mapping[str, Any]) -> str:
        return str(required(body, "model", str))

    def is_streamed(self, request: HttpRequest, body: Mapping[str, Any]) -> bool:
        return bool(body.get("stream"))

    @abstractmethod
    def read_messages(self, body: Mapping[str, Any], conversation: Conversation) -> None: ...

    @abstractmethod
    def read_tools(self, body: Mapping[str, Any]) -> Iterator[DeclaredTool]: ...

    @abstractmethod
    def write(self, request: ModelRequest, answer: ModelAnswer) -> Any:
        """Return the JSON body of an answer."""

    @abstractmethod
    def stream(self, request: ModelRequest, answer: ModelAnswer) -> Iterator[bytes]:
        """Yield the events of a streamed answer."""

    @abstractmethod
    def error(self, status: int, message: str, retry_after: float | None = None) -> Any:
        """Return the JSON body of an error."""


class Conversation:
    """The messages of a request, while they are read. What belongs to one turn becomes one message."""

    def __init__(self) -> None:
        self.system: list[str] = []
        self.messages: list[ChatMessage] = []
        self.open_calls: dict[str, Call] = {}
        """The calls that have no result yet, by id."""

    def add(self, role: str, text: str, calls: Sequence[Call] = ()) -> None:
        """Add a message; raise RefusedError if it comes between calls and their results."""
        if role in ("system", "developer"):
            self.system.append(text)
            return
        if role == "user":
            self.check_all_answered()
            self.messages.append(ChatMessage("user", text))
            return
        if role != "assistant":
            raise RefusedError(f"Invalid role: {role!r}.")
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == "assistant":
            joined = "\n".join(filter(None, (last.text, text)))
            self.messages[-1] = ChatMessage("assistant", joined, (*last.calls, *calls))
        else:
            self.check_all_answered()
            self.messages.append(ChatMessage("assistant", text, tuple(calls)))
        self.open_calls |= {call.id: call for call in calls}

    def add_result(self, id: Any, text: str, *, is_error: bool = False) -> None:
        """Add the result of an open call; raise RefusedError if there is no such call."""
        call = self.open_calls.pop(id, None) if isinstance(id, str) else None
        if call is None:
            raise RefusedError(f"No tool call was found for the tool result {id!r}.")
        result = ToolResult(call.name, text, is_error, call.id)
        if self.messages[-1].role == "tool":
            self.messages[-1] = ChatMessage("tool", results=(*self.messages[-1].results, result))
        else:
            self.messages.append(ChatMessage("tool", results=(result,)))

    def check_all_answered(self) -> None:
        if self.open_calls:
            raise RefusedError(f"No tool result was found for the tool calls {', '.join(self.open_calls)}.")


def required(body: Any, name: str, *kinds: type) -> Any:
    """Return a field that must be there with one of these types."""
    value = body.get(name) if isinstance(body, Mapping) else None
    if not isinstance(value, kinds) or isinstance(value, bool) or value in ("", []):
        raise RefusedError(f"Missing or invalid field '{name}'.")
    return value


def parse_arguments(arguments: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
    """Return arguments as an object if they are one, otherwise as the text they came in."""
    if isinstance(arguments, Mapping):
        return arguments
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    return value if isinstance(value, dict) else arguments


def dump_arguments(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def text_of(content: Any) -> str:
    """Return the text of a content that is a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, Mapping) and "text" in part)


def pieces(text: str, most: int = 40) -> list[str]:
    """Return a text in at most so many pieces, split between words."""
    words = re.findall(r"\s*\S+|\s+", text)
    step = max(1, -(-len(words) // most))
    return ["".join(words[start : start + step]) for start in range(0, len(words), step)]


def event(data: Any, name: str = "") -> bytes:
    """Return a server-sent event."""
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + encode(data) + b"\n\n"


def encode(data: Any) -> bytes:
    """Return JSON in UTF-8, escaping only what UTF-8 cannot hold."""
    try:
        return json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(data).encode()
