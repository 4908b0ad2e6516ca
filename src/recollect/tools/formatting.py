"""Formats answers: as text or JSON, within a length limit, and without anything that could pass for a prompt."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from recollect.policy.injection import without_markup
from recollect.records import Record
from recollect.times import to_text

MAX_OUTPUT = 20_000
"""The maximum length of an answer, in characters."""

_MORE = "… (the rest was left out)"


def render_answer(content: str | dict[str, Any] | list[Any], limit: int) -> str:
    """Return an answer as text of at most ``limit`` characters. Items left out of a list are counted."""
    if isinstance(content, str):
        text = content if len(content) <= limit else _cut_at_line(content, limit)
    else:
        text = _json(content)
        if len(text) > limit:
            whole = {"results": content} if isinstance(content, list) else content
            text = _json(_fit_json(whole, limit))
        if len(text) > limit:
            text = _json({"status": "error", "message": "the answer is too long"})
    return _sendable(text)


def memory_text(text: str) -> str:
    """Return text from memory in a form that is safe in an answer."""
    return without_markup(text)


def neutralize(content: Any) -> Any:
    """Return an answer without anything that could pass for a part of a prompt. Every answer goes through here."""
    if isinstance(content, str):
        return without_markup(_sendable(content))
    if isinstance(content, dict):
        return {neutralize(name): neutralize(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [neutralize(value) for value in content]
    return content


def mark_untrusted(record: Record, shown: dict[str, Any]) -> dict[str, Any]:
    """Return the shown fields of a record, marked if it came from an untrusted source."""
    return shown if record.trusted else shown | {"trusted": False}


def created_text(record: Record) -> str:
    """Return the time of a record as text."""
    return to_text(record.created_at)


def _sendable(text: str) -> str:
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _fit_json(value: Any, room: int) -> Any:
    """Return as much of a value as fits as JSON. Lists lose items at the end; texts are cut, the longest first."""
    if len(_json(value)) <= room:
        return value
    if isinstance(value, str):
        return _most(len(value), lambda end: value[:end] + _MORE, room)
    if isinstance(value, list):
        kept = _most(len(value), lambda end: value[:end], room)
        return kept or [_fit_json(value[0], room - 2)] if value else value
    if not isinstance(value, dict):
        return None
    shown = dict(value)
    for name in sorted(shown, key=lambda name: -len(_json(shown[name]))):
        whole = shown
        if isinstance(shown[name], list):
            shown = shown | {"left_out": len(shown[name])}
        others = len(_json(shown | {name: ""})) - 2
        shown = shown | {name: _fit_json(shown[name], max(room - others, 2))}
        if isinstance(shown[name], list) and not (left := len(whole[name]) - len(shown[name])):
            shown.pop("left_out")
        elif isinstance(shown[name], list):
            shown["left_out"] = left
        if len(_json(shown)) <= room:
            break
    return shown


def _most(length: int, part: Callable[[int], Any], room: int) -> Any:
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(_json(part(middle))) <= room else (low, middle - 1)
    return part(low)


def _cut_at_line(text: str, limit: int) -> str:
    kept = text[: limit - len(_MORE) - 1]
    end = kept.rfind("\n")
    return (kept[:end] if end > limit // 2 else kept) + f"\n{_MORE}"
