"""How well a memory learns from what people write, on labelled files: ``recollect bench learning FILE…``.

A labelled file is JSON Lines; docs/testing.md describes the format. Every line is a case of one set:

message     a message, and the facts in it that should be kept; most sets also have messages without any
explicit    a request to remember something, and what must be kept of it
sequence    messages over time, what is true at the end, and what no longer is
pair        two lines of a memory that say the same, or that differ
hostile     a message from which something must not be stored
gate        messages, and an entry that a model made of them: right, or false
talk        one speaker of a conversation in another file, and what should be known of them at the end

Each case has a user of its own. Everything goes through public calls, as in a host application: a message is stored and
captured when it arrives, and learned from an hour later. The labels are terms, so scoring needs no model and no judge.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from inspect import signature
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import recollect
from benchmarks.datasets import load as load_conversations
from recollect.agents.capture import capture
from recollect.agents.extract import extract
from recollect.agents.llm_extractor import by_model
from recollect.agents.models import open_model
from recollect.errors import InvalidInputError
from recollect.records import STATUSES, Fact
from recollect.testing import FrozenClock, MemoryStore
from recollect.testing.models import Call, ModelRequest, ModelServer, Say, Turn

__all__ = ["SETS", "Case", "Label", "Line", "form_problem", "load", "measure"]

SETS = ("message", "explicit", "sequence", "pair", "hostile", "gate", "talk")
_FIRST_DAY = "2026-02-12"


# labelled files


@dataclass(frozen=True, slots=True)
class Label:
    """What a line must contain: a term of each group in ``all``, and none of ``none``."""

    all: tuple[tuple[str, ...], ...]
    none: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Label:
        groups = tuple(tuple(map(str, group)) for group in row["all"])
        if not groups or not all(groups):
            raise ValueError("a label needs at least one group of terms")
        return cls(groups, tuple(map(str, row.get("not", ()))))

    def matches(self, line: str) -> bool:
        text = _folded(line)
        return all(any(_has(text, term) for term in group) for group in self.all) and not any(
            _has(text, term) for term in self.none
        )

    def __str__(self) -> str:
        return " + ".join("|".join(group[:3]) + ("|…" if len(group) > 3 else "") for group in self.all)


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a labelled file."""

    set: str
    id: str
    lang: str
    row: Mapping[str, Any]

    def labels(self, name: str) -> list[Label]:
        return [Label.of(each) for each in self.row.get(name, ())]

    @property
    def text(self) -> str:
        """What was said, on one line."""
        if self.set == "pair":
            return f"{_pair_text(self.row['a'])} / {_pair_text(self.row['b'])}"
        if self.set == "talk":
            return f"{self.row['conversation']}, {self.row['speaker']}"
        messages = self.row.get("messages") or [self.row.get("text", "")]
        return " → ".join(str(each["text"] if isinstance(each, Mapping) else each) for each in messages)


_NEEDED = {
    "message": ("text", "facts"),
    "explicit": ("text", "facts"),
    "sequence": ("messages",),
    "pair": ("a", "b", "same"),
    "hostile": ("text",),
    "gate": ("messages", "entry", "claim", "verdict"),
    "talk": ("data", "conversation", "speaker", "facts"),
}


def load(paths: Iterable[Path]) -> list[Case]:
    """Return the cases of labelled files. An error names the file and the line."""
    cases: list[Case] = []
    for path in paths:
        if not path.is_file():
            raise InvalidInputError("FILE", f"there is no file {path}")
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            raise InvalidInputError("FILE", f"{path.name} is not UTF-8") from None
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    cases.append(_case(json.loads(line), path, number))
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise InvalidInputError("FILE", f"{path.name}, line {number} is not a case ({error})") from None
    if not cases:
        raise InvalidInputError("FILE", "there are no cases")
    return cases


def _case(row: Any, path: Path, number: int) -> Case:
    if not isinstance(row, dict) or row.get("set") not in SETS:
        raise ValueError(f"set must be one of {', '.join(SETS)}")
    if missing := [each for each in _NEEDED[row["set"]] if each not in row]:
        raise ValueError(f"without {', '.join(missing)}")
    if "data" in row:
        row["data"] = str(path.parent / row["data"])
    case = Case(row["set"], str(row.get("id", f"{path.stem}:{number}")), str(row.get("lang", "en")), row)
    for labels in ("facts", "may", "not", "bad_form", "present", "gone"):
        case.labels(labels)
    if case.set == "gate":
        Label.of(row["claim"])
        if row["verdict"] not in ("right", "false"):
            raise ValueError("verdict must be right or false")
    return case


