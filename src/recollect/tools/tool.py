"""The declaration of a tool: its name, description, parameters, safety tier, timeout and function.

::

    @tool("notes", does="remember", timeout=10)
    def memory_save(scope: Scope, content: Annotated[str, Arg(says="Text to save")]) -> Answer:
        '''Save an important piece of information to your persistent memory.'''
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal

from recollect.memory.memory import Memory
from recollect.records import Outcome, Record, Refused
from recollect.tools.parameters import Parameter, parameters_of, schema_of

Tier = Literal["read_only", "side_effecting", "destructive"]
Does = Literal["recall", "remember", "change", "forget", "other"]
_REWRITTEN = frozenset({"fact", "note", "daily"})
_KEPT = {
    "message": "a message, which stays as it was said",
    "observation": "an observation, which stays as it was made; remember a new one instead",
    "episode": "an episode; update_episode adds to it",
    "scratch": "in the scratchpad; scratchpad_set replaces it",
}


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer of a tool: text or JSON-compatible data. ``outcome`` is one word for the log."""

    content: str | dict[str, Any] | list[Any]
    outcome: str = "done"
    status: Literal["ok", "refused", "error"] = "ok"
    exact: bool = False
    """True if the text is returned unchanged, even for an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The context of a call: the memory, limited to the chat if there is one, and the conversation."""

    memory: Memory
    tool: str
    session: str | None = None
    people: tuple[str, ...] = ()
    """The users the conversation can reach: the user, or all participants."""
    others: tuple[Memory, ...] = ()
    """The memories of the other participants, limited to the chat. Tools only read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool. All schemas and documentation are derived from this."""

    name: str
    suite: str
    title: str
    description: str
    parameters: tuple[Parameter, ...]
    tier: Tier
    does: Does
    idempotent: bool
    timeout: float
    json: bool
    """True if it answers in JSON, including errors."""
    run: Callable[..., ToolAnswer] = field(repr=False)
    reads: Callable[[Mapping[str, Any]], bool] = field(default=lambda _: False, repr=False)
    """Returns True if a call with these arguments only reads, for a tool that can also write."""
    waits: bool = False
    """True if a reply waits for the whole timeout, because the tool calls a model."""
    semantic: tuple[str, str] = ("", "")
    """Words of the description, and those that take their place where an embedder is set."""
    fields: dict[str, str] = field(default_factory=dict, repr=False)
    """The tool's names of parameters that the core names differently, for error messages."""

    @property
    def version(self) -> str:
        """The version of its definition: another one if its name, description or schema changes."""
        definition = json.dumps([self.name, self.description, self.schema()], sort_keys=True)
        return blake2b(definition.encode(), digest_size=4).hexdigest()

    def with_embedder(self) -> Tool:
        """Return the same tool, described as it works where an embedder is set."""
        plain, semantic = self.semantic
        return replace(self, description=self.description.replace(plain, semantic)) if plain else self

    def schema(self, *, with_user: bool = True) -> dict[str, Any]:
        """Return the JSON Schema of its arguments, without the user where the connection decides it."""
        return schema_of([parameter for parameter in self.parameters if with_user or not parameter.arg.user])


def tool(
    suite: str,
    *,
    does: Does,
    timeout: float,
    tier: Tier | None = None,
    idempotent: bool | None = None,
    json: bool = True,
    fields: dict[str, str] | None = None,
    name: str | None = None,
    reads: Callable[[Mapping[str, Any]], bool] | None = None,
    semantic: tuple[str, str] = ("", ""),
) -> Callable[[Callable[..., ToolAnswer]], Tool]:
    """Declare a tool. Its docstring is its description for the model; its first parameter is the `Scope`."""

    def declare(function: Callable[..., ToolAnswer]) -> Tool:
        called = name or function.__name__
        level: Tier = tier or ("read_only" if does == "recall" else "side_effecting")
        return Tool(
            name=called,
            suite=suite,
            title=called.replace("_", " ").capitalize(),
            description=" ".join(inspect.cleandoc(function.__doc__ or "").split()),
            parameters=parameters_of(function),
            tier=level,
            does=does,
            idempotent=level == "read_only" if idempotent is None else idempotent,
            timeout=timeout,
            json=json,
            run=function,
            fields=fields or {},
            semantic=semantic,
            reads=reads or (lambda _: level == "read_only"),
        )

    return declare


def outcome_of(outcome: Outcome) -> str:
    """Return an outcome as one word: written, duplicate, refused: paused."""
    said = type(outcome).__name__.lower()
    return f"{said}:{outcome.reason}" if isinstance(outcome, Refused) else said


def record_of(outcome: Outcome) -> Record:
    """Return the record of an outcome."""
    record = getattr(outcome, "record", None)
    assert isinstance(record, Record)
    return record


def refusal_to_change(record: Record) -> ToolAnswer | None:
    """Return the answer of a tool that would rewrite something other than a fact, a note or a daily entry, or None."""
    if record.kind in _REWRITTEN:
        return None
    told = f"Not changed: {record.id} is {_KEPT.get(record.kind, 'not a note')}."
    return ToolAnswer(told, f"refused:{record.kind}", "refused")


def refusal_to_delete(record: Record) -> ToolAnswer | None:
    """Return the answer of a tool that would delete a message, or None."""
    if record.kind != "message":
        return None
    told = f"Not deleted: {record.id} is {_KEPT['message']}. The person can erase it themselves."
    return ToolAnswer(told, "refused:message", "refused")


def refusal_answer(outcome: Outcome) -> ToolAnswer:
    """Return the answer of a JSON suite to a refusal by the policy."""
    return ToolAnswer({"status": "refused", "message": outcome.message}, outcome_of(outcome), "refused")
