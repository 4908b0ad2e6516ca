"""All suites by name. They can be offered alone or together: no two tools have the same name."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.errors import InvalidInputError
from recollect.tools import entries, facts, files, notes, observations, profile, sessions
from recollect.tools.tool import Tool

SUITES: dict[str, tuple[Tool, ...]] = {
    "entries": entries.TOOLS,
    "notes": notes.TOOLS,
    "observations": observations.TOOLS,
    "facts": facts.TOOLS,
    "profile": profile.TOOLS,
    "sessions": sessions.TOOLS,
    "files": files.TOOLS,
}


def tools_of(suites: Iterable[str] = ()) -> list[Tool]:
    """Return the tools of these suites in order, or of all suites if none is named."""
    chosen: dict[str, Tool] = {}
    for name in tuple(suites) or SUITES:
        if name not in SUITES:
            raise InvalidInputError("suites", f"{name!r} is not one of {', '.join(SUITES)}")
        chosen |= {tool.name: tool for tool in SUITES[name]}
    return list(chosen.values())


def suite_of(tool: str) -> str | None:
    """Return the suite of a tool."""
    return next((name for name, tools in SUITES.items() if any(one.name == tool for one in tools)), None)
