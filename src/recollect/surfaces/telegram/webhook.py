"""The webhook: a small HTTP server to which Telegram sends updates, behind an HTTPS proxy.

An update is acknowledged once it is durable. Requests without the secret are rejected.
"""

from __future__ import annotations

import hmac
import json
import logging
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from recollect.errors import InvalidInputError, RecollectError

LOGGER = logging.getLogger("recollect.telegram")
_LARGEST = 1_000_000
_SECONDS = 20.0
_SECRET = "X-Telegram-Bot-Api-Secret-Token"


class Webhook:
    """Listens until closed. ``accept`` makes an update durable or raises an error."""

    def __init__(self, url: str, listen: str, secret: str, accept: Callable[[dict[str, Any]], None]) -> None:
        host, _, port = listen.rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            raise InvalidInputError("--listen", f"{listen!r} is not HOST:PORT")
        place = urlsplit(url)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise InvalidInputError("--webhook-url", "must be a public https:// URL that Telegram can reach")
        handler = type(
            "Handler", (_WebhookHandler,), {"path_wanted": place.path or "/", "secret": secret, "accept": accept}
        )
        self._server = _WebhookServer((host or "127.0.0.1", int(port)), handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening and finish running requests."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _WebhookServer(ThreadingHTTPServer):
    daemon_threads = False  # closing waits for running requests

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOGGER.debug("a connection to the webhook broke")


class _WebhookHandler(BaseHTTPRequestHandler):
    path_wanted = "/"
    secret = ""
    accept: Callable[[dict[str, Any]], None]
    timeout = _SECONDS

    def do_POST(self) -> None:
        given = self.headers.get(_SECRET, "")
        if self.path.partition("?")[0] != self.path_wanted:
            return self._say(HTTPStatus.NOT_FOUND)
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.secret.encode()):
            return self._say(HTTPStatus.FORBIDDEN)
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or int(size) > _LARGEST:
            return self._say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        try:
            update = json.loads(self.rfile.read(int(size)))
        except (ValueError, RecursionError):
            return self._say(HTTPStatus.BAD_REQUEST)
        if not isinstance(update, dict) or not isinstance(update.get("update_id"), int):
            return self._say(HTTPStatus.BAD_REQUEST)
        try:
            type(self).accept(update)
        except RecollectError as error:
            LOGGER.warning("cannot store an update now (%s); Telegram will send it again", type(error).__name__)
            return self._say(HTTPStatus.SERVICE_UNAVAILABLE)
        return self._say(HTTPStatus.OK)

    def _say(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Do nothing: client addresses are not logged."""
