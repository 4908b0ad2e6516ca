"""A conversation with one person in one place (a private chat, a group thread, the terminal): text in, pages out.

The state (the messages of its sessions, which discussions began, ended and were concluded) is read from the memory each
time, so a restart loses nothing. While memory is paused or incognito nothing can be stored, and the state lives only in
the object.
"""

from __future__ import annotations

import difflib
import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime

from recollect import checks as check
from recollect.agents.capture import CONFIRMED
from recollect.agents.conclude import IDLE, conclude, idle_sessions
from recollect.agents.discuss import (
    Discussion,
    DiscussionReply,
    Participant,
    ReceivedMessage,
    strip_unstorable,
)
from recollect.agents.extract import Extractor
from recollect.agents.models import Model
from recollect.agents.remind import remind, reminders_are_on
from recollect.app import Recollect
from recollect.errors import InvalidInputError, RecollectError, StoreError
from recollect.identity.identities import Identity, check_identity
from recollect.memory.chat_scope import group_chat
from recollect.memory.memory import Memory
from recollect.records import DailyEntry, Demoted, Forgotten, Message, Outcome, Record, Reported, Updated, Written
from recollect.surfaces.chat.commands import Commands
from recollect.surfaces.chat.members import members_of
from recollect.surfaces.chat.page import ChatLine, ChatPage, Choice, chat_page
from recollect.surfaces.chat.speaker import record_text, undo_choice
from recollect.surfaces.chat.text_fit import WIDTH, fit_cells
from recollect.times import Clock, utc_now
from recollect.tools.catalog import tools_of

LOGGER = logging.getLogger("recollect.talk")

NO_MODEL = "No model is configured, so I answer from memory alone and learn by rules."
COMMANDS = {
    "/memory": "see and change what I remember; /memory help",
    "/discuss": "start a discussion: a title, a link or a text",
    "/end": "end it and see what I learned",
    "/help": "this",
}
_COMMAND = re.compile(r"\s*/([A-Za-z][A-Za-z_]*)(?:@\w+)?(?:\s+(.*?))?\s*", re.DOTALL)
_FIRST = 4
"""How many messages are looked at to tell whether this is the first that a person says."""
_ENDED = "ended"
_PAGE = 50
_LONGEST_TITLE = 120
_LONGEST_ARTICLE = 20_000
_LONGEST_PLACE = 100
_LONGEST_VERB = 20
_MOST_LEARNED = 8
_MOST_UNDO = 3
_MOST_CONCLUDED = 20
_ROOM = 3 * WIDTH


@dataclass(frozen=True, slots=True)
class _CurrentSession:
    """The current conversation."""

    session: str
    at: datetime
    title: str | None = None
    text: str | None = None


