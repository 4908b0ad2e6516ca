"""The suite `notes`: free texts with stable ids, answered in JSON.

One of four dialects over the same memory; a ``note_id`` may be the id of any record that a search found.
Messages, observations and episodes are found, but not rewritten.
"""

from __future__ import annotations

import json
import re
import string
from typing import Annotated, Any

from recollect.errors import NotFoundError
from recollect.memory.memory import Memory
from recollect.records import CATEGORIES, OBSERVATION_CATEGORIES, Duplicate, Hit, Record, Refused, new_id
from recollect.text import fold
from recollect.times import to_text
from recollect.tools.formatting import MAX_OUTPUT, mark_untrusted, memory_text
from recollect.tools.parameters import Arg
from recollect.tools.tool import (
    Scope,
    ToolAnswer,
    outcome_of,
    record_of,
    refusal_answer,
    refusal_to_change,
    refusal_to_delete,
    tool,
)

_FIELDS = {"ref": "note_id"}
_NO_TOPIC = string.punctuation + string.whitespace
"""What a query such as "*" consists of that asks for everything."""
_TEXTS = ("text", "earlier", "category")
_ROOM = MAX_OUTPUT - 200
_SHORTEST = 50
_LONGEST_QUOTE = 300
_SEMANTIC = ("using keyword matching", "using semantic similarity and keyword matching")


@tool("notes", does="recall", timeout=15, fields={"tags": "category"}, semantic=_SEMANTIC)
def memory_search(
    scope: Scope,
    query: Annotated[str, Arg(says="Natural language search query")],
    top_k: Annotated[
        int, Arg(at_least=1, high=20, at_most=20, declared=True, says="Max results to return (default: 5, max: 20)")
    ] = 5,
    include_conversation: Annotated[
        bool, Arg(declared=True, says="Also search the current conversation session (default: false)")
    ] = False,
    category: Annotated[
        str | None, Arg(aside=True, says="Only notes that were saved with this category (optional)")
    ] = None,
) -> ToolAnswer:
    """Search your persistent memory for relevant information. Use this when you need to recall user preferences,
    past decisions, stored facts, or anything previously saved. Results are ranked by relevance using keyword matching.
    By default searches only your saved notes; set include_conversation to true to also search the current conversation
    history. A broad query such as "everything" lists the newest and most important notes. A result with `earlier` was
    found by what the note said before it was updated; `text` is what it says now."""
    query = query if query.strip(_NO_TOPIC) else "everything"
    hits = _search_notes(scope.memory, query, top_k, _category_tag(category))
    if include_conversation:
        hits += scope.memory.search(query, limit=top_k, kinds=("message",), session=scope.session)
        hits = _merge_hits(hits)[:top_k]
    return ToolAnswer(_fit_texts([_hit_fields(hit) for hit in hits]), "found" if hits else "empty")


