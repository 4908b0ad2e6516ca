"""What a person cares about, and things to read ordered by it.

An opinion is a topic, whether the person is for or against it, how strongly, and which memory says so. Opinions come
from records (what a statement says is liked, disliked or being worked on) and from what was reported (saves,
reactions, reads, discussions). Only records that share a word with one of the items are read: the search index tells
which. An item is data: nothing in it is followed, stored or logged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from recollect import checks as check
from recollect.errors import InvalidInputError
from recollect.fields import MAX_ITEMS
from recollect.memory.chat_scope import seen_by
from recollect.memory.search import MEMORY_KINDS
from recollect.memory.user_memory import UserMemory
from recollect.policy.duplicates.vocabulary import synonyms
from recollect.policy.injection import neutral
from recollect.policy.preferences import against_words, is_general, likings, sign_of, speaks_against
from recollect.records import USER_EDIT, DailyEntry, Episode, Interaction, Note, Record
from recollect.search.concepts import related
from recollect.search.filters import Filter
from recollect.search.tokens import count
from recollect.store.contract import Query, Reader, State
from recollect.text import clean, cut, language, stem, stems, terms, tokens, unspaced

_HEAD, _BODY = 500, 1_500  # characters of an item that are read
_STATEMENT = 600  # characters of a record
_AT_ONCE = 500
_MOST_RECORDS = 2_000  # that say nothing against anything
_MOST_EVENTS = 2_000
_EVENT_DAYS, _HALF_LIFE = 180, 90
_LONG = 5  # words: of more, only names say what it is about
_MOST_REASONS = 3
_SHOWN = 100
_SURE, _LOOSE = 0.8, 0.4  # how near a related word must be to be the same thing, and to be of that sort
_IN_BODY = 0.5  # what is only mentioned counts half

_KINDS = {"fact": 1.0, "note": 0.8, "observation": 0.7, "episode": 0.7, "daily": 0.5}
_CATEGORIES = {"preference": 0.6, "work_context": 0.6, "reading_history": 0.5}
_SPOKEN_OF = 0.4
_EVENTS = {"read": 0.5, "reaction": 1.0, "save": 1.0, "discussion": 1.0}
_NO_TOPIC = frozenset("name pronouns age birthday timezone units communication_style marital_status".split())
_SAID = ("explicit", USER_EDIT, "conversation", "discussion")
_ALSO_WORDS = frozenset(
    """go react express spring swift rust rails flask apple amazon meta notion signal slack word excel access windows
    elm julia dart basic crystal phoenix oracle chrome edge safari teams zoom discord target shell""".split()
)
"""Names that are ordinary words, too: with a small letter, in a text that has capitals, they are not meant."""
_TAG = re.compile(r"<(?:script|style)\b.{0,20000}?</(?:script|style)>|<[/!]?[a-zA-Z][^<>]{0,500}>", re.S | re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why an item stands where it does, in words, and the ids of the records or interactions that say so."""

    text: str
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An item in its place. ``position`` is where it was given, from 0.

    ``score`` is from -1 to 1: above 0 the person cares about it, below 0 it is against their taste, from -0.5 down
    they said so themselves; 0 if nothing is known of it.
    """

    item: Any
    position: int
    score: float
    reasons: tuple[Reason, ...] = ()

    @property
    def why(self) -> str:
        """The reasons in one line."""
        return "; ".join(reason.text for reason in self.reasons)


class Word(NamedTuple):
    """A word of a topic: the forms it is known by, with how near each is, and whether it is a name."""

    stem: str
    forms: Mapping[str, float]
    is_name: bool
    cased: bool
    """Whether it must be written with a capital."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a person thinks of a topic. ``said`` if they told so, and did not only act like it."""

    thing: str
    words: tuple[Word, ...]
    sign: int
    strength: float
    said: bool
    reason: Reason

    @property
    def needed(self) -> int:
        """How many of its words a text must have, unless it has a name of them."""
        number = len(self.words)
        if self.sign < 0 or number < 3:
            return number
        return number // 2 + 1


class _Text:
    """An item as it is compared: how much each form of a word in it counts."""

    __slots__ = ("capitals", "forms", "head")

    def __init__(self, head: str, body: str, code: str) -> None:
        beside, small_print = _forms(body, code)
        self.head, capitals = _forms(head, code)
        self.forms = dict.fromkeys(beside, _IN_BODY) | dict.fromkeys(self.head, 1.0)
        self.capitals = capitals | small_print


