"""Which documents answer a question best: the signals, and how they are added up.

Words come first: the BM25 score of a document, plus half of what was said right before and after it. Every other
signal is a number from 0 to 1 with a weight, in units of the best score by words, so that a weight of 0.5 means
half as much as the best match. All of them are added; none multiplies, because a factor would bury what an old or
unimportant memory alone knows. Where nothing but words speaks, the sum is plain BM25.

Knows nothing about databases and embedders: it takes an index, a question, and similarities if there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.search.columns import microseconds
from recollect.search.dates import Span
from recollect.search.index import Index
from recollect.search.question import Question
from recollect.search.weights import Weights

Floats = NDArray[np.float32]
Numbers = NDArray[np.intp]

_MOST_WORDS = 64
"""Of a longer query only the rarest words count."""
_DAY = 86_400_000_000
_FAR = 0.05
"""Closeness in time below this is none."""
_ALIKE = 0.5
"""A similarity above this speaks for a document that has none of the words."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best documents, best first: their numbers, their sums, and what each signal gave to each."""

    numbers: Numbers
    totals: Floats
    signals: dict[str, Floats]


def rank(
    index: Index,
    question: Question,
    fits: NDArray[np.bool_],
    most: int,
    *,
    similarity: Floats | None = None,
    weights: Weights | None = None,
) -> Ranking:
    """The best ``most`` of the documents that fit. ``similarity`` is NaN where a document has no vector."""
    weights = Weights() if weights is None else weights
    lexical = _lexical(index, question)
    message = index.code("kind", "message")
    talks = message is not None and bool((fits & (index.kind == message)).any())
    around = _with_neighbours(index, lexical, weights.neighbours) if talks else lexical
    around = around * fits
    said = event = None
    if question.spans:
        said = _closeness(question.spans, index.said_at, index.said_at)
        event = _closeness(question.spans, index.event_from, index.event_until - 1)
    near = None if similarity is None else _relative(similarity, fits)
    rows = _worth_ranking(around, (said, event), near, fits)
    best = float(around.max(initial=0.0))
    unit = best or 1.0
    own = lexical[rows]
    signals: dict[str, Floats] = {"words": own}
    if talks:
        signals["neighbours"] = around[rows] - own
        signals |= _of_conversation(index, question, rows, lexical * fits, unit, weights)
    if near is not None:
        # what has no vector yet must not lose against what has one: its words stand in for it
        known = np.where(np.isnan(near[rows]), around[rows] / unit, near[rows])
        signals["vector"] = known.astype(np.float32) * np.float32(weights.vector * unit)
    if said is not None and event is not None:
        signals["date"] = said[rows] * np.float32(weights.date * unit)
        signals["event"] = event[rows] * np.float32(weights.event * unit)
    if question.asks_when:
        signals["when"] = index.tells_when[rows] * np.float32(weights.when * unit)
    if question.wants_latest and len(rows):
        signals["latest"] = _recency(index.said_at[rows]) * np.float32(weights.latest * unit)
    signals["importance"] = (index.importance[rows] - np.float32(0.5)) * np.float32(weights.importance * unit)
    signals["confidence"] = (index.confidence[rows] - np.float32(1.0)) * np.float32(weights.confidence * unit)
    totals = np.zeros(len(rows), dtype=np.float32)
    for given in signals.values():
        totals += given
    order = _best(index, rows, totals, most)
    return Ranking(rows[order], totals[order], {name: values[order] for name, values in signals.items()})


def _lexical(index: Index, question: Question) -> Floats:
    """The score by words. A name that is a speaker's counts where nobody speaks: there it is only a word."""
    words = list(question.words)
    if len(words) > _MOST_WORDS:
        rarest = sorted(zip(index.idf(words), words, strict=True), reverse=True)
        words = list(dict.fromkeys(word for _, word in rarest))[:_MOST_WORDS]
    gains = [1.0] * len(words) + [weight for _, weight, _ in question.related]
    scores = index.scores([*words, *(word for word, _, _ in question.related)], gains)
    if question.name_words:
        scores += index.scores(question.name_words) * (index.kind != index.code("kind", "message"))
    return scores


