"""The suite `facts`: typed facts and episodes, answered in JSON with a ``status``.

One of four dialects over the same memory. The ids of facts and episodes are integers: the number of the journal entry
that created them. The text ids of the other suites are accepted too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from recollect.checks import MAX_NUMBER
from recollect.errors import NotFoundError
from recollect.memory.memory import Memory
from recollect.records import (
    CATEGORY_OF_TYPE,
    FACT_TYPES,
    Conflict,
    Demoted,
    Duplicate,
    Episode,
    Fact,
    Message,
    Outcome,
    Record,
    Refused,
    Updated,
    new_id,
)
from recollect.tools.earlier_facts import facts_at, held_fields, with_earlier_facts
from recollect.tools.formatting import created_text, mark_untrusted, memory_text
from recollect.tools.parameters import Arg, ArgumentsError, is_id
from recollect.tools.tool import Scope, ToolAnswer, outcome_of, record_of, refusal_answer, tool

FactType = Literal["personal", "preference", "skill", "trait", "opinion", "relationship"]
_TYPE, _KEY, _EXCERPT = ("type",), ("key",), ("source",)
"""The short names of the prompts, which models use too."""
UserId = Annotated[int, Arg(user=True)]
Confidence = Annotated[float, Arg(low=0.5, high=1.0)]
Excerpt = Annotated[str | None, Arg(aside=True, also=_EXCERPT)]
_FIELDS = {"content": "fact_value", "key": "fact_key", "ref": "fact_key", "excerpt": "source_excerpt"}
_MOST_READ = 1000
"""How many messages of another member of a group are looked through."""
_TYPE_OF_CATEGORY = {"preference": "preference", "work_context": "skill"}


@tool("facts", does="remember", timeout=10, fields=_FIELDS)
def remember_fact(
    scope: Scope,
    user_id: Annotated[int, Arg(user=True, says="Telegram user ID")],
    fact_type: Annotated[FactType, Arg(says="Category of fact", also=_TYPE)],
    fact_key: Annotated[
        str, Arg(says="Standardized key (e.g., 'location', 'programming_language', 'hobby')", also=_KEY)
    ],
    fact_value: Annotated[str, Arg(says="The actual fact content", also=("value",))],
    confidence: Annotated[float, Arg(low=0.5, high=1.0, says="How confident you are (0.5-1.0)")],
    source_excerpt: Annotated[
        str | None, Arg(aside=True, says="Quote from message that supports this fact", also=_EXCERPT)
    ] = None,
) -> ToolAnswer:
    """Store a new fact about a user. Use when you learn something important about them (location, preferences,
    skills, etc.). Returns confirmation or error."""
    outcome = scope.memory.remember(
        fact_value,
        key=fact_key,
        type=fact_type,
        confidence=confidence,
        excerpt=source_excerpt,
        source=f"tool:{scope.tool}",
    )
    return remember_answer(scope, outcome, f"{fact_type} → {memory_text(fact_key)} = {memory_text(fact_value)}")


def remember_answer(scope: Scope, outcome: Outcome, what: str) -> ToolAnswer:
    """Return the answer to a request to remember a fact."""
    if isinstance(outcome, Refused):
        return refusal_answer(outcome)
    record = record_of(outcome)
    told: dict[str, Any]
    match outcome:
        case Duplicate():
            told = {"status": "skipped", "reason": "duplicate", "message": "This fact is already known"}
            told |= {"fact_id": number_of(scope.memory, record)}
            if record.entry_key:
                told["key"] = record.entry_key
        case Conflict():
            told = {
                "status": "skipped",
                "reason": "conflict",
                "fact_id": number_of(scope.memory, record),
                "known_value": memory_text(record.content),
                "message": "Another value is known under this key. Use update_fact if it has changed.",
            }
        case Demoted() if record.kind != "fact":
            told = _not_certain_enough(scope, record)
        case _:
            told = {
                "status": "success",
                "fact_id": number_of(scope.memory, record),
                "message": f"{_done_word(outcome)}: {what}",
            }
            if _is_uncertain(record):
                told |= {"uncertain": True, "confidence": record.confidence}
            if similar := getattr(outcome, "similar", ()):
                told["similar"] = [fact_data(fact, scope.memory) for fact in similar[:3]]
    return ToolAnswer(told, outcome_of(outcome))


def _done_word(outcome: Outcome) -> str:
    if not isinstance(outcome, Updated):
        return "Remembered"
    return "Confirmed" if outcome.previous.content == outcome.record.content else "Replaced"


def _not_certain_enough(scope: Scope, noted: Record) -> dict[str, Any]:
    """Return the answer to a value less certain than the known one: the daily note has it, and no fact changed."""
    told: dict[str, Any] = {"status": "skipped", "reason": "uncertain", "stored_in": "daily_note"}
    if known := scope.memory.read(kind="fact", key=noted.entry_key, limit=1):
        told |= {"fact_id": number_of(scope.memory, known[0]), "known_value": memory_text(known[0].content)}
    return told | {
        "message": f"Not certain enough to change {memory_text(noted.entry_key or 'it')}, noted for today instead."
        " Use update_fact with a higher confidence if it has changed."
    }


@tool("facts", does="recall", timeout=15)
def recall_facts(
    scope: Scope,
    user_id: UserId,
    fact_types: Annotated[list[str] | None, Arg(says="Filter by types (optional)", also=("types",))] = None,
    search_query: Annotated[str | None, Arg(aside=True, says="Semantic search query (optional)")] = None,
    limit: Annotated[int, Arg(low=1, high=50, at_most=50, says="Max results (default 10)")] = 10,
    as_of: Annotated[
        str | None,
        Arg(
            aside=True,
            says="What was true at this time, as YYYY-MM-DD or ISO 8601 (optional). A query may also say 'before'",
        ),
    ] = None,
) -> ToolAnswer:
    """Search for facts about a user. Use before storing new facts to check for duplicates or contradictions."""
    return recall_answer(scope, fact_types, search_query, limit, as_of)


def recall_answer(
    scope: Scope, types: Sequence[str] | None, query: str | None, limit: int, as_of: str | None = None
) -> ToolAnswer:
    """Return facts by type and query; at a time, those that held then."""
    wanted = [_fact_type(f"fact_types[{number}]", name) for number, name in enumerate(types or ())]
    # another suite calls a fact without a key a note
    kinds = ("fact",) if wanted else ("fact", "note")
    found: list[Record]
    if as_of and as_of.strip():
        found = facts_at(scope.memory, as_of.strip(), query, kinds)
    elif query and query.strip():
        hits = scope.memory.search(query, kinds=kinds, limit=500 if wanted else limit, earlier=True)
        found = [one for hit in hits for one in with_earlier_facts(scope.memory, hit, query)]
    else:
        found = scope.memory.read(kind="fact", newest_first=True, limit=None if wanted else limit)
    kept = [fact for fact in found if _is_one_of(fact, wanted)][:limit]
    numbers = scope.memory.numbers([fact.id for fact in kept])
    facts = [_fact_fields(fact, numbers[fact.id]) | held_fields(fact) for fact in kept]
    return ToolAnswer({"status": "success", "count": len(facts), "facts": facts}, "found" if facts else "empty")


@tool("facts", does="change", timeout=10, idempotent=True, fields=_FIELDS | {"content": "new_value"})
def update_fact(
    scope: Scope,
    user_id: UserId,
    fact_type: Annotated[FactType, Arg(also=_TYPE)],
    fact_key: Annotated[str, Arg(says="Which fact to update (e.g., 'location')", also=_KEY)],
    new_value: Annotated[str, Arg(says="New/corrected value")],
    confidence: Confidence,
    change_reason: Annotated[
        Literal["correction", "update", "refinement", "contradiction"], Arg(says="Why the change?")
    ],
    source_excerpt: Excerpt = None,
    valid_from: Annotated[
        str | None, Arg(aside=True, says="When the new value became true, as YYYY-MM-DD (optional, default: now)")
    ] = None,
) -> ToolAnswer:
    """Update an existing fact when you learn new/corrected information. Returns updated fact or error if not found."""
    known = _find_fact(scope.memory, fact_type, fact_key)
    outcome = scope.memory.update(
        known.id,
        new_value,
        confidence=confidence,
        reason=change_reason,
        excerpt=source_excerpt,
        source=f"tool:{scope.tool}",
        valid_from=valid_from or None,
    )
    if isinstance(outcome, Refused):
        return refusal_answer(outcome)
    record = record_of(outcome)
    if record.kind == "daily":
        return ToolAnswer(_not_certain_enough(scope, record), outcome_of(outcome))
    told: dict[str, Any] = {"status": "success", "fact": fact_data(record, scope.memory)}
    told |= {
        "fact_id": told["fact"]["fact_id"],
        "message": f"Updated: {memory_text(fact_key)} = {memory_text(record.content)}",
    }
    if isinstance(outcome, Duplicate):
        told["message"] = f"{memory_text(fact_key)} is already {memory_text(record.content)}"
    else:
        told["previous_value"] = memory_text(known.content)
    return ToolAnswer(told, outcome_of(outcome))


@tool("facts", does="forget", timeout=10, tier="destructive", fields=_FIELDS)
def forget_fact(
    scope: Scope,
    user_id: UserId,
    fact_type: Annotated[str, Arg(also=_TYPE)],
    fact_key: Annotated[str, Arg(also=_KEY)],
    reason: Annotated[Literal["outdated", "incorrect", "superseded", "user_requested"], Arg(says="Why forget this?")],
    replacement_fact_id: Annotated[int | None, Arg(says="If superseded, ID of new fact", reference=True)] = None,
) -> ToolAnswer:
    """Mark a fact as outdated or incorrect. It will be archived but not deleted (for audit trail)."""
    known = _find_fact(scope.memory, _fact_type("fact_type", fact_type), fact_key)
    replacement = (
        None if replacement_fact_id is None else _record_by_number(scope.memory, replacement_fact_id, "fact").id
    )
    outcome = scope.memory.forget(known.id, reason=reason, replaced_by=replacement)
    told = {
        "status": "success",
        "fact_id": number_of(scope.memory, known),
        "message": f"Archived: {memory_text(fact_key)} = {memory_text(known.content)}",
    }
    return ToolAnswer(told, outcome_of(outcome))


@tool(
    "facts",
    does="change",
    timeout=10,
    fields=_FIELDS | {"refs": "fact_ids", "content": "merged_value", "confidence": "merged_confidence"},
)
def merge_facts(
    scope: Scope,
    user_id: UserId,
    fact_ids: Annotated[
        list[int],
        Arg(items_low=2, items_high=5, says="IDs of facts to merge (from recall_facts)", reference=True),
    ],
    merged_value: Annotated[str, Arg(says="Consolidated fact value")],
    merged_confidence: Confidence,
) -> ToolAnswer:
    """Merge two related facts into one consolidated fact. Use when you notice redundant information."""
    facts = [_record_by_number(scope.memory, number, "fact") for number in fact_ids]
    outcome = scope.memory.merge(
        [fact.id for fact in facts], merged_value, confidence=merged_confidence, reason="merged by a tool"
    )
    if isinstance(outcome, Refused):
        return refusal_answer(outcome)
    record = record_of(outcome)
    told = {
        "status": "success",
        "fact_id": number_of(scope.memory, record),
        "merged": list(scope.memory.numbers([fact.id for fact in facts]).values()),
        "message": f"Merged {len({fact.id for fact in facts})} facts into: {memory_text(record.text)}",
    }
    if _is_uncertain(record):
        told |= {"uncertain": True, "confidence": record.confidence}
    return ToolAnswer(told, outcome_of(outcome))


# episodes and messages


@tool("facts", does="remember", timeout=10, fields={"content": "summary"})
def create_episode(
    scope: Scope,
    topic: Annotated[str, Arg(says="Short topic/title (e.g., 'Birthday plans', 'Job interview stress')")],
    summary: Annotated[str, Arg(says="2-3 sentence summary of what happened")],
    importance: Annotated[float, Arg(low=0.0, high=1.0, says="How important is this? (0.0-1.0, 0.7+ recommended)")],
    emotional_valence: Annotated[
        Literal["positive", "negative", "neutral", "mixed"], Arg(says="Emotional tone of conversation")
    ] = "neutral",
    tags: Annotated[
        list[str] | None, Arg(says="Keywords for retrieval (e.g., ['birthday', 'celebration', 'friends'])")
    ] = None,
    message_count: Annotated[
        int, Arg(at_least=0, at_most=1000, says="How many recent messages to include (default 10)")
    ] = 10,
) -> ToolAnswer:
    """Create a memorable episode from the recent conversation. Use when something significant happened (important
    info shared, emotional moment, milestone, etc.)."""
    said = _recent_of_all(scope, message_count)
    messages = [message for message, _ in said]
    speakers = dict.fromkeys(
        message.speaker or user_id
        for message, user_id in said
        if isinstance(message, Message) and message.role == "user"
    )
    outcome = scope.memory.episode(
        topic,
        summary,
        importance=importance,
        valence=emotional_valence,
        tags=tags or (),
        messages=[message.id for message in messages],
        participants=list(speakers)[:50],
        source=f"tool:{scope.tool}",
    )
    if isinstance(outcome, Refused):
        return refusal_answer(outcome)
    record = record_of(outcome)
    told: dict[str, Any] = {"status": "success", "episode_id": number_of(scope.memory, record)}
    if isinstance(outcome, Duplicate):
        told |= {"status": "skipped", "reason": "duplicate", "message": "This episode is already known"}
    else:
        told["message"] = f"Episode created: {memory_text(topic)} ({len(messages)} messages)"
    return ToolAnswer(told, outcome_of(outcome))


@tool("facts", does="change", timeout=10, fields={"content": "additional_summary", "tags": "add_tags"})
def update_episode(
    scope: Scope,
    episode_id: Annotated[int, Arg(says="Episode ID (from recall_episodes result)", reference=True)],
    new_importance: Annotated[float | None, Arg(low=0.0, high=1.0)] = None,
    additional_summary: Annotated[str | None, Arg(aside=True, says="Additional context to append to summary")] = None,
    add_tags: list[str] | None = None,
) -> ToolAnswer:
    """Update an existing episode's importance or add new information to its summary."""
    episode = _record_by_number(scope.memory, episode_id, "episode")
    if new_importance is None and not additional_summary and not add_tags:
        raise ArgumentsError("nothing to change; give new_importance, additional_summary or add_tags")
    added = f"{episode.content}\n{additional_summary.strip()}" if additional_summary else None
    outcome = scope.memory.update(
        episode.id,
        added,
        importance=new_importance,
        tags=[*episode.tags, *add_tags] if add_tags else None,
        source=f"tool:{scope.tool}" if added else None,
        reason="refinement",
    )
    if isinstance(outcome, Refused):
        return refusal_answer(outcome)
    record = record_of(outcome)
    shown = _episode_fields(record, number_of(scope.memory, record))
    message = f"Episode updated: {memory_text(shown['topic'])}"
    told = {"status": "success", "episode_id": shown["episode_id"], "episode": shown, "message": message}
    return ToolAnswer(told, outcome_of(outcome))


