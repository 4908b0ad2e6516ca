"""A durable log of the last message sent in each chat.

After an interrupted attempt, the sender looks for its message right after the last one in this log. The log contains
only numbers, nothing that anyone said.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import NamedTuple

SUPERGROUPS = -1_000_000_000_000
"""Chats with an id below this number their own messages; all other chats of a bot share one numbering."""
_SPARE = 1000


class LastAction(NamedTuple):
    """The last request in a chat: its job, its position in the job, and the resulting message."""

    job: str
    step: int
    message: int


class SentLog:
    """The log of one bot. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.Lock()
        self._last: dict[int, LastAction] = {}
        self._load()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.highest = max((one.message for chat, one in self._last.items() if chat > SUPERGROUPS), default=0)
        """The highest message number in private chats."""

    def last(self, chat: int) -> LastAction:
        """Return the last request in a chat."""
        with self._guard:
            return self._last.get(chat, LastAction("", -1, 0))

    def note(self, chat: int, job: str, step: int, message: int) -> None:
        """Log a request, durably. ``message`` is 0 if it sent no new message."""
        with self._guard:
            before = self._last.get(chat, LastAction("", -1, 0))
            last = self._last[chat] = LastAction(job, step, max(message, before.message))
            if chat > SUPERGROUPS:
                self.highest = max(self.highest, message)
            os.write(self._file, _log_line(chat, last))
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file. Later calls of `note` fail."""
        with self._guard:
            file, self._file = self._file, -1
        os.close(file)

    def _load(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lines = self._path.read_bytes().split(b"\n") if self._path.exists() else []
        for line in lines:
            try:
                chat, job, step, message = json.loads(line)
                self._last[int(chat)] = LastAction(str(job), int(step), int(message))
            except (ValueError, TypeError):
                continue  # cut off by a kill, so it was not done
        torn = bool(lines) and lines[-1] != b""
        if torn or len(lines) > 2 * len(self._last) + _SPARE:
            new = self._path.with_suffix(".new")
            with new.open("wb") as file:
                file.writelines(_log_line(chat, last) for chat, last in self._last.items())
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)


def _log_line(chat: int, last: LastAction) -> bytes:
    return json.dumps([chat, *last]).encode() + b"\n"
