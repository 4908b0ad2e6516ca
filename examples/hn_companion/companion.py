"""The companion: a bot that sends posts to its readers, talks with them about these, and remembers. The part to copy.

It knows no channel. Whatever your bot gets (a button, a message, a command) becomes one call here; ``id`` is what the
channel calls it, such as the number of an update: what comes twice, as after a restart, counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import recollect
from recollect import Memory, Outcome, Ranked
from recollect.agents.conclude import conclude
from recollect.agents.discuss import Discussion, DiscussionReply
from recollect.agents.extract import extract
from recollect.agents.models import configured_model
from recollect.agents.remind import Reminder, remind
from recollect.times import Clock, utc_now

Post = Mapping[str, Any]
SIGNS = {"like": "👍", "dislike": "👎", "save": "⭐"}
DISLIKED = -0.5  # the score of what a reader said they do not want


class Companion:
    """What all readers share: the memories, the model if MEMORY_MODEL names one, and the work of the night."""

    def __init__(self, folder: Path, *, clock: Clock = utc_now) -> None:
        self.clock = clock
        self.app = recollect.open(memory_dir=folder, clock=clock)  # the other settings come from the environment
        self.model = configured_model(self.app.config)
        self.extractor = self.app.extractor()

    def __enter__(self) -> Companion:
        return self

    def __exit__(self, *_: object) -> None:
        if self.model is not None:
            self.model.close()
        self.app.close()

    def work(self) -> None:
        """Do what is due: learn from the day at 23:00 UTC, tidy up at 03:30. Elsewhere `recollect worker` does that."""
        with self.app.queue() as queue, self.app.worker(queue) as worker:
            worker.wait_idle()


class Reader:
    """One person: what they are sent, what they do with it, what they say."""

    def __init__(self, companion: Companion, user: str) -> None:
        self.companion, self.user, self.clock = companion, user, companion.clock
        self.memory = companion.app.user(user)
        self.talk: Discussion | None = None
        self._last = ""

    def digest(self, posts: Iterable[Post], size: int = 3) -> list[Ranked]:
        """The posts in this reader's order, each with its reasons, and without what they do not want."""
        return [one for one in self.memory.rank(posts) if one.score > DISLIKED][:size]

    def delivered(self, digest: Iterable[Ranked]) -> None:
        """They got these posts today."""
        day = self.clock().date()
        self.memory.report_many(
            {"kind": "delivery", "id": f"{day}:{one.item['id']}", **about(one.item)} for one in digest
        )

    def has_digest(self) -> bool:
        """Whether they got today's already: what was reported says so, also after a restart."""
        return bool(self.memory.interactions(kinds=["delivery"], since=self.clock().date().isoformat(), limit=1))

    def react(self, post: Post, what: str, *, id: str) -> Outcome:
        """They like a post, dislike it, or save it for later."""
        kind = "save" if what == "save" else "reaction"
        return self.memory.report(kind, value=SIGNS[what], id=id, **about(post))

    def discuss(self, post: Post) -> Reminder | None:
        """They open a post to talk about it. Gives what they discussed before that is similar; each is told once."""
        self.end()  # who turns to another post is done with the one before
        session = post["id"]
        for kind in ("read", "discussion"):
            self.memory.report(kind, id=f"{kind}:{session}", session=session, **about(post))
        self.talk = self._discussion(session, post)
        return remind(self.memory, post["title"], session=session, clock=self.clock)

    def say(self, text: str, *, id: str) -> DiscussionReply:
        """What they say, about the post or just so. "Remember that …" is kept before it is answered."""
        self.talk = self.talk or self._discussion("chat")
        heard = self.talk.hear(text, once=id)
        self._last = heard.run or self._last
        return self.talk.reply(heard)

    def _discussion(self, session: str, post: Post | None = None) -> Discussion:
        tools = self.companion.app.tools(self.user, "entries", session=session)  # for the model, if there is one
        title, text = (post["title"], post["text"]) if post else (None, None)
        return Discussion(tools, self.companion.model, title=title, text=text)

    def end(self) -> list[str]:
        """The discussion is over; gives what was learned from it. If nobody says so, the night's work finds it."""
        talk, self.talk = self.talk, None
        if talk is None:
            return []
        done = conclude(self.memory, talk.session, extractor=self.companion.extractor, clock=self.clock)
        return [] if done is None else [one.message for one in done.kept.outcomes if one.done]

    def learn(self) -> list[str]:
        """Learn from today at once, as the night's work would; gives what was learned."""
        done = extract(self.memory, self.clock().date(), extractor=self.companion.extractor, clock=self.clock)
        return [one.message for one in done.kept.outcomes if one.done]

    def forget(self, words: str, *, id: str) -> str:
        """Forget the one thing that says these words best."""
        self._last = id
        found = self.memory.search(words, kinds=["fact", "note"], limit=1)
        with self.memory.acting(run=id).batch() as memory:  # the command and what it does: both, or neither
            if done_before(memory, "/forget", id):
                return "That was done before."
            return memory.forget(found[0].record.id).message if found else "I know nothing about that."

    def undo(self, *, id: str) -> str:
        """Take back the last thing that was forgotten, or remembered on request."""
        with self.memory.batch() as memory:
            if done_before(memory, "/undo", id):
                return "That was done before."
            try:
                return memory.undo(self._last).message
            except (recollect.NotFoundError, recollect.UndoError):
                return "There is nothing to take back."


def about(post: Post) -> dict[str, Any]:
    """What the memory is told of a post: enough to learn from."""
    return {"item": post["id"], "title": post["title"], "topics": post["topics"]}


def done_before(memory: Memory, command: str, id: str) -> bool:
    """Report a command; whether it was reported before."""
    outcome = memory.report("command", value=command, id=id)
    return isinstance(outcome, recollect.Reported) and not outcome.fresh
