"""Ranking of documents: the signals, and how they are added up.

Words come first: the BM25 score of a document, plus half of what was said right before and after it. Every other signal
is a number from 0 to 1 with a weight, in units of the best score by words, so that a weight of 0.5 means half as much
as the best match. All of them are added; none multiplies, because a factor would bury what only an old or unimportant
memory knows. Where only words match, the sum is plain BM25.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import numpy as np
from numpy.typing import NDArray

from recollect.search.dates import Span
from recollect.search.index.columns import microseconds
from recollect.search.index.index import Index
from recollect.search.question import Question
from recollect.search.weights import Weights

Floats = NDArray[np.float32]
Numbers = NDArray[np.intp]

_MOST_WORDS = 64
"""The number of words of a query that count: the rarest."""
_DAY = 86_400_000_000
_NOTHING = 1e-9
_FEW_WORDS = 3
"""So few words do not reveal the language of a question."""
_POOR = 0.2
"""A session whose best match is below this share of the best of all is ignored."""
_FAR = 0.05
"""Closeness in time below this is none."""
_ALIKE = 0.5
"""A similarity above this counts for a document that has none of the words."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best documents, best first: their numbers, their totals, and the value of each signal."""

    numbers: Numbers
    totals: Floats
    signals: dict[str, Floats]


def rank_documents(
    index: Index,
    question: Question,
    fits: NDArray[np.bool_],
    most: int,
    *,
    similarity: Floats | None = None,
    usual: float | None = None,
    weights: Weights | None = None,
) -> Ranking:
    """Return the best ``most`` of the matching documents. ``similarity`` is NaN where a document has no vector.

    ``usual`` is the similarity of an average document, if those in the index are not representative.
    """
    weights = Weights() if weights is None else weights
    lexical = _lexical(index, question)
    lexical *= fits
    message = index.code("kind", "message")
    talks = message is not None and bool((fits & (index.kind == message)).any())
    around = lexical
    if talks:
        around = index.with_neighbours(lexical, weights.neighbours)
        around *= fits
    unit = float(around.max(initial=0.0)) or 1.0
    base, content = _about_content(index, question, fits, around, unit, similarity, usual, weights)
    beside = _ContextSignals(index, question, lexical, unit, weights, talks)
    rows = _contenders(base, most, beside)
    found = {"words": lexical[rows]}
    if talks:
        found["neighbours"] = around[rows] - found["words"]
    found |= {name: values[rows] for name, values in content.items()} | beside.signals(rows)
    totals = np.zeros(len(rows), dtype=np.float32)
    for given in found.values():
        totals += given
    order = _best(index, rows, totals, most)
    return Ranking(rows[order], totals[order], {name: values[order] for name, values in found.items()})


def _about_content(
    index: Index,
    question: Question,
    fits: NDArray[np.bool_],
    around: Floats,
    unit: float,
    similarity: Floats | None,
    usual: float | None,
    weights: Weights,
) -> tuple[Floats, dict[str, Floats]]:
    """Return the content score of each document, 0 where nothing matches, and the signals other than words."""
    signals: dict[str, Floats] = {}
    if not question.spans and similarity is None:
        return around, signals
    speaks = around > 0
    if question.spans:
        said = _closeness(question.spans, index.said_at, index.said_at)
        event = _closeness(question.spans, index.event_from, index.event_until - 1)
        speaks |= (said > 0) | (event > 0)
        signals["date"] = said * np.float32(weights.date * unit)
        signals["event"] = event * np.float32(weights.event * unit)
    if similarity is not None:
        near = _relative(similarity, fits, usual)
        speaks |= near > _ALIKE
        # a document without a vector yet must not lose against one that has it: its words stand in for it
        missing = np.isnan(near)
        signals["vector"] = np.where(missing, np.float32(0), near) * np.float32(weights.vector * unit)
        signals["unembedded"] = np.where(missing, around, np.float32(0)) * np.float32(weights.vector)
    base = around.copy()
    for values in signals.values():
        base += values
    return base * (speaks & fits), signals


