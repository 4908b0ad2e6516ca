"""A small threaded HTTP server for the fakes: it can drop connections, cut answers short and hang up on everybody."""

from __future__ import annotations

import selectors
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

_ACCEPT_SECONDS = 0.02
"""How often the server checks whether it is to stop."""


@dataclass(frozen=True)
class HttpRequest:
    """A request as it came in. Header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    connection: socket.socket = field(repr=False)

    def hung_up(self, wait: float = 0.0) -> bool:
        """Return whether the client has closed its connection, after at most ``wait`` seconds."""
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self.connection, selectors.EVENT_READ)
                if not selector.select(wait):
                    return False
            if not self.connection.recv(1, socket.MSG_PEEK):
                return True
        except (OSError, ValueError):
            return True
        time.sleep(wait)  # the client has sent its next request already
        return False


@dataclass(frozen=True)
class HttpResponse:
    """A response. If ``sent`` is less than the length of the body, the connection drops after that many bytes."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: int | None = None


class HttpServer(ThreadingHTTPServer):
    """Serves on 127.0.0.1 until stopped.

    ``answer`` is called in a thread per connection; a ConnectionError from it closes the connection without an answer.
    What else it raises is added to ``problems``.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, answer: Callable[[HttpRequest], HttpResponse], problems: list[str], port: int = 0) -> None:
        self.answer = answer
        self.stopping = threading.Event()
        self._problems = problems
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)
        self._accepting = threading.Thread(target=self.serve_forever, args=(_ACCEPT_SECONDS,), daemon=True)
        self._accepting.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def stop(self) -> None:
        """Close the port and all connections, and wait for their threads."""
        self.stopping.set()
        self.shutdown()
        self.server_close()
        self._accepting.join()
        with self._lock:
            connections = dict(self._connections)
            for connection in connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it has just been closed
        for thread in connections.values():
            thread.join(5)

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        with self._lock:
            self._connections[request] = thread
            thread.start()

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            self._problems.append(f"The server failed: {sys.exception()!r}")
            socketserver.BaseServer.handle_error(self, request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: HttpServer

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        if len(body) < size:
            raise ConnectionAbortedError("the client hung up in the middle of its request")
        place = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        path, query = unquote(place.path), dict(parse_qsl(place.query))
        self._send(self.server.answer(HttpRequest(self.command, path, query, headers, body, self.connection)))

    do_GET = do_POST

    def _send(self, response: HttpResponse) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(response.body[: response.sent])
        self.close_connection = response.sent is not None or self.close_connection

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: tests read the requests of the server."""
