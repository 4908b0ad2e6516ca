"""The program: registers commands, adds the shared options, and turns errors into exit codes.

Help is plain text: it prints quickly and reads the same on a terminal, in a pipe and in a log.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from recollect.errors import (
    AmbiguousError,
    InvalidInputError,
    LinkError,
    NotFoundError,
    NothingToRebuildError,
    RecollectError,
    StoreError,
    UndoError,
)
from recollect.surfaces.cli.options import EVERYWHERE, ON_BEHALF, SHARED, Files, Json, Root, User, name_own_option
from recollect.surfaces.cli.session import DONE, INVALID, NO, NOT_FOUND, STORAGE, CliSession, ConfirmationError
from recollect.surfaces.cli.verb_options import name_option, options_of, verb_of, verb_values

INTERRUPTED = 130
BROKEN_PIPE = 141

REMEMBER, RECALL, CHANGE = "Remember", "Recall", "Change and review"
REMOVE, WHOLE, START = "Forget and pause", "The whole memory", "Getting started"
AGENTS = "Agents and models"
PANELS = (REMEMBER, RECALL, CHANGE, REMOVE, AGENTS, WHOLE, START)

_Verb = TypeVar("_Verb", bound=Callable[..., int | None])


class CliCommand(TyperCommand):
    """A command whose help groups the options and ends with examples."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = ["[OPTIONS]"]
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                name = f"{parameter.metavar}{'...' if parameter.nargs != 1 else ''}"
                pieces.append(name if parameter.required else f"[{name}]")
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                groups.setdefault("Arguments", []).append((str(parameter.metavar), getattr(parameter, "help", "")))
            elif row := parameter.get_help_record(ctx):
                panel = EVERYWHERE if "--help" in parameter.opts else getattr(parameter, "rich_help_panel", None)
                groups.setdefault(panel or "Options", []).append(row)
        for title in sorted(groups, key=["Arguments", "Options", ON_BEHALF, EVERYWHERE].index):
            with formatter.section(title):
                formatter.write_dl(groups[title])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_examples(self.epilog, formatter)


class CliGroup(TyperGroup):
    """A command with subcommands."""

    title: ClassVar[str] = "Commands"

    def format_options(self, ctx: Any, formatter: Any) -> None:
        with formatter.section(self.title):
            formatter.write_dl([(name, each.get_short_help_str(64)) for name, each in sorted(self.commands.items())])
        with formatter.section(EVERYWHERE):
            rows = (parameter.get_help_record(ctx) for parameter in self.get_params(ctx))
            formatter.write_dl([row for row in rows if row])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_examples(self.epilog, formatter)


def _write_examples(examples: str | None, formatter: Any) -> None:
    with formatter.section("Examples"):
        for example in (examples or "").splitlines():
            formatter.write(f"{'':{formatter.current_indent}}{example}\n")


