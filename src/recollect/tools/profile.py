"""The suite `profile`, beyond single facts: merging, a summary, relationships, facts from other chats.

It has the dialect and the ids of the suite `facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Annotated, Any

from recollect.memory.chat_scope import CONSENT
from recollect.memory.daily_notes import day_of
from recollect.memory.memory import Memory
from recollect.records import Fact, Record
from recollect.tools.facts import UserId, fact_data, recall_answer, remember_answer
from recollect.tools.formatting import created_text, mark_untrusted, memory_text
from recollect.tools.parameters import Arg
from recollect.tools.tool import Scope, Tool, ToolAnswer, tool

Narrator = Callable[[Memory, str, int], str | None]
"""Writes what is known about a user as prose, within a number of words; None if it cannot."""
_MOST_TOLD = 2_000
"""The number of words of the facts that a model reads."""
_HEADINGS = {
    "work_context": "Work",
    "preference": "Preferences",
    "personal_context": "Personal",
    "key_fact": "Also",
    "reading_history": "Reading",
}


@tool("profile", does="recall", timeout=30)
def suggest_merge(
    scope: Scope,
    user_id: UserId,
    limit: Annotated[int, Arg(low=1, high=50, at_most=50, says="Max suggestions (default 10)")] = 10,
) -> ToolAnswer:
    """Find facts about a user that say nearly the same and could be merged. Merge them with merge_facts."""
    pairs = scope.memory.similar(kinds=("fact",), limit=limit)
    found = [
        {"fact_ids": [one["fact_id"] for one in facts], "facts": facts}
        for facts in ([fact_data(record, scope.memory) for record in pair] for pair in pairs)
    ]
    return ToolAnswer({"status": "success", "count": len(found), "suggestions": found}, "found" if found else "empty")


@tool("profile", does="recall", timeout=15)
def generate_profile_summary(
    scope: Scope,
    user_id: UserId,
    max_words: Annotated[int, Arg(low=20, high=1000, at_most=1000, says="Maximum length in words (default 200)")] = 200,
) -> ToolAnswer:
    """Summarize what is known about a user in a few sentences, the most certain and important first."""
    facts = [fact for fact in scope.memory.read(kind="fact") if day_of(fact) is None]  # without the uncertain ones
    summary, told = _summary(facts, max_words)
    content = {"status": "success", "summary": summary, "facts": len(facts), "told": told}
    return ToolAnswer(content, "found" if facts else "empty")


def with_prose(tools: Iterable[Tool], narrate: Narrator) -> list[Tool]:
    """Return the tools with one that writes the profile summary as prose, with a model; by rules if it returns None."""

    def run(scope: Scope, user_id: Any = None, max_words: int = 200) -> ToolAnswer:
        facts = scope.memory.read(kind="fact")
        listed, told = _summary(facts, _MOST_TOLD)
        prose = narrate(scope.memory, listed, max_words) if facts else None
        if prose is None:
            return generate_profile_summary.run(scope, user_id, max_words)
        return ToolAnswer({"status": "success", "summary": prose, "facts": len(facts), "told": told}, "found")

    prosaic = replace(generate_profile_summary, run=run, waits=True, timeout=60)
    return [prosaic if tool.name == prosaic.name else tool for tool in tools]


def _summary(facts: list[Record], max_words: int) -> tuple[str, int]:
    """Return one sentence per category, with the most important facts that fit, and their number."""
    by_worth = sorted(facts, key=lambda fact: (-fact.pinned, -fact.importance, -fact.confidence, fact.id))
    room = max_words - len(_HEADINGS)
    chosen: set[str] = set()
    for fact in by_worth:
        words = len(fact.text.split())
        if words <= room:
            room -= words
            chosen.add(fact.id)
    sentences = []
    for category, heading in _HEADINGS.items():
        kept = [fact for fact in facts if fact.id in chosen and fact.category == category]
        if kept:
            sentences.append(f"{heading}: {'; '.join(memory_text(fact.text).rstrip('. ') for fact in kept)}.")
    return " ".join(sentences), len(chosen)


@tool(
    "profile", does="remember", timeout=10, fields={"key": "person", "content": "relation", "excerpt": "source_excerpt"}
)
def remember_relationship(
    scope: Scope,
    user_id: UserId,
    person: Annotated[str, Arg(says="The name the user calls them (e.g., 'Oksana')")],
    relation: Annotated[str, Arg(says="Their relation to the user (e.g., 'sister', 'colleague at Stripe')")],
    confidence: Annotated[float, Arg(low=0.5, high=1.0, says="How confident you are (0.5-1.0)")],
    source_excerpt: Annotated[str | None, Arg(aside=True, says="Quote from message that supports this")] = None,
    person_user_id: Annotated[int | None, Arg(says="Their own user ID, if they are a user too (optional)")] = None,
) -> ToolAnswer:
    """Remember a person's relation to the user."""
    outcome = scope.memory.remember(
        relation,
        key=person,
        type="relationship",
        confidence=confidence,
        excerpt=source_excerpt,
        source=f"tool:{scope.tool}",
        metadata={"person": person.strip()} | ({} if person_user_id is None else {"user_id": person_user_id}),
    )
    return remember_answer(scope, outcome, f"{memory_text(person)} is {memory_text(relation)}")


@tool("profile", does="recall", timeout=15)
def recall_relationships(
    scope: Scope,
    user_id: UserId,
    person: Annotated[str | None, Arg(aside=True, says="Only this person (optional)")] = None,
    limit: Annotated[int, Arg(low=1, high=100, at_most=100, says="Max results (default 50)")] = 50,
) -> ToolAnswer:
    """List the people the user knows and their relations to the user."""
    found = scope.memory.read(kind="fact", type="relationship", key=person, newest_first=True, limit=limit)
    if person and not found:
        hits = scope.memory.search(person, kinds=("fact",), type="relationship", limit=limit)
        found = [hit.record for hit in hits]
    numbers = scope.memory.numbers([fact.id for fact in found])
    people = [_relationship_fields(fact, numbers[fact.id]) for fact in found]
    content = {"status": "success", "count": len(people), "relationships": people}
    return ToolAnswer(content, "found" if people else "empty")


@tool("profile", does="recall", timeout=15)
def recall_facts_global(
    scope: Scope,
    user_id: UserId,
    fact_types: Annotated[list[str] | None, Arg(says="Filter by types (optional)")] = None,
    search_query: Annotated[str | None, Arg(aside=True, says="Semantic search query (optional)")] = None,
    limit: Annotated[int, Arg(low=1, high=50, at_most=50, says="Max results (default 10)")] = 10,
) -> ToolAnswer:
    """Search for facts about a user from all chats they are in. Works only if the user has agreed to that."""
    if CONSENT not in scope.memory.consents():
        said_no = "not done: the person has not consented to recalling facts from other chats here; ask them"
        return ToolAnswer(said_no, "no consent", "refused")
    return recall_answer(scope, fact_types, search_query, limit)


TOOLS = (
    suggest_merge,
    generate_profile_summary,
    remember_relationship,
    recall_relationships,
    recall_facts_global,
)


def _relationship_fields(fact: Record, number: int) -> dict[str, Any]:
    assert isinstance(fact, Fact)
    shown = {
        "fact_id": number,
        "person": memory_text(str(fact.metadata.get("person") or fact.label or fact.key or "")),
        "relation": memory_text(fact.content),
        "confidence": fact.confidence,
        "created_at": created_text(fact),
    }
    if isinstance(user := fact.metadata.get("user_id"), int):
        shown["person_user_id"] = user
    return mark_untrusted(fact, shown)