def _with_neighbours(index: Index, lexical: Floats, share: float) -> Floats:
    padded = np.append(lexical, np.float32(0))  # -1, for no neighbour, is the last
    around: Floats = padded[index.previous] + padded[index.following]
    around *= np.float32(share)
    around += lexical
    return around


def _of_conversation(
    index: Index, question: Question, rows: Numbers, lexical: Floats, unit: float, weights: Weights
) -> dict[str, Floats]:
    """What the conversation says of its messages. Any other record stands for itself."""
    signals: dict[str, Floats] = {}
    sessions = index.session
    own = lexical[rows]
    found = np.flatnonzero(lexical)
    best = np.zeros(int(sessions.max(initial=-1)) + 2, dtype=np.float32)
    np.maximum.at(best, sessions[found], lexical[found])
    top = float(best.max(initial=0.0)) or 1.0
    where = sessions[rows]
    session = np.where(where >= 0, best[where], own)
    signals["session"] = session * np.float32(weights.session * unit / top)
    is_message = index.kind[rows] == index.code("kind", "message")
    if len(question.names) == 1:
        codes = [code for code, words in enumerate(index.speakers()) if question.names[0] in words]
        signals["speaker"] = np.isin(index.speaker[rows], codes) * np.float32(weights.speaker * unit)
    assistant = index.code("role", "assistant")
    if assistant is not None and not question.of_assistant:
        signals["person"] = (index.role[rows] != assistant) * np.float32(weights.person * unit)
    signals["asks"] = (index.asks[rows] & is_message) * np.float32(weights.asks * unit)
    return signals


def _closeness(spans: Sequence[Span], first: NDArray[np.int64], last: NDArray[np.int64]) -> Floats:
    """From 0 to 1: how near times, from a first to a last moment, are to the nearest of the spans."""
    closest = np.zeros(len(first), dtype=np.float32)
    for span in spans:
        begin, end = microseconds(span.start), microseconds(span.end)
        # what is said soon after may still be about it; a day more or less hardly matters for a month
        slack = min(max((end - begin) / 4, _DAY), 30 * _DAY)
        gap = np.maximum(np.maximum(begin - last.astype(np.float64), first.astype(np.float64) - (end - 1)), 0.0)
        gap[gap > 0] += _DAY / 2  # the day next to it is not that day
        near = np.exp(gap / -slack).astype(np.float32)
        near[near < _FAR] = 0.0
        np.maximum(closest, near * np.float32(1.0 if span.certain else 0.5), out=closest)
    return closest


def _recency(said: NDArray[np.int64]) -> Floats:
    """From 0, for the oldest, to 1, for the newest."""
    oldest, newest = int(said.min()), int(said.max())
    recent: Floats = ((said - oldest) / max(newest - oldest, 1)).astype(np.float32)
    return recent


def _relative(similarity: Floats, fits: NDArray[np.bool_]) -> Floats:
    """Similarities from 0, for the usual one, to 1, for the best."""
    known = similarity[fits & ~np.isnan(similarity)]
    if not len(known):
        return np.full_like(similarity, np.nan)
    usual, best = float(known.mean()), float(known.max())
    scaled: Floats = (similarity - np.float32(usual)) / np.float32(max(best - usual, 1e-6))
    return np.clip(scaled, 0.0, 1.0, out=scaled)


def _worth_ranking(
    around: Floats, times: Sequence[Floats | None], near: Floats | None, fits: NDArray[np.bool_]
) -> Numbers:
    """The documents that some signal about their content speaks for."""
    speaks = around > 0
    for time in times:
        if time is not None:
            speaks |= time > 0
    if near is not None:
        speaks |= near > _ALIKE
    return np.flatnonzero(speaks & fits)


def _best(index: Index, rows: Numbers, totals: Floats, most: int) -> Numbers:
    """The places of the highest totals; of equals the later one said, then the smaller id."""
    places = np.arange(len(rows))
    if len(rows) > most:
        least = np.partition(totals, len(rows) - most)[len(rows) - most]
        places = np.flatnonzero(totals >= least)
    said = index.said_at[rows[places]]
    places = places[np.lexsort((-said, -totals[places]))]
    chosen: list[Any] = sorted(
        places[: 4 * most].tolist(),
        key=lambda place: (-totals[place], -index.said_at[rows[place]], index.id_of(int(rows[place]))),
    )
    return np.array(chosen[:most], dtype=np.intp)
