"""The options that several commands share, each defined once."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.models import OptionInfo

from recollect.errors import InvalidInputError

EVERYWHERE = "Common options"
ON_BEHALF = "Provenance"


@dataclass(frozen=True, slots=True)
class SharedOption:
    """An option that is added to every command, or to every command that writes."""

    name: str
    annotation: Any
    default: Any
    writes: bool = False

    def as_parameter(self) -> inspect.Parameter:
        """Return the option as a function parameter."""
        return inspect.Parameter(
            self.name, inspect.Parameter.KEYWORD_ONLY, default=self.default, annotation=self.annotation
        )


def option(names: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """Return an option of a command; if it has several names, they stand in one text."""
    return typer.Option(*names.split(), help=help, metavar=metavar, **more)


def name_own_option(error: InvalidInputError, parameters: Iterable[inspect.Parameter]) -> InvalidInputError:
    """Return the error of a value with the name of its option as it is typed, if one of these options has the value."""
    field = error.field.partition("[")[0]
    for parameter in parameters:
        shown = get_args(parameter.annotation)[-1]
        if field in (parameter.name, f"{parameter.name}s") and isinstance(shown, OptionInfo):
            names = map(str, (shown.default, *(shown.param_decls or ())))  # typer has the first as default
            return rename_field(error, next(name for name in names if name.startswith("--")).partition("/")[0])
    return error


def rename_field(error: InvalidInputError, name: str) -> InvalidInputError:
    """Return the same error of a field with another name."""
    return InvalidInputError(name, str(error).removeprefix(f"{error.field}: "))


def argument(metavar: str, help: str) -> Any:
    """Return an argument of a command."""
    return typer.Argument(help=help, metavar=metavar, show_default=False)


def _everywhere(*names: str, help: str, metavar: str | None = None, show_default: bool = False) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, show_default=show_default, rich_help_panel=EVERYWHERE)


def _on_behalf(*names: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, show_default=False, rich_help_panel=ON_BEHALF)


User = Annotated[str, _everywhere("--user", "-u", help="The user.", metavar="ID", show_default=True)]
Root = Annotated[
    str | None,
    _everywhere("--root", help="A folder or postgresql://… (default: see recollect config).", metavar="WHERE"),
]
Files = Annotated[
    Path | None,
    _everywhere("--files", help="With PostgreSQL: also keep MEMORY.md and daily notes here.", metavar="FOLDER"),
]
Json = Annotated[bool, _everywhere("--json", help="Print one JSON document.")]
Actor = Annotated[str | None, _on_behalf("--actor", help="Who makes the change, for the journal.", metavar="NAME")]
Agent = Annotated[str | None, _on_behalf("--agent", help="The agent that writes.", metavar="NAME")]
In = Annotated[str | None, _on_behalf("--session", help="The conversation it belongs to.", metavar="ID")]
Run = Annotated[str | None, _on_behalf("--run", help="The run it belongs to; a run is undone together.", metavar="ID")]
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
"""The arguments of the mirrored verb that were given on the command line."""
Ref = Annotated[str, argument("REF", "An id, the end of an id, or the key of a fact.")]
Raw = Annotated[bool, option("--raw", "Print the text unformatted, even on a terminal.")]
PORT = 8765
"""The port of `recollect serve`, unless it is taken or another is given."""
Yes = Annotated[bool, option("--yes -y", "Do not ask for confirmation.")]
DryRun = Annotated[bool, option("--dry-run -n", "Show what would happen; change nothing.")]
Last = Annotated[int, option("--limit -l", "Show the last N; 0 shows all.", "NUMBER", min=0)]
AllowHost = Annotated[list[str] | None, option("--allow-host", "Another accepted host name; repeatable.", "NAME")]
Everyone = Annotated[bool, option("--all -a", "For every user.")]
