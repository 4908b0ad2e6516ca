"""The suite `entries`: keyed entries in four categories, answered in sentences.

One of four dialects over the same memory; this one is for agents that keep a profile in MEMORY.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from recollect.document.memory_md import key_of
from recollect.errors import AmbiguousError, NotFoundError
from recollect.memory.memory import Memory
from recollect.memory.references import looks_like_id
from recollect.policy.injection import neutral
from recollect.records import Conflict, Demoted, Duplicate, Hit, Outcome, Record, Refused, Updated, Written
from recollect.tools.parameters import Arg
from recollect.tools.tool import (
    Scope,
    ToolAnswer,
    outcome_of,
    record_of,
    refusal_to_change,
    refusal_to_delete,
    tool,
)

Category = Literal["preference", "work_context", "personal_context", "reading_history"]
_LONG = 500
_FIELDS = {"content": "value", "ref": "key"}
_SIGNS: dict[Category, frozenset[str]] = {
    "reading_history": frozenset("read reads reading article articles post posts discussed saved".split()),
    "preference": frozenset(
        "prefer prefers preference preferences preferred interest interests interested like likes dislike dislikes"
        " favorite favourite topic topics style format digest summary summaries communication tone length".split()
    ),
    "work_context": frozenset(
        "role job work title position occupation profession career company employer team manager project projects"
        " stack tech technology tools database framework office colleague client customer professional".split()
    ),
}
"""Words in the keys of each category; others are personal."""
_STORED: dict[str, tuple[str, ...]] = {"personal_context": ("personal_context", "key_fact")}
"""The categories of records that a category of this suite shows, if not only the one of its name."""


@tool("entries", does="remember", timeout=10, json=False, fields=_FIELDS)
def write_memory(
    scope: Scope,
    key: Annotated[
        str,
        Arg(
            says="Short identifier for the memory (e.g., 'role', 'interested_in_rust', 'opinion_on_crypto')",
        ),
    ],
    value: Annotated[str, Arg(says="The memory content (natural language, no code)")],
    category: Annotated[Category, Arg(says="Memory category")],
    durability: Annotated[
        Literal["durable", "daily"],
        Arg(
            required=True,
            says="durable = MEMORY.md (persists indefinitely), daily = memory/YYYY-MM-DD.md (auto-expires in 90 days)",
        ),
    ] = "durable",
    source: Annotated[
        str,
        Arg(
            aside=True,
            says="Where this memory came from (e.g., 'discussion:uuid', 'explicit_mention', 'batch_extraction')",
        ),
    ] = "",
    confidence: Annotated[
        float, Arg(low=0, high=1, says="Confidence score (0-1). Only writes to MEMORY.md if >= 0.7")
    ] = 1.0,
) -> ToolAnswer:
    """Write or update a memory entry about the user. Durable entries go to MEMORY.md, ephemeral to daily notes."""
    outcome = scope.memory.remember(
        value,
        key=key,
        category=category,
        durability=durability,
        confidence=confidence,
        source=source or f"tool:{scope.tool}",
    )
    threshold = scope.memory.config.confidence_threshold
    return ToolAnswer(_describe_write(outcome, key, category, threshold), outcome_of(outcome), _status(outcome))


def _describe_write(outcome: Outcome, key: str, category: str, threshold: float) -> str:
    match outcome:
        case Written(record=record, similar=similar):
            told = f"✓ Memory written: {category}/{neutral(key)} (confidence: {record.confidence:.1%})"
            return told + (f"\nSimilar entries, perhaps the same:\n{_list_records(similar)}" if similar else "")
        case Updated(record=record) if record.confidence >= threshold:
            name = f"{_category_of(record)}/{neutral(entry_reference(record))}"
            return f"✓ Memory written: {name} (confidence: {record.confidence:.1%})"
        case Demoted(record=record) | Updated(record=record):
            told = f"Entry '{neutral(entry_reference(record))}' confidence {record.confidence:.1%}"
            return f"{told} below {threshold:g} threshold. Written to daily notes instead."
        case Duplicate(record=record) | Conflict(record=record):
            return f"Similar entries found. Consider using update_memory() instead:\n{_list_records([record])}"
    return outcome.message


@tool("entries", does="recall", timeout=15, json=False)
def read_memory(
    scope: Scope,
    category: Annotated[Category, Arg(says="Memory category to read")],
    limit: Annotated[
        int, Arg(at_least=1, at_most=1000, declared=True, says="Max number of entries to return (default: 20)")
    ] = 20,
) -> ToolAnswer:
    """Read all memory entries in a specific category to understand user context."""
    entries = [
        entry
        for kind in ("fact", "daily")
        for stored in _STORED.get(category, (category,))
        for entry in scope.memory.read(kind=kind, category=stored, newest_first=True, limit=limit + 1)
    ]
    if not entries:
        return ToolAnswer(f"No memories in {category}", "empty")
    entries.sort(key=lambda entry: (entry.created_at, entry.seq))
    shown = "".join(f"- {_name_record(entry)}\n" for entry in entries[-limit:])
    more = f"(and more: only the latest {limit} are shown)\n" if len(entries) > limit else ""
    return ToolAnswer(f"\n**{category.replace('_', ' ').title()}:**\n{shown}{more}", "found")


@tool("entries", does="recall", timeout=15, json=False)
def search_memory(
    scope: Scope,
    query: Annotated[str, Arg(says="Search query (e.g., 'kubernetes', 'python async', 'distributed systems')")],
    limit: Annotated[int, Arg(at_least=1, at_most=100, declared=True, says="Max number of results (default: 5)")] = 5,
    category: Annotated[
        Literal["preference", "work_context", "personal_context", "reading_history", "all"],
        Arg(declared=True, says="Filter by category or search all (default: all)"),
    ] = "all",
) -> ToolAnswer:
    """Search user memory using full-text BM25 search. Useful for finding related past context."""
    wanted = (None,) if category == "all" else _STORED.get(category, (category,))
    found = [scope.memory.search(query, limit=limit, category=one) for one in wanted]
    hits = sorted((hit for some in found for hit in some), key=lambda hit: -hit.score)[:limit]
    notes = dict.fromkeys(some.note for some in found if some.note)
    if not hits:
        return ToolAnswer(f"No memories found matching '{neutral(query)}'", "empty")
    told = "Search results:\n"
    for number, hit in enumerate(hits, 1):
        told += f"\n{number}. {_record_heading(hit.record)}\n   {neutral(_matched_part(hit))}\n"
        told += f"   (score: {hit.score:.2f})\n"
    return ToolAnswer(told + "".join(f"\n({note})\n" for note in notes), "found")


@tool("entries", does="recall", timeout=15, json=False)
def get_memory_context(
    scope: Scope,
    topic: Annotated[str, Arg(says="Article topic or discussion topic (e.g., 'PostgreSQL 18'). Used for BM25 search.")],
    max_tokens: Annotated[
        int, Arg(at_least=1, at_most=5_000, declared=True, says="Max tokens in returned context (default: 1500)")
    ] = 1500,
) -> ToolAnswer:
    """Get formatted memory context string for injection into agent prompts (~1500 tokens)."""
    context = scope.memory.context(topic, max_tokens=max_tokens)
    return ToolAnswer(context or "Nothing is known yet.", "found" if context else "empty")


@tool("entries", does="change", timeout=10, json=False, fields=_FIELDS)
def update_memory(
    scope: Scope,
    key: Annotated[str, Arg(says="The memory key to update")],
    value: Annotated[str, Arg(says="New value")],
    category: Annotated[Category | None, Arg(says="Category (optional, keeps current if not specified)")] = None,
) -> ToolAnswer:
    """Update an existing memory entry (modify value, change category, etc.)"""
    source = f"tool:{scope.tool}"
    with scope.memory.batch() as memory:
        if (known := _find_any(memory, key)) and (refused := refusal_to_change(known)):
            return refused
        try:
            outcome = memory.update(key, value, category=category, source=source)
        except NotFoundError:
            if looks_like_id(key):
                raise
            outcome = memory.remember(value, key=key, category=category or _likely_category(key), source=source)
    match outcome:
        case Updated():
            told = f"✓ Memory updated: {neutral(key)}"
        case Written():
            told = f"✓ Memory written: {neutral(key)} (there was no such entry)"
        case Duplicate(record=record):
            told = f"Memory {neutral(entry_reference(record))} already says so; nothing changed."
        case _:
            told = outcome.message
    return ToolAnswer(told, outcome_of(outcome), _status(outcome))


@tool("entries", does="forget", timeout=10, tier="destructive", json=False, fields=_FIELDS)
def delete_memory(
    scope: Scope,
    key: Annotated[str, Arg(says="The memory key to delete")],
) -> ToolAnswer:
    """Delete a memory entry (e.g., user says they forgot something or want to remove a belief)."""
    try:
        with scope.memory.batch() as memory:
            if (known := _find_any(memory, key)) and (refused := refusal_to_delete(known)):
                return refused
            outcome = memory.forget(key, reason="deleted by a tool")
            for entry in memory.read(kind="daily", key=key) if record_of(outcome).entry_key else ():
                memory.forget(entry.id, reason="deleted by a tool")
    except NotFoundError:
        return ToolAnswer(
            f"there is no memory {neutral(key)!r}; search_memory finds the right key", "not found", "error"
        )
    return ToolAnswer(f"✓ Memory deleted: {neutral(key)}", outcome_of(outcome))


TOOLS = (write_memory, read_memory, search_memory, get_memory_context, update_memory, delete_memory)


def _find_any(memory: Memory, key: str) -> Record | None:
    try:
        return memory.get(key)
    except (NotFoundError, AmbiguousError):
        return None


def _status(outcome: Outcome) -> Literal["ok", "refused"]:
    return "refused" if isinstance(outcome, Refused) else "ok"


def _list_records(records: list[Record] | tuple[Record, ...]) -> str:
    return "\n".join(f"{number}. {_record_heading(r)}\n   {neutral(r.content)}" for number, r in enumerate(records, 1))


def _record_heading(record: Record) -> str:
    mark = "" if record.trusted else " (from an untrusted source)"
    return f"[{_category_of(record)}] {entry_reference(record)}{mark}"


def _category_of(record: Record) -> str:
    """Return the category that shows a record, or its kind if none does."""
    category = record.category or record.kind
    return next((shown for shown, stored in _STORED.items() if category in stored), category)


def _matched_part(hit: Hit) -> str:
    return hit.record.content if len(hit.record.content) <= _LONG else hit.passage or hit.record.content


def _name_record(record: Record) -> str:
    return f"{entry_reference(record)}: {neutral(record.content)}"


def entry_reference(record: Record) -> str:
    """Return the name of an entry in this suite."""
    return record.entry_key or record.id


def _likely_category(key: str) -> Category:
    """Return the category for a key that nobody has given one, by its words."""
    words = set(key_of(key).split("_"))
    return next((category for category, signs in _SIGNS.items() if words & signs), "personal_context")
