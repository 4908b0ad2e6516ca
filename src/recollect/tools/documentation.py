"""The documentation page of a suite, generated from its declarations."""

from __future__ import annotations

import json
from collections.abc import Sequence

from recollect.tools.parameters import Parameter
from recollect.tools.tool import Tool

INTRODUCTIONS = {
    "entries": "Keyed entries in four categories, answered in sentences. For agents that keep a profile in MEMORY.md.",
    "notes": "Free texts with stable ids, answered in JSON. The smallest suite, and a good one to start with.",
    "observations": "What an agent found, concluded and learned while working, and its scratchpad. Answered in JSON.",
    "facts": "Typed facts and episodes, answered in JSON with a `status`. For chat bots that know many people.",
    "profile": "Beyond single facts: merging, a summary, relationships, facts from other chats.",
    "sessions": "Past conversations, and export and import of the memory as text.",
    "files": "Anthropic's memory tool over the files of the user.",
}
_MAY = {
    "read_only": "reads",
    "side_effecting": "writes",
    "destructive": "forgets (it can be undone)",
}


def suite_page(suite: str, tools: Sequence[Tool]) -> str:
    """Return the page of a suite in Markdown."""
    head = [
        f"# Tools: {suite}",
        "",
        INTRODUCTIONS.get(suite, ""),
        "",
        f"This page is generated: `recollect tools --suite {suite} --format markdown`.",
        "",
    ]
    return "\n".join([*head, *map(_section, tools)])


def _section(tool: Tool) -> str:
    lines = [
        f"## {tool.name}",
        "",
        tool.description,
        "",
        f"It {_MAY[tool.tier]}, within {tool.timeout:g} seconds.",
        "",
    ]
    if tool.parameters:
        lines += ["| argument | type | required | description |", "|---|---|---|---|"]
        lines += [_parameter_row(parameter) for parameter in tool.parameters]
        lines.append("")
    return "\n".join(lines)


def _parameter_row(parameter: Parameter) -> str:
    kind = f"list of {parameter.items}s" if parameter.items else parameter.type
    if parameter.enum:
        kind = ", ".join(f"`{word}`" for word in parameter.enum)
    limits = [str(limit) for limit in (parameter.arg.low, parameter.arg.high) if limit is not None]
    if limits:
        kind += f", {' to '.join(limits)}" if len(limits) == 2 else f", at most {limits[0]}"
    said = parameter.arg.says.replace("|", "\\|")
    if not parameter.required and parameter.default is not None and "default" not in said:
        said += f" (default: {json.dumps(parameter.default)})"
    return f"| `{parameter.name}` | {kind} | {'yes' if parameter.required else ''} | {said.strip()} |"
