"""A summary of a text for one person: their interests decide what it stresses.

A model writes it; without one, or if it fails, it consists of the sentences that matter most to this person.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from recollect.agents.models import Account, Model, ModelLimits, Turn, configured_model
from recollect.agents.prompts import prompt
from recollect.config import Config
from recollect.errors import ModelError, RecollectError
from recollect.memory.memory import Memory
from recollect.policy.injection import neutral, without_markup
from recollect.text import terms
from recollect.tools.profile import with_prose
from recollect.tools.tool import Tool

LOGGER = logging.getLogger("recollect.models")
_SENTENCE = re.compile(r"[^.!?。！？\n]{20,}[.!?。！？]+")
_LONGEST = 40_000
_TOLERANCE = 1.5
_INTEREST, _TITLE = 2.0, 1.5
"""The weight of a word that the person cares about, or that is in the title."""


@dataclass(frozen=True, slots=True)
class Summarized:
    """A summary. ``by`` is the model that made it, or "rules"; ``problem`` is why no model did, if one should have."""

    text: str
    by: str
    problem: str | None = None


def summarize(
    memory: Memory, text: str, *, title: str = "", model: Model | None = None, max_words: int = 150
) -> Summarized:
    """Summarise a text for the person whose memory this is."""
    problem = None
    if model is not None:
        context = memory.context(title or text[:300])
        system = f"{prompt('summarize')}\n\nAt most {max_words} words.\n\n{context}"
        asked = f"# {neutral(title)}\n\n{text[:_LONGEST]}" if title else text[:_LONGEST]
        account = Account(memory, "summarize", memory.config)
        try:
            reply = model.converse(
                system, [Turn("user", asked)], limits=ModelLimits(turns=1, seconds=60), account=account
            )
            if reply.text.strip():
                return Summarized(reply.text.strip(), model.name)
            problem = "the model gave no answer"
        except ModelError as error:
            problem = f"{error.kind}: used the most relevant sentences instead"
    return Summarized(_telling(memory, text, title, max_words), "rules", problem)


def with_model(tools: Iterable[Tool], config: Config) -> list[Tool]:
    """Return the tools, with the profile summary written as prose by the configured model."""

    def narrate(memory: Memory, facts: str, max_words: int) -> str | None:
        system = f"{prompt('profile')}\n\nAt most {max_words} words."
        account = Account(memory, "profile", config)
        try:
            model = configured_model(config)
            if model is None:
                return None
            with model:
                asked = [Turn("user", without_markup(facts))]
                text = model.converse(system, asked, limits=ModelLimits(turns=1, seconds=50), account=account).text
        except RecollectError as error:
            LOGGER.warning("a profile was not written as prose: %s", type(error).__name__)
            return None
        prose = " ".join(text.split())
        return prose if prose and len(prose.split()) <= max_words * _TOLERANCE else None

    return with_prose(tools, narrate)


def _telling(memory: Memory, text: str, title: str, max_words: int) -> str:
    """Return the sentences with the words that matter, to the text and to the person, in their order."""
    sentences = [" ".join(found.split()) for found in _SENTENCE.findall(text[:_LONGEST])]
    if not sentences:
        return " ".join(text.split()[:max_words])
    words = [set(terms(sentence)) for sentence in sentences]
    often = Counter(word for found in words for word in found)
    cares = {word for fact in memory.read(kind="fact") for word in terms(fact.text)}
    titled = set(terms(title))

    def worth(number: int) -> float:
        score = sum(
            often[word] * (_INTEREST if word in cares else 1.0) * (_TITLE if word in titled else 1.0)
            for word in words[number]
        )
        return score / (len(words[number]) + 5)

    chosen: set[int] = set()
    room = max_words
    for number in sorted(range(len(sentences)), key=lambda number: (-worth(number), number)):
        size = len(sentences[number].split())
        if size <= room:
            chosen.add(number)
            room -= size
    return " ".join(sentences[number] for number in sorted(chosen)) or " ".join(text.split()[:max_words])
