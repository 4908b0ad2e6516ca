"""The Telegram bot: the same memory and commands as in the terminal, in private chats and groups.

`Bot` is the bot; a `Post` is something a program delivers to a person through it. Updates go into the durable queue
before they are confirmed, a person's updates are answered in order, and answers are stored before they are sent. So a
kill at any moment loses nothing and repeats nothing.
"""

from recollect.surfaces.telegram.bot import Bot
from recollect.surfaces.telegram.posts import Post

__all__ = ["Bot", "Post"]
