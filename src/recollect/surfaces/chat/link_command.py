"""The command that links two channels to one memory, by a code shown on one and typed on the other."""

from __future__ import annotations

from datetime import datetime

from recollect.errors import ConfigError, InvalidInputError, LinkError
from recollect.identity.identities import Identity, Joined, Pending
from recollect.surfaces.chat.page import Choice, Line, Page, page
from recollect.surfaces.chat.show_commands import usage
from recollect.surfaces.chat.speaker import Asker, counted, day_of, mark
from recollect.surfaces.chat.text_fit import fitted

_NAMES = {"telegram": "Telegram", "terminal": "the terminal", "web": "the web"}
_PROBLEMS = {
    "wrong": "That code is wrong. Check it, or ask for a new one on the other channel.",
    "expired": "That code has expired. Ask for a new one on the other channel: /memory link",
    "used": "That code was used or withdrawn. Ask for a new one on the other channel: /memory link",
    "own": "That code is from this channel. Type it on the other one.",
    "joined": "These two already share one memory.",
    "paused": "Memory is turned off here, so nothing can be linked.",
    "final": "This link can no longer be undone: it is too old, or something was erased since.",
}


def link(asker: Asker, argument: str) -> Page:
    """Show a code, accept one, or answer a pending link."""
    word, _, rest = argument.partition(" ")
    try:
        match word.casefold():
            case "" | "new":
                return (waiting(asker) if not word else None) or _code(asker)
            case "yes":
                return _confirmed(asker)
            case "no":
                return _declined(asker)
            case "undo":
                return _undone(asker, rest)
            case _:
                return _question(asker.app.identities.enter_code(asker.identity, argument[:100]), asker.now)
    except LinkError as error:
        return _problem(asker, error)
    except InvalidInputError:
        return usage("That doesn't look like a code. Codes look like K7QM2-XWDPA.", "link K7QM2-XWDPA")
    except ConfigError:
        return page(Line("Channels cannot be linked here.", "bad"))


def waiting(asker: Asker) -> Page | None:
    """Return the question about a pending link on this channel, if there is one."""
    pending = asker.app.identities.pending(asker.identity)
    return None if pending is None or pending.confirmed else _question(pending, asker.now)


def _code(asker: Asker) -> Page:
    others = _others(asker)
    code = asker.app.identities.start_link(asker.identity)
    linked = [Line(f"Linked now: {', '.join(_name(other.channel) for other in others)}.", "aside")] if others else []
    return page(
        Line("One memory on two channels", "title"),
        *linked,
        "Send me this on the other channel:",
        Line(f"/memory link {code.text}", "item"),
        f"Then say yes on both. The code works once, {_minutes(asker.now, code.until)}.",
        Line("Never share it with anyone.", "aside"),
        choices=[[Choice("Cancel", "link no"), *([Choice("Unlink", "link undo")] if others else [])]],
    )


def _question(pending: Pending, now: datetime) -> Page:
    here, there = sum(pending.own_counts.values()), sum(pending.other_counts.values())
    return page(
        Line(f"Link this channel with {_name(pending.other_channel)}?", "title"),
        Line(f"Here: {_things(here)}", "item"),
        Line(f"There: {_things(there)}", "item"),
        "Both become one memory. Say yes only if both are you.",
        Line(f"Both sides must say yes, {_minutes(now, pending.until)}.", "aside"),
        choices=[[Choice("Yes, link them", "link yes"), Choice("No", "link no")]],
    )


def _confirmed(asker: Asker) -> Page:
    done = asker.app.identities.confirm(asker.identity)
    if isinstance(done, Joined):
        other = done.with_identity if done.identity == asker.identity else done.identity
        until = [] if done.undo_until is None else [f"It can be undone until {day_of(done.undo_until.date())}."]
        return page(
            Line(f"Done: this channel and {_name(other.channel)} share one memory now.", "good"),
            *(Line(text, "aside") for text in until),
            choices=[[Choice("See it", "show"), *([Choice("Unlink", "link undo")] if until else [])]],
        )
    return page(
        Line("You said yes.", "good"),
        f"Now say yes on {_name(done.other_channel)} too: /memory link yes",
        choices=[[Choice("Cancel", "link no")]],
    )


def _declined(asker: Asker) -> Page:
    if asker.app.identities.decline(asker.identity):
        return page(Line("OK, nothing was linked.", "good"))
    return page("No link was pending, and nothing was linked.")


def _undone(asker: Asker, which: str) -> Page:
    """Ask which link to undo, or undo the given one."""
    others = _others(asker)
    if not others:
        raise LinkError("nothing", "")
    for other in others:
        if mark(other) == which:
            back = asker.app.identities.unlink(asker.identity if _came(asker) else other)
            kept = [Line(f"{counted(back.kept)} changed since then and stayed in place.", "aside")] if back.kept else []
            return page(Line("Unlinked. Each channel has its own memory again, as it was before.", "good"), *kept)
    choices = [Choice(f"Unlink {fitted(_name(other.channel), 20)}", f"link undo {mark(other)}") for other in others[:4]]
    return page(
        Line("Undo a link?", "title"),
        "Each channel gets its own memory back. What was added since stays on one of them.",
        choices=[*([choice] for choice in choices), [Choice("Keep", "keep")]],
    )


def _others(asker: Asker) -> list[Identity]:
    """Return the identities that this channel can be unlinked from."""
    identities = asker.app.identities
    home, joined = identities.resolve(asker.identity), _came(asker)
    known = [one for one in identities.all() if one.user_id == home and one.identity != asker.identity]
    if joined:
        first = [one.identity for one in known if not one.joined]
        return (first or [one.identity for one in known] or [_home(home)])[:1]
    return [one.identity for one in known if one.joined]


def _came(asker: Asker) -> bool:
    """Return True if this channel got its memory through a link."""
    identities = asker.app.identities
    return any(one.identity == asker.identity and one.joined for one in identities.all())


def _home(user_id: str) -> Identity:
    channel, colon, name = user_id.partition(":")
    return Identity(channel, name) if colon else Identity("the other channel", user_id)


def _problem(asker: Asker, error: LinkError) -> Page:
    if error.kind == "limited" and error.retry_at is not None:
        minutes = max(1, -(-int((error.retry_at - asker.now).total_seconds()) // 60))
        return page(Line(f"Too many wrong codes. Try again in {counted(minutes, 'minute', 'minutes')}.", "bad"))
    if error.kind == "nothing":
        text = "No link is pending, and nothing is linked here."
        return page(Line(text, "bad"), choices=[[Choice("Show a code", "link new")]])
    if error.kind == "used" and (question := waiting(asker)):
        return question  # this person used the code
    return page(Line(_PROBLEMS.get(error.kind, "That cannot be linked."), "bad"))


def _name(channel: str) -> str:
    return _NAMES.get(channel, fitted(channel, 20))


def _things(number: int) -> str:
    return counted(number, "thing remembered", "things remembered") if number else "nothing remembered yet"


def _minutes(now: datetime, until: datetime) -> str:
    return f"within {counted(max(1, round((until - now).total_seconds() / 60)), 'minute', 'minutes')}"
