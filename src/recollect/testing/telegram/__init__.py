"""A Telegram on your own machine, for testing bots without a network, an account or a phone.

`TelegramServer` speaks the Bot API over real HTTP, by long polling, so a bot runs unchanged with its own library. The
test drives the users who talk to the bot, and reads what they see:

    with TelegramServer() as server:
        app = ApplicationBuilder().token(server.token).base_url(server.base_url).build()
        ann = server.user("Ann")
        assert "Hello" in ann.private.wait_for_reply(ann.says("/start")).text

It knows the methods getMe, setMyCommands, getUpdates, deleteWebhook, sendMessage, sendDocument, sendChatAction,
editMessageText, editMessageReplyMarkup and answerCallbackQuery; others get 404. Markup is HTML. It refuses the mistakes
that Telegram refuses, with its status and description: texts that are empty or too long, markup that is not closed,
``callback_data`` of over 64 bytes, edits that change nothing, unknown chats, a second poller. In groups the bot gets
only commands, mentions, replies and service messages.
"""

from recollect.testing.telegram.chats import ButtonPress, ForumTopic, TelegramChat, TelegramGroup, TelegramUser
from recollect.testing.telegram.messages import Button, TelegramMessage
from recollect.testing.telegram.server import BotRequest, TelegramServer
from recollect.testing.telegram.text import Entity

__all__ = [
    "BotRequest",
    "Button",
    "ButtonPress",
    "Entity",
    "ForumTopic",
    "TelegramChat",
    "TelegramGroup",
    "TelegramMessage",
    "TelegramServer",
    "TelegramUser",
]
