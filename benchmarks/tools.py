"""What tools cost beyond the core, in one run.

    python -m benchmarks.tools [--records 10000] [--rounds 1000] [--json]

A tool call is measured in turn with the core call that it makes, so that a noisy machine disturbs both alike. The MCP
server runs in a process of its own, over stdio, with the official client.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import recollect
from benchmarks.timing import milliseconds, percentiles, print_report
from benchmarks.writing import sentence


def filled(folder: Path, records: int) -> recollect.Recollect:
    """A memory of so many notes."""
    app = recollect.open(folder)
    with app.user("u1").batch() as memory:
        for number in range(records):
            memory.note(sentence(number))
    return app


def overhead(app: recollect.Recollect, rounds: int) -> dict[str, float]:
    """Each tool in turn with the core call below it."""
    memory, tools = app.user("u1"), app.tools("u1", "notes", "facts", "observations")
    memory.set_scratch("key", "value")
    pairs: dict[str, tuple[Callable[[int], object], Callable[[int], object]]] = {
        "search": (
            lambda n: memory.search(sentence(n * 7), limit=5),
            lambda n: tools.call("memory_search", {"query": sentence(n * 7)}),
        ),
        "save": (
            lambda n: memory.note(sentence(1_000_000 + 2 * n)),
            lambda n: tools.call("memory_save", {"content": sentence(1_000_001 + 2 * n)}),
        ),
        "scratchpad": (
            lambda n: memory.scratch("key"),
            lambda n: tools.call("scratchpad_get", {"key": "key"}),
        ),
    }
    found: dict[str, float] = {}
    for name, (core, tool) in pairs.items():
        for number in range(20):
            core(-number - 1), tool(-number - 1)
        below: list[float] = []
        above: list[float] = []
        for number in range(rounds):
            below.append(milliseconds(lambda: core(number)))  # noqa: B023  (called at once)
            above.append(milliseconds(lambda: tool(number)))  # noqa: B023
        core_ms, tool_ms = percentiles(below), percentiles(above)
        found[f"{name}: core p50 ms"] = core_ms["p50"]
        found |= {f"{name}: tool {which} ms": each for which, each in tool_ms.items()}
        found[f"{name}: overhead p50 ms"] = tool_ms["p50"] - core_ms["p50"]
    return found


async def over_mcp(folder: Path, rounds: int) -> dict[str, float]:
    """A search through `recollect mcp` on stdio, from the request to the answer."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = [sys.executable, "-c", "from recollect.surfaces.cli import main; main()"]
    arguments = ["mcp", "--root", str(folder), "--user", "u1", "--suite", "notes"]
    server = StdioServerParameters(command=command[0], args=[*command[1:], *arguments])
    times: list[float] = []
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        for number in range(-20, rounds):
            start = time.perf_counter()
            await session.call_tool("memory_search", {"query": sentence(number * 7)})
            if number >= 0:
                times.append((time.perf_counter() - start) * 1e3)
    return {f"MCP stdio search {which} ms": each for which, each in percentiles(times).items()}


def concurrent(folder: Path, calls: int, users: int) -> dict[str, float]:
    """Many calls of many users at once."""
    app = recollect.open(folder)

    async def one(number: int) -> str:
        tools = app.tools(f"user-{number % users}", "notes")
        return (await tools.acall("memory_save", {"content": sentence(number)})).status

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(one(number) for number in range(calls)))

    start = time.perf_counter()
    statuses = asyncio.run(all_of_them())
    seconds = time.perf_counter() - start
    app.close()
    return {f"{calls} saves of {users} users at once, a second": calls / seconds, "of them ok": statuses.count("ok")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        app = filled(Path(name) / "one", given.records)
        found |= overhead(app, given.rounds)
        app.close()
        found |= asyncio.run(over_mcp(Path(name) / "one", given.rounds))
        found |= concurrent(Path(name) / "many", 1_000, 100)
    print_report(found, as_json=given.json)


if __name__ == "__main__":
    main()
