"""Learning from a message: `learn`.

Separates what was asked for from what was merely said, and leaves out what the policy of the memory would refuse.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.agents.rules.amendments import learn_amendments
from recollect.agents.rules.cyrillic import cyrillic_language
from recollect.agents.rules.explicit import ExplicitRequest, explicit_requests
from recollect.agents.rules.learned import TOLD, Learned, passes_policy
from recollect.agents.rules.qualifiers import as_note_of_the_day
from recollect.agents.rules.sentences import sentences
from recollect.agents.rules.statements import Manner, learn_from_sentence
from recollect.agents.rules.tables import rewrites, union
from recollect.text import fold

__all__ = ["introduces_quote", "learn"]


_FEW_LETTERS = 8


def learn(
    text: str,
    *,
    role: str = "user",
    speaker: str | None = None,
    language: str | None = None,
    before: Sequence[tuple[str, str]] = (),
) -> list[Learned]:
    """Return what a message says about its author, in order; mostly nothing.

    Only a person's words are read, never those of an assistant or a tool. The ``speaker`` is the name that may stand
    before the message, as in a transcript. The ``language`` is a hint; it is detected. ``before`` are the last messages
    before it, as (role, text): "No, Lviv" corrects what they say.
    """
    if role != "user":
        return []
    language = cyrillic_language(text) or language or _language_before(before)
    said = sentences(text, speaker)
    shouted = _is_shouted(text)
    lower = shouted or not any(character.isupper() for character in text)
    greeted = union("greeting", r"^\W*").match(text) is not None
    found: list[Learned] = []
    done: set[int] = set()
    requests = {min(each.sentences): each for each in explicit_requests(text, said, language)}
    for each in requests.values():
        done |= each.sentences
    for number, sentence in enumerate(said):
        words = _simplify(sentence.text, shouted)
        if number not in done and introduces_quote(words):
            break
        if number in requests:
            found += _learn_requested(requests[number], Manner(lower, shouted=shouted), language)
        elif number not in done:
            excerpt = text[sentence.start : sentence.end]
            manner = Manner(lower, greeted and number <= 1, shouted)
            asks = sentence.asks and "?" in words
            found += learn_from_sentence(words, excerpt, manner, asks=asks, code=language)
    if not found and before and len(said) == 1 and not said[0].asks:
        found = learn_amendments(text[said[0].start : said[0].end], before, language)
    return _distinct(found)


def _language_before(before: Sequence[tuple[str, str]]) -> str | None:
    """Return which of two languages that look alike was used last: a short message may fit both."""
    return next((code for _, text in reversed(before) if (code := cyrillic_language(text))), None)


def _simplify(said: str, shouted: bool) -> str:
    """Rewrite roundabout wording as the rules know it: "I don't … anymore" is "I no longer …"."""
    lower = said.lower()
    for each in rewrites():
        if each.hint in lower:
            said = each.pattern.sub(each.plainly, said)
    return _lower_shouting(said) if shouted else said


def _is_shouted(text: str) -> bool:
    return text.isupper() and " " in text.strip() and sum(map(str.isalpha, text)) >= _FEW_LETTERS


def _lower_shouting(said: str) -> str:
    return "".join(small if len(small := character.lower()) == 1 else character for character in said)


def introduces_quote(said: str) -> bool:
    """Return True if a sentence announces words that may be another's: "The prompt was: I am a nurse"."""
    head, colon, rest = said.partition(": ")
    if not colon or not union("subjects", r"^\W*").match(rest):
        return False
    return not any(union(name, r"^\W*").match(head) for name in ("openers", "corrections", "hedges", "announcing"))


def _learn_requested(request: ExplicitRequest, manner: Manner, code: str | None) -> list[Learned]:
    told = request.explicit
    if told.refers_back or union("secretive").search(told.content):
        return []
    if not told.reminder:
        words = _simplify(request.said, manner.shouted)
        known = learn_from_sentence(words, told.excerpt, manner, code=code or told.language)
        if known:
            return as_note_of_the_day([each.as_requested() for each in known], request.said)
    found = [
        Learned(
            content=told.content,
            key=None,
            category="key_fact",
            type="personal",
            confidence=TOLD,
            durable=told.durable,
            explicit=True,
            excerpt=told.excerpt,
            rule=f"{told.language}:explicit",
        )
    ]
    return found if told.reminder else as_note_of_the_day(found, request.said)


def _distinct(found: list[Learned]) -> list[Learned]:
    kept: dict[tuple[str | None, str], Learned] = {}
    for each in found:
        if passes_policy(each):
            kept.setdefault((each.key, fold(each.content)), each)
    return list(kept.values())
