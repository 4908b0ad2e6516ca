"""HN Pal on Telegram: a digest every morning; 👍, 👎 and ⭐ as reactions, Discuss and Save as buttons."""

from __future__ import annotations

import logging
from datetime import date, time
from functools import partial

from pal import HNPal, PalConversation

from recollect import RecollectError
from recollect.surfaces.telegram import Bot, Post

LOGGER = logging.getLogger("hn_pal")
MORNING = time(7, 30)
"""When the digest is sent, in UTC."""
_CHECK_SECONDS = 60.0


class PalBot:
    """The bot with this token. ``url`` is the Bot API server, such as ``https://api.telegram.org``."""

    def __init__(self, pal: HNPal, token: str, url: str) -> None:
        self._pal = pal
        self._sent: dict[int, date] = {}
        conversation = partial(PalConversation, pal=pal)
        self.bot = Bot(
            pal.app,
            token,
            model=pal.model,
            extractor=pal.extractor,
            url=url,
            conversation=conversation,
            clock=pal.clock,
        )

    def run(self) -> None:
        """Serve readers until the bot ends, with the background work: extraction at 23:00 UTC, upkeep at night."""
        with self.bot, self._pal.app.queue() as queue, self._pal.app.worker(queue):
            while not self.bot.wait(_CHECK_SECONDS):
                if self._pal.clock().time() >= MORNING:
                    self.deliver_digests()

    def deliver_digests(self) -> int:
        """Send today's digest to every reader who has not got it; return how many posts were sent."""
        sent = 0
        for person in self._readers():
            try:
                sent += self._deliver_digest(person)
            except (RecollectError, OSError) as error:  # this reader's turn comes again in a minute
                LOGGER.warning("a reader got no digest yet: %s", type(error).__name__)
        return sent

    def _deliver_digest(self, person: int) -> int:
        memory, today = self._pal.app.identities.memory(("telegram", person)), self._pal.clock().date()
        if self._sent.get(person) == today or memory.interactions(kinds=["delivery"], since=str(today), limit=1):
            return 0
        posts = [Post(id=one.id, title=one.title, text=one.text, topics=one.topics) for one in self._pal.digest(memory)]
        sent = sum(self.bot.deliver(person, post) for post in posts)
        self._sent[person] = today  # a delivery is reported when it arrives, and never while memory is paused
        return sent

    def _readers(self) -> list[int]:
        """Return everyone who started the bot, also if they linked Telegram with another channel."""
        linked = [one.identity for one in self._pal.app.identities.all() if one.identity.channel == "telegram"]
        own = [user.partition(":")[2] for user in self._pal.app.users() if user.startswith("telegram:")]
        return sorted({int(name) for name in [*own, *(identity.name for identity in linked)] if name.isdecimal()})
