"""What can be asked over HTTP: each verb of `Memory` has a route of its name, below the user it is about.

``POST /v1/users/42/remember`` takes the arguments of `Memory.remember` as a JSON object. What only reads, and takes
nothing that a person said, is asked with ``GET``: addresses are written down by proxies, bodies are not. Both the
server and the client go by this table, and a test holds it against `Memory`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_type_hints

from recollect.core.memory import Memory

Scope = Literal["read", "write", "admin"]
NOT_SENT = frozenset({"progress"})
"""Arguments that stay where the caller is."""


@dataclass(frozen=True)
class Verb:
    """One verb of `Memory`, as it is asked over HTTP."""

    name: str
    method: Literal["GET", "POST"]
    scope: Scope
    paged: bool = False
    """Its answer is a list that may be long, and comes in pages."""
    erases: bool = False
    """It removes for good: nothing that was answered before may be kept."""

    @property
    def function(self) -> Callable[..., Any]:
        """The method of `Memory` that does it."""
        found: Callable[..., Any] = getattr(Memory, self.name)
        return found

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.scope != "read"

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What it takes, without the memory itself."""
        found = list(inspect.signature(self.function).parameters.items())[1:]
        return {name: parameter for name, parameter in found if name not in NOT_SENT}

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The types of its arguments, and of what it returns."""
        return get_type_hints(self.function)

    @property
    def returns(self) -> Any:
        """The type of what it returns."""
        return self.hints["return"]

    @property
    def does(self) -> str:
        """What it does, in a sentence."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    def call(self, memory: Any, arguments: dict[str, Any]) -> Any:
        """Do it."""
        many = next((name for name, one in self.parameters.items() if one.kind is one.VAR_POSITIONAL), None)
        if many is None:
            return getattr(memory, self.name)(**arguments)
        return getattr(memory, self.name)(*arguments.get(many, ()))


def _reads(*names: str, method: Literal["GET", "POST"] = "GET", paged: bool = False) -> list[Verb]:
    return [Verb(name, method, "read", paged=paged) for name in names]


def _writes(*names: str, erases: bool = False) -> list[Verb]:
    return [Verb(name, "POST", "write", erases=erases) for name in names]


VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        *_writes("remember", "note", "observe", "episode", "say", "jot", "set_scratch", "update", "edit", "forget"),
        *_writes("merge", "pin", "mark_important", "pause", "resume", "consent", "spend", "report", "report_many"),
        *_writes("note_run", "undo", "notices"),
        *_writes("erase", "erase_topic", "clear", erases=True),
        *_reads("count", "show", "daily", "days", "numbers", "numbered", "consents", "usage", "runs", "verify"),
        *_reads("similar"),
        *_reads("interactions", "calls", "sessions", paged=True),
        *_reads("get", "scratch", "why", "search", "context", "rank", "unread", method="POST"),
        *_reads("read", "history", method="POST", paged=True),
        *(Verb(name, "POST", "admin") for name in ("rebuild", "rebuild_index", "embed", "upkeep")),
    )
}

ELSEWHERE = {
    "acting": "the header Recollect-Acting",
    "batch": "POST /v1/users/{user}/batch",
    "export": "GET /v1/users/{user}/export, a stream",
    "import_": "POST /v1/users/{user}/import, a stream",
}
"""Verbs that are asked in another way."""

ACTING = "recollect-acting"
"""The header that tells on whose behalf: a JSON object of what `Memory.acting` takes."""
IDEMPOTENCY = "idempotency-key"
PAGE = 500
"""How many items a page has, unless asked otherwise."""
