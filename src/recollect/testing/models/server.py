"""The server: which protocol a request is in, what the script says to it, and how that goes over the wire."""

from __future__ import annotations

import itertools
import json
import select
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from recollect.testing.models.chat import Chat
from recollect.testing.models.gemini import PATH as GEMINI_PATH
from recollect.testing.models.gemini import Gemini
from recollect.testing.models.messages import Messages
from recollect.testing.models.protocol import Answer, Protocol, RefusalError, Request, encoded
from recollect.testing.models.responses import Responses
from recollect.testing.models.script import (
    Asked,
    Call,
    Cut,
    Fail,
    Garbage,
    Say,
    Script,
    Stall,
    Turn,
    Usage,
    parts_of,
)

LARGEST = 32 * 1024 * 1024
PATIENCE = 0.02
"""Seconds between two looks at whether a stalled client is still there."""


class ModelServer:
    """A model on this machine that says what the script says, for the time of a with block.

    ``requests`` holds what was asked and accepted, ``problems`` what went wrong: requests that were refused, and a
    script that was too short or failed. A test that expects none says ``assert server.problems == []``.

    ``script`` is a list of turns, one for each request whatever its protocol, or a function, which may be called from
    several threads at once. ``key`` is the only API key that is accepted; any will do if it is empty. ``models`` are
    the only models there are; any will do if there are none. A body larger than ``largest`` bytes is refused.
    """

    def __init__(
        self,
        script: Script,
        *,
        key: str = "",
        models: Sequence[str] = (),
        largest: int = LARGEST,
    ) -> None:
        self.requests: list[Asked] = []
        self.problems: list[str] = []
        self.key = key
        self.models = tuple(models)
        self.largest = largest
        self.stopping = threading.Event()
        self._script = script
        self._turns = 0
        self._numbers = itertools.count(1)
        self._guard = threading.Lock()
        self._chat, self._responses, self._messages, self._gemini = Chat(), Responses(), Messages(), Gemini()

    @property
    def url(self) -> str:
        """Where the server is; what Anthropic's and Google's libraries take as base URL."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.url

    @property
    def gemini_url(self) -> str:
        return self.url

    @property
    def remaining(self) -> int | None:
        """How many turns are left; None if the script is a function."""
        return None if callable(self._script) else max(0, len(self._script) - self._turns)

    def __enter__(self) -> ModelServer:
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(PATIENCE,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._server.hang_up()

    def protocol_of(self, path: str, headers: Mapping[str, str]) -> Protocol:
        """Whose request this is; where several have the same path, the headers tell."""
        if path == "/v1/chat/completions":
            return self._chat
        if path == "/v1/responses":
            return self._responses
        if "anthropic-version" in headers or path.startswith("/v1/messages"):
            return self._messages
        if path.startswith(("/v1beta", "/v1alpha")) or "x-goog-api-key" in headers or GEMINI_PATH.fullmatch(path):
            return self._gemini
        return self._chat

    def number(self) -> int:
        with self._guard:
            return next(self._numbers)

    def problem(self, text: str) -> None:
        with self._guard:
            self.problems.append(text)

    def admit(self, protocol: Protocol, headers: Mapping[str, str], query: Mapping[str, str]) -> None:
        key = protocol.key_of(headers, query)
        if not key or (self.key and key != self.key):
            raise protocol.no_key(bool(key))

    def listing(self, protocol: Protocol, path: str) -> Any:
        """The models, or the one that the path names."""
        names = self.models or ("test-model",)
        name = unquote(path.partition("/models")[2].strip("/"))
        if not name:
            return protocol.models(names)
        if self.models and name not in self.models:
            raise RefusalError(f"The model '{name}' does not exist", status=404, code="model_not_found")
        return protocol.model(name)

    def read(self, protocol: Protocol, request: Request) -> Asked:
        """What is asked, noted down; raises RefusalError."""
        try:
            asked = protocol.read(request)
        except (
            AttributeError,
            TypeError,
            ValueError,
            KeyError,
            RecursionError,
        ) as error:  # something of a type nobody would send
            raise RefusalError(f"The request could not be read: {error!r}") from error
        if self.models and asked.model not in self.models:
            raise RefusalError(f"The model '{asked.model}' does not exist", status=404, code="model_not_found")
        with self._guard:
            self.requests.append(asked)
        return asked

    def turn(self, asked: Asked) -> Turn:
        """What the script says to this; raises RefusalError if it has nothing to say."""
        if callable(self._script):
            step: Any = self._script
        else:
            with self._guard:
                place, self._turns = self._turns, self._turns + 1
            if place >= len(self._script):
                count = len(self._script)
                # 400, because the libraries retry a 500, which would only make the test slow
                raise RefusalError(
                    f"The script is exhausted: {count} turn{'s were' if count != 1 else ' was'} scripted, "
                    f"and this is request {place + 1}.",
                    code="script_exhausted",
                )
            step = self._script[place]
        if not callable(step):
            return step  # type: ignore[no-any-return]
        try:
            return step(asked)  # type: ignore[no-any-return]
        except Exception as error:  # a test's own function: its failure must reach the test
            raise RefusalError(f"The script failed: {error!r}", code="script_failed") from error

    def answer(self, asked: Asked, turn: Say | Call | Sequence[Say | Call]) -> Answer:
        wrong = [part for part in parts_of(turn) if not isinstance(part, Say | Call)]
        if wrong:
            raise RefusalError(f"The script failed: {wrong[0]!r} is no part of an answer.", code="script_failed")
        number = self.number()
        prefix = "toolu" if asked.protocol == "anthropic" else "call"
        parts = [
            replace(part, id=part.id or f"{prefix}_{number}_{place}") if isinstance(part, Call) else part
            for place, part in enumerate(parts_of(turn))
        ]
        given = [part.usage for part in parts if part.usage is not None]
        if given:
            usage = Usage(sum(one.input for one in given), sum(one.output for one in given))
        else:
            said = "".join(part.text if isinstance(part, Say) else f"{part.name}{part.arguments}" for part in parts)
            usage = Usage(len(json.dumps(asked.raw)) // 4 + 1, len(said) // 4 + 1)
        return Answer(f"{number:08d}", tuple(parts), usage)


class _Server(ThreadingHTTPServer):
    """Knows its open connections and their threads, so that it can end them."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], owner: ModelServer) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        self._serving: list[threading.Thread] = []
        self._opening = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        with self._opening:
            self._open.add(request)
            self._serving = [one for one in self._serving if one.is_alive()]
            thread.start()
            self._serving.append(thread)

    def shutdown_request(self, request: Any) -> None:
        with self._opening:
            self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Ends all connections and waits for their threads."""
        with self._opening:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it has just ended by itself
        for thread in self._serving:
            thread.join(5)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # a client that gave up is what some tests are about
        if not isinstance(sys.exception(), ConnectionError):
            self.owner.problem(f"The server failed: {sys.exception()!r}")
            socketserver.BaseServer.handle_error(self, request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def do_POST(self) -> None:
        self._serve("POST")

    def do_GET(self) -> None:
        self._serve("GET")

    def do_PUT(self) -> None:
        self._serve("PUT")

    def do_PATCH(self) -> None:
        self._serve("PATCH")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read ``requests``."""

    def handle_expect_100(self) -> bool:
        super().handle_expect_100()
        self.wfile.flush()
        return True

    def _serve(self, method: str) -> None:
        owner = self.server.owner
        place = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(place.query))
        protocol = owner.protocol_of(place.path, headers)
        self._protocol, self._request_id = protocol, f"req_{owner.number():08d}"
        try:
            content = self._content()
            owner.admit(protocol, headers, query)
            listing = place.path.startswith(("/v1/models", "/v1beta/models")) and not GEMINI_PATH.fullmatch(place.path)
            if method == "GET" and listing:
                self._send(200, owner.listing(protocol, place.path))
                return
            self._check_route(method, place.path)
            request = Request(place.path, query, headers, _json_object(content))
            asked = owner.read(protocol, request)
            self._play(asked, owner.turn(asked))
        except RefusalError as refusal:
            owner.problem(f"{method} {place.path} was refused with {refusal.status}: {refusal.message}")
            self._send(refusal.status, protocol.error(refusal, self._request_id))

    def _content(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdigit():
            self.close_connection = True
            raise RefusalError("Send the body with a Content-Length.", status=411)
        size = int(length)
        if size <= self.server.owner.largest:
            content = self.rfile.read(size)
            if len(content) < size:
                raise ConnectionAbortedError("the client hung up in the middle of its request")
            return content
        # read it all the same: a client that is still sending when we hang up never sees the answer
        self.close_connection = True
        while size > 0 and (piece := self.rfile.read(min(size, 1 << 16))):
            size -= len(piece)
        raise RefusalError(f"Request exceeds the maximum size of {self.server.owner.largest} bytes.", status=413)

    def _check_route(self, method: str, path: str) -> None:
        known = path in ("/v1/chat/completions", "/v1/responses", "/v1/messages") or GEMINI_PATH.fullmatch(path)
        if not known:
            raise RefusalError(f"Invalid URL ({method} {path})", status=404)
        if method != "POST":
            raise RefusalError(f"Not allowed to {method} on {path}: use POST.", status=405)

    def _play(self, asked: Asked, turn: Turn) -> None:
        """Does what the script says."""
        owner, protocol = self.server.owner, self._protocol
        if isinstance(turn, Stall):
            self._wait(turn)
            if turn.then is None or owner.stopping.is_set():
                self.close_connection = True
            else:
                self._play(asked, turn.then)
        elif isinstance(turn, Fail):
            headers = {} if turn.retry_after is None else {"Retry-After": f"{turn.retry_after:g}"}
            self._send(turn.status, protocol.failure(turn, self._request_id), headers)
        elif isinstance(turn, Garbage):
            self._head(200, turn.content_type, {"Content-Length": str(len(turn.body))})
            self.wfile.write(turn.body)
            self.wfile.flush()
        elif isinstance(turn, Cut):
            self._cut(asked, turn)
        elif isinstance(turn, Say | Call | list | tuple):
            answer = owner.answer(asked, turn)
            protocol.answered(asked, answer)
            if asked.stream:
                self._stream(protocol.stream(asked, answer))
            else:
                self._send(200, protocol.write(asked, answer))
        else:
            raise RefusalError(f"The script failed: {turn!r} is not a turn.", code="script_failed")

    def _wait(self, stall: Stall) -> None:
        """Until the time is over, the event is set, the client hangs up or the server closes."""
        stopping, left = self.server.owner.stopping, stall.seconds
        while not stopping.is_set() and not (stall.until is not None and stall.until.is_set()):
            if left is not None and left <= 0:
                return
            step = PATIENCE if left is None else min(PATIENCE, left)
            if select.select([self.connection], [], [], step)[0]:
                if not self.connection.recv(1, socket.MSG_PEEK):
                    raise ConnectionAbortedError("the client hung up")
                stopping.wait(step)  # the client sends its next request already
            left = None if left is None else left - step

    def _cut(self, asked: Asked, cut: Cut) -> None:
        self.close_connection = True
        answer = self.server.owner.answer(asked, cut.turn)
        if cut.at <= 0:
            return
        if asked.stream:
            body = b"".join(self._protocol.stream(asked, answer))
            self._head(200, self._protocol.stream_type, {"Transfer-Encoding": "chunked"})
            part = body[: int(len(body) * cut.at)]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        else:
            body = encoded(self._protocol.write(asked, answer))
            self._head(200, "application/json", {"Content-Length": str(len(body))})
            self.wfile.write(body[: min(int(len(body) * cut.at), len(body) - 1)])
        self.wfile.flush()

    def _stream(self, chunks: Iterator[bytes]) -> None:
        self._head(200, self._protocol.stream_type, {"Transfer-Encoding": "chunked", "Cache-Control": "no-cache"})
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _send(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        content = encoded(body)
        self._head(status, "application/json", {"Content-Length": str(len(content)), **(headers or {})})
        self.wfile.write(content)
        self.wfile.flush()

    def _head(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        for name, value in {**self._protocol.headers(self._request_id), **headers}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()


def _json_object(content: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise RefusalError("We could not parse the JSON body of your request.") from None
    if not isinstance(body, dict):
        raise RefusalError("The body must be a JSON object.")
    return body


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
