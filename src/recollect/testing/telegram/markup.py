"""The three ways to write formatted text: MarkdownV2, HTML and the old Markdown. They refuse what Telegram refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from recollect.testing.telegram.formatting import Entity, Formatted, length, web_address
from recollect.testing.telegram.refusal import RefusalError

UserOf = Callable[[int], Mapping[str, Any] | None]
_RESERVED = "_*[]()~`>#+-=|{}.!\n"
_NAMES = {
    "bold": "Bold",
    "italic": "Italic",
    "underline": "Underline",
    "strikethrough": "Strikethrough",
    "spoiler": "Spoiler",
    "code": "Code",
    "text_link": "TextUrl",
    "custom_emoji": "CustomEmoji",
}
_TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "code": "code",
    "pre": "pre",
    "a": "text_link",
    "blockquote": "blockquote",
    "tg-emoji": "custom_emoji",
}
_SAFE = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_URL = re.compile(r"\(((?:\\[\x01-\x7e]|[^)\\]|\\(?![\x01-\x7e]))*)\)", re.DOTALL)
_REFERENCE = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(lt|gt|amp|quot));?")


def parse(text: str, mode: str, user_of: UserOf) -> Formatted:
    """The text without its markup; raises RefusalError."""
    modes = {"markdownv2": _MarkdownV2, "html": _Html, "markdown": _Markdown}
    if not mode or mode.lower() == "none":
        return Formatted(text)
    if mode.lower() not in modes:
        raise RefusalError("unsupported parse_mode")
    return modes[mode.lower()](text, user_of).parse()


@dataclass
class _Open:
    """An entity whose end is still to come."""

    type: str
    start: int
    place: int
    argument: str = ""
    tag: str = ""


class _Parser:
    """Reads from left to right; keeps what is open."""

    def __init__(self, source: str, user_of: UserOf) -> None:
        self.source = source
        self.user_of = user_of
        self.place = 0
        self.size = 0
        self.out: list[str] = []
        self.open: list[_Open] = []
        self.entities: list[Entity] = []

    def parse(self) -> Formatted:
        raise NotImplementedError

    def ahead(self, text: str, by: int = 0) -> bool:
        return self.source.startswith(text, self.place + by)

    def say(self, text: str) -> None:
        self.out.append(text)
        self.size += length(text)

    def since(self, start: int) -> str:
        """What was said since then."""
        size, found = self.size, []
        for piece in reversed(self.out):
            if size <= start:
                break
            found.append(piece)
            size -= length(piece)
        return "".join(reversed(found))

    def byte(self, place: int) -> int:
        return len(self.source[:place].encode("utf-8", "surrogatepass"))

    def refuse(self, problem: str) -> RefusalError:
        return RefusalError(f"can't parse entities: {problem}")

    def add(self, type: str, start: int, **extra: Any) -> None:
        if self.size > start:
            self.entities.append(Entity(type, start, self.size - start, **extra))

    def add_link(self, start: int, url: str) -> None:
        """A link, or a mention of somebody without a username; a link to nowhere is only text."""
        known = re.fullmatch(r"tg://user\?id=(\d{1,15})", url.strip())
        if known:
            user = self.user_of(int(known.group(1)))
            if user is not None:
                self.add("text_mention", start, user=user)
        elif address := web_address(url):
            self.add("text_link", start, url=address)

    def add_emoji(self, start: int, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "tg":
            raise self.refuse("Custom emoji URL must have scheme tg")
        if (parts.netloc or parts.path.strip("/")) != "emoji":
            raise self.refuse('Custom emoji URL must have host "emoji"')
        number = parse_qs(parts.query).get("id", [""])[0]
        if not number:
            raise self.refuse("Custom emoji URL must have an emoji identifier")
        self.add("custom_emoji", start, custom_emoji=self.emoji_number(number))

    def emoji_number(self, number: str) -> str:
        if not re.fullmatch(r"[1-9]\d{0,18}", number):
            raise self.refuse("Invalid custom emoji identifier specified")
        return number

    def done(self) -> Formatted:
        return Formatted("".join(self.out), tuple(self.entities))


class _MarkdownV2(_Parser):
    """https://core.telegram.org/bots/api#markdownv2-style"""

    def parse(self) -> Formatted:
        self.quote: int | None = None
        self.may_quote = True
        while self.place < len(self.source):
            character = self.source[self.place]
            following = self.source[self.place + 1 : self.place + 2]
            if character == "\\" and following and "\0" < following <= "~":
                self._plain(following)
                self.place += 2
            elif character not in ("`" if self._in_code() else _RESERVED):
                self._plain(character)
                self.place += 1
            elif character == "\n":
                self._line_end()
            elif not self._ends():
                self._starts(character)
        self._end_quote("blockquote")
        self._check_closed()
        return self.done()

    def _plain(self, character: str) -> None:
        self.say(character)
        if character != "\r":
            self.may_quote = False

    def _in_code(self) -> bool:
        return bool(self.open) and self.open[-1].type in ("code", "pre")

    def _check_closed(self) -> None:
        if self.open:
            last = self.open[-1]
            name = _NAMES.get(last.type) or ("PreCode" if last.argument else "Pre")
            raise self.refuse(f"Can't find end of {name} entity at byte offset {self.byte(last.place)}")

    def _line_end(self) -> None:
        self.say("\n")
        self.place += 1
        self.may_quote = True
        if self.quote is not None and not self.ahead(">"):
            self._end_quote("blockquote")

    def _end_quote(self, kind: str) -> None:
        if self.quote is not None:
            self._check_closed()
            self.add(kind, self.quote)
            self.quote = None

    def _ends(self) -> bool:
        """Closes the innermost entity if its end is here."""
        if not self.open:
            return False
        last = self.open[-1]
        if last.type == "italic":
            here = self.ahead("_") and not self.ahead("__")
        else:
            here = self.ahead(
                {
                    "bold": "*",
                    "underline": "__",
                    "strikethrough": "~",
                    "spoiler": "||",
                    "code": "`",
                    "pre": "```",
                    "text_link": "]",
                    "custom_emoji": "]",
                }[last.type]
            )
        if not here:
            return False
        self.open.pop()
        self.place += {"underline": 2, "spoiler": 2, "pre": 3}.get(last.type, 1)
        if last.type == "pre":
            self.add("pre", last.start, language=last.argument)
        elif last.type == "text_link":
            self.add_link(last.start, self._url("a URL") or self.since(last.start))
        elif last.type == "custom_emoji":
            url = self._url("a custom emoji URL")
            if not url:
                raise self.refuse("Custom emoji entity must contain a tg://emoji URL")
            self.add_emoji(last.start, url)
        else:
            self.add(last.type, last.start)
        return True

    def _url(self, what: str) -> str:
        """What stands in the brackets after a link's text; nothing if there are none."""
        if not self.ahead("("):
            return ""
        match = _URL.match(self.source, self.place)
        if match is None:
            raise self.refuse(f"Can't find end of {what} at byte offset {self.byte(self.place + 1)}")
        self.place = match.end()
        return re.sub(r"\\([\x01-\x7e])", r"\1", match.group(1), flags=re.S)

    def _starts(self, character: str) -> None:
        start = _Open("", self.size, self.place)
        if self.quote is not None and self.ahead("||") and self.source[self.place + 2 : self.place + 3] in ("", "\n"):
            self.place += 2
            self._end_quote("expandable_blockquote")
            return
        if character == "_":
            start.type = "underline" if self.ahead("__") else "italic"
        elif character == "*":
            start.type = "bold"
        elif character == "~":
            start.type = "strikethrough"
        elif self.ahead("||"):
            start.type = "spoiler"
        elif character == "[":
            start.type = "text_link"
        elif self.ahead("!["):
            start.type = "custom_emoji"
        elif self.ahead("```"):
            self._start_pre(start)
            return
        elif character == "`":
            start.type = "code"
        elif character == ">" and self.may_quote:
            if self.quote is None:
                self._check_closed()
                self.quote = self.size
            self.place += 1
            self.may_quote = False
            return
        else:
            raise self.refuse(f"Character '{character}' is reserved and must be escaped with the preceding '\\'")
        self.place += 2 if start.type in ("underline", "spoiler", "custom_emoji") else 1
        self.open.append(start)

    def _start_pre(self, start: _Open) -> None:
        start.type = "pre"
        match = re.compile(r"```([^\s`]+)(?=[^`])").match(self.source, self.place)
        start.argument = match.group(1) if match else ""
        self.place = match.end() if match else self.place + 3
        if self.ahead("\r\n") or self.ahead("\n\r"):
            self.place += 2
        elif self.ahead("\n") or self.ahead("\r"):
            self.place += 1
        self.open.append(start)