class _Known:
    """Opinions, to be found by the rare words in them: only these are looked up, so that common ones cost nothing."""

    def __init__(self, opinions: Iterable[Opinion]) -> None:
        self._opinions = list(opinions)
        often = Counter(word.stem for opinion in self._opinions for word in opinion.words)
        self._plain: dict[str, list[int]] = {}
        self._signed: dict[str, list[int]] = {}
        for number, opinion in enumerate(self._opinions):
            places = self._signed if opinion.sign else self._plain
            for form in {form for word in _anchors(opinion, often) for form in word.forms}:
                places.setdefault(form, []).append(number)

    def matching(self, text: _Text) -> Iterator[tuple[Opinion, float]]:
        """The opinions that a text concerns, each with how sure that is.

        What the person only spoke of must be in the title; a word in passing would be anything.
        """
        likely = {number for form in text.forms.keys() & self._signed.keys() for number in self._signed[form]}
        likely.update(number for form in text.head & self._plain.keys() for number in self._plain[form])
        for number in sorted(likely):
            opinion = self._opinions[number]
            if quality := _quality(opinion, text):
                yield opinion, quality


def _anchors(opinion: Opinion, often: Mapping[str, int]) -> list[Word]:
    """The words of a topic without one of which it does not fit: the rarest, and the names."""
    rarest = sorted(opinion.words, key=lambda word: often[word.stem])[: len(opinion.words) - opinion.needed + 1]
    return rarest + [word for word in opinion.words if word.is_name and opinion.sign >= 0]


def rank(
    person: UserMemory, reader: Reader, items: Iterable[Any], limit: int | None = None, *, within: int | None = None
) -> list[Ranked]:
    """The items, what the person cares about first; what they dislike last; equals as they were given."""
    if not isinstance(items, Iterable):
        raise InvalidInputError(
            "items", f"must be a list of texts or of things with a title, not {type(items).__name__}"
        )
    given = [items] if isinstance(items, str | bytes | Mapping) else list(islice(items, MAX_ITEMS + 1))
    if len(given) > MAX_ITEMS:
        raise InvalidInputError("items", f"are too many; at most {MAX_ITEMS:,} can be ranked at a time")
    most = None if limit is None else check.positive("limit", limit)
    code = person.config.language
    texts = [_text_of(number, item, code) for number, item in enumerate(given)]
    state = reader.state() if within is None else replace(reader.state(), seq=within)
    if state.mode == "incognito":
        return _as_given(given, "memory is incognito")[:most]
    asked = frozenset(form for text in texts for form in text.forms)
    opinions = opinions_about(person, reader, state, asked, within=within is not None)
    if not opinions and not any(reader.count().values()) and not reader.interactions(limit=1):
        return _as_given(given, "nothing is known about you yet")[:most]
    known = _Known(opinions)
    ranked = []
    for position, (item, text) in enumerate(zip(given, texts, strict=True)):
        score, reasons = _judged(known.matching(text))
        ranked.append(Ranked(item=item, position=position, score=score, reasons=reasons))
    ranked.sort(key=lambda one: -one.score)
    return ranked[:most]


def _as_given(items: Sequence[Any], why: str) -> list[Ranked]:
    told = (Reason(text=f"{why}, so the order is as given"),)
    return [Ranked(item=item, position=position, score=0.0, reasons=told) for position, item in enumerate(items)]


def _judged(opinions: Iterable[tuple[Opinion, float]]) -> tuple[float, tuple[Reason, ...]]:
    """The score of an item and what it is made of."""
    bad, plus, minus = 0.0, 1.0, 1.0
    why: list[tuple[float, Reason]] = []
    for opinion, quality in opinions:
        weight = quality * opinion.strength
        if opinion.sign >= 0:
            plus *= 1 - 0.9 * weight
        else:
            minus *= 1 - 0.9 * weight
            if opinion.said and quality >= _SURE:
                bad = max(bad, weight)
        why.append((weight if opinion.sign >= 0 else -weight, opinion.reason))
    score = -(0.5 + bad / 2) if bad else max((1 - plus) - (1 - minus), -0.49)
    why.sort(key=lambda pair: pair[0] if score < 0 else -pair[0])
    for_it = [pair for pair in why if (pair[0] < 0) == (score < 0)] or why
    reasons = dict.fromkeys(reason for _, reason in for_it)
    return round(score, 4), tuple(reasons)[:_MOST_REASONS]


