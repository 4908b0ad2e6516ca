"""Rate limits: a token bucket per API key and per user, within this process."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from recollect.surfaces.http.problems import Problem

_MOST_BUCKETS = 10_000


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class RateLimits:
    """Limits in requests per minute, per key and per user. 0 means no limit. A burst may use a whole minute's limit."""

    def __init__(self, key: int, user: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = {"key": key, "user": user}
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()
        self._guard = threading.Lock()

    def take(self, key: str, user: str | None) -> dict[str, str]:
        """Count a request and return headers about the tighter limit. Raise a `Problem` if it is exceeded."""
        named = [("key", key)] + ([("user", user)] if user is not None else [])
        with self._guard:
            buckets = [(most, self._filled(name, most)) for name in named if (most := self._most[name[0]])]
            for most, bucket in buckets:
                if bucket.left < 1:
                    seconds = math.ceil((1 - bucket.left) * 60 / most)
                    raise Problem(
                        429,
                        "TooManyRequestsError",
                        f"more than {most:,} requests per minute; retry in {seconds} s",
                        headers={**_rate_headers(most, bucket), "retry-after": str(seconds)},
                        seconds=seconds,
                    )
            for _, bucket in buckets:
                bucket.left -= 1
            return _rate_headers(*min(buckets, key=lambda one: one[1].left)) if buckets else {}

    def _filled(self, name: tuple[str, str], most: int) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.setdefault(name, _Bucket(most, now))
        bucket.left = min(most, bucket.left + (now - bucket.at) * most / 60)
        bucket.at = now
        self._buckets.move_to_end(name)
        while len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return bucket


def _rate_headers(most: int, bucket: _Bucket) -> dict[str, str]:
    return {
        "ratelimit-limit": str(most),
        "ratelimit-remaining": str(int(bucket.left)),
        "ratelimit-reset": str(math.ceil((most - bucket.left) * 60 / most)),
    }
