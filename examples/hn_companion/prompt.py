"""A reader at the keyboard: each line is a command, or something said. It ends with the input, or with /quit."""

from __future__ import annotations

from uuid import uuid4

from companion import Companion, Post, Reader
from story import POSTS

from recollect import RecollectError

HELP = """\
/digest       what there is to read, in your order
/like 3       or /dislike 3, /save 3: the third of these
/discuss 3    talk about it; /end when you are done
/learn        learn from today now, instead of tonight
/memory       what is known of you; /note: what happened today
/forget tea   forget what speaks of tea; /undo takes the last thing back
/pause        store nothing; /resume goes on
Anything else is said to the bot, as in: Remember that I prefer short summaries"""


class Prompt:
    """One person, what they see and what they do."""

    def __init__(self, companion: Companion, user: str) -> None:
        self.reader = Reader(companion, user)
        self.shown: list[Post] = []

    def run(self) -> None:
        """Until the input ends."""
        print(f"{HELP}\n\n{self.answer('/digest')}")
        try:
            while (line := input("> ").strip()) != "/quit":
                if line:
                    print(self.answer(line))
        except (EOFError, KeyboardInterrupt):
            print()
        print(self.answer("/end"), "Bye!", sep="\n")

    def answer(self, line: str) -> str:
        """What the bot has to say to it."""
        try:
            return self._answer(*line.partition(" ")[::2], line)
        except RecollectError as error:  # its message says what to do
            return str(error)

    def _answer(self, command: str, rest: str, line: str) -> str:
        reader, memory, id = self.reader, self.reader.memory, uuid4().hex
        match command:
            case "/digest":
                ranked = reader.digest(POSTS, size=8)
                reader.delivered(ranked)
                self.shown = [one.item for one in ranked]
                why = [f" ({one.why})" * (one.score > 0) for one in ranked]
                return "\n".join(f"{n}. {post['title']}{why[n - 1]}" for n, post in enumerate(self.shown, 1))
            case "/like" | "/dislike" | "/save" | "/discuss":
                if not (rest.strip().isdecimal() and 0 < int(rest) <= len(self.shown)):
                    return f"Which one? Say its number, from 1 to {len(self.shown)}, as in {command} 1"
                post = self.shown[int(rest) - 1]
                if command != "/discuss":
                    return reader.react(post, command[1:], id=id).message
                reminder = reader.discuss(post)
                return f"{post['text']}\n{reminder.text if reminder else 'What do you think?'}"
            case "/end":
                return "\n".join(reader.end()) or "Nothing to learn from that."
            case "/learn":
                return "\n".join(reader.learn()) or "Nothing new."
            case "/memory":
                return memory.show().strip()
            case "/note":
                return memory.daily().strip() or "Nothing yet."
            case "/forget" if rest:
                return reader.forget(rest, id=id)
            case "/undo":
                return reader.undo(id=id)
            case "/pause" | "/resume":
                (memory.pause if command == "/pause" else memory.resume)()
                return f"Memory is {memory.mode}."
        if command.startswith("/"):
            return HELP
        said = reader.say(line, id=id)
        return f"{said.text} ({said.degraded})" if said.degraded else said.text
