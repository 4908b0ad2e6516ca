"""A real server over real HTTP for tests: in a thread of this process, on a port of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import uvicorn.server

from recollect import Recollect
from recollect.surfaces.http_server import Address
from recollect.surfaces.serve import Server


class _Quicker:
    """asyncio with short sleeps: uvicorn looks ten times a second whether to end, and waits as long when it does."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 10)


uvicorn.server.asyncio = _Quicker()  # type: ignore[assignment, attr-defined]


@contextmanager
def serving(app: Recollect, **how: Any) -> Iterator[str]:
    """The address at which an app is served meanwhile."""
    server = Server(app, Address.parse("127.0.0.1:0"), **how)
    loop = asyncio.new_event_loop()
    port: Future[int] = Future()

    def run() -> None:
        try:
            loop.run_until_complete(server.serve(port.set_result))
        except BaseException as error:
            if not port.done():
                port.set_exception(error)
            raise
        finally:
            loop.run_until_complete(asyncio.sleep(0))  # what was hung up on is closed in the loop's next turn
            loop.close()

    thread = threading.Thread(target=run, name="serving")
    thread.start()
    try:
        yield f"http://127.0.0.1:{port.result(30)}"
    finally:
        loop.call_soon_threadsafe(server.stop)
        thread.join(60)
        assert not thread.is_alive(), "the server did not stop"
