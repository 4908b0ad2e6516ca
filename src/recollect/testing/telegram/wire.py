"""HTTP, and nothing but: connections, bodies, addresses. What a request means, its owner knows."""

from __future__ import annotations

import json
import selectors
import socket
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from recollect.testing.telegram import parameters
from recollect.testing.telegram.refusal import RefusalError

LARGEST = 64 * 1024 * 1024


class Gone:
    """Whether the client has hung up."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def __call__(self) -> bool:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._connection, selectors.EVENT_READ)
                return bool(selector.select(0)) and not self._connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True


class Owner(Protocol):
    """Who answers the requests. `ConnectionError` ends the connection without an answer."""

    def answer(self, token: str, method: str, values: dict[str, Any], gone: Gone) -> tuple[int, bytes]: ...

    def refused(self, method: str, refusal: RefusalError) -> tuple[int, bytes]: ...

    def download(self, token: str, path: str) -> tuple[int, bytes]: ...

    def problem(self, text: str) -> None: ...


class Wire(ThreadingHTTPServer):
    """Knows its open connections and their threads, so that it can end them."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, owner: Owner) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        self._serving: list[threading.Thread] = []
        self._opening = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)

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
            serving = list(self._serving)
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it has just ended by itself
        for thread in serving:
            thread.join(5)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # a connection that ends early is what some tests are about
        if not isinstance(sys.exception(), ConnectionError):
            self.owner.problem(f"The server failed: {sys.exception()!r}")
            socketserver.BaseServer.handle_error(self, request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Wire

    def do_POST(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read ``asked``."""

    def handle_expect_100(self) -> bool:
        super().handle_expect_100()
        self.wfile.flush()
        return True

    def _serve(self) -> None:
        owner = self.server.owner
        place = urlsplit(self.path)
        try:
            content = self._content()
        except RefusalError as refusal:
            self._send(*owner.refused(place.path, refusal))
            return
        parts = [unquote(part) for part in place.path.strip("/").split("/")]
        if parts[0] == "file" and len(parts) > 2 and parts[1].startswith("bot"):
            status, found = owner.download(parts[1].removeprefix("bot"), "/".join(parts[2:]))
            self._send(status, found, "application/octet-stream" if status == 200 else "application/json")
            return
        if len(parts) != 2 or not parts[0].startswith("bot"):
            self._send(*owner.refused(place.path, RefusalError(status=404)))
            return
        method = parts[1]
        try:
            values = parameters.read(place.query, self.headers.get("Content-Type", ""), content)
        except RefusalError as refusal:
            self._send(*owner.refused(method, refusal))
            return
        self._send(*owner.answer(parts[0].removeprefix("bot"), method, values, Gone(self.connection)))

    def _content(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._chunks()
        length = self.headers.get("Content-Length", "0")
        if not (length.isascii() and length.isdigit()):
            self.close_connection = True
            raise RefusalError("wrong Content-Length")
        size = int(length)
        if size <= LARGEST:
            content = self.rfile.read(size)
            if len(content) < size:
                raise ConnectionAbortedError("the client hung up in the middle of its request")
            return content
        # read it all the same: a client that is still sending when we hang up never sees the answer
        self.close_connection = True
        while size > 0 and (piece := self.rfile.read(min(size, 1 << 16))):
            size -= len(piece)
        raise RefusalError(status=413)

    def _chunks(self) -> bytes:
        pieces: list[bytes] = []
        total = 0
        while True:
            line = self.rfile.readline(1000).partition(b";")[0].strip()
            try:
                size = int(line, 16)
            except ValueError:
                size = -1
            if size < 0 or (total := total + size) > LARGEST:
                self.close_connection = True
                raise RefusalError("wrong chunk in the request", status=400 if size < 0 else 413)
            if size == 0:
                while self.rfile.readline(1000).strip():
                    pass  # trailers
                return b"".join(pieces)
            piece = self.rfile.read(size)
            if len(piece) < size:
                raise ConnectionAbortedError("the client hung up in the middle of its request")
            pieces.append(piece)
            self.rfile.readline(10)

    def _send(self, status: int, content: bytes, content_type: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()


def encoded(body: Any) -> bytes:
    """JSON in UTF-8; only what UTF-8 cannot hold is escaped."""
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body).encode()