def _fit_texts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was found with its longest texts cut, so that all of it fits into one answer."""
    longest = _ROOM
    while len(json.dumps(found, ensure_ascii=False)) > _ROOM and longest > _SHORTEST:
        longest //= 2
        found = [
            {name: _cut(value, longest) if name in _TEXTS else value for name, value in one.items()} for one in found
        ]
    return found


def _quote(record: Record) -> str:
    return _cut(memory_text(record.text), _LONGEST_QUOTE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rstrip("… ") + " …"


def _search_notes(memory: Memory, query: str, limit: int, tag: str | None) -> list[Hit]:
    if tag is None:
        return list(memory.search(query, limit=limit, earlier=True))
    hits = list(memory.search(query, limit=limit, tags=(tag,), earlier=True))
    if tag in CATEGORIES + OBSERVATION_CATEGORIES:  # what other suites call a category
        hits += memory.search(query, limit=limit, category=tag, earlier=True)
        hits = _merge_hits(hits)[:limit]
    return hits


def _category_tag(category: str | None) -> str | None:
    """Return the tag that a category is stored as: models do not always write it alike.

    Lines stay lines, because an erased statement is recognised by them.
    """
    return re.sub(" +", " ", category.strip()).casefold() or None if category else None


def _merge_hits(hits: list[Hit]) -> list[Hit]:
    best: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda hit: -hit.raw_score):
        best.setdefault(fold(hit.record.text), hit)
    return list(best.values())


def _hit_fields(hit: Hit) -> dict[str, Any]:
    record = hit.record
    text = hit.passage if hit.passage and len(record.content) > 4 * len(hit.passage) else record.text
    shown = {
        "note_id": record.id,
        "text": memory_text(text),
        "score": round(hit.score, 3),
        "source": "conversation" if record.kind == "message" else "user_memory",
        "date": to_text(record.valid_from),
    }
    if category := record.category or next(iter(record.tags), None):
        shown["category"] = memory_text(category)
    if hit.earlier:
        shown["earlier"] = memory_text(hit.earlier)
    return mark_untrusted(record, shown)


@tool("notes", does="remember", timeout=10, fields={"tags": "category"})
def memory_save(
    scope: Scope,
    content: Annotated[str, Arg(says="Natural language text to save (fact, preference, decision, etc.)")],
    category: Annotated[
        str | None, Arg(aside=True, says="A word to file it under and to search by, such as work (optional)")
    ] = None,
) -> ToolAnswer:
    """Save an important piece of information to your persistent memory as a natural language note. Use this
    proactively whenever the user shares preferences, makes decisions, states facts, or tells you something worth
    remembering across conversations. Saved notes persist across all sessions and channels. Returns a note_id for
    future reference."""
    tag = _category_tag(category)
    with scope.memory.batch() as memory:
        outcome = memory.note(content, tags=(tag,) if tag else (), source=f"tool:{scope.tool}")
        filed = _file_under(memory, outcome.record, tag) if tag and isinstance(outcome, Duplicate) else ""
    match outcome:
        case Duplicate(record=known):
            told = {"status": "duplicate", "note_id": known.id}
            told["message"] = f"Already saved{filed}: {_quote(known)}"
            return ToolAnswer(told, outcome_of(outcome))
        case Refused():
            return refusal_answer(outcome)
    record = record_of(outcome)
    told = {"status": "success", "note_id": record.id, "message": "Saved."}
    if similar := getattr(outcome, "similar", ()):
        told["message"] = f"Saved. Similar: {_quote(similar[0])} ({similar[0].id})"
    return ToolAnswer(told, outcome_of(outcome))


def _file_under(memory: Memory, known: Record, tag: str) -> str:
    """File a known note under one more category, and return what became of that."""
    if known.tags[:1] == (tag,) or tag == known.category:
        return ""
    if tag in known.tags:
        return f", and filed under {memory_text(tag)}"
    if isinstance(memory.update(known.id, tags=[*known.tags, tag]), Refused):
        return f", not filed under {memory_text(tag)}"
    return f", now filed under {memory_text(tag)}" + (" too" if known.tags else "")


@tool("notes", does="change", timeout=10, idempotent=True, fields=_FIELDS)
def memory_update(
    scope: Scope,
    note_id: Annotated[str, Arg(says="ID of the note to update (from `memory_search` or `memory_save` results)")],
    content: Annotated[str, Arg(says="New content to replace the existing note")],
) -> ToolAnswer:
    """Update a previously saved note with new content. Use this when the user corrects or changes previously stored
    information (e.g., a new preferred name, an updated preference). First use memory_search to find the note and its
    note_id, then call this with the note_id and the new content."""
    record = _find_note(scope.memory, note_id)
    if refused := refusal_to_change(record):
        return refused
    outcome = scope.memory.update(record.id, content, source=f"tool:{scope.tool}")
    if isinstance(outcome, Refused):
        return refusal_answer(outcome)
    message = "It already says so." if isinstance(outcome, Duplicate) else "Updated."
    return ToolAnswer({"status": "success", "note_id": record.id, "message": message}, outcome_of(outcome))


@tool("notes", does="forget", timeout=10, tier="destructive", fields=_FIELDS)
def memory_delete(
    scope: Scope,
    note_id: Annotated[str, Arg(says="ID of the note to delete (from `memory_search` results)")],
) -> ToolAnswer:
    """Delete a previously saved note from memory. Use this when the user asks you to forget specific information.
    First use memory_search to find the note and its note_id, then call this with the note_id to remove it."""
    record = _find_note(scope.memory, note_id)
    if refused := refusal_to_delete(record):
        return refused
    echoes = _echoes(scope.memory, record)
    with scope.memory.acting(run=new_id("run")).batch() as memory:
        outcome = memory.forget(record.id, reason="deleted by a tool")
        for message in echoes:
            memory.forget(message.id, reason="it says what was deleted")
    told = f"Deleted: {_quote(record)}"
    if echoes:
        told += f" ({len(echoes)} message{'s' * (len(echoes) > 1)} that said the same too)"
    return ToolAnswer({"status": "success", "note_id": record.id, "message": told}, outcome_of(outcome))


TOOLS = (memory_search, memory_save, memory_update, memory_delete)


def _echoes(memory: Memory, record: Record) -> list[Record]:
    """Return messages with the same text as the record, which would otherwise bring it back."""
    hits = memory.search(record.content[:1000], kinds=("message",), limit=20)
    same = fold(record.content)
    return [
        hit.record
        for hit in hits
        if fold(hit.record.content) == same or hit.record.metadata.get("note_id") == record.id
    ]


def _find_note(memory: Memory, note_id: str) -> Record:
    try:
        record = memory.get(note_id)
    except NotFoundError:
        raise NotFoundError(f"there is no note {note_id!r}; memory_search lists the ids of notes") from None
    if record.status != "active":
        raise NotFoundError(f"the note {record.id} was deleted")
    return record
