"""Ids that sort by the time of their creation."""

from __future__ import annotations

import os
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_SHIFTS = range(120, -1, -10)
_last_stamp = 0
_stamp_lock = threading.Lock()


def new_id(kind: str) -> str:
    """Return a new id such as ``fact-01jcs0m3y7q8r9t0v1w2x3y4z5``: a ULID, ascending within this process."""
    global _last_stamp
    with _stamp_lock:
        # milliseconds and 20 bits of order within them, so that ids created in a burst sort
        stamp = _last_stamp = max(_last_stamp + 1, (time.time_ns() // 1_000_000) << 20)
    number = (stamp << 60) | int.from_bytes(os.urandom(8), "big") >> 4
    return f"{kind}-{''.join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])}"
