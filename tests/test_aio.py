"""The same verbs, awaited."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest

import recollect
from recollect import AsyncMemory, Memory


def test_every_verb_of_memory_can_be_awaited() -> None:
    verbs = {
        name
        for name, member in inspect.getmembers(Memory, inspect.isfunction)
        if not name.startswith("_") and name not in ("acting", "batch")
    }
    awaited = {name for name, member in inspect.getmembers(AsyncMemory, inspect.iscoroutinefunction)}
    assert awaited == verbs
    for name in verbs:
        assert inspect.signature(getattr(AsyncMemory, name)) == inspect.signature(getattr(Memory, name))
        assert getattr(AsyncMemory, name).__doc__ == getattr(Memory, name).__doc__


@pytest.mark.slow
def test_W1_a_thousand_calls_at_once_all_succeed(tmp_path: Path) -> None:
    async def main() -> None:
        with recollect.open(tmp_path) as app:

            async def one(number: int) -> None:
                memory = AsyncMemory(app.user(f"user-{number % 20}")).acting("agent", session="s")
                outcome = await memory.remember(f"Saw the number {number} on platform {number * 7 % 991}")
                assert outcome.done, outcome
                assert await memory.search(f"number {number}")

            await asyncio.gather(*(one(number) for number in range(400)))
            total = 0
            for user in app.users():
                memory = AsyncMemory(app.user(user))
                total += len(await memory.read())
                assert await memory.verify() == []
            assert total == 400

    asyncio.run(main())


def test_the_loop_is_not_blocked_by_a_write(tmp_path: Path) -> None:
    async def main() -> None:
        with recollect.open(tmp_path) as app:
            memory = AsyncMemory(app.user("u1"))
            with app.user("u1").batch():  # holds the write lock of this user
                waiting = asyncio.create_task(memory.remember("Likes tea"))
                for _ in range(20):
                    await asyncio.sleep(0)
                assert not waiting.done()
            assert (await waiting).done

    asyncio.run(main())
