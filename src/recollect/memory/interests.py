"""The person's interests, and ranking of items by them.

An opinion is a topic, whether the person is for or against it, how strongly, and which memory says so. Opinions come
from records (what a statement says is liked, disliked or being worked on) and from interactions (saves, reactions,
reads, discussions). Only records that share a word with one of the items are read, found by the search index. An item
is data: nothing in it is followed, stored or logged.
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
from recollect.memory.chat_scope import visible_chats
from recollect.memory.references import line_text, reports_change
from recollect.memory.search import MEMORY_KINDS
from recollect.memory.user_memory import UserMemory
from recollect.policy.duplicates.vocabulary import english_synonyms
from recollect.policy.injection import neutral
from recollect.policy.preferences import against_words, is_general, likings, sign_of, speaks_against
from recollect.records import USER_EDIT, DailyEntry, Episode, Interaction, Note, Record
from recollect.search.concepts import related_stems
from recollect.search.filters import Filter
from recollect.store.contract import Query, Reader, State
from recollect.text import clean, detect_language, stem, stems, terms, token_words, tokens, unspaced

_HEAD, _BODY = 500, 1_500  # characters of an item that are read
_STATEMENT = 600  # characters of a record
_AT_ONCE = 500
_MOST_RECORDS = 2_000  # of those that are not against anything
_MOST_EVENTS = 2_000
_EVENT_DAYS, _HALF_LIFE = 180, 90
_LONG = 5  # words: in longer titles only names say what it is about
_MOST_REASONS = 3
_SHOWN = 100
_SURE, _LOOSE = 0.8, 0.4  # similarity of a related word to be the same thing, and to be of the same sort
_IN_BODY = 0.5  # a mere mention counts half

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
"""Names that are also ordinary words: in lower case, in a text that has capitals, they are not meant."""
_TAG = re.compile(r"<(?:script|style)\b.{0,20000}?</(?:script|style)>|<[/!]?[a-zA-Z][^<>]{0,500}>", re.S | re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A reason for an item's position in words, and the ids of the records or interactions behind it."""

    text: str
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A ranked item. ``position`` is where it was given, from 0.

    ``score`` is from -1 to 1: above 0 the person cares about it, below 0 it is against their taste, from -0.5 down they
    said so themselves; 0 if nothing is known.
    """

    item: Any
    position: int
    score: float
    reasons: tuple[Reason, ...] = ()

    @property
    def why(self) -> str:
        return "; ".join(reason.text for reason in self.reasons)


class OpinionWord(NamedTuple):
    """A word of a topic: the forms it is known by, each with its similarity."""

    stem: str
    forms: Mapping[str, float]
    is_name: bool
    cased: bool
    """True if it must be written with a capital."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """A person's opinion of a topic. ``said`` if they stated it and did not only act like it."""

    thing: str
    words: tuple[OpinionWord, ...]
    sign: int
    strength: float
    said: bool
    reason: Reason

    @property
    def needed(self) -> int:
        """The number of its words a text must have, unless it has one that is a name."""
        number = len(self.words)
        if self.sign < 0 or number < 3:
            return number
        return number // 2 + 1


class _ItemText:
    """An item prepared for comparison: the weight of each word form in it."""

    __slots__ = ("capitals", "forms", "head")

    def __init__(self, head: str, body: str, code: str) -> None:
        beside, small_print = _forms(body, code)
        self.head, capitals = _forms(head, code)
        self.forms = dict.fromkeys(beside, _IN_BODY) | dict.fromkeys(self.head, 1.0)
        self.capitals = capitals | small_print


class _OpinionIndex:
    """Opinions indexed by their rare words, so that common words cost nothing."""

    def __init__(self, opinions: Iterable[Opinion]) -> None:
        self._opinions = list(opinions)
        often = Counter(word.stem for opinion in self._opinions for word in opinion.words)
        self._plain: dict[str, list[int]] = {}
        self._signed: dict[str, list[int]] = {}
        for number, opinion in enumerate(self._opinions):
            places = self._signed if opinion.sign else self._plain
            for form in {form for word in _anchors(opinion, often) for form in word.forms}:
                places.setdefault(form, []).append(number)

    def matching(self, text: _ItemText) -> Iterator[tuple[Opinion, float]]:
        """Yield the opinions that a text concerns, each with a certainty.

        A topic that the person only mentioned must be in the title; a word in passing proves nothing.
        """
        likely = {number for form in text.forms.keys() & self._signed.keys() for number in self._signed[form]}
        likely.update(number for form in text.head & self._plain.keys() for number in self._plain[form])
        for number in sorted(likely):
            opinion = self._opinions[number]
            if quality := _quality(opinion, text):
                yield opinion, quality


