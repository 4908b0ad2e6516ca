"""Texts with entities, counted in UTF-16 units as Telegram counts them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import Any

MOST_ENTITIES = 100
_TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "s": "strikethrough",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "a": "text_link",
}
_MARKS = {"bold": "*", "italic": "_", "underline": "__", "strikethrough": "~", "code": "`", "pre": "```"}
_REFERENCES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_FOUND = re.compile(
    r"(?P<url>(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,!?;:)\]'])"
    r"|(?P<email>(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<bot_command>(?<![\w/<>@])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/@]))"
    r"|(?P<mention>(?<![\w@])@[A-Za-z][A-Za-z0-9_]{2,31}(?!\w))"
    r"|(?P<hashtag>(?<![\w#])#\w*[^\W\d]\w*)"
)


class BotApiError(Exception):
    """An error answer of the Bot API."""

    def __init__(self, description: str, status: int = 400, **parameters: int) -> None:
        phrase = {400: "Bad Request", 403: "Forbidden", 409: "Conflict", 429: "Too Many Requests"}.get(status)
        self.description = f"{phrase}: {description}" if phrase else description
        self.status = status
        self.body: dict[str, Any] = {"ok": False, "error_code": status, "description": self.description}
        if parameters:
            self.body["parameters"] = parameters
        super().__init__(self.description)


@dataclass(frozen=True)
class Entity:
    """A part of a text that is formatted or has a meaning, such as a command."""

    type: str
    offset: int
    length: int
    url: str = ""

    def json(self) -> dict[str, Any]:
        body = {"type": self.type, "offset": self.offset, "length": self.length}
        return {**body, "url": self.url} if self.url else body


@dataclass(frozen=True)
class FormattedText:
    """A text as it is shown."""

    text: str = ""
    entities: tuple[Entity, ...] = ()

    def part(self, entity: Entity) -> str:
        """Return the part of the text that an entity covers."""
        units = self.text.encode("utf-16-le", "surrogatepass")
        return units[2 * entity.offset : 2 * (entity.offset + entity.length)].decode("utf-16-le", "surrogatepass")

    def rendered(self) -> str:
        """Return the text with its formatting as signs: ``*bold*``, ``_italic_``."""
        signs: dict[int, str] = {}
        for entity in self.entities:
            mark, end = _MARKS.get(entity.type, ""), entity.offset + entity.length
            signs[entity.offset] = signs.get(entity.offset, "") + mark
            signs[end] = mark + signs.get(end, "")
        rendered, place = [], 0
        for character in self.text:
            rendered += [signs.pop(place, ""), character]
            place += utf16_length(character)
        return "".join([*rendered, *signs.values()])


NO_TEXT = FormattedText()


def utf16_length(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)


def plain_text(text: str) -> FormattedText:
    """Return what somebody typed, with the entities that Telegram finds in it."""
    return _with_found_entities(_stripped(FormattedText(_without_controls(text))))


def parse_html(source: str) -> FormattedText:
    """Return what Telegram makes of HTML; raise BotApiError if it cannot parse it."""
    if re.search("<[!?]", source):  # a comment or declaration
        raise _unparsable("unsupported start tag")
    parser = _TelegramHtml()
    parser.feed(_without_controls(source))
    parser.close()
    if parser.open:
        raise _unparsable(f'can\'t find end tag corresponding to start tag "{parser.open[-1][0]}"')
    entities = sorted(parser.entities, key=lambda entity: (entity.offset, -entity.length))
    return _with_found_entities(_stripped(FormattedText("".join(parser.texts), tuple(entities))))


class _TelegramHtml(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.texts: list[str] = []
        self.entities: list[Entity] = []
        self.open: list[tuple[str, int, str]] = []
        """The tags that are not closed yet, with their offset and link."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            raise _unparsable(f'unsupported start tag "{tag}"')
        self.open.append((tag, self._offset(), dict(attrs).get("href") or ""))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1][0] != tag:
            raise _unparsable(f'unexpected end tag "{tag}"')
        _, offset, url = self.open.pop()
        self.entities.append(Entity(_TAGS[tag], offset, self._offset() - offset, url))

    def handle_data(self, data: str) -> None:
        if "<" in data:
            raise _unparsable("unclosed start tag")
        self.texts.append(data)

    def handle_entityref(self, name: str) -> None:
        self.texts.append(_REFERENCES.get(name, f"&{name};"))

    def handle_charref(self, name: str) -> None:
        self.texts.append(chr(int(name[1:], 16) if name[0] in "xX" else int(name)))

    def _offset(self) -> int:
        return sum(map(utf16_length, self.texts))


def _unparsable(problem: str) -> BotApiError:
    return BotApiError(f"can't parse entities: {problem}")


def _without_controls(text: str) -> str:
    return "".join(" " if one < " " and one not in "\n\t" else one for one in text.replace("\r", ""))


def _stripped(formatted: FormattedText) -> FormattedText:
    """Return a text without white space around it."""
    text = formatted.text.strip()
    start = utf16_length(formatted.text) - utf16_length(formatted.text.lstrip())
    entities = []
    for entity in formatted.entities:
        first, last = (max(place - start, 0) for place in (entity.offset, entity.offset + entity.length))
        last = min(last, utf16_length(text))
        if last > first:
            entities.append(replace(entity, offset=first, length=last - first))
    return FormattedText(text, tuple(entities))


def _with_found_entities(formatted: FormattedText) -> FormattedText:
    """Return a text with the commands, mentions, links and hashtags that Telegram finds outside of code."""
    entities = list(formatted.entities)
    code = [one for one in entities if one.type in ("code", "pre", "text_link")]
    for match in _FOUND.finditer(formatted.text):
        offset, length = utf16_length(formatted.text[: match.start()]), utf16_length(match.group())
        if not any(offset < one.offset + one.length and one.offset < offset + length for one in code):
            entities.append(Entity(match.lastgroup or "", offset, length))
    entities.sort(key=lambda entity: (entity.offset, -entity.length))
    return FormattedText(formatted.text, tuple(entities[:MOST_ENTITIES]))
