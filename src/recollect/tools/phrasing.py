"""How answers are put: as text or JSON, not longer than a limit, and with nothing in them that passes for a prompt."""

from __future__ import annotations

import json
from typing import Any

from recollect.policy.injection import without_markup
from recollect.records import Record
from recollect.times import to_text

_MORE = "… (the rest was left out)"


def phrased(content: str | dict[str, Any] | list[Any], limit: int) -> str:
    """The answer as text of at most ``limit`` characters; what is left out of a list is counted."""
    if isinstance(content, str):
        return content if len(content) <= limit else _cut_at_line(content, limit)
    text = _json(content)
    return text if len(text) <= limit else _shorter(content, limit)


def said(text: str) -> str:
    """Text from memory, fit for an answer."""
    return without_markup(text)


def marked(record: Record, shown: dict[str, Any]) -> dict[str, Any]:
    """What is shown of a record, with a mark if it came from a source that is not trusted."""
    return shown if record.trusted else shown | {"trusted": False}


def moment(record: Record) -> str:
    """When a record was made, as text."""
    return to_text(record.created_at)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)


def _shorter(content: dict[str, Any] | list[Any], limit: int) -> str:
    """The longest list in it loses items from its end; if that is not enough, the longest text is cut."""
    whole: dict[str, Any] = {"results": content} if isinstance(content, list) else content
    name = max(whole, key=lambda key: len(_json(whole[key])))
    value = whole[name]
    if isinstance(value, dict):
        return _shorter(value | {"cut": True}, limit)
    if isinstance(value, str):
        room = limit - (len(_json(whole)) - len(_json(value))) - 40
        while room > 0 and len(text := _json(whole | {name: value[:room] + _MORE})) > limit:
            room -= max(len(text) - limit, 1)
        return text if room > 0 else _json({"status": "error", "message": "the answer is too long"})
    if not isinstance(value, list) or not value:
        return _json({"status": "error", "message": "the answer is too long"})
    low, high = 0, len(value)
    while low < high:
        middle = (low + high + 1) // 2
        if len(_json(_left_out(whole, name, middle))) <= limit:
            low = middle
        else:
            high = middle - 1
    if low == 0 and len(value) == 1:
        only = value[0]
        if isinstance(only, dict):
            return _shorter(only, limit)
    return _json(_left_out(whole, name, low))


def _left_out(whole: dict[str, Any], name: str, kept: int) -> dict[str, Any]:
    items = whole[name]
    return whole | {name: items[:kept], "left_out": len(items) - kept}


def _cut_at_line(text: str, limit: int) -> str:
    kept = text[: limit - len(_MORE) - 1]
    end = kept.rfind("\n")
    return (kept[:end] if end > limit // 2 else kept) + f"\n{_MORE}"
