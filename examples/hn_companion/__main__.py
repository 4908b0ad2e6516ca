"""python examples/hn_companion [--folder FOLDER] [--interactive]: see the README.md one folder up."""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path

from companion import Companion
from prompt import Prompt
from story import Story

from recollect.testing import FrozenClock


def main() -> None:
    """Tell the story, or talk with the one at the keyboard."""
    parser = argparse.ArgumentParser(prog="hn_companion", description="A small Hacker News companion that remembers.")
    parser.add_argument("--folder", type=Path, help="keep the memories here; otherwise in a temporary folder")
    parser.add_argument("--interactive", action="store_true", help="be a reader yourself")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if given.interactive:
            Prompt(stack.enter_context(Companion(folder)), "you").run()
        else:
            clock = FrozenClock()
            Story(stack.enter_context(Companion(folder, clock=clock)), clock).tell()


if __name__ == "__main__":
    main()
