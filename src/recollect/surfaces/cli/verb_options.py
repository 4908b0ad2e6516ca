"""The options of commands that mirror a verb: name, type, default and help come from its declaration.

A positional argument stays one, ``valid_from=`` becomes ``--valid-from``, and a list becomes a repeatable option:
``tags=`` is ``--tag``. Metadata is given as ``NAME=VALUE``.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from recollect.errors import InvalidInputError
from recollect.surfaces.cli.options import rename_field
from recollect.surfaces.cli.session import parse_pairs, read_text_argument

if TYPE_CHECKING:
    from recollect.verbs import Argument, Verb

_SHORT = {"key": "-k", "category": "-c", "tags": "-t", "limit": "-l"}


def verb_of(name: str) -> Verb:
    """Return a verb by its name. This loads the library, which the program's help avoids."""
    import recollect.memory.memory  # noqa: F401  # fills the table
    from recollect.verbs import VERBS

    return VERBS[name]


def options_of(verb: Verb, without: Collection[str] = ()) -> list[inspect.Parameter]:
    """Return the arguments of a verb as parameters of a command."""
    return [_parameter(one) for name, one in verb.parameters.items() if name not in without]


def verb_values(verb: Verb, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given on the command line as arguments of a verb."""
    given = {name: value for name, value in values.items() if value is not None and value != []}
    for name, value in given.items():
        field = verb.parameters[name].field
        if name == "metadata":
            given[name] = parse_pairs(value)
        elif field is not None and field.stdin:
            given[name] = read_text_argument(value)
    return given


def option_name(argument: Argument) -> str:
    """Return the option name of an argument."""
    name = argument.name.removesuffix("s") if _is_list(argument) else argument.name
    return f"--{name.replace('_', '-')}"


def name_option(verb: Verb, error: InvalidInputError) -> InvalidInputError:
    """Return the error of an argument with the name of its option as it is typed: ``--valid-from``, ``--tag``."""
    argument = verb.parameters.get(error.field.partition("[")[0])
    return error if argument is None or argument.is_positional else rename_field(error, option_name(argument))


def _parameter(argument: Argument) -> inspect.Parameter:
    field = argument.field
    assert field is not None
    default = argument.default
    named = _is_list(argument) or argument.type is int or argument.name == "source"
    optional = named and not argument.is_required
    if argument.is_positional and not optional:
        shown = typer.Argument(help=field.help, metavar=field.metavar, show_default=False)
        default = default if default is None else inspect.Parameter.empty
    else:
        name = option_name(argument)
        if argument.type is bool and argument.is_optional:
            name = f"{name}/--no-{name.removeprefix('--')}"
        short = [_SHORT[argument.name]] if argument.name in _SHORT else []
        shown = typer.Option(name, *short, help=field.help, metavar=field.metavar)
        # None: not given. The source depends on who writes (`CliSession.attribute`)
        default = None if default == () or argument.name == "source" else default
    kind = _type_of(argument)
    return inspect.Parameter(
        argument.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind if default not in (None, ()) else kind | None, shown],
    )


def _type_of(argument: Argument) -> Any:
    assert argument.field is not None
    if _is_list(argument) or argument.name == "metadata":
        return list[str]
    if words := argument.field.schema.get("enum"):
        return Literal[tuple(words)]
    if argument.type is date or date in get_args(argument.type):
        return str
    return argument.type


def _is_list(argument: Argument) -> bool:
    return argument.field is not None and argument.field.items is not None
