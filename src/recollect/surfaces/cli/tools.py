"""The commands that list the tools for models and call one by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

from recollect.surfaces.cli.options import argument, option
from recollect.surfaces.cli.program import AGENTS, command
from recollect.surfaces.cli.session import DONE, INVALID, NO, CliSession, read_text_argument

if TYPE_CHECKING:
    from recollect.tools.tool import Tool

Suites = Annotated[list[str] | None, option("--suite -s", "entries, notes, observations, facts …; repeatable.", "NAME")]
Format = Annotated[
    Literal["openai", "responses", "anthropic", "gemini", "mcp", "markdown"] | None,
    option("--format -f", "Declarations for openai, responses, anthropic, gemini or mcp, or markdown."),
]
Strict = Annotated[bool, option("--strict", "Declare tools for the provider's strict mode.")]
Arguments = Annotated[str, argument("ARGUMENTS", "The arguments as JSON; - reads standard input.")]
_DOES = {"read_only": "reads", "side_effecting": "writes", "destructive": "forgets"}
_EXIT = {"ok": DONE, "queued": DONE, "refused": NO, "limited": NO, "timeout": NO, "invalid": INVALID, "error": NO}


@command(
    AGENTS,
    "recollect tools",
    "recollect tools --suite notes --format openai",
    "recollect tools --suite facts --format anthropic --strict",
)
def tools_command(session: CliSession, suite: Suites = None, format: Format = None, strict: Strict = False) -> None:
    """List the tools for models, or print their declarations."""
    from recollect.tools.catalog import tools_of
    from recollect.tools.documentation import suite_page
    from recollect.tools.wire import declarations

    chosen = tools_of(suite or ())
    if format == "markdown":
        pages = [suite_page(name, [tool for tool in chosen if tool.suite == name]) for name in _suites(chosen)]
        print("\n".join(pages), end="")
    elif format is not None or session.json:
        print(json.dumps(declarations(chosen, format or "mcp", strict=strict), ensure_ascii=False, indent=2))
    else:
        rows = [(tool.suite, tool.name, _DOES[tool.tier], _first_sentence(tool.description)) for tool in chosen]
        session.out.table(("suite", "tool", "it", "what it does"), rows)


@command(
    AGENTS,
    """recollect tool memory_save '{"content": "Prefers short answers"}'""",
    """recollect tool search_memory '{"query": "answers"}' --user u1""",
    """recollect tool recall_facts --user 123 --json""",
    writes=True,
)
def tool_command(
    session: CliSession,
    name: Annotated[str, argument("NAME", "The tool; see recollect tools.")],
    arguments: Arguments = "{}",
    suite: Suites = None,
    chat: Annotated[str | None, option("--chat", "The chat it is called in.", "ID")] = None,
) -> int:
    """Call a tool as a model would, and print the result."""
    tools = session.recollect.tools(
        session.user, *(suite or ()), session=session.session, chat=chat, agent=session.agent, wait=True
    )
    result = tools.call(name, read_text_argument(arguments))
    session.out.document(
        {
            "tool": result.tool,
            "call": result.call,
            "status": result.status,
            "outcome": result.outcome,
            "latency_ms": round(result.latency_ms, 3),
            "answer": result.content,
        }
    )
    if result.is_error:
        session.out.aside(result.text)
    else:
        session.out.line(result.text)
    if result.ignored:
        session.out.aside(f"Note: {result.tool} has no argument {', '.join(result.ignored)}")
    return _EXIT[result.status]


def _suites(tools: list[Tool]) -> list[str]:
    return list(dict.fromkeys(tool.suite for tool in tools))


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")