@tool("facts", does="forget", timeout=10, tier="destructive")
def archive_episode(
    scope: Scope,
    episode_id: Annotated[int, Arg(reference=True)],
    reason: Annotated[str | None, Arg(aside=True, says="Why archive?")] = None,
) -> ToolAnswer:
    """Archive an episode (no longer relevant, or superseded by newer events)."""
    episode = _record_by_number(scope.memory, episode_id, "episode")
    outcome = scope.memory.forget(episode.id, reason=reason)
    number = number_of(scope.memory, episode)
    told = {"status": "success", "episode_id": number, "message": f"Archived: {memory_text(episode.text[:200])}"}
    return ToolAnswer(told, outcome_of(outcome))


@tool("facts", does="recall", timeout=15)
def recall_episodes(
    scope: Scope,
    search_query: Annotated[
        str | None, Arg(aside=True, says="What the episode was about, in plain words (optional)")
    ] = None,
    tags: Annotated[list[str] | None, Arg(says="Only episodes that have all of these tags (optional)")] = None,
    min_importance: Annotated[
        float | None, Arg(low=0.0, high=1.0, says="Only episodes with at least this importance")
    ] = None,
    limit: Annotated[int, Arg(low=1, high=50, at_most=50, says="Max results (default 10)")] = 10,
) -> ToolAnswer:
    """Search for episodes by topic and tags. Without a query: the latest ones. Returns episode IDs for
    update_episode and archive_episode."""
    found: list[Record]
    if search_query and search_query.strip():
        hits = scope.memory.search(search_query, kinds=("episode",), tags=tags or (), limit=500)
        found = [hit.record for hit in hits]
    else:
        found = scope.memory.read(kind="episode", tags=tags or (), newest_first=True)
    kept = [one for one in found if min_importance is None or one.importance >= min_importance][:limit]
    numbers = scope.memory.numbers([one.id for one in kept])
    episodes = [_episode_fields(one, numbers[one.id]) for one in kept]
    return ToolAnswer({"status": "success", "count": len(kept), "episodes": episodes}, "found" if kept else "empty")