class _ContextSignals:
    """The signals other than content: who said it, where, and how much it matters. Computed only where needed."""

    def __init__(
        self, index: Index, question: Question, lexical: Floats, unit: float, weights: Weights, talks: bool
    ) -> None:
        self._index, self._question, self._unit, self._weights = index, question, unit, weights
        self._talks = talks
        self._assistant = index.code("role", "assistant")
        self._lexical = lexical
        self._best_of: Floats | None = None

    @property
    def most(self) -> float:
        """The maximum that they can add."""
        weights, question = self._weights, self._question
        active = [weights.importance / 2]
        if self._talks:
            active += [weights.session, weights.asks, weights.speaker * (len(question.names) == 1)]
            active += [weights.person * (self._assistant is not None and not question.of_assistant)]
        active += [weights.when * question.asks_when, weights.latest * question.wants_latest]
        return self._unit * sum(max(weight, 0.0) for weight in active)

    def signals(self, rows: Numbers) -> dict[str, Floats]:
        index, question, weights, unit = self._index, self._question, self._weights, self._unit
        signals = self._of_conversation(rows) if self._talks else {}
        if question.asks_when:
            signals["when"] = index.tells_when[rows] * np.float32(weights.when * unit)
        if question.wants_latest:
            signals["latest"] = _recency(index.said_at, rows) * np.float32(weights.latest * unit)
        signals["importance"] = (index.importance[rows] - np.float32(0.5)) * np.float32(weights.importance * unit)
        signals["confidence"] = (index.confidence[rows] - np.float32(1.0)) * np.float32(weights.confidence * unit)
        return signals

    def _of_conversation(self, rows: Numbers) -> dict[str, Floats]:
        """Return the signals of the conversation for its messages. Any other record stands for itself."""
        index, question, weights, unit = self._index, self._question, self._weights, self._unit
        signals: dict[str, Floats] = {}
        best = self._best_of_sessions()
        top = float(self._lexical.max(initial=0.0)) or 1.0
        where = index.session[rows]
        session = np.where(where >= 0, best[where], self._lexical[rows])
        signals["session"] = session * np.float32(weights.session * unit / top)
        if len(question.names) == 1:
            codes = [code for code, words in enumerate(index.speakers()) if question.names[0] in words]
            signals["speaker"] = np.isin(index.speaker[rows], codes) * np.float32(weights.speaker * unit)
        if self._assistant is not None and not question.of_assistant:
            signals["person"] = (index.role[rows] != self._assistant) * np.float32(weights.person * unit)
        asking = index.asks[rows] & (index.kind[rows] == index.code("kind", "message"))
        signals["asks"] = asking * np.float32(weights.asks * unit)
        return signals

    def _best_of_sessions(self) -> Floats:
        """Return the best score by words in each session, 0 for a poor one; the last, for none, is not used."""
        if self._best_of is None:
            found = np.flatnonzero(self._lexical > _POOR * self._lexical.max(initial=0.0))
            self._best_of = np.zeros(self._index.sessions + 1, dtype=np.float32)
            np.maximum.at(self._best_of, self._index.session[found], self._lexical[found])
        return self._best_of


def _contenders(base: Floats, most: int, beside: _ContextSignals) -> Numbers:
    """Return the documents that can be among the best: no other signal could lift another one above them."""
    best = float(base.max(initial=0.0))
    least = best / 2
    while np.count_nonzero(base >= least) < most and least > best / 64:
        least /= 2
    likely = np.flatnonzero(base >= max(least, _NOTHING))
    if len(likely) >= most:
        totals = base[likely]
        for values in beside.signals(likely).values():
            totals += values
        least = float(np.partition(totals, len(totals) - most)[len(totals) - most]) - beside.most
    else:
        least = 0.0
    return np.flatnonzero(base >= max(least, _NOTHING))


def asked_words(index: Index, words: Sequence[str], question: Question) -> dict[str, float]:
    """Return the words of a question, and what other languages make of them, with their weights before rarity."""
    gains: dict[str, float] = dict(Counter(words))
    for word, stems in _other_stems(index, words, question).items():
        times = gains[word]
        gains |= {stem: times * weight for stem, weight in stems.items() if stem == word or stem not in gains}
    return gains


def rarities(index: Index, question: Question) -> list[float]:
    """Return the rarity of each word of a question, in whichever language it is most common."""
    stems = _other_stems(index, question.words, question)
    return index.idf(
        [max(stems[word], key=stems[word].__getitem__) if word in stems else word for word in question.words]
    )


