"""How well the duplicate policy tells the same fact from another: ``python -m benchmarks.duplicates``.

Reads pairs (by default ``tests/data/duplicates.jsonl``) and reports, per split and per language, how many
same pairs were found, how many different ones were kept apart, and how often SAME was right. Every third
line is the held-out split; the late and last ones were written after the tuning. It measures only; the
tests hold the limits.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recollect.policy.duplicates.comparison import Relation, Statement, relation, signature

DATA = Path(__file__).parent.parent / "tests" / "data" / "duplicates.jsonl"


@dataclass(frozen=True, slots=True)
class Pair:
    a: str
    b: str
    key_a: str | None
    key_b: str | None
    same: bool
    lang: str
    why: str
    split: str

    @property
    def found(self) -> Relation:
        return relation(Statement.of(self.a, self.key_a), Statement.of(self.b, self.key_b))

    @property
    def signed_alike(self) -> bool:
        return signature(self.a, self.key_a) == signature(self.b, self.key_b)


@dataclass(frozen=True, slots=True)
class Score:
    """The figures of one group of pairs; rates are None where there is nothing to count."""

    group: str
    pairs: int
    same: int
    same_found: int
    different: int
    kept_apart: int
    recall: float | None
    apart: float | None
    precision: float | None
    signed_alike: int


def read(path: Path = DATA) -> list[Pair]:
    pairs: list[Pair] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row: dict[str, Any] = json.loads(line)
        split = row.pop("set", "held-out" if number % 3 == 0 else "tuning")
        pairs.append(Pair(**row, split=split))
    return pairs


def score(group: str, pairs: Iterable[Pair]) -> Score:
    pairs = list(pairs)
    same = [pair for pair in pairs if pair.same]
    different = [pair for pair in pairs if not pair.same]
    found = sum(pair.found is Relation.SAME for pair in same)
    apart = sum(pair.found is not Relation.SAME for pair in different)
    called_same = found + len(different) - apart
    return Score(
        group,
        len(pairs),
        len(same),
        found,
        len(different),
        apart,
        found / len(same) if same else None,
        apart / len(different) if different else None,
        found / called_same if called_same else None,
        sum(pair.signed_alike for pair in same),
    )


def scores(pairs: list[Pair]) -> list[Score]:
    rows = [score("all", pairs)]
    for split in dict.fromkeys(pair.split for pair in pairs):
        rows.append(score(split, (pair for pair in pairs if pair.split == split)))
    for lang in dict.fromkeys(pair.lang for pair in pairs):
        rows.append(score(lang, (pair for pair in pairs if pair.lang == lang)))
    return rows


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Precision and recall of the duplicate policy.")
    parser.add_argument("file", nargs="?", type=Path, default=DATA, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--verbose", action="store_true", help="also list the pairs it got wrong")
    parser.add_argument("--split", help="only this split: tuning, held-out or late")
    args = parser.parse_args()

    pairs = [pair for pair in read(args.file) if args.split in (None, pair.split)]
    rows = scores(pairs)
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"{'':9} {'pairs':>5}  {'same found':>18}  {'kept apart':>18}  {'precision':>9}  {'signed alike':>12}")
    for row in rows:
        same = f"{row.same_found}/{row.same} {_percent(row.recall)}"
        apart = f"{row.kept_apart}/{row.different} {_percent(row.apart)}"
        print(
            f"{row.group:9} {row.pairs:5}  {same:>18}  {apart:>18}  {_percent(row.precision):>9}  {row.signed_alike:12}"
        )
    if args.verbose:
        print()
        for pair in pairs:
            if (pair.found is Relation.SAME) is not pair.same:
                wrong = "missed" if pair.same else "WRONGLY SAME"
                a, b = Statement.of(pair.a, pair.key_a), Statement.of(pair.b, pair.key_b)
                print(f"{wrong} ({pair.lang}, {pair.why}): {pair.a!r} / {pair.b!r}")
                print(f"    {a.signature!r} / {b.signature!r}")


if __name__ == "__main__":
    main()