class Program(TyperGroup):
    """The main program. Groups the commands in its help, and turns errors into one line and an exit code."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        width = max(len(name) for name in self.list_commands(ctx))
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            panel = getattr(command, "rich_help_panel", None)
            if command is not None and panel:
                row = (name.ljust(width), command.get_short_help_str(formatter.width - width - 6))
                panels.setdefault(panel, []).append(row)
        for panel in PANELS:
            with formatter.section(panel):
                formatter.write_dl(panels[panel])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        formatter.write("\nHelp for one command: recollect remember --help\nNew here? Run: recollect tour\n")

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        given = _shared_last(list(sys.argv[1:] if args is None else args))
        as_json = "--json" in given[: given.index("--") if "--" in given else None]
        try:
            code = super().main(given, "recollect", complete_var, standalone_mode=False, **extra) or DONE
        except RecollectError as error:
            code = _print_error(_error_name(error), str(error), exit_code(error), as_json)
        except typer.TyperException as error:
            code = _report_misuse(error, as_json)
        except OSError as error:
            code = _print_error("system", _os_error_text(error), STORAGE, as_json)
        if standalone_mode:
            sys.exit(code)
        return code


def _shared_last(args: list[str]) -> list[str]:
    """Return the arguments with shared options moved from before the command to after it."""
    moved: list[str] = []
    while args and (name := args[0].partition("=")[0]) in ("--user", "-u", "--root", "--files", "--json"):
        size = 1 if "=" in args[0] or name == "--json" else 2
        moved, args = moved + args[:size], args[size:]
    return [*args[:1], *moved, *args[1:]] if args else moved


app = typer.Typer(
    cls=Program,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback(invoke_without_command=True)
def _program(
    ctx: typer.Context,
    version: bool = typer.Option(False, "--version", "-V", help="Print the version."),
) -> None:
    """A long-term memory for AI agents and the people who talk to them."""
    if version:
        from recollect import __version__

        typer.echo(f"recollect {__version__}")
    elif ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


WANTED: set[str] | None = None
"""The words of the command line. Only commands named here get their options; with None, all do."""


def command(
    panel: str,
    *examples: str,
    name: str | None = None,
    writes: bool = False,
    mirrors: str | None = None,
    without: Sequence[str] = (),
) -> Callable[[_Verb], _Verb]:
    """Register a function as a command. It receives a `CliSession` and may return an exit code.

    The shared options are added here; ``writes`` adds those for provenance. With ``mirrors``, the arguments of
    that verb become options, and the function receives those that were given as a mapping after the session. Its
    own parameters declare only what differs on the command line.
    """

    def register(verb: _Verb) -> _Verb:
        own = list(inspect.signature(verb, eval_str=True).parameters.values())[2 if mirrors else 1 :]
        shared = [parameter for parameter in SHARED if writes or not parameter.writes]
        called = name or verb.__name__.removesuffix("_command")
        mirrored = verb_of(mirrors) if mirrors and (WANTED is None or called in WANTED) else None
        hidden = {*without, *(one.name for one in own), *(one.name for one in shared)}
        derived = options_of(mirrored, hidden) if mirrored else []

        def run_command(**given: Any) -> None:
            session = CliSession(**{parameter.name: given.pop(parameter.name) for parameter in shared})
            try:
                with session:
                    if mirrored is None:
                        code = verb(session, **given)
                    else:
                        values = {option.name: given.pop(option.name) for option in derived}
                        code = verb(session, verb_values(mirrored, values), **given)
                sys.stdout.flush()
            except InvalidInputError as error:
                named = error if mirrored is None else name_option(mirrored, error)
                raise name_own_option(named, parameters) from None
            except BrokenPipeError:
                # the reader closed the pipe; nothing more may be written, not even at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                code = BROKEN_PIPE
            if code:
                raise typer.Exit(code)

        parameters = [*derived, *own, *(parameter.as_parameter() for parameter in shared)]
        run_command.__name__, run_command.__doc__ = verb.__name__, verb.__doc__
        run_command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run_command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        )
        app.command(called, cls=CliCommand, rich_help_panel=panel, epilog="\n".join(examples))(run_command)
        return verb

    return register


def command_group(
    name: str, panel: str, does: str, *examples: str, cls: type[CliGroup] = CliGroup
) -> Callable[..., Callable[[_Verb], _Verb]]:
    """Make a command that has commands below it, and return the decorator that makes functions such commands.

    ``keys_list_command`` is ``keys list``.
    """
    group = typer.Typer(cls=cls)

    def shared(
        ctx: typer.Context, user: User = "me", root: Root = None, files: Files = None, json: Json = False
    ) -> None:
        # options before the name of the subcommand apply to it, too
        values = {"user": user, "root": root, "files": files, "json": json}
        ctx.default_map = dict.fromkeys(getattr(ctx.command, "commands", ()), values)

    group.callback(help=does)(shared)
    app.add_typer(group, name=name, rich_help_panel=panel, epilog="\n".join(examples))

    def command_below(*examples: str, **options: Any) -> Callable[[_Verb], _Verb]:
        def register(verb: _Verb) -> _Verb:
            called = verb.__name__.removesuffix("_command").removeprefix(f"{name}_")
            command("", *examples, name=called, **options)(verb)
            group.registered_commands.append(app.registered_commands.pop())
            return verb

        return register

    return command_below


def run_program(args: Sequence[str]) -> int:
    """Run the program with these arguments and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and (stream.encoding or "").lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="backslashreplace")
    return int(program().main(args, standalone_mode=False))


def program() -> Program:
    """Return the program with all imported commands."""
    built = typer.main.get_command(app)
    assert isinstance(built, Program)
    return built


def exit_code(error: RecollectError) -> int:
    """Return the exit code for this kind of error."""
    if isinstance(error, NotFoundError | AmbiguousError):
        return NOT_FOUND
    if isinstance(error, LinkError | UndoError | NothingToRebuildError):
        return NO
    return STORAGE if isinstance(error, StoreError) else INVALID


def _error_name(error: Exception) -> str:
    words = re.findall("[A-Z][a-z]+", type(error).__name__.removesuffix("Error"))
    return "_".join(words).lower()


def _os_error_text(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _report_misuse(error: typer.TyperException, as_json: bool) -> int:
    """Report a usage error in one line that names the help, and return the exit code."""
    text = _plain_usage_error(error.format_message().replace("Value error, ", ""))
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "recollect"
    if isinstance(error, ConfirmationError):
        return _print_error("confirmation", text, INVALID, as_json)
    return _print_error("usage", text if as_json else f"{text} (see: {path} --help)", INVALID, as_json)


_INVALID_VALUE = re.compile(r"Invalid value for '?(?P<name>[^' ]+?)'?(?: / '[^']+')*: (?P<problem>.*)", re.DOTALL)
_PROBLEMS = {
    r"Input should be a valid integer\b.*": "must be a whole number",
    r"Input should be a valid number\b.*": "must be a number",
    r"Input should be greater than or equal to (\S+)": r"must be at least \1",
    r"Input should be less than or equal to (\S+)": r"must be at most \1",
}


def _plain_usage_error(text: str) -> str:
    """Return the parser's text about an invalid value in the form of our own errors: ``--limit: must be …``."""
    invalid = _INVALID_VALUE.fullmatch(text)
    if invalid is None:
        return text
    problem = invalid["problem"]
    for theirs, ours in _PROBLEMS.items():
        problem = re.sub(theirs, ours, problem)
    return f"{invalid['name']}: {problem}"


def _print_error(name: str, message: str, code: int, as_json: bool) -> int:
    line = " ".join(message.split())
    told = json.dumps({"error": name, "message": line}) if as_json else f"recollect: {line}"
    print(told, file=sys.stderr)
    return code
