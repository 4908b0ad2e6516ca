"""The command line: every verb of the public API, for people and for scripts.

Each command is a few lines over one public call. `program` builds the program and adds the shared options.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run `recollect`: the entry point of the program."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # answered before the slow import of typer
        from recollect import __version__

        print(f"recollect {__version__}")
        return
    from recollect.surfaces.cli import program

    words = set(sys.argv[1:])
    program.WANTED = None if not words or "tour" in words else words  # the tour runs other commands
    # importing the commands makes them part of the program
    from recollect.surfaces.cli import (  # noqa: F401
        bench,
        chat,
        extraction,
        identity,
        interaction_commands,
        interests,
        keys,
        mcp,
        memory_commands,
        read_commands,
        remove_commands,
        serve,
        telegram,
        tools,
        tour,
        usage_metrics,
        work,
        write_commands,
    )

    sys.exit(program.run_program(sys.argv[1:]))
