"""How answers are put: as text or JSON, not longer than a limit, and with nothing in them that passes for a prompt."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from recollect.policy.injection import without_markup
from recollect.records import Record
from recollect.times import to_text

MAX_OUTPUT = 20_000
"""The longest answer, in characters."""

_MORE = "… (the rest was left out)"


def render_answer(content: str | dict[str, Any] | list[Any], limit: int) -> str:
    """The answer as text of at most ``limit`` characters; what is left out of a list is counted."""
    if isinstance(content, str):
        text = content if len(content) <= limit else _cut_at_line(content, limit)
    else:
        text = _json(content)
        if len(text) > limit:
            whole = {"results": content} if isinstance(content, list) else content
            text = _json(_fitted(whole, limit))
        if len(text) > limit:
            text = _json({"status": "error", "message": "the answer is too long"})
    return _sendable(text)


def memory_text(text: str) -> str:
    """Text from memory, fit for an answer."""
    return without_markup(text)


def neutralize(content: Any) -> Any:
    """An answer with nothing in any of its texts that passes for a part of a prompt. Every answer goes through here."""
    if isinstance(content, str):
        return without_markup(_sendable(content))
    if isinstance(content, dict):
        return {neutralize(name): neutralize(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [neutralize(value) for value in content]
    return content


def mark_untrusted(record: Record, shown: dict[str, Any]) -> dict[str, Any]:
    """What is shown of a record, with a mark if it came from a source that is not trusted."""
    return shown if record.trusted else shown | {"trusted": False}


def created_text(record: Record) -> str:
    """When a record was made, as text."""
    return to_text(record.created_at)


def _sendable(text: str) -> str:
    """The text without halves of characters."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _fitted(value: Any, room: int) -> Any:
    """As much of a value as has room as JSON. Lists lose items from their end, texts are cut, the longest first."""
    if len(_json(value)) <= room:
        return value
    if isinstance(value, str):
        return _most(len(value), lambda end: value[:end] + _MORE, room)
    if isinstance(value, list):
        kept = _most(len(value), lambda end: value[:end], room)
        return kept or [_fitted(value[0], room - 2)] if value else value
    if not isinstance(value, dict):
        return None
    shown = dict(value)
    for name in sorted(shown, key=lambda name: -len(_json(shown[name]))):
        whole = shown
        if isinstance(shown[name], list):
            shown = shown | {"left_out": len(shown[name])}
        others = len(_json(shown | {name: ""})) - 2
        shown = shown | {name: _fitted(shown[name], max(room - others, 2))}
        if isinstance(shown[name], list) and not (left := len(whole[name]) - len(shown[name])):
            shown.pop("left_out")
        elif isinstance(shown[name], list):
            shown["left_out"] = left
        if len(_json(shown)) <= room:
            break
    return shown


def _most(length: int, part: Callable[[int], Any], room: int) -> Any:
    """The longest part that has room; the shortest if none has."""
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(_json(part(middle))) <= room else (low, middle - 1)
    return part(low)


def _cut_at_line(text: str, limit: int) -> str:
    kept = text[: limit - len(_MORE) - 1]
    end = kept.rfind("\n")
    return (kept[:end] if end > limit // 2 else kept) + f"\n{_MORE}"