class Conversation:
    """A conversation with one person in one place. It is thread-safe, and can be recreated at any time.

    ``place`` names the chat and the thread in it. In a group, each person has their own `Conversation` with the same
    place, and a ``speaker``: their name. Because others read along there, the model gets only what was said in that
    group, by all its members, and the episode of a discussion names the other participants, which ``company`` returns.
    ``suites`` and ``persona`` are those of MEMORY_TOOL_SUITES and MEMORY_PERSONA unless you give others.
    """

    def __init__(
        self,
        app: Recollect,
        identity: tuple[str, str | int],
        *,
        place: str,
        model: Model | None = None,
        extractor: Extractor | None = None,
        speaker: str | None = None,
        company: Callable[[], Sequence[str]] = tuple,
        suites: Sequence[str] | None = None,
        persona: str | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self.identity: Identity = check_identity(identity)
        self.place = check.check_line("place", place, _LONGEST_PLACE)
        self._app = app
        self._model = model
        self._extractor = extractor
        self._speaker = check.check_optional_line("speaker", speaker)
        self._company = company
        self._suites = app.config.suite_names() if suites is None else tuple(suites)
        tools_of(self._suites)  # a wrong name is reported now
        self._persona = persona
        self._clock = clock
        self._commands = Commands(app, self.identity, clock=clock)
        self._guard = threading.RLock()
        self._unkept: _CurrentSession | None = None
        self._discussion: Discussion | None = None
        self._others: tuple[str, ...] = ()
        self._asked_until: datetime | None = None
        self._told_no_model = False

    @property
    def memory(self) -> Memory:
        """The person's memory, which changes when channels are linked. In a group, only what was said in that group."""
        return self._own.acting(chat=self._chat)

    @property
    def _own(self) -> Memory:
        """The whole memory, for the person's settings. Never show its content in a group."""
        return self._app.identities.memory(self.identity)

    @property
    def _chat(self) -> str | None:
        """The chat that limits what is visible, in a group; None in a private chat."""
        return None if self._speaker is None else group_chat(self.place)

    # what the person does

    def say(
        self,
        text: str,
        *,
        message: str | None = None,
        forwarded: bool = False,
        quoted: str | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> list[ChatPage]:
        """Answer what the person said: a command, or conversation.

        A message with a ``message`` id is stored and answered by a model only once. ``forwarded`` and ``quoted`` text
        is not the person's own: it is never stored as theirs, and commands in it are ignored. ``on_text`` receives a
        model's answer in pieces as it arrives; the pages contain the whole answer.
        """
        said, other = _clean_input("text", text), _clean_input("quoted", quoted or "")
        name = None if message is None else f"{self.place}/{check.check_line('message', str(message), 60)}"
        if not forwarded and Commands.owns(said):
            return self._safely(lambda: self._memory_command(said, name), at_once=True)
        return self._safely(lambda: self._said(said, name, forwarded, other, on_text))

    def begin(self, title: str, text: str | None = None, *, item: str | None = None) -> list[ChatPage]:
        """Start a discussion and conclude the previous one. ``text`` is the text to discuss."""
        about, material = _short_title(_clean_input("title", title)), _clean_input("text", text or "") or None
        return self._safely(lambda: self._begin(about, material, item, None))

    def end(self) -> list[ChatPage]:
        """End the current conversation and report what was learned."""
        return self._safely(self._end)

    def leave(self) -> list[ChatPage]:
        """Store and report what was learned so far. A person who returns within half an hour continues."""
        return self._safely(self._leave)

    def choose(self, command: str) -> list[ChatPage]:
        """Run the command of a `Choice` that the person picked."""
        pressed = _clean_input("command", command)
        return self.say(pressed if pressed.lstrip().startswith("/") else f"/memory {pressed}")

    def rest(self) -> list[ChatPage]:
        """Conclude conversations that have been silent for half an hour. Hosts call this regularly."""
        return self._safely(lambda: self._rest(_MOST_CONCLUDED))

    def waiting(self) -> list[ChatPage]:
        """Return the question that waits for this person: a pending link."""
        found = self._commands.waiting()
        return [] if found is None else [found]

    def greeting(self) -> list[ChatPage]:
        """Return the greeting: the current conversation and the question that waits."""
        return self._safely(self._greeting)

    # messages

    def _safely(self, act: Callable[[], list[ChatPage]], *, at_once: bool = False) -> list[ChatPage]:
        """Run an action and turn errors into a page for the person.

        Actions run one at a time, except with ``at_once``, which does not wait for an answer in progress.
        """
        with nullcontext() if at_once else self._guard:
            try:
                return act()
            except InvalidInputError as error:
                return [chat_page(ChatLine(f"That did not work: {str(error).partition(': ')[2]}.", "bad"))]
            except StoreError as error:
                LOGGER.warning("a user's memory is not usable: %s", type(error).__name__)
                return [chat_page(ChatLine((type(error).__doc__ or "").strip(), "bad"))]
            except RecollectError as error:  # for the operator: a missing package, a wrong setting
                LOGGER.error("a conversation failed: %s: %s", type(error).__name__, error)
                return [chat_page(ChatLine("I cannot answer right now. Your message is saved.", "bad"))]

    def _said(
        self, text: str, name: str | None, forwarded: bool, quoted: str, on_text: Callable[[str], None] | None
    ) -> list[ChatPage]:
        command = None if forwarded else _COMMAND.fullmatch(text)
        if command is not None:
            return self._command(command[1].lower(), (command[2] or "").strip(), name)
        if not text.strip():
            return []
        memory = self.memory
        if self._chat is not None and self._speaker is not None:
            members_of(self._app).add(self._chat, self.identity, self._speaker)
        goes_on = self._here(memory)
        here = goes_on or self._new()
        pages: list[ChatPage] = []
        discussion = self._discussion_of(memory, here)
        heard = discussion.hear(text, speaker=self._speaker, own=not forwarded, quoted=quoted or None, once=name)
        self._unkept = None if heard.message is not None else replace(here, at=self._clock())
        if heard.answered is None and not forwarded:
            pages += self._reminded(memory, text, here.session)
        pages += self._answered(memory, heard, discussion.reply(heard, on_text=on_text))
        if goes_on is None:  # only now, so that the answer does not wait for it
            pages += self._rest()
        return pages + self._anything_waiting()

    def _answered(self, memory: Memory, heard: ReceivedMessage, answer: DiscussionReply) -> list[ChatPage]:
        lines = [ChatLine(line) for line in answer.text.strip().splitlines()]
        choices: list[Choice] = []
        before: list[ChatPage] = []
        if answer.degraded is not None:
            why = answer.degraded.partition(":")[0].replace("_", " ")
            lines.insert(0, ChatLine(f"The model did not answer ({why}); this is from memory.", "bad"))
        elif self._model is None and heard.answered is None and self._not_told_yet():
            before.append(chat_page(ChatLine(NO_MODEL, "aside")))
        if heard.captured is not None:
            if answer.reply is not None and heard.captured.kept.changed and not _is_confirmed(answer.text):
                lines.append(ChatLine(heard.captured.reply, "good"))
            lines += _change_lines(memory, heard.captured.kept.outcomes)
        elif heard.learned is not None:
            lines += _change_lines(memory, heard.learned.outcomes)
        if heard.run is not None:
            choices.append(Choice("Undo", f"undo {heard.run}"))
        for entry in self._kept_by_model(memory, answer):
            lines.append(entry[0])
            choices.append(entry[1])
        lines += [
            ChatLine(f"Done in the meantime: {fit_cells(result.text, _ROOM)}", "aside") for result in answer.finished
        ]
        return [*before, chat_page(*lines, choices=[choices[:_MOST_UNDO]])] if lines else before

    def _kept_by_model(self, memory: Memory, answer: DiscussionReply) -> Iterable[tuple[ChatLine, Choice]]:
        """Yield what the model stored with its tools, from the journal."""
        for result in [] if answer.reply is None else answer.reply.calls:
            entries = [one for one in memory.history(call=result.call) if one.after and one.after.kind != "scratch"]
            for entry in entries[-1:]:
                assert entry.after is not None
                verb = {"remember": "Remembered", "forget": "Forgot"}.get(entry.op, "Updated")
                number = memory.numbers([entry.record_id])[entry.record_id]
                line = ChatLine(f"{verb}: {fit_cells(record_text(entry.after), _ROOM)}", "good", number)
                yield line, replace(undo_choice(number, entry.after), label=f"Undo #{number}")

    def _not_told_yet(self) -> bool:
        """Return True once per person, on any channel, if they must be told that there is no model."""
        if self._told_no_model:
            return False
        self._told_no_model = True
        said = [one for one in self._own.read(kind="message", limit=_FIRST) if isinstance(one, Message)]
        return sum(one.role == "user" for one in said) < 2

    def _reminded(self, memory: Memory, text: str, session: str) -> list[ChatPage]:
        if not reminders_are_on(self._own):
            return []
        found = remind(memory.acting("talk"), text, session=session, clock=self._clock)
        return [] if found is None else [chat_page(ChatLine(fit_cells(found.text, 2 * _ROOM), "aside"))]

    def _anything_waiting(self) -> list[ChatPage]:
        """Return the question that waits, once per object."""
        pages = self.waiting()
        asked, self._asked_until = self._asked_until, None
        if not pages:
            return []
        pending = self._app.identities.pending(self.identity)
        self._asked_until = None if pending is None else pending.until
        return pages if asked is None or asked != self._asked_until else []

    # commands

    def _command(self, verb: str, rest: str, name: str | None) -> list[ChatPage]:
        if verb == "discuss":
            return self._discuss(rest, name)
        if verb == "end":
            return self._end()
        if verb in ("help", "start"):
            return [
                chat_page(
                    ChatLine("What you can do", "title"), *(ChatLine(f"{one}  {COMMANDS[one]}") for one in COMMANDS)
                )
            ]
        near = difflib.get_close_matches(f"/{verb}", COMMANDS, 1)
        hint = f"Did you mean {near[0]}?" if near else "/help lists the commands."
        return [chat_page(ChatLine(f"I don't know /{fit_cells(verb, WIDTH)}. {hint}", "bad"))]

    def _memory_command(self, text: str, name: str | None) -> list[ChatPage]:
        memory, words = self.memory, text.split()[1:]
        if memory.exists and not self._is_new_command(memory, words, name):
            return [chat_page(ChatLine("That is already done.", "aside"))]
        answer = self._commands.run(text, call=None if name is None else f"command:{name}")
        return [answer, *([] if words[:1] == ["link"] else self._anything_waiting())]

    def _is_new_command(self, memory: Memory, words: list[str], name: str | None) -> bool:
        """Report the command; return False if it has run before. Only a bare "undo" would do harm when repeated."""
        verb = words[0].lower() if words and words[0].isalpha() and len(words[0]) < _LONGEST_VERB else ""
        reported = memory.report(
            "command", id=None if name is None else f"command:{name}", value=f"/memory {verb}".strip()
        )
        return not isinstance(reported, Reported) or reported.fresh or [word.lower() for word in words] != ["undo"]

    def _discuss(self, rest: str, name: str | None) -> list[ChatPage]:
        if not rest:
            return [
                chat_page(
                    ChatLine("What about? Give a title, a link or a text: /discuss PostgreSQL 18 Released", "bad")
                )
            ]
        first, _, more = rest.partition("\n")
        link = next((word for word in rest.split() if re.match(r"https?://\S", word)), None)
        whole = rest if more.strip() or len(rest) > _LONGEST_TITLE else None
        title = first.strip() if first.strip() != link else (more.strip().partition("\n")[0] or first)
        return self._begin(_short_title(title), whole, None if link is None else link[: check.MAX_SHORT], name)

    # discussions

    def _begin(self, title: str, text: str | None, item: str | None, name: str | None) -> list[ChatPage]:
        memory, now = self.memory, self._clock()
        known = None if name is None else self._begun_before(memory, name)
        if known is None:
            pages = self._switched(memory) if self._here(memory) is not None else self._rest()
            here = _CurrentSession(self._named(now), now, title, text)
            reported = memory.report(
                "discussion",
                id=None if name is None else f"discussion:{name}",
                title=title,
                item=item,
                text=None if text is None else text[:_LONGEST_ARTICLE],
                session=here.session,
            )
            self._unkept, self._discussion = None if reported.done else here, None
            pages += self._reminded(memory, f"{title}\n{text or ''}"[:1000], here.session)
        else:
            pages = []
        return [chat_page(ChatLine(f"📖 Discussing: {fit_cells(title, _ROOM)}", "title")), *pages]

    def _begun_before(self, memory: Memory, name: str) -> str | None:
        found = memory.interactions(kinds=("discussion",), newest_first=True, limit=_PAGE)
        return next((one.session for one in found if one.id == f"discussion:{name}"), None)

    def _switched(self, memory: Memory) -> list[ChatPage]:
        """Conclude the earlier conversation because the person turned to another."""
        here = self._here(memory)
        if here is None:
            return []
        learned = self._learned(memory, here.session)
        memory.report("discussion", value=_ENDED, session=here.session)
        return [
            chat_page(ChatLine("From what you said before:", "aside"), *one.lines, choices=one.choices)
            for one in learned
        ]

    def _end(self) -> list[ChatPage]:
        memory = self.memory
        here = self._here(memory)
        if here is None:
            rested = self._rest()
            return rested or [chat_page(ChatLine("There is no discussion here. /discuss starts one.", "aside"))]
        learned = self._learned(memory, here.session)
        memory.report("discussion", value=_ENDED, session=here.session)
        self._unkept = self._discussion = None
        about = f"Ended: {fit_cells(here.title, _ROOM)}" if here.title else "Ended."
        if memory.mode != "on":
            return [chat_page(ChatLine(about, "title"), ChatLine("Memory is off, so nothing was learned.", "aside"))]
        if not learned:
            return [chat_page(ChatLine(about, "title"), ChatLine("Nothing new to remember.", "aside"))]
        first = learned[0]
        return [chat_page(ChatLine(about, "title"), ChatLine("What I learned:"), *first.lines, choices=first.choices)]

    def _leave(self) -> list[ChatPage]:
        memory = self.memory
        here = self._here(memory)
        if here is None:
            return self._rest()
        learned = self._learned(memory, here.session)
        return [chat_page(ChatLine("What I learned:"), *one.lines, choices=one.choices) for one in learned]

    def _rest(self, most: int = 1) -> list[ChatPage]:
        """Conclude silent conversations, the latest first."""
        memory = self.memory
        if not memory.exists or memory.mode != "on":
            return []
        silent = [one for one in idle_sessions(memory, clock=self._clock) if _is_of(one, self.place)]
        learned = [one for session in silent[:most] for one in self._learned(memory, session)]
        lead = ChatLine("I learned this from our last conversation:", "aside")
        return [chat_page(lead, *one.lines, choices=one.choices) for one in learned]

    def _learned(self, memory: Memory, session: str) -> list[ChatPage]:
        """Conclude a session and return what was learned, if anything, as a page."""
        if self._extractor is None:
            self._extractor = self._app.extractor(required=False)
        company = [check.check_line("company", name) for name in self._company()] if self._speaker is not None else []
        done = conclude(memory, session, company=company, extractor=self._extractor, clock=self._clock)
        if done is None or done.run is None or not done.kept.changed:
            return []
        signs = _change_lines(memory, done.kept.outcomes)
        more = len(signs) - _MOST_LEARNED
        if more > 0:
            signs = [*signs[:_MOST_LEARNED], ChatLine(f"and {more} more", "aside")]
        return [chat_page(*signs, choices=[[Choice("Undo", f"undo {done.run.id}")]])]

    def _greeting(self) -> list[ChatPage]:
        memory = self.memory
        mode = memory.mode
        state = []
        if mode == "paused" and not memory.config.enabled:
            state.append(ChatLine("Memory is turned off for everyone: I use what I know and store nothing.", "aside"))
        elif mode == "paused":
            state.append(ChatLine("Memory is paused: I use what I know and store nothing. /memory resume", "aside"))
        elif mode == "incognito":
            state.append(ChatLine("Incognito: I use no memory and store nothing. /memory resume", "aside"))
        here = self._here(memory)
        pages = self._rest() if here is None else []
        if here is not None:
            about = f" “{fit_cells(here.title, _ROOM)}”" if here.title else " where you left off"
            state.append(ChatLine(f"Continuing{about}.", "aside"))
        return [*([chat_page(*state)] if state else []), *pages, *self._anything_waiting()]

    # the current conversation

    def _here(self, memory: Memory) -> _CurrentSession | None:
        """Return the current conversation, unless it has been silent for half an hour."""
        now = self._clock()
        since = now - IDLE
        events = [
            one
            for one in memory.interactions(kinds=("discussion",), since=since, newest_first=True)
            if _is_of(one.session, self.place)
        ]
        ended = {one.session for one in events if one.value == _ENDED}
        begun = next((one for one in events if one.session not in ended and one.at > since), None)
        said = self._last_said(memory, since)
        found = None
        if begun is not None and (said is None or said[0] <= begun.at or said[1] in ended):
            found = self._known(memory, begun.at, begun.session or "")
        elif said is not None and said[1] not in ended:
            found = self._known(memory, *said)
        kept = self._unkept
        if kept is None or kept.at <= since or (found is not None and kept.at <= found.at):
            return found
        # once memory is on again, the stored conversation continues, unless a new discussion began in between
        return found if found is not None and kept.title is None and memory.mode == "on" else kept

    def _last_said(self, memory: Memory, since: datetime) -> tuple[datetime, str] | None:
        for one in memory.read(kind="message", since=since, newest_first=True):
            if one.valid_from > since and _is_of(one.session, self.place):
                return one.valid_from, one.session or ""
        return None

    def _known(self, memory: Memory, at: datetime, session: str) -> _CurrentSession:
        began = memory.interactions(kinds=("discussion",), session=session, limit=1)
        title, text = (began[0].title, began[0].text) if began else (None, None)
        return _CurrentSession(session, at, title, text)

    def _new(self) -> _CurrentSession:
        now = self._clock()
        return _CurrentSession(self._named(now), now)

    def _session_before(self, memory: Memory, session: str) -> str | None:
        """Return the previous session in this place: the chat continues in a new session."""
        own = [one.id for one in memory.sessions(limit=_PAGE) if _is_of(one.id, self.place)]
        if session in own:
            own = own[own.index(session) + 1 :]
        return own[0] if own else None

    def _named(self, now: datetime) -> str:
        return f"{self.place}@{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"

    def _discussion_of(self, memory: Memory, here: _CurrentSession) -> Discussion:
        user = memory.user_id
        others = tuple(one.memory.user_id for one in self._participants() if one.memory.user_id != user)
        kept = self._discussion
        if kept is not None and (kept.session, kept.memory.user_id, self._others) == (here.session, user, others):
            return kept
        tools = self._app.tools(user, *self._suites, session=here.session, chat=self._chat, others=others)
        tools = tools.known_as(str(self.identity))
        earlier = None if here.title is not None else self._session_before(memory, here.session)
        self._others = others
        self._discussion = Discussion(
            tools,
            self._model,
            persona=self._persona,
            title=here.title,
            text=here.text,
            earlier=earlier,
            private=self._speaker is None,
            company=self._participants,
            place=self.place,
        )
        return self._discussion

    def _participants(self) -> list[Participant]:
        """Return the members of the group; nobody in a private chat. Only a model needs them."""
        if self._chat is None or self._model is None:
            return []
        return members_of(self._app).participants(self._chat)


def _is_of(session: str | None, place: str) -> bool:
    return (session or "").rpartition("@")[0] == place


def _change_lines(memory: Memory, outcomes: Iterable[Outcome]) -> list[ChatLine]:
    done: list[tuple[str, Record]] = []
    for outcome in outcomes:
        match outcome:
            case Written(record=DailyEntry(day=day) as record):
                done.append(("Noted for today" if day == record.created_at.date() else f"Noted for {day}", record))
            case Written(record=record):
                done.append(("Remembered", record))
            case Updated(record=record):
                done.append(("Updated", record))
            case Forgotten(record=record):
                done.append(("Forgot", record))
            case Demoted(record=record):
                done.append(("Noted, not sure", record))
    numbers = memory.numbers([record.id for _, record in done])
    return [
        ChatLine(f"{verb}: {fit_cells(record_text(record), _ROOM)}", "good", numbers.get(record.id))
        for verb, record in done
    ]


def _is_confirmed(text: str) -> bool:
    """Return True if a model's answer says itself that something is remembered."""
    return CONFIRMED.rpartition(" ")[0] in text.replace("’", "'")


def _clean_input(field: str, text: object) -> str:
    """Return the typed text without pasted control characters and lone surrogates."""
    if not isinstance(text, str):
        raise InvalidInputError(field, f"must be text, not {type(text).__name__}")
    return strip_unstorable(text)


def _short_title(title: str) -> str:
    line = " ".join(title.split())
    if not line:
        raise InvalidInputError("title", "must not be empty: say what the discussion is about")
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1].rstrip() + "…"