def _quality(opinion: Opinion, text: _Text) -> float:
    """How well a topic fits: all its words, or for something liked a name in it or most of its words."""
    matches = [_match(word, text) for word in opinion.words]
    least = min(matches)
    if least or opinion.sign < 0:
        return least
    if names := [match for match, word in zip(matches, opinion.words, strict=True) if word.is_name and match]:
        return 0.6 * max(names)
    found = [match for match in matches if match]
    return 0.5 * sum(found) / len(found) if len(found) >= opinion.needed else 0.0


def _match(word: Word, text: _Text) -> float:
    """How sure it is that a text speaks of this word."""
    met = word.forms.keys() & text.forms.keys()
    if met and word.cased and text.capitals:
        met &= text.capitals
    return max([word.forms[form] * text.forms[form] for form in met]) if met else 0.0


# what is known


def opinions_about(
    person: UserMemory, reader: Reader, state: State, words: frozenset[str], *, within: bool = False
) -> list[Opinion]:
    """What the person thinks of anything that has one of these words in it."""
    now = person.clock()
    found: dict[frozenset[str], tuple[datetime, Opinion]] = {}
    several: list[Opinion] = []
    code = person.config.language
    for record in _records(person, reader, state, words, within=within):
        for opinion in opinions_of(record, now, code):
            if not opinion.sign:
                several.append(opinion)
                continue
            # who liked it and then no longer does has said both: the later one holds
            key = frozenset(word.stem for word in opinion.words)
            if key not in found or found[key][0] < record.updated_at:
                found[key] = record.updated_at, opinion
    return [opinion for _, opinion in found.values()] + several + _done(reader, now, code)


def _records(
    person: UserMemory, reader: Reader, state: State, words: frozenset[str], *, within: bool
) -> Iterator[Record]:
    """The records that share a word with what is asked, as the search index knows them."""
    import numpy as np  # here, not above: importing loads nothing

    wider = set(words)
    for word in words:
        wider.update(other for other, _ in related(word))
        if not word.isascii():
            wider.update(stems(word))
    opposed = sorted({form for word in against_words() for form in stems(word)})
    where = Filter(kinds=MEMORY_KINDS, chats=seen_by(reader), alive_at=person.clock())
    with person.catalogue.using(reader, state, in_write=within) as index:
        index.gather_words(sorted(wider), opposed, where, _MOST_RECORDS)
        fits = index.select(where)
        scores = index.scores(sorted(wider)) * fits
        against = index.scores(opposed) > 0
        numbers = np.flatnonzero(scores > 0)
        if len(numbers) > _MOST_RECORDS:
            facts = index.kind[numbers] == index.code("kind", "fact")
            weighed = scores[numbers] * (1 + facts)
            weighed[against[numbers]] = np.inf  # what one dislikes is never left out
            least = np.partition(weighed, len(weighed) - _MOST_RECORDS)[len(weighed) - _MOST_RECORDS]
            numbers = numbers[weighed >= least]
        ids = index.ids(numbers)
    for begin in range(0, len(ids), _AT_ONCE):
        yield from reader.find(Query(ids=ids[begin : begin + _AT_ONCE]))


def opinions_of(record: Record, now: datetime, code: str = "") -> Iterator[Opinion]:
    """What a record says the person cares about."""
    if isinstance(record, DailyEntry) and record.section == "Reading Activity":
        return  # what was reported says it better
    if isinstance(record, Episode) and record.valence == "negative":
        return  # that it went badly says nothing of the topic
    if record.kind == "fact" and record.key in _NO_TOPIC:
        return
    strength = _KINDS.get(record.kind, 0.5) * record.confidence * (1.0 if record.trusted else 0.5)
    if record.kind in ("daily", "episode"):
        strength *= _fading(record.valid_from, now)
    said = record.trusted and (record.kind == "fact" or record.source.partition(":")[0] in _SAID)
    for thing, sign, is_title in _things(record, code):
        words = words_of(thing, code, is_title=is_title)
        weight = 1.0 if sign else _CATEGORIES.get(record.category or "", _SPOKEN_OF)
        if not sign and len(words) > _LONG:
            words, weight = tuple(word for word in words if word.is_name), weight / 2
        if words:
            reason = Reason(text=_told(record, thing, sign), ids=(record.id,))
            yield Opinion(thing, words, sign, strength * weight, said, reason)