# terms


def _folded(text: str) -> str:
    """Return a text without case and accents, with one kind of space and apostrophe."""
    plain = unicodedata.normalize("NFKD", text.replace("’", "'").replace("_", " ")).casefold()
    kept = "".join(char for char in plain if not unicodedata.combining(char))
    return " ".join(kept.split())


def _has(folded: str, term: str) -> bool:
    """True if a folded text has a term at the beginning of a word; as a whole word (``=word``) or anywhere (``*part``).

    A number is found as a whole number: 12 is in "the 12th", not in 312. Terms in scripts without spaces or with
    prefixed articles are found anywhere.
    """
    wanted = _folded(term.lstrip("=*"))
    if term.startswith("*") or not _is_alphabetic(wanted):
        return wanted in folded
    if wanted.isdigit():
        return re.search(rf"(?<!\d){wanted}(?!\d)", folded) is not None
    ends = r"(?!\w)" if term.startswith("=") else ""
    return re.search(rf"(?<!\w){re.escape(wanted)}{ends}", folded) is not None


def _is_alphabetic(term: str) -> bool:
    """True if words of the script are separated: Latin, Cyrillic, Greek, and digits."""
    return not term or term[0] < "\u0590"


# form

_FIRST_PERSON = {
    "en": "i i'm i've i'd im ive my me mine myself our",
    "de": "ich mein meine meinen meinem meiner mir mich",
    "fr": "je j'ai j'aime j'habite mon ma mes moi",
    "es": "yo mi mis conmigo soy tengo",
    "it": "io mio mia miei mie sono ho",
    "pt": "eu meu minha meus minhas sou tenho",
    "nl": "ik mijn mij",
    "pl": "ja mój moja moje mnie mi jestem mam",
    "uk": "я мій моя моє мене мені",
    "ru": "я мой моя моё меня мне",
    "sv": "jag min mitt mina mig",
    "cs": "já můj moje mě mně jsem mám",
    "tr": "ben benim bana",
}
_FIRST_PERSON_SIGNS = {"ja": ("私", "僕", "俺"), "zh": ("我",)}
_DANGLING = frozenset(
    "and or but because as than then to of with for the a an my so if that which when while "
    "und oder aber weil mit der die das et ou mais parce de la le y o pero con el "
    "i oraz ale że z і та або але що и или но что "
    "lol haha dude sorry tho though btw yea yeah then anyway".split()
)
_FILLER = re.compile(r"(actually|probably|maybe|basically|honestly|well|so|and|but|or)\b", re.IGNORECASE)


def form_problem(line: str, lang: str) -> str | None:
    """Return what is wrong with the form of a line, as far as that can be told from its words; None if nothing is."""
    value = line.partition(": ")[2] or line
    words = _folded(re.sub(r"[\"“«„(].*?[\"”“»)]", " ", value)).split()
    first, last = value[:1], words[-1] if words else ""
    if not (first.isalnum() or first in "\"“«„+#@$€£'") or re.match(r"'\w{1,2} ", value) or _FILLER.match(value):
        return "begins in the middle"
    if last.strip(",;") in map(_folded, _DANGLING) or line.rstrip().endswith((",", ";", ":", "(")):
        return "ends in the middle"
    if any(line.count(pair[0]) != line.count(pair[1]) for pair in ("()", "[]")):
        return "a bracket is open"
    own = set(map(_folded, _FIRST_PERSON.get(lang, "").split()))
    if own.intersection(word.strip(".,;!?") for word in words) or any(
        sign in value for sign in _FIRST_PERSON_SIGNS.get(lang, ())
    ):
        return "first person"
    return None


