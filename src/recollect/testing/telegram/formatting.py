"""A text with its entities: counted as Telegram counts, tidied as Telegram tidies, and drawn for people to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from recollect.testing.telegram.refusal import RefusalError

MOST_ENTITIES = 100
_MARKS = {
    "bold": "*",
    "italic": "_",
    "underline": "__",
    "strikethrough": "~",
    "spoiler": "||",
    "code": "`",
}
_STYLES = {*_MARKS, "pre", "text_link", "text_mention", "custom_emoji", "blockquote", "expandable_blockquote"}
_FOUND = re.compile(
    r"(?P<url>(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,!?;:)\]'])"
    r"|(?P<email>(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<bot_command>(?<![\w/<>@])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/@]))"
    r"|(?P<mention>(?<![\w@])@[A-Za-z][A-Za-z0-9_]{2,31}(?!\w))"
    r"|(?P<hashtag>(?<![\w#])#\w*[^\W\d]\w*)"
)


@dataclass(frozen=True)
class Entity:
    """A stretch of text that is formatted or means something, counted in UTF-16 units."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""
    user: Mapping[str, Any] | None = field(default=None, hash=False)
    custom_emoji: str = ""

    @property
    def end(self) -> int:
        return self.offset + self.length

    def json(self) -> dict[str, Any]:
        extra = {
            "url": self.url,
            "language": self.language,
            "user": self.user,
            "custom_emoji_id": self.custom_emoji,
        }
        body = {"type": self.type, "offset": self.offset, "length": self.length}
        return {**body, **{name: value for name, value in extra.items() if value}}


@dataclass(frozen=True)
class Formatted:
    """What a message says, and how it looks."""

    text: str = ""
    entities: tuple[Entity, ...] = ()

    def of(self, entity: Entity) -> str:
        """The part of the text that an entity is about."""
        return "".join(_units(self.text)[entity.offset : entity.end])

    def drawn(self) -> str:
        """The text with its formatting as signs, for people: ``*bold*``, ``||spoiler||``, ``words (link)``."""
        opening: dict[int, list[str]] = {}
        closing: dict[int, list[str]] = {}
        for entity in self.entities:
            before, after = _signs(entity)
            if before or after:
                opening.setdefault(entity.offset, []).append(before)
                closing.setdefault(entity.end, []).insert(0, after)
        units = _units(self.text)
        drawn: list[str] = []
        for place in range(len(units) + 1):
            drawn += closing.get(place, [])
            drawn += opening.get(place, [])
            if place < len(units):
                drawn.append(units[place])
        return "".join(drawn)


def length(text: str) -> int:
    """How long Telegram says the text is: in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


def cut(formatted: Formatted) -> Formatted:
    """Without what Telegram takes away: control characters, white space around the text, entities with nothing in."""
    kept = _without_returns(formatted)
    text = "".join(" " if character < " " and character not in "\n\t" else character for character in kept.text)
    start = length(text) - length(text.lstrip())
    text = text.strip()
    units = _units(text)
    entities = []
    for entity in kept.entities:
        first = min(max(entity.offset - start, 0), len(units))
        last = min(max(entity.end - start, 0), len(units))
        while entity.type not in ("pre", "code") and last > first and units[last - 1].isspace():
            last -= 1
        if last > first:
            entities.append(replace(entity, offset=first, length=last - first))
    return Formatted(text, _in_order(entities))


def with_found(formatted: Formatted) -> Formatted:
    """With the commands, mentions, links and hashtags that Telegram finds by itself, outside of code and links."""
    shielded = [
        (one.offset, one.end)
        for one in formatted.entities
        if one.type in ("code", "pre", "text_link", "text_mention", *_FOUND.groupindex)
    ]
    entities = list(formatted.entities)
    for match in _FOUND.finditer(formatted.text):
        kind = match.lastgroup or ""
        start = length(formatted.text[: match.start()])
        end = start + length(match.group())
        if not any(start < last and first < end for first, last in shielded):
            entities.append(Entity(kind, start, end - start))
    return Formatted(formatted.text, _in_order(entities))


def given(text: str, entities: Any, user_of: Callable[[int], Mapping[str, Any] | None]) -> Formatted:
    """A text whose entities the bot counted itself."""
    if not isinstance(entities, Sequence) or isinstance(entities, str):
        raise RefusalError("can't parse entities: expected an Array")
    found = []
    units = _units(text)
    for one in entities:
        if not isinstance(one, Mapping):
            raise RefusalError("can't parse entities: expected an Object")
        kind, offset, size = one.get("type"), one.get("offset"), one.get("length")
        if not (isinstance(kind, str) and isinstance(offset, int) and isinstance(size, int)):
            raise RefusalError("can't parse entities: a MessageEntity has a type, an offset and a length")
        if kind not in _STYLES or size <= 0:
            continue  # what can be found in the text is found there again
        if offset < 0 or offset + size > len(units):
            raise RefusalError("can't parse entities: the entity is outside of the text")
        if "" in (units[offset], *units[offset + size : offset + size + 1]):
            raise RefusalError("can't parse entities: the entity begins or ends in the middle of a UTF-16 symbol")
        user = one.get("user")
        number = user.get("id") if isinstance(user, Mapping) else None
        known = user_of(number) if isinstance(number, int) else None
        if kind == "text_mention" and known is None:
            continue
        url = ""
        if kind == "text_link":
            url = web_address(str(one.get("url", "")))
            if not url:
                raise RefusalError(f"entity URL '{one.get('url', '')}' is invalid: Wrong HTTP URL")
        language, emoji = str(one.get("language", "")), str(one.get("custom_emoji_id", ""))
        found.append(Entity(kind, offset, size, url, language, known, emoji))
    return Formatted(text, _in_order(found))


def web_address(url: str) -> str:
    """A link as Telegram stores it, or nothing if it is none."""
    url = url.strip()
    if url.startswith(("tg://", "ton://", "mailto:", "tel:")):
        return url
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or re.search(r"\s", host) or not re.fullmatch(r"[^.]+(\.[^.]+)+", host):
        return ""
    return parts._replace(path=parts.path or "/").geturl()


def _in_order(entities: Sequence[Entity]) -> tuple[Entity, ...]:
    ordered = sorted(entities, key=lambda one: (one.offset, -one.length))
    return tuple(ordered[:MOST_ENTITIES])


def _without_returns(formatted: Formatted) -> Formatted:
    """Without carriage returns, and each entity where it was."""
    units = _units(formatted.text)
    before = [0]
    for unit in units:
        before.append(before[-1] + (unit != "\r"))
    entities = tuple(
        replace(one, offset=before[one.offset], length=before[one.end] - before[one.offset])
        for one in formatted.entities
    )
    return Formatted(formatted.text.replace("\r", ""), entities)


def _units(text: str) -> list[str]:
    """One place for each UTF-16 unit; a character of two units is in the first of its places."""
    units: list[str] = []
    for character in text:
        units.append(character)
        if character > "\uffff":
            units.append("")
    return units


def _signs(entity: Entity) -> tuple[str, str]:
    if entity.type in _MARKS:
        return _MARKS[entity.type], _MARKS[entity.type]
    if entity.type == "pre":
        return f"```{entity.language}\n", "\n```"
    if entity.type == "text_link":
        return "", f" ({entity.url})"
    if entity.type in ("blockquote", "expandable_blockquote"):
        return "> ", ""
    return "", ""
