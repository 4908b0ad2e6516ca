"""Sends updates to the bot's webhook: one after the other, each again and again until the bot takes it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from recollect.testing.telegram.refusal import RefusalError
from recollect.testing.telegram.updates import Updates, Webhook

LONGEST_ANSWER = 60.0
LOCAL = ("127.0.0.1", "localhost", "::1")


class Delivery(threading.Thread):
    """Runs while the server does. ``answered`` is given what the bot asks for in its answer to a webhook."""

    def __init__(
        self,
        updates: Updates,
        answered: Callable[[str, Mapping[str, Any]], None],
        backoff: tuple[float, float],
    ) -> None:
        super().__init__(name="telegram-webhook", daemon=True)
        self._updates = updates
        self._answered = answered
        self._first, self._most = backoff
        self._stopped = False
        self._line: socket.socket | None = None

    def stop(self) -> None:
        changed = self._updates.changed
        with changed:
            self._stopped = True
            changed.tell()
            if self._line is not None:
                try:
                    self._line.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it has just ended by itself
        self.join()

    def run(self) -> None:
        updates, pauses = self._updates, backoff(self._first, self._most)
        while True:
            with updates.changed:
                updates.changed.wait_for(lambda: self._stopped or (updates.webhook and updates.pending))
                hook = updates.webhook
                if self._stopped:
                    return
                if hook is None or not updates.pending:
                    continue  # just taken away again
                waiting = updates.pending[0]
            problem, reply = self._post(hook, waiting.update)
            with updates.changed:
                if not problem:
                    pauses = backoff(self._first, self._most)
                    updates.delivered(waiting)
                elif not self._stopped:
                    hook.error, hook.error_date = problem, updates.now()
                    updates.changed.tell()
                    self._wait(hook, next(pauses))
            if reply is not None:
                self._answered(str(reply.pop("method")), reply)

    def _wait(self, hook: Webhook, seconds: float) -> None:
        """Until it is time to try again, or no use."""
        self._updates.changed.wait_for(lambda: self._stopped or self._updates.webhook is not hook, seconds)

    def _post(self, hook: Webhook, update: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
        """What went wrong, or nothing; and the method that the bot calls in its answer, if any."""
        headers = {"Content-Type": "application/json"}
        if hook.secret:
            headers["X-Telegram-Bot-Api-Secret-Token"] = hook.secret
        place = urlsplit(hook.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port or 80, timeout=LONGEST_ANSWER)
        path = (place.path or "/") + (f"?{place.query}" if place.query else "")
        try:
            connection.connect()
            with self._updates.changed:
                if self._stopped:
                    return "The server stopped", None
                self._line = connection.sock
            connection.request("POST", path, json.dumps(update, ensure_ascii=False).encode(), headers)
            answer = connection.getresponse()
            body = answer.read()
        except TimeoutError:
            return "Read timeout expired", None
        except (OSError, http.client.HTTPException) as error:
            return f"Connection failed: {type(error).__name__}", None
        finally:
            with self._updates.changed:
                self._line = None
            connection.close()
        if not 200 <= answer.status < 300:
            return f"Wrong response from the webhook: {answer.status} {answer.reason}", None
        return "", _called(body)


def backoff(first: float, most: float) -> Iterator[float]:
    """Seconds to wait: each time twice as many, up to the most."""
    while True:
        yield min(first, most)
        first *= 2


def check_url(url: str) -> None:
    """Only this machine: a test never sends what people wrote elsewhere."""
    try:
        place = urlsplit(url)
        host, port = place.hostname, place.port
    except ValueError:
        raise RefusalError("bad webhook: invalid webhook URL specified") from None
    if place.scheme != "http" or host not in LOCAL or port == 0:
        raise RefusalError("bad webhook: this server sends only plain HTTP to 127.0.0.1 or localhost")


def _called(body: bytes) -> dict[str, Any] | None:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return asked if isinstance(asked, dict) and isinstance(asked.get("method"), str) else None
