"""The actor of a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from recollect.records import USER_EDIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """The actor of a change, with its session, run and tool call."""

    actor: str = "person"
    agent: str | None = None
    session: str | None = None
    chat: str | None = None
    """The chat it is done in, which limits what is read and written, see `recollect.memory.chat_scope`."""
    run: str | None = None
    call: str | None = None
    trusted: bool = True
    may_be_done: Callable[[], bool] | None = field(default=None, compare=False, repr=False)
    """Returns True if another process may have made the same call meanwhile; it is then not repeated."""

    @property
    def is_person(self) -> bool:
        """True for the person themselves, not an agent in their name."""
        return self.actor == "person" and self.agent is None

    @property
    def edits_as(self) -> str:
        """The source of what this actor writes into a file. Only the person's own is a `USER_EDIT`."""
        if self.is_person:
            return USER_EDIT
        name = self.agent if self.actor == "person" else self.actor
        return f"tool:{(name or '').removeprefix('tool:')}"


class DoneAlreadyError(Exception):
    """Another process has made this call; nothing was done here."""
