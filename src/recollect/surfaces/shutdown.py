"""Graceful shutdown: the first Ctrl-C or SIGTERM finishes running work, the second ends at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def on_signals(finish: Callable[[], None], give_up: Callable[[], None]) -> Iterator[None]:
    """Call ``finish`` in the event loop on the first signal, and ``give_up`` on any later one."""
    loop = asyncio.get_running_loop()
    asked = False

    def came(number: int, frame: Any) -> None:
        nonlocal asked
        loop.call_soon_threadsafe(give_up if asked else finish)
        asked = True

    # not loop.add_signal_handler, which Windows lacks
    before = {number: signal.signal(number, came) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
