"""How well memories are found: questions whose evidence is known, asked of a memory that was told the conversation.

Every turn is stored through the ordinary write path, as a message of its session, and every question is an ordinary
search. A hit at k is any evidence among the first k; coverage is the share of the evidence among the first 5.
"""

from __future__ import annotations

import math
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import recollect
from benchmarks.datasets import Conversation, Question, load
from recollect.errors import InvalidInputError
from recollect.memory.memory import Memory
from recollect.records import Written

CUTS = (1, 5, 10, 20)
_DEEP = 100  # ranked, so that sessions can be counted too
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_PEOPLE = frozenset({"user", "assistant"})


@dataclass(slots=True)
class Tally:
    """What came of some questions."""

    ranks: list[int | None] = field(default_factory=list)
    covered: list[float] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)

    def add(self, ranked: Sequence[str], evidence: set[str]) -> None:
        """One question: what was found, best first, and what should have been."""
        places = [place for place, found in enumerate(ranked) if found in evidence]
        self.ranks.append(places[0] if places else None)
        self.covered.append(sum(place < 5 for place in places) / len(evidence))
        ideal = sum(1 / math.log2(place + 2) for place in range(min(len(evidence), 10)))
        self.gains.append(sum(1 / math.log2(place + 2) for place in places if place < 10) / ideal)

    def summary(self) -> dict[str, float]:
        """The usual figures, in per cent."""
        number = len(self.ranks)
        found = {f"recall@{cut}": sum(r is not None and r < cut for r in self.ranks) / number for cut in CUTS}
        reciprocal = sum(0.0 if r is None else 1 / (r + 1) for r in self.ranks) / number
        shares = found | {
            "coverage@5": sum(self.covered) / number,
            "ndcg@10": sum(self.gains) / number,
            "mrr": reciprocal,
        }
        return {"questions": number} | {name: round(100 * share, 1) for name, share in shares.items()}


def measure(
    paths: Sequence[Path],
    *,
    embedder: str = "",
    weights: str = "",
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, Any]:
    """The figures of each file, by turn, by session, and by category, with the mean time of a search."""
    return {
        "embedder": embedder or "none",
        "weights": weights or "as shipped",
        "files": {path.name: _file(path, embedder, weights, progress) for path in paths},
    }


def _file(path: Path, embedder: str, weights: str, progress: Callable[[str, int, int], None] | None) -> dict[str, Any]:
    turns, sessions, categories = Tally(), Tally(), defaultdict[str, Tally](Tally)
    seconds: list[float] = []
    conversations = load(path)
    if not any(conversation.questions for conversation in conversations):
        raise InvalidInputError("data", f"{path.name} has no question whose evidence is in it")
    for done, conversation in enumerate(conversations):
        with (
            tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder,
            recollect.open(folder, embedder=embedder, weights=weights) as app,
        ):
            memory = app.user("bench")
            names = _tell(memory, conversation)
            if embedder:
                memory.embed()
            session_of = {item.id: item.session for item in conversation.items}
            memory.search("ready?", kinds=("message",))  # the index is built by the first search, and not timed
            for asked in conversation.questions:
                moment = _moment(asked, conversation)
                began = time.perf_counter()
                memory.search(asked.text, kinds=("message",), limit=CUTS[-1], now=moment)
                seconds.append(time.perf_counter() - began)
                hits = memory.search(asked.text, kinds=("message",), limit=_DEEP, now=moment)
                ranked = [names[hit.record.id] for hit in hits]
                evidence = session_of.keys() & set(asked.evidence)
                turns.add(ranked, evidence)
                categories[asked.category].add(ranked, evidence)
                by_session = list(dict.fromkeys(session_of[item] for item in ranked))
                sessions.add(by_session, {session_of[item] for item in evidence})
        if progress is not None:
            progress(path.name, done + 1, len(conversations))
    return {
        "conversations": len(conversations),
        "turns": turns.summary(),
        "sessions": sessions.summary(),
        "categories": {name: tally.summary() for name, tally in sorted(categories.items())},
        "search_ms": round(1000 * sum(seconds) / len(seconds), 2),
    }


def _tell(memory: Memory, conversation: Conversation) -> dict[str, str]:
    """Store every turn; the items by the ids of their records."""
    names = {}
    with memory.batch() as batch:
        for item in conversation.items:
            outcome = batch.say(
                _UNSEEN.sub(" ", item.text).strip() or "…",
                session=item.session,
                role="assistant" if item.speaker == "assistant" else "user",
                speaker=None if item.speaker in _PEOPLE or not item.speaker else item.speaker,
                said_at=item.date or None,
            )
            if isinstance(outcome, Written):
                names[outcome.record.id] = item.id
    return names


def _moment(asked: Question, conversation: Conversation) -> str | None:
    """When the question is asked; where that is not told, right after the conversation."""
    return asked.date or max((item.date for item in conversation.items), default="") or None
