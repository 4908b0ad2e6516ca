"""The `/memory` commands, the same on every channel: text in, a page out. Knows no channel.

The person acts themselves: everything works while memory is paused and in incognito, because what is theirs they may
always see and remove. Nothing is kept between two commands: a choice carries all it needs in its own command.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from recollect import checks as check
from recollect.agents.remind import SWITCH, reminders_are_on, switch_reminders
from recollect.app import Recollect
from recollect.errors import (
    DocumentError,
    RecollectError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
    storage_error,
)
from recollect.identity.identities import check_identity
from recollect.memory.memory import Memory
from recollect.surfaces.chat import link_command, web_command
from recollect.surfaces.chat.forget_commands import forget, further, keep, remarks, undo
from recollect.surfaces.chat.page import Choice, Line, Page, fits_choice, page
from recollect.surfaces.chat.show_commands import more, nothing_yet, results, search, show, usage, why
from recollect.surfaces.chat.speaker import Asker, counted, mark, numbers_in
from recollect.surfaces.chat.text_fit import HEIGHT, lines_of, quoted
from recollect.text import fold
from recollect.times import Clock, utc_now

LOGGER = logging.getLogger("recollect")
_MOST_CHARACTERS = 1_000
_REMARKS = 8  # lines that may come below
_UNTYPED = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # by nobody, and some stores cannot take it
_LED = re.compile(r"\s*[/／](?:memory|mem)(?:@\w+)?(?:[\s_]+|$)", re.IGNORECASE)

_RESUME, _PAUSE = Choice("Resume", "resume"), Choice("Pause", "pause")
_INCOGNITO = Choice("Incognito", "incognito")


class Commands:
    """What one person, as a channel knows them, can ask of their memory."""

    def __init__(self, app: Recollect, identity: tuple[str, str | int], *, clock: Clock = utc_now) -> None:
        self._app = check.instance("app", app, Recollect, "what recollect.open(…) gives")
        self._identity = check_identity(identity)
        self._clock = clock

    @staticmethod
    def owns(text: str) -> bool:
        """Whether a text that was typed is one of these commands: ``/memory …``."""
        return _LED.match(check.query("text", text)) is not None

    def run(self, text: str) -> Page:
        """The answer to a command, with or without the leading ``/memory``. Whatever is wrong is said in the page."""
        text = check.query("text", text)
        said = " ".join(_UNTYPED.sub(" ", _LED.sub("", text, count=1)).split())[:_MOST_CHARACTERS].strip()
        try:
            asker = self._asker()
            answer = self._answer(asker, said)
            if lines_of(str(answer)) <= HEIGHT - _REMARKS and asker.memory.exists:
                told = [line for line in remarks(asker.memory.notices()) if line not in answer.lines]
                answer = replace(answer, lines=(*answer.lines, *told))
            return answer
        except StoreError as error:
            return _failed(error, said)
        except DocumentError:
            return page(Line("Your memory file cannot be read. I left it as it is, and changed nothing.", "bad"))
        except RecollectError as error:
            LOGGER.warning("a /memory command failed: %s", type(error).__name__)
            return page(Line("That did not work, and nothing was changed.", "bad"), choices=[[_HELP]])

    def waiting(self) -> Page | None:
        """What waits for this person to be answered: a link that the other channel asked for."""
        try:
            return link_command.waiting(self._asker())
        except RecollectError:
            return None  # it waits for the next time, too

    def _asker(self) -> Asker:
        memory = self._app.identities.memory(self._identity)
        return Asker(app=self._app, identity=self._identity, memory=memory, now=self._clock())

    def _answer(self, asker: Asker, said: str) -> Page:
        word, _, argument = said.partition(" ")
        command = _COMMANDS.get(fold(word))
        if command is not None:
            return command.act(asker, argument)
        if numbers_in(said):
            return why(asker, said)
        # a section, or something that was meant differently
        meant = _MEANT.get(fold(word)) or next(iter(difflib.get_close_matches(fold(word)[:40], _TYPED, 1, 0.75)), "")
        answer = show(asker, said)
        if not meant or (asker.memory.exists and answer.lines[0].style != "bad"):
            return answer
        full = f"{meant} {argument}".strip()
        choices = [Choice(f"Yes, {meant}", full)] if fits_choice(full) else []
        return page(
            Line(f"I don't know {quoted(word)}.", "bad"),
            f"Did you mean “{meant}”?",
            Line(f"For example: /memory {_COMMANDS[meant].example}".rstrip(), "aside"),
            choices=[[*choices, _HELP]],
        )


# how memory works for the person


def pause(asker: Asker, argument: str) -> Page:
    """Keep nothing new."""
    if asker.memory.mode == "paused":
        lead = "Memory is paused already." if asker.memory.config.enabled else _OFF
    else:
        asker.memory.pause()
        lead = "Memory is paused."
    return page(
        Line(lead, "good"),
        "I keep nothing new. What I know already I still use, and you can see and remove it.",
        choices=[[_RESUME, _INCOGNITO]] if asker.memory.config.enabled else [],
    )


def incognito(asker: Asker, argument: str) -> Page:
    """Use nothing and keep nothing."""
    if asker.memory.mode == "incognito":
        lead = "You are incognito already."
    else:
        asker.memory.pause(incognito=True)
        lead = "You are incognito now."
    return page(
        Line(lead, "good"),
        "I neither use what I know nor keep anything new. You can still see and remove it.",
        choices=[[_RESUME, _PAUSE]],
    )


def resume(asker: Asker, argument: str) -> Page:
    """Memory works again."""
    known = asker.memory.exists
    if known and asker.memory.mode != "on":
        asker.memory.resume()
        lead = "Memory is on again."
    else:
        lead = "Memory is on."
    if not asker.memory.config.enabled:
        return page(Line(_OFF, "bad"))
    return page(Line(lead, "good"), "I use what I know, and keep what is new.")


_OFF = "Memory is switched off here for everybody; whoever runs this can switch it on."


def reminders(asker: Asker, argument: str) -> Page:
    """Be told "you discussed something similar last week", or not."""

    def switch(on: bool) -> bool:
        mode = asker.memory.mode
        with asker.memory.batch() as memory:
            if mode != "on":
                memory.resume()  # for this one setting, which is the person's own
            done = switch_reminders(memory, on).done or reminders_are_on(memory) == on
            if mode != "on":
                memory.pause(incognito=mode == "incognito")
        return done

    is_on = _reminders_are_on(asker)
    return _setting(asker, "reminders", argument, is_on, switch, "remind you of what we discussed before")


def _reminders_are_on(asker: Asker) -> bool:
    if asker.memory.mode != "incognito":
        return reminders_are_on(asker.memory)
    off = [one for one in asker.remembered("scratch") if one.key == SWITCH and fold(one.content) == "off"]
    return not off  # in incognito the memory itself answers nothing


def trends(asker: Asker, argument: str) -> Page:
    """Be counted, without a name, in what many people are interested in."""

    def switch(on: bool) -> bool:
        asker.memory.consent("trends", on)
        return True

    is_on = "trends" in asker.memory.consents()
    return _setting(
        asker, "trends", argument, is_on, switch, "count your topics, without your name, among many people's"
    )


def _setting(asker: Asker, name: str, argument: str, is_on: bool, switch: Callable[[bool], bool], what: str) -> Page:
    wanted = {"on": True, "yes": True, "off": False, "no": False}.get(fold(argument))
    if wanted is None and argument:
        return usage(f"{name.capitalize()} can be on or off.", f"{name} {'off' if is_on else 'on'}")
    if wanted is not None and wanted != is_on and not switch(wanted):
        return page(Line("That cannot be changed here just now.", "bad"))
    now_on = is_on if wanted is None else wanted
    other = "off" if now_on else "on"
    return page(
        Line(f"{name.capitalize()}: {'on' if now_on else 'off'}.", "text" if wanted is None else "good"),
        f"I {what}." if now_on else f"I don't {what}.",
        choices=[[Choice(f"Turn {other}", f"{name} {other}")]],
    )


# the whole memory


def clear(asker: Asker, argument: str) -> Page:
    """Erase everything, after asking; and asking again if memory has changed since."""
    memory = asker.memory
    if not memory.exists or not (sum(memory.count().values()) or any(entry.after for entry in memory.history())):
        return nothing_yet(asker)
    word, _, seen = argument.partition(" ")
    if fold(word) != "yes" or not seen:
        return _ask_to_clear(asker)
    with memory.batch() as batch:
        erased = batch.clear() if _state(batch) == seen else None
    if erased is None:
        return _ask_to_clear(asker, Line("Your memory has changed since I asked, so I erased nothing.", "bad"))
    return page(
        Line("Everything is erased.", "good"),
        *(Line(text, "item") for text in _receipt(erased.receipt.places)),
        erased.receipt.left or "Nothing of it is left, and it cannot be undone.",
        *remarks(erased.notices),
    )


def _ask_to_clear(asker: Asker, *lead: Line) -> Page:
    count = asker.memory.count()
    remembered = sum(number for kind, number in count.items() if kind not in ("message", "scratch"))
    messages = count.get("message", 0)
    return page(
        *lead,
        Line("Erase everything I know about you?", "title"),
        *([Line(counted(remembered), "item")] if remembered else ()),
        *([Line(counted(messages, "message", "messages"), "item")] if messages else ()),
        "Also what was forgotten and the history of it all. This cannot be undone.",
        Line("To keep a copy: /memory export", "aside"),
        choices=[
            [Choice("Erase everything", f"clear yes {_state(asker.memory)}", danger=True), Choice("Keep", "keep")]
        ],
    )


def _state(memory: Memory) -> str:
    """Names the present state of this very memory."""
    last = [entry.seq for entry in memory.history(limit=1)]
    return f"{sum(last)}{mark(memory.user_id, *last)}"


_PLACES = {
    "records": ("memory or message", "memories and messages, old ones too"),
    "lines of MEMORY.md": ("line of your memory file", "lines of your memory file"),
    "daily notes": ("daily note", "daily notes"),
    "journal": ("entry of the history", "entries of the history"),
    "interactions": ("note of what you did", "notes of what you did"),
    "tool calls": ("entry in the log", "entries in the log"),
    "consents": ("consent of yours", "consents of yours"),
}


def _receipt(places: dict[str, int]) -> list[str]:
    return [counted(places[place], *words) for place, words in _PLACES.items() if places.get(place)]


def export(asker: Asker, argument: str) -> Page:
    """The whole memory as a file."""
    if not asker.memory.exists:
        return nothing_yet(asker)
    folder = Path(tempfile.gettempdir())
    try:
        handle, name = tempfile.mkstemp(prefix=f"memory-{asker.now:%Y-%m-%d}-", suffix=".zip", dir=folder)
        os.close(handle)
    except OSError as error:
        raise storage_error(error, folder) from error
    path = Path(name)
    try:
        asker.memory.export(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return page(
        Line("Here is your whole memory.", "good"),
        "The file holds everything I know about you: keep it safe.",
        document=path,
    )


def help_(asker: Asker, argument: str) -> Page:
    """What there is."""
    lines = [Line(f"/memory {c.example}".rstrip() + f" – {c.meaning}", "item") for c in _TABLE if c.meaning]
    return page(Line("Your memory, and what you can do", "title"), *lines)


_HELP = Choice("Help", "help")


class _Command(NamedTuple):
    """A command: its name, an example, what it does in a few words (none: a choice only), and who does it."""

    name: str
    example: str
    meaning: str
    act: Callable[[Asker, str], Page]


_TABLE = (
    _Command("show", "", "what I know about you", show),
    _Command("search", "search tea", "find it", search),
    _Command("why", "why 12", "how I know it", why),
    _Command("forget", "forget tea", "choose what goes", forget),
    _Command("undo", "undo", "take it back", undo),
    _Command("pause", "pause", "keep nothing new", pause),
    _Command("incognito", "incognito", "nor use anything", incognito),
    _Command("resume", "resume", "back to normal", resume),
    _Command("export", "export", "all of it as a file", export),
    _Command("clear", "clear", "erase everything", clear),
    _Command("link", "link", "one memory, 2 channels", link_command.link),
    _Command("web", "web", "see it in a browser", web_command.web),
    _Command("reminders", "reminders off", "or on", reminders),
    _Command("trends", "trends on", "or off", trends),
    _Command("help", "help", "this list", help_),
    _Command("more", "more", "", more),
    _Command("results", "search tea", "", results),
    _Command("next", "forget tea", "", further),
    _Command("keep", "", "", keep),
)
_COMMANDS = {command.name: command for command in _TABLE} | {"": _TABLE[0]}
_TYPED = [command.name for command in _TABLE if command.meaning]
_MEANT = {"find": "search", "look": "search", "delete": "forget", "remove": "forget", "erase": "forget"}
_MEANT |= {"stop": "pause", "off": "pause", "start": "resume", "on": "resume", "unpause": "resume", "list": "show"}
_MEANT |= {"download": "export", "save": "export", "backup": "export", "reset": "clear", "wipe": "clear", "?": "help"}
_MEANT |= {"private": "incognito", "connect": "link", "explain": "why", "commands": "help", "view": "show"}
_MEANT |= {"login": "web", "console": "web", "browser": "web", "open": "web"}


def _failed(error: StoreError, said: str) -> Page:
    """What went wrong below, in words for the person. Nothing was half-done."""
    again = [Choice("Try again", said or "show")] if fits_choice(said) else []
    match error:
        case StoreBusyError() | StoreUnavailableError():
            text = "Your memory is busy or out of reach just now. Nothing is lost; try again in a moment."
        case StoreReadOnlyError():
            text, again = "Your memory can be read just now, but not changed. Nothing is lost.", []
        case StoreFullError():
            text, again = "There is no room left to store that. Nothing was changed, and nothing is lost.", []
        case StoreCorruptError():
            text = "Your memory is damaged, so I leave it as it is. Whoever runs this can repair it."
            again = []
        case _:
            text = "Your memory cannot be opened just now. I changed nothing; try again later."
    LOGGER.warning("a /memory command met a problem of the store: %s", type(error).__name__)
    return page(Line(text, "bad"), choices=[again])
