"""A Telegram on your own machine, for testing bots without a network, an account or a phone.

`TelegramServer` speaks the Bot API over real HTTP, by long polling and by webhook, so that a bot runs unchanged with
its own library. The people who talk to the bot are driven from the test, and what they see can be read back:

    with TelegramServer() as server:
        app = ApplicationBuilder().token(server.token).base_url(server.base_url).base_file_url(server.base_file_url)...
        ann = server.person("Ann")
        question = ann.says("/start")
        assert "Hello" in ann.private.wait_for_reply(question).text

It refuses what Telegram refuses, so that a test which passes here means something. The rules are from the Bot API's
pages, from the published source and tests of Telegram's own server and from errors that users reported, read in
November 2026; they were not tried on the live service. Where the wording of an error is not known, it is ours.

**Methods.** getMe, logOut, close, getUpdates, setWebhook, deleteWebhook, getWebhookInfo, sendMessage, sendDocument,
sendChatAction, editMessageText, editMessageReplyMarkup, deleteMessage, setMessageReaction, answerCallbackQuery,
setMyCommands, getMyCommands, deleteMyCommands, getChat, getChatMember, getFile and the download of files. Others get
404, as an unknown one does.

**Text.** 1 to 4096 UTF-16 units after the markup is read (captions 1024), without white space around it. MarkdownV2,
HTML and the old Markdown are parsed: what is not escaped or not closed is refused. At most 100 entities are kept.
Commands, mentions, links, e-mail addresses and hashtags are found by themselves.

**Keyboards.** At most 100 buttons, 8 in a row; each does exactly one thing; callback_data has 1 to 64 bytes; links lead
somewhere.

**Who may what.** A bot cannot write first, nor to who blocked it, nor to other bots, nor where it is no member. It
edits only its own messages, and only to something else. It deletes those of others in private chats and as
administrator. A callback query is answered once. A group that became a supergroup has another id.

**What a bot hears.** Never other bots. In groups, with privacy mode on and unless it is administrator: commands (not
those for another bot), mentions of it, replies to it, and service messages. Reactions and members come only if they
were asked for in allowed_updates, and in groups only to an administrator. Updates are kept until confirmed; a second
poller ends the first with 409.

**Not here:** channels, inline mode, business accounts, payments, sending of other media than documents, the limit of 48
hours for edits, and the 24 hours after which Telegram forgets updates. Message ids count from 1 in each chat, which is
what a bot must be able to bear; on Telegram, private chats share one counter. Webhooks go only to this machine, where
plain HTTP is allowed, and come strictly one after the other.
"""

from recollect.testing.telegram.faults import Stall
from recollect.testing.telegram.formatting import Entity
from recollect.testing.telegram.limits import Limits
from recollect.testing.telegram.messages import Button, Message
from recollect.testing.telegram.people import Chat, Group, Person, Press, Topic
from recollect.testing.telegram.server import Asked, TelegramServer

__all__ = [
    "Asked",
    "Button",
    "Chat",
    "Entity",
    "Group",
    "Limits",
    "Message",
    "Person",
    "Press",
    "Stall",
    "TelegramServer",
    "Topic",
]