@tool("facts", does="other", timeout=10, idempotent=True)
def mark_important(
    scope: Scope,
    *,
    message_count: Annotated[int, Arg(low=1, high=20, says="How many recent messages to mark (default 5)")] = 5,
    importance_level: Annotated[
        Literal["high", "critical"],
        Arg(says="Importance level (high = 60 days, critical = 365 days retention)"),
    ],
    reason: Annotated[str | None, Arg(aside=True, says="Why is this important? (for audit trail)")] = None,
) -> ToolAnswer:
    """Mark recent messages as important to prevent automatic deletion. Use for critical information, decisions, or
    promises."""
    messages = _recent(scope, message_count)
    if not messages:
        return ToolAnswer("there are no messages in this conversation to mark", "empty", "error")
    marked_ones = scope.memory.mark_important([one.id for one in messages], importance_level, reason=reason)
    count = len(marked_ones)
    told = {"status": "success", "count": count, "message": f"Marked {count} messages as {importance_level}"}
    return ToolAnswer(told, "updated")


@tool("facts", does="forget", timeout=30, tier="destructive")
def clear_profile(
    scope: Scope,
    user_id: UserId,
    confirm: Annotated[bool, Arg(says="true only if the person explicitly asked for it")],
    reason: Annotated[str | None, Arg(aside=True, says="Why? (for audit trail)")] = None,
) -> ToolAnswer:
    """Forget every fact about a user at once. Only when the person asks for it. The facts are archived, and the
    person can undo it. Only the person can erase everything permanently."""
    if not confirm:
        return ToolAnswer(
            "not done: ask the person first, then call again with confirm true", "not confirmed", "refused"
        )
    run = new_id("run")
    with scope.memory.acting(run=run).batch() as memory:
        facts = memory.read(kind="fact")
        for fact in facts:
            memory.forget(fact.id, reason=reason or "the profile was cleared")
    told = {"status": "success", "count": len(facts), "run": run, "message": f"Archived {len(facts)} facts"}
    return ToolAnswer(told, "forgotten" if facts else "empty")


