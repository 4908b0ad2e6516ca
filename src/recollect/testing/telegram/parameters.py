"""What a request asks with: read from the address, a form, JSON or an upload, and given out in the wanted type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from recollect.testing.telegram.refusal import RefusalError

_WHOLE = frozenset(
    {
        "chat_id",
        "limit",
        "max_connections",
        "message_id",
        "message_thread_id",
        "offset",
        "reply_to_message_id",
        "timeout",
        "user_id",
    }
)
DEEPEST = 50
"""Levels of objects and lists in a request."""
_STRUCTURED = frozenset(
    {
        "allowed_updates",
        "caption_entities",
        "commands",
        "entities",
        "link_preview_options",
        "reaction",
        "reply_markup",
        "reply_parameters",
        "scope",
    }
)


@dataclass(frozen=True)
class Upload:
    """A file that came with a request."""

    name: str
    content: bytes


def read(query: str, content_type: str, content: bytes) -> dict[str, Any]:
    """All parameters of a request by name. Numbers and JSON are made what they mean, where they mean something."""
    found: dict[str, Any] = _form(query)
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json" and content.strip():
        found.update(_object(content))
    elif kind == "multipart/form-data":
        found.update(_parts(content_type, content))
    elif content:
        found.update(_form(content.decode("utf-8", "surrogateescape")))
    meant = {name: _meant(name, value) for name, value in found.items()}
    if not _within(meant, DEEPEST):
        raise RefusalError("can't parse JSON object: it is nested too deep")
    return meant


class Parameters:
    """Gives parameters in the type that a method wants; raises RefusalError."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def text(self, name: str, default: str = "") -> str:
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            value = json.dumps(value) if not isinstance(value, Upload) else ""
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise RefusalError("strings must be encoded in UTF-8") from None
        return str(value)

    def whole(self, name: str, default: int | None = None) -> int | None:
        value = self.values.get(name)
        if value is None or value == "":
            return default
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63:
            raise RefusalError(f'invalid parameter "{name}": an Integer is expected')
        return value

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        return value is True or (isinstance(value, str | int) and str(value).lower() in ("true", "yes", "1"))

    def structured(self, name: str, kind: type) -> Any:
        """An object or a list, or None."""
        value = self.values.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, kind):
            wanted = "an Array" if kind is list else "an Object"
            raise RefusalError(f"can't parse {name.replace('_', ' ')} JSON object: {wanted} is expected")
        _check_unicode(value)
        return value

    def upload(self, name: str) -> Upload | str | None:
        """A file that came along, or the id of one that Telegram has."""
        value = self.values.get(name)
        if isinstance(value, str) and value.startswith("attach://"):
            value = self.values.get(value.removeprefix("attach://"))
        return value if isinstance(value, Upload | str) and value != "" else None


def _check_unicode(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise RefusalError("strings must be encoded in UTF-8") from None


def _meant(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name in _WHOLE and re.fullmatch(r"-?\d{1,19}", value, re.ASCII):
        return int(value)
    if name in _STRUCTURED:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _within(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inside = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_within(one, levels - 1) for one in inside)


def _form(text: str) -> dict[str, Any]:
    try:
        return dict(parse_qsl(text, keep_blank_values=True, errors="surrogateescape", max_num_fields=1000))
    except ValueError:
        raise RefusalError("too many parameters") from None


def _object(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise RefusalError("can't parse JSON object") from None
    if not isinstance(body, dict):
        raise RefusalError("can't parse JSON object: an Object is expected")
    return body


def _parts(content_type: str, content: bytes) -> Iterator[tuple[str, Any]]:
    """The parts of an upload: fields as text, files as `Upload`."""
    match = re.search(r'boundary=(?:"([^"]+)"|([^;\s]+))', content_type, re.IGNORECASE)
    if match is None:
        raise RefusalError("can't parse multipart/form-data: boundary not found")
    boundary = b"\r\n--" + (match.group(1) or match.group(2)).encode("latin-1", "replace")
    pieces = (b"\r\n" + content).split(boundary)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise RefusalError("can't parse multipart/form-data: unexpected end of the upload")
    for piece in pieces[1:-1]:
        head, found, body = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        label = re.search(r"content-disposition:([^\r\n]*)", head.decode("utf-8", "replace"), re.IGNORECASE)
        name = re.search(r'[;\s]name="([^"]*)"', label.group(1)) if label else None
        if not found or name is None or label is None:
            raise RefusalError("can't parse multipart/form-data: a part has no name")
        file = re.search(r'[;\s]filename="((?:\\.|[^"\\])*)"', label.group(1))
        encoded = re.search(r"[;\s]filename\*=utf-8''([^;\s]+)", label.group(1), re.IGNORECASE)
        if encoded is not None:
            yield name.group(1), Upload(unquote(encoded.group(1)), body)
        elif file is not None:
            yield name.group(1), Upload(_unescaped(file.group(1)), body)
        else:
            yield name.group(1), body.decode("utf-8", "surrogateescape")


def _unescaped(name: str) -> str:
    """A file's name as it was before browsers and libraries made it fit between quotes."""
    return re.sub(r"\\(.)", r"\1", name).replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")
