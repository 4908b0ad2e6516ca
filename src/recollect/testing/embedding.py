"""An embedder and an embeddings server for tests: no model, no network beyond this machine.

`HashEmbedder` is deterministic, and texts that share words are near to each other. `EmbeddingServer` speaks the
OpenAI protocol over real HTTP and can be told to fail in the ways servers fail.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socketserver
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recollect.search.embedders.embedder import Embedder, normalised

if TYPE_CHECKING:
    from numpy.typing import NDArray


class HashEmbedder:
    """Adds up one pseudo-random vector for each word of a text."""

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions
        self.name = f"hash:{dimensions}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.casefold()):
                rows[row] += _word_vector(word, self.dimensions)
        return normalised(rows)


@lru_cache(maxsize=10_000)
def _word_vector(word: str, dimensions: int) -> NDArray[np.float32]:
    seed = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)


@dataclass(frozen=True)
class Reply:
    """An answer word for word."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Step = int | float | Reply | Literal["answer", "garbage", "too few", "not finite", "hang", "close", "half"]
"""What the server does with a request: an HTTP status (int), seconds to wait before a good answer (float), or a
failure by name. "hang" never answers, "close" closes the connection, "half" closes it in the middle of an answer."""


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: Any


class EmbeddingServer:
    """An OpenAI-compatible embeddings endpoint on this machine, for the time of a with block.

    ``key`` is required of callers if it is not empty. `script` says what happens to the next requests; after that
    the answers are good. ``requests`` holds what was asked.
    """

    def __init__(
        self,
        embedder: Embedder | None = None,
        *,
        key: str = "",
        encoding: Literal["float", "base64"] = "float",
        shuffled: bool = False,
    ) -> None:
        self.embedder = embedder or HashEmbedder()
        self.key = key
        self.encoding = encoding
        self.shuffled = shuffled
        self.requests: list[Asked] = []
        self._script: deque[Step] = deque()
        self._guard = threading.Lock()
        self._stopping = threading.Event()

    @property
    def url(self) -> str:
        """What to set as the base URL."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def script(self, *steps: Step) -> None:
        """What to do with the next requests, one step each."""
        with self._guard:
            self._script.extend(steps)

    def __enter__(self) -> EmbeddingServer:
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reply(self, asked: Asked) -> Reply | Literal["hang", "close", "half"]:
        """What to answer to a request."""
        with self._guard:
            self.requests.append(asked)
            step: Step = self._script.popleft() if self._script else "answer"
        if isinstance(step, float):
            self._stopping.wait(step)
        elif isinstance(step, int):
            return _problem(step, f"scripted failure {step}")
        elif isinstance(step, Reply):
            return step
        elif step == "garbage":
            return Reply(200, b"<html>It works!</html>")
        elif step in ("hang", "close"):
            if step == "hang":
                self._stopping.wait()
            return step
        if self.key and asked.headers.get("Authorization") != f"Bearer {self.key}":
            return _problem(401, "Incorrect API key provided")
        if not asked.path.endswith("/embeddings"):
            return _problem(404, "no such path")
        texts = asked.body.get("input") if isinstance(asked.body, dict) else None
        if isinstance(texts, str):
            texts = [texts]
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
            return _problem(400, "input must be a text or several, none of them empty")
        return self._good(texts, step)

    def _good(self, texts: list[str], step: Step) -> Reply | Literal["half"]:
        if step == "half":
            return "half"
        rows = self.embedder.embed(texts)
        if step == "not finite":
            rows = rows * np.float32("nan")
        data = [
            {"object": "embedding", "index": number, "embedding": self._encoded(row)} for number, row in enumerate(rows)
        ]
        if step == "too few":
            data.pop()
        if self.shuffled:
            data.reverse()
        answer = {"object": "list", "data": data, "model": "test", "usage": {"prompt_tokens": 0, "total_tokens": 0}}
        return Reply(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _encoded(self, row: NDArray[np.float32]) -> list[float] | str:
        if self.encoding == "base64":
            return base64.b64encode(row.astype("<f4").tobytes()).decode()
        return [float(value) for value in row]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                try:
                    body = json.loads(content)
                except ValueError:
                    body = None
                reply = server.reply(Asked(self.path, dict(self.headers), body))
                if isinstance(reply, Reply):
                    self.send_response(reply.status)
                    for name, value in reply.headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(reply.body)))
                    self.end_headers()
                    self.wfile.write(reply.body)
                elif reply == "half":
                    self.send_response(200)
                    self.send_header("Content-Length", "1000")
                    self.end_headers()
                    self.wfile.write(b'{"data": [')

            def log_message(self, format: str, *args: Any) -> None:
                """Tests read ``requests``."""

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        # a client that gave up is what some tests are about
        if not isinstance(sys.exception(), ConnectionError):
            socketserver.BaseServer.handle_error(self, request, client_address)


def _problem(status: int, message: str) -> Reply:
    body = json.dumps({"error": {"message": message, "type": "test"}}).encode()
    return Reply(status, body, {"Content-Type": "application/json"})
