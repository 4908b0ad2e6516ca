"""The evidence for what a model claims: what the person said in earnest, and what they did.

Nothing that nobody said gets into a memory as a fact. A model either cites its source, the number of a message and
words in it, or gives none, as with a tool call; then the words of the claim must be found in what the person said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import takewhile

from recollect.agents.capture import is_injection, looks_like_instruction
from recollect.agents.gather_interactions import Gathered, Utterance
from recollect.agents.rules.extractor import introduces_quote
from recollect.agents.rules.sentences import HIDDEN, Sentence, sentences
from recollect.memory.memory import Memory
from recollect.text import detect_language, fold, folded_words, terms

_SHORTEST_QUOTE = 4
LONGEST_QUOTE = 500
_SEVERAL = 2
_SHORTEST_STEM = 4
_NAME = re.compile(r"[^\W_][\w.+#'’-]*")
_FRAMING = (
    "interested interests prefers preference likes dislikes loves hates enjoys wants needs works working lives living"
    " uses using learning user person"
)
"""Words that say how somebody relates to something. A model adds them, so they prove nothing."""


@dataclass(frozen=True, slots=True)
class Support:
    """What supports a claim: an utterance and its relevant words, or several interactions."""

    at: datetime
    said: Utterance | None = None
    excerpt: str | None = None


class Evidence:
    """What the person said and did, as evidence for claims about them."""

    def __init__(
        self,
        memory: Memory,
        sayings: Sequence[Utterance],
        last: datetime,
        *,
        actions: Sequence[str] = (),
        titles: Sequence[str] = (),
    ) -> None:
        self.last = last
        """The time of the last utterance or interaction."""
        self._memory, self._sayings, self._actions = memory, sayings, actions
        self._titles = (*actions, *titles)

    @classmethod
    def of(cls, memory: Memory, collected: Gathered) -> Evidence:
        """Return what was gathered, as evidence."""
        events = [one for one in collected.interactions if one.kind != "delivery"]
        actions = [f"{one.title or ''} {' '.join(one.topics)}" for one in events]
        titles = [talk.title for talk in collected.talks if talk.title]
        return cls(memory, collected.sayings, collected.last, actions=actions, titles=titles)

    def cited(self, number: int, quote: str, value: str) -> Support | None:
        """Return the utterance with this number, if the quote is the person's own and related to the value."""
        words = fold(quote).strip(" .,;:!…\"'")
        if not 1 <= number <= len(self._sayings) or len(words) < _SHORTEST_QUOTE:
            return None
        said = self._sayings[number - 1]
        if words not in fold(" ".join(sentence.text for sentence in _in_earnest(said))):
            return None
        if not (_numbers(value) <= _numbers(quote) and shares_word(value, quote) and self._names_known(value)):
            return None
        return Support(said.at, said, quote[:LONGEST_QUOTE])

    def stated(self, claim: str, *, known: str = "", may_ask: bool = False) -> Support | None:
        """Return the utterance that states a claim, the latest of the best: it must hold half of its words or more.

        What is ``known`` already needs no evidence. A question states nothing, unless it ``may_ask``.
        """
        words = set(terms(claim)) - set(terms(known)) or set(terms(claim))
        words = words - set(terms(_FRAMING)) or words
        best: tuple[int, Utterance] | None = None
        for said in self._sayings:
            if looks_like_instruction(said.text):
                continue
            stated = terms(" ".join(one.text for one in _in_earnest(said) if may_ask or not one.asks))
            shared = sum(_occurs(word, set(stated)) for word in words)
            if shared and shared * 2 >= len(words) and (best is None or shared >= best[0]):
                best = shared, said
        if best is None or not self._names_known(claim, known):
            return None
        said = best[1]
        if not _numbers(claim) <= _numbers(" ".join((said.text, known, *self._titles))):
            return None
        return Support(said.at, said, _relevant(said, words))

    def shown(self, category: str, value: str, *, weak: bool = False) -> Support | None:
        """Return support by interactions, for likes and reading only. A like needs several, unless it is ``weak``."""
        if category not in ("preference", "reading_history"):
            return None
        needed = 1 if weak or category == "reading_history" else _SEVERAL
        shown = sum(shares_word(value, text) for text in self._actions)
        return Support(self.last) if shown >= needed else None

    @cached_property
    def _words(self) -> set[str]:
        """All words that a claim may take names from."""
        said = (sentence.text for one in self._sayings for sentence in _in_earnest(one))
        return {word for text in (*said, *self._titles, self._memory.show()) for word in _forms(text)}

    def _names_known(self, claim: str, known: str = "") -> bool:
        """Return True if every name in a claim occurs in the evidence. A model adds "Norway" to "Oslo" by itself."""
        words = self._words | _forms(known)
        return all(any(_occurs(form, words) for form in _forms(name)) for name in _names(claim))


def shares_word(value: str, text: str) -> bool:
    return bool(set(terms(value)) & set(terms(text)))


def _in_earnest(said: Utterance) -> list[Sentence]:
    """Return what the person says in earnest: nothing that is quoted, pasted, or meant for a model."""
    if not said.own or is_injection(said.text):
        return []
    found = sentences(said.text, said.speaker)
    return list(takewhile(lambda one: not introduces_quote(one.text) and "<!--" not in one.text, found))


def _relevant(said: Utterance, words: set[str]) -> str:
    """Return the sentences of an utterance that hold these words."""
    found = [one for one in _in_earnest(said) if words & set(terms(one.text)) and HIDDEN not in one.text]
    return " ".join(" ".join(said.text[one.start : one.end].split()) for one in found)[:LONGEST_QUOTE]


def _names(text: str) -> list[str]:
    """Return the words that are capitalised for another reason than beginning a sentence. In German, any noun is."""
    if detect_language(folded_words(text)) == "de":
        return []
    found: list[str] = []
    starts = True
    for match in _NAME.finditer(text):
        word = match[0].strip(".'’-")
        if any(letter.isupper() for letter in (word[1:] if starts else word)) and word != "I":
            found.append(word)
        starts = match[0].endswith(".") or text[match.end() : match.end() + 1] in (":", ";", "!", "?")
    return found


def _forms(text: str) -> set[str]:
    return {*terms(text), *folded_words(text)}


def _occurs(word: str, words: set[str]) -> bool:
    """Return True if a word is among others. Outside English, endings change more than a stemmer knows."""
    if word in words:
        return True
    if word.isascii() or len(word) < _SHORTEST_STEM:
        return False
    begin = word[: max(_SHORTEST_STEM - 1, len(word) * 2 // 3)]
    return any(other.startswith(begin) and abs(len(other) - len(word)) <= 3 for other in words)


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+", text))
