"""The options that several commands share, each defined once."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

EVERYWHERE = "Everywhere"
ON_BEHALF = "On whose behalf"


@dataclass(frozen=True, slots=True)
class SharedOption:
    """An option that commands get without asking for it."""

    name: str
    annotation: Any
    default: Any
    writes: bool = False

    def as_parameter(self) -> inspect.Parameter:
        """As a parameter of a function."""
        return inspect.Parameter(
            self.name, inspect.Parameter.KEYWORD_ONLY, default=self.default, annotation=self.annotation
        )


def _everywhere(*names: str, help: str, metavar: str | None = None, show_default: bool = False) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, show_default=show_default, rich_help_panel=EVERYWHERE)


def _on_behalf(*names: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, show_default=False, rich_help_panel=ON_BEHALF)


User = Annotated[str, _everywhere("--user", "-u", help="Whose memory.", metavar="ID", show_default=True)]
Root = Annotated[
    str | None,
    _everywhere("--root", help="A folder or postgresql://…; otherwise as set (recollect config).", metavar="WHERE"),
]
Files = Annotated[
    Path | None,
    _everywhere("--files", help="With PostgreSQL: keep MEMORY.md and daily notes here too.", metavar="FOLDER"),
]
Json = Annotated[bool, _everywhere("--json", help="One JSON document on standard output.")]
Actor = Annotated[str | None, _on_behalf("--actor", help="Who does this, for the journal.", metavar="NAME")]
Agent = Annotated[str | None, _on_behalf("--agent", help="The agent that writes.", metavar="NAME")]
In = Annotated[str | None, _on_behalf("--session", help="The conversation it belongs to.", metavar="ID")]
Run = Annotated[str | None, _on_behalf("--run", help="The run it belongs to; undone as one.", metavar="ID")]
Untrusted = Annotated[bool, _on_behalf("--untrusted", help="Mark it as coming from an untrusted source.")]

SHARED = (
    SharedOption("actor", Actor, None, writes=True),
    SharedOption("agent", Agent, None, writes=True),
    SharedOption("session", In, None, writes=True),
    SharedOption("run", Run, None, writes=True),
    SharedOption("untrusted", Untrusted, False, writes=True),
    SharedOption("user", User, "me"),
    SharedOption("root", Root, None),
    SharedOption("files", Files, None),
    SharedOption("json", Json, False),
)

Given = dict[str, Any]
"""What was given of the arguments of the verb that a command mirrors."""
Ref = Annotated[
    str,
    typer.Argument(help="An id, the ending of an id, or the key of a fact.", metavar="REF", show_default=False),
]
Raw = Annotated[bool, typer.Option("--raw", help="As it is, also on a terminal.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Show what would happen; change nothing.")]
Last = Annotated[int, typer.Option("--limit", "-l", help="The last so many; 0 for all.", metavar="NUMBER", min=0)]
Everyone = Annotated[bool, typer.Option("--all", "-a", help="For every user.")]
