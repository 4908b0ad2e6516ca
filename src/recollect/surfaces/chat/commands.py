"""The `/memory` commands, the same on every channel: text in, a page out.

All commands work while memory is paused or incognito, because people may always see and remove their own data. No state
is kept between commands: each choice carries everything it needs in its command.
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
from recollect.surfaces.chat.forget_commands import chat_forget, chat_keep, chat_next, chat_undo, notice_lines
from recollect.surfaces.chat.page import ChatLine, ChatPage, Choice, chat_page, fits_choice
from recollect.surfaces.chat.show_commands import (
    chat_more,
    chat_results,
    chat_search,
    chat_show,
    chat_why,
    empty_memory_page,
    usage_page,
)
from recollect.surfaces.chat.speaker import Asker, numbers_in, pluralize, short_digest
from recollect.surfaces.chat.text_fit import HEIGHT, count_phone_lines, quote_typed
from recollect.text import fold
from recollect.times import Clock, utc_now

LOGGER = logging.getLogger("recollect")
_MOST_CHARACTERS = 1_000
_REMARKS = 8  # lines that may come below
_UNTYPED = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # nobody types these, and some stores reject them
_LED = re.compile(r"\s*[/／](?:memory|mem)(?:@\w+)?(?:[\s_]+|$)", re.IGNORECASE)

_RESUME, _PAUSE = Choice("Resume", "resume"), Choice("Pause", "pause")
_INCOGNITO = Choice("Incognito", "incognito")


class Commands:
    """The `/memory` commands of one identity."""

    def __init__(self, app: Recollect, identity: tuple[str, str | int], *, clock: Clock = utc_now) -> None:
        self._app = check.check_instance("app", app, Recollect, "what recollect.open(…) gives")
        self._identity = check_identity(identity)
        self._clock = clock

    @staticmethod
    def owns(text: str) -> bool:
        """Return True if the text is one of these commands: ``/memory …``."""
        return _LED.match(check.check_query("text", text)) is not None

    def run(self, text: str) -> ChatPage:
        """Run a command, with or without the leading ``/memory``. Errors are reported in the page that is returned."""
        text = check.check_query("text", text)
        said = " ".join(_UNTYPED.sub(" ", _LED.sub("", text, count=1)).split())[:_MOST_CHARACTERS].strip()
        try:
            asker = self._asker()
            answer = self._answer(asker, said)
            if count_phone_lines(str(answer)) <= HEIGHT - _REMARKS and asker.memory.exists:
                told = [line for line in notice_lines(asker.memory.notices()) if line not in answer.lines]
                answer = replace(answer, lines=(*answer.lines, *told))
            return answer
        except StoreError as error:
            return _store_error_page(error, said)
        except DocumentError:
            return chat_page(
                ChatLine("Your memory file cannot be read. I left it as it is and changed nothing.", "bad")
            )
        except RecollectError as error:
            LOGGER.warning("a /memory command failed: %s", type(error).__name__)
            return chat_page(ChatLine("That did not work. Nothing was changed.", "bad"), choices=[[_HELP]])

    def waiting(self) -> ChatPage | None:
        """Return the question that waits for an answer here: a link requested on the other channel."""
        try:
            return link_command.pending_question(self._asker())
        except RecollectError:
            return None  # the question is still there next time

    def _asker(self) -> Asker:
        memory = self._app.identities.memory(self._identity)
        return Asker(app=self._app, identity=self._identity, memory=memory, now=self._clock())

    def _answer(self, asker: Asker, said: str) -> ChatPage:
        word, _, argument = said.partition(" ")
        command = _COMMANDS.get(fold(word))
        if command is not None:
            return command.act(asker, argument)
        if numbers_in(said):
            return chat_why(asker, said)
        # a section, or a misspelled command
        meant = _MEANT.get(fold(word)) or next(iter(difflib.get_close_matches(fold(word)[:40], _TYPED, 1, 0.75)), "")
        answer = chat_show(asker, said)
        if not meant or (asker.memory.exists and answer.lines[0].style != "bad"):
            return answer
        full = f"{meant} {argument}".strip()
        choices = [Choice(f"Yes, {meant}", full)] if fits_choice(full) else []
        return chat_page(
            ChatLine(f"I don't know {quote_typed(word)}.", "bad"),
            f"Did you mean “{meant}”?",
            ChatLine(f"For example: /memory {_COMMANDS[meant].example}".rstrip(), "aside"),
            choices=[[*choices, _HELP]],
        )


# settings


def chat_pause(asker: Asker, argument: str) -> ChatPage:
    """Pause memory: store nothing new."""
    if asker.memory.mode == "paused":
        lead = "Memory is already paused." if asker.memory.config.enabled else _OFF
    else:
        asker.memory.pause()
        lead = "Memory is paused."
    return chat_page(
        ChatLine(lead, "good"),
        "I store nothing new. I still use what I already know, and you can see and remove it.",
        choices=[[_RESUME, _INCOGNITO]] if asker.memory.config.enabled else [],
    )


def chat_incognito(asker: Asker, argument: str) -> ChatPage:
    """Go incognito: use nothing and store nothing."""
    if asker.memory.mode == "incognito":
        lead = "You are already incognito."
    else:
        asker.memory.pause(incognito=True)
        lead = "You are incognito now."
    return chat_page(
        ChatLine(lead, "good"),
        "I don't use what I know, and I store nothing new. You can still see and remove it.",
        choices=[[_RESUME, _PAUSE]],
    )


def chat_resume(asker: Asker, argument: str) -> ChatPage:
    """Turn memory on again."""
    known = asker.memory.exists
    if known and asker.memory.mode != "on":
        asker.memory.resume()
        lead = "Memory is on again."
    else:
        lead = "Memory is on."
    if not asker.memory.config.enabled:
        return chat_page(ChatLine(_OFF, "bad"))
    return chat_page(ChatLine(lead, "good"), "I use what I know and store what is new.")


_OFF = "Memory is turned off here for everyone. The operator can turn it on."


def chat_reminders(asker: Asker, argument: str) -> ChatPage:
    """Turn reminders such as "you discussed something similar last week" on or off."""

    def switch(on: bool) -> bool:
        mode = asker.memory.mode
        with asker.memory.batch() as memory:
            if mode != "on":
                memory.resume()  # only to change this setting
            done = switch_reminders(memory, on).done or reminders_are_on(memory) == on
            if mode != "on":
                memory.pause(incognito=mode == "incognito")
        return done

    is_on = _reminders_are_on(asker)
    return _switch_page(asker, "reminders", argument, is_on, switch, "remind you of what we discussed before")


def _reminders_are_on(asker: Asker) -> bool:
    if asker.memory.mode != "incognito":
        return reminders_are_on(asker.memory)
    off = [one for one in asker.remembered("scratch") if one.key == SWITCH and fold(one.content) == "off"]
    return not off  # while incognito, the memory itself returns nothing


def chat_trends(asker: Asker, argument: str) -> ChatPage:
    """Turn the anonymous count of your interests among those of many people on or off."""

    def switch(on: bool) -> bool:
        asker.memory.consent("trends", on)
        return True

    is_on = "trends" in asker.memory.consents()
    return _switch_page(
        asker, "trends", argument, is_on, switch, "count your topics among many people's, without your name"
    )


def _switch_page(
    asker: Asker, name: str, argument: str, is_on: bool, switch: Callable[[bool], bool], what: str
) -> ChatPage:
    wanted = {"on": True, "yes": True, "off": False, "no": False}.get(fold(argument))
    if wanted is None and argument:
        return usage_page(f"{name.capitalize()} can be on or off.", f"{name} {'off' if is_on else 'on'}")
    if wanted is not None and wanted != is_on and not switch(wanted):
        return chat_page(ChatLine("That cannot be changed right now.", "bad"))
    now_on = is_on if wanted is None else wanted
    other = "off" if now_on else "on"
    return chat_page(
        ChatLine(f"{name.capitalize()}: {'on' if now_on else 'off'}.", "text" if wanted is None else "good"),
        f"I {what}." if now_on else f"I don't {what}.",
        choices=[[Choice(f"Turn {other}", f"{name} {other}")]],
    )


# the whole memory


def chat_clear(asker: Asker, argument: str) -> ChatPage:
    """Erase everything after asking. Ask again if the memory has changed since the question."""
    memory = asker.memory
    if not memory.exists or not (sum(memory.count().values()) or any(entry.after for entry in memory.history())):
        return empty_memory_page(asker)
    word, _, seen = argument.partition(" ")
    if fold(word) != "yes" or not seen:
        return _ask_to_clear(asker)
    with memory.batch() as batch:
        erased = batch.clear() if _memory_state(batch) == seen else None
    if erased is None:
        return _ask_to_clear(asker, ChatLine("Your memory has changed since I asked, so I erased nothing.", "bad"))
    return chat_page(
        ChatLine("Everything is erased.", "good"),
        *(ChatLine(text, "item") for text in _receipt_lines(erased.receipt.places)),
        erased.receipt.left or _LEFT,
        *notice_lines(erased.notices),
    )


_LEFT = (
    "This cannot be undone. What stays are fingerprints, so that I don't learn it again from elsewhere, and the account"
    " of what models cost."
)


def _ask_to_clear(asker: Asker, *lead: ChatLine) -> ChatPage:
    count = asker.memory.count()
    remembered = sum(number for kind, number in count.items() if kind not in ("message", "scratch"))
    messages = count.get("message", 0)
    return chat_page(
        *lead,
        ChatLine("Erase everything I know about you?", "title"),
        *([ChatLine(pluralize(remembered), "item")] if remembered else ()),
        *([ChatLine(pluralize(messages, "message", "messages"), "item")] if messages else ()),
        "This includes forgotten memories and the whole history. It cannot be undone.",
        ChatLine("To keep a copy: /memory export", "aside"),
        choices=[
            [
                Choice("Erase everything", f"clear yes {_memory_state(asker.memory)}", danger=True),
                Choice("Keep", "keep"),
            ]
        ],
    )


def _memory_state(memory: Memory) -> str:
    """Return an identifier of the current state of this memory."""
    last = [entry.seq for entry in memory.history(limit=1)]
    return f"{sum(last)}{short_digest(memory.user_id, *last)}"


_PLACES = {
    "records": ("memory or message", "memories and messages, including old ones"),
    "lines of MEMORY.md": ("line of your memory file", "lines of your memory file"),
    "daily notes": ("daily note", "daily notes"),
    "journal": ("history entry", "history entries"),
    "interactions": ("record of what you did", "records of what you did"),
    "tool calls": ("log entry", "log entries"),
    "consents": ("consent", "consents"),
}


def _receipt_lines(places: dict[str, int]) -> list[str]:
    return [pluralize(places[place], *words) for place, words in _PLACES.items() if places.get(place)]


def chat_export(asker: Asker, argument: str) -> ChatPage:
    """Export the whole memory as a file."""
    if not asker.memory.exists:
        return empty_memory_page(asker)
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
    return chat_page(
        ChatLine("Here is your whole memory.", "good"),
        "The file contains everything I know about you. Keep it safe.",
        document=path,
    )


def chat_help(asker: Asker, argument: str) -> ChatPage:
    """List the commands."""
    lines = [ChatLine(f"/memory {c.example}".rstrip() + f" – {c.meaning}", "item") for c in _TABLE if c.meaning]
    return chat_page(ChatLine("Your memory: commands", "title"), *lines)


_HELP = Choice("Help", "help")


class _ChatCommand(NamedTuple):
    """A command: its name, an example, a short description (empty: only offered as a choice), and its function."""

    name: str
    example: str
    meaning: str
    act: Callable[[Asker, str], ChatPage]


_TABLE = (
    _ChatCommand("show", "", "what I know about you", chat_show),
    _ChatCommand("search", "search tea", "find it", chat_search),
    _ChatCommand("why", "why 12", "how I know it", chat_why),
    _ChatCommand("forget", "forget tea", "remove a topic", chat_forget),
    _ChatCommand("undo", "undo", "undo the last change", chat_undo),
    _ChatCommand("pause", "pause", "store nothing new", chat_pause),
    _ChatCommand("incognito", "incognito", "use no memory", chat_incognito),
    _ChatCommand("resume", "resume", "back to normal", chat_resume),
    _ChatCommand("export", "export", "all of it as a file", chat_export),
    _ChatCommand("clear", "clear", "erase everything", chat_clear),
    _ChatCommand("link", "link", "one memory, 2 channels", link_command.chat_link),
    _ChatCommand("web", "web", "see it in a browser", web_command.chat_web),
    _ChatCommand("reminders", "reminders off", "or on", chat_reminders),
    _ChatCommand("trends", "trends on", "or off", chat_trends),
    _ChatCommand("help", "help", "this list", chat_help),
    _ChatCommand("more", "more", "", chat_more),
    _ChatCommand("results", "search tea", "", chat_results),
    _ChatCommand("next", "forget tea", "", chat_next),
    _ChatCommand("keep", "", "", chat_keep),
)
_COMMANDS = {command.name: command for command in _TABLE} | {"": _TABLE[0]}
_TYPED = [command.name for command in _TABLE if command.meaning]
_MEANT = {"find": "search", "look": "search", "delete": "forget", "remove": "forget", "erase": "forget"}
_MEANT |= {"stop": "pause", "off": "pause", "start": "resume", "on": "resume", "unpause": "resume", "list": "show"}
_MEANT |= {"download": "export", "save": "export", "backup": "export", "reset": "clear", "wipe": "clear", "?": "help"}
_MEANT |= {"private": "incognito", "connect": "link", "explain": "why", "commands": "help", "view": "show"}
_MEANT |= {"login": "web", "console": "web", "browser": "web", "open": "web"}


def _store_error_page(error: StoreError, said: str) -> ChatPage:
    """Return a page that explains a storage error. Nothing was left half done."""
    again = [Choice("Try again", said or "show")] if fits_choice(said) else []
    match error:
        case StoreBusyError() | StoreUnavailableError():
            text = "Your memory is busy or cannot be reached right now. Nothing is lost; try again in a moment."
        case StoreReadOnlyError():
            text, again = "Your memory is read-only right now. Nothing is lost.", []
        case StoreFullError():
            text, again = "There is no space left to store that. Nothing was changed, and nothing is lost.", []
        case StoreCorruptError():
            text = "Your memory is damaged. I left it as it is; the operator can repair it."
            again = []
        case _:
            text = "Your memory cannot be opened right now. I changed nothing; try again later."
    LOGGER.warning("a /memory command failed with a storage error: %s", type(error).__name__)
    return chat_page(ChatLine(text, "bad"), choices=[again])
