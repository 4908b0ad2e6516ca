"""python examples/hn_companion [--folder FOLDER] [--interactive]: see the README.md one folder up."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from companion import Companion
from prompt import Prompt
from story import Clock, Story

from recollect import RecollectError

parser = argparse.ArgumentParser(prog="hn_companion", description="A small Hacker News companion that remembers.")
parser.add_argument("--folder", type=Path, help="keep the memories here; otherwise in a temporary folder")
parser.add_argument("--interactive", action="store_true", help="be a reader yourself")
given = parser.parse_args()

with tempfile.TemporaryDirectory() as temporary:
    folder = given.folder or Path(temporary)
    try:
        if given.interactive:
            with Companion(folder) as companion:
                Prompt(companion, "you").run()
        else:
            clock = Clock(folder)
            with Companion(folder, clock=clock) as companion:
                Story(companion, clock).tell()
    except (RecollectError, OSError) as error:
        parser.exit(1, f"{error}\n")