def _things(record: Record, code: str) -> Iterator[tuple[str, int, bool]]:
    """The things a record is about, what it says of each, and whether that is its title."""
    for tag in record.tags:
        yield tag, 0, True
    if isinstance(record, Episode) and record.topic:
        yield record.topic, 0, True
    elif isinstance(record, Note) and record.title:
        for thing, own in likings(record.title, code):
            yield thing, own, True
    sign = sign_of(record.key.replace("_", " ")) if record.kind == "fact" and record.key else 0
    for thing, own in likings(record.content[:_STATEMENT], code):
        yield thing, own or sign, False


def _told(record: Record, thing: str, sign: int) -> str:
    shown = _short(thing)
    said = "you said you " if record.trusted and record.source.partition(":")[0] in _SAID else "you "
    if sign:
        return f"{said}{'like' if sign > 0 else 'dislike'} {shown}"
    if isinstance(record, Episode):
        return f'you discussed "{_short(record.topic or record.content)}"'
    if isinstance(record, Note):
        return f'you noted "{_short(record.title or record.content)}"'
    if record.category == "work_context":
        return f'it is about your work: "{_short(record.text)}"'
    return f'you are known for: "{_short(record.text)}"' if record.kind == "fact" else f'"{_short(record.text)}"'


def _short(text: str) -> str:
    line = neutral(text[: 4 * _SHOWN])
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1].rstrip() + "…"


# what was done


def _done(reader: Reader, now: datetime, code: str) -> list[Opinion]:
    """What saves, reactions, reads and discussions say: many for a topic, or many against it."""
    since = now - timedelta(days=_EVENT_DAYS)
    events = reader.interactions(since=since, kinds=tuple(_EVENTS), newest_first=True, limit=_MOST_EVENTS)
    about: dict[frozenset[str], tuple[str, tuple[Word, ...], dict[str, Interaction]]] = {}
    named: set[frozenset[str]] = set()
    for event in events:
        for thing in event.topics or title_words(event.title or "", code):
            words = words_of(thing, code)
            key = frozenset(word.stem for word in words)
            if key:
                of_topic = about.setdefault(key, (thing, words, {}))[2]
                of_topic.setdefault(f"{event.kind} {event.item or event.title}", event)
                if event.topics:
                    named.add(key)
    found = []
    for key, (thing, words, once) in about.items():
        if key not in named and len(once) < 2:
            continue  # a word of one title is no topic
        plus = [event for event in once.values() if not speaks_against(event.value)]
        minus = [event for event in once.values() if speaks_against(event.value)]
        gain, loss = _signs(plus, now), _signs(minus, now)
        if gain >= 2 * loss and gain:
            found.append(_acted(thing, words, 1, gain - loss, plus))
        elif loss >= 2 * gain:
            found.append(_acted(thing, words, -1, loss - gain, minus))
    return found


def title_words(title: str, code: str) -> list[str]:
    """The words of a title that may be its topic."""
    found = tokens(clean(title))
    code = code or language([token.lower() for token in found])
    kept = frozenset(terms(f"{title} zzz", code))
    return [
        token
        for token in dict.fromkeys(found)
        if len(token) > 2 and any(stem(word, code) in kept and not is_general(word) for word in cut(token))
    ]


def _signs(events: Iterable[Interaction], now: datetime) -> float:
    return sum(_EVENTS[event.kind] * _fading(event.at, now) for event in events)


