"""The results of calls, and the wording of errors."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Literal

from recollect.errors import InvalidInputError, RecollectError, StoreError
from recollect.tools.parameters import ArgumentsError
from recollect.tools.tool import Tool, ToolAnswer

LOGGER = logging.getLogger("recollect.tools")

Status = Literal["ok", "queued", "refused", "invalid", "error", "timeout", "limited"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a call. ``text`` is for the model; the rest is for the host."""

    text: str
    status: Status
    outcome: str
    tool: str
    call: str
    latency_ms: float
    content: Any = None
    """The answer before it became text."""
    ignored: tuple[str, ...] = ()
    """Arguments that the tool does not have."""

    @property
    def is_error(self) -> bool:
        """True if the call failed. A refusal by the policy is not a failure."""
        return self.status not in ("ok", "queued", "refused")

    def __str__(self) -> str:
        return self.text


def answer_to_error(tool: Tool, error: RecollectError) -> tuple[ToolAnswer, Status]:
    """Return the answer to the model for a Recollect error."""
    if isinstance(error, ArgumentsError):
        return ToolAnswer(str(error), "bad arguments"), "invalid"
    if isinstance(error, InvalidInputError):
        field, _, item = error.field.partition("[")
        name = tool.fields.get(field) or (f"{field}[{item}" if item else field)
        return ToolAnswer(f"{name}: {str(error).partition(': ')[2]}", "bad arguments"), "invalid"
    if isinstance(error, StoreError):
        LOGGER.error("%s failed: %s", tool.name, type(error).__name__)
    return ToolAnswer(str(error), type(error).__name__), "error"


def answer_to_crash(tool: Tool, call: str, error: BaseException) -> tuple[ToolAnswer, Status]:
    """Return the answer for an unexpected error, and log its type."""
    # not the message or the traceback: both may contain what a user said
    LOGGER.error("%s failed: %s (call %s)", tool.name, type(error).__name__, call)
    said = "something went wrong inside; whether it was done is in the journal"
    return ToolAnswer(f"{said} (call {call})", type(error).__name__), "error"


def mark_failure(tool: Tool, answer: ToolAnswer, status: Status) -> str | dict[str, Any] | list[Any]:
    """Return the content of an answer, with errors marked in the form of the suite."""
    content = answer.content
    if answer.exact or not isinstance(content, str) or status == "ok":
        return content
    if tool.json:
        return {"status": "refused" if status == "refused" else "error", "message": content}
    return content if status in ("refused", "queued") else f"Error: {content}"


def preview_text(value: object) -> str:
    """Return a short form of what a model gave."""
    text = str(value).encode("utf-8", errors="replace").decode("utf-8")
    return repr(text if len(text) <= 40 else text[:37] + "…")
