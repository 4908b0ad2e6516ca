"""The nouns of identities.

Identity
    A person as one channel knows them: the channel and the name there, ("telegram", "12345"). It belongs to a user of
    its own, "telegram:12345", until it is bound to another or joined with one.

Code
    Shown on one channel and entered on the other, once and within minutes.

Pending
    A link that is not confirmed yet, as one of the two sides sees it: the other's channel and the number of its
    memories, but nothing of their content.

Joined, Unlinked
    The results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from recollect.errors import InvalidInputError
from recollect.userid import MAX_LENGTH, check_user_id, text_of_number

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_MOST_CHANNEL = 32


class Identity(NamedTuple):
    channel: str
    name: str

    def __str__(self) -> str:
        return f"{self.channel}:{self.name}"


def check_identity(value: object) -> Identity:
    """Return the identity, or raise `InvalidInputError`. A channel has no colon, so that user ids stay unique."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise InvalidInputError("identity", 'must be a channel and a name, such as ("telegram", "12345")')
    channel, name = value
    if not isinstance(channel, str) or not 1 <= len(channel) <= _MOST_CHANNEL or not _LETTERS.issuperset(channel):
        raise InvalidInputError(
            "channel", f"must be 1 to {_MOST_CHANNEL} lower-case letters, digits, - or _, such as telegram"
        )
    if isinstance(name, int) and not isinstance(name, bool):
        name = text_of_number(name)
    most = MAX_LENGTH - len(channel) - 1
    if not isinstance(name, str) or not 1 <= len(name) <= most:
        raise InvalidInputError("name", f"must be text of 1 to {most} characters, or an integer")
    if name != name.strip():
        raise InvalidInputError("name", "must not begin or end with a space")
    try:
        name.encode("utf-8")
        check_user_id(f"{channel}:{name}")
    except (InvalidInputError, UnicodeEncodeError):
        raise InvalidInputError(
            "name", "must be printable characters, without control characters or line breaks"
        ) from None
    return Identity(channel, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A one-time code. It is shown only once: only its hash is stored."""

    text: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A link that waits for a confirmation, as one side sees it."""

    identity: Identity
    showed_code: bool
    """True for the side that showed the code; its user id stays, and the other's memory is merged into it."""
    other_channel: str
    own_counts: dict[str, int]
    other_counts: dict[str, int]
    """The number of records of each kind."""
    confirmed: bool
    other_confirmed: bool
    until: datetime

    @property
    def message(self) -> str:
        """The question or information for the person."""
        own, other = _describe_counts(self.own_counts), _describe_counts(self.other_counts)
        told = f"Join this channel ({own}) with your {self.other_channel} ({other}) into one memory."
        if self.confirmed and self.other_confirmed:
            return f"{told} Both sides have confirmed; it is being completed."
        if self.confirmed:
            return f"{told} You have confirmed; now confirm on {self.other_channel} too."
        if self.showed_code:
            return f"{told} Continue only if you entered the code there yourself. Both sides have to confirm."
        return f"{told} Continue only if you requested the code there yourself. Both sides have to confirm."


def _describe_counts(counts: dict[str, int]) -> str:
    number = sum(counts.values())
    return "nothing remembered yet" if not number else f"{number:,} {'memory' if number == 1 else 'memories'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Two identities share one memory now."""

    identity: Identity
    """The one that entered the code; it now belongs to the user below."""
    with_identity: Identity
    user_id: str
    run: str
    counts: dict[str, int]
    """The numbers of records written, updated, kept as superseded, already known, refused, or erased before."""
    undo_until: datetime | None
    """Until when `unlink` can undo it; None if it cannot."""

    @property
    def message(self) -> str:
        """The information for the person."""
        told = ", ".join(f"{number:,} {what}" for what, number in self.counts.items() if number)
        return f"Joined: {self.identity} and {self.with_identity} have one memory now ({told or 'nothing to move'})."


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlinked:
    """The link was undone: the user exists again, with the memory as it was."""

    user_id: str
    was_user_id: str
    """The user it had been joined with."""
    taken_back: int
    kept: int
    """Changes that stay with the other user, because the record was changed again since."""

    @property
    def message(self) -> str:
        """The information for the person."""
        stays = f" {self.kept:,} changed since and stay there." if self.kept else ""
        return f"{self.user_id} has its own memory again, as it was before.{stays}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundIdentity:
    """An identity that was bound or joined, and its user."""

    identity: Identity
    user_id: str
    joined: bool
    """True if it belongs to this user by a link."""
    undo_until: datetime | None = None
