"""What a memory must hold after each step, as far as that was promised.

Every text contains one made-up word, a token, that occurs nowhere else. A state is the set of (record, token) that is
active. Usually there is exactly one possible state; after a kill in the middle of a call there are two, and after a save that
could have come from several versions of the file there may be more. Looking decides between them, for good.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

State = frozenset[tuple[int, str]]
"""Pairs of a record's number and its token."""

TOKEN = re.compile(r"\b(?:[bdfgklmnprtvz][aeiou]){5}x\b")


def new_token(random: Random) -> str:
    """A word that nobody ever used and that no rule takes for another."""
    return "".join(random.choice("bdfgklmnprtvz") + random.choice("aeiou") for _ in range(5)) + "x"


def tokens_in(text: str) -> list[str]:
    return TOKEN.findall(text)


@dataclass
class Item:
    """What is known of a record besides its present text."""

    kind: str
    key: str | None = None
    id: str | None = None
    undoable: tuple[int, str | None] | None = None
    """The journal number of its last change, and the token that undoing brings back (None: the record goes)."""


@dataclass(frozen=True)
class Save:
    """A file that a person saved and that nobody has looked at yet."""

    lines: State
    base: State


@dataclass
class Model:
    """The possible states, the versions that MEMORY.md had, and what is pending."""

    items: list[Item] = field(default_factory=list)
    states: set[State] = field(default_factory=lambda: {frozenset()})
    versions: list[State] = field(default_factory=list)
    owner: dict[str, int] = field(default_factory=dict)
    """The record that a token belongs to."""
    split: dict[str, int] = field(default_factory=dict)
    """The record that a token has instead, if the person's new wording was taken for a new line."""
    pending: Save | None = None
    unfinished: set[State] = field(default_factory=set)
    """What a killed call may still turn out to have done: SQLite finds its whole commit in the log, but only when no
    process is left that saw it undone, and only if nobody wrote since."""
    erased: set[str] = field(default_factory=set)
    prose: set[str] = field(default_factory=set)

    def add_item(self, item: Item, token: str) -> int:
        self.items.append(item)
        self.owner[token] = len(self.items) - 1
        return len(self.items) - 1

    # -- what is certain

    def certain(self) -> State:
        """What is active in every possible state."""
        return frozenset.intersection(*self.states)

    def file_lines(self, state: State) -> State:
        return frozenset((number, token) for number, token in state if self.items[number].kind == "fact")

    # -- what happens

    def apply(self, effect: Callable[[State], State], *, certain: bool = True) -> None:
        """A change that was acknowledged, or, if it is not certain, one that may or may not have happened."""
        after = {effect(state) for state in self.states}
        for state in after:
            self.note_version(self.file_lines(state))
        self.unfinished = set() if certain else self.unfinished | after
        self.states = after if certain else self.states | after

    def recover(self) -> None:
        """A process opens the memory, and no other has it open: SQLite reads its log anew."""
        self.states |= self.unfinished

    def note_version(self, lines: State) -> None:
        if lines not in self.versions:
            self.versions.append(lines)

    def save(self, lines: State, base: State) -> None:
        """A person saves the file. A save that nobody saw is simply gone with the next: the person wrote over it."""
        self.pending = Save(lines, base)

    def settle(self) -> None:
        """Somebody looks at the file: what was saved is merged with what happened since the version it came from."""
        if self.pending is None:
            return
        save, self.pending, self.unfinished = self.pending, None, set()
        for state in self.states:
            self.note_version(self.file_lines(state))
        saved = self._owned(save.lines)
        bases = self._possible_bases(Save(saved, self._owned(save.base)))
        self.states = {self._merge(state, base, saved) for state in self.states for base in bases}
        self.note_version(saved)
        for state in self.states:
            self.note_version(self.file_lines(state))

    def _owned(self, lines: State) -> State:
        """These lines, with the records that their tokens belong to by now."""
        return frozenset((self.owner.get(token, number), token) for number, token in lines)

    def _possible_bases(self, save: Save) -> list[State]:
        """The version the person started from, and those that the saved text is at least as close to.

        From the text alone nobody can tell these apart: a fact that was added last and deleted by the person leaves
        exactly the text from before it was added.
        """
        distance = len(save.base ^ save.lines)
        versions = [self._owned(version) for version in self.versions]
        return [save.base, *(version for version in versions if len(version ^ save.lines) <= distance)]

    def _merge(self, state: State, base: State, saved: State) -> State:
        """Three ways: what the person left as it was stays as agents made it, and the person wins where they did something."""
        now, before, after = dict(state), dict(base), dict(saved)
        for number in before.keys() | after.keys():
            if before.get(number) == after.get(number):
                continue
            if number in after and self._is_new_line(number, now, before, after):
                now[self._split(number, after[number])] = after[number]
            elif number in after:
                now[number] = after[number]
            else:
                now.pop(number, None)
        return frozenset(now.items())

    def _is_new_line(self, number: int, now: dict[int, str], before: dict[int, str], after: dict[int, str]) -> bool:
        """Whether a reworded line looks like a new one: the version that the text seems to come from did not have it.

        Then the old wording stays beside the new one. A line with a key is recognised by that.
        """
        is_other = number in now and now[number] != after[number]
        return is_other and number not in before and self.items[number].key is None

    def _split(self, number: int, token: str) -> int:
        if token not in self.split:
            self.items.append(Item(self.items[number].kind))
            self.split[token] = len(self.items) - 1
        return self.split[token]

    def _decide(self) -> None:
        """After a look: a token that is a record of its own in every possible state belongs to that from now on."""
        for token, number in list(self.split.items()):
            found = sum((number, token) in state for state in self.states)
            if found == len(self.states):
                self.owner[token] = number
            if found in (0, len(self.states)):
                del self.split[token]

    # -- what is seen

    def observe(self, records: Iterable[tuple[str, str]], kinds: frozenset[str]) -> str | None:
        """Compare what a process sees with what it must see. Return what is wrong, or None."""
        seen: Counter[tuple[str, str]] = Counter()
        for kind, text in records:
            found = tokens_in(text)
            if len(found) != 1:
                return f"a {kind} that nobody wrote: {text!r}"
            seen[kind, found[0]] += 1
        twice = [token for (_, token), count in seen.items() if count > 1]
        if twice:
            return f"seen twice: {twice}"
        possible = {state for state in self.states if self._tokens(state, kinds) == seen.keys()}
        if not possible:
            return self._difference(set(seen), kinds)
        self.states = possible
        if possible <= self.unfinished:
            self.unfinished = set()
        self._decide()
        return None

    def _tokens(self, state: State, kinds: frozenset[str]) -> set[tuple[str, str]]:
        return {(self.items[number].kind, token) for number, token in state if self.items[number].kind in kinds}

    def _difference(self, seen: set[tuple[str, str]], kinds: frozenset[str]) -> str:
        nearest = min((self._tokens(state, kinds) for state in self.states), key=lambda tokens: len(tokens ^ seen))
        missing, extra = sorted(nearest - seen), sorted(seen - nearest)
        erased = " (erased)" if any(token in self.erased for _, token in extra) else ""
        return f"missing {missing}, not expected {extra}{erased}"

    def check_file(self, text: str) -> str | None:
        """MEMORY.md must be whole and hold exactly the facts, once each."""
        headings = ("# User Memory", "## User Preferences", "## Work Context", "## Personal Context", "## Key Facts")
        if any(heading not in text for heading in headings):
            return f"MEMORY.md is not whole: {text!r}"
        seen = Counter(token for token in tokens_in(text) if token not in self.prose)
        for state in self.states:
            if seen == Counter(token for _, token in self.file_lines(state)):
                self.states = {other for other in self.states if self.file_lines(other) == self.file_lines(state)}
                self.note_version(self.file_lines(state))
                self._decide()
                return None
        nearest = min(self.states, key=lambda state: len({token for _, token in self.file_lines(state)} ^ seen.keys()))
        wanted = {token for _, token in self.file_lines(nearest)}
        return (
            f"MEMORY.md lacks {sorted(wanted - seen.keys())} and has {sorted((seen - Counter(wanted)).keys())} too much"
        )