def _anchors(opinion: Opinion, often: Mapping[str, int]) -> list[OpinionWord]:
    """Return the words of a topic of which at least one must match: the rarest, and the names."""
    rarest = sorted(opinion.words, key=lambda word: often[word.stem])[: len(opinion.words) - opinion.needed + 1]
    return rarest + [word for word in opinion.words if word.is_name and opinion.sign >= 0]


def rank_items(
    memory: UserMemory, reader: Reader, items: Iterable[Any], limit: int | None = None, *, within: int | None = None
) -> list[Ranked]:
    """Return the items, what the person cares about first, what they dislike last, equals in the given order."""
    if not isinstance(items, Iterable):
        raise InvalidInputError(
            "items", f"must be a list of texts or of things with a title, not {type(items).__name__}"
        )
    given = [items] if isinstance(items, str | bytes | Mapping) else list(islice(items, MAX_ITEMS + 1))
    if len(given) > MAX_ITEMS:
        raise InvalidInputError("items", f"has too many entries; rank at most {MAX_ITEMS:,} at a time")
    most = None if limit is None else check.check_positive("limit", limit)
    code = memory.config.language
    texts = [_item_text(number, item, code) for number, item in enumerate(given)]
    state = reader.state() if within is None else replace(reader.state(), seq=within)
    if state.mode == "incognito":
        return _unranked(given, "memory is incognito")[:most]
    asked = frozenset(form for text in texts for form in text.forms)
    opinions = opinions_about(memory, reader, state, asked, within=within is not None)
    if not opinions and not any(reader.count().values()) and not reader.interactions(limit=1):
        return _unranked(given, "nothing is known about you yet")[:most]
    known = _OpinionIndex(opinions)
    ranked = []
    for position, (item, text) in enumerate(zip(given, texts, strict=True)):
        score, reasons = _score_item(known.matching(text))
        ranked.append(Ranked(item=item, position=position, score=score, reasons=reasons))
    ranked.sort(key=lambda one: -one.score)
    return ranked[:most]


def _unranked(items: Sequence[Any], why: str) -> list[Ranked]:
    told = (Reason(text=f"{why}, so the order is as given"),)
    return [Ranked(item=item, position=position, score=0.0, reasons=told) for position, item in enumerate(items)]


def _score_item(opinions: Iterable[tuple[Opinion, float]]) -> tuple[float, tuple[Reason, ...]]:
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


def _quality(opinion: Opinion, text: _ItemText) -> float:
    """Return how well a topic fits: all its words; for a liked one, a name in it or most of its words."""
    matches = [_match(word, text) for word in opinion.words]
    least = min(matches)
    if least or opinion.sign < 0:
        return least
    if names := [match for match, word in zip(matches, opinion.words, strict=True) if word.is_name and match]:
        return 0.6 * max(names)
    found = [match for match in matches if match]
    return 0.5 * sum(found) / len(found) if len(found) >= opinion.needed else 0.0


def _match(word: OpinionWord, text: _ItemText) -> float:
    """Return how certain it is that a text is about this word."""
    met = word.forms.keys() & text.forms.keys()
    if met and word.cased and text.capitals:
        met &= text.capitals
    return max([word.forms[form] * text.forms[form] for form in met]) if met else 0.0


# opinions from records


def opinions_about(
    memory: UserMemory, reader: Reader, state: State, words: frozenset[str], *, within: bool = False
) -> list[Opinion]:
    """Return the person's opinions of anything that has one of these words."""
    now = memory.clock()
    found: dict[frozenset[str], tuple[datetime, Opinion]] = {}
    several: list[Opinion] = []
    code = memory.config.language
    for record in _matching_records(memory, reader, state, words, within=within):
        for opinion in opinions_of(record, now, code):
            if not opinion.sign:
                several.append(opinion)
                continue
            # somebody who liked it and no longer does has said both: the later one holds
            key = frozenset(word.stem for word in opinion.words)
            if key not in found or found[key][0] < record.updated_at:
                found[key] = record.updated_at, opinion
    return [opinion for _, opinion in found.values()] + several + _opinions_from_interactions(reader, now, code)


