"""Conversations with questions about them, from the files of public benchmarks.

Three formats are read, gzipped or not, recognised by what is in them:

- ours: JSON Lines, a conversation a line: ``id``, ``items`` (``id``, ``text``, ``speaker``, ``date``, ``session``) and
  ``questions`` (``id``, ``text``, ``category``, ``evidence``, ``date``);
- LoCoMo's ``locomo10.json``;
- LongMemEval's ``longmemeval_s.json`` and its kin.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from recollect.errors import InvalidInputError

_LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_NOT_COUNTED = frozenset({"adversarial"})
"""Questions that have no answer in the conversation; they are left out, as their authors do."""


@dataclass(frozen=True, slots=True)
class Item:
    """One turn of a conversation."""

    id: str
    text: str
    speaker: str
    date: str
    session: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the items that answer it."""

    id: str
    text: str
    category: str
    evidence: tuple[str, ...]
    date: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """One person's memory, and what is asked of it."""

    id: str
    items: tuple[Item, ...]
    questions: tuple[Question, ...]


def load(path: Path) -> list[Conversation]:
    """The conversations of a file, with the questions that can be scored."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InvalidInputError("data", f"{path} cannot be read ({error.strerror})") from None
    try:
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8")
        found = list(_conversations(text))
    except (KeyError, TypeError, ValueError, OSError, EOFError, AttributeError, zlib.error) as error:
        raise InvalidInputError("data", f"{path.name} is in none of the known formats ({error!r})") from None
    return [_scorable(conversation) for conversation in found]


def _scorable(conversation: Conversation) -> Conversation:
    known = {item.id for item in conversation.items}
    questions = tuple(
        asked
        for asked in conversation.questions
        if asked.category not in _NOT_COUNTED and known.intersection(asked.evidence)
    )
    return Conversation(conversation.id, conversation.items, questions)


def _conversations(text: str) -> Iterator[Conversation]:
    if text.lstrip().startswith("["):
        for number, entry in enumerate(json.loads(text)):
            yield _locomo(entry, number) if "conversation" in entry else _longmemeval(entry)
    else:
        for line in text.split("\n"):  # and not where else a line may end: texts hold such characters
            if line.strip():
                yield _neutral(json.loads(line))


def _neutral(entry: dict[str, Any]) -> Conversation:
    items = [Item(**{name: str(item.get(name) or "") for name in Item.__slots__}) for item in entry["items"]]
    questions = [
        Question(
            str(asked["id"]),
            asked["text"],
            str(asked.get("category") or ""),
            tuple(map(str, asked["evidence"])),
            asked.get("date") or "",
        )
        for asked in entry["questions"]
    ]
    return Conversation(str(entry["id"]), tuple(items), tuple(questions))


def _locomo(entry: dict[str, Any], number: int) -> Conversation:
    talk = entry["conversation"]
    items = []
    sessions = sorted((name for name in talk if re.fullmatch(r"session_\d+", name)), key=lambda n: int(n[8:]))
    for name in sessions:
        date = _locomo_date(talk.get(f"{name}_date_time", ""))
        for turn in talk[name]:
            shown = turn.get("blip_caption")
            text = turn["text"] + (f" [shares a picture of {shown}]" if shown else "")
            items.append(Item(turn["dia_id"], text, turn["speaker"], date, name))
    questions = [
        Question(
            f"{number}-{place}",
            asked["question"],
            _LOCOMO_CATEGORIES.get(asked.get("category"), "other"),
            tuple(part for cited in asked.get("evidence", ()) for part in re.findall(r"D\d+:\d+", cited)),
            "",
        )
        for place, asked in enumerate(entry["qa"])
    ]
    return Conversation(str(entry.get("sample_id", number)), tuple(items), tuple(questions))


def _locomo_date(text: str) -> str:
    """1:56 pm on 8 May, 2023."""
    try:
        return datetime.strptime(text.strip().upper(), "%I:%M %p ON %d %B, %Y").isoformat()
    except ValueError:
        return ""


def _longmemeval(entry: dict[str, Any]) -> Conversation:
    items, evidence = [], []
    dates = entry.get("haystack_dates") or [""] * len(entry["haystack_sessions"])
    triples = zip(entry["haystack_session_ids"], dates, entry["haystack_sessions"], strict=True)
    for session, date, turns in sorted(triples, key=lambda triple: _longmemeval_date(triple[1])):
        for place, turn in enumerate(turns, 1):
            item = Item(f"{session}_{place}", turn["content"], turn["role"], _longmemeval_date(date), session)
            items.append(item)
            if turn.get("has_answer"):
                evidence.append(item.id)
    asked = Question(
        entry["question_id"],
        entry["question"],
        entry["question_type"],
        tuple(evidence),
        _longmemeval_date(entry.get("question_date", "")),
    )
    return Conversation(entry["question_id"], tuple(items), (asked,))


def _longmemeval_date(text: str) -> str:
    """2023/05/20 (Sat) 02:21."""
    found = re.match(r"(\d{4})/(\d\d)/(\d\d)[^\d]*(\d\d):(\d\d)", text)
    return "{}-{}-{}T{}:{}:00".format(*found.groups()) if found else ""
