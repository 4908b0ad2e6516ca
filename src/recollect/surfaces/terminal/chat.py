"""The loop of the terminal chat: a line in, an answer out, until the end of input.

`Conversation` stores each message before it is answered, so a killed process loses nothing. Ctrl-C stops an answer, and
the end of input (Ctrl-D) ends the chat.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from recollect import checks as check
from recollect.errors import InvalidInputError
from recollect.surfaces.chat.conversation import Conversation
from recollect.surfaces.chat.page import ChatPage, Choice
from recollect.surfaces.terminal.lines import PipedLines, TerminalLines
from recollect.surfaces.terminal.screen import JsonScreen, Screen

_YES, _NO = ("y", "yes"), ("n", "no")
_REFUSALS = ("keep", "link no")
_FIELDS = ("text", "message", "forwarded", "quoted", "choose")


@dataclass(slots=True)
class TerminalChat:
    """One chat at a terminal or with a program."""

    talk: Conversation
    screen: Screen | JsonScreen
    lines: TerminalLines | PipedLines

    def run(self) -> None:
        """Chat until the end of input, then conclude and say goodbye."""
        choices: list[Choice] = []
        if greeting := self.talk.greeting():
            choices = self.screen.pages(greeting, asked=True)
        while True:
            self.screen.ready()
            try:
                line = self.lines.next()
            except EOFError:
                break
            except KeyboardInterrupt:
                self._stay()
                self.screen.say("\nCtrl-D ends the chat.", "aside")
                continue
            if line.strip():
                choices = self._turn(line, choices)
        self._goodbye()

    def _turn(self, line: str, choices: list[Choice]) -> list[Choice]:
        """Handle one line, and return the choices for the next one."""
        try:
            picked = _chosen_choice(line, choices)
            if picked is not None:
                return self._shown(self.talk.choose(picked.command), asked=True)
            if isinstance(self.screen, JsonScreen) and line.lstrip().startswith("{"):
                return self._request(line)
            self.screen.wait()
            asked = line.lstrip().startswith("/")
            return self._shown(self.talk.say(line, on_text=self.screen.piece), asked=asked)
        except KeyboardInterrupt:
            self._stay()
            self.screen.say("(interrupted)", "aside")
            return []

    def _shown(self, pages: list[ChatPage], *, asked: bool) -> list[Choice]:
        choices = self.screen.pages(pages, asked=asked)
        if asked:  # something may have been erased
            self.lines.remember(self.talk.memory)
        return choices

    def _request(self, line: str) -> list[Choice]:
        """Handle a JSON object from a program: the text and its options."""
        try:
            given = json.loads(line)
            if unknown := [name for name in given if name not in _FIELDS]:
                raise InvalidInputError(str(unknown[0])[:40], f"is not one of {', '.join(_FIELDS)}")
            return self._shown(self._requested(given), asked=True)
        except (ValueError, TypeError, RecursionError, InvalidInputError) as error:
            told = str(error) if isinstance(error, InvalidInputError) else "this is not a JSON object"
            self.screen.say(told, "bad")
            return []

    def _requested(self, given: dict[str, Any]) -> list[ChatPage]:
        if "choose" in given:
            return self.talk.choose(given["choose"])
        return self.talk.say(
            given.get("text", ""),
            message=given.get("message"),
            forwarded=check.check_flag("forwarded", given.get("forwarded", False)),
            quoted=given.get("quoted"),
            on_text=self.screen.piece,
        )

    def _stay(self) -> None:
        """Continue after Ctrl-C if a person pressed it; a script ends, like any program."""
        if isinstance(self.lines, PipedLines):
            raise KeyboardInterrupt

    def _goodbye(self) -> None:
        try:
            self.screen.wait()
            pages = self.talk.leave()
            if pages:
                self.screen.pages(pages, asked=False)
        except KeyboardInterrupt:  # the session is concluded next time
            pass
        self.screen.say("Goodbye.")


def _chosen_choice(line: str, choices: list[Choice]) -> Choice | None:
    """Return the choice that a line names by its number, its label, or yes and no."""
    said = " ".join(line.split()).casefold()
    if said.isdecimal() and 1 <= int(said) <= len(choices):
        return choices[int(said) - 1]
    if said in _YES + _NO:
        return _yes_or_no_choice(said in _YES, choices)
    return next((choice for choice in choices if choice.label.casefold() == said), None)


def _yes_or_no_choice(agrees: bool, choices: list[Choice]) -> Choice | None:
    """Return the choice that yes or no means, if the page asked: one action and a way to decline it."""
    refusals = [number for number, choice in enumerate(choices) if choice.command in _REFUSALS]
    if not agrees:
        return choices[refusals[0]] if refusals else None
    is_question = refusals[:1] == [1] or any(choice.label.startswith("Yes, ") for choice in choices[:1])
    return choices[0] if is_question else None
