"""The structured answer of an extraction: a `DailyMemoryUpdate` with a list of `MemoryEntry`.

A model that cannot call tools answers with one, as JSON. Host applications can use the same types.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

Category = Literal["preference", "work_context", "personal_context", "reading_history"]
Action = Literal["add", "update", "remove"]
MOST_ENTRIES = 40
"""The number of entries of one answer that are used."""


class MemoryEntry(BaseModel):
    """One thing to add to the memory, to update in it or to remove from it."""

    category: Category
    key: str
    value: str
    action: Action
    confidence: float = Field(ge=0, le=1, strict=True, allow_inf_nan=False)
    source: str = "batch_extraction"
    message: Annotated[int, Field(strict=True)] | None = None
    """The number of the message that it cites, 0 if it comes from reactions and saves, None if it cites nothing."""
    quote: str | None = None
    """The words of that message that support it."""

    @model_validator(mode="after")
    def _says_something(self) -> MemoryEntry:
        if self.action != "remove" and not self.value.strip():
            raise ValueError("value is empty")
        return self


class DailyMemoryUpdate(BaseModel):
    """What a day brought: entries for the memory, Markdown for the daily note, and one line on what changed."""

    user_id: str = ""
    date: str = ""
    memory_updates: list[MemoryEntry] = Field(default_factory=list)
    daily_notes: str = ""
    summary: str = ""

    @field_validator("daily_notes", mode="before")
    @classmethod
    def _as_markdown(cls, given: Any) -> Any:
        """Accept a list of lines."""
        if isinstance(given, list) and all(isinstance(line, str) for line in given):
            return "\n".join(f"- {part}" for line in given for part in line.splitlines() if part.strip())
        return given


def read_update(data: Any) -> DailyMemoryUpdate:
    """Return a model's answer; parts may be missing. Raise ValueError with a sentence for the model if it is wrong."""
    if not isinstance(data, dict) or not data.keys() & DailyMemoryUpdate.model_fields.keys():
        raise ValueError("the answer must be an object with memory_updates, daily_notes and summary")
    given = {name: _storable(value) for name, value in data.items() if value is not None}
    if isinstance(entries := given.get("memory_updates"), list):
        given["memory_updates"] = entries[:MOST_ENTRIES]
    try:
        return DailyMemoryUpdate.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        raise ValueError(f"{place}: {first['msg']}") from None


def _storable(value: Any) -> Any:
    """Return data without lone surrogates, which are not text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_storable(item) for item in value[:1000]]
    return {name: _storable(item) for name, item in value.items()} if isinstance(value, dict) else value
