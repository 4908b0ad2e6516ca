"""What somebody might have said in two years, made up: any number of records, and questions about them.

The same seed gives the same texts. Words are drawn as in real conversations: a few function words make up nearly
half of a text, and the others follow Zipf's law, from everyday words to words that stand in one text only. The
lengths and the share of the records that a question touches are those of LoCoMo's conversations: some 16 words to
search for in a record, and a question of six such words of which some 28 % of the records have one.

Knows nothing about memories, indexes and clocks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import accumulate

BEGIN = datetime(2024, 1, 1, tzinfo=timezone.utc)
SPAN = timedelta(days=730)
CATEGORIES = ("finding", "insight", "lesson")
FORMS = ("messages", "messages of a year", "a category, half a year", "a session")
"""What searches are narrowed to, in turn."""

_FUNCTION = (
    "the to and a of I in it is that you was for on my with we have this be at but so not are as she he they had or"
    " from his her what if when there an will me our been by all just were would about can do your them some has more"
    " out up then how could than who now"
).split()
_EVERYDAY = (
    "time work day home year friend family book week plan school idea trip team project house food music game phone"
    " car garden city office dinner doctor movie photo weekend morning dog coffee paper email meeting child summer"
    " money price test code data server letter train kitchen window river mountain birthday holiday story teacher"
    " bicycle market weather recipe guitar class street museum picture concert language report ticket budget model"
    " paint camera bread winter table sister brother mother father neighbour doctor forest lake beach ship engine"
    " make think feel help try start call talk learn move write read buy find ask change visit build cook play plant"
    " repair travel study share follow finish remember decide prefer send open close measure paint climb run swim"
    " great new good really old happy small early long quiet bright cold warm fresh busy simple useful green blue red"
).split()
_SYLLABLES = [first + vowel for first in "b d f g k l m n p r t v z br dr gr kl st tr sh".split() for vowel in "aeiou"]
_SPEAKERS = ("Anna", "Boris", "Chen", "Dana", "Emeka", "Freya", "Goran", "Hana")
_ASKING = (
    "What did {name} say about the {} and the {} with {} in {} or {} {}?",
    "When did we {} the {} and {} for the {} {} {}?",
    "Which {} {} was it that had the {} {} at the {} {}?",
    "How was the {} {} with the {} {} in the {} {}?",
    "Do you know about the {} of {} and {} for {} {} {}?",
    "What {} {} did I want for the {} {} {} {}?",
    "Where is the {} {} from the {} {} and the {} {}?",
    "Who was there in {month} for the {} {} {} {} {} {}?",
)
_MONTHS = ("May", "March", "August", "November")
_VOCABULARY = 50_000
_FLAT = 2  # how much more evenly than by Zipf's law the most frequent words are spread
_FUNCTION_SHARE = 0.45
_TAGS = ("work", "home", "travel", "health", "people", "reading")


@dataclass(frozen=True, slots=True)
class Entry:
    """One record to be: a message of a session, a note, or an observation of a category."""

    kind: str
    text: str
    said_at: datetime
    session: str | None = None
    speaker: str | None = None
    role: str = "user"
    category: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search is narrowed to: a kind and a time, and a category or a session, if any."""

    kind: str
    since: datetime
    until: datetime
    category: str | None = None
    session: str | None = None


class Talk:
    """Makes up records and questions."""

    def __init__(self, seed: int = 1) -> None:
        self._seed = seed
        self._content = _vocabulary()
        self._content_weights = list(accumulate(1 / (rank + _FLAT) for rank in range(1, len(self._content) + 1)))
        share = _FUNCTION_SHARE / (1 - _FUNCTION_SHARE) * self._content_weights[-1]
        function = [1 / (rank + 2) for rank in range(1, len(_FUNCTION) + 1)]
        whole = sum(function)
        self._words = _FUNCTION + self._content
        self._weights = [weight * share / whole for weight in accumulate(function)]
        self._weights += [share + weight for weight in self._content_weights]

    def records(self, number: int) -> Iterator[Entry]:
        """So many records, oldest first."""
        chance = random.Random(f"records {self._seed}")
        session, left, speakers = 0, 0, list(_SPEAKERS[:2])
        for place in range(number):
            if not left:
                session, left = session + 1, chance.randint(10, 40)
                speakers = chance.sample(_SPEAKERS, 2)
            left -= 1
            said_at = BEGIN + SPAN * (place / number)
            text = self._text(chance)
            sort = chance.random()
            if sort < 0.6:
                speaker = speakers[place % 2]
                yield Entry("message", text, said_at, session=f"talk-{session}", speaker=speaker)
            elif sort < 0.8:
                tags = tuple(sorted(chance.sample(_TAGS, chance.randint(0, 2))))
                yield Entry("note", text, said_at, tags=tags)
            else:
                yield Entry("observation", text, said_at, category=chance.choice(CATEGORIES))

    def questions(self, number: int) -> list[str]:
        """So many questions, each with six words to search for."""
        chance = random.Random(f"questions {self._seed}")
        asked = []
        for place in range(number):
            words = chance.choices(self._content, cum_weights=self._content_weights, k=6)
            frame = _ASKING[place % len(_ASKING)]
            asked.append(frame.format(*words, name=chance.choice(_SPEAKERS), month=chance.choice(_MONTHS)))
        return asked

    def narrowed(self, number: int, records: int) -> list[Wanted]:
        """As many filters, over a memory of that many records: each of the `FORMS` in turn."""
        chance = random.Random(f"filters {self._seed}")
        sessions = [(entry.session, entry.said_at) for entry in self.records(min(records, 2000)) if entry.session]
        stretch = min(records, 2000) / records  # the same talks, at their time in the longer memory
        wanted = []
        for place in range(number):
            since = BEGIN + SPAN * (chance.random() / 2)
            if place % 4 == 0:
                wanted.append(Wanted("message", BEGIN, BEGIN + SPAN))
            elif place % 4 == 1:
                wanted.append(Wanted("message", since, since + SPAN / 2))
            elif place % 4 == 2:
                wanted.append(Wanted("observation", since, since + SPAN / 4, category=chance.choice(CATEGORIES)))
            else:
                session, said_at = chance.choice(sessions)
                middle = BEGIN + (said_at - BEGIN) * stretch
                wanted.append(Wanted("message", middle - SPAN / 8, middle + SPAN / 8, session=session))
        return wanted

    def _text(self, chance: random.Random) -> str:
        length = min(max(int(chance.lognormvariate(3.3, 0.5)), 5), 120)
        words = chance.choices(self._words, cum_weights=self._weights, k=length)
        words[0] = words[0].capitalize()
        for place in range(9, length - 3, 10):
            words[place] += ","
        return " ".join(words) + ("?" if chance.random() < 0.15 else ".")


def _vocabulary() -> list[str]:
    """Everyday words first, then words of some syllables each, the frequent ones short."""
    chance = random.Random("vocabulary")
    words = dict.fromkeys(_EVERYDAY)
    while len(words) < _VOCABULARY:
        length = 2 + (len(words) > 2000) + (len(words) > 20_000)
        words["".join(chance.choices(_SYLLABLES, k=length)) + chance.choice(("", "n", "r", "l", "k"))] = None
    return list(words)