TOOLS = (
    remember_fact,
    recall_facts,
    update_fact,
    forget_fact,
    merge_facts,
    create_episode,
    update_episode,
    archive_episode,
    recall_episodes,
    mark_important,
    clear_profile,
)


def number_of(memory: Memory, record: Record) -> int:
    """Return the id of a record in this suite: the number of the journal entry that created it."""
    return memory.numbers([record.id])[record.id]


def fact_data(record: Record, memory: Memory) -> dict[str, Any]:
    """Return a fact in the form of this suite."""
    return _fact_fields(record, number_of(memory, record))


def _fact_fields(record: Record, number: int) -> dict[str, Any]:
    shown = {
        "fact_id": number,
        "type": record.type or _TYPE_OF_CATEGORY.get(record.category or "", "personal"),
        "key": record.key if isinstance(record, Fact) and record.key else record.id,
        "value": memory_text(record.content),
        "confidence": record.confidence,
        "created_at": created_text(record),
    }
    if _is_uncertain(record):
        shown["uncertain"] = True
    return mark_untrusted(record, shown)


def _is_uncertain(record: Record) -> bool:
    return isinstance(record, Fact) and record.noted_on is not None


def _episode_fields(record: Record, number: int) -> dict[str, Any]:
    assert isinstance(record, Episode)
    shown = {
        "episode_id": number,
        "topic": memory_text(record.topic),
        "summary": memory_text(record.content),
        "importance": record.importance,
        "emotional_valence": record.valence,
        "tags": list(record.tags),
        "participants": list(record.participants),
        "messages": len(record.messages),
        "created_at": created_text(record),
    }
    return mark_untrusted(record, shown)