class _Html(_Parser):
    """https://core.telegram.org/bots/api#html-style"""

    def parse(self) -> Formatted:
        while self.place < len(self.source):
            character = self.source[self.place]
            if character == "<":
                if self.ahead("</"):
                    self._end_tag()
                else:
                    self._start_tag()
            elif (
                character == "&"
                and (match := _REFERENCE.match(self.source, self.place))
                and (meant := _referenced(match))
            ):
                self.say(meant)
                self.place = match.end()
            else:
                self.say(character)
                self.place += 1
        if self.open:
            raise self.refuse(f'Can\'t find end tag corresponding to start tag "{self.open[-1].tag}"')
        self._join_code()
        return self.done()

    def _start_tag(self) -> None:
        begin = self.place
        match = re.compile(r"<([^\s>]*)").match(self.source, begin)
        assert match is not None
        tag, self.place = match.group(1).lower(), match.end()
        if self.place >= len(self.source):
            raise self.refuse(f"Unclosed start tag at byte offset {self.byte(begin)}")
        if tag not in _TAGS:
            raise self.refuse(f'Unsupported start tag "{tag}" at byte offset {self.byte(begin)}')
        attributes = self._attributes(tag, begin)
        start = _Open(_TAGS[tag], self.size, begin, tag=tag)
        if tag == "a":
            start.argument = attributes.get("href", "")
        elif tag == "code":
            language = attributes.get("class", "")
            start.argument = language.removeprefix("language-") if language.startswith("language-") else ""
        elif tag == "span" and attributes.get("class") != "tg-spoiler":
            raise self.refuse(f'Tag "span" must have class "tg-spoiler" at byte offset {self.byte(begin)}')
        elif tag == "tg-emoji":
            start.argument = self.emoji_number(attributes.get("emoji-id", ""))
        elif tag == "blockquote" and "expandable" in attributes:
            start.type = "expandable_blockquote"
        self.open.append(start)

    def _attributes(self, tag: str, begin: int) -> dict[str, str]:
        """What stands in a tag after its name, up to its end."""
        found: dict[str, str] = {}
        blank = re.compile(r"\s*")
        name = re.compile(r"[^\s=>/\"']+|/")
        value = re.compile(r"\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9.\-:/?#&=_%+~]+)")
        while True:
            self.place = self._past(blank)
            if self.place >= len(self.source):
                raise self.refuse(f'Unclosed start tag "{tag}" at byte offset {self.byte(begin)}')
            if self.ahead(">"):
                self.place += 1
                return found
            match = name.match(self.source, self.place)
            if match is None:
                raise self.refuse(f'Empty attribute name in the tag "{tag}" at byte offset {self.byte(begin)}')
            key, self.place = match.group().lower(), match.end()
            self.place = self._past(blank)
            found[key] = ""
            if self.ahead("="):
                self.place += 1
                self.place = self._past(blank)
                given = value.match(self.source, self.place)
                if given is None:
                    raise self.refuse(f'Unclosed start tag "{tag}" at byte offset {self.byte(begin)}')
                self.place = given.end()
                text = next(one for one in given.groups() if one is not None)
                found[key] = _REFERENCE.sub(lambda one: _referenced(one) or one.group(), text)

    def _past(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.source, self.place)
        return match.end() if match else self.place

    def _end_tag(self) -> None:
        begin = self.place
        if not self.open:
            raise self.refuse(f"Unexpected end tag at byte offset {self.byte(begin)}")
        match = re.compile(r"</([^\s>]*)\s*(>?)").match(self.source, begin)
        assert match is not None
        tag, self.place = match.group(1).lower(), match.end()
        if not match.group(2):
            raise self.refuse(f"Unclosed end tag at byte offset {self.byte(begin)}")
        last = self.open.pop()
        if tag and tag != last.tag:
            raise self.refuse(
                f'Unmatched end tag at byte offset {self.byte(begin)}, expected "</{last.tag}>", found "</{tag}>"'
            )
        if last.type == "text_link":
            self.add_link(last.start, last.argument or self.since(last.start))
        elif last.type == "custom_emoji":
            self.add(last.type, last.start, custom_emoji=last.argument)
        else:
            self.add(last.type, last.start, language=last.argument)

    def _join_code(self) -> None:
        """``<pre><code class="language-python">`` is one block of Python; elsewhere code has no language."""
        named = {(one.offset, one.length): one for one in self.entities if one.type == "code" and one.language}
        blocks = {(one.offset, one.length) for one in self.entities if one.type == "pre"}
        joined = []
        for one in self.entities:
            place = (one.offset, one.length)
            if one.type == "pre" and place in named:
                joined.append(Entity("pre", *place, language=named[place].language))
            elif one.type != "code":
                joined.append(one)
            elif not (one.language and place in blocks):
                joined.append(Entity("code", *place))
        self.entities = joined


