"""Line input: with editing, history and completion on a terminal, plain from a pipe.

The history is read from the memory and has no file of its own. So it is masked, retained and erased with the memory,
and what is said while incognito is in no history.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

from recollect.memory.memory import Memory
from recollect.records import Message
from recollect.surfaces.chat.conversation import COMMANDS

VERBS = (
    "search", "forget", "why", "undo", "pause", "resume", "incognito", "clear", "export", "link", "web",
    "reminders", "trends", "help",
)  # fmt: skip
_MOST = 200


class TerminalLines:
    """Reads lines from a terminal."""

    def __init__(self, memory: Memory, place: str, prompt: str) -> None:
        import readline

        self._prompt, self._place = prompt, place
        self._commands: list[str] = []
        self.remember(memory)
        readline.set_auto_history(False)
        readline.set_completer_delims("")
        readline.set_completer(_completer(_commands()))
        readline.parse_and_bind("tab: complete")

    def next(self) -> str:
        """Return the next line. Raise `EOFError` at the end, `KeyboardInterrupt` on Ctrl-C."""
        while True:
            try:
                return self._kept(input(self._prompt))
            except EOFError:
                print()  # leave the line of the prompt
                raise
            except UnicodeDecodeError:
                print("That is not UTF-8 text.", file=sys.stderr)

    def remember(self, memory: Memory) -> None:
        """Reload the history: what the memory still holds, and the commands since the last erasure."""
        import readline

        last = memory.history(limit=1)
        if last and last[0].op in ("erase", "clear"):
            self._commands.clear()
        readline.clear_history()
        for text in [*earlier_inputs(memory, self._place), *self._commands]:
            readline.add_history(text)

    def _kept(self, line: str) -> str:
        import readline

        if line.startswith("/"):
            self._commands.append(line)
        if line.strip():
            readline.add_history(line)
        return line


class PipedLines:
    """Reads lines from a file or another program."""

    def next(self) -> str:
        """Return the next line. Raise `EOFError` at the end."""
        line = sys.stdin.buffer.readline()
        if not line:
            raise EOFError
        return line.decode("utf-8", errors="replace").lstrip("\ufeff").rstrip("\r\n")

    def remember(self, memory: Memory) -> None:
        """Do nothing: there is no history."""


def earlier_inputs(memory: Memory, place: str) -> list[str]:
    """Return what the person said in this place, oldest first, without repetitions."""
    found = memory.read(kind="message", newest_first=True, limit=_MOST)
    own = [one for one in found if isinstance(one, Message) and one.role == "user" and one.trusted]
    here = [one.content for one in own if (one.session or "").rpartition("@")[0] == place]
    return [text for text in reversed(dict.fromkeys(here)) if "\n" not in text]


def _commands() -> list[str]:
    memory, *others = COMMANDS
    return [memory, *(f"{memory} {verb}" for verb in VERBS), *others]


def _completer(known: Sequence[str]) -> Callable[[str, int], str | None]:
    def complete(typed: str, state: int) -> str | None:
        return next(iter([*_fitting(known, typed)][state:]), None)

    return complete


def _fitting(known: Sequence[str], typed: str) -> Iterable[str]:
    """Return commands that begin with the typed text, completed by one word."""
    if not typed.startswith("/"):
        return []
    words = typed.count(" ")
    return [f"{one} " for one in known if one.startswith(typed.lower()) and one.count(" ") == words]
