"""The Telegram bot: the same memory and the same commands as in the terminal, in private chats and in groups.

`Bot` is the whole; `Post` is what a program can hand to a person through it. An update of Telegram is put into the
durable queue before it is confirmed, a person's updates are answered in order, and an answer is written down before it
is sent, so that a kill at any instant loses nothing and repeats nothing.
"""

from recollect.surfaces.telegram.bot import Bot
from recollect.surfaces.telegram.posts import Post

__all__ = ["Bot", "Post"]
