"""A Hacker News on this machine: a week of invented stories and comments, served like the real API."""

from __future__ import annotations

import json
import re
import threading
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from recollect.times import Clock, utc_now

_RECORDING = json.loads((Path(__file__).parent / "recording.json").read_text("utf-8"))
DAYS = sorted(_RECORDING["topstories"])
FIRST_DAY = date.fromisoformat(DAYS[0])
ITEMS: dict[int, dict[str, Any]] = {item["id"]: item for item in _RECORDING["items"]}


class RecordedNews(ThreadingHTTPServer):
    """Serves the stories of the day on 127.0.0.1, in a ``with`` block. After the week it begins again.

    ``first_day`` is the day to serve the stories of the first recorded day on.
    """

    daemon_threads = True

    def __init__(self, clock: Clock = utc_now, first_day: date = FIRST_DAY) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.clock, self.first_day = clock, first_day
        self.url = f"http://127.0.0.1:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> RecordedNews:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def content(self, path: str) -> Any:
        """Return what the API answers; None if there is no such thing, as the API does."""
        if path == "/v0/topstories.json":
            number = (self.clock().date() - self.first_day).days
            return _RECORDING["topstories"][DAYS[number % len(DAYS)]]
        item = re.fullmatch(r"/v0/item/(\d{1,12})\.json", path)
        return ITEMS.get(int(item[1])) if item else None


class _Handler(BaseHTTPRequestHandler):
    server: RecordedNews

    def do_GET(self) -> None:
        body = json.dumps(self.server.content(self.path)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""
