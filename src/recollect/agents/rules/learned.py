"""The nouns of learning by rules.

Learned
    One thing a message says about its author, ready for ``memory.remember``, ``update`` or ``forget``. It has no
    identity: the same thing learned twice is equal, and the policy of the memory makes one fact of it.

Key
    The name a thing is stored under. Most keys hold one value at a time ("location"), so a new value replaces the old
    one. Of others a person has several ("likes"): these are ``several``, each is a sentence of its own, and the host
    stores it without a key (`Learned.fact_key`); the policy recognises repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from recollect.policy.code import looks_like_code
from recollect.policy.secrets import find_secrets
from recollect.records import CATEGORY_OF_TYPE

__all__ = [
    "ANYTHING",
    "CLEAR",
    "SOFT",
    "TOLD",
    "Explicit",
    "Learned",
    "ReadingEvent",
    "Sort",
    "passes_policy",
    "sort_of",
]

Action = Literal["add", "update", "remove"]
LearnedKind = Literal["fact", "insight"]
EventKind = Literal["reaction", "save", "discussion", "read"]

TOLD: Final = 0.95
"""The confidence of what the person asked to remember."""
CLEAR: Final = 0.9
"""The confidence of what the person plainly says about themselves."""
SOFT: Final = 0.6
"""The confidence of guesses: below the usual threshold, so they go to the daily note."""

MAX_CONTENT: Final = 300
ANYTHING: Final = "*"
"""In ``ends``: whatever is known under the key, as "I sold the car" does not say which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """One thing learned from a message. ``previous`` is the value that no longer holds, if the person named it.

    ``ends`` are lines that may be in the memory and cannot be true beside it: "Loves jazz" once jazz is hated. Lines
    with a key include it, "location: Kyiv". A line `ANYTHING` is whatever is under the key.
    """

    content: str
    key: str | None
    category: str
    type: str
    confidence: float
    excerpt: str
    rule: str
    action: Action = "add"
    kind: LearnedKind = "fact"
    durable: bool = True
    explicit: bool = False
    several: bool = False
    previous: str | None = None
    ends: tuple[str, ...] = ()

    @property
    def fact_key(self) -> str | None:
        """The key to store it under: None if a person may have several of these."""
        return None if self.several else self.key

    def as_requested(self) -> Learned:
        """Return the same, as something the person asked to remember."""
        return replace(self, confidence=max(self.confidence, TOLD), explicit=True, durable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explicit:
    """A request to remember something.

    ``refers_back`` says that it is in the message before ("remember this!"); then ``content`` is empty. A ``reminder``
    asks to do something rather than to know it, so it is not ``durable``.
    """

    content: str
    excerpt: str
    trigger: str
    language: str
    refers_back: bool = False
    reminder: bool = False

    @property
    def durable(self) -> bool:
        return not self.reminder


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingEvent:
    """One thing a person did with something to read; ``positive`` is False for a thumbs down."""

    kind: EventKind
    title: str
    topics: tuple[str, ...] = ()
    positive: bool = True


class Sort(NamedTuple):
    """The properties of a key's values."""

    type: str
    category: str
    several: bool


def _sorts(type: str, single: str = "", several: str = "", category: str = "") -> dict[str, Sort]:
    kept = category or CATEGORY_OF_TYPE[type]
    return {key: Sort(type, kept, many) for keys, many in ((single, False), (several, True)) for key in keys.split()}


_SORTS: Final = (
    _sorts("skill", "role company industry work_mode", "tech_stack skill current_project education work")
    | _sorts(
        "personal",
        "name pronouns age birthday location origin nationality marital_status car",
        "language diet allergy health hobby habit learning goal plan background",
    )
    | _sorts("personal", "timezone", category="key_fact")
    | _sorts("relationship", "relation", "family pet")
    | _sorts("preference", "favorite units", "prefers likes interested_in dislikes communication_style")
    | _sorts("opinion", "opinion")
    | _sorts("trait", "", "trait")
    | _sorts("skill", "", "decision")
)


def sort_of(name: str) -> Sort:
    """Return the properties of a name used in the language tables, such as ``role`` or ``opinion``."""
    return _SORTS[name]


def passes_policy(learned: Learned) -> bool:
    """Return True if the policy of the memory would accept it: no secrets, no code, one short line."""
    shown = (learned.content, learned.excerpt, learned.previous or "")
    return (
        0 < len(learned.content) <= MAX_CONTENT
        and any(character.isalnum() for character in learned.content)
        and not any(find_secrets(each) for each in shown)
        and looks_like_code(learned.content) is None
    )
