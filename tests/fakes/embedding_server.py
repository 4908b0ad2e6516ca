"""An embeddings service that speaks the OpenAI protocol over real HTTP, and fails on demand."""

from __future__ import annotations

import base64
import json
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recollect.testing.embedding import HashEmbedder
from recollect.testing.http_server import HttpRequest, HttpResponse, HttpServer

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Reply:
    """An answer word for word."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Step = int | float | Reply | Literal["answer", "garbage", "too few", "not finite", "hang", "close", "half"]
"""The reaction to a request: an HTTP status (int), seconds to wait before a good answer (float), or a failure by name.
"hang" never answers, "close" closes the connection, "half" closes it in the middle of an answer."""


@dataclass(frozen=True)
class EmbeddingRequest:
    """A request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: Any


class EmbeddingServer:
    """An OpenAI-compatible embeddings endpoint on this machine, for the time of a with block.

    Callers need the ``key`` if it is not empty. `script` sets the reactions to the next requests; after that the
    answers are good. ``requests`` holds the requests.
    """

    def __init__(
        self, *, key: str = "", encoding: Literal["float", "base64"] = "float", shuffled: bool = False
    ) -> None:
        self.requests: list[EmbeddingRequest] = []
        self._key = key
        self._encoding = encoding
        self._shuffled = shuffled
        self.embedder = HashEmbedder()
        self._script: deque[Step] = deque()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"{self._server.url}/v1"

    def script(self, *steps: Step) -> None:
        """Set the reactions to the next requests, one step each."""
        with self._lock:
            self._script.extend(steps)

    def __enter__(self) -> EmbeddingServer:
        self._server = HttpServer(self._answer, [])
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def _answer(self, request: HttpRequest) -> HttpResponse:
        try:
            body = json.loads(request.body)
        except ValueError:
            body = None
        with self._lock:
            self.requests.append(EmbeddingRequest(request.path, request.headers, body))
            step: Step = self._script.popleft() if self._script else "answer"
        if isinstance(step, float):
            self._server.stopping.wait(step)
        elif isinstance(step, int):
            return _problem(step, f"scripted failure {step}")
        elif isinstance(step, Reply):
            return HttpResponse(step.status, step.body, headers=step.headers)
        elif step == "garbage":
            return HttpResponse(200, b"<html>It works!</html>")
        elif step in ("hang", "close"):
            if step == "hang":
                self._server.stopping.wait()
            raise ConnectionAbortedError("closed by the script")
        if self._key and request.headers.get("authorization") != f"Bearer {self._key}":
            return _problem(401, "Incorrect API key provided")
        if not request.path.endswith("/embeddings"):
            return _problem(404, "no such path")
        texts = body.get("input") if isinstance(body, dict) else None
        texts = [texts] if isinstance(texts, str) else texts
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
            return _problem(400, "input must be a text or several, none of them empty")
        return self._embedded(texts, step)

    def _embedded(self, texts: list[str], step: Step) -> HttpResponse:
        rows = self.embedder.embed(texts)
        if step == "not finite":
            rows = rows * np.float32("nan")
        data = [
            {"object": "embedding", "index": number, "embedding": self._encoded(row)} for number, row in enumerate(rows)
        ]
        if step == "too few":
            data.pop()
        if self._shuffled:
            data.reverse()
        answer = {"object": "list", "data": data, "model": "test", "usage": {"prompt_tokens": 0, "total_tokens": 0}}
        body = json.dumps(answer).encode()
        return HttpResponse(200, body, sent=len(body) // 2 if step == "half" else None)

    def _encoded(self, row: NDArray[np.float32]) -> list[float] | str:
        if self._encoding == "base64":
            return base64.b64encode(row.astype("<f4").tobytes()).decode()
        return [float(value) for value in row]


def _problem(status: int, message: str) -> HttpResponse:
    return HttpResponse(status, json.dumps({"error": {"message": message, "type": "test"}}).encode())
