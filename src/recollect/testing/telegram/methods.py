"""The methods of the Bot API that Recollect's bot uses: what each takes, refuses, does and answers."""

from __future__ import annotations

import email.parser
import email.policy
import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from recollect.testing.http_server import HttpRequest
from recollect.testing.telegram.chats import TelegramChat, TelegramState
from recollect.testing.telegram.messages import Button, TelegramMessage, UploadedFile
from recollect.testing.telegram.text import NO_TEXT, BotApiError, FormattedText, parse_html, plain_text, utf16_length

_LONGEST_TEXT = 4096
_MOST_BUTTONS = 100
_LONGEST_DATA = 64
_JSON_FIELDS = ("allowed_updates", "commands", "reply_markup", "reply_parameters")
_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)

Parameters = Mapping[str, Any]


def read_parameters(request: HttpRequest) -> dict[str, Any]:
    """Return the parameters of a request, from its query, a form, JSON or an upload. Files are `UploadedFile`."""
    values: dict[str, Any] = dict(request.query)
    content_type = request.headers.get("content-type", "")
    if content_type.startswith("application/json"):
        values |= json.loads(request.body or b"{}")
    elif content_type.startswith("multipart/form-data"):
        values |= _read_upload(content_type, request.body)
    else:
        values |= dict(parse_qsl(request.body.decode()))
    for name in _JSON_FIELDS:
        if isinstance(values.get(name), str):
            values[name] = json.loads(values[name])
    return values


def _read_upload(content_type: str, body: bytes) -> dict[str, Any]:
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    values: dict[str, Any] = {}
    for part in email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body).iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        filename = part.get_filename()
        values[name] = content.decode() if filename is None else UploadedFile(filename, content)
    return values