def _other_stems(index: Index, words: Sequence[str], question: Question) -> dict[str, dict[str, float]]:
    """Return the stems of words in other languages: of unknown words, and of all if there are too few to tell which."""
    among = words if len(words) <= _FEW_WORDS else index.unknown(words)
    return index.other_stems({word: question.otherwise[word] for word in among if word in question.otherwise})


def _lexical(index: Index, question: Question) -> Floats:
    """Return the score by words. A speaker's name counts for records other than messages, where it is only a word."""
    words = list(question.words)
    if len(words) > _MOST_WORDS:
        rarest = sorted(zip(index.idf(words), words, strict=True), reverse=True)
        words = list(dict.fromkeys(word for _, word in rarest))[:_MOST_WORDS]
    gains = asked_words(index, words, question)
    for word, weight, _ in question.related:
        gains[word] = gains.get(word, 0.0) + weight
    scores = index.scores(list(gains), list(gains.values()))
    if question.name_words:
        scores += index.scores(question.name_words) * (index.kind != index.code("kind", "message"))
    return scores


def _closeness(spans: Sequence[Span], first: NDArray[np.int64], last: NDArray[np.int64]) -> Floats:
    """Return from 0 to 1 how near times, from a first to a last moment, are to the nearest span."""
    closest = np.zeros(len(first), dtype=np.float32)
    for span in spans:
        begin, end, slack = microseconds(span.start), microseconds(span.end), _slack(span)
        gap = np.maximum(np.maximum(begin - last.astype(np.float64), first.astype(np.float64) - (end - 1)), 0.0)
        gap[gap > 0] += _DAY / 2  # the day next to it is not that day
        near = np.exp(gap / -slack).astype(np.float32)
        near[near < _FAR] = 0.0
        np.maximum(closest, near * np.float32(1.0 if span.certain else 0.5), out=closest)
    return closest


def _slack(span: Span) -> float:
    """Return the tolerance of a span: what is said soon after may be about it; for a month a day hardly matters."""
    return min(max((microseconds(span.end) - microseconds(span.start)) / 4, _DAY), 30 * _DAY)


def reach(span: Span) -> tuple[datetime, datetime]:
    """Return the time outside of which nothing is close to a span any more."""
    far = timedelta(microseconds=-math.log(_FAR) * _slack(span))
    return shift_within_calendar(span.start, -far), shift_within_calendar(span.end, far)


def shift_within_calendar(moment: datetime, distance: timedelta) -> datetime:
    """Return a time at a distance, or the end of the calendar."""
    try:
        return moment + distance
    except OverflowError:
        return (datetime.min if distance < timedelta(0) else datetime.max).replace(tzinfo=timezone.utc)


def _recency(said_at: NDArray[np.int64], rows: Numbers) -> Floats:
    """Return from 0, for the oldest of all, to 1, for the newest."""
    oldest, newest = int(said_at.min()), int(said_at.max())
    recent: Floats = ((said_at[rows] - oldest) / max(newest - oldest, 1)).astype(np.float32)
    return recent


def _relative(similarity: Floats, fits: NDArray[np.bool_], usual: float | None) -> Floats:
    """Scale similarities from 0, for the usual one, to 1, for the best."""
    known = similarity[fits & ~np.isnan(similarity)]
    if not len(known):
        return np.full_like(similarity, np.nan)
    usual, best = float(known.mean()) if usual is None else usual, float(known.max())
    scaled: Floats = (similarity - np.float32(usual)) / np.float32(max(best - usual, 1e-6))
    return np.clip(scaled, 0.0, 1.0, out=scaled)


def _best(index: Index, rows: Numbers, totals: Floats, most: int) -> Numbers:
    """Return the places of the highest totals; of equals the later one said, then the smaller id."""
    if len(rows) > most:
        least = np.partition(totals, len(rows) - most)[len(rows) - most]
        places = np.flatnonzero(totals >= least)
    else:
        places = np.arange(len(rows))
    said = index.said_at[rows[places]]
    order = np.lexsort((-said, -totals[places]))
    places, said = places[order], said[order]
    same = (totals[places[1:]] == totals[places[:-1]]) & (said[1:] == said[:-1])
    if same.any():
        keys = zip((-totals[places]).tolist(), (-said).tolist(), index.ids(rows[places]), places.tolist(), strict=True)
        places = np.array([place for *_, place in sorted(keys)], dtype=np.intp)
    return places[:most]