def _fact_type(parameter: str, name: str) -> str:
    known = name.strip().casefold()
    if known not in FACT_TYPES:
        raise ArgumentsError(f"{parameter}: {name[:40]!r} is not a fact type; use one of {', '.join(FACT_TYPES)}")
    return known


def _is_one_of(record: Record, types: Sequence[str]) -> bool:
    """Return True if a fact has one of the types. Facts without a type match all types of their category."""
    if not types:
        return True
    if record.type:
        return record.type in types
    return record.category in {CATEGORY_OF_TYPE[name] for name in types}


def _find_fact(memory: Memory, fact_type: str, ref: str) -> Record:
    """Return the active fact of a type by key, or by number or id, which recall_facts shows for facts without a key."""
    named = memory.read(kind="fact", key=ref)
    found = [fact for fact in named if fact.type == fact_type] or [
        fact for fact in named if _is_one_of(fact, [fact_type])
    ]
    if not found:
        try:
            record = memory.numbered(int(ref)) if _is_number(ref) else memory.get(ref) if is_id(ref) else None
        except NotFoundError:
            record = None
        if record is None or record.status != "active" or record.kind not in ("fact", "note"):
            others = f"; there is one of type {named[0].type or named[0].category}" if named else ""
            raise NotFoundError(f"no {fact_type} fact has the key {ref!r}{others}; recall_facts lists the keys")
        return record
    return found[0]


