"""Renders pages as Telegram messages: escaped, split into parts that are short enough, with choices as buttons.

Every part is valid by itself: long lines are split before markup is added.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recollect.surfaces.chat.page import ChatLine, ChatPage, Choice, fits_choice, line_text

LONGEST = 4096
"""The maximum length of a message in UTF-16 units, as Telegram counts."""
MOST_LABELLED = 40
_MOST_MARKED = 90
"""The maximum number of lines with markup in a message: Telegram ignores markup beyond 100."""
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067\ud800-\udfff]")
_TAGS = {"title": "b", "heading": "b", "aside": "i"}
_MARKS = {"good": "✓ ", "bad": "✗ "}
_HEADING = re.compile(r"#{1,6} +(\S.*)")
_BULLET = re.compile(r"^( *)[-*] (?=\S)")
_CODE = re.compile(r"`([^`\s](?:[^`]*[^`\s])?)`")
_BOLD = re.compile(r"\*\*([^*\s](?:[^*]*[^*\s])?)\*\*")
_JOINING = ("\u200d", "\ufe0f")
_NEW = "+"
"""The prefix of a button's command whose result is sent as a new message instead of replacing the answer."""


@dataclass(frozen=True, slots=True)
class MessagePart:
    """A message to send: HTML and rows of buttons, each a label and its data."""

    text: str
    buttons: tuple[tuple[tuple[str, str], ...], ...] = ()


def render_messages(page: ChatPage, *, keep: bool = False) -> list[MessagePart]:
    """Return a page as messages, with the buttons under the last. With ``keep``, a press does not replace it."""
    texts = [*_split_texts(page.lines)]
    buttons = tuple(_button_row(row, keep) for row in page.choices if row)
    if buttons and not texts:
        texts = ["What next?"]
    return [MessagePart(text, buttons if place == len(texts) - 1 else ()) for place, text in enumerate(texts)]


def parse_button(data: str) -> tuple[str, bool]:
    """Return the command of a button, and True if its message is to be kept."""
    return data.removeprefix(_NEW), data.startswith(_NEW)


def telegram_length(text: str) -> int:
    """Return the length of a text as Telegram counts it."""
    return len(text) + sum(character > "\uffff" for character in text)


def escape_html(text: str) -> str:
    """Return text escaped for Telegram's markup, with right-to-left text isolated."""
    return html.escape(_STEERING.sub(" ", text), quote=False)


def without_tags(text: str) -> str:
    """Return the text without markup, for when Telegram rejects it."""
    return re.sub("</?(?:b|i|code)>", "", text)


def _button_row(row: Sequence[Choice], keep: bool) -> tuple[tuple[str, str], ...]:
    return tuple((_button_label(one.label), _button_data(one.command, keep)) for one in row)


def _button_label(label: str) -> str:
    line = " ".join(_STEERING.sub(" ", label).split()) or "…"
    return line if len(line) <= MOST_LABELLED else f"{line[: MOST_LABELLED - 1]}…"


def _button_data(command: str, keep: bool) -> str:
    kept = f"{_NEW}{command}"
    return kept if keep and fits_choice(kept) else command


def _split_texts(lines: Sequence[ChatLine]) -> Iterator[str]:
    """Yield the lines, joined into texts that fit into a message."""
    told: list[str] = []
    used = marked = 0
    for line in lines:
        for number, piece in enumerate(_split_line(_plain_line(line))):
            if told and (used + telegram_length(piece) + 2 > LONGEST or marked >= _MOST_MARKED):
                yield from _join_text(told)
                told, used, marked = [], 0, 0
            if line.style == "heading" and number == 0 and told:
                told.append("")
                used += 1
            shown = _to_html(piece, line.style)
            told.append(shown)
            used += telegram_length(piece) + 1
            marked += shown.count("</")
    yield from _join_text(told)


def _to_html(text: str, style: str) -> str:
    """Return a line with Telegram's markup. Of the Markdown that models write, only bold and code are rendered."""
    tag = _TAGS.get(style)
    if tag is not None:
        return f"<{tag}>{escape_html(text)}</{tag}>" if text.strip() else ""
    if style != "text":
        return escape_html(text)
    heading = _HEADING.fullmatch(text)
    if heading:
        return f"<b>{escape_html(heading[1])}</b>"
    pieces = _CODE.split(_BULLET.sub(r"\1• ", text))
    return "".join(
        f"<code>{escape_html(piece)}</code>" if place % 2 else _BOLD.sub(r"<b>\1</b>", escape_html(piece))
        for place, piece in enumerate(pieces)
    )


def _join_text(told: list[str]) -> Iterator[str]:
    text = "\n".join(told).strip("\n")
    if text.strip():
        yield text


def _plain_line(line: ChatLine) -> str:
    return _STEERING.sub(" ", f"{_MARKS.get(line.style, '')}{line_text(line)}".replace("\n", " "))


def _split_line(text: str) -> Iterator[str]:
    """Yield a line in pieces that fit, split between words if possible, and never within a character."""
    room = LONGEST - 96
    while telegram_length(text) > room:
        end = _end(text, room)
        space = text.rfind(" ", end // 2, end)
        end = space if space > 0 else end
        yield text[:end]
        text = text[end:].lstrip(" ")
    yield text


def _end(text: str, room: int) -> int:
    end = used = 0
    while end < len(text) and (used := used + telegram_length(text[end])) <= room:
        end += 1
    back = end
    while end - back < 32 and 0 < back < len(text) and _belong_together(text[back - 1], text[back]):
        back -= 1
    return back if back > 0 and end - back < 32 else end


def _belong_together(before: str, after: str) -> bool:
    return before in _JOINING[:1] or after in _JOINING or unicodedata.category(after)[0] == "M"