def _matching_records(
    memory: UserMemory, reader: Reader, state: State, words: frozenset[str], *, within: bool
) -> Iterator[Record]:
    """Yield the records that share a word with the items, as the search index knows them."""
    import numpy as np  # here, not above: importing loads nothing

    wider = set(words)
    for word in words:
        wider.update(other for other, _ in related_stems(word))
        if not word.isascii():
            wider.update(stems(word))
    opposed = sorted({form for word in against_words() for form in stems(word)})
    where = Filter(kinds=MEMORY_KINDS, chats=visible_chats(reader), alive_at=memory.clock())
    with memory.index.using(reader, state, in_write=within) as index:
        index.gather_words(sorted(wider), opposed, where, _MOST_RECORDS)
        fits = index.select(where)
        scores = index.scores(sorted(wider)) * fits
        against = index.scores(opposed) > 0
        numbers = np.flatnonzero(scores > 0)
        if len(numbers) > _MOST_RECORDS:
            facts = index.kind[numbers] == index.code("kind", "fact")
            weighed = scores[numbers] * (1 + facts)
            weighed[against[numbers]] = np.inf  # dislikes are never left out
            least = np.partition(weighed, len(weighed) - _MOST_RECORDS)[len(weighed) - _MOST_RECORDS]
            numbers = numbers[weighed >= least]
        ids = index.ids(numbers)
    for begin in range(0, len(ids), _AT_ONCE):
        yield from reader.find(Query(ids=ids[begin : begin + _AT_ONCE]))


def opinions_of(record: Record, now: datetime, code: str = "") -> Iterator[Opinion]:
    """Yield what a record says the person cares about."""
    if isinstance(record, DailyEntry) and record.section == "Reading Activity":
        return  # the interactions themselves say it better
    if reports_change(record):
        return  # so does the record
    if isinstance(record, Episode) and record.valence == "negative":
        return  # that it went badly says nothing about the topic
    if record.kind == "fact" and record.key in _NO_TOPIC:
        return
    strength = _KINDS.get(record.kind, 0.5) * record.confidence * (1.0 if record.trusted else 0.5)
    if record.kind in ("daily", "episode"):
        strength *= _fading(record.valid_from, now)
    stated = record.source.partition(":")[0] in _SAID and record.category != "reading_history"
    said = record.trusted and (record.kind == "fact" or stated)
    for thing, sign, is_title in _topics_of_record(record, code):
        words = opinion_words(thing, code, is_title=is_title)
        weight = 1.0 if sign else _CATEGORIES.get(record.category or "", _SPOKEN_OF)
        if not sign and len(words) > _LONG:
            words, weight = tuple(word for word in words if word.is_name), weight / 2
        if words:
            reason = Reason(text=_explain_opinion(record, thing, sign), ids=(record.id,))
            yield Opinion(thing, words, sign, strength * weight, said, reason)


def _topics_of_record(record: Record, code: str) -> Iterator[tuple[str, int, bool]]:
    """Yield the things a record is about, the opinion of each, and whether it is the title."""
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


def _explain_opinion(record: Record, thing: str, sign: int) -> str:
    shown = _short(thing)
    said = "you said you " if record.trusted and record.source.partition(":")[0] in _SAID else "you "
    if sign:
        return f"{said}{'like' if sign > 0 else 'dislike'} {shown}"
    if isinstance(record, Episode):
        return f'you discussed "{_short(record.topic or record.content)}"'
    if isinstance(record, Note):
        return f'you noted "{_short(record.title or record.content)}"'
    text = line_text(record)
    if record.category == "work_context":
        return f'it is about your work: "{_short(text)}"'
    return f'you are known for: "{_short(text)}"' if record.kind == "fact" else f'"{_short(text)}"'


def _short(text: str) -> str:
    line = neutral(text[: 4 * _SHOWN])
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1].rstrip() + "…"


# opinions from interactions


