"""How much a bot may send: Telegram's limits, kept by a clock that a test may hold."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from recollect.testing.telegram.refusal import too_many_requests


@dataclass(frozen=True)
class Limits:
    """How many messages may be sent or edited; a limit of 0 is none."""

    chat_per_second: int = 1
    all_per_second: int = 30
    group_per_minute: int = 20


class Flood:
    """Counts what was sent, and refuses what is too much."""

    def __init__(self, limits: Limits | None, clock: Callable[[], datetime]) -> None:
        self.limits = limits
        self._clock = clock
        self._sent: dict[tuple[str, int], deque[float]] = {}

    def check(self, chat_id: int, *, is_group: bool) -> None:
        """Counts one more; raises RefusalError with the seconds to wait, and then counts nothing."""
        if self.limits is None:
            return
        now = self._clock().timestamp()
        rules = [(("chat", chat_id), self.limits.chat_per_second, 1.0), (("all", 0), self.limits.all_per_second, 1.0)]
        if is_group:
            rules.append((("minute", chat_id), self.limits.group_per_minute, 60.0))
        counted = []
        wait = 0.0
        for key, most, window in rules:
            if most <= 0:
                continue
            sent = self._sent.setdefault(key, deque())
            while sent and sent[0] <= now - window:
                sent.popleft()
            if len(sent) >= most:
                wait = max(wait, sent[len(sent) - most] + window - now)
            counted.append(sent)
        if wait > 0:
            raise too_many_requests(max(1, math.ceil(wait)))
        for sent in counted:
            sent.append(now)
