"""The command line: every verb of the public API, for people and for scripts.

Each command is a few lines over one public call. `program` holds the program itself and what all commands
share, `writing`, `reading`, `removing` and `whole` the commands, `tour` the guided tour.
"""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point of `recollect`."""
    from recollect.surfaces.cli.program import run

    sys.exit(run(sys.argv[1:]))
