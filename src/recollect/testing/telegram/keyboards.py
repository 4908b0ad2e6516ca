"""What stands under a message: keyboards, and the reactions that there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.testing.telegram.formatting import web_address
from recollect.testing.telegram.refusal import RefusalError

MOST_BUTTONS = 100
MOST_IN_ROW = 8
MOST_KEYS = 300
LONGEST_DATA = 64
_ACTIONS = {
    "callback_data",
    "url",
    "web_app",
    "login_url",
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
    "copy_text",
    "callback_game",
    "pay",
}
REACTIONS = frozenset(
    (
        "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 "
        "🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 "
        "😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 "
        "🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡 "
    ).split()
)
"""The emoji that one can react with."""


def is_reaction(emoji: str) -> bool:
    """Whether one can react with it, written with the sign for colour or without."""
    return emoji.replace("\ufe0f", "") in REACTIONS


def read_markup(markup: Any, *, inline_only: bool = False) -> dict[str, Any] | None:
    """A keyboard as Telegram keeps it, or None if there is none; raises RefusalError."""
    if markup is None or markup == {}:
        return None
    if not isinstance(markup, Mapping):
        raise RefusalError("object expected as reply markup")
    if "inline_keyboard" in markup:
        rows = _rows(markup["inline_keyboard"], "inline keyboard")
        kept = [[_button(one) for one in row] for row in rows if row]
        if sum(len(row) for row in kept) > MOST_BUTTONS or any(len(row) > MOST_IN_ROW for row in kept):
            raise RefusalError("REPLY_MARKUP_TOO_LONG")
        return {"inline_keyboard": kept} if kept else None
    if inline_only:
        raise RefusalError("inline keyboard expected")
    if "keyboard" in markup:
        rows = _rows(markup["keyboard"], "reply keyboard")
        for one in (one for row in rows for one in row):
            text = one.get("text") if isinstance(one, Mapping) else one
            if not isinstance(text, str) or not text:
                raise RefusalError('can\'t parse keyboard button: field "text" must be a non-empty String')
        if not rows or sum(len(row) for row in rows) > MOST_KEYS:
            raise RefusalError("REPLY_MARKUP_INVALID")
        return {"keyboard": rows}
    if markup.get("remove_keyboard") is True or markup.get("force_reply") is True:
        return None
    raise RefusalError("can't parse reply markup: a keyboard, remove_keyboard or force_reply is expected")


def _rows(value: Any, what: str) -> list[list[Any]]:
    if not isinstance(value, list):
        raise RefusalError(f'field "{what.replace("reply ", "").replace(" ", "_")}" must be of type Array')
    for row in value:
        if not isinstance(row, list):
            raise RefusalError(f"can't parse {what}: a row must be of type Array")
    return value


def _button(one: Any) -> dict[str, Any]:
    if not isinstance(one, Mapping):
        raise RefusalError("can't parse inline keyboard button: expected an Object")
    text = one.get("text")
    if not isinstance(text, str) or not text.strip():
        raise RefusalError('can\'t parse inline keyboard button: field "text" must be a non-empty String')
    actions = [name for name in one if name in _ACTIONS]
    if not actions:
        raise RefusalError("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
    if len(actions) > 1:
        raise RefusalError(f"can't parse inline keyboard button: only one of {', '.join(actions)} can be used")
    if actions == ["callback_data"]:
        data = one["callback_data"]
        if not isinstance(data, str) or not 1 <= len(data.encode("utf-8", "surrogatepass")) <= LONGEST_DATA:
            raise RefusalError("BUTTON_DATA_INVALID")
        return {"text": text, "callback_data": data}
    if actions == ["url"]:
        address = web_address(one["url"]) if isinstance(one["url"], str) else ""
        if not address:
            raise RefusalError("BUTTON_URL_INVALID")
        return {"text": text, "url": address}
    return dict(one)