# learning as a host does


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a memory. An uncertain one is recalled but not in MEMORY.md."""

    text: str
    uncertain: bool = False


class _Host:
    """A host application with one user, and a clock that it moves."""

    def __init__(self) -> None:
        self.clock = FrozenClock(datetime(2020, 1, 1, tzinfo=timezone.utc))
        self._app = recollect.open(MemoryStore(), clock=self.clock)
        self.memory = self._app.user("u1")

    def __enter__(self) -> _Host:
        return self

    def __exit__(self, *_: object) -> None:
        self._app.close()

    def set_day(self, day: str) -> None:
        self.clock.now = max(datetime.fromisoformat(f"{day}T09:30:00").replace(tzinfo=timezone.utc), self.clock.now)

    @property
    def session(self) -> str:
        return f"chat-{self.clock().date()}"

    def hear(self, messages: Sequence[tuple[str, str]]) -> None:
        """Take in messages one after the other, each a role and a text; then learn from them."""
        session = self.session
        for before, (role, text) in pairwise([("user", ""), *messages]):
            stored = getattr(self.memory.say(text, role=role, session=session), "record", None)
            if role == "user":
                capture(
                    self.memory,
                    text,
                    before=before[1] or None,
                    before_role=before[0],
                    session=session,
                    message=stored.id if stored is not None else None,
                )
            self.clock.tick(seconds=20)
        self.clock.tick(hours=1)
        if learn := getattr(self.memory, "learn", None):
            learn(session=session)
        else:
            extract(self.memory, self.clock().date(), clock=self.clock)

    def hear_with_model(self, messages: Iterable[str], entry: Mapping[str, Any]) -> None:
        """Take in messages, and learn from them with a model that answers with one entry."""
        answer = {"memory_updates": [dict(entry)], "daily_notes": "", "summary": ""}
        # a model that looks again at its entries is not part of what is measured
        once: dict[str, Any] = {"second_look": False} if "second_look" in signature(by_model).parameters else {}

        def script(request: ModelRequest) -> Turn:
            return Call("answer", answer) if request.tools else Say(json.dumps(answer))

        for text in messages:
            self.memory.say(text, session=self.session)
            self.clock.tick(seconds=20)
        self.clock.tick(hours=1)
        with ModelServer(script) as server, open_model(f"{server.openai_url}#scripted") as model:
            extract(self.memory, self.clock().date(), extractor=by_model(model, tools=False, **once), clock=self.clock)

    def lines(self) -> list[Line]:
        """Return what the memory holds as true now: trusted facts, and notes."""
        now = self.clock()
        return [
            Line(record.text, isinstance(record, Fact) and record.noted_on is not None)
            for kind in ("fact", "note")
            for record in self.memory.read(kind=kind)
            if record.trusted and (record.valid_until is None or record.valid_until > now)
        ]

    def everything(self) -> str:
        """Return all text that is stored, of every kind and status."""
        records = (record for status in STATUSES for record in self.memory.read(status=status))
        return "\n".join([*(record.text for record in records), self.memory.show()])


# scores


@dataclass
class _Result:
    """The outcome of one case: what was counted under which measure, and what went wrong."""

    case: Case
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    lines: Sequence[Line] = ()
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def count(self, name: str, right: int | bool, of: int = 1) -> None:
        self.counts[name] = (int(right), of)


FOUND, FOUND_ENGLISH, FOUND_OTHER = "facts found", "… in English", "… in other languages"
RIGHT_LINES, GOOD_FORM, NO_WRITES = "lines that are right", "lines in good form", "nothing durable: nothing written"
WHOLE, PRESENT, CLEAN = "kept whole", "present right", "clean"
SAME, APART = "same: found", "different: kept apart"
HELD, KEPT = "false entry: held back", "right entry: kept"
NO_TASTE = "lines that are not tastes"

MEASURES = {
    "message": (FOUND, FOUND_ENGLISH, FOUND_OTHER, RIGHT_LINES, GOOD_FORM, NO_WRITES),
    "explicit": (WHOLE,),
    "sequence": (PRESENT,),
    "pair": (SAME, APART),
    "hostile": (CLEAN,),
    "gate": (HELD, KEPT),
    "talk": (FOUND, GOOD_FORM, NO_TASTE),
}


def measure(cases: Sequence[Case], progress: Callable[[str, int, int], None] | None = None) -> dict[str, Any]:
    """Run all cases; return the table, the facts found by language, the lines by kind, and every miss."""
    results: list[_Result] = []
    for number, case in enumerate(cases, 1):
        with _Host() as host:
            results.append(_SCORES[case.set](host, case))
        if progress is not None:
            progress("Learning", number, len(cases))
    messages = [each for each in results if each.case.set == "message"]
    languages = dict.fromkeys(each.case.lang for each in messages)
    return {
        "path": "learn" if hasattr(recollect.Memory, "learn") else "extract",
        "cases": {name: sum(each.case.set == name for each in results) for name in SETS},
        "table": [row for row in _table(results) if row["of"]],
        "languages": {lang: _sum((each for each in messages if each.case.lang == lang), FOUND) for lang in languages},
        "lines": _line_kinds(messages),
        "results": [
            {
                "set": each.case.set,
                "id": each.case.id,
                "lang": each.case.lang,
                "text": each.case.text,
                "lines": [line.text for line in each.lines],
                "missed": each.missed,
                "wrong": each.wrong,
            }
            for each in results
        ],
    }


def _table(results: Sequence[_Result]) -> Iterator[dict[str, Any]]:
    for name, measures in MEASURES.items():
        for each in measures:
            yield {"set": name, "measure": each, **_sum((one for one in results if one.case.set == name), each)}


def _sum(results: Iterable[_Result], name: str) -> dict[str, Any]:
    counts = [each.counts[name] for each in results if name in each.counts]
    right, total = sum(one for one, _ in counts), sum(of for _, of in counts)
    return {"right": right, "of": total, "percent": round(100 * right / total, 1) if total else None}


def _line_kinds(messages: Sequence[_Result]) -> dict[str, int]:
    kinds = dict.fromkeys(("written", "right", "forbidden", "unknown", "uncertain"), 0)
    for each in messages:
        for line in each.lines:
            kinds["written"] += 1
            kinds[_kind(each.case, line)] += 1
            kinds["uncertain"] += line.uncertain
    return kinds


def _kind(case: Case, line: Line) -> str:
    if _matches(case.labels("not"), line):
        return "forbidden"
    return "right" if _matches(case.labels("facts") + case.labels("may"), line) else "unknown"


def _matches(labels: Iterable[Label], line: Line) -> bool:
    return any(label.matches(line.text) for label in labels)


def _read(host: _Host, case: Case) -> tuple[_Result, list[Label]]:
    """Hear the message of a case; note its bad lines; return also the labels of facts that were not found."""
    before = [(str(each["role"]), str(each["content"])) for each in case.row.get("before", ())]
    host.set_day(case.row.get("date", _FIRST_DAY))
    host.hear([*before, ("user", str(case.row["text"]))])
    result = _Result(case, lines=host.lines())
    result.wrong = [
        f"{kind}: {line.text}" for line in result.lines if (kind := _kind(case, line)) in ("forbidden", "unknown")
    ]
    good = [line.text for line in result.lines if _kind(case, line) != "forbidden"]
    missing = [label for label in case.labels("facts") if not any(label.matches(line) for line in good)]
    result.missed = [str(label) for label in missing]
    return result, missing


def _message(host: _Host, case: Case) -> _Result:
    result, missing = _read(host, case)
    wanted = len(case.labels("facts"))
    if wanted:
        found = wanted - len(missing)
        result.count(FOUND, found, wanted)
        result.count(FOUND_ENGLISH if case.lang == "en" else FOUND_OTHER, found, wanted)
    else:
        result.count(NO_WRITES, not result.wrong)
    if result.lines:
        result.count(RIGHT_LINES, len(result.lines) - len(result.wrong), len(result.lines))
        bad_form = [f"{problem}: {line.text}" for line in result.lines if (problem := _form_problem(case, line))]
        result.count(GOOD_FORM, len(result.lines) - len(bad_form), len(result.lines))
        result.wrong += bad_form
    return result


def _form_problem(case: Case, line: Line) -> str | None:
    return "badly worded" if _matches(case.labels("bad_form"), line) else form_problem(line.text, case.lang)


def _explicit(host: _Host, case: Case) -> _Result:
    result, missing = _read(host, case)
    result.wrong = [each for each in result.wrong if each.startswith("forbidden")]
    result.count(WHOLE, not missing and not result.wrong)
    return result


def _hostile(host: _Host, case: Case) -> _Result:
    result, _ = _read(host, case)
    stored = host.everything()
    result.wrong += [f"stored: {text}" for text in case.row.get("never", ()) if str(text) in stored]
    result.count(CLEAN, not result.wrong)
    return result


def _sequence(host: _Host, case: Case) -> _Result:
    present, gone = case.labels("present"), case.labels("gone")
    was_known = False
    result = _Result(case)
    for message in case.row["messages"]:
        was_known |= any(_matches(gone, line) for line in result.lines)
        host.set_day(str(message["date"]))
        host.hear([("user", str(message["text"]))])
        result.lines = host.lines()
    result.missed = [str(label) for label in present if not any(label.matches(line.text) for line in result.lines)]
    if not present and not was_known:  # a memory that never knew it did not notice the end
        result.missed = [f"never known: {label}" for label in gone]
    result.wrong = [f"no longer true: {line.text}" for line in result.lines if _matches(gone, line)]
    result.count(PRESENT, not result.missed and not result.wrong)
    return result


def _pair(host: _Host, case: Case) -> _Result:
    for each in (case.row["a"], case.row["b"]):
        host.memory.remember(**(each if isinstance(each, dict) else {"content": each}))
        host.clock.tick(days=1)
    result = _Result(case, lines=host.lines())
    if case.row["same"]:
        result.count(SAME, len(result.lines) == 1)
        result.missed = [] if len(result.lines) == 1 else ["the two are the same"]
        return result
    apart = len(result.lines) == 2
    if case.row.get("replaces"):  # the second may end the first, but must not be taken for it
        second = _folded(_pair_text(case.row["b"]).rpartition(": ")[2])
        apart = apart or any(second in _folded(line.text) for line in result.lines)
    result.count(APART, apart)
    result.wrong = [] if apart else ["taken for the same"]
    return result


def _pair_text(line: Any) -> str:
    return f"{line['key']}: {line['content']}" if isinstance(line, Mapping) else str(line)


def _gate(host: _Host, case: Case) -> _Result:
    host.set_day(case.row.get("date", _FIRST_DAY))
    host.hear_with_model(map(str, case.row["messages"]), case.row["entry"])
    result = _Result(case, lines=host.lines())
    claim = Label.of(case.row["claim"])
    believed = [line.text for line in result.lines if claim.matches(line.text) and not line.uncertain]
    if case.row["verdict"] == "right":
        result.count(KEPT, bool(believed))
        result.missed = [] if believed else [str(case.row["entry"]["value"])]
    else:
        result.count(HELD, not believed)
        result.wrong = [f"believed: {line}" for line in believed]
    return result


_TASTE = re.compile(
    r"(likes?|loves?|enjoys?|adores?|prefers?|hates?|dislikes?|(interested|passionate|keen|into|fond)\b"
    r"|(\w+ ){0,2}fan\b|favou?rite)",
    re.IGNORECASE,
)


def _talk(host: _Host, case: Case) -> _Result:
    path, name = Path(str(case.row["data"])), case.row["conversation"]
    found = next((each for each in load_conversations(path) if each.id == name), None)
    if found is None:
        raise InvalidInputError("FILE", f"{path.name} has no conversation {name}")
    for _, items in groupby(found.items, key=lambda item: item.session):
        session = list(items)
        if session[0].date:
            host.set_day(session[0].date[:10])
        host.hear([("user" if item.speaker == case.row["speaker"] else "assistant", item.text) for item in session])
    result = _Result(case, lines=host.lines())
    wanted, lines = case.labels("facts"), len(result.lines)
    good = [line for line in result.lines if not _matches(case.labels("not"), line)]
    missing = [label for label in wanted if not any(label.matches(line.text) for line in good)]
    result.missed = [str(label) for label in missing]
    result.wrong = [f"forbidden: {line.text}" for line in result.lines if line not in good]
    bad_form = [f"{problem}: {line.text}" for line in result.lines if (problem := _form_problem(case, line))]
    result.count(FOUND, len(wanted) - len(missing), len(wanted))
    result.count(GOOD_FORM, lines - len(bad_form), lines)
    result.count(NO_TASTE, sum(_TASTE.match(line.text) is None for line in result.lines), lines)
    result.wrong += bad_form
    return result


_SCORES: dict[str, Callable[[_Host, Case], _Result]] = {
    "message": _message,
    "explicit": _explicit,
    "sequence": _sequence,
    "pair": _pair,
    "hostile": _hostile,
    "gate": _gate,
    "talk": _talk,
}
