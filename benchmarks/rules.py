"""How well the rules learn: of what they learned, how much is right; of what was there to learn, how much was found.

The data is a file of utterances, a JSON object a line: ``text``, ``language``, ``why`` (what kind of utterance it is),
``set`` ("held_out" for those written after the tuning) and ``expect``, a list of what should be learned. An expectation
names what must agree: ``key``, ``category``, ``type``, ``action`` exactly, ``content`` as a part of the content,
``exactly`` as all of it. ``before`` is the message before, if there was one, and ``before_role`` who wrote it.
Whatever else is learned is wrong, and so is a right content under a wrong key. What is ``optional`` counts neither way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.agents.rules import Learned, learn
from recollect.errors import InvalidInputError

__all__ = ["DATA", "Utterance", "load", "measure"]

DATA = Path(__file__).parents[1] / "tests" / "data" / "utterances.jsonl"
"""The labelled utterances of the repository."""

_EXACT = ("key", "category", "type", "action")


@dataclass(frozen=True, slots=True)
class Utterance:
    """Something a person says, and what should be learned from it."""

    text: str
    language: str
    why: str
    held_out: bool
    expect: tuple[Mapping[str, Any], ...]
    before: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Result:
    """What came of one utterance."""

    utterance: Utterance
    right: int
    wrong: tuple[str, ...]
    missed: tuple[str, ...]

    @property
    def wanted(self) -> int:
        return self.right + len(self.missed)


def load(path: Path = DATA) -> list[Utterance]:
    """The utterances of a file."""
    if not path.is_file():
        raise InvalidInputError("--data", f"there is no file {path}")
    found: list[Utterance] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            before = ((row["before_role"], row["before"]),) if "before" in row else ()
            held_out = row.get("set") == "held_out"
            found.append(Utterance(row["text"], row["language"], row["why"], held_out, tuple(row["expect"]), before))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInputError("--data", f"line {number} is no utterance ({error})") from None
    return found


def measure(utterances: Iterable[Utterance]) -> dict[str, Any]:
    """Precision and recall of each set, and in it of each language and each kind of utterance; and all misses."""
    results = [_judged(each) for each in utterances]
    sets = {
        name: _figures([each for each in results if each.utterance.held_out is held])
        for name, held in (("tuned", False), ("held out", True))
        if any(each.utterance.held_out is held for each in results)
    }
    misses = [
        {
            "set": "held out" if each.utterance.held_out else "tuned",
            "language": each.utterance.language,
            "why": each.utterance.why,
            "text": each.utterance.text,
            "wrong": list(each.wrong),
            "missed": list(each.missed),
        }
        for each in results
        if each.wrong or each.missed
    ]
    return {"sets": sets, "misses": misses}


def _judged(utterance: Utterance) -> _Result:
    left = list(utterance.expect)
    right = 0
    wrong: list[str] = []
    for learned in learn(utterance.text, before=utterance.before):
        match = next((each for each in left if _agrees(learned, each)), None)
        if match is None:
            wrong.append(f"{learned.key or '-'}: {learned.content} ({learned.action})")
            continue
        left.remove(match)
        right += not match.get("optional", False)
    missed = tuple(
        f"{each.get('key') or '-'}: {each.get('exactly') or each.get('content', '')}"
        for each in left
        if not each.get("optional")
    )
    return _Result(utterance, right, tuple(wrong), missed)


def _agrees(learned: Learned, expected: Mapping[str, Any]) -> bool:
    if any(name in expected and getattr(learned, name) != expected[name] for name in _EXACT):
        return False
    if "exactly" in expected and str(expected["exactly"]).casefold() != learned.content.casefold():
        return False
    return str(expected.get("content", "")).casefold() in learned.content.casefold()


def _figures(results: list[_Result]) -> dict[str, Any]:
    figures = _row(results)
    for name in ("language", "why"):
        groups = dict.fromkeys(getattr(each.utterance, name) for each in results)
        figures[name] = {
            group: _row([each for each in results if getattr(each.utterance, name) == group]) for group in groups
        }
    return figures


def _row(results: list[_Result]) -> dict[str, Any]:
    right = sum(each.right for each in results)
    wrong = sum(len(each.wrong) for each in results)
    wanted = sum(each.wanted for each in results)
    return {
        "utterances": len(results),
        "nothing": sum(not each.utterance.expect for each in results),
        "wanted": wanted,
        "right": right,
        "wrong": wrong,
        "precision": right / (right + wrong) if right + wrong else None,
        "recall": right / wanted if wanted else None,
    }
