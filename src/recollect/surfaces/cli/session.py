"""One run of a command: its user, its store, its output, and its questions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from recollect.errors import InvalidInputError, NotFoundError
from recollect.surfaces.cli.options import rename_field
from recollect.surfaces.cli.output import Output, plain_data, shorten_line

if TYPE_CHECKING:
    from recollect.app import Recollect
    from recollect.config import Config
    from recollect.memory.memory import Memory
    from recollect.records import Outcome

DONE, NO, INVALID, NOT_FOUND, STORAGE = 0, 1, 2, 3, 4
"""The exit codes: done; not done; invalid input; not found; storage failed."""

TERMINAL = "terminal"
"""The channel of a user of this program."""
_T = TypeVar("_T")
_POSTGRES = ("postgresql://", "postgres://")


class ConfirmationError(typer.BadParameter):
    """A confirmation is needed, and there is no terminal to ask on."""

    def format_message(self) -> str:
        return self.message


class _RehearsalDoneError(Exception):
    """Rolls back the transaction of a rehearsal."""


@dataclass
class CliSession:
    """The values of the shared options, and the memory they select."""

    user: str
    root: str | None
    files: Path | None
    json: bool
    actor: str | None = None
    agent: str | None = None
    session: str | None = None
    run: str | None = None
    untrusted: bool = False
    _opened: Recollect | None = None

    def __enter__(self) -> CliSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            if kind is None:
                self.out.asides(self._opened.user(self.user_id).notices())
            self._opened.close()

    @property
    def out(self) -> Output:
        """The output of the command."""
        return Output(as_json=self.json)

    # the memory

    @property
    def recollect(self) -> Recollect:
        """The app with all memories; opened on first use."""
        if self._opened is None:
            import recollect

            self._opened = recollect.open(config=self.config)
        return self._opened

    @property
    def config(self) -> Config:
        """The settings in effect. Reading them opens nothing."""
        from recollect.config import Config

        try:
            return Config.resolve(self.root, self.files)
        except InvalidInputError as error:
            if error.field != "files":
                raise (rename_field(error, "--root") if error.field == "where" else error) from None
            raise InvalidInputError(
                "--files", "requires PostgreSQL; with a folder (--root) the files are in that folder"
            ) from None

    @property
    def user_id(self) -> str:
        """The user id, or that of the channel this user is linked with."""
        own = (TERMINAL, self.user)
        try:
            found = self.recollect.identities.resolve(own)
        except InvalidInputError as error:
            raise rename_field(error, "--user") from None
        return self.user if found == ":".join(own) else found

    @property
    def memory(self) -> Memory:
        """The memory to write to; the first write creates it."""
        return self._acting(self.recollect.user(self.user_id))

    def _acting(self, memory: Memory) -> Memory:
        return memory.acting(
            self.actor, agent=self.agent, session=self.session, run=self.run, trusted=not self.untrusted
        )

    @property
    def existing_memory(self) -> Memory:
        """The memory to read, which must exist: reading creates nothing."""
        memory = self.memory
        if not memory.exists:
            raise NotFoundError(f"There is no memory for {self.user!r} yet.")
        return memory

    def attribute(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return arguments of a verb with the source of an agent that writes: it is not the person's own word."""
        from recollect.memory.write import Acting

        acting = Acting(actor=self.actor or "person", agent=self.agent)
        return given if acting.is_person or "source" in given else {**given, "source": acting.edits_as}

    # the result

    def print_outcome(self, outcome: Outcome, *, dry_run: bool = False) -> int:
        """Print an outcome and return its exit code."""
        name = type(outcome).__name__.lower()
        self.out.document({"outcome": name, "done": outcome.done, **_dry_run_fields(dry_run), **plain_data(outcome)})
        message = shorten_line(outcome.message, 400)
        if outcome.done:
            self.out.line(message)
        else:
            self.out.aside(message)
        record = getattr(outcome, "record", None)
        if record is not None:
            (self.out.line if outcome.done else self.out.aside)(f"  {record.id}")
        if record is not None and name == "conflict":
            self.out.aside(f'  recollect update {record.key} "…"')
        self.out.asides(outcome.notices)
        self.changed_nothing(dry_run)
        return DONE if outcome.done else NO

    def changed_nothing(self, dry_run: bool) -> None:
        """Print, after a dry run, that nothing was changed."""
        if dry_run:
            self.out.aside("Dry run: nothing was changed.")

    # rehearsals and questions

    def rehearse(self, act: Callable[[Memory], _T]) -> _T:
        """Return what the action would return: run it in a transaction that is then rolled back."""
        outcome: _T
        memory = self.existing_memory
        memory.count()  # reads edits of the files first, so that they are not rolled back too
        try:
            with memory.batch() as trial:
                outcome = act(trial)
                raise _RehearsalDoneError
        except _RehearsalDoneError:
            return outcome

    def rehearse_new(self, act: Callable[[Memory], _T]) -> _T:
        """Return what the action would return for a user who may not have a memory yet; none is created."""
        if self.memory.exists:
            return self.rehearse(act)
        import tempfile

        import recollect

        with tempfile.TemporaryDirectory(prefix="recollect-") as folder, recollect.open(folder) as elsewhere:
            return act(self._acting(elsewhere.user(self.user_id)))

    def may_ask(self, yes: bool, dry_run: bool = False) -> None:
        """Raise an error if a question will follow and there is no terminal to ask on."""
        if not yes and not dry_run and not _is_terminal():
            raise ConfirmationError("this needs a confirmation, but there is no terminal to ask on; add --yes")

    def agreed(self, question: str, yes: bool) -> bool:
        """Return True if --yes was given or the person answers yes."""
        if yes:
            return True
        self.may_ask(yes)
        sys.stdout.flush()
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return True
        print("Nothing was changed.", file=sys.stderr)
        return False


def read_text_argument(argument: str) -> str:
    """Return the text itself, or standard input for ``-``."""
    if argument != "-":
        return argument
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError("standard input", "is not UTF-8 text") from None


def read_file_argument(option: str, name: str) -> str:
    """Return the exact text of a file, or of standard input for ``-``."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        raise InvalidInputError(option, f"cannot read {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(option, f"{'standard input' if name == '-' else name} is not UTF-8 text") from None


def parse_pairs(given: Sequence[str] | None) -> dict[str, str] | None:
    """Return ``NAME=VALUE`` options as a mapping, or None if there are none."""
    if not given:
        return None
    if wrong := next((pair for pair in given if "=" not in pair), None):
        raise InvalidInputError("--metadata", f"{wrong!r} is not NAME=VALUE")
    return {name.strip(): value for name, _, value in (pair.partition("=") for pair in given)}


def _dry_run_fields(dry_run: bool) -> dict[str, bool]:
    return {"dry_run": True} if dry_run else {}


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
