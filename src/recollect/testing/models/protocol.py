"""What the four protocols share: an answer before it is written, a refusal, and the order of calls and results."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from recollect.testing.models.script import Asked, Call, Fail, Message, ProtocolName, Result, Say, Usage


class RefusalError(Exception):
    """The request is not one the service would take."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.param = param
        self.code = code


@dataclass(frozen=True)
class Answer:
    """What the model says, with everything decided that the script left open."""

    id: str
    parts: tuple[Say | Call, ...]
    usage: Usage

    @property
    def calls(self) -> list[Call]:
        return [part for part in self.parts if isinstance(part, Call)]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Say))


@dataclass(frozen=True)
class Request:
    """A POST with a JSON object as its body."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class Protocol:
    """How one service reads requests and writes answers."""

    name: ClassVar[ProtocolName]
    stream_type: ClassVar[str] = "text/event-stream; charset=utf-8"

    def key_of(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str:
        """The API key that was sent, or nothing."""
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return key.strip() if scheme.lower() == "bearer" else ""

    def no_key(self, wrong: bool) -> RefusalError:
        raise NotImplementedError

    def read(self, request: Request) -> Asked:
        """What is asked; raises RefusalError."""
        raise NotImplementedError

    def write(self, asked: Asked, answer: Answer) -> Any:
        """The body of an answer."""
        raise NotImplementedError

    def stream(self, asked: Asked, answer: Answer) -> Iterator[bytes]:
        """The pieces of a streamed answer."""
        raise NotImplementedError

    def answered(self, asked: Asked, answer: Answer) -> None:
        """Called when the answer is out."""

    def error(self, refusal: RefusalError, request_id: str) -> Any:
        """The body of an error."""
        raise NotImplementedError

    def failure(self, fail: Fail, request_id: str) -> Any:
        return self.error(RefusalError(fail.message, status=fail.status), request_id)

    def headers(self, request_id: str) -> dict[str, str]:
        """What the service adds to every answer."""
        return {"x-request-id": request_id}

    def models(self, names: Sequence[str]) -> Any:
        """The list of models."""
        raise NotImplementedError

    def model(self, name: str) -> Any:
        raise NotImplementedError


class Conversation:
    """Collects neutral messages: what belongs to one turn becomes one message."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.system: list[str] = []
        self.names: dict[str, str] = {}

    def say(self, role: str, text: str, calls: Sequence[Call] = ()) -> None:
        if role in ("system", "developer"):
            self.system.append(text)
            return
        self.names.update({call.id: call.name for call in calls})
        last = self.messages[-1] if self.messages else None
        if role == "assistant" and last is not None and last.role == "assistant":
            joined = "\n".join(filter(None, (last.text, text)))
            self.messages[-1] = Message("assistant", joined, (*last.calls, *calls))
        elif role == "assistant":
            self.messages.append(Message("assistant", text, tuple(calls)))
        else:
            self.messages.append(Message("user", text))

    def result(self, id: str, text: str, *, name: str = "", is_error: bool = False) -> None:
        result = Result(name or self.names.get(id, ""), text, is_error, id)
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == "tool":
            self.messages[-1] = Message("tool", results=(*last.results, result))
        else:
            self.messages.append(Message("tool", results=(result,)))


def required(body: Mapping[str, Any], name: str, kind: type | tuple[type, ...], wanted: str) -> Any:
    """A field that must be there."""
    if name not in body:
        raise RefusalError(f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter")
    value = body[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise RefusalError(f"Invalid type for '{name}': expected {wanted}.", param=name, code="invalid_type")
    return value


def parsed(arguments: Any) -> Mapping[str, Any] | str:
    """Arguments as an object if they are one, otherwise as they came."""
    if isinstance(arguments, Mapping):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, TypeError):
        return str(arguments)
    return value if isinstance(value, dict) else str(arguments)


def written(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def text_of(content: Any, kinds: Sequence[str] = ("text",)) -> str:
    """The text of a message whose content is a text or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        str(part.get("text", "")) for part in content if isinstance(part, dict) and part.get("type") in kinds
    )


def pieces(text: str, most: int = 40) -> list[str]:
    """A text in the pieces in which a model would produce it; together they are the text."""
    words = re.findall(r"\s*\S+|\s+", text)
    step = max(1, -(-len(words) // most))
    return ["".join(words[start : start + step]) for start in range(0, len(words), step)]


def json_pieces(text: str, most: int = 20) -> list[str]:
    step = max(12, -(-len(text) // most))
    return [text[start : start + step] for start in range(0, len(text), step)]


def event(data: Any, name: str = "", end: str = "\n\n") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return b"".join((head.encode(), b"data: ", encoded(data), end.encode()))


def encoded(data: Any) -> bytes:
    """JSON in UTF-8, as the services send it; only what UTF-8 cannot hold is escaped."""
    try:
        return json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(data).encode()


def now() -> int:
    return int(time.time())
