"""What a message says that is worth remembering: `learn`.

Brings the parts together: what was asked for is told apart from what was merely said, and what the policy of the
memory would refuse is left out before anybody sees it.
"""

from __future__ import annotations

from recollect.agents.rules.explicit import Asked, asked
from recollect.agents.rules.learned import TOLD, Learned, storable
from recollect.agents.rules.reading import sentences
from recollect.agents.rules.statements import Manner, learned_from
from recollect.agents.rules.tables import union
from recollect.text import fold

__all__ = ["learn"]


def learn(text: str, *, role: str = "user", speaker: str | None = None, language: str | None = None) -> list[Learned]:
    """What a message says about its author, in the order in which they say it; mostly nothing.

    Only what a person says is read: nothing is learned from the words of an assistant or a tool. The ``speaker`` is
    the name that may stand before the message, as in a transcript. The ``language`` is a hint; it is found out.
    """
    if role != "user":
        return []
    said = sentences(text, speaker)
    lower = not any(character.isupper() for character in text)
    greeted = union("greeting", r"^\W*").match(text) is not None
    found: list[Learned] = []
    done: set[int] = set()
    requests = {min(each.sentences): each for each in asked(text, said, language)}
    for each in requests.values():
        done |= each.sentences
    for number, sentence in enumerate(said):
        if number not in done and _introduces(sentence.text):
            break
        if number in requests:
            found += _told(requests[number], Manner(lower), language)
        elif number not in done:
            excerpt = text[sentence.start : sentence.end]
            manner = Manner(lower, greeted and number <= 1)
            found += learned_from(sentence.text, excerpt, manner, asks=sentence.asks, code=language)
    return _distinct(found)


def _introduces(said: str) -> bool:
    """Whether a sentence announces words that may be another's: "The prompt was: I am a nurse"."""
    head, colon, rest = said.partition(": ")
    if not colon or not union("subjects", r"^\W*").match(rest):
        return False
    return not any(union(name, r"^\W*").match(head) for name in ("openers", "corrections", "hedges", "announcing"))


def _told(request: Asked, manner: Manner, code: str | None) -> list[Learned]:
    told = request.explicit
    if told.refers_back or union("secretive").search(told.content):
        return []
    if not told.reminder:
        known = learned_from(request.said, told.excerpt, manner, code=code)
        if known:
            return [each.told() for each in known]
    return [
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


def _distinct(found: list[Learned]) -> list[Learned]:
    kept: dict[tuple[str | None, str], Learned] = {}
    for each in found:
        if storable(each):
            kept.setdefault((each.key, fold(each.content)), each)
    return list(kept.values())