class _Markdown(_Parser):
    """https://core.telegram.org/bots/api#markdown-style: the old one, where nothing stands inside of another."""

    def parse(self) -> Formatted:
        signs = {"_": "italic", "*": "bold", "`": "code", "```": "pre", "[": "text_link"}
        while self.place < len(self.source):
            character = self.source[self.place]
            if character == "\\" and self.source[self.place + 1 : self.place + 2] in tuple("_*`["):
                self.say(self.source[self.place + 1])
                self.place += 2
                continue
            if character not in signs:
                self.say(character)
                self.place += 1
                continue
            sign = "```" if self.ahead("```") else character
            begin, start = self.place, self.size
            end = self.source.find({"[": "]"}.get(sign, sign), begin + len(sign))
            if end < 0:
                raise self.refuse(f"Can't find end of the entity starting at byte offset {self.byte(begin)}")
            inside = self.source[begin + len(sign) : end]
            self.place = end + len(sign)
            language = ""
            if sign == "```" and (match := re.match(r"([^\s`]*)\n", inside)):
                language, inside = match.group(1), inside[match.end() :]
            self.say(inside)
            if sign == "[":
                match = re.compile(r"\(([^)]*)\)").match(self.source, self.place)
                self.place = match.end() if match else self.place
                self.add_link(start, match.group(1) if match else inside)
            else:
                self.add(signs[sign], start, language=language)
        return self.done()


def _referenced(match: re.Match[str]) -> str:
    """The character that ``&lt;`` or ``&#60;`` stands for, or nothing if there is none."""
    decimal, hexadecimal, name = match.groups()
    if name:
        return _SAFE[name]
    number = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else ""
