"""The guided tour: real commands with their real output, in a temporary folder."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import typer

from recollect.surfaces.cli.program import START, command, run_program
from recollect.surfaces.cli.session import CliSession
from recollect.userid import folder_name

_KEY = "sk-proj-" + "4f9aXb72Lq" * 3


@dataclass(frozen=True, slots=True)
class Step:
    """A step: the explanation, the command, and a line to add to MEMORY.md first."""

    says: str
    types: tuple[str, ...]
    adds: str = ""


STEPS = (
    Step(
        "Store something about yourself. A fact can have a key ...",
        ("remember", "Engineer", "--key", "role", "-c", "work_context"),
    ),
    Step("... or just be a sentence.", ("remember", "Prefers short summaries", "-c", "preference")),
    Step("Things that matter only today go into the daily note.", ("jot", "Read a paper on BM25")),
    Step("The facts known about you are in one file, MEMORY.md.", ("show",)),
    Step("Search in your own words; inflection does not matter.", ("search", "summary")),
    Step(
        "The same fact, written differently, is not stored twice.",
        ("remember", "prefers SHORT summaries!", "-c", "preference"),
    ),
    Step("Recognised secrets are refused.", ("remember", f"My key is {_KEY}")),
    Step("Things change. The old value is kept in the history.", ("update", "role", "Staff engineer")),
    Step(
        "The file is yours: edit it with any editor. Suppose you add the line below.\n"
        "Your edits win and take effect at once.",
        ("read", "--key", "city"),
        adds="- City: Lviv",
    ),
    Step("Why does it know that?", ("why", "city")),
    Step("Every change is in the journal ...", ("history",)),
    Step("... and can be undone.", ("undo", "4")),
    Step("The role is what it was before.", ("read", "--key", "role")),
    Step("Check that database, journal and files agree.", ("verify",)),
)

NEXT = (
    ('recollect remember "I drink tea, not coffee"', "start your own memory"),
    ("recollect show", "read it"),
    ("recollect config", "see where it is stored"),
    ("recollect import ~/notes --dry-run", "import your notes"),
    ("recollect --help", "everything else"),
)


@command(START, "recollect tour")
def tour_command(session: CliSession) -> None:
    """See what Recollect does, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="recollect-tour-") as folder:
        if session.json:
            steps = [
                {"says": step.says, "adds": step.adds, "command": _command_line(step), "output": output}
                for step, output in _run_steps(Path(folder), session.user)
            ]
            session.out.document({"steps": steps, "next": [line for line, _ in NEXT]})
            return
        session.out.line("A tour of Recollect in a temporary folder. Your own data is not touched.")
        for step, output in _run_steps(Path(folder), session.user):
            session.out.line(f"\n{step.says}")
            if step.adds:
                typer.secho(f"\n  MEMORY.md + {step.adds}", fg="green")
            typer.secho(f"\n  $ {_command_line(step)}", bold=True)
            for line in output.splitlines():
                session.out.line(textwrap.fill(line, 78, initial_indent="  ", subsequent_indent="  ") or "")
    session.out.line("\nThat's it. The temporary folder has been removed. Next steps:\n")
    name = "recollect" if shutil.which("recollect") else os.path.relpath(sys.argv[0])
    session.out.pairs([(line.replace("recollect", name, 1), meaning) for line, meaning in NEXT])


def _run_steps(folder: Path, user: str) -> Iterator[tuple[Step, str]]:
    for step in STEPS:
        if step.adds:
            file = folder / folder_name(user) / "MEMORY.md"
            text = file.read_text(encoding="utf-8")
            heading = "## Personal Context\n"
            file.write_text(text.replace(heading, f"{heading}\n{step.adds}", 1), encoding="utf-8")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            run_program([*step.types, "--root", str(folder), "--user", user])
        yield step, printed.getvalue()


def _command_line(step: Step) -> str:
    words = (word if word.replace("-", "").replace("_", "").isalnum() else shlex.quote(word) for word in step.types)
    return " ".join(("recollect", *words)).replace("'", '"')