class BotApi:
    """Does what the bot requests."""

    def __init__(self, state: TelegramState) -> None:
        self._state = state
        self.methods: dict[str, Callable[[Parameters], Any]] = {
            "getMe": lambda _: state.bot.json(),
            "setMyCommands": self._set_commands,
            "deleteWebhook": lambda _: True,
            "sendMessage": self._send_message,
            "sendDocument": self._send_document,
            "sendChatAction": self._send_action,
            "editMessageText": self._edit_text,
            "editMessageReplyMarkup": self._edit_keyboard,
            "answerCallbackQuery": self._answer_press,
        }

    def get_updates(self, parameters: Parameters, is_gone: Callable[[], bool]) -> Any:
        """Wait for updates; unlike the other methods, to be called without the lock."""
        offset, limit, timeout = (_number(parameters, name, 0) for name in ("offset", "limit", "timeout"))
        return self._state.updates.poll(offset, limit, timeout, parameters.get("allowed_updates"), is_gone)

    def _set_commands(self, parameters: Parameters) -> bool:
        for command in parameters.get("commands", ()):
            if not re.fullmatch(r"[a-z0-9_]{1,32}", command["command"]):
                raise BotApiError("BOT_COMMAND_INVALID")
            if not 1 <= len(command["description"]) <= 256:
                raise BotApiError("BOT_COMMAND_DESCRIPTION_INVALID")
        return True

    def _send_message(self, parameters: Parameters) -> Any:
        return self._send(parameters, _text(parameters))

    def _send_document(self, parameters: Parameters) -> Any:
        upload = parameters.get("document")
        if isinstance(upload, str):
            upload = parameters.get(upload.removeprefix("attach://"))
        if not isinstance(upload, UploadedFile) or not upload.content:
            raise BotApiError("there is no document in the request")
        return self._send(parameters, NO_TEXT, document=upload)

    def _send(self, parameters: Parameters, content: FormattedText, **more: Any) -> Any:
        keyboard = _keyboard(parameters.get("reply_markup"))
        chat = self._writable_chat(parameters)
        topic = _number(parameters, "message_thread_id", 0) or None
        if topic is not None and topic not in chat.topics:
            raise BotApiError("message thread not found")
        reply = parameters.get("reply_parameters") or {}
        reply_to = chat.message(int(reply.get("message_id", 0)))
        if reply and reply_to is None and not reply.get("allow_sending_without_reply"):
            raise BotApiError("message to be replied not found")
        more |= {"thread": topic, "reply_to": reply_to, "buttons": keyboard}
        return self._state.post(chat, self._state.bot, content, **more).json()

    def _send_action(self, parameters: Parameters) -> bool:
        chat = self._writable_chat(parameters)
        chat.action = str(parameters.get("action"))
        self._state.changed.notify_all()
        return True

    def _edit_text(self, parameters: Parameters) -> Any:
        content = _text(parameters)
        message = self._own_message(parameters)
        if message.document is not None:
            raise BotApiError("there is no text in the message to edit")
        return self._edit(message, content, parameters)

    def _edit_keyboard(self, parameters: Parameters) -> Any:
        message = self._own_message(parameters)
        return self._edit(message, message.content, parameters)

    def _edit(self, message: TelegramMessage, content: FormattedText, parameters: Parameters) -> Any:
        keyboard = _keyboard(parameters.get("reply_markup"))
        if (content, keyboard) == (message.content, message.buttons):
            raise BotApiError(_NOT_MODIFIED)
        self._state.change(message, content=content, buttons=keyboard)
        return message.json()

    def _answer_press(self, parameters: Parameters) -> bool:
        press = self._state.presses.get(str(parameters.get("callback_query_id")))
        if press is None or press.answered:
            raise BotApiError("query is too old and response timeout expired or query ID is invalid")
        text = str(parameters.get("text", ""))
        if utf16_length(text) > 200:
            raise BotApiError("MESSAGE_TOO_LONG")
        press.answered, press.text = True, text
        self._state.changed.notify_all()
        return True

    def _writable_chat(self, parameters: Parameters) -> TelegramChat:
        """Return the chat of a request; raise BotApiError if the bot may not write there."""
        chat = self._state.chats.get(_number(parameters, "chat_id", 0))
        if chat is None:
            raise BotApiError("chat not found")
        if chat.refusal is not None:
            raise chat.refusal
        return chat

    def _own_message(self, parameters: Parameters) -> TelegramMessage:
        message = self._writable_chat(parameters).message(_number(parameters, "message_id", 0))
        if message is None:
            raise BotApiError("message to edit not found")
        if not message.is_by_the_bot:
            raise BotApiError("message can't be edited")
        return message


def _number(parameters: Parameters, name: str, default: int) -> int:
    try:
        return int(parameters.get(name, default))
    except ValueError:
        raise BotApiError(f"{name} must be a number") from None


def _text(parameters: Parameters) -> FormattedText:
    source, mode = str(parameters.get("text", "")), parameters.get("parse_mode")
    if mode not in (None, "HTML"):
        raise BotApiError("unsupported parse_mode: this server knows only HTML")
    content = parse_html(source) if mode else plain_text(source)
    if not content.text:
        raise BotApiError("message text is empty")
    if utf16_length(content.text) > _LONGEST_TEXT:
        raise BotApiError("message is too long")
    return content


def _keyboard(markup: Any) -> tuple[tuple[Button, ...], ...]:
    rows = (markup or {}).get("inline_keyboard", ())
    keyboard = tuple(tuple(map(_button, row)) for row in rows if row)
    if sum(map(len, keyboard)) > _MOST_BUTTONS:
        raise BotApiError("REPLY_MARKUP_TOO_LONG")
    return keyboard


def _button(button: Mapping[str, Any]) -> Button:
    label, data, url = button.get("text"), button.get("callback_data"), button.get("url")
    if not label or (data is None) == (url is None):
        raise BotApiError("can't parse inline keyboard button: it needs a text, and either callback_data or a url")
    if data is not None and not 1 <= len(data.encode()) <= _LONGEST_DATA:
        raise BotApiError("BUTTON_DATA_INVALID")
    return Button(label, data, url)
