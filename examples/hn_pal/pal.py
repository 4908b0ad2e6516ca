"""HN Pal: sends each reader the stories they care about, discusses them, and remembers. The part to copy.

`HNPal` makes the digest. `PalConversation` is what a reader can say and type, on any channel: the `/memory` commands,
discussions, reminders and "remember that …" come with `Conversation`, and this module adds the digest.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from textwrap import shorten
from typing import Any

from hacker_news import HackerNews, Story

import recollect
from recollect import Memory, Recollect
from recollect.agents.extract import extract
from recollect.agents.models import configured_model
from recollect.agents.remind import remind, reminders_are_on
from recollect.agents.summarize import summarize
from recollect.surfaces.chat.conversation import Conversation
from recollect.surfaces.chat.page import ChatLine, ChatPage, chat_page
from recollect.times import Clock, utc_now

COMMANDS = {
    "/digest": "today's stories, in your order",
    "/read 2": "the second story",
    "/like 2": "or /dislike 2, /save 2",
    "/discuss 2": "talk about it",
    "/saved": "what you saved",
    "/learn": "learn from today now, not tonight",
}
_REACTIONS = {"/like": "👍", "/dislike": "👎"}
_UNWANTED = -0.5
"""The score of what a reader said they do not want; `Memory.rank` documents it."""
_REPEAT_DAYS = 14
_SUMMARY_WORDS = 80
_LEAD_LENGTH = 300
_MOST_SAVED = 20


@dataclass(frozen=True, slots=True)
class DigestPost:
    """A story as one reader gets it: with a summary and the reason for sending it."""

    id: str
    title: str
    text: str
    topics: tuple[str, ...]

    @property
    def about(self) -> dict[str, Any]:
        """The arguments for `Memory.report`."""
        return {"item": self.id, "title": self.title, "topics": list(self.topics)}


class HNPal:
    """The memories, the news, and the model if MEMORY_MODEL names one."""

    def __init__(self, folder: Path, news: HackerNews, *, clock: Clock = utc_now, size: int = 4) -> None:
        self.app = recollect.open(memory_dir=folder, clock=clock)  # other settings come from the environment
        self.model = configured_model(self.app.config)
        self.extractor = self.app.extractor(required=False)
        self.clock = clock
        self._news = news
        self._size = size

    def __enter__(self) -> HNPal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.model is not None:
            self.model.close()
        self.app.close()

    def conversation(self, identity: tuple[str, str | int], place: str) -> PalConversation:
        """Return a conversation with a reader."""
        options: dict[str, Any] = {"model": self.model, "extractor": self.extractor, "clock": self.clock}
        return PalConversation(self.app, identity, pal=self, place=place, **options)

    def work(self) -> None:
        """Do the background work that is due, such as the nightly extraction. In production, run `recollect worker`."""
        with self.app.queue() as queue, self.app.worker(queue) as worker:
            worker.wait_idle()

    def digest(self, memory: Memory) -> list[DigestPost]:
        """Return new stories for a reader, what they care about first, without what they do not want."""
        recent = memory.interactions(kinds=["delivery"], since=self.clock() - timedelta(days=_REPEAT_DAYS))
        known = {one.item for one in recent}
        stories = [story for story in self._news.top_stories() if story.id not in known]
        wanted = [one for one in memory.rank(stories) if one.score > _UNWANTED][: self._size]
        return [self._post(memory, one.item, one.why if one.score > 0 else "") for one in wanted]

    def _post(self, memory: Memory, story: Story, why: str) -> DigestPost:
        lines = [self.summary(memory, story), f"For you: {why}" if why else "", story.url]
        return DigestPost(story.id, story.title, "\n".join(filter(None, lines)), story.topics)

    def summary(self, memory: Memory, story: Story) -> str:
        """Return a summary for this reader by the model; without one, the lead and the best comments."""
        comments = self._news.comments(story)
        if self.model is not None:
            text = "\n\n".join([story.text, *comments]).strip() or story.title
            summary = summarize(memory, text, title=story.title, model=self.model, max_words=_SUMMARY_WORDS)
            if summary.problem is None:
                return summary.text
        quoted = [f"“{shorten(comment, _LEAD_LENGTH, placeholder=' …')}”" for comment in comments]
        return "\n".join(filter(None, [shorten(story.text, _LEAD_LENGTH, placeholder=" …"), *quoted]))


class PalConversation(Conversation):
    """A conversation in which a reader can also get the digest, react to it and save from it."""

    def __init__(self, app: Recollect, identity: tuple[str, str | int], *, pal: HNPal, **options: Any) -> None:
        super().__init__(app, identity, **options)
        self._pal = pal
        self._is_private = options.get("speaker") is None  # in a group, others would see the digest
        self._shown: list[DigestPost] = []

    def say(self, text: str, *, message: str | None = None, forwarded: bool = False, **options: Any) -> list[ChatPage]:
        """Answer a command of `COMMANDS`; everything else is answered as in any conversation."""
        verb, _, rest = text.strip().partition(" ")
        verb = verb.partition("@")[0].lower()
        if self._is_private and not forwarded:
            try:
                answer = self._answer(verb, rest.strip(), message)
            except recollect.RecollectError as error:
                answer = [chat_page(ChatLine(str(error), "bad"))]
            except OSError:
                answer = [chat_page(ChatLine("Hacker News cannot be reached right now. Try again later.", "bad"))]
            if answer is not None:
                return answer
        pages = super().say(text, message=message, forwarded=forwarded, **options)
        return [*pages, _help()] if verb == "/help" and self._is_private else pages

    def greeting(self) -> list[ChatPage]:
        """Greet the reader, and make sure that they get digests."""
        self.memory.report("command", value="/start")
        return [*super().greeting(), *([_help()] if self._is_private else [])]

    def posts(self) -> list[DigestPost]:
        """Return what the reader got in their last digest."""
        got = self.memory.interactions(kinds=["delivery"], since=self._pal.clock() - timedelta(days=_REPEAT_DAYS))
        last = [one for one in got if one.at.date() == got[-1].at.date()]
        return [DigestPost(one.item or "", one.title or "", one.text or "", one.topics) for one in last] or self._shown

    def today(self) -> list[DigestPost]:
        """Return today's digest; made now if there is none yet."""
        day = self._pal.clock().date().isoformat()
        if not self.memory.interactions(kinds=["delivery"], since=day, limit=1):
            self._shown = self._pal.digest(self.memory)
            self.memory.report_many(
                {"kind": "delivery", "id": f"{day}:{number:02}:{post.id}", "text": post.text, **post.about}
                for number, post in enumerate(self._shown)
            )
        return self.posts()

    def _answer(self, verb: str, rest: str, message: str | None) -> list[ChatPage] | None:
        """Answer one of our commands; return None if it is not ours."""
        if verb == "/digest":
            return [_digest(self.today())]
        if verb == "/saved":
            return [self._saved(message)]
        if verb == "/learn":
            return [self._learn()]
        if verb not in ("/read", "/save", "/discuss", *_REACTIONS):
            return None
        post = self._meant(rest)
        if post is not None:
            return self._act(verb, post, message or utc_now().isoformat())
        if verb == "/discuss" and rest and not rest.isdecimal():
            return None  # something else that they read
        number = len(self.posts())
        which = f"Say its number, from 1 to {number}, or a word of its title" if number else "/digest shows them"
        return [chat_page(ChatLine(f"Which one? {which}.", "bad"))]

    def _act(self, verb: str, post: DigestPost, message: str) -> list[ChatPage]:
        memory = self.memory
        if verb == "/save" or verb in _REACTIONS:
            kind = "save" if verb == "/save" else "reaction"
            outcome = memory.report(kind, id=f"{verb}:{message}", value=_REACTIONS.get(verb), **post.about)
            return [chat_page(ChatLine(outcome.message, "good" if outcome.done else "bad"))]
        memory.report("read", id=f"read:{post.id}", **post.about)
        if verb == "/read":
            return [chat_page(ChatLine(post.title, "title"), *post.text.splitlines())]
        pages = super().say(f"/discuss {post.title}\n{post.text}", message=message)
        reminder = remind(memory, post.title, clock=self._pal.clock) if reminders_are_on(memory) else None
        return [*pages, *([chat_page(ChatLine(reminder.text, "aside"))] if reminder else [])]

    def _meant(self, words: str) -> DigestPost | None:
        """Return the post with this number in the last digest, or with these words in its title."""
        posts = self.posts()
        if words.isdecimal():
            return posts[int(words) - 1] if 0 < int(words) <= len(posts) else None
        return next((post for post in posts if words and words.casefold() in post.title.casefold()), None)

    def _saved(self, message: str | None) -> ChatPage:
        self.memory.report("command", value="/saved", id=None if message is None else f"/saved:{message}")
        found = self.memory.interactions(kinds=["save"], newest_first=True, limit=_MOST_SAVED)
        titles = dict.fromkeys(one.title or "" for one in found)
        lines = [ChatLine(title, "item") for title in titles] or [ChatLine("Nothing yet: /save 2 saves a story.")]
        return chat_page(ChatLine("What you saved", "title"), *lines)

    def _learn(self) -> ChatPage:
        run = extract(self.memory, self._pal.clock().date(), extractor=self._pal.extractor, clock=self._pal.clock)
        lines = [ChatLine(outcome.message, "good") for outcome in run.kept.outcomes if outcome.done]
        return chat_page(*(lines or [ChatLine("Nothing new.")]))


def _digest(posts: list[DigestPost]) -> ChatPage:
    lines: list[ChatLine] = [ChatLine("Today's stories", "title")]
    for number, post in enumerate(posts, 1):
        lines.append(ChatLine(f"{number}. {post.title}", "heading"))
        lines += [ChatLine(line) for line in post.text.splitlines()]
    return chat_page(*lines)


def _help() -> ChatPage:
    return chat_page(
        ChatLine("Your digest", "title"), *(ChatLine(f"{verb}  {meaning}") for verb, meaning in COMMANDS.items())
    )
