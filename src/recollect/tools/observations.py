"""The suite `observations`: an agent's findings, insights and lessons, and its scratchpad, answered in JSON.

One of four dialects over the same memory; `recall` finds what the others stored too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Literal

from recollect.errors import InvalidInputError, NotFoundError
from recollect.records import Hit, Outcome, Record, Refused
from recollect.text import fold
from recollect.tools.formatting import created_text, mark_untrusted, memory_text
from recollect.tools.parameters import Arg, ArgumentsError
from recollect.tools.tool import Scope, ToolAnswer, outcome_of, record_of, refusal_answer, tool

Category = Literal["finding", "insight", "lesson"]
_SAYS_CATEGORY = "finding = a factual discovery, insight = a conclusion or decision, lesson = guidance for the future"
_SAYS_SOURCE = "Where it comes from (e.g., 'GOAL:step-name', 'session:xyz')"
_SAYS_KEY = "Name of the value (e.g., 'current_task', 'api.endpoint')"
_FIELDS = {"ref": "id"}


@tool("observations", does="remember", timeout=10)
def remember_observation(
    scope: Scope,
    content: Annotated[str, Arg(says="What was observed, in plain words (e.g., 'API rate limit is 100/min')")],
    category: Annotated[Category, Arg(says=_SAYS_CATEGORY)],
    source: Annotated[str | None, Arg(aside=True, says=_SAYS_SOURCE)] = None,
) -> ToolAnswer:
    """Remember one observation you made while working: a finding, an insight or a lesson. Returns its id."""
    outcome = scope.memory.observe(content, category, source=source or f"tool:{scope.tool}")
    if isinstance(outcome, Refused):
        return refusal_answer(outcome)
    return ToolAnswer(_outcome_fields(outcome), outcome_of(outcome))


class _RefusedError(Exception):
    """Rolls back a batch of which something was refused."""


@tool("observations", does="remember", timeout=10)
def remember_fil(
    scope: Scope,
    findings: Annotated[list[str] | None, Arg(says="Factual discoveries")] = None,
    insights: Annotated[list[str] | None, Arg(says="Conclusions or decisions")] = None,
    lessons: Annotated[list[str] | None, Arg(says="Guidance for the future")] = None,
    source: Annotated[str | None, Arg(aside=True, says=_SAYS_SOURCE)] = None,
) -> ToolAnswer:
    """Remember the findings, insights and lessons of one step at once: all of them are stored, or none.
    Returns their ids in this order."""
    groups = {"findings": findings or [], "insights": insights or [], "lessons": lessons or []}
    if not any(groups.values()):
        return ToolAnswer("give at least one of findings, insights and lessons", "empty", "error")
    told: list[dict[str, Any]] = []
    with suppress(_RefusedError), scope.memory.batch() as memory:
        for name, texts in groups.items():
            for number, text in enumerate(texts):
                try:
                    outcome = memory.observe(text, name.removesuffix("s"), source=source or f"tool:{scope.tool}")
                except InvalidInputError as error:
                    field, _, problem = str(error).partition(": ")
                    said_of = f"{name}[{number}]" if field == "content" else field
                    raise ArgumentsError(f"{said_of}: {problem}; nothing was stored") from None
                told.append(_outcome_fields(outcome) | {"where": f"{name}[{number}]"})
        refused = [f"{one['where']}: {one['message']}" for one in told if one["status"] == "refused"]
        if refused:
            raise _RefusedError
    if refused:
        told_why = {"status": "refused", "ids": [], "message": "Nothing was stored.", "refused": refused}
        return ToolAnswer(told_why, "refused", "refused")
    return ToolAnswer({"status": "success", "ids": [one["id"] for one in told]}, "written")


@tool("observations", does="recall", timeout=15, fields=_FIELDS)
def retrieve_by_id(scope: Scope, id: Annotated[str, Arg(says="The id of what was remembered")]) -> ToolAnswer:
    """Get one remembered item by its id."""
    record = scope.memory.get(id)
    if record.status != "active":
        raise NotFoundError(f"{record.id} was forgotten")
    return ToolAnswer(_record_fields(record), "found")


@tool("observations", does="recall", timeout=15)
def recall(
    scope: Scope,
    query: Annotated[str, Arg(says="What to recall, in plain words")],
    limit: Annotated[int, Arg(at_least=1, at_most=100, declared=True, says="Max results (default: 10)")] = 10,
    min_score: Annotated[
        float, Arg(low=0, high=1, declared=True, says="Minimum score, from 0 to 1 (default: 0)")
    ] = 0.0,
) -> ToolAnswer:
    """Recall what is relevant to a query from the whole memory, all categories mixed, best first."""
    hits = scope.memory.search(query, limit=limit, min_score=min_score)
    return ToolAnswer([_scored_fields(hit) for hit in hits], "found" if hits else "empty")


@tool("observations", does="recall", timeout=15)
def recall_by_category(
    scope: Scope,
    query: Annotated[str, Arg(says="What to recall, in plain words")],
    category: Annotated[Category, Arg(says=_SAYS_CATEGORY)],
    limit: Annotated[int, Arg(at_least=1, at_most=100, declared=True, says="Max results (default: 5)")] = 5,
) -> ToolAnswer:
    """Recall observations of one category, best first, as texts."""
    found = _search_texts(scope, query, category, limit)
    return ToolAnswer(found, "found" if found else "empty")


@tool("observations", does="recall", timeout=15)
def recall_fil(
    scope: Scope,
    query: Annotated[str, Arg(says="What to recall, in plain words")],
    limit_per_category: Annotated[
        int, Arg(at_least=1, at_most=100, declared=True, says="Max results of each category (default: 5)")
    ] = 5,
) -> ToolAnswer:
    """Recall observations as findings, insights and lessons."""
    names = {"findings": "finding", "insights": "insight", "lessons": "lesson"}
    found = {name: _search_texts(scope, query, category, limit_per_category) for name, category in names.items()}
    return ToolAnswer(found, "found" if any(found.values()) else "empty")


# the scratchpad


@tool("observations", does="other", tier="read_only", timeout=15)
def scratchpad_get(scope: Scope, key: Annotated[str, Arg(says=_SAYS_KEY)]) -> ToolAnswer:
    """Get a value from your scratchpad, the working memory that is kept between steps."""
    key = _resolve_key(scope, key)
    value = scope.memory.scratch(key)
    if value is None:
        raise NotFoundError(f"there is nothing under {key!r}; scratchpad_list lists the keys")
    return ToolAnswer({"status": "success", "key": key, "value": memory_text(value)}, "found")


@tool("observations", does="other", timeout=10, idempotent=True)
def scratchpad_set(
    scope: Scope,
    key: Annotated[str, Arg(says=_SAYS_KEY)],
    value: Annotated[str, Arg(says="The value; it replaces the previous one")],
) -> ToolAnswer:
    """Put a value into your scratchpad, the working memory that is kept between steps."""
    outcome = scope.memory.set_scratch(_resolve_key(scope, key), value)
    if isinstance(outcome, Refused):
        return refusal_answer(outcome)
    return ToolAnswer({"status": "success", "key": key}, outcome_of(outcome))


@tool("observations", does="other", tier="read_only", timeout=15)
def scratchpad_list(
    scope: Scope,
    prefix: Annotated[str, Arg(declared=True, says="Only keys with this prefix (e.g., 'api.'); empty: all keys")] = "",
) -> ToolAnswer:
    """List the keys of your scratchpad."""
    keys = sorted(item.key or "" for item in scope.memory.read(kind="scratch"))
    found = [key for key in keys if key.startswith(prefix)]
    return ToolAnswer(found, "found" if found else "empty")


@tool("observations", does="other", tier="read_only", timeout=15)
def scratchpad_search(
    scope: Scope, query: Annotated[str, Arg(says="Text to look for in keys and values")]
) -> ToolAnswer:
    """Search the keys and values of your scratchpad."""
    words = fold(query)
    items = scope.memory.read(kind="scratch")
    found = [
        {"key": item.key, "value": memory_text(item.content)}
        for item in items
        if words in fold(item.key or "") or words in fold(item.content)
    ]
    return ToolAnswer(found, "found" if found else "empty")


@tool("observations", does="other", tier="destructive", timeout=10)
def scratchpad_delete(scope: Scope, key: Annotated[str, Arg(says=_SAYS_KEY)]) -> ToolAnswer:
    """Delete a value from your scratchpad."""
    items = scope.memory.read(kind="scratch", key=_resolve_key(scope, key))
    if not items:
        raise NotFoundError(f"there is nothing under {key!r}; scratchpad_list lists the keys")
    outcome = scope.memory.forget(items[0].id, reason="deleted by a tool")
    return ToolAnswer({"status": "success", "key": key}, outcome_of(outcome))


TOOLS = (
    remember_observation,
    remember_fil,
    retrieve_by_id,
    recall,
    recall_by_category,
    recall_fil,
    scratchpad_get,
    scratchpad_set,
    scratchpad_list,
    scratchpad_search,
    scratchpad_delete,
)


def _resolve_key(scope: Scope, key: str) -> str:
    """Return the key itself, or the one that is shown like this, because answers replace some characters."""
    keys = [item.key or "" for item in scope.memory.read(kind="scratch")]
    return key if key in keys else next((one for one in keys if memory_text(one) == key), key)


def _search_texts(scope: Scope, query: str, category: str, limit: int) -> list[str]:
    hits = scope.memory.search(query, kinds=("observation",), category=category, limit=limit)
    return [memory_text(hit.record.content) for hit in hits]


def _record_fields(record: Record) -> dict[str, Any]:
    shown = {
        "id": record.id,
        "content": memory_text(record.text),
        "category": record.category or record.kind,
        "source": record.source,
        "created_at": created_text(record),
    }
    return mark_untrusted(record, shown)


def _scored_fields(hit: Hit) -> dict[str, Any]:
    return _record_fields(hit.record) | {"score": round(hit.score, 3)}


def _outcome_fields(outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, Refused):
        return {"status": "refused", "message": outcome.message}
    record = record_of(outcome)
    return {"status": "success", "id": record.id}
