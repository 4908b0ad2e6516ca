"""The command that links two channels to one memory, by a code shown on one and typed on the other."""

from __future__ import annotations

from datetime import datetime

from recollect.errors import ConfigError, InvalidInputError, LinkError
from recollect.identity.identities import Identity, Joined, Pending
from recollect.surfaces.chat.page import ChatLine, ChatPage, Choice, chat_page
from recollect.surfaces.chat.show_commands import usage_page
from recollect.surfaces.chat.speaker import Asker, format_day, pluralize, short_digest
from recollect.surfaces.chat.text_fit import fit_cells

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


def chat_link(asker: Asker, argument: str) -> ChatPage:
    """Show a code, accept one, or answer a pending link."""
    word, _, rest = argument.partition(" ")
    try:
        match word.casefold():
            case "" | "new":
                return (pending_question(asker) if not word else None) or _code_page(asker)
            case "yes":
                return _confirm_page(asker)
            case "no":
                return _decline_page(asker)
            case "undo":
                return _unlink_page(asker, rest)
            case _:
                return _question(asker.app.identities.enter_code(asker.identity, argument[:100]), asker.now)
    except LinkError as error:
        return _link_problem_page(asker, error)
    except InvalidInputError:
        return usage_page("That doesn't look like a code. Codes look like K7QM2-XWDPA.", "link K7QM2-XWDPA")
    except ConfigError:
        return chat_page(ChatLine("Channels cannot be linked here.", "bad"))


def pending_question(asker: Asker) -> ChatPage | None:
    """Return the question about a pending link on this channel, if there is one."""
    pending = asker.app.identities.pending(asker.identity)
    return None if pending is None or pending.confirmed else _question(pending, asker.now)


def _code_page(asker: Asker) -> ChatPage:
    others = _linked_identities(asker)
    code = asker.app.identities.start_link(asker.identity)
    linked = (
        [ChatLine(f"Linked now: {', '.join(_channel_name(other.channel) for other in others)}.", "aside")]
        if others
        else []
    )
    return chat_page(
        ChatLine("One memory on two channels", "title"),
        *linked,
        "Send me this on the other channel:",
        ChatLine(f"/memory link {code.text}", "item"),
        f"Then say yes on both. The code works once, {_minutes(asker.now, code.until)}.",
        ChatLine("Never share it with anyone.", "aside"),
        choices=[[Choice("Cancel", "link no"), *([Choice("Unlink", "link undo")] if others else [])]],
    )


def _question(pending: Pending, now: datetime) -> ChatPage:
    here, there = sum(pending.own_counts.values()), sum(pending.other_counts.values())
    return chat_page(
        ChatLine(f"Link this channel with {_channel_name(pending.other_channel)}?", "title"),
        ChatLine(f"Here: {_count_remembered(here)}", "item"),
        ChatLine(f"There: {_count_remembered(there)}", "item"),
        "Both become one memory. Say yes only if both are you.",
        ChatLine(f"Both sides must say yes, {_minutes(now, pending.until)}.", "aside"),
        choices=[[Choice("Yes, link them", "link yes"), Choice("No", "link no")]],
    )


def _confirm_page(asker: Asker) -> ChatPage:
    done = asker.app.identities.confirm(asker.identity)
    if isinstance(done, Joined):
        other = done.with_identity if done.identity == asker.identity else done.identity
        until = [] if done.undo_until is None else [f"It can be undone until {format_day(done.undo_until.date())}."]
        return chat_page(
            ChatLine(f"Done: this channel and {_channel_name(other.channel)} share one memory now.", "good"),
            *(ChatLine(text, "aside") for text in until),
            choices=[[Choice("See it", "show"), *([Choice("Unlink", "link undo")] if until else [])]],
        )
    return chat_page(
        ChatLine("You said yes.", "good"),
        f"Now say yes on {_channel_name(done.other_channel)} too: /memory link yes",
        choices=[[Choice("Cancel", "link no")]],
    )


def _decline_page(asker: Asker) -> ChatPage:
    if asker.app.identities.decline(asker.identity):
        return chat_page(ChatLine("OK, nothing was linked.", "good"))
    return chat_page("No link was pending, and nothing was linked.")


def _unlink_page(asker: Asker, which: str) -> ChatPage:
    """Ask which link to undo, or undo the given one."""
    others = _linked_identities(asker)
    if not others:
        raise LinkError("nothing", "")
    for other in others:
        if short_digest(other) == which:
            back = asker.app.identities.unlink(asker.identity if _is_linked(asker) else other)
            kept = (
                [ChatLine(f"{pluralize(back.kept)} changed since then and stayed in place.", "aside")]
                if back.kept
                else []
            )
            return chat_page(
                ChatLine("Unlinked. Each channel has its own memory again, as it was before.", "good"), *kept
            )
    choices = [
        Choice(f"Unlink {fit_cells(_channel_name(other.channel), 20)}", f"link undo {short_digest(other)}")
        for other in others[:4]
    ]
    return chat_page(
        ChatLine("Undo a link?", "title"),
        "Each channel gets its own memory back. What was added since stays on one of them.",
        choices=[*([choice] for choice in choices), [Choice("Keep", "keep")]],
    )


def _linked_identities(asker: Asker) -> list[Identity]:
    """Return the identities that this channel can be unlinked from."""
    identities = asker.app.identities
    home, joined = identities.resolve(asker.identity), _is_linked(asker)
    known = [one for one in identities.all() if one.user_id == home and one.identity != asker.identity]
    if joined:
        first = [one.identity for one in known if not one.joined]
        return (first or [one.identity for one in known] or [_home_identity(home)])[:1]
    return [one.identity for one in known if one.joined]


def _is_linked(asker: Asker) -> bool:
    """Return True if this channel got its memory through a link."""
    identities = asker.app.identities
    return any(one.identity == asker.identity and one.joined for one in identities.all())


def _home_identity(user_id: str) -> Identity:
    channel, colon, name = user_id.partition(":")
    return Identity(channel, name) if colon else Identity("the other channel", user_id)


def _link_problem_page(asker: Asker, error: LinkError) -> ChatPage:
    if error.kind == "limited" and error.retry_at is not None:
        minutes = max(1, -(-int((error.retry_at - asker.now).total_seconds()) // 60))
        return chat_page(
            ChatLine(f"Too many wrong codes. Try again in {pluralize(minutes, 'minute', 'minutes')}.", "bad")
        )
    if error.kind == "nothing":
        text = "No link is pending, and nothing is linked here."
        return chat_page(ChatLine(text, "bad"), choices=[[Choice("Show a code", "link new")]])
    if error.kind == "used" and (question := pending_question(asker)):
        return question  # this person used the code
    return chat_page(ChatLine(_PROBLEMS.get(error.kind, "That cannot be linked."), "bad"))


def _channel_name(channel: str) -> str:
    return _NAMES.get(channel, fit_cells(channel, 20))


def _count_remembered(number: int) -> str:
    return pluralize(number, "thing remembered", "things remembered") if number else "nothing remembered yet"


def _minutes(now: datetime, until: datetime) -> str:
    return f"within {pluralize(max(1, round((until - now).total_seconds() / 60)), 'minute', 'minutes')}"
