"""`recollect bench`: the benchmarks of a source checkout. The installed package does not contain them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from recollect.errors import InvalidInputError
from recollect.surfaces.cli.program import START, CliCommand, app

CHECKOUT = Path(__file__).parents[4]


def add_commands(checkout: Path = CHECKOUT) -> None:
    """Add the commands of ``benchmarks/``; in an installed package, a command that says where to find them."""
    if (checkout / "benchmarks" / "command.py").is_file():
        sys.path.insert(0, str(checkout))
        import_module("benchmarks.command")
        sys.path.remove(str(checkout))
    else:
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        app.command(
            "bench", cls=CliCommand, rich_help_panel=START, epilog="recollect bench --help", context_settings=anything
        )(_explain)


def _explain() -> None:
    """Measure search quality and speed (from a source checkout)."""
    raise InvalidInputError("bench", "needs a source checkout; clone the repository and run it from there")


add_commands()