def _opinions_from_interactions(reader: Reader, now: datetime, code: str) -> list[Opinion]:
    """Return the topics that saves, reactions, reads and discussions show many signs for, or many against."""
    since = now - timedelta(days=_EVENT_DAYS)
    events = reader.interactions(since=since, kinds=tuple(_EVENTS), newest_first=True, limit=_MOST_EVENTS)
    about: dict[frozenset[str], tuple[str, tuple[OpinionWord, ...], dict[str, Interaction]]] = {}
    named: set[frozenset[str]] = set()
    for event in events:
        for thing in event.topics or title_words(event.title or "", code):
            words = opinion_words(thing, code)
            key = frozenset(word.stem for word in words)
            if key:
                of_topic = about.setdefault(key, (thing, words, {}))[2]
                of_topic.setdefault(f"{event.kind} {event.item or event.title}", event)
                if event.topics:
                    named.add(key)
    found = []
    for key, (thing, words, once) in about.items():
        if key not in named and len(once) < 2:
            continue  # a word of one title is not a topic
        plus = [event for event in once.values() if not speaks_against(event.value)]
        minus = [event for event in once.values() if speaks_against(event.value)]
        gain, loss = _interaction_weight(plus, now), _interaction_weight(minus, now)
        if gain >= 2 * loss and gain:
            found.append(_opinion_from_events(thing, words, 1, gain - loss, plus))
        elif loss >= 2 * gain:
            found.append(_opinion_from_events(thing, words, -1, loss - gain, minus))
    return found


def title_words(title: str, code: str) -> list[str]:
    """Return the words of a title that may be its topic."""
    found = tokens(clean(title))
    code = code or detect_language([token.lower() for token in found])
    kept = frozenset(terms(f"{title} zzz", code))
    return [
        token
        for token in dict.fromkeys(found)
        if len(token) > 2 and any(stem(word, code) in kept and not is_general(word) for word in token_words(token))
    ]


def _interaction_weight(events: Iterable[Interaction], now: datetime) -> float:
    return sum(_EVENTS[event.kind] * _fading(event.at, now) for event in events)


def _opinion_from_events(
    thing: str, words: tuple[OpinionWord, ...], sign: int, signs: float, events: Sequence[Interaction]
) -> Opinion:
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


def opinion_words(thing: str, code: str = "", *, is_title: bool = False) -> tuple[OpinionWord, ...]:
    """Return the words of a topic, each in the forms in which it may occur.

    The first word of a sentence is capitalised anyway; that of a title may be a name if few people use it.
    """
    cleaned = clean(thing)
    found = tokens(cleaned)
    code = code or detect_language([token.lower() for token in found])
    kept = frozenset(terms(f"{cleaned} zzz", code))
    made: list[OpinionWord] = []
    for place, token in enumerate(found):
        for word in token_words(token):
            stemmed = stem(word, code)
            if stemmed not in kept or (is_general(word) and not token[:1].isupper()):
                continue
            forms = {stemmed: 1.0, word: 1.0, english_synonyms().get(word, word): 1.0}
            if not word.isascii() and not unspaced(word):
                forms |= dict.fromkeys(stems(word), 1.0)
            near = related_stems(stemmed, code)
            forms |= {other: 1.0 if by >= _SURE else by for other, by in near if by >= _LOOSE and other not in forms}
            marked = not word.isalpha() or (len(token) > 1 and not token[1:].islower())
            is_name = (
                not unspaced(word)
                and any(map(str.isalpha, word))
                and (marked or (token[:1].isupper() and (place > 0 or is_title)))
            )
            made.append(OpinionWord(stemmed, forms, is_name, token[:1].isupper() and word in _ALSO_WORDS))
    return tuple(made)


def _forms(text: str, code: str) -> tuple[set[str], frozenset[str]]:
    """Return every known form of the words of a text, and the forms of its capitalised words."""
    found = tokens(clean(text))
    code = code or detect_language([token.lower() for token in found])
    known = english_synonyms()
    forms: set[str] = set()
    capitals: set[str] = set()
    for token in found:
        for word in token_words(token):
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


def _item_text(number: int, item: Any, code: str) -> _ItemText:
    if isinstance(item, str):
        head, _, body = _strip_tags(item[: _HEAD + _BODY]).partition("\n")
        return _ItemText(head[:_HEAD], head[_HEAD:] + body, code)
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
        raise InvalidInputError(f"items[{number}]", "must be text, or have a title, text or topics")
    if not isinstance(topics or [], list | tuple) or not all(isinstance(topic, str) for topic in topics or []):
        raise InvalidInputError(f"items[{number}].topics", "must be a list of short texts")
    named = ", ".join([(title or "")[:_HEAD], *(topic[:100] for topic in list(topics or [])[:20])])
    body = _strip_tags((text or "")[:_BODY])
    return _ItemText(_strip_tags(named) if title or topics else body[:_HEAD], body, code)


def _strip_tags(text: str) -> str:
    return _TAG.sub(" ", check.check_query("items", text))