def _is_number(ref: str) -> bool:
    return ref.isdecimal() and len(ref) <= 18


def _record_by_number(memory: Memory, ref: int | str, kind: str) -> Record:
    record = None
    try:
        if not isinstance(ref, int):
            record = memory.get(ref)
        elif 0 <= ref <= MAX_NUMBER:
            record = memory.numbered(ref)
    except NotFoundError:
        pass
    if record is None or record.kind != kind:
        raise NotFoundError(f"there is no {kind} {ref}; recall_{kind}s lists the ids")
    if record.status != "active":
        raise NotFoundError(f"the {kind} {ref} is {record.status}")
    return record


def _recent(scope: Scope, count: int) -> list[Record]:
    if count == 0:
        return []
    found = scope.memory.read(kind="message", session=scope.session, newest_first=True, limit=count)
    return found[::-1]


def _recent_of_all(scope: Scope, count: int) -> list[tuple[Record, str]]:
    """Return the latest messages of the conversation with their user; in a group, those of everybody."""
    found = [(message, scope.memory.user_id) for message in _recent(scope, count)]
    for other in scope.others if count else ():
        said = other.read(kind="message", newest_first=True, limit=_MOST_READ)
        here = [message for message in said if _is_same_talk(message.session, scope.session)]
        found += [(message, other.user_id) for message in here[:count]]
    return sorted(found, key=lambda one: (one[0].valid_from, one[0].id))[-count:] if count else []


def _is_same_talk(session: str | None, other: str | None) -> bool:
    """Return True if two sessions are one conversation of a group: the same one, or those of two people in a place."""
    place = (session or "").rpartition("@")[0]
    return other is None or session == other or bool(place and place == other.rpartition("@")[0])
