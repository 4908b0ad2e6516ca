"""Comparison of the facts believed to be in a file with what it says now, to find what the person changed.

Every fact ends in exactly one of `same`, `moved`, `changed` and `removed`, every item of the file in exactly one of
`same`, `moved`, `changed`, `added` and `repeated`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from recollect.document.blocks import Item, strip_controls
from recollect.document.memory_md import section_key

# Similarity is rapidfuzz's ratio, 0 to 100, the better of as written and with the words sorted. Fewer than one in a
# hundred pairs of unrelated facts reach 60, while edited sentences do: test_matching measures it. Too low a value links
# an edit to the wrong history, too high a value loses it; the content is right either way.
SIMILAR: Final = 60
SIMILAR_ELSEWHERE: Final = 88  # moving and editing at once is rare, so it must be obvious
MAX_PAIRS: Final = 200_000  # beyond this, the rest is reported as added and removed
_MAX_COMPARED: Final = 300  # characters of a long text that are compared


@dataclass(frozen=True, slots=True)
class ExpectedFact:
    """A fact that is believed to be in the file."""

    id: str
    section: str
    category: str | None
    key: str | None
    content: str


@dataclass(frozen=True, slots=True)
class FileChanges:
    same: list[tuple[str, Item]] = field(default_factory=list)
    moved: list[tuple[str, Item]] = field(default_factory=list)  # to another section, otherwise the same
    changed: list[tuple[str, Item]] = field(default_factory=list)  # content or key, perhaps also the section
    added: list[Item] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    repeated: list[Item] = field(default_factory=list)  # repeats what another item says


def compare(known: Sequence[ExpectedFact], items: Sequence[Item]) -> FileChanges:
    """Return what happened to the known facts, the most certain explanation first."""
    changes = FileChanges()
    olds = [_Comparable(section_key(one.section), one.key, _fold_content(one.content)) for one in known]
    news = [_Comparable(section_key(one.section), one.key, _fold_content(one.content)) for one in items]
    left = _Unmatched(olds, news)

    def record(into: list[tuple[str, Item]], pairs: Iterable[tuple[int, int]]) -> None:
        into.extend((known[old].id, items[new]) for old, new in pairs)

    record(changes.same, left.match(lambda side: (side.section, side.key, side.said)))
    record(changes.moved, left.match(lambda side: (side.key, side.said)))
    said = {(side.key, side.said) for at, side in enumerate(news) if at not in left.new}
    changes.repeated.extend(items[at] for at in left.drop(lambda side: (side.key, side.said) in said))
    record(changes.changed, left.match_closest(0, lambda side: side.key and (side.section, side.key)))
    record(changes.changed, left.match_closest(0, lambda side: side.key))
    record(changes.changed, left.match(lambda side: (side.section, side.said)))
    record(changes.changed, left.match_closest(SIMILAR, lambda side: side.section))
    record(changes.changed, left.match_closest(SIMILAR_ELSEWHERE, lambda _: True))

    said = {(side.key, side.said) for at, side in enumerate(news) if at not in left.new}
    for at in left.new:
        says = (news[at].key, news[at].said)
        (changes.repeated if says in said else changes.added).append(items[at])
        said.add(says)
    changes.removed.extend(known[at].id for at in left.old)
    return changes


@dataclass(frozen=True, slots=True)
class _Comparable:
    section: str
    key: str | None
    said: str

    @property
    def text(self) -> str:
        label = f"{self.key.replace('_', ' ')}: " if self.key else ""
        return (label + self.said)[:_MAX_COMPARED].casefold()


def _fold_content(content: str) -> str:
    return " ".join(strip_controls(content).split())


_Trait = Callable[[_Comparable], Hashable]


class _Unmatched:
    """The facts and items not yet explained, by position and in order."""

    def __init__(self, olds: Sequence[_Comparable], news: Sequence[_Comparable]) -> None:
        self._olds, self._news = olds, news
        self.old = dict.fromkeys(range(len(olds)))
        self.new = dict.fromkeys(range(len(news)))

    def match(self, trait: _Trait) -> list[tuple[int, int]]:
        waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for old in self.old:
            waiting[trait(self._olds[old])].append(old)
        pairs: list[tuple[int, int]] = []
        for new in self.new:
            queue = waiting.get(trait(self._news[new]))
            if queue:
                pairs.append((queue.popleft(), new))
        return self._take(pairs)

    def match_closest(self, threshold: float, trait: _Trait) -> list[tuple[int, int]]:
        """Pair the most similar first, among those with an equal, non-empty trait."""
        groups: defaultdict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for old in self.old:
            groups[trait(self._olds[old])][0].append(old)
        for new in self.new:
            groups[trait(self._news[new])][1].append(new)
        pairs: list[tuple[int, int]] = []
        budget = MAX_PAIRS
        for shared, (old_ones, new_ones) in groups.items():
            cost = len(old_ones) * len(new_ones)
            if not shared or not cost:
                continue
            if cost <= budget:
                budget -= cost
                pairs += self._closest(old_ones, new_ones, threshold)
            elif not threshold:
                pairs += zip(old_ones, new_ones, strict=False)
        return self._take(pairs)

    def _closest(self, old_ones: list[int], new_ones: list[int], threshold: float) -> list[tuple[int, int]]:
        if not threshold and len(old_ones) == len(new_ones) == 1:
            return [(old_ones[0], new_ones[0])]
        from rapidfuzz import fuzz  # here, because most files have nothing to compare

        old_texts = [self._olds[old].text for old in old_ones]
        sorted_olds = [" ".join(sorted(text.split())) for text in old_texts]
        scored: list[tuple[float, int, int]] = []
        for new in new_ones:
            text = self._news[new].text
            sorted_new = " ".join(sorted(text.split()))
            for old, old_text, sorted_old in zip(old_ones, old_texts, sorted_olds, strict=True):
                score = fuzz.ratio(old_text, text, score_cutoff=threshold)
                score = max(score, fuzz.ratio(sorted_old, sorted_new, score_cutoff=threshold))
                if score >= threshold:
                    scored.append((-score, new, old))
        pairs: dict[int, int] = {}
        taken: set[int] = set()
        for _, new, old in sorted(scored):
            if new not in taken and old not in pairs:
                pairs[old] = new
                taken.add(new)
        return list(pairs.items())

    def _take(self, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        for old, new in pairs:
            del self.old[old]
            del self.new[new]
        return sorted(pairs, key=lambda pair: pair[1])

    def drop(self, fits: Callable[[_Comparable], bool]) -> list[int]:
        dropped = [new for new in self.new if fits(self._news[new])]
        for new in dropped:
            del self.new[new]
        return dropped
