"""The options that several commands share, each defined once."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from recollect.records import Category, FactType, ObservationCategory

EVERYWHERE = "Everywhere"
ON_BEHALF = "On whose behalf"


@dataclass(frozen=True, slots=True)
class Shared:
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
    Shared("actor", Actor, None, writes=True),
    Shared("agent", Agent, None, writes=True),
    Shared("session", In, None, writes=True),
    Shared("run", Run, None, writes=True),
    Shared("untrusted", Untrusted, False, writes=True),
    Shared("user", User, "me"),
    Shared("root", Root, None),
    Shared("files", Files, None),
    Shared("json", Json, False),
)

Text = Annotated[str, typer.Argument(help="The text; - reads standard input.", metavar="TEXT", show_default=False)]
Ref = Annotated[
    str,
    typer.Argument(help="An id, the ending of an id, or the key of a fact.", metavar="REF", show_default=False),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", help="A tag; may be repeated.", metavar="WORD")]
Meta = Annotated[list[str] | None, typer.Option("--meta", help="Further data; may be repeated.", metavar="NAME=VALUE")]
Source = Annotated[str, typer.Option("--source", help="Where it comes from, such as discussion:42.", metavar="TEXT")]
Confidence = Annotated[float, typer.Option("--confidence", help="How sure it is, from 0 to 1.", metavar="SHARE")]
Importance = Annotated[float, typer.Option("--importance", help="How much it matters, from 0 to 1.", metavar="SHARE")]
AnyCategory = Literal[Category, ObservationCategory]
AnyCategoryOption = Annotated[
    AnyCategory | None,
    typer.Option("--category", "-c", help="Only of this category, such as preference.", metavar="NAME"),
]
AnyType = Annotated[
    FactType | None,
    typer.Option("--type", help="Only facts of this type, such as skill.", metavar="TYPE"),
]
FromSession = Annotated[str | None, typer.Option("--session", help="Only from this conversation.", metavar="ID")]
FromSource = Annotated[
    str | None,
    typer.Option("--source", help="Only from this source, such as discussion.", metavar="TEXT"),
]
Status = Annotated[str, typer.Option("--status", help="active, archived, superseded or all.", metavar="NAME")]
Conversations = Annotated[bool, typer.Option("--conversations", help="What was said in conversations, too.")]
Since = Annotated[str | None, typer.Option("--since", help="Only from then on.", metavar="DATE")]
Until = Annotated[str | None, typer.Option("--until", help="Only until then.", metavar="DATE")]
Now = Annotated[
    str | None,
    typer.Option("--now", help="As if asked then: for 'yesterday', 'last week'.", metavar="DATE"),
]
Raw = Annotated[bool, typer.Option("--raw", help="As it is, also on a terminal.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Show what would happen; change nothing.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why, for the journal.", metavar="TEXT")]
Limit = Annotated[int | None, typer.Option("--limit", "-l", help="At most so many.", metavar="NUMBER")]
Everyone = Annotated[bool, typer.Option("--all", "-a", help="For every user.")]
