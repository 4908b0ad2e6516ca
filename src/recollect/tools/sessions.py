"""The suite `sessions`: past conversations, and export and import of the memory as text, answered in JSON.

It has the dialect of the suite `notes`.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from recollect.errors import InvalidInputError, NotFoundError
from recollect.memory.memory import Memory
from recollect.records import (
    CATEGORIES,
    OBSERVATION_CATEGORIES,
    Duplicate,
    Message,
    Outcome,
    Record,
    Refused,
    Session,
    new_id,
)
from recollect.times import to_text
from recollect.tools.formatting import MAX_OUTPUT, created_text, mark_untrusted, memory_text
from recollect.tools.parameters import Arg, ArgumentsError
from recollect.tools.tool import Scope, ToolAnswer, tool

_SESSION = "The session id, from memory_list_sessions"
_CARRIED = ("fact", "note", "observation")
_MOST_IMPORTED = 1_000
_ROOM = MAX_OUTPUT - 200
_TITLE = 80
_SUMMARY_PART = 200


@tool("sessions", does="recall", timeout=15)
def memory_list_sessions(
    scope: Scope,
    limit: Annotated[int, Arg(at_least=1, at_most=100, declared=True, says="Max sessions (default: 20)")] = 20,
    offset: Annotated[int, Arg(at_least=0, declared=True, says="How many of the latest to skip (default: 0)")] = 0,
) -> ToolAnswer:
    """List past conversation sessions, latest first: how they began, a summary, how long they are and when they took
    place. To find what was said, use memory_search_sessions instead."""
    found = []
    for session in scope.memory.sessions(limit=limit, offset=offset):
        first = scope.memory.read(kind="message", session=session.id, limit=1)
        found.append(
            {
                "session_id": session.id,
                "title": memory_text(_shorten(first[0].content, _TITLE) if first else ""),
                "summary": memory_text(_session_summary(scope.memory, session)),
                "messages": session.messages,
                "began": to_text(session.began),
                "ended": to_text(session.ended),
            }
        )
    return ToolAnswer(found, "found" if found else "empty")


def summary_key(session: str) -> str:
    """Return the key under which a discussion keeps the rolling summary of its session in the scratchpad."""
    return f"summary:{session}"[:200]


def _session_summary(memory: Memory, session: Session) -> str:
    """Return the rolling summary of a discussion, or else how it began and ended."""
    if rolling := json.loads(memory.scratch(summary_key(session.id)) or "{}").get("text"):
        return str(rolling)
    first = memory.read(kind="message", session=session.id, limit=1)
    last = memory.read(kind="message", session=session.id, limit=1, newest_first=True)
    ends = dict.fromkeys(_shorten(one.content, _SUMMARY_PART) for one in (*first, *last))
    return " … ".join(ends)


def _shorten(text: str, most: int) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= most else line[: most - 3].rstrip() + "…"


@tool("sessions", does="recall", timeout=15)
def memory_search_sessions(
    scope: Scope,
    query: Annotated[str, Arg(says="What was said, in plain words")],
    limit: Annotated[int, Arg(at_least=1, at_most=50, declared=True, says="Max messages (default: 10)")] = 10,
) -> ToolAnswer:
    """Search all past conversations for what was said. Each result names its session, which memory_read_session
    reads."""
    hits = scope.memory.search(query, limit=limit, kinds=("message",))
    found = []
    for hit in hits:
        shown = _message_fields(hit.record) | {"session_id": hit.record.session, "score": round(hit.score, 3)}
        if hit.passage and len(hit.record.content) > 4 * len(hit.passage):
            shown["text"] = memory_text(hit.passage)
        found.append(shown)
    return ToolAnswer(found, "found" if found else "empty")


@tool("sessions", does="recall", timeout=15)
def memory_read_session(
    scope: Scope,
    session_id: Annotated[str, Arg(says=_SESSION)],
    limit: Annotated[int, Arg(at_least=1, at_most=200, declared=True, says="Max messages (default: 50)")] = 50,
    offset: Annotated[int, Arg(at_least=0, declared=True, says="How many messages to skip (default: 0)")] = 0,
) -> ToolAnswer:
    """Read the messages of a past conversation session, from its beginning."""
    messages = scope.memory.read(kind="message", session=session_id, limit=limit, offset=offset)
    if not messages and offset == 0:
        raise NotFoundError(f"there is no session {session_id!r}; memory_list_sessions lists them")
    return ToolAnswer([_message_fields(message) for message in messages], "found" if messages else "empty")


@tool("sessions", does="forget", timeout=30, tier="destructive")
def memory_delete_session(scope: Scope, session_id: Annotated[str, Arg(says=_SESSION)]) -> ToolAnswer:
    """Delete the messages of a conversation session. Use this when the user asks for it. What was learned from the
    conversation and saved stays."""
    run = new_id("run")
    with scope.memory.acting(run=run).batch() as memory:
        messages = memory.read(kind="message", session=session_id)
        for message in messages:
            memory.forget(message.id, reason="the session was deleted by a tool")
    if not messages:
        raise NotFoundError(f"there is no session {session_id!r}; memory_list_sessions lists them")
    told = {"status": "success", "session_id": session_id, "message": f"Deleted {len(messages)} messages."}
    return ToolAnswer(told | {"run": run}, "forgotten")


@tool("sessions", does="recall", timeout=30)
def memory_export(
    scope: Scope,
    limit: Annotated[int, Arg(at_least=1, at_most=500, declared=True, says="Max items (default: 100)")] = 100,
    offset: Annotated[int, Arg(at_least=0, declared=True, says="How many items to skip (default: 0)")] = 0,
) -> ToolAnswer:
    """Export facts, notes and observations as JSON for memory_import, oldest first. If the answer has `next_offset`,
    there is more: call again with it as offset."""
    records = [record for kind in _CARRIED for record in scope.memory.read(kind=kind)]
    page = sorted(records, key=lambda record: record.id.partition("-")[2])[offset : offset + limit]
    items: list[dict[str, Any]] = []
    too_long: list[str] = []
    room, passed = _ROOM, 0
    for passed, record in enumerate(page, 1):
        item = _export_fields(record)
        size = len(json.dumps(item, ensure_ascii=False)) + 2
        fits = size <= _ROOM
        room -= size if fits else len(record.id) + 4
        if room < 0:  # it starts the next page, because a truncated answer would lose it
            passed -= 1
            break
        if fits:
            items.append(item)
        else:
            too_long.append(record.id)
    content: dict[str, Any] = {"items": items, "total": len(records)}
    if too_long:
        content["too_long"] = too_long
    if offset + passed < len(records):
        content["next_offset"] = offset + passed
    return ToolAnswer(content, "found" if page else "empty")


@tool("sessions", does="remember", timeout=30, idempotent=True)
def memory_import(
    scope: Scope,
    data: Annotated[
        str, Arg(says="The JSON from memory_export, or a JSON list of texts, each of which becomes a note")
    ],
) -> ToolAnswer:
    """Save many items at once. If one is malformed, nothing is saved. Items that are already known or that may not
    be stored are left out, and counted."""
    outcomes: list[Outcome] = []
    with scope.memory.acting(run=new_id("run")).batch() as memory:
        # recognise records whose exported form differs from the stored one
        carried = [record for kind in _CARRIED for record in memory.read(kind=kind)]
        exported = {(one.kind, shown): one for one in carried if (shown := memory_text(one.content)) != one.content}
        for number, item in enumerate(_parse_items(data)):
            try:
                if known := _find_exported(exported, item):
                    outcomes.append(Duplicate(message=f"Already known: {known.text}", record=known))
                    continue
                outcomes.append(_store_item(memory, item, f"tool:{scope.tool}"))
            except InvalidInputError as error:
                raise ArgumentsError(f"item {number} cannot be imported, and nothing was: {error}") from None
    duplicates = sum(isinstance(outcome, Duplicate) for outcome in outcomes)
    refused = [outcome.message for outcome in outcomes if isinstance(outcome, Refused)]
    saved = sum(outcome.done for outcome in outcomes)
    content = {"status": "success", "saved": saved, "duplicates": duplicates, "refused": len(refused)}
    content["conflicts"] = len(outcomes) - saved - duplicates - len(refused)
    if refused:
        content["reasons"] = list(dict.fromkeys(refused))[:10]
    return ToolAnswer(content, "written" if saved else "duplicate" if duplicates else "refused")


TOOLS = (
    memory_list_sessions,
    memory_search_sessions,
    memory_read_session,
    memory_delete_session,
    memory_export,
    memory_import,
)


def _message_fields(message: Record) -> dict[str, Any]:
    assert isinstance(message, Message)
    shown = {
        "id": message.id,
        "role": message.role,
        "text": memory_text(message.content),
        "at": to_text(message.valid_from),
    }
    if message.speaker:
        shown["speaker"] = memory_text(message.speaker)
    return mark_untrusted(message, shown)


def _export_fields(record: Record) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": record.kind, "text": record.content}
    for name in ("key", "category", "type"):
        if value := getattr(record, name):
            shown[name] = value
    if record.kind == "note" and record.tags:
        shown["tags"] = list(record.tags)
    if record.confidence != 1.0:
        shown["confidence"] = record.confidence
    return mark_untrusted(record, shown | {"created_at": created_text(record)})


def _parse_items(data: str) -> list[Any]:
    try:
        read = json.loads(data)
    except (ValueError, RecursionError):
        raise ArgumentsError("data is not valid JSON; give the output of memory_export, or a list of texts") from None
    items = read.get("items") if isinstance(read, dict) else read
    if not isinstance(items, list):
        raise ArgumentsError('data must be {"items": […]} from memory_export, or a list of texts')
    if len(items) > _MOST_IMPORTED:
        raise ArgumentsError(f"data has {len(items)} items; at most {_MOST_IMPORTED} can be imported at once")
    return items


def _find_exported(exported: dict[tuple[str, str], Record], item: Any) -> Record | None:
    """Return the record that an item was exported from, if its stored form differs."""
    kind, text = (item.get("kind", "note"), item.get("text")) if isinstance(item, dict) else ("note", item)
    return exported.get((kind, text)) if isinstance(kind, str) and isinstance(text, str) else None


def _store_item(memory: Any, item: Any, source: str) -> Outcome:
    if isinstance(item, str):
        item = {"kind": "note", "text": item}
    if not isinstance(item, dict) or item.get("kind", "note") not in _CARRIED:
        raise InvalidInputError("kind", f"must be one of {', '.join(_CARRIED)}")
    text, kind = item.get("text"), item.get("kind", "note")
    if item.get("trusted") is False:
        memory = memory.acting(trusted=False)
    outcome: Outcome
    if kind == "note":
        outcome = memory.note(text, tags=item.get("tags", ()), source=source)
    elif kind == "observation":
        outcome = memory.observe(text, _check_one_of(item, "category", OBSERVATION_CATEGORIES), source=source)
    else:
        outcome = memory.remember(
            text,
            key=item.get("key"),
            category=_check_one_of(item, "category", CATEGORIES),
            type=item.get("type"),
            confidence=item.get("confidence", 1.0),
            source=source,
        )
    return outcome


def _check_one_of(item: dict[str, Any], name: str, allowed: tuple[str, ...]) -> Any:
    if item.get(name) is not None and item[name] not in allowed:
        raise InvalidInputError(name, f"must be one of {', '.join(allowed)}")
    return item.get(name)