def _acted(thing: str, words: tuple[Word, ...], sign: int, signs: float, events: Sequence[Interaction]) -> Opinion:
    counts: dict[str, int] = {}
    for event in events:
        counts[event.kind] = counts.get(event.kind, 0) + 1
    kind = max(counts, key=lambda name: (counts[name], _EVENTS[name]))
    number, shown = counts[kind], _short(thing)
    articles = f"{number} article{'s' * (number != 1)} about {shown}"
    times = "" if number == 1 else f" {number} times"
    text = {
        "save": f"you saved {articles}",
        "read": f"you read {articles}",
        "discussion": f"you discussed {shown}{times}",
    }.get(kind, f"you {'liked' if sign > 0 else 'disliked'} {articles}")
    ids = tuple(event.id for event in events)
    return Opinion(thing, words, sign, 1 - 0.6**signs, False, Reason(text=text, ids=ids))


def _fading(at: datetime, now: datetime) -> float:
    return float(0.5 ** (max((now - at) / timedelta(days=1), 0.0) / _HALF_LIFE))


# words


def words_of(thing: str, code: str = "", *, is_title: bool = False) -> tuple[Word, ...]:
    """The words of a topic, each in the forms in which it may be met.

    The first word of a sentence has a capital anyway; that of a title may be a name if few people use it.
    """
    cleaned = clean(thing)
    found = tokens(cleaned)
    code = code or language([token.lower() for token in found])
    kept = frozenset(terms(f"{cleaned} zzz", code))
    made: list[Word] = []
    for place, token in enumerate(found):
        for word in cut(token):
            stemmed = stem(word, code)
            if stemmed not in kept or (is_general(word) and not token[:1].isupper()):
                continue
            forms = {stemmed: 1.0, word: 1.0, synonyms().get(word, word): 1.0}
            if not word.isascii() and not unspaced(word):
                forms |= dict.fromkeys(stems(word), 1.0)
            near = related(stemmed, code)
            forms |= {other: 1.0 if by >= _SURE else by for other, by in near if by >= _LOOSE and other not in forms}
            marked = not word.isalpha() or (len(token) > 1 and not token[1:].islower())
            is_name = (
                not unspaced(word)
                and any(map(str.isalpha, word))
                and (marked or (token[:1].isupper() and (place > 0 or (is_title and count(word) > 1))))
            )
            made.append(Word(stemmed, forms, is_name, token[:1].isupper() and word in _ALSO_WORDS))
    return tuple(made)


def _forms(text: str, code: str) -> tuple[set[str], frozenset[str]]:
    """Every form in which the words of a text are known, and those of the words with a capital letter."""
    found = tokens(clean(text))
    code = code or language([token.lower() for token in found])
    known = synonyms()
    forms: set[str] = set()
    capitals: set[str] = set()
    for token in found:
        for word in cut(token):
            forms.add(word)
            forms.add(known.get(word, word))
            if word.isascii() and word.isalpha():
                forms.add(stem(word, code))
            elif not unspaced(word):
                forms.update(stems(word) if word.isalpha() else terms(word, code))
            if token[0].isupper():
                capitals.update((word, stem(word, code)))
    return forms, frozenset(capitals)


# items


def _text_of(number: int, item: Any, code: str) -> _Text:
    """What an item is about: its title and topics, and what else it says."""
    if isinstance(item, str):
        head, _, body = _plain(item[: _HEAD + _BODY]).partition("\n")
        return _Text(head[:_HEAD], head[_HEAD:] + body, code)
    if isinstance(item, bytes) or item is None:
        raise InvalidInputError(f"items[{number}]", f"must be text or have a title, not {type(item).__name__}")
    if isinstance(item, Mapping):
        given = [item.get(name) for name in ("title", "text", "topics")]
    else:
        given = [getattr(item, name, None) for name in ("title", "text", "topics")]
    title, text, topics = given
    if isinstance(topics, str):
        topics = [topics]
    if not (title or text or topics) or not isinstance(title or "", str) or not isinstance(text or "", str):
        raise InvalidInputError(f"items[{number}]", "must be text, or have a title, a text or topics, which are texts")
    if not isinstance(topics or [], list | tuple) or not all(isinstance(topic, str) for topic in topics or []):
        raise InvalidInputError(f"items[{number}].topics", "must be a list of short texts")
    named = ", ".join([(title or "")[:_HEAD], *(topic[:100] for topic in list(topics or [])[:20])])
    body = _plain((text or "")[:_BODY])
    return _Text(_plain(named) if title or topics else body[:_HEAD], body, code)


def _plain(text: str) -> str:
    return _TAG.sub(" ", check.query("items", text))
