"""The methods of the Bot API: what each takes, refuses, does and answers. Knows nothing about HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from recollect.testing.telegram import formatting, markup
from recollect.testing.telegram.formatting import Formatted
from recollect.testing.telegram.keyboards import is_reaction, read_markup
from recollect.testing.telegram.limits import Flood
from recollect.testing.telegram.messages import File, Message
from recollect.testing.telegram.parameters import Parameters, Upload
from recollect.testing.telegram.people import LONGEST_CAPTION, LONGEST_TEXT, Chat, Group, Person
from recollect.testing.telegram.refusal import RefusalError
from recollect.testing.telegram.updates import LONGEST_POLL, MOST_AT_ONCE, Webhook
from recollect.testing.telegram.webhook import check_url
from recollect.testing.telegram.world import World

LARGEST_FILE = 50 * 1024 * 1024
LARGEST_DOWNLOAD = 20 * 1024 * 1024
LONGEST_ALERT = 200
LONGEST_SOURCE = 35_000
"""Characters of a text with its markup, before anybody tries to read it."""
_ACTIONS = frozenset(
    "typing upload_photo record_video upload_video record_voice upload_voice upload_document choose_sticker"
    " find_location record_video_note upload_video_note".split()
)
_SCOPES = frozenset(
    "default all_private_chats all_group_chats all_chat_administrators chat chat_administrators chat_member".split()
)
_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)


class Methods:
    """Does what the bot asks. All but ``getUpdates`` are called while the lock of the world is held."""

    def __init__(self, world: World, flood: Flood) -> None:
        self.world = world
        self.flood = flood
        self.logged_out = False
        self.commands: dict[tuple[str, str], list[dict[str, str]]] = {}
        self._known: dict[str, tuple[str, Callable[[Parameters], Any]]] = {
            name.lower(): (name, does)
            for name, does in {
                "getMe": self._get_me,
                "logOut": self._log_out,
                "close": self._close,
                "setWebhook": self._set_webhook,
                "deleteWebhook": self._delete_webhook,
                "getWebhookInfo": self._get_webhook_info,
                "sendMessage": self._send_message,
                "sendDocument": self._send_document,
                "sendChatAction": self._send_chat_action,
                "editMessageText": self._edit_text,
                "editMessageReplyMarkup": self._edit_markup,
                "deleteMessage": self._delete_message,
                "setMessageReaction": self._set_reaction,
                "answerCallbackQuery": self._answer_press,
                "setMyCommands": self._set_commands,
                "getMyCommands": self._get_commands,
                "deleteMyCommands": self._delete_commands,
                "getChat": self._get_chat,
                "getChatMember": self._get_member,
                "getFile": self._get_file,
            }.items()
        }

    def name_of(self, method: str) -> str | None:
        """How the method is spelled, whatever the case it came in; None if there is none."""
        if method.lower() == "getupdates":
            return "getUpdates"
        return self._known.get(method.lower(), (None,))[0]

    def call(self, name: str, parameters: Parameters) -> Any:
        """The result; raises RefusalError."""
        if self.logged_out:
            raise RefusalError("Logged out")
        return self._known[name.lower()][1](parameters)

    def get_updates(self, asked: Parameters, gone: Callable[[], bool]) -> Any:
        """Waits, so it must be called without the lock."""
        if self.logged_out:
            raise RefusalError("Logged out")
        limit = asked.whole("limit", MOST_AT_ONCE) or MOST_AT_ONCE
        timeout = min(max(asked.whole("timeout", 0) or 0, 0), LONGEST_POLL)
        kinds = _kinds(asked)
        limit = limit if 1 <= limit <= MOST_AT_ONCE else MOST_AT_ONCE
        return self.world.updates.poll(asked.whole("offset", 0) or 0, limit, timeout, kinds, gone)

    # the bot itself

    def _get_me(self, asked: Parameters) -> Any:
        return {
            **self.world.bot.json(),
            "can_join_groups": True,
            "can_read_all_group_messages": not self.world.privacy,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
        }

    def _log_out(self, asked: Parameters) -> Any:
        self.logged_out = True
        return True

    def _close(self, asked: Parameters) -> Any:
        return True

    def _set_webhook(self, asked: Parameters) -> Any:
        url = asked.text("url")
        secret = asked.text("secret_token")
        kinds = _kinds(asked)
        if secret and not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", secret):
            raise RefusalError("secret token contains unallowed characters")
        if url:
            check_url(url)
            most = asked.whole("max_connections", 40) or 40
            hook = Webhook(url, secret, min(max(most, 1), 100), asked.text("ip_address"))
        if asked.flag("drop_pending_updates"):
            self.world.updates.drop()
        self.world.updates.allow(kinds)
        self.world.updates.webhook = hook if url else None
        return True

    def _delete_webhook(self, asked: Parameters) -> Any:
        if asked.flag("drop_pending_updates"):
            self.world.updates.drop()
        self.world.updates.webhook = None
        return True

    def _get_webhook_info(self, asked: Parameters) -> Any:
        return self.world.updates.info()

    def _set_commands(self, asked: Parameters) -> Any:
        commands = asked.structured("commands", list)
        if commands is None:
            raise RefusalError('can\'t parse list of bot commands: parameter "commands" is required')
        if len(commands) > 100:
            raise RefusalError("BOT_COMMANDS_TOO_MUCH")
        kept = []
        for one in commands:
            name = str(one.get("command", "")).removeprefix("/") if isinstance(one, Mapping) else ""
            description = str(one.get("description", "")).strip() if isinstance(one, Mapping) else ""
            if not re.fullmatch(r"[a-z0-9_]{1,32}", name):
                raise RefusalError("BOT_COMMAND_INVALID")
            if not 1 <= len(description) <= 256:
                raise RefusalError("BOT_COMMAND_DESCRIPTION_INVALID")
            kept.append({"command": name, "description": description})
        self.commands[_scope(asked)] = kept
        return True

    def _get_commands(self, asked: Parameters) -> Any:
        return self.commands.get(_scope(asked), [])

    def _delete_commands(self, asked: Parameters) -> Any:
        self.commands.pop(_scope(asked), None)
        return True

    # messages

    def _send_message(self, asked: Parameters) -> Any:
        text = asked.text("text")
        if not text:
            raise RefusalError("message text is empty")
        return self._send(asked, self._formatted(asked, text, "entities", LONGEST_TEXT))

    def _send_document(self, asked: Parameters) -> Any:
        upload = asked.upload("document")
        if upload is None:
            raise RefusalError("there is no document in the request")
        content = self._formatted(asked, asked.text("caption"), "caption_entities", LONGEST_CAPTION)
        document: File | None
        if isinstance(upload, Upload):
            if not upload.content:
                raise RefusalError("file must be non-empty")
            if len(upload.content) > LARGEST_FILE:
                raise RefusalError("", status=413)
            document = File("", upload.name or "document", upload.content)
        elif upload.startswith(("http://", "https://")):
            raise RefusalError("failed to get HTTP URL content")
        else:
            document = self.world.files.get(upload)
            if document is None or document.width:
                raise RefusalError("wrong file identifier/HTTP URL specified")
        return self._send(asked, content, document)

    def _send(self, asked: Parameters, content: Formatted, document: File | None = None) -> Any:
        keyboard = read_markup(asked.structured("reply_markup", dict))
        chat = self._writable(asked)
        thread = asked.whole("message_thread_id")
        if thread == 1 and isinstance(chat, Group) and chat.forum:
            thread = None  # the topic that every forum has
        if thread is not None and thread not in chat.topics:
            raise RefusalError("message thread not found")
        reply_to = self._replied(asked, chat)
        self.flood.check(chat.id, is_group=isinstance(chat, Group))
        if document is not None and not document.id:
            document = self.world.keep(document.name, document.content)
        message = self.world.post(
            chat, self.world.bot, content, thread=thread, reply_to=reply_to, document=document, markup=keyboard
        )
        return message.json()

    def _replied(self, asked: Parameters, chat: Chat) -> Message | None:
        reply = asked.structured("reply_parameters", dict) or {}
        number = reply.get("message_id", asked.whole("reply_to_message_id"))
        elsewhere = reply.get("chat_id") not in (None, chat.id, str(chat.id))
        message = chat.message(number) if isinstance(number, int) and not elsewhere else None
        optional = reply.get("allow_sending_without_reply") is True or asked.flag("allow_sending_without_reply")
        if number not in (None, "", 0) and message is None and not optional:
            raise RefusalError("message to be replied not found")
        return message

    def _edit_text(self, asked: Parameters) -> Any:
        text = asked.text("text")
        if not text:
            raise RefusalError("message text is empty")
        content = self._formatted(asked, text, "entities", LONGEST_TEXT)
        keyboard = read_markup(asked.structured("reply_markup", dict), inline_only=True)
        message = self._own(asked)
        if message.document is not None:
            raise RefusalError("there is no text in the message to edit")
        return self._edited(message, content, keyboard)

    def _edit_markup(self, asked: Parameters) -> Any:
        keyboard = read_markup(asked.structured("reply_markup", dict), inline_only=True)
        message = self._own(asked)
        return self._edited(message, message.content, keyboard)

    def _edited(self, message: Message, content: Formatted, keyboard: dict[str, Any] | None) -> Any:
        if content == message.content and keyboard == message.markup:
            raise RefusalError(_NOT_MODIFIED)
        self.flood.check(message.chat.id, is_group=isinstance(message.chat, Group))
        self.world.edit(message, content, keyboard)
        return message.json()

    def _own(self, asked: Parameters) -> Message:
        """The message to edit, which must be the bot's."""
        if asked.text("inline_message_id"):
            raise RefusalError("MESSAGE_ID_INVALID")
        message = self._message(asked, self._writable(asked), "edit")
        if message.sender is not self.world.bot or message.keyboard:
            raise RefusalError("message can't be edited")
        return message

    def _delete_message(self, asked: Parameters) -> Any:
        chat = self._writable(asked)
        message = self._message(asked, chat, "delete")
        others = message.sender is not self.world.bot
        if others and isinstance(chat, Group) and not chat.bot_is_admin:
            raise RefusalError("message can't be deleted for everyone")
        self.world.delete(message)
        return True

    def _set_reaction(self, asked: Parameters) -> Any:
        chosen = asked.structured("reaction", list) or []
        message = self._message(asked, self._writable(asked), "react")
        if len(chosen) > 1:
            raise RefusalError("REACTIONS_TOO_MANY")
        emoji = None
        for one in chosen:
            emoji = one.get("emoji") if isinstance(one, Mapping) and one.get("type") == "emoji" else None
            if not isinstance(emoji, str) or not is_reaction(emoji):
                raise RefusalError("REACTION_INVALID")
        self.world.react(self.world.bot, emoji, message)
        return True

    def _message(self, asked: Parameters, chat: Chat, purpose: str) -> Message:
        number = asked.whole("message_id")
        if number is None:
            raise RefusalError("message identifier is not specified")
        message = chat.message(number)
        if message is None:
            raise RefusalError(f"message to {purpose} not found")
        return message

    def _send_chat_action(self, asked: Parameters) -> Any:
        action = asked.text("action")
        if action not in _ACTIONS:
            raise RefusalError("wrong parameter action in request")
        chat = self._writable(asked)
        chat.action = action
        return True

    def _answer_press(self, asked: Parameters) -> Any:
        press = self.world.presses.get(asked.text("callback_query_id"))
        if press is None or press.answered or press.expired:
            raise RefusalError("query is too old and response timeout expired or query ID is invalid")
        text = asked.text("text")
        if formatting.length(text) > LONGEST_ALERT:
            raise RefusalError("MESSAGE_TOO_LONG")
        press.answered, press.text = True, text
        press.alert, press.url = asked.flag("show_alert"), asked.text("url")
        return True

    # chats and files

    def _get_chat(self, asked: Parameters) -> Any:
        chat = self._chat(asked)
        self._check_inside(chat)
        gifts = dict.fromkeys(
            ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels"), False
        )
        return {**chat.json(), "accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": gifts}

    def _get_member(self, asked: Parameters) -> Any:
        chat = self._chat(asked)
        self._check_inside(chat)
        number = asked.whole("user_id")
        person = self.world.bot if number == self.world.bot.id else self.world.people.get(number or 0)
        if person is None:
            raise RefusalError("invalid user_id specified" if not number else "PARTICIPANT_ID_INVALID")
        if not isinstance(chat, Group) and person not in (self.world.bot, *chat.people):
            raise RefusalError("member not found")
        return self.world.member(person, chat)

    def _get_file(self, asked: Parameters) -> Any:
        file = self.world.files.get(asked.text("file_id"))
        if file is None:
            raise RefusalError("wrong file_id or the file is temporarily unavailable")
        if len(file.content) > LARGEST_DOWNLOAD:
            raise RefusalError("file is too big")
        known = file.json()
        return {name: known[name] for name in ("file_id", "file_unique_id", "file_size")} | {
            "file_path": f"{'photos' if file.width else 'documents'}/{file.id}"
        }

    def _formatted(self, asked: Parameters, text: str, entities: str, most: int) -> Formatted:
        """The text as it will be shown; raises RefusalError if it cannot be read or is too long."""
        if len(text) > LONGEST_SOURCE:
            raise RefusalError("message is too long")
        if asked.text("parse_mode"):
            content = markup.parse(text, asked.text("parse_mode"), self.world.user)
        elif asked.values.get(entities) is not None:
            content = formatting.given(text, asked.structured(entities, list), self.world.user)
        else:
            content = Formatted(text)
        content = formatting.cut(content)
        if not content.text and most == LONGEST_TEXT:
            raise RefusalError("message text is empty")
        if formatting.length(content.text) > most:
            raise RefusalError("message is too long" if most == LONGEST_TEXT else "message caption is too long")
        return formatting.with_found(content)

    def _chat(self, asked: Parameters) -> Chat:
        value = asked.values.get("chat_id")
        if value is None or value == "":
            raise RefusalError("chat_id is empty")
        if isinstance(value, int) and not isinstance(value, bool):
            if value in self.world.migrated:
                new = self.world.migrated[value]
                raise RefusalError(
                    "group chat was upgraded to a supergroup chat", parameters={"migrate_to_chat_id": new}
                )
            if value in self.world.chats:
                return self.world.chats[value]
        raise RefusalError("chat not found")

    def _writable(self, asked: Parameters) -> Chat:
        """The chat, if the bot may write there now."""
        chat = self._chat(asked)
        self._check_inside(chat)
        if not isinstance(chat, Group):
            person = chat.people[0]
            if person.has_blocked:
                raise RefusalError("bot was blocked by the user", status=403)
            if person.is_bot:
                raise RefusalError("bots can't send messages to bots", status=403)
        return chat

    def _check_inside(self, chat: Chat) -> None:
        if isinstance(chat, Group):
            if not chat.has_bot:
                kind = "supergroup" if chat.kind == "supergroup" else "group"
                raise RefusalError(f"bot is not a member of the {kind} chat", status=403)
        elif not chat.started:
            if self._meets(chat.people[0]):
                raise RefusalError("bot can't initiate conversation with a user", status=403)
            raise RefusalError("chat not found")

    def _meets(self, person: Person) -> bool:
        """Whether the bot knows them from a group."""
        return any(group.has_bot for group in self.world.groups_of(person))


def _kinds(asked: Parameters) -> list[str] | None:
    kinds = asked.structured("allowed_updates", list)
    if kinds is not None and not all(isinstance(one, str) for one in kinds):
        raise RefusalError("can't parse allowed_updates: expected Strings")
    return kinds  # type: ignore[no-any-return]


def _scope(asked: Parameters) -> tuple[str, str]:
    scope = asked.structured("scope", dict) or {"type": "default"}
    if scope.get("type") not in _SCOPES:
        raise RefusalError("can't parse BotCommandScope: Unsupported type specified")
    who = "/".join(str(scope[name]) for name in ("type", "chat_id", "user_id") if name in scope)
    return who, asked.text("language_code")
